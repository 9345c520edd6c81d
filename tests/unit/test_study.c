/* SPDX-License-Identifier: MIT
 *
 * Tests of studies (simulate/study.h), on the bundled traces and on the one worked by hand.
 */
#include "simulate/study.h"

#include <math.h>

#include "base/alloc.h"
#include "support/study.h"

static void check_same_spread(struct wg_spread a, struct wg_spread b)
{
    check_close(a.mean, b.mean, 0);
    check_close(a.sd, b.sd, 0);
    check_close(a.worst, b.worst, 0);
}

/* Equal to the last bit. */
static void check_same_case(const struct wg_study *study, const struct wg_study_case *a,
                            const struct wg_study_case *b)
{
    const size_t bytes = study->recurrences * sizeof(double);
    assert_string_equal(a->policy, b->policy);
    check_same_spread(a->energy_j, b->energy_j);
    check_same_spread(a->time_s, b->time_s);
    check_same_spread(a->cost_j, b->cost_j);
    check_same_spread(a->regret_oracle_runs, b->regret_oracle_runs);
    check_close(a->final_batch_size, b->final_batch_size, 0);
    check_close(a->final_limit_w, b->final_limit_w, 0);
    assert_memory_equal(a->cumulative_cost_j, b->cumulative_cost_j, bytes);
    assert_memory_equal(a->cumulative_low_j, b->cumulative_low_j, bytes);
    assert_memory_equal(a->cumulative_high_j, b->cumulative_high_j, bytes);
    assert_memory_equal(a->choices, b->choices,
                        study->bin_count * study->worlds[a->world].arm_count * sizeof(float));
    check_close(a->attempts_per_recurrence, b->attempts_per_recurrence, 0);
    assert_int_equal(a->gave_up, b->gave_up);
}

static void results_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    static const char *const jobs[] = {"squad", "movielens-1m"};
    struct tiny traces;
    open_bundled(&traces);
    struct wg_study_request request = request_of(traces.trace, traces.jobs);
    request.job_names = jobs;
    request.job_count = 2;
    request.rules.concurrency = 2;
    request.threads = 1;
    struct wg_study *one = run(&request);
    assert_int_equal(one->case_count, 2 * 2 * 5);
    static const size_t threads[] = {2, 5, 64};
    for (size_t t = 0; t < 3; t++) {
        request.threads = threads[t];
        struct wg_study *many = run(&request);
        assert_int_equal(many->case_count, one->case_count);
        for (size_t i = 0; i < one->case_count; i++)
            check_same_case(one, &one->cases[i], &many->cases[i]);
        for (size_t i = 0; i < one->summary_count; i++) /* all but the wall-clock times */
            assert_memory_equal(&one->summaries[i], &many->summaries[i],
                                offsetof(struct wg_study_summary, decision_us_p50));
        wg__study_free(many);
    }
    wg__study_free(one);
    tiny_close(&traces);
}

static void the_luck_of_a_case_does_not_depend_on_the_others(void **state)
{
    (void)state;
    static const char *const gpus[] = {"V100"}, *const jobs[] = {"squad"};
    static const char *const policies[] = {"zeus"};
    struct tiny traces;
    open_bundled(&traces);
    struct wg_study_request request = request_of(traces.trace, traces.jobs);
    struct wg_study *all = run(&request);
    assert_int_equal(all->world_count, 12);
    request.gpus = gpus;
    request.gpu_count = 1;
    request.job_names = jobs;
    request.job_count = 1;
    request.policies = policies;
    request.policy_count = 1;
    struct wg_study *alone = run(&request);
    assert_int_equal(alone->case_count, 1);
    check_same_case(all, find(all, "v100", "squad", "zeus"), &alone->cases[0]);
    wg__study_free(alone);
    wg__study_free(all);
    tiny_close(&traces);
}

/* Copies a file of the bundled traces with the order of its rows turned around. */
static void copy_reversed(struct scratch *scratch, const char *name)
{
    char path[TINY_PATH_BYTES], from[128];
    (void)snprintf(from, sizeof from, "data/zeus/trace/%s", name);
    tiny_source_path(path, from);
    size_t length;
    char *text = scratch_read(path, &length);
    char *turned = malloc(length + 2);
    scratch_require(turned != NULL && text[length - 1] == '\n', name);
    size_t at = (size_t)(strchr(text, '\n') + 1 - text), end = length;
    memcpy(turned, text, at);
    const size_t first = at;
    while (end > first) {
        size_t begin = end - 1;
        while (begin > first && text[begin - 1] != '\n')
            begin--;
        memcpy(turned + at, text + begin, end - begin);
        at += end - begin;
        end = begin;
    }
    assert_int_equal(at, length);
    scratch_write(scratch_path(scratch, name), turned, length);
    free(turned);
    free(text);
}

static void the_order_of_power_rows_and_limits_changes_nothing(void **state)
{
    (void)state;
    struct tiny traces;
    struct scratch scratch;
    char path[TINY_PATH_BYTES];
    open_bundled(&traces);
    scratch_open(&scratch);
    copy_reversed(&scratch, "summary_power_a40.csv");
    tiny_source_path(path, "data/zeus/trace/summary_train.csv");
    size_t length;
    char *runs = scratch_read(path, &length);
    scratch_write(scratch_path(&scratch, "summary_train.csv"), runs, length);
    free(runs);
    struct wg_training_trace *turned = NULL;
    struct wg_error err = {0};
    scratch_require(wg__trace_open(&turned, scratch.folder, &err) == WG_OK, err.text);
    static const char *const gpus[] = {"a40"};
    struct wg_study_request request = request_of(traces.trace, traces.jobs);
    request.gpus = gpus;
    request.gpu_count = 1;
    struct wg_study *before = run(&request);
    request.trace = turned;
    struct wg_study *after = run(&request);
    assert_int_equal(before->case_count, 6 * 5);
    for (size_t i = 0; i < before->case_count; i++)
        check_same_case(before, &before->cases[i], &after->cases[i]);
    wg__study_free(before);
    wg__study_free(after);
    wg__trace_close(turned);
    scratch_close(&scratch);
    tiny_close(&traces);
}

static void default_and_oracle_cost_what_is_expected_of_them(void **state)
{
    (void)state;
    struct tiny traces;
    open_bundled(&traces);
    struct wg_study_request request = request_of(traces.trace, traces.jobs);
    request.policies = yardsticks;
    request.policy_count = 2;
    request.seeds = 200;
    struct wg_study *study = run(&request);
    for (size_t i = 0; i < study->case_count; i++) {
        const struct wg_study_case *of = &study->cases[i];
        const struct wg_study_world *world = &study->worlds[of->world];
        const bool is_default = strcmp(of->policy, "default") == 0;
        const struct wg_training_bill *expected =
            is_default ? &world->default_total : &world->oracle_total;
        /* Five standard errors. */
        const double errors = 5 / sqrt(200);
        check_close_abs(of->cost_j.mean, expected->cost_j, 1e-12, errors * of->cost_j.sd);
        check_close_abs(of->energy_j.mean, expected->energy_j, 1e-12, errors * of->energy_j.sd);
        check_close_abs(of->time_s.mean, expected->time_s, 1e-12, errors * of->time_s.sd);
        check_close(of->final_batch_size,
                    is_default ? world->default_batch_size : world->oracle_batch_size, 0);
        check_close(of->final_limit_w,
                    is_default ? world->limit_w[world->limit_count - 1] : world->oracle_limit_w, 0);
    }
    assert_true(isnan(study->decision_us_p50)); /* neither of them decides */
    wg__study_free(study);
    tiny_close(&traces);
}

static void no_policy_beats_the_oracle_in_expectation(void **state)
{
    (void)state;
    static const char *const gpus[] = {"v100"};
    struct tiny traces;
    open_bundled(&traces);
    struct wg_study_request request = request_of(traces.trace, traces.jobs);
    request.gpus = gpus;
    request.gpu_count = 1;
    request.seeds = 50;
    struct wg_study *study = run(&request);
    for (size_t i = 0; i < study->case_count; i++) {
        const struct wg_study_case *of = &study->cases[i];
        const double floor_j = study->worlds[of->world].oracle_total.cost_j;
        assert_true(of->cost_j.mean + 5 * of->cost_j.sd / sqrt(50) >= floor_j);
        if (strcmp(of->policy, "oracle") != 0)
            assert_true(of->cost_over_oracle.mean > 1);
    }
    assert_true(study->decision_us_p50 > 0);
    assert_true(study->decision_us_p99 >= study->decision_us_p50);
    wg__study_free(study);
    tiny_close(&traces);
}

static void cumulative_costs_end_in_the_total(void **state)
{
    (void)state;
    static const char *const name = "toy";
    struct tiny tiny;
    tiny_open(&tiny);
    struct wg_study_request request = request_of_toy(&tiny, &name);
    request.rules.recurrences = WG_STUDY_BINS_MAX + 50;
    struct wg_study *study = run(&request);
    assert_int_equal(study->bin_count, WG_STUDY_BINS_MAX);
    for (size_t i = 0; i < study->case_count; i++) {
        const struct wg_study_case *of = &study->cases[i];
        check_close(of->cumulative_cost_j[study->recurrences - 1], of->cost_j.mean, 1e-12);
        for (size_t r = 0; r < study->recurrences; r++) {
            assert_true(of->cumulative_low_j[r] <= of->cumulative_high_j[r]);
            assert_true(r == 0 || of->cumulative_cost_j[r] > of->cumulative_cost_j[r - 1]);
        }
        for (size_t bin = 0; bin < study->bin_count; bin++) {
            double total = 0;
            for (size_t arm = 0; arm < 3; arm++)
                total += (double)of->choices[bin * 3 + arm];
            check_close(total, 1, 1e-6);
        }
    }
    wg__study_free(study);
    tiny_close(&tiny);
}

static void summaries_follow_from_the_cases(void **state)
{
    (void)state;
    struct tiny traces;
    open_bundled(&traces);
    struct wg_study_request request = request_of(traces.trace, traces.jobs);
    struct wg_study *study = run(&request);
    assert_int_equal(study->summary_count, 5);
    for (size_t p = 0; p < 5; p++) {
        const struct wg_study_summary *summary = &study->summaries[p];
        assert_string_equal(summary->policy, all_policies[p]);
        double cost = 0, energy = 0, time = 0, excess = 0, worst = -INFINITY;
        size_t above = 0, count = 0;
        for (size_t i = 0; i < study->case_count; i++) {
            const struct wg_study_case *of = &study->cases[i];
            const struct wg_study_world *world = &study->worlds[of->world];
            if (strcmp(of->policy, summary->policy) != 0)
                continue;
            count++;
            cost += log(of->cost_j.mean / world->default_total.cost_j);
            energy += log(of->energy_j.mean / world->default_total.energy_j);
            time += log(of->time_s.mean / world->default_total.time_s);
            excess += of->cost_j.mean / world->oracle_total.cost_j - 1;
            worst = fmax(worst, of->cost_j.mean / world->oracle_total.cost_j - 1);
            above += of->cost_j.mean > world->default_total.cost_j;
        }
        assert_int_equal(count, 12);
        assert_int_equal(summary->case_count, 12);
        check_close(summary->geomean_cost_over_default, exp(cost / 12), 1e-12);
        check_close(summary->geomean_energy_over_default, exp(energy / 12), 1e-12);
        check_close(summary->geomean_time_over_default, exp(time / 12), 1e-12);
        check_close_abs(summary->mean_excess_over_oracle, excess / 12, 1e-12, 1e-12);
        check_close_abs(summary->worst_excess_over_oracle, worst, 1e-12, 1e-12);
        assert_int_equal(summary->cases_above_default, p == 0 ? 0 : above);
    }
    wg__study_free(study);
    tiny_close(&traces);
}

static void rejects_requests_out_of_range(void **state)
{
    (void)state;
    static const char *const name = "toy";
    static const char *const fixed = "fixed";
    struct tiny tiny;
    tiny_open(&tiny);
    const struct wg_study_request good = request_of_toy(&tiny, &name);
    struct wg_study_request request = good;
    request.rules.eta = NAN;
    check_rejects(&request, WG_EINVAL, "eta");
    request.rules.eta = 1.5;
    check_rejects(&request, WG_EINVAL, "outside 0..1");
    request = good;
    request.rules.recurrences = 0;
    check_rejects(&request, WG_EINVAL, "0 recurrences");
    request = good;
    request.seeds = 0;
    check_rejects(&request, WG_EINVAL, "0 seeds");
    request = good;
    request.threads = 0;
    check_rejects(&request, WG_EINVAL, "threads");
    request = good;
    request.rules.concurrency = 0.5;
    check_rejects(&request, WG_EINVAL, "concurrency");
    request = good;
    request.beta = NAN;
    check_rejects(&request, WG_EINVAL, "beta");
    request = good;
    request.rules.charge = WG_CHARGE_SECONDS;
    check_rejects(&request, WG_EINVAL, "seconds per probed limit");
    request = good;
    request.policies = &fixed; /* known inside only */
    request.policy_count = 1;
    check_rejects(&request, WG_EINVAL, "no policy 'fixed'");
    request.policy_count = 0;
    check_rejects(&request, WG_EINVAL, "policies");
    request = good;
    request.warm_gpu = "tiny";
    check_rejects(&request, WG_EINVAL, "warm start");
    tiny_close(&tiny);
}

struct counts {
    _Atomic size_t started, replays, done;
};

static void count_start(void *context, size_t replays)
{
    struct counts *counts = context;
    counts->started++;
    counts->replays += replays;
}

static void count_replay(void *context)
{
    ((struct counts *)context)->done++;
}

static void reports_its_progress(void **state)
{
    (void)state;
    static const char *const name = "toy";
    struct counts counts = {0};
    struct tiny tiny;
    tiny_open(&tiny);
    struct wg_study_request request = request_of_toy(&tiny, &name);
    request.started = count_start;
    request.progress = count_replay;
    request.progress_context = &counts;
    struct wg_study *study = run(&request);
    assert_int_equal(counts.started, 1);
    assert_int_equal(counts.replays, 5 * 4);
    assert_int_equal(counts.done, 5 * 4);
    wg__study_free(study);
    wg__study_free(NULL);
    tiny_close(&tiny);
}

/* With several threads too: which allocation fails depends on chance then, that it is reported must
 * not. */
static void check_survives_failed_allocations(size_t threads)
{
    static const char *const name = "toy";
    struct tiny tiny;
    tiny_open(&tiny);
    struct wg_study_request request = request_of_toy(&tiny, &name);
    request.drift_job = "toy-large";
    request.rules.drift_at = 1;
    request.rules.recurrences = 2;
    request.seeds = 2;
    request.threads = threads;
    struct wg_study *study = NULL;
    struct wg_error err;
    enum wg_code code = WG_ENOMEM;
    size_t failures = 0;
    for (size_t nth = 1; code != WG_OK; nth++) {
        wg__alloc_fail_from(nth);
        code = wg__study_run(&request, &study, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        assert_null(study);
        check_says(err, "out of memory");
        failures++;
    }
    assert_true(failures > 30);
    wg__study_free(study);
    tiny_close(&tiny);
}

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    check_survives_failed_allocations(1);
    check_survives_failed_allocations(3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(the_luck_of_a_case_does_not_depend_on_the_others),
        cmocka_unit_test(the_order_of_power_rows_and_limits_changes_nothing),
        cmocka_unit_test(default_and_oracle_cost_what_is_expected_of_them),
        cmocka_unit_test(no_policy_beats_the_oracle_in_expectation),
        cmocka_unit_test(cumulative_costs_end_in_the_total),
        cmocka_unit_test(summaries_follow_from_the_cases),
        cmocka_unit_test(rejects_requests_out_of_range),
        cmocka_unit_test(reports_its_progress),
        cmocka_unit_test(survives_every_failed_allocation),
    };
    return run_tests(tests);
}
