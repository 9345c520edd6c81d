/* SPDX-License-Identifier: MIT
 *
 * Reads a calibration from JSON; the fields are those of calibration_write.c.
 *
 * Every number is checked against the range that keeps the formula finite, so that a prediction
 * needs no checks of its own. A message names the place: "FILE: entries[2].tiles[0][7]: ...".
 * JSON is jansson's work; its memory does not pass through wg__alloc.
 *
 * Threads: one thread at a time.
 */
#include "wave/calibration_set.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "wave/choice_tree.h"
#include "wave/correction.h"
#include "wave/forest_json.h"

/* Where in the document we are, for messages. */
struct place {
    const char *name;
    size_t entry;
    struct wg_error *err;
};

static enum wg_code fail(const struct place *place, const char *field, const char *expected)
{
    return wg__fail(place->err, WG_EDATA, "%s: entries[%zu].%s: expected %s", place->name,
                    place->entry, field, expected);
}

static enum wg_code read_number(const struct place *place, const json_t *value, const char *field,
                                double low, double high, double *out)
{
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= low && number <= high)) {
        char expected[80];
        (void)snprintf(expected, sizeof expected, "a number in %g .. %g", low, high);
        return fail(place, field, expected);
    }
    *out = number;
    return WG_OK;
}

static enum wg_code read_text(const struct place *place, const json_t *entry, const char *field,
                              char out[static WG_GPU_ID_SIZE])
{
    const char *text = json_string_value(json_object_get(entry, field));
    if (text == NULL || *text == '\0' || strlen(text) >= WG_GPU_ID_SIZE)
        return fail(place, field, "a text of 1 .. 47 bytes");
    memcpy(out, text, strlen(text) + 1);
    return WG_OK;
}

static enum wg_code read_names(const struct place *place, const json_t *json,
                               struct wg_calibrated *entry)
{
    enum wg_code code = read_text(place, json, "gpu", entry->gpu);
    if (code == WG_OK)
        code = read_text(place, json, "arch", entry->arch);
    char text[WG_GPU_ID_SIZE];
    if (code == WG_OK)
        code = read_text(place, json, "dtype", text);
    if (code == WG_OK && wg__dtype_parse(text, &entry->dtype, NULL) != WG_OK)
        code = fail(place, "dtype", "fp32, tf32, fp16, bf16, fp8 or int8");
    if (code == WG_OK)
        code = read_text(place, json, "op", text);
    if (code != WG_OK)
        return code;
    for (int op = 0; op < WG_OP_CLASS_COUNT; op++)
        if (strcmp(text, wg__op_class_name((enum wg_op_class)op)) == 0) {
            entry->op = (enum wg_op_class)op;
            return WG_OK;
        }
    return fail(place, "op", "linear, bmm, conv, conv_3x3, conv_dgrad, conv_wgrad or bytes");
}

struct field {
    const char *name;
    double low, high;
    size_t offset;  /* in struct wg_calibrated */
    double without; /* where it may be missing: what it is then */
    bool may_be_missing;
};

#define FIELD(name, low, high, member)                                                             \
    {name, low, high, offsetof(struct wg_calibrated, member), 0.0, false}
#define LATER_FIELD(name, low, high, member, without)                                              \
    {name, low, high, offsetof(struct wg_calibrated, member), without, true}
/* Wide enough for what a fit to any times from 1 ns to 1000 s gives: a calibration that was written
 * can be read. */
static const struct field fields[] = {
    FIELD("dense_flops", 1e9, 1e18, dense_flops),
    FIELD("memory_bandwidth_bytes_per_s", 1e6, 1e15, memory_bandwidth_bytes_per_s),
    FIELD("tdp_w", 1.0, 1e5, tdp_w),
    FIELD("flops_share", 1e-5, 32.0, params.flops_share),
    FIELD("bandwidth_share", 1e-3, 4.0, params.bandwidth_share),
    FIELD("floor_s", 1e-9, 1e4, params.floor_s),
    FIELD("start_s", 0.0, 1.0, params.start_s),
    FIELD("split_s", 0.0, 1.0, params.split_s),
    FIELD("norm", 1.0, 64.0, params.norm),
    FIELD("split_traffic", 0.0, 16.0, params.split_traffic),
    FIELD("long_k", 1.0, 1e12, params.long_k),
    FIELD("long_power", 0.0, 64.0, params.long_power),
    FIELD("long_cost", 0.0, 100.0, params.long_cost),
    LATER_FIELD("reread", 0.0, 16.0, params.reread, 0.0), /* what the formula had none of, once */
    LATER_FIELD("straddle", 0.0, 16.0, params.straddle, 0.0),
    LATER_FIELD("l2_share", 1e-3, 16.0, params.l2_share, 1.0),
    LATER_FIELD("hot_s", 1e-9, 1e3, params.hot_s, 1.0),
    LATER_FIELD("hot_cost", 0.0, 100.0, params.hot_cost, 0.0),
};

static enum wg_code read_error(const struct place *place, const json_t *json, const char *field,
                               struct wg_kernel_error *out)
{
    const json_t *value = json_object_get(json, field);
    if (!json_is_object(value))
        return fail(place, field, "an object");
    *out = (struct wg_kernel_error){.mape = NAN};
    const json_t *mape = json_object_get(value, "mape");
    enum wg_code code = WG_OK;
    if (!json_is_null(mape))
        code = read_number(place, mape, field, 0.0, 1e15, &out->mape);
    if (code == WG_OK)
        code = read_number(place, json_object_get(value, "low"), field, 1e-15, 1.0, &out->low);
    if (code == WG_OK)
        code = read_number(place, json_object_get(value, "high"), field, 1.0, 1e15, &out->high);
    if (code == WG_OK)
        code = read_number(place, json_object_get(value, "rows"), field, 0.0, 1e12, &out->rows);
    return code;
}

enum { TILE_NUMBERS = 15 };

static enum wg_code read_tile(const struct place *place, const json_t *json, size_t index,
                              struct wg_tile_params *out)
{
    static const double range[TILE_NUMBERS][2] = {
        {1, 4096}, {1, 4096}, {0, 4096}, {0, 1024}, {1, 16}, {1, 16},   {0, 1}, {0, 1},
        {0, 64},   {1e-5, 8}, {0, 1024}, {0, 1e5},  {0, 1},  {1, 1024}, {0, 1}};
    char field[64];
    (void)snprintf(field, sizeof field, "tiles[%zu]", index);
    if (json_array_size(json) != TILE_NUMBERS)
        return fail(place, field, "an array of 15 numbers");
    double values[TILE_NUMBERS];
    for (size_t i = 0; i < TILE_NUMBERS; i++) {
        (void)snprintf(field, sizeof field, "tiles[%zu][%zu]", index, i);
        enum wg_code code = read_number(place, json_array_get(json, i), field, range[i][0],
                                        range[i][1], &values[i]);
        if (code != WG_OK)
            return code;
    }
    *out = (struct wg_tile_params){
        .kernel = {.tile_m = (unsigned)values[0],
                   .tile_n = (unsigned)values[1],
                   .tile_k = (unsigned)values[2],
                   .threads = (unsigned)values[3],
                   .slices = (unsigned)values[8],
                   .split_k = 1,
                   .cluster_m = (unsigned)values[4],
                   .cluster_n = (unsigned)values[5],
                   .is_persistent = values[6] != 0.0},
        .is_winograd = values[7] != 0.0,
        .efficiency = values[9],
        .fill = values[10],
        .prologue_k = values[11],
        .overlap = values[12],
        .step = values[13],
        .start_s = values[14],
    };
    return WG_OK;
}

static enum wg_code read_lists(const struct place *place, const json_t *json,
                               struct wg_kernel_params *params)
{
    const json_t *tiles = json_object_get(json, "tiles");
    params->tile_count = json_array_size(tiles);
    if (params->tile_count < 1 || params->tile_count > WG_TILES_MAX)
        return fail(place, "tiles", "an array of 1 .. 24 tiles");
    const json_t *splits = json_object_get(json, "splits");
    params->split_count = json_array_size(splits);
    if (params->split_count < 1 || params->split_count > WG_SPLITS_MAX)
        return fail(place, "splits", "an array of 1 .. 12 numbers");
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < params->tile_count && code == WG_OK; i++)
        code = read_tile(place, json_array_get(tiles, i), i, &params->tiles[i]);
    for (size_t i = 0; i < params->split_count && code == WG_OK; i++) {
        double split = 1.0;
        code = read_number(place, json_array_get(splits, i), "splits", i == 0 ? 1.0 : 2.0,
                           i == 0 ? 1.0 : 1024.0, &split);
        params->splits[i] = (unsigned)split;
    }
    return code;
}

static enum wg_code read_option(const struct place *place, const json_t *json,
                                const struct wg_kernel_params *params, struct wg_kernel_option *out)
{
    double tile = 0.0, split = 0.0;
    enum wg_code code = read_number(place, json_array_get(json, 0), "options", 0.0,
                                    (double)params->tile_count - 1.0, &tile);
    if (code == WG_OK)
        code = read_number(place, json_array_get(json, 1), "options", 1.0, 1024.0, &split);
    *out = (struct wg_kernel_option){(unsigned)tile, (unsigned)split};
    return code;
}

/* Children come after their parent, so that every walk ends. */
static enum wg_code read_node(const struct place *place, const json_t *json, size_t index,
                              const struct wg_kernel_params *params, struct wg_tree_node *out)
{
    char field[48];
    (void)snprintf(field, sizeof field, "tree[%zu]", index);
    double values[3] = {0.0, 0.0, 0.0};
    if (json_array_size(json) == 1) {
        double most = ldexp(1.0, (int)params->option_count) - 1.0;
        enum wg_code code =
            read_number(place, json_array_get(json, 0), field, 1.0, most, &values[0]);
        *out = (struct wg_tree_node){.options = (uint64_t)values[0]};
        return code;
    }
    const double range[3][2] = {{0.0, (double)WG_TREE_FEATURES - 1.0},
                                {-1e3, 1e3},
                                {(double)index + 1.0, (double)params->node_count - 2.0}};
    for (size_t i = 0; i < 3; i++) {
        enum wg_code code = read_number(place, json_array_get(json, i), field, range[i][0],
                                        range[i][1], &values[i]);
        if (code != WG_OK)
            return code;
    }
    *out = (struct wg_tree_node){
        .feature = (unsigned)values[0], .threshold = values[1], .below = (unsigned)values[2]};
    return WG_OK;
}

static enum wg_code read_tree(const struct place *place, const json_t *json,
                              struct wg_kernel_params *params)
{
    const json_t *options = json_object_get(json, "options");
    const json_t *nodes = json_object_get(json, "tree");
    params->option_count = json_array_size(options);
    params->node_count = json_array_size(nodes);
    if (params->option_count > WG_CHOICES_MAX)
        return fail(place, "options", "an array of at most 48 pairs");
    if (params->node_count > WG_TREE_NODES_MAX)
        return fail(place, "tree", "an array of at most 512 nodes");
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < params->option_count && code == WG_OK; i++)
        code = read_option(place, json_array_get(options, i), params, &params->options[i]);
    for (size_t i = 0; i < params->node_count && code == WG_OK; i++)
        code = read_node(place, json_array_get(nodes, i), i, params, &params->nodes[i]);
    return code;
}

static enum wg_code read_point(const struct place *place, const json_t *json, size_t index,
                               struct wg_point *out)
{
    char field[48];
    (void)snprintf(field, sizeof field, "points[%zu]", index);
    uint64_t whole[4];
    for (size_t i = 0; i < 4; i++) {
        const json_t *value = json_array_get(json, i);
        if (!json_is_integer(value) || json_integer_value(value) < 1)
            return fail(place, field, "[batch, m, n, k, bytes, time_s]");
        whole[i] = (uint64_t)json_integer_value(value);
    }
    *out = (struct wg_point){.batch = whole[0], .m = whole[1], .n = whole[2], .k = whole[3]};
    enum wg_code code = read_number(place, json_array_get(json, 4), field, 0.0, 1e18, &out->bytes);
    if (code == WG_OK)
        code = read_number(place, json_array_get(json, 5), field, 1e-9, 1e6, &out->time_s);
    return code;
}

static enum wg_code read_points(const struct place *place, const json_t *json,
                                struct wg_calibrated *entry)
{
    const json_t *points = json_object_get(json, "points");
    if (points == NULL || json_array_size(points) == 0)
        return WG_OK;
    entry->point_count = json_array_size(points);
    entry->points = wg__realloc_array(NULL, entry->point_count, sizeof *entry->points);
    if (entry->points == NULL)
        return wg__fail(place->err, WG_ENOMEM, "%s: out of memory for %zu points", place->name,
                        entry->point_count);
    for (size_t i = 0; i < entry->point_count; i++) {
        enum wg_code code = read_point(place, json_array_get(points, i), i, &entry->points[i]);
        if (code != WG_OK)
            return code;
    }
    qsort(entry->points, entry->point_count, sizeof *entry->points, wg__point_compare);
    return WG_OK;
}

static enum wg_code read_correction(const struct place *place, const json_t *json,
                                    struct wg_calibrated *entry)
{
    const json_t *correction = json_object_get(json, "correction");
    if (correction == NULL)
        return WG_OK;
    entry->own_correction = wg__alloc(sizeof *entry->own_correction);
    entry->correction = entry->own_correction;
    if (entry->correction == NULL)
        return wg__fail(place->err, WG_ENOMEM, "%s: out of memory for a correction", place->name);
    char field[48];
    if (wg__forest_read(correction, WG_CORRECTION_FEATURES, entry->own_correction, field,
                        sizeof field) != WG_OK)
        return fail(place, field, "what `wattgov wave calibrate` writes");
    return WG_OK;
}

static enum wg_code read_entry(const struct place *place, const json_t *json,
                               struct wg_calibrated *entry)
{
    if (!json_is_object(json))
        return fail(place, "", "an object");
    enum wg_code code = read_names(place, json, entry);
    for (size_t i = 0; i < sizeof fields / sizeof *fields && code == WG_OK; i++) {
        double value = fields[i].without;
        const json_t *number = json_object_get(json, fields[i].name);
        if (number != NULL || !fields[i].may_be_missing)
            code =
                read_number(place, number, fields[i].name, fields[i].low, fields[i].high, &value);
        memcpy((char *)entry + fields[i].offset, &value, sizeof value);
    }
    if (code == WG_OK)
        code = read_lists(place, json, &entry->params);
    if (code == WG_OK)
        code = read_tree(place, json, &entry->params);
    if (code == WG_OK)
        code = read_error(place, json, "known", &entry->params.known);
    if (code == WG_OK)
        code = read_error(place, json, "chosen", &entry->params.chosen);
    if (code == WG_OK)
        code = read_points(place, json, entry);
    if (code == WG_OK)
        code = read_correction(place, json, entry);
    return code;
}

static enum wg_code read_entries(struct wg_calibration *calibration, const char *name,
                                 const json_t *root, struct wg_error *err)
{
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (schema == NULL || strcmp(schema, WG_CALIBRATION_SCHEMA) != 0)
        return wg__fail(err, WG_EDATA, "%s: schema: expected \"" WG_CALIBRATION_SCHEMA "\"", name);
    const json_t *entries = json_object_get(root, "entries");
    if (!json_is_array(entries))
        return wg__fail(err, WG_EDATA, "%s: entries: expected an array", name);
    for (size_t i = 0; i < json_array_size(entries); i++) {
        struct wg_calibrated entry = {.point_count = 0};
        const struct place place = {name, i, err};
        enum wg_code code = read_entry(&place, json_array_get(entries, i), &entry);
        if (code == WG_OK)
            code = wg__calibration_put(calibration, &entry, err);
        if (code != WG_OK) {
            wg__calibrated_fini(&entry);
            return code;
        }
    }
    return WG_OK;
}

enum wg_code wg__calibration_read(struct wg_calibration **out, const char *name, const char *bytes,
                                  size_t length, struct wg_error *err)
{
    json_error_t error;
    json_t *root = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return wg__fail(err, WG_EDATA, "%s:%d:%d: not JSON: %.100s", name, error.line, error.column,
                        error.text);
    struct wg_calibration *calibration = NULL;
    enum wg_code code = wg__calibration_new(&calibration, err);
    if (code == WG_OK)
        code = read_entries(calibration, name, root, err);
    json_decref(root);
    if (code == WG_OK)
        *out = calibration;
    else
        wg__calibration_free(calibration);
    return code;
}
