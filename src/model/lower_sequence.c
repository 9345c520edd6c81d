/* SPDX-License-Identifier: MIT
 *
 * Matrix products in other clothes: recurrent operators, Einsum, attention as one operator.
 *
 *     LSTM, GRU, RNN     one product of all steps' inputs, then a small one a step, one after the
 *                        other: that is where their time goes
 *     Einsum             of two operands, where each letter is a batch, rows, columns or summed
 * over Attention          queries by keys, then by values, each head a product
 *
 * A form that is not one of these is WG_EUNSUPPORTED: the operator then only moves bytes.
 *
 * Owns: nothing.    Threads: one at a time.
 */
#include <stdio.h>
#include <string.h>

#include "model/lower_parts.h"

enum { STEPS_MAX = 4096 }; /* of a recurrence, each a layer */

static bool multiply(uint64_t *product, uint64_t factor)
{
    return !__builtin_mul_overflow(*product, factor, product) && *product <= INT64_MAX;
}

static void fix_inputs(struct wg_lower *lower, const struct wg_node *node)
{
    for (size_t i = 0; i < node->input_count; i++) {
        const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, i);
        if (state != NULL)
            wg__lower_fix(lower, &state->label);
    }
}

static uint64_t count_static(struct wg_lower *lower, const struct wg_node *node, size_t input)
{
    const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, input);
    return state != NULL && state->is_static ? wg__lower_count(lower, node->inputs[input]) : 0;
}

/* The sizes of an input of exactly `rank` dimensions, none of them 0. */
static enum wg_code input_dims(struct wg_lower *lower, const struct wg_node *node, size_t input,
                               size_t rank, uint64_t dims[WG_DIMS_MAX])
{
    size_t actual = 0;
    const struct wg_tensor *tensor = wg__lower_input(lower, node, input);
    if (tensor == NULL)
        return WG_EUNSUPPORTED;
    const enum wg_code code = wg__lower_need_dims(lower, node, tensor, &actual, dims);
    if (code != WG_OK)
        return code;
    return actual == rank && wg__lower_elements(rank, dims) != 0 ? WG_OK : WG_EUNSUPPORTED;
}

/* --- Recurrent operators ---------------------------------------------------------------------- */

struct recurrence {
    uint64_t steps, samples, inputs, directions, gates, hidden;
};

static enum wg_code read_recurrence(struct wg_lower *lower, const struct wg_node *node,
                                    struct recurrence *out)
{
    uint64_t x[WG_DIMS_MAX];
    uint64_t w[WG_DIMS_MAX];
    uint64_t r[WG_DIMS_MAX];
    enum wg_code code = input_dims(lower, node, 0, 3, x);
    if (code == WG_OK)
        code = input_dims(lower, node, 1, 3, w);
    if (code == WG_OK)
        code = input_dims(lower, node, 2, 3, r);
    if (code != WG_OK)
        return code;
    const bool is_batch_first = wg__node_int(node, "layout", 0) == 1;
    *out = (struct recurrence){.steps = is_batch_first ? x[1] : x[0],
                               .samples = is_batch_first ? x[0] : x[1],
                               .inputs = x[2],
                               .directions = w[0],
                               .gates = w[1],
                               .hidden = r[2]};
    const bool fits = x[2] == w[2] && w[0] == r[0] && w[1] == r[1] && out->steps <= STEPS_MAX;
    return fits ? WG_OK : WG_EUNSUPPORTED;
}

static enum wg_code lower_recurrence(struct wg_lower *lower, const struct wg_node *node)
{
    struct recurrence r;
    enum wg_code code = read_recurrence(lower, node, &r);
    if (code != WG_OK)
        return code;
    struct wg_layer layer = {.op = node->op, .kind = WG_LAYER_GEMM, .name = "/inputs"};
    layer.gemm = (struct wg_gemm){.dtype = lower->opts.dtype,
                                  .batch = r.directions,
                                  .m = r.samples,
                                  .n = r.gates,
                                  .k = r.inputs,
                                  .has_bias = true};
    if (!multiply(&layer.gemm.m, r.steps))
        return WG_EUNSUPPORTED;
    for (size_t i = 1; i < 4; i++)
        layer.parameters += count_static(lower, node, i);
    layer.parameters += count_static(lower, node, 7); /* peepholes */
    fix_inputs(lower, node);
    code = wg__lower_add(lower, node, &layer);
    layer.parameters = 0;
    layer.gemm.m = r.samples;
    layer.gemm.k = r.hidden;
    for (uint64_t i = 0; i < r.steps && code == WG_OK; i++) {
        char suffix[32];
        (void)snprintf(suffix, sizeof suffix, "/step %u", (unsigned)i);
        layer.name = suffix;
        code = wg__lower_add(lower, node, &layer);
    }
    return code;
}

/* --- Einsum ----------------------------------------------------------------------------------- */

enum { LETTERS = 52 };

/* "bij,bjk->bik", taken apart: which letters each term has. */
struct einsum {
    const char *terms[3]; /* two operands, the result */
    size_t lengths[3];
    bool has[3][LETTERS];
};

static int letter_of(char c)
{
    if (c >= 'a' && c <= 'z')
        return c - 'a';
    return c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -1;
}

/* One term, up to `end`; a letter twice would be a diagonal. */
static bool read_term(const char **at, const char *end, char stop, size_t term, struct einsum *out)
{
    out->terms[term] = *at;
    for (; *at != end && **at != stop; (*at)++) {
        const int letter = letter_of(**at);
        if (letter < 0 || out->has[term][letter])
            return false;
        out->has[term][letter] = true;
        out->lengths[term]++;
    }
    return true;
}

static bool read_equation(const struct wg_node *node, struct einsum *out)
{
    const struct wg_attribute *equation = wg__node_attribute(node, "equation");
    *out = (struct einsum){0};
    if (equation == NULL || equation->type != WG_ATTRIBUTE_STRING || node->input_count != 2)
        return false;
    const char *at = equation->s;
    const char *end = at + equation->s_length;
    if (!read_term(&at, end, ',', 0, out) || at == end)
        return false;
    at++;
    if (!read_term(&at, end, '-', 1, out) || end - at < 2 || at[1] != '>')
        return false;
    at += 2;
    if (!read_term(&at, end, '\0', 2, out) || at != end)
        return false;
    for (int i = 0; i < LETTERS; i++) { /* each letter in two terms at least: nothing else to sum */
        const int terms = out->has[0][i] + out->has[1][i] + out->has[2][i];
        if (terms == 1)
            return false;
    }
    return true;
}

static enum wg_code letter_sizes(struct wg_lower *lower, const struct wg_node *node,
                                 const struct einsum *einsum, uint64_t sizes[LETTERS])
{
    for (size_t term = 0; term < 2; term++) {
        uint64_t dims[WG_DIMS_MAX];
        const enum wg_code code = input_dims(lower, node, term, einsum->lengths[term], dims);
        if (code != WG_OK)
            return code;
        for (size_t i = 0; i < einsum->lengths[term]; i++) {
            uint64_t *size = &sizes[letter_of(einsum->terms[term][i])];
            if (*size != 0 && *size != dims[i])
                return WG_EUNSUPPORTED;
            *size = dims[i];
        }
    }
    return WG_OK;
}

static enum wg_code lower_einsum(struct wg_lower *lower, const struct wg_node *node)
{
    struct einsum einsum;
    uint64_t sizes[LETTERS] = {0};
    if (!read_equation(node, &einsum))
        return WG_EUNSUPPORTED;
    const enum wg_code code = letter_sizes(lower, node, &einsum, sizes);
    if (code != WG_OK)
        return code;
    struct wg_layer layer = {.op = node->op, .kind = WG_LAYER_GEMM};
    layer.gemm = (struct wg_gemm){.dtype = lower->opts.dtype, .batch = 1, .m = 1, .n = 1, .k = 1};
    bool fits = true;
    for (int i = 0; i < LETTERS; i++) {
        const bool a = einsum.has[0][i];
        const bool b = einsum.has[1][i];
        uint64_t *role = !einsum.has[2][i] ? &layer.gemm.k
                         : a && b          ? &layer.gemm.batch
                         : a               ? &layer.gemm.m
                                           : &layer.gemm.n;
        if (a || b)
            fits = fits && multiply(role, sizes[i]);
    }
    if (!fits)
        return WG_EUNSUPPORTED;
    layer.parameters = count_static(lower, node, 0) + count_static(lower, node, 1);
    fix_inputs(lower, node);
    return wg__lower_add(lower, node, &layer);
}

/* --- Attention -------------------------------------------------------------------------------- */

struct attention {
    uint64_t samples, heads, queries, keys, key_size, value_size;
};

/* The two products of `at`. */
static enum wg_code add_attention(struct wg_lower *lower, const struct wg_node *node,
                                  const struct attention *at)
{
    struct wg_layer layer = {.op = node->op, .kind = WG_LAYER_GEMM, .name = "/scores"};
    layer.gemm = (struct wg_gemm){.dtype = lower->opts.dtype,
                                  .batch = at->samples,
                                  .m = at->queries,
                                  .n = at->keys,
                                  .k = at->key_size};
    if (!multiply(&layer.gemm.batch, at->heads))
        return WG_EUNSUPPORTED;
    fix_inputs(lower, node);
    const enum wg_code code = wg__lower_add(lower, node, &layer);
    if (code != WG_OK)
        return code;
    layer.name = "/values";
    layer.gemm.n = at->value_size;
    layer.gemm.k = at->keys;
    return wg__lower_add(lower, node, &layer);
}

/* Q, K and V as [samples, heads, length, size], or [samples, length, heads * size]. */
static enum wg_code read_heads(struct wg_lower *lower, const struct wg_node *node, size_t input,
                               int64_t heads, uint64_t *samples, uint64_t *length, uint64_t *size)
{
    uint64_t dims[WG_DIMS_MAX];
    enum wg_code code = input_dims(lower, node, input, 4, dims);
    if (code == WG_OK) {
        *samples = dims[0];
        *length = dims[2];
        *size = dims[3];
        return WG_OK;
    }
    if (code == WG_EUNSUPPORTED && heads > 0)
        code = input_dims(lower, node, input, 3, dims);
    if (code != WG_OK)
        return code;
    if (dims[2] % (uint64_t)heads != 0)
        return WG_EUNSUPPORTED;
    *samples = dims[0];
    *length = dims[1];
    *size = dims[2] / (uint64_t)heads;
    return WG_OK;
}

/* ONNX' Attention (opset 23) and MultiHeadAttention of com.microsoft. */
static enum wg_code lower_heads(struct wg_lower *lower, const struct wg_node *node)
{
    uint64_t samples = 0;
    uint64_t length = 0;
    struct attention at = {0};
    uint64_t dims[WG_DIMS_MAX];
    const int64_t heads = wg__node_int(node, "q_num_heads", wg__node_int(node, "num_heads", 0));
    const int64_t kv_heads = wg__node_int(node, "kv_num_heads", heads);
    enum wg_code code = read_heads(lower, node, 0, heads, &at.samples, &at.queries, &at.key_size);
    uint64_t key_size = 0;
    if (code == WG_OK)
        code = read_heads(lower, node, 1, kv_heads, &samples, &at.keys, &key_size);
    if (code == WG_OK)
        code = read_heads(lower, node, 2, kv_heads, &samples, &length, &at.value_size);
    if (code != WG_OK)
        return code;
    if (key_size != at.key_size || length != at.keys)
        return WG_EUNSUPPORTED;
    at.heads = heads > 0 ? (uint64_t)heads : 0;
    if (at.heads == 0 && input_dims(lower, node, 0, 4, dims) == WG_OK)
        at.heads = dims[1];
    if (strcmp(node->domain, "") == 0 && wg__lower_input(lower, node, 4) != NULL) {
        code = input_dims(lower, node, 4, 4, dims); /* keys of earlier calls come first */
        if (code != WG_OK)
            return code;
        at.keys += dims[2];
    }
    return add_attention(lower, node, &at);
}

/* Attention of com.microsoft projects its input to queries, keys and values first. */
static enum wg_code lower_projected(struct wg_lower *lower, const struct wg_node *node)
{
    uint64_t x[WG_DIMS_MAX];
    uint64_t w[WG_DIMS_MAX];
    size_t listed = 0;
    const int64_t *parts = wg__node_ints(node, "qkv_hidden_sizes", &listed);
    const int64_t heads = wg__node_int(node, "num_heads", 0);
    enum wg_code code = input_dims(lower, node, 0, 3, x);
    if (code == WG_OK)
        code = input_dims(lower, node, 1, 2, w);
    if (code != WG_OK)
        return code;
    if (heads < 1 || x[2] != w[0] || parts != NULL || w[1] % (3 * (uint64_t)heads) != 0 ||
        wg__lower_input(lower, node, 4) != NULL)
        return WG_EUNSUPPORTED;
    struct wg_layer layer = {.op = node->op, .kind = WG_LAYER_GEMM, .name = "/projection"};
    layer.gemm = (struct wg_gemm){
        .dtype = lower->opts.dtype, .batch = 1, .m = x[0], .n = w[1], .k = w[0], .has_bias = true};
    if (!multiply(&layer.gemm.m, x[1]))
        return WG_EUNSUPPORTED;
    layer.parameters = count_static(lower, node, 1) + count_static(lower, node, 2);
    code = wg__lower_add(lower, node, &layer);
    if (code != WG_OK)
        return code;
    const uint64_t size = w[1] / 3 / (uint64_t)heads;
    const struct attention at = {x[0], (uint64_t)heads, x[1], x[1], size, size};
    return add_attention(lower, node, &at);
}

wg_lower_layer_fn wg__lower_sequence_of(const struct wg_node *node)
{
    if (strcmp(node->op, "LSTM") == 0 || strcmp(node->op, "GRU") == 0 ||
        strcmp(node->op, "RNN") == 0)
        return lower_recurrence;
    if (strcmp(node->op, "Einsum") == 0)
        return lower_einsum;
    if (strcmp(node->op, "MultiHeadAttention") == 0)
        return lower_heads;
    if (strcmp(node->op, "Attention") == 0)
        return node->domain[0] == '\0' ? lower_heads : lower_projected;
    return NULL;
}
