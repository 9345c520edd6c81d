/* SPDX-License-Identifier: MIT
 *
 * Which power limits a trial proves to be without effect, from made-up looks at two GPUs.
 */
#include "support/check.h"

#include "live/tune_parts.h"

enum { LIMITS = 4, GPUS = 2 };

struct stage {
    double levels[LIMITS], values[LIMITS * GPUS];
    struct wg_tuning_space *space;
    struct wg_tune_knobs knobs;
    struct wg_tune_power power;
};

static void open_stage(struct stage *stage)
{
    static const double levels[LIMITS] = {100, 200, 300, 400};
    *stage = (struct stage){.knobs = {.count = 1, .devices = {.gpu_count = GPUS, .gpus = {3, 5}}}};
    for (size_t l = 0; l < LIMITS; l++)
        stage->levels[l] = stage->values[l * GPUS] = stage->values[l * GPUS + 1] = levels[l];
    const struct wg_tuning_knob knob = {
        "power_limit", WG_TUNING_POWER_LIMIT, stage->levels, NULL, LIMITS, LIMITS - 1, 0};
    assert_int_equal(wg__tuning_space_box(&stage->space, &knob, 1, NULL, NULL, NULL), WG_OK);
    stage->knobs.space = stage->space;
    stage->knobs.knobs[0] = (struct wg_tune_knob){.role = WG_TUNING_POWER_LIMIT,
                                                  .is_device = true,
                                                  .device_knob = WG_KNOB_POWER_LIMIT,
                                                  .count = LIMITS,
                                                  .levels = stage->levels,
                                                  .device_count = GPUS,
                                                  .devices = stage->knobs.devices.gpus,
                                                  .values = stage->values};
    wg__tune_power_begin(&stage->power);
}

static struct wg_sample sample_of(double power_w, double utilization)
{
    struct wg_sample sample = {.present = 1U << WG_METRIC_POWER_W | 1U << WG_METRIC_UTILIZATION,
                               .has_throttle = true,
                               .throttle = WG_THROTTLE_CLOCK_SETTING};
    sample.values[WG_METRIC_POWER_W] = power_w;
    sample.values[WG_METRIC_UTILIZATION] = utilization;
    return sample;
}

/* Five looks: the first GPU works, the second one idles at 50 W. */
static void look(struct stage *stage, double power_w)
{
    const struct wg_sample busy = sample_of(power_w, 1), idle = sample_of(50, 0);
    for (int i = 0; i < 5; i++) {
        wg__tune_power_look(&stage->power, 0, &busy);
        wg__tune_power_look(&stage->power, 1, &idle);
    }
}

/* The slack level of a trial at `level`; 0: none is told. */
static double slack_level(const struct stage *stage, size_t level)
{
    struct wg_trial told = {.configuration = level};
    wg__tune_tell_slack(&stage->power, &stage->knobs, &told);
    assert_int_equal(told.slack_knob, 0);
    return told.is_slack ? told.slack_level : 0;
}

static void the_lowest_limit_above_the_peak_and_its_margin_is_told(void **state)
{
    static const struct {
        double peak_w;
        size_t level;
        double expected;
    } cases[] = {
        {110, 3, 200}, {110, 1, 200}, {110, 0, 0}, {90, 0, 100},  {96, 3, 200},
        {190, 3, 200}, {191, 3, 300}, {381, 3, 0}, {379, 3, 400},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stage stage;
        open_stage(&stage);
        look(&stage, cases[i].peak_w);
        check_close(slack_level(&stage, cases[i].level), cases[i].expected, 0);
        wg__tuning_space_free(stage.space);
    }
}

/* One of many looks is enough, of the mean of a slow sensor, too. */
static void the_largest_power_of_any_gpu_counts(void **state)
{
    (void)state;
    struct stage stage;
    open_stage(&stage);
    look(&stage, 110);
    struct wg_sample sample = sample_of(50, 0);
    sample.present |= 1U << WG_METRIC_POWER_AVERAGE_W;
    sample.values[WG_METRIC_POWER_AVERAGE_W] = 250;
    wg__tune_power_look(&stage.power, 1, &sample);
    look(&stage, 110);
    check_close(slack_level(&stage, 3), 300, 0);
    wg__tuning_space_free(stage.space);
}

static void a_gpu_that_a_power_limit_has_held_proves_nothing(void **state)
{
    (void)state;
    struct stage stage;
    open_stage(&stage);
    look(&stage, 110);
    struct wg_sample sample = sample_of(110, 1);
    sample.throttle = WG_THROTTLE_POWER_LIMIT;
    wg__tune_power_look(&stage.power, 0, &sample);
    check_close(slack_level(&stage, 3), 0, 0);

    /* Or by its counter, if it grows; what it stood at before is of the past. */
    wg__tune_power_begin(&stage.power);
    look(&stage, 110);
    sample = sample_of(110, 1);
    sample.present |= 1U << WG_METRIC_THROTTLED_POWER_S;
    sample.values[WG_METRIC_THROTTLED_POWER_S] = 7;
    wg__tune_power_look(&stage.power, 0, &sample);
    check_close(slack_level(&stage, 3), 200, 0);
    sample.values[WG_METRIC_THROTTLED_POWER_S] = 7.001;
    wg__tune_power_look(&stage.power, 0, &sample);
    check_close(slack_level(&stage, 3), 0, 0);
    wg__tuning_space_free(stage.space);
}

static void idle_unseen_and_hardly_seen_gpus_prove_nothing(void **state)
{
    (void)state;
    struct stage stage;
    open_stage(&stage);
    check_close(slack_level(&stage, 3), 0, 0);
    const struct wg_sample idle = sample_of(50, 0), busy = sample_of(50, 1);
    for (int i = 0; i < 5; i++) {
        wg__tune_power_look(&stage.power, 0, &idle);
        wg__tune_power_look(&stage.power, 1, &idle);
    }
    check_close(slack_level(&stage, 3), 0, 0);

    wg__tune_power_begin(&stage.power);
    for (int i = 0; i < 5; i++)
        wg__tune_power_look(&stage.power, 0, &busy);
    for (int i = 0; i < 3; i++)
        wg__tune_power_look(&stage.power, 1, &busy);
    check_close(slack_level(&stage, 3), 0, 0);
    wg__tune_power_look(&stage.power, 1, &busy);
    check_close(slack_level(&stage, 3), 100, 0);
    wg__tuning_space_free(stage.space);
}

static void other_knobs_are_never_slack(void **state)
{
    (void)state;
    struct stage stage;
    open_stage(&stage);
    look(&stage, 110);
    stage.knobs.knobs[0].device_knob = WG_KNOB_GPU_CLOCK;
    check_close(slack_level(&stage, 3), 0, 0);
    stage.knobs.knobs[0].is_device = false;
    check_close(slack_level(&stage, 3), 0, 0);
    wg__tuning_space_free(stage.space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_limit_above_the_peak_and_its_margin_is_told),
        cmocka_unit_test(the_largest_power_of_any_gpu_counts),
        cmocka_unit_test(a_gpu_that_a_power_limit_has_held_proves_nothing),
        cmocka_unit_test(idle_unseen_and_hardly_seen_gpus_prove_nothing),
        cmocka_unit_test(other_knobs_are_never_slack),
    };
    return run_tests(tests);
}
