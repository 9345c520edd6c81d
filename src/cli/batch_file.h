/* SPDX-License-Identifier: MIT
 *
 * Batch sizes from a file, where a list of them is expected: "from:FILE".
 *
 * The file is CSV with a column `batch_size`; other columns are for people (`wattgov wave analyze
 * --batches` writes time, throughput and what the next sample costs beside it). Its rows may stand
 * in any order.
 *
 * Owns: nothing.    Threads: any thread.
 */
#ifndef WG_CLI_BATCH_FILE_H
#define WG_CLI_BATCH_FILE_H

#include "base/arena.h"
#include "base/error.h"
#include "cli/options.h"

struct wg_buffer;

enum { WG_BATCH_FILE_ROWS_MAX = 64 };

/* Appends "8,16,32", rising. WG_ENOENT, WG_EPERM, WG_EIO: it cannot be read; WG_EDATA: no such
 * column, no row, too many, one twice, no whole number from 1 on: "FILE:LINE: ...". */
enum wg_code wg__batch_file_list(const char *path, struct wg_buffer *out, struct wg_error *err);

/* Knobs as `wattgov tune` takes them, each "NAME=from:FILE" with what follows the next ':' made
 * "NAME=8,16,32". Texts of `out` are those of `knobs`, or the arena's. */
enum wg_code wg__batch_file_knobs(const struct wg_option_list *knobs, struct wg_arena *arena,
                                  struct wg_option_list *out, struct wg_error *err);

#endif
