/* SPDX-License-Identifier: MIT
 *
 * The constants of the wattgov policy, in one table: name, value, and what it means. How they were
 * found, and what changing them does: docs/internals/training-policy.md.
 *
 * Threads: read-only; only a program that compiles this room for itself with WG_GOVERNOR_TUNING may
 * write them, before it starts threads.
 */
#ifndef WG_OPTIMIZE_GOVERNOR_CONSTANTS_H
#define WG_OPTIMIZE_GOVERNOR_CONSTANTS_H

/* X(name, value, meaning). */
#define WG_GOVERNOR_CONSTANTS(X)                                                                   \
    /* The epochs curve (epochs_model.c); octaves of the batch size, or of the epochs. */          \
    X(upper_knee_mean, 2, "prior of the critical batch size, from the default")                    \
    X(upper_knee_sd, 7, "its spread")                                                              \
    X(lower_knee_mean, -2.75, "prior of the smallest batch size that trains well, likewise")       \
    X(lower_knee_sd, 4, "its spread")                                                              \
    X(level_mean, 3, "prior of log2 epochs where the curve is flat")                               \
    X(level_sd, 6, "its spread")                                                                   \
    X(deviation_sd, 0.06, "tau: an arm's own deviation from the curve")                            \
    X(evidence_power, 0.8, "kappa: the data's weight against the prior")                           \
    X(noise_sd, 0.27, "prior of the spread between runs")                                          \
    X(noise_sd_min, 0.02, "it is never taken to be less")                                          \
    X(noise_prior_runs, 1.5, "pairs of runs that the prior is worth against all arms'")            \
    X(noise_arm_runs, 12, "pairs of runs that all arms are worth against one arm's own")           \
    X(censored_excess, 0.9, "a run that was stopped is taken to need that much more")              \
    X(censored_variance, 0.09, "of that guess, octaves^2")                                         \
                                                                                                   \
    /* The choice (governor_choice.c). */                                                          \
    X(ids_power, 2.1, "arms are ranked by regret^power / information")                             \
    X(tie_share, 0.005, "the incumbent keeps a draw that it loses by less")                        \
    X(cost_cap, 1.7, "no draw costs more than so many incumbents: it would be stopped")            \
    X(first_use_weight, 0.8, "of the extra cost of a first epoch")                                 \
    X(failure_surcharge, 0.02, "in incumbents, for an arm never seen to reach the target")         \
    X(least_best_draws, 4, "an arm that is best in fewer draws teaches nothing")                   \
    X(explore_first, 5, "recurrences that may all explore;")                                       \
    X(explore_later, 8, "then about explore_later / n of them may")                                \
    X(second_look_first, 128, "at so many recurrences, and at each doubling, a second look")       \
    X(transfer_age, 7, "recurrences that knowledge from another GPU is worth in that")             \
                                                                                                   \
    /* The guard (governor_choice.c): debt against always running the default. */                  \
    X(debt_runs, 0.4, "in default runs,")                                                          \
    X(debt_per_run, 0.02, "and what every recurrence adds")                                        \
    X(guard_slack, 1.005, "arms dearer than the incumbent by less are no trials")                  \
                                                                                                   \
    /* The early stop (governor_stop.c). */                                                        \
    X(stop_floor, 1.25, "no bound below what so many incumbents cost")                             \
    X(incumbent_patience, 2.5, "the incumbent's own bound, in its expected epochs")                \
    X(doom_base, 0.03, "chance that an arm never reaches the target,")                             \
    X(doom_per_octave, 0.03, "per octave from the nearest that did,")                              \
    X(doom_after_failure, 0.13, "once it failed,")                                                 \
    X(doom_known, 0.01, "and for one that did reach it, divided by how often")                     \
    X(curve_hurdle, 1.15, "stop when going on costs more than so many incumbents")                 \
    X(curve_optimism, 0.8, "after allowing the learning curve so many standard deviations")        \
                                                                                                   \
    /* Costs (governor_costs.c). */                                                                \
    X(survey_share, 0.08, "of the first run's cost, to spend on surveys at once")                  \
    X(late_survey_share, 0.2, "of all that was spent, to spend on surveys in time")                \
    X(slope_below, 0.4, "ln cost per octave below the smallest known batch size")                  \
    X(survey_reach, 2,                                                                             \
      "arms within this factor of the best are surveyed on a new GPU and in time")                 \
                                                                                                   \
    /* Change (policy_wattgov.c). */                                                               \
    X(drift_allowance, 0.75, "of the CUSUM, in standard deviations")                               \
    X(drift_threshold, 3.5, "likewise")                                                            \
    X(drift_keep, 2, "observations that outlive an alarm")                                         \
    X(drift_trust, 0.3, "how much of the old shape does")

struct wg_governor_constants {
#define X(name, value, meaning) double name;
    WG_GOVERNOR_CONSTANTS(X)
#undef X
};

/* Not const for bench/policy_constants.c alone, which measures other values. */
#ifdef WG_GOVERNOR_TUNING
#define WG_GOVERNOR_CONST
#else
#define WG_GOVERNOR_CONST const
#endif

extern WG_GOVERNOR_CONST struct wg_governor_constants wg__governor_constants;

#endif
