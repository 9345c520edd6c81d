/* SPDX-License-Identifier: MIT
 *
 * What trials say of all configurations: a thousand random boards, weighed by the trials, moved by
 * a Kalman step, with a Gaussian process for what no board can explain.
 *
 *     log figure(x) = log figure(reference) + board(x) + residual(x)
 *
 *     1  weigh      each board by how well it explains the trials, residual and noise allowed for
 *     2  temper     the likelihood to a power beta, so that the weights never rest on a few boards
 *     3  keep       the heaviest; their weighted mean and deviations are a low-rank Gaussian
 *     4  correct    by the part 1 - beta of the likelihood that the weights have not used
 *     5  residual   given the board, a Gaussian process over what is left
 *
 * Figures are channels: any number, each with its own rows, noise and residual; those of time share
 * the time of the boards, those of energy its energy, others have no board at all.
 *
 * Rejected: Laplace linearisation of one board, and one ensemble without weights: both needed more
 * trials.
 *
 * Owns: its blocks.    Threads: one at a time.
 */
#ifndef WG_OPTIMIZE_BOARD_POSTERIOR_H
#define WG_OPTIMIZE_BOARD_POSTERIOR_H

#include "optimize/board_pool.h"
#include "optimize/residual_kernel.h"

enum { WG_BOARD_CHANNELS_MAX = 1 + WG_TUNING_LIMITS_MAX };

/* One measured figure at one configuration, on the scale of its channel: log(figure / that of the
 * reference). */
struct wg_board_row {
    uint32_t configuration;
    double value;
    double sd; /* of its noise */
};

struct wg_board_channel {
    enum wg_tuning_kind kind;
    const struct wg_board_row *rows;
    size_t count;
};

struct wg_board_settings {
    size_t boards;    /* of the pool */
    size_t kept;      /* at most so many carry the posterior */
    double effective; /* least effective sample size of the weights */
    double rho_sd;    /* prior of log rho, the size of the residual */
    size_t rho_knobs; /* it is fitted with so many knobs at most, else 1 */
    double widen_at;  /* rho doubles while the log-likelihood rises by more; INFINITY: never */
};

/* Those of the policy. */
struct wg_board_settings wg__board_settings_default(void);

struct wg_board_posterior;

/* WG_ENOMEM. The pool must outlive it. */
enum wg_code wg__board_posterior_new(struct wg_board_posterior **out, struct wg_board_pool *pool,
                                     const struct wg_board_settings *settings,
                                     struct wg_error *err);
void wg__board_posterior_free(struct wg_board_posterior *posterior);

/* Works out mean and standard deviation of every channel at every candidate of the pool. All
 * values are relative to the configuration `reference`. WG_ENOMEM; WG_EDATA when the numbers
 * cannot be factored. */
enum wg_code wg__board_posterior_update(struct wg_board_posterior *posterior, size_t reference,
                                        const struct wg_board_channel *channels, size_t count,
                                        struct wg_error *err);

/* [candidates of the pool], of the true log figure over that of the reference. Valid until the next
 * update. */
const float *wg__board_posterior_mean(const struct wg_board_posterior *posterior, size_t channel);
const float *wg__board_posterior_sd(const struct wg_board_posterior *posterior, size_t channel);

#endif
