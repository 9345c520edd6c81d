/* SPDX-License-Identifier: MIT
 *
 * The parts of the wattgov policy and what they share. See policy_wattgov.c for how they work
 * together.
 *
 *   policy_wattgov.c   the ask/tell flow: what is known, which step comes next
 *   epochs_model.c     epochs to target over the batch size, one curve for all arms
 *   governor_costs.c   cost per epoch of every arm, from profiles, surveys and neighbours
 *   governor_choice.c  which arm to run: information-directed sampling under a guard
 *   governor_stop.c    how long a trial may run: by its cost
 *   learning_curve.c   and by its metric
 *   change_detector.c  whether the job has become another one
 *   governor_state.c   the whole of it as bytes
 *
 * Owns: see struct wg_governor.    Threads: one at a time.
 */
#ifndef WG_OPTIMIZE_GOVERNOR_H
#define WG_OPTIMIZE_GOVERNOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "optimize/batch_size.h"
#include "optimize/change_detector.h"
#include "optimize/epochs_model.h"
#include "optimize/governor_constants.h"
#include "optimize/learning_curve.h"

enum { WG_GOVERNOR_HISTORY_MAX = 512 };

/* What is known of an arm's cost per epoch. */
struct wg_arm_cost {
    bool is_profiled;
    bool is_surveyed;
    struct wg_batch_profile profile;
    double surveyed_j;  /* per epoch at the largest limit */
    double elsewhere_j; /* per epoch on the GPU that knowledge came from; 0: none */
    double epoch_j;     /* best estimate at its best limit: from wg__governor_update_costs */
};

/* A run in flight. */
struct wg_flight {
    bool is_active;
    bool is_unbounded; /* only the job's own maximum ends it */
    size_t arm;
    uint64_t ticket;
    uint64_t recurrence;
    unsigned stop_epochs;  /* may do so many */
    uint64_t stop_version; /* of the knowledge that `stop_epochs` rests on */
    double log2_guess; /* of the epochs that it needs, from its learning curve when that ended it */
    struct wg_learning_curve curve;
};

/* A recurrence that had a failed attempt. */
struct wg_failure {
    uint64_t recurrence;
    uint64_t arms; /* bit i: arm i failed in it */
};

struct wg_governor {
    struct wg_batch_policy base;
    struct wg_batch_job job;
    struct wg_batch_options options;

    /* What was observed: the oldest is forgotten when the history is full. */
    size_t observation_count;
    struct wg_epochs_observation observations[WG_GOVERNOR_HISTORY_MAX];
    unsigned failures_after_success[WG_ARMS_MAX];
    size_t success_count;
    size_t completed; /* recurrences that reached the target */
    double explored; /* recurrences so far for the schedule of exploration; a change sets it back */
    double spent_j;  /* on everything so far */
    size_t default_failures;

    struct wg_arm_cost cost[WG_ARMS_MAX];
    double survey_paid_j; /* what the latest survey cost; 0: none yet */
    double first_run_j;   /* what the first success cost */
    bool has_survey_plan;
    uint64_t survey_plan;   /* bit i: arm i is still to be surveyed */
    uint64_t surveys_asked; /* bit i: a survey of arm i was asked for, whatever became of it */
    double surveys_j;       /* what all of them cost */

    /* What follows from it; recomputed when `version` moves on. */
    struct wg_epochs_model model;
    uint64_t version;
    uint64_t model_version;
    size_t incumbent;               /* least expected cost among the arms with a success */
    double expected_j[WG_ARMS_MAX]; /* expected cost of a run to the target */
    double incumbent_j;

    struct wg_change_detector detector;
    struct wg_learning_curve_book curves;

    uint64_t next_ticket;
    size_t in_flight;
    struct wg_flight flights[WG_IN_FLIGHT_MAX];
    struct wg_failure failures[WG_IN_FLIGHT_MAX];

    double *draws; /* scratch of the choice: WG_EPOCHS_DRAWS x arms */
};

/* governor_costs.c. Before some arm has a cost (`has_cost`), all are alike to the choice at 1 an
 * epoch, which is no joule. */
bool wg__governor_has_cost(const struct wg_governor *governor);
void wg__governor_update_costs(struct wg_governor *governor);
bool wg__governor_next_survey(struct wg_governor *governor, size_t *arm_out);
double wg__governor_premium_j(const struct wg_governor *governor, size_t arm);

/* policy_wattgov.c: brings the model, the expected costs and the incumbent up to date. */
void wg__governor_refresh(struct wg_governor *governor);

/* governor_state.c */
bool wg__governor_save(const struct wg_batch_policy *policy, struct wg_buffer *out);
bool wg__governor_load(struct wg_batch_policy *policy, const void *bytes, size_t length);

/* governor_choice.c: the arm to run next. */
size_t wg__governor_choose(struct wg_governor *governor, struct wg_rng *rng);

/* governor_stop.c: the stop bound of a trial of `arm` in epochs, and the expected cost above an
 * incumbent's run that the trial under this bound has (J); `price_out` may be NULL. */
unsigned wg__governor_stop_epochs(const struct wg_governor *governor, size_t arm,
                                  double *price_out);

/* governor_stop.c: whether the metric so far says that the run should be ended now. */
bool wg__governor_is_hopeless(const struct wg_governor *governor, struct wg_flight *flight,
                              unsigned epochs_done);

#endif
