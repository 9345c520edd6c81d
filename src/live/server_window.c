/* SPDX-License-Identifier: MIT
 *
 * The windows of a served model.
 *
 *     look | counts, mark | window: our load, or somebody else's | mark, counts | figures
 *
 * The server's counts are read right beside the marks between which joules are counted and answers
 * are, so that joules, requests and executions are of the same stretch: what warms up before the
 * window, and what drains behind it, is in none of them.
 *
 * Window k of every configuration meets the same arrivals: at a light load joules a request are
 * little but idle power by rate, and other dice would be taken for another configuration.
 *
 * Owns: nothing of its own.    Threads: one at a time.
 */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "live/server_parts.h"

enum { LOOK_MS = 50 };

/* -- Windows ---------------------------------------------------------------------------------- */

static bool should_stop(const struct wg_workload_plan *plan)
{
    return plan->should_stop != NULL && plan->should_stop(plan->context);
}

static double since_s(uint64_t begin_ns)
{
    return (double)(wg__clock_ns() - begin_ns) * 1e-9;
}

static void mark(const struct wg_workload_plan *plan, bool begins)
{
    if (plan->mark != NULL)
        plan->mark(begins, plan->context);
}

/* Whether the counts of a window suffice: they are precise, or time is over. */
static bool is_enough(const struct wg_kserve_statistics *counts, double time_s,
                      const struct wg_workload_plan *plan)
{
    const double relative =
        counts->executions > 0 ? 1 / sqrt((double)counts->executions) : (double)INFINITY;
    return time_s >= plan->max_s || (time_s >= plan->min_s && relative <= plan->relative_error);
}

/* Waits while others send, until the counts are precise or time is over. */
static enum wg_code watch(struct wg_workload_server *server, const struct wg_workload_plan *plan,
                          struct wg_workload_sample *out, struct wg_error *err)
{
    const struct wg_kserve_statistics before = server->seen;
    struct wg_kserve_statistics counts = {.inferences = 0};
    uint64_t last = 0;
    const uint64_t begin_ns = wg__clock_ns();
    uint64_t moved_ns = begin_ns;
    enum wg_code code = WG_OK;
    mark(plan, true);
    while (code == WG_OK && out->outcome == WG_WORKLOAD_OK) {
        (void)poll(NULL, 0, LOOK_MS);
        out->time_s = since_s(begin_ns);
        code = wg__triton_statistics(server->control, &server->seen, err);
        if (code != WG_OK)
            break;
        wg__kserve_statistics_since(&counts, &before, &server->seen);
        if (counts.inferences != last)
            moved_ns = wg__clock_ns();
        last = counts.inferences;
        if (should_stop(plan))
            out->outcome = WG_WORKLOAD_INTERRUPTED;
        else if (plan->hung_s > 0 && since_s(moved_ns) > plan->hung_s)
            out->outcome = WG_WORKLOAD_HUNG;
        else if (is_enough(&counts, out->time_s, plan))
            break;
    }
    mark(plan, false);
    out->requests = (double)counts.success.count;
    if (out->outcome == WG_WORKLOAD_HUNG)
        (void)snprintf(out->why, sizeof out->why, "no inference was counted for %.3g s",
                       plan->hung_s);
    if (code == WG_OK && out->outcome == WG_WORKLOAD_OK && counts.success.count == 0)
        return wg__fail(err, WG_EDATA,
                        "nobody has sent a request for %.3g s, by the server's counts",
                        out->time_s);
    if (code == WG_OK)
        wg__server_figures(out, server, &counts, plan);
    return code;
}

/* A window of our own load while it is driven. */
struct drive {
    struct wg_workload_server *server;
    const struct wg_workload_plan *plan;
    struct wg_kserve_statistics before, after;
    bool has_after;
    enum wg_code code; /* of the counts: OK where the server has none */
    struct wg_error error;
};

static bool count(struct drive *drive, struct wg_kserve_statistics *out)
{
    struct wg_workload_server *server = drive->server;
    if (!server->has_statistics || drive->code != WG_OK)
        return false;
    drive->code = wg__triton_statistics(server->control, out, &drive->error);
    return drive->code == WG_OK;
}

static void mark_drive(bool begins, void *context)
{
    struct drive *drive = context;
    if (begins)
        (void)count(drive, &drive->before);
    mark(drive->plan, begins);
    if (!begins)
        drive->has_after = count(drive, &drive->after);
}

static bool should_stop_drive(void *context)
{
    const struct drive *drive = context;
    return should_stop(drive->plan);
}

/* Window k has its own dice, and its own stretch of a trace. */
static void restart(struct wg_workload_server *server, const struct wg_workload_plan *plan)
{
    const bool is_steady = wg__arrivals_is_steady(server->arrivals);
    struct wg_rng rng;
    wg__rng_init(&rng, server->opts.seed);
    const struct wg_rng dice = wg__rng_split(&rng, is_steady ? 1 + plan->number : 1);
    wg__arrivals_restart(server->arrivals, &dice);
    wg__load_generator_restart(server->generator,
                               is_steady ? 0 : (double)plan->number * plan->min_s);
}

/* Our own load, and the counts of what it did. A server that told them and no longer does is gone
 * or another one: its latencies are of neither. */
static enum wg_code drive_load(struct wg_workload_server *server,
                               const struct wg_workload_plan *plan, struct wg_workload_sample *out,
                               struct wg_error *err)
{
    struct wg_load_result *result = &server->result;
    struct drive drive = {.server = server, .plan = plan, .code = WG_OK};
    struct wg_workload_plan marked = *plan;
    marked.mark = mark_drive;
    marked.should_stop = should_stop_drive;
    marked.context = &drive;
    if (server->arrivals != NULL)
        restart(server, plan);
    enum wg_code code = wg__load_generator_run(server->generator, &marked, result, err);
    if (code != WG_OK)
        return code;
    out->outcome = result->outcome;
    out->time_s = result->time_s;
    out->requests = (double)result->answered;
    (void)snprintf(out->why, sizeof out->why, "%s", result->why);
    if (drive.code != WG_OK && result->outcome == WG_WORKLOAD_OK)
        return wg__fail(err, drive.code, "%s", drive.error.text);
    struct wg_kserve_statistics counts;
    if (drive.has_after) {
        wg__kserve_statistics_since(&counts, &drive.before, &drive.after);
        server->seen = drive.after;
    }
    wg__server_figures(out, server, drive.has_after ? &counts : NULL, plan);
    return WG_OK;
}

enum wg_code wg__server_measure(struct wg_workload *workload, const struct wg_workload_plan *plan,
                                struct wg_workload_sample *out, struct wg_error *err)
{
    struct wg_workload_server *server = wg__server_of(workload);
    struct wg_error own = {.code = WG_OK};
    *out = (struct wg_workload_sample){.outcome = WG_WORKLOAD_OK, .requests = 0};
    enum wg_code code = wg__server_make(server, &own);
    if (code == WG_OK)
        code = wg__server_look(server, &own);
    if (code == WG_OK)
        code = server->opts.is_foreign_load ? watch(server, plan, out, &own)
                                            : drive_load(server, plan, out, &own);
    const enum wg_workload_outcome outcome = out->outcome;
    if (code == WG_OK)
        return WG_OK;
    code = wg__server_outcome(code, &own, &out->outcome, out->why);
    if (code == WG_OK && out->outcome == WG_WORKLOAD_OK)
        out->outcome = outcome;
    if (code != WG_OK && err != NULL)
        *err = own;
    return code;
}
