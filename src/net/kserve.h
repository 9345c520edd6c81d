/* SPDX-License-Identifier: MIT
 *
 * The words of KServe v2 (the Open Inference Protocol, and Triton's extensions of it), whichever
 * way they travel: kserve_json.c reads and writes them for HTTP, kserve_grpc.c for gRPC.
 *
 * A tensor's shape has -1 where a request decides. A model that batches (max_batch_size above 0)
 * has the batch as its first dimension.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_NET_KSERVE_H
#define WG_NET_KSERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/rng.h"

enum {
    WG_KSERVE_TENSORS_MAX = 32,
    WG_KSERVE_DIMS_MAX = 8,
    WG_KSERVE_NAME_SIZE = 128,
    WG_KSERVE_BATCHES_MAX = 256,
    WG_KSERVE_INPUT_BYTES_MAX = 1 << 28
};

/*      word      bytes an element; 0: each its own */
#define WG_KSERVE_TYPES(X)                                                                         \
    X(BOOL, 1)                                                                                     \
    X(UINT8, 1)                                                                                    \
    X(UINT16, 2)                                                                                   \
    X(UINT32, 4)                                                                                   \
    X(UINT64, 8)                                                                                   \
    X(INT8, 1)                                                                                     \
    X(INT16, 2)                                                                                    \
    X(INT32, 4)                                                                                    \
    X(INT64, 8)                                                                                    \
    X(FP16, 2)                                                                                     \
    X(BF16, 2)                                                                                     \
    X(FP32, 4)                                                                                     \
    X(FP64, 8)                                                                                     \
    X(BYTES, 0)

enum wg_kserve_type {
#define X(word, size) WG_KSERVE_##word,
    WG_KSERVE_TYPES(X)
#undef X
        WG_KSERVE_TYPE_COUNT
};

struct wg_kserve_tensor {
    char name[WG_KSERVE_NAME_SIZE];
    enum wg_kserve_type type;
    int64_t dims[WG_KSERVE_DIMS_MAX]; /* -1: open */
    size_t dim_count;
};

struct wg_kserve_metadata {
    struct wg_kserve_tensor inputs[WG_KSERVE_TENSORS_MAX];
    size_t input_count;
};

/* Counts since the model was loaded; differences over a window are what is of use. */
struct wg_kserve_duration {
    uint64_t count;
    uint64_t time_ns;
};
struct wg_kserve_batch {
    uint64_t size;
    uint64_t executions;
    uint64_t time_ns; /* computing: input, inference, output */
};
struct wg_kserve_statistics {
    uint64_t inferences; /* rows */
    uint64_t executions; /* batches */
    struct wg_kserve_duration success, fail, queue;
    struct wg_kserve_duration compute; /* of requests: input, inference, output */
    struct wg_kserve_batch batches[WG_KSERVE_BATCHES_MAX];
    size_t batch_count;
};

const char *wg__kserve_type_word(enum wg_kserve_type type);
/* False: no such type. */
bool wg__kserve_type_parse(const char *word, size_t length, enum wg_kserve_type *out);

/* Bytes of an element in binary; 0: each its own. */
size_t wg__kserve_type_size(enum wg_kserve_type type);

/* Adds a tensor to `tensors`; WG_EDATA: its type, its name's length, too many of them. */
enum wg_code wg__kserve_add_tensor(struct wg_kserve_tensor *tensors, size_t *count,
                                   const char *name, const char *type, const int64_t *dims,
                                   size_t dim_count, struct wg_error *err);

/* Adds the counts of a batch size; more sizes than fit are left out, the largest last. */
void wg__kserve_add_batch(struct wg_kserve_statistics *statistics,
                          const struct wg_kserve_batch *batch);

/* Whether the model was loaded anew, or the server started anew, between two reads. */
bool wg__kserve_has_fallen(const struct wg_kserve_statistics *before,
                           const struct wg_kserve_statistics *after);

/* What happened between two reads of the same model. Where a count has fallen, the model was loaded
 * anew in between: then all of `after` is. */
void wg__kserve_statistics_since(struct wg_kserve_statistics *out,
                                 const struct wg_kserve_statistics *before,
                                 const struct wg_kserve_statistics *after);

/* Gives `tensor` the dimensions of "NAME:1x3x48x192" if it has that name (true then). With
 * `is_batched` the first one stands for the batch and may be left out. WG_EINVAL: no such text, or
 * it contradicts what is known. */
enum wg_code wg__kserve_shape(struct wg_kserve_tensor *tensor, const char *text, bool is_batched,
                              bool *is_it, struct wg_error *err);

/* Puts `rows` for the batch, and fails when a dimension is still open or the whole is too large
 * (WG_EINVAL). */
enum wg_code wg__kserve_close_shape(struct wg_kserve_tensor *tensor, bool is_batched, size_t rows,
                                    struct wg_error *err);

/* What the data of all inputs take, closed shapes; as JSON and of texts some 12 bytes an element.
 * WG_EINVAL: more than WG_KSERVE_INPUT_BYTES_MAX together. */
enum wg_code wg__kserve_request_bytes(const struct wg_kserve_tensor *inputs, size_t count,
                                      bool is_json, size_t *out, struct wg_error *err);

/* Elements of a closed shape. */
size_t wg__kserve_elements(const struct wg_kserve_tensor *tensor);

/* Appends its data: little-endian, as it travels in binary; `rng` NULL: zeros, empty texts. Floats
 * are in [0, 1), UINT8 in 0..255, other integers in 0..9, texts of 8 letters. */
void wg__kserve_fill(struct wg_buffer *out, const struct wg_kserve_tensor *tensor,
                     struct wg_rng *rng);

/* The same as a JSON array. */
void wg__kserve_fill_json(struct wg_json *json, const struct wg_kserve_tensor *tensor,
                          struct wg_rng *rng);

#endif
