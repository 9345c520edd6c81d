/* SPDX-License-Identifier: MIT
 *
 * The program `wattgov-vgpu`: runs commands on virtual GPUs, and plays the hardware's part.
 *
 *     wattgov-vgpu run --machine 8xh100 -- wattgov devices
 *     wattgov-vgpu fault lost --gpu 3            from another terminal
 */
#include <stdio.h>
#include <string.h>

#include "vgpu/program.h"
#include "wattgov/version.h"

static const struct wg_command *const commands[] = {
    &vgpu_command_run,   &vgpu_command_list, &vgpu_command_show,
    &vgpu_command_fault, &vgpu_command_load, NULL,
};

static const struct wg_command root = {
    .name = "wattgov-vgpu",
    .summary = "Virtual GPUs: every NVML client sees them, several processes share them.",
    .children = commands,
};

int main(int argc, char *argv[])
{
    if (!vgpu_begin())
        return WG_EXIT_FAILED;
    int status;
    if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
        (void)printf("wattgov-vgpu %s\n", wg_version()); /* checked below */
        status = WG_EXIT_OK;
    } else {
        status = wg__command_dispatch(&root, argc, argv);
    }
    return vgpu_finish("wattgov-vgpu", status);
}
