/* SPDX-License-Identifier: MIT
 *
 * A served model that has a tuned configuration while a command runs.
 *
 *     a server that runs     its model is loaded with the knobs of the file, and at the end with
 *                            what it had before
 *     one that does not      nothing is set, and that is said: the command itself may start it
 *
 * What the model had is kept meanwhile, as `wattgov tune` does it (live/server_original.h): whoever
 * is killed leaves it to the next of either.
 *
 * Owns: see the struct.    Threads: the main thread.
 */
#ifndef WG_CLI_TUNE_APPLY_SERVER_H
#define WG_CLI_TUNE_APPLY_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/tune_result.h"
#include "live/workload.h"

struct wg_tune_server_hold {
    struct wg_workload *workload; /* NULL: nothing is held */
};

/* Whether knob `at` stands in the configuration of a served model. */
bool wg__tune_server_has(const struct wg_tune_applied *applied, size_t at);

/* Sets them all; one of `signals` ends waiting for the server. WG_OK too where no such knob is, or
 * no server answers. Else as it went: it did not take them, and has its own configuration at the
 * release. */
enum wg_code wg__tune_server_hold(struct wg_tune_server_hold *hold,
                                  const struct wg_tune_applied *applied, struct wg_signals *signals,
                                  bool is_quiet, struct wg_error *err);

/* Gives its own configuration back; false: that failed, which is said. `is_interrupted`: a signal
 * has come already (live/workload.h). */
bool wg__tune_server_release(struct wg_tune_server_hold *hold, bool is_interrupted, bool is_quiet);

#endif
