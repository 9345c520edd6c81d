/* SPDX-License-Identifier: MIT
 *
 * What a tuning policy is, seen from constrained_bo.c: it proposes, the tuner disposes.
 *
 * A policy sees the trials and which configurations are banned, and answers with the next one to
 * measure and with what it would return now. Bans, budgets, validation and reasons of the end are
 * the tuner's. A policy keeps what is expensive (a pool of prior boards, hyper-parameters of the
 * last decision) in its own state.
 *
 * Owns: see create and destroy.    Threads: as the tuner.
 */
#ifndef WG_OPTIMIZE_TUNING_POLICY_H
#define WG_OPTIMIZE_TUNING_POLICY_H

#include "base/rng.h"
#include "optimize/tuner.h"

struct wg_tuning_view {
    const struct wg_tuning_space *space;
    const struct wg_tuning_goal *goal;
    double noise;                  /* relative standard error where a trial tells none */
    double stop_share;             /* 0: the policy's own */
    const struct wg_trial *trials; /* MEASURED and CUT ones, in the order told */
    size_t trial_count;
    const struct wg_trial *failures; /* CRASHED, HUNG and OUT_OF_MEMORY ones, in the order told */
    size_t failure_count;
    size_t told;             /* trials that count, failed ones too */
    const bool *is_banned;   /* [space->count]: banned, or (`prunes`) ruled out */
    const bool *is_tried;    /* [space->count]: MEASURED or CUT at least once */
    const uint8_t *measured; /* [space->count]: MEASURED trials of each, at most 255 */
    size_t present;          /* the configuration set now; space->count: unknown */
    double trial_s;          /* 0: switches are not weighed */
    double budget_left;      /* share of max_trials: weighs them less towards the end */
    double xi;               /* these three: see wg_tuner_config */
    double default_objective;
    bool cpu_apart;
    struct wg_rng *rng;
};

struct wg_tuning_choice {
    size_t next; /* to measure; space->count: nothing is left to try */
    enum wg_tuner_reason reason;
    char why[WG_TUNER_WHY_SIZE];
    bool should_stop;       /* by the policy's own rule */
    double expected_saving; /* relative, of the best next trial; NAN: unknown */
    size_t returned;        /* what it would return now; space->count: nothing measured */
    bool is_feasible;       /* believed to meet the limits */
    size_t runner_up;       /* space->count: none */
};

struct wg_tuning_policy_ops {
    bool default_first; /* the tuner asks for the default before it asks the policy */
    bool validates;     /* a final trial of the returned one makes sense */
    bool prunes;        /* leaves out what is slower than something far too slow */
    /* `*out` may stay NULL. */
    enum wg_code (*create)(void **out, const struct wg_tuning_view *view, struct wg_error *err);
    void (*destroy)(void *state);
    /* `rng` of the view is at the same place whenever the same trials are told. `*out` comes as the
     * choice of nothing: no configurations, a saving of NAN. */
    enum wg_code (*decide)(void *state, const struct wg_tuning_view *view,
                           struct wg_tuning_choice *out, struct wg_error *err);
    /* NULL: no model. After decide, of the same view. */
    bool (*forecast)(void *state, const struct wg_tuning_view *view, size_t configuration,
                     struct wg_tuning_forecast *out);
};

extern const struct wg_tuning_policy_ops wg__tuning_policy_random;
extern const struct wg_tuning_policy_ops wg__tuning_policy_polythrottle;
extern const struct wg_tuning_policy_ops wg__tuning_policy_cbo;
extern const struct wg_tuning_policy_ops wg__tuning_policy_wattgov;

/* Quantity 0 is the objective, i + 1 the figure of limit i. */
static inline double wg__trial_figure(const struct wg_trial *trial, size_t quantity)
{
    return quantity == 0 ? trial->objective : trial->figures[quantity - 1];
}

/* Its relative standard error: the trial's own, or the tuning's `noise`. */
static inline double wg__trial_error(const struct wg_trial *trial, size_t quantity, double noise)
{
    const double own = quantity == 0 ? trial->objective_error : trial->figure_errors[quantity - 1];
    return own > 0 ? own : noise;
}

static inline enum wg_tuning_kind wg__goal_kind(const struct wg_tuning_goal *goal, size_t quantity)
{
    return quantity == 0 ? goal->objective : goal->limits[quantity - 1].kind;
}

/* The words of the acquisition, shared by policies: logarithms, exact in the far tails.
 * log Phi(z); and log(u Phi(u) + phi(u)), the expected improvement of a standard normal. */
double wg__log_normal_cdf(double z);
double wg__log_expected_improvement(double u);

/* What a score (a logarithm) loses for the switch from the present configuration: the logarithm of
 * how much longer than trial_s the trial takes, times budget_left. Thus a group that is expensive
 * to enter waits until the present one has nothing left of comparable worth. */
double wg__tuning_switch_penalty(const struct wg_tuning_view *view, size_t configuration);

/* The logarithm of the chance that a trial there works at all: 0 while nothing has failed, and
 * less near configurations that did, unless others near it worked (tuning_survival.c). */
double wg__tuning_log_survival(const struct wg_tuning_view *view, size_t configuration);

/* What the raw figures say, for policies that return the best one seen: `returned`, `is_feasible`
 * and `runner_up` of the choice. Feasible: all figures within their limits; the least objective of
 * these; if none, the one that exceeds its worst limit by the least share, and a CUT one only where
 * nothing was measured whole. */
void wg__tuning_best_seen(const struct wg_tuning_view *view, struct wg_tuning_choice *choice);

/* A change for nothing is no gain: the default is returned, if it was measured within its limits by
 * two standard errors, unless what would be is cheaper by more than the error of the difference. */
void wg__tuning_keep_default(const struct wg_tuning_view *view, struct wg_tuning_choice *choice);

/* By which share of its bound a trial exceeds its worst limit; at most 0: within all of them. A
 * figure of a CUT trial that is unknown counts as at its bound. */
double wg__tuning_excess(const struct wg_tuning_goal *goal, const struct wg_trial *trial);

#endif
