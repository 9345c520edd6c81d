/* SPDX-License-Identifier: MIT
 *
 * The results of `wattgov wave plan`: for people, as JSON, as a page, and the front as CSV.
 *
 * Owns: nothing.    Threads: any thread.
 */
#ifndef WG_CLI_WAVE_PLAN_REPORT_H
#define WG_CLI_WAVE_PLAN_REPORT_H

#include "cli/wave_model.h"
#include "wave/kernel_model.h"
#include "wave/plan.h"

struct wg_buffer;

/* One point of the front: the least time at so many parameters (or operations). */
struct wg_wave_front_point {
    double kept; /* what was asked for, as a share of the present */
    double time_s, parameters, flops;
    bool is_optimal;
    double gap; /* NAN: not known */
};

struct wg_wave_plan_report {
    const struct wg_wave_model *model;
    const struct wg_gpu_spec *gpu;
    const struct wg_kernel_model *kernels;
    const struct wg_plan_opts *opts; /* as given; 0: default */
    const char *goal;
    const uint32_t *before; /* a width each */
    struct wg_plan plan;
    const struct wg_wave_front_point *front;
    size_t front_count;
    const char *command;
};

/* The sums of what is predicted before (at `report->before`) and after. Ranges add up as if all
 * layers were wrong in the same direction. */
struct wg_wave_plan_times {
    double low_s, high_s;
    size_t by_origin[WG_ORIGIN_COUNT]; /* layers */
};
void wg__wave_plan_times(const struct wg_wave_plan_report *report, const uint32_t *channels,
                         struct wg_wave_plan_times *out);

void wg__wave_plan_text(const struct wg_wave_plan_report *report, bool with_color,
                        struct wg_buffer *out);
void wg__wave_plan_json(const struct wg_wave_plan_report *report, struct wg_buffer *out);
void wg__wave_plan_page(const struct wg_wave_plan_report *report, struct wg_buffer *out);
void wg__wave_front_csv(const struct wg_wave_plan_report *report, struct wg_buffer *out);

#endif
