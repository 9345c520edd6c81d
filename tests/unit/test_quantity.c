/* SPDX-License-Identifier: MIT
 *
 * Numbers for people: the unit of each metric and knob.
 */
#include "cli/quantity.h"

#include "support/check.h"

static void each_metric_has_its_unit(void **state)
{
    (void)state;
    static const struct {
        enum wg_metric metric;
        double value;
        const char *text;
    } cases[] = {
        {WG_METRIC_POWER_W, 412.34, "412.3 W"},
        {WG_METRIC_ENERGY_J, 850, "850.0 J"},
        {WG_METRIC_ENERGY_J, 12345, "12.35 kJ"},
        {WG_METRIC_ENERGY_J, 4301234, "4.301 MJ"},
        {WG_METRIC_CLOCK_HZ, 1.98e9, "1980 MHz"},
        {WG_METRIC_TEMPERATURE_C, 71.2, "71 °C"},
        {WG_METRIC_UTILIZATION, 0.984, "98 %"},
        {WG_METRIC_MEMORY_UTILIZATION, 0, "0 %"},
        {WG_METRIC_MEMORY_USED_BYTES, 1073741824, "1.0 GiB"},
        {WG_METRIC_MEMORY_USED_BYTES, 512, "512 B"},
        {WG_METRIC_THROTTLED_POWER_S, 1.5, "1.500 s"},
        {WG_METRIC_POWER_LIMIT_W, NAN, "n/a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[WG_QUANTITY_TEXT_SIZE];
        wg__metric_text(text, cases[i].metric, cases[i].value);
        assert_string_equal(text, cases[i].text);
    }
}

static void steps_are_in_the_unit_of_the_value(void **state)
{
    (void)state;
    char text[WG_QUANTITY_TEXT_SIZE];
    wg__metric_step_text(text, WG_METRIC_POWER_W, 0.001);
    assert_string_equal(text, "0.001 W");
    wg__metric_step_text(text, WG_METRIC_CLOCK_HZ, 1e6);
    assert_string_equal(text, "1 MHz");
    wg__metric_step_text(text, WG_METRIC_UTILIZATION, 0.01);
    assert_string_equal(text, "1 %");
    wg__metric_step_text(text, WG_METRIC_ENERGY_J, 0);
    assert_string_equal(text, "");
}

static void knobs_have_the_unit_of_their_table(void **state)
{
    (void)state;
    char text[WG_QUANTITY_TEXT_SIZE];
    wg__knob_text(text, WG_KNOB_POWER_LIMIT, 350);
    assert_string_equal(text, "350 W");
    wg__knob_text(text, WG_KNOB_GPU_CLOCK, 1.98e9);
    assert_string_equal(text, "1980 MHz");
    wg__knob_text(text, WG_KNOB_CPU_CLOCK, NAN);
    assert_string_equal(text, "n/a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_metric_has_its_unit),
        cmocka_unit_test(steps_are_in_the_unit_of_the_value),
        cmocka_unit_test(knobs_have_the_unit_of_their_table),
    };
    return run_tests(tests);
}
