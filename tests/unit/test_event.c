/* SPDX-License-Identifier: MIT
 *
 * The next of a few events, against sorting them.
 */
#include "simulate/event.h"

#include "base/rng.h"
#include "support/check.h"

static void nothing_is_next_when_nothing_happens(void **state)
{
    (void)state;
    struct wg_events events;
    double at_s = -1.0;
    wg__events_init(&events);
    assert_int_equal(wg__events_pop(&events, &at_s), WG_EVENTS_MAX);
    check_close(at_s, -1.0, 0.0);
    wg__events_set(&events, 3, 2.0);
    wg__events_set(&events, 3, HUGE_VAL);
    assert_int_equal(wg__events_pop(&events, &at_s), WG_EVENTS_MAX);
}

static void events_of_one_moment_come_in_the_order_of_their_kinds(void **state)
{
    (void)state;
    struct wg_events events;
    double at_s = 0.0;
    wg__events_init(&events);
    wg__events_set(&events, 5, 1.0);
    wg__events_set(&events, 2, 1.0);
    wg__events_set(&events, 7, 0.5);
    wg__events_set(&events, 0, 1.0);
    static const size_t expected[] = {7, 0, 2, 5, WG_EVENTS_MAX};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(wg__events_pop(&events, &at_s), expected[i]);
}

/* A clock that is moved on: what is popped is the least of what was set and never before the last.
 */
static void moments_come_in_order_though_they_are_moved(void **state)
{
    (void)state;
    struct wg_rng rng;
    struct wg_events events;
    double now_s = 0.0;
    wg__rng_init(&rng, 1);
    wg__events_init(&events);
    for (unsigned i = 0; i < 100000; i++) {
        wg__events_set(&events, wg__rng_below(&rng, WG_EVENTS_MAX), now_s + wg__rng_uniform(&rng));
        if (i % 3 == 0)
            wg__events_set(&events, wg__rng_below(&rng, WG_EVENTS_MAX), HUGE_VAL);
        if (i % 2 == 0)
            continue;
        double least_s = HUGE_VAL;
        for (size_t k = 0; k < WG_EVENTS_MAX; k++)
            least_s = fmin(least_s, events.at_s[k]);
        double at_s = HUGE_VAL;
        const size_t kind = wg__events_pop(&events, &at_s);
        assert_true(at_s == least_s);
        if (kind == WG_EVENTS_MAX)
            continue;
        assert_true(at_s >= now_s);
        now_s = at_s;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_next_when_nothing_happens),
        cmocka_unit_test(events_of_one_moment_come_in_the_order_of_their_kinds),
        cmocka_unit_test(moments_come_in_order_though_they_are_moved),
    };
    return run_tests(tests);
}
