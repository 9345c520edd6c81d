/* SPDX-License-Identifier: MIT
 *
 * A recurring job, one question at a time; see job.h.
 */
#include "live/job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "live/job_policy.h"
#include "live/profile_cache.h"
#include "optimize/objective.h"

/* A snapshot is written when so many facts had to be replayed: they cost about as much. */
enum { SNAPSHOT_FACTS = 256 };

const char *wg__job_answer_name(enum wg_job_answer answer)
{
    static const char *const names[WG_JOB_ANSWER_COUNT] = {
        [WG_JOB_CONTINUE] = "continue",
        [WG_JOB_REACHED] = "reached",
        [WG_JOB_STOP] = "stop",
        [WG_JOB_EXHAUSTED] = "exhausted",
    };
    return (unsigned)answer < WG_JOB_ANSWER_COUNT ? names[answer] : NULL;
}

void wg__job_profile_owner(const char *name, char out[WG_STORE_TEXT_SIZE + 8])
{
    (void)snprintf(out, WG_STORE_TEXT_SIZE + 8, "job:%s", name);
}

double wg__job_learning_rate(const struct wg_store_job *job, uint32_t batch_size)
{
    if (isnan(job->learning_rate) || job->learning_rate_batch == 0)
        return NAN;
    const double ratio = (double)batch_size / job->learning_rate_batch;
    return job->learning_rate * (strcmp(job->optimizer, "adam") == 0 ? sqrt(ratio) : ratio);
}

static enum wg_code objective_of(const struct wg_store_job *job, double max_power_w,
                                 struct wg_objective *out, struct wg_error *err)
{
    if (wg__objective_parse(job->objective, out, NULL) != WG_OK) /* it was checked when made */
        return wg__fail(err, WG_EDATA, "job '%s' has an objective '%s', which this wattgov lacks",
                        job->name, job->objective);
    out->max_power_w = isnan(max_power_w) ? job->max_power_w : max_power_w;
    if (!isnan(out->max_power_w))
        return WG_OK;
    if (out->kind == WG_OBJECTIVE_COST)
        return wg__fail(err, WG_EINVAL,
                        "--max-power: the objective '%s' of job '%s' needs the largest power of "
                        "the GPUs, which neither the run nor the job tells",
                        job->objective, job->name);
    out->max_power_w = 1; /* only what is compared with itself: seconds */
    return WG_OK;
}

enum wg_code wg__job_cost(const struct wg_store_job *job, double max_power_w, double energy_j,
                          double time_s, double *out, struct wg_error *err)
{
    struct wg_objective objective;
    const enum wg_code code = objective_of(job, max_power_w, &objective, err);
    if (code == WG_OK)
        *out = time_s > 0 ? wg__objective_cost_per_s(&objective, energy_j / time_s) * time_s
                          : energy_j;
    return code;
}

/* Whether the recurrence may be tried again once one of its attempts has come to nothing; if so it
 * is noted. */
static enum wg_code note_retry(struct wg_store *store, int64_t job, uint64_t recurrence,
                               bool *wants_out, struct wg_error *err)
{
    unsigned counts[WG_RUN_STATE_COUNT];
    enum wg_code code = store->ops->recurrence_get(store, job, recurrence, counts, err);
    if (code != WG_OK)
        return code;
    const unsigned attempts = counts[WG_RUN_STOPPED] + counts[WG_RUN_FAILED];
    *wants_out =
        counts[WG_RUN_REACHED] == 0 && counts[WG_RUN_OPEN] == 0 && attempts < WG_ATTEMPTS_MAX;
    if (*wants_out)
        code = store->ops->retry_add(store, job, recurrence, err);
    return code;
}

/* Takes back the runs whose lease has passed. */
static enum wg_code take_back(struct wg_store *store, int64_t job, double now_s, size_t *taken_out,
                              size_t *open_out, struct wg_error *err)
{
    size_t count = 0, taken = 0;
    struct wg_store_run *open = wg__alloc_zeroed(2 * (size_t)WG_IN_FLIGHT_MAX, sizeof *open);
    if (open == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    enum wg_code code =
        store->ops->run_open(store, job, open, 2 * (size_t)WG_IN_FLIGHT_MAX, &count, err);
    for (size_t i = 0; i < count && i < 2 * (size_t)WG_IN_FLIGHT_MAX && code == WG_OK; i++) {
        if (!(open[i].lease_until_s < now_s))
            continue;
        bool wants_retry;
        code = store->ops->run_take_back(store, open[i].id, now_s, err);
        if (code == WG_OK)
            code = note_retry(store, job, open[i].recurrence, &wants_retry, err);
        taken++;
    }
    wg__free(open);
    *taken_out = taken;
    *open_out = count - taken;
    return code;
}

/* Which recurrence to serve, and how many attempts it had. */
static enum wg_code choose_recurrence(struct wg_store *store, const struct wg_store_job *job,
                                      const struct wg_job_request *request, uint64_t *out,
                                      unsigned *attempt_out, struct wg_error *err)
{
    bool has_retry = false;
    uint64_t recurrence = job->next_recurrence;
    enum wg_code code = WG_OK;
    unsigned counts[WG_RUN_STATE_COUNT] = {0};
    if (request->wants_recurrence) {
        code = store->ops->recurrence_get(store, job->id, request->recurrence, counts, err);
        has_retry = counts[WG_RUN_REACHED] == 0 && counts[WG_RUN_OPEN] == 0 &&
                    counts[WG_RUN_STOPPED] + counts[WG_RUN_FAILED] < WG_ATTEMPTS_MAX;
        if (has_retry)
            recurrence = request->recurrence;
    }
    if (code == WG_OK && !has_retry)
        code = store->ops->retry_find(store, job->id, &has_retry, &recurrence, err);
    if (code == WG_OK)
        code = store->ops->recurrence_get(store, job->id, recurrence, counts, err);
    *out = recurrence;
    *attempt_out = counts[WG_RUN_STOPPED] + counts[WG_RUN_FAILED];
    return code;
}

static struct wg_store_run make_run(const struct wg_store_job *job,
                                    const struct wg_job_request *request, uint64_t recurrence,
                                    unsigned attempt, const struct wg_batch_step *step)
{
    struct wg_store_run run = {
        .job = job->id,
        .is_survey = step->kind == WG_STEP_SURVEY,
        .may_survey = request->may_survey,
        .recurrence = recurrence,
        .attempt = attempt,
        .batch_size = job->batch_size[step->arm],
        .limit = step->kind == WG_STEP_SURVEY ? 0 : step->limit,
        .ticket = step->kind == WG_STEP_SURVEY ? 0 : step->ticket,
        .gpu_count = request->gpu_count,
        .max_power_w = isnan(request->max_power_w) ? job->max_power_w : request->max_power_w,
        .pid = request->pid,
        .started_s = request->now_s,
        .lease_s = request->lease_s > 0 ? request->lease_s : job->lease_s,
        .metric = NAN,
        .epoch_cost_j = NAN,
        .epoch_cost_max_limit_j = NAN,
        .first_epoch_cost_j = NAN,
        .ended_s = NAN,
        .epochs = NAN,
        .energy_j = NAN,
        .time_s = NAN,
        .cost_j = NAN,
        .setting = NAN,
        .steps_per_epoch = NAN,
        .saved_j = NAN,
        .saved_sd_j = NAN,
    };
    run.lease_until_s = run.started_s + run.lease_s;
    (void)snprintf(run.gpu_model, sizeof run.gpu_model, "%s", request->gpu_model);
    (void)snprintf(run.host, sizeof run.host, "%s", request->host);
    return run;
}

/* The policy would not let it do one epoch: that is an outcome, too. */
static enum wg_code end_unstarted(struct wg_store *store, struct wg_store_run *run,
                                  const struct wg_batch_policy_ops *ops,
                                  struct wg_batch_policy *policy, struct wg_error *err)
{
    run->state = WG_RUN_STOPPED;
    run->ended_s = run->started_s;
    run->epochs = run->energy_j = run->time_s = run->cost_j = 0;
    ops->tell_run(policy, run->ticket, &(struct wg_batch_outcome){.reached = false});
    return store->ops->run_end(store, run, err);
}

/* Asks the policy until it has a run that may do an epoch, or a survey. */
static enum wg_code decide(struct wg_store *store, const struct wg_job_policy *decider,
                           struct wg_batch_policy *policy, const struct wg_job_request *request,
                           uint64_t recurrence, unsigned attempt, struct wg_store_run *out,
                           struct wg_error *err)
{
    const struct wg_batch_policy_ops *ops = decider->ops;
    struct wg_rng root;
    wg__rng_init(&root, decider->job->seed);
    const struct wg_rng of_recurrence = wg__rng_split(&root, recurrence);
    for (;; attempt++) {
        struct wg_rng rng = wg__rng_split(&of_recurrence, attempt);
        const struct wg_batch_request asked = {
            .recurrence = recurrence, .attempt = attempt, .no_survey = !request->may_survey};
        struct wg_batch_step step;
        ops->ask(policy, &asked, &rng, &step);
        *out = make_run(decider->job, request, recurrence, attempt, &step);
        enum wg_code code = store->ops->run_add(store, out, err);
        if (code != WG_OK || out->is_survey || ops->may_continue == NULL ||
            attempt + 1 >= WG_ATTEMPTS_MAX || ops->may_continue(policy, step.ticket, 0, NAN))
            return code;
        code = end_unstarted(store, out, ops, policy, err);
        if (code != WG_OK)
            return code;
    }
}

/* The power limit that the cached profile of a batch size on the run's GPUs says is best. */
static enum wg_code find_setting(struct wg_store *store, const struct wg_store_job *job,
                                 const struct wg_store_run *run, uint32_t batch_size, double *out,
                                 struct wg_error *err)
{
    char owner[WG_STORE_TEXT_SIZE + 8];
    wg__job_profile_owner(job->name, owner);
    const struct wg_store_profile_key key = {.owner = owner,
                                             .gpu_model = run->gpu_model,
                                             .gpu_count = run->gpu_count,
                                             .knob = "power_limit",
                                             .batch_size = batch_size};
    struct wg_store_point points[WG_STORE_POINTS_MAX];
    struct wg_power_sample samples[WG_STORE_POINTS_MAX];
    struct wg_objective objective;
    size_t count = 0, best = 0;
    double when_s;
    *out = NAN;
    enum wg_code code = store->ops->profile_get(store, &key, points, &count, &when_s, err);
    if (code != WG_OK || count == 0)
        return code;
    code = objective_of(job, run->max_power_w, &objective, err);
    for (size_t i = 0; i < count; i++)
        samples[i] = (struct wg_power_sample){.limit_w = points[i].setting,
                                              .power_w = points[i].power_w,
                                              .throughput = points[i].throughput};
    /* A profile that is of no use is one that is not there. */
    if (code == WG_OK && wg__power_limit_best(&objective, samples, count, &best, NULL) == WG_OK)
        *out = points[best].setting;
    return code;
}

/* The best power limit of the nearest batch size that was profiled, by ratio: where a search begins
 * when the run's own was not. */
static enum wg_code find_neighbor(struct wg_store *store, const struct wg_store_job *job,
                                  const struct wg_store_run *run, double *out, struct wg_error *err)
{
    double nearest = INFINITY;
    enum wg_code code = WG_OK;
    *out = NAN;
    for (size_t i = 0; i < job->batch_count && code == WG_OK; i++) {
        const double distance = fabs(log((double)job->batch_size[i] / run->batch_size));
        double setting = NAN;
        if (distance >= nearest || job->batch_size[i] == run->batch_size)
            continue;
        code = find_setting(store, job, run, job->batch_size[i], &setting, err);
        if (isnan(setting))
            continue;
        nearest = distance;
        *out = setting;
    }
    return code;
}

static enum wg_code next(struct wg_store *store, const char *name,
                         const struct wg_job_request *request, struct wg_job_order *out,
                         struct wg_error *err)
{
    struct wg_job_policy *decider = NULL;
    struct wg_job_gpu *gpu = NULL;
    uint64_t recurrence = 0;
    unsigned attempt = 0;
    size_t open = 0;
    double unused;
    enum wg_code code = store->ops->job_get(store, name, &out->job, err);
    if (code == WG_OK) /* better now than when the run has ended */
        code = wg__job_cost(&out->job, request->max_power_w, 1, 1, &unused, err);
    if (code == WG_OK)
        code = take_back(store, out->job.id, request->now_s, &out->taken_back, &open, err);
    if (code == WG_OK && open >= WG_IN_FLIGHT_MAX)
        code = wg__fail(err, WG_EBUSY,
                        "job '%s' has %zu open runs, the most that it can: report "
                        "one first",
                        name, open);
    if (code == WG_OK)
        code = wg__job_policy_open(&decider, store, &out->job, false, err);
    if (code == WG_OK && decider->replayed >= SNAPSHOT_FACTS)
        code = wg__job_policy_save(decider, store, err);
    if (code == WG_OK)
        code = choose_recurrence(store, &out->job, request, &recurrence, &attempt, err);
    if (code == WG_OK)
        code = wg__job_policy_of(decider, request->gpu_model, request->gpu_count, &gpu, err);
    if (code == WG_OK)
        code = decide(store, decider, gpu->policy, request, recurrence, attempt, &out->run, err);
    if (code == WG_OK)
        code = find_setting(store, &out->job, &out->run, out->run.batch_size, &out->setting, err);
    if (code == WG_OK && isnan(out->setting))
        code = find_neighbor(store, &out->job, &out->run, &out->neighbor_setting, err);
    wg__job_policy_free(decider);
    out->learning_rate =
        code == WG_OK ? wg__job_learning_rate(&out->job, out->run.batch_size) : (double)NAN;
    return code;
}

/* Ends the transaction that began with `begun`. */
static enum wg_code finish(struct wg_store *store, enum wg_code code, struct wg_error *err)
{
    if (code == WG_OK)
        return store->ops->commit(store, err);
    store->ops->rollback(store);
    return code;
}

enum wg_code wg__job_next(struct wg_store *store, const char *name,
                          const struct wg_job_request *request, struct wg_job_order *out,
                          struct wg_error *err)
{
    /* The policy hears the names as the store will keep them. */
    char gpu_model[WG_STORE_TEXT_SIZE], host[WG_STORE_TEXT_SIZE];
    struct wg_job_request kept = *request;
    wg__utf8_copy_plain(gpu_model, sizeof gpu_model, request->gpu_model);
    wg__utf8_copy_plain(host, sizeof host, request->host);
    kept.gpu_model = gpu_model;
    kept.host = host;
    *out = (struct wg_job_order){.setting = NAN, .neighbor_setting = NAN};
    const enum wg_code code = store->ops->begin(store, true, err);
    if (code != WG_OK)
        return code;
    return finish(store, next(store, name, &kept, out, err), err);
}

static enum wg_code find_run(struct wg_store *store, const char *name, int64_t id,
                             struct wg_store_job *job, struct wg_store_run *run,
                             struct wg_error *err)
{
    enum wg_code code = store->ops->job_get(store, name, job, err);
    if (code != WG_OK)
        return code;
    code = store->ops->run_get(store, job->id, id, run, err);
    return code == WG_ENOENT
               ? wg__fail(err, WG_ENOENT, "job '%s' has no run %lld", name, (long long)id)
               : code;
}

/* A run that was taken back and is heard of again is open again. */
static enum wg_code wake(struct wg_store *store, struct wg_store_run *run, double now_s,
                         struct wg_error *err)
{
    const double until_s = now_s + run->lease_s;
    if (run->state == WG_RUN_OPEN)
        return store->ops->run_extend(store, run->id, until_s, err);
    if (run->state != WG_RUN_EXPIRED)
        return wg__fail(err, WG_ESTATE, "run %lld has ended: it was reported as %s",
                        (long long)run->id, wg__run_state_name(run->state));
    struct wg_store_run first;
    size_t open = 0;
    enum wg_code code = store->ops->run_open(store, run->job, &first, 1, &open, err);
    if (code == WG_OK && open >= WG_IN_FLIGHT_MAX)
        code = wg__fail(err, WG_EBUSY, "run %lld was taken back, and %zu others are open",
                        (long long)run->id, open);
    if (code == WG_OK)
        code = store->ops->run_revive(store, run->id, until_s, err);
    if (code == WG_OK)
        code = store->ops->retry_remove(store, run->job, run->recurrence, err);
    run->state = WG_RUN_OPEN;
    return code;
}

static bool is_reached(const struct wg_store_job *job, double metric)
{
    return job->higher_is_better ? metric >= job->target : metric <= job->target;
}

/* What the policy says to the latest epoch of `run`, which was told just now, or before. */
static enum wg_code ask_policy(struct wg_store *store, const struct wg_store_job *job,
                               const struct wg_store_run *run, bool is_new, enum wg_job_answer *out,
                               struct wg_error *err)
{
    struct wg_job_policy *decider = NULL;
    enum wg_code code = wg__job_policy_open(&decider, store, job, false, err);
    if (code == WG_OK && !is_new) { /* an answer that was lost: ask once more */
        struct wg_job_gpu *gpu = NULL;
        code = wg__job_policy_of(decider, run->gpu_model, run->gpu_count, &gpu, err);
        if (code == WG_OK && !run->is_survey && decider->ops->may_continue != NULL)
            decider->may_continue =
                decider->ops->may_continue(gpu->policy, run->ticket, run->last_epoch, run->metric);
    }
    if (code == WG_OK)
        *out = decider->may_continue ? WG_JOB_CONTINUE : WG_JOB_STOP;
    wg__job_policy_free(decider);
    return code;
}

static enum wg_code tell_epoch(struct wg_store *store, const char *name, int64_t id, unsigned epoch,
                               double metric, double now_s, enum wg_job_answer *out,
                               struct wg_error *err)
{
    struct wg_store_job job = {0};
    struct wg_store_run run = {0};
    enum wg_code code = find_run(store, name, id, &job, &run, err);
    if (code == WG_OK && epoch > job.max_epochs)
        return wg__fail(err, WG_EINVAL, "--epoch: %u is more than the job's %u", epoch,
                        job.max_epochs);
    if (code == WG_OK)
        code = wake(store, &run, now_s, err);
    const bool is_new = epoch > run.last_epoch;
    if (code == WG_OK && is_new)
        code = store->ops->run_epoch(store, id, epoch, metric, err);
    if (code != WG_OK)
        return code;
    /* One that comes late says nothing of where the run is. */
    if (is_reached(&job, epoch < run.last_epoch ? run.metric : metric)) {
        *out = WG_JOB_REACHED;
        return WG_OK;
    }
    if (epoch >= job.max_epochs || run.last_epoch >= job.max_epochs) {
        *out = WG_JOB_EXHAUSTED;
        return WG_OK;
    }
    return ask_policy(store, &job, &run, is_new, out, err);
}

enum wg_code wg__job_epoch(struct wg_store *store, const char *name, int64_t id, unsigned epoch,
                           double metric, double now_s, enum wg_job_answer *out,
                           struct wg_error *err)
{
    const enum wg_code code = store->ops->begin(store, true, err);
    if (code != WG_OK)
        return code;
    return finish(store, tell_epoch(store, name, id, epoch, metric, now_s, out, err), err);
}

enum wg_code wg__job_heartbeat(struct wg_store *store, const char *name, int64_t id, double now_s,
                               struct wg_error *err)
{
    struct wg_store_job job = {0};
    struct wg_store_run run = {0};
    enum wg_code code = store->ops->begin(store, true, err);
    if (code != WG_OK)
        return code;
    code = find_run(store, name, id, &job, &run, err);
    if (code == WG_OK)
        code = wake(store, &run, now_s, err);
    return finish(store, code, err);
}

enum wg_code wg__job_profile(struct wg_store *store, const char *name, int64_t id,
                             const struct wg_job_costs *costs, double now_s, struct wg_error *err)
{
    struct wg_store_job job = {0};
    struct wg_store_run run = {0};
    if (!(costs->epoch_j > 0) || !(costs->epoch_max_limit_j > 0) || !(costs->first_epoch_j > 0) ||
        !isfinite(costs->epoch_j + costs->epoch_max_limit_j + costs->first_epoch_j))
        return wg__fail(err, WG_EINVAL, "run %lld: a profile's costs must be above 0",
                        (long long)id);
    enum wg_code code = store->ops->begin(store, true, err);
    if (code != WG_OK)
        return code;
    code = find_run(store, name, id, &job, &run, err);
    if (code == WG_OK)
        code = wake(store, &run, now_s, err);
    if (code == WG_OK && !run.has_profile) {
        run.epoch_cost_j = costs->epoch_j;
        run.epoch_cost_max_limit_j = costs->epoch_max_limit_j;
        run.first_epoch_cost_j = costs->first_epoch_j;
        code = store->ops->run_profile(store, &run, err);
    }
    return finish(store, code, err);
}

static bool is_same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool is_same_report(const struct wg_store_run *run, const struct wg_job_report *report)
{
    return run->state == report->state && run->epochs == report->epochs &&
           run->energy_j == report->energy_j && run->time_s == report->time_s &&
           (isnan(report->metric) || is_same_number(run->metric, report->metric)) &&
           (isnan(report->setting) || is_same_number(run->setting, report->setting));
}

static enum wg_code check_report(const struct wg_job_report *report, const struct wg_store_job *job,
                                 const struct wg_store_run *run, struct wg_error *err)
{
    const double epochs = report->epochs;
    if (!run->is_survey && epochs != floor(epochs))
        return wg__fail(err, WG_EINVAL, "--epochs: %g is not a whole number", epochs);
    if (report->state == WG_RUN_REACHED && !(epochs > 0))
        return wg__fail(err, WG_EINVAL, "--epochs: a run that reached its target did at least one");
    /* No cost at all would make it the best run for ever. */
    if (report->state == WG_RUN_REACHED && !(report->energy_j > 0 && report->time_s > 0))
        return wg__fail(err, WG_EINVAL,
                        "--energy, --time: %g J in %g s is no measurement of a run that reached "
                        "its target; report it as --returned if nothing was measured",
                        report->energy_j, report->time_s);
    if (!run->is_survey && report->state != WG_RUN_CRASHED && report->state != WG_RUN_RETURNED &&
        epochs < run->last_epoch)
        return wg__fail(err, WG_EINVAL, "--epochs: %g, but the run has told epoch %u already",
                        epochs, run->last_epoch);
    if (epochs > job->max_epochs)
        return wg__fail(err, WG_EINVAL, "--epochs: %g is more than the job's %u", epochs,
                        job->max_epochs);
    return WG_OK;
}

static enum wg_code end_run(struct wg_store *store, const char *name,
                            const struct wg_job_report *report, struct wg_job_receipt *out,
                            struct wg_error *err)
{
    struct wg_store_job job = {0};
    struct wg_store_run run = {0};
    enum wg_code code = find_run(store, name, report->run, &job, &run, err);
    if (code != WG_OK)
        return code;
    out->recurrence = run.recurrence;
    if (run.state != WG_RUN_OPEN && run.state != WG_RUN_EXPIRED) {
        if (!is_same_report(&run, report))
            return wg__fail(err, WG_ESTATE,
                            "run %lld was reported as %s after %g epochs, %g J and %g s: another "
                            "report of it is refused",
                            (long long)run.id, wg__run_state_name(run.state), run.epochs,
                            run.energy_j, run.time_s);
        out->is_repeat = true;
        out->cost_j = run.cost_j;
        return WG_OK;
    }
    code = check_report(report, &job, &run, err);
    if (code == WG_OK)
        code = wake(store, &run, report->now_s, err);
    if (code == WG_OK)
        code =
            wg__job_cost(&job, run.max_power_w, report->energy_j, report->time_s, &run.cost_j, err);
    if (code != WG_OK)
        return code;
    run.state = report->state;
    run.ended_s = report->now_s;
    run.epochs = report->epochs;
    run.energy_j = report->energy_j;
    run.time_s = report->time_s;
    run.setting = report->setting;
    run.steps_per_epoch = report->steps_per_epoch > 0 ? report->steps_per_epoch : (double)NAN;
    run.saved_j = report->saved_sd_j > 0 ? report->saved_j : (double)NAN;
    run.saved_sd_j = report->saved_sd_j > 0 ? report->saved_sd_j : (double)NAN;
    if (!isnan(report->metric))
        run.metric = report->metric;
    out->cost_j = run.cost_j;
    code = store->ops->run_end(store, &run, err);
    if (code != WG_OK)
        return code;
    if (run.state == WG_RUN_REACHED && !run.is_survey)
        return store->ops->retry_remove(store, job.id, run.recurrence, err);
    /* After a survey the recurrence's run is still to come. */
    return note_retry(store, job.id, run.recurrence, &out->wants_retry, err);
}

enum wg_code wg__job_report(struct wg_store *store, const char *name,
                            const struct wg_job_report *report, struct wg_job_receipt *out,
                            struct wg_error *err)
{
    *out = (struct wg_job_receipt){0};
    const enum wg_code code = store->ops->begin(store, true, err);
    if (code != WG_OK)
        return code;
    return finish(store, end_run(store, name, report, out, err), err);
}
