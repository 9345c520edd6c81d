/* SPDX-License-Identifier: MIT
 *
 * Choices by hand, and what must hold of every choice: against the plan, which its own test holds
 * against trying everything.
 */
#include "schedule/batcher.h"

#include <stdlib.h>

#include "base/rng.h"
#include "support/check.h"

enum { ROWS_MAX = 8 };

struct stage {
    struct wg_batcher batcher;
    struct wg_plan_item items[WG_PLAN_ITEMS_MAX];
    size_t count;
    double oldest_s;
    double batch_s[ROWS_MAX + 1];
    double now_s;
    double earliest_s;
    enum wg_verdict verdicts[WG_PLAN_ITEMS_MAX];
    struct wg_batch_choice choice;
};

/* Batches of r rows take 1 + (r - 1) / 2 s; now is 100. */
static struct stage stage_of(enum wg_batcher_kind kind, enum wg_drop_kind drop)
{
    struct stage stage = {
        .batcher = {.kind = kind, .drop = drop, .max_rows = 4, .likely_share = 1.0},
        .now_s = 100.0,
        .earliest_s = 100.0,
        .oldest_s = 99.0,
    };
    for (unsigned r = 1; r <= ROWS_MAX; r++)
        stage.batch_s[r] = 1.0 + 0.5 * (double)(r - 1);
    return stage;
}

/* A request of one row with its deadline in `in_s` from now. */
static void add(struct stage *stage, double in_s)
{
    stage->items[stage->count++] =
        (struct wg_plan_item){.deadline_s = stage->now_s + in_s, .rows = 1};
}

static void choose(struct stage *stage)
{
    wg__batcher_choose(&stage->batcher, stage->items, stage->count, stage->oldest_s, stage->batch_s,
                       stage->now_s, stage->earliest_s, stage->verdicts, &stage->choice);
}

/* One letter a request: Wait, Take, Past, Hopeless, Sacrificed. */
static void expect_choice(struct stage *stage, const char *expected, double wake_s)
{
    char text[WG_PLAN_ITEMS_MAX + 1] = "";
    choose(stage);
    for (size_t i = 0; i < stage->count; i++)
        text[i] = "WTPHS"[stage->verdicts[i]];
    assert_string_equal(text, expected);
    if (wake_s == HUGE_VAL)
        assert_true(stage->choice.wake_s == HUGE_VAL);
    else
        check_close(stage->choice.wake_s, wake_s, 1e-12);
}

/* -- Wattgov -------------------------------------------------------------------------------- */

static void takes_as_many_as_keep_the_oldest_deadline(void **state)
{
    (void)state;
    struct stage stage = stage_of(WG_BATCHER_WATTGOV, WG_DROP_STANDARD);
    add(&stage, 1.6);
    add(&stage, 7.0);
    add(&stage, 8.0);
    expect_choice(&stage, "TTW", 108.0);
    assert_int_equal(stage.choice.take_count, 2);
    assert_int_equal(stage.choice.rows, 2);
    stage.items[0].deadline_s = 105.0;
    expect_choice(&stage, "TTT", HUGE_VAL);
}

static void early_drops_what_cannot_be_met_and_what_costs_two_others(void **state)
{
    (void)state;
    struct stage stage = stage_of(WG_BATCHER_WATTGOV, WG_DROP_EARLY);
    add(&stage, -0.1);
    add(&stage, 0.9); /* a batch takes a second */
    add(&stage, 1.2); /* can be met, but only alone */
    add(&stage, 2.4); /* these only together, and at once */
    add(&stage, 2.4);
    add(&stage, 2.4);
    expect_choice(&stage, "PHSTTT", HUGE_VAL);
    assert_int_equal(stage.choice.drop_count, 3);
    stage.count--; /* one more can be met behind it: it costs only one, which is no gain */
    expect_choice(&stage, "PHTWW", 101.4);
}

static void standard_drops_only_what_is_past(void **state)
{
    (void)state;
    struct stage stage = stage_of(WG_BATCHER_WATTGOV, WG_DROP_STANDARD);
    add(&stage, 0.0);
    add(&stage, 0.9);
    add(&stage, 1.2);
    add(&stage, 2.2);
    add(&stage, 2.2);
    add(&stage, 2.2);
    expect_choice(&stage, "PWWTTT", 100.9); /* the doomed would make the three late */
    stage.items[2].deadline_s = 100.95;
    for (size_t i = 3; i < 6; i++)
        stage.items[i].deadline_s = 102.6; /* one row has room now */
    expect_choice(&stage, "PTWTTT", 100.95);
    assert_int_equal(stage.choice.rows, 4);
}

static void alone_the_doomed_are_served_one_by_one(void **state)
{
    (void)state;
    struct stage stage = stage_of(WG_BATCHER_WATTGOV, WG_DROP_STANDARD);
    add(&stage, 0.2);
    add(&stage, 0.8);
    add(&stage, 0.8);
    expect_choice(&stage, "WTW", 100.2);
    stage.items[1].rows = 3;
    expect_choice(&stage, "WWT", 100.2);
    stage.batcher.drop = WG_DROP_EARLY;
    expect_choice(&stage, "HHH", HUGE_VAL);
}

/* A bound is exceeded seldom; who misses by the bound but not by the prediction would mostly be
 * met. */
static void early_does_not_drop_what_is_late_only_by_the_bound(void **state)
{
    (void)state;
    struct stage stage = stage_of(WG_BATCHER_WATTGOV, WG_DROP_EARLY);
    stage.batcher.likely_share = 0.8;
    add(&stage, 0.9);
    expect_choice(&stage, "T", HUGE_VAL); /* nobody else waits */
    stage.items[0].deadline_s = stage.now_s + 0.79;
    expect_choice(&stage, "H", HUGE_VAL);
    stage.items[0].deadline_s = stage.now_s + 0.9;
    add(&stage, 1.2);
    expect_choice(&stage, "WT", 100.1); /* beside it the other would be late */
    stage.items[1].deadline_s = stage.now_s + 1.6;
    expect_choice(&stage, "TT", HUGE_VAL); /* it costs nobody anything */
}

static void a_lower_priority_never_costs_a_higher_one_its_turn(void **state)
{
    (void)state;
    struct stage stage = stage_of(WG_BATCHER_WATTGOV, WG_DROP_EARLY);
    add(&stage, 1.2);
    for (size_t i = 0; i < 3; i++)
        add(&stage, 2.0);
    expect_choice(&stage, "STTT", HUGE_VAL);
    for (size_t i = 0; i < 4; i++)
        stage.items[i].priority = i == 0 ? 1 : 2;
    expect_choice(&stage, "TWWW", 101.0);
    for (size_t i = 0; i < 4; i++)
        stage.items[i].priority = i < 3 ? 1 : 2;
    expect_choice(&stage, "TWWW", 101.0); /* costs its own level 2, saves none: it goes first */
}

static void drops_are_told_while_the_server_is_busy(void **state)
{
    (void)state;
    struct stage stage = stage_of(WG_BATCHER_WATTGOV, WG_DROP_EARLY);
    stage.earliest_s = 100.5;
    add(&stage, -1.0);
    add(&stage, 0.5);
    add(&stage, 1.4); /* not if the server is busy until 100.5, but who knows */
    expect_choice(&stage, "PHW", 100.4);
    assert_int_equal(stage.choice.take_count, 0);
}

/* -- The others ----------------------------------------------------------------------------- */

static void triton_takes_whoever_waits(void **state)
{
    (void)state;
    struct stage stage = stage_of(WG_BATCHER_TRITON, WG_DROP_STANDARD);
    add(&stage, -1.0);
    for (size_t i = 0; i < 5; i++)
        add(&stage, 1.0 + (double)i);
    expect_choice(&stage, "PTTTTW", 105.0);
    stage.items[3].rows = 4; /* closes the batch */
    expect_choice(&stage, "PTTWWW", 103.0);
    stage.items[1].deadline_s = 100.5;
    stage.batcher.drop = WG_DROP_EARLY;
    expect_choice(&stage, "PHTWWW", 103.0 - 2.5);
}

static void triton_waits_for_its_delay_or_a_full_batch(void **state)
{
    (void)state;
    struct stage stage = stage_of(WG_BATCHER_TRITON, WG_DROP_STANDARD);
    stage.batcher.delay_s = 1.25;
    add(&stage, 9.0);
    add(&stage, 9.0);
    expect_choice(&stage, "WW", 100.25);
    assert_int_equal(stage.choice.rows, 0);
    stage.items[1].rows = 3;
    expect_choice(&stage, "TT", HUGE_VAL); /* full */
    stage.items[0].rows = 2;
    expect_choice(&stage, "TW", 109.0); /* the next one does not fit */
    stage.items[0].rows = stage.items[1].rows = 1;
    stage.now_s = stage.earliest_s = 100.25; /* as it was told */
    expect_choice(&stage, "TT", HUGE_VAL);
}

static void none_takes_one_request(void **state)
{
    (void)state;
    struct stage stage = stage_of(WG_BATCHER_NONE, WG_DROP_STANDARD);
    add(&stage, -1.0);
    add(&stage, 0.5);
    add(&stage, 2.0);
    expect_choice(&stage, "PTW", 102.0);
    stage.batcher.drop = WG_DROP_EARLY;
    expect_choice(&stage, "PHT", HUGE_VAL);
    stage.count = 0;
    expect_choice(&stage, "", HUGE_VAL);
}

/* -- What must hold of every choice --------------------------------------------------------- */

static void random_stage(struct wg_rng *rng, struct stage *stage)
{
    *stage = stage_of((enum wg_batcher_kind)wg__rng_below(rng, WG_BATCHER_COUNT),
                      (enum wg_drop_kind)wg__rng_below(rng, WG_DROP_COUNT));
    stage->batcher.max_rows = 1 + wg__rng_below(rng, ROWS_MAX);
    if (wg__rng_below(rng, 2) == 0)
        stage->batcher.likely_share = 0.3 + 0.7 * wg__rng_uniform(rng);
    stage->batcher.delay_s = wg__rng_below(rng, 2) == 0 ? 0.0 : wg__rng_uniform(rng) * 2.0;
    stage->now_s = stage->earliest_s = wg__rng_uniform(rng) * 1e6;
    stage->oldest_s = stage->now_s - wg__rng_uniform(rng) * 2.0;
    if (wg__rng_below(rng, 8) == 0)
        stage->earliest_s += wg__rng_uniform(rng);
    double t_s = 0.2 + wg__rng_uniform(rng);
    for (unsigned r = 1; r <= ROWS_MAX; r++) {
        stage->batch_s[r] = t_s;
        t_s += wg__rng_uniform(rng) * 0.5;
    }
    const size_t count = wg__rng_below(rng, wg__rng_below(rng, 4) == 0 ? WG_PLAN_ITEMS_MAX + 1 : 9);
    const double step_s = wg__rng_uniform(rng) * 2.0;
    double in_s = -0.5;
    for (size_t i = 0; i < count; i++) {
        in_s += wg__rng_uniform(rng) * step_s;
        add(stage, in_s);
        if (wg__rng_below(rng, 3) == 0)
            stage->items[i].rows = 1 + wg__rng_below(rng, stage->batcher.max_rows);
    }
}

static bool is_hopeless(const struct stage *stage, size_t i)
{
    return stage->batcher.likely_share * stage->batch_s[stage->items[i].rows] >
           stage->items[i].deadline_s - stage->now_s;
}

static bool is_doomed(const struct stage *stage, size_t i)
{
    return stage->batch_s[stage->items[i].rows] > stage->items[i].deadline_s - stage->now_s;
}

static void check_verdicts(const struct stage *stage)
{
    const bool is_early = stage->batcher.drop == WG_DROP_EARLY;
    size_t taken = 0;
    size_t dropped = 0;
    unsigned rows = 0;
    for (size_t i = 0; i < stage->count; i++) {
        const enum wg_verdict verdict = stage->verdicts[i];
        const bool is_past = stage->items[i].deadline_s <= stage->now_s;
        assert_true((verdict == WG_VERDICT_PAST) == is_past);
        assert_true((verdict == WG_VERDICT_HOPELESS) ==
                    (is_early && !is_past && is_hopeless(stage, i)));
        if (verdict == WG_VERDICT_SACRIFICED)
            assert_true(is_early && stage->batcher.kind == WG_BATCHER_WATTGOV);
        taken += verdict == WG_VERDICT_TAKE;
        dropped += verdict >= WG_VERDICT_PAST;
        rows += verdict == WG_VERDICT_TAKE ? stage->items[i].rows : 0;
    }
    assert_int_equal(stage->choice.take_count, taken);
    assert_int_equal(stage->choice.drop_count, dropped);
    assert_int_equal(stage->choice.rows, rows);
    assert_true(rows <= stage->batcher.max_rows);
    assert_true(stage->choice.wake_s > stage->now_s);
    if (stage->earliest_s > stage->now_s)
        assert_int_equal(taken, 0);
    else if (stage->batcher.kind == WG_BATCHER_NONE)
        assert_int_equal(taken, dropped < stage->count);
    else if (stage->batcher.kind == WG_BATCHER_WATTGOV || stage->batcher.delay_s == 0.0)
        assert_true(taken > 0 || dropped == stage->count);
}

/* The least that are missed of those of one of two sets of verdicts, from `start_s` on. */
static size_t least_missed(const struct stage *stage, unsigned verdicts, double start_s)
{
    struct wg_plan_item items[WG_PLAN_ITEMS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < stage->count; i++)
        if ((verdicts >> stage->verdicts[i] & 1) != 0 && !is_doomed(stage, i))
            items[count++] = stage->items[i];
    struct wg_plan plan;
    wg__batch_plan(items, count, stage->batch_s, stage->batcher.max_rows, start_s, WG_PLAN_FREE,
                   &plan);
    return plan.missed;
}

/* The choice is the beginning of a plan that misses as few as can be; who is taken along late
 * changes nothing for the others. */
static void check_wattgov(const struct stage *stage)
{
    const unsigned all =
        1U << WG_VERDICT_WAIT | 1U << WG_VERDICT_TAKE | 1U << WG_VERDICT_SACRIFICED;
    const size_t best = least_missed(stage, all, stage->now_s);
    size_t missed = 0;
    const double end_s = stage->now_s + stage->batch_s[stage->choice.rows];
    for (size_t i = 0; i < stage->count; i++) {
        missed += stage->verdicts[i] == WG_VERDICT_SACRIFICED;
        if (stage->verdicts[i] != WG_VERDICT_TAKE || is_doomed(stage, i))
            continue;
        const bool is_late = end_s > stage->items[i].deadline_s + 1e-9;
        assert_true(!is_late || stage->batcher.drop == WG_DROP_STANDARD);
        missed += is_late;
    }
    missed += least_missed(stage, 1U << WG_VERDICT_WAIT, end_s - 1e-9);
    assert_true(missed <= best);
}

static void every_choice_keeps_what_must_hold(void **state)
{
    (void)state;
    struct wg_rng root;
    wg__rng_init(&root, 74);
    size_t verdicts[5] = {0};
    for (uint64_t round = 0; round < 20000; round++) {
        struct wg_rng rng = wg__rng_split(&root, round);
        struct stage stage;
        random_stage(&rng, &stage);
        choose(&stage);
        check_verdicts(&stage);
        if (stage.batcher.kind == WG_BATCHER_WATTGOV && stage.choice.take_count > 0)
            check_wattgov(&stage);
        for (size_t i = 0; i < stage.count; i++)
            verdicts[stage.verdicts[i]]++;
    }
    for (size_t i = 0; i < 5; i++)
        assert_true(verdicts[i] > 100);
}

/* Three levels, each with deadlines from the beginning on. */
static void split_into_levels(struct wg_rng *rng, struct stage *stage)
{
    double back_s = 0.0;
    for (size_t i = 0; i < stage->count; i++) {
        const bool is_next = i > 0 && stage->items[i - 1].priority < 3 &&
                             wg__rng_below(rng, (unsigned)stage->count) < 3;
        stage->items[i].priority = i == 0 ? 1 : stage->items[i - 1].priority + is_next;
        if (is_next)
            back_s = wg__rng_uniform(rng) * (stage->items[i].deadline_s - stage->now_s);
        stage->items[i].deadline_s -= back_s;
    }
}

/* A request is sacrificed only where meeting it costs two others of its level theirs. */
static void a_sacrifice_saves_at_least_two_others(void **state)
{
    (void)state;
    struct wg_rng root;
    wg__rng_init(&root, 75);
    size_t sacrifices[2] = {0};
    for (uint64_t round = 0; round < 20000; round++) {
        struct wg_rng rng = wg__rng_split(&root, round);
        struct stage stage;
        random_stage(&rng, &stage);
        stage.batcher.kind = WG_BATCHER_WATTGOV;
        stage.batcher.drop = WG_DROP_EARLY;
        if (round % 2 == 1)
            split_into_levels(&rng, &stage);
        choose(&stage);
        check_verdicts(&stage);
        struct wg_plan_item items[WG_PLAN_ITEMS_MAX];
        size_t count = 0;
        for (size_t i = stage.count; i-- > 0;) { /* those behind it that plans count on */
            if (stage.verdicts[i] == WG_VERDICT_PAST || is_doomed(&stage, i))
                continue;
            if (count > 0 && items[WG_PLAN_ITEMS_MAX - count].priority != stage.items[i].priority)
                count = 0;
            count++;
            items[WG_PLAN_ITEMS_MAX - count] = stage.items[i];
            if (stage.verdicts[i] != WG_VERDICT_SACRIFICED)
                continue;
            const struct wg_plan_item *first = &items[WG_PLAN_ITEMS_MAX - count];
            struct wg_plan with;
            struct wg_plan without;
            wg__batch_plan(first, count, stage.batch_s, stage.batcher.max_rows, stage.now_s,
                           WG_PLAN_MEET_FIRST, &with);
            wg__batch_plan(first + 1, count - 1, stage.batch_s, stage.batcher.max_rows, stage.now_s,
                           WG_PLAN_FREE, &without);
            assert_true(with.missed >= without.missed + 2);
            sacrifices[round % 2]++;
        }
    }
    assert_true(sacrifices[0] > 300 && sacrifices[1] > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_as_many_as_keep_the_oldest_deadline),
        cmocka_unit_test(early_drops_what_cannot_be_met_and_what_costs_two_others),
        cmocka_unit_test(standard_drops_only_what_is_past),
        cmocka_unit_test(alone_the_doomed_are_served_one_by_one),
        cmocka_unit_test(early_does_not_drop_what_is_late_only_by_the_bound),
        cmocka_unit_test(a_lower_priority_never_costs_a_higher_one_its_turn),
        cmocka_unit_test(drops_are_told_while_the_server_is_busy),
        cmocka_unit_test(triton_takes_whoever_waits),
        cmocka_unit_test(triton_waits_for_its_delay_or_a_full_batch),
        cmocka_unit_test(none_takes_one_request),
        cmocka_unit_test(every_choice_keeps_what_must_hold),
        cmocka_unit_test(a_sacrifice_saves_at_least_two_others),
    };
    return run_tests(tests);
}
