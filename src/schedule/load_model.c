/* SPDX-License-Identifier: MIT
 *
 * Simulating a batching server.
 *
 * The queue is first come, first served, so no event list is needed: the next batch begins with the
 * request at the head (arrived at a) on the replica that is free first (at f), as soon as the batch
 * is full (its last request arrived at l) or the head has waited long enough,
 *
 *     start = max(f, min(max(a, l), a + delay))
 *
 * and takes whoever has arrived by then. Requests ahead wait in a ring of max_batch moments; each
 * is pushed and popped once, so the work grows with the requests only.
 *
 * A batch's time and energy are shared among its requests, and the measured ones count theirs: no
 * batch is cut by the ends of the measurement. The replicas' time is that between the first
 * measured arrival and the one behind the last.
 *
 * A queue grows without end when requests come faster than full batches leave; that is known before
 * anything is simulated. Times that vary follow the gamma distribution (math/gamma.h).
 *
 * Owns: nothing after it returns.    Threads: pure, any thread.
 */
#include "schedule/load_model.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "math/gamma.h"
#include "math/statistics.h"

enum { BATCH_MAX = 1 << 16, REPLICAS_MAX = 1 << 12, REQUESTS_MAX = 1 << 27, WARM_UP_SHARE = 10 };

#define SERVICE_CV_MAX 10.0

struct station {
    const struct wg_load_server *server;
    struct wg_arrivals *arrivals;
    struct wg_rng *rng;
    double *service_s; /* of a batch of i + 1; owned, as all arrays here */
    double *power_w;
    double *free_s; /* heap of the moments when replicas become free, the least first */
    double *ring;   /* moments of the requests ahead */
    size_t head;    /* index of the head in the ring */
    double *latencies_s;
};

struct tally {
    size_t skipped; /* served before those that are measured */
    size_t measured;
    size_t batches;  /* with a measured request */
    size_t batched;  /* requests in them */
    double first_s;  /* arrival of the first measured request */
    double behind_s; /* arrival of the one behind the last */
    bool has_behind;
    double latency_s; /* sums */
    double busy_s;
    double energy_j;
};

/* -- What can be --------------------------------------------------------------------------- */

static enum wg_code check_points(const struct wg_load_server *server, struct wg_error *err)
{
    const size_t count = server->point_count;
    if (count == 0 || count > WG_LOAD_POINTS_MAX)
        return wg__fail(err, WG_EINVAL, "load model: %zu measured batches, expected 1 to %d", count,
                        WG_LOAD_POINTS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!(server->batch[i] >= 1.0 && server->batch[i] <= (double)BATCH_MAX) ||
            (i > 0 && server->batch[i] <= server->batch[i - 1]))
            return wg__fail(err, WG_EINVAL,
                            "load model: batch[%zu] is %g, expected batches that rise, 1 to %d", i,
                            server->batch[i], BATCH_MAX);
        if (!(server->service_s[i] > 0.0 && server->service_s[i] <= 1e9))
            return wg__fail(err, WG_EINVAL, "load model: service_s[%zu] is %g s", i,
                            server->service_s[i]);
        if (!(server->busy_power_w[i] >= 0.0 && server->busy_power_w[i] <= 1e9))
            return wg__fail(err, WG_EINVAL, "load model: busy_power_w[%zu] is %g W", i,
                            server->busy_power_w[i]);
    }
    if (count == 1 && server->batch[0] != (double)server->max_batch)
        return wg__fail(err, WG_EINVAL,
                        "load model: only batch %g was measured, which tells nothing of max_batch "
                        "%u: measure a second one",
                        server->batch[0], server->max_batch);
    return WG_OK;
}

static enum wg_code check_server(const struct wg_load_server *server, size_t requests,
                                 struct wg_error *err)
{
    if (server->max_batch == 0 || server->max_batch > BATCH_MAX)
        return wg__fail(err, WG_EINVAL, "load model: max_batch is %u, expected 1 to %d",
                        server->max_batch, BATCH_MAX);
    if (server->replicas == 0 || server->replicas > REPLICAS_MAX)
        return wg__fail(err, WG_EINVAL, "load model: replicas is %u, expected 1 to %d",
                        server->replicas, REPLICAS_MAX);
    if (!(server->delay_s >= 0.0 && server->delay_s <= 1e9))
        return wg__fail(err, WG_EINVAL, "load model: delay_s is %g s", server->delay_s);
    if (!(server->idle_power_w >= 0.0 && server->idle_power_w <= 1e9))
        return wg__fail(err, WG_EINVAL, "load model: idle_power_w is %g W", server->idle_power_w);
    if (!(server->service_cv >= 0.0 && server->service_cv <= SERVICE_CV_MAX))
        return wg__fail(err, WG_EINVAL, "load model: service_cv is %g, expected 0 to %g",
                        server->service_cv, SERVICE_CV_MAX);
    if (requests == 0 || requests > REQUESTS_MAX)
        return wg__fail(err, WG_EINVAL, "load model: %zu requests, expected 1 to %d", requests,
                        REQUESTS_MAX);
    return check_points(server, err);
}

/* -- Time and power of a batch ------------------------------------------------------------- */

/* The first measured batch of the pair whose line is taken for `batch`. */
static size_t find_pair(const struct wg_load_server *server, double batch)
{
    size_t pair = 0;
    while (pair + 2 < server->point_count && batch > server->batch[pair + 1])
        pair++;
    return pair;
}

/* On the line of its neighbours. Below the first point the line may not pass under the one through
 * the origin, and above the last it may not fall: no batch is served in less time for being larger,
 * and none for nothing. */
static double service_of(const struct wg_load_server *server, double batch)
{
    const double *b = server->batch;
    const double *t = server->service_s;
    const size_t last = server->point_count - 1;
    if (last == 0)
        return t[0]; /* smaller ones are padded */
    const size_t i = find_pair(server, batch);
    const double line = t[i] + (t[i + 1] - t[i]) / (b[i + 1] - b[i]) * (batch - b[i]);
    if (batch < b[0])
        return fmax(line, t[0] * batch / b[0]);
    return batch > b[last] ? fmax(line, t[last]) : line;
}

static double power_of(const struct wg_load_server *server, double batch)
{
    const double *b = server->batch;
    const double *p = server->busy_power_w;
    const size_t last = server->point_count - 1;
    if (batch <= b[0])
        return p[0];
    if (batch >= b[last])
        return p[last];
    const size_t i = find_pair(server, batch);
    return p[i] + (p[i + 1] - p[i]) / (b[i + 1] - b[i]) * (batch - b[i]);
}

/* -- The simulation ------------------------------------------------------------------------ */

static void station_fini(struct station *station)
{
    wg__free(station->service_s);
    wg__free(station->power_w);
    wg__free(station->free_s);
    wg__free(station->ring);
    wg__free(station->latencies_s);
}

static bool station_init(struct station *station, size_t requests)
{
    const struct wg_load_server *server = station->server;
    const size_t batch = server->max_batch;
    station->service_s = wg__alloc(batch * sizeof(double));
    station->power_w = wg__alloc(batch * sizeof(double));
    station->ring = wg__alloc(batch * sizeof(double));
    station->free_s = wg__alloc_zeroed(server->replicas, sizeof(double));
    station->latencies_s = wg__alloc(requests * sizeof(double));
    if (station->service_s == NULL || station->power_w == NULL || station->ring == NULL ||
        station->free_s == NULL || station->latencies_s == NULL)
        return false;
    for (size_t i = 0; i < batch; i++) {
        station->service_s[i] = service_of(server, (double)(i + 1));
        station->power_w[i] = power_of(server, (double)(i + 1));
        station->ring[i] = wg__arrivals_next(station->arrivals);
    }
    return true;
}

/* The `ahead`th request from the head; 0 is the head. */
static double waiting(const struct station *station, size_t ahead)
{
    size_t index = station->head + ahead;
    if (index >= station->server->max_batch)
        index -= station->server->max_batch;
    return station->ring[index];
}

/* Takes the head; a new request comes in at the end. */
static double pop(struct station *station)
{
    const double arrival_s = station->ring[station->head];
    station->ring[station->head] = wg__arrivals_next(station->arrivals);
    if (++station->head == station->server->max_batch)
        station->head = 0;
    return arrival_s;
}

/* The replica at the top of the heap is busy until `until_s`. */
static void occupy(struct station *station, double until_s)
{
    double *heap = station->free_s;
    const size_t count = station->server->replicas;
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count)
            break;
        if (child + 1 < count && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= until_s)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = until_s;
}

/* Serves the next batch; requests before `warm_up` count for nothing, nor do those behind `limit`.
 */
static void serve_batch(struct station *station, struct tally *tally, size_t warm_up, size_t limit)
{
    const struct wg_load_server *server = station->server;
    const double head_s = waiting(station, 0);
    const double full_s = waiting(station, server->max_batch - 1); /* at or behind the head */
    const double ready_s = fmin(full_s, head_s + server->delay_s);
    const double start_s = fmax(station->free_s[0], ready_s);
    size_t size = 1;
    while (size < server->max_batch && waiting(station, size) <= start_s)
        size++;
    const double service_s =
        station->service_s[size - 1] * wg__rng_gamma_factor(station->rng, server->service_cv);
    const double end_s = start_s + service_s;
    occupy(station, end_s);
    size_t counted = 0;
    for (size_t i = 0; i < size; i++) {
        const double arrival_s = pop(station);
        if (tally->skipped < warm_up) {
            tally->skipped++;
        } else if (tally->measured < limit) {
            if (tally->measured == 0)
                tally->first_s = arrival_s;
            station->latencies_s[tally->measured++] = end_s - arrival_s;
            tally->latency_s += end_s - arrival_s;
            counted++;
        } else if (!tally->has_behind) {
            tally->has_behind = true;
            tally->behind_s = arrival_s;
        }
    }
    if (counted == 0)
        return;
    const double share = (double)counted / (double)size;
    tally->batches++;
    tally->batched += size;
    tally->busy_s += share * service_s;
    tally->energy_j += share * service_s * station->power_w[size - 1];
}

/* -- The result ---------------------------------------------------------------------------- */

/* Standard errors by batch means: the stretch in parts, each long against how long a queue
 * remembers. Puts each part in order. */
static void find_errors(double *latencies_s, size_t count, struct wg_load_result *out)
{
    enum { PARTS = 20, LEAST = 50 };
    const size_t length = count / PARTS;
    double *const errors[] = {&out->p50_error, &out->p90_error,  &out->p95_error,
                              &out->p99_error, &out->p999_error, &out->mean_error};
    static const double shares[] = {0.5, 0.9, 0.95, 0.99, 0.999};
    enum { FIGURES = sizeof errors / sizeof *errors };
    double sums[FIGURES] = {0}, squares[FIGURES] = {0};
    if (length < LEAST)
        return;
    for (size_t part = 0; part < PARTS; part++) {
        double *of = latencies_s + part * length;
        double total_s = 0;
        for (size_t i = 0; i < length; i++)
            total_s += of[i];
        wg__sort(of, length);
        for (size_t f = 0; f < FIGURES; f++) {
            const double value = f + 1 < FIGURES ? wg__quantile_sorted(of, length, shares[f])
                                                 : total_s / (double)length;
            sums[f] += value;
            squares[f] += value * value;
        }
    }
    for (size_t f = 0; f < FIGURES; f++) {
        const double mean = sums[f] / (double)PARTS;
        const double variance = fmax(0, squares[f] / (double)PARTS - mean * mean) * (double)PARTS /
                                ((double)PARTS - 1.0);
        *errors[f] = mean > 0 ? sqrt(variance / (double)PARTS) / mean : 0;
    }
}

/* Whether full batches leave faster than requests come. */
static bool is_stable(const struct station *station)
{
    const double full = station->server->max_batch;
    const double offered_s =
        wg__arrivals_rate(station->arrivals) * station->service_s[station->server->max_batch - 1];
    return offered_s < full * station->server->replicas;
}

static void conclude(struct station *station, const struct tally *tally, double span_s,
                     struct wg_load_result *out)
{
    const size_t count = tally->measured;
    const double requests = (double)count;
    const double replica_s = span_s * station->server->replicas;
    const double idle_s = fmax(0.0, replica_s - tally->busy_s);
    double *latencies_s = station->latencies_s;
    *out = (struct wg_load_result){.requests = count, .is_stable = is_stable(station)};
    find_errors(latencies_s, count, out);
    wg__sort(latencies_s, count);
    out->mean_s = tally->latency_s / requests;
    out->p50_s = wg__quantile_sorted(latencies_s, count, 0.5);
    out->p90_s = wg__quantile_sorted(latencies_s, count, 0.9);
    out->p95_s = wg__quantile_sorted(latencies_s, count, 0.95);
    out->p99_s = wg__quantile_sorted(latencies_s, count, 0.99);
    out->p999_s = wg__quantile_sorted(latencies_s, count, 0.999);
    out->energy_per_request_j =
        (tally->energy_j + idle_s * station->server->idle_power_w) / requests;
    out->utilization = idle_s > 0 ? tally->busy_s / replica_s : 1;
    out->mean_batch = (double)tally->batched / (double)tally->batches;
}

enum wg_code wg__load_simulate(const struct wg_load_server *server, struct wg_arrivals *arrivals,
                               size_t requests, struct wg_rng *rng, struct wg_load_result *out,
                               struct wg_error *err)
{
    const enum wg_code code = check_server(server, requests, err);
    if (code != WG_OK)
        return code;
    struct station station = {.server = server, .arrivals = arrivals, .rng = rng};
    if (!station_init(&station, requests)) {
        station_fini(&station);
        return wg__fail(err, WG_ENOMEM, "load model: out of memory");
    }
    struct tally tally = {0};
    while (tally.measured < requests)
        serve_batch(&station, &tally, requests / WARM_UP_SHARE, requests);
    if (!tally.has_behind)
        tally.behind_s = waiting(&station, 0);
    conclude(&station, &tally, tally.behind_s - tally.first_s, out);
    station_fini(&station);
    return WG_OK;
}

double wg__load_percentile(const struct wg_load_result *result, const char *name)
{
    const struct {
        const char *name;
        double value;
    } figures[] = {
        {"mean", result->mean_s}, {"p50", result->p50_s}, {"p90", result->p90_s},
        {"p95", result->p95_s},   {"p99", result->p99_s}, {"p99.9", result->p999_s},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        if (strcmp(name, figures[i].name) == 0)
            return figures[i].value;
    }
    return (double)NAN;
}
