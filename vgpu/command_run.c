/* SPDX-License-Identifier: MIT
 *
 * `wattgov-vgpu run`: a command on virtual GPUs.
 *
 * The command and all that it starts find our libnvidia-ml.so.1 first (LD_LIBRARY_PATH) and the
 * machine by WATTGOV_VGPU; nothing else of its environment changes. Signals are passed on, the exit
 * status is the command's (128 + N for signal N). Signals are blocked before the file is made, so
 * none of them can leave it behind; of a SIGKILL the next command of wattgov-vgpu cleans up.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/options.h"
#include "live/child.h"
#include "vgpu/machine.h"
#include "vgpu/program.h"

#ifndef WG_VGPU_LIBRARIES
#define WG_VGPU_LIBRARIES "/usr/lib/wattgov/vgpu-" /* lib, lib-r535, ... */
#endif
#ifndef WG_VGPU_LIBRARIES_BESIDE
#define WG_VGPU_LIBRARIES_BESIDE "../lib/wattgov/vgpu-"
#endif

struct args {
    struct wg_option_list machines;
    const char *variant;
    bool anyone_may_set;
    struct wg_option_command command;
};

/* An old driver's library, and the version that it says it is. */
static const struct {
    const char *name, *folder, *driver;
} variants[] = {
    {"current", "lib", NULL},
    {"r535", "lib-r535", "535.54.03"},
    {"r418", "lib-r418", "418.226.00"},
};

static const char *const variant_names[] = {"current", "r535", "r418", NULL};

static const struct wg_option options[] = {
    {.name = "machine",
     WG_OPTION_LIST(struct args, machines),
     .value = "ID|FILE",
     .is_required = true,
     .help =
         "Virtual machine: an id of 'wattgov-vgpu list' or a YAML file (a path with a '/' or an "
         "end of .yaml). Several are joined: the GPUs of all, the driver of the first."},
    {.name = "variant",
     WG_OPTION_STRING(struct args, variant),
     .value = "NAME",
     .choices = variant_names,
     .help = "Interface of the driver library: that of now, of R535 (process lists in structs of "
             "32 bytes) or of R418 (no field values of power, no locked clocks of memory)."},
    {.name = "anyone-may-set",
     WG_OPTION_FLAG(struct args, anyone_may_set),
     .help = "Settings do not need root."},
};

static const struct wg_option_set set = {
    .command = "wattgov-vgpu run",
    .summary = "Runs a command on virtual GPUs: wattgov-vgpu run --machine ID -- CMD ARGS.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "The exit status is the command's; 128 + N when signal N ended it, 126 or 127 when "
              "it could\nnot be run.\n\n"
              "examples:\n"
              "  wattgov-vgpu run --machine a100 -- wattgov devices\n"
              "  wattgov-vgpu run --machine 8xh100 --anyone-may-set -- python train.py",
    WG_OPTION_COMMAND(struct args, command),
};

static enum wg_code describe(const struct args *args, struct vgpu_description *all,
                             struct wg_error *err)
{
    char folder[VGPU_PATH_MAX];
    enum wg_code code = vgpu_find_machines(folder, err);
    for (size_t i = 0; i < args->machines.count && code == WG_OK; i++) {
        struct vgpu_description one = {0};
        struct wg_error cause;
        code = vgpu_machine_read(&one, folder, args->machines.items[i], &cause);
        if (code != WG_OK) /* an id that is no machine is a wrong argument */
            return wg__fail(err, code == WG_ENOENT ? WG_EINVAL : code, "--machine: %s", cause.text);
        code = vgpu_description_append(all, &one, err);
        vgpu_description_fini(&one);
    }
    return code;
}

/* Puts the library's folder first. */
static enum wg_code set_environment(const char *machine, const char *library, struct wg_error *err)
{
    const char *before = getenv("LD_LIBRARY_PATH");
    struct wg_buffer path;
    wg__buffer_init(&path);
    wg__buffer_printf(&path, "%s", library);
    if (before != NULL && *before != '\0' && strcmp(before, library) != 0)
        wg__buffer_printf(&path, ":%s", before);
    enum wg_code code = WG_OK;
    if (path.failed || setenv("LD_LIBRARY_PATH", path.data, 1) != 0 ||
        setenv("WATTGOV_VGPU", machine, 1) != 0)
        code = wg__fail(err, WG_ENOMEM, "out of memory for the environment");
    wg__buffer_fini(&path);
    return code;
}

static enum wg_code find_library(char out[static VGPU_PATH_MAX], const char *variant,
                                 const char **driver_out, struct wg_error *err)
{
    size_t i = 0;
    while (strcmp(variants[i].name, variant) != 0)
        i++;
    *driver_out = variants[i].driver;
    char built[64], beside[512], fallback[VGPU_PATH_MAX];
    (void)snprintf(built, sizeof built, "%s/libnvidia-ml.so.1", variants[i].folder);
    (void)snprintf(beside, sizeof beside, "%s%s", WG_VGPU_LIBRARIES_BESIDE, built);
    (void)snprintf(fallback, sizeof fallback, "%s%s", WG_VGPU_LIBRARIES, built);
    enum wg_code code = vgpu_find_part(out, built, "", NULL);
    if (code != WG_OK)
        code = vgpu_find_part(out, beside, fallback, err);
    if (code == WG_OK)
        *strrchr(out, '/') = '\0';
    return code;
}

/* Runs the command until it ends; its exit status. */
static int wait_for(char *const *words, struct wg_signals *signals)
{
    struct wg_child child;
    struct wg_error err;
    if (wg__child_start(&child, words, signals, NULL, &err) != WG_OK)
        (void)wg__command_fail(&set, &err);
    while (!child.has_ended) {
        bool to_group = false;
        const int number = wg__signals_wait(signals, UINT64_MAX, &to_group);
        if (number == SIGCHLD)
            wg__child_check(&child);
        else if (number != 0)
            wg__child_pass(&child, number, to_group);
    }
    return child.status;
}

static enum wg_code run_on(const struct args *args, const struct vgpu_description *description,
                           int *status_out, struct wg_error *err)
{
    char library[VGPU_PATH_MAX];
    const char *driver = NULL;
    enum wg_code code = find_library(library, args->variant, &driver, err);
    if (code != WG_OK)
        return code;
    struct wg_signals signals;
    wg__signals_block(&signals, true);
    struct vgpu_session session;
    struct vgpu_machine *machine = NULL;
    code = vgpu_session_begin(&session, &machine, description->id, description->models,
                              description->count, err);
    if (code != WG_OK)
        return code;
    (void)snprintf(machine->driver, sizeof machine->driver, "%s",
                   driver != NULL ? driver : description->driver);
    (void)snprintf(machine->nvml_version, sizeof machine->nvml_version, "%s",
                   description->nvml_version);
    if (driver != NULL)
        (void)snprintf(machine->nvml_version, sizeof machine->nvml_version, "%d.%s",
                       description->cuda_version / 1000, driver);
    machine->cuda_version = description->cuda_version;
    machine->anyone_may_set = description->anyone_may_set || args->anyone_may_set;
    code = set_environment(session.path, library, err);
    if (code == WG_OK)
        *status_out = wait_for(args->command.words, &signals);
    vgpu_session_end(&session, machine);
    return code;
}

static int run(int argc, char *argv[])
{
    struct args args = {.variant = "current"};
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    struct wg_error err;
    struct vgpu_description description = {0};
    enum wg_code code = WG_OK;
    if (args.command.count == 0)
        code =
            wg__fail(&err, WG_EINVAL, "which command? wattgov-vgpu run --machine ID -- CMD ARGS");
    if (code == WG_OK)
        code = describe(&args, &description, &err);
    if (code == WG_OK)
        code = run_on(&args, &description, &status, &err);
    vgpu_description_fini(&description);
    return code == WG_OK ? status : wg__command_fail(&set, &err);
}

const struct wg_command vgpu_command_run = {
    .name = "run", .summary = "Run a command on virtual GPUs", .run = run};
