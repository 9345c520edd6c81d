/* SPDX-License-Identifier: MIT
 *
 * A stream of the job (its stdout or stderr) on its way through us to where it belongs.
 *
 *     job --pipe or terminal--> us --copy--> our own stdout
 *                                `--lines--> regular expressions
 *
 * Bytes go on unchanged and at once, before we look at them. When the copy's reader does not take
 * them (a stopped terminal, a pager) we read on until a buffer of 64 KiB is full, as one more pipe
 * would take, and then no more, so the job waits for what it would have waited for without us. When
 * the reader has gone they are dropped: the job is not to die of it.
 *
 * We never wait. But non-blocking mode belongs to the open file, which our stdout shares with the
 * shell and others, so it is not set there: pipes and terminals are opened once more through /proc,
 * and sockets are told with each write.
 *
 * SIGPIPE has to be ignored, as main has it.
 *
 * Owns: the job's end of the stream, and its own descriptor of the copy.    Threads: one at a time.
 */
#ifndef WG_LIVE_PROGRESS_STREAM_H
#define WG_LIVE_PROGRESS_STREAM_H

#include "live/progress_feed.h"
#include "live/progress_match.h"
#include "live/progress_source.h"

struct wg_progress_stream;

/* Takes `fd` over, also when it fails; `copy_fd` -1: no copy. `matcher` may be NULL. */
enum wg_code wg__progress_stream_open(struct wg_progress_stream **out, int fd, int copy_fd,
                                      int epoll_fd, struct wg_progress_feed *feed,
                                      struct wg_progress_matcher *matcher, struct wg_error *err);

/* Whether all that the job has written so far has been copied. */
bool wg__progress_stream_is_copied(const struct wg_progress_stream *stream);

/* Copies what can be copied without waiting, and closes. NULL does nothing. */
void wg__progress_stream_close(struct wg_progress_stream *stream);

#endif
