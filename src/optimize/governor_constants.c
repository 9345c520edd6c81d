/* SPDX-License-Identifier: MIT
 *
 * The constants of the wattgov policy.
 *
 * Threads: read-only.
 */
#include "optimize/governor_constants.h"

const struct wg_governor_constants wg__governor_constants = {
    .upper_knee_mean = 1.3,
    .upper_knee_sd = 7,
    .lower_knee_mean = -2.75,
    .lower_knee_sd = 3.2,
    .lower_knee_max = 0,
    .level_mean = 3,
    .level_sd = 6,
    .deviation_sd = 0.05,
    .evidence_power = 0.7,
    .noise_sd = 0.27,
    .noise_sd_min = 0.02,
    .noise_prior_runs = 1.5,
    .noise_arm_runs = 4,
    .censored_excess = 0.9,
    .censored_variance = 0.09,
    .least_best_draws = 12,
    .explore_first = 7,
    .explore_later = 5,
    .transfer_age = 7,
    .transfer_reach = 2,
    .tie_share = 0.03,
    .cost_cap = 2.05,
    .first_use_weight = 1.4,
    .failure_surcharge = 0.3 * 0.033 * 2,
    .ids_power = 2,
    .debt_runs = 0.4,
    .debt_per_run = 0.01,
    .guard_slack = 1.005,
    .stop_floor = 1.3,
    .incumbent_patience = 2.5,
    .doom_base = 0.033,
    .doom_per_octave = 0.05,
    .doom_after_failure = 0.3,
    .doom_known = 0.01,
    .survey_share = 0.15,
    .slope_below = 0.4,
    .survey_noise_ln = 0.02,
    .drift_allowance = 0.75,
    .drift_threshold = 3.5,
    .drift_keep = 2,
    .drift_trust = 0.3,
    .curve_hurdle = 1.15,
    .curve_optimism = 1,
};
