/* SPDX-License-Identifier: MIT
 *
 * From options to a request; see tune_args.h.
 */
#include "cli/tune_args.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/batch_file.h"
#include "cli/command.h"
#include "cli/output_files.h"
#include "live/tune_checkpoint.h"
#include "live/tune_quantity.h"
#include "live/tune_template.h"
#include "live/workload_command.h"
#include "schedule/arrivals.h"

/* -- Command line and file -------------------------------------------------------------------- */

/* Lists that the command line has as well replace those of the file. */
static void forget_lists(struct wg_tune_args *of_file, const struct wg_tune_args *given)
{
    for (size_t i = 0; i < wg__tune_options.count; i++) {
        const struct wg_option *option = &wg__tune_options.options[i];
        if (option->kind != WG_OPTION_KIND_LIST)
            continue;
        const struct wg_option_list *of_line =
            (const struct wg_option_list *)((const char *)given + option->offset);
        if (of_line->count > 0)
            ((struct wg_option_list *)((char *)of_file + option->offset))->count = 0;
    }
}

bool wg__tune_args_read(int argc, char *argv[], struct wg_tune_args *args,
                        struct wg_option_file *file, int *status_out)
{
    struct wg_tune_args of_line;
    struct wg_error err;
    wg__tune_args_init(&of_line);
    if (!wg__command_begin(&wg__tune_options, argc, argv, &of_line, status_out))
        return false;
    *args = of_line;
    if (of_line.config == NULL)
        return true;
    wg__tune_args_init(args);
    enum wg_code code = wg__option_file_read(file, of_line.config, &wg__tune_options, args, &err);
    if (code == WG_OK) {
        const struct wg_option_command of_file = args->command;
        bool wants_help = false;
        forget_lists(args, &of_line);
        code = wg__options_parse(&wg__tune_options, argc, argv, args, &wants_help, &err);
        if (of_line.command.count == 0)
            args->command = of_file;
    }
    if (code == WG_OK)
        return true;
    /* What stands in a file that the user wrote is usage, too. */
    if (err.code == WG_EDATA)
        err.code = WG_EINVAL;
    *status_out = wg__command_fail(&wg__tune_options, &err);
    return false;
}

static size_t size_of(enum wg_option_kind kind)
{
    static const size_t sizes[] = {
        [WG_OPTION_KIND_FLAG] = sizeof(bool),         [WG_OPTION_KIND_STRING] = sizeof(char *),
        [WG_OPTION_KIND_LIST] = sizeof(size_t),       [WG_OPTION_KIND_DOUBLE] = sizeof(double),
        [WG_OPTION_KIND_UNSIGNED] = sizeof(unsigned), [WG_OPTION_KIND_SEED] = sizeof(uint64_t),
        [WG_OPTION_KIND_DURATION] = sizeof(double)};
    _Static_assert(sizeof sizes / sizeof *sizes == WG_OPTION_KIND_COUNT, "a size each");
    _Static_assert(offsetof(struct wg_option_list, count) == 0, "a list is as long as it says");
    return sizes[kind];
}

/* An option about a server does nothing without one: whoever gives it has forgotten --server. */
static enum wg_code check_server(const struct wg_tune_args *args, struct wg_error *err)
{
    static const size_t begin = offsetof(struct wg_tune_args, server);
    struct wg_tune_args usual;
    wg__tune_args_init(&usual);
    for (size_t i = 0; i < wg__tune_options.count && args->server.url == NULL; i++) {
        const struct wg_option *option = &wg__tune_options.options[i];
        if (option->offset < begin || option->offset >= begin + sizeof args->server ||
            memcmp((const char *)args + option->offset, (const char *)&usual + option->offset,
                   size_of(option->kind)) == 0)
            continue;
        return wg__fail(err, WG_EINVAL, "--%s is about a server: which one? (--server URL)",
                        option->name);
    }
    return WG_OK;
}

/* -- The request ------------------------------------------------------------------------------ */

static enum wg_code take_goal(struct wg_tune_setup *setup, struct wg_error *err)
{
    const struct wg_tune_args *args = setup->args;
    const char *limits[WG_OPTION_LIST_MAX + 1];
    size_t count = 0;
    for (; count < args->limits.count; count++)
        limits[count] = args->limits.items[count];
    if (args->slo != NULL) {
        struct wg_error cause;
        const enum wg_code code = wg__tune_slo_limit(args->slo, setup->slo, &cause);
        if (code != WG_OK)
            return wg__fail(err, code, "--slo: %s", cause.text);
        limits[count++] = setup->slo;
    }
    return wg__tune_goal_init(&setup->goal, args->objective, limits, count, err);
}

/* A knob that changes how long requests wait for each other makes latency at a load no longer a
 * service time. */
static void take_load(struct wg_tune_setup *setup)
{
    bool has_queue_knob = false;
    for (size_t k = 0; k < setup->knobs.count; k++) {
        const enum wg_tuning_role role = setup->knobs.knobs[k].role;
        has_queue_knob |=
            role == WG_TUNING_BATCH || role == WG_TUNING_REPLICAS || role == WG_TUNING_DELAY;
    }
    if (setup->args->arrivals != NULL && has_queue_knob)
        wg__tune_goal_at_load(&setup->goal);
}

static bool names_energy(const struct wg_tune_setup *setup)
{
    static const char *const names[] = {"energy_j", "power_w", "energy_per_request_j",
                                        "energy_per_token_j"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (wg__tune_goal_names(&setup->goal, names[i]))
            return true;
    return false;
}

/* Whether anything needs energy at all. */
static bool needs_energy(const struct wg_tune_setup *setup)
{
    return names_energy(setup) || setup->args->arrivals != NULL;
}

static enum wg_code take_energy(struct wg_tune_setup *setup, struct wg_error *err)
{
    struct wg_error cause;
    enum wg_code code = wg__tune_energy_parse(setup->args->energy, &setup->energy, &cause);
    if (code != WG_OK)
        return wg__fail(err, code, "--energy: %s", cause.text);
    const bool is_auto = setup->energy.kind == WG_TUNE_ENERGY_AUTO;
    code = wg__tune_energy_resolve(&setup->energy, &setup->devices, err);
    if (code == WG_OK && setup->args->server.url != NULL &&
        setup->energy.kind == WG_TUNE_ENERGY_COMMAND && names_energy(setup))
        return wg__fail(err, WG_EINVAL,
                        "a server tells no joules, and no energy is measured%s: state it with "
                        "--energy model:busy=WATTS,idle=WATTS, or name another --objective",
                        is_auto ? " here" : "");
    if (code == WG_OK && is_auto && setup->energy.kind == WG_TUNE_ENERGY_COMMAND &&
        needs_energy(setup) && !setup->args->quiet)
        (void)fprintf(stderr, "wattgov tune: no energy can be measured here: the workload must "
                              "tell energy_j (or: --energy model:busy=WATTS,idle=WATTS)\n");
    return code;
}

static void join_words(struct wg_buffer *out, char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++)
        wg__buffer_printf(out, "%s%s", i > 0 ? " " : "", words[i]);
}

/* A knob that stands nowhere in the command reaches it by the environment alone. */
static void note_unused(const struct wg_tune_setup *setup)
{
    for (size_t k = 0; k < setup->knobs.count && !setup->args->quiet; k++) {
        const struct wg_tune_knob *knob = &setup->knobs.knobs[k];
        char variable[WG_TUNE_VALUE_SIZE];
        wg__tune_variable_name(variable, knob->name);
        if (!knob->is_device && !wg__tune_template_has(setup->args->command.words, knob->name))
            (void)fprintf(stderr,
                          "wattgov tune: {%s} stands nowhere in the command: it must read $%s of "
                          "its environment\n",
                          knob->name, variable);
    }
}

/* A default that is not how the device stands: its levels have none that is. */
static void note_defaults(const struct wg_tune_setup *setup)
{
    for (size_t k = 0; k < setup->knobs.count && !setup->args->quiet; k++) {
        const struct wg_tune_knob *knob = &setup->knobs.knobs[k];
        if (!knob->is_device || knob->device_count == 0)
            continue;
        const struct wg_knob_info *info =
            &wg_device_get_info(wg_machine_device(setup->machine, knob->devices[0]))
                 ->knobs[knob->device_knob];
        const bool is_limit = knob->device_knob == WG_KNOB_POWER_LIMIT;
        const double stands = is_limit && info->current > 0 ? info->current : info->max;
        const double value = knob->levels[knob->default_level];
        char text[WG_TUNE_QUANTITY_SIZE], other[WG_TUNE_QUANTITY_SIZE];
        if (!(fabs(value - stands) > 0.02 * stands))
            continue;
        wg__tune_quantity_text(text, knob->role, value);
        wg__tune_quantity_text(other, knob->role, stands);
        (void)fprintf(stderr,
                      "wattgov tune: %s: the default that all is compared with is %s, which is not "
                      "how the device stands (%s): add that as a level to compare with it\n",
                      knob->name, text, other);
    }
}

/* Words as /bin/sh takes them, each in quotes. */
static void quote_words(struct wg_buffer *out, char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        wg__buffer_puts(out, i > 0 ? " '" : "'");
        for (const char *at = words[i]; *at != '\0'; at++)
            wg__buffer_puts(out, *at == '\'' ? "'\\''" : (const char[]){*at, '\0'});
        wg__buffer_puts(out, "'");
    }
}

static unsigned twice_largest_batch(const struct wg_tune_knobs *knobs)
{
    static const double most = 4096;
    double largest = 1;
    for (size_t k = 0; k < knobs->count; k++)
        for (size_t i = 0;
             knobs->knobs[k].role == WG_TUNING_BATCH && i < knobs->space->knobs[k].count; i++)
            largest = fmax(largest, knobs->knobs[k].levels[i]);
    return (unsigned)fmin(2 * largest, most);
}

/* A knob without a place shall be known before anything is asked or started. */
static enum wg_code check_places(const struct wg_tune_setup *setup, struct wg_error *err)
{
    enum wg_code code = WG_OK;
    for (size_t k = 0; k < setup->knobs.count && code == WG_OK; k++) {
        const struct wg_tune_knob *knob = &setup->knobs.knobs[k];
        const char *path = NULL;
        double scale = 1;
        if (!knob->is_device)
            code =
                wg__workload_server_find_place(&setup->server.opts, knob->name, &path, &scale, err);
    }
    return code;
}

/* A server that runs, or that the command behind -- starts. */
static enum wg_code open_server(struct wg_tune_setup *setup, struct wg_signals *signals,
                                struct wg_error *err)
{
    const struct wg_tune_args *args = setup->args;
    struct wg_buffer text;
    wg__buffer_init(&text);
    if (args->command.count > 0) {
        quote_words(&text, args->command.words);
        setup->server_command = text.failed ? NULL : wg__strdup(text.data);
        wg__buffer_puts(&text, " at ");
    }
    wg__buffer_printf(&text, "%s, model %s", args->server.url,
                      args->server.model != NULL ? args->server.model : "of the server");
    setup->workload_text = text.failed ? NULL : wg__strdup(text.data);
    wg__buffer_fini(&text);
    if (setup->workload_text == NULL || (args->command.count > 0 && setup->server_command == NULL))
        return wg__fail(err, WG_ENOMEM, "out of memory");
    enum wg_code code = wg__tune_server_opts(&setup->server, &args->server, setup->server_command,
                                             args->arrivals, args->seed, err);
    if (code == WG_OK)
        code = check_places(setup, err);
    setup->server.opts.signals = signals;
    /* Its own counts tell the time of a batch only where batches are made. */
    if (setup->server.opts.concurrency == 0 && strcmp(args->server.statistics, "triton") == 0)
        setup->server.opts.concurrency = twice_largest_batch(&setup->knobs);
    return code == WG_OK && !args->dry_run
               ? wg__workload_server_open(&setup->workload, &setup->server.opts, err)
               : code;
}

static enum wg_code open_workload(struct wg_tune_setup *setup, struct wg_signals *signals,
                                  struct wg_error *err)
{
    const struct wg_tune_args *args = setup->args;
    struct wg_buffer text;
    if (args->server.url != NULL)
        return open_server(setup, signals, err);
    if (args->command.count == 0)
        return wg__fail(err, WG_EINVAL,
                        "what to measure? wattgov tune [OPTION]... -- CMD [ARG]..., or --server");
    wg__buffer_init(&text);
    join_words(&text, args->command.words);
    setup->workload_text = text.failed ? NULL : wg__strdup(text.data);
    wg__buffer_fini(&text);
    if (setup->workload_text == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    note_unused(setup);
    const struct wg_workload_command_opts opts = {.words = args->command.words,
                                                  .signals = signals,
                                                  .requests = args->requests,
                                                  .shows_stderr = args->verbose};
    return wg__workload_command_open(&setup->workload, &opts, err);
}

static enum wg_code take_state(struct wg_tune_setup *setup, struct wg_error *err)
{
    const struct wg_tune_args *args = setup->args;
    int length = 0;
    if (args->state != NULL)
        length = snprintf(setup->state, sizeof setup->state, "%s", args->state);
    else if (args->output != NULL)
        length = snprintf(setup->state, sizeof setup->state, "%s.state", args->output);
    if (length < 0 || (size_t)length >= sizeof setup->state)
        return wg__fail(err, WG_EINVAL, "--state: the path is too long");
    if (args->resume && setup->state[0] == '\0')
        return wg__fail(err, WG_EINVAL, "--resume: from what? name the state with --state FILE");
    struct stat status;
    if (setup->state[0] != '\0' && stat(setup->state, &status) == 0 && !S_ISREG(status.st_mode) &&
        !S_ISDIR(status.st_mode))
        return wg__fail(err, WG_EINVAL,
                        "--state: '%s' is no regular file: it is written anew after each trial",
                        setup->state);
    return WG_OK;
}

static enum wg_code check_outputs(struct wg_tune_setup *setup, struct wg_error *err)
{
    const struct wg_tune_args *args = setup->args;
    const enum wg_code code = take_state(setup, err);
    const struct wg_output_file files[] = {
        {.option = "output", .path = args->output},
        {.option = "html", .path = args->html},
        {.option = "state", .path = setup->state[0] != '\0' ? setup->state : NULL},
    };
    return code == WG_OK ? wg__output_files_check(files, sizeof files / sizeof *files, err) : code;
}

static void fill_request(struct wg_tune_setup *setup, struct wg_signals *signals)
{
    const struct wg_tune_args *args = setup->args;
    /* A server gets the arrivals as they are; only its own counts know nothing of queues. */
    const bool is_server = args->server.url != NULL;
    const bool is_simulated = !is_server || strcmp(args->server.statistics, "triton") == 0;
    (void)snprintf(setup->holder, sizeof setup->holder, "wattgov tune: %.100s",
                   is_server ? args->server.url : args->command.words[0]);
    struct wg_tune_request *request = &setup->request;
    *request = (struct wg_tune_request){
        .machine = setup->machine,
        .knobs = &setup->knobs,
        .goal = &setup->goal,
        .workload = setup->workload,
        .signals = signals,
        .energy = setup->energy,
        .seed = args->seed,
        .max_trials = args->max_trials,
        .stop_share = args->stop_share,
        .max_time_s = args->max_time_s,
        .validate = !args->no_validate,
        .precision = args->precision,
        .min_window_s = args->min_window_s,
        .max_window_s = args->max_window_s,
        .min_windows = args->min_windows,
        .max_windows = args->max_windows,
        .hung_s = args->hung_s,
        .settle_s = args->settle_s,
        .cool_s = args->cool_s,
        .warms_up = !args->no_warm_up,
        .arrivals = is_simulated ? args->arrivals : NULL,
        .is_server = is_server,
        .leaves_returned = is_server && strcmp(args->server.leave, "returned") == 0,
        .tells_errors = is_server,
        .load_requests = args->load_requests,
        .idle_s = args->idle_power_w > 0 ? 0 : args->idle_s,
        .idle_w = args->idle_power_w,
        .state_path = setup->state[0] != '\0' ? setup->state : NULL,
        .resume = args->resume,
        .holder = setup->holder,
        .root = args->devices.root,
    };
    (void)wg__tuner_policy_parse(args->policy, &request->policy); /* one of the choices */
}

static enum wg_code make_identity(struct wg_tune_setup *setup, struct wg_error *err)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__tune_identity(&text, &setup->knobs, &setup->goal, setup->request.policy,
                      setup->request.seed, setup->workload_text,
                      wg__tune_energy_word(setup->energy.kind), setup->args->arrivals);
    setup->identity = text.failed ? NULL : wg__strdup(text.data);
    wg__buffer_fini(&text);
    setup->request.identity = setup->identity;
    return setup->identity != NULL ? WG_OK : wg__fail(err, WG_ENOMEM, "out of memory");
}

/* A load that cannot be parsed shall be known before the first trial. */
static enum wg_code check_rest(const struct wg_tune_args *args, struct wg_error *err)
{
    struct wg_arrivals *arrivals = NULL;
    struct wg_rng rng;
    if (args->min_windows > args->max_windows)
        return wg__fail(err, WG_EINVAL, "--min-windows %u is more than --max-windows %u",
                        args->min_windows, args->max_windows);
    const enum wg_code fits = check_server(args, err);
    if (args->arrivals == NULL || fits != WG_OK)
        return fits;
    wg__rng_init(&rng, args->seed);
    struct wg_error cause;
    const enum wg_code code = wg__arrivals_open(&arrivals, args->arrivals, &rng, &cause);
    wg__arrivals_close(arrivals);
    return code == WG_OK ? code : wg__fail(err, code, "--arrivals: %s", cause.text);
}

static enum wg_code init_knobs(struct wg_tune_setup *setup, struct wg_error *err)
{
    const struct wg_tune_args *args = setup->args;
    struct wg_arena arena;
    struct wg_option_list knobs;
    wg__arena_init(&arena);
    enum wg_code code = wg__batch_file_knobs(&args->knobs, &arena, &knobs, err);
    if (code == WG_OK)
        code = wg__tune_knobs_init(&setup->knobs, &setup->devices, knobs.items, knobs.count,
                                   args->forbids.items, args->forbids.count, err);
    wg__arena_fini(&arena);
    return code;
}

enum wg_code wg__tune_setup_open(struct wg_tune_setup *setup, const struct wg_tune_args *args,
                                 struct wg_signals *signals, struct wg_error *err)
{
    *setup = (struct wg_tune_setup){.args = args};
    enum wg_code code = take_goal(setup, err);
    if (code == WG_OK)
        code = check_rest(args, err);
    if (code == WG_OK)
        code = check_outputs(setup, err);
    if (code == WG_OK)
        code = wg__device_args_open(&args->devices, &setup->machine, err);
    if (code == WG_OK)
        code = wg__tune_devices_find(&setup->devices, setup->machine, err);
    if (code == WG_OK)
        code = init_knobs(setup, err);
    if (code == WG_OK) {
        note_defaults(setup);
        code = take_energy(setup, err);
    }
    if (code == WG_OK)
        code = open_workload(setup, signals, err);
    if (code != WG_OK)
        return code;
    if (args->server.url != NULL && setup->workload != NULL)
        wg__tune_server_defaults(&setup->knobs, setup->workload, args->quiet);
    take_load(setup);
    fill_request(setup, signals);
    return make_identity(setup, err);
}

void wg__tune_setup_close(struct wg_tune_setup *setup)
{
    if (setup->workload != NULL)
        setup->workload->ops->close(setup->workload);
    wg__free(setup->workload_text);
    wg__free(setup->server_command);
    wg__free(setup->identity);
    wg__tune_knobs_fini(&setup->knobs);
    wg__tune_goal_fini(&setup->goal);
    wg_machine_close(setup->machine);
    *setup = (struct wg_tune_setup){0};
}
