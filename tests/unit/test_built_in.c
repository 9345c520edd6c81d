/* SPDX-License-Identifier: MIT
 *
 * The built-in networks: parameters and multiply-adds are those of their papers and of torchvision.
 *
 * The oracle is published numbers; they are counted here by a walk of its own, which knows the few
 * operators that the networks have and nothing of shape inference.
 */
#include "model/built_in.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "support/check.h"

struct map {
    int64_t channels, height, width; /* height 0: a matrix */
};

static struct wg_model *open_net(const char *name)
{
    struct wg_model *model = NULL;
    struct wg_error err = {0};
    if (wg__built_in_open(&model, name, &err) != WG_OK)
        fail_msg("%s: %s", name, err.text);
    return model;
}

/* Learned numbers: all constants but running statistics, shapes and scalars. */
static uint64_t count_parameters(const struct wg_graph *graph, const char *prefix)
{
    uint64_t count = 0;
    for (size_t i = 0; i < graph->tensor_count; i++) {
        const struct wg_tensor *tensor = &graph->tensors[i];
        const char *dot = strrchr(tensor->name, '.');
        if (tensor->constant != NULL && tensor->shape.rank != 0 &&
            tensor->elem_type == WG_ELEM_FLOAT && strncmp(dot, ".running_", 9) != 0 &&
            strncmp(tensor->name, prefix, strlen(prefix)) == 0)
            count += tensor->constant->element_count;
    }
    return count;
}

static int64_t first_of(const struct wg_node *node, const char *name, int64_t fallback)
{
    const struct wg_attribute *attribute = wg__node_attribute(node, name);
    return attribute != NULL ? attribute->ints[0] : fallback;
}

static int64_t slide(const struct wg_node *node, int64_t side)
{
    const int64_t kernel = first_of(node, "kernel_shape", 1), stride = first_of(node, "strides", 1);
    return (side + 2 * first_of(node, "pads", 0) - kernel) / stride + 1;
}

/* What `node` makes of `in`; adds its multiply-adds. */
static struct map walk_node(const struct wg_graph *graph, const struct wg_node *node, struct map in,
                            double *macs)
{
    struct map out = in;
    if (strcmp(node->op, "Conv") == 0) {
        const struct wg_dim *weight = graph->tensors[node->inputs[1]].shape.dims;
        const int64_t groups = wg__node_int(node, "group", 1);
        assert_int_equal(weight[1].value * groups, in.channels);
        out = (struct map){weight[0].value, slide(node, in.height), slide(node, in.width)};
        *macs += (double)(out.channels * out.height * out.width) *
                 (double)(weight[1].value * weight[2].value * weight[3].value);
    } else if (strcmp(node->op, "Gemm") == 0) {
        const struct wg_dim *weight = graph->tensors[node->inputs[1]].shape.dims;
        assert_int_equal(in.height, 0);
        assert_int_equal(weight[1].value, in.channels);
        out.channels = weight[0].value;
        *macs += (double)(weight[0].value * weight[1].value);
    } else if (strcmp(node->op, "MaxPool") == 0) {
        out.height = slide(node, in.height);
        out.width = slide(node, in.width);
    } else if (strcmp(node->op, "GlobalAveragePool") == 0) {
        out.height = out.width = 1;
    } else if (strcmp(node->op, "Flatten") == 0) {
        out = (struct map){in.channels * in.height * in.width, 0, 0};
    } else if (strcmp(node->op, "BatchNormalization") == 0) {
        assert_int_equal(graph->tensors[node->inputs[1]].shape.dims[0].value, in.channels);
    } else {
        const bool is_known = strcmp(node->op, "Relu") == 0 || strcmp(node->op, "Add") == 0 ||
                              strcmp(node->op, "Clip") == 0;
        assert_true(is_known);
    }
    return out;
}

/* Multiply-adds of one image. */
static double count_macs(const struct wg_graph *graph, int64_t classes)
{
    struct map *maps = calloc(graph->tensor_count, sizeof *maps);
    assert_non_null(maps);
    const struct wg_dim *input = graph->tensors[graph->inputs[0]].shape.dims;
    assert_string_equal(input[0].name, "batch");
    maps[graph->inputs[0]] = (struct map){input[1].value, input[2].value, input[3].value};
    double macs = 0.0;
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct wg_node *node = &graph->nodes[i];
        const struct map in = maps[node->inputs[0]];
        if (strcmp(node->op, "Add") == 0)
            assert_memory_equal(&in, &maps[node->inputs[1]], sizeof in);
        maps[node->outputs[0]] = walk_node(graph, node, in, &macs);
    }
    assert_int_equal(maps[graph->outputs[0]].channels, classes);
    free(maps);
    return macs;
}

static void have_the_parameters_and_products_that_are_published(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t parameters; /* torchvision's count; for CIFAR by closed form below */
        double macs, tolerance;
        int64_t classes;
    } nets[] = {
        {"vgg16", 138357544, 15.47e9, 0.001, 1000},
        {"resnet18", 11689512, 1.814e9, 0.001, 1000},
        {"resnet50", 25557032, 4.089e9, 0.001, 1000},
        {"mobilenet-v2", 3504872, 0.3008e9, 0.001, 1000},
        {"vgg16-cifar", 14987722, 3.13e8, 0.003, 10}, /* Li et al.: 1.5e7, 3.13e8 */
        {"resnet56-cifar", 855770, 0.1257e9, 0.001, 10},
    };
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        struct wg_model *model = open_net(nets[i].name);
        const uint64_t parameters = count_parameters(model->graph, "");
        const double macs = count_macs(model->graph, nets[i].classes);
        if (parameters != nets[i].parameters || fabs(macs / nets[i].macs - 1.0) > nets[i].tolerance)
            fail_msg("%s has %llu parameters and %.0f multiply-adds", nets[i].name,
                     (unsigned long long)parameters, macs);
        wg__model_close(model);
    }
}

static void bert_has_its_published_parameters(void **state)
{
    (void)state;
    struct wg_model *model = open_net("bert-base");
    const struct wg_graph *graph = model->graph;
    assert_int_equal(count_parameters(graph, ""), 109482240);
    assert_int_equal(count_parameters(graph, "encoder."), 85054464);
    size_t products = 0;
    for (size_t i = 0; i < graph->node_count; i++)
        products += strcmp(graph->nodes[i].op, "MatMul") == 0;
    assert_int_equal(products, 12 * 8); /* query, key, value, scores, context, 3 dense */
    assert_int_equal(graph->input_count, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct wg_shape *shape = &graph->tensors[graph->inputs[i]].shape;
        assert_string_equal(shape->dims[0].name, "batch");
        assert_string_equal(shape->dims[1].name, "sequence");
    }
    wg__model_close(model);
}

static const struct wg_node *node_named(const struct wg_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->node_count; i++)
        if (strcmp(graph->nodes[i].name, name) == 0)
            return &graph->nodes[i];
    fail_msg("no node '%s'", name);
    return NULL;
}

static void check_weight(const char *net, const char *node, const char *op, const int64_t dims[4])
{
    struct wg_model *model = open_net(net);
    const struct wg_node *found = node_named(model->graph, node);
    const struct wg_tensor *weight = &model->graph->tensors[found->inputs[1]];
    assert_string_equal(found->op, op);
    char name[128];
    (void)snprintf(name, sizeof name, "%s.weight", node);
    assert_string_equal(weight->name, name);
    for (size_t i = 0; i < weight->shape.rank; i++)
        assert_int_equal(weight->shape.dims[i].value, dims[i]);
    wg__model_close(model);
}

/* The names of torchvision's and Hugging Face's modules, by which a plan finds a trained layer. */
static void name_layers_as_the_trained_networks_do(void **state)
{
    (void)state;
    check_weight("vgg16", "features.28", "Conv", (const int64_t[4]){512, 512, 3, 3});
    check_weight("vgg16", "classifier.6", "Gemm", (const int64_t[4]){1000, 4096});
    check_weight("resnet18", "layer2.0.downsample.0", "Conv", (const int64_t[4]){128, 64, 1, 1});
    check_weight("resnet50", "layer4.2.conv3", "Conv", (const int64_t[4]){2048, 512, 1, 1});
    check_weight("resnet50", "layer1.0.downsample.0", "Conv", (const int64_t[4]){256, 64, 1, 1});
    check_weight("resnet56-cifar", "layer3.8.conv2", "Conv", (const int64_t[4]){64, 64, 3, 3});
    check_weight("mobilenet-v2", "features.1.conv.1", "Conv", (const int64_t[4]){16, 32, 1, 1});
    check_weight("mobilenet-v2", "features.17.conv.1.0", "Conv", (const int64_t[4]){960, 1, 3, 3});
    check_weight("bert-base", "encoder.layer.11.output.dense", "MatMul",
                 (const int64_t[4]){3072, 768});
}

static void name_every_node_and_tensor_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < wg__built_in_count(); i++) {
        struct wg_model *model = open_net(wg__built_in_name(i));
        const struct wg_graph *graph = model->graph;
        for (size_t a = 0; a < graph->node_count; a++) {
            const struct wg_node *node = &graph->nodes[a];
            for (size_t b = 0; b < a; b++)
                assert_string_not_equal(node->name, graph->nodes[b].name);
            for (size_t k = 0; k < node->input_count; k++) { /* made before */
                const struct wg_tensor *tensor = &graph->tensors[node->inputs[k]];
                assert_true(tensor->producer < (int32_t)a);
            }
        }
        assert_int_equal(wg__model_opset(model, ""), 20);
        wg__model_close(model);
    }
}

static void says_which_networks_there_are(void **state)
{
    (void)state;
    struct wg_model *model = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__built_in_open(&model, "alexnet", &err), WG_ENOENT);
    assert_string_equal(err.text, "no network is called 'alexnet'; there are: vgg16, vgg16-cifar, "
                                  "resnet18, resnet50, resnet56-cifar, mobilenet-v2, bert-base");
    assert_null(model);
}

static void fails_cleanly_without_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < wg__built_in_count(); i++) {
        for (size_t nth = 1;; nth++) {
            struct wg_model *model = NULL;
            struct wg_error err = {0};
            wg__alloc_fail_from(nth);
            const enum wg_code code = wg__built_in_open(&model, wg__built_in_name(i), &err);
            wg__alloc_fail_from(0);
            if (code == WG_OK) {
                assert_true(nth > 4);
                wg__model_close(model);
                break;
            }
            assert_int_equal(code, WG_ENOMEM);
            assert_int_equal(err.code, WG_ENOMEM);
            assert_null(model);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(have_the_parameters_and_products_that_are_published),
        cmocka_unit_test(bert_has_its_published_parameters),
        cmocka_unit_test(name_layers_as_the_trained_networks_do),
        cmocka_unit_test(name_every_node_and_tensor_once),
        cmocka_unit_test(says_which_networks_there_are),
        cmocka_unit_test(fails_cleanly_without_memory),
    };
    return run_tests(tests);
}
