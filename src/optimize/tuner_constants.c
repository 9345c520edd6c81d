/* SPDX-License-Identifier: MIT
 *
 * The constants of the tuning policy `wattgov` as an object; tuner_constants.h has values and
 * meanings.
 *
 * Threads: read-only, as tuner_constants.h has it.
 */
#include "optimize/tuner_constants.h"

WG_TUNER_CONST struct wg_tuner_constants wg__tuner_constants = {
#define X(name, value, meaning) .name = value,
    WG_TUNER_CONSTANTS(X)
#undef X
};
