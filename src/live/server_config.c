/* SPDX-License-Identifier: MIT
 *
 * Where the knobs of a served model go.
 *
 * Threads: pure, any thread.
 */
#include "live/server_config.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <jansson.h>

#include "base/number.h"

enum { PART_SIZE = 128 };

/* -- Paths ------------------------------------------------------------------------------------ */

enum wg_server_place wg__server_place(const char *path)
{
    static const struct {
        const char *path;
        enum wg_server_place place;
    } places[] = {
        {"client.batch", WG_SERVER_PLACE_BATCH},
        {"client.concurrency", WG_SERVER_PLACE_CONCURRENCY},
        {"client.max_tokens", WG_SERVER_PLACE_MAX_TOKENS},
        {"command", WG_SERVER_PLACE_COMMAND},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (strcmp(places[i].path, path) == 0)
            return places[i].place;
    }
    return WG_SERVER_PLACE_CONFIG;
}

const char *wg__server_path(const char *knob, bool batch_by_client)
{
    static const struct {
        const char *knob;
        const char *path;
    } paths[] = {
        {"delay", "dynamic_batching.max_queue_delay_microseconds"},
        {"instances", "instance_group[0].count"},
        {"replicas", "instance_group[0].count"},
        {"threads", "parameters.threads.string_value"},
        {"concurrency", "client.concurrency"},
        {"max_tokens", "client.max_tokens"},
    };
    if (strcmp(knob, "batch") == 0)
        return batch_by_client ? "client.batch" : "max_batch_size";
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (strcmp(paths[i].knob, knob) == 0)
            return paths[i].path;
    }
    return NULL;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

double wg__server_scale(const char *path)
{
    return ends_with(path, "_microseconds") ? 1e6 : 1;
}

/* -- Commands --------------------------------------------------------------------------------- */

/* The setting whose {NAME} begins at `at`; NULL: none. */
static const struct wg_workload_setting *
setting_at(const char *at, const struct wg_workload_setting *settings, size_t count)
{
    for (size_t i = 0; *at == '{' && i < count; i++) {
        const size_t length = strlen(settings[i].name);
        if (strncmp(at + 1, settings[i].name, length) == 0 && at[length + 1] == '}')
            return &settings[i];
    }
    return NULL;
}

bool wg__server_command_has(const char *command, const char *knob)
{
    const struct wg_workload_setting setting = {.name = knob};
    for (const char *at = command; *at != '\0'; at++) {
        if (setting_at(at, &setting, 1) != NULL)
            return true;
    }
    return false;
}

void wg__server_command_fill(struct wg_buffer *out, const char *command,
                             const struct wg_workload_setting *settings, size_t count)
{
    for (const char *at = command; *at != '\0'; at++) {
        const struct wg_workload_setting *setting = setting_at(at, settings, count);
        if (setting == NULL) {
            wg__buffer_append(out, at, 1);
            continue;
        }
        char number[WG_DOUBLE_TEXT_SIZE];
        wg__format_double(number, setting->value);
        wg__buffer_puts(out, setting->label != NULL ? setting->label : number);
        at += strlen(setting->name) + 1;
    }
}

/* -- Configurations --------------------------------------------------------------------------- */

/* One step of a path: a member, then any number of indices; the rest of the path in `*at`. */
struct step {
    char name[PART_SIZE];
    size_t index;
    bool is_index;
};

static bool next_step(const char **at, struct step *step)
{
    const char *from = *at;
    step->is_index = *from == '[';
    if (step->is_index) {
        const size_t length = strspn(from + 1, "0123456789");
        if (length == 0 || length > 4 || from[length + 1] != ']')
            return false;
        step->index = 0;
        for (size_t i = 1; i <= length; i++)
            step->index = step->index * 10 + (size_t)(from[i] - '0');
        *at = from + length + 2;
    } else {
        const size_t length = strcspn(from, ".[]");
        if (length == 0 || length >= sizeof step->name)
            return false;
        memcpy(step->name, from, length);
        step->name[length] = '\0';
        *at = from + length;
    }
    if (**at == '.') { /* a name must follow */
        ++*at;
        return **at != '\0' && **at != '[' && **at != '.';
    }
    return **at == '\0' || **at == '[';
}

/* The value at `step` of `parent`, made as a list or an object where it is missing. NULL: it cannot
 * be. */
static json_t *descend(json_t *parent, const struct step *step, bool wants_list)
{
    json_t *child =
        step->is_index ? json_array_get(parent, step->index) : json_object_get(parent, step->name);
    if (child != NULL && !json_is_null(child))
        return child;
    child = wants_list ? json_array() : json_object();
    const int failed = step->is_index ? json_array_append_new(parent, child)
                                      : json_object_set_new(parent, step->name, child);
    return failed == 0 ? child : NULL;
}

/* A number as an integer where it is one; texts for a category and a string_value. */
static json_t *value_of(const struct wg_workload_setting *setting, const char *path)
{
    if (setting->label != NULL)
        return json_string(setting->label);
    char text[WG_DOUBLE_TEXT_SIZE];
    wg__format_double(text, setting->value);
    if (ends_with(path, "string_value"))
        return json_string(text);
    const double nearest = nearbyint(setting->value);
    if (fabs(nearest) < 0x1p53 && fabs(setting->value - nearest) <= 1e-9 * fabs(nearest))
        return json_integer((json_int_t)nearest);
    return json_real(setting->value);
}

static bool fits(const json_t *parent, const struct step *step)
{
    return step->is_index ? json_is_array(parent) && step->index <= json_array_size(parent)
                          : json_is_object(parent);
}

static bool put_at(json_t *parent, const struct step *step, json_t *value)
{
    if (!step->is_index)
        return json_object_set_new(parent, step->name, value) == 0;
    return (step->index < json_array_size(parent) ? json_array_set_new(parent, step->index, value)
                                                  : json_array_append_new(parent, value)) == 0;
}

static enum wg_code put(json_t *root, const char *path, const struct wg_workload_setting *setting,
                        struct wg_error *err)
{
    const char *at = path;
    json_t *parent = root;
    struct step step;
    for (;;) {
        if (!next_step(&at, &step))
            return wg__fail(err, WG_EINVAL,
                            "knob '%s': '%s' is no path: expected names and [N], a.b[0].c",
                            setting->name, path);
        if (!fits(parent, &step))
            return wg__fail(err, WG_EINVAL,
                            "knob '%s': the model's configuration has no place '%s'", setting->name,
                            path);
        if (*at == '\0')
            break;
        parent = descend(parent, &step, *at == '[');
        if (parent == NULL)
            return wg__fail(err, WG_ENOMEM, "the model's configuration: out of memory");
    }
    json_t *value = value_of(setting, path);
    if (value == NULL || !put_at(parent, &step, value))
        return wg__fail(err, WG_ENOMEM, "the model's configuration: out of memory");
    return WG_OK;
}

static bool value_text(const json_t *value, char out[static WG_WORKLOAD_NAME_SIZE])
{
    char number[WG_DOUBLE_TEXT_SIZE];
    const char *text = json_string_value(value);
    if (json_is_number(value)) {
        wg__format_double(number, json_number_value(value));
        text = number;
    }
    if (text == NULL || strlen(text) >= WG_WORKLOAD_NAME_SIZE)
        return false;
    memcpy(out, text, strlen(text) + 1);
    return true;
}

bool wg__server_config_value(const char *config, const char *path, double *number_out,
                             char text_out[static WG_WORKLOAD_NAME_SIZE])
{
    json_t *root = json_loads(config, 0, NULL);
    const json_t *value = root;
    struct step step = {.index = 0};
    for (const char *at = path; value != NULL && *at != '\0';)
        value = !next_step(&at, &step) ? NULL
                : step.is_index        ? json_array_get(value, step.index)
                                       : json_object_get(value, step.name);
    const bool is_it = value_text(value, text_out);
    json_decref(root);
    if (is_it && !wg__parse_double(text_out, number_out))
        *number_out = NAN;
    return is_it;
}

bool wg__server_config_is_same(const char *config, const char *other)
{
    json_t *first = json_loads(config, 0, NULL), *second = json_loads(other, 0, NULL);
    const bool is_same = first != NULL && json_equal(first, second) != 0;
    json_decref(first);
    json_decref(second);
    return is_same;
}

/* Whether one of the paths begins with `start`. */
static bool has_path(const char *const *paths, size_t count, const char *start)
{
    for (size_t i = 0; i < count; i++) {
        if (strncmp(paths[i], start, strlen(start)) == 0)
            return true;
    }
    return false;
}

/* Triton tells a list of preferred batches that the model's file need not have: the largest one.
 * Sent back beside a smaller batch it is refused, and beside a larger one it keeps batches at the
 * old size; so that one goes, and what is beyond the new batch. */
static void settle_preferred(json_t *root, json_int_t old_batch)
{
    json_t *batching = json_object_get(root, "dynamic_batching");
    json_t *preferred = json_object_get(batching, "preferred_batch_size");
    const json_int_t batch = json_integer_value(json_object_get(root, "max_batch_size"));
    if (batch == old_batch || !json_is_array(preferred))
        return;
    for (size_t i = json_array_size(preferred); i-- > 0;) {
        const json_int_t size = json_integer_value(json_array_get(preferred, i));
        if (size > batch || size == old_batch)
            (void)json_array_remove(preferred, i);
    }
    if (json_array_size(preferred) == 0)
        (void)json_object_del(batching, "preferred_batch_size");
}

static int take(const char *bytes, size_t length, void *context)
{
    struct wg_buffer *text = context;
    wg__buffer_append(text, bytes, length);
    return text->failed ? -1 : 0;
}

enum wg_code wg__server_config_edit(char **out, const char *base, const char *const *paths,
                                    const struct wg_workload_setting *values, size_t count,
                                    struct wg_error *err)
{
    json_error_t error;
    json_t *root = json_loads(base, 0, &error);
    if (!json_is_object(root)) {
        json_decref(root);
        return wg__fail(err, WG_EDATA, "the model's configuration is no JSON object: %s",
                        root != NULL ? "another value" : error.text);
    }
    const json_int_t old_batch = json_integer_value(json_object_get(root, "max_batch_size"));
    enum wg_code code = WG_OK;
    for (size_t i = 0; code == WG_OK && i < count; i++)
        code = put(root, paths[i], &values[i], err);
    if (code == WG_OK && !has_path(paths, count, "dynamic_batching.preferred_batch_size"))
        settle_preferred(root, old_batch);
    struct wg_buffer text;
    wg__buffer_init(&text);
    if (code == WG_OK && json_dump_callback(root, take, &text, JSON_COMPACT) != 0)
        code = wg__fail(err, WG_ENOMEM, "the model's configuration: out of memory");
    json_decref(root);
    if (code != WG_OK)
        wg__buffer_fini(&text);
    else
        *out = text.data;
    return code;
}
