/* SPDX-License-Identifier: MIT
 *
 * `wattgov wave`: the tail of a layer's grid, and shapes without one. Here: the tree of its
 * commands.
 *
 * None of them touches a device: what they say of a GPU comes from its data sheet and from
 * measurements of others or the user's own.
 *
 * Threads: the main thread.
 */
#include "cli/command_wave.h"

#include <stddef.h>

/* In the order of use, one a line. */
/* clang-format off */
static const struct wg_command *const children[] = {
    &wg__command_wave_analyze,
    &wg__command_wave_plan,
    &wg__command_wave_sweep,
    &wg__command_wave_import,
    &wg__command_wave_calibrate,
    &wg__command_wave_evaluate,
    NULL,
};
/* clang-format on */

const struct wg_command wg__command_wave = {
    .name = "wave",
    .summary = "Shows what half-empty waves of thread blocks cost, and shapes without them",
    .children = children,
};
