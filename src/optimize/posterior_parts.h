/* SPDX-License-Identifier: MIT
 *
 * The posterior's insides, for its two files: board_posterior.c chooses boards and moves them,
 * board_spread.c works out mean and deviation everywhere.
 *
 * Owns: see board_posterior.h.    Threads: one at a time.
 */
#ifndef WG_OPTIMIZE_POSTERIOR_PARTS_H
#define WG_OPTIMIZE_POSTERIOR_PARTS_H

#include "base/arena.h"
#include "optimize/board_posterior.h"
#include "optimize/board_weights.h"

/* Covariances of one tried configuration with all candidates, by kind of figure. */
struct wg_board_kernel_row {
    size_t configuration;
    enum wg_tuning_kind kind;
    size_t freshness;
    float *values;
};

struct wg_board_posterior {
    struct wg_board_pool *pool;
    struct wg_board_settings settings;
    struct wg_residual_along *along;
    struct wg_board_kernel_row *kernels;
    size_t kernel_count, kernel_room;
    struct wg_arena arena;               /* of one update */
    float *means[WG_BOARD_CHANNELS_MAX]; /* [room] each */
    float *sds[WG_BOARD_CHANNELS_MAX];
    size_t room;
    double rho[WG_BOARD_CHANNELS_MAX];
};

/* A kept board, and what its weight makes of it. */
struct wg_board_curve {
    const float *values[2]; /* [candidates]: log t, log E */
    float from[2];          /* the same at the reference */
    float weight, root;     /* the root of the weight */
};

/* One update at work. */
struct wg_board_work {
    size_t rows, members, candidates, kept;
    size_t first[WG_BOARD_CHANNELS_MAX + 1]; /* rows of channel c: first[c] .. first[c + 1] - 1 */
    size_t *at;                              /* [rows]: candidate of each row */
    struct wg_residual_kernel kernels[WG_BOARD_CHANNELS_MAX];
    const float **k; /* [rows]: covariance with all candidates */
    double *a;       /* [rows][rows]: lower factors of A, channel by channel */
    double *s;       /* [rows][rows]: lower factor of S */
    double *dx;      /* [rows][kept] */
    double *outer;   /* [rows][rows]: Dx Dx' */
    double *v;       /* [rows] */
    double *step;    /* [kept]: a of the Kalman step */
    struct wg_board_kept chosen;
    struct wg_board_curve *curves; /* [kept] */
};

static inline bool wg__board_has(enum wg_tuning_kind kind)
{
    return kind != WG_TUNING_OTHER;
}

/* Weighted mean of the kept boards at candidates x .. x + count - 1 into `mean`, their weighted
 * deviations from it into `deviations`, [kept][step]. Of time: q = 0, of energy: 1. */
void wg__board_deviations(const struct wg_board_work *work, size_t q, size_t x, size_t count,
                          size_t step, float *mean, float *deviations);

enum wg_code wg__board_no_memory(const struct wg_board_work *work, struct wg_error *err);

/* Step 5 of board_posterior.h: mean and deviation of all channels at all candidates, once boards,
 * factors and the step of the boards are known. WG_ENOMEM. */
enum wg_code wg__board_spread(struct wg_board_posterior *posterior, struct wg_board_work *work,
                              const struct wg_board_channel *channels, size_t count,
                              struct wg_error *err);

#endif
