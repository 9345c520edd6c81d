/* SPDX-License-Identifier: MIT
 *
 * The bytes of a text, from a plain file, a gzipped file or memory, one at a time and cheaply.
 *
 * Bytes come in windows: 64 KiB pieces out of zlib, or the caller's whole memory at once. A parser
 * looks at `source_peek`, takes runs straight from cursor .. end, and learns of a failure from the
 * BROKEN byte. The line is counted by whoever passes a line end, for messages.
 *
 * Owns: name, file and window.    Threads: one thread at a time.
 */
#ifndef WG_BASE_SOURCE_H
#define WG_BASE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* What peek gives besides 0..255. */
enum { WG_SOURCE_END = -1, WG_SOURCE_BROKEN = -2 };

struct wg_source {
    char *name; /* for messages; the end of it when it is long */
    void *file; /* zlib's handle; NULL when reading from memory */
    char *window;
    const char *cursor;
    const char *end;      /* of the bytes behind cursor that are there already */
    size_t line;          /* of the byte at cursor, from 1 */
    bool at_end;          /* nothing comes after the window */
    enum wg_code stopped; /* the error that ended reading; WG_OK until then */
};

/* Opens a file, gzipped or not. On failure the source is closed and empty. */
enum wg_code wg__source_open(struct wg_source *source, const char *path, struct wg_error *err);

/* The same over memory, which must outlive the source; `name` is copied. */
enum wg_code wg__source_open_memory(struct wg_source *source, const char *name, const char *bytes,
                                    size_t length, struct wg_error *err);

/* Accepts NULL and a source that was only zeroed. */
void wg__source_close(struct wg_source *source);

struct wg_buffer;
/* All of a file, without a byte order mark, ended by a null byte that does not count. WG_EDATA: it
 * is longer than `most_mib`. */
enum wg_code wg__source_read_all(const char *path, unsigned most_mib, struct wg_buffer *out,
                                 struct wg_error *err);

/* Passes a byte order mark, where the text begins with one. */
enum wg_code wg__source_skip_mark(struct wg_source *source, struct wg_error *err);

/* Brings the next window; for source_peek. The error, when there is one, stays in `stopped`. */
enum wg_code wg__source_fill(struct wg_source *source, struct wg_error *err);

/* The byte at the cursor, WG_SOURCE_END or WG_SOURCE_BROKEN. */
static inline int wg__source_peek(struct wg_source *source, struct wg_error *err)
{
    while (source->cursor == source->end) {
        if (source->stopped != WG_OK)
            return WG_SOURCE_BROKEN;
        if (source->at_end)
            return WG_SOURCE_END;
        if (wg__source_fill(source, err) != WG_OK)
            return WG_SOURCE_BROKEN;
    }
    return (unsigned char)*source->cursor;
}

/* Passes the byte that peek showed. */
static inline void wg__source_skip(struct wg_source *source)
{
    if (*source->cursor == '\n')
        source->line++;
    source->cursor++;
}

#endif
