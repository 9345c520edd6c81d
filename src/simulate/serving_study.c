/* SPDX-License-Identifier: MIT
 *
 * Running a serving study: see serving_study.h.
 *
 *     task = (block of seeds, cell)      a worker takes the next one, runs its seeds one by one and
 *                                        writes their sum into the block's place
 *
 * There are at most BLOCKS_MAX blocks, whatever the seeds: memory does not grow with them. The
 * cells of a block follow each other, so that no worker is left alone with the slowest policy.
 * Latencies are counted in one shared histogram a cell; counts add up in any order.
 *
 * Owns: its shared memory.    Threads: as the header says.
 */
#include "simulate/serving_study.h"

#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "math/statistics.h"
#include "simulate/workers.h"

enum { BLOCKS_MAX = 64 };

/* The streams of a seed. */
enum { STREAM_ARRIVALS, STREAM_NOISE, STREAM_PLACE };

/* What the runs of a block give; shared. The products are those of v violated of n requests: exact
 * up to 2^53, and no square of many requests overflows. */
struct block {
    struct wg_serving_sum sum;
    double vv, vn, nn;
    uint64_t cpu_ns;
};

struct runner {
    const struct wg_serving_study_request *request;
    struct wg_arrivals *arrivals[WG_SERVING_LAWS_MAX]; /* each process has its own copy */
    size_t cell_count;
    size_t block_seeds, block_count;
    struct block *blocks; /* [cell][block]; shared */
    uint64_t *counts;     /* [cell][WG_HISTOGRAM_BINS]; shared */
};

/* -- One run ------------------------------------------------------------------------------- */

static struct wg_serving_setup setup_of(const struct wg_serving_study_request *request,
                                        size_t policy)
{
    struct wg_serving_setup setup = request->base;
    setup.finetune = request->policies[policy].finetune;
    setup.batcher = request->policies[policy].batcher;
    setup.drop = request->policies[policy].drop;
    return setup;
}

static enum wg_code run_seed(const struct wg_serving_study_request *request, size_t policy,
                             struct wg_arrivals *arrivals, uint64_t seed,
                             struct wg_serving_sum *sum, struct wg_histogram *latencies,
                             const struct wg_timeline *timeline, struct wg_error *err)
{
    const struct wg_serving_setup setup = setup_of(request, policy);
    struct wg_rng root;
    wg__rng_init(&root, seed);
    const struct wg_rng moments = wg__rng_split(&root, STREAM_ARRIVALS);
    const struct wg_rng noise = wg__rng_split(&root, STREAM_NOISE);
    struct wg_rng place = wg__rng_split(&root, STREAM_PLACE);
    wg__arrivals_restart(arrivals, &moments);
    wg__arrivals_seek(arrivals, wg__rng_uniform(&place));
    return wg__serving_run(&setup, arrivals, &noise, sum, latencies, timeline, err);
}

static enum wg_code run_task(void *context, size_t task, struct wg_error *err)
{
    struct runner *runner = context;
    const struct wg_serving_study_request *request = runner->request;
    const size_t cell = task % runner->cell_count;
    const size_t at = task / runner->cell_count;
    const size_t first = at * runner->block_seeds;
    const size_t end = first + runner->block_seeds;
    struct block *block = &runner->blocks[cell * runner->block_count + at];
    struct wg_histogram latencies = {&runner->counts[cell * WG_HISTOGRAM_BINS]};
    const uint64_t began_ns = wg__clock_thread_ns();
    enum wg_code code = WG_OK;
    for (size_t i = first; i < end && i < request->seeds && code == WG_OK; i++) {
        const uint64_t requests = block->sum.requests;
        const uint64_t violations = block->sum.late + block->sum.dropped;
        code = run_seed(request, cell % request->policy_count,
                        runner->arrivals[cell / request->policy_count], request->first_seed + i,
                        &block->sum, &latencies, NULL, err);
        const double n = (double)(block->sum.requests - requests);
        const double v = (double)(block->sum.late + block->sum.dropped - violations);
        block->vv += v * v;
        block->vn += v * n;
        block->nn += n * n;
    }
    block->cpu_ns = wg__clock_thread_ns() - began_ns;
    return code;
}

/* -- What the cells say -------------------------------------------------------------------- */

static void find_seeds95(struct wg_serving_cell *cell, const struct block *products)
{
    const double runs = (double)cell->sum.runs;
    const double rate = cell->violation_rate;
    cell->seeds95[0] = cell->seeds95[1] = (double)NAN;
    if (cell->sum.runs < 2 || cell->sum.requests == 0)
        return;
    const double squares = products->vv - 2.0 * rate * products->vn + rate * rate * products->nn;
    const double error =
        sqrt(fmax(0.0, squares) / (runs * (runs - 1.0))) / ((double)cell->sum.requests / runs);
    const double half = error * wg__student_quantile975(cell->sum.runs - 1);
    cell->seeds95[0] = fmax(0.0, rate - half);
    cell->seeds95[1] = fmin(1.0, rate + half);
}

static void conclude_cell(const struct runner *runner, size_t index, struct wg_serving_cell *cell)
{
    const struct wg_serving_study_request *request = runner->request;
    struct block products = {0};
    *cell = (struct wg_serving_cell){
        .policy = index % request->policy_count,
        .law = index / request->policy_count,
        .rate = wg__arrivals_rate(runner->arrivals[index / request->policy_count]),
    };
    for (size_t i = 0; i < runner->block_count; i++) {
        const struct block *block = &runner->blocks[index * runner->block_count + i];
        wg__serving_sum_add(&cell->sum, &block->sum);
        products.vv += block->vv;
        products.vn += block->vn;
        products.nn += block->nn;
    }
    const struct wg_histogram latencies = {&runner->counts[index * WG_HISTOGRAM_BINS]};
    cell->p50_s = wg__histogram_quantile(&latencies, 0.5);
    cell->p95_s = wg__histogram_quantile(&latencies, 0.95);
    cell->p99_s = wg__histogram_quantile(&latencies, 0.99);
    const uint64_t violations = cell->sum.late + cell->sum.dropped;
    cell->violation_rate =
        cell->sum.requests > 0 ? (double)violations / (double)cell->sum.requests : (double)NAN;
    wg__wilson95(violations, cell->sum.requests, &cell->wilson95[0], &cell->wilson95[1]);
    find_seeds95(cell, &products);
}

static void conclude(const struct runner *runner, struct wg_serving_study *study)
{
    double cpu_s = 0.0;
    double events = 0.0;
    double requests = 0.0;
    study->cell_count = runner->cell_count;
    for (size_t i = 0; i < runner->cell_count; i++) {
        conclude_cell(runner, i, &study->cells[i]);
        events += (double)study->cells[i].sum.events;
        requests += (double)study->cells[i].sum.requests;
    }
    for (size_t i = 0; i < runner->cell_count * runner->block_count; i++)
        cpu_s += (double)runner->blocks[i].cpu_ns * 1e-9;
    study->events_per_s = events / cpu_s;
    study->requests_per_s = requests / cpu_s;
}

/* -- The study ----------------------------------------------------------------------------- */

static enum wg_code check(const struct wg_serving_study_request *request, struct wg_error *err)
{
    if (request->policy_count == 0 || request->policy_count > WG_SERVING_POLICIES_MAX)
        return wg__fail(err, WG_EINVAL, "%zu policies; expected 1 to %d", request->policy_count,
                        WG_SERVING_POLICIES_MAX);
    if (request->law_count == 0 || request->law_count > WG_SERVING_LAWS_MAX)
        return wg__fail(err, WG_EINVAL, "%zu arrival laws; expected 1 to %d", request->law_count,
                        WG_SERVING_LAWS_MAX);
    if (request->seeds == 0 || request->seeds > WG_SERVING_SEEDS_MAX)
        return wg__fail(err, WG_EINVAL, "%zu seeds; expected 1 to %d", request->seeds,
                        WG_SERVING_SEEDS_MAX);
    if (request->processes == 0 || request->processes > WG_WORKERS_MAX)
        return wg__fail(err, WG_EINVAL, "%zu processes; expected 1 to %d", request->processes,
                        WG_WORKERS_MAX);
    return WG_OK;
}

static enum wg_code open_law(const struct wg_serving_study_request *request, size_t law,
                             struct wg_arrivals **out, struct wg_error *err)
{
    struct wg_rng rng; /* of `spread=`: each run restarts with its own */
    wg__rng_init(&rng, request->first_seed);
    return wg__arrivals_open(out, request->laws[law], &rng, err);
}

static enum wg_code lay_out(struct runner *runner, struct wg_serving_study *study,
                            struct wg_error *err)
{
    const struct wg_serving_study_request *request = runner->request;
    for (size_t i = 0; i < request->law_count; i++) {
        const enum wg_code code = open_law(request, i, &runner->arrivals[i], err);
        if (code != WG_OK)
            return code;
    }
    runner->cell_count = request->law_count * request->policy_count;
    runner->block_seeds = (request->seeds + BLOCKS_MAX - 1) / BLOCKS_MAX;
    runner->block_count = (request->seeds + runner->block_seeds - 1) / runner->block_seeds;
    runner->blocks =
        wg__shared_alloc(runner->cell_count * runner->block_count, sizeof *runner->blocks);
    runner->counts =
        wg__shared_alloc(runner->cell_count, WG_HISTOGRAM_BINS * sizeof *runner->counts);
    study->cells = wg__alloc_zeroed(runner->cell_count, sizeof *study->cells);
    if (runner->blocks == NULL || runner->counts == NULL || study->cells == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    return WG_OK;
}

static void fini(struct runner *runner)
{
    for (size_t i = 0; i < WG_SERVING_LAWS_MAX; i++)
        wg__arrivals_close(runner->arrivals[i]);
    wg__shared_free(runner->blocks, runner->cell_count * runner->block_count,
                    sizeof *runner->blocks);
    wg__shared_free(runner->counts, runner->cell_count, WG_HISTOGRAM_BINS * sizeof *runner->counts);
}

static enum wg_code run(struct runner *runner, struct wg_serving_study *study, struct wg_error *err)
{
    const struct wg_serving_study_request *request = runner->request;
    enum wg_code code = check(request, err);
    if (code == WG_OK)
        code = lay_out(runner, study, err);
    if (code != WG_OK)
        return code;
    const struct wg_workers_request workers = {
        .tasks = runner->cell_count * runner->block_count,
        .processes = request->processes,
        .run = run_task,
        .context = runner,
        .progress = request->progress,
        .progress_context = request->progress_context,
    };
    if (request->started != NULL)
        request->started(request->progress_context, workers.tasks);
    code = wg__workers_run(&workers, err);
    if (code == WG_OK)
        conclude(runner, study);
    return code;
}

enum wg_code wg__serving_study_run(const struct wg_serving_study_request *request,
                                   struct wg_serving_study **out, struct wg_error *err)
{
    struct runner runner = {.request = request};
    struct wg_serving_study *study = wg__alloc_zeroed(1, sizeof *study);
    if (study == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    const enum wg_code code = run(&runner, study, err);
    fini(&runner);
    if (code != WG_OK)
        wg__serving_study_free(study);
    else
        *out = study;
    return code;
}

void wg__serving_study_free(struct wg_serving_study *study)
{
    if (study == NULL)
        return;
    wg__free(study->cells);
    wg__free(study);
}

enum wg_code wg__serving_study_rerun(const struct wg_serving_study_request *request, size_t policy,
                                     size_t law, uint64_t seed, const struct wg_timeline *timeline,
                                     struct wg_serving_sum *sum_out, struct wg_error *err)
{
    if (policy >= request->policy_count || law >= request->law_count)
        return wg__fail(err, WG_EINVAL, "policy %zu under law %zu: there are %zu and %zu", policy,
                        law, request->policy_count, request->law_count);
    struct wg_arrivals *arrivals = NULL;
    struct wg_serving_sum sum = {0};
    enum wg_code code = open_law(request, law, &arrivals, err);
    if (code == WG_OK)
        code = run_seed(request, policy, arrivals, seed, &sum, NULL, timeline, err);
    wg__arrivals_close(arrivals);
    if (code == WG_OK)
        *sum_out = sum;
    return code;
}
