/* SPDX-License-Identifier: MIT
 *
 * A screen as a grid; see top_frame.h.
 */
#include "cli/top_frame.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "base/alloc.h"
#include "cli/markup.h"

enum { LINE_MAX_BYTES = 1024 }; /* no text that we put is longer */

enum wg_code wg__top_frame_reset(struct wg_top_frame *frame, unsigned width, unsigned height,
                                 struct wg_error *err)
{
    const size_t count = (size_t)width * height;
    if (count > frame->capacity) {
        struct wg_top_cell *cells = wg__realloc_array(frame->cells, count, sizeof *cells);
        if (cells == NULL)
            return wg__fail(err, WG_ENOMEM, "out of memory");
        frame->cells = cells;
        frame->capacity = count;
    }
    frame->width = width;
    frame->height = height;
    for (size_t i = 0; i < count; i++)
        frame->cells[i] = (struct wg_top_cell){.character = ' ', .style = WG_TOP_PLAIN};
    return WG_OK;
}

void wg__top_frame_fini(struct wg_top_frame *frame)
{
    wg__free(frame->cells);
    *frame = (struct wg_top_frame){0};
}

unsigned wg__top_frame_put(struct wg_top_frame *frame, unsigned row, unsigned column,
                           enum wg_top_style style, const char *format, ...)
{
    char text[LINE_MAX_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments); /* a longer one is cut */
    va_end(arguments);
    for (const char *at = text; *at != '\0'; column++) {
        uint32_t code;
        at += wg__utf8_next(at, &code);
        if (row < frame->height && column < frame->width)
            frame->cells[(size_t)row * frame->width + column] =
                (struct wg_top_cell){.character = code >= ' ' && code <= '~' ? (char)code : '?',
                                     .style = (unsigned char)style};
    }
    return column;
}

void wg__top_frame_style_row(struct wg_top_frame *frame, unsigned row, enum wg_top_style style)
{
    for (unsigned column = 0; row < frame->height && column < frame->width; column++)
        frame->cells[(size_t)row * frame->width + column].style = (unsigned char)style;
}
