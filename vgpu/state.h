/* SPDX-License-Identifier: MIT
 *
 * The virtual machine: GPUs that several processes see through one shared file.
 *
 * `wattgov-vgpu run` makes the file and names it in WATTGOV_VGPU; every process that loads our
 * libnvidia-ml.so.1 maps it. Nothing runs in the background: whoever looks first brings a GPU up to
 * date (`vgpu_advance`), under the GPU's lock, from closed forms. Power is constant between events
 * (a load that changes, a limit, a clock, a fault, the moment the die gets too hot, which follows
 * from the exponential of its temperature), and each such stretch is one segment of a ring, so that
 * energy is exact at every moment and a sensor's reading is the exact mean over its window, at its
 * last tick, whenever it is asked for.
 *
 *     true power   __/~~~\__      segments {t_ns, energy_j, power_w}
 *     sensor       ....__--~~     mean over [tick - window, tick], tick = phase + k * period
 *     counter      whole mJ of the true energy at its own last tick
 *
 * Power obeys limit and clocks: P = idle + utilization * intensity * (load - idle) * g(clock /
 * max), g(x) = x * (voltage(x))^2 with a voltage floor (physics.c). When P at the wanted clock is
 * above the enforced limit, the clock falls to the largest step that fits and the reason is "power
 * limit"; a hot die limits the power in the same way to what keeps it at its slowdown temperature.
 * The idea at length, and how to test with it: docs/internals/virtual-gpu.md.
 *
 * All times are CLOCK_MONOTONIC nanoseconds; units are SI.
 *
 * Threads and processes: each GPU has a robust process-shared mutex; a process that dies with it
 * held leaves a consistent GPU (the next one marks it so), because a segment is written before its
 * count.
 */
#ifndef WG_VGPU_STATE_H
#define WG_VGPU_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    VGPU_GPUS_MAX = 64,
    VGPU_CLOCKS_MAX = 512, /* steps of the GPU clock */
    VGPU_MEMORY_CLOCKS_MAX = 16,
    VGPU_SEGMENTS_MAX = 8192,
    VGPU_LOADS_MAX = 64,
    VGPU_CURVE_MAX = 32,
    VGPU_FAULTS_MAX = 256, /* some for each GPU */
    VGPU_MIG_MAX = 8,
    VGPU_TEXT_MAX = 96,
    VGPU_FUNCTIONS_MAX = 512, /* of the library, for the call counters */
    VGPU_AGE_S = 1000000,     /* a machine idled for once to twice as long before it was made */
};

/* How a sensor sees the true power. */
struct vgpu_sensor {
    bool is_present;
    double period_s; /* a new value this often */
    double window_s; /* mean over this long before the tick; 0: instant */
    double gain, offset_w;
};

/* What a machine file describes; constant while the machine runs. */
struct vgpu_model {
    char name[VGPU_TEXT_MAX]; /* "NVIDIA A100-SXM4-80GB" */
    char uuid[VGPU_TEXT_MAX]; /* "GPU-..." */
    char pci[32];             /* "00000000:1A:00.0" */
    uint32_t pci_device_id;   /* device << 16 | 0x10de */
    int architecture;         /* enum nvml_architecture */
    int compute_major, compute_minor;
    unsigned cores, memory_bus_bits;
    uint64_t memory_bytes;
    double idle_w, load_w;               /* load_w: at full load and the largest clock, unlimited */
    double memory_idle_w, memory_load_w; /* the part of it that the memory draws */
    double limit_min_w, limit_max_w, limit_default_w;
    double clock_idle_hz;
    double clocks_hz[VGPU_CLOCKS_MAX]; /* rising */
    size_t clock_count;
    double memory_clocks_hz[VGPU_MEMORY_CLOCKS_MAX]; /* rising */
    size_t memory_clock_count;
    double voltage_floor; /* below this share of the largest clock the voltage stays as it is */
    struct vgpu_sensor instant; /* field 186 */
    struct vgpu_sensor average; /* field 185 */
    struct vgpu_sensor usage;   /* nvmlDeviceGetPowerUsage */
    struct vgpu_sensor memory;  /* field 185 and 186 of the memory's scope */
    bool has_counter;
    double counter_period_s;
    double ambient_c, kelvin_per_watt, thermal_s, slowdown_c; /* first-order temperature */
    bool can_lock_gpu_clocks, can_lock_memory_clocks;
    bool has_module_power;
    bool is_mig;
    char mig_uuids[VGPU_MIG_MAX][VGPU_TEXT_MAX];
    char mig_profiles[VGPU_MIG_MAX][32]; /* "1g.10gb" */
    size_t mig_count;
};

/* Work on a GPU, held by one process; it ends when the process does. */
struct vgpu_load {
    uint32_t pid;       /* 0: free */
    double utilization; /* 0..1 */
    double intensity;   /* of what it does: 1 draws load_w at full utilisation */
    uint64_t memory_bytes;
    /* A measured job: power and speed by power limit. With a curve, the power of the GPU under this
     * load is utilization-weighted from it, `intensity` does not count. */
    size_t curve_count;
    double curve_limit_w[VGPU_CURVE_MAX]; /* rising */
    double curve_power_w[VGPU_CURVE_MAX];
    double curve_speed[VGPU_CURVE_MAX]; /* 1: at the largest limit */
};

struct vgpu_segment {
    uint64_t t_ns;                          /* begin */
    double energy_j;                        /* true energy at t_ns, since the machine was made */
    double power_w;                         /* from t_ns on */
    double memory_energy_j, memory_power_w; /* the memory's part of them */
};

#define VGPU_FAULTS(X)                                                                             \
    X(HANG, "hang")     /* the call blocks until the fault is cleared */                           \
    X(LOST, "lost")     /* code 15 from everything that concerns the GPU */                        \
    X(ERROR, "error")   /* code `code` */                                                          \
    X(RESET, "reset")   /* once: the energy counter restarts at 0 */                               \
    X(STUCK, "stuck")   /* the energy counter stands still */                                      \
    X(VALUE, "value")   /* the call answers OK with `value` (a sentinel, nonsense) */              \
    X(REVERT, "revert") /* once: limit and clock locks fall back, as on a driver reload */         \
    X(CAP, "cap")       /* somebody else enforces `value` watts */                                 \
    X(DELAY, "delay")   /* the call takes `value` seconds longer */                                \
    X(TEMPERATURE, "temperature") /* the die is at `value` degrees */

enum vgpu_fault_kind {
#define X(name, text) VGPU_FAULT_##name,
    VGPU_FAULTS(X)
#undef X
        VGPU_FAULT_KIND_COUNT
};

/* An old driver's interface (missing functions, other structs) is no fault but another build of the
 * library: vgpu/lib-r418 and vgpu/lib-r535 (vgpu/meson.build). */
struct vgpu_fault {
    bool is_set;
    enum vgpu_fault_kind kind;
    int gpu; /* -1: every GPU, and calls that concern none */
    /* "": every function. "nvmlDeviceGetFieldValues:186" acts on one field of that call. */
    char function[VGPU_TEXT_MAX];
    uint64_t from_call; /* acts from this call of that function on (1: the next) */
    uint64_t calls;     /* and for so many; 0: until cleared */
    int code;
    double value;
    /* Filled in by vgpu_fault_add: */
    uint64_t id;     /* of this fault, ever */
    uint64_t seen;   /* calls that it was compared with */
    bool is_applied; /* kinds that change the GPU: it was done */
};

struct vgpu_gpu {
    struct vgpu_model model;
    pthread_mutex_t lock;
    double limit_w;                                /* that was asked for */
    double external_limit_w;                       /* from elsewhere; INFINITY: none */
    double lock_min_hz, lock_max_hz;               /* 0: not locked */
    double memory_lock_min_hz, memory_lock_max_hz; /* 0: not locked */
    bool is_persistent;
    bool is_suspended;
    double clock_hz, memory_clock_hz; /* now */
    double power_w, memory_power_w;   /* now */
    double utilization;               /* now, of all loads together: 0..1 */
    double temperature_c;
    double forced_temperature_c; /* by a fault; NAN: none */
    bool is_hot;                 /* the power is limited to what the die can lose */
    double throttled_power_s;
    double throttled_thermal_s, throttled_hw_thermal_s; /* by software; by a forced temperature */
    uint32_t reasons;                                   /* enum nvml_clock_reason */
    uint64_t t_ns;                                      /* brought up to date to here */
    double energy_j;
    double memory_energy_j;
    double counter_base_j; /* true energy at which the counter was 0; below 0: before the making */
    bool is_counter_stuck;
    uint64_t stuck_mj;
    uint64_t reaped_ns;     /* when the loads' processes were last looked for */
    uint64_t phase_ns;      /* of the sensors' ticks */
    uint64_t segment_count; /* ever written; the ring holds the last VGPU_SEGMENTS_MAX */
    struct vgpu_segment segments[VGPU_SEGMENTS_MAX];
    struct vgpu_load loads[VGPU_LOADS_MAX];
    atomic_uint_fast64_t calls[VGPU_FUNCTIONS_MAX]; /* of each library function on this GPU */
};

struct vgpu_machine {
    char magic[16];         /* "wattgov-vgpu 2" */
    size_t size;            /* of the file */
    char id[VGPU_TEXT_MAX]; /* "8xh100" */
    char driver[VGPU_TEXT_MAX], nvml_version[VGPU_TEXT_MAX];
    int cuda_version; /* 12040 */
    bool anyone_may_set;
    uint64_t created_ns;
    size_t gpu_count;
    pthread_mutex_t fault_lock;
    atomic_uint fault_generation; /* changes with each change of the faults */
    atomic_uint fault_count;      /* that are set: most calls need not look further */
    uint64_t fault_id;            /* of the last fault */
    struct vgpu_fault faults[VGPU_FAULTS_MAX];
    atomic_int init_count; /* processes' nvmlInit less nvmlShutdown, of all processes */
    atomic_uint_fast64_t calls[VGPU_FUNCTIONS_MAX]; /* of functions that concern no GPU */
    struct vgpu_gpu gpus[VGPU_GPUS_MAX]; /* the file ends behind the last one that there is */
};

/* Maps the file for reading and writing; the machine stays mapped until `vgpu_unmap`. The first
 * makes it anew from `models` (a file of that name is unlinked, so that whoever has it mapped keeps
 * the old machine), for its owner alone (mode 0600). WG_EDATA: not such a file, or of another
 * version of wattgov. */
enum wg_code vgpu_create(struct vgpu_machine **out, const char *path, const char *id,
                         const struct vgpu_model *models, size_t count, struct wg_error *err);
enum wg_code vgpu_map(struct vgpu_machine **out, const char *path, struct wg_error *err);
/* The one that WATTGOV_VGPU names; WG_ENOENT when it is unset. */
enum wg_code vgpu_map_from_environment(struct vgpu_machine **out, struct wg_error *err);
void vgpu_unmap(struct vgpu_machine *machine);

/* Brings a GPU up to `t_ns` (never back). The caller holds the lock, which `vgpu_lock` takes. */
void vgpu_lock(struct vgpu_gpu *gpu);
void vgpu_unlock(struct vgpu_gpu *gpu);
void vgpu_advance(struct vgpu_gpu *gpu, uint64_t t_ns);
/* After a change of loads or settings by hand: the new working point, from gpu->t_ns on. Locked. */
void vgpu_settle(struct vgpu_gpu *gpu);

/* True energy since the machine was made, at a moment that is still in the ring (the recent
 * seconds) or later; what tests and bench compare with. Locks and advances. */
double vgpu_true_energy_j(struct vgpu_gpu *gpu, uint64_t t_ns);

/* What the meters show at `t_ns`. Locked and advanced. */
double vgpu_sensor_w(const struct vgpu_gpu *gpu, const struct vgpu_sensor *sensor, uint64_t t_ns);
uint64_t vgpu_counter_mj(const struct vgpu_gpu *gpu, uint64_t t_ns);

/* Sets, changes or (utilization 0, memory 0) ends this process's load on a GPU, from now on. Locks.
 * WG_ESTATE: no room for one more. The pid of `load` is filled in. */
enum wg_code vgpu_set_load(struct vgpu_gpu *gpu, const struct vgpu_load *load,
                           struct wg_error *err);
/* The same without lock and clock: from gpu->t_ns on, for the process load->pid. Tests that move
 * time by hand use it. */
enum wg_code vgpu_put_load(struct vgpu_gpu *gpu, const struct vgpu_load *load,
                           struct wg_error *err);

/* The enforced limit in watts, and how fast work runs now: 1 at the largest limit and clock.
 * Locked. */
double vgpu_enforced_limit_w(const struct vgpu_gpu *gpu);
double vgpu_speed(const struct vgpu_gpu *gpu, const struct vgpu_load *load);

/* Settings, as NVML's calls make them, from now on. Locked and advanced by the callee. */
void vgpu_set_limit(struct vgpu_gpu *gpu, double limit_w);
void vgpu_set_clock_lock(struct vgpu_gpu *gpu, double min_hz, double max_hz); /* 0, 0: unlock */
void vgpu_set_memory_clock_lock(struct vgpu_gpu *gpu, double min_hz, double max_hz);

/* physics.c, pure: the power at a clock, and the largest clock step whose power fits a limit (the
 * smallest step when none does). */
double vgpu_power_w(const struct vgpu_model *model, double clock_hz, double utilization,
                    double intensity);
double vgpu_clock_for_limit(const struct vgpu_model *model, double limit_w, double utilization,
                            double intensity);

/* What a load does to a GPU: its power at full utilisation and how fast it runs, with the enforced
 * limit `limit_w` and a clock of at most `clock_max_hz`. */
struct vgpu_point {
    double clock_hz, power_w, speed;
};
void vgpu_curve_point(struct vgpu_point *out, const struct vgpu_model *model,
                      const struct vgpu_load *load, double limit_w, double clock_max_hz);
/* The supported step that is nearest to `hz`; of `count` rising steps. */
double vgpu_nearest_step(const double *steps_hz, size_t count, double hz);

/* fault.c: adds, clears all, looks up. Kinds that change the GPU (RESET, STUCK, REVERT, CAP,
 * TEMPERATURE) act at once when `from_call` is 0 or 1, else at that call; clearing lifts CAP, STUCK
 * and TEMPERATURE. WG_EINVAL: no such GPU; WG_ESTATE: no room for one more. */
enum wg_code vgpu_fault_add(struct vgpu_machine *machine, const struct vgpu_fault *fault,
                            struct wg_error *err);
/* Only whether there is such a kind and GPU. */
enum wg_code vgpu_fault_check(const struct vgpu_machine *machine, const struct vgpu_fault *fault,
                              struct wg_error *err);
void vgpu_fault_clear(struct vgpu_machine *machine);
/* Whether a fault acts on this call of `function_name` on `gpu` (-1: none), copied to `out`. Each
 * look counts as a call for the faults' from_call. */
bool vgpu_fault_find(struct vgpu_machine *machine, int gpu, const char *function_name,
                     struct vgpu_fault *out);
/* Waits until the fault with this id is cleared; holds no lock. */
void vgpu_fault_wait(struct vgpu_machine *machine, uint64_t id);

/* How often `function` was called on a GPU (-1: the calls that concern none), by all processes; a
 * name that the library has not gives 0. */
uint64_t vgpu_calls(const struct vgpu_machine *machine, int gpu, const char *function);
/* Names of the library's functions, by their number in `calls`; NULL beyond the last. */
const char *vgpu_function_name(unsigned function);

#endif
