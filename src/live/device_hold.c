/* SPDX-License-Identifier: MIT
 *
 * Knobs held together; see device_hold.h.
 */
#include "live/device_hold.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { LINE_SIZE = 640 };

static void say(struct wg_device_hold *hold, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct wg_device_hold *hold, const char *format, ...)
{
    char line[LINE_SIZE];
    if (hold->say == NULL)
        return;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    hold->say(line, hold->context);
}

static void report_restore(const struct wg_restore_note *note, void *context)
{
    struct wg_device_hold *hold = context;
    if (note->outcome == WG_RESTORE_FAILED)
        say(hold, "%s: %s did not come back: %s; run 'wattgov restore'", note->label,
            wg_knob_key(note->knob), note->err->text);
    else if (note->outcome == WG_RESTORE_FOREIGN)
        say(hold, "%s: %s was set by somebody else meanwhile: left as it is", note->label,
            wg_knob_key(note->knob));
}

enum wg_code wg__device_hold_open(struct wg_device_hold *hold, struct wg_machine *machine,
                                  const struct wg_control_opts *opts, struct wg_error *err)
{
    hold->machine = machine;
    hold->control = NULL;
    hold->guard = (struct wg_guard){.pidfd = -1};
    hold->count = 0;
    hold->is_foreign = hold->is_lost = false;
    hold->not_restored = 0;
    enum wg_code code = wg__control_open(&hold->control, machine, opts, err);
    if (code == WG_OK)
        code = wg__guard_start(&hold->guard, NULL, wg__control_journal_fd(hold->control), err);
    if (code != WG_OK)
        wg__device_hold_close(hold);
    return code;
}

enum wg_code wg__device_hold_take(struct wg_device_hold *hold, size_t device, enum wg_knob knob,
                                  struct wg_error *err)
{
    if (hold->count == WG_DEVICE_HOLDS_MAX)
        return wg__fail(err, WG_EINVAL, "more than %d knobs of devices", WG_DEVICE_HOLDS_MAX);
    const enum wg_code code = wg__control_take(hold->control, device, knob, err);
    if (code != WG_OK)
        return code;
    hold->held[hold->count].device = device;
    hold->held[hold->count].knob = knob;
    hold->held[hold->count++].was_set = false;
    return WG_OK;
}

/* What somebody else has set is told once. */
static bool look_at_knobs(struct wg_device_hold *hold)
{
    for (size_t i = 0; i < hold->count && !hold->is_foreign; i++) {
        struct wg_control_look look;
        const enum wg_knob knob = hold->held[i].knob;
        if (!hold->held[i].was_set ||
            wg__control_look(hold->control, hold->held[i].device, knob, &look, NULL) != WG_OK ||
            !look.is_foreign)
            continue;
        const bool is_limit = knob == WG_KNOB_POWER_LIMIT;
        const double scale = is_limit ? 1 : 1e-6;
        const struct wg_device_info *info =
            wg_device_get_info(wg_machine_device(hold->machine, hold->held[i].device));
        say(hold, "%s: somebody else has set %s to %.0f %s (it was %.0f): left as it is",
            info->label, wg_knob_key(knob), look.value * scale, is_limit ? "W" : "MHz",
            look.expected * scale);
        hold->is_foreign = true;
    }
    return !hold->is_foreign;
}

static bool tend_guard(struct wg_device_hold *hold)
{
    struct wg_error err;
    if (wg__guard_is_alive(&hold->guard))
        return true;
    wg__guard_stop(&hold->guard);
    if (wg__guard_start(&hold->guard, NULL, wg__control_journal_fd(hold->control), &err) == WG_OK) {
        say(hold, "the guard has died; another one watches now");
        return true;
    }
    /* Without a guard nothing may stay set. */
    say(hold, "the guard has died and cannot be replaced: %s; all is given back", err.text);
    hold->not_restored += wg__control_restore(hold->control, report_restore, hold);
    hold->is_lost = true;
    return false;
}

bool wg__device_hold_tend(struct wg_device_hold *hold)
{
    if (hold->control == NULL)
        return true;
    if (hold->is_foreign || hold->is_lost)
        return false;
    return tend_guard(hold) && look_at_knobs(hold);
}

enum wg_code wg__device_hold_set(struct wg_device_hold *hold, size_t device, enum wg_knob knob,
                                 double value, double *applied_out, struct wg_error *err)
{
    if (!wg__device_hold_tend(hold))
        return wg__fail(err, WG_EBUSY, "%s: %s is no longer ours to set",
                        wg_device_get_info(wg_machine_device(hold->machine, device))->label,
                        wg_knob_key(knob));
    const enum wg_code code = wg__control_set(hold->control, device, knob, value, applied_out, err);
    for (size_t i = 0; i < hold->count && code == WG_OK; i++)
        if (hold->held[i].device == device && hold->held[i].knob == knob)
            hold->held[i].was_set = true;
    return code;
}

void wg__device_hold_close(struct wg_device_hold *hold)
{
    if (hold->control != NULL)
        hold->not_restored += wg__control_restore(hold->control, report_restore, hold);
    wg__control_close(hold->control);
    hold->control = NULL;
    if (hold->guard.pid > 0)
        wg__guard_stop(&hold->guard);
    hold->guard = (struct wg_guard){.pidfd = -1};
}
