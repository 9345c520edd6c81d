/* SPDX-License-Identifier: MIT
 *
 * One loop to check, one to write; see the header.
 *
 * Threads: the main thread.
 */
#include "cli/output_files.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/command.h"
#include "cli/options.h"

static bool promises_gzip(const char *path)
{
    static const char packed[] = ".gz";
    const size_t length = strlen(path), end = sizeof packed - 1;
    return length >= end && strcasecmp(path + length - end, packed) == 0;
}

static enum wg_code check_one(const struct wg_output_file *files, size_t at, struct wg_error *err)
{
    const struct wg_output_file *file = &files[at];
    if (file->path == NULL)
        return WG_OK;
    for (size_t i = 0; i < at; i++) {
        if (files[i].path != NULL && wg__file_is_same(files[i].path, file->path))
            return wg__fail(err, WG_EINVAL, "--%s and --%s name the same file '%s'",
                            files[i].option, file->option, file->path);
    }
    if (promises_gzip(file->path))
        return wg__fail(err, WG_EINVAL,
                        "--%s: '%s' is written as plain text; expected a name without .gz",
                        file->option, file->path);
    if (strcmp(file->path, "-") == 0)
        return wg__option_reject(err, file->option, file->path,
                                 "a file name; use /dev/stdout for the output");
    return wg__file_check_writable(file->path, err);
}

enum wg_code wg__output_files_check(const struct wg_output_file *files, size_t count,
                                    struct wg_error *err)
{
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < count && code == WG_OK; i++)
        code = check_one(files, i, err);
    return code;
}

enum wg_code wg__output_files_spare(const struct wg_output_file *files, size_t count,
                                    const char *input, struct wg_error *err)
{
    struct stat status;
    if (input == NULL || stat(input, &status) != 0 || !S_ISREG(status.st_mode))
        return WG_OK;
    for (size_t i = 0; i < count; i++)
        if (files[i].path != NULL && wg__file_is_same(files[i].path, input))
            return wg__fail(err, WG_EINVAL, "--%s: '%s' is what is read, and would be lost",
                            files[i].option, files[i].path);
    return WG_OK;
}

enum wg_code wg__output_files_write(const struct wg_output_file *files, size_t count,
                                    const void *report, struct wg_error *err)
{
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < count && code == WG_OK; i++) {
        struct wg_buffer text;
        if (files[i].path == NULL)
            continue;
        wg__buffer_init(&text);
        files[i].write(report, &text);
        code = wg__write_output(files[i].path, false, &text, err);
        wg__buffer_fini(&text);
    }
    return code;
}

enum wg_code wg__write_output(const char *path, bool to_stderr, const struct wg_buffer *text,
                              struct wg_error *err)
{
    if (path == NULL)
        return wg__command_print(to_stderr ? stderr : stdout, text, err);
    if (text->failed)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", path);
    return wg__file_write(path, text->data, text->length, err);
}
