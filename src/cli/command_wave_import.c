/* SPDX-License-Identifier: MIT
 *
 * `wattgov wave import`: what other tools have recorded, shown, and as measurements.
 *
 * Each file is opened, shown and closed before the next one, so that memory holds one.
 *
 * Threads: the main thread.
 */
#include <string.h>

#include "base/buffer.h"
#include "cli/command_wave.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/table.h"
#include "cli/wave_gpu.h"
#include "cli/wave_import.h"

enum { FILES_MAX = 64, TOP_MAX = 1000000 };

struct args {
    struct wg_wave_model_args model;
    const char *gpu;
    unsigned top;
    bool shapes, json;
    const char *output;
};

static const struct wg_option options[] = {
    {.name = "gpu",
     WG_OPTION_STRING(struct args, gpu),
     .value = "GPU",
     .fallback = "the one that a profile names",
     .help = "The GPU that a profile was recorded on: an id of the table (a100-sxm4-80gb), a YAML "
             "file, or live."},
    WG_WAVE_MODEL_OPTIONS(struct args, model),
    {.name = "top",
     WG_OPTION_UNSIGNED(struct args, top),
     .value = "N",
     .max = TOP_MAX,
     .fallback = "all",
     .help = "Show only the N layers of a profile that take the most time."},
    {.name = "shapes",
     WG_OPTION_FLAG(struct args, shapes),
     .help = "Show a graph's tensors and their shapes instead of its layers."},
    {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Write JSON instead of tables."},
    {.name = "output",
     .letter = 'o',
     WG_OPTION_STRING(struct args, output),
     .value = "FILE",
     .fallback = "none",
     .help = "Write the layers of profiles that were measured and whose product is known as CSV, "
             "for wattgov wave calibrate and evaluate."},
};

static const struct wg_option_set set = {
    .command = "wattgov wave import",
    .word = "FILE...",
    .summary =
        "Reads what other tools know about a network's layers and shows it: profiles of TensorRT "
        "(--exportLayerInfo), ncu --csv, nsys stats -r cuda_gpu_trace and PyTorch's profiler as "
        "kernels, grids and times; ONNX files and built-in networks as matrix products; CSV of own "
        "measurements by GPU, operator and type.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "examples:\n"
              "  wattgov wave import resnet.graph.json\n"
              "  wattgov wave import trace.json.gz --top 20 -o measured.csv\n"
              "  wattgov wave import model.onnx --shapes --set-dim batch=8\n",
};

/* What a run gathers. */
struct run {
    struct wg_wave_gpu gpu;
    struct wg_buffer text, csv;
    struct wg_json json;
    struct wg_wave_import_written written; /* into csv */
};

/* The GPU that a profile names, where the table knows it. */
static const struct wg_gpu_spec *named_gpu(const struct run *run, const struct wg_wave_model *model)
{
    const struct wg_gpu_spec *found = NULL;
    if (model->profile == NULL || *model->profile->device == '\0' ||
        wg__wave_gpu_of_device(run->gpu.table, model->profile->device, &found, NULL) != WG_OK)
        return NULL;
    /* A part of a GPU, or another one of the same name, is not the table's. */
    return model->profile->sms == 0 || model->profile->sms == found->sms ? found : NULL;
}

static enum wg_code show_layers(const struct args *args, struct run *run,
                                const struct wg_wave_model *model, struct wg_error *err)
{
    struct wg_wave_import import;
    const bool is_given = args->gpu != NULL;
    const struct wg_gpu_spec *gpu = is_given ? &run->gpu.spec : named_gpu(run, model);
    const enum wg_code code = wg__wave_import(&import, model, gpu, is_given, err);
    if (code != WG_OK)
        return code;
    if (args->json)
        wg__wave_import_json(&import, &run->json);
    else
        wg__wave_import_text(&import, args->top, wg__wants_color(stdout), &run->text);
    wg__wave_import_csv(&import, &run->csv, &run->written);
    wg__wave_import_fini(&import);
    return WG_OK;
}

static enum wg_code show_shapes(const struct args *args, struct run *run,
                                const struct wg_wave_model *model, struct wg_error *err)
{
    if (model->graph == NULL)
        return wg__fail(err, WG_EINVAL, "--shapes: %s is a profile and has no tensors",
                        model->name);
    if (args->json) {
        wg__json_key(&run->json, "tensors");
        wg__wave_shapes_json(model, &run->json);
    } else {
        wg__wave_shapes_text(model, wg__wants_color(stdout), &run->text);
    }
    return WG_OK;
}

static enum wg_code show_measurements(const struct args *args, struct run *run, const char *file,
                                      struct wg_error *err)
{
    struct wg_wave_import_measured measured;
    struct wg_measurements_opts opts = {.has_dtype = args->model.precision != NULL,
                                        .dtype_option = "--precision"};
    enum wg_code code = WG_OK;
    if (opts.has_dtype)
        code = wg__dtype_parse(args->model.precision, &opts.dtype, err);
    if (code == WG_OK)
        code = wg__wave_import_measured(&measured, file, &opts, err);
    if (code != WG_OK)
        return code;
    if (args->json)
        wg__wave_import_measured_json(&measured, &run->json);
    else
        wg__wave_import_measured_text(&measured, file, wg__wants_color(stdout), &run->text);
    wg__wave_import_measured_fini(&measured);
    return WG_OK;
}

static enum wg_code show_model(const struct args *args, struct run *run, const char *file,
                               struct wg_error *err)
{
    struct wg_wave_model_args named = args->model;
    struct wg_wave_model model = {0};
    named.word = file;
    named.is_graph_only = args->shapes;
    enum wg_code code = wg__wave_model_open(&model, &named, err);
    if (code == WG_OK && args->json)
        wg__json_member_string(&run->json, "kind", model.kind);
    if (code == WG_OK)
        code = args->shapes ? show_shapes(args, run, &model, err)
                            : show_layers(args, run, &model, err);
    wg__wave_model_close(&model);
    return code;
}

static enum wg_code show_file(const struct args *args, struct run *run, const char *file,
                              bool is_first, struct wg_error *err)
{
    if (args->json) {
        wg__json_object(&run->json);
        wg__json_member_string(&run->json, "file", file);
    } else if (!is_first) {
        wg__buffer_puts(&run->text, "\n");
    }
    const enum wg_code code = !args->shapes && wg__measurements_are(file)
                                  ? show_measurements(args, run, file, err)
                                  : show_model(args, run, file, err);
    if (code == WG_OK && args->json)
        wg__json_close(&run->json);
    return code;
}

static void tell_written(const struct args *args, struct run *run)
{
    const struct wg_wave_import_written *written = &run->written;
    wg__buffer_printf(&run->text, "\nWritten to %s: %zu measurements of %zu layers", args->output,
                      written->rows, written->layers);
    if (written->left_out > 0)
        wg__buffer_printf(&run->text, "; %zu measured ones multiply nothing that is known",
                          written->left_out);
    wg__buffer_puts(&run->text, "\n");
}

static void tell_written_json(const struct args *args, struct run *run)
{
    wg__json_key(&run->json, "output");
    if (args->output == NULL) {
        wg__json_null(&run->json);
        return;
    }
    wg__json_object(&run->json);
    wg__json_member_string(&run->json, "file", args->output);
    wg__json_member_uint(&run->json, "rows", run->written.rows);
    wg__json_member_uint(&run->json, "layers", run->written.layers);
    wg__json_member_uint(&run->json, "left_out", run->written.left_out);
    wg__json_close(&run->json);
}

static enum wg_code show_files(const struct args *args, struct run *run, const char *const *files,
                               size_t count, struct wg_error *err)
{
    enum wg_code code = WG_OK;
    if (args->gpu != NULL)
        code = wg__wave_gpu_open(&run->gpu, args->gpu, err);
    else
        code = wg__gpu_table_open_built_in(&run->gpu.table, err);
    if (code != WG_OK)
        return code;
    if (args->json) {
        wg__json_init(&run->json, &run->text);
        wg__json_object(&run->json);
        wg__json_member_string(&run->json, "schema", "wattgov.wave.import/1");
        wg__json_key(&run->json, "files");
        wg__json_array(&run->json);
    }
    wg__wave_import_csv_header(&run->csv);
    for (size_t i = 0; i < count && code == WG_OK; i++)
        code = show_file(args, run, files[i], i == 0, err);
    if (code == WG_OK && args->output != NULL && run->written.rows == 0)
        code = wg__fail(err, WG_EDATA,
                        "--output: no layer was measured and has a product that is known");
    if (code != WG_OK)
        return code;
    if (args->json) {
        wg__json_close(&run->json);
        tell_written_json(args, run);
        wg__json_close(&run->json);
        wg__buffer_puts(&run->text, "\n");
    } else if (args->output != NULL) {
        tell_written(args, run);
    }
    return WG_OK;
}

static enum wg_code write_results(const struct args *args, const struct run *run,
                                  struct wg_error *err)
{
    const enum wg_code code =
        args->output != NULL ? wg__write_output(args->output, false, &run->csv, err) : WG_OK;
    return code == WG_OK ? wg__command_print(stdout, &run->text, err) : code;
}

/* Takes the files out of argv. */
static enum wg_code take_files(int *argc, char ***argv, const char *files[FILES_MAX], size_t *count,
                               struct wg_error *err)
{
    wg__options_words_first(&set, *argc, *argv);
    for (const char *word = wg__command_word(argc, argv); word != NULL;
         word = wg__command_word(argc, argv)) {
        if (word[0] == '\0')
            return wg__fail(err, WG_EINVAL, "'' is no file, expected a path or a network's name");
        if (*count == FILES_MAX)
            return wg__fail(err, WG_EINVAL, "more than %d files", FILES_MAX);
        files[(*count)++] = word;
    }
    return *count != 0 ? WG_OK
                       : wg__fail(err, WG_EINVAL,
                                  "which file? Give profiles, ONNX files or names of networks, as "
                                  "in resnet50");
}

static int run_import(int argc, char *argv[])
{
    struct args args = {.json = false};
    struct run run = {.written = {0}};
    struct wg_error err;
    const char *files[FILES_MAX];
    size_t count = 0;
    int status = WG_EXIT_OK;
    const enum wg_code named = take_files(&argc, &argv, files, &count, &err);
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    wg__buffer_init(&run.text);
    wg__buffer_init(&run.csv);
    const struct wg_output_file file = {.option = "output", .path = args.output};
    enum wg_code code = named;
    if (code == WG_OK)
        code = wg__output_files_check(&file, 1, &err);
    for (size_t i = 0; i < count && code == WG_OK; i++)
        code = wg__output_files_spare(&file, 1, files[i], &err);
    if (code == WG_OK)
        code = show_files(&args, &run, files, count, &err);
    if (code == WG_OK)
        code = write_results(&args, &run, &err);
    wg__wave_gpu_close(&run.gpu);
    wg__buffer_fini(&run.text);
    wg__buffer_fini(&run.csv);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&set, &err);
}

const struct wg_command wg__command_wave_import = {
    .name = "import",
    .summary = "Shows what profiles and models say of their layers, and makes measurements of it",
    .run = run_import,
};
