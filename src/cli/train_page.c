/* SPDX-License-Identifier: MIT
 *
 * `wattgov train --html`: the numbers and three plots as one page.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/page.h"
#include "cli/plot.h"
#include "cli/quantity.h"
#include "cli/table.h"
#include "cli/train_report.h"

/* A knob's value in the unit that people know. */
static double shown(enum wg_knob knob, double value)
{
    return knob == WG_KNOB_POWER_LIMIT ? value : value * 1e-6;
}

static const char *shown_unit(enum wg_knob knob)
{
    return knob == WG_KNOB_POWER_LIMIT ? "W" : "MHz";
}

static void write_facts(struct wg_page *page, const struct wg_train_report *report)
{
    const struct wg_train_result *result = report->result;
    char energy[WG_QUANTITY_TEXT_SIZE], time[48], saved[48], note[WG_QUANTITY_TEXT_SIZE],
        held[WG_TRAIN_STAGES_MAX][WG_QUANTITY_TEXT_SIZE];
    struct wg_page_fact facts[3 + WG_TRAIN_STAGES_MAX];
    size_t count = 0;
    struct wg_train_saving saving;
    wg__train_saving(result, &saving);
    wg__joules_text(energy, result->total.energy_j);
    facts[count++] = (struct wg_page_fact){energy, "energy of the GPUs", NULL};
    (void)snprintf(time, sizeof time, "%.1f s", result->time_s);
    facts[count++] = (struct wg_page_fact){time, "time", NULL};
    if (result->is_governed && saving.is_known) {
        (void)snprintf(saved, sizeof saved, "%.1f ± %.1f %%", 100 * saving.energy_share,
                       100 * saving.share_error);
        wg__train_slower_text(note, saving.slower_share);
        facts[count++] = (struct wg_page_fact){saved, "of the energy saved", note};
    }
    for (size_t i = 0; i < result->stage_count && result->is_governed; i++) {
        const struct wg_train_stage *stage = &result->stages[i];
        if (stage->best >= stage->settings.count)
            continue;
        wg__knob_text(held[i], stage->settings.knob, stage->settings.setting[stage->best]);
        facts[count++] = (struct wg_page_fact){held[i], wg_knob_key(stage->settings.knob),
                                               wg__train_standing(report, stage)};
    }
    wg__page_facts(page, facts, count);
}

static void write_table(struct wg_page *page, const struct wg_train_report *report,
                        const struct wg_train_stage *stage)
{
    struct wg_table table;
    wg__train_table(report, stage, &table);
    wg__page_table(page, &table, "What was measured; shares are against the largest setting");
    wg__table_fini(&table);
}

static void write_curve(struct wg_page *page, const struct wg_train_report *report,
                        const struct wg_train_stage *stage)
{
    double x[WG_TRAIN_SETTINGS_MAX], energy[WG_TRAIN_SETTINGS_MAX], speed[WG_TRAIN_SETTINGS_MAX];
    for (size_t i = 0; i < stage->point_count; i++) {
        struct wg_train_row row;
        wg__train_row(report, stage, i, &row);
        x[i] = shown(stage->settings.knob, row.point->setting);
        energy[i] = row.step_j;
        speed[i] = row.point->throughput;
    }
    const struct wg_plot_axis axis = {.title = wg_knob_key(stage->settings.knob),
                                      .unit = shown_unit(stage->settings.knob)};
    const struct wg_plot_series per_step = {.label = "measured",
                                            .mark = WG_PLOT_POINTS,
                                            .x = x,
                                            .y = energy,
                                            .count = stage->point_count};
    const struct wg_plot_series rate = {.label = "measured",
                                        .mark = WG_PLOT_POINTS,
                                        .x = x,
                                        .y = speed,
                                        .count = stage->point_count};
    const struct wg_plot energy_plot = {.title = "Energy of a step",
                                        .x = axis,
                                        .y = {.title = "Energy", .unit = "J"},
                                        .series = &per_step,
                                        .series_count = 1};
    const struct wg_plot speed_plot = {.title = "Speed",
                                       .x = axis,
                                       .y = {.title = "Steps a second"},
                                       .series = &rate,
                                       .series_count = 1};
    wg__page_figures_begin(page);
    wg__page_figure(page, &energy_plot, "Each point is one setting that was measured.");
    wg__page_figure(page, &speed_plot, "What the restraint costs in speed.");
    wg__page_figures_end(page);
}

/* Power and the setting over the time of the run. */
static void write_course(struct wg_page *page, const struct wg_train_report *report)
{
    const struct wg_train_result *result = report->result;
    const size_t count = result->moment_count;
    double *numbers = wg__alloc_zeroed(3 * (count + 1), sizeof *numbers);
    if (numbers == NULL || count == 0) {
        wg__free(numbers);
        return;
    }
    double *t_s = numbers, *power_w = numbers + count, *limit_w = numbers + 2 * count;
    bool has_limit = false;
    for (size_t i = 0; i < count; i++) {
        t_s[i] = result->moments[i].t_s;
        power_w[i] = result->moments[i].power_w;
        limit_w[i] = result->moments[i].limit_w;
        has_limit |= isfinite(limit_w[i]);
    }
    const struct wg_plot_series series[] = {
        {.label = "power",
         .mark = WG_PLOT_LINE,
         .color = WG_PLOT_BLUE,
         .x = t_s,
         .y = power_w,
         .count = count},
        {.label = "limit",
         .mark = WG_PLOT_STEP,
         .color = WG_PLOT_VERMILION,
         .x = t_s,
         .y = limit_w,
         .count = count},
    };
    const struct wg_plot plot = {
        .title = "Power over the run",
        .x = {.title = "Time", .unit = "s", .from_zero = true},
        .y = {.title = "Power of the GPUs", .unit = "W", .from_zero = true},
        .series = series,
        .series_count = has_limit ? 2 : 1,
        .width = 720};
    wg__page_figures_begin(page);
    wg__page_figure(page, &plot,
                    has_limit ? "The search stands at the beginning." : "Nothing limited it.");
    wg__page_figures_end(page);
    wg__free(numbers);
}

void wg__train_page(const struct wg_train_report *report, struct wg_buffer *out)
{
    const struct wg_train_result *result = report->result;
    struct wg_buffer command, verdict;
    struct wg_page page;
    wg__buffer_init(&command);
    wg__buffer_init(&verdict);
    for (char *const *word = report->command; *word != NULL; word++)
        wg__buffer_printf(&command, "%s%s", word == report->command ? "" : " ", *word);
    wg__page_begin(&page, out, "A training run under the power governor", command.data);
    write_facts(&page, report);
    wg__train_verdict(report, &verdict);
    wg__page_paragraph(&page, "Objective: %s. Saved: %s.", report->objective,
                       verdict.data != NULL ? verdict.data : "");
    write_course(&page, report);
    for (size_t i = 0; i < result->stage_count; i++) {
        if (result->stages[i].point_count == 0)
            continue;
        wg__page_heading(&page, wg_knob_key(result->stages[i].settings.knob));
        write_table(&page, report, &result->stages[i]);
        write_curve(&page, report, &result->stages[i]);
    }
    wg__page_end(&page, NULL);
    out->failed |= command.failed || verdict.failed;
    wg__buffer_fini(&command);
    wg__buffer_fini(&verdict);
}
