/* SPDX-License-Identifier: MIT
 *
 * A growing text buffer whose first failure sticks.
 *
 * Invariant: data is NULL and length 0, or length < capacity and data[length] is 0. Capacity
 * doubles, so n bytes cost O(n). Formatting is done under the C locale whatever the program has
 * set: what is written here is JSON, SVG and CSV, where a decimal comma is an error.
 *
 * Owns: data.    Threads: one thread at a time.
 */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"

enum { CAPACITY_FIRST = 256 };

void wg__buffer_init(struct wg_buffer *buffer)
{
    *buffer = (struct wg_buffer){0};
}

void wg__buffer_fini(struct wg_buffer *buffer)
{
    if (buffer == NULL)
        return;
    wg__free(buffer->data);
    *buffer = (struct wg_buffer){0};
}

/* Makes room for `more` bytes and the final zero; marks the buffer as failed when it cannot. */
static bool reserve(struct wg_buffer *buffer, size_t more)
{
    if (buffer->failed)
        return false;
    if (more < buffer->capacity - buffer->length)
        return true;
    buffer->failed = true; /* until the room is there */
    if (more >= SIZE_MAX / 2 - buffer->length)
        return false;
    const size_t needed = buffer->length + more + 1;
    size_t capacity = buffer->capacity != 0 ? buffer->capacity : CAPACITY_FIRST;
    while (capacity < needed)
        capacity *= 2; /* cannot overflow: needed is at most half of SIZE_MAX */
    char *data = wg__realloc_array(buffer->data, capacity, 1);
    if (data == NULL)
        return false;
    buffer->data = data;
    buffer->capacity = capacity;
    buffer->failed = false;
    return true;
}

void wg__buffer_append(struct wg_buffer *buffer, const char *bytes, size_t length)
{
    if (!reserve(buffer, length))
        return;
    if (length != 0)
        memcpy(buffer->data + buffer->length, bytes, length);
    buffer->length += length;
    buffer->data[buffer->length] = '\0';
}

void wg__buffer_puts(struct wg_buffer *buffer, const char *text)
{
    wg__buffer_append(buffer, text, strlen(text));
}

void wg__buffer_printf(struct wg_buffer *buffer, const char *format, ...)
{
    if (!reserve(buffer, 0))
        return;
    /* Most texts fit into what is there; otherwise the first try tells how much is missing. */
    for (int tries = 0; tries < 2; tries++) {
        const size_t room = buffer->capacity - buffer->length;
        va_list args;
        va_start(args, format);
        const int length = wg__format(buffer->data + buffer->length, room, format, args);
        va_end(args);
        if (length < 0)
            break;
        if ((size_t)length < room) {
            buffer->length += (size_t)length;
            return;
        }
        buffer->data[buffer->length] = '\0'; /* takes the cut text back */
        if (!reserve(buffer, (size_t)length))
            return;
    }
    buffer->data[buffer->length] = '\0';
    buffer->failed = true;
}
