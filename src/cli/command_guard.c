/* SPDX-License-Identifier: MIT
 *
 * `wattgov guard`: the process that gives settings back when the one that made them dies. Not for
 * users: it is started with files of its parent (live/guard.h).
 */
#include <stdio.h>

#include "cli/command.h"
#include "live/guard.h"

static int run(int argc, char *argv[])
{
    const int status = wg__guard_main(argc, argv);
    if (status == WG_EXIT_USAGE)
        (void)fprintf(stderr, "wattgov guard: wattgov starts it by itself, with files of its own; "
                              "to give settings back by hand: wattgov restore\n");
    return status;
}

const struct wg_command wg__command_guard = {
    .name = "guard", .summary = "Give settings back", .run = run, .is_hidden = true};
