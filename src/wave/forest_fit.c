/* SPDX-License-Identifier: MIT
 *
 * Growing a forest: gradient boosting of squared error with clipped pulls, by histograms.
 *
 * Rows are binned once, a column of bytes a feature. A level's question is the one whose two sides,
 * over all leaves so far together, explain most: the sum of G^2 / (N + smoothing), where G is the
 * sum of what is left over and N the number of rows of a side. One feature's histogram over all
 * leaves (64 leaves x 64 bins) stays in the first-level cache, which is what makes this quick.
 * Leaves are rounded to whole multiples of the tree's scale at once, so that later trees mend what
 * rounding costs.
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
    float count;
};

struct grower {
    const struct wg_forest_opts *opts;
    size_t rows, features;
    uint8_t *bins;    /* [feature][row] */
    float *left;      /* what the trees so far leave over; target at first */
    float *pull;      /* the same, clipped */
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

static void bin_rows(struct wg_forest *forest, struct grower *grower, const float *features)
{
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
        cell->count += 1.0F;
    }
    double gain[BINS] = {0.0};
    const double smoothing = grower->opts->smoothing;
    for (size_t leaf = 0; leaf < leaves; leaf++) {
        const struct cell *cells = grower->histogram + leaf * BINS;
        double total = 0.0, rows = 0.0, below = 0.0, rows_below = 0.0;
        for (size_t bin = 0; bin <= border_count; bin++) {
            total += (double)cells[bin].sum;
            rows += (double)cells[bin].count;
        }
        for (size_t bin = 0; bin < border_count; bin++) {
            below += (double)cells[bin].sum;
            rows_below += (double)cells[bin].count;
            double above = total - below;
            gain[bin] += below * below / (rows_below + smoothing) +
                         above * above / (rows - rows_below + smoothing);
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
    double sum[LEAVES] = {0.0}, rows[LEAVES] = {0.0}, largest = 0.0;
    for (size_t i = 0; i < grower->rows; i++) {
        sum[grower->leaf[i]] += (double)grower->pull[i];
        rows[grower->leaf[i]] += 1.0;
    }
    for (size_t leaf = 0; leaf < LEAVES; leaf++) {
        sum[leaf] *= grower->opts->rate / (rows[leaf] + grower->opts->smoothing);
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

static void grow_tree(const struct wg_forest *forest, struct grower *grower,
                      struct wg_forest_tree *tree)
{
    const float clip = (float)grower->opts->clip;
    bool is_drawn[WG_FOREST_FEATURES_MAX] = {false};
    bool any = false;
    for (size_t f = 0; f < grower->features; f++) {
        is_drawn[f] = wg__rng_uniform(&grower->rng) < grower->opts->feature_share;
        any = any || is_drawn[f];
    }
    if (!any)
        is_drawn[0] = true;
    grower->sample_count = 0;
    for (size_t i = 0; i < grower->rows; i++) {
        grower->pull[i] = fminf(fmaxf(grower->left[i], -clip), clip);
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
    wg__free(grower->sample);
    wg__free(grower->leaf);
    wg__free(grower->histogram);
}

static enum wg_code grower_init(struct grower *grower, size_t rows, size_t features,
                                const struct wg_forest_opts *opts, struct wg_error *err)
{
    *grower = (struct grower){.opts = opts, .rows = rows, .features = features};
    wg__rng_init(&grower->rng, opts->seed);
    grower->bins = wg__realloc_array(NULL, rows, features);
    grower->left = wg__realloc_array(NULL, rows, sizeof *grower->left);
    grower->pull = wg__realloc_array(NULL, rows, sizeof *grower->pull);
    grower->sample = wg__realloc_array(NULL, rows, sizeof *grower->sample);
    grower->leaf = wg__realloc_array(NULL, rows, sizeof *grower->leaf);
    grower->histogram = wg__realloc_array(NULL, (size_t)LEAVES * BINS, sizeof *grower->histogram);
    if (grower->bins == NULL || grower->left == NULL || grower->pull == NULL ||
        grower->sample == NULL || grower->leaf == NULL || grower->histogram == NULL) {
        grower_fini(grower);
        return wg__fail(err, WG_ENOMEM, "out of memory for a forest of %zu rows", rows);
    }
    return WG_OK;
}

enum wg_code wg__forest_fit(struct wg_forest *out, const float *features, size_t feature_count,
                            const double *target, size_t rows, const struct wg_forest_opts *opts,
                            struct wg_error *err)
{
    struct grower grower;
    enum wg_code code = grower_init(&grower, rows, feature_count, opts, err);
    if (code != WG_OK)
        return code;
    *out = (struct wg_forest){.feature_count = feature_count, .depth = opts->depth};
    bin_rows(out, &grower, features);
    double sum = 0.0;
    for (size_t i = 0; i < rows; i++)
        sum += target[i];
    out->bias = rows > 0 ? rounded(sum / (double)rows) : 0.0;
    for (size_t i = 0; i < rows; i++)
        grower.left[i] = (float)(target[i] - out->bias);
    for (; out->tree_count < opts->trees; out->tree_count++)
        grow_tree(out, &grower, &out->trees[out->tree_count]);
    grower_fini(&grower);
    return WG_OK;
}
