/* SPDX-License-Identifier: MIT
 *
 * Blind search: uniform over what was not tried, without repetition.
 *
 * The yardstick of every search. Its first hit of k good ones among N has the mean (N + 1)/(k + 1);
 * it never stops by itself, and it returns the best that it has seen.
 *
 * Owns: nothing.    Threads: as the tuner.
 */
#include <stdio.h>

#include "optimize/tuning_policy.h"

static enum wg_code decide(void *state, const struct wg_tuning_view *view,
                           struct wg_tuning_choice *out, struct wg_error *err)
{
    const size_t count = view->space->count;
    uint32_t open = 0;

    (void)state;
    (void)err;
    for (size_t c = 0; c < count; c++)
        open += !view->is_tried[c] && !view->is_banned[c];
    out->reason = WG_TUNER_START;
    wg__tuning_best_seen(view, out);
    if (open == 0)
        return WG_OK;
    uint32_t left = wg__rng_below(view->rng, open);
    for (size_t c = 0; c < count && out->next == count; c++)
        if (!view->is_tried[c] && !view->is_banned[c] && left-- == 0)
            out->next = c;
    (void)snprintf(out->why, sizeof out->why, "one of %u untried ones, blindly", open);
    return WG_OK;
}

const struct wg_tuning_policy_ops wg__tuning_policy_random = {.decide = decide};
