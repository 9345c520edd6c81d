/* SPDX-License-Identifier: MIT
 *
 * What the meters of a virtual GPU show: exact means and an exact counter, looked up in the ring.
 *
 * The energy at any moment is that of the segment that holds it plus power times the time since; a
 * sensor's mean is the difference of two such energies. Ticks fall at phase + k * period, whoever
 * asks and whenever. Before the ring's oldest segment the power is taken to have been the same.
 *
 * Owns: nothing.    Threads: under the GPU's lock.
 */
#include "vgpu/state.h"

#include <math.h>

/* The segment that holds `t_ns`, or the oldest. */
static const struct vgpu_segment *segment_at(const struct vgpu_gpu *gpu, uint64_t t_ns)
{
    const uint64_t count = gpu->segment_count;
    uint64_t low = count > VGPU_SEGMENTS_MAX ? count - VGPU_SEGMENTS_MAX : 0;
    uint64_t high = count; /* `low` begins at or before t_ns, or is the oldest; `high` after */
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (gpu->segments[middle % VGPU_SEGMENTS_MAX].t_ns <= t_ns)
            low = middle;
        else
            high = middle;
    }
    return &gpu->segments[low % VGPU_SEGMENTS_MAX];
}

static double seconds_between(uint64_t from_ns, uint64_t to_ns)
{
    return (double)(int64_t)(to_ns - from_ns) * 1e-9;
}

static double energy_at_j(const struct vgpu_gpu *gpu, uint64_t t_ns, bool of_memory)
{
    const struct vgpu_segment *segment = segment_at(gpu, t_ns);
    const double seconds = seconds_between(segment->t_ns, t_ns);
    return of_memory ? segment->memory_energy_j + segment->memory_power_w * seconds
                     : segment->energy_j + segment->power_w * seconds;
}

static uint64_t last_tick_ns(const struct vgpu_gpu *gpu, double period_s, uint64_t t_ns)
{
    const uint64_t period_ns = (uint64_t)llround(period_s * 1e9);
    const uint64_t phase_ns = gpu->phase_ns % period_ns;
    if (t_ns < phase_ns)
        return t_ns;
    return t_ns - (t_ns - phase_ns) % period_ns;
}

double vgpu_sensor_w(const struct vgpu_gpu *gpu, const struct vgpu_sensor *sensor, uint64_t t_ns)
{
    const bool of_memory = sensor == &gpu->model.memory;
    const uint64_t tick_ns = last_tick_ns(gpu, sensor->period_s, t_ns);
    const uint64_t window_ns = (uint64_t)llround(sensor->window_s * 1e9);
    double mean_w;
    if (window_ns == 0) {
        const struct vgpu_segment *segment = segment_at(gpu, tick_ns);
        mean_w = of_memory ? segment->memory_power_w : segment->power_w;
    } else {
        const uint64_t from_ns = tick_ns > window_ns ? tick_ns - window_ns : 0;
        mean_w = (energy_at_j(gpu, tick_ns, of_memory) - energy_at_j(gpu, from_ns, of_memory)) /
                 seconds_between(from_ns, tick_ns);
    }
    return sensor->gain * mean_w + sensor->offset_w;
}

uint64_t vgpu_counter_mj(const struct vgpu_gpu *gpu, uint64_t t_ns)
{
    if (gpu->is_counter_stuck)
        return gpu->stuck_mj;
    const uint64_t tick_ns = last_tick_ns(gpu, gpu->model.counter_period_s, t_ns);
    const double counted_mj = (energy_at_j(gpu, tick_ns, false) - gpu->counter_base_j) * 1e3;
    return counted_mj > 0.0 ? (uint64_t)floor(counted_mj) : 0;
}

double vgpu_true_energy_j(struct vgpu_gpu *gpu, uint64_t t_ns)
{
    vgpu_lock(gpu);
    vgpu_advance(gpu, t_ns);
    const double energy_j = energy_at_j(gpu, t_ns, false);
    vgpu_unlock(gpu);
    return energy_j;
}
