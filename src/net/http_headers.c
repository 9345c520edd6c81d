/* SPDX-License-Identifier: MIT
 *
 * Headers of requests and of answers.
 *
 * Threads: pure, any thread.
 */
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/number.h"
#include "net/grpc.h"
#include "net/http_parts.h"

/* -- Of requests ------------------------------------------------------------------------------ */

void wg__http_headers_free(struct wg_http_headers *headers)
{
    if (headers == NULL)
        return;
    for (struct curl_slist *at = headers->list, *next; at != NULL; at = next) {
        next = at->next;
        wg__free(at->data);
        wg__free(at);
    }
    for (size_t i = 0; i < headers->count; i++)
        wg__free(headers->texts[i]);
    wg__free(headers);
}

static bool append_line(struct wg_http_headers *headers, const char *line)
{
    struct curl_slist *added = wg__alloc_zeroed(1, sizeof *added);
    if (added == NULL)
        return false;
    if (headers->last != NULL)
        headers->last->next = added;
    else
        headers->list = added;
    headers->last = added;
    added->data = wg__strdup(line);
    return added->data != NULL;
}

static bool add_header(struct wg_http_headers *headers, const char *line)
{
    if (!append_line(headers, line))
        return false;
    const char *colon = strchr(line, ':');
    const char *value = colon != NULL ? colon + 1 + strspn(colon + 1, " ") : "";
    if (*value == '\0') /* tells curl not to send it */
        return true;
    assert(headers->count < WG_HTTP_HEADERS_MAX);
    char *text = wg__strdup(line);
    if (text == NULL)
        return false;
    headers->texts[headers->count] = text;
    text[colon - line] = '\0';
    for (char *at = text; *at != '\0'; at++)
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
    headers->pairs[headers->count++] =
        (struct wg_h2c_header){.name = text, .value = text + (value - line)};
    return true;
}

enum wg_code wg__http_headers_new(struct wg_http_headers **out, const char *const *lines,
                                  struct wg_error *err)
{
    struct wg_http_headers *headers = wg__alloc_zeroed(1, sizeof *headers);
    bool is_whole = headers != NULL;
    for (size_t i = 0; is_whole && lines[i] != NULL; i++)
        is_whole = add_header(headers, lines[i]);
    if (!is_whole) {
        wg__http_headers_free(headers);
        return wg__fail(err, WG_ENOMEM, "headers of requests: out of memory");
    }
    *out = headers;
    return WG_OK;
}

/* -- Of answers -------------------------------------------------------------------------------- */

/* A decimal number of at most 18 digits; false when it is none. */
static bool read_count(const char *text, size_t length, uint64_t *out)
{
    char digits[20];
    if (length == 0 || length >= sizeof digits)
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    return wg__parse_uint64(digits, out);
}

static bool is_named(const char *name, size_t length, const char *wanted)
{
    return strlen(wanted) == length && strncasecmp(name, wanted, length) == 0;
}

void wg__http_take_header(struct wg_http_slot *slot, const char *name, size_t name_length,
                          const char *value, size_t value_length)
{
    uint64_t number = 0;
    const bool is_number = read_count(value, value_length, &number);
    if (is_named(name, name_length, "grpc-status"))
        slot->grpc_status =
            is_number && number <= WG_GRPC_STATUS_MAX ? (int)number : WG_GRPC_UNKNOWN;
    else if (is_named(name, name_length, "grpc-message"))
        wg__grpc_decode(slot->grpc_message, sizeof slot->grpc_message, value, value_length);
    else if (is_named(name, name_length, "Inference-Header-Content-Length") && is_number)
        slot->json_length = number <= SIZE_MAX ? (size_t)number : SIZE_MAX;
    else if (is_named(name, name_length, ":status") && is_number && number <= 999)
        slot->h2_status = (unsigned)number;
}
