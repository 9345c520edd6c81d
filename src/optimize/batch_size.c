/* SPDX-License-Identifier: MIT
 *
 * The list of batch-size policies, and the checks that all of them make on a job.
 *
 * Nothing else of the program names a policy: commands and tests walk this list, so adding one is a
 * file and a line here. Commands offer two more names, `default` and `oracle`: both are `fixed`,
 * once at the user's batch size with the largest limit and once at the best setting that a replayed
 * world knows from its data.
 *
 * Threads: constant data and a pure function, any thread.
 */
#include "optimize/batch_size.h"

#include <math.h>

const struct wg_batch_policy_ops *const wg__batch_policies[] = {
    &wg__batch_policy_fixed,
    &wg__batch_policy_grid,
    &wg__batch_policy_zeus,
    &wg__batch_policy_wattgov,
    NULL,
};

enum wg_code wg__batch_job_check(const struct wg_batch_job *job, struct wg_error *err)
{
    if (job->arm_count < 1 || job->arm_count > WG_ARMS_MAX)
        return wg__fail(err, WG_EINVAL, "a job has 1..%d batch sizes, not %zu", WG_ARMS_MAX,
                        job->arm_count);
    for (size_t arm = 0; arm < job->arm_count; arm++) {
        const double size = job->batch_size[arm];
        if (!isfinite(size) || size <= 0.0)
            return wg__fail(err, WG_EINVAL, "batch size %zu of the job is %g, not positive", arm,
                            size);
        if (arm > 0 && size <= job->batch_size[arm - 1])
            return wg__fail(err, WG_EINVAL, "the batch sizes %g and %g are not in ascending order",
                            job->batch_size[arm - 1], size);
    }
    if (job->default_arm >= job->arm_count)
        return wg__fail(err, WG_EINVAL, "the default is batch size number %zu of %zu",
                        job->default_arm, job->arm_count);
    if (job->limit_count < 1 || job->limit_count > WG_BATCH_LIMITS_MAX)
        return wg__fail(err, WG_EINVAL, "a job has 1..%d power limits, not %zu",
                        WG_BATCH_LIMITS_MAX, job->limit_count);
    if (job->max_epochs < 1)
        return wg__fail(err, WG_EINVAL, "a job may train at least 1 epoch, not 0");
    return WG_OK;
}
