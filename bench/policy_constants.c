/* SPDX-License-Identifier: MIT
 *
 * What does a constant of the wattgov policy do? Replays a trace with other values; prints JSON.
 *
 *     policy_constants [NAME=VALUE]... [--seeds N] [--seed S] [--recurrences N] [--trace DIR]
 *                      [--jobs FILE] [--target JOB=T]... [--survey-share X] [--each]
 *
 * NAME is one of optimize/governor_constants.h. The rules are those that `wattgov simulate
 * training` has without options. One line says, after 10, 20, 50 and 100 recurrences, how far the
 * policy is above the oracle on the mean of the cases and on the worst of them, and how many cases
 * are dearer than their default; --each adds the excess of every case under every seed, so that two
 * calls can be compared pair by pair: the same seed is the same luck.
 *
 * The replays are those of a study (simulate/study.h), one by one: a study keeps the mean curve
 * over the seeds, while standard errors need the seeds themselves at every point. This program
 * compiles the room optimize again with WG_GOVERNOR_TUNING, which lets it write the constants; it
 * does so before anything runs.
 *
 * Threads: one; bench/policy_ablation.py runs several of these side by side.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "math/statistics.h"
#include "optimize/batch_size.h"
#include "optimize/governor_constants.h"
#include "simulate/job_table.h"
#include "simulate/study.h"
#include "simulate/study_scene.h"
#include "simulate/trace.h"
#include "simulate/training.h"

enum { TARGETS_MAX = 64, POINTS_MAX = 4, COUNT_MAX = 100000, LABEL_SIZE = 96 };

static const size_t points[POINTS_MAX] = {10, 20, 50, 100};

static const struct constant {
    const char *name;
    double *field;
    double usual;
    const char *meaning;
} constants[] = {
#define X(name, value, meaning) {#name, &wg__governor_constants.name, value, meaning},
    WG_GOVERNOR_CONSTANTS(X)
#undef X
};

enum { CONSTANT_COUNT = sizeof constants / sizeof constants[0] };

struct args {
    const char *trace;
    const char *jobs; /* NULL: the built-in table */
    uint64_t seeds;
    uint64_t seed;
    uint64_t recurrences;
    double survey_share;              /* of the time of a default run; 0: the usual seconds */
    const char *targets[TARGETS_MAX]; /* JOB=T */
    size_t target_count;
    bool wants_each;
};

/* What was measured. Arrays are [point][case][seed] and [point][case]. */
struct measured {
    size_t point_count; /* points within the recurrences */
    size_t case_count;
    size_t seeds;
    double *excess;       /* cost over the oracle's, minus 1 */
    double *over_default; /* mean over the seeds */
    char (*labels)[LABEL_SIZE];
};

/* The command line. */

static void list_constants(FILE *out)
{
    for (size_t i = 0; i < CONSTANT_COUNT; i++)
        (void)fprintf(out, "  %-20s %-6g %s\n", constants[i].name, constants[i].usual,
                      constants[i].meaning);
}

/* Takes NAME=VALUE; says on stderr what is wrong with it. */
static bool set_constant(const char *text)
{
    const char *equals = strchr(text, '=');
    const size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    for (size_t i = 0; i < CONSTANT_COUNT; i++) {
        if (strlen(constants[i].name) != length || memcmp(constants[i].name, text, length) != 0)
            continue;
        if (equals != NULL && wg__parse_double(equals + 1, constants[i].field))
            return true;
        (void)fprintf(stderr, "policy_constants: '%s': expected %s=NUMBER\n", text,
                      constants[i].name);
        return false;
    }
    (void)fprintf(stderr, "policy_constants: no constant '%.*s'; there are:\n", (int)length, text);
    list_constants(stderr);
    return false;
}

static bool parse_count(const char *text, uint64_t *out)
{
    return wg__parse_uint64(text, out) && *out >= 1 && *out <= COUNT_MAX;
}

/* Takes an option that has a value. */
static bool set_option(struct args *args, const char *name, const char *value)
{
    bool is_good = true;
    if (strcmp(name, "--trace") == 0) {
        args->trace = value;
    } else if (strcmp(name, "--jobs") == 0) {
        args->jobs = value;
    } else if (strcmp(name, "--seeds") == 0) {
        is_good = parse_count(value, &args->seeds);
    } else if (strcmp(name, "--seed") == 0) {
        is_good = wg__parse_uint64(value, &args->seed);
    } else if (strcmp(name, "--recurrences") == 0) {
        is_good = parse_count(value, &args->recurrences) && args->recurrences >= points[0];
    } else if (strcmp(name, "--survey-share") == 0) {
        is_good = wg__parse_double(value, &args->survey_share) && args->survey_share >= 0;
    } else if (strcmp(name, "--target") == 0) {
        is_good = args->target_count < TARGETS_MAX;
        if (is_good)
            args->targets[args->target_count++] = value;
    } else {
        (void)fprintf(stderr,
                      "policy_constants: no option '%s'; the first lines of "
                      "bench/policy_constants.c have them\n",
                      name);
        return false;
    }
    if (!is_good)
        (void)fprintf(stderr,
                      "policy_constants: %s '%s': expected 1..%d, recurrences from %zu on, "
                      "and %d targets at most\n",
                      name, value, COUNT_MAX, points[0], TARGETS_MAX);
    return is_good;
}

static bool parse_args(struct args *args, int argc, char *argv[])
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--each") == 0) {
            args->wants_each = true;
        } else if (strncmp(argv[i], "--", 2) != 0) {
            if (!set_constant(argv[i]))
                return false;
        } else if (i + 1 == argc) {
            (void)fprintf(stderr, "policy_constants: %s needs a value\n", argv[i]);
            return false;
        } else {
            if (!set_option(args, argv[i], argv[i + 1]))
                return false;
            i++;
        }
    }
    return true;
}

/* Gives a job of the table another target: JOB=T. */
static enum wg_code set_target(struct wg_job_table *table, const char *text, struct wg_error *err)
{
    const char *equals = strrchr(text, '=');
    double target;
    if (equals == NULL || !wg__parse_double(equals + 1, &target))
        return wg__fail(err, WG_EINVAL, "--target '%s': expected JOB=NUMBER", text);
    const size_t length = (size_t)(equals - text);
    for (size_t i = 0; i < table->count; i++) {
        struct wg_training_job *job = &table->jobs[i];
        if (strlen(job->name) != length || memcmp(job->name, text, length) != 0)
            continue;
        job->target_metric = target;
        return WG_OK;
    }
    return wg__fail(err, WG_EINVAL, "--target '%s': no such job in %s", text, table->source);
}

/* Measuring. */

static void fini_measured(struct measured *measured)
{
    wg__free(measured->excess);
    wg__free(measured->over_default);
    wg__free(measured->labels);
}

static enum wg_code init_measured(struct measured *measured, const struct wg_study_scenes *scenes,
                                  const struct args *args, struct wg_error *err)
{
    const size_t cases = scenes->count, seeds = (size_t)args->seeds;
    measured->seeds = seeds;
    measured->case_count = cases;
    for (size_t i = 0; i < POINTS_MAX; i++)
        measured->point_count += points[i] <= args->recurrences;
    measured->excess = wg__alloc_zeroed(cases * seeds, POINTS_MAX * sizeof(double));
    measured->over_default = wg__alloc_zeroed(cases, POINTS_MAX * sizeof(double));
    measured->labels = wg__alloc_zeroed(cases, sizeof *measured->labels);
    if (measured->excess == NULL || measured->over_default == NULL || measured->labels == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    for (size_t c = 0; c < cases; c++)
        (void)snprintf(measured->labels[c], LABEL_SIZE, "%s %s", scenes->items[c].present->gpu,
                       scenes->items[c].present->job);
    return WG_OK;
}

static double *excess_of(const struct measured *measured, size_t point, size_t case_index)
{
    return &measured->excess[(point * measured->case_count + case_index) * measured->seeds];
}

/* One case under all seeds. */
static enum wg_code replay_case(const struct wg_study_scene *scene,
                                const struct wg_study_request *request, double survey_share,
                                size_t case_index, struct wg_training_record *record,
                                struct measured *out, struct wg_error *err)
{
    const struct wg_training_case *present = scene->present;
    const struct wg_training_costs *costs = &scene->costs;
    const double eta = request->rules.eta;
    const double oracle_j =
        wg__training_expected(present, costs, eta, costs->oracle_arm, costs->oracle_limit).cost_j;
    const double default_j = wg__training_default(present, costs, eta).cost_j;
    struct wg_training_rules rules = request->rules;
    if (survey_share > 0)
        rules.survey_s = survey_share * wg__training_default(present, costs, eta).time_s;
    const struct wg_training_setup setup = {
        .training_case = present,
        .ops = &wg__batch_policy_wattgov,
        .options = {.beta = request->beta},
        .search = WG_POWER_SEARCH_FEW_PROBES,
    };
    for (size_t seed = 0; seed < out->seeds; seed++) {
        const enum wg_code code = wg__training_replay(&setup, &rules, request->first_seed + seed,
                                                      scene->rng_key, record, err);
        if (code != WG_OK)
            return code;
        double paid_j = 0;
        size_t passed = 0;
        for (size_t p = 0; p < out->point_count; p++) {
            while (passed < points[p])
                paid_j += record->cost_j[passed++];
            const double runs = (double)passed;
            excess_of(out, p, case_index)[seed] = paid_j / (runs * oracle_j) - 1;
            out->over_default[p * out->case_count + case_index] +=
                paid_j / (runs * default_j) / (double)out->seeds;
        }
    }
    return WG_OK;
}

static enum wg_code replay_all(const struct wg_study_scenes *scenes,
                               const struct wg_study_request *request, double survey_share,
                               struct measured *out, struct wg_error *err)
{
    const size_t recurrences = request->rules.recurrences;
    double *costs = wg__alloc_zeroed(recurrences, 3 * sizeof *costs);
    unsigned char *choices = wg__alloc_zeroed(recurrences, 2 * sizeof *choices);
    enum wg_code code = WG_OK;
    if (costs == NULL || choices == NULL)
        code = wg__fail(err, WG_ENOMEM, "out of memory");
    struct wg_training_record record = {.cost_j = costs,
                                        .energy_j = costs + recurrences,
                                        .time_s = costs + 2 * recurrences,
                                        .arm = choices,
                                        .limit = choices + recurrences};
    for (size_t c = 0; c < scenes->count && code == WG_OK; c++)
        code = replay_case(&scenes->items[c], request, survey_share, c, &record, out, err);
    wg__free(costs);
    wg__free(choices);
    return code;
}

/* The rules are those of `wattgov simulate training` without options. */
static enum wg_code measure(const struct args *args, const struct wg_training_trace *trace,
                            const struct wg_job_table *jobs, struct measured *out,
                            struct wg_error *err)
{
    const struct wg_study_request request = {
        .trace = trace,
        .jobs = jobs,
        .rules = {.eta = 0.5,
                  .survey_s = 2,
                  .survey_noise = 0.02,
                  .concurrency = 1,
                  .recurrences = (size_t)args->recurrences},
        .beta = 2,
        .target_metric = NAN,
        .default_batch_size = NAN,
        .first_seed = args->seed,
    };
    struct wg_study_scenes scenes = {0};
    enum wg_code code = wg__study_scenes_build(&request, &scenes, err);
    if (code == WG_OK)
        code = init_measured(out, &scenes, args, err);
    if (code == WG_OK)
        code = replay_all(&scenes, &request, args->survey_share, out, err);
    wg__study_scenes_fini(&scenes);
    return code;
}

/* Printing. */

static void write_overrides(struct wg_json *json)
{
    wg__json_key(json, "overrides");
    wg__json_object(json);
    for (size_t i = 0; i < CONSTANT_COUNT; i++) {
        const double value = *constants[i].field;
        if (value < constants[i].usual || value > constants[i].usual)
            wg__json_member_double(json, constants[i].name, value);
    }
    wg__json_close(json);
}

/* Cases draw independent luck: the variances of their means add up. */
static void write_point(struct wg_json *json, const struct measured *measured, size_t point)
{
    const size_t cases = measured->case_count, seeds = measured->seeds;
    double sum = 0, variance = 0, worst = -INFINITY;
    size_t worst_case = 0, above_default = 0;
    for (size_t c = 0; c < cases; c++) {
        const double *excess = excess_of(measured, point, c);
        const double mean = wg__mean(excess, seeds);
        sum += mean;
        variance += wg__variance_sample(excess, seeds) / (double)seeds;
        above_default += measured->over_default[point * cases + c] > 1 + 1e-9;
        if (mean > worst) {
            worst = mean;
            worst_case = c;
        }
    }
    const double error = seeds > 1 ? sqrt(variance) / (double)cases : (double)NAN;
    wg__json_object(json);
    wg__json_member_uint(json, "recurrences", points[point]);
    wg__json_member_double(json, "mean_excess", sum / (double)cases);
    wg__json_member_double(json, "standard_error", error);
    wg__json_member_double(json, "worst_excess", worst);
    wg__json_member_string(json, "worst_case", measured->labels[worst_case]);
    wg__json_member_uint(json, "cases_above_default", above_default);
    wg__json_close(json);
}

static void write_each(struct wg_json *json, const struct measured *measured)
{
    wg__json_key(json, "excess_of_point_case_seed");
    wg__json_array(json);
    for (size_t p = 0; p < measured->point_count; p++) {
        wg__json_array(json);
        for (size_t c = 0; c < measured->case_count; c++) {
            const double *excess = excess_of(measured, p, c);
            wg__json_array(json);
            for (size_t seed = 0; seed < measured->seeds; seed++)
                wg__json_double(json, excess[seed]);
            wg__json_close(json);
        }
        wg__json_close(json);
    }
    wg__json_close(json);
}

/* False when memory or the output gives out. */
static bool print(const struct args *args, const struct measured *measured)
{
    struct wg_buffer text;
    struct wg_json json;
    wg__buffer_init(&text);
    wg__json_init(&json, &text);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.bench.policy_constants/1");
    write_overrides(&json);
    wg__json_member_uint(&json, "cases", measured->case_count);
    wg__json_member_uint(&json, "first_seed", args->seed);
    wg__json_member_uint(&json, "seeds", args->seeds);
    wg__json_key(&json, "points");
    wg__json_array(&json);
    for (size_t p = 0; p < measured->point_count; p++)
        write_point(&json, measured, p);
    wg__json_close(&json);
    if (args->wants_each)
        write_each(&json, measured);
    wg__json_close(&json);
    const bool is_printed = !text.failed && printf("%s\n", text.data) > 0 && fflush(stdout) == 0;
    wg__buffer_fini(&text);
    return is_printed;
}

int main(int argc, char *argv[])
{
    struct args args = {
        .trace = "data/zeus/trace", .seeds = 20, .seed = 600001, .recurrences = 100};
    if (!parse_args(&args, argc, argv))
        return 2;
    struct wg_error err = {0};
    struct wg_training_trace *trace = NULL;
    struct wg_job_table *jobs = NULL;
    struct measured measured = {0};
    enum wg_code code = wg__trace_open(&trace, args.trace, &err);
    if (code == WG_OK)
        code = wg__job_table_open(&jobs, args.jobs, &err);
    for (size_t i = 0; i < args.target_count && code == WG_OK; i++)
        code = set_target(jobs, args.targets[i], &err);
    if (code == WG_OK)
        code = measure(&args, trace, jobs, &measured, &err);
    if (code == WG_OK && !print(&args, &measured))
        code = wg__fail(&err, WG_EIO, "cannot write the result");
    if (code != WG_OK)
        (void)fprintf(stderr, "policy_constants: %s\n", err.text);
    fini_measured(&measured);
    wg__job_table_close(jobs);
    wg__trace_close(trace);
    return code == WG_OK ? 0 : 1;
}
