/* SPDX-License-Identifier: MIT
 *
 * The front of cost against a limited figure, by hand.
 */
#include "cli/front_plot.h"

#include <string.h>

#include "base/buffer.h"
#include "cli/page.h"
#include "support/check.h"

enum { COUNT = 7 };

static const struct wg_front_point points[COUNT] = {
    {.figure = 3, .cost = 5, .counts = true, .label = "a"},
    {.figure = 1, .cost = 9, .counts = true, .label = "b"},
    {.figure = 2, .cost = 9.5, .counts = true, .label = "dearer than b"},
    {.figure = 3, .cost = 4, .counts = true, .label = "c"},
    {.figure = 2, .cost = 1, .counts = false, .label = "counts not"},
    {.figure = NAN, .cost = 1, .counts = true, .label = "unknown"},
    {.figure = 4, .cost = 3, .counts = true, .group = 1, .label = "d"},
};

static void is_the_least_cost_up_to_each_figure(void **state)
{
    (void)state;
    size_t order[COUNT];
    double x[COUNT], y[COUNT];
    const size_t count = wg__front_trace(points, COUNT, false, order, x, y);
    assert_int_equal(count, 3);
    const double expected[][2] = {{1, 9}, {3, 4}, {4, 3}};
    for (size_t i = 0; i < 3; i++) {
        check_close(x[i], expected[i][0], 0);
        check_close(y[i], expected[i][1], 0);
    }
}

/* Of a limit that is a minimum, more is stricter: 4 costs 3, and nothing below is cheaper. */
static void goes_the_other_way_for_a_minimum(void **state)
{
    (void)state;
    size_t order[COUNT];
    double x[COUNT], y[COUNT];
    assert_int_equal(wg__front_trace(points, COUNT, true, order, x, y), 1);
    check_close(x[0], 4, 0);
    check_close(y[0], 3, 0);
    assert_int_equal(wg__front_trace(points, 0, true, order, x, y), 0);
}

static void draws_groups_front_and_what_is_allowed(void **state)
{
    (void)state;
    static const struct wg_front_group groups[] = {
        {"first", WG_PLOT_BLUE}, {"second", WG_PLOT_GREY}, {"none of these", WG_PLOT_GREEN}};
    struct wg_buffer text;
    struct wg_page page;
    wg__buffer_init(&text);
    wg__page_begin(&page, &text, "Front", NULL);
    wg__page_figures_begin(&page);
    const struct wg_front front = {.title = "Front",
                                   .groups = groups,
                                   .group_count = 3,
                                   .points = points,
                                   .point_count = COUNT,
                                   .bound = 3.5};
    wg__front_figure(&page, &front, "caption");
    wg__page_figures_end(&page);
    wg__page_end(&page, NULL);
    assert_false(text.failed);
    assert_non_null(strstr(text.data, ">first<"));
    assert_non_null(strstr(text.data, ">second<"));
    assert_null(strstr(text.data, "none of these"));
    assert_null(strstr(text.data, "unknown"));
    assert_non_null(strstr(text.data, "counts not"));
    assert_non_null(strstr(text.data, "<rect class=\"b\""));
    wg__buffer_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_least_cost_up_to_each_figure),
        cmocka_unit_test(goes_the_other_way_for_a_minimum),
        cmocka_unit_test(draws_groups_front_and_what_is_allowed),
    };
    return run_tests(tests);
}
