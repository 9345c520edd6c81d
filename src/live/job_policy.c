/* SPDX-License-Identifier: MIT
 *
 * The decider of a recurring job, rebuilt from facts; see job_policy.h.
 */
#include "live/job_policy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "wattgov/version.h"

enum { SNAPSHOT_FORMAT = 2, SNAPSHOT_BYTES_MAX = 64 << 20 };

size_t wg__job_arm(const struct wg_store_job *job, uint32_t batch_size)
{
    for (size_t i = 0; i < job->batch_count; i++)
        if (job->batch_size[i] == batch_size)
            return i;
    return SIZE_MAX;
}

const struct wg_batch_policy_ops *wg__job_policy_ops(const char *name)
{
    for (size_t i = 0; wg__batch_policies[i] != NULL; i++)
        if (strcmp(wg__batch_policies[i]->name, name) == 0)
            return wg__batch_policies[i];
    return NULL;
}

static enum wg_code describe(const struct wg_store_job *job, struct wg_batch_job *out,
                             struct wg_error *err)
{
    *out = (struct wg_batch_job){
        .arm_count = job->batch_count,
        .default_arm = wg__job_arm(job, job->default_batch),
        .limit_count = 1, /* the search for it is the power governor's */
        .max_epochs = job->max_epochs,
        .higher_is_better = job->higher_is_better,
        .target_metric = job->target,
    };
    for (size_t i = 0; i < job->batch_count; i++)
        out->batch_size[i] = job->batch_size[i];
    return wg__batch_job_check(out, err);
}

static enum wg_code create(struct wg_job_policy *policy, struct wg_batch_policy **out,
                           struct wg_error *err)
{
    const struct wg_batch_options options = {.concurrent = true,
                                             .fixed_arm = policy->batch_job.default_arm,
                                             .fixed_limit = WG_LIMIT_BEST};
    return policy->ops->create(out, &policy->batch_job, &options, err);
}

/* The one to learn from: it has reached the target most often. */
static struct wg_job_gpu *best_teacher(struct wg_job_policy *policy)
{
    struct wg_job_gpu *best = NULL;
    for (size_t i = 0; i < policy->gpu_count; i++)
        if (policy->gpus[i].reached > (best != NULL ? best->reached : 0))
            best = &policy->gpus[i];
    return best;
}

enum wg_code wg__job_policy_of(struct wg_job_policy *policy, const char *gpu_model,
                               unsigned gpu_count, struct wg_job_gpu **out, struct wg_error *err)
{
    for (size_t i = 0; i < policy->gpu_count; i++)
        if (policy->gpus[i].count == gpu_count && strcmp(policy->gpus[i].model, gpu_model) == 0) {
            *out = &policy->gpus[i];
            return WG_OK;
        }
    if (policy->gpu_count == WG_JOB_GPUS_MAX)
        return wg__fail(err, WG_EUNSUPPORTED,
                        "job '%s' has run on %d types of GPU already, the most that it can",
                        policy->job->name, WG_JOB_GPUS_MAX);
    struct wg_job_gpu *gpu = &policy->gpus[policy->gpu_count];
    *gpu = (struct wg_job_gpu){.count = gpu_count};
    (void)snprintf(gpu->model, sizeof gpu->model, "%s", gpu_model);
    const enum wg_code code = create(policy, &gpu->policy, err);
    if (code != WG_OK)
        return code;
    const struct wg_job_gpu *teacher = best_teacher(policy);
    if (teacher != NULL && policy->ops->transfer != NULL) {
        size_t same[WG_ARMS_MAX];
        for (size_t i = 0; i < policy->batch_job.arm_count; i++)
            same[i] = i;
        policy->ops->transfer(gpu->policy, teacher->policy, same);
    }
    policy->gpu_count++;
    *out = gpu;
    return WG_OK;
}

static void tell_profile(const struct wg_job_policy *policy, struct wg_job_gpu *gpu, size_t arm,
                         const struct wg_batch_profile *profile)
{
    gpu->max_limit_factor[arm] = profile->epoch_cost_max_limit_j / profile->epoch_cost_j;
    policy->ops->tell_profile(gpu->policy, arm, profile);
}

/* Whether products and quotients of such costs are numbers still. */
static bool is_cost(double cost_j)
{
    return cost_j >= 1 / WG_STORE_AMOUNT_MAX && cost_j <= WG_STORE_AMOUNT_MAX;
}

static void apply_end(struct wg_job_policy *policy, struct wg_job_gpu *gpu, size_t arm,
                      const struct wg_store_run *run)
{
    const double mean_j = run->epochs > 0 ? run->cost_j / run->epochs : 0;
    const bool has_cost = is_cost(mean_j);
    if (run->is_survey) {
        /* Told by its steps it is exact; else its start counts as training. */
        const double epoch_j = run->has_profile ? run->epoch_cost_max_limit_j : mean_j;
        if (run->state == WG_RUN_REACHED && has_cost && policy->ops->tell_survey != NULL)
            policy->ops->tell_survey(gpu->policy, arm, epoch_j, run->cost_j);
        return;
    }
    if (run->state != WG_RUN_REACHED && run->state != WG_RUN_STOPPED &&
        run->state != WG_RUN_FAILED) {
        policy->ops->forget(gpu->policy, run->ticket);
        return;
    }
    if (has_cost && !run->has_profile) {
        const double factor = gpu->max_limit_factor[arm] > 0 ? gpu->max_limit_factor[arm] : 1;
        tell_profile(policy, gpu, arm, &(struct wg_batch_profile){mean_j, factor * mean_j, mean_j});
    }
    const struct wg_batch_outcome outcome = {.reached = run->state == WG_RUN_REACHED,
                                             .epochs = (unsigned)run->epochs,
                                             .cost_j = run->cost_j};
    gpu->reached += outcome.reached;
    policy->ops->tell_run(gpu->policy, run->ticket, &outcome);
}

static void apply(struct wg_job_policy *policy, struct wg_job_gpu *gpu, size_t arm,
                  const struct wg_store_fact *fact, const struct wg_store_run *run)
{
    const struct wg_batch_policy_ops *ops = policy->ops;
    switch (fact->kind) {
    case WG_FACT_STARTED:
    case WG_FACT_REVIVED:
        if (!run->is_survey || fact->kind == WG_FACT_STARTED)
            ops->resume(
                gpu->policy,
                &(struct wg_batch_request){.recurrence = run->recurrence,
                                           .attempt = run->attempt,
                                           .no_survey = !run->may_survey},
                &(struct wg_batch_step){.kind = run->is_survey ? WG_STEP_SURVEY : WG_STEP_RUN,
                                        .arm = arm,
                                        .limit = run->limit,
                                        .ticket = run->ticket});
        break;
    case WG_FACT_PROFILED:
        if (!run->is_survey) /* told when it ends */
            tell_profile(policy, gpu, arm,
                         &(struct wg_batch_profile){run->epoch_cost_j, run->epoch_cost_max_limit_j,
                                                    run->first_epoch_cost_j});
        break;
    case WG_FACT_EPOCH:
        policy->may_continue =
            run->is_survey || ops->may_continue == NULL ||
            ops->may_continue(gpu->policy, run->ticket, fact->epoch, fact->metric);
        break;
    case WG_FACT_TAKEN_BACK:
        if (!run->is_survey)
            ops->forget(gpu->policy, run->ticket);
        break;
    case WG_FACT_ENDED:
        apply_end(policy, gpu, arm, run);
        break;
    case WG_FACT_KIND_COUNT:
        break;
    }
}

/* What the store has read value by value may still not fit together. */
static bool makes_sense(const struct wg_job_policy *policy, size_t arm,
                        const struct wg_store_fact *fact, const struct wg_store_run *run)
{
    const bool is_observation =
        run->state == WG_RUN_REACHED || run->state == WG_RUN_STOPPED || run->state == WG_RUN_FAILED;
    if (arm == SIZE_MAX || run->limit < WG_LIMIT_BEST ||
        run->limit >= (int)policy->batch_job.limit_count)
        return false;
    if (fact->kind == WG_FACT_ENDED && is_observation)
        return !isnan(run->epochs) && !isnan(run->cost_j);
    return fact->kind != WG_FACT_PROFILED ||
           (is_cost(run->epoch_cost_j) && is_cost(run->epoch_cost_max_limit_j) &&
            is_cost(run->first_epoch_cost_j));
}

static bool take_fact(void *context, const struct wg_store_fact *fact,
                      const struct wg_store_run *run)
{
    struct wg_job_policy *policy = context;
    const size_t arm = wg__job_arm(policy->job, run->batch_size);
    struct wg_job_gpu *gpu = NULL;
    if (fact->number == policy->last_fact) { /* the snapshot's, which knows it */
        policy->has_met_snapshot = true;
        return true;
    }
    policy->last_fact = fact->number;
    policy->replayed++;
    if (!makes_sense(policy, arm, fact, run)) {
        (void)wg__fail(&policy->err, WG_EDATA, "fact %llu of job '%s' makes no sense",
                       (unsigned long long)fact->number, policy->job->name);
        return false;
    }
    if (wg__job_policy_of(policy, run->gpu_model, run->gpu_count, &gpu, &policy->err) != WG_OK ||
        gpu == NULL)
        return false;
    apply(policy, gpu, arm, fact, run);
    return true;
}

static void version_of(const struct wg_job_policy *policy, char *out, size_t size)
{
    (void)snprintf(out, size, "%s %s %d %zu", wg_version(), policy->ops->name, SNAPSHOT_FORMAT,
                   sizeof(struct wg_job_gpu));
}

/* What stands before the compressed bytes, and, in those, before each policy's. */
struct head {
    uint64_t length; /* uncompressed */
    uint64_t number; /* of the latest fact that is in it */
};

struct gpu_head {
    char model[WG_STORE_TEXT_SIZE];
    uint64_t count, reached, length;
    double max_limit_factor[WG_ARMS_MAX];
};

enum wg_code wg__job_policy_save(const struct wg_job_policy *policy, struct wg_store *store,
                                 struct wg_error *err)
{
    struct wg_buffer bytes, packed;
    wg__buffer_init(&bytes);
    wg__buffer_init(&packed);
    bool can = true;
    for (size_t i = 0; i < policy->gpu_count && can; i++) {
        const struct wg_job_gpu *gpu = &policy->gpus[i];
        struct wg_buffer state;
        wg__buffer_init(&state);
        can = policy->ops->save(gpu->policy, &state) && !state.failed;
        struct gpu_head head = {
            .count = gpu->count, .reached = gpu->reached, .length = state.length};
        memcpy(head.model, gpu->model, sizeof head.model);
        memcpy(head.max_limit_factor, gpu->max_limit_factor, sizeof head.max_limit_factor);
        wg__buffer_append(&bytes, (const char *)&head, sizeof head);
        if (can)
            wg__buffer_append(&bytes, state.data, state.length);
        wg__buffer_fini(&state);
    }
    uLongf length = compressBound((uLong)bytes.length);
    unsigned char *out = can && !bytes.failed && bytes.length > 0 ? wg__alloc(length) : NULL;
    can = out != NULL && compress2(out, &length, (const unsigned char *)bytes.data,
                                   (uLong)bytes.length, Z_BEST_SPEED) == Z_OK;
    enum wg_code code = WG_OK;
    if (can) { /* without memory there is no snapshot, which is no error */
        const struct head head = {.length = bytes.length, .number = policy->last_fact};
        char version[64];
        version_of(policy, version, sizeof version);
        wg__buffer_append(&packed, (const char *)&head, sizeof head);
        wg__buffer_append(&packed, (const char *)out, length);
        if (!packed.failed)
            code = store->ops->snapshot_put(store, policy->job->id, policy->last_fact, version,
                                            packed.data, packed.length, err);
    }
    wg__free(out);
    wg__buffer_fini(&packed);
    wg__buffer_fini(&bytes);
    return code;
}

static void drop_gpus(struct wg_job_policy *policy)
{
    for (size_t i = 0; i < policy->gpu_count; i++)
        policy->ops->destroy(policy->gpus[i].policy);
    policy->gpu_count = 0;
}

/* False: these bytes are of no use. */
static bool load_gpus(struct wg_job_policy *policy, const char *bytes, size_t length)
{
    while (length > 0) {
        struct gpu_head head;
        if (length < sizeof head || policy->gpu_count == WG_JOB_GPUS_MAX)
            return false;
        memcpy(&head, bytes, sizeof head);
        bytes += sizeof head;
        length -= sizeof head;
        struct wg_job_gpu *gpu = &policy->gpus[policy->gpu_count];
        if (head.length > length || head.model[sizeof head.model - 1] != '\0' ||
            create(policy, &gpu->policy, NULL) != WG_OK)
            return false;
        policy->gpu_count++;
        gpu->count = (unsigned)head.count;
        gpu->reached = head.reached;
        memcpy(gpu->model, head.model, sizeof gpu->model);
        memcpy(gpu->max_limit_factor, head.max_limit_factor, sizeof gpu->max_limit_factor);
        if (!policy->ops->load(gpu->policy, bytes, (size_t)head.length))
            return false;
        bytes += head.length;
        length -= (size_t)head.length;
    }
    return true;
}

static void take_snapshot(void *context, uint64_t number, const void *bytes, size_t length)
{
    struct wg_job_policy *policy = context;
    struct head head;
    if (length < sizeof head)
        return;
    memcpy(&head, bytes, sizeof head);
    if (head.length == 0 || head.length > SNAPSHOT_BYTES_MAX || head.number != number ||
        number == 0)
        return;
    uLongf unpacked = (uLongf)head.length;
    char *out = wg__alloc(unpacked);
    if (out != NULL &&
        uncompress((unsigned char *)out, &unpacked, (const unsigned char *)bytes + sizeof head,
                   (uLong)(length - sizeof head)) == Z_OK &&
        unpacked == head.length) {
        if (load_gpus(policy, out, unpacked))
            policy->last_fact = number;
        else
            drop_gpus(policy);
    }
    wg__free(out);
}

/* Tells the facts that no snapshot has. One whose own fact is not in the log is none of this log:
 * all facts are told then. */
static enum wg_code replay(struct wg_job_policy *policy, struct wg_store *store,
                           struct wg_error *err)
{
    const uint64_t snapshot = policy->last_fact;
    enum wg_code code = store->ops->fact_each(
        store, policy->job->id, snapshot > 0 ? snapshot - 1 : 0, take_fact, policy, err);
    if (code == WG_OK && snapshot > 0 && !policy->has_met_snapshot) {
        drop_gpus(policy);
        policy->last_fact = 0;
        code = store->ops->fact_each(store, policy->job->id, 0, take_fact, policy, err);
    }
    if (code == WG_OK && policy->err.code == WG_EDATA)
        return wg__fail(err, WG_EDATA,
                        "store '%s' is damaged: %s; restore it from a copy, or move it away to "
                        "begin anew",
                        store->ops->location(store), policy->err.text);
    if (code == WG_OK && policy->err.code != WG_OK)
        code = wg__fail(err, policy->err.code, "%s", policy->err.text);
    return code;
}

enum wg_code wg__job_policy_open(struct wg_job_policy **out, struct wg_store *store,
                                 const struct wg_store_job *job, bool ignores_snapshot,
                                 struct wg_error *err)
{
    const struct wg_batch_policy_ops *ops = wg__job_policy_ops(job->policy);
    if (ops == NULL)
        return wg__fail(err, WG_EDATA, "job '%s' names a policy '%s', which this wattgov lacks",
                        job->name, job->policy);
    struct wg_job_policy *policy = wg__alloc_zeroed(1, sizeof *policy);
    if (policy == NULL)
        return wg__fail(err, WG_ENOMEM, "job '%s': out of memory", job->name);
    policy->job = job;
    policy->ops = ops;
    policy->may_continue = true;
    char version[64];
    enum wg_code code = describe(job, &policy->batch_job, err);
    if (code == WG_OK && !ignores_snapshot) {
        version_of(policy, version, sizeof version);
        code = store->ops->snapshot_get(store, job->id, version, take_snapshot, policy, err);
    }
    if (code == WG_OK)
        code = replay(policy, store, err);
    if (code != WG_OK) {
        wg__job_policy_free(policy);
        return code;
    }
    *out = policy;
    return WG_OK;
}

void wg__job_policy_free(struct wg_job_policy *policy)
{
    if (policy == NULL)
        return;
    drop_gpus(policy);
    wg__free(policy);
}
