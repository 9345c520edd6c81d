/* SPDX-License-Identifier: MIT
 *
 * From names and numbers to widths; see wave_widths.h.
 */
#include "cli/wave_widths.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/csv.h"
#include "base/source.h"

enum { FILE_MAX = 16 << 20, CHANNELS_MAX = 1 << 24, MODULE_SIZE = 512, NAME_SHOWN = 100 };

bool wg__wave_makes_width(const struct wg_layer *layer, size_t width)
{
    return layer->kind != WG_LAYER_BYTES && layer->out.part_count == 1 &&
           layer->out.constant == 0 && layer->out.parts[0].width == width &&
           layer->out.parts[0].multiple == 1;
}

/* The module of a node's name: its scopes joined by dots, without those that the next one repeats
 * ("layer1" before "layer1.0") and without the operator at the end. */
static bool is_module(const char *node, const char *module)
{
    char joined[MODULE_SIZE] = "";
    size_t length = 0;
    if (node[0] != '/')
        return false;
    for (const char *scope = node + 1; strchr(scope, '/') != NULL;) {
        const size_t size = (size_t)(strchr(scope, '/') - scope);
        const char *next = scope + size + 1;
        const bool is_repeated = strncmp(next, scope, size) == 0 && next[size] == '.';
        if (!is_repeated && length + size + 2 <= sizeof joined) {
            if (length > 0)
                joined[length++] = '.';
            memcpy(joined + length, scope, size);
            length += size;
            joined[length] = '\0';
        }
        scope = next;
    }
    return strcmp(joined, module) == 0;
}

static size_t find_width(const struct wg_network *network, const char *name)
{
    for (size_t w = 0; w < network->width_count; w++) {
        if (strcmp(network->widths[w].name, name) == 0)
            return w;
    }
    for (size_t i = 0; i < network->layer_count; i++) {
        const struct wg_layer *layer = &network->layers[i];
        if (layer->out.part_count == 0 ||
            (strcmp(layer->name, name) != 0 && !is_module(layer->name, name)))
            continue;
        if (wg__wave_makes_width(layer, layer->out.parts[0].width))
            return layer->out.parts[0].width;
    }
    return SIZE_MAX;
}

struct reading {
    const struct wg_network *network;
    const char *path;
    uint32_t *channels;
    bool *is_given;
};

/* `line`: 0 where there is none. */
static enum wg_code take(const struct reading *reading, size_t line, const char *name,
                         uint64_t channels, struct wg_error *err)
{
    char where[32] = "";
    if (line > 0)
        (void)snprintf(where, sizeof where, "%zu:", line);
    const size_t w = find_width(reading->network, name);
    if (w == SIZE_MAX)
        return wg__fail(err, WG_EDATA, "%s:%s '%.*s' is neither a width nor a layer that makes one",
                        reading->path, where, NAME_SHOWN, name);
    const struct wg_width *width = &reading->network->widths[w];
    if (channels < 1 || channels > CHANNELS_MAX)
        return wg__fail(err, WG_EDATA, "%s:%s '%.*s' has %" PRIu64 " channels, expected 1 to %d",
                        reading->path, where, NAME_SHOWN, name, channels, CHANNELS_MAX);
    if (width->is_fixed && channels != width->channels)
        return wg__fail(err, WG_EDATA,
                        "%s:%s '%.*s' has %" PRIu64 " channels, but its width is fixed at %u",
                        reading->path, where, NAME_SHOWN, name, channels, width->channels);
    assert(reading->is_given != NULL);
    if (reading->is_given[w] && reading->channels[w] != channels)
        return wg__fail(err, WG_EDATA,
                        "%s:%s '%.*s' has %" PRIu64 " channels, but %u were given for a layer of "
                        "the same width",
                        reading->path, where, NAME_SHOWN, name, channels, reading->channels[w]);
    reading->is_given[w] = true;
    reading->channels[w] = (uint32_t)channels;
    return WG_OK;
}

static enum wg_code read_csv(const struct reading *reading, const struct wg_buffer *text,
                             struct wg_error *err)
{
    struct wg_csv *csv = NULL;
    size_t name = 0;
    size_t channels = 0;
    bool has_record = true;
    enum wg_code code = wg__csv_open_memory(&csv, reading->path, text->data, text->length, err);
    if (code == WG_OK)
        code = wg__csv_column(csv, "name", &name, err);
    if (code == WG_OK)
        code = wg__csv_column(csv, "channels", &channels, err);
    while (code == WG_OK) {
        unsigned count = 0;
        code = wg__csv_next(csv, &has_record, err);
        if (code != WG_OK || !has_record)
            break;
        code = wg__csv_uint(csv, channels, 0, UINT32_MAX, &count, err);
        if (code == WG_OK)
            code = take(reading, wg__csv_line(csv), wg__csv_text(csv, name), count, err);
    }
    wg__csv_close(csv);
    return code;
}

static enum wg_code take_json(const struct reading *reading, const char *name, const json_t *value,
                              struct wg_error *err)
{
    if (name == NULL || !json_is_integer(value) || json_integer_value(value) < 0)
        return wg__fail(err, WG_EDATA, "%s: '%.*s': expected a whole number of channels",
                        reading->path, NAME_SHOWN, name != NULL ? name : "");
    return take(reading, 0, name, (uint64_t)json_integer_value(value), err);
}

static enum wg_code read_json(const struct reading *reading, const struct wg_buffer *text,
                              struct wg_error *err)
{
    json_error_t error;
    json_t *root = json_loadb(text->data, text->length, JSON_REJECT_DUPLICATES, &error);
    enum wg_code code = WG_OK;
    if (!json_is_object(root)) {
        code = wg__fail(err, WG_EDATA, "%s:%d: %s, expected an object", reading->path,
                        root == NULL ? error.line : 1, root == NULL ? error.text : "no object");
    } else if (json_object_get(root, "schema") != NULL) {
        const json_t *widths = json_object_get(root, "widths");
        for (size_t i = 0; i < json_array_size(widths) && code == WG_OK; i++) {
            const json_t *width = json_array_get(widths, i);
            code = take_json(reading, json_string_value(json_object_get(width, "name")),
                             json_object_get(width, "after"), err);
        }
    } else {
        const char *name;
        json_t *value;
        json_object_foreach(root, name, value)
        {
            if (code == WG_OK)
                code = take_json(reading, name, value, err);
        }
    }
    json_decref(root);
    return code;
}

static enum wg_code read_file(const char *path, struct wg_buffer *out, struct wg_error *err)
{
    struct wg_source source;
    enum wg_code code = wg__source_open(&source, path, err);
    if (code != WG_OK)
        return code;
    code = wg__source_skip_mark(&source, err);
    while (code == WG_OK && wg__source_peek(&source, err) >= 0) {
        wg__buffer_append(out, source.cursor, (size_t)(source.end - source.cursor));
        source.cursor = source.end;
        if (out->length > FILE_MAX)
            code = wg__fail(err, WG_EDATA, "%s: more than %d MiB", path, FILE_MAX >> 20);
    }
    if (code == WG_OK)
        code = source.stopped;
    wg__buffer_puts(out, "");
    if (code == WG_OK && out->failed)
        code = wg__fail(err, WG_ENOMEM, "no memory for %s", path);
    wg__source_close(&source);
    return code;
}

enum wg_code wg__wave_widths_read(const struct wg_network *network, const char *path,
                                  uint32_t *channels, struct wg_error *err)
{
    struct wg_buffer text;
    struct reading reading = {.network = network, .path = path, .channels = channels};
    wg__buffer_init(&text);
    enum wg_code code = read_file(path, &text, err);
    reading.is_given = wg__alloc_zeroed(network->width_count, sizeof *reading.is_given);
    if (code == WG_OK && reading.is_given == NULL)
        code = wg__fail(err, WG_ENOMEM, "no memory for %s", path);
    for (size_t w = 0; w < network->width_count; w++)
        channels[w] = network->widths[w].channels;
    if (code == WG_OK && text.length == 0)
        code = wg__fail(err, WG_EDATA, "%s: empty, expected CSV or JSON", path);
    if (code == WG_OK) {
        const size_t at = strspn(text.data, " \t\r\n");
        code =
            text.data[at] == '{' ? read_json(&reading, &text, err) : read_csv(&reading, &text, err);
    }
    wg__free(reading.is_given);
    wg__buffer_fini(&text);
    return code;
}
