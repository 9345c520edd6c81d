/* SPDX-License-Identifier: MIT
 *
 * The constants of the wattgov policy, in one place, with what each means.
 *
 * Threads: read-only.
 */
#ifndef WG_OPTIMIZE_GOVERNOR_CONSTANTS_H
#define WG_OPTIMIZE_GOVERNOR_CONSTANTS_H

struct wg_governor_constants {
    /* Prior of the epochs curve (epochs_model.h), in octaves. */
    double upper_knee_mean, upper_knee_sd;
    double lower_knee_mean, lower_knee_sd, lower_knee_max;
    double level_mean, level_sd;
    double deviation_growth;
    double deviation_sd;   /* tau: an arm's own deviation from the curve */
    double evidence_power; /* kappa: the data's weight against the prior */
    double noise_sd, noise_sd_min, noise_prior_runs, noise_arm_runs;
    double censored_excess, censored_variance;
    /* Choice. */
    double least_best_draws, explore_first, explore_later, transfer_age, transfer_reach;
    double tie_share; /* eps: the incumbent keeps a draw that it loses by less */
    double cost_cap;  /* a run never costs more than this many incumbents: it is stopped */
    double first_use_weight;
    double failure_surcharge;
    double ids_power;
    /* Guard. */
    double debt_runs, debt_per_run, guard_slack;
    /* Early stop. */
    double stop_floor; /* no stop bound below this many incumbents' costs */
    double incumbent_patience;
    double doom_base, doom_per_octave, doom_after_failure, doom_known;
    /* Survey. */
    double survey_share;
    double slope_below;
    double survey_noise_ln;
    /* Drift. */
    double drift_allowance, drift_threshold, drift_keep, drift_trust;
    double curve_hurdle, curve_optimism;
};

extern const struct wg_governor_constants wg__governor_constants;

#endif
