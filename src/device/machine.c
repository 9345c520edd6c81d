/* SPDX-License-Identifier: MIT
 *
 * The machine: its life, and what it answers.
 *
 * Every call into a driver goes through the device's slot (slot.h): one at a time, and late ones
 * are given up. A read whose caller has gone writes into the slot's own sample, never into the
 * caller's memory.
 *
 * After fork the child has the parent's handles and none of its threads. The first call in the
 * child frees all turns; workers start threads of their own, and backends reopen what does not
 * survive a fork (nvml.c).
 *
 * Owns: see struct wg_machine.    Threads: see include/wattgov/device.h.
 */
#include "device/machine.h"

#include <assert.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "device/machine_parts.h"

enum { PROCESSES_MAX = 1 << 16 };

/* -- Life ------------------------------------------------------------------------------------- */

static void machine_free(struct wg_machine *machine)
{
    for (size_t i = 0; i < machine->slot_count; i++)
        wg__slot_fini(&machine->slots[i]);
    for (size_t i = 0; i < machine->opening_count; i++)
        wg__device_list_fini(&machine->openings[i].list);
    wg__free(machine->slots);
    wg__free(machine->openings);
    wg__selection_free(machine->selection);
    wg__arena_fini(&machine->arena);
    (void)pthread_mutex_destroy(&machine->lock);
    wg__free(machine);
}

void wg__machine_ref(struct wg_machine *machine)
{
    (void)atomic_fetch_add(&machine->refs, 1);
}

void wg__machine_unref(struct wg_machine *machine)
{
    if (atomic_fetch_sub(&machine->refs, 1) == 1)
        machine_free(machine);
}

void wg__machine_forget_parent(struct wg_machine *machine)
{
    const pid_t mine = getpid();
    const pid_t busy = -1; /* while another thread of the child does this */
    pid_t seen = atomic_load(&machine->pid);
    while (seen != mine) {
        if (seen == busy) {
            (void)sched_yield();
            seen = atomic_load(&machine->pid);
        } else if (atomic_compare_exchange_strong(&machine->pid, &seen, busy)) {
            (void)pthread_mutex_init(&machine->lock, NULL);
            for (size_t i = 0; i < machine->slot_count; i++)
                wg__slot_forget_parent(&machine->slots[i]);
            atomic_store(&machine->refs, 1); /* the parent's calls hold the parent's copy */
            atomic_store(&machine->pid, mine);
            return;
        }
    }
}

uint64_t wg__machine_deadline_ns(const struct wg_machine *machine)
{
    return wg__clock_ns() + machine->call_timeout_ns;
}

static void end_release(struct wg_slot *slot, enum wg_code code, bool is_late,
                        const struct wg_error *err, void *context)
{
    (void)code;
    (void)err;
    (void)context;
    if (is_late) /* also where a meter was left open and reads right now */
        wg__slot_abandon(slot, 0, NULL);
}

void wg_machine_close(struct wg_machine *machine)
{
    if (machine == NULL)
        return;
    wg__machine_forget_parent(machine);
    wg__machine_run_batch(machine, &(struct wg_batch){.kind = WG_JOB_RELEASE, .end = end_release});
    for (size_t i = 0; i < machine->slot_count; i++)
        wg__slot_close(&machine->slots[i]);
    wg__machine_unref(machine);
}

/* -- Getters ---------------------------------------------------------------------------------- */

size_t wg_machine_device_count(const struct wg_machine *machine)
{
    return machine->slot_count;
}

struct wg_device *wg_machine_device(const struct wg_machine *machine, size_t position)
{
    return position < machine->slot_count ? machine->slots[position].device : NULL;
}

size_t wg_machine_backend_count(const struct wg_machine *machine)
{
    return machine->opening_count;
}

const struct wg_backend_info *wg_machine_backend(const struct wg_machine *machine, size_t position)
{
    return position < machine->opening_count ? &machine->openings[position].info : NULL;
}

uint64_t wg__machine_call_timeout_ns(const struct wg_machine *machine)
{
    return machine->call_timeout_ns;
}

bool wg__machine_is_quiescent(const struct wg_machine *machine)
{
    return atomic_load(&machine->is_quiescent);
}

static struct wg_slot *slot_of(const struct wg_device *device)
{
    return &device->machine->slots[device->position];
}

const struct wg_device_info *wg_device_get_info(const struct wg_device *device)
{
    return atomic_load(&slot_of(device)->info);
}

/* -- Reads ------------------------------------------------------------------------------------ */

/* Whether a device that is not hung can be read. The caller has the turn, so no quiesce runs. */
static enum wg_code check_readable(const struct wg_slot *slot, struct wg_error *err)
{
    const struct wg_device_info *info = atomic_load(&slot->info);
    if (atomic_load(&slot->device->machine->is_quiescent))
        return wg__fail(err, WG_ESTATE, "%s: its handles are closed (quiesce) until resume",
                        info->label);
    if (info->state != WG_OK)
        return wg__fail(err, info->state, "%s", info->state_text);
    return WG_OK;
}

/* Takes the turn of a device that can be read. */
static enum wg_code enter_readable(struct wg_slot *slot, uint64_t until_ns, struct wg_error *err)
{
    wg__machine_forget_parent(slot->device->machine);
    enum wg_code code = wg__slot_enter(slot, until_ns, err);
    if (code != WG_OK)
        return code;
    code = check_readable(slot, err);
    if (code != WG_OK)
        wg__slot_leave(slot);
    return code;
}

/* Runs the slot's job; `*is_mine` whether the caller has the turn still. */
static enum wg_code run_job(struct wg_slot *slot, uint64_t until_ns, bool *is_mine,
                            struct wg_error *err)
{
    *is_mine = true;
    const enum wg_code code = wg__slot_start(slot, err);
    if (code != WG_OK)
        return code;
    *is_mine = wg__slot_finish(slot, until_ns, err);
    return *is_mine ? slot->job.code : WG_ETIMEOUT;
}

enum wg_code wg_device_read(struct wg_device *device, uint32_t wanted, struct wg_sample *out,
                            struct wg_error *err)
{
    struct wg_slot *slot = slot_of(device);
    const uint64_t until_ns = wg__machine_deadline_ns(device->machine);
    enum wg_code code = enter_readable(slot, until_ns, err);
    if (code != WG_OK)
        return code;
    slot->job.kind = WG_JOB_READ;
    slot->job.wanted = wanted;
    bool is_mine = false;
    code = run_job(slot, until_ns, &is_mine, err);
    if (!is_mine)
        return code;
    if (code == WG_OK)
        *out = slot->job.sample;
    wg__slot_leave(slot);
    return code;
}

enum wg_code wg__device_read_blocking(struct wg_device *device, uint32_t wanted,
                                      struct wg_sample *out, struct wg_error *err)
{
    struct wg_slot *slot = slot_of(device);
    enum wg_code code = enter_readable(slot, wg__machine_deadline_ns(device->machine), err);
    if (code != WG_OK)
        return code == WG_ETIMEOUT ? wg__fail(err, WG_ESTATE, "%s: an earlier call still hangs",
                                              wg_device_get_info(device)->label)
                                   : code;
    struct wg_error own = {0};
    *out = (struct wg_sample){0};
    code = device->ops->read(device, wanted, out, &own);
    atomic_store(&device->call, NULL);
    if (code != WG_OK && err != NULL) {
        own.code = code;
        (void)wg__slot_name_in(slot, &own);
        *err = own;
    }
    wg__slot_leave(slot);
    return code;
}

void wg__device_abandon(struct wg_device *device, uint64_t waited_ns, struct wg_error *err)
{
    wg__slot_abandon(slot_of(device), waited_ns, err);
}

/* The processes were read: hands them over. */
static void give_processes(const struct wg_job *job, struct wg_process *out, size_t capacity,
                           size_t *count_out)
{
    size_t given = job->count < job->capacity ? job->count : job->capacity;
    given = given < capacity ? given : capacity;
    if (given != 0)
        memcpy(out, job->processes, given * sizeof *out);
    *count_out = job->count;
}

enum wg_code wg_device_read_processes(struct wg_device *device, struct wg_process *out,
                                      size_t capacity, size_t *count_out, struct wg_error *err)
{
    struct wg_slot *slot = slot_of(device);
    if (device->ops->read_processes == NULL)
        return wg__fail(err, WG_EUNSUPPORTED, "%s: this kind of device knows no processes",
                        wg_device_get_info(device)->label);
    const uint64_t until_ns = wg__machine_deadline_ns(device->machine);
    enum wg_code code = enter_readable(slot, until_ns, err);
    if (code != WG_OK)
        return code;
    struct wg_job *job = &slot->job;
    job->kind = WG_JOB_PROCESSES;
    job->count = 0;
    job->capacity = capacity < PROCESSES_MAX ? capacity : PROCESSES_MAX;
    job->processes = wg__alloc_zeroed(job->capacity, sizeof *job->processes);
    if (job->processes == NULL) {
        wg__slot_leave(slot);
        return wg__fail(err, WG_ENOMEM, "%s: out of memory for %zu processes",
                        wg_device_get_info(device)->label, capacity);
    }
    bool is_mine = false;
    code = run_job(slot, until_ns, &is_mine, err);
    if (!is_mine)
        return code;
    if (code == WG_OK)
        give_processes(job, out, capacity, count_out);
    wg__free(job->processes);
    job->processes = NULL;
    wg__slot_leave(slot);
    return code;
}

/* -- Knobs ------------------------------------------------------------------------------------ */

/* Runs a job of the kind on a knob; `*value` goes in and comes out. */
static enum wg_code run_knob(struct wg_device *device, enum wg_job_kind kind, enum wg_knob knob,
                             double *value, struct wg_error *err)
{
    struct wg_slot *slot = slot_of(device);
    const struct wg_device_info *info = wg_device_get_info(device);
    if (knob >= WG_KNOB_COUNT)
        return wg__fail(err, WG_EINVAL, "%s: there is no knob %d", info->label, (int)knob);
    if (device->ops->set == NULL || device->ops->get == NULL)
        return wg__fail(err, WG_EUNSUPPORTED, "%s: nothing can be set on a device of '%s'",
                        info->label, info->backend);
    const uint64_t until_ns = wg__machine_deadline_ns(device->machine);
    enum wg_code code = enter_readable(slot, until_ns, err);
    if (code != WG_OK)
        return code;
    info = wg_device_get_info(device); /* a reopen may have told more */
    if (!info->knobs[knob].is_present) {
        wg__slot_leave(slot);
        return wg__fail(err, WG_EUNSUPPORTED, "%s has no %s: %s", info->label, wg_knob_key(knob),
                        info->knobs[knob].why_not != NULL ? info->knobs[knob].why_not
                                                          : "its driver lists none");
    }
    slot->job.kind = kind;
    slot->job.knob = knob;
    slot->job.value = *value;
    bool is_mine = false;
    code = run_job(slot, until_ns, &is_mine, err);
    if (!is_mine)
        return code;
    if (code == WG_OK)
        *value = slot->job.value;
    wg__slot_leave(slot);
    return code;
}

enum wg_code wg__device_set_knob(struct wg_device *device, enum wg_knob knob, double value,
                                 struct wg_error *err)
{
    return run_knob(device, WG_JOB_SET, knob, &value, err);
}

enum wg_code wg__device_get_knob(struct wg_device *device, enum wg_knob knob, double *out,
                                 struct wg_error *err)
{
    return run_knob(device, WG_JOB_GET, knob, out, err);
}
