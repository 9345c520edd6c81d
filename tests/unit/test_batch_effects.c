/* SPDX-License-Identifier: MIT
 *
 * Effects of batch sizes against solving for line and effects together, and their curves against
 * the min-max formula of isotonic regression.
 */
#include "schedule/batch_effects.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "math/normal.h"
#include "support/check.h"

enum { LINE = 3, SIZES = 6, UNKNOWNS = LINE + SIZES };

/* The line's and the effects' normal equations as one matrix. */
struct whole {
    double a[UNKNOWNS][UNKNOWNS + 1];
};

static void add_row(struct whole *whole, const double *row, double target)
{
    for (size_t i = 0; i < UNKNOWNS; i++) {
        whole->a[i][UNKNOWNS] += row[i] * target;
        for (size_t k = 0; k < UNKNOWNS; k++)
            whole->a[i][k] += row[i] * row[k];
    }
}

static void solve_whole(struct whole *whole, double *x)
{
    for (size_t i = 0; i < UNKNOWNS; i++) {
        for (size_t r = 0; r < UNKNOWNS; r++) {
            const double factor = r == i ? 0.0 : whole->a[r][i] / whole->a[i][i];
            for (size_t k = i; k <= UNKNOWNS; k++)
                whole->a[r][k] -= factor * whole->a[i][k];
        }
    }
    for (size_t i = 0; i < UNKNOWNS; i++)
        x[i] = whole->a[i][UNKNOWNS] / whole->a[i][i];
}

/* A hundred samples of a line of three positive parts with effects, into both forms. */
static void draw_samples(struct wg_batch_effects *effects, struct wg_nnls *line,
                         struct whole *whole, double shrink, struct wg_rng *rng)
{
    for (size_t i = 0; i < 100; i++) {
        double row[UNKNOWNS] = {0};
        const size_t size = wg__rng_below(rng, SIZES);
        double target = 0.05 * wg__rng_normal(rng) + 0.2 * (double)(size % 2);
        for (size_t k = 0; k < LINE; k++) {
            row[k] = 0.2 + wg__rng_uniform(rng);
            target += row[k];
        }
        row[LINE + size] = 0.5 + 0.5 * wg__rng_uniform(rng);
        add_row(whole, row, target);
        struct wg_effect *effect = wg__batch_effects_find(effects, 1.0 + (double)size);
        assert_non_null(effect);
        effect->first = 0.01 * (double)size;
        effect->weight += row[LINE + size] * row[LINE + size];
        effect->target_sum += row[LINE + size] * target;
        for (size_t k = 0; k < LINE; k++) {
            effect->row_sum[k] += row[LINE + size] * row[k];
            line->moment[k] += row[k] * target;
            for (size_t c = 0; c <= k; c++)
                line->gram[k][c] += row[k] * row[c];
        }
    }
    for (size_t size = 0; size < SIZES; size++) {
        whole->a[LINE + size][LINE + size] += shrink;
        whole->a[LINE + size][UNKNOWNS] += shrink * 0.01 * (double)size;
    }
}

static void line_and_effects_are_those_of_the_whole_problem(void **state)
{
    (void)state;
    static struct wg_batch_effects effects;
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    for (size_t run = 0; run < 200; run++) {
        const double shrink = exp(wg__rng_normal(&rng));
        struct whole whole = {0};
        struct wg_nnls line = {.count = LINE};
        double x[UNKNOWNS];
        wg__batch_effects_init(&effects);
        draw_samples(&effects, &line, &whole, shrink, &rng);
        solve_whole(&whole, x);
        wg__batch_effects_reduce(&effects, shrink, &line);
        assert_true(wg__nnls_solve(&line));
        wg__batch_effects_solve(&effects, shrink, line.x);
        assert_int_equal(effects.count, SIZES);
        for (size_t i = 0; i < LINE; i++)
            check_close(line.x[i], x[i], 1e-9);
        for (size_t i = 0; i < SIZES; i++)
            check_close_abs(effects.sizes[i].effect, x[LINE + i], 0.0, 1e-9);
    }
}

static void without_data_an_effect_is_the_first_one(void **state)
{
    (void)state;
    static struct wg_batch_effects effects;
    wg__batch_effects_init(&effects);
    struct wg_effect *size = wg__batch_effects_find(&effects, 3.0);
    assert_non_null(size);
    *size = (struct wg_effect){
        .rows = 3.0, .row_sum = {2.0}, .weight = 2.0, .target_sum = 4.0, .first = 0.25};
    const double x[WG_NNLS_MAX] = {1.0};
    wg__batch_effects_solve(&effects, 0.5, x);
    check_close(size->effect, (4.0 - 2.0 + 0.5 * 0.25) / 2.5, 1e-15);
    wg__batch_effects_scale(&effects, 1e-6); /* forgotten */
    wg__batch_effects_solve(&effects, 0.5, x);
    check_close(size->effect, 0.25, 1e-4);
    wg__batch_effects_scale(&effects, 1e-120);
    assert_true(size->weight == 0.0 && size->target_sum == 0.0 && size->row_sum[0] == 0.0);
    wg__batch_effects_solve(&effects, 0.5, x);
    assert_true(size->effect == 0.25);
}

static void every_size_has_its_place(void **state)
{
    (void)state;
    static struct wg_batch_effects effects;
    wg__batch_effects_init(&effects);
    assert_null(wg__batch_effects_find(&effects, 0.0));
    assert_null(wg__batch_effects_find(&effects, -1.0));
    assert_null(wg__batch_effects_find(&effects, 1025.0));
    assert_null(wg__batch_effects_find(&effects, (double)NAN));
    for (unsigned i = 0; i < 1024; i++) {
        const double rows = 1.0 + i * 389 % 1024; /* in no order */
        const struct wg_effect *size = wg__batch_effects_find(&effects, rows);
        assert_non_null(size);
        assert_true(rows <= 64.0 ? size->rows == rows
                                 : size->rows >= rows && size->rows <= rows * 1.0625);
    }
    assert_int_equal(effects.count, WG_EFFECT_SIZES_MAX);
    for (size_t i = 1; i < effects.count; i++)
        assert_true(effects.sizes[i].rows > effects.sizes[i - 1].rows);
    for (size_t rows = 0, upto = 0; rows <= WG_EFFECT_ROWS_MAX; rows++) {
        while (upto < effects.count && effects.sizes[upto].rows <= (double)rows)
            upto++;
        assert_int_equal(effects.upto[rows], upto);
    }
    assert_ptr_equal(wg__batch_effects_find(&effects, 2.4), &effects.sizes[1]);
    assert_ptr_equal(wg__batch_effects_find(&effects, 0.1), &effects.sizes[0]);
}

/* The i-th value of isotonic regression: max over a <= i of min over b >= i of the mean of a..b. */
static double min_max(const double *values, const double *weights, size_t count, size_t i)
{
    double most = -HUGE_VAL;
    for (size_t a = 0; a <= i; a++) {
        double least = HUGE_VAL;
        double sum = 0.0, weight = 0.0;
        for (size_t b = a; b < count; b++) {
            sum += weights[b] * values[b];
            weight += weights[b];
            if (b >= i)
                least = fmin(least, sum / weight);
        }
        most = fmax(most, least);
    }
    return most;
}

static void curves_are_the_nearest_that_never_fall(void **state)
{
    (void)state;
    enum { COUNT = 12 };
    static struct wg_batch_effects effects;
    static const double lines[][2] = {{1.0, 0.1}, {0.0, 1.0}, {2.0, 0.0}, {5.0, 1e-14}, {0.1, 2.0}};
    struct wg_rng rng;
    wg__rng_init(&rng, 2);
    for (size_t run = 0; run < 1000; run++) {
        const double fixed = lines[run % 5][0], per_row = lines[run % 5][1];
        double times[COUNT], weights[COUNT], last_alpha = 0.0, last_rows = 0.0;
        wg__batch_effects_init(&effects);
        for (size_t i = 0; i < COUNT; i++) {
            struct wg_effect *size = wg__batch_effects_find(&effects, 1.0 + 2.0 * (double)i);
            assert_non_null(size);
            size->effect = fmax(-1.0, 0.5 * wg__rng_normal(&rng));
            size->weight = wg__rng_uniform(&rng);
            times[i] = (fixed + per_row * size->rows) * (1.0 + size->effect);
            weights[i] = size->weight + 0.1;
        }
        wg__batch_effects_shape(&effects, 0.1, fixed, per_row);
        for (size_t i = 0; i < COUNT; i++) {
            double alpha = 0.0, rows = 0.0;
            wg__batch_effects_at(&effects, 1.0 + 2.0 * (double)i, &alpha, &rows);
            check_close_abs(alpha * fixed + rows * per_row, min_max(times, weights, COUNT, i),
                            1e-12, 1e-12);
            assert_true(alpha >= last_alpha && rows >= last_rows);
            last_alpha = alpha;
            last_rows = rows;
        }
    }
}

static void between_sizes_and_beyond_them_curves_go_on(void **state)
{
    (void)state;
    static struct wg_batch_effects effects;
    double alpha = 0.0, rows = 0.0;
    wg__batch_effects_init(&effects);
    wg__batch_effects_at(&effects, 7.0, &alpha, &rows); /* nothing is known: the line */
    assert_true(alpha == 1.0 && rows == 7.0);
    assert_non_null(wg__batch_effects_find(&effects, 2.0));
    assert_non_null(wg__batch_effects_find(&effects, 6.0));
    effects.sizes[0].effect = 0.5; /* 2 rows cost as 3, 6 as 6 */
    wg__batch_effects_shape(&effects, 1.0, 0.0, 1.0);
    static const double expected[][2] = {{0.0, 1.0}, {1.0, 2.0}, {2.0, 3.0}, {3.0, 3.75},
                                         {6.0, 6.0}, {9.0, 9.0}, {1e6, 1e6}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        wg__batch_effects_at(&effects, expected[i][0], &alpha, &rows);
        check_close(rows, expected[i][1], 1e-12);
        assert_true(alpha == 1.0);
    }
}

/* Only large batches were seen, and they cost less than the line says: a row still costs its share,
 * and whatever was seen, no batch takes no time. */
static void no_batch_costs_nothing(void **state)
{
    (void)state;
    static struct wg_batch_effects effects;
    double alpha = 0.0, rows = 0.0;
    wg__batch_effects_init(&effects);
    struct wg_effect *size = wg__batch_effects_find(&effects, 30.0);
    assert_non_null(size);
    size->effect = -0.1;
    wg__batch_effects_shape(&effects, 1.0, 0.0, 1.0);
    for (unsigned b = 1; b <= 30; b++) {
        wg__batch_effects_at(&effects, b, &alpha, &rows);
        check_close(rows, 0.9 * b, 1e-12);
    }
    const double line[WG_NNLS_MAX] = {1.0};
    size->weight = 1.0;
    size->row_sum[0] = 1.0;
    size->target_sum = -5.0;
    wg__batch_effects_solve(&effects, 1e-9, line);
    assert_true(size->effect > -1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_and_effects_are_those_of_the_whole_problem),
        cmocka_unit_test(without_data_an_effect_is_the_first_one),
        cmocka_unit_test(every_size_has_its_place),
        cmocka_unit_test(curves_are_the_nearest_that_never_fall),
        cmocka_unit_test(between_sizes_and_beyond_them_curves_go_on),
        cmocka_unit_test(no_batch_costs_nothing),
    };
    return run_tests(tests);
}
