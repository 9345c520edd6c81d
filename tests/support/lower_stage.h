/* SPDX-License-Identifier: MIT
 *
 * Graphs made into layers, for tests of lowering; over support/shape_stage.h.
 *
 *     struct wg_network network = stage_lower(&stage, "y", 1);     shapes first; y is the output
 *     assert_int_equal(layer_named(&network, "fc")->gemm.n, 10);
 *     assert_true(network_macs(&network) == 640);
 *     wg__network_fini(&network);
 */
#ifndef WG_SUPPORT_LOWER_STAGE_H
#define WG_SUPPORT_LOWER_STAGE_H

#include "model/lower.h"
#include "support/shape_stage.h"

/* A constant of floats without elements, as the built-in networks have them. */
static inline void stage_weight(struct shape_stage *stage, const char *name, const char *shape)
{
    int32_t index = 0;
    struct wg_constant *constant = stage_room(stage, 1, sizeof *constant);
    struct wg_tensor *tensor = stage_tensor(stage, name, &index);
    *constant = (struct wg_constant){.elem_type = WG_ELEM_FLOAT, .element_count = 1};
    tensor->elem_type = WG_ELEM_FLOAT;
    tensor->shape = stage_shape(stage, shape);
    tensor->constant = constant;
    for (size_t i = 0; i < tensor->shape.rank; i++)
        constant->element_count *= (uint64_t)tensor->shape.dims[i].value;
}

/* A node named after its first output. */
static inline void stage_step(struct shape_stage *stage, const char *op, const char *inputs,
                              const char *outputs, const struct wg_attribute *attributes,
                              size_t attribute_count)
{
    stage_node(stage, op, inputs, outputs, attributes, attribute_count);
    struct wg_graph *graph = stage->build.graph;
    struct wg_node *node = &graph->nodes[graph->node_count - 1];
    node->name = graph->tensors[node->outputs[0]].name;
}

/* Outputs of a graph: names apart by blanks. */
static inline void stage_outputs(struct shape_stage *stage, const char *names)
{
    int32_t *outputs = stage_room(stage, 16, sizeof *outputs);
    stage->build.graph->output_count = stage_names(stage, names, outputs);
    stage->build.graph->outputs = outputs;
}

/* A graph within `outer`, for an attribute of one of its nodes; to be closed by stage_leave. */
static inline struct wg_graph *stage_enter(struct shape_stage *inner, struct shape_stage *outer)
{
    *inner = (struct shape_stage){.model = outer->model};
    assert_int_equal(wg__graph_build_init(&inner->build, &outer->model->arena, "inner",
                                          &outer->build, &inner->err),
                     WG_OK);
    return inner->build.graph;
}

/* Makes `name` of the graph around known within. */
static inline void stage_capture(struct shape_stage *inner, const char *name)
{
    int32_t index = -1;
    assert_int_equal(wg__graph_build_resolve(&inner->build, name, &index, &inner->err), WG_OK);
    assert_true(index >= 0);
}

static inline void stage_leave(struct shape_stage *inner, const char *outputs)
{
    stage_outputs(inner, outputs);
    wg__graph_build_fini(&inner->build);
}

#define STAGE_GRAPH(key, value)                                                                    \
    ((struct wg_attribute){.name = (key), .type = WG_ATTRIBUTE_GRAPH, .graph = (value)})

static inline struct wg_network model_lower(struct wg_model *model, uint64_t batch)
{
    struct wg_error err = {0};
    struct wg_network network = {0};
    const struct wg_lower_opts opts = {.dtype = WG_DTYPE_FP16, .batch = batch};
    if (wg__shapes_infer(model, &err) != WG_OK || wg__lower(&network, model, &opts, &err) != WG_OK)
        fail_msg("%s", err.text);
    return network;
}

static inline struct wg_network stage_lower(struct shape_stage *stage, const char *outputs,
                                            uint64_t batch)
{
    stage_outputs(stage, outputs);
    return model_lower(stage->model, batch);
}

/* Multiply-adds of a layer, in its own terms. */
static inline double layer_macs(const struct wg_layer *layer)
{
    if (layer->kind == WG_LAYER_BYTES)
        return 0.0;
    return (layer->kind == WG_LAYER_CONV ? wg__conv_flops(&layer->conv)
                                         : wg__gemm_flops(&layer->gemm)) /
           2.0;
}

static inline double network_macs(const struct wg_network *network)
{
    double sum = 0.0;
    for (size_t i = 0; i < network->layer_count; i++)
        sum += layer_macs(&network->layers[i]);
    return sum;
}

static inline uint64_t network_parameters(const struct wg_network *network)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < network->layer_count; i++)
        sum += network->layers[i].parameters;
    return sum;
}

static inline const struct wg_layer *layer_named(const struct wg_network *network, const char *name)
{
    for (size_t i = 0; i < network->layer_count; i++) {
        if (strcmp(network->layers[i].name, name) == 0)
            return &network->layers[i];
    }
    fail_msg("no layer '%s'", name);
    return NULL;
}

static inline const struct wg_width *width_of(const struct wg_network *network,
                                              const struct wg_channels *side, size_t part)
{
    assert_true(part < side->part_count);
    return &network->widths[side->parts[part].width];
}

#endif
