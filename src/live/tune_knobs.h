/* SPDX-License-Identifier: MIT
 *
 * The knobs of a tuning: from texts and from what the devices have to the space.
 *
 *     gpu_clock                       levels chosen from those that the GPU supports
 *     gpu_clock=6                     so many of them, evenly spread
 *     gpu_clock=600MHz,900MHz         these
 *     power_limit=100W:300W:25W       from, to, step
 *     batch=1,2,4,8:batch             of the workload: NAME=LEVELS:ROLE
 *     precision=fp16,fp32:category:default=fp32:switch_s=60
 *
 * gpu_clock, mem_clock, cpu_clock and power_limit are knobs of devices: of all chosen GPUs together
 * (the CPU clock: of all processors). Every other name is the workload's. Its default is the first
 * level that is written; a device's is what it does when nobody interferes: the largest clock, the
 * limit that stands. A limit above the present one is never used: whoever lowered it had a reason.
 *
 * Combinations are forbidden by conditions: "batch>=64 && precision==fp32".
 *
 * Owns: all of it, the space too.    Threads: pure but for reading infos; any thread.
 */
#ifndef WG_LIVE_TUNE_KNOBS_H
#define WG_LIVE_TUNE_KNOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "live/workload.h"
#include "optimize/tuning_space.h"
#include "wattgov/device.h"

enum { WG_TUNE_DEVICES_MAX = 64, WG_TUNE_FORBIDS_MAX = 64, WG_TUNE_NAME_SIZE = 48 };

/* The devices that may be set: positions in the machine. */
struct wg_tune_devices {
    const struct wg_machine *machine;
    size_t gpu_count, cpu_count;
    size_t gpus[WG_TUNE_DEVICES_MAX], cpus[WG_TUNE_DEVICES_MAX];
};

struct wg_tune_knob {
    char name[WG_TUNE_NAME_SIZE];
    enum wg_tuning_role role;
    bool is_device;
    enum wg_knob device_knob; /* of is_device */
    size_t count;
    double *levels; /* rising */
    char **labels;  /* of a category; else NULL */
    size_t default_level;
    bool is_default_said; /* by default= */
    double switch_s;
    size_t device_count;
    const size_t *devices; /* in wg_tune_devices */
    double *values;        /* [level * device_count + d]: what device d is set to */
};

struct wg_tune_knobs {
    struct wg_tune_devices devices;
    size_t count;
    struct wg_tune_knob knobs[WG_TUNING_KNOBS_MAX];
    struct wg_tuning_space *space;
};

/* The machine's GPUs and processors. WG_EINVAL: too many. */
enum wg_code wg__tune_devices_find(struct wg_tune_devices *out, const struct wg_machine *machine,
                                   struct wg_error *err);

/* All knobs and the space. WG_EINVAL: a text (named, with what was expected); WG_EUNSUPPORTED: a
 * device lacks the knob, with the reason; WG_ENOMEM. */
enum wg_code wg__tune_knobs_init(struct wg_tune_knobs *out, const struct wg_tune_devices *devices,
                                 const char *const *texts, size_t count, const char *const *forbids,
                                 size_t forbid_count, struct wg_error *err);
void wg__tune_knobs_fini(struct wg_tune_knobs *knobs);

/* Another level of each knob is the default. False: no such configuration, nothing is changed. */
bool wg__tune_knobs_set_default(struct wg_tune_knobs *knobs, const size_t *levels);

/* The workload's part of a configuration, of which knob k is at levels[k]; returns how many (at
 * most WG_TUNING_KNOBS_MAX). */
size_t wg__tune_workload_settings(const struct wg_tune_knobs *knobs, const uint16_t *levels,
                                  struct wg_workload_setting *out);

/* Into an object that is open: name, role, is_device and the levels, as every file of a tuning has
 * them. */
struct wg_json;
void wg__tune_knob_write(struct wg_json *json, const struct wg_tune_knob *knob);

/* What a knob's name says of itself, where no role was told: "batch_size", "precision". */
bool wg__tune_role_of_name(const char *name, enum wg_tuning_role *out);

/* "gpu_clock" to its role and knob; false: no device's. */
bool wg__tune_device_knob(const char *name, enum wg_tuning_role *role, enum wg_knob *knob);

#endif
