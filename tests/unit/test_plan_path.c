/* SPDX-License-Identifier: MIT
 *
 * Paths against dynamic programming over every gain: graphs of several states a level with whole
 * gains, whose costs follow their gains so closely that labels become many.
 */
#include "wave/plan_graph.h"

#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "support/check.h"

enum { LEVELS = 30, STATES = 3, CHOICES = 12, GAIN = 30 };
enum { ARCS = LEVELS * STATES * CHOICES };

struct stage {
    struct wg_plan_graph graph;
    struct wg_plan_level levels[LEVELS + 1];
    struct wg_plan_arc arcs[ARCS];
};

/* `noise`: how far a cost may lie from what its gain is worth. */
static void stage_init(struct stage *stage, uint64_t seed, double noise)
{
    struct wg_rng rng;
    wg__rng_init(&rng, seed);
    memset(stage, 0, sizeof *stage);

    stage->graph = (struct wg_plan_graph){
        .levels = stage->levels, .level_count = LEVELS, .arcs = stage->arcs, .fits = true};
    for (size_t l = 0; l <= LEVELS; l++) {
        struct wg_plan_level *level = &stage->levels[l];
        level->state_count = l == 0 || l == LEVELS ? 1 : STATES;
        level->first_state = stage->graph.state_count;
        level->choice_count = l == LEVELS ? 0 : CHOICES;
        level->first_arc = stage->graph.arc_count;
        stage->graph.state_count += level->state_count;
        stage->graph.arc_count += level->state_count * level->choice_count;
    }
    for (size_t l = 0; l < LEVELS; l++) {
        const struct wg_plan_level *level = &stage->levels[l];
        for (size_t i = 0; i < level->state_count * CHOICES; i++) {
            struct wg_plan_arc *arc = &stage->arcs[level->first_arc + i];
            arc->gain = wg__rng_below(&rng, GAIN + 1);
            arc->cost = 10 + arc->gain * (1 + noise * wg__rng_uniform(&rng));
            arc->to = wg__rng_below(&rng, (uint32_t)level[1].state_count);
            if (wg__rng_below(&rng, 10) == 0)
                arc->to = WG_PLAN_NO_STATE;
        }
    }
}

/* The least cost of a path that gains `need` at least; INFINITY: there is none. */
static double least_cost(const struct stage *stage, double need)
{
    static double now[STATES * (LEVELS * GAIN + 1)];
    static double next[STATES * (LEVELS * GAIN + 1)];
    const size_t gains = LEVELS * GAIN + 1;
    for (size_t i = 0; i < STATES * gains; i++)
        now[i] = INFINITY;
    now[0] = 0;
    for (size_t l = 0; l < LEVELS; l++) {
        const struct wg_plan_level *level = &stage->levels[l];
        for (size_t i = 0; i < STATES * gains; i++)
            next[i] = INFINITY;
        for (size_t i = 0; i < level->state_count * CHOICES; i++) {
            const struct wg_plan_arc *arc = &stage->arcs[level->first_arc + i];
            const size_t gain = (size_t)arc->gain;
            for (size_t g = 0; g + gain < gains && arc->to != WG_PLAN_NO_STATE; g++) {
                const double cost = now[i / CHOICES * gains + g] + arc->cost;
                double *to = &next[arc->to * gains + g + gain];
                *to = cost < *to ? cost : *to;
            }
        }
        memcpy(now, next, STATES * gains * sizeof *now);
    }
    double least = INFINITY;
    for (size_t g = (size_t)ceil(need); g < gains; g++)
        least = fmin(least, now[g]);
    return least;
}

/* The sums of what was chosen are those that are told. */
static void check_choices(const struct stage *stage, const struct wg_plan_path *path)
{
    double cost = 0;
    double gain = 0;
    size_t state = 0;
    for (size_t l = 0; l < LEVELS; l++) {
        const struct wg_plan_arc *arc =
            &stage->arcs[stage->levels[l].first_arc + state * CHOICES + path->choices[l]];
        assert_int_not_equal(arc->to, WG_PLAN_NO_STATE);
        cost += arc->cost;
        gain += arc->gain;
        state = arc->to;
    }
    check_close(path->cost, cost, 1e-12);
    check_close(path->gain, gain, 1e-12);
}

static void check_need(const struct stage *stage, double need, size_t limit, unsigned *proven)
{
    uint16_t choices[LEVELS] = {0};
    struct wg_plan_path path = {.choices = choices, .label_limit = limit};
    struct wg_error err = {.text = ""};
    assert_int_equal(wg__plan_path(&stage->graph, need, &path, &err), WG_OK);
    const double least = least_cost(stage, need);
    assert_int_equal(path.is_found, !isinf(least));
    check_choices(stage, &path);
    if (!path.is_found)
        return;
    assert_true(path.gain >= need);
    assert_true(path.cost >= least * (1 - 1e-12));
    assert_true(path.bound <= least * (1 + 1e-12));
    assert_true(path.bound >= path.cost * (1 - 0.011));
    if (path.is_proven)
        check_close(path.cost, least, 1e-12);
    *proven += path.is_proven;
}

static void finds_the_cheapest_path_that_gains_enough(void **state)
{
    (void)state;
    static struct stage stage;
    unsigned proven = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        stage_init(&stage, seed, 0.3);
        for (unsigned part = 0; part < 7; part++)
            check_need(&stage, part * (LEVELS * GAIN / 7.0), 0, &proven);
    }
    assert_true(proven >= 8 * 5); /* whole gains leave few labels */
}

static void bounds_hold_where_no_proof_is_found(void **state)
{
    (void)state;
    static struct stage stage;
    unsigned proven = 0;
    for (uint64_t seed = 100; seed < 160; seed++) {
        stage_init(&stage, seed, 0.3);
        check_need(&stage, 50 + (double)(seed - 100) * 10, 1 + (size_t)seed % 60, &proven);
    }
    assert_in_range(proven, 1, 30);
}

static void tells_the_most_that_can_be_gained(void **state)
{
    (void)state;
    static struct stage stage;
    stage_init(&stage, 3, 0.3);
    uint16_t choices[LEVELS] = {0};
    struct wg_plan_path path = {.choices = choices};
    struct wg_error err = {.text = ""};
    assert_int_equal(wg__plan_path(&stage.graph, 1e9, &path, &err), WG_OK);
    assert_false(path.is_found);
    check_choices(&stage, &path);
    assert_true(isfinite(least_cost(&stage, path.gain)));
    assert_true(isinf(least_cost(&stage, path.gain + 1)));
}

static void tells_that_there_is_no_path(void **state)
{
    (void)state;
    static struct stage stage;
    stage_init(&stage, 3, 0.3);
    for (size_t i = 0; i < (size_t)STATES * CHOICES; i++)
        stage.arcs[stage.levels[7].first_arc + i].to = WG_PLAN_NO_STATE;
    uint16_t choices[LEVELS] = {0};
    struct wg_plan_path path = {.choices = choices};
    struct wg_error err = {.text = ""};
    assert_int_equal(wg__plan_path(&stage.graph, 0, &path, &err), WG_OK);
    assert_false(path.is_found);
    assert_true(isinf(path.cost));
}

static void counts_what_no_variable_touches(void **state)
{
    (void)state;
    static struct stage stage;
    stage_init(&stage, 5, 0.3);
    uint16_t choices[LEVELS] = {0};
    struct wg_plan_path bare = {.choices = choices};
    struct wg_plan_path path = {.choices = choices};
    struct wg_error err = {.text = ""};
    assert_int_equal(wg__plan_path(&stage.graph, 700, &bare, &err), WG_OK);
    stage.graph.cost = 1000;
    stage.graph.gain = 500;
    assert_int_equal(wg__plan_path(&stage.graph, 1200, &path, &err), WG_OK);
    check_close(path.cost, bare.cost + 1000, 1e-12);
    check_close(path.gain, bare.gain + 500, 1e-12);
    check_close(path.bound, bare.bound + 1000, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_cheapest_path_that_gains_enough),
        cmocka_unit_test(bounds_hold_where_no_proof_is_found),
        cmocka_unit_test(tells_the_most_that_can_be_gained),
        cmocka_unit_test(tells_that_there_is_no_path),
        cmocka_unit_test(counts_what_no_variable_touches),
    };
    return run_tests(tests);
}
