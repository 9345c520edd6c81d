/* SPDX-License-Identifier: MIT
 *
 * Server-sent events, as they come in pieces: calls back with the data of each event.
 *
 *     data: {"choices": ...}\n        lines end with LF, CRLF or CR; a blank line ends an event;
 *     data: second line\n             its data lines are joined by LF; lines that begin with a
 *     \n                              colon, and other fields than data, are passed over
 *
 * Source: the HTML standard, "server-sent events", 9.2.6. An event that the stream does not end
 * with a blank line is dropped, as it says.
 *
 * Owns: the data of the present event, at most WG_SSE_EVENT_MAX bytes.    Threads: one at a time.
 */
#ifndef WG_NET_SSE_H
#define WG_NET_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum { WG_SSE_EVENT_MAX = 1 << 20 };

/* `data` is ended by a zero byte and valid during the call. */
typedef void wg_sse_event(void *context, const char *data, size_t length);

struct wg_sse {
    struct wg_buffer line;
    struct wg_buffer data;
    bool has_data; /* the event has a data line, maybe an empty one */
    bool after_cr; /* a LF now belongs to the line end that was seen */
    bool is_begun; /* the byte order mark, if any, is behind us */
    bool is_broken;
};

void wg__sse_init(struct wg_sse *sse);
void wg__sse_fini(struct wg_sse *sse);

/* For the next stream; keeps the memory. */
void wg__sse_restart(struct wg_sse *sse);

/* False, from then on: an event is longer than the bound, or memory has run out. */
bool wg__sse_push(struct wg_sse *sse, const char *bytes, size_t length, wg_sse_event *on_event,
                  void *context);

#endif
