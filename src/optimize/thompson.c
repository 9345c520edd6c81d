/* SPDX-License-Identifier: MIT
 *
 * Gaussian Thompson sampling with estimated variance; thompson.h has the model.
 *
 * Mean and squared deviations are kept by Welford's update (Technometrics 4, 1962), one step an
 * observation; for a window they are taken anew over the ring. The update leaves the deviations of
 * equal observations at exactly 0, which the greedy case depends on: a two-pass formula would not,
 * since n times x divided by n need not be x.
 *
 * Arms do not share anything, so refitting only the arm just observed is the same as refitting all.
 *
 * Owns: the rings.    Threads: belongs to one thread.
 */
#include "optimize/thompson.h"

#include <assert.h>
#include <math.h>

#include "base/alloc.h"
#include "math/normal.h"

/* An arm is sampled only once it has this many observations (Zeus: num_exploration). */
enum { EXPLORATIONS = 2 };

enum wg_code wg__thompson_init(struct wg_thompson *bandit, size_t arm_count, size_t window,
                               struct wg_error *err)
{
    assert(arm_count >= 1 && arm_count <= WG_ARMS_MAX);
    *bandit = (struct wg_thompson){.arm_count = arm_count, .window = window};
    if (window > WG_THOMPSON_WINDOW_MAX)
        return wg__fail(err, WG_EINVAL, "a window of %zu observations is above the largest, %d",
                        window, WG_THOMPSON_WINDOW_MAX);
    if (window == 0)
        return WG_OK;
    bandit->recent = wg__alloc_zeroed(arm_count * window, sizeof *bandit->recent);
    if (bandit->recent == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu windows of %zu observations",
                        arm_count, window);
    return WG_OK;
}

void wg__thompson_fini(struct wg_thompson *bandit)
{
    wg__free(bandit->recent);
    bandit->recent = NULL;
}

static void count_reward(struct wg_thompson_arm *state, double reward)
{
    state->counted++;
    const double deviation = reward - state->mean;
    state->mean += deviation / (double)state->counted;
    state->squared_sum += deviation * (reward - state->mean);
}

void wg__thompson_observe(struct wg_thompson *bandit, size_t arm, double reward)
{
    assert(arm < bandit->arm_count && isfinite(reward));
    struct wg_thompson_arm *state = &bandit->arm[arm];
    if (bandit->window == 0) {
        state->seen++;
        count_reward(state, reward);
        return;
    }
    double *ring = bandit->recent + arm * bandit->window;
    ring[state->seen % bandit->window] = reward;
    state->seen++;
    const size_t kept = state->seen < bandit->window ? state->seen : bandit->window;
    *state = (struct wg_thompson_arm){.seen = state->seen};
    for (size_t i = 0; i < kept; i++)
        count_reward(state, ring[i]);
}

bool wg__thompson_posterior(const struct wg_thompson *bandit, size_t arm, double *mean_out,
                            double *sd_out)
{
    const struct wg_thompson_arm *state = &bandit->arm[arm];
    if (state->counted == 0)
        return false;
    const double count = (double)state->counted;
    *mean_out = state->mean;
    *sd_out = sqrt(state->squared_sum / count / count);
    return true;
}

/* One of the open arms that must still be explored, each as likely; false when there is none. */
static bool pick_unexplored(const struct wg_thompson *bandit, const bool *is_open,
                            struct wg_rng *rng, size_t *arm_out)
{
    /* A window of one never counts two: there one observation has to do. */
    const size_t needed = bandit->window == 1 ? 1 : EXPLORATIONS;
    size_t unexplored[WG_ARMS_MAX];
    size_t count = 0;
    for (size_t arm = 0; arm < bandit->arm_count; arm++) {
        if (is_open[arm] && bandit->arm[arm].counted < needed)
            unexplored[count++] = arm;
    }
    if (count == 0)
        return false;
    *arm_out = unexplored[wg__rng_below(rng, (uint32_t)count)];
    return true;
}

size_t wg__thompson_pick(const struct wg_thompson *bandit, const bool *is_open, struct wg_rng *rng)
{
    size_t picked = SIZE_MAX;
    if (pick_unexplored(bandit, is_open, rng, &picked))
        return picked;
    double best_draw = -INFINITY;
    for (size_t arm = 0; arm < bandit->arm_count; arm++) {
        double mean = 0.0, sd = 0.0;
        if (!is_open[arm] || !wg__thompson_posterior(bandit, arm, &mean, &sd))
            continue;
        const double draw = sd > 0.0 ? mean + sd * wg__rng_normal(rng) : mean;
        if (draw > best_draw) {
            best_draw = draw;
            picked = arm;
        }
    }
    assert(picked < bandit->arm_count);
    return picked;
}

size_t wg__thompson_best(const struct wg_thompson *bandit, const bool *is_open)
{
    size_t best = SIZE_MAX, first_open = SIZE_MAX;
    double best_mean = -INFINITY;
    for (size_t arm = bandit->arm_count; arm > 0; arm--) {
        double mean = 0.0, sd = 0.0;
        if (!is_open[arm - 1])
            continue;
        first_open = arm - 1;
        if (wg__thompson_posterior(bandit, arm - 1, &mean, &sd) && mean >= best_mean) {
            best_mean = mean;
            best = arm - 1;
        }
    }
    assert(first_open < bandit->arm_count);
    return best < bandit->arm_count ? best : first_open;
}
