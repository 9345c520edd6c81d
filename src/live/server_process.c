/* SPDX-License-Identifier: MIT
 *
 * A server that we start and end.
 *
 * The log is emptied at each start, so that its end is the present server's.
 *
 * Owns: see the header.    Threads: one.
 */
#include "live/server_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "live/load_result.h"

enum { TAIL_SIZE = 4096, STEP_MS = 10 };

enum wg_code wg__server_process_init(struct wg_server_process *process, const char *log_file,
                                     struct wg_error *err)
{
    *process = (struct wg_server_process){.log = -1};
    if (log_file != NULL) {
        process->log = open(log_file, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    } else {
        const char *folder = getenv("TMPDIR");
        log_file = folder != NULL && *folder != '\0' ? folder : "/tmp";
        process->log = open(log_file, O_RDWR | O_TMPFILE | O_APPEND | O_CLOEXEC, 0600);
    }
    if (process->log < 0)
        return wg__fail_errno(err, errno, "%s: a file for what the server prints", log_file);
    return WG_OK;
}

void wg__server_process_fini(struct wg_server_process *process)
{
    if (process == NULL)
        return;
    wg__server_process_stop(process, 10);
    if (process->log >= 0)
        (void)close(process->log);
    process->log = -1;
}

static int add_files(posix_spawn_file_actions_t *actions, int log)
{
    int failed = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(actions, log, STDOUT_FILENO);
    return failed == 0 ? posix_spawn_file_actions_adddup2(actions, log, STDERR_FILENO) : failed;
}

/* A group of its own, no signal blocked, none ignored. */
static int add_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int failed = posix_spawnattr_setflags(
        attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (failed == 0)
        failed = posix_spawnattr_setpgroup(attributes, 0);
    if (failed == 0)
        failed = posix_spawnattr_setsigmask(attributes, &none);
    return failed == 0 ? posix_spawnattr_setsigdefault(attributes, &all) : failed;
}

/* setpriv(1) has the kernel end the shell when we die; where it is missing the shell runs alone. */
static int spawn(pid_t *pid, const char *command, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes)
{
    union {
        const char *in;
        char *out;
    } lent;
    lent.in = command; /* posix_spawn does not write to it */
    char setpriv[] = "setpriv", flag[] = "--pdeathsig", term[] = "TERM", shell[] = "/bin/sh",
         option[] = "-c";
    char *words[] = {setpriv, flag, term, shell, option, lent.out, NULL};
    int failed = posix_spawnp(pid, setpriv, actions, attributes, words, environ);
    if (failed == ENOENT)
        failed = posix_spawn(pid, shell, actions, attributes, words + 3, environ);
    return failed;
}

enum wg_code wg__server_process_start(struct wg_server_process *process, const char *command,
                                      struct wg_error *err)
{
    (void)ftruncate(process->log, 0);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed != 0)
        return wg__fail_errno(err, failed, "starting the server '%.100s'", command);
    failed = posix_spawnattr_init(&attributes);
    if (failed != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return wg__fail_errno(err, failed, "starting the server '%.100s'", command);
    }
    failed = add_files(&actions, process->log);
    if (failed == 0)
        failed = add_attributes(&attributes);
    pid_t pid = 0;
    if (failed == 0)
        failed = spawn(&pid, command, &actions, &attributes);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (failed != 0)
        return wg__fail_errno(err, failed, "starting the server '%.100s'", command);
    process->pid = pid;
    return WG_OK;
}

bool wg__server_process_is_running(struct wg_server_process *process)
{
    if (process->pid == 0)
        return false;
    const pid_t ended = waitpid(process->pid, &process->status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return true;
    (void)kill(-process->pid, SIGKILL); /* what it left behind in its group */
    process->pid = 0;
    return false;
}

void wg__server_process_stop(struct wg_server_process *process, double patience_s)
{
    if (!wg__server_process_is_running(process))
        return;
    const pid_t group = process->pid;
    (void)kill(-group, SIGTERM);
    (void)kill(-group, SIGCONT); /* one that is stopped would never see it */
    const uint64_t until_ns = wg__clock_ns() + (uint64_t)(patience_s * 1e9);
    while (wg__server_process_is_running(process)) {
        if (wg__clock_ns() >= until_ns) {
            (void)kill(-group, SIGKILL);
            pid_t ended;
            do
                ended = waitpid(group, &process->status, 0);
            while (ended < 0 && errno == EINTR);
            process->pid = 0;
            break;
        }
        (void)poll(NULL, 0, STEP_MS);
    }
    (void)kill(-group, SIGKILL);
}

/* The last line of `text` that is not blank, on its own; "" if there is none. */
static const char *last_line(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
        text[--length] = '\0';
    char *line = strrchr(text, '\n');
    return line != NULL ? line + 1 : text;
}

bool wg__server_process_why(const struct wg_server_process *process, char *out, size_t size)
{
    char tail[TAIL_SIZE + 1];
    const off_t end = lseek(process->log, 0, SEEK_END);
    const off_t from = end > TAIL_SIZE ? end - TAIL_SIZE : 0;
    const ssize_t got = pread(process->log, tail, TAIL_SIZE, from);
    const size_t length = got > 0 ? (size_t)got : 0;
    for (size_t i = 0; i < length; i++) {
        if (tail[i] == '\0')
            tail[i] = '?';
    }
    tail[length] = '\0';
    const bool is_memory = wg__is_out_of_memory(tail);
    const int status = process->status;
    char how[64];
    if (process->pid != 0)
        (void)snprintf(how, sizeof how, "the server runs");
    else if (WIFSIGNALED(status))
        (void)snprintf(how, sizeof how, "the server was ended by signal %d", WTERMSIG(status));
    else
        (void)snprintf(how, sizeof how, "the server has ended with status %d", WEXITSTATUS(status));
    const char *line = last_line(tail);
    (void)snprintf(out, size, "%s%s%.120s", how, *line != '\0' ? ": " : "", line);
    return is_memory;
}
