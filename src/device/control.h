/* SPDX-License-Identifier: MIT
 *
 * What a governor sets on devices, and gives back.
 *
 * A setting that outlives its owner slows the next user's job for weeks. So before the first write
 * to a knob its original value goes to a journal, and so does each value before it is set; what is
 * in the journal is on the disk (fsync) before the driver is called. Whoever holds the journal (the
 * governor, and its guard with the same open file) owns the knobs in it; when nobody holds it any
 * more and it is not ended, it is stale, and the next wattgov command restores what it says
 * (restore.h).
 *
 *     struct wg_control *control;
 *     wg__control_open(&control, machine, &opts, &err);          the journal is there
 *     (start the guard with wg__control_journal_fd)              live/guard.h
 *     wg__control_take(control, 0, WG_KNOB_POWER_LIMIT, &err);   the original value is in it
 *     wg__control_set(control, 0, WG_KNOB_POWER_LIMIT, 175, &applied, &err);
 *     wg__control_restore(control, report, context);
 *     wg__control_close(control);
 *
 * A knob has one holder at a time among all wattgov processes that share a state directory; a
 * second one is refused with the name of the first. Writes of others (nvidia-smi, a cluster's
 * agent) are noticed by reading back and reported, never fought: what they set is not restored
 * either. Locked clocks cannot be read back from NVML; there the journal is the truth.
 *
 * Owns: the journal file until it is ended.    Threads: one at a time.
 */
#ifndef WG_DEVICE_CONTROL_H
#define WG_DEVICE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "wattgov/device.h"

struct wg_control;

struct wg_control_opts {
    const char *state_dir; /* NULL: wg__state_dir's */
    const char *holder;    /* who, for messages and for others: "wattgov train: python train.py" */
    const char *root;      /* of the machine, as in wg_machine_opts; for whoever restores */
};

/* Makes the journal, empty, and holds it. Nothing is set. WG_EPERM, WG_EIO: the state directory
 * cannot be written (the text names it); WG_ENOMEM. */
enum wg_code wg__control_open(struct wg_control **out, struct wg_machine *machine,
                              const struct wg_control_opts *opts, struct wg_error *err);

/* The open file that whoever has it holds the journal by: for the guard. */
int wg__control_journal_fd(const struct wg_control *control);
const char *wg__control_journal_path(const struct wg_control *control);

/* Takes a knob of the device at this position: notes its original value. WG_EBUSY: another process
 * holds it (the text has its name and pid); WG_ESTATE: one that has died, and the driver would not
 * restore it; WG_EPERM: this process may not set it (why, and what to
 * do); WG_EUNSUPPORTED: there is no such knob. A stale journal that holds it is restored first. */
enum wg_code wg__control_take(struct wg_control *control, size_t device, enum wg_knob knob,
                              struct wg_error *err);

/* Sets a knob that was taken; SI units, NAN: what the driver chooses by itself. `*applied_out` (may
 * be NULL) is what the device then says (it may round), or `value` where it cannot be read back.
 * WG_EINVAL: out of the knob's range; WG_ESTATE: not taken; WG_ETIMEOUT, WG_ELOST, WG_EIO, ... of
 * the driver: whether the value acts is then not known, the journal has it. */
enum wg_code wg__control_set(struct wg_control *control, size_t device, enum wg_knob knob,
                             double value, double *applied_out, struct wg_error *err);

/* Whether the knob still has the value that we set last (within what the device rounds). */
struct wg_control_look {
    double value;    /* now; NAN: cannot be read */
    double expected; /* what we set; the original where we have set nothing */
    bool is_foreign; /* somebody else has written, or the driver was reloaded */
};
enum wg_code wg__control_look(struct wg_control *control, size_t device, enum wg_knob knob,
                              struct wg_control_look *out, struct wg_error *err);

/* One knob that was restored, or was left as somebody else has set it, or did not come back; or a
 * journal that cannot be read (`device` is its path, there is no knob) and was left in place. */
enum wg_restore_outcome {
    WG_RESTORE_DONE,
    WG_RESTORE_FOREIGN,
    WG_RESTORE_FAILED,
    WG_RESTORE_UNREADABLE
};
struct wg_restore_note {
    const char *device; /* its id */
    const char *label;  /* "gpu0" */
    enum wg_knob knob;
    double original; /* NAN: what the driver chooses by itself */
    double found;    /* before; NAN: cannot be read */
    enum wg_restore_outcome outcome;
    const char *holder;         /* whose journal it was */
    const struct wg_error *err; /* FAILED, UNREADABLE: why; else NULL */
};
typedef void wg_restore_report(const struct wg_restore_note *note, void *context);

/* Gives all knobs back that are not yet: each one tried on its own, ordered (a maximum is raised
 * before a minimum), one failure stops no other. Returns how many did not come back; they stay in
 * the journal. `report` may be NULL. */
size_t wg__control_restore(struct wg_control *control, wg_restore_report *report, void *context);

/* Restores what is not yet, ends the journal (it is removed unless something did not come back) and
 * frees. NULL does nothing. */
void wg__control_close(struct wg_control *control);

#endif
