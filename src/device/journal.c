/* SPDX-License-Identifier: MIT
 *
 * The model of a journal and the lines that change it.
 *
 * A write that fails (full disk) is cut off again, so that the next line does not stand behind half
 * a line; where not even that works the next write tries it first.
 *
 * Owns: see struct wg_journal.    Threads: one at a time.
 */
#include "device/journal.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "device/journal_lines.h"

/* -- The model -------------------------------------------------------------------------------- */

struct wg_journal_knob *wg__journal_find(const struct wg_journal *journal, const char *device,
                                         enum wg_knob knob)
{
    for (size_t i = 0; i < journal->knob_count; i++) {
        struct wg_journal_knob *one = &journal->knobs[i];
        if (!one->is_done && one->knob == knob && strcmp(one->device, device) == 0)
            return one;
    }
    return NULL;
}

bool wg__journal_is_done(const struct wg_journal *journal)
{
    for (size_t i = 0; i < journal->knob_count; i++) {
        if (!journal->knobs[i].is_done)
            return false;
    }
    return true;
}

/* Room for one knob more. */
static enum wg_code reserve_knob(struct wg_journal *journal)
{
    if (journal->knob_count < journal->knob_capacity)
        return WG_OK;
    const size_t capacity = 2 * journal->knob_capacity + 8;
    struct wg_journal_knob *knobs =
        wg__realloc_array(journal->knobs, capacity, sizeof *journal->knobs);
    if (knobs == NULL)
        return WG_ENOMEM;
    journal->knobs = knobs;
    journal->knob_capacity = capacity;
    return WG_OK;
}

/* Room for one value more. */
static enum wg_code reserve_value(struct wg_journal_knob *knob)
{
    if (knob->value_count < knob->value_capacity)
        return WG_OK;
    const size_t capacity = 2 * knob->value_capacity + 8;
    double *values = wg__realloc_array(knob->values, capacity, sizeof *values);
    if (values == NULL)
        return WG_ENOMEM;
    knob->values = values;
    knob->value_capacity = capacity;
    return WG_OK;
}

enum wg_code wg__journal_note_take(struct wg_journal *journal, const struct wg_journal_knob *knob)
{
    struct wg_journal_knob taken = {.device = wg__arena_strdup(&journal->arena, knob->device),
                                    .label = wg__arena_strdup(&journal->arena, knob->label),
                                    .knob = knob->knob,
                                    .original = knob->original,
                                    .step = knob->step};
    if (taken.device == NULL || taken.label == NULL || reserve_knob(journal) != WG_OK)
        return WG_ENOMEM;
    journal->knobs[journal->knob_count++] = taken;
    return WG_OK;
}

enum wg_code wg__journal_note_set(struct wg_journal_knob *knob, double value)
{
    if (reserve_value(knob) != WG_OK)
        return WG_ENOMEM;
    knob->values[knob->value_count++] = value;
    return WG_OK;
}

void wg__journal_note_applied(struct wg_journal_knob *knob, double value)
{
    if (knob->value_count == 0)
        return; /* never set: no line of ours says so */
    knob->values[0] = value;
    knob->value_count = 1;
    knob->is_confirmed = true;
}

void wg__journal_note_refused(struct wg_journal_knob *knob)
{
    if (knob->value_count > (knob->is_confirmed ? 1U : 0U))
        knob->value_count--;
}

/* How far apart two values may be and still be one: what the device's steps round, and for a value
 * that was asked for and not read back, what a driver may round it to. */
static double tolerance(const struct wg_journal_knob *knob, double value, bool is_confirmed)
{
    const double step = isnan(knob->step) ? 0.0 : knob->step;
    return fmax(step, fabs(value) * (is_confirmed ? 1e-6 : 0.02));
}

static bool is_near(const struct wg_journal_knob *knob, double found, double value,
                    bool is_confirmed)
{
    return fabs(found - value) <= tolerance(knob, value, is_confirmed);
}

bool wg__journal_is_same(const struct wg_journal_knob *knob, double value, double other)
{
    if (isnan(value) || isnan(other))
        return isnan(value) && isnan(other);
    return is_near(knob, value, other, true);
}

enum wg_journal_verdict wg__journal_judge(const struct wg_journal_knob *knob, double found)
{
    if (knob->is_done || knob->value_count == 0)
        return WG_JOURNAL_LEAVE;
    if (isnan(found))
        return WG_JOURNAL_RESTORE;
    if (is_near(knob, found, knob->original, true))
        return WG_JOURNAL_LEAVE;
    for (size_t i = 0; i < knob->value_count; i++) {
        if (is_near(knob, found, knob->values[i], i == 0 && knob->is_confirmed))
            return WG_JOURNAL_RESTORE;
    }
    return WG_JOURNAL_FOREIGN;
}

/* -- Lines ------------------------------------------------------------------------------------ */

/* Takes half a line away. */
static enum wg_code mend(struct wg_journal *journal, struct wg_error *err)
{
    if (journal->is_torn && ftruncate(journal->fd, (off_t)journal->length) != 0)
        return wg__fail_errno(err, errno, "cutting half a line off %s", journal->path);
    journal->is_torn = false;
    return WG_OK;
}

static enum wg_code write_line(struct wg_journal *journal, bool syncs, struct wg_error *err)
{
    const struct wg_buffer *line = &journal->line;
    for (size_t done = 0; done < line->length;) {
        const ssize_t written = pwrite(journal->fd, line->data + done, line->length - done,
                                       (off_t)(journal->length + done));
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return wg__fail_errno(err, written < 0 ? errno : EIO, "writing %s", journal->path);
        done += (size_t)written;
    }
    if (syncs && fdatasync(journal->fd) != 0 && errno != EINVAL)
        return wg__fail_errno(err, errno, "writing %s to the disk", journal->path);
    return WG_OK;
}

/* Adds the line that was built. */
static enum wg_code append(struct wg_journal *journal, bool syncs, struct wg_error *err)
{
    wg__buffer_puts(&journal->line, "\n");
    if (journal->line.failed)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", journal->path);
    if (journal->length + journal->line.length > WG_JOURNAL_BYTES_MAX)
        return wg__fail(err, WG_EIO, "%s is full: %d bytes", journal->path, WG_JOURNAL_BYTES_MAX);
    enum wg_code code = mend(journal, err);
    if (code != WG_OK)
        return code;
    code = write_line(journal, syncs, err);
    if (code == WG_OK) {
        journal->length += journal->line.length;
        return WG_OK;
    }
    journal->is_torn = true;
    (void)mend(journal, NULL);
    return code;
}

static struct wg_json begin_line(struct wg_journal *journal)
{
    struct wg_json json;
    journal->line.length = 0;
    journal->line.failed = false;
    wg__json_init(&json, &journal->line);
    wg__json_object(&json);
    return json;
}

static struct wg_json begin_knob(struct wg_journal *journal, enum wg_journal_line line,
                                 const struct wg_journal_knob *knob)
{
    struct wg_json json = begin_line(journal);
    wg__json_member_string(&json, wg__journal_words[line], wg_knob_key(knob->knob));
    wg__json_member_string(&json, "device", knob->device);
    return json;
}

enum wg_code wg__journal_begin(struct wg_journal *journal, int fd, const char *path,
                               const struct wg_journal_header *header, struct wg_error *err)
{
    *journal = (struct wg_journal){.fd = fd, .header = *header};
    wg__arena_init(&journal->arena);
    wg__buffer_init(&journal->line);
    const char **const texts[] = {&journal->path, &journal->header.boot, &journal->header.holder,
                                  &journal->header.root, &journal->header.virtual_gpu};
    const char *const given[] = {path, header->boot, header->holder, header->root,
                                 header->virtual_gpu};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        *texts[i] = wg__arena_strdup(&journal->arena, given[i]);
        if (*texts[i] == NULL)
            return wg__fail(err, WG_ENOMEM, "%s: out of memory", path);
    }
    struct wg_json json = begin_line(journal);
    wg__json_member_uint(&json, "wattgov_journal", WG_JOURNAL_VERSION);
    wg__json_member_uint(&json, "pid", (uint64_t)header->pid);
    wg__json_member_uint(&json, "start", header->start);
    wg__json_member_string(&json, "boot", header->boot);
    wg__json_member_string(&json, "holder", header->holder);
    wg__json_member_string(&json, "root", header->root);
    wg__json_member_string(&json, "virtual_gpu", header->virtual_gpu);
    wg__json_member_uint(&json, "timeout_ms", header->timeout_ms);
    wg__json_close(&json);
    return append(journal, true, err);
}

void wg__journal_fini(struct wg_journal *journal)
{
    for (size_t i = 0; i < journal->knob_count; i++)
        wg__free(journal->knobs[i].values);
    wg__free(journal->knobs);
    wg__arena_fini(&journal->arena);
    wg__buffer_fini(&journal->line);
    if (!journal->is_borrowed && journal->fd >= 0)
        (void)close(journal->fd);
    *journal = (struct wg_journal){.fd = -1};
}

/* The model is changed first, which may fail for want of memory, and back where the line fails. */
enum wg_code wg__journal_take(struct wg_journal *journal, const struct wg_journal_knob *knob,
                              struct wg_error *err)
{
    if (wg__journal_note_take(journal, knob) != WG_OK)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", journal->path);
    struct wg_json json = begin_knob(journal, WG_JOURNAL_LINE_TAKE, knob);
    wg__json_member_string(&json, "label", knob->label);
    wg__json_member_double(&json, "original", knob->original);
    wg__json_member_double(&json, "step", knob->step);
    wg__json_close(&json);
    const enum wg_code code = append(journal, true, err);
    if (code != WG_OK)
        journal->knob_count--;
    return code;
}

enum wg_code wg__journal_set(struct wg_journal *journal, struct wg_journal_knob *knob, double value,
                             struct wg_error *err)
{
    if (wg__journal_note_set(knob, value) != WG_OK)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", journal->path);
    struct wg_json json = begin_knob(journal, WG_JOURNAL_LINE_SET, knob);
    wg__json_member_double(&json, "value", value);
    wg__json_close(&json);
    const enum wg_code code = append(journal, true, err);
    if (code != WG_OK)
        knob->value_count--;
    return code;
}

enum wg_code wg__journal_applied(struct wg_journal *journal, struct wg_journal_knob *knob,
                                 double value, struct wg_error *err)
{
    struct wg_json json = begin_knob(journal, WG_JOURNAL_LINE_APPLIED, knob);
    wg__json_member_double(&json, "value", value);
    wg__json_close(&json);
    const enum wg_code code = append(journal, false, err);
    if (code == WG_OK)
        wg__journal_note_applied(knob, value);
    return code;
}

enum wg_code wg__journal_refused(struct wg_journal *journal, struct wg_journal_knob *knob,
                                 struct wg_error *err)
{
    struct wg_json json = begin_knob(journal, WG_JOURNAL_LINE_REFUSED, knob);
    wg__json_close(&json);
    const enum wg_code code = append(journal, false, err);
    if (code == WG_OK)
        wg__journal_note_refused(knob);
    return code;
}

enum wg_code wg__journal_given_back(struct wg_journal *journal, struct wg_journal_knob *knob,
                                    bool is_foreign, struct wg_error *err)
{
    struct wg_json json = begin_knob(journal, WG_JOURNAL_LINE_GIVEN_BACK, knob);
    wg__json_member_string(&json, "outcome", is_foreign ? "foreign" : "restored");
    wg__json_close(&json);
    knob->is_done = true; /* it is, whatever the disk says */
    return append(journal, true, err);
}

enum wg_code wg__journal_end(struct wg_journal *journal, struct wg_error *err)
{
    struct wg_json json = begin_line(journal);
    wg__json_member_bool(&json, wg__journal_words[WG_JOURNAL_LINE_END], true);
    wg__json_close(&json);
    journal->is_ended = true;
    return append(journal, true, err);
}
