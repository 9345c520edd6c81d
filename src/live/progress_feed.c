/* SPDX-License-Identifier: MIT
 *
 * From lines and numbers to events.
 *
 * Owns: the counts of the ranks.    Threads: pure, one thread at a time.
 */
#include "live/progress_feed.h"

#include <string.h>

#include "live/progress_line.h"

void wg__progress_feed_init(struct wg_progress_feed *feed, wg_progress_sink *sink, void *context,
                            uint64_t opened_ns)
{
    *feed = (struct wg_progress_feed){.sink = sink, .context = context, .opened_ns = opened_ns};
    for (size_t i = 0; i < WG_PROGRESS_COUNTED; i++) {
        wg__progress_count_init(&feed->told[i]);
        wg__progress_count_init(&feed->printed[i]);
    }
}

void wg__progress_feed_fini(struct wg_progress_feed *feed)
{
    for (size_t i = 0; i < WG_PROGRESS_COUNTED; i++) {
        wg__progress_count_fini(&feed->told[i]);
        wg__progress_count_fini(&feed->printed[i]);
    }
}

void wg__progress_feed_reject(struct wg_progress_feed *feed, const char *line, size_t length)
{
    const size_t kept = length < sizeof feed->rejected ? length : sizeof feed->rejected - 1;
    for (size_t i = 0; i < kept; i++) {
        const unsigned char byte = (unsigned char)line[i];
        feed->rejected[i] = byte < 0x20 || byte >= 0x7F ? '?' : line[i];
    }
    feed->rejected[kept] = '\0';
    feed->rejected_count++;
}

/* The count in which a number belongs; NULL: it does not count. */
static struct wg_progress_count *count_of(struct wg_progress_feed *feed, enum wg_progress_kind kind,
                                          bool is_printed)
{
    struct wg_progress_count *told = &feed->told[kind], *printed = &feed->printed[kind];
    if (is_printed)
        return told->count > 0 ? NULL : printed;
    if (told->count == 0 && printed->has_value)
        wg__progress_count_begin_at(told, printed->value);
    return told;
}

/* False: it is not believed. */
static bool take(struct wg_progress_feed *feed, const struct wg_progress_line *line,
                 bool is_printed)
{
    struct wg_progress_event event = {
        .kind = line->kind, .value = line->value, .rank = line->rank, .is_printed = is_printed};
    const bool is_sound =
        line->has_t && line->t_ns >= feed->opened_ns && line->t_ns <= feed->now_ns;
    event.t_ns = is_sound ? line->t_ns : feed->now_ns;
    if (line->kind <= WG_PROGRESS_EPOCH) {
        struct wg_progress_count *count = count_of(feed, line->kind, is_printed);
        if (count == NULL)
            return true;
        if (!wg__progress_count_add(count, line->rank, line->value, event.t_ns))
            return !count->is_wild;
        event.value = count->value;
    }
    if (event.t_ns < feed->last_ns[line->kind])
        event.t_ns = feed->last_ns[line->kind];
    feed->last_ns[line->kind] = event.t_ns;
    memcpy(event.name, line->name, sizeof event.name);
    feed->event_count++;
    if (feed->sink != NULL)
        feed->sink(&event, feed->context);
    return true;
}

void wg__progress_feed_line(struct wg_progress_feed *feed, const char *line, size_t length,
                            bool is_cut)
{
    struct wg_progress_line parsed;
    if (!is_cut && length > 0 && line[0] == '\r' && length == 1)
        return; /* an empty line of Windows */
    if (is_cut || !wg__progress_parse(&parsed, line, length) || !take(feed, &parsed, false))
        wg__progress_feed_reject(feed, line, length);
}

bool wg__progress_feed_value(struct wg_progress_feed *feed, enum wg_progress_kind kind,
                             double value)
{
    const struct wg_progress_line line = {.kind = kind, .value = value};
    return take(feed, &line, true);
}
