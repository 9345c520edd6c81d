/* SPDX-License-Identifier: MIT
 *
 * Work that is left: see gpu_share.h.
 *
 * Owns: nothing.    Threads: as the header says.
 */
#include "simulate/gpu_share.h"

#include <assert.h>
#include <math.h>

void wg__gpu_share_init(struct wg_gpu_share *share, double batch_slowdown, double step_slowdown)
{
    assert(batch_slowdown >= 1.0 && step_slowdown >= 1.0);
    *share = (struct wg_gpu_share){
        .tasks = {[WG_GPU_BATCH].slowdown = batch_slowdown, [WG_GPU_STEP].slowdown = step_slowdown},
    };
}

/* Seconds that the whole takes as things are. */
static double whole_s(const struct wg_gpu_share *share, enum wg_gpu_user user)
{
    const struct wg_gpu_task *task = &share->tasks[user];
    const enum wg_gpu_user other = user == WG_GPU_BATCH ? WG_GPU_STEP : WG_GPU_BATCH;
    return share->tasks[other].is_running ? task->alone_s * task->slowdown : task->alone_s;
}

void wg__gpu_share_advance(struct wg_gpu_share *share, double now_s)
{
    assert(now_s >= share->at_s);
    const double passed_s = now_s - share->at_s;
    for (enum wg_gpu_user user = 0; user < WG_GPU_USER_COUNT; user++) {
        struct wg_gpu_task *task = &share->tasks[user];
        if (task->is_running) /* its end may be rounded to a moment just behind the true one */
            task->left = fmax(0.0, task->left - passed_s / whole_s(share, user));
    }
    share->at_s = now_s;
}

void wg__gpu_share_begin(struct wg_gpu_share *share, enum wg_gpu_user user, double alone_s)
{
    struct wg_gpu_task *task = &share->tasks[user];
    assert(!task->is_running && alone_s > 0.0);
    task->is_running = true;
    task->left = 1.0;
    task->alone_s = alone_s;
}

void wg__gpu_share_end(struct wg_gpu_share *share, enum wg_gpu_user user)
{
    assert(share->tasks[user].is_running);
    share->tasks[user].is_running = false;
}

void wg__gpu_share_rescale(struct wg_gpu_share *share, enum wg_gpu_user user, double alone_s)
{
    assert(share->tasks[user].is_running && alone_s > 0.0);
    share->tasks[user].alone_s = alone_s;
}

double wg__gpu_share_end_s(const struct wg_gpu_share *share, enum wg_gpu_user user)
{
    if (!share->tasks[user].is_running)
        return HUGE_VAL;
    return share->at_s + share->tasks[user].left * whole_s(share, user);
}
