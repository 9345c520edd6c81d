/* SPDX-License-Identifier: MIT
 *
 * What a window under load felt like, and its figures by name.
 *
 * Owns: the latencies.    Threads: pure, one at a time.
 */
#ifndef WG_LIVE_LOAD_RESULT_H
#define WG_LIVE_LOAD_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "live/load_window.h"
#include "live/workload.h"

struct wg_load_result {
    enum wg_workload_outcome outcome;
    char why[WG_WORKLOAD_WHY_SIZE]; /* of another outcome than OK */
    double time_s;                  /* of the window */
    size_t answered;                /* good ones that ended within it */
    size_t errors;                  /* bad ones that ended within it */
    size_t unanswered;
    double tokens; /* of those answered */
    size_t peak;   /* most under way at once */
    struct wg_load_window latency, lag, ttft, tpot;
};

void wg__load_result_init(struct wg_load_result *result);
void wg__load_result_fini(struct wg_load_result *result);

/* Empties it, keeps the memory. */
void wg__load_result_clear(struct wg_load_result *result);

/* A figure by name: p50_s, p99.9_s, mean_s, the same behind ttft_ and tpot_, requests_per_s,
 * output_tokens_per_s. False: not one of ours. */
bool wg__load_figure(struct wg_load_result *result, const char *name, struct wg_load_estimate *out);

/* The latencies that such a name means and the share of it, 0 for the mean; NAN: no latency. */
double wg__load_latency(struct wg_load_result *result, const char *name,
                        struct wg_load_window **window);

/* Whether a text of a server or a library tells of memory that has run out. */
bool wg__is_out_of_memory(const char *text);

#endif
