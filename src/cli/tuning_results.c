/* SPDX-License-Identifier: MIT
 *
 * Writing the results of tuning studies as JSON and CSV: see tuning_results.h.
 */
#include "cli/tuning_results.h"

#include <math.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/csv_write.h"
#include "base/json.h"
#include "live/tune_goal.h"

static void write_configuration(struct wg_json *json, const struct wg_tuning_grid *grid, size_t c)
{
    const struct wg_tuning_space *space = grid->space;
    wg__json_object(json);
    wg__json_key(json, "levels");
    wg__json_object(json);
    for (size_t k = 0; k < space->knob_count; k++) {
        const struct wg_tuning_knob *knob = &space->knobs[k];
        if (knob->labels != NULL)
            wg__json_member_string(json, knob->name, knob->labels[wg__tuning_level(space, c, k)]);
        else
            wg__json_member_double(json, knob->name, wg__tuning_value(space, c, k));
    }
    wg__json_close(json);
    wg__json_member_double(json, "objective", grid->costs[c]);
    wg__json_member_doubles(json, "figures", grid->figures + c * grid->goal.limit_count,
                            grid->goal.limit_count);
    wg__json_close(json);
}

static void write_mean(struct wg_json *json, const char *key, struct wg_tuning_mean mean)
{
    const double interval[] = {mean.low, mean.high};
    wg__json_member_doubles(json, key, interval, 2);
}

static void write_share(struct wg_json *json, const char *key, struct wg_tuning_share share)
{
    const double interval[] = {share.low, share.high};
    wg__json_member_doubles(json, key, interval, 2);
}

static void write_grid(struct wg_json *json, const struct wg_tuning_scene *scene)
{
    const struct wg_tuning_grid *grid = scene->grid;
    wg__json_key(json, "grid");
    wg__json_object(json);
    wg__json_member_string(json, "source", grid->source);
    wg__json_member_uint(json, "rows", grid->rows);
    wg__json_member_string(json, "differing", grid->differing);
    wg__json_member_uint(json, "configurations", grid->space->count);
    wg__json_member_uint(json, "available", scene->target.available);
    wg__json_member_uint(json, "feasible", scene->target.feasible);
    wg__json_member_uint(json, "near_optimal", scene->target.near_optimal);
    wg__json_member_string(json, "objective", grid->objective);
    wg__json_member_string(json, "objective_kind", wg__tuning_kind_word(grid->goal.objective));
    wg__json_key(json, "limits");
    wg__json_array(json);
    for (size_t i = 0; i < grid->goal.limit_count; i++) {
        const struct wg_tuning_limit *limit = &grid->goal.limits[i];
        wg__json_object(json);
        wg__json_member_string(json, "figure", limit->name);
        wg__json_member_string(json, "kind", wg__tuning_kind_word(limit->kind));
        wg__json_member_string(json, "sense", limit->is_minimum ? ">=" : "<=");
        wg__json_member_double(json, "bound", limit->bound);
        wg__json_close(json);
    }
    wg__json_close(json);
    wg__json_key(json, "optimum");
    write_configuration(json, grid, scene->target.optimum);
    wg__json_key(json, "default");
    write_configuration(json, grid, grid->space->default_configuration);
    wg__json_member_double(
        json, "saving", 1 - scene->target.least / grid->costs[grid->space->default_configuration]);
    wg__json_close(json);
}

static void write_returned(struct wg_json *json, const struct wg_tuning_summary *of)
{
    wg__json_key(json, "returned");
    wg__json_object(json);
    wg__json_member_double(json, "trials_mean", of->trials.mean);
    write_mean(json, "trials_interval", of->trials);
    wg__json_member_double(json, "trials_p95", of->trials_p95);
    wg__json_member_double(json, "failed_trials_mean", of->failed_trials);
    wg__json_member_double(json, "within_5pct", of->within_5.share);
    write_share(json, "within_5pct_interval", of->within_5);
    wg__json_member_double(json, "within_10pct", of->within_10.share);
    write_share(json, "within_10pct_interval", of->within_10);
    wg__json_member_double(json, "feasible", of->feasible.share);
    write_share(json, "feasible_interval", of->feasible);
    wg__json_member_double(json, "over_limit", of->over_limit.share);
    write_share(json, "over_limit_interval", of->over_limit);
    wg__json_member_double(json, "regret_mean", of->regret.mean);
    write_mean(json, "regret_interval", of->regret);
    wg__json_member_double(json, "saving_mean", of->saving.mean);
    write_mean(json, "saving_interval", of->saving);
    wg__json_member_double(json, "validated", of->validated);
    wg__json_key(json, "ends");
    wg__json_object(json);
    for (size_t i = 0; i < WG_TUNER_END_COUNT; i++)
        if (of->ends[i] > 0)
            wg__json_member_uint(json, wg__tuner_end_word((enum wg_tuner_end)i), of->ends[i]);
    wg__json_close(json);
    wg__json_close(json);
}

/* What would be returned after 1, 2, 3 ... trials. */
static void write_after(struct wg_json *json, const struct wg_tuning_study *study,
                        const struct wg_tuning_summary *of)
{
    wg__json_key(json, "after");
    wg__json_object(json);
    static const char *const keys[] = {"within_5pct", "over_limit", "regret_mean"};
    for (size_t f = 0; f < sizeof keys / sizeof keys[0]; f++) {
        wg__json_key(json, keys[f]);
        wg__json_array(json);
        for (size_t n = 0; n < study->max_trials; n++)
            wg__json_double(json, f == 0   ? of->after[n].within_5
                                  : f == 1 ? of->after[n].over_limit
                                           : of->after[n].regret);
        wg__json_close(json);
    }
    wg__json_close(json);
}

static void write_policy(struct wg_json *json, const struct wg_tuning_study *study,
                         const struct wg_tuning_summary *of)
{
    wg__json_object(json);
    wg__json_member_string(json, "policy", wg__tuner_policy_word(of->policy));
    wg__json_key(json, "first_hit");
    wg__json_object(json);
    wg__json_member_double(json, "mean", of->first_hit.mean);
    write_mean(json, "interval", of->first_hit);
    wg__json_member_double(json, "sd", of->first_hit_sd);
    wg__json_member_double(json, "p95", of->first_hit_p95);
    wg__json_member_uint(json, "misses", of->misses);
    wg__json_member_uint(json, "cap", study->hit_cap);
    wg__json_member_double(json, "exact_mean", of->first_hit_exact);
    wg__json_close(json);
    write_returned(json, of);
    write_after(json, study, of);
    wg__json_key(json, "decision_ms");
    wg__json_object(json);
    wg__json_member_double(json, "p50", of->decision_ms_p50);
    wg__json_member_double(json, "p99", of->decision_ms_p99);
    wg__json_close(json);
    wg__json_close(json);
}

static void write_trial(struct wg_json *json, const struct wg_tuning_grid *grid,
                        const struct wg_tuning_told *told)
{
    wg__json_object(json);
    wg__json_member_uint(json, "trial", told->number);
    wg__json_key(json, "configuration");
    write_configuration(json, grid, told->question.configuration);
    wg__json_member_string(json, "reason", wg__tuner_reason_word(told->question.reason));
    wg__json_member_string(json, "why", told->question.why);
    wg__json_member_string(json, "outcome", wg__trial_outcome_word(told->trial.outcome));
    const bool has_figures =
        told->trial.outcome == WG_TRIAL_MEASURED || told->trial.outcome == WG_TRIAL_CUT;
    wg__json_member_double(json, "objective", has_figures ? told->trial.objective : (double)NAN);
    wg__json_member_doubles(json, "figures", told->trial.figures,
                            has_figures ? grid->goal.limit_count : 0);
    wg__json_close(json);
}

static void write_trials(struct wg_json *json, const struct wg_tuning_grid *grid,
                         const struct wg_tuning_trials *trials)
{
    wg__json_key(json, "run");
    wg__json_object(json);
    wg__json_member_string(json, "policy", wg__tuner_policy_word(trials->setup.policy));
    wg__json_member_uint(json, "seed", trials->setup.seed);
    wg__json_key(json, "trials");
    wg__json_array(json);
    for (size_t i = 0; i < trials->count; i++)
        write_trial(json, grid, &trials->items[i]);
    wg__json_close(json);
    wg__json_member_string(json, "end", wg__tuner_end_word(trials->outcome.end));
    wg__json_member_string(json, "why", trials->result.why);
    wg__json_key(json, "returned");
    if (trials->outcome.returned < grid->space->count)
        write_configuration(json, grid, trials->outcome.returned);
    else
        wg__json_null(json);
    wg__json_member_bool(json, "is_feasible", trials->outcome.claims_feasible);
    wg__json_member_bool(json, "is_validated", trials->outcome.is_validated);
    wg__json_close(json);
}

static void write_request(struct wg_json *json, const struct wg_tuning_study_request *request)
{
    const struct wg_tuning_scene *scene = request->scene;
    wg__json_member_uint(json, "seeds", request->seeds);
    wg__json_member_uint(json, "first_seed", request->first_seed);
    wg__json_member_double(json, "noise", scene->noise);
    wg__json_member_double(json, "told_noise", scene->told);
    wg__json_member_uint(json, "max_trials", wg__tuning_study_trials(request));
    wg__json_member_bool(json, "validate", request->validate);
    wg__json_member_double(json, "xi", request->xi);
    wg__json_member_double(json, "stop_share",
                           request->stop_share > 0 ? request->stop_share : (double)NAN);
    const struct wg_tuning_failures *failures = &scene->failures;
    wg__json_key(json, "failures");
    wg__json_object(json);
    wg__json_member_double(json, "crash", failures->crash);
    wg__json_member_double(json, "hang", failures->hang);
    wg__json_member_double(json, "restart", failures->restart);
    wg__json_member_double(json, "out_of_memory", failures->out_of_memory);
    wg__json_member_double(json, "cut", failures->cut > 0 ? failures->cut : (double)NAN);
    wg__json_key(json, "refused");
    wg__json_array(json);
    for (size_t i = 0; i < failures->refusal_count; i++) {
        wg__json_object(json);
        wg__json_member_string(json, "knob", failures->refusals[i].column);
        wg__json_member_string(json, "level", failures->refusals[i].value);
        wg__json_close(json);
    }
    wg__json_close(json);
    wg__json_close(json);
}

void wg__tuning_json(const struct wg_tuning_study *study,
                     const struct wg_tuning_study_request *request,
                     const struct wg_tuning_trials *trials, struct wg_buffer *out)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.simulate.tuning/1");
    write_grid(&json, study->scene);
    wg__json_key(&json, "policies");
    wg__json_array(&json);
    for (size_t i = 0; i < study->summary_count; i++)
        write_policy(&json, study, &study->summaries[i]);
    wg__json_close(&json);
    if (trials != NULL)
        write_trials(&json, study->scene->grid, trials);
    write_request(&json, request);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}

/* -- CSV ------------------------------------------------------------------------------------- */

static void append_run(const struct wg_tuning_study *study, const struct wg_tuning_summary *of,
                       const struct wg_tuning_outcome *run, struct wg_buffer *out)
{
    const struct wg_tuning_scene *scene = study->scene;
    const struct wg_tuning_grid *grid = scene->grid;
    const size_t c = run->returned;
    const bool has_returned = c < grid->space->count;
    wg__buffer_printf(out, "%s,%llu,", wg__tuner_policy_word(of->policy),
                      (unsigned long long)run->seed);
    if (run->first_hit != 0)
        wg__buffer_printf(out, "%zu", run->first_hit);
    wg__buffer_printf(out, ",%zu,%zu,%s,%d,%d", run->trials, run->failed_trials,
                      wg__tuner_end_word(run->end), has_returned && scene->target.is_feasible[c],
                      has_returned && scene->target.is_near[c]);
    wg__buffer_puts(out, ",");
    if (has_returned)
        wg__csv_put_double(out, grid->costs[c]);
    for (size_t i = 0; i < grid->goal.limit_count; i++) {
        wg__buffer_puts(out, ",");
        if (has_returned)
            wg__csv_put_double(out, wg__tuning_grid_figure(grid, c, i));
    }
    for (size_t k = 0; k < grid->space->knob_count; k++) {
        const struct wg_tuning_knob *knob = &grid->space->knobs[k];
        wg__buffer_puts(out, ",");
        if (has_returned && knob->labels != NULL)
            wg__csv_put(out, knob->labels[wg__tuning_level(grid->space, c, k)]);
        else if (has_returned)
            wg__csv_put_double(out, wg__tuning_value(grid->space, c, k));
    }
    wg__buffer_puts(out, "\n");
}

void wg__tuning_csv(const struct wg_tuning_study *study, struct wg_buffer *out)
{
    const struct wg_tuning_grid *grid = study->scene->grid;
    wg__buffer_puts(out,
                    "policy,seed,first_hit,trials,failed_trials,end,is_feasible,is_within_5pct,"
                    "objective");
    for (size_t i = 0; i < grid->goal.limit_count; i++)
        wg__buffer_printf(out, ",figure_%zu", i + 1);
    for (size_t k = 0; k < grid->space->knob_count; k++) {
        wg__buffer_puts(out, ",");
        wg__csv_put(out, grid->space->knobs[k].name);
    }
    wg__buffer_puts(out, "\n");
    for (size_t p = 0; p < study->summary_count; p++)
        for (size_t i = 0; i < study->seeds; i++)
            append_run(study, &study->summaries[p], &study->summaries[p].outcomes[i], out);
}

/* -- A single run ---------------------------------------------------------------------------- */

static void record(const struct wg_tuner_question *question, const struct wg_trial *trial,
                   size_t number, void *context)
{
    enum { FIRST = 64 };
    struct wg_tuning_trials *trials = context;
    if (trials->count == trials->capacity) {
        const size_t capacity = trials->capacity != 0 ? 2 * trials->capacity : FIRST;
        struct wg_tuning_told *items = wg__realloc_array(trials->items, capacity, sizeof *items);
        if (items == NULL) {
            trials->has_overflowed = true;
            return;
        }
        trials->items = items;
        trials->capacity = capacity;
    }
    trials->items[trials->count++] =
        (struct wg_tuning_told){.question = *question, .trial = *trial, .number = number};
}

enum wg_code wg__tuning_trials_run(struct wg_tuning_trials *trials,
                                   const struct wg_tuning_setup *setup, struct wg_error *err)
{
    *trials = (struct wg_tuning_trials){.setup = *setup};
    const enum wg_code code =
        wg__tuning_run_to_end(setup, NULL, record, trials, &trials->outcome, &trials->result, err);
    return code == WG_OK && trials->has_overflowed ? wg__fail(err, WG_ENOMEM, "out of memory")
                                                   : code;
}

void wg__tuning_trials_fini(struct wg_tuning_trials *trials)
{
    wg__free(trials->items);
    trials->items = NULL;
}
