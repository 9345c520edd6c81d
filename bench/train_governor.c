/* SPDX-License-Identifier: MIT
 *
 * The governor of live training on simulated runs of the bundled jobs: regret of the setting that
 * it holds first, what the profile costs, and how often a bound is missed.
 *
 *     ninja -C build/release bench/train_governor
 *     build/release/bench/train_governor [SEEDS [STEP_S]]     from the source root
 *
 * A row is a GPU's jobs, an objective and a noise, over all jobs and seeds. Overhead is what the
 * time until the first hold took, and drew, beyond what the setting held then would have, as a
 * share of 10 minutes of that setting. STEP_S is the time of a step at the largest limit.
 *
 * Threads: one.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "simulate/job_table.h"
#include "simulate/trace.h"
#include "support/train_world.h"

static const double run_s = 600, idle_share = 0.2; /* idle power over the smallest limit's */

struct tally {
    size_t runs, misses, unheld;
    double regret, worst_regret, overhead_s, worst_overhead_s, overhead_j, worst_overhead_j;
    double probed, measurements, hold_s, drifts;
    double worst_slowdown;
};

static void job_of(const struct wg_training_case *from, double step_s, struct train_world_job *out)
{
    const struct wg_training_arm *arm = &from->arms[from->default_arm];
    const size_t top = from->limit_count - 1;

    *out = (struct train_world_job){.count = from->limit_count,
                                    .idle_w = idle_share * from->limit_w[0]};
    for (size_t i = 0; i < out->count; i++) {
        out->setting[i] = from->limit_w[i];
        out->power_w[i] = arm->power_w[i];
        out->step_s[i] = step_s * arm->epoch_time_s[i] / arm->epoch_time_s[top];
    }
}

static void add(struct tally *tally, const struct train_world_result *result)
{
    const double share_s = result->overhead_s / run_s;
    const double share_j = result->overhead_j / (result->held_power_w * run_s);

    tally->runs++;
    if (isnan(result->hold_s)) {
        tally->unheld++;
        return;
    }
    tally->misses += result->first_regret > 0.01;
    tally->regret += fmax(result->first_regret, 0);
    tally->worst_regret = fmax(tally->worst_regret, result->first_regret);
    tally->overhead_s += share_s;
    tally->worst_overhead_s = fmax(tally->worst_overhead_s, share_s);
    tally->overhead_j += share_j;
    tally->worst_overhead_j = fmax(tally->worst_overhead_j, share_j);
    tally->probed += (double)result->probed;
    tally->measurements += (double)result->measurements;
    tally->hold_s += result->hold_s;
    tally->drifts += result->drifts;
    tally->worst_slowdown = fmax(tally->worst_slowdown, result->slowdown);
}

static void print(const char *gpu, const char *job, const char *objective, double step_noise,
                  const struct tally *tally)
{
    const double n = (double)(tally->runs - tally->unheld);

    (void)printf("| %-5s| %-13s| %-13s| %3.0f %% | %5.2f | %5.2f | %2zu | %5.2f | %5.2f | %5.2f | "
                 "%5.2f | %4.1f | %4.1f | %5.1f | %4.2f | %5.3f |\n",
                 gpu, job, objective, 100 * step_noise, 100 * tally->regret / n,
                 100 * tally->worst_regret, tally->misses, 100 * tally->overhead_s / n,
                 100 * tally->worst_overhead_s, 100 * tally->overhead_j / n,
                 100 * tally->worst_overhead_j, tally->probed / n, tally->measurements / n,
                 tally->hold_s / n, tally->drifts / n, tally->worst_slowdown);
}

static void run_job(const struct wg_training_case *from, double step_s, const char *objective,
                    double step_noise, size_t seeds, struct tally *tally, struct tally *all)
{
    const struct train_world_conditions conditions = {.step_noise = step_noise,
                                                      .power_noise = 0.01,
                                                      .counter_s = 0.1,
                                                      .settle_s = 0.3,
                                                      .warm_s = 2,
                                                      .warm_share = 1};
    struct wg_train_config config = {.setting_w = 1, .neighbor_setting = NAN};
    struct train_world_result result;
    struct train_world_job job;

    job_of(from, step_s, &job);
    if (wg__objective_parse(objective, &config.objective, NULL) != WG_OK)
        exit(1);
    config.objective.max_power_w = from->max_power_w;
    for (size_t seed = 1; seed <= seeds; seed++) {
        train_world_run(&job, &conditions, &config, seed, run_s, &result);
        add(tally, &result);
        add(all, &result);
    }
}

static int run_all(const struct wg_training_trace *trace, const struct wg_job_table *jobs,
                   double step_s, size_t seeds)
{
    static const char *const objectives[] = {"energy", "cost:0.5", "slowdown:1.1"};
    static const double noises[] = {0.01, 0.03, 0.05};
    struct wg_error err;

    for (size_t g = 0; g < wg__trace_gpu_count(trace); g++)
        for (size_t o = 0; o < sizeof objectives / sizeof objectives[0]; o++)
            for (size_t n = 0; n < sizeof noises / sizeof noises[0]; n++) {
                const char *gpu = wg__trace_gpu(trace, g);
                struct tally all = {0};

                for (size_t j = 0; j < jobs->count; j++) {
                    struct wg_training_case *from;
                    struct tally tally = {0};

                    if (wg__trace_case(trace, gpu, &jobs->jobs[j], &from, &err) != WG_OK) {
                        (void)fprintf(stderr, "train_governor: %s\n", err.text);
                        return 1;
                    }
                    run_job(from, step_s, objectives[o], noises[n], seeds, &tally, &all);
                    print(gpu, jobs->jobs[j].name, objectives[o], noises[n], &tally);
                    wg__case_free(from);
                }
                print(gpu, "all", objectives[o], noises[n], &all);
            }
    return 0;
}

int main(int argc, char **argv)
{
    double seeds = 20, step_s = 0.2;
    struct wg_training_trace *trace = NULL;
    struct wg_job_table *jobs = NULL;
    struct wg_error err;

    if ((argc > 1 && !wg__parse_double(argv[1], &seeds)) || !(seeds >= 1) ||
        (argc > 2 && !wg__parse_double(argv[2], &step_s)))
        return 2;
    if (wg__trace_open(&trace, "data/zeus/trace", &err) != WG_OK ||
        wg__job_table_open(&jobs, NULL, &err) != WG_OK) {
        (void)fprintf(stderr, "train_governor: %s\n", err.text);
        wg__trace_close(trace);
        return 1;
    }
    (void)printf(
        "| GPU  | job          | objective    | noise | regret mean | worst | > 1 %% | "
        "time mean | worst | energy mean | worst | settings | measured | hold s | drifts "
        "| slowdown |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    const int status = run_all(trace, jobs, step_s, (size_t)seeds);

    wg__job_table_close(jobs);
    wg__trace_close(trace);
    return status;
}
