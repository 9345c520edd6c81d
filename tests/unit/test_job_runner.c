/* SPDX-License-Identifier: MIT
 *
 * `job run` with a runner that only pretends: what each kind of ending becomes.
 */
#include "live/job_runner.h"

#include <limits.h>

#include "support/job_stage.h"

/* A pretended command. */
struct play {
    struct job_stage stage;
    enum {
        REACHES,
        NEVER_TELLS,
        TELLS_NAN,
        TELLS_ONLY_NAN,
        TELLS_NO_METRIC,
        BREAKS,
        BREAKS_ONCE,
        IS_MISSING,
        IS_INTERRUPTED,
        FALLS_SHORT_AT_FIRST,
        IS_SLOW
    } kind;
    unsigned calls, surveys;
    double survey_steps; /* an epoch's, as the last survey was told */
    char word[64], variable[64], said[512];
    bool can_survey, tells_steps;
};

static double play_now_s(void *context)
{
    return ((struct play *)context)->stage.now_s;
}

static void play_say(void *context, const char *line)
{
    struct play *play = context;
    (void)snprintf(play->said, sizeof play->said, "%s", line);
}

/* The first `nans` metrics are no numbers. */
static void train(struct play *play, struct wg_job_watch *watch, unsigned needs, unsigned nans)
{
    for (unsigned epoch = 1; epoch <= 40; epoch++) {
        const double metric = epoch <= nans ? (double)NAN : 0.8 * epoch / needs;
        if (play->kind == IS_SLOW) { /* slower than its lease, but alive */
            for (unsigned i = 0; i < 6; i++) {
                play->stage.now_s += 30;
                wg__job_watch_tick(watch);
            }
            struct wg_error err;
            const struct wg_job_request other = job_stage_request(&play->stage);
            struct wg_job_order order;
            assert_int_equal(wg__job_next(play->stage.store, "job", &other, &order, &err), WG_OK);
            assert_int_equal(order.taken_back, 0);
            (void)job_stage_end(&play->stage, order.run.id, WG_RUN_RETURNED, 0, 0);
        }
        if (wg__job_watch_epoch(watch, epoch, play->kind == TELLS_NO_METRIC ? NULL : &metric) !=
            WG_JOB_CONTINUE)
            return;
    }
}

static enum wg_code run(void *context, const struct wg_job_attempt *attempt,
                        struct wg_job_watch *watch, struct wg_job_result *out, struct wg_error *err)
{
    struct play *play = context;
    const double metric = 0.1;
    play->calls++;
    (void)snprintf(play->word, sizeof play->word, "%s", attempt->words[1]);
    (void)snprintf(play->variable, sizeof play->variable, "%s", attempt->variables[0]);
    *out = (struct wg_job_result){.energy_j = 100, .time_s = 10, .setting = 200};
    if (attempt->order->run.is_survey) {
        play->surveys++;
        play->survey_steps = attempt->steps_per_epoch * attempt->order->run.batch_size;
        assert_true(attempt->most_s == 2.5); /* a quarter of a run */
        assert_string_equal(attempt->variables[3], "WATTGOV_SURVEY=1");
        out->epochs = play->can_survey ? 0.2 : 0;
        if (play->can_survey)
            wg__job_watch_profile(watch, &(struct wg_job_costs){25, 25, 25});
        return WG_OK;
    }
    out->steps_per_epoch = play->tells_steps ? 1600.0 / attempt->order->run.batch_size : 0;
    switch (play->kind) {
    case REACHES:
    case IS_SLOW:
        wg__job_watch_profile(watch, &(struct wg_job_costs){20, 25, 30});
        train(play, watch, 5, 0);
        break;
    case TELLS_NAN:
        train(play, watch, 5, 2);
        break;
    case TELLS_ONLY_NAN:
    case TELLS_NO_METRIC:
        train(play, watch, 5, 40);
        break;
    case FALLS_SHORT_AT_FIRST:
        train(play, watch, play->calls < 3 ? 1000 : 5, 0);
        break;
    case NEVER_TELLS:
        break;
    case BREAKS_ONCE:
        if (play->calls > 1) {
            train(play, watch, 5, 0);
            break;
        }
        out->exit_status = 7;
        break;
    case BREAKS:
        (void)wg__job_watch_epoch(watch, 1, &metric);
        out->exit_status = 7;
        break;
    case IS_MISSING:
        return wg__fail(err, WG_ENOENT, "cannot run '%s': no such program", attempt->words[0]);
    case IS_INTERRUPTED:
        (void)wg__job_watch_epoch(watch, 1, &metric);
        out->how = WG_JOB_INTERRUPTED;
        break;
    }
    return WG_OK;
}

static char program[] = "train",
            argument[] = "--bs={batch_size},lr={learning_rate},{epochs},{run}{x}";
static char *const words[] = {program, argument, NULL};

static enum wg_code play_it(struct play *play, int kind, bool may_survey,
                            struct wg_job_run_summary *summary, struct wg_error *err)
{
    play->kind = (unsigned)kind;
    play->calls = play->surveys = 0;
    play->said[0] = '\0';
    struct wg_job_run_opts opts = {.request = job_stage_request(&play->stage),
                                   .words = words,
                                   .run = run,
                                   .context = play,
                                   .now_s = play_now_s,
                                   .say = play_say};
    opts.request.may_survey = may_survey;
    return wg__job_run(play->stage.store, "job", &opts, summary, err);
}

/* A store whose transactions fail from call `from` on, `count` times: locked, or a full disk. */
struct trouble {
    const struct wg_store_ops *real;
    struct wg_store_ops broken;
    unsigned calls, from, count;
};
static struct trouble trouble;

static enum wg_code fail_to_begin(struct wg_store *store, bool writes, struct wg_error *err)
{
    const unsigned call = trouble.calls++;
    if (call >= trouble.from && call - trouble.from < trouble.count)
        return wg__fail(err, WG_EBUSY, "store 'x': others keep it locked");
    return trouble.real->begin(store, writes, err);
}

static void break_store(struct wg_store *store, unsigned from, unsigned count)
{
    trouble =
        (struct trouble){.real = store->ops, .broken = *store->ops, .from = from, .count = count};
    trouble.broken.begin = fail_to_begin;
    store->ops = &trouble.broken;
}

struct states {
    size_t count;
    enum wg_run_state state[128];
    struct wg_store_run last;
};

static bool collect(void *context, const struct wg_store_run *row)
{
    struct states *states = context;
    states->state[states->count++] = row->state;
    states->last = *row;
    return states->count < 128;
}

static struct states states_of(struct play *play)
{
    struct states states = {0};
    struct wg_error err;
    assert_int_equal(play->stage.store->ops->run_each(play->stage.store, play->stage.job.id,
                                                      collect, &states, &err),
                     WG_OK);
    return states;
}

static int setup(void **state)
{
    struct play *play = calloc(1, sizeof *play);
    scratch_require(play != NULL, "memory");
    job_stage_open(&play->stage, "wattgov");
    *state = play;
    return 0;
}

static int teardown(void **state)
{
    struct play *play = *state;
    job_stage_close(&play->stage);
    free(play);
    return 0;
}

static void a_run_that_reaches_its_target_is_reported(void **state)
{
    struct play *play = *state;
    struct wg_job_run_summary summary;
    struct wg_error err;
    assert_int_equal(play_it(play, REACHES, false, &summary, &err), WG_OK);
    assert_true(summary.reached && !summary.is_interrupted);
    assert_int_equal(summary.attempts, 1);
    assert_true(summary.energy_j == 100 && summary.time_s == 10 && summary.cost_j == 100);
    assert_string_equal(play->word, "--bs=16,lr=0.1,30,1{x}");
    assert_string_equal(play->variable, "WATTGOV_BATCH_SIZE=16");
    const struct states states = states_of(play);
    assert_int_equal(states.count, 1);
    assert_int_equal(states.last.state, WG_RUN_REACHED);
    assert_int_equal(states.last.last_epoch, 5);
    assert_true(states.last.epochs == 5 && states.last.setting == 200 &&
                states.last.epoch_cost_j == 20);
    check_close(states.last.metric, 0.8, 1e-12);
}

static void what_falls_short_is_tried_again(void **state)
{
    struct play *play = *state;
    struct wg_job_run_summary summary;
    struct wg_error err;
    assert_int_equal(play_it(play, FALLS_SHORT_AT_FIRST, false, &summary, &err), WG_OK);
    assert_true(summary.reached);
    assert_int_equal(summary.attempts, 3);
    const struct states states = states_of(play);
    assert_int_equal(states.state[0], WG_RUN_FAILED);
    assert_int_equal(states.state[2], WG_RUN_REACHED);
    assert_int_equal(states.last.recurrence, 0);
    assert_int_equal(states.last.attempt, 2);
}

static void a_command_that_never_tells_its_metric_teaches_nothing(void **state)
{
    struct play *play = *state;
    struct wg_job_run_summary summary;
    struct wg_error err;
    assert_int_equal(play_it(play, NEVER_TELLS, false, &summary, &err), WG_EDATA);
    assert_non_null(strstr(err.text, "without telling its metric once"));
    assert_int_equal(play->calls, 1);
    assert_int_equal(states_of(play).last.state, WG_RUN_CRASHED);
}

static void a_metric_that_is_no_number_is_said_once_and_the_run_goes_on(void **state)
{
    struct play *play = *state;
    struct wg_job_run_summary summary;
    struct wg_error err;
    assert_int_equal(play_it(play, TELLS_NAN, false, &summary, &err), WG_OK);
    assert_true(summary.reached);
    assert_string_equal(play->said, "epoch 1: the metric 'acc' is not a number");
}

static void training_that_always_diverges_is_tried_three_times(void **state)
{
    struct play *play = *state;
    struct wg_job_run_summary summary;
    struct wg_error err;
    assert_int_equal(play_it(play, TELLS_ONLY_NAN, false, &summary, &err), WG_EDATA);
    assert_non_null(strstr(err.text, "3 runs in a row have diverged"));
    assert_int_equal(play->calls, 3);
    assert_int_equal(summary.attempts, 3);
    assert_true(summary.energy_j == 300);
    const struct states states = states_of(play);
    assert_int_equal(states.count, 3);
    for (size_t i = 0; i < 3; i++) /* the batch sizes have failed: that is worth knowing */
        assert_int_equal(states.state[i], WG_RUN_FAILED);
    assert_true(states.last.epochs == 30);
    assert_int_not_equal(states.last.batch_size, 16); /* the default failed twice before */
    /* Once the command is mended, the same recurrence goes on. */
    assert_int_equal(play_it(play, REACHES, false, &summary, &err), WG_OK);
    assert_true(summary.reached);
    assert_int_equal(summary.recurrence, 0);
}

static void epochs_without_any_metric_teach_nothing(void **state)
{
    struct play *play = *state;
    struct wg_job_run_summary summary;
    struct wg_error err;
    assert_int_equal(play_it(play, TELLS_NO_METRIC, false, &summary, &err), WG_EDATA);
    assert_non_null(strstr(err.text, "without telling its metric once"));
    assert_int_equal(play->calls, 1);
    assert_string_equal(play->said, "");
    assert_int_equal(states_of(play).last.state, WG_RUN_CRASHED);
}

static void a_command_that_breaks_is_tried_again_but_not_for_ever(void **state)
{
    struct play *play = *state;
    struct wg_job_run_summary summary;
    struct wg_error err;
    assert_int_equal(play_it(play, BREAKS_ONCE, false, &summary, &err), WG_OK);
    assert_true(summary.reached);
    assert_int_equal(play->calls, 2);
    assert_int_equal(play_it(play, BREAKS, false, &summary, &err), WG_ESTATE);
    assert_non_null(strstr(err.text, "broke 3 times in a row"));
    assert_non_null(strstr(err.text, "exit status 7"));
    assert_int_equal(play->calls, 3);
    const struct states states = states_of(play);
    assert_int_equal(states.count, 5);
    assert_int_equal(states.last.state, WG_RUN_CRASHED);
}

static void a_missing_command_is_no_observation(void **state)
{
    struct play *play = *state;
    struct wg_job_run_summary summary;
    struct wg_error err;
    assert_int_equal(play_it(play, IS_MISSING, false, &summary, &err), WG_ENOENT);
    assert_string_equal(err.text, "cannot run 'train': no such program");
    assert_int_equal(states_of(play).last.state, WG_RUN_RETURNED);
}

static void ctrl_c_gives_the_run_back(void **state)
{
    struct play *play = *state;
    struct wg_job_run_summary summary;
    struct wg_error err;
    assert_int_equal(play_it(play, IS_INTERRUPTED, false, &summary, &err), WG_OK);
    assert_true(summary.is_interrupted && !summary.reached);
    assert_int_equal(states_of(play).last.state, WG_RUN_RETURNED);
    assert_int_equal(job_stage_next(&play->stage).run.recurrence, 0);
}

static void a_store_that_fails_for_a_while_ends_no_run(void **state)
{
    struct play *play = *state;
    struct wg_job_run_summary summary;
    struct wg_error err;
    break_store(play->stage.store, 3, 4); /* next, profile, one epoch; then most of the others */
    assert_int_equal(play_it(play, REACHES, false, &summary, &err), WG_OK);
    play->stage.store->ops = trouble.real;
    assert_true(trouble.calls > 7);
    assert_true(summary.reached);
    assert_string_equal(play->said, "store 'x': others keep it locked");
    const struct states states = states_of(play);
    assert_int_equal(states.count, 1);
    assert_int_equal(states.last.state, WG_RUN_REACHED);
    assert_true(states.last.epochs == 5 && states.last.energy_j == 100);
}

static void what_a_store_would_not_take_can_be_reported_by_hand(void **state)
{
    struct play *play = *state;
    struct wg_job_run_summary summary;
    struct wg_error err;
    break_store(play->stage.store, 3, UINT_MAX);
    assert_int_equal(play_it(play, REACHES, false, &summary, &err), WG_EBUSY);
    play->stage.store->ops = trouble.real;
    assert_string_equal(play->said,
                        "when the store works again: wattgov job report job 1 --reached "
                        "--epochs 5 --energy 100 --time 10");
    assert_int_equal(states_of(play).last.state, WG_RUN_OPEN);
    (void)job_stage_end(&play->stage, 1, WG_RUN_REACHED, 5, 100);
    assert_int_equal(states_of(play).last.state, WG_RUN_REACHED);
}

static void heartbeats_keep_a_slow_run(void **state)
{
    struct play *play = *state;
    struct wg_job_run_summary summary;
    struct wg_error err;
    assert_int_equal(play_it(play, IS_SLOW, false, &summary, &err), WG_OK);
    assert_true(summary.reached);
}

static void surveys_come_before_the_run_unless_the_command_cannot(void **state)
{
    struct play *play = *state;
    struct wg_job_run_summary summary;
    struct wg_error err;
    play->tells_steps = true;
    assert_int_equal(play_it(play, REACHES, true, &summary, &err), WG_OK);
    play->can_survey = true;
    assert_int_equal(play_it(play, REACHES, true, &summary, &err), WG_OK);
    assert_true(summary.reached && summary.surveys >= 1);
    assert_true(play->survey_steps == 1600);
    assert_int_equal(summary.recurrence, 1);
}

static void surveys_that_come_to_nothing_are_not_made_for_ever(void **state)
{
    struct play *play = *state;
    struct wg_job_run_summary summary;
    struct wg_error err;
    unsigned surveys = 0;
    play->tells_steps = true;
    for (unsigned recurrence = 0; recurrence < 6; recurrence++) {
        assert_int_equal(play_it(play, REACHES, true, &summary, &err), WG_OK);
        assert_true(summary.reached && summary.surveys <= 1);
        assert_int_equal(summary.recurrence, recurrence);
        surveys += summary.surveys;
    }
    assert_int_equal(surveys, WG_JOB_SURVEYS_BROKEN);
}

static void without_steps_there_are_no_surveys(void **state)
{
    struct play *play = *state;
    struct wg_job_run_summary summary;
    struct wg_error err;
    play->can_survey = true;
    for (unsigned recurrence = 0; recurrence < 6; recurrence++) {
        assert_int_equal(play_it(play, REACHES, true, &summary, &err), WG_OK);
        assert_true(summary.reached && summary.surveys == 0);
    }
}

static void a_learning_rate_that_nobody_told_is_an_error(void **state)
{
    (void)state;
    struct play *play = calloc(1, sizeof *play);
    scratch_require(play != NULL, "memory");
    job_stage_open(&play->stage, "wattgov");
    struct wg_store *store = play->stage.store;
    struct wg_error err;
    struct wg_store_job other = play->stage.job;
    struct wg_job_run_summary summary;
    (void)snprintf(other.name, sizeof other.name, "other");
    other.learning_rate = NAN;
    assert_int_equal(store->ops->job_add(store, &other, &err), WG_OK);
    const struct wg_job_run_opts opts = {.request = job_stage_request(&play->stage),
                                         .words = words,
                                         .run = run,
                                         .context = play,
                                         .now_s = play_now_s};
    assert_int_equal(wg__job_run(store, "other", &opts, &summary, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "--learning-rate"));
    assert_int_equal(play->calls, 0);
    struct states states = {0};
    assert_int_equal(store->ops->run_each(store, other.id, collect, &states, &err), WG_OK);
    assert_int_equal(states.count, 0); /* no run was opened for it */
    job_stage_close(&play->stage);
    free(play);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_that_reaches_its_target_is_reported, setup, teardown),
        cmocka_unit_test_setup_teardown(what_falls_short_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_command_that_never_tells_its_metric_teaches_nothing,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_metric_that_is_no_number_is_said_once_and_the_run_goes_on,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(training_that_always_diverges_is_tried_three_times, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(epochs_without_any_metric_teach_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_command_that_breaks_is_tried_again_but_not_for_ever,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_missing_command_is_no_observation, setup, teardown),
        cmocka_unit_test_setup_teardown(ctrl_c_gives_the_run_back, setup, teardown),
        cmocka_unit_test_setup_teardown(a_store_that_fails_for_a_while_ends_no_run, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_a_store_would_not_take_can_be_reported_by_hand, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(heartbeats_keep_a_slow_run, setup, teardown),
        cmocka_unit_test_setup_teardown(surveys_come_before_the_run_unless_the_command_cannot,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(surveys_that_come_to_nothing_are_not_made_for_ever, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(without_steps_there_are_no_surveys, setup, teardown),
        cmocka_unit_test(a_learning_rate_that_nobody_told_is_an_error),
    };
    return run_tests(tests);
}
