/* SPDX-License-Identifier: MIT
 *
 * A simulated job for the tests of the governor: a step takes `step_s` where nothing binds and goes
 * as the cube root of power below 220 W, so its energy is least at a small limit, its time at the
 * largest, and cost:0.5 in between.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_TESTS_SUPPORT_TRAIN_STAGE_H
#define WG_TESTS_SUPPORT_TRAIN_STAGE_H

#include "support/check.h"
#include "support/train_world.h"

static inline struct train_world_job make_job(double step_s)
{
    struct train_world_job job = {.count = 7, .idle_w = 30};

    for (size_t i = 0; i < job.count; i++) {
        job.setting[i] = 100 + 25 * (double)i;
        job.power_w[i] = fmin(job.setting[i], 220);
        job.step_s[i] = step_s * (0.3 + 0.7 * cbrt(220 / fmin(job.setting[i], 220)) *
                                            fmax(1, 150 / job.setting[i]));
    }
    return job;
}

static inline struct train_world_conditions usual(void)
{
    return (struct train_world_conditions){.step_noise = 0.02,
                                           .power_noise = 0.01,
                                           .counter_s = 0.1,
                                           .settle_s = 0.2,
                                           .warm_s = 1,
                                           .warm_share = 1};
}

static inline struct wg_train_config config_of(const char *objective)
{
    struct wg_train_config config = {.setting_w = 1, .neighbor_setting = NAN};

    assert_int_equal(wg__objective_parse(objective, &config.objective, NULL), WG_OK);
    config.objective.max_power_w = 250;
    return config;
}

#endif
