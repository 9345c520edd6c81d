/* SPDX-License-Identifier: MIT
 *
 * The sums of a tuning study: see tuning_study.h.
 *
 * Threads: pure.
 */
#ifndef WG_SIMULATE_TUNING_SUM_H
#define WG_SIMULATE_TUNING_SUM_H

#include "simulate/tuning_study.h"

/* Fills the summary of policy number `index` from the study's outcomes, but for the times. Its
 * arrays are in the study's arena. WG_ENOMEM. */
enum wg_code wg__tuning_sum(struct wg_tuning_study *study, size_t index,
                            enum wg_tuner_policy policy, struct wg_error *err);

/* Wilson's interval of 95 % for `hits` of `count`; NANs when count is 0. */
struct wg_tuning_share wg__tuning_share(size_t hits, size_t count);

#endif
