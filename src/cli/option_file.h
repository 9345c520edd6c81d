/* SPDX-License-Identifier: MIT
 *
 * Options from a YAML file: the keys are the options' names, with "_" for "-".
 *
 *     max_trials: 20                        --max-trials=20
 *     validate: ...                         refused: the nearest known key is told
 *     limit: [p99_s<=0.1, "mean_s<=1.5x"]   --limit twice
 *     explain: true                         --explain
 *     command: [python3, bench.py, "{batch}"]   the words behind --
 *     command: python3 bench.py {batch}         /bin/sh -c '...'
 *
 * A list option may be written with an "s" (limits), and as a map of NAME to a text, a list or a
 * map, which is put together to NAME=...: see `knob` below. Values go through the options' own
 * parser, so a file accepts what a command line does, and refuses with the same words, behind
 * FILE:LINE.
 *
 *     knobs:
 *       gpu_clock:                                   gpu_clock
 *       batch: [1, 2, 4, 8]                          batch=1,2,4,8
 *       precision: {levels: [fp16, fp32], role: category, switch_s: 60}
 *                                                    precision=fp16,fp32:category:switch_s=60
 *
 * Owns: the texts that it puts into the command's struct.    Threads: the main thread.
 */
#ifndef WG_CLI_OPTION_FILE_H
#define WG_CLI_OPTION_FILE_H

#include "cli/options.h"

struct wg_option_file {
    size_t count, capacity;
    char **texts;
};

/* Fills `values` as the file says. WG_EDATA: "FILE:LINE: ..."; else as wg__yaml_open. `file` is
 * zeroed before; free it when `values` is not used any more, after a failure too. */
enum wg_code wg__option_file_read(struct wg_option_file *file, const char *path,
                                  const struct wg_option_set *set, void *values,
                                  struct wg_error *err);
void wg__option_file_fini(struct wg_option_file *file);

#endif
