/* SPDX-License-Identifier: MIT
 *
 * Running sums over time: measure/line.c.
 */
#include "measure/line.h"

#include "base/rng.h"
#include "support/check.h"

static void append(struct wg_line *line, uint64_t t_ns, double sum, double error, double bend)
{
    const struct wg_line_point point = {
        .t_ns = t_ns, .sums = {sum, 2 * sum}, .error = error, .bend = bend};
    wg__line_append(line, &point);
}

static void is_straight_between_points(void **state)
{
    (void)state;
    struct wg_line line;
    wg__line_init(&line);
    assert_null(wg__line_last(&line));
    assert_false(wg__line_reaches(&line, 0));
    append(&line, 1000, 10, 1, 0);
    append(&line, 3000, 30, 3, 0);
    struct wg_line_moment moment;
    wg__line_at(&line, 1500, &moment);
    check_close(moment.sums[0], 15, 1e-12);
    check_close(moment.sums[1], 30, 1e-12);
    check_close(moment.error, 1.5, 1e-12);
    assert_int_equal(moment.stretch_ns, 2000);
    assert_int_equal(moment.begin_ns, 1000);
    assert_int_equal(moment.distance_ns, 0);
    assert_true(wg__line_reaches(&line, 3000));
    assert_false(wg__line_reaches(&line, 3001));
}

static void outside_it_stays_at_its_ends_and_says_how_far(void **state)
{
    (void)state;
    struct wg_line line;
    wg__line_init(&line);
    append(&line, 1000, 10, 0, 0);
    struct wg_line_moment moment;
    wg__line_at(&line, 900, &moment);
    check_close(moment.sums[0], 10, 0);
    assert_int_equal(moment.distance_ns, 100);
    append(&line, 2000, 20, 0, 0);
    wg__line_at(&line, 2500, &moment);
    check_close(moment.sums[0], 20, 0);
    assert_int_equal(moment.distance_ns, 500);
    assert_int_equal(moment.stretch_ns, 0);
}

static void a_bend_is_worst_in_the_middle(void **state)
{
    (void)state;
    struct wg_line line;
    wg__line_init(&line);
    append(&line, 1000000000, 0, 0, 0);
    append(&line, 2000000000, 100, 0, 200); /* 1 s, may step by 200 W */
    struct wg_line_moment moment;
    wg__line_at(&line, 1500000000, &moment);
    check_close(moment.error, 50, 1e-12); /* 200 W x 1 s / 4 */
    wg__line_at(&line, 1000000000, &moment);
    check_close_abs(moment.error, 0, 0, 1e-12);
}

static void keeps_the_last_points_of_many(void **state)
{
    (void)state;
    struct wg_line line;
    wg__line_init(&line);
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    for (uint64_t i = 1; i <= 10ULL * WG_LINE_POINTS; i++)
        append(&line, i * 1000, 3.0 * (double)i, 0, 0);
    const uint64_t newest = 1000ULL * 10 * WG_LINE_POINTS;
    const uint64_t oldest = newest - 1000ULL * (WG_LINE_POINTS - 1);
    for (int i = 0; i < 1000; i++) {
        const uint64_t t_ns = oldest + wg__rng_u32(&rng) % (newest - oldest + 1);
        struct wg_line_moment moment;
        wg__line_at(&line, t_ns, &moment);
        check_close(moment.sums[0], 3e-3 * (double)t_ns, 1e-12);
    }
    struct wg_line_moment moment;
    wg__line_at(&line, 5, &moment);
    check_close(moment.sums[0], 3e-3 * (double)oldest, 1e-12);
    assert_int_equal(moment.distance_ns, oldest - 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_straight_between_points),
        cmocka_unit_test(outside_it_stays_at_its_ends_and_says_how_far),
        cmocka_unit_test(a_bend_is_worst_in_the_middle),
        cmocka_unit_test(keeps_the_last_points_of_many),
    };
    return run_tests(tests);
}
