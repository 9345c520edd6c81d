/* SPDX-License-Identifier: MIT
 *
 * The physics of the virtual GPU: power from clock, clock from a limit, speed from both.
 *
 * Dynamic power of CMOS is proportional to f * V^2, and the voltage follows the clock down to a
 * floor below which the chip does not work. With x = clock / largest clock:
 *
 *     g(x) = x * v(x)^2,  v(x) = max(x, floor)
 *
 *     g    1 |            /       above the floor slowing down saves energy (g falls as x^3, time
 *            |          _/        grows as 1/x), below it only power: the energy of a job has its
 *            |     ___--          least value at a clock in between, as measured GPUs show
 *          0 +----------- x
 *              floor      1
 *
 * The power grows with every step of the clock, so the largest step within a limit is found by
 * bisection. A load may instead carry the power and speed of a measured job by power limit; a
 * locked clock then acts as the limit at which the job was measured to draw what the model says of
 * that clock, so that both knobs stay on the measured curve.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#include "vgpu/state.h"

#include <math.h>

static double dynamic_share(const struct vgpu_model *model, double clock_hz)
{
    const double largest = model->clocks_hz[model->clock_count - 1];
    const double x = fmin(1.0, fmax(0.0, clock_hz / largest));
    const double voltage = fmax(x, model->voltage_floor);
    return x * voltage * voltage;
}

double vgpu_power_w(const struct vgpu_model *model, double clock_hz, double utilization,
                    double intensity)
{
    return model->idle_w + utilization * intensity * (model->load_w - model->idle_w) *
                               dynamic_share(model, clock_hz);
}

double vgpu_clock_for_limit(const struct vgpu_model *model, double limit_w, double utilization,
                            double intensity)
{
    size_t fits = 0; /* the invariant of the search: this step fits, or it is the smallest */
    size_t above = model->clock_count;
    while (above - fits > 1) {
        const size_t middle = fits + (above - fits) / 2;
        if (vgpu_power_w(model, model->clocks_hz[middle], utilization, intensity) <= limit_w)
            fits = middle;
        else
            above = middle;
    }
    return model->clocks_hz[fits];
}

double vgpu_nearest_step(const double *steps_hz, size_t count, double hz)
{
    double nearest = steps_hz[0];
    for (size_t i = 1; i < count; i++) {
        if (fabs(steps_hz[i] - hz) < fabs(nearest - hz))
            nearest = steps_hz[i];
    }
    return nearest;
}

/* Linear between the points, constant beyond them. */
static double interpolate(const double *x, const double *y, size_t count, double at)
{
    if (at <= x[0])
        return y[0];
    for (size_t i = 1; i < count; i++) {
        if (at <= x[i])
            return y[i - 1] + (y[i] - y[i - 1]) * (at - x[i - 1]) / (x[i] - x[i - 1]);
    }
    return y[count - 1];
}

/* The limit at which the job draws `power_w`: the largest one, for a measured curve may bend back
 * by its noise. Below the whole curve: its first limit. */
static double limit_for_power(const struct vgpu_load *load, double power_w)
{
    const double *x = load->curve_limit_w;
    const double *y = load->curve_power_w;
    size_t i = load->curve_count - 1;
    if (y[i] <= power_w)
        return x[i];
    while (i > 0 && y[i - 1] > power_w)
        i--;
    if (i == 0)
        return x[0];
    return x[i - 1] + (x[i] - x[i - 1]) * (power_w - y[i - 1]) / (y[i] - y[i - 1]);
}

void vgpu_curve_point(struct vgpu_point *out, const struct vgpu_model *model,
                      const struct vgpu_load *load, double limit_w, double clock_max_hz)
{
    const double *limits = load->curve_limit_w;
    const size_t count = load->curve_count;
    /* The intensity with which the model draws what the job drew without a limit. */
    const double intensity = (load->curve_power_w[count - 1] - model->idle_w) /
                             fmax(model->load_w - model->idle_w, 1e-9);
    out->power_w = interpolate(limits, load->curve_power_w, count, limit_w);
    out->speed = interpolate(limits, load->curve_speed, count, limit_w);
    out->clock_hz = vgpu_clock_for_limit(model, out->power_w * (1.0 + 1e-12), 1.0, intensity);
    /* Limits below the first measured one, and locked clocks, are the model's to answer. */
    double clock_hz = clock_max_hz;
    if (limit_w < limits[0] && out->power_w > limit_w)
        clock_hz = fmin(clock_hz, vgpu_clock_for_limit(model, limit_w, 1.0, intensity));
    if (clock_hz >= out->clock_hz)
        return;
    const double power_w = vgpu_power_w(model, clock_hz, 1.0, intensity);
    if (power_w >= load->curve_power_w[0]) {
        out->speed = interpolate(limits, load->curve_speed, count, limit_for_power(load, power_w));
    } else {
        const double first_hz = vgpu_clock_for_limit(model, load->curve_power_w[0], 1.0, intensity);
        out->speed = load->curve_speed[0] * fmin(1.0, clock_hz / first_hz);
    }
    out->power_w = fmin(out->power_w, power_w);
    out->clock_hz = clock_hz;
}
