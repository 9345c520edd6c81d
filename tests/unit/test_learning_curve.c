/* SPDX-License-Identifier: MIT
 *
 * Learning curves: what is kept of a run, forecasts worked by hand, and the errors that are learned
 * from runs whose forecasts are known.
 */
#include "optimize/learning_curve.h"

#include "support/check.h"

struct point {
    unsigned epoch;
    double metric;
};

/* The finished run that most tests compare with: 20 epochs to the target. */
static const struct point reference[] = {{2, 0.2}, {5, 0.4}, {8, 0.6}, {15, 0.8}, {20, 0.9}};
enum { REFERENCE_POINTS = sizeof reference / sizeof reference[0], REFERENCE_EPOCHS = 20 };

/* A curve with every epoch multiplied by `slower`; a negative `sign` turns the metric round. */
static struct wg_learning_curve make_curve(const struct point *points, size_t count,
                                           unsigned slower, int sign)
{
    struct wg_learning_curve curve = {0};
    for (size_t i = 0; i < count; i++)
        wg__learning_curve_tell(&curve, sign > 0, slower * points[i].epoch,
                                sign * points[i].metric);
    assert_int_equal(curve.count, count);
    return curve;
}

static void add_reference(struct wg_learning_curve_book *book, unsigned slower)
{
    const int sign = book->higher_is_better ? 1 : -1;
    const struct wg_learning_curve curve = make_curve(reference, REFERENCE_POINTS, slower, sign);
    wg__curve_book_add(book, &curve, slower * REFERENCE_EPOCHS);
}

static void keeps_only_improvements(void **state)
{
    (void)state;
    const struct point told[] = {{1, 0.3},         {2, 0.3},  {3, 0.2}, {4, 0.5},
                                 {5, (double)NAN}, {6, 0.45}, {7, 0.6}};
    struct wg_learning_curve up = {0}, down = {0};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        wg__learning_curve_tell(&up, true, told[i].epoch, told[i].metric);
        wg__learning_curve_tell(&down, false, told[i].epoch, told[i].metric);
    }
    assert_int_equal(up.count, 3);
    const unsigned rises[] = {1, 4, 7};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(up.points[i].epoch, rises[i]);
    check_close(up.points[2].metric, 0.6, 0);
    assert_int_equal(down.count, 2);
    assert_int_equal(down.points[1].epoch, 3);
    check_close(down.points[1].metric, 0.2, 0);
}

static void what_holds_before_the_first_epoch_is_not_kept(void **state)
{
    (void)state;
    struct wg_learning_curve curve = {0};
    wg__learning_curve_tell(&curve, true, 0, 0.5);
    assert_int_equal(curve.count, 0);
    wg__learning_curve_tell(&curve, true, 1, 0.1);
    assert_int_equal(curve.count, 1);
}

/* Epochs 1..32 are there when the 33rd comes: 31's neighbours, 30 and 32, are the nearest in
 * octaves. Then, with 30 and 32, 33, 34: 33 lies between 32 and 34, 1.0625 apart, and goes. */
static void a_full_curve_drops_its_most_crowded_point(void **state)
{
    (void)state;
    struct wg_learning_curve curve = {0};
    for (unsigned epoch = 1; epoch <= 33; epoch++)
        wg__learning_curve_tell(&curve, true, epoch, epoch);
    assert_int_equal(curve.count, WG_CURVE_POINTS_MAX);
    for (size_t i = 0; i < 30; i++)
        assert_int_equal(curve.points[i].epoch, i + 1);
    assert_int_equal(curve.points[30].epoch, 32);
    assert_int_equal(curve.points[31].epoch, 33);
    check_close(curve.points[30].metric, 32, 0);
}

static void any_length_of_run_stays_in_bounds_and_in_order(void **state)
{
    (void)state;
    struct wg_learning_curve curve = {0};
    for (unsigned epoch = 1; epoch <= 100000; epoch++) {
        wg__learning_curve_tell(&curve, false, epoch, -log(epoch));
        assert_in_range(curve.count, 1, WG_CURVE_POINTS_MAX);
        assert_int_equal(curve.points[curve.count - 1].epoch, epoch); /* the latest is there */
        assert_int_equal(curve.points[0].epoch, 1);                   /* and the beginning */
    }
    for (size_t i = 1; i < curve.count; i++) {
        assert_true(curve.points[i].epoch > curve.points[i - 1].epoch);
        assert_true(curve.points[i].metric < curve.points[i - 1].metric);
        /* 31 steps over 16.6 octaves; the first ones cannot be shorter than one epoch. */
        assert_true(curve.points[i].epoch <= 3 * curve.points[i - 1].epoch);
    }
}

static void an_empty_book_says_nothing(void **state)
{
    (void)state;
    struct wg_learning_curve_book book = {.higher_is_better = true};
    const struct wg_learning_curve running = make_curve(reference, 2, 1, 1), empty = {0};
    struct wg_curve_forecast forecast = {.log2_epochs = 42};
    assert_false(wg__curve_book_forecast(&book, &running, 5, &forecast));
    wg__curve_book_add(&book, &empty, 10); /* a run without a metric teaches nothing */
    assert_int_equal(book.count, 0);
    assert_false(wg__curve_book_forecast(&book, &running, 5, &forecast));
    check_close(forecast.log2_epochs, 42, 0); /* written on success only */
}

/* Against the reference run, 20 epochs long. */
static void forecasts_agree_with_the_arithmetic(void **state)
{
    (void)state;
    const struct {
        struct point reached[2];
        size_t count;
        unsigned done;
        double epochs; /* 0: no forecast */
        size_t stage;
    } cases[] = {
        {{{5, 0.4}}, 1, 5, 20, 1},             /* the same pace */
        {{{10, 0.4}}, 1, 10, 40, 1},           /* half the pace: an octave more */
        {{{5, 0.2}, {10, 0.4}}, 2, 10, 40, 1}, /* only the latest point counts */
        {{{10, 0.4}}, 1, 15, 40, 1},           /* 15 * 20 / 8 = 37.5 is less than 40 */
        {{{10, 0.4}}, 1, 18, 45, 1},           /* 0.6 should be there after 16: 18 * 20 / 8 */
        {{{10, 0.5}}, 1, 10, 25, 1},           /* between two points: the later, 10 * 20 / 8 */
        {{{4, 0.8}}, 1, 4, 4 * 20 / 15.0, 3},  /* much faster */
        {{{4, 0.1}}, 1, 4, 40, 0},             /* below all points: 0.2 took 2 */
        {{{9, 0.9}}, 1, 12, 9, 3},             /* at the end, and no later point to miss */
        {{{9, 0.95}}, 1, 12, 0, 0},            /* never seen */
        {{{0, 0}}, 0, 1, 0, 0},                /* nothing reached, but 0.2 needs 2 */
        {{{0, 0}}, 0, 2, 0, 0},
        {{{0, 0}}, 0, 4, 40, 0}, /* 0.2 is not there after twice as long */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            struct wg_learning_curve_book book = {.higher_is_better = sign > 0};
            add_reference(&book, 1);
            const struct wg_learning_curve curve =
                make_curve(cases[i].reached, cases[i].count, 1, sign);
            struct wg_curve_forecast forecast;
            const bool has = wg__curve_book_forecast(&book, &curve, cases[i].done, &forecast);
            assert_int_equal(has, cases[i].epochs > 0);
            if (!has)
                continue;
            check_close(forecast.log2_epochs, log2(cases[i].epochs), 1e-14);
            assert_int_equal(forecast.stage, cases[i].stage);
            assert_true(forecast.sd > 0);
        }
}

/* Three runs that all had 0.4 after 5 epochs, and then needed 20, 160 and 40 in all. */
static void the_median_forecast_counts(void **state)
{
    (void)state;
    struct wg_learning_curve_book book = {.higher_is_better = true};
    const unsigned totals[] = {20, 160, 40};
    const double expected[] = {20, 0, 40}; /* of two: between them, sqrt(20 * 160) */
    const struct wg_learning_curve half = make_curve(reference, 2, 1, 1);
    for (size_t i = 0; i < 3; i++) {
        wg__curve_book_add(&book, &half, totals[i]);
        struct wg_curve_forecast forecast;
        assert_true(wg__curve_book_forecast(&book, &half, 5, &forecast));
        check_close(forecast.log2_epochs,
                    expected[i] > 0 ? log2(expected[i]) : 0.5 * log2(20.0 * 160.0), 1e-14);
    }
}

/* Four runs of 20 epochs, then four of 80: between them. The ninth takes the place of the first. */
static void the_ninth_run_takes_the_place_of_the_first(void **state)
{
    (void)state;
    struct wg_learning_curve_book book = {.higher_is_better = true};
    const struct wg_learning_curve half = make_curve(reference, 2, 1, 1);
    struct wg_curve_forecast forecast;
    for (unsigned i = 0; i < WG_CURVES_MAX; i++)
        wg__curve_book_add(&book, &half, i < WG_CURVES_MAX / 2 ? 20 : 80);
    assert_true(wg__curve_book_forecast(&book, &half, 5, &forecast));
    check_close(forecast.log2_epochs, log2(40), 1e-14);
    wg__curve_book_add(&book, &half, 80);
    assert_int_equal(book.count, WG_CURVES_MAX);
    assert_true(wg__curve_book_forecast(&book, &half, 5, &forecast));
    check_close(forecast.log2_epochs, log2(80), 1e-14);
    for (unsigned i = 0; i < WG_CURVES_MAX; i++)
        wg__curve_book_add(&book, &half, 20);
    assert_true(wg__curve_book_forecast(&book, &half, 5, &forecast));
    check_close(forecast.log2_epochs, log2(20), 1e-14);
}

/* The spread of a forecast at the reference's 0.4, a quarter of the way. */
static double quarter_variance(const struct wg_learning_curve_book *book)
{
    static const struct point at_quarter[] = {{1, 1}};
    const struct wg_learning_curve curve = make_curve(at_quarter, 1, 1, 1);
    struct wg_curve_forecast forecast;
    assert_true(wg__curve_book_forecast(book, &curve, 1, &forecast));
    assert_int_equal(forecast.stage, 1);
    return forecast.sd * forecast.sd;
}

/* First 4 epochs, a value each. One twice as slow is forecast exactly. One that starts like the
 * first and then needs 16 is forecast to need 4, two octaves too few, at each of its points. With p
 * errors' worth of prior the variance goes s^2 -> p s^2 / (p + 1) -> (p s^2 + 2^2) / (p + 2); the
 * first step gives p, the second must follow. */
static void errors_of_forecasts_are_learned_by_share_of_the_way(void **state)
{
    (void)state;
    static const struct point even[] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}},
                              late[] = {{1, 1}, {2, 2}, {3, 3}, {16, 4}};
    struct wg_learning_curve_book book = {.higher_is_better = true};
    const struct wg_learning_curve first = make_curve(even, 4, 1, 1),
                                   second = make_curve(even, 4, 2, 1),
                                   third = make_curve(late, 4, 1, 1);
    wg__curve_book_add(&book, &first, 4);
    for (size_t stage = 0; stage < WG_CURVE_STAGES; stage++)
        assert_int_equal(book.error_count[stage], 0); /* nothing could have forecast it */
    const double before = quarter_variance(&book);

    wg__curve_book_add(&book, &second, 8);
    assert_int_equal(book.error_count[0], 0);
    for (size_t stage = 1; stage < WG_CURVE_STAGES; stage++) {
        assert_int_equal(book.error_count[stage], 1);
        check_close_abs(book.squared_error[stage], 0, 0, 1e-24);
    }
    const double exact = quarter_variance(&book);
    assert_true(exact < before);

    wg__curve_book_add(&book, &third, 16);
    for (size_t stage = 1; stage < WG_CURVE_STAGES; stage++) {
        assert_int_equal(book.error_count[stage], 2);
        check_close(book.squared_error[stage], 4, 1e-12);
    }
    const double prior_errors = exact / (before - exact);
    check_close(quarter_variance(&book), (prior_errors * before + 4) / (prior_errors + 2), 1e-12);
}

/* Later is surer, before anything has been learned. */
static void forecasts_begin_wide_and_narrow_along_the_way(void **state)
{
    (void)state;
    struct wg_learning_curve_book book = {.higher_is_better = true};
    add_reference(&book, 1);
    double last = (double)INFINITY;
    for (size_t points = 1; points <= REFERENCE_POINTS; points++) {
        const struct wg_learning_curve curve = make_curve(reference, points, 1, 1);
        struct wg_curve_forecast forecast;
        assert_true(wg__curve_book_forecast(&book, &curve, reference[points - 1].epoch, &forecast));
        check_close(forecast.log2_epochs, log2(REFERENCE_EPOCHS), 1e-14);
        assert_true(forecast.sd <= last);
        last = forecast.sd;
    }
}

/* 1000 epochs forecast by 2000, from any point of the way: a value between two kept points is taken
 * for the later, so the forecast is short by less than their distance. */
static void long_runs_are_forecast_through_thinned_curves(void **state)
{
    (void)state;
    struct wg_learning_curve_book book = {.higher_is_better = true};
    struct wg_learning_curve known = {0}, running = {0};
    for (unsigned epoch = 1; epoch <= 2000; epoch++)
        wg__learning_curve_tell(&known, true, epoch, epoch / 2000.0);
    wg__curve_book_add(&book, &known, 2000);
    double widest = 1;
    for (size_t i = 1; i < known.count; i++)
        widest = fmax(widest, (double)known.points[i].epoch / known.points[i - 1].epoch);
    assert_true(widest <= 2);
    for (unsigned epoch = 1; epoch <= 1000; epoch++) {
        wg__learning_curve_tell(&running, true, epoch, epoch / 1000.0);
        struct wg_curve_forecast forecast;
        assert_true(wg__curve_book_forecast(&book, &running, epoch, &forecast));
        assert_true(forecast.log2_epochs <= log2(1000) + 1e-9);
        assert_true(forecast.log2_epochs >= log2(1000) - log2(widest));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_only_improvements),
        cmocka_unit_test(what_holds_before_the_first_epoch_is_not_kept),
        cmocka_unit_test(a_full_curve_drops_its_most_crowded_point),
        cmocka_unit_test(any_length_of_run_stays_in_bounds_and_in_order),
        cmocka_unit_test(an_empty_book_says_nothing),
        cmocka_unit_test(forecasts_agree_with_the_arithmetic),
        cmocka_unit_test(the_median_forecast_counts),
        cmocka_unit_test(the_ninth_run_takes_the_place_of_the_first),
        cmocka_unit_test(errors_of_forecasts_are_learned_by_share_of_the_way),
        cmocka_unit_test(forecasts_begin_wide_and_narrow_along_the_way),
        cmocka_unit_test(long_runs_are_forecast_through_thinned_curves),
    };
    return run_tests(tests);
}
