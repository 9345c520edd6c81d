/* SPDX-License-Identifier: MIT
 *
 * `wattgov train` for people: the profile as a table, then what was used and saved.
 */
#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/quantity.h"
#include "cli/table.h"
#include "cli/train_report.h"

/* What a step costs by the objective. */
static double step_cost(const struct wg_train_report *report, const struct wg_train_point *point)
{
    struct wg_objective objective = report->request->objective;
    objective.max_power_w = report->result->max_power_w;
    return wg__objective_cost_per_s(&objective, point->power_w) / point->throughput;
}

void wg__train_row(const struct wg_train_report *report, const struct wg_train_stage *stage,
                   size_t i, struct wg_train_row *out)
{
    const struct wg_train_settings *settings = &stage->settings;
    const struct wg_train_point *point = &stage->points[i];
    *out = (struct wg_train_row){.point = point,
                                 .value = point->setting,
                                 .step_j = point->power_w / point->throughput,
                                 .energy_ratio = NAN,
                                 .speed_ratio = NAN,
                                 .cost_ratio = NAN};
    if (stage->best < settings->count)
        out->is_best = settings->setting[stage->best] == point->setting;
    for (size_t k = 0; k < stage->point_count; k++) {
        const struct wg_train_point *largest = &stage->points[k];
        if (largest->setting != settings->setting[settings->count - 1] ||
            largest->measurements == 0)
            continue;
        out->energy_ratio = out->step_j / (largest->power_w / largest->throughput);
        out->speed_ratio = point->throughput / largest->throughput;
        out->cost_ratio = step_cost(report, point) / step_cost(report, largest);
    }
}

static void ratio_cell(struct wg_table *table, double ratio)
{
    if (isnan(ratio))
        wg__table_cell(table, "n/a");
    else
        wg__table_cell(table, "%+.1f %%", 100 * (ratio - 1));
}

static void write_profile(const struct wg_train_report *report, const struct wg_train_stage *stage,
                          bool with_color, struct wg_buffer *out)
{
    const struct wg_table_column columns[] = {
        {wg_knob_key(stage->settings.knob), WG_ALIGN_RIGHT},
        {"power", WG_ALIGN_RIGHT},
        {"steps/s", WG_ALIGN_RIGHT},
        {"J/step", WG_ALIGN_RIGHT},
        {"energy", WG_ALIGN_RIGHT},
        {"speed", WG_ALIGN_RIGHT},
        {"cost", WG_ALIGN_RIGHT},
        {"measured", WG_ALIGN_RIGHT},
        {"settled in", WG_ALIGN_RIGHT},
        {"", WG_ALIGN_LEFT},
    };
    struct wg_table table;
    wg__table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < stage->point_count; i++) {
        struct wg_train_row row;
        char value[WG_QUANTITY_TEXT_SIZE];
        wg__train_row(report, stage, i, &row);
        wg__knob_text(value, stage->settings.knob, row.value);
        wg__table_cell(&table, "%s", value);
        if (row.is_best)
            wg__table_emphasize(&table);
        wg__table_cell(&table, "%.1f W", row.point->power_w);
        wg__table_cell(&table, "%.4g", row.point->throughput);
        wg__table_cell(&table, "%.4g", row.step_j);
        ratio_cell(&table, row.energy_ratio);
        ratio_cell(&table, row.speed_ratio);
        ratio_cell(&table, row.cost_ratio);
        wg__table_cell(&table, "%.1f s", row.point->measured_s);
        if (isnan(row.point->settle_s))
            wg__table_cell(&table, "%s", "");
        else
            wg__table_cell(&table, "%.2f s", row.point->settle_s);
        wg__table_cell(&table, "%s",
                       !row.is_best                ? ""
                       : isfinite(stage->search_s) ? "held"
                                                   : "best so far");
    }
    wg__table_write(&table, with_color, out);
    out->failed |= table.failed;
    wg__table_fini(&table);
}

static void write_steps(const struct wg_train_result *result, struct wg_buffer *out)
{
    static const char *const how[] = {
        [WG_TRAIN_SOURCE_NONE] = "",
        [WG_TRAIN_SOURCE_TOLD] = "told by the command",
        [WG_TRAIN_SOURCE_PRINTED] = "read from its output",
        [WG_TRAIN_SOURCE_PERIOD] = "by the period of its power",
    };
    if (isnan(result->steps)) {
        wg__buffer_puts(out, "steps     none seen\n");
        return;
    }
    wg__buffer_printf(out, "steps     %.0f, %s", result->steps, how[result->source]);
    if (result->source == WG_TRAIN_SOURCE_PERIOD)
        wg__buffer_printf(out, " (confidence %.2f)", result->confidence);
    if (result->ranks > 1)
        wg__buffer_printf(out, ", %u ranks", result->ranks);
    wg__buffer_puts(out, "\n");
}

static void write_energy(const struct wg_train_result *result, struct wg_buffer *out)
{
    char energy[WG_QUANTITY_TEXT_SIZE], error[WG_QUANTITY_TEXT_SIZE];
    if (isnan(result->total.energy_j)) {
        wg__buffer_puts(out, "energy    n/a\n");
        return;
    }
    wg__joules_text(energy, result->total.energy_j);
    wg__joules_text(error, result->total.energy_error_j);
    wg__buffer_printf(out, "energy    %s ± %s, %.1f W on average\n", energy, error,
                      result->total.power_mean_w);
}

static void write_saving(const struct wg_train_report *report, struct wg_buffer *out)
{
    const struct wg_train_result *result = report->result;
    struct wg_train_saving saving;
    wg__train_saving(result, &saving);
    if (result->is_governed && saving.is_known) {
        char energy[WG_QUANTITY_TEXT_SIZE];
        wg__joules_text(energy, saving.energy_j);
        wg__buffer_printf(
            out,
            "saved     %.1f ± %.1f %% of the energy (%s) against the largest setting, "
            "in %.1f %% more time\n",
            100 * saving.energy_share, 100 * saving.share_error, energy, 100 * saving.slower_share);
    } else if (result->is_governed && isnan(result->steps)) {
        wg__buffer_puts(
            out, "saved     nothing: without steps nothing is set. The command told none, and its "
                 "power showed no period that can be trusted; tell them by "
                 "$WATTGOV_PROGRESS or --step-regex\n");
    } else if (result->is_governed) {
        wg__buffer_puts(out, "saved     unknown: the search did not come to its end\n");
    } else {
        wg__buffer_printf(out, "saved     nothing: only observed (%s)\n", result->why_not);
        if (isfinite(report->expected_share))
            wg__buffer_printf(out,
                              "          governing would save about %.0f %% of the cost, by the "
                              "curves of other jobs at this power; to find out, let it govern\n",
                              100 * report->expected_share);
    }
}

void wg__train_text(const struct wg_train_report *report, bool with_color, struct wg_buffer *out)
{
    const struct wg_train_result *result = report->result;
    wg__buffer_printf(out, "\nobjective %s\n\n", report->objective);
    for (size_t i = 0; i < result->stage_count; i++) {
        if (result->stages[i].point_count == 0)
            continue;
        write_profile(report, &result->stages[i], with_color, out);
        wg__buffer_puts(out, "\n");
    }
    wg__buffer_printf(out, "time      %.1f s\n", result->time_s);
    write_steps(result, out);
    write_energy(result, out);
    write_saving(report, out);
    for (size_t i = 0; i < result->stage_count; i++)
        if (result->is_governed && isfinite(result->stages[i].search_s))
            wg__buffer_printf(out, "search    %s: %.1f s, %zu of %zu settings measured\n",
                              wg_knob_key(result->stages[i].settings.knob),
                              result->stages[i].search_s, result->stages[i].point_count,
                              result->stages[i].settings.count);
    if (result->not_restored > 0)
        wg__buffer_printf(out, "LEFT      %zu settings did not come back: run 'wattgov restore'\n",
                          result->not_restored);
}
