/* SPDX-License-Identifier: MIT
 *
 * `wattgov devices`: what can be measured and set here; for what can't, why and what to do.
 *
 * Each device is read once. One that hangs costs its timeout and is listed with the reason, so the
 * command always ends, with status 0 also where there is nothing: that is an answer, not a failure.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/command.h"
#include "cli/device_args.h"
#include "cli/devices_report.h"
#include "cli/options.h"
#include "cli/process_list.h"
#include "cli/table.h"

struct args {
    struct wg_device_args devices;
    bool all;
    bool processes;
    bool json;
};

static const struct wg_option options[] = {
    WG_DEVICE_OPTIONS(struct args, devices),
    {.name = "all",
     WG_OPTION_FLAG(struct args, all),
     .help = "Shows each missing meter and knob in a line of its own."},
    {.name = "processes",
     WG_OPTION_FLAG(struct args, processes),
     .help = "Lists the processes on each GPU: a slow question to the driver."},
    {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Writes JSON instead of text."},
};

static const struct wg_option_set set = {
    .command = "wattgov devices",
    .summary =
        "Shows what can be measured and set on this machine: each device with its meters and "
        "knobs, and for each one that is missing why, and what to do about it.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "examples:\n"
              "  wattgov devices\n"
              "  wattgov devices --all --gpu 0\n"
              "  wattgov devices --processes --json",
};

/* What the report points into. */
struct looks {
    struct wg_device_look *items;
    struct wg_error *errors;         /* a device */
    struct wg_error *process_errors; /* a device */
    struct wg_process_list *processes;
    size_t count;
};

static void looks_fini(struct looks *looks)
{
    for (size_t i = 0; looks->processes != NULL && i < looks->count; i++)
        wg__process_list_fini(&looks->processes[i]);
    wg__free(looks->items);
    wg__free(looks->errors);
    wg__free(looks->process_errors);
    wg__free(looks->processes);
}

static enum wg_code looks_init(struct looks *looks, size_t count, struct wg_error *err)
{
    *looks = (struct looks){.count = count};
    looks->items = wg__alloc_zeroed(count + 1, sizeof *looks->items);
    looks->errors = wg__alloc_zeroed(count + 1, sizeof *looks->errors);
    looks->process_errors = wg__alloc_zeroed(count + 1, sizeof *looks->process_errors);
    looks->processes = wg__alloc_zeroed(count + 1, sizeof *looks->processes);
    if (looks->items == NULL || looks->errors == NULL || looks->process_errors == NULL ||
        looks->processes == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    return WG_OK;
}

static void look_at(const struct args *args, struct wg_device *device, struct looks *looks,
                    size_t position)
{
    struct wg_device_look *look = &looks->items[position];
    if (wg_device_read(device, UINT32_MAX, &look->sample, &looks->errors[position]) != WG_OK) {
        look->sample = (struct wg_sample){0};
        look->trouble = looks->errors[position].text;
    }
    if (!args->processes || wg_device_get_info(device)->kind != WG_DEVICE_GPU)
        return;
    struct wg_process_list *list = &looks->processes[position];
    const char *root = args->devices.device == NULL ? args->devices.root : NULL;
    if (wg__process_list_read(list, device, args->devices.device == NULL, root,
                              &looks->process_errors[position]) != WG_OK)
        look->process_trouble = looks->process_errors[position].text;
    look->processes = list->items;
    look->process_count = list->count;
}

static enum wg_code show(const struct args *args, struct wg_machine *machine, struct wg_error *err)
{
    struct wg_devices_report report = {.device_count = wg_machine_device_count(machine),
                                       .backend_count = wg_machine_backend_count(machine),
                                       .has_processes = args->processes,
                                       .is_detailed = args->all};
    struct looks looks;
    struct wg_buffer text;
    wg__buffer_init(&text);
    enum wg_code code = looks_init(&looks, report.device_count, err);
    if (code == WG_OK)
        code = wg__machine_infos(machine, &report.infos, err);
    if (code == WG_OK)
        code = wg__machine_backends(machine, &report.backends, err);
    if (code == WG_OK) {
        for (size_t i = 0; i < report.device_count; i++)
            look_at(args, wg_machine_device(machine, i), &looks, i);
        report.looks = looks.items;
        if (args->json)
            wg__devices_json(&report, &text);
        else
            wg__devices_text(&report, wg__wants_color(stdout), &text);
        code = wg__command_print(stdout, &text, err);
    }
    wg__buffer_fini(&text);
    looks_fini(&looks);
    wg__free((void *)report.infos);
    wg__free((void *)report.backends);
    return code;
}

static int run(int argc, char *argv[])
{
    struct args args = {.devices = WG_DEVICE_ARGS_DEFAULT};
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    struct wg_error err;
    struct wg_machine *machine = NULL;
    enum wg_code code = wg__device_args_open(&args.devices, &machine, &err);
    if (code == WG_OK)
        code = show(&args, machine, &err);
    if (code != WG_OK)
        status = wg__command_fail(&set, &err);
    wg_machine_close(machine);
    return status;
}

const struct wg_command wg__command_devices = {
    .name = "devices",
    .summary = "Show what can be measured and set here, and for the rest why not",
    .run = run};
