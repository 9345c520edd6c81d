/* SPDX-License-Identifier: MIT
 *
 * The common part of devices that are files of the kernel, on a device of one folder.
 */
#include "device/kernel_device.h"

#include <limits.h>
#include <math.h>

#include "support/backend.h"
#include "support/tree.h"

#define FOLDER "/sys/thing"

static const struct tree_entry thing[] = {
    {.path = FOLDER "/power1_average", .text = "120500000\n"},
    {.path = FOLDER "/energy1_input", .text = "7000000\n"},
    {.path = FOLDER "/temp1_input", .text = "-40000\n"},
    {.path = FOLDER "/limit", .text = "250000000\n"},
    {.path = FOLDER "/levels", .text = "300 100\n200 300\n"},
};

static const struct wg_kernel_gauge power = {.name = "power1_average", .scale = 1e-6};
static const struct wg_kernel_gauge energy = {.name = "energy1_input", .scale = 1e-6};
static const struct wg_kernel_gauge temperature = {.name = "temp1_input", .scale = 1e-3};

/* Where `locate` finds the device now; NULL: nowhere. */
static const char *place = FOLDER;

static enum wg_code locate(struct wg_kernel_device *kernel, struct wg_error *err)
{
    if (place == NULL)
        return wg__fail(err, WG_ELOST, "the thing is gone");
    kernel->folders[0] = wg__sysfs_path(&kernel->paths, "%s", place);
    return kernel->folders[0] != NULL ? WG_OK : wg__fail(err, WG_ENOMEM, "out of memory");
}

static const struct wg_kernel_ops kernel_ops = {.locate = locate};
static const struct wg_device_ops device_ops = {.read = wg__kernel_read,
                                                .release = wg__kernel_release,
                                                .reopen = wg__kernel_reopen,
                                                .destroy = wg__kernel_destroy};

static struct wg_kernel_device *open_thing(struct tree *tree)
{
    place = FOLDER;
    struct wg_kernel_device *kernel = wg__alloc_zeroed(1, sizeof *kernel);
    assert_non_null(kernel);
    kernel->ops = &kernel_ops;
    kernel->root = tree->root;
    kernel->device.ops = &device_ops;
    return kernel;
}

static struct wg_kernel_device *begin(struct tree *tree)
{
    tree_open(tree);
    TREE_ADD(tree, thing);
    struct wg_kernel_device *kernel = open_thing(tree);
    assert_int_equal(wg__kernel_begin(kernel, NULL), WG_OK);
    return kernel;
}

static void end(struct tree *tree, struct wg_kernel_device *kernel)
{
    wg__kernel_free(kernel);
    tree_close(tree);
}

static void a_meter_is_a_number_of_a_file_in_si(void **state)
{
    (void)state;
    struct tree tree;
    struct wg_kernel_device *kernel = begin(&tree);
    assert_int_equal(wg__kernel_add(kernel, WG_METRIC_POWER_W, &power, NULL, NULL), WG_OK);
    assert_int_equal(wg__kernel_add(kernel, WG_METRIC_ENERGY_J, &energy, NULL, NULL), WG_OK);
    assert_int_equal(wg__kernel_add(kernel, WG_METRIC_TEMPERATURE_C, &temperature, NULL, NULL),
                     WG_OK);
    const struct wg_sample sample = backend_read(&kernel->device);
    check_metric(sample, WG_METRIC_POWER_W, 120.5);
    check_metric(sample, WG_METRIC_ENERGY_J, 7.0);
    check_metric(sample, WG_METRIC_TEMPERATURE_C, -40.0); /* a cold morning */
    assert_true(sample.t_ns > 0);
    const struct wg_meter_info *meter = &kernel->device.info.meters[WG_METRIC_POWER_W];
    assert_string_equal(meter->source, FOLDER "/power1_average");
    check_close(meter->resolution, 1e-6, 1e-12);
    /* Only what is wanted is read. */
    struct wg_sample one;
    assert_int_equal(wg__kernel_read(&kernel->device, 1u << WG_METRIC_ENERGY_J, &one, NULL), WG_OK);
    assert_int_equal(one.present, 1u << WG_METRIC_ENERGY_J);
    end(&tree, kernel);
}

static void numbers_that_nothing_can_mean_are_no_readings(void **state)
{
    (void)state;
    static const char *const texts[] = {"4294967295000000\n",
                                        "-1\n",
                                        "9223372036854775807\n",
                                        "18446744073709551615\n",
                                        "lots\n",
                                        "\n",
                                        ""};
    struct tree tree;
    struct wg_kernel_device *kernel = begin(&tree);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tree_set(&tree, FOLDER "/power1_average", texts[i]);
        struct wg_error err = {0};
        assert_int_equal(wg__kernel_add(kernel, WG_METRIC_POWER_W, &power, "a remedy", &err),
                         WG_EDATA);
        check_absent(&kernel->device, WG_METRIC_POWER_W, FOLDER "/power1_average");
        assert_null(kernel->device.info.meters[WG_METRIC_POWER_W].remedy);
    }
    tree_set(&tree, FOLDER "/temp1_input", "-273150\n");
    assert_int_equal(wg__kernel_add(kernel, WG_METRIC_TEMPERATURE_C, &temperature, NULL, NULL),
                     WG_EDATA);
    end(&tree, kernel);
}

/* Field reports 62 and 63. */
static void what_is_missing_costs_itself_and_a_remedy_is_for_rights(void **state)
{
    (void)state;
    struct tree tree;
    struct wg_kernel_device *kernel = begin(&tree);
    tree_remove(&tree, FOLDER "/energy1_input");
    const mode_t mode = geteuid() == 0 ? 0400 : 0;
    assert_int_equal(chmod(tree_path(&tree, FOLDER "/power1_average"), mode), 0);
    tree_drop_rights();
    const enum wg_code denied = wg__kernel_add(kernel, WG_METRIC_POWER_W, &power, "ask root", NULL);
    tree_regain_rights();
    assert_int_equal(denied, WG_EPERM);
    assert_int_equal(wg__kernel_add(kernel, WG_METRIC_ENERGY_J, &energy, "ask root", NULL),
                     WG_ENOENT);
    assert_int_equal(wg__kernel_add(kernel, WG_METRIC_TEMPERATURE_C, &temperature, NULL, NULL),
                     WG_OK);
    const struct wg_meter_info *meters = kernel->device.info.meters;
    assert_string_equal(meters[WG_METRIC_POWER_W].remedy, "ask root");
    assert_null(meters[WG_METRIC_ENERGY_J].remedy);
    const struct wg_sample sample = backend_read(&kernel->device);
    assert_int_equal(sample.present, 1u << WG_METRIC_TEMPERATURE_C);
    /* All others are said to be absent, too. */
    assert_int_equal(wg__kernel_finish(kernel, "nothing of it here", NULL), WG_OK);
    check_absent(&kernel->device, WG_METRIC_UTILIZATION, "nothing of it here");
    check_no_knob(&kernel->device, WG_KNOB_GPU_CLOCK, "nothing of it here");
    end(&tree, kernel);
}

static void a_read_of_nothing_tells_the_first_cause_or_that_all_is_gone(void **state)
{
    (void)state;
    struct tree tree;
    struct wg_kernel_device *kernel = begin(&tree);
    assert_int_equal(wg__kernel_add(kernel, WG_METRIC_POWER_W, &power, NULL, NULL), WG_OK);
    tree_set(&tree, FOLDER "/power1_average", "-5\n");
    struct wg_sample sample;
    struct wg_error err = {0};
    assert_int_equal(wg__kernel_read(&kernel->device, UINT32_MAX, &sample, &err), WG_EDATA);
    assert_string_equal(err.text, FOLDER "/power1_average: -5e-06 is no power_w");
    assert_int_equal(sample.present, 0);
    tree_remove_folder(&tree, FOLDER);
    assert_int_equal(wg__kernel_read(&kernel->device, UINT32_MAX, &sample, &err), WG_ELOST);
    assert_string_equal(err.text, FOLDER " is gone");
    end(&tree, kernel);
}

static enum wg_code read_unknown(struct wg_kernel_device *kernel,
                                 const struct wg_kernel_gauge *gauge, double *out,
                                 struct wg_error *err)
{
    (void)kernel, (void)gauge, (void)err;
    *out = NAN;
    return WG_OK;
}

static void a_number_that_is_not_known_this_time_is_left_out_without_an_error(void **state)
{
    (void)state;
    struct tree tree;
    struct wg_kernel_device *kernel = begin(&tree);
    struct wg_kernel_gauge gauge = energy;
    gauge.read = read_unknown;
    assert_int_equal(wg__kernel_add(kernel, WG_METRIC_ENERGY_J, &gauge, NULL, NULL), WG_OK);
    assert_int_equal(backend_read(&kernel->device).present, 0);
    wg__kernel_drop(kernel, WG_METRIC_ENERGY_J, "it says 0 for ever", "look elsewhere");
    check_absent(&kernel->device, WG_METRIC_ENERGY_J, "it says 0 for ever");
    assert_string_equal(kernel->device.info.meters[WG_METRIC_ENERGY_J].remedy, "look elsewhere");
    assert_int_equal(backend_read(&kernel->device).present, 0);
    end(&tree, kernel);
}

static void after_a_release_the_files_are_found_wherever_the_folder_is_now(void **state)
{
    (void)state;
    struct tree tree;
    struct wg_kernel_device *kernel = begin(&tree);
    assert_int_equal(wg__kernel_add(kernel, WG_METRIC_POWER_W, &power, NULL, NULL), WG_OK);
    wg__kernel_release(&kernel->device);
    struct wg_sample sample;
    assert_int_equal(wg__kernel_read(&kernel->device, UINT32_MAX, &sample, NULL), WG_ESTATE);
    static const struct tree_entry moved[] = {
        {.path = "/sys/other/power1_average", .text = "90000000\n"}};
    TREE_ADD(&tree, moved);
    place = "/sys/other";
    assert_int_equal(wg__kernel_reopen(&kernel->device, NULL), WG_OK);
    check_metric(backend_read(&kernel->device), WG_METRIC_POWER_W, 90.0);
    place = NULL;
    assert_int_equal(wg__kernel_reopen(&kernel->device, NULL), WG_ELOST);
    end(&tree, kernel);
}

static void levels_rise_and_stand_once_each(void **state)
{
    (void)state;
    struct tree tree;
    struct wg_kernel_device *kernel = begin(&tree);
    struct wg_knob_info knob = {0};
    wg__kernel_levels(kernel, FOLDER "/levels", 1e3, &knob);
    assert_int_equal(knob.level_count, 3);
    for (size_t i = 0; i < 3; i++)
        check_close(knob.levels[i], 1e5 * (double)(i + 1), 1e-12);
    struct wg_knob_info none = {0};
    wg__kernel_levels(kernel, FOLDER "/no-such-file", 1e3, &none);
    assert_int_equal(none.level_count, 0);
    end(&tree, kernel);
}

static void a_knob_says_whether_it_may_be_set_and_refuses_what_no_device_has(void **state)
{
    (void)state;
    struct tree tree;
    struct wg_kernel_device *kernel = begin(&tree);
    const char *path = FOLDER "/limit";
    const struct wg_knob_info good = {.min = 1.0, .max = 300.0, .preset = NAN, .current = 1e9};
    wg__kernel_knob(kernel, WG_KNOB_POWER_LIMIT, &good, path, "ask root");
    const struct wg_knob_info *knob = &kernel->device.info.knobs[WG_KNOB_POWER_LIMIT];
    assert_true(knob->is_present && knob->is_writable);
    assert_true(isnan(knob->current)); /* a gigawatt */
    assert_null(knob->why_not);
    assert_int_equal(chmod(tree_path(&tree, path), 0444), 0);
    wg__kernel_knob(kernel, WG_KNOB_POWER_LIMIT, &good, path, "ask root");
    assert_true(knob->is_present);
    assert_false(knob->is_writable);
    assert_string_equal(knob->why_not, FOLDER "/limit: this process may not write it");
    assert_string_equal(knob->remedy, "ask root");
    static const double absurd[] = {1.8e19, INFINITY, NAN};
    for (size_t i = 0; i < 3; i++) {
        const struct wg_knob_info bad = {.min = 1.0, .max = absurd[i]};
        wg__kernel_knob(kernel, WG_KNOB_POWER_LIMIT, &bad, path, NULL);
        check_no_knob(&kernel->device, WG_KNOB_POWER_LIMIT, "is no power_limit");
    }
    end(&tree, kernel);
}

static enum wg_code probe_all(struct wg_kernel_device *kernel)
{
    struct wg_error err;
    struct wg_knob_info knob = {.max = 1.0};
    const enum wg_code code = wg__kernel_begin(kernel, &err);
    if (code != WG_OK)
        return code;
    (void)wg__kernel_add(kernel, WG_METRIC_POWER_W, &power, NULL, &err);
    wg__kernel_levels(kernel, FOLDER "/levels", 1.0, &knob);
    wg__kernel_knob(kernel, WG_KNOB_POWER_LIMIT, &knob, FOLDER "/limit", "ask root");
    return wg__kernel_finish(kernel, "nothing", &err);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct tree tree;
    tree_open(&tree);
    TREE_ADD(&tree, thing);
    enum wg_code code = WG_ENOMEM;
    for (size_t n = 1; code != WG_OK; n++) {
        struct wg_kernel_device *kernel = open_thing(&tree);
        wg__alloc_fail_from(n);
        code = probe_all(kernel);
        wg__alloc_fail_from(0);
        assert_true(code == WG_OK || code == WG_ENOMEM);
        assert_true(n < 1000);
        wg__kernel_free(kernel);
    }
    wg__kernel_free(NULL);
    tree_close(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_meter_is_a_number_of_a_file_in_si),
        cmocka_unit_test(numbers_that_nothing_can_mean_are_no_readings),
        cmocka_unit_test(what_is_missing_costs_itself_and_a_remedy_is_for_rights),
        cmocka_unit_test(a_read_of_nothing_tells_the_first_cause_or_that_all_is_gone),
        cmocka_unit_test(a_number_that_is_not_known_this_time_is_left_out_without_an_error),
        cmocka_unit_test(after_a_release_the_files_are_found_wherever_the_folder_is_now),
        cmocka_unit_test(levels_rise_and_stand_once_each),
        cmocka_unit_test(a_knob_says_whether_it_may_be_set_and_refuses_what_no_device_has),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return run_tests(tests);
}
