/* SPDX-License-Identifier: MIT
 *
 * The file that `wattgov tune -o` writes and `wattgov tune apply` holds.
 *
 *     schema: wattgov.tune.result/1
 *     knobs:
 *       - {name: gpu_clock, role: gpu_clock, is_device: true, value: 1005000000}
 *       - {name: batch, role: batch, value: 8}
 *       - {name: precision, role: category, value: fp16}
 *
 * Values are SI. Whatever else stands in it is for people, and is not read. It may be written by
 * hand.
 *
 * Owns: see the struct.    Threads: any, one at a time.
 */
#ifndef WG_CLI_TUNE_RESULT_H
#define WG_CLI_TUNE_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "live/tune_knobs.h"

struct wg_tune_applied {
    size_t count;
    struct {
        char name[WG_TUNE_NAME_SIZE];
        bool is_device;
        enum wg_knob knob; /* of is_device */
        double value;
        char label[WG_TUNE_NAME_SIZE]; /* of a category; "" else */
    } knobs[WG_TUNING_KNOBS_MAX];
};

/* WG_EDATA: "FILE:LINE: ..."; else as wg__yaml_open. */
enum wg_code wg__tune_result_read(const char *path, struct wg_tune_applied *out,
                                  struct wg_error *err);

#endif
