/* SPDX-License-Identifier: MIT
 *
 * A small Bayesian model of throughput and power against the power limit.
 *
 * Throughput. In units of the largest limit let x be a limit and d the power drawn without one. Low
 * limits throttle the clocks, so throughput rises in a line; high ones hardly bind and throughput
 * climbs a gentle plateau to its largest value at d. One shape is the smooth minimum of both:
 *
 *      1 |              ______----   plateau 1 - slope (1 - x/d)
 *        |         __.-'             line    (x - foot) / (knee - foot)
 *        |       .'
 *        |     .'                    foot = foot_share * knee,  knee = knee_share * d
 *      0 +---'-----------------------
 *           foot    knee      d    x
 *
 * We hold all shapes of a coarse grid at once and weigh each by how well it fits the samples, up to
 * a factor (the first sample is as noisy as the rest). What a shape leaves over is a Gaussian
 * process in x: a smooth part, since no curve is exactly of our family, and a part of each limit's
 * own. Both differ much between jobs - single limits stray by 0.5 % for large batches and by 6 %
 * for jobs that the CPU holds back - so their sizes are a fourth dimension of the grid, learned
 * like the rest. The prior expects strays where even the lowest limit does not bind: there the GPU
 * waits for the host. (Universal kriging with a prior over trends; Rasmussen and Williams 2006,
 * section 2.7.)
 *
 * Power. Close to min(x, d), rounded where the draw varies in time; corrected by the ratio that was
 * measured, interpolated linearly between measured limits.
 *
 * Gain. For log cost c with a standard deviation s the improvement over the best cost b found so
 * far is max(0, b - c), and for SLOWDOWN it counts only where throughput stays above the floor; one
 * closed form covers both, since a sample with more throughput is both cheaper and safer. Its mean
 * over the grid is the expected improvement (Jones, Schonlau, Welch 1998).
 *
 * Rejected: ternary search (4.7 probes, 0.34 % mean and 17 % worst regret on the traces) and a
 * quadratic in log cost, which know neither that a limit above the draw changes nothing nor how
 * noisy a job is; strays without the smooth part, which keep asking around an optimum that is
 * already pinned down.
 *
 * Threads: pure, any thread; about 110 KiB of stack.
 */
#include "optimize/power_curve.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "math/normal.h"
#include "optimize/power_limit.h"

enum { KNEE_COUNT = 8, FOOT_COUNT = 3, SLOPE_COUNT = 4, STRAY_COUNT = 4 };
enum { SHAPE_COUNT = KNEE_COUNT * FOOT_COUNT * SLOPE_COUNT };
/* Samples and prospects share the limits, so their product is largest when they are equally many.
 */
enum { PAIRS_MAX = WG_POWER_LIMITS_MAX * WG_POWER_LIMITS_MAX / 4 };

/* How far throughput strays from its shape, in logarithms. */
struct stray {
    double smooth, single;               /* standard deviations of the two parts */
    double prior_binding, prior_unbound; /* weights where the lowest limit binds and where not */
};

/* Grid and prior: chosen by random search on the V100 and A40 traces, as recorded and with 1 % of
 * noise added; bench/power_limit.c measures what they give. */
static const double knee_share_first = 0.56, knee_share_last = 1.05;
static const double foot_share_last = 0.85, slope_last = 0.36;
static const struct stray strays[STRAY_COUNT] = {
    {0.010, 0.0014, 1.4, 0.27},
    {0.044, 0.0040, 1.4, 0.27},
    {0.020, 0.0130, 1.0, 1.00},
    {0.006, 0.0800, 0.4, 2.10},
};
static const double smooth_length = 0.25;  /* of the smooth part, as a share of the largest limit */
static const double unbound_share = 1.17;  /* of the lowest limit: it does not bind a draw below */
static const double power_exponent = 4.2;  /* of the rounded minimum of limit and draw */
static const double power_sd_below = 0.05; /* of a power half the range below any measured one */
static const double power_sd_between =
    0.29; /* per unit of change of the ratio between two measured */
static const double power_sd_least = 0.0034;
static const double warm_start_width =
    0.07;                                 /* how far optima of neighbours lie apart, of the limit */
static const double weight_cutoff = 10.0; /* a log weight this far below the largest is nothing */

struct shape {
    double knee_share, foot_share, slope;
};

/* What is expected of one unmeasured limit before throughput comes in. */
struct prospect {
    size_t index;
    double log_cost_per_s;
    double cost_sd; /* of log_cost_per_s, from the uncertainty of the power */
};

struct model {
    const struct wg_power_search *search;
    double draw;          /* at the largest limit, as a share of it, at most 1 */
    double log_best_cost; /* least log cost per unit of work among those measured */
    double log_floor;     /* log of the least throughput allowed, -INFINITY without SLOWDOWN */
    size_t sample_count;
    size_t sample[WG_POWER_LIMITS_MAX]; /* indices of the limits measured */
    size_t prospect_count;
    struct prospect prospect[WG_POWER_LIMITS_MAX]; /* the other limits */
    double log_shape[SHAPE_COUNT][WG_POWER_LIMITS_MAX];
    double log_warm[SHAPE_COUNT]; /* log prior of a shape from the warm start */
};

/* Kriging with one size of strays; the same for every shape. */
struct kriging {
    double inverse[WG_POWER_LIMITS_MAX * WG_POWER_LIMITS_MAX]; /* of the samples' covariance */
    double row_sum[WG_POWER_LIMITS_MAX];                       /* of the inverse */
    double total;                                              /* of the inverse */
    double log_weight; /* prior and normalisation, the part of the weight that no shape changes */
    double coefficient[PAIRS_MAX];  /* a prospect's share of each sample's residual */
    double sd[WG_POWER_LIMITS_MAX]; /* of a prospect's log cost */
};

/* A weighted mean whose weights are known only as logarithms. */
struct gain_sum {
    double largest_log_weight;
    double weight;
    double gain[WG_POWER_LIMITS_MAX];
};

static struct shape shape_at(size_t index)
{
    const size_t knee = index % KNEE_COUNT;
    const size_t foot = index / KNEE_COUNT % FOOT_COUNT;
    const size_t slope = index / KNEE_COUNT / FOOT_COUNT;

    return (struct shape){
        .knee_share = knee_share_first + (knee_share_last - knee_share_first) * (double)knee /
                                             (double)(KNEE_COUNT - 1),
        .foot_share = foot_share_last * (double)foot / (double)(FOOT_COUNT - 1),
        .slope = slope_last * (double)slope / (double)(SLOPE_COUNT - 1),
    };
}

/* log throughput of `shape` at `limit` (a share of the largest), up to the unknown scale. */
static double shape_log_throughput(const struct shape *shape, double draw, double limit)
{
    const double knee = shape->knee_share * draw;
    const double foot = shape->foot_share * knee;
    const double line = fmax((limit - foot) / (knee - foot), 0.03);
    const double plateau = 1.0 - shape->slope * fmax(1.0 - limit / draw, 0.0);
    const double ratio = line / plateau;

    if (ratio > 4.0)
        return log(plateau);
    const double ratio4 = ratio * ratio * ratio * ratio;
    return log(line) - 0.125 * log1p(ratio4 * ratio4); /* the 8-norm of 1/line and 1/plateau */
}

/* The rounded minimum of limit and draw, both as shares of the largest limit, that passes through
 * the draw at the largest limit. */
static double rounded_power(double limit, double draw)
{
    const double unbound = pow(fmin(draw, 0.985), -power_exponent) - 1.0;

    return limit * pow(1.0 + unbound * pow(limit, power_exponent), -1.0 / power_exponent);
}

/* Expected power at limit `index` and its standard deviation relative to it. */
static double expected_power_w(const struct model *model, size_t index, double *relative_sd)
{
    const struct wg_power_search *search = model->search;
    const double largest_w = search->limit_w[search->count - 1];
    size_t above = index + 1;
    size_t below = index;

    while (!search->probed[above])
        above++;
    while (below > 0 && !search->probed[below - 1])
        below--;
    const double limit_w = search->limit_w[index], above_w = search->limit_w[above];
    const double base = rounded_power(limit_w / largest_w, model->draw);
    const double ratio_above =
        search->power_w[above] / rounded_power(above_w / largest_w, model->draw);

    if (below == 0) {
        *relative_sd = power_sd_below * fmin(1.0, 2.0 * (above_w - limit_w) / largest_w);
        return base * ratio_above;
    }
    const double below_w = search->limit_w[below - 1];
    const double ratio_below =
        search->power_w[below - 1] / rounded_power(below_w / largest_w, model->draw);
    const double position = (limit_w - below_w) / (above_w - below_w);

    *relative_sd = power_sd_least + power_sd_between * fabs(log(ratio_above / ratio_below)) * 2.0 *
                                        position * (1.0 - position);
    return base * (ratio_below + (ratio_above - ratio_below) * position);
}

/* The log prior of a shape by the warm start: its best limit lies near that of the neighbour. */
static double warm_log_prior(const struct model *model, const double *log_shape)
{
    const struct wg_power_search *search = model->search;
    const double largest_w = search->limit_w[search->count - 1];
    const double log_floor =
        search->objective.kind == WG_OBJECTIVE_SLOWDOWN
            ? log_shape[search->count - 1] - log(search->objective.max_slowdown)
            : (double)-INFINITY;
    const struct prospect *prospect = model->prospect;
    double best_cost = INFINITY, best_w = largest_w;

    if (search->start == search->count)
        return 0.0;
    for (size_t i = 0; i < search->count; i++) {
        const double log_cost_per_s =
            search->probed[i]
                ? log(wg__objective_cost_per_s(&search->objective, search->power_w[i]))
                : (prospect++)->log_cost_per_s;

        if (log_shape[i] >= log_floor && log_cost_per_s - log_shape[i] <= best_cost) {
            best_cost = log_cost_per_s - log_shape[i];
            best_w = search->limit_w[i];
        }
    }
    return -fabs(best_w - search->limit_w[search->start]) / (largest_w * warm_start_width);
}

static void add_prospect(struct model *model, size_t index)
{
    const struct wg_objective *objective = &model->search->objective;
    double sd;
    const double power_w = expected_power_w(model, index, &sd);
    const double cost_per_s = wg__objective_cost_per_s(objective, power_w);
    /* A share of a change in power arrives in the cost: all of it for energy, none for time. */
    const double power_share =
        (wg__objective_cost_per_s(objective, 1.01 * power_w) / cost_per_s - 1.0) / 0.01;

    model->prospect[model->prospect_count++] = (struct prospect){
        .index = index, .log_cost_per_s = log(cost_per_s), .cost_sd = sd * power_share};
}

static void model_init(struct model *model, const struct wg_power_search *search)
{
    const size_t count = search->count, best = wg__power_search_best(search);
    const struct wg_objective *objective = &search->objective;
    double largest_throughput = 0.0;

    model->search = search;
    model->draw = fmin(search->power_w[count - 1] / search->limit_w[count - 1], 1.0);
    model->log_best_cost = log(wg__objective_cost_per_s(objective, search->power_w[best])) -
                           log(search->throughput[best]);
    model->sample_count = 0;
    model->prospect_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!search->probed[i]) {
            add_prospect(model, i);
            continue;
        }
        model->sample[model->sample_count++] = i;
        largest_throughput = fmax(largest_throughput, search->throughput[i]);
    }
    model->log_floor = objective->kind == WG_OBJECTIVE_SLOWDOWN
                           ? log(largest_throughput) - log(objective->max_slowdown)
                           : (double)-INFINITY;
    for (size_t s = 0; s < SHAPE_COUNT; s++) {
        const struct shape shape = shape_at(s);

        for (size_t i = 0; i < count; i++)
            model->log_shape[s][i] = shape_log_throughput(
                &shape, model->draw, search->limit_w[i] / search->limit_w[count - 1]);
        model->log_warm[s] = warm_log_prior(model, model->log_shape[s]);
    }
}

/* The covariance of the smooth part between limits `i` and `j`. */
static double smooth_covariance(const struct model *model, const struct stray *stray, size_t i,
                                size_t j)
{
    const double *limit_w = model->search->limit_w;
    const double distance =
        (limit_w[i] - limit_w[j]) / (limit_w[model->search->count - 1] * smooth_length);

    return stray->smooth * stray->smooth * exp(-0.5 * distance * distance);
}

/* Inverts a positive definite matrix in place by Gauss-Jordan without pivots, which the single
 * strays on its diagonal make safe; returns the logarithm of its determinant. */
static double invert(double *matrix, size_t count)
{
    double log_determinant = 0.0;

    for (size_t k = 0; k < count; k++) {
        const double pivot = matrix[k * count + k];

        log_determinant += log(pivot);
        matrix[k * count + k] = 1.0;
        for (size_t j = 0; j < count; j++)
            matrix[k * count + j] /= pivot;
        for (size_t i = 0; i < count; i++) {
            const double factor = matrix[i * count + k];

            if (i == k)
                continue;
            matrix[i * count + k] = 0.0;
            for (size_t j = 0; j < count; j++)
                matrix[i * count + j] -= factor * matrix[k * count + j];
        }
    }
    return log_determinant;
}

/* Sets a prospect's coefficients and standard deviation. */
static void krige_prospect(struct kriging *kriging, const struct model *model,
                           const struct stray *stray, size_t prospect)
{
    const size_t count = model->sample_count;
    const struct prospect *to = &model->prospect[prospect];
    double *coefficient = &kriging->coefficient[prospect * count];
    double covariance[WG_POWER_LIMITS_MAX];
    double explained = 0.0, coefficient_sum = 0.0;

    for (size_t i = 0; i < count; i++)
        covariance[i] = smooth_covariance(model, stray, model->sample[i], to->index);
    for (size_t i = 0; i < count; i++) {
        coefficient[i] = 0.0;
        for (size_t j = 0; j < count; j++)
            coefficient[i] += kriging->inverse[i * count + j] * covariance[j];
        explained += coefficient[i] * covariance[i];
        coefficient_sum += coefficient[i];
    }
    /* The scale was estimated from the samples: the last term is its own error. */
    const double own = stray->smooth * stray->smooth + stray->single * stray->single;
    const double variance =
        own - explained + (1.0 - coefficient_sum) * (1.0 - coefficient_sum) / kriging->total;

    kriging->sd[prospect] = sqrt(fmax(variance, 0.0) + to->cost_sd * to->cost_sd);
}

static void kriging_init(struct kriging *kriging, const struct model *model,
                         const struct stray *stray)
{
    const struct wg_power_search *search = model->search;
    const size_t count = model->sample_count;
    const bool is_unbound = search->power_w[search->count - 1] < unbound_share * search->limit_w[0];

    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++)
            kriging->inverse[i * count + j] =
                smooth_covariance(model, stray, model->sample[i], model->sample[j]);
        kriging->inverse[i * count + i] += stray->single * stray->single;
    }
    const double log_determinant = invert(kriging->inverse, count);

    kriging->total = 0.0;
    for (size_t i = 0; i < count; i++) {
        kriging->row_sum[i] = 0.0;
        for (size_t j = 0; j < count; j++)
            kriging->row_sum[i] += kriging->inverse[i * count + j];
        kriging->total += kriging->row_sum[i];
    }
    kriging->log_weight = log(is_unbound ? stray->prior_unbound : stray->prior_binding) -
                          0.5 * (log_determinant + log(kriging->total));
    for (size_t p = 0; p < model->prospect_count; p++)
        krige_prospect(kriging, model, stray, p);
}

/* E[max(0, best - cost) with throughput at or above the floor], throughput log-normal around
 * `log_throughput` with `sd`. */
static double expected_improvement(const struct model *model, double log_cost_per_s,
                                   double log_throughput, double sd)
{
    const double excess = log_cost_per_s - log_throughput - model->log_best_cost;
    const double z = fmax(model->log_floor - log_throughput, excess) / sd;

    return z > 6.0 ? 0.0 : sd * wg__normal_pdf(z) - excess * wg__normal_cdf(-z);
}

/* The weight of a shape relative to the largest so far; earlier sums shrink when it is the largest.
 */
static double weigh(struct gain_sum *sum, size_t prospect_count, double log_weight)
{
    if (log_weight <= sum->largest_log_weight)
        return exp(log_weight - sum->largest_log_weight);
    const double shrink = exp(sum->largest_log_weight - log_weight);

    sum->largest_log_weight = log_weight;
    sum->weight *= shrink;
    for (size_t p = 0; p < prospect_count; p++)
        sum->gain[p] *= shrink;
    return 1.0;
}

/* Adds what one shape with one size of strays expects of each prospect. */
static void add_shape(struct gain_sum *sum, const struct model *model,
                      const struct kriging *kriging, size_t shape)
{
    const size_t count = model->sample_count;
    const double *log_shape = model->log_shape[shape];
    double residual[WG_POWER_LIMITS_MAX];
    double scale = 0.0, misfit = 0.0;

    for (size_t i = 0; i < count; i++) {
        const size_t index = model->sample[i];

        residual[i] = log(model->search->throughput[index]) - log_shape[index];
        scale += kriging->row_sum[i] * residual[i] / kriging->total;
    }
    for (size_t i = 0; i < count; i++)
        residual[i] -= scale;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            misfit += residual[i] * kriging->inverse[i * count + j] * residual[j];
    const double log_weight = kriging->log_weight + model->log_warm[shape] - 0.5 * misfit;

    if (log_weight < sum->largest_log_weight - weight_cutoff)
        return;
    const double weight = weigh(sum, model->prospect_count, log_weight);

    sum->weight += weight;
    for (size_t p = 0; p < model->prospect_count; p++) {
        const struct prospect *prospect = &model->prospect[p];
        double log_throughput = log_shape[prospect->index] + scale;

        for (size_t i = 0; i < count; i++)
            log_throughput += kriging->coefficient[p * count + i] * residual[i];
        sum->gain[p] += weight * expected_improvement(model, prospect->log_cost_per_s,
                                                      log_throughput, kriging->sd[p]);
    }
}

double wg__power_curve_best_gain(const struct wg_power_search *search, size_t *index_out)
{
    struct model model;
    struct kriging kriging;
    struct gain_sum sum = {.largest_log_weight = (double)-INFINITY};
    double best_gain = 0.0;

    assert(search->count > 0 && search->probed[search->count - 1]);
    *index_out = search->count;
    model_init(&model, search);
    if (model.prospect_count == 0)
        return 0.0;
    for (size_t z = 0; z < STRAY_COUNT; z++) {
        kriging_init(&kriging, &model, &strays[z]);
        for (size_t s = 0; s < SHAPE_COUNT; s++)
            add_shape(&sum, &model, &kriging, s);
    }
    for (size_t p = 0; p < model.prospect_count; p++) {
        if (sum.gain[p] / sum.weight >= best_gain) {
            best_gain = sum.gain[p] / sum.weight;
            *index_out = model.prospect[p].index;
        }
    }
    return best_gain;
}
