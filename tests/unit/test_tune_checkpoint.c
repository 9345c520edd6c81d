/* SPDX-License-Identifier: MIT
 *
 * What a tuning keeps: written and read it is the same; a cut, foreign or damaged one is refused.
 */
#include "live/tune_checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/file.h"
#include "support/check.h"
#include "support/scratch.h"

struct stage {
    struct wg_tune_devices devices;
    struct wg_tune_knobs knobs;
    struct wg_tune_goal goal;
    struct wg_buffer identity;
    struct wg_tune_request request;
    struct wg_tune_result result;
    struct wg_tune_trial trials[4];
};

static void stage_init(struct stage *stage, const char *objective)
{
    static const char *const knobs[] = {"batch=4,1,2:batch", "precision=fp16,fp32:default=fp32"};
    static const char *const forbids[] = {"batch==4 && precision==fp16"};
    static const char *const limits[] = {"p99_s<=0.1"};
    struct wg_error err;
    *stage = (struct stage){0};
    if (wg__tune_knobs_init(&stage->knobs, &stage->devices, knobs, 2, forbids, 1, &err) != WG_OK ||
        wg__tune_goal_init(&stage->goal, objective, limits, 1, &err) != WG_OK)
        fail_msg("%s", err.text);
    wg__buffer_init(&stage->identity);
    wg__tune_identity(&stage->identity, &stage->knobs, &stage->goal, WG_TUNER_WATTGOV, 3, "cmd",
                      "gpu", NULL);
    stage->request = (struct wg_tune_request){
        .knobs = &stage->knobs, .goal = &stage->goal, .identity = stage->identity.data};
    stage->result.trials = stage->trials;
}

static void stage_fini(struct stage *stage)
{
    for (size_t i = 0; i < 4; i++)
        wg__free(stage->trials[i].figures);
    wg__buffer_fini(&stage->identity);
    wg__tune_goal_fini(&stage->goal);
    wg__tune_knobs_fini(&stage->knobs);
}

static void fill(struct stage *stage)
{
    stage->result.count = 2;
    stage->result.bounds[0] = 0.1;
    struct wg_tune_trial *first = &stage->trials[0];
    first->told = (struct wg_trial){.configuration = 2,
                                    .outcome = WG_TRIAL_MEASURED,
                                    .objective = 0.1 + 0.2,
                                    .objective_error = 0.01,
                                    .figures = {0.07},
                                    .figure_errors = {0.02},
                                    .is_slack = true,
                                    .slack_knob = 0,
                                    .slack_level = 1};
    first->reason = WG_TUNER_SAVING;
    (void)snprintf(first->why, sizeof first->why, "because \"of\" it");
    first->figures = wg__alloc_zeroed(WG_WORKLOAD_FIGURES_MAX, sizeof *first->figures);
    first->figure_count = 1;
    first->figures[0] = (struct wg_workload_figure){.name = "p99_s", .value = 0.07};
    struct wg_tune_trial *second = &stage->trials[1];
    second->told = (struct wg_trial){
        .configuration = 0, .outcome = WG_TRIAL_CRASHED, .objective = NAN, .figures = {NAN}};
    second->reason = WG_TUNER_DEFAULT;
    second->energy_j = NAN;
    (void)snprintf(second->failure, sizeof second->failure, "exit status 1");
}

static void space_is_the_box_less_what_is_forbidden(void **state)
{
    (void)state;
    struct stage stage;
    stage_init(&stage, "energy_j");
    assert_int_equal(stage.knobs.space->count, 5);
    /* The level written first is a workload's default, whatever its size. */
    assert_int_equal(stage.knobs.knobs[0].default_level, 2);
    assert_int_equal(stage.knobs.knobs[1].default_level, 1);
    struct wg_workload_setting settings[WG_TUNING_KNOBS_MAX];
    static const uint16_t levels[] = {2, 1};
    assert_int_equal(wg__tune_workload_settings(&stage.knobs, levels, settings), 2);
    check_close(settings[0].value, 4, 0);
    assert_string_equal(settings[1].label, "fp32");
    stage_fini(&stage);
}

static void making_a_space_survives_a_lack_of_memory(void **state)
{
    (void)state;
    static const char *const texts[] = {"batch=4,1,2:batch", "precision=fp16,fp32"};
    static const char *const forbids[] = {"batch==4 && precision==fp32"};
    const struct wg_tune_devices devices = {0};
    for (size_t nth = 1;; nth++) {
        struct wg_tune_knobs knobs;
        struct wg_error err;
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__tune_knobs_init(&knobs, &devices, texts, 2, forbids, 1, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK) {
            wg__tune_knobs_fini(&knobs);
            break;
        }
        assert_int_equal(code, WG_ENOMEM);
        assert_true(nth < 100);
    }
}

static void comes_back_as_it_was_written(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "t.state");
    struct stage stage, other;
    struct wg_error err;
    stage_init(&stage, "energy_j");
    stage_init(&other, "energy_j");
    fill(&stage);
    assert_int_equal(wg__tune_checkpoint_write(path, &stage.request, &stage.result, &err), WG_OK);
    if (wg__tune_checkpoint_read(path, &other.request, &other.result, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_int_equal(other.result.count, 2);
    assert_int_equal(other.result.resumed, 2);
    check_close(other.result.bounds[0], 0.1, 0);
    check_close(other.trials[0].told.objective, 0.1 + 0.2, 0); /* to the last bit */
    assert_int_equal(other.trials[0].told.configuration, 2);
    assert_int_equal(other.trials[0].reason, WG_TUNER_SAVING);
    assert_true(other.trials[0].told.is_slack && !other.trials[1].told.is_slack);
    assert_int_equal(other.trials[0].told.slack_knob, 0);
    check_close(other.trials[0].told.slack_level, 1, 0);
    assert_string_equal(other.trials[0].why, "because \"of\" it");
    assert_string_equal(other.trials[0].figures[0].name, "p99_s");
    assert_int_equal(other.trials[1].told.outcome, WG_TRIAL_CRASHED);
    assert_true(isnan(other.trials[1].told.objective));
    assert_string_equal(other.trials[1].failure, "exit status 1");
    assert_true(other.trials[1].is_resumed);
    stage_fini(&stage);
    stage_fini(&other);
    scratch_close(&scratch);
}

static void refuses_another_tunings(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "t.state");
    struct stage stage, other;
    struct wg_error err;
    stage_init(&stage, "energy_j");
    stage_init(&other, "power_w");
    fill(&stage);
    assert_int_equal(wg__tune_checkpoint_write(path, &stage.request, &stage.result, &err), WG_OK);
    assert_int_equal(wg__tune_checkpoint_read(path, &other.request, &other.result, &err), WG_EDATA);
    assert_non_null(strstr(err.text, "is of another tuning: its objective differs"));
    stage_fini(&stage);
    stage_fini(&other);
    scratch_close(&scratch);
}

/* Whatever is cut off, it is told, and nothing is read beyond. */
static void refuses_what_was_cut_off(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "t.state");
    struct stage stage;
    struct wg_error err;
    stage_init(&stage, "energy_j");
    fill(&stage);
    assert_int_equal(wg__tune_checkpoint_write(path, &stage.request, &stage.result, &err), WG_OK);
    char text[8192];
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    const size_t length = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    assert_true(length < sizeof text);
    for (size_t cut = 0; cut + 2 < length; cut += 7) {
        struct stage other;
        stage_init(&other, "energy_j");
        assert_int_equal(wg__file_write(path, text, cut, &err), WG_OK);
        assert_int_equal(wg__tune_checkpoint_read(path, &other.request, &other.result, &err),
                         WG_EDATA);
        stage_fini(&other);
    }
    assert_int_equal(wg__tune_checkpoint_read(scratch_path(&scratch, "none"), &stage.request,
                                              &stage.result, &err),
                     WG_ENOENT);
    stage_fini(&stage);
    scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(space_is_the_box_less_what_is_forbidden),
        cmocka_unit_test(making_a_space_survives_a_lack_of_memory),
        cmocka_unit_test(comes_back_as_it_was_written),
        cmocka_unit_test(refuses_another_tunings),
        cmocka_unit_test(refuses_what_was_cut_off),
    };
    return run_tests(tests);
}
