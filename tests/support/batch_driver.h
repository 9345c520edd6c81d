/* SPDX-License-Identifier: MIT
 *
 * Drives a batch-size policy by hand: a job with batch sizes 8, 16, 32, ... and the calls of
 * optimize/batch_size.h shortened to one line each.
 *
 * Threads: belongs to one test.
 */
#ifndef WG_TESTS_SUPPORT_BATCH_DRIVER_H
#define WG_TESTS_SUPPORT_BATCH_DRIVER_H

#include "optimize/batch_size.h"
#include "support/check.h"

struct batch_driver {
    const struct wg_batch_policy_ops *ops;
    struct wg_batch_policy *policy;
    struct wg_rng rng;
    struct wg_batch_request next;
};

static inline struct wg_batch_job make_batch_job(size_t arms, size_t default_arm, size_t limits)
{
    struct wg_batch_job job = {.arm_count = arms,
                               .default_arm = default_arm,
                               .limit_count = limits,
                               .max_epochs = 100,
                               .higher_is_better = true,
                               .target_metric = 0.5};
    for (size_t arm = 0; arm < arms; arm++)
        job.batch_size[arm] = ldexp(8.0, (int)arm);
    return job;
}

static inline struct batch_driver start_driver(const struct wg_batch_policy_ops *ops,
                                               const struct wg_batch_job *job,
                                               const struct wg_batch_options *options,
                                               uint64_t seed)
{
    struct batch_driver driver = {.ops = ops};
    wg__rng_init(&driver.rng, seed);
    struct wg_error err = {0};
    if (ops->create(&driver.policy, job, options, &err) != WG_OK)
        fail_msg("create: %s", err.text);
    assert_ptr_equal(driver.policy->ops, ops);
    return driver;
}

static inline void stop_driver(struct batch_driver *driver)
{
    driver->ops->destroy(driver->policy);
    driver->policy = NULL;
}

static inline struct wg_batch_step ask_step(struct batch_driver *driver)
{
    struct wg_batch_step step = {.kind = WG_STEP_SURVEY, .arm = SIZE_MAX};
    driver->ops->ask(driver->policy, &driver->next, &driver->rng, &step);
    assert_int_equal(step.kind, WG_STEP_RUN);
    return step;
}

/* Tells how a run ended and moves on to the retry or the next recurrence. */
static inline void tell_step(struct batch_driver *driver, const struct wg_batch_step *step,
                             bool reached, unsigned epochs, double cost_j)
{
    const struct wg_batch_outcome outcome = {
        .reached = reached, .epochs = epochs, .cost_j = cost_j};
    driver->ops->tell_run(driver->policy, step->ticket, &outcome);
    if (reached)
        driver->next = (struct wg_batch_request){.recurrence = driver->next.recurrence + 1};
    else
        driver->next.attempt++;
}

/* Asks, expects `arm`, and tells. */
static inline void run_arm(struct batch_driver *driver, size_t arm, bool reached, double cost_j)
{
    const struct wg_batch_step step = ask_step(driver);
    assert_int_equal(step.arm, arm);
    tell_step(driver, &step, reached, 10, cost_j);
}

/* How many epochs the policy lets run `step` do when nothing else ends it, at most `most`. */
static inline unsigned allowed_epochs(struct batch_driver *driver, const struct wg_batch_step *step,
                                      unsigned most)
{
    unsigned done = 0;
    while (done < most &&
           driver->ops->may_continue(driver->policy, step->ticket, done, (double)NAN))
        done++;
    return done;
}

static inline void tell_epoch_cost(struct batch_driver *driver, size_t arm, double epoch_cost_j)
{
    const struct wg_batch_profile profile = {.epoch_cost_j = epoch_cost_j,
                                             .epoch_cost_max_limit_j = epoch_cost_j,
                                             .first_epoch_cost_j = epoch_cost_j};
    driver->ops->tell_profile(driver->policy, arm, &profile);
}

#endif
