/* SPDX-License-Identifier: MIT
 *
 * The program `wattgov`: the table of commands, and what must hold for each of them.
 *
 * Before a command runs, the three standard descriptors are open (or else a file that we open would
 * become "stdout" and receive the results), and SIGPIPE and SIGXFSZ are ignored, so that a reader
 * who leaves and a limit on the size of files are an error message and exit 1, like a full disk.
 * After it, stdout is flushed and checked: a result that didn't reach its reader is no success.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "wattgov/version.h"

/* In the order of use. */
static const struct wg_command *const commands[] = {
    &wg__command_devices, &wg__command_measure,  &wg__command_top,
    &wg__command_record,  &wg__command_simulate, NULL,
};

static const struct wg_command root = {
    .name = "wattgov",
    .summary =
        "Measures what programs cost in joules on GPUs, processors and memory, and finds the "
        "settings\nthat let recurring training jobs cost least.",
    .children = commands,
    .epilog = "examples:\n"
              "  wattgov devices\n"
              "  wattgov measure -- python train.py\n"
              "  wattgov simulate training --trace data/zeus/trace --gpu v100 --job squad",
};

/* A descriptor that the caller closed gets /dev/null, opened the wrong way round: using it still
 * fails. */
static void open_standard_descriptors(void)
{
    static const int flags[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
            (void)open("/dev/null", flags[fd]); /* takes the lowest free number: fd */
}

int main(int argc, char *argv[])
{
    open_standard_descriptors();
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
        return WG_EXIT_FAILED;

    int status;
    if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
        (void)printf("wattgov %s\n", wg_version()); /* checked below */
        status = WG_EXIT_OK;
    } else {
        status = wg__command_dispatch(&root, argc, argv);
    }

    errno = 0;
    const bool was_written = fclose(stdout) == 0;
    if (!was_written && status == WG_EXIT_OK) {
        (void)fprintf(stderr, "wattgov: cannot write the results: %s\n",
                      errno != 0 ? strerror(errno) : "an earlier write failed");
        status = WG_EXIT_FAILED;
    }
    return status;
}
