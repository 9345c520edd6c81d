/* SPDX-License-Identifier: MIT
 *
 * The constants of the tuning policy `wattgov`, in one table: name, value, and what it means. How
 * they were found, and what changing them does: docs/internals/tuning.md and
 * docs/results/tuning-tried.md. Those of the boards themselves stand where they are used, in
 * board_model.c.
 *
 * Threads: read-only; only a program that compiles this room for itself with WG_TUNER_TUNING may
 * write them, before it starts threads.
 */
#ifndef WG_OPTIMIZE_TUNER_CONSTANTS_H
#define WG_OPTIMIZE_TUNER_CONSTANTS_H

/* X(name, value, meaning). */
#define WG_TUNER_CONSTANTS(X)                                                                      \
    /* Boards (board_axes.c, board_model.c, board_posterior.c). */                                 \
    X(boards, 2048, "random boards in the pool")                                                   \
    X(kept, 128, "of these carry the posterior, at most")                                          \
    X(effective, 80, "least effective sample size of their weights")                               \
    X(widening, 1.3, "all constants of a board are spread by this")                                \
    X(crowd_at, 5, "batches over the largest at which crowding doubles the work,")                 \
    X(crowd_sd, 1.2, "and its spread")                                                             \
    X(train_fixed, 0.15, "fixed work of a training step, in default batches,")                     \
    X(train_fixed_sd, 1.5, "and its spread")                                                       \
    X(tilt_t, 0.06, "a knob bends time by this power of itself,")                                  \
    X(tilt_e, 0.35, "and energy by this")                                                          \
                                                                                                   \
    /* Residual (residual_kernel.c): standard deviations of logarithms. */                         \
    X(smooth_t, 0.04, "of time: smooth along a knob")                                              \
    X(level_t, 0.012, "an offset of a level")                                                      \
    X(pair_t, 0.04, "two knobs together")                                                          \
    X(local_t, 0.05, "near a point")                                                               \
    X(smooth_e, 0.08, "of energy: the same")                                                       \
    X(level_e, 0.015, "")                                                                          \
    X(pair_e, 0.04, "")                                                                            \
    X(local_e, 0.06, "")                                                                           \
    X(shared_noise, 0.03, "what all figures share: the noise of the first")                        \
    X(rho_sd, 0.7, "prior of the logarithm of the residual's size,")                               \
    X(rho_knobs, 2, "which is fitted with so many knobs at most, and not in training;")            \
    X(widen_at, 60, "it doubles while that raises the log-likelihood of all trials by this")       \
                                                                                                   \
    /* The choice (policy_tune_wattgov.c). */                                                      \
    X(certainty, 1.1, "kappa: a limit is met when it is met so many sd away")                      \
    X(certainty_again, 0.1, "and by this more for each trial after the first")                     \
    X(risk_price, 0.6, "what breaking a limit costs, in costs of the configuration")               \
    X(early_weight, 0.3, "of feasibility in the first trials, one a knob, if there are")           \
    X(early_knobs, 3, "so many knobs at least")                                                    \
    X(again_most, 6, "trials of one configuration, validation apart")                              \
    X(stop_share, 0.003, "tau: stop below this expected relative saving,")                         \
    X(stop_share_narrow, 0.002, "this with one knob, where a look costs few trials,")              \
    X(stop_share_wide, 0.0015, "and this with three knobs or more, or a training batch")           \
    X(stop_least, 3, "trials before it may stop")

struct wg_tuner_constants {
#define X(name, value, meaning) double name;
    WG_TUNER_CONSTANTS(X)
#undef X
};

#ifdef WG_TUNER_TUNING
#define WG_TUNER_CONST
#else
#define WG_TUNER_CONST const
#endif

extern WG_TUNER_CONST struct wg_tuner_constants wg__tuner_constants;

#endif
