/* SPDX-License-Identifier: MIT
 *
 * A device's place in the machine.
 *
 * Who holds what while a job runs on the worker:
 *
 *     caller has the turn -- start --> the thread has the job, the machine is held once more
 *         in time:  finish takes the job back and lets the machine go
 *         too late: the thread keeps job, turn and hold; its `drop` gives all three back
 *
 * The thread may drop the job in the moment between the deadline and the caller's marking of the
 * slot as hung, and another caller may have the turn by then. So the caller marks only the turn
 * that was its own: turns are counted.
 *
 * Owns: see slot.h.    Threads: see slot.h.
 */
#include "device/slot.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "device/machine.h"

static enum wg_code make_locks(struct wg_slot *slot)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return WG_ENOMEM;
    bool good = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0;
    good = good && pthread_mutex_init(&slot->lock, NULL) == 0;
    good = good && pthread_cond_init(&slot->left, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return good ? WG_OK : WG_ENOMEM;
}

enum wg_code wg__slot_init(struct wg_slot *slot, struct wg_device *device, struct wg_error *err)
{
    *slot = (struct wg_slot){0};
    const enum wg_code code = wg__worker_new(&slot->worker, err);
    if (code != WG_OK)
        return code;
    if (make_locks(slot) != WG_OK) {
        wg__worker_free(slot->worker);
        return wg__fail(err, WG_ENOMEM, "cannot make a lock for a device");
    }
    slot->device = device;
    return WG_OK;
}

void wg__slot_forget_parent(struct wg_slot *slot)
{
    (void)make_locks(slot); /* succeeded before; the old ones are not destroyed: deadline.c */
    slot->is_taken = false;
    slot->is_hung = false;
    if (slot->device != NULL)
        atomic_store(&slot->device->is_abandoned, false);
}

static void destroy_device(struct wg_slot *slot)
{
    if (slot->device != NULL && !slot->is_released && slot->device->ops->release != NULL)
        slot->device->ops->release(slot->device);
    wg__device_destroy(slot->device);
    slot->device = NULL;
}

void wg__slot_close(struct wg_slot *slot)
{
    wg__worker_free(slot->worker);
    slot->worker = NULL;
    (void)pthread_mutex_lock(&slot->lock);
    const bool is_taken = slot->is_taken;
    (void)pthread_mutex_unlock(&slot->lock);
    if (!is_taken) /* else by a call that hangs, which comes to wg__slot_fini when it returns */
        destroy_device(slot);
}

void wg__slot_fini(struct wg_slot *slot)
{
    destroy_device(slot);
    wg__worker_free(slot->worker);
    (void)pthread_cond_destroy(&slot->left);
    (void)pthread_mutex_destroy(&slot->lock);
}

/* -- Messages --------------------------------------------------------------------------------- */

static const char *label_of(const struct wg_slot *slot)
{
    const struct wg_device_info *info = atomic_load(&slot->info);
    return info != NULL ? info->label : "a device"; /* not named yet */
}

enum wg_code wg__slot_name_in(const struct wg_slot *slot, struct wg_error *err)
{
    if (err == NULL)
        return WG_EIO; /* callers give one */
    const char *label = label_of(slot);
    const size_t length = strlen(label);
    if (strncmp(err->text, label, length) == 0 && err->text[length] == ':')
        return err->code;
    const struct wg_error unnamed = *err;
    return wg__fail(err, unnamed.code, "%s: %s", label,
                    unnamed.text[0] != '\0' ? unnamed.text : wg_code_text(unnamed.code));
}

static enum wg_code fail_late(const struct wg_slot *slot, uint64_t waited_ns, struct wg_error *err)
{
    const char *call = atomic_load(&slot->device->call);
    return wg__fail(err, WG_ETIMEOUT, "%s: %s has not returned for %.3g s", label_of(slot),
                    call != NULL ? call : "its driver", (double)waited_ns * 1e-9);
}

/* -- The turn -----------------------------------------------------------------------------------
 */

enum wg_code wg__slot_enter(struct wg_slot *slot, uint64_t until_ns, struct wg_error *err)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000U),
                                   .tv_nsec = (long)(until_ns % 1000000000U)};
    int error = 0;
    (void)pthread_mutex_lock(&slot->lock);
    while (slot->is_taken && !slot->is_hung && error == 0)
        error = pthread_cond_timedwait(&slot->left, &slot->lock, &until);
    const bool is_mine = !slot->is_taken;
    const uint64_t now_ns = wg__clock_ns();
    const uint64_t waited_ns = now_ns - slot->since_ns;
    if (is_mine) {
        slot->is_taken = true;
        slot->turn++;
        slot->since_ns = now_ns;
    }
    (void)pthread_mutex_unlock(&slot->lock);
    return is_mine ? WG_OK : fail_late(slot, waited_ns, err);
}

/* Whether the turn was one that had been given up. */
static bool free_turn(struct wg_slot *slot)
{
    (void)pthread_mutex_lock(&slot->lock);
    const bool was_hung = slot->is_hung;
    slot->is_taken = false;
    slot->is_hung = false;
    atomic_store(&slot->device->is_abandoned, false);
    (void)pthread_cond_broadcast(&slot->left); /* inside: after the unlock the slot may be gone */
    (void)pthread_mutex_unlock(&slot->lock);
    return was_hung;
}

void wg__slot_leave(struct wg_slot *slot)
{
    struct wg_machine *machine = slot->device->machine;
    if (free_turn(slot))
        wg__machine_unref(machine);
}

/* Locked. */
static void mark_hung(struct wg_slot *slot)
{
    slot->is_hung = true;
    atomic_store(&slot->device->is_abandoned, true);
    (void)pthread_cond_broadcast(&slot->left); /* whoever waits learns of it at once */
}

void wg__slot_abandon(struct wg_slot *slot, uint64_t waited_ns, struct wg_error *err)
{
    (void)fail_late(slot, waited_ns, err);
    (void)pthread_mutex_lock(&slot->lock);
    if (slot->is_taken && !slot->is_hung) {
        wg__machine_ref(slot->device->machine);
        mark_hung(slot);
    }
    (void)pthread_mutex_unlock(&slot->lock);
}

/* -- Jobs on the worker -------------------------------------------------------------------------
 */

static enum wg_code reopen(struct wg_slot *slot, struct wg_error *err)
{
    struct wg_device *device = slot->device;
    enum wg_code code = WG_OK;
    if (slot->is_released && device->ops->reopen != NULL)
        code = device->ops->reopen(device, err);
    if (code != WG_OK)
        return code;
    slot->is_released = false;
    if (slot->is_probed)
        return WG_OK;
    code = device->ops->probe(device, err);
    slot->is_probed = code == WG_OK;
    return code;
}

static void run_job(void *context)
{
    struct wg_slot *slot = context;
    struct wg_job *job = &slot->job;
    struct wg_device *device = slot->device;
    job->err = (struct wg_error){0};
    job->code = WG_OK;
    switch (job->kind) {
    case WG_JOB_PROBE:
        job->code = device->ops->probe(device, &job->err);
        slot->is_probed = job->code == WG_OK;
        break;
    case WG_JOB_READ:
        job->sample = (struct wg_sample){0};
        job->code = device->ops->read(device, job->wanted, &job->sample, &job->err);
        break;
    case WG_JOB_PROCESSES:
        job->code = device->ops->read_processes(device, job->processes, job->capacity, &job->count,
                                                &job->err);
        break;
    case WG_JOB_SET:
        job->code = device->ops->set(device, job->knob, job->value, &job->err);
        break;
    case WG_JOB_GET:
        job->code = device->ops->get(device, job->knob, &job->value, &job->err);
        break;
    case WG_JOB_RELEASE:
        if (!slot->is_released && device->ops->release != NULL)
            device->ops->release(device);
        slot->is_released = true;
        break;
    case WG_JOB_REOPEN:
        job->code = reopen(slot, &job->err);
        break;
    }
    if (job->code != WG_OK)
        job->err.code = job->code;
    atomic_store(&device->call, NULL);
}

/* The call has returned after all, to nobody. */
static void drop_job(void *context)
{
    struct wg_slot *slot = context;
    struct wg_machine *machine = slot->device->machine;
    wg__free(slot->job.processes);
    slot->job.processes = NULL;
    (void)free_turn(slot);
    wg__machine_unref(machine);
}

enum wg_code wg__slot_start(struct wg_slot *slot, struct wg_error *err)
{
    struct wg_machine *machine = slot->device->machine;
    wg__machine_ref(machine);
    const enum wg_code code = wg__worker_start(slot->worker, run_job, drop_job, slot);
    if (code == WG_OK)
        return WG_OK;
    wg__machine_unref(machine);
    return wg__fail(err, code, "%s: cannot start a thread for its calls: %s", label_of(slot),
                    wg_code_text(code));
}

bool wg__slot_finish(struct wg_slot *slot, uint64_t until_ns, struct wg_error *err)
{
    (void)pthread_mutex_lock(&slot->lock);
    const uint64_t turn = slot->turn;
    const uint64_t since_ns = slot->since_ns;
    (void)pthread_mutex_unlock(&slot->lock);
    if (wg__worker_wait(slot->worker, until_ns) == WG_OK) {
        wg__machine_unref(slot->device->machine); /* never the last: the caller's is open */
        if (slot->job.code != WG_OK) {
            (void)wg__slot_name_in(slot, &slot->job.err);
            if (err != NULL)
                *err = slot->job.err;
        }
        return true;
    }
    (void)fail_late(slot, wg__clock_ns() - since_ns, err);
    (void)pthread_mutex_lock(&slot->lock);
    if (slot->is_taken && slot->turn == turn)
        mark_hung(slot);
    (void)pthread_mutex_unlock(&slot->lock);
    return false;
}
