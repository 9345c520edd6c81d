/* SPDX-License-Identifier: MIT
 *
 * The period of a power signal: found where there is one, at the right multiple, and refused where
 * there is none or none can be known. The truth is that of the simulated signal.
 */
#include "math/period.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/power_signal.h"

static struct power_signal signal;

static struct wg_period find_above(double update_s, double expected_s, double floor_w)
{
    const struct wg_period_hint hint = {
        .update_s = update_s, .expected_s = expected_s, .floor = floor_w};
    struct wg_period out;
    struct wg_error err;

    if (wg__period_find(signal.t_s, signal.value, signal.count, &hint, &out, &err) != WG_OK)
        fail_msg("%s", err.text);
    return out;
}

static struct wg_period find(double update_s, double expected_s)
{
    return find_above(update_s, expected_s, 0);
}

static bool is_right(const struct wg_period *found, double share)
{
    return fabs(found->period_s / signal.mean_step_s - 1) <= share;
}

static void finds_the_steps_of_a_training_job_to_a_per_cent(void **state)
{
    static const double updates_s[] = {0.02, 0.1}, ratios[] = {10, 17, 31, 70};
    static const double jitters[] = {0, 0.01, 0.02};
    size_t accepted = 0, all = 0, close = 0;

    (void)state;
    for (size_t u = 0; u < 2; u++)
        for (size_t r = 0; r < 4; r++)
            for (size_t j = 0; j < 3; j++)
                for (uint64_t seed = 1; seed <= 6; seed++, all++) {
                    const double step_s = updates_s[u] * ratios[r];
                    struct power_signal_shape shape =
                        power_signal_usual(step_s, updates_s[u], 22 * step_s);

                    shape.jitter = jitters[j];
                    if (seed % 2 == 1) {
                        shape.pause_every_s = shape.duration_s / 3;
                        shape.pause_s = 4 * step_s;
                    }
                    power_signal_make(&shape, seed, &signal);
                    const struct wg_period found = find(updates_s[u], NAN);

                    if (found.confidence < 0.9)
                        continue;
                    accepted++;
                    if (!is_right(&found, 0.03))
                        fail_msg("steps of %g s, jitter %g, seed %u: found %g s", step_s,
                                 jitters[j], (unsigned)seed, found.period_s);
                    close += is_right(&found, 0.01) ? 1 : 0;
                }
    if (accepted * 100 < all * 95 || close * 100 < accepted * 95)
        fail_msg("of %zu accepted %zu, within 1 %% %zu", all, accepted, close);
}

enum { WHITE, RED, REDDER, WALK, WALK_AND_WHITE, DRIFT, BROAD_HUMP, NOISE_COUNT };

static void make_noise(int kind, size_t count, uint64_t seed)
{
    struct wg_rng rng;
    double x = 0, before = 0;

    wg__rng_init(&rng, seed);
    signal.count = count;
    for (size_t i = 0; i < count; i++) {
        const double z = wg__rng_normal(&rng);
        double y = z;

        if (kind == RED || kind == REDDER)
            y = x = (kind == RED ? 0.6 : 0.95) * x + z;
        if (kind == WALK)
            y = x += z;
        if (kind == WALK_AND_WHITE) {
            x += 0.3 * z;
            y = x + wg__rng_normal(&rng);
        }
        if (kind == DRIFT)
            y = z + 0.05 * (double)i;
        if (kind == BROAD_HUMP) { /* a spectrum with a broad hump, but no period */
            y = 1.2 * x - 0.5 * before + z;
            before = x;
            x = y;
        }
        signal.t_s[i] = 0.1 * (double)(i + 1);
        signal.value[i] = 150 + 10 * y;
    }
}

static void noise_of_any_colour_has_no_period(void **state)
{
    enum { SEEDS = 150 };
    static const size_t counts[] = {40, 100, 300};

    (void)state;
    for (int kind = 0; kind < NOISE_COUNT; kind++)
        for (size_t c = 0; c < 3; c++) {
            size_t accepted = 0;

            for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                make_noise(kind, counts[c], 100 * seed + (uint64_t)kind);
                accepted += find(0.1, NAN).confidence >= 0.9 ? 1 : 0;
            }
            if (accepted * 100 >= SEEDS)
                fail_msg("noise %d, %zu samples: %zu of %d accepted", kind, counts[c], accepted,
                         SEEDS);
        }
}

/* Loads of many shapes, noise and jitter: what is accepted is right. */
static void what_is_accepted_is_right(void **state)
{
    enum { SEEDS = 800 };
    size_t accepted = 0, wrong = 0;
    struct wg_rng rng;

    (void)state;
    wg__rng_init(&rng, 42);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const double update_s = wg__rng_below(&rng, 2) == 0 ? 0.02 : 0.1;
        const double step_s = update_s * exp(log(1.05) + wg__rng_uniform(&rng) * log(60));
        const double cycles = 4 + 40 * wg__rng_uniform(&rng);
        struct power_signal_shape shape =
            power_signal_usual(step_s, update_s, fmax(cycles * step_s, 30 * update_s));

        shape.jitter = 0.08 * wg__rng_uniform(&rng);
        shape.noise = 0.2 * wg__rng_uniform(&rng) * wg__rng_uniform(&rng);
        shape.busy_share = 0.15 + 0.7 * wg__rng_uniform(&rng);
        shape.rest_share = 0.9 * wg__rng_uniform(&rng);
        shape.drift_w = 40 * wg__rng_uniform(&rng);
        if (wg__rng_below(&rng, 3) == 0) {
            shape.pause_every_s = (0.2 + wg__rng_uniform(&rng)) * shape.duration_s;
            shape.pause_s = (1 + 6 * wg__rng_uniform(&rng)) * step_s;
        }
        power_signal_make(&shape, seed, &signal);
        const struct wg_period found = find(update_s, NAN);

        if (found.confidence < 0.9)
            continue;
        accepted++;
        if (!is_right(&found, 0.05))
            wrong++;
    }
    if (accepted < SEEDS / 4 || wrong * 100 >= accepted)
        fail_msg("of %zu accepted %zu are wrong", accepted, wrong);
}

static void a_step_too_short_for_the_sensor_is_flagged(void **state)
{
    static const double steps_s[] = {0.055, 0.07, 0.105, 0.12, 0.13, 0.14, 0.15, 0.17, 0.19, 0.21};

    (void)state;
    for (size_t i = 0; i < sizeof steps_s / sizeof steps_s[0]; i++)
        for (uint64_t seed = 1; seed <= 20; seed++) {
            struct power_signal_shape shape = power_signal_usual(steps_s[i], 0.1, 30);

            shape.jitter = i % 2 == 0 ? 0 : 0.01;
            power_signal_make(&shape, seed, &signal);
            const struct wg_period found = find(0.1, NAN);

            if (!(found.confidence <= 0.5))
                fail_msg("a step of %g s was taken for %g s with confidence %g", steps_s[i],
                         found.period_s, found.confidence);
        }
}

static void samples_rarer_than_the_updates_are_flagged(void **state)
{
    struct power_signal_shape shape = power_signal_usual(0.13, 0.02, 60);

    (void)state;
    shape.jitter = 0;
    power_signal_make(&shape, 1, &signal);
    for (size_t i = 0; 5 * i < signal.count; i++) { /* one of five */
        signal.t_s[i] = signal.t_s[5 * i];
        signal.value[i] = signal.value[5 * i];
    }
    signal.count = (signal.count - 1) / 5 + 1;
    assert_true(find(0.02, NAN).confidence <= 0.5);
}

static void an_expected_period_vouches_for_an_ambiguous_one(void **state)
{
    const struct power_signal_shape shape = power_signal_usual(0.26, 0.1, 40);

    (void)state;
    power_signal_make(&shape, 3, &signal);
    struct wg_period found = find(0.1, NAN);

    assert_true(found.confidence <= 0.5);
    found = find(0.1, 0.3);
    assert_true(found.confidence >= 0.9 && is_right(&found, 0.01));
}

/* A sensor of 100 ms on a GPU that idles at 75 W. */
static void make_slow_sensor(double step_s, double jitter, double busy_w, double duration_s,
                             uint64_t seed)
{
    struct power_signal_shape shape = power_signal_usual(step_s, 0.1, duration_s);

    shape.idle_w = 75;
    shape.busy_w = busy_w;
    shape.jitter = jitter;
    shape.noise = 0.002;
    power_signal_make(&shape, seed, &signal);
}

/* Dips that are small against the whole power, and large against what the job adds. */
static void an_idle_floor_rules_aliases_out(void **state)
{
    static const double steps_s[] = {0.5, 0.522, 0.54, 0.61, 0.75, 1, 2.5}, busy_w[] = {92, 184};

    (void)state;
    for (size_t i = 0; i < sizeof steps_s / sizeof steps_s[0]; i++)
        for (size_t b = 0; b < 2; b++)
            for (uint64_t seed = 1; seed <= 10; seed++) {
                make_slow_sensor(steps_s[i], seed % 2 == 0 ? 0.01 : 0, busy_w[b],
                                 fmax(24, 12 * steps_s[i]), seed);
                const struct wg_period found = find_above(0.1, NAN, 75);

                if (found.confidence < 0.9 || !is_right(&found, 0.01))
                    fail_msg("a step of %g s at %g W, seed %u: found %g s with confidence %g",
                             steps_s[i], busy_w[b], (unsigned)seed, found.period_s,
                             found.confidence);
            }
    make_slow_sensor(0.5, 0.01, 92, 24, 1);
    assert_true(find_above(0.1, NAN, 0).confidence <= 0.5);
}

/* The floor clears no alias: what is true for it is true for its dips. */
static void an_alias_above_an_idle_floor_is_flagged(void **state)
{
    (void)state;
    for (size_t k = 0; k < 15; k++)
        for (uint64_t seed = 1; seed <= 10; seed++) {
            const double step_s = 0.055 + 0.01 * (double)k;

            make_slow_sensor(step_s, seed % 2 == 0 ? 0.01 : 0, 250, 30, seed);
            const struct wg_period found = find_above(0.1, NAN, 75);

            if (!(found.confidence <= 0.5))
                fail_msg("a step of %g s was taken for %g s with confidence %g", step_s,
                         found.period_s, found.confidence);
        }
}

/* Without jitter a period that is no whole number of bins repeats exactly after some of them. */
static void what_repeats_only_after_several_periods_is_divided(void **state)
{
    (void)state;
    for (unsigned percent = 45; percent <= 80; percent++) {
        const double step_s = 0.01 * percent;

        make_slow_sensor(step_s, 0, 250, 30, percent);
        const struct wg_period found = find_above(0.1, NAN, 75);

        if (found.confidence < 0.9 || !is_right(&found, 0.01))
            fail_msg("a step of %g s: found %g s with confidence %g", step_s, found.period_s,
                     found.confidence);
    }
}

/* Two bursts a step: by itself the burst is the period. */
static void what_is_expected_chooses_among_multiples(void **state)
{
    const struct power_signal_shape shape = power_signal_usual(0.5, 0.02, 40);

    (void)state;
    power_signal_make(&shape, 1, &signal);
    struct wg_period found = find(0.02, NAN);

    check_close(found.period_s, 0.5, 0.02);
    found = find(0.02, 1.1);
    check_close(found.period_s, 1.0, 0.02);
    found = find(0.02, 0.45);
    check_close(found.period_s, 0.5, 0.02);
}

/* Every other step is longer: the pair is the period, and its half is not. */
static void unequal_halves_are_no_period(void **state)
{
    struct wg_rng rng;

    (void)state;
    wg__rng_init(&rng, 9);
    signal.count = 1000;
    for (size_t i = 0; i < signal.count; i++) {
        const double phase = fmod(0.02 * (double)i, 1.0);
        const bool is_busy = phase < 0.45 || (phase >= 0.5 && phase < 0.7);

        signal.t_s[i] = 0.02 * (double)(i + 1);
        signal.value[i] = (is_busy ? 200 : 100) + wg__rng_normal(&rng);
    }
    const struct wg_period found = find(0.02, NAN);

    assert_true(found.confidence >= 0.9);
    check_close(found.period_s, 1.0, 0.01);
}

static void irregular_times_do_not_harm(void **state)
{
    const struct power_signal_shape shape = power_signal_usual(0.3, 0.02, 12);
    struct wg_rng rng;
    size_t kept = 0;

    (void)state;
    power_signal_make(&shape, 5, &signal);
    wg__rng_init(&rng, 4);
    for (size_t i = 0; i < signal.count; i++) { /* one of ten is lost, and all are read late */
        if (wg__rng_below(&rng, 10) == 0)
            continue;
        signal.t_s[kept] = signal.t_s[i] + 0.01 * wg__rng_uniform(&rng);
        signal.value[kept++] = signal.value[i];
    }
    signal.count = kept;
    const struct wg_period found = find(0.02, NAN);

    assert_true(found.confidence >= 0.9 && is_right(&found, 0.01));
    assert_true(found.error_s > 0 && found.error_s < 0.02 * found.period_s);
}

static void a_step_that_changes_its_length_is_not_sure(void **state)
{
    struct power_signal_shape shape = power_signal_usual(0.3, 0.02, 8);
    size_t count;

    (void)state;
    power_signal_make(&shape, 5, &signal);
    count = signal.count;
    for (size_t i = 0; i < count; i++) /* the second half at a third of the speed */
        if (i >= count / 2)
            signal.value[i] = signal.value[count / 2 + (i - count / 2) / 3];
    assert_true(find(0.02, NAN).confidence < 0.9);
}

static void nothing_that_stands_still_has_a_period(void **state)
{
    (void)state;
    for (size_t i = 0; i < 300; i++) {
        signal.t_s[i] = 0.1 * (double)i;
        signal.value[i] = 150;
    }
    signal.count = 300;
    const struct wg_period found = find(0.1, NAN);

    assert_true(isnan(found.period_s) && found.confidence == 0);
    signal.count = 20; /* too few bins to say anything */
    assert_true(isnan(find(0.1, NAN).period_s));
}

static void refuses_samples_that_are_none(void **state)
{
    struct wg_period_hint hint = {.update_s = 1, .expected_s = NAN};
    struct wg_period out;
    struct wg_error err;

    (void)state;
    for (size_t i = 0; i < 32; i++) {
        signal.t_s[i] = (double)i;
        signal.value[i] = 1;
    }
    assert_int_equal(wg__period_find(signal.t_s, signal.value, 15, &hint, &out, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "15 samples"));
    hint.update_s = 0;
    assert_int_equal(wg__period_find(signal.t_s, signal.value, 32, &hint, &out, &err), WG_EINVAL);
    hint.update_s = 1;
    hint.floor = NAN;
    assert_int_equal(wg__period_find(signal.t_s, signal.value, 32, &hint, &out, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "floor"));
    hint.floor = 0;
    signal.t_s[7] = 6;
    assert_int_equal(wg__period_find(signal.t_s, signal.value, 32, &hint, &out, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "do not rise"));
    signal.t_s[7] = 7;
    signal.value[3] = NAN;
    assert_int_equal(wg__period_find(signal.t_s, signal.value, 32, &hint, &out, &err), WG_EINVAL);
}

static void runs_out_of_memory_cleanly(void **state)
{
    const struct power_signal_shape shape = power_signal_usual(0.3, 0.02, 10);
    const struct wg_period_hint hint = {.update_s = 0.02, .expected_s = NAN};
    struct wg_period out;
    enum wg_code code = WG_ENOMEM;
    size_t nth = 0;

    (void)state;
    power_signal_make(&shape, 1, &signal);
    while (code != WG_OK) {
        assert_true(++nth < 10);
        wg__alloc_fail_from(nth);
        code = wg__period_find(signal.t_s, signal.value, signal.count, &hint, &out, NULL);
        wg__alloc_fail_from(0);
        assert_true(code == WG_OK || code == WG_ENOMEM);
    }
    assert_int_equal(nth, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_steps_of_a_training_job_to_a_per_cent),
        cmocka_unit_test(noise_of_any_colour_has_no_period),
        cmocka_unit_test(what_is_accepted_is_right),
        cmocka_unit_test(a_step_too_short_for_the_sensor_is_flagged),
        cmocka_unit_test(samples_rarer_than_the_updates_are_flagged),
        cmocka_unit_test(an_expected_period_vouches_for_an_ambiguous_one),
        cmocka_unit_test(an_idle_floor_rules_aliases_out),
        cmocka_unit_test(an_alias_above_an_idle_floor_is_flagged),
        cmocka_unit_test(what_repeats_only_after_several_periods_is_divided),
        cmocka_unit_test(what_is_expected_chooses_among_multiples),
        cmocka_unit_test(unequal_halves_are_no_period),
        cmocka_unit_test(irregular_times_do_not_harm),
        cmocka_unit_test(a_step_that_changes_its_length_is_not_sure),
        cmocka_unit_test(nothing_that_stands_still_has_a_period),
        cmocka_unit_test(refuses_samples_that_are_none),
        cmocka_unit_test(runs_out_of_memory_cleanly),
    };

    return run_tests(tests);
}
