/* SPDX-License-Identifier: MIT
 *
 * A progress bar on a terminal for work that takes more than a second.
 *
 *     simulating  ━━━━━━━━━━━━━━╸──────────  57 %  1140/2000 cases  412/s  2 s left
 *
 * Workers only add to an atomic counter; whoever finds the next redraw due (ten a second), draws.
 * Nothing is ever drawn when the descriptor is no terminal, and nothing in the first second. The
 * bar is erased at the end, so it never mixes with results; end it before printing an error.
 *
 * Owns: nothing; the label must outlive it.    Threads: `advance` from any thread; the rest from
 * one.
 */
#ifndef WG_CLI_PROGRESS_BAR_H
#define WG_CLI_PROGRESS_BAR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wg_progress_bar {
    int fd;
    bool is_terminal;
    const char *label;
    const char *unit;
    uint64_t total;
    uint64_t start_ns;
    atomic_uint_fast64_t done;
    atomic_uint_fast64_t next_draw_ns;
    atomic_flag is_drawing;
    atomic_bool is_drawn; /* the bar stands on the screen and must be erased */
};

/* Begins: `label` says what is done ("simulating"), `unit` what is counted ("cases"). */
void wg__progress_bar_init(struct wg_progress_bar *progress, const char *label, const char *unit,
                           uint64_t total);

/* Counts `steps` more as done; draws when it is time. */
void wg__progress_bar_advance(struct wg_progress_bar *progress, uint64_t steps);

/* Erases the bar. May be called twice. */
void wg__progress_bar_fini(struct wg_progress_bar *progress);

/* The parts below, with descriptor and time as arguments, are what the tests drive. */
void wg__progress_bar_init_at(struct wg_progress_bar *progress, int fd, const char *label,
                              const char *unit, uint64_t total, uint64_t now_ns);
void wg__progress_bar_advance_at(struct wg_progress_bar *progress, uint64_t steps, uint64_t now_ns);

/* One bar of at most `columns` terminal columns, as UTF-8 without a line end, into `line` of `size`
 * bytes. Returns its length. */
size_t wg__progress_bar_line(char *line, size_t size, unsigned columns,
                             const struct wg_progress_bar *progress, uint64_t done,
                             uint64_t elapsed_ns);

#endif
