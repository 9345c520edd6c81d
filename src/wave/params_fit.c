/* SPDX-License-Identifier: MIT
 *
 * Levenberg-Marquardt over the numbers of the kernel model, in coordinates without bounds.
 *
 *     x = [globals | 5 numbers of tile 0 | 5 of tile 1 | ...]
 *
 * Shares, floors and lengths are logarithms, overlap a logit. The normal equations are dense but
 * small (at most 140 unknowns); each row touches the globals and its own tile's five.
 *
 * Threads: pure, any thread.
 */
#include "wave/params_fit.h"

#include <math.h>
#include <string.h>

#include <lapacke.h>

#include "base/alloc.h"

enum {
    FLOPS_SHARE,
    BANDWIDTH_SHARE,
    NORM,
    FLOOR,
    START,
    SPLIT,
    SPLIT_TRAFFIC,
    LONG_K,
    LONG_POWER,
    LONG_COST,
    REREAD,
    STRADDLE,
    L2_SHARE,
    HOT,
    HOT_COST,
    GLOBALS
};
enum { EFFICIENCY, FILL, PROLOGUE, OVERLAP, STAGES, TILE_NUMBERS }; /* of a tile */
enum {
    TOUCHED = GLOBALS + TILE_NUMBERS,
    UNKNOWNS_MAX = GLOBALS + TILE_NUMBERS * WG_TILES_MAX,
    ROWS_MAX = 4000,
    STEPS_MAX = 150
};

static const double SOFT = 0.05;        /* residuals beyond it count linearly */
static const double FLOOR_WEIGHT = 0.3; /* of rows that show little but the floor */
/* No launch or summing up takes longer; without a bound, starts stand in for what Winograd's stages
 * cost, and small convolutions of other kinds would seem slow. */
static const double START_MAX_S = 100e-6;
/* Of the data sheet's FLOPS: clocks may exceed its boost, and some algorithms of convolutions do
 * with less multiplications than the implicit product has. */
static const double SHARE_MAX = 1.15, CONV_SHARE_MAX = 4.0;
static const double HOT_COST_MAX = 2.0; /* no board halves its clocks twice */
static const double DELTA = 1e-4;

/* Weights of a unit's distance from the usual value. What could stand in for another effect is held
 * more firmly: a bandwidth above the data sheet's, a prologue of hundreds of k. */
static const double global_priors[GLOBALS] = {
    [FLOPS_SHARE] = 0.015, [BANDWIDTH_SHARE] = 0.5,
    [NORM] = 0.5,          [FLOOR] = 0.05,
    [START] = 0.05,        [SPLIT] = 0.05,
    [SPLIT_TRAFFIC] = 0.2, [LONG_K] = 0.5,
    [LONG_POWER] = 0.2,    [LONG_COST] = 0.05,
    [REREAD] = 0.1,        [STRADDLE] = 0.1,
    [L2_SHARE] = 0.5,      [HOT] = 0.2,
    [HOT_COST] = 0.1,
};
static const double tile_priors[TILE_NUMBERS] = {
    [EFFICIENCY] = 0.015, [FILL] = 0.05, [PROLOGUE] = 0.3, [OVERLAP] = 0.05, [STAGES] = 0.05};

struct fit {
    const struct wg_gpu_spec *gpu;
    const struct wg_fit_row *rows;
    size_t count, stride_count; /* rows given; rows used */
    double floor_s;             /* about; rows near it weigh less */
    double floor_max_s, start_max_s;
    double firmness;
    size_t unknowns;
    struct wg_kernel_params params; /* scratch: tiles' kernels and what is not fitted */
    double x[UNKNOWNS_MAX], usual[UNKNOWNS_MAX];
    double gradient[UNKNOWNS_MAX];
    double hessian[UNKNOWNS_MAX][UNKNOWNS_MAX];
    double damped[UNKNOWNS_MAX][UNKNOWNS_MAX];
};

void wg__params_init(struct wg_kernel_params *params)
{
    *params = (struct wg_kernel_params){
        .flops_share = 0.8,
        .bandwidth_share = 0.7,
        .norm = 4.0,
        .floor_s = 30e-6,
        .start_s = 5e-6,
        .split_s = 5e-6,
        .split_traffic = 1.0,
        .long_k = 8000.0,
        .long_power = 1.5,
        .long_cost = 0.1,
        .reread = 0.3,
        .straddle = 0.01,
        .l2_share = 0.5,
        .hot_s = 2e-3,
        .hot_cost = 0.01,
        .split_count = 8,
        .splits = {1, 2, 3, 4, 6, 8, 12, 16},
        .known = {.mape = NAN, .low = 0.7, .high = 1.4},
        .chosen = {.mape = NAN, .low = 0.6, .high = 1.6},
    };
}

void wg__tile_params_init(struct wg_tile_params *tile, const struct wg_kernel *kernel)
{
    *tile = (struct wg_tile_params){
        .kernel = *kernel,
        .efficiency = 1.0,
        .fill = 0.1,
        .prologue_k = 16.0,
        .overlap = 0.05,
        .step = 1.0,
    };
    tile->kernel.split_k = 1;
    if (tile->kernel.cluster_m == 0) /* not told: none */
        tile->kernel.cluster_m = 1;
    if (tile->kernel.cluster_n == 0)
        tile->kernel.cluster_n = 1;
}

static double prior_of(const struct fit *fit, size_t unknown)
{
    if (unknown < GLOBALS)
        return fit->firmness * global_priors[unknown];
    size_t tile = (unknown - GLOBALS) / TILE_NUMBERS;
    double firmness = fit->params.tiles[tile].is_winograd ? 1.0 : fit->firmness;
    return firmness * tile_priors[(unknown - GLOBALS) % TILE_NUMBERS];
}

static double logit(double share)
{
    return log(share / (1.0 - share));
}

static double bounded_exp(double x, double low, double high)
{
    return fmin(fmax(exp(x), low), high);
}

static double share_max(const struct wg_kernel_params *params)
{
    for (size_t t = 0; t < params->tile_count; t++)
        if (params->tiles[t].is_winograd)
            return CONV_SHARE_MAX;
    return SHARE_MAX;
}

static void encode(const struct wg_kernel_params *params, double *x)
{
    x[FLOPS_SHARE] = logit(fmin(params->flops_share / share_max(params), 0.99));
    x[BANDWIDTH_SHARE] = log(params->bandwidth_share);
    x[NORM] = log(params->norm - 1.0);
    x[FLOOR] = log(params->floor_s);
    x[START] = log(fmax(params->start_s, 1e-8));
    x[SPLIT] = log(fmax(params->split_s, 1e-8));
    x[SPLIT_TRAFFIC] = log(fmax(params->split_traffic, 1e-3));
    x[LONG_K] = log(params->long_k);
    x[LONG_POWER] = log(fmax(params->long_power, 0.1));
    x[LONG_COST] = log(fmax(params->long_cost, 1e-3));
    x[REREAD] = log(fmax(params->reread, 1e-3));
    x[STRADDLE] = log(fmax(params->straddle, 1e-3));
    x[L2_SHARE] = log(fmax(params->l2_share, 1e-2));
    x[HOT] = log(fmax(params->hot_s, 1e-6));
    x[HOT_COST] = logit(fmin(fmax(params->hot_cost, 1e-3), 0.99 * HOT_COST_MAX) / HOT_COST_MAX);
    for (size_t t = 0; t < params->tile_count; t++) {
        double *own = x + GLOBALS + TILE_NUMBERS * t;
        own[EFFICIENCY] = params->tiles[t].is_winograd
                              ? log(params->tiles[t].efficiency)
                              : logit(fmin(params->tiles[t].efficiency, 0.9));
        own[FILL] = log(fmax(params->tiles[t].fill, 1e-3));
        own[PROLOGUE] = log(fmax(params->tiles[t].prologue_k, 1e-1));
        own[STAGES] = log(fmax(params->tiles[t].start_s, 1e-7));
        own[OVERLAP] = logit(fmin(fmax(params->tiles[t].overlap, 1e-3), 0.999));
    }
}

static void decode_tile(const double *own, struct wg_tile_params *tile)
{
    tile->efficiency = tile->is_winograd ? bounded_exp(own[EFFICIENCY], 1e-3, 8.0)
                                         : 1.0 / (1.0 + exp(-own[EFFICIENCY]));
    tile->fill = bounded_exp(own[FILL], 1e-6, 100.0);
    tile->prologue_k = bounded_exp(own[PROLOGUE], 1e-3, 1e4);
    tile->overlap = 1.0 / (1.0 + exp(-own[OVERLAP]));
    if (tile->is_winograd)
        tile->start_s = bounded_exp(own[STAGES], 1e-9, 1e-2);
}

static void decode_globals(const struct fit *fit, const double *x, struct wg_kernel_params *params)
{
    params->flops_share = share_max(params) / (1.0 + exp(-x[FLOPS_SHARE]));
    params->bandwidth_share = bounded_exp(x[BANDWIDTH_SHARE], 1e-2, 4.0);
    params->norm = 1.0 + bounded_exp(x[NORM], 1e-2, 60.0);
    params->floor_s = bounded_exp(x[FLOOR], 1e-8, fit->floor_max_s);
    params->start_s = bounded_exp(x[START], 1e-9, fit->start_max_s);
    params->split_s = bounded_exp(x[SPLIT], 1e-9, START_MAX_S);
    params->split_traffic = bounded_exp(x[SPLIT_TRAFFIC], 1e-6, 16.0);
    params->long_k = bounded_exp(x[LONG_K], 1.0, 1e12);
    params->long_power = bounded_exp(x[LONG_POWER], 1e-2, 16.0);
    params->long_cost = bounded_exp(x[LONG_COST], 1e-6, 100.0);
    params->reread = bounded_exp(x[REREAD], 1e-6, 16.0);
    params->straddle = bounded_exp(x[STRADDLE], 1e-6, 16.0);
    params->l2_share = bounded_exp(x[L2_SHARE], 1e-2, 4.0);
    params->hot_s = bounded_exp(x[HOT], 1e-5, 1.0);
    params->hot_cost = HOT_COST_MAX / (1.0 + exp(-x[HOT_COST]));
}

static const struct wg_fit_row *place(const struct fit *fit, size_t index)
{
    return &fit->rows[index * fit->count / fit->stride_count];
}

static double residual(const struct wg_wave_machine *machine, const struct wg_tile_params *tile,
                       const struct wg_fit_row *row)
{
    struct wg_wave_work work;
    struct wg_wave_time time;
    wg__wave_work_init(&work, machine, &row->gemm, row->bytes);
    wg__wave_parts(machine, tile, row->split_k, &work, &time);
    wg__wave_finish(machine, &time);
    return log(time.time_s / row->time_s);
}

static double weight_of(const struct fit *fit, const struct wg_fit_row *row)
{
    return row->time_s > 1.5 * fit->floor_s ? 1.0 : FLOOR_WEIGHT;
}

static double cost(struct fit *fit, const double *x)
{
    decode_globals(fit, x, &fit->params);
    for (size_t t = 0; t < fit->params.tile_count; t++)
        decode_tile(x + GLOBALS + TILE_NUMBERS * t, &fit->params.tiles[t]);
    struct wg_wave_machine machine;
    wg__wave_machine_init(&machine, fit->gpu, fit->rows[0].gemm.dtype, &fit->params);
    double sum = 0.0;
    for (size_t i = 0; i < fit->stride_count; i++) {
        const struct wg_fit_row *row = place(fit, i);
        double off =
            weight_of(fit, row) * residual(&machine, &fit->params.tiles[row->tile], row) / SOFT;
        sum += SOFT * SOFT * 2.0 * (sqrt(1.0 + off * off) - 1.0);
    }
    for (size_t i = 0; i < fit->unknowns; i++) {
        double off = prior_of(fit, i) * (x[i] - fit->usual[i]);
        sum += off * off;
    }
    return sum;
}

/* Where the i-th number that a row touches stands, whose tile's begin at `own`. */
static size_t unknown_of(size_t i, size_t own)
{
    return i < GLOBALS ? i : own + i - GLOBALS;
}

/* Adds a row's part of the gradient and the curvature. */
static void add_row(struct fit *fit, const struct wg_fit_row *row, double value,
                    const double slopes[static TOUCHED])
{
    double weight = weight_of(fit, row);
    double off = weight * value / SOFT;
    double scale = weight * weight / sqrt(1.0 + off * off); /* of the soft loss */
    size_t own = GLOBALS + TILE_NUMBERS * (size_t)row->tile;
    for (size_t i = 0; i < TOUCHED; i++) {
        const size_t at_i = unknown_of(i, own);
        fit->gradient[at_i] += scale * slopes[i] * value;
        for (size_t j = 0; j < TOUCHED; j++)
            fit->hessian[at_i][unknown_of(j, own)] += scale * slopes[i] * slopes[j];
    }
}

/* Slopes of one row's residual: `moved` are machines with one global moved each. */
static void row_slopes(const struct fit *fit, const struct wg_fit_row *row, double value,
                       const struct wg_wave_machine *machine,
                       const struct wg_wave_machine moved[static GLOBALS],
                       double slopes[static TOUCHED])
{
    const struct wg_tile_params *tile = &fit->params.tiles[row->tile];
    const double *own = fit->x + GLOBALS + TILE_NUMBERS * (size_t)row->tile;
    for (size_t g = 0; g < GLOBALS; g++)
        slopes[g] = (residual(&moved[g], tile, row) - value) / DELTA;
    for (size_t n = 0; n < TILE_NUMBERS; n++) {
        double numbers[TILE_NUMBERS];
        struct wg_tile_params other = *tile;
        memcpy(numbers, own, sizeof numbers);
        numbers[n] += DELTA;
        decode_tile(numbers, &other);
        slopes[GLOBALS + n] = (residual(machine, &other, row) - value) / DELTA;
    }
}

/* Gradient and curvature at x, for which cost() has just been called. */
static void linearise(struct fit *fit)
{
    enum wg_dtype dtype = fit->rows[0].gemm.dtype;
    struct wg_wave_machine machine, moved[GLOBALS];
    wg__wave_machine_init(&machine, fit->gpu, dtype, &fit->params);
    for (size_t g = 0; g < GLOBALS; g++) {
        double x[GLOBALS];
        struct wg_kernel_params other = fit->params;
        memcpy(x, fit->x, sizeof x);
        x[g] += DELTA;
        decode_globals(fit, x, &other);
        wg__wave_machine_init(&moved[g], fit->gpu, dtype, &other);
    }
    memset(fit->gradient, 0, sizeof fit->gradient);
    memset(fit->hessian, 0, sizeof fit->hessian);
    for (size_t i = 0; i < fit->stride_count; i++) {
        const struct wg_fit_row *row = place(fit, i);
        double slopes[TOUCHED];
        double value = residual(&machine, &fit->params.tiles[row->tile], row);
        row_slopes(fit, row, value, &machine, moved, slopes);
        add_row(fit, row, value, slopes);
    }
    for (size_t i = 0; i < fit->unknowns; i++) {
        double weight = prior_of(fit, i) * prior_of(fit, i);
        fit->gradient[i] += weight * (fit->x[i] - fit->usual[i]);
        fit->hessian[i][i] += weight;
    }
}

/* One damped step; false: no step from here lowers the cost any more. */
static bool step(struct fit *fit, double *least, double *damping)
{
    lapack_int n = (lapack_int)fit->unknowns;
    linearise(fit);
    for (int tries = 0; tries < 8; tries++) {
        if (tries > 0)
            *damping *= 5.0;
        double move[UNKNOWNS_MAX], x[UNKNOWNS_MAX];
        memcpy(move, fit->gradient, sizeof move);
        memcpy(fit->damped, fit->hessian, sizeof fit->damped);
        for (size_t i = 0; i < fit->unknowns; i++)
            fit->damped[i][i] *= 1.0 + *damping;
        if (LAPACKE_dposv(LAPACK_COL_MAJOR, 'L', n, 1, &fit->damped[0][0], UNKNOWNS_MAX, move, n) !=
            0)
            continue;
        for (size_t i = 0; i < fit->unknowns; i++)
            x[i] = fit->x[i] - fmin(fmax(move[i], -1.0), 1.0);
        double reached = cost(fit, x);
        if (!(reached < *least))
            continue;
        bool is_done = tries == 0 && reached > *least * (1.0 - 1e-6);
        memcpy(fit->x, x, fit->unknowns * sizeof *x);
        *least = reached;
        *damping = fmax(*damping / 10.0, 1e-6);
        return !is_done;
    }
    (void)cost(fit, fit->x); /* puts the numbers of x back into params */
    return false;
}

/* A share that says what the best tile sustains: efficiencies are relative to it. */
static void normalise(struct wg_kernel_params *params)
{
    double most = 0.0;
    for (size_t t = 0; t < params->tile_count; t++)
        most = fmax(most, params->tiles[t].efficiency);
    if (!(most > 0.0))
        return;
    for (size_t t = 0; t < params->tile_count; t++)
        params->tiles[t].efficiency /= most;
    params->flops_share *= most;
}

/* What a launch may cost. Few convolutions that are measured are small, and the large ones would
 * make launches dear to mend what their algorithms do: no launch takes longer than the shortest
 * row. */
static void bound_launches(struct fit *fit)
{
    double least_s = INFINITY;
    for (size_t i = 0; i < fit->count; i++)
        least_s = fmin(least_s, fit->rows[i].time_s);
    fit->floor_max_s = 3.0 * fit->floor_s;
    fit->start_max_s = START_MAX_S;
    if (share_max(&fit->params) > SHARE_MAX) {
        fit->floor_max_s = fmin(fit->floor_max_s, least_s);
        fit->start_max_s = fmin(fit->start_max_s, 0.5 * least_s);
    }
}

enum wg_code wg__params_fit(struct wg_kernel_params *params, const struct wg_gpu_spec *gpu,
                            const struct wg_fit_row *rows, size_t count, double firmness,
                            struct wg_error *err)
{
    struct fit *fit = wg__alloc_zeroed(1, sizeof *fit);
    if (fit == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for fitting %zu rows", count);
    fit->gpu = gpu;
    fit->rows = rows;
    fit->count = count;
    fit->stride_count = count < ROWS_MAX ? count : ROWS_MAX;
    fit->floor_s = params->floor_s;
    fit->firmness = firmness;
    fit->params = *params;
    bound_launches(fit);
    fit->unknowns = GLOBALS + TILE_NUMBERS * params->tile_count;
    encode(params, fit->x);
    memcpy(fit->usual, fit->x, sizeof fit->usual);
    double least = cost(fit, fit->x), damping = 1e-3;
    int steps = 0;
    while (steps < STEPS_MAX && step(fit, &least, &damping))
        steps++;
    *params = fit->params;
    normalise(params);
    wg__free(fit);
    return WG_OK;
}
