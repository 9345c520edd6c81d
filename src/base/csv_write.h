/* SPDX-License-Identifier: MIT
 *
 * Fields of CSV records that a program writes (RFC 4180): what a reader such as base/csv.h needs to
 * find them again. Commas and line ends between them are the caller's.
 *
 *     wg__csv_put(&out, "a, b");      "a, b"     quoted, as any field with , " CR or LF is
 *     wg__csv_put_double(&out, 0.1);  0.1        the fewest digits that read back the same
 *
 * Owns: nothing; writes into the caller's buffer.    Threads: pure, any thread.
 */
#ifndef WG_BASE_CSV_WRITE_H
#define WG_BASE_CSV_WRITE_H

struct wg_buffer;

void wg__csv_put(struct wg_buffer *out, const char *text);
void wg__csv_put_double(struct wg_buffer *out, double value);

#endif
