/* SPDX-License-Identifier: MIT
 *
 * KServe v2 in JSON.
 *
 * Threads: pure, any thread.
 */
#include "net/kserve_json.h"

#include <stdint.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "base/number.h"

/* Larger JSON answers are looked at only at both ends: parsing them would cost what we measure. */
enum { PARSED_MAX = 64 * 1024 };

/* -- Requests --------------------------------------------------------------------------------- */

static void write_input(struct wg_json *json, const struct wg_kserve_tensor *input, bool is_json,
                        size_t bytes, struct wg_rng *rng)
{
    wg__json_object(json);
    wg__json_member_string(json, "name", input->name);
    wg__json_member_string(json, "datatype", wg__kserve_type_word(input->type));
    wg__json_key(json, "shape");
    wg__json_array(json);
    for (size_t i = 0; i < input->dim_count; i++)
        wg__json_uint(json, (uint64_t)input->dims[i]);
    wg__json_close(json);
    if (is_json) {
        wg__json_key(json, "data");
        wg__kserve_fill_json(json, input, rng);
    } else {
        wg__json_key(json, "parameters");
        wg__json_object(json);
        wg__json_member_uint(json, "binary_data_size", bytes);
        wg__json_close(json);
    }
    wg__json_close(json);
}

void wg__kserve_write_infer(struct wg_buffer *out, const struct wg_kserve_tensor *inputs,
                            size_t count, bool is_json, struct wg_rng *rng, size_t *json_length)
{
    const size_t begin = out->length;
    struct wg_buffer data;
    wg__buffer_init(&data);
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_key(&json, "inputs");
    wg__json_array(&json);
    for (size_t i = 0; i < count; i++) {
        const size_t before = data.length;
        if (!is_json)
            wg__kserve_fill(&data, &inputs[i], rng);
        write_input(&json, &inputs[i], is_json, data.length - before, rng);
    }
    wg__json_close(&json);
    if (!is_json) {
        wg__json_key(&json, "parameters");
        wg__json_object(&json);
        wg__json_member_bool(&json, "binary_data_output", true);
        wg__json_close(&json);
    }
    wg__json_close(&json);
    *json_length = is_json ? 0 : out->length - begin;
    if (data.length != 0)
        wg__buffer_append(out, data.data, data.length);
    out->failed = out->failed || data.failed;
    wg__buffer_fini(&data);
}

/* -- Answers ---------------------------------------------------------------------------------- */

static json_t *load(const char *text, size_t length, const char *what, struct wg_error *err)
{
    json_error_t error;
    json_t *root = json_loadb(text, length, 0, &error);
    if (json_is_object(root))
        return root;
    (void)wg__fail(err, WG_EDATA, "%s: %s", what,
                   root != NULL ? "the answer is no JSON object" : error.text);
    json_decref(root);
    return NULL;
}

static enum wg_code read_input(struct wg_kserve_metadata *out, const json_t *input,
                               struct wg_error *err)
{
    const char *name = json_string_value(json_object_get(input, "name"));
    const char *type = json_string_value(json_object_get(input, "datatype"));
    const json_t *shape = json_object_get(input, "shape");
    if (name == NULL || type == NULL || !json_is_array(shape))
        return wg__fail(err, WG_EDATA,
                        "the model's metadata: input %zu lacks its name, datatype "
                        "or shape",
                        out->input_count + 1);
    int64_t dims[WG_KSERVE_DIMS_MAX];
    const size_t count = json_array_size(shape);
    for (size_t i = 0; i < count && i < WG_KSERVE_DIMS_MAX; i++) {
        const json_t *dim = json_array_get(shape, i);
        if (!json_is_integer(dim))
            return wg__fail(err, WG_EDATA,
                            "the model's metadata: dimension %zu of input '%.60s' "
                            "is no number",
                            i + 1, name);
        dims[i] = json_integer_value(dim);
    }
    return wg__kserve_add_tensor(out->inputs, &out->input_count, name, type, dims, count, err);
}

enum wg_code wg__kserve_read_metadata(struct wg_kserve_metadata *out, const char *text,
                                      size_t length, struct wg_error *err)
{
    json_t *root = load(text, length, "the model's metadata", err);
    if (root == NULL)
        return WG_EDATA;
    *out = (struct wg_kserve_metadata){.input_count = 0};
    const json_t *inputs = json_object_get(root, "inputs");
    enum wg_code code = WG_OK;
    if (!json_is_array(inputs))
        code = wg__fail(err, WG_EDATA, "the model's metadata: no list 'inputs'");
    for (size_t i = 0; code == WG_OK && i < json_array_size(inputs); i++)
        code = read_input(out, json_array_get(inputs, i), err);
    json_decref(root);
    return code;
}

/* A count: numbers, and texts of digits, as protobuf's JSON writes 64 bits. Else 0. */
static uint64_t count_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    uint64_t count = 0;
    if (json_is_integer(value))
        return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
    const char *text = json_string_value(value);
    return text != NULL && wg__parse_uint64(text, &count) ? count : 0;
}

static void add_duration(struct wg_kserve_duration *sum, const json_t *object, const char *key,
                         bool is_part)
{
    const json_t *duration = json_object_get(object, key);
    sum->time_ns += count_of(duration, "ns");
    if (!is_part)
        sum->count += count_of(duration, "count");
}

static void add_model(struct wg_kserve_statistics *out, const json_t *model)
{
    out->inferences += count_of(model, "inference_count");
    out->executions += count_of(model, "execution_count");
    const json_t *stats = json_object_get(model, "inference_stats");
    add_duration(&out->success, stats, "success", false);
    add_duration(&out->fail, stats, "fail", false);
    add_duration(&out->queue, stats, "queue", false);
    add_duration(&out->compute, stats, "compute_infer", false);
    add_duration(&out->compute, stats, "compute_input", true);
    add_duration(&out->compute, stats, "compute_output", true);
    const json_t *batches = json_object_get(model, "batch_stats");
    for (size_t i = 0; i < json_array_size(batches); i++) {
        const json_t *item = json_array_get(batches, i);
        struct wg_kserve_duration time = {0};
        add_duration(&time, item, "compute_infer", false);
        add_duration(&time, item, "compute_input", true);
        add_duration(&time, item, "compute_output", true);
        const struct wg_kserve_batch batch = {.size = count_of(item, "batch_size"),
                                              .executions = time.count,
                                              .time_ns = time.time_ns};
        if (batch.size != 0)
            wg__kserve_add_batch(out, &batch);
    }
}

enum wg_code wg__kserve_read_statistics(struct wg_kserve_statistics *out, const char *text,
                                        size_t length, struct wg_error *err)
{
    json_t *root = load(text, length, "the model's statistics", err);
    if (root == NULL)
        return WG_EDATA;
    *out = (struct wg_kserve_statistics){.inferences = 0};
    const json_t *models = json_object_get(root, "model_stats");
    enum wg_code code = WG_OK;
    if (!json_is_array(models))
        code = wg__fail(err, WG_EDATA, "the model's statistics: no list 'model_stats'");
    for (size_t i = 0; i < json_array_size(models); i++)
        add_model(out, json_array_get(models, i));
    json_decref(root);
    return code;
}

enum wg_code wg__kserve_read_shape(size_t *batch_out, size_t *instances_out, const char *text,
                                   size_t length, struct wg_error *err)
{
    json_t *root = load(text, length, "the model's configuration", err);
    if (root == NULL)
        return WG_EDATA;
    const uint64_t batch = count_of(root, "max_batch_size");
    const json_t *groups = json_object_get(root, "instance_group");
    size_t sum = 0;
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i);
        const size_t devices = json_array_size(json_object_get(group, "gpus"));
        const uint64_t count = count_of(group, "count");
        sum += (size_t)(count < 1024 ? count : 1024) * (devices > 0 ? devices : 1);
    }
    json_decref(root);
    *batch_out = batch < SIZE_MAX ? (size_t)batch : SIZE_MAX;
    *instances_out = sum > 0 ? sum : 1;
    return WG_OK;
}

bool wg__kserve_is_config(const char *text, size_t length)
{
    json_t *root = json_loadb(text, length, 0, NULL);
    const bool is_it = json_object_size(root) > 0;
    json_decref(root);
    return is_it;
}

enum wg_code wg__kserve_read_models(struct wg_buffer *out, const char *text, size_t length,
                                    struct wg_error *err)
{
    json_t *root = json_loadb(text, length, 0, NULL);
    const char *last = ""; /* each version of a model has an item of its own */
    if (!json_is_array(root)) {
        json_decref(root);
        return wg__fail(err, WG_EDATA, "the list of models: no list");
    }
    for (size_t i = 0; i < json_array_size(root); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(root, i), "name"));
        if (name == NULL || strcmp(name, last) == 0)
            continue;
        wg__buffer_printf(out, "%s%s", last[0] != '\0' ? ", " : "", name);
        last = name;
    }
    if (out->failed)
        (void)wg__fail(err, WG_ENOMEM, "the list of models: out of memory");
    json_decref(root);
    return out->failed ? WG_ENOMEM : WG_OK;
}

/* -- Judging answers -------------------------------------------------------------------------- */

static const char *check_outputs(const json_t *root, bool is_binary, size_t rest)
{
    const json_t *outputs = json_object_get(root, "outputs");
    if (!json_is_array(outputs))
        return "the answer has no list 'outputs'";
    uint64_t told = 0;
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *output = json_array_get(outputs, i);
        const uint64_t bytes = count_of(json_object_get(output, "parameters"), "binary_data_size");
        if (bytes > rest || told > rest - bytes)
            return "the answer is shorter than its header says";
        told += bytes;
    }
    return !is_binary || told == rest ? NULL : "the answer is longer than its header says";
}

const char *wg__kserve_check_infer(const char *body, size_t length, size_t json_length)
{
    if (json_length > length)
        return "the answer is shorter than its JSON header";
    const size_t text = json_length != 0 ? json_length : length;
    if (text == 0 || body[0] != '{' || body[text - 1] != '}')
        return "the answer is no JSON object";
    if (text > PARSED_MAX)
        return NULL;
    json_t *root = json_loadb(body, text, 0, NULL);
    const char *wrong = root == NULL ? "the answer is no JSON"
                                     : check_outputs(root, json_length != 0, length - text);
    json_decref(root);
    return wrong;
}

static const char *message_in(const json_t *root)
{
    const json_t *error = json_object_get(root, "error");
    if (json_is_object(error))
        error = json_object_get(error, "message");
    const char *text = json_string_value(error);
    if (text == NULL)
        text = json_string_value(json_object_get(root, "message"));
    return text != NULL ? text : json_string_value(json_object_get(root, "detail"));
}

void wg__http_error_text(char *out, size_t size, const char *body, size_t length)
{
    json_t *root = length <= PARSED_MAX ? json_loadb(body, length, 0, NULL) : NULL;
    const char *text = message_in(root);
    const size_t text_length = text != NULL ? strlen(text) : length;
    if (text == NULL)
        text = body;
    size_t written = 0;
    for (size_t i = 0; i < text_length && written + 1 < size; i++) {
        const unsigned char byte = (unsigned char)text[i];
        out[written++] = byte < 0x20 || byte == 0x7F ? ' ' : text[i];
    }
    while (written > 0 && out[written - 1] == ' ')
        written--;
    out[written] = '\0';
    json_decref(root);
}
