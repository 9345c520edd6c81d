/* SPDX-License-Identifier: MIT
 *
 * The HTML report of `wattgov simulate serving`.
 *
 * Owns: nothing.    Threads: one at a time.
 */
#ifndef WG_CLI_REPORT_SERVING_H
#define WG_CLI_REPORT_SERVING_H

#include <stddef.h>

#include "cli/serving_timeline.h"
#include "simulate/serving_study.h"

struct wg_buffer;

/* Appends the page. `timelines`: one run a policy, all under one law, in the request's order.
 * `command` (may be NULL) is shown as what made it. */
void wg__report_serving(const struct wg_serving_study *study,
                        const struct wg_serving_study_request *request,
                        const struct wg_serving_timeline *timelines, const char *command,
                        struct wg_buffer *out);

#endif
