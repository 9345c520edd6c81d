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

static uint64_t read_ns(clockid_t id)
{
    struct timespec now = {0};
    (void)clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

uint64_t wg__clock_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t wg__clock_thread_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

double wg__clock_wall_s(void)
{
    return (double)read_ns(CLOCK_REALTIME) / 1e9;
}

void wg__clock_offsets(int64_t *sleep_ns_out, int64_t *wall_ns_out)
{
    const uint64_t monotonic_ns = read_ns(CLOCK_MONOTONIC);
    const uint64_t boot_ns = read_ns(CLOCK_BOOTTIME);
    *sleep_ns_out = (int64_t)(boot_ns - monotonic_ns);
    *wall_ns_out = (int64_t)(read_ns(CLOCK_REALTIME) - boot_ns);
}
