/* SPDX-License-Identifier: MIT
 *
 * Which requests may share a batch: the rules of the KServe v2 protocol.
 *
 * Same model and version; the same set of inputs with the same types and the same dimensions behind
 * the first; the same requested outputs; the same parameters but id, priority and timeout, which
 * are each request's own; no sequence. A model without a batch dimension (max_batch_size 0) never
 * merges, nor does a request with a parameter `sequence_id`, `sequence_start` or `sequence_end`.
 * Inputs, outputs and parameters are sets: their order says nothing.
 *
 * The key is a 64-bit hash over the canonical form, so equal keys stand for equal shapes; keys meet
 * by chance once in 2^64. Requests that must not merge get a key of their own from their id.
 *
 * Pure.    Owns: nothing.    Threads: any.
 */
#ifndef WG_SCHEDULE_MERGE_H
#define WG_SCHEDULE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    WG_MERGE_TENSORS_MAX = 64,
    WG_MERGE_DIMS_MAX = 16,
    WG_MERGE_PARAMETERS_MAX = WG_MERGE_TENSORS_MAX
};

struct wg_merge_tensor {
    const char *name;
    const char *datatype; /* "FP32"; NULL for a requested output */
    const int64_t *dims;  /* the first one counts rows */
    size_t dim_count;
};

struct wg_merge_parameter {
    const char *name;
    const char *value; /* canonical text, with its type: "int64:3" */
};

struct wg_merge_shape {
    const char *model;
    const char *version; /* NULL or "": the server's choice, which is not the same as a named one */
    const struct wg_merge_tensor *inputs;
    size_t input_count;
    const struct wg_merge_tensor *outputs; /* requested ones */
    size_t output_count;
    const struct wg_merge_parameter *parameters;
    size_t parameter_count;
    bool has_batch_dimension; /* of the model: max_batch_size > 0 */
};

/* Key and rows; without a batch dimension a request is one row. WG_EINVAL: no input, inputs that
 * don't agree in their rows, no dimension, a dimension below 0, rows of 0 or beyond UINT_MAX, a
 * name given twice, too many of anything; the message names it. Allocates nothing. */
enum wg_code wg__merge_key(const struct wg_merge_shape *shape, uint64_t request_id,
                           uint64_t *key_out, unsigned *rows_out, struct wg_error *err);

#endif
