/* SPDX-License-Identifier: MIT
 *
 * What a vendor's file implements, and what machine.c makes of it.
 *
 * A backend lists what it finds (`open`), cheaply and touching no device that was not chosen, and
 * hands each device over as a `struct wg_device` that it embeds as the first member of its own
 * struct. machine.c then probes each device on a thread with a deadline, so one dead GPU costs its
 * own answers only. All calls into one device come from one thread at a time; calls into different
 * devices come from different threads at once.
 *
 * Life of a device:
 *
 *     open -> probe -> read, read, ... -> release -> (reopen -> read ...) -> destroy
 *
 * `probe` fills info.meters and info.knobs, once: it finds out by real reads what the device has.
 * Each meter and knob that is absent gets `why_not` (call and code, or file and cause) and, where
 * something can be done, `remedy`. Before each call that may block, a backend stores the call's
 * name in `device->call`, and NULL after it; the watchdog's message names it.
 *
 * Messages of a device need not name it: machine.c puts its label in front ("gpu2: ...").
 *
 * `device->info` is the backend's own copy, written by open and probe. Others see the copy of it
 * that machine.c makes after the probe (wg_device_get_info), because a probe that hangs may write
 * to it at any later moment.
 *
 * A hung call may never return: a device whose call was abandoned stays allocated until it does
 * (it is in use by the thread that hangs); with luck it then works again.
 */
#ifndef WG_DEVICE_BACKEND_H
#define WG_DEVICE_BACKEND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "device/sample.h" // IWYU pragma: export
#include "wattgov/device.h"

struct wg_selection;

/* What each backend may know of the run; all texts live as long as the machine. */
struct wg_backend_config {
    const char *root; /* "" for "/", else a folder without the last slash: root + "/sys/..." */
    const char *replay_path;              /* NULL: this machine */
    const struct wg_selection *selection; /* which GPUs; select.h */
    const char *nvml_library;             /* "libnvidia-ml.so.1"; tests give others */
    const char *rocm_smi_library;         /* "librocm_smi64.so" */
    /* Where `open` notes the call that runs now, as in wg_device.call; may be NULL. `open` runs
     * with a deadline too, so a hung nvmlInit_v2 is named. Valid during `open` only. */
    _Atomic(const char *) *call;
    /* The clock of a replay; NULL: CLOCK_MONOTONIC. Tests step it. */
    uint64_t (*replay_now_ns)(void *context);
    void *replay_context;
};

struct wg_device_ops {
    /* Fills `device->info` but for label, index of its kind (machine.c) and what `open` filled.
     * Texts come from `device->arena`. An error makes the device's state; it stays listed. Called
     * again after a reopen where it failed the first time. */
    enum wg_code (*probe)(struct wg_device *device, struct wg_error *err);
    /* See wg_device_read. Must not allocate. t_ns, span_ns: of the call that read power or energy,
     * else of the whole. */
    enum wg_code (*read)(struct wg_device *device, uint32_t wanted, struct wg_sample *out,
                         struct wg_error *err);
    /* NULL: this kind of device knows no processes. */
    enum wg_code (*read_processes)(struct wg_device *device, struct wg_process *out,
                                   size_t capacity, size_t *count_out, struct wg_error *err);
    /* Sets a knob that info.knobs lists as present; SI units. NAN: what the driver chooses by
     * itself (clocks unlocked, the power limit at its preset). NULL: nothing of this kind can be
     * set. */
    enum wg_code (*set)(struct wg_device *device, enum wg_knob knob, double value,
                        struct wg_error *err);
    /* What a knob that is present stands at. NAN with WG_OK: the driver does not tell (NVML's
     * locked clocks). WG_EDATA: no single number, as after a `set` that was cut off half way. */
    enum wg_code (*get)(struct wg_device *device, enum wg_knob knob, double *out,
                        struct wg_error *err);
    /* Closes handles and files; `reopen` gets them again, by id. The last release of a library's
     * devices unloads the library. NULL: holds nothing open. Called once between (re)open and
     * destroy, also where the probe failed; a reopen that fails leaves nothing open. */
    void (*release)(struct wg_device *device);
    enum wg_code (*reopen)(struct wg_device *device, struct wg_error *err);
    /* Frees the backend's struct, after release; the arena is freed before by machine.c. */
    void (*destroy)(struct wg_device *device);
};

struct wg_device {
    const struct wg_device_ops *ops;
    /* `open` sets kind, numa_node (UINT_MAX: unknown) and, as far as it knows them, id, name, uuid,
     * pci and backend, so that a device whose probe hangs can be named; `probe` the rest. */
    struct wg_device_info info;
    /* By `open`, for GPUs: the driver's number of it, which counts those that were not chosen too,
     * plus one. 0: machine.c counts. */
    unsigned driver_index_plus_1;
    struct wg_arena arena;      /* texts and arrays of `info` */
    _Atomic(const char *) call; /* the call that runs now: "nvmlDeviceGetFieldValues"; NULL: none */
    atomic_bool is_abandoned;   /* a call hung: its thread still uses this */
    struct wg_machine *machine; /* set by machine.c */
    size_t position;            /* in the machine; set by machine.c */
};

/* Where `open` puts what it found. */
struct wg_device_list {
    struct wg_device **items;
    size_t count;
    size_t capacity;
};

/* Appends; the list owns the device from then on. On WG_ENOMEM, and on WG_EDATA (more devices than
 * any machine has), the caller still does. */
enum wg_code wg__device_list_add(struct wg_device_list *list, struct wg_device *device,
                                 struct wg_error *err);

/* Releases and destroys what is still in the list, and frees it. */
void wg__device_list_fini(struct wg_device_list *list);

/* The end of a device: frees its arena and calls `destroy`. It was released. NULL does nothing. */
void wg__device_destroy(struct wg_device *device);

struct wg_backend {
    const char *name;
    /* Appends the devices; the text may say more than how many. WG_ENODEV: there is nothing of its
     * kind here (the text says what was looked for); other codes: there may be, but it failed.
     * `remedy_out` (may stay NULL) is a literal. */
    enum wg_code (*open)(const struct wg_backend_config *config, struct wg_device_list *list,
                         const char **remedy_out, struct wg_error *err);
};

/* backends.c: those of this machine in the order of their devices, and the one that stands for all
 * of them when a recording is replayed; each ended by NULL. */
extern const struct wg_backend *const wg__backends[];
extern const struct wg_backend *const wg__backends_replay[];

extern const struct wg_backend wg__backend_nvml;   /* nvml.c */
extern const struct wg_backend wg__backend_amdgpu; /* amdgpu.c */
extern const struct wg_backend wg__backend_intel;  /* intel.c */
extern const struct wg_backend wg__backend_jetson; /* jetson.c */
extern const struct wg_backend wg__backend_rapl;   /* rapl.c */
extern const struct wg_backend wg__backend_replay; /* replay.c; the only one with replay_path */

#endif
