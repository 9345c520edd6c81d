/* SPDX-License-Identifier: MIT
 *
 * Tests of the replay world (simulate/training.h): each rule with a policy that follows a script,
 * on the numbers of tests/golden/tiny_trace.
 */
#include "simulate/training.h"

#include <math.h>

#include "base/alloc.h"
#include "support/training_stage.h"

static void charges_the_first_epoch_of_a_new_batch_size_at_the_mean_over_limits(void **state)
{
    (void)state;
    struct stage *stage = stage_open("toy", &run_8, 1, 2);
    stage_replay(stage, 1);
    /* 1600 J and 15 s, then 3 epochs of 10 s at 160 W. */
    check_close(stage->energy_j[0], 1600 + 3 * 1600, 1e-14);
    check_close(stage->time_s[0], 15 + 3 * 10, 1e-14);
    check_close(stage->cost_j[0], 2300 + 3 * 1800, 1e-14);
    /* Known by then. */
    check_close(stage->cost_j[1], 4 * 1800, 1e-14);
    assert_int_equal(stage->arm[1], 0);
    assert_int_equal(stage->limit[1], 1);
    assert_int_equal(stage->record.attempts, 2);
    assert_int_equal(stage->record.gave_up, 0);
    stage_close(stage);
}

static void tells_the_profile_once(void **state)
{
    (void)state;
    static const struct wg_batch_step steps[] = {
        {.kind = WG_STEP_RUN, .arm = 0, .limit = WG_LIMIT_BEST},
        {.kind = WG_STEP_RUN, .arm = 1, .limit = WG_LIMIT_BEST},
    };
    struct stage *stage = stage_open("toy", steps, 2, 4);
    stage_replay(stage, 1);
    assert_int_equal(stage->script.profile_count, 2);
    assert_int_equal(stage->script.profiled_arm[0], 0);
    check_close(stage->script.profiles[0].epoch_cost_j, 1800, 1e-14);
    check_close(stage->script.profiles[0].epoch_cost_max_limit_j, 1800, 1e-14);
    check_close(stage->script.profiles[0].first_epoch_cost_j, 2300, 1e-14);
    assert_int_equal(stage->script.profiled_arm[1], 1);
    check_close(stage->script.profiles[1].epoch_cost_j, 1305, 1e-14);
    check_close(stage->script.profiles[1].epoch_cost_max_limit_j, 1400, 1e-14);
    /* (1005 + 200 x 8.5) / 2 */
    check_close(stage->script.profiles[1].first_epoch_cost_j, 1352.5, 1e-14);
    stage_close(stage);
}

static void does_not_profile_at_a_given_limit(void **state)
{
    (void)state;
    struct stage *stage = stage_open("toy", &run_8_at_200_w, 1, 2);
    stage_replay(stage, 1);
    assert_int_equal(stage->script.profile_count, 0);
    check_close(stage->cost_j[0], 7200, 1e-14);
    check_close(stage->cost_j[1], 7200, 1e-14);
    stage_close(stage);
}

static void pays_for_a_failed_attempt_and_goes_on(void **state)
{
    (void)state;
    const struct wg_batch_step steps[] = {run_32_at_200_w, run_8_at_200_w};
    struct stage *stage = stage_open("hopeless", steps, 2, 1);
    stage_replay(stage, 1);
    /* 10 epochs of 6 s at 180 W in vain, then 4 of 10 s at 160 W. */
    check_close(stage->cost_j[0], 10 * 1140 + 4 * 1800, 1e-14);
    check_close(stage->energy_j[0], 10 * 1080 + 4 * 1600, 1e-14);
    check_close(stage->time_s[0], 60 + 40, 1e-14);
    assert_int_equal(stage->record.attempts, 2);
    assert_int_equal(stage->arm[0], 0);
    assert_int_equal(stage->script.outcome_count, 2);
    assert_false(stage->script.outcomes[0].reached);
    assert_int_equal(stage->script.outcomes[0].epochs, 10);
    check_close(stage->script.outcomes[0].cost_j, 11400, 1e-14);
    assert_true(stage->script.outcomes[1].reached);
    assert_int_equal(stage->script.outcomes[1].epochs, 4);
    stage_close(stage);
}

static void stops_an_attempt_when_the_policy_says_so(void **state)
{
    (void)state;
    const struct wg_batch_step steps[] = {run_32_at_200_w, run_8_at_200_w};
    struct stage *stage = stage_open("hopeless", steps, 2, 1);
    stage->script.stopped_arm = 1;
    stage->script.stop_after = 2;
    stage_replay(stage, 1);
    check_close(stage->cost_j[0], 2 * 1140 + 7200, 1e-14);
    assert_int_equal(stage->script.outcomes[0].epochs, 2);
    stage_close(stage);
    /* Before the first epoch nothing has been spent. */
    stage = stage_open("hopeless", steps, 2, 1);
    stage->script.stopped_arm = 1;
    stage->script.stop_after = 0;
    stage_replay(stage, 1);
    check_close(stage->cost_j[0], 7200, 1e-14);
    assert_int_equal(stage->script.outcomes[0].epochs, 0);
    assert_false(stage->script.outcomes[0].reached);
    stage_close(stage);
}

static void shows_the_metric_that_the_run_has_reached(void **state)
{
    (void)state;
    struct stage *stage = stage_open("toy", &run_8_at_200_w, 1, 1);
    stage_replay(stage, 1);
    /* Both runs of batch size 8 are at 0.3 after 2 epochs, and done after 4. */
    assert_int_equal(stage->script.metric_count, 4);
    assert_true(isnan(stage->script.metrics[0]));
    assert_true(isnan(stage->script.metrics[1]));
    check_close(stage->script.metrics[2], 0.3, 0);
    check_close(stage->script.metrics[3], 0.3, 0);
    stage_close(stage);
}

static void gives_up_after_too_many_attempts_and_pays_the_default(void **state)
{
    (void)state;
    struct stage *stage = stage_open("hopeless", &run_32_at_200_w, 1, 1);
    stage->script.stopped_arm = 1;
    stage->script.stop_after = 1;
    stage_replay(stage, 1);
    check_close(stage->cost_j[0], WG_ATTEMPTS_MAX * 1140 + 7200, 1e-14);
    assert_int_equal(stage->record.attempts, WG_ATTEMPTS_MAX);
    assert_int_equal(stage->record.gave_up, 1);
    assert_int_equal(stage->arm[0], 0);
    assert_int_equal(stage->limit[0], 1);
    stage_close(stage);
}

static void charges_seconds_per_probed_limit(void **state)
{
    (void)state;
    struct stage *stage = stage_open("toy", &run_8, 1, 2);
    stage->rules.charge = WG_CHARGE_SECONDS;
    stage->rules.probe_s = 2;
    stage_replay(stage, 1);
    /* 2 s at 80 W and at 160 W: 480 J, 4 s, that is 640 of cost; and 0.1 + 0.2 epochs are done. */
    check_close(stage->cost_j[0], 640 + (4 - 0.3) * 1800, 1e-14);
    check_close(stage->energy_j[0], 480 + (4 - 0.3) * 1600, 1e-14);
    check_close(stage->time_s[0], 4 + (4 - 0.3) * 10, 1e-14);
    check_close(stage->cost_j[1], 7200, 1e-14);
    check_close(stage->script.profiles[0].epoch_cost_j, 1800, 1e-12);
    check_close(stage->script.profiles[0].epoch_cost_max_limit_j, 1800, 1e-12);
    check_close(stage->script.profiles[0].first_epoch_cost_j, 640 + 0.7 * 1800, 1e-12);
    stage_close(stage);
}

static void charges_a_run_that_ends_while_probing_its_share(void **state)
{
    (void)state;
    struct stage *stage = stage_open("toy", &run_8, 1, 1);
    stage->rules.charge = WG_CHARGE_SECONDS;
    stage->rules.probe_s = 30;
    stage_replay(stage, 1);
    /* 30 s a limit make 1.5 + 3 epochs, more than the 4 that are needed. */
    check_close(stage->energy_j[0], 4 / 4.5 * (30 * 80 + 30 * 160), 1e-14);
    check_close(stage->time_s[0], 4 / 4.5 * 60, 1e-14);
    stage_close(stage);
}

static void probes_with_noise_that_depends_on_the_seed(void **state)
{
    (void)state;
    double costs[2] = {0};
    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct stage *stage = stage_open("toy", &run_8, 1, 1);
        stage->rules.charge = WG_CHARGE_SECONDS;
        stage->rules.probe_s = 2;
        stage->rules.probe_noise = 0.01;
        stage_replay(stage, seed);
        costs[seed - 1] = stage->script.profiles[0].epoch_cost_j;
        check_close(costs[seed - 1], 1800, 0.08);
        stage_close(stage);
    }
    assert_true(costs[0] != costs[1]);
    assert_true(costs[0] != 1800);
}

static void charges_surveys(void **state)
{
    (void)state;
    const struct wg_batch_step steps[] = {
        {.kind = WG_STEP_SURVEY, .arm = 1}, {.kind = WG_STEP_SURVEY, .arm = 2}, run_8_at_200_w};
    struct stage *stage = stage_open("toy", steps, 3, 1);
    stage_replay(stage, 1);
    /* 2 s at 150 W and at 180 W, the largest limit: (300 + 400) / 2 and (360 + 400) / 2. */
    assert_int_equal(stage->script.survey_count, 2);
    check_close(stage->script.survey_cost_j[0], 1400, 1e-14);
    check_close(stage->script.survey_paid_j[0], 350, 1e-14);
    check_close(stage->script.survey_cost_j[1], 1140, 1e-14);
    check_close(stage->script.survey_paid_j[1], 380, 1e-14);
    check_close(stage->cost_j[0], 350 + 380 + 7200, 1e-14);
    assert_int_equal(stage->record.attempts, 1);
    stage_close(stage);
}

static void a_job_that_drifts_costs_what_it_has_become(void **state)
{
    (void)state;
    struct stage *stage = stage_open("toy", &run_8, 1, 4);
    stage->cases[1] = tiny_case(&stage->tiny, "toy", "toy-slow");
    stage->setup.drifted = stage->cases[1];
    stage->rules.drift_at = 2;
    stage_replay(stage, 1);
    check_close(stage->cost_j[0], 2300 + 3 * 1800, 1e-14);
    check_close(stage->cost_j[1], 7200, 1e-14);
    /* Twice the seconds per epoch. The best limit is the same, so it is not searched anew, but the
     * policy hears of the new cost. */
    check_close(stage->cost_j[2], 2 * 7200, 1e-14);
    check_close(stage->cost_j[3], 2 * 7200, 1e-14);
    assert_int_equal(stage->script.profile_count, 2);
    check_close(stage->script.profiles[1].epoch_cost_j, 3600, 1e-14);
    stage_close(stage);
}

static void learns_on_another_gpu_first(void **state)
{
    (void)state;
    struct stage *stage = stage_open("toy-16", &run_16, 1, 2);
    stage->cases[2] = tiny_case(&stage->tiny, "tiny", "toy-16"); /* batch sizes 16 and 32 */
    stage->setup.warm = stage->cases[2];
    stage->setup.warm_recurrences = 3;
    stage_replay(stage, 1);
    assert_int_equal(stage->script.created, 2);
    assert_int_equal(stage->script.transfers, 1);
    assert_int_equal(stage->script.arm_of_source[0], 1);
    assert_int_equal(stage->script.arm_of_source[1], 2);
    /* What was learned there is not paid for here, but the GPU is new: profiled again. */
    const double cost_j = stage->cost_j[0];
    assert_true(cost_j == 1352.5 + 2 * 1305 || cost_j == 1352.5 + 4 * 1305);
    assert_int_equal(stage->record.attempts, 2);
    stage_close(stage);
}

static void keeps_several_runs_in_flight(void **state)
{
    (void)state;
    struct stage *stage = stage_open("toy", &run_8_at_200_w, 1, 500);
    stage->rules.concurrency = 4;
    stage_replay(stage, 1);
    for (size_t i = 0; i < 500; i++)
        check_close(stage->cost_j[i], 7200, 1e-14);
    assert_int_equal(stage->record.attempts, 500);
    assert_int_equal(stage->script.outcome_count, 500);
    /* A Poisson number with mean 4: among 500 moments hardly never above 5 or ever above 20. */
    assert_in_range(stage->script.most_open, 6, 20);
    stage_close(stage);
}

static void retries_and_gives_up_in_flight_too(void **state)
{
    (void)state;
    struct stage *stage = stage_open("hopeless", &run_32_at_200_w, 1, 5);
    stage->rules.concurrency = 3;
    stage->script.stopped_arm = 1;
    stage->script.stop_after = 2;
    stage_replay(stage, 1);
    for (size_t i = 0; i < 5; i++)
        check_close(stage->cost_j[i], WG_ATTEMPTS_MAX * 2 * 1140 + 7200, 1e-14);
    assert_int_equal(stage->record.gave_up, 5);
    assert_int_equal(stage->record.attempts, 5 * WG_ATTEMPTS_MAX);
    stage_close(stage);
}

/* Batch size 16 needs 3 or 5 epochs by luck; it must be the same luck under both policies. */
static void every_policy_meets_the_same_luck(void **state)
{
    (void)state;
    static const struct wg_batch_step steps[] = {
        {.kind = WG_STEP_RUN, .arm = 2, .limit = 1},
        {.kind = WG_STEP_SURVEY, .arm = 0},
        {.kind = WG_STEP_RUN, .arm = 1, .limit = 0},
    };
    struct stage *one = stage_open("toy", steps, 3, 50);
    one->script.stopped_arm = 2;
    one->script.stop_after = 0;
    stage_replay(one, 1);
    double costs[50];
    memcpy(costs, one->cost_j, sizeof costs);
    stage_close(one);
    struct stage *other = stage_open("toy", steps, 3, 50);
    use_fixed(other, 1, 0);
    stage_replay(other, 1);
    size_t three = 0;
    for (size_t i = 1; i < 50; i++) { /* the first recurrence was a second attempt */
        check_close(costs[i], other->cost_j[i], 1e-14);
        three += costs[i] < 4 * 1305;
    }
    assert_in_range(three, 12, 37);
    stage_close(other);
}

static void luck_depends_on_seed_and_case(void **state)
{
    (void)state;
    struct stage *stage = stage_open("toy", &run_16, 1, 50);
    double costs[3][50];
    use_fixed(stage, 1, 0);
    for (size_t i = 0; i < 3; i++) {
        const uint64_t seed = i == 1 ? 2 : 1, key = i == 2 ? 8 : 7;
        assert_int_equal(wg__training_replay(&stage->setup, &stage->rules, seed, key,
                                             &stage->record, &stage->err),
                         WG_OK);
        memcpy(costs[i], stage->cost_j, sizeof costs[i]);
    }
    assert_memory_not_equal(costs[0], costs[1], sizeof costs[0]);
    assert_memory_not_equal(costs[0], costs[2], sizeof costs[0]);
    stage_close(stage);
}

static void the_mean_of_many_recurrences_is_what_is_expected(void **state)
{
    (void)state;
    struct stage *stage = stage_open("toy", &run_8, 1, RECURRENCES_MAX);
    struct wg_training_costs costs;
    wg__training_costs(stage->cases[0], 0.5, &costs);
    for (size_t arm = 0; arm < 3; arm++) {
        use_fixed(stage, arm, 1);
        stage_replay(stage, 1);
        const struct wg_training_bill expected =
            wg__training_expected(stage->cases[0], &costs, 0.5, arm, 1);
        double cost_j = 0, energy_j = 0, time_s = 0;
        for (size_t i = 0; i < RECURRENCES_MAX; i++) {
            cost_j += stage->cost_j[i] / (double)RECURRENCES_MAX;
            energy_j += stage->energy_j[i] / (double)RECURRENCES_MAX;
            time_s += stage->time_s[i] / (double)RECURRENCES_MAX;
        }
        /* The attempts of batch size 32 are geometric: 16 +- 14 epochs, so 0.6 % is one standard
         * error. */
        check_close(cost_j, expected.cost_j, 0.025);
        check_close(energy_j, expected.energy_j, 0.025);
        check_close(time_s, expected.time_s, 0.025);
    }
    stage_close(stage);
}

static void keeps_as_many_decision_times_as_there_is_room_for(void **state)
{
    (void)state;
    struct stage *stage = stage_open("toy", &run_8_at_200_w, 1, 20);
    stage->record.decision_capacity = 3;
    stage_replay(stage, 1);
    assert_int_equal(stage->record.decisions, 20);
    for (size_t i = 0; i < 3; i++)
        assert_true(stage->decision_us[i] > 0 && stage->decision_us[i] < 1e7F);
    check_close((double)stage->decision_us[3], 0, 0);
    stage_close(stage);
}

static void reports_a_policy_that_cannot_be_made(void **state)
{
    (void)state;
    struct stage *stage = stage_open("toy", &run_8, 1, 1);
    use_fixed(stage, 3, 0);
    assert_int_equal(
        wg__training_replay(&stage->setup, &stage->rules, 1, 7, &stage->record, &stage->err),
        WG_EINVAL);
    check_says(stage->err, "policy fixed");
    stage_close(stage);
}

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    struct stage *stage = stage_open("toy-16", &run_16, 1, 3);
    stage->cases[2] = tiny_case(&stage->tiny, "tiny", "toy-16");
    stage->setup.warm = stage->cases[2];
    stage->setup.warm_recurrences = 3;
    stage->rules.concurrency = 2;
    enum wg_code code = WG_ENOMEM;
    size_t failures = 0;
    for (size_t nth = 1; code != WG_OK; nth++) {
        wg__alloc_fail_from(nth);
        code = wg__training_replay(&stage->setup, &stage->rules, 1, 7, &stage->record, &stage->err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        failures++;
    }
    assert_true(failures >= 5);
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(charges_the_first_epoch_of_a_new_batch_size_at_the_mean_over_limits),
        cmocka_unit_test(tells_the_profile_once),
        cmocka_unit_test(does_not_profile_at_a_given_limit),
        cmocka_unit_test(pays_for_a_failed_attempt_and_goes_on),
        cmocka_unit_test(stops_an_attempt_when_the_policy_says_so),
        cmocka_unit_test(shows_the_metric_that_the_run_has_reached),
        cmocka_unit_test(gives_up_after_too_many_attempts_and_pays_the_default),
        cmocka_unit_test(charges_seconds_per_probed_limit),
        cmocka_unit_test(charges_a_run_that_ends_while_probing_its_share),
        cmocka_unit_test(probes_with_noise_that_depends_on_the_seed),
        cmocka_unit_test(charges_surveys),
        cmocka_unit_test(a_job_that_drifts_costs_what_it_has_become),
        cmocka_unit_test(learns_on_another_gpu_first),
        cmocka_unit_test(keeps_several_runs_in_flight),
        cmocka_unit_test(retries_and_gives_up_in_flight_too),
        cmocka_unit_test(every_policy_meets_the_same_luck),
        cmocka_unit_test(luck_depends_on_seed_and_case),
        cmocka_unit_test(the_mean_of_many_recurrences_is_what_is_expected),
        cmocka_unit_test(keeps_as_many_decision_times_as_there_is_room_for),
        cmocka_unit_test(reports_a_policy_that_cannot_be_made),
        cmocka_unit_test(survives_every_failed_allocation),
    };
    return run_tests(tests);
}
