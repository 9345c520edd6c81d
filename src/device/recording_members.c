/* SPDX-License-Identifier: MIT
 *
 * Members of JSON objects, checked.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/number.h"
#include "device/recording_parts.h"

enum wg_code wg__members_fail(struct wg_members *members, const char *format, ...)
{
    if (members->code != WG_OK)
        return members->code;
    char detail[256];
    va_list args;
    va_start(args, format);
    if (wg__format(detail, sizeof detail, format, args) < 0)
        detail[0] = '\0';
    va_end(args);
    members->code = wg__fail(members->err, WG_EDATA, "%s:%zu: %s%s", members->file, members->line,
                             members->where, detail);
    return members->code;
}

/* The member; NULL: not there, or null. */
static const json_t *find(const struct wg_members *members, const char *key)
{
    const json_t *value = json_object_get(members->object, key);
    return json_is_null(value) ? NULL : value;
}

static const char *keep_text(struct wg_members *members, const json_t *value)
{
    char *text = wg__arena_strdup(&members->recording->arena, json_string_value(value));
    if (text == NULL) {
        if (members->code == WG_OK)
            members->code = wg__fail(members->err, WG_ENOMEM, "%s: out of memory", members->file);
        return NULL;
    }
    for (char *p = text; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7F)
            *p = '?';
    }
    return text;
}

const char *wg__member_text(struct wg_members *members, const char *key, bool is_needed)
{
    const json_t *value = find(members, key);
    if (value == NULL) {
        if (is_needed)
            (void)wg__members_fail(members, "'%s' is missing", key);
        return NULL;
    }
    if (!json_is_string(value)) {
        (void)wg__members_fail(members, "'%s' is no text", key);
        return NULL;
    }
    return keep_text(members, value);
}

double wg__member_number(struct wg_members *members, const char *key, double min, double max,
                         double absent)
{
    const json_t *value = find(members, key);
    if (value == NULL) {
        if (!isinf(absent))
            return absent;
        (void)wg__members_fail(members, "'%s' is missing", key);
        return 0.0;
    }
    const double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= min && number <= max)) {
        (void)wg__members_fail(members, "'%s' is not a number from %g to %g", key, min, max);
        return 0.0;
    }
    return number;
}

uint64_t wg__member_uint(struct wg_members *members, const char *key, uint64_t max)
{
    const json_t *value = find(members, key);
    if (value == NULL) {
        (void)wg__members_fail(members, "'%s' is missing", key);
        return 0;
    }
    const json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || (uint64_t)number > max) {
        (void)wg__members_fail(members, "'%s' is not a whole number from 0 to %llu", key,
                               (unsigned long long)max);
        return 0;
    }
    return (uint64_t)number;
}

bool wg__member_bool(struct wg_members *members, const char *key)
{
    const json_t *value = find(members, key);
    if (value != NULL && !json_is_boolean(value))
        (void)wg__members_fail(members, "'%s' is neither true nor false", key);
    return json_is_true(value);
}

enum wg_code wg__member_code(struct wg_members *members, const char *key)
{
    static const struct {
        const char *name;
        enum wg_code code;
    } codes[] = {
#define X(name, value, text) {"WG_" #name, WG_##name},
        WG_CODES(X)
#undef X
    };
    const json_t *value = find(members, key);
    const char *name = json_string_value(value);
    if (name == NULL) {
        (void)wg__members_fail(members, "'%s' is missing", key);
        return WG_EDATA;
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (strcmp(codes[i].name, name) == 0)
            return codes[i].code;
    }
    (void)wg__members_fail(members, "'%s': there is no code '%.40s'", key, name);
    return WG_EDATA;
}

const json_t *wg__member_object(struct wg_members *members, const char *key)
{
    const json_t *value = find(members, key);
    if (value != NULL && !json_is_object(value)) {
        (void)wg__members_fail(members, "'%s' is no object", key);
        return NULL;
    }
    return value;
}

const json_t *wg__member_array(struct wg_members *members, const char *key, size_t count_max)
{
    const json_t *value = find(members, key);
    if (value != NULL && !json_is_array(value)) {
        (void)wg__members_fail(members, "'%s' is no array", key);
        return NULL;
    }
    if (json_array_size(value) > count_max) {
        (void)wg__members_fail(members, "'%s' has more than %zu elements", key, count_max);
        return NULL;
    }
    return value;
}

const char *wg__members_element(struct wg_members *members, const char *key, const json_t *element)
{
    if (!json_is_string(element)) {
        (void)wg__members_fail(members, "'%s' holds something that is no text", key);
        return NULL;
    }
    return keep_text(members, element);
}
