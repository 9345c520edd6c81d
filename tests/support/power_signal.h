/* SPDX-License-Identifier: MIT
 *
 * The power of a device that trains, as a sensor shows it: for tests of what is read from it.
 *
 * A step is busy for a share of its time and half idle for the rest (vgpu/vload_job.h); its length
 * has jitter. The sensor averages over its own update period. Pauses and noise are added.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_TESTS_SUPPORT_POWER_SIGNAL_H
#define WG_TESTS_SUPPORT_POWER_SIGNAL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "math/normal.h"

enum { POWER_SIGNAL_MAX = 8192 };

struct power_signal_shape {
    double step_s, jitter; /* relative */
    double update_s;
    double duration_s;
    double idle_w, busy_w;
    double busy_share, rest_share; /* of the time; of the power above idle */
    double noise;                  /* relative, of a sample */
    double pause_every_s, pause_s; /* 0: none */
    double drift_w;                /* from begin to end */
};

struct power_signal {
    size_t count;
    double t_s[POWER_SIGNAL_MAX], value[POWER_SIGNAL_MAX];
    double mean_step_s; /* as drawn */
};

static inline struct power_signal_shape power_signal_usual(double step_s, double update_s,
                                                           double duration_s)
{
    return (struct power_signal_shape){.step_s = step_s,
                                       .jitter = 0.02,
                                       .update_s = update_s,
                                       .duration_s = duration_s,
                                       .idle_w = 30,
                                       .busy_w = 220,
                                       .busy_share = 0.7,
                                       .rest_share = 0.5,
                                       .noise = 0.01};
}

/* Where the simulated job is. */
struct power_signal_job {
    const struct power_signal_shape *shape;
    struct wg_rng rng;
    double t_s;
    double step_begin_s, step_s; /* of the present step */
    double pause_end_s, next_pause_s;
    double whole_s; /* of the steps that lay within the signal */
    size_t whole;
};

/* Until when the job draws what, as far as `to_s`. */
static inline double power_signal_until(const struct power_signal_job *job, double to_s,
                                        double *power_w)
{
    const struct power_signal_shape *shape = job->shape;
    const double busy_end_s = job->step_begin_s + shape->busy_share * job->step_s;
    double end_s;

    *power_w = shape->idle_w;
    if (job->t_s < job->pause_end_s) {
        end_s = job->pause_end_s;
    } else if (job->t_s < busy_end_s - 1e-12) {
        *power_w = shape->busy_w;
        end_s = busy_end_s;
    } else {
        *power_w += shape->rest_share * (shape->busy_w - shape->idle_w);
        end_s = job->step_begin_s + job->step_s;
    }
    return fmin(end_s, to_s);
}

/* Begins the next step or a pause when the present one is over. */
static inline void power_signal_next(struct power_signal_job *job)
{
    const struct power_signal_shape *shape = job->shape;

    if (job->t_s < job->step_begin_s + job->step_s - 1e-12)
        return;
    if (job->step_begin_s >= 0) {
        job->whole_s += job->step_s;
        job->whole++;
    }
    job->step_begin_s = job->t_s;
    if (job->t_s >= job->next_pause_s) {
        job->pause_end_s = job->t_s + shape->pause_s;
        job->next_pause_s = job->pause_end_s + shape->pause_every_s;
        job->step_begin_s = job->pause_end_s;
    }
    job->step_s = shape->step_s * exp(shape->jitter * wg__rng_normal(&job->rng));
}

static inline void power_signal_make(const struct power_signal_shape *shape, uint64_t seed,
                                     struct power_signal *out)
{
    struct power_signal_job job = {.shape = shape, .step_s = shape->step_s, .pause_end_s = -1};

    wg__rng_init(&job.rng, seed);
    job.step_begin_s = -wg__rng_uniform(&job.rng) * job.step_s; /* it began somewhere before */
    job.next_pause_s = shape->pause_every_s > 0 ? shape->pause_every_s : (double)INFINITY;
    out->count = 0;
    while (job.t_s < shape->duration_s && out->count < POWER_SIGNAL_MAX) {
        const double to_s = (double)(out->count + 1) * shape->update_s;
        double energy_j = 0, power_w;

        while (job.t_s < to_s - 1e-12) {
            const double end_s = power_signal_until(&job, to_s, &power_w);

            energy_j += power_w * (end_s - job.t_s);
            job.t_s = end_s;
            power_signal_next(&job);
        }
        out->t_s[out->count] = to_s;
        out->value[out->count++] =
            (energy_j / shape->update_s + shape->drift_w * job.t_s / shape->duration_s) *
            (1 + shape->noise * wg__rng_normal(&job.rng));
    }
    out->mean_step_s = job.whole > 0 ? job.whole_s / (double)job.whole : (double)NAN;
}

#endif
