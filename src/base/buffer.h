/* SPDX-License-Identifier: MIT
 *
 * A growing text buffer.
 *
 * Writers append without checking each call: the first failure (memory, formatting) sticks in
 * `failed`, later appends do nothing, and the owner checks once at the end. `data` always ends with
 * a zero byte once anything was appended.
 *
 * Owns: `data`.    Threads: one thread at a time.
 */
#ifndef WG_BASE_BUFFER_H
#define WG_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct wg_buffer {
    char *data;
    size_t length;
    size_t capacity;
    bool failed;
};

void wg__buffer_init(struct wg_buffer *buffer);
void wg__buffer_fini(struct wg_buffer *buffer);
void wg__buffer_append(struct wg_buffer *buffer, const char *bytes, size_t length);
void wg__buffer_puts(struct wg_buffer *buffer, const char *text);
void wg__buffer_printf(struct wg_buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
