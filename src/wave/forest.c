/* SPDX-License-Identifier: MIT
 *
 * Asking a forest: features become border numbers once, then each tree is a few comparisons.
 *
 * Threads: pure, any thread.
 */
#include "wave/forest.h"

/* How many borders lie below `value`; a NaN lies above none. */
static uint8_t borders_below(const double *borders, size_t count, double value)
{
    size_t low = 0;
    while (count > 0) {
        size_t half = count / 2;
        if (value > borders[low + half]) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return (uint8_t)low;
}

double wg__forest_value(const struct wg_forest *forest, const float *features)
{
    uint8_t bins[WG_FOREST_FEATURES_MAX] = {0};
    for (size_t f = 0; f < forest->feature_count; f++)
        bins[f] = borders_below(forest->borders[f], forest->border_count[f], (double)features[f]);
    double sum = forest->bias;
    const size_t depth = forest->depth;
    for (size_t t = 0; t < forest->tree_count; t++) {
        const struct wg_forest_tree *tree = &forest->trees[t];
        unsigned leaf = 0;
        for (size_t level = 0; level < depth; level++)
            leaf |= (unsigned)(bins[tree->feature[level]] > tree->border[level]) << level;
        sum += tree->scale * tree->leaf[leaf];
    }
    return sum;
}
