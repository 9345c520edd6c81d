/* SPDX-License-Identifier: MIT
 *
 * Running a command; see child.h.
 *
 * posix_spawn reports a failing exec to us, with its errno, and copies no page tables: starting is
 * as cheap with a large parent. It does not run scripts without "#!", which execvp does, so we look
 * for those ourselves. wait4 gives the processor time and memory of this one child.
 */
#include "live/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

static const uint64_t ns_per_s = 1000000000;

/* A signal that comes again within this time is the same one; see child.h. */
static const struct timespec same_signal = {.tv_nsec = 10000000};

static bool is_ignored(int signal)
{
    struct sigaction action;
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* The kernel keeps an ignored signal that is blocked, so those must stay out. */
static void wait_unless_ignored(struct wg_signals *signals, int number)
{
    if (!is_ignored(number))
        (void)sigaddset(&signals->waited, number);
}

void wg__signals_block(struct wg_signals *signals, bool for_command)
{
    /* Batch systems warn by any of them before they kill. Not among them: what a fault of our own
     * raises, and what stops or is ignored by default. */
    static const int numbers[] = {SIGINT,    SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2,  SIGALRM,
                                  SIGVTALRM, SIGPROF, SIGXCPU, SIGPWR,  SIGIO,   SIGSTKFLT};
    *signals = (struct wg_signals){0};
    (void)sigemptyset(&signals->waited);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        wait_unless_ignored(signals, numbers[i]);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        wait_unless_ignored(signals, number);
    if (for_command) {
        (void)sigaddset(&signals->waited, SIGCHLD);
        /* Whoever ignores it has its children reaped by the kernel, and learns nothing of them. */
        if (is_ignored(SIGCHLD))
            (void)signal(SIGCHLD, SIG_DFL);
    }
    (void)pthread_sigmask(SIG_BLOCK, &signals->waited, &signals->before);
    if (for_command)
        wg__group_watch_start(&signals->watch);
}

void wg__signals_add(struct wg_signals *signals, int number)
{
    sigset_t one;
    (void)sigemptyset(&one);
    (void)sigaddset(&one, number);
    (void)sigaddset(&signals->waited, number);
    (void)pthread_sigmask(SIG_BLOCK, &one, NULL);
}

void wg__signals_restore(struct wg_signals *signals)
{
    wg__group_watch_stop(&signals->watch);
    (void)pthread_sigmask(SIG_SETMASK, &signals->before, NULL);
}

/* Whether a signal that has just come was for the group. */
static bool is_to_group(struct wg_signals *signals, const siginfo_t *info)
{
    bool to_group = wg__group_watch_got(&signals->watch, info->si_signo);
    if (info->si_code == SI_KERNEL)
        return true;
    if (signals->watch.pid == 0)
        return false;
    sigset_t same;
    (void)sigemptyset(&same);
    (void)sigaddset(&same, info->si_signo);
    if (sigtimedwait(&same, NULL, &same_signal) > 0)
        to_group |= wg__group_watch_got(&signals->watch, info->si_signo);
    return to_group;
}

int wg__signals_wait(struct wg_signals *signals, uint64_t deadline_ns, bool *to_group_out)
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
            *to_group_out = number != SIGCHLD && is_to_group(signals, &info);
            return number;
        }
        if (errno != EINTR) /* of a stop and continue, say */
            return 0;
    }
}

bool wg__signal_ends(int number)
{
    return number != SIGCHLD && number != SIGCONT;
}

bool wg__signals_have_come(const struct wg_signals *signals)
{
    sigset_t pending;
    if (sigpending(&pending) != 0)
        return false;
    for (int number = 1; number <= SIGRTMAX; number++) {
        if (wg__signal_ends(number) && sigismember(&pending, number) == 1 &&
            sigismember(&signals->waited, number) == 1)
            return true;
    }
    return false;
}

/* The words of posix_spawn for a child as a shell would start it. */
static int spawn_with(pid_t *pid, char *const *words, const struct wg_signals *signals,
                      const struct wg_child_setup *setup, char *const *environment)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    int code = posix_spawnattr_init(&attributes);
    if (code != 0)
        return code;
    code = posix_spawn_file_actions_init(&actions);
    if (code != 0) {
        (void)posix_spawnattr_destroy(&attributes);
        return code;
    }
    sigset_t defaults;
    (void)sigemptyset(&defaults);
    (void)sigaddset(&defaults, SIGPIPE);
    (void)sigaddset(&defaults, SIGXFSZ);
    (void)posix_spawnattr_setsigdefault(&attributes, &defaults);
    (void)posix_spawnattr_setsigmask(&attributes, &signals->before);
    const bool is_detached = setup != NULL && setup->is_detached;
    const int group = is_detached ? POSIX_SPAWN_SETPGROUP : 0;
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    code = posix_spawnattr_setflags(
        &attributes, (short)(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | group));
    if (code == 0 && is_detached)
        code = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (code == 0 && setup != NULL && setup->out >= 0)
        code = posix_spawn_file_actions_adddup2(&actions, setup->out, STDOUT_FILENO);
    if (code == 0 && setup != NULL && setup->err >= 0)
        code = posix_spawn_file_actions_adddup2(&actions, setup->err, STDERR_FILENO);
    if (code == 0)
        code = posix_spawnp(pid, words[0], &actions, &attributes, words, environment);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return code;
}

/* Where execvp would find `name`: in PATH, the first file that may be run. */
static bool find_program(const char *name, char out[static PATH_MAX])
{
    const char *folders = getenv("PATH");
    if (strchr(name, '/') != NULL)
        folders = NULL;
    else if (folders == NULL)
        folders = "/bin:/usr/bin"; /* of execvp */
    for (const char *at = folders;; at++) {
        const size_t length = at != NULL ? strcspn(at, ":") : 0;
        const int written = snprintf(out, PATH_MAX, "%.*s%s%s", (int)length, at != NULL ? at : "",
                                     length > 0 ? "/" : "", name);
        struct stat status;
        if (written > 0 && written < PATH_MAX && stat(out, &status) == 0 &&
            S_ISREG(status.st_mode) && access(out, X_OK) == 0)
            return true;
        if (at == NULL || at[length] == '\0')
            return false;
        at += length;
    }
}

/* Starts the script words[0], which names no interpreter: /bin/sh SCRIPT ARG... */
static int spawn_script(pid_t *pid, char *const *words, const struct wg_signals *signals,
                        const struct wg_child_setup *setup, char *const *environment)
{
    char shell[] = "/bin/sh";
    char script[PATH_MAX];
    size_t count = 1; /* the program is there */
    while (words[count] != NULL)
        count++;
    if (!find_program(words[0], script))
        return ENOEXEC;
    char **with_shell = wg__alloc_zeroed(count + 2, sizeof *with_shell);
    if (with_shell == NULL)
        return ENOMEM;
    with_shell[0] = shell;
    with_shell[1] = script;
    for (size_t i = 1; i < count; i++)
        with_shell[i + 1] = words[i];
    const int code = spawn_with(pid, with_shell, signals, setup, environment);
    wg__free(with_shell);
    return code;
}

/* Whether `entry`, "NAME=VALUE", has the name of one in `others`. */
static bool is_replaced(const char *entry, const char *const *others)
{
    const size_t length = strcspn(entry, "=");
    for (; *others != NULL; others++)
        if (strncmp(entry, *others, length) == 0 && (*others)[length] == '=')
            return true;
    return false;
}

/* Ours, with what the command has of its own instead: the environment itself cannot be changed
 * while other threads may read it. Returns NULL when memory has run out. */
static char **make_environment(const char *const *own)
{
    size_t count = 0, own_count = 0, kept = 0;
    while (environ != NULL && environ[count] != NULL)
        count++;
    while (own[own_count] != NULL)
        own_count++;
    char **made = wg__alloc_zeroed(count + own_count + 1, sizeof *made);
    if (made == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (!is_replaced(environ[i], own))
            made[kept++] = environ[i];
    /* posix_spawn takes it as main gets it, and changes nothing. */
    memcpy(&made[kept], own, own_count * sizeof *own);
    return made;
}

static int spawn(pid_t *pid, char *const *words, const struct wg_signals *signals,
                 const struct wg_child_setup *setup)
{
    char **made = NULL;
    if (setup != NULL && setup->environment != NULL) {
        made = make_environment(setup->environment);
        if (made == NULL)
            return ENOMEM;
    }
    char *const *environment = made != NULL ? made : environ;
    int code = spawn_with(pid, words, signals, setup, environment);
    if (code == ENOEXEC)
        code = spawn_script(pid, words, signals, setup, environment);
    wg__free(made);
    return code;
}

enum wg_code wg__child_start(struct wg_child *child, char *const *words,
                             const struct wg_signals *signals, const struct wg_child_setup *setup,
                             struct wg_error *err)
{
    *child = (struct wg_child){0};
    const int code = spawn(&child->pid, words, signals, setup);
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

void wg__child_pass(const struct wg_child *child, int signal, bool to_group)
{
    if (to_group && getpgid(child->pid) == getpgrp())
        return;
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
