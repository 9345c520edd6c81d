/* SPDX-License-Identifier: MIT
 *
 * The best power limit of one batch size, from measured power and throughput per limit.
 *
 * Two ask/tell searches over the same samples: the full sweep from the largest limit down (Zeus),
 * and a search that needs 4 to 5 probes (power_limit.c has its idea, bench/power_limit.c its
 * numbers).
 *
 * Threads: a search belongs to one thread; it allocates nothing.
 */
#ifndef WG_OPTIMIZE_POWER_LIMIT_H
#define WG_OPTIMIZE_POWER_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "optimize/objective.h"

enum { WG_POWER_LIMITS_MAX = 64 };

struct wg_power_sample {
    double limit_w;    /* of the same devices as `power_w`: for n GPUs at one limit, n times it */
    double power_w;    /* mean power while it was measured */
    double throughput; /* work per second, in any unit that all samples share */
};

/* The index of the best of `count` >= 1 samples: least cost per unit of work; for SLOWDOWN the
 * least energy per unit of work among those fast enough. A tie goes to the larger limit, so the
 * order of the samples never matters. WG_EINVAL for no samples, a power or throughput that is not
 * finite and positive, or a limit that stands twice. */
enum wg_code wg__power_limit_best(const struct wg_objective *objective,
                                  const struct wg_power_sample *samples, size_t count,
                                  size_t *best_out, struct wg_error *err);

enum wg_power_search_method {
    WG_POWER_SEARCH_SWEEP,
    WG_POWER_SEARCH_FEW_PROBES,
    WG_POWER_SEARCH_METHOD_COUNT
};

struct wg_power_search {
    struct wg_objective objective;
    enum wg_power_search_method method;
    size_t count; /* of limits, ascending */
    double limit_w[WG_POWER_LIMITS_MAX];
    double power_w[WG_POWER_LIMITS_MAX];
    double throughput[WG_POWER_LIMITS_MAX];
    bool probed[WG_POWER_LIMITS_MAX];
    unsigned tell_count[WG_POWER_LIMITS_MAX];
    size_t probe_count; /* distinct limits measured */
    size_t start;       /* the limit nearest to the neighbour's best, `count` without a neighbour */
};

/* Prepares a search over `count` (1..WG_POWER_LIMITS_MAX) limits in watts, ascending.
 * `warm_start_w` is the best limit of a neighbouring batch size, NaN when there is none. */
enum wg_code wg__power_search_init(struct wg_power_search *search,
                                   const struct wg_objective *objective,
                                   enum wg_power_search_method method, const double *limits_w,
                                   size_t count, double warm_start_w, struct wg_error *err);

/* The next limit to measure; false when the search is over. Asking again without telling gives the
 * same. */
bool wg__power_search_ask(struct wg_power_search *search, size_t *index_out);

/* What was measured at limit `index`; it need not be the one that was asked for. A limit told again
 * keeps the mean. WG_EINVAL for an index out of range or a value that is not finite and positive;
 * the search is then as before. */
enum wg_code wg__power_search_tell(struct wg_power_search *search, size_t index, double power_w,
                                   double throughput, struct wg_error *err);

/* For a job that runs again: which of the best limit so far and its two neighbours to measure once
 * more, until each was measured `times` times; false when they were. A limit that is kept for all
 * runs to come is worth more than one search with noisy samples. */
bool wg__power_search_ask_again(const struct wg_power_search *search, unsigned times,
                                size_t *index_out);

/* The best limit among those measured so far; at least one must have been told. */
size_t wg__power_search_best(const struct wg_power_search *search);

#endif
