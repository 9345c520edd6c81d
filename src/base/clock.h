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

#endif
