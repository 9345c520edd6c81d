/* SPDX-License-Identifier: MIT
 *
 * The checks of what a tuner is given; constrained_bo.c relies on them.
 *
 * Threads: pure.
 */
#ifndef WG_OPTIMIZE_TUNER_CHECK_H
#define WG_OPTIMIZE_TUNER_CHECK_H

#include "optimize/tuner.h"

/* WG_EINVAL: the text says what. */
enum wg_code wg__tuner_check_config(const struct wg_tuner_config *config, struct wg_error *err);
enum wg_code wg__tuner_check_trial(const struct wg_tuner_config *config,
                                   const struct wg_trial *trial, struct wg_error *err);

#endif
