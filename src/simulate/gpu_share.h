/* SPDX-License-Identifier: MIT
 *
 * A batch and a fine-tuning step that run side by side on one GPU, and hinder each other.
 *
 * Each has work, counted as a share of itself: `left` falls from 1 to 0. A task that takes
 * `alone_s` seconds alone at the present clocks does
 *
 *     d left / dt = -1 / alone_s                  while it is alone
 *                   -1 / (alone_s * slowdown)     while the other runs too
 *
 * so when somebody begins or ends, or the clocks change, the rest is rescaled and nothing is lost:
 *
 *     batch  |=======|- - - - - - -|====|        slowdown 2: the part beside the step counts half
 *     step           |- - - - - - -|
 *
 * A slowdown of 2 for both is a fair split of a GPU that either would fill.
 *
 * Pure.    Owns: nothing.    Threads: one at a time.
 */
#ifndef WG_SIMULATE_GPU_SHARE_H
#define WG_SIMULATE_GPU_SHARE_H

#include <stdbool.h>

enum wg_gpu_user { WG_GPU_BATCH, WG_GPU_STEP, WG_GPU_USER_COUNT };

struct wg_gpu_task {
    bool is_running;
    double left;     /* of its work, at the share's `at_s` */
    double alone_s;  /* of the whole, at the present clocks */
    double slowdown; /* beside the other one, >= 1 */
};

struct wg_gpu_share {
    double at_s;
    struct wg_gpu_task tasks[WG_GPU_USER_COUNT];
};

void wg__gpu_share_init(struct wg_gpu_share *share, double batch_slowdown, double step_slowdown);

/* Lets both work until `now_s`, which never falls. All that follows is said of that moment. */
void wg__gpu_share_advance(struct wg_gpu_share *share, double now_s);

/* `user` does not run. */
void wg__gpu_share_begin(struct wg_gpu_share *share, enum wg_gpu_user user, double alone_s);
void wg__gpu_share_end(struct wg_gpu_share *share, enum wg_gpu_user user);
/* The clocks changed: the whole of what runs would take `alone_s` now. */
void wg__gpu_share_rescale(struct wg_gpu_share *share, enum wg_gpu_user user, double alone_s);

/* When it ends if nothing changes; HUGE_VAL: it does not run. */
double wg__gpu_share_end_s(const struct wg_gpu_share *share, enum wg_gpu_user user);

#endif
