/* SPDX-License-Identifier: MIT
 *
 * The constants of the wattgov policy as an object; governor_constants.h has values and meanings.
 *
 * Threads: read-only, as governor_constants.h has it.
 */
#include "optimize/governor_constants.h"

WG_GOVERNOR_CONST struct wg_governor_constants wg__governor_constants = {
#define X(name, value, meaning) .name = value,
    WG_GOVERNOR_CONSTANTS(X)
#undef X
};
