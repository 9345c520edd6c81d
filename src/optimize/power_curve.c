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
 * We hold all shapes of a coarse grid at once and weigh each by how well it fits the samples. The
 * scale is unknown (the first sample is as noisy as the rest), so each shape is fitted up to a
 * factor. How far single limits stray from any smooth shape differs much between jobs - 0.5 % for
 * large batches, 6 % for jobs that the CPU holds back - so the scatter is a fourth dimension of the
 * grid, learned like the rest. The prior expects scatter where even the lowest limit does not bind:
 * there the GPU waits for the host.
 *
 * Power. Close to min(x, d), rounded where the draw varies in time; corrected by the ratio that was
 * measured, interpolated linearly between measured limits.
 *
 * Gain. For cost c with scatter z the improvement over the best cost b found so far is max(0, b -
 * c), and for SLOWDOWN it counts only where throughput stays above the floor; one closed form
 * covers both, since a sample with more throughput is both cheaper and safer. Its mean over shapes
 * and scatters is the expected improvement (Mockus 1978; Jones, Schonlau, Welch 1998), here in log
 * cost.
 *
 * Rejected: ternary search and quadratics in log cost (docs/internals/power-limit.md has numbers),
 * which know neither that a limit above the draw changes nothing nor how noisy a job is.
 *
 * Threads: pure, any thread; about 10 KiB of stack.
 */
#include "optimize/power_curve.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "math/normal.h"
#include "optimize/power_limit.h"

enum { KNEE_COUNT = 8, FOOT_COUNT = 3, SLOPE_COUNT = 4, SCATTER_COUNT = 4 };
enum { SHAPE_COUNT = KNEE_COUNT * FOOT_COUNT * SLOPE_COUNT };

/* Grid and prior: chosen by random search on the V100 and A40 traces, with 1 % of noise added to
 * half of the runs so that they fit no single curve; bench/power_limit.c measures what they give.
 */
static const double knee_share_first = 0.58, knee_share_last = 1.05;
static const double foot_share_last = 0.83, slope_last = 0.4;
static const double scatters[SCATTER_COUNT] = {0.003, 0.006, 0.017, 0.06};
static const double prior_binding[SCATTER_COUNT] = {1.0, 1.0, 1.0, 1.0};
static const double prior_host_bound[SCATTER_COUNT] = {0.16, 0.16, 1.0, 0.74};
static const double host_bound_share =
    0.67;                                  /* of the lowest limit: a draw below it is host-bound */
static const double power_exponent = 3.6;  /* of the rounded minimum of limit and draw */
static const double power_sd_below = 0.07; /* of a power two thirds of the way below any measured */
static const double power_sd_between =
    0.32; /* per unit of change of the ratio between two measured */
static const double power_sd_least = 0.003;
static const double warm_start_width =
    0.15;                                /* how far optima of neighbours lie apart, of the limit */
static const double least_weight = 1e-6; /* lighter shapes are not worth their arithmetic */

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
    size_t sample_count;  /* limits measured */
    size_t prospect_count;
    struct prospect prospects[WG_POWER_LIMITS_MAX];
    double log_scale[SHAPE_COUNT];
    double log_weight[SHAPE_COUNT][SCATTER_COUNT];
    double largest_log_weight;
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

/* Everything about the samples that no shape changes. */
static void model_init(struct model *model, const struct wg_power_search *search)
{
    const size_t best = wg__power_search_best(search);
    const struct wg_objective *objective = &search->objective;
    double largest_throughput = 0.0;

    model->search = search;
    model->draw =
        fmin(search->power_w[search->count - 1] / search->limit_w[search->count - 1], 1.0);
    model->log_best_cost =
        log(wg__objective_cost_per_s(objective, search->power_w[best]) / search->throughput[best]);
    model->sample_count = 0;
    model->prospect_count = 0;
    for (size_t i = 0; i < search->count; i++) {
        if (search->probed[i]) {
            model->sample_count++;
            largest_throughput = fmax(largest_throughput, search->throughput[i]);
            continue;
        }
        double sd;
        const double power_w = expected_power_w(model, i, &sd);
        const double cost_per_s = wg__objective_cost_per_s(objective, power_w);
        /* A share of a change in power arrives in the cost: all of it for energy, none for time. */
        const double power_share =
            (wg__objective_cost_per_s(objective, 1.01 * power_w) / cost_per_s - 1.0) / 0.01;

        model->prospects[model->prospect_count++] = (struct prospect){
            .index = i, .log_cost_per_s = log(cost_per_s), .cost_sd = sd * power_share};
    }
    model->log_floor = objective->kind == WG_OBJECTIVE_SLOWDOWN
                           ? log(largest_throughput / objective->max_slowdown)
                           : (double)-INFINITY;
}

/* The limit that is best under `shape` alone, in W. */
static double shape_best_limit_w(const struct model *model, const struct shape *shape)
{
    const struct wg_power_search *search = model->search;
    const double largest_w = search->limit_w[search->count - 1];
    const double log_floor =
        search->objective.kind == WG_OBJECTIVE_SLOWDOWN
            ? shape_log_throughput(shape, model->draw, 1.0) - log(search->objective.max_slowdown)
            : (double)-INFINITY;
    const struct prospect *prospect = model->prospects;
    double best_cost = INFINITY, best_w = largest_w;

    for (size_t i = 0; i < search->count; i++) {
        const double log_cost_per_s =
            search->probed[i]
                ? log(wg__objective_cost_per_s(&search->objective, search->power_w[i]))
                : (prospect++)->log_cost_per_s;
        const double log_throughput =
            shape_log_throughput(shape, model->draw, search->limit_w[i] / largest_w);

        if (log_throughput >= log_floor && log_cost_per_s - log_throughput <= best_cost) {
            best_cost = log_cost_per_s - log_throughput;
            best_w = search->limit_w[i];
        }
    }
    return best_w;
}

/* Weighs every shape and scatter by prior, warm start and likelihood. */
static void weigh_shapes(struct model *model)
{
    const struct wg_power_search *search = model->search;
    const double largest_w = search->limit_w[search->count - 1];
    const bool is_host_bound =
        search->power_w[search->count - 1] < host_bound_share * search->limit_w[0];
    const double *prior = is_host_bound ? prior_host_bound : prior_binding;
    const double count = (double)model->sample_count;

    model->largest_log_weight = -INFINITY;
    for (size_t s = 0; s < SHAPE_COUNT; s++) {
        const struct shape shape = shape_at(s);
        double sum = 0.0, sum_of_squares = 0.0, log_warm = 0.0;

        for (size_t i = 0; i < search->count; i++) {
            if (!search->probed[i])
                continue;
            const double residual =
                log(search->throughput[i]) -
                shape_log_throughput(&shape, model->draw, search->limit_w[i] / largest_w);
            sum += residual;
            sum_of_squares += residual * residual;
        }
        model->log_scale[s] = sum / count;
        const double spread = fmax(sum_of_squares - sum * sum / count, 0.0);

        if (search->start < search->count)
            log_warm = -fabs(shape_best_limit_w(model, &shape) - search->limit_w[search->start]) /
                       (largest_w * warm_start_width);
        for (size_t z = 0; z < SCATTER_COUNT; z++) {
            model->log_weight[s][z] = log_warm + log(prior[z]) - (count - 1.0) * log(scatters[z]) -
                                      0.5 * spread / (scatters[z] * scatters[z]);
            model->largest_log_weight = fmax(model->largest_log_weight, model->log_weight[s][z]);
        }
    }
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

double wg__power_curve_best_gain(const struct wg_power_search *search, size_t *index_out)
{
    struct model model;
    double gain[WG_POWER_LIMITS_MAX] = {0.0};
    double weight_sum = 0.0, best_gain = 0.0;

    assert(search->probed[search->count - 1]);
    *index_out = search->count;
    model_init(&model, search);
    if (model.prospect_count == 0)
        return 0.0;
    weigh_shapes(&model);
    for (size_t s = 0; s < SHAPE_COUNT; s++) {
        const struct shape shape = shape_at(s);

        for (size_t p = 0; p < model.prospect_count; p++) {
            const struct prospect *prospect = &model.prospects[p];
            const double log_throughput =
                model.log_scale[s] + shape_log_throughput(&shape, model.draw,
                                                          search->limit_w[prospect->index] /
                                                              search->limit_w[search->count - 1]);

            for (size_t z = 0; z < SCATTER_COUNT; z++) {
                const double weight = exp(model.log_weight[s][z] - model.largest_log_weight);
                /* The scale was estimated from the samples: its own error adds one part in n. */
                const double variance =
                    scatters[z] * scatters[z] * (1.0 + 1.0 / (double)model.sample_count) +
                    prospect->cost_sd * prospect->cost_sd;

                if (p == 0)
                    weight_sum += weight;
                if (weight > least_weight)
                    gain[p] += weight * expected_improvement(&model, prospect->log_cost_per_s,
                                                             log_throughput, sqrt(variance));
            }
        }
    }
    for (size_t p = 0; p < model.prospect_count; p++) {
        if (gain[p] / weight_sum >= best_gain) {
            best_gain = gain[p] / weight_sum;
            *index_out = model.prospects[p].index;
        }
    }
    return best_gain;
}
