/* SPDX-License-Identifier: MIT
 *
 * A vendor of our own for tests: devices that answer, fail, get lost or hang as a test says.
 *
 * A test fills a `struct fake_world`, points `fake_world_now` at it and gives `fake_backends` (or a
 * table of its own) to wg__machine_open_with. Device i reads power 100 + i watts.
 *
 * Owns: the devices, from open to destroy.    Threads: the world is set up before open; counters
 * are atomic.
 */
#ifndef WG_TESTS_SUPPORT_FAKE_DEVICES_H
#define WG_TESTS_SUPPORT_FAKE_DEVICES_H

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "device/backend.h"
#include "device/select.h"
#include "support/check.h"
#include "support/gate.h"

enum { FAKE_DEVICES_MAX = 8, FAKE_PROCESSES = 3 };

/* Whether a call works. */
enum fake_mood { FAKE_WORKS, FAKE_HANGS, FAKE_IS_LOST };

/* A knob that outlives machines, as those of real devices do. */
struct fake_knob {
    bool is_present;
    bool is_forbidden;  /* this process may not set it */
    bool is_unreadable; /* as locked clocks: `get` answers NAN */
    bool is_deaf;       /* a set succeeds and does nothing */
    double value;       /* NAN: the driver's own choice */
    double min, max, step, preset;
    double needs_least;   /* refuses less (WG_EINVAL), whatever min says */
    unsigned fails_first; /* so many sets fail */
};

struct fake_script {
    enum wg_device_kind kind;
    const char *name;
    const char *uuid;
    unsigned driver_index_plus_1;
    _Atomic(enum fake_mood) probe, read, release, reopen, set, get;
    struct fake_knob knobs[WG_KNOB_COUNT];
};

struct fake_world {
    struct fake_script devices[FAKE_DEVICES_MAX];
    size_t count;
    struct gate gate; /* what hangs waits here */
    bool open_hangs;
    enum wg_code open_code; /* WG_OK: the devices */
    bool matches;           /* asks the selection which devices are chosen */
    char root[64];          /* as the backend was told */
    char sets[1024];        /* what was set, in order: "0.power_limit=300 " */
    atomic_uint probes, reads, releases, reopens, destroyed;
};

static struct fake_world *fake_world_now;

struct fake_device {
    struct wg_device device;
    struct fake_world *world;
    size_t number;
    bool is_open;
};

static inline struct fake_world fake_world_of(size_t count)
{
    struct fake_world world = {.count = count, .gate = GATE_CLOSED};
    return world;
}

static inline enum wg_code fake_act(struct fake_device *fake, enum fake_mood mood, const char *call,
                                    struct wg_error *err)
{
    if (mood == FAKE_IS_LOST)
        return wg__fail(err, WG_ELOST, "%s failed: GPU is lost (15)", call);
    if (mood == FAKE_HANGS) {
        atomic_store(&fake->device.call, call);
        gate_pass(&fake->world->gate);
    }
    return WG_OK;
}

static inline void fake_list_knobs(struct fake_device *fake)
{
    for (size_t i = 0; i < WG_KNOB_COUNT; i++) {
        const struct fake_knob *knob = &fake->world->devices[fake->number].knobs[i];
        if (knob->is_present)
            fake->device.info.knobs[i] = (struct wg_knob_info){
                .is_present = true,
                .is_writable = !knob->is_forbidden,
                .min = knob->min,
                .max = knob->max,
                .step = knob->step,
                .preset = knob->preset,
                .current = knob->is_unreadable ? (double)NAN : knob->value,
                .source = "fakeSet",
                .why_not = knob->is_forbidden ? "setting needs a right" : NULL,
                .remedy = knob->is_forbidden ? "run as root" : NULL};
    }
}

static inline enum wg_code fake_probe(struct wg_device *device, struct wg_error *err)
{
    struct fake_device *fake = (struct fake_device *)device;
    const struct fake_script *script = &fake->world->devices[fake->number];
    const enum wg_code code = fake_act(fake, atomic_load(&script->probe), "fakeProbe", err);
    if (code != WG_OK)
        return code;
    atomic_fetch_add(&fake->world->probes, 1);
    char name[64];
    (void)snprintf(name, sizeof name, "Fake %zu", fake->number);
    if (device->info.name == NULL)
        device->info.name = wg__arena_strdup(&device->arena, name);
    if (device->info.name == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    device->info.counts_in_total = true;
    fake_list_knobs(fake);
    device->info.meters[WG_METRIC_POWER_W] = (struct wg_meter_info){
        .is_present = true, .source = "fakeRead", .resolution = 0.001, .update_period_s = 0.1};
    return WG_OK;
}

static inline enum wg_code fake_set(struct wg_device *device, enum wg_knob which, double value,
                                    struct wg_error *err)
{
    struct fake_device *fake = (struct fake_device *)device;
    struct fake_script *script = &fake->world->devices[fake->number];
    struct fake_knob *knob = &script->knobs[which];
    const enum wg_code code = fake_act(fake, atomic_load(&script->set), "fakeSet", err);
    if (code != WG_OK)
        return code;
    char *sets = fake->world->sets;
    const size_t length = strlen(sets);
    (void)snprintf(sets + length, sizeof fake->world->sets - length, "%zu.%s=%.6g ", fake->number,
                   wg_knob_key(which), value);
    if (knob->fails_first > 0) {
        knob->fails_first--;
        return wg__fail(err, WG_EIO, "fakeSet failed: unknown error (999)");
    }
    if (value < knob->needs_least)
        return wg__fail(err, WG_EINVAL, "fakeSet failed: invalid argument (2)");
    if (!knob->is_deaf)
        knob->value = value;
    return WG_OK;
}

static inline enum wg_code fake_get(struct wg_device *device, enum wg_knob which, double *out,
                                    struct wg_error *err)
{
    struct fake_device *fake = (struct fake_device *)device;
    struct fake_script *script = &fake->world->devices[fake->number];
    const enum wg_code code = fake_act(fake, atomic_load(&script->get), "fakeGet", err);
    *out = script->knobs[which].is_unreadable ? (double)NAN : script->knobs[which].value;
    return code;
}

static inline enum wg_code fake_read(struct wg_device *device, uint32_t wanted,
                                     struct wg_sample *out, struct wg_error *err)
{
    struct fake_device *fake = (struct fake_device *)device;
    const struct fake_script *script = &fake->world->devices[fake->number];
    assert_true(fake->is_open);
    const enum wg_code code = fake_act(fake, atomic_load(&script->read), "fakeRead", err);
    if (code != WG_OK)
        return code;
    atomic_fetch_add(&fake->world->reads, 1);
    out->t_ns = wg__clock_ns();
    if ((wanted >> WG_METRIC_POWER_W & 1U) != 0)
        wg__sample_set(out, WG_METRIC_POWER_W, 100.0 + (double)fake->number);
    return WG_OK;
}

static inline enum wg_code fake_read_processes(struct wg_device *device, struct wg_process *out,
                                               size_t capacity, size_t *count_out,
                                               struct wg_error *err)
{
    struct fake_device *fake = (struct fake_device *)device;
    const struct fake_script *script = &fake->world->devices[fake->number];
    const enum wg_code code = fake_act(fake, atomic_load(&script->read), "fakeProcesses", err);
    for (size_t i = 0; i < FAKE_PROCESSES && i < capacity && code == WG_OK; i++)
        out[i] = (struct wg_process){.pid = (uint32_t)(1000 + i), .memory_bytes = i};
    *count_out = FAKE_PROCESSES;
    return code;
}

static inline void fake_release(struct wg_device *device)
{
    struct fake_device *fake = (struct fake_device *)device;
    const struct fake_script *script = &fake->world->devices[fake->number];
    (void)fake_act(fake, atomic_load(&script->release), "fakeRelease", NULL);
    assert_true(fake->is_open); /* never twice */
    fake->is_open = false;
    atomic_fetch_add(&fake->world->releases, 1);
}

static inline enum wg_code fake_reopen(struct wg_device *device, struct wg_error *err)
{
    struct fake_device *fake = (struct fake_device *)device;
    const struct fake_script *script = &fake->world->devices[fake->number];
    const enum wg_code code = fake_act(fake, atomic_load(&script->reopen), "fakeReopen", err);
    if (code != WG_OK)
        return code;
    fake->is_open = true;
    atomic_fetch_add(&fake->world->reopens, 1);
    return WG_OK;
}

static inline void fake_destroy(struct wg_device *device)
{
    struct fake_device *fake = (struct fake_device *)device;
    assert_false(fake->is_open);
    atomic_fetch_add(&fake->world->destroyed, 1);
    wg__free(fake);
}

static const struct wg_device_ops fake_ops = {
    .probe = fake_probe,
    .read = fake_read,
    .read_processes = fake_read_processes,
    .set = fake_set,
    .get = fake_get,
    .release = fake_release,
    .reopen = fake_reopen,
    .destroy = fake_destroy,
};

static inline enum wg_code fake_add(struct fake_world *world, size_t number,
                                    struct wg_device_list *list, struct wg_error *err)
{
    struct fake_device *fake = wg__alloc_zeroed(1, sizeof *fake);
    if (fake == NULL)
        return wg__fail(err, WG_ENOMEM, "fake: out of memory");
    const struct fake_script *script = &world->devices[number];
    fake->device.ops = &fake_ops;
    fake->device.info.kind = script->kind;
    fake->device.info.name = script->name;
    fake->device.info.uuid = script->uuid;
    fake->device.info.numa_node = UINT_MAX;
    fake->device.driver_index_plus_1 = script->driver_index_plus_1;
    fake->world = world;
    fake->number = number;
    fake->is_open = true;
    const enum wg_code code = wg__device_list_add(list, &fake->device, err);
    if (code != WG_OK)
        wg__free(fake);
    return code;
}

static inline enum wg_code fake_open(const struct wg_backend_config *config,
                                     struct wg_device_list *list, const char **remedy_out,
                                     struct wg_error *err)
{
    struct fake_world *world = fake_world_now;
    (void)snprintf(world->root, sizeof world->root, "%s", config->root);
    if (world->open_hangs) {
        atomic_store(config->call, "fakeInit");
        gate_pass(&world->gate);
    }
    *remedy_out = world->open_code != WG_OK ? "mend it" : NULL;
    if (world->open_code != WG_OK)
        return wg__fail(err, world->open_code, "fake: fakeInit failed: mismatch (18)");
    bool chosen[FAKE_DEVICES_MAX];
    struct wg_candidate candidates[FAKE_DEVICES_MAX] = {0};
    for (size_t i = 0; i < world->count; i++) {
        candidates[i].uuid = world->devices[i].uuid;
        chosen[i] = true;
    }
    enum wg_code code = WG_OK;
    if (world->matches)
        code = wg__selection_match(config->selection, candidates, world->count, chosen, err);
    for (size_t i = 0; i < world->count && code == WG_OK; i++) {
        if (chosen[i])
            code = fake_add(world, i, list, err);
    }
    return code;
}

static const struct wg_backend fake_backend = {.name = "fake", .open = fake_open};

static const struct wg_backend *const fake_backends[] = {&fake_backend, NULL};

#endif
