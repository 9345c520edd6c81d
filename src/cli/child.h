/* SPDX-License-Identifier: MIT
 *
 * Running a command: the signals that come meanwhile, and how it ended.
 *
 * The command runs in our process group. So what the terminal sends (Ctrl-C, Ctrl-\, Ctrl-Z, a
 * hang-up) reaches it from the kernel, once, and it may read from the terminal; a group of its own
 * would need job control for both. What others send to us alone (kill PID) is passed on. The two
 * are told apart by si_code: the kernel's own signals say SI_KERNEL.
 *
 *     kill PID ----> us ----> command          (passed on)
 *     Ctrl-C ------> us, command               (each its own; we wait until the command has ended)
 *
 * Signals are blocked and waited for, with a deadline, instead of interrupting: no handler, no
 * race. One that was ignored when we started (nohup, a background job of a script) stays ignored,
 * for the command too.
 *
 * Owns: nothing.    Threads: the main thread, before others start, so that they block them too.
 */
#ifndef WG_CLI_CHILD_H
#define WG_CLI_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Exit statuses of shells and of env(1): the command was found but could not be run; was not found;
 * and with N added: ended by signal N. */
enum {
    WG_EXIT_NOT_EXECUTABLE = 126,
    WG_EXIT_NOT_FOUND = 127,
    WG_EXIT_SIGNAL = 128,
};

struct wg_signals {
    sigset_t waited;
    sigset_t before; /* the mask that stood before; the command gets it */
};

/* Blocks the signals that end a program and, for a command, SIGUSR1, SIGUSR2 and SIGCHLD. */
void wg__signals_block(struct wg_signals *signals, bool for_command);
void wg__signals_restore(const struct wg_signals *signals);

/* Waits for one until `deadline_ns` (UINT64_MAX: as long as it takes); its number, or 0 when none
 * came. `from_terminal_out` says whether the kernel sent it. */
int wg__signals_wait(const struct wg_signals *signals, uint64_t deadline_ns,
                     bool *from_terminal_out);

struct wg_child {
    pid_t pid;
    bool has_ended;
    /* Valid when it has ended: */
    int status; /* for our own exit: its exit status, or 128 + the signal that ended it */
    int signal; /* that ended it; 0: none */
    double user_s;
    double system_s;
    uint64_t peak_memory_bytes; /* the largest resident set of it or of one it waited for */
};

/* Starts words[0], looked for in PATH, with the mask of before and SIGPIPE and SIGXFSZ as usual.
 * When that fails, `child->status` is 126 or 127 and `child->has_ended`. */
enum wg_code wg__child_start(struct wg_child *child, char *const *words,
                             const struct wg_signals *signals, struct wg_error *err);

/* Looks whether it has ended, without waiting; on SIGCHLD. */
void wg__child_check(struct wg_child *child);

/* Sends it a signal, if it still runs. */
void wg__child_pass(const struct wg_child *child, int signal);

/* A signal's name: "SIGTERM"; "signal 64" where it has none. */
enum { WG_SIGNAL_NAME_SIZE = 24 };
void wg__signal_name(char out[static WG_SIGNAL_NAME_SIZE], int signal);

#endif
