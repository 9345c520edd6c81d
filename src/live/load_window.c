/* SPDX-License-Identifier: MIT
 *
 * The latencies of a window.
 *
 * Owns: see struct wg_load_window.    Threads: pure, one at a time.
 */
#include "live/load_window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "math/statistics.h"

enum { CAPACITY_FIRST = 1024, ENOUGH = WG_LOAD_WINDOW_BATCHES * 10 };

void wg__load_window_init(struct wg_load_window *window)
{
    *window = (struct wg_load_window){.values = NULL};
}

void wg__load_window_fini(struct wg_load_window *window)
{
    if (window == NULL)
        return;
    wg__free(window->values);
    wg__free(window->sorted);
    wg__load_window_init(window);
}

void wg__load_window_clear(struct wg_load_window *window)
{
    window->count = window->sorted_count = 0;
}

static bool grow(struct wg_load_window *window)
{
    const size_t capacity = window->capacity != 0 ? window->capacity * 2 : (size_t)CAPACITY_FIRST;
    double *values = wg__realloc_array(window->values, capacity, sizeof *values);
    if (values == NULL)
        return false;
    window->values = values;
    double *sorted = wg__realloc_array(window->sorted, capacity, sizeof *sorted);
    if (sorted == NULL)
        return false;
    window->sorted = sorted;
    window->capacity = capacity;
    return true;
}

enum wg_code wg__load_window_add(struct wg_load_window *window, double value, struct wg_error *err)
{
    if (wg__load_window_is_full(window))
        return WG_OK;
    if (window->count == window->capacity && !grow(window))
        return wg__fail(err, WG_ENOMEM, "%zu latencies: out of memory", window->count + 1);
    window->values[window->count++] = value;
    return WG_OK;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void sort(struct wg_load_window *window)
{
    if (window->sorted_count == window->count)
        return;
    memcpy(window->sorted, window->values, window->count * sizeof *window->values);
    qsort(window->sorted, window->count, sizeof *window->sorted, compare);
    window->sorted_count = window->count;
}

/* Interpolated between order statistics, type 7 of Hyndman and Fan; `count` > 0. */
static double at_share(const struct wg_load_window *window, double share)
{
    const double place = share * (double)(window->count - 1);
    const size_t below = (size_t)place;
    if (below + 1 >= window->count)
        return window->sorted[window->count - 1];
    const double left = window->sorted[below], right = window->sorted[below + 1];
    return left + (right - left) * (place - (double)below);
}

/* Variance of the mean of `BATCHES` parts' shares of latencies up to `limit`; `count` >= ENOUGH. */
static double batch_share_variance(const struct wg_load_window *window, double limit)
{
    double shares[WG_LOAD_WINDOW_BATCHES];
    const size_t each = window->count / WG_LOAD_WINDOW_BATCHES;
    for (size_t b = 0; b < WG_LOAD_WINDOW_BATCHES; b++) {
        size_t within = 0;
        for (size_t i = 0; i < each; i++)
            within += window->values[b * each + i] <= limit;
        shares[b] = (double)within / (double)each;
    }
    return wg__variance_sample(shares, WG_LOAD_WINDOW_BATCHES) / (double)WG_LOAD_WINDOW_BATCHES;
}

/* Standard error of the share of latencies up to percentile q. */
static double share_error(const struct wg_load_window *window, double q)
{
    const double independent = q * (1 - q) / (double)window->count;
    if (window->count < ENOUGH)
        return 2 * sqrt(independent);
    return sqrt(fmax(independent, batch_share_variance(window, at_share(window, q))));
}

struct wg_load_estimate wg__load_window_percentile(struct wg_load_window *window, double q)
{
    if (window->count == 0)
        return (struct wg_load_estimate){.value = NAN, .error = INFINITY};
    sort(window);
    const double error = share_error(window, q);
    struct wg_load_estimate out = {.value = at_share(window, q), .error = INFINITY};
    /* The largest order statistic stands for the share n / (n + 1). */
    if (q + error <= (double)window->count / (double)(window->count + 1) && out.value > 0)
        out.error =
            (at_share(window, q + error) - at_share(window, fmax(0, q - error))) / (2 * out.value);
    return out;
}

double wg__load_window_lower(struct wg_load_window *window, double q, double z)
{
    if (window->count == 0)
        return NAN;
    sort(window);
    return at_share(window, fmax(0, q - z * share_error(window, q)));
}

/* Standard error of the mean, by batch means where there are enough. */
static double mean_error(const struct wg_load_window *window, double mean)
{
    double squares = 0;
    for (size_t i = 0; i < window->count; i++)
        squares += (window->values[i] - mean) * (window->values[i] - mean);
    const double n = (double)window->count;
    const double independent = window->count > 1 ? squares / (n - 1) / n : (double)INFINITY;
    if (window->count < ENOUGH)
        return 2 * sqrt(independent);
    double means[WG_LOAD_WINDOW_BATCHES];
    const size_t each = window->count / WG_LOAD_WINDOW_BATCHES;
    for (size_t b = 0; b < WG_LOAD_WINDOW_BATCHES; b++)
        means[b] = wg__mean(window->values + b * each, each);
    const double batches =
        wg__variance_sample(means, WG_LOAD_WINDOW_BATCHES) / (double)WG_LOAD_WINDOW_BATCHES;
    return sqrt(fmax(independent, batches));
}

struct wg_load_estimate wg__load_window_mean(struct wg_load_window *window)
{
    if (window->count == 0)
        return (struct wg_load_estimate){.value = NAN, .error = INFINITY};
    const double mean = wg__mean(window->values, window->count);
    return (struct wg_load_estimate){.value = mean,
                                     .error = mean > 0 ? mean_error(window, mean) / mean : 0};
}

double wg__load_window_mean_lower(struct wg_load_window *window, double z)
{
    if (window->count < 2)
        return NAN;
    const struct wg_load_estimate mean = wg__load_window_mean(window);
    return fmax(0, mean.value * (1 - z * mean.error));
}

bool wg__load_window_is_above(const struct wg_load_window *window, double q, double limit,
                              size_t late, double z)
{
    const double n = (double)(window->count + late);
    if (window->count + late == 0)
        return false;
    size_t within = 0;
    for (size_t i = 0; i < window->count; i++)
        within += window->values[i] <= limit;
    const double share = (double)within / n;
    const double independent = q * (1 - q) / n;
    double error = 2 * sqrt(independent);
    if (window->count >= ENOUGH) {
        /* How much the parts differ more than independent draws would, around the share itself. */
        const double spread = batch_share_variance(window, limit);
        const double own = fmax(share * (1 - share), 1 / n) / n;
        error = sqrt(independent * fmax(1, spread / own));
    }
    return share + 0.5 / n < q - z * error;
}

bool wg__load_window_mean_is_above(struct wg_load_window *window, double limit, double z)
{
    return window->count >= 2 && wg__load_window_mean_lower(window, z) > limit;
}
