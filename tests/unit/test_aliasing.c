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
    {"power only, 10 of 20 ms", 0, 0.02, 0.01},
};
enum { VOLTA, AMPERE, ADA, POWER_ONLY };

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

static double truth_of(const struct synthetic *device, const struct synthetic_window *window)
{
    return synthetic_truth_j(device, window->end_s) - synthetic_truth_j(device, window->begin_s);
}

static struct wg_window_result one_window(struct synthetic *device, double begin_s, double end_s)
{
    synthetic_start(device);
    struct synthetic_window window = {.begin_s = begin_s, .end_s = end_s};
    synthetic_run(device, &window, 1, end_s + 2);
    return result_of(&window);
}

/* A load that is on and off for half of its period, in step with the clock from 0 on. */
static struct synthetic *periodic_new(const struct kind *kind, double period_ms, uint64_t seed)
{
    struct synthetic *device = device_new(kind, seed);
    for (size_t i = 0; i < SYNTHETIC_STEPS; i++)
        device->power_w[i] = fmod((double)i, period_ms) < period_ms / 2 ? 178 : 8;
    return device;
}

/* Share of windows of 2 to 4 s whose claim holds the truth; the mean of their errors, signed. */
static double periodic_covered(const struct kind *kind, double period_ms, double *bias_out)
{
    enum { WINDOWS = 40, SEEDS = 5 };
    const double all = (double)WINDOWS * (double)SEEDS;
    double covered = 0, bias = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct synthetic *device = periodic_new(kind, period_ms, seed);
        device->sensor_phase_s += kind->sensor_s / (double)SEEDS * (double)seed;
        device->counter_phase_s += 0.0231 * (double)seed;
        synthetic_start(device);
        struct synthetic_window windows[WINDOWS] = {0};
        for (size_t i = 0; i < WINDOWS; i++) {
            windows[i].begin_s = 1 + 55 * wg__rng_uniform(&device->rng);
            windows[i].end_s = windows[i].begin_s + 2 + 2 * wg__rng_uniform(&device->rng);
        }
        synthetic_run(device, windows, WINDOWS, 62);
        for (size_t i = 0; i < WINDOWS; i++) {
            const struct wg_window_result result = result_of(&windows[i]);
            const double error_j = result.energy_j - truth_of(device, &windows[i]);
            covered += fabs(error_j) <= result.energy_error_j ? 1 : 0;
            bias += error_j / truth_of(device, &windows[i]);
        }
        free(device);
    }
    *bias_out = bias / all;
    return covered / all;
}

/* Regular reads lock onto regular loads: 32 or 535 J +- 0 where 279 J were drawn. */
static void regular_loads_do_not_fool_power_alone(void **state)
{
    (void)state;
    const double periods_ms[] = {37, 50, 100, 200, 1000};
    for (size_t i = 0; i < sizeof periods_ms / sizeof periods_ms[0]; i++) {
        double bias;
        const double covered = periodic_covered(&kinds[POWER_ONLY], periods_ms[i], &bias);
        if (covered < 0.9 || fabs(bias) > 0.05)
            fail_msg("%g ms: %.3f covered, off by %.1f %% on average", periods_ms[i], covered,
                     100 * bias);
    }
}

/* What a tick hides shows in how widely the power was read to vary. Less well where the load is in
 * step with sensor and counter both, and each reading is the same (100 ms, a quarter of it seen).
 */
static void regular_loads_are_within_the_claim_of_a_counter(void **state)
{
    (void)state;
    const double periods_ms[] = {36, 50, 100, 200, 1000};
    for (size_t k = 0; k <= AMPERE; k++)
        for (size_t i = 0; i < sizeof periods_ms / sizeof periods_ms[0]; i++) {
            double bias;
            const double covered = periodic_covered(&kinds[k], periods_ms[i], &bias);
            if (covered < (k == VOLTA ? 0.9 : 0.8) || fabs(bias) > 0.01)
                fail_msg("%s, %g ms: %.3f covered, off by %.1f %% on average", kinds[k].name,
                         periods_ms[i], covered, 100 * bias);
        }
}

/* A steady reading is known to the step of its meter, not better. */
static void no_joule_that_was_sampled_is_exact(void **state)
{
    (void)state;
    struct synthetic *device = device_new(&kinds[POWER_ONLY], 31);
    const struct wg_window_result result = one_window(device, 40, 43);
    check_close(result.energy_j, 300, 1e-3);
    assert_true(result.energy_error_j >= 3e-3 && result.energy_error_j < 3);
    free(device);
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
        cmocka_unit_test(regular_loads_do_not_fool_power_alone),
        cmocka_unit_test(regular_loads_are_within_the_claim_of_a_counter),
        cmocka_unit_test(no_joule_that_was_sampled_is_exact),
        cmocka_unit_test(a_restart_under_constant_power_costs_nothing),
    };
    return run_tests(tests);
}
