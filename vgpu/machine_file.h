/* SPDX-License-Identifier: MIT
 *
 * One machine file as YAML: its text, its keys, and where in it an error lies.
 *
 * libcyaml reads by a schema and reports unknown keys, wrong types and wrong nesting with line and
 * column; what only numbers can tell (a default limit above the largest) is checked by machine.c,
 * which asks this file where the key stands. One table of the numbers gives keys, units and ranges.
 *
 * Owns: the text and what was read from it.    Threads: any thread.
 */
#ifndef WG_VGPU_MACHINE_FILE_H
#define WG_VGPU_MACHINE_FILE_H

#include "vgpu/state.h"

/* The numbers of a GPU: key, member of struct vgpu_model, factor to its unit, range of the key, and
 * whether it must be given (or come from `like`). */
#define VGPU_FILE_NUMBERS(X)                                                                       \
    X(pci_device_id, pci_device_id, 1, 1, 4294967295.0, true)                                      \
    X(cores, cores, 1, 1, 1e6, true)                                                               \
    X(memory_mib, memory_bytes, 1048576, 1, 16777216, true)                                        \
    X(memory_bus_bits, memory_bus_bits, 1, 1, 65536, true)                                         \
    X(idle_w, idle_w, 1, 0.1, 10000, true)                                                         \
    X(load_w, load_w, 1, 0.1, 10000, true)                                                         \
    X(memory_idle_w, memory_idle_w, 1, 0, 10000, false)                                            \
    X(memory_load_w, memory_load_w, 1, 0, 10000, false)                                            \
    X(limit_min_w, limit_min_w, 1, 1, 10000, true)                                                 \
    X(limit_default_w, limit_default_w, 1, 1, 10000, true)                                         \
    X(limit_max_w, limit_max_w, 1, 1, 10000, true)                                                 \
    X(clock_idle_mhz, clock_idle_hz, 1e6, 1, 10000, true)                                          \
    X(voltage_floor, voltage_floor, 1, 0.01, 1, true)                                              \
    X(ambient_c, ambient_c, 1, 1, 60, true)                                                        \
    X(kelvin_per_watt, kelvin_per_watt, 1, 0.001, 10, true)                                        \
    X(thermal_s, thermal_s, 1, 0.1, 3600, true)                                                    \
    X(slowdown_c, slowdown_c, 1, 50, 150, true)                                                    \
    X(counter_period_ms, counter_period_s, 1e-3, 0, 10000, false)

#define VGPU_FILE_SWITCHES(X) X(can_lock_gpu_clocks) X(can_lock_memory_clocks) X(has_module_power)

#define VGPU_FILE_SENSORS(X) X(instant) X(average) X(usage) X(memory)

struct vgpu_file_sensor {
    double *period_ms, *window_ms, *gain, *offset_w;
};

struct vgpu_file_mig {
    char *profile, *uuid;
};

/* What was not written is NULL. */
struct vgpu_file_gpu {
    char *like;
    unsigned *count;
    char *name, *uuid, *pci_address, *architecture, *compute_capability;
#define X(key, member, factor, min, max, required) double *key;
    VGPU_FILE_NUMBERS(X)
#undef X
#define X(key) bool *key;
    VGPU_FILE_SWITCHES(X)
#undef X
#define X(key) struct vgpu_file_sensor *key;
    VGPU_FILE_SENSORS(X)
#undef X
    double *clock_min_mhz, *clock_max_mhz, *clock_step_mhz;
    double *clocks_mhz;
    unsigned clocks_mhz_count;
    double *memory_clocks_mhz;
    unsigned memory_clocks_mhz_count;
    struct vgpu_file_mig *mig;
    unsigned mig_count;
};

struct vgpu_file_machine {
    char *id, *driver, *nvml_version;
    double *cuda_version;
    bool *anyone_may_set;
    struct vgpu_file_gpu *gpus;
    unsigned gpus_count;
};

struct vgpu_file {
    const char *path; /* the caller's */
    char *text;
    size_t length;
    struct vgpu_file_machine *machine;
};

/* Reads and parses. WG_EDATA: "PATH:LINE:COLUMN: ..."; WG_ENOENT and others: the file itself. */
enum wg_code vgpu_file_read(struct vgpu_file *out, const char *path, struct wg_error *err);
/* The same of a text, which is copied; `name` stands for the path in messages. */
enum wg_code vgpu_file_parse(struct vgpu_file *out, const char *name, const char *text,
                             size_t length, struct wg_error *err);
void vgpu_file_free(struct vgpu_file *file);

/* The error for a key of the `gpu`th GPU (SIZE_MAX: of the machine): "PATH:LINE:COLUMN: gpus[0]:
 * KEY: ...". Returns WG_EDATA. */
enum wg_code vgpu_file_reject(const struct vgpu_file *file, size_t gpu, const char *key,
                              struct wg_error *err, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
