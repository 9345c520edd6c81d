/* SPDX-License-Identifier: MIT
 *
 * Recordings: what a machine's devices are and what they answered, kept in a file.
 *
 * A recording is text, one JSON object a line, so that it can be read while it grows, cut where a
 * machine died, diffed and mended by hand. The reader takes it gzipped too.
 *
 *     {"schema":"wattgov.machine/1","wattgov":"0.1.0","backend_count":1,"device_count":2}
 *     {"backend":"nvml","state":"WG_OK","text":"2 devices","remedy":null,"device_count":2}
 *     {"device":0,"kind":"gpu","label":"gpu0","id":"GPU-...", ..., "meters":{...},"knobs":{...}}
 *     {"device":1, ...}
 *     {"device":0,"t_s":0.101,"span_s":2e-05,"metrics":{"power_w":97.4,...},"throttle":["idle"]}
 *     {"device":1,"t_s":0.101,"error":"WG_ELOST","text":"gpu1: nvmlDeviceGetFieldValues: ..."}
 *     {"end":true,"t_s":12.5}
 *
 * Times are seconds since the recording began, by CLOCK_MONOTONIC. Units are SI and stand in the
 * keys. The last line is there when the recording was closed; without it, it ends with its last
 * answer. Format and rules: docs/internals/devices.md.
 *
 * Owns: a recorder its file, a recording its memory.    Threads: one thread at a time per object.
 */
#ifndef WG_DEVICE_RECORDING_H
#define WG_DEVICE_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "wattgov/device.h"

#define WG_RECORDING_SCHEMA "wattgov.machine/1"

enum {
    WG_RECORDING_DEVICES_MAX = 4096,
    WG_RECORDING_BACKENDS_MAX = 64,
    WG_RECORDING_ANSWERS_MAX = 1 << 22, /* of all devices: 14 hours of 8 GPUs at 10 Hz */
    WG_RECORDING_LINE_MAX = 1 << 20
};

/* -- Writing ---------------------------------------------------------------------------------- */

struct wg_recorder;

/* Makes the file, or empties it, and writes the lines that describe `machine`. `start_ns`
 * (CLOCK_MONOTONIC) is second 0 of the recording; answers are not older. No reference to the
 * machine or the path's text is kept. Each line reaches the kernel in one write, before the call
 * returns, so a reader or a crash finds whole lines. WG_ENOENT, WG_EPERM, WG_EIO; WG_ENOMEM. */
enum wg_code wg__recorder_open(struct wg_recorder **out, const char *path,
                               const struct wg_machine *machine, uint64_t start_ns,
                               struct wg_error *err);

/* Adds what a device answered: its sample, or (`failure` not NULL) the error at `t_ns` instead.
 * `device` is its position in the machine. Per device, times must not go back: an answer that is
 * not newer than the last one written is skipped without an error. After a failed write (WG_EIO)
 * all later ones fail. */
enum wg_code wg__recorder_add_sample(struct wg_recorder *recorder, size_t device,
                                     const struct wg_sample *sample, struct wg_error *err);
enum wg_code wg__recorder_add_error(struct wg_recorder *recorder, size_t device, uint64_t t_ns,
                                    const struct wg_error *failure, struct wg_error *err);

/* Ends the recording at `end_ns`, closes the file and frees. WG_EIO: not everything was written.
 * NULL does nothing. */
enum wg_code wg__recorder_close(struct wg_recorder *recorder, uint64_t end_ns,
                                struct wg_error *err);

/* What a device is, as members of an open JSON object: label to mig_uuids. `wattgov devices --json`
 * has them under the same names. */
void wg__device_identity_write(struct wg_json *json, const struct wg_device_info *info);

/* All of a device's info as members of an open JSON object: what a recording's device line holds.
 */
void wg__device_info_write(struct wg_json *json, const struct wg_device_info *info);
/* A sample likewise: "span_s", "metrics", "throttle". */
void wg__sample_write(struct wg_json *json, const struct wg_sample *sample);

/* -- Reading ---------------------------------------------------------------------------------- */

/* What a device answered at one moment. */
struct wg_recorded_answer {
    struct wg_sample sample; /* t_ns: since the recording began, also of an error */
    enum wg_code code;       /* WG_OK: a sample */
    const char *text;        /* of an error; else NULL */
};

struct wg_recorded_device {
    struct wg_device_info info;
    struct wg_recorded_answer *answers; /* times never go back */
    size_t answer_count;
    size_t answer_capacity;
};

struct wg_recording {
    struct wg_backend_info *backends;
    size_t backend_count;
    struct wg_recorded_device *devices;
    size_t device_count;
    size_t answer_count; /* of all devices */
    uint64_t end_ns;     /* since it began */
    const char *version; /* of the wattgov that wrote it */
    bool is_closed;      /* the last line says so; else whoever recorded was stopped */
    size_t cut_line;     /* 0, or the number of a last line that is torn and was left out */
    size_t unknown_keys; /* metrics and throttle words that this version does not know, left out */
    struct wg_arena arena;
};

/* Reads and checks a whole recording. WG_ENOENT, WG_EPERM, WG_EIO; WG_EDATA: "file:line: ..." says
 * what is wrong where; WG_ENOMEM. */
enum wg_code wg__recording_open(struct wg_recording **out, const char *path, struct wg_error *err);
enum wg_code wg__recording_open_memory(struct wg_recording **out, const char *name,
                                       const char *bytes, size_t length, struct wg_error *err);
void wg__recording_close(struct wg_recording *recording);

/* What the device answers at `t_ns` since the recording began: the last answer that is not later;
 * before the first one, the first. NULL: it has none, or the recording has ended by then. */
const struct wg_recorded_answer *wg__recording_at(const struct wg_recording *recording,
                                                  size_t device, uint64_t t_ns);

#endif
