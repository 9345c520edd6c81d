/* SPDX-License-Identifier: MIT
 *
 * What `wattgov measure` found, as a table for people and as JSON.
 *
 * The report is filled by the command and knows no device, meter or process, so that tests make any
 * machine they like. Nothing is ever shown as 0 J that could not be measured: it is "n/a" (null in
 * JSON), and a line below says why and what to do.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_CLI_MEASURE_REPORT_H
#define WG_CLI_MEASURE_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "live/child.h"
#include "wattgov/device.h"
#include "wattgov/window.h"

struct wg_buffer;

/* One run of the command, or the one time until Ctrl-C. */
struct wg_measure_run {
    double time_s;
    bool has_child;        /* else nothing was run, or it could not be started */
    bool is_cut;           /* a signal that ends programs came meanwhile */
    struct wg_child child; /* how it ended */
    struct wg_window_result total;
    struct wg_window_result *devices; /* one a device of the report, in its order */
};

struct wg_measure_report {
    char *const *command; /* ended by NULL; NULL: none was given */
    const struct wg_device_info *const *infos;
    const char *const *troubles; /* a device: its newest error, or NULL */
    size_t device_count;
    const struct wg_backend_info *const *backends;
    size_t backend_count;
    const struct wg_measure_run *runs;
    size_t run_count;
    size_t runs_wanted;
};

/* Appends the page for people. */
void wg__measure_text(const struct wg_measure_report *report, bool with_color,
                      struct wg_buffer *out);

/* Appends the object of schema wattgov.measure/1 and a line end. */
void wg__measure_json(const struct wg_measure_report *report, int exit_status,
                      struct wg_buffer *out);

/* Mean and spread over the runs that know the number. A run that failed or was cut off is none of
 * them: half a run says nothing of the next one. */
struct wg_spread {
    size_t count; /* 0: unknown in every run; all below is NAN then */
    double mean;
    double sd; /* of the sample; NAN for one run */
    double min;
    double max;
};

/* The numbers that a run has one of: in total (`device` is WG_MEASURE_TOTAL), or for a device. */
enum { WG_MEASURE_TOTAL = -1 };
enum wg_measure_number { WG_MEASURE_ENERGY, WG_MEASURE_TIME, WG_MEASURE_POWER };
struct wg_spread wg__measure_spread(const struct wg_measure_report *report, int device,
                                    enum wg_measure_number number);

#endif
