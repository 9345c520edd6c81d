/* SPDX-License-Identifier: MIT
 *
 * Monotonic time.
 *
 * CLOCK_MONOTONIC never jumps when somebody sets the date, which is all that measuring a duration
 * needs. Linux always has this clock, so there is no failure to report.
 *
 * Owns: nothing.    Threads: any thread.
 */
#include "base/clock.h"

#include <time.h>

uint64_t wg__clock_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}
