/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry of a job's progress: any bytes, as lines of the progress file and as what the job
 * prints, give events that hold together.
 *
 * The first byte says how large the pieces are in which the rest comes. Whatever they are, the
 * events are the same; steps and epochs never go back, moments lie between the opening and now, and
 * names are printable.
 *
 *     CC=clang-19 meson setup build/fuzz -Dfuzz=true && ninja -C build/fuzz
 * tests/fuzz/fuzz_progress build/fuzz/tests/fuzz/fuzz_progress -max_total_time=60 NEW_FOLDER
 * tests/fuzz/corpus/progress
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "live/line_splitter.h"
#include "live/progress_line.h"
#include "live/progress_match.h"

/* libFuzzer prescribes the name. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OPENED_NS = 1000, NOW_NS = 2000 };

struct run {
    struct wg_progress_feed feed;
    struct wg_progress_matcher *matcher; /* NULL: lines of the file */
    double last[WG_PROGRESS_KIND_COUNT];
    double sum; /* of what was told, to compare runs */
};

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void take(const struct wg_progress_event *event, void *context)
{
    struct run *run = context;
    require(event->kind < WG_PROGRESS_KIND_COUNT);
    require(event->t_ns >= OPENED_NS && event->t_ns <= NOW_NS);
    if (event->kind != WG_PROGRESS_METRIC)
        require(event->value >= 0 && isfinite(event->value));
    if (event->kind == WG_PROGRESS_STEP || event->kind == WG_PROGRESS_EPOCH)
        require(event->value >= run->last[event->kind]);
    run->last[event->kind] = event->value;
    require(memchr(event->name, '\0', sizeof event->name) != NULL);
    for (const char *at = event->name; *at != '\0'; at++)
        require((unsigned char)*at > 0x20 && *at != 0x7F);
    if (isfinite(event->value))
        run->sum += event->value;
}

static void take_line(const char *line, size_t length, bool is_cut, void *context)
{
    struct run *run = context;
    if (run->matcher != NULL)
        wg__progress_matcher_line(run->matcher, &run->feed, line, length);
    else
        wg__progress_feed_line(&run->feed, line, length, is_cut);
}

static void play(struct run *run, bool prints, const uint8_t *data, size_t size, size_t piece)
{
    static char buffer[WG_PROGRESS_TEXT_MAX];
    struct wg_line_splitter lines = {.data = buffer,
                                     .capacity =
                                         prints ? sizeof buffer : (size_t)WG_PROGRESS_LINE_MAX + 2,
                                     .is_terminal = prints};
    *run = (struct run){0};
    wg__progress_feed_init(&run->feed, take, run, OPENED_NS);
    run->feed.now_ns = NOW_NS;
    struct wg_error err;
    if (prints)
        require(wg__progress_matcher_new(&run->matcher, "step (\\S+)", "epoch",
                                         "acc\\w* ?= ?(\\S*)", &err) == WG_OK);
    for (size_t at = 0; at < size; at += piece)
        wg__lines_split(&lines, (const char *)data + at, size - at < piece ? size - at : piece,
                        take_line, run);
    wg__lines_end(&lines, take_line, run);
    for (const char *at = run->feed.rejected; *at != '\0'; at++)
        require(*at >= 0x20 && *at < 0x7F);
    wg__progress_matcher_free(run->matcher);
    wg__progress_feed_fini(&run->feed);
}

static bool is_same(double left, double right)
{
    return left == right || (isnan(left) && isnan(right));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    for (int prints = 0; prints <= 1; prints++) {
        struct run whole, pieces;
        play(&whole, prints != 0, data + 1, size - 1, size);
        play(&pieces, prints != 0, data + 1, size - 1, (size_t)data[0] + 1);
        require(whole.feed.event_count == pieces.feed.event_count);
        require(whole.feed.rejected_count == pieces.feed.rejected_count);
        require(is_same(whole.sum, pieces.sum));
    }
    return 0;
}
