/* SPDX-License-Identifier: MIT
 *
 * Reading recordings.
 *
 *     header, backends, devices           counted by the header; all must be there
 *     answers, in any order of devices    times of one device never go back
 *     end                                 nothing behind it
 *
 * A recording may come from anywhere, so everything is checked, and each message names file and
 * line. Only the end is forgiving: a last line that is torn (no line end, and no JSON) is what a
 * killed recorder leaves on a full disk; it is left out and reported in `cut_line`.
 *
 * JSON is jansson's work, one line at a time; its memory does not pass through wg__alloc, since it
 * has one allocator for a whole program.
 *
 * Owns: see struct wg_recording.    Threads: one thread at a time.
 */
#include "device/recording.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/source.h"
#include "device/recording_parts.h"

static const double TIME_MAX_S = 1e8; /* three years; in nanoseconds it fits a uint64_t */

enum part { HEADER, BACKENDS, DEVICES, ANSWERS, ENDED };

struct reader {
    struct wg_recording *recording;
    struct wg_source source;
    struct wg_buffer line;
    bool is_terminated; /* the line has its line end */
    enum part part;
    size_t read; /* backends or devices, as the part says */
    struct wg_error *err;
};

static enum wg_code fail_memory(const struct reader *reader)
{
    return wg__fail(reader->err, WG_ENOMEM, "%s: out of memory", reader->source.name);
}

/* -- Lines ------------------------------------------------------------------------------------ */

/* Reads a line without its end. `*has_line` is false at the end of the file. */
static enum wg_code read_line(struct reader *reader, bool *has_line)
{
    struct wg_source *source = &reader->source;
    reader->line.length = 0;
    reader->is_terminated = false;
    *has_line = false;
    for (;;) {
        const int byte = wg__source_peek(source, reader->err);
        if (byte == WG_SOURCE_BROKEN)
            return source->stopped;
        if (byte == WG_SOURCE_END)
            return WG_OK;
        *has_line = true;
        const char *end = memchr(source->cursor, '\n', (size_t)(source->end - source->cursor));
        const size_t length = (size_t)((end != NULL ? end : source->end) - source->cursor);
        if (reader->line.length + length > WG_RECORDING_LINE_MAX)
            return wg__fail(reader->err, WG_EDATA, "%s:%zu: the line is longer than %d bytes",
                            source->name, source->line, WG_RECORDING_LINE_MAX);
        wg__buffer_append(&reader->line, source->cursor, length);
        if (reader->line.failed)
            return fail_memory(reader);
        source->cursor += length;
        if (end != NULL) {
            reader->is_terminated = true;
            return WG_OK; /* the cursor stays at the line end: the line's number is still right */
        }
    }
}

/* -- Header, backends, devices ------------------------------------------------------------------
 */

static enum wg_code read_header(struct reader *reader, struct wg_members *members)
{
    struct wg_recording *recording = reader->recording;
    const char *schema = wg__member_text(members, "schema", true);
    if (schema == NULL)
        return members->code;
    if (strcmp(schema, WG_RECORDING_SCHEMA) != 0)
        return wg__members_fail(members, "the schema is '%.60s', this version reads '%s'", schema,
                                WG_RECORDING_SCHEMA);
    recording->version = wg__member_text(members, "wattgov", true);
    const size_t backends =
        (size_t)wg__member_uint(members, "backend_count", WG_RECORDING_BACKENDS_MAX);
    const size_t devices =
        (size_t)wg__member_uint(members, "device_count", WG_RECORDING_DEVICES_MAX);
    if (members->code != WG_OK)
        return members->code;
    recording->backends = wg__alloc_zeroed(backends + 1, sizeof *recording->backends);
    recording->devices = wg__alloc_zeroed(devices + 1, sizeof *recording->devices);
    if (recording->backends == NULL || recording->devices == NULL)
        return fail_memory(reader);
    recording->backend_count = backends;
    recording->device_count = devices;
    return WG_OK;
}

static enum wg_code read_backend(struct reader *reader, struct wg_members *members)
{
    struct wg_backend_info *out = &reader->recording->backends[reader->read++];
    out->name = wg__member_text(members, "backend", true);
    out->state = wg__member_code(members, "state");
    out->text = wg__member_text(members, "text", true);
    out->remedy = wg__member_text(members, "remedy", false);
    out->device_count = (size_t)wg__member_uint(members, "device_count", WG_RECORDING_DEVICES_MAX);
    return members->code;
}

static enum wg_code read_device(struct reader *reader, struct wg_members *members)
{
    struct wg_recording *recording = reader->recording;
    const size_t position = (size_t)wg__member_uint(members, "device", WG_RECORDING_DEVICES_MAX);
    if (members->code == WG_OK && position != reader->read)
        return wg__members_fail(members, "device %zu, expected %zu", position, reader->read);
    struct wg_device_info *info = &recording->devices[reader->read].info;
    if (wg__recording_read_info(members, info) != WG_OK)
        return members->code;
    for (size_t i = 0; i < reader->read; i++) {
        const struct wg_device_info *other = &recording->devices[i].info;
        if (other->kind == info->kind && other->index == info->index)
            return wg__members_fail(members, "device %zu is %s %u already", i,
                                    wg_device_kind_key(info->kind), info->index);
    }
    reader->read++;
    return WG_OK;
}

/* -- Answers ------------------------------------------------------------------------------------
 */

static uint64_t read_time_ns(struct wg_members *members, const char *key, double absent)
{
    const double t_s = wg__member_number(members, key, 0.0, TIME_MAX_S, absent);
    return (uint64_t)llround(t_s * 1e9);
}

static void read_metrics(struct wg_members *members, struct wg_sample *out)
{
    const json_t *metrics = wg__member_object(members, "metrics");
    if (metrics == NULL) {
        (void)wg__members_fail(members, "'metrics' is missing");
        return;
    }
    size_t known = 0;
    for (unsigned i = 0; i < WG_METRIC_COUNT; i++) {
        const json_t *value = json_object_get(metrics, wg_metric_key((enum wg_metric)i));
        known += value != NULL;
        if (value == NULL || json_is_null(value))
            continue;
        if (!json_is_number(value) || !isfinite(json_number_value(value))) {
            (void)wg__members_fail(members, "'%s' is no number", wg_metric_key((enum wg_metric)i));
            return;
        }
        out->values[i] = json_number_value(value);
        out->present |= 1U << i;
    }
    members->recording->unknown_keys += json_object_size(metrics) - known;
}

static uint32_t throttle_bit(const char *words)
{
    for (unsigned bit = 0; bit < 32; bit++) {
        const char *text = wg_throttle_text((enum wg_throttle)(1U << bit));
        if (text != NULL && strcmp(text, words) == 0)
            return 1U << bit;
    }
    return 0;
}

static void read_throttle(struct wg_members *members, struct wg_sample *out)
{
    const json_t *array = wg__member_array(members, "throttle", 32);
    out->has_throttle = array != NULL;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *words = json_string_value(json_array_get(array, i));
        if (words == NULL) {
            (void)wg__members_fail(members, "'throttle' holds something that is no text");
            return;
        }
        const uint32_t bit = throttle_bit(words);
        out->throttle |= bit;
        members->recording->unknown_keys += bit == 0;
    }
}

static enum wg_code keep_answer(struct reader *reader, struct wg_recorded_device *device,
                                const struct wg_recorded_answer *answer)
{
    if (device->answer_count == device->answer_capacity) {
        const size_t capacity = device->answer_capacity != 0 ? device->answer_capacity * 2 : 16;
        struct wg_recorded_answer *answers =
            wg__realloc_array(device->answers, capacity, sizeof *answers);
        if (answers == NULL)
            return fail_memory(reader);
        device->answers = answers;
        device->answer_capacity = capacity;
    }
    device->answers[device->answer_count++] = *answer;
    reader->recording->answer_count++;
    if (answer->sample.t_ns > reader->recording->end_ns)
        reader->recording->end_ns = answer->sample.t_ns;
    return WG_OK;
}

static enum wg_code read_answer(struct reader *reader, struct wg_members *members)
{
    struct wg_recording *recording = reader->recording;
    const uint64_t position = wg__member_uint(members, "device", WG_RECORDING_DEVICES_MAX);
    if (members->code == WG_OK && position >= recording->device_count)
        return wg__members_fail(members, "device %" PRIu64 ", there are %zu", position,
                                recording->device_count);
    struct wg_recorded_answer answer = {0};
    answer.sample.t_ns = read_time_ns(members, "t_s", (double)INFINITY);
    if (json_object_get(members->object, "error") != NULL) {
        answer.code = wg__member_code(members, "error");
        answer.text = wg__member_text(members, "text", true);
        if (members->code == WG_OK && answer.code == WG_OK)
            return wg__members_fail(members, "'error' is WG_OK");
    } else {
        answer.sample.span_ns = read_time_ns(members, "span_s", 0.0);
        read_metrics(members, &answer.sample);
        read_throttle(members, &answer.sample);
    }
    if (members->code != WG_OK)
        return members->code;
    struct wg_recorded_device *device = &recording->devices[position];
    if (device->answer_count != 0 &&
        answer.sample.t_ns < device->answers[device->answer_count - 1].sample.t_ns)
        return wg__members_fail(members, "the time of device %" PRIu64 " goes back", position);
    if (recording->answer_count == WG_RECORDING_ANSWERS_MAX)
        return wg__members_fail(members, "more than %d answers", WG_RECORDING_ANSWERS_MAX);
    return keep_answer(reader, device, &answer);
}

static enum wg_code read_end(struct reader *reader, struct wg_members *members)
{
    const uint64_t end_ns = read_time_ns(members, "t_s", (double)INFINITY);
    if (members->code != WG_OK)
        return members->code;
    if (end_ns < reader->recording->end_ns)
        return wg__members_fail(members, "the recording ends before its last answer");
    reader->recording->end_ns = end_ns;
    reader->recording->is_closed = true;
    reader->part = ENDED;
    return WG_OK;
}

/* -- The whole ----------------------------------------------------------------------------------
 */

/* The part that the next line belongs to. */
static void advance(struct reader *reader)
{
    if (reader->part == HEADER)
        reader->part = BACKENDS;
    if (reader->part == BACKENDS && reader->read == reader->recording->backend_count) {
        reader->part = DEVICES;
        reader->read = 0;
    }
    if (reader->part == DEVICES && reader->read == reader->recording->device_count)
        reader->part = ANSWERS;
}

static enum wg_code read_object(struct reader *reader, struct wg_members *members)
{
    enum wg_code code = WG_OK;
    switch (reader->part) {
    case HEADER:
        code = read_header(reader, members);
        break;
    case BACKENDS:
        code = read_backend(reader, members);
        break;
    case DEVICES:
        code = read_device(reader, members);
        break;
    case ANSWERS:
        code = json_object_get(members->object, "end") != NULL ? read_end(reader, members)
                                                               : read_answer(reader, members);
        break;
    case ENDED:
        code = wg__members_fail(members, "something behind the end of the recording");
        break;
    }
    if (code == WG_OK)
        advance(reader);
    return code;
}

static enum wg_code parse_line(struct reader *reader)
{
    struct wg_members members = {.recording = reader->recording,
                                 .file = reader->source.name,
                                 .line = reader->source.line,
                                 .where = "",
                                 .err = reader->err};
    json_error_t problem;
    json_t *object =
        json_loadb(reader->line.data, reader->line.length, JSON_REJECT_DUPLICATES, &problem);
    enum wg_code code = WG_OK;
    members.object = object;
    if (json_is_object(object))
        code = read_object(reader, &members);
    else if (object != NULL)
        code = wg__members_fail(&members, "no JSON object");
    else if (!reader->is_terminated && reader->part == ANSWERS)
        reader->recording->cut_line = members.line;
    else
        code = wg__members_fail(&members, "column %d: %s", problem.column, problem.text);
    json_decref(object);
    return code;
}

static enum wg_code check_complete(struct reader *reader)
{
    static const char *const missing[] = {"its first line is", "lines of backends are",
                                          "lines of devices are"};
    if (reader->part >= ANSWERS)
        return WG_OK;
    return wg__fail(reader->err, WG_EDATA, "%s:%zu: the file ends here, %s missing",
                    reader->source.name, reader->source.line, missing[reader->part]);
}

static enum wg_code read_all(struct reader *reader)
{
    for (;;) {
        bool has_line = false;
        enum wg_code code = read_line(reader, &has_line);
        if (code != WG_OK)
            return code;
        if (!has_line)
            return check_complete(reader);
        if (reader->line.length != 0)
            code = parse_line(reader);
        if (code != WG_OK)
            return code;
        if (reader->is_terminated)
            wg__source_skip(&reader->source);
    }
}

/* Takes over `reader->source`. */
static enum wg_code open_recording(struct wg_recording **out, struct reader *reader)
{
    struct wg_recording *recording = wg__alloc_zeroed(1, sizeof *recording);
    enum wg_code code = WG_OK;
    if (recording == NULL) {
        code = fail_memory(reader);
    } else {
        wg__arena_init(&recording->arena);
        reader->recording = recording;
        code = read_all(reader);
    }
    wg__source_close(&reader->source);
    wg__buffer_fini(&reader->line);
    if (code != WG_OK) {
        wg__recording_close(recording);
        return code;
    }
    *out = recording;
    return WG_OK;
}

enum wg_code wg__recording_open(struct wg_recording **out, const char *path, struct wg_error *err)
{
    struct reader reader = {.err = err};
    const enum wg_code code = wg__source_open(&reader.source, path, err);
    return code == WG_OK ? open_recording(out, &reader) : code;
}

enum wg_code wg__recording_open_memory(struct wg_recording **out, const char *name,
                                       const char *bytes, size_t length, struct wg_error *err)
{
    struct reader reader = {.err = err};
    const enum wg_code code = wg__source_open_memory(&reader.source, name, bytes, length, err);
    return code == WG_OK ? open_recording(out, &reader) : code;
}

void wg__recording_close(struct wg_recording *recording)
{
    if (recording == NULL)
        return;
    for (size_t i = 0; i < recording->device_count; i++)
        wg__free(recording->devices[i].answers);
    wg__free(recording->devices);
    wg__free(recording->backends);
    wg__arena_fini(&recording->arena);
    wg__free(recording);
}

const struct wg_recorded_answer *wg__recording_at(const struct wg_recording *recording,
                                                  size_t device, uint64_t t_ns)
{
    const struct wg_recorded_device *recorded = &recording->devices[device];
    if (recorded->answer_count == 0 || t_ns > recording->end_ns)
        return NULL;
    size_t low = 0; /* answers before `low` are not later than t_ns, those from `high` on are */
    size_t high = recorded->answer_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (recorded->answers[middle].sample.t_ns <= t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return &recorded->answers[low != 0 ? low - 1 : 0];
}
