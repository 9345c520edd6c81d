/* SPDX-License-Identifier: MIT
 *
 * A server that we start and end: a shell command in a process group of its own.
 *
 * Unlike a command of the user that we run (child.h), it is a tool of ours: what the terminal sends
 * does not reach it, we end it, and it ends when we are killed (the shell gets SIGTERM then).
 * What it prints goes to a file, whose end tells why it died.
 *
 * Owns: the process group.    Threads: start and stop in one and the same, which must live on.
 */
#ifndef WG_LIVE_SERVER_PROCESS_H
#define WG_LIVE_SERVER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct wg_server_process {
    pid_t pid;  /* 0: none runs */
    int log;    /* what it prints; -1: not open */
    int status; /* of the last one, as waitpid tells */
};

/* `log_file` NULL: a nameless file in TMPDIR. WG_EIO and others of the file. */
enum wg_code wg__server_process_init(struct wg_server_process *process, const char *log_file,
                                     struct wg_error *err);
void wg__server_process_fini(struct wg_server_process *process);

/* Runs `command` by /bin/sh. WG_EIO: no process can be had. */
enum wg_code wg__server_process_start(struct wg_server_process *process, const char *command,
                                      struct wg_error *err);

/* Whether it still runs. */
bool wg__server_process_is_running(struct wg_server_process *process);

/* SIGTERM to the group, and SIGKILL to what is left of it after `patience_s`. */
void wg__server_process_stop(struct wg_server_process *process, double patience_s);

/* Why it has ended, on one line: its status and the last line that it printed. True: its last words
 * tell of memory that ran out. */
bool wg__server_process_why(const struct wg_server_process *process, char *out, size_t size);

#endif
