/* SPDX-License-Identifier: MIT
 *
 * The clock governor: what it chooses, when it changes, what it learns, which ladders it refuses.
 *
 * The predictor is the tests' own: a law that is known, right or wrong by a factor.
 */
#include "schedule/clock_governor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "math/normal.h"
#include "support/check.h"

struct wg_predictor {
    double fixed_s, per_row_s;
    double gpu_share, mem_share;
};

double wg__predictor_time(const struct wg_predictor *predictor,
                          const struct wg_predictor_point *point)
{
    const double rest = 1 - predictor->gpu_share - predictor->mem_share;
    return (predictor->fixed_s + predictor->per_row_s * point->rows) *
           (rest + predictor->gpu_share / point->gpu_clock +
            predictor->mem_share / point->mem_clock);
}

double wg__predictor_margin(const struct wg_predictor *predictor)
{
    (void)predictor;
    return 0.05;
}

size_t wg__predictor_version(const struct wg_predictor *predictor)
{
    (void)predictor;
    return 1;
}

static const struct wg_predictor board = {0.06, 0.065, 0.6, 0.3};

/* A board's usual ladder: power falls faster than the clock, idle power hardly. */
static struct wg_clock_setup usual_setup(void)
{
    struct wg_clock_setup setup = {.max_rows = 8};
    static const double clocks[] = {1, 0.85, 0.7, 0.55};
    setup.ladder.count = sizeof clocks / sizeof *clocks;
    for (size_t i = 0; i < setup.ladder.count; i++) {
        const double f = clocks[i];
        setup.ladder.rungs[i] =
            (struct wg_rung){"", f, 1, 12 + 28 * f * f * f, 8, 14 + 28 * f * f * f};
        (void)snprintf(setup.ladder.rungs[i].name, WG_RUNG_NAME_SIZE, "r%zu", i);
    }
    setup.ladder.change_s = 0.02;
    setup.ladder.change_j = 0.1;
    return setup;
}

static struct wg_clock_view usual_view(double rate)
{
    return (struct wg_clock_view){
        .rate = rate, .dispersion = 1, .slo_s = 0.7, .slack_s = HUGE_VAL, .predictor = &board};
}

static struct wg_clock_governor open_governor(const struct wg_clock_setup *setup)
{
    struct wg_clock_governor governor;
    struct wg_error err = {0};
    if (wg__clock_governor_init(&governor, setup, &err) != WG_OK)
        fail_msg("%s", err.text);
    return governor;
}

/* Asks every 50 ms for `span_s`; how often the rung changed. */
static size_t ask_for(struct wg_clock_governor *governor, struct wg_clock_view *view, double span_s)
{
    size_t changes = 0;
    const int count = (int)(span_s / 0.05);
    for (int i = 0; i < count; i++) {
        const size_t before = governor->rung;
        view->now_s += 0.05;
        if (wg__clock_governor_ask(governor, view) != before)
            changes++;
    }
    return changes;
}

/* -- What it chooses ----------------------------------------------------------------------- */

static double draw(struct wg_rng *rng, double low, double high)
{
    return low + (high - low) * wg__rng_uniform(rng);
}

static struct wg_clock_setup random_setup(struct wg_rng *rng)
{
    struct wg_clock_setup setup = {.max_rows = 1 + wg__rng_below(rng, 32)};
    setup.ladder.count = 1 + wg__rng_below(rng, WG_RUNGS_MAX);
    for (size_t i = 0; i < setup.ladder.count; i++) {
        const double idle_w = draw(rng, 0, 20);
        setup.ladder.rungs[i] = (struct wg_rung){"r",
                                                 i == 0 ? 1 : draw(rng, 0.1, 1),
                                                 i == 0 ? 1 : draw(rng, 0.1, 1),
                                                 idle_w + draw(rng, 0, 50),
                                                 idle_w,
                                                 idle_w + draw(rng, 0, 50)};
    }
    return setup;
}

static void chooses_the_cheapest_rung_that_holds(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    for (int round = 0; round < 1500; round++) {
        const struct wg_clock_setup setup = random_setup(&rng);
        const struct wg_predictor law = {draw(&rng, 0, 0.1), draw(&rng, 0.001, 0.1),
                                         draw(&rng, 0, 0.6), draw(&rng, 0, 0.4)};
        struct wg_clock_governor governor = open_governor(&setup);
        const double full_s = law.fixed_s + law.per_row_s * setup.max_rows;
        struct wg_clock_view view = {.rate = draw(&rng, 0, 1.1) * setup.max_rows / full_s,
                                     .dispersion = draw(&rng, 0, 3),
                                     .slo_s = draw(&rng, 1, 6) * full_s,
                                     .slack_s = HUGE_VAL,
                                     .predictor = &law};
        const size_t changes = ask_for(&governor, &view, 10);
        assert_true(changes <= 1);
        double power_w = 0;
        const double p99_s = wg__clock_predict_p99(&governor, &view, governor.rung, &power_w);
        if (governor.rung != 0)
            assert_true(p99_s <= view.slo_s);
        for (size_t i = 0; i < setup.ladder.count; i++) {
            double other_w = 0;
            const double other_s = wg__clock_predict_p99(&governor, &view, i, &other_w);
            if (other_s * 1.06 <= view.slo_s && other_w < power_w * 0.994)
                fail_msg("round %d: rung %zu of %g W and %g s, but %zu has %g W and %g s", round,
                         governor.rung, power_w, p99_s, i, other_w, other_s);
        }
    }
}

static void never_chooses_a_rung_that_cannot_serve_the_rate(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 2);
    for (int round = 0; round < 500; round++) {
        struct wg_clock_setup setup = random_setup(&rng);
        struct wg_clock_governor governor = open_governor(&setup);
        struct wg_clock_view view = usual_view(1);
        view.slo_s = 1e6; /* nothing but the rate forbids a rung */
        for (int i = 0; i < 100; i++) {
            view.rate = draw(&rng, 0, 30);
            view.now_s += draw(&rng, 0, 3);
            const size_t rung = wg__clock_governor_ask(&governor, &view);
            const struct wg_rung *at = &setup.ladder.rungs[rung];
            const struct wg_predictor_point point = {setup.max_rows, at->gpu_clock, at->mem_clock,
                                                     0};
            const double served = setup.max_rows / wg__predictor_time(&board, &point);
            /* The rate is looked at in steps of 2 %. */
            if (rung != 0 && served < view.rate * 0.98)
                fail_msg("rung %zu serves %g rows/s, %g come", rung, served, view.rate);
        }
    }
}

/* At a low load, racing at full power and idling against crawling: what idling costs decides. */
static void counts_idle_power(void **state)
{
    (void)state;
    struct wg_clock_setup setup = usual_setup();
    const struct wg_predictor compute = {0.06, 0.065, 1, 0};
    setup.ladder.count = 2;
    setup.ladder.change_j = 0;
    setup.ladder.rungs[0] = (struct wg_rung){"race", 1, 1, 40, 5, 40};
    setup.ladder.rungs[1] = (struct wg_rung){"crawl", 0.5, 1, 25, 5, 25};
    struct wg_clock_view view = usual_view(0.5);
    view.slo_s = 10;
    view.predictor = &compute;

    /* 35 W above idle for t, against 20 W for 2 t. */
    struct wg_clock_governor governor = open_governor(&setup);
    ask_for(&governor, &view, 10);
    assert_int_equal(governor.rung, 0);

    /* Without idle power in the account (40 W for t, 25 W for 2 t) racing would win here, too. */
    setup.ladder.rungs[1].idle_power_w = 3;
    governor = open_governor(&setup);
    ask_for(&governor, &view, 10);
    assert_int_equal(governor.rung, 1);

    /* Idling costs as much as working slowly: then only the time at work counts. */
    setup.ladder.rungs[0] = (struct wg_rung){"race", 1, 1, 40, 24, 40};
    setup.ladder.rungs[1] = (struct wg_rung){"crawl", 0.5, 1, 25, 24, 25};
    governor = open_governor(&setup);
    ask_for(&governor, &view, 10);
    assert_int_equal(governor.rung, 1);
}

static void predicts_the_power_of_a_busy_and_an_idle_server(void **state)
{
    (void)state;
    const struct wg_clock_setup setup = usual_setup();
    const struct wg_clock_governor governor = open_governor(&setup);
    struct wg_clock_view view = usual_view(0);
    double power_w = 0;
    const double idle_s = wg__clock_predict_p99(&governor, &view, 0, &power_w);
    check_close(power_w, 8, 1e-12);
    check_close(idle_s, 0.125 * 1.05, 1e-12);
    view.rate = 8 / (0.06 + 8 * 0.065); /* all it can serve */
    assert_true(wg__clock_predict_p99(&governor, &view, 0, &power_w) == HUGE_VAL);
    check_close(power_w, 40, 1e-12);
    /* One request a second keeps it busy for 125 ms. */
    view.rate = 1;
    (void)wg__clock_predict_p99(&governor, &view, 0, &power_w);
    check_close(power_w, 0.125 * 40 + 0.875 * 8, 0.02);
}

/* -- When it changes ----------------------------------------------------------------------- */

static void goes_down_only_after_the_hold(void **state)
{
    (void)state;
    struct wg_clock_setup setup = usual_setup();
    setup.hold_s = 3;
    struct wg_clock_governor governor = open_governor(&setup);
    struct wg_clock_view view = usual_view(1);
    assert_int_equal(ask_for(&governor, &view, 2.9), 0);
    assert_int_equal(governor.rung, 0);
    assert_int_equal(ask_for(&governor, &view, 0.3), 1);
    assert_int_not_equal(governor.rung, 0);

    /* A break begins the wait anew. */
    governor = open_governor(&setup);
    ask_for(&governor, &view, 2.5);
    view.rate = 13;
    ask_for(&governor, &view, 0.05);
    view.rate = 1;
    assert_int_equal(ask_for(&governor, &view, 2.9), 0);
    assert_int_equal(ask_for(&governor, &view, 0.3), 1);
}

static void goes_up_at_once(void **state)
{
    (void)state;
    const struct wg_clock_setup setup = usual_setup();
    struct wg_clock_governor governor = open_governor(&setup);
    struct wg_clock_view view = usual_view(1);
    ask_for(&governor, &view, 10);
    assert_int_equal(governor.rung, 3);

    view.slack_s = 0.01; /* the queue is in trouble */
    assert_int_equal(wg__clock_governor_ask(&governor, &view), 0);
    view.slack_s = HUGE_VAL;
    ask_for(&governor, &view, 10);
    assert_int_equal(governor.rung, 3);

    view.rate = 13; /* more than slower rungs serve */
    assert_int_equal(wg__clock_governor_ask(&governor, &view), 0);
    view.rate = 1;
    ask_for(&governor, &view, 10);
    view.slo_s = 0.2; /* a request alone takes 0.125 s at rung 0 */
    assert_int_equal(wg__clock_governor_ask(&governor, &view), 0);
}

/* At rung 3 a lone row takes 61 ms longer than at rung 0, eight take 285 ms longer. */
static void rescues_a_batch_that_would_be_late_here_but_not_at_the_fastest_rung(void **state)
{
    (void)state;
    const struct wg_clock_setup setup = usual_setup();
    struct wg_clock_governor governor = open_governor(&setup);
    struct wg_clock_view view = usual_view(1);
    ask_for(&governor, &view, 10);
    assert_int_equal(governor.rung, 3);
    view.slack_s = 0.1;
    view.rows = 1;
    assert_int_equal(wg__clock_governor_ask(&governor, &view), 3);
    view.rows = 8;
    assert_int_equal(wg__clock_governor_ask(&governor, &view), 0);
}

/* Of several models the busiest is judged; another may have learned from as many batches. */
static void takes_no_law_of_one_model_for_that_of_another(void **state)
{
    (void)state;
    static const struct wg_predictor slow = {0.12, 0.13, 0.6, 0.3};
    const struct wg_clock_setup setup = usual_setup();
    struct wg_clock_governor governor = open_governor(&setup);
    struct wg_clock_view view = usual_view(0.5);
    (void)ask_for(&governor, &view, 10);
    const size_t before = governor.rung; /* two rows in turn: 0.38 s at the slowest rung, or 0.75 */
    assert_true(before > 0);
    view.predictor = &slow;
    (void)ask_for(&governor, &view, 1);
    assert_true(governor.rung < before);
}

static void stays_where_a_change_does_not_pay(void **state)
{
    (void)state;
    struct wg_clock_setup setup = usual_setup();
    setup.ladder.change_j = 1000;
    struct wg_clock_governor governor = open_governor(&setup);
    struct wg_clock_view view = usual_view(4);
    assert_int_equal(ask_for(&governor, &view, 60), 0);
    setup.hold_s = 1000; /* what is saved in that time is more */
    governor = open_governor(&setup);
    assert_int_equal(ask_for(&governor, &view, 1100), 1);
}

static void does_not_flap_under_a_steady_load(void **state)
{
    (void)state;
    const struct wg_clock_setup setup = usual_setup();
    struct wg_rng rng;
    wg__rng_init(&rng, 3);
    for (int tenth = 1; tenth <= 9; tenth++) {
        struct wg_clock_governor governor = open_governor(&setup);
        const double rate = 0.1 * tenth * 13.8;
        struct wg_clock_view view = usual_view(rate);
        size_t changes = 0;
        for (int i = 0; i < 2000; i++) { /* 100 s: measured rates are off by 2 % */
            view.rate = rate * (1 + 0.02 * wg__rng_normal(&rng));
            view.dispersion = exp(0.1 * wg__rng_normal(&rng));
            changes += ask_for(&governor, &view, 0.05001);
        }
        if (changes > 10)
            fail_msg("%zu changes in 100 s at %g rows/s", changes, rate);
    }
}

/* -- What it learns ------------------------------------------------------------------------ */

struct outcome {
    size_t requests, late;
    double power_w; /* mean */
    size_t changes;
};

/* A server whose real times are `wrong` times those that the governor is told. */
static struct outcome serve(const struct wg_clock_setup *setup, double wrong, double rate,
                            size_t requests)
{
    enum { WAITING_MAX = 4096 };
    static double waiting[WAITING_MAX];
    struct wg_clock_governor governor = open_governor(setup);
    struct outcome out = {0};
    struct wg_rng rng;
    wg__rng_init(&rng, 4);
    struct wg_clock_view view = usual_view(rate);
    double next_s = 0, now_s = 0, energy_j = 0;
    size_t count = 0;
    while (out.requests < requests) {
        if (count == 0 && next_s > now_s) {
            energy_j += (next_s - now_s) * setup->ladder.rungs[governor.rung].idle_power_w;
            now_s = next_s;
        }
        while (next_s <= now_s && count < WAITING_MAX) {
            waiting[count++] = next_s;
            next_s -= log(wg__rng_uniform(&rng)) / rate;
        }
        const unsigned rows = count < setup->max_rows ? (unsigned)count : setup->max_rows;
        view.now_s = now_s;
        view.slack_s = waiting[0] + view.slo_s - now_s - (board.fixed_s + board.per_row_s * rows);
        const size_t before = governor.rung;
        const struct wg_rung *at = &setup->ladder.rungs[wg__clock_governor_ask(&governor, &view)];
        out.changes += governor.rung != before;
        const struct wg_predictor_point point = {rows, at->gpu_clock, at->mem_clock, 0};
        const double time_s = wrong * wg__predictor_time(&board, &point);
        now_s += time_s;
        energy_j += time_s * at->busy_power_w;
        for (unsigned i = 0; i < rows; i++) {
            const double share = (now_s - waiting[i]) / view.slo_s;
            wg__clock_governor_tell(&governor, share);
            out.late += share > 1;
        }
        out.requests += rows;
        count -= rows;
        memmove(waiting, waiting + rows, count * sizeof *waiting);
    }
    out.power_w = energy_j / now_s;
    return out;
}

static void keeps_its_promise_with_a_prediction_that_is_wrong(void **state)
{
    (void)state;
    static const double wrongs[] = {0.75, 1, 1.3};
    const struct wg_clock_setup setup = usual_setup();
    struct wg_clock_setup fixed = setup;
    fixed.ladder.count = 1;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        for (int rate = 1; rate <= 6; rate++) {
            const struct outcome least = serve(&fixed, wrongs[i], rate, 50000);
            const struct outcome out = serve(&setup, wrongs[i], rate, 100000);
            const double floor = (double)least.late / (double)least.requests;
            const double late = (double)out.late / (double)out.requests;
            if (late > fmax(0.0105, 1.3 * floor) || out.power_w > 1.02 * least.power_w)
                fail_msg("%.2f %% late at %d rows/s, times are %g of what is believed; %.2f %% at "
                         "rung 0",
                         100 * late, rate, wrongs[i], 100 * floor);
        }
    }
}

static void becomes_careful_fast_and_bold_slowly(void **state)
{
    (void)state;
    const struct wg_clock_setup setup = usual_setup();
    struct wg_clock_governor governor = open_governor(&setup);
    struct wg_clock_view view = usual_view(2);
    ask_for(&governor, &view, 10);
    assert_int_not_equal(governor.rung, 0);
    for (int i = 0; i < 10; i++)
        wg__clock_governor_tell(&governor, 1.5);
    const double careful = governor.safety;
    assert_true(careful > 1.4);
    int good = 0;
    while (governor.safety > 1 && good < 100000) {
        wg__clock_governor_tell(&governor, 0.5);
        good++;
    }
    assert_in_range(good, 500, 5000);
    /* Bounded whatever comes. */
    for (int i = 0; i < 10000; i++)
        wg__clock_governor_tell(&governor, HUGE_VAL);
    assert_true(governor.safety <= 4);
}

/* Rung 0 alone shows that a forecast is too careful, or not careful enough. */
static void learns_at_the_fastest_rung(void **state)
{
    (void)state;
    const struct wg_clock_setup setup = usual_setup();
    struct wg_clock_governor governor = open_governor(&setup);
    struct wg_clock_view view = usual_view(6.5); /* others are a little too slow */
    ask_for(&governor, &view, 10);
    assert_int_equal(governor.rung, 0);
    for (int i = 0; i < 1000; i++)
        wg__clock_governor_tell(&governor, 0.3);
    assert_true(governor.safety < 0.8);
    ask_for(&governor, &view, 10);
    assert_int_not_equal(governor.rung, 0);
}

/* Requests wait for fine-tuning as long as they may: that is no error of the forecast. */
static void learns_only_from_late_requests_beside_finetuning(void **state)
{
    (void)state;
    const struct wg_clock_setup setup = usual_setup();
    struct wg_clock_governor governor = open_governor(&setup);
    struct wg_clock_view view = usual_view(1);
    view.finetune_share = 0.3;
    view.step_s = 0.05;
    ask_for(&governor, &view, 10);
    for (int i = 0; i < 100; i++)
        wg__clock_governor_tell(&governor, 0.95);
    assert_true(governor.safety < 1);
    wg__clock_governor_tell(&governor, 1.05);
    assert_true(governor.safety > 1);
}

/* -- What it refuses ----------------------------------------------------------------------- */

static void names_what_is_wrong_with_a_ladder(void **state)
{
    (void)state;
    struct case_of {
        size_t offset;
        double value;
        const char *expected;
    };
#define OF(field) offsetof(struct wg_clock_setup, field)
    static const struct case_of cases[] = {
        {OF(ladder.rungs[0].gpu_clock), 0.9,
         "clock ladder: gpu_clock of rung 0 is 0.9, expected 1: it is the fastest"},
        {OF(ladder.rungs[2].gpu_clock), 0,
         "clock ladder: gpu_clock of rung 2 is 0, expected above 0, at most 1"},
        {OF(ladder.rungs[1].mem_clock), 1.5,
         "clock ladder: mem_clock of rung 1 is 1.5, expected above 0, at most 1"},
        {OF(ladder.rungs[3].busy_power_w), -1,
         "clock ladder: busy_power_w of rung 3 is -1 W, expected 0 to 1e9"},
        {OF(ladder.rungs[0].idle_power_w), (double)INFINITY,
         "clock ladder: idle_power_w of rung 0 is inf W, expected 0 to 1e9"},
        {OF(ladder.rungs[0].finetune_power_w), -2,
         "clock ladder: finetune_power_w of rung 0 is -2 W, expected 0 to 1e9"},
        {OF(ladder.change_s), -1, "clock ladder: change_s is -1, expected 0 to 3600"},
        {OF(ladder.change_j), 2e9, "clock ladder: change_j is 2e+09, expected 0 to 1e9"},
        {OF(hold_s), -1, "clock governor: hold_s is -1, expected 0 to 86400"},
        {OF(target), 1, "clock governor: target is 1, expected 0.5 to 0.9999"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wg_clock_setup setup = usual_setup();
        struct wg_clock_governor governor;
        struct wg_error err = {0};
        memcpy((char *)&setup + cases[i].offset, &cases[i].value, sizeof cases[i].value);
        assert_int_equal(wg__clock_governor_init(&governor, &setup, &err), WG_EINVAL);
        assert_string_equal(err.text, cases[i].expected);
    }
#undef OF
}

static void names_counts_that_cannot_be(void **state)
{
    (void)state;
    struct wg_clock_setup setup = usual_setup();
    struct wg_clock_governor governor;
    struct wg_error err = {0};
    setup.ladder.count = 0;
    assert_int_equal(wg__clock_governor_init(&governor, &setup, &err), WG_EINVAL);
    assert_string_equal(err.text, "clock ladder: 0 rungs, expected 1 to 16");
    setup = usual_setup();
    setup.max_rows = 0;
    assert_int_equal(wg__clock_governor_init(&governor, &setup, &err), WG_EINVAL);
    assert_string_equal(err.text, "clock governor: max_rows is 0, expected 1 to 65536");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chooses_the_cheapest_rung_that_holds),
        cmocka_unit_test(never_chooses_a_rung_that_cannot_serve_the_rate),
        cmocka_unit_test(counts_idle_power),
        cmocka_unit_test(predicts_the_power_of_a_busy_and_an_idle_server),
        cmocka_unit_test(goes_down_only_after_the_hold),
        cmocka_unit_test(goes_up_at_once),
        cmocka_unit_test(rescues_a_batch_that_would_be_late_here_but_not_at_the_fastest_rung),
        cmocka_unit_test(takes_no_law_of_one_model_for_that_of_another),
        cmocka_unit_test(stays_where_a_change_does_not_pay),
        cmocka_unit_test(does_not_flap_under_a_steady_load),
        cmocka_unit_test(keeps_its_promise_with_a_prediction_that_is_wrong),
        cmocka_unit_test(becomes_careful_fast_and_bold_slowly),
        cmocka_unit_test(learns_at_the_fastest_rung),
        cmocka_unit_test(learns_only_from_late_requests_beside_finetuning),
        cmocka_unit_test(names_what_is_wrong_with_a_ladder),
        cmocka_unit_test(names_counts_that_cannot_be),
    };
    return run_tests(tests);
}
