/* SPDX-License-Identifier: MIT
 *
 * `wattgov tune apply FILE -- CMD`.
 *
 * Threads: the main thread.
 */
#ifndef WG_CLI_COMMAND_TUNE_APPLY_H
#define WG_CLI_COMMAND_TUNE_APPLY_H

/* argv[0] is "apply". Returns the exit status. */
int wg__command_tune_apply(int argc, char *argv[]);

#endif
