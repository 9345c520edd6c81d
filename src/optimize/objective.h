/* SPDX-License-Identifier: MIT
 *
 * What "best" means: joules, seconds, or a price on both.
 *
 * The cost of running at power P for T seconds is C = (eta P + (1 - eta) Pmax) T joules (Zeus,
 * NSDI'23, equation 2): eta = 1 counts energy only, eta = 0 counts time only, at the price of Pmax
 * watts. Pmax is the largest power limit of the GPU, times the number of GPUs. `slowdown:F` asks
 * for the least energy among the settings whose throughput is at least 1/F of the largest.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_OPTIMIZE_OBJECTIVE_H
#define WG_OPTIMIZE_OBJECTIVE_H

#include "base/error.h"

enum wg_objective_kind {
    WG_OBJECTIVE_ENERGY,
    WG_OBJECTIVE_TIME,
    WG_OBJECTIVE_COST,
    WG_OBJECTIVE_SLOWDOWN,
    WG_OBJECTIVE_KIND_COUNT
};

struct wg_objective {
    enum wg_objective_kind kind;
    double eta;          /* 0..1, for COST */
    double max_slowdown; /* >= 1, for SLOWDOWN */
    double max_power_w;  /* Pmax, > 0, for COST and TIME */
};

/* Parses "energy", "time", "cost:ETA" or "slowdown:F"; leaves `max_power_w` 0 for the caller to
 * set. */
enum wg_code wg__objective_parse(const char *text, struct wg_objective *out, struct wg_error *err);

/* Whether every field that `kind` reads is in its range; WG_EINVAL names the one that is not. */
enum wg_code wg__objective_check(const struct wg_objective *objective, struct wg_error *err);

/* Cost of one second at `power_w`, J/s. For SLOWDOWN it is the power: the constraint is not in it.
 */
double wg__objective_cost_per_s(const struct wg_objective *objective, double power_w);

#endif
