/* SPDX-License-Identifier: MIT
 *
 * Cutting a stream of bytes into lines, in a buffer of fixed size.
 *
 * A line is handed on when its end has come. One that is longer than the buffer is handed on once,
 * at that moment, with what fitted; the rest of it, however long, is skipped. Terminal output ends
 * lines at carriage returns and backspaces too: that is how progress bars paint over themselves.
 * Empty lines are not handed on.
 *
 * Owns: nothing; the buffer is the caller's.    Threads: pure, one thread at a time.
 */
#ifndef WG_LIVE_LINE_SPLITTER_H
#define WG_LIVE_LINE_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>

struct wg_line_splitter {
    char *data;
    size_t capacity;
    size_t length;
    bool is_terminal; /* \r and \b end lines too */
    bool is_skipping; /* to the next line end */
};

typedef void wg_line_taker(const char *line, size_t length, bool is_cut, void *context);

void wg__lines_split(struct wg_line_splitter *lines, const char *bytes, size_t length,
                     wg_line_taker *take, void *context);

/* The stream has ended: what is there is the last line. */
void wg__lines_end(struct wg_line_splitter *lines, wg_line_taker *take, void *context);

#endif
