/* SPDX-License-Identifier: MIT
 *
 * What the specification of a GPU says: the numbers that a kernel's waves and roofline follow from.
 *
 * The table is data (data/wave/gpus.csv, built into the program); each number there has its source.
 * A user's own GPU comes from YAML with the same fields (cli/gpu_file.h). Numbers are those of the
 * data sheet: what a GPU sustains under its power limit is the calibration's (wave/calibration.h).
 *
 * Owns: a table owns its specs and their texts.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_GPU_H
#define WG_WAVE_GPU_H

#include <stddef.h>

#include "base/error.h"

/* Numbers of a layer's operands; what they are summed in is the library's choice. */
#define WG_DTYPES(X)                                                                               \
    X(FP32, "fp32", 4)                                                                             \
    X(TF32, "tf32", 4)                                                                             \
    X(FP16, "fp16", 2)                                                                             \
    X(BF16, "bf16", 2)                                                                             \
    X(FP8, "fp8", 1)                                                                               \
    X(INT8, "int8", 1)

enum wg_dtype {
#define X(name, text, bytes) WG_DTYPE_##name,
    WG_DTYPES(X)
#undef X
        WG_DTYPE_COUNT
};

const char *wg__dtype_name(enum wg_dtype dtype);
unsigned wg__dtype_bytes(enum wg_dtype dtype);
/* Also "bfloat16", "float16", "half", "float32", "float", "e4m3", "float8_e4m3", in any case.
 * WG_EINVAL: none of them. */
enum wg_code wg__dtype_parse(const char *text, enum wg_dtype *out, struct wg_error *err);

struct wg_gpu_spec {
    const char *id;   /* "a100-sxm4-80gb": lower case, digits and '-' */
    const char *name; /* as NVML says it: "NVIDIA A100-SXM4-80GB" */
    const char *arch; /* "ampere" */
    unsigned cc_major, cc_minor;
    unsigned sms;
    unsigned fp32_lanes_per_sm;
    double boost_clock_hz;
    double memory_bandwidth_bytes_per_s;
    double l2_bytes;
    double memory_bytes;
    double tdp_w;
    double idle_w;                      /* NAN: not known */
    double dense_flops[WG_DTYPE_COUNT]; /* per second, without sparsity; 0: not supported */
    unsigned max_threads_per_sm;
    unsigned max_blocks_per_sm;
    unsigned registers_per_sm;
    double shared_memory_per_sm_bytes;
    double max_shared_memory_per_block_bytes;
};

struct wg_gpu_table;

/* Reads the CSV of the table; `bytes` are not kept. WG_EDATA: "NAME:LINE: ..."; WG_ENOMEM. */
enum wg_code wg__gpu_table_open(struct wg_gpu_table **out, const char *name, const char *bytes,
                                size_t length, struct wg_error *err);
/* The table that is built in. */
enum wg_code wg__gpu_table_open_built_in(struct wg_gpu_table **out, struct wg_error *err);
void wg__gpu_table_close(struct wg_gpu_table *table);

size_t wg__gpu_table_count(const struct wg_gpu_table *table);
const struct wg_gpu_spec *wg__gpu_table_at(const struct wg_gpu_table *table, size_t index);

/* By id, by an alias of the table ("a100", "A100-SXM-80GB", "H100 SXM 80GB") or by NVML's name;
 * neither case, ' ', '_' nor '-' tell two names apart. WG_ENODEV: none; the message names the
 * nearest ids. The spec lives as long as the table. */
enum wg_code wg__gpu_table_find(const struct wg_gpu_table *table, const char *name,
                                const struct wg_gpu_spec **out, struct wg_error *err);

/* Fills what an SM of `spec`'s compute capability holds, and the generation's name, which lives as
 * long as the table. A compute capability that is not known leaves all as it is. */
void wg__gpu_table_limits(const struct wg_gpu_table *table, struct wg_gpu_spec *spec);

#endif
