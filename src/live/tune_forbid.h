/* SPDX-License-Identifier: MIT
 *
 * Forbidden combinations: "batch>=64 && precision==fp32".
 *
 *     text = condition { "&&" condition }      condition = NAME OP LEVEL
 *     OP = == | != | < | <= | > | >=           of a category: == and != only
 *
 * A configuration is forbidden when all conditions of one text hold.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_LIVE_TUNE_FORBID_H
#define WG_LIVE_TUNE_FORBID_H

#include <stdbool.h>
#include <stddef.h>

#include "optimize/tuning_space.h"

enum { WG_TUNE_CONDITIONS_MAX = WG_TUNING_KNOBS_MAX };

struct wg_tune_forbid {
    size_t count;
    struct {
        size_t knob;
        enum wg_tune_relation {
            WG_TUNE_EQUAL,
            WG_TUNE_UNEQUAL,
            WG_TUNE_AT_MOST,
            WG_TUNE_AT_LEAST,
            WG_TUNE_BELOW,
            WG_TUNE_ABOVE
        } relation;
        double value;
    } conditions[WG_TUNE_CONDITIONS_MAX];
};

/* WG_EINVAL: the text, and what was expected where. */
enum wg_code wg__tune_forbid_parse(struct wg_tune_forbid *out, const char *text,
                                   const struct wg_tuning_knob *knobs, size_t knob_count,
                                   struct wg_error *err);

/* Whether it forbids these levels (one index a knob). */
bool wg__tune_forbid_holds(const struct wg_tune_forbid *forbid, const struct wg_tuning_knob *knobs,
                           const size_t *levels);

#endif
