/* SPDX-License-Identifier: MIT
 *
 * Stepping through a job; see vload_run.h.
 */
#include "vgpu/vload_run.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "wattgov/train.h"

static const double ns_per_s = 1e9;
static const double slice_s = 0.02; /* the longest time without a look at the speed */
static const double pause_s = 1;
static const double step_visible_s = 0.01; /* shorter steps draw their mean power */

struct state {
    struct vload_run *run;
    struct vgpu_load load;
    uint64_t cursor_ns; /* how far the work has come, on the clock */
    double counted_j;   /* up to the last pause; from then on, what came after anchor_j */
    double anchor_j;    /* true energy of the GPU at the end of that pause */
    double time_s;      /* of the job, since its begin */
    double utilization; /* that is set */
    bool is_stopped;
    struct wg_train *report; /* to a governor, where one runs us */
    struct wg_error *err;
};

/* A line on stdout and in the progress file, at once: a reader follows them. */
__attribute__((format(printf, 2, 3))) static enum wg_code say(struct state *state,
                                                              const char *format, ...)
{
    FILE *const streams[] = {stdout, state->run->progress};
    for (size_t i = 0; i < 2; i++) {
        if (streams[i] == NULL)
            continue;
        va_list args;
        va_start(args, format);
        errno = 0;
        const bool is_written = vfprintf(streams[i], format, args) >= 0 && fflush(streams[i]) == 0;
        va_end(args);
        if (!is_written)
            return wg__fail(state->err, WG_EIO, "cannot write the progress: %s",
                            errno != 0 ? strerror(errno) : "unknown cause");
    }
    return WG_OK;
}

static enum wg_code set_utilization(struct state *state, double utilization)
{
    if (utilization == state->utilization)
        return WG_OK;
    state->utilization = utilization;
    state->load.utilization = utilization;
    return vgpu_set_load(state->run->gpu, &state->load, state->err);
}

/* Work done in a second of the clock. */
static double present_rate(struct state *state)
{
    struct vgpu_gpu *gpu = state->run->gpu;
    vgpu_lock(gpu);
    vgpu_advance(gpu, wg__clock_ns());
    const double speed = vgpu_speed(gpu, &state->load);
    vgpu_unlock(gpu);
    return speed * state->run->time_scale;
}

/* The true energy where the work is: a process that cannot keep up is behind the clock, and what
 * the GPU draws in between is not the job's. */
static double energy_at_cursor_j(const struct state *state)
{
    const uint64_t now_ns = wg__clock_ns();
    return vgpu_true_energy_j(state->run->gpu,
                              state->cursor_ns < now_ns ? state->cursor_ns : now_ns);
}

static double energy_j(const struct state *state)
{
    return state->counted_j + energy_at_cursor_j(state) - state->anchor_j;
}

static void skip_pause(struct state *state, uint64_t now_ns)
{
    state->counted_j = energy_j(state);
    state->cursor_ns = now_ns;
    state->anchor_j = energy_at_cursor_j(state);
}

/* Moves the cursor by `seconds`, waiting as far as that lies ahead. */
static void move(struct state *state, double seconds)
{
    const uint64_t now_ns = wg__clock_ns();
    if (state->cursor_ns + (uint64_t)(pause_s * ns_per_s) < now_ns)
        skip_pause(state, now_ns);
    state->cursor_ns += (uint64_t)(seconds * ns_per_s);
    state->time_s += seconds * state->run->time_scale;
    bool to_group = false;
    if (state->cursor_ns > now_ns &&
        wg__signals_wait(state->run->signals, state->cursor_ns, &to_group) != 0)
        state->is_stopped = true;
}

static enum wg_code run_step(struct state *state)
{
    const double work_s = state->run->job->epoch_time_s / state->run->steps_per_epoch;
    double share = 0; /* of the step */
    while (share < 1 && !state->is_stopped) {
        const double rate = present_rate(state);
        const double step_s = work_s / rate;
        const bool is_visible = step_s >= step_visible_s;
        const double next = is_visible && share < VLOAD_BUSY_SHARE ? VLOAD_BUSY_SHARE : 1;
        const double utilization = !is_visible                ? VLOAD_MEAN_UTILIZATION
                                   : share < VLOAD_BUSY_SHARE ? 1
                                                              : VLOAD_REST_UTILIZATION;
        const enum wg_code code = set_utilization(state, utilization);
        if (code != WG_OK)
            return code;
        const double needed_s = (next - share) * step_s;
        if (needed_s <= slice_s) {
            move(state, needed_s);
            share = next;
        } else {
            move(state, slice_s);
            share += slice_s / step_s;
        }
    }
    return WG_OK;
}

static enum wg_code run_epoch(struct state *state, unsigned epoch)
{
    const struct vload_run *run = state->run;
    for (unsigned step = 1; step <= run->steps_per_epoch; step++) {
        enum wg_code code = run_step(state);
        if (code != WG_OK || state->is_stopped)
            return code;
        wg_train_step(state->report);
        if (step % run->print_every != 0 && step != run->steps_per_epoch)
            continue;
        const double epochs = epoch - 1 + (double)step / run->steps_per_epoch;
        code = say(state, "step %u/%u epoch %u loss %.4f time_s %.3f\n", step, run->steps_per_epoch,
                   epoch, vload_job_rest(run->job, epochs), state->time_s);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static double limit_now_w(struct vgpu_gpu *gpu)
{
    vgpu_lock(gpu);
    const double limit_w = vgpu_enforced_limit_w(gpu);
    vgpu_unlock(gpu);
    return limit_w;
}

static enum wg_code run_epochs(struct state *state, struct vload_end *end)
{
    const struct vload_run *run = state->run;
    const unsigned most = run->epochs != 0 ? run->epochs : run->max_epochs;
    state->anchor_j = energy_at_cursor_j(state);
    double epoch_begin_s = 0, epoch_begin_j = 0;
    for (unsigned epoch = 1; epoch <= most; epoch++) {
        enum wg_code code = run_epoch(state, epoch);
        end->time_s = state->time_s;
        end->energy_j = energy_j(state) * run->time_scale;
        end->is_stopped = state->is_stopped;
        if (code != WG_OK || state->is_stopped)
            return code;
        end->epochs = epoch;
        end->metric = vload_job_metric(run->job, epoch);
        wg_train_metric(state->report, NULL, end->metric);
        wg_train_epoch(state->report);
        code = say(state, "epoch %u metric %.6g time_s %.3f energy_j %.3f limit_w %.10g\n", epoch,
                   end->metric, end->time_s - epoch_begin_s, end->energy_j - epoch_begin_j,
                   limit_now_w(run->gpu));
        if (code != WG_OK)
            return code;
        epoch_begin_s = end->time_s;
        epoch_begin_j = end->energy_j;
        end->has_reached = vload_job_has_reached(run->job, end->metric, run->target);
        if (run->epochs == 0 && end->has_reached)
            break;
    }
    return WG_OK;
}

enum wg_code vload_run(struct vload_run *run, struct vload_end *out, struct wg_error *err)
{
    *out = (struct vload_end){.metric = vload_job_metric(run->job, 0)};
    struct state state = {.run = run, .utilization = NAN, .err = err};
    vload_job_load(run->job, &run->gpu->model, &state.load);
    state.load.memory_bytes = run->memory_bytes;
    const struct wg_training_case *training = run->job->training;
    (void)wg_train_open(&state.report, NULL, NULL); /* a job runs without a governor too */
    wg_train_batch_size(state.report, (uint64_t)run->job->arm->batch_size);
    enum wg_code code =
        say(&state, "job %s gpu %s batch_size %.10g run %zu/%zu steps_per_epoch %u target %.6g\n",
            training->job, training->gpu, run->job->arm->batch_size, run->job->run_index + 1,
            run->job->arm->run_count, run->steps_per_epoch, run->target);
    if (code == WG_OK)
        code = set_utilization(&state, VLOAD_MEAN_UTILIZATION);
    state.cursor_ns = wg__clock_ns();
    if (code == WG_OK)
        code = run_epochs(&state, out);
    (void)vgpu_set_load(run->gpu, &(struct vgpu_load){0}, NULL);
    wg_train_close(state.report);
    if (code != WG_OK)
        return code;
    const char *how = out->is_stopped    ? "stopped"
                      : run->epochs != 0 ? "epochs_done"
                      : out->has_reached ? "target_reached"
                                         : "target_not_reached";
    return say(&state, "done epochs %u metric %.6g time_s %.3f energy_j %.3f %s\n", out->epochs,
               out->metric, out->time_s, out->energy_j, how);
}
