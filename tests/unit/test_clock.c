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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_goes_back),
        cmocka_unit_test(reads_the_monotonic_clock_in_nanoseconds),
    };
    return run_tests(tests);
}
