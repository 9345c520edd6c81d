/* SPDX-License-Identifier: MIT
 *
 * The terminal of `wattgov top`: ncurses, and the signals that concern a terminal.
 *
 * Signals only set a mark; the loop of the command looks at the marks when its wait ends. All of
 * them are blocked but while it waits and while it writes, so no mark is missed. A terminal that
 * takes no output (Ctrl-S, a window that hangs) holds us in a write for ever; so a signal that ends
 * a program also sets an alarm, which gives the terminal its modes back and leaves from there.
 *
 * Owns: the terminal's mode, until close.    Threads: the main thread, opened before others start.
 */
#ifndef WG_CLI_TOP_SCREEN_H
#define WG_CLI_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct wg_top_frame;
struct wg_top_screen;

enum wg_top_key {
    WG_TOP_KEY_NONE, /* the time has passed */
    WG_TOP_KEY_QUIT,
    WG_TOP_KEY_PROCESSES,
    WG_TOP_KEY_RESET,
    WG_TOP_KEY_HELP,
    WG_TOP_KEY_UP,
    WG_TOP_KEY_DOWN,
    WG_TOP_KEY_PAGE_UP,
    WG_TOP_KEY_PAGE_DOWN,
    WG_TOP_KEY_HOME,
    WG_TOP_KEY_END,
    WG_TOP_KEY_REDRAW, /* the size has changed, or we were stopped and go on */
    WG_TOP_KEY_OTHER,
};

/* Takes the terminal over. WG_EINVAL: stdin or stdout is none, or TERM is not known. */
enum wg_code wg__top_screen_open(struct wg_top_screen **out, struct wg_error *err);

/* Gives it back as it was. NULL does nothing. */
void wg__top_screen_close(struct wg_top_screen *screen);

/* Its size now, in columns and rows. */
void wg__top_screen_size(const struct wg_top_screen *screen, unsigned *width, unsigned *height);
void wg__top_screen_draw(struct wg_top_screen *screen, const struct wg_top_frame *frame);

/* Waits for a key, at most until `deadline_ns`. */
enum wg_top_key wg__top_screen_wait(struct wg_top_screen *screen, uint64_t deadline_ns);

/* The signal that asked us to end (SIGHUP too when the terminal has gone), with WG_TOP_KEY_QUIT; 0:
 * the user did. */
int wg__top_screen_signal(const struct wg_top_screen *screen);

#endif
