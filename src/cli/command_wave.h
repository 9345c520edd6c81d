/* SPDX-License-Identifier: MIT
 *
 * The commands of `wattgov wave`, one a file: command_wave_<name>.c. A new one is declared here and
 * listed in command_wave.c; its options are described in man/wattgov-wave.1.scd, each once.
 *
 * Threads: the main thread.
 */
#ifndef WG_CLI_COMMAND_WAVE_H
#define WG_CLI_COMMAND_WAVE_H

#include "cli/command.h"

extern const struct wg_command wg__command_wave_analyze;
extern const struct wg_command wg__command_wave_calibrate;
extern const struct wg_command wg__command_wave_evaluate;
extern const struct wg_command wg__command_wave_import;
extern const struct wg_command wg__command_wave_plan;
extern const struct wg_command wg__command_wave_sweep;

#endif
