/* SPDX-License-Identifier: MIT
 *
 * Steps by the period of the power, as a run sees it: samples of a slow sensor with their own
 * times, told more often than they change, through changes of the setting. The truth is that of
 * the simulated job.
 */
#include "live/train_signal.h"

#include "support/check.h"
#include "support/power_signal.h"

static const double update_s = 0.1, tick_s = 0.02, idle_w = 75;

static struct power_signal power;
static struct wg_train_signal signal;

/* Runs for `duration_s` from `begin_s` on at steps of `step_s`; counts them. */
static void run(double begin_s, double duration_s, double step_s, double busy_w, double clock_hz)
{
    struct power_signal_shape shape = power_signal_usual(step_s, update_s, duration_s);
    shape.idle_w = idle_w;
    shape.busy_w = busy_w;
    shape.noise = 0.002;
    shape.jitter = 0.005;
    power_signal_make(&shape, (uint64_t)(1000 * step_s), &power);
    for (size_t tick = 0; (double)tick * tick_s < duration_s; tick++) {
        const double now_s = (double)tick * tick_s;
        const size_t sample = (size_t)fmin((double)power.count - 1, floor(now_s / update_s));
        wg__train_signal_add(&signal, begin_s + power.t_s[sample] - update_s, power.value[sample],
                             clock_hz);
        if (wg__train_signal_look(&signal, begin_s + now_s))
            (void)wg__train_signal_step(&signal, begin_s + now_s);
    }
}

static void start(void)
{
    wg__train_signal_init(&signal, update_s);
    wg__train_signal_idle(&signal, idle_w);
}

static void finds_steps_of_a_slow_sensor_at_every_setting(void **state)
{
    static const double steps_s[] = {0.45, 0.5, 0.7, 1, 2.5, 5};
    static const double slower[] = {1, 1.08, 1.25, 1.02, 1.5};

    (void)state;
    for (size_t i = 0; i < sizeof steps_s / sizeof steps_s[0]; i++) {
        const double stay_s = fmax(30, 14 * steps_s[i]);
        start();
        for (size_t k = 0; k < sizeof slower / sizeof slower[0]; k++) {
            const double begin_s = (double)k * stay_s, step_s = steps_s[i] * slower[k];
            struct wg_period found;
            if (k > 0)
                wg__train_signal_change(&signal, begin_s);
            run(begin_s, stay_s, step_s, 200 / slower[k], 1.7e9 / slower[k]);
            if (!wg__train_signal_within(&signal, begin_s, begin_s + stay_s, &found) ||
                fabs(found.period_s / power.mean_step_s - 1) > 0.03 ||
                fabs(signal.period.period_s / power.mean_step_s - 1) > 0.03)
                fail_msg("a step of %g s: found %g s and %g s with confidence %g", step_s,
                         found.period_s, signal.period.period_s, found.confidence);
        }
    }
}

static void counts_steps_from_where_the_period_is_seen(void **state)
{
    (void)state;
    start();
    run(0, 60, 0.5, 200, NAN);
    const double first_s = signal.next_step_s - signal.steps * 0.5;
    assert_true(first_s < 30);
    check_close(signal.steps, (60 - first_s) / 0.5, 2);
}

static void repeated_samples_are_kept_once(void **state)
{
    (void)state;
    start();
    run(0, 20, 0.5, 200, NAN);
    check_close((double)signal.count, 20 / update_s, 1);
}

static void an_idle_power_that_was_none_is_corrected(void **state)
{
    (void)state;
    wg__train_signal_init(&signal, update_s);
    wg__train_signal_idle(&signal, 150); /* somebody else was at work */
    wg__train_signal_add(&signal, 1, 90, NAN);
    wg__train_signal_add(&signal, 2, 120, NAN);
    check_close(signal.idle_w, 90, 1e-12);
}

static void without_an_idle_power_shallow_dips_are_refused(void **state)
{
    (void)state;
    wg__train_signal_init(&signal, update_s);
    run(0, 30, 0.5, 95, NAN);
    assert_true(isnan(signal.period.period_s) && signal.steps == 0);
    start();
    run(0, 30, 0.5, 95, NAN);
    check_close(signal.period.period_s, 0.5, 0.01);
}

static void a_step_longer_than_the_clock_explains_is_refused(void **state)
{
    struct wg_period found;

    (void)state;
    start();
    run(0, 30, 0.5, 200, 1.7e9);
    wg__train_signal_change(&signal, 30);
    run(30, 30, 0.8, 180, 1.6e9);
    assert_false(wg__train_signal_within(&signal, 30, 60, &found));
    check_close(signal.period.period_s, 0.5, 0.01);
}

static void a_period_that_is_gone_is_forgotten(void **state)
{
    (void)state;
    start();
    run(0, 30, 0.5, 200, 1.7e9);
    assert_true(wg__train_signal_look(&signal, 30));
    run(30, 100, 0.83, 200, 1.7e9); /* the same setting, another job */
    check_close(signal.period.period_s, 0.83, 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_steps_of_a_slow_sensor_at_every_setting),
        cmocka_unit_test(counts_steps_from_where_the_period_is_seen),
        cmocka_unit_test(repeated_samples_are_kept_once),
        cmocka_unit_test(an_idle_power_that_was_none_is_corrected),
        cmocka_unit_test(without_an_idle_power_shallow_dips_are_refused),
        cmocka_unit_test(a_step_longer_than_the_clock_explains_is_refused),
        cmocka_unit_test(a_period_that_is_gone_is_forgotten),
    };

    return run_tests(tests);
}
