/* SPDX-License-Identifier: MIT
 *
 * Small graphs written in a line, for tests of shape inference.
 *
 *     struct shape_stage stage;
 *     stage_open(&stage, 13);
 *     stage_input(&stage, "x", WG_ELEM_FLOAT, "batch,3,?");
 *     stage_ints(&stage, "axes", "2", (const int64_t[]){0}, 1);   a constant of that shape
 *     stage_node(&stage, "Unsqueeze", "x axes", "y", NULL, 0);
 *     stage_infer(&stage);
 *     stage_check(&stage, "y", "1,batch,3,?");
 *
 * A shape's text lists dimensions: numbers, names, ? for unknown; "" has none; "none": rank not
 * known.
 */
#ifndef WG_SUPPORT_SHAPE_STAGE_H
#define WG_SUPPORT_SHAPE_STAGE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/graph_build.h"
#include "model/shapes.h"
#include "support/check.h"

struct shape_stage {
    struct wg_model *model;
    struct wg_graph_build build;
    struct wg_opset opsets[2];
    int32_t inputs[16];
    struct wg_error err;
};

static inline void *stage_room(struct shape_stage *stage, size_t count, size_t size)
{
    void *room = wg__arena_alloc(&stage->model->arena, count != 0 ? count : 1, size);
    assert_non_null(room);
    return room;
}

static inline void stage_open(struct shape_stage *stage, int64_t opset)
{
    memset(stage, 0, sizeof *stage);
    stage->model = wg__model_new();
    assert_non_null(stage->model);
    assert_int_equal(
        wg__graph_build_init(&stage->build, &stage->model->arena, "g", NULL, &stage->err), WG_OK);
    stage->model->graph = stage->build.graph;
    stage->opsets[0] = (struct wg_opset){.domain = "", .version = opset};
    stage->opsets[1] = (struct wg_opset){.domain = "com.microsoft", .version = 1};
    stage->model->opsets = stage->opsets;
    stage->model->opset_count = 2;
}

static inline void stage_close(struct shape_stage *stage)
{
    wg__graph_build_fini(&stage->build);
    wg__model_close(stage->model);
}

static inline struct wg_shape stage_shape(struct shape_stage *stage, const char *text)
{
    struct wg_shape shape = {.is_known = strcmp(text, "none") != 0};
    char *copy = wg__arena_strdup(&stage->model->arena, text), *rest = NULL;
    for (char *at = strtok_r(copy, ",", &rest); shape.is_known && at != NULL;
         at = strtok_r(NULL, ",", &rest)) {
        char *end = NULL;
        struct wg_dim dim = {.value = strtoll(at, &end, 10)};
        if (*end != '\0')
            dim = (struct wg_dim){.value = WG_DIM_UNKNOWN, .name = *at == '?' ? NULL : at};
        shape.dims[shape.rank++] = dim;
    }
    return shape;
}

/* The tensor of a name, made where there is none. Valid until the next one is made. */
static inline struct wg_tensor *stage_tensor(struct shape_stage *stage, const char *name,
                                             int32_t *index)
{
    const char *kept = wg__arena_strdup(&stage->model->arena, name);
    assert_int_equal(wg__graph_build_declare(&stage->build, kept, index, &stage->err), WG_OK);
    return &stage->build.graph->tensors[*index];
}

static inline void stage_input(struct shape_stage *stage, const char *name, int elem_type,
                               const char *shape)
{
    struct wg_graph *graph = stage->build.graph;
    struct wg_tensor *tensor = stage_tensor(stage, name, &stage->inputs[graph->input_count]);
    tensor->elem_type = elem_type;
    tensor->shape = stage_shape(stage, shape);
    graph->inputs = stage->inputs;
    graph->input_count++;
}

static inline void stage_constant(struct shape_stage *stage, const char *name, int elem_type,
                                  const char *shape, const void *bytes, size_t byte_count,
                                  size_t elements)
{
    int32_t index = 0;
    struct wg_constant *constant = stage_room(stage, 1, sizeof *constant);
    void *kept = stage_room(stage, byte_count, 1);
    memcpy(kept, bytes, byte_count);
    *constant = (struct wg_constant){
        .elem_type = elem_type, .element_count = elements, .bytes = kept, .byte_count = byte_count};
    struct wg_tensor *tensor = stage_tensor(stage, name, &index);
    tensor->elem_type = elem_type;
    tensor->shape = stage_shape(stage, shape);
    tensor->constant = constant;
}

static inline void stage_ints(struct shape_stage *stage, const char *name, const char *shape,
                              const int64_t *values, size_t count)
{
    stage_constant(stage, name, WG_ELEM_INT64, shape, values, count * sizeof *values, count);
}

/* Names are apart by blanks; "-" is left out. */
static inline size_t stage_names(struct shape_stage *stage, const char *names, int32_t *out)
{
    size_t count = 0;
    char *copy = wg__arena_strdup(&stage->model->arena, names), *rest = NULL;
    for (char *at = strtok_r(copy, " ", &rest); at != NULL; at = strtok_r(NULL, " ", &rest)) {
        out[count] = -1;
        if (strcmp(at, "-") != 0)
            (void)stage_tensor(stage, at, &out[count]);
        count++;
    }
    return count;
}

static inline void stage_node_of(struct shape_stage *stage, const char *domain, const char *op,
                                 const char *inputs, const char *outputs,
                                 const struct wg_attribute *attributes, size_t attribute_count)
{
    int32_t *in = stage_room(stage, 16, sizeof *in), *out = stage_room(stage, 16, sizeof *out);
    struct wg_attribute *kept = stage_room(stage, attribute_count, sizeof *kept);
    if (attribute_count != 0)
        memcpy(kept, attributes, attribute_count * sizeof *kept);
    for (size_t i = 0; i < attribute_count; i++) { /* a list may be the caller's literal */
        if (kept[i].ints == NULL)
            continue;
        int64_t *list = stage_room(stage, kept[i].count, sizeof *list);
        memcpy(list, kept[i].ints, kept[i].count * sizeof *list);
        kept[i].ints = list;
    }
    const struct wg_node node = {.name = "the node",
                                 .op = op,
                                 .domain = domain,
                                 .inputs = in,
                                 .input_count = stage_names(stage, inputs, in),
                                 .outputs = out,
                                 .output_count = stage_names(stage, outputs, out),
                                 .attributes = kept,
                                 .attribute_count = attribute_count};
    assert_int_equal(wg__graph_build_node(&stage->build, &node, &stage->err), WG_OK);
}

static inline void stage_node(struct shape_stage *stage, const char *op, const char *inputs,
                              const char *outputs, const struct wg_attribute *attributes,
                              size_t attribute_count)
{
    stage_node_of(stage, "", op, inputs, outputs, attributes, attribute_count);
}

#define STAGE_INT(key, value)                                                                      \
    ((struct wg_attribute){.name = (key), .type = WG_ATTRIBUTE_INT, .i = (value)})
#define STAGE_TEXT(key, value)                                                                     \
    ((struct wg_attribute){                                                                        \
        .name = (key), .type = WG_ATTRIBUTE_STRING, .s = (value), .s_length = strlen(value)})
#define STAGE_INTS(key, ...)                                                                       \
    ((struct wg_attribute){.name = (key),                                                          \
                           .type = WG_ATTRIBUTE_INTS,                                              \
                           .ints = (const int64_t[]){__VA_ARGS__},                                 \
                           .count = sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)})

static inline void stage_infer(struct shape_stage *stage)
{
    if (wg__shapes_infer(stage->model, &stage->err) != WG_OK)
        fail_msg("%s", stage->err.text);
}

static inline void stage_text(const struct wg_shape *shape, char *out, size_t size)
{
    size_t used = 0;
    (void)snprintf(out, size, "%s", shape->is_known ? "" : "none");
    for (size_t i = 0; shape->is_known && i < shape->rank && used < size; i++) {
        const struct wg_dim dim = shape->dims[i];
        const char *comma = i != 0 ? "," : "";
        int length = 0;
        if (dim.value != WG_DIM_UNKNOWN)
            length = snprintf(out + used, size - used, "%s%lld", comma, (long long)dim.value);
        else
            length =
                snprintf(out + used, size - used, "%s%s", comma, dim.name != NULL ? dim.name : "?");
        used += (size_t)length;
    }
}

static inline void stage_check(struct shape_stage *stage, const char *name, const char *expected)
{
    char text[256];
    int32_t index = 0;
    stage_text(&stage_tensor(stage, name, &index)->shape, text, sizeof text);
    if (strcmp(text, expected) != 0)
        fail_msg("%s is [%s], expected [%s]", name, text, expected);
}

static inline void stage_refuses(struct shape_stage *stage, const char *part)
{
    assert_int_equal(wg__shapes_infer(stage->model, &stage->err), WG_EDATA);
    if (strstr(stage->err.text, "node 'the node'") == NULL || strstr(stage->err.text, part) == NULL)
        fail_msg("\"%s\" doesn't name the node and \"%s\"", stage->err.text, part);
}

#endif
