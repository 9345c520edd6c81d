/* SPDX-License-Identifier: MIT
 *
 * The profile of a training job: what was measured at each setting, which is the best, and which
 * one is worth measuring next.
 *
 * Threads: one at a time; no memory of its own.
 */
#ifndef WG_OPTIMIZE_TRAIN_GOVERNOR_BOOK_H
#define WG_OPTIMIZE_TRAIN_GOVERNOR_BOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "optimize/train_governor.h"

/* What is known of one setting. */
struct wg_train_row {
    double time_s, steps, energy_j;            /* sums over the measurements that count */
    double steps_variance, energy_variance_j2; /* of the sums */
    double log_rate_sum, log_rate_sum2;        /* of single measurements, for their scatter */
    double log_power_sum, log_power_sum2;
    unsigned measurements, discarded;
    unsigned order; /* of its newest measurement among all, from 1 */
    double settle_s;
    bool is_refused;   /* the driver does not take it */
    bool is_skipped;   /* it cannot be measured at present */
    bool is_stale;     /* measured before the job or the device changed */
    bool is_confirmed; /* was suspect, and was the same again */
    bool is_early;     /* the first of all: the job may still have been warming up */
    bool is_cached;    /* from an earlier run's profile */
};

struct wg_train_book {
    struct wg_objective objective;
    size_t count;
    double setting[WG_POWER_LIMITS_MAX];
    double setting_w;
    double neighbor_setting;
    double step_noise;      /* relative standard deviation of one step's time, as known by now */
    bool is_local;          /* look only around the best: the first search is over */
    unsigned measurements;  /* of all rows, the forgotten ones too */
    size_t suspect;         /* to be measured again, since it does not fit; `count`: none */
    unsigned suspect_order; /* of the measurement that it does not fit to */
    unsigned checks, tears; /* of suspects in this search; and of all those that had changed */
    struct wg_train_row rows[WG_POWER_LIMITS_MAX];
};

/* Whether the row's measurements count for a choice. */
bool wg__train_book_is_known(const struct wg_train_book *book, size_t setting);

void wg__train_book_add(struct wg_train_book *book, size_t setting,
                        const struct wg_train_measurement *measurement, double steps_sd);

void wg__train_book_point(const struct wg_train_book *book, size_t setting,
                          struct wg_train_point *out);

/* Cost of one step at a known setting, and its relative standard deviation. */
double wg__train_book_cost(const struct wg_train_book *book, size_t setting, double *sd_out);

/* The best known setting; `count` when none is known. */
size_t wg__train_book_best(const struct wg_train_book *book);

/* A cheaper setting than the best is so close to the bound of SLOWDOWN that nobody knows on which
 * side of it. */
bool wg__train_book_is_cautious(const struct wg_train_book *book);

/* The suspect, when it can be measured; else `count`. */
size_t wg__train_book_suspect(const struct wg_train_book *book);

/* The setting to measure next, or `count`: enough is known. */
size_t wg__train_book_next(const struct wg_train_book *book);

#endif
