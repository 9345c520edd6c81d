/* SPDX-License-Identifier: MIT
 *
 * What a scheduler promises, in random worlds: support/scheduler_world.h has the checks.
 *
 *     test_scheduler_properties [PROFILES [SEED]]    3000 and 7 unless told otherwise
 *
 * Each profile is a setup of its own with sixty events, or six hundred. A broken promise names the
 * seed and the profile, which can be run alone.
 */
#include <stdlib.h>

#include "support/check.h"
#include "support/scheduler_world.h"

/* Now and then a queue grows beyond what a plan looks at. */
enum { EVENTS = 60, MANY_EVENTS = 600, MANY_EACH = 50 };

static size_t profiles = 3000;
static uint64_t seed = 7;
static size_t playing; /* the profile */

__attribute__((noreturn)) static void fail_here(const char *what, int line)
{
    fail_msg("seed %llu, profile %zu: not so: %s (line %d of scheduler_books.h or _world.h)",
             (unsigned long long)seed, playing, what, line);
    abort();
}

static struct world *play(size_t profile, bool has_wrong_events)
{
    struct wg_rng all;
    wg__rng_init(&all, seed);
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    if (world == NULL)
        return NULL;
    world->chance.rng = wg__rng_split(&all, 2 * profile);
    world->wrong.rng = wg__rng_split(&all, 2 * profile + 1);
    world->has_wrong_events = has_wrong_events;
    world->broken = fail_here;
    playing = profile;
    world_play(world, profile % MANY_EACH == 0 ? MANY_EVENTS : EVENTS);
    return world;
}

static void keeps_its_promises_in_random_worlds(void **state)
{
    (void)state;
    size_t answers[WG_ANSWER_COUNT] = {0};
    size_t told = 0, served = 0, steps = 0, changes = 0;
    for (size_t i = 0; i < profiles; i++) {
        struct world *world = play(i, false);
        for (size_t k = 0; k < WG_ANSWER_COUNT; k++)
            answers[k] += world->answers[k];
        told += world->told;
        served += world->served;
        steps += world->steps;
        changes += world->changes;
        free(world);
    }
    print_message("%zu requests, %zu served, %zu steps, %zu changes of clocks\n", told, served,
                  steps, changes);
    if (profiles < 1000)
        return;
    /* The worlds show what they should. */
    for (size_t k = 0; k < WG_ANSWER_COUNT; k++)
        assert_true(answers[k] > (k == WG_ANSWER_SACRIFICED ? 0 : profiles / 50));
    assert_true(served > told / 5 && steps > profiles && changes > profiles / 10);
}

/* The same events give the same actions; events that were refused leave no trace. */
static void repeats_itself_and_forgets_what_it_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < profiles / 5; i++) {
        struct world *once = play(i, false);
        struct world *again = play(i, i % 4 != 0);
        if (once->hash != again->hash)
            fail_here("the same actions", 0);
        free(once);
        free(again);
    }
}

/* -- A profile that is wrong ---------------------------------------- */

enum { WRONG_ROWS = 8, LEARN_BATCHES = 200, JUDGED_BATCHES = 50 };

/* What is fixed and what a row costs, as believed over what is so; seconds of `rows` rows. */
struct wrong_profile {
    double fixed, per_row;
};

static double true_s(double rows)
{
    return 0.06 + 0.066 * rows;
}

static double believed_s(const struct wrong_profile *wrong, double rows)
{
    return 0.06 * wrong->fixed + 0.066 * wrong->per_row * rows;
}

static struct wg_scheduler *open_believing(const struct wrong_profile *wrong)
{
    struct wg_predictor_sample samples[WRONG_ROWS];
    for (size_t i = 0; i < WRONG_ROWS; i++) {
        const double rows = (double)i + 1.0;
        samples[i] = (struct wg_predictor_sample){{rows, 1.0, 1.0, 0.0}, believed_s(wrong, rows)};
    }
    const struct wg_serving_model model = {
        .max_rows = WRONG_ROWS, .slo_s = 5.0, .samples = samples, .sample_count = WRONG_ROWS};
    const struct wg_scheduler_setup setup = {
        .model_count = 1,
        .models = &model,
        .clock_setup = {.max_rows = WRONG_ROWS,
                        .ladder = {.count = 1, .rungs = {{"max", 1, 1, 0, 0, 0}}}}};
    struct wg_scheduler *scheduler = NULL;
    struct wg_error err = {0};
    if (wg__scheduler_open(&scheduler, &setup, &err) != WG_OK)
        fail_msg("%s", err.text);
    return scheduler;
}

/* One request of `rows` rows, alone; its batch. */
static struct wg_batch run_one(struct wg_scheduler *scheduler, double now_s, unsigned rows,
                               double luck)
{
    struct wg_error err = {0};
    struct wg_action action = {0};
    const struct wg_event come = {
        .kind = WG_EVENT_ARRIVE, .now_s = now_s, .request = {.id = 1, .rows = rows}};
    const struct wg_event end = {.kind = WG_EVENT_BATCH_ENDED,
                                 .now_s = now_s + luck * true_s(rows)};
    assert_int_equal(wg__scheduler_tell(scheduler, &come, &err), WG_OK);
    assert_true(wg__scheduler_ask(scheduler, now_s, &action));
    assert_int_equal(action.kind, WG_ACTION_RUN_BATCH);
    assert_int_equal(wg__scheduler_tell(scheduler, &end, &err), WG_OK);
    return action.batch;
}

/* Times vary by 3 % on both sides. 200 batches of all sizes, or of one to three rows only: what was
 * seen is known within 3 % then, and no more than a few exceed their bound. */
static void wrong_profiles_are_corrected_within_200_batches(void **state)
{
    (void)state;
    static const struct wrong_profile profile[] = {{1.3, 1.3}, {0.7, 0.7}, {1.3, 0.7},
                                                   {0.7, 1.3}, {1.0, 1.3}, {0.7, 1.0}};
    for (size_t i = 0; i < 2 * sizeof profile / sizeof profile[0]; i++) {
        struct wg_rng rng;
        wg__rng_init(&rng, i);
        const uint32_t sizes = i % 2 == 0 ? WRONG_ROWS : 3;
        struct wg_scheduler *scheduler = open_believing(&profile[i / 2]);
        size_t beyond = 0;
        for (size_t k = 0; k < LEARN_BATCHES + JUDGED_BATCHES; k++) {
            const unsigned rows = 1 + wg__rng_below(&rng, sizes);
            const double luck = 0.97 + 0.06 * wg__rng_uniform(&rng);
            const struct wg_batch batch = run_one(scheduler, 10.0 * (double)k, rows, luck);
            if (k < LEARN_BATCHES)
                continue;
            check_close(batch.predicted_s, true_s(rows), 0.03);
            beyond += luck * true_s(rows) > batch.bound_s;
        }
        assert_true(beyond <= 4);
        wg__scheduler_close(scheduler);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_its_promises_in_random_worlds),
        cmocka_unit_test(repeats_itself_and_forgets_what_it_refused),
        cmocka_unit_test(wrong_profiles_are_corrected_within_200_batches),
    };
    if (argc > 1)
        profiles = (size_t)strtoull(argv[1], NULL, 10);
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 10);
    return run_tests(tests);
}
