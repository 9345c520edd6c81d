/* SPDX-License-Identifier: MIT
 *
 * Drives one backend without a machine: open, probe, read, release, reopen, destroy, in the order
 * in which machine.c does it, on one thread.
 *
 * Owns: the devices of the run.    Threads: one thread at a time.
 */
#ifndef WG_TESTS_SUPPORT_BACKEND_H
#define WG_TESTS_SUPPORT_BACKEND_H

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "device/backend.h"
#include "support/check.h"

struct backend_run {
    struct wg_device_list list;
    const char *remedy;
    enum wg_code code; /* of `open`, else the first failure of a `probe` */
    struct wg_error err;
};

static inline void backend_probe(struct backend_run *run, struct wg_device *device)
{
    struct wg_error err;
    const enum wg_code code = device->ops->probe(device, &err);
    device->info.state = code;
    if (code != WG_OK && run->code == WG_OK) {
        run->code = code;
        run->err = err;
    }
}

static inline void backend_open_config(struct backend_run *run, const struct wg_backend *backend,
                                       const struct wg_backend_config *config)
{
    *run = (struct backend_run){.remedy = NULL};
    run->code = backend->open(config, &run->list, &run->remedy, &run->err);
    for (size_t i = 0; i < run->list.count; i++)
        backend_probe(run, run->list.items[i]);
}

static inline void backend_open(struct backend_run *run, const struct wg_backend *backend,
                                const char *root)
{
    const struct wg_backend_config config = {.root = root};
    backend_open_config(run, backend, &config);
}

/* The same where it must work: the test fails with what the backend says. */
static inline void backend_must_open(struct backend_run *run, const struct wg_backend *backend,
                                     const char *root)
{
    backend_open(run, backend, root);
    if (run->code != WG_OK)
        fail_msg("%s", run->err.text);
}

static inline void backend_close(struct backend_run *run)
{
    for (size_t i = 0; i < run->list.count; i++) {
        struct wg_device *device = run->list.items[i];
        device->ops->release(device);
        wg__arena_fini(&device->arena);
        device->ops->destroy(device);
    }
    wg__free(run->list.items);
    *run = (struct backend_run){.remedy = NULL};
}

/* The device of that id; the test fails without it. */
static inline struct wg_device *backend_find(const struct backend_run *run, const char *id)
{
    for (size_t i = 0; i < run->list.count; i++) {
        if (strcmp(run->list.items[i]->info.id, id) == 0)
            return run->list.items[i];
    }
    fail_msg("no device %s", id);
    return NULL;
}

/* Reads everything; the test fails when that does. A read must not allocate. */
static inline struct wg_sample backend_read(struct wg_device *device)
{
    struct wg_sample sample;
    struct wg_error err = {.text = ""};
    wg__alloc_fail_from(1);
    const enum wg_code code = device->ops->read(device, UINT32_MAX, &sample, &err);
    const size_t count = wg__alloc_count();
    wg__alloc_fail_from(0);
    if (code != WG_OK)
        fail_msg("%s", err.text);
    assert_int_equal(count, 0);
    return sample;
}

#define check_metric(sample, metric, expected)                                                     \
    do {                                                                                           \
        const struct wg_sample check_sample = (sample);                                            \
        assert_true(wg__sample_has(&check_sample, metric));                                        \
        check_close(check_sample.values[metric], expected, 1e-12);                                 \
    } while (0)

/* Checks an absent meter: what stands in its reason. */
static inline void check_absent(const struct wg_device *device, enum wg_metric metric,
                                const char *part)
{
    const struct wg_meter_info *meter = &device->info.meters[metric];
    assert_false(meter->is_present);
    if (strstr(meter->why_not, part) == NULL)
        fail_msg("%s: '%s' lacks '%s'", wg_metric_key(metric), meter->why_not, part);
}

static inline void check_no_knob(const struct wg_device *device, enum wg_knob knob,
                                 const char *part)
{
    const struct wg_knob_info *info = &device->info.knobs[knob];
    assert_false(info->is_present);
    if (strstr(info->why_not, part) == NULL)
        fail_msg("%s: '%s' lacks '%s'", wg_knob_key(knob), info->why_not, part);
}

/* Every meter and knob says where it comes from, and when it is absent, why. */
static inline void check_complete(const struct backend_run *run)
{
    for (size_t i = 0; i < run->list.count; i++) {
        const struct wg_device_info *info = &run->list.items[i]->info;
        assert_true(info->id != NULL && info->name != NULL && info->backend != NULL);
        for (size_t m = 0; m < WG_METRIC_COUNT; m++) {
            assert_non_null(info->meters[m].source);
            assert_int_equal(info->meters[m].is_present, info->meters[m].why_not == NULL);
        }
        for (size_t k = 0; k < WG_KNOB_COUNT; k++) {
            assert_non_null(info->knobs[k].source);
            assert_int_equal(info->knobs[k].is_present && info->knobs[k].is_writable,
                             info->knobs[k].why_not == NULL);
        }
    }
}

/* Makes each allocation of open, probe, release and reopen fail in turn: each failure is told. */
static inline void backend_walk(const struct wg_backend *backend,
                                const struct wg_backend_config *config)
{
    for (size_t nth = 1; nth < 10000; nth++) {
        struct backend_run run;
        wg__alloc_fail_from(nth);
        backend_open_config(&run, backend, config);
        bool is_told = run.code == WG_ENOMEM;
        for (size_t i = 0; i < run.list.count; i++) {
            struct wg_device *device = run.list.items[i];
            device->ops->release(device);
            is_told |= device->ops->reopen(device, &run.err) == WG_ENOMEM;
        }
        const bool has_failed = wg__alloc_count() >= nth;
        wg__alloc_fail_from(0);
        if (has_failed && !is_told)
            fail_msg("allocation %zu failed and nobody said so", nth);
        backend_close(&run);
        if (!has_failed)
            return;
    }
    fail_msg("the walk does not end");
}

#endif
