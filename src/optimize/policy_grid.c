/* SPDX-License-Identifier: MIT
 *
 * The policy `grid`: try every (batch size, power limit) once, then keep the cheapest.
 *
 * The default batch size at the largest limit goes first, then its other limits in descending
 * order, then the batch sizes outward from the default, the nearer first and the smaller of two
 * equally near:
 *
 *      place    d, d-1, d+1, d-2, d+2, ...        each with its limits from the largest down
 *
 * A batch size that fails once is dropped with all its limits, because the limit does not change
 * what is computed. There is no early stop: the full price of looking at everything is what this
 * baseline shows. A pair is handed out once, so runs in flight at the same time explore different
 * pairs; once all are handed out, the pair with the least mean cost so far is run for ever. If
 * every batch size has failed, the default at the largest limit is.
 *
 * Owns: one block of memory.    Threads: one at a time.
 */
#include "optimize/batch_size.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

struct pair {
    uint64_t runs; /* that reached the target */
    double mean_cost_j;
    bool is_given; /* handed out, and not given back */
};

struct grid {
    struct wg_batch_policy base;
    struct wg_batch_job job;
    size_t order[WG_ARMS_MAX]; /* the arms outward from the default */
    bool is_dropped[WG_ARMS_MAX];
    size_t
        next; /* place of the next pair to hand out: place in `order` * limit_count + step down */
    uint64_t serial;
    struct pair pair[]; /* arm * limit_count + limit */
};

/* The ticket of a run carries its pair, so no table of the runs in flight is needed. */
static uint64_t make_ticket(uint64_t serial, size_t arm, size_t limit)
{
    return (serial * WG_ARMS_MAX + arm) * WG_BATCH_LIMITS_MAX + limit;
}

static void lay_out_order(struct grid *grid)
{
    const size_t from = grid->job.default_arm, count = grid->job.arm_count;
    size_t next = 0;
    grid->order[next++] = from;
    for (size_t distance = 1; next < count; distance++) {
        if (distance <= from)
            grid->order[next++] = from - distance;
        if (from + distance < count)
            grid->order[next++] = from + distance;
    }
}

static enum wg_code create(struct wg_batch_policy **out, const struct wg_batch_job *job,
                           const struct wg_batch_options *options, struct wg_error *err)
{
    (void)options;
    const enum wg_code code = wg__batch_job_check(job, err);
    if (code != WG_OK)
        return code;
    struct grid *grid = wg__alloc_zeroed(1, sizeof *grid + job->arm_count * job->limit_count *
                                                               sizeof grid->pair[0]);
    if (grid == NULL)
        return wg__fail(err, WG_ENOMEM, "policy grid: out of memory");
    grid->base.ops = &wg__batch_policy_grid;
    grid->job = *job;
    lay_out_order(grid);
    *out = &grid->base;
    return WG_OK;
}

static void destroy(struct wg_batch_policy *policy)
{
    wg__free(policy);
}

/* The next pair that nobody has tried; false when all have been handed out or dropped. */
static bool next_untried(struct grid *grid, size_t *arm_out, size_t *limit_out)
{
    const size_t limits = grid->job.limit_count;
    while (grid->next < grid->job.arm_count * limits) {
        const size_t place = grid->next / limits, step = grid->next % limits;
        const size_t arm = grid->order[place];
        if (grid->is_dropped[arm]) {
            grid->next = (place + 1) * limits;
            continue;
        }
        grid->next++;
        if (grid->pair[arm * limits + limits - 1 - step]
                .is_given) /* one was given back before it */
            continue;
        *arm_out = arm;
        *limit_out = limits - 1 - step;
        return true;
    }
    return false;
}

/* The pair with the least mean cost; the default at the largest limit while nothing is known. A tie
 * goes to the pair that was tried first. */
static void cheapest(const struct grid *grid, size_t *arm_out, size_t *limit_out)
{
    const size_t limits = grid->job.limit_count;
    double least_j = INFINITY;
    *arm_out = grid->job.default_arm;
    *limit_out = limits - 1;
    for (size_t place = 0; place < grid->job.arm_count; place++) {
        const size_t arm = grid->order[place];
        if (grid->is_dropped[arm])
            continue;
        for (size_t limit = limits; limit-- > 0;) {
            const struct pair *pair = &grid->pair[arm * limits + limit];
            if (pair->runs == 0 || pair->mean_cost_j >= least_j)
                continue;
            least_j = pair->mean_cost_j;
            *arm_out = arm;
            *limit_out = limit;
        }
    }
}

static void ask(struct wg_batch_policy *policy, const struct wg_batch_request *request,
                struct wg_rng *rng, struct wg_batch_step *out)
{
    struct grid *grid = (struct grid *)policy;
    (void)request;
    (void)rng;
    size_t arm = 0, limit = 0;
    if (!next_untried(grid, &arm, &limit))
        cheapest(grid, &arm, &limit);
    grid->pair[arm * grid->job.limit_count + limit].is_given = true;
    *out = (struct wg_batch_step){.kind = WG_STEP_RUN,
                                  .arm = arm,
                                  .limit = (int)limit,
                                  .ticket = make_ticket(grid->serial++, arm, limit)};
}

static bool may_continue(struct wg_batch_policy *policy, uint64_t ticket, unsigned epochs_done,
                         double metric)
{
    (void)ticket;
    (void)metric;
    return epochs_done < ((struct grid *)policy)->job.max_epochs;
}

static void tell_profile(struct wg_batch_policy *policy, size_t arm,
                         const struct wg_batch_profile *profile)
{
    (void)policy; /* The grid runs each limit to the end instead. */
    (void)arm;
    (void)profile;
}

/* The pair that a ticket carries; false: no ticket of this grid. */
static bool read_ticket(const struct grid *grid, uint64_t ticket, size_t *arm_out,
                        size_t *limit_out)
{
    *limit_out = (size_t)(ticket % WG_BATCH_LIMITS_MAX);
    *arm_out = (size_t)(ticket / WG_BATCH_LIMITS_MAX % WG_ARMS_MAX);
    return *arm_out < grid->job.arm_count && *limit_out < grid->job.limit_count;
}

static void tell_run(struct wg_batch_policy *policy, uint64_t ticket,
                     const struct wg_batch_outcome *outcome)
{
    struct grid *grid = (struct grid *)policy;
    size_t arm, limit;
    if (!read_ticket(grid, ticket, &arm, &limit))
        return;
    if (!outcome->reached) {
        grid->is_dropped[arm] = true;
        return;
    }
    struct pair *pair = &grid->pair[arm * grid->job.limit_count + limit];
    pair->runs++;
    pair->mean_cost_j += (outcome->cost_j - pair->mean_cost_j) / (double)pair->runs;
}

static void resume(struct wg_batch_policy *policy, const struct wg_batch_request *request,
                   const struct wg_batch_step *step)
{
    struct grid *grid = (struct grid *)policy;
    (void)request;
    const uint64_t serial = step->ticket / WG_BATCH_LIMITS_MAX / WG_ARMS_MAX;
    size_t arm, limit, next_limit;
    if (!read_ticket(grid, step->ticket, &arm, &limit))
        return;
    (void)next_untried(grid, &arm, &next_limit); /* moves on as `ask` did */
    grid->pair[step->arm * grid->job.limit_count + limit].is_given = true;
    if (grid->serial <= serial)
        grid->serial = serial + 1;
}

/* The pair is handed out again, unless another run of it has told already. */
static void forget(struct wg_batch_policy *policy, uint64_t ticket)
{
    struct grid *grid = (struct grid *)policy;
    const size_t limits = grid->job.limit_count;
    size_t arm, limit;
    if (!read_ticket(grid, ticket, &arm, &limit))
        return;
    struct pair *pair = &grid->pair[arm * limits + limit];
    if (pair->runs > 0)
        return;
    pair->is_given = false;
    for (size_t place = 0; place < grid->job.arm_count; place++)
        if (grid->order[place] == arm && place * limits + limits - 1 - limit < grid->next)
            grid->next = place * limits + limits - 1 - limit;
}

static size_t state_size(const struct grid *grid)
{
    return sizeof *grid + grid->job.arm_count * grid->job.limit_count * sizeof grid->pair[0];
}

static bool save(const struct wg_batch_policy *policy, struct wg_buffer *out)
{
    const struct grid *grid = (const struct grid *)policy;
    wg__buffer_append(out, (const char *)grid, state_size(grid));
    return true;
}

static bool load(struct wg_batch_policy *policy, const void *bytes, size_t length)
{
    struct grid *grid = (struct grid *)policy;
    struct grid kept;
    if (length != state_size(grid))
        return false;
    memcpy(&kept, bytes, sizeof kept);
    if (kept.job.arm_count != grid->job.arm_count ||
        kept.job.limit_count != grid->job.limit_count ||
        kept.next > grid->job.arm_count * grid->job.limit_count)
        return false;
    grid->next = kept.next;
    grid->serial = kept.serial;
    memcpy(grid->is_dropped, kept.is_dropped, sizeof grid->is_dropped);
    memcpy(grid->pair, (const char *)bytes + sizeof kept, length - sizeof kept);
    return true;
}

static size_t best_arm(const struct wg_batch_policy *policy)
{
    size_t arm = 0, limit = 0;
    cheapest((const struct grid *)policy, &arm, &limit);
    return arm;
}

const struct wg_batch_policy_ops wg__batch_policy_grid = {
    .name = "grid",
    .summary = "every batch size at every power limit once, then the cheapest",
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
