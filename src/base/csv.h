/* SPDX-License-Identifier: MIT
 *
 * A CSV reader (RFC 4180) for data with one header line, plain or gzipped.
 *
 * Handles quoted fields (with commas, doubled quotes and line ends inside), LF and CRLF, a UTF-8
 * byte order mark, a missing last newline and blank lines at the end. Every record must have as
 * many fields as the header. Columns are looked up by name. Each error names file, line and column,
 * and what was expected: "traces/train.csv:17: column 'target_epoch': 'abc' is not a number".
 * Numbers are read independently of the locale. A record may be at most 1 MiB long.
 *
 * Owns: the open file and one record; texts live until the next record is read.
 * Threads: one thread at a time.
 */
#ifndef WG_BASE_CSV_H
#define WG_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { WG_CSV_COLUMNS_MAX = 4096 };

struct wg_csv;
struct wg_source;

/* Opens `path` (gzip is recognised by its magic bytes, whatever the name) and reads the header.
 * WG_ENOENT / WG_EPERM / WG_EIO when it cannot be read, WG_EDATA when it is empty or its header has
 * an empty or repeated column name. No reference to `path` is kept. `*out` is written on success
 * only. */
enum wg_code wg__csv_open(struct wg_csv **out, const char *path, struct wg_error *err);

/* The same over `length` bytes in memory, which must outlive the reader; `name` stands for the file
 * in messages and is copied. */
enum wg_code wg__csv_open_memory(struct wg_csv **out, const char *name, const char *bytes,
                                 size_t length, struct wg_error *err);

/* For what tools print: lines before the header pass. The header is the first record that has a
 * column called one of `marks` (NULL ends them); of columns with one name the first counts. A
 * record may have fewer fields, which then are "", or more, which are dropped; blank lines pass.
 * WG_EDATA: no header. `source` is taken over, also when it fails. */
enum wg_code wg__csv_open_loose(struct wg_csv **out, struct wg_source *source,
                                const char *const *marks, struct wg_error *err);
void wg__csv_close(struct wg_csv *csv);

/* The column called `name`; WG_EDATA with the list of columns that exist when there is none. */
enum wg_code wg__csv_column(const struct wg_csv *csv, const char *name, size_t *column_out,
                            struct wg_error *err);
size_t wg__csv_column_count(const struct wg_csv *csv);
const char *wg__csv_column_name(const struct wg_csv *csv, size_t column);
bool wg__csv_has_column(const struct wg_csv *csv, const char *name);

/* Reads the next record; `*has_record` is false at the end of the file. */
enum wg_code wg__csv_next(struct wg_csv *csv, bool *has_record, struct wg_error *err);

/* The line on which the present record begins, counted from 1. */
size_t wg__csv_line(const struct wg_csv *csv);

/* A field of the present record, unquoted. */
const char *wg__csv_text(const struct wg_csv *csv, size_t column);

/* A field as a finite number; as a finite number or the literal `nan` (any case); as a whole number
 * in min .. max. */
enum wg_code wg__csv_double(const struct wg_csv *csv, size_t column, double *out,
                            struct wg_error *err);
enum wg_code wg__csv_double_or_nan(const struct wg_csv *csv, size_t column, double *out,
                                   struct wg_error *err);
enum wg_code wg__csv_uint(const struct wg_csv *csv, size_t column, unsigned min, unsigned max,
                          unsigned *out, struct wg_error *err);

/* An error about a field of the present record, in the reader's own style. */
enum wg_code wg__csv_fail(const struct wg_csv *csv, size_t column, struct wg_error *err,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
