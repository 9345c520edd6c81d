/* SPDX-License-Identifier: MIT
 *
 * A device's place in the machine: whose turn it is to call it, and the worker that calls.
 *
 * Two kinds of callers meet here: those that must go on whatever the driver does (wg_device_read,
 * the probe, quiesce), whose calls run on the slot's worker, and a sampler's own thread, which
 * calls in place. `enter` gives one of them the turn, `leave` passes it on. A call that is late
 * keeps the turn: the slot is hung, `enter` refuses, and the thread that hangs leaves when the call
 * returns, if ever. It then also gives back its hold on the machine, which is therefore not freed
 * before.
 *
 *     free -- enter --> taken -- leave --> free
 *                         | too late
 *                         v
 *                       hung -- the call returns --> free
 *
 * Owns: the device and its worker.    Threads: any; the lock guards the turn.
 */
#ifndef WG_DEVICE_SLOT_H
#define WG_DEVICE_SLOT_H

#include <pthread.h>

#include "device/backend.h"
#include "device/deadline.h"

enum wg_job_kind {
    WG_JOB_PROBE,
    WG_JOB_READ,
    WG_JOB_PROCESSES,
    WG_JOB_SET,
    WG_JOB_GET,
    WG_JOB_RELEASE,
    WG_JOB_REOPEN
};

/* A call on the worker, with room for its answer: a caller that has gone may own none of it. */
struct wg_job {
    enum wg_job_kind kind;
    uint32_t wanted;
    struct wg_sample sample;
    enum wg_knob knob;
    double value;                 /* to set, or what was got */
    struct wg_process *processes; /* on the heap; freed by whoever owns the job at the end */
    size_t capacity;
    size_t count;
    enum wg_code code;
    struct wg_error err;
};

struct wg_slot {
    struct wg_device *device; /* owned; NULL once destroyed */
    struct wg_worker *worker; /* owned */
    /* What wg_device_get_info gives. It is replaced, never changed; the machine's arena has it. */
    _Atomic(const struct wg_device_info *) info;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t left;
    bool is_taken;
    bool is_hung;
    uint64_t turn;     /* counts the turns */
    uint64_t since_ns; /* of the present turn */
    struct wg_job job; /* belongs to who has the turn */
    bool is_probed;    /* the probe has succeeded once; belongs to who has the turn, as these two */
    bool is_released;
    bool is_in_batch; /* of machine_batch.c; guarded by the machine's lock */
};

/* Takes the device over when it succeeds. WG_ENOMEM. */
enum wg_code wg__slot_init(struct wg_slot *slot, struct wg_device *device, struct wg_error *err);

/* In a forked child: the turn is free, whoever had it in the parent. */
void wg__slot_forget_parent(struct wg_slot *slot);

/* Ends the worker; the device is released and destroyed unless a call hangs. */
void wg__slot_close(struct wg_slot *slot);

/* The same for a device whose call has returned since; then the locks. The turn is free. */
void wg__slot_fini(struct wg_slot *slot);

/* Waits for the turn until `until_ns`. WG_ETIMEOUT: a call hangs (then at once), or others took too
 * long; the text names device, call and how long. */
enum wg_code wg__slot_enter(struct wg_slot *slot, uint64_t until_ns, struct wg_error *err);

/* Passes the turn on. Of the thread whose call was given up, it also gives back the hold on the
 * machine, which may be freed by that. */
void wg__slot_leave(struct wg_slot *slot);

/* Starts slot->job on the worker; the caller has the turn. When it fails it still has. */
enum wg_code wg__slot_start(struct wg_slot *slot, struct wg_error *err);

/* Waits for the job until `until_ns`. True: slot->job has the answer and the caller still has the
 * turn. False: the call is late, the slot is hung, the turn is gone; `err` says so. */
bool wg__slot_finish(struct wg_slot *slot, uint64_t until_ns, struct wg_error *err);

/* Gives up the call of whoever has the turn (not of a worker), since `waited_ns`. */
void wg__slot_abandon(struct wg_slot *slot, uint64_t waited_ns, struct wg_error *err);

/* Puts the device's label in front of a message that does not name it. Returns err->code. */
enum wg_code wg__slot_name_in(const struct wg_slot *slot, struct wg_error *err);

#endif
