/* SPDX-License-Identifier: MIT
 *
 * A progress that writes down its events, for tests: "step 5@0;metric nan loss@3;".
 */
#ifndef WG_TESTS_SUPPORT_PROGRESS_EVENTS_H
#define WG_TESTS_SUPPORT_PROGRESS_EVENTS_H

#include <poll.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "live/progress.h"
#include "support/scratch.h"

struct progress_events {
    struct wg_progress *progress;
    struct wg_buffer text;
    size_t count;
    struct wg_progress_event last;
};

static inline void progress_events_take(const struct wg_progress_event *event, void *context)
{
    static const char *const words[] = {
#define X(name, word) word,
        WG_PROGRESS_KINDS(X)
#undef X
    };
    struct progress_events *events = context;
    wg__buffer_printf(&events->text, "%s %g%s%s@%u;", words[event->kind], event->value,
                      *event->name != '\0' ? " " : "", event->name, event->rank);
    events->count++;
    events->last = *event;
}

static inline enum wg_code progress_events_try(struct progress_events *events,
                                               struct wg_progress_opts opts, struct wg_error *err)
{
    *events = (struct progress_events){0};
    wg__buffer_init(&events->text);
    wg__buffer_puts(&events->text, "");
    opts.sink = progress_events_take;
    opts.context = events;
    return wg__progress_open(&events->progress, &opts, err);
}

static inline void progress_events_open(struct progress_events *events,
                                        struct wg_progress_opts opts)
{
    struct wg_error err;
    if (progress_events_try(events, opts, &err) != WG_OK)
        fail_msg("%s", err.text);
}

/* Waits for the descriptor and pumps, until there are `count` events in all or 20 s have passed. */
static inline void progress_events_wait(struct progress_events *events, size_t count)
{
    const uint64_t deadline_ns = wg__clock_ns() + 20000000000U;
    while (events->count < count && wg__clock_ns() < deadline_ns) {
        struct pollfd ready = {.fd = wg__progress_fd(events->progress), .events = POLLIN};
        (void)poll(&ready, 1, 1000);
        (void)wg__progress_pump(events->progress);
    }
    if (events->count < count)
        fail_msg("%zu events of %zu: %s", events->count, count, events->text.data);
}

/* Pumps until the descriptor says that there is no more. */
static inline void progress_events_drain(struct progress_events *events)
{
    struct pollfd ready = {.fd = wg__progress_fd(events->progress), .events = POLLIN};
    do
        (void)wg__progress_pump(events->progress);
    while (poll(&ready, 1, 0) > 0);
}

static inline void progress_events_expect(struct progress_events *events, const char *expected)
{
    assert_string_equal(events->text.data, expected);
}

static inline void progress_events_close(struct progress_events *events)
{
    wg__progress_close(events->progress);
    events->progress = NULL;
}

static inline void progress_events_fini(struct progress_events *events)
{
    wg__progress_close(events->progress);
    wg__buffer_fini(&events->text);
}

/* Appends to the file as a job does. */
static inline void progress_append(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "abe");
    scratch_require(file != NULL, path);
    scratch_require(fwrite(bytes, 1, length, file) == length && fclose(file) == 0, path);
}

static inline void progress_say(const struct progress_events *events, const char *text)
{
    progress_append(wg__progress_path(events->progress), text, strlen(text));
}

#endif
