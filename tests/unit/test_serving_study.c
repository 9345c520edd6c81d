/* SPDX-License-Identifier: MIT
 *
 * Serving studies: sums against their runs, intervals, processes. The scheduler is one of first
 * come, first served.
 */
#include "simulate/serving_study.h"

#include "simulate/workers.h"
#include "support/check.h"
#include "support/fifo_scheduler.h"
#include "support/scratch.h"
#include "support/serving_profile.h"

enum { LAWS = 3, POLICIES = 2, SEEDS = 70, BURST_S = 40 };

struct fixture {
    struct wg_serving_profile profile;
    struct scratch scratch;
    char trace[1100];
    struct wg_serving_study_request request;
};

/* A trace of lulls and bursts: runs of 5 s see one or the other. */
static void open_fixture(struct fixture *fixture)
{
    char text[1024] = "count\n";
    size_t length = strlen(text);
    for (unsigned second = 0; second < BURST_S; second++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%u\n",
                                   second < BURST_S / 2 ? 2 : 12);
    scratch_open(&fixture->scratch);
    scratch_write(scratch_path(&fixture->scratch, "t.csv"), text, length);
    (void)snprintf(fixture->trace, sizeof fixture->trace, "trace:%s", fixture->scratch.path);
    fixture->profile = make_profile();
    fixture->profile.noise = 0.1;
    fixture->request = (struct wg_serving_study_request){
        .base = {.profile = &fixture->profile,
                 .slo_s = 0.3,
                 .has_job = true,
                 .job = {.id = 1, .batch = 8, .iterations = 5},
                 .duration_s = 5.0},
        .policy_count = POLICIES,
        .policies = {{"none", WG_FINETUNE_NONE, WG_BATCHER_TRITON, WG_DROP_STANDARD},
                     {"greedy", WG_FINETUNE_GREEDY, WG_BATCHER_TRITON, WG_DROP_STANDARD}},
        .law_count = LAWS,
        .laws = {"uniform:8", "poisson:8", fixture->trace},
        .first_seed = 3,
        .seeds = SEEDS,
        .processes = 1,
    };
}

static void close_fixture(struct fixture *fixture)
{
    scratch_close(&fixture->scratch);
}

static struct wg_serving_study *run_study(const struct wg_serving_study_request *request)
{
    struct wg_serving_study *study = NULL;
    struct wg_error err = {0};
    if (wg__serving_study_run(request, &study, &err) != WG_OK)
        fail_msg("%s", err.text);
    return study;
}

/* Residuals of the ratio, run by run. */
static void check_cell(const struct fixture *fixture, const struct wg_serving_cell *cell)
{
    const struct wg_serving_study_request *request = &fixture->request;
    struct wg_serving_sum whole = {0};
    double squares = 0.0;
    for (uint64_t seed = 3; seed < 3 + SEEDS; seed++) {
        struct wg_serving_sum sum = {0};
        assert_int_equal(
            wg__serving_study_rerun(request, cell->policy, cell->law, seed, NULL, &sum, NULL),
            WG_OK);
        const double v = (double)(sum.late + sum.dropped);
        const double residual = v - cell->violation_rate * (double)sum.requests;
        squares += residual * residual;
        wg__serving_sum_add(&whole, &sum);
    }
    assert_int_equal(whole.requests, cell->sum.requests);
    assert_int_equal(whole.late, cell->sum.late);
    assert_int_equal(whole.dropped, cell->sum.dropped);
    assert_int_equal(whole.events, cell->sum.events);
    assert_int_equal(whole.jobs_finished, cell->sum.jobs_finished);
    check_close(whole.time_s, cell->sum.time_s, 1e-12);
    check_close(whole.inference_j, cell->sum.inference_j, 1e-12);
    const double mean_n = (double)whole.requests / (double)SEEDS;
    const double half =
        1.994945 * sqrt(squares / ((double)SEEDS * ((double)SEEDS - 1.0))) / mean_n; /* t of 69 */
    check_close_abs(cell->seeds95[0], fmax(0.0, cell->violation_rate - half), 1e-5, 1e-7);
    check_close_abs(cell->seeds95[1], fmin(1.0, cell->violation_rate + half), 1e-5, 1e-7);
}

static void cells_are_the_sums_of_their_runs(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    struct wg_serving_study *study = run_study(&fixture.request);
    assert_int_equal(study->cell_count, LAWS * POLICIES);
    for (size_t i = 0; i < study->cell_count; i++) {
        const struct wg_serving_cell *cell = &study->cells[i];
        assert_int_equal(cell->law, i / POLICIES);
        assert_int_equal(cell->policy, i % POLICIES);
        assert_int_equal(cell->sum.runs, SEEDS);
        assert_true(cell->p50_s <= cell->p95_s && cell->p95_s <= cell->p99_s);
        assert_true(cell->wilson95[0] <= cell->violation_rate &&
                    cell->violation_rate <= cell->wilson95[1]);
        check_cell(&fixture, cell);
    }
    check_close(study->cells[0].rate, 8.0, 0.0);
    check_close(study->cells[4].rate, 7.0, 1e-12);
    assert_true(study->events_per_s > study->requests_per_s && study->requests_per_s > 0.0);
    wg__serving_study_free(study);
    close_fixture(&fixture);
}

static void all_policies_meet_the_same_requests(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    fixture.request.policies[1] = fixture.request.policies[0];
    struct wg_serving_study *study = run_study(&fixture.request);
    for (size_t law = 0; law < LAWS; law++) {
        const struct wg_serving_cell *cell = &study->cells[law * POLICIES];
        assert_memory_equal(&cell[0].sum, &cell[1].sum, sizeof cell->sum);
        assert_memory_equal(&cell[0].p99_s, &cell[1].p99_s, sizeof cell->p99_s);
    }
    wg__serving_study_free(study);
    close_fixture(&fixture);
}

/* Runs of a trace begin in a lull or in a burst: they differ more than their requests tell. */
static void runs_of_a_bursty_trace_differ_more_than_wilson_knows(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    struct wg_serving_study *study = run_study(&fixture.request);
    const struct wg_serving_cell *bursty = &study->cells[study->cell_count - POLICIES];
    const double wilson = bursty->wilson95[1] - bursty->wilson95[0];
    assert_true(bursty->seeds95[1] - bursty->seeds95[0] > 1.5 * wilson);
    wg__serving_study_free(study);
    close_fixture(&fixture);
}

static void results_do_not_depend_on_the_processes(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    struct wg_serving_study *one = run_study(&fixture.request);
    fixture.request.processes = 3;
    struct wg_serving_study *three = run_study(&fixture.request);
    assert_memory_equal(one->cells, three->cells, one->cell_count * sizeof *one->cells);
    wg__serving_study_free(three);
    fixture.request.first_seed = 4;
    struct wg_serving_study *other = run_study(&fixture.request);
    assert_true(other->cells[2].sum.late != one->cells[2].sum.late ||
                other->cells[2].sum.time_s != one->cells[2].sum.time_s);
    wg__serving_study_free(other);
    wg__serving_study_free(one);
    close_fixture(&fixture);
}

static void a_single_run_says_nothing_of_runs(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    fixture.request.seeds = 1;
    struct wg_serving_study *study = run_study(&fixture.request);
    assert_true(isnan(study->cells[0].seeds95[0]) && isnan(study->cells[0].seeds95[1]));
    wg__serving_study_free(study);
    fixture.request.laws[0] = "poisson:0.001"; /* nobody comes in 5 s */
    study = run_study(&fixture.request);
    assert_int_equal(study->cells[0].sum.requests, 0);
    assert_true(isnan(study->cells[0].violation_rate) && isnan(study->cells[0].p50_s));
    wg__serving_study_free(study);
    close_fixture(&fixture);
}

struct counter {
    size_t tasks, done;
};

static void start_counter(void *context, size_t tasks)
{
    ((struct counter *)context)->tasks = tasks;
}

static void count_one(void *context)
{
    ((struct counter *)context)->done++;
}

static void progress_counts_all_tasks(void **state)
{
    (void)state;
    struct fixture fixture;
    struct counter counter = {0};
    open_fixture(&fixture);
    fixture.request.started = start_counter;
    fixture.request.progress = count_one;
    fixture.request.progress_context = &counter;
    fixture.request.processes = 2;
    wg__serving_study_free(run_study(&fixture.request));
    assert_int_equal(counter.tasks, 35 * LAWS * POLICIES); /* blocks of two seeds */
    assert_int_equal(counter.done, counter.tasks);
    close_fixture(&fixture);
}

static void expect_refused(const struct wg_serving_study_request *request, enum wg_code expected,
                           const char *text)
{
    struct wg_serving_study *study = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__serving_study_run(request, &study, &err), expected);
    assert_null(study);
    if (strstr(err.text, text) == NULL)
        fail_msg("%s", err.text);
}

#define REFUSED(field, value, text)                                                                \
    do {                                                                                           \
        struct wg_serving_study_request wrong = fixture.request;                                   \
        wrong.field = (value);                                                                     \
        expect_refused(&wrong, WG_EINVAL, text);                                                   \
    } while (0)

static void a_wrong_request_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    struct wg_serving_sum sum = {0};
    open_fixture(&fixture);
    REFUSED(policy_count, 0, "0 policies");
    REFUSED(policy_count, WG_SERVING_POLICIES_MAX + 1, "policies");
    REFUSED(law_count, 0, "0 arrival laws");
    REFUSED(law_count, WG_SERVING_LAWS_MAX + 1, "arrival laws");
    REFUSED(seeds, 0, "0 seeds");
    REFUSED(seeds, WG_SERVING_SEEDS_MAX + 1, "seeds");
    REFUSED(processes, 0, "0 processes");
    REFUSED(processes, WG_WORKERS_MAX + 1, "processes");
    REFUSED(base.slo_s, -1.0, "SLO");
    REFUSED(laws[1], "poison:8", "poison:8");
    assert_int_equal(wg__serving_study_rerun(&fixture.request, POLICIES, 0, 1, NULL, &sum, NULL),
                     WG_EINVAL);
    close_fixture(&fixture);
}

static void survives_every_failing_allocation(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    fixture.request.seeds = 1;
    enum wg_code code = WG_ENOMEM;
    for (size_t nth = 1; code != WG_OK; nth++) {
        struct wg_serving_study *study = NULL;
        struct wg_error err = {0};
        assert_true(nth < 100);
        wg__alloc_fail_from(nth);
        code = wg__serving_study_run(&fixture.request, &study, &err);
        wg__alloc_fail_from(0);
        assert_int_equal(code != WG_OK, study == NULL);
        assert_true(code == WG_OK || code == WG_ENOMEM);
        wg__serving_study_free(study);
    }
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_the_sums_of_their_runs),
        cmocka_unit_test(all_policies_meet_the_same_requests),
        cmocka_unit_test(runs_of_a_bursty_trace_differ_more_than_wilson_knows),
        cmocka_unit_test(results_do_not_depend_on_the_processes),
        cmocka_unit_test(a_single_run_says_nothing_of_runs),
        cmocka_unit_test(progress_counts_all_tasks),
        cmocka_unit_test(a_wrong_request_is_refused),
        cmocka_unit_test(survives_every_failing_allocation),
    };
    return run_tests(tests);
}
