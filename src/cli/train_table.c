/* SPDX-License-Identifier: MIT
 *
 * What table and page say alike: the profile's rows, and in words what was saved.
 */
#include <math.h>

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

/* Whether nothing was added to what an earlier run had measured. */
static bool is_remembered(const struct wg_train_report *report, const struct wg_train_stage *stage,
                          const struct wg_train_point *point)
{
    if (stage != &report->result->stages[0])
        return false;
    for (size_t i = 0; i < report->request->cached_count; i++) {
        const struct wg_train_point *kept = &report->request->cached[i];
        if (kept->setting == point->setting)
            return kept->measurements == point->measurements;
    }
    return false;
}

void wg__train_row(const struct wg_train_report *report, const struct wg_train_stage *stage,
                   size_t i, struct wg_train_row *out)
{
    const struct wg_train_settings *settings = &stage->settings;
    const struct wg_train_point *point = &stage->points[i];
    *out = (struct wg_train_row){.point = point,
                                 .step_j = point->power_w / point->throughput,
                                 .energy_ratio = NAN,
                                 .speed_ratio = NAN,
                                 .cost_ratio = NAN,
                                 .is_remembered = is_remembered(report, stage, point)};
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
    const double percent = 100 * (ratio - 1);
    if (isnan(ratio))
        wg__table_cell(table, "n/a");
    else if (fabs(percent) < 0.05)
        wg__table_cell(table, "0.0 %%"); /* not "-0.0 %" */
    else
        wg__table_cell(table, "%+.1f %%", percent);
}

/* A stage's setting; of GPUs that differ the least and the most. */
static void setting_text(char out[static WG_SETTING_TEXT_SIZE], const struct wg_train_stage *stage,
                         double setting)
{
    const struct wg_train_settings *settings = &stage->settings;
    char least_text[WG_QUANTITY_TEXT_SIZE], most_text[WG_QUANTITY_TEXT_SIZE];
    double least = setting, most = setting;
    for (size_t i = 0; i < settings->count; i++)
        if (settings->setting[i] == setting && settings->value[i][0] > 0) {
            least = most = settings->value[i][0];
            for (size_t g = 1; g < settings->gpu_count; g++) {
                least = fmin(least, settings->value[i][g]);
                most = fmax(most, settings->value[i][g]);
            }
        }
    wg__knob_text(least_text, settings->knob, least);
    wg__knob_text(most_text, settings->knob, most);
    if (least == most)
        (void)snprintf(out, WG_SETTING_TEXT_SIZE, "%s", least_text);
    else
        (void)snprintf(out, WG_SETTING_TEXT_SIZE, "%s .. %s", least_text, most_text);
}

const char *wg__train_standing(const struct wg_train_report *report,
                               const struct wg_train_stage *stage)
{
    if (!report->result->is_governed)
        return "as it stands";
    return isfinite(stage->search_s) ? "held" : "best so far";
}

void wg__train_table(const struct wg_train_report *report, const struct wg_train_stage *stage,
                     struct wg_table *out)
{
    static const struct wg_table_column columns[] = {
        {"setting", WG_ALIGN_RIGHT}, {"power", WG_ALIGN_RIGHT},    {"steps/s", WG_ALIGN_RIGHT},
        {"J/step", WG_ALIGN_RIGHT},  {"energy", WG_ALIGN_RIGHT},   {"speed", WG_ALIGN_RIGHT},
        {"cost", WG_ALIGN_RIGHT},    {"measured", WG_ALIGN_RIGHT}, {"settled in", WG_ALIGN_RIGHT},
        {"", WG_ALIGN_LEFT},
    };
    wg__table_init(out, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < stage->point_count; i++) {
        struct wg_train_row row;
        char value[WG_SETTING_TEXT_SIZE];
        wg__train_row(report, stage, i, &row);
        setting_text(value, stage, row.point->setting);
        wg__table_cell(out, "%s", value);
        if (row.is_best)
            wg__table_emphasize(out);
        wg__table_cell(out, "%.1f W", row.point->power_w);
        wg__table_cell(out, "%.4g", row.point->throughput);
        wg__table_cell(out, "%.4g", row.step_j);
        ratio_cell(out, row.energy_ratio);
        ratio_cell(out, row.speed_ratio);
        ratio_cell(out, row.cost_ratio);
        if (row.is_remembered)
            wg__table_cell(out, "earlier");
        else
            wg__table_cell(out, "%.1f s", row.point->measured_s);
        if (row.is_remembered || isnan(row.point->settle_s))
            wg__table_cell(out, "%s", "");
        else
            wg__table_cell(out, "%.2f s", row.point->settle_s);
        wg__table_cell(out, "%s", row.is_best ? wg__train_standing(report, stage) : "");
    }
}

void wg__train_slower_text(char out[static WG_QUANTITY_TEXT_SIZE], double slower_share)
{
    (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "in %.1f %% %s time", fabs(100 * slower_share),
                   slower_share < 0 ? "less" : "more");
}

void wg__train_verdict(const struct wg_train_report *report, struct wg_buffer *out)
{
    const struct wg_train_result *result = report->result;
    struct wg_train_saving saving;
    wg__train_saving(result, &saving);
    if (result->is_governed && saving.is_known) {
        char energy[WG_QUANTITY_TEXT_SIZE], slower[WG_QUANTITY_TEXT_SIZE];
        wg__joules_text(energy, saving.energy_j);
        wg__train_slower_text(slower, saving.slower_share);
        wg__buffer_printf(out, "%.1f ± %.1f %% of the energy (%s) against the largest setting, %s",
                          100 * saving.energy_share, 100 * saving.share_error, energy, slower);
    } else if (result->is_governed && isnan(result->steps)) {
        wg__buffer_puts(out,
                        "nothing: without steps nothing is set. The command told none, and its "
                        "power showed no period that can be trusted; tell them by "
                        "$WATTGOV_PROGRESS or --step-regex");
    } else if (result->is_governed) {
        const struct wg_train_stage *stage = &result->stages[0];
        const bool is_unseen = (result->total.flags & (WG_WINDOW_LOST | WG_WINDOW_HUNG)) != 0;
        wg__buffer_puts(out, is_unseen ? "unknown: a part of the energy could not be measured"
                             : isfinite(stage->search_s) && stage->best < stage->settings.count
                                 ? "unknown: steps were done at settings that were not measured"
                                 : "unknown: the search did not come to its end");
    } else {
        wg__buffer_printf(out, "nothing: only observed (%s)", result->why_not);
        if (isfinite(report->expected_cost_share))
            wg__buffer_printf(
                out,
                "; governing would save about %.0f %% of the cost (%s), by the curves "
                "of other jobs at this power",
                100 * report->expected_cost_share, report->objective);
    }
}
