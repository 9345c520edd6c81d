/* SPDX-License-Identifier: MIT
 *
 * Running a command; see child.h.
 *
 * posix_spawn reports a failing exec to us, with its errno, and copies no page tables: starting is
 * as cheap with a large parent. wait4 gives the processor time and memory of this one child.
 */
#include "cli/child.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static const uint64_t ns_per_s = 1000000000;

static bool is_ignored(int signal)
{
    struct sigaction action;
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void wg__signals_block(struct wg_signals *signals, bool for_command)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    static const int messages[] = {SIGUSR1, SIGUSR2};
    (void)sigemptyset(&signals->waited);
    /* The kernel keeps an ignored signal that is blocked, so those must stay out. */
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (!is_ignored(ends[i]))
            (void)sigaddset(&signals->waited, ends[i]);
    for (size_t i = 0; for_command && i < sizeof messages / sizeof *messages; i++)
        if (!is_ignored(messages[i]))
            (void)sigaddset(&signals->waited, messages[i]);
    if (for_command) {
        (void)sigaddset(&signals->waited, SIGCHLD);
        /* Whoever ignores it has its children reaped by the kernel, and learns nothing of them. */
        if (is_ignored(SIGCHLD))
            (void)signal(SIGCHLD, SIG_DFL);
    }
    (void)pthread_sigmask(SIG_BLOCK, &signals->waited, &signals->before);
}

void wg__signals_restore(const struct wg_signals *signals)
{
    (void)pthread_sigmask(SIG_SETMASK, &signals->before, NULL);
}

int wg__signals_wait(const struct wg_signals *signals, uint64_t deadline_ns,
                     bool *from_terminal_out)
{
    for (;;) {
        siginfo_t info = {0};
        int number;
        if (deadline_ns == UINT64_MAX) {
            number = sigwaitinfo(&signals->waited, &info);
        } else {
            const uint64_t now_ns = wg__clock_ns();
            const uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
            const struct timespec left = {.tv_sec = (time_t)(left_ns / ns_per_s),
                                          .tv_nsec = (long)(left_ns % ns_per_s)};
            number = sigtimedwait(&signals->waited, &info, &left);
        }
        if (number > 0) {
            *from_terminal_out = info.si_code == SI_KERNEL;
            return number;
        }
        if (errno != EINTR) /* of a stop and continue, say */
            return 0;
    }
}

/* The words of posix_spawn for a child as a shell would start it. */
static int spawn(pid_t *pid, char *const *words, const struct wg_signals *signals)
{
    posix_spawnattr_t attributes;
    int code = posix_spawnattr_init(&attributes);
    if (code != 0)
        return code;
    sigset_t defaults;
    (void)sigemptyset(&defaults);
    (void)sigaddset(&defaults, SIGPIPE);
    (void)sigaddset(&defaults, SIGXFSZ);
    (void)posix_spawnattr_setsigdefault(&attributes, &defaults);
    (void)posix_spawnattr_setsigmask(&attributes, &signals->before);
    code = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    if (code == 0)
        code = posix_spawnp(pid, words[0], NULL, &attributes, words, environ);
    (void)posix_spawnattr_destroy(&attributes);
    return code;
}

enum wg_code wg__child_start(struct wg_child *child, char *const *words,
                             const struct wg_signals *signals, struct wg_error *err)
{
    *child = (struct wg_child){0};
    const int code = spawn(&child->pid, words, signals);
    if (code == 0)
        return WG_OK;
    child->has_ended = true;
    child->status = code == ENOENT ? WG_EXIT_NOT_FOUND : WG_EXIT_NOT_EXECUTABLE;
    return wg__fail_errno(err, code, "cannot run '%s'", words[0]);
}

static double seconds(struct timeval span)
{
    return (double)span.tv_sec + (double)span.tv_usec / 1e6;
}

void wg__child_check(struct wg_child *child)
{
    if (child->has_ended)
        return;
    int status = 0;
    struct rusage usage = {0};
    pid_t pid;
    do
        pid = wait4(child->pid, &status, WNOHANG, &usage);
    while (pid == -1 && errno == EINTR);
    if (pid == 0)
        return;
    child->has_ended = true;
    if (pid == -1) { /* somebody else has reaped it: how it ended can't be known */
        child->status = 1;
        return;
    }
    if (WIFSIGNALED(status)) {
        child->signal = WTERMSIG(status);
        child->status = WG_EXIT_SIGNAL + child->signal;
    } else {
        child->status = WEXITSTATUS(status);
    }
    child->user_s = seconds(usage.ru_utime);
    child->system_s = seconds(usage.ru_stime);
    child->peak_memory_bytes = (uint64_t)usage.ru_maxrss * 1024; /* Linux counts it in KiB */
}

void wg__child_pass(const struct wg_child *child, int signal)
{
    /* Not reaped yet, so the number is still its own; it may be a zombie, which takes no harm. */
    if (!child->has_ended)
        (void)kill(child->pid, signal);
}

void wg__signal_name(char out[static WG_SIGNAL_NAME_SIZE], int signal)
{
    const char *name = sigabbrev_np(signal);
    if (name != NULL)
        (void)snprintf(out, WG_SIGNAL_NAME_SIZE, "SIG%s", name);
    else
        (void)snprintf(out, WG_SIGNAL_NAME_SIZE, "signal %d", signal);
}
