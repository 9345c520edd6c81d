/* SPDX-License-Identifier: MIT
 *
 * Runs a training command under the power governor.
 *
 *     progress ----\
 *     meter -------+--> train_governor --orders--> control --> GPUs
 *     command -----/                                  guard (restores when we die)
 *
 * The governor decides (optimize/train_governor.h); this feeds it with what the job says of its
 * progress and what the GPUs measure, does what it orders, and gives everything back at the end,
 * whatever the end is. Where nothing may be set, the job runs all the same and is only measured.
 *
 * Owns: the command, from start to end; its settings.    Threads: the main thread.
 */
#ifndef WG_LIVE_TRAIN_RUNNER_H
#define WG_LIVE_TRAIN_RUNNER_H

#include <stdbool.h>
#include <stddef.h>

#include "device/control.h"
#include "live/child.h"
#include "live/progress.h"
#include "live/train_settings.h"
#include "optimize/train_governor.h"
#include "wattgov/window.h"

enum { WG_TRAIN_STAGES_MAX = 2, WG_TRAIN_MOMENTS_MAX = 2048, WG_TRAIN_WHY_SIZE = 256 };

/* How the job's steps are known. */
#define WG_TRAIN_SOURCES(X)                                                                        \
    X(NONE, "none")       /* not at all */                                                         \
    X(TOLD, "told")       /* by $WATTGOV_PROGRESS: a line, the C API, Python */                    \
    X(PRINTED, "printed") /* by lines that a regular expression matched */                         \
    X(PERIOD, "period")   /* by the period of its power */

enum wg_train_source {
#define X(name, text) WG_TRAIN_SOURCE_##name,
    WG_TRAIN_SOURCES(X)
#undef X
        WG_TRAIN_SOURCE_COUNT
};
const char *wg__train_source_key(enum wg_train_source source);

/* The state now, for whoever shows it. */
struct wg_train_status {
    double t_s;
    enum wg_train_source source;
    enum wg_train_phase phase;
    bool is_searching; /* a governor is at work */
    const char *why;   /* the newest order's reason; never NULL */
    enum wg_knob knob;
    double setting; /* now; NAN: none was set */
    double steps;   /* so far; NAN: none known */
    double power_w; /* now, of all GPUs; NAN: unknown */
};

struct wg_train_request {
    struct wg_machine *machine;
    struct wg_signals *signals; /* blocked, for a command */
    const size_t *gpus;         /* positions in the machine */
    size_t gpu_count;
    const enum wg_knob *knobs; /* one, or two that are searched one after the other */
    size_t knob_count;
    struct wg_objective objective; /* max_power_w is found out */
    double warmup_s, measure_s;    /* 0: seen by itself */
    bool observe;                  /* set nothing */
    double survey_s;               /* above 0: set nothing, end the command once its present setting
                                      was measured, and after this time in any case */
    char *const *words;
    const char *const *environment; /* "NAME=VALUE", ended by NULL, beside ours; NULL: none */
    const char *holder;             /* for the journal: "wattgov train: python train.py" */
    const char *state_dir;          /* NULL: the usual one */
    const char *root;
    struct wg_progress_opts progress;    /* path, is_socket, regular expressions */
    const struct wg_train_point *cached; /* an earlier profile of the first knob; NULL: none */
    size_t cached_count;
    double neighbor_setting; /* the best of a neighbouring batch size; NAN: none */

    /* Each may be NULL. `say`: one line for the user. `event`: false stops the job (SIGTERM, and
     * after a while SIGKILL). `status`: some ten times a second. */
    void (*say)(const char *line, void *context);
    bool (*event)(const struct wg_progress_event *event, void *context);
    void (*status)(const struct wg_train_status *status, void *context);
    void *context;
};

/* What became of one knob. */
struct wg_train_stage {
    struct wg_train_settings settings;
    size_t best; /* settings.count: none */
    size_t point_count;
    struct wg_train_point points[WG_TRAIN_SETTINGS_MAX];
    double steps_at[WG_TRAIN_SETTINGS_MAX]; /* done at each setting */
    double search_s;                        /* from the first order to the choice; NAN: not made */
    unsigned drifts;
};

/* A moment of the run, for plots. */
struct wg_train_moment {
    double t_s, power_w; /* of all GPUs together */
    double limit_w;      /* likewise; NAN: none was set */
};

struct wg_train_result {
    struct wg_child child;
    bool was_stopped;                /* by `event`, or as a survey */
    int passed_signal;               /* the first that we got and passed on; 0: none */
    bool is_governed;                /* settings were made */
    char why_not[WG_TRAIN_WHY_SIZE]; /* !is_governed: why */
    struct wg_window_result total;   /* of the job's GPUs, from start to end */
    struct wg_window_result devices[WG_TRAIN_GPUS_MAX];
    double time_s;
    double max_power_w; /* of all the GPUs together; NAN: unknown */
    enum wg_train_source source;
    double confidence; /* of PERIOD; else 1, 0 of NONE */
    unsigned ranks;
    double steps, epochs, metric; /* NAN: unknown */
    double steps_per_epoch;       /* as counted from epoch to epoch; NAN: no epoch was told */
    double batch_size;            /* NAN: not told */
    size_t stage_count;
    struct wg_train_stage stages[WG_TRAIN_STAGES_MAX];
    bool was_foreign; /* somebody else wrote a knob meanwhile */
    size_t not_restored;
    struct wg_train_moment *moments; /* WG_TRAIN_MOMENTS_MAX at most */
    size_t moment_count;
};

/* WG_EBUSY: another wattgov holds a knob; WG_ENOENT, WG_EPERM: the command cannot be run (see
 * child.status); WG_EINVAL: a regular expression or too many GPUs; WG_ENOMEM, WG_EIO. */
enum wg_code wg__train_run(const struct wg_train_request *request, struct wg_train_result *out,
                           struct wg_error *err);
void wg__train_result_fini(struct wg_train_result *result);

/* What the largest setting would have cost for the same steps, beside what they cost: computed from
 * the profile. */
struct wg_train_saving {
    bool is_known;   /* the largest setting, the best and those of nearly all steps were measured */
    double energy_j; /* saved; negative: lost */
    double energy_share; /* of what it would have been, 0.12: 12 % */
    double share_error;  /* half width of a 95 % interval */
    double slower_share; /* of the time: 0.01: 1 % longer */
};
void wg__train_saving(const struct wg_train_result *result, struct wg_train_saving *out);

#endif
