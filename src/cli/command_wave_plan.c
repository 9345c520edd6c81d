/* SPDX-License-Identifier: MIT
 *
 * `wattgov wave plan`: widths at step ends for a whole network.
 *
 * All that was given is checked before anything is computed, and each file is written whole or not
 * at all.
 *
 * Threads: the main thread.
 */
#include <math.h>
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
#include "cli/wave_plan_report.h"
#include "cli/wave_widths.h"
#include "wave/layer_predict.h"

enum { FRONT_POINTS = 21, RANGE_TEXT = 64, FILE_COUNT = 3 };

/* The shares of parameters at which --pareto looks. */
static const double front_least = 0.6, front_step = 0.04;

static const char *const goals[] = {"latency", "parameters", "align", "grow", NULL};

struct args {
    struct wg_wave_model_args model;
    const char *gpu, *calibration;
    const char *goal;
    double keep, keep_flops; /* 0: not given */
    double limit_s;          /* 0: not given */
    const char *pruned, *importance, *range;
    unsigned align, candidates;
    uint64_t seed;
    bool json;
    const char *output, *pareto, *html;
};

static const struct wg_option options[] = {
    {.name = "gpu",
     WG_OPTION_STRING(struct args, gpu),
     .value = "GPU",
     .is_required = true,
     .help = "The GPU: an id of the table (a100-sxm4-80gb), a YAML file, or live."},
    WG_WAVE_MODEL_OPTIONS(struct args, model),
    {.name = "calibration",
     WG_OPTION_STRING(struct args, calibration),
     .value = "FILE",
     .fallback = "what is built in",
     .help = "Parameters that wattgov wave calibrate has written."},
    {.name = "goal",
     WG_OPTION_STRING(struct args, goal),
     .value = "GOAL",
     .choices = goals,
     .help = "latency: least time with what --keep says; parameters: most parameters within "
             "--limit; align: the widths of --pruned moved to step ends; grow: as many parameters "
             "as cost no time, no width smaller."},
    {.name = "keep",
     WG_OPTION_DOUBLE(struct args, keep),
     .value = "SHARE",
     .min = 0,
     .max = 100,
     .min_is_excluded = true,
     .fallback = "1, without --keep-flops",
     .help = "latency, align: keep at least this share of the present parameters."},
    {.name = "keep-flops",
     WG_OPTION_DOUBLE(struct args, keep_flops),
     .value = "SHARE",
     .min = 0,
     .max = 100,
     .min_is_excluded = true,
     .fallback = "none",
     .help = "The same of operations; with --keep both are kept."},
    {.name = "limit",
     WG_OPTION_DURATION(struct args, limit_s),
     .value = "TIME",
     .min = 1e-9,
     .max = 3600,
     .fallback = "the present time",
     .help = "parameters, grow: the time that the plan may take at most."},
    {.name = "pruned",
     WG_OPTION_STRING(struct args, pruned),
     .value = "FILE",
     .fallback = "none",
     .help = "Present widths, where they are not the model's: CSV (name,channels) or JSON, by "
             "names of layers, modules or widths."},
    {.name = "importance",
     WG_OPTION_STRING(struct args, importance),
     .value = "FILE",
     .fallback = "1 for all",
     .help = "How much a parameter of a layer counts wherever a goal counts parameters or "
             "operations: CSV (name,importance) or JSON, by names as in --pruned."},
    {.name = "range",
     WG_OPTION_STRING(struct args, range),
     .value = "LOW:HIGH",
     .fallback = "0.8:1.25",
     .help = "How far a width may move, as factors of its present size."},
    {.name = "align",
     WG_OPTION_UNSIGNED(struct args, align),
     .value = "N",
     .min = 1,
     .max = 4096,
     .help = "New widths are multiples of this."},
    {.name = "candidates",
     WG_OPTION_UNSIGNED(struct args, candidates),
     .value = "N",
     .min = 4,
     .max = 4096,
     .help = "At most so many sizes for each width: step ends where there are more."},
    {.name = "seed",
     WG_OPTION_SEED(struct args, seed),
     .value = "N",
     .help = "Of the search, for networks that are too large to plan as a whole."},
    {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Write JSON instead of tables."},
    {.name = "output",
     .letter = 'o',
     WG_OPTION_STRING(struct args, output),
     .value = "FILE",
     .fallback = "none",
     .help = "Write the plan as JSON, for wattgov.wave.apply and --pruned."},
    {.name = "pareto",
     WG_OPTION_STRING(struct args, pareto),
     .value = "FILE",
     .fallback = "none",
     .help = "Write the least time at 21 shares of the parameters from 0.6 to 1.4, as CSV."},
    {.name = "html",
     WG_OPTION_STRING(struct args, html),
     .value = "FILE",
     .fallback = "none",
     .help = "Write a page with the plan, and with --pareto the front."},
};

static const struct wg_option_set set = {
    .command = "wattgov wave plan",
    .word = "MODEL",
    .summary = "Chooses widths for a whole network at the ends of its layers' steps, under what "
               "ties them. MODEL is an ONNX file or a built-in network (resnet50).",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "examples:\n"
              "  wattgov wave plan resnet50 --gpu a100-sxm4-80gb --batch 32 --keep 0.9\n"
              "  wattgov wave plan model.onnx --gpu orin-agx-64gb --goal grow -o plan.json\n"
              "  wattgov wave plan vgg16 --gpu p6000 --precision fp32 --goal align --pruned "
              "pruned.csv\n",
};

/* -- What was asked for ----------------------------------------------------------------------- */

static enum wg_code parse_range(const char *text, struct wg_plan_opts *opts, struct wg_error *err)
{
    static const char accepted[] = "two factors, as 0.8:1.25, the first above 0 and not above the "
                                   "second, which is at most 100";
    char low[RANGE_TEXT];
    const char *colon = text == NULL ? NULL : strchr(text, ':');
    if (text == NULL)
        return WG_OK;
    if (colon == NULL || (size_t)(colon - text) >= sizeof low)
        return wg__option_reject(err, "range", text, accepted);
    memcpy(low, text, (size_t)(colon - text));
    low[colon - text] = '\0';
    if (!wg__parse_double(low, &opts->least) || !wg__parse_double(colon + 1, &opts->most) ||
        !(opts->least > 0 && opts->least <= opts->most && opts->most <= 100))
        return wg__option_reject(err, "range", text, accepted);
    return WG_OK;
}

static enum wg_code check_goal(const struct args *args, struct wg_plan_opts *opts,
                               struct wg_error *err)
{
    while (strcmp(goals[opts->goal], args->goal) != 0)
        opts->goal++;
    const bool keeps = opts->goal == WG_PLAN_LATENCY || opts->goal == WG_PLAN_ALIGN;
    if (!keeps && (args->keep > 0 || args->keep_flops > 0))
        return wg__fail(err, WG_EINVAL, "--keep: --goal %s keeps within --limit instead",
                        args->goal);
    if (keeps && args->limit_s > 0)
        return wg__fail(err, WG_EINVAL,
                        "--limit: --goal %s seeks the least time; --goal parameters keeps a limit",
                        args->goal);
    if (opts->goal == WG_PLAN_ALIGN && args->pruned == NULL)
        return wg__fail(err, WG_EINVAL, "--goal align: of which widths? Give --pruned FILE");
    opts->kept = args->keep > 0 || args->keep_flops > 0 ? args->keep : 1;
    opts->flops_kept = args->keep_flops;
    opts->limit_s = args->limit_s;
    opts->alignment = args->align;
    opts->candidates = args->candidates;
    opts->seed = args->seed;
    return parse_range(args->range, opts, err);
}

static void write_plan(const void *report, struct wg_buffer *out)
{
    wg__wave_plan_json(report, out);
}

static void write_front(const void *report, struct wg_buffer *out)
{
    wg__wave_front_csv(report, out);
}

static void write_page(const void *report, struct wg_buffer *out)
{
    wg__wave_plan_page(report, out);
}

static void list_files(const struct args *args, struct wg_output_file files[static FILE_COUNT])
{
    files[0] = (struct wg_output_file){"output", args->output, write_plan};
    files[1] = (struct wg_output_file){"pareto", args->pareto, write_front};
    files[2] = (struct wg_output_file){"html", args->html, write_page};
}

/* -- Planning --------------------------------------------------------------------------------- */

/* All that a run opens, closed in one place. */
struct run {
    struct wg_wave_gpu gpu;
    struct wg_calibration *calibration;
    struct wg_kernel_model *kernels;
    struct wg_wave_model model;
    struct wg_plan_opts opts;
    uint32_t *before;
    double *importance; /* NULL: not given */
    struct wg_wave_front_point front[FRONT_POINTS];
    struct wg_wave_plan_report report;
    struct wg_buffer command;
};

static double layer_time(const void *context, const struct wg_layer *layer)
{
    struct wg_prediction prediction;
    if (wg__layer_predict(context, layer, &prediction, NULL) != WG_OK)
        return NAN;
    return prediction.time_s;
}

static enum wg_code open_importance(const struct args *args, struct run *run, struct wg_error *err)
{
    const struct wg_network *network = run->model.network;
    run->importance = wg__alloc_zeroed(network->width_count, sizeof *run->importance);
    if (run->importance == NULL)
        return wg__fail(err, WG_ENOMEM, "no memory for %zu widths", network->width_count);
    return wg__wave_importance_read(network, args->importance, run->importance, err);
}

static enum wg_code open_all(const struct args *args, struct run *run, struct wg_error *err)
{
    enum wg_code code = wg__wave_gpu_open(&run->gpu, args->gpu, err);
    if (code == WG_OK)
        code = wg__wave_calibration_open(&run->calibration, args->calibration, err);
    if (code == WG_OK)
        code = wg__kernel_model_new(&run->kernels, &run->gpu.spec, run->calibration, err);
    if (code == WG_OK)
        code = wg__wave_model_open(&run->model, &args->model, err);
    if (code != WG_OK)
        return code;
    const struct wg_network *network = run->model.network;
    size_t free_widths = 0;
    for (size_t w = 0; w < network->width_count; w++)
        free_widths += !network->widths[w].is_fixed;
    if (free_widths == 0)
        return wg__fail(err, WG_EUNSUPPORTED, "%s: no width can be chosen; %s", run->model.name,
                        run->model.graph != NULL
                            ? "all are tied to its inputs, its outputs or what is not known"
                            : "a profile does not tell which layers share one, an ONNX file does");
    run->before = wg__alloc_zeroed(network->width_count, sizeof *run->before);
    if (run->before == NULL)
        return wg__fail(err, WG_ENOMEM, "no memory for %zu widths", network->width_count);
    for (size_t w = 0; w < network->width_count; w++)
        run->before[w] = network->widths[w].channels;
    if (args->pruned != NULL)
        code = wg__wave_widths_read(network, args->pruned, run->before, err);
    return code == WG_OK && args->importance != NULL ? open_importance(args, run, err) : code;
}

static enum wg_code plan_front(struct run *run, struct wg_error *err)
{
    struct wg_plan_opts opts = run->opts;
    opts.goal = opts.goal == WG_PLAN_ALIGN ? WG_PLAN_ALIGN : WG_PLAN_LATENCY;
    run->report.front = run->front;
    for (unsigned i = 0; i < FRONT_POINTS; i++) {
        struct wg_plan plan;
        const double share = front_least + front_step * i;
        *(run->opts.kept > 0 ? &opts.kept : &opts.flops_kept) = share;
        const enum wg_code code =
            wg__plan(run->model.network, layer_time, run->kernels, &opts, &plan, err);
        if (code == WG_ESTATE)
            continue; /* more than the range of widths allows */
        if (code != WG_OK)
            return code;
        run->front[run->report.front_count++] =
            (struct wg_wave_front_point){.kept = share,
                                         .time_s = plan.time_s,
                                         .parameters = plan.parameters,
                                         .flops = plan.flops,
                                         .is_optimal = plan.is_optimal,
                                         .gap = plan.gap};
        wg__plan_fini(&plan);
    }
    return WG_OK;
}

static enum wg_code make_plan(const struct args *args, struct run *run, struct wg_error *err)
{
    enum wg_code code = open_all(args, run, err);
    if (code != WG_OK)
        return code;
    run->opts.pruned = run->before;
    run->opts.importance = run->importance;
    run->report =
        (struct wg_wave_plan_report){.model = &run->model,
                                     .gpu = &run->gpu.spec,
                                     .kernels = run->kernels,
                                     .opts = &run->opts,
                                     .goal = args->goal,
                                     .before = run->before,
                                     .command = run->command.failed ? NULL : run->command.data};
    code =
        wg__plan(run->model.network, layer_time, run->kernels, &run->opts, &run->report.plan, err);
    if (code == WG_OK && args->pareto != NULL)
        code = plan_front(run, err);
    return code;
}

/* -- Results ---------------------------------------------------------------------------------- */

static enum wg_code print_report(const struct args *args, const struct wg_wave_plan_report *report,
                                 struct wg_error *err)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    if (args->json)
        wg__wave_plan_json(report, &text);
    else
        wg__wave_plan_text(report, wg__wants_color(stdout), &text);
    const enum wg_code code = wg__command_print(stdout, &text, err);
    wg__buffer_fini(&text);
    return code;
}

static void run_fini(struct run *run)
{
    wg__plan_fini(&run->report.plan);
    wg__free(run->before);
    wg__free(run->importance);
    wg__kernel_model_free(run->kernels);
    wg__calibration_free(run->calibration);
    wg__wave_model_close(&run->model);
    wg__wave_gpu_close(&run->gpu);
    wg__buffer_fini(&run->command);
}

static int run_plan(int argc, char *argv[])
{
    struct args args = {.goal = "latency", .align = 8, .candidates = 24};
    struct run run = {.before = NULL};
    struct wg_error err;
    int status = WG_EXIT_OK;
    wg__buffer_init(&run.command);
    wg__command_line(set.command, argc, argv, &run.command);
    const enum wg_code named = wg__wave_model_take(&set, &argc, &argv, &args.model, &err);
    if (!wg__command_begin(&set, argc, argv, &args, &status)) {
        run_fini(&run);
        return status;
    }
    struct wg_output_file files[FILE_COUNT];
    enum wg_code code = named;
    list_files(&args, files);
    if (code == WG_OK)
        code = check_goal(&args, &run.opts, &err);
    if (code == WG_OK)
        code = wg__output_files_check(files, FILE_COUNT, &err);
    if (code == WG_OK)
        code = wg__output_files_spare(files, FILE_COUNT, args.model.word, &err);
    if (code == WG_OK)
        code = make_plan(&args, &run, &err);
    if (code == WG_OK)
        code = wg__output_files_write(files, FILE_COUNT, &run.report, &err);
    if (code == WG_OK)
        code = print_report(&args, &run.report, &err);
    run_fini(&run);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&set, &err);
}

const struct wg_command wg__command_wave_plan = {
    .name = "plan",
    .summary = "Chooses widths for a whole network at the ends of its layers' steps",
    .run = run_plan,
};
