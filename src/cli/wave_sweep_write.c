/* SPDX-License-Identifier: MIT
 *
 * A staircase as text, CSV and JSON: see wave_sweep.h.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/csv_write.h"
#include "base/json.h"
#include "cli/table.h"
#include "cli/wave_sweep.h"

enum { STEPS_SHOWN = 16 };
static const double step_rise = 0.08;

static bool is_step(const struct wg_wave_sweep *sweep, size_t index)
{
    return wg__sweep_is_step(sweep->points, sweep->count, index, step_rise);
}

/* -- CSV ----------------------------------------------------------------------------------------
 */

static void put_number(struct wg_buffer *out, double value)
{
    if (isfinite(value)) /* else the field is empty */
        wg__csv_put_double(out, value);
    wg__buffer_puts(out, ",");
}

void wg__wave_sweep_csv(const struct wg_wave_sweep *sweep, struct wg_buffer *out)
{
    wg__buffer_puts(out, wg__sweep_axis_name(sweep->axis));
    wg__buffer_puts(out, ",time_s,low_s,high_s,flops_per_s,waves,tile_efficiency,wave_efficiency,"
                         "tail_s,blocks,tile_m,tile_n,tile_k,split_k,bound,origin,is_step\n");
    for (size_t i = 0; i < sweep->count; i++) {
        const struct wg_prediction *at = &sweep->points[i].prediction;
        wg__buffer_printf(out, "%" PRIu64 ",", sweep->points[i].value);
        put_number(out, at->time_s);
        put_number(out, at->low_s);
        put_number(out, at->high_s);
        put_number(out, sweep->flops[i] / at->time_s);
        put_number(out, at->waves);
        put_number(out, at->tile_efficiency);
        put_number(out, at->wave_efficiency);
        put_number(out, at->tail_s);
        wg__buffer_printf(out, "%" PRIu64 ",%u,%u,%u,%u,%s,%s,%d\n", at->blocks, at->kernel.tile_m,
                          at->kernel.tile_n, at->kernel.tile_k, at->kernel.split_k,
                          wg__bound_name(at->bound), wg__origin_name(at->origin),
                          is_step(sweep, i));
    }
}

/* -- JSON ---------------------------------------------------------------------------------------
 */

static void write_stair(const struct wg_wave_sweep *sweep, struct wg_json *json)
{
    const struct wg_stair *stair = &sweep->stair;
    wg__json_key(json, "stair");
    wg__json_object(json);
    wg__json_member_uint(json, "value", stair->value);
    wg__json_member_double(json, "time_s", stair->time_s);
    wg__json_member_uint(json, "free_to", stair->above);
    wg__json_member_double(json, "free_to_time_s", stair->above_s);
    wg__json_key(json, "below");
    if (stair->below < stair->value)
        wg__json_uint(json, stair->below);
    else
        wg__json_null(json);
    wg__json_member_double(json, "below_time_s",
                           stair->below < stair->value ? stair->below_s : (double)NAN);
    wg__json_member_double(json, "saved_s_per_removed", stair->saved_s_per_channel);
    wg__json_key(json, "faster");
    if (stair->faster > 0)
        wg__json_uint(json, stair->faster);
    else
        wg__json_null(json);
    wg__json_member_double(json, "faster_time_s",
                           stair->faster > 0 ? stair->faster_s : (double)NAN);
    wg__json_close(json);
}

static void write_point(const struct wg_wave_sweep *sweep, size_t index, struct wg_json *json)
{
    const struct wg_prediction *at = &sweep->points[index].prediction;
    wg__json_object(json);
    wg__json_member_uint(json, "value", sweep->points[index].value);
    wg__json_member_double(json, "time_s", at->time_s);
    wg__json_member_double(json, "low_s", at->low_s);
    wg__json_member_double(json, "high_s", at->high_s);
    wg__json_member_double(json, "flops_per_s", sweep->flops[index] / at->time_s);
    wg__json_member_double(json, "waves", at->waves);
    wg__json_member_double(json, "tile_efficiency", at->tile_efficiency);
    wg__json_member_double(json, "wave_efficiency", at->wave_efficiency);
    wg__json_member_double(json, "tail_s", at->tail_s);
    wg__json_member_uint(json, "blocks", at->blocks);
    wg__json_member_uint(json, "tile_m", at->kernel.tile_m);
    wg__json_member_uint(json, "tile_n", at->kernel.tile_n);
    wg__json_member_uint(json, "split_k", at->kernel.split_k);
    wg__json_member_string(json, "bound", wg__bound_name(at->bound));
    wg__json_member_string(json, "origin", wg__origin_name(at->origin));
    wg__json_member_bool(json, "is_step", is_step(sweep, index));
    wg__json_close(json);
}

void wg__wave_sweep_json(const struct wg_wave_sweep *sweep, struct wg_buffer *out)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.wave.sweep/1");
    wg__json_member_string(&json, "gpu", sweep->gpu->id);
    wg__json_member_string(&json, "model", sweep->model);
    wg__json_member_string(&json, "layer", sweep->layer->name);
    wg__json_member_string(&json, "op", sweep->layer->op);
    wg__json_member_string(&json, "precision", wg__dtype_name(sweep->dtype));
    wg__json_member_string(&json, "axis", wg__sweep_axis_name(sweep->axis));
    write_stair(sweep, &json);
    wg__json_key(&json, "points");
    wg__json_array(&json);
    for (size_t i = 0; i < sweep->count; i++)
        write_point(sweep, i, &json);
    wg__json_close(&json);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}

/* -- Text ---------------------------------------------------------------------------------------
 */

/* How many steps there are, and the first of those to show: around the present size. */
static size_t choose_steps(const struct wg_wave_sweep *sweep, size_t *first_out)
{
    size_t steps = 0, below = 0;
    for (size_t i = 1; i < sweep->count; i++)
        if (is_step(sweep, i)) {
            steps++;
            below += sweep->points[i].value <= sweep->present;
        }
    const size_t half = STEPS_SHOWN / 2;
    size_t first = below > half ? below - half : 0;
    if (first + STEPS_SHOWN > steps)
        first = steps > STEPS_SHOWN ? steps - STEPS_SHOWN : 0;
    *first_out = first;
    return steps;
}

static void write_steps(const struct wg_wave_sweep *sweep, bool color, struct wg_buffer *out)
{
    const struct wg_table_column columns[] = {
        {"up to", WG_ALIGN_RIGHT}, {"time (us)", WG_ALIGN_RIGHT}, {"waves", WG_ALIGN_RIGHT},
        {"then", WG_ALIGN_RIGHT},  {"time (us)", WG_ALIGN_RIGHT}, {"rise", WG_ALIGN_RIGHT}};
    size_t first, seen = 0, shown = 0;
    const size_t steps = choose_steps(sweep, &first);
    struct wg_table table;
    if (steps == 0) {
        wg__buffer_printf(out, "No step of more than %.0f %% in this range.\n", 100 * step_rise);
        return;
    }
    wg__table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 1; i < sweep->count && shown < STEPS_SHOWN; i++) {
        const struct wg_sweep_point *before = &sweep->points[i - 1], *after = &sweep->points[i];
        if (!is_step(sweep, i) || seen++ < first)
            continue;
        shown++;
        wg__table_cell(&table, "%" PRIu64, before->value);
        if (before->value == sweep->present)
            wg__table_emphasize(&table);
        wg__table_cell(&table, "%.1f", 1e6 * before->prediction.time_s);
        wg__table_cell(&table, "%.2f", before->prediction.waves);
        wg__table_cell(&table, "%" PRIu64, after->value);
        wg__table_cell(&table, "%.1f", 1e6 * after->prediction.time_s);
        wg__table_cell(&table, "%+.0f %%",
                       100 * (after->prediction.time_s / before->prediction.time_s - 1));
    }
    wg__buffer_printf(out, "Steps of more than %.0f %%", 100 * step_rise);
    if (shown < steps)
        wg__buffer_printf(out, " (%zu of %zu, around %" PRIu64 ")", shown, steps, sweep->present);
    wg__buffer_puts(out, ":\n");
    wg__table_write(&table, color, out);
    wg__table_fini(&table);
}

void wg__wave_sweep_text(const struct wg_wave_sweep *sweep, bool color, struct wg_buffer *out)
{
    static const char *const units[] = {"filter", "channel", "sample", "line of pixels"};
    static_assert(sizeof units / sizeof units[0] == WG_SWEEP_AXIS_COUNT, "a word each");
    const struct wg_stair *stair = &sweep->stair;
    const char *axis = wg__sweep_axis_name(sweep->axis);
    const struct wg_prediction *now = &sweep->points[sweep->now].prediction;
    wg__buffer_printf(out, "%s%s%s (%s) on %s, %s: %s %" PRIu64 " .. %" PRIu64 "\n\n",
                      sweep->model != NULL ? sweep->model : "", sweep->model != NULL ? ": " : "",
                      sweep->layer->name, sweep->layer->op, sweep->gpu->id,
                      wg__dtype_name(sweep->dtype), axis, sweep->points[0].value,
                      sweep->points[sweep->count - 1].value);
    wg__buffer_printf(out, "now      %8" PRIu64 "  %10.1f us  (%.1f .. %.1f, %s), %.2f waves\n",
                      stair->value, 1e6 * stair->time_s, 1e6 * now->low_s, 1e6 * now->high_s,
                      wg__origin_name(now->origin), now->waves);
    if (stair->above > stair->value)
        wg__buffer_printf(out, "free to  %8" PRIu64 "  %10.1f us\n", stair->above,
                          1e6 * stair->above_s);
    if (stair->below < stair->value)
        wg__buffer_printf(out, "down to  %8" PRIu64 "  %10.1f us  saves %.2f us a %s\n",
                          stair->below, 1e6 * stair->below_s, 1e6 * stair->saved_s_per_channel,
                          units[sweep->axis]);
    if (stair->faster > 0)
        wg__buffer_printf(out, "faster   %8" PRIu64 "  %10.1f us  though larger\n", stair->faster,
                          1e6 * stair->faster_s);
    wg__buffer_puts(out, "\n");
    write_steps(sweep, color, out);
}
