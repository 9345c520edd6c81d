/* SPDX-License-Identifier: MIT
 *
 * The replay world: recurrences one after another, or several in flight. See training.h for the
 * rules.
 *
 * One attempt is a recorded run (drawn by name: seed, recurrence, attempt) at one arm and limit.
 * Before each epoch the policy may stop it; what it costs after k epochs is a function of k alone,
 * so the two drivers below share all accounting:
 *
 *   in sequence    an attempt runs to its end before the next is asked for
 *   in flight      recurrences arrive as a Poisson process; an attempt takes a time that is
 *                  lognormal (sd 0.35) and does not depend on what was chosen (as in Zeus's replay
 *                  of the Alibaba trace); its epochs end at even steps within it
 *
 * Owns: the policy and the attempts of one replay.    Threads: a replay belongs to one thread.
 */
#include "simulate/training.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "math/normal.h"
#include "optimize/objective.h"

/* Runs of an arm, beside the first, that measure its best limits again. */
enum { PROBED_AGAIN_MAX = 6 };

static const double duration_sd_log = 0.35;

enum { STREAM_WORLD, STREAM_POLICY, STREAM_ARRIVALS, STREAM_WARM_START };

/* One attempt of one recurrence. */
struct attempt {
    uint64_t recurrence;
    unsigned number; /* 0: the first of its recurrence */
    uint64_t ticket;
    const struct wg_training_case *world;
    const struct wg_training_costs *costs;
    const struct wg_training_run *run;
    size_t arm;
    size_t limit;
    bool first_epoch_profiled;      /* WG_CHARGE_EPOCH */
    struct wg_training_bill probes; /* WG_CHARGE_SECONDS */
    double probe_epochs;            /* useful work done while probing */
    unsigned epochs;                /* done */
    size_t next_milestone;
    double metric;
    double start_s, epoch_s, duration_s; /* in flight only */
};

struct replay {
    const struct wg_training_setup *setup;
    const struct wg_training_rules *rules;
    struct wg_training_record *record;
    struct wg_batch_policy *policy;
    struct wg_rng world_rng;
    struct wg_rng policy_rng;
    struct wg_training_costs costs[2]; /* before and after the drift */
    bool is_profiled[WG_ARMS_MAX];
    bool profiled_drifted[WG_ARMS_MAX]; /* the profile is that of the drifted world */
    size_t best_limit[WG_ARMS_MAX];     /* as profiled */
    struct wg_power_search *searches;   /* per arm; WG_CHARGE_SECONDS only */
    unsigned times_probed[WG_ARMS_MAX]; /* runs that measured the arm's limits */
};

static bool is_drifted(const struct replay *replay, uint64_t recurrence)
{
    return replay->setup->drifted && recurrence >= replay->rules->drift_at;
}

static const struct wg_training_case *world_at(const struct replay *replay, uint64_t recurrence)
{
    return is_drifted(replay, recurrence) ? replay->setup->drifted : replay->setup->training_case;
}

static double cost_of(const struct replay *replay, double energy_j, double time_s)
{
    const double eta = replay->rules->eta;
    return eta * energy_j + (1 - eta) * replay->setup->training_case->max_power_w * time_s;
}

static void charge(struct replay *replay, uint64_t recurrence, struct wg_training_bill bill)
{
    replay->record->energy_j[recurrence] += bill.energy_j;
    replay->record->time_s[recurrence] += bill.time_s;
    replay->record->cost_j[recurrence] += bill.cost_j;
}

/* What the attempt has cost after `epochs` epochs. */
static struct wg_training_bill bill_after(const struct replay *replay,
                                          const struct attempt *attempt, unsigned epochs)
{
    struct wg_training_bill bill = {0};
    if (epochs == 0)
        return bill;
    const struct wg_training_arm *arm = &attempt->world->arms[attempt->arm];
    const double time_s = arm->epoch_time_s[attempt->limit];
    double plain_epochs = epochs;
    if (attempt->first_epoch_profiled) {
        bill.energy_j = attempt->costs->first_epoch_energy_j[attempt->arm];
        bill.time_s = attempt->costs->first_epoch_time_s[attempt->arm];
        plain_epochs -= 1;
    } else if (attempt->probe_epochs > 0) {
        /* Probes train as well; a run that ends while it is still probing pays its share of them.
         */
        const double share = fmin(1, epochs / attempt->probe_epochs);
        bill.energy_j = share * attempt->probes.energy_j;
        bill.time_s = share * attempt->probes.time_s;
        plain_epochs = fmax(0, epochs - attempt->probe_epochs);
    }
    bill.time_s += plain_epochs * time_s;
    bill.energy_j += plain_epochs * time_s * arm->power_w[attempt->limit];
    bill.cost_j = cost_of(replay, bill.energy_j, bill.time_s);
    return bill;
}

/* The best limit of the nearest batch size that has been profiled, in W; NaN when there is none. */
static double neighbour_limit_w(const struct replay *replay, const struct attempt *attempt)
{
    const struct wg_training_case *world = attempt->world;
    double best = NAN, distance = INFINITY;
    for (size_t i = 0; i < world->arm_count; i++) {
        const double octaves =
            fabs(log2(world->arms[i].batch_size / world->arms[attempt->arm].batch_size));
        if (replay->is_profiled[i] && octaves < distance) {
            distance = octaves;
            best = world->limit_w[replay->best_limit[i]];
        }
    }
    return best;
}

static struct wg_objective objective_of(const struct replay *replay)
{
    return (struct wg_objective){.kind = WG_OBJECTIVE_COST,
                                 .eta = replay->rules->eta,
                                 .max_power_w = replay->setup->training_case->max_power_w};
}

/* Measures one limit for the seconds that the rules say, with noise; training goes on meanwhile. */
static enum wg_code probe(struct replay *replay, struct attempt *attempt, size_t limit,
                          struct wg_rng *rng, struct wg_error *err)
{
    const struct wg_training_arm *arm = &attempt->world->arms[attempt->arm];
    const double probe_s = replay->rules->probe_s, noise = replay->rules->probe_noise;
    const double power_w = arm->power_w[limit] * exp(noise * wg__rng_normal(rng));
    const double throughput = exp(noise * wg__rng_normal(rng)) / arm->epoch_time_s[limit];
    attempt->probes.energy_j += arm->power_w[limit] * probe_s;
    attempt->probes.time_s += probe_s;
    attempt->probe_epochs += probe_s / arm->epoch_time_s[limit];
    return wg__power_search_tell(&replay->searches[attempt->arm], limit, power_w, throughput, err);
}

/* Searches the limits of a new arm; or measures the best few again when the arm is run again, for a
 * policy whose search saves probes at first. */
static enum wg_code probe_limits(struct replay *replay, struct attempt *attempt, struct wg_rng *rng,
                                 struct wg_batch_profile *profile, struct wg_error *err)
{
    const struct wg_training_case *world = attempt->world;
    struct wg_power_search *search = &replay->searches[attempt->arm];
    const struct wg_objective objective = objective_of(replay);
    enum wg_code code = WG_OK;
    size_t limit;
    if (replay->is_profiled[attempt->arm]) {
        while (code == WG_OK &&
               wg__power_search_ask_again(search, replay->times_probed[attempt->arm], &limit))
            code = probe(replay, attempt, limit, rng, err);
    } else {
        code = wg__power_search_init(search, &objective, replay->setup->search, world->limit_w,
                                     world->limit_count, neighbour_limit_w(replay, attempt), err);
        while (code == WG_OK && wg__power_search_ask(search, &limit))
            code = probe(replay, attempt, limit, rng, err);
    }
    if (code != WG_OK)
        return code;
    const size_t best = wg__power_search_best(search), top = world->limit_count - 1;
    replay->best_limit[attempt->arm] = best;
    profile->epoch_cost_j =
        wg__objective_cost_per_s(&objective, search->power_w[best]) / search->throughput[best];
    /* The search always probes the largest limit (power_limit.h). */
    profile->epoch_cost_max_limit_j =
        wg__objective_cost_per_s(&objective, search->power_w[top]) / search->throughput[top];
    return WG_OK;
}

/* Whether this run of a known arm measures its best limits once more. */
static bool probes_again(struct replay *replay, size_t arm)
{
    if (replay->rules->charge != WG_CHARGE_SECONDS ||
        replay->setup->search != WG_POWER_SEARCH_FEW_PROBES ||
        replay->times_probed[arm] > PROBED_AGAIN_MAX)
        return false;
    replay->times_probed[arm]++;
    return replay->is_profiled[arm];
}

/* Profiles the arm's limits where they are not known, and tells the policy. */
static enum wg_code profile_arm(struct replay *replay, struct attempt *attempt, struct wg_rng *rng,
                                struct wg_error *err)
{
    const size_t arm = attempt->arm;
    const bool drifted = is_drifted(replay, attempt->recurrence);
    const bool is_stale = replay->is_profiled[arm] && drifted != replay->profiled_drifted[arm];
    /* A running job shows at once that its epochs cost something else now; the limits are searched
     * anew only where another one would be best. */
    const bool search =
        !replay->is_profiled[arm] || (is_stale && replay->rules->charge == WG_CHARGE_EPOCH &&
                                      attempt->costs->best_limit[arm] != replay->best_limit[arm]);
    if (is_stale) /* what was measured before is of another job */
        replay->times_probed[arm] = PROBED_AGAIN_MAX + 1;
    const bool again = probes_again(replay, arm);
    if (!search && !is_stale && !again) {
        attempt->limit = replay->best_limit[arm];
        return WG_OK;
    }
    struct wg_batch_profile profile = {0};
    if ((search || again) && replay->rules->charge == WG_CHARGE_SECONDS) {
        enum wg_code code = probe_limits(replay, attempt, rng, &profile, err);
        if (code != WG_OK)
            return code;
    } else {
        if (search) {
            replay->best_limit[arm] = attempt->costs->best_limit[arm];
            attempt->first_epoch_profiled = true;
        }
        const double *cost_j = attempt->costs->epoch_cost_j[arm];
        profile.epoch_cost_j = cost_j[replay->best_limit[arm]];
        profile.epoch_cost_max_limit_j = cost_j[attempt->world->limit_count - 1];
    }
    attempt->limit = replay->best_limit[arm];
    profile.first_epoch_cost_j = bill_after(replay, attempt, 1).cost_j;
    replay->is_profiled[arm] = true;
    replay->profiled_drifted[arm] = drifted;
    replay->policy->ops->tell_profile(replay->policy, arm, &profile);
    return WG_OK;
}

static void survey_arm(struct replay *replay, uint64_t recurrence, size_t arm, struct wg_rng *rng)
{
    const struct wg_training_case *world = world_at(replay, recurrence);
    const struct wg_training_costs *costs = &replay->costs[is_drifted(replay, recurrence)];
    const size_t top = world->limit_count - 1;
    const double time_s = replay->rules->survey_s;
    const double energy_j = world->arms[arm].power_w[top] * time_s;
    const struct wg_training_bill bill = {energy_j, time_s, cost_of(replay, energy_j, time_s)};
    const double noise = exp(replay->rules->survey_noise * wg__rng_normal(rng));
    charge(replay, recurrence, bill);
    replay->policy->ops->tell_survey(replay->policy, arm, costs->epoch_cost_j[arm][top] * noise,
                                     bill.cost_j);
}

/* A new decision, or more time for the latest one: the choice, the first stop bound, the outcome.
 */
static void keep_decision_time(struct replay *replay, bool is_new, uint64_t since_ns)
{
    struct wg_training_record *record = replay->record;
    const float us = (float)((double)(wg__clock_ns() - since_ns) * 1e-3);
    if (is_new)
        record->decisions++;
    const size_t latest = record->decisions - 1;
    if (latest < record->decision_capacity)
        record->decision_us[latest] = is_new ? us : record->decision_us[latest] + us;
}

/* Asks the policy until it wants a run, and prepares that run. */
static enum wg_code start_attempt(struct replay *replay, uint64_t recurrence, unsigned number,
                                  struct attempt *out, struct wg_error *err)
{
    struct wg_batch_policy *policy = replay->policy;
    struct wg_rng of_recurrence = wg__rng_split(&replay->world_rng, recurrence);
    struct wg_rng rng = wg__rng_split(&of_recurrence, number);
    const double luck = wg__rng_uniform(&rng);
    const struct wg_batch_request request = {.recurrence = recurrence, .attempt = number};
    struct wg_batch_step step;
    const uint64_t before_ns = wg__clock_ns();
    for (;;) {
        policy->ops->ask(policy, &request, &replay->policy_rng, &step);
        if (step.kind != WG_STEP_SURVEY)
            break;
        survey_arm(replay, recurrence, step.arm, &rng);
    }
    keep_decision_time(replay, true, before_ns);
    const struct wg_training_case *world = world_at(replay, recurrence);
    const struct wg_training_arm *arm = &world->arms[step.arm];
    *out = (struct attempt){
        .recurrence = recurrence,
        .number = number,
        .ticket = step.ticket,
        .world = world,
        .costs = &replay->costs[is_drifted(replay, recurrence)],
        .run = &arm->runs[(size_t)(luck * (double)arm->run_count)],
        .arm = step.arm,
        .metric = NAN,
    };
    replay->record->attempts++;
    if (step.limit != WG_LIMIT_BEST) {
        out->limit = (size_t)step.limit;
        return WG_OK;
    }
    return profile_arm(replay, out, &rng, err);
}

/* Whether the attempt has one more epoch before it: the policy's word, and the job's own end. */
static bool may_run_epoch(struct replay *replay, const struct attempt *attempt)
{
    const struct wg_batch_policy_ops *ops = replay->policy->ops;
    if (attempt->epochs >= attempt->world->max_epochs)
        return false;
    if (!ops->may_continue)
        return true;
    const uint64_t before_ns = attempt->epochs == 0 ? wg__clock_ns() : 0;
    const bool may =
        ops->may_continue(replay->policy, attempt->ticket, attempt->epochs, attempt->metric);
    if (attempt->epochs == 0)
        keep_decision_time(replay, false, before_ns);
    return may;
}

/* Trains one epoch; true when the target is reached with it. */
static bool run_epoch(struct attempt *attempt)
{
    const struct wg_training_run *run = attempt->run;
    attempt->epochs++;
    while (attempt->next_milestone < run->milestone_count &&
           run->milestones[attempt->next_milestone].epoch <= attempt->epochs)
        attempt->metric = run->milestones[attempt->next_milestone++].metric;
    return attempt->epochs == run->target_epoch;
}

static void end_attempt(struct replay *replay, const struct attempt *attempt, bool reached)
{
    const struct wg_training_bill bill = bill_after(replay, attempt, attempt->epochs);
    charge(replay, attempt->recurrence, bill);
    if (reached) {
        replay->record->arm[attempt->recurrence] = (unsigned char)attempt->arm;
        replay->record->limit[attempt->recurrence] = (unsigned char)attempt->limit;
    }
    const struct wg_batch_outcome outcome = {
        .reached = reached, .epochs = attempt->epochs, .cost_j = bill.cost_j};
    const uint64_t before_ns = wg__clock_ns();
    replay->policy->ops->tell_run(replay->policy, attempt->ticket, &outcome);
    keep_decision_time(replay, false, before_ns);
}

/* After too many failed attempts somebody runs the job as they always did: the default batch size
 * at its largest limit, for as long as it takes. The policy does not hear of it. */
static void rescue(struct replay *replay, uint64_t recurrence)
{
    const struct wg_training_case *world = world_at(replay, recurrence);
    const struct wg_training_costs *costs = &replay->costs[is_drifted(replay, recurrence)];
    size_t arm = world->default_arm, limit = world->limit_count - 1;
    if (!isfinite(costs->expected_epochs[arm])) { /* after a drift the default may be of no use */
        arm = costs->oracle_arm;
        limit = costs->oracle_limit;
    }
    charge(replay, recurrence, wg__training_expected(world, costs, replay->rules->eta, arm, limit));
    replay->record->arm[recurrence] = (unsigned char)arm;
    replay->record->limit[recurrence] = (unsigned char)limit;
    replay->record->gave_up++;
}

static enum wg_code run_in_sequence(struct replay *replay, struct wg_error *err)
{
    for (uint64_t recurrence = 0; recurrence < replay->rules->recurrences; recurrence++) {
        bool reached = false;
        for (unsigned number = 0; number < WG_ATTEMPTS_MAX && !reached; number++) {
            struct attempt attempt;
            enum wg_code code = start_attempt(replay, recurrence, number, &attempt, err);
            if (code != WG_OK)
                return code;
            while (!reached && may_run_epoch(replay, &attempt))
                reached = run_epoch(&attempt);
            end_attempt(replay, &attempt, reached);
        }
        if (!reached)
            rescue(replay, recurrence);
    }
    return WG_OK;
}

struct flight {
    size_t count;
    struct attempt attempts[WG_IN_FLIGHT_MAX];
};

/* Starts an attempt at `now_s`; it will take `duration_s` if nothing stops it. */
static enum wg_code take_off(struct replay *replay, struct flight *flight, uint64_t recurrence,
                             unsigned number, double now_s, double duration_s, struct wg_error *err)
{
    struct attempt *attempt = &flight->attempts[flight->count];
    enum wg_code code = start_attempt(replay, recurrence, number, attempt, err);
    if (code != WG_OK)
        return code;
    const unsigned max_epochs = attempt->world->max_epochs;
    const unsigned target = attempt->run->target_epoch;
    const unsigned epochs = target > 0 && target <= max_epochs ? target : max_epochs;
    attempt->start_s = now_s;
    attempt->duration_s = duration_s;
    attempt->epoch_s = duration_s / epochs;
    flight->count++;
    return WG_OK;
}

static double next_event_s(const struct attempt *attempt)
{
    return attempt->start_s + attempt->epoch_s * attempt->epochs;
}

static size_t find_next(const struct flight *flight)
{
    size_t next = 0;
    for (size_t i = 1; i < flight->count; i++)
        if (next_event_s(&flight->attempts[i]) < next_event_s(&flight->attempts[next]))
            next = i;
    return next;
}

/* One event of the earliest attempt: its next epoch begins, or it ends and perhaps is retried. */
static enum wg_code advance(struct replay *replay, struct flight *flight, size_t index,
                            struct wg_error *err)
{
    struct attempt *attempt = &flight->attempts[index];
    const bool reached = attempt->epochs > 0 && attempt->epochs == attempt->run->target_epoch;
    if (!reached && may_run_epoch(replay, attempt)) {
        (void)run_epoch(attempt);
        return WG_OK;
    }
    const struct attempt ended = *attempt;
    *attempt = flight->attempts[--flight->count];
    end_attempt(replay, &ended, reached);
    if (reached)
        return WG_OK;
    if (ended.number + 1 < WG_ATTEMPTS_MAX)
        return take_off(replay, flight, ended.recurrence, ended.number + 1, next_event_s(&ended),
                        ended.duration_s, err);
    rescue(replay, ended.recurrence);
    return WG_OK;
}

static enum wg_code run_in_flight(struct replay *replay, struct wg_rng *arrivals,
                                  struct wg_error *err)
{
    struct flight *flight = wg__alloc_zeroed(1, sizeof *flight);
    if (!flight)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    enum wg_code code = WG_OK;
    double arrival_s = 0;
    uint64_t recurrence = 0;
    while (code == WG_OK && (recurrence < replay->rules->recurrences || flight->count > 0)) {
        const size_t next = find_next(flight);
        const bool can_arrive =
            recurrence < replay->rules->recurrences && flight->count < WG_IN_FLIGHT_MAX;
        if (flight->count > 0 &&
            (!can_arrive || next_event_s(&flight->attempts[next]) <= arrival_s)) {
            code = advance(replay, flight, next, err);
            continue;
        }
        /* The mean of the lognormal is 1, so `concurrency` arrivals per unit of time keep that many
         * runs in flight on average. */
        const double duration_s = exp(duration_sd_log * wg__rng_normal(arrivals) -
                                      0.5 * duration_sd_log * duration_sd_log);
        code = take_off(replay, flight, recurrence++, 0, arrival_s, duration_s, err);
        arrival_s += -log(wg__rng_uniform(arrivals)) / replay->rules->concurrency;
    }
    wg__free(flight);
    return code;
}

static void describe_job(const struct wg_training_case *training_case, struct wg_batch_job *out)
{
    *out = (struct wg_batch_job){
        .arm_count = training_case->arm_count,
        .default_arm = training_case->default_arm,
        .limit_count = training_case->limit_count,
        .max_epochs = training_case->max_epochs,
        .higher_is_better = training_case->higher_is_better,
        .target_metric = training_case->target_metric,
    };
    for (size_t i = 0; i < training_case->arm_count; i++)
        out->batch_size[i] = training_case->arms[i].batch_size;
}

static enum wg_code replay_with(struct replay *replay, const struct wg_rng *root,
                                struct wg_error *err)
{
    const struct wg_training_setup *setup = replay->setup;
    replay->world_rng = wg__rng_split(root, STREAM_WORLD);
    replay->policy_rng = wg__rng_split(root, STREAM_POLICY);
    wg__training_costs(setup->training_case, replay->rules->eta, &replay->costs[0]);
    if (replay->rules->charge == WG_CHARGE_SECONDS) {
        replay->searches = wg__alloc_zeroed(WG_ARMS_MAX, sizeof *replay->searches);
        if (!replay->searches)
            return wg__fail(err, WG_ENOMEM, "out of memory");
    }
    if (setup->drifted)
        wg__training_costs(setup->drifted, replay->rules->eta, &replay->costs[1]);
    if (!(replay->rules->concurrency > 1))
        return run_in_sequence(replay, err);
    struct wg_rng arrivals = wg__rng_split(root, STREAM_ARRIVALS);
    return run_in_flight(replay, &arrivals, err);
}

static void clear_record(struct wg_training_record *record, size_t recurrences)
{
    for (size_t i = 0; i < recurrences; i++) {
        record->cost_j[i] = record->energy_j[i] = record->time_s[i] = 0;
        record->arm[i] = record->limit[i] = 0;
    }
    record->decisions = record->attempts = record->gave_up = 0;
}

/* Lets a policy learn on the warm-start GPU and hands what it knows to `policy`. */
static enum wg_code warm_start(const struct wg_training_setup *setup,
                               const struct wg_training_rules *rules, const struct wg_rng *root,
                               struct wg_batch_policy *policy, struct wg_error *err)
{
    const size_t count = setup->warm_recurrences;
    struct wg_training_rules learning = *rules;
    learning.recurrences = count;
    learning.concurrency = 1;
    const struct wg_training_setup source = {.training_case = setup->warm,
                                             .ops = setup->ops,
                                             .options = setup->options,
                                             .search = setup->search};
    struct wg_batch_job job;
    describe_job(setup->warm, &job);
    struct wg_training_record record = {0};
    double *sums = wg__alloc_zeroed(count, 3 * sizeof *sums);
    unsigned char *choices = wg__alloc_zeroed(count, 2);
    struct replay *replay = wg__alloc_zeroed(1, sizeof *replay);
    enum wg_code code = WG_OK;
    if (!sums || !choices || !replay) {
        code = wg__fail(err, WG_ENOMEM, "out of memory");
        goto out;
    }
    record.cost_j = sums;
    record.energy_j = sums + count;
    record.time_s = sums + 2 * count;
    record.arm = choices;
    record.limit = choices + count;
    replay->setup = &source;
    replay->rules = &learning;
    replay->record = &record;
    code = setup->ops->create(&replay->policy, &job, &setup->options, err);
    if (code == WG_OK)
        code = replay_with(replay, root, err);
    if (code == WG_OK) {
        size_t arm_of_source[WG_ARMS_MAX];
        const struct wg_training_case *target = setup->training_case;
        for (size_t i = 0; i < setup->warm->arm_count; i++) {
            arm_of_source[i] = SIZE_MAX;
            for (size_t j = 0; j < target->arm_count; j++)
                if (setup->warm->arms[i].batch_size == target->arms[j].batch_size)
                    arm_of_source[i] = j;
        }
        setup->ops->transfer(policy, replay->policy, arm_of_source);
    }
    setup->ops->destroy(replay->policy);
    wg__free(replay->searches);
out:
    wg__free(replay);
    wg__free(choices);
    wg__free(sums);
    return code;
}

enum wg_code wg__training_replay(const struct wg_training_setup *setup,
                                 const struct wg_training_rules *rules, uint64_t seed,
                                 uint64_t rng_key, struct wg_training_record *record,
                                 struct wg_error *err)
{
    struct wg_rng of_seed, root;
    wg__rng_init(&of_seed, seed);
    root = wg__rng_split(&of_seed, rng_key);
    struct wg_batch_job job;
    describe_job(setup->training_case, &job);
    clear_record(record, rules->recurrences);
    struct replay *replay = wg__alloc_zeroed(1, sizeof *replay);
    if (!replay)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    replay->setup = setup;
    replay->rules = rules;
    replay->record = record;
    enum wg_code code = setup->ops->create(&replay->policy, &job, &setup->options, err);
    if (code == WG_OK && setup->warm && setup->ops->transfer) {
        const struct wg_rng warm_root = wg__rng_split(&root, STREAM_WARM_START);
        code = warm_start(setup, rules, &warm_root, replay->policy, err);
    }
    if (code == WG_OK)
        code = replay_with(replay, &root, err);
    if (replay->policy)
        setup->ops->destroy(replay->policy);
    wg__free(replay->searches);
    wg__free(replay);
    return code;
}
