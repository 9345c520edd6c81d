/* SPDX-License-Identifier: MIT
 *
 * How the functions of our libnvidia-ml.so.1 begin: the checks and faults that all have in common.
 *
 * Each of them is
 *
 *     struct vgpu_call call;
 *     const int code = vgpu_call_begin(&call, VGPU_FN_..., device);
 *     if (code != NVML_OK)
 *         return code;
 *     ... check the arguments ...
 *     vgpu_call_enter(&call);          the GPU's lock; time is call.t_ns
 *     vgpu_put_uint(&call, out, ...);  or a fault's value instead
 *     vgpu_call_leave(&call);
 *
 * Threads: any thread.
 */
#ifndef WG_VGPU_NVML_LIBRARY_H
#define WG_VGPU_NVML_LIBRARY_H

#include "device/nvml_abi.h"
#include "vgpu/nvml_functions.h"
#include "vgpu/state.h"

#define VGPU_API __attribute__((visibility("default")))

/* Begins the definition of a function of NVML. */
#define VGPU_NVML(name, ...)                                                                       \
    VGPU_API int name(__VA_ARGS__);                                                                \
    int name(__VA_ARGS__)

/* The driver branch that this build of the library stands for (vgpu/meson.build). */
#ifndef VGPU_DRIVER
#define VGPU_DRIVER 580
#endif

struct vgpu_call {
    struct vgpu_machine *machine;
    struct vgpu_gpu *gpu; /* NULL: the call concerns none */
    int gpu_index;        /* -1: none */
    int mig_index;        /* -1: the whole GPU */
    uint64_t t_ns;
    bool has_value; /* a fault answers with `value` in place of each number */
    double value;
};

/* Counts the call, acts on faults; NVML_OK: go on. A handle of a MIG device is "not supported"
 * here; the second takes both kinds. */
int vgpu_call_begin(struct vgpu_call *call, enum vgpu_function function, nvml_device device);
int vgpu_call_begin_any(struct vgpu_call *call, enum vgpu_function function, nvml_device device);
/* For a call that concerns no GPU (index -1), or finds it by something else than its handle. */
int vgpu_call_begin_at(struct vgpu_call *call, enum vgpu_function function, int gpu_index);
/* The machine, while the library is initialized; else NULL. */
struct vgpu_machine *vgpu_current(void);
/* Faults that name a part of the call, as "nvmlDeviceGetFieldValues:186". */
int vgpu_call_part(struct vgpu_call *call, const char *name);

void vgpu_call_enter(struct vgpu_call *call);
void vgpu_call_leave(struct vgpu_call *call);

/* The handle of a GPU (mig_index -1) or MIG device, and back; false: no such handle. */
nvml_device vgpu_handle(int gpu_index, int mig_index);
bool vgpu_handle_find(const struct vgpu_machine *machine, nvml_device device, int *gpu_index,
                      int *mig_index);

/* Answers: the number, or what a fault says. Rounded to whole units; `milli` of watts. */
void vgpu_put_uint(const struct vgpu_call *call, unsigned *out, double value);
void vgpu_put_ull(const struct vgpu_call *call, unsigned long long *out, double value);
void vgpu_put_u64(const struct vgpu_call *call, unsigned long long *out, uint64_t value);
/* NVML_OK, NVML_E_INVALID_ARGUMENT or NVML_E_INSUFFICIENT_SIZE. */
int vgpu_put_text(char *out, unsigned size, const char *text);
/* The calls with a buffer and its count: whether `count` entries fit, and how many there are. */
int vgpu_put_count(unsigned *count, const void *buffer, size_t needed);

/* Whether this process may change settings. */
bool vgpu_may_set(const struct vgpu_call *call);

/* Rests for so long, signals or not; holds no lock. */
void vgpu_rest(double seconds);

/* Microseconds since 1970, as NVML's timestamps. */
uint64_t vgpu_wall_us(void);

#endif
