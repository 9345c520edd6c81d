/* SPDX-License-Identifier: MIT
 *
 * How good are the searches for the power limit? Prints JSON.
 *
 *     power_limit [DIR]      DIR holds summary_power_*.csv; data/zeus/trace by default
 *
 * Every measured curve (GPU, job, batch size) is searched for every objective, cold and
 * warm-started from the limit found for the next smaller batch size of the same job, with
 * measurements as recorded and with log-normal noise of 1 % and 3 % on power and on throughput.
 * Regret is the recorded cost of the chosen limit over that of the best one, minus 1; what is found
 * through noise is judged without it. For SLOWDOWN the best one is taken among the limits that are
 * really fast enough; a choice that is not counts as `violates`, `worst_slowness` says how far it
 * is beyond the allowed one.
 *
 * The recorded curves were measured once each, so their own scatter counts as truth here: on jobs
 * that no limit slows down, regret is mostly what luck gave the full sweep.
 *
 * "ternary" is the discrete ternary search that the few-probes search replaced.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/csv.h"
#include "base/json.h"
#include "base/rng.h"
#include "math/normal.h"
#include "optimize/power_limit.h"

enum { CURVES_MAX = 512, NOISE_REPEATS = 5, GPU_COUNT = 2, ROUTE_COUNT = 4 };

static const char *const gpus[GPU_COUNT] = {"v100", "a40"};

struct curve {
    size_t gpu;
    char job[128];
    unsigned batch_size;
    size_t count;
    double limit_w[WG_POWER_LIMITS_MAX];
    double power_w[WG_POWER_LIMITS_MAX];
    double throughput[WG_POWER_LIMITS_MAX];
};

struct curves {
    size_t count;
    struct curve curve[CURVES_MAX];
};

enum method { SWEEP, TERNARY, FEW_PROBES };

struct route {
    const char *name;
    enum method method;
    bool is_warm;
};

static const struct route routes[ROUTE_COUNT] = {
    {"sweep", SWEEP, false},
    {"ternary", TERNARY, false},
    {"few_probes", FEW_PROBES, false},
    {"few_probes_warm", FEW_PROBES, true},
};

/* What is summed up over searches. */
struct tally {
    double searches, probes, regret, worst_regret, violations, worst_slowness;
    double asks, ask_ns;
};

/* Reads. */

static struct curve *find_or_add(struct curves *curves, size_t gpu, const char *job,
                                 unsigned batch_size)
{
    for (size_t i = 0; i < curves->count; i++) {
        struct curve *curve = &curves->curve[i];

        if (curve->gpu == gpu && curve->batch_size == batch_size && strcmp(curve->job, job) == 0)
            return curve;
    }
    if (curves->count == CURVES_MAX)
        return NULL;
    struct curve *added = &curves->curve[curves->count++];

    *added = (struct curve){.gpu = gpu, .batch_size = batch_size};
    (void)snprintf(added->job, sizeof added->job, "%s", job);
    return added;
}

/* Keeps limits ascending whatever the order of the rows. */
static void insert_sample(struct curve *curve, double limit_w, double power_w, double throughput)
{
    size_t at = curve->count++;

    for (; at > 0 && curve->limit_w[at - 1] > limit_w; at--) {
        curve->limit_w[at] = curve->limit_w[at - 1];
        curve->power_w[at] = curve->power_w[at - 1];
        curve->throughput[at] = curve->throughput[at - 1];
    }
    curve->limit_w[at] = limit_w;
    curve->power_w[at] = power_w;
    curve->throughput[at] = throughput;
}

static enum wg_code read_row(struct curves *curves, size_t gpu, const struct wg_csv *csv,
                             const size_t *column, struct wg_error *err)
{
    char job[128];
    unsigned batch_size;
    double limit_w, time_s, power_w;
    enum wg_code code = wg__csv_uint(csv, column[3], 1, 1u << 30, &batch_size, err);

    if (code == WG_OK)
        code = wg__csv_double(csv, column[4], &limit_w, err);
    if (code == WG_OK)
        code = wg__csv_double(csv, column[5], &time_s, err);
    if (code == WG_OK)
        code = wg__csv_double(csv, column[6], &power_w, err);
    if (code != WG_OK)
        return code;
    (void)snprintf(job, sizeof job, "%s/%s/%s", wg__csv_text(csv, column[0]),
                   wg__csv_text(csv, column[1]), wg__csv_text(csv, column[2]));
    struct curve *curve = find_or_add(curves, gpu, job, batch_size);

    if (curve == NULL || curve->count == WG_POWER_LIMITS_MAX)
        return wg__csv_fail(csv, column[4], err,
                            "more curves or limits than the bench has room for");
    insert_sample(curve, limit_w, power_w, 1.0 / time_s);
    return WG_OK;
}

static enum wg_code read_gpu(struct curves *curves, const char *dir, size_t gpu,
                             struct wg_error *err)
{
    static const char *const names[] = {"dataset",      "network",     "optimizer",
                                        "batch_size",   "power_limit", "time_per_epoch",
                                        "average_power"};
    enum { COLUMN_COUNT = sizeof names / sizeof names[0] };
    char path[1024];
    size_t column[COLUMN_COUNT];
    struct wg_csv *csv;
    bool has_record = true;

    (void)snprintf(path, sizeof path, "%s/summary_power_%s.csv", dir, gpus[gpu]);
    enum wg_code code = wg__csv_open(&csv, path, err);
    if (code != WG_OK)
        return code;
    for (size_t i = 0; code == WG_OK && i < COLUMN_COUNT; i++)
        code = wg__csv_column(csv, names[i], &column[i], err);
    while (code == WG_OK && (code = wg__csv_next(csv, &has_record, err)) == WG_OK && has_record)
        code = read_row(curves, gpu, csv, column, err);
    wg__csv_close(csv);
    return code;
}

static int compare_curves(const void *left, const void *right)
{
    const struct curve *a = left, *b = right;

    if (a->gpu != b->gpu)
        return a->gpu < b->gpu ? -1 : 1;
    const int by_job = strcmp(a->job, b->job);

    if (by_job != 0)
        return by_job;
    return (a->batch_size > b->batch_size) - (a->batch_size < b->batch_size);
}

/* Searches. */

struct world {
    const struct curve *curve;
    double power_w[WG_POWER_LIMITS_MAX]; /* as measured: with noise */
    double throughput[WG_POWER_LIMITS_MAX];
};

static void measure(struct world *world, const struct curve *curve, double noise,
                    const struct wg_rng *stream)
{
    world->curve = curve;
    for (size_t i = 0; i < curve->count; i++) {
        struct wg_rng rng = wg__rng_split(stream, i);

        world->power_w[i] = curve->power_w[i] * exp(noise * wg__rng_normal(&rng));
        world->throughput[i] = curve->throughput[i] * exp(noise * wg__rng_normal(&rng));
    }
}

static void tell(struct wg_power_search *search, const struct world *world, size_t index)
{
    if (!search->probed[index])
        (void)wg__power_search_tell(search, index, world->power_w[index], world->throughput[index],
                                    NULL);
}

static double measured_cost(const struct wg_power_search *search, size_t index)
{
    return wg__objective_cost_per_s(&search->objective, search->power_w[index]) /
           search->throughput[index];
}

static void search_ternary(struct wg_power_search *search, const struct world *world)
{
    size_t low = 0, high = search->count - 1;

    while (high - low > 2) {
        const size_t left = low + (high - low) / 3, right = high - (high - low) / 3;

        tell(search, world, left);
        tell(search, world, right);
        if (measured_cost(search, left) < measured_cost(search, right))
            high = right;
        else
            low = left;
    }
    for (size_t i = low; i <= high; i++)
        tell(search, world, i);
}

/* Searches one curve; returns the limit found, in W, for the next batch size. */
static double search_one(const struct route *route, const struct wg_objective *objective,
                         const struct world *world, double warm_start_w, struct tally *tally)
{
    const struct curve *curve = world->curve;
    struct wg_power_search search;
    struct wg_error err;
    double largest = 0.0, best_cost = INFINITY;
    size_t index;

    if (wg__power_search_init(&search, objective,
                              route->method == SWEEP ? WG_POWER_SEARCH_SWEEP
                                                     : WG_POWER_SEARCH_FEW_PROBES,
                              curve->limit_w, curve->count, warm_start_w, &err) != WG_OK) {
        (void)fprintf(stderr, "power_limit: %s\n", err.text);
        exit(1);
    }
    if (route->method == TERNARY) {
        search_ternary(&search, world);
    } else {
        for (;;) {
            const uint64_t begin_ns = wg__clock_ns();
            const bool has_next = wg__power_search_ask(&search, &index);

            tally->ask_ns += (double)(wg__clock_ns() - begin_ns);
            tally->asks += 1.0;
            if (!has_next)
                break;
            tell(&search, world, index);
        }
    }
    const size_t found = wg__power_search_best(&search);

    for (size_t i = 0; i < curve->count; i++)
        largest = fmax(largest, curve->throughput[i]);
    const double floor =
        objective->kind == WG_OBJECTIVE_SLOWDOWN ? largest / objective->max_slowdown : 0.0;
    for (size_t i = 0; i < curve->count; i++)
        if (curve->throughput[i] >= floor)
            best_cost = fmin(best_cost, wg__objective_cost_per_s(objective, curve->power_w[i]) /
                                            curve->throughput[i]);
    const double regret = wg__objective_cost_per_s(objective, curve->power_w[found]) /
                              curve->throughput[found] / best_cost -
                          1.0;
    const bool violates = curve->throughput[found] < floor;

    tally->searches += 1.0;
    tally->probes += (double)search.probe_count;
    tally->violations += violates ? 1.0 : 0.0;
    if (violates)
        tally->worst_slowness = fmax(tally->worst_slowness, floor / curve->throughput[found] - 1.0);
    tally->regret +=
        fmax(regret, 0.0); /* a violation may cost less than the best that is allowed */
    tally->worst_regret = fmax(tally->worst_regret, regret);
    return curve->limit_w[found];
}

static void search_all(const struct curves *curves, const struct route *route,
                       const struct wg_objective *objectives, size_t objective_count, double noise,
                       struct tally *tallies)
{
    const unsigned repeats = noise > 0.0 ? NOISE_REPEATS : 1;
    struct wg_rng seed;

    wg__rng_init(&seed, 1);
    for (size_t o = 0; o < objective_count; o++) {
        for (unsigned repeat = 0; repeat < repeats; repeat++) {
            const struct wg_rng stream = wg__rng_split(&seed, repeat);
            double previous_w = NAN;

            for (size_t c = 0; c < curves->count; c++) {
                const struct curve *curve = &curves->curve[c];
                const struct wg_rng curve_stream = wg__rng_split(&stream, c);
                struct wg_objective objective = objectives[o];
                struct world world;

                if (c == 0 || curve->gpu != curve[-1].gpu || strcmp(curve->job, curve[-1].job) != 0)
                    previous_w = NAN;
                objective.max_power_w = curve->limit_w[curve->count - 1];
                measure(&world, curve, noise, &curve_stream);
                previous_w =
                    search_one(route, &objective, &world, route->is_warm ? previous_w : (double)NAN,
                               &tallies[curve->gpu]);
            }
        }
    }
}

/* Prints. */

static void write_tally(struct wg_json *json, const char *gpu, const struct tally *tally,
                        bool has_floor)
{
    wg__json_key(json, gpu);
    wg__json_object(json);
    wg__json_member_double(json, "searches", tally->searches);
    wg__json_member_double(json, "mean_probes", tally->probes / tally->searches);
    wg__json_member_double(json, "mean_regret", tally->regret / tally->searches);
    wg__json_member_double(json, "worst_regret", tally->worst_regret);
    if (has_floor) {
        wg__json_member_double(json, "violates", tally->violations / tally->searches);
        wg__json_member_double(json, "worst_slowness", tally->worst_slowness);
    }
    wg__json_close(json);
}

static void add(struct tally *sum, const struct tally *tally)
{
    sum->searches += tally->searches;
    sum->probes += tally->probes;
    sum->regret += tally->regret;
    sum->worst_regret = fmax(sum->worst_regret, tally->worst_regret);
    sum->violations += tally->violations;
    sum->worst_slowness = fmax(sum->worst_slowness, tally->worst_slowness);
    sum->asks += tally->asks;
    sum->ask_ns += tally->ask_ns;
}

static void write_results(struct wg_json *json, const struct curves *curves)
{
    static const double noises[] = {0.0, 0.01, 0.03};
    static const struct {
        const char *name;
        size_t count;
        struct wg_objective objective[5];
    } groups[] = {
        {"cost:0..1",
         5,
         {{.kind = WG_OBJECTIVE_COST, .eta = 0.0},
          {.kind = WG_OBJECTIVE_COST, .eta = 0.25},
          {.kind = WG_OBJECTIVE_COST, .eta = 0.5},
          {.kind = WG_OBJECTIVE_COST, .eta = 0.75},
          {.kind = WG_OBJECTIVE_COST, .eta = 1.0}}},
        {"slowdown:1.05", 1, {{.kind = WG_OBJECTIVE_SLOWDOWN, .max_slowdown = 1.05}}},
        {"slowdown:1.1", 1, {{.kind = WG_OBJECTIVE_SLOWDOWN, .max_slowdown = 1.1}}},
        {"slowdown:1.2", 1, {{.kind = WG_OBJECTIVE_SLOWDOWN, .max_slowdown = 1.2}}},
    };

    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        for (size_t r = 0; r < ROUTE_COUNT; r++) {
            const bool has_floor = groups[g].objective[0].kind == WG_OBJECTIVE_SLOWDOWN;

            if (has_floor && routes[r].method == TERNARY)
                continue;
            for (size_t n = 0; n < sizeof noises / sizeof noises[0]; n++) {
                struct tally tallies[GPU_COUNT] = {{0}}, all = {0};

                search_all(curves, &routes[r], groups[g].objective, groups[g].count, noises[n],
                           tallies);
                wg__json_object(json);
                wg__json_member_string(json, "objective", groups[g].name);
                wg__json_member_string(json, "search", routes[r].name);
                wg__json_member_double(json, "noise", noises[n]);
                for (size_t gpu = 0; gpu < GPU_COUNT; gpu++) {
                    add(&all, &tallies[gpu]);
                    write_tally(json, gpus[gpu], &tallies[gpu], has_floor);
                }
                write_tally(json, "all", &all, has_floor);
                if (all.asks > 0.0)
                    wg__json_member_double(json, "mean_ask_us", all.ask_ns / all.asks / 1000.0);
                wg__json_close(json);
            }
        }
    }
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "data/zeus/trace";
    struct curves *curves = wg__alloc_zeroed(1, sizeof *curves);
    struct wg_buffer text;
    struct wg_json json;
    struct wg_error err;

    if (curves == NULL)
        return 1;
    for (size_t gpu = 0; gpu < GPU_COUNT; gpu++) {
        if (read_gpu(curves, dir, gpu, &err) != WG_OK) {
            (void)fprintf(stderr, "power_limit: %s\n", err.text);
            wg__free(curves);
            return 1;
        }
    }
    qsort(curves->curve, curves->count, sizeof curves->curve[0], compare_curves);
    wg__buffer_init(&text);
    wg__json_init(&json, &text);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.bench.power_limit/1");
    wg__json_member_uint(&json, "curves", curves->count);
    wg__json_key(&json, "results");
    wg__json_array(&json);
    write_results(&json, curves);
    wg__json_close(&json);
    wg__json_close(&json);
    const bool failed = text.failed || printf("%s\n", text.data) < 0;

    wg__buffer_fini(&text);
    wg__free(curves);
    return failed ? 1 : 0;
}
