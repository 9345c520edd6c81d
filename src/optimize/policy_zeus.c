/* SPDX-License-Identifier: MIT
 *
 * The policy `zeus`: pruning, then Gaussian Thompson sampling, with an early stop by cost.
 *
 * This is the baseline: it behaves as the simulator that was published with the paper (You, Chung,
 * Chowdhury, "Zeus: Understanding and Optimizing GPU Energy Consumption of DNN Training", NSDI'23).
 *
 * 1. Two rounds of pruning (pruning.h); a retry within a recurrence takes the next arm that they
 * name.
 * 2. Then a bandit over the survivors (thompson.h) whose reward is the negative cost of an attempt.
 *    Failed and stopped attempts are observed with what they have cost.
 * 3. An attempt may do as many epochs as beta times the least cost so far pays for. That least cost
 * is of whole recurrences, failed attempts included; the bound is set when the attempt starts. An
 * arm whose first epoch is too dear is observed at 100 times the bound, and the recurrence is
 * charged nothing for it.
 * 4. With several runs in flight (`concurrent`), whatever starts while another runs takes the arm
 * of the cheapest run that ever reached the target; exploration goes on only when nothing runs, and
 *    the least cost is that of a single run.
 *
 * Where the original gives up, we go on, since a governor must: if pruning leaves no arm, the
 * default is the only arm; if the default itself fails in the first recurrence, pruning tries the
 * others. The caller bounds the attempts of a recurrence (WG_ATTEMPTS_MAX), so neither can loop. In
 * the original's concurrent simulation an arm that is too dear for one epoch is observed at cost 0,
 * the best there is; that is an oversight, and rule 3 holds here in both.
 *
 * Owns: one block and the bandit's windows.    Threads: one at a time.
 */
#include "optimize/batch_size.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "optimize/pruning.h"
#include "optimize/thompson.h"

enum { PRUNING_ROUNDS = 2 };

static const double default_beta = 2.0;

/* An arm that cannot pay for one epoch is taken to cost this many times the bound. */
static const double too_dear_factor = 100.0;

/* A run in flight. */
struct run {
    bool is_active;
    uint64_t ticket;
    size_t arm;
    double bound_j; /* beta times the least cost known when it started; INFINITY: none known */
};

struct zeus {
    struct wg_batch_policy base;
    struct wg_batch_job job;
    double beta;
    bool is_concurrent;

    struct wg_pruning pruning;
    struct wg_thompson bandit; /* observes from the start, picks once pruning is over */
    bool is_bandit_picking;
    bool is_survivor[WG_ARMS_MAX]; /* set when the bandit begins to pick */

    double epoch_cost_j[WG_ARMS_MAX]; /* at the best limit; 0: not profiled yet */
    double least_cost_j;              /* of a recurrence, or of a run when concurrent */
    size_t cheapest_arm;              /* of the cheapest run that reached, for concurrent starts */
    double cheapest_cost_j;

    uint64_t recurrence; /* the one that `paid_j` belongs to */
    double paid_j;       /* for its attempts so far */

    uint64_t next_ticket;
    size_t in_flight;
    struct run run[WG_IN_FLIGHT_MAX];
};

static enum wg_code create(struct wg_batch_policy **out, const struct wg_batch_job *job,
                           const struct wg_batch_options *options, struct wg_error *err)
{
    enum wg_code code = wg__batch_job_check(job, err);
    if (code != WG_OK)
        return code;
    if (isnan(options->beta))
        return wg__fail(err, WG_EINVAL, "policy zeus: beta is not a number");
    struct zeus *zeus = wg__alloc_zeroed(1, sizeof *zeus);
    if (zeus == NULL)
        return wg__fail(err, WG_ENOMEM, "policy zeus: out of memory");
    code = wg__thompson_init(&zeus->bandit, job->arm_count, options->window, err);
    if (code != WG_OK) {
        wg__free(zeus);
        return code;
    }
    zeus->base.ops = &wg__batch_policy_zeus;
    zeus->job = *job;
    zeus->beta = options->beta > 0.0 ? options->beta : default_beta;
    zeus->is_concurrent = options->concurrent;
    zeus->least_cost_j = INFINITY;
    zeus->cheapest_cost_j = INFINITY;
    zeus->cheapest_arm = job->default_arm;
    wg__pruning_init(&zeus->pruning, job->arm_count, job->default_arm, PRUNING_ROUNDS);
    *out = &zeus->base;
    return WG_OK;
}

static void destroy(struct wg_batch_policy *policy)
{
    if (policy == NULL)
        return;
    wg__thompson_fini(&((struct zeus *)policy)->bandit);
    wg__free(policy);
}

/* Pruning is over: opens the survivors to the bandit. */
static void begin_picking(struct zeus *zeus)
{
    for (size_t i = 0; i < zeus->pruning.candidate_count; i++)
        zeus->is_survivor[zeus->pruning.candidate[i]] = true;
    if (zeus->pruning.candidate_count == 0)
        zeus->is_survivor[zeus->job.default_arm] = true;
    zeus->is_bandit_picking = true;
}

static size_t choose_arm(struct zeus *zeus, struct wg_rng *rng)
{
    if (zeus->is_concurrent && zeus->in_flight > 0)
        return zeus->cheapest_arm;
    if (!zeus->is_bandit_picking) {
        size_t arm = 0;
        if (wg__pruning_ask(&zeus->pruning, &arm))
            return arm;
        begin_picking(zeus);
    }
    return wg__thompson_pick(&zeus->bandit, zeus->is_survivor, rng);
}

static struct run *find_run(struct zeus *zeus, uint64_t ticket)
{
    for (size_t i = 0; i < WG_IN_FLIGHT_MAX; i++) {
        if (zeus->run[i].is_active && zeus->run[i].ticket == ticket)
            return &zeus->run[i];
    }
    return NULL;
}

/* A place for one more run; the caller keeps at most WG_IN_FLIGHT_MAX in flight. */
static struct run *open_run(struct zeus *zeus)
{
    for (size_t i = 0; i < WG_IN_FLIGHT_MAX; i++) {
        if (!zeus->run[i].is_active)
            return &zeus->run[i];
    }
    return NULL;
}

static double cost_bound(const struct zeus *zeus)
{
    if (isinf(zeus->least_cost_j)) /* nothing has finished yet; also keeps infinity times 0 out */
        return INFINITY;
    return zeus->beta * zeus->least_cost_j;
}

static void begin_attempt(struct zeus *zeus, const struct wg_batch_request *request)
{
    if (request->attempt == 0 || request->recurrence != zeus->recurrence) {
        zeus->recurrence = request->recurrence;
        zeus->paid_j = 0.0;
    }
}

static void take_off(struct zeus *zeus, size_t arm, uint64_t ticket)
{
    struct run *run = open_run(zeus);
    if (run == NULL) /* only a damaged log has more in flight */
        return;
    *run =
        (struct run){.is_active = true, .ticket = ticket, .arm = arm, .bound_j = cost_bound(zeus)};
    zeus->in_flight++;
}

static void ask(struct wg_batch_policy *policy, const struct wg_batch_request *request,
                struct wg_rng *rng, struct wg_batch_step *out)
{
    struct zeus *zeus = (struct zeus *)policy;
    begin_attempt(zeus, request);
    *out = (struct wg_batch_step){.kind = WG_STEP_RUN,
                                  .arm = choose_arm(zeus, rng),
                                  .limit = WG_LIMIT_BEST,
                                  .ticket = zeus->next_ticket++};
    take_off(zeus, out->arm, out->ticket);
}

/* What `ask` changes: where pruning stands, and the run that takes off. */
static void resume(struct wg_batch_policy *policy, const struct wg_batch_request *request,
                   const struct wg_batch_step *step)
{
    struct zeus *zeus = (struct zeus *)policy;
    begin_attempt(zeus, request);
    size_t arm;
    if (!(zeus->is_concurrent && zeus->in_flight > 0) && !zeus->is_bandit_picking &&
        !wg__pruning_ask(&zeus->pruning, &arm))
        begin_picking(zeus);
    take_off(zeus, step->arm, step->ticket);
    if (zeus->next_ticket <= step->ticket)
        zeus->next_ticket = step->ticket + 1;
}

static void forget(struct wg_batch_policy *policy, uint64_t ticket)
{
    struct zeus *zeus = (struct zeus *)policy;
    struct run *run = find_run(zeus, ticket);
    if (run == NULL)
        return;
    run->is_active = false;
    zeus->in_flight--;
}

/* floor(bound / epoch cost), exactly: a quotient that was rounded up to a whole number is set back,
 * or a run would pass its bound by one epoch. */
static double affordable_epochs(double bound_j, double epoch_cost_j)
{
    const double epochs = floor(bound_j / epoch_cost_j);
    return fma(epochs, epoch_cost_j, -bound_j) > 0.0 ? epochs - 1.0 : epochs;
}

static bool may_continue(struct wg_batch_policy *policy, uint64_t ticket, unsigned epochs_done,
                         double metric)
{
    (void)metric; /* Zeus looks at the metric only to see whether the target is reached. */
    struct zeus *zeus = (struct zeus *)policy;
    const struct run *run = find_run(zeus, ticket);
    if (run == NULL)
        return true;
    if (epochs_done >= zeus->job.max_epochs)
        return false;
    const double epoch_cost_j = zeus->epoch_cost_j[run->arm];
    if (isinf(run->bound_j) || epoch_cost_j <= 0.0)
        return true;
    return (double)epochs_done < affordable_epochs(run->bound_j, epoch_cost_j);
}

static void tell_profile(struct wg_batch_policy *policy, size_t arm,
                         const struct wg_batch_profile *profile)
{
    struct zeus *zeus = (struct zeus *)policy;
    assert(arm < zeus->job.arm_count);
    zeus->epoch_cost_j[arm] = profile->epoch_cost_j;
}

/* What the finished run teaches about the least cost. */
static void count_cost(struct zeus *zeus, size_t arm, const struct wg_batch_outcome *outcome)
{
    zeus->paid_j += outcome->cost_j;
    if (!outcome->reached)
        return;
    const double cost_j = zeus->is_concurrent ? outcome->cost_j : zeus->paid_j;
    if (cost_j < zeus->least_cost_j)
        zeus->least_cost_j = cost_j;
    if (outcome->cost_j < zeus->cheapest_cost_j) {
        zeus->cheapest_cost_j = outcome->cost_j;
        zeus->cheapest_arm = arm;
    }
}

static void tell_run(struct wg_batch_policy *policy, uint64_t ticket,
                     const struct wg_batch_outcome *outcome)
{
    struct zeus *zeus = (struct zeus *)policy;
    struct run *run = find_run(zeus, ticket);
    if (run == NULL)
        return;
    run->is_active = false;
    zeus->in_flight--;

    const bool has_run = outcome->epochs > 0;
    const double cost_j = has_run ? outcome->cost_j : too_dear_factor * run->bound_j;
    /* Before any recurrence has finished there is no bound, and so no number for a run that a
     * caller could not even start; pruning still hears that it failed. */
    if (isfinite(cost_j))
        wg__thompson_observe(&zeus->bandit, run->arm, -cost_j);
    if (!zeus->is_bandit_picking)
        (void)wg__pruning_tell(&zeus->pruning, run->arm, cost_j, has_run && outcome->reached);
    if (has_run)
        count_cost(zeus, run->arm, outcome);
}

static bool save(const struct wg_batch_policy *policy, struct wg_buffer *out)
{
    const struct zeus *zeus = (const struct zeus *)policy;
    if (zeus->bandit.recent != NULL)
        return false;
    wg__buffer_append(out, (const char *)zeus, sizeof *zeus);
    return true;
}

/* Whether every index stays within its table. */
static bool is_sound(const struct zeus *kept, size_t arms)
{
    const struct wg_pruning *pruning = &kept->pruning;
    bool is_sound = kept->job.arm_count == arms && kept->bandit.arm_count == arms &&
                    kept->bandit.window == 0 && pruning->state <= WG_PRUNING_OVER &&
                    pruning->default_arm < arms && pruning->candidate_count <= arms &&
                    pruning->up_start <= arms && pruning->cursor <= arms &&
                    kept->cheapest_arm < arms && kept->in_flight <= WG_IN_FLIGHT_MAX;
    for (size_t i = 0; i < pruning->candidate_count && is_sound; i++)
        is_sound = pruning->candidate[i] < arms && pruning->order[i] < arms;
    for (size_t i = 0; i < WG_IN_FLIGHT_MAX && is_sound; i++)
        is_sound = kept->run[i].arm < arms;
    return is_sound;
}

static bool load(struct wg_batch_policy *policy, const void *bytes, size_t length)
{
    struct zeus *zeus = (struct zeus *)policy;
    struct zeus kept;
    if (length != sizeof kept || zeus->bandit.recent != NULL)
        return false;
    memcpy(&kept, bytes, sizeof kept);
    if (!is_sound(&kept, zeus->job.arm_count))
        return false;
    kept.base = zeus->base;
    kept.bandit.recent = NULL;
    kept.job = zeus->job;
    *zeus = kept;
    return true;
}

static size_t best_arm(const struct wg_batch_policy *policy)
{
    const struct zeus *zeus = (const struct zeus *)policy;
    if (!zeus->is_bandit_picking)
        return zeus->job.default_arm;
    return wg__thompson_best(&zeus->bandit, zeus->is_survivor);
}

const struct wg_batch_policy_ops wg__batch_policy_zeus = {
    .name = "zeus",
    .summary = "two rounds of pruning, then Gaussian Thompson sampling (Zeus, NSDI'23)",
    .create = create,
    .destroy = destroy,
    .ask = ask,
    .may_continue = may_continue,
    .tell_profile = tell_profile,
    .tell_run = tell_run,
    .resume = resume,
    .forget = forget,
    .save = save,
    .load = load,
    .best_arm = best_arm,
};
