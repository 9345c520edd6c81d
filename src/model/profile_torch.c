/* SPDX-License-Identifier: MIT
 *
 * PyTorch's profiler (Kineto): a chrome trace with GPU kernels and the operators that launched
 * them.
 *
 *     {"deviceProperties": [{"id": 0, "name": "..", "numSms": 108, ..}], ..
 *      "traceEvents": [
 *        {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "ts": .., "dur": ..,
 *         "args": {"External id": 192, "Input Dims": [[512], ..], "Input type": ["float", ..]}},
 *        {"ph": "X", "cat": "kernel", "name": "sm80_xmma_..", "ts": .., "dur": 9.2,
 *         "args": {"External id": 192, "grid": [8, 12, 1], "block": [128, 1, 1],
 *                  "registers per thread": 128, "shared memory": 13056, ..}}, ..]}
 *
 * Traces grow to gigabytes, so the file is walked twice, event by event: first for the kernels,
 * then for the operators whose numbers kernels have. Only events whose text may be one of these are
 * parsed. Kernels that follow each other from one operator are one layer.
 *
 * Owns: its tables.    Threads: one thread at a time.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "base/alloc.h"
#include "model/json_scan.h"
#include "model/profile_json.h"
#include "model/profile_reader.h"
#include "model/profile_torch_op.h"

enum { EVENT_MAX = 1 << 22, KERNELS_FIRST = 64 };

struct kernel {
    double at_us;
    uint64_t external; /* 0: not told */
    size_t launch;
};

struct launcher {
    uint64_t external;
    const char *name;      /* NULL: not met */
    struct wg_layer layer; /* kind and dimensions */
};

struct reader {
    const struct wg_profile_file *file;
    struct wg_profile_collector *collector;
    struct kernel *kernels;
    size_t kernel_room;
    struct launcher *operators; /* by rising number */
    size_t operator_count;
    int64_t device; /* of the first kernel; -1: not told */
    json_t *devices;
};

typedef enum wg_code (*event_fn)(struct reader *reader, const json_t *event, struct wg_error *err);

/* -- Walking ------------------------------------------------------------------------------- */

static bool holds(const struct wg_json_scan *scan, const char *word)
{
    return memmem(scan->text.data, scan->text.length, word, strlen(word)) != NULL;
}

/* Hands on the present element where one of `words` is in its text. */
static enum wg_code walk_event(struct reader *reader, struct wg_json_scan *scan,
                               const char *const words[2], event_fn take, struct wg_error *err)
{
    json_error_t error;
    const size_t line = scan->source->line;
    enum wg_code code = wg__json_scan_take(scan, EVENT_MAX, err);
    if (code != WG_OK || (!holds(scan, words[0]) && !holds(scan, words[1])))
        return code;
    json_t *event = json_loadb(scan->text.data, scan->text.length, 0, &error);
    if (event == NULL)
        return wg__fail(err, WG_EDATA, "%s:%zu: an event is no JSON: %s", reader->file->name,
                        line + (size_t)(error.line > 0 ? error.line - 1 : 0), error.text);
    code = take(reader, event, err);
    json_decref(event);
    return code;
}

static enum wg_code walk_events(struct reader *reader, struct wg_json_scan *scan,
                                const char *const words[2], event_fn take, struct wg_error *err)
{
    bool has_event = true;
    enum wg_code code = wg__json_scan_enter(scan, '[', err);
    while (code == WG_OK) {
        code = wg__json_scan_more(scan, ']', &has_event, err);
        if (code != WG_OK || !has_event)
            break;
        code = walk_event(reader, scan, words, take, err);
    }
    return code;
}

static enum wg_code take_devices(struct reader *reader, struct wg_json_scan *scan,
                                 struct wg_error *err)
{
    json_error_t error;
    const enum wg_code code = wg__json_scan_take(scan, EVENT_MAX, err);
    if (code == WG_OK && reader->devices == NULL)
        reader->devices = json_loadb(scan->text.data, scan->text.length, 0, &error);
    return code;
}

static enum wg_code walk_members(struct reader *reader, struct wg_json_scan *scan,
                                 const char *const words[2], event_fn take, struct wg_error *err)
{
    bool has_member = true;
    enum wg_code code = wg__json_scan_enter(scan, '{', err);
    while (code == WG_OK) {
        code = wg__json_scan_more(scan, '}', &has_member, err);
        if (code != WG_OK || !has_member)
            break;
        if (strcmp(scan->key, "traceEvents") == 0) {
            code = walk_events(reader, scan, words, take, err);
            scan->is_first = false; /* back in the object */
        } else if (strcmp(scan->key, "deviceProperties") == 0) {
            code = take_devices(reader, scan, err);
        } else {
            code = wg__json_scan_skip(scan, err);
        }
    }
    return code;
}

static enum wg_code walk(struct reader *reader, const char *const words[2], event_fn take,
                         struct wg_error *err)
{
    struct wg_source source = {0};
    struct wg_json_scan scan;
    enum wg_code code = wg__profile_file_open(reader->file, &source, err);
    wg__json_scan_init(&scan, &source);
    if (code == WG_OK)
        code = wg__json_scan_peek(&scan, err) == '['
                   ? walk_events(reader, &scan, words, take, err)
                   : walk_members(reader, &scan, words, take, err);
    wg__json_scan_fini(&scan);
    wg__source_close(&source);
    return code;
}

/* -- Kernels ------------------------------------------------------------------------------- */

static uint64_t external_of(const json_t *event)
{
    const json_t *args = json_object_get(event, "args");
    const json_t *external = json_object_get(args, "External id");
    if (external == NULL)
        external = json_object_get(args, "external id");
    return json_integer_value(external) > 0 ? (uint64_t)json_integer_value(external) : 0;
}

static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void read_dims(const json_t *args, const char *key, uint64_t out[3])
{
    const json_t *dims = json_object_get(args, key);
    uint64_t read[3] = {1, 1, 1};
    const size_t count = json_array_size(dims);
    if (count == 0 || count > 3)
        return;
    for (size_t i = 0; i < count; i++)
        if (!wg__json_whole(json_array_get(dims, i), &read[i]) || read[i] == 0)
            return;
    memcpy(out, read, sizeof read);
}

static enum wg_code push_kernel(struct reader *reader, const struct kernel *kernel,
                                struct wg_error *err)
{
    if (kernel->launch == reader->kernel_room) {
        const size_t room = reader->kernel_room == 0 ? KERNELS_FIRST : 2 * reader->kernel_room;
        struct kernel *kernels = wg__realloc_array(reader->kernels, room, sizeof *kernels);
        if (kernels == NULL)
            return wg__collector_out_of_memory(reader->collector, err);
        reader->kernels = kernels;
        reader->kernel_room = room;
    }
    reader->kernels[kernel->launch] = *kernel;
    return WG_OK;
}

static enum wg_code take_kernel(struct reader *reader, const json_t *event, struct wg_error *err)
{
    const char *category = json_string_value(json_object_get(event, "cat"));
    const char *name = json_string_value(json_object_get(event, "name"));
    const json_t *args = json_object_get(event, "args");
    if (category == NULL || name == NULL || strcasecmp(category, "kernel") != 0)
        return WG_OK;
    struct wg_launch launch = wg__launch_unknown();
    read_dims(args, "grid", launch.grid);
    read_dims(args, "block", launch.block);
    launch.registers_per_thread = number_of(args, "registers per thread");
    launch.shared_memory_bytes = number_of(args, "shared memory");
    const double dur_us = number_of(event, "dur");
    if (dur_us > 0.0)
        launch.time_s = dur_us * 1e-6;
    if (reader->device < 0 && json_is_integer(json_object_get(args, "device")))
        reader->device = json_integer_value(json_object_get(args, "device"));
    const double at_us = number_of(event, "ts");
    const struct kernel kernel = {.at_us = isnan(at_us) ? 0.0 : at_us,
                                  .external = external_of(event),
                                  .launch = reader->collector->profile->launch_count};
    enum wg_code code = wg__collector_name(reader->collector, name, &launch.name, err);
    if (code == WG_OK)
        code = push_kernel(reader, &kernel, err);
    return code == WG_OK ? wg__collector_launch(reader->collector, &launch, err) : code;
}

static int compare_kernels(const void *a, const void *b)
{
    const struct kernel *one = a, *two = b;
    if (one->at_us != two->at_us)
        return one->at_us < two->at_us ? -1 : 1;
    return one->launch < two->launch ? -1 : one->launch > two->launch;
}

/* Puts launches in the order of time; streams are blocks in the file. */
static enum wg_code sort_launches(struct reader *reader, struct wg_error *err)
{
    struct wg_profile *profile = reader->collector->profile;
    if (profile->launch_count == 0 || reader->kernels == NULL)
        return wg__fail(err, WG_EDATA, "%s: no kernel in the trace: was a GPU profiled?",
                        reader->file->name);
    struct wg_launch *sorted =
        wg__arena_alloc(&profile->network.arena, profile->launch_count, sizeof *sorted);
    if (sorted == NULL)
        return wg__collector_out_of_memory(reader->collector, err);
    qsort(reader->kernels, profile->launch_count, sizeof *reader->kernels, compare_kernels);
    for (size_t i = 0; i < profile->launch_count; i++)
        sorted[i] = profile->launches[reader->kernels[i].launch];
    profile->launches = sorted;
    return WG_OK;
}

/* -- Operators ----------------------------------------------------------------------------- */

static int compare_operators(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, two = ((const struct launcher *)b)->external;
    return one < two ? -1 : one > two;
}

static int compare_numbers(const void *a, const void *b)
{
    const struct launcher *one = a, *two = b;
    return one->external < two->external ? -1 : one->external > two->external;
}

/* The numbers of operators that launched kernels, each once. */
static enum wg_code list_operators(struct reader *reader, struct wg_error *err)
{
    const size_t count = reader->collector->profile->launch_count;
    struct launcher *operators = wg__alloc_zeroed(count, sizeof *operators);
    if (operators == NULL)
        return wg__collector_out_of_memory(reader->collector, err);
    reader->operators = operators;
    assert(reader->kernels != NULL); /* one for each launch */
    for (size_t i = 0; i < count; i++)
        operators[i].external = reader->kernels[i].external;
    qsort(operators, count, sizeof *operators, compare_numbers);
    for (size_t i = 0; i < count; i++) {
        const size_t kept = reader->operator_count;
        if (operators[i].external != 0 &&
            (kept == 0 || operators[kept - 1].external != operators[i].external))
            operators[reader->operator_count++].external = operators[i].external;
    }
    return WG_OK;
}

static struct launcher *find_operator(const struct reader *reader, uint64_t external)
{
    return reader->operator_count == 0 || external == 0
               ? NULL
               : bsearch(&external, reader->operators, reader->operator_count,
                         sizeof *reader->operators, compare_operators);
}

static enum wg_code take_operator(struct reader *reader, const json_t *event, struct wg_error *err)
{
    const char *category = json_string_value(json_object_get(event, "cat"));
    const char *name = json_string_value(json_object_get(event, "name"));
    if (category == NULL || name == NULL ||
        (strcasecmp(category, "cpu_op") != 0 && strcasecmp(category, "operator") != 0))
        return WG_OK;
    struct launcher *found = find_operator(reader, external_of(event));
    if (found == NULL || found->name != NULL)
        return WG_OK;
    (void)wg__torch_op_read(event, &found->layer);
    return wg__collector_name(reader->collector, name, &found->name, err);
}

/* -- Layers -------------------------------------------------------------------------------- */

static enum wg_code add_layer(struct reader *reader, size_t first, size_t count,
                              struct wg_error *err)
{
    struct wg_network *network = &reader->collector->profile->network;
    const struct launcher *found = find_operator(reader, reader->kernels[first].external);
    const bool is_known = found != NULL && found->name != NULL;
    const char *name = is_known ? found->name : "kernel";
    const enum wg_code code =
        wg__collector_layer_of(reader->collector, name, name, first, count, err);
    if (code != WG_OK || !is_known || found->layer.in.constant == 0)
        return code;
    struct wg_layer *layer = &network->layers[network->layer_count - 1];
    layer->kind = found->layer.kind;
    layer->gemm = found->layer.gemm;
    layer->conv = found->layer.conv;
    layer->in = found->layer.in;
    layer->out = found->layer.out;
    layer->parameters = found->layer.parameters;
    enum wg_dtype *dtype = layer->kind == WG_LAYER_CONV ? &layer->conv.dtype : &layer->gemm.dtype;
    if (*dtype == WG_DTYPE_FP32)
        *dtype = wg__kernel_fp32(layer->kernel_name);
    return code;
}

static enum wg_code make_layers(struct reader *reader, struct wg_error *err)
{
    const size_t count = reader->collector->profile->launch_count;
    enum wg_code code = wg__collector_layers(reader->collector, count, err);
    assert(reader->kernels != NULL);
    for (size_t first = 0; first < count && code == WG_OK;) {
        size_t next = first + 1;
        while (next < count && reader->kernels[first].external != 0 &&
               reader->kernels[next].external == reader->kernels[first].external)
            next++;
        code = add_layer(reader, first, next - first, err);
        first = next;
    }
    return code;
}

static enum wg_code name_device(struct reader *reader, struct wg_error *err)
{
    struct wg_profile *profile = reader->collector->profile;
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < json_array_size(reader->devices) && code == WG_OK; i++) {
        const json_t *device = json_array_get(reader->devices, i);
        uint64_t sms = 0;
        if (json_integer_value(json_object_get(device, "id")) != reader->device)
            continue;
        if (wg__json_whole(json_object_get(device, "numSms"), &sms) && sms <= 65536)
            profile->sms = (unsigned)sms;
        const char *name = json_string_value(json_object_get(device, "name"));
        if (name != NULL)
            code = wg__collector_name(reader->collector, name, &profile->device, err);
    }
    for (size_t i = 0; i < profile->launch_count; i++)
        profile->launches[i].sms = profile->sms;
    return code;
}

enum wg_code wg__profile_torch(struct wg_profile *profile, const struct wg_profile_file *file,
                               struct wg_error *err)
{
    static const char *const of_kernels[] = {"\"kernel\"", "\"Kernel\""};
    static const char *const of_operators[] = {"\"cpu_op\"", "perator\""};
    struct wg_profile_collector collector;
    struct reader reader = {.file = file, .collector = &collector, .device = -1};
    profile->kind = WG_PROFILE_TORCH;
    wg__collector_init(&collector, profile, file->name);
    enum wg_code code = walk(&reader, of_kernels, take_kernel, err);
    if (code == WG_OK)
        code = sort_launches(&reader, err);
    if (code == WG_OK)
        code = list_operators(&reader, err);
    if (code == WG_OK)
        code = walk(&reader, of_operators, take_operator, err);
    if (code == WG_OK)
        code = make_layers(&reader, err);
    if (code == WG_OK)
        code = name_device(&reader, err);
    json_decref(reader.devices);
    wg__free(reader.kernels);
    wg__free(reader.operators);
    wg__collector_fini(&collector);
    return code;
}
