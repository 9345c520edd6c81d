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

/* What of a search's settings was measured by this run. */
static size_t measured_count(const struct wg_train_report *report,
                             const struct wg_train_stage *stage)
{
    size_t count = 0;
    for (size_t i = 0; i < stage->point_count; i++) {
        struct wg_train_row row;
        wg__train_row(report, stage, i, &row);
        count += !row.is_remembered;
    }
    return count;
}

static void write_profile(const struct wg_train_report *report, size_t i, bool with_color,
                          struct wg_buffer *out)
{
    const struct wg_train_stage *stage = &report->result->stages[i];
    struct wg_table table;
    wg__buffer_printf(out, "%s%s%s\n", wg_knob_key(stage->settings.knob),
                      i > 0 ? ", at the best " : "",
                      i > 0 ? wg_knob_key(report->result->stages[0].settings.knob) : "");
    wg__train_table(report, stage, &table);
    wg__table_write(&table, with_color, out);
    out->failed |= table.failed;
    wg__table_fini(&table);
    wg__buffer_puts(out, "\n");
}

static void write_search(const struct wg_train_report *report, const struct wg_train_stage *stage,
                         struct wg_buffer *out)
{
    wg__buffer_printf(out, "search    %s: ", wg_knob_key(stage->settings.knob));
    if (isfinite(stage->search_s))
        wg__buffer_printf(out, "%.1f s, ", stage->search_s);
    else
        wg__buffer_puts(out, "not finished, ");
    const size_t measured = measured_count(report, stage);
    if (measured == 0)
        wg__buffer_puts(out, "the earlier profile still holds\n");
    else
        wg__buffer_printf(out, "%zu of %zu settings measured\n", measured, stage->settings.count);
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

void wg__train_text(const struct wg_train_report *report, bool with_color, struct wg_buffer *out)
{
    const struct wg_train_result *result = report->result;
    wg__buffer_printf(out, "\nobjective %s\n\n", report->objective);
    for (size_t i = 0; i < result->stage_count; i++)
        if (result->stages[i].point_count > 0)
            write_profile(report, i, with_color, out);
    wg__buffer_printf(out, "time      %.1f s\n", result->time_s);
    write_steps(result, out);
    write_energy(result, out);
    wg__buffer_puts(out, "saved     ");
    wg__train_verdict(report, out);
    wg__buffer_puts(out, "\n");
    for (size_t i = 0; i < result->stage_count; i++)
        if (result->is_governed && result->stages[i].point_count > 0)
            write_search(report, &result->stages[i], out);
    if (result->not_restored > 0)
        wg__buffer_printf(out, "LEFT      %zu settings did not come back: run 'wattgov restore'\n",
                          result->not_restored);
}
