/* SPDX-License-Identifier: MIT
 *
 * What `wattgov devices` found, for people and as JSON.
 *
 * Filled by the command, so tests make any machine they like.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_CLI_DEVICES_REPORT_H
#define WG_CLI_DEVICES_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "wattgov/device.h"

struct wg_buffer;

enum { WG_PROCESS_NAME_SIZE = 64 };

struct wg_process_line {
    struct wg_process process;
    char name[WG_PROCESS_NAME_SIZE]; /* "" when it can't be known */
};

/* The state of one device when it was looked at. */
struct wg_device_look {
    struct wg_sample sample; /* all zero when nothing could be read */
    const char *trouble;     /* why not; NULL: it could be read */
    const struct wg_process_line *processes;
    size_t process_count;
    const char *process_trouble; /* why there is no list; NULL: there is, or nobody asked */
};

struct wg_devices_report {
    const struct wg_device_info *const *infos;
    const struct wg_device_look *looks;
    size_t device_count;
    const struct wg_backend_info *const *backends;
    size_t backend_count;
    bool has_processes; /* they were asked for */
    bool is_detailed;   /* text: each missing meter and knob in a row of its own */
};

/* Appends the page for people. */
void wg__devices_text(const struct wg_devices_report *report, bool with_color,
                      struct wg_buffer *out);

/* Appends the object of schema wattgov.devices/1 and a line end. */
void wg__devices_json(const struct wg_devices_report *report, struct wg_buffer *out);

#endif
