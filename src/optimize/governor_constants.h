/* SPDX-License-Identifier: MIT
 *
 * The constants of the wattgov policy, in one place, with what each means. How they were found, and
 * what changing them does: docs/internals/training-policy.md.
 *
 * Threads: read-only.
 */
#ifndef WG_OPTIMIZE_GOVERNOR_CONSTANTS_H
#define WG_OPTIMIZE_GOVERNOR_CONSTANTS_H

struct wg_governor_constants {
    /* The epochs curve (epochs_model.c); lengths in octaves of the batch size or of the epochs. */
    double upper_knee_mean; /* prior of the critical batch size, from the default */
    double upper_knee_sd;
    double lower_knee_mean; /* prior of the smallest batch size that trains well */
    double lower_knee_sd;
    double level_mean; /* prior of log2 epochs where the curve is flat */
    double level_sd;
    double deviation_sd;      /* tau: an arm's own deviation from the curve */
    double evidence_power;    /* kappa: the data's weight against the prior */
    double noise_sd;          /* prior of the spread between runs */
    double noise_sd_min;      /* it is never taken to be less */
    double noise_prior_runs;  /* pairs of runs that the prior is worth against all arms' */
    double noise_arm_runs;    /* pairs of runs that all arms are worth against one arm's own */
    double censored_excess;   /* a run that was stopped is taken to need that much more */
    double censored_variance; /* of that guess, octaves^2 */

    /* The choice (governor_choice.c). */
    double ids_power;        /* arms are ranked by regret^power / information */
    double tie_share;        /* the incumbent keeps a draw that it loses by less */
    double cost_cap;         /* no draw costs more than so many incumbents: it would be stopped */
    double first_use_weight; /* of the extra cost of a first epoch */
    double
        failure_surcharge;   /* in incumbents, for an arm that was never seen to reach the target */
    double least_best_draws; /* an arm that is best in fewer draws teaches nothing */
    double explore_first;    /* recurrences that may all explore; */
    double explore_later;    /*   then about explore_later / n of them may */
    double transfer_age;     /* recurrences that knowledge from another GPU is worth in that */

    /* The guard (governor_choice.c): debt against always running the default. */
    double debt_runs;    /* in default runs, */
    double debt_per_run; /*   and what every recurrence adds */
    double guard_slack;  /* arms dearer than the incumbent by less are no trials */

    /* The early stop (governor_stop.c). */
    double stop_floor;         /* no bound below what so many incumbents cost */
    double incumbent_patience; /* the incumbent's own bound, in its expected epochs */
    double doom_base;          /* chance that an arm never reaches the target, */
    double doom_per_octave;    /*   per octave from the nearest that did, */
    double doom_after_failure; /*   once it failed, */
    double doom_known;         /*   and for one that did reach it, divided by how often */
    double curve_hurdle;       /* stop when going on costs more than so many incumbents */
    double curve_optimism;     /* after allowing the learning curve so many standard deviations */

    /* Costs (governor_costs.c). */
    double survey_share;   /* of the first run's cost, to spend on surveys */
    double slope_below;    /* ln cost per octave below the smallest known batch size */
    double transfer_reach; /* arms within this factor of the best are surveyed on a new GPU */

    /* Change (policy_wattgov.c). */
    double drift_allowance; /* of the CUSUM, in standard deviations */
    double drift_threshold;
    double drift_keep;  /* observations that outlive an alarm */
    double drift_trust; /* how much of the old shape does */
};

extern const struct wg_governor_constants wg__governor_constants;

#endif
