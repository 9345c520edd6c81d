/* SPDX-License-Identifier: MIT
 *
 * Profiles of served models from YAML: see serving_profile_file.h.
 *
 * Two passes: each map is read by its table (known keys, types, ranges, what must be there), then
 * what fields say together is checked, at the line of the one that is out of order.
 */
#include "cli/serving_profile_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/yaml_file.h"
#include "schedule/scheduler.h"

enum { WHERE_SIZE = 64, KEYS_SIZE = 160, KEYS_MAX = 16 };

/* What a scheduler can be told, even if by --believe ten times off, of a batch beside a step. */
#define SECONDS_MIN  1e-6
#define CHANGE_MAX_S 3600

struct reader {
    const struct wg_yaml *yaml;
    struct wg_error *err;
};

enum kind {
    NUMBER,
    WHOLE, /* an unsigned */
    TEXT,  /* of WG_PROFILE_TEXT_SIZE or, for a rung, WG_RUNG_NAME_SIZE bytes */
    OTHER, /* the map's own code reads it */
};

struct field {
    const char *key;
    enum kind kind;
    size_t offset;
    double min, max; /* TEXT: max is the size that it must fit */
    const char *unit;
    bool min_is_excluded, is_required;
};

#define FIELD(type, member) .offset = offsetof(type, member)

/* -- Maps by their tables --------------------------------------------------------------------- */

static enum wg_code fail_number(const struct reader *reader, wg_yaml_node node, const char *where,
                                const struct field *field)
{
    char range[2 * WG_DOUBLE_TEXT_SIZE + 16], least[WG_DOUBLE_TEXT_SIZE], most[WG_DOUBLE_TEXT_SIZE];
    wg__format_double(least, field->min);
    wg__format_double(most, field->max);
    (void)snprintf(range, sizeof range, "%s%s .. %s", field->min_is_excluded ? "more than " : "",
                   least, most);
    const bool is_text = wg__yaml_kind(reader->yaml, node) == WG_YAML_TEXT;
    return wg__yaml_fail(reader->yaml, node, reader->err, "%s%s: %s%.32s%s is not a %s in %s%s%s%s",
                         where, field->key, is_text ? "'" : "",
                         is_text ? wg__yaml_text(reader->yaml, node) : "a list or a map",
                         is_text ? "'" : "", field->kind == WHOLE ? "whole number" : "number",
                         range, field->unit != NULL ? " (" : "",
                         field->unit != NULL ? field->unit : "", field->unit != NULL ? ")" : "");
}

static enum wg_code read_number(const struct reader *reader, wg_yaml_node node, const char *where,
                                const struct field *field, void *base)
{
    double number = 0;
    if (wg__yaml_kind(reader->yaml, node) != WG_YAML_TEXT ||
        !wg__parse_double(wg__yaml_text(reader->yaml, node), &number) || number > field->max ||
        number < field->min || (field->min_is_excluded && number <= field->min) ||
        (field->kind == WHOLE && number != floor(number)))
        return fail_number(reader, node, where, field);
    char *place = (char *)base + field->offset;
    const unsigned whole = field->kind == WHOLE ? (unsigned)number : 0;
    number += 0.0; /* -0 is 0 */
    if (field->kind == WHOLE)
        memcpy(place, &whole, sizeof whole);
    else
        memcpy(place, &number, sizeof number);
    return WG_OK;
}

/* What a terminal may obey: it is shown there. C1 controls are C2 80 .. C2 9F in UTF-8. */
static bool has_control(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        if (*c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0))
            return true;
    return false;
}

static enum wg_code read_text(const struct reader *reader, wg_yaml_node node, const char *where,
                              const struct field *field, void *base)
{
    const char *text = wg__yaml_text(reader->yaml, node);
    const size_t length = strlen(text);
    if (wg__yaml_kind(reader->yaml, node) != WG_YAML_TEXT || length == 0 ||
        length >= (size_t)field->max)
        return wg__yaml_fail(reader->yaml, node, reader->err,
                             "%s%s: expected a text of 1 to %.0f bytes", where, field->key,
                             field->max - 1);
    if (has_control(text))
        return wg__yaml_fail(reader->yaml, node, reader->err,
                             "%s%s: a control character in a text; expected none", where,
                             field->key);
    memcpy((char *)base + field->offset, text, length + 1);
    return WG_OK;
}

static enum wg_code read_field(const struct reader *reader, wg_yaml_node node, const char *where,
                               const struct field *field, void *base)
{
    switch (field->kind) {
    case NUMBER:
    case WHOLE:
        return read_number(reader, node, where, field, base);
    case TEXT:
        return read_text(reader, node, where, field, base);
    case OTHER:
        break;
    }
    return WG_OK;
}

/* "latency." is `where` of latency's fields. */
static enum wg_code fail_kind(const struct reader *reader, wg_yaml_node node, const char *where,
                              const char *expected)
{
    const size_t length = strlen(where);
    return wg__yaml_fail(reader->yaml, node, reader->err, "%.*s%sexpected %s",
                         (int)(length > 0 ? length - 1 : 0), where, length > 0 ? ": " : "",
                         expected);
}

static enum wg_code fail_key(const struct reader *reader, wg_yaml_node node, const char *where,
                             const char *key, const char *all)
{
    const size_t length = strlen(where);
    return wg__yaml_fail(reader->yaml, node, reader->err, "%.*s%sunknown key '%.32s'; expected %s",
                         (int)(length > 0 ? length - 1 : 0), where, length > 0 ? ": " : "", key,
                         all);
}

static enum wg_code check_keys(const struct reader *reader, wg_yaml_node map, const char *where,
                               const struct field *fields, size_t count)
{
    const char *known[KEYS_MAX];
    char all[KEYS_SIZE] = "";
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        known[i] = fields[i].key;
        if (length < sizeof all)
            length += (size_t)snprintf(all + length, sizeof all - length, "%s%s", i > 0 ? ", " : "",
                                       fields[i].key);
    }
    for (size_t i = 0; i < wg__yaml_count(reader->yaml, map); i++) {
        const char *key = wg__yaml_key(reader->yaml, map, i);
        size_t k = 0;
        while (k < count && strcmp(known[k], key) != 0)
            k++;
        if (k == count)
            return fail_key(reader, wg__yaml_key_node(reader->yaml, map, i), where, key, all);
    }
    return WG_OK;
}

/* Reads all fields of a map into the struct at `base`; what is absent keeps its value there. */
static enum wg_code read_map(const struct reader *reader, wg_yaml_node map, const char *where,
                             const struct field *fields, size_t count, void *base)
{
    if (wg__yaml_kind(reader->yaml, map) != WG_YAML_MAP)
        return fail_kind(reader, map, where, "KEY: VALUE lines");
    enum wg_code code = check_keys(reader, map, where, fields, count);
    for (size_t i = 0; i < count && code == WG_OK; i++) {
        const wg_yaml_node node = wg__yaml_find(reader->yaml, map, fields[i].key);
        if (node != 0)
            code = read_field(reader, node, where, &fields[i], base);
        else if (fields[i].is_required)
            code = wg__yaml_fail(reader->yaml, map, reader->err, "%s%s is missing; expected %s",
                                 where, fields[i].key,
                                 fields[i].kind == TEXT    ? "a text"
                                 : fields[i].kind == OTHER ? "a map or a list"
                                                           : "a number");
    }
    return code;
}

#define COUNT_OF(table) (sizeof(table) / sizeof *(table))

/* -- How long a batch takes ------------------------------------------------------------------- */

static const struct field formula_fields[] = {
    {"fixed_s", NUMBER, FIELD(struct wg_latency_law, fixed_s), .max = WG_PROFILE_SECONDS_MAX,
     .unit = "s", .is_required = true},
    {"per_row_s", NUMBER, FIELD(struct wg_latency_law, per_row_s), .max = WG_PROFILE_SECONDS_MAX,
     .unit = "s", .is_required = true},
};

struct point {
    unsigned batch;
    double time_s;
};

static const struct field point_fields[] = {
    {"batch", WHOLE, FIELD(struct point, batch), .min = 1, .max = WG_BATCH_ROWS_MAX,
     .is_required = true},
    {"s", NUMBER, FIELD(struct point, time_s), .min = SECONDS_MIN, .max = WG_PROFILE_SECONDS_MAX,
     .unit = "s", .is_required = true},
};

static enum wg_code read_point(const struct reader *reader, wg_yaml_node item, const char *where,
                               struct wg_latency_law *out)
{
    struct point point = {0};
    const size_t i = out->point_count;
    const enum wg_code code =
        read_map(reader, item, where, point_fields, COUNT_OF(point_fields), &point);
    if (code != WG_OK)
        return code;
    if (i == 0 && point.batch != 1)
        return wg__yaml_fail(reader->yaml, item, reader->err,
                             "%sbatch: the first is %u; expected 1", where, point.batch);
    if (i > 0 && point.batch <= out->batch[i - 1])
        return wg__yaml_fail(reader->yaml, item, reader->err,
                             "%sbatch: %u after %.0f; expected batches that rise", where,
                             point.batch, out->batch[i - 1]);
    if (i > 0 && point.time_s < out->time_s[i - 1])
        return wg__yaml_fail(reader->yaml, item, reader->err,
                             "%ss: %g after %g; expected times that never fall", where,
                             point.time_s, out->time_s[i - 1]);
    out->batch[i] = point.batch;
    out->time_s[i] = point.time_s;
    out->point_count++;
    return WG_OK;
}

static enum wg_code read_table(const struct reader *reader, wg_yaml_node list, const char *where,
                               unsigned max_batch, struct wg_latency_law *out)
{
    const size_t count = wg__yaml_count(reader->yaml, list);
    enum wg_code code = WG_OK;
    if (count == 0 || count > WG_PROFILE_POINTS_MAX)
        return wg__yaml_fail(reader->yaml, list, reader->err, "%.*s: %zu rows; expected 1 to %d",
                             (int)strlen(where) - 1, where, count, WG_PROFILE_POINTS_MAX);
    for (size_t i = 0; i < count && code == WG_OK; i++)
        code = read_point(reader, wg__yaml_item(reader->yaml, list, i), where, out);
    if (code == WG_OK && out->batch[count - 1] < max_batch)
        code =
            wg__yaml_fail(reader->yaml, wg__yaml_item(reader->yaml, list, count - 1), reader->err,
                          "%sbatch: the last is %.0f; expected max_batch (%u) or more", where,
                          out->batch[count - 1], max_batch);
    return code;
}

static enum wg_code read_law(const struct reader *reader, wg_yaml_node node, const char *where,
                             unsigned max_batch, struct wg_latency_law *out)
{
    if (wg__yaml_kind(reader->yaml, node) == WG_YAML_LIST)
        return read_table(reader, node, where, max_batch, out);
    if (wg__yaml_kind(reader->yaml, node) != WG_YAML_MAP)
        return fail_kind(reader, node, where,
                         "{fixed_s: S, per_row_s: S} or a list of {batch: N, s: S}");
    const enum wg_code code =
        read_map(reader, node, where, formula_fields, COUNT_OF(formula_fields), out);
    if (code == WG_OK && !(out->fixed_s + out->per_row_s >= SECONDS_MIN))
        return fail_kind(reader, node, where, "a batch that takes 0.000001 s or more");
    return code;
}

/* -- Clocks ----------------------------------------------------------------------------------- */

static const struct field rung_fields[] = {
    {"name", TEXT, FIELD(struct wg_rung, name), .max = WG_RUNG_NAME_SIZE, .is_required = true},
    {"gpu_clock", NUMBER, FIELD(struct wg_rung, gpu_clock), .min = WG_PROFILE_CLOCK_MIN, .max = 1,
     .is_required = true},
    {"mem_clock", NUMBER, FIELD(struct wg_rung, mem_clock), .min = WG_PROFILE_CLOCK_MIN, .max = 1,
     .is_required = true},
    {"busy_w", NUMBER, FIELD(struct wg_rung, busy_power_w), .max = WG_PROFILE_WATTS_MAX,
     .unit = "W", .is_required = true},
    {"idle_w", NUMBER, FIELD(struct wg_rung, idle_power_w), .max = WG_PROFILE_WATTS_MAX,
     .unit = "W", .is_required = true},
    {"finetune_w", NUMBER, FIELD(struct wg_rung, finetune_power_w), .max = WG_PROFILE_WATTS_MAX,
     .unit = "W"},
    {.key = "latency", .kind = OTHER},
};

static const struct field clock_fields[] = {
    {"change_s", NUMBER, FIELD(struct wg_clock_ladder, change_s), .max = CHANGE_MAX_S, .unit = "s"},
    {"change_j", NUMBER, FIELD(struct wg_clock_ladder, change_j), .max = WG_PROFILE_JOULES_MAX,
     .unit = "J"},
    {.key = "ladder", .kind = OTHER, .is_required = true},
};

/* What a rung's fields say together; `map` is the rung. */
static enum wg_code check_rung(const struct reader *reader, wg_yaml_node map, const char *where,
                               const struct wg_serving_profile *profile, size_t index)
{
    const struct wg_yaml *yaml = reader->yaml;
    const struct wg_rung *rung = &profile->ladder.rungs[index];
    if (index == 0 && (rung->gpu_clock != 1 || rung->mem_clock != 1))
        return wg__yaml_fail(
            yaml, wg__yaml_find(yaml, map, rung->gpu_clock != 1 ? "gpu_clock" : "mem_clock"),
            reader->err, "%s%s: expected 1 in the first rung; the others' are relative to it",
            where, rung->gpu_clock != 1 ? "gpu_clock" : "mem_clock");
    if (strcmp(rung->name, "default") == 0 || strcmp(rung->name, "governed") == 0)
        return wg__yaml_fail(yaml, wg__yaml_find(yaml, map, "name"), reader->err,
                             "%sname: '%s' means something else to --clocks; expected another name",
                             where, rung->name);
    for (size_t i = 0; i < index; i++)
        if (strcmp(profile->ladder.rungs[i].name, rung->name) == 0)
            return wg__yaml_fail(yaml, wg__yaml_find(yaml, map, "name"), reader->err,
                                 "%sname: '%s' is the name of rung %zu too; expected another one",
                                 where, rung->name, i);
    if (rung->busy_power_w < rung->idle_power_w)
        return wg__yaml_fail(yaml, wg__yaml_find(yaml, map, "busy_w"), reader->err,
                             "%sbusy_w: %g; expected idle_w (%g) or more", where,
                             rung->busy_power_w, rung->idle_power_w);
    if (rung->finetune_power_w < rung->idle_power_w)
        return wg__yaml_fail(yaml, wg__yaml_find(yaml, map, "finetune_w"), reader->err,
                             "%sfinetune_w: %g; expected idle_w (%g) or more", where,
                             rung->finetune_power_w, rung->idle_power_w);
    return WG_OK;
}

/* The ladder goes down: no rung serves faster than the one above it, and none takes ages. */
static enum wg_code check_order(const struct reader *reader, wg_yaml_node map, const char *where,
                                const struct wg_serving_profile *profile, size_t index)
{
    const unsigned rows[] = {1, profile->max_batch};
    const double longest_s = wg__profile_batch_s(profile, index, profile->max_batch);
    if (longest_s > WG_PROFILE_SECONDS_MAX)
        return wg__yaml_fail(reader->yaml, map, reader->err,
                             "%.*s: '%s' takes %g s for a batch of %u; expected at most %.0f s",
                             (int)strlen(where) - 1, where, profile->ladder.rungs[index].name,
                             longest_s, profile->max_batch, WG_PROFILE_SECONDS_MAX);
    for (size_t i = 0; i < COUNT_OF(rows) && index > 0; i++) {
        const double above_s = wg__profile_batch_s(profile, index - 1, rows[i]);
        const double time_s = wg__profile_batch_s(profile, index, rows[i]);
        if (time_s < above_s * (1 - 1e-9))
            return wg__yaml_fail(reader->yaml, map, reader->err,
                                 "%.*s: '%s' takes %g s for a batch of %u, the rung before it %g "
                                 "s; expected the fastest rung first",
                                 (int)strlen(where) - 1, where, profile->ladder.rungs[index].name,
                                 time_s, rows[i], above_s);
    }
    return WG_OK;
}

static enum wg_code read_rung(const struct reader *reader, wg_yaml_node map, size_t index,
                              struct wg_serving_profile *out)
{
    char where[WHERE_SIZE], of_law[WHERE_SIZE];
    (void)snprintf(where, sizeof where, "clocks.ladder[%zu].", index);
    (void)snprintf(of_law, sizeof of_law, "clocks.ladder[%zu].latency.", index);
    struct wg_rung *rung = &out->ladder.rungs[index];
    rung->finetune_power_w = (double)NAN;
    enum wg_code code = read_map(reader, map, where, rung_fields, COUNT_OF(rung_fields), rung);
    if (code != WG_OK)
        return code;
    if (isnan(rung->finetune_power_w) && out->has_finetune)
        return wg__yaml_fail(reader->yaml, map, reader->err,
                             "%sfinetune_w is missing; expected a number", where);
    if (isnan(rung->finetune_power_w))
        rung->finetune_power_w = rung->busy_power_w;
    const wg_yaml_node law = wg__yaml_find(reader->yaml, map, "latency");
    out->rung_has_latency[index] = law != 0;
    if (law != 0 && index == 0)
        return fail_kind(reader, law, of_law,
                         "none in the first rung: the profile's own holds there");
    if (law != 0)
        code = read_law(reader, law, of_law, out->max_batch, &out->rung_latency[index]);
    if (code == WG_OK)
        code = check_rung(reader, map, where, out, index);
    return code == WG_OK ? check_order(reader, map, where, out, index) : code;
}

static enum wg_code read_clocks(const struct reader *reader, wg_yaml_node map,
                                struct wg_serving_profile *out)
{
    struct wg_clock_ladder *ladder = &out->ladder;
    enum wg_code code =
        read_map(reader, map, "clocks.", clock_fields, COUNT_OF(clock_fields), ladder);
    if (code != WG_OK)
        return code;
    const wg_yaml_node list = wg__yaml_find(reader->yaml, map, "ladder");
    const size_t count = wg__yaml_count(reader->yaml, list);
    if (wg__yaml_kind(reader->yaml, list) != WG_YAML_LIST || count == 0 || count > WG_RUNGS_MAX)
        return wg__yaml_fail(reader->yaml, list, reader->err,
                             "clocks.ladder: expected a list of 1 to %d rungs", WG_RUNGS_MAX);
    ladder->count = count;
    for (size_t i = 0; i < count && code == WG_OK; i++)
        code = read_rung(reader, wg__yaml_item(reader->yaml, list, i), i, out);
    return code;
}

/* -- The file --------------------------------------------------------------------------------- */

static const struct field root_fields[] = {
    {"name", TEXT, FIELD(struct wg_serving_profile, name), .max = WG_PROFILE_TEXT_SIZE,
     .is_required = true},
    {"source", TEXT, FIELD(struct wg_serving_profile, source), .max = WG_PROFILE_TEXT_SIZE},
    {"max_batch", WHOLE, FIELD(struct wg_serving_profile, max_batch), .min = 1,
     .max = WG_BATCH_ROWS_MAX, .is_required = true},
    {.key = "latency", .kind = OTHER, .is_required = true},
    {.key = "latency_share", .kind = OTHER},
    {"noise", NUMBER, FIELD(struct wg_serving_profile, noise), .max = WG_PROFILE_NOISE_MAX},
    {.key = "finetune", .kind = OTHER},
    {.key = "interference", .kind = OTHER},
    {.key = "clocks", .kind = OTHER, .is_required = true},
};

static const struct field share_fields[] = {
    {"gpu_clock", NUMBER, FIELD(struct wg_serving_profile, gpu_share), .max = 1,
     .is_required = true},
    {"mem_clock", NUMBER, FIELD(struct wg_serving_profile, mem_share), .max = 1,
     .is_required = true},
};

static const struct field finetune_fields[] = {
    {"fixed_s", NUMBER, FIELD(struct wg_serving_profile, step_fixed_s),
     .max = WG_PROFILE_SECONDS_MAX, .unit = "s", .is_required = true},
    {"per_row_s", NUMBER, FIELD(struct wg_serving_profile, step_per_row_s),
     .max = WG_PROFILE_SECONDS_MAX, .unit = "s", .min_is_excluded = true, .is_required = true},
    {"update_s", NUMBER, FIELD(struct wg_serving_profile, update_s), .max = WG_PROFILE_SECONDS_MAX,
     .unit = "s"},
};

static const struct field interference_fields[] = {
    {"inference", NUMBER, FIELD(struct wg_serving_profile, inference_slowdown), .min = 1,
     .max = WG_PROFILE_SLOWDOWN_MAX, .is_required = true},
    {"finetune", NUMBER, FIELD(struct wg_serving_profile, finetune_slowdown), .min = 1,
     .max = WG_PROFILE_SLOWDOWN_MAX, .is_required = true},
};

/* Without shares slower clocks would cost nothing, which is a mistake where nothing else tells. */
static enum wg_code read_shares(const struct reader *reader, wg_yaml_node root,
                                struct wg_serving_profile *out)
{
    const wg_yaml_node map = wg__yaml_find(reader->yaml, root, "latency_share");
    const wg_yaml_node clocks = wg__yaml_find(reader->yaml, root, "clocks");
    if (map == 0 && wg__yaml_count(reader->yaml, wg__yaml_find(reader->yaml, clocks, "ladder")) > 1)
        return wg__yaml_fail(reader->yaml, root, reader->err,
                             "latency_share is missing; expected gpu_clock and mem_clock, for a "
                             "ladder of several rungs");
    if (map == 0)
        return WG_OK;
    const enum wg_code code =
        read_map(reader, map, "latency_share.", share_fields, COUNT_OF(share_fields), out);
    if (code == WG_OK && out->gpu_share + out->mem_share > 1 + 1e-9)
        return wg__yaml_fail(reader->yaml, map, reader->err,
                             "latency_share: gpu_clock and mem_clock add up to %g; expected at "
                             "most 1",
                             out->gpu_share + out->mem_share);
    return code;
}

static enum wg_code read_finetune(const struct reader *reader, wg_yaml_node root,
                                  struct wg_serving_profile *out)
{
    const wg_yaml_node map = wg__yaml_find(reader->yaml, root, "finetune");
    const wg_yaml_node interference = wg__yaml_find(reader->yaml, root, "interference");
    out->has_finetune = map != 0;
    out->inference_slowdown = 1;
    out->finetune_slowdown = 1;
    if (map == 0 && interference == 0)
        return WG_OK;
    if (map == 0 || interference == 0)
        return wg__yaml_fail(
            reader->yaml, root, reader->err, "%s is missing; expected it beside %s",
            map == 0 ? "finetune" : "interference", map == 0 ? "interference" : "finetune");
    const enum wg_code code =
        read_map(reader, map, "finetune.", finetune_fields, COUNT_OF(finetune_fields), out);
    if (code == WG_OK && !(out->step_fixed_s + out->step_per_row_s >= SECONDS_MIN))
        return fail_kind(reader, map, "finetune.", "a step that takes 0.000001 s or more");
    return code == WG_OK ? read_map(reader, interference, "interference.", interference_fields,
                                    COUNT_OF(interference_fields), out)
                         : code;
}

static enum wg_code read_root(const struct reader *reader, struct wg_serving_profile *out)
{
    const struct wg_yaml *yaml = reader->yaml;
    const wg_yaml_node root = wg__yaml_root(yaml);
    if (root == 0)
        return wg__yaml_fail(yaml, root, reader->err, "the file is empty; expected a profile");
    enum wg_code code = read_map(reader, root, "", root_fields, COUNT_OF(root_fields), out);
    if (code == WG_OK)
        code = read_law(reader, wg__yaml_find(yaml, root, "latency"), "latency.", out->max_batch,
                        &out->latency);
    if (code == WG_OK)
        code = read_shares(reader, root, out);
    if (code == WG_OK)
        code = read_finetune(reader, root, out);
    if (code == WG_OK)
        code = read_clocks(reader, wg__yaml_find(yaml, root, "clocks"), out);
    struct wg_error cause;
    if (code == WG_OK && wg__profile_check(out, &cause) != WG_OK)
        code = wg__yaml_fail(yaml, root, reader->err, "%s", cause.text);
    return code;
}

/* Closes `yaml`. */
static enum wg_code take(struct wg_yaml *yaml, struct wg_serving_profile *out, struct wg_error *err)
{
    struct wg_serving_profile profile = {0};
    const struct reader reader = {.yaml = yaml, .err = err};
    const enum wg_code code = read_root(&reader, &profile);
    wg__yaml_close(yaml);
    if (code == WG_OK)
        *out = profile;
    return code;
}

enum wg_code wg__serving_profile_read(struct wg_serving_profile *out, const char *path,
                                      struct wg_error *err)
{
    struct wg_yaml *yaml = NULL;
    const enum wg_code code = wg__yaml_open(&yaml, path, err);
    return code == WG_OK ? take(yaml, out, err) : code;
}

enum wg_code wg__serving_profile_parse(struct wg_serving_profile *out, const char *name,
                                       const char *bytes, size_t length, struct wg_error *err)
{
    struct wg_yaml *yaml = NULL;
    const enum wg_code code = wg__yaml_open_memory(&yaml, name, bytes, length, err);
    return code == WG_OK ? take(yaml, out, err) : code;
}
