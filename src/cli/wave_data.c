/* SPDX-License-Identifier: MIT
 *
 * Opening measurements for the commands; see wave_data.h.
 */
#include "cli/wave_data.h"

#include "cli/command.h"

enum wg_code wg__wave_data_take(const struct wg_option_set *set, int *argc, char ***argv,
                                struct wg_wave_data_args *args, struct wg_error *err)
{
    wg__options_words_first(set, *argc, *argv);
    args->word = wg__command_word(argc, argv);
    if (args->word == NULL || args->word[0] == '\0')
        return wg__fail(err, WG_EINVAL,
                        "which data? Give a CSV of measurements (columns m, n, k and us or ms)");
    return WG_OK;
}

static enum wg_code check_dtypes(const struct wg_wave_data *data, const char *file,
                                 struct wg_error *err)
{
    size_t rows[WG_DTYPE_COUNT] = {0};
    for (size_t i = 0; i < data->measurements.count; i++)
        rows[data->measurements.rows[i].gemm.dtype]++;
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++)
        if (rows[dtype] > 0 && !(data->gpu.spec.dense_flops[dtype] > 0.0))
            return wg__fail(err, WG_EDATA,
                            "%s: %zu rows are %s, which %s does not multiply; choose others, as by "
                            "--where dtype=fp32",
                            file, rows[dtype], wg__dtype_name((enum wg_dtype)dtype),
                            data->gpu.spec.id);
    return WG_OK;
}

enum wg_code wg__wave_data_open(struct wg_wave_data *out, const struct wg_wave_data_args *args,
                                struct wg_error *err)
{
    struct wg_measurements_opts opts = {.has_dtype = args->dtype != NULL,
                                        .dtype_option = "--dtype",
                                        .where = args->where.items,
                                        .where_count = args->where.count};
    enum wg_code code = WG_OK;
    if (args->dtype != NULL && wg__dtype_parse(args->dtype, &opts.dtype, NULL) != WG_OK)
        code = wg__option_reject(err, "dtype", args->dtype, "fp32, tf32, fp16, bf16, fp8 or int8");
    if (code == WG_OK)
        code = wg__wave_gpu_open(&out->gpu, args->gpu, err);
    if (code == WG_OK)
        code = wg__measurements_read(&out->measurements, args->word, &opts, err);
    if (code == WG_OK)
        code = wg__measurements_keep(&out->measurements, out->gpu.table, &out->gpu.spec, err);
    if (code == WG_OK)
        code = check_dtypes(out, args->word, err);
    return code;
}

void wg__wave_data_left_out(const struct wg_wave_data *data, struct wg_buffer *out)
{
    const size_t unmeasured = data->measurements.unmeasured;
    const size_t others = data->measurements.of_other_gpus;
    if (unmeasured + others == 0)
        return;
    wg__buffer_puts(out, " (");
    if (unmeasured > 0)
        wg__buffer_printf(out, "%zu without a time%s", unmeasured, others > 0 ? ", " : "");
    if (others > 0)
        wg__buffer_printf(out, "%zu of other GPUs", others);
    wg__buffer_puts(out, " left out)");
}

void wg__wave_data_close(struct wg_wave_data *data)
{
    wg__measurements_fini(&data->measurements);
    wg__wave_gpu_close(&data->gpu);
}
