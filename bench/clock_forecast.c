/* SPDX-License-Identifier: MIT
 *
 * How far the forecast p99 of schedule/clock_predict.h is from a simulated one.
 *
 *     ninja -C build/release bench/clock_forecast
 *     build/release/bench/clock_forecast
 *
 * Largest batches of 1 to 128, 20 to 95 % of a lone row's time fixed, noise of 0 to 20 %, loads of
 * 5 to 95 % of what can be served; arrivals of six kinds, each with its index of dispersion of
 * counts. The simulation is schedule/load_model.h's. A row of the JSON is a kind of arrivals:
 * shares of the ratios forecast over simulated in four classes, and the extremes; then what a
 * forecast takes. Traces are written to $TMPDIR or /tmp, and removed.
 *
 * Threads: one.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "math/statistics.h"
#include "schedule/arrivals.h"
#include "schedule/clock_predict.h"
#include "schedule/load_model.h"

enum { TRACE_ROWS = 200000, RATIOS_MAX = 1024, SPEED_ROUNDS = 1000000 };

struct kind {
    const char *name;
    double dispersion;
    const char *law; /* NULL: a trace */
    unsigned clump;  /* of the trace: rows that come together; 0: gaps that vary */
};

static const struct kind kinds[] = {
    {"even", 0, "uniform", 0},
    {"Erlang gaps", 0.5, NULL, 0},
    {"Poisson", 1, "poisson", 0},
    {"hyperexponential gaps, 2", 2, NULL, 0},
    {"hyperexponential gaps, 4", 4, NULL, 0},
    {"clumps of 4", 4, NULL, 4},
};

static void require(enum wg_code code, const struct wg_error *err)
{
    if (code == WG_OK)
        return;
    (void)fprintf(stderr, "clock_forecast: %s\n", err->text);
    exit(EXIT_FAILURE);
}

static double exponential(struct wg_rng *rng)
{
    return -log(wg__rng_uniform(rng));
}

/* With mean 1 and the dispersion as squared coefficient of variation. */
static double draw_gap(double dispersion, struct wg_rng *rng)
{
    if (dispersion < 1)
        return (exponential(rng) + exponential(rng)) / 2; /* Erlang of two stages: 0.5 */
    const double often = 0.5 * (1 + sqrt((dispersion - 1) / (dispersion + 1)));
    const double part = wg__rng_uniform(rng) < often ? often : 1 - often;
    return exponential(rng) / (2 * part);
}

static void write_trace(const struct kind *kind, char *path, size_t size)
{
    const char *folder = getenv("TMPDIR");
    struct wg_rng rng;
    double now_s = 0;
    (void)snprintf(path, size, "%s/wattgov-forecast-XXXXXX", folder != NULL ? folder : "/tmp");
    const int descriptor = mkstemp(path);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (file == NULL) {
        (void)fprintf(stderr, "clock_forecast: %s cannot be written\n", path);
        exit(EXIT_FAILURE);
    }
    wg__rng_init(&rng, 6);
    (void)fprintf(file, "arrival_s\n");
    for (unsigned i = 0; i < TRACE_ROWS; i++) {
        if (kind->clump == 0)
            now_s += draw_gap(kind->dispersion, &rng);
        else if (i % kind->clump == 0)
            now_s += kind->clump * exponential(&rng);
        (void)fprintf(file, "%.9f\n", now_s);
    }
    (void)fclose(file);
}

static double simulate(const struct wg_batch_law *law, const char *arrivals, double cv,
                       size_t requests)
{
    struct wg_load_server server = {.point_count = law->count,
                                    .max_batch = (unsigned)law->rows[law->count - 1],
                                    .replicas = 1,
                                    .service_cv = cv};
    struct wg_load_result result;
    struct wg_arrivals *stream = NULL;
    struct wg_error err;
    struct wg_rng rng;
    for (size_t i = 0; i < law->count; i++) {
        server.batch[i] = law->rows[i];
        server.service_s[i] = law->time_s[i];
    }
    wg__rng_init(&rng, 7);
    require(wg__arrivals_open(&stream, arrivals, &rng, &err), &err);
    require(wg__load_simulate(&server, stream, requests, &rng, &result, &err), &err);
    wg__arrivals_close(stream);
    return result.p99_s;
}

static double ratio(const struct kind *kind, const char *path, unsigned size, double fixed,
                    double cv, double load)
{
    struct wg_batch_law law;
    struct wg_clock_forecast forecast;
    char arrivals[512];
    wg__batch_law_rows(&law, size);
    for (size_t i = 0; i < law.count; i++)
        law.time_s[i] = fixed + (1 - fixed) * law.rows[i];
    const double rate = load * size / law.time_s[law.count - 1];
    if (kind->law != NULL)
        (void)snprintf(arrivals, sizeof arrivals, "%s:%.17g", kind->law, rate);
    else
        (void)snprintf(arrivals, sizeof arrivals, "trace:%s,rate=%.17g", path, rate);
    const struct wg_clock_load asked = {.rate = rate,
                                        .dispersion = kind->dispersion,
                                        .margin = WG_MARGIN_SIGMAS * cv,
                                        .share = 0.99};
    wg__clock_forecast(&law, &asked, &forecast);
    return forecast.latency_s / simulate(&law, arrivals, cv, load >= 0.8 ? 180000 : 50000);
}

static size_t find_ratios(const struct kind *kind, const char *path, double *ratios)
{
    static const unsigned sizes[] = {1, 2, 4, 8, 32, 128};
    static const double fixed[] = {0.2, 0.5, 0.8, 0.95}, noises[] = {0, 0.05, 0.2};
    static const double loads[] = {0.05, 0.15, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95};
    const size_t size_count = 6, law_count = 4, noise_count = 3, load_count = 8;
    size_t count = 0;
    for (size_t i = 0; i < size_count * law_count * noise_count * load_count; i++) {
        const size_t law = i / size_count % law_count;
        const unsigned size = sizes[i % size_count];
        if (size == 1 && law > 0)
            continue; /* one row takes what it takes */
        ratios[count++] =
            ratio(kind, path, size, fixed[law], noises[i / (size_count * law_count) % noise_count],
                  loads[i / (size_count * law_count * noise_count)]);
    }
    wg__sort(ratios, count);
    return count;
}

static void write_kind(const struct kind *kind, struct wg_json *json)
{
    static const double edges[] = {0, 0.8, 1, 1.4, HUGE_VAL};
    static const char *const keys[] = {"below_0.8", "0.8_to_1", "1_to_1.4", "above_1.4"};
    double ratios[RATIOS_MAX];
    char path[256] = "";
    if (kind->law == NULL)
        write_trace(kind, path, sizeof path);
    const size_t count = find_ratios(kind, path, ratios);
    if (kind->law == NULL)
        (void)unlink(path);
    wg__json_object(json);
    wg__json_member_string(json, "arrivals", kind->name);
    wg__json_member_double(json, "dispersion", kind->dispersion);
    wg__json_member_uint(json, "cases", count);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        size_t inside = 0;
        for (size_t i = 0; i < count; i++)
            inside += ratios[i] >= edges[k] && ratios[i] < edges[k + 1];
        wg__json_member_double(json, keys[k], (double)inside / (double)count);
    }
    wg__json_member_double(json, "least", ratios[0]);
    wg__json_member_double(json, "median", wg__quantile_sorted(ratios, count, 0.5));
    wg__json_member_double(json, "most", ratios[count - 1]);
    wg__json_close(json);
}

static double forecast_ns(void)
{
    struct wg_batch_law law;
    double sum_s = 0;
    wg__batch_law_rows(&law, 8);
    for (size_t i = 0; i < law.count; i++)
        law.time_s[i] = 0.06 + 0.066 * law.rows[i];
    const uint64_t from_ns = wg__clock_thread_ns();
    for (int i = 0; i < SPEED_ROUNDS; i++) {
        const struct wg_clock_load load = {
            .rate = 1 + 12e-6 * i, .dispersion = 1, .margin = 0.06, .share = 0.99};
        struct wg_clock_forecast forecast;
        wg__clock_forecast(&law, &load, &forecast);
        sum_s += forecast.latency_s;
    }
    const double spent_ns = (double)(wg__clock_thread_ns() - from_ns) / (double)SPEED_ROUNDS;
    return sum_s > 0 ? spent_ns : (double)NAN;
}

int main(void)
{
    struct wg_buffer text;
    struct wg_json json;
    wg__buffer_init(&text);
    wg__json_init(&json, &text);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.bench.clock_forecast/1");
    wg__json_key(&json, "results");
    wg__json_array(&json);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        write_kind(&kinds[i], &json);
    wg__json_close(&json);
    wg__json_member_double(&json, "forecast_ns", forecast_ns());
    wg__json_close(&json);
    (void)printf("%s\n", text.data);
    wg__buffer_fini(&text);
    return 0;
}
