/* SPDX-License-Identifier: MIT
 *
 * The figures of a served model's window.
 *
 *     of our load    percentiles, rates          of Triton's counts    service_s, queue_s, batches
 *
 * A batch of b rows takes service_s(b) = time of its executions / executions. Counts have no
 * distribution, so where they are all we have, mean_s is the only latency.
 *
 * Pure.    Threads: one at a time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "live/server_parts.h"

/* Of a window that was cut. */
static const double LOWER_Z = 2;

static void add(struct wg_workload_sample *out, const char *name, double value, double error)
{
    if (!isfinite(value))
        return;
    for (size_t i = 0; i < out->figure_count; i++) {
        if (strcmp(out->figures[i].name, name) == 0)
            return;
    }
    if (out->figure_count == WG_WORKLOAD_FIGURES_MAX)
        return;
    struct wg_workload_figure *figure = &out->figures[out->figure_count++];
    (void)snprintf(figure->name, sizeof figure->name, "%s", name);
    figure->value = value;
    figure->error = isfinite(error) ? error : 1;
}

/* Percentiles of a window, each name behind `prefix`; of a window that was cut their lower ends. */
static void add_latencies(struct wg_workload_sample *out, struct wg_load_window *window,
                          const char *prefix, bool is_lower)
{
    static const struct {
        const char *name;
        double share;
    } shares[] = {
        {"p50_s", 0.5}, {"p90_s", 0.9}, {"p95_s", 0.95}, {"p99_s", 0.99}, {"p999_s", 0.999}};
    char name[WG_WORKLOAD_NAME_SIZE];
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        (void)snprintf(name, sizeof name, "%s%s", prefix, shares[i].name);
        const struct wg_load_estimate estimate =
            wg__load_window_percentile(window, shares[i].share);
        const double lower = wg__load_window_lower(window, shares[i].share, LOWER_Z);
        add(out, name, is_lower ? lower : estimate.value, estimate.error);
    }
    (void)snprintf(name, sizeof name, "%smean_s", prefix);
    const struct wg_load_estimate mean = wg__load_window_mean(window);
    add(out, name, is_lower ? wg__load_window_mean_lower(window, LOWER_Z) : mean.value, mean.error);
}

static void add_load(struct wg_workload_sample *out, struct wg_load_result *result)
{
    const bool is_lower = result->outcome == WG_WORKLOAD_CUT;
    add_latencies(out, &result->latency, "", is_lower);
    add_latencies(out, &result->ttft, "ttft_", is_lower);
    add_latencies(out, &result->tpot, "tpot_", is_lower);
    struct wg_load_estimate rate;
    if (wg__load_figure(result, "requests_per_s", &rate))
        add(out, "requests_per_s", rate.value, rate.error);
    if (result->tokens > 0 && wg__load_figure(result, "output_tokens_per_s", &rate))
        add(out, "output_tokens_per_s", rate.value, rate.error);
    if (result->tokens > 0)
        add(out, "tokens", result->tokens, 0);
    add(out, "requests", (double)result->answered, 0);
    add(out, "errors", (double)result->errors, 0);
    add(out, "samples", (double)result->latency.count, 0);
    add(out, "unanswered", (double)result->unanswered, 0);
    add(out, "outstanding_peak", (double)result->peak, 0);
    add(out, "send_lag_p99_s", wg__load_window_percentile(&result->lag, 0.99).value, 0);
}

static double each_s(struct wg_kserve_duration duration)
{
    return duration.count > 0 ? (double)duration.time_ns * 1e-9 / (double)duration.count
                              : (double)NAN;
}

static void add_batches(struct wg_workload_sample *out, const struct wg_kserve_statistics *counts)
{
    double executions = 0, time_s = 0;
    for (size_t i = 0; i < counts->batch_count; i++) {
        executions += (double)counts->batches[i].executions;
        time_s += (double)counts->batches[i].time_ns * 1e-9;
    }
    if (executions == 0)
        return;
    add(out, "service_s", time_s / executions, 1 / sqrt(executions));
    for (size_t i = 0; i < counts->batch_count; i++) {
        const struct wg_kserve_batch *batch = &counts->batches[i];
        char name[WG_WORKLOAD_NAME_SIZE];
        (void)snprintf(name, sizeof name, "batch_%llu_service_s", (unsigned long long)batch->size);
        add(out, name, (double)batch->time_ns * 1e-9 / (double)batch->executions,
            1 / sqrt((double)batch->executions));
        (void)snprintf(name, sizeof name, "batch_%llu_share", (unsigned long long)batch->size);
        add(out, name, (double)batch->executions / executions, 0);
    }
}

/* `is_first`: the counts are what was asked for, so they give the rates and the mean too. */
static void add_counts(struct wg_workload_sample *out, const struct wg_kserve_statistics *counts,
                       bool is_first)
{
    if (is_first) {
        const double requests = (double)counts->success.count;
        const double error = requests > 0 ? 1 / sqrt(requests) : 1;
        add(out, "mean_s", each_s(counts->success), error);
        if (out->time_s > 0)
            add(out, "requests_per_s", requests / out->time_s, error);
        add(out, "requests", requests, 0);
        add(out, "errors", (double)counts->fail.count, 0);
    }
    add(out, "queue_s", each_s(counts->queue), 0);
    if (counts->executions > 0)
        add(out, "batch_mean", (double)counts->inferences / (double)counts->executions, 0);
    add(out, "executions", (double)counts->executions, 0);
    add_batches(out, counts);
}

/* What must be there, before the table is full of what may be. */
static void add_named(struct wg_workload_sample *out, struct wg_load_result *result,
                      const char *name)
{
    struct wg_load_estimate estimate;
    if (name == NULL || !wg__load_figure(result, name, &estimate))
        return;
    struct wg_load_window *window = NULL;
    const double share = wg__load_latency(result, name, &window);
    double value = estimate.value;
    if (result->outcome == WG_WORKLOAD_CUT && share > 0)
        value = wg__load_window_lower(window, share, LOWER_Z);
    else if (result->outcome == WG_WORKLOAD_CUT && share == 0)
        value = wg__load_window_mean_lower(window, LOWER_Z);
    add(out, name, value, estimate.error);
}

/* How long the server worked. By its counts: the time of all executions, by the instances that can
 * work side by side. Without counts, a closed loop that never lets up keeps it busy by itself; of
 * an open loop nobody can tell. */
static void add_busy(struct wg_workload_sample *out, const struct wg_workload_server *server,
                     const struct wg_kserve_statistics *counts)
{
    double busy_s = NAN;
    if (counts != NULL && server->instances > 0) {
        busy_s = 0;
        for (size_t i = 0; i < counts->batch_count; i++)
            busy_s += (double)counts->batches[i].time_ns * 1e-9;
        busy_s = fmin(busy_s / (double)server->instances, out->time_s);
    } else if (!server->opts.is_foreign_load && server->arrivals == NULL) {
        busy_s = out->time_s;
    }
    add(out, "busy_s", busy_s, 0);
}

/* What was offered: by the stream's rate, of a trace what came in this very window. */
static void add_offered(struct wg_workload_sample *out, const struct wg_workload_server *server)
{
    const struct wg_load_result *result = &server->result;
    if (server->arrivals == NULL || server->opts.is_foreign_load || !(out->time_s > 0))
        return;
    const double came = (double)(result->latency.count + result->errors);
    add(out, "offered_per_s",
        wg__arrivals_is_steady(server->arrivals) ? wg__arrivals_rate(server->arrivals)
                                                 : came / out->time_s,
        0);
}

void wg__server_figures(struct wg_workload_sample *out, struct wg_workload_server *server,
                        const struct wg_kserve_statistics *counts,
                        const struct wg_workload_plan *plan)
{
    const bool counts_first = server->opts.statistics == WG_SERVER_STATISTICS_TRITON;
    struct wg_load_result *result = server->opts.is_foreign_load ? NULL : &server->result;
    out->figure_count = 0;
    add_busy(out, server, counts);
    add_offered(out, server);
    if (result != NULL && !counts_first) {
        add_named(out, result, plan->cut_name);
        for (size_t i = 0; plan->precise != NULL && plan->precise[i] != NULL; i++)
            add_named(out, result, plan->precise[i]);
        add_load(out, result);
    }
    if (counts != NULL)
        add_counts(out, counts, counts_first);
    if (result != NULL)
        add_load(out, result);
}
