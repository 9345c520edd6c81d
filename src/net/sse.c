/* SPDX-License-Identifier: MIT
 *
 * The parser of server-sent events.
 *
 * Bytes gather into a line; a whole line is a field of the event, or its end. Whatever the pieces
 * in which the bytes come, the events are the same.
 *
 * Owns: see struct wg_sse.    Threads: one at a time.
 */
#include "net/sse.h"

#include <string.h>

void wg__sse_init(struct wg_sse *sse)
{
    *sse = (struct wg_sse){0};
    wg__buffer_init(&sse->line);
    wg__buffer_init(&sse->data);
}

void wg__sse_fini(struct wg_sse *sse)
{
    wg__buffer_fini(&sse->line);
    wg__buffer_fini(&sse->data);
}

void wg__sse_restart(struct wg_sse *sse)
{
    struct wg_buffer line = sse->line, data = sse->data;
    if (line.failed || data.failed) {
        wg__buffer_fini(&line);
        wg__buffer_fini(&data);
    }
    line.length = data.length = 0;
    *sse = (struct wg_sse){.line = line, .data = data};
}

static void end_event(struct wg_sse *sse, wg_sse_event *on_event, void *context)
{
    if (sse->has_data)
        on_event(context, sse->data.length != 0 ? sse->data.data : "", sse->data.length);
    sse->data.length = 0;
    sse->has_data = false;
}

/* The value of a data line: what is behind the colon, less one blank. */
static void take_data(struct wg_sse *sse, const char *value, size_t length)
{
    if (length > 0 && *value == ' ') {
        value++;
        length--;
    }
    if (sse->has_data)
        wg__buffer_append(&sse->data, "\n", 1);
    wg__buffer_append(&sse->data, value, length);
    sse->has_data = true;
    if (sse->data.failed || sse->data.length > WG_SSE_EVENT_MAX)
        sse->is_broken = true;
}

static void end_line(struct wg_sse *sse, wg_sse_event *on_event, void *context)
{
    const char *line = sse->line.length != 0 ? sse->line.data : "";
    size_t length = sse->line.length;
    if (!sse->is_begun && length >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0) {
        line += 3;
        length -= 3;
    }
    sse->is_begun = true;
    if (length == 0)
        end_event(sse, on_event, context);
    else if (length == 4 && memcmp(line, "data", 4) == 0)
        take_data(sse, "", 0);
    else if (length > 4 && memcmp(line, "data:", 5) == 0)
        take_data(sse, line + 5, length - 5);
    sse->line.length = 0;
}

bool wg__sse_push(struct wg_sse *sse, const char *bytes, size_t length, wg_sse_event *on_event,
                  void *context)
{
    const char *at = bytes;
    const char *const end = bytes + length;
    while (at < end && !sse->is_broken) {
        if (sse->after_cr && *at == '\n')
            at++;
        sse->after_cr = false;
        const char *from = at;
        while (at < end && *at != '\n' && *at != '\r')
            at++;
        wg__buffer_append(&sse->line, from, (size_t)(at - from));
        if (sse->line.failed || sse->line.length > WG_SSE_EVENT_MAX) {
            sse->is_broken = true;
        } else if (at < end) {
            sse->after_cr = *at == '\r';
            at++;
            end_line(sse, on_event, context);
        }
    }
    return !sse->is_broken;
}
