/* SPDX-License-Identifier: MIT
 *
 * The options that all commands on devices share: which GPUs, which machine, how patient.
 *
 *     struct args { struct wg_device_args devices; bool json; };
 *     static const struct wg_option options[] = {
 *         WG_DEVICE_OPTIONS(struct args, devices),
 *         {.name = "json", ...},
 *     };
 *
 * Owns: nothing.    Threads: the main thread.
 */
#ifndef WG_CLI_DEVICE_ARGS_H
#define WG_CLI_DEVICE_ARGS_H

#include "cli/options.h"
#include "wattgov/device.h"

struct wg_buffer;

struct wg_device_args {
    struct wg_option_list gpus;
    const char *device;
    const char *root;
    double timeout_s; /* WG_DEVICE_ARGS_DEFAULT sets it */
};

#define WG_DEVICE_ARGS_DEFAULT {.timeout_s = 5}

/* clang-format off */
#define WG_DEVICE_OPTIONS(type, field)                                                             \
    {.name = "gpu",                                                                                \
     WG_OPTION_LIST(type, field.gpus),                                                             \
     .value = "SEL",                                                                               \
     .fallback = "what CUDA_VISIBLE_DEVICES lets through, else all",                               \
     .help = "GPU: index, range, UUID or its beginning, PCI address, cuda:N, all, none."},         \
    {.name = "device",                                                                             \
     WG_OPTION_STRING(type, field.device),                                                         \
     .value = "replay:FILE",                                                                       \
     .fallback = "this machine",                                                                   \
     .help = "A machine that wattgov record wrote, instead of this one."},                         \
    {.name = "root",                                                                               \
     WG_OPTION_STRING(type, field.root),                                                           \
     .value = "DIR",                                                                               \
     .fallback = "/",                                                                              \
     .help = "Folder that holds sys and proc: the tree of another machine."},                      \
    {.name = "timeout",                                                                            \
     WG_OPTION_DURATION(type, field.timeout_s),                                                    \
     .value = "TIME",                                                                              \
     .min = 0.01,                                                                                  \
     .max = 600,                                                                                   \
     .help = "A driver call that takes longer counts as hung."}
/* clang-format on */

/* Opens the machine that the options ask for. */
enum wg_code wg__device_args_open(const struct wg_device_args *args, struct wg_machine **out,
                                  struct wg_error *err);

/* The tables of pointers that reports take: one info a device, one a backend. `*out` is an array of
 * pointers (wg__free), never NULL on success. */
enum wg_code wg__machine_infos(const struct wg_machine *machine,
                               const struct wg_device_info *const **out, struct wg_error *err);
enum wg_code wg__machine_backends(const struct wg_machine *machine,
                                  const struct wg_backend_info *const **out, struct wg_error *err);

#endif
