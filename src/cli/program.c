/* SPDX-License-Identifier: MIT
 *
 * The main function of our programs; see program.h.
 */
#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "wattgov/version.h"

/* A descriptor that the caller closed gets /dev/null, opened the wrong way round: using it still
 * fails. */
static void open_standard_descriptors(void)
{
    static const int flags[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
            (void)open("/dev/null", flags[fd]); /* takes the lowest free number: fd */
}

int wg__program(const char *name, int (*run)(int argc, char *argv[]), int argc, char *argv[])
{
    open_standard_descriptors();
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
        return WG_EXIT_FAILED;

    int status = WG_EXIT_OK;
    if (argc >= 2 && strcmp(argv[1], "--version") == 0)
        (void)printf("%s %s\n", name, wg_version()); /* checked below */
    else
        status = run(argc, argv);

    errno = 0;
    if (fclose(stdout) == 0 || status != WG_EXIT_OK)
        return status;
    (void)fprintf(stderr, "%s: cannot write the results: %s\n", name,
                  errno != 0 ? strerror(errno) : "an earlier write failed");
    return WG_EXIT_FAILED;
}
