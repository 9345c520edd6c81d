/* SPDX-License-Identifier: MIT
 *
 * `wattgov tune --html`: the front, the surrogate's slices and every trial as one page.
 *
 * A slice goes through the returned configuration along one knob: what is believed of the objective
 * at each level, with a band of one standard deviation, beside what was measured on it.
 */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/page.h"
#include "cli/plot.h"
#include "cli/table.h"
#include "cli/tune_report.h"
#include "live/tune_quantity.h"

/* -- Facts ------------------------------------------------------------------------------------ */

static void write_facts(struct wg_page *page, const struct wg_tune_report *report)
{
    const struct wg_tuner_result *best = &report->result->best;
    const struct wg_tuning_space *space = report->setup->knobs.space;
    struct wg_tune_standing standing, preset;
    char objective[64] = "-", saving[64] = "-", trials[64], note[96];
    wg__tune_standing(report, best->configuration, &standing);
    wg__tune_standing(report, space->default_configuration, &preset);
    if (standing.trials > 0)
        (void)snprintf(objective, sizeof objective, "%.4g", standing.objective);
    if (standing.trials > 0 && preset.trials > 0)
        (void)snprintf(saving, sizeof saving, "%+.1f %%",
                       100 * (standing.objective / preset.objective - 1));
    (void)snprintf(trials, sizeof trials, "%zu", best->trials);
    (void)snprintf(note, sizeof note, "of %zu configurations; %s", space->count,
                   wg__tune_end_key(report));
    const struct wg_page_fact facts[] = {
        {objective, report->setup->goal.objective.text,
         best->is_validated ? "validated" : "not validated"},
        {saving, "against the default", best->is_feasible ? NULL : "limits not known to be met"},
        {trials, "trials", note}};
    wg__page_facts(page, facts, sizeof facts / sizeof *facts);
}

/* -- The front -------------------------------------------------------------------------------- */

struct cloud {
    size_t count;
    double *x, *y;
    char **labels;
};

static void cloud_fini(struct cloud *cloud)
{
    for (size_t i = 0; i < cloud->count; i++)
        wg__free(cloud->labels[i]);
    wg__free(cloud->x);
    wg__free(cloud->y);
    wg__free(cloud->labels);
}

static bool cloud_init(struct cloud *cloud, size_t capacity)
{
    *cloud = (struct cloud){.x = wg__alloc_zeroed(capacity + 1, sizeof *cloud->x),
                            .y = wg__alloc_zeroed(capacity + 1, sizeof *cloud->y),
                            .labels = wg__alloc_zeroed(capacity + 1, sizeof *cloud->labels)};
    return cloud->x != NULL && cloud->y != NULL && cloud->labels != NULL;
}

static void cloud_add(struct cloud *cloud, const struct wg_tuning_space *space,
                      const struct wg_trial *told, size_t number, double x)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__buffer_printf(&text, "trial %zu: ", number);
    wg__tune_configuration_text(&text, space, told->configuration);
    cloud->x[cloud->count] = x;
    cloud->y[cloud->count] = told->objective;
    cloud->labels[cloud->count] = wg__strdup(text.failed ? "" : text.data);
    cloud->count += cloud->labels[cloud->count] != NULL;
    wg__buffer_fini(&text);
}

static bool is_within(const struct wg_tune_report *report, const struct wg_trial *told)
{
    for (size_t i = 0; i < report->setup->goal.limit_count; i++) {
        const double bound = report->result->bounds[i], value = told->figures[i];
        if (report->setup->goal.limits[i].is_minimum ? value < bound : value > bound)
            return false;
    }
    return true;
}

/* Objective against the first limit's figure; without limits over the trials. */
static void draw_front(struct wg_page *page, const struct wg_tune_report *report,
                       struct cloud *within, struct cloud *beyond, struct cloud *returned)
{
    const struct wg_tune_goal *goal = &report->setup->goal;
    const struct wg_tune_result *result = report->result;
    const bool has_limit = goal->limit_count > 0;
    for (size_t i = 0; i < result->count; i++) {
        const struct wg_trial *told = &result->trials[i].told;
        if (told->outcome != WG_TRIAL_MEASURED)
            continue;
        struct cloud *cloud = told->configuration == result->best.configuration ? returned
                              : is_within(report, told)                         ? within
                                                                                : beyond;
        cloud_add(cloud, report->setup->knobs.space, told, i + 1,
                  has_limit ? told->figures[0] : (double)(i + 1));
    }
    const struct {
        const struct cloud *cloud;
        const char *label;
        enum wg_plot_color color;
    } clouds[] = {{within, "within the limits", WG_PLOT_BLUE},
                  {beyond, "over a limit", WG_PLOT_GREY},
                  {returned, "returned", WG_PLOT_VERMILION}};
    struct wg_plot_series series[3];
    size_t count = 0;
    for (size_t i = 0; i < 3; i++) {
        const struct cloud *cloud = clouds[i].cloud;
        if (cloud->count == 0)
            continue;
        series[count] = (struct wg_plot_series){.label = clouds[i].label,
                                                .mark = WG_PLOT_POINTS,
                                                .color = clouds[i].color,
                                                .x = cloud->x,
                                                .y = cloud->y,
                                                .count = cloud->count,
                                                .point_labels = (const char *const *)cloud->labels};
        count++;
    }
    const struct wg_plot_reference bound = {.label = "limit",
                                            .value = has_limit ? result->bounds[0] : 0,
                                            .is_vertical = true,
                                            .color = WG_PLOT_INK};
    const struct wg_plot plot = {
        .title = "Every trial",
        .x = {.title = has_limit ? goal->limits[0].text : "trial", .is_whole = !has_limit},
        .y = {.title = goal->objective.text},
        .series = series,
        .series_count = count,
        .references = has_limit ? &bound : NULL,
        .reference_count = has_limit ? 1 : 0,
        .width = 720,
        .height = 340};
    wg__page_figures_begin(page);
    wg__page_figure(page, &plot, "Lower is cheaper; a point's tooltip names its configuration.");
    wg__page_figures_end(page);
}

static void write_front(struct wg_page *page, const struct wg_tune_report *report)
{
    struct cloud within, beyond, returned;
    bool fits = cloud_init(&within, report->result->count);
    fits &= cloud_init(&beyond, report->result->count);
    fits &= cloud_init(&returned, report->result->count);
    wg__page_heading(page, "Cost against the limit");
    if (fits)
        draw_front(page, report, &within, &beyond, &returned);
    else
        page->out->failed = true;
    cloud_fini(&within);
    cloud_fini(&beyond);
    cloud_fini(&returned);
}

/* -- Slices ----------------------------------------------------------------------------------- */

enum { SLICE_MAX = 256 };

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

/* Along knob `k` through the returned configuration. */
static void take_slice(const struct wg_tune_report *report, size_t k, struct slice *out)
{
    const struct wg_tuning_space *space = report->setup->knobs.space;
    const struct wg_tuning_knob *knob = &space->knobs[k];
    size_t levels[WG_TUNING_KNOBS_MAX];
    out->count = out->measured = 0;
    for (size_t i = 0; i < space->knob_count; i++)
        levels[i] = wg__tuning_level(space, report->result->best.configuration, i);
    for (size_t level = 0; level < knob->count && level < SLICE_MAX; level++) {
        struct wg_tuning_forecast forecast;
        struct wg_tune_standing standing;
        levels[k] = level;
        const size_t configuration = wg__tuning_space_find(space, levels);
        if (configuration == space->count)
            continue;
        wg__tune_standing(report, configuration, &standing);
        if (standing.trials > 0) {
            out->measured_x[out->measured] = shown(knob, level);
            out->measured_y[out->measured++] = standing.objective;
        }
        if (!wg__tuner_forecast(report->result->tuner, configuration, &forecast) ||
            !isfinite(forecast.objective))
            continue;
        const double spread = isfinite(forecast.objective_sd) ? forecast.objective_sd : 0;
        out->x[out->count] = shown(knob, level);
        out->middle[out->count] = forecast.objective;
        out->low[out->count] = forecast.objective * exp(-spread);
        out->high[out->count++] = forecast.objective * exp(spread);
    }
}

static void write_slice(struct wg_page *page, const struct wg_tune_report *report, size_t k,
                        struct slice *slice)
{
    const struct wg_tuning_knob *knob = &report->setup->knobs.space->knobs[k];
    const bool is_doubling = knob->role == WG_TUNING_BATCH || knob->role == WG_TUNING_TRAIN_BATCH;
    take_slice(report, k, slice);
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
    const struct wg_plot plot = {.title = knob->name,
                                 .x = {.title = knob->name,
                                       .unit = unit_of(knob),
                                       .scale = is_doubling ? WG_PLOT_LOG2 : WG_PLOT_LINEAR},
                                 .y = {.title = report->setup->goal.objective.text},
                                 .series = series,
                                 .series_count = 3};
    wg__page_figure(page, &plot, "The other knobs as returned.");
}

static void write_slices(struct wg_page *page, const struct wg_tune_report *report)
{
    const struct wg_tuning_space *space = report->setup->knobs.space;
    struct slice *slice = wg__alloc_zeroed(1, sizeof *slice);
    if (slice == NULL || report->result->tuner == NULL ||
        report->result->best.configuration >= space->count) {
        page->out->failed |= slice == NULL;
        wg__free(slice);
        return;
    }
    wg__page_heading(page, "Through the returned configuration");
    wg__page_figures_begin(page);
    for (size_t k = 0; k < space->knob_count; k++)
        if (space->knobs[k].labels == NULL && space->knobs[k].count > 1)
            write_slice(page, report, k, slice);
    wg__page_figures_end(page);
    wg__free(slice);
}

/* -- The page --------------------------------------------------------------------------------- */

static void write_trials(struct wg_page *page, const struct wg_tune_report *report)
{
    struct wg_table_column columns[WG_TUNE_COLUMNS_MAX];
    struct wg_table table;
    wg__tune_table(report, columns, &table);
    wg__page_heading(page, "Trials");
    wg__page_table(page, &table, "In their order; what was returned stands out");
    wg__table_fini(&table);
    wg__page_fold_begin(page, "Why each one", false);
    for (size_t i = 0; i < report->result->count; i++) {
        const struct wg_tune_trial *trial = &report->result->trials[i];
        wg__page_paragraph(page, "%zu: %s%s%s", i + 1, trial->why,
                           trial->failure[0] != '\0' ? " - " : "", trial->failure);
    }
    wg__page_paragraph(page, "End: %s", report->result->best.why);
    wg__page_fold_end(page);
}

void wg__tune_page(const struct wg_tune_report *report, struct wg_buffer *out)
{
    const struct wg_tuning_space *space = report->setup->knobs.space;
    char energy[WG_TUNE_ENERGY_TEXT_SIZE];
    struct wg_page page;
    struct wg_buffer text;
    wg__page_begin(&page, out, "Tuning", report->setup->workload_text);
    write_facts(&page, report);
    wg__buffer_init(&text);
    if (report->result->best.configuration < space->count)
        wg__tune_configuration_text(&text, space, report->result->best.configuration);
    wg__page_heading(&page, "Returned");
    wg__page_paragraph(&page, "%s", text.data != NULL && !text.failed ? text.data : "nothing");
    wg__buffer_fini(&text);
    wg__tune_report_energy(report, energy);
    wg__page_paragraph(&page, "Energy: %s.", energy);
    if (report->setup->request.arrivals != NULL)
        wg__page_paragraph(&page, "Load: %s, simulated from measured times and powers.",
                           report->setup->args->arrivals);
    write_front(&page, report);
    write_slices(&page, report);
    write_trials(&page, report);
    wg__page_end(&page, report->setup->workload_text);
}
