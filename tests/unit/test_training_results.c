/* SPDX-License-Identifier: MIT
 *
 * Tests of the results of training studies as JSON, CSV, text and HTML, from studies of the tiny
 * trace. What the program writes as a whole is in tests/integration/cli.py.
 */
#include "cli/training_results.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/report_training.h"
#include "support/study.h"
#include "support/xml.h"

static void check_energy(double value, double typical, const char *expected)
{
    char text[WG_QUANTITY_BYTES];
    wg__format_in(text, value, wg__unit_of_energy(typical));
    assert_string_equal(text, expected);
}

static void check_time(double value, double typical, const char *expected)
{
    char text[WG_QUANTITY_BYTES];
    wg__format_in(text, value, wg__unit_of_time(typical));
    assert_string_equal(text, expected);
}

static void check_share(double share, const char *expected)
{
    char text[WG_QUANTITY_BYTES];
    wg__format_share(text, share);
    assert_string_equal(text, expected);
}

static void quantities_have_four_digits_and_one_unit(void **state)
{
    (void)state;
    check_energy(643.44e6, 643.44e6, "643.4 MJ");
    check_energy(1641.3e6, 1641.3e6, "1641 MJ");
    check_energy(2.8484e6, 11e6, "2.848 MJ"); /* beside 11 MJ, not 2848 kJ */
    check_energy(6e9, 6e9, "6.000 GJ");
    check_energy(4999, 4999, "4999 J");
    check_energy(5000, 5000, "5.000 kJ");
    check_energy(0, 0, "0.000 J");
    check_time(599, 599, "599.0 s");
    check_time(3480, 3480, "58.00 min");
    check_time(1356.8 * 3600, 1356.8 * 3600, "1357 h");
}

static void shares_have_no_negative_zero(void **state)
{
    (void)state;
    check_share(0.2345, "23.4 %");
    check_share(-0.016, "-1.6 %");
    check_share(-0.0001, "0.0 %");
    check_share(0, "0.0 %");
}

/* The tiny job under all policies. */
struct fixture {
    struct tiny tiny;
    struct wg_study_request request;
    struct wg_study *study;
    struct wg_buffer out;
};

static const char *const toy = "toy";

static void fixture_open(struct fixture *fixture)
{
    tiny_open(&fixture->tiny);
    fixture->request = request_of_toy(&fixture->tiny, &toy);
    fixture->study = run(&fixture->request);
    wg__buffer_init(&fixture->out);
}

static void fixture_close(struct fixture *fixture)
{
    wg__buffer_fini(&fixture->out);
    wg__study_free(fixture->study);
    tiny_close(&fixture->tiny);
}

static void check_has(const struct fixture *fixture, const char *part)
{
    assert_false(fixture->out.failed);
    if (strstr(fixture->out.data, part) == NULL)
        fail_msg("'%s' is missing", part);
}

static void json_says_what_was_asked_for(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    wg__training_json(fixture.study, &fixture.request, &fixture.out);
    check_has(&fixture, "{\"schema\":\"wattgov.simulate.training/1\",\"cases\":[{\"gpu\":\"toy\","
                        "\"job\":\"toy\",\"policy\":\"default\",\"recurrences\":20,\"seeds\":4,");
    check_has(&fixture, "\"default\":{\"batch_size\":8,\"power_limit_w\":200,\"energy_j\":128000,"
                        "\"time_s\":800,\"cost_j\":144000}");
    check_has(&fixture, "\"oracle\":{\"batch_size\":16,\"power_limit_w\":100,");
    check_has(&fixture, "\"batch_sizes\":[8,16,32],\"left_out\":[64]");
    check_has(&fixture, "\"profile_charge\":\"epoch\",\"profile_seconds\":null,");
    check_has(&fixture, "\"drift_job\":null,\"drift_at\":null,\"warm_start\":null}");
    fixture_close(&fixture);
}

static void csv_quotes_names_that_need_it(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture.study->worlds[0].job = "a \"b\",c";
    wg__training_csv(fixture.study, &fixture.out);
    check_has(&fixture, "\ntoy,\"a \"\"b\"\",c\",default,1,7200,7200,7200,7200,5220\n");
    fixture_close(&fixture);
}

static void tables_name_every_policy(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    wg__training_text(fixture.study, &fixture.request, false, &fixture.out);
    check_has(&fixture, "toy: 20 recurrences, mean of 4 seeds, eta 0.5\n");
    check_has(&fixture, "1 case: ");
    for (size_t i = 0; i < 5; i++)
        check_has(&fixture, all_policies[i]);
    check_has(&fixture, "toy  default      8  200 W  128.0 kJ");
    fixture_close(&fixture);
}

static void the_report_is_well_formed_and_complete(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    fixture.study->worlds[0].metric = "<accuracy> & \"more\"";
    wg__report_training(fixture.study, &fixture.request, "wattgov 'a b' <c>", &fixture.out);
    assert_false(fixture.out.failed);
    check_well_formed(fixture.out.data);
    check_has(&fixture, "energy with wattgov than with the default");
    check_has(&fixture, "cost than with Zeus");
    check_has(&fixture, "Trained, but not measured on this GPU: batch size 64.");
    check_has(&fixture, "Batch sizes that grid chose");
    check_has(&fixture, "Energy and time of a recurrence");
    fixture_close(&fixture);
}

static void a_report_of_yardsticks_alone_is_well_formed(void **state)
{
    (void)state;
    struct fixture fixture;
    tiny_open(&fixture.tiny);
    fixture.request = request_of_toy(&fixture.tiny, &toy);
    fixture.request.policies = yardsticks;
    fixture.request.policy_count = 2;
    fixture.request.rules.recurrences = 1;
    fixture.request.seeds = 1;
    fixture.study = run(&fixture.request);
    wg__buffer_init(&fixture.out);
    wg__report_training(fixture.study, &fixture.request, NULL, &fixture.out);
    assert_false(fixture.out.failed);
    check_well_formed(fixture.out.data);
    wg__buffer_fini(&fixture.out);
    wg__training_text(fixture.study, &fixture.request, true, &fixture.out);
    check_has(&fixture, "toy: 1 recurrence, mean of 1 seed, eta 0.5\n");
    fixture_close(&fixture);
}

/* toy-slow with a third of toy's epochs: the default needs four. */
static void a_default_that_a_drift_makes_useless_stays_the_default(void **state)
{
    (void)state;
    struct fixture fixture;
    static const char *const names[] = {"default", "grid"};
    tiny_open(&fixture.tiny);
    for (size_t i = 0; i < fixture.tiny.jobs->count; i++)
        if (strcmp(fixture.tiny.jobs->jobs[i].name, "toy-slow") == 0)
            fixture.tiny.jobs->jobs[i].max_epochs = 3;
    fixture.request = request_of_toy(&fixture.tiny, &toy);
    fixture.request.policies = names;
    fixture.request.policy_count = 2;
    fixture.request.drift_job = "toy-slow";
    fixture.request.rules.drift_at = 1;
    fixture.study = run(&fixture.request);
    wg__buffer_init(&fixture.out);
    assert_false(wg__default_reaches(&fixture.study->worlds[0]));
    assert_true(fixture.study->cases[0].final_batch_size != 8);
    wg__training_text(fixture.study, &fixture.request, false, &fixture.out);
    check_has(&fixture, "toy  default      8  200 W");
    check_has(&fixture, "After 1 recurrence each job turns into toy-slow.\n");
    check_has(&fixture, "never reaches the new job's target for: toy on toy.\n"
                        "For each recurrence it is charged 20 attempts in vain");
    wg__buffer_fini(&fixture.out);
    wg__report_training(fixture.study, &fixture.request, NULL, &fixture.out);
    check_well_formed(fixture.out.data);
    check_has(&fixture, "it is charged 20 attempts in vain and then the best setting");
    check_has(&fixture, "Default: batch 8, 200 W (never reaches the target)");
    fixture_close(&fixture);
}

/* The size of a report must not grow with the recurrences, nor its curves miss the last one. */
static void a_long_study_makes_no_longer_report(void **state)
{
    (void)state;
    struct fixture fixture;
    size_t lengths[2];
    for (size_t i = 0; i < 2; i++) {
        tiny_open(&fixture.tiny);
        fixture.request = request_of_toy(&fixture.tiny, &toy);
        fixture.request.rules.recurrences = i == 0 ? 400 : 4000;
        fixture.request.seeds = 1;
        fixture.study = run(&fixture.request);
        wg__buffer_init(&fixture.out);
        wg__report_training(fixture.study, &fixture.request, NULL, &fixture.out);
        assert_false(fixture.out.failed);
        lengths[i] = fixture.out.length;
        fixture_close(&fixture);
    }
    assert_true(lengths[1] < lengths[0] + lengths[0] / 4);
}

static void running_out_of_memory_fails_the_buffer(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture);
    for (size_t writer = 0; writer < 4; writer++) {
        bool failed = true;
        for (size_t nth = 1; failed; nth++) {
            wg__alloc_fail_from(nth);
            if (writer == 0)
                wg__training_json(fixture.study, &fixture.request, &fixture.out);
            else if (writer == 1)
                wg__training_csv(fixture.study, &fixture.out);
            else if (writer == 2)
                wg__training_text(fixture.study, &fixture.request, true, &fixture.out);
            else
                wg__report_training(fixture.study, &fixture.request, NULL, &fixture.out);
            wg__alloc_fail_from(0);
            failed = fixture.out.failed;
            wg__buffer_fini(&fixture.out);
            assert_true(nth < 2000);
        }
    }
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantities_have_four_digits_and_one_unit),
        cmocka_unit_test(shares_have_no_negative_zero),
        cmocka_unit_test(json_says_what_was_asked_for),
        cmocka_unit_test(csv_quotes_names_that_need_it),
        cmocka_unit_test(tables_name_every_policy),
        cmocka_unit_test(the_report_is_well_formed_and_complete),
        cmocka_unit_test(a_report_of_yardsticks_alone_is_well_formed),
        cmocka_unit_test(a_default_that_a_drift_makes_useless_stays_the_default),
        cmocka_unit_test(a_long_study_makes_no_longer_report),
        cmocka_unit_test(running_out_of_memory_fails_the_buffer),
    };
    return run_tests(tests);
}
