/* SPDX-License-Identifier: MIT
 *
 * The program `wattgov-vgpu`: runs commands on virtual GPUs, and plays the hardware's part.
 *
 *     wattgov-vgpu run --machine 8xh100 -- wattgov devices
 *     wattgov-vgpu fault lost --gpu 3            from another terminal
 */
#include <stddef.h>

#include "cli/program.h"
#include "vgpu/program.h"

static const struct wg_command *const commands[] = {
    &vgpu_command_run,   &vgpu_command_list, &vgpu_command_show,
    &vgpu_command_fault, &vgpu_command_load, NULL,
};

static const struct wg_command root = {
    .name = "wattgov-vgpu",
    .summary = "Virtual GPUs: every NVML client sees them, several processes share them.",
    .children = commands,
};

static int run(int argc, char *argv[])
{
    return wg__command_dispatch(&root, argc, argv);
}

int main(int argc, char *argv[])
{
    return wg__program("wattgov-vgpu", run, argc, argv);
}
