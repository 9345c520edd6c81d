/* SPDX-License-Identifier: MIT
 *
 * Tunes a workload and the devices under it, live.
 *
 *     tuner --question--> devices (device_hold.h), workload --windows--> figures, energy
 *       ^                                                                    |
 *       '---- trial <---- objective and limits (tune_goal.h) <---------------'
 *                 '-----> checkpoint (tune_checkpoint.h), after each one
 *
 * The tuner decides (optimize/tuner.h); this sets what it asks for, sees that it is set, warms up,
 * measures windows until they are precise enough, judges what went wrong, and gives everything back
 * at the end, whatever the end is. What was measured before an interruption is told to a new tuner
 * from the same seed, which then asks what the old one would have asked.
 *
 * Owns: settings of devices while it runs; the result.    Threads: the main thread.
 */
#ifndef WG_LIVE_TUNE_RUNNER_H
#define WG_LIVE_TUNE_RUNNER_H

#include "live/child.h"
#include "live/tune_energy.h"
#include "live/tune_goal.h"
#include "live/tune_knobs.h"
#include "live/workload.h"
#include "optimize/tuner.h"

enum { WG_TUNE_TRIALS_MAX = 4096 };

/* One trial, for reports and for the checkpoint. */
struct wg_tune_trial {
    struct wg_trial told;               /* to the tuner */
    enum wg_tuner_reason reason;        /* why it was made */
    char why[WG_TUNER_WHY_SIZE];        /* the tuner's words */
    char failure[WG_WORKLOAD_WHY_SIZE]; /* of one that was not measured */
    unsigned windows;
    double time_s;   /* of the windows together */
    double at_s;     /* since the start of this run; of told ones from a checkpoint: as then */
    double energy_j; /* of the windows together; NAN: unknown */
    double power_w;  /* mean; NAN */
    double requests; /* NAN */
    bool is_resumed; /* from a checkpoint */
    size_t figure_count;
    struct wg_workload_figure *figures; /* means over the windows */
};

struct wg_tune_request {
    struct wg_machine *machine;
    const struct wg_tune_knobs *knobs;
    const struct wg_tune_goal *goal;
    struct wg_workload *workload;
    struct wg_signals *signals;
    struct wg_tune_energy energy; /* resolved */

    /* The tuner. */
    enum wg_tuner_policy policy;
    uint64_t seed;
    size_t max_trials; /* 0: the tuner's */
    double stop_share; /* 0: the policy's */
    double max_time_s; /* 0: as long as it takes */
    bool validate;

    /* Measuring. */
    double precision;                  /* relative standard error that ends a trial */
    double min_window_s, max_window_s; /* one window; all of a trial together at most max */
    unsigned min_windows, max_windows; /* of a trial */
    bool is_server;                    /* under our own load, or its own counts are read */
    bool leaves_returned; /* at the end the workload is set to what is returned, not given back */
    bool tells_errors;    /* the workload knows its own precision: one window may do */
    double hung_s;
    double settle_s; /* after a setting of a device */
    double cool_s;   /* at most, after a throttled window */
    bool warms_up;

    /* The load model; arrivals NULL: what is measured counts. */
    const char *arrivals;
    size_t load_requests;
    double idle_s; /* how long idle power is measured; 0: it is `idle_w` */
    double idle_w;

    /* The checkpoint. */
    const char *state_path; /* NULL: none */
    bool resume;
    const char *identity; /* JSON: what a checkpoint must agree with (tune_checkpoint.h) */

    const char *holder;
    const char *state_dir;
    const char *root;
    /* Each may be NULL. */
    void (*say)(const char *line, void *context);
    void (*asked)(const struct wg_tuner_question *question, size_t number, void *context);
    void (*told)(const struct wg_tune_trial *trial, size_t number, void *context);
    void *context;
};

struct wg_tune_result {
    size_t count;
    struct wg_tune_trial *trials; /* in order, from a checkpoint too */
    size_t resumed;
    struct wg_tuner *tuner;      /* for forecasts; NULL: nothing was told */
    struct wg_tuner_result best; /* `end` RUNNING: it was interrupted, or see ended_by_time */
    double bounds[WG_TUNING_LIMITS_MAX]; /* of the limits, relative ones made absolute */
    int signal;                          /* that ended it; 0: none */
    bool ended_by_time;
    bool was_held;    /* trial after trial was thrown away for a cause that lasts; it ended there */
    bool has_failed;  /* an error ended it: `best` is the best so far, its `why` the error */
    bool was_foreign; /* somebody else wrote a knob: it ended there */
    size_t not_restored;
    bool workload_not_restored;
    char workload_end[WG_WORKLOAD_WHY_SIZE + 64]; /* what became of it; "": nothing to tell
                                                   */
    size_t unsaved;                               /* checkpoints that could not be written */
    double time_s;
    double idle_w;                /* NAN: not measured */
    enum wg_energy_source source; /* of a metered energy */
};

/* WG_EPERM: a device's knob may not be set (the text says what to do); WG_EBUSY: another wattgov
 * holds it; WG_EDATA: the figures lack one that the goal names, or a checkpoint is another
 * tuning's; WG_ENOENT: the command is not there. `*out` is filled in any case, as far as it got. */
enum wg_code wg__tune_run(const struct wg_tune_request *request, struct wg_tune_result *out,
                          struct wg_error *err);
void wg__tune_result_fini(struct wg_tune_result *result);

#endif
