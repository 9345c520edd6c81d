/* SPDX-License-Identifier: MIT
 *
 * A bound that holds as often as it says: the split-conformal quantile of the last residuals.
 *
 * Of n + 1 exchangeable numbers, the last is at most the k-th smallest of the others with
 * probability k / (n + 1) or more. With k = ceil((n + 1)(1 - miss)) that is 1 - miss, whatever
 * their distribution. The residuals must be of predictions made before their truth was learned
 * from. Vovk, Gammerman, Shafer, "Algorithmic Learning in a Random World" (2005), section 2.2;
 * Lei et al., "Distribution-free predictive inference for regression", JASA 113 (2018).
 *
 * When all of the newest are below the highest third of the older ones, the older ones are
 * forgotten: they come from before something was learned, and would keep the bound wide until they
 * have left the window. That it may happen by chance costs no more than a smaller window.
 *
 * Owns: its two arrays.    Threads: one at a time.
 */
#ifndef WG_SCHEDULE_CONFORMAL_H
#define WG_SCHEDULE_CONFORMAL_H

#include <stdbool.h>
#include <stddef.h>

struct wg_conformal {
    size_t window;
    size_t count; /* <= window */
    size_t next;  /* place in `recent` of the next, which is the oldest when it is full */
    double miss;
    double *recent; /* in the order they were told, around a ring */
    double *sorted; /* the same, rising */
};

/* `window` >= 1, `miss` in (0, 1). False: no memory. */
bool wg__conformal_init(struct wg_conformal *conformal, size_t window, double miss);
void wg__conformal_fini(struct wg_conformal *conformal);

/* Costs a search and a move of the window's doubles at most, but for the rare time that it forgets.
 * `residual` is finite. */
void wg__conformal_tell(struct wg_conformal *conformal, double residual);

/* The margin, >= 0; `first`, or the largest residual if that is larger, until there are enough. */
double wg__conformal_margin(const struct wg_conformal *conformal, double first);

#endif
