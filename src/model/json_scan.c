/* SPDX-License-Identifier: MIT
 *
 * Walks JSON value by value.
 *
 * Owns: see the header.    Threads: one thread at a time.
 */
#include "model/json_scan.h"

#include <string.h>

void wg__json_scan_init(struct wg_json_scan *scan, struct wg_source *source)
{
    *scan = (struct wg_json_scan){.source = source};
    wg__buffer_init(&scan->text);
}

void wg__json_scan_fini(struct wg_json_scan *scan)
{
    wg__buffer_fini(&scan->text);
}

static bool is_blank(int byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

int wg__json_scan_peek(struct wg_json_scan *scan, struct wg_error *err)
{
    int byte = wg__source_peek(scan->source, err);
    while (is_blank(byte)) {
        wg__source_skip(scan->source);
        byte = wg__source_peek(scan->source, err);
    }
    return byte;
}

/* An error where `byte` was found, or the one that ended reading. */
static enum wg_code fail(struct wg_json_scan *scan, int byte, const char *expected,
                         struct wg_error *err)
{
    const struct wg_source *source = scan->source;
    if (byte == WG_SOURCE_BROKEN)
        return source->stopped;
    if (byte == WG_SOURCE_END)
        return wg__fail(err, WG_EDATA, "%s:%zu: the file ends, expected %s", source->name,
                        source->line, expected);
    return wg__fail(err, WG_EDATA, "%s:%zu: found '%c', expected %s", source->name, source->line,
                    (char)byte, expected);
}

static enum wg_code expect(struct wg_json_scan *scan, char wanted, const char *expected,
                           struct wg_error *err)
{
    const int byte = wg__json_scan_peek(scan, err);
    if (byte != wanted)
        return fail(scan, byte, expected, err);
    wg__source_skip(scan->source);
    return WG_OK;
}

enum wg_code wg__json_scan_enter(struct wg_json_scan *scan, char bracket, struct wg_error *err)
{
    scan->is_first = true;
    return expect(scan, bracket, bracket == '{' ? "an object" : "an array", err);
}

/* -- Values -------------------------------------------------------------------------------- */

/* Where a walk through a value stands. */
struct walk {
    size_t depth;
    bool in_string, is_escaped;
    size_t length; /* bytes passed */
};

/* Goes over one byte of a string, or its closing quote. */
static void walk_string(struct walk *walk, char c)
{
    if (walk->is_escaped)
        walk->is_escaped = false;
    else if (c == '\\')
        walk->is_escaped = true;
    else if (c == '"')
        walk->in_string = false;
}

static bool ends_bare(char c)
{
    return c == ',' || c == '}' || c == ']' || c == ':' || is_blank(c);
}

/* Goes over one byte; whether the value ends with it (`*with`) or before it. */
static bool walk_byte(struct walk *walk, char c, bool *with)
{
    *with = true;
    if (walk->in_string) {
        walk_string(walk, c);
        return !walk->in_string && walk->depth == 0;
    }
    if (c == '"') {
        walk->in_string = true;
    } else if (c == '{' || c == '[') {
        walk->depth++;
    } else if (walk->depth == 0) {
        *with = false;
        return ends_bare(c);
    } else if (c == '}' || c == ']') {
        return --walk->depth == 0;
    }
    return false;
}

/* Passes what the window holds of a value; whether it ends there. */
static bool walk_window(struct walk *walk, struct wg_source *source)
{
    const char *p = source->cursor;
    bool is_done = false;
    while (p < source->end && !is_done) {
        bool with = true;
        is_done = walk_byte(walk, *p, &with);
        if (is_done && !with)
            break;
        if (*p == '\n')
            source->line++;
        p++;
    }
    walk->length += (size_t)(p - source->cursor);
    source->cursor = p;
    return is_done;
}

static enum wg_code pass_value(struct wg_json_scan *scan, bool is_kept, size_t most,
                               struct wg_error *err)
{
    struct walk walk = {0};
    struct wg_source *source = scan->source;
    scan->text.length = 0;
    (void)wg__json_scan_peek(scan, err);
    for (bool is_done = false; !is_done;) {
        const int byte = wg__source_peek(source, err);
        if (byte == WG_SOURCE_END && walk.depth == 0 && !walk.in_string && walk.length != 0)
            break; /* a bare number at the end */
        if (byte < 0)
            return fail(scan, byte, "the end of a value", err);
        const char *from = source->cursor;
        is_done = walk_window(&walk, source);
        if (is_kept)
            wg__buffer_append(&scan->text, from, (size_t)(source->cursor - from));
        if (is_kept && walk.length > most)
            return wg__fail(err, WG_EDATA, "%s:%zu: a value of more than %zu bytes", source->name,
                            source->line, most);
    }
    if (walk.length == 0)
        return fail(scan, wg__source_peek(source, err), "a value", err);
    if (scan->text.failed)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", source->name);
    return WG_OK;
}

enum wg_code wg__json_scan_skip(struct wg_json_scan *scan, struct wg_error *err)
{
    return pass_value(scan, false, 0, err);
}

enum wg_code wg__json_scan_take(struct wg_json_scan *scan, size_t most, struct wg_error *err)
{
    return pass_value(scan, true, most, err);
}

/* -- Members ------------------------------------------------------------------------------- */

static enum wg_code read_key(struct wg_json_scan *scan, struct wg_error *err)
{
    enum { KEY_MAX = 4096 };
    const int byte = wg__json_scan_peek(scan, err);
    if (byte != '"')
        return fail(scan, byte, "a key in quotes", err);
    const enum wg_code code = pass_value(scan, true, KEY_MAX, err);
    if (code != WG_OK)
        return code;
    size_t length = scan->text.length - 2; /* without the quotes */
    if (length >= sizeof scan->key)
        length = sizeof scan->key - 1;
    memcpy(scan->key, scan->text.data + 1, length);
    scan->key[length] = '\0';
    return expect(scan, ':', "a ':' behind a key", err);
}

enum wg_code wg__json_scan_more(struct wg_json_scan *scan, char closer, bool *has_member,
                                struct wg_error *err)
{
    const bool is_first = scan->is_first;
    int byte = wg__json_scan_peek(scan, err);
    scan->is_first = false;
    *has_member = false;
    if (byte == closer) {
        wg__source_skip(scan->source);
        return WG_OK;
    }
    if (!is_first) {
        const enum wg_code code =
            expect(scan, ',', closer == '}' ? "',' or '}'" : "',' or ']'", err);
        if (code != WG_OK)
            return code;
        byte = wg__json_scan_peek(scan, err);
    }
    if (byte < 0)
        return fail(scan, byte, "another member", err);
    *has_member = true;
    return closer == '}' ? read_key(scan, err) : WG_OK;
}
