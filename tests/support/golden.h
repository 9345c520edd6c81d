/* SPDX-License-Identifier: MIT
 *
 * Paths of tests/golden, which a test finds from anywhere.
 *
 * Threads: one thread at a time.
 */
#ifndef WG_TESTS_SUPPORT_GOLDEN_H
#define WG_TESTS_SUPPORT_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>

/* Valid until the next call. */
static inline const char *golden_path(const char *name)
{
    static char path[512];
    const char *root = getenv("WATTGOV_SOURCE_ROOT");
    (void)snprintf(path, sizeof path, "%s/tests/golden/%s", root != NULL ? root : ".", name);
    return path;
}

#endif
