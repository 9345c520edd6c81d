/* SPDX-License-Identifier: MIT
 *
 * A governor without judgement, for tests: takes every knob of the GPUs, sets it to random values
 * as fast as the driver lets it, and is killed.
 *
 *     control_driver WATTGOV SEED HOLDER [quiet]
 *
 * Prints "guard PID" when the guard watches, "taken" when all knobs are taken, then sets until
 * stdin ends ("quiet": sets each knob once, and says "set"). At the end of stdin it gives all back
 * and prints "left N". A knob that is held by somebody else: prints "busy TEXT" and ends with 3.
 *
 * Threads: one.
 */
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/rng.h"
#include "device/control.h"
#include "device/machine.h"
#include "live/guard.h"

enum { BUSY = 3 };

struct driver {
    struct wg_machine *machine;
    struct wg_control *control;
    struct wg_guard guard;
    struct wg_rng rng;
};

static int fail(const char *what, const struct wg_error *err)
{
    (void)fprintf(stderr, "%s: %s\n", what, err->text);
    return 1;
}

/* The knobs that can be set, one after another. */
static bool next_knob(const struct driver *driver, size_t *device, size_t *knob)
{
    const size_t count = wg_machine_device_count(driver->machine);
    while (*device < count) {
        const struct wg_device_info *info =
            wg_device_get_info(wg_machine_device(driver->machine, *device));
        while (++*knob <= WG_KNOB_COUNT) {
            const struct wg_knob_info *one = &info->knobs[*knob - 1];
            if (one->is_present && one->is_writable)
                return true;
        }
        *knob = 0;
        ++*device;
    }
    return false;
}

static int take_all(struct driver *driver)
{
    struct wg_error err;
    size_t device = 0;
    size_t knob = 0;
    while (next_knob(driver, &device, &knob)) {
        const enum wg_code code =
            wg__control_take(driver->control, device, (enum wg_knob)(knob - 1), &err);
        if (code == WG_EBUSY) {
            (void)printf("busy %s\n", err.text);
            return BUSY;
        }
        if (code != WG_OK)
            return fail("take", &err);
    }
    return 0;
}

/* A driver that fails or hangs is part of the test. */
static void set_all(struct driver *driver)
{
    size_t device = 0;
    size_t knob = 0;
    while (next_knob(driver, &device, &knob)) {
        const struct wg_knob_info *info =
            &wg_device_get_info(wg_machine_device(driver->machine, device))->knobs[knob - 1];
        double value = info->min + (info->max - info->min) * wg__rng_uniform(&driver->rng);
        if (info->level_count > 0)
            value = info->levels[wg__rng_below(&driver->rng, (uint32_t)info->level_count)];
        (void)wg__control_set(driver->control, device, (enum wg_knob)(knob - 1), value, NULL, NULL);
    }
}

static bool is_told_to_end(int timeout_ms)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, timeout_ms) > 0;
}

static int drive(struct driver *driver, const char *program, bool is_quiet)
{
    struct wg_error err;
    if (wg__guard_start(&driver->guard, program, wg__control_journal_fd(driver->control), &err) !=
        WG_OK)
        return fail("guard", &err);
    (void)printf("guard %d\n", (int)driver->guard.pid);
    int status = take_all(driver);
    if (status == 0)
        (void)printf("taken\n");
    if (status == 0 && is_quiet) {
        set_all(driver);
        (void)printf("set\n");
    }
    while (status == 0 && !is_told_to_end(is_quiet ? -1 : 0))
        set_all(driver);
    if (status == 0)
        (void)printf("left %zu\n", wg__control_restore(driver->control, NULL, NULL));
    return status;
}

int main(int argc, char *argv[])
{
    struct driver driver = {.guard = {.pidfd = -1}};
    struct wg_error err;
    uint64_t seed = 0;
    if (argc < 4 || !wg__parse_uint64(argv[2], &seed)) {
        (void)fprintf(stderr, "usage: control_driver WATTGOV SEED HOLDER [quiet]\n");
        return 2;
    }
    wg__rng_init(&driver.rng, seed);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
        wg_machine_open(&driver.machine,
                        &WG_MACHINE_OPTS(.gpus_only = true, .call_timeout_ms = 500), &err) != WG_OK)
        return fail("open", &err);
    const struct wg_control_opts opts = {.holder = argv[3]};
    if (wg__control_open(&driver.control, driver.machine, &opts, &err) != WG_OK) {
        wg_machine_close(driver.machine);
        return fail("control", &err);
    }
    const int status = drive(&driver, argv[1], argc > 4 && strcmp(argv[4], "quiet") == 0);
    wg__control_close(driver.control);
    wg__guard_stop(&driver.guard);
    wg_machine_close(driver.machine);
    return status;
}
