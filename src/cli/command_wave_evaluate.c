/* SPDX-License-Identifier: MIT
 *
 * `wattgov wave evaluate`: predictions against measurements.
 *
 * Threads: the main thread.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/csv_write.h"
#include "base/json.h"
#include "cli/command_wave.h"
#include "cli/output_files.h"
#include "cli/table.h"
#include "cli/wave_calibration.h"
#include "cli/wave_data.h"
#include "wave/evaluate.h"

struct args {
    struct wg_wave_data_args data;
    const char *calibration, *output;
    unsigned folds; /* 0: no folds */
    uint64_t seed;
    bool json;
};

static const struct wg_option options[] = {
    WG_WAVE_DATA_OPTIONS(struct args, data),
    {.name = "calibration",
     WG_OPTION_STRING(struct args, calibration),
     .value = "FILE",
     .fallback = "what is built in",
     .help = "Parameters that wattgov wave calibrate has written."},
    {.name = "folds",
     WG_OPTION_UNSIGNED(struct args, folds),
     .value = "N",
     .min = 2,
     .max = 64,
     .fallback = "none",
     .help = "Calibrate on DATA itself: each of N parts of the shapes (n, k) is predicted by what "
             "the other parts teach."},
    {.name = "seed",
     WG_OPTION_SEED(struct args, seed),
     .value = "N",
     .help = "Of the parting into folds."},
    {.name = "predictions",
     WG_OPTION_STRING(struct args, output),
     .value = "FILE",
     .fallback = "none",
     .help = "Write each row's measured and predicted time, as CSV."},
    {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Write JSON instead of a table."},
};

static const struct wg_option_set set = {
    .command = "wattgov wave evaluate",
    .word = "DATA.csv",
    .summary = "Compares predictions with measurements: errors, steps and cliffs found, advice. "
               "DATA.csv is as for wattgov wave calibrate.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog =
        "examples:\n"
        "  wattgov wave evaluate gemm.csv --gpu a100-sxm4-80gb --folds 5\n"
        "  wattgov wave evaluate others.csv --gpu h100-sxm-80gb --calibration mine.json --json\n",
};

/* All that a run opens, closed in one place. */
struct run {
    struct wg_wave_data data;
    struct wg_calibration *calibration;
    struct wg_evaluated *rows;
    size_t count;
    struct wg_evaluation result;
    struct wg_buffer note; /* what a number needs said with it; empty: nothing */
};

static void take_note(struct run *run)
{
    const struct wg_evaluation *result = &run->result;
    if (result->recalled > 0)
        wg__buffer_printf(&run->note,
                          "%zu of the rows are measurements that the calibration itself has: what "
                          "is said of them is no prediction; --folds predicts them from others.",
                          result->recalled);
    if (strcmp(run->data.gpu.spec.arch, "hopper") == 0 && result->steps + result->cliff_places > 0)
        wg__buffer_printf(&run->note,
                          "%sHopper: no rule of waves, clusters or persistent blocks tells where "
                          "the steps are; which kernel the library takes does, and that is learned "
                          "from other shapes of the GPU (docs/internals/wave-choice.md).",
                          run->note.length > 0 ? " " : "");
}

static enum wg_code evaluate(const struct args *args, struct run *run, struct wg_error *err)
{
    if (args->folds > 0 && args->calibration != NULL)
        return wg__fail(err, WG_EINVAL,
                        "--folds and --calibration: give one of them; folds calibrate on DATA");
    const struct wg_output_file file = {.option = "predictions", .path = args->output};
    enum wg_code code = wg__output_files_check(&file, 1, err);
    if (code == WG_OK)
        code = wg__output_files_spare(&file, 1, args->data.word, err);
    if (code == WG_OK)
        code = wg__wave_data_open(&run->data, &args->data, err);
    if (code != WG_OK)
        return code;
    const struct wg_measurements *data = &run->data.measurements;
    const struct wg_gpu_spec *gpu = &run->data.gpu.spec;
    run->count = data->count;
    run->rows = wg__realloc_array(NULL, run->count > 0 ? run->count : 1, sizeof *run->rows);
    if (run->rows == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu measurements", run->count);
    if (args->folds > 0) {
        code = wg__evaluate_folds(gpu, data->rows, run->count, args->folds, args->seed, run->rows,
                                  err);
    } else {
        code = wg__wave_calibration_open(&run->calibration, args->calibration, err);
        if (code == WG_OK)
            code =
                wg__evaluate_predict(gpu, run->calibration, data->rows, run->count, run->rows, err);
    }
    if (code == WG_OK)
        code = wg__evaluate(&run->result, run->rows, run->count, err);
    if (code == WG_OK)
        take_note(run);
    return code;
}

/* -- Results ---------------------------------------------------------------------------------- */

static void write_json(const struct args *args, const struct run *run, struct wg_buffer *out)
{
    const struct wg_evaluation *result = &run->result;
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.wave.evaluate/1");
    wg__json_member_string(&json, "gpu", run->data.gpu.spec.id);
    wg__json_key(&json, "folds");
    if (args->folds > 0)
        wg__json_uint(&json, args->folds);
    else
        wg__json_null(&json);
    wg__json_member_uint(&json, "rows", result->rows);
    wg__json_member_uint(&json, "recalled", result->recalled);
    wg__json_member_uint(&json, "unmeasured", run->data.measurements.unmeasured);
    wg__json_member_uint(&json, "of_other_gpus", run->data.measurements.of_other_gpus);
    wg__json_member_double(&json, "mape", result->mape);
    wg__json_member_double(&json, "median_ape", result->median_ape);
    wg__json_member_double(&json, "coverage", result->coverage);
    wg__json_member_double(&json, "spearman_tail", result->spearman_tail);
    wg__json_key(&json, "steps");
    wg__json_object(&json);
    wg__json_member_uint(&json, "count", result->steps);
    wg__json_member_double(&json, "recall", result->step_recall);
    wg__json_member_double(&json, "precision", result->step_precision);
    wg__json_member_double(&json, "told_above", result->told_rise);
    wg__json_close(&json);
    wg__json_member_double(&json, "cliff_auc", result->cliff_auc);
    wg__json_member_uint(&json, "cliffs", result->cliffs);
    wg__json_member_uint(&json, "cliff_places", result->cliff_places);
    wg__json_key(&json, "advice");
    wg__json_object(&json);
    wg__json_member_uint(&json, "windows", result->windows);
    wg__json_member_double(&json, "share_of_best", result->share_of_best);
    wg__json_member_double(&json, "best_fixed_multiple", result->best_fixed_multiple);
    wg__json_member_uint(&json, "multiple", result->fixed_multiple);
    wg__json_close(&json);
    wg__json_key(&json, "baselines");
    wg__json_object(&json);
    wg__json_key(&json, "roofline");
    wg__json_object(&json);
    wg__json_member_double(&json, "mape", result->roofline_mape);
    wg__json_close(&json);
    wg__json_close(&json);
    wg__json_member_string(&json, "note", run->note.length > 0 ? run->note.data : NULL);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}

static void line(struct wg_table *table, const char *name, double value, double scale,
                 const char *unit)
{
    wg__table_cell(table, "%s", name);
    if (isfinite(value))
        wg__table_cell(table, scale > 1.0 ? "%.1f%s" : "%.3f%s", scale * value, unit);
    else
        wg__table_cell(table, "-");
}

static void write_text(const struct args *args, const struct run *run, struct wg_buffer *out)
{
    static const struct wg_table_column columns[] = {{"", WG_ALIGN_LEFT},
                                                     {"value", WG_ALIGN_RIGHT}};
    const struct wg_evaluation *result = &run->result;
    struct wg_table table;
    wg__buffer_printf(out, "%zu measurements of %s", result->rows, run->data.gpu.spec.name);
    wg__wave_data_left_out(&run->data, out);
    wg__buffer_puts(out, ", ");
    if (args->folds > 0)
        wg__buffer_printf(out, "each predicted from other shapes (%u folds)\n\n", args->folds);
    else
        wg__buffer_printf(out, "predicted by %s\n\n",
                          args->calibration != NULL ? args->calibration : "what is built in");
    wg__table_init(&table, columns, sizeof columns / sizeof *columns);
    line(&table, "mean absolute error", result->mape, 100.0, " %");
    line(&table, "median absolute error", result->median_ape, 100.0, " %");
    line(&table, "mean absolute error of the roofline", result->roofline_mape, 100.0, " %");
    line(&table, "within the stated 90 % range", result->coverage, 100.0, " %");
    line(&table, "steps above 8 %: found", result->step_recall, 100.0, " %");
    line(&table, "steps above 8 %: true of those told", result->step_precision, 100.0, " %");
    line(&table, "cliffs of one row: area under the curve", result->cliff_auc, 1.0, "");
    line(&table, "tail: rank correlation with the loss", result->spearman_tail, 1.0, "");
    line(&table, "advice within +25 %: of the best", result->share_of_best, 100.0, " %");
    line(&table, "best fixed multiple: of the best", result->best_fixed_multiple, 100.0, " %");
    wg__table_write(&table, wg__wants_color(stdout), out);
    wg__table_fini(&table);
    wg__buffer_printf(out,
                      "\n%zu steps, %zu cliffs at %zu places, %zu windows of advice (multiple of "
                      "%u beside it).\n",
                      result->steps, result->cliffs, result->cliff_places, result->windows,
                      result->fixed_multiple);
    if (run->note.length > 0)
        wg__buffer_printf(out, "%s\n", run->note.data);
}

/* A row of --predictions; `pass` is empty for what is no convolution, `fold` without folds. All
 * that the evaluation counts follows from these columns. */
static void put_prediction(const struct wg_evaluated *row, struct wg_buffer *out)
{
    static const char *const passes[WG_CONV_PASS_COUNT] = {"forward", "dgrad", "wgrad"};
    const struct wg_measured *measured = row->row;
    const struct wg_gemm *gemm = &measured->gemm;
    const double values[] = {1e6 * measured->time_s, 1e6 * row->predicted_s, 1e6 * row->low_s,
                             1e6 * row->high_s,      1e6 * row->full_s,      row->waves,
                             1e6 * row->roofline_s};
    wg__csv_put(out, measured->op != NULL ? measured->op : "");
    wg__buffer_printf(out, ",%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                      measured->is_conv ? passes[measured->pass] : "", wg__dtype_name(gemm->dtype),
                      gemm->batch, gemm->m, gemm->n, gemm->k);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        wg__buffer_puts(out, ",");
        wg__csv_put_double(out, values[i]);
    }
    if (row->fold > 0)
        wg__buffer_printf(out, ",%u\n", row->fold);
    else
        wg__buffer_puts(out, ",\n");
}

static enum wg_code write_predictions(const char *path, const struct run *run, struct wg_error *err)
{
    struct wg_buffer text;
    if (path == NULL)
        return WG_OK;
    wg__buffer_init(&text);
    wg__buffer_puts(&text, "op,pass,dtype,B,m,n,k,measured_us,predicted_us,low_us,high_us,full_us,"
                           "waves,roofline_us,fold\n");
    for (size_t i = 0; i < run->count; i++)
        put_prediction(&run->rows[i], &text);
    enum wg_code code = wg__write_output(path, false, &text, err);
    wg__buffer_fini(&text);
    return code;
}

static enum wg_code report(const struct args *args, const struct run *run, struct wg_error *err)
{
    struct wg_buffer text;
    enum wg_code code = write_predictions(args->output, run, err);
    if (code != WG_OK)
        return code;
    wg__buffer_init(&text);
    if (args->json)
        write_json(args, run, &text);
    else
        write_text(args, run, &text);
    code = wg__command_print(stdout, &text, err);
    wg__buffer_fini(&text);
    return code;
}

static int run_evaluate(int argc, char *argv[])
{
    struct args args = {.seed = 1};
    struct run run = {.rows = NULL};
    struct wg_error err;
    int status = WG_EXIT_OK;
    wg__buffer_init(&run.note);
    const enum wg_code named = wg__wave_data_take(&set, &argc, &argv, &args.data, &err);
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    enum wg_code code = named != WG_OK ? named : evaluate(&args, &run, &err);
    if (code == WG_OK)
        code = report(&args, &run, &err);
    wg__free(run.rows);
    wg__buffer_fini(&run.note);
    wg__calibration_free(run.calibration);
    wg__wave_data_close(&run.data);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&set, &err);
}

const struct wg_command wg__command_wave_evaluate = {
    .name = "evaluate",
    .summary = "Compares predictions with measurements",
    .run = run_evaluate,
};
