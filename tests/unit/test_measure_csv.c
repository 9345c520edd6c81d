/* SPDX-License-Identifier: MIT
 *
 * Samples as CSV: each once, empty where unknown, a full disk is an error.
 */
#include "cli/measure_csv.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/scratch.h"

static struct wg_sample sample_at(uint64_t t_ns)
{
    struct wg_sample sample = {.t_ns = t_ns};
    sample.present = 1u << WG_METRIC_POWER_W | 1u << WG_METRIC_CLOCK_HZ;
    sample.values[WG_METRIC_POWER_W] = 123.25;
    sample.values[WG_METRIC_CLOCK_HZ] = 1.98e9;
    return sample;
}

static void a_row_a_sample_with_empty_fields_for_the_unknown(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_measure_csv csv;
    struct wg_error err;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "power.csv");
    assert_int_equal(wg__measure_csv_open(&csv, path, 2, &err), WG_OK);
    csv.start_ns = 1000000000;
    struct wg_sample sample = sample_at(1100000000);
    wg__measure_csv_add(&csv, 1, 0, "gpu0", &sample);
    wg__measure_csv_add(&csv, 1, 0, "gpu0", &sample); /* the same again: no row */
    sample = sample_at(900000000);                    /* before the start: no row */
    wg__measure_csv_add(&csv, 1, 1, "gpu1", &sample);
    sample = sample_at(1200000000);
    sample.values[WG_METRIC_POWER_W] = 123.25 + 1e-13; /* as a division by 1000 leaves it */
    sample.has_throttle = true;
    sample.throttle = WG_THROTTLE_POWER_LIMIT | WG_THROTTLE_THERMAL;
    wg__measure_csv_add(&csv, 2, 1, "a,\"b", &sample);
    assert_int_equal(wg__measure_csv_flush(&csv, &err), WG_OK);
    char *text = scratch_read(path, NULL); /* is there before the close */
    assert_string_equal(
        text, "run,t_s,device,power_w,power_average_w,memory_power_w,module_power_w,energy_j,"
              "clock_hz,memory_clock_hz,temperature_c,utilization,memory_utilization,"
              "memory_used_bytes,power_limit_w,enforced_power_limit_w,throttled_power_s,"
              "throttled_thermal_s,throttle\n"
              "1,0.100000,gpu0,123.25,,,,,1980000000,,,,,,,,,,\n"
              "2,0.200000,\"a,\"\"b\",123.25,,,,,1980000000,,,,,,,,,,power limit;temperature\n");
    free(text);
    assert_int_equal(wg__measure_csv_close(&csv, &err), WG_OK);
    assert_int_equal(wg__measure_csv_close(&csv, &err), WG_OK);
    scratch_close(&scratch);
}

static void without_a_path_nothing_happens(void **state)
{
    (void)state;
    struct wg_measure_csv csv;
    assert_int_equal(wg__measure_csv_open(&csv, NULL, 1, NULL), WG_OK);
    csv.start_ns = 1;
    const struct wg_sample sample = sample_at(2);
    wg__measure_csv_add(&csv, 1, 0, "gpu0", &sample);
    assert_int_equal(wg__measure_csv_flush(&csv, NULL), WG_OK);
    assert_int_equal(wg__measure_csv_close(&csv, NULL), WG_OK);
}

static void a_full_disk_and_a_missing_folder_are_named(void **state)
{
    (void)state;
    struct wg_measure_csv csv;
    struct wg_error err;
    assert_int_equal(wg__measure_csv_open(&csv, "/dev/full", 1, &err), WG_EIO);
    assert_string_equal(err.text, "/dev/full: cannot write: No space left on device");
    assert_int_equal(wg__measure_csv_close(&csv, &err), WG_OK); /* was said already */
    assert_int_equal(wg__measure_csv_open(&csv, "/nowhere/at/all.csv", 1, &err), WG_ENOENT);
    assert_int_equal(wg__measure_csv_close(&csv, &err), WG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_a_sample_with_empty_fields_for_the_unknown),
        cmocka_unit_test(without_a_path_nothing_happens),
        cmocka_unit_test(a_full_disk_and_a_missing_folder_are_named),
    };
    return run_tests(tests);
}
