/* SPDX-License-Identifier: MIT
 *
 * The process that tells signals to the group from those to us; see group_watch.h.
 *
 * Question and answer go over a pair of sockets: a byte there, a mask of signals back.
 */
#include "live/group_watch.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 1000, /* it answers at once, but may wait for a processor */
    SIGNAL_COUNT = 64,  /* of Linux */
};

/* Which signals are pending; takes them. */
static uint64_t take_pending(const sigset_t *all)
{
    static const struct timespec now = {0};
    uint64_t taken = 0;
    int number;
    while ((number = sigtimedwait(all, NULL, &now)) > 0)
        if (number <= SIGNAL_COUNT)
            taken |= UINT64_C(1) << (number - 1);
    return taken;
}

/* The process itself: between fork and its end, only calls that are safe in signal handlers. */
static _Noreturn void watch_group(int socket, pid_t parent)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "wattgov-signals");
    /* Whoever reads what the command writes must not wait for us. */
    if (socket > 0)
        (void)close_range(0, (unsigned)socket - 1, 0);
    (void)close_range((unsigned)socket + 1, ~0u, 0);
    for (char question = 0; getppid() == parent && read(socket, &question, 1) == 1;) {
        const uint64_t taken = take_pending(&all);
        if (send(socket, &taken, sizeof taken, MSG_NOSIGNAL) != (ssize_t)sizeof taken)
            break;
    }
    _exit(0);
}

void wg__group_watch_start(struct wg_group_watch *watch)
{
    *watch = (struct wg_group_watch){0};
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
        return;
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0)
        watch_group(sockets[1], parent);
    (void)close(sockets[1]);
    if (pid > 0)
        *watch = (struct wg_group_watch){.pid = pid, .socket = sockets[0]};
    else
        (void)close(sockets[0]);
}

bool wg__group_watch_got(struct wg_group_watch *watch, int signal)
{
    if (watch->pid == 0 || signal < 1 || signal > SIGNAL_COUNT)
        return false;
    struct pollfd answer = {.fd = watch->socket, .events = POLLIN};
    uint64_t received = 0;
    if (send(watch->socket, "?", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 &&
        poll(&answer, 1, PATIENCE_MS) == 1 &&
        recv(watch->socket, &received, sizeof received, MSG_DONTWAIT) == (ssize_t)sizeof received)
        watch->received |= received;
    const uint64_t bit = UINT64_C(1) << (signal - 1);
    const bool has_got = (watch->received & bit) != 0;
    watch->received &= ~bit;
    return has_got;
}

void wg__group_watch_stop(struct wg_group_watch *watch)
{
    if (watch->pid == 0)
        return;
    (void)close(watch->socket);
    (void)kill(watch->pid, SIGKILL);
    while (waitpid(watch->pid, NULL, 0) == -1 && errno == EINTR) {
    }
    *watch = (struct wg_group_watch){0};
}
