/* SPDX-License-Identifier: MIT
 *
 * Dimensions as tools write them: "9x32x1", "(9, 32, 1)", "9,32,1", "9 32 1", "[9,32]".
 *
 * Threads: pure, any thread.
 */
#ifndef WG_MODEL_LAUNCH_DIMS_H
#define WG_MODEL_LAUNCH_DIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WG_LAUNCH_DIMS = 3 };

/* One to three whole numbers from 1 to 2^31 - 1, what a launch may have; those left out are 1.
 * `*count` (may be NULL): how many were there. false: something else; `out` is not written then. */
bool wg__launch_dims_parse(const char *text, uint64_t out[WG_LAUNCH_DIMS], size_t *count);

#endif
