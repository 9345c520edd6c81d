/* SPDX-License-Identifier: MIT
 *
 * The guard; see guard.h.
 *
 * It gets three files and nothing else of its parent:
 *
 *     3    the journal, open: with it the lock that says "held" (device/journal_folder.h)
 *     4    readable when the parent has died: a pidfd of it, or, where the kernel has none, a pipe
 *          whose other end dies with the parent
 *     5    a pipe for one byte: "I watch"
 *
 * It blocks all signals but SIGUSR1, by which wg__guard_stop asks it to look whether the journal
 * was ended; SIGKILL cannot be helped, which is why the parent watches the guard in turn.
 *
 * Environment and working folder are kept: they say where libraries and a virtual GPU are.
 *
 * Owns: nothing.    Threads: one at a time.
 */
#include "live/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/restore.h"

enum { JOURNAL_FD = 3, PARENT_FD = 4, READY_FD = 5, FIRST_FREE_FD = 10 };
enum { START_WAIT_MS = 20000, STOP_WAIT_MS = 3000 };

static const uint64_t patience_ns = 600000000000;

static int open_pidfd(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0); /* closes on exec by itself */
}

/* Waits until `fd` has something or its other end is gone. */
static bool wait_fd(int fd, int timeout_ms)
{
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    const uint64_t until_ns = wg__clock_ns() + (uint64_t)timeout_ms * 1000000U;
    int found = 0;
    do {
        found = poll(&watched, 1, timeout_ms);
    } while (found < 0 && errno == EINTR && wg__clock_ns() < until_ns);
    return found > 0;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

/* -- The parent's side ------------------------------------------------------------------------ */

/* What the guard is started with; our ends of the pipes stay here. */
struct plan {
    int journal, parent, ready; /* above those that the guard gets, so that none is overwritten */
    int lifeline;               /* our end of the pipe that stands in for a pidfd; -1: none */
    int sign;                   /* where its byte comes */
};

static int lift(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
}

static void plan_fini(struct plan *plan)
{
    close_fd(plan->journal);
    close_fd(plan->parent);
    close_fd(plan->ready);
    close_fd(plan->sign);
}

static enum wg_code plan_init(struct plan *plan, int journal_fd, struct wg_error *err)
{
    *plan = (struct plan){
        .journal = lift(journal_fd), .parent = -1, .ready = -1, .lifeline = -1, .sign = -1};
    int pipes[2] = {-1, -1};
    int parent = open_pidfd(getpid());
    bool good = plan->journal >= 0;
    if (parent < 0 && pipe2(pipes, O_CLOEXEC) == 0) {
        parent = pipes[0];
        plan->lifeline = pipes[1]; /* never closed by us: it goes with this process */
    }
    plan->parent = lift(parent);
    close_fd(parent);
    good = good && plan->parent >= 0 && pipe2(pipes, O_CLOEXEC) == 0;
    if (good) {
        plan->sign = pipes[0];
        plan->ready = lift(pipes[1]);
        close_fd(pipes[1]);
        good = plan->ready >= 0;
    }
    if (good)
        return WG_OK;
    (void)wg__fail(err, WG_EIO, "opening files for the guard of settings: %s", strerror(errno));
    plan_fini(plan);
    close_fd(plan->lifeline);
    return WG_EIO;
}

static int add_files(posix_spawn_file_actions_t *actions, const struct plan *plan)
{
    int failed = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    for (int fd = 1; fd <= 2 && failed == 0; fd++)
        failed = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_WRONLY, 0);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(actions, plan->journal, JOURNAL_FD);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(actions, plan->parent, PARENT_FD);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(actions, plan->ready, READY_FD);
    if (failed == 0)
        failed = posix_spawn_file_actions_addclosefrom_np(actions, READY_FD + 1);
    return failed;
}

/* All signals are blocked from its first instruction on. */
static int add_attributes(posix_spawnattr_t *attributes)
{
    sigset_t all;
    (void)sigfillset(&all);
    int failed = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    if (failed == 0)
        failed = posix_spawnattr_setsigmask(attributes, &all);
    return failed;
}

static int spawn(pid_t *pid_out, const char *program, const struct plan *plan)
{
    char name[] = "wattgov";
    char word[] = "guard";
    char *words[] = {name, word, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed != 0)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (failed == 0) {
        failed = add_files(&actions, plan);
        if (failed == 0)
            failed = add_attributes(&attributes);
        if (failed == 0)
            failed = posix_spawn(pid_out, program, &actions, &attributes, words, environ);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* Takes its exit status, when it has ended. */
static bool reap(pid_t pid)
{
    pid_t reaped = 0;
    do {
        reaped = waitpid(pid, NULL, WNOHANG);
    } while (reaped < 0 && errno == EINTR);
    return reaped == pid || (reaped < 0 && errno == ECHILD);
}

static void guard_fini(struct wg_guard *guard)
{
    close_fd(guard->pidfd);
    *guard = (struct wg_guard){.pidfd = -1};
}

static enum wg_code wait_ready(struct wg_guard *guard, struct plan *plan, const char *program,
                               struct wg_error *err)
{
    char byte = 0;
    close_fd(plan->ready); /* so that the end of the guard is the end of the pipe */
    plan->ready = -1;
    const bool has_sign = wait_fd(plan->sign, START_WAIT_MS) && read(plan->sign, &byte, 1) == 1;
    if (has_sign)
        return WG_OK;
    (void)kill(guard->pid, SIGKILL);
    (void)waitpid(guard->pid, NULL, 0);
    guard_fini(guard);
    return wg__fail(err, WG_EIO, "the guard of settings (%s guard) has given no sign of life",
                    program);
}

enum wg_code wg__guard_start(struct wg_guard *guard, const char *program, int journal_fd,
                             struct wg_error *err)
{
    *guard = (struct wg_guard){.pidfd = -1};
    if (program == NULL)
        program = "/proc/self/exe";
    struct plan plan;
    enum wg_code code = plan_init(&plan, journal_fd, err);
    if (code != WG_OK)
        return code;
    const int failed = spawn(&guard->pid, program, &plan);
    if (failed != 0) {
        *guard = (struct wg_guard){.pidfd = -1};
        code = wg__fail(err, WG_EIO, "starting the guard of settings, %s: %s", program,
                        strerror(failed));
    } else {
        guard->pidfd = open_pidfd(guard->pid);
        code = wait_ready(guard, &plan, program, err);
    }
    plan_fini(&plan);
    if (code != WG_OK)
        close_fd(plan.lifeline);
    return code;
}

bool wg__guard_is_alive(const struct wg_guard *guard)
{
    if (guard->pid == 0)
        return false;
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)guard->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        return info.si_pid == 0;
    return guard->pidfd >= 0 && !wait_fd(guard->pidfd, 0); /* somebody else waits for children */
}

void wg__guard_stop(struct wg_guard *guard)
{
    if (guard->pid == 0)
        return;
    const uint64_t until_ns = wg__clock_ns() + (uint64_t)STOP_WAIT_MS * 1000000U;
    if (wg__guard_is_alive(guard))
        (void)kill(guard->pid, SIGUSR1);
    while (!reap(guard->pid) && wg__clock_ns() < until_ns) {
        if (guard->pidfd < 0)
            (void)poll(NULL, 0, 5);
        else if (!wait_fd(guard->pidfd, STOP_WAIT_MS))
            break; /* the journal was not ended: it stays */
    }
    guard_fini(guard);
}

/* -- The guard's side ------------------------------------------------------------------------- */

static void on_stop(int signal)
{
    (void)signal; /* it interrupts poll, no more */
}

/* Being killed for want of memory is for others. */
static void stay(void)
{
    static const char *const scores[] = {"-1000", "-500", "0"};
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    for (size_t i = 0; fd >= 0 && i < sizeof scores / sizeof *scores; i++)
        if (write(fd, scores[i], strlen(scores[i])) > 0)
            break;
    close_fd(fd);
}

/* Until the parent has died; false: the journal was ended before. */
static bool watch(void)
{
    sigset_t waited;
    (void)sigfillset(&waited);
    (void)sigdelset(&waited, SIGUSR1);
    for (;;) {
        struct pollfd parent = {.fd = PARENT_FD, .events = POLLIN};
        const int found = ppoll(&parent, 1, NULL, &waited);
        if (found > 0)
            return true;
        bool is_ended = false;
        if (found < 0 && errno == EINTR &&
            wg__restore_is_ended(JOURNAL_FD, &is_ended, NULL) == WG_OK && is_ended)
            return false;
    }
}

int wg__guard_main(int argc, char *argv[])
{
    (void)argc;
    (void)argv;
    enum { FAILED = 1, BY_HAND = 2 };
    static const int files[] = {JOURNAL_FD, PARENT_FD, READY_FD};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const int flags = fcntl(files[i], F_GETFD);
        if (flags < 0 || fcntl(files[i], F_SETFD, flags | FD_CLOEXEC) != 0)
            return BY_HAND;
    }
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    const struct sigaction stop = {.sa_handler = on_stop};
    bool is_ended = false;
    if (sigaction(SIGUSR1, &stop, NULL) != 0 ||
        wg__restore_is_ended(JOURNAL_FD, &is_ended, NULL) != WG_OK)
        return FAILED;
    stay();
    if (write(READY_FD, "1", 1) != 1)
        return FAILED; /* the parent has died before it could set anything */
    close_fd(READY_FD);
    struct wg_restore_summary summary = {0};
    if (!is_ended && watch() &&
        (wg__restore_journal(JOURNAL_FD, patience_ns, NULL, NULL, &summary, NULL) != WG_OK ||
         summary.failed > 0))
        return FAILED;
    return 0;
}
