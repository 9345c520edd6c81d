/* SPDX-License-Identifier: MIT
 *
 * Cutting a stream of bytes into lines.
 *
 * Owns: nothing.    Threads: pure, one thread at a time.
 */
#include "live/line_splitter.h"

#include <string.h>

/* The first line end in `length` bytes; NULL: none. */
static const char *find_end(const struct wg_line_splitter *lines, const char *bytes, size_t length)
{
    const char *end = memchr(bytes, '\n', length);
    if (!lines->is_terminal)
        return end;
    const size_t before = end ? (size_t)(end - bytes) : length;
    for (size_t i = 0; i < before; i++) {
        if (bytes[i] == '\r' || bytes[i] == '\b')
            return bytes + i;
    }
    return end;
}

static void hand_on(struct wg_line_splitter *lines, bool is_cut, wg_line_taker *take, void *context)
{
    const size_t length = lines->length;
    lines->length = 0;
    if (length > 0)
        take(lines->data, length, is_cut, context);
}

/* Adds to the line; a line that outgrows the buffer is handed on. */
static void add(struct wg_line_splitter *lines, const char *bytes, size_t length,
                wg_line_taker *take, void *context)
{
    if (lines->is_skipping || length == 0)
        return;
    const size_t room = lines->capacity - lines->length;
    const bool is_too_long = length > room;
    const size_t taken = is_too_long ? room : length;
    memcpy(lines->data + lines->length, bytes, taken);
    lines->length += taken;
    if (is_too_long) {
        hand_on(lines, true, take, context);
        lines->is_skipping = true;
    }
}

void wg__lines_split(struct wg_line_splitter *lines, const char *bytes, size_t length,
                     wg_line_taker *take, void *context)
{
    while (length > 0) {
        const char *end = find_end(lines, bytes, length);
        if (end == NULL) {
            add(lines, bytes, length, take, context);
            return;
        }
        const size_t taken = (size_t)(end - bytes);
        add(lines, bytes, taken, take, context);
        hand_on(lines, false, take, context);
        lines->is_skipping = false;
        bytes += taken + 1;
        length -= taken + 1;
    }
}

void wg__lines_end(struct wg_line_splitter *lines, wg_line_taker *take, void *context)
{
    hand_on(lines, false, take, context);
    lines->is_skipping = false;
}
