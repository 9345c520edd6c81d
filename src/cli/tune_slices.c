/* SPDX-License-Identifier: MIT
 *
 * Slices of what is believed, on the page of `wattgov tune --html`.
 *
 * A slice goes through the returned configuration along one knob: the objective and each limit's
 * figure as they are believed to be at each level, with a band of one standard deviation, beside
 * what was measured on it. A limit's chart carries its bound, so that one sees where a cheap level
 * is not allowed. Along a knob of words (a precision) the slice is a table.
 */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/page.h"
#include "cli/plot.h"
#include "cli/table.h"
#include "cli/tune_report.h"

enum { SLICE_MAX = WG_TUNING_LEVELS_MAX };

struct slice {
    size_t count, measured;
    double x[SLICE_MAX], middle[SLICE_MAX], low[SLICE_MAX], high[SLICE_MAX];
    double measured_x[SLICE_MAX], measured_y[SLICE_MAX];
};

static double shown(const struct wg_tuning_knob *knob, size_t level)
{
    switch (knob->role) {
    case WG_TUNING_GPU_CLOCK:
    case WG_TUNING_MEM_CLOCK:
    case WG_TUNING_CPU_CLOCK:
        return knob->levels[level] * 1e-6;
    case WG_TUNING_DELAY:
        return knob->levels[level] * 1e3;
    default:
        return knob->levels[level];
    }
}

static const char *unit_of(const struct wg_tuning_knob *knob)
{
    switch (knob->role) {
    case WG_TUNING_GPU_CLOCK:
    case WG_TUNING_MEM_CLOCK:
    case WG_TUNING_CPU_CLOCK:
        return "MHz";
    case WG_TUNING_DELAY:
        return "ms";
    case WG_TUNING_POWER_LIMIT:
        return "W";
    default:
        return NULL;
    }
}

/* Of term `t`: 0 is the objective, then the limits. */
static void add_forecast(const struct wg_tune_report *report, size_t configuration, size_t t,
                         double x, struct slice *out)
{
    struct wg_tuning_forecast forecast;
    if (!wg__tuner_forecast(report->result->tuner, configuration, &forecast))
        return;
    const double middle = t == 0 ? forecast.objective : forecast.figures[t - 1];
    const double told_sd = t == 0 ? forecast.objective_sd : forecast.figure_sds[t - 1];
    const double sd = isfinite(told_sd) ? told_sd : 0;
    if (!isfinite(middle))
        return;
    out->x[out->count] = x;
    out->middle[out->count] = middle;
    out->low[out->count] = middle * exp(-sd);
    out->high[out->count++] = middle * exp(sd);
}

/* Along knob `k` through the returned configuration. */
static void take_slice(const struct wg_tune_report *report, size_t k, size_t t, struct slice *out)
{
    const struct wg_tuning_space *space = report->setup->knobs.space;
    const struct wg_tuning_knob *knob = &space->knobs[k];
    size_t levels[WG_TUNING_KNOBS_MAX];
    out->count = out->measured = 0;
    for (size_t i = 0; i < space->knob_count; i++)
        levels[i] = wg__tuning_level(space, report->result->best.configuration, i);
    for (size_t level = 0; level < knob->count && level < SLICE_MAX; level++) {
        struct wg_tune_standing standing;
        levels[k] = level;
        const size_t configuration = wg__tuning_space_find(space, levels);
        if (configuration == space->count)
            continue;
        wg__tune_standing(report, configuration, &standing);
        if (standing.trials > 0) {
            out->measured_x[out->measured] = shown(knob, level);
            out->measured_y[out->measured++] =
                t == 0 ? standing.objective : standing.figures[t - 1];
        }
        add_forecast(report, configuration, t, shown(knob, level), out);
    }
}

static void write_slice(struct wg_page *page, const struct wg_tune_report *report, size_t k,
                        size_t t, struct slice *slice)
{
    const struct wg_tune_goal *goal = &report->setup->goal;
    const struct wg_tuning_knob *knob = &report->setup->knobs.space->knobs[k];
    const bool is_doubling = knob->role == WG_TUNING_BATCH || knob->role == WG_TUNING_TRAIN_BATCH;
    const char *figure = t == 0 ? goal->objective.label : goal->limits[t - 1].label;
    char title[WG_TUNE_LABEL_SIZE + WG_TUNE_NAME_SIZE + 8];
    take_slice(report, k, t, slice);
    if (slice->count + slice->measured == 0)
        return;
    const struct wg_plot_series series[] = {{.label = "one standard deviation",
                                             .mark = WG_PLOT_BAND,
                                             .color = WG_PLOT_SKY,
                                             .x = slice->x,
                                             .y = slice->high,
                                             .y_low = slice->low,
                                             .count = slice->count},
                                            {.label = "believed",
                                             .mark = WG_PLOT_LINE,
                                             .color = WG_PLOT_BLUE,
                                             .x = slice->x,
                                             .y = slice->middle,
                                             .count = slice->count},
                                            {.label = "measured",
                                             .mark = WG_PLOT_POINTS,
                                             .color = WG_PLOT_VERMILION,
                                             .x = slice->measured_x,
                                             .y = slice->measured_y,
                                             .count = slice->measured}};
    const bool has_bound = t > 0 && isfinite(report->result->bounds[t - 1]);
    const struct wg_plot_reference bound = {
        .label = "limit: allowed where tinted",
        .value = has_bound ? report->result->bounds[t - 1] : 0,
        .color = WG_PLOT_GREEN,
        .shaded = t > 0 && goal->limits[t - 1].is_minimum ? WG_PLOT_ABOVE : WG_PLOT_BELOW};
    (void)snprintf(title, sizeof title, "%s over %s", figure, knob->name);
    const struct wg_plot plot = {.title = title,
                                 .x = {.title = knob->name,
                                       .unit = unit_of(knob),
                                       .scale = is_doubling ? WG_PLOT_LOG2 : WG_PLOT_LINEAR},
                                 .y = {.title = figure},
                                 .series = series,
                                 .series_count = 3,
                                 .references = has_bound ? &bound : NULL,
                                 .reference_count = has_bound ? 1 : 0};
    wg__page_figure(page, &plot, t == 0 ? "What it costs." : "What the limit says of it.");
}

/* The place of `x` among `count` others; `count`: it is not there. */
static size_t place_of(const double *xs, size_t count, double x)
{
    size_t i = 0;
    while (i < count && xs[i] != x)
        i++;
    return i;
}

static void add_level(const struct wg_tune_report *report, size_t k, size_t level, size_t t,
                      const struct slice *slice, struct wg_table *table)
{
    const struct wg_tune_goal *goal = &report->setup->goal;
    const struct wg_tuning_knob *knob = &report->setup->knobs.space->knobs[k];
    const size_t i = place_of(slice->x, slice->count, shown(knob, level));
    const size_t m = place_of(slice->measured_x, slice->measured, shown(knob, level));
    if (i == slice->count && m == slice->measured)
        return;
    wg__table_cell(table, "%s", knob->labels[level]);
    wg__table_cell(table, "%s", t == 0 ? goal->objective.text : goal->limits[t - 1].text);
    if (i < slice->count)
        wg__table_cell(table, "%.4g (%.4g to %.4g)", slice->middle[i], slice->low[i],
                       slice->high[i]);
    else
        wg__table_cell(table, "-");
    if (m < slice->measured)
        wg__table_cell(table, "%.4g", slice->measured_y[m]);
    else
        wg__table_cell(table, "-");
    if (t > 0 && isfinite(report->result->bounds[t - 1]))
        wg__table_cell(table, "%s %.4g",
                       goal->limits[t - 1].is_minimum ? ">=" : "<=", report->result->bounds[t - 1]);
    else
        wg__table_cell(table, "-");
}

/* Words have no axis: a knob of them is a table. */
static void write_levels(struct wg_page *page, const struct wg_tune_report *report, size_t k,
                         struct slice *slice)
{
    const struct wg_tuning_knob *knob = &report->setup->knobs.space->knobs[k];
    const struct wg_table_column columns[] = {{knob->name, WG_ALIGN_LEFT},
                                              {"figure", WG_ALIGN_LEFT},
                                              {"believed (one standard deviation)", WG_ALIGN_RIGHT},
                                              {"measured", WG_ALIGN_RIGHT},
                                              {"limit", WG_ALIGN_RIGHT}};
    struct wg_table table;
    wg__table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t t = 0; t <= report->setup->goal.limit_count; t++) {
        take_slice(report, k, t, slice);
        for (size_t level = 0; level < knob->count; level++)
            add_level(report, k, level, t, slice, &table);
    }
    wg__page_table(page, &table, NULL);
    wg__table_fini(&table);
}

void wg__tune_slices(struct wg_page *page, const struct wg_tune_report *report)
{
    const struct wg_tuning_space *space = report->setup->knobs.space;
    struct slice *slice = wg__alloc_zeroed(1, sizeof *slice);
    if (slice == NULL || report->result->tuner == NULL ||
        report->result->best.configuration >= space->count) {
        page->out->failed |= slice == NULL;
        wg__free(slice);
        return;
    }
    wg__page_heading(page, "What is believed");
    wg__page_paragraph(page, "Through the returned configuration along each knob, the others as "
                             "returned.");
    for (size_t k = 0; k < space->knob_count; k++) {
        if (space->knobs[k].count < 2)
            continue;
        if (space->knobs[k].labels != NULL) {
            write_levels(page, report, k, slice);
            continue;
        }
        wg__page_figures_begin(page);
        for (size_t t = 0; t <= report->setup->goal.limit_count; t++)
            write_slice(page, report, k, t, slice);
        wg__page_figures_end(page);
    }
    wg__free(slice);
}
