/* SPDX-License-Identifier: MIT
 *
 * Reading a journal: line by line, each one into the model.
 *
 * A journal is read when its holder is dead, by root, and says what will be written to devices. So
 * it is taken as a whole or not at all: a line that cannot be understood makes it malformed, and it
 * is left for a person to look at. The one exception is the end: what has no end of line was cut
 * off while it was written.
 *
 * Owns: nothing.    Threads: one at a time.
 */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "device/journal_lines.h"

const char *const wg__journal_words[WG_JOURNAL_LINE_COUNT] = {
#define X(name, word) [WG_JOURNAL_LINE_##name] = (word),
    WG_JOURNAL_LINES(X)
#undef X
};

struct reader {
    struct wg_journal *journal;
    unsigned line; /* its number, from 1 */
    struct wg_error *err;
};

static enum wg_code fail_line(const struct reader *reader, const char *cause)
{
    return wg__fail(reader->err, WG_EDATA, "%s:%u: %s", reader->journal->path, reader->line, cause);
}

static enum wg_code fail_memory(const struct reader *reader)
{
    return wg__fail(reader->err, WG_ENOMEM, "%s: out of memory", reader->journal->path);
}

/* A number, or null for NAN. */
static bool get_number(const json_t *object, const char *key, double *out)
{
    const json_t *member = json_object_get(object, key);
    if (!json_is_number(member) && !json_is_null(member))
        return false;
    *out = json_is_null(member) ? (double)NAN : json_number_value(member);
    return true;
}

static bool get_integer(const json_t *object, const char *key, uint64_t *out)
{
    const json_t *member = json_object_get(object, key);
    if (!json_is_integer(member) || json_integer_value(member) < 0)
        return false;
    *out = (uint64_t)json_integer_value(member);
    return true;
}

static enum wg_code read_header(struct reader *reader, const json_t *object)
{
    struct wg_journal *journal = reader->journal;
    struct wg_journal_header *header = &journal->header;
    uint64_t version = 0;
    uint64_t pid = 0;
    uint64_t timeout_ms = 0;
    if (!get_integer(object, "wattgov_journal", &version))
        return fail_line(reader, "not the beginning of a journal");
    if (version > WG_JOURNAL_VERSION)
        return wg__fail(reader->err, WG_EUNSUPPORTED,
                        "%s is of version %llu, made by a newer wattgov; this one knows up to %d",
                        journal->path, (unsigned long long)version, WG_JOURNAL_VERSION);
    if (!get_integer(object, "pid", &pid) || !get_integer(object, "start", &header->start) ||
        !get_integer(object, "timeout_ms", &timeout_ms) || timeout_ms > UINT_MAX || pid > INT_MAX)
        return fail_line(reader, "its header lacks a number");
    header->pid = (int64_t)pid;
    header->timeout_ms = (unsigned)timeout_ms;
    static const char *const keys[] = {"boot", "holder", "root", "virtual_gpu"};
    const char **const texts[] = {&header->boot, &header->holder, &header->root,
                                  &header->virtual_gpu};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *text = json_string_value(json_object_get(object, keys[i]));
        if (text == NULL)
            return fail_line(reader, "its header lacks a text");
        *texts[i] = wg__arena_strdup(&journal->arena, text);
        if (*texts[i] == NULL)
            return fail_memory(reader);
    }
    return WG_OK;
}

static bool find_knob(const char *key, enum wg_knob *out)
{
    for (size_t i = 0; key != NULL && i < WG_KNOB_COUNT; i++) {
        if (strcmp(key, wg_knob_key((enum wg_knob)i)) == 0) {
            *out = (enum wg_knob)i;
            return true;
        }
    }
    return false;
}

static enum wg_code read_take(struct reader *reader, const json_t *object,
                              struct wg_journal_knob *knob)
{
    knob->label = json_string_value(json_object_get(object, "label"));
    if (knob->label == NULL || !get_number(object, "original", &knob->original) ||
        !get_number(object, "step", &knob->step))
        return fail_line(reader, "a knob is taken without label, original or step");
    if (wg__journal_find(reader->journal, knob->device, knob->knob) != NULL)
        return fail_line(reader, "a knob is taken twice");
    return wg__journal_note_take(reader->journal, knob) == WG_OK ? WG_OK : fail_memory(reader);
}

/* A line about a knob that was taken. */
static enum wg_code read_change(struct reader *reader, const json_t *object,
                                enum wg_journal_line line, struct wg_journal_knob *knob)
{
    double value = NAN;
    const bool has_value = get_number(object, "value", &value);
    if (knob == NULL)
        return fail_line(reader, "it is about a knob that was not taken");
    if (!has_value && (line == WG_JOURNAL_LINE_SET || line == WG_JOURNAL_LINE_APPLIED))
        return fail_line(reader, "a value is missing");
    if (line == WG_JOURNAL_LINE_SET)
        return wg__journal_note_set(knob, value) == WG_OK ? WG_OK : fail_memory(reader);
    if (line == WG_JOURNAL_LINE_APPLIED)
        wg__journal_note_applied(knob, value);
    else if (line == WG_JOURNAL_LINE_REFUSED)
        wg__journal_note_refused(knob);
    else
        knob->is_done = true;
    return WG_OK;
}

static enum wg_code read_entry(struct reader *reader, const json_t *object)
{
    size_t line = 0;
    while (line < WG_JOURNAL_LINE_COUNT && json_object_get(object, wg__journal_words[line]) == NULL)
        line++;
    if (line == WG_JOURNAL_LINE_COUNT)
        return fail_line(reader, "an entry of no known kind");
    if (line == WG_JOURNAL_LINE_END) {
        reader->journal->is_ended = true;
        return WG_OK;
    }
    struct wg_journal_knob knob = {.device = json_string_value(json_object_get(object, "device"))};
    const char *key = json_string_value(json_object_get(object, wg__journal_words[line]));
    if (knob.device == NULL || !find_knob(key, &knob.knob))
        return fail_line(reader, "no device, or no known knob");
    if (line == WG_JOURNAL_LINE_TAKE)
        return read_take(reader, object, &knob);
    return read_change(reader, object, (enum wg_journal_line)line,
                       wg__journal_find(reader->journal, knob.device, knob.knob));
}

static enum wg_code read_line(struct reader *reader, const char *text, size_t length)
{
    json_error_t problem;
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
    if (object == NULL)
        return fail_line(reader, problem.text);
    enum wg_code code = WG_OK;
    if (!json_is_object(object))
        code = fail_line(reader, "no object");
    else
        code = reader->line == 1 ? read_header(reader, object) : read_entry(reader, object);
    json_decref(object);
    return code;
}

static enum wg_code read_lines(struct reader *reader, const char *bytes, size_t length)
{
    struct wg_journal *journal = reader->journal;
    const char *end = bytes + length;
    const char *line = bytes;
    while (line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (stop == NULL)
            break;
        reader->line++;
        const enum wg_code code = read_line(reader, line, (size_t)(stop - line));
        if (code != WG_OK)
            return code;
        line = stop + 1;
    }
    journal->length = (uint64_t)(line - bytes);
    journal->is_torn = line < end;
    journal->is_ended |= reader->line == 0;
    return WG_OK;
}

static enum wg_code read_file(const struct wg_journal *journal, char **out, size_t *length_out,
                              struct wg_error *err)
{
    struct stat status;
    if (fstat(journal->fd, &status) != 0)
        return wg__fail_errno(err, errno, "reading %s", journal->path);
    if (status.st_size > WG_JOURNAL_BYTES_MAX)
        return wg__fail(err, WG_EDATA, "%s: longer than %d bytes", journal->path,
                        WG_JOURNAL_BYTES_MAX);
    const size_t size = (size_t)status.st_size;
    char *bytes = wg__alloc(size + 1);
    if (bytes == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", journal->path);
    size_t length = 0;
    while (length < size) {
        const ssize_t got = pread(journal->fd, bytes + length, size - length, (off_t)length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            const int error_number = errno;
            wg__free(bytes);
            return wg__fail_errno(err, error_number, "reading %s", journal->path);
        }
        if (got == 0)
            break;
        length += (size_t)got;
    }
    *out = bytes;
    *length_out = length;
    return WG_OK;
}

enum wg_code wg__journal_read(struct wg_journal *journal, int fd, bool is_borrowed,
                              const char *path, struct wg_error *err)
{
    *journal = (struct wg_journal){
        .fd = fd, .is_borrowed = is_borrowed, .path = path, .header = {.boot = "", .holder = "?"}};
    wg__arena_init(&journal->arena);
    wg__buffer_init(&journal->line);
    journal->header.root = "/";
    journal->header.virtual_gpu = "";
    journal->path = wg__arena_strdup(&journal->arena, path);
    if (journal->path == NULL) {
        journal->path = "a journal";
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", path);
    }
    char *bytes = NULL;
    size_t length = 0;
    enum wg_code code = read_file(journal, &bytes, &length, err);
    if (code != WG_OK)
        return code;
    struct reader reader = {.journal = journal, .err = err};
    code = read_lines(&reader, bytes, length);
    wg__free(bytes);
    return code;
}
