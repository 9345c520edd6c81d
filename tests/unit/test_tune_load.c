/* SPDX-License-Identifier: MIT
 *
 * The load model over measured windows, against closed forms.
 */
#include "live/tune_load.h"

#include <string.h>

#include "live/workload_figures.h"
#include "support/check.h"

static struct wg_workload_sample sample;

static double figure(const char *name)
{
    const struct wg_workload_figure *found = wg__workload_figure_find(&sample, name);
    return found != NULL ? found->value : (double)NAN;
}

static void a_window_shows_time_and_power_of_a_batch(void **state)
{
    (void)state;
    struct wg_tune_load_point point;
    struct wg_error err;
    sample = (struct wg_workload_sample){.time_s = 2, .requests = 400};
    assert_int_equal(wg__tune_load_point(&sample, 8, 1, 300, NAN, &point, &err), WG_OK);
    check_close(point.service_s, 0.04, 1e-12); /* 50 batches in 2 s */
    check_close(point.busy_w, 150, 1e-12);
    assert_true(wg__workload_figure_put(&sample, "service_s", 0.03));
    assert_true(wg__workload_figure_put(&sample, "busy_s", 1.5));
    assert_int_equal(wg__tune_load_point(&sample, 8, 1, 300, NAN, &point, &err), WG_OK);
    check_close(point.service_s, 0.03, 1e-12);
    check_close(point.busy_w, 200, 1e-12);
    assert_int_equal(wg__tune_load_point(&sample, 8, 1, 300, 40, &point, &err), WG_OK);
    check_close(point.busy_w, (300 - 40 * 0.5) / 1.5, 1e-12); /* half a second was idle */
    sample = (struct wg_workload_sample){.time_s = 2, .requests = NAN};
    assert_int_equal(wg__tune_load_point(&sample, 8, 1, 300, NAN, &point, &err), WG_EDATA);
}

/* Even arrivals every 20 ms, 10 ms each: nobody waits, half of the time is idle. */
static void even_arrivals_never_wait(void **state)
{
    (void)state;
    const struct wg_tune_load load = {
        .arrivals = "uniform:50", .requests = 5000, .seed = 1, .idle_w = 40};
    const struct wg_tune_load_point point = {.batch = 1, .service_s = 0.01, .busy_w = 100};
    struct wg_error err;
    bool is_stable = false;
    sample = (struct wg_workload_sample){0};
    assert_int_equal(wg__tune_load_apply(&load, &point, 1, &sample, NULL, &is_stable, &err), WG_OK);
    assert_true(is_stable);
    check_close(figure("p99_s"), 0.01, 1e-9);
    check_close(figure("utilization"), 0.5, 1e-3);
    check_close(figure("energy_per_request_j"), 100 * 0.01 + 40 * 0.01, 1e-3);
}

/* M/D/1 at half load waits 5 ms on average (Pollaczek-Khinchine: rho s / 2 (1 - rho)). */
static void poisson_arrivals_wait_as_theory_says(void **state)
{
    (void)state;
    const struct wg_tune_load load = {
        .arrivals = "poisson:50", .requests = 200000, .seed = 1, .idle_w = 40};
    const struct wg_tune_load_point point = {.batch = 1, .service_s = 0.01, .busy_w = 100};
    struct wg_error err;
    bool is_stable = false;
    sample = (struct wg_workload_sample){0};
    assert_int_equal(wg__tune_load_apply(&load, &point, 1, &sample, NULL, &is_stable, &err), WG_OK);
    check_close(figure("mean_s"), 0.01 + 0.005, 0.02);
    assert_true(figure("p99_s") > 0.03);
}

/* The error that is told is the one that other draws show: p99 of M/D/1 at 0.8, over 40 seeds. */
static void the_error_of_the_draw_is_what_other_draws_show(void **state)
{
    enum { DRAWS = 40 };
    static struct wg_workload_sample drawn;
    const struct wg_tune_load_point point = {.batch = 1, .service_s = 0.1, .busy_w = 100};
    double sum = 0, squares = 0, told = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= DRAWS; seed++) {
        const struct wg_tune_load load = {
            .arrivals = "poisson:8", .requests = 20000, .seed = seed, .idle_w = 30};
        struct wg_error err;
        bool is_stable = false;
        sample = (struct wg_workload_sample){0};
        assert_int_equal(wg__tune_load_apply(&load, &point, 1, &sample, &drawn, &is_stable, &err),
                         WG_OK);
        const double p99_s = figure("p99_s");
        sum += p99_s;
        squares += p99_s * p99_s;
        told += wg__workload_figure_find(&drawn, "p99_s")->error / (double)DRAWS;
        assert_true(wg__workload_figure_find(&drawn, "utilization")->error < 1e-6);
    }
    const double mean = sum / (double)DRAWS;
    const double seen =
        sqrt((squares / (double)DRAWS - mean * mean) * (double)DRAWS / ((double)DRAWS - 1.0)) /
        mean;
    check_close(mean, 1.126, 0.02); /* 400,000 requests of another simulation */
    assert_true(seen > 0.01 && told > seen / 1.6 && told < seen * 1.6);
}

static void more_than_it_can_serve_is_told(void **state)
{
    (void)state;
    const struct wg_tune_load load = {
        .arrivals = "uniform:200", .requests = 2000, .seed = 1, .idle_w = 40};
    const struct wg_tune_load_point points[] = {{1, 0.01, 100}, {4, 0.012, 120}};
    struct wg_error err;
    bool is_stable = true;
    sample = (struct wg_workload_sample){0};
    assert_int_equal(wg__tune_load_apply(&load, points, 1, &sample, NULL, &is_stable, &err), WG_OK);
    assert_false(is_stable);
    assert_int_equal(wg__tune_load_apply(&load, points, 2, &sample, NULL, &is_stable, &err), WG_OK);
    assert_true(is_stable); /* batches of four serve 333 a second */
    assert_true(figure("batch_mean") > 1.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_shows_time_and_power_of_a_batch),
        cmocka_unit_test(even_arrivals_never_wait),
        cmocka_unit_test(poisson_arrivals_wait_as_theory_says),
        cmocka_unit_test(the_error_of_the_draw_is_what_other_draws_show),
        cmocka_unit_test(more_than_it_can_serve_is_told),
    };
    return run_tests(tests);
}
