/* SPDX-License-Identifier: MIT
 *
 * The simulated server against queueing theory, with a scheduler as simple as can be: what is
 * checked is the world and not what decides.
 */
#include "simulate/serving.h"

#include "schedule/load_model.h"
#include "support/arrivals.h"
#include "support/check.h"
#include "support/fifo_scheduler.h"
#include "support/serving_profile.h"

#define EXACT    1e-9
#define NO_SLO_S 1e9

/* Sums of the moments at which requests came and batches ended. */
struct moments {
    double arrived_s, ended_s;
    uint64_t counts[WG_TIMELINE_KIND_COUNT];
    double last_s;
    uint64_t last_waiting, last_slo_ms;
};

static void note_moment(void *context, double at_s, enum wg_timeline_kind kind, uint64_t value)
{
    struct moments *moments = context;
    assert_true(at_s >= moments->last_s);
    moments->last_s = at_s;
    moments->counts[kind]++;
    if (kind == WG_TIMELINE_ARRIVED)
        moments->arrived_s += at_s;
    if (kind == WG_TIMELINE_BATCH_END)
        moments->ended_s += at_s * (double)value;
    if (kind == WG_TIMELINE_QUEUE)
        moments->last_waiting = value;
    if (kind == WG_TIMELINE_SLO)
        moments->last_slo_ms = value;
}

static struct wg_serving_setup make_setup(const struct wg_serving_profile *profile,
                                          double duration_s)
{
    return (struct wg_serving_setup){
        .profile = profile,
        .finetune = WG_FINETUNE_NONE,
        .batcher = WG_BATCHER_NONE,
        .slo_s = NO_SLO_S,
        .duration_s = duration_s,
    };
}

static enum wg_code try_run(const struct wg_serving_setup *setup, const char *text,
                            struct wg_serving_sum *sum, struct wg_histogram *latencies,
                            struct moments *moments, struct wg_error *err)
{
    struct wg_arrivals *arrivals = open_arrivals(text, 11);
    const struct wg_timeline timeline = {note_moment, moments};
    struct wg_rng rng;
    wg__rng_init(&rng, 12);
    const enum wg_code code =
        wg__serving_run(setup, arrivals, &rng, sum, latencies, &timeline, err);
    wg__arrivals_close(arrivals);
    return code;
}

/* What holds for every run. */
static void check_sum(const struct wg_serving_setup *setup, const struct wg_serving_sum *sum,
                      const struct moments *moments)
{
    uint64_t batched = 0;
    uint64_t batches = 0;
    uint64_t answers = 0;
    for (uint64_t rows = 1; rows <= WG_BATCH_ROWS_MAX; rows++) {
        batches += sum->batches[rows];
        batched += rows * sum->batches[rows];
    }
    for (size_t i = 0; i < WG_ANSWER_COUNT; i++)
        answers += sum->answers[i];
    assert_int_equal(answers, sum->dropped);
    assert_int_equal(batched + sum->dropped, sum->requests);
    assert_int_equal(moments->counts[WG_TIMELINE_ARRIVED], sum->requests);
    assert_int_equal(moments->counts[WG_TIMELINE_DROPPED], sum->dropped);
    assert_int_equal(moments->counts[WG_TIMELINE_LATE], sum->late);
    assert_int_equal(moments->counts[WG_TIMELINE_BATCH], batches);
    assert_int_equal(moments->counts[WG_TIMELINE_BATCH_END], batches);
    assert_int_equal(moments->last_waiting, 0);
    assert_true(sum->time_s >= setup->duration_s);
}

static struct wg_serving_sum run(const struct wg_serving_setup *setup, const char *text,
                                 struct wg_histogram *latencies, struct moments *moments)
{
    struct wg_serving_sum sum = {0};
    struct wg_error err = {0};
    struct moments own = {0};
    if (moments == NULL)
        moments = &own;
    if (try_run(setup, text, &sum, latencies, moments, &err) != WG_OK)
        fail_msg("%s", err.text);
    check_sum(setup, &sum, moments);
    return sum;
}

/* D/D/1: nobody waits; energy and time are sums of whole requests. */
static void even_requests_that_never_wait_are_exact(void **state)
{
    (void)state;
    const struct wg_serving_profile profile = make_profile();
    const struct wg_serving_setup setup = make_setup(&profile, 100.0);
    struct wg_histogram latencies;
    assert_true(wg__histogram_init(&latencies));
    const struct wg_serving_sum sum = run(&setup, "uniform:4", &latencies, NULL);
    assert_int_equal(sum.requests, 400);
    assert_int_equal(sum.batches[1], 400);
    assert_int_equal(sum.late + sum.dropped, 0);
    assert_int_equal(sum.events, 800);
    check_close(sum.inference_busy_s, 40.0, EXACT);
    check_close(sum.time_s, 100.0, 0.0);
    check_close(sum.inference_j, 40.0 * 40.0, EXACT);
    check_close(sum.idle_j, 60.0 * 10.0, EXACT);
    check_close(sum.finetune_j + sum.finetune_busy_s + sum.both_busy_s, 0.0, 0.0);
    assert_int_equal(wg__histogram_count(&latencies), 400);
    check_close(wg__histogram_quantile(&latencies, 1.0), 0.1, 1e-3);
    check_close(wg__histogram_quantile(&latencies, 0.0), 0.1, 1e-3);
    wg__histogram_fini(&latencies);
}

/* Mean wait of M/G/1 by Pollaczek and Khinchine: load s (1 + cv^2) / (2 (1 - load)). */
static void one_by_one_they_wait_as_pollaczek_and_khinchine_say(void **state)
{
    (void)state;
    static const double noises[] = {0.0, 0.3, 1.0};
    static const double loads[] = {0.3, 0.6};
    for (size_t i = 0; i < sizeof noises / sizeof *noises; i++) {
        for (size_t k = 0; k < sizeof loads / sizeof *loads; k++) {
            struct wg_serving_profile profile = make_profile();
            profile.noise = noises[i];
            const double duration_s = 6000.0 / loads[k];
            const struct wg_serving_setup setup = make_setup(&profile, duration_s);
            struct moments moments = {0};
            char text[64];
            (void)snprintf(text, sizeof text, "poisson:%.17g", loads[k] / 0.1);
            const struct wg_serving_sum sum = run(&setup, text, NULL, &moments);
            const double n = (double)sum.requests;
            const double mean = (moments.ended_s - moments.arrived_s) / n / 0.1;
            const double wait = loads[k] * (1.0 + noises[i] * noises[i]) / (2.0 * (1.0 - loads[k]));
            /* Of M/M/1, which varies more (Daley 1968). */
            const double a = loads[k];
            const double error =
                sqrt(a * (2.0 + a * (5.0 + a * (a - 4.0))) / pow(1.0 - a, 4.0) / n);
            check_close_abs(mean, 1.0 + wait, 0.0, 4.5 * error);
            check_close(sum.inference_busy_s / duration_s, loads[k], 0.03);
            check_close(sum.inference_j + sum.idle_j,
                        40.0 * sum.inference_busy_s + 10.0 * (sum.time_s - sum.inference_busy_s),
                        EXACT);
        }
    }
}

/* The same law as the load model's: dynamic batching without a delay. */
static void batches_wait_as_in_the_load_model(void **state)
{
    (void)state;
    struct wg_serving_profile profile = make_profile();
    profile.noise = 0.2;
    struct wg_serving_setup setup = make_setup(&profile, 8000.0);
    setup.batcher = WG_BATCHER_TRITON;
    struct wg_histogram latencies;
    assert_true(wg__histogram_init(&latencies));
    const struct wg_serving_sum sum = run(&setup, "poisson:12", &latencies, NULL);
    const struct wg_load_server server = {
        .point_count = 2,
        .batch = {1.0, 8.0},
        .service_s = {0.1, 0.45},
        .busy_power_w = {40.0, 40.0},
        .idle_power_w = 10.0,
        .service_cv = 0.2,
        .max_batch = 8,
        .replicas = 1,
    };
    struct wg_load_result load = {0};
    struct wg_arrivals *arrivals = open_arrivals("poisson:12", 11);
    struct wg_rng rng;
    wg__rng_init(&rng, 77);
    assert_int_equal(wg__load_simulate(&server, arrivals, 200000, &rng, &load, NULL), WG_OK);
    check_close(wg__histogram_quantile(&latencies, 0.5), load.p50_s, 0.02);
    check_close(wg__histogram_quantile(&latencies, 0.95), load.p95_s, 0.02);
    check_close(wg__histogram_quantile(&latencies, 0.99), load.p99_s, 0.03);
    check_close(sum.inference_busy_s / sum.time_s, load.utilization, 0.01);
    check_close((sum.inference_j + sum.idle_j) / (double)sum.requests, load.energy_per_request_j,
                0.01);
    wg__arrivals_close(arrivals);
    wg__histogram_fini(&latencies);
}

/* Both always run, each at half speed: half of the GPU is fine-tuning's, and half of the energy. */
static void two_that_fill_the_gpu_get_half_each(void **state)
{
    (void)state;
    const struct wg_serving_profile profile = make_profile();
    struct wg_serving_setup setup = make_setup(&profile, 300.0);
    setup.batcher = WG_BATCHER_TRITON;
    setup.finetune = WG_FINETUNE_GREEDY;
    setup.has_job = true;
    setup.job = (struct wg_finetune_job){.id = 1, .batch = 8, .iterations = UINT64_MAX};
    const struct wg_serving_sum sum = run(&setup, "uniform:20", NULL, NULL);
    check_close(sum.finetune_work_s / sum.finetune_time_s, 0.5, 1e-3);
    check_close(sum.finetune_busy_s, 300.0, EXACT);
    check_close(sum.finetune_rows, 8.0 * 150.0 / 0.11, 0.01);
    check_close(sum.finetune_time_s, 300.0, 0.0);
    /* What is left when the requests end is served alone. */
    const double alone_s = sum.time_s - sum.both_busy_s;
    check_close(sum.inference_j - 40.0 * alone_s, 44.0 * sum.both_busy_s / 2.0, 0.001);
    check_close(sum.finetune_j, 44.0 * sum.both_busy_s / 2.0, 0.001);
    check_close_abs(sum.finetune_tail_s, 0.0, 0.0, 0.22);
    check_close_abs(sum.idle_j, 0.0, 0.0, EXACT);
}

/* A job of 3 iterations (.11 s alone) beside requests of .1 s at 0, .25, .5 ...: .0 to .2 beside
 * the first request, when .1 of work is done; .01 more, so the first iteration ends at .21, the
 * second has .04 alone until .25 and .07 beside, 0.14 s, until .39; the third has .06 s of .11
 * beside until .45 (the request has .03 left at .39), .05 until .5 alone: .08 done, .03 beside:
 * .56. */
static void a_job_ends_when_its_work_is_done(void **state)
{
    (void)state;
    const struct wg_serving_profile profile = make_profile();
    struct wg_serving_setup setup = make_setup(&profile, 10.0);
    setup.finetune = WG_FINETUNE_GREEDY;
    setup.has_job = true;
    setup.job = (struct wg_finetune_job){.id = 1, .batch = 8, .iterations = 3};
    const struct wg_serving_sum sum = run(&setup, "uniform:4", NULL, NULL);
    assert_int_equal(sum.jobs_finished, 1);
    check_close(sum.finished_s, 0.56, EXACT);
    check_close(sum.finetune_time_s, 0.56, EXACT);
    check_close(sum.finetune_busy_s, 0.56, EXACT);
    check_close(sum.finetune_work_s, 0.33, EXACT);
    check_close(sum.finetune_rows, 24.0, 0.0);
}

/* The policy `none` leaves the job alone; its time counts all the same. */
static void without_fine_tuning_the_job_waits(void **state)
{
    (void)state;
    const struct wg_serving_profile profile = make_profile();
    struct wg_serving_setup setup = make_setup(&profile, 10.0);
    setup.has_job = true;
    setup.job = (struct wg_finetune_job){.id = 1, .batch = 8, .iterations = 3};
    const struct wg_serving_sum sum = run(&setup, "uniform:4", NULL, NULL);
    assert_int_equal(sum.jobs_finished, 0);
    check_close(sum.finetune_busy_s + sum.finetune_rows, 0.0, 0.0);
    check_close(sum.finetune_time_s, 10.0, 0.0);
}

/* All at once: 100 requests within a millisecond of .1 s each; those that have waited for longer
 * than the SLO when their turn comes are dropped, the last that began in time is late. */
static void late_and_dropped_are_counted(void **state)
{
    (void)state;
    const struct wg_serving_profile profile = make_profile();
    struct wg_serving_setup setup = make_setup(&profile, 0.001);
    setup.slo_s = 1.05;
    const struct wg_serving_sum sum = run(&setup, "uniform:100000", NULL, NULL);
    assert_int_equal(sum.requests, 100);
    assert_int_equal(sum.dropped, 89); /* begun at 0, .1, .. 1.0 */
    assert_int_equal(sum.answers[WG_ANSWER_PAST], 89);
    assert_int_equal(sum.late, 1);
    check_close(sum.time_s, 1.1, EXACT);
}

static void a_new_slo_holds_from_its_moment(void **state)
{
    (void)state;
    const struct wg_serving_profile profile = make_profile();
    struct wg_serving_setup setup = make_setup(&profile, 30.0);
    struct moments moments = {0};
    setup.slo_s = 0.2;
    setup.change_count = 2;
    setup.changes[0] = (struct wg_slo_change){10.0, 0.05};
    setup.changes[1] = (struct wg_slo_change){20.0, 0.25};
    const struct wg_serving_sum sum = run(&setup, "uniform:5", NULL, &moments);
    assert_int_equal(sum.late, 50);
    assert_int_equal(moments.counts[WG_TIMELINE_SLO], 2);
    assert_int_equal(moments.last_slo_ms, 250);
}

/* Requests of .1 s at rung 0, .15 at rung 1; the clocks change .02 s after each begin, to the other
 * rung: from 0 to 1: .02 + .08 * 1.5 = .14; from 1 to 0: .02 + (.13 / .15) * .1. */
static void a_change_of_clocks_acts_in_the_middle(void **state)
{
    (void)state;
    const struct wg_serving_profile profile = make_profile();
    struct wg_serving_setup setup = make_setup(&profile, 20.0);
    setup.clocks = WG_CLOCKS_GOVERNED;
    fifo_rungs = 2;
    struct moments moments = {0};
    const struct wg_serving_sum sum = run(&setup, "uniform:5", NULL, &moments);
    fifo_rungs = 0;
    const double down_s = 0.02 + 0.08 * 1.5;
    const double up_s = 0.02 + 0.13 / 1.5;
    assert_int_equal(sum.clock_changes, 100);
    assert_int_equal(moments.counts[WG_TIMELINE_CLOCKS], 100);
    check_close(sum.inference_busy_s, 50.0 * (down_s + up_s), EXACT);
    /* Going down: .02 s at 40 W, the rest at 20 W; up: the other way round. */
    const double joules = 50.0 * (0.02 * 40.0 + (down_s - 0.02) * 20.0) +
                          50.0 * (0.02 * 20.0 + (up_s - 0.02) * 40.0) + 100.0 * 0.5;
    check_close(sum.inference_j, joules, EXACT);
    check_close(sum.idle_j, 50.0 * ((0.2 - down_s) * 8.0 + (0.2 - up_s) * 10.0), EXACT);
}

static void expect_failure(enum fifo_fault fault, const char *expected)
{
    const struct wg_serving_profile profile = make_profile();
    struct wg_serving_setup setup = make_setup(&profile, 30.0);
    struct wg_serving_sum sum = {0};
    struct moments moments = {0};
    struct wg_error err = {0};
    setup.batcher = WG_BATCHER_TRITON;
    fifo_fault = fault;
    const enum wg_code code = try_run(&setup, "poisson:12", &sum, NULL, &moments, &err);
    fifo_fault = FIFO_GOOD;
    assert_int_equal(code, WG_ESTATE);
    assert_int_equal(sum.requests, 0);
    if (strstr(err.text, expected) == NULL)
        fail_msg("%s", err.text);
}

static void a_scheduler_that_loses_requests_is_found(void **state)
{
    (void)state;
    expect_failure(FIFO_LOSES, "sleeps over");
    expect_failure(FIFO_SLEEPS, "sleeps over");
    expect_failure(FIFO_NEVER_SLEEPS, "never sleeps");
    expect_failure(FIFO_DOUBLES, "twice");
}

static void expect_refused(const struct wg_serving_setup *setup, const char *expected)
{
    struct wg_serving_sum sum = {0};
    struct moments moments = {0};
    struct wg_error err = {0};
    assert_int_equal(try_run(setup, "uniform:1", &sum, NULL, &moments, &err), WG_EINVAL);
    if (strstr(err.text, expected) == NULL)
        fail_msg("%s", err.text);
}

#define REFUSED(field, value, expected)                                                            \
    do {                                                                                           \
        struct wg_serving_setup wrong = make_setup(&profile, 1.0);                                 \
        wrong.change_count = 1;                                                                    \
        wrong.changes[0] = (struct wg_slo_change){0.5, 0.5};                                       \
        wrong.has_job = true;                                                                      \
        wrong.job = (struct wg_finetune_job){1, 8, 10};                                            \
        wrong.field = (value);                                                                     \
        expect_refused(&wrong, expected);                                                          \
    } while (0)

static void a_wrong_setup_is_refused(void **state)
{
    (void)state;
    const struct wg_serving_profile profile = make_profile();
    struct wg_serving_profile other = make_profile();
    REFUSED(slo_s, 0.0, "SLO of 0 s");
    REFUSED(duration_s, (double)NAN, "duration");
    REFUSED(rung, 2, "rung 2");
    REFUSED(change_count, WG_SLO_CHANGES_MAX + 1, "changes");
    REFUSED(changes[0].at_s, -1.0, "SLO change 0 at");
    REFUSED(changes[0].slo_s, -1.0, "SLO change 0 to");
    REFUSED(job.batch, 0, "batch 0");
    REFUSED(job.iterations, 0, "0 iterations");
    other.has_finetune = false;
    REFUSED(believed, &other, "does not tell of its steps");
    other.noise = -1.0;
    REFUSED(believed, &other, "noise");
    other = make_profile();
    other.ladder.count = 1;
    REFUSED(believed, &other, "believed profile has 1 rungs");
    other = make_profile();
    other.max_batch = 9;
    REFUSED(believed, &other, "batches up to 9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_requests_that_never_wait_are_exact),
        cmocka_unit_test(one_by_one_they_wait_as_pollaczek_and_khinchine_say),
        cmocka_unit_test(batches_wait_as_in_the_load_model),
        cmocka_unit_test(two_that_fill_the_gpu_get_half_each),
        cmocka_unit_test(a_job_ends_when_its_work_is_done),
        cmocka_unit_test(without_fine_tuning_the_job_waits),
        cmocka_unit_test(late_and_dropped_are_counted),
        cmocka_unit_test(a_new_slo_holds_from_its_moment),
        cmocka_unit_test(a_change_of_clocks_acts_in_the_middle),
        cmocka_unit_test(a_scheduler_that_loses_requests_is_found),
        cmocka_unit_test(a_wrong_setup_is_refused),
    };
    return run_tests(tests);
}
