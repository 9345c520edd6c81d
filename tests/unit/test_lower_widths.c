/* SPDX-License-Identifier: MIT
 *
 * Widths of lowered graphs: what ties them, and what a network is at other ones.
 *
 * The oracle of the latter is the graph itself, drawn anew with those widths: each layer moved by
 * wg__layer_at must be the layer that lowering gives then, in dimensions, parameters and bytes.
 */
#include "model/lower.h"

#include "model/net_builder.h"
#include "support/lower_stage.h"

static void conv_chain(struct shape_stage *stage)
{
    stage_input(stage, "x", WG_ELEM_FLOAT, "1,3,8,8");
    stage_weight(stage, "w1", "16,3,1,1");
    stage_weight(stage, "w2", "16,16,1,1");
    stage_step(stage, "Conv", "x w1", "a", NULL, 0);
    stage_step(stage, "Conv", "a w2", "b", NULL, 0);
}

static void frees_what_is_within_and_fixes_the_ends(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 17);
    conv_chain(&stage);
    struct wg_network network = stage_lower(&stage, "b", 0);
    const struct wg_layer *first = layer_named(&network, "a");
    const struct wg_layer *second = layer_named(&network, "b");
    assert_int_equal(network.width_count, 2);
    assert_int_equal(first->in.part_count, 0); /* the image's channels are no width */
    assert_int_equal(first->out.parts[0].width, second->in.parts[0].width);
    assert_false(width_of(&network, &first->out, 0)->is_fixed);
    assert_true(width_of(&network, &second->out, 0)->is_fixed);
    assert_string_equal(width_of(&network, &first->out, 0)->name, "a");
    wg__network_fini(&network);
    stage_close(&stage);
}

static void ties_what_a_residual_addition_adds(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 17);
    conv_chain(&stage);
    stage_weight(&stage, "w3", "10,16,1,1");
    stage_step(&stage, "Add", "a b", "sum", NULL, 0);
    stage_step(&stage, "Conv", "sum w3", "y", NULL, 0);
    struct wg_network network = stage_lower(&stage, "y", 0);
    assert_int_equal(network.width_count, 2);
    const uint32_t tied = layer_named(&network, "a")->out.parts[0].width;
    assert_int_equal(layer_named(&network, "b")->out.parts[0].width, tied);
    assert_int_equal(layer_named(&network, "y")->in.parts[0].width, tied);
    assert_false(network.widths[tied].is_fixed);
    wg__network_fini(&network);
    stage_close(&stage);
}

static void adds_up_what_is_concatenated_and_multiplies_what_is_flattened(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 17);
    conv_chain(&stage);
    stage_weight(&stage, "fc", "3200,10");
    const struct wg_attribute axis[] = {STAGE_INT("axis", 1)};
    stage_input(&stage, "more", WG_ELEM_FLOAT, "1,2,8,8");
    stage_step(&stage, "Concat", "a more b a", "joined", axis, 1);
    stage_step(&stage, "Flatten", "joined", "flat", axis, 1);
    stage_step(&stage, "MatMul", "flat fc", "y", NULL, 0);
    struct wg_network network = stage_lower(&stage, "y", 0);
    const struct wg_layer *y = layer_named(&network, "y");
    assert_int_equal(y->gemm.k, (16 + 2 + 16 + 16) * 64);
    assert_int_equal(y->in.part_count, 3); /* a twice is one part */
    uint64_t sum = y->in.constant;
    for (size_t i = 0; i < 3; i++) {
        const struct wg_width *width = width_of(&network, &y->in, i);
        sum += (uint64_t)width->channels * y->in.parts[i].multiple;
        assert_int_equal(width->is_fixed, strcmp(width->name, "more") == 0);
        assert_int_equal(y->in.parts[i].multiple, strcmp(width->name, "a") == 0 ? 128 : 64);
    }
    assert_int_equal(sum, y->gemm.k);
    wg__network_fini(&network);
    stage_close(&stage);
}

static void takes_apart_what_was_concatenated(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 17);
    conv_chain(&stage);
    stage_weight(&stage, "w3", "4,16,1,1");
    stage_weight(&stage, "w4", "5,16,1,1");
    const struct wg_attribute axis[] = {STAGE_INT("axis", 1)};
    stage_step(&stage, "Concat", "a b", "joined", axis, 1);
    const int64_t sizes[] = {16, 16};
    stage_ints(&stage, "sizes", "2", sizes, 2);
    stage_step(&stage, "Split", "joined sizes", "left right", axis, 1);
    stage_step(&stage, "Conv", "left w3", "y", NULL, 0);
    stage_step(&stage, "Conv", "right w4", "z", NULL, 0);
    struct wg_network network = stage_lower(&stage, "y z", 0);
    assert_string_equal(width_of(&network, &layer_named(&network, "y")->in, 0)->name, "a");
    assert_string_equal(width_of(&network, &layer_named(&network, "z")->in, 0)->name, "b");
    assert_false(width_of(&network, &layer_named(&network, "z")->in, 0)->is_fixed);
    wg__network_fini(&network);
    stage_close(&stage);
}

/* Depth-wise: the input's width. Groups of 4 channels: a multiple of 4. */
static void follows_groups(void **state)
{
    (void)state;
    for (int narrows = 0; narrows < 2; narrows++) {
        struct shape_stage stage;
        stage_open(&stage, 17);
        conv_chain(&stage);
        stage_weight(&stage, "dw", "32,1,3,3");
        stage_weight(&stage, "gw", narrows ? "8,4,1,1" : "48,4,1,1");
        stage_weight(&stage, "w3", narrows ? "10,8,1,1" : "10,48,1,1");
        stage_weight(&stage, "w4", "10,32,1,1");
        const struct wg_attribute alone[] = {STAGE_INT("group", 16)};
        const struct wg_attribute groups[] = {STAGE_INT("group", 4)};
        stage_step(&stage, "Conv", "b dw", "doubled", alone, 1);
        stage_step(&stage, "Conv", "b gw", "grouped", groups, 1);
        stage_step(&stage, "Conv", "grouped w3", "y", NULL, 0);
        stage_step(&stage, "Conv", "doubled w4", "z", NULL, 0);
        struct wg_network network = stage_lower(&stage, "y z", 0);
        const struct wg_layer *doubled = layer_named(&network, "doubled");
        const struct wg_layer *grouped = layer_named(&network, "grouped");
        const uint32_t b = layer_named(&network, "b")->out.parts[0].width;
        assert_int_equal(doubled->in.parts[0].width, b);
        assert_int_equal(doubled->out.parts[0].width, b);
        assert_int_equal(doubled->out.parts[0].multiple, 2);
        assert_int_equal(grouped->in.parts[0].width, b);
        /* With fewer filters than channels no multiple says what they are. */
        assert_int_equal(grouped->out.part_count, narrows ? 0 : 1);
        assert_int_equal(network.widths[b].is_fixed, narrows);
        if (!narrows) {
            assert_int_equal(grouped->out.parts[0].multiple, 3);
            assert_int_equal(network.widths[b].alignment, 4);
        }
        wg__network_fini(&network);
        stage_close(&stage);
    }
}

static void fixes_what_is_mixed_in_ways_not_known(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        bool is_fixed;
    } cases[] = {{"Relu", false},     {"Softmax", false},  {"Frobnicate", true},
                 {"MaxUnpool", true}, {"Identity", false}, {"GlobalAveragePool", false},
                 {"Hardmax", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shape_stage stage;
        stage_open(&stage, 17);
        conv_chain(&stage);
        stage_step(&stage, cases[i].op, "a", "c", NULL, 0);
        struct wg_network network = stage_lower(&stage, "b", 0);
        const struct wg_width *a = width_of(&network, &layer_named(&network, "a")->out, 0);
        if (a->is_fixed != cases[i].is_fixed)
            fail_msg("%s", cases[i].op);
        wg__network_fini(&network);
        stage_close(&stage);
    }
}

/* What a transposed convolution adds up from its taps is no one layer's filters: a plan that chose
 * it could not be applied. Tied to a convolution's, it has a layer to go by. */
static void fixes_what_no_layer_makes_by_itself(void **state)
{
    (void)state;
    for (int is_tied = 0; is_tied < 2; is_tied++) {
        struct shape_stage stage;
        stage_open(&stage, 17);
        conv_chain(&stage);
        stage_weight(&stage, "up", "16,16,1,1");
        stage_weight(&stage, "up4", "16,16,2,2");
        stage_weight(&stage, "w3", "10,16,1,1");
        stage_step(&stage, "ConvTranspose", is_tied ? "b up" : "b up4", "raised", NULL, 0);
        if (is_tied)
            stage_step(&stage, "Add", "raised b", "sum", NULL, 0);
        else
            stage_step(&stage, "Relu", "raised", "sum", NULL, 0);
        stage_step(&stage, "Conv", "sum w3", "y", NULL, 0);
        struct wg_network network = stage_lower(&stage, "y", 0);
        const struct wg_layer *raised = layer_named(&network, "raised");
        assert_int_equal(raised->out.parts[0].multiple, is_tied ? 1 : 4);
        assert_int_equal(width_of(&network, &raised->out, 0)->is_fixed, !is_tied);
        assert_false(width_of(&network, &layer_named(&network, "b")->out, 0)->is_fixed);
        wg__network_fini(&network);
        stage_close(&stage);
    }
}

/* Shapes that a file claims, without inference: where weights say otherwise, nothing is tied. */
static void believes_no_shape_that_weights_contradict(void **state)
{
    (void)state;
    struct shape_stage stage;
    int32_t index = 0;
    struct wg_network network;
    const struct wg_lower_opts opts = {.dtype = WG_DTYPE_FP16};
    stage_open(&stage, 17);
    stage_input(&stage, "x", WG_ELEM_FLOAT, "1,2,3,3");
    stage_weight(&stage, "w1", "5,2,1,1");
    stage_weight(&stage, "w2", "4,4,1,1");
    stage_step(&stage, "Conv", "x w1", "a", NULL, 0);
    stage_tensor(&stage, "a", &index)->shape = stage_shape(&stage, "1,4,3,3");
    stage_step(&stage, "Conv", "a w2", "y", NULL, 0);
    stage_outputs(&stage, "y");
    assert_int_equal(wg__lower(&network, stage.model, &opts, &stage.err), WG_OK);
    assert_int_equal(layer_named(&network, "y")->in.part_count, 0);
    assert_true(width_of(&network, &layer_named(&network, "a")->out, 0)->is_fixed);
    wg__network_fini(&network);
    stage_close(&stage);
}

/* A tensor that is joined with itself 40 times has 2^40 segments, if one writes them down. */
static void bounds_channels_that_are_joined_over_and_over(void **state)
{
    (void)state;
    struct shape_stage stage;
    char from[64];
    char to[32] = "a";
    const struct wg_attribute axis[] = {STAGE_INT("axis", 1)};
    stage_open(&stage, 17);
    conv_chain(&stage);
    for (int i = 0; i < 40; i++) {
        (void)snprintf(from, sizeof from, "%s %s", to, to);
        (void)snprintf(to, sizeof to, "j%d", i);
        stage_step(&stage, "Concat", from, to, axis, 1);
    }
    struct wg_network network = stage_lower(&stage, to, 0);
    assert_true(width_of(&network, &layer_named(&network, "a")->out, 0)->is_fixed);
    wg__network_fini(&network);
    stage_close(&stage);
}

/* --- At other widths -------------------------------------------------------------------------- */

enum { BLOCKS = 9, WIDTHS_MAX = 3 * BLOCKS + 4, TRIALS = 60 };

/* How a random network is drawn: the same choices at any widths. */
struct plan {
    uint64_t seed;
    uint32_t widths[WIDTHS_MAX]; /* by their number in the order of drawing; 0: not chosen yet */
    uint32_t used;
    struct wg_net net;
    uint64_t random; /* of the structure */
};

static uint64_t draw_random(uint64_t *at) /* splitmix64 */
{
    uint64_t z = *at += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static uint32_t new_width(struct plan *plan)
{
    assert_true(plan->used < WIDTHS_MAX);
    const uint32_t drawn = 4 * (2 + (uint32_t)(draw_random(&plan->random) % 11)); /* two groups */
    if (plan->widths[plan->used] == 0)
        plan->widths[plan->used] = drawn;
    return plan->used++;
}

/* A convolution whose name begins with its width's number. */
static int32_t conv(struct plan *plan, int32_t x, uint32_t in, uint32_t out, int64_t kernel,
                    int64_t groups, const char *what)
{
    const struct wg_net_window window = {.kernel = kernel,
                                         .stride = 1,
                                         .pad = kernel / 2,
                                         .groups = groups,
                                         .has_bias = draw_random(&plan->random) % 2 == 0};
    const char *name =
        wg__net_name(&plan->net, "%u.%s.%zu", out, what, plan->net.build.graph->node_count);
    x = wg__net_conv(&plan->net, x, name, plan->widths[in], plan->widths[out], &window);
    if (draw_random(&plan->random) % 2 == 0)
        x = wg__net_batch_norm(&plan->net, x, wg__net_name(&plan->net, "%s.bn", name),
                               plan->widths[out]);
    return wg__net_relu(&plan->net, x, wg__net_name(&plan->net, "%s.relu", name));
}

static int32_t node(struct plan *plan, const char *op, const int32_t *inputs, size_t count,
                    const struct wg_attribute *attributes, size_t attribute_count)
{
    return wg__net_node(&plan->net, op,
                        wg__net_name(&plan->net, "%s.%zu", op, plan->net.build.graph->node_count),
                        inputs, count, attributes, attribute_count);
}

static int32_t gate(struct plan *plan, int32_t x, uint32_t width)
{
    const uint32_t narrow = new_width(plan);
    int32_t y = node(plan, "GlobalAveragePool", &x, 1, NULL, 0);
    y = conv(plan, y, width, narrow, 1, 1, "squeeze");
    y = conv(plan, y, narrow, width, 1, 1, "excite");
    y = node(plan, "Sigmoid", &y, 1, NULL, 0);
    return node(plan, "Mul", (const int32_t[]){x, y}, 2, NULL, 0);
}

/* Two branches side by side; `*width` is that of what reads both. */
static int32_t branches(struct plan *plan, int32_t x, uint32_t *width)
{
    const uint32_t left = new_width(plan);
    const uint32_t right = new_width(plan);
    const struct wg_attribute axis[] = {STAGE_INT("axis", 1)};
    const int32_t both[] = {conv(plan, x, *width, left, 1, 1, "left"),
                            conv(plan, x, *width, right, 3, 1, "right")};
    const int32_t y = node(plan, "Concat", both, 2, axis, 1);
    const uint32_t joined = new_width(plan);
    const int64_t dims[] = {plan->widths[joined], plan->widths[left] + plan->widths[right], 1, 1};
    const char *name = wg__net_name(&plan->net, "%u.joined", joined);
    const int32_t inputs[] = {
        y, wg__net_weight(&plan->net, wg__net_name(&plan->net, "%s.weight", name), dims, 4)};
    *width = joined;
    return wg__net_node(&plan->net, "Conv", name, inputs, 2, NULL, 0);
}

static int32_t block(struct plan *plan, int32_t x, uint32_t *width)
{
    const struct wg_net_window pool = {.kernel = 3, .stride = 1, .pad = 1};
    const uint64_t kind = draw_random(&plan->random) % 7;
    uint32_t next = *width;
    switch (kind) {
    case 0: /* a bottleneck and its shortcut */
        next = new_width(plan);
        return wg__net_add(
            &plan->net,
            conv(plan, conv(plan, x, *width, next, 1, 1, "mid"), next, *width, 3, 1, "out"), x,
            wg__net_name(&plan->net, "add.%zu", plan->net.build.graph->node_count));
    case 1:
        return conv(plan, x, next, next, 3, plan->widths[next], "depth-wise");
    case 2:
        return conv(plan, x, next, next, 3, plan->widths[next] / 4, "grouped");
    case 3:
        return branches(plan, x, width);
    case 4:
        return gate(plan, x, *width);
    case 5:
        return wg__net_max_pool(
            &plan->net, x, wg__net_name(&plan->net, "pool.%zu", plan->net.build.graph->node_count),
            &pool);
    default:
        next = new_width(plan);
        x = conv(plan, x, *width, next, 3, 1, "conv");
        *width = next;
        return x;
    }
}

/* The network of a plan at its widths. */
static struct wg_network draw(struct plan *plan)
{
    struct wg_model *model = NULL;
    struct wg_error err = {0};
    const struct wg_dim dims[] = {{WG_DIM_UNKNOWN, "batch"}, {3, NULL}, {6, NULL}, {5, NULL}};
    const struct wg_net_window first = {.kernel = 3, .stride = 1, .pad = 1};
    plan->random = plan->seed;
    plan->used = 0;
    wg__net_begin(&plan->net, "random", 17);
    int32_t x = wg__net_input(&plan->net, "x", WG_ELEM_FLOAT, dims, 4);
    uint32_t width = new_width(plan);
    x = wg__net_conv(&plan->net, x, "0.stem", 3, plan->widths[0], &first);
    for (int i = 0; i < BLOCKS; i++)
        x = block(plan, x, &width);
    int64_t pixels = 30; /* 6 x 5 */
    if (draw_random(&plan->random) % 2 == 0) {
        x = wg__net_mean_pool(&plan->net, x);
        pixels = 1;
    } else {
        x = wg__net_flatten(&plan->net, x);
    }
    const uint32_t hidden = new_width(plan);
    x = wg__net_linear(&plan->net, x, wg__net_name(&plan->net, "%u.hidden", hidden),
                       pixels * plan->widths[width], plan->widths[hidden]);
    x = wg__net_linear(&plan->net, x, "classes", plan->widths[hidden], 10);
    if (wg__net_finish(&plan->net, x, &model, &err) != WG_OK)
        fail_msg("%s", err.text);
    struct wg_network network = model_lower(model, 2);
    wg__model_close(model);
    return network;
}

static void check_same(const struct wg_layer *moved, const struct wg_layer *drawn)
{
    assert_string_equal(moved->name, drawn->name);
    assert_int_equal(moved->kind, drawn->kind);
    assert_int_equal(moved->conv.c, drawn->conv.c);
    assert_int_equal(moved->conv.filters, drawn->conv.filters);
    assert_int_equal(moved->conv.groups, drawn->conv.groups);
    assert_int_equal(moved->conv.has_bias, drawn->conv.has_bias);
    assert_int_equal(moved->gemm.batch, drawn->gemm.batch);
    assert_int_equal(moved->gemm.m, drawn->gemm.m);
    assert_int_equal(moved->gemm.n, drawn->gemm.n);
    assert_int_equal(moved->gemm.k, drawn->gemm.k);
    assert_int_equal(moved->gemm.has_bias, drawn->gemm.has_bias);
    check_close(layer_macs(moved), layer_macs(drawn), 0);
    if (moved->parameters != drawn->parameters)
        fail_msg("%s has %llu parameters, drawn anew %llu", moved->name,
                 (unsigned long long)moved->parameters, (unsigned long long)drawn->parameters);
    check_close(moved->bytes, drawn->bytes, 1e-12);
}

static void is_at_other_widths_what_is_drawn_with_them(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TRIALS; seed++) {
        struct plan plan = {.seed = seed};
        struct wg_network network = draw(&plan);
        struct plan other = {.seed = seed};
        uint64_t random = ~seed;
        uint32_t channels[WIDTHS_MAX] = {0};
        size_t free_count = 0;
        assert_true(network.width_count <= WIDTHS_MAX);
        for (size_t i = 0; i < network.width_count; i++) {
            const struct wg_width *width = &network.widths[i];
            channels[i] = width->channels;
            if (width->is_fixed) {
                assert_string_equal(width->name, "classes_out");
                continue;
            }
            const uint32_t number = (uint32_t)strtoul(width->name, NULL, 10);
            if (number >= plan.used || other.widths[number] != 0) /* each once */
                fail_msg("width '%s' of seed %llu", width->name, (unsigned long long)seed);
            channels[i] = width->alignment * (1 + (uint32_t)(draw_random(&random) % 9));
            other.widths[number] = channels[i];
            assert_int_equal(width->channels, plan.widths[number]);
            free_count++;
        }
        assert_int_equal(free_count, plan.used); /* all are free */
        struct wg_network drawn = draw(&other);
        assert_int_equal(drawn.layer_count, network.layer_count);
        for (size_t i = 0; i < network.layer_count; i++) {
            struct wg_layer moved;
            struct wg_error err = {0};
            if (wg__layer_at(&network.layers[i], channels, &moved, &err) != WG_OK)
                fail_msg("%s", err.text);
            check_same(&moved, &drawn.layers[i]);
        }
        wg__network_fini(&drawn);
        wg__network_fini(&network);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frees_what_is_within_and_fixes_the_ends),
        cmocka_unit_test(ties_what_a_residual_addition_adds),
        cmocka_unit_test(adds_up_what_is_concatenated_and_multiplies_what_is_flattened),
        cmocka_unit_test(takes_apart_what_was_concatenated),
        cmocka_unit_test(follows_groups),
        cmocka_unit_test(fixes_what_is_mixed_in_ways_not_known),
        cmocka_unit_test(fixes_what_no_layer_makes_by_itself),
        cmocka_unit_test(believes_no_shape_that_weights_contradict),
        cmocka_unit_test(bounds_channels_that_are_joined_over_and_over),
        cmocka_unit_test(is_at_other_widths_what_is_drawn_with_them),
    };
    return run_tests(tests);
}
