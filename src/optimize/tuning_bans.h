/* SPDX-License-Identifier: MIT
 *
 * What leaves the space of a tuning when a trial fails, and what that implies for others.
 *
 * Two marks a configuration: banned (it failed, or something that it cannot survive failed), and
 * ruled out (it is slower than something far too slow; a conclusion, not a failure, so policies
 * that must stay comparable with published ones do without it). What was measured is never banned
 * by implication, and never ruled out: it was seen to work.
 *
 * A latency over its limit by far rules out the configurations that differ in gpu_clock, cpu_clock
 * and power_limit only, in none of them higher and in one lower: time falls with each of these by
 * physics. Not across memory clocks, core counts and batches, which measured boards show not to be
 * monotone; and not within three standard errors of the margin.
 *
 * Owns: the marks; the space must outlive them.    Threads: one at a time.
 */
#ifndef WG_OPTIMIZE_TUNING_BANS_H
#define WG_OPTIMIZE_TUNING_BANS_H

#include "optimize/tuner.h"

struct wg_tuning_bans {
    const struct wg_tuning_space *space;
    bool *is_banned; /* [space->count] */
    bool *is_out;    /* [space->count]: banned or ruled out */
};

/* WG_ENOMEM. */
enum wg_code wg__tuning_bans_init(struct wg_tuning_bans *bans, const struct wg_tuning_space *space,
                                  struct wg_error *err);
void wg__tuning_bans_fini(struct wg_tuning_bans *bans);

void wg__tuning_ban(struct wg_tuning_bans *bans, size_t configuration);

/* It, and where all else is equal: larger batches and more replicas that were never measured. */
void wg__tuning_ban_memory(struct wg_tuning_bans *bans, size_t configuration,
                           const uint8_t *measured);

/* Every configuration with that level. */
void wg__tuning_ban_level(struct wg_tuning_bans *bans, size_t knob, size_t level);

/* Whether two configurations are equal in all that is expensive to change: categories, split
 * degrees, and knobs whose change takes WG_TUNING_DEAR_SWITCH_S or more. */
enum { WG_TUNING_DEAR_SWITCH_S = 5 };
bool wg__tuning_same_group(const struct wg_tuning_space *space, size_t a, size_t b);

/* What was never measured of the configuration's group, unless nothing else is left. */
void wg__tuning_ban_group(struct wg_tuning_bans *bans, size_t configuration,
                          const uint8_t *measured);

/* By how much, as a factor, a latency must exceed its bound to rule out slower clocks. */
#define WG_TUNING_FAR 1.25

/* Rules out what a MEASURED or CUT trial proves too slow. `noise`: as in wg_tuner_config. */
void wg__tuning_rule_out_slower(struct wg_tuning_bans *bans, const struct wg_tuning_goal *goal,
                                const struct wg_trial *trial, double noise,
                                const uint8_t *measured);

#endif
