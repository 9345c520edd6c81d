/* SPDX-License-Identifier: MIT
 *
 * The physical predictor's features, first fit and learning.
 *
 * Owns: nothing.    Threads: one at a time.
 */
#include "schedule/predictor_physical.h"

#include <math.h>
#include <string.h>

/* What is plausible, as a standard deviation: a part of the first fit, as a share of it; a step of
 * the staircase, as a share of the line. */
static const double prior_spread = 0.3;
static const double effect_spread = 0.1;

/* A feature that the first fit gave nothing: it might have made up this share of a sample. */
static const double unused_share = 0.3;

/* What the first fit gets wrong looks like noise, too, and must not make the prior all the surer of
 * that fit: for the prior, noise is no more than this. */
static const double prior_noise = 0.03 * 0.03;

/* Together the samples weigh at most this share of all the batches that will be remembered: the
 * prior knows what they said, and where they were wrong they shouldn't stand in the way. */
static const double samples_share = 0.1;

static const double first_noise = 0.03 * 0.03;
static const double least_noise = 0.003 * 0.003;
static const double noise_gain = 0.02;

/* -- Features -------------------------------------------------------------------------------- */

/* Of work that is not known, what is fixed and what comes with the rows are features each. */
static void add_inference(struct wg_physical *physical, double fixed, double per_row,
                          enum wg_time_scale scale)
{
    const double whole = fixed + per_row;
    struct wg_feature *to = physical->features + physical->count;
    if (whole > 0.0) { /* in units of one row's work: numbers of a size that can be squared */
        to[0] = (struct wg_feature){fixed / whole, per_row / whole, scale, false};
        physical->count++;
        return;
    }
    to[0] = (struct wg_feature){1.0, 0.0, scale, false};
    to[1] = (struct wg_feature){0.0, 1.0, scale, false};
    physical->count += 2;
}

static void add_beside(struct wg_physical *physical, double fixed, double per_row,
                       enum wg_time_scale scale)
{
    const double whole = fixed + per_row;
    const bool is_operations = scale == WG_SCALE_GPU;
    struct wg_feature *to = physical->features + physical->count++;
    *to = (struct wg_feature){is_operations ? 0.0 : 1.0, is_operations ? 1.0 : 0.0, scale, true};
    if (whole > 0.0) {
        to->fixed = fixed / whole;
        to->per_row = per_row / whole;
    }
}

static void choose_features(struct wg_physical *physical, const struct wg_predictor_setup *setup)
{
    const struct wg_work_shape *inference = &setup->inference;
    const struct wg_work_shape *finetune = &setup->finetune;
    physical->features[0] = (struct wg_feature){1.0, 0.0, WG_SCALE_NONE, false};
    physical->features[1] = (struct wg_feature){0.0, 1.0, WG_SCALE_NONE, false};
    physical->count = 2;
    add_inference(physical, inference->operations_fixed, inference->operations_per_row,
                  WG_SCALE_GPU);
    add_inference(physical, inference->bytes_fixed, inference->bytes_per_row, WG_SCALE_MEM);
    add_beside(physical, finetune->operations_fixed, finetune->operations_per_row, WG_SCALE_GPU);
    add_beside(physical, finetune->bytes_fixed, finetune->bytes_per_row, WG_SCALE_MEM);
}

static void invert_clocks(const struct wg_predictor_point *point, double *slowness)
{
    slowness[WG_SCALE_NONE] = 1.0;
    slowness[WG_SCALE_GPU] = 1.0 / point->gpu_clock;
    slowness[WG_SCALE_MEM] = 1.0 / point->mem_clock;
}

/* A row of the least squares problem, in seconds a unit of theta. */
static void features_of(const struct wg_physical *physical, const struct wg_predictor_point *point,
                        double *out)
{
    double slowness[WG_SCALE_COUNT];
    invert_clocks(point, slowness);
    for (size_t i = 0; i < physical->count; i++) {
        const struct wg_feature *feature = &physical->features[i];
        const double rows = feature->is_beside ? point->finetune_rows : point->rows;
        const bool is_there = !feature->is_beside || rows > 0.0;
        const double work = feature->fixed + feature->per_row * rows;
        out[i] = is_there ? work * slowness[feature->scale] : 0.0;
    }
}

/* -- The line -------------------------------------------------------------------------------- */

static double at_clocks(const double *times, const double *slowness)
{
    return times[WG_SCALE_NONE] + times[WG_SCALE_GPU] * slowness[WG_SCALE_GPU] +
           times[WG_SCALE_MEM] * slowness[WG_SCALE_MEM];
}

static double beside_time(const struct wg_line_times *line, double rows, const double *slowness)
{
    if (!(rows > 0.0))
        return 0.0;
    return at_clocks(line->beside_fixed, slowness) +
           rows * at_clocks(line->beside_per_row, slowness);
}

/* Sorts theta into the line and shapes the effects at the clocks of the last batch. */
static void set_line(struct wg_physical *physical, double shrink)
{
    struct wg_line_times *line = &physical->line;
    *line = (struct wg_line_times){0};
    for (size_t i = 0; i < physical->count; i++) {
        const struct wg_feature *feature = &physical->features[i];
        double *fixed = feature->is_beside ? line->beside_fixed : line->fixed;
        double *per_row = feature->is_beside ? line->beside_per_row : line->per_row;
        fixed[feature->scale] += physical->fit.x[i] * feature->fixed;
        per_row[feature->scale] += physical->fit.x[i] * feature->per_row;
    }
    wg__batch_effects_shape(&physical->effects, shrink, at_clocks(line->fixed, physical->slowness),
                            at_clocks(line->per_row, physical->slowness));
}

double wg__physical_time(const struct wg_physical *physical, const struct wg_predictor_point *point)
{
    double slowness[WG_SCALE_COUNT];
    double alpha = 1.0, rows = 0.0;
    invert_clocks(point, slowness);
    wg__batch_effects_at(&physical->effects, point->rows, &alpha, &rows);
    return alpha * at_clocks(physical->line.fixed, slowness) +
           rows * at_clocks(physical->line.per_row, slowness) +
           beside_time(&physical->line, point->finetune_rows, slowness);
}

/* -- Learning -------------------------------------------------------------------------------- */

/* A feature that was never seen before: nothing is known of it, so it may be large. */
static void begin_feature(struct wg_physical *physical, size_t i, double share)
{
    physical->is_seen[i] = true;
    physical->prior[i][i] = pow(share / prior_spread, 2.0);
}

/* The size's share of a sample: `part` is what an effect is a share of, `row` the line's. */
static void add_effect(struct wg_physical *physical, double rows, double part, double target,
                       const double *row)
{
    struct wg_effect *size = wg__batch_effects_find(&physical->effects, rows);
    if (size == NULL)
        return;
    const double weight = part * physical->unit;
    size->weight += weight * part;
    size->target_sum += weight * target;
    for (size_t i = 0; i < physical->count; i++)
        size->row_sum[i] += weight * row[i];
}

/* Weighs by what the line says. A time far beyond that (the machine stood still) is weighed by half
 * of itself, so it pulls no more than any other. */
static void add_sample(struct wg_physical *physical, const struct wg_predictor_sample *sample)
{
    double row[WG_NNLS_MAX] = {0};
    double alone_s = 0.0, beside_s = 0.0;
    features_of(physical, &sample->point, row);
    for (size_t i = 0; i < physical->count; i++) {
        if (physical->features[i].is_beside)
            beside_s += row[i] * physical->fit.x[i];
        else
            alone_s += row[i] * physical->fit.x[i];
    }
    const double line_s = alone_s + beside_s;
    const double scale = 1.0 / (line_s > 0.5 * sample->time_s ? line_s : 0.5 * sample->time_s);
    const double target = sample->time_s * scale;
    for (size_t i = 0; i < physical->count; i++) {
        row[i] *= scale;
        if (row[i] > 0.0 && !physical->is_seen[i])
            begin_feature(physical, i, row[i]);
    }
    for (size_t i = 0; i < physical->count; i++) {
        const double weighted = row[i] * physical->unit;
        physical->moment[i] += weighted * target;
        for (size_t k = 0; k <= i; k++)
            physical->gram[i][k] += weighted * row[k];
    }
    add_effect(physical, sample->point.rows, alone_s > 0.0 ? alone_s * scale : 1.0, target, row);
}

/* The line's and the effects' solution of what was added. */
static void solve(struct wg_physical *physical)
{
    struct wg_nnls *fit = &physical->fit;
    const double noise = physical->noise < prior_noise ? physical->noise : prior_noise;
    const double pull = noise * physical->unit;
    const double shrink = physical->noise * physical->unit / (effect_spread * effect_spread);
    fit->count = physical->count;
    for (size_t i = 0; i < WG_NNLS_MAX; i++) {
        fit->moment[i] = physical->moment[i] + pull * physical->prior_moment[i];
        for (size_t k = 0; k < WG_NNLS_MAX; k++)
            fit->gram[i][k] = physical->gram[i][k] + pull * physical->prior[i][k];
    }
    wg__batch_effects_reduce(&physical->effects, shrink, fit);
    for (size_t i = 0; i < physical->count; i++) {
        if (!physical->is_seen[i])
            fit->gram[i][i] = 1.0; /* nothing pulls it away from 0 */
    }
    (void)wg__nnls_solve(fit); /* theta stays as it was where rounding leaves no solution */
    wg__batch_effects_solve(&physical->effects, shrink, fit->x);
    set_line(physical, shrink);
}

/* The inverse covariance of: theta_i = first_i (1 + own error + common error), both with
 * prior_spread. By Sherman and Morrison, D - D f f' D / (1 + f' D f) with D = 1 / first^2. */
static void set_prior(struct wg_physical *physical, const double *most)
{
    double own[WG_NNLS_MAX], pull[WG_NNLS_MAX];
    double common = 1.0;
    for (size_t i = 0; i < physical->count; i++) {
        const bool is_seen = physical->is_seen[i];
        const double spread =
            prior_spread * (is_seen ? fmax(physical->fit.x[i], unused_share / most[i]) : 1.0);
        own[i] = is_seen ? 1.0 / (spread * spread) : 0.0;
        pull[i] = own[i] * physical->fit.x[i];
        common += prior_spread * prior_spread * pull[i] * physical->fit.x[i];
    }
    for (size_t i = 0; i < physical->count; i++) {
        for (size_t k = 0; k < physical->count; k++) {
            const double shared = prior_spread * prior_spread * pull[i] * pull[k] / common;
            physical->prior[i][k] = (i == k ? own[i] : 0.0) - shared;
            physical->prior_moment[i] += physical->prior[i][k] * physical->fit.x[k];
        }
    }
}

/* The largest value of each feature, as a share of its sample's time; the first fit's ridge. */
static void survey(struct wg_physical *physical, const struct wg_predictor_sample *samples,
                   size_t count, double *most)
{
    for (size_t s = 0; s < count; s++) {
        double row[WG_NNLS_MAX];
        features_of(physical, &samples[s].point, row);
        for (size_t i = 0; i < physical->count; i++)
            most[i] = fmax(most[i], row[i] / samples[s].time_s);
    }
    for (size_t i = 0; i < physical->count; i++) {
        physical->is_seen[i] = most[i] > 0.0;
        physical->prior[i][i] = 1e-3 * most[i] * most[i];
    }
}

/* What was added counts for `factor` of it from now on. */
static void scale_sums(struct wg_physical *physical, double factor)
{
    const double nothing = 1e-100; /* before numbers become too small to be fast */
    for (size_t i = 0; i < physical->count; i++) {
        physical->moment[i] *= physical->moment[i] * factor > nothing ? factor : 0.0;
        for (size_t k = 0; k <= i; k++)
            physical->gram[i][k] *= physical->gram[i][k] * factor > nothing ? factor : 0.0;
    }
    wg__batch_effects_scale(&physical->effects, factor);
}

/* Instead of making all that is known lighter, what comes is made heavier. */
static void forget(struct wg_physical *physical)
{
    const double most = 1e60;
    physical->unit /= physical->forgetting;
    if (physical->unit < most)
        return;
    scale_sums(physical, 1.0 / physical->unit);
    physical->unit = 1.0;
}

void wg__physical_init(struct wg_physical *physical, const struct wg_predictor_setup *setup,
                       const struct wg_predictor_sample *samples, size_t count)
{
    enum { PASSES = 5 }; /* weights follow the fit */
    double most[WG_NNLS_MAX] = {0};
    *physical = (struct wg_physical){.forgetting = setup->forgetting,
                                     .unit = 1.0,
                                     .noise = first_noise,
                                     .slowness = {1.0, 1.0, 1.0}};
    choose_features(physical, setup);
    survey(physical, samples, count, most);
    for (int pass = 0; pass < PASSES; pass++) {
        memset(physical->gram, 0, sizeof physical->gram);
        memset(physical->moment, 0, sizeof physical->moment);
        wg__batch_effects_init(&physical->effects);
        for (size_t s = 0; s < count; s++)
            add_sample(physical, &samples[s]);
        solve(physical);
    }
    set_prior(physical, most);
    for (size_t i = 0; i < physical->effects.count; i++)
        physical->effects.sizes[i].first = physical->effects.sizes[i].effect;
    const double remembered = 1.0 / (1.0 - physical->forgetting);
    scale_sums(physical, fmin(1.0, samples_share * remembered / (double)count));
}

void wg__physical_tell(struct wg_physical *physical, const struct wg_predictor_sample *sample,
                       double predicted_s)
{
    const double half_s = 0.5 * sample->time_s;
    const double error =
        (sample->time_s - predicted_s) / (predicted_s > half_s ? predicted_s : half_s);
    const double most = 9.0 * physical->noise; /* one alone says little */
    const double square = error * error < most ? error * error : most;
    const double noise = physical->noise + noise_gain * (square - physical->noise);
    physical->noise = noise > least_noise ? noise : least_noise;
    forget(physical);
    add_sample(physical, sample);
    invert_clocks(&sample->point, physical->slowness);
    solve(physical);
}
