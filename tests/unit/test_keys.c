/* SPDX-License-Identifier: MIT
 *
 * The tables of include/wattgov/device.h against what JSON and CSV promise: unique, lower case.
 */
#include <stdbool.h>
#include <string.h>

#include "support/check.h"
#include "wattgov/device.h"

static void check_key(const char *key)
{
    assert_non_null(key);
    assert_true(*key != '\0' && strspn(key, "abcdefghijklmnopqrstuvwxyz_") == strlen(key));
}

/* A share has no unit; all else says it at the end. */
static bool has_unit(const char *key)
{
    static const char *const ends[] = {"_w", "_j", "_hz", "_c", "_s", "_bytes", "utilization"};
    const size_t length = strlen(key);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const size_t end = strlen(ends[i]);
        if (length >= end && strcmp(key + length - end, ends[i]) == 0)
            return true;
    }
    return false;
}

/* Field reports 57, 64: unit and kind of each number are known. */
static void metric_keys_are_unique_and_end_with_their_unit(void **state)
{
    (void)state;
    for (enum wg_metric metric = 0; metric < WG_METRIC_COUNT; metric++) {
        check_key(wg_metric_key(metric));
        assert_true(has_unit(wg_metric_key(metric)));
        for (enum wg_metric other = 0; other < metric; other++)
            assert_string_not_equal(wg_metric_key(metric), wg_metric_key(other));
    }
    assert_string_equal(wg_metric_key(WG_METRIC_ENERGY_J), "energy_j");
    assert_true(wg_metric_is_counter(WG_METRIC_ENERGY_J));
    assert_false(wg_metric_is_counter(WG_METRIC_POWER_W));
}

static void unknown_values_have_no_key(void **state)
{
    (void)state;
    assert_null(wg_metric_key(WG_METRIC_COUNT));
    assert_false(wg_metric_is_counter(WG_METRIC_COUNT));
    assert_null(wg_knob_key(WG_KNOB_COUNT));
    assert_null(wg_knob_unit(WG_KNOB_COUNT));
    assert_null(wg_device_kind_key(WG_DEVICE_KIND_COUNT));
    // NOLINTNEXTLINE(*EnumCastOutOfRange): an unknown value is what is tested
    assert_null(wg_throttle_text((enum wg_throttle)(1u << 30)));
}

static void knobs_kinds_and_reasons_have_words(void **state)
{
    (void)state;
    for (enum wg_knob knob = 0; knob < WG_KNOB_COUNT; knob++)
        check_key(wg_knob_key(knob));
    for (enum wg_device_kind kind = 0; kind < WG_DEVICE_KIND_COUNT; kind++)
        check_key(wg_device_kind_key(kind));
    assert_string_equal(wg_knob_unit(WG_KNOB_POWER_LIMIT), "W");
    assert_string_equal(wg_throttle_text(WG_THROTTLE_POWER_LIMIT), "power limit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metric_keys_are_unique_and_end_with_their_unit),
        cmocka_unit_test(unknown_values_have_no_key),
        cmocka_unit_test(knobs_kinds_and_reasons_have_words),
    };
    return run_tests(tests);
}
