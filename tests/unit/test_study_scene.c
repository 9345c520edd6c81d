/* SPDX-License-Identifier: MIT
 *
 * Tests of which cases a study has and of what is known of them without a replay
 * (simulate/study_scene.h).
 */
#include "simulate/study_scene.h"

#include "support/study.h"

static void describes_the_world_as_worked_by_hand(void **state)
{
    (void)state;
    static const char *const name = "toy";
    struct tiny tiny;
    tiny_open(&tiny);
    struct wg_study_request request = request_of_toy(&tiny, &name);
    struct wg_study *study = run(&request);
    const struct wg_study_world *world = &study->worlds[0];
    assert_string_equal(world->metric, "accuracy");
    check_close(world->default_batch_size, 8, 0);
    check_close(world->oracle_batch_size, 16, 0);
    check_close(world->oracle_limit_w, 100, 0);
    check_close(world->default_bill.cost_j, 7200, 1e-14);
    check_close(world->default_bill.energy_j, 6400, 1e-14);
    check_close(world->oracle_bill.cost_j, 5220, 1e-14);
    check_close(world->oracle_bill.time_s, 36, 1e-14);
    check_close(world->default_total.cost_j, 20 * 7200, 1e-14);
    check_close(world->cumulative_default_j[4], 5 * 7200, 1e-14);
    check_close(world->cumulative_oracle_j[19], 20 * 5220, 1e-14);
    assert_int_equal(world->left_out_count, 1);
    check_close(world->left_out[0], 64, 0);
    assert_int_equal(world->point_count, 6);
    /* Seconds and joules per recurrence: 8: 80, 6400 and 40, 6400; 16: 36, 3240 and 32, 4800;
     * 32: 160, 16000 and 96, 17280. Nothing beats batch size 16. */
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(world->points[i].is_on_front, world->points[i].batch_size == 16);
    check_close(world->points[2].time_s, 36, 1e-14);
    check_close(world->points[2].energy_j, 3240, 1e-14);
    check_close(world->points[3].power_limit_w, 200, 0);
    wg__study_free(study);
    tiny_close(&tiny);
}

static void leaves_settings_that_never_reach_the_target_out_of_the_plane(void **state)
{
    (void)state;
    static const char *const name = "hopeless";
    struct tiny tiny;
    tiny_open(&tiny);
    struct wg_study_request request = request_of_toy(&tiny, &name);
    struct wg_study *study = run(&request);
    assert_int_equal(study->worlds[0].arm_count, 2);
    assert_int_equal(study->worlds[0].point_count, 2);
    wg__study_free(study);
    tiny_close(&tiny);
}

/* toy turns into toy-large, whose best setting is batch size 32 at 200 W: 4 x 1140. */
static void the_yardsticks_follow_a_drift(void **state)
{
    (void)state;
    static const char *const name = "toy";
    struct tiny tiny;
    tiny_open(&tiny);
    struct wg_study_request request = request_of_toy(&tiny, &name);
    request.policies = yardsticks;
    request.policy_count = 2;
    request.drift_job = "toy-large";
    request.rules.drift_at = 8;
    request.seeds = 1;
    struct wg_study *study = run(&request);
    const struct wg_study_world *world = &study->worlds[0];
    check_close(world->oracle_batch_size, 32, 0);
    check_close(world->oracle_limit_w, 200, 0);
    check_close(world->oracle_bill.cost_j, 4560, 1e-14);
    check_close(world->default_bill.cost_j, 7200, 1e-14);
    check_close(world->cumulative_oracle_j[7], 8 * 5220, 1e-14);
    check_close(world->cumulative_oracle_j[9], 8 * 5220 + 2 * 4560, 1e-14);
    check_close(world->oracle_total.cost_j, 8 * 5220 + 12 * 4560, 1e-14);
    /* Each run of the replayed oracle takes 3 or 5 epochs of the setting that is best then. */
    const struct wg_study_case *oracle = find(study, "toy", "toy", "oracle");
    for (size_t r = 0; r < 20; r++) {
        const double cost_j =
            oracle->cumulative_cost_j[r] - (r > 0 ? oracle->cumulative_cost_j[r - 1] : 0);
        const double epochs = cost_j / (r < 8 ? 1305 : 1140);
        assert_true(fabs(epochs - 3) < 1e-9 || fabs(epochs - 5) < 1e-9);
    }
    check_close(oracle->attempts_per_recurrence, 1, 1e-14);
    check_close(oracle->final_batch_size, 32, 0);
    wg__study_free(study);
    tiny_close(&tiny);
}

static void leaves_out_the_gpu_that_is_learned_on(void **state)
{
    (void)state;
    struct tiny traces;
    open_bundled(&traces);
    struct wg_study_request request = request_of(traces.trace, traces.jobs);
    struct wg_study *cold = run(&request);
    request.warm_gpu = "A40";
    request.warm_recurrences = 30;
    struct wg_study *warm = run(&request);
    assert_int_equal(warm->world_count, 6);
    double cold_excess = 0, warm_excess = 0;
    for (size_t i = 0; i < warm->case_count; i++) {
        const struct wg_study_case *of = &warm->cases[i];
        const char *job = warm->worlds[of->world].job;
        assert_string_equal(warm->worlds[of->world].gpu, "v100");
        const struct wg_study_case *other = find(cold, "v100", job, of->policy);
        if (strcmp(of->policy, "wattgov") != 0) {
            check_close(of->cost_j.mean, other->cost_j.mean, 0); /* they carry nothing over */
            continue;
        }
        warm_excess += of->cost_over_oracle.mean - 1;
        cold_excess += other->cost_over_oracle.mean - 1;
    }
    assert_true(warm_excess < cold_excess);
    wg__study_free(warm);
    wg__study_free(cold);
    tiny_close(&traces);
}

static void rejects_cases_that_do_not_exist(void **state)
{
    (void)state;
    static const char *const toy = "toy", *const hopeless = "hopeless", *const none = "none";
    static const char *const tiny_gpu = "tiny";
    struct tiny tiny;
    tiny_open(&tiny);
    struct wg_study_request request = request_of_toy(&tiny, &none);
    check_rejects(&request, WG_EINVAL, "no job 'none'");
    request = request_of_toy(&tiny, &toy);
    request.gpus = &none;
    check_rejects(&request, WG_EINVAL, "no GPU 'none'");
    request = request_of_toy(&tiny, &hopeless);
    request.gpus = &tiny_gpu;
    check_rejects(&request, WG_EDATA, "summary_power_Tiny.csv"); /* both were named */
    request = request_of_toy(&tiny, &toy);
    request.warm_gpu = "toy";
    request.warm_recurrences = 1;
    check_rejects(&request, WG_EINVAL, "no case to replay");
    request.warm_gpu = "none";
    check_rejects(&request, WG_EINVAL, "no GPU 'none'");
    request = request_of_toy(&tiny, &toy);
    request.drift_job = "none";
    check_rejects(&request, WG_EINVAL, "no job 'none'");
    request = request_of_toy(&tiny, &toy);
    request.target_metric = 0.7;
    check_rejects(&request, WG_EUNREACHABLE, "target metric 0.7");
    request = request_of_toy(&tiny, &toy);
    request.default_batch_size = 9;
    check_rejects(&request, WG_EDATA, "default batch size 9");
    tiny_close(&tiny);
}

static void takes_target_and_default_from_the_request(void **state)
{
    (void)state;
    static const char *const name = "toy";
    struct tiny tiny;
    tiny_open(&tiny);
    struct wg_study_request request = request_of_toy(&tiny, &name);
    request.target_metric = 0.3; /* 16: after 1 or 2 epochs */
    request.default_batch_size = 16;
    struct wg_study *study = run(&request);
    check_close(study->worlds[0].target_metric, 0.3, 0);
    check_close(study->worlds[0].default_bill.cost_j, 1.5 * 1400, 1e-14);
    wg__study_free(study);
    tiny_close(&tiny);
}

static void the_same_name_twice_counts_once(void **state)
{
    (void)state;
    static const char *const jobs[] = {"toy", "toy"}, *const gpus[] = {"toy", "TOY"};
    static const char *const policies[] = {"zeus", "default", "zeus"};
    struct tiny tiny;
    tiny_open(&tiny);
    struct wg_study_request request = request_of(tiny.trace, tiny.jobs);
    request.job_names = jobs;
    request.gpus = gpus;
    request.job_count = request.gpu_count = 2;
    request.policies = policies;
    request.policy_count = 3;
    struct wg_study *study = run(&request);
    assert_int_equal(study->world_count, 1);
    assert_int_equal(study->summary_count, 2);
    assert_string_equal(study->cases[0].policy, "zeus");
    assert_string_equal(study->cases[1].policy, "default");
    wg__study_free(study);
    tiny_close(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describes_the_world_as_worked_by_hand),
        cmocka_unit_test(leaves_settings_that_never_reach_the_target_out_of_the_plane),
        cmocka_unit_test(the_yardsticks_follow_a_drift),
        cmocka_unit_test(leaves_out_the_gpu_that_is_learned_on),
        cmocka_unit_test(rejects_cases_that_do_not_exist),
        cmocka_unit_test(takes_target_and_default_from_the_request),
        cmocka_unit_test(the_same_name_twice_counts_once),
    };
    return run_tests(tests);
}
