/* SPDX-License-Identifier: MIT
 *
 * `wattgov wave sweep`: one layer's time against one of its sizes.
 *
 * The layer is one of a MODEL, or stands alone as --gemm or --conv.
 *
 * Threads: the main thread.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/number.h"
#include "cli/command_wave.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/table.h"
#include "cli/wave_calibration.h"
#include "cli/wave_gpu.h"
#include "cli/wave_model.h"
#include "cli/wave_sweep.h"

enum { SIZE_MAX_GIVEN = 1 << 30, SIZES_MAX = 10, FILE_COUNT = 2 };

struct args {
    struct wg_wave_model_args model;
    const char *gpu;
    const char *gemm, *conv, *layer;
    const char *axis;
    unsigned from, to, step;
    const char *calibration;
    const char *output, *html;
    bool json;
};

static const char *const axes[] = {"filters", "channels", "batch", "resolution", NULL};

static const struct wg_option options[] = {
    {.name = "gpu",
     WG_OPTION_STRING(struct args, gpu),
     .value = "GPU",
     .is_required = true,
     .help = "The GPU: an id of the table (a100-sxm4-80gb), a YAML file, or live."},
    {.name = "layer",
     WG_OPTION_STRING(struct args, layer),
     .value = "NAME",
     .fallback = "none; MODEL needs it",
     .help = "Which of MODEL's layers, by the name that wattgov wave analyze shows."},
    {.name = "gemm",
     WG_OPTION_STRING(struct args, gemm),
     .value = "M,N,K[,PRODUCTS]",
     .fallback = "none",
     .help = "Instead of MODEL: a product of an M x K and a K x N matrix, so many times."},
    {.name = "conv",
     WG_OPTION_STRING(struct args, conv),
     .value = "N,C,H,W,F,R,S[,STRIDE[,PAD[,GROUPS]]]",
     .fallback = "none",
     .help = "Instead of MODEL: a convolution of N images of C channels and H x W pixels with F "
             "filters of R x S. PAD is R/2 where it is left out."},
    {.name = "axis",
     WG_OPTION_STRING(struct args, axis),
     .value = "SIZE",
     .choices = axes,
     .help = "What is changed: filters (a product's N), channels (its K), batch (its M), or "
             "resolution."},
    {.name = "from",
     WG_OPTION_UNSIGNED(struct args, from),
     .value = "N",
     .min = 1,
     .max = SIZE_MAX_GIVEN,
     .fallback = "the step",
     .help = "The smallest size."},
    {.name = "to",
     WG_OPTION_UNSIGNED(struct args, to),
     .value = "N",
     .min = 1,
     .max = SIZE_MAX_GIVEN,
     .fallback = "twice the present size",
     .help = "The largest size."},
    {.name = "step",
     WG_OPTION_UNSIGNED(struct args, step),
     .value = "N",
     .min = 1,
     .max = SIZE_MAX_GIVEN,
     .fallback = "the least that gives at most 4096 sizes",
     .help = "From one size to the next."},
    WG_WAVE_MODEL_OPTIONS(struct args, model),
    {.name = "calibration",
     WG_OPTION_STRING(struct args, calibration),
     .value = "FILE",
     .fallback = "what is built in",
     .help = "Parameters that wattgov wave calibrate has written."},
    {.name = "output",
     .letter = 'o',
     WG_OPTION_STRING(struct args, output),
     .value = "FILE",
     .fallback = "none",
     .help = "Write a row per size, as CSV."},
    {.name = "html",
     WG_OPTION_STRING(struct args, html),
     .value = "FILE",
     .fallback = "none",
     .help = "Write a page with the staircase."},
    {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Write JSON instead of text."},
};

static const struct wg_option_set set = {
    .command = "wattgov wave sweep",
    .word = "[MODEL]",
    .summary = "Shows a layer's staircase: its time against its filters, channels, batch or "
               "resolution, where the steps are, and what is free. MODEL is what wattgov wave "
               "analyze takes; --gemm or --conv does without.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "examples:\n"
              "  wattgov wave sweep --gemm 512,4096,4096 --gpu a100-sxm4-80gb --axis batch\n"
              "  wattgov wave sweep --conv 32,256,14,14,256,3,3 --gpu l4 --html stairs.html\n"
              "  wattgov wave sweep resnet50 --layer layer3.1.conv2 --gpu a100-sxm4-80gb --batch "
              "32 -o stairs.csv\n",
};

struct run {
    struct wg_buffer command;
    struct wg_wave_gpu gpu;
    struct wg_calibration *calibration;
    struct wg_kernel_model *kernels;
    struct wg_wave_model model;
    struct wg_layer alone;
    struct wg_wave_sweep sweep;
};

/* Numbers between commas: `least` to `most` of them, each from 1 (the pad from 0). */
static enum wg_code parse_sizes(const char *option, const char *text, const char *form,
                                size_t least, size_t most, uint64_t sizes[static SIZES_MAX],
                                size_t *count_out, struct wg_error *err)
{
    char part[32];
    size_t count = 0;
    for (const char *at = text;; count++) {
        const size_t length = strcspn(at, ",");
        uint64_t value = 0;
        if (count == most || length == 0 || length >= sizeof part)
            return wg__option_reject(err, option, text, form);
        memcpy(part, at, length);
        part[length] = '\0';
        const bool may_be_zero = count == 8;
        if (!wg__parse_uint64(part, &value) || value > SIZE_MAX_GIVEN ||
            (value == 0 && !may_be_zero))
            return wg__option_reject(err, option, text, form);
        sizes[count] = value;
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    *count_out = count + 1;
    return count + 1 < least ? wg__option_reject(err, option, text, form) : WG_OK;
}

static enum wg_code read_gemm(const char *text, enum wg_dtype dtype, struct wg_layer *out,
                              struct wg_error *err)
{
    uint64_t sizes[SIZES_MAX] = {0};
    size_t count = 0;
    const enum wg_code code = parse_sizes("gemm", text, "M,N,K or M,N,K,PRODUCTS of sizes from 1",
                                          3, 4, sizes, &count, err);
    if (code != WG_OK)
        return code;
    *out = (struct wg_layer){.name = text, .op = "Gemm", .kind = WG_LAYER_GEMM};
    out->gemm = (struct wg_gemm){.dtype = dtype,
                                 .batch = count > 3 ? sizes[3] : 1,
                                 .m = sizes[0],
                                 .n = sizes[1],
                                 .k = sizes[2]};
    return WG_OK;
}

static enum wg_code read_conv(const char *text, enum wg_dtype dtype, struct wg_layer *out,
                              struct wg_error *err)
{
    uint64_t sizes[SIZES_MAX] = {0}, p, q;
    size_t count = 0;
    const enum wg_code code =
        parse_sizes("conv", text, "N,C,H,W,F,R,S[,STRIDE[,PAD[,GROUPS]]] of sizes from 1", 7,
                    SIZES_MAX, sizes, &count, err);
    if (code != WG_OK)
        return code;
    const uint64_t stride = count > 7 ? sizes[7] : 1;
    const uint64_t pad_h = count > 8 ? sizes[8] : sizes[5] / 2;
    const uint64_t pad_w = count > 8 ? sizes[8] : sizes[6] / 2;
    *out = (struct wg_layer){.name = text, .op = "Conv", .kind = WG_LAYER_CONV};
    out->conv = (struct wg_conv){.dtype = dtype,
                                 .n = sizes[0],
                                 .c = sizes[1],
                                 .h = sizes[2],
                                 .w = sizes[3],
                                 .filters = sizes[4],
                                 .r = sizes[5],
                                 .s = sizes[6],
                                 .stride_h = stride,
                                 .stride_w = stride,
                                 .pad_top = pad_h,
                                 .pad_left = pad_w,
                                 .pad_bottom = pad_h,
                                 .pad_right = pad_w,
                                 .dilation_h = 1,
                                 .dilation_w = 1,
                                 .groups = count > 9 ? sizes[9] : 1};
    return wg__conv_output(&out->conv, &p, &q, err);
}

/* The layer that --gemm or --conv describes, and how many samples its sizes are for. */
static enum wg_code open_alone(const struct args *args, struct run *run, uint64_t *samples_out,
                               struct wg_error *err)
{
    enum wg_dtype dtype = WG_DTYPE_FP16;
    enum wg_code code = WG_OK;
    if (args->model.precision != NULL)
        code = wg__dtype_parse(args->model.precision, &dtype, err);
    if (code == WG_OK && args->gemm != NULL)
        code = read_gemm(args->gemm, dtype, &run->alone, err);
    else if (code == WG_OK)
        code = read_conv(args->conv, dtype, &run->alone, err);
    if (code == WG_OK)
        *samples_out = args->gemm != NULL ? run->alone.gemm.m : run->alone.conv.n;
    return code;
}

static enum wg_code find_layer(const struct wg_network *network, const char *name,
                               const struct wg_layer **out, struct wg_error *err)
{
    if (name == NULL)
        return wg__fail(err, WG_EINVAL,
                        "--layer is missing: which of %zu layers? wattgov wave analyze names them",
                        network->layer_count);
    for (size_t i = 0; i < network->layer_count; i++)
        if (strcmp(network->layers[i].name, name) == 0) {
            *out = &network->layers[i];
            return WG_OK;
        }
    const char **names = wg__alloc_zeroed(network->layer_count + 1, sizeof *names);
    if (names == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    for (size_t i = 0; i < network->layer_count; i++)
        names[i] = network->layers[i].name;
    const char *nearest = wg__nearest_word(name, names, network->layer_count);
    wg__free(names);
    return wg__fail(err, WG_EINVAL, "--layer: '%.60s' is none of %s's %zu layers%s%.60s%s", name,
                    network->name, network->layer_count, nearest != NULL ? " (nearest: " : "",
                    nearest != NULL ? nearest : "", nearest != NULL ? ")" : "");
}

static void write_csv(const void *report, struct wg_buffer *out)
{
    wg__wave_sweep_csv(report, out);
}

static void write_page(const void *report, struct wg_buffer *out)
{
    wg__wave_sweep_page(report, out);
}

static void list_files(const struct args *args, struct wg_output_file files[static FILE_COUNT])
{
    files[0] = (struct wg_output_file){"output", args->output, write_csv};
    files[1] = (struct wg_output_file){"html", args->html, write_page};
}

static enum wg_code check_args(const struct args *args, enum wg_code word_code,
                               struct wg_error *err)
{
    const bool is_alone = args->gemm != NULL || args->conv != NULL;
    const bool has_model = args->model.word != NULL;
    if (args->gemm != NULL && args->conv != NULL)
        return wg__fail(err, WG_EINVAL, "--gemm and --conv: expected one of them");
    if (is_alone && has_model)
        return wg__fail(err, WG_EINVAL, "'%.60s' and --%s: expected one of them", args->model.word,
                        args->gemm != NULL ? "gemm" : "conv");
    if (is_alone && args->layer != NULL)
        return wg__fail(err, WG_EINVAL, "--layer is of a MODEL, not of --gemm or --conv");
    if (is_alone && (args->model.batch > 0 || args->model.dims.count > 0))
        return wg__fail(err, WG_EINVAL,
                        "--batch and --set-dim are of a MODEL; --gemm and --conv say all sizes");
    if (!is_alone && word_code != WG_OK)
        return wg__fail(err, WG_EINVAL, "expected MODEL, --gemm or --conv");
    struct wg_output_file files[FILE_COUNT];
    list_files(args, files);
    const enum wg_code code = wg__output_files_check(files, FILE_COUNT, err);
    return code == WG_OK ? wg__output_files_spare(files, FILE_COUNT, args->model.word, err) : code;
}

static enum wg_code sweep(const struct args *args, struct run *run, struct wg_error *err)
{
    struct wg_wave_sweep_opts opts = {.from = args->from, .to = args->to, .step = args->step};
    const struct wg_layer *layer = &run->alone;
    while (strcmp(axes[opts.axis], args->axis) != 0)
        opts.axis++;
    enum wg_code code;
    if (args->model.word == NULL) {
        code = open_alone(args, run, &opts.samples, err);
    } else {
        code = wg__wave_model_open(&run->model, &args->model, err);
        if (code == WG_OK)
            code = find_layer(run->model.network, args->layer, &layer, err);
        opts.samples = run->model.batch > 0 ? run->model.batch : 1;
        run->sweep.model = run->model.name;
    }
    if (code == WG_OK)
        code = wg__wave_gpu_open(&run->gpu, args->gpu, err);
    if (code == WG_OK)
        code = wg__wave_calibration_open(&run->calibration, args->calibration, err);
    if (code == WG_OK)
        code = wg__kernel_model_new(&run->kernels, &run->gpu.spec, run->calibration, err);
    run->sweep.gpu = &run->gpu.spec;
    return code == WG_OK ? wg__wave_sweep(&run->sweep, run->kernels, layer, &opts, err) : code;
}

static enum wg_code write_results(const struct args *args, const struct wg_wave_sweep *of,
                                  struct wg_error *err)
{
    struct wg_buffer text;
    struct wg_output_file files[FILE_COUNT];
    list_files(args, files);
    enum wg_code code = wg__output_files_write(files, FILE_COUNT, of, err);
    if (code != WG_OK)
        return code;
    wg__buffer_init(&text);
    if (args->json)
        wg__wave_sweep_json(of, &text);
    else
        wg__wave_sweep_text(of, wg__wants_color(stdout), &text);
    code = wg__command_print(stdout, &text, err);
    wg__buffer_fini(&text);
    return code;
}

static void run_fini(struct run *run)
{
    wg__wave_sweep_fini(&run->sweep);
    wg__kernel_model_free(run->kernels);
    wg__calibration_free(run->calibration);
    wg__wave_gpu_close(&run->gpu);
    wg__wave_model_close(&run->model);
    wg__buffer_fini(&run->command);
}

static int run_sweep(int argc, char *argv[])
{
    struct args args = {.axis = "filters"};
    struct run run = {0};
    struct wg_error err;
    int status = WG_EXIT_OK;
    wg__buffer_init(&run.command);
    wg__command_line(set.command, argc, argv, &run.command);
    run.sweep.command = run.command.failed ? NULL : run.command.data;
    const enum wg_code word_code = wg__wave_model_take(&set, &argc, &argv, &args.model, &err);
    if (!wg__command_begin(&set, argc, argv, &args, &status)) {
        run_fini(&run);
        return status;
    }
    enum wg_code code = check_args(&args, word_code, &err);
    if (code == WG_OK)
        code = sweep(&args, &run, &err);
    if (code == WG_OK)
        code = write_results(&args, &run.sweep, &err);
    run_fini(&run);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&set, &err);
}

const struct wg_command wg__command_wave_sweep = {
    .name = "sweep",
    .summary = "Shows a layer's time against its filters, channels, batch or resolution",
    .run = run_sweep,
};
