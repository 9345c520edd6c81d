/* SPDX-License-Identifier: MIT
 *
 * Candidates of a large space; see the header.
 *
 * Both functions go once through the whole list of configurations, which for a million of them
 * takes some milliseconds and needs no index of neighbours.
 *
 * Threads: pure.
 */
#include "optimize/tune_candidates.h"

/* Two knobs together may differ by so many levels each. */
enum { STEP_MAX = 3 };

/* Selection sampling: each configuration is taken with the chance that the ones still wanted have
 * among those that are left (Knuth, TAOCP 2, algorithm 3.4.2 S). */
size_t wg__tune_fixed_part(const struct wg_tuning_space *space, struct wg_rng *rng, uint32_t *out)
{
    const bool is_whole = wg__tune_is_whole(space);
    const size_t wanted = is_whole ? space->count : WG_TUNE_PART;
    size_t count = 0;
    for (size_t x = 0; x < space->count && count < wanted; x++) {
        const size_t left = space->count - x;
        const bool is_default = x == space->default_configuration;
        /* One place is kept for the default until it was passed. */
        const bool is_kept = x < space->default_configuration;
        const size_t open = wanted - count - (is_kept ? 1 : 0);
        if (is_whole || is_default ||
            wg__rng_below(rng, (uint32_t)(left - (is_kept ? 1 : 0))) < open)
            out[count++] = (uint32_t)x;
    }
    return count;
}

/* How many knobs differ; more than two, or two by much: 3. */
static size_t distance(const struct wg_tuning_space *space, size_t a, size_t b)
{
    const uint16_t *p = space->level_of + a * space->knob_count;
    const uint16_t *q = space->level_of + b * space->knob_count;
    size_t count = 0;
    bool is_far = false;
    for (size_t k = 0; k < space->knob_count && count < 3; k++) {
        const int step = (int)p[k] - (int)q[k];
        count += step != 0;
        is_far |= step > STEP_MAX || step < -STEP_MAX;
    }
    return count == 2 && is_far ? 3 : count;
}

size_t wg__tune_neighbours(const struct wg_tuning_space *space, size_t centre, bool *is_known,
                           uint32_t *out, size_t count)
{
    /* Nearest first, for the case that not all have room. */
    for (size_t near = 0; near <= 2; near++)
        for (size_t x = 0; x < space->count && count < WG_TUNE_FRESH; x++) {
            if (is_known[x] || distance(space, centre, x) != near)
                continue;
            is_known[x] = true;
            out[count++] = (uint32_t)x;
        }
    return count;
}
