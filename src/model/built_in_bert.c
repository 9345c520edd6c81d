/* SPDX-License-Identifier: MIT
 *
 * BERT-base (Devlin et al. 2019), with the names of Hugging Face's modules: 109,482,240 parameters,
 * of which 85,054,464 in the twelve layers of the encoder.
 *
 * Inputs are token, segment and position ids of batch x sequence; all sequences are full, so there
 * is no mask. The pooled first token is the output.
 *
 * Threads: one thread at a time.
 */
#include "model/built_in_nets.h"

enum { HIDDEN = 768, HEADS = 12, INNER = 3072, LAYERS = 12 };

/* y = x * W + b over the last dimension of more than two, which ONNX' Gemm doesn't know. */
static int32_t dense(struct wg_net *net, int32_t x, const char *name, int64_t in, int64_t out)
{
    const int64_t dims[] = {in, out};
    const int32_t product[] = {x,
                               wg__net_weight(net, wg__net_name(net, "%s.weight", name), dims, 2)};
    const int32_t y = wg__net_node(net, "MatMul", name, product, 2, NULL, 0);
    const int32_t bias = wg__net_weight(net, wg__net_name(net, "%s.bias", name), &dims[1], 1);
    return wg__net_add(net, y, bias, wg__net_name(net, "%s.add", name));
}

static int32_t layer_norm(struct wg_net *net, int32_t x, const char *name)
{
    const int64_t hidden = HIDDEN;
    const int32_t inputs[] = {x,
                              wg__net_weight(net, wg__net_name(net, "%s.weight", name), &hidden, 1),
                              wg__net_weight(net, wg__net_name(net, "%s.bias", name), &hidden, 1)};
    const struct wg_attribute axis[] = {{.name = "axis", .type = WG_ATTRIBUTE_INT, .i = -1}};
    return wg__net_node(net, "LayerNormalization", name, inputs, 3, axis, 1);
}

static int32_t transpose(struct wg_net *net, int32_t x, const char *name, const int64_t order[4])
{
    const struct wg_attribute perm[] = {
        {.name = "perm", .type = WG_ATTRIBUTE_INTS, .ints = order, .count = 4}};
    return wg__net_node(net, "Transpose", name, &x, 1, perm, 1);
}

/* batch x sequence x 768 as batch x 12 x sequence x 64, its last two dimensions in `order`. */
static int32_t split_heads(struct wg_net *net, int32_t x, const char *name, const int64_t order[4])
{
    static const int64_t shape[] = {0, 0, HEADS, HIDDEN / HEADS};
    const int32_t inputs[] = {x, wg__net_ints(net, wg__net_name(net, "%s.shape", name), shape, 4)};
    x = wg__net_node(net, "Reshape", wg__net_name(net, "%s.heads", name), inputs, 2, NULL, 0);
    return transpose(net, x, wg__net_name(net, "%s.transpose", name), order);
}

static int32_t attention(struct wg_net *net, int32_t x, const char *layer)
{
    static const int64_t by_head[] = {0, 2, 1, 3}, by_head_turned[] = {0, 2, 3, 1};
    static const int64_t merged[] = {0, 0, HIDDEN};
    int32_t parts[3];
    static const char *const names[] = {"query", "key", "value"};
    const char *self = wg__net_name(net, "%s.attention.self", layer);
    for (size_t i = 0; i < 3; i++) {
        const char *name = wg__net_name(net, "%s.%s", self, names[i]);
        parts[i] = split_heads(net, dense(net, x, name, HIDDEN, HIDDEN), name,
                               i == 1 ? by_head_turned : by_head);
    }
    int32_t y = wg__net_node(net, "MatMul", wg__net_name(net, "%s.scores", self),
                             (const int32_t[]){parts[0], parts[1]}, 2, NULL, 0);
    const int32_t scaled[] = {y, wg__net_float(net, wg__net_name(net, "%s.root", self), 8.0F)};
    y = wg__net_node(net, "Div", wg__net_name(net, "%s.scale", self), scaled, 2, NULL, 0);
    const struct wg_attribute axis[] = {{.name = "axis", .type = WG_ATTRIBUTE_INT, .i = -1}};
    y = wg__net_node(net, "Softmax", wg__net_name(net, "%s.softmax", self), &y, 1, axis, 1);
    y = wg__net_node(net, "MatMul", wg__net_name(net, "%s.context", self),
                     (const int32_t[]){y, parts[2]}, 2, NULL, 0);
    y = transpose(net, y, wg__net_name(net, "%s.transpose", self), by_head);
    const int32_t joined[] = {y, wg__net_ints(net, wg__net_name(net, "%s.shape", self), merged, 3)};
    return wg__net_node(net, "Reshape", wg__net_name(net, "%s.merge", self), joined, 2, NULL, 0);
}

/* What ends both halves of a layer: dense, the shortcut, a norm. */
static int32_t output(struct wg_net *net, int32_t y, int32_t shortcut, const char *name, int64_t in)
{
    y = dense(net, y, wg__net_name(net, "%s.dense", name), in, HIDDEN);
    y = wg__net_add(net, y, shortcut, wg__net_name(net, "%s.shortcut", name));
    return layer_norm(net, y, wg__net_name(net, "%s.LayerNorm", name));
}

static int32_t encoder_layer(struct wg_net *net, int32_t x, int index)
{
    const char *layer = wg__net_name(net, "encoder.layer.%d", index);
    int32_t y = attention(net, x, layer);
    x = output(net, y, x, wg__net_name(net, "%s.attention.output", layer), HIDDEN);
    y = dense(net, x, wg__net_name(net, "%s.intermediate.dense", layer), HIDDEN, INNER);
    y = wg__net_node(net, "Gelu", wg__net_name(net, "%s.intermediate.gelu", layer), &y, 1, NULL, 0);
    return output(net, y, x, wg__net_name(net, "%s.output", layer), INNER);
}

static int32_t embeddings(struct wg_net *net)
{
    static const struct {
        const char *input, *module;
        int64_t rows;
    } tables[] = {{"input_ids", "embeddings.word_embeddings", 30522},
                  {"token_type_ids", "embeddings.token_type_embeddings", 2},
                  {"position_ids", "embeddings.position_embeddings", 512}};
    const struct wg_dim dims[] = {{WG_DIM_UNKNOWN, "batch"}, {WG_DIM_UNKNOWN, "sequence"}};
    int32_t sum = -1;
    for (size_t i = 0; i < 3; i++) {
        const int64_t shape[] = {tables[i].rows, HIDDEN};
        const int32_t ids = wg__net_input(net, tables[i].input, WG_ELEM_INT64, dims, 2);
        const int32_t inputs[] = {
            wg__net_weight(net, wg__net_name(net, "%s.weight", tables[i].module), shape, 2), ids};
        const int32_t rows = wg__net_node(net, "Gather", tables[i].module, inputs, 2, NULL, 0);
        sum = i == 0 ? rows
                     : wg__net_add(net, sum, rows, wg__net_name(net, "%s.add", tables[i].module));
    }
    return layer_norm(net, sum, "embeddings.LayerNorm");
}

int32_t wg__built_in_bert_base(struct wg_net *net)
{
    int32_t x = embeddings(net);
    for (int i = 0; i < LAYERS; i++)
        x = encoder_layer(net, x, i);
    const int64_t first = 0;
    const int32_t inputs[] = {x, wg__net_ints(net, "pooler.first", &first, 1)};
    const struct wg_attribute axis[] = {{.name = "axis", .type = WG_ATTRIBUTE_INT, .i = 1}};
    x = wg__net_node(net, "Gather", "pooler.token", inputs, 2, axis, 1);
    x = wg__net_flatten(net, x);
    x = wg__net_linear(net, x, "pooler.dense", HIDDEN, HIDDEN);
    return wg__net_node(net, "Tanh", "pooler.activation", &x, 1, NULL, 0);
}
