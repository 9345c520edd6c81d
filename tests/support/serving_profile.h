/* SPDX-License-Identifier: MIT
 *
 * A served model for tests: round numbers, one rung or two.
 */
#ifndef WG_TESTS_SUPPORT_SERVING_PROFILE_H
#define WG_TESTS_SUPPORT_SERVING_PROFILE_H

#include "simulate/serving_profile.h"

/* A batch takes .05 + .05 b seconds at rung 0. */
static inline struct wg_serving_profile make_profile(void)
{
    return (struct wg_serving_profile){
        .name = "test",
        .max_batch = 8,
        .latency = {.fixed_s = 0.05, .per_row_s = 0.05},
        .gpu_share = 0.5,
        .mem_share = 0.25,
        .has_finetune = true,
        .step_fixed_s = 0.01,
        .step_per_row_s = 0.01,
        .update_s = 0.02,
        .inference_slowdown = 2.0,
        .finetune_slowdown = 2.0,
        .ladder = {.count = 2,
                   .change_s = 0.02,
                   .change_j = 0.5,
                   .rungs = {{"max", 1.0, 1.0, 40.0, 10.0, 44.0},
                             {"half", 0.5, 1.0, 20.0, 8.0, 24.0}}},
    };
}

#endif
