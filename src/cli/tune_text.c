/* SPDX-License-Identifier: MIT
 *
 * `wattgov tune`: the report for a terminal.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/table.h"
#include "cli/tune_report.h"
#include "live/tune_quantity.h"

const char *wg__tune_end_key(const struct wg_tune_report *report)
{
    const struct wg_tune_result *result = report->result;
    if (result->was_foreign)
        return "foreign";
    if (result->was_held)
        return "held";
    if (result->signal != 0)
        return "interrupted";
    if (result->ended_by_time)
        return "time";
    if (result->has_failed || result->best.end == WG_TUNER_RUNNING)
        return "failed";
    return wg__tuner_end_word(result->best.end);
}

void wg__tune_report_energy(const struct wg_tune_report *report,
                            char out[static WG_TUNE_ENERGY_TEXT_SIZE])
{
    wg__tune_energy_text(out, &report->setup->energy, &report->setup->devices,
                         report->result->source);
}

/* -- The table -------------------------------------------------------------------------------- */

static size_t make_columns(const struct wg_tune_report *report, struct wg_table_column *columns)
{
    const struct wg_tune_setup *setup = report->setup;
    size_t count = 0;
    columns[count++] = (struct wg_table_column){"#", WG_ALIGN_RIGHT};
    for (size_t k = 0; k < setup->knobs.count; k++)
        columns[count++] = (struct wg_table_column){setup->knobs.knobs[k].name, WG_ALIGN_RIGHT};
    columns[count++] = (struct wg_table_column){setup->goal.objective.text, WG_ALIGN_RIGHT};
    for (size_t i = 0; i < setup->goal.limit_count; i++)
        columns[count++] = (struct wg_table_column){setup->goal.limits[i].label, WG_ALIGN_RIGHT};
    columns[count++] = (struct wg_table_column){"outcome", WG_ALIGN_LEFT};
    columns[count++] = (struct wg_table_column){"why", WG_ALIGN_LEFT};
    return count;
}

/* An error of a share of one is none. */
void wg__tune_figure_text(char out[static WG_TUNE_FIGURE_SIZE], double value, double error)
{
    if (error >= 0.99)
        (void)snprintf(out, WG_TUNE_FIGURE_SIZE, "%.4g ± ?", value);
    else if (error > 0)
        (void)snprintf(out, WG_TUNE_FIGURE_SIZE, "%.4g ± %.1f %%", value, 100 * error);
    else
        (void)snprintf(out, WG_TUNE_FIGURE_SIZE, "%.4g", value);
}

/* A bound of a trial that was cut is marked. */
static void value_cell(struct wg_table *table, double value, double error, const char *mark)
{
    char text[WG_TUNE_FIGURE_SIZE] = "-";
    if (isfinite(value))
        wg__tune_figure_text(text, value, error);
    wg__table_cell(table, "%s%s", isfinite(value) ? mark : "", text);
}

static void trial_row(const struct wg_tune_report *report, size_t index, struct wg_table *table)
{
    const struct wg_tune_setup *setup = report->setup;
    const struct wg_tune_trial *trial = &report->result->trials[index];
    const struct wg_trial *told = &trial->told;
    const struct wg_tuning_space *space = setup->knobs.space;
    const bool is_best = told->configuration == report->result->best.configuration;
    wg__table_cell(table, "%zu", index + 1);
    for (size_t k = 0; k < space->knob_count; k++) {
        char text[WG_TUNE_QUANTITY_SIZE];
        wg__tune_level_text(text, &space->knobs[k],
                            wg__tuning_level(space, told->configuration, k));
        wg__table_cell(table, "%s", text);
        if (is_best)
            wg__table_emphasize(table);
    }
    const char *mark = told->outcome == WG_TRIAL_CUT ? ">= " : "";
    value_cell(table, told->objective, told->objective_error, mark);
    for (size_t i = 0; i < setup->goal.limit_count; i++)
        value_cell(table, told->figures[i], told->figure_errors[i],
                   setup->goal.limits[i].is_minimum ? "" : mark);
    wg__table_cell(table, "%s", wg__tune_outcome_text(report, trial));
    wg__table_cell(table, "%s", wg__tune_reason_text(trial->reason));
}

void wg__tune_table(const struct wg_tune_report *report, struct wg_table_column *columns,
                    struct wg_table *table)
{
    wg__table_init(table, columns, make_columns(report, columns));
    for (size_t i = 0; i < report->result->count; i++)
        trial_row(report, i, table);
}

/* -- The text --------------------------------------------------------------------------------- */

static void write_limit(const struct wg_tune_report *report, size_t i, double value,
                        struct wg_buffer *out)
{
    const struct wg_tune_term *limit = &report->setup->goal.limits[i];
    const char *relation = limit->is_minimum ? ">=" : "<=";
    wg__buffer_printf(out, "    %-24s %.4g, limit %s %.4g%s\n", limit->text, value, relation,
                      report->result->bounds[i],
                      wg__tune_is_missed(report, i, value) ? " (missed)" : "");
}

/* A line of a text that is made piece by piece; none where it is empty. */
static void write_line(void (*make)(const struct wg_tune_report *, size_t, struct wg_buffer *),
                       const struct wg_tune_report *report, size_t configuration,
                       struct wg_buffer *out)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    make(report, configuration, &text);
    out->failed |= text.failed;
    if (!text.failed && text.length > 0)
        wg__buffer_printf(out, "    %s\n", text.data);
    wg__buffer_fini(&text);
}

static void write_configuration(const struct wg_tune_report *report, const char *title,
                                size_t configuration, struct wg_buffer *out)
{
    const struct wg_tuning_space *space = report->setup->knobs.space;
    struct wg_tune_standing standing;
    if (configuration >= space->count)
        return;
    wg__tune_standing(report, configuration, &standing);
    wg__buffer_printf(out, "%-10s ", title);
    wg__tune_configuration_text(out, space, configuration);
    if (configuration == report->result->best.configuration) {
        wg__buffer_puts(out, " (");
        wg__tune_standing_text(report, out);
        wg__buffer_puts(out, ")");
    } else if (configuration == space->default_configuration && strcmp(title, "default") != 0) {
        wg__buffer_puts(out, " (the default)");
    }
    wg__buffer_puts(out, "\n");
    if (standing.trials == 0)
        return;
    wg__buffer_printf(out, "    %-24s %.4g", report->setup->goal.objective.text,
                      standing.objective);
    if (configuration != space->default_configuration &&
        isfinite(wg__tune_saving(report, configuration).share))
        wg__buffer_puts(out, ", ");
    wg__tune_saving_text(report, configuration, out);
    wg__buffer_puts(out, "\n");
    for (size_t i = 0; i < report->setup->goal.limit_count; i++)
        write_limit(report, i, standing.figures[i], out);
    write_line(wg__tune_load_text, report, configuration, out);
    write_line(wg__tune_measured_text, report, configuration, out);
}

static void write_end(const struct wg_tune_report *report, struct wg_buffer *out)
{
    const struct wg_tune_result *result = report->result;
    size_t discarded = 0, refused = 0;
    for (size_t i = 0; i < result->count; i++) {
        discarded += result->trials[i].told.outcome == WG_TRIAL_DISCARDED;
        refused += result->trials[i].told.outcome == WG_TRIAL_REFUSED;
    }
    const size_t configurations = report->setup->knobs.space->count;
    wg__buffer_printf(out, "%zu trial%s of %zu configuration%s in %.1f s", result->best.trials,
                      result->best.trials == 1 ? "" : "s", configurations,
                      configurations == 1 ? "" : "s", result->time_s);
    if (result->best.failed_trials > 0)
        wg__buffer_printf(out, ", %zu failed", result->best.failed_trials);
    if (refused > 0)
        wg__buffer_printf(out, ", %zu levels refused", refused);
    if (discarded > 0)
        wg__buffer_printf(out, ", %zu samples thrown away", discarded);
    if (result->resumed > 0)
        wg__buffer_printf(out, ", %zu from the state", result->resumed);
    wg__buffer_printf(out, "; end: %s", wg__tune_end_key(report));
    if (result->best.why[0] != '\0' && (result->best.end != WG_TUNER_RUNNING || result->was_held))
        wg__buffer_printf(out, " (%s)", result->best.why);
    wg__buffer_puts(out, "\n");
}

static void write_reasons(const struct wg_tune_report *report, struct wg_buffer *out)
{
    for (size_t i = 0; i < report->result->count; i++) {
        const struct wg_tune_trial *trial = &report->result->trials[i];
        wg__buffer_printf(out, "trial %zu: ", i + 1);
        wg__tune_configuration_text(out, report->setup->knobs.space, trial->told.configuration);
        wg__buffer_printf(out, "\n    why: %s\n", trial->why);
        if (trial->failure[0] != '\0')
            wg__buffer_printf(out, "    %s: %s\n", wg__trial_outcome_word(trial->told.outcome),
                              trial->failure);
    }
    if (report->result->best.why[0] != '\0')
        wg__buffer_printf(out, "end: %s\n", report->result->best.why);
    wg__buffer_puts(out, "\n");
}

/* What the returned configuration misses, and by how much; of one that was never measured whole,
 * the bound that its cut window gave. */
static void write_nearest(const struct wg_tune_report *report, struct wg_buffer *out)
{
    const struct wg_tune_result *result = report->result;
    struct wg_tune_standing standing;
    wg__tune_standing(report, result->best.configuration, &standing);
    for (size_t i = 0; i < result->count && standing.trials == 0; i++)
        if (result->trials[i].told.configuration == result->best.configuration &&
            result->trials[i].told.outcome == WG_TRIAL_CUT)
            memcpy(standing.figures, result->trials[i].told.figures, sizeof standing.figures);
    wg__buffer_puts(out, "nothing is known to meet the limits; nearest:");
    bool is_named = false;
    for (size_t i = 0; i < report->setup->goal.limit_count; i++) {
        const struct wg_tune_term *limit = &report->setup->goal.limits[i];
        if (isfinite(standing.figures[i]) && !wg__tune_is_missed(report, i, standing.figures[i]))
            continue;
        wg__buffer_printf(out, "%s %s", is_named ? "," : "", limit->text);
        is_named = true;
        if (isfinite(standing.figures[i]))
            wg__buffer_printf(out, " %s%.3g", standing.trials == 0 ? "at least " : "",
                              standing.figures[i]);
        else
            wg__buffer_puts(out, " unknown");
        wg__buffer_printf(out, " of %s %.3g", limit->is_minimum ? ">=" : "<=", result->bounds[i]);
    }
    wg__buffer_puts(out, is_named ? "\n" : " measured within them, and not sure of it\n");
}

/* Whose idle power the simulation was given; what we measured ourselves needs no words. */
static const char *idle_words(const struct wg_tune_report *report)
{
    const struct wg_tune_request *request = &report->setup->request;
    const size_t best = report->result->best.configuration;
    if (isfinite(wg__tune_standing_figure(report, best, "idle_power_w")))
        return "; idle power as the workload tells it";
    if (request->energy.kind == WG_TUNE_ENERGY_MODEL)
        return "; idle power as stated";
    if (isfinite(report->result->idle_w))
        return "";
    return request->idle_w > 0 ? "; idle power as given"
                               : "; idle power, which nothing tells, counts as 0 W";
}

void wg__tune_text(const struct wg_tune_report *report, bool with_color, struct wg_buffer *out)
{
    const struct wg_tune_result *result = report->result;
    const size_t preset = report->setup->knobs.space->default_configuration;
    char energy[WG_TUNE_ENERGY_TEXT_SIZE];
    struct wg_table_column columns[WG_TUNE_COLUMNS_MAX];
    struct wg_table table;
    wg__tune_table(report, columns, &table);
    wg__table_write(&table, with_color, out);
    wg__table_fini(&table);
    wg__buffer_puts(out, "\n");
    /* Else they were told as they came. */
    if (report->setup->args->explain && report->setup->args->quiet)
        write_reasons(report, out);
    write_end(report, out);
    wg__tune_report_energy(report, energy);
    wg__buffer_printf(out, "energy: %s\n", energy);
    if (report->setup->request.arrivals != NULL)
        wg__buffer_printf(out, "load: %s, simulated from measured times and powers%s\n",
                          report->setup->args->arrivals, idle_words(report));
    else if (report->setup->args->arrivals != NULL)
        wg__buffer_printf(out, "load: %s, sent as it is%s\n", report->setup->args->arrivals,
                          wg__tune_offered_text(report));
    wg__buffer_puts(out, "\n");
    if (result->best.configuration >= report->setup->knobs.space->count) {
        wg__buffer_puts(out, "nothing was measured: there is nothing to return\n");
        wg__tune_failure_text(report, out);
        wg__buffer_puts(out, "\n");
        return;
    }
    if (!result->best.is_feasible && report->setup->goal.limit_count > 0)
        write_nearest(report, out);
    write_configuration(report, "returned", result->best.configuration, out);
    write_configuration(report, "runner-up", result->best.runner_up, out);
    if (result->best.configuration != preset && result->best.runner_up != preset)
        write_configuration(report, "default", preset, out);
    if (result->signal != 0 && report->setup->request.state_path != NULL)
        wg__buffer_puts(out, "\ngo on: the same command with --resume\n");
}
