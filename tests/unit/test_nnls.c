/* SPDX-License-Identifier: MIT
 *
 * Non-negative least squares against scipy (nnls_oracle.py), against trying every set, and by the
 * conditions that an optimum meets.
 */
#include "math/nnls.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "math/normal.h"
#include "support/check.h"
#include "unit/nnls_golden.h"

static void agrees_with_scipy(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof golden_nnls / sizeof *golden_nnls; i++) {
        struct wg_nnls problem = {.count = golden_nnls[i].count};
        memcpy(problem.gram, golden_nnls[i].gram, sizeof problem.gram);
        memcpy(problem.moment, golden_nnls[i].moment, sizeof problem.moment);
        assert_true(wg__nnls_solve(&problem));
        for (size_t k = 0; k < problem.count; k++) {
            check_close(problem.x[k], golden_nnls[i].x[k], 1e-9);
            assert_int_equal(problem.positive >> k & 1U, golden_nnls[i].x[k] > 0.0);
        }
    }
}

/* Normal equations of `rows` samples; `likeness` near 1 makes the unknowns nearly the same. */
static struct wg_nnls draw(struct wg_rng *rng, size_t count, size_t rows, double likeness)
{
    struct wg_nnls problem = {.count = count};
    double scales[WG_NNLS_MAX];
    for (size_t i = 0; i < count; i++)
        scales[i] = exp(3.0 * wg__rng_normal(rng));
    for (size_t row = 0; row < rows; row++) {
        double a[WG_NNLS_MAX];
        const double common = wg__rng_normal(rng);
        const double b = wg__rng_normal(rng);
        for (size_t i = 0; i < count; i++) {
            const double own = wg__rng_normal(rng);
            a[i] = scales[i] * (likeness * common + (1.0 - likeness) * own);
        }
        for (size_t i = 0; i < count; i++) {
            problem.moment[i] += a[i] * (b + a[i] / scales[i]);
            for (size_t k = 0; k < count; k++)
                problem.gram[i][k] += a[i] * a[k];
        }
    }
    return problem;
}

/* The slope w = h - Gx: zero where x is positive, not positive where x is zero. */
static void expect_optimum(const struct wg_nnls *problem)
{
    for (size_t i = 0; i < problem->count; i++) {
        double slope = problem->moment[i];
        double size = fabs(slope);
        for (size_t k = 0; k < problem->count; k++) {
            slope -= problem->gram[i][k] * problem->x[k];
            size += fabs(problem->gram[i][k] * problem->x[k]);
        }
        const bool is_positive = (problem->positive >> i & 1U) != 0;
        assert_true(is_positive ? problem->x[i] > 0.0 : problem->x[i] == 0.0);
        if (is_positive)
            slope = fabs(slope);
        if (!(slope <= 1e-12 * size))
            fail_msg("unknown %zu of %zu has the slope %g of %g", i, problem->count, slope, size);
    }
}

static void every_answer_is_an_optimum(void **state)
{
    (void)state;
    enum { PROBLEMS = 20000 };
    static const double likenesses[] = {0.0, 0.5, 0.9, 0.999, 0.99999};
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    size_t solved = 0, sets_seen = 0;
    for (size_t i = 0; i < PROBLEMS; i++) {
        const size_t count = 1 + wg__rng_below(&rng, WG_NNLS_MAX);
        struct wg_nnls problem =
            draw(&rng, count, count + wg__rng_below(&rng, 20), likenesses[wg__rng_below(&rng, 5)]);
        if (!wg__nnls_solve(&problem))
            continue;
        solved++;
        sets_seen |= (size_t)1 << problem.positive % 32;
        expect_optimum(&problem);
        /* Warm, from itself and from any other set, it is the same. */
        struct wg_nnls again = problem;
        assert_true(wg__nnls_solve(&again));
        expect_optimum(&again);
        again.positive = wg__rng_u32(&rng);
        for (size_t k = 0; k < count; k++)
            again.x[k] = wg__rng_normal(&rng) / sqrt(again.gram[k][k]);
        assert_true(wg__nnls_solve(&again));
        expect_optimum(&again);
    }
    assert_true(solved > PROBLEMS * 9 / 10);
    assert_int_equal(sets_seen, 0xFFFFFFFF);
}

/* Gauss on a subset; false when it's not solvable. */
static bool solve_subset(const struct wg_nnls *problem, unsigned set, double *x)
{
    double a[WG_NNLS_MAX][WG_NNLS_MAX + 1];
    size_t index[WG_NNLS_MAX], n = 0;
    for (size_t i = 0; i < problem->count; i++) {
        x[i] = 0.0;
        if ((set >> i & 1U) != 0)
            index[n++] = i;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++)
            a[i][k] = problem->gram[index[i]][index[k]];
        a[i][n] = problem->moment[index[i]];
    }
    for (size_t i = 0; i < n; i++) {
        if (a[i][i] <= 0.0)
            return false;
        for (size_t r = 0; r < n; r++) {
            const double factor = r == i ? 0.0 : a[r][i] / a[i][i];
            for (size_t k = i; k <= n; k++)
                a[r][k] -= factor * a[i][k];
        }
    }
    for (size_t i = 0; i < n; i++)
        x[index[i]] = a[i][n] / a[i][i];
    return true;
}

static double objective(const struct wg_nnls *problem, const double *x)
{
    double value = 0.0;
    for (size_t i = 0; i < problem->count; i++) {
        double product = 0.0;
        for (size_t k = 0; k < problem->count; k++)
            product += problem->gram[i][k] * x[k];
        value += x[i] * (0.5 * product - problem->moment[i]);
    }
    return value;
}

static void trying_every_set_finds_nothing_better(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 2);
    for (size_t i = 0; i < 2000; i++) {
        const size_t count = 1 + wg__rng_below(&rng, 5);
        struct wg_nnls problem = draw(&rng, count, count + 2, 0.3 * wg__rng_below(&rng, 3));
        if (!wg__nnls_solve(&problem))
            continue;
        double least = 0.0; /* of the empty set */
        for (unsigned set = 1; set < 1U << count; set++) {
            double x[WG_NNLS_MAX] = {0};
            bool is_feasible = solve_subset(&problem, set, x);
            for (size_t k = 0; k < count; k++)
                is_feasible = is_feasible && x[k] >= 0.0;
            if (is_feasible)
                least = fmin(least, objective(&problem, x));
        }
        check_close(objective(&problem, problem.x), least, 1e-8);
    }
}

static void without_a_positive_definite_matrix_x_is_left_alone(void **state)
{
    (void)state;
    static const struct wg_nnls bad[] = {
        {.count = 2, .gram = {{1, 1}, {1, 1}}, .moment = {1, 1}, .x = {3, 4}},
        {.count = 2, .gram = {{1, 0}, {0, 0}}, .moment = {1, 1}, .x = {3, 4}},
        {.count = 2, .gram = {{1, 2}, {2, 1}}, .moment = {1, 1}, .x = {3, 4}},
        {.count = 2, .gram = {{-1, 0}, {0, 1}}, .moment = {1, 1}, .x = {3, 4}},
        {.count = 2, .gram = {{(double)NAN, 0}, {0, 1}}, .moment = {1, 1}, .x = {3, 4}},
        {.count = 2, .gram = {{(double)INFINITY, 0}, {0, 1}}, .moment = {1, 1}, .x = {3, 4}},
        {.count = 2, .gram = {{1, 0}, {0, 1}}, .moment = {1, (double)NAN}, .x = {3, 4}},
        {.count = 2, .gram = {{1, 0}, {0, 1}}, .moment = {-(double)INFINITY, 1}, .x = {3, 4}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wg_nnls problem = bad[i];
        problem.positive = 2;
        assert_false(wg__nnls_solve(&problem));
        assert_true(problem.x[0] == 3 && problem.x[1] == 4 && problem.positive == 2);
    }
}

static void units_may_differ_by_any_factor(void **state)
{
    (void)state;
    /* x = {2e150, 3e-150}: the Gram matrix holds 1e-300 and 1e300. */
    struct wg_nnls problem = {
        .count = 2, .gram = {{1e-300, 0.5}, {0.5, 1e300}}, .moment = {3.5e-150, 4e150}};
    assert_true(wg__nnls_solve(&problem));
    check_close(problem.x[0], 2e150, 1e-12);
    check_close(problem.x[1], 3e-150, 1e-12);
}

static void nothing_to_gain_gives_zero(void **state)
{
    (void)state;
    struct wg_nnls problem = {.count = 3,
                              .gram = {{2, 1, 0}, {1, 2, 0}, {0, 0, 1}},
                              .moment = {-1, 0, -2},
                              .positive = 7,
                              .x = {1, (double)NAN, (double)INFINITY}};
    assert_true(wg__nnls_solve(&problem));
    assert_int_equal(problem.positive, 0);
    assert_true(problem.x[0] == 0 && problem.x[1] == 0 && problem.x[2] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_scipy),
        cmocka_unit_test(every_answer_is_an_optimum),
        cmocka_unit_test(trying_every_set_finds_nothing_better),
        cmocka_unit_test(without_a_positive_definite_matrix_x_is_left_alone),
        cmocka_unit_test(units_may_differ_by_any_factor),
        cmocka_unit_test(nothing_to_gain_gives_zero),
    };
    return run_tests(tests);
}
