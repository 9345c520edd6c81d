/* SPDX-License-Identifier: MIT
 *
 * Loads that beat with the meter: periodic ones that regular reads lock onto, and counters that
 * restart within a tick. Claims of error must hold the truth.
 */
#include "support/synthetic_device.h"

#include "support/check.h"

static const struct kind {
    const char *name;
    double counter_s, sensor_s, window_s;
} kinds[] = {
    {"volta, 20 ms counter", 0.02, 0.02, 0.01},
    {"ampere, 100 ms counter", 0.1, 0.1, 0.025},
    {"ada, averaged", 0.1, 0.1, 1},
};
enum { VOLTA, AMPERE, ADA };

static struct synthetic *device_new(const struct kind *kind, uint64_t seed)
{
    struct synthetic *device = synthetic_new(seed);
    device->counter_period_s = kind->counter_s;
    device->counter_phase_s = 0.37 * kind->counter_s;
    device->sensor_period_s = kind->sensor_s;
    device->sensor_window_s = kind->window_s;
    device->sensor_phase_s = 0.37 * kind->sensor_s;
    for (size_t i = 0; i < SYNTHETIC_STEPS; i++)
        device->power_w[i] = 100;
    return device;
}

static struct wg_window_result result_of(const struct synthetic_window *window)
{
    assert_true(window->has_from && window->has_to);
    struct wg_window_result result;
    wg__result_between(&result, &window->from, &window->to, NAN);
    return result;
}

static struct wg_window_result one_window(struct synthetic *device, double begin_s, double end_s)
{
    synthetic_start(device);
    struct synthetic_window window = {.begin_s = begin_s, .end_s = end_s};
    synthetic_run(device, &window, 1, end_s + 2);
    return result_of(&window);
}

/* A counter that restarts shows what it counted since, not what half a period holds. */
static void a_restart_under_constant_power_costs_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; k <= ADA; k++)
        for (size_t i = 0; i < 20; i++) {
            struct synthetic *device = device_new(&kinds[k], 32);
            device->reset_s = 5 + 0.0137 * (double)i;
            const struct wg_window_result result = one_window(device, 4, 7);
            assert_true((result.flags & WG_WINDOW_COUNTER_RESET) != 0);
            const double off_j = fabs(result.energy_j - 300);
            if (off_j > 0.9 || off_j > result.energy_error_j)
                fail_msg("%s, reset at %.4f s: %.2f J +- %.2f of 300", kinds[k].name,
                         device->reset_s, result.energy_j, result.energy_error_j);
            free(device);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restart_under_constant_power_costs_nothing),
    };
    return run_tests(tests);
}
