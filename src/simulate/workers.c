/* SPDX-License-Identifier: MIT
 *
 * Tasks spread over processes: see workers.h.
 *
 * Owns: the pipe and the shared counters.    Threads: as the header says.
 */
#include "simulate/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_MS = 200 /* between two looks at the workers, when none says anything */ };

struct failure {
    size_t task;
    enum wg_code code; /* WG_OK: none */
    struct wg_error error;
};

struct board {
    atomic_size_t next_task;
    atomic_bool has_failed;
    struct failure failures[WG_WORKERS_MAX]; /* a worker has one place, and ends with it */
};

static size_t whole_size(size_t count, size_t size)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes))
        return 0;
    return bytes > 0 ? bytes : 1;
}

void *wg__shared_alloc(size_t count, size_t size)
{
    const size_t bytes = whole_size(count, size);
    if (bytes == 0)
        return NULL;
    /* cppcheck-suppress invalidFunctionArg ; -1 is what anonymous memory asks for */
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    return memory;
}

void wg__shared_free(void *memory, size_t count, size_t size)
{
    if (memory)
        (void)munmap(memory, whole_size(count, size));
}

size_t wg__processor_count(size_t max)
{
    cpu_set_t processors;
    if (sched_getaffinity(0, sizeof processors, &processors) != 0)
        return 1;
    const int found = CPU_COUNT(&processors);
    const size_t count = found > 0 ? (size_t)found : 1;
    return count < max ? count : max;
}

/* Takes tasks until none is left. `pipe_fd` < 0: in the caller's process, which counts itself. */
static void work(const struct wg_workers_request *request, struct board *board, size_t worker,
                 int pipe_fd)
{
    struct failure *failure = &board->failures[worker];
    /* A task that was taken is run, so that the least failure is the same for every number. */
    while (!atomic_load(&board->has_failed)) {
        const size_t task = atomic_fetch_add(&board->next_task, 1);
        if (task >= request->tasks)
            return;
        const enum wg_code code = request->run(request->context, task, &failure->error);
        if (code != WG_OK) {
            failure->task = task;
            failure->code = code;
            atomic_store(&board->has_failed, true);
        }
        if (pipe_fd >= 0)
            (void)!write(pipe_fd, "", 1);
        else if (request->progress)
            request->progress(request->progress_context);
    }
}

/* A worker: ends with its parent, and runs no exit handler of it. */
static _Noreturn void be_worker(const struct wg_workers_request *request, struct board *board,
                                size_t worker, const int ends[2], pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)close(ends[0]);
    if (getppid() == parent)
        work(request, board, worker, ends[1]);
    _exit(0);
}

/* A worker that was killed cannot say so: the others need not go on for nothing. */
static void look_for_killed(const pid_t *pids, size_t count, struct board *board)
{
    for (size_t i = 0; i < count; i++) {
        siginfo_t end = {0}; /* si_pid stays 0 while it runs */
        if (waitid(P_PID, (id_t)pids[i], &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            end.si_pid != 0 && (end.si_code != CLD_EXITED || end.si_status != 0))
            atomic_store(&board->has_failed, true);
    }
}

static void hear_progress(const struct wg_workers_request *request, int fd, const pid_t *pids,
                          size_t count, struct board *board)
{
    char bytes[256];
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        const int heard = poll(&ready, 1, LOOK_MS);
        look_for_killed(pids, count, board);
        if (heard == 0)
            continue;
        const ssize_t got = read(fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return;
        for (ssize_t i = 0; i < got && request->progress; i++)
            request->progress(request->progress_context);
    }
}

/* WG_EIO: it was killed, or ended in another way than of its own. */
static enum wg_code wait_for(pid_t pid, struct wg_error *err)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return wg__fail_errno(err, errno, "cannot wait for a worker process");
    if (WIFSIGNALED(status))
        return wg__fail(err, WG_EIO, "a worker process was ended by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        return wg__fail(err, WG_EIO, "a worker process ended with status %d", WEXITSTATUS(status));
    return WG_OK;
}

static enum wg_code run_forked(const struct wg_workers_request *request, struct board *board,
                               struct wg_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return wg__fail_errno(err, errno, "cannot make a pipe for worker processes");
    const pid_t self = getpid();
    pid_t pids[WG_WORKERS_MAX];
    size_t started = 0;
    while (started < request->processes) {
        const pid_t pid = fork();
        if (pid < 0)
            break;
        if (pid == 0)
            be_worker(request, board, started, ends, self);
        pids[started++] = pid;
    }
    (void)close(ends[1]);
    if (started == 0)
        work(request, board, 0, -1); /* none was granted: slower, but the same */
    hear_progress(request, ends[0], pids, started, board);
    (void)close(ends[0]);
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < started; i++) {
        struct wg_error why = {0};
        const enum wg_code ended = wait_for(pids[i], &why);
        if (ended != WG_OK && code == WG_OK) {
            code = ended;
            if (err)
                *err = why;
        }
    }
    return code;
}

/* The failure of the least task. */
static enum wg_code least_failure(const struct board *board, struct wg_error *err)
{
    const struct failure *least = NULL;
    for (size_t i = 0; i < WG_WORKERS_MAX; i++) {
        const struct failure *failure = &board->failures[i];
        if (failure->code != WG_OK && (!least || failure->task < least->task))
            least = failure;
    }
    if (!least)
        return WG_OK;
    if (err)
        *err = least->error;
    return least->code;
}

enum wg_code wg__workers_run(const struct wg_workers_request *request, struct wg_error *err)
{
    struct board *board = wg__shared_alloc(1, sizeof *board);
    if (!board)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    struct wg_workers_request bounded = *request;
    if (bounded.processes > bounded.tasks)
        bounded.processes = bounded.tasks;
    enum wg_code code = WG_OK;
    if (bounded.processes <= 1)
        work(&bounded, board, 0, -1);
    else
        code = run_forked(&bounded, board, err);
    if (code == WG_OK)
        code = least_failure(board, err);
    wg__shared_free(board, 1, sizeof *board);
    return code;
}
