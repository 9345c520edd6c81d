/* SPDX-License-Identifier: MIT
 *
 * The process that ends a group after us; see group_reaper.h.
 */
#include "live/group_reaper.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS = 40 }; /* at a group that was asked to end; 50 ms apart */

static const struct timespec between_looks = {.tv_nsec = 50000000};

static void end_group(pid_t group)
{
    bool is_there = kill(-group, SIGTERM) == 0;
    (void)kill(-group, SIGCONT); /* one that is stopped would never see it */
    for (int i = 0; i < LOOKS && is_there; i++) {
        (void)nanosleep(&between_looks, NULL);
        is_there = kill(-group, 0) == 0;
    }
    if (is_there)
        (void)kill(-group, SIGKILL);
}

/* The process itself: between fork and its end, only calls that are safe in signal handlers. */
static _Noreturn void stand_by(int socket)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    (void)setsid();
    (void)prctl(PR_SET_NAME, "wattgov-reaper");
    /* Whoever reads what we write must not wait for it. */
    if (socket > 0)
        (void)close_range(0, (unsigned)socket - 1, 0);
    (void)close_range((unsigned)socket + 1, ~0u, 0);
    pid_t group = 0;
    ssize_t got;
    do {
        pid_t told = 0;
        got = recv(socket, &told, sizeof told, 0);
        if (got == (ssize_t)sizeof told)
            group = told;
    } while (got > 0 || (got < 0 && errno == EINTR));
    if (group > 0)
        end_group(group);
    _exit(0);
}

void wg__group_reaper_start(struct wg_group_reaper *reaper)
{
    *reaper = (struct wg_group_reaper){.socket = -1};
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
        return;
    const pid_t pid = fork();
    if (pid == 0)
        stand_by(sockets[1]);
    (void)close(sockets[1]);
    if (pid > 0)
        *reaper = (struct wg_group_reaper){.pid = pid, .socket = sockets[0]};
    else
        (void)close(sockets[0]);
}

void wg__group_reaper_tell(const struct wg_group_reaper *reaper, pid_t group)
{
    if (reaper->pid != 0)
        (void)send(reaper->socket, &group, sizeof group, MSG_NOSIGNAL);
}

void wg__group_reaper_stop(struct wg_group_reaper *reaper)
{
    if (reaper->pid == 0)
        return;
    wg__group_reaper_tell(reaper, 0);
    (void)close(reaper->socket);
    while (waitpid(reaper->pid, NULL, 0) == -1 && errno == EINTR) {
    }
    *reaper = (struct wg_group_reaper){.socket = -1};
}
