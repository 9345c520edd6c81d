/* SPDX-License-Identifier: MIT
 *
 * Making the charts of the training report: see training_figures.h.
 *
 * Curves are drawn at POINTS_MAX recurrences at most, so the size of a report does not depend on
 * how long the study was.
 */
#include "cli/training_figures.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "cli/heat_map.h"
#include "cli/page.h"
#include "cli/plot.h"
#include "cli/training_results.h"
#include "simulate/study.h"

static const size_t IS_DEFAULT = SIZE_MAX; /* in place of a policy's index */

enum {
    POINTS_MAX = 160,
    SERIES_MAX = 3 * WG_STUDY_POLICIES_MAX,
    CAPTION_BYTES = 512,
    ROWS_OF_ALL_MAX = 16
};

bool wg__policy_decides(const char *policy)
{
    return strcmp(policy, "default") != 0 && strcmp(policy, "oracle") != 0;
}

const struct wg_study_case *wg__study_case_at(const struct wg_study *study, size_t world,
                                              size_t policy)
{
    return &study->cases[world * study->summary_count + policy];
}

static enum wg_plot_color color_of(const char *policy)
{
    static const struct {
        const char *policy;
        enum wg_plot_color color;
    } colors[] = {
        {"wattgov", WG_PLOT_BLUE},      {"zeus", WG_PLOT_ORANGE},  {"grid", WG_PLOT_PURPLE},
        {"default", WG_PLOT_VERMILION}, {"oracle", WG_PLOT_GREEN},
    };
    for (size_t i = 0; i < sizeof colors / sizeof colors[0]; i++)
        if (strcmp(colors[i].policy, policy) == 0)
            return colors[i].color;
    return WG_PLOT_SKY;
}

/* What one chart is made of. Failures of memory end in the page's buffer, like all others. */
struct sketch {
    struct wg_page *page;
    const struct wg_study *study;
    struct wg_arena *scratch;
    size_t count; /* points of a curve */
    double *x;    /* recurrences passed */
    size_t series_count;
    struct wg_plot_series series[SERIES_MAX];
};

/* Numbers that live as long as the scratch; NULL when memory has run out, which the page knows. */
static double *make_numbers(struct sketch *sketch, size_t count)
{
    double *numbers = wg__arena_alloc(sketch->scratch, count, sizeof *numbers);
    if (numbers == NULL)
        sketch->page->out->failed = true;
    return numbers;
}

static void add_series(struct sketch *sketch, struct wg_plot_series series)
{
    if (series.y != NULL && sketch->series_count < SERIES_MAX)
        sketch->series[sketch->series_count++] = series;
}

/* The recurrence that point `i` of a curve shows. */
static size_t recurrence_of(const struct sketch *sketch, size_t i)
{
    return (i + 1) * sketch->study->recurrences / sketch->count - 1;
}

static bool begin_sketch(struct sketch *sketch, struct wg_page *page, const struct wg_study *study,
                         struct wg_arena *scratch)
{
    *sketch = (struct sketch){.page = page, .study = study, .scratch = scratch};
    sketch->count = study->recurrences < POINTS_MAX ? study->recurrences : POINTS_MAX;
    sketch->x = make_numbers(sketch, sketch->count);
    for (size_t i = 0; sketch->x != NULL && i < sketch->count; i++)
        sketch->x[i] = (double)(recurrence_of(sketch, i) + 1);
    return sketch->x != NULL;
}

/* A curve of a cumulative cost, in units of `size`. */
static const double *pick(struct sketch *sketch, const double *cumulative_j, double size)
{
    double *y = make_numbers(sketch, sketch->count);
    for (size_t i = 0; y != NULL && i < sketch->count; i++)
        y[i] = cumulative_j[recurrence_of(sketch, i)] / size;
    return y;
}

/* Per cent above the oracle's expected cost. */
static double excess_at(const double *cumulative_j, const struct wg_study_world *world, size_t r)
{
    return 100 * (cumulative_j[r] / world->cumulative_oracle_j[r] - 1);
}

/* The mean over the worlds `first` .. `end` - 1 of a policy's excess; IS_DEFAULT: the default's, as
 * expected. */
static const double *make_excess(struct sketch *sketch, size_t first, size_t end, size_t policy)
{
    const struct wg_study *study = sketch->study;
    double *y = make_numbers(sketch, sketch->count);
    for (size_t i = 0; y != NULL && i < sketch->count; i++) {
        const size_t r = recurrence_of(sketch, i);
        for (size_t w = first; w < end; w++) {
            const struct wg_study_world *world = &study->worlds[w];
            const double *curve = policy == IS_DEFAULT
                                      ? world->cumulative_default_j
                                      : wg__study_case_at(study, w, policy)->cumulative_cost_j;
            y[i] += excess_at(curve, world, r) / (double)(end - first);
        }
    }
    return y;
}

/* The least that a policy pays which must try the default first: the default once, then the oracle.
 */
static const double *make_floor(struct sketch *sketch, size_t first, size_t end)
{
    double *y = make_numbers(sketch, sketch->count);
    for (size_t i = 0; y != NULL && i < sketch->count; i++) {
        const size_t r = recurrence_of(sketch, i);
        for (size_t w = first; w < end; w++) {
            const struct wg_study_world *world = &sketch->study->worlds[w];
            const double more_j = world->cumulative_default_j[0] - world->cumulative_oracle_j[0];
            y[i] += 100 * more_j / world->cumulative_oracle_j[r] / (double)(end - first);
        }
    }
    return y;
}

static void add_excess_series(struct sketch *sketch, size_t first, size_t end, bool with_floor)
{
    const struct wg_study *study = sketch->study;
    add_series(sketch, (struct wg_plot_series){.label = "default",
                                               .mark = WG_PLOT_DASHED,
                                               .color = color_of("default"),
                                               .x = sketch->x,
                                               .y = make_excess(sketch, first, end, IS_DEFAULT),
                                               .count = sketch->count});
    if (with_floor)
        add_series(sketch, (struct wg_plot_series){.label = "floor",
                                                   .mark = WG_PLOT_DASHED,
                                                   .color = WG_PLOT_GREY,
                                                   .x = sketch->x,
                                                   .y = make_floor(sketch, first, end),
                                                   .count = sketch->count});
    for (size_t s = 0; s < study->summary_count; s++) {
        const char *policy = study->summaries[s].policy;
        if (wg__policy_decides(policy))
            add_series(sketch, (struct wg_plot_series){.label = policy,
                                                       .mark = WG_PLOT_LINE,
                                                       .color = color_of(policy),
                                                       .x = sketch->x,
                                                       .y = make_excess(sketch, first, end, s),
                                                       .count = sketch->count});
    }
}

static struct wg_plot excess_plot(const struct sketch *sketch, const char *title)
{
    return (struct wg_plot){
        .title = title,
        .x = {.title = "recurrences", .is_whole = true},
        .y = {.title = "cost above the oracle", .unit = "%", .scale = WG_PLOT_LOG},
        .series = sketch->series,
        .series_count = sketch->series_count,
    };
}

__attribute__((format(printf, 2, 3))) static void append_caption(char caption[static CAPTION_BYTES],
                                                                 const char *format, ...)
{
    const size_t length = strlen(caption);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(caption + length, CAPTION_BYTES - length, format, arguments);
    va_end(arguments);
}

void wg__figure_mean_excess(struct wg_page *page, const struct wg_study *study, bool with_floor,
                            struct wg_arena *scratch)
{
    char caption[CAPTION_BYTES] =
        "Cumulative cost up to each recurrence, relative to the oracle's; logarithmic.";
    struct sketch sketch;
    if (!begin_sketch(&sketch, page, study, scratch))
        return;
    add_excess_series(&sketch, 0, study->world_count, with_floor);
    if (with_floor)
        append_caption(caption, " Floor: the default once, then the oracle for ever.");
    struct wg_plot plot =
        excess_plot(&sketch, study->world_count == 1 ? "Cost above the oracle"
                                                     : "Cost above the oracle, mean of all cases");
    plot.width = 760;
    plot.height = 340;
    wg__page_figures_begin(page);
    wg__page_figure(page, &plot, caption);
    wg__page_figures_end(page);
}

void wg__figures_excess(struct wg_page *page, const struct wg_study *study, const char *gpu,
                        struct wg_arena *scratch)
{
    bool has_begun = false;
    for (size_t w = 0; w < study->world_count; w++) {
        struct sketch sketch;
        if (strcmp(study->worlds[w].gpu, gpu) != 0 || !begin_sketch(&sketch, page, study, scratch))
            continue;
        add_excess_series(&sketch, w, w + 1, false);
        struct wg_plot plot = excess_plot(&sketch, study->worlds[w].job);
        plot.height = 200;
        plot.without_legend = true;
        if (!has_begun) {
            wg__page_legend(page, &plot);
            wg__page_figures_begin(page);
        }
        has_begun = true;
        wg__page_figure(page, &plot, NULL);
    }
    if (has_begun)
        wg__page_figures_end(page);
}

static void draw_cost(struct wg_page *page, const struct wg_study *study, size_t index,
                      struct wg_arena *scratch)
{
    const struct wg_study_world *world = &study->worlds[index];
    struct sketch sketch;
    if (!begin_sketch(&sketch, page, study, scratch))
        return;
    const struct wg_unit unit = wg__unit_of_energy(world->default_total.cost_j);
    for (size_t s = 0; s < study->summary_count; s++) {
        const char *policy = study->summaries[s].policy;
        const struct wg_study_case *of = wg__study_case_at(study, index, s);
        if (!wg__policy_decides(policy))
            continue;
        const double *low = pick(&sketch, of->cumulative_low_j, unit.size);
        struct wg_plot_series series = {.mark = WG_PLOT_BAND,
                                        .color = color_of(policy),
                                        .x = sketch.x,
                                        .y = pick(&sketch, of->cumulative_high_j, unit.size),
                                        .y_low = low,
                                        .count = sketch.count};
        if (study->seeds > 1 && low != NULL)
            add_series(&sketch, series);
        series.label = policy;
        series.mark = WG_PLOT_LINE;
        series.y = pick(&sketch, of->cumulative_cost_j, unit.size);
        series.y_low = NULL;
        add_series(&sketch, series);
    }
    const double *yardsticks[] = {world->cumulative_default_j, world->cumulative_oracle_j};
    static const char *const names[] = {"default", "oracle"};
    for (size_t i = 0; i < 2; i++)
        add_series(&sketch, (struct wg_plot_series){.label = names[i],
                                                    .mark = WG_PLOT_DASHED,
                                                    .color = color_of(names[i]),
                                                    .x = sketch.x,
                                                    .y = pick(&sketch, yardsticks[i], unit.size),
                                                    .count = sketch.count});
    const struct wg_plot plot = {
        .title = "Cumulative cost",
        .x = {.title = "recurrences", .is_whole = true},
        .y = {.title = "cost", .unit = unit.name, .from_zero = true},
        .series = sketch.series,
        .series_count = sketch.series_count,
        .height = 300,
    };
    wg__page_figure(page, &plot, "Mean over the seeds; the bands hold 80 % of them.");
}

/* Points of the plane, in the units of the chart, with their tooltips. */
struct plane {
    size_t count;
    double *time;
    double *energy;
    const char **labels;
};

static bool make_plane(struct sketch *sketch, size_t room, struct plane *out)
{
    *out = (struct plane){.time = make_numbers(sketch, room), .energy = make_numbers(sketch, room)};
    out->labels = wg__arena_alloc(sketch->scratch, room, sizeof *out->labels);
    if (out->labels == NULL)
        sketch->page->out->failed = true;
    return out->time != NULL && out->energy != NULL && out->labels != NULL;
}

static void add_point(struct sketch *sketch, struct plane *plane,
                      const struct wg_study_point *point, struct wg_unit energy_unit,
                      struct wg_unit time_unit, const char *who)
{
    char energy[WG_QUANTITY_BYTES], time[WG_QUANTITY_BYTES], text[160];
    wg__format_in(energy, point->energy_j, energy_unit);
    wg__format_in(time, point->time_s, time_unit);
    (void)snprintf(text, sizeof text, "%s%sbatch %.10g, %g W\n%s, %s", who,
                   *who != '\0' ? ": " : "", point->batch_size, point->power_limit_w, energy, time);
    const char *label = wg__arena_strdup(sketch->scratch, text);
    if (label == NULL) {
        sketch->page->out->failed = true;
        return;
    }
    plane->time[plane->count] = point->time_s / time_unit.size;
    plane->energy[plane->count] = point->energy_j / energy_unit.size;
    plane->labels[plane->count++] = label;
}

static const struct wg_study_point *find_point(const struct wg_study_world *world,
                                               double batch_size, double limit_w)
{
    for (size_t i = 0; i < world->point_count; i++)
        if (world->points[i].batch_size == batch_size && world->points[i].power_limit_w == limit_w)
            return &world->points[i];
    return NULL;
}

/* Orders the front by time: its line must not go back and forth. Few points: insertion. */
static void sort_plane(struct plane *plane)
{
    for (size_t i = 1; i < plane->count; i++) {
        const double time = plane->time[i], energy = plane->energy[i];
        const char *label = plane->labels[i];
        size_t at = i;
        for (; at > 0 && plane->time[at - 1] > time; at--) {
            plane->time[at] = plane->time[at - 1];
            plane->energy[at] = plane->energy[at - 1];
            plane->labels[at] = plane->labels[at - 1];
        }
        plane->time[at] = time;
        plane->energy[at] = energy;
        plane->labels[at] = label;
    }
}

static void add_plane(struct sketch *sketch, const struct plane *plane, const char *label,
                      enum wg_plot_mark mark, enum wg_plot_color color)
{
    if (plane->count > 0)
        add_series(sketch, (struct wg_plot_series){.label = label,
                                                   .mark = mark,
                                                   .color = color,
                                                   .x = plane->time,
                                                   .y = plane->energy,
                                                   .count = plane->count,
                                                   .point_labels = plane->labels});
}

/* One marked setting: where a policy ends, or a yardstick. */
static void add_mark(struct sketch *sketch, const struct wg_study_world *world, double batch_size,
                     double limit_w, const char *who)
{
    const struct wg_unit energy_unit = wg__unit_of_energy(world->default_bill.energy_j);
    const struct wg_unit time_unit = wg__unit_of_time(world->default_bill.time_s);
    const struct wg_study_point *point = find_point(world, batch_size, limit_w);
    struct plane plane;
    if (point == NULL || !make_plane(sketch, 1, &plane))
        return;
    add_point(sketch, &plane, point, energy_unit, time_unit, who);
    add_plane(sketch, &plane, who, WG_PLOT_POINTS, color_of(who));
}

static void draw_front(struct wg_page *page, const struct wg_study *study, size_t index,
                       struct wg_arena *scratch)
{
    const struct wg_study_world *world = &study->worlds[index];
    const struct wg_unit energy_unit = wg__unit_of_energy(world->default_bill.energy_j);
    const struct wg_unit time_unit = wg__unit_of_time(world->default_bill.time_s);
    struct sketch sketch;
    struct plane all, front;
    if (!begin_sketch(&sketch, page, study, scratch) ||
        !make_plane(&sketch, world->point_count, &all) ||
        !make_plane(&sketch, world->point_count, &front))
        return;
    for (size_t i = 0; i < world->point_count; i++)
        add_point(&sketch, world->points[i].is_on_front ? &front : &all, &world->points[i],
                  energy_unit, time_unit, "");
    sort_plane(&front);
    add_plane(&sketch, &all, "all settings", WG_PLOT_POINTS, WG_PLOT_GREY);
    add_plane(&sketch, &front, "front", WG_PLOT_LINE, WG_PLOT_INK);
    const double top_w = world->limit_w[world->limit_count - 1];
    char caption[CAPTION_BYTES] = "";
    append_caption(caption, "Default: batch %.10g, %g W%s; oracle: %.10g, %g W",
                   world->default_batch_size, top_w,
                   wg__default_reaches(world) ? "" : " (never reaches the target)",
                   world->oracle_batch_size, world->oracle_limit_w);
    add_mark(&sketch, world, world->default_batch_size, top_w, "default");
    add_mark(&sketch, world, world->oracle_batch_size, world->oracle_limit_w, "oracle");
    for (size_t s = 0; s < study->summary_count; s++) {
        const char *policy = study->summaries[s].policy;
        const struct wg_study_case *of = wg__study_case_at(study, index, s);
        if (!wg__policy_decides(policy))
            continue;
        add_mark(&sketch, world, of->final_batch_size, of->final_limit_w, policy);
        append_caption(caption, "; %s ends at %.10g, %g W", policy, of->final_batch_size,
                       of->final_limit_w);
    }
    append_caption(caption, ".");
    const struct wg_plot plot = {
        .title = "Energy and time of a recurrence",
        .x = {.title = "time", .unit = time_unit.name, .scale = WG_PLOT_LOG},
        .y = {.title = "energy", .unit = energy_unit.name, .scale = WG_PLOT_LOG},
        .series = sketch.series,
        .series_count = sketch.series_count,
        .height = 300,
    };
    wg__page_figure(page, &plot, caption);
}

/* Whether a batch size belongs into the maps: all do, if they are not too many; else those that
 * some policy chose, and the yardsticks'. */
static bool is_shown(const struct wg_study *study, size_t index, size_t arm)
{
    const struct wg_study_world *world = &study->worlds[index];
    if (world->arm_count <= ROWS_OF_ALL_MAX)
        return true;
    if (world->batch_size[arm] == world->default_batch_size ||
        world->batch_size[arm] == world->oracle_batch_size)
        return true;
    for (size_t i = 0; i < study->case_count; i++) {
        const struct wg_study_case *of = &study->cases[i];
        if (of->world != index || !wg__policy_decides(of->policy))
            continue;
        for (size_t bin = 0; bin < study->bin_count; bin++)
            if (of->choices[bin * world->arm_count + arm] > 0)
                return true;
    }
    return false;
}

static size_t make_rows(struct sketch *sketch, size_t index,
                        struct wg_heat_row rows[static WG_ARMS_MAX])
{
    const struct wg_study_world *world = &sketch->study->worlds[index];
    size_t count = 0;
    for (size_t arm = world->arm_count; arm-- > 0;) {
        if (!is_shown(sketch->study, index, arm))
            continue;
        char text[32];
        const double batch_size = world->batch_size[arm];
        (void)snprintf(text, sizeof text, "%.10g", batch_size);
        const bool is_default = batch_size == world->default_batch_size;
        const bool is_oracle = batch_size == world->oracle_batch_size;
        rows[count] = (struct wg_heat_row){
            .label = wg__arena_strdup(sketch->scratch, text),
            .note = is_default && is_oracle ? "both"
                    : is_default            ? "default"
                    : is_oracle             ? "oracle"
                                            : NULL,
            .column = arm,
        };
        if (rows[count++].label == NULL) {
            sketch->page->out->failed = true;
            return 0;
        }
    }
    return count;
}

/* The maps of all policies, one below the other, so that they can be compared row by row. */
static void draw_choices(struct wg_page *page, const struct wg_study *study, size_t index,
                         struct wg_arena *scratch)
{
    struct wg_heat_row rows[WG_ARMS_MAX];
    struct sketch sketch;
    if (!begin_sketch(&sketch, page, study, scratch))
        return;
    const size_t row_count = make_rows(&sketch, index, rows);
    if (row_count == 0)
        return;
    bool is_first = true;
    wg__buffer_puts(page->out, "<figure>\n");
    for (size_t s = 0; s < study->summary_count; s++) {
        const char *policy = study->summaries[s].policy;
        if (!wg__policy_decides(policy))
            continue;
        char title[64];
        (void)snprintf(title, sizeof title, "Batch sizes that %s chose", policy);
        const struct wg_heat_map map = {
            .title = title,
            .x_title = "recurrences",
            .y_title = "batch size",
            .color = color_of(policy),
            .x_last = (double)study->recurrences,
            .rows = rows,
            .row_count = row_count,
            .shares = wg__study_case_at(study, index, s)->choices,
            .bin_count = study->bin_count,
            .stride = study->worlds[index].arm_count,
        };
        wg__buffer_puts(page->out, is_first ? "" : "<div style=\"height:14px\"></div>\n");
        is_first = false;
        wg__heat_map_write(&map, page->out);
    }
    wg__buffer_printf(page->out,
                      "<figcaption>The batch size with which each recurrence reached the target: "
                      "the darker, the more of the seeds. Attempts that failed or were stopped are "
                      "not counted.%s</figcaption>\n</figure>\n",
                      row_count < study->worlds[index].arm_count
                          ? " Batch sizes that never got there are left out."
                          : "");
}

void wg__figures_world(struct wg_page *page, const struct wg_study *study, size_t world,
                       struct wg_arena *scratch)
{
    wg__page_figures_begin(page);
    draw_cost(page, study, world, scratch);
    draw_front(page, study, world, scratch);
    draw_choices(page, study, world, scratch);
    wg__page_figures_end(page);
}
