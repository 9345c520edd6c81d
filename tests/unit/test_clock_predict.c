/* SPDX-License-Identifier: MIT
 *
 * Forecast latencies against simulated ones (schedule/load_model.h), and limits in closed form.
 */
#include "schedule/clock_predict.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "math/statistics.h"
#include "schedule/arrivals.h"
#include "schedule/load_model.h"
#include "support/check.h"
#include "support/scratch.h"

enum { REQUESTS = 12000, RATIOS_MAX = 512 };

/* Times of straight lines that take 1 s for one row, a share `fixed` of it at any size. */
static struct wg_batch_law line(double fixed, unsigned max_rows)
{
    struct wg_batch_law law;
    wg__batch_law_rows(&law, max_rows);
    for (size_t i = 0; i < law.count; i++)
        law.time_s[i] = fixed + (1 - fixed) * law.rows[i];
    return law;
}

static struct wg_load_result simulate(const struct wg_batch_law *law, const char *arrivals,
                                      double cv)
{
    struct wg_load_server server = {.point_count = law->count,
                                    .max_batch = (unsigned)law->rows[law->count - 1],
                                    .replicas = 1,
                                    .service_cv = cv};
    struct wg_load_result result = {0};
    struct wg_arrivals *stream = NULL;
    struct wg_error err = {0};
    struct wg_rng rng;
    wg__rng_init(&rng, 5);
    for (size_t i = 0; i < law->count; i++) {
        server.batch[i] = law->rows[i];
        server.service_s[i] = law->time_s[i];
    }
    if (wg__arrivals_open(&stream, arrivals, &rng, &err) != WG_OK ||
        wg__load_simulate(&server, stream, REQUESTS, &rng, &result, &err) != WG_OK)
        fail_msg("%s: %s", arrivals, err.text);
    wg__arrivals_close(stream);
    return result;
}

struct figures {
    size_t count;
    double ratios[RATIOS_MAX]; /* forecast over simulated p99 */
    double busy_error;         /* the largest */
};

/* All sizes, laws, noises and loads, for one kind of arrivals: `kind` takes the rate. */
static void compare(const char *before, const char *behind, double dispersion,
                    struct figures *figures)
{
    static const unsigned sizes[] = {1, 4, 8, 32};
    static const double fixed[] = {0.2, 0.5, 0.8}, noises[] = {0, 0.05};
    static const double loads[] = {0.1, 0.3, 0.5, 0.7, 0.85};
    const size_t size_count = 4, law_count = 3, noise_count = 2, load_count = 5;
    *figures = (struct figures){0};
    for (size_t i = 0; i < size_count * law_count * noise_count * load_count; i++) {
        const unsigned size = sizes[i % size_count];
        const struct wg_batch_law law = line(fixed[i / size_count % law_count], size);
        const double cv = noises[i / (size_count * law_count) % noise_count];
        const double load = loads[i / (size_count * law_count * noise_count)];
        const double rate = load * size / law.time_s[law.count - 1];
        char text[600];
        (void)snprintf(text, sizeof text, "%s%.17g%s", before, rate, behind);
        const struct wg_load_result truth = simulate(&law, text, cv);
        const struct wg_clock_load asked = {
            .rate = rate, .dispersion = dispersion, .margin = WG_MARGIN_SIGMAS * cv, .share = 0.99};
        struct wg_clock_forecast forecast;
        wg__clock_forecast(&law, &asked, &forecast);
        figures->ratios[figures->count++] = forecast.latency_s / truth.p99_s;
        figures->busy_error = fmax(figures->busy_error, fabs(forecast.busy - truth.utilization));
    }
    wg__sort(figures->ratios, figures->count);
}

static double quantile(const struct figures *figures, double share)
{
    return wg__quantile_sorted(figures->ratios, figures->count, share);
}

static void expect_ratios(const struct figures *figures, double least, double tenth, double middle,
                          double ninety)
{
    if (figures->ratios[0] < least || quantile(figures, 0.1) < tenth ||
        quantile(figures, 0.5) < 0.99 || quantile(figures, 0.5) > middle ||
        quantile(figures, 0.9) > ninety)
        fail_msg("forecast over simulated p99: least %.2f, 10 %% %.2f, half %.2f, 90 %% %.2f, "
                 "most %.2f",
                 figures->ratios[0], quantile(figures, 0.1), quantile(figures, 0.5),
                 quantile(figures, 0.9), figures->ratios[figures->count - 1]);
}

static void forecasts_p99_of_poisson_arrivals(void **state)
{
    (void)state;
    struct figures figures;
    compare("poisson:", "", 1, &figures);
    expect_ratios(&figures, 0.8, 0.95, 1.2, 1.4);
    assert_true(figures.busy_error < 0.05);
}

static void forecasts_p99_of_even_arrivals(void **state)
{
    (void)state;
    struct figures figures;
    compare("uniform:", "", 0, &figures);
    expect_ratios(&figures, 0.5, 0.95, 1.2, 1.6);
    assert_true(figures.busy_error < 0.1);
}

/* Gaps of two exponential lengths: the index of dispersion is their squared coefficient of
 * variation. */
static void forecasts_p99_of_bursts(void **state)
{
    (void)state;
    const double dispersion = 2;
    const double often = 0.5 * (1 + sqrt((dispersion - 1) / (dispersion + 1)));
    struct scratch scratch;
    struct figures figures;
    struct wg_rng rng;
    double now_s = 0;
    char before[600];
    scratch_open(&scratch);
    FILE *file = fopen(scratch_path(&scratch, "bursts.csv"), "w");
    scratch_require(file != NULL, "bursts.csv");
    wg__rng_init(&rng, 6);
    (void)fprintf(file, "arrival_s\n");
    for (int i = 0; i < 25000; i++) {
        const double part = wg__rng_uniform(&rng) < often ? often : 1 - often;
        now_s -= log(wg__rng_uniform(&rng)) / (2 * part);
        (void)fprintf(file, "%.9f\n", now_s);
    }
    (void)fclose(file);
    (void)snprintf(before, sizeof before, "trace:%s,rate=", scratch.path);
    compare(before, "", dispersion, &figures);
    scratch_close(&scratch);
    expect_ratios(&figures, 0.7, 0.9, 1.3, 2.2);
}

static void knows_the_limits(void **state)
{
    (void)state;
    const struct wg_batch_law law = line(0.5, 8);
    struct wg_clock_load load = {.rate = 0, .dispersion = 1, .share = 0.99};
    struct wg_clock_forecast forecast;
    wg__clock_forecast(&law, &load, &forecast);
    check_close(forecast.latency_s, 1, 1e-12);
    assert_true(forecast.busy == 0);
    load.rate = 1e-4; /* so few come that fewer than 1 % wait */
    wg__clock_forecast(&law, &load, &forecast);
    check_close(forecast.latency_s, 1, 1e-12);
    load.rate = 8 / 4.5;
    wg__clock_forecast(&law, &load, &forecast);
    assert_true(forecast.latency_s == HUGE_VAL && forecast.busy == 1);
}

/* Whatever law and load: a number, not below a request's own time, and growing with the rate up to
 * the noise of its parts. */
static void grows_with_the_rate(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 7);
    for (int round = 0; round < 2000; round++) {
        const unsigned size = 1 + wg__rng_below(&rng, 256);
        const struct wg_batch_law law = line(wg__rng_uniform(&rng), size);
        struct wg_clock_load load = {.dispersion =
                                         8 * wg__rng_uniform(&rng) * wg__rng_uniform(&rng),
                                     .margin = 0.3 * wg__rng_uniform(&rng),
                                     .share = wg__rng_below(&rng, 2) ? 0.99 : 0.999};
        double most_s = 0;
        for (int percent = 1; percent < 100; percent++) {
            struct wg_clock_forecast forecast;
            load.rate = 0.01 * percent * size / law.time_s[law.count - 1];
            wg__clock_forecast(&law, &load, &forecast);
            if (!(forecast.latency_s >= law.time_s[0] && forecast.latency_s < 1e9 &&
                  forecast.busy >= 0 && forecast.busy <= 1 && forecast.latency_s >= 0.5 * most_s))
                fail_msg("round %d, %d %%, %u rows: %g s, %g busy; %g s before", round, percent,
                         size, forecast.latency_s, forecast.busy, most_s);
            most_s = fmax(most_s, forecast.latency_s);
        }
    }
}

static void reads_a_law_between_its_points(void **state)
{
    (void)state;
    struct wg_batch_law law;
    wg__batch_law_rows(&law, 8);
    assert_int_equal(law.count, 5);
    for (size_t i = 0; i < law.count; i++)
        law.time_s[i] = law.rows[i] * law.rows[i];
    assert_true(law.rows[0] == 1 && law.rows[4] == 8);
    check_close(wg__batch_law_time(&law, 0), 1, 0);
    check_close(wg__batch_law_time(&law, 9), 64, 0);
    check_close(wg__batch_law_time(&law, 6.5), (25 + 64) / 2.0, 1e-12);
    wg__batch_law_rows(&law, 1);
    assert_int_equal(law.count, 1);
    law.time_s[0] = 3;
    check_close(wg__batch_law_time(&law, 1), 3, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forecasts_p99_of_poisson_arrivals),
        cmocka_unit_test(forecasts_p99_of_even_arrivals),
        cmocka_unit_test(forecasts_p99_of_bursts),
        cmocka_unit_test(knows_the_limits),
        cmocka_unit_test(grows_with_the_rate),
        cmocka_unit_test(reads_a_law_between_its_points),
    };
    return run_tests(tests);
}
