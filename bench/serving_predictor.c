/* SPDX-License-Identifier: MIT
 *
 * What the predictor of batch times costs, and how soon it mends a wrong first fit.
 *
 *     ninja -C build/release bench/serving_predictor
 *     build/release/bench/serving_predictor
 *
 * The GPU is PolyThrottle's Orin with B7, (0.061 + 0.066 b) s at the highest clocks, 60 % of which
 * scale with the GPU's clock and 30 % with the memory's; noise 3 %. The first fit sees one sample
 * of 1 .. 8 rows at three of five clock settings, then batches of any size and clocks are told.
 * `mending` gives the root mean square error, as a share, over all sizes and clocks and 100 seeds,
 * `margin` the mean margin of the bound:
 *
 *     right      the samples come from the same GPU
 *     slow, fast from one 30 % slower, or faster
 *     fixed      from one whose fixed part is 60 % longer
 *     one size   from one that takes 30 % longer for 4 rows
 *     stairs     both run whole waves of 4 rows, and the samples are 30 % slower
 *
 * `cost` gives nanoseconds of processor time a call, for batches of that many different sizes.
 * Prints JSON.
 *
 * Threads: one.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "math/normal.h"
#include "schedule/predictor.h"

enum { ROWS = 8, CLOCKS = 5, SEEDS = 100, CALLS = 200000 };

static const double clocks[CLOCKS][2] = {
    {1.0, 1.0}, {0.85, 1.0}, {0.7, 0.9}, {0.55, 0.8}, {0.4, 0.6}};

struct gpu {
    const char *name;
    double scale, fixed_scale;
    double odd_factor; /* of 4 rows */
    double wave;
};

static double seconds(const struct gpu *gpu, double rows, size_t at)
{
    const double done = ceil(rows / gpu->wave) * gpu->wave;
    const double odd = rows == 4.0 ? gpu->odd_factor : 1.0;
    return odd * gpu->scale * (0.061 * gpu->fixed_scale + 0.066 * done) *
           (0.1 + 0.6 / clocks[at][0] + 0.3 / clocks[at][1]);
}

static struct wg_predictor_sample run(const struct gpu *gpu, double rows, size_t at,
                                      struct wg_rng *rng)
{
    return (struct wg_predictor_sample){
        {.rows = rows, .gpu_clock = clocks[at][0], .mem_clock = clocks[at][1]},
        seconds(gpu, rows, at) * exp(0.03 * wg__rng_normal(rng))};
}

static struct wg_predictor *fit(const struct gpu *gpu, struct wg_rng *rng)
{
    struct wg_predictor_sample samples[ROWS * CLOCKS];
    const struct wg_predictor_setup setup = {0};
    struct wg_predictor *predictor = NULL;
    struct wg_error err = {0};
    size_t count = 0;
    for (size_t at = 0; at < CLOCKS; at += 2) {
        for (unsigned rows = 1; rows <= ROWS; rows++)
            samples[count++] = run(gpu, rows, at, rng);
    }
    if (wg__predictor_open(&predictor, &setup, samples, count, &err) != WG_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return predictor;
}

static double square_error(const struct wg_predictor *predictor, const struct gpu *gpu)
{
    double sum = 0.0;
    for (size_t at = 0; at < CLOCKS; at++) {
        for (unsigned rows = 1; rows <= ROWS; rows++) {
            const struct wg_predictor_point point = {rows, clocks[at][0], clocks[at][1], 0.0};
            sum += pow(wg__predictor_time(predictor, &point) / seconds(gpu, rows, at) - 1.0, 2.0);
        }
    }
    return sum / (double)(ROWS * CLOCKS);
}

static const size_t told[] = {0, 20, 50, 100, 200, 1000};
enum { STEPS = sizeof told / sizeof *told };

struct mending {
    double errors[STEPS], margins[STEPS];
};

static void mend(const struct gpu *first, struct mending *out)
{
    const struct gpu truth = {"", 1.0, 1.0, 1.0, first->wave};
    *out = (struct mending){0};
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct wg_rng rng;
        wg__rng_init(&rng, seed);
        struct wg_predictor *predictor = fit(first, &rng);
        for (size_t step = 0, i = 0; step < STEPS; step++) {
            for (; i < told[step]; i++) {
                const double rows = 1.0 + wg__rng_below(&rng, ROWS);
                const struct wg_predictor_sample sample =
                    run(&truth, rows, wg__rng_below(&rng, CLOCKS), &rng);
                wg__predictor_tell(predictor, &sample);
            }
            out->errors[step] += square_error(predictor, &truth) / (double)SEEDS;
            out->margins[step] += wg__predictor_margin(predictor) / (double)SEEDS;
        }
        wg__predictor_close(predictor);
    }
    for (size_t step = 0; step < STEPS; step++)
        out->errors[step] = sqrt(out->errors[step]);
}

static void print_steps(const char *name, const double *values, bool is_last)
{
    printf("  \"%s\": {", name);
    for (size_t step = 0; step < STEPS; step++)
        printf("%s\"%zu\": %.4f", step ? ", " : "", told[step], values[step]);
    printf("}%s\n", is_last ? "" : ",");
}

static double ns_since(clock_t from)
{
    return (double)(clock() - from) / (double)CLOCKS_PER_SEC * 1e9 / (double)CALLS;
}

static void print_cost(unsigned sizes, bool is_last)
{
    static struct wg_predictor_sample samples[CALLS];
    const struct gpu gpu = {"", 1.0, 1.0, 1.0, 1.0};
    double sum = 0.0;
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    struct wg_predictor *predictor = fit(&gpu, &rng);
    for (size_t i = 0; i < CALLS; i++)
        samples[i] = run(&gpu, 1.0 + wg__rng_below(&rng, sizes), wg__rng_below(&rng, CLOCKS), &rng);
    clock_t from = clock();
    for (size_t i = 0; i < CALLS; i++)
        wg__predictor_tell(predictor, &samples[i]);
    const double tell_ns = ns_since(from);
    from = clock();
    for (size_t i = 0; i < CALLS; i++)
        sum += wg__predictor_time(predictor, &samples[i].point);
    const double time_ns = ns_since(from);
    from = clock();
    for (size_t i = 0; i < CALLS; i++)
        sum += wg__predictor_margin(predictor);
    const double margin_ns = ns_since(from);
    wg__predictor_close(predictor);
    printf("  \"%u\": {\"tell_ns\": %.0f, \"time_ns\": %.1f, \"margin_ns\": %.1f}%s\n", sizes,
           tell_ns, time_ns, margin_ns, is_last ? "" : ",");
    if (!isfinite(sum)) /* so that the calls can't be left out */
        exit(1);
}

int main(void)
{
    static const struct gpu first[] = {
        {"right", 1.0, 1.0, 1.0, 1.0},    {"slow", 1.3, 1.0, 1.0, 1.0},
        {"fast", 0.7, 1.0, 1.0, 1.0},     {"fixed", 1.0, 1.6, 1.0, 1.0},
        {"one size", 1.0, 1.0, 1.3, 1.0}, {"stairs", 1.3, 1.0, 1.0, 4.0},
    };
    static const unsigned sizes[] = {1, 8, 32, 128};
    const size_t count = sizeof first / sizeof *first, last = sizeof sizes / sizeof *sizes - 1;
    struct mending mendings[sizeof first / sizeof *first];
    printf("{\"mending\": {\n");
    for (size_t i = 0; i < count; i++) {
        mend(&first[i], &mendings[i]);
        print_steps(first[i].name, mendings[i].errors, i + 1 == count);
    }
    printf("},\n\"margin\": {\n");
    for (size_t i = 0; i < count; i++)
        print_steps(first[i].name, mendings[i].margins, i + 1 == count);
    printf("},\n\"cost\": {\n");
    for (size_t i = 0; i <= last; i++)
        print_cost(sizes[i], i == last);
    printf("}}\n");
    return 0;
}
