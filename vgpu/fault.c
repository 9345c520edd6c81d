/* SPDX-License-Identifier: MIT
 *
 * Faults: what goes wrong on purpose, from a given call on and for so many.
 *
 * Some kinds change how a call ends (HANG, LOST, ERROR, VALUE, DELAY): the library asks before each
 * call. The others change the GPU, once, when their call comes: RESET, STUCK, REVERT, CAP,
 * TEMPERATURE. While no fault is set, asking costs one atomic load.
 *
 * Owns: nothing.    Threads: any; the table under fault_lock, which is taken before a GPU's lock
 * and never held while anybody waits.
 */
#include "vgpu/state.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

static void lock_faults(struct vgpu_machine *machine)
{
    if (pthread_mutex_lock(&machine->fault_lock) == EOWNERDEAD)
        (void)pthread_mutex_consistent(&machine->fault_lock);
}

static void unlock_faults(struct vgpu_machine *machine)
{
    (void)pthread_mutex_unlock(&machine->fault_lock);
}

/* Counted anew, not up and down: a process that is killed in between must not leave it wrong. */
static void publish(struct vgpu_machine *machine)
{
    unsigned count = 0;
    for (size_t i = 0; i < VGPU_FAULTS_MAX; i++)
        count += machine->faults[i].is_set;
    atomic_store(&machine->fault_count, count);
    atomic_fetch_add(&machine->fault_generation, 1);
}

static bool changes_gpu(enum vgpu_fault_kind kind)
{
    return kind == VGPU_FAULT_RESET || kind == VGPU_FAULT_STUCK || kind == VGPU_FAULT_REVERT ||
           kind == VGPU_FAULT_CAP || kind == VGPU_FAULT_TEMPERATURE;
}

static void change_gpu(struct vgpu_gpu *gpu, const struct vgpu_fault *fault)
{
    vgpu_lock(gpu);
    vgpu_advance(gpu, wg__clock_ns());
    switch (fault->kind) {
    case VGPU_FAULT_RESET:
        gpu->counter_base_j = gpu->energy_j;
        break;
    case VGPU_FAULT_STUCK:
        gpu->stuck_mj = vgpu_counter_mj(gpu, gpu->t_ns);
        gpu->is_counter_stuck = true;
        break;
    case VGPU_FAULT_REVERT:
        gpu->limit_w = gpu->model.limit_default_w;
        gpu->lock_min_hz = gpu->lock_max_hz = 0.0;
        gpu->memory_lock_min_hz = gpu->memory_lock_max_hz = 0.0;
        break;
    case VGPU_FAULT_CAP:
        gpu->external_limit_w = fault->value;
        break;
    case VGPU_FAULT_TEMPERATURE:
        gpu->forced_temperature_c = fault->value;
        gpu->temperature_c = fault->value;
        break;
    default:
        break;
    }
    vgpu_settle(gpu);
    vgpu_unlock(gpu);
}

/* Done once. What leaves nothing to be lifted makes room at once. */
static void apply(struct vgpu_machine *machine, struct vgpu_fault *fault)
{
    fault->is_applied = true;
    for (size_t i = 0; i < machine->gpu_count; i++) {
        if (fault->gpu == -1 || (size_t)fault->gpu == i)
            change_gpu(&machine->gpus[i], fault);
    }
    if (fault->kind == VGPU_FAULT_RESET || fault->kind == VGPU_FAULT_REVERT)
        fault->is_set = false;
}

enum wg_code vgpu_fault_check(const struct vgpu_machine *machine, const struct vgpu_fault *fault,
                              struct wg_error *err)
{
    if ((unsigned)fault->kind >= VGPU_FAULT_KIND_COUNT)
        return wg__fail(err, WG_EINVAL, "there is no fault of kind %d", (int)fault->kind);
    if (fault->gpu < -1 || (fault->gpu >= 0 && (size_t)fault->gpu >= machine->gpu_count))
        return wg__fail(err, WG_EINVAL, "the virtual machine has %zu GPU%s, none is number %d",
                        machine->gpu_count, machine->gpu_count == 1 ? "" : "s", fault->gpu);
    return WG_OK;
}

enum wg_code vgpu_fault_add(struct vgpu_machine *machine, const struct vgpu_fault *fault,
                            struct wg_error *err)
{
    const enum wg_code code = vgpu_fault_check(machine, fault, err);
    if (code != WG_OK)
        return code;
    lock_faults(machine);
    size_t place = 0;
    while (place < VGPU_FAULTS_MAX && machine->faults[place].is_set)
        place++;
    if (place < VGPU_FAULTS_MAX) {
        struct vgpu_fault *added = &machine->faults[place];
        *added = *fault;
        added->function[VGPU_TEXT_MAX - 1] = '\0';
        added->from_call = fault->from_call != 0 ? fault->from_call : 1;
        added->id = ++machine->fault_id;
        added->seen = 0;
        added->is_applied = false;
        added->is_set = true;
        if (changes_gpu(added->kind) && added->from_call == 1)
            apply(machine, added);
        publish(machine);
    }
    unlock_faults(machine);
    if (place == VGPU_FAULTS_MAX)
        return wg__fail(err, WG_ESTATE, "%d faults are set, no more can be: clear them first",
                        VGPU_FAULTS_MAX);
    return WG_OK;
}

void vgpu_fault_clear(struct vgpu_machine *machine)
{
    lock_faults(machine);
    for (size_t i = 0; i < VGPU_FAULTS_MAX; i++)
        machine->faults[i].is_set = false;
    for (size_t i = 0; i < machine->gpu_count; i++) {
        struct vgpu_gpu *gpu = &machine->gpus[i];
        vgpu_lock(gpu);
        vgpu_advance(gpu, wg__clock_ns());
        gpu->external_limit_w = INFINITY;
        gpu->forced_temperature_c = NAN;
        gpu->is_counter_stuck = false;
        vgpu_settle(gpu);
        vgpu_unlock(gpu);
    }
    publish(machine);
    unlock_faults(machine);
}

static bool concerns(const struct vgpu_fault *fault, int gpu, const char *function_name)
{
    if (fault->gpu != -1 && fault->gpu != gpu)
        return false;
    if (fault->function[0] != '\0')
        return strcmp(fault->function, function_name) == 0;
    return strchr(function_name, ':') == NULL; /* a part of a call is not one more call */
}

bool vgpu_fault_find(struct vgpu_machine *machine, int gpu, const char *function_name,
                     struct vgpu_fault *out)
{
    if (atomic_load_explicit(&machine->fault_count, memory_order_acquire) == 0)
        return false;
    bool is_found = false;
    lock_faults(machine);
    for (size_t i = 0; i < VGPU_FAULTS_MAX; i++) {
        struct vgpu_fault *fault = &machine->faults[i];
        if (!fault->is_set || !concerns(fault, gpu, function_name))
            continue;
        fault->seen++;
        if (fault->seen < fault->from_call ||
            (fault->calls != 0 && fault->seen - fault->from_call >= fault->calls))
            continue;
        if (changes_gpu(fault->kind)) {
            if (!fault->is_applied) {
                apply(machine, fault);
                publish(machine);
            }
        } else if (!is_found) {
            *out = *fault;
            is_found = true;
        }
    }
    unlock_faults(machine);
    return is_found;
}

static bool is_set(struct vgpu_machine *machine, uint64_t id)
{
    bool found = false;
    lock_faults(machine);
    for (size_t i = 0; i < VGPU_FAULTS_MAX; i++)
        found = found || (machine->faults[i].is_set && machine->faults[i].id == id);
    unlock_faults(machine);
    return found;
}

void vgpu_fault_wait(struct vgpu_machine *machine, uint64_t id)
{
    for (;;) {
        const unsigned generation = atomic_load(&machine->fault_generation);
        if (!is_set(machine, id))
            return;
        while (atomic_load(&machine->fault_generation) == generation)
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}
