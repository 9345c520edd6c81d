/* SPDX-License-Identifier: MIT
 *
 * What the forms of a tuning's report have in common: how a configuration stands, what the load
 * makes of it, and the words for both.
 *
 * Figures live in two worlds. A window measures a server that is fed as fast as it can serve; with
 * --arrivals, latencies and joules per request are then simulated at the real load and take the
 * place of the measured ones (live/tune_load.h). Reports say which is which.
 */
#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/table.h"
#include "cli/tune_report.h"
#include "live/tune_quantity.h"
#include "live/workload_figures.h"
#include "schedule/arrivals.h"
#include "wattgov/version.h"

/* -- How it stands ---------------------------------------------------------------------------- */

/* A share of one, and more, is how a workload says that it knows no error. */
static bool is_known(double error)
{
    return error > 0 && error < 0.99;
}

void wg__tune_standing(const struct wg_tune_report *report, size_t configuration,
                       struct wg_tune_standing *out)
{
    const struct wg_tune_result *result = report->result;
    const size_t limits = report->setup->goal.limit_count;
    double variance = 0;
    *out = (struct wg_tune_standing){0};
    for (size_t i = 0; i < result->count; i++) {
        const struct wg_trial *told = &result->trials[i].told;
        if (told->configuration != configuration || told->outcome != WG_TRIAL_MEASURED)
            continue;
        out->trials++;
        out->objective += told->objective;
        variance += is_known(told->objective_error) ? pow(told->objective_error, 2) : (double)NAN;
        for (size_t k = 0; k < limits; k++)
            out->figures[k] += told->figures[k];
    }
    const double count = out->trials > 0 ? (double)out->trials : (double)NAN;
    out->objective /= count;
    out->objective_error = sqrt(variance) / count;
    for (size_t k = 0; k < WG_TUNING_LIMITS_MAX; k++)
        out->figures[k] /= k < limits ? count : (double)NAN;
}

static double figure_of(const struct wg_tune_trial *trial, const char *name)
{
    for (size_t i = 0; i < trial->figure_count; i++)
        if (strcmp(trial->figures[i].name, name) == 0)
            return trial->figures[i].value;
    return NAN;
}

double wg__tune_standing_figure(const struct wg_tune_report *report, size_t configuration,
                                const char *name)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < report->result->count; i++) {
        const struct wg_tune_trial *trial = &report->result->trials[i];
        const double value = figure_of(trial, name);
        if (trial->told.configuration != configuration ||
            trial->told.outcome != WG_TRIAL_MEASURED || !isfinite(value))
            continue;
        sum += value;
        count++;
    }
    return count > 0 ? sum / (double)count : (double)NAN;
}

bool wg__tune_is_missed(const struct wg_tune_report *report, size_t limit, double value)
{
    const double bound = report->result->bounds[limit];
    const bool is_minimum = report->setup->goal.limits[limit].is_minimum;
    return isfinite(value) && isfinite(bound) && (is_minimum ? value < bound : value > bound);
}

struct wg_tune_saving wg__tune_saving(const struct wg_tune_report *report, size_t configuration)
{
    struct wg_tune_standing standing, preset;
    const size_t usual = report->setup->knobs.space->default_configuration;
    wg__tune_standing(report, configuration, &standing);
    wg__tune_standing(report, usual, &preset);
    const double ratio = standing.objective / preset.objective;
    if (configuration == usual)
        return (struct wg_tune_saving){.share = preset.trials > 0 ? 0 : (double)NAN, .error = 0};
    return (struct wg_tune_saving){
        .share = 1 - ratio,
        .error = ratio * hypot(standing.objective_error, preset.objective_error)};
}

const char *wg__tune_outcome_text(const struct wg_tune_report *report,
                                  const struct wg_tune_trial *trial)
{
    const struct wg_trial *told = &trial->told;
    bool misses = false;
    for (size_t i = 0; i < report->setup->goal.limit_count; i++)
        misses |= wg__tune_is_missed(report, i, told->figures[i]);
    if (told->outcome == WG_TRIAL_MEASURED && misses)
        return "over the limit";
    if (told->outcome == WG_TRIAL_CUT)
        return isfinite(told->objective) ? "overloaded: at least so much"
                                         : "ended early: over the limit for sure";
    return told->outcome == WG_TRIAL_OUT_OF_MEMORY ? "out of memory"
                                                   : wg__trial_outcome_word(told->outcome);
}

/* -- At the load ------------------------------------------------------------------------------ */

bool wg__tune_is_at_load(const struct wg_tune_report *report, const char *name)
{
    static const char *const names[] = {"mean_s",      "p50_s",      "p90_s",
                                        "p95_s",       "p99_s",      "p999_s",
                                        "utilization", "batch_mean", "energy_per_request_j"};
    for (size_t i = 0; i < sizeof names / sizeof *names && report->setup->request.arrivals; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Requests a second of the load; NAN: it tells none. */
static double rate_of(const char *arrivals)
{
    struct wg_arrivals *opened = NULL;
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    if (wg__arrivals_open(&opened, arrivals, &rng, NULL) != WG_OK)
        return NAN;
    const double rate = wg__arrivals_rate(opened);
    wg__arrivals_close(opened);
    return rate > 0 ? rate : (double)NAN;
}

/* The idle power that the simulation was given, of each replica. */
static double idle_power_w(const struct wg_tune_report *report, size_t configuration)
{
    const struct wg_tune_request *request = &report->setup->request;
    const double told_w = wg__tune_standing_figure(report, configuration, "idle_power_w");
    if (isfinite(told_w))
        return told_w;
    if (request->energy.kind == WG_TUNE_ENERGY_MODEL)
        return request->energy.idle_w;
    return isfinite(report->result->idle_w) ? report->result->idle_w : request->idle_w;
}

static double replicas_of(const struct wg_tuning_space *space, size_t configuration)
{
    for (size_t k = 0; k < space->knob_count; k++)
        if (space->knobs[k].role == WG_TUNING_REPLICAS)
            return wg__tuning_value(space, configuration, k);
    return 1;
}

bool wg__tune_at_load(const struct wg_tune_report *report, size_t configuration,
                      struct wg_tune_at_load *out)
{
    const char *arrivals = report->setup->request.arrivals;
    if (arrivals == NULL)
        return false;
    *out = (struct wg_tune_at_load){
        .utilization = wg__tune_standing_figure(report, configuration, "utilization"),
        .batch_mean = wg__tune_standing_figure(report, configuration, "batch_mean"),
        .request_j = wg__tune_standing_figure(report, configuration, "energy_per_request_j")};
    /* P_idle * (time of all replicas - busy time) / requests. */
    out->idle_j = idle_power_w(report, configuration) * fmax(0, 1 - out->utilization) *
                  replicas_of(report->setup->knobs.space, configuration) / rate_of(arrivals);
    return true;
}

void wg__tune_load_text(const struct wg_tune_report *report, size_t configuration,
                        struct wg_buffer *out)
{
    struct wg_tune_at_load load;
    if (!wg__tune_at_load(report, configuration, &load))
        return;
    const char *arrivals = report->setup->request.arrivals;
    wg__buffer_printf(out, "at %s%s (simulated): ", arrivals,
                      strncmp(arrivals, "trace:", 6) == 0 ? "" : "/s");
    if (isfinite(load.utilization))
        wg__buffer_printf(out, "utilization %.0f %%, mean batch %.3g", 100 * load.utilization,
                          load.batch_mean);
    else
        wg__buffer_puts(out, "not known");
    if (isfinite(load.request_j))
        wg__buffer_printf(out, ", %.4g J a request", load.request_j);
    if (isfinite(load.request_j) && isfinite(load.idle_j))
        wg__buffer_printf(out, ", of which %.4g J (%.0f %%) idle power", load.idle_j,
                          100 * load.idle_j / load.request_j);
}

/* Over all windows of a configuration: a mean of their rates would weigh short ones too much. */
static void find_flow(const struct wg_tune_report *report, size_t configuration, double *rate_out,
                      double *power_w_out)
{
    double requests = 0, energy_j = 0, time_s = 0;
    for (size_t i = 0; i < report->result->count; i++) {
        const struct wg_tune_trial *trial = &report->result->trials[i];
        if (trial->told.configuration != configuration || trial->told.outcome != WG_TRIAL_MEASURED)
            continue;
        requests += trial->requests;
        energy_j += trial->energy_j;
        time_s += trial->time_s;
    }
    *rate_out = requests / time_s;
    *power_w_out = energy_j / time_s;
    if (!isfinite(*rate_out))
        *rate_out = wg__tune_standing_figure(report, configuration, "requests_per_s");
    if (!isfinite(*power_w_out))
        *power_w_out = wg__tune_standing_figure(report, configuration, "power_w");
}

void wg__tune_measured_text(const struct wg_tune_report *report, size_t configuration,
                            struct wg_buffer *out)
{
    double rate = NAN, power_w = NAN;
    find_flow(report, configuration, &rate, &power_w);
    const char *mark = "as measured: ";
    if (isfinite(rate)) {
        wg__buffer_printf(out, "%s%.4g requests/s", mark, rate);
        mark = ", ";
    }
    if (isfinite(power_w)) {
        wg__buffer_printf(out, "%s%.4g W", mark, power_w);
        mark = ", ";
    }
    if (isfinite(rate) && isfinite(power_w) && rate > 0)
        wg__buffer_printf(out, "%s%.4g J a request", mark, power_w / rate);
}

const char *wg__tune_offered_text(const struct wg_tune_report *report)
{
    return wg__tune_goal_names(&report->setup->goal, "energy_per_request_j")
               ? "; energy_per_request_j counts the requests that are offered, not those that "
                 "happened to fall into a window"
               : "";
}

/* -- Words ------------------------------------------------------------------------------------ */

const char *wg__tune_reason_text(enum wg_tuner_reason reason)
{
    static const char *const texts[] = {[WG_TUNER_DEFAULT] = "the default",
                                        [WG_TUNER_START] = "a blind start",
                                        [WG_TUNER_SAVING] = "largest expected saving",
                                        [WG_TUNER_FEASIBLE] = "likeliest to keep the limits",
                                        [WG_TUNER_REMEASURE] = "once more, to be sure",
                                        [WG_TUNER_VALIDATE] = "confirms what is returned",
                                        [WG_TUNER_AGAIN] = "once more: it gave no figures"};
    _Static_assert(sizeof texts / sizeof *texts == WG_TUNER_REASON_COUNT, "a text each");
    return (unsigned)reason < WG_TUNER_REASON_COUNT ? texts[reason] : "";
}

/* Whether anything but this configuration was measured. */
static bool has_rival(const struct wg_tune_report *report, size_t configuration)
{
    for (size_t i = 0; i < report->result->count; i++) {
        const struct wg_trial *told = &report->result->trials[i].told;
        if (told->configuration != configuration && told->outcome == WG_TRIAL_MEASURED)
            return true;
    }
    return false;
}

void wg__tune_standing_text(const struct wg_tune_report *report, struct wg_buffer *out)
{
    const struct wg_tuner_result *best = &report->result->best;
    const bool is_default =
        best->configuration == report->setup->knobs.space->default_configuration;
    struct wg_tune_standing standing;
    wg__tune_standing(report, best->configuration, &standing);
    if (!has_rival(report, best->configuration)) {
        wg__buffer_puts(out, is_default ? "the default: nothing else was measured"
                                        : "nothing else was measured");
        return;
    }
    const bool has_limits = report->setup->goal.limit_count > 0;
    if (is_default)
        wg__buffer_printf(out, "the default: nothing%s is cheaper beyond the noise; ",
                          has_limits ? " that keeps the limits" : "");
    if (best->is_validated)
        wg__buffer_puts(out, "validated");
    else if (best->is_certain && has_limits)
        wg__buffer_puts(out, "surely within its limits: no second measurement was needed");
    else if (standing.trials < 2)
        wg__buffer_puts(out, has_limits ? "measured once" : "measured once, with no limit to keep");
    else
        wg__buffer_puts(out, "not validated");
}

void wg__tune_failure_text(const struct wg_tune_report *report, struct wg_buffer *out)
{
    const struct wg_tune_args *args = report->setup->args;
    for (size_t i = 0; i < report->result->count; i++) {
        const struct wg_tune_trial *trial = &report->result->trials[i];
        if (trial->failure[0] == '\0')
            continue;
        wg__buffer_printf(out, "trial %zu %s: %s", i + 1,
                          wg__trial_outcome_word(trial->told.outcome), trial->failure);
        if (args->server.url == NULL && !args->verbose)
            wg__buffer_puts(out, " (-v shows what the command writes to stderr)");
        return;
    }
}

void wg__tune_made_text(const struct wg_tune_report *report, struct wg_buffer *out)
{
    const struct wg_tune_setup *setup = report->setup;
    if (report->made_at != NULL)
        wg__buffer_printf(out, "%s ", report->made_at);
    if (report->host != NULL && report->host[0] != '\0')
        wg__buffer_printf(out, "on %s", report->host);
    for (size_t g = 0; g < setup->devices.gpu_count; g++) {
        const struct wg_device_info *info =
            wg_device_get_info(wg_machine_device(setup->devices.machine, setup->devices.gpus[g]));
        wg__buffer_printf(out, "%s%s %s", g > 0 ? ", " : ": ", info->label, info->name);
    }
    wg__buffer_printf(out, "; wattgov %s, policy %s, seed %llu", wg_version(),
                      wg__tuner_policy_word(setup->request.policy),
                      (unsigned long long)setup->request.seed);
}

void wg__tune_saving_text(const struct wg_tune_report *report, size_t configuration,
                          struct wg_buffer *out)
{
    const struct wg_tune_saving saving = wg__tune_saving(report, configuration);
    if (configuration == report->setup->knobs.space->default_configuration ||
        !isfinite(saving.share))
        return;
    wg__buffer_printf(out, "%+.1f %%", -100 * saving.share);
    if (isfinite(saving.error))
        wg__buffer_printf(out, " ± %.1f %%", 100 * saving.error);
    wg__buffer_puts(out, " against the default");
    if (isfinite(saving.error) && fabs(saving.share) < 2 * saving.error)
        wg__buffer_puts(out, " (within the noise)");
}

/* -- The configurations that count, side by side ---------------------------------------------- */

static void put_number(struct wg_table *table, double value)
{
    if (isfinite(value))
        wg__table_cell(table, "%.4g", value);
    else
        wg__table_cell(table, "-");
}

static void summary_row(const struct wg_tune_report *report, const char *title,
                        size_t configuration, struct wg_table *table)
{
    const struct wg_tune_setup *setup = report->setup;
    const struct wg_tuning_space *space = setup->knobs.space;
    struct wg_tune_standing standing;
    if (configuration >= space->count)
        return;
    const struct wg_tune_saving saving = wg__tune_saving(report, configuration);
    wg__tune_standing(report, configuration, &standing);
    wg__table_cell(table, "%s", title);
    for (size_t k = 0; k < space->knob_count; k++) {
        char text[WG_TUNE_QUANTITY_SIZE];
        wg__tune_level_text(text, &space->knobs[k], wg__tuning_level(space, configuration, k));
        wg__table_cell(table, "%s", text);
    }
    put_number(table, standing.objective);
    if (configuration != space->default_configuration && isfinite(saving.error))
        wg__table_cell(table, "%+.1f %% ± %.1f %%", -100 * saving.share, 100 * saving.error);
    else if (configuration != space->default_configuration && isfinite(saving.share))
        wg__table_cell(table, "%+.1f %%", -100 * saving.share);
    else
        wg__table_cell(table, "-");
    for (size_t i = 0; i < setup->goal.limit_count; i++) {
        const double value = standing.figures[i];
        if (!isfinite(value)) {
            wg__table_cell(table, "-");
            continue;
        }
        wg__table_cell(table, "%.4g (%s %.4g%s)", value,
                       setup->goal.limits[i].is_minimum ? ">=" : "<=", report->result->bounds[i],
                       wg__tune_is_missed(report, i, value) ? ", missed" : "");
        if (wg__tune_is_missed(report, i, value))
            wg__table_emphasize(table);
    }
    wg__table_cell(table, "%zu", standing.trials);
}

void wg__tune_summary_table(const struct wg_tune_report *report, struct wg_table_column *columns,
                            struct wg_table *table)
{
    const struct wg_tune_setup *setup = report->setup;
    size_t count = 0;
    columns[count++] = (struct wg_table_column){"", WG_ALIGN_LEFT};
    for (size_t k = 0; k < setup->knobs.space->knob_count; k++)
        columns[count++] =
            (struct wg_table_column){setup->knobs.space->knobs[k].name, WG_ALIGN_RIGHT};
    columns[count++] = (struct wg_table_column){setup->goal.objective.text, WG_ALIGN_RIGHT};
    columns[count++] = (struct wg_table_column){"against the default", WG_ALIGN_RIGHT};
    for (size_t i = 0; i < setup->goal.limit_count; i++)
        columns[count++] = (struct wg_table_column){setup->goal.limits[i].label, WG_ALIGN_RIGHT};
    columns[count++] = (struct wg_table_column){"trials", WG_ALIGN_RIGHT};
    wg__table_init(table, columns, count);
    const size_t preset = setup->knobs.space->default_configuration;
    summary_row(report, "returned", report->result->best.configuration, table);
    summary_row(report, "runner-up", report->result->best.runner_up, table);
    if (report->result->best.configuration != preset && report->result->best.runner_up != preset)
        summary_row(report, "default", preset, table);
}
