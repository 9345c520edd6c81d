/* SPDX-License-Identifier: MIT
 *
 * A training job on a device, simulated for the governor of live training: steps with jitter, a
 * warm-up, settings that act late, noisy meters, pauses, throttling, drift.
 *
 *     struct train_world_job job = {.count = 3, .setting = {...}, .power_w = {...}, .step_s =
 * {...}}; struct train_world_conditions conditions = {.step_noise = 0.02, .power_noise = 0.01};
 *     struct train_world_result result;
 *     train_world_run(&job, &conditions, &config, seed, 600, &result);
 *
 * The job's curve (mean power and time of a step by setting) is exact; all else disturbs what the
 * governor sees of it. Power swings within a step as in the virtual GPU: full for 70 % of it, then
 * half of what is above idle. Regret and overhead are computed from the exact curve.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_TESTS_SUPPORT_TRAIN_WORLD_H
#define WG_TESTS_SUPPORT_TRAIN_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "optimize/train_governor.h"

struct train_world_job {
    size_t count;
    double idle_w;
    double setting[WG_POWER_LIMITS_MAX]; /* rising */
    double power_w[WG_POWER_LIMITS_MAX]; /* mean */
    double step_s[WG_POWER_LIMITS_MAX];  /* mean */
};

struct train_world_conditions {
    double step_noise;  /* relative standard deviation of a step's time */
    double moment_s;    /* standard deviation of the moment at which the end of a step is seen */
    double power_noise; /* of a power sample of a tenth of a second */
    double counter_s;   /* the energy counter's update period; 0: none, exact */
    double settle_s;    /* time constant with which a setting acts */
    double dead_s;      /* before it begins to act */
    double warm_s;      /* time constant of the warm-up */
    double warm_share;  /* how much slower the first step is: 1 is twice as long */
    size_t tell_every;  /* steps are told by so many; 0: each */
    size_t pause_every; /* steps; 0: no pauses */
    double pause_s;
    double throttle_from_s, throttle_to_s;       /* slowed down by temperature to 70 % */
    double drift_at_s, drift_speed, drift_power; /* factors from that moment on; 0 s: none */
    double foreign_at_s;                         /* somebody else writes the knob; 0: nobody */
    double steps_stop_s, steps_resume_s;         /* no step ends in between; 0: never */
    uint64_t refused;                            /* bit i: setting i is refused */
    bool is_blind;    /* no ends of steps are told: the measurement knows its steps to 1 % */
    bool is_reckoned; /* ends of steps are reckoned from a period, as live/train_signal.h does: the
                         one of a new setting is seen only some seconds after it was set */
    bool asks_once;   /* the caller does not give the same tick again */
};

struct train_world_result {
    size_t setting;    /* at the end */
    double hold_s;     /* when it was first held; NAN: never */
    size_t first_hold; /* the setting held then */
    double regret;     /* cost at the setting of the end over the least, minus 1 */
    double first_regret;
    double slowdown;   /* time per step at the end over the least */
    double overhead_s; /* until the first hold: beyond what the setting held then had cost */
    double overhead_j;
    double held_power_w; /* of the setting held first */
    size_t sets, measurements, aborts, refusals, probed;
    size_t discarded; /* measurements of the profile */
    const char *why;  /* the newest reason that was told */
    size_t hold_sets; /* orders to set after the first hold */
    unsigned drifts;
    double settle_seen_s; /* the longest of the profile */
    size_t point_count;
    struct wg_train_point points[WG_POWER_LIMITS_MAX];
};

/* Runs `duration_s`; `config` lacks the settings, which are the job's. */
void train_world_run(const struct train_world_job *job,
                     const struct train_world_conditions *conditions,
                     const struct wg_train_config *config, uint64_t seed, double duration_s,
                     struct train_world_result *out);

#endif
