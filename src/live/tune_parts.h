/* SPDX-License-Identifier: MIT
 *
 * What a tuning run consists of; shared by tune_runner.c (life), tune_trial.c (one trial),
 * tune_window.c (one window) and tune_settings.c (what is set), and by nobody else.
 *
 * Threads: the main thread.
 */
#ifndef WG_LIVE_TUNE_PARTS_H
#define WG_LIVE_TUNE_PARTS_H

#include "base/expression.h"
#include "live/device_hold.h"
#include "live/tune_load.h"
#include "live/tune_runner.h"

enum {
    WG_TUNE_POINTS_MAX = 512,
    WG_TUNE_WINDOWS_MAX = 64, /* of a trial */
    WG_TUNE_TERMS_MAX = 1 + WG_TUNING_LIMITS_MAX,
    WG_TUNE_PRECISE_MAX = WG_TUNE_TERMS_MAX * WG_EXPRESSION_NAMES_MAX
};

/* One level a knob. */
struct wg_tune_levels {
    uint16_t of[WG_TUNING_KNOBS_MAX];
};

/* A measured batch size at some setting of all else, for the load model. */
struct wg_tune_batch_point {
    struct wg_tune_levels levels;
    struct wg_tune_load_point point;
};

/* What is seen of the devices while a window runs. */
struct wg_tune_watch {
    struct wg_window *window; /* NULL: none was begun */
    double begin_s, end_s;    /* NAN: not yet */
    uint32_t throttle;        /* bits seen */
    double clock_hz;          /* the largest core clock that was seen; NAN */
    double temperature_c;     /* the newest, of the hottest GPU; NAN */
    double next_s;            /* when to look again */
};

/* What was seen of the GPUs' power in the windows of a trial (tune_slack.c). */
struct wg_tune_power {
    size_t looks[WG_TUNE_DEVICES_MAX];       /* of each GPU, with a power */
    double peak_w[WG_TUNE_DEVICES_MAX];      /* valid with looks */
    double throttled_s[WG_TUNE_DEVICES_MAX]; /* by a power limit, as first read; NAN: not told */
    bool is_held[WG_TUNE_DEVICES_MAX];       /* a power limit was seen to slow it down */
    bool is_working;                         /* any of them */
};

/* What a window gave. */
struct wg_tune_window {
    struct wg_workload_sample sample; /* figures, ours among them */
    struct wg_workload_sample drawn;  /* at the load: with the errors of the draw alone */
    double energy_j;                  /* NAN: unknown */
    bool is_throttled;                /* by heat, or by somebody else's limit */
    bool is_stable;                   /* false: the load is more than it can serve */
    uint32_t throttle;
    double clock_hz; /* NAN: not seen */
};

/* What was seen of the noise between windows of one trial, for one term. */
struct wg_tune_noise {
    double variance; /* relative, pooled over trials */
    double freedom;
};

struct wg_tune_run {
    const struct wg_tune_request *request;
    struct wg_tune_result *result;
    struct wg_device_hold hold;
    struct wg_meter *meter; /* NULL: nothing is measured by us */
    struct wg_tune_watch watch;
    struct wg_tune_window window; /* the newest */
    struct wg_tune_power power;   /* of this trial */
    uint64_t window_number;       /* of the next one, within its trial */
    double start_s, next_tend_s;
    int state_lock; /* of the state's file; -1: not there yet */
    bool has_warned_of_time, has_warned_of_idle;
    bool was_stopped;                      /* by SIGSTOP or Ctrl-Z, within the newest window */
    double cooled_s;                       /* in all */
    size_t thrown;                         /* trials thrown away since the last one that was not */
    bool devices_are_set, workload_is_set; /* `present` is what they are set to */
    bool is_default;                       /* the trial that is made is the default's */
    struct wg_tune_levels present;
    struct wg_tune_levels warmed[WG_TUNE_TRIALS_MAX];
    size_t warmed_count;
    double idle_w[WG_TUNING_LEVELS_MAX]; /* by the level of the memory clock; NAN: not measured */
    struct wg_tune_batch_point points[WG_TUNE_POINTS_MAX];
    size_t point_count;
    struct wg_tune_noise noise[WG_TUNE_TERMS_MAX]; /* objective, limits */
    const char *precise[WG_TUNE_PRECISE_MAX + 1];
};

double wg__tune_now_s(void);
void wg__tune_say(struct wg_tune_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether a signal came, or settings are no longer ours. Polled while anything is waited for. */
bool wg__tune_should_stop(struct wg_tune_run *run);
/* Waits; false: should_stop. */
bool wg__tune_wait(struct wg_tune_run *run, double time_s);

/* tune_settings.c. What became of setting a configuration. */
enum wg_tune_set_outcome {
    WG_TUNE_SET,
    WG_TUNE_SET_REFUSED, /* of `refused_knob`, as `why` says */
    WG_TUNE_SET_ENDED    /* somebody else has set something: the tuning ends */
};
enum wg_code wg__tune_take_devices(struct wg_tune_run *run, struct wg_error *err);
enum wg_code wg__tune_set_devices(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                                  enum wg_tune_set_outcome *outcome, size_t *refused_knob,
                                  char why[WG_WORKLOAD_WHY_SIZE], struct wg_error *err);
/* OK at once when nothing changes. Warms up what was never set before. */
enum wg_code wg__tune_set_workload(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                                   enum wg_workload_outcome *outcome,
                                   char why[WG_WORKLOAD_WHY_SIZE], struct wg_error *err);
/* The same without warming up, for what is left behind. */
enum wg_code wg__tune_leave_workload(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                                     enum wg_workload_outcome *outcome,
                                     char why[WG_WORKLOAD_WHY_SIZE], struct wg_error *err);
/* After a failure of the workload: brings it back, and forgets what was warm. */
enum wg_code wg__tune_recover(struct wg_tune_run *run, struct wg_error *err);
void wg__tune_levels_of(const struct wg_tuning_space *space, size_t configuration,
                        struct wg_tune_levels *out);
/* The knob of that role; knobs->count: none. */
size_t wg__tune_find_role(const struct wg_tune_knobs *knobs, enum wg_tuning_role role);
/* The first knob of the device's kind; knobs->count: none. */
size_t wg__tune_find_device(const struct wg_tune_knobs *knobs, enum wg_knob knob);

/* tune_window.c: one window of what is set, into run->window. Unless `is_bare` the load model (if
 * one is asked for) has been applied. */
enum wg_code wg__tune_measure(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                              bool is_bare, struct wg_error *err);
void wg__tune_plan(struct wg_tune_run *run, struct wg_workload_plan *plan);
/* What was measured at these levels for the load model; NULL: nothing yet. */
struct wg_tune_batch_point *wg__tune_find_point(struct wg_tune_run *run,
                                                const struct wg_tune_levels *levels);
/* Idle power at these settings, measured once for each memory clock. */
enum wg_code wg__tune_idle_power(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                                 double *idle_w_out, struct wg_error *err);

/* tune_slack.c: whether a power limit bound. */
void wg__tune_power_begin(struct wg_tune_power *power);
void wg__tune_power_look(struct wg_tune_power *power, size_t gpu, const struct wg_sample *sample);
/* Tells in `told` that the limit did not bind, and from which level on, where that is known. */
void wg__tune_tell_slack(const struct wg_tune_power *power, const struct wg_tune_knobs *knobs,
                         struct wg_trial *told);

/* tune_trial.c: one configuration. `*has_ended_out`: a signal, or somebody else's write; the trial
 * is none then. */
enum wg_code wg__tune_try(struct wg_tune_run *run, size_t configuration, struct wg_tune_trial *out,
                          bool *has_ended_out, struct wg_error *err);

#endif
