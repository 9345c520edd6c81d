/* SPDX-License-Identifier: MIT
 *
 * Which configurations of a large space a decision looks at.
 *
 * A space of up to WG_TUNE_WHOLE configurations is looked at whole. Of a larger one a random part
 * stays for the whole search, and each decision adds what was tried and the neighbours of a centre,
 * the best so far: all that differ from it in one knob, and those that differ a little in two.
 * So the search may start anywhere and ends at a local optimum at least.
 *
 * Threads: pure.
 */
#ifndef WG_OPTIMIZE_TUNE_CANDIDATES_H
#define WG_OPTIMIZE_TUNE_CANDIDATES_H

#include "base/rng.h"
#include "optimize/tuning_space.h"

enum { WG_TUNE_WHOLE = 5120, WG_TUNE_PART = 3072, WG_TUNE_FRESH = 2048 };

static inline bool wg__tune_is_whole(const struct wg_tuning_space *space)
{
    return space->count <= WG_TUNE_WHOLE;
}

/* The part that stays, rising: all, or WG_TUNE_PART of them, the default included. `out` has room
 * for WG_TUNE_WHOLE. Returns how many. */
size_t wg__tune_fixed_part(const struct wg_tuning_space *space, struct wg_rng *rng, uint32_t *out);

/* Appends the neighbours of `centre` to `out`, which holds `count` and has room for WG_TUNE_FRESH;
 * `is_known` [configurations] tells which are candidates already, and learns of the new ones.
 * Returns the new count. */
size_t wg__tune_neighbours(const struct wg_tuning_space *space, size_t centre, bool *is_known,
                           uint32_t *out, size_t count);

#endif
