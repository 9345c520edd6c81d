/* SPDX-License-Identifier: MIT
 *
 * `wattgov wave calibrate`: from measurements of a GPU to parameters for the other commands.
 *
 * Threads: the main thread.
 */
#include <math.h>

#include "base/buffer.h"
#include "base/json.h"
#include "cli/command_wave.h"
#include "cli/output_files.h"
#include "cli/table.h"
#include "cli/wave_data.h"

struct args {
    struct wg_wave_data_args data;
    const char *output;
    bool no_points, json;
};

static const struct wg_option options[] = {
    WG_WAVE_DATA_OPTIONS(struct args, data),
    {.name = "output",
     .letter = 'o',
     WG_OPTION_STRING(struct args, output),
     .value = "FILE",
     .is_required = true,
     .help = "Where the calibration goes, as JSON, for --calibration of the other commands."},
    {.name = "no-points",
     WG_OPTION_FLAG(struct args, no_points),
     .help = "Keep the formula only, not the measured times: a smaller file, and measured shapes "
             "are no longer exact."},
    {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Write JSON instead of a table."},
};

static const struct wg_option_set set = {
    .command = "wattgov wave calibrate",
    .word = "DATA.csv",
    .summary =
        "Fits the kernel model to measurements of a GPU. DATA.csv has columns m, n, k and us "
        "or ms, with optional gpu, op, dtype, B, kernel, grid and tile; for convolutions N, C, K, "
        "R, "
        "S, H, W, stride, pad and groups. wattgov wave import makes it from profiles.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "examples:\n"
              "  wattgov wave calibrate gemm.csv --gpu a100-sxm4-80gb -o a100.json\n"
              "  wattgov wave calibrate gemm.csv --gpu my-gpu.yaml --dtype fp16 -o mine.json\n",
};

static void write_error_json(struct wg_json *json, const char *key,
                             const struct wg_kernel_error *error)
{
    wg__json_key(json, key);
    wg__json_object(json);
    wg__json_member_double(json, "mape", error->mape);
    wg__json_member_double(json, "low", error->low);
    wg__json_member_double(json, "high", error->high);
    wg__json_member_double(json, "rows", error->rows);
    wg__json_close(json);
}

/* Rows that no entry was fitted to. */
static size_t unused_rows(const struct wg_wave_data *data, const struct wg_calibration *calibration)
{
    size_t used = 0;
    for (size_t i = 0; i < wg__calibration_count(calibration); i++)
        used += wg__calibration_at(calibration, i)->row_count;
    return data->measurements.count - used;
}

static void write_json(const struct args *args, const struct wg_wave_data *data,
                       const struct wg_calibration *calibration, struct wg_buffer *out)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.wave.calibrate/1");
    wg__json_member_string(&json, "gpu", data->gpu.spec.id);
    wg__json_member_string(&json, "output", args->output);
    wg__json_member_uint(&json, "rows", data->measurements.count);
    wg__json_member_uint(&json, "unmeasured", data->measurements.unmeasured);
    wg__json_member_uint(&json, "of_other_gpus", data->measurements.of_other_gpus);
    wg__json_member_uint(&json, "unused", unused_rows(data, calibration));
    wg__json_key(&json, "entries");
    wg__json_array(&json);
    for (size_t i = 0; i < wg__calibration_count(calibration); i++) {
        const struct wg_calibrated *entry = wg__calibration_at(calibration, i);
        wg__json_object(&json);
        wg__json_member_string(&json, "dtype", wg__dtype_name(entry->dtype));
        wg__json_member_string(&json, "op", wg__op_class_name(entry->op));
        wg__json_member_uint(&json, "points", entry->point_count);
        wg__json_member_bool(&json, "has_correction", entry->correction != NULL);
        write_error_json(&json, "known", &entry->params.known);
        write_error_json(&json, "chosen", &entry->params.chosen);
        wg__json_close(&json);
    }
    wg__json_close(&json);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}

static void percent_cell(struct wg_table *table, double share)
{
    if (isfinite(share))
        wg__table_cell(table, "%.1f %%", 100.0 * share);
    else
        wg__table_cell(table, "-");
}

static void write_text(const struct args *args, const struct wg_wave_data *data,
                       const struct wg_calibration *calibration, struct wg_buffer *out)
{
    static const struct wg_table_column columns[] = {{"dtype", WG_ALIGN_LEFT},
                                                     {"op", WG_ALIGN_LEFT},
                                                     {"tiles", WG_ALIGN_RIGHT},
                                                     {"points", WG_ALIGN_RIGHT},
                                                     {"error, kernel known", WG_ALIGN_RIGHT},
                                                     {"error, kernel chosen", WG_ALIGN_RIGHT}};
    struct wg_table table;
    wg__table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < wg__calibration_count(calibration); i++) {
        const struct wg_calibrated *entry = wg__calibration_at(calibration, i);
        wg__table_cell(&table, "%s", wg__dtype_name(entry->dtype));
        wg__table_cell(&table, "%s", wg__op_class_name(entry->op));
        wg__table_cell(&table, "%zu", entry->params.tile_count);
        wg__table_cell(&table, "%zu", entry->point_count);
        percent_cell(&table, entry->params.known.mape);
        percent_cell(&table, entry->params.chosen.mape);
    }
    wg__table_write(&table, wg__wants_color(stdout), out);
    wg__table_fini(&table);
    wg__buffer_printf(out, "\n%zu measurements of %s", data->measurements.count,
                      data->gpu.spec.name);
    wg__wave_data_left_out(data, out);
    const size_t unused = unused_rows(data, calibration);
    if (unused > 0)
        wg__buffer_printf(out,
                          ", of which %zu teach nothing (depth-wise, or fewer than 20 of their "
                          "type and kind of layer)",
                          unused);
    wg__buffer_printf(out,
                      "; errors are mean absolute ones on shapes (n, k) that were held out.\n"
                      "Written to %s\n",
                      args->output);
}

static enum wg_code write_calibration(const char *path, const struct wg_calibration *calibration,
                                      struct wg_error *err)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__calibration_write(calibration, &text);
    wg__buffer_puts(&text, "\n");
    enum wg_code code = wg__write_output(path, false, &text, err);
    wg__buffer_fini(&text);
    return code;
}

static enum wg_code report(const struct args *args, const struct wg_wave_data *data,
                           const struct wg_calibration *calibration, struct wg_error *err)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    if (args->json)
        write_json(args, data, calibration, &text);
    else
        write_text(args, data, calibration, &text);
    enum wg_code code = wg__command_print(stdout, &text, err);
    wg__buffer_fini(&text);
    return code;
}

static enum wg_code calibrate(const struct args *args, struct wg_error *err)
{
    struct wg_wave_data data = {.gpu = {.table = NULL}};
    struct wg_calibration *calibration = NULL;
    const struct wg_output_file file = {.option = "output", .path = args->output};
    enum wg_code code = wg__output_files_check(&file, 1, err);
    if (code == WG_OK)
        code = wg__output_files_spare(&file, 1, args->data.word, err);
    if (code == WG_OK)
        code = wg__wave_data_open(&data, &args->data, err);
    if (code == WG_OK)
        code = wg__calibrate(&calibration, &data.gpu.spec, data.measurements.rows,
                             data.measurements.count, err);
    if (code == WG_OK && args->no_points)
        wg__calibration_drop_points(calibration);
    if (code == WG_OK)
        code = write_calibration(args->output, calibration, err);
    if (code == WG_OK)
        code = report(args, &data, calibration, err);
    wg__calibration_free(calibration);
    wg__wave_data_close(&data);
    return code;
}

static int run_calibrate(int argc, char *argv[])
{
    struct args args = {.output = NULL};
    struct wg_error err;
    int status = WG_EXIT_OK;
    const enum wg_code named = wg__wave_data_take(&set, &argc, &argv, &args.data, &err);
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    const enum wg_code code = named != WG_OK ? named : calibrate(&args, &err);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&set, &err);
}

const struct wg_command wg__command_wave_calibrate = {
    .name = "calibrate",
    .summary = "Fits the kernel model to measurements of a GPU",
    .run = run_calibrate,
};
