/* SPDX-License-Identifier: MIT
 *
 * Ranges, ticks and labels of axes: hand-worked cases, then properties over random ranges.
 */
#include "cli/plot_axis.h"

#include <string.h>

#include "base/rng.h"
#include "support/check.h"

static const struct wg_plot_axis plain = {.title = "x"};

/* The labels, joined by blanks. */
static const char *labels_of(const struct wg_plot_axis *axis, double min, double max,
                             unsigned wanted, bool is_snug)
{
    static char text[1024];
    struct wg_ticks ticks;
    wg__ticks_choose(&ticks, axis, min, max, wanted, is_snug);
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < ticks.count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i > 0 ? " " : "",
                                   ticks.labels[i]);
    return text;
}

static void chooses_round_numbers(void **state)
{
    (void)state;
    assert_string_equal(labels_of(&plain, 0, 100, 5, false), "0 20 40 60 80 100");
    assert_string_equal(labels_of(&plain, 0.03, 0.29, 3, false), "0 0.1 0.2 0.3");
    assert_string_equal(labels_of(&plain, 1, 100, 5, true), "20 40 60 80 100");
    assert_string_equal(labels_of(&plain, -3, 7, 3, false), "−5 0 5 10");
    assert_string_equal(labels_of(&plain, 0, 30000, 3, false), "0 10k 20k 30k");
    assert_string_equal(labels_of(&plain, 0, 2.5e6, 3, false), "0 1M 2M 3M");
    assert_string_equal(labels_of(&plain, 0, 1500e6, 3, false), "0 0.5G 1.0G 1.5G");
    assert_string_equal(labels_of(&plain, 0, 9000, 3, false), "0 5k 10k");
    assert_string_equal(labels_of(&plain, 0, 6000, 3, false), "0 2000 4000 6000");
    assert_string_equal(labels_of(&plain, 0, 0.0003, 3, false), "0 100µ 200µ 300µ");
    assert_string_equal(labels_of(&plain, 0, 3e20, 3, false), "0 1e+20 2e+20 3e+20");
}

static void moves_the_prefix_to_the_unit(void **state)
{
    (void)state;
    const struct wg_plot_axis energy = {.unit = "J"}, percent = {.unit = "%"}, time = {.unit = "s"};
    struct wg_ticks ticks;
    assert_string_equal(labels_of(&energy, 0, 3e7, 3, false), "0 10 20 30");
    wg__ticks_choose(&ticks, &energy, 0, 3e7, 3, false);
    assert_string_equal(ticks.unit_prefix, "M");
    wg__ticks_choose(&ticks, &percent, 0, 3e7, 3, false);
    assert_string_equal(ticks.unit_prefix, "");
    assert_string_equal(labels_of(&time, 0, 30000, 3, false), "0 10k 20k 30k");
    assert_string_equal(labels_of(&time, 0, 0.003, 3, false), "0 1 2 3");
}

static void keeps_counts_whole(void **state)
{
    (void)state;
    const struct wg_plot_axis counts = {.is_whole = true};
    assert_string_equal(labels_of(&counts, 1, 3, 8, true), "1 2 3");
    assert_string_equal(labels_of(&counts, 4, 4, 8, true), "3 4 5");
}

static void includes_zero_when_asked(void **state)
{
    (void)state;
    const struct wg_plot_axis from_zero = {.from_zero = true};
    assert_string_equal(labels_of(&from_zero, 70, 90, 5, false), "0 20 40 60 80 100");
    assert_string_equal(labels_of(&from_zero, -90, -70, 2, false), "−100 −50 0");
    assert_string_equal(labels_of(&from_zero, 0, 0, 2, false), "0 0.5 1.0");
}

static void chooses_powers_on_logarithmic_axes(void **state)
{
    (void)state;
    const struct wg_plot_axis log = {.scale = WG_PLOT_LOG}, log2_axis = {.scale = WG_PLOT_LOG2};
    assert_string_equal(labels_of(&log, 1, 1e6, 6, false), "1 10 100 1000 10k 100k 1M");
    assert_string_equal(labels_of(&log, 1, 1e6, 3, false), "1 100 10k 1M");
    assert_string_equal(labels_of(&log, 3, 60, 4, false), "2 5 10 20 50 100");
    assert_string_equal(labels_of(&log, 110, 150, 2, true), "120 140");
    assert_string_equal(labels_of(&log2_axis, 8, 128, 5, false), "8 16 32 64 128");
    assert_string_equal(labels_of(&log2_axis, 12, 4000, 5, false), "8 32 128 512 2048");
}

static void widens_a_point(void **state)
{
    (void)state;
    struct wg_ticks ticks;
    wg__ticks_choose(&ticks, &plain, 5, 5, 4, false);
    assert_true(ticks.low < 5 && ticks.high > 5);
    wg__ticks_choose(&ticks, &plain, 0, 0, 4, true);
    assert_true(ticks.low < 0 && ticks.high > 0);
    wg__ticks_choose(&ticks, &(struct wg_plot_axis){.scale = WG_PLOT_LOG}, 5, 5, 4, true);
    assert_true(ticks.low < 5 && ticks.high > 5 && ticks.count >= 2);
}

static void accepts_only_what_has_a_place(void **state)
{
    (void)state;
    assert_true(wg__ticks_accept(WG_PLOT_LINEAR, -1e300));
    assert_true(wg__ticks_accept(WG_PLOT_LINEAR, 5e-324));
    assert_false(wg__ticks_accept(WG_PLOT_LINEAR, 1.1e300));
    assert_false(wg__ticks_accept(WG_PLOT_LINEAR, (double)NAN));
    assert_false(wg__ticks_accept(WG_PLOT_LINEAR, -HUGE_VAL));
    assert_false(wg__ticks_accept(WG_PLOT_LOG, 0));
    assert_false(wg__ticks_accept(WG_PLOT_LOG2, -1));
    assert_true(wg__ticks_accept(WG_PLOT_LOG, 1e-200));
}

/* For any range: few ticks, ascending, inside, differently labelled, and all data on the axis. */
static void holds_for_any_range(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 7);
    for (int round = 0; round < 20000; round++) {
        const double size = pow(10, 570 * wg__rng_uniform(&rng) - 275);
        double a = size, b = size * pow(10, 12 * (wg__rng_uniform(&rng) - 1));
        const struct wg_plot_axis axis = {.scale = (enum wg_plot_scale)wg__rng_below(&rng, 3),
                                          .from_zero = wg__rng_below(&rng, 2) == 1};
        if (axis.scale == WG_PLOT_LINEAR && wg__rng_below(&rng, 2) == 1)
            b = -b;
        if (wg__rng_below(&rng, 4) == 0)
            b = a * (1 + 1e-3 * wg__rng_uniform(&rng));
        const double min = fmin(a, b), max = fmax(a, b);
        const unsigned wanted = 1 + wg__rng_below(&rng, 10);
        struct wg_ticks ticks;
        wg__ticks_choose(&ticks, &axis, min, max, wanted, wg__rng_below(&rng, 2) == 1);
        assert_true(ticks.low <= min && ticks.high >= max && ticks.low < ticks.high);
        assert_true(isfinite(ticks.low) && isfinite(ticks.high));
        assert_true(ticks.count <= WG_TICKS_MAX && ticks.count <= 3 * (size_t)wanted + 9);
        for (size_t i = 0; i < ticks.count; i++) {
            const double place = wg__ticks_place(&ticks, ticks.values[i]);
            assert_true(place >= 0 && place <= 1);
            assert_true(ticks.values[i] >= ticks.low && ticks.values[i] <= ticks.high);
            assert_true(strlen(ticks.labels[i]) > 0 && strlen(ticks.labels[i]) < 24);
            if (i == 0)
                continue;
            assert_true(ticks.values[i] > ticks.values[i - 1]);
            if (strcmp(ticks.labels[i], ticks.labels[i - 1]) == 0)
                fail_msg("%.17g .. %.17g has two ticks '%s'", min, max, ticks.labels[i]);
        }
    }
}

static void formats_quantities(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *unit;
        const char *text;
    } cases[] = {
        {12345678, "J", "12.35 MJ"},
        {0.25, "s", "0.25 s"},
        {0.0042, "s", "4.2 ms"},
        {123456, "s", "123456 s"},
        {250, "W", "250 W"},
        {1234, NULL, "1234"},
        {64, NULL, "64"},
        {-0.5, NULL, "−0.5"},
        {0, "J", "0 J"},
        {12.5, "%", "12.5 %"},
        {2e6, NULL, "2M"},
        {1e200, "J", "1e+200 J"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        wg__format_quantity(text, sizeof text, cases[i].value, cases[i].unit);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chooses_round_numbers),
        cmocka_unit_test(moves_the_prefix_to_the_unit),
        cmocka_unit_test(keeps_counts_whole),
        cmocka_unit_test(includes_zero_when_asked),
        cmocka_unit_test(chooses_powers_on_logarithmic_axes),
        cmocka_unit_test(widens_a_point),
        cmocka_unit_test(accepts_only_what_has_a_place),
        cmocka_unit_test(holds_for_any_range),
        cmocka_unit_test(formats_quantities),
    };
    return run_tests(tests);
}
