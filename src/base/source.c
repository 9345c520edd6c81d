/* SPDX-License-Identifier: MIT
 *
 * The bytes of a text, plain or gzipped.
 *
 * zlib's gzread takes plain files too and tells the two apart by the magic bytes. It reports a
 * gzip file that is cut off as an error state beside a short read, which a reader that looks only
 * at the count would take for the end of the file; wg__source_fill asks for the state.
 *
 * Owns: see the header.    Threads: one thread at a time.
 */
#include "base/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/alloc.h"
#include "base/buffer.h"

enum {
    WINDOW_SIZE = 1 << 16,
    NAME_SHOWN_MAX = 160 /* bytes of the name in a message, so that the message keeps its end */
};

static enum wg_code copy_name(struct wg_source *source, const char *name, struct wg_error *err)
{
    const size_t length = strlen(name);
    const char *tail = name;
    if (length > NAME_SHOWN_MAX) { /* the end of a path tells more than its beginning */
        tail = name + length - NAME_SHOWN_MAX;
        while (((unsigned char)*tail & 0xC0) == 0x80)
            tail++;
    }
    const size_t dots = tail != name ? 3 : 0;
    const size_t size = strlen(tail) + 1;
    source->name = wg__alloc(dots + size);
    if (source->name == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", tail);
    memcpy(source->name, "...", dots);
    memcpy(source->name + dots, tail, size);
    return WG_OK;
}

static enum wg_code stop_memory(struct wg_source *source, struct wg_error *err)
{
    source->stopped = wg__fail(err, WG_ENOMEM, "%s: out of memory", source->name);
    return source->stopped;
}

/* Opens the descriptor and hands it to zlib. */
static enum wg_code open_file(struct wg_source *source, const char *path, struct wg_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return wg__fail_errno(err, errno, "%s: cannot open", source->name);
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
        (void)close(fd);
        return wg__fail_errno(err, EISDIR, "%s: cannot read", source->name);
    }
    gzFile file = gzdopen(fd, "rb");
    if (file == NULL) {
        (void)close(fd);
        return stop_memory(source, err);
    }
    source->file = file;               /* which owns the descriptor from here on */
    (void)gzbuffer(file, WINDOW_SIZE); /* only speed: the smaller default works as well */
    source->window = wg__alloc(WINDOW_SIZE);
    if (source->window == NULL)
        return stop_memory(source, err);
    source->cursor = source->window;
    source->end = source->window;
    return WG_OK;
}

enum wg_code wg__source_open(struct wg_source *source, const char *path, struct wg_error *err)
{
    *source = (struct wg_source){.line = 1};
    enum wg_code code = copy_name(source, path, err);
    if (code == WG_OK)
        code = open_file(source, path, err);
    if (code != WG_OK)
        wg__source_close(source);
    return code;
}

enum wg_code wg__source_open_memory(struct wg_source *source, const char *name, const char *bytes,
                                    size_t length, struct wg_error *err)
{
    *source = (struct wg_source){.line = 1, .at_end = true};
    source->cursor = length != 0 ? bytes : "";
    source->end = source->cursor + length;
    return copy_name(source, name, err);
}

void wg__source_close(struct wg_source *source)
{
    if (source == NULL)
        return;
    if (source->file != NULL)
        (void)gzclose(source->file); /* opened for reading: nothing can be lost here */
    wg__free(source->window);
    wg__free(source->name);
    *source = (struct wg_source){0};
}

/* zlib puts its own name of the file, "<fd:3>: ", in front of its messages. */
static const char *without_prefix(const char *message)
{
    const char *colon = strncmp(message, "<fd:", 4) == 0 ? strstr(message, ">: ") : NULL;
    return colon != NULL ? colon + 3 : message;
}

enum wg_code wg__source_fill(struct wg_source *source, struct wg_error *err)
{
    errno = 0;
    const int got = gzread(source->file, source->window, WINDOW_SIZE);
    const int cause = errno;
    if (got > 0) {
        source->cursor = source->window;
        source->end = source->window + got;
        return WG_OK;
    }
    int state = Z_OK;
    const char *text = gzerror(source->file, &state);
    if (got == 0 && (state == Z_OK || state == Z_STREAM_END)) {
        source->at_end = true;
        return WG_OK;
    }
    if (state == Z_MEM_ERROR)
        return stop_memory(source, err);
    if (state == Z_ERRNO)
        source->stopped = wg__fail_errno(err, cause, "%s: cannot read", source->name);
    else if (state == Z_BUF_ERROR)
        source->stopped =
            wg__fail(err, WG_EDATA, "%s:%zu: the gzip file is cut off", source->name, source->line);
    else
        source->stopped = wg__fail(err, WG_EDATA, "%s:%zu: the gzip file is damaged: %s",
                                   source->name, source->line, without_prefix(text));
    return source->stopped;
}

enum wg_code wg__source_skip_mark(struct wg_source *source, struct wg_error *err)
{
    /* A window holds at least three bytes if the file does: zlib fills the first one. */
    if (wg__source_peek(source, err) == WG_SOURCE_BROKEN)
        return source->stopped;
    if (source->end - source->cursor >= 3 && memcmp(source->cursor, "\xEF\xBB\xBF", 3) == 0)
        source->cursor += 3;
    return WG_OK;
}

enum wg_code wg__source_read_all(const char *path, unsigned most_mib, struct wg_buffer *out,
                                 struct wg_error *err)
{
    struct wg_source source;
    enum wg_code code = wg__source_open(&source, path, err);
    if (code != WG_OK)
        return code;
    code = wg__source_skip_mark(&source, err);
    while (code == WG_OK && wg__source_peek(&source, err) >= 0) {
        wg__buffer_append(out, source.cursor, (size_t)(source.end - source.cursor));
        source.cursor = source.end;
        if (out->length > (size_t)most_mib << 20)
            code = wg__fail(err, WG_EDATA, "%s: more than %u MiB", path, most_mib);
    }
    if (code == WG_OK)
        code = source.stopped;
    wg__buffer_puts(out, "");
    if (code == WG_OK && out->failed)
        code = wg__fail(err, WG_ENOMEM, "out of memory for %s", path);
    wg__source_close(&source);
    return code;
}
