/* SPDX-License-Identifier: MIT
 *
 * Knobs of devices held together: the journal, the guard, and an eye on both.
 *
 * What `tune` and `tune apply` need of control.h and guard.h in one place: the guard stands before
 * the first write, a guard that has died is replaced (else all is given back), what somebody else
 * has written is seen before it would be written over, and everything comes back at the end.
 *
 * Owns: the settings, from take to close.    Threads: one at a time.
 */
#ifndef WG_LIVE_DEVICE_HOLD_H
#define WG_LIVE_DEVICE_HOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "device/control.h"
#include "live/guard.h"

enum { WG_DEVICE_HOLDS_MAX = 256 };

struct wg_device_hold {
    struct wg_machine *machine;
    struct wg_control *control; /* NULL: nothing is held */
    struct wg_guard guard;
    size_t count;
    struct {
        size_t device;
        enum wg_knob knob;
        bool was_set;
    } held[WG_DEVICE_HOLDS_MAX];
    bool is_foreign; /* somebody else has written one of them: nothing is set any more */
    bool is_lost;    /* there is no guard any more: all was given back */
    size_t not_restored;
    void (*say)(const char *line, void *context); /* may be NULL */
    void *context;
};

/* Journal and guard; nothing is set. Errors as of wg__control_open and wg__guard_start. */
enum wg_code wg__device_hold_open(struct wg_device_hold *hold, struct wg_machine *machine,
                                  const struct wg_control_opts *opts, struct wg_error *err);

/* As wg__control_take. */
enum wg_code wg__device_hold_take(struct wg_device_hold *hold, size_t device, enum wg_knob knob,
                                  struct wg_error *err);

/* As wg__control_set, after a look. WG_EBUSY: somebody else has set one of our knobs since. */
enum wg_code wg__device_hold_set(struct wg_device_hold *hold, size_t device, enum wg_knob knob,
                                 double value, double *applied_out, struct wg_error *err);

/* Looks after guard and foreign writes; some times a second. False: nothing may be set any more,
 * and it was said why. */
bool wg__device_hold_tend(struct wg_device_hold *hold);

/* Gives everything back. NULL-safe on a zeroed one. */
void wg__device_hold_close(struct wg_device_hold *hold);

#endif
