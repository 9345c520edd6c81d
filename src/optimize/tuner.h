/* SPDX-License-Identifier: MIT
 *
 * The cheapest configuration under measured limits, in a handful of trials: one ask/tell object.
 *
 *     wg__tuner_new(&tuner, &config, &err);
 *     while (wg__tuner_ask(tuner, &question, &err) == WG_OK && question.kind == WG_TUNER_MEASURE) {
 *         (set question.configuration, measure it)
 *         wg__tuner_tell(tuner, &trial, &err);
 *     }
 *     wg__tuner_result(tuner, &result);
 *
 * What holds for every policy is here: the default is measured first where the policy wants it, a
 * trial that failed is data and bans what it implies, a level that the driver refuses leaves the
 * space, a thrown-away sample changes nothing, no configuration is repeated but to confirm, the
 * returned one is validated, and the reason of the end is in the result. What to measure next is
 * the policy's (tuning_policy.h; one file each).
 *
 * Rules of failures (why: docs/internals/tuning.md):
 *   OUT_OF_MEMORY  bans the same configuration with a larger batch or more replicas, too
 *   CRASHED, HUNG  ban the configuration, but for a default that must come first: it is tried once
 *                  more. A second one in the same group (all categories and other expensive knobs
 *                  equal), when the group failed more often than it worked, bans what was not
 *                  measured of it, while another group is left
 *   REFUSED        bans the level of that knob; it counts as no trial
 *   DISCARDED      counts as no trial; the same configuration is asked again (a bounded number of
 *                  times, then it counts as CRASHED)
 *   CUT            figures are lower bounds (of `<=` limits): the window was ended early
 * A trial may tell that a knob did not bind (is_slack): the configurations that it makes the same
 * count as one from then on (tuning_slack.h), under the name of a measured one of them.
 *
 * Beyond that, a latency that is over its limit by far rules out the same configuration with slower
 * clocks, for the policies that reason (cbo, wattgov): see tuning_bans.h for when that is safe.
 *
 * Pure: time and chance are arguments. A tuner that is told the same trials from the same seed asks
 * the same questions: resuming is telling again.
 *
 * Owns: its state; the space must outlive it.    Threads: one at a time.
 */
#ifndef WG_OPTIMIZE_TUNER_H
#define WG_OPTIMIZE_TUNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "optimize/tuning_space.h"

enum { WG_TUNING_LIMITS_MAX = 8, WG_TUNER_WHY_SIZE = 200, WG_TUNER_TRIALS_DEFAULT = 30 };

/* What physics knows of a measured figure. */
enum wg_tuning_kind {
    WG_TUNING_TIME,   /* latency, seconds per request or epoch */
    WG_TUNING_ENERGY, /* joules per request or epoch, or a proxy of them */
    WG_TUNING_OTHER   /* memory, accuracy, ...: no physics */
};

struct wg_tuning_limit {
    const char *name; /* for messages: "p99_s"; copied */
    enum wg_tuning_kind kind;
    double bound;    /* > 0; the tuner works on logarithms where all figures are positive */
    bool is_minimum; /* figure >= bound, instead of <= */
};

struct wg_tuning_goal {
    enum wg_tuning_kind objective; /* what is made least; its figures are > 0 */
    size_t limit_count;
    struct wg_tuning_limit limits[WG_TUNING_LIMITS_MAX];
};

#define WG_TUNER_POLICIES(X)                                                                       \
    X(RANDOM, "random")                                                                            \
    X(POLYTHROTTLE, "polythrottle")                                                                \
    X(CBO, "cbo")                                                                                  \
    X(WATTGOV, "wattgov")

enum wg_tuner_policy {
#define X(name, word) WG_TUNER_##name,
    WG_TUNER_POLICIES(X)
#undef X
        WG_TUNER_POLICY_COUNT
};

struct wg_tuner_config {
    const struct wg_tuning_space *space;
    struct wg_tuning_goal goal;
    enum wg_tuner_policy policy;
    uint64_t seed;
    double noise;      /* relative standard error of a figure where the trial tells none; 0: 0.02 */
    double stop_share; /* expected relative saving below which it stops; 0: the policy's own */
    size_t max_trials; /* 0: wg__tuner_usual_trials */
    bool validate;     /* a final trial of what is returned; `wattgov` only */
    bool default_first; /* measure the default first, whatever the policy, and return it unless
                           something is cheaper beyond the error of that: for live tuning */
    bool never_stops;   /* to the budget, or until all is tried: for studies of the first hit */
    double trial_s;     /* what a trial takes: knobs' switch_s are weighed against it; 0: not */

    /* Of `polythrottle` only. */
    double xi; /* NAN: 0.1, the paper's: the saving asked for, in default_objective */
    double default_objective; /* the default's figure; 0: the mean of what was measured */
    bool cpu_apart;           /* the first cpu_clock knob is tuned alone, first */
};

enum wg_trial_outcome {
    WG_TRIAL_MEASURED,
    WG_TRIAL_CUT,
    WG_TRIAL_CRASHED,
    WG_TRIAL_HUNG,
    WG_TRIAL_OUT_OF_MEMORY,
    WG_TRIAL_REFUSED,
    WG_TRIAL_DISCARDED,
    WG_TRIAL_OUTCOME_COUNT
};

struct wg_trial {
    size_t configuration;
    enum wg_trial_outcome outcome;
    double objective;                     /* MEASURED: > 0; CUT: a lower bound, or NAN: unknown */
    double objective_error;               /* relative standard error; 0: config.noise */
    double figures[WG_TUNING_LIMITS_MAX]; /* of the limits, in their order; CUT: NAN: unknown */
    double figure_errors[WG_TUNING_LIMITS_MAX]; /* relative standard errors; 0: config.noise */
    size_t refused_knob;                        /* of REFUSED */
    /* MEASURED: the figures are the same for every level of slack_knob that is at least slack_level
     * (a value, at most the trial's own), other knobs equal: the knob did not bind. */
    bool is_slack;
    size_t slack_knob;
    double slack_level;
};

/* Why this configuration. */
enum wg_tuner_reason {
    WG_TUNER_DEFAULT,   /* the default comes first */
    WG_TUNER_START,     /* a blind start */
    WG_TUNER_SAVING,    /* the largest expected saving within the limits */
    WG_TUNER_FEASIBLE,  /* nothing is known to meet the limits: the most probable one */
    WG_TUNER_REMEASURE, /* perhaps cheaper and within the limits: once more */
    WG_TUNER_VALIDATE,  /* what would be returned, once more */
    WG_TUNER_AGAIN,     /* its last sample was thrown away, or the default failed once */
    WG_TUNER_REASON_COUNT
};

enum wg_tuner_end {
    WG_TUNER_RUNNING,
    WG_TUNER_CONVERGED, /* no further saving is expected */
    WG_TUNER_BUDGET,    /* max_trials */
    WG_TUNER_EXHAUSTED, /* everything allowed is tried */
    WG_TUNER_END_COUNT
};

struct wg_tuner_question {
    enum wg_tuner_question_kind { WG_TUNER_MEASURE, WG_TUNER_DONE } kind;
    size_t configuration; /* of MEASURE */
    enum wg_tuner_reason reason;
    enum wg_tuner_end end;       /* of DONE */
    char why[WG_TUNER_WHY_SIZE]; /* one sentence with the numbers behind it */
};

/* What is believed of a configuration's true figures (medians; NAN: no model). */
struct wg_tuning_forecast {
    double objective, objective_sd; /* sd relative: of the logarithm */
    double figures[WG_TUNING_LIMITS_MAX], figure_sds[WG_TUNING_LIMITS_MAX];
    double feasible; /* probability that it meets all limits */
};

struct wg_tuner_result {
    enum wg_tuner_end end;  /* RUNNING: the best so far */
    size_t configuration;   /* returned; space->count: nothing was measured, not even cut */
    bool is_feasible;       /* believed to meet the limits; false: the most probable one */
    bool is_validated;      /* and measured more than once, still so */
    bool is_certain;        /* and believed to be more than 3 sd within each limit */
    size_t runner_up;       /* the next best that is believed to meet them; space->count: none */
    size_t trials;          /* that count */
    size_t failed_trials;   /* of these: crashed, hung, out of memory */
    double expected_saving; /* of the best next trial, relative; NAN: unknown */
    struct wg_tuning_forecast forecast; /* of the returned one */
    char why[WG_TUNER_WHY_SIZE];        /* of the end */
};

struct wg_tuner;

/* Of a search whose budget nobody gave: 30, or in a small space all configurations and what it
 * takes to confirm one. */
size_t wg__tuner_usual_trials(const struct wg_tuning_space *space);

/* WG_EINVAL: the text says what; WG_ENOMEM. */
enum wg_code wg__tuner_new(struct wg_tuner **out, const struct wg_tuner_config *config,
                           struct wg_error *err);
void wg__tuner_free(struct wg_tuner *tuner);

/* What to do next; asking twice gives the same answer. WG_ENOMEM. */
enum wg_code wg__tuner_ask(struct wg_tuner *tuner, struct wg_tuner_question *out,
                           struct wg_error *err);

/* The outcome of the configuration asked for (or of any other allowed one: an old measurement).
 * WG_EINVAL: figures that cannot be (not finite, not above 0); nothing has changed then. */
enum wg_code wg__tuner_tell(struct wg_tuner *tuner, const struct wg_trial *trial,
                            struct wg_error *err);

/* Tells without deciding anything in between: what a long search has measured, in no time. What is
 * asked for afterwards is what these trials suggest, but perhaps not what a tuner would have asked
 * for that has decided after each of them. */
enum wg_code wg__tuner_recall(struct wg_tuner *tuner, const struct wg_trial *trial,
                              struct wg_error *err);

/* May be called at any time. */
enum wg_code wg__tuner_result(struct wg_tuner *tuner, struct wg_tuner_result *out,
                              struct wg_error *err);

/* For reports: what is believed of any configuration now. False: the policy has no model of it. */
bool wg__tuner_forecast(struct wg_tuner *tuner, size_t configuration,
                        struct wg_tuning_forecast *out);

/* Whether a configuration was banned, or is the same as another one. */
bool wg__tuner_is_banned(const struct wg_tuner *tuner, size_t configuration);

const char *wg__tuner_policy_word(enum wg_tuner_policy policy);
bool wg__tuner_policy_parse(const char *word, enum wg_tuner_policy *out);
const char *wg__tuner_reason_word(enum wg_tuner_reason reason);    /* "remeasure" */
const char *wg__tuner_end_word(enum wg_tuner_end end);             /* "converged" */
const char *wg__trial_outcome_word(enum wg_trial_outcome outcome); /* "out_of_memory" */
bool wg__trial_outcome_parse(const char *word, enum wg_trial_outcome *out);

#endif
