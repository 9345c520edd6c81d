/* SPDX-License-Identifier: MIT
 *
 * Monotonic time for measuring how long wattgov itself takes.
 *
 * Threads: any thread.
 */
#ifndef WG_BASE_CLOCK_H
#define WG_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t wg__clock_ns(void);

/* Nanoseconds of processor time that the calling thread has used: how long something takes that
 * shares the processor with others. */
uint64_t wg__clock_thread_ns(void);

/* Seconds since 1970, by the wall clock: for what outlives the machine's boot. */
double wg__clock_wall_s(void);

/* The other clocks beside it: how long the machine has slept since it started (CLOCK_BOOTTIME less
 * CLOCK_MONOTONIC), and where the wall clock stands (CLOCK_REALTIME less CLOCK_BOOTTIME: it jumps
 * when somebody sets the date). */
void wg__clock_offsets(int64_t *sleep_ns_out, int64_t *wall_ns_out);

#endif
