/* SPDX-License-Identifier: MIT
 *
 * The best choice of a space's candidates, for one thing to keep or for two.
 *
 * Owns: a solution's values live in the space's arena.    Threads: one thread at a time.
 */
#ifndef WG_WAVE_PLAN_SOLVE_H
#define WG_WAVE_PLAN_SOLVE_H

#include "wave/plan_space.h"

struct wg_plan_solution {
    uint32_t *values; /* a variable each */
    bool by_value;    /* costs minus its value and gains minus its time; else time and value */
    double need;      /* the gain that was asked for */
    double cost, gain;
    double bound; /* no choice that gains enough costs less; NAN: not known */
    bool is_found, is_proven;
    size_t tried;
};

/* The least cost among what gains `need`, at the space's prices. Not found: what gains most. */
enum wg_code wg__plan_solve(struct wg_plan_space *space, bool by_value, double need,
                            struct wg_plan_solution *out, struct wg_error *err);

/* The least time among what keeps so many parameters and so many operations, both above 0. Moves
 * the space's prices. */
enum wg_code wg__plan_solve_both(struct wg_plan_space *space, double parameters, double flops,
                                 struct wg_plan_solution *out, struct wg_error *err);

#endif
