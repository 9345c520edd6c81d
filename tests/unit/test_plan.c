/* SPDX-License-Identifier: MIT
 *
 * Plans against all plans: hundreds of small random networks with residual additions,
 * concatenations, depth-wise convolutions and flattened maps, for each goal.
 */
#include "wave/plan.h"

#include <string.h>

#include "base/alloc.h"
#include "support/plan_networks.h"

enum { SEEDS = 120 };

static const char *const goals[WG_PLAN_GOAL_COUNT] = {"latency", "parameters", "align", "grow"};

/* Options that a seed draws; nothing is left to defaults. */
static struct wg_plan_opts draw_opts(struct plan_stage *stage, enum wg_plan_goal goal)
{
    static const double kept[] = {0.6, 0.8, 0.95, 1, 1.1};
    const bool aligns = goal == WG_PLAN_ALIGN;
    struct wg_plan_opts opts = {
        .goal = goal, .least = 0.5, .most = 1.5, .alignment = 8, .candidates = 24};
    const double share = kept[wg__rng_below(&stage->rng, aligns ? 4 : 5)];
    *(wg__rng_below(&stage->rng, 3) == 0 ? &opts.flops_kept : &opts.kept) = share;
    if (goal == WG_PLAN_PARAMETERS || goal == WG_PLAN_GROW)
        opts.kept = opts.flops_kept = 0;
    if (aligns || wg__rng_below(&stage->rng, 3) == 0)
        opts.pruned = stage->pruned;
    if (wg__rng_below(&stage->rng, 3) == 0)
        opts.importance = stage->importance;
    if (goal == WG_PLAN_PARAMETERS) {
        const uint32_t *present = opts.pruned;
        uint32_t own[STAGE_WIDTHS];
        for (size_t w = 0; present == NULL && w < stage->network.width_count; w++)
            own[w] = stage->widths[w].channels;
        const struct plan_sums sums = stage_sums(stage, &opts, present != NULL ? present : own);
        opts.limit_s = sums.time_s * (0.8 + 0.3 * wg__rng_uniform(&stage->rng));
    }
    return opts;
}

static enum wg_code plan(const struct plan_stage *stage, const struct wg_plan_opts *opts,
                         struct wg_plan *out, struct wg_error *err)
{
    return wg__plan(&stage->network, plan_layer_time, stage, opts, out, err);
}

/* What the plan says of itself, counted anew. */
static struct plan_sums check_sums(const struct plan_stage *stage, const struct wg_plan_opts *opts,
                                   const struct wg_plan *out)
{
    const struct plan_sums sums = stage_sums(stage, opts, out->channels);
    check_close(out->time_s, sums.time_s, 1e-12);
    check_close(out->parameters, sums.parameters, 1e-12);
    check_close(out->flops, sums.flops, 1e-12);
    for (size_t w = 0; w < stage->network.width_count; w++) {
        if (stage->widths[w].is_fixed)
            assert_int_equal(out->channels[w],
                             opts->pruned != NULL ? opts->pruned[w] : stage->widths[w].channels);
    }
    return sums;
}

static void check_seed(uint64_t seed, enum wg_plan_goal goal, size_t states, unsigned *missed)
{
    struct plan_stage stage;
    stage_init(&stage, seed, 2 + (uint32_t)(seed % 4));
    struct wg_plan_opts opts = draw_opts(&stage, goal);
    const struct plan_best best = stage_best(&stage, &opts);
    opts.states = states;
    struct wg_plan out;
    struct wg_error err = {.text = ""};
    const enum wg_code code = plan(&stage, &opts, &out, &err);
    if (!best.is_found) {
        assert_int_equal(code, WG_ESTATE);
        return;
    }
    if (code != WG_OK)
        fail_msg("seed %d, %s: %s", (int)seed, goals[goal], err.text);
    const struct plan_sums sums = check_sums(&stage, &opts, &out);
    const bool by_value = goal == WG_PLAN_PARAMETERS || goal == WG_PLAN_GROW;
    const double cost = by_value ? -sums.value : sums.time_s;
    const double gain = by_value ? -sums.time_s : sums.value;
    if (states > 0) { /* in parts: never better, and it does not claim a proof */
        assert_true(cost >= best.cost - 1e-12 * fabs(best.cost));
        assert_false(out.is_optimal);
        *missed += cost > best.cost + 1e-9 * fabs(best.cost);
    } else {
        if (fabs(cost - best.cost) > 1e-11 * fabs(best.cost) ||
            fabs(gain - best.gain) > 1e-11 * fabs(best.gain))
            fail_msg("seed %d, %s: %.17g gains %.17g, the best is %.17g gaining %.17g", (int)seed,
                     goals[goal], cost, gain, best.cost, best.gain);
        assert_true(out.is_optimal);
        assert_true(out.gap == 0);
    }
    wg__plan_fini(&out);
}

static void finds_the_best_of_all_plans(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (enum wg_plan_goal goal = 0; goal < WG_PLAN_GOAL_COUNT; goal++)
            check_seed(seed, goal, 0, NULL);
    }
}

static void plans_in_parts_where_memory_is_short(void **state)
{
    (void)state;
    unsigned missed = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (enum wg_plan_goal goal = 0; goal < WG_PLAN_GOAL_COUNT; goal++)
            check_seed(seed, goal, 1, &missed);
    }
    assert_true(missed <= SEEDS * WG_PLAN_GOAL_COUNT / 50);
}

/* Both kept: never broken, never better than the best, a proof only where it is the best, and a gap
 * that holds. */
static void keeps_parameters_and_operations(void **state)
{
    (void)state;
    unsigned count = 0, proven = 0, none = 0;
    double excess = 0;
    for (uint64_t seed = 0; seed < UINT64_C(2) * SEEDS; seed++) {
        struct plan_stage stage;
        stage_init(&stage, seed, 2 + (uint32_t)(seed % 4));
        struct wg_plan_opts opts =
            draw_opts(&stage, seed % 2 == 0 ? WG_PLAN_LATENCY : WG_PLAN_ALIGN);
        opts.kept = opts.kept > 0 ? opts.kept : opts.flops_kept;
        opts.flops_kept = opts.kept * (0.8 + 0.4 * wg__rng_uniform(&stage.rng));
        const struct plan_best best = stage_best(&stage, &opts);
        struct wg_plan out;
        struct wg_error err = {.text = ""};
        const enum wg_code code = plan(&stage, &opts, &out, &err);
        if (!best.is_found) {
            assert_int_equal(code, WG_ESTATE);
            continue;
        }
        count++;
        if (code == WG_ESTATE) { /* there is one, and it says no more than that it found none */
            assert_non_null(strstr(err.text, "none was found"));
            none++;
            continue;
        }
        assert_int_equal(code, WG_OK);
        const struct plan_sums sums = check_sums(&stage, &opts, &out);
        const uint32_t *present = opts.pruned;
        uint32_t own[STAGE_WIDTHS];
        for (size_t w = 0; w < stage.network.width_count; w++)
            own[w] = stage.widths[w].channels;
        const struct plan_sums before = stage_sums(&stage, &opts, present != NULL ? present : own);
        assert_true(sums.weighed_parameters >= opts.kept * before.weighed_parameters * (1 - 1e-9));
        assert_true(sums.weighed_flops >= opts.flops_kept * before.weighed_flops * (1 - 1e-9));
        assert_true(out.time_s >= best.cost * (1 - 1e-11));
        if (out.is_optimal)
            check_close(out.time_s, best.cost, 1e-11);
        assert_true(out.time_s * (1 - out.gap) <= best.cost * (1 + 1e-11));
        proven += out.is_optimal;
        excess += out.time_s / best.cost - 1;
        wg__plan_fini(&out);
    }
    if (none > count / 20 || proven < count / 2 || excess > 0.01 * count)
        fail_msg("%u plans: %u proven, %u not found, %g %% above the best", count, proven, none,
                 100 * excess / count);
}

static void growing_never_lengthens_nor_shrinks(void **state)
{
    (void)state;
    for (uint64_t seed = 1000; seed < 1000 + SEEDS; seed++) {
        struct plan_stage stage;
        stage_init(&stage, seed, 7);
        const struct wg_plan_opts opts = {.goal = WG_PLAN_GROW, .most = 3};
        struct wg_plan out;
        struct wg_error err = {.text = ""};
        if (plan(&stage, &opts, &out, &err) != WG_OK)
            fail_msg("%s", err.text);
        (void)check_sums(&stage, &opts, &out);
        assert_true(out.time_s <= out.before_s * (1 + 1e-12));
        assert_true(out.parameters >= out.before_parameters);
        for (size_t w = 0; w < stage.network.width_count; w++)
            assert_true(out.channels[w] >= stage.widths[w].channels);
        wg__plan_fini(&out);
    }
}

static void aligning_stays_within_what_the_network_had(void **state)
{
    (void)state;
    for (uint64_t seed = 2000; seed < 2000 + SEEDS; seed++) {
        struct plan_stage stage;
        stage_init(&stage, seed, 6);
        const struct wg_plan_opts opts = {.goal = WG_PLAN_ALIGN, .pruned = stage.pruned, .most = 3};
        struct wg_plan out;
        struct wg_error err = {.text = ""};
        if (plan(&stage, &opts, &out, &err) != WG_OK)
            fail_msg("%s", err.text);
        const struct plan_sums before = stage_sums(&stage, &opts, stage.pruned);
        check_close(out.before_s, before.time_s, 1e-12);
        check_close(out.before_parameters, before.parameters, 1e-12);
        assert_true(out.parameters >= before.parameters * (1 - 1e-12));
        assert_true(out.time_s <= before.time_s * (1 + 1e-12));
        for (size_t w = 0; w < stage.network.width_count; w++)
            assert_true(out.channels[w] <= stage.widths[w].channels);
        wg__plan_fini(&out);
    }
}

static void says_what_the_least_is_when_nothing_meets_the_limit(void **state)
{
    (void)state;
    struct plan_stage stage;
    stage_init(&stage, 1, 3);
    struct wg_plan_opts opts = {.goal = WG_PLAN_PARAMETERS, .limit_s = 1e-9};
    struct wg_plan out;
    struct wg_error err = {.text = ""};
    assert_int_equal(plan(&stage, &opts, &out, &err), WG_ESTATE);
    if (strstr(err.text, "at most 1e-06 ms") == NULL || strstr(err.text, "the least is") == NULL)
        fail_msg("%s", err.text);
    opts = (struct wg_plan_opts){.goal = WG_PLAN_LATENCY, .kept = 50};
    assert_int_equal(plan(&stage, &opts, &out, &err), WG_ESTATE);
    if (strstr(err.text, "parameters") == NULL || strstr(err.text, "the most is") == NULL)
        fail_msg("%s", err.text);
}

static void rejects_options_out_of_range(void **state)
{
    (void)state;
    struct plan_stage stage;
    stage_init(&stage, 1, 3);
    uint32_t zero[STAGE_WIDTHS] = {0};
    const double negative[STAGE_WIDTHS] = {-1};
    const struct {
        struct wg_plan_opts opts;
        const char *part;
    } cases[] = {
        {{.goal = WG_PLAN_GOAL_COUNT}, "goal"},
        {{.kept = -1}, "share to keep"},
        {{.kept = NAN}, "share to keep"},
        {{.limit_s = -1}, "limit"},
        {{.limit_s = INFINITY}, "limit"},
        {{.least = 1.5}, "range"},
        {{.most = 1e9}, "range"},
        {{.tolerance = 1}, "tolerance"},
        {{.candidates = 3}, "candidates"},
        {{.pruned = zero}, "pruned to 0"},
        {{.importance = negative}, "importance"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wg_plan out;
        struct wg_error err = {.text = ""};
        assert_int_equal(plan(&stage, &cases[i].opts, &out, &err), WG_EINVAL);
        if (strstr(err.text, cases[i].part) == NULL)
            fail_msg("'%s' lacks '%s'", err.text, cases[i].part);
    }
}

static double no_time_of_wide(const void *context, const struct wg_layer *layer)
{
    const struct plan_stage *stage = context;
    const double time_s = plan_layer_time(stage, layer);
    return layer->kind == WG_LAYER_CONV && layer->conv.filters > stage->widths[1].channels
               ? (double)NAN
               : time_s;
}

static void leaves_out_widths_whose_time_is_not_known(void **state)
{
    (void)state;
    struct plan_stage stage;
    stage_init(&stage, 4, 1);
    const struct wg_plan_opts opts = {.goal = WG_PLAN_PARAMETERS, .most = 3, .limit_s = 1};
    struct wg_plan out;
    struct wg_error err = {.text = ""};
    assert_int_equal(wg__plan(&stage.network, no_time_of_wide, &stage, &opts, &out, &err), WG_OK);
    assert_int_equal(out.channels[1], stage.widths[1].channels);
    wg__plan_fini(&out);
    stage.widths[1].channels--;
    assert_int_equal(wg__plan(&stage.network, no_time_of_wide, &stage, &opts, &out, &err), WG_OK);
    wg__plan_fini(&out);
    stage.widths[1].channels = 1; /* the layer's own are more */
    stage.layers[0].out.part_count = 0;
    assert_int_equal(wg__plan(&stage.network, no_time_of_wide, &stage, &opts, &out, &err),
                     WG_EUNSUPPORTED);
    if (strstr(err.text, "'a'") == NULL)
        fail_msg("%s", err.text);
}

static void keeps_a_network_without_free_widths(void **state)
{
    (void)state;
    struct plan_stage stage;
    stage_init(&stage, 5, 3);
    for (size_t w = 0; w < stage.network.width_count; w++)
        stage.widths[w].is_fixed = true;
    for (enum wg_plan_goal goal = 0; goal < WG_PLAN_GOAL_COUNT; goal++) {
        const struct wg_plan_opts opts = {.goal = goal};
        struct wg_plan out;
        struct wg_error err = {.text = ""};
        assert_int_equal(plan(&stage, &opts, &out, &err), WG_OK);
        (void)check_sums(&stage, &opts, &out);
        assert_true(out.is_optimal);
        check_close(out.time_s, out.before_s, 0);
        wg__plan_fini(&out);
    }
}

static void survives_each_failing_allocation(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct plan_stage stage;
        stage_init(&stage, 7, 4);
        const struct wg_plan_opts opts = {
            .goal = WG_PLAN_LATENCY, .states = i % 2, .kept = 1, .flops_kept = i < 2 ? 0 : 1};
        struct wg_plan out;
        struct wg_error err = {.text = ""};
        enum wg_code code = WG_ENOMEM;
        for (size_t nth = 1; code != WG_OK; nth++) {
            wg__alloc_fail_from(nth);
            code = plan(&stage, &opts, &out, &err);
            wg__alloc_fail_from(0);
            assert_true(code == WG_OK || code == WG_ENOMEM);
            assert_true(nth < 100000);
        }
        wg__plan_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_best_of_all_plans),
        cmocka_unit_test(plans_in_parts_where_memory_is_short),
        cmocka_unit_test(keeps_parameters_and_operations),
        cmocka_unit_test(growing_never_lengthens_nor_shrinks),
        cmocka_unit_test(aligning_stays_within_what_the_network_had),
        cmocka_unit_test(says_what_the_least_is_when_nothing_meets_the_limit),
        cmocka_unit_test(rejects_options_out_of_range),
        cmocka_unit_test(leaves_out_widths_whose_time_is_not_known),
        cmocka_unit_test(keeps_a_network_without_free_widths),
        cmocka_unit_test(survives_each_failing_allocation),
    };
    return run_tests(tests);
}
