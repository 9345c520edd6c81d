/* SPDX-License-Identifier: MIT
 *
 * The inside of a meter: one track a device, each with a thread of its own.
 *
 *     caller                         thread of a track
 *     begin: notes the time,         sleeps until the next read is due (schedule.h), or a caller
 *            links a slot,           rings; reads, with no lock held; adds the sample to the
 *            rings if it helps       account; takes the marks of all slots that the account has
 *     end:   notes the time, rings   reached; tells the readers
 *     read:  waits for the marks,
 *            never for a device that is down
 *
 * To wake a thread costs a caller some 2 to 10 us. So for some seconds after an edge the threads of
 * fast counters look by themselves whether there was another, once a tick, just before the tick
 * (schedule.h), and nobody rings. After a quiet time they sleep until their regular read, and the
 * first edge rings: one futex word for all tracks, which wakes two threads, each of which wakes two
 * more; a window over eight devices costs its caller one wake.
 *
 * A call into a driver may never return. The thread that hangs in it holds no lock; whoever waits
 * for the track (a reader, `close`, another track's thread) notices, and gives the device up.
 *
 * Owns: the meter is held by its opener, its threads and its windows; the last one frees it.
 * Threads: a track's lock guards all of it but atomics; the meter's lock guards pool and names.
 */
#ifndef WG_MEASURE_METER_H
#define WG_MEASURE_METER_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/error.h"
#include "device/machine.h"
#include "measure/account.h"
#include "measure/result.h"
#include "measure/schedule.h"
#include "wattgov/window.h"

enum { WG_WINDOW_NAME_SIZE = 64 };

/* What a window has to do with one device. */
struct wg_slot_link {
    struct wg_slot_link *next, **before; /* in the track's list, while a mark is missing */
    struct wg_window *window;
    size_t track; /* position */
    struct wg_mark from, to;
    bool has_from, has_to;
    uint32_t flags; /* of a device that was down when the window was read */
    double peak_w;
    bool is_leader; /* the first device that counts: it keeps the peak of the total */
};

struct wg_window {
    struct wg_meter *meter; /* a hold on it */
    char name[WG_WINDOW_NAME_SIZE];
    uint64_t begin_ns;
    atomic_uint_fast64_t end_ns;     /* 0: open */
    double peak_w;                   /* of the total; guarded by the leader's track */
    struct wg_window *newer, *older; /* among those not freed; `older` also in the pool */
    size_t count;
    struct wg_slot_link slots[];
};

struct wg_track {
    struct wg_meter *meter;
    struct wg_device *device;
    bool is_shared, counts_in_total;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a sample, a mark, a failure, the end of the thread */
    struct wg_account account;
    struct wg_schedule schedule;
    struct wg_slot_link *slots;
    struct wg_sample latest;
    bool has_sample;
    struct wg_error error; /* the last read's, when it failed */
    unsigned failures;     /* in a row */
    bool is_down;          /* failed for longer than a hiccup */
    bool is_hung;
    uint64_t retry_ns; /* not before, after a failure */
    bool is_running;   /* the thread */
    bool has_thread;   /* it was started: to be joined, or left behind */
    pthread_t thread;
    uint32_t seen_rings;                /* of the thread alone */
    atomic_uint_fast64_t busy_since_ns; /* a read is under way; 0: none */
    atomic_bool wants_ring;             /* it sleeps for long, and an edge now should wake it */
    _Atomic(double) power_w;
    atomic_size_t reads; /* for tests */
};

struct wg_meter {
    atomic_size_t holds;
    atomic_uint *here; /* a page of one word, 1; the kernel wipes it in a forked child */
    pid_t pid;         /* of the threads' process; used where there is no such page */
    struct wg_machine *machine;
    uint64_t period_ns, timeout_ns;
    bool has_edges;
    atomic_bool is_closed;
    atomic_uint_fast64_t last_edge_ns;  /* a window began or ended */
    atomic_uint_fast64_t next_watch_ns; /* when to look for hung tracks again */
    _Atomic(uint32_t) rings;            /* the bell */
    atomic_uint sleepers;
    pthread_mutex_t lock;
    struct wg_window *newest; /* of the windows not freed yet */
    struct wg_window *pool;   /* freed windows, linked by `older` */
    size_t pooled;
    size_t track_count;
    struct wg_track tracks[];
};

void wg__meter_unref(struct wg_meter *meter);

/* Whether this is a child of the process that opened it, without the threads. */
static inline bool wg__meter_is_foreign(const struct wg_meter *meter)
{
    return meter->here ? atomic_load(meter->here) == 0 : meter->pid != getpid();
}

/* Wakes the threads, if one sleeps. */
void wg__meter_ring(struct wg_meter *meter);

/* sampler.c: the thread of a track; the argument is the track. */
void *wg__track_run(void *argument);

/* Takes the marks that the account has reached. Locked. */
void wg__track_settle(struct wg_track *track);

/* The slot waits for no mark any more. Locked. */
void wg__slot_unlink(struct wg_slot_link *slot);

/* Gives a hung call up: whether one hangs. Not locked. */
bool wg__track_check_hung(struct wg_track *track, uint64_t now_ns);

/* Waits on `changed` until `until_ns` or a little. Locked. */
void wg__track_wait(struct wg_track *track, uint64_t until_ns);

#endif
