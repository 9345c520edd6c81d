/* SPDX-License-Identifier: MIT
 *
 * The governor of live training on the measured curves of the bundled jobs (data/zeus/trace), in
 * simulated runs with noise, jitter, late settings and a warm-up: what it promises in
 * docs/internals/live-governor.md, by the numbers that bench/train_governor.c prints.
 */
#include "optimize/train_governor.h"

#include <stdlib.h>

#include "simulate/job_table.h"
#include "simulate/trace.h"
#include "support/check.h"
#include "support/train_world.h"

enum { SEEDS = 5 };

static const double run_s = 600;

struct sums {
    size_t runs, misses;
    double regret, overhead_s, overhead_j; /* sums; overhead as shares of the run */
    double worst_overhead, worst_slowdown;
};

static struct train_world_job job_of(const struct wg_training_case *from)
{
    const struct wg_training_arm *arm = &from->arms[from->default_arm];
    struct train_world_job job = {.count = from->limit_count, .idle_w = 20};

    for (size_t i = 0; i < job.count; i++) {
        job.setting[i] = from->limit_w[i];
        job.power_w[i] = arm->power_w[i];
        job.step_s[i] = 0.2 * arm->epoch_time_s[i] / arm->epoch_time_s[job.count - 1];
    }
    return job;
}

static void add(struct sums *sums, const struct train_world_result *result)
{
    const double share_s = result->overhead_s / run_s;
    const double share_j = result->overhead_j / (result->held_power_w * run_s);

    sums->runs++;
    sums->misses += result->first_regret > 0.01 ? 1 : 0;
    sums->regret += fmax(result->first_regret, 0);
    sums->overhead_s += share_s;
    sums->overhead_j += share_j;
    sums->worst_overhead = fmax(sums->worst_overhead, fmax(share_s, share_j));
    sums->worst_slowdown = fmax(sums->worst_slowdown, result->slowdown);
}

/* All jobs on both GPUs. */
static struct sums run_all(const char *objective, double step_noise)
{
    const struct train_world_conditions conditions = {.step_noise = step_noise,
                                                      .power_noise = 0.01,
                                                      .counter_s = 0.1,
                                                      .settle_s = 0.3,
                                                      .warm_s = 2,
                                                      .warm_share = 1};
    struct wg_train_config config = {.setting_w = 1, .neighbor_setting = NAN};
    const char *root = getenv("WATTGOV_SOURCE_ROOT");
    struct wg_training_trace *trace;
    struct wg_job_table *jobs;
    struct sums sums = {0};
    char path[1024];

    (void)snprintf(path, sizeof path, "%s/data/zeus/trace", root != NULL ? root : ".");
    assert_int_equal(wg__trace_open(&trace, path, NULL), WG_OK);
    assert_int_equal(wg__job_table_open(&jobs, NULL, NULL), WG_OK);
    assert_int_equal(wg__objective_parse(objective, &config.objective, NULL), WG_OK);
    for (size_t gpu = 0; gpu < wg__trace_gpu_count(trace); gpu++)
        for (size_t j = 0; j < jobs->count; j++) {
            struct wg_training_case *from;
            struct train_world_result result;

            assert_int_equal(
                wg__trace_case(trace, wg__trace_gpu(trace, gpu), &jobs->jobs[j], &from, NULL),
                WG_OK);
            const struct train_world_job job = job_of(from);

            config.objective.max_power_w = from->max_power_w;
            for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                train_world_run(&job, &conditions, &config, seed, run_s, &result);
                assert_true(result.hold_s < 200);
                assert_int_equal(result.drifts, 0);
                add(&sums, &result);
            }
            wg__case_free(from);
        }
    wg__job_table_close(jobs);
    wg__trace_close(trace);
    return sums;
}

static void the_bundled_jobs_cost_within_a_per_cent_of_their_best(void **state)
{
    static const char *const objectives[] = {"energy", "cost:0.5"};
    static const double noises[] = {0.01, 0.03};

    (void)state;
    for (size_t o = 0; o < 2; o++)
        for (size_t n = 0; n < 2; n++) {
            const struct sums sums = run_all(objectives[o], noises[n]);
            const double runs = (double)sums.runs;

            assert_int_equal(sums.runs, 2 * 6 * SEEDS);
            if (!(sums.regret / runs < 0.002) || sums.misses * 20 > sums.runs ||
                !(sums.overhead_s / runs < 0.01) || !(sums.overhead_j / runs < 0.01) ||
                !(sums.worst_overhead < 0.025))
                fail_msg("%s, noise %g: mean regret %g, %zu over 1 %%, overhead %g of the time, %g "
                         "of the energy, at most %g",
                         objectives[o], noises[n], sums.regret / runs, sums.misses,
                         sums.overhead_s / runs, sums.overhead_j / runs, sums.worst_overhead);
        }
}

static void no_job_is_slowed_down_beyond_the_bound(void **state)
{
    static const double noises[] = {0.01, 0.05};

    (void)state;
    for (size_t n = 0; n < 2; n++) {
        const struct sums sums = run_all("slowdown:1.1", noises[n]);

        if (!(sums.worst_slowdown <= 1.1))
            fail_msg("noise %g: slowed down by %g", noises[n], sums.worst_slowdown);
        assert_true(sums.regret / (double)sums.runs < 0.02);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bundled_jobs_cost_within_a_per_cent_of_their_best),
        cmocka_unit_test(no_job_is_slowed_down_beyond_the_bound),
    };

    return run_tests(tests);
}
