/* SPDX-License-Identifier: MIT
 *
 * The moment in one JSON object, as traces of language-model services have one a line:
 *
 *     {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}
 *
 * Threads: pure, any thread.
 */
#ifndef WG_SCHEDULE_ARRIVAL_JSON_H
#define WG_SCHEDULE_ARRIVAL_JSON_H

#include <stddef.h>

enum { WG_ARRIVAL_JSON_WHY_SIZE = 160 };

/* Seconds from `arrival_s` or `timestamp_s`, else `timestamp`, which Mooncake's traces have in
 * milliseconds. NULL, or what is wrong, in `why`. */
const char *wg__arrival_json_moment(const char *text, size_t length, double *out,
                                    char why[WG_ARRIVAL_JSON_WHY_SIZE]);

#endif
