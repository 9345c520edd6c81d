/* SPDX-License-Identifier: MIT
 *
 * What measurements taught about a GPU: the parameters of the kernel model, and the points.
 *
 * A calibration is a JSON document (schema "wattgov.wave.calibration/1") that `wattgov wave
 * calibrate` writes; those of data/wave/calibration are built in, one a GPU and dtype. It keeps the
 * errors on shapes that were held out, from which a prediction's range follows.
 *
 * Owns: a calibration owns its parameters and points.    Threads: one thread at a time.
 */
#ifndef WG_WAVE_CALIBRATION_H
#define WG_WAVE_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "wave/forest.h"
#include "wave/gemm.h"
#include "wave/kernel.h"
#include "wave/kernel_params.h"

/* One measurement. Which of gemm and conv holds tells `is_conv`. */
struct wg_measured {
    const char *gpu; /* as the data says it; NULL: not told */
    const char *op;  /* "linear", "bmm", "conv", ...; NULL: not told */
    bool is_conv;
    enum wg_conv_pass pass;
    struct wg_gemm gemm;
    struct wg_conv conv;
    struct wg_kernel kernel; /* tile 0: not told */
    uint64_t blocks;         /* of the profiled grid; 0: not told */
    double time_s;
};

/* A time at a size, kept so that measured sizes are exact. `bytes` tells convolutions with the same
 * implicit GEMM apart; 0 for a GEMM. */
struct wg_point {
    uint64_t batch, m, n, k;
    double bytes;
    double time_s;
};

enum { WG_GPU_ID_SIZE = 48 };

/* What is known of one GPU, dtype and class of work. */
struct wg_calibrated {
    char gpu[WG_GPU_ID_SIZE];
    char arch[WG_GPU_ID_SIZE];
    enum wg_dtype dtype;
    enum wg_op_class op;
    double dense_flops; /* of the data sheet that the shares refer to */
    double memory_bandwidth_bytes_per_s;
    double tdp_w;
    struct wg_kernel_params params;
    struct wg_point *points; /* sorted: batch, n, k, bytes, m */
    size_t point_count;
    size_t row_count;                   /* it was fitted to; 0: it was read */
    const struct wg_forest *correction; /* wave/correction.h; NULL: none */
    struct wg_forest *own_correction;   /* the same to be freed; NULL where it is built in */
};

#define WG_CALIBRATION_SCHEMA "wattgov.wave.calibration/1"

struct wg_calibration;

/* Fits parameters to `rows` of one GPU; rows below the launch floor teach the floor only. Held-out
 * errors come from folds over shapes (n, k). WG_EDATA: too few rows for what is asked (the message
 * says how many are needed); WG_ENOMEM. `gpu` and `rows` are not kept. */
enum wg_code wg__calibrate(struct wg_calibration **out, const struct wg_gpu_spec *gpu,
                           const struct wg_measured *rows, size_t count, struct wg_error *err);
/* The same without held-out errors, which take five more fits: for who measures them otherwise. */
enum wg_code wg__calibrate_without_errors(struct wg_calibration **out,
                                          const struct wg_gpu_spec *gpu,
                                          const struct wg_measured *rows, size_t count,
                                          struct wg_error *err);
/* Drops the points, so that only the formula and what corrects it are written. */
void wg__calibration_drop_points(struct wg_calibration *calibration);
/* From JSON; `name` stands for the file in messages: "NAME: path.of.field: ...". */
enum wg_code wg__calibration_read(struct wg_calibration **out, const char *name, const char *bytes,
                                  size_t length, struct wg_error *err);
/* All that is built in, for every GPU. */
enum wg_code wg__calibration_built_in(struct wg_calibration **out, struct wg_error *err);
/* Adds what `other` knows; of the same GPU and dtype `other` wins. */
enum wg_code wg__calibration_merge(struct wg_calibration *calibration,
                                   const struct wg_calibration *other, struct wg_error *err);
size_t wg__calibration_count(const struct wg_calibration *calibration);
/* Lives until the calibration is merged into or freed. */
const struct wg_calibrated *wg__calibration_at(const struct wg_calibration *calibration,
                                               size_t index);
void wg__calibration_write(const struct wg_calibration *calibration, struct wg_buffer *out);
void wg__calibration_free(struct wg_calibration *calibration);

#endif
