/* SPDX-License-Identifier: MIT
 *
 * The working point of a virtual GPU: which clock and power follow from its loads and settings.
 *
 * What holds a clock down, strongest first: the forced slowdown of an overheated die (half the
 * largest clock), a locked clock, the power limit or, when it is lower, the power that keeps the
 * die at its slowdown temperature. Loads share the GPU: together they are busy at most all the
 * time, and what each adds to the idle power is weighted by its share of it.
 *
 * The memory's part of the dynamic power stands for the share of time that work waits for memory,
 * for want of a better number: with share m, core clock x and memory clock y (of their largest),
 * work runs at 1 / ((1 - m) / x + m / y) of its full speed.
 *
 * Owns: nothing.    Threads: under the GPU's lock.
 */
#include "vgpu/state.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/nvml_abi.h"

/* What holds the clock down now. */
struct bounds {
    double limit_w, clock_hz;
};

struct demand {
    double total;             /* utilisation asked for, may be above 1 */
    double share;             /* of that, which a load gets: 1 until the GPU is full */
    double model_utilization; /* of loads without a curve, scaled */
    double model_intensity;   /* their mean */
};

static double largest_clock_hz(const struct vgpu_gpu *gpu)
{
    return gpu->model.clocks_hz[gpu->model.clock_count - 1];
}

/* Share of the largest memory clock. */
static double memory_share(const struct vgpu_gpu *gpu)
{
    const struct vgpu_model *model = &gpu->model;
    const double largest_hz = model->memory_clocks_hz[model->memory_clock_count - 1];
    return gpu->memory_lock_max_hz > 0.0 ? gpu->memory_lock_max_hz / largest_hz : 1.0;
}

double vgpu_enforced_limit_w(const struct vgpu_gpu *gpu)
{
    return fmin(gpu->limit_w, gpu->external_limit_w);
}

static bool is_forced_hot(const struct vgpu_gpu *gpu)
{
    return gpu->model.slowdown_c > 0.0 && gpu->forced_temperature_c >= gpu->model.slowdown_c;
}

/* The power at which the die stays at its slowdown temperature. */
static double hot_limit_w(const struct vgpu_model *model)
{
    if (model->slowdown_c <= 0.0 || model->kelvin_per_watt <= 0.0)
        return INFINITY;
    return (model->slowdown_c - model->ambient_c) / model->kelvin_per_watt;
}

static struct bounds find_bounds(const struct vgpu_gpu *gpu)
{
    struct bounds bounds = {vgpu_enforced_limit_w(gpu), largest_clock_hz(gpu)};
    if (gpu->lock_max_hz > 0.0)
        bounds.clock_hz = gpu->lock_max_hz;
    if (gpu->is_hot)
        bounds.limit_w = fmin(bounds.limit_w, hot_limit_w(&gpu->model));
    if (is_forced_hot(gpu)) {
        const double half_hz = vgpu_nearest_step(gpu->model.clocks_hz, gpu->model.clock_count,
                                                 largest_clock_hz(gpu) / 2.0);
        bounds.clock_hz = fmin(bounds.clock_hz, half_hz);
    }
    return bounds;
}

static struct demand find_demand(const struct vgpu_gpu *gpu)
{
    struct demand demand = {0};
    for (size_t i = 0; i < VGPU_LOADS_MAX; i++) {
        if (gpu->loads[i].pid != 0)
            demand.total += gpu->loads[i].utilization;
    }
    demand.share = demand.total > 1.0 ? 1.0 / demand.total : 1.0;
    double weighted = 0.0;
    for (size_t i = 0; i < VGPU_LOADS_MAX; i++) {
        const struct vgpu_load *load = &gpu->loads[i];
        if (load->pid == 0 || load->curve_count != 0)
            continue;
        demand.model_utilization += load->utilization * demand.share;
        weighted += load->utilization * demand.share * load->intensity;
    }
    if (demand.model_utilization > 0.0)
        demand.model_intensity = weighted / demand.model_utilization;
    return demand;
}

/* Clock and power under `bounds`. */
static struct vgpu_point find_point(const struct vgpu_gpu *gpu, const struct demand *demand,
                                    const struct bounds *bounds)
{
    const struct vgpu_model *model = &gpu->model;
    struct vgpu_point point = {.clock_hz = model->clock_idle_hz, .power_w = model->idle_w};
    if (demand->total <= 0.0)
        return point;
    point.clock_hz = bounds->clock_hz;
    double measured_w = 0.0; /* what jobs with a measured curve add */
    for (size_t i = 0; i < VGPU_LOADS_MAX; i++) {
        const struct vgpu_load *load = &gpu->loads[i];
        if (load->pid == 0 || load->curve_count == 0 || load->utilization <= 0.0)
            continue;
        struct vgpu_point own;
        vgpu_curve_point(&own, model, load, bounds->limit_w, bounds->clock_hz);
        measured_w += load->utilization * demand->share * (own.power_w - model->idle_w);
        point.clock_hz = fmin(point.clock_hz, own.clock_hz);
    }
    if (demand->model_utilization > 0.0) {
        const double fits_hz =
            vgpu_clock_for_limit(model, bounds->limit_w - measured_w, demand->model_utilization,
                                 demand->model_intensity);
        point.clock_hz = fmin(point.clock_hz, fits_hz);
    }
    point.power_w = measured_w + vgpu_power_w(model, point.clock_hz, demand->model_utilization,
                                              demand->model_intensity);
    return point;
}

static uint32_t find_reasons(const struct vgpu_gpu *gpu, const struct demand *demand,
                             const struct vgpu_point *point, const struct bounds *bounds)
{
    if (demand->total <= 0.0)
        return NVML_REASON_IDLE;
    uint32_t reasons = 0;
    if (is_forced_hot(gpu))
        reasons |= NVML_REASON_HW_SLOWDOWN | NVML_REASON_HW_THERMAL;
    if (point->clock_hz >= largest_clock_hz(gpu))
        return reasons;
    if (point->clock_hz < bounds->clock_hz)
        reasons |= gpu->is_hot ? NVML_REASON_SW_THERMAL : NVML_REASON_POWER_LIMIT;
    else if (!is_forced_hot(gpu))
        reasons |= NVML_REASON_CLOCK_SETTING;
    return reasons;
}

static void begin_segment(struct vgpu_gpu *gpu)
{
    const uint64_t count = gpu->segment_count;
    const bool replaces =
        count > 0 && gpu->segments[(count - 1) % VGPU_SEGMENTS_MAX].t_ns == gpu->t_ns;
    struct vgpu_segment *segment =
        &gpu->segments[(replaces ? count - 1 : count) % VGPU_SEGMENTS_MAX];
    *segment = (struct vgpu_segment){.t_ns = gpu->t_ns,
                                     .energy_j = gpu->energy_j,
                                     .power_w = gpu->power_w,
                                     .memory_energy_j = gpu->memory_energy_j,
                                     .memory_power_w = gpu->memory_power_w};
    /* Whoever is killed between the two leaves the ring as it was. */
    atomic_thread_fence(memory_order_release);
    if (!replaces)
        gpu->segment_count = count + 1;
}

/* The memory draws its idle part, and its share of what the loads add to the idle power. */
static double find_memory_power_w(const struct vgpu_gpu *gpu, double power_w)
{
    const struct vgpu_model *model = &gpu->model;
    if (model->load_w <= model->idle_w)
        return model->memory_idle_w;
    return model->memory_idle_w + (model->memory_load_w - model->memory_idle_w) *
                                      (power_w - model->idle_w) / (model->load_w - model->idle_w);
}

void vgpu_settle(struct vgpu_gpu *gpu)
{
    const struct vgpu_model *model = &gpu->model;
    const struct demand demand = find_demand(gpu);
    /* Is the die too hot for what is asked of it? It stays so until less is asked. */
    const bool was_hot = gpu->is_hot;
    gpu->is_hot = false;
    struct bounds bounds = find_bounds(gpu);
    struct vgpu_point point = find_point(gpu, &demand, &bounds);
    if (isnan(gpu->forced_temperature_c) && point.power_w > hot_limit_w(model) &&
        (was_hot || gpu->temperature_c >= model->slowdown_c)) {
        gpu->is_hot = true;
        bounds = find_bounds(gpu);
        point = find_point(gpu, &demand, &bounds);
    }
    gpu->utilization = fmin(1.0, demand.total);
    gpu->clock_hz = point.clock_hz;
    gpu->memory_clock_hz = model->memory_clocks_hz[model->memory_clock_count - 1];
    if (gpu->memory_lock_max_hz > 0.0)
        gpu->memory_clock_hz = gpu->memory_lock_max_hz;
    gpu->reasons = find_reasons(gpu, &demand, &point, &bounds);
    /* A slower memory draws less of its dynamic part. */
    const double memory_w = find_memory_power_w(gpu, point.power_w);
    const double saved_w = fmax(0.0, memory_w - model->memory_idle_w) * (1.0 - memory_share(gpu));
    const double power_w = point.power_w - saved_w;
    if (power_w == gpu->power_w && memory_w - saved_w == gpu->memory_power_w)
        return;
    gpu->power_w = power_w;
    gpu->memory_power_w = memory_w - saved_w;
    begin_segment(gpu);
}

double vgpu_speed(const struct vgpu_gpu *gpu, const struct vgpu_load *load)
{
    const struct vgpu_model *model = &gpu->model;
    const struct demand demand = find_demand(gpu);
    const struct bounds bounds = find_bounds(gpu);
    const double dynamic_w = model->load_w - model->idle_w;
    const double waits =
        dynamic_w > 0.0
            ? fmin(1.0, fmax(0.0, (model->memory_load_w - model->memory_idle_w) / dynamic_w))
            : 0.0;
    const double memory = memory_share(gpu);
    if (load->curve_count != 0) {
        struct vgpu_point own;
        vgpu_curve_point(&own, model, load, bounds.limit_w, bounds.clock_hz);
        return own.speed * demand.share / (1.0 - waits + waits / memory);
    }
    const double clock_hz = demand.total > 0.0 ? gpu->clock_hz : bounds.clock_hz;
    return demand.share / ((1.0 - waits) * largest_clock_hz(gpu) / clock_hz + waits / memory);
}

enum wg_code vgpu_put_load(struct vgpu_gpu *gpu, const struct vgpu_load *load, struct wg_error *err)
{
    if (!(load->utilization >= 0.0 && load->utilization <= 1.0 && load->intensity >= 0.0 &&
          load->curve_count <= VGPU_CURVE_MAX))
        return wg__fail(err, WG_EINVAL,
                        "a load has a utilisation of 0 to 1, not %g, and an "
                        "intensity of at least 0, not %g",
                        load->utilization, load->intensity);
    struct vgpu_load *place = NULL;
    for (size_t i = 0; i < VGPU_LOADS_MAX; i++) {
        struct vgpu_load *candidate = &gpu->loads[i];
        if (candidate->pid == load->pid) {
            place = candidate;
            break;
        }
        if (candidate->pid == 0 && place == NULL)
            place = candidate;
    }
    const bool ends = load->utilization <= 0.0 && load->memory_bytes == 0;
    if (place == NULL && !ends)
        return wg__fail(err, WG_ESTATE, "%s: %d processes use this virtual GPU, no more can",
                        gpu->model.name, VGPU_LOADS_MAX);
    if (place != NULL) {
        place->pid = 0; /* last to be set: a writer that is killed leaves no half load */
        atomic_thread_fence(memory_order_release);
        if (!ends) {
            const uint32_t pid = load->pid;
            *place = *load;
            place->pid = pid;
        }
    }
    vgpu_settle(gpu);
    return WG_OK;
}

enum wg_code vgpu_set_load(struct vgpu_gpu *gpu, const struct vgpu_load *load, struct wg_error *err)
{
    struct vgpu_load own = *load;
    own.pid = (uint32_t)getpid();
    vgpu_lock(gpu);
    vgpu_advance(gpu, wg__clock_ns());
    const enum wg_code code = vgpu_put_load(gpu, &own, err);
    vgpu_unlock(gpu);
    return code;
}

void vgpu_set_limit(struct vgpu_gpu *gpu, double limit_w)
{
    vgpu_lock(gpu);
    vgpu_advance(gpu, wg__clock_ns());
    gpu->limit_w = limit_w;
    vgpu_settle(gpu);
    vgpu_unlock(gpu);
}

void vgpu_set_clock_lock(struct vgpu_gpu *gpu, double min_hz, double max_hz)
{
    const struct vgpu_model *model = &gpu->model;
    const bool locks = max_hz > 0.0;
    vgpu_lock(gpu);
    vgpu_advance(gpu, wg__clock_ns());
    gpu->lock_min_hz =
        locks ? vgpu_nearest_step(model->clocks_hz, model->clock_count, min_hz) : 0.0;
    gpu->lock_max_hz =
        locks ? vgpu_nearest_step(model->clocks_hz, model->clock_count, max_hz) : 0.0;
    vgpu_settle(gpu);
    vgpu_unlock(gpu);
}

void vgpu_set_memory_clock_lock(struct vgpu_gpu *gpu, double min_hz, double max_hz)
{
    const struct vgpu_model *model = &gpu->model;
    const double *steps = model->memory_clocks_hz;
    const bool locks = max_hz > 0.0;
    vgpu_lock(gpu);
    vgpu_advance(gpu, wg__clock_ns());
    gpu->memory_lock_min_hz =
        locks ? vgpu_nearest_step(steps, model->memory_clock_count, min_hz) : 0.0;
    gpu->memory_lock_max_hz =
        locks ? vgpu_nearest_step(steps, model->memory_clock_count, max_hz) : 0.0;
    vgpu_settle(gpu);
    vgpu_unlock(gpu);
}
