/* SPDX-License-Identifier: MIT
 *
 * `wattgov tune apply FILE -- CMD`: holds a tuned configuration while a command runs.
 *
 *     read FILE -> guard -> set the devices -> set the server
 *               -> CMD with {NAME} and $WATTGOV_TUNE_NAME
 *               -> wait, looking after guard and foreign writes -> give back -> CMD's status
 *
 * Signals are passed on to the command as train does it. Nothing is set unless all can be:
 * half a configuration is none. With --best-effort the command runs all the same. Of the GPUs only
 * those that were tuned are set, by their UUIDs, unless --gpu names others. A served model that
 * runs is given its configuration and gets its own one back (tune_apply_server.c).
 */
#include "cli/command_tune_apply.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/device_args.h"
#include "cli/options.h"
#include "cli/tune_apply_server.h"
#include "cli/tune_result.h"
#include "live/child.h"
#include "live/device_hold.h"
#include "live/tune_knobs.h"
#include "live/tune_quantity.h"
#include "live/tune_template.h"

struct args {
    struct wg_device_args devices;
    bool best_effort, quiet;
    struct wg_option_command command;
};

static const struct wg_option options[] = {
    WG_DEVICE_OPTIONS(struct args, devices),
    {.name = "best-effort",
     WG_OPTION_FLAG(struct args, best_effort),
     .help = "Where devices or a server cannot be set, says why and runs the command all the "
             "same."},
    {.name = "quiet",
     .letter = 'q',
     WG_OPTION_FLAG(struct args, quiet),
     .help = "Does not tell what is set."},
};

static const struct wg_option_set set = {
    .command = "wattgov tune apply",
    .word = "FILE",
    .summary =
        "Sets the devices as FILE (of wattgov tune -o) says, runs a command with {NAME} replaced "
        "by each knob's value and $WATTGOV_TUNE_NAME in its environment, holds the settings while "
        "it runs, and gives the original ones back; a served model that was tuned is loaded with "
        "its configuration meanwhile, if its server runs. The exit status is the command's.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "examples:\n"
              "  wattgov tune apply result.yaml -- python3 serve.py --batch {batch}",
    WG_OPTION_COMMAND(struct args, command),
};

static const uint64_t tend_ns = 250000000;

struct session {
    const struct args *args;
    struct wg_machine *machine;
    struct wg_tune_applied applied;
    struct wg_device_hold hold;
    struct wg_tune_server_hold server;
    struct wg_signals signals;
    struct wg_tune_command filled;
    struct wg_child child;
};

static void say(const char *line, void *context)
{
    (void)context;
    (void)fprintf(stderr, "wattgov tune apply: %s\n", line);
}

/* -- The devices ------------------------------------------------------------------------------ */

static bool is_same_gpu(const struct wg_device_info *info, const struct wg_tune_applied_gpu *gpu)
{
    return info->kind == WG_DEVICE_GPU &&
           strcmp(info->uuid != NULL ? info->uuid : info->id, gpu->uuid) == 0;
}

/* Whether the GPUs are those of the file; else whoever runs us has named them, or nobody. */
static bool is_by_file(const struct session *session)
{
    return session->applied.gpu_count > 0 && session->args->devices.gpus.count == 0;
}

static bool is_target(const struct session *session, const struct wg_device_info *info,
                      enum wg_knob knob)
{
    if (knob == WG_KNOB_CPU_CLOCK)
        return info->kind == WG_DEVICE_CPU;
    bool is_tuned = !is_by_file(session);
    for (size_t i = 0; i < session->applied.gpu_count && !is_tuned; i++)
        is_tuned = is_same_gpu(info, &session->applied.gpus[i]);
    return info->kind == WG_DEVICE_GPU && is_tuned;
}

/* Each GPU that the file names must be here. */
static enum wg_code find_gpus(const struct session *session, struct wg_error *err)
{
    for (size_t g = 0; is_by_file(session) && g < session->applied.gpu_count; g++) {
        const struct wg_tune_applied_gpu *gpu = &session->applied.gpus[g];
        bool is_here = false;
        for (size_t i = 0; i < wg_machine_device_count(session->machine); i++)
            is_here |= is_same_gpu(wg_device_get_info(wg_machine_device(session->machine, i)), gpu);
        if (!is_here)
            return wg__fail(err, WG_ENODEV,
                            "it was tuned on GPU %u, %s (%s), which is not among the GPUs that may "
                            "be used here; to set others nevertheless, name them by --gpu",
                            gpu->index, gpu->name, gpu->uuid);
    }
    return WG_OK;
}

/* The value that this device supports nearest to the wanted one. */
static double supported(const struct wg_knob_info *info, double value)
{
    double best = value;
    for (size_t i = 0; i < info->level_count; i++)
        if (i == 0 || fabs(info->levels[i] - value) < fabs(best - value))
            best = info->levels[i];
    return best;
}

/* Takes (is_set false) or sets one knob of the file on all devices that it is meant for. */
static enum wg_code each_device(struct session *session, size_t at, bool is_set,
                                struct wg_error *err)
{
    const enum wg_knob knob = session->applied.knobs[at].knob;
    const double wanted = session->applied.knobs[at].value;
    size_t found = 0;
    for (size_t i = 0; i < wg_machine_device_count(session->machine); i++) {
        const struct wg_device_info *info =
            wg_device_get_info(wg_machine_device(session->machine, i));
        if (!is_target(session, info, knob))
            continue;
        found++;
        double applied = NAN;
        const double value = supported(&info->knobs[knob], wanted);
        enum wg_code code = is_set
                                ? wg__device_hold_set(&session->hold, i, knob, value, &applied, err)
                                : wg__device_hold_take(&session->hold, i, knob, err);
        if (code == WG_OK && is_set && isfinite(applied) &&
            fabs(applied - wanted) > 0.01 * fabs(wanted))
            code = wg__fail(err, WG_EINVAL, "%s: %s of %g was asked for, and reads back as %g",
                            info->label, wg_knob_key(knob), wanted, applied);
        if (code != WG_OK)
            return code;
    }
    return found > 0 ? WG_OK
                     : wg__fail(err, WG_ENODEV, "there is no device with a %s here",
                                session->applied.knobs[at].name);
}

static enum wg_code set_devices(struct session *session, struct wg_error *err)
{
    char holder[128];
    (void)snprintf(holder, sizeof holder, "wattgov tune apply: %.90s",
                   session->args->command.words[0]);
    bool has_device = false, has_gpu = false;
    for (size_t i = 0; i < session->applied.count; i++) {
        has_device |= session->applied.knobs[i].is_device;
        has_gpu |= session->applied.knobs[i].is_device &&
                   session->applied.knobs[i].knob != WG_KNOB_CPU_CLOCK;
    }
    if (!has_device)
        return WG_OK;
    if (has_gpu && find_gpus(session, err) != WG_OK)
        return WG_ENODEV;
    const struct wg_control_opts opts = {.holder = holder, .root = session->args->devices.root};
    session->hold.say = say;
    enum wg_code code = wg__device_hold_open(&session->hold, session->machine, &opts, err);
    for (int is_set = 0; is_set < 2; is_set++)
        for (size_t i = 0; i < session->applied.count && code == WG_OK; i++)
            if (session->applied.knobs[i].is_device)
                code = each_device(session, i, is_set == 1, err);
    return code;
}

/* Sets them, or says what is missing; a best effort goes on without. */
static enum wg_code prepare(struct session *session, struct wg_error *err)
{
    enum wg_code code = wg__device_args_open(&session->args->devices, &session->machine, err);
    if (code == WG_EINVAL)
        return code; /* a --gpu that is none */
    if (code == WG_OK)
        code = set_devices(session, err);
    if (code != WG_OK && !session->args->best_effort)
        return code;
    if (code != WG_OK) {
        (void)fprintf(stderr, "wattgov tune apply: nothing is set: %s; the command runs as it is\n",
                      err->text);
        wg__device_hold_close(&session->hold);
    }
    code = wg__tune_server_hold(&session->server, &session->applied, &session->signals,
                                session->args->quiet, err);
    if (code == WG_OK || !session->args->best_effort || wg__signals_have_come(&session->signals))
        return code;
    (void)fprintf(stderr,
                  "wattgov tune apply: the server is not set: %s; the command runs as it "
                  "is\n",
                  err->text);
    return WG_OK;
}

/* "gpu1, gpu2": where a knob is held. */
static void list_devices(const struct session *session, enum wg_knob knob, struct wg_buffer *out)
{
    bool is_first = true;
    for (size_t i = 0; i < session->hold.count; i++) {
        const size_t device = session->hold.held[i].device;
        if (session->hold.held[i].knob != knob)
            continue;
        wg__buffer_printf(out, "%s%s", is_first ? "" : ", ",
                          wg_device_get_info(wg_machine_device(session->machine, device))->label);
        is_first = false;
    }
}

static void tell_settings(const struct session *session)
{
    for (size_t i = 0; i < session->applied.count && !session->args->quiet; i++) {
        char text[WG_TUNE_QUANTITY_SIZE];
        enum wg_tuning_role role = WG_TUNING_CATEGORY;
        enum wg_knob knob = session->applied.knobs[i].knob;
        if (!session->applied.knobs[i].is_device || session->hold.control == NULL ||
            !wg__tune_device_knob(session->applied.knobs[i].name, &role, &knob))
            continue;
        struct wg_buffer where;
        wg__buffer_init(&where);
        list_devices(session, knob, &where);
        wg__tune_quantity_text(text, role, session->applied.knobs[i].value);
        (void)fprintf(stderr, "wattgov tune apply: holding %s %s on %s\n",
                      session->applied.knobs[i].name, text,
                      where.data != NULL && !where.failed ? where.data : "the devices");
        wg__buffer_fini(&where);
    }
}

/* -- The command ------------------------------------------------------------------------------ */

static enum wg_code start(struct session *session, struct wg_error *err)
{
    struct wg_workload_setting settings[WG_TUNING_KNOBS_MAX];
    for (size_t i = 0; i < session->applied.count; i++)
        settings[i] = (struct wg_workload_setting){
            .name = session->applied.knobs[i].name,
            .value = session->applied.knobs[i].value,
            .label = session->applied.knobs[i].label[0] != '\0' ? session->applied.knobs[i].label
                                                                : NULL};
    const enum wg_code code = wg__tune_template_fill(&session->filled, session->args->command.words,
                                                     settings, session->applied.count, err);
    if (code != WG_OK)
        return code;
    const struct wg_child_setup setup = {
        .out = -1, .err = -1, .environment = (const char *const *)session->filled.environment};
    return wg__child_start(&session->child, session->filled.words, &session->signals, &setup, err);
}

/* Until the command has ended. What somebody else sets is told once, and left. */
static void hold(struct session *session)
{
    wg__child_check(&session->child);
    while (!session->child.has_ended) {
        bool to_group = false;
        const int signal = wg__signals_wait(&session->signals, wg__clock_ns() + tend_ns, &to_group);
        if (signal == SIGCHLD || signal == 0)
            wg__child_check(&session->child);
        else
            wg__child_pass(&session->child, signal, to_group);
        (void)wg__device_hold_tend(&session->hold);
    }
}

static bool is_knob(const struct wg_tune_applied *applied, const char *name)
{
    for (size_t i = 0; i < applied->count; i++)
        if (strcmp(applied->knobs[i].name, name) == 0)
            return true;
    return false;
}

/* A {name} of the command (not the shell's ${name}) that a tuning would take for a knob and this
 * result does not have: it was made for another command. What else stands in braces is the
 * command's own affair. */
static void warn_of_unset(const struct session *session)
{
    for (char *const *word = session->args->command.words; *word != NULL; word++) {
        for (const char *at = strchr(*word, '{'); at != NULL; at = strchr(at + 1, '{')) {
            char name[WG_TUNE_NAME_SIZE];
            enum wg_tuning_role role = WG_TUNING_CATEGORY;
            const size_t length = strcspn(at + 1, "{}");
            if (length >= sizeof name || at[1 + length] != '}' || (at > *word && at[-1] == '$'))
                continue;
            memcpy(name, at + 1, length);
            name[length] = '\0';
            if (wg__tune_role_of_name(name, &role) && !is_knob(&session->applied, name))
                (void)fprintf(stderr,
                              "wattgov tune apply: {%s} stays as it is: the result has no such "
                              "knob; was it tuned with another command?\n",
                              name);
        }
    }
}

/* What the file cannot do on its own. */
static void warn(const struct session *session)
{
    const struct wg_tune_applied *applied = &session->applied;
    if (applied->is_infeasible)
        (void)fprintf(stderr, "wattgov tune apply: this configuration is not known to keep its "
                              "limits (is_feasible: false): it came nearest\n");
    for (size_t i = 0; i < applied->count && !session->args->quiet; i++) {
        char variable[WG_TUNE_VALUE_SIZE];
        wg__tune_variable_name(variable, applied->knobs[i].name);
        if (!applied->knobs[i].is_device && !wg__tune_server_has(applied, i) &&
            !wg__tune_template_has(session->args->command.words, applied->knobs[i].name))
            (void)fprintf(stderr,
                          "wattgov tune apply: {%s} stands nowhere in the command: it must read "
                          "$%s of its environment, or be set by you\n",
                          applied->knobs[i].name, variable);
    }
    if (!session->args->quiet)
        warn_of_unset(session);
}

/* One that came before the command ran; 0: none. */
static int take_signal(struct session *session)
{
    bool to_group = false;
    int signal;
    while ((signal = wg__signals_wait(&session->signals, 0, &to_group)) == SIGCHLD) {
    }
    return signal;
}

static int apply(struct session *session)
{
    struct wg_error err;
    int status = WG_EXIT_OK;
    enum wg_code code = prepare(session, &err);
    if (code == WG_OK) {
        tell_settings(session);
        code = start(session, &err);
        status = session->child.has_ended ? session->child.status : WG_EXIT_OK;
    }
    if (code == WG_OK) {
        hold(session);
        status = session->child.status;
    }
    const int signal = code != WG_OK ? take_signal(session) : 0; /* another one is of the release */
    wg__device_hold_close(&session->hold);
    const bool is_back =
        wg__tune_server_release(&session->server, signal != 0, session->args->quiet);
    if (code != WG_OK) {
        const int failure = wg__command_fail(&set, &err);
        if (signal != 0)
            return WG_EXIT_SIGNAL + signal;
        return status != WG_EXIT_OK ? status : failure;
    }
    const bool is_whole = is_back && session->hold.not_restored == 0;
    return status == WG_EXIT_OK && !is_whole ? WG_EXIT_FAILED : status;
}

int wg__command_tune_apply(int argc, char *argv[])
{
    struct args args = {.devices = WG_DEVICE_ARGS_DEFAULT};
    struct wg_error err;
    int status = WG_EXIT_OK;
    wg__options_words_first(&set, argc, argv);
    const char *path = wg__command_word(&argc, &argv);
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    struct session *session = wg__alloc_zeroed(1, sizeof *session);
    if (session == NULL) {
        (void)wg__fail(&err, WG_ENOMEM, "out of memory");
        return wg__command_fail(&set, &err);
    }
    enum wg_code code = WG_OK;
    if (path == NULL || args.command.count == 0)
        code = wg__fail(&err, WG_EINVAL,
                        "which result, and what to run? wattgov tune apply FILE -- "
                        "CMD [ARG]...");
    else
        code = wg__tune_result_read(path, &session->applied, &err);
    if (code != WG_OK) {
        wg__free(session);
        return wg__command_fail(&set, &err);
    }
    session->args = &args;
    session->hold.guard.pidfd = -1;
    warn(session);
    wg__signals_block(&session->signals, true);
    status = apply(session);
    wg__signals_restore(&session->signals);
    wg__tune_command_fini(&session->filled);
    wg_machine_close(session->machine);
    wg__free(session);
    return status;
}
