/* SPDX-License-Identifier: MIT
 *
 * What `wattgov simulate serving` is told. Refusals are in tests/integration/simulate_serving.py
 * too, as the user sees them.
 */
#include "cli/serving_args.h"

#include <string.h>

#include "support/check.h"

static void a_time_has_a_unit_or_is_in_seconds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double s;
    } good[] = {{"0.7", 0.7}, {"700ms", 0.7}, {".7s", 0.7}, {"2m", 120}, {"1e-3", 1e-3}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double s = 0;
        assert_int_equal(wg__parse_serving_seconds("slo", good[i].text, 1e-6, 1e6, &s, NULL),
                         WG_OK);
        check_close(s, good[i].s, 0);
    }
    static const char *const bad[] = {"", "0", "-1", "700 ms", "0.7x", "nan", "inf", "2e6", "500h"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double s = 5;
        struct wg_error err = {0};
        assert_int_equal(wg__parse_serving_seconds("slo", bad[i], 1e-6, 1e6, &s, &err), WG_EINVAL);
        assert_non_null(strstr(err.text, "--slo: '"));
        assert_non_null(strstr(err.text, "as 0.7, 0.7s or 700ms"));
        check_close(s, 5, 0);
    }
}

static void a_job_is_rows_and_iterations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool has_job;
        unsigned batch;
        uint64_t iterations;
    } good[] = {{"batch=64,iterations=10", true, 64, 10},
                {"iterations=3,batch=8", true, 8, 3},
                {"iterations=3", true, 64, 3},
                {"backlog", true, 64, UINT64_MAX},
                {"backlog,batch=16", true, 16, UINT64_MAX},
                {"off", false, 0, 0}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        bool has_job = !good[i].has_job;
        struct wg_finetune_job job = {0};
        assert_int_equal(wg__parse_serving_job(good[i].text, &has_job, &job, NULL), WG_OK);
        assert_int_equal(has_job, good[i].has_job);
        assert_int_equal(job.batch, good[i].batch);
        assert_true(job.iterations == good[i].iterations);
    }
    static const char *const bad[] = {"",
                                      "on",
                                      "batch=64",
                                      "batch=0,iterations=1",
                                      "batch=1,iterations=0",
                                      "batch=1,iterations=2,",
                                      "batch=1,batch=2,iterations=1",
                                      "iterations=1,iterations=2",
                                      "batch=65537,iterations=1",
                                      "iterations=1000000001",
                                      "backlog,iterations=3",
                                      "backlogs",
                                      "backlog,",
                                      "off,batch=1",
                                      "batch=x,iterations=1",
                                      "iterations=-1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bool has_job;
        struct wg_finetune_job job = {0};
        struct wg_error err = {0};
        if (wg__parse_serving_job(bad[i], &has_job, &job, &err) != WG_EINVAL)
            fail_msg("'%s' is accepted", bad[i]);
        assert_non_null(strstr(err.text, "--finetune: '"));
        assert_non_null(strstr(err.text, "batch=ROWS,iterations=N"));
    }
}

static const struct wg_serving_profile profile = {
    .name = "p",
    .max_batch = 8,
    .latency = {.fixed_s = 0.1, .per_row_s = 0.01},
    .has_finetune = true,
    .step_fixed_s = 0.01,
    .step_per_row_s = 0.02,
    .update_s = 0.03,
    .inference_slowdown = 2,
    .finetune_slowdown = 2,
    .ladder = {.count = 2,
               .change_s = 0.5,
               .rungs = {{"max", 1, 1, 40, 10, 40}, {"low", 0.5, 1, 20, 5, 20}}},
    .rung_has_latency = {false, true},
    .rung_latency = {{0}, {.point_count = 1, .batch = {1}, .time_s = {0.4}}},
};

static struct wg_serving_args usual_args(void)
{
    return (struct wg_serving_args){.slo = "0.7",
                                    .clocks = "default",
                                    .duration = "30",
                                    .seeds = 4,
                                    .seed = 9,
                                    .believe = 1,
                                    .queue = 100,
                                    .step_share = (double)NAN,
                                    .deadline_share = (double)NAN,
                                    .min_share = (double)NAN,
                                    .processes = 3};
}

static void nothing_but_an_slo_asks_for_all_policies(void **state)
{
    (void)state;
    const struct wg_serving_args args = usual_args();
    struct wg_serving_profile believed;
    struct wg_serving_study_request request;
    struct wg_error err = {0};
    if (wg__serving_request_make(&args, &profile, &believed, &request, &err) != WG_OK)
        fail_msg("%s", err.text);
    static const char *const names[] = {"none", "greedy", "polythrottle", "wattgov", "floor"};
    assert_int_equal(request.policy_count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(request.policies[i].name, names[i]);
    assert_int_equal(request.policies[0].batcher, WG_BATCHER_TRITON);
    assert_int_equal(request.policies[0].drop, WG_DROP_STANDARD);
    assert_int_equal(request.policies[2].drop, WG_DROP_EARLY);
    assert_int_equal(request.policies[3].batcher, WG_BATCHER_WATTGOV);
    assert_int_equal(request.policies[4].finetune, WG_FINETUNE_NONE);
    assert_int_equal(request.policies[4].batcher, WG_BATCHER_WATTGOV);
    assert_int_equal(request.law_count, 1);
    assert_string_equal(request.laws[0], "poisson:8");
    assert_ptr_equal(request.base.profile, &profile);
    assert_null(request.base.believed);
    check_close(request.base.slo_s, 0.7, 0);
    check_close(request.base.duration_s, 30, 0);
    check_close_abs(request.base.min_share, 0, 0, 0);
    assert_true(request.base.has_job);
    assert_int_equal(request.base.job.batch, 64);
    assert_int_equal(request.base.clocks, WG_CLOCKS_FIXED);
    assert_int_equal(request.base.queue_capacity, 100);
    assert_int_equal(request.seeds, 4);
    assert_int_equal(request.first_seed, 9);
    assert_int_equal(request.processes, 3);
}

static void what_is_asked_for_is_in_the_request(void **state)
{
    (void)state;
    struct wg_serving_args args = usual_args();
    args.policies = (struct wg_option_list){2, {"wattgov", "none"}};
    args.arrivals = (struct wg_option_list){2, {"uniform:4", "poisson:2"}};
    args.slo_changes = (struct wg_option_list){2, {"10:0.25", "20s:700ms"}};
    args.batcher = "none";
    args.drop = "standard";
    args.clocks = "low";
    args.believe = 1.5;
    args.min_share = 0;
    args.step_share = 0.1;
    struct wg_serving_profile believed;
    struct wg_serving_study_request request;
    struct wg_error err = {0};
    if (wg__serving_request_make(&args, &profile, &believed, &request, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_int_equal(request.policy_count, 3);
    assert_string_equal(request.policies[2].name, "floor");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(request.policies[i].batcher, WG_BATCHER_NONE);
        assert_int_equal(request.policies[i].drop, WG_DROP_STANDARD);
    }
    assert_int_equal(request.law_count, 2);
    assert_int_equal(request.base.change_count, 2);
    check_close(request.base.changes[0].at_s, 10, 0);
    check_close(request.base.changes[0].slo_s, 0.25, 0);
    check_close(request.base.changes[1].slo_s, 0.7, 0);
    assert_int_equal(request.base.rung, 1);
    check_close(request.base.min_share, -1, 0);
    check_close(request.base.step_share, 0.1, 0);
    assert_ptr_equal(request.base.believed, &believed);
    check_close(believed.latency.fixed_s, 0.15, 1e-15);
    check_close(believed.latency.per_row_s, 0.015, 1e-15);
    check_close(believed.rung_latency[1].time_s[0], 0.6, 1e-15);
    check_close(believed.step_fixed_s, 0.015, 1e-15);
    check_close(believed.step_per_row_s, 0.03, 1e-15);
    check_close(believed.update_s, 0.045, 1e-15);
    check_close(believed.ladder.change_s, 0.5, 0);
    args.clocks = "governed";
    assert_int_equal(wg__serving_request_make(&args, &profile, &believed, &request, &err), WG_OK);
    assert_int_equal(request.base.clocks, WG_CLOCKS_GOVERNED);
    assert_int_equal(request.base.rung, 0);
}

static void check_refused(const struct wg_serving_args *args, const struct wg_serving_profile *of,
                          const char *said)
{
    struct wg_serving_profile believed;
    struct wg_serving_study_request request;
    struct wg_error err = {0};
    assert_int_equal(wg__serving_request_make(args, of, &believed, &request, &err), WG_EINVAL);
    if (strstr(err.text, said) == NULL)
        fail_msg("\"%s\", expected \"%s\"", err.text, said);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static struct wg_serving_profile bare;
    bare = profile;
    bare.has_finetune = false;
    bare.ladder.count = 1;
#define REFUSED(of, said, ...)                                                                     \
    do {                                                                                           \
        struct wg_serving_args args = usual_args();                                                \
        args.__VA_ARGS__;                                                                          \
        check_refused(&args, of, said);                                                            \
    } while (0)
    REFUSED(&profile, "--slo: '0' is not a time in 0.000001 .. 1000000 s", slo = "0");
    REFUSED(&profile, "--duration: 'x'", duration = "x");
    REFUSED(&profile, "--clocks: 'lo'", clocks = "lo");
    REFUSED(&profile, "--batcher: 'trito'", batcher = "trito");
    REFUSED(&profile, "--drop: 'late'", drop = "late");
    REFUSED(&profile, "--policy: 'wattgof'", policies = (struct wg_option_list){1, {"wattgof"}});
    REFUSED(&profile, "'none' is given twice",
            policies = (struct wg_option_list){2, {"none", "none"}});
    REFUSED(&profile, "'poisson:1' is given twice",
            arrivals = (struct wg_option_list){2, {"poisson:1", "poisson:1"}});
    REFUSED(&profile, "--arrivals: ", arrivals = (struct wg_option_list){1, {"poisson:-1"}});
    REFUSED(&profile, "--arrivals: 17 laws, at most 16", arrivals.count = 17);
    REFUSED(&profile, "--slo-change: 17 changes, at most 16", slo_changes.count = 17);
    static const char *const changes[] = {"3", "x:1", "3:x", "31:1", "3:0", "-1:1", ":"};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        REFUSED(&profile, "AT:SLO", slo_changes = (struct wg_option_list){1, {changes[i]}});
    REFUSED(&profile, "'5:1' is not later than '5:2'",
            slo_changes = (struct wg_option_list){2, {"5:2", "5:1"}});
    REFUSED(&bare, "expected off", finetune = "backlog");
    static struct wg_serving_profile slow;
    slow = profile;
    slow.step_per_row_s = 1e6;
    REFUSED(&slow, "--finetune: an iteration of 2 rows takes 2e+06 s at",
            finetune = "batch=2,iterations=1");
    REFUSED(&bare, "--clocks governed: the profile's ladder has one rung", clocks = "governed");
    struct wg_serving_args args = usual_args();
    args.arrivals = (struct wg_option_list){1, {"trace:/nowhere/at/all.csv"}};
    struct wg_serving_profile believed;
    struct wg_serving_study_request request;
    struct wg_error err = {0};
    assert_int_equal(wg__serving_request_make(&args, &profile, &believed, &request, &err),
                     WG_ENOENT);
    assert_non_null(strstr(err.text, "--arrivals: "));
    args = usual_args();
    assert_int_equal(wg__serving_request_make(&args, &bare, &believed, &request, &err), WG_OK);
    assert_false(request.base.has_job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_has_a_unit_or_is_in_seconds),
        cmocka_unit_test(a_job_is_rows_and_iterations),
        cmocka_unit_test(nothing_but_an_slo_asks_for_all_policies),
        cmocka_unit_test(what_is_asked_for_is_in_the_request),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return run_tests(tests);
}
