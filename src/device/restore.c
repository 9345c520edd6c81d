/* SPDX-License-Identifier: MIT
 *
 * Working off what dead governors have left.
 *
 * Stale journals are taken (each by its own lock) under the folder's lock, which is let go before a
 * device is called: a hung driver must not keep others from making journals. Then, for one journal
 * after another, the machine that it names is opened and its knobs are given back
 * (restore_knobs.h).
 *
 * Owns: nothing.    Threads: any.
 */
#include "device/restore.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "device/journal_folder.h"
#include "device/restore_knobs.h"
#include "device/restore_setup.h"

static const uint64_t first_wait_ns = 100000000;
static const uint64_t longest_wait_ns = 5000000000;
static const uint64_t ns_per_s = 1000000000;

/* -- The machine of a journal ----------------------------------------------------------------- */

static enum wg_code open_machine(const struct wg_journal_header *header,
                                 const struct wg_machine_setup *setup, struct wg_machine **out,
                                 struct wg_error *err)
{
    /* Not what CUDA_VISIBLE_DEVICES of this command lets through. */
    static const char *const all[] = {"all"};
    const struct wg_machine_opts opts =
        WG_MACHINE_OPTS(.root = header->root, .gpus = all, .gpu_count = 1,
                        .call_timeout_ms = header->timeout_ms);
    *out = NULL;
    return setup != NULL ? wg__machine_open_setup(out, setup, &opts, err)
                         : wg_machine_open(out, &opts, err);
}

/* Whether all devices of the knobs that are left answer as far as it is known. */
static bool has_all(const struct wg_journal *journal, struct wg_machine *machine)
{
    for (size_t i = 0; i < journal->knob_count; i++) {
        bool is_there = journal->knobs[i].is_done;
        for (size_t j = 0; j < wg_machine_device_count(machine) && !is_there; j++) {
            const struct wg_device_info *info = wg_device_get_info(wg_machine_device(machine, j));
            is_there = info->state == WG_OK && info->id != NULL &&
                       strcmp(info->id, journal->knobs[i].device) == 0;
        }
        if (!is_there)
            return false;
    }
    return true;
}

/* -- Stale ones ------------------------------------------------------------------------------- */

struct stale {
    struct wg_journal *journals;
    size_t count;
    size_t capacity;
    wg_restore_report *report;
    void *context;
    struct wg_restore_summary *summary;
};

static void tell_unreadable(const struct stale *stale, const struct wg_journal_look *look)
{
    stale->summary->unreadable++;
    const struct wg_restore_note note = {.device = look->path,
                                         .label = look->path,
                                         .knob = WG_KNOB_COUNT,
                                         .original = NAN,
                                         .found = NAN,
                                         .outcome = WG_RESTORE_UNREADABLE,
                                         .holder = "?",
                                         .err = look->err};
    if (stale->report != NULL)
        stale->report(&note, stale->context);
}

/* Room for one more. Without memory a journal waits for the next command. */
static bool reserve(struct stale *stale)
{
    if (stale->count < stale->capacity)
        return true;
    const size_t capacity = 2 * stale->capacity + 4;
    struct wg_journal *journals =
        wg__realloc_array(stale->journals, capacity, sizeof *stale->journals);
    if (journals == NULL)
        return false;
    stale->journals = journals;
    stale->capacity = capacity;
    return true;
}

static bool collect(struct wg_journal_look *look, void *context)
{
    struct stale *stale = context;
    if (look->is_live) {
        stale->summary->live++;
        return true;
    }
    if (look->journal == NULL) {
        tell_unreadable(stale, look);
        return true;
    }
    /* One whose holder died before it could set anything may lack a header: it is nobody's. */
    const bool has_nothing = look->journal->is_ended || wg__journal_is_done(look->journal);
    const enum wg_journal_place place = wg__journal_place(&look->journal->header);
    if (has_nothing || place == WG_JOURNAL_GONE) {
        (void)wg__journal_remove(look->journal, NULL);
        return true;
    }
    if (place == WG_JOURNAL_ELSEWHERE)
        return true;
    if (reserve(stale)) {
        stale->journals[stale->count++] = *look->journal;
        look->is_kept = true;
    }
    return true;
}

static void work_off(struct wg_journal *journal, const struct wg_machine_setup *setup,
                     struct stale *stale)
{
    struct wg_error err = {0};
    struct wg_machine *machine = NULL;
    struct wg_restore_summary one = {0};
    (void)open_machine(&journal->header, setup, &machine, &err);
    if (wg__restore_knobs(journal, machine, &err, true, stale->report, stale->context, &one) == 0)
        (void)wg__journal_remove(journal, NULL);
    wg_machine_close(machine);
    stale->summary->journals++;
    stale->summary->restored += one.restored;
    stale->summary->foreign += one.foreign;
    stale->summary->failed += one.failed;
}

enum wg_code wg__restore_stale_setup(const char *state_dir, const struct wg_machine_setup *setup,
                                     wg_restore_report *report, void *context,
                                     struct wg_restore_summary *out, struct wg_error *err)
{
    struct stale stale = {.report = report, .context = context, .summary = out};
    *out = (struct wg_restore_summary){0};
    const enum wg_code code = wg__journal_each_below(state_dir, collect, &stale, err);
    for (size_t i = 0; i < stale.count; i++) {
        work_off(&stale.journals[i], setup, &stale);
        wg__journal_fini(&stale.journals[i]);
    }
    wg__free(stale.journals);
    return code;
}

enum wg_code wg__restore_stale(const char *state_dir, wg_restore_report *report, void *context,
                               struct wg_restore_summary *out, struct wg_error *err)
{
    return wg__restore_stale_setup(state_dir, NULL, report, context, out, err);
}

/* -- The guard's ------------------------------------------------------------------------------ */

/* Tries until all is back or `until_ns`; the machine is opened anew where a device is missing. */
static void insist(struct wg_journal *journal, const struct wg_machine_setup *setup,
                   uint64_t until_ns, wg_restore_report *report, void *context,
                   struct wg_restore_summary *out)
{
    struct wg_machine *machine = NULL;
    uint64_t wait_ns = first_wait_ns;
    for (bool is_last = false; !is_last;) {
        struct wg_error err = {0};
        if (machine != NULL && !has_all(journal, machine)) {
            wg_machine_close(machine);
            machine = NULL;
        }
        if (machine == NULL)
            (void)open_machine(&journal->header, setup, &machine, &err);
        is_last = wg__clock_ns() + wait_ns >= until_ns;
        if (wg__restore_knobs(journal, machine, &err, is_last, report, context, out) == 0)
            break;
        if (!is_last)
            (void)nanosleep(&(struct timespec){.tv_sec = (time_t)(wait_ns / ns_per_s),
                                               .tv_nsec = (long)(wait_ns % ns_per_s)},
                            NULL);
        wait_ns = 2 * wait_ns < longest_wait_ns ? 2 * wait_ns : longest_wait_ns;
    }
    wg_machine_close(machine);
}

/* The name of an open file; "" when it has none any more. */
static void name_of(int fd, char out[static PATH_MAX])
{
    char link[64];
    struct stat status;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, out, PATH_MAX - 1);
    out[length > 0 ? length : 0] = '\0';
    if (fstat(fd, &status) != 0 || status.st_nlink == 0)
        out[0] = '\0';
}

enum wg_code wg__restore_journal_setup(int fd, const struct wg_machine_setup *setup,
                                       uint64_t patience_ns, wg_restore_report *report,
                                       void *context, struct wg_restore_summary *out,
                                       struct wg_error *err)
{
    const uint64_t until_ns = wg__clock_ns() + patience_ns;
    char path[PATH_MAX];
    *out = (struct wg_restore_summary){0};
    name_of(fd, path);
    if (path[0] == '\0')
        return WG_OK; /* removed: it was ended */
    struct wg_journal journal;
    const enum wg_code code = wg__journal_read(&journal, fd, true, path, err);
    if (code == WG_OK && !journal.is_ended) {
        out->journals = 1;
        insist(&journal, setup, until_ns, report, context, out);
    }
    if (code == WG_OK && out->failed == 0)
        (void)wg__journal_remove(&journal, NULL);
    wg__journal_fini(&journal);
    return code;
}

enum wg_code wg__restore_journal(int fd, uint64_t patience_ns, wg_restore_report *report,
                                 void *context, struct wg_restore_summary *out,
                                 struct wg_error *err)
{
    return wg__restore_journal_setup(fd, NULL, patience_ns, report, context, out, err);
}

enum wg_code wg__restore_is_ended(int fd, bool *out, struct wg_error *err)
{
    char path[PATH_MAX];
    name_of(fd, path);
    *out = true;
    if (path[0] == '\0')
        return WG_OK;
    struct wg_journal journal;
    const enum wg_code code = wg__journal_read(&journal, fd, true, path, err);
    *out = code == WG_OK && journal.is_ended;
    wg__journal_fini(&journal);
    return code;
}
