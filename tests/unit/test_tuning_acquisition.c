/* SPDX-License-Identifier: MIT
 *
 * The logarithms of the acquisition against 60-digit values:
 *
 *     python3: from mpmath import *; mp.dps = 60; P = lambda z: erfc(-z / sqrt(2)) / 2
 *     nstr(log(P(z)), 17), nstr(log(z * P(z) + npdf(z)), 17)
 */
#include "support/check.h"

#include "optimize/tuning_policy.h"

static void logarithms_are_exact_in_the_far_tails(void **state)
{
    static const struct {
        double z, log_cdf, log_improvement;
    } cases[] = {
        {-1.0e+6, -500000000014.73445, -500000000028.54996},
        {-100.0, -5005.5242086942051, -5010.1295788002498},
        {-38.0, -726.55721601882013, -730.19618340211374},
        {-30.5, -469.46273732291211, -472.88260479123593},
        {-29.5, -439.42947460915023, -442.81615258435892},
        {-25.5, -329.28414898717953, -332.52588446220498},
        {-24.5, -304.24427074096371, -307.44625385773019},
        {-10.0, -53.231285150512471, -55.553122036122356},
        {-6.0, -20.736768949974706, -22.578879392169797},
        {-5.0, -15.064998393988726, -16.74430116266099},
        {-1.0, -1.8410216450092635, -2.4851210257126413},
        {-0.1, -0.77615459273027333, -1.047153314072846},
        {0.0, -0.69314718055994531, -0.91893853320467274},
        {0.5, -0.36894641528865639, -0.35982768374506382},
        {3.0, -0.0013508099647481938, 1.0987396653277078},
        {8.0, -6.2209605742717861e-16, 2.0794415416798359},
        {20.0, 0.0, 2.995732273553991},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_close_abs(wg__log_normal_cdf(cases[i].z), cases[i].log_cdf, 1e-13, 1e-80);
        check_close(wg__log_expected_improvement(cases[i].z), cases[i].log_improvement, 1e-13);
    }
}

/* Where the series take over nothing may jump, or a far configuration could overtake a near one. */
static void both_rise_through_their_seams(void **state)
{
    double cdf = -(double)INFINITY, improvement = -(double)INFINITY;

    (void)state;
    for (int i = -40000; i <= 8000; i++) {
        const double z = i / 1000.0;

        assert_true(wg__log_normal_cdf(z) > cdf);
        assert_true(wg__log_expected_improvement(z) > improvement);
        cdf = wg__log_normal_cdf(z);
        improvement = wg__log_expected_improvement(z);
    }
}

static void a_switch_weighs_its_time_less_towards_the_end(void **state)
{
    static const double levels[] = {1, 2};
    const struct wg_tuning_knob knob = {"engine", WG_TUNING_BATCH, levels, NULL, 2, 0, 90};
    struct wg_tuning_space *space = NULL;

    (void)state;
    assert_int_equal(wg__tuning_space_box(&space, &knob, 1, NULL, NULL, NULL), WG_OK);
    struct wg_tuning_view view = {.space = space, .present = 0, .trial_s = 10, .budget_left = 1};
    check_close(wg__tuning_switch_penalty(&view, 1), log(10), 1e-15); /* 100 s for 10 s */
    check_close_abs(wg__tuning_switch_penalty(&view, 0), 0, 0, 0);
    view.budget_left = 0.25;
    check_close(wg__tuning_switch_penalty(&view, 1), log(10) / 4, 1e-15);
    view.present = 2; /* unknown */
    check_close_abs(wg__tuning_switch_penalty(&view, 1), 0, 0, 0);
    view.present = 0;
    view.trial_s = 0;
    check_close_abs(wg__tuning_switch_penalty(&view, 1), 0, 0, 0);
    wg__tuning_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithms_are_exact_in_the_far_tails),
        cmocka_unit_test(both_rise_through_their_seams),
        cmocka_unit_test(a_switch_weighs_its_time_less_towards_the_end),
    };
    return run_tests(tests);
}
