/* SPDX-License-Identifier: MIT
 *
 * Times of a served model by hand, and every field when it is wrong.
 */
#include "simulate/serving_profile.h"

#include <string.h>

#include "support/check.h"
#include "support/serving_profile.h"

#define EXACT 1e-14

static void a_formula_gives_the_time_of_a_batch(void **state)
{
    (void)state;
    const struct wg_serving_profile profile = make_profile();
    check_close(wg__profile_batch_s(&profile, 0, 1), 0.1, EXACT);
    check_close(wg__profile_batch_s(&profile, 0, 8), 0.45, EXACT);
}

/* .25 depends on nothing, .5 on the GPU's clock, .25 on the memory's. */
static void slower_clocks_stretch_their_share(void **state)
{
    (void)state;
    struct wg_serving_profile profile = make_profile();
    check_close(wg__profile_batch_s(&profile, 1, 1), 0.1 * (0.25 + 1.0 + 0.25), EXACT);
    check_close(wg__profile_step_s(&profile, 1, 4, false), 0.05 * 1.5, EXACT);
    profile.ladder.rungs[1].mem_clock = 0.25;
    check_close(wg__profile_batch_s(&profile, 1, 1), 0.1 * (0.25 + 1.0 + 1.0), EXACT);
}

static void the_last_step_of_an_iteration_brings_the_update(void **state)
{
    (void)state;
    const struct wg_serving_profile profile = make_profile();
    check_close(wg__profile_step_s(&profile, 0, 8, false), 0.09, EXACT);
    check_close(wg__profile_step_s(&profile, 0, 8, true), 0.11, EXACT);
}

static void a_table_is_linear_between_its_rows(void **state)
{
    (void)state;
    struct wg_serving_profile profile = make_profile();
    profile.latency = (struct wg_latency_law){
        .point_count = 3, .batch = {1.0, 2.0, 8.0}, .time_s = {0.1, 0.1, 0.4}};
    static const double expected[] = {0.1, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4};
    for (unsigned rows = 1; rows <= 8; rows++)
        check_close(wg__profile_batch_s(&profile, 0, rows), expected[rows - 1], EXACT);
    profile.max_batch = 1;
    profile.latency.point_count = 1;
    check_close(wg__profile_batch_s(&profile, 0, 1), 0.1, 0.0);
}

static void a_rung_may_have_times_of_its_own(void **state)
{
    (void)state;
    struct wg_serving_profile profile = make_profile();
    profile.rung_has_latency[1] = true;
    profile.rung_latency[1] = (struct wg_latency_law){.fixed_s = 1.0, .per_row_s = 0.5};
    check_close(wg__profile_batch_s(&profile, 1, 2), 2.0, EXACT);
    check_close(wg__profile_batch_s(&profile, 0, 2), 0.15, EXACT);
}

static void expect_refused(const struct wg_serving_profile *profile, const char *field)
{
    struct wg_error err = {0};
    if (wg__profile_check(profile, &err) != WG_EINVAL || strstr(err.text, field) == NULL)
        fail_msg("%s: '%s'", field, err.text);
}

/* Sets one field to a value and expects it to be named. */
#define REFUSED(field, value, name)                                                                \
    do {                                                                                           \
        struct wg_serving_profile wrong = make_profile();                                          \
        wrong.field = (value);                                                                     \
        expect_refused(&wrong, name);                                                              \
    } while (0)

static void a_wrong_field_is_named(void **state)
{
    (void)state;
    REFUSED(max_batch, 0, "max_batch");
    REFUSED(max_batch, 1025, "max_batch");
    REFUSED(latency.fixed_s, -1.0, "latency.fixed_s");
    REFUSED(latency.per_row_s, (double)NAN, "latency.per_row_s");
    REFUSED(gpu_share, 1.5, "latency_share.gpu_clock");
    REFUSED(mem_share, -0.1, "latency_share.mem_clock");
    REFUSED(mem_share, 0.6, "together");
    REFUSED(noise, -0.1, "noise");
    REFUSED(noise, 1.01, "noise is 1.01, expected 0 to 1");
    REFUSED(inference_slowdown, 0.5, "interference.inference");
    REFUSED(finetune_slowdown, HUGE_VAL, "interference.finetune");
    REFUSED(step_fixed_s, -1.0, "finetune.fixed_s");
    REFUSED(step_per_row_s, -1.0, "finetune.per_row_s");
    REFUSED(update_s, (double)NAN, "finetune.update_s");
}

static void a_wrong_ladder_is_named(void **state)
{
    (void)state;
    REFUSED(ladder.count, 0, "clocks.ladder");
    REFUSED(ladder.count, WG_RUNGS_MAX + 1, "clocks.ladder");
    REFUSED(ladder.change_s, -1.0, "clocks.change_s");
    REFUSED(ladder.change_j, -1.0, "clocks.change_j");
    REFUSED(ladder.rungs[0].gpu_clock, 0.9, "clocks.ladder[0].gpu_clock");
    REFUSED(ladder.rungs[1].gpu_clock, 1.1, "clocks.ladder[1].gpu_clock");
    REFUSED(ladder.rungs[1].mem_clock, 0.0, "clocks.ladder[1].mem_clock");
    REFUSED(ladder.rungs[1].busy_power_w, -1.0, "clocks.ladder[1].busy_w");
    REFUSED(ladder.rungs[1].idle_power_w, (double)NAN, "clocks.ladder[1].idle_w");
    REFUSED(ladder.rungs[1].finetune_power_w, -1.0, "clocks.ladder[1].finetune_w");
    REFUSED(ladder.rungs[1].name[0], '\0', "clocks.ladder[1].name");
    struct wg_serving_profile twins = make_profile();
    twins.ladder.rungs[1] = twins.ladder.rungs[0];
    expect_refused(&twins, "clocks.ladder[1].name");
    struct wg_serving_profile own = make_profile();
    own.rung_has_latency[1] = true;
    expect_refused(&own, "clocks.ladder[1].latency");
}

static void a_wrong_table_is_named(void **state)
{
    (void)state;
    struct wg_serving_profile profile = make_profile();
    const struct wg_latency_law good = {
        .point_count = 3, .batch = {1.0, 2.0, 8.0}, .time_s = {0.1, 0.1, 0.4}};
    profile.latency = good;
    assert_int_equal(wg__profile_check(&profile, NULL), WG_OK);
    profile.latency.batch[0] = 2.0;
    expect_refused(&profile, "latency[0].batch");
    profile.latency = good;
    profile.latency.batch[2] = 2.0;
    expect_refused(&profile, "latency[2].batch");
    profile.latency = good;
    profile.latency.time_s[1] = 0.05;
    expect_refused(&profile, "latency[1].s");
    profile.latency = good;
    profile.latency.time_s[0] = 0.0;
    expect_refused(&profile, "latency[0].s");
    profile.latency = good;
    profile.latency.batch[2] = 7.0;
    expect_refused(&profile, "max_batch (8)");
    profile.latency.point_count = WG_PROFILE_POINTS_MAX + 1;
    expect_refused(&profile, "rows");
}

static void a_right_profile_passes(void **state)
{
    (void)state;
    struct wg_serving_profile profile = make_profile();
    assert_int_equal(wg__profile_check(&profile, NULL), WG_OK);
    profile.gpu_share = 0.7; /* .7 + .3 is a bit more than 1 */
    profile.mem_share = 0.3;
    assert_int_equal(wg__profile_check(&profile, NULL), WG_OK);
    profile.has_finetune = false;
    profile.step_per_row_s = -1.0; /* not looked at */
    assert_int_equal(wg__profile_check(&profile, NULL), WG_OK);
    profile.latency = (struct wg_latency_law){0};
    expect_refused(&profile, "latency");
    profile = make_profile();
    profile.step_fixed_s = profile.step_per_row_s = 0.0;
    expect_refused(&profile, "finetune");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_formula_gives_the_time_of_a_batch),
        cmocka_unit_test(slower_clocks_stretch_their_share),
        cmocka_unit_test(the_last_step_of_an_iteration_brings_the_update),
        cmocka_unit_test(a_table_is_linear_between_its_rows),
        cmocka_unit_test(a_rung_may_have_times_of_its_own),
        cmocka_unit_test(a_wrong_field_is_named),
        cmocka_unit_test(a_wrong_ladder_is_named),
        cmocka_unit_test(a_wrong_table_is_named),
        cmocka_unit_test(a_right_profile_passes),
    };
    return run_tests(tests);
}
