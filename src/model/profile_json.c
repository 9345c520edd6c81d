/* SPDX-License-Identifier: MIT
 *
 * Reads JSON documents whole.
 *
 * Threads: one thread at a time.
 */
#include "model/profile_json.h"

#include <math.h>

enum wg_code wg__profile_take_all(struct wg_source *source, struct wg_buffer *text,
                                  struct wg_error *err)
{
    for (;;) {
        const int byte = wg__source_peek(source, err);
        if (byte == WG_SOURCE_BROKEN)
            return source->stopped;
        if (byte == WG_SOURCE_END)
            return WG_OK;
        wg__buffer_append(text, source->cursor, (size_t)(source->end - source->cursor));
        source->cursor = source->end;
        if (text->failed)
            return wg__fail(err, WG_ENOMEM, "%s: out of memory", source->name);
        if (text->length > WG_PROFILE_JSON_MAX)
            return wg__fail(err, WG_EDATA, "%s: more than %d bytes", source->name,
                            WG_PROFILE_JSON_MAX);
    }
}

enum wg_code wg__json_load(const struct wg_profile_file *file, json_t **out, struct wg_error *err)
{
    struct wg_source source = {0};
    struct wg_buffer text;
    json_error_t error;
    wg__buffer_init(&text);
    *out = NULL;
    enum wg_code code = wg__profile_file_open(file, &source, err);
    if (code == WG_OK)
        code = wg__profile_take_all(&source, &text, err);
    if (code == WG_OK) {
        *out = json_loadb(text.data != NULL ? text.data : "", text.length, 0, &error);
        if (*out == NULL)
            code =
                wg__fail(err, WG_EDATA, "%s:%d: no JSON: %s", file->name, error.line, error.text);
    }
    wg__source_close(&source);
    wg__buffer_fini(&text);
    return code;
}

bool wg__json_whole(const json_t *value, uint64_t *out)
{
    const double number = json_number_value(value); /* 0 where it is none */
    if (!json_is_number(value) || number < 0.0 || number > 2147483648.0 || number != floor(number))
        return false;
    *out = (uint64_t)number;
    return true;
}
