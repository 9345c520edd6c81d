/* SPDX-License-Identifier: MIT
 *
 * Fourier transforms, and operators on text.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include "model/shape_pass.h"

/* A number that an input tells; WG_DIM_UNKNOWN: it doesn't. */
static enum wg_code told_number(const struct wg_shape_node *n, size_t input, int64_t *out)
{
    size_t count = 0;
    bool has = false;
    int64_t value = 0;
    const enum wg_code code = wg__shape_int_values(n, input, &value, 1, &count, &has);
    *out = has && count == 1 ? value : WG_DIM_UNKNOWN;
    return code;
}

/* The axis became an input in opset 20. */
static enum wg_code dft_axis(const struct wg_shape_node *n, size_t rank, size_t *out, bool *has)
{
    size_t count = 1;
    int64_t axis = -2;
    enum wg_code code = WG_OK;
    *has = true;
    if (n->opset < 20)
        axis = wg__shape_int(n, "axis", 1);
    else if (wg__shape_has(n, 2))
        code = wg__shape_int_values(n, 2, &axis, 1, &count, has);
    *has = *has && count == 1;
    return code == WG_OK && *has ? wg__shape_axis(n, axis, rank, out) : code;
}

/* How long a transform's axis comes out. */
static struct wg_dim spectrum(struct wg_dim signal, bool is_told, bool is_half, bool is_inverse)
{
    if (!is_half || !wg__dim_known(signal))
        return is_half ? wg__dim_unknown : signal;
    if (!is_inverse)
        return wg__dim(signal.value / 2 + 1);
    if (is_told)
        return signal;
    return wg__dim(signal.value > 0 ? 2 * (signal.value - 1) : 0);
}

/* The last axis holds real and imaginary part. Half of a spectrum suffices for a real signal:
 * length / 2 + 1, and back from those to the signal. */
static enum wg_code dft(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0);
    int64_t length = WG_DIM_UNKNOWN;
    const bool is_half = wg__shape_int(n, "onesided", 0) != 0;
    const bool is_inverse = wg__shape_int(n, "inverse", 0) != 0;
    const bool is_told = wg__shape_has(n, 1);
    size_t axis = 0;
    bool has = false;
    wg__shape_pass_type(n, 0, 0);
    if (data == NULL || data->rank < 2)
        return WG_OK;
    enum wg_code code = told_number(n, 1, &length);
    if (code == WG_OK)
        code = dft_axis(n, data->rank, &axis, &has);
    if (code != WG_OK)
        return code;
    struct wg_shape out = *data;
    if (has) {
        const struct wg_dim told = wg__dim(length >= 0 ? length : WG_DIM_UNKNOWN);
        out.dims[axis] = spectrum(is_told ? told : data->dims[axis], is_told, is_half, is_inverse);
    } else if (is_told || is_half) {
        out = wg__shape_of_rank(data->rank);
    }
    out.dims[out.rank - 1] = wg__dim(is_inverse && is_half ? 1 : 2);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* (batch, samples, parts) -> (batch, frames, bins, 2) */
static enum wg_code stft(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0), *window = wg__shape_in(n, 2);
    int64_t step = 0, length = WG_DIM_UNKNOWN;
    struct wg_shape out = wg__shape_of_rank(4);
    wg__shape_pass_type(n, 0, 0);
    enum wg_code code = told_number(n, 1, &step);
    if (code == WG_OK)
        code = told_number(n, 3, &length);
    if (code != WG_OK || data == NULL || data->rank < 2)
        return code;
    if (length < 1 && window != NULL && window->rank == 1)
        length = window->dims[0].value;
    out.dims[0] = data->dims[0];
    if (length > 0 && step > 0 && wg__dim_known(data->dims[1]) && data->dims[1].value >= length)
        out.dims[1] = wg__dim((data->dims[1].value - length) / step + 1);
    if (length > 0)
        out.dims[2] = wg__dim(wg__shape_int(n, "onesided", 1) != 0 ? length / 2 + 1 : length);
    out.dims[3] = wg__dim(2);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* --- Text ------------------------------------------------------------------------------------- */

static enum wg_code string_concat(struct wg_shape_node *n)
{
    wg__shape_set_type(n, 0, WG_ELEM_STRING);
    return wg__shape_broadcast_all(n, 0, 2);
}

static enum wg_code string_split(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0);
    wg__shape_set_type(n, 0, WG_ELEM_STRING);
    wg__shape_set_type(n, 1, WG_ELEM_INT64);
    if (data == NULL)
        return WG_OK;
    struct wg_shape out = *data;
    const enum wg_code code = wg__shape_push(n, &out, wg__dim_unknown);
    if (code != WG_OK)
        return code;
    wg__shape_set(n, 0, &out);
    wg__shape_set(n, 1, data);
    return WG_OK;
}

/* Stop words go, so the last axis shrinks by what isn't known. */
static enum wg_code string_normalizer(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0);
    wg__shape_set_type(n, 0, WG_ELEM_STRING);
    if (data == NULL || data->rank == 0)
        return WG_OK;
    struct wg_shape out = *data;
    out.dims[out.rank - 1] = wg__dim_unknown;
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code tf_idf(struct wg_shape_node *n)
{
    size_t count = 0;
    const struct wg_shape *data = wg__shape_in(n, 0);
    const int64_t *indices = wg__shape_ints(n, "ngram_indexes", &count);
    int64_t most = -1;
    wg__shape_set_type(n, 0, WG_ELEM_FLOAT);
    if (data == NULL || indices == NULL || data->rank < 1 || data->rank > 2)
        return WG_OK;
    for (size_t i = 0; i < count; i++)
        most = indices[i] > most ? indices[i] : most;
    struct wg_shape out = *data;
    out.dims[out.rank - 1] = wg__dim(most < INT64_MAX ? most + 1 : WG_DIM_UNKNOWN);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static const struct wg_shape_op ops[] = {
    {"DFT", dft, NULL},
    {"RegexFullMatch", wg__shape_same_bool, NULL},
    {"STFT", stft, NULL},
    {"StringConcat", string_concat, NULL},
    {"StringNormalizer", string_normalizer, NULL},
    {"StringSplit", string_split, NULL},
    {"TfIdfVectorizer", tf_idf, NULL},
};

const struct wg_shape_family wg__shape_ops_signal = {"", ops, sizeof ops / sizeof ops[0]};
