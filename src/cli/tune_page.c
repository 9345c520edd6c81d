/* SPDX-License-Identifier: MIT
 *
 * `wattgov tune --html`: what was returned beside the default, the front, what is believed
 * (tune_slices.c), every trial, and how all of it was measured, as one page.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/front_plot.h"
#include "cli/page.h"
#include "cli/table.h"
#include "cli/tune_report.h"
#include "live/tune_quantity.h"

/* -- Facts ------------------------------------------------------------------------------------ */

static void write_facts(struct wg_page *page, const struct wg_tune_report *report)
{
    const struct wg_tuner_result *best = &report->result->best;
    const struct wg_tuning_space *space = report->setup->knobs.space;
    struct wg_tune_standing standing;
    char objective[64] = "-", saving[64] = "-", trials[64], note[96];
    wg__tune_standing(report, best->configuration, &standing);
    if (standing.trials > 0)
        (void)snprintf(objective, sizeof objective, "%.4g", standing.objective);
    const struct wg_tune_saving cheaper = wg__tune_saving(report, best->configuration);
    if (isfinite(cheaper.share) && cheaper.error > 0)
        (void)snprintf(saving, sizeof saving, "%+.1f ± %.1f %%", -100 * cheaper.share,
                       100 * cheaper.error);
    else if (isfinite(cheaper.share))
        (void)snprintf(saving, sizeof saving, "%+.1f %%", -100 * cheaper.share);
    (void)snprintf(trials, sizeof trials, "%zu", best->trials);
    (void)snprintf(note, sizeof note, "of %zu configurations; %s", space->count,
                   wg__tune_end_key(report));
    struct wg_buffer sure;
    wg__buffer_init(&sure);
    if (best->configuration < space->count)
        wg__tune_standing_text(report, &sure);
    const struct wg_page_fact facts[] = {
        {objective, report->setup->goal.objective.text, sure.failed ? NULL : sure.data},
        {saving, "against the default",
         !best->is_feasible                        ? "limits not known to be met"
         : fabs(cheaper.share) < 2 * cheaper.error ? "within the noise"
                                                   : NULL},
        {trials, "trials", note}};
    wg__page_facts(page, facts, sizeof facts / sizeof *facts);
    wg__buffer_fini(&sure);
}

/* -- The front -------------------------------------------------------------------------------- */

enum { WITHIN, BEYOND, USUAL, RETURNED, GROUP_COUNT };

static const struct wg_front_group groups[GROUP_COUNT] = {
    [WITHIN] = {"within the limits", WG_PLOT_SKY},
    [BEYOND] = {"over a limit", WG_PLOT_GREY},
    [USUAL] = {"the default", WG_PLOT_PURPLE},
    [RETURNED] = {"returned", WG_PLOT_VERMILION}};

/* What a chart's horizontal axis shows: the figure of a limit, else a latency, else the trials. */
struct axis {
    size_t limit;     /* goal.limit_count: none */
    const char *name; /* NULL: the number of the trial */
};

static double axis_value(const struct wg_tune_report *report, const struct axis *axis, size_t trial)
{
    const struct wg_tune_trial *of = &report->result->trials[trial];
    if (axis->limit < report->setup->goal.limit_count)
        return of->told.figures[axis->limit];
    if (axis->name == NULL)
        return (double)(trial + 1);
    for (size_t i = 0; i < of->figure_count; i++)
        if (strcmp(of->figures[i].name, axis->name) == 0)
            return of->figures[i].value;
    return NAN;
}

/* Whether the limits are met; `but` is not asked. */
static bool keeps_limits(const struct wg_tune_report *report, const struct wg_trial *told,
                         size_t but)
{
    for (size_t i = 0; i < report->setup->goal.limit_count; i++)
        if (i != but && wg__tune_is_missed(report, i, told->figures[i]))
            return false;
    return true;
}

/* "trial 3: batch 4; energy_per_request_j 2.1, p99_s 0.047"; NULL: no memory. */
static char *make_label(const struct wg_tune_report *report, size_t trial)
{
    const struct wg_tune_goal *goal = &report->setup->goal;
    const struct wg_trial *told = &report->result->trials[trial].told;
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__buffer_printf(&text, "trial %zu: ", trial + 1);
    wg__tune_configuration_text(&text, report->setup->knobs.space, told->configuration);
    wg__buffer_printf(&text, "; %s %.4g", goal->objective.text, told->objective);
    for (size_t i = 0; i < goal->limit_count; i++)
        wg__buffer_printf(&text, "; %s %.4g", goal->limits[i].text, told->figures[i]);
    char *label = text.failed ? NULL : wg__strdup(text.data);
    wg__buffer_fini(&text);
    return label;
}

static size_t group_of(const struct wg_tune_report *report, const struct wg_trial *told)
{
    if (told->configuration == report->result->best.configuration)
        return RETURNED;
    if (told->configuration == report->setup->knobs.space->default_configuration)
        return USUAL;
    return keeps_limits(report, told, SIZE_MAX) ? WITHIN : BEYOND;
}

static void draw_front(struct wg_page *page, const struct wg_tune_report *report,
                       const struct axis *axis, char *const *labels, struct wg_front_point *points)
{
    const struct wg_tune_goal *goal = &report->setup->goal;
    const bool has_limit = axis->limit < goal->limit_count;
    char title[WG_TUNE_LABEL_SIZE + 32];
    for (size_t i = 0; i < report->result->count; i++) {
        const struct wg_trial *told = &report->result->trials[i].told;
        const bool is_measured = told->outcome == WG_TRIAL_MEASURED;
        points[i] = (struct wg_front_point){
            .figure = is_measured ? axis_value(report, axis, i) : (double)NAN,
            .cost = told->objective,
            .group = group_of(report, told),
            .counts = axis->name != NULL && keeps_limits(report, told, axis->limit),
            .label = labels[i]};
    }
    (void)snprintf(title, sizeof title, "Cost against %s",
                   axis->name != NULL ? axis->name : "the trials");
    const struct wg_front front = {
        .title = title,
        .x = {.title = axis->name != NULL ? axis->name : "trial", .is_whole = axis->name == NULL},
        .y = {.title = goal->objective.text},
        .groups = groups,
        .group_count = GROUP_COUNT,
        .points = points,
        .point_count = report->result->count,
        .bound = has_limit ? report->result->bounds[axis->limit] : (double)NAN,
        .is_minimum = has_limit && goal->limits[axis->limit].is_minimum,
        .width = 760,
        .height = 380};
    wg__front_figure(page, &front,
                     axis->name == NULL
                         ? "Each point is a trial that was measured; its tooltip names it."
                         : "Each point is a trial that was measured; its tooltip names it. The "
                           "front is the least cost that was seen for each value below.");
}

/* Without limits: against the latency that the workload tells. */
static const char *find_latency(const struct wg_tune_report *report)
{
    static const char *const names[] = {"p99_s", "p95_s", "mean_s"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        if (isfinite(
                wg__tune_standing_figure(report, report->result->best.configuration, names[n])))
            return names[n];
    return NULL;
}

static void write_fronts(struct wg_page *page, const struct wg_tune_report *report)
{
    const struct wg_tune_goal *goal = &report->setup->goal;
    const size_t count = report->result->count;
    struct wg_front_point *points = wg__alloc_zeroed(count + 1, sizeof *points);
    char **labels = wg__alloc_zeroed(count + 1, sizeof *labels);
    bool fits = points != NULL && labels != NULL;
    for (size_t i = 0; i < count && fits; i++) {
        labels[i] = make_label(report, i);
        fits = labels[i] != NULL;
    }
    page->out->failed |= !fits;
    wg__page_heading(page, "The front");
    wg__page_figures_begin(page);
    for (size_t i = 0; i < goal->limit_count && fits; i++)
        draw_front(page, report, &(struct axis){i, goal->limits[i].label}, labels, points);
    if (goal->limit_count == 0 && fits)
        draw_front(page, report, &(struct axis){SIZE_MAX, find_latency(report)}, labels, points);
    wg__page_figures_end(page);
    for (size_t i = 0; i < count && labels != NULL; i++)
        wg__free(labels[i]);
    wg__free(labels);
    wg__free(points);
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

/* A paragraph of a text that is made piece by piece; none where it is empty. */
static void write_text(struct wg_page *page, const char *title,
                       void (*make)(const struct wg_tune_report *, size_t, struct wg_buffer *),
                       const struct wg_tune_report *report, size_t configuration)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    make(report, configuration, &text);
    page->out->failed |= text.failed;
    if (!text.failed && text.length > 0)
        wg__page_paragraph(page, "%s, %s.", title, text.data);
    wg__buffer_fini(&text);
}

static void write_returned(struct wg_page *page, const struct wg_tune_report *report)
{
    const struct wg_tuner_result *best = &report->result->best;
    const size_t preset = report->setup->knobs.space->default_configuration;
    struct wg_table_column columns[WG_TUNE_COLUMNS_MAX];
    struct wg_table table;
    wg__page_heading(page, "Returned");
    if (best->configuration >= report->setup->knobs.space->count) {
        struct wg_buffer why;
        wg__buffer_init(&why);
        wg__tune_failure_text(report, &why);
        wg__page_paragraph(page, "Nothing was measured: there is nothing to return.");
        if (why.length > 0 && !why.failed)
            wg__page_paragraph(page, "%s", why.data);
        wg__buffer_fini(&why);
        return;
    }
    if (!best->is_feasible && report->setup->goal.limit_count > 0)
        wg__page_paragraph(page, "No configuration is known to meet the limits: this one most "
                                 "probably comes nearest.");
    wg__tune_summary_table(report, columns, &table);
    wg__page_table(page, &table,
                   report->setup->request.arrivals != NULL
                       ? "Means over the trials; energy of a request and latencies at the load"
                       : "Means over the trials");
    wg__table_fini(&table);
    write_text(page, "Returned", wg__tune_load_text, report, best->configuration);
    write_text(page, "Returned", wg__tune_measured_text, report, best->configuration);
    if (best->configuration == preset)
        return;
    write_text(page, "The default", wg__tune_load_text, report, preset);
    write_text(page, "The default", wg__tune_measured_text, report, preset);
}

static void write_making(struct wg_page *page, const struct wg_tune_report *report)
{
    char energy[WG_TUNE_ENERGY_TEXT_SIZE];
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__tune_made_text(report, &text);
    wg__tune_report_energy(report, energy);
    wg__page_heading(page, "How it was measured");
    wg__page_paragraph(page, "%s.", text.data != NULL && !text.failed ? text.data : "");
    wg__page_paragraph(page, "Energy: %s.", energy);
    if (report->setup->request.arrivals != NULL)
        wg__page_paragraph(page,
                           "Load: %s, simulated from the measured times and powers of batches.",
                           report->setup->args->arrivals);
    else if (report->setup->args->arrivals != NULL)
        wg__page_paragraph(page, "Load: %s, sent as it is%s.", report->setup->args->arrivals,
                           wg__tune_offered_text(report));
    wg__buffer_fini(&text);
}

void wg__tune_page(const struct wg_tune_report *report, struct wg_buffer *out)
{
    struct wg_page page;
    wg__page_begin(&page, out, "Tuning", report->setup->workload_text);
    write_facts(&page, report);
    write_returned(&page, report);
    write_fronts(&page, report);
    wg__tune_slices(&page, report);
    write_trials(&page, report);
    write_making(&page, report);
    wg__page_end(&page, report->command);
}
