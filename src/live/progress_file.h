/* SPDX-License-Identifier: MIT
 *
 * The file to which the job appends lines of progress, read as it grows.
 *
 * A file and not a pipe: any language can append a line to it (`echo step 5 >>
 * "$WATTGOV_PROGRESS"`), a short append is whole (O_APPEND), and a writer never waits for a reader
 * that hangs or is dead. What was read is given back to the file system where that can make holes,
 * so that a file of ours takes no more than a few megabytes however long the job is.
 *
 * Writers do what they like: the file may be truncated or rewritten in place (`>` for `>>`), be
 * removed or replaced. We remember the last bytes read and see by them that the file is another
 * one. While we listen we hold a read lock on it (F_OFD_SETLK), by which wg_train_* know that
 * somebody does.
 *
 * Owns: the file's descriptor, and the file itself where it is ours.    Threads: one at a time.
 */
#ifndef WG_LIVE_PROGRESS_FILE_H
#define WG_LIVE_PROGRESS_FILE_H

#include <limits.h>
#include <sys/types.h>

#include "live/line_splitter.h"
#include "live/progress_feed.h"
#include "live/progress_line.h"

enum { WG_PROGRESS_TAIL = 64, WG_PROGRESS_CHUNK = 65536 };

struct wg_progress_file {
    int fd;        /* -1: none */
    int notify_fd; /* inotify or, without, a timer; readable when there may be more */
    int watch;     /* of the file; -1: none, notify_fd is a timer */
    bool is_own;   /* made by us: removed at the end, holes are made */
    bool can_punch;
    uint64_t offset;             /* read up to here */
    uint64_t punched;            /* given back up to here */
    char tail[WG_PROGRESS_TAIL]; /* the bytes before offset */
    size_t tail_length;
    struct wg_line_splitter lines;
    char line[WG_PROGRESS_LINE_MAX + 2]; /* and "\r" and one too many */
    char chunk[WG_PROGRESS_TAIL + WG_PROGRESS_CHUNK];
    char path[PATH_MAX];
};

/* `path` NULL: a file of our own in $XDG_RUNTIME_DIR, $TMPDIR or /tmp. One that exists is read from
 * its end. */
enum wg_code wg__progress_file_open(struct wg_progress_file *file, const char *path,
                                    struct wg_error *err);

/* Reads at most `budget` bytes of what is new. True: there is more. */
bool wg__progress_file_read(struct wg_progress_file *file, struct wg_progress_feed *feed,
                            size_t budget);

/* Takes what has no line end as the last line, closes, and removes a file of our own. */
void wg__progress_file_close(struct wg_progress_file *file, struct wg_progress_feed *feed);

#endif
