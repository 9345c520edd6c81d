/* SPDX-License-Identifier: MIT
 *
 * A streaming JSON writer (RFC 8259).
 *
 * One entry per level of nesting is all the state: which bracket closes it, and whether a comma is
 * due. Bytes that are not UTF-8 would make the whole document invalid, so each of them becomes
 * U+FFFD; what counts as UTF-8 is table 3-7 of the Unicode standard (no surrogates, no overlong
 * forms, nothing above U+10FFFF). Failures of memory stick in the buffer.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"

void wg__json_init(struct wg_json *json, struct wg_buffer *out)
{
    *json = (struct wg_json){.out = out};
}

/* Puts the comma that is due in front of a key or of an array's element. */
static void separate(struct wg_json *json)
{
    if (json->depth == 0)
        return;
    bool *has_member = &json->has_member[json->depth - 1];
    if (*has_member)
        wg__buffer_append(json->out, ",", 1);
    *has_member = true;
}

static void begin_value(struct wg_json *json)
{
    if (json->after_key) {
        json->after_key = false;
        return;
    }
    assert(json->depth == 0 || json->closer[json->depth - 1] == ']'); /* an object needs a key */
    separate(json);
}

static void open_level(struct wg_json *json, char opener, char closer)
{
    begin_value(json);
    assert(json->depth < WG_JSON_DEPTH_MAX);
    json->closer[json->depth] = closer;
    json->has_member[json->depth] = false;
    json->depth++;
    wg__buffer_append(json->out, &opener, 1);
}

void wg__json_object(struct wg_json *json)
{
    open_level(json, '{', '}');
}

void wg__json_array(struct wg_json *json)
{
    open_level(json, '[', ']');
}

void wg__json_close(struct wg_json *json)
{
    assert(json->depth > 0 && !json->after_key);
    json->depth--;
    wg__buffer_append(json->out, &json->closer[json->depth], 1);
}

static void write_escape(struct wg_buffer *out, unsigned char byte)
{
    static const char plain[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";
    const char *found = strchr(plain, byte);
    if (found != NULL) {
        const char pair[2] = {'\\', letters[found - plain]};
        wg__buffer_append(out, pair, 2);
        return;
    }
    wg__buffer_printf(out, "\\u%04x", byte);
}

static void write_quoted(struct wg_buffer *out, const char *text)
{
    wg__buffer_append(out, "\"", 1);
    const char *p = text;
    while (*p != '\0') {
        const char *from = p; /* a run that needs no change goes out in one piece */
        size_t length = 0;
        while (*p != '\0' && (unsigned char)*p >= 0x20 && *p != '"' && *p != '\\' &&
               (length = wg__utf8_length((const unsigned char *)p)) != 0)
            p += length;
        wg__buffer_append(out, from, (size_t)(p - from));
        if (*p == '\0')
            break;
        if ((unsigned char)*p >= 0x80)
            wg__buffer_puts(out, "\xEF\xBF\xBD");
        else
            write_escape(out, (unsigned char)*p);
        p++;
    }
    wg__buffer_append(out, "\"", 1);
}

void wg__json_key(struct wg_json *json, const char *key)
{
    assert(json->depth > 0 && json->closer[json->depth - 1] == '}' && !json->after_key);
    separate(json);
    write_quoted(json->out, key);
    wg__buffer_append(json->out, ":", 1);
    json->after_key = true;
}

void wg__json_string(struct wg_json *json, const char *text)
{
    if (text == NULL) {
        wg__json_null(json);
        return;
    }
    begin_value(json);
    write_quoted(json->out, text);
}

void wg__json_double(struct wg_json *json, double value)
{
    if (!isfinite(value)) {
        wg__json_null(json);
        return;
    }
    begin_value(json);
    char text[WG_DOUBLE_TEXT_SIZE];
    wg__format_double(text, value);
    wg__buffer_puts(json->out, text);
}

void wg__json_uint(struct wg_json *json, uint64_t value)
{
    begin_value(json);
    wg__buffer_printf(json->out, "%" PRIu64, value);
}

void wg__json_bool(struct wg_json *json, bool value)
{
    begin_value(json);
    wg__buffer_puts(json->out, value ? "true" : "false");
}

void wg__json_null(struct wg_json *json)
{
    begin_value(json);
    wg__buffer_puts(json->out, "null");
}

void wg__json_member_string(struct wg_json *json, const char *key, const char *text)
{
    wg__json_key(json, key);
    wg__json_string(json, text);
}

void wg__json_member_double(struct wg_json *json, const char *key, double value)
{
    wg__json_key(json, key);
    wg__json_double(json, value);
}

void wg__json_member_uint(struct wg_json *json, const char *key, uint64_t value)
{
    wg__json_key(json, key);
    wg__json_uint(json, value);
}

void wg__json_member_bool(struct wg_json *json, const char *key, bool value)
{
    wg__json_key(json, key);
    wg__json_bool(json, value);
}

void wg__json_member_doubles(struct wg_json *json, const char *key, const double *values,
                             size_t count)
{
    wg__json_key(json, key);
    wg__json_array(json);
    for (size_t i = 0; i < count; i++)
        wg__json_double(json, values[i]);
    wg__json_close(json);
}
