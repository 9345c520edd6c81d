/* SPDX-License-Identifier: MIT
 *
 * Fills a store with a job of many recurrences, as `wattgov job next` and `report` would, and says
 * what a decision then costs inside a process.
 *
 *     bench/job_store FILE RECURRENCES EPOCHS
 *
 * EPOCHS is the mean number of epochs that a run reports. Prints JSON. bench/job_store.py measures
 * the commands themselves on that store.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "live/job.h"
#include "live/job_policy.h"
#include "math/normal.h"

enum { ROUNDS = 20 };

static const double host_time_s = 1.8e9;

struct world {
    struct wg_store *store;
    struct wg_store_job job;
    struct wg_batch_policy *policy;
    const struct wg_batch_policy_ops *ops;
    struct wg_rng luck;
    double epochs;
};

static void require(enum wg_code code, const struct wg_error *err)
{
    if (code == WG_OK)
        return;
    (void)fprintf(stderr, "job_store: %s\n", err->text);
    exit(EXIT_FAILURE);
}

static void make_job(struct world *world)
{
    struct wg_error err;
    world->job = (struct wg_store_job){.batch_count = 6,
                                       .batch_size = {8, 16, 32, 64, 128, 256},
                                       .default_batch = 32,
                                       .name = "bench",
                                       .metric = "acc",
                                       .higher_is_better = true,
                                       .target = 0.8,
                                       .max_epochs = 1000,
                                       .objective = "energy",
                                       .max_power_w = NAN,
                                       .policy = "wattgov",
                                       .learning_rate = NAN,
                                       .lease_s = 86400};
    require(world->store->ops->begin(world->store, true, &err), &err);
    require(world->store->ops->job_add(world->store, &world->job, &err), &err);
    require(world->store->ops->commit(world->store, &err), &err);
}

/* One run from its start to its end, in the log and in the policy. */
static bool run(struct world *world, uint64_t recurrence, unsigned attempt)
{
    struct wg_error err;
    const struct wg_store_ops *ops = world->store->ops;
    struct wg_rng root;
    wg__rng_init(&root, 0);
    const struct wg_rng of_recurrence = wg__rng_split(&root, recurrence);
    struct wg_rng rng = wg__rng_split(&of_recurrence, attempt);
    const struct wg_batch_request request = {recurrence, attempt, true};
    struct wg_batch_step step;
    world->ops->ask(world->policy, &request, &rng, &step);
    struct wg_store_run row = {.job = world->job.id,
                               .recurrence = recurrence,
                               .attempt = attempt,
                               .batch_size = world->job.batch_size[step.arm],
                               .limit = step.limit,
                               .ticket = step.ticket,
                               .gpu_model = "NVIDIA A40",
                               .gpu_count = 1,
                               .max_power_w = 300,
                               .host = "node-17",
                               .pid = 4711,
                               .started_s = host_time_s + 600 * (double)recurrence,
                               .lease_s = 86400,
                               .lease_until_s = host_time_s * 2};
    require(ops->run_add(world->store, &row, &err), &err);
    const double x = fabs((double)step.arm - 3);
    const double needs =
        ceil(world->epochs * (0.8 + 0.2 * x) * exp(0.15 * wg__rng_normal(&world->luck)));
    unsigned done = 0;
    double metric = NAN;
    while (done < needs && world->ops->may_continue(world->policy, step.ticket, done, metric)) {
        metric = 0.8 * (++done) / needs;
        require(ops->run_epoch(world->store, row.id, done, metric, &err), &err);
    }
    row.state = done >= needs ? WG_RUN_REACHED : WG_RUN_STOPPED;
    row.ended_s = row.started_s + 500;
    row.epochs = done;
    row.energy_j = 1000.0 * done * (1 + 0.1 * x);
    row.time_s = 10.0 * done;
    row.cost_j = row.energy_j;
    row.metric = metric;
    row.setting = 225;
    row.steps_per_epoch = 391;
    row.saved_j = 1000;
    row.saved_sd_j = 10;
    require(ops->run_end(world->store, &row, &err), &err);
    const double epoch_j = row.cost_j / fmax(1, done);
    if (done > 0)
        world->ops->tell_profile(world->policy, step.arm,
                                 &(struct wg_batch_profile){epoch_j, epoch_j, epoch_j});
    const bool reached = row.state == WG_RUN_REACHED;
    world->ops->tell_run(world->policy, step.ticket,
                         &(struct wg_batch_outcome){reached, done, row.cost_j});
    return reached;
}

static void fill(struct world *world, uint64_t recurrences)
{
    struct wg_error err;
    require(world->store->ops->begin(world->store, true, &err), &err);
    for (uint64_t i = 0; i < recurrences; i++)
        for (unsigned attempt = 0; attempt < WG_ATTEMPTS_MAX && !run(world, i, attempt); attempt++)
            ;
    require(world->store->ops->commit(world->store, &err), &err);
}

static double rebuild_ms(struct world *world, bool ignores_snapshot)
{
    struct wg_error err;
    struct wg_job_policy *policy = NULL;
    double least = INFINITY;
    for (unsigned i = 0; i < (ignores_snapshot ? 1 : ROUNDS); i++) {
        const uint64_t from_ns = wg__clock_ns();
        require(wg__job_policy_open(&policy, world->store, &world->job, ignores_snapshot, &err),
                &err);
        wg__job_policy_free(policy);
        least = fmin(least, (double)(wg__clock_ns() - from_ns) * 1e-6);
    }
    return least;
}

int main(int argc, char *argv[])
{
    struct wg_error err;
    uint64_t recurrences = 0;
    struct world world = {.ops = &wg__batch_policy_wattgov};
    if (argc != 4 || !wg__parse_uint64(argv[2], &recurrences) ||
        !wg__parse_double(argv[3], &world.epochs)) {
        (void)fprintf(stderr, "usage: job_store FILE RECURRENCES EPOCHS\n");
        return 2;
    }
    require(wg__store_open(&world.store, &(struct wg_store_opts){.path = argv[1]}, &err), &err);
    make_job(&world);
    struct wg_batch_job job = {.arm_count = 6,
                               .default_arm = 2,
                               .limit_count = 1,
                               .max_epochs = 1000,
                               .higher_is_better = true,
                               .target_metric = 0.8};
    for (size_t i = 0; i < 6; i++)
        job.batch_size[i] = world.job.batch_size[i];
    require(world.ops->create(&world.policy, &job, &(struct wg_batch_options){0}, &err), &err);
    wg__rng_init(&world.luck, 1);
    fill(&world, recurrences);
    const double replay_ms = rebuild_ms(&world, true);
    struct wg_job_order order;
    const struct wg_job_request request = {.gpu_model = "NVIDIA A40",
                                           .gpu_count = 1,
                                           .max_power_w = 300,
                                           .host = "",
                                           .now_s = host_time_s};
    require(wg__job_next(world.store, "bench", &request, &order, &err), &err); /* snapshot */
    (void)printf("{\"recurrences\": %llu, \"replay_ms\": %.3f, \"from_snapshot_ms\": %.3f}\n",
                 (unsigned long long)recurrences, replay_ms, rebuild_ms(&world, false));
    world.ops->destroy(world.policy);
    wg__store_close(world.store);
    return 0;
}
