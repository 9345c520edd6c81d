/* SPDX-License-Identifier: MIT
 *
 * The live view; see top_view.h.
 */
#include "cli/top_view.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/duration.h"
#include "cli/quantity.h"
#include "device/sample.h"

enum {
    HEADER_ROWS = 2, /* the line of time, and the titles */
    FOOTER_ROWS = 2, /* the total, and the keys */
    CELL_SIZE = 64,
    BAR_MORE_MAX = 30, /* columns that a wide screen adds */
    THROTTLE_MORE_MAX = 40,
};

/* The columns, from left to right. `rank`: which goes first when the screen is narrow, counted from
 * 0, the last to go. */
#define COLUMNS(X)                                                                                 \
    /* name      title          width rank */                                                      \
    X(DEVICE, "device", 6, 0)                                                                      \
    X(BAR, "power", 10, 5)                                                                         \
    X(POWER, "W/limit", 9, 1)                                                                      \
    X(ENERGY, "energy", 9, 2)                                                                      \
    X(CLOCK, "MHz", 5, 6)                                                                          \
    X(MEMORY_CLOCK, "mem", 5, 9)                                                                   \
    X(TEMPERATURE, "temp", 4, 4)                                                                   \
    X(UTILIZATION, "util", 4, 3)                                                                   \
    X(MEMORY, "memory", 8, 7)                                                                      \
    X(THROTTLE, "held down by", 12, 8)                                                             \
    X(NAME, "name", 24, 10)

enum column {
#define X(name, title, width, rank) COLUMN_##name,
    COLUMNS(X)
#undef X
        COLUMN_COUNT
};

static const struct {
    const char *title;
    unsigned width;
    unsigned rank;
} columns[] = {
#define X(name, title, width, rank) {title, width, rank},
    COLUMNS(X)
#undef X
};

struct layout {
    unsigned start[COLUMN_COUNT];
    unsigned width[COLUMN_COUNT]; /* 0: there is no room for it */
};

static bool is_left(enum column column)
{
    return column == COLUMN_DEVICE || column == COLUMN_BAR || column == COLUMN_THROTTLE ||
           column == COLUMN_NAME;
}

static enum column column_of_rank(unsigned rank)
{
    unsigned column = 0;
    while (column + 1 < COLUMN_COUNT && columns[column].rank != rank)
        column++;
    return (enum column)column;
}

/* Widens a column by what is left over, at most to `max` more. */
static unsigned widen(struct layout *layout, enum column column, unsigned left, unsigned max)
{
    if (layout->width[column] == 0)
        return 0;
    const unsigned more = left < max ? left : max;
    layout->width[column] += more;
    return more;
}

/* Which columns fit, where they begin. What is left over widens the bar and the reasons. A less
 * important column isn't squeezed in where a more important one had no room. */
static void make_layout(struct layout *layout, unsigned width)
{
    *layout = (struct layout){0};
    unsigned used = 0;
    for (unsigned rank = 0; rank < COLUMN_COUNT; rank++) {
        const enum column column = column_of_rank(rank);
        const unsigned needed = columns[column].width + (rank > 0 ? 1 : 0);
        if (rank > 0 && used + needed > width)
            break;
        layout->width[column] = columns[column].width;
        used += needed;
    }
    unsigned left = used < width ? width - used : 0;
    const unsigned for_bar = layout->width[COLUMN_THROTTLE] > 0 ? left / 2 : left;
    left -= widen(layout, COLUMN_BAR, for_bar, BAR_MORE_MAX);
    (void)widen(layout, COLUMN_THROTTLE, left, THROTTLE_MORE_MAX);
    unsigned at = 0;
    for (int c = 0; c < COLUMN_COUNT; c++) {
        layout->start[c] = at;
        at += layout->width[c] > 0 ? layout->width[c] + 1 : 0;
    }
}

/* A cell of at most its column's width. */
static void put_cell(struct wg_top_frame *frame, const struct layout *layout, unsigned row,
                     enum column column, enum wg_top_style style, const char *text)
{
    const unsigned width = layout->width[column];
    const size_t length = strlen(text);
    if (width == 0)
        return;
    const unsigned skip = is_left(column) || length >= width ? 0 : width - (unsigned)length;
    (void)wg__top_frame_put(frame, row, layout->start[column] + skip, style, "%.*s",
                            (int)(width - skip), text);
}

static double value_of(const struct wg_sample *sample, enum wg_metric metric)
{
    return wg__sample_has(sample, metric) ? sample->values[metric] : (double)NAN;
}

/* The limit that holds, or else the one that was asked for. */
static double limit_of(const struct wg_sample *sample)
{
    const double enforced = value_of(sample, WG_METRIC_ENFORCED_POWER_LIMIT_W);
    return isnan(enforced) ? value_of(sample, WG_METRIC_POWER_LIMIT_W) : enforced;
}

static double power_of(const struct wg_sample *sample)
{
    const double now = value_of(sample, WG_METRIC_POWER_W);
    return isnan(now) ? value_of(sample, WG_METRIC_POWER_AVERAGE_W) : now;
}

static enum wg_top_style style_of(double share)
{
    return share < 0.7 ? WG_TOP_LOW : share < 0.9 ? WG_TOP_MIDDLE : WG_TOP_HIGH;
}

static void put_bar(struct wg_top_frame *frame, const struct layout *layout, unsigned row,
                    double share)
{
    const unsigned width = layout->width[COLUMN_BAR], start = layout->start[COLUMN_BAR];
    if (width == 0 || isnan(share))
        return;
    const double inside = fmin(fmax(share, 0), 1);
    const unsigned full = (unsigned)lround(inside * width);
    for (unsigned i = 0; i < width; i++)
        (void)wg__top_frame_put(frame, row, start + i, i < full ? style_of(share) : WG_TOP_FAINT,
                                i < full ? "|" : ".");
}

/* "412/700", "412" where no limit is known, "-" where no power is. */
static void put_power(struct wg_top_frame *frame, const struct layout *layout, unsigned row,
                      double power_w, double limit_w, enum wg_top_style style)
{
    char text[CELL_SIZE] = "-";
    if (!isnan(power_w) && !isnan(limit_w))
        (void)snprintf(text, sizeof text, "%.0f/%.0f", power_w, limit_w);
    else if (!isnan(power_w))
        (void)snprintf(text, sizeof text, power_w < 100 ? "%.1f" : "%.0f", power_w);
    put_cell(frame, layout, row, COLUMN_POWER, style, text);
}

static void put_energy(struct wg_top_frame *frame, const struct layout *layout, unsigned row,
                       double energy_j, enum wg_top_style style)
{
    char text[WG_QUANTITY_TEXT_SIZE] = "-";
    if (!isnan(energy_j))
        wg__joules_text(text, energy_j);
    put_cell(frame, layout, row, COLUMN_ENERGY, style, text);
}

/* A number in a given unit; a dash where it is unknown. */
static void put_number(struct wg_top_frame *frame, const struct layout *layout, unsigned row,
                       enum column column, double value, const char *unit)
{
    char text[CELL_SIZE] = "-";
    if (!isnan(value))
        (void)snprintf(text, sizeof text, "%.0f%s", value, unit);
    put_cell(frame, layout, row, column, WG_TOP_PLAIN, text);
}

static void put_memory(struct wg_top_frame *frame, const struct layout *layout, unsigned row,
                       double bytes)
{
    char text[WG_QUANTITY_TEXT_SIZE] = "-";
    if (!isnan(bytes))
        wg__bytes_text(text, bytes);
    put_cell(frame, layout, row, COLUMN_MEMORY, WG_TOP_PLAIN, text);
}

/* Reasons in words; idleness is no news beside the others. */
static void put_throttle(struct wg_top_frame *frame, const struct layout *layout, unsigned row,
                         const struct wg_sample *sample)
{
    char text[CELL_SIZE * 3] = "-";
    size_t length = 0;
    if (sample->has_throttle)
        text[0] = '\0';
    for (unsigned bit = 0; sample->has_throttle && bit < 32; bit++) {
        const char *word = (sample->throttle >> bit & 1u) != 0
                               ? wg_throttle_text((enum wg_throttle)(1u << bit))
                               : NULL;
        if (word == NULL || length >= sizeof text)
            continue;
        const int added =
            snprintf(text + length, sizeof text - length, "%s%s", length > 0 ? ", " : "", word);
        length += added > 0 ? (size_t)added : 0;
    }
    const bool is_idle =
        sample->has_throttle && (sample->throttle & ~(uint32_t)WG_THROTTLE_IDLE) == 0;
    put_cell(frame, layout, row, COLUMN_THROTTLE, is_idle ? WG_TOP_FAINT : WG_TOP_MIDDLE, text);
}

static void put_device(struct wg_top_frame *frame, const struct layout *layout, unsigned row,
                       const struct wg_top_row *device)
{
    const struct wg_sample *sample = &device->sample;
    put_cell(frame, layout, row, COLUMN_DEVICE, WG_TOP_STRONG, device->info->label);
    if (device->trouble != NULL) {
        (void)wg__top_frame_put(frame, row, columns[COLUMN_DEVICE].width + 1, WG_TOP_TROUBLE, "%s",
                                device->trouble);
        return;
    }
    const double power_w = power_of(sample), limit_w = limit_of(sample);
    put_bar(frame, layout, row, power_w / limit_w);
    put_power(frame, layout, row, power_w, limit_w, WG_TOP_PLAIN);
    put_energy(frame, layout, row, device->energy_j, WG_TOP_PLAIN);
    put_number(frame, layout, row, COLUMN_CLOCK, value_of(sample, WG_METRIC_CLOCK_HZ) / 1e6, "");
    put_number(frame, layout, row, COLUMN_MEMORY_CLOCK,
               value_of(sample, WG_METRIC_MEMORY_CLOCK_HZ) / 1e6, "");
    put_number(frame, layout, row, COLUMN_TEMPERATURE, value_of(sample, WG_METRIC_TEMPERATURE_C),
               "C");
    put_number(frame, layout, row, COLUMN_UTILIZATION,
               100 * value_of(sample, WG_METRIC_UTILIZATION), "%");
    put_memory(frame, layout, row, value_of(sample, WG_METRIC_MEMORY_USED_BYTES));
    put_throttle(frame, layout, row, sample);
    put_cell(frame, layout, row, COLUMN_NAME, WG_TOP_FAINT, device->info->name);
}

static size_t process_count(const struct wg_top_state *state)
{
    size_t count = 0;
    for (size_t i = 0; state->has_processes && i < state->row_count; i++)
        count += state->rows[i].process_count;
    return count;
}

/* Rows of the body: the devices; with processes a blank line, their titles, and they. */
static size_t body_count(const struct wg_top_state *state)
{
    return state->row_count + (state->has_processes ? 2 + process_count(state) : 0);
}

static size_t body_room(unsigned height)
{
    return height > HEADER_ROWS + FOOTER_ROWS ? height - HEADER_ROWS - FOOTER_ROWS : 1;
}

size_t wg__top_view_scroll_max(const struct wg_top_state *state, unsigned height)
{
    const size_t count = body_count(state), room = body_room(height);
    return count > room ? count - room : 0;
}

static void put_process(struct wg_top_frame *frame, unsigned row, const struct wg_top_state *state,
                        size_t index)
{
    for (size_t i = 0; i < state->row_count; i++) {
        const struct wg_top_row *device = &state->rows[i];
        if (index >= device->process_count) {
            index -= device->process_count;
            continue;
        }
        const struct wg_process_line *line = &device->processes[index];
        char memory[WG_QUANTITY_TEXT_SIZE] = "-";
        if (line->process.memory_bytes != UINT64_MAX)
            wg__bytes_text(memory, (double)line->process.memory_bytes);
        (void)wg__top_frame_put(frame, row, 0, WG_TOP_PLAIN, "%-6s %10u %10s %s",
                                device->info->label, line->process.pid, memory, line->name);
        return;
    }
}

static void put_body_row(struct wg_top_frame *frame, const struct layout *layout, unsigned row,
                         const struct wg_top_state *state, size_t index)
{
    if (index < state->row_count)
        put_device(frame, layout, row, &state->rows[index]);
    else if (index == state->row_count + 1)
        (void)wg__top_frame_put(frame, row, 0, WG_TOP_STRONG, "%-6s %10s %10s %s", "device",
                                "process", "memory", process_count(state) > 0 ? "name" : "(none)");
    else if (index > state->row_count + 1)
        put_process(frame, row, state, index - state->row_count - 2);
}

/* Where there is nothing to show: why. */
static void put_nothing(struct wg_top_frame *frame, const struct wg_top_state *state)
{
    unsigned row = HEADER_ROWS;
    (void)wg__top_frame_put(frame, row++, 0, WG_TOP_STRONG,
                            "Nothing on this machine can be measured:");
    for (size_t i = 0; i < state->backend_count; i++) {
        const struct wg_backend_info *backend = state->backends[i];
        (void)wg__top_frame_put(frame, row++, 0, WG_TOP_PLAIN, "%s: %s%s%s", backend->name,
                                backend->text, backend->remedy != NULL ? "; " : "",
                                backend->remedy != NULL ? backend->remedy : "");
    }
}

static void put_help(struct wg_top_frame *frame)
{
    static const char *const lines[] = {
        "q, Ctrl-C    quit",
        "p            processes on and off; they are asked for only while shown",
        "r            energy counts from now",
        "up, down     scroll; also page up, page down, home, end",
        "?            this help on and off",
        "",
        "W/limit      power now, and the limit that holds",
        "energy       since the start, or since r",
        "held down by why the clock is below what it could be",
        "-            not known: 'wattgov devices' says why",
    };
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++)
        if (HEADER_ROWS + i + 1 < frame->height)
            (void)wg__top_frame_put(frame, HEADER_ROWS + i, 0, WG_TOP_PLAIN, "%s", lines[i]);
}

static void put_header(struct wg_top_frame *frame, const struct layout *layout,
                       const struct wg_top_state *state, size_t first, size_t last)
{
    char interval[WG_DURATION_TEXT_SIZE], rows[CELL_SIZE] = "";
    wg__format_duration(interval, state->interval_s);
    const unsigned seconds = state->elapsed_s < 3.6e9 ? (unsigned)state->elapsed_s : 0;
    (void)wg__top_frame_put(frame, 0, 0, WG_TOP_STRONG, "wattgov top  every %s  for %02u:%02u:%02u",
                            interval, seconds / 3600, seconds / 60 % 60, seconds % 60);
    if (last - first < body_count(state) && state->row_count > 0) {
        (void)snprintf(rows, sizeof rows, "rows %zu-%zu of %zu", first + 1, last,
                       body_count(state));
        if (frame->width > strlen(rows))
            (void)wg__top_frame_put(frame, 0, frame->width - (unsigned)strlen(rows), WG_TOP_FAINT,
                                    "%s", rows);
    }
    for (int c = 0; c < COLUMN_COUNT; c++)
        put_cell(frame, layout, 1, (enum column)c, WG_TOP_HEADER, columns[c].title);
    wg__top_frame_style_row(frame, 1, WG_TOP_HEADER);
}

static void put_total(struct wg_top_frame *frame, const struct layout *layout, unsigned row,
                      const struct wg_top_state *state)
{
    double power_w = NAN;
    for (size_t i = 0; i < state->row_count; i++) {
        const struct wg_top_row *device = &state->rows[i];
        const double one_w = device->trouble == NULL ? power_of(&device->sample) : (double)NAN;
        if (device->info->counts_in_total && !isnan(one_w))
            power_w = isnan(power_w) ? one_w : power_w + one_w;
    }
    put_cell(frame, layout, row, COLUMN_DEVICE, WG_TOP_STRONG, "total");
    put_power(frame, layout, row, power_w, NAN, WG_TOP_STRONG);
    put_energy(frame, layout, row, state->total_energy_j, WG_TOP_STRONG);
    if (state->is_total_partial)
        (void)wg__top_frame_put(frame, row,
                                layout->start[COLUMN_ENERGY] + layout->width[COLUMN_ENERGY] + 1,
                                WG_TOP_MIDDLE, "not all of it");
}

void wg__top_view(const struct wg_top_state *state, struct wg_top_frame *frame)
{
    struct layout layout;
    make_layout(&layout, frame->width);
    const size_t room = body_room(frame->height), count = body_count(state);
    const size_t max = wg__top_view_scroll_max(state, frame->height);
    const size_t first = state->scroll < max ? state->scroll : max;
    const size_t last = first + room < count ? first + room : count;
    put_header(frame, &layout, state, first, last);
    if (state->has_help) {
        put_help(frame);
    } else if (state->row_count == 0) {
        put_nothing(frame, state);
    } else {
        for (size_t i = first; i < last; i++)
            put_body_row(frame, &layout, HEADER_ROWS + (unsigned)(i - first), state, i);
        if (frame->height > HEADER_ROWS + FOOTER_ROWS)
            put_total(frame, &layout, frame->height - 2, state);
    }
    if (frame->height > HEADER_ROWS + 1)
        (void)wg__top_frame_put(frame, frame->height - 1, 0, WG_TOP_FAINT,
                                "q quit  p processes  r reset energy  arrows scroll  ? help");
}
