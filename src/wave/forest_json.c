/* SPDX-License-Identifier: MIT
 *
 * A forest as JSON, a character a question's half and a character a leaf.
 *
 *     {"depth": 7, "bias": 0.01,
 *      "borders": [[64.5, 128.5], ...]                      one list a feature, rising
 *      "trees": [[scale, "FBFBFB...", "LLLL..."], ...]}     F feature, B border, L leaf, level 0
 * first
 *
 * A number 0 .. 90 is one printable character from '#' on that needs no escape in JSON ('\' is left
 * out); a leaf -45 .. 45 is written 45 higher. 400 trees of depth 7 take 60 kB so.
 *
 * Threads: one thread at a time.
 */
#include "wave/forest_json.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static char to_character(int number)
{
    return (char)(number + '#' + (number + '#' >= '\\'));
}

/* -1: not such a character. */
static int from_character(char character)
{
    if (character < '#' || character > '~' || character == '\\')
        return -1;
    return character - '#' - (character > '\\');
}

static void write_tree(struct wg_json *json, const struct wg_forest_tree *tree, size_t depth)
{
    char questions[2 * WG_FOREST_DEPTH_MAX + 1] = "", leaves[(1 << WG_FOREST_DEPTH_MAX) + 1] = "";
    for (size_t level = 0; level < depth; level++) {
        questions[2 * level] = to_character(tree->feature[level]);
        questions[2 * level + 1] = to_character(tree->border[level]);
    }
    for (size_t leaf = 0; leaf < (size_t)1 << depth; leaf++)
        leaves[leaf] = to_character(tree->leaf[leaf] + WG_FOREST_LEAF_MAX);
    wg__json_array(json);
    wg__json_double(json, tree->scale);
    wg__json_string(json, questions);
    wg__json_string(json, leaves);
    wg__json_close(json);
}

void wg__forest_write(struct wg_json *json, const struct wg_forest *forest)
{
    wg__json_object(json);
    wg__json_member_uint(json, "depth", forest->depth);
    wg__json_member_double(json, "bias", forest->bias);
    wg__json_key(json, "borders");
    wg__json_array(json);
    for (size_t f = 0; f < forest->feature_count; f++) {
        wg__json_array(json);
        for (size_t i = 0; i < forest->border_count[f]; i++)
            wg__json_double(json, forest->borders[f][i]);
        wg__json_close(json);
    }
    wg__json_close(json);
    wg__json_key(json, "trees");
    wg__json_array(json);
    for (size_t t = 0; t < forest->tree_count; t++)
        write_tree(json, &forest->trees[t], forest->depth);
    wg__json_close(json);
    wg__json_close(json);
}

static bool read_borders(const json_t *json, struct wg_forest *out, size_t feature)
{
    size_t count = json_array_size(json);
    if (!json_is_array(json) || count > WG_FOREST_BORDERS_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        double border = json_number_value(json_array_get(json, i));
        if (!json_is_number(json_array_get(json, i)) || !isfinite(border) ||
            (i > 0 && !(border > out->borders[feature][i - 1])))
            return false;
        out->borders[feature][i] = border;
    }
    out->border_count[feature] = (uint8_t)count;
    return true;
}

static bool read_tree(const json_t *json, const struct wg_forest *forest,
                      struct wg_forest_tree *out)
{
    const size_t depth = forest->depth, leaves = (size_t)1 << depth;
    const json_t *scale = json_array_get(json, 0);
    const json_t *questions = json_array_get(json, 1), *values = json_array_get(json, 2);
    if (!json_is_number(scale) || !(fabs(json_number_value(scale)) <= 1.0) ||
        json_string_length(questions) != 2 * depth || json_string_length(values) != leaves)
        return false;
    out->scale = json_number_value(scale);
    for (size_t level = 0; level < depth; level++) {
        int feature = from_character(json_string_value(questions)[2 * level]);
        int border = from_character(json_string_value(questions)[2 * level + 1]);
        if (feature < 0 || (size_t)feature >= forest->feature_count || border < 0 ||
            border > WG_FOREST_BORDERS_MAX)
            return false;
        out->feature[level] = (uint8_t)feature;
        out->border[level] = (uint8_t)border;
    }
    for (size_t leaf = 0; leaf < leaves; leaf++) {
        int value = from_character(json_string_value(values)[leaf]);
        if (value < 0)
            return false;
        out->leaf[leaf] = (int8_t)(value - WG_FOREST_LEAF_MAX);
    }
    return true;
}

enum wg_code wg__forest_read(const json_t *json, size_t feature_count, struct wg_forest *out,
                             char *field, size_t field_size)
{
    const json_t *depth = json_object_get(json, "depth"), *bias = json_object_get(json, "bias");
    const json_t *borders = json_object_get(json, "borders");
    const json_t *trees = json_object_get(json, "trees");
    *out = (struct wg_forest){.feature_count = feature_count};
    (void)snprintf(field, field_size, "correction.depth");
    if (!json_is_integer(depth) || json_integer_value(depth) < 1 ||
        json_integer_value(depth) > WG_FOREST_DEPTH_MAX)
        return WG_EDATA;
    (void)snprintf(field, field_size, "correction.bias");
    if (!json_is_number(bias) || !(fabs(json_number_value(bias)) <= 10.0))
        return WG_EDATA;
    out->depth = (size_t)json_integer_value(depth);
    out->bias = json_number_value(bias);
    (void)snprintf(field, field_size, "correction.borders");
    if (json_array_size(borders) != feature_count)
        return WG_EDATA;
    for (size_t f = 0; f < feature_count; f++) {
        (void)snprintf(field, field_size, "correction.borders[%zu]", f);
        if (!read_borders(json_array_get(borders, f), out, f))
            return WG_EDATA;
    }
    (void)snprintf(field, field_size, "correction.trees");
    if (!json_is_array(trees) || json_array_size(trees) > WG_FOREST_TREES_MAX)
        return WG_EDATA;
    for (; out->tree_count < json_array_size(trees); out->tree_count++) {
        (void)snprintf(field, field_size, "correction.trees[%zu]", out->tree_count);
        if (!read_tree(json_array_get(trees, out->tree_count), out, &out->trees[out->tree_count]))
            return WG_EDATA;
    }
    return WG_OK;
}
