/* SPDX-License-Identifier: MIT
 *
 * The table of power sensors against the published result matrix (GPU_Power_Benchmark's
 * Overall_Results.xlsx, sheet "Result Matrix", MIT; arXiv 2312.02741). The rows below are copied
 * from it: architecture, driver, option, averaging window and update period in milliseconds.
 */
#include "device/sensor.h"

#include "support/check.h"

enum option { USAGE, AVERAGE, INSTANT };

struct fact {
    const char *architecture;
    unsigned driver; /* a branch of "before R530", "R530" or "after R530" */
    enum option option;
    double window_ms, period_ms; /* period 0: not supported */
};

static const struct fact facts[] = {
    {"hopper", 535, USAGE, 1000, 100},     {"hopper", 535, AVERAGE, 1000, 100},
    {"hopper", 535, INSTANT, 25, 100},     {"ada", 525, USAGE, 1000, 100},
    {"ada", 530, USAGE, 100, 100},         {"ada", 535, USAGE, 1000, 100},
    {"ada", 535, AVERAGE, 1000, 100},      {"ada", 535, INSTANT, 100, 100},
    {"ampere", 525, USAGE, 1000, 100},     {"ampere", 530, USAGE, 100, 100},
    {"ampere", 535, USAGE, 1000, 100},     {"ampere", 535, AVERAGE, 1000, 100},
    {"ampere", 535, INSTANT, 100, 100},    {"ampere-ga100", 525, USAGE, 25, 100},
    {"ampere-ga100", 530, USAGE, 25, 100}, {"ampere-ga100", 535, USAGE, 25, 100},
    {"ampere-ga100", 535, AVERAGE, 0, 0},  {"ampere-ga100", 535, INSTANT, 25, 100},
    {"turing", 525, USAGE, 100, 100},      {"turing", 530, USAGE, 100, 100},
    {"turing", 535, USAGE, 100, 100},      {"turing", 535, AVERAGE, 0, 0},
    {"turing", 535, INSTANT, 100, 100},    {"volta", 525, USAGE, 10, 20},
    {"volta", 530, USAGE, 10, 20},         {"volta", 535, USAGE, 10, 20},
    {"volta", 535, AVERAGE, 0, 0},         {"volta", 535, INSTANT, 10, 20},
    {"pascal", 525, USAGE, 10, 20},        {"pascal", 530, USAGE, 10, 20},
    {"pascal", 535, USAGE, 10, 20},        {"pascal", 535, AVERAGE, 0, 0},
    {"pascal", 535, INSTANT, 10, 20},      {"maxwell", 525, USAGE, 0, 100},
    {"maxwell", 530, USAGE, 0, 100},       {"maxwell", 535, USAGE, 0, 100},
    {"maxwell", 535, AVERAGE, 0, 0},       {"maxwell", 535, INSTANT, 0, 100},
    {"kepler", 470, USAGE, 0, 15},
};

static void the_table_holds_the_published_matrix(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        const struct fact *fact = &facts[i];
        struct wg_sensor sensor = {0};
        const bool is_found =
            fact->option == USAGE
                ? wg__sensor_lookup_usage(fact->architecture, fact->driver, &sensor)
                : wg__sensor_lookup(fact->architecture, fact->driver,
                                    fact->option == INSTANT ? WG_METRIC_POWER_W
                                                            : WG_METRIC_POWER_AVERAGE_W,
                                    &sensor);
        if (is_found != (fact->period_ms > 0))
            fail_msg("%s, R%u, option %d: found is %d", fact->architecture, fact->driver,
                     fact->option, is_found);
        if (!is_found)
            continue;
        check_close(sensor.update_period_s, fact->period_ms / 1e3, 1e-12);
        check_close_abs(sensor.averaging_window_s, fact->window_ms / 1e3, 1e-12, 0);
        assert_int_equal(sensor.is_known, fact->window_ms > 0);
    }
}

static void before_branch_530_the_only_power_is_the_usage(void **state)
{
    (void)state;
    struct wg_sensor sensor;
    assert_true(wg__sensor_lookup("ampere", 525, WG_METRIC_POWER_W, &sensor));
    check_close(sensor.averaging_window_s, 1.0, 0);
    assert_false(wg__sensor_lookup("ampere", 525, WG_METRIC_POWER_AVERAGE_W, &sensor));
    /* H100s answered both fields under R525 already (sheet "Remote GPUs"). */
    assert_true(wg__sensor_lookup("hopper", 525, WG_METRIC_POWER_W, &sensor));
    check_close(sensor.averaging_window_s, 0.025, 1e-12);
}

static void a_sensor_that_looks_away_says_how_much_it_sees(void **state)
{
    (void)state;
    struct wg_sensor sensor;
    assert_true(wg__sensor_lookup("hopper", 550, WG_METRIC_POWER_W, &sensor));
    check_close(sensor.seen_share, 0.25, 1e-12);
    assert_true(wg__sensor_lookup("volta", 550, WG_METRIC_POWER_W, &sensor));
    check_close(sensor.seen_share, 0.5, 1e-12);
    assert_true(wg__sensor_lookup("hopper", 550, WG_METRIC_POWER_AVERAGE_W, &sensor));
    check_close(sensor.seen_share, 1, 0);
}

static void energy_counters_step_by_20_ms_on_volta_and_100_ms_later(void **state)
{
    (void)state;
    struct wg_sensor sensor;
    assert_true(wg__sensor_lookup("volta", 535, WG_METRIC_ENERGY_J, &sensor));
    check_close(sensor.update_period_s, 0.02, 1e-12);
    static const char *const later[] = {"turing", "ampere-ga100", "ampere",
                                        "ada",    "hopper",       "blackwell"};
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        assert_true(wg__sensor_lookup(later[i], 535, WG_METRIC_ENERGY_J, &sensor));
        check_close(sensor.update_period_s, 0.1, 1e-12);
    }
    assert_false(wg__sensor_lookup("pascal", 535, WG_METRIC_ENERGY_J, &sensor));
}

static void what_is_not_in_the_table_is_not_found(void **state)
{
    (void)state;
    struct wg_sensor sensor;
    assert_false(wg__sensor_lookup(NULL, 535, WG_METRIC_POWER_W, &sensor));
    assert_false(wg__sensor_lookup("rdna3", 535, WG_METRIC_POWER_W, &sensor));
    assert_false(wg__sensor_lookup("blackwell", 580, WG_METRIC_POWER_W, &sensor));
    assert_false(wg__sensor_lookup("hopper", 535, WG_METRIC_TEMPERATURE_C, &sensor));
}

static void what_a_device_says_of_itself_comes_before_the_table(void **state)
{
    (void)state;
    static struct wg_device_info info;
    info = (struct wg_device_info){.architecture = "volta", .driver = "535.129.03"};
    info.meters[WG_METRIC_POWER_W] = (struct wg_meter_info){
        .is_present = true, .update_period_s = 0.4, .averaging_window_s = 0.1};
    struct wg_sensor sensor = wg__sensor_of(&info, WG_METRIC_POWER_W);
    check_close(sensor.update_period_s, 0.4, 0);
    check_close(sensor.seen_share, 0.25, 1e-12);
    assert_true(sensor.is_known);

    info.meters[WG_METRIC_POWER_W] = (struct wg_meter_info){.is_present = true};
    const struct wg_sensor listed = wg__sensor_of(&info, WG_METRIC_POWER_W);
    check_close(listed.update_period_s, 0.02, 1e-12);
    assert_true(listed.is_known);
}

static void an_unknown_sensor_is_assumed_and_says_so(void **state)
{
    (void)state;
    static struct wg_device_info info;
    info = (struct wg_device_info){0};
    const struct wg_sensor sensor = wg__sensor_of(&info, WG_METRIC_ENERGY_J);
    check_close(sensor.update_period_s, 0.1, 0);
    check_close(sensor.seen_share, 1, 0);
    assert_false(sensor.is_known);
}

static void the_branch_is_the_first_number_of_a_version(void **state)
{
    (void)state;
    assert_int_equal(wg__sensor_driver_branch("535.129.03"), 535);
    assert_int_equal(wg__sensor_driver_branch("61"), 61);
    assert_int_equal(wg__sensor_driver_branch("N/A"), 0);
    assert_int_equal(wg__sensor_driver_branch(""), 0);
    assert_int_equal(wg__sensor_driver_branch(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_holds_the_published_matrix),
        cmocka_unit_test(before_branch_530_the_only_power_is_the_usage),
        cmocka_unit_test(a_sensor_that_looks_away_says_how_much_it_sees),
        cmocka_unit_test(energy_counters_step_by_20_ms_on_volta_and_100_ms_later),
        cmocka_unit_test(what_is_not_in_the_table_is_not_found),
        cmocka_unit_test(what_a_device_says_of_itself_comes_before_the_table),
        cmocka_unit_test(an_unknown_sensor_is_assumed_and_says_so),
        cmocka_unit_test(the_branch_is_the_first_number_of_a_version),
    };
    return run_tests(tests);
}
