/* SPDX-License-Identifier: MIT
 *
 * Growing a forest: gradient boosting of squared error with clipped pulls, and of the logistic
 * error of steps, by histograms.
 *
 * Rows are binned once, a column of bytes a feature. A level's question is the one whose two sides,
 * over all leaves so far together, explain most: the sum of G^2 / (W + smoothing), where G is the
 * sum of the pulls and W the sum of the weights of a side's rows (1 each, without steps). One
 * feature's histogram over all leaves (64 leaves x 64 bins) stays in the first-level cache, which
 * is what makes this quick. Leaves are rounded to whole multiples of the tree's scale at once, so
 * that later trees mend what rounding costs.
 *
 * Threads: one thread at a time.
 */
#include "wave/forest.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

enum { BINS = WG_FOREST_BORDERS_MAX + 1, LEAVES = 1 << WG_FOREST_DEPTH_MAX };

struct cell {
    float sum;
    float weight;
};

struct grower {
    const struct wg_forest_opts *opts;
    const struct wg_forest_data *data;
    size_t rows, features;
    uint8_t *bins;    /* [feature][row] */
    float *left;      /* what the trees so far leave over; target at first */
    float *pull;      /* where a row and its rises want to go */
    float *weight;    /* how firmly */
    float *rise;      /* true, to the next row; NULL: rises do not count */
    uint32_t *sample; /* rows that this tree's questions are chosen by, rising */
    size_t sample_count;
    uint8_t *leaf;          /* of each row, in the tree that grows */
    struct cell *histogram; /* [leaf][bin] of one feature */
    struct wg_rng rng;
};

static int compare_floats(const void *a, const void *b)
{
    const float first = *(const float *)a, second = *(const float *)b;
    return (first > second) - (first < second);
}

/* To five digits, which is how a forest is written down. */
static double rounded(double value)
{
    if (!(fabs(value) > 0.0))
        return 0.0;
    double unit = pow(10.0, floor(log10(fabs(value))) - 4.0);
    return unit < 1.0 ? round(value / unit) / round(1.0 / unit) : round(value / unit) * unit;
}

/* Borders of one feature: half way between neighbouring values, all of them where they are few,
 * else at even shares of the rows. `sorted` is scratch. */
static void place_borders(struct wg_forest *forest, size_t feature, float *sorted, size_t rows)
{
    qsort(sorted, rows, sizeof *sorted, compare_floats);
    size_t distinct = 1;
    for (size_t i = 1; i < rows; i++)
        distinct += sorted[i] > sorted[i - 1];
    double *borders = forest->borders[feature];
    size_t count = 0;
    double every = (double)rows / (WG_FOREST_BORDERS_MAX + 1), next = every;
    for (size_t i = 1; i < rows && count < WG_FOREST_BORDERS_MAX; i++) {
        if (!(sorted[i] > sorted[i - 1]))
            continue;
        if (distinct > WG_FOREST_BORDERS_MAX + 1 && (double)i < next)
            continue;
        double border = rounded(((double)sorted[i - 1] + (double)sorted[i]) / 2.0);
        if (count == 0 || border > borders[count - 1])
            borders[count++] = border;
        while (next <= (double)i)
            next += every;
    }
    forest->border_count[feature] = (uint8_t)count;
}

static void bin_rows(struct wg_forest *forest, struct grower *grower)
{
    const float *features = grower->data->features;
    float *column = grower->left; /* not in use yet */
    for (size_t f = 0; f < grower->features; f++) {
        for (size_t i = 0; i < grower->rows; i++)
            column[i] = features[i * grower->features + f];
        place_borders(forest, f, column, grower->rows);
        const double *borders = forest->borders[f];
        const size_t count = forest->border_count[f];
        uint8_t *bins = grower->bins + f * grower->rows;
        for (size_t i = 0; i < grower->rows; i++) {
            uint8_t bin = 0;
            while (bin < count && (double)features[i * grower->features + f] > borders[bin])
                bin++;
            bins[i] = bin;
        }
    }
}

/* The best border of one feature and what it explains. */
static double best_border(struct grower *grower, size_t feature, size_t border_count, size_t leaves,
                          size_t *border_out)
{
    memset(grower->histogram, 0, leaves * BINS * sizeof *grower->histogram);
    const uint8_t *bins = grower->bins + feature * grower->rows;
    for (size_t i = 0; i < grower->sample_count; i++) {
        uint32_t row = grower->sample[i];
        struct cell *cell = &grower->histogram[grower->leaf[row] * (size_t)BINS + bins[row]];
        cell->sum += grower->pull[row];
        cell->weight += grower->weight[row];
    }
    double gain[BINS] = {0.0};
    const double smoothing = grower->opts->smoothing;
    for (size_t leaf = 0; leaf < leaves; leaf++) {
        const struct cell *cells = grower->histogram + leaf * BINS;
        double total = 0.0, weight = 0.0, below = 0.0, weight_below = 0.0;
        for (size_t bin = 0; bin <= border_count; bin++) {
            total += (double)cells[bin].sum;
            weight += (double)cells[bin].weight;
        }
        for (size_t bin = 0; bin < border_count; bin++) {
            below += (double)cells[bin].sum;
            weight_below += (double)cells[bin].weight;
            double above = total - below;
            gain[bin] += below * below / (weight_below + smoothing) +
                         above * above / (weight - weight_below + smoothing);
        }
    }
    size_t best = 0;
    for (size_t bin = 1; bin < border_count; bin++)
        if (gain[bin] > gain[best])
            best = bin;
    *border_out = best;
    return gain[best];
}

/* One level's question; leaves get its answer as their bit `level`. */
static void grow_level(const struct wg_forest *forest, struct grower *grower, const bool *is_drawn,
                       size_t level, struct wg_forest_tree *tree)
{
    double best_gain = -1.0;
    for (size_t f = 0; f < grower->features; f++) {
        if (!is_drawn[f] || forest->border_count[f] == 0)
            continue;
        size_t border = 0;
        double gain = best_border(grower, f, forest->border_count[f], (size_t)1 << level, &border);
        if (gain > best_gain) {
            best_gain = gain;
            tree->feature[level] = (uint8_t)f;
            tree->border[level] = (uint8_t)border;
        }
    }
    if (best_gain < 0.0) /* nothing tells rows apart: all answer no */
        tree->border[level] = WG_FOREST_BORDERS_MAX;
    const uint8_t *bins = grower->bins + tree->feature[level] * grower->rows;
    for (size_t i = 0; i < grower->rows; i++)
        grower->leaf[i] |= (uint8_t)((bins[i] > tree->border[level]) << level);
}

/* Leaves' values from all rows, rounded; takes them off what is left over. */
static void fill_leaves(struct grower *grower, struct wg_forest_tree *tree)
{
    double sum[LEAVES] = {0.0}, weight[LEAVES] = {0.0}, largest = 0.0;
    for (size_t i = 0; i < grower->rows; i++) {
        sum[grower->leaf[i]] += (double)grower->pull[i];
        weight[grower->leaf[i]] += (double)grower->weight[i];
    }
    for (size_t leaf = 0; leaf < LEAVES; leaf++) {
        sum[leaf] *= grower->opts->rate / (weight[leaf] + grower->opts->smoothing);
        largest = fmax(largest, fabs(sum[leaf]));
    }
    tree->scale = rounded(largest / (double)WG_FOREST_LEAF_MAX);
    for (size_t leaf = 0; leaf < LEAVES; leaf++)
        tree->leaf[leaf] =
            tree->scale > 0.0
                ? (int8_t)lround(
                      fmax(-WG_FOREST_LEAF_MAX, fmin(WG_FOREST_LEAF_MAX, sum[leaf] / tree->scale)))
                : 0;
    for (size_t i = 0; i < grower->rows; i++)
        grower->left[i] -= (float)(tree->scale * tree->leaf[grower->leaf[i]]);
}

/* Both ends of the rise from row `from` to the next, by how wrong it is told: the gradient of the
 * logistic loss, and its curvature, in units in which a row's own error has curvature 1. */
static void pull_rise(struct grower *grower, uint32_t from)
{
    const struct wg_forest_opts *opts = grower->opts;
    const uint32_t to = grower->data->next[from];
    double rise = (double)grower->rise[from];
    double predicted = rise - ((double)grower->left[to] - (double)grower->left[from]);
    double told = 1.0 / (1.0 + exp((opts->step - predicted) / opts->step_width));
    double unit = 4.0 * opts->step_weight; /* a logistic curve is steepest by 1 / 4 */
    float pull = (float)(unit * opts->step_width * ((rise > opts->step ? 1.0 : 0.0) - told));
    float weight = (float)(unit * told * (1.0 - told));
    grower->pull[to] += pull;
    grower->pull[from] -= pull;
    grower->weight[to] += weight;
    grower->weight[from] += weight;
}

static void pull_rows(struct grower *grower)
{
    const float clip = (float)grower->opts->clip;
    for (size_t i = 0; i < grower->rows; i++) {
        grower->pull[i] = fminf(fmaxf(grower->left[i], -clip), clip);
        grower->weight[i] = 1.0F;
    }
    if (grower->rise == NULL)
        return;
    for (size_t i = 0; i < grower->rows; i++)
        if (grower->data->next[i] != WG_FOREST_NO_ROW)
            pull_rise(grower, (uint32_t)i);
}

static void grow_tree(const struct wg_forest *forest, struct grower *grower,
                      struct wg_forest_tree *tree)
{
    bool is_drawn[WG_FOREST_FEATURES_MAX] = {false};
    bool any = false;
    for (size_t f = 0; f < grower->features; f++) {
        is_drawn[f] = wg__rng_uniform(&grower->rng) < grower->opts->feature_share;
        any = any || is_drawn[f];
    }
    if (!any)
        is_drawn[0] = true;
    grower->sample_count = 0;
    pull_rows(grower);
    for (size_t i = 0; i < grower->rows; i++) {
        grower->leaf[i] = 0;
        if (wg__rng_uniform(&grower->rng) < grower->opts->row_share)
            grower->sample[grower->sample_count++] = (uint32_t)i;
    }
    *tree = (struct wg_forest_tree){.scale = 0.0};
    for (size_t level = 0; level < forest->depth; level++)
        grow_level(forest, grower, is_drawn, level, tree);
    fill_leaves(grower, tree);
}

static void grower_fini(struct grower *grower)
{
    wg__free(grower->bins);
    wg__free(grower->left);
    wg__free(grower->pull);
    wg__free(grower->weight);
    wg__free(grower->rise);
    wg__free(grower->sample);
    wg__free(grower->leaf);
    wg__free(grower->histogram);
}

static enum wg_code grower_init(struct grower *grower, const struct wg_forest_data *data,
                                const struct wg_forest_opts *opts, struct wg_error *err)
{
    const size_t rows = data->rows;
    const bool on_curves = opts->step_weight > 0.0 && data->next != NULL && data->base != NULL;
    *grower =
        (struct grower){.opts = opts, .data = data, .rows = rows, .features = data->feature_count};
    wg__rng_init(&grower->rng, opts->seed);
    grower->bins = wg__realloc_array(NULL, rows, data->feature_count);
    grower->left = wg__realloc_array(NULL, rows, sizeof *grower->left);
    grower->pull = wg__realloc_array(NULL, rows, sizeof *grower->pull);
    grower->weight = wg__realloc_array(NULL, rows, sizeof *grower->weight);
    grower->sample = wg__realloc_array(NULL, rows, sizeof *grower->sample);
    grower->leaf = wg__realloc_array(NULL, rows, sizeof *grower->leaf);
    grower->histogram = wg__realloc_array(NULL, (size_t)LEAVES * BINS, sizeof *grower->histogram);
    if (on_curves)
        grower->rise = wg__realloc_array(NULL, rows, sizeof *grower->rise);
    if (grower->bins == NULL || grower->left == NULL || grower->pull == NULL ||
        grower->weight == NULL || grower->sample == NULL || grower->leaf == NULL ||
        grower->histogram == NULL || (on_curves && grower->rise == NULL)) {
        grower_fini(grower);
        return wg__fail(err, WG_ENOMEM, "out of memory for a forest of %zu rows", rows);
    }
    return WG_OK;
}

static void start(struct grower *grower, double bias)
{
    const struct wg_forest_data *data = grower->data;
    for (size_t i = 0; i < data->rows; i++)
        grower->left[i] = (float)(data->target[i] - bias);
    for (size_t i = 0; grower->rise != NULL && i < data->rows; i++) {
        const uint32_t next = data->next[i];
        grower->rise[i] =
            next == WG_FOREST_NO_ROW
                ? 0.0F
                : (float)(data->base[next] + data->target[next] - data->base[i] - data->target[i]);
    }
}

enum wg_code wg__forest_fit(struct wg_forest *out, const struct wg_forest_data *data,
                            const struct wg_forest_opts *opts, struct wg_error *err)
{
    struct grower grower;
    enum wg_code code = grower_init(&grower, data, opts, err);
    if (code != WG_OK)
        return code;
    *out = (struct wg_forest){.feature_count = data->feature_count, .depth = opts->depth};
    bin_rows(out, &grower);
    double sum = 0.0;
    for (size_t i = 0; i < data->rows; i++)
        sum += data->target[i];
    out->bias = data->rows > 0 ? rounded(sum / (double)data->rows) : 0.0;
    start(&grower, out->bias);
    for (; out->tree_count < opts->trees; out->tree_count++)
        grow_tree(out, &grower, &out->trees[out->tree_count]);
    grower_fini(&grower);
    return WG_OK;
}
