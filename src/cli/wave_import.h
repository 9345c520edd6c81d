/* SPDX-License-Identifier: MIT
 *
 * What `wattgov wave import` has read of a file, ready to be shown: a row for each layer.
 *
 * Blocks per SM is the number that a compute-bound kernel's time follows, rounded up; its tail is
 * what the last, part-filled round leaves idle. Waves count how many blocks an SM holds at once as
 * well: the tool says them, or they follow from a launch's registers, shared memory and threads on
 * a GPU that the table knows. Nothing of this is predicted.
 *
 * Owns: an import owns its rows; model and GPU are the caller's.    Threads: one thread at a time.
 */
#ifndef WG_CLI_WAVE_IMPORT_H
#define WG_CLI_WAVE_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/json.h"
#include "cli/wave_model.h"
#include "model/measurements.h"
#include "wave/gpu.h"

struct wg_wave_import_row {
    const struct wg_layer *layer;
    const struct wg_launch *launch; /* the longest; NULL: a graph, or TensorRT */
    bool has_gemm;
    struct wg_gemm gemm;
    double flops;    /* NAN: not known */
    uint64_t blocks; /* 0: not known */
    double per_sm;   /* blocks / SMs; NAN: not known */
    double waves;    /* NAN: not known */
    double tail;     /* share of the SMs' slots; NAN: not known */
};

struct wg_wave_import {
    const struct wg_wave_model *model;
    const char *device; /* a profile's, or the id of the GPU that was given; "": not known */
    unsigned sms;       /* 0: not known */
    struct wg_wave_import_row *rows;
    size_t count;
    double measured_s; /* of all layers; 0: nothing is measured */
};

/* `gpu`: that of --gpu, or the one that the table has under the profile's device; NULL. WG_ENOMEM;
 * WG_EINVAL: the profile is of a GPU with another number of SMs. */
enum wg_code wg__wave_import(struct wg_wave_import *out, const struct wg_wave_model *model,
                             const struct wg_gpu_spec *gpu, bool is_given, struct wg_error *err);
void wg__wave_import_fini(struct wg_wave_import *import);

/* `top`: only so many layers, those with the most time; 0: all, in their order. */
void wg__wave_import_text(const struct wg_wave_import *import, unsigned top, bool with_color,
                          struct wg_buffer *out);
void wg__wave_import_json(const struct wg_wave_import *import, struct wg_json *json);

/* Tensors of a graph and their shapes. */
void wg__wave_shapes_text(const struct wg_wave_model *model, bool with_color,
                          struct wg_buffer *out);
void wg__wave_shapes_json(const struct wg_wave_model *model, struct wg_json *json);

/* A file of own measurements: what of whom is in it, and how fast the fastest was, which a wrong
 * unit or a wrong column shows at once. */
struct wg_wave_import_group {
    const char *gpu, *op; /* NULL: not told */
    enum wg_dtype dtype;
    bool is_conv;
    enum wg_conv_pass pass;
    size_t rows, tiles, grids; /* measurements; those whose tile, and grid, is known */
    double least_s, most_s, best_flops_per_s;
};

struct wg_wave_import_measured {
    struct wg_measurements measurements;
    struct wg_wave_import_group *groups; /* in the order of their first rows */
    size_t count, capacity;
};

/* As wg__measurements_read. */
enum wg_code wg__wave_import_measured(struct wg_wave_import_measured *out, const char *path,
                                      const struct wg_measurements_opts *opts,
                                      struct wg_error *err);
void wg__wave_import_measured_fini(struct wg_wave_import_measured *measured);
void wg__wave_import_measured_text(const struct wg_wave_import_measured *measured, const char *name,
                                   bool with_color, struct wg_buffer *out);
void wg__wave_import_measured_json(const struct wg_wave_import_measured *measured,
                                   struct wg_json *json);

/* What measurements were made of: `layers` became `rows`, as the same ones are one; `left_out` were
 * measured, too, but multiply nothing, or what they multiply is not known. */
struct wg_wave_import_written {
    size_t rows, layers, left_out;
};

/* Own measurements as model/measurements.h reads them; the header, then the layers that were
 * measured and whose product is known, those that are the same as one with their median time.
 * Adds to `written`. */
void wg__wave_import_csv_header(struct wg_buffer *out);
void wg__wave_import_csv(const struct wg_wave_import *import, struct wg_buffer *out,
                         struct wg_wave_import_written *written);

#endif
