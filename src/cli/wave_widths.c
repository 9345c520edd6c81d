/* SPDX-License-Identifier: MIT
 *
 * From names and numbers to widths, and to what they count; see wave_widths.h.
 */
#include "cli/wave_widths.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/csv.h"
#include "base/source.h"

enum {
    FILE_MAX_MIB = 16,
    CHANNELS_MAX = 1 << 24,
    MODULE_SIZE = 512,
    NAME_SHOWN = 100,
    IMPORTANCE_MAX = 1000000000
};

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

struct reading;

/* A name with what the file gives for it. */
struct named {
    const char *name;
    double value;
    char where[32]; /* "LINE:", where there are lines */
};

/* What a file gives for names: channels, or how much a parameter counts. */
struct reading {
    const struct wg_network *network;
    const char *path;
    const char *column; /* of CSV, beside "name" */
    enum wg_code (*take)(const struct reading *reading, const struct named *named, size_t width,
                         struct wg_error *err);
    uint32_t *channels;
    double *importance;
    size_t *given; /* how often a width was */
};

static enum wg_code take_channels(const struct reading *reading, const struct named *named,
                                  size_t w, struct wg_error *err)
{
    const struct wg_width *width = &reading->network->widths[w];
    const double channels = named->value;
    if (!(channels >= 1 && channels <= (double)CHANNELS_MAX && channels == floor(channels)))
        return wg__fail(
            err, WG_EDATA, "%s:%s '%.*s' has %.15g channels, expected a whole number from 1 to %d",
            reading->path, named->where, NAME_SHOWN, named->name, channels, CHANNELS_MAX);
    if (width->is_fixed && channels != width->channels)
        return wg__fail(
            err, WG_EDATA, "%s:%s '%.*s' has %.0f channels, but its width is fixed at %u",
            reading->path, named->where, NAME_SHOWN, named->name, channels, width->channels);
    if (reading->given[w] > 0 && reading->channels[w] != channels)
        return wg__fail(err, WG_EDATA,
                        "%s:%s '%.*s' has %.0f channels, but %u were given for a layer of the "
                        "same width",
                        reading->path, named->where, NAME_SHOWN, named->name, channels,
                        reading->channels[w]);
    reading->channels[w] = (uint32_t)channels;
    return WG_OK;
}

/* Layers that share a width count for it as their mean. */
static enum wg_code take_importance(const struct reading *reading, const struct named *named,
                                    size_t w, struct wg_error *err)
{
    if (!(named->value >= 0 && named->value <= (double)IMPORTANCE_MAX))
        return wg__fail(err, WG_EDATA, "%s:%s '%.*s' has the importance %g, expected 0 to %g",
                        reading->path, named->where, NAME_SHOWN, named->name, named->value,
                        (double)IMPORTANCE_MAX);
    const double before = reading->given[w] > 0 ? reading->importance[w] : 0.0;
    reading->importance[w] = before + (named->value - before) / (double)(reading->given[w] + 1);
    return WG_OK;
}

static enum wg_code take(const struct reading *reading, const struct named *named,
                         struct wg_error *err)
{
    const size_t w = find_width(reading->network, named->name);
    if (w == SIZE_MAX)
        return wg__fail(err, WG_EDATA, "%s:%s '%.*s' is neither a width nor a layer that makes one",
                        reading->path, named->where, NAME_SHOWN, named->name);
    const enum wg_code code = reading->take(reading, named, w, err);
    reading->given[w] += code == WG_OK;
    return code;
}

static enum wg_code read_csv(const struct reading *reading, const struct wg_buffer *text,
                             struct wg_error *err)
{
    struct wg_csv *csv = NULL;
    size_t name = 0;
    size_t column = 0;
    bool has_record = true;
    enum wg_code code = wg__csv_open_memory(&csv, reading->path, text->data, text->length, err);
    if (code == WG_OK)
        code = wg__csv_column(csv, "name", &name, err);
    if (code == WG_OK)
        code = wg__csv_column(csv, reading->column, &column, err);
    while (code == WG_OK) {
        struct named named = {.value = 0.0};
        code = wg__csv_next(csv, &has_record, err);
        if (code != WG_OK || !has_record)
            break;
        code = wg__csv_double(csv, column, &named.value, err);
        named.name = wg__csv_text(csv, name);
        (void)snprintf(named.where, sizeof named.where, "%zu:", wg__csv_line(csv));
        if (code == WG_OK)
            code = take(reading, &named, err);
    }
    wg__csv_close(csv);
    return code;
}

/* The mean of a list: how much each filter counts. */
static bool mean_of(const json_t *list, double *out)
{
    const size_t count = json_array_size(list);
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_number(value) || json_number_value(value) < 0)
            return false;
        sum += json_number_value(value);
    }
    *out = count > 0 ? sum / (double)count : 0.0;
    return count > 0;
}

static enum wg_code take_json(const struct reading *reading, const char *name, const json_t *value,
                              struct wg_error *err)
{
    struct named named = {.name = name};
    bool is_known = name != NULL && json_is_number(value);
    if (is_known)
        named.value = json_number_value(value);
    else if (name != NULL && reading->importance != NULL && json_is_array(value))
        is_known = mean_of(value, &named.value);
    if (!is_known)
        return wg__fail(err, WG_EDATA, "%s: '%.*s': expected %s", reading->path, NAME_SHOWN,
                        name != NULL ? name : "",
                        reading->importance != NULL ? "a number from 0 on, or a list of such"
                                                    : "a whole number of channels");
    return take(reading, &named, err);
}

/* What `wattgov wave plan` wrote. */
static enum wg_code read_plan(const struct reading *reading, const json_t *root,
                              struct wg_error *err)
{
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *widths = json_object_get(root, "widths");
    if (reading->importance != NULL || schema == NULL ||
        strcmp(schema, "wattgov.wave.plan/1") != 0 || !json_is_array(widths))
        return wg__fail(err, WG_EDATA, "%s: is '%.60s', expected %s", reading->path,
                        schema != NULL ? schema : "something else",
                        reading->importance != NULL ? "a number for each name"
                                                    : "a plan (wattgov.wave.plan/1)");
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < json_array_size(widths) && code == WG_OK; i++) {
        const json_t *width = json_array_get(widths, i);
        code = take_json(reading, json_string_value(json_object_get(width, "name")),
                         json_object_get(width, "after"), err);
    }
    return code;
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
        code = read_plan(reading, root, err);
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

static enum wg_code read_names(struct reading *reading, struct wg_error *err)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    enum wg_code code = wg__source_read_all(reading->path, FILE_MAX_MIB, &text, err);
    reading->given = wg__alloc_zeroed(reading->network->width_count, sizeof *reading->given);
    if (code == WG_OK && reading->given == NULL)
        code = wg__fail(err, WG_ENOMEM, "no memory for %s", reading->path);
    if (code == WG_OK && text.length == 0)
        code = wg__fail(err, WG_EDATA, "%s: empty, expected CSV or JSON", reading->path);
    if (code == WG_OK) {
        assert(reading->given != NULL);
        const size_t at = strspn(text.data, " \t\r\n");
        code =
            text.data[at] == '{' ? read_json(reading, &text, err) : read_csv(reading, &text, err);
    }
    wg__free(reading->given);
    wg__buffer_fini(&text);
    return code;
}

enum wg_code wg__wave_widths_read(const struct wg_network *network, const char *path,
                                  uint32_t *channels, struct wg_error *err)
{
    struct reading reading = {.network = network,
                              .path = path,
                              .column = "channels",
                              .take = take_channels,
                              .channels = channels};
    for (size_t w = 0; w < network->width_count; w++)
        channels[w] = network->widths[w].channels;
    return read_names(&reading, err);
}

enum wg_code wg__wave_importance_read(const struct wg_network *network, const char *path,
                                      double *importance, struct wg_error *err)
{
    struct reading reading = {.network = network,
                              .path = path,
                              .column = "importance",
                              .take = take_importance,
                              .importance = importance};
    for (size_t w = 0; w < network->width_count; w++)
        importance[w] = 1.0;
    const enum wg_code code = read_names(&reading, err);
    if (code != WG_OK)
        return code;
    double most = 0.0;
    for (size_t w = 0; w < network->width_count; w++)
        most = fmax(most, importance[w]);
    return most > 0.0 ? WG_OK
                      : wg__fail(err, WG_EDATA, "%s: every width has the importance 0", path);
}
