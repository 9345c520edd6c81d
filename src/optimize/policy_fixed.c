/* SPDX-License-Identifier: MIT
 *
 * The policy `fixed`: one batch size at one power limit, for ever.
 *
 * It learns nothing and stops nothing, so it is the yardstick at both ends: at the user's batch
 * size and the largest limit it is what the job costs without us, at the best setting of a replayed
 * trace it is the oracle. A failed attempt is simply tried again.
 *
 * Owns: one block of memory.    Threads: one at a time.
 */
#include "optimize/batch_size.h"

#include <string.h>

#include "base/alloc.h"

struct fixed {
    struct wg_batch_policy base;
    size_t arm;
    int limit;
    uint64_t next_ticket;
};

static enum wg_code create(struct wg_batch_policy **out, const struct wg_batch_job *job,
                           const struct wg_batch_options *options, struct wg_error *err)
{
    const enum wg_code code = wg__batch_job_check(job, err);
    if (code != WG_OK)
        return code;
    if (options->fixed_arm >= job->arm_count)
        return wg__fail(err, WG_EINVAL, "policy fixed: batch size number %zu of %zu",
                        options->fixed_arm, job->arm_count);
    if (options->fixed_limit < WG_LIMIT_BEST || options->fixed_limit >= (int)job->limit_count)
        return wg__fail(err, WG_EINVAL, "policy fixed: power limit number %d of %zu",
                        options->fixed_limit, job->limit_count);
    struct fixed *fixed = wg__alloc_zeroed(1, sizeof *fixed);
    if (fixed == NULL)
        return wg__fail(err, WG_ENOMEM, "policy fixed: out of memory");
    fixed->base.ops = &wg__batch_policy_fixed;
    fixed->arm = options->fixed_arm;
    fixed->limit = options->fixed_limit;
    *out = &fixed->base;
    return WG_OK;
}

static void destroy(struct wg_batch_policy *policy)
{
    wg__free(policy);
}

static void ask(struct wg_batch_policy *policy, const struct wg_batch_request *request,
                struct wg_rng *rng, struct wg_batch_step *out)
{
    struct fixed *fixed = (struct fixed *)policy;
    (void)request;
    (void)rng;
    *out = (struct wg_batch_step){.kind = WG_STEP_RUN,
                                  .arm = fixed->arm,
                                  .limit = fixed->limit,
                                  .ticket = fixed->next_ticket++};
}

static void tell_profile(struct wg_batch_policy *policy, size_t arm,
                         const struct wg_batch_profile *profile)
{
    (void)policy;
    (void)arm;
    (void)profile;
}

static void tell_run(struct wg_batch_policy *policy, uint64_t ticket,
                     const struct wg_batch_outcome *outcome)
{
    (void)policy;
    (void)ticket;
    (void)outcome;
}

static void resume(struct wg_batch_policy *policy, const struct wg_batch_request *request,
                   const struct wg_batch_step *step)
{
    struct fixed *fixed = (struct fixed *)policy;
    (void)request;
    if (fixed->next_ticket <= step->ticket)
        fixed->next_ticket = step->ticket + 1;
}

static void forget(struct wg_batch_policy *policy, uint64_t ticket)
{
    (void)policy;
    (void)ticket;
}

static bool save(const struct wg_batch_policy *policy, struct wg_buffer *out)
{
    const struct fixed *fixed = (const struct fixed *)policy;
    wg__buffer_append(out, (const char *)&fixed->next_ticket, sizeof fixed->next_ticket);
    return true;
}

static bool load(struct wg_batch_policy *policy, const void *bytes, size_t length)
{
    struct fixed *fixed = (struct fixed *)policy;
    if (length != sizeof fixed->next_ticket)
        return false;
    memcpy(&fixed->next_ticket, bytes, length);
    return true;
}

static size_t best_arm(const struct wg_batch_policy *policy)
{
    return ((const struct fixed *)policy)->arm;
}

const struct wg_batch_policy_ops wg__batch_policy_fixed = {
    .name = "fixed",
    .summary = "one batch size at one power limit, for ever",
    .create = create,
    .destroy = destroy,
    .ask = ask,
    .tell_profile = tell_profile,
    .tell_run = tell_run,
    .resume = resume,
    .forget = forget,
    .save = save,
    .load = load,
    .best_arm = best_arm,
};
