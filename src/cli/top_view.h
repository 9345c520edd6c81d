/* SPDX-License-Identifier: MIT
 *
 * The live view of `wattgov top` as a function: from what was measured to the rows of a screen.
 *
 *     wattgov top  every 1s  for 00:12:34                                   2 of 3 rows
 *     device power      W/limit     energy   MHz temp  util  memory held down by
 *     gpu0   ||||||..   412/700   12.35 kJ  1980  71C   98% 63.2GiB power limit
 *     gpu1   nvmlDeviceGetFieldValues: GPU is lost (15)
 *     total             412       12.35 kJ
 *     q quit  p processes  r reset energy  arrows scroll  ? help
 *
 * Columns are chosen by what matters most until the width is used up, so the view is whole at any
 * size; what isn't known is a dash. Below the devices, on request, stand the processes; the rows of
 * both scroll together.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_CLI_TOP_VIEW_H
#define WG_CLI_TOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/devices_report.h"
#include "cli/top_frame.h"
#include "wattgov/device.h"

struct wg_top_row {
    const struct wg_device_info *info;
    struct wg_sample sample; /* all zero: none yet */
    double energy_j;         /* since the start or the reset; NAN: unknown */
    const char *trouble;     /* shown instead of numbers; NULL: none */
    const struct wg_process_line *processes;
    size_t process_count;
};

struct wg_top_state {
    const struct wg_top_row *rows;
    size_t row_count;
    const struct wg_backend_info *const *backends; /* shown where there are no devices */
    size_t backend_count;
    double interval_s;
    double elapsed_s;      /* that the energy is of */
    double total_energy_j; /* NAN: unknown */
    bool is_total_partial;
    bool has_processes;
    bool has_help; /* the keys are explained instead of the rows */
    size_t scroll; /* rows above the first that is seen */
};

/* Draws into `frame`, which has its size. */
void wg__top_view(const struct wg_top_state *state, struct wg_top_frame *frame);

/* The largest scroll that still fills the screen. */
size_t wg__top_view_scroll_max(const struct wg_top_state *state, unsigned height);

#endif
