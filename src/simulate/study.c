/* SPDX-License-Identifier: MIT
 *
 * Running a study: threads replay, one at a time adds up. See study.h.
 *
 *     task = (case, seed), numbered by case and then by seed
 *
 *     worker:  take the next task -> replay it into the worker's own record -> wait for its turn
 *              -> add the record to the sum -> the last seed of a case: finish the case
 *
 * Tasks are added strictly in their order, which makes floating-point sums the same for any number
 * of threads, lets one sum serve all cases, and makes the first error the same one. Neighbouring
 * tasks take about the same time, so the waiting is short: at most one record per worker is in the
 * air.
 *
 * The times of decisions go into a histogram with buckets 2 % wide: a study may have billions.
 *
 * Owns: scenes, records and sums until the study is done.    Threads: the mutex guards all that is
 * below it in `struct runner`; records belong to their workers.
 */
#include "simulate/study.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "math/statistics.h"
#include "simulate/study_scene.h"
#include "simulate/study_sum.h"

enum { DECISIONS_KEPT_MAX = 1 << 16 /* per replay */, BUCKETS = 1280 };

/* Of the histogram of decision times: 40 octaves from 2^-10 us on. */
static const double buckets_per_octave = 32;
static const double octaves_below_1_us = 10;

/* A policy as it is replayed. */
struct plan {
    const char *name;
    const struct wg_batch_policy_ops *ops;
    enum { DECIDES, IS_DEFAULT, IS_ORACLE } kind;
    enum wg_power_search_method search;
};

struct runner {
    const struct wg_study_request *request;
    struct wg_training_rules rules;
    struct wg_study_scenes scenes;
    size_t plan_count;
    struct plan plans[WG_STUDY_POLICIES_MAX];
    size_t task_count;
    atomic_size_t next_task;

    pthread_mutex_t mutex;
    pthread_cond_t turn_changed;
    size_t turn; /* the task that is added next */
    bool has_failed;
    enum wg_code code;
    struct wg_error error;
    struct wg_study *study;
    struct wg_study_sum sum;
    uint64_t decisions[WG_STUDY_POLICIES_MAX][BUCKETS]; /* per plan */
};

struct worker {
    struct runner *runner;
    struct wg_training_record record;
    double *costs; /* the record's arrays */
    unsigned char *choices;
    pthread_t thread;
};

static void count_decisions(uint64_t buckets[BUCKETS], const struct wg_training_record *record)
{
    const size_t kept = record->decisions < record->decision_capacity ? record->decisions
                                                                      : record->decision_capacity;
    for (size_t i = 0; i < kept; i++) {
        const double octaves = log2((double)record->decision_us[i]) + octaves_below_1_us;
        const double bucket = fmin(fmax(octaves * buckets_per_octave, 0), BUCKETS - 1);
        buckets[(size_t)bucket]++;
    }
}

/* A quantile of the decision times: the middle of its bucket. NaN when there are none. */
static double decision_quantile(const uint64_t buckets[BUCKETS], double share)
{
    uint64_t total = 0;
    for (size_t i = 0; i < BUCKETS; i++)
        total += buckets[i];
    double left = share * (double)total;
    for (size_t i = 0; i < BUCKETS && total > 0; i++) {
        left -= (double)buckets[i];
        if (left <= 0)
            return exp2(((double)i + 0.5) / buckets_per_octave - octaves_below_1_us);
    }
    return NAN;
}

/* The fixed policy at the best setting of each life of the job. It learns nothing and its luck is
 * drawn by recurrence, so the part before a drift can be replayed by itself and put in place. */
static enum wg_code replay_oracle(const struct runner *runner, const struct wg_study_scene *scene,
                                  struct wg_training_setup *setup, uint64_t seed,
                                  struct wg_training_record *record, struct wg_error *err)
{
    const struct wg_training_costs *before = &scene->costs, *after = &scene->drifted_costs;
    struct wg_training_rules rules = runner->rules;
    size_t attempts = 0, gave_up = 0;
    if (scene->drifted != NULL && rules.drift_at < rules.recurrences) {
        setup->options.fixed_arm = after->oracle_arm;
        setup->options.fixed_limit = (int)after->oracle_limit;
        enum wg_code code = wg__training_replay(setup, &rules, seed, scene->rng_key, record, err);
        attempts = record->attempts;
        gave_up = record->gave_up;
        rules.recurrences = rules.drift_at;
        if (code == WG_OK)
            code = wg__training_replay(setup, &rules, seed, scene->rng_key, record, err);
        if (code != WG_OK)
            return code;
        attempts -= record->attempts;
        gave_up -= record->gave_up;
    }
    setup->options.fixed_arm = before->oracle_arm;
    setup->options.fixed_limit = (int)before->oracle_limit;
    const enum wg_code code = wg__training_replay(setup, &rules, seed, scene->rng_key, record, err);
    record->attempts += attempts;
    record->gave_up += gave_up;
    return code;
}

static enum wg_code replay(const struct runner *runner, size_t task,
                           struct wg_training_record *record, struct wg_error *err)
{
    const struct wg_study_request *request = runner->request;
    const size_t case_index = task / request->seeds;
    const uint64_t seed = request->first_seed + task % request->seeds;
    const struct wg_study_scene *scene = &runner->scenes.items[case_index / runner->plan_count];
    const struct plan *plan = &runner->plans[case_index % runner->plan_count];
    struct wg_training_setup setup = {
        .training_case = scene->present,
        .drifted = scene->drifted,
        .warm = scene->warm,
        .warm_recurrences = request->warm_recurrences,
        .ops = plan->ops,
        .options = {.beta = request->beta,
                    .window = request->window,
                    .concurrent = runner->rules.concurrency > 1},
        .search = plan->search,
    };
    if (plan->kind == IS_ORACLE)
        return replay_oracle(runner, scene, &setup, seed, record, err);
    if (plan->kind == IS_DEFAULT) {
        setup.options.fixed_arm = scene->present->default_arm;
        setup.options.fixed_limit = (int)scene->present->limit_count - 1;
    }
    return wg__training_replay(&setup, &runner->rules, seed, scene->rng_key, record, err);
}

/* Adds the record of the task whose turn it is. The mutex is held. */
static enum wg_code add_record(struct runner *runner, size_t task,
                               const struct wg_training_record *record, struct wg_error *err)
{
    const size_t case_index = task / runner->request->seeds;
    const size_t plan = case_index % runner->plan_count;
    if (runner->plans[plan].kind == DECIDES)
        count_decisions(runner->decisions[plan], record);
    wg__study_sum_add(&runner->sum, record);
    if (runner->sum.added < runner->request->seeds)
        return WG_OK;
    struct wg_study_case *done = &runner->study->cases[case_index];
    return wg__study_sum_finish(&runner->sum, &runner->study->worlds[done->world],
                                &runner->study->arena, done, err);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct runner *runner = worker->runner;
    for (;;) {
        const size_t task = atomic_fetch_add(&runner->next_task, 1);
        if (task >= runner->task_count)
            return NULL;
        struct wg_error err = {0};
        enum wg_code code = replay(runner, task, &worker->record, &err);
        (void)pthread_mutex_lock(&runner->mutex);
        while (runner->turn != task && !runner->has_failed)
            (void)pthread_cond_wait(&runner->turn_changed, &runner->mutex);
        const bool is_over = runner->has_failed;
        if (!is_over && code == WG_OK)
            code = add_record(runner, task, &worker->record, &err);
        if (!is_over && code != WG_OK) {
            runner->has_failed = true;
            runner->code = code;
            runner->error = err;
        }
        runner->turn++;
        const bool must_stop = runner->has_failed;
        (void)pthread_cond_broadcast(&runner->turn_changed);
        (void)pthread_mutex_unlock(&runner->mutex);
        if (must_stop)
            return NULL;
        if (runner->request->progress != NULL)
            runner->request->progress(runner->request->progress_context);
    }
}

static void fini_worker(struct worker *worker)
{
    wg__free(worker->costs);
    wg__free(worker->choices);
    wg__free(worker->record.decision_us);
}

static enum wg_code init_worker(struct worker *worker, struct runner *runner, struct wg_error *err)
{
    const size_t recurrences = runner->rules.recurrences;
    const size_t kept = recurrences < DECISIONS_KEPT_MAX / 2 ? 2 * recurrences : DECISIONS_KEPT_MAX;
    worker->runner = runner;
    worker->costs = wg__alloc_zeroed(recurrences, 3 * sizeof *worker->costs);
    worker->choices = wg__alloc_zeroed(recurrences, 2 * sizeof *worker->choices);
    worker->record.decision_us = wg__alloc_zeroed(kept, sizeof *worker->record.decision_us);
    if (worker->costs == NULL || worker->choices == NULL || worker->record.decision_us == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    worker->record.decision_capacity = kept;
    worker->record.cost_j = worker->costs;
    worker->record.energy_j = worker->costs + recurrences;
    worker->record.time_s = worker->costs + 2 * recurrences;
    worker->record.arm = worker->choices;
    worker->record.limit = worker->choices + recurrences;
    return WG_OK;
}

/* Replays everything. The calling thread works too, so a system that grants no further thread only
 * makes it slower. */
static enum wg_code run_tasks(struct runner *runner, struct wg_error *err)
{
    size_t count = runner->request->threads;
    if (count > runner->task_count)
        count = runner->task_count;
    struct worker *workers = wg__alloc_zeroed(count, sizeof *workers);
    if (workers == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < count && code == WG_OK; i++)
        code = init_worker(&workers[i], runner, err);
    if (code == WG_OK) {
        size_t started = 1;
        while (started < count &&
               pthread_create(&workers[started].thread, NULL, work, &workers[started]) == 0)
            started++;
        (void)work(&workers[0]);
        for (size_t i = 1; i < started; i++)
            (void)pthread_join(workers[i].thread, NULL);
        code = runner->code;
        if (code != WG_OK && err != NULL)
            *err = runner->error;
    }
    for (size_t i = 0; i < count; i++)
        fini_worker(&workers[i]);
    wg__free(workers);
    return code;
}

/* Geometric means over the cases of one policy. */
static enum wg_code summarize(struct wg_study *study, size_t policy, size_t policy_count,
                              struct wg_error *err)
{
    const size_t count = study->world_count;
    double *ratios = wg__alloc_zeroed(count, 4 * sizeof *ratios);
    if (ratios == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    double *cost = ratios, *energy = ratios + count, *time = ratios + 2 * count;
    double *excess = ratios + 3 * count;
    struct wg_study_summary *out = &study->summaries[policy];
    *out = (struct wg_study_summary){.policy = study->cases[policy].policy, .case_count = count};
    for (size_t i = 0; i < count; i++) {
        const struct wg_study_case *of = &study->cases[i * policy_count + policy];
        const struct wg_study_world *world = &study->worlds[i];
        cost[i] = of->cost_over_default.mean;
        energy[i] = of->energy_j.mean / world->default_total.energy_j;
        time[i] = of->time_s.mean / world->default_total.time_s;
        excess[i] = of->cost_over_oracle.mean - 1;
        out->cases_above_default += cost[i] > 1;
    }
    if (strcmp(out->policy, "default") == 0)
        out->cases_above_default = 0; /* it is above itself by luck alone */
    out->geomean_cost_over_default = wg__geomean(cost, count);
    out->geomean_energy_over_default = wg__geomean(energy, count);
    out->geomean_time_over_default = wg__geomean(time, count);
    out->mean_excess_over_oracle = wg__mean(excess, count);
    out->worst_excess_over_oracle = wg__max(excess, count);
    wg__free(ratios);
    return WG_OK;
}

static enum wg_code check_rules(const struct wg_training_rules *rules, struct wg_error *err)
{
    const double most_in_flight = (double)WG_IN_FLIGHT_MAX;
    if (!(rules->eta >= 0 && rules->eta <= 1))
        return wg__fail(err, WG_EINVAL, "eta %g is outside 0..1", rules->eta);
    if (!(rules->concurrency >= 1 && rules->concurrency <= most_in_flight))
        return wg__fail(err, WG_EINVAL, "concurrency %g is outside 1..%d", rules->concurrency,
                        WG_IN_FLIGHT_MAX);
    if (!(rules->survey_s >= 0 && rules->survey_noise >= 0))
        return wg__fail(err, WG_EINVAL, "seconds %g and noise %g of a survey; expected 0 or more",
                        rules->survey_s, rules->survey_noise);
    if (rules->charge == WG_CHARGE_SECONDS && !(rules->probe_s > 0 && rules->probe_noise >= 0))
        return wg__fail(err, WG_EINVAL,
                        "seconds per probed limit must be above 0, not %g, and their noise 0 or "
                        "more, not %g",
                        rules->probe_s, rules->probe_noise);
    return WG_OK;
}

static enum wg_code check_request(const struct wg_study_request *request, struct wg_error *err)
{
    if (request->rules.recurrences == 0 || request->seeds == 0)
        return wg__fail(err, WG_EINVAL, "%zu recurrences and %zu seeds; expected at least 1 each",
                        request->rules.recurrences, request->seeds);
    if (request->threads == 0 || request->threads > WG_STUDY_THREADS_MAX)
        return wg__fail(err, WG_EINVAL, "%zu threads; expected 1..%d", request->threads,
                        WG_STUDY_THREADS_MAX);
    if (isnan(request->beta))
        return wg__fail(err, WG_EINVAL, "beta is not a number");
    if (request->policy_count == 0 || request->policy_count > WG_STUDY_POLICIES_MAX)
        return wg__fail(err, WG_EINVAL, "%zu policies; expected 1..%d", request->policy_count,
                        WG_STUDY_POLICIES_MAX);
    if (request->warm_gpu != NULL && request->warm_recurrences == 0)
        return wg__fail(err, WG_EINVAL, "a warm start needs at least one recurrence");
    return check_rules(&request->rules, err);
}

static enum wg_code make_plan(const char *name, struct plan *out, struct wg_error *err)
{
    *out = (struct plan){.name = name, .ops = &wg__batch_policy_fixed};
    if (strcmp(name, "default") == 0) {
        *out = (struct plan){"default", &wg__batch_policy_fixed, IS_DEFAULT, WG_POWER_SEARCH_SWEEP};
        return WG_OK;
    }
    if (strcmp(name, "oracle") == 0) {
        *out = (struct plan){"oracle", &wg__batch_policy_fixed, IS_ORACLE, WG_POWER_SEARCH_SWEEP};
        return WG_OK;
    }
    for (size_t i = 0; wg__batch_policies[i] != NULL; i++) {
        const struct wg_batch_policy_ops *ops = wg__batch_policies[i];
        if (ops == &wg__batch_policy_fixed || strcmp(ops->name, name) != 0)
            continue;
        *out = (struct plan){ops->name, ops, DECIDES,
                             ops == &wg__batch_policy_wattgov ? WG_POWER_SEARCH_FEW_PROBES
                                                              : WG_POWER_SEARCH_SWEEP};
        return WG_OK;
    }
    return wg__fail(err, WG_EINVAL, "no policy '%s'", name);
}

/* Policies in the order of the request, each once. */
static enum wg_code make_plans(struct runner *runner, struct wg_error *err)
{
    for (size_t i = 0; i < runner->request->policy_count; i++) {
        struct plan plan;
        const enum wg_code code = make_plan(runner->request->policies[i], &plan, err);
        if (code != WG_OK)
            return code;
        bool is_known = false;
        for (size_t k = 0; k < runner->plan_count; k++)
            is_known |= strcmp(runner->plans[k].name, plan.name) == 0;
        if (!is_known)
            runner->plans[runner->plan_count++] = plan;
    }
    return WG_OK;
}

/* The study with its worlds described and its cases named. */
static enum wg_code lay_out(struct runner *runner, struct wg_study *study, struct wg_error *err)
{
    const size_t recurrences = runner->rules.recurrences;
    struct wg_arena *arena = &study->arena;
    study->recurrences = recurrences;
    study->seeds = runner->request->seeds;
    study->bin_count = recurrences < WG_STUDY_BINS_MAX ? recurrences : WG_STUDY_BINS_MAX;
    study->world_count = runner->scenes.count;
    study->case_count = study->world_count * runner->plan_count;
    study->summary_count = runner->plan_count;
    study->worlds = wg__arena_alloc(arena, study->world_count, sizeof *study->worlds);
    study->cases = wg__arena_alloc(arena, study->case_count, sizeof *study->cases);
    study->summaries = wg__arena_alloc(arena, study->summary_count, sizeof *study->summaries);
    if (study->worlds == NULL || study->cases == NULL || study->summaries == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    for (size_t i = 0; i < study->world_count; i++) {
        const enum wg_code code = wg__study_world_describe(
            &runner->scenes.items[i], runner->request, arena, &study->worlds[i], err);
        if (code != WG_OK)
            return code;
    }
    for (size_t i = 0; i < study->case_count; i++) {
        study->cases[i].world = i / runner->plan_count;
        study->cases[i].policy = runner->plans[i % runner->plan_count].name;
    }
    runner->study = study;
    runner->task_count = study->case_count * study->seeds;
    return wg__study_sum_init(&runner->sum, recurrences, study->seeds, study->bin_count, err);
}

/* Each policy's own, and the slowest one's for the study. */
static void time_decisions(const struct runner *runner, struct wg_study *study)
{
    study->decision_us_p50 = study->decision_us_p99 = NAN;
    for (size_t i = 0; i < study->summary_count; i++) {
        struct wg_study_summary *summary = &study->summaries[i];
        summary->decision_us_p50 = decision_quantile(runner->decisions[i], 0.5);
        summary->decision_us_p99 = decision_quantile(runner->decisions[i], 0.99);
        if (!isnan(summary->decision_us_p50) &&
            !(summary->decision_us_p50 <= study->decision_us_p50)) {
            study->decision_us_p50 = summary->decision_us_p50;
            study->decision_us_p99 = summary->decision_us_p99;
            study->slowest_policy = summary->policy;
        }
    }
}

static enum wg_code run(struct runner *runner, struct wg_study *study, struct wg_error *err)
{
    enum wg_code code = check_request(runner->request, err);
    if (code == WG_OK)
        code = make_plans(runner, err);
    if (code == WG_OK)
        code = wg__study_scenes_build(runner->request, &runner->scenes, err);
    if (code == WG_OK)
        code = lay_out(runner, study, err);
    if (code == WG_OK && runner->request->started != NULL)
        runner->request->started(runner->request->progress_context, runner->task_count);
    if (code == WG_OK)
        code = run_tasks(runner, err);
    for (size_t i = 0; i < study->summary_count && code == WG_OK; i++)
        code = summarize(study, i, runner->plan_count, err);
    if (code == WG_OK)
        time_decisions(runner, study);
    return code;
}

enum wg_code wg__study_run(const struct wg_study_request *request, struct wg_study **out,
                           struct wg_error *err)
{
    struct wg_study *study = wg__alloc_zeroed(1, sizeof *study);
    struct runner *runner = wg__alloc_zeroed(1, sizeof *runner);
    enum wg_code code = WG_OK;
    if (study == NULL || runner == NULL) {
        code = wg__fail(err, WG_ENOMEM, "out of memory");
        goto out;
    }
    wg__arena_init(&study->arena);
    runner->request = request;
    runner->rules = request->rules;
    atomic_init(&runner->next_task, 0);
    (void)pthread_mutex_init(&runner->mutex, NULL); /* cannot fail on Linux without attributes */
    (void)pthread_cond_init(&runner->turn_changed, NULL);
    code = run(runner, study, err);
    (void)pthread_cond_destroy(&runner->turn_changed);
    (void)pthread_mutex_destroy(&runner->mutex);
    wg__study_scenes_fini(&runner->scenes);
    wg__study_sum_fini(&runner->sum);
out:
    wg__free(runner);
    if (code != WG_OK)
        wg__study_free(study);
    else
        *out = study;
    return code;
}

void wg__study_free(struct wg_study *study)
{
    if (study == NULL)
        return;
    wg__arena_fini(&study->arena);
    wg__free(study);
}
