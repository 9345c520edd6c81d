/* SPDX-License-Identifier: MIT
 *
 * How fast requests come now, and how unevenly.
 *
 * Counts in short slots over a window give mean and index of dispersion (variance over mean of the
 * counts: 1 for a Poisson process, 0 for even arrivals, more for bursts); the mean of the last few
 * slots, when it is significantly higher, is taken instead: a burst is believed at once, a lull
 * only with time. All is O(1) an arrival and needs no memory that grows.
 *
 * Pure.    Owns: nothing.    Threads: one at a time.
 */
#ifndef WG_SCHEDULE_RATE_H
#define WG_SCHEDULE_RATE_H

#include <stddef.h>

enum { WG_RATE_SLOTS = 64 };

struct wg_rate {
    double slot_s;
    double begin_s;               /* of the present slot; NAN: no event yet */
    double counts[WG_RATE_SLOTS]; /* ring */
    size_t at;                    /* the present slot */
    size_t filled;
    double sum, squares; /* of full slots */
};

/* The window is WG_RATE_SLOTS slots of `slot_s` > 0. */
void wg__rate_init(struct wg_rate *rate, double slot_s);

/* `rows` rows came at now_s, which never falls. */
void wg__rate_tell(struct wg_rate *rate, double now_s, double rows);

/* Rows a second; 0 before the first. */
double wg__rate_mean(struct wg_rate *rate, double now_s);

/* Standard error of the mean if rows come as a Poisson process: large while little was seen. */
double wg__rate_error(struct wg_rate *rate, double now_s);

/* Index of dispersion of counts, >= 0; 1 while too little is known. */
double wg__rate_dispersion(struct wg_rate *rate, double now_s);

/* Rows that come in `span_s` at most, but for the normal quantile `z`: m + z sqrt(m dispersion). */
double wg__rate_expect(struct wg_rate *rate, double now_s, double span_s, double z);

#endif
