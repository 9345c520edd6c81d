/* SPDX-License-Identifier: MIT
 *
 * What a governor sets on devices, and gives back; see control.h.
 *
 * Taking a knob, under the folder's lock:
 *
 *     look at all other journals -- one that is held has the knob --> refused, by its holder's name
 *                                -- a stale one has it -> let the lock go, restore it, begin anew
 *     read the original value, note it, let the lock go
 *
 * A holder whose process has died but whose journal is held still is being restored, by its guard
 * or by another command: that is waited for.
 *
 * Owns: see control.h.    Threads: one at a time.
 */
#include "device/control.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "device/control_setup.h"
#include "device/journal_folder.h"
#include "device/restore_knobs.h"
#include "device/restore_setup.h"

static const uint64_t restore_wait_ns = 30000000000;
static const struct timespec restore_poll = {.tv_nsec = 20000000};

struct wg_control {
    struct wg_machine *machine;
    struct wg_journal journal;
    const struct wg_machine_setup *setup; /* NULL but in tests */
    char folder[PATH_MAX];                /* of the journals */
};

/* The folder that has `path`, which has a slash. */
static void find_parent(const char *path, char out[static PATH_MAX])
{
    const size_t length = (size_t)(strrchr(path, '/') - path);
    memcpy(out, path, length);
    out[length] = '\0';
}

static enum wg_code make_journal(struct wg_control *control, const struct wg_control_opts *opts,
                                 struct wg_error *err)
{
    char root[PATH_MAX];
    const char *given = opts->root != NULL && opts->root[0] != '\0' ? opts->root : "/";
    if (realpath(given, root) == NULL)
        memcpy(root, "/", 2);
    const uint64_t timeout_ns = wg__machine_call_timeout_ns(control->machine);
    const enum wg_code code = wg__journal_make(&control->journal, opts->state_dir,
                                               opts->holder != NULL ? opts->holder : "wattgov",
                                               root, (unsigned)(timeout_ns / 1000000U), err);
    if (code != WG_OK)
        return code;
    find_parent(control->journal.path, control->folder);
    return WG_OK;
}

enum wg_code wg__control_open_setup(struct wg_control **out, struct wg_machine *machine,
                                    const struct wg_control_opts *opts,
                                    const struct wg_machine_setup *setup, struct wg_error *err)
{
    struct wg_control *control = wg__alloc_zeroed(1, sizeof *control);
    if (control == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for a journal of settings");
    control->machine = machine;
    control->setup = setup;
    const enum wg_code code = make_journal(control, opts, err);
    if (code != WG_OK) {
        wg__free(control);
        return code;
    }
    *out = control;
    return WG_OK;
}

enum wg_code wg__control_open(struct wg_control **out, struct wg_machine *machine,
                              const struct wg_control_opts *opts, struct wg_error *err)
{
    return wg__control_open_setup(out, machine, opts, NULL, err);
}

int wg__control_journal_fd(const struct wg_control *control)
{
    return control->journal.fd;
}

const char *wg__control_journal_path(const struct wg_control *control)
{
    return control->journal.path;
}

/* -- Taking ----------------------------------------------------------------------------------- */

/* A search of the other journals for a knob. */
struct search {
    const struct wg_control *control;
    const char *device;
    enum wg_knob knob;
    enum { FREE, HELD, DYING, STALE } found;
    int64_t pid;
    char holder[160];
    struct wg_error why_not; /* what a dead holder has set does not come back; "": not known */
};

static bool visit(struct wg_journal_look *look, void *context)
{
    struct search *search = context;
    const struct wg_journal *journal = look->journal;
    if (journal == NULL || strcmp(look->path, search->control->journal.path) == 0 ||
        strcmp(journal->header.root, search->control->journal.header.root) != 0 ||
        wg__journal_place(&journal->header) != WG_JOURNAL_HERE || journal->is_ended ||
        wg__journal_find(journal, search->device, search->knob) == NULL)
        return true;
    search->pid = journal->header.pid;
    (void)snprintf(search->holder, sizeof search->holder, "%s", journal->header.holder);
    if (!look->is_live)
        search->found = STALE;
    else
        search->found = wg__journal_has_writer(&journal->header) ? HELD : DYING;
    return search->found != HELD;
}

static enum wg_code fail_held(const struct search *search, const char *label, struct wg_error *err)
{
    return wg__fail(err, search->found == STALE ? WG_ESTATE : WG_EBUSY,
                    "%s: %s is held by '%s' (pid %lld)%s%s%s", label, wg_knob_key(search->knob),
                    search->holder, (long long)search->pid,
                    search->found == HELD ? "" : ", which has died; it is not restored yet",
                    search->why_not.text[0] != '\0' ? ": " : "", search->why_not.text);
}

/* Keeps why a knob of the stale journals does not come back, for the message. */
static void note_failure(const struct wg_restore_note *note, void *context)
{
    struct search *search = context;
    if (note->outcome == WG_RESTORE_FAILED && note->knob == search->knob &&
        strcmp(note->device, search->device) == 0)
        search->why_not = *note->err;
}

/* Gets the folder's lock while nobody else has the knob. */
static enum wg_code lock_free_knob(struct wg_control *control, const struct wg_device_info *info,
                                   enum wg_knob knob, int *lock_out, struct wg_error *err)
{
    const uint64_t until_ns = wg__clock_ns() + restore_wait_ns;
    struct search search = {.control = control, .device = info->id, .knob = knob};
    for (bool has_restored = false;;) {
        search.found = FREE;
        enum wg_code code = wg__journal_lock(control->folder, lock_out, err);
        if (code != WG_OK)
            return code;
        code = wg__journal_each(control->folder, visit, &search, err);
        if (code == WG_OK && search.found == FREE)
            return WG_OK;
        wg__journal_unlock(*lock_out);
        if (code != WG_OK)
            return code;
        if (search.found == HELD || wg__clock_ns() >= until_ns ||
            (search.found == STALE && has_restored))
            return fail_held(&search, info->label, err);
        if (search.found == STALE) {
            char state[PATH_MAX];
            struct wg_restore_summary summary;
            find_parent(control->folder, state);
            (void)wg__restore_stale_setup(state, control->setup, note_failure, &search, &summary,
                                          NULL);
            has_restored = true;
        } else {
            (void)nanosleep(&restore_poll, NULL);
        }
    }
}

static enum wg_code check_knob(const struct wg_device_info *info, enum wg_knob knob,
                               struct wg_error *err)
{
    const struct wg_knob_info *one = &info->knobs[knob];
    const char *why = one->why_not != NULL ? one->why_not : "its driver lists none";
    if (!one->is_present)
        return wg__fail(err, WG_EUNSUPPORTED, "%s has no %s: %s", info->label, wg_knob_key(knob),
                        why);
    if (!one->is_writable)
        return wg__fail(err, WG_EPERM, "%s: %s cannot be set: %s%s%s", info->label,
                        wg_knob_key(knob), why, one->remedy != NULL ? "; " : "",
                        one->remedy != NULL ? one->remedy : "");
    return WG_OK;
}

enum wg_code wg__control_take(struct wg_control *control, size_t device, enum wg_knob knob,
                              struct wg_error *err)
{
    struct wg_device *one = wg_machine_device(control->machine, device);
    if (one == NULL || knob >= WG_KNOB_COUNT)
        return wg__fail(err, WG_EINVAL, "there is no knob %d of device %zu", (int)knob, device);
    const struct wg_device_info *info = wg_device_get_info(one);
    enum wg_code code = info->state != WG_OK ? wg__fail(err, info->state, "%s", info->state_text)
                                             : check_knob(info, knob, err);
    if (code != WG_OK || wg__journal_find(&control->journal, info->id, knob) != NULL)
        return code; /* WG_OK: it is ours already */
    int lock = -1;
    code = lock_free_knob(control, info, knob, &lock, err);
    if (code != WG_OK)
        return code;
    struct wg_journal_knob taken = {.device = info->id,
                                    .label = info->label,
                                    .knob = knob,
                                    .original = NAN,
                                    .step = info->knobs[knob].step};
    code = wg__device_get_knob(one, knob, &taken.original, err);
    if (code == WG_OK)
        code = wg__journal_take(&control->journal, &taken, err);
    wg__journal_unlock(lock);
    return code;
}

/* -- Setting ---------------------------------------------------------------------------------- */

static enum wg_code find(const struct wg_control *control, size_t device, enum wg_knob knob,
                         struct wg_device **device_out, struct wg_journal_knob **out,
                         struct wg_error *err)
{
    *device_out = wg_machine_device(control->machine, device);
    if (*device_out == NULL || knob >= WG_KNOB_COUNT)
        return wg__fail(err, WG_EINVAL, "there is no knob %d of device %zu", (int)knob, device);
    const struct wg_device_info *info = wg_device_get_info(*device_out);
    *out = wg__journal_find(&control->journal, info->id, knob);
    if (*out == NULL)
        return wg__fail(err, WG_ESTATE, "%s: %s was not taken, so it is not set", info->label,
                        wg_knob_key(knob));
    return WG_OK;
}

static enum wg_code check_range(const struct wg_device_info *info, enum wg_knob knob, double value,
                                struct wg_error *err)
{
    const struct wg_knob_info *one = &info->knobs[knob];
    const double slack = 1e-9 * fabs(value);
    if (isnan(value) || (value >= one->min - slack && value <= one->max + slack))
        return WG_OK;
    const char *unit = wg_knob_unit(knob);
    return wg__fail(err, WG_EINVAL, "%s: %s of %.6g %s is outside %.6g..%.6g %s", info->label,
                    wg_knob_key(knob), value, unit, one->min, one->max, unit);
}

/* The driver has said no. Where it is certain that nothing was set, the journal forgets the try:
 * else a clock that somebody else has taken would be unlocked for it at the end. */
static void forget_try(struct wg_control *control, struct wg_device *device,
                       struct wg_journal_knob *knob, enum wg_code code)
{
    double now = NAN;
    const bool is_no =
        code == WG_EPERM || code == WG_EBUSY || code == WG_EUNSUPPORTED || code == WG_EINVAL;
    if (!is_no || wg__device_get_knob(device, knob->knob, &now, NULL) != WG_OK)
        return;
    const double before =
        knob->is_confirmed && knob->value_count > 1 ? knob->values[0] : knob->original;
    if (isnan(now) || (knob->value_count <= 2 && wg__journal_is_same(knob, now, before)))
        (void)wg__journal_refused(&control->journal, knob, NULL);
}

enum wg_code wg__control_set(struct wg_control *control, size_t device, enum wg_knob knob,
                             double value, double *applied_out, struct wg_error *err)
{
    struct wg_device *one = NULL;
    struct wg_journal_knob *taken = NULL;
    enum wg_code code = find(control, device, knob, &one, &taken, err);
    if (taken == NULL)
        return code;
    code = check_range(wg_device_get_info(one), knob, value, err);
    if (code == WG_OK)
        code = wg__journal_set(&control->journal, taken, value, err);
    if (code != WG_OK)
        return code;
    code = wg__device_set_knob(one, knob, value, err);
    if (code != WG_OK) {
        forget_try(control, one, taken, code);
        return code;
    }
    double applied = NAN;
    if (wg__device_get_knob(one, knob, &applied, NULL) != WG_OK || isnan(applied))
        applied = value;
    /* Without this line the journal knows what was asked for: enough to restore it. */
    (void)wg__journal_applied(&control->journal, taken, applied, NULL);
    if (applied_out != NULL)
        *applied_out = applied;
    return WG_OK;
}

enum wg_code wg__control_look(struct wg_control *control, size_t device, enum wg_knob knob,
                              struct wg_control_look *out, struct wg_error *err)
{
    struct wg_device *one = NULL;
    struct wg_journal_knob *taken = NULL;
    double value = NAN;
    enum wg_code code = find(control, device, knob, &one, &taken, err);
    if (taken == NULL)
        return code;
    code = wg__device_get_knob(one, knob, &value, err);
    if (code != WG_OK)
        return code;
    const size_t count = taken->value_count;
    const double expected = count > 0 ? taken->values[count - 1] : taken->original;
    *out = (struct wg_control_look){.value = value, .expected = expected};
    if (isnan(value))
        return WG_OK;
    if (count == 0)
        out->is_foreign = !wg__journal_is_same(taken, value, expected);
    else if (wg__journal_is_same(taken, value, taken->original))
        out->is_foreign = !wg__journal_is_same(taken, expected, taken->original);
    else
        out->is_foreign = wg__journal_judge(taken, value) == WG_JOURNAL_FOREIGN;
    return WG_OK;
}

/* -- Giving back ------------------------------------------------------------------------------ */

size_t wg__control_restore(struct wg_control *control, wg_restore_report *report, void *context)
{
    struct wg_restore_summary summary = {0};
    return wg__restore_knobs(&control->journal, control->machine, NULL, true, report, context,
                             &summary);
}

void wg__control_close(struct wg_control *control)
{
    if (control == NULL)
        return;
    if (wg__control_restore(control, NULL, NULL) == 0)
        (void)wg__journal_remove(&control->journal, NULL);
    wg__journal_fini(&control->journal);
    wg__free(control);
}
