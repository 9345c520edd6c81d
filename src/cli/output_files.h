/* SPDX-License-Identifier: MIT
 *
 * The files that a command's options name, each with its own form of one report.
 *
 * Checked before the work (writable, plain text, no two the same file), written after it, each
 * whole or not at all. A file that was not asked for has no path and is passed over.
 *
 *     const struct wg_output_file files[] = {{"csv", args.csv, .write = write_csv},
 *                                            {"html", args.html, .write = write_page}};
 *     wg__output_files_check(files, 2, &err);
 *     wg__output_files_write(files, 2, &report, &err);
 *
 * Owns: nothing.    Threads: the main thread.
 */
#ifndef WG_CLI_OUTPUT_FILES_H
#define WG_CLI_OUTPUT_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

struct wg_output_file {
    const char *option; /* without "--" */
    const char *path;   /* NULL: not asked for */
    /* What wg__output_files_write calls; a command whose reports need more writes by itself. */
    void (*write)(const void *report, struct wg_buffer *out);
};

/* WG_EINVAL: "-", a name that promises gzip, or a file that another option names, too; WG_EPERM,
 * WG_ENOENT, WG_EIO: it could not be written. */
enum wg_code wg__output_files_check(const struct wg_output_file *files, size_t count,
                                    struct wg_error *err);
/* WG_EINVAL: one of them is the file `input`, which would be lost. NULL, or what is no file (a name
 * that is built in), is none. */
enum wg_code wg__output_files_spare(const struct wg_output_file *files, size_t count,
                                    const char *input, struct wg_error *err);
enum wg_code wg__output_files_write(const struct wg_output_file *files, size_t count,
                                    const void *report, struct wg_error *err);

/* Writes `text` to `path`, or where that is NULL to stderr or stdout. */
enum wg_code wg__write_output(const char *path, bool to_stderr, const struct wg_buffer *text,
                              struct wg_error *err);

#endif
