/* SPDX-License-Identifier: MIT
 *
 * The version of the library.
 *
 *     printf("libwattgov %s\n", wg_version());
 *
 * Threads: pure, any thread.
 */
#ifndef WATTGOV_VERSION_H
#define WATTGOV_VERSION_H

#include "wattgov/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0": of the library that runs, not of the headers that were compiled against. */
WG_API const char *wg_version(void);

#ifdef __cplusplus
}
#endif

#endif
