/* SPDX-License-Identifier: MIT
 *
 * Fits the analytic board (src/simulate/tuning_board.h) to what PolyThrottle prints of two boards,
 * and writes what the fits take as grids.
 *
 *     ninja -C build/release bench/tuning_boards
 *     build/release/bench/tuning_boards data/tuning/boards     prints JSON; three minutes
 *
 * Source of the points: Yan, Wang, Venkataraman, "PolyThrottle: Energy-efficient Neural Network
 * Inference on Edge Devices", arXiv 2310.19991, figure 2: the least energy per request at batch
 * size 1, 2, 4 and 8 under a latency bound, in units of the default's latency (highest clocks,
 * batch size 1): EfficientNet B7 on a Jetson Orin, B4 on a Jetson TX2. Clocks: table 1 and the
 * boards' own lists.
 *
 * A fit minimises the mean squared error of the logarithm of the least energy under each bound,
 * relative to the default's. Twelve parameters for some twenty points leave much open. The paper
 * prints two more things of these models (figure 4), with batch size 1 under 1.2 times the least
 * latency and with all batch sizes and no bound: what the optimum saves against the highest clocks
 * at its batch size, each of which counts as one more point, and, as N over the trials of its
 * random search, how many configurations lie within 5 % of the optimum, which have a small weight.
 * Among many restarts the fit with the least error of the counts is taken whose error of the points
 * is within what fits to the points alone reach.
 *
 * The figures are relative to the default's; nobody has measured them.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "math/normal.h"
#include "simulate/tuning_board.h"

enum {
    PARAMETERS = 12,
    GPU_CLOCKS = 13,
    MEMORY_CLOCKS_MAX = 11,
    BATCHES = 5,
    POINTS_MAX = 24,
    RESTARTS = 48,
    DRAWS = 3000,
    STEPS = 30000,
    SEED = 20240109
};

static const double gpu_mhz[GPU_CLOCKS] = {114.75,  216.75,  318.75, 420.75, 522.75,
                                           624.75,  726.75,  828.75, 930.75, 1032.75,
                                           1134.75, 1236.75, 1300.5};
static const double batches[BATCHES] = {1, 2, 4, 8, 16};
static const double near = 1.05;
static const double tight = 1.2;

/* What a wrong count weighs against the points; and what a bound that nothing meets costs. */
static const double count_weight = 2e-5;
static const double miss_weight = 4;

struct point {
    double batch, bound, energy_j;
};

struct device {
    const char *name, *model;
    double largest_rms;                /* of the fit that is taken */
    double near_alone, near_joint;     /* configurations within 5 %, as printed */
    double saving_alone, saving_joint; /* of the optimum against the highest clocks, its batch */
    size_t memory_count;
    double memory_mhz[MEMORY_CLOCKS_MAX];
    size_t point_count;
    struct point points[POINTS_MAX];
};

static const struct device devices[] = {
    {"orin_b7",
     "EfficientNet B7 on a Jetson Orin",
     0.015,
     4,
     8,
     0.134,
     0.103,
     4,
     {204, 665.6, 2133, 3199},
     18,
     {{1, 1.0, 3.173},
      {1, 1.05, 2.742},
      {1, 1.1, 2.622},
      {1, 1.2, 2.613},
      {1, 1.5, 2.613},
      {2, 1.7, 2.324},
      {2, 1.8, 2.246},
      {2, 2.0, 2.200},
      {2, 2.2, 2.170},
      {4, 2.7, 2.068},
      {4, 2.8, 1.991},
      {4, 3.2, 1.972},
      {4, 3.8, 1.955},
      {8, 4.6, 2.018},
      {8, 4.8, 1.958},
      {8, 5.2, 1.895},
      {8, 6.0, 1.874},
      {8, 6.4, 1.845}}},
    {"tx2_b4",
     "EfficientNet B4 on a Jetson TX2",
     0.03,
     6,
     15,
     0.1455,
     0.1895,
     11,
     {40.8, 68, 102, 204, 408, 665.6, 800, 1062.4, 1331.2, 1600, 1866},
     21,
     {{1, 1.0, .857}, {1, 1.05, .799}, {1, 1.1, .767}, {1, 1.2, .721}, {1, 1.5, .675},
      {2, 1.7, .758}, {2, 1.8, .680},  {2, 1.9, .647}, {2, 2.1, .618}, {2, 2.4, .597},
      {4, 3.2, .690}, {4, 3.4, .654},  {4, 3.6, .613}, {4, 3.8, .589}, {4, 4.2, .570},
      {8, 6.0, .749}, {8, 6.4, .677},  {8, 6.8, .636}, {8, 7.2, .614}, {8, 7.6, .603},
      {8, 8.0, .580}}},
};

/* One board's figures on the whole grid, relative to the default's. */
struct table {
    size_t memory_count;
    double t[GPU_CLOCKS][MEMORY_CLOCKS_MAX][BATCHES];
    double e[GPU_CLOCKS][MEMORY_CLOCKS_MAX][BATCHES];
};

struct fit {
    double values[PARAMETERS];
    double error; /* what is minimised */
    double rms;   /* of the logarithms at the points */
    size_t near_alone, near_joint;
    double saving_alone, saving_joint;
};

static const double lowest[PARAMETERS] = {
#define X(name, low, high) low,
    WG_TUNING_BOARD(X)
#undef X
};
static const double highest[PARAMETERS] = {
#define X(name, low, high) high,
    WG_TUNING_BOARD(X)
#undef X
};
static const char *const names[PARAMETERS] = {
#define X(name, low, high) #name,
    WG_TUNING_BOARD(X)
#undef X
};

static struct wg_tuning_board board_of(const double *values)
{
    size_t i = 0;
    struct wg_tuning_board board = {0};
#define X(name, low, high) board.name = values[i++];
    WG_TUNING_BOARD(X)
#undef X
    return board;
}

static void make_table(const struct device *device, const double *values, struct table *table)
{
    const struct wg_tuning_board board = board_of(values);
    double usual_t = 1, usual_e = 1;
    wg__tuning_board_figures(&board, 1, 1, 1, &usual_t, &usual_e);
    table->memory_count = device->memory_count;
    for (size_t g = 0; g < GPU_CLOCKS; g++)
        for (size_t m = 0; m < device->memory_count; m++)
            for (size_t b = 0; b < BATCHES; b++) {
                wg__tuning_board_figures(&board, gpu_mhz[g] / gpu_mhz[GPU_CLOCKS - 1],
                                         device->memory_mhz[m] /
                                             device->memory_mhz[device->memory_count - 1],
                                         batches[b], &table->t[g][m][b], &table->e[g][m][b]);
                table->t[g][m][b] /= usual_t;
                table->e[g][m][b] /= usual_e;
            }
}

/* The least energy of the batches first .. last under a bound, and the least time. */
static double least(const struct table *table, size_t first, size_t last, double bound,
                    double *least_t)
{
    double best = HUGE_VAL;
    *least_t = HUGE_VAL;
    for (size_t g = 0; g < GPU_CLOCKS; g++)
        for (size_t m = 0; m < table->memory_count; m++)
            for (size_t b = first; b <= last; b++) {
                *least_t = fmin(*least_t, table->t[g][m][b]);
                if (table->t[g][m][b] <= bound * (1 + 1e-9))
                    best = fmin(best, table->e[g][m][b]);
            }
    return best;
}

static size_t count_near(const struct table *table, size_t first, size_t last, double bound)
{
    double least_t = 0;
    const double best = least(table, first, last, bound, &least_t);
    size_t count = 0;
    for (size_t g = 0; g < GPU_CLOCKS; g++)
        for (size_t m = 0; m < table->memory_count; m++)
            for (size_t b = first; b <= last; b++)
                count += table->t[g][m][b] <= bound && table->e[g][m][b] <= near * best;
    return count;
}

/* What the cheapest one of the batches first .. last saves under a bound, against the highest
 * clocks with the same batch. */
static double saving(const struct table *table, size_t first, size_t last, double bound)
{
    double least_t = 0;
    const double best = least(table, first, last, bound, &least_t);
    for (size_t b = first; b <= last; b++)
        if (least(table, b, b, bound, &least_t) == best)
            return 1 - best / table->e[GPU_CLOCKS - 1][table->memory_count - 1][b];
    return 0;
}

/* The error of one point: of the energy, or of the latency where nothing meets the bound. */
static double point_error(const struct device *device, const struct table *table,
                          const struct point *point)
{
    size_t b = 0;
    while (batches[b] != point->batch)
        b++;
    double least_t = 0;
    const double e = least(table, b, b, point->bound, &least_t);
    if (isinf(e))
        return sqrt(miss_weight) * log(least_t / point->bound) + 0.1;
    return log(e / (point->energy_j / device->points[0].energy_j));
}

static double square(double x)
{
    return x * x;
}

static void judge(const struct device *device, struct fit *fit)
{
    struct table table;
    make_table(device, fit->values, &table);
    double sum = 0;
    for (size_t i = 0; i < device->point_count; i++)
        sum += square(point_error(device, &table, &device->points[i]));
    fit->rms = sqrt(sum / (double)device->point_count);
    fit->near_alone = count_near(&table, 0, 0, tight);
    fit->near_joint = count_near(&table, 0, BATCHES - 1, HUGE_VAL);
    fit->saving_alone = saving(&table, 0, 0, tight);
    fit->saving_joint = saving(&table, 0, BATCHES - 1, HUGE_VAL);
    const double savings = square(log((1 - fit->saving_alone) / (1 - device->saving_alone))) +
                           square(log((1 - fit->saving_joint) / (1 - device->saving_joint)));
    fit->error = square(fit->rms) + savings / (double)device->point_count +
                 count_weight * (square(log((double)fit->near_alone / device->near_alone)) +
                                 square(log((double)fit->near_joint / device->near_joint)));
}

static void draw(struct wg_rng *rng, struct fit *fit)
{
    for (size_t i = 0; i < PARAMETERS; i++)
        fit->values[i] = lowest[i] + (highest[i] - lowest[i]) * wg__rng_uniform(rng);
}

/* The best of many draws, then steps that shrink and are kept when they help. */
static struct fit search(const struct device *device, struct wg_rng *rng)
{
    struct fit best = {.error = HUGE_VAL};
    for (int i = 0; i < DRAWS; i++) {
        struct fit fit = {0};
        draw(rng, &fit);
        judge(device, &fit);
        if (fit.error < best.error)
            best = fit;
    }
    for (int i = 0; i < STEPS; i++) {
        const double size = 0.2 * pow(0.002, i / (double)STEPS);
        struct fit fit = best;
        for (size_t k = 0; k < PARAMETERS; k++)
            if (wg__rng_below(rng, 3) == 0)
                fit.values[k] = fmin(
                    highest[k], fmax(lowest[k], fit.values[k] + size * (highest[k] - lowest[k]) *
                                                                    wg__rng_normal(rng)));
        judge(device, &fit);
        if (fit.error < best.error)
            best = fit;
    }
    return best;
}

static double count_error(const struct device *device, const struct fit *fit)
{
    return fabs(log((double)fit->near_alone / device->near_alone)) +
           fabs(log((double)fit->near_joint / device->near_joint));
}

/* The fit of the best counts whose points are good enough. */
static struct fit choose(const struct device *device, const struct fit *fits)
{
    const struct fit *best = NULL;
    for (size_t i = 0; i < RESTARTS; i++) {
        const struct fit *fit = &fits[i];
        if (fit->rms > device->largest_rms)
            continue;
        const double error = count_error(device, fit);
        if (best == NULL || error < count_error(device, best) ||
            (error == count_error(device, best) && fit->rms < best->rms))
            best = fit;
    }
    for (size_t i = 0; i < RESTARTS && best == NULL; i++) /* none: the nearest */
        if (i == 0 || fits[i].rms < best->rms)
            best = &fits[i];
    return *best;
}

static bool write_grid(const struct device *device, const struct fit *fit, const char *folder)
{
    struct table table;
    struct wg_buffer text, path;
    struct wg_error err = {0};
    make_table(device, fit->values, &table);
    wg__buffer_init(&text);
    wg__buffer_init(&path);
    wg__buffer_printf(&path, "%s/%s.csv", folder, device->name);
    wg__buffer_puts(&text, "gpu_mhz,emc_mhz,batch,latency,energy\n");
    for (size_t g = 0; g < GPU_CLOCKS; g++)
        for (size_t m = 0; m < device->memory_count; m++)
            for (size_t b = 0; b < BATCHES; b++)
                wg__buffer_printf(&text, "%.10g,%.10g,%.10g,%.6g,%.6g\n", gpu_mhz[g],
                                  device->memory_mhz[m], batches[b], table.t[g][m][b],
                                  table.e[g][m][b]);
    bool is_written = !text.failed && !path.failed;
    if (is_written && wg__file_write(path.data, text.data, text.length, &err) != WG_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        is_written = false;
    }
    wg__buffer_fini(&text);
    wg__buffer_fini(&path);
    return is_written;
}

static void describe(struct wg_json *json, const struct device *device, const struct fit *fit,
                     double mean_rms)
{
    wg__json_object(json);
    wg__json_member_string(json, "board", device->name);
    wg__json_member_string(json, "model", device->model);
    wg__json_member_double(json, "rms", fit->rms);
    wg__json_member_double(json, "mean_rms_of_restarts", mean_rms);
    wg__json_member_uint(json, "points", device->point_count);
    wg__json_member_uint(json, "near_optimal_batch_1", fit->near_alone);
    wg__json_member_double(json, "printed_batch_1", device->near_alone);
    wg__json_member_uint(json, "near_optimal_joint", fit->near_joint);
    wg__json_member_double(json, "printed_joint", device->near_joint);
    wg__json_member_double(json, "saving_batch_1", fit->saving_alone);
    wg__json_member_double(json, "printed_saving_batch_1", device->saving_alone);
    wg__json_member_double(json, "saving_joint", fit->saving_joint);
    wg__json_member_double(json, "printed_saving_joint", device->saving_joint);
    wg__json_key(json, "parameters");
    wg__json_object(json);
    for (size_t i = 0; i < PARAMETERS; i++)
        wg__json_member_double(json, names[i], fit->values[i]);
    wg__json_close(json);
    wg__json_close(json);
}

int main(int argc, char *argv[])
{
    if (argc != 2) {
        (void)fputs("usage: tuning_boards FOLDER\n", stderr);
        return 2;
    }
    struct wg_buffer out;
    struct wg_json json;
    struct wg_rng root;
    wg__rng_init(&root, SEED);
    wg__buffer_init(&out);
    wg__json_init(&json, &out);
    wg__json_array(&json);
    bool is_written = true;
    for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++) {
        static struct fit fits[RESTARTS];
        double sum = 0;
        for (size_t i = 0; i < RESTARTS; i++) {
            struct wg_rng rng = wg__rng_split(&root, d * RESTARTS + i);
            fits[i] = search(&devices[d], &rng);
            sum += fits[i].rms;
        }
        const struct fit best = choose(&devices[d], fits);
        describe(&json, &devices[d], &best, sum / (double)RESTARTS);
        is_written &= write_grid(&devices[d], &best, argv[1]);
    }
    wg__json_close(&json);
    (void)printf("%s\n", out.data);
    wg__buffer_fini(&out);
    return is_written ? 0 : 1;
}
