/* SPDX-License-Identifier: MIT
 *
 * The constants of the wattgov policy; governor_constants.h says what each means.
 *
 * Threads: read-only.
 */
#include "optimize/governor_constants.h"

const struct wg_governor_constants wg__governor_constants = {
    .upper_knee_mean = 2,
    .upper_knee_sd = 7,
    .lower_knee_mean = -2.75,
    .lower_knee_sd = 4,
    .level_mean = 3,
    .level_sd = 6,
    .deviation_sd = 0.06,
    .evidence_power = 0.8,
    .noise_sd = 0.27,
    .noise_sd_min = 0.02,
    .noise_prior_runs = 1.5,
    .noise_arm_runs = 6,
    .censored_excess = 0.9,
    .censored_variance = 0.09,

    .ids_power = 2.1,
    .tie_share = 0.02,
    .cost_cap = 1.7,
    .first_use_weight = 0.8,
    .failure_surcharge = 0.02,
    .least_best_draws = 4,
    .explore_first = 5,
    .explore_later = 8,
    .transfer_age = 7,

    .debt_runs = 0.4,
    .debt_per_run = 0.02,
    .guard_slack = 1.005,

    .stop_floor = 1.25,
    .incumbent_patience = 2.5,
    .doom_base = 0.011,
    .doom_per_octave = 0.014,
    .doom_after_failure = 0.13,
    .doom_known = 0.01,
    .curve_hurdle = 1.15,
    .curve_optimism = 0.8,

    .survey_share = 0.08,
    .slope_below = 0.4,
    .transfer_reach = 2,

    .drift_allowance = 0.75,
    .drift_threshold = 3.5,
    .drift_keep = 2,
    .drift_trust = 0.3,
};
