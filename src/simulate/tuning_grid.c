/* SPDX-License-Identifier: MIT
 *
 * Making a grid from rows: see tuning_grid.h.
 *
 *     rows  ->  levels of each knob: its different values, rising
 *           ->  keys: the level of every knob, and the row
 *           ->  sorted: rows with equal keys stand together: one configuration
 *
 * Threads: one at a time.
 */
#include "simulate/tuning_grid.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "simulate/tuning_rows.h"

enum { TEXT_BYTES = 200 };

static const double near_share = 0.05;

struct key {
    uint16_t levels[WG_TUNING_KNOBS_MAX]; /* 0 behind the last knob */
    size_t row;
};

struct builder {
    const struct wg_tuning_grid_request *request;
    struct wg_tuning_rows rows;
    struct wg_tuning_grid *grid;
    struct wg_tuning_knob knobs[WG_TUNING_KNOBS_MAX];
    struct key *keys;   /* owned; one a row, sorted */
    uint16_t *level_of; /* in the grid's arena */
    size_t count;       /* of configurations */
};

static enum wg_code fail_memory(struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "out of memory");
}

/* -- Knobs ----------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool has_highest_default(enum wg_tuning_role role)
{
    return role == WG_TUNING_GPU_CLOCK || role == WG_TUNING_MEM_CLOCK ||
           role == WG_TUNING_CPU_CLOCK || role == WG_TUNING_CORES ||
           role == WG_TUNING_POWER_LIMIT || role == WG_TUNING_REPLICAS;
}

/* The different values of a knob, rising. */
static enum wg_code make_knob(struct builder *builder, size_t axis, struct wg_error *err)
{
    const struct wg_tuning_axis *of = &builder->request->axes[axis];
    const struct wg_tuning_rows *rows = &builder->rows;
    double *levels = wg__arena_alloc(&builder->grid->arena, rows->count, sizeof *levels);
    if (levels == NULL)
        return fail_memory(err);
    for (size_t i = 0; i < rows->count; i++)
        levels[i] = rows->items[i].knobs[axis];
    qsort(levels, rows->count, sizeof *levels, compare_numbers);
    size_t count = 1;
    for (size_t i = 1; i < rows->count; i++)
        if (levels[i] != levels[count - 1])
            levels[count++] = levels[i];
    if (count > WG_TUNING_LEVELS_MAX)
        return wg__fail(err, WG_EINVAL,
                        "--knob '%s': %zu different values in %s, at most %d are accepted",
                        of->column, count, builder->request->path, WG_TUNING_LEVELS_MAX);
    builder->knobs[axis] = (struct wg_tuning_knob){
        .name = of->column,
        .role = of->role,
        .levels = levels,
        .labels = of->role == WG_TUNING_CATEGORY ? rows->labels[axis] : NULL,
        .count = count,
        .default_level = has_highest_default(of->role) ? count - 1 : 0,
    };
    return WG_OK;
}

size_t wg__tuning_level_named(const struct wg_tuning_knob *knob, const char *value)
{
    double number = 0;
    const bool is_number = wg__parse_double(value, &number);
    for (size_t i = 0; i < knob->count; i++)
        if (knob->labels != NULL ? strcmp(knob->labels[i], value) == 0
                                 : is_number && knob->levels[i] == number)
            return i;
    return knob->count;
}

/* "1, 2, 4 ... 32" */
static void list_levels(char out[static TEXT_BYTES], const struct wg_tuning_knob *knob)
{
    size_t length = 0;
    for (size_t i = 0; i < knob->count && length < TEXT_BYTES; i++) {
        if (knob->count > 8 && i == 3)
            i = knob->count - 1;
        const char *before = i == 0 ? "" : knob->count > 8 && i + 1 == knob->count ? " ... " : ", ";
        if (knob->labels != NULL)
            length += (size_t)snprintf(out + length, TEXT_BYTES - length, "%s%.24s", before,
                                       knob->labels[i]);
        else
            length += (size_t)snprintf(out + length, TEXT_BYTES - length, "%s%.10g", before,
                                       knob->levels[i]);
    }
}

static enum wg_code set_default(struct builder *builder, const struct wg_tuning_match *match,
                                struct wg_error *err)
{
    for (size_t k = 0; k < builder->request->axis_count; k++) {
        struct wg_tuning_knob *knob = &builder->knobs[k];
        if (strcmp(knob->name, match->column) != 0)
            continue;
        const size_t level = wg__tuning_level_named(knob, match->value);
        if (level < knob->count) {
            knob->default_level = level;
            return WG_OK;
        }
        char known[TEXT_BYTES] = "";
        list_levels(known, knob);
        return wg__fail(err, WG_EINVAL, "--default: %s has no level %s (%s)", knob->name,
                        match->value, known);
    }
    return wg__fail(err, WG_EINVAL, "--default: '%s' is not a knob; expected a column of --knob",
                    match->column);
}

/* -- Configurations -------------------------------------------------------------------------- */

static size_t level_of(const struct wg_tuning_knob *knob, double value)
{
    const double *found =
        bsearch(&value, knob->levels, knob->count, sizeof *knob->levels, compare_numbers);
    return found != NULL ? (size_t)(found - knob->levels) : 0;
}

/* The last knob fastest. */
static int compare_levels(const struct key *a, const struct key *b)
{
    for (size_t k = 0; k < WG_TUNING_KNOBS_MAX; k++)
        if (a->levels[k] != b->levels[k])
            return a->levels[k] < b->levels[k] ? -1 : 1;
    return 0;
}

/* By levels; then by rows, so that sums don't depend on qsort. */
static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    const int order = compare_levels(x, y);
    return order != 0 ? order : (x->row > y->row) - (x->row < y->row);
}

static bool is_same_configuration(const struct key *a, const struct key *b)
{
    return compare_levels(a, b) == 0;
}

static enum wg_code make_keys(struct builder *builder, struct wg_error *err)
{
    const size_t count = builder->rows.count;
    builder->keys = wg__alloc_zeroed(count, sizeof *builder->keys);
    if (builder->keys == NULL)
        return fail_memory(err);
    for (size_t i = 0; i < count; i++) {
        builder->keys[i].row = i;
        for (size_t k = 0; k < builder->request->axis_count; k++)
            builder->keys[i].levels[k] =
                (uint16_t)level_of(&builder->knobs[k], builder->rows.items[i].knobs[k]);
    }
    qsort(builder->keys, count, sizeof *builder->keys, compare_keys);
    builder->count = 1;
    for (size_t i = 1; i < count; i++)
        builder->count += !is_same_configuration(&builder->keys[i], &builder->keys[i - 1]);
    return WG_OK;
}

static bool differs(const struct builder *builder, size_t aside)
{
    const struct wg_tuning_row *rows = builder->rows.items;
    const struct key *keys = builder->keys;
    for (size_t i = 1; i < builder->rows.count; i++)
        if (is_same_configuration(&keys[i], &keys[i - 1]) &&
            rows[keys[i].row].asides[aside] != rows[keys[i - 1].row].asides[aside])
            return true;
    return false;
}

/* Columns in which rows of one configuration differ: they may be of different workloads. */
static enum wg_code find_differing(struct builder *builder, struct wg_error *err)
{
    char text[TEXT_BYTES] = "";
    size_t length = 0;
    for (size_t i = 0; i < builder->rows.aside_count && length < sizeof text; i++) {
        const struct wg_tuning_aside *aside = &builder->rows.asides[i];
        /* A text of its own in each row is a figure or a number of the row. */
        const bool is_unique = aside->text_count == builder->rows.count;
        if (!aside->has_many && !is_unique && differs(builder, i))
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%.40s",
                                       length > 0 ? ", " : "", aside->name);
    }
    if (length == 0)
        return WG_OK;
    builder->grid->differing = wg__arena_strdup(&builder->grid->arena, text);
    return builder->grid->differing != NULL ? WG_OK : fail_memory(err);
}

/* Means over the replicates of each configuration. */
static enum wg_code make_configurations(struct builder *builder, struct wg_error *err)
{
    struct wg_tuning_grid *grid = builder->grid;
    const size_t knobs = builder->request->axis_count, limits = builder->request->limit_count;
    const size_t figures = limits > 0 ? builder->count * limits : 1;
    builder->level_of =
        wg__arena_alloc(&grid->arena, builder->count * knobs, sizeof *builder->level_of);
    grid->costs = wg__arena_alloc(&grid->arena, builder->count, sizeof *grid->costs);
    grid->figures = wg__arena_alloc(&grid->arena, figures, sizeof *grid->figures);
    if (builder->level_of == NULL || grid->costs == NULL || grid->figures == NULL)
        return fail_memory(err);
    size_t from = 0;
    for (size_t c = 0; c < builder->count; c++) {
        size_t end = from;
        while (end < builder->rows.count &&
               is_same_configuration(&builder->keys[end], &builder->keys[from])) {
            const double *row = builder->rows.items[builder->keys[end].row].figures;
            grid->costs[c] += row[0];
            for (size_t i = 0; i < limits; i++)
                grid->figures[c * limits + i] += row[1 + i];
            end++;
        }
        grid->costs[c] /= (double)(end - from);
        for (size_t i = 0; i < limits; i++)
            grid->figures[c * limits + i] /= (double)(end - from);
        memcpy(&builder->level_of[c * knobs], builder->keys[from].levels,
               knobs * sizeof *builder->level_of);
        from = end;
    }
    return WG_OK;
}

static enum wg_code check_default(const struct builder *builder, struct wg_error *err)
{
    const size_t knobs = builder->request->axis_count;
    for (size_t c = 0; c < builder->count; c++) {
        size_t same = 0;
        while (same < knobs &&
               builder->level_of[c * knobs + same] == builder->knobs[same].default_level)
            same++;
        if (same == knobs)
            return WG_OK;
    }
    char text[TEXT_BYTES] = "";
    size_t length = 0;
    for (size_t k = 0; k < knobs && length < sizeof text; k++) {
        const struct wg_tuning_knob *knob = &builder->knobs[k];
        const size_t level = knob->default_level;
        if (knob->labels != NULL)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%.24s=%.24s",
                                       k == 0 ? "" : ",", knob->name, knob->labels[level]);
        else
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%.24s=%.10g",
                                       k == 0 ? "" : ",", knob->name, knob->levels[level]);
    }
    return wg__fail(err, WG_EINVAL,
                    "--default: no row has %s; expected a configuration that was measured", text);
}

/* -- Goal ------------------------------------------------------------------------------------ */

static double best_figure(const struct wg_tuning_grid *grid, size_t limit_count, size_t limit,
                          size_t count, bool is_minimum)
{
    double best = grid->figures[limit];
    for (size_t c = 1; c < count; c++) {
        const double figure = grid->figures[c * limit_count + limit];
        if (is_minimum ? figure > best : figure < best)
            best = figure;
    }
    return best;
}

static enum wg_code make_goal(struct builder *builder, struct wg_error *err)
{
    const struct wg_tuning_grid_request *request = builder->request;
    struct wg_tuning_grid *grid = builder->grid;
    grid->goal.objective = request->objective_kind;
    grid->goal.limit_count = request->limit_count;
    grid->rows = builder->rows.count;
    grid->source = wg__arena_strdup(&grid->arena, request->path);
    grid->objective = wg__arena_strdup(&grid->arena, request->objective);
    if (grid->source == NULL || grid->objective == NULL)
        return fail_memory(err);
    for (size_t i = 0; i < request->limit_count; i++) {
        const struct wg_tuning_bound *bound = &request->limits[i];
        const char *name = wg__arena_strdup(&grid->arena, bound->expression);
        if (name == NULL)
            return fail_memory(err);
        const double unit = bound->is_relative ? best_figure(grid, request->limit_count, i,
                                                             builder->count, bound->is_minimum)
                                               : 1;
        grid->goal.limits[i] = (struct wg_tuning_limit){.name = name,
                                                        .kind = bound->kind,
                                                        .bound = bound->value * unit,
                                                        .is_minimum = bound->is_minimum};
    }
    return WG_OK;
}

static enum wg_code build(struct builder *builder, struct wg_error *err)
{
    const struct wg_tuning_grid_request *request = builder->request;
    enum wg_code code = wg__tuning_rows_read(&builder->rows, request, err);
    for (size_t k = 0; k < request->axis_count && code == WG_OK; k++)
        code = make_knob(builder, k, err);
    for (size_t i = 0; i < request->default_count && code == WG_OK; i++)
        code = set_default(builder, &request->defaults[i], err);
    if (code == WG_OK)
        code = make_keys(builder, err);
    if (code == WG_OK)
        code = find_differing(builder, err);
    if (code == WG_OK)
        code = make_configurations(builder, err);
    if (code == WG_OK)
        code = check_default(builder, err);
    if (code == WG_OK)
        code = make_goal(builder, err);
    if (code == WG_OK)
        code = wg__tuning_space_list(&builder->grid->space, builder->knobs, request->axis_count,
                                     builder->level_of, builder->count, err);
    return code;
}

static enum wg_code check_request(const struct wg_tuning_grid_request *request,
                                  struct wg_error *err)
{
    if (request->axis_count == 0 || request->axis_count > WG_TUNING_KNOBS_MAX)
        return wg__fail(err, WG_EINVAL, "--knob: %zu knobs, expected 1 to %d", request->axis_count,
                        WG_TUNING_KNOBS_MAX);
    for (size_t i = 0; i < request->axis_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(request->axes[i].column, request->axes[j].column) == 0)
                return wg__fail(err, WG_EINVAL, "--knob: '%s' is given twice",
                                request->axes[i].column);
    for (size_t i = 0; i < request->limit_count; i++)
        if (!(isfinite(request->limits[i].value) && request->limits[i].value > 0))
            return wg__fail(err, WG_EINVAL, "--limit '%s': the bound is %g, expected above 0",
                            request->limits[i].expression, request->limits[i].value);
    return WG_OK;
}

enum wg_code wg__tuning_grid_open(struct wg_tuning_grid **out,
                                  const struct wg_tuning_grid_request *request,
                                  struct wg_error *err)
{
    enum wg_code code = check_request(request, err);
    if (code != WG_OK)
        return code;
    struct builder *builder = wg__alloc_zeroed(1, sizeof *builder);
    struct wg_tuning_grid *grid = wg__alloc_zeroed(1, sizeof *grid);
    if (builder == NULL || grid == NULL) {
        code = fail_memory(err);
        goto out;
    }
    wg__arena_init(&grid->arena);
    builder->request = request;
    builder->grid = grid;
    code = build(builder, err);
    wg__free(builder->keys);
    wg__tuning_rows_fini(&builder->rows);
out:
    wg__free(builder);
    if (code != WG_OK)
        wg__tuning_grid_close(grid);
    else
        *out = grid;
    return code;
}

void wg__tuning_grid_close(struct wg_tuning_grid *grid)
{
    if (grid == NULL)
        return;
    wg__tuning_space_free(grid->space);
    wg__arena_fini(&grid->arena);
    wg__free(grid);
}

/* -- What is to be found --------------------------------------------------------------------- */

static bool meets(const struct wg_tuning_limit *limit, double figure)
{
    return limit->is_minimum ? figure >= limit->bound : figure <= limit->bound;
}

/* Why nothing is feasible: the limit that no configuration meets, or that they exclude each other.
 */
static enum wg_code fail_infeasible(const struct wg_tuning_grid *grid, const bool *out_of_reach,
                                    struct wg_error *err)
{
    for (size_t i = 0; i < grid->goal.limit_count; i++) {
        const struct wg_tuning_limit *limit = &grid->goal.limits[i];
        double best = limit->is_minimum ? 0 : HUGE_VAL;
        for (size_t c = 0; c < grid->space->count; c++) {
            const double figure = wg__tuning_grid_figure(grid, c, i);
            if (out_of_reach == NULL || !out_of_reach[c])
                best = limit->is_minimum ? fmax(best, figure) : fmin(best, figure);
        }
        if (!meets(limit, best))
            return wg__fail(err, WG_EINVAL,
                            "--limit '%s': no configuration of %s has %s %.6g, the best has %.6g",
                            limit->name, grid->source, limit->is_minimum ? "at least" : "at most",
                            limit->bound, best);
    }
    return wg__fail(err, WG_EINVAL,
                    "--limit: each limit is met by some configuration of %s, but none meets all "
                    "%zu of them",
                    grid->source, grid->goal.limit_count);
}

enum wg_code wg__tuning_grid_judge(const struct wg_tuning_grid *grid, const bool *out_of_reach,
                                   struct wg_arena *arena, struct wg_tuning_target *out,
                                   struct wg_error *err)
{
    const size_t count = grid->space->count;
    struct wg_tuning_target target = {.optimum = count, .least = HUGE_VAL};
    target.is_feasible = wg__arena_alloc(arena, count, sizeof *target.is_feasible);
    target.is_near = wg__arena_alloc(arena, count, sizeof *target.is_near);
    if (target.is_feasible == NULL || target.is_near == NULL)
        return fail_memory(err);
    for (size_t c = 0; c < count; c++) {
        if (out_of_reach != NULL && out_of_reach[c])
            continue;
        target.available++;
        size_t met = 0;
        while (met < grid->goal.limit_count &&
               meets(&grid->goal.limits[met], wg__tuning_grid_figure(grid, c, met)))
            met++;
        if (met < grid->goal.limit_count)
            continue;
        target.is_feasible[c] = true;
        target.feasible++;
        if (grid->costs[c] < target.least) {
            target.least = grid->costs[c];
            target.optimum = c;
        }
    }
    if (target.feasible == 0)
        return fail_infeasible(grid, out_of_reach, err);
    for (size_t c = 0; c < count; c++) {
        target.is_near[c] =
            target.is_feasible[c] && grid->costs[c] <= (1 + near_share) * target.least;
        target.near_optimal += target.is_near[c];
    }
    *out = target;
    return WG_OK;
}
