/* SPDX-License-Identifier: MIT
 *
 * Where a step of a staircase is looked for: what evaluations count is what corrections are taught.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_STEP_H
#define WG_WAVE_STEP_H

#include <stdbool.h>
#include <stdint.h>

/* Between neighbouring m of one curve: not among the smallest, whose times are launches, and near
 * enough that the rise is a step and not a slope. */
static inline bool wg__may_step(uint64_t m, uint64_t next)
{
    return m >= 64 && (double)next <= 1.25 * (double)m;
}

#endif
