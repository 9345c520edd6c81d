/* SPDX-License-Identifier: MIT
 *
 * What a machine consists of; shared by machine.c (life, getters, reads), machine_open.c and
 * machine_quiesce.c, and by nobody else.
 *
 * The memory of a machine is counted: the program holds it once, from open to close, and each call
 * that may outlive its caller holds it once more (slot.h). So `close` returns although a driver
 * hangs, and the thread that hangs finds its device, config and arena as they were.
 *
 * Threads: `slots`, `openings` and the arena change in open, quiesce and resume only.
 */
#ifndef WG_DEVICE_MACHINE_PARTS_H
#define WG_DEVICE_MACHINE_PARTS_H

#include <pthread.h>
#include <sys/types.h>

#include "device/backend.h"
#include "device/machine.h"
#include "device/select.h"
#include "device/slot.h"

/* One backend's part of wg_machine_open. A hung `open` keeps using it. */
struct wg_opening {
    struct wg_machine *machine;
    const struct wg_backend *backend;
    struct wg_backend_config config; /* the machine's, with a `call` of its own */
    _Atomic(const char *) call;
    struct wg_device_list list;
    const char *remedy;
    enum wg_code code;
    struct wg_error err;
    struct wg_backend_info info; /* what wg_machine_backend gives; not touched by `open` */
};

struct wg_machine {
    atomic_uint refs;
    _Atomic pid_t pid; /* of the process in which locks and turns mean something */
    atomic_bool is_quiescent;
    pthread_mutex_t lock;  /* one quiesce or resume at a time; guards the arena after open */
    struct wg_arena arena; /* texts, published infos */
    uint64_t call_timeout_ns;
    bool gpus_only;
    struct wg_backend_config config;
    struct wg_selection *selection; /* owned */
    struct wg_opening *openings;    /* owned */
    size_t opening_count;
    struct wg_slot *slots; /* owned; one a device, in the order of the devices */
    size_t slot_count;
};

/* In a forked child: frees all turns. To be called before the first look at a slot. */
void wg__machine_forget_parent(struct wg_machine *machine);

/* The moment at which a call that begins now is late. */
uint64_t wg__machine_deadline_ns(const struct wg_machine *machine);

/* Runs one job of `kind` on every slot that `wants` it (NULL: all), at once, and waits for all of
 * them until one common deadline. `end` hears of each, in order: with WG_OK or the call's own code
 * the device's turn is still this thread's; `is_late` says that the call hangs and the turn is not.
 * One batch at a time: the caller has the machine's lock or is alone. */
struct wg_batch {
    enum wg_job_kind kind;
    bool (*wants)(const struct wg_slot *slot);
    void (*end)(struct wg_slot *slot, enum wg_code code, bool is_late, const struct wg_error *err,
                void *context);
    void *context;
};
void wg__machine_run_batch(struct wg_machine *machine, const struct wg_batch *batch);

/* Publishes the device's info as it is now, with this state; nothing of it is NULL that must not
 * be. The caller has the turn or is the only one. WG_ENOMEM. */
enum wg_code wg__machine_publish(struct wg_machine *machine, struct wg_slot *slot,
                                 const struct wg_device_info *info, enum wg_code state,
                                 const char *text, struct wg_error *err);

#endif
