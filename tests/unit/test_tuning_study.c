/* SPDX-License-Identifier: MIT
 *
 * Tuning studies: sums against the runs, Wilson's interval against printed values, threads.
 */
#include "simulate/tuning_study.h"
#include "simulate/workers.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/report_tuning_study.h"
#include "cli/tuning_results.h"
#include "simulate/tuning_sum.h"
#include "support/tuning_stage.h"

struct fixture {
    struct stage stage;
    struct wg_tuning_grid *grid;
    struct wg_tuning_scene scene;
    struct wg_tuning_study_request request;
};

static void open_fixture(struct fixture *fixture)
{
    struct wg_error err = {0};
    stage_open(&fixture->stage, "kind,batch,clock_hz,t,e\na,1,1,2,10\na,1,2,1,12\na,2,1,3,6\n"
                                "a,2,2,2,7\na,4,1,5,4\na,4,2,4,4.1\na,8,1,9,2\na,8,2,8,3\n");
    fixture->grid = stage_grid(&fixture->stage);
    if (wg__tuning_scene_init(&fixture->scene, fixture->grid, &(struct wg_tuning_failures){0}, 0.02,
                              0.02, &err) != WG_OK)
        fail_msg("%s", err.text);
    fixture->request = (struct wg_tuning_study_request){.scene = &fixture->scene,
                                                        .policy_count = 2,
                                                        .policies = {WG_TUNER_RANDOM, WG_TUNER_CBO},
                                                        .first_seed = 5,
                                                        .seeds = 40,
                                                        .validate = true,
                                                        .xi = (double)NAN,
                                                        .processes = 1};
}

static void close_fixture(struct fixture *fixture)
{
    wg__tuning_scene_fini(&fixture->scene);
    wg__tuning_grid_close(fixture->grid);
    stage_close(&fixture->stage);
}

static struct wg_tuning_study *run_study(const struct wg_tuning_study_request *request)
{
    struct wg_tuning_study *study = NULL;
    struct wg_error err = {0};
    if (wg__tuning_study_run(request, &study, &err) != WG_OK)
        fail_msg("%s", err.text);
    return study;
}

/* Brown, Cai and DasGupta's formula by hand for 13 of 240, and the ends. */
static void shares_have_wilsons_interval(void **state)
{
    (void)state;
    const struct wg_tuning_share some = wg__tuning_share(13, 240);
    check_close(some.share, 13.0 / 240, 1e-15);
    check_close(some.low, 0.031917, 1e-3);
    check_close(some.high, 0.090443, 1e-3);
    const struct wg_tuning_share none = wg__tuning_share(0, 100), all = wg__tuning_share(100, 100);
    assert_true(none.low == 0 && all.high == 1);
    check_close(none.high, 3.8414588 / 103.8414588, 1e-6);
    check_close(all.low, 1 - 3.8414588 / 103.8414588, 1e-6);
    assert_true(isnan(wg__tuning_share(0, 0).share));
}

static void sums_are_those_of_the_runs(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    struct wg_tuning_study *study = run_study(&fixture.request);
    assert_int_equal(study->hit_cap, 8);
    for (size_t p = 0; p < 2; p++) {
        const struct wg_tuning_summary *of = &study->summaries[p];
        double hits = 0, trials = 0, right = 0;
        for (size_t i = 0; i < study->seeds; i++) {
            assert_int_equal(of->outcomes[i].seed, 5 + i);
            hits += (double)(of->outcomes[i].first_hit != 0 ? of->outcomes[i].first_hit : 9);
            trials += (double)of->outcomes[i].trials;
            right += fixture.scene.target.is_near[of->outcomes[i].returned];
        }
        check_close(of->first_hit.mean, hits / 40, 1e-12);
        check_close(of->trials.mean, trials / 40, 1e-12);
        check_close_abs(of->within_5.share, right / 40, 1e-12, 1e-12);
        check_close(of->hit_by[7], 1 - (double)of->misses / 40, 1e-12);
        for (size_t n = 1; n < 8; n++)
            assert_true(of->hit_by[n] >= of->hit_by[n - 1]);
    }
    /* All of eight are tried: random hits at the (8 + 1) / (1 + 1)th on average. */
    const struct wg_tuning_summary *random = &study->summaries[0];
    assert_int_equal(fixture.scene.target.near_optimal, 1);
    check_close(random->first_hit_exact, 4.5, 1e-12);
    assert_int_equal(random->misses, 0);
    check_close_abs(random->first_hit.mean, 4.5, 0, 5 * sqrt(63.0 / 12 / 40));
    assert_true(isnan(study->summaries[1].first_hit_exact));
    wg__tuning_study_free(study);
    close_fixture(&fixture);
}

static void results_do_not_depend_on_the_processes(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    struct wg_tuning_study *one = run_study(&fixture.request);
    fixture.request.processes = 6;
    struct wg_tuning_study *six = run_study(&fixture.request);
    for (size_t i = 0; i < 80; i++) {
        assert_int_equal(one->outcomes[i].first_hit, six->outcomes[i].first_hit);
        assert_int_equal(one->outcomes[i].trials, six->outcomes[i].trials);
        assert_int_equal(one->outcomes[i].returned, six->outcomes[i].returned);
    }
    assert_memory_equal(one->returned_after, six->returned_after,
                        80 * one->max_trials * sizeof *one->returned_after);
    wg__tuning_study_free(one);
    wg__tuning_study_free(six);
    close_fixture(&fixture);
}

static void check_refused(struct wg_tuning_study_request request, const char *message)
{
    struct wg_tuning_study *study = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__tuning_study_run(&request, &study, &err), WG_EINVAL);
    if (strstr(err.text, message) == NULL)
        fail_msg("%s", err.text);
}

static void requests_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    struct wg_tuning_study_request request = fixture.request;
    request.policy_count = 0;
    check_refused(request, "0 policies");
    request = fixture.request;
    request.seeds = 0;
    check_refused(request, "0 seeds");
    request = fixture.request;
    request.processes = WG_WORKERS_MAX + 1;
    check_refused(request, "257 processes");
    request = fixture.request;
    request.max_trials = WG_TUNING_TRIALS_MAX + 1;
    check_refused(request, "10001 trials");
    close_fixture(&fixture);
}

/* The whole of a command: study, one run trial by trial, JSON, CSV, text and page. */
static enum wg_code run_all(const struct wg_tuning_study_request *request, bool *is_whole)
{
    struct wg_tuning_study *study = NULL;
    struct wg_tuning_trials trials = {0};
    const struct wg_tuning_setup setup = {.scene = request->scene,
                                          .policy = WG_TUNER_CBO,
                                          .seed = 1,
                                          .xi = (double)NAN,
                                          .max_trials = 6};
    struct wg_buffer out;
    wg__buffer_init(&out);
    enum wg_code code = wg__tuning_study_run(request, &study, NULL);
    if (code == WG_OK)
        code = wg__tuning_trials_run(&trials, &setup, NULL);
    if (code == WG_OK) {
        wg__tuning_json(study, request, &trials, &out);
        wg__tuning_csv(study, &out);
        wg__tuning_text(study, request, &trials, false, &out);
        wg__report_tuning_study(study, request, &trials, "wattgov", &out);
        *is_whole = !out.failed && strstr(out.data, "</html>") != NULL;
    }
    wg__buffer_fini(&out);
    wg__tuning_trials_fini(&trials);
    wg__tuning_study_free(study);
    return code;
}

static void expect_said(const char *text, const char *part, bool is_said)
{
    if ((strstr(text, part) != NULL) != is_said)
        fail_msg("'%s' is %s: %s", part, is_said ? "missing" : "there", text);
}

/* The study's text; the summary of the first policy may be changed before. */
static void check_words(const struct fixture *fixture, size_t misses, const char *part,
                        bool is_said)
{
    struct wg_tuning_study *study = run_study(&fixture->request);
    struct wg_buffer out;
    study->summaries[0].misses = misses;
    wg__buffer_init(&out);
    wg__tuning_text(study, &fixture->request, NULL, false, &out);
    expect_said(out.data, part, is_said);
    wg__buffer_fini(&out);
    wg__tuning_study_free(study);
}

static void words_do_not_mislead(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    check_words(&fixture, 0, "(8 rows), 5 meet t <= 4, 1 of them within 5 %", true);
    check_words(&fixture, 0, "rows a configuration", false);
    check_words(&fixture, 0, ">8 ", false);
    check_words(&fixture, 21, ">8 ", true); /* of 40: a mean of the others says nothing */
    fixture.grid->rows = 12;
    check_words(&fixture, 0, "1.5 rows a configuration: they are taken for repetitions", true);
    fixture.grid->differing = "model, px";
    check_words(&fixture, 0, "1.5 rows a configuration, which differ in model, px: ", true);
    fixture.grid->goal.limit_count = 0;
    check_words(&fixture, 0, "(12 rows), no limit is set, ", true);
    close_fixture(&fixture);
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture);
    fixture.request.seeds = 1;
    fixture.request.max_trials = 4;
    bool is_whole = false;
    size_t failures = 0;
    for (size_t nth = 1; !is_whole && nth < 20000; nth++) {
        wg__alloc_fail_from(nth);
        const enum wg_code code = run_all(&fixture.request, &is_whole);
        wg__alloc_fail_from(0);
        assert_true(code == WG_OK || code == WG_ENOMEM);
        failures += !is_whole;
    }
    assert_true(is_whole);
    assert_true(failures > 30);
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_have_wilsons_interval),
        cmocka_unit_test(sums_are_those_of_the_runs),
        cmocka_unit_test(results_do_not_depend_on_the_processes),
        cmocka_unit_test(requests_that_cannot_be_are_refused),
        cmocka_unit_test(words_do_not_mislead),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
    };
    return run_tests(tests);
}
