/* SPDX-License-Identifier: MIT
 *
 * A bandit by Gaussian Thompson sampling whose reward variance is estimated per arm.
 *
 * The reward of an arm is taken as normal with unknown mean and a variance that is set to the
 * population variance v of the arm's n observations. Under a flat prior the mean's posterior is
 * then N(sample mean, v / n) (conjugate normal; Zeus, NSDI'23, algorithm 2). One draw per arm, and
 * the arm with the largest draw is played. Where all observations are equal v is 0 and the draw is
 * exactly the mean: such arms are compared greedily. With a window only the last observations of an
 * arm count.
 *
 * Owns: the windows, allocated by init.    Threads: belongs to one thread.
 */
#ifndef WG_OPTIMIZE_THOMPSON_H
#define WG_OPTIMIZE_THOMPSON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/rng.h"
#include "optimize/batch_size.h"

enum { WG_THOMPSON_WINDOW_MAX = 4096 };

struct wg_thompson_arm {
    size_t seen;        /* observations told */
    size_t counted;     /* those that count: all, or the last `window` */
    double mean;        /* of those that count */
    double squared_sum; /* of their deviations from the mean */
};

struct wg_thompson {
    size_t arm_count;
    size_t window;  /* 0: every observation counts */
    double *recent; /* ring of `window` rewards per arm; NULL without a window */
    struct wg_thompson_arm arm[WG_ARMS_MAX];
};

/* Prepares a bandit of `arm_count` arms without observations. WG_EINVAL for a window above
 * WG_THOMPSON_WINDOW_MAX, WG_ENOMEM. */
enum wg_code wg__thompson_init(struct wg_thompson *bandit, size_t arm_count, size_t window,
                               struct wg_error *err);
void wg__thompson_fini(struct wg_thompson *bandit);

/* One observation; `reward` must be finite. Allocates nothing. */
void wg__thompson_observe(struct wg_thompson *bandit, size_t arm, double reward);

/* The posterior of an arm's mean reward; false when nothing is known of it. */
bool wg__thompson_posterior(const struct wg_thompson *bandit, size_t arm, double *mean_out,
                            double *sd_out);

/* The arm to play among those that `is_open` marks, at least one. Arms with fewer than two counted
 * observations go first, in random order. A tie goes to the smaller arm. */
size_t wg__thompson_pick(const struct wg_thompson *bandit, const bool *is_open, struct wg_rng *rng);

/* The open arm with the largest posterior mean; the first open one when nothing is known. */
size_t wg__thompson_best(const struct wg_thompson *bandit, const bool *is_open);

#endif
