/* SPDX-License-Identifier: MIT
 *
 * What a command printed, as figures.
 */
#include "live/workload_figures.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "live/workload_command.h"
#include "support/check.h"

static struct wg_workload_sample sample; /* too large for some stacks under sanitizers */

static enum wg_code parse(const char *text, struct wg_error *err)
{
    return wg__workload_figures_parse(text, strlen(text), &sample, err);
}

static void expect(const char *name, double value)
{
    const struct wg_workload_figure *figure = wg__workload_figure_find(&sample, name);
    if (figure == NULL)
        fail_msg("there is no figure '%s'", name);
    check_close_abs(figure->value, value, 1e-12, 1e-15);
}

static void takes_the_last_line_that_is_an_object(void **state)
{
    (void)state;
    struct wg_error err;
    assert_int_equal(parse("hello\n{\"a\": 1}\n  {\"a\": 2, \"requests\": 7}\nbye {}\n", &err),
                     WG_OK);
    expect("a", 2);
    check_close(sample.requests, 7, 0);
    assert_int_equal(sample.figure_count, 2);
}

static void takes_an_object_over_several_lines(void **state)
{
    (void)state;
    struct wg_error err;
    assert_int_equal(
        parse("\n{\n \"a\": {\"b\": {\"c\": 3}},\n \"ok\": true, \"t\": \"text\"\n}\n", &err),
        WG_OK);
    expect("a.b.c", 3);
    expect("ok", 1);
    assert_int_equal(sample.figure_count, 2);
    assert_true(isnan(sample.requests));
}

static void gives_errors_to_their_figures(void **state)
{
    (void)state;
    struct wg_error err;
    assert_int_equal(parse("{\"p99_s\": 0.5, \"p99_s_error\": 0.01, \"other_error\": 2}", &err),
                     WG_OK);
    check_close(wg__workload_figure_find(&sample, "p99_s")->error, 0.01, 1e-12);
    assert_null(wg__workload_figure_find(&sample, "p99_s_error"));
    expect("other_error", 2); /* of no figure: one of its own */
}

static void makes_percentiles_of_columns(void **state)
{
    (void)state;
    struct wg_error err;
    assert_int_equal(parse("latency_s,tokens\n1,10\n3,30\n2,20\n", &err), WG_OK);
    expect("latency_s", 2);
    expect("mean_s", 2);
    expect("p50_s", 2);
    expect("p99_s", 2.98); /* linear between the sorted values */
    expect("tokens", 60);
    expect("tokens_p50", 20);
    expect("rows", 3);
    check_close(sample.requests, 3, 0);
}

/* 2, 3 and 4 J of three requests are 9 J of the run, however they are told. */
static void sums_what_rows_have_parts_of(void **state)
{
    (void)state;
    static const char *const totals[] = {"energy_j", "requests", "busy_s", "time_s", "tokens"};
    struct wg_error err;
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "latency_s,%s\n1,2\n1,3\n1,4\n", totals[i]);
        assert_int_equal(parse(text, &err), WG_OK);
        expect(totals[i], 9);
        (void)snprintf(text, sizeof text, "{\"%s\": [2, 3, 4], \"accuracy\": [2, 3, 4]}",
                       totals[i]);
        assert_int_equal(parse(text, &err), WG_OK);
        expect(totals[i], 9);
        expect("accuracy", 3); /* all else has no sum */
    }
}

static void takes_one_row_as_it_is(void **state)
{
    (void)state;
    struct wg_error err;
    assert_int_equal(parse("p99_s,requests\r\n0.25,40\r\n", &err), WG_OK);
    expect("p99_s", 0.25);
    check_close(sample.requests, 40, 0);
    assert_int_equal(sample.figure_count, 2);
}

static void takes_a_list_for_a_column_and_what_is_told_wins(void **state)
{
    (void)state;
    struct wg_error err;
    assert_int_equal(parse("{\"latency_s\": [1, 2, 3], \"x\": [1, \"a\"], \"requests\": 9}", &err),
                     WG_OK);
    expect("p50_s", 2);
    assert_null(wg__workload_figure_find(&sample, "x"));
    check_close(sample.requests, 9, 0);
}

static void refuses_what_has_no_figures(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {{"", "printed nothing"},
                 {"  \n", "printed nothing"},
                 {"done", "no figures in what it printed: 'done'"},
                 {"a,b\n1,x\n", "'x' is not a number"},
                 {"all is\nwell\n", "is not a number"},
                 {"{\"a\": \"b\"}", "no figures"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wg_error err = {0};
        assert_int_equal(parse(cases[i].text, &err), WG_EDATA);
        if (strstr(err.text, cases[i].message) == NULL)
            fail_msg("'%s' says: %s", cases[i].text, err.text);
    }
}

static void survives_a_lack_of_memory(void **state)
{
    (void)state;
    const char *text = "latency_s\n1\n2\n3\n";
    for (size_t nth = 1;; nth++) {
        struct wg_error err;
        wg__alloc_fail_from(nth);
        const enum wg_code code = parse(text, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        assert_true(nth < 100);
    }
    expect("p50_s", 2);
}

static void knows_the_words_of_a_lack_of_memory(void **state)
{
    (void)state;
    assert_true(wg__workload_is_out_of_memory("torch.OutOfMemoryError: CUDA out of memory.", 1));
    assert_true(wg__workload_is_out_of_memory("terminate: what(): std::bad_alloc", 134));
    assert_true(wg__workload_is_out_of_memory("CUDA_ERROR_OUT_OF_MEMORY", 1));
    assert_true(wg__workload_is_out_of_memory("", 137));
    assert_false(wg__workload_is_out_of_memory("Segmentation fault", 139));
    assert_false(wg__workload_is_out_of_memory("", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_last_line_that_is_an_object),
        cmocka_unit_test(takes_an_object_over_several_lines),
        cmocka_unit_test(gives_errors_to_their_figures),
        cmocka_unit_test(makes_percentiles_of_columns),
        cmocka_unit_test(sums_what_rows_have_parts_of),
        cmocka_unit_test(takes_one_row_as_it_is),
        cmocka_unit_test(takes_a_list_for_a_column_and_what_is_told_wins),
        cmocka_unit_test(refuses_what_has_no_figures),
        cmocka_unit_test(survives_a_lack_of_memory),
        cmocka_unit_test(knows_the_words_of_a_lack_of_memory),
    };
    return run_tests(tests);
}
