/* SPDX-License-Identifier: MIT
 *
 * The policy `wattgov`: learns a recurring job's cheapest batch size from few runs.
 *
 * What makes it cheaper than two pruning sweeps and a bandit (policy_zeus.c):
 *   - all arms share one curve of epochs over the batch size (epochs_model.c): a run at one batch
 *     size says something about every other one;
 *   - the other factor, cost per epoch, is bought for a few seconds per arm (governor_costs.c);
 *   - the next arm is the one that pays its regret with what it teaches (governor_choice.c), under
 *     a guard against costing more than the user's default would have;
 *   - a trial is stopped where its expected bill is least, or when its learning curve says that it
 *     is hopeless (governor_stop.c);
 *   - an arm with runs in flight promises to teach less, so several runs can explore at once;
 *   - a job that changes is noticed by its surprises (change_detector.c), and the shape that was
 *     learned stays as a prior;
 *   - epochs do not depend on the GPU, so another GPU type starts from the same observations.
 *
 * The flow of `ask`, first match wins:
 *
 *     nothing has reached the target yet   the default; while it runs, its neighbours
 *     surveys are planned                  SURVEY
 *     a retry                              the cheapest proven arm that did not fail in this
 *                                          recurrence
 *     otherwise                            the choice; SURVEY it first if its cost is unknown
 *
 * Owns: one block, the model's tables and the scratch of the choice.    Threads: one at a time.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "optimize/governor.h"

enum { DRIFT_MIN_OBSERVATIONS = 4 };

/* A profile that differs from the last one by less is noise. */
static const double real_change_ln = 0.1;

static struct wg_governor *as_governor(struct wg_batch_policy *policy)
{
    return (struct wg_governor *)policy;
}

static void destroy(struct wg_batch_policy *policy)
{
    if (!policy)
        return;
    struct wg_governor *governor = as_governor(policy);
    wg__epochs_model_fini(&governor->model);
    wg__free(governor->draws);
    wg__free(governor);
}

static enum wg_code create(struct wg_batch_policy **out, const struct wg_batch_job *job,
                           const struct wg_batch_options *options, struct wg_error *err)
{
    enum wg_code code = wg__batch_job_check(job, err);
    if (code != WG_OK)
        return code;
    struct wg_governor *governor = wg__alloc_zeroed(1, sizeof *governor);
    if (!governor)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    governor->base.ops = &wg__batch_policy_wattgov;
    governor->job = *job;
    governor->options = *options;
    governor->incumbent = job->default_arm;
    governor->version = 1;
    governor->curves.higher_is_better = job->higher_is_better;
    wg__change_detector_init(&governor->detector, wg__governor_constants.drift_allowance,
                             wg__governor_constants.drift_threshold);
    governor->draws = wg__alloc_zeroed(WG_EPOCHS_DRAWS * job->arm_count, sizeof *governor->draws);
    code = governor->draws ? wg__epochs_model_init(&governor->model, job, err)
                           : wg__fail(err, WG_ENOMEM, "out of memory");
    if (code != WG_OK) {
        destroy(&governor->base);
        return code;
    }
    *out = &governor->base;
    return WG_OK;
}

/* The observations that count: the last `window` of each arm, in their order. Returns how many were
 * written to `out`, which has room for the history. */
static size_t gather(const struct wg_governor *governor, struct wg_epochs_observation *out)
{
    const unsigned window = governor->options.window;
    unsigned seen[WG_ARMS_MAX] = {0};
    size_t count = governor->observation_count, kept = 0;
    if (window == 0) {
        memcpy(out, governor->observations, count * sizeof *out);
        return count;
    }
    for (size_t t = count; t-- > 0;)
        if (seen[governor->observations[t].arm]++ < window)
            out[kept++] = governor->observations[t];
    for (size_t i = 0; i < kept / 2; i++) {
        const struct wg_epochs_observation swapped = out[i];
        out[i] = out[kept - 1 - i];
        out[kept - 1 - i] = swapped;
    }
    return kept;
}

void wg__governor_refresh(struct wg_governor *governor)
{
    if (governor->model_version == governor->version)
        return;
    governor->model_version = governor->version;
    struct wg_epochs_observation observations[WG_GOVERNOR_HISTORY_MAX];
    const size_t count = gather(governor, observations);
    wg__epochs_model_update(&governor->model, observations, count);
    wg__governor_update_costs(governor);
    const struct wg_epochs_model *model = &governor->model;
    size_t incumbent = SIZE_MAX;
    for (size_t i = 0; i < governor->job.arm_count; i++) {
        const double variance = model->variance[i] + model->noise_variance[i];
        governor->expected_j[i] = governor->cost[i].epoch_j *
                                  exp(M_LN2 * model->mean[i] + 0.5 * M_LN2 * M_LN2 * variance);
        /* A failure costs its epochs and another run: about that of this arm, if it is worth
         * having. */
        const double fails = wg__epochs_model_failure_share(model, i);
        governor->expected_j[i] +=
            fails / (1 - fails) * governor->cost[i].epoch_j * model->failure_epochs[i];
        if (model->success_count[i] > 0 &&
            (incumbent == SIZE_MAX || governor->expected_j[i] < governor->expected_j[incumbent]))
            incumbent = i;
    }
    governor->incumbent = incumbent == SIZE_MAX ? governor->job.default_arm : incumbent;
    governor->incumbent_j = governor->expected_j[governor->incumbent];
}

static struct wg_failure *find_failure(struct wg_governor *governor, uint64_t recurrence)
{
    for (size_t i = 0; i < WG_IN_FLIGHT_MAX; i++)
        if (governor->failures[i].arms != 0 && governor->failures[i].recurrence == recurrence)
            return &governor->failures[i];
    return NULL;
}

static void note_failure(struct wg_governor *governor, uint64_t recurrence, size_t arm)
{
    struct wg_failure *failure = find_failure(governor, recurrence);
    for (size_t i = 0; i < WG_IN_FLIGHT_MAX && !failure; i++)
        if (governor->failures[i].arms == 0)
            failure = &governor->failures[i];
    if (!failure) /* recurrences that never came back: the first makes room */
        failure = &governor->failures[0];
    if (failure->recurrence != recurrence)
        failure->arms = 0;
    failure->recurrence = recurrence;
    failure->arms |= UINT64_C(1) << arm;
}

/* The cheapest proven arm that did not fail in this recurrence; the default when there is none. */
static size_t retry_arm(struct wg_governor *governor, uint64_t recurrence)
{
    const struct wg_failure *failure = find_failure(governor, recurrence);
    const uint64_t failed = failure ? failure->arms : 0;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < governor->job.arm_count; i++)
        if (governor->model.success_count[i] > 0 && !(failed >> i & 1) &&
            (best == SIZE_MAX || governor->expected_j[i] < governor->expected_j[best]))
            best = i;
    return best == SIZE_MAX ? governor->job.default_arm : best;
}

/* Before anything has reached the target: the default, and while that runs, arms one and two
 * octaves around it. */
static size_t blind_arm(struct wg_governor *governor, const struct wg_batch_request *request)
{
    static const double offsets[] = {1, -1, 2, -2};
    const size_t default_arm = governor->job.default_arm;
    if (governor->in_flight == 0 || governor->in_flight > 4 || request->attempt > 0)
        return default_arm;
    const double wanted = offsets[governor->in_flight - 1];
    size_t nearest = default_arm;
    for (size_t i = 0; i < governor->job.arm_count; i++)
        if (fabs(governor->model.x[i] - wanted) < fabs(governor->model.x[nearest] - wanted))
            nearest = i;
    for (size_t i = 0; i < WG_IN_FLIGHT_MAX; i++)
        if (governor->flights[i].is_active && governor->flights[i].arm == nearest)
            return default_arm;
    return nearest;
}

static void take_off(struct wg_governor *governor, const struct wg_batch_request *request,
                     size_t arm, bool is_unbounded, uint64_t ticket)
{
    for (size_t i = 0; i < WG_IN_FLIGHT_MAX; i++) {
        struct wg_flight *flight = &governor->flights[i];
        if (flight->is_active)
            continue;
        *flight = (struct wg_flight){.is_active = true,
                                     .is_unbounded = is_unbounded,
                                     .arm = arm,
                                     .ticket = ticket,
                                     .recurrence = request->recurrence,
                                     .stop_epochs = governor->job.max_epochs};
        governor->in_flight++;
        return;
    }
}

static void start(struct wg_governor *governor, const struct wg_batch_request *request, size_t arm,
                  bool is_unbounded, struct wg_batch_step *out)
{
    *out = (struct wg_batch_step){
        .kind = WG_STEP_RUN, .arm = arm, .limit = WG_LIMIT_BEST, .ticket = ++governor->next_ticket};
    take_off(governor, request, arm, is_unbounded, out->ticket);
}

static bool survey_first(struct wg_governor *governor, size_t arm, struct wg_batch_step *out)
{
    if (governor->cost[arm].is_profiled || governor->cost[arm].is_surveyed)
        return false;
    *out = (struct wg_batch_step){.kind = WG_STEP_SURVEY, .arm = arm};
    return true;
}

static void ask_blind(struct wg_governor *governor, const struct wg_batch_request *request,
                      struct wg_batch_step *out)
{
    size_t arm = blind_arm(governor, request);
    if (arm != governor->job.default_arm) {
        if (!request->no_survey && (survey_first(governor, governor->job.default_arm, out) ||
                                    survey_first(governor, arm, out)))
            return;
        wg__governor_update_costs(governor);
        if (governor->cost[arm].epoch_j > 2 * governor->cost[governor->job.default_arm].epoch_j)
            arm = governor->job.default_arm;
    }
    /* A default that keeps failing is not worth more money than the other arms. */
    if (governor->default_failures >= 2 && governor->in_flight == 0) {
        uint64_t failed = 0;
        const struct wg_failure *failure = find_failure(governor, request->recurrence);
        if (failure)
            failed = failure->arms;
        for (size_t i = 0; i < governor->job.arm_count; i++)
            if (!(failed >> i & 1) &&
                ((failed >> arm & 1) || governor->expected_j[i] < governor->expected_j[arm]))
                arm = i;
    }
    start(governor, request, arm, arm == governor->job.default_arm, out);
}

static void choose_step(struct wg_governor *governor, const struct wg_batch_request *request,
                        struct wg_rng *rng, struct wg_batch_step *out)
{
    wg__governor_refresh(governor);
    if (governor->success_count == 0) {
        ask_blind(governor, request, out);
        return;
    }
    size_t arm;
    if (!request->no_survey && wg__governor_next_survey(governor, &arm)) {
        *out = (struct wg_batch_step){.kind = WG_STEP_SURVEY, .arm = arm};
        return;
    }
    const bool is_retry = request->attempt > 0;
    arm = is_retry ? retry_arm(governor, request->recurrence) : wg__governor_choose(governor, rng);
    if (!request->no_survey && survey_first(governor, arm, out))
        return;
    start(governor, request, arm, is_retry, out);
}

static void note_survey(struct wg_governor *governor, const struct wg_batch_step *step)
{
    if (step->kind == WG_STEP_SURVEY)
        governor->surveys_asked |= UINT64_C(1) << step->arm;
}

static void ask(struct wg_batch_policy *policy, const struct wg_batch_request *request,
                struct wg_rng *rng, struct wg_batch_step *out)
{
    struct wg_governor *governor = as_governor(policy);
    choose_step(governor, request, rng, out);
    note_survey(governor, out);
}

/* What `ask` changes: the plan of the surveys, and the run that takes off. */
static void resume(struct wg_batch_policy *policy, const struct wg_batch_request *request,
                   const struct wg_batch_step *step)
{
    struct wg_governor *governor = as_governor(policy);
    const bool is_blind = governor->success_count == 0;
    size_t surveyed;
    if (!is_blind && !request->no_survey) {
        if (!governor->has_survey_plan) /* it will rest on the costs that are expected now */
            wg__governor_refresh(governor);
        (void)wg__governor_next_survey(governor, &surveyed);
    }
    note_survey(governor, step);
    if (step->kind != WG_STEP_RUN)
        return;
    if (governor->next_ticket < step->ticket)
        governor->next_ticket = step->ticket;
    take_off(governor, request, step->arm,
             is_blind ? step->arm == governor->job.default_arm : request->attempt > 0,
             step->ticket);
}

static struct wg_flight *find_flight(struct wg_governor *governor, uint64_t ticket)
{
    for (size_t i = 0; i < WG_IN_FLIGHT_MAX; i++)
        if (governor->flights[i].is_active && governor->flights[i].ticket == ticket)
            return &governor->flights[i];
    return NULL;
}

static void forget(struct wg_batch_policy *policy, uint64_t ticket)
{
    struct wg_governor *governor = as_governor(policy);
    struct wg_flight *flight = find_flight(governor, ticket);
    if (!flight)
        return;
    flight->is_active = false;
    governor->in_flight--;
}

static bool may_continue(struct wg_batch_policy *policy, uint64_t ticket, unsigned epochs_done,
                         double metric)
{
    struct wg_governor *governor = as_governor(policy);
    struct wg_flight *flight = find_flight(governor, ticket);
    if (!flight)
        return true;
    wg__learning_curve_tell(&flight->curve, governor->job.higher_is_better, epochs_done, metric);
    if (flight->is_unbounded || governor->success_count == 0)
        return true;
    if (flight->stop_version != governor->version) {
        wg__governor_refresh(governor);
        flight->stop_version = governor->version;
        flight->stop_epochs = wg__governor_stop_epochs(governor, flight->arm, NULL);
    }
    return epochs_done < flight->stop_epochs &&
           !wg__governor_is_hopeless(governor, flight, epochs_done);
}

static void tell_survey(struct wg_batch_policy *policy, size_t arm, double epoch_cost_max_limit_j,
                        double paid_j)
{
    struct wg_governor *governor = as_governor(policy);
    governor->cost[arm].is_surveyed = true;
    governor->cost[arm].surveyed_j = epoch_cost_max_limit_j;
    governor->survey_paid_j = paid_j;
    governor->surveys_j += paid_j;
    governor->spent_j += paid_j;
    governor->version++;
}

static void tell_profile(struct wg_batch_policy *policy, size_t arm,
                         const struct wg_batch_profile *profile)
{
    struct wg_governor *governor = as_governor(policy);
    struct wg_arm_cost *cost = &governor->cost[arm];
    const double ratio = cost->is_profiled ? profile->epoch_cost_j / cost->profile.epoch_cost_j : 1;
    if (fabs(log(ratio)) > real_change_ln) {
        /* Epochs of this arm cost something else now. The cause (data, code, GPU) is nearly always
         * one that all arms share, so until an arm is seen again it is taken to have changed
         * likewise. Less than that is a better measurement of this arm alone. */
        for (size_t i = 0; i < governor->job.arm_count; i++) {
            if (i == arm)
                continue;
            governor->cost[i].surveyed_j *= ratio;
            governor->cost[i].profile.epoch_cost_j *= ratio;
            governor->cost[i].profile.epoch_cost_max_limit_j *= ratio;
            governor->cost[i].profile.first_epoch_cost_j *= ratio;
        }
    }
    cost->is_profiled = true;
    cost->profile = *profile;
    governor->version++;
}

static void keep_observation(struct wg_governor *governor,
                             const struct wg_epochs_observation *observation)
{
    if (governor->observation_count == WG_GOVERNOR_HISTORY_MAX) {
        governor->observation_count--;
        memmove(governor->observations, governor->observations + 1,
                governor->observation_count * sizeof governor->observations[0]);
    }
    governor->observations[governor->observation_count++] = *observation;
}

/* Compares a success with what was expected, and forgets the level when the job has changed. */
static void watch_for_change(struct wg_governor *governor, size_t arm, unsigned epochs)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    const struct wg_epochs_model *model = &governor->model;
    if (model->success_count[arm] == 0 || governor->observation_count < DRIFT_MIN_OBSERVATIONS)
        return;
    const double noise = fmax(model->noise_variance[arm], 0.06 * 0.06);
    const double residual = (log2(epochs) - model->mean[arm]) / sqrt(model->variance[arm] + noise);
    if (!wg__change_detector_tell(&governor->detector, residual))
        return;
    wg__epochs_model_remember_shape(&governor->model, c->drift_trust);
    const size_t keep = (size_t)c->drift_keep - 1; /* and the one that is about to be kept */
    if (governor->observation_count > keep) {
        memmove(governor->observations, governor->observations + governor->observation_count - keep,
                keep * sizeof governor->observations[0]);
        governor->observation_count = keep;
    }
    governor->curves.count = governor->curves.next = 0;
    governor->explored = 0;
    memset(governor->failures_after_success, 0, sizeof governor->failures_after_success);
}

static void tell_run(struct wg_batch_policy *policy, uint64_t ticket,
                     const struct wg_batch_outcome *outcome)
{
    struct wg_governor *governor = as_governor(policy);
    struct wg_flight *flight = find_flight(governor, ticket);
    if (!flight)
        return;
    const size_t arm = flight->arm;
    flight->is_active = false;
    governor->in_flight--;
    governor->spent_j += outcome->cost_j;
    wg__governor_refresh(governor);
    governor->version++;
    const struct wg_epochs_observation observation = {
        .arm = (unsigned char)arm,
        .is_censored = !outcome->reached,
        .log2_epochs = log2(outcome->epochs > 0 ? outcome->epochs : 0.5),
        .log2_guess = outcome->reached ? 0 : flight->log2_guess};
    if (!outcome->reached) {
        keep_observation(governor, &observation);
        note_failure(governor, flight->recurrence, arm);
        governor->failures_after_success[arm]++;
        if (governor->success_count == 0 && arm == governor->job.default_arm)
            governor->default_failures++;
        return;
    }
    watch_for_change(governor, arm, outcome->epochs);
    keep_observation(governor, &observation);
    wg__curve_book_add(&governor->curves, &flight->curve, outcome->epochs);
    governor->failures_after_success[arm] = 0;
    if (governor->success_count++ == 0)
        governor->first_run_j = outcome->cost_j;
    governor->completed++;
    governor->explored++;
    struct wg_failure *failure = find_failure(governor, flight->recurrence);
    if (failure)
        failure->arms = 0;
}

static void transfer(struct wg_batch_policy *policy, struct wg_batch_policy *source,
                     const size_t *arm_of_source)
{
    struct wg_governor *governor = as_governor(policy), *from = as_governor(source);
    if (from->observation_count > 0)
        wg__governor_refresh(from);
    for (size_t t = 0; t < from->observation_count; t++) {
        struct wg_epochs_observation observation = from->observations[t];
        const size_t arm = arm_of_source[observation.arm];
        if (arm == SIZE_MAX)
            continue;
        observation.arm = (unsigned char)arm;
        keep_observation(governor, &observation);
        governor->success_count += !observation.is_censored;
    }
    for (size_t i = 0; i < from->job.arm_count; i++)
        if (arm_of_source[i] != SIZE_MAX)
            governor->cost[arm_of_source[i]].elsewhere_j = from->cost[i].epoch_j;
    governor->curves = from->curves;
    governor->explored = wg__governor_constants.transfer_age;
    governor->version++;
}

static size_t best_arm(const struct wg_batch_policy *policy)
{
    return ((const struct wg_governor *)policy)->incumbent;
}

/* Epochs may be known from another GPU type before any cost on this one is. */
static bool believe(struct wg_batch_policy *policy, size_t arm, struct wg_batch_belief *out)
{
    static const double sds_of_80_percent = 1.2815515655446004;
    struct wg_governor *governor = as_governor(policy);
    wg__governor_refresh(governor);
    if (governor->observation_count == 0)
        return false;
    const struct wg_epochs_model *model = &governor->model;
    const double spread = exp2(sds_of_80_percent * sqrt(model->variance[arm]));
    const double epochs =
        exp2(model->mean[arm]) * exp(0.5 * M_LN2 * M_LN2 * model->noise_variance[arm]);
    const bool has_cost = wg__governor_has_cost(governor);
    const double epoch_j = has_cost ? governor->cost[arm].epoch_j : (double)NAN;
    *out =
        (struct wg_batch_belief){.recurrence_j = has_cost ? governor->expected_j[arm] : (double)NAN,
                                 .cost_j = epoch_j * epochs,
                                 .low_j = epoch_j * epochs / spread,
                                 .high_j = epoch_j * epochs * spread,
                                 .epochs = epochs,
                                 .epochs_low = epochs / spread,
                                 .epochs_high = epochs * spread};
    return true;
}

const struct wg_batch_policy_ops wg__batch_policy_wattgov = {
    .name = "wattgov",
    .summary = "one shared epochs curve, surveyed costs, information-directed choice, early stop",
    .create = create,
    .destroy = destroy,
    .ask = ask,
    .may_continue = may_continue,
    .tell_survey = tell_survey,
    .tell_profile = tell_profile,
    .tell_run = tell_run,
    .transfer = transfer,
    .resume = resume,
    .forget = forget,
    .save = wg__governor_save,
    .load = wg__governor_load,
    .best_arm = best_arm,
    .believe = believe,
};
