/* SPDX-License-Identifier: MIT
 *
 * Configurations that are the same one, because a knob did not bind.
 *
 * A power limit of 300 W changes nothing where 110 W are drawn, nor does one of 200 W. A trial that
 * knows it (wg_trial.is_slack) joins all levels from slack_level on, other knobs equal, into one
 * class. One measured configuration stands for the class: the default if it is among them, else the
 * one that was told first. All trials of the class are its trials, and the others are banned: they
 * are never asked for, and do not count as untried.
 *
 * Classes grow and never part; they are kept as a forest, each configuration pointing to another
 * one of its class or to itself (union-find, without ranks: chains are as short as trials are few).
 *
 * Owns: the links; the space must outlive them.    Threads: one at a time.
 */
#ifndef WG_OPTIMIZE_TUNING_SLACK_H
#define WG_OPTIMIZE_TUNING_SLACK_H

#include "optimize/tuning_bans.h"

struct wg_tuning_slack {
    const struct wg_tuning_space *space;
    uint32_t *same_as; /* [space->count] */
};

/* WG_ENOMEM. */
enum wg_code wg__tuning_slack_init(struct wg_tuning_slack *slack,
                                   const struct wg_tuning_space *space, struct wg_error *err);
void wg__tuning_slack_fini(struct wg_tuning_slack *slack);

/* The configuration that stands for the class of this one: itself, mostly. */
size_t wg__tuning_same(const struct wg_tuning_slack *slack, size_t configuration);

/* Whether the trial says that this configuration is the same as its own. */
bool wg__tuning_is_slack(const struct wg_tuning_space *space, const struct wg_trial *trial,
                         size_t configuration);

/* Joins what `trial`, the last one of `trials`, says; renames in `trials` what is joined, and moves
 * the counts in `measured`. */
void wg__tuning_slack_take(struct wg_tuning_slack *slack, const struct wg_trial *trial,
                           struct wg_tuning_bans *bans, struct wg_trial *trials, size_t trial_count,
                           uint8_t *measured);

#endif
