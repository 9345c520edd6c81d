/* SPDX-License-Identifier: MIT
 *
 * A device whose true energy is known: a power over time, seen through a counter that ticks and a
 * sensor that averages. Time is a number; nothing sleeps.
 *
 * `synthetic_run` plays the part of the sampler: it reads when measure/schedule.c says so, feeds
 * the account, and takes the marks of windows as soon as the account reaches them.
 */
#ifndef WG_TESTS_SUPPORT_SYNTHETIC_DEVICE_H
#define WG_TESTS_SUPPORT_SYNTHETIC_DEVICE_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/rng.h"
#include "measure/result.h"
#include "measure/schedule.h"

enum { SYNTHETIC_STEPS = 200000, SYNTHETIC_WINDOWS = 4096 };

/* The power is constant in steps of 1 ms; `energy_j[i]` is the energy before step i. */
struct synthetic {
    double power_w[SYNTHETIC_STEPS];
    double energy_j[SYNTHETIC_STEPS + 1];
    double counter_period_s, counter_phase_s; /* 0: there is no counter */
    double counter_base_j;
    double sensor_period_s, sensor_window_s, sensor_phase_s; /* window 0: of the moment */
    bool has_power;
    double jitter_s; /* of the counter's ticks */
    /* Faults; 0: never. */
    double reset_s; /* the counter restarts at 0 */
    double stuck_from_s, stuck_until_s;
    double gain;                      /* the counter runs at this rate; 0: 1 */
    double spike_s;                   /* the first reading from here on is nonsense */
    double fail_from_s, fail_until_s; /* no answer */
    double no_counter_from_s, no_counter_until_s;
    struct wg_clock_offsets offsets;
    void (*extra)(struct synthetic *device, struct wg_sample *sample, double t_s);
    double latency_s; /* from a wish to be read to the read */
    struct wg_rng rng;
    struct wg_device_info info;
    struct wg_account account;
    struct wg_schedule schedule;
    uint64_t now_ns;
    size_t reads, edge_reads;
};

struct synthetic_window {
    double begin_s, end_s;
    struct wg_mark from, to;
    bool has_from, has_to;
};

static const uint64_t SYNTHETIC_EPOCH_NS = 1000000000000U;

static inline uint64_t synthetic_ns(double t_s)
{
    return SYNTHETIC_EPOCH_NS + (uint64_t)llround(t_s * 1e9);
}

static inline double synthetic_s(uint64_t t_ns)
{
    return (double)(int64_t)(t_ns - SYNTHETIC_EPOCH_NS) * 1e-9;
}

/* True energy from 0 to `t_s`. Before 0 the power is that of step 0. */
static inline double synthetic_truth_j(const struct synthetic *device, double t_s)
{
    if (t_s <= 0)
        return t_s * device->power_w[0];
    const double place = t_s * 1000;
    size_t i = (size_t)place;
    if (i >= SYNTHETIC_STEPS)
        i = SYNTHETIC_STEPS - 1;
    return device->energy_j[i] + (place - (double)i) * 1e-3 * device->power_w[i];
}

/* Call after power_w is filled. */
static inline void synthetic_sum(struct synthetic *device)
{
    device->energy_j[0] = 0;
    for (size_t i = 0; i < SYNTHETIC_STEPS; i++)
        device->energy_j[i + 1] = device->energy_j[i] + 1e-3 * device->power_w[i];
}

/* A fixed amount for each tick, from -1 to 1. */
static inline double synthetic_noise(double k)
{
    return 2 * fabs(sin(k * 12.9898) * 43758.5453 - floor(sin(k * 12.9898) * 43758.5453)) - 1;
}

static inline double synthetic_tick_s(double t_s, double period_s, double phase_s, double jitter_s)
{
    if (period_s <= 0)
        return t_s;
    double k = floor((t_s - phase_s) / period_s) + 1;
    double tick_s = phase_s + k * period_s + jitter_s * synthetic_noise(k);
    while (tick_s > t_s) {
        k -= 1.0;
        tick_s = phase_s + k * period_s + jitter_s * synthetic_noise(k);
    }
    return tick_s;
}

static inline bool synthetic_within(double t_s, double from_s, double until_s)
{
    return from_s < until_s && t_s >= from_s && t_s < until_s;
}

static inline double synthetic_counter_j(const struct synthetic *device, double t_s)
{
    if (synthetic_within(t_s, device->stuck_from_s, device->stuck_until_s))
        t_s = device->stuck_from_s;
    const double tick_s =
        synthetic_tick_s(t_s, device->counter_period_s, device->counter_phase_s, device->jitter_s);
    double energy_j = device->counter_base_j + synthetic_truth_j(device, tick_s);
    if (device->reset_s > 0 && t_s >= device->reset_s)
        energy_j = synthetic_truth_j(device, fmax(tick_s, device->reset_s)) -
                   synthetic_truth_j(device, device->reset_s);
    return floor(energy_j * (device->gain > 0 ? device->gain : 1) * 1000) / 1000;
}

static inline double synthetic_sensor_w(const struct synthetic *device, double t_s)
{
    const double tick_s = synthetic_tick_s(t_s, device->sensor_period_s, device->sensor_phase_s, 0);
    const double window_s = device->sensor_window_s > 0 ? device->sensor_window_s : 1e-6;
    return (synthetic_truth_j(device, tick_s) - synthetic_truth_j(device, tick_s - window_s)) /
           window_s;
}

static inline struct synthetic *synthetic_new(uint64_t seed)
{
    struct synthetic *device = calloc(1, sizeof *device);
    if (!device)
        abort();
    wg__rng_init(&device->rng, seed);
    device->counter_base_j = 12345;
    device->latency_s = 60e-6;
    device->has_power = true;
    return device;
}

/* Call when power and sensors are set. */
static inline void synthetic_start(struct synthetic *device)
{
    synthetic_sum(device);
    struct wg_meter_info *energy = &device->info.meters[WG_METRIC_ENERGY_J];
    struct wg_meter_info *power = &device->info.meters[WG_METRIC_POWER_W];
    *energy = (struct wg_meter_info){.is_present = device->counter_period_s > 0,
                                     .source = "synthetic",
                                     .resolution = 1e-3,
                                     .update_period_s = device->counter_period_s};
    *power = (struct wg_meter_info){.is_present = device->has_power,
                                    .source = "synthetic",
                                    .resolution = 1e-3,
                                    .update_period_s = device->sensor_period_s,
                                    .averaging_window_s = device->sensor_window_s};
    device->now_ns = synthetic_ns(0);
    const uint64_t period_ns = 100000000;
    wg__account_init(&device->account, &device->info, period_ns);
    wg__schedule_init(&device->schedule, period_ns, true, device->now_ns);
}

static inline void synthetic_read(struct synthetic *device, enum wg_read_purpose purpose)
{
    struct wg_sample sample = {.t_ns = device->now_ns, .span_ns = 20000};
    const double t_s = synthetic_s(device->now_ns);
    device->reads++;
    device->edge_reads += purpose == WG_READ_EDGE;
    wg__schedule_done(&device->schedule, device->now_ns, purpose, false);
    if (synthetic_within(t_s, device->fail_from_s, device->fail_until_s)) {
        wg__account_fail(&device->account, false);
        return;
    }
    const bool no_counter =
        synthetic_within(t_s, device->no_counter_from_s, device->no_counter_until_s);
    if (device->counter_period_s > 0 && !no_counter) {
        sample.values[WG_METRIC_ENERGY_J] = synthetic_counter_j(device, t_s);
        sample.present |= 1U << WG_METRIC_ENERGY_J;
        if (device->spike_s > 0 && t_s >= device->spike_s) {
            sample.values[WG_METRIC_ENERGY_J] = 1.8e16;
            device->spike_s = 0;
        }
    }
    if (device->has_power) {
        sample.values[WG_METRIC_POWER_W] = synthetic_sensor_w(device, t_s);
        sample.present |= 1U << WG_METRIC_POWER_W;
    }
    if (device->extra)
        device->extra(device, &sample, t_s);
    wg__account_add(&device->account, &sample, &device->offsets);
}

/* The oldest edge in the past that waits; 0: none. Takes marks that are known now. */
static inline uint64_t synthetic_marks(struct synthetic *device, struct synthetic_window *windows,
                                       size_t count, uint64_t *next_out)
{
    uint64_t oldest_ns = 0;
    *next_out = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        for (int end = 0; end < 2; end++) {
            bool *has = end ? &windows[i].has_to : &windows[i].has_from;
            const uint64_t t_ns = synthetic_ns(end ? windows[i].end_s : windows[i].begin_s);
            if (*has)
                continue;
            if (t_ns > device->now_ns) {
                *next_out = t_ns < *next_out ? t_ns : *next_out;
            } else if (wg__account_reaches(&device->account, t_ns)) {
                wg__mark_take(end ? &windows[i].to : &windows[i].from, &device->account, t_ns);
                *has = true;
            } else if (oldest_ns == 0 || t_ns < oldest_ns) {
                oldest_ns = t_ns;
            }
        }
    }
    return oldest_ns;
}

/* Samples until `until_s`; windows must be sorted in no way. */
static inline void synthetic_run(struct synthetic *device, struct synthetic_window *windows,
                                 size_t count, double until_s)
{
    const uint64_t until_ns = synthetic_ns(until_s);
    while (device->now_ns < until_ns) {
        uint64_t event_ns;
        const uint64_t edge_ns = synthetic_marks(device, windows, count, &event_ns);
        enum wg_read_purpose purpose;
        const uint64_t wish_ns = wg__schedule_next(&device->schedule, &device->account, edge_ns,
                                                   device->now_ns, &purpose);
        if (event_ns < wish_ns && wish_ns > device->now_ns) {
            device->now_ns = event_ns; /* a window begins or ends: the sampler wakes */
            continue;
        }
        device->now_ns =
            wish_ns + (uint64_t)(device->latency_s * 1e9 * (0.5 + wg__rng_uniform(&device->rng)));
        synthetic_read(device, purpose);
    }
    uint64_t event_ns;
    (void)synthetic_marks(device, windows, count, &event_ns);
}

#endif
