/* SPDX-License-Identifier: MIT
 *
 * From what a server does flat out to what users feel at the real load.
 *
 * A workload that is measured one batch after the other knows nothing of queues, nor of the watts
 * between requests. So its time per batch, its busy and its idle power go into the load model
 * (schedule/load_model.h) with the arrivals that are expected, and the latencies and joules per
 * request that come out replace the measured ones. The same random numbers are drawn for each
 * configuration: two differ by what they are, not by luck.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_LIVE_TUNE_LOAD_H
#define WG_LIVE_TUNE_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "live/workload.h"

/* One measured batch size. */
struct wg_tune_load_point {
    double batch;
    double service_s; /* of a whole batch */
    double busy_w;
};

struct wg_tune_load {
    const char *arrivals; /* as wg__arrivals_open takes it */
    size_t requests;      /* that are simulated; 0: 200000 */
    uint64_t seed;
    double idle_w;
    unsigned replicas; /* 0: 1 */
    double delay_s;
};

/* The point that a window shows, from its figures (service_s, else batch and requests_per_s) and
 * its energy, of which what is not busy (figure busy_s) was drawn at `idle_w` (NAN: not known, none
 * is taken off). WG_EDATA: they are not there. */
enum wg_code wg__tune_load_point(const struct wg_workload_sample *sample, double batch,
                                 unsigned replicas, double energy_j, double idle_w,
                                 struct wg_tune_load_point *out, struct wg_error *err);

/* Replaces mean_s, p50_s ... p999_s and energy_per_request_j, and adds utilization and batch_mean.
 * `points` rise in batch; the last one is the largest batch. `*is_stable_out` false: the load is
 * more than it can serve; figures are lower bounds. Into `drawn_out` (NULL: nowhere) go the figures
 * with the error that the draw of the arrivals leaves them: it is the same in each window, so that
 * measuring longer does not lessen it. */
enum wg_code wg__tune_load_apply(const struct wg_tune_load *load,
                                 const struct wg_tune_load_point *points, size_t count,
                                 struct wg_workload_sample *sample,
                                 struct wg_workload_sample *drawn_out, bool *is_stable_out,
                                 struct wg_error *err);

#endif
