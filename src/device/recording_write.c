/* SPDX-License-Identifier: MIT
 *
 * Writing a recording, line by line as the answers come.
 *
 * Each line is made in a buffer and handed to the kernel in one write, so a recording that is read
 * while it grows, or whose writer was killed, holds whole lines (a full disk may tear the last).
 * Nothing is kept in memory but one line: a day of samples costs no more than a second.
 *
 * Owns: see struct wg_recorder.    Threads: one thread at a time.
 */
#include "device/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "device/sample.h"
#include "wattgov/version.h"

struct wg_recorder {
    int fd;
    char *path; /* owned; for messages */
    uint64_t start_ns;
    size_t device_count;
    uint64_t *next_ns; /* owned; per device: answers before this moment are not newer */
    struct wg_buffer line;
    enum wg_code failed; /* a write failed: what follows would leave a hole */
};

/* -- Lines ------------------------------------------------------------------------------------ */

static enum wg_code write_all(const struct wg_recorder *recorder, struct wg_error *err)
{
    const char *from = recorder->line.data;
    size_t left = recorder->line.length;
    while (left != 0) {
        const ssize_t written = write(recorder->fd, from, left);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return wg__fail_errno(err, errno, "%s: cannot write", recorder->path);
        from += written;
        left -= (size_t)written;
    }
    return WG_OK;
}

static struct wg_json begin_line(struct wg_recorder *recorder)
{
    struct wg_json json;
    recorder->line.length = 0;
    recorder->line.failed = false;
    wg__json_init(&json, &recorder->line);
    wg__json_object(&json);
    return json;
}

static enum wg_code end_line(struct wg_recorder *recorder, struct wg_json *json,
                             struct wg_error *err)
{
    wg__json_close(json);
    wg__buffer_puts(&recorder->line, "\n");
    if (recorder->failed != WG_OK)
        return wg__fail(err, recorder->failed, "%s: an earlier write failed", recorder->path);
    if (recorder->line.failed)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", recorder->path);
    recorder->failed = write_all(recorder, err);
    return recorder->failed;
}

/* -- What a machine is --------------------------------------------------------------------------
 */

static void write_meter(struct wg_json *json, const struct wg_meter_info *meter)
{
    wg__json_object(json);
    wg__json_member_bool(json, "present", meter->is_present);
    wg__json_member_string(json, "source", meter->source);
    if (meter->is_present) {
        wg__json_member_double(json, "resolution", meter->resolution);
        wg__json_member_double(json, "update_period_s", meter->update_period_s);
        wg__json_member_double(json, "averaging_window_s", meter->averaging_window_s);
    } else {
        wg__json_member_string(json, "why_not", meter->why_not);
        wg__json_member_string(json, "remedy", meter->remedy);
    }
    wg__json_close(json);
}

static void write_knob(struct wg_json *json, const struct wg_knob_info *knob, const char *unit)
{
    wg__json_object(json);
    wg__json_member_bool(json, "present", knob->is_present);
    wg__json_member_bool(json, "writable", knob->is_writable);
    wg__json_member_string(json, "unit", unit);
    wg__json_member_string(json, "source", knob->source);
    if (knob->is_present) {
        wg__json_member_double(json, "min", knob->min);
        wg__json_member_double(json, "max", knob->max);
        wg__json_member_double(json, "step", knob->step);
        wg__json_member_double(json, "preset", knob->preset);
        wg__json_member_double(json, "current", knob->current);
        if (knob->levels != NULL)
            wg__json_member_doubles(json, "levels", knob->levels, knob->level_count);
    }
    wg__json_member_string(json, "why_not", knob->why_not);
    wg__json_member_string(json, "remedy", knob->remedy);
    wg__json_close(json);
}

void wg__device_identity_write(struct wg_json *json, const struct wg_device_info *info)
{
    wg__json_member_string(json, "kind", wg_device_kind_key(info->kind));
    wg__json_member_uint(json, "index", info->index);
    wg__json_member_string(json, "label", info->label);
    wg__json_member_string(json, "id", info->id);
    wg__json_member_string(json, "name", info->name);
    wg__json_member_string(json, "backend", info->backend);
    wg__json_member_string(json, "uuid", info->uuid);
    wg__json_member_string(json, "pci", info->pci);
    wg__json_member_string(json, "driver", info->driver);
    wg__json_member_string(json, "architecture", info->architecture);
    wg__json_key(json, "numa_node");
    if (info->numa_node == UINT_MAX)
        wg__json_null(json);
    else
        wg__json_uint(json, info->numa_node);
    wg__json_key(json, "memory_bytes");
    if (info->memory_bytes == 0)
        wg__json_null(json);
    else
        wg__json_uint(json, info->memory_bytes);
    wg__json_member_bool(json, "counts_in_total", info->counts_in_total);
    wg__json_member_bool(json, "is_mig", info->is_mig);
    wg__json_member_bool(json, "is_persistent", info->is_persistent);
    wg__json_key(json, "mig_uuids");
    wg__json_array(json);
    for (size_t i = 0; i < info->mig_count; i++)
        wg__json_string(json, info->mig_uuids[i]);
    wg__json_close(json);
}

void wg__device_info_write(struct wg_json *json, const struct wg_device_info *info)
{
    wg__device_identity_write(json, info);
    wg__json_member_string(json, "state", wg_code_name(info->state));
    wg__json_member_string(json, "state_text", info->state_text);
    wg__json_key(json, "meters");
    wg__json_object(json);
    for (int i = 0; i < WG_METRIC_COUNT; i++) {
        wg__json_key(json, wg_metric_key((enum wg_metric)i));
        write_meter(json, &info->meters[i]);
    }
    wg__json_close(json);
    wg__json_key(json, "knobs");
    wg__json_object(json);
    for (int i = 0; i < WG_KNOB_COUNT; i++) {
        wg__json_key(json, wg_knob_key((enum wg_knob)i));
        write_knob(json, &info->knobs[i], wg_knob_unit((enum wg_knob)i));
    }
    wg__json_close(json);
}

void wg__sample_write(struct wg_json *json, const struct wg_sample *sample)
{
    wg__json_member_double(json, "span_s", (double)sample->span_ns * 1e-9);
    wg__json_key(json, "metrics");
    wg__json_object(json);
    for (int i = 0; i < WG_METRIC_COUNT; i++) {
        if (wg__sample_has(sample, (enum wg_metric)i) && isfinite(sample->values[i]))
            wg__json_member_double(json, wg_metric_key((enum wg_metric)i), sample->values[i]);
    }
    wg__json_close(json);
    if (!sample->has_throttle)
        return;
    wg__json_key(json, "throttle");
    wg__json_array(json);
    for (unsigned bit = 0; bit < 32; bit++) {
        const char *words = wg_throttle_text((enum wg_throttle)(1U << bit));
        if ((sample->throttle >> bit & 1U) != 0 && words != NULL)
            wg__json_string(json, words);
    }
    wg__json_close(json);
}

static enum wg_code write_machine(struct wg_recorder *recorder, const struct wg_machine *machine,
                                  struct wg_error *err)
{
    const size_t backend_count = wg_machine_backend_count(machine);
    struct wg_json json = begin_line(recorder);
    wg__json_member_string(&json, "schema", WG_RECORDING_SCHEMA);
    wg__json_member_string(&json, "wattgov", wg_version());
    wg__json_member_uint(&json, "backend_count", backend_count);
    wg__json_member_uint(&json, "device_count", recorder->device_count);
    enum wg_code code = end_line(recorder, &json, err);
    for (size_t i = 0; i < backend_count && code == WG_OK; i++) {
        const struct wg_backend_info *backend = wg_machine_backend(machine, i);
        json = begin_line(recorder);
        wg__json_member_string(&json, "backend", backend->name);
        wg__json_member_string(&json, "state", wg_code_name(backend->state));
        wg__json_member_string(&json, "text", backend->text);
        wg__json_member_string(&json, "remedy", backend->remedy);
        wg__json_member_uint(&json, "device_count", backend->device_count);
        code = end_line(recorder, &json, err);
    }
    for (size_t i = 0; i < recorder->device_count && code == WG_OK; i++) {
        json = begin_line(recorder);
        wg__json_member_uint(&json, "device", i);
        wg__device_info_write(&json, wg_device_get_info(wg_machine_device(machine, i)));
        code = end_line(recorder, &json, err);
    }
    return code;
}

/* -- The recorder -------------------------------------------------------------------------------
 */

static void recorder_free(struct wg_recorder *recorder)
{
    if (recorder->fd >= 0)
        (void)close(recorder->fd);
    wg__buffer_fini(&recorder->line);
    wg__free(recorder->next_ns);
    wg__free(recorder->path);
    wg__free(recorder);
}

enum wg_code wg__recorder_open(struct wg_recorder **out, const char *path,
                               const struct wg_machine *machine, uint64_t start_ns,
                               struct wg_error *err)
{
    struct wg_recorder *recorder = wg__alloc_zeroed(1, sizeof *recorder);
    if (recorder == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", path);
    recorder->fd = -1;
    recorder->start_ns = start_ns;
    recorder->device_count = wg_machine_device_count(machine);
    recorder->path = wg__strdup(path);
    recorder->next_ns = wg__alloc_zeroed(recorder->device_count + 1, sizeof *recorder->next_ns);
    enum wg_code code = WG_OK;
    if (recorder->path == NULL || recorder->next_ns == NULL)
        code = wg__fail(err, WG_ENOMEM, "%s: out of memory", path);
    if (code == WG_OK) {
        recorder->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (recorder->fd < 0)
            code = wg__fail_errno(err, errno, "%s: cannot open for writing", path);
    }
    if (code == WG_OK)
        code = write_machine(recorder, machine, err);
    if (code != WG_OK) {
        recorder_free(recorder);
        return code;
    }
    *out = recorder;
    return WG_OK;
}

/* Seconds since the recording began. */
static double seconds(const struct wg_recorder *recorder, uint64_t t_ns)
{
    return t_ns > recorder->start_ns ? (double)(t_ns - recorder->start_ns) * 1e-9 : 0.0;
}

/* Whether an answer of that moment is newer than the last one; notes it. */
static bool is_news(struct wg_recorder *recorder, size_t device, uint64_t t_ns)
{
    if (t_ns < recorder->next_ns[device])
        return false;
    recorder->next_ns[device] = t_ns + 1;
    return true;
}

static enum wg_code fail_device(const struct wg_recorder *recorder, size_t device,
                                struct wg_error *err)
{
    return wg__fail(err, WG_EINVAL, "%s: device %zu is not in the recording, it has %zu",
                    recorder->path, device, recorder->device_count);
}

enum wg_code wg__recorder_add_sample(struct wg_recorder *recorder, size_t device,
                                     const struct wg_sample *sample, struct wg_error *err)
{
    if (device >= recorder->device_count)
        return fail_device(recorder, device, err);
    if (!is_news(recorder, device, sample->t_ns))
        return WG_OK;
    struct wg_json json = begin_line(recorder);
    wg__json_member_uint(&json, "device", device);
    wg__json_member_double(&json, "t_s", seconds(recorder, sample->t_ns));
    wg__sample_write(&json, sample);
    return end_line(recorder, &json, err);
}

enum wg_code wg__recorder_add_error(struct wg_recorder *recorder, size_t device, uint64_t t_ns,
                                    const struct wg_error *failure, struct wg_error *err)
{
    if (device >= recorder->device_count)
        return fail_device(recorder, device, err);
    if (!is_news(recorder, device, t_ns))
        return WG_OK;
    struct wg_json json = begin_line(recorder);
    wg__json_member_uint(&json, "device", device);
    wg__json_member_double(&json, "t_s", seconds(recorder, t_ns));
    wg__json_member_string(&json, "error", wg_code_name(failure->code));
    wg__json_member_string(&json, "text", failure->text);
    return end_line(recorder, &json, err);
}

enum wg_code wg__recorder_close(struct wg_recorder *recorder, uint64_t end_ns, struct wg_error *err)
{
    if (recorder == NULL)
        return WG_OK;
    for (size_t i = 0; i < recorder->device_count; i++) { /* the end is behind every answer */
        if (recorder->next_ns[i] != 0 && end_ns < recorder->next_ns[i] - 1)
            end_ns = recorder->next_ns[i] - 1;
    }
    struct wg_json json = begin_line(recorder);
    wg__json_member_bool(&json, "end", true);
    wg__json_member_double(&json, "t_s", seconds(recorder, end_ns));
    enum wg_code code = end_line(recorder, &json, err);
    const int fd = recorder->fd;
    recorder->fd = -1;
    if (close(fd) != 0 && code == WG_OK) /* where a network's file system tells of a full disk */
        code = wg__fail_errno(err, errno, "%s: cannot write", recorder->path);
    recorder_free(recorder);
    return code;
}
