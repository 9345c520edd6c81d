/* SPDX-License-Identifier: MIT
 *
 * Growing a tree of kernel choices, best split first.
 *
 * The leaf whose best split lowers Gini impurity most, weighed by its samples, is split next, until
 * there are as many leaves as allowed or no split helps. A leaf keeps every option that at least
 * 15 % of its samples took. All ties fall to the lower index, so a tree repeats.
 *
 * Threads: pure, any thread.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wave/choice_tree.h"

enum { LEAST_SAMPLES = 5 };
static const double KEPT_SHARE = 0.15;
static const double LEAST_GAIN = 1.0; /* samples' worth of impurity */

struct split {
    double gain; /* 0: none */
    double threshold;
    unsigned feature;
    size_t below; /* samples on the lower side */
};

struct leaf {
    size_t first, count; /* samples */
    unsigned node;
    struct split split;
};

struct grower {
    struct wg_tree_sample *samples;
    struct wg_tree_sample *sorted; /* scratch of as many */
    struct leaf leaves[WG_TREE_LEAVES_MAX];
    size_t leaf_count;
};

/* count * Gini impurity. */
static double impurity(const double counts[static WG_CHOICES_MAX], double total)
{
    double squares = 0.0;
    for (size_t i = 0; i < WG_CHOICES_MAX; i++)
        squares += counts[i] * counts[i];
    return total > 0.0 ? total - squares / total : 0.0;
}

static int compare_at(const void *a, const void *b, void *feature)
{
    double first = ((const struct wg_tree_sample *)a)->features[*(const unsigned *)feature];
    double second = ((const struct wg_tree_sample *)b)->features[*(const unsigned *)feature];
    return (first > second) - (first < second);
}

static void sort_by(struct wg_tree_sample *samples, size_t count, unsigned feature)
{
    qsort_r(samples, count, sizeof *samples, compare_at, &feature);
}

/* Tries all thresholds of one feature; sums of squares are kept up to date sample by sample. */
static void try_feature(const struct wg_tree_sample *sorted, size_t count, unsigned feature,
                        const double totals[static WG_CHOICES_MAX], double whole,
                        struct split *best)
{
    double low[WG_CHOICES_MAX] = {0}, low_squares = 0.0, high_squares = 0.0;
    for (size_t i = 0; i < WG_CHOICES_MAX; i++)
        high_squares += totals[i] * totals[i];
    for (size_t i = 0; i + 1 < count; i++) {
        unsigned option = sorted[i].option;
        double high = totals[option] - low[option];
        low_squares += 2.0 * low[option] + 1.0;
        high_squares -= 2.0 * high - 1.0;
        low[option] += 1.0;
        double here = sorted[i].features[feature], next = sorted[i + 1].features[feature];
        if (!(here < next) || i + 1 < LEAST_SAMPLES || count - i - 1 < LEAST_SAMPLES)
            continue;
        double below = (double)(i + 1), above = (double)(count - i - 1);
        double gain = whole - (below - low_squares / below) - (above - high_squares / above);
        if (gain > best->gain)
            *best = (struct split){gain, 0.5 * (here + next), feature, i + 1};
    }
}

static void find_split(struct grower *grower, struct leaf *leaf)
{
    const struct wg_tree_sample *samples = grower->samples + leaf->first;
    double totals[WG_CHOICES_MAX] = {0};
    for (size_t i = 0; i < leaf->count; i++)
        totals[samples[i].option] += 1.0;
    double whole = impurity(totals, (double)leaf->count);
    leaf->split = (struct split){.gain = LEAST_GAIN};
    if (whole > LEAST_GAIN) {
        memcpy(grower->sorted, samples, leaf->count * sizeof *samples);
        for (unsigned feature = 0; feature < WG_TREE_FEATURES; feature++) {
            sort_by(grower->sorted, leaf->count, feature);
            try_feature(grower->sorted, leaf->count, feature, totals, whole, &leaf->split);
        }
    }
    if (leaf->split.below == 0)
        leaf->split.gain = 0.0;
}

static struct leaf *best_leaf(struct grower *grower)
{
    struct leaf *best = &grower->leaves[0];
    for (size_t i = 1; i < grower->leaf_count; i++)
        if (grower->leaves[i].split.gain > best->split.gain)
            best = &grower->leaves[i];
    return best->split.gain > 0.0 ? best : NULL;
}

static void split_leaf(struct grower *grower, struct leaf *leaf, struct wg_kernel_params *params)
{
    struct split split = leaf->split;
    sort_by(grower->samples + leaf->first, leaf->count, split.feature);
    unsigned below = (unsigned)params->node_count;
    params->node_count += 2;
    params->nodes[leaf->node] = (struct wg_tree_node){
        .threshold = split.threshold, .feature = split.feature, .below = below};
    struct leaf *above = &grower->leaves[grower->leaf_count++];
    *above = (struct leaf){
        .first = leaf->first + split.below, .count = leaf->count - split.below, .node = below + 1};
    leaf->count = split.below;
    leaf->node = below;
    find_split(grower, leaf);
    find_split(grower, above);
}

static uint64_t kept_options(const struct grower *grower, const struct leaf *leaf)
{
    double counts[WG_CHOICES_MAX] = {0}, most = 0.0;
    for (size_t i = 0; i < leaf->count; i++)
        counts[grower->samples[leaf->first + i].option] += 1.0;
    for (size_t i = 0; i < WG_CHOICES_MAX; i++)
        most = fmax(most, counts[i]);
    uint64_t options = 0;
    double least = fmin(most, KEPT_SHARE * (double)leaf->count);
    for (size_t i = 0; i < WG_CHOICES_MAX; i++)
        if (counts[i] > 0.0 && counts[i] >= least)
            options |= UINT64_C(1) << i;
    return options;
}

enum wg_code wg__choice_tree_grow(struct wg_kernel_params *params, struct wg_tree_sample *samples,
                                  size_t count, struct wg_error *err)
{
    params->node_count = 0;
    if (count == 0)
        return WG_OK;
    struct grower *grower = wg__alloc_zeroed(1, sizeof *grower);
    struct wg_tree_sample *sorted = wg__realloc_array(NULL, count, sizeof *sorted);
    if (grower == NULL || sorted == NULL) {
        wg__free(grower);
        wg__free(sorted);
        return wg__fail(err, WG_ENOMEM, "out of memory for a tree over %zu kernel choices", count);
    }
    grower->samples = samples;
    grower->sorted = sorted;
    grower->leaves[grower->leaf_count++] = (struct leaf){.count = count};
    params->node_count = 1;
    find_split(grower, &grower->leaves[0]);
    for (struct leaf *leaf = best_leaf(grower);
         leaf != NULL && grower->leaf_count < WG_TREE_LEAVES_MAX; leaf = best_leaf(grower))
        split_leaf(grower, leaf, params);
    for (size_t i = 0; i < grower->leaf_count; i++)
        params->nodes[grower->leaves[i].node] =
            (struct wg_tree_node){.options = kept_options(grower, &grower->leaves[i])};
    wg__free(sorted);
    wg__free(grower);
    return WG_OK;
}
