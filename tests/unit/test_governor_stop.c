/* SPDX-License-Identifier: MIT
 *
 * How long trials may run: the bound against every bound there is, priced by numeric integration
 * over the whole mixture of curves (the code under test groups the curves, uses closed forms and
 * tries two dozen bounds), and hopeless runs on planted learning curves.
 */
#include <string.h>

#include "support/governor_stage.h"

static const struct wg_governor_constants *const c = &wg__governor_constants;

enum { NODES = 14 * 32 };

static const double nodes_per_octave = 32;

/* The chance that a run needs more than 2^(node / nodes_per_octave - 4) epochs, and the mean of its
 * epochs cut there. */
struct survival {
    double above[NODES];
    double mean_min[NODES];
};

static double epochs_at(int node)
{
    return exp2(node / nodes_per_octave - 4);
}

/* Every curve of the posterior counts by itself; E min(N, k) is the integral of P(N > n) up to k,
 * by trapeziums. */
static void integrate(const struct wg_epochs_model *model, size_t arm, struct survival *out)
{
    const double gain = model->gain[arm];
    const double sd = sqrt(model->rest[arm] + (1 - gain) * (1 - gain) * model->level_variance +
                           model->noise_variance[arm]);
    memset(out, 0, sizeof *out);
    for (int node = 0; node < NODES; node++) {
        const double y = log2(epochs_at(node));
        for (size_t h = 0; h < model->hypothesis_count; h++) {
            if (model->weight[h] < 1e-9)
                continue;
            const double curve = model->level_mean[h] + model->shape[h * model->arm_count + arm];
            const double mean = (1 - gain) * curve + gain * model->arm_mean[arm];
            out->above[node] += model->weight[h] * wg__normal_cdf((mean - y) / sd);
        }
        out->mean_min[node] =
            node == 0 ? epochs_at(0)
                      : out->mean_min[node - 1] + (epochs_at(node) - epochs_at(node - 1)) * 0.5 *
                                                      (out->above[node] + out->above[node - 1]);
    }
}

/* Linear between nodes. */
static double at(const double *values, double k)
{
    const double position = (log2(k) + 4) * nodes_per_octave;
    const int node = (int)position;
    assert_true(node >= 0 && node + 1 < NODES);
    return values[node] + (position - node) * (values[node + 1] - values[node]);
}

/* What the header of governor_stop.c says that a bound costs above the incumbent's run. */
static double price_j(const struct wg_governor *governor, size_t arm, const struct survival *law,
                      double doom, double k)
{
    const double epoch_j = governor->cost[arm].epoch_j, fallback_j = governor->incumbent_j;
    return (1 - doom) * (epoch_j * at(law->mean_min, k) + at(law->above, k) * fallback_j) +
           doom * (epoch_j * k + fallback_j) - fallback_j;
}

static unsigned floor_of(const struct wg_governor *governor, size_t arm)
{
    const double k = ceil(c->stop_floor * governor->incumbent_j / governor->cost[arm].epoch_j);
    return (unsigned)fmax(1, fmin(k, governor->job.max_epochs));
}

static double doom_of(const struct wg_governor *governor, size_t arm)
{
    const struct wg_epochs_model *model = &governor->model;
    if (model->success_count[arm] > 0)
        return c->doom_known / model->success_count[arm];
    double octaves = 99;
    for (size_t i = 0; i < model->arm_count; i++)
        if (model->success_count[i] > 0)
            octaves = fmin(octaves, fabs((double)i - (double)arm));
    return c->doom_base + c->doom_per_octave * octaves +
           (model->failure_count[arm] > 0 ? c->doom_after_failure : 0);
}

/* The bound is as good as the best of all, within `slack` of the incumbent's cost, and so is the
 * price that is told. */
static void check_bound(const struct stage *stage, size_t arm, double slack)
{
    static struct survival law;
    const struct wg_governor *governor = stage->governor;
    integrate(&governor->model, arm, &law);
    const double doom = doom_of(governor, arm);
    double least_j = (double)INFINITY, told_j = 0;
    for (unsigned k = floor_of(governor, arm); k <= governor->job.max_epochs; k++)
        least_j = fmin(least_j, price_j(governor, arm, &law, doom, k));
    const unsigned bound = wg__governor_stop_epochs(governor, arm, &told_j);
    assert_in_range(bound, floor_of(governor, arm), governor->job.max_epochs);
    check_close_abs(price_j(governor, arm, &law, doom, bound), least_j, 0,
                    slack * governor->incumbent_j);
    check_close_abs(told_j, least_j, 0, slack * governor->incumbent_j);
    assert_int_equal(wg__governor_stop_epochs(governor, arm, NULL), bound);
}

/* A hockey stick: each batch size halves the cost of an epoch, and above 64 the epochs double. */
static struct toy_world make_stick(void)
{
    struct toy_world world = make_world(7, 2);
    for (size_t i = 0; i < 7; i++) {
        world.epoch_j[i] = 80 * exp2(-(double)i * 0.7);
        world.epochs[i] = 12 * (1 + exp2((double)i - 4));
    }
    world.noise_sd = 0.1;
    return world;
}

static void bounds_are_as_good_as_the_best_of_all(void **state)
{
    (void)state;
    struct toy_world world = make_stick();
    for (unsigned max_epochs = 30; max_epochs <= 480; max_epochs *= 4)
        for (uint64_t seed = 0; seed < 2; seed++) {
            world.max_epochs = max_epochs;
            struct stage stage = open_stage(&world, seed);
            for (unsigned runs = 0; runs < 12; runs++) {
                (void)recur(&stage);
                wg__governor_refresh(stage.governor);
                for (size_t arm = 0; arm < 7 && (runs & (runs - 1)) == 0; arm++)
                    if (arm != stage.governor->incumbent)
                        check_bound(&stage, arm, 0.02);
            }
            close_stage(&stage);
        }
}

static void a_failed_arm_is_trusted_less_but_may_run_to_the_floor(void **state)
{
    (void)state;
    struct toy_world world = make_stick();
    world.epochs[6] = (double)INFINITY;
    world.epochs[5] = (double)INFINITY;
    struct stage stage = open_stage(&world, 5);
    for (unsigned runs = 0; runs < 30; runs++) {
        (void)recur(&stage);
        wg__governor_refresh(stage.governor);
        for (size_t arm = 0; arm < 7 && runs % 6 == 0; arm++)
            if (arm != stage.governor->incumbent)
                check_bound(&stage, arm, 0.02);
    }
    assert_true(stage.failures[5] + stage.failures[6] > 0);
    close_stage(&stage);
}

static void the_incumbent_may_run_until_its_patience_ends(void **state)
{
    (void)state;
    struct toy_world world = make_world(3, 1);
    world.max_epochs = 1000;
    struct stage stage = open_stage(&world, 1);
    (void)recur(&stage);
    struct wg_governor *governor = stage.governor;
    wg__governor_refresh(governor);
    assert_int_equal(governor->incumbent, 1);
    const double expected_epochs = governor->expected_j[1] / governor->cost[1].epoch_j;
    double told_j = 99;
    assert_int_equal(wg__governor_stop_epochs(governor, 1, &told_j),
                     (unsigned)ceil(c->incumbent_patience * expected_epochs));
    check_close_abs(told_j, 0, 0, 0);
    governor->job.max_epochs = 3; /* the job's own end comes first */
    assert_int_equal(wg__governor_stop_epochs(governor, 1, NULL), 3);
    close_stage(&stage);
}

/* Each bound lies between the floor and the job's end, even when one epoch costs more than many
 * runs of the incumbent, or nearly nothing. */
static void bounds_stay_in_range_whatever_an_epoch_costs(void **state)
{
    (void)state;
    const struct toy_world world = make_world(3, 1);
    struct stage stage = open_stage(&world, 1);
    (void)recur(&stage);
    struct wg_governor *governor = stage.governor;
    wg__governor_refresh(governor);
    const double costs[] = {1e-9, 1e-3, 1, 1e3, 1e9};
    for (size_t i = 0; i < 5; i++)
        for (unsigned max_epochs = 1; max_epochs <= 1000; max_epochs *= 10) {
            governor->job.max_epochs = max_epochs;
            governor->cost[2].epoch_j = costs[i];
            const unsigned bound = wg__governor_stop_epochs(governor, 2, NULL);
            assert_in_range(bound, floor_of(governor, 2), max_epochs);
        }
    assert_int_equal(wg__governor_stop_epochs(governor, 2, NULL), 1); /* far too dear */
    close_stage(&stage);
}

/* The incumbent reaches the target evenly over 40 epochs, five times; a flight of another arm has
 * come as far as an even run of `epochs_needed` would. */
struct planted {
    struct stage stage;
    struct wg_flight flight;
};

static struct planted plant(bool has_metric)
{
    struct toy_world world = make_world(4, 1);
    world.max_epochs = 400;
    world.has_metric = has_metric;
    for (size_t i = 0; i < 4; i++)
        world.epochs[i] = 40;
    struct planted planted = {.stage = open_stage(&world, 3)};
    for (unsigned runs = 0; runs < 5; runs++)
        (void)recur(&planted.stage);
    wg__governor_refresh(planted.stage.governor);
    planted.flight = (struct wg_flight){.is_active = true,
                                        .arm = planted.stage.governor->incumbent == 2 ? 3 : 2};
    planted.flight.stop_epochs =
        wg__governor_stop_epochs(planted.stage.governor, planted.flight.arm, NULL);
    return planted;
}

/* The epoch after which a run of that pace is given up, 0: never before `last`. */
static unsigned given_up_after(struct planted *planted, double epochs_needed, unsigned last)
{
    planted->flight.curve = (struct wg_learning_curve){0};
    planted->flight.log2_guess = 0;
    for (unsigned done = 0; done <= last; done++) {
        wg__learning_curve_tell(&planted->flight.curve, true, done, done / epochs_needed);
        if (wg__governor_is_hopeless(planted->stage.governor, &planted->flight, done))
            return done;
    }
    return 0;
}

static void gives_up_runs_that_crawl_and_no_others(void **state)
{
    (void)state;
    struct planted planted = plant(true);
    const unsigned bound = planted.flight.stop_epochs;
    assert_true(bound > 40);
    assert_int_equal(given_up_after(&planted, 20, 20), 0); /* faster */
    assert_int_equal(given_up_after(&planted, 40, 40), 0); /* alike */
    assert_int_equal(given_up_after(&planted, 44, 44), 0);
    const unsigned crawling = given_up_after(&planted, 400, bound);
    assert_in_range(crawling, 1, 39); /* sooner than by its cost */
    /* The guess lies between what the curve of epochs and what the learning curve says. */
    assert_true(planted.flight.log2_guess > log2(40) && planted.flight.log2_guess < log2(400));
    const unsigned slow = given_up_after(&planted, 200, bound);
    assert_true(slow == 0 || slow >= crawling); /* the slower, the sooner */
    close_stage(&planted.stage);
}

static void a_run_that_shows_nothing_at_all_is_given_up(void **state)
{
    (void)state;
    struct planted planted = plant(true);
    assert_in_range(given_up_after(&planted, 1e9, planted.flight.stop_epochs), 1, 39);
    close_stage(&planted.stage);
}

static void nothing_is_hopeless_without_grounds(void **state)
{
    (void)state;
    struct planted planted = plant(true);
    planted.flight.curve = (struct wg_learning_curve){0};
    assert_false(wg__governor_is_hopeless(planted.stage.governor, &planted.flight, 0));
    planted.flight.arm = planted.stage.governor->incumbent; /* never the incumbent */
    assert_int_equal(given_up_after(&planted, 1e9, 100), 0);
    close_stage(&planted.stage);

    planted = plant(false); /* no metrics, no grounds */
    assert_int_equal(given_up_after(&planted, 1e9, planted.flight.stop_epochs), 0);
    close_stage(&planted.stage);
}

/* At its bound a run ends by its cost: the learning curve has no say any more. */
static void has_no_say_at_the_bound(void **state)
{
    (void)state;
    struct planted planted = plant(true);
    planted.flight.curve = (struct wg_learning_curve){0};
    planted.flight.stop_epochs = 30;
    assert_false(wg__governor_is_hopeless(planted.stage.governor, &planted.flight, 30));
    assert_false(wg__governor_is_hopeless(planted.stage.governor, &planted.flight, 31));
    close_stage(&planted.stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_as_good_as_the_best_of_all),
        cmocka_unit_test(a_failed_arm_is_trusted_less_but_may_run_to_the_floor),
        cmocka_unit_test(the_incumbent_may_run_until_its_patience_ends),
        cmocka_unit_test(bounds_stay_in_range_whatever_an_epoch_costs),
        cmocka_unit_test(gives_up_runs_that_crawl_and_no_others),
        cmocka_unit_test(a_run_that_shows_nothing_at_all_is_given_up),
        cmocka_unit_test(nothing_is_hopeless_without_grounds),
        cmocka_unit_test(has_no_say_at_the_bound),
    };
    return run_tests(tests);
}
