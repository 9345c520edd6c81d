/* SPDX-License-Identifier: MIT
 *
 * The list of settings that a governor may choose from.
 */
#include "live/train_settings.h"

#include "support/check.h"

static struct wg_device_info gpu_with_limits(const char *label, double min_w, double max_w,
                                             double current_w)
{
    struct wg_device_info info = {.kind = WG_DEVICE_GPU, .label = label};
    info.knobs[WG_KNOB_POWER_LIMIT] = (struct wg_knob_info){.is_present = true,
                                                            .min = min_w,
                                                            .max = max_w,
                                                            .step = 0.001,
                                                            .preset = max_w,
                                                            .current = current_w};
    info.knobs[WG_KNOB_GPU_CLOCK] = (struct wg_knob_info){.why_not = "not in this test"};
    return info;
}

static void limits_are_those_of_the_measured_traces(void **state)
{
    (void)state;
    const struct wg_device_info v100 = gpu_with_limits("gpu0", 100, 250, 250);
    const struct wg_device_info *infos[] = {&v100};
    static const double expected[] = {100, 125, 150, 175, 200, 225, 250};
    struct wg_train_settings settings;
    struct wg_error err;
    assert_int_equal(wg__train_settings_init(&settings, WG_KNOB_POWER_LIMIT, infos, 1, &err),
                     WG_OK);
    assert_int_equal(settings.count, 7);
    for (size_t i = 0; i < 7; i++) {
        check_close(settings.setting[i], expected[i], 1e-12);
        check_close(settings.value[i][0], expected[i], 1e-12);
    }
}

static void never_exceeds_the_limit_that_stands(void **state)
{
    (void)state;
    /* Whatever stands between the ends, the list ends with it. */
    for (int current = 130; current <= 450; current += 7) {
        const struct wg_device_info info = gpu_with_limits("gpu0", 150, 450, current);
        const struct wg_device_info *infos[] = {&info};
        struct wg_train_settings settings;
        struct wg_error err;
        const enum wg_code code =
            wg__train_settings_init(&settings, WG_KNOB_POWER_LIMIT, infos, 1, &err);
        if (current <= 150) {
            assert_int_equal(code, WG_EUNSUPPORTED);
            continue;
        }
        assert_int_equal(code, WG_OK);
        check_close(settings.setting[settings.count - 1], (double)current, 1e-12);
        check_close(settings.setting[0], 150.0, 1e-12);
        for (size_t i = 1; i < settings.count; i++)
            assert_true(settings.setting[i] > settings.setting[i - 1]);
    }
}

static void a_wide_range_has_no_more_than_sixteen_steps(void **state)
{
    (void)state;
    for (int max = 300; max <= 2000; max += 37) {
        const struct wg_device_info info = gpu_with_limits("gpu0", 100, max, NAN);
        const struct wg_device_info *infos[] = {&info};
        struct wg_train_settings settings;
        struct wg_error err;
        assert_int_equal(wg__train_settings_init(&settings, WG_KNOB_POWER_LIMIT, infos, 1, &err),
                         WG_OK);
        assert_in_range(settings.count, 4, 17);
        check_close(settings.setting[settings.count - 1], (double)max, 1e-12);
    }
}

static void different_gpus_are_restrained_alike(void **state)
{
    (void)state;
    const struct wg_device_info a = gpu_with_limits("gpu0", 100, 300, 300);
    const struct wg_device_info b = gpu_with_limits("gpu1", 200, 700, 700);
    const struct wg_device_info *infos[] = {&a, &b};
    struct wg_train_settings settings;
    struct wg_error err;
    assert_int_equal(wg__train_settings_init(&settings, WG_KNOB_POWER_LIMIT, infos, 2, &err),
                     WG_OK);
    for (size_t i = 0; i < settings.count; i++) {
        const double share = (settings.value[i][0] - 100) / 200;
        check_close(settings.value[i][1], 200 + share * 500, 1e-12);
        check_close(settings.setting[i], (settings.value[i][0] + settings.value[i][1]) / 2, 1e-12);
    }
}

static void clocks_are_supported_ones(void **state)
{
    (void)state;
    double levels[100];
    for (int i = 0; i < 100; i++)
        levels[i] = 210e6 + i * 15e6;
    struct wg_device_info info = gpu_with_limits("gpu0", 100, 300, 300);
    info.knobs[WG_KNOB_GPU_CLOCK] = (struct wg_knob_info){.is_present = true,
                                                          .min = levels[0],
                                                          .max = levels[99],
                                                          .current = NAN,
                                                          .levels = levels,
                                                          .level_count = 100};
    const struct wg_device_info *infos[] = {&info};
    struct wg_train_settings settings;
    struct wg_error err;
    assert_int_equal(wg__train_settings_init(&settings, WG_KNOB_GPU_CLOCK, infos, 1, &err), WG_OK);
    assert_int_equal(settings.count, 12);
    check_close(settings.setting[11], levels[99], 1e-12);
    for (size_t i = 0; i < settings.count; i++) {
        bool is_supported = false;
        for (int k = 0; k < 100; k++)
            is_supported |= settings.value[i][0] == levels[k];
        assert_true(is_supported);
        assert_true(settings.value[i][0] >= 0.4 * levels[99] - 15e6);
    }
}

static void says_which_gpu_lacks_the_knob_and_why(void **state)
{
    (void)state;
    const struct wg_device_info info = gpu_with_limits("gpu3", 100, 300, 300);
    const struct wg_device_info *infos[] = {&info};
    struct wg_train_settings settings;
    struct wg_error err;
    assert_int_equal(wg__train_settings_init(&settings, WG_KNOB_GPU_CLOCK, infos, 1, &err),
                     WG_EUNSUPPORTED);
    assert_string_equal(err.text, "gpu3: no gpu_clock: not in this test");
    assert_int_equal(wg__train_settings_init(&settings, WG_KNOB_GPU_CLOCK, infos, 0, &err),
                     WG_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_those_of_the_measured_traces),
        cmocka_unit_test(never_exceeds_the_limit_that_stands),
        cmocka_unit_test(a_wide_range_has_no_more_than_sixteen_steps),
        cmocka_unit_test(different_gpus_are_restrained_alike),
        cmocka_unit_test(clocks_are_supported_ones),
        cmocka_unit_test(says_which_gpu_lacks_the_knob_and_why),
    };
    return run_tests(tests);
}
