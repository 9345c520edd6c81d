/* SPDX-License-Identifier: MIT
 *
 * Which setting a running training job should have: the profile on its first steps, the search, the
 * choice, and the watch over it. One ask/tell object per job.
 *
 * The caller feeds ticks (some ten a second, and one at each end of a step) with what is cheap to
 * know, and does what the answer says, and then gives the same tick again until the answer is KEEP
 * (after END it tells the measurement first): one end of a step may end a measurement, change the
 * setting and begin the next measurement. A caller that does not ask again loses time, no more.
 *
 *     KEEP     nothing
 *     SET      set all devices to `setting`
 *     BEGIN    begin a measurement: the last tick's moment is its start
 *     END      end it, and tell_measurement before the next tick
 *     ABORT    end it and forget it
 *
 *      WARMUP --> MEASURE <--> SETTLE          the search: a few settings, some of them again
 *                    |
 *                    v
 *                  HOLD  -- power or speed drifts --> the present setting and its neighbours
 *
 * How long a setting takes to act is seen, not assumed: SETTLE ends when power and speed are steady
 * again (bounded). A measurement goes on until its noise is small enough for the choice, and is
 * thrown away when the device was throttled by temperature or cap, drifted, or somebody else wrote
 * the knob. Settings are numbers in any unit that rises with speed (watts of a limit, hertz of a
 * clock); the last one is the device unhindered.
 *
 * Pure: no clock, device, file or thread.    Threads: one at a time.
 */
#ifndef WG_OPTIMIZE_TRAIN_GOVERNOR_H
#define WG_OPTIMIZE_TRAIN_GOVERNOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "optimize/objective.h"
#include "optimize/power_limit.h"

enum wg_train_phase {
    WG_TRAIN_WARMUP,
    WG_TRAIN_SETTLE,
    WG_TRAIN_MEASURE,
    WG_TRAIN_HOLD,
    WG_TRAIN_PHASE_COUNT
};

/* One row of the profile. */
struct wg_train_point {
    double setting;
    double power_w;                 /* mean, all devices together */
    double throughput;              /* steps per second */
    double power_sd, throughput_sd; /* standard errors of the two */
    double measured_s;              /* in all */
    unsigned measurements;          /* that counted */
    unsigned discarded;             /* thrown away */
    double settle_s; /* how long the setting took to act, the last time; NAN: not seen */
};

struct wg_train_config {
    struct wg_objective objective; /* with max_power_w */
    const double *settings;        /* rising; copied */
    size_t count;                  /* 1 .. WG_POWER_LIMITS_MAX */
    double setting_w; /* watts of the devices together per unit of setting: the GPUs' number for a
                         power limit; 0: the setting is no power (a clock) */
    double warmup_s;  /* before the first measurement; 0: seen by itself */
    double measure_s; /* of each measurement; 0: as long as the noise needs */
    double budget_s;  /* most time for the first search; 0: none */
    const struct wg_train_point
        *cached; /* an earlier profile, checked by one measurement; NULL: none */
    size_t cached_count;
    double neighbor_setting; /* the best of a neighbouring batch size; NAN: none */
};

struct wg_train_tick {
    double t_s;
    double steps;     /* done so far; NAN: not known yet */
    bool is_step_end; /* this tick is the end of a step (the caller's finest moment of progress) */
    double power_w;   /* sum of the devices, newest sample; NAN: unknown */
    double clock_hz;  /* mean; NAN: unknown */
    double temperature_c; /* the hottest; NAN: unknown */
    uint32_t throttle;    /* bits of enum wg_throttle (wattgov/device.h) of any device */
    bool is_foreign;      /* somebody else has written the knob */
};

struct wg_train_order {
    enum wg_train_order_kind {
        WG_TRAIN_KEEP,
        WG_TRAIN_SET,
        WG_TRAIN_BEGIN,
        WG_TRAIN_END,
        WG_TRAIN_ABORT
    } kind;
    size_t setting;  /* of SET: index */
    const char *why; /* a static text: "the device was throttled"; also of a KEEP with which the
                        search ends at the setting that is set already; else "" */
};

struct wg_train_measurement {
    double energy_j, energy_error_j; /* all devices; NAN: unknown */
    double time_s;
    double steps;       /* within it; may be broken (from a period) */
    double steps_error; /* half width of a 95 % interval; 0: exact */
    bool is_throttled;  /* by temperature, or a limit below the one that was set */
    bool is_gap;        /* the window has gaps, was reset, lost ... */
};

struct wg_train_governor;

enum wg_code wg__train_governor_new(struct wg_train_governor **out,
                                    const struct wg_train_config *config, struct wg_error *err);
void wg__train_governor_free(struct wg_train_governor *governor);

void wg__train_governor_tick(struct wg_train_governor *governor, const struct wg_train_tick *tick,
                             struct wg_train_order *out);
void wg__train_governor_tell(struct wg_train_governor *governor,
                             const struct wg_train_measurement *measurement);
/* The setting could not be set (driver refused): it leaves the search. */
void wg__train_governor_refuse(struct wg_train_governor *governor, size_t setting);

enum wg_train_phase wg__train_governor_phase(const struct wg_train_governor *governor);
/* The present setting (`count` before the first SET: the device is as it was found), and the best
 * one so far (`count` while nothing was measured). */
size_t wg__train_governor_setting(const struct wg_train_governor *governor);
size_t wg__train_governor_best(const struct wg_train_governor *governor);
/* The profile so far, in the order of the settings: those that were measured. Valid until the next
 * call that changes the governor. */
size_t wg__train_governor_profile(const struct wg_train_governor *governor,
                                  const struct wg_train_point **out);
/* How often HOLD was left for a drift. */
unsigned wg__train_governor_drifts(const struct wg_train_governor *governor);

#endif
