/* SPDX-License-Identifier: MIT
 *
 * What a failure implies, each rule against its own sentence written as a loop over the space.
 */
#include "support/check.h"
#include "support/tuner_stage.h"

#include "base/alloc.h"
#include "optimize/tuning_bans.h"

struct stage {
    struct wg_tuning_space *space;
    struct wg_tuning_bans bans;
    uint8_t measured[TUNING_CLOCKS * TUNING_BATCHES * TUNING_ENGINES];
};

static void open_stage(struct stage *stage)
{
    *stage = (struct stage){.space = tuning_space(3)};
    assert_int_equal(wg__tuning_bans_init(&stage->bans, stage->space, NULL), WG_OK);
}

static void close_stage(struct stage *stage)
{
    wg__tuning_bans_fini(&stage->bans);
    wg__tuning_space_free(stage->space);
}

static size_t at(const struct stage *stage, size_t clock, size_t batch, size_t engine)
{
    const size_t c = wg__tuning_space_find(stage->space, (const size_t[]){clock, batch, engine});

    assert_true(c < stage->space->count);
    return c;
}

static size_t count(const struct stage *stage, const bool *marks)
{
    size_t marked = 0;

    for (size_t c = 0; c < stage->space->count; c++)
        marked += marks[c];
    return marked;
}

static void out_of_memory_bans_larger_batches_at_the_same_other_knobs(void **state)
{
    struct stage stage;

    (void)state;
    open_stage(&stage);
    stage.measured[at(&stage, 4, 3, 1)] = 1; /* it worked once: it is not banned */
    wg__tuning_ban_memory(&stage.bans, at(&stage, 4, 1, 1), stage.measured);
    assert_int_equal(count(&stage, stage.bans.is_banned), 2);
    assert_true(stage.bans.is_banned[at(&stage, 4, 1, 1)]);
    assert_true(stage.bans.is_banned[at(&stage, 4, 2, 1)]);
    close_stage(&stage);
}

/* Batch and replicas together: larger in one and smaller in the other says nothing. */
static void more_replicas_are_larger_too(void **state)
{
    static const struct wg_tuning_knob knobs[] = {
        {"batch", WG_TUNING_TRAIN_BATCH, tuning_batches, NULL, 4, 0, 0},
        {"replicas", WG_TUNING_REPLICAS, tuning_batches, NULL, 4, 0, 0},
    };
    struct wg_tuning_space *space = NULL;
    struct wg_tuning_bans bans;
    const uint8_t measured[16] = {0};

    (void)state;
    assert_int_equal(wg__tuning_space_box(&space, knobs, 2, NULL, NULL, NULL), WG_OK);
    assert_int_equal(wg__tuning_bans_init(&bans, space, NULL), WG_OK);
    wg__tuning_ban_memory(&bans, 4 * 1 + 2, measured);
    for (size_t b = 0; b < 4; b++)
        for (size_t r = 0; r < 4; r++)
            assert_int_equal(bans.is_banned[4 * b + r], b >= 1 && r >= 2);
    wg__tuning_bans_fini(&bans);
    wg__tuning_space_free(space);
}

static void a_refused_level_leaves_the_space(void **state)
{
    struct stage stage;

    (void)state;
    open_stage(&stage);
    stage.measured[at(&stage, 3, 0, 0)] = 1; /* whether it was measured or not */
    wg__tuning_ban_level(&stage.bans, 0, 3);
    for (size_t c = 0; c < stage.space->count; c++)
        assert_int_equal(stage.bans.is_banned[c], wg__tuning_level(stage.space, c, 0) == 3);
    assert_int_equal(count(&stage, stage.bans.is_banned), TUNING_BATCHES * TUNING_ENGINES);
    close_stage(&stage);
}

static void a_group_is_banned_while_another_is_left(void **state)
{
    struct stage stage;
    const size_t group = sizeof stage.measured / TUNING_ENGINES;

    (void)state;
    open_stage(&stage);
    stage.measured[at(&stage, 0, 0, 1)] = 1;
    wg__tuning_ban_group(&stage.bans, at(&stage, 4, 1, 1), stage.measured);
    assert_int_equal(count(&stage, stage.bans.is_banned), group - 1);
    for (size_t c = 0; c < stage.space->count; c++)
        assert_true(!stage.bans.is_banned[c] || wg__tuning_level(stage.space, c, 2) == 1);
    wg__tuning_ban_group(&stage.bans, at(&stage, 4, 1, 0), stage.measured);
    assert_int_equal(count(&stage, stage.bans.is_banned), 2 * group - 1);
    wg__tuning_ban_group(&stage.bans, at(&stage, 4, 1, 2), stage.measured);
    /* Of engine 1 what was measured is left, so engine 2 may go; then nothing else is left of it.
     */
    assert_int_equal(count(&stage, stage.bans.is_banned), 3 * group - 1);
    wg__tuning_ban(&stage.bans, at(&stage, 0, 0, 1));
    assert_int_equal(count(&stage, stage.bans.is_banned), 3 * group);
    close_stage(&stage);
}

static void the_last_group_is_never_banned(void **state)
{
    struct wg_tuning_space *space = tuning_space(2); /* no engines: one group */
    struct wg_tuning_bans bans;
    const uint8_t measured[TUNING_CLOCKS * TUNING_BATCHES] = {0};

    (void)state;
    assert_int_equal(wg__tuning_bans_init(&bans, space, NULL), WG_OK);
    wg__tuning_ban_group(&bans, 3, measured);
    for (size_t c = 0; c < space->count; c++)
        assert_false(bans.is_banned[c]);
    wg__tuning_bans_fini(&bans);
    wg__tuning_space_free(space);
}

static void rule_out(struct stage *stage, double figure, enum wg_tuning_kind kind, bool is_minimum,
                     double error)
{
    const struct wg_tuning_goal goal = {
        .objective = WG_TUNING_ENERGY,
        .limit_count = 1,
        .limits = {{.name = "t", .kind = kind, .bound = 1, .is_minimum = is_minimum}}};
    const struct wg_trial trial = {.configuration = at(stage, 4, 1, 1),
                                   .objective = 1,
                                   .figures = {figure},
                                   .figure_errors = {error}};

    wg__tuning_rule_out_slower(&stage->bans, &goal, &trial, 0.02, stage->measured);
}

static void a_latency_far_over_its_limit_rules_out_slower_clocks_only(void **state)
{
    struct stage stage;

    (void)state;
    open_stage(&stage);
    rule_out(&stage, 1.3, WG_TUNING_TIME, false, 0); /* within 1.25 and three errors */
    rule_out(&stage, 1.9, WG_TUNING_TIME, false, 0.2);
    rule_out(&stage, (double)NAN, WG_TUNING_TIME, false, 0);
    rule_out(&stage, 10, WG_TUNING_OTHER, false, 0);
    rule_out(&stage, 10, WG_TUNING_TIME, true, 0);
    assert_int_equal(count(&stage, stage.bans.is_out), 0);
    stage.measured[at(&stage, 2, 1, 1)] = 1;
    rule_out(&stage, 1.4, WG_TUNING_TIME, false, 0);
    for (size_t clock = 0; clock < TUNING_CLOCKS; clock++)
        assert_int_equal(stage.bans.is_out[at(&stage, clock, 1, 1)], clock < 4 && clock != 2);
    assert_int_equal(count(&stage, stage.bans.is_out), 3);
    assert_int_equal(count(&stage, stage.bans.is_banned), 0);
    close_stage(&stage);
}

/* A slower GPU at a faster memory may be faster on the whole. */
static void nothing_is_concluded_across_memory_clocks(void **state)
{
    static const struct wg_tuning_knob knobs[] = {
        {"gpu", WG_TUNING_GPU_CLOCK, tuning_clocks, NULL, 3, 2, 0},
        {"mem", WG_TUNING_MEM_CLOCK, tuning_clocks, NULL, 3, 2, 0},
        {"cap", WG_TUNING_POWER_LIMIT, tuning_clocks, NULL, 3, 2, 0},
    };
    const struct wg_tuning_goal goal = {
        .limit_count = 1, .limits = {{.name = "t", .kind = WG_TUNING_TIME, .bound = 1}}};
    const struct wg_trial slow = {.configuration = 13, .objective = 1, .figures = {2}}; /* 1 1 1 */
    const uint8_t measured[27] = {0};
    struct wg_tuning_space *space = NULL;
    struct wg_tuning_bans bans;

    (void)state;
    assert_int_equal(wg__tuning_space_box(&space, knobs, 3, NULL, NULL, NULL), WG_OK);
    assert_int_equal(wg__tuning_bans_init(&bans, space, NULL), WG_OK);
    wg__tuning_rule_out_slower(&bans, &goal, &slow, 0.02, measured);
    for (size_t c = 0; c < 27; c++) {
        const size_t gpu = c / 9, memory = c / 3 % 3, cap = c % 3;

        assert_int_equal(bans.is_out[c], memory == 1 && gpu <= 1 && cap <= 1 && c != 13);
    }
    wg__tuning_bans_fini(&bans);
    wg__tuning_space_free(space);
}

static void every_failing_allocation_is_reported(void **state)
{
    struct wg_tuning_space *space = tuning_space(1);
    struct wg_tuning_bans bans;

    (void)state;
    for (size_t nth = 1; nth <= 2; nth++) {
        wg__alloc_fail_from(nth);
        assert_int_equal(wg__tuning_bans_init(&bans, space, NULL), WG_ENOMEM);
        wg__alloc_fail_from(0);
    }
    wg__tuning_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_of_memory_bans_larger_batches_at_the_same_other_knobs),
        cmocka_unit_test(more_replicas_are_larger_too),
        cmocka_unit_test(a_refused_level_leaves_the_space),
        cmocka_unit_test(a_group_is_banned_while_another_is_left),
        cmocka_unit_test(the_last_group_is_never_banned),
        cmocka_unit_test(a_latency_far_over_its_limit_rules_out_slower_clocks_only),
        cmocka_unit_test(nothing_is_concluded_across_memory_clocks),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return run_tests(tests);
}
