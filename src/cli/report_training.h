/* SPDX-License-Identifier: MIT
 *
 * The HTML report of `wattgov simulate training`.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_CLI_REPORT_TRAINING_H
#define WG_CLI_REPORT_TRAINING_H

struct wg_buffer;
struct wg_study;
struct wg_study_request;

/* Appends the whole page; `command` is shown as what made it. */
void wg__report_training(const struct wg_study *study, const struct wg_study_request *request,
                         const char *command, struct wg_buffer *out);

#endif
