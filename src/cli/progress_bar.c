/* SPDX-License-Identifier: MIT
 *
 * Drawing of the progress bar; see progress.h.
 *
 * The hot path of `advance` is one atomic addition, one reading of the clock and one comparison. A
 * thread that finds the redraw due takes a try-lock; who doesn't get it goes on working, so workers
 * never wait for the terminal.
 */
#include "cli/progress_bar.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    LINE_BYTES = 1024,
    BAR_CELLS_MAX = 30,
    BAR_CELLS_MIN = 8,
    COLUMNS_DEFAULT = 80,
    COLUMNS_MAX = 200,
};

static const uint64_t QUIET_NS = 1000000000;   /* no bar before this */
static const uint64_t INTERVAL_NS = 100000000; /* between two drawings */

void wg__progress_bar_init_at(struct wg_progress_bar *progress, int fd, const char *label,
                              const char *unit, uint64_t total, uint64_t now_ns)
{
    progress->fd = fd;
    progress->is_terminal = isatty(fd) == 1;
    progress->label = label;
    progress->unit = unit;
    progress->total = total;
    progress->start_ns = now_ns;
    atomic_init(&progress->done, 0);
    atomic_init(&progress->next_draw_ns, now_ns + QUIET_NS);
    atomic_flag_clear(&progress->is_drawing);
    atomic_init(&progress->is_drawn, false);
}

void wg__progress_bar_init(struct wg_progress_bar *progress, const char *label, const char *unit,
                           uint64_t total)
{
    wg__progress_bar_init_at(progress, STDERR_FILENO, label, unit, total, wg__clock_ns());
}

static unsigned terminal_columns(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return COLUMNS_DEFAULT;
    return size.ws_col < COLUMNS_MAX ? size.ws_col : COLUMNS_MAX;
}

/* "4 s", "3:05 min", "2:04 h". */
static void format_duration(char *text, size_t size, double seconds)
{
    if (!(seconds < 360000.0)) {
        (void)snprintf(text, size, "long");
        return;
    }
    const unsigned whole = (unsigned)(seconds + 0.5);
    if (whole < 60)
        (void)snprintf(text, size, "%u s", whole);
    else if (whole < 3600)
        (void)snprintf(text, size, "%u:%02u min", whole / 60, whole % 60);
    else
        (void)snprintf(text, size, "%u:%02u h", whole / 3600, whole / 60 % 60);
}

/* "0.25", "12.3", "412", "3.1k", "2.0M". */
static void format_rate(char *text, size_t size, double per_s)
{
    if (per_s >= 1e6)
        (void)snprintf(text, size, "%.1fM", per_s / 1e6);
    else if (per_s >= 1e3)
        (void)snprintf(text, size, "%.1fk", per_s / 1e3);
    else
        (void)snprintf(text, size, "%.*f", per_s >= 100 ? 0 : per_s >= 10 ? 1 : 2, per_s);
}

/* The bar in `cells` columns of half a cell's resolution; returns the bytes. */
static size_t append_bar(char *line, size_t size, unsigned cells, double share)
{
    const unsigned halves = (unsigned)(share * 2 * cells + 0.5);
    size_t length = 0;
    for (unsigned i = 0; i < cells && length + 4 < size; i++) {
        const char *cell = 2 * i + 2 <= halves ? "━" : 2 * i + 1 == halves ? "╸" : "─";
        const size_t bytes = strlen(cell);
        memcpy(line + length, cell, bytes);
        length += bytes;
    }
    line[length] = '\0';
    return length;
}

size_t wg__progress_bar_line(char *line, size_t size, unsigned columns,
                             const struct wg_progress_bar *progress, uint64_t done,
                             uint64_t elapsed_ns)
{
    const uint64_t total = progress->total;
    if (done > total)
        done = total;
    const double share = total > 0 ? (double)done / (double)total : 1.0;
    const double elapsed_s = (double)elapsed_ns / 1e9;
    const double rate = elapsed_s > 0 ? (double)done / elapsed_s : 0;
    char left[32] = "";
    if (done > 0 && done < total)
        format_duration(left, sizeof left, (double)(total - done) / rate);
    char rate_text[32];
    format_rate(rate_text, sizeof rate_text, rate);
    char numbers[192];
    const int numbers_length =
        snprintf(numbers, sizeof numbers, "  %3.0f %%  %llu/%llu %.40s  %s/s%s%s%s", share * 100,
                 (unsigned long long)done, (unsigned long long)total, progress->unit, rate_text,
                 left[0] != '\0' ? "  " : "", left, left[0] != '\0' ? " left" : "");

    /* Parts go when the terminal is narrow: first the bar shrinks, then it goes, then the label. */
    const size_t label_length = strlen(progress->label);
    const size_t fixed = label_length + 2 + (size_t)numbers_length;
    unsigned cells = 0;
    if (fixed + BAR_CELLS_MIN <= columns)
        cells =
            columns - (unsigned)fixed < BAR_CELLS_MAX ? columns - (unsigned)fixed : BAR_CELLS_MAX;
    char bar[3 * BAR_CELLS_MAX + 8];
    append_bar(bar, sizeof bar, cells, share);
    int length;
    if (cells > 0)
        length = snprintf(line, size, "%s  %s%s", progress->label, bar, numbers);
    else if (label_length + (size_t)numbers_length <= columns)
        length = snprintf(line, size, "%s%s", progress->label, numbers);
    else
        length = snprintf(line, size, "%.*s", (int)columns, numbers + 2);
    return (size_t)length < size ? (size_t)length : size - 1;
}

/* What stderr refuses is lost: a bar is no result. */
static void write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        const ssize_t written = write(fd, bytes, length);
        if (written <= 0)
            return;
        bytes += written;
        length -= (size_t)written;
    }
}

static void draw(struct wg_progress_bar *progress, uint64_t now_ns)
{
    char line[LINE_BYTES];
    const uint64_t elapsed_ns = now_ns - progress->start_ns;
    size_t length = (size_t)snprintf(line, sizeof line, "\r");
    /* One column stays free: some terminals wrap when the last one is written. */
    length += wg__progress_bar_line(line + length, sizeof line - length - 8,
                                    terminal_columns(progress->fd) - 1, progress,
                                    atomic_load(&progress->done), elapsed_ns);
    length += (size_t)snprintf(line + length, sizeof line - length, "\033[K");
    write_all(progress->fd, line, length);
    atomic_store(&progress->is_drawn, true);
}

void wg__progress_bar_advance_at(struct wg_progress_bar *progress, uint64_t steps, uint64_t now_ns)
{
    atomic_fetch_add(&progress->done, steps);
    if (!progress->is_terminal || now_ns < atomic_load(&progress->next_draw_ns))
        return;
    if (atomic_flag_test_and_set(&progress->is_drawing))
        return;
    /* Another thread may have drawn between our look and our taking of the lock. */
    if (now_ns >= atomic_load(&progress->next_draw_ns)) {
        draw(progress, now_ns);
        atomic_store(&progress->next_draw_ns, now_ns + INTERVAL_NS);
    }
    atomic_flag_clear(&progress->is_drawing);
}

void wg__progress_bar_advance(struct wg_progress_bar *progress, uint64_t steps)
{
    wg__progress_bar_advance_at(progress, steps, wg__clock_ns());
}

void wg__progress_bar_fini(struct wg_progress_bar *progress)
{
    static const char erase[] = "\r\033[K";
    if (atomic_exchange(&progress->is_drawn, false))
        write_all(progress->fd, erase, sizeof erase - 1);
}
