/* SPDX-License-Identifier: MIT
 *
 * Giving back the knobs of one journal.
 *
 * All knobs are read first, and judged by what the journal says may stand there (journal.h). Then
 * they are set in this order, which is also that of the report:
 *
 *     1. what raises or frees before what lowers: a maximum must not fall below a minimum that
 *        somebody set meanwhile, and a limit that is raised never slows anybody
 *     2. clocks before power limits: a lock that is left slows a job more than a limit does
 *     3. in the order in which they were taken
 *
 * A knob that does not come back stops no other (geopm#4010). Where settings depend on each other,
 * those that failed are tried once more when the others are done (geopm#2451). Each is read back:
 * some drivers take a value and do nothing (geopm#3950).
 *
 * Owns: nothing.    Threads: one at a time.
 */
#include "device/restore_knobs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "device/machine.h"

struct task {
    struct wg_journal_knob *knob;
    struct wg_device *device; /* NULL: it is not here */
    double found;
    bool lowers;
    size_t position;
    enum wg_code code; /* WG_OK: came back */
    struct wg_error err;
};

struct pass {
    struct wg_journal *journal;
    struct wg_machine *machine;
    const struct wg_error *cause;
    wg_restore_report *report;
    void *context;
    struct wg_restore_summary *summary;
};

static struct wg_device *find_device(struct wg_machine *machine, const char *id)
{
    for (size_t i = 0; machine != NULL && i < wg_machine_device_count(machine); i++) {
        struct wg_device *device = wg_machine_device(machine, i);
        const char *other = wg_device_get_info(device)->id;
        if (other != NULL && strcmp(other, id) == 0)
            return device;
    }
    return NULL;
}

static void tell(const struct pass *pass, const struct task *task, enum wg_restore_outcome outcome)
{
    const struct wg_restore_note note = {.device = task->knob->device,
                                         .label = task->knob->label,
                                         .knob = task->knob->knob,
                                         .original = task->knob->original,
                                         .found = task->found,
                                         .outcome = outcome,
                                         .holder = pass->journal->header.holder,
                                         .err = outcome == WG_RESTORE_FAILED ? &task->err : NULL};
    if (pass->report != NULL)
        pass->report(&note, pass->context);
}

/* The journal's line may fail: then the next one who reads it finds the original value and has
 * nothing to do. */
static void finish(const struct pass *pass, const struct task *task, bool is_foreign)
{
    (void)wg__journal_given_back(pass->journal, task->knob, is_foreign, NULL);
    if (is_foreign)
        pass->summary->foreign++;
    else
        pass->summary->restored++;
    tell(pass, task, is_foreign ? WG_RESTORE_FOREIGN : WG_RESTORE_DONE);
}

/* Why a device is likely not here: one that hangs before it has told its id has none, and a driver
 * that hangs has no devices. NULL: nothing has failed. */
static const char *find_trouble(const struct wg_machine *machine)
{
    for (size_t i = 0; i < wg_machine_device_count(machine); i++) {
        const struct wg_device_info *info = wg_device_get_info(wg_machine_device(machine, i));
        if (info->state != WG_OK)
            return info->state_text;
    }
    for (size_t i = 0; i < wg_machine_backend_count(machine); i++) {
        const struct wg_backend_info *backend = wg_machine_backend(machine, i);
        if (backend->state != WG_OK && backend->state != WG_ENODEV)
            return backend->text;
    }
    return NULL;
}

static enum wg_code look(const struct pass *pass, struct task *task)
{
    task->device = find_device(pass->machine, task->knob->device);
    if (pass->machine == NULL)
        return wg__fail(&task->err, pass->cause->code, "%s", pass->cause->text);
    if (task->device == NULL) {
        const char *trouble = find_trouble(pass->machine);
        return wg__fail(&task->err, WG_ENODEV, "%s: there is no device %s now%s%s",
                        task->knob->label, task->knob->device, trouble != NULL ? "; " : "",
                        trouble != NULL ? trouble : "");
    }
    const enum wg_code code =
        wg__device_get_knob(task->device, task->knob->knob, &task->found, &task->err);
    if (code != WG_EDATA)
        return code;
    task->found = NAN; /* set half way: nobody sets so */
    return WG_OK;
}

/* Looks at a knob; true: it must be set. */
static bool judge(const struct pass *pass, struct task *task)
{
    task->found = NAN;
    task->code = look(pass, task);
    if (task->code != WG_OK)
        return true;
    const enum wg_journal_verdict verdict = wg__journal_judge(task->knob, task->found);
    if (verdict != WG_JOURNAL_RESTORE)
        finish(pass, task, verdict == WG_JOURNAL_FOREIGN);
    task->lowers = task->found > task->knob->original; /* false where either is not known */
    return verdict == WG_JOURNAL_RESTORE;
}

static enum wg_code restore(struct task *task)
{
    struct wg_journal_knob *knob = task->knob;
    double now = NAN;
    enum wg_code code = wg__device_set_knob(task->device, knob->knob, knob->original, &task->err);
    if (code != WG_OK)
        return code;
    code = wg__device_get_knob(task->device, knob->knob, &now, &task->err);
    if (code != WG_OK || isnan(now) || isnan(knob->original) ||
        wg__journal_is_same(knob, now, knob->original))
        return code;
    return wg__fail(&task->err, WG_EIO,
                    "%s: %s was set back to %.6g %s and taken, but it stands at %.6g", knob->label,
                    wg_knob_key(knob->knob), knob->original, wg_knob_unit(knob->knob), now);
}

static int rank_of(const struct task *task)
{
    static const int ranks[WG_KNOB_COUNT] = {[WG_KNOB_GPU_CLOCK] = 0,
                                             [WG_KNOB_MEMORY_CLOCK] = 1,
                                             [WG_KNOB_CPU_CLOCK] = 2,
                                             [WG_KNOB_POWER_LIMIT] = 3};
    return (task->lowers ? 4 : 0) + ranks[task->knob->knob];
}

static int compare_tasks(const void *left, const void *right)
{
    const struct task *a = left;
    const struct task *b = right;
    const int rank = rank_of(a) - rank_of(b);
    return rank != 0 ? rank : (a->position > b->position) - (a->position < b->position);
}

/* Sets those that have not come back; how many still have not. */
static size_t run_tasks(const struct pass *pass, struct task *tasks, size_t count, bool is_again)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        struct task *task = &tasks[i];
        if (is_again && !task->knob->is_done)
            (void)judge(pass, task);
        if (task->knob->is_done)
            continue;
        if (task->code == WG_OK)
            task->code = restore(task);
        if (task->code == WG_OK)
            finish(pass, task, false);
        else
            left++;
    }
    return left;
}

/* Nothing of ours was ever set on it: it is let go without a word. */
static void let_go(struct wg_journal *journal, struct wg_journal_knob *knob)
{
    (void)wg__journal_given_back(journal, knob, false, NULL);
}

size_t wg__restore_knobs(struct wg_journal *journal, struct wg_machine *machine,
                         const struct wg_error *cause, bool tells_failures,
                         wg_restore_report *report, void *context,
                         struct wg_restore_summary *summary)
{
    const struct pass pass = {.journal = journal,
                              .machine = machine,
                              .cause = cause,
                              .report = report,
                              .context = context,
                              .summary = summary};
    size_t count = 0;
    struct task *tasks = wg__alloc_zeroed(journal->knob_count + 1, sizeof *tasks);
    summary->failed = 0;
    for (size_t i = 0; i < journal->knob_count; i++) {
        struct wg_journal_knob *knob = &journal->knobs[i];
        if (knob->is_done)
            continue;
        if (knob->value_count == 0)
            let_go(journal, knob);
        else if (tasks == NULL)
            summary->failed++; /* no memory: all of them wait for the next try */
        else
            tasks[count++] = (struct task){.knob = knob, .position = i};
    }
    if (tasks == NULL)
        return summary->failed;
    size_t todo = 0;
    for (size_t i = 0; i < count; i++) {
        if (judge(&pass, &tasks[i]))
            tasks[todo++] = tasks[i];
    }
    qsort(tasks, todo, sizeof *tasks, compare_tasks);
    size_t left = run_tasks(&pass, tasks, todo, false);
    if (left > 0 && machine != NULL)
        left = run_tasks(&pass, tasks, todo, true);
    for (size_t i = 0; i < todo && tells_failures; i++) {
        if (!tasks[i].knob->is_done)
            tell(&pass, &tasks[i], WG_RESTORE_FAILED);
    }
    summary->failed = left;
    wg__free(tasks);
    return left;
}
