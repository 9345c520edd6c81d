/* SPDX-License-Identifier: MIT
 *
 * `wattgov wave analyze`: each layer's waves and what their tails cost.
 *
 * As everywhere, all that was given is checked before anything is computed, and each file is
 * written whole or not at all.
 *
 * Threads: the main thread.
 */
#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "base/number.h"
#include "cli/command_wave.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/table.h"
#include "cli/wave_calibration.h"
#include "cli/wave_gpu.h"
#include "cli/wave_model.h"
#include "cli/wave_report.h"

enum {
    FILE_COUNT = 3,
    BATCH_MOST = 4096,    /* of --max-batch */
    BATCHES_DEFAULT = 256 /* with --batches */
};

#define LAYERS_DEFAULT "15"

struct args {
    struct wg_wave_model_args model;
    struct wg_option_list gpus;
    const char *calibration;
    const char *layers;
    const char *max_waste, *max_total_waste;
    const char *batches;
    unsigned max_batch;
    bool json;
    const char *csv, *html;
};

static const struct wg_option options[] = {
    {.name = "gpu",
     WG_OPTION_LIST(struct args, gpus),
     .value = "GPU",
     .fallback = "that of a profile",
     .help = "The GPU: an id of the table (a100-sxm4-80gb), a YAML file, or live. Several are "
             "compared."},
    WG_WAVE_MODEL_OPTIONS(struct args, model),
    {.name = "calibration",
     WG_OPTION_STRING(struct args, calibration),
     .value = "FILE",
     .fallback = "what is built in",
     .help = "Parameters that wattgov wave calibrate has written."},
    {.name = "layers",
     WG_OPTION_STRING(struct args, layers),
     .value = "N|all",
     .help =
         "Show so many kinds of layers, those whose tails are longest together; or all layers, in "
         "their order."},
    {.name = "max-waste",
     WG_OPTION_STRING(struct args, max_waste),
     .value = "SHARE",
     .fallback = "none",
     .help = "Fail when tails are more than this share (15% or 0.15) of any layer's time."},
    {.name = "max-total-waste",
     WG_OPTION_STRING(struct args, max_total_waste),
     .value = "SHARE",
     .fallback = "none",
     .help = "Fail when tails are more than this share of all layers' time together."},
    {.name = "batches",
     WG_OPTION_STRING(struct args, batches),
     .value = "FILE",
     .fallback = "none",
     .help = "Write the batch sizes that no smaller one beats in samples a second, as CSV for "
             "--batch-sizes from:FILE and --knob batch=from:FILE."},
    {.name = "max-batch",
     WG_OPTION_UNSIGNED(struct args, max_batch),
     .value = "N",
     .min = 1,
     .max = BATCH_MOST,
     .fallback = "256 with --batches",
     .help = "The largest batch that is looked at."},
    {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Write JSON instead of tables."},
    {.name = "csv",
     WG_OPTION_STRING(struct args, csv),
     .value = "FILE",
     .fallback = "none",
     .help = "Write a row per layer, as plain text."},
    {.name = "html",
     WG_OPTION_STRING(struct args, html),
     .value = "FILE",
     .fallback = "none",
     .help = "Write a page with the layers' tails and staircases."},
};

static const struct wg_option_set set = {
    .command = "wattgov wave analyze",
    .word = "MODEL",
    .summary = "Shows each layer's waves of thread blocks and what the last, half-empty ones cost. "
               "MODEL is an ONNX file, a built-in network (resnet50), TensorRT's layers or a "
               "profile of ncu, nsys or PyTorch.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "examples:\n"
              "  wattgov wave analyze resnet50 --gpu a100-sxm4-80gb --batch 32\n"
              "  wattgov wave analyze model.onnx --gpu l4 --set-dim sequence=128 --html page.html\n"
              "  wattgov wave analyze resnet50 --gpu a100 --gpu h100-sxm-80gb --batch 32\n",
};

static enum wg_code parse_share(const char *option, const char *text, double *out,
                                struct wg_error *err)
{
    char number[WG_DOUBLE_TEXT_SIZE];
    *out = NAN;
    if (text == NULL)
        return WG_OK;
    const size_t length = strlen(text);
    const bool has_sign = length > 0 && text[length - 1] == '%';
    const size_t digits = length - has_sign;
    bool is_number = digits > 0 && digits < sizeof number;
    if (is_number) {
        memcpy(number, text, digits);
        number[digits] = '\0';
        is_number = wg__parse_double(number, out);
    }
    if (is_number && has_sign)
        *out /= 100;
    if (!is_number || !(*out >= 0 && *out <= 1))
        return wg__option_reject(err, option, text, "a share from 0 to 1, as 15% or 0.15");
    return WG_OK;
}

static enum wg_code parse_layers(const struct args *args, size_t *out, struct wg_error *err)
{
    uint64_t count = 0;
    *out = SIZE_MAX;
    if (strcmp(args->layers, "all") == 0)
        return WG_OK;
    if (!wg__parse_uint64(args->layers, &count) || count > UINT32_MAX)
        return wg__option_reject(err, "layers", args->layers, "a whole number or all");
    *out = (size_t)count;
    return WG_OK;
}

static void write_csv(const void *report, struct wg_buffer *out)
{
    wg__wave_csv(report, out);
}

static void write_batches(const void *report, struct wg_buffer *out)
{
    const struct wg_wave_report *all = report;
    wg__wave_batches_csv(&all->analyses[0], out);
}

static void write_page(const void *report, struct wg_buffer *out)
{
    wg__wave_page(report, out);
}

static void list_files(const struct args *args, struct wg_output_file files[static FILE_COUNT])
{
    files[0] = (struct wg_output_file){"csv", args->csv, write_csv};
    files[1] = (struct wg_output_file){"batches", args->batches, write_batches};
    files[2] = (struct wg_output_file){"html", args->html, write_page};
}

/* -- Computing -------------------------------------------------------------------------------- */

/* All that a run opens, closed in one place. */
struct run {
    struct wg_wave_gpu gpus[WG_WAVE_GPUS_MAX];
    struct wg_calibration *calibration;
    struct wg_kernel_model *kernels[WG_WAVE_GPUS_MAX];
    struct wg_wave_model model;
    struct wg_wave_report report;
    struct wg_buffer command;
};

static enum wg_code check_args(const struct args *args, struct wg_wave_report *report,
                               struct wg_error *err)
{
    struct wg_output_file files[FILE_COUNT];
    enum wg_code code = parse_layers(args, &report->kinds_shown, err);
    if (code == WG_OK)
        code = parse_share("max-waste", args->max_waste, &report->max_waste, err);
    if (code == WG_OK)
        code = parse_share("max-total-waste", args->max_total_waste, &report->max_total_waste, err);
    list_files(args, files);
    if (code == WG_OK)
        code = wg__output_files_check(files, FILE_COUNT, err);
    if (code == WG_OK)
        code = wg__output_files_spare(files, FILE_COUNT, args->model.word, err);
    if (code != WG_OK)
        return code;
    if (args->gpus.count > WG_WAVE_GPUS_MAX)
        return wg__fail(err, WG_EINVAL, "--gpu: %zu GPUs, at most %d are compared",
                        args->gpus.count, WG_WAVE_GPUS_MAX);
    if (args->gpus.count > 1 && args->batches != NULL)
        return wg__fail(err, WG_EINVAL, "--batches: of which GPU? Give one --gpu");
    return WG_OK;
}

/* Which batches are looked at: a hint needs only what is near. False: none. */
static bool choose_batches(const struct args *args, uint64_t batch, uint32_t *first, uint32_t *most)
{
    const bool has_end = args->max_batch > 0 || args->batches != NULL;
    const bool is_whole = has_end || args->html != NULL;
    if (batch == 0 || (batch > BATCH_MOST && !has_end))
        return false;
    *first = is_whole ? 1 : (uint32_t)batch;
    *most = (uint32_t)(batch + batch / 4 + 1);
    if (args->max_batch > 0)
        *most = args->max_batch;
    else if (args->batches != NULL)
        *most = BATCHES_DEFAULT;
    return true;
}

/* Without --gpu: the one that a profile was taken on. */
static enum wg_code choose_gpu(struct args *args, const struct wg_wave_model *model,
                               struct wg_error *err)
{
    if (args->gpus.count > 0)
        return WG_OK;
    if (model->profile == NULL || model->profile->device[0] == '\0')
        return wg__fail(err, WG_EINVAL,
                        "--gpu is missing: on which GPU? As in --gpu "
                        "a100-sxm4-80gb");
    args->gpus.items[args->gpus.count++] = model->profile->device;
    return WG_OK;
}

static enum wg_code analyze(const struct args *args, struct run *run, size_t index,
                            struct wg_error *err)
{
    struct wg_wave_report *report = &run->report;
    const struct wg_gpu_spec *const gpu = &run->gpus[index].spec;
    enum wg_code code = wg__wave_gpu_open(&run->gpus[index], args->gpus.items[index], err);
    for (size_t i = 0; i < index && code == WG_OK; i++)
        if (strcmp(report->analyses[i].gpu->id, gpu->id) == 0)
            code = wg__fail(err, WG_EINVAL, "--gpu: '%s' is given twice", gpu->id);
    if (code == WG_OK)
        code = wg__kernel_model_new(&run->kernels[index], gpu, run->calibration, err);
    if (code != WG_OK)
        return code;
    struct wg_wave_analysis *analysis = &report->analyses[index];
    report->kernels[index] = run->kernels[index];
    report->count = index + 1;
    code = wg__wave_analyze(analysis, run->kernels[index], gpu, run->model.network, err);
    uint32_t first = 1, most = 1;
    const bool wants_batches = choose_batches(args, run->model.batch, &first, &most);
    if (code == WG_OK && args->batches != NULL &&
        (!wants_batches || analysis->total.unpredicted > 0))
        code = wg__fail(err, WG_EINVAL, "--batches: %s has no batch that could be changed",
                        run->model.name);
    if (code == WG_OK && wants_batches && analysis->total.unpredicted == 0)
        code = wg__wave_analyze_batches(analysis, run->kernels[index], run->model.batch, first,
                                        most, err);
    return code;
}

static enum wg_code write_results(const struct args *args, const struct wg_wave_report *report,
                                  struct wg_error *err)
{
    struct wg_buffer text;
    struct wg_output_file files[FILE_COUNT];
    list_files(args, files);
    enum wg_code code = wg__output_files_write(files, FILE_COUNT, report, err);
    if (code != WG_OK)
        return code;
    wg__buffer_init(&text);
    if (args->json)
        wg__wave_json(report, &text);
    else
        wg__wave_text(report, wg__wants_color(stdout), &text);
    code = wg__command_print(stdout, &text, err);
    wg__buffer_fini(&text);
    return code;
}

/* WG_ESTATE: the limits that were given are broken. */
static enum wg_code judge(const struct wg_wave_report *report, struct wg_error *err)
{
    struct wg_buffer text;
    enum wg_code code = WG_OK;
    wg__buffer_init(&text);
    if (wg__wave_waste_text(report, &text))
        code = wg__fail(err, WG_ESTATE, "%s", text.failed ? "too much is wasted" : text.data);
    wg__buffer_fini(&text);
    return code;
}

static void run_fini(struct run *run)
{
    for (size_t i = 0; i < WG_WAVE_GPUS_MAX; i++) {
        wg__wave_analysis_fini(&run->report.analyses[i]);
        wg__kernel_model_free(run->kernels[i]);
        wg__wave_gpu_close(&run->gpus[i]);
    }
    wg__wave_model_close(&run->model);
    wg__calibration_free(run->calibration);
    wg__buffer_fini(&run->command);
}

static int run_analyze(int argc, char *argv[])
{
    struct args args = {.layers = LAYERS_DEFAULT};
    struct run run = {0};
    struct wg_error err;
    int status = WG_EXIT_OK;
    wg__buffer_init(&run.command);
    wg__command_line(set.command, argc, argv, &run.command);
    run.report.command = run.command.failed ? NULL : run.command.data;
    const enum wg_code named = wg__wave_model_take(&set, &argc, &argv, &args.model, &err);
    if (!wg__command_begin(&set, argc, argv, &args, &status)) {
        run_fini(&run);
        return status;
    }
    run.report.model = &run.model;
    run.report.calibration = args.calibration;
    enum wg_code code = named;
    if (code == WG_OK)
        code = check_args(&args, &run.report, &err);
    if (code == WG_OK)
        code = wg__wave_calibration_open(&run.calibration, args.calibration, &err);
    if (code == WG_OK)
        code = wg__wave_model_open(&run.model, &args.model, &err);
    if (code == WG_OK)
        code = choose_gpu(&args, &run.model, &err);
    for (size_t i = 0; i < args.gpus.count && code == WG_OK; i++)
        code = analyze(&args, &run, i, &err);
    if (code == WG_OK)
        code = write_results(&args, &run.report, &err);
    if (code == WG_OK)
        code = judge(&run.report, &err);
    run_fini(&run);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&set, &err);
}

const struct wg_command wg__command_wave_analyze = {
    .name = "analyze",
    .summary = "Shows each layer's waves and what their tails cost",
    .run = run_analyze,
};
