/* SPDX-License-Identifier: MIT
 *
 * Writing the results of training studies: see training_results.h.
 */
#include "cli/training_results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/csv_write.h"
#include "base/json.h"
#include "cli/markup.h"
#include "cli/table.h"
#include "simulate/study.h"

struct wg_unit wg__unit_of_energy(double typical_j)
{
    static const struct wg_unit units[] = {
        {1e12, "TJ"}, {1e9, "GJ"}, {1e6, "MJ"}, {1e3, "kJ"}, {1, "J"}};
    size_t i = 0;
    /* 1641 MJ reads better than 1.641 GJ beside 85.3 MJ. */
    while (i + 1 < sizeof units / sizeof units[0] && !(typical_j >= 5 * units[i].size))
        i++;
    return units[i];
}

struct wg_unit wg__unit_of_time(double typical_s)
{
    if (typical_s < 600)
        return (struct wg_unit){1, "s"};
    return typical_s < 36000 ? (struct wg_unit){60, "min"} : (struct wg_unit){3600, "h"};
}

void wg__format_in(char out[static WG_QUANTITY_BYTES], double value, struct wg_unit unit)
{
    const double scaled = value / unit.size, size = fabs(scaled);
    const int decimals = size >= 999.5 ? 0 : size >= 99.95 ? 1 : size >= 9.995 ? 2 : 3;
    (void)snprintf(out, WG_QUANTITY_BYTES, "%.*f %s", decimals, scaled, unit.name);
}

void wg__format_share(char out[static WG_QUANTITY_BYTES], double share)
{
    const double percent = 100 * share;
    /* No "-0.0". */
    (void)snprintf(out, WG_QUANTITY_BYTES, "%.1f %%", fabs(percent) < 0.05 ? 0 : percent);
}

static void write_spread(struct wg_json *json, const char *key, struct wg_spread spread,
                         bool is_ratio)
{
    wg__json_key(json, key);
    wg__json_object(json);
    wg__json_member_double(json, "mean", spread.mean);
    if (!is_ratio)
        wg__json_member_double(json, "sd", spread.sd);
    wg__json_member_double(json, "worst", spread.worst);
    wg__json_close(json);
}

/* A yardstick: a fixed setting and what it is expected to cost over all recurrences. */
static void write_yardstick(struct wg_json *json, const char *key, double batch_size,
                            double limit_w, struct wg_training_bill total)
{
    wg__json_key(json, key);
    wg__json_object(json);
    wg__json_member_double(json, "batch_size", batch_size);
    wg__json_member_double(json, "power_limit_w", limit_w);
    wg__json_member_double(json, "energy_j", total.energy_j);
    wg__json_member_double(json, "time_s", total.time_s);
    wg__json_member_double(json, "cost_j", total.cost_j);
    wg__json_close(json);
}

static void write_case(struct wg_json *json, const struct wg_study *study,
                       const struct wg_study_case *of)
{
    const struct wg_study_world *world = &study->worlds[of->world];
    wg__json_object(json);
    wg__json_member_string(json, "gpu", world->gpu);
    wg__json_member_string(json, "job", world->job);
    wg__json_member_string(json, "policy", of->policy);
    wg__json_member_uint(json, "recurrences", study->recurrences);
    wg__json_member_uint(json, "seeds", study->seeds);
    write_spread(json, "energy_j", of->energy_j, false);
    write_spread(json, "time_s", of->time_s, false);
    write_spread(json, "cost_j", of->cost_j, false);
    write_spread(json, "cost_over_oracle", of->cost_over_oracle, true);
    write_spread(json, "cost_over_default", of->cost_over_default, true);
    write_spread(json, "regret_oracle_runs", of->regret_oracle_runs, true);
    wg__json_key(json, "final");
    wg__json_object(json);
    wg__json_member_double(json, "batch_size", of->final_batch_size);
    wg__json_member_double(json, "power_limit_w", of->final_limit_w);
    wg__json_close(json);
    wg__json_member_doubles(json, "cumulative_cost_j", of->cumulative_cost_j, study->recurrences);
    wg__json_member_doubles(json, "cumulative_low_j", of->cumulative_low_j, study->recurrences);
    wg__json_member_doubles(json, "cumulative_high_j", of->cumulative_high_j, study->recurrences);
    wg__json_member_doubles(json, "cumulative_default_j", world->cumulative_default_j,
                            study->recurrences);
    wg__json_member_doubles(json, "cumulative_oracle_j", world->cumulative_oracle_j,
                            study->recurrences);
    wg__json_member_double(json, "target_metric", world->target_metric);
    write_yardstick(json, "default", world->default_batch_size,
                    world->limit_w[world->limit_count - 1], world->default_total);
    write_yardstick(json, "oracle", world->oracle_batch_size, world->oracle_limit_w,
                    world->oracle_total);
    wg__json_member_double(json, "attempts_per_recurrence", of->attempts_per_recurrence);
    wg__json_member_uint(json, "gave_up", of->gave_up);
    wg__json_member_doubles(json, "batch_sizes", world->batch_size, world->arm_count);
    wg__json_member_doubles(json, "left_out", world->left_out, world->left_out_count);
    wg__json_close(json);
}

static void write_summary(struct wg_json *json, const struct wg_study_summary *of)
{
    wg__json_object(json);
    wg__json_member_string(json, "policy", of->policy);
    wg__json_member_double(json, "geomean_cost_over_default", of->geomean_cost_over_default);
    wg__json_member_double(json, "geomean_energy_over_default", of->geomean_energy_over_default);
    wg__json_member_double(json, "geomean_time_over_default", of->geomean_time_over_default);
    wg__json_member_double(json, "mean_excess_over_oracle", of->mean_excess_over_oracle);
    wg__json_member_double(json, "worst_excess_over_oracle", of->worst_excess_over_oracle);
    wg__json_member_uint(json, "cases_above_default", of->cases_above_default);
    wg__json_close(json);
}

/* What was asked for, as far as the results depend on it. */
static void write_request(struct wg_json *json, const struct wg_study_request *request)
{
    const struct wg_training_rules *rules = &request->rules;
    wg__json_member_double(json, "eta", rules->eta);
    wg__json_member_double(json, "beta", request->beta);
    wg__json_member_uint(json, "recurrences", rules->recurrences);
    wg__json_member_uint(json, "seeds", request->seeds);
    wg__json_member_uint(json, "first_seed", request->first_seed);
    wg__json_member_double(json, "concurrency", rules->concurrency);
    wg__json_member_uint(json, "window", request->window);
    const bool by_epoch = rules->charge == WG_CHARGE_EPOCH;
    wg__json_member_string(json, "profile_charge", by_epoch ? "epoch" : "seconds");
    wg__json_member_double(json, "profile_seconds", by_epoch ? (double)NAN : rules->probe_s);
    wg__json_member_double(json, "survey_seconds", rules->survey_s);
    wg__json_member_string(json, "drift_job", request->drift_job);
    wg__json_key(json, "drift_at");
    if (request->drift_job != NULL)
        wg__json_uint(json, rules->drift_at);
    else
        wg__json_null(json);
    wg__json_member_string(json, "warm_start", request->warm_gpu);
}

void wg__training_json(const struct wg_study *study, const struct wg_study_request *request,
                       struct wg_buffer *out)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.simulate.training/1");
    wg__json_key(&json, "cases");
    wg__json_array(&json);
    for (size_t i = 0; i < study->case_count; i++)
        write_case(&json, study, &study->cases[i]);
    wg__json_close(&json);
    wg__json_key(&json, "summary");
    wg__json_array(&json);
    for (size_t i = 0; i < study->summary_count; i++)
        write_summary(&json, &study->summaries[i]);
    wg__json_close(&json);
    wg__json_key(&json, "decision_us");
    wg__json_object(&json);
    wg__json_member_double(&json, "p50", study->decision_us_p50);
    wg__json_member_double(&json, "p99", study->decision_us_p99);
    wg__json_key(&json, "policies");
    wg__json_array(&json);
    for (size_t i = 0; i < study->summary_count; i++) {
        const struct wg_study_summary *of = &study->summaries[i];
        if (isnan(of->decision_us_p50))
            continue;
        wg__json_object(&json);
        wg__json_member_string(&json, "policy", of->policy);
        wg__json_member_double(&json, "p50", of->decision_us_p50);
        wg__json_member_double(&json, "p99", of->decision_us_p99);
        wg__json_close(&json);
    }
    wg__json_close(&json);
    wg__json_close(&json);
    write_request(&json, request);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}

void wg__training_csv(const struct wg_study *study, struct wg_buffer *out)
{
    wg__buffer_puts(out, "gpu,job,policy,recurrence,cumulative_cost_j,low_j,high_j,default_j,"
                         "oracle_j\n");
    for (size_t i = 0; i < study->case_count; i++) {
        const struct wg_study_case *of = &study->cases[i];
        const struct wg_study_world *world = &study->worlds[of->world];
        for (size_t r = 0; r < study->recurrences; r++) {
            wg__csv_put(out, world->gpu);
            wg__buffer_puts(out, ",");
            wg__csv_put(out, world->job);
            wg__buffer_printf(out, ",%s,%zu", of->policy, r + 1);
            const double values[] = {of->cumulative_cost_j[r], of->cumulative_low_j[r],
                                     of->cumulative_high_j[r], world->cumulative_default_j[r],
                                     world->cumulative_oracle_j[r]};
            for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
                wg__buffer_puts(out, ",");
                wg__csv_put_double(out, values[v]);
            }
            wg__buffer_puts(out, "\n");
        }
    }
}

static const struct wg_table_column gpu_columns[] = {
    {"job", WG_ALIGN_LEFT},    {"policy", WG_ALIGN_LEFT},       {"batch", WG_ALIGN_RIGHT},
    {"limit", WG_ALIGN_RIGHT}, {"energy", WG_ALIGN_RIGHT},      {"saved", WG_ALIGN_RIGHT},
    {"time", WG_ALIGN_RIGHT},  {"saved", WG_ALIGN_RIGHT},       {"cost", WG_ALIGN_RIGHT},
    {"saved", WG_ALIGN_RIGHT}, {"over oracle", WG_ALIGN_RIGHT}, {"regret", WG_ALIGN_RIGHT},
};

/* Of the policies that decide, the one with the least cost in its world: it stands out. */
static bool is_best(const struct wg_study *study, const struct wg_study_case *of)
{
    if (strcmp(of->policy, "default") == 0 || strcmp(of->policy, "oracle") == 0)
        return false;
    bool has_rival = false;
    for (size_t i = 0; i < study->case_count; i++) {
        const struct wg_study_case *other = &study->cases[i];
        if (other == of || other->world != of->world || strcmp(other->policy, "oracle") == 0)
            continue;
        has_rival = true;
        if (other->cost_j.mean < of->cost_j.mean)
            return false;
    }
    return has_rival;
}

bool wg__default_reaches(const struct wg_study_world *world)
{
    const double top_w = world->limit_w[world->limit_count - 1];
    for (size_t i = 0; i < world->point_count; i++)
        if (world->points[i].batch_size == world->default_batch_size &&
            world->points[i].power_limit_w == top_w)
            return true;
    return false;
}

static void add_quantity(struct wg_table *table, const char *text, double share_saved)
{
    char saved[WG_QUANTITY_BYTES];
    wg__table_cell(table, "%s", text);
    wg__format_share(saved, share_saved);
    wg__table_cell(table, "%s", saved);
}

static void add_row(const struct wg_study *study, const struct wg_study_case *of,
                    struct wg_table *table)
{
    const struct wg_study_world *world = &study->worlds[of->world];
    const struct wg_training_bill *usual = &world->default_total;
    char text[WG_QUANTITY_BYTES];
    wg__table_cell(table, "%s", world->job);
    wg__table_cell(table, "%s", of->policy);
    /* Where the default fails, the last recurrence was ended by another setting. */
    const bool is_default = strcmp(of->policy, "default") == 0;
    wg__table_cell(table, "%.10g", is_default ? world->default_batch_size : of->final_batch_size);
    wg__table_cell(table, "%g W",
                   is_default ? world->limit_w[world->limit_count - 1] : of->final_limit_w);
    wg__format_in(text, of->energy_j.mean, wg__unit_of_energy(usual->energy_j));
    add_quantity(table, text, 1 - of->energy_j.mean / usual->energy_j);
    wg__format_in(text, of->time_s.mean, wg__unit_of_time(usual->time_s));
    add_quantity(table, text, 1 - of->time_s.mean / usual->time_s);
    wg__format_in(text, of->cost_j.mean, wg__unit_of_energy(usual->cost_j));
    add_quantity(table, text, 1 - of->cost_over_default.mean);
    if (is_best(study, of))
        wg__table_emphasize(table);
    wg__format_share(text, of->cost_over_oracle.mean - 1);
    wg__table_cell(table, "%s", text);
    const double regret = of->regret_oracle_runs.mean;
    wg__table_cell(table, "%.2f", fabs(regret) < 0.005 ? 0 : regret);
}

void wg__training_gpu_table(const struct wg_study *study, const char *gpu, struct wg_table *out)
{
    wg__table_init(out, gpu_columns, sizeof gpu_columns / sizeof gpu_columns[0]);
    size_t last_world = SIZE_MAX;
    for (size_t i = 0; i < study->case_count; i++) {
        const struct wg_study_case *of = &study->cases[i];
        if (strcmp(study->worlds[of->world].gpu, gpu) != 0)
            continue;
        if (last_world != SIZE_MAX && of->world != last_world && study->summary_count > 1)
            wg__table_separate(out);
        last_world = of->world;
        add_row(study, of, out);
    }
}

static const struct wg_table_column summary_columns[] = {
    {"policy", WG_ALIGN_LEFT},
    {"energy saved", WG_ALIGN_RIGHT},
    {"time saved", WG_ALIGN_RIGHT},
    {"cost saved", WG_ALIGN_RIGHT},
    {"over oracle", WG_ALIGN_RIGHT},
    {"worst case", WG_ALIGN_RIGHT},
    {"dearer than default", WG_ALIGN_RIGHT},
};

void wg__training_summary_table(const struct wg_study *study, struct wg_table *out)
{
    wg__table_init(out, summary_columns, sizeof summary_columns / sizeof summary_columns[0]);
    for (size_t i = 0; i < study->summary_count; i++) {
        const struct wg_study_summary *of = &study->summaries[i];
        const double shares[] = {1 - of->geomean_energy_over_default,
                                 1 - of->geomean_time_over_default,
                                 1 - of->geomean_cost_over_default, of->mean_excess_over_oracle,
                                 of->worst_excess_over_oracle};
        wg__table_cell(out, "%s", of->policy);
        for (size_t k = 0; k < sizeof shares / sizeof shares[0]; k++) {
            char text[WG_QUANTITY_BYTES];
            wg__format_share(text, shares[k]);
            wg__table_cell(out, "%s", text);
        }
        if (strcmp(of->policy, "default") == 0)
            wg__table_cell(out, "–");
        else
            wg__table_cell(out, "%zu of %zu", of->cases_above_default, of->case_count);
    }
}

/* What a drift changes, and where the default is of no use after it. */
static void describe_drift(const struct wg_study *study, const struct wg_study_request *request,
                           struct wg_buffer *out)
{
    const size_t passed = request->rules.drift_at;
    wg__buffer_printf(out, "\nAfter %zu recurrence%s each job turns into ", passed,
                      passed == 1 ? "" : "s");
    wg__append_plain(out, request->drift_job);
    wg__buffer_puts(out,
                    ".\nEnergy, time and cost are those of both jobs together, as are those of the "
                    "default, which stays,\nand of the oracle, which takes the best setting of "
                    "each job.\n");
    bool is_first = true;
    for (size_t i = 0; i < study->world_count; i++) {
        const struct wg_study_world *world = &study->worlds[i];
        if (wg__default_reaches(world))
            continue;
        wg__buffer_puts(out,
                        is_first ? "The default never reaches the new job's target for: " : ", ");
        is_first = false;
        wg__append_plain(out, world->job);
        wg__buffer_puts(out, " on ");
        wg__append_plain(out, world->gpu);
    }
    if (!is_first)
        wg__buffer_printf(out,
                          ".\nFor each recurrence it is charged %d attempts in vain and then the "
                          "best setting.\n",
                          WG_ATTEMPTS_MAX);
}

void wg__training_text(const struct wg_study *study, const struct wg_study_request *request,
                       bool with_color, struct wg_buffer *out)
{
    struct wg_table table;
    for (size_t i = 0; i < study->world_count; i++) {
        const char *gpu = study->worlds[i].gpu;
        if (i > 0 && strcmp(gpu, study->worlds[i - 1].gpu) == 0)
            continue;
        wg__append_plain(out, gpu); /* the name of a file, so it may hold anything */
        wg__buffer_printf(out, ": %zu recurrence%s, mean of %zu seed%s, eta %g\n\n",
                          study->recurrences, study->recurrences == 1 ? "" : "s", study->seeds,
                          study->seeds == 1 ? "" : "s", request->rules.eta);
        wg__training_gpu_table(study, gpu, &table);
        wg__table_write(&table, with_color, out);
        wg__table_fini(&table);
        wg__buffer_puts(out, "\n");
    }
    wg__buffer_printf(
        out, "%zu case%s: geometric means against the default, mean excess over the oracle\n\n",
        study->world_count, study->world_count == 1 ? "" : "s");
    wg__training_summary_table(study, &table);
    wg__table_write(&table, with_color, out);
    wg__table_fini(&table);
    if (!isnan(study->decision_us_p50))
        wg__buffer_printf(out, "\nOne decision of %s takes %.1f us (median), %.1f us (99 %%).\n",
                          study->slowest_policy, study->decision_us_p50, study->decision_us_p99);
    if (request->drift_job != NULL)
        describe_drift(study, request, out);
    wg__buffer_puts(out,
                    "\nbatch, limit: chosen most often in the last recurrence. saved, over oracle: "
                    "against what default and\noracle are expected to take, so those two are off "
                    "by luck. regret: cost above the oracle's, in oracle runs.\n");
}
