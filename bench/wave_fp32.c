/* SPDX-License-Identifier: MIT
 *
 * Calibrates the FP32 kernel model on measured GEMMs and convolutions, and tests it.
 *
 *     bench/wave_fp32 GPU FIT.csv TEST.csv [CALIBRATION.json]
 *
 * Reads measurements, fits `wg__calibrate` to FIT, predicts each row of TEST with its kernel known
 * and chosen, and prints a JSON line a class of work: rows, mean error known | chosen, share of
 * rows within the range. With a fourth argument the calibration is written there.
 * bench/wave_fp32.py makes the CSVs from the data sets, and compares with others' predictions.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "model/measurements.h"
#include "wave/calibration.h"
#include "wave/kernel_model.h"

static int complain(const struct wg_error *err)
{
    (void)fprintf(stderr, "wave_fp32: %s\n", err->text);
    return 1;
}

static enum wg_code predict(const struct wg_kernel_model *model, const struct wg_measured *row,
                            bool is_known, struct wg_prediction *out, struct wg_error *err)
{
    const struct wg_kernel *kernel = is_known ? &row->kernel : NULL;
    if (row->is_conv)
        return wg__kernel_model_conv(model, &row->conv, row->pass, kernel, out, err);
    return wg__kernel_model_gemm(model, &row->gemm, kernel, out, err);
}

/* One line a row: what was measured and predicted; the script sums it up. */
static int test(const struct wg_kernel_model *model, const struct wg_measurements *rows,
                struct wg_error *err)
{
    (void)printf("op,batch,m,n,k,measured_s,known_s,chosen_s,low_s,high_s,known_low_s,known_high_s,"
                 "waves,tail_s,tile_m,tile_n,split_k\n");
    for (size_t i = 0; i < rows->count; i++) {
        const struct wg_measured *row = &rows->rows[i];
        struct wg_prediction known, chosen;
        struct wg_gemm gemm = row->gemm;
        if (row->is_conv && wg__conv_gemm(&row->conv, row->pass, &gemm, err) != WG_OK)
            return complain(err);
        bool is_told = row->kernel.tile_m > 0;
        if (predict(model, row, false, &chosen, err) != WG_OK ||
            predict(model, row, true, &known, err) != WG_OK)
            return complain(err);
        (void)printf("%s,%llu,%llu,%llu,%llu,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.6g,%.6g,%u,%u,%u"
                     "\n",
                     row->op != NULL ? row->op : "", (unsigned long long)gemm.batch,
                     (unsigned long long)gemm.m, (unsigned long long)gemm.n,
                     (unsigned long long)gemm.k, row->time_s, is_told ? known.time_s : (double)NAN,
                     chosen.time_s, chosen.low_s, chosen.high_s, known.low_s, known.high_s,
                     known.waves, known.tail_s, chosen.kernel.tile_m, chosen.kernel.tile_n,
                     chosen.kernel.split_k);
    }
    return 0;
}

static int save(const struct wg_calibration *calibration, const char *path)
{
    struct wg_buffer buffer;
    wg__buffer_init(&buffer);
    wg__calibration_write(calibration, &buffer);
    FILE *file = fopen(path, "w");
    bool is_good = file != NULL && !buffer.failed &&
                   fwrite(buffer.data, 1, buffer.length, file) == buffer.length;
    if (file != NULL && fclose(file) != 0)
        is_good = false;
    wg__buffer_fini(&buffer);
    if (!is_good)
        (void)fprintf(stderr, "wave_fp32: cannot write %s\n", path);
    return is_good ? 0 : 1;
}

static enum wg_code load(struct wg_calibration **out, const char *path, struct wg_error *err)
{
    static char bytes[8 << 20];
    FILE *file = fopen(path, "r");
    size_t length = file != NULL ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file != NULL)
        (void)fclose(file);
    return wg__calibration_read(out, path, bytes, length, err);
}

static enum wg_code calibration_of(const char *path, const struct wg_gpu_spec *gpu,
                                   const struct wg_measurements_opts *opts,
                                   struct wg_measurements *fit, struct wg_calibration **out,
                                   struct wg_error *err)
{
    if (strcmp(path, "-") == 0)
        return wg__calibration_built_in(out, err);
    if (strlen(path) > 5 && strcmp(path + strlen(path) - 5, ".json") == 0)
        return load(out, path, err);
    enum wg_code code = wg__measurements_read(fit, path, opts, err);
    return code == WG_OK ? wg__calibrate(out, gpu, fit->rows, fit->count, err) : code;
}

/* As in the program: what was fitted, on top of what is built in. */
static enum wg_code model_of(const struct wg_calibration *calibration, bool is_fitted,
                             const struct wg_gpu_spec *gpu, struct wg_kernel_model **out,
                             struct wg_error *err)
{
    struct wg_calibration *known = NULL;
    enum wg_code code = WG_OK;
    if (is_fitted)
        code = wg__calibration_built_in(&known, err);
    if (code == WG_OK && is_fitted)
        code = wg__calibration_merge(known, calibration, err);
    if (code == WG_OK)
        code = wg__kernel_model_new(out, gpu, is_fitted ? known : calibration, err);
    wg__calibration_free(known);
    return code;
}

/* "-" for FIT takes the built-in calibration, a name that ends in ".json" one that was written; "-"
 * for TEST tests nothing. */
static int run(char **args, int count, const struct wg_gpu_spec *gpu)
{
    struct wg_error err = {.code = WG_OK};
    struct wg_measurements_opts opts = {.has_dtype = true, .dtype = WG_DTYPE_FP32};
    struct wg_measurements fit = {.count = 0}, tests = {.count = 0};
    struct wg_calibration *calibration = NULL;
    struct wg_kernel_model *model = NULL;
    int status = 1;
    if (calibration_of(args[2], gpu, &opts, &fit, &calibration, &err) != WG_OK ||
        model_of(calibration, fit.count > 0, gpu, &model, &err) != WG_OK)
        goto out;
    status = 0;
    if (strcmp(args[3], "-") != 0)
        status = wg__measurements_read(&tests, args[3], &opts, &err) != WG_OK
                     ? 1
                     : test(model, &tests, &err);
    if (status == 0 && count > 4)
        status = save(calibration, args[4]);
out:
    if (err.code != WG_OK)
        status = complain(&err);
    wg__measurements_fini(&fit);
    wg__measurements_fini(&tests);
    wg__calibration_free(calibration);
    wg__kernel_model_free(model);
    return status;
}

int main(int argc, char **argv)
{
    struct wg_error err;
    struct wg_gpu_table *table = NULL;
    const struct wg_gpu_spec *gpu = NULL;
    if (argc < 4 || argc > 5) {
        (void)fprintf(stderr, "usage: wave_fp32 GPU FIT.csv|- TEST.csv|- [CALIBRATION.json]\n");
        return 2;
    }
    if (wg__gpu_table_open_built_in(&table, &err) != WG_OK ||
        wg__gpu_table_find(table, argv[1], &gpu, &err) != WG_OK) {
        wg__gpu_table_close(table);
        return complain(&err);
    }
    int status = run(argv, argc, gpu);
    wg__gpu_table_close(table);
    return status;
}
