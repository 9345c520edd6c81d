/* SPDX-License-Identifier: MIT
 *
 * The change detector: CUSUM sums worked by hand, and how often it cries on streams whose answer is
 * known. Rates are compared with the average run lengths of a two-sided CUSUM (Page, 1954), from
 * the Markov chain of Brook and Evans (1972) that `average_run_length` solves.
 */
#include "optimize/change_detector.h"

#include "math/normal.h"
#include "optimize/governor_constants.h"
#include "support/check.h"

static struct wg_change_detector make_detector(double allowance, double threshold)
{
    struct wg_change_detector detector = {.up = 99, .down = 99};
    wg__change_detector_init(&detector, allowance, threshold);
    return detector;
}

static void starts_with_empty_sums(void **state)
{
    (void)state;
    const struct wg_change_detector detector = make_detector(0.75, 3.5);
    check_close(detector.allowance, 0.75, 0);
    check_close(detector.threshold, 3.5, 0);
    check_close_abs(detector.up, 0, 0, 0);
    check_close_abs(detector.down, 0, 0, 0);
}

/* Allowance 0.5, threshold 4; every number is a sum of eighths, so the sums are exact. */
static void sums_grow_by_what_exceeds_the_allowance_and_never_below_nothing(void **state)
{
    (void)state;
    const struct {
        double residual, up, down;
        bool is_alarm;
    } steps[] = {
        {1.0, 0.5, 0, false},    {2.0, 2.0, 0, false},  {0.5, 2.0, 0, false},
        {-0.25, 1.25, 0, false}, {-1.0, 0, 0.5, false}, /* up would be -0.25 */
        {-2.5, 0, 2.5, false},   {0.0, 0, 2.0, false},  {-2.5, 0, 4.0, false}, /* at, not above */
        {-0.625, 0, 0, true}, /* 4.125: the alarm, and both begin again */
        {2.0, 1.5, 0, false},    {3.0, 4.0, 0, false},  {1.0, 0, 0, true},
    };
    struct wg_change_detector detector = make_detector(0.5, 4);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_int_equal(wg__change_detector_tell(&detector, steps[i].residual), steps[i].is_alarm);
        check_close_abs(detector.up, steps[i].up, 0, 0);
        check_close_abs(detector.down, steps[i].down, 0, 0);
    }
}

static void an_outlier_counts_for_three_and_raises_no_alarm_alone(void **state)
{
    (void)state;
    const double outliers[] = {3.0001, 50, 1e300, (double)INFINITY};
    for (size_t i = 0; i < sizeof outliers / sizeof outliers[0]; i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            struct wg_change_detector detector = make_detector(0.75, 3.5);
            assert_false(wg__change_detector_tell(&detector, sign * outliers[i]));
            check_close(sign > 0 ? detector.up : detector.down, 2.25, 0);
            assert_true(
                wg__change_detector_tell(&detector, sign * outliers[i])); /* the second does */
        }
}

static void a_residual_that_is_no_number_is_ignored(void **state)
{
    (void)state;
    struct wg_change_detector detector = make_detector(0.5, 4);
    assert_false(wg__change_detector_tell(&detector, 2.0));
    assert_false(wg__change_detector_tell(&detector, (double)NAN));
    check_close(detector.up, 1.5, 0);
    check_close_abs(detector.down, 0, 0, 0);
}

/* With the policy's constants: a shift by `shift` standard deviations without noise is noticed
 * after the first n with n (min(shift, 3) - allowance) > threshold. */
static void a_steady_shift_is_noticed_after_the_runs_that_arithmetic_says(void **state)
{
    (void)state;
    const struct wg_governor_constants *c = &wg__governor_constants;
    const double shifts[] = {1, 1.5, 2, 3, 10};
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++) {
        const double step = fmin(shifts[i], 3) - c->drift_allowance;
        if (step <= 0)
            continue;
        const unsigned needed = (unsigned)floor(c->drift_threshold / step) + 1;
        struct wg_change_detector detector = make_detector(c->drift_allowance, c->drift_threshold);
        for (unsigned n = 1; n < needed; n++)
            assert_false(wg__change_detector_tell(&detector, -shifts[i]));
        assert_true(wg__change_detector_tell(&detector, -shifts[i]));
    }
}

enum { CELLS = 160 };

static double clipped_cdf(double residual, double mean)
{
    return residual >= 3 ? 1 : residual < -3 ? 0 : wg__normal_cdf(residual - mean);
}

/* Mean number of residuals N(mean, 1) until the one-sided sum exceeds the threshold. The sum's
 * range is cut into cells, and (I - Q) L = 1 is solved by elimination. */
static double one_sided_run_length(double allowance, double threshold, double mean)
{
    static double row[CELLS][CELLS + 1];
    const double width = threshold / ((double)CELLS - 0.5); /* the first cell is the half at 0 */
    for (int from = 0; from < CELLS; from++) {
        row[from][CELLS] = 1;
        for (int to = 0; to < CELLS; to++) {
            const double high = (to - from + 0.5) * width + allowance;
            const double below = to == 0 ? 0 : clipped_cdf(high - width, mean);
            row[from][to] = (from == to) - (clipped_cdf(high, mean) - below);
        }
    }
    for (int pivot = CELLS - 1; pivot > 0; pivot--) /* upwards: the answer is that of cell 0 */
        for (int from = 0; from < pivot; from++) {
            const double factor = row[from][pivot] / row[pivot][pivot];
            for (int to = 0; to < pivot; to++)
                row[from][to] -= factor * row[pivot][to];
            row[from][CELLS] -= factor * row[pivot][CELLS];
        }
    return row[0][CELLS] / row[0][0];
}

/* Alarms among `count` residuals N(mean, 1). */
static unsigned count_alarms(uint64_t seed, unsigned count, double mean)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    struct wg_change_detector detector = make_detector(c->drift_allowance, c->drift_threshold);
    struct wg_rng rng;
    wg__rng_init(&rng, seed);
    unsigned alarms = 0;
    for (unsigned i = 0; i < count; i++)
        alarms += wg__change_detector_tell(&detector, mean + wg__rng_normal(&rng));
    return alarms;
}

/* Both sums start again at an alarm, so alarms are a renewal process: about count / L of them,
 * with a spread near its square root. The two sides together have 1/L = 1/L+ + 1/L-. */
static void alarms_come_as_often_as_the_run_length_says(void **state)
{
    (void)state;
    const struct wg_governor_constants *c = &wg__governor_constants;
    const double means[] = {0, 0.5, -0.5, -1};
    for (size_t i = 0; i < sizeof means / sizeof means[0]; i++) {
        const unsigned count = 200000;
        const double rate =
            1 / one_sided_run_length(c->drift_allowance, c->drift_threshold, means[i]) +
            1 / one_sided_run_length(c->drift_allowance, c->drift_threshold, -means[i]);
        const double expected = count * rate;
        check_close_abs((double)count_alarms(7 + i, count, means[i]), expected, 0.02,
                        4 * sqrt(expected));
    }
}

/* The policy looks at a hundred runs or so: without a change it must rarely cry. */
static void an_unshifted_stream_of_a_hundred_rarely_alarms(void **state)
{
    (void)state;
    unsigned quiet = 0, noticed = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        quiet += count_alarms(seed, 100, 0) == 0;
        noticed += count_alarms(seed, 6, 2.5) > 0;
    }
    assert_true(quiet >= 500);

    assert_true(noticed >= 970);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_with_empty_sums),
        cmocka_unit_test(sums_grow_by_what_exceeds_the_allowance_and_never_below_nothing),
        cmocka_unit_test(an_outlier_counts_for_three_and_raises_no_alarm_alone),
        cmocka_unit_test(a_residual_that_is_no_number_is_ignored),
        cmocka_unit_test(a_steady_shift_is_noticed_after_the_runs_that_arithmetic_says),
        cmocka_unit_test(alarms_come_as_often_as_the_run_length_says),
        cmocka_unit_test(an_unshifted_stream_of_a_hundred_rarely_alarms),
    };
    return run_tests(tests);
}
