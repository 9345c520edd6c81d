/* SPDX-License-Identifier: MIT
 *
 * The best power limit of one batch size: the choice, and two searches that ask for what to
 * measure.
 *
 * The sweep measures every limit from the largest down, as Zeus does. The other search measures the
 * largest limit first, since that shows what the job draws when nothing holds it back and fixes the
 * throughput that SLOWDOWN refers to. From then on it keeps a small Bayesian model of the whole
 * curve (power_curve.c), measures next the limit with the largest expected gain, and stops when
 * that is below `least_gain` of the cost. On smooth curves it stops after 2 to 5 limits; where
 * single limits scatter it goes on, which costs little: a probe is training at a cost close to the
 * best.
 *
 * Both return the best limit that was measured, never one that was only predicted.
 *
 * Threads: a search belongs to one thread; nothing is allocated.
 */
#include "optimize/power_limit.h"

#include <assert.h>
#include <math.h>

#include "optimize/power_curve.h"

static const double least_gain = 0.0033; /* a smaller expected gain is not worth a probe */

static bool is_positive(double value)
{
    return isfinite(value) && value > 0.0;
}

/* A sample is fast enough when it takes at most F times as long as the fastest. */
static bool is_fast_enough(const struct wg_objective *objective, double throughput, double largest)
{
    return objective->kind != WG_OBJECTIVE_SLOWDOWN ||
           throughput * objective->max_slowdown >= largest;
}

static enum wg_code check_samples(const struct wg_power_sample *samples, size_t count,
                                  struct wg_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct wg_power_sample *sample = &samples[i];

        if (!is_positive(sample->limit_w))
            return wg__fail(err, WG_EINVAL, "power limit of sample %zu is %g W, not positive", i,
                            sample->limit_w);
        if (!is_positive(sample->power_w) || !is_positive(sample->throughput))
            return wg__fail(err, WG_EINVAL,
                            "sample at limit %g W has power %g W and throughput %g, expected both "
                            "positive",
                            sample->limit_w, sample->power_w, sample->throughput);
        for (size_t j = 0; j < i; j++)
            if (samples[j].limit_w == sample->limit_w)
                return wg__fail(err, WG_EINVAL, "power limit %g W stands twice", sample->limit_w);
    }
    return WG_OK;
}

/* The best of samples that were checked. The fastest one is always fast enough, so there is one. */
static size_t choose(const struct wg_objective *objective, const struct wg_power_sample *samples,
                     size_t count)
{
    double largest = 0.0, best_cost = INFINITY;
    size_t best = count;

    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, samples[i].throughput);
    for (size_t i = 0; i < count; i++) {
        const double cost =
            wg__objective_cost_per_s(objective, samples[i].power_w) / samples[i].throughput;
        const bool wins_tie =
            best < count && cost == best_cost && samples[i].limit_w > samples[best].limit_w;

        if (!is_fast_enough(objective, samples[i].throughput, largest))
            continue;
        if (best == count || cost < best_cost || wins_tie) {
            best = i;
            best_cost = cost;
        }
    }
    return best;
}

enum wg_code wg__power_limit_best(const struct wg_objective *objective,
                                  const struct wg_power_sample *samples, size_t count,
                                  size_t *best_out, struct wg_error *err)
{
    if (count == 0)
        return wg__fail(err, WG_EINVAL, "no power samples to choose from");
    enum wg_code code = wg__objective_check(objective, err);
    if (code == WG_OK)
        code = check_samples(samples, count, err);
    if (code == WG_OK)
        *best_out = choose(objective, samples, count);
    return code;
}

/* The index of the limit nearest to `limit_w`, the larger one of two equally near. */
static size_t nearest_limit(const struct wg_power_search *search, double limit_w)
{
    size_t nearest = 0;

    for (size_t i = 1; i < search->count; i++)
        if (fabs(search->limit_w[i] - limit_w) <= fabs(search->limit_w[nearest] - limit_w))
            nearest = i;
    return nearest;
}

enum wg_code wg__power_search_init(struct wg_power_search *search,
                                   const struct wg_objective *objective,
                                   enum wg_power_search_method method, const double *limits_w,
                                   size_t count, double warm_start_w, struct wg_error *err)
{
    if (count < 1 || count > WG_POWER_LIMITS_MAX)
        return wg__fail(err, WG_EINVAL, "%zu power limits, expected 1 to %d", count,
                        WG_POWER_LIMITS_MAX);
    if ((unsigned)method >= WG_POWER_SEARCH_METHOD_COUNT)
        return wg__fail(err, WG_EINVAL, "power search method %u is unknown", (unsigned)method);
    for (size_t i = 0; i < count; i++) {
        if (!is_positive(limits_w[i]))
            return wg__fail(err, WG_EINVAL, "power limit %zu is %g W, not positive", i,
                            limits_w[i]);
        if (i > 0 && limits_w[i] <= limits_w[i - 1])
            return wg__fail(err, WG_EINVAL, "power limits do not ascend: %g W stands after %g W",
                            limits_w[i], limits_w[i - 1]);
    }
    const enum wg_code code = wg__objective_check(objective, err);
    if (code != WG_OK)
        return code;

    *search = (struct wg_power_search){.objective = *objective, .method = method, .count = count};
    for (size_t i = 0; i < count; i++)
        search->limit_w[i] = limits_w[i];
    search->start = isfinite(warm_start_w) ? nearest_limit(search, warm_start_w) : count;
    return WG_OK;
}

bool wg__power_search_ask(struct wg_power_search *search, size_t *index_out)
{
    size_t index = search->count;

    if (search->method == WG_POWER_SEARCH_SWEEP || !search->probed[search->count - 1]) {
        while (index > 0 && search->probed[index - 1])
            index--;
        if (index == 0)
            return false;
        *index_out = index - 1;
        return true;
    }
    if (wg__power_curve_best_gain(search, &index) < least_gain || index == search->count)
        return false;
    *index_out = index;
    return true;
}

enum wg_code wg__power_search_tell(struct wg_power_search *search, size_t index, double power_w,
                                   double throughput, struct wg_error *err)
{
    if (index >= search->count)
        return wg__fail(err, WG_EINVAL, "power limit number %zu of %zu", index, search->count);
    if (!is_positive(power_w) || !is_positive(throughput))
        return wg__fail(err, WG_EINVAL,
                        "at limit %g W: power %g W and throughput %g, expected both positive",
                        search->limit_w[index], power_w, throughput);
    const double weight = 1.0 / (double)++search->tell_count[index];

    search->power_w[index] += (power_w - search->power_w[index]) * weight;
    search->throughput[index] += (throughput - search->throughput[index]) * weight;
    if (!search->probed[index])
        search->probe_count++;
    search->probed[index] = true;
    return WG_OK;
}

size_t wg__power_search_best(const struct wg_power_search *search)
{
    struct wg_power_sample samples[WG_POWER_LIMITS_MAX];
    size_t index_of_sample[WG_POWER_LIMITS_MAX] = {0};
    size_t count = 0;

    assert(search->probe_count > 0);
    for (size_t i = 0; i < search->count; i++) {
        if (!search->probed[i])
            continue;
        index_of_sample[count] = i;
        samples[count++] = (struct wg_power_sample){.limit_w = search->limit_w[i],
                                                    .power_w = search->power_w[i],
                                                    .throughput = search->throughput[i]};
    }
    return index_of_sample[choose(&search->objective, samples, count)];
}

bool wg__power_search_ask_again(const struct wg_power_search *search, unsigned times,
                                size_t *index_out)
{
    const size_t best = wg__power_search_best(search);
    const size_t first = best > 0 ? best - 1 : best;
    const size_t last = best + 1 < search->count ? best + 1 : best;
    for (size_t i = first; i <= last; i++)
        if (search->tell_count[i] < times) {
            *index_out = i;
            return true;
        }
    return false;
}
