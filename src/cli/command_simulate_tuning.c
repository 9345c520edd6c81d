/* SPDX-License-Identifier: MIT
 *
 * `wattgov simulate tuning`: policies of `wattgov tune` replayed on a measured grid.
 *
 * As with `simulate training`, all that was given is checked before anything is computed, so a run
 * that fails leaves nothing behind; each file is written whole or not at all.
 *
 * Threads: the main thread; the study starts its own.
 */
#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/progress_bar.h"
#include "cli/report_tuning_study.h"
#include "cli/table.h"
#include "cli/tuning_results.h"
#include "cli/tuning_study_args.h"
#include "live/tune_goal.h"
#include "simulate/workers.h"

struct args {
    const char *grid;
    struct wg_option_list where;
    struct wg_option_list knobs;
    const char *objective;
    struct wg_option_list limits;
    struct wg_option_list defaults;
    struct wg_option_list policies;
    unsigned seeds;
    uint64_t seed;
    double noise;
    double told_noise;
    double stop_share;
    double xi;
    unsigned max_trials;
    bool no_validate;
    struct wg_option_list failures;
    const char *trials_of;
    unsigned processes;
    bool json;
    const char *csv;
    const char *html;
};

static const struct wg_option options[] = {
    {.name = "grid",
     WG_OPTION_STRING(struct args, grid),
     .value = "FILE",
     .is_required = true,
     .help = "CSV file of measurements, plain or gzipped."},
    {.name = "where",
     WG_OPTION_LIST(struct args, where),
     .value = "COLUMN=VALUE",
     .fallback = "all rows",
     .help = "Take only rows that meet this; several with commas. Numbers are compared as numbers; "
             "`*`, `?` and `[...]` stand for what they do in a shell."},
    {.name = "knob",
     WG_OPTION_LIST(struct args, knobs),
     .value = "COLUMN:ROLE",
     .is_required = true,
     .help = "A column that is tuned, and what it is: gpu_clock, mem_clock, cpu_clock, cores, "
             "power_limit, batch, train_batch, replicas, delay, split or category."},
    {.name = "objective",
     WG_OPTION_STRING(struct args, objective),
     .value = "EXPR",
     .is_required = true,
     .help = "What is made least: an expression over columns, as in wall_power_w / "
             "inferences_per_s. It is an energy, unless it begins with time: or other:."},
    {.name = "limit",
     WG_OPTION_LIST(struct args, limits),
     .value = "EXPR<=BOUND",
     .fallback = "none",
     .help = "A limit, as 0.1, 100ms or 1.5x: 1.5 times the least value of EXPR in the grid. Also "
             ">=, where 0.9x is 0.9 times the greatest. A limit <= is on a time, >= on something "
             "else, unless EXPR "
             "begins with time:, energy: or other:."},
    {.name = "default",
     WG_OPTION_LIST(struct args, defaults),
     .value = "COLUMN=LEVEL",
     .fallback = "clocks, cores, replicas, power limits highest, all else least",
     .help = "The default configuration; several with commas."},
    {.name = "policy",
     WG_OPTION_LIST(struct args, policies),
     .value = "NAME",
     .fallback = "all",
     .help = "Policy to replay: random, polythrottle, cbo or wattgov."},
    {.name = "seeds",
     WG_OPTION_UNSIGNED(struct args, seeds),
     .value = "N",
     .min = 1,
     .max = WG_TUNING_SEEDS_MAX,
     .help = "Runs of each policy, each with its own luck."},
    {.name = "seed",
     WG_OPTION_SEED(struct args, seed),
     .value = "N",
     .help = "The first seed; the others follow it."},
    {.name = "noise",
     WG_OPTION_DOUBLE(struct args, noise),
     .value = "SHARE",
     .min = 0,
     .max = 1,
     .help = "Relative standard deviation of a measured figure."},
    {.name = "told-noise",
     WG_OPTION_DOUBLE(struct args, told_noise),
     .value = "SHARE",
     .min = 0,
     .max = 1,
     .fallback = "that of --noise",
     .help = "What the policies are told of it."},
    {.name = "stop-share",
     WG_OPTION_DOUBLE(struct args, stop_share),
     .value = "SHARE",
     .min = 0,
     .max = 0.999,
     .fallback = "the policy's own",
     .help = "A policy stops when it expects to save less than this share."},
    {.name = "xi",
     WG_OPTION_DOUBLE(struct args, xi),
     .value = "COST",
     .min = 0,
     .max = 1,
     .fallback = "0.1, as published",
     .help = "polythrottle: an improvement counts only beyond this share of the default's cost."},
    {.name = "max-trials",
     WG_OPTION_UNSIGNED(struct args, max_trials),
     .value = "N",
     .min = 1,
     .max = WG_TUNING_TRIALS_MAX,
     .fallback = "30, or all configurations if they are fewer",
     .help = "A run ends at the latest after so many trials."},
    {.name = "no-validate",
     WG_OPTION_FLAG(struct args, no_validate),
     .help = "Return without the final trial of what is returned."},
    {.name = "fail",
     WG_OPTION_LIST(struct args, failures),
     .value = "WHAT",
     .fallback = "nothing",
     .help = "What goes wrong: crash:SHARE, hang:SHARE, restart:SHARE (of the measurements), "
             "oom:SHARE (of the configurations, the most demanding ones), refuse:COLUMN=LEVEL (it "
             "cannot be set), cut:FACTOR (a window ends when a figure is so many times over its "
             "limit)."},
    {.name = "trials-of",
     WG_OPTION_STRING(struct args, trials_of),
     .value = "POLICY:SEED",
     .fallback = "none",
     .help = "Show one run trial by trial, with the reason of each (what `--explain` does for "
             "`wattgov tune`)."},
    {.name = "processes",
     WG_OPTION_UNSIGNED(struct args, processes),
     .value = "N",
     .min = 1,
     .max = WG_WORKERS_MAX,
     .fallback = "one per processor",
     .help = "Runs replayed at once, each in a process; the results do not depend on it."},
    {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Write JSON instead of tables."},
    {.name = "csv",
     WG_OPTION_STRING(struct args, csv),
     .value = "FILE",
     .fallback = "none",
     .help = "Write a row per run, as plain text; columns: see below."},
    {.name = "html",
     WG_OPTION_STRING(struct args, html),
     .value = "FILE",
     .fallback = "none",
     .help = "Write a report with plots."},
};

static const struct wg_option_set set = {
    .command = "wattgov simulate tuning",
    .summary = "Replays a measured grid of configurations and compares policies that look for the "
               "cheapest one under limits.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog =
        "columns of --csv:\n"
        "  policy, seed           the run\n"
        "  first_hit              trials until a configuration within 5 % of the optimum was\n"
        "                         measured; empty: none up to the cap\n"
        "  trials, failed_trials  until it ended by its own rule, and of these the failed ones\n"
        "  end                    why it ended\n"
        "  is_feasible, is_within_5pct, objective, figure_1 ..., COLUMN ...\n"
        "                         what it returned, by the grid's figures\n"
        "\n"
        "examples:\n"
        "  wattgov simulate tuning --grid data/tuning/flexibo_tx2/tx2_4knob_grid.csv.gz \\\n"
        "      --where model=xception,image_px=400 --knob n_cores:cores \\\n"
        "      --knob cpu_khz:cpu_clock --knob gpu_hz:gpu_clock --knob emc_hz:mem_clock \\\n"
        "      --objective ina_sum_mw --limit 'inference_time_s<=1.5x' --html report.html\n",
};

static enum wg_code check_outputs(const struct args *args, struct wg_error *err)
{
    const struct wg_output_file files[] = {{.option = "csv", .path = args->csv},
                                           {.option = "html", .path = args->html}};
    return wg__output_files_check(files, sizeof files / sizeof *files, err);
}

/* What the file must give. */
static enum wg_code make_grid_request(const struct args *args, struct wg_arena *arena,
                                      struct wg_tuning_grid_request *out, struct wg_error *err)
{
    *out = (struct wg_tuning_grid_request){.path = args->grid, .objective_kind = WG_TUNING_ENERGY};
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < args->where.count && code == WG_OK; i++)
        code = wg__parse_matches("where", args->where.items[i], arena, out->matches,
                                 &out->match_count, WG_TUNING_WHERE_MAX, err);
    for (size_t i = 0; i < args->defaults.count && code == WG_OK; i++)
        code = wg__parse_matches("default", args->defaults.items[i], arena, out->defaults,
                                 &out->default_count, WG_TUNING_KNOBS_MAX, err);
    if (args->knobs.count > WG_TUNING_KNOBS_MAX)
        return wg__fail(err, WG_EINVAL, "--knob: %zu knobs, at most %d are accepted",
                        args->knobs.count, WG_TUNING_KNOBS_MAX);
    for (size_t i = 0; i < args->knobs.count && code == WG_OK; i++)
        code = wg__parse_axis(args->knobs.items[i], arena, &out->axes[out->axis_count++], err);
    if (args->limits.count > WG_TUNING_LIMITS_MAX)
        return wg__fail(err, WG_EINVAL, "--limit: %zu limits, at most %d are accepted",
                        args->limits.count, WG_TUNING_LIMITS_MAX);
    for (size_t i = 0; i < args->limits.count && code == WG_OK; i++)
        code = wg__parse_bound(args->limits.items[i], arena, &out->limits[out->limit_count++], err);
    out->objective = wg__tune_kind_take(args->objective, &out->objective_kind);
    return code;
}

static enum wg_code parse_policies(const struct args *args, struct wg_tuning_study_request *out,
                                   struct wg_error *err)
{
    for (size_t i = 0; i < args->policies.count; i++) {
        enum wg_tuner_policy policy = WG_TUNER_RANDOM;
        if (strchr(args->policies.items[i], ',') != NULL)
            return wg__option_reject(err, "policy", args->policies.items[i],
                                     "one policy; for several repeat --policy");
        const enum wg_code code = wg__parse_policy("policy", args->policies.items[i], &policy, err);
        if (code != WG_OK)
            return code;
        for (size_t j = 0; j < out->policy_count; j++)
            if (out->policies[j] == policy)
                return wg__fail(err, WG_EINVAL, "--policy: '%s' is given twice",
                                args->policies.items[i]);
        out->policies[out->policy_count++] = policy;
    }
    if (args->policies.count == 0)
        for (size_t i = 0; i < WG_TUNER_POLICY_COUNT; i++)
            out->policies[out->policy_count++] = (enum wg_tuner_policy)i;
    return WG_OK;
}

/* All that was given, as far as it can be understood without the file. */
struct wishes {
    struct wg_arena arena;
    struct wg_tuning_grid_request grid;
    struct wg_tuning_failures failures;
    struct wg_tuning_study_request study;
    bool wants_trials;
    struct wg_tuning_setup trials; /* policy and seed */
};

static enum wg_code make_wishes(const struct args *args, struct wishes *out, struct wg_error *err)
{
    enum wg_code code = make_grid_request(args, &out->arena, &out->grid, err);
    for (size_t i = 0; i < args->failures.count && code == WG_OK; i++)
        code = wg__parse_failure(args->failures.items[i], &out->arena, &out->failures, err);
    out->study = (struct wg_tuning_study_request){
        .first_seed = args->seed,
        .seeds = args->seeds,
        .stop_share = args->stop_share,
        .xi = args->xi,
        .max_trials = args->max_trials,
        .validate = !args->no_validate,
        .processes = args->processes,
    };
    if (code == WG_OK)
        code = parse_policies(args, &out->study, err);
    out->wants_trials = args->trials_of != NULL;
    if (code == WG_OK && out->wants_trials)
        code = wg__parse_run("trials-of", args->trials_of, &out->trials.policy, &out->trials.seed,
                             err);
    return code == WG_OK ? check_outputs(args, err) : code;
}

static void start_progress(void *context, size_t runs)
{
    wg__progress_bar_init(context, "replaying", "runs", runs);
}

static void advance_progress(void *context)
{
    wg__progress_bar_advance(context, 1);
}

static enum wg_code write_results(const struct args *args, const struct wg_tuning_study *study,
                                  const struct wg_tuning_study_request *request,
                                  const struct wg_tuning_trials *trials, const char *command,
                                  struct wg_error *err)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    enum wg_code code = WG_OK;
    if (args->csv != NULL) {
        wg__tuning_csv(study, &text);
        code = wg__write_output(args->csv, false, &text, err);
        wg__buffer_fini(&text);
    }
    if (args->html != NULL && code == WG_OK) {
        wg__report_tuning_study(study, request, trials, command, &text);
        code = wg__write_output(args->html, false, &text, err);
        wg__buffer_fini(&text);
    }
    if (code == WG_OK) {
        if (args->json)
            wg__tuning_json(study, request, trials, &text);
        else
            wg__tuning_text(study, request, trials, wg__wants_color(stdout), &text);
        code = wg__command_print(stdout, &text, err);
        wg__buffer_fini(&text);
    }
    return code;
}

/* The grid is open and judged: computes and writes. */
static enum wg_code run_study(const struct args *args, struct wishes *wishes,
                              const struct wg_tuning_scene *scene, const char *command,
                              struct wg_error *err)
{
    struct wg_progress_bar progress = {0};
    struct wg_tuning_study_request *request = &wishes->study;
    struct wg_tuning_study *study = NULL;
    struct wg_tuning_trials trials = {0};
    request->scene = scene;
    request->started = start_progress;
    request->progress = advance_progress;
    request->progress_context = &progress;
    enum wg_code code = wg__tuning_study_run(request, &study, err);
    wg__progress_bar_fini(&progress);
    if (code == WG_OK && wishes->wants_trials) {
        wishes->trials.scene = scene;
        wishes->trials.stop_share = request->stop_share;
        wishes->trials.xi = request->xi;
        wishes->trials.max_trials = study->max_trials;
        wishes->trials.validate = request->validate;
        code = wg__tuning_trials_run(&trials, &wishes->trials, err);
    }
    if (code == WG_OK)
        code = write_results(args, study, request, wishes->wants_trials ? &trials : NULL, command,
                             err);
    wg__tuning_trials_fini(&trials);
    wg__tuning_study_free(study);
    return code;
}

static int run_tuning(int argc, char *argv[])
{
    struct args args = {
        .seeds = 100,
        .seed = 1,
        .noise = 0.02,
        .told_noise = (double)NAN,
        .xi = (double)NAN,
        .processes = (unsigned)wg__processor_count(WG_WORKERS_MAX),
    };
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    struct wg_error err = {0};
    struct wishes wishes = {0};
    struct wg_buffer command;
    struct wg_tuning_grid *grid = NULL;
    struct wg_tuning_scene scene = {0};
    wg__arena_init(&wishes.arena);
    wg__arena_init(&scene.arena);
    wg__buffer_init(&command);
    wg__command_line(set.command, argc, argv, &command);
    enum wg_code code = make_wishes(&args, &wishes, &err);
    if (code == WG_OK)
        code = wg__tuning_grid_open(&grid, &wishes.grid, &err);
    if (code == WG_OK)
        code = wg__tuning_scene_init(&scene, grid, &wishes.failures, args.noise,
                                     isnan(args.told_noise) ? args.noise : args.told_noise, &err);
    if (code == WG_OK)
        code = run_study(&args, &wishes, &scene, command.failed ? NULL : command.data, &err);
    wg__tuning_scene_fini(&scene);
    wg__tuning_grid_close(grid);
    wg__arena_fini(&wishes.arena);
    wg__buffer_fini(&command);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&set, &err);
}

const struct wg_command wg__command_simulate_tuning = {
    .name = "tuning",
    .summary = "Compare policies that look for the cheapest configuration under a limit",
    .run = run_tuning,
};
