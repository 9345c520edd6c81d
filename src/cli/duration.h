/* SPDX-License-Identifier: MIT
 *
 * Spans of time as people write them: "100ms", "2s", "1.5m", "1h".
 *
 * The unit must be there: a bare number would be read as seconds by one and as milliseconds by
 * another.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_CLI_DURATION_H
#define WG_CLI_DURATION_H

#include <stdbool.h>

/* The whole of `text` as a span in seconds; false when it is anything else, or negative. */
bool wg__parse_duration(const char *text, double *seconds_out);

enum { WG_DURATION_TEXT_SIZE = 40 };

/* Writes a span that reads back to the same one, in the unit that makes it shortest: 0.1 is
 * "100ms", 90 "90s", 120 "2m". */
void wg__format_duration(char out[static WG_DURATION_TEXT_SIZE], double seconds);

#endif
