/* SPDX-License-Identifier: MIT
 *
 * What a training run consists of; shared by train_runner.c (life), train_loop.c (what comes in)
 * and train_orders.c (what is done), and by nobody else.
 *
 * Threads: the main thread.
 */
#ifndef WG_LIVE_TRAIN_PARTS_H
#define WG_LIVE_TRAIN_PARTS_H

#include "live/guard.h"
#include "live/train_runner.h"
#include "live/train_signal.h"

/* A measurement that runs. */
struct wg_train_open_window {
    struct wg_window *window; /* NULL: none runs */
    double begin_s;
    double begin_steps;
    double begin_step_s; /* when the last step before it had ended */
    bool has_stall;      /* we did not run for a while */
};

struct wg_train_run {
    const struct wg_train_request *request;
    struct wg_train_result *result;
    const struct wg_device_info *infos[WG_TRAIN_GPUS_MAX];

    struct wg_meter *meter;
    struct wg_window *total;
    struct wg_control *control; /* NULL: nothing may be set */
    struct wg_guard guard;
    struct wg_progress *progress;
    struct wg_train_signal *signal; /* of the power; NULL once steps were told */

    struct wg_train_governor *governor; /* of the present stage; NULL: no steps yet */
    size_t stage;                       /* of result->stages */
    size_t setting;                     /* of the stage's settings */
    const char *why;
    struct wg_train_open_window open;

    uint64_t start_ns;
    double steps;             /* NAN: none known */
    double step_s;            /* when the newest ended */
    double counted_steps;     /* of these, attributed to a setting */
    double first_epoch;       /* the first that was told; 0: it was 1, so they count from the start;
                                 NAN: none yet */
    double first_epoch_steps; /* done then */
    double power_w;           /* newest, all GPUs; NAN */
    double clock_hz;          /* newest, their mean; NAN */
    double sample_s;          /* when the newest of their samples was taken */
    double stage_begin_s;
    double next_tick_s, next_look_s, next_moment_s, moment_every_s;
    double order_s;        /* the newest order was done then: earlier steps are none of its */
    double seen_s;         /* progress was looked for last */
    double behind_until_s; /* what comes before is a backlog */
    bool is_foreign;
    bool has_set;            /* the driver has taken a setting */
    struct wg_error refused; /* it takes none at all, for this reason; code WG_OK: not known */
    bool has_refused;        /* no period is to be found: said once */
    bool wants_stop;
    bool is_over;            /* the command has ended: what others still tell is not its progress */
    double stop_s;           /* when SIGTERM was sent; NAN */
    struct wg_error failure; /* code WG_OK: none */
};

/* Seconds since the start. */
double wg__train_now_s(const struct wg_train_run *run);
/* One line for the user. */
void wg__train_say(struct wg_train_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* train_runner.c: nothing may be set after all: gives back what was, says why, and goes on as
 * --observe would. */
void wg__train_observe(struct wg_train_run *run, const char *why);

/* train_orders.c: makes the governor of stage `stage`. */
enum wg_code wg__train_stage_begin(struct wg_train_run *run, size_t stage, struct wg_error *err);
/* Gives the governor a moment and does what it orders. */
void wg__train_tick(struct wg_train_run *run, double t_s, bool is_step_end);
/* Reads back what is set; what somebody else has set is told and ends the governing. */
void wg__train_look(struct wg_train_run *run);
/* Takes the profile over and frees the governor. */
void wg__train_stage_end(struct wg_train_run *run);

/* train_loop.c: until the command has ended. */
void wg__train_loop(struct wg_train_run *run);
wg_progress_sink wg__train_take_event;

/* train_output.c: what the job prints goes through us, to be matched. */
struct wg_train_output {
    struct wg_child_setup child; /* the job's ends */
    int ours[2];                 /* the other ends; -1: none. Given to the progress by `connect` */
    int copy[2];
};
enum wg_code wg__train_output_open(struct wg_train_output *output, struct wg_error *err);
/* After the job was started (or not): closes its ends here, hands ours to the progress. */
enum wg_code wg__train_output_connect(struct wg_train_output *output, struct wg_progress *progress,
                                      struct wg_error *err);
void wg__train_output_close(struct wg_train_output *output);

#endif
