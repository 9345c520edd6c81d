/* SPDX-License-Identifier: MIT
 *
 * Tests of the chart of named values (cli/bar_chart.h).
 */
#include "cli/bar_chart.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "support/check.h"
#include "support/xml.h"

static void write_chart(const struct wg_bar *bars, size_t count, struct wg_buffer *out)
{
    const struct wg_bar_chart chart = {
        .title = "a <b> & c", .x_title = "x, %", .bars = bars, .bar_count = count};
    wg__buffer_init(out);
    wg__bar_chart_write(&chart, out);
}

/* The number behind `key` in the nth <rect. */
static double attribute(const char *text, size_t nth, const char *key)
{
    const char *at = text;
    for (size_t i = 0; i <= nth; i++) {
        at = strstr(at + 1, "<rect ");
        if (at == NULL)
            fail_msg("no bar %zu", nth);
    }
    at = strstr(at, key);
    return at != NULL ? strtod(at + strlen(key), NULL) : (double)NAN;
}

static void lengths_are_as_the_values(void **state)
{
    (void)state;
    const double none = (double)NAN;
    const struct wg_bar bars[] = {{"one", 10, none, none, "10 %", WG_PLOT_BLUE, 0},
                                  {"two", 40, 30, 50, "40 %", WG_PLOT_GREY, 0},
                                  {"zero", 0, none, none, "0 %", WG_PLOT_GREEN, 0},
                                  {"none", none, none, none, "-", WG_PLOT_GREEN, 0}};
    struct wg_buffer out;
    write_chart(bars, 4, &out);
    assert_false(out.failed);
    check_well_formed(out.data);
    assert_int_equal(count_of(out.data, "<rect "), 3);
    assert_int_equal(count_of(out.data, "<path "), 1); /* the interval */
    const double one = attribute(out.data, 0, "width=\"");
    const double two = attribute(out.data, 1, "width=\"");
    assert_true(one > 10);
    check_close_abs(two, 4 * one, 0, 0.3);
    check_close_abs(attribute(out.data, 2, "width=\""), 0, 0, 0);
    check_close_abs(attribute(out.data, 0, " x=\""), attribute(out.data, 1, " x=\""), 0, 0);
    assert_non_null(strstr(out.data, "a &lt;b&gt; &amp; c"));
    assert_non_null(strstr(out.data, ">40 %</text>"));
    assert_null(strstr(out.data, "nan"));
    wg__buffer_fini(&out);
}

static void what_could_be_saved_is_the_pale_end(void **state)
{
    (void)state;
    const double none = (double)NAN;
    const struct wg_bar bars[] = {{"whole", 40, none, none, "40", WG_PLOT_BLUE, 0},
                                  {"part", 40, none, none, "40", WG_PLOT_BLUE, 10},
                                  {"too much", 40, none, none, "40", WG_PLOT_BLUE, 41},
                                  {"unknown", 40, none, none, "40", WG_PLOT_BLUE, none}};
    struct wg_buffer out;
    write_chart(bars, 4, &out);
    check_well_formed(out.data);
    assert_int_equal(count_of(out.data, "<rect "), 5);
    assert_int_equal(count_of(out.data, "fill-opacity=\".3\""), 1);
    const double whole = attribute(out.data, 0, "width=\"");
    check_close_abs(attribute(out.data, 1, "width=\""), 0.75 * whole, 0, 0.2);
    check_close_abs(attribute(out.data, 2, "width=\""), 0.25 * whole, 0, 0.2);
    check_close_abs(attribute(out.data, 2, " x=\""), attribute(out.data, 1, " x=\"") + 0.75 * whole,
                    0, 0.2);
    check_close_abs(attribute(out.data, 3, "width=\""), whole, 0, 0);
    wg__buffer_fini(&out);
}

static void long_labels_leave_room_for_bars(void **state)
{
    (void)state;
    const double none = (double)NAN;
    const struct wg_bar bars[] = {
        {"a name that is much longer than the whole chart is wide, which happens with layers", 40,
         none, none, "40", WG_PLOT_BLUE, 0}};
    struct wg_bar_chart chart = {.title = "t", .x_title = "x", .bars = bars, .bar_count = 1};
    struct wg_buffer out;
    double widths[2];
    for (size_t i = 0; i < 2; i++) {
        chart.width = i == 0 ? 0 : 720;
        wg__buffer_init(&out);
        wg__bar_chart_write(&chart, &out);
        check_well_formed(out.data);
        assert_non_null(strstr(out.data, i == 0 ? "0 0 360 " : "0 0 720 "));
        assert_null(strstr(out.data, "happens with layers"));
        widths[i] = attribute(out.data, 0, "width=\"");
        wg__buffer_fini(&out);
    }
    assert_true(widths[0] > 0.4 * 360);
    assert_true(widths[1] > 0.4 * 720);
}

static void nothing_to_show_is_no_harm(void **state)
{
    (void)state;
    struct wg_buffer out;
    write_chart(NULL, 0, &out);
    check_well_formed(out.data);
    wg__buffer_fini(&out);
    const struct wg_bar bars[] = {{"none", (double)INFINITY, (double)NAN, 3, "-", WG_PLOT_GREEN, 0},
                                  {"below", -1, -2, 0, "-1", WG_PLOT_GREEN, 0}};
    write_chart(bars, 2, &out);
    check_well_formed(out.data);
    assert_int_equal(count_of(out.data, "<rect "), 0);
    assert_null(strstr(out.data, "nan"));
    assert_null(strstr(out.data, "inf"));
    wg__buffer_fini(&out);
}

static void memory_that_runs_out_is_remembered(void **state)
{
    (void)state;
    const struct wg_bar bars[] = {{"one", 10, 9, 11, "10 %", WG_PLOT_BLUE, 0}};
    struct wg_buffer out;
    wg__alloc_fail_from(1);
    write_chart(bars, 1, &out);
    wg__alloc_fail_from(0);
    assert_true(out.failed);
    wg__buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_as_the_values),
        cmocka_unit_test(what_could_be_saved_is_the_pale_end),
        cmocka_unit_test(long_labels_leave_room_for_bars),
        cmocka_unit_test(nothing_to_show_is_no_harm),
        cmocka_unit_test(memory_that_runs_out_is_remembered),
    };
    return run_tests(tests);
}
