/* SPDX-License-Identifier: MIT
 *
 * A staircase as `wattgov wave sweep` computes and shows it: text, CSV, JSON, a page.
 *
 * Owns: a sweep owns its arrays; GPU, layer and command line are the caller's.
 * Threads: pure, one at a time.
 */
#ifndef WG_CLI_WAVE_SWEEP_H
#define WG_CLI_WAVE_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "wave/staircase.h"

enum { WG_WAVE_SWEEP_POINTS_MAX = 65536, WG_WAVE_SWEEP_POINTS_DEFAULT = 4096 };

struct wg_wave_sweep_opts {
    enum wg_sweep_axis axis;
    uint64_t samples;        /* that the layer's sizes are for */
    uint64_t from, to, step; /* 0: from the step, to twice the present size, so that they fit */
};

struct wg_wave_sweep {
    const struct wg_gpu_spec *gpu;
    const struct wg_layer *layer;
    const char *model;   /* its name; NULL: the layer stands alone */
    const char *command; /* that made it; NULL */
    enum wg_sweep_axis axis;
    enum wg_dtype dtype;
    uint64_t samples, present;
    struct wg_sweep_point *points; /* in rising order; the present size is among them */
    double *flops;                 /* of each point; NAN: the layer multiplies nothing */
    size_t count;
    size_t now; /* which of them is the present size */
    struct wg_stair stair;
};

/* WG_EINVAL: the axis is none of the layer's, or the range is empty or too long; errors of
 * predictions; WG_ENOMEM. */
enum wg_code wg__wave_sweep(struct wg_wave_sweep *out, const struct wg_kernel_model *model,
                            const struct wg_layer *layer, const struct wg_wave_sweep_opts *opts,
                            struct wg_error *err);
void wg__wave_sweep_fini(struct wg_wave_sweep *sweep);

void wg__wave_sweep_text(const struct wg_wave_sweep *sweep, bool color, struct wg_buffer *out);
void wg__wave_sweep_csv(const struct wg_wave_sweep *sweep, struct wg_buffer *out);
void wg__wave_sweep_json(const struct wg_wave_sweep *sweep, struct wg_buffer *out);
void wg__wave_sweep_page(const struct wg_wave_sweep *sweep, struct wg_buffer *out);

#endif
