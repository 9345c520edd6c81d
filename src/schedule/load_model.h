/* SPDX-License-Identifier: MIT
 *
 * What users feel at the real load: latency percentiles and joules per request, from a measured
 * service time per batch, the powers busy and idle, and the arrivals.
 *
 * A server takes up to `max_batch` waiting requests together, waits at most `delay_s` for a batch
 * to fill while it is idle, and runs `replicas` batches side by side. The service time of b
 * requests lies on the line through the measured batches beside b, or through the last two beyond
 * them, where it never falls. One measured batch says nothing of others: it must be max_batch, and
 * smaller ones are taken to be padded to it.
 *
 *     J per request = (P_busy * busy time + P_idle * (replica time - busy time)) / requests
 *
 * Pure.    Owns: nothing.    Threads: any.
 */
#ifndef WG_SCHEDULE_LOAD_MODEL_H
#define WG_SCHEDULE_LOAD_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "schedule/arrivals.h"

enum { WG_LOAD_POINTS_MAX = 64 };

struct wg_load_server {
    size_t point_count;
    double batch[WG_LOAD_POINTS_MAX];        /* rising */
    double service_s[WG_LOAD_POINTS_MAX];    /* of a whole batch */
    double busy_power_w[WG_LOAD_POINTS_MAX]; /* while it runs */
    double idle_power_w;
    double service_cv; /* coefficient of variation of a batch's time; 0: fixed */
    unsigned max_batch;
    unsigned replicas; /* >= 1 */
    double delay_s;
};

struct wg_load_result {
    size_t requests; /* after the warm-up */
    bool is_stable;  /* false: the queue grows without end; figures are lower bounds */
    double mean_s, p50_s, p90_s, p95_s, p99_s, p999_s;
    /* Relative standard errors of these, from how parts of the simulated stretch differ; 0: it was
     * too short to tell. */
    double mean_error, p50_error, p90_error, p95_error, p99_error, p999_error;
    double energy_per_request_j;
    double utilization; /* share of the time that a replica is busy */
    double mean_batch;
};

/* Simulates `requests` arrivals after a tenth of them as warm-up. Draws service times from `rng`.
 * WG_EINVAL: a field that cannot be, named. WG_ENOMEM. */
enum wg_code wg__load_simulate(const struct wg_load_server *server, struct wg_arrivals *arrivals,
                               size_t requests, struct wg_rng *rng, struct wg_load_result *out,
                               struct wg_error *err);

/* The value of a percentile that `--slo` names: "p99", "p99.9", "mean", "p50"...; NAN: none. */
double wg__load_percentile(const struct wg_load_result *result, const char *name);

#endif
