/* SPDX-License-Identifier: MIT
 *
 * A staircase as a page: time, throughput and filled waves over the size; see wave_sweep.h.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "cli/page.h"
#include "cli/plot.h"
#include "cli/wave_sweep.h"

enum { WIDE = 1080, COLUMNS = 6 };

struct columns {
    double *value, *time_us, *low_us, *high_us, *tflops, *filled;
};

static void fill(const struct wg_wave_sweep *sweep, const struct columns *to)
{
    for (size_t i = 0; i < sweep->count; i++) {
        const struct wg_prediction *at = &sweep->points[i].prediction;
        to->value[i] = (double)sweep->points[i].value;
        to->time_us[i] = 1e6 * at->time_s;
        to->low_us[i] = 1e6 * at->low_s;
        to->high_us[i] = 1e6 * at->high_s;
        to->tflops[i] = sweep->flops[i] / at->time_s / 1e12;
        to->filled[i] = 100 * at->tile_efficiency * at->wave_efficiency;
    }
}

static void draw_time(const struct wg_wave_sweep *sweep, const struct columns *of,
                      const struct wg_plot *frame, struct wg_page *page)
{
    const struct wg_plot_series series[] = {{.label = "90 % range",
                                             .mark = WG_PLOT_BAND,
                                             .color = WG_PLOT_SKY,
                                             .x = of->value,
                                             .y = of->high_us,
                                             .y_low = of->low_us,
                                             .count = sweep->count},
                                            {.label = "predicted",
                                             .mark = WG_PLOT_LINE,
                                             .color = WG_PLOT_BLUE,
                                             .x = of->value,
                                             .y = of->time_us,
                                             .count = sweep->count}};
    struct wg_plot plot = *frame;
    plot.title = "Time";
    plot.y = (struct wg_plot_axis){.title = "Time (us)", .from_zero = true};
    plot.series = series;
    plot.series_count = sizeof series / sizeof series[0];
    wg__page_figure(page, &plot, "Flat where the last wave still has room, then a step.");
}

static void draw_line(const struct wg_wave_sweep *sweep, const double *x, const double *y,
                      const struct wg_plot *frame, const char *title, const char *axis,
                      const char *caption, struct wg_page *page)
{
    const struct wg_plot_series series = {.label = title,
                                          .mark = WG_PLOT_LINE,
                                          .color = WG_PLOT_GREEN,
                                          .x = x,
                                          .y = y,
                                          .count = sweep->count};
    struct wg_plot plot = *frame;
    plot.title = title;
    plot.y = (struct wg_plot_axis){.title = axis, .from_zero = true};
    plot.series = &series;
    plot.series_count = 1;
    wg__page_figure(page, &plot, caption);
}

static void write_facts(const struct wg_wave_sweep *sweep, struct wg_page *page)
{
    const struct wg_stair *stair = &sweep->stair;
    char now[32], above[32], below[32], larger[32], now_note[48], below_note[48], larger_note[48];
    (void)snprintf(now, sizeof now, "%.1f us", 1e6 * stair->time_s);
    (void)snprintf(now_note, sizeof now_note, "at %" PRIu64, stair->value);
    (void)snprintf(above, sizeof above, "%" PRIu64, stair->above);
    (void)snprintf(below, sizeof below, "%" PRIu64, stair->below);
    (void)snprintf(below_note, sizeof below_note, "saves %.1f us",
                   1e6 * (stair->time_s - stair->below_s));
    (void)snprintf(larger, sizeof larger, "%" PRIu64, stair->faster);
    (void)snprintf(larger_note, sizeof larger_note, "%.1f us", 1e6 * stair->faster_s);
    struct wg_page_fact facts[4] = {{now, "now", now_note}, {above, "free up to", NULL}};
    size_t count = 2;
    if (stair->below < stair->value)
        facts[count++] = (struct wg_page_fact){below, "the step below ends", below_note};
    if (stair->faster > 0)
        facts[count++] = (struct wg_page_fact){larger, "larger, yet faster", larger_note};
    wg__page_facts(page, facts, count);
}

static void write_page(const struct wg_wave_sweep *sweep, const struct columns *of,
                       struct wg_buffer *out)
{
    char title[256], subtitle[256];
    struct wg_page page;
    const char *axis = wg__sweep_axis_name(sweep->axis);
    const struct wg_plot_reference present = {.label = "now",
                                              .value = (double)sweep->present,
                                              .is_vertical = true,
                                              .color = WG_PLOT_VERMILION};
    const struct wg_plot frame = {.x = {.title = axis, .is_whole = true},
                                  .references = &present,
                                  .reference_count = 1,
                                  .width = WIDE};
    (void)snprintf(title, sizeof title, "Staircase of %s", sweep->layer->name);
    (void)snprintf(subtitle, sizeof subtitle, "%s%s%s on %s, %s",
                   sweep->model != NULL ? sweep->model : "", sweep->model != NULL ? ", " : "",
                   sweep->layer->op, sweep->gpu->id, wg__dtype_name(sweep->dtype));
    wg__page_begin(&page, out, title, subtitle);
    write_facts(sweep, &page);
    wg__page_figures_begin(&page);
    draw_time(sweep, of, &frame, &page);
    draw_line(sweep, of->value, of->tflops, &frame, "Throughput", "TFLOP/s",
              "A saw-tooth: best at the right end of each step.", &page);
    draw_line(sweep, of->value, of->filled, &frame, "Work asked for over work done", "share (%)",
              "Whole tiles times whole waves.", &page);
    wg__page_figures_end(&page);
    wg__page_paragraph(&page,
                       "Predictions are of the kernel model (%s at the present size); the "
                       "band holds the true time with 90 %%.",
                       wg__origin_name(sweep->points[sweep->now].prediction.origin));
    wg__page_end(&page, sweep->command);
}

void wg__wave_sweep_page(const struct wg_wave_sweep *sweep, struct wg_buffer *out)
{
    double *numbers = wg__alloc_zeroed(sweep->count, COLUMNS * sizeof *numbers);
    if (numbers == NULL) {
        out->failed = true;
        return;
    }
    const struct columns columns = {.value = numbers,
                                    .time_us = numbers + sweep->count,
                                    .low_us = numbers + 2 * sweep->count,
                                    .high_us = numbers + 3 * sweep->count,
                                    .tflops = numbers + 4 * sweep->count,
                                    .filled = numbers + 5 * sweep->count};
    fill(sweep, &columns);
    write_page(sweep, &columns, out);
    wg__free(numbers);
}
