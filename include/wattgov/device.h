/* SPDX-License-Identifier: MIT
 *
 * Devices: what can be measured and set on a machine, and for what is missing, why.
 *
 *     struct wg_machine *machine;
 *     struct wg_error err;
 *     if (wg_machine_open(&machine, NULL, &err) != WG_OK)
 *         return fprintf(stderr, "%s\n", err.text), 1;
 *     for (size_t i = 0; i < wg_machine_device_count(machine); i++)
 *         puts(wg_device_get_info(wg_machine_device(machine, i))->name);
 *     wg_machine_close(machine);
 *
 * A device is a GPU, a CPU package, a memory domain or a power rail. It has meters (power, energy,
 * clocks, ...) and knobs (limits and clocks). Units are SI and stand in the names; shares are 0..1.
 * Every driver call runs on a thread of its own with a deadline: a hung GPU costs its own answers,
 * never the caller's thread. Texts and infos live as long as their machine.
 *
 * Threads: a machine is opened and closed by one thread; the getters are safe from any thread.
 */
#ifndef WATTGOV_DEVICE_H
#define WATTGOV_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wattgov/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wg_machine;
struct wg_device;

#define WG_DEVICE_KINDS(X)                                                                         \
    X(GPU, "gpu")                                                                                  \
    X(CPU, "cpu")   /* a package */                                                                \
    X(DRAM, "dram") /* the memory of a package */                                                  \
    X(RAIL, "rail") /* a supply of a board: a whole module, or one part of it */

enum wg_device_kind {
#define X(name, text) WG_DEVICE_##name,
    WG_DEVICE_KINDS(X)
#undef X
        WG_DEVICE_KIND_COUNT
};

/* What a device may report. COUNTER: grows; GAUGE: the value now.
 *      enumerator          key in JSON and CSV     kind     help */
#define WG_METRICS(X)                                                                              \
    X(POWER_W, "power_w", GAUGE, "power, over the sensor's shortest window")                       \
    X(POWER_AVERAGE_W, "power_average_w", GAUGE, "power, averaged by the driver")                  \
    X(MEMORY_POWER_W, "memory_power_w", GAUGE, "the part of the power that the memory draws")      \
    X(MODULE_POWER_W, "module_power_w", GAUGE, "power of the module: GPU and CPU together")        \
    X(ENERGY_J, "energy_j", COUNTER, "energy since the driver was loaded")                         \
    X(CLOCK_HZ, "clock_hz", GAUGE, "core clock")                                                   \
    X(MEMORY_CLOCK_HZ, "memory_clock_hz", GAUGE, "memory clock")                                   \
    X(TEMPERATURE_C, "temperature_c", GAUGE, "temperature of the die")                             \
    X(UTILIZATION, "utilization", GAUGE, "share of time with work on the device")                  \
    X(MEMORY_UTILIZATION, "memory_utilization", GAUGE, "share of time with memory traffic")        \
    X(MEMORY_USED_BYTES, "memory_used_bytes", GAUGE, "memory in use")                              \
    X(POWER_LIMIT_W, "power_limit_w", GAUGE, "power limit that was asked for")                     \
    X(ENFORCED_POWER_LIMIT_W, "enforced_power_limit_w", GAUGE, "power limit that holds")           \
    X(THROTTLED_POWER_S, "throttled_power_s", COUNTER, "time slowed down by a power limit")        \
    X(THROTTLED_THERMAL_S, "throttled_thermal_s", COUNTER, "time slowed down by temperature")

enum wg_metric {
#define X(name, key, kind, help) WG_METRIC_##name,
    WG_METRICS(X)
#undef X
        WG_METRIC_COUNT
};

/* Why the clock is below what it could be; bits of wg_sample.throttle. */
#define WG_THROTTLES(X)                                                                            \
    X(IDLE, 0, "idle")                                                                             \
    X(CLOCK_SETTING, 1, "clock setting") /* locked or application clocks */                        \
    X(POWER_LIMIT, 2, "power limit")                                                               \
    X(HARDWARE, 3, "hardware slowdown")                                                            \
    X(SYNC_BOOST, 4, "sync boost")                                                                 \
    X(THERMAL, 5, "temperature")                                                                   \
    X(HARDWARE_THERMAL, 6, "temperature (hardware)")                                               \
    X(POWER_BRAKE, 7, "power brake")                                                               \
    X(DISPLAY, 8, "display clock")

enum wg_throttle {
#define X(name, bit, text) WG_THROTTLE_##name = 1u << (bit),
    WG_THROTTLES(X)
#undef X
};

#define WG_KNOBS(X)                                                                                \
    X(POWER_LIMIT, "power_limit", "W")                                                             \
    X(GPU_CLOCK, "gpu_clock", "Hz")       /* locked to at most this */                             \
    X(MEMORY_CLOCK, "memory_clock", "Hz") /* locked to this */                                     \
    X(CPU_CLOCK, "cpu_clock", "Hz")

enum wg_knob {
#define X(name, key, unit) WG_KNOB_##name,
    WG_KNOBS(X)
#undef X
        WG_KNOB_COUNT
};

struct wg_meter_info {
    bool is_present;
    const char *source;     /* call, field or file: "nvmlDeviceGetFieldValues(186)"; never NULL */
    double resolution;      /* smallest step of the value, in its unit; 0: unknown */
    double update_period_s; /* the value changes this often; 0: unknown or at each read */
    double averaging_window_s; /* the value is a mean over this long; 0: none or unknown */
    double wrap_s; /* a counter that goes back to 0 at its end: read less often than this, a step
                      may be lost, and then the sample lacks the value once; 0: does not wrap */
    const char *why_not; /* absent: the reason, with call and code; else NULL */
    const char *remedy;  /* absent: what to do (package, permission, group); may be NULL */
};

struct wg_knob_info {
    bool is_present;
    bool is_writable; /* by this process, as far as can be told without writing */
    double min, max, step;
    double preset;        /* what the device starts with; NAN: unknown */
    double current;       /* what was asked for; NAN: unknown (locked clocks cannot be read back) */
    const double *levels; /* the supported values, rising; NULL: any in min .. max */
    size_t level_count;
    const char *source;  /* the call or file that sets it; never NULL */
    const char *why_not; /* absent or not writable: the reason; else NULL */
    const char *remedy;  /* what to do about it; may be NULL */
};

/* Texts are never NULL unless said so. */
struct wg_device_info {
    enum wg_device_kind kind;
    unsigned index;    /* among the devices of its kind, in the driver's order (GPUs: PCI order) */
    const char *label; /* short and unique here: "gpu0", "cpu1", "dram0", "VDD_IN" */
    const char *id;    /* lasting: UUID, else PCI address, else backend and name */
    const char *name;  /* "NVIDIA A100-SXM4-80GB" */
    const char *backend;      /* "nvml", "amdgpu", "intel", "jetson", "rapl", "replay" */
    const char *uuid;         /* NULL: none */
    const char *pci;          /* "0000:1a:00.0"; NULL: none */
    const char *driver;       /* version; NULL: unknown */
    const char *architecture; /* "hopper"; NULL: unknown */
    unsigned numa_node;       /* UINT_MAX: unknown */
    uint64_t memory_bytes;    /* 0: unknown */
    bool counts_in_total; /* false: a part of another device here, adding it would count twice */
    bool is_mig;          /* split into instances; power and energy are the whole GPU's */
    bool is_persistent;   /* NVIDIA persistence mode: the driver stays loaded when idle */
    const char *const *mig_uuids; /* of its instances */
    size_t mig_count;
    enum wg_code state; /* WG_OK; else why it gives nothing: WG_ELOST, WG_ETIMEOUT, WG_EPERM.. */
    const char *state_text; /* state != WG_OK: device, call and code; else NULL */
    struct wg_meter_info meters[WG_METRIC_COUNT];
    struct wg_knob_info knobs[WG_KNOB_COUNT];
};

/* One look at a device. values[i] means something only where bit i of `present` is set. */
struct wg_sample {
    uint64_t t_ns;    /* CLOCK_MONOTONIC, the middle of the call that read power and energy */
    uint64_t span_ns; /* how long that call took: the moment is known to +- half of it */
    uint32_t present; /* bit i: metric i was reported */
    bool has_throttle;
    uint32_t throttle; /* bits of enum wg_throttle */
    double values[WG_METRIC_COUNT];
};

struct wg_process {
    uint32_t pid;
    uint64_t memory_bytes; /* UINT64_MAX: unknown */
};

/* What became of a backend: why there are no NVIDIA GPUs, say. */
struct wg_backend_info {
    const char *name;
    enum wg_code state; /* WG_OK; WG_ENODEV: nothing of its kind here; else it failed */
    const char *text;   /* one line; never NULL */
    const char *remedy; /* what to do; may be NULL */
    size_t device_count;
};

struct wg_machine_opts {
    size_t size;        /* sizeof(struct wg_machine_opts): lets old callers meet new libraries */
    const char *root;   /* folder that holds sys/, proc/ and dev/; NULL: "/" */
    const char *device; /* "replay:FILE"; NULL: this machine */
    /* Which GPUs: "all", "none", "0", "0,2-3", a UUID or its unique beginning, a PCI address, a MIG
     * UUID (means its GPU), "cuda:0" (index as CUDA counts). None given: what CUDA_VISIBLE_DEVICES
     * lets through when it is set, else all. GPUs that are not chosen are never touched. CPUs,
     * memory and rails are always there, unless `gpus_only`. */
    const char *const *gpus;
    size_t gpu_count;
    bool gpus_only;
    unsigned call_timeout_ms; /* a call that takes longer counts as hung; 0: 5000 */
};
#define WG_MACHINE_OPTS(...)                                                                       \
    ((struct wg_machine_opts){.size = sizeof(struct wg_machine_opts), __VA_ARGS__})

/* Finds the devices. A machine without any is a success with no devices: wg_machine_backend tells
 * why. WG_EINVAL: a selector is malformed or fits no GPU, or more than one; WG_EDATA, WG_ENOENT: of
 * a recording; WG_ENOMEM. No reference to `opts` (may be NULL) or its texts is kept. */
WG_API enum wg_code wg_machine_open(struct wg_machine **out, const struct wg_machine_opts *opts,
                                    struct wg_error *err);

/* Closes all handles and frees everything but what a hung call still holds, until it returns.
 * NULL does nothing. Close meters first. */
WG_API void wg_machine_close(struct wg_machine *machine);

WG_API size_t wg_machine_device_count(const struct wg_machine *machine);
WG_API struct wg_device *wg_machine_device(const struct wg_machine *machine, size_t position);
WG_API size_t wg_machine_backend_count(const struct wg_machine *machine);
WG_API const struct wg_backend_info *wg_machine_backend(const struct wg_machine *machine,
                                                        size_t position);

/* Closes every handle to the drivers, so that a GPU can be reset (WG_ETIMEOUT: but of these, whose
 * calls hang); reads answer WG_ESTATE until `resume`, which finds the devices again by their ids
 * (WG_ELOST: but not these; the machine goes on without them). A running meter notes the gap. */
WG_API enum wg_code wg_machine_quiesce(struct wg_machine *machine, struct wg_error *err);
WG_API enum wg_code wg_machine_resume(struct wg_machine *machine, struct wg_error *err);

/* Why there is no energy: a line for each device that has neither an energy nor a power meter, and,
 * when no device has one, for each backend that found nothing, with what to do about it. Writes at
 * most `size` bytes, ended by a zero; returns the length of the whole, 0 when nothing is missing.
 */
WG_API size_t wg_machine_explain(const struct wg_machine *machine, char *out, size_t size);

WG_API const struct wg_device_info *wg_device_get_info(const struct wg_device *device);

/* Reads the metrics whose bits are in `wanted` (UINT32_MAX: all that it has), within the machine's
 * call timeout. What the device does not have, or could not tell this time, is not `present`.
 * WG_ELOST, WG_ETIMEOUT, WG_EPERM, WG_EIO when nothing at all could be read: the text names device,
 * call and code. */
WG_API enum wg_code wg_device_read(struct wg_device *device, uint32_t wanted, struct wg_sample *out,
                                   struct wg_error *err);

/* The processes on a GPU: a slow call (milliseconds), only on request. Writes at most `capacity`,
 * sets `*count_out` to how many there are. An idle GPU has none: WG_OK and 0. */
WG_API enum wg_code wg_device_read_processes(struct wg_device *device, struct wg_process *out,
                                             size_t capacity, size_t *count_out,
                                             struct wg_error *err);

/* The key of a metric or knob ("power_w"), its unit, a throttle bit's words; NULL: no such. */
WG_API const char *wg_metric_key(enum wg_metric metric);
WG_API bool wg_metric_is_counter(enum wg_metric metric);
WG_API const char *wg_knob_key(enum wg_knob knob);
WG_API const char *wg_knob_unit(enum wg_knob knob);
WG_API const char *wg_device_kind_key(enum wg_device_kind kind);
WG_API const char *wg_throttle_text(enum wg_throttle bit);

#ifdef __cplusplus
}
#endif

#endif
