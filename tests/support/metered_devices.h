/* SPDX-License-Identifier: MIT
 *
 * A backend of made-up devices in real time: a square wave of power, a counter that ticks, and
 * faults that a test turns on and off. It stands in for a driver where threads are tested.
 */
#ifndef WG_TESTS_SUPPORT_METERED_DEVICES_H
#define WG_TESTS_SUPPORT_METERED_DEVICES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/machine.h"

enum { FAKE_DEVICES_MAX = 16 };

/* What a test sees of a device, and tells it. Outlives the machine. */
struct fake_device {
    uint64_t counter_period_ns; /* 0: no counter */
    bool has_power;
    bool is_hand_turned; /* the counter shows `hand_mj` and nothing else */
    atomic_uint_fast64_t hand_mj;
    bool is_part; /* does not count in the total */
    bool is_mig;
    double low_w, high_w; /* alternating each `half_ns` */
    uint64_t half_ns;     /* 0: always low_w */
    atomic_int fault;     /* a code to fail with; 0: none */
    pthread_mutex_t lock; /* of the next three */
    pthread_cond_t changed;
    bool hangs;       /* reads block while this is set */
    unsigned hanging; /* reads under way */
    atomic_size_t reads, slow_reads;
};

struct fake_world {
    struct fake_device devices[FAKE_DEVICES_MAX];
    size_t count;
    uint64_t start_ns;
};

struct fake_backend_device {
    struct wg_device base;
    struct fake_device *fake;
    const struct fake_world *world;
};

/* A backend's `open` has no argument of its own. */
static struct fake_world *fake_current;

static inline double fake_truth_j(const struct fake_world *world, size_t i, uint64_t t_ns)
{
    const struct fake_device *fake = &world->devices[i];
    const uint64_t t = t_ns > world->start_ns ? t_ns - world->start_ns : 0;
    if (fake->half_ns == 0)
        return fake->low_w * (double)t * 1e-9;
    const uint64_t cycle_ns = 2 * fake->half_ns, rest_ns = t % cycle_ns;
    const uint64_t low_ns = rest_ns < fake->half_ns ? rest_ns : fake->half_ns;
    const double cycle_j = (fake->low_w + fake->high_w) * (double)fake->half_ns * 1e-9;
    const uint64_t cycles = t / cycle_ns;
    return cycle_j * (double)cycles + fake->low_w * (double)low_ns * 1e-9 +
           fake->high_w * (double)(rest_ns - low_ns) * 1e-9;
}

static inline double fake_power_w(const struct fake_world *world, size_t i, uint64_t t_ns)
{
    const struct fake_device *fake = &world->devices[i];
    if (fake->half_ns == 0)
        return fake->low_w;
    return (t_ns - world->start_ns) / fake->half_ns % 2 == 0 ? fake->low_w : fake->high_w;
}

static inline enum wg_code fake_probe(struct wg_device *device, struct wg_error *err)
{
    (void)err;
    const struct fake_device *fake = ((struct fake_backend_device *)device)->fake;
    struct wg_device_info *info = &device->info;
    info->kind = WG_DEVICE_GPU;
    info->id = info->name = "fake";
    info->backend = "fake";
    info->counts_in_total = !fake->is_part;
    info->is_mig = fake->is_mig;
    for (size_t i = 0; i < WG_METRIC_COUNT; i++)
        info->meters[i] = (struct wg_meter_info){.source = "fake", .why_not = "not faked"};
    for (size_t i = 0; i < WG_KNOB_COUNT; i++)
        info->knobs[i] = (struct wg_knob_info){.source = "fake", .why_not = "not faked"};
    if (fake->counter_period_ns > 0)
        info->meters[WG_METRIC_ENERGY_J] =
            (struct wg_meter_info){.is_present = true,
                                   .source = "fake",
                                   .resolution = 1e-3,
                                   .update_period_s = (double)fake->counter_period_ns * 1e-9};
    if (fake->has_power)
        info->meters[WG_METRIC_POWER_W] = (struct wg_meter_info){
            .is_present = true, .source = "fake", .resolution = 1e-3, .update_period_s = 0.001};
    info->meters[WG_METRIC_UTILIZATION] =
        (struct wg_meter_info){.is_present = true, .source = "fake"};
    return WG_OK;
}

static inline enum wg_code fake_read(struct wg_device *device, uint32_t wanted,
                                     struct wg_sample *out, struct wg_error *err)
{
    const struct fake_backend_device *own = (struct fake_backend_device *)device;
    struct fake_device *fake = own->fake;
    (void)atomic_fetch_add(&fake->reads, 1);
    if ((wanted >> WG_METRIC_UTILIZATION & 1U) != 0)
        (void)atomic_fetch_add(&fake->slow_reads, 1);
    atomic_store(&device->call, "fakeRead");
    (void)pthread_mutex_lock(&fake->lock);
    fake->hanging++;
    (void)pthread_cond_broadcast(&fake->changed);
    while (fake->hangs)
        (void)pthread_cond_wait(&fake->changed, &fake->lock);
    fake->hanging--;
    (void)pthread_cond_broadcast(&fake->changed);
    (void)pthread_mutex_unlock(&fake->lock);
    atomic_store(&device->call, NULL);
    const int fault = atomic_load(&fake->fault);
    if (fault != 0)
        return wg__fail(err, (enum wg_code)fault, "fake: fakeRead failed");
    const struct fake_world *world = own->world;
    const size_t i = (size_t)(fake - world->devices);
    const uint64_t t_ns = wg__clock_ns();
    out->t_ns = t_ns;
    out->span_ns = 1000;
    if (fake->counter_period_ns > 0 && (wanted >> WG_METRIC_ENERGY_J & 1U) != 0) {
        const uint64_t since = t_ns - world->start_ns;
        const uint64_t tick_ns = since - since % fake->counter_period_ns + world->start_ns;
        const double truth_mj = fake->is_hand_turned ? (double)atomic_load(&fake->hand_mj)
                                                     : fake_truth_j(world, i, tick_ns) * 1000;
        wg__sample_set(out, WG_METRIC_ENERGY_J, 50 + (double)(uint64_t)truth_mj / 1000);
    }
    if (fake->has_power && (wanted >> WG_METRIC_POWER_W & 1U) != 0)
        wg__sample_set(out, WG_METRIC_POWER_W, fake_power_w(world, i, t_ns));
    if ((wanted >> WG_METRIC_UTILIZATION & 1U) != 0)
        wg__sample_set(out, WG_METRIC_UTILIZATION, 0.5);
    return WG_OK;
}

static inline void fake_release(struct wg_device *device)
{
    (void)device;
}

static inline enum wg_code fake_reopen(struct wg_device *device, struct wg_error *err)
{
    (void)device;
    (void)err;
    return WG_OK;
}

static inline void fake_destroy(struct wg_device *device)
{
    free(device);
}

static const struct wg_device_ops fake_ops = {.probe = fake_probe,
                                              .read = fake_read,
                                              .release = fake_release,
                                              .reopen = fake_reopen,
                                              .destroy = fake_destroy};

static inline enum wg_code fake_open(const struct wg_backend_config *config,
                                     struct wg_device_list *list, const char **remedy_out,
                                     struct wg_error *err)
{
    (void)config;
    (void)remedy_out;
    for (size_t i = 0; i < fake_current->count; i++) {
        struct fake_backend_device *device = calloc(1, sizeof *device);
        if (!device)
            return wg__fail(err, WG_ENOMEM, "fake: out of memory");
        device->base.ops = &fake_ops;
        device->base.info.kind = WG_DEVICE_GPU;
        device->base.info.id = device->base.info.name = device->base.info.backend = "fake";
        device->base.info.counts_in_total = !fake_current->devices[i].is_part;
        device->fake = &fake_current->devices[i];
        device->world = fake_current;
        const enum wg_code code = wg__device_list_add(list, &device->base, err);
        if (code != WG_OK) {
            free(device);
            return code;
        }
    }
    return WG_OK;
}

static const struct wg_backend fake_backend = {.name = "fake", .open = fake_open};
static const struct wg_backend *const fake_backends[] = {&fake_backend, NULL};

/* Makes reads block from now on and waits for the first that does; or lets them go and waits until
 * none is under way. */
static inline void fake_hang(struct fake_device *fake, bool hangs)
{
    (void)pthread_mutex_lock(&fake->lock);
    fake->hangs = hangs;
    (void)pthread_cond_broadcast(&fake->changed);
    while ((fake->hanging > 0) != hangs)
        (void)pthread_cond_wait(&fake->changed, &fake->lock);
    (void)pthread_mutex_unlock(&fake->lock);
}

static inline void fake_world_init(struct fake_world *world, size_t count,
                                   uint64_t counter_period_ns)
{
    memset(world, 0, sizeof *world);
    world->count = count;
    world->start_ns = wg__clock_ns() - 10000000000U;
    for (size_t i = 0; i < count; i++) {
        world->devices[i].counter_period_ns = counter_period_ns;
        (void)pthread_mutex_init(&world->devices[i].lock, NULL);
        (void)pthread_cond_init(&world->devices[i].changed, NULL);
        world->devices[i].has_power = true;
        world->devices[i].low_w = 100;
        world->devices[i].high_w = 100;
    }
    fake_current = world;
}

static inline struct wg_machine *fake_machine_open(unsigned timeout_ms)
{
    struct wg_machine *machine;
    struct wg_error err;
    const struct wg_machine_opts opts = WG_MACHINE_OPTS(.call_timeout_ms = timeout_ms);
    if (wg__machine_open_with(&machine, fake_backends, &opts, &err) != WG_OK) {
        (void)fprintf(stderr, "fake machine: %s\n", err.text);
        abort();
    }
    return machine;
}

#endif
