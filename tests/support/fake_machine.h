/* SPDX-License-Identifier: MIT
 *
 * Machines of fake devices, and what tests ask of them.
 *
 * Timeouts: what must not be late gets a minute; what hangs, HANG_MS.
 *
 * Owns: nothing.    Threads: one.
 */
#ifndef WG_TESTS_SUPPORT_FAKE_MACHINE_H
#define WG_TESTS_SUPPORT_FAKE_MACHINE_H

#include "device/machine.h"
#include "support/fake_devices.h"

enum { HANG_MS = 300 };

static inline struct wg_machine *open_opts(struct fake_world *world,
                                           const struct wg_machine_opts *opts)
{
    fake_world_now = world;
    struct wg_machine *machine = NULL;
    struct wg_error err = {0};
    if (wg__machine_open_with(&machine, fake_backends, opts, &err) != WG_OK)
        fail_msg("%s", err.text);
    return machine;
}

static inline struct wg_machine *open_patient(struct fake_world *world)
{
    return open_opts(world, &WG_MACHINE_OPTS(.call_timeout_ms = 60000));
}

static inline struct wg_machine *open_hanging(struct fake_world *world)
{
    return open_opts(world, &WG_MACHINE_OPTS(.call_timeout_ms = HANG_MS));
}

static inline const struct wg_device_info *info_of(struct wg_machine *machine, size_t position)
{
    return wg_device_get_info(wg_machine_device(machine, position));
}

static inline void expect_power(struct wg_machine *machine, size_t position, double expected_w)
{
    struct wg_sample sample;
    struct wg_error err = {0};
    if (wg_device_read(wg_machine_device(machine, position), UINT32_MAX, &sample, &err) != WG_OK)
        fail_msg("device %zu: %s", position, err.text);
    assert_true(wg__sample_has(&sample, WG_METRIC_POWER_W));
    check_close(sample.values[WG_METRIC_POWER_W], expected_w, 0.0);
}

static inline void expect_failure(struct wg_machine *machine, size_t position, enum wg_code code,
                                  const char *text)
{
    struct wg_sample sample = {.t_ns = 7};
    struct wg_error err = {0};
    assert_int_equal(
        wg_device_read(wg_machine_device(machine, position), UINT32_MAX, &sample, &err), code);
    if (strstr(err.text, text) == NULL)
        fail_msg("'%s' does not say '%s'", err.text, text);
    assert_int_equal(sample.t_ns, 7); /* written on success only */
}

#endif
