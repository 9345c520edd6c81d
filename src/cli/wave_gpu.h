/* SPDX-License-Identifier: MIT
 *
 * The GPU that `--gpu` of the commands of `wattgov wave` names.
 *
 *     a100-sxm4-80gb, "NVIDIA L4"   of the table that is built in, by id, alias or NVML's name
 *     my-gpu.yaml, ./my-gpu         a file (cli/gpu_file.h): what ends in .yaml or .yml, or has '/'
 *     live, live:1                  the first GPU of this machine, or one by index, PCI address or
 *                                   UUID, looked up in the table by its name
 *
 * Only `live` touches a device, and that only to ask its name. A GPU that the table lacks is an
 * error that says how to describe it: it is never taken for a similar one in silence.
 *
 * Owns: the spec and its texts.    Threads: the main thread.
 */
#ifndef WG_CLI_WAVE_GPU_H
#define WG_CLI_WAVE_GPU_H

#include "base/arena.h"
#include "wave/gpu.h"

struct wg_wave_gpu {
    struct wg_gpu_spec spec;
    struct wg_gpu_table *table; /* the built-in one */
    struct wg_arena arena;
};

/* `word` as above. WG_ENODEV: no such GPU; WG_EINVAL: "live:" of another form; errors of the file
 * and of the devices. Close it after a failure too; it must have been zeroed. */
enum wg_code wg__wave_gpu_open(struct wg_wave_gpu *out, const char *word, struct wg_error *err);
void wg__wave_gpu_close(struct wg_wave_gpu *gpu); /* accepts NULL and a zeroed one */

/* The table's GPU that a device's name stands for: NVML's names, and those of Jetson boards.
 * WG_ENODEV: see above. */
enum wg_code wg__wave_gpu_of_device(const struct wg_gpu_table *table, const char *name,
                                    const struct wg_gpu_spec **out, struct wg_error *err);

#endif
