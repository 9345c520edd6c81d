/* SPDX-License-Identifier: MIT
 *
 * KServe's tensors, their data, and Triton's counts.
 *
 * Threads: pure, any thread.
 */
#include "net/kserve.h"

#include <endian.h>
#include <string.h>

#include "base/number.h"

/* -- Types ------------------------------------------------------------------------------------ */

static const struct type {
    const char *word;
    size_t size;
} types[] = {
#define X(word, size) {#word, size},
    WG_KSERVE_TYPES(X)
#undef X
};

const char *wg__kserve_type_word(enum wg_kserve_type type)
{
    return types[type].word;
}

size_t wg__kserve_type_size(enum wg_kserve_type type)
{
    return types[type].size;
}

bool wg__kserve_type_parse(const char *word, size_t length, enum wg_kserve_type *out)
{
    for (size_t i = 0; i < WG_KSERVE_TYPE_COUNT; i++) {
        if (strlen(types[i].word) == length && memcmp(types[i].word, word, length) == 0) {
            *out = (enum wg_kserve_type)i;
            return true;
        }
    }
    return false;
}

enum wg_code wg__kserve_add_tensor(struct wg_kserve_tensor *tensors, size_t *count,
                                   const char *name, const char *type, const int64_t *dims,
                                   size_t dim_count, struct wg_error *err)
{
    if (*count == WG_KSERVE_TENSORS_MAX)
        return wg__fail(err, WG_EDATA, "the model has more than %d inputs", WG_KSERVE_TENSORS_MAX);
    struct wg_kserve_tensor *tensor = &tensors[*count];
    const size_t length = strlen(name);
    if (length == 0 || length >= sizeof tensor->name)
        return wg__fail(err, WG_EDATA, "an input's name has %zu bytes: 1..%zu are possible", length,
                        sizeof tensor->name - 1);
    if (!wg__kserve_type_parse(type, strlen(type), &tensor->type))
        return wg__fail(err, WG_EDATA, "input '%s' is of type '%.40s', which KServe does not know",
                        name, type);
    if (dim_count > WG_KSERVE_DIMS_MAX)
        return wg__fail(err, WG_EDATA, "input '%s' has %zu dimensions: at most %d are possible",
                        name, dim_count, WG_KSERVE_DIMS_MAX);
    for (size_t i = 0; i < dim_count; i++) {
        if (dims[i] < -1)
            return wg__fail(err, WG_EDATA, "input '%s' has a dimension of %lld", name,
                            (long long)dims[i]);
        tensor->dims[i] = dims[i];
    }
    memcpy(tensor->name, name, length + 1);
    tensor->dim_count = dim_count;
    ++*count;
    return WG_OK;
}

/* -- Shapes ----------------------------------------------------------------------------------- */

/* "1x3x48" into `dims`; 0: it is no such text. */
static size_t parse_dims(const char *text, int64_t dims[static WG_KSERVE_DIMS_MAX])
{
    size_t count = 0;
    for (;;) {
        const size_t length = strcspn(text, "x");
        char digits[20];
        uint64_t value = 0;
        if (length == 0 || length >= sizeof digits || count == WG_KSERVE_DIMS_MAX)
            return 0;
        memcpy(digits, text, length);
        digits[length] = '\0';
        if (!wg__parse_uint64(digits, &value) || value > WG_KSERVE_INPUT_BYTES_MAX)
            return 0;
        dims[count++] = (int64_t)value;
        if (text[length] == '\0')
            return count;
        text += length + 1;
    }
}

static enum wg_code take_dims(struct wg_kserve_tensor *tensor, const char *text,
                              const int64_t *dims, size_t given, bool is_batched,
                              struct wg_error *err)
{
    const size_t left_out = tensor->dim_count - given;
    if (given > tensor->dim_count || left_out > (is_batched ? 1 : 0))
        return wg__fail(err, WG_EINVAL, "shape '%s': the model's has %zu dimensions%s", text,
                        tensor->dim_count, is_batched ? ", the batch included" : "");
    for (size_t i = 0; i < given; i++) {
        int64_t *dim = &tensor->dims[i + left_out];
        const bool is_batch = is_batched && i + left_out == 0;
        if (!is_batch && *dim != -1 && *dim != dims[i])
            return wg__fail(err, WG_EINVAL, "shape '%s': the model's dimension %zu is %lld", text,
                            i + left_out + 1, (long long)*dim);
        if (!is_batch)
            *dim = dims[i];
    }
    return WG_OK;
}

enum wg_code wg__kserve_shape(struct wg_kserve_tensor *tensor, const char *text, bool is_batched,
                              bool *is_it, struct wg_error *err)
{
    const char *colon = strrchr(text, ':');
    int64_t dims[WG_KSERVE_DIMS_MAX];
    const size_t given = colon != NULL ? parse_dims(colon + 1, dims) : 0;
    if (given == 0 || colon == text)
        return wg__fail(err, WG_EINVAL, "shape '%s': expected NAME:1x3x48x192, at most %d numbers",
                        text, WG_KSERVE_DIMS_MAX);
    const size_t length = (size_t)(colon - text);
    *is_it = strlen(tensor->name) == length && memcmp(tensor->name, text, length) == 0;
    if (!*is_it)
        return WG_OK;
    return take_dims(tensor, text, dims, given, is_batched, err);
}

enum wg_code wg__kserve_close_shape(struct wg_kserve_tensor *tensor, bool is_batched, size_t rows,
                                    struct wg_error *err)
{
    uint64_t elements = 1;
    if (is_batched && tensor->dim_count > 0)
        tensor->dims[0] = (int64_t)rows;
    for (size_t i = 0; i < tensor->dim_count; i++) {
        if (tensor->dims[i] < 0)
            return wg__fail(err, WG_EINVAL,
                            "input '%s': dimension %zu is open; tell a shape, '%s:...'",
                            tensor->name, i + 1, tensor->name);
        const uint64_t dim = (uint64_t)tensor->dims[i];
        if (dim != 0 && elements > WG_KSERVE_INPUT_BYTES_MAX / dim)
            elements = UINT64_MAX / 64;
        else
            elements *= dim;
        if (elements > WG_KSERVE_INPUT_BYTES_MAX)
            break;
    }
    const size_t size = types[tensor->type].size != 0 ? types[tensor->type].size : 12;
    if (elements > WG_KSERVE_INPUT_BYTES_MAX / size)
        return wg__fail(err, WG_EINVAL, "input '%s' has more than %d bytes", tensor->name,
                        WG_KSERVE_INPUT_BYTES_MAX);
    return WG_OK;
}

enum wg_code wg__kserve_request_bytes(const struct wg_kserve_tensor *inputs, size_t count,
                                      bool is_json, size_t *out, struct wg_error *err)
{
    size_t sum = 0; /* of at most 32 inputs, each of which is bounded */
    for (size_t i = 0; i < count; i++) {
        const size_t size = types[inputs[i].type].size;
        sum += wg__kserve_elements(&inputs[i]) * (is_json || size == 0 ? 12 : size);
    }
    if (sum > WG_KSERVE_INPUT_BYTES_MAX)
        return wg__fail(err, WG_EINVAL,
                        "a request of the model's %zu inputs has %zu bytes: at most "
                        "%d are possible",
                        count, sum, WG_KSERVE_INPUT_BYTES_MAX);
    *out = sum;
    return WG_OK;
}

size_t wg__kserve_elements(const struct wg_kserve_tensor *tensor)
{
    size_t elements = 1;
    for (size_t i = 0; i < tensor->dim_count; i++)
        elements *= (size_t)tensor->dims[i];
    return elements;
}

/* -- Data ------------------------------------------------------------------------------------- */

enum { TEXT_LENGTH = 8 };

/* A value that the type can hold: a whole number, or a fraction of 2048 in [0, 1). */
static double draw(enum wg_kserve_type type, struct wg_rng *rng)
{
    if (rng == NULL)
        return 0;
    switch (type) {
    case WG_KSERVE_BOOL:
        return wg__rng_below(rng, 2);
    case WG_KSERVE_UINT8:
        return wg__rng_below(rng, 256);
    case WG_KSERVE_BF16:
        return wg__rng_below(rng, 128) / 128.0;
    case WG_KSERVE_FP16:
    case WG_KSERVE_FP32:
    case WG_KSERVE_FP64:
        return wg__rng_below(rng, 2048) / 2048.0;
    default:
        return wg__rng_below(rng, 10);
    }
}

/* A half of a value in [0, 1) with 11 bits: exponent bias 15 instead of 127, 10 bits of fraction
 * instead of 23. */
static uint16_t half(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits == 0 ? 0 : (uint16_t)((bits >> 13) - ((127U - 15U) << 10));
}

static size_t encode(uint8_t out[static 8], enum wg_kserve_type type, double value)
{
    uint64_t bits = 0;
    const float single = (float)value;
    uint32_t single_bits;
    memcpy(&single_bits, &single, sizeof single_bits);
    if (type == WG_KSERVE_FP64)
        memcpy(&bits, &value, sizeof bits);
    else if (type == WG_KSERVE_FP32)
        bits = single_bits;
    else if (type == WG_KSERVE_BF16)
        bits = single_bits >> 16;
    else if (type == WG_KSERVE_FP16)
        bits = half(single);
    else
        bits = (uint64_t)value;
    bits = htole64(bits);
    memcpy(out, &bits, sizeof bits);
    return types[type].size;
}

static void draw_text(char out[static TEXT_LENGTH + 1], struct wg_rng *rng)
{
    for (size_t i = 0; i < TEXT_LENGTH; i++)
        out[i] = rng != NULL ? (char)('a' + (int)wg__rng_below(rng, 26)) : '\0';
    out[TEXT_LENGTH] = '\0';
}

void wg__kserve_fill(struct wg_buffer *out, const struct wg_kserve_tensor *tensor,
                     struct wg_rng *rng)
{
    const size_t elements = wg__kserve_elements(tensor);
    for (size_t i = 0; i < elements && !out->failed; i++) {
        if (tensor->type != WG_KSERVE_BYTES) {
            uint8_t bytes[8];
            const size_t size = encode(bytes, tensor->type, draw(tensor->type, rng));
            wg__buffer_append(out, (const char *)bytes, size);
            continue;
        }
        char text[TEXT_LENGTH + 1];
        draw_text(text, rng);
        const size_t length = strlen(text);
        const uint32_t prefix = htole32((uint32_t)length);
        wg__buffer_append(out, (const char *)&prefix, sizeof prefix);
        wg__buffer_append(out, text, length);
    }
}

void wg__kserve_fill_json(struct wg_json *json, const struct wg_kserve_tensor *tensor,
                          struct wg_rng *rng)
{
    const size_t elements = wg__kserve_elements(tensor);
    wg__json_array(json);
    for (size_t i = 0; i < elements && !json->out->failed; i++) {
        if (tensor->type == WG_KSERVE_BYTES) {
            char text[TEXT_LENGTH + 1];
            draw_text(text, rng);
            wg__json_string(json, text);
        } else if (tensor->type == WG_KSERVE_BOOL) {
            wg__json_bool(json, draw(tensor->type, rng) != 0);
        } else {
            wg__json_double(json, draw(tensor->type, rng));
        }
    }
    wg__json_close(json);
}

/* -- Counts ----------------------------------------------------------------------------------- */

void wg__kserve_add_batch(struct wg_kserve_statistics *statistics,
                          const struct wg_kserve_batch *batch)
{
    for (size_t i = 0; i < statistics->batch_count; i++) {
        if (statistics->batches[i].size == batch->size) { /* another version of the model */
            statistics->batches[i].executions += batch->executions;
            statistics->batches[i].time_ns += batch->time_ns;
            return;
        }
    }
    if (statistics->batch_count < WG_KSERVE_BATCHES_MAX)
        statistics->batches[statistics->batch_count++] = *batch;
}

bool wg__kserve_has_fallen(const struct wg_kserve_statistics *before,
                           const struct wg_kserve_statistics *after)
{
    return after->inferences < before->inferences || after->executions < before->executions ||
           after->success.count < before->success.count || after->fail.count < before->fail.count ||
           after->queue.count < before->queue.count;
}

static struct wg_kserve_duration since(struct wg_kserve_duration before,
                                       struct wg_kserve_duration after)
{
    return (struct wg_kserve_duration){
        .count = after.count - before.count,
        .time_ns = after.time_ns > before.time_ns ? after.time_ns - before.time_ns : 0,
    };
}

void wg__kserve_statistics_since(struct wg_kserve_statistics *out,
                                 const struct wg_kserve_statistics *before,
                                 const struct wg_kserve_statistics *after)
{
    *out = *after;
    if (wg__kserve_has_fallen(before, after))
        return;
    out->inferences -= before->inferences;
    out->executions -= before->executions;
    out->success = since(before->success, after->success);
    out->fail = since(before->fail, after->fail);
    out->queue = since(before->queue, after->queue);
    out->compute = since(before->compute, after->compute);
    out->batch_count = 0;
    for (size_t i = 0; i < after->batch_count; i++) {
        struct wg_kserve_batch batch = after->batches[i];
        for (size_t j = 0; j < before->batch_count; j++) {
            const struct wg_kserve_batch *old = &before->batches[j];
            if (old->size != batch.size)
                continue;
            batch.executions -=
                old->executions < batch.executions ? old->executions : batch.executions;
            batch.time_ns -= old->time_ns < batch.time_ns ? old->time_ns : batch.time_ns;
        }
        if (batch.executions != 0)
            out->batches[out->batch_count++] = batch;
    }
}
