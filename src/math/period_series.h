/* SPDX-License-Identifier: MIT
 *
 * A signal in equal bins, without its drift, and its autocorrelation: what period.c looks at.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_MATH_PERIOD_SERIES_H
#define WG_MATH_PERIOD_SERIES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { WG_PERIOD_BINS_LEAST = 24 };

struct wg_period_series {
    double *value; /* per bin, without drift; owned */
    double *mask;  /* 1, or 0: left out; owned */
    double *r;     /* autocorrelation by lag; owned */
    size_t count, lags;
    double bin_s;
    double mean; /* of the samples */
};

/* A stretch of a series. */
struct wg_period_part {
    const struct wg_period_series *series;
    size_t first, count;
};

/* Bins of at least `bin_s`; lags up to a share of them. The caller frees it. WG_ENOMEM. */
enum wg_code wg__period_series_init(struct wg_period_series *series, const double *t_s,
                                    const double *value, size_t count, double bin_s,
                                    double lag_share, struct wg_error *err);
void wg__period_series_fini(struct wg_period_series *series);

/* The autocorrelation of a part by lag, up to `lags`, over the bins that count; false: nothing
 * varies. */
bool wg__period_correlate(const struct wg_period_part *part, size_t lags, double *r);

#endif
