/* SPDX-License-Identifier: MIT
 *
 * One call on every device, all at once, with one deadline for all of them: eight hung GPUs cost
 * as long as one.
 *
 * Owns: nothing.    Threads: one batch at a time per machine.
 */
#include "device/machine_parts.h"

static void begin(struct wg_slot *slot, const struct wg_batch *batch, uint64_t until_ns)
{
    struct wg_error err = {0};
    slot->is_in_batch = false;
    if (batch->wants != NULL && !batch->wants(slot))
        return;
    enum wg_code code = wg__slot_enter(slot, until_ns, &err);
    if (code != WG_OK) {
        batch->end(slot, code, true, &err, batch->context);
        return;
    }
    slot->job.kind = batch->kind;
    code = wg__slot_start(slot, &err);
    if (code == WG_OK) {
        slot->is_in_batch = true;
        return;
    }
    batch->end(slot, code, false, &err, batch->context);
    wg__slot_leave(slot);
}

static void end(struct wg_slot *slot, const struct wg_batch *batch, uint64_t until_ns)
{
    struct wg_error err = {0};
    if (!wg__slot_finish(slot, until_ns, &err)) {
        batch->end(slot, WG_ETIMEOUT, true, &err, batch->context);
        return;
    }
    batch->end(slot, slot->job.code, false, &err, batch->context);
    wg__slot_leave(slot);
}

void wg__machine_run_batch(struct wg_machine *machine, const struct wg_batch *batch)
{
    const uint64_t until_ns = wg__machine_deadline_ns(machine);
    for (size_t i = 0; i < machine->slot_count; i++)
        begin(&machine->slots[i], batch, until_ns);
    for (size_t i = 0; i < machine->slot_count; i++) {
        if (machine->slots[i].is_in_batch)
            end(&machine->slots[i], batch, until_ns);
    }
}
