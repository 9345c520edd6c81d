/* SPDX-License-Identifier: MIT
 *
 * A screen as a grid of characters with styles, before it becomes a terminal's.
 *
 * The view writes into a frame and knows no terminal; top_screen.c copies frames to one. Only ASCII
 * stands in it: ncurses would need the locale for more, which wattgov never sets, and a column is
 * then a byte.
 *
 * Owns: the cells.    Threads: one thread at a time.
 */
#ifndef WG_CLI_TOP_FRAME_H
#define WG_CLI_TOP_FRAME_H

#include <stddef.h>

#include "base/error.h"

enum wg_top_style {
    WG_TOP_PLAIN,
    WG_TOP_STRONG,
    WG_TOP_FAINT,
    WG_TOP_HEADER, /* the line of titles */
    WG_TOP_LOW,    /* little of a limit is used */
    WG_TOP_MIDDLE,
    WG_TOP_HIGH,
    WG_TOP_TROUBLE,
    WG_TOP_STYLE_COUNT
};

struct wg_top_cell {
    char character;
    unsigned char style; /* enum wg_top_style */
};

struct wg_top_frame {
    unsigned width;
    unsigned height;
    struct wg_top_cell *cells; /* row by row */
    size_t capacity;
};

/* Makes the frame this large and blank. WG_ENOMEM: it stays as it was. */
enum wg_code wg__top_frame_reset(struct wg_top_frame *frame, unsigned width, unsigned height,
                                 struct wg_error *err);
void wg__top_frame_fini(struct wg_top_frame *frame);

/* Writes from (row, column) on; what lies outside is cut, what is no printable ASCII becomes '?'.
 * Returns the column behind the text. */
unsigned wg__top_frame_put(struct wg_top_frame *frame, unsigned row, unsigned column,
                           enum wg_top_style style, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Gives the whole row a style. */
void wg__top_frame_style_row(struct wg_top_frame *frame, unsigned row, enum wg_top_style style);

#endif
