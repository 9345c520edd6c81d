/* SPDX-License-Identifier: MIT
 *
 * Running a command: the signals that come meanwhile, and how it ended.
 *
 * The command runs in our process group. So what the terminal sends (Ctrl-C, Ctrl-\, Ctrl-Z, a
 * hang-up) reaches it from the kernel, once, and it may read from the terminal; a group of its own
 * would need job control for both. So does what timeout(1) sends to the group. What others send to
 * us alone (kill PID) is passed on. group_watch.h tells the two apart.
 *
 *     kill PID --------> us ----> command      (passed on)
 *     Ctrl-C, timeout -> us, command           (each its own; we wait until the command has ended)
 *
 * timeout(1) signals us, and then the group, us and the command included, as it would the command
 * itself. The kernel merges two that come so close; we do the same: a signal that comes again
 * within a few milliseconds is one, and was for the group if either was.
 *
 * A command that has left our group (setsid, a timeout of its own) gets everything from us.
 *
 * Signals are blocked and waited for, with a deadline, instead of interrupting: no handler, no
 * race. One that was ignored when we started (nohup, a background job of a script) stays ignored,
 * for the command too.
 *
 * Owns: the watch, from block to restore.    Threads: the main thread, before others start, so that
 * they block them too.
 */
#ifndef WG_LIVE_CHILD_H
#define WG_LIVE_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "live/group_watch.h"

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
    struct wg_group_watch watch;
};

/* Blocks the signals that end a program by default and, for a command, SIGCHLD. */
void wg__signals_block(struct wg_signals *signals, bool for_command);
void wg__signals_restore(struct wg_signals *signals);

/* One more, such as SIGCONT: that we were stopped for a while. */
void wg__signals_add(struct wg_signals *signals, int number);

/* Waits for one until `deadline_ns` (UINT64_MAX: as long as it takes); its number, or 0 when none
 * came. `to_group_out` says whether it was sent to our process group and not to us alone. */
int wg__signals_wait(struct wg_signals *signals, uint64_t deadline_ns, bool *to_group_out);

/* Whether it asks us to end: SIGCHLD and SIGCONT do not. */
bool wg__signal_ends(int number);

/* Whether one that ends us has come that nobody has taken yet; it stays. For whoever must give up
 * early and leaves the signal to those above it. */
bool wg__signals_have_come(const struct wg_signals *signals);

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

/* Where the command differs from us. */
struct wg_child_setup {
    int out; /* its standard output; -1: ours */
    int err;
    bool is_detached; /* a process group of its own, so that it can be ended with all that it
                         started, and /dev/null as standard input */
    const char *const
        *environment; /* "NAME=VALUE", ended by NULL: beside or instead of ours; NULL: none */
};

/* Starts words[0], looked for in PATH, with the mask of before and SIGPIPE and SIGXFSZ as usual. A
 * file that the kernel can't run is a script of /bin/sh, as for a shell and execvp(3). When that
 * fails, `child->status` is 126 or 127 and `child->has_ended`. `setup` NULL: as we are. */
enum wg_code wg__child_start(struct wg_child *child, char *const *words,
                             const struct wg_signals *signals, const struct wg_child_setup *setup,
                             struct wg_error *err);

/* Looks whether it has ended, without waiting; on SIGCHLD. */
void wg__child_check(struct wg_child *child);

/* Sends it a signal, if it still runs and does not have it yet: `to_group` as wg__signals_wait has
 * told. */
void wg__child_pass(const struct wg_child *child, int signal, bool to_group);

/* A signal's name: "SIGTERM"; "signal 64" where it has none. */
enum { WG_SIGNAL_NAME_SIZE = 24 };
void wg__signal_name(char out[static WG_SIGNAL_NAME_SIZE], int signal);

#endif
