/* SPDX-License-Identifier: MIT
 *
 * Measured grids: replicates, levels, bounds, what is feasible and near-optimal, by hand.
 */
#include "simulate/tuning_grid.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "support/tuning_stage.h"

static void rows_become_configurations(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage, stage_text);
    struct wg_tuning_grid *grid = stage_grid(&stage);
    assert_int_equal(grid->rows, 5);
    assert_int_equal(grid->space->count, 4);
    assert_int_equal(grid->space->default_configuration, 1); /* batch least, clock highest */
    const double costs[] = {8, 9, 3, 4.2}, times[] = {2, 1, 4, 4};
    for (size_t c = 0; c < 4; c++) {
        check_close(grid->costs[c], costs[c], 1e-15);
        check_close(wg__tuning_grid_figure(grid, c, 0), times[c], 1e-15);
        assert_int_equal(wg__tuning_level(grid->space, c, 0), c / 2);
        assert_int_equal(wg__tuning_level(grid->space, c, 1), c % 2);
    }
    check_close(grid->goal.limits[0].bound, 4, 1e-15);
    assert_string_equal(grid->goal.limits[0].name, "t");
    wg__tuning_grid_close(grid);
    stage_close(&stage);
}

static void what_is_to_be_found_is_judged_by_true_figures(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage, "kind,batch,clock_hz,t,e\na,1,1,1,10\na,2,1,2,8\na,3,1,3,7.8\na,4,1,9,1\n");
    struct wg_tuning_grid *grid = stage_grid(&stage);
    struct wg_arena arena;
    struct wg_tuning_target target;
    struct wg_error err = {0};
    wg__arena_init(&arena);
    assert_int_equal(wg__tuning_grid_judge(grid, NULL, &arena, &target, &err), WG_OK);
    assert_int_equal(target.available, 4);
    assert_int_equal(target.feasible, 3);
    assert_int_equal(target.near_optimal, 2); /* 8 is within 5 % of 7.8 */
    assert_int_equal(target.optimum, 2);
    assert_true(!target.is_near[0] && target.is_near[1] && target.is_near[2] && !target.is_near[3]);
    const bool out[] = {false, false, true, false};
    assert_int_equal(wg__tuning_grid_judge(grid, out, &arena, &target, &err), WG_OK);
    assert_int_equal(target.available, 3);
    assert_int_equal(target.near_optimal, 1);
    assert_int_equal(target.optimum, 1);
    const bool all_but_last[] = {true, true, true, false};
    assert_int_equal(wg__tuning_grid_judge(grid, all_but_last, &arena, &target, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "--limit 't': no configuration of "));
    assert_non_null(strstr(err.text, " has at most 4, the best has 9"));
    wg__arena_fini(&arena);
    wg__tuning_grid_close(grid);
    stage_close(&stage);
}

static void bounds_of_floors_are_relative_to_the_greatest(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage, stage_text);
    stage.request.limit_count = 3;
    stage.request.limits[1] = (struct wg_tuning_bound){.expression = "batch / t",
                                                       .kind = WG_TUNING_OTHER,
                                                       .is_minimum = true,
                                                       .is_relative = true,
                                                       .value = 0.5};
    stage.request.limits[2] = (struct wg_tuning_bound){.expression = "e", .value = 8.5};
    struct wg_tuning_grid *grid = stage_grid(&stage);
    check_close(grid->goal.limits[1].bound, 0.5 * (4.0 / 3 + 4.0 / 5) / 2, 1e-15);
    check_close(grid->goal.limits[2].bound, 8.5, 1e-15);
    struct wg_arena arena;
    struct wg_tuning_target target;
    wg__arena_init(&arena);
    assert_int_equal(wg__tuning_grid_judge(grid, NULL, &arena, &target, NULL), WG_OK);
    assert_int_equal(target.feasible,
                     2); /* not the first: 0.5 requests a second; not the default: 9 J */
    assert_int_equal(target.optimum, 2);
    wg__arena_fini(&arena);
    wg__tuning_grid_close(grid);
    stage_close(&stage);
}

static void categories_keep_their_labels_in_the_order_of_the_file(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage, "kind,batch,clock_hz,t,e\na,fp32,1,1,3\na,int8,1,1,1\na,fp16,1,1,2\n");
    stage.request.axes[0].role = WG_TUNING_CATEGORY;
    struct wg_tuning_grid *grid = stage_grid(&stage);
    static const char *const labels[] = {"fp32", "int8", "fp16"};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(grid->space->knobs[0].labels[i], labels[i]);
        assert_int_equal(wg__tuning_level_named(&grid->space->knobs[0], labels[i]), i);
    }
    assert_int_equal(wg__tuning_level_named(&grid->space->knobs[0], "int4"), 3);
    assert_int_equal(wg__tuning_level_named(&grid->space->knobs[1], "1.0"), 0);
    assert_int_equal(grid->space->default_configuration, 0);
    wg__tuning_grid_close(grid);
    stage_close(&stage);
}

static void holes_are_no_configurations(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage, "kind,batch,clock_hz,t,e\na,1,1,1,3\na,1,2,1,1\na,2,1,1,2\n");
    struct wg_tuning_grid *grid = stage_grid(&stage);
    assert_int_equal(grid->space->count, 3);
    wg__tuning_grid_close(grid);
    stage.request.default_count = 1;
    stage.request.defaults[0] = (struct wg_tuning_match){"batch", "2"};
    struct wg_error err = {0};
    grid = NULL;
    assert_int_equal(wg__tuning_grid_open(&grid, &stage.request, &err), WG_EINVAL);
    assert_string_equal(err.text, "--default: no row has batch=2,clock_hz=2; expected a "
                                  "configuration that was measured");
    assert_null(grid);
    stage_close(&stage);
}

static void what_replicates_differ_in_is_named(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    /* `mhz` follows the clock, `id` is of each row alone, `note` is the same throughout. */
    wg__buffer_init(&text);
    wg__buffer_puts(&text, "kind,batch,clock_hz,t,e,mhz,id,px,note\n");
    for (unsigned i = 0; i < 40; i++)
        wg__buffer_printf(&text, "%c,%u,%u,1,2,%u,%u,%u,n\n", i % 4 < 2 ? 'a' : 'b', 1 + i / 20,
                          1 + i / 10 % 2, i / 10 % 2, i, 100 * (i % 2));
    stage_open(&stage, text.data);
    wg__buffer_fini(&text);
    struct wg_tuning_grid *grid = stage_grid(&stage);
    assert_string_equal(grid->differing, "px");
    wg__tuning_grid_close(grid);
    stage.request.matches[0].value = "*";
    grid = stage_grid(&stage);
    assert_string_equal(grid->differing, "kind, px");
    wg__tuning_grid_close(grid);
    stage.request.matches[stage.request.match_count++] = (struct wg_tuning_match){"px", "0"};
    stage.request.matches[0].value = "a";
    grid = stage_grid(&stage);
    assert_null(grid->differing); /* repetitions that nothing tells apart */
    wg__tuning_grid_close(grid);
    stage_close(&stage);
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage, stage_text);
    stage.request.axes[stage.request.axis_count++] =
        (struct wg_tuning_axis){"name", WG_TUNING_CATEGORY};
    stage.request.axes[0].role = WG_TUNING_BATCH;
    stage.request.matches[0].value = "*";
    stage.request.default_count = 1;
    stage.request.defaults[0] = (struct wg_tuning_match){"name", "x"};
    size_t failures = 0;
    for (size_t nth = 1;; nth++) {
        struct wg_tuning_grid *grid = NULL;
        struct wg_error err = {0};
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__tuning_grid_open(&grid, &stage.request, &err);
        wg__alloc_fail_from(0);
        wg__tuning_grid_close(grid);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        assert_non_null(strstr(err.text, "out of memory"));
        failures++;
    }
    assert_in_range(failures, 15, 60);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_become_configurations),
        cmocka_unit_test(what_is_to_be_found_is_judged_by_true_figures),
        cmocka_unit_test(bounds_of_floors_are_relative_to_the_greatest),
        cmocka_unit_test(categories_keep_their_labels_in_the_order_of_the_file),
        cmocka_unit_test(holes_are_no_configurations),
        cmocka_unit_test(what_replicates_differ_in_is_named),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
    };
    return run_tests(tests);
}
