/* SPDX-License-Identifier: MIT
 *
 * Tests of wave/network.h.
 */
#include "wave/network.h"

#include <string.h>

#include "support/check.h"

static const struct wg_channel_part first = {.width = 0, .multiple = 1};
static const struct wg_channel_part second = {.width = 1, .multiple = 1};
static const struct wg_channel_part joined[] = {{0, 1}, {1, 1}};
static const struct wg_channel_part flattened = {.width = 0, .multiple = 49};

static const struct wg_layer conv = {.name = "conv",
                                     .op = "Conv",
                                     .kind = WG_LAYER_CONV,
                                     .conv = {.n = 1,
                                              .c = 64,
                                              .h = 14,
                                              .w = 14,
                                              .filters = 128,
                                              .r = 3,
                                              .s = 3,
                                              .stride_h = 1,
                                              .stride_w = 1,
                                              .dilation_h = 1,
                                              .dilation_w = 1,
                                              .groups = 1,
                                              .has_bias = true},
                                     .in = {&first, 1, 0},
                                     .out = {&second, 1, 0},
                                     .parameters = 128 * 64 * 9 + 128,
                                     .kernel = {.tile_m = 128, .tile_n = 64, .split_k = 1},
                                     .blocks = 50,
                                     .measured_s = 1e-4};

static struct wg_layer at(const struct wg_layer *layer, uint32_t a, uint32_t b)
{
    const uint32_t channels[] = {a, b};
    struct wg_layer out;
    struct wg_error err = {0};
    if (wg__layer_at(layer, channels, &out, &err) != WG_OK)
        fail_msg("%s", err.text);
    return out;
}

static void moves_a_convolution_with_its_widths(void **state)
{
    (void)state;
    const struct wg_layer moved = at(&conv, 48, 100);
    assert_int_equal(moved.conv.c, 48);
    assert_int_equal(moved.conv.filters, 100);
    assert_int_equal(moved.conv.groups, 1);
    assert_int_equal(moved.parameters, 100 * 48 * 9 + 100);
    assert_int_equal(moved.blocks, 0); /* profiled at other widths */
    check_close(moved.measured_s, 0, 0);
    assert_int_equal(moved.kernel.tile_m, 128);
}

static void leaves_a_layer_alone_at_its_present_widths(void **state)
{
    (void)state;
    const struct wg_layer same = at(&conv, 64, 128);
    assert_memory_equal(&same, &conv, sizeof same);
}

static void adds_the_parts_of_a_concatenation(void **state)
{
    (void)state;
    struct wg_layer layer = conv;
    layer.in = (struct wg_channels){joined, 2, 8};
    layer.conv.c = 64 + 128 + 8;
    layer.parameters = 128 * 200 * 9 + 128;
    const struct wg_layer moved = at(&layer, 10, 20);
    assert_int_equal(moved.conv.c, 38);
    assert_int_equal(moved.conv.filters, 20);
    assert_int_equal(moved.parameters, 20 * 38 * 9 + 20);
}

static void keeps_one_channel_a_group_in_a_depthwise_convolution(void **state)
{
    (void)state;
    struct wg_layer layer = conv;
    layer.conv.groups = 64;
    layer.conv.filters = 64;
    layer.out = (struct wg_channels){&first, 1, 0};
    layer.parameters = UINT64_C(64) * 9;
    const struct wg_layer moved = at(&layer, 40, 0);
    assert_int_equal(moved.conv.c, 40);
    assert_int_equal(moved.conv.filters, 40);
    assert_int_equal(moved.conv.groups, 40);
    assert_true(wg__conv_is_depthwise(&moved.conv));
    assert_int_equal(moved.parameters, 40 * 9);
}

static void keeps_the_channels_of_a_group(void **state)
{
    (void)state;
    struct wg_layer layer = conv;
    layer.conv.groups = 16; /* of 4 channels and 8 filters */
    layer.parameters = UINT64_C(128) * 4 * 9;
    const struct wg_layer moved = at(&layer, 40, 100);
    assert_int_equal(moved.conv.groups, 10);
    assert_int_equal(moved.parameters, 100 * 4 * 9);
    const uint32_t odd_in[] = {42, 100}, odd_out[] = {40, 101};
    struct wg_layer out = {.name = "untouched"};
    struct wg_error err;
    assert_int_equal(wg__layer_at(&layer, odd_in, &out, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "'conv'"));
    assert_int_equal(wg__layer_at(&layer, odd_out, &out, &err), WG_EINVAL);
    assert_string_equal(out.name, "untouched");
}

static void moves_a_gemm_behind_a_flattened_map(void **state)
{
    (void)state;
    const struct wg_layer layer = {.name = "fc",
                                   .kind = WG_LAYER_GEMM,
                                   .gemm = {.batch = 1, .m = 8, .n = 1000, .k = UINT64_C(512) * 49},
                                   .in = {&flattened, 1, 0},
                                   .parameters = 1000 * 512 * 49 + 1000};
    const struct wg_layer moved = at(&layer, 500, 0);
    assert_int_equal(moved.gemm.k, 500 * 49);
    assert_int_equal(moved.gemm.n, 1000); /* a side without parts stays */
    assert_int_equal(moved.parameters, 1000 * 500 * 49 + 1000);
    struct wg_layer attention = layer;
    attention.parameters = 0;
    assert_int_equal(at(&attention, 500, 0).parameters, 0);
}

static void moves_bytes_with_their_channels(void **state)
{
    (void)state;
    struct wg_layer layer = {.name = "bn",
                             .kind = WG_LAYER_BYTES,
                             .bytes = 6400,
                             .bytes_channels = 64,
                             .out = {&first, 1, 0},
                             .parameters = 256};
    struct wg_layer moved = at(&layer, 96, 0);
    check_close(moved.bytes, 9600, 0);
    assert_int_equal(moved.parameters, 384);
    assert_int_equal(moved.bytes_channels, 96);
    moved = at(&moved, 64, 0);
    check_close(moved.bytes, 6400, 0);
    layer.bytes_channels = 0;
    check_close(at(&layer, 96, 0).bytes, 6400, 0);
}

static void refuses_widths_of_nothing_and_beyond_counting(void **state)
{
    (void)state;
    const uint32_t none[] = {0, 128};
    struct wg_layer out;
    struct wg_error err;
    assert_int_equal(wg__layer_at(&conv, none, &out, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "no channels are left"));
    const struct wg_channel_part huge[] = {{0, UINT32_MAX}, {0, UINT32_MAX}};
    struct wg_layer layer = conv;
    layer.in = (struct wg_channels){huge, 2, 0};
    const uint32_t most[] = {UINT32_MAX, 128};
    assert_int_equal(wg__layer_at(&layer, most, &out, &err), WG_EINVAL);
    layer.in = (struct wg_channels){huge, 1, 0};
    const uint32_t much[] = {UINT32_MAX / 4, 1U << 20};
    assert_int_equal(wg__layer_at(&layer, much, &out, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "parameters"));
}

static void gives_its_arena_back(void **state)
{
    (void)state;
    struct wg_network network = {.name = "n"};
    wg__arena_init(&network.arena);
    network.layers = wg__arena_alloc(&network.arena, 3, sizeof *network.layers);
    assert_non_null(network.layers);
    wg__network_fini(&network);
    assert_null(network.layers);
    wg__network_fini(&network);
    wg__network_fini(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_a_convolution_with_its_widths),
        cmocka_unit_test(leaves_a_layer_alone_at_its_present_widths),
        cmocka_unit_test(adds_the_parts_of_a_concatenation),
        cmocka_unit_test(keeps_one_channel_a_group_in_a_depthwise_convolution),
        cmocka_unit_test(keeps_the_channels_of_a_group),
        cmocka_unit_test(moves_a_gemm_behind_a_flattened_map),
        cmocka_unit_test(moves_bytes_with_their_channels),
        cmocka_unit_test(refuses_widths_of_nothing_and_beyond_counting),
        cmocka_unit_test(gives_its_arena_back),
    };
    return run_tests(tests);
}
