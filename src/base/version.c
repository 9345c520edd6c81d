/* SPDX-License-Identifier: MIT
 *
 * The version, which the root meson.build knows alone.
 *
 * Threads: pure, any thread.
 */
#include "wattgov/version.h"

const char *wg_version(void)
{
    return WG_VERSION;
}
