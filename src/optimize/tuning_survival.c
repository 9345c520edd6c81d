/* SPDX-License-Identifier: MIT
 *
 * How likely a trial works at all, learnt from those that did not.
 *
 * Bans say what a failure proves. What it makes likely is another matter: where a board browns out
 * at high clocks, or memory ends along some knob that nobody called a batch, a search that forgets
 * the failure asks for the neighbour next, and so on until the budget is gone. So successes and
 * failures near a configuration are counted, nearer ones more:
 *
 *     log p = -F * F / (F + W)
 *     F     = sum of w over failures         W = prior + sum of w over successes
 *     w     = (1 - d^2 / reach^2)^2          within reach, else 0; d over the knobs' levels, each
 *                                            in 0..1
 *
 * Each failure weighs by the share that failures have there: among successes it was an accident,
 * alone it is a wall. (The mean of a beta distribution, W / (F + W), falls too slowly: what lies
 * behind the wall can promise a hundred times more.) Different categories are out of reach. While
 * nothing has failed p is 1 everywhere: a search without failures is not changed.
 *
 * Threads: pure.
 */
#include <math.h>

#include "optimize/tuning_policy.h"

static const double prior_successes = 0.5, reach = 0.9;

/* The weight of what is known at `other` for `configuration`. */
static double nearness(const struct wg_tuning_space *space, size_t configuration, size_t other)
{
    double left = 1;

    for (size_t k = 0; k < space->knob_count && left > 0; k++) {
        const struct wg_tuning_knob *knob = &space->knobs[k];
        const size_t a = wg__tuning_level(space, configuration, k);
        const size_t b = wg__tuning_level(space, other, k);

        if (a == b)
            continue;
        if (knob->role == WG_TUNING_CATEGORY)
            return 0;
        const double step = ((double)a - (double)b) / (double)(knob->count - 1) / reach;
        left -= step * step;
    }
    return left > 0 ? left * left : 0;
}

double wg__tuning_log_survival(const struct wg_tuning_view *view, size_t configuration)
{
    double failed = 0, worked = prior_successes;

    for (size_t i = 0; i < view->failure_count; i++)
        failed += nearness(view->space, configuration, view->failures[i].configuration);
    if (!(failed > 0))
        return 0;
    for (size_t i = 0; i < view->trial_count; i++)
        worked += nearness(view->space, configuration, view->trials[i].configuration);
    return -failed * failed / (failed + worked);
}
