/* SPDX-License-Identifier: MIT
 *
 * How far a training process has come: what it says, by whichever way it says it.
 *
 * $WATTGOV_PROGRESS names a file (or a Unix stream socket) to which the job, in any language and
 * from any rank, appends lines:
 *
 *     step N                     N steps are done (of this rank, counted from the start of the job)
 *     epoch N                    N epochs are done
 *     metric V [NAME]            the target metric, now
 *     batch_size N               of one step, all ranks together
 *     ... rank R                 whose line it is, at the end; without it rank 0
 *     ... at T                   when, CLOCK_MONOTONIC in ns; without it the moment of reading
 *
 * What the job prints is matched by regular expressions (PCRE2): the first group is the number; a
 * --step-regex without a group counts its matches.
 *
 * Steps of several ranks: the job is as far as its slowest rank. Numbers never go back: a smaller
 * one is noted as a restart of that rank (elastic training) and counted on from there.
 *
 * Owns: the file or socket, and the job's pipes.    Threads: one at a time.
 */
#ifndef WG_LIVE_PROGRESS_H
#define WG_LIVE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define WG_PROGRESS_KINDS(X)                                                                       \
    X(STEP, "step")                                                                                \
    X(EPOCH, "epoch")                                                                              \
    X(METRIC, "metric")                                                                            \
    X(BATCH_SIZE, "batch_size")

enum wg_progress_kind {
#define X(name, word) WG_PROGRESS_##name,
    WG_PROGRESS_KINDS(X)
#undef X
        WG_PROGRESS_KIND_COUNT
};

struct wg_progress_event {
    enum wg_progress_kind kind;
    uint64_t t_ns;
    double value; /* STEP and EPOCH: of the whole job (its slowest rank); METRIC: may be NAN */
    unsigned rank;
    bool is_printed; /* found by a regular expression; else the job told it itself */
    char name[32];   /* METRIC: its name; "": none given */
};
typedef void wg_progress_sink(const struct wg_progress_event *event, void *context);

struct wg_progress_opts {
    const char *path; /* of the file or socket to make; NULL: one of its own, removed at the end */
    bool is_socket;   /* make a socket */
    const char *step_regex;   /* NULL: none */
    const char *epoch_regex;  /* NULL: none */
    const char *metric_regex; /* NULL: none */
    wg_progress_sink *sink;   /* called from wg__progress_pump */
    void *context;
};

struct wg_progress;

/* WG_EINVAL: a regular expression is malformed (its message and position); WG_EIO. */
enum wg_code wg__progress_open(struct wg_progress **out, const struct wg_progress_opts *opts,
                               struct wg_error *err);

/* The value of $WATTGOV_PROGRESS for the job. */
const char *wg__progress_path(const struct wg_progress *progress);

/* Readable when there is something to pump (an epoll instance). */
int wg__progress_fd(const struct wg_progress *progress);

/* Reads what has come and hands it to the sink; never waits. Returns how many events there were.
 * Where the descriptor cannot tell (a network file system to which another machine writes) a pump
 * now and then reads it all the same. */
size_t wg__progress_pump(struct wg_progress *progress);

/* A stream of the job (its stdout or stderr) that is read for the regular expressions and copied to
 * `copy_fd` (-1: nowhere) unchanged, at once. Takes the descriptor over, also when it fails. The
 * copy never blocks the job for longer than our own reader does. SIGPIPE has to be ignored. */
enum wg_code wg__progress_add_stream(struct wg_progress *progress, int fd, int copy_fd,
                                     struct wg_error *err);

/* Whether all that the job has written to its streams so far has been copied. A copy whose reader
 * is slow (a pager) takes its time: once the job has ended, pump until this is so, then close. */
bool wg__progress_is_copied(const struct wg_progress *progress);

/* The ranks that have said something. */
unsigned wg__progress_ranks(const struct wg_progress *progress);

/* Lines that were no progress, so far, and the last one (cut), for a hint. */
size_t wg__progress_rejected(const struct wg_progress *progress, const char **last_out);

/* Reads what is left, copies what can be copied without waiting, and frees. NULL does nothing. */
void wg__progress_close(struct wg_progress *progress);

#endif
