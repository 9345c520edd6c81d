/* SPDX-License-Identifier: MIT
 *
 * GPUs from YAML: see gpu_file.h for the keys.
 *
 * One table of fields says key, place, unit and range. What `like` has given stands in the spec
 * before the fields are read, so "missing" is "still zero".
 */
#include "cli/gpu_file.h"

#include <math.h>
#include <string.h>

#include "base/number.h"

struct field {
    const char *key;
    size_t offset;
    bool is_count;   /* an unsigned */
    bool is_limit;   /* of the compute capability: may be missing */
    double scale;    /* from the file's unit */
    double min, max; /* in the file's unit */
};

#define COUNT(member)  .offset = offsetof(struct wg_gpu_spec, member), .is_count = true
#define NUMBER(member) .offset = offsetof(struct wg_gpu_spec, member)

static const struct field fields[] = {
    {"sms", COUNT(sms), .scale = 1, .min = 1, .max = 4096},
    {"fp32_lanes_per_sm", COUNT(fp32_lanes_per_sm), .scale = 1, .min = 1, .max = 4096},
    {"boost_clock_mhz", NUMBER(boost_clock_hz), .scale = 1e6, .min = 1, .max = 1e5},
    {"memory_bandwidth_gb_per_s", NUMBER(memory_bandwidth_bytes_per_s), .scale = 1e9, .min = 0.1,
     .max = 1e6},
    {"memory_gb", NUMBER(memory_bytes), .scale = 1e9, .min = 0.1, .max = 1e5},
    {"l2_mib", NUMBER(l2_bytes), .scale = 0x1p20, .min = 0.01, .max = 1e5},
    {"tdp_w", NUMBER(tdp_w), .scale = 1, .min = 1, .max = 1e5},
    {"max_threads_per_sm", COUNT(max_threads_per_sm), .is_limit = true, .scale = 1, .min = 32,
     .max = 65536},
    {"max_blocks_per_sm", COUNT(max_blocks_per_sm), .is_limit = true, .scale = 1, .min = 1,
     .max = 4096},
    {"registers_per_sm", COUNT(registers_per_sm), .is_limit = true, .scale = 1, .min = 1024,
     .max = 1 << 24},
    {"shared_memory_per_sm_kib", NUMBER(shared_memory_per_sm_bytes), .is_limit = true,
     .scale = 1024, .min = 1, .max = 1e5},
    {"max_shared_memory_per_block_kib", NUMBER(max_shared_memory_per_block_bytes), .is_limit = true,
     .scale = 1024, .min = 1, .max = 1e5},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static const char *const other_keys[] = {
    "like", "id", "name", "arch", "compute_capability", "idle_w", "dense_tflops"};

struct reader {
    const struct wg_yaml *yaml;
    wg_yaml_node root;
    struct wg_arena *arena;
    struct wg_error *err;
};

static enum wg_code check_keys(const struct reader *reader)
{
    for (size_t i = 0; i < wg__yaml_count(reader->yaml, reader->root); i++) {
        const char *key = wg__yaml_key(reader->yaml, reader->root, i);
        bool is_known = false;
        for (size_t j = 0; j < FIELDS; j++)
            is_known = is_known || strcmp(key, fields[j].key) == 0;
        for (size_t j = 0; j < sizeof other_keys / sizeof other_keys[0]; j++)
            is_known = is_known || strcmp(key, other_keys[j]) == 0;
        if (!is_known)
            return wg__yaml_fail(reader->yaml, wg__yaml_key_node(reader->yaml, reader->root, i),
                                 reader->err,
                                 "unknown key '%.40s' of a GPU; wattgov-wave(1) lists them", key);
    }
    return WG_OK;
}

static enum wg_code number_of(const struct reader *reader, wg_yaml_node node, const char *key,
                              double min, double max, bool is_whole, double *out)
{
    double number = 0;
    const bool is_text = wg__yaml_kind(reader->yaml, node) == WG_YAML_TEXT;
    if (is_text && wg__parse_double(wg__yaml_text(reader->yaml, node), &number) && number >= min &&
        number <= max && (!is_whole || number == floor(number))) {
        *out = number;
        return WG_OK;
    }
    char least[WG_DOUBLE_TEXT_SIZE], most[WG_DOUBLE_TEXT_SIZE];
    wg__format_double(least, min);
    wg__format_double(most, max);
    return wg__yaml_fail(reader->yaml, node, reader->err,
                         "%s: '%.40s' is not a %snumber in %s .. %s", key,
                         is_text ? wg__yaml_text(reader->yaml, node) : "a list or a map",
                         is_whole ? "whole " : "", least, most);
}

static enum wg_code read_field(const struct reader *reader, const struct field *field,
                               struct wg_gpu_spec *spec)
{
    const wg_yaml_node node = wg__yaml_find(reader->yaml, reader->root, field->key);
    if (node == 0)
        return WG_OK;
    double number = 0;
    const enum wg_code code =
        number_of(reader, node, field->key, field->min, field->max, field->is_count, &number);
    if (code != WG_OK)
        return code;
    char *place = (char *)spec + field->offset;
    const unsigned count = field->is_count ? (unsigned)number : 0;
    const double scaled = number * field->scale;
    if (field->is_count)
        memcpy(place, &count, sizeof count);
    else
        memcpy(place, &scaled, sizeof scaled);
    return WG_OK;
}

static bool is_missing(const struct field *field, const struct wg_gpu_spec *spec)
{
    const char *place = (const char *)spec + field->offset;
    unsigned count;
    double number;
    memcpy(&count, place, sizeof count);
    if (field->is_count)
        return count == 0;
    memcpy(&number, place, sizeof number);
    return number <= 0;
}

static enum wg_code read_text(const struct reader *reader, const char *key, const char *fallback,
                              const char **out)
{
    const wg_yaml_node node = wg__yaml_find(reader->yaml, reader->root, key);
    const char *text = node != 0 ? wg__yaml_text(reader->yaml, node) : fallback;
    const size_t length = strlen(text);
    bool is_printable = length > 0 && length < 64;
    for (size_t i = 0; i < length; i++)
        is_printable = is_printable && text[i] >= ' ' && text[i] <= '~';
    if (!is_printable)
        return wg__yaml_fail(reader->yaml, node ? node : reader->root, reader->err,
                             "%s: expected a text of 1 to 63 printable ASCII characters", key);
    *out = wg__arena_strdup(reader->arena, text);
    return *out ? WG_OK : wg__fail(reader->err, WG_ENOMEM, "out of memory");
}

/* "8.6". */
static enum wg_code read_capability(const struct reader *reader, struct wg_gpu_spec *spec)
{
    const wg_yaml_node node = wg__yaml_find(reader->yaml, reader->root, "compute_capability");
    if (node == 0)
        return spec->cc_major > 0 ? WG_OK
                                  : wg__yaml_fail(reader->yaml, reader->root, reader->err,
                                                  "compute_capability is missing, and so is like");
    const char *text = wg__yaml_text(reader->yaml, node);
    const size_t digits = strspn(text, "0123456789");
    const bool is_it = digits >= 1 && digits <= 2 && text[digits] == '.' &&
                       text[digits + 1] >= '0' && text[digits + 1] <= '9' &&
                       text[digits + 2] == '\0';
    if (!is_it)
        return wg__yaml_fail(reader->yaml, node, reader->err,
                             "compute_capability: expected one such as \"8.6\"");
    spec->cc_major = 0;
    for (size_t i = 0; i < digits; i++)
        spec->cc_major = spec->cc_major * 10 + (unsigned)(text[i] - '0');
    spec->cc_minor = (unsigned)(text[digits + 1] - '0');
    return WG_OK;
}

static enum wg_code read_rates(const struct reader *reader, struct wg_gpu_spec *spec)
{
    const wg_yaml_node map = wg__yaml_find(reader->yaml, reader->root, "dense_tflops");
    if (map == 0)
        return WG_OK;
    if (wg__yaml_kind(reader->yaml, map) != WG_YAML_MAP)
        return wg__yaml_fail(reader->yaml, map, reader->err,
                             "dense_tflops: expected a map such as {fp16: 40.6}");
    for (size_t i = 0; i < wg__yaml_count(reader->yaml, map); i++) {
        const char *key = wg__yaml_key(reader->yaml, map, i);
        enum wg_dtype dtype;
        struct wg_error why;
        if (wg__dtype_parse(key, &dtype, &why) != WG_OK)
            return wg__yaml_fail(reader->yaml, wg__yaml_key_node(reader->yaml, map, i), reader->err,
                                 "dense_tflops: %s", why.text);
        double tflops = 0;
        const enum wg_code code =
            number_of(reader, wg__yaml_item(reader->yaml, map, i), key, 0, 1e6, false, &tflops);
        if (code != WG_OK)
            return code;
        spec->dense_flops[dtype] = tflops * 1e12;
    }
    return WG_OK;
}

static enum wg_code read_like(const struct reader *reader, const struct wg_gpu_table *table,
                              struct wg_gpu_spec *spec)
{
    const wg_yaml_node node = wg__yaml_find(reader->yaml, reader->root, "like");
    const struct wg_gpu_spec *model = NULL;
    struct wg_error why;
    if (node == 0)
        return WG_OK;
    if (wg__gpu_table_find(table, wg__yaml_text(reader->yaml, node), &model, &why) != WG_OK)
        return wg__yaml_fail(reader->yaml, node, reader->err, "like: %s", why.text);
    *spec = *model;
    return WG_OK;
}

/* Rates at the SMs and the clock that the file has changed. */
static void scale_rates(struct wg_gpu_spec *spec, const struct wg_gpu_spec *model)
{
    const double before = model->sms * model->boost_clock_hz;
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++)
        if (before > 0)
            spec->dense_flops[dtype] =
                model->dense_flops[dtype] * (spec->sms * spec->boost_clock_hz / before);
    spec->dense_flops[WG_DTYPE_FP32] =
        2.0 * spec->sms * spec->fp32_lanes_per_sm * spec->boost_clock_hz;
}

/* Another compute capability than the model's brings its own limits. */
static void set_limits(const struct wg_gpu_table *table, const struct wg_gpu_spec *model,
                       struct wg_gpu_spec *spec)
{
    if (spec->cc_major == model->cc_major && spec->cc_minor == model->cc_minor)
        return;
    spec->arch = "unknown";
    spec->max_threads_per_sm = 0;
    spec->max_blocks_per_sm = 0;
    spec->registers_per_sm = 0;
    spec->shared_memory_per_sm_bytes = 0;
    spec->max_shared_memory_per_block_bytes = 0;
    wg__gpu_table_limits(table, spec);
}

static enum wg_code check_fields(const struct reader *reader, const struct wg_gpu_spec *spec)
{
    for (size_t i = 0; i < FIELDS; i++) {
        if (!is_missing(&fields[i], spec))
            continue;
        if (!fields[i].is_limit)
            return wg__yaml_fail(reader->yaml, reader->root, reader->err,
                                 "%s is missing, and so is like", fields[i].key);
        return wg__yaml_fail(reader->yaml, reader->root, reader->err,
                             "%s is missing, and compute capability %u.%u is not known",
                             fields[i].key, spec->cc_major, spec->cc_minor);
    }
    return WG_OK;
}

static enum wg_code read_numbers(const struct reader *reader, struct wg_gpu_spec *spec)
{
    enum wg_code code = WG_OK;
    for (size_t i = 0; code == WG_OK && i < FIELDS; i++)
        code = read_field(reader, &fields[i], spec);
    if (code == WG_OK)
        code = check_fields(reader, spec);
    const wg_yaml_node idle = wg__yaml_find(reader->yaml, reader->root, "idle_w");
    if (code == WG_OK && idle != 0)
        code = number_of(reader, idle, "idle_w", 0, spec->tdp_w, false, &spec->idle_w);
    return code;
}

/* The file's name without folder and ending. */
static const char *stem_of(const struct reader *reader, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *stem = wg__arena_strdup(reader->arena, slash != NULL ? slash + 1 : path);
    char *dot = stem != NULL ? strrchr(stem, '.') : NULL;
    if (dot != NULL && dot != stem)
        *dot = '\0';
    return stem;
}

static enum wg_code read_spec(const struct reader *reader, const char *path,
                              const struct wg_gpu_table *table, struct wg_gpu_spec *out)
{
    struct wg_gpu_spec spec = {.arch = "unknown", .idle_w = (double)NAN};
    if (wg__yaml_kind(reader->yaml, reader->root) != WG_YAML_MAP)
        return wg__yaml_fail(reader->yaml, reader->root, reader->err,
                             "expected a map of a GPU's fields, such as \"like: a100-sxm4-80gb\"");
    enum wg_code code = check_keys(reader);
    if (code == WG_OK)
        code = read_like(reader, table, &spec);
    const struct wg_gpu_spec model = spec;
    if (code == WG_OK)
        code = read_capability(reader, &spec);
    if (code != WG_OK)
        return code;
    set_limits(table, &model, &spec);
    code = read_numbers(reader, &spec);
    if (code != WG_OK)
        return code;
    scale_rates(&spec, &model);
    code = read_rates(reader, &spec);
    const char *stem = stem_of(reader, path);
    if (stem == NULL)
        return wg__fail(reader->err, WG_ENOMEM, "out of memory");
    if (code == WG_OK)
        code = read_text(reader, "id", stem, &spec.id);
    if (code == WG_OK)
        code = read_text(reader, "name", spec.id, &spec.name);
    if (code == WG_OK)
        code = read_text(reader, "arch", spec.arch, &spec.arch);
    if (code == WG_OK)
        *out = spec;
    return code;
}

enum wg_code wg__gpu_file_read(const char *path, const struct wg_gpu_table *table,
                               struct wg_arena *arena, struct wg_gpu_spec *out,
                               struct wg_error *err)
{
    struct wg_yaml *yaml = NULL;
    enum wg_code code = wg__yaml_open(&yaml, path, err);
    if (code != WG_OK)
        return code;
    const struct reader reader = {yaml, wg__yaml_root(yaml), arena, err};
    code = read_spec(&reader, path, table, out);
    wg__yaml_close(yaml);
    return code;
}
