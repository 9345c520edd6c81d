/* SPDX-License-Identifier: MIT
 *
 * Choosing the batch size of a recurring training job: the ask/tell interface that every policy
 * has.
 *
 * A job recurs; each recurrence must reach its target metric. A recurrence is one or more attempts:
 * an attempt that is stopped or runs out of epochs is paid for and followed by a retry. The caller
 * drives:
 *
 *     begin(recurrence) -> ask: SURVEY arm ... -> tell_survey    (measure a few seconds, then ask
 * again) ask: RUN arm, limit tell_profile                          (first use of the arm: its
 * limits are known) may_continue(run, epochs_done, metric) before every epoch tell_run(run,
 * outcome)  -> reached: done; else ask again for the same recurrence
 *
 * Several runs may be in flight; each is named by the ticket that its `ask` gave. Costs are joules
 * of equation C (objective.h) and every policy is told the costs, never how they come about. A
 * policy is pure: it knows no device, file, clock or thread; its randomness is an argument.
 *
 * A policy outlives its process as a log of what was asked and told. To rebuild it, a new one is
 * told the same in the same order, with `resume` in the place of each `ask`: that takes up the step
 * that was given then, whatever this one would choose, and needs no chance. What the log says is
 * thus kept even where the policy has become another one since.
 *
 * Threads: a policy belongs to one thread at a time.
 */
#ifndef WG_OPTIMIZE_BATCH_SIZE_H
#define WG_OPTIMIZE_BATCH_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/rng.h"

enum { WG_ARMS_MAX = 64, WG_BATCH_LIMITS_MAX = 64, WG_IN_FLIGHT_MAX = 64, WG_ATTEMPTS_MAX = 20 };

/* The job as the policies see it. Arms are its batch sizes, ascending. */
struct wg_batch_job {
    size_t arm_count;
    double batch_size[WG_ARMS_MAX];
    size_t default_arm;
    size_t limit_count;    /* power limits per arm, ascending; the last one is the largest */
    unsigned max_epochs;   /* an attempt ends there without the target */
    bool higher_is_better; /* of the metric */
    double target_metric;
};

/* Which power limit an attempt runs at. */
enum { WG_LIMIT_BEST = -1 }; /* the profiled best one of its batch size; otherwise an index */

struct wg_batch_step {
    enum { WG_STEP_SURVEY, WG_STEP_RUN } kind;
    size_t arm;
    int limit;       /* of a RUN */
    uint64_t ticket; /* of a RUN: names it until tell_run */
};

/* What profiling an arm's power limits has shown: costs per epoch in J. */
struct wg_batch_profile {
    double epoch_cost_j;           /* at its best limit */
    double epoch_cost_max_limit_j; /* at the largest limit */
    double first_epoch_cost_j;     /* what the epoch with the profiling in it costs */
};

struct wg_batch_outcome {
    bool reached;
    unsigned epochs; /* trained; 0: not even one epoch was allowed */
    double cost_j;   /* paid, profiling included */
};

/* What a policy expects of an arm: what a run that reaches the target costs on average, its median,
 * and where it lies with 80 % probability; likewise its epochs. `recurrence_j` is what a recurrence
 * would cost on average, the runs that fail before included: by that an arm is judged. Joules are
 * NAN until a cost on this GPU type is known. */
struct wg_batch_belief {
    double cost_j, low_j, high_j;
    double epochs, epochs_low, epochs_high;
    double recurrence_j;
};

/* What the caller asks for. */
struct wg_batch_request {
    uint64_t recurrence; /* counts from 0; a retry repeats it */
    unsigned attempt;    /* 0: the first of this recurrence */
    bool no_survey;      /* the caller can't do a SURVEY now: the answer is a RUN */
};

struct wg_batch_policy;

/* The knobs of the policies; a policy reads what it knows. Zeroed fields mean the default. */
struct wg_batch_options {
    double beta;      /* early stop at beta times the least cost; <= 0: 2; INFINITY: never */
    unsigned window;  /* observations per arm that count, 0: all */
    bool concurrent;  /* several runs may be in flight */
    size_t fixed_arm; /* policy "fixed" */
    int fixed_limit;  /* policy "fixed" */
};

struct wg_batch_policy_ops {
    const char *name;
    const char *summary; /* one line for --help */

    /* Makes a policy. `job` and `options` are copied. */
    enum wg_code (*create)(struct wg_batch_policy **out, const struct wg_batch_job *job,
                           const struct wg_batch_options *options, struct wg_error *err);
    void (*destroy)(struct wg_batch_policy *policy);

    /* The next step for `request`. */
    void (*ask)(struct wg_batch_policy *policy, const struct wg_batch_request *request,
                struct wg_rng *rng, struct wg_batch_step *out);

    /* Whether run `ticket`, which has done `epochs_done` epochs and is at `metric` (NaN: unknown),
     * may go on for one more epoch. Asked before the first epoch too (0). NULL: always. */
    bool (*may_continue)(struct wg_batch_policy *policy, uint64_t ticket, unsigned epochs_done,
                         double metric);

    /* The cost per epoch of `arm` at the largest limit, from a survey of a few seconds that cost
     * `paid_j`. NULL: the policy never surveys. */
    void (*tell_survey)(struct wg_batch_policy *policy, size_t arm, double epoch_cost_max_limit_j,
                        double paid_j);

    /* The profile of `arm`; told before the first epoch of its first run, and again when it
     * changes. */
    void (*tell_profile)(struct wg_batch_policy *policy, size_t arm,
                         const struct wg_batch_profile *profile);

    void (*tell_run)(struct wg_batch_policy *policy, uint64_t ticket,
                     const struct wg_batch_outcome *outcome);

    /* Copies what `source` (same ops, another GPU type) has learned that does not depend on the
     * GPU. `arm_of_source[i]` is our arm with the batch size of the source's arm i, or SIZE_MAX.
     * The source may bring itself up to date. NULL: the policy cannot. */
    void (*transfer)(struct wg_batch_policy *policy, struct wg_batch_policy *source,
                     const size_t *arm_of_source);

    /* Takes up `step`, which an `ask` for `request` has given: afterwards the policy is as it was
     * after that ask, and `step->ticket` names the run. Also for a run that was forgotten and came
     * back. */
    void (*resume)(struct wg_batch_policy *policy, const struct wg_batch_request *request,
                   const struct wg_batch_step *step);

    /* Run `ticket` will never tell its outcome: its machine died, or it was given back. Nothing is
     * learned from it. */
    void (*forget)(struct wg_batch_policy *policy, uint64_t ticket);

    /* Appends the whole state, for `load` in a policy that was just created for the same job by the
     * same program: a cache, bytes of this machine. `load` is false for bytes that cannot be such a
     * state; the policy is then as it was. False from `save`: not with these options. */
    bool (*save)(const struct wg_batch_policy *policy, struct wg_buffer *out);
    bool (*load)(struct wg_batch_policy *policy, const void *bytes, size_t length);

    /* The arm that the policy now believes in. */
    size_t (*best_arm)(const struct wg_batch_policy *policy);

    /* What the policy believes of `arm`; false: nothing yet. It may bring itself up to date. NULL:
     * it has no such belief. */
    bool (*believe)(struct wg_batch_policy *policy, size_t arm, struct wg_batch_belief *out);
};

/* First member of every policy's own struct. */
struct wg_batch_policy {
    const struct wg_batch_policy_ops *ops;
};

/* Whether `job` keeps what its comments promise; every `create` begins with it. WG_EINVAL names
 * what does not. */
enum wg_code wg__batch_job_check(const struct wg_batch_job *job, struct wg_error *err);

/* The policies; NULL-terminated, in the order in which they are shown. */
extern const struct wg_batch_policy_ops *const wg__batch_policies[];

extern const struct wg_batch_policy_ops wg__batch_policy_fixed; /* one arm, one limit, for ever */
extern const struct wg_batch_policy_ops wg__batch_policy_grid;
extern const struct wg_batch_policy_ops wg__batch_policy_zeus;
extern const struct wg_batch_policy_ops wg__batch_policy_wattgov;

#endif
