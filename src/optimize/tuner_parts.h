/* SPDX-License-Identifier: MIT
 *
 * A tuner's insides, for the files that make it: constrained_bo.c (what is asked) and
 * tuner_tell.c (what a told trial changes).
 */
#ifndef WG_OPTIMIZE_TUNER_PARTS_H
#define WG_OPTIMIZE_TUNER_PARTS_H

#include "optimize/tuner.h"
#include "optimize/tuning_bans.h"
#include "optimize/tuning_policy.h"
#include "optimize/tuning_slack.h"

enum { WG_TUNER_DISCARDS_MAX = 3 }; /* of a configuration; the next one counts as a crash */

struct wg_tuner {
    struct wg_tuner_config config; /* defaults filled in; names of limits are own copies */
    char *names[WG_TUNING_LIMITS_MAX];
    const struct wg_tuning_policy_ops *ops;
    void *state;

    struct wg_trial *trials; /* MEASURED and CUT */
    size_t trial_count, trial_capacity;
    struct wg_trial *failures; /* CRASHED, HUNG, OUT_OF_MEMORY: `failed` of them */
    size_t failure_capacity;
    size_t tells, failed, validations;
    size_t validated; /* the last one that was measured to be confirmed; space->count: none */

    struct wg_tuning_bans bans;
    struct wg_tuning_slack slack;
    uint8_t *measured; /* [space->count], as discards */
    uint8_t *discards;
    bool *is_tried;
    size_t present; /* space->count: unknown; so with `again` */
    size_t again;
    enum wg_tuner_end closing; /* RUNNING: still searching */

    struct wg_rng root, rng;
    bool has_plan;
    struct wg_tuning_choice choice; /* of the plan; these two */
    struct wg_tuner_question question;
};

/* Whether the default is measured before all else. */
static inline bool wg__tuner_wants_default(const struct wg_tuner *tuner)
{
    return tuner->ops->default_first || tuner->config.default_first;
}

/* Takes in a trial that was checked; the plan is void. ENOMEM: nothing has changed. */
enum wg_code wg__tuner_remember(struct wg_tuner *tuner, const struct wg_trial *trial,
                                struct wg_error *err);

#endif
