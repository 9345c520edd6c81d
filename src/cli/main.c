/* SPDX-License-Identifier: MIT
 *
 * The program `wattgov`: the table of commands.
 */
#include <stddef.h>

#include "cli/command.h"
#include "cli/program.h"
#include "cli/stale_settings.h"

/* In the order of use. */
static const struct wg_command *const commands[] = {
    &wg__command_devices,  &wg__command_measure, &wg__command_top,   &wg__command_train,
    &wg__command_job,      &wg__command_tune,    &wg__command_wave,  &wg__command_record,
    &wg__command_simulate, &wg__command_restore, &wg__command_guard, NULL,
};

static const struct wg_command root = {
    .name = "wattgov",
    .summary =
        "Measures what programs cost in joules on GPUs, processors and memory, and finds the "
        "settings\nwith which training, recurring jobs and inference servers cost least.",
    .children = commands,
    .epilog = "examples:\n"
              "  wattgov devices\n"
              "  wattgov measure -- python train.py\n"
              "  wattgov train -- python train.py\n"
              "  wattgov tune --knob power_limit --knob batch=1,2,4,8:batch --limit 'p99_s<=100ms' "
              "\\\n      -- python bench.py --batch {batch}\n"
              "  wattgov simulate training --trace data/zeus/trace --gpu v100 --job squad",
};

static int run(int argc, char *argv[])
{
    if (wg__wants_stale_restored(argc, argv))
        wg__restore_stale_settings();
    return wg__command_dispatch(&root, argc, argv);
}

int main(int argc, char *argv[])
{
    return wg__program("wattgov", run, argc, argv);
}
