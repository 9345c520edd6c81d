/* SPDX-License-Identifier: MIT
 *
 * The HTML report of `wattgov simulate tuning`.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_CLI_REPORT_TUNING_STUDY_H
#define WG_CLI_REPORT_TUNING_STUDY_H

#include "cli/tuning_results.h"

/* Appends the page. `trials` and `command` (what made it) may be NULL. */
void wg__report_tuning_study(const struct wg_tuning_study *study,
                             const struct wg_tuning_study_request *request,
                             const struct wg_tuning_trials *trials, const char *command,
                             struct wg_buffer *out);

#endif
