/* SPDX-License-Identifier: MIT
 *
 * A command with places for knobs: `serve --batch {batch} --precision {precision}`.
 *
 * {NAME} in any word becomes the knob's value (a category's label); braces around anything that is
 * no knob stay, so that JSON and ${SHELL} words pass. The command also finds each knob as
 * WATTGOV_TUNE_<NAME> in its environment, in capitals, what is no letter or digit being "_".
 *
 * Owns: what `fill` makes.    Threads: pure, any thread.
 */
#ifndef WG_LIVE_TUNE_TEMPLATE_H
#define WG_LIVE_TUNE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "live/workload.h"

struct wg_tune_command {
    char **words;       /* ended by NULL */
    char **environment; /* "WATTGOV_TUNE_BATCH=8", ended by NULL */
};

/* WG_ENOMEM. */
enum wg_code wg__tune_template_fill(struct wg_tune_command *out, char *const *words,
                                    const struct wg_workload_setting *settings, size_t count,
                                    struct wg_error *err);
void wg__tune_command_fini(struct wg_tune_command *command);

/* Whether {name} stands in one of the words. */
bool wg__tune_template_has(char *const *words, const char *name);

/* A value as the command gets it. */
enum { WG_TUNE_VALUE_SIZE = 128 };
void wg__tune_value_text(char out[static WG_TUNE_VALUE_SIZE],
                         const struct wg_workload_setting *setting);

/* "WATTGOV_TUNE_BATCH" of "batch". */
void wg__tune_variable_name(char out[static WG_TUNE_VALUE_SIZE], const char *knob);

#endif
