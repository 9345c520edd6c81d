/* SPDX-License-Identifier: MIT
 *
 * Objectives: texts that parse, texts that do not, and prices worked out by hand.
 */
#include "support/check.h"

#include <string.h>

#include "optimize/objective.h"

static void parses_energy_and_time(void **state)
{
    struct wg_objective objective;

    (void)state;
    assert_int_equal(wg__objective_parse("energy", &objective, NULL), WG_OK);
    assert_int_equal(objective.kind, WG_OBJECTIVE_ENERGY);
    assert_int_equal(wg__objective_parse("time", &objective, NULL), WG_OK);
    assert_int_equal(objective.kind, WG_OBJECTIVE_TIME);
    check_close(objective.max_power_w, 0.0, 0.0);
}

static void parses_cost_with_eta_at_both_ends(void **state)
{
    struct wg_objective objective;

    (void)state;
    assert_int_equal(wg__objective_parse("cost:0", &objective, NULL), WG_OK);
    assert_int_equal(objective.kind, WG_OBJECTIVE_COST);
    check_close(objective.eta, 0.0, 0.0);
    assert_int_equal(wg__objective_parse("cost:0.25", &objective, NULL), WG_OK);
    check_close(objective.eta, 0.25, 0.0);
    assert_int_equal(wg__objective_parse("cost:1", &objective, NULL), WG_OK);
    check_close(objective.eta, 1.0, 0.0);
}

static void parses_slowdown_from_one_up(void **state)
{
    struct wg_objective objective;

    (void)state;
    assert_int_equal(wg__objective_parse("slowdown:1", &objective, NULL), WG_OK);
    assert_int_equal(objective.kind, WG_OBJECTIVE_SLOWDOWN);
    check_close(objective.max_slowdown, 1.0, 0.0);
    assert_int_equal(wg__objective_parse("slowdown:1.1", &objective, NULL), WG_OK);
    check_close(objective.max_slowdown, 1.1, 0.0);
}

static void rejects_other_texts_and_leaves_the_objective_alone(void **state)
{
    static const char *const texts[] = {
        "",         "Energy",    "energy ",       "joules",       "cost",
        "cost:",    "cost:1.1",  "cost:-0.1",     "cost:nan",     "cost:0.5x",
        "slowdown", "slowdown:", "slowdown:0.99", "slowdown:inf", "slowdown:nan",
        "time:1",   "cost: 0.5",
    };
    struct wg_objective objective = {.kind = WG_OBJECTIVE_TIME, .eta = 7.0};
    struct wg_error err;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        err.text[0] = '\0';
        if (wg__objective_parse(texts[i], &objective, &err) != WG_EINVAL)
            fail_msg("'%s' was accepted", texts[i]);
        if (strstr(err.text, texts[i]) == NULL)
            fail_msg("the message '%s' does not repeat '%s'", err.text, texts[i]);
    }
    assert_int_equal(wg__objective_parse(NULL, &objective, &err), WG_EINVAL);
    assert_int_equal(objective.kind, WG_OBJECTIVE_TIME);
    check_close(objective.eta, 7.0, 0.0);
}

static void checks_only_the_fields_that_the_kind_reads(void **state)
{
    struct wg_objective objective = {.kind = WG_OBJECTIVE_ENERGY, .eta = 9.0};
    struct wg_error err;

    (void)state;
    assert_int_equal(wg__objective_check(&objective, &err), WG_OK);
    objective.kind = WG_OBJECTIVE_TIME;
    assert_int_equal(wg__objective_check(&objective, &err), WG_EINVAL);
    objective.max_power_w = 250.0;
    assert_int_equal(wg__objective_check(&objective, &err), WG_OK);
    objective.kind = WG_OBJECTIVE_COST;
    assert_int_equal(wg__objective_check(&objective, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "eta"));
    objective.eta = (double)NAN;
    assert_int_equal(wg__objective_check(&objective, &err), WG_EINVAL);
    objective.eta = 0.5;
    assert_int_equal(wg__objective_check(&objective, &err), WG_OK);
    objective.kind = WG_OBJECTIVE_SLOWDOWN;
    assert_int_equal(wg__objective_check(&objective, &err), WG_EINVAL);
    objective.max_slowdown = 1.0;
    assert_int_equal(wg__objective_check(&objective, &err), WG_OK);
    objective.max_slowdown = (double)INFINITY;
    assert_int_equal(wg__objective_check(&objective, &err), WG_EINVAL);
    objective.kind = WG_OBJECTIVE_KIND_COUNT;
    assert_int_equal(wg__objective_check(&objective, &err), WG_EINVAL);
}

/* 180 W under a largest limit of 250 W: eta = 0.5 gives (180 + 250) / 2, eta = 0.75 gives
 * 135 + 62.5. */
static void prices_a_second_as_worked_by_hand(void **state)
{
    struct wg_objective objective = {.kind = WG_OBJECTIVE_COST, .eta = 0.5, .max_power_w = 250.0};

    (void)state;
    check_close(wg__objective_cost_per_s(&objective, 180.0), 215.0, 1e-15);
    objective.eta = 0.75;
    check_close(wg__objective_cost_per_s(&objective, 180.0), 197.5, 1e-15);
    objective.kind = WG_OBJECTIVE_TIME;
    check_close(wg__objective_cost_per_s(&objective, 180.0), 250.0, 0.0);
    objective.kind = WG_OBJECTIVE_ENERGY;
    check_close(wg__objective_cost_per_s(&objective, 180.0), 180.0, 0.0);
    objective.kind = WG_OBJECTIVE_SLOWDOWN;
    check_close(wg__objective_cost_per_s(&objective, 180.0), 180.0, 0.0);
}

static void cost_at_the_ends_of_eta_is_time_and_energy(void **state)
{
    struct wg_objective objective = {.kind = WG_OBJECTIVE_COST, .eta = 0.0, .max_power_w = 300.0};

    (void)state;
    check_close(wg__objective_cost_per_s(&objective, 120.0), 300.0, 0.0);
    objective.eta = 1.0;
    check_close(wg__objective_cost_per_s(&objective, 120.0), 120.0, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_energy_and_time),
        cmocka_unit_test(parses_cost_with_eta_at_both_ends),
        cmocka_unit_test(parses_slowdown_from_one_up),
        cmocka_unit_test(rejects_other_texts_and_leaves_the_objective_alone),
        cmocka_unit_test(checks_only_the_fields_that_the_kind_reads),
        cmocka_unit_test(prices_a_second_as_worked_by_hand),
        cmocka_unit_test(cost_at_the_ends_of_eta_is_time_and_energy),
    };

    return run_tests(tests);
}
