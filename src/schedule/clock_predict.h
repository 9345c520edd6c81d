/* SPDX-License-Identifier: MIT
 *
 * The latency that a given share of requests keeps, and how busy the server is, from its law t(b)
 * and the arrivals: in closed form, because a clock governor asks for every rung, all the time.
 *
 * A server that always takes who waits, up to B rows, has Q rows waiting when a batch begins, and
 *
 *     Q' = Q - min(Q, B) + arrivals in t(min(Q, B))
 *
 * Below B that pulls Q towards the fixed point b* = rate t(b*), with the strength 1 - rate t'(b*);
 * above B it falls by c = B - rate t(B) a batch. With variance D rate t per step (D: the index of
 * dispersion of the arrivals), the diffusion with that piecewise linear drift has a density that is
 * normal below B and exponential above:
 *
 *        density                 sd^2 = D b* / (1 - phi^2),  phi = rate t'(b*)
 *     |     _..._
 *     |   .'     '.              decay above B: 2 c / (D rate t(B))
 *     |  /         '|..__
 *     +-----b*------B----------- Q
 *
 * (as Halfin and Whitt, "Heavy-traffic limits for queues with many exponential servers", Operations
 * Research 29, 1981, patch theirs). A request that comes while a batch runs waits for what is left
 * of it, evenly from 0 to t(b*), and then for the batches up to its own; few requests wait at all
 * when the server is mostly idle. docs/internals/serving-clocks.md has the measured error.
 *
 * Pure.    Owns: nothing.    Threads: any.
 */
#ifndef WG_SCHEDULE_CLOCK_PREDICT_H
#define WG_SCHEDULE_CLOCK_PREDICT_H

#include <stddef.h>

enum { WG_BATCH_LAW_POINTS = 5 };

/* The bound of a batch's time that `margin` below stands for, in standard deviations of its noise:
 * the normal quantile of 98 %, as the predictor's bound is exceeded in 2 % of cases. */
#define WG_MARGIN_SIGMAS 2.054

/* Straight lines between points; 1 and the largest batch are the first and the last one. */
struct wg_batch_law {
    size_t count; /* 1 when the largest batch is 1 */
    double rows[WG_BATCH_LAW_POINTS];
    double time_s[WG_BATCH_LAW_POINTS]; /* positive, never falling */
};

struct wg_clock_load {
    double rate;       /* rows a second */
    double dispersion; /* index of dispersion of counts, >= 0 */
    double margin;     /* relative, of a bound that a batch's time exceeds in 2 % of cases */
    double step_s;     /* what else may stand in the way when a request comes; 0: nothing */
    double share;      /* of requests that keep the latency: 0.99 for p99 */
};

struct wg_clock_forecast {
    double latency_s; /* HUGE_VAL: requests come faster than they can be served */
    double busy;      /* share of the time that batches run, 0 .. 1 */
};

/* Which batches the law's points should be at, for a largest one of `max_rows` >= 1. */
void wg__batch_law_rows(struct wg_batch_law *law, unsigned max_rows);

double wg__batch_law_time(const struct wg_batch_law *law, double rows);

void wg__clock_forecast(const struct wg_batch_law *law, const struct wg_clock_load *load,
                        struct wg_clock_forecast *out);

#endif
