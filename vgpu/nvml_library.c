/* SPDX-License-Identifier: MIT
 *
 * Our libnvidia-ml.so.1: initialisation, handles, and what every call has in common.
 *
 * The machine is mapped by the first nvmlInit and stays mapped after the last nvmlShutdown, since
 * another thread may still be inside a call; the next first nvmlInit maps anew, so that a process
 * can move to another machine. A child of fork begins uninitialised, as with the real library.
 *
 * Handles are addresses in a table of ours: one byte for each GPU and each MIG device. So a handle
 * can be checked without following it.
 *
 * Owns: the mapping.    Threads: any; init and shutdown under one mutex, calls under none.
 */
#include "vgpu/nvml_library.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    struct vgpu_machine *mapped;
    unsigned users;                         /* inits, begun ones too */
    unsigned inits;                         /* less shutdowns */
    _Atomic(struct vgpu_machine *) current; /* NULL: not initialized */
} library = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static char handles[VGPU_GPUS_MAX][1 + VGPU_MIG_MAX];

nvml_device vgpu_handle(int gpu_index, int mig_index)
{
    return (nvml_device)&handles[gpu_index][1 + mig_index];
}

bool vgpu_handle_find(const struct vgpu_machine *machine, nvml_device device, int *gpu_index,
                      int *mig_index)
{
    const uintptr_t offset = (uintptr_t)device - (uintptr_t)&handles[0][0];
    if (offset >= sizeof handles)
        return false;
    const size_t gpu = offset / sizeof handles[0];
    const size_t mig = offset % sizeof handles[0];
    if (gpu >= machine->gpu_count || mig > machine->gpus[gpu].model.mig_count)
        return false;
    *gpu_index = (int)gpu;
    *mig_index = (int)mig - 1;
    return true;
}

struct vgpu_machine *vgpu_current(void)
{
    return atomic_load_explicit(&library.current, memory_order_acquire);
}

void vgpu_rest(double seconds)
{
    const double at_most_s = fmin(fmax(seconds, 0.0), 1e9);
    struct timespec rest = {.tv_sec = (time_t)at_most_s,
                            .tv_nsec = (long)((at_most_s - floor(at_most_s)) * 1e9)};
    int interrupted;
    do {
        interrupted = nanosleep(&rest, &rest);
    } while (interrupted != 0);
}

int vgpu_call_part(struct vgpu_call *call, const char *name)
{
    struct vgpu_fault fault;
    if (!vgpu_fault_find(call->machine, call->gpu_index, name, &fault))
        return NVML_OK;
    switch (fault.kind) {
    case VGPU_FAULT_HANG:
        vgpu_fault_wait(call->machine, fault.id);
        return NVML_OK;
    case VGPU_FAULT_DELAY:
        vgpu_rest(fault.value);
        return NVML_OK;
    case VGPU_FAULT_ERROR:
        return fault.code;
    case VGPU_FAULT_VALUE:
        call->has_value = true;
        call->value = fault.value;
        return NVML_OK;
    case VGPU_FAULT_LOST: /* what concerns no GPU goes on */
        return call->gpu_index >= 0 ? NVML_E_GPU_IS_LOST : NVML_OK;
    default:
        return NVML_OK;
    }
}

static int begin_on(struct vgpu_call *call, struct vgpu_machine *machine,
                    enum vgpu_function function, int gpu_index)
{
    *call = (struct vgpu_call){.machine = machine, .gpu_index = gpu_index, .mig_index = -1};
    if (gpu_index >= 0) {
        call->gpu = &machine->gpus[gpu_index];
        atomic_fetch_add_explicit(&call->gpu->calls[function], 1, memory_order_relaxed);
        if (call->gpu->is_suspended)
            call->gpu->is_suspended = false; /* whoever asks wakes it */
    } else {
        atomic_fetch_add_explicit(&machine->calls[function], 1, memory_order_relaxed);
    }
    return vgpu_call_part(call, vgpu_function_name(function));
}

int vgpu_call_begin_at(struct vgpu_call *call, enum vgpu_function function, int gpu_index)
{
    struct vgpu_machine *machine = vgpu_current();
    if (machine == NULL)
        return NVML_E_UNINITIALIZED;
    return begin_on(call, machine, function, gpu_index);
}

int vgpu_call_begin_any(struct vgpu_call *call, enum vgpu_function function, nvml_device device)
{
    struct vgpu_machine *machine = vgpu_current();
    if (machine == NULL)
        return NVML_E_UNINITIALIZED;
    int gpu_index = -1;
    int mig_index = -1;
    if (!vgpu_handle_find(machine, device, &gpu_index, &mig_index))
        return NVML_E_INVALID_ARGUMENT;
    const int code = begin_on(call, machine, function, gpu_index);
    call->mig_index = mig_index;
    return code;
}

int vgpu_call_begin(struct vgpu_call *call, enum vgpu_function function, nvml_device device)
{
    const int code = vgpu_call_begin_any(call, function, device);
    return code == NVML_OK && call->mig_index >= 0 ? NVML_E_NOT_SUPPORTED : code;
}

void vgpu_call_enter(struct vgpu_call *call)
{
    vgpu_lock(call->gpu);
    call->t_ns = wg__clock_ns();
    vgpu_advance(call->gpu, call->t_ns);
}

void vgpu_call_leave(struct vgpu_call *call)
{
    vgpu_unlock(call->gpu);
}

/* Any double as whole units: beyond the range its end, below zero as the driver's -1 and the like
 * appear in an unsigned number. */
static uint64_t whole(double value)
{
    if (isnan(value))
        return 0;
    if (value >= 0x1p64)
        return UINT64_MAX;
    if (value <= -0x1p63)
        return (uint64_t)INT64_MIN;
    return value < 0.0 ? (uint64_t)(int64_t)value : (uint64_t)value;
}

void vgpu_put_uint(const struct vgpu_call *call, unsigned *out, double value)
{
    *out = (unsigned)(call->has_value ? whole(call->value) : whole(round(value)));
}

void vgpu_put_ull(const struct vgpu_call *call, unsigned long long *out, double value)
{
    *out = call->has_value ? whole(call->value) : whole(round(value));
}

void vgpu_put_u64(const struct vgpu_call *call, unsigned long long *out, uint64_t value)
{
    *out = call->has_value ? whole(call->value) : value;
}

int vgpu_put_text(char *out, unsigned size, const char *text)
{
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    const size_t length = strlen(text);
    if (size <= length)
        return NVML_E_INSUFFICIENT_SIZE;
    memcpy(out, text, length + 1);
    return NVML_OK;
}

int vgpu_put_count(unsigned *count, const void *buffer, size_t needed)
{
    if (count == NULL)
        return NVML_E_INVALID_ARGUMENT;
    const size_t room = *count;
    *count = (unsigned)needed;
    if (room < needed)
        return NVML_E_INSUFFICIENT_SIZE;
    return buffer == NULL && needed > 0 ? NVML_E_INVALID_ARGUMENT : NVML_OK;
}

bool vgpu_may_set(const struct vgpu_call *call)
{
    return call->machine->anyone_may_set || geteuid() == 0;
}

uint64_t vgpu_wall_us(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000U + (uint64_t)now.tv_nsec / 1000U;
}

/* In the child of a fork the library was never initialized; another thread of the parent may have
 * held the mutex, so it is made anew. The mapping is the parent's business. */
static void forget_parent(void)
{
    (void)pthread_mutex_init(&library.lock, NULL);
    library.mapped = NULL;
    library.users = 0;
    library.inits = 0;
    atomic_store(&library.current, NULL);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget_parent);
}

static int map_code(enum wg_code code)
{
    switch (code) {
    case WG_OK:
        return NVML_OK;
    case WG_ENOENT:
        return NVML_E_DRIVER_NOT_LOADED;
    case WG_EPERM:
        return NVML_E_NO_PERMISSION;
    case WG_EDATA:
        return NVML_E_VERSION_MISMATCH;
    default:
        return NVML_E_UNKNOWN;
    }
}

/* Maps for the first user, who may be still waiting in a fault when others come. */
static int acquire(struct vgpu_machine **out)
{
    enum wg_code code = WG_OK;
    (void)pthread_mutex_lock(&library.lock);
    if (library.users == 0) {
        struct vgpu_machine *machine = NULL;
        code = vgpu_map_from_environment(&machine, NULL);
        if (code == WG_OK) {
            vgpu_unmap(library.mapped);
            library.mapped = machine;
        }
    }
    if (code == WG_OK)
        library.users++;
    *out = library.mapped;
    (void)pthread_mutex_unlock(&library.lock);
    return map_code(code);
}

static int init(enum vgpu_function function, unsigned flags)
{
    (void)pthread_once(&library.once, watch_forks);
    struct vgpu_machine *machine = NULL;
    int code = acquire(&machine);
    if (code != NVML_OK)
        return code;
    struct vgpu_call call;
    code = begin_on(&call, machine, function, -1);
    if (code == NVML_OK && machine->gpu_count == 0 && (flags & NVML_INIT_NO_GPUS) == 0)
        code = NVML_E_DRIVER_NOT_LOADED; /* no GPU, no driver that would load */
    (void)pthread_mutex_lock(&library.lock);
    if (code == NVML_OK) {
        library.inits++;
        atomic_fetch_add(&machine->init_count, 1);
        atomic_store_explicit(&library.current, machine, memory_order_release);
    } else {
        library.users--;
    }
    (void)pthread_mutex_unlock(&library.lock);
    if (code == NVML_OK && (flags & NVML_INIT_NO_ATTACH) == 0) {
        for (size_t i = 0; i < machine->gpu_count; i++)
            machine->gpus[i].is_suspended = false;
    }
    return code;
}

VGPU_NVML(nvmlInit, void)
{
    return init(VGPU_FN_nvmlInit, 0);
}

VGPU_NVML(nvmlInit_v2, void)
{
    return init(VGPU_FN_nvmlInit_v2, 0);
}

VGPU_NVML(nvmlInitWithFlags, unsigned flags)
{
    return init(VGPU_FN_nvmlInitWithFlags, flags);
}

VGPU_NVML(nvmlShutdown, void)
{
    struct vgpu_call call;
    int code = vgpu_call_begin_at(&call, VGPU_FN_nvmlShutdown, -1);
    if (code != NVML_OK)
        return code;
    (void)pthread_mutex_lock(&library.lock);
    if (library.inits == 0) {
        code = NVML_E_UNINITIALIZED; /* another thread was faster */
    } else {
        library.inits--;
        library.users--;
        atomic_fetch_sub(&call.machine->init_count, 1);
        if (library.inits == 0)
            atomic_store_explicit(&library.current, NULL, memory_order_release);
    }
    (void)pthread_mutex_unlock(&library.lock);
    return code;
}
