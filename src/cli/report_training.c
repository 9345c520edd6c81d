/* SPDX-License-Identifier: MIT
 *
 * The HTML report of training studies: see report_training.h.
 */
#include "cli/report_training.h"

#include "base/buffer.h"
#include "cli/page.h"
#include "simulate/study.h"

void wg__report_training(const struct wg_study *study, const struct wg_study_request *request,
                         const char *command, struct wg_buffer *out)
{
    (void)study;
    (void)request;
    struct wg_page page;
    wg__page_begin(&page, out, "Training governor", "Replay of measured traces");
    wg__page_end(&page, command);
}
