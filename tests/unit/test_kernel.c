/* SPDX-License-Identifier: MIT
 *
 * Tests of wave/kernel.h.
 */
#include "wave/kernel.h"

#include "support/check.h"

static struct wg_kernel parsed(const char *name)
{
    struct wg_kernel kernel = {0};
    if (!wg__kernel_parse(name, &kernel))
        fail_msg("no tile found in '%s'", name);
    return kernel;
}

static void reads_tiles_in_the_order_of_each_family(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned m, n, k, threads, cluster_m, cluster_n;
        bool is_persistent;
    } names[] = {
        {"ampere_sgemm_128x64_tn", 64, 128, 0, 0, 1, 1, false},
        {"volta_sgemm_32x128_nn", 128, 32, 0, 0, 1, 1, false},
        {"ampere_sgemm_64x32_sliced1x4_tn", 32, 64, 0, 0, 1, 1, false},
        {"sgemm_32x32x32_nn_vec", 32, 32, 32, 0, 1, 1, false},
        {"ampere_fp16_s16816gemm_fp16_256x128_ldg8_f2f_stages_64x3_tn", 128, 256, 64, 0, 1, 1,
         false},
        {"ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x5_tn", 64, 64, 64, 0, 1, 1,
         false},
        {"volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn", 64, 128, 0, 0, 1, 1, false},
        {"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x32x8_stage3_warpsize1x2x1_ffma_aligna4_"
         "alignc4_execute_kernel__5x_cublas",
         64, 32, 8, 64, 1, 1, false},
        {"cutlass::kernel<cutlass_80_simt_sgemm_256x128_8x4_tn_align1>(cutlass_80_simt_sgemm_256x"
         "128_8x4_tn_align1::params)",
         256, 128, 8, 0, 1, 1, false},
        {"cutlass_80_tensorop_s16816gemm_f16_128x64_32x6_nn_align8", 128, 64, 32, 0, 1, 1, false},
        {"ampere_h16816cudnn_128x64_sliced1x2_ldg8_relu_exp_stages_64x3_small_nhwc_tn_v1", 128, 64,
         64, 0, 1, 1, false},
        {"cudnn_infer_ampere_scudnn_128x32_relu_small_nn_v1", 128, 32, 0, 0, 1, 1, false},
        {"ampere_fp32_icudnn_int8x4_128x64_relu_medium_nn_v1", 128, 64, 0, 0, 1, 1, false},
        {"sm80_xmma_fprop_implicit_gemm_interleaved_i8i8_i8i32_f32_nchw_vect_c_32kcrs_vect_c_32_"
         "nchw_vect_c_32_tilesize192x64x64_stage3_warpsize4x1x1_g1_tensor16x8x32_t1r3s3",
         192, 64, 64, 128, 1, 1, false},
        {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_"
         "segment_k_off_kernel__5x_cublas",
         128, 128, 64, 0, 1, 1, false},
        {"cutlass3x_sm90_tensorop_s64x256x16gemm_f16_f16_f32_void_f16_128x256x64_2x1x1_0_tnn_"
         "align8_warpspecialized_cooperative_epi_tma",
         128, 256, 64, 384, 2, 1, true},
        {"cutlass3x_sm100_tensorop_s64x256x32gemm_f8_f8_f32_f16_f16_64x256x128_1x1x1_0_tnn_align4_"
         "1sm_bias_f16_relu_aux_scalemax",
         64, 256, 128, 0, 1, 1, false},
        {"cutlass3x_sm100_tensorop_s256x128x16gemm_f16_f16_f32_f16_f16_256x128x64_2x1x1_0_tnn_"
         "align8_2sm",
         128, 128, 64, 0, 2, 1, false},
        {"nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT", 256, 128, 64, 0, 1, 2, true},
        {"nvjet_tst_64x8_64x16_4x1_v_bz_TNT", 8, 64, 64, 0, 1, 4, false},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct wg_kernel kernel = parsed(names[i].name);
        if (kernel.tile_m != names[i].m || kernel.tile_n != names[i].n ||
            kernel.tile_k != names[i].k || kernel.threads != names[i].threads ||
            kernel.cluster_m != names[i].cluster_m || kernel.cluster_n != names[i].cluster_n ||
            kernel.is_persistent != names[i].is_persistent)
            fail_msg("%s: %ux%ux%u, %u threads, cluster %ux%u, persistent %d", names[i].name,
                     kernel.tile_m, kernel.tile_n, kernel.tile_k, kernel.threads, kernel.cluster_m,
                     kernel.cluster_n, kernel.is_persistent);
        assert_int_equal(kernel.split_k, 1);
    }
}

static void tells_no_tile_where_the_name_has_none_of_this_gemm(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",
        "x",
        "gemm",
        "gemm_",
        "sgemm_128",
        "sgemm_128x",
        "sgemm_x128",
        "sgemm_0x128_nn",
        "sgemm_99999999999x128_nn",
        "sgemm_1x2x3x4_nn",
        "cutlass_80_simt_sgemm",
        "cutlass3x_sm90_tensorop_s64x256x16gemm_f16",
        "cutlass3x_sm90_128x256x64",
        "nvjet_",
        "tilesize",
        "sm80_xmma_gemm_tilesizeAxB",
        "cudnn_infer_ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
        "ampere_gcgemm_64x64_tn",
        "implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1, false, false, true>(int)",
        "trt_turing_cutlass_image_network_first_layer_hmma_fprop_f16f16f32_nhwc_nhwc_k64r7s7c4",
        "sm50_xmma_pooling_fw_4d_FP16FP32NHWC_Average_FastDiv_CAlign8",
        "gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct wg_kernel kernel = {.tile_m = 77};
        if (wg__kernel_parse(names[i], &kernel))
            fail_msg("'%s' has no tile, but %ux%u was read", names[i], kernel.tile_m,
                     kernel.tile_n);
        assert_int_equal(kernel.tile_m, 77);
    }
}

static void counts_blocks_as_whole_tiles(void **state)
{
    (void)state;
    /* NVIDIA's guide: 256x128 tiles, M=2304, N=1536: 108 tiles; one column more: 117. */
    const struct wg_kernel kernel = {.tile_m = 256, .tile_n = 128, .split_k = 1};
    struct wg_gemm gemm = {.batch = 1, .m = 2304, .n = 1536, .k = 4096};
    assert_int_equal(wg__kernel_blocks(&kernel, &gemm), 108);
    check_close(wg__kernel_tile_efficiency(&kernel, &gemm), 1, 0);
    gemm.n = 1537;
    assert_int_equal(wg__kernel_blocks(&kernel, &gemm), 117);
    check_close(wg__kernel_tile_efficiency(&kernel, &gemm), 1537.0 / 1664, 1e-12);
    gemm.batch = 12;
    assert_int_equal(wg__kernel_blocks(&kernel, &gemm), 12 * 117);
    struct wg_kernel split = kernel;
    split.split_k = 3;
    assert_int_equal(wg__kernel_blocks(&split, &gemm), 36 * 117);
    const struct wg_kernel unknown = {.split_k = 1};
    assert_int_equal(wg__kernel_blocks(&unknown, &gemm), 0);
    gemm = (struct wg_gemm){.batch = UINT64_MAX, .m = UINT64_MAX, .n = UINT64_MAX, .k = 1};
    assert_int_equal(wg__kernel_blocks(&kernel, &gemm), UINT64_MAX);
}

static const struct wg_gpu_spec a100 = {.cc_major = 8,
                                        .max_threads_per_sm = 2048,
                                        .max_blocks_per_sm = 32,
                                        .registers_per_sm = 65536,
                                        .shared_memory_per_sm_bytes = 164 * 1024,
                                        .max_shared_memory_per_block_bytes = 163 * 1024};

/* By hand from the tables of the CUDA C++ Programming Guide. */
static void occupancy_is_the_scarcest_resource(void **state)
{
    (void)state;
    static const struct {
        struct wg_block_needs needs;
        unsigned blocks;
    } cases[] = {
        {{256, 32, 0}, 8},            /* threads: 2048 / 256 */
        {{32, 16, 0}, 32},            /* blocks */
        {{256, 122, 0}, 2},           /* registers: 122 -> 3,904 -> 4,096 a warp, 32,768 a block */
        {{256, 128, 0}, 2},           /* the same unit */
        {{256, 129, 0}, 1},           /* 4,352 a warp, 34,816 a block */
        {{128, 32, 40.0 * 1024}, 4},  /* shared memory: 164 / (40 + 1) */
        {{128, 32, 41.0 * 1024}, 3},  /* 164 / 42 */
        {{128, 32, 163.0 * 1024}, 1}, /* all of it */
        {{128, 32, 163.0 * 1024 + 1}, 0},
        {{1, 16, 0}, 32}, /* a lone thread takes a warp */
        {{4096, 16, 0}, 0},
        {{0, 16, 0}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (wg__occupancy(&a100, &cases[i].needs) != cases[i].blocks)
            fail_msg("case %zu: %u blocks, expected %u", i, wg__occupancy(&a100, &cases[i].needs),
                     cases[i].blocks);
    struct wg_gpu_spec volta = a100;
    volta.cc_major = 7;
    volta.shared_memory_per_sm_bytes = 96 * 1024;
    volta.max_shared_memory_per_block_bytes = 96 * 1024;
    const struct wg_block_needs needs = {128, 32, 32 * 1024};
    assert_int_equal(wg__occupancy(&volta, &needs), 3); /* nothing is kept before Ampere */
}

/* What Nsight Compute says of a CUTLASS kernel on a GPU with 152 SMs (its "Block Limit" lines): 5
 * blocks by warps, 32 by the SM, 1 by registers, 1 by shared memory; 1.89 waves of 288 blocks. */
static void agrees_with_nsight_compute(void **state)
{
    (void)state;
    struct wg_gpu_table *table = NULL;
    const struct wg_gpu_spec *gpu = NULL;
    assert_int_equal(wg__gpu_table_open_built_in(&table, NULL), WG_OK);
    assert_int_equal(wg__gpu_table_find(table, "gb200", &gpu, NULL), WG_OK);
    static const struct {
        struct wg_block_needs needs;
        unsigned blocks;
    } cases[] = {{{384, 0, 0}, 5},
                 {{32, 0, 0}, 32},
                 {{384, 168, 0}, 1},
                 {{384, 0, 205696}, 1},
                 {{384, 168, 205696}, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(wg__occupancy(gpu, &cases[i].needs), cases[i].blocks);
    check_close_abs(9.0 * 32 / gpu->sms, 1.89, 0, 0.005);
    check_close(gpu->shared_memory_per_sm_bytes, 233472, 0);
    wg__gpu_table_close(table);
}

static void tail_is_what_the_last_wave_leaves_empty(void **state)
{
    (void)state;
    check_close(wg__tail_share(1), 0, 0);
    check_close(wg__tail_share(3), 0, 0);
    check_close(wg__tail_share(0.25), 0.75, 0);
    check_close(wg__tail_share(1.5), 0.25, 1e-12);
    check_close(wg__tail_share(0), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_tiles_in_the_order_of_each_family),
        cmocka_unit_test(tells_no_tile_where_the_name_has_none_of_this_gemm),
        cmocka_unit_test(counts_blocks_as_whole_tiles),
        cmocka_unit_test(occupancy_is_the_scarcest_resource),
        cmocka_unit_test(agrees_with_nsight_compute),
        cmocka_unit_test(tail_is_what_the_last_wave_leaves_empty),
    };
    return run_tests(tests);
}
