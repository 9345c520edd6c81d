/* SPDX-License-Identifier: MIT
 *
 * Streams of arrivals that must open, for tests.
 */
#ifndef WG_TESTS_SUPPORT_ARRIVALS_H
#define WG_TESTS_SUPPORT_ARRIVALS_H

#include "schedule/arrivals.h"
#include "support/check.h"

static inline struct wg_arrivals *open_arrivals(const char *text, uint64_t seed)
{
    struct wg_arrivals *arrivals = NULL;
    struct wg_error err = {0};
    struct wg_rng rng;
    wg__rng_init(&rng, seed);
    if (wg__arrivals_open(&arrivals, text, &rng, &err) != WG_OK)
        fail_msg("'%s' does not open: %s", text, err.text);
    return arrivals;
}

#endif
