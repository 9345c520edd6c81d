/* SPDX-License-Identifier: MIT
 *
 * The clock never goes back, and counts the seconds that the system counts.
 */
#include "base/clock.h"

#include <time.h>

#include "support/check.h"

static void never_goes_back(void **state)
{
    (void)state;
    uint64_t last = wg__clock_ns();
    for (int i = 0; i < 10000; i++) {
        const uint64_t now = wg__clock_ns();
        assert_true(now >= last);
        last = now;
    }
}

static void reads_the_monotonic_clock_in_nanoseconds(void **state)
{
    (void)state;
    struct timespec before;
    struct timespec after;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &before), 0);
    const uint64_t now = wg__clock_ns();
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &after), 0);
    assert_true(now >= (uint64_t)before.tv_sec * 1000000000U + (uint64_t)before.tv_nsec);
    assert_true(now <= (uint64_t)after.tv_sec * 1000000000U + (uint64_t)after.tv_nsec);
}

static void offsets_lead_from_one_clock_to_the_others(void **state)
{
    (void)state;
    int64_t sleep_ns, wall_ns;
    wg__clock_offsets(&sleep_ns, &wall_ns);
    struct timespec wall;
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &wall), 0);
    assert_true(sleep_ns >= 0);
    const double sum_s = ((double)wg__clock_ns() + (double)sleep_ns + (double)wall_ns) * 1e-9;
    check_close_abs(sum_s, (double)wall.tv_sec + 1e-9 * (double)wall.tv_nsec, 0, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_goes_back),
        cmocka_unit_test(reads_the_monotonic_clock_in_nanoseconds),
        cmocka_unit_test(offsets_lead_from_one_clock_to_the_others),
    };
    return run_tests(tests);
}
