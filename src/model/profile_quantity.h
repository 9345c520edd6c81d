/* SPDX-License-Identifier: MIT
 *
 * Numbers and units as NVIDIA's tools print them.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_MODEL_PROFILE_QUANTITY_H
#define WG_MODEL_PROFILE_QUANTITY_H

#include <stdbool.h>

/* A number that is not negative, with commas between thousands or without ("1,234.5"); false: it is
 * none. */
bool wg__quantity_parse(const char *text, double *out);

/* Seconds of "ns", "nsec", "nsecond", "us", "usecond", "ms", "msecond", "s", "second"; 0: none. */
double wg__quantity_time_unit(const char *unit);

/* Bytes of "byte", "byte/block", "Kbyte", "KB", "Mbyte", "MB", "KiB", "MiB", "B"; 0: none. */
double wg__quantity_memory_unit(const char *unit);

#endif
