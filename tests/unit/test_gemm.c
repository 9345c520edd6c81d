/* SPDX-License-Identifier: MIT
 *
 * Tests of wave/gemm.h.
 */
#include "wave/gemm.h"

#include <string.h>

#include "base/rng.h"
#include "support/check.h"

/* ResNet-50's conv4 3x3 on 32 images. */
static const struct wg_conv plain = {.dtype = WG_DTYPE_FP16,
                                     .n = 32,
                                     .c = 256,
                                     .h = 14,
                                     .w = 14,
                                     .filters = 256,
                                     .r = 3,
                                     .s = 3,
                                     .stride_h = 1,
                                     .stride_w = 1,
                                     .pad_top = 1,
                                     .pad_left = 1,
                                     .pad_bottom = 1,
                                     .pad_right = 1,
                                     .dilation_h = 1,
                                     .dilation_w = 1,
                                     .groups = 1};

static void maps_each_pass_as_nvidias_guide_does(void **state)
{
    (void)state;
    static const struct {
        enum wg_conv_pass pass;
        uint64_t m, n, k;
    } expected[] = {{WG_CONV_FORWARD, UINT64_C(32) * 14 * 14, 256, UINT64_C(256) * 9},
                    {WG_CONV_DGRAD, UINT64_C(32) * 14 * 14, 256, UINT64_C(256) * 9},
                    {WG_CONV_WGRAD, UINT64_C(256) * 9, 256, UINT64_C(32) * 14 * 14}};
    for (size_t i = 0; i < 3; i++) {
        struct wg_gemm gemm;
        assert_int_equal(wg__conv_gemm(&plain, expected[i].pass, &gemm, NULL), WG_OK);
        assert_int_equal(gemm.m, expected[i].m);
        assert_int_equal(gemm.n, expected[i].n);
        assert_int_equal(gemm.k, expected[i].k);
        assert_int_equal(gemm.batch, 1);
        assert_int_equal(gemm.dtype, WG_DTYPE_FP16);
    }
}

/* One filter position after the other, as a loop over the padded input would place them. */
static uint64_t counted_positions(uint64_t size, uint64_t pad, uint64_t filter, uint64_t stride,
                                  uint64_t dilation)
{
    uint64_t count = 0;
    for (uint64_t at = 0; at + dilation * (filter - 1) + 1 <= size + pad; at += stride)
        count++;
    return count;
}

static void output_is_what_sliding_the_filter_counts(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 8);
    for (int i = 0; i < 20000; i++) {
        struct wg_conv conv = plain;
        conv.h = 1 + wg__rng_below(&rng, 40);
        conv.w = 1 + wg__rng_below(&rng, 40);
        conv.r = 1 + wg__rng_below(&rng, 7);
        conv.s = 1 + wg__rng_below(&rng, 7);
        conv.stride_h = 1 + wg__rng_below(&rng, 4);
        conv.stride_w = 1 + wg__rng_below(&rng, 4);
        conv.dilation_h = 1 + wg__rng_below(&rng, 3);
        conv.dilation_w = 1 + wg__rng_below(&rng, 3);
        conv.pad_top = wg__rng_below(&rng, 4);
        conv.pad_bottom = wg__rng_below(&rng, 4);
        conv.pad_left = wg__rng_below(&rng, 4);
        conv.pad_right = wg__rng_below(&rng, 4);
        const uint64_t rows = counted_positions(conv.h, conv.pad_top + conv.pad_bottom, conv.r,
                                                conv.stride_h, conv.dilation_h);
        const uint64_t columns = counted_positions(conv.w, conv.pad_left + conv.pad_right, conv.s,
                                                   conv.stride_w, conv.dilation_w);
        uint64_t p = 0, q = 0;
        const enum wg_code code = wg__conv_output(&conv, &p, &q, NULL);
        assert_int_equal(code, rows > 0 && columns > 0 ? WG_OK : WG_EINVAL);
        if (code == WG_OK) {
            assert_int_equal(p, rows);
            assert_int_equal(q, columns);
        }
    }
}

static void all_passes_do_the_same_work_where_stride_is_one(void **state)
{
    (void)state;
    struct wg_gemm forward, dgrad, wgrad;
    assert_int_equal(wg__conv_gemm(&plain, WG_CONV_FORWARD, &forward, NULL), WG_OK);
    assert_int_equal(wg__conv_gemm(&plain, WG_CONV_DGRAD, &dgrad, NULL), WG_OK);
    assert_int_equal(wg__conv_gemm(&plain, WG_CONV_WGRAD, &wgrad, NULL), WG_OK);
    check_close(wg__gemm_flops(&dgrad), wg__gemm_flops(&forward), 0);
    check_close(wg__gemm_flops(&wgrad), wg__gemm_flops(&forward), 0);
    check_close(wg__conv_flops(&plain), 2.0 * 32 * 14 * 14 * 256 * 256 * 9, 0);
}

/* Of a strided filter's taps an input meets every stride-th only: 112 x 112 inputs of 7x7 filters
 * at stride 2 make 56 x 56 outputs, and the multiplications are the same both ways. */
static void strided_gradients_do_no_more_than_the_forward_pass(void **state)
{
    (void)state;
    struct wg_conv conv = plain;
    conv.h = conv.w = 112;
    conv.r = conv.s = 7;
    conv.pad_top = conv.pad_left = conv.pad_bottom = conv.pad_right = 3;
    conv.stride_h = conv.stride_w = 2;
    struct wg_gemm forward, dgrad;
    assert_int_equal(wg__conv_gemm(&conv, WG_CONV_FORWARD, &forward, NULL), WG_OK);
    assert_int_equal(wg__conv_gemm(&conv, WG_CONV_DGRAD, &dgrad, NULL), WG_OK);
    assert_int_equal(dgrad.m, forward.m * 4);
    check_close(wg__gemm_flops(&dgrad), wg__gemm_flops(&forward), 1e-3);
}

static void grouped_convolutions_multiply_once_a_group(void **state)
{
    (void)state;
    struct wg_conv conv = plain;
    conv.groups = 32;
    struct wg_gemm gemm;
    assert_int_equal(wg__conv_gemm(&conv, WG_CONV_FORWARD, &gemm, NULL), WG_OK);
    assert_int_equal(gemm.batch, 32);
    assert_int_equal(gemm.n, 8);
    assert_int_equal(gemm.k, 8 * 9);
    check_close(wg__conv_flops(&conv), wg__conv_flops(&plain) / 32, 0);
    assert_false(wg__conv_is_depthwise(&conv));
    conv.groups = 256;
    assert_true(wg__conv_is_depthwise(&conv));
    assert_int_equal(wg__conv_gemm(&conv, WG_CONV_FORWARD, &gemm, NULL), WG_OK);
    assert_int_equal(gemm.n, 1);
    assert_int_equal(gemm.k, 9);
    assert_false(wg__conv_is_depthwise(&plain));
}

static void counts_bytes_of_operands_once(void **state)
{
    (void)state;
    const struct wg_gemm gemm = {.dtype = WG_DTYPE_FP16, .batch = 3, .m = 5, .n = 7, .k = 11};
    check_close(wg__gemm_bytes(&gemm), 3 * (5 * 11 + 11 * 7 + 5 * 7) * 2, 0);
    check_close(wg__gemm_flops(&gemm), 2.0 * 3 * 5 * 7 * 11, 0);
    struct wg_conv conv = plain;
    conv.stride_h = 2;
    conv.stride_w = 2;
    check_close(wg__conv_bytes(&conv),
                2.0 * (32 * 256 * 14 * 14 + 256 * 256 * 9 + 32 * 256 * 7 * 7), 0);
    conv.groups = 256; /* a ninth of a filter's weights a channel remains */
    check_close(wg__conv_bytes(&conv), 2.0 * (32 * 256 * 14 * 14 + 256 * 9 + 32 * 256 * 7 * 7), 0);
    conv.r = 100;
    assert_true(isnan(wg__conv_bytes(&conv)));
    assert_true(isnan(wg__conv_flops(&conv)));
}

/* Each size in turn at 0, and at values whose products leave 63 bits. */
static void refuses_sizes_of_zero_and_products_beyond_63_bits(void **state)
{
    (void)state;
    struct wg_conv conv = plain;
    uint64_t *const sizes[] = {&conv.n,        &conv.c,          &conv.h,          &conv.w,
                               &conv.filters,  &conv.r,          &conv.s,          &conv.stride_h,
                               &conv.stride_w, &conv.dilation_h, &conv.dilation_w, &conv.groups};
    uint64_t p = 77, q = 77;
    struct wg_error err;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const uint64_t before = *sizes[i];
        *sizes[i] = 0;
        assert_int_equal(wg__conv_output(&conv, &p, &q, &err), WG_EINVAL);
        assert_non_null(strstr(err.text, "is 0"));
        *sizes[i] = before;
    }
    uint64_t *const growing[] = {&conv.n,       &conv.c,       &conv.h,         &conv.w,
                                 &conv.filters, &conv.pad_top, &conv.pad_right, &conv.dilation_h};
    static const uint64_t huge[] = {UINT64_MAX, UINT64_MAX / 2, (uint64_t)1 << 62};
    for (size_t i = 0; i < sizeof growing / sizeof growing[0]; i++)
        for (size_t j = 0; j < 3; j++) {
            const uint64_t before = *growing[i];
            *growing[i] = huge[j];
            assert_int_equal(wg__conv_output(&conv, &p, &q, &err), WG_EINVAL);
            *growing[i] = before;
        }
    assert_int_equal(p, 77); /* written only on success */
    assert_int_equal(q, 77);
    assert_int_equal(wg__conv_output(&conv, &p, &q, &err), WG_OK);
}

static void refuses_groups_that_do_not_divide(void **state)
{
    (void)state;
    struct wg_conv conv = plain;
    conv.groups = 3;
    uint64_t p, q;
    struct wg_error err;
    assert_int_equal(wg__conv_output(&conv, &p, &q, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "3 groups do not divide 256 channels"));
    struct wg_gemm gemm;
    assert_int_equal(wg__conv_gemm(&plain, WG_CONV_PASS_COUNT, &gemm, &err), WG_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_each_pass_as_nvidias_guide_does),
        cmocka_unit_test(output_is_what_sliding_the_filter_counts),
        cmocka_unit_test(all_passes_do_the_same_work_where_stride_is_one),
        cmocka_unit_test(strided_gradients_do_no_more_than_the_forward_pass),
        cmocka_unit_test(grouped_convolutions_multiply_once_a_group),
        cmocka_unit_test(counts_bytes_of_operands_once),
        cmocka_unit_test(refuses_sizes_of_zero_and_products_beyond_63_bits),
        cmocka_unit_test(refuses_groups_that_do_not_divide),
    };
    return run_tests(tests);
}
