/* SPDX-License-Identifier: MIT
 *
 * Measurements from CSV: the columns of public data sets, what the grid tells, what is refused.
 */
#include "model/measurements.h"

#include <string.h>

#include <zlib.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/scratch.h"

static const struct wg_measurements_opts fp32 = {.has_dtype = true, .dtype = WG_DTYPE_FP32};

static struct wg_measurements read_with(const char *text, const struct wg_measurements_opts *opts)
{
    struct wg_measurements measurements = {0};
    struct wg_error err = {0};
    if (wg__measurements_read_memory(&measurements, "m.csv", text, strlen(text), opts, &err) !=
        WG_OK)
        fail_msg("'%s' is not read: %s", text, err.text);
    return measurements;
}

static void expect_error(const char *text, const struct wg_measurements_opts *opts,
                         enum wg_code code, const char *expected)
{
    struct wg_measurements measurements = {0};
    struct wg_error err = {0};
    assert_int_equal(
        wg__measurements_read_memory(&measurements, "m.csv", text, strlen(text), opts, &err), code);
    assert_string_equal(err.text, expected);
    assert_null(measurements.rows);
}

static void check_gemm(const struct wg_measured *row, uint64_t batch, uint64_t m, uint64_t n,
                       uint64_t k, double time_s)
{
    assert_false(row->is_conv);
    assert_int_equal(row->gemm.batch, batch);
    assert_int_equal(row->gemm.m, m);
    assert_int_equal(row->gemm.n, n);
    assert_int_equal(row->gemm.k, k);
    check_close(row->time_s, time_s, 1e-12);
}

static void check_kernel(const struct wg_measured *row, unsigned tile_m, unsigned tile_n,
                         unsigned split_k, uint64_t blocks)
{
    assert_int_equal(row->kernel.tile_m, tile_m);
    assert_int_equal(row->kernel.tile_n, tile_n);
    assert_int_equal(row->kernel.split_k, split_k);
    assert_int_equal(row->kernel.cluster_m, 1);
    assert_int_equal(row->kernel.cluster_n, 1);
    assert_int_equal(row->blocks, blocks);
}

/* -- Columns ------------------------------------------------------------------------------- */

static void reads_products_with_columns_in_any_order(void **state)
{
    (void)state;
    struct wg_measurements read =
        read_with("note,k,gpu,us,m,B,n,dtype,op\nx,64,a100,12.5,8,2,16,fp16,bmm\n"
                  "y,65,a100,13,8,2,16,bfloat16,bmm\nz,66,h100,7,8,,16,FP16,linear\n",
                  NULL);
    assert_int_equal(read.count, 3);
    check_gemm(&read.rows[0], 2, 8, 16, 64, 12.5e-6);
    check_gemm(&read.rows[1], 2, 8, 16, 65, 13e-6);
    check_gemm(&read.rows[2], 1, 8, 16, 66, 7e-6);
    assert_int_equal(read.rows[0].gemm.dtype, WG_DTYPE_FP16);
    assert_int_equal(read.rows[1].gemm.dtype, WG_DTYPE_BF16);
    assert_string_equal(read.rows[2].gpu, "h100");
    assert_string_equal(read.rows[0].op, "bmm");
    assert_ptr_equal(read.rows[0].gpu, read.rows[1].gpu);
    assert_ptr_equal(read.rows[0].op, read.rows[1].op);
    assert_ptr_not_equal(read.rows[0].op, read.rows[2].op);
    check_kernel(&read.rows[0], 0, 0, 1, 0);
    assert_int_equal(read.unmeasured, 0);
    wg__measurements_fini(&read);
}

static void takes_the_case_of_a_name_as_it_comes_where_one_kind_of_row_is(void **state)
{
    (void)state;
    struct wg_measurements read = read_with("GPU,M,N,K,MS,Precision\nt4,3,4,5,1,fp32\n", NULL);
    check_gemm(&read.rows[0], 1, 3, 4, 5, 1e-3);
    assert_string_equal(read.rows[0].gpu, "t4");
    assert_null(read.rows[0].op);
    wg__measurements_fini(&read);

    read = read_with("n,c,k,r,h,ms,dtype\n2,3,64,7,224,1,fp32\n", NULL);
    assert_true(read.rows[0].is_conv);
    assert_int_equal(read.rows[0].conv.n, 2);
    assert_int_equal(read.rows[0].conv.filters, 64);
    assert_null(read.rows[0].gpu);
    wg__measurements_fini(&read);
}

static void tells_rows_of_both_kinds_in_one_file_apart(void **state)
{
    (void)state;
    struct wg_measurements read = read_with("op,m,n,k,N,C,K,R,H,pad,dtype,ms\n"
                                            "linear,7,8,9,,,,,,,fp16,1\n"
                                            "conv_wgrad,,,,2,16,32,3,10,1,fp16,2\n",
                                            NULL);
    check_gemm(&read.rows[0], 1, 7, 8, 9, 1e-3);
    assert_true(read.rows[1].is_conv);
    assert_int_equal(read.rows[1].pass, WG_CONV_WGRAD);
    assert_int_equal(read.rows[1].conv.filters, 32);
    wg__measurements_fini(&read);

    read = read_with("m,n,k,N,C,K,R,H,dtype,ms\n7,8,9,,,,,,fp16,1\n,,,2,16,32,3,10,fp16,2\n", NULL);
    assert_false(read.rows[0].is_conv);
    assert_true(read.rows[1].is_conv);
    wg__measurements_fini(&read);
}

static void reads_a_convolution_with_what_is_left_out(void **state)
{
    (void)state;
    struct wg_measurements read = read_with("N,C,K,R,H,ms\n4,3,64,7,224,1.5\n", &fp32);
    const struct wg_conv *conv = &read.rows[0].conv;
    assert_int_equal(conv->s, 7);
    assert_int_equal(conv->w, 224);
    assert_int_equal(conv->stride_h, 1);
    assert_int_equal(conv->stride_w, 1);
    assert_int_equal(conv->pad_top + conv->pad_left + conv->pad_bottom + conv->pad_right, 0);
    assert_int_equal(conv->dilation_h, 1);
    assert_int_equal(conv->groups, 1);
    assert_int_equal(conv->dtype, WG_DTYPE_FP32);
    assert_int_equal(read.rows[0].pass, WG_CONV_FORWARD);
    assert_null(read.rows[0].op);
    wg__measurements_fini(&read);

    read = read_with("N,C,K,R,S,H,W,stride,pad,dilation,groups,bias,ms\n"
                     "4,32,64,3,5,20,30,2,1,2,4,1,1\n",
                     &fp32);
    conv = &read.rows[0].conv;
    assert_int_equal(conv->s, 5);
    assert_int_equal(conv->w, 30);
    assert_int_equal(conv->stride_w, 2);
    assert_int_equal(conv->pad_bottom, 1);
    assert_int_equal(conv->pad_right, 1);
    assert_int_equal(conv->dilation_w, 2);
    assert_int_equal(conv->groups, 4);
    assert_true(conv->has_bias);
    wg__measurements_fini(&read);
}

/* The times are columns of the three passes, sizes are written as 5.0, some say N/A* (DeepBench).
 */
static void reads_the_passes_of_one_convolution_from_their_columns(void **state)
{
    (void)state;
    struct wg_measurements read =
        read_with("gpu,precision_sheet,W,H,C,N,K,R,S,pad_h,pad_w,stride_h,stride_w,fwd_ms,dgrad_ms,"
                  "wgrad_ms,fwd_algo\n"
                  "M40,Results - FP32,700,161,1,4,32,5.0,20.0,0,0,2.0,2.0,0.224,N/A*,0.369,X\n"
                  "M40,Results - FP32,54,54,64,8,64,3.0,3.0,1,1,1.0,1.0,0.5,0.6,0.7,X\n",
                  &fp32);
    assert_int_equal(read.count, 5);
    assert_int_equal(read.unmeasured, 1);
    const enum wg_conv_pass passes[] = {WG_CONV_FORWARD, WG_CONV_WGRAD, WG_CONV_FORWARD,
                                        WG_CONV_DGRAD, WG_CONV_WGRAD};
    const double times_s[] = {0.224e-3, 0.369e-3, 0.5e-3, 0.6e-3, 0.7e-3};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(read.rows[i].pass, passes[i]);
        check_close(read.rows[i].time_s, times_s[i], 1e-12);
    }
    const struct wg_conv *conv = &read.rows[0].conv;
    assert_int_equal(conv->w, 700);
    assert_int_equal(conv->h, 161);
    assert_int_equal(conv->r, 5);
    assert_int_equal(conv->s, 20);
    assert_int_equal(conv->stride_h, 2);
    assert_int_equal(conv->stride_w, 2);
    assert_int_equal(read.rows[2].conv.pad_top, 1);
    wg__measurements_fini(&read);
}

static void takes_the_pass_from_op_or_pass(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        const char *pass;
        enum wg_conv_pass expected;
    } cases[] = {{"conv", "", WG_CONV_FORWARD},           {"conv2d", "", WG_CONV_FORWARD},
                 {"conv_fwd", "", WG_CONV_FORWARD},       {"conv_dgrad", "", WG_CONV_DGRAD},
                 {"conv_wgrad", "", WG_CONV_WGRAD},       {"x", "bwd_data", WG_CONV_DGRAD},
                 {"x", "backward_filter", WG_CONV_WGRAD}, {"wgrad", "", WG_CONV_WGRAD},
                 {"conv_dgrad", "fwd", WG_CONV_FORWARD}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "op,pass,N,C,K,R,H,ms\n%s,%s,1,2,3,1,5,1\n", cases[i].op,
                       cases[i].pass);
        struct wg_measurements read = read_with(text, &fp32);
        if (read.rows[0].pass != cases[i].expected)
            fail_msg("op '%s', pass '%s' is pass %d", cases[i].op, cases[i].pass,
                     (int)read.rows[0].pass);
        wg__measurements_fini(&read);
    }
}

static void prefers_the_median_to_the_least_time(void **state)
{
    (void)state;
    struct wg_measurements read =
        read_with("gpu,n,k,m,min_ms,median_ms,std_ms,runs\na100,768,4096,2,0.011,0.012,0.0002,1\n"
                  "a100,768,4096,3,0.011,nan,0,1\n",
                  &fp32);
    assert_int_equal(read.count, 1);
    assert_int_equal(read.unmeasured, 1);
    check_gemm(&read.rows[0], 1, 2, 768, 4096, 12e-6);
    wg__measurements_fini(&read);
}

static void reads_a_file_gzipped_or_plain(void **state)
{
    (void)state;
    static const char text[] = "m,n,k,us\n1,2,3,4\n";
    struct scratch scratch;
    scratch_open(&scratch);
    struct wg_measurements read = {0};
    struct wg_error err = {0};
    scratch_write(scratch_path(&scratch, "a.csv"), text, strlen(text));
    assert_int_equal(wg__measurements_read(&read, scratch.path, &fp32, &err), WG_OK);
    check_gemm(&read.rows[0], 1, 1, 2, 3, 4e-6);
    wg__measurements_fini(&read);

    gzFile file = gzopen(scratch_path(&scratch, "b.csv.gz"), "wb");
    assert_int_equal(gzwrite(file, text, sizeof text - 1), sizeof text - 1);
    assert_int_equal(gzclose(file), Z_OK);
    assert_int_equal(wg__measurements_read(&read, scratch.path, &fp32, &err), WG_OK);
    check_gemm(&read.rows[0], 1, 1, 2, 3, 4e-6);
    wg__measurements_fini(&read);

    assert_int_equal(wg__measurements_read(&read, scratch_path(&scratch, "none"), &fp32, &err),
                     WG_ENOENT);
    scratch_close(&scratch);
}

/* -- Kernels ------------------------------------------------------------------------------- */

/* Rows of NeuSight's profiles (MIT), whose kernels are called ampere_sgemm_AxB: A runs over n. */
static void finds_the_order_of_a_tile_from_the_grid(void **state)
{
    (void)state;
    struct wg_measurements read =
        read_with("gpu,op,B,m,n,k,tile1,tile2,gx,gy,gz,threads,ms\n"
                  "a,bmm,12,64,196,196,128,128,2,1,12,256,0.1\n"
                  "a,linear,1,512,1600,1600,32,128,50,4,1,256,0.1\n"   /* only over n */
                  "a,linear,1,512,768,2304,64,32,12,16,1,256,0.1\n"    /* blocks both ways */
                  "a,linear,1,512,960,2880,32,128,30,4,9,256,0.1\n"    /* split-K by 9 */
                  "a,linear,1,32,2041,59157,128,32,16,1,4,256,0.1\n"   /* ... and 64 over m too */
                  "a,bmm,65536,64,196,196,128,128,2,1,65535,256,0.1\n" /* explains nothing */
                  "a,linear,1,64,64,64,0,0,1,1,1,256,0.1\n",
                  &fp32);
    check_kernel(&read.rows[0], 128, 128, 1, 24);
    check_kernel(&read.rows[1], 128, 32, 1, 200);
    check_kernel(&read.rows[2], 32, 64, 1, 192);
    check_kernel(&read.rows[3], 128, 32, 9, 1080);
    check_kernel(&read.rows[4], 32, 128, 4, 64);
    check_kernel(&read.rows[5], 0, 0, 1, 131070);
    check_kernel(&read.rows[6], 0, 0, 1, 1);
    for (size_t i = 0; i < read.count; i++)
        assert_int_equal(read.rows[i].kernel.threads, 256);
    wg__measurements_fini(&read);
}

/* cuDNN's 128x64 counts 128 over pixels; a Winograd pipeline's grid is not the product's. */
static void keeps_a_tile_of_a_convolution_where_the_grid_shows_it(void **state)
{
    (void)state;
    struct wg_measurements read =
        read_with("gpu,N,C,K,R,H,stride,pad,tile1,tile2,gx,gy,gz,threads,nkern,kernel_id,ms\n"
                  "p,1,10,344,3,59,1,1,128,64,28,6,1,128,2,87,0.71\n"
                  "p,4,239,58,3,27,1,1,128,128,7,1,36,256,4,26,0.44\n"
                  "p,4,1732,110,3,12,1,1,128,128,2,1,36,256,4,26,0.67\n",
                  &fp32);
    check_kernel(&read.rows[0], 128, 64, 1, 168);
    check_kernel(&read.rows[1], 0, 0, 1, 252);
    check_kernel(&read.rows[2], 0, 0, 1, 72); /* 36 products of a transform, not split-K */
    wg__measurements_fini(&read);
}

static void takes_kernels_from_names_tiles_and_sure_columns(void **state)
{
    (void)state;
    struct wg_measurements read =
        read_with("m,n,k,kernel,tile,grid,tile_m,tile_n,tile_k,split_k,ms\n"
                  "512,1600,1600,ampere_sgemm_32x128_tn,,50x4x1,,,,,1\n"
                  "512,1600,1600,,32x128x8,,,,,,1\n"
                  "512,1600,1600,,128x32,\"(4, 50, 1)\",,,,,1\n"
                  "512,1600,1600,,,,256,64,32,3,1\n"
                  "512,1600,1600,mine,,8,,,,,1\n",
                  &fp32);
    check_kernel(&read.rows[0], 128, 32, 1, 200);
    check_kernel(&read.rows[1], 32, 128, 1, 0); /* nothing says otherwise: over m */
    assert_int_equal(read.rows[1].kernel.tile_k, 8);
    check_kernel(&read.rows[2], 128, 32, 1, 200);
    check_kernel(&read.rows[3], 256, 64, 3, 0);
    assert_int_equal(read.rows[3].kernel.tile_k, 32);
    check_kernel(&read.rows[4], 0, 0, 1, 8);
    wg__measurements_fini(&read);
}

/* -- Choosing ------------------------------------------------------------------------------ */

static void keeps_rows_that_meet_all_conditions(void **state)
{
    (void)state;
    static const char text[] = "split,op,m,n,k,ms\ntrain,bmm,1,1,1,1\ntest,bmm,2,1,1,1\n"
                               "test,linear,3,1,1,1\nbad,linear,x,1,1,1\n";
    const char *const where[] = {"split=test", "op=linear"};
    struct wg_measurements_opts opts = fp32;
    opts.where = where;
    opts.where_count = 2;
    struct wg_measurements read = read_with(text, &opts);
    assert_int_equal(read.count, 1);
    assert_int_equal(read.rows[0].gemm.m, 3);
    wg__measurements_fini(&read);

    const char *const none[] = {"split=valid"};
    opts.where = none;
    opts.where_count = 1;
    expect_error(text, &opts, WG_EDATA, "m.csv: no measurement in it that meets the conditions");
    const char *const unknown[] = {"fold=1"};
    opts.where = unknown;
    expect_error(
        text, &opts, WG_EINVAL,
        "condition 'fold=1': m.csv: no column 'fold'; its columns are: split, op, m, n, k, ms");
    const char *const bad[] = {"=1"};
    opts.where = bad;
    expect_error(text, &opts, WG_EINVAL, "'=1' is no condition, expected COLUMN=VALUE");
}

static void keeps_the_rows_of_one_gpu_under_any_of_its_names(void **state)
{
    (void)state;
    static const char text[] = "gpu,m,n,k,ms\na100-sxm4-80gb,1,1,1,1\nh100-sxm-80gb,2,1,1,1\n"
                               "NVIDIA A100-SXM4-80GB,3,1,1,1\n,4,1,1,1\nnone such,5,1,1,1\n";
    struct wg_gpu_table *table = NULL;
    const struct wg_gpu_spec *a100 = NULL, *t4 = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__gpu_table_open_built_in(&table, &err), WG_OK);
    assert_int_equal(wg__gpu_table_find(table, "a100-sxm4-80gb", &a100, &err), WG_OK);
    assert_int_equal(wg__gpu_table_find(table, "t4", &t4, &err), WG_OK);
    struct wg_measurements read = read_with(text, &fp32);
    assert_int_equal(wg__measurements_keep(&read, table, a100, &err), WG_OK);
    assert_int_equal(read.count, 3);
    assert_int_equal(read.rows[0].gemm.m, 1);
    assert_int_equal(read.rows[1].gemm.m, 3);
    assert_int_equal(read.rows[2].gemm.m, 4);
    wg__measurements_fini(&read);

    read = read_with("gpu,m,n,k,ms\nh100-sxm-80gb,1,1,1,1\nnone such,1,1,1,1\n", &fp32);
    assert_int_equal(wg__measurements_keep(&read, table, t4, &err), WG_EDATA);
    assert_string_equal(err.text, "no measurement is of t4, but of h100-sxm-80gb, none such");
    assert_int_equal(read.count, 2);
    wg__measurements_fini(&read);

    struct wg_gpu_spec own = *a100; /* a user's, which the table does not have */
    own.id = "mine";
    own.name = "My GPU 9000";
    read = read_with("gpu,m,n,k,ms\nMine,1,1,1,1\nmy gpu 9000,2,1,1,1\na100-sxm4-80gb,3,1,1,1\n",
                     &fp32);
    assert_int_equal(wg__measurements_keep(&read, table, &own, &err), WG_OK);
    assert_int_equal(read.count, 2);
    assert_int_equal(read.of_other_gpus, 1);
    wg__measurements_fini(&read);
    wg__gpu_table_close(table);
}

/* -- Errors -------------------------------------------------------------------------------- */

static void says_which_column_of_which_line_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"m,n,k,ms\n1,2,3,4\n1,x,3,4\n",
         "m.csv:3: column 'n': 'x' is not a whole number from 1 to 2^31"},
        {"m,n,k,ms\n0,2,3,4\n", "m.csv:2: column 'm': '0' is not a whole number from 1 to 2^31"},
        {"m,n,k,ms\n1.5,2,3,4\n",
         "m.csv:2: column 'm': '1.5' is not a whole number from 1 to 2^31"},
        {"m,n,k,ms\n1,,3,4\n", "m.csv:2: column 'n': is empty, expected a whole number"},
        {"m,n,k,ms\n1,2,3,-4\n",
         "m.csv:2: column 'ms': '-4' is no time of a kernel, expected 1 ns to 1000 s"},
        {"m,n,k,ms\n1,2,3,0\n",
         "m.csv:2: column 'ms': '0' is no time of a kernel, expected 1 ns to 1000 s"},
        {"B,m,n,k,ms\n2147483648,2147483648,2147483648,3,4\n",
         "m.csv:2: column 'm': B * m * n is above 2^62"},
        {"m,n,k,grid,ms\n1,2,3,4;5,1\n", "m.csv:2: column 'grid': '4;5' is not a grid like 9x32x1"},
        {"m,n,k,tile,ms\n1,2,3,64,1\n", "m.csv:2: column 'tile': '64' is not a tile like 128x64"},
        {"pass,N,C,K,R,H,ms\nsideways,1,1,1,1,1,1\n",
         "m.csv:2: column 'pass': 'sideways' is no pass, expected fwd, dgrad or wgrad"},
        {"op,N,C,K,R,H,ms\nconv_transpose,1,1,1,1,1,1\n",
         "m.csv:2: column 'op': 'conv_transpose' is not known, expected conv, conv_fwd, conv_dgrad "
         "or conv_wgrad"},
        {"m,n,ms\n1,2,3\n", "m.csv:1: no column 'k', expected m, n, k of GEMMs"},
        {"N,C,K,H,ms\n1,2,3,4,5\n",
         "m.csv:1: no column 'R', expected N, C, K, R, H of convolutions"},
        {"a,ms\n1,2\n", "m.csv:1: neither a column m (m, n, k of GEMMs) nor C and H (N, C, K, R, H "
                        "of convolutions)"},
        {"m,n,k\n1,2,3\n",
         "m.csv:1: no column with a time, expected ms, us, median_ms, time_ms, latency_ms, "
         "mean_ms, min_ms, or fwd_ms, dgrad_ms, wgrad_ms"},
        {"m,n,k,fwd_ms\n1,2,3,4\n",
         "m.csv:1: fwd_ms, dgrad_ms, wgrad_ms time convolutions, but there is a column m"},
        {"m,n,k,ms\n", "m.csv: no measurement in it"},
        {"m,n,k,ms\n1,2,3,nan\n1,2,3,\n", "m.csv: no measurement in it: 2 without a time"},
        {"m,n,k,us\n1,2,3,1e-320\n",
         "m.csv:2: column 'us': '1e-320' is no time of a kernel, expected 1 ns to 1000 s"},
        {"m,n,k,time_s\n1,2,3,1e300\n",
         "m.csv:2: column 'time_s': '1e300' is no time of a kernel, expected 1 ns to 1000 s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_error(cases[i].text, &fp32, WG_EDATA, cases[i].expected);
    expect_error("m,n,k,ms\n1,2,3,4\n", NULL, WG_EDATA,
                 "m.csv:1: no column dtype, and no precision is given for the file");
    const struct wg_measurements_opts by_option = {.dtype_option = "--dtype"};
    expect_error("m,n,k,ms\n1,2,3,4\n", &by_option, WG_EDATA,
                 "m.csv:1: no column dtype; --dtype says of which the data are");
}

static void refuses_numbers_that_no_gpu_multiplies(void **state)
{
    (void)state;
    struct wg_measurements read = {0};
    struct wg_error err = {0};
    static const char unknown[] = "m,n,k,dtype,ms\n1,2,3,fp12,4\n";
    assert_int_equal(
        wg__measurements_read_memory(&read, "m.csv", unknown, strlen(unknown), NULL, &err),
        WG_EDATA);
    assert_non_null(strstr(err.text, "m.csv:2: column 'dtype': "));
    assert_non_null(strstr(err.text, "fp12"));
    static const char filter[] = "N,C,K,R,H,ms\n1,3,8,7,5,4\n"; /* larger than its input */
    assert_int_equal(
        wg__measurements_read_memory(&read, "m.csv", filter, strlen(filter), &fp32, &err),
        WG_EDATA);
    assert_non_null(strstr(err.text, "m.csv:2: column 'C': "));
}

static void fails_cleanly_without_memory(void **state)
{
    (void)state;
    static const char text[] = "gpu,op,m,n,k,ms\na,x,1,2,3,4\nb,y,1,2,3,4\n";
    for (size_t nth = 1;; nth++) {
        struct wg_measurements read = {0};
        struct wg_error err = {0};
        wg__alloc_fail_from(nth);
        const enum wg_code code =
            wg__measurements_read_memory(&read, "m.csv", text, strlen(text), &fp32, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK) {
            assert_true(nth > 4);
            wg__measurements_fini(&read);
            break;
        }
        assert_int_equal(code, WG_ENOMEM);
        assert_null(read.rows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_products_with_columns_in_any_order),
        cmocka_unit_test(takes_the_case_of_a_name_as_it_comes_where_one_kind_of_row_is),
        cmocka_unit_test(tells_rows_of_both_kinds_in_one_file_apart),
        cmocka_unit_test(reads_a_convolution_with_what_is_left_out),
        cmocka_unit_test(reads_the_passes_of_one_convolution_from_their_columns),
        cmocka_unit_test(takes_the_pass_from_op_or_pass),
        cmocka_unit_test(prefers_the_median_to_the_least_time),
        cmocka_unit_test(reads_a_file_gzipped_or_plain),
        cmocka_unit_test(finds_the_order_of_a_tile_from_the_grid),
        cmocka_unit_test(keeps_a_tile_of_a_convolution_where_the_grid_shows_it),
        cmocka_unit_test(takes_kernels_from_names_tiles_and_sure_columns),
        cmocka_unit_test(keeps_rows_that_meet_all_conditions),
        cmocka_unit_test(keeps_the_rows_of_one_gpu_under_any_of_its_names),
        cmocka_unit_test(says_which_column_of_which_line_is_wrong),
        cmocka_unit_test(refuses_numbers_that_no_gpu_multiplies),
        cmocka_unit_test(fails_cleanly_without_memory),
    };
    return run_tests(tests);
}
