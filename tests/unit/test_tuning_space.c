/* SPDX-License-Identifier: MIT
 *
 * The space of a tuning: order and holes of a box against nested loops, finding against a linear
 * search, and a message for each thing that cannot be.
 */
#include "support/check.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "optimize/tuning_space.h"

static const double clocks[] = {300, 600, 900};
static const double batches[] = {1, 4};
static const double kinds[] = {0, 1};
static const char *const kind_labels[] = {"fp16", "fp32"};

static const struct wg_tuning_knob knobs[] = {
    {"clock", WG_TUNING_GPU_CLOCK, clocks, NULL, 3, 2, 0.02},
    {"batch", WG_TUNING_BATCH, batches, NULL, 2, 0, 0},
    {"precision", WG_TUNING_CATEGORY, kinds, kind_labels, 2, 1, 600},
};

/* No batch of 4 at the lowest clock. */
static bool allows(const size_t *levels, void *context)
{
    ++*(size_t *)context;
    return !(levels[0] == 0 && levels[1] == 1);
}

static void a_box_lists_what_is_allowed_the_last_knob_fastest(void **state)
{
    struct wg_tuning_space *space = NULL;
    size_t asked = 0, c = 0;

    (void)state;
    assert_int_equal(wg__tuning_space_box(&space, knobs, 3, allows, &asked, NULL), WG_OK);
    assert_int_equal(asked, 12);
    assert_int_equal(space->count, 10);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 2; j++)
            for (size_t k = 0; k < 2; k++) {
                if (i == 0 && j == 1)
                    continue;
                assert_int_equal(wg__tuning_level(space, c, 0), i);
                assert_int_equal(wg__tuning_level(space, c, 1), j);
                assert_int_equal(wg__tuning_level(space, c, 2), k);
                assert_true(wg__tuning_value(space, c, 0) == clocks[i]);
                c++;
            }
    assert_int_equal(c, 10);
    assert_int_equal(space->default_configuration, 7); /* 900, 1, fp32 */
    wg__tuning_space_free(space);
}

static void a_space_keeps_copies(void **state)
{
    struct wg_tuning_space *space = NULL;
    double levels[] = {1, 2};
    char name[] = "knob", label[] = "int8";
    const char *labels[] = {label, label};
    struct wg_tuning_knob knob = {name, WG_TUNING_BATCH, levels, labels, 2, 0, 0};

    (void)state;
    assert_int_equal(wg__tuning_space_box(&space, &knob, 1, NULL, NULL, NULL), WG_OK);
    memset(name, 'x', 4);
    memset(label, 'x', 4);
    levels[1] = 77;
    assert_string_equal(space->knobs[0].name, "knob");
    assert_string_equal(space->knobs[0].labels[1], "int8");
    assert_true(wg__tuning_value(space, 1, 0) == 2);
    wg__tuning_space_free(space);
}

static void a_list_is_found_in_any_order(void **state)
{
    enum { KNOBS = 3, LEVELS = 7, COUNT = 120 };
    struct wg_tuning_space *space = NULL;
    double levels[LEVELS];
    struct wg_tuning_knob listed[KNOBS];
    uint16_t level_of[COUNT * KNOBS];
    bool is_used[LEVELS * LEVELS * LEVELS] = {false};
    struct wg_rng rng;

    (void)state;
    wg__rng_init(&rng, 5);
    for (size_t i = 0; i < LEVELS; i++)
        levels[i] = 1 + (double)i;
    for (size_t k = 0; k < KNOBS; k++)
        listed[k] = (struct wg_tuning_knob){
            k == 0 ? "a" : k == 1 ? "b" : "c", WG_TUNING_BATCH, levels, NULL, LEVELS, 0, 0};
    for (size_t c = 0; c < COUNT;) {
        const uint32_t box = c == 60 ? 0 : wg__rng_below(&rng, LEVELS * LEVELS * LEVELS);

        if (is_used[box] || (box == 0 && c != 60))
            continue;
        is_used[box] = true;
        level_of[KNOBS * c] = (uint16_t)(box / 49);
        level_of[KNOBS * c + 1] = (uint16_t)(box / 7 % 7);
        level_of[KNOBS * c + 2] = (uint16_t)(box % 7);
        c++;
    }
    assert_int_equal(wg__tuning_space_list(&space, listed, KNOBS, level_of, COUNT, NULL), WG_OK);
    assert_int_equal(space->default_configuration, 60);
    for (size_t box = 0; box < sizeof is_used; box++) {
        const size_t wanted[KNOBS] = {box / 49, box / 7 % 7, box % 7};
        const size_t found = wg__tuning_space_find(space, wanted);

        assert_int_equal(found < COUNT, is_used[box]);
        for (size_t k = 0; found < COUNT && k < KNOBS; k++)
            assert_int_equal(wg__tuning_level(space, found, k), wanted[k]);
    }
    assert_int_equal(wg__tuning_space_find(space, (const size_t[]){0, 0, LEVELS}), COUNT);
    wg__tuning_space_free(space);
}

static void a_switch_costs_what_its_knobs_cost(void **state)
{
    struct wg_tuning_space *space = NULL;

    (void)state;
    assert_int_equal(wg__tuning_space_box(&space, knobs, 3, NULL, NULL, NULL), WG_OK);
    check_close_abs(wg__tuning_switch_s(space, 0, 0), 0, 0, 0);
    check_close(wg__tuning_switch_s(space, 0, 1), 600, 1e-15);
    check_close(wg__tuning_switch_s(space, 0, 4), 0.02, 1e-15);
    check_close(wg__tuning_switch_s(space, 0, 7), 600.02, 1e-15);
    wg__tuning_space_free(space);
}

static void roles_have_words(void **state)
{
    enum wg_tuning_role role = WG_TUNING_SPLIT;

    (void)state;
    for (unsigned i = 0; i < WG_TUNING_ROLE_COUNT; i++) {
        assert_true(wg__tuning_role_parse(wg__tuning_role_word((enum wg_tuning_role)i), &role));
        assert_int_equal(role, i);
    }
    assert_string_equal(wg__tuning_role_word(WG_TUNING_TRAIN_BATCH), "train_batch");
    assert_null(wg__tuning_role_word(WG_TUNING_ROLE_COUNT));
    assert_false(wg__tuning_role_parse("gpu", &role));
    assert_false(wg__tuning_role_parse(NULL, &role));
    assert_int_equal(role, WG_TUNING_CATEGORY);
}

static void expect_error(const struct wg_tuning_knob *bad, size_t count, const char *text)
{
    struct wg_tuning_space *space = NULL;
    struct wg_error err = {0};

    assert_int_equal(wg__tuning_space_box(&space, bad, count, NULL, NULL, &err), WG_EINVAL);
    assert_string_equal(err.text, text);
    assert_null(space);
}

static void a_bad_knob_is_named(void **state)
{
    static const double falling[] = {2, 1}, zero[] = {0, 1}, below[] = {-1, 1}, gap[] = {0, 2};
    const double not_finite[] = {1, (double)INFINITY};
    const struct wg_tuning_knob twice[] = {knobs[0], knobs[0]};

    (void)state;
    expect_error(knobs, 0, "there are 0 knobs: 1 to 12 can be tuned");
    expect_error(twice, 2, "two knobs are called 'clock'");
    expect_error(&(struct wg_tuning_knob){"", 0, clocks, NULL, 3, 0, 0}, 1, "knob 1 has no name");
    expect_error(&(struct wg_tuning_knob){"k", (enum wg_tuning_role)11, clocks, NULL, 3, 0, 0}, 1,
                 "knob 'k' has the unknown role 11");
    expect_error(&(struct wg_tuning_knob){"k", 0, clocks, NULL, 0, 0, 0}, 1,
                 "knob 'k' has 0 levels: 1 to 1024 can be");
    expect_error(&(struct wg_tuning_knob){"k", 0, clocks, NULL, 3, 3, 0}, 1,
                 "the default of knob 'k' is level 3 of 3");
    expect_error(&(struct wg_tuning_knob){"k", 0, clocks, NULL, 3, 0, -1}, 1,
                 "changing knob 'k' takes -1 s: at least 0 is needed");
    expect_error(&(struct wg_tuning_knob){"k", 0, not_finite, NULL, 2, 0, 0}, 1,
                 "level 2 of knob 'k' is not a finite number");
    expect_error(&(struct wg_tuning_knob){"k", 0, falling, NULL, 2, 0, 0}, 1,
                 "the levels of knob 'k' must rise: 1 follows 2");
    expect_error(&(struct wg_tuning_knob){"k", WG_TUNING_CATEGORY, gap, NULL, 2, 0, 0}, 1,
                 "level 2 of category 'k' is 2, not 1");
    expect_error(&(struct wg_tuning_knob){"k", WG_TUNING_CORES, zero, NULL, 2, 0, 0}, 1,
                 "level 0 of knob 'k': cores must be above 0");
    expect_error(&(struct wg_tuning_knob){"k", WG_TUNING_DELAY, below, NULL, 2, 0, 0}, 1,
                 "level -1 of knob 'k': delay must be at least 0");
}

static bool allows_little(const size_t *levels, void *context)
{
    (void)context;
    return levels[0] == 0;
}

static void what_no_space_can_hold_is_refused(void **state)
{
    struct wg_tuning_space *space = NULL;
    struct wg_error err = {0};
    double many[1024];
    struct wg_tuning_knob large[2] = {{"a", 0, many, NULL, 1024, 0, 0},
                                      {"b", 0, many, NULL, 1024, 0, 0}};
    static const uint16_t repeated[] = {2, 0, 1, 0, 0, 0, 2, 0, 1};
    static const uint16_t beyond[] = {2, 0, 1, 0, 2, 0};

    (void)state;
    for (size_t i = 0; i < 1024; i++)
        many[i] = 1 + (double)i;
    expect_error(large, 2, "more than 1000000 configurations are allowed: name fewer levels");
    assert_int_equal(wg__tuning_space_box(&space, large, 2, allows_little, NULL, NULL), WG_OK);
    assert_int_equal(space->count, 1024);
    wg__tuning_space_free(space);
    assert_int_equal(wg__tuning_space_box(&space, knobs, 3, allows_little, NULL, &err), WG_EINVAL);
    assert_string_equal(err.text, "the default (clock at 900, ...) is not among the 4 "
                                  "configurations allowed");
    assert_int_equal(wg__tuning_space_list(&space, knobs, 3, repeated, 3, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "of the list are the same"));
    assert_int_equal(wg__tuning_space_list(&space, knobs, 3, beyond, 2, &err), WG_EINVAL);
    assert_string_equal(err.text, "configuration 1 has level 2 of 2 of knob 'batch'");
    assert_int_equal(wg__tuning_space_list(&space, knobs, 3, beyond, 0, &err), WG_EINVAL);
    wg__tuning_space_free(NULL);
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    static const uint16_t listed[] = {2, 0, 1, 0, 0, 0};
    size_t failures = 0;

    (void)state;
    for (size_t nth = 1;; nth++) {
        struct wg_tuning_space *box = NULL, *list = NULL;

        wg__alloc_fail_from(nth);
        enum wg_code code = wg__tuning_space_box(&box, knobs, 3, NULL, NULL, NULL);
        if (code == WG_OK)
            code = wg__tuning_space_list(&list, knobs, 3, listed, 2, NULL);
        wg__alloc_fail_from(0);
        wg__tuning_space_free(box);
        wg__tuning_space_free(list);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        failures++;
    }
    assert_in_range(failures, 6, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_box_lists_what_is_allowed_the_last_knob_fastest),
        cmocka_unit_test(a_space_keeps_copies),
        cmocka_unit_test(a_list_is_found_in_any_order),
        cmocka_unit_test(a_switch_costs_what_its_knobs_cost),
        cmocka_unit_test(roles_have_words),
        cmocka_unit_test(a_bad_knob_is_named),
        cmocka_unit_test(what_no_space_can_hold_is_refused),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
    };
    return run_tests(tests);
}
