/* SPDX-License-Identifier: MIT
 *
 * Letting go of the drivers, and coming back.
 *
 * A GPU that somebody has open cannot be reset, nor its driver be unloaded. `quiesce` closes every
 * handle but leaves the machine: whoever reads learns that it is quiescent, whoever waits for a
 * window sees a gap. `resume` finds the devices again by their ids. A device that had failed before
 * (lost, say) is probed anew, since a reset is what was to mend it.
 *
 * A device on which a call hangs keeps its handles, which only the driver could close; it is named.
 *
 * Owns: nothing.    Threads: any; one at a time, by the machine's lock.
 */
#include <stdio.h>
#include <string.h>

#include "device/machine_parts.h"

/* The first device that failed, and the labels of all of them. */
struct failures {
    struct wg_machine *machine;
    size_t count;
    struct wg_error first;
    char others[160]; /* " gpu1 gpu5", cut to fit */
    enum wg_code memory;
};

static void note_failure(struct failures *failures, const struct wg_slot *slot, enum wg_code code,
                         const struct wg_error *err)
{
    if (failures->count++ == 0) {
        failures->first = *err;
        failures->first.code = code;
        return;
    }
    const size_t used = strlen(failures->others);
    (void)snprintf(failures->others + used, sizeof failures->others - used, " %s",
                   atomic_load(&slot->info)->label);
}

static enum wg_code fail_all(const struct failures *failures, const char *what,
                             struct wg_error *err)
{
    if (failures->memory != WG_OK)
        return wg__fail(err, failures->memory, "%s: out of memory", what);
    if (failures->count == 0)
        return WG_OK;
    const bool has_others = failures->others[0] != '\0';
    return wg__fail(err, failures->first.code, "%s%s%s%s", failures->first.text,
                    has_others ? " (also:" : "", failures->others, has_others ? ")" : "");
}

static void end_release(struct wg_slot *slot, enum wg_code code, bool is_late,
                        const struct wg_error *err, void *context)
{
    (void)is_late;
    if (code != WG_OK)
        note_failure(context, slot, code, err);
}

enum wg_code wg_machine_quiesce(struct wg_machine *machine, struct wg_error *err)
{
    wg__machine_forget_parent(machine);
    (void)pthread_mutex_lock(&machine->lock);
    struct failures failures = {.machine = machine};
    atomic_store(&machine->is_quiescent, true);
    /* Also when it is quiescent already: a device that hung the first time may answer by now. */
    wg__machine_run_batch(
        machine,
        &(struct wg_batch){.kind = WG_JOB_RELEASE, .end = end_release, .context = &failures});
    const enum wg_code code = fail_all(&failures, "quiesce", err);
    (void)pthread_mutex_unlock(&machine->lock);
    return code;
}

static void end_reopen(struct wg_slot *slot, enum wg_code code, bool is_late,
                       const struct wg_error *err, void *context)
{
    struct failures *failures = context;
    const struct wg_device_info *before = atomic_load(&slot->info);
    if (code != WG_OK)
        note_failure(failures, slot, code, err);
    if (code == WG_OK && before->state == WG_OK)
        return; /* as it was; the published info still says all */
    /* A device that had worked and is not found is lost, whatever its driver calls it. */
    const bool was_good = before->state == WG_OK || before->state == WG_ELOST;
    const enum wg_code state = code != WG_OK && was_good && !is_late ? WG_ELOST : code;
    const struct wg_device_info *info = is_late ? before : &slot->device->info;
    if (wg__machine_publish(failures->machine, slot, info, state, err->text, NULL) != WG_OK)
        failures->memory = WG_ENOMEM;
}

enum wg_code wg_machine_resume(struct wg_machine *machine, struct wg_error *err)
{
    wg__machine_forget_parent(machine);
    enum wg_code code = WG_OK;
    (void)pthread_mutex_lock(&machine->lock);
    if (atomic_load(&machine->is_quiescent)) {
        struct failures failures = {.machine = machine};
        wg__machine_run_batch(
            machine,
            &(struct wg_batch){.kind = WG_JOB_REOPEN, .end = end_reopen, .context = &failures});
        atomic_store(&machine->is_quiescent, false);
        code = fail_all(&failures, "resume", err);
    }
    (void)pthread_mutex_unlock(&machine->lock);
    return code;
}
