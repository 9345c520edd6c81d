/* SPDX-License-Identifier: MIT
 *
 * Whether a signal was sent to our process group, or to us alone.
 *
 * A signal to the group (Ctrl-C; timeout(1) and kill(1) with a negative number) reaches the command
 * that we run as well; passed on, it would come twice, and the second one ends a program that the
 * first one asked to save its work. One to us alone (kill PID) has to be passed on. siginfo_t does
 * not tell the two apart: both are SI_USER. So a process of ours stands in the group, blocks all
 * signals, and answers which ones are pending with it: what it got as well was for the group.
 *
 *     kill PID        ----> us                         nothing pending there: pass it on
 *     kill -- -GROUP  ----> us, the watch, command     pending there: the command has it already
 *
 * The kernel signals the newest member of a group first, so the watch has it when we do. The rule
 * of sudo(8), to drop what a process of our own group sent, is no way out: a script that starts us
 * in the background and kills us is in our group.
 *
 * The watch holds no file but its socket and dies with the thread that started it.
 *
 * Owns: the process and the socket.    Threads: the main thread, before others start.
 */
#ifndef WG_LIVE_GROUP_WATCH_H
#define WG_LIVE_GROUP_WATCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct wg_group_watch {
    pid_t pid;         /* 0: there is none; then no signal counts as sent to the group */
    int socket;        /* valid while pid is not 0 */
    uint64_t received; /* bit N - 1: signal N came to the group and was not asked for yet */
};

/* Starts it. Without memory or processes there is none. */
void wg__group_watch_start(struct wg_group_watch *watch);

/* Whether the group got `signal`, which we have just taken, since it was last asked for. */
bool wg__group_watch_got(struct wg_group_watch *watch, int signal);

/* Ends it. */
void wg__group_watch_stop(struct wg_group_watch *watch);

#endif
