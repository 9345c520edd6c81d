/* SPDX-License-Identifier: MIT
 *
 * From log-likelihoods to a few weighted members: tempering and selection.
 *
 * After some trials one member out of a thousand explains them best by far, and would get all the
 * weight; yet the thousand are a coarse net, and the second best is as good a guess. So the
 * likelihood is raised to a power beta <= 1, the largest that leaves an effective sample size
 * (sum w)^2 / sum w^2 of `least_effective`; what beta has not used is for the Kalman step.
 *
 * Source: tempering as in sequential Monte Carlo, Del Moral, Doucet, Jasra (2006).
 *
 * Threads: pure.
 */
#ifndef WG_OPTIMIZE_BOARD_WEIGHTS_H
#define WG_OPTIMIZE_BOARD_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

struct wg_board_kept {
    double beta;
    size_t count;      /* at most `most` */
    uint32_t *members; /* [most], the caller's */
    double *weights;   /* [most], the caller's; they sum to 1 */
};

/* Fills `out` from `count` log-likelihoods (not all -inf). `scratch` has `count` of each. */
struct wg_board_weight {
    double weight;
    uint32_t member;
};
void wg__board_weights(const double *log_likelihoods, size_t count, double least_effective,
                       size_t most, struct wg_board_weight *scratch, struct wg_board_kept *out);

#endif
