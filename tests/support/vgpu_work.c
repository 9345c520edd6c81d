/* SPDX-License-Identifier: MIT
 *
 * Work on a virtual GPU, for programs that load us: a Python training, by ctypes.
 *
 *     vgpu_work_open(0)           the GPU of $WATTGOV_VGPU; 0: fine
 *     vgpu_work_do(0.02, 1.0)     what takes 20 ms at the largest limit and clock, at full load,
 * and so long as it takes at the present ones; then the GPU is idle
 *
 * Built without sanitizers, since python3 loads it. One GPU a process, which its own variables
 * hold.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "vgpu/state.h"

int vgpu_work_open(unsigned gpu);
double vgpu_work_do(double seconds, double utilization);

static struct vgpu_machine *machine;
static struct vgpu_gpu *chosen;

__attribute__((visibility("default"))) int vgpu_work_open(unsigned gpu)
{
    struct wg_error err;
    if (machine == NULL && vgpu_map_from_environment(&machine, &err) != WG_OK) {
        (void)fprintf(stderr, "vgpu_work: %s\n", err.text);
        return -1;
    }
    if (gpu >= machine->gpu_count)
        return -1;
    chosen = &machine->gpus[gpu];
    return 0;
}

static void wait_until(uint64_t t_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(t_ns / 1000000000U),
                                   .tv_nsec = (long)(t_ns % 1000000000U)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static double present_speed(const struct vgpu_load *load)
{
    vgpu_lock(chosen);
    vgpu_advance(chosen, wg__clock_ns());
    const double speed = vgpu_speed(chosen, load);
    vgpu_unlock(chosen);
    return speed;
}

/* The seconds that it took; below 0: there is no GPU. */
__attribute__((visibility("default"))) double vgpu_work_do(double seconds, double utilization)
{
    struct vgpu_load load = {.utilization = utilization, .intensity = 1};
    if (chosen == NULL || vgpu_set_load(chosen, &load, NULL) != WG_OK)
        return -1;
    const uint64_t begin_ns = wg__clock_ns();
    const double slice_s = 0.005; /* the longest time without a look at the speed */
    while (seconds > 0) {
        const double speed = present_speed(&load);
        const double now_s = seconds / speed < slice_s ? seconds / speed : slice_s;
        const uint64_t from_ns = wg__clock_ns();
        wait_until(from_ns + (uint64_t)(now_s * 1e9));
        seconds -= (double)(wg__clock_ns() - from_ns) * 1e-9 * speed;
    }
    load.utilization = 0;
    (void)vgpu_set_load(chosen, &load, NULL);
    return (double)(wg__clock_ns() - begin_ns) * 1e-9;
}
