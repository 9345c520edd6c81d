/* SPDX-License-Identifier: MIT
 *
 * The scheduler in the simulated world: queueing theory again, what each policy must do, and runs
 * of random profiles in which nothing may be lost.
 */
#include "simulate/serving.h"

#include <string.h>

#include "base/alloc.h"
#include "schedule/load_model.h"
#include "support/arrivals.h"
#include "support/check.h"
#include "support/serving_profile.h"

#define EXACT    1e-9
#define NO_SLO_S 1e6

/* What holds for every run: each request is in a batch or dropped, time and energy add up. */
static void check_sum(const struct wg_serving_setup *setup, const struct wg_serving_sum *sum)
{
    uint64_t batched = 0;
    uint64_t answers = 0;
    for (uint64_t rows = 1; rows <= WG_BATCH_ROWS_MAX; rows++)
        batched += rows * sum->batches[rows];
    for (size_t i = 0; i < WG_ANSWER_COUNT; i++)
        answers += sum->answers[i];
    assert_int_equal(answers, sum->dropped);
    assert_int_equal(batched + sum->dropped, sum->requests);
    assert_true(sum->time_s >= setup->duration_s);
    const double busy_s =
        sum->inference_busy_s + sum->finetune_busy_s + sum->finetune_tail_s - sum->both_busy_s;
    assert_true(busy_s <= sum->time_s * (1.0 + EXACT));
    if (setup->clocks == WG_CLOCKS_GOVERNED)
        return;
    const struct wg_rung *rung = &setup->profile->ladder.rungs[setup->rung];
    const double joules =
        rung->idle_power_w * (sum->time_s - busy_s) +
        rung->busy_power_w * (sum->inference_busy_s - sum->both_busy_s) +
        rung->finetune_power_w * (sum->finetune_busy_s + sum->finetune_tail_s - sum->both_busy_s) +
        fmax(rung->busy_power_w, rung->finetune_power_w) * sum->both_busy_s;
    check_close(sum->inference_j + sum->finetune_j + sum->idle_j, joules, EXACT);
}

static struct wg_serving_sum run(const struct wg_serving_setup *setup, const char *text,
                                 uint64_t seed, struct wg_histogram *latencies)
{
    struct wg_serving_sum sum = {0};
    struct wg_error err = {0};
    struct wg_arrivals *arrivals = open_arrivals(text, seed);
    struct wg_rng rng;
    wg__rng_init(&rng, seed + 1000);
    if (wg__serving_run(setup, arrivals, &rng, &sum, latencies, NULL, &err) != WG_OK)
        fail_msg("%s", err.text);
    wg__arrivals_close(arrivals);
    check_sum(setup, &sum);
    return sum;
}

static struct wg_serving_setup make_setup(const struct wg_serving_profile *profile,
                                          double duration_s)
{
    return (struct wg_serving_setup){
        .profile = profile,
        .finetune = WG_FINETUNE_NONE,
        .batcher = WG_BATCHER_NONE,
        .slo_s = NO_SLO_S,
        .queue_capacity = 4096,
        .duration_s = duration_s,
    };
}

static double violations(const struct wg_serving_sum *sum)
{
    return (double)(sum->late + sum->dropped) / (double)sum->requests;
}

/* One by one and in batches, without a deadline: the same law as the load model's, which needs no
 * events. */
static void requests_wait_as_in_the_load_model(void **state)
{
    (void)state;
    static const enum wg_batcher_kind kinds[] = {WG_BATCHER_NONE, WG_BATCHER_TRITON};
    for (size_t i = 0; i < 2; i++) {
        const struct wg_serving_profile profile = make_profile();
        struct wg_serving_setup setup = make_setup(&profile, 10000.0);
        const bool is_single = kinds[i] == WG_BATCHER_NONE;
        const char *text = is_single ? "poisson:6" : "poisson:12";
        struct wg_histogram latencies;
        setup.batcher = kinds[i];
        assert_true(wg__histogram_init(&latencies));
        const struct wg_serving_sum sum = run(&setup, text, 5, &latencies);
        const struct wg_load_server server = {
            .point_count = is_single ? 1 : 2,
            .batch = {1.0, 8.0},
            .service_s = {0.1, 0.45},
            .busy_power_w = {40.0, 40.0},
            .idle_power_w = 10.0,
            .max_batch = is_single ? 1 : 8,
            .replicas = 1,
        };
        struct wg_load_result load = {0};
        struct wg_arrivals *arrivals = open_arrivals(text, 5);
        struct wg_rng rng;
        wg__rng_init(&rng, 77);
        assert_int_equal(
            wg__load_simulate(&server, arrivals, (size_t)sum.requests * 9 / 10, &rng, &load, NULL),
            WG_OK);
        assert_int_equal(sum.late + sum.dropped, 0);
        check_close(wg__histogram_quantile(&latencies, 0.5), load.p50_s, 0.02);
        check_close(wg__histogram_quantile(&latencies, 0.95), load.p95_s, 0.02);
        check_close(wg__histogram_quantile(&latencies, 0.99), load.p99_s, 0.03);
        wg__arrivals_close(arrivals);
        wg__histogram_fini(&latencies);
    }
}

/* The load is more than the GPU serves, requests are dropped, and a job runs beside without end. */
static void greedy_fine_tuning_takes_half_of_a_full_gpu(void **state)
{
    (void)state;
    const struct wg_serving_profile profile = make_profile();
    struct wg_serving_setup setup = make_setup(&profile, 300.0);
    setup.batcher = WG_BATCHER_TRITON;
    setup.finetune = WG_FINETUNE_GREEDY;
    setup.slo_s = 1.0;
    setup.has_job = true;
    setup.job = (struct wg_finetune_job){.id = 1, .batch = 8, .iterations = UINT64_MAX};
    const struct wg_serving_sum sum = run(&setup, "poisson:20", 6, NULL);
    check_close(sum.finetune_work_s / sum.finetune_time_s, 0.5, 0.01);
    assert_true(sum.inference_busy_s / sum.time_s > 0.98);
}

/* An iteration takes .63 s, twice the SLO, and there is always another one. */
static struct wg_serving_setup make_busy_setup(const struct wg_serving_profile *profile,
                                               enum wg_finetune_policy policy, double slo_s)
{
    struct wg_serving_setup setup = make_setup(profile, 400.0);
    const bool is_ours = policy == WG_FINETUNE_WATTGOV;
    setup.finetune = policy;
    setup.batcher = is_ours ? WG_BATCHER_WATTGOV : WG_BATCHER_TRITON;
    setup.slo_s = slo_s;
    setup.has_job = true;
    setup.job = (struct wg_finetune_job){.id = 1, .batch = 60, .iterations = UINT64_MAX};
    return setup;
}

/* A run has 2400 requests, of which chance alone makes some ten more or fewer late: it takes
 * several to tell .3 points. Measured here: none 1.0 %, wattgov 1.1 % at half of the GPU, the
 * others 72 and 47 %. */
static void wattgov_fine_tunes_without_being_late(void **state)
{
    (void)state;
    struct wg_serving_profile profile = make_profile();
    enum { RUNS = 20 };
    double rates[WG_FINETUNE_COUNT] = {0};
    double shares[WG_FINETUNE_COUNT] = {0};
    profile.noise = 0.03;
    for (enum wg_finetune_policy policy = 0; policy < WG_FINETUNE_COUNT; policy++) {
        const struct wg_serving_setup setup = make_busy_setup(&profile, policy, 0.35);
        struct wg_serving_sum sum = {0};
        for (uint64_t seed = 7; seed < 7 + RUNS; seed++) {
            const struct wg_serving_sum one = run(&setup, "poisson:6", seed, NULL);
            wg__serving_sum_add(&sum, &one);
        }
        rates[policy] = violations(&sum);
        shares[policy] = sum.finetune_work_s / sum.finetune_time_s;
    }
    check_close(shares[WG_FINETUNE_NONE], 0.0, 0.0);
    assert_true(shares[WG_FINETUNE_GREEDY] > 0.4);
    assert_true(shares[WG_FINETUNE_WATTGOV] > 0.3);
    assert_true(rates[WG_FINETUNE_GREEDY] > 0.1);
    assert_true(rates[WG_FINETUNE_WATTGOV] < rates[WG_FINETUNE_POLYTHROTTLE] / 5.0);
    assert_true(rates[WG_FINETUNE_WATTGOV] < rates[WG_FINETUNE_NONE] + 0.003);
}

/* Violations of ten runs from `from_s` to `to_s`, each begun with a profile whose times are those
 * of the true one times `factor`. */
static double violations_between(double factor, double from_s, double to_s)
{
    struct wg_serving_profile profile = make_profile();
    profile.noise = 0.03;
    struct wg_serving_profile believed = profile;
    believed.latency.fixed_s *= factor;
    believed.latency.per_row_s *= factor;
    believed.step_fixed_s *= factor;
    believed.step_per_row_s *= factor;
    believed.update_s *= factor;
    struct wg_serving_setup setup = make_busy_setup(&profile, WG_FINETUNE_WATTGOV, 0.3);
    setup.believed = &believed;
    struct wg_serving_sum begin = {0};
    struct wg_serving_sum whole = {0};
    for (uint64_t seed = 1; seed <= 10; seed++) {
        if (from_s > 0.0) {
            setup.duration_s = from_s;
            const struct wg_serving_sum sum = run(&setup, "poisson:8", seed, NULL);
            wg__serving_sum_add(&begin, &sum);
        }
        setup.duration_s = to_s;
        const struct wg_serving_sum sum = run(&setup, "poisson:8", seed, NULL);
        wg__serving_sum_add(&whole, &sum);
    }
    return (double)(whole.late + whole.dropped - begin.late - begin.dropped) /
           (double)(whole.requests - begin.requests);
}

/* Batches hold two requests here: 200 of them are over after some 50 s. Measured: times told 30 %
 * too short cost 7.8 % instead of 4.2 % in the first 20 s, and nothing behind 60 s. */
static void a_wrong_profile_is_corrected_while_it_runs(void **state)
{
    (void)state;
    assert_true(violations_between(0.7, 0.0, 20.0) > violations_between(1.0, 0.0, 20.0) + 0.01);
    const double right = violations_between(1.0, 60.0, 160.0);
    check_close_abs(violations_between(0.7, 60.0, 160.0), right, 0.0, 0.006);
    check_close_abs(violations_between(1.3, 60.0, 160.0), right, 0.0, 0.006);
}

static double uniform(struct wg_rng *rng, double low, double high)
{
    return low + (high - low) * wg__rng_uniform(rng);
}

static struct wg_serving_profile random_profile(struct wg_rng *rng)
{
    struct wg_serving_profile profile = make_profile();
    profile.max_batch = 1 + wg__rng_below(rng, 32);
    profile.latency.fixed_s = uniform(rng, 0.0, 0.1);
    profile.latency.per_row_s = uniform(rng, 0.001, 0.1);
    profile.gpu_share = uniform(rng, 0.0, 0.7);
    profile.noise = wg__rng_below(rng, 2) == 0 ? 0.0 : uniform(rng, 0.0, 1.0);
    profile.step_fixed_s = uniform(rng, 0.0, 0.05);
    profile.step_per_row_s = uniform(rng, 0.001, 0.05);
    profile.update_s = uniform(rng, 0.0, 0.1);
    profile.inference_slowdown = uniform(rng, 1.0, 3.0);
    profile.finetune_slowdown = uniform(rng, 1.0, 3.0);
    profile.ladder.rungs[1].gpu_clock = uniform(rng, 0.2, 1.0);
    profile.ladder.change_s = uniform(rng, 0.0, 0.1);
    return profile;
}

/* wg__serving_run refuses to end with a request that was lost or answered twice. */
static void nothing_is_lost_in_random_worlds(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 8);
    for (unsigned round = 0; round < 200; round++) {
        const struct wg_serving_profile profile = random_profile(&rng);
        struct wg_serving_profile believed = profile;
        believed.latency.per_row_s *= uniform(&rng, 0.5, 2.0);
        believed.step_per_row_s *= uniform(&rng, 0.5, 2.0);
        struct wg_serving_setup setup = make_setup(&profile, uniform(&rng, 1.0, 30.0));
        setup.believed = &believed;
        setup.finetune = wg__rng_below(&rng, WG_FINETUNE_COUNT);
        setup.batcher = wg__rng_below(&rng, WG_BATCHER_COUNT);
        setup.drop = wg__rng_below(&rng, WG_DROP_COUNT);
        setup.batch_delay_s = wg__rng_below(&rng, 2) == 0 ? 0.0 : uniform(&rng, 0.0, 0.1);
        setup.clocks = wg__rng_below(&rng, 2) == 0 ? WG_CLOCKS_FIXED : WG_CLOCKS_GOVERNED;
        setup.rung = wg__rng_below(&rng, 2);
        setup.queue_capacity = 1 + wg__rng_below(&rng, 100);
        setup.slo_s = uniform(&rng, 0.02, 2.0);
        setup.change_count = wg__rng_below(&rng, 3);
        for (size_t i = 0; i < setup.change_count; i++)
            setup.changes[i] =
                (struct wg_slo_change){(double)(i + 1) * 5.0, uniform(&rng, 0.02, 2.0)};
        setup.has_job = wg__rng_below(&rng, 4) > 0;
        setup.job = (struct wg_finetune_job){.id = 1,
                                             .batch = 1 + wg__rng_below(&rng, 64),
                                             .iterations = 1 + wg__rng_below(&rng, 20)};
        char text[64];
        (void)snprintf(text, sizeof text, "poisson:%.17g", uniform(&rng, 0.5, 100.0));
        (void)run(&setup, text, round, NULL);
    }
}

static void survives_every_failing_allocation(void **state)
{
    (void)state;
    const struct wg_serving_profile profile = make_profile();
    struct wg_serving_setup setup = make_busy_setup(&profile, WG_FINETUNE_WATTGOV, 0.5);
    struct wg_arrivals *arrivals = open_arrivals("poisson:6", 1);
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    setup.duration_s = 2.0;
    enum wg_code code = WG_ENOMEM;
    for (size_t nth = 1; code != WG_OK; nth++) {
        struct wg_serving_sum sum = {0};
        assert_true(nth < 100);
        wg__arrivals_restart(arrivals, &rng);
        wg__alloc_fail_from(nth);
        code = wg__serving_run(&setup, arrivals, &rng, &sum, NULL, NULL, NULL);
        wg__alloc_fail_from(0);
        assert_true(code == WG_OK || code == WG_ENOMEM);
        assert_int_equal(sum.runs, code == WG_OK);
    }
    /* Nothing is allocated while it runs: a longer run has as many allocations. */
    const size_t count = wg__alloc_count();
    setup.duration_s = 20.0;
    struct wg_serving_sum sum = {0};
    wg__arrivals_restart(arrivals, &rng);
    assert_int_equal(wg__serving_run(&setup, arrivals, &rng, &sum, NULL, NULL, NULL), WG_OK);
    const size_t longer = wg__alloc_count() - count;
    setup.duration_s = 2.0;
    wg__arrivals_restart(arrivals, &rng);
    assert_int_equal(wg__serving_run(&setup, arrivals, &rng, &sum, NULL, NULL, NULL), WG_OK);
    assert_int_equal(wg__alloc_count() - count, 2 * longer);
    wg__arrivals_close(arrivals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_wait_as_in_the_load_model),
        cmocka_unit_test(greedy_fine_tuning_takes_half_of_a_full_gpu),
        cmocka_unit_test(wattgov_fine_tunes_without_being_late),
        cmocka_unit_test(a_wrong_profile_is_corrected_while_it_runs),
        cmocka_unit_test(nothing_is_lost_in_random_worlds),
        cmocka_unit_test(survives_every_failing_allocation),
    };
    return run_tests(tests);
}
