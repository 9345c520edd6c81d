/* SPDX-License-Identifier: MIT
 *
 * Asking a forest: each feature sets the bits of the questions that it answers with yes; then each
 * tree has its leaf.
 *
 * The sum runs over the trees in their order, so that a value is the same to the last bit however
 * the questions are sorted.
 *
 * Threads: pure, any thread.
 */
#include "wave/forest.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

enum { BORDERS = WG_FOREST_BORDERS_MAX + 1 };

/* The largest float that is no larger: the same floats lie above it. */
static float rounded_down(double value)
{
    const float near = (float)value;
    return (double)near > value ? nextafterf(near, -INFINITY) : near;
}

/* Sorts questions by feature, and those of a feature by border. A question at the last border has
 * no yes and is left out. */
static void sort_questions(struct wg_forest_index *index, const struct wg_forest *forest)
{
    uint16_t(*end)[BORDERS] = index->question_end;
    for (size_t t = 0; t < forest->tree_count; t++)
        for (size_t level = 0; level < forest->depth; level++) {
            const struct wg_forest_tree *tree = &forest->trees[t];
            if (tree->border[level] < WG_FOREST_BORDERS_MAX)
                end[tree->feature[level]][tree->border[level] + 1]++;
        }
    uint16_t count = 0; /* counts become where a feature and border begin */
    for (size_t f = 0; f < forest->feature_count; f++)
        for (size_t border = 0; border < BORDERS; border++) {
            const uint16_t more = end[f][border];
            end[f][border] = count;
            count = (uint16_t)(count + more);
        }
    for (size_t t = 0; t < forest->tree_count; t++)
        for (size_t level = 0; level < forest->depth; level++) {
            const struct wg_forest_tree *tree = &forest->trees[t];
            if (tree->border[level] >= WG_FOREST_BORDERS_MAX)
                continue;
            uint16_t *at = &end[tree->feature[level]][tree->border[level] + 1];
            index->questions[*at].tree = (uint16_t)t;
            index->questions[(*at)++].bit = (uint16_t)(1U << level);
        }
}

enum wg_code wg__forest_index_new(struct wg_forest_index **out, const struct wg_forest *forest,
                                  struct wg_error *err)
{
    *out = NULL;
    if (forest == NULL)
        return WG_OK;
    struct wg_forest_index *index = wg__alloc_zeroed(1, sizeof *index);
    if (index == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for a forest of %zu trees",
                        forest->tree_count);
    index->feature_count = forest->feature_count;
    index->tree_count = forest->tree_count;
    index->bias = forest->bias;
    for (size_t f = 0; f < forest->feature_count; f++)
        for (size_t border = 0; border < BORDERS; border++)
            index->borders[f][border] = border < forest->border_count[f]
                                            ? rounded_down(forest->borders[f][border])
                                            : INFINITY;
    sort_questions(index, forest);
    for (size_t t = 0; t < forest->tree_count; t++) {
        index->scale[t] = forest->trees[t].scale;
        memcpy(index->leaf[t], forest->trees[t].leaf, sizeof index->leaf[t]);
    }
    *out = index;
    return WG_OK;
}

/* How many borders lie below `value`. No branch: which way it goes is a toss-up. */
static size_t borders_below(const float borders[static BORDERS], float value)
{
    size_t low = 0;
    for (size_t half = BORDERS / 2; half > 0; half /= 2)
        low += value > borders[low + half - 1] ? half : 0;
    return low;
}

double wg__forest_value(const struct wg_forest_index *index, const float *features)
{
    uint8_t leaves[WG_FOREST_TREES_MAX];
    memset(leaves, 0, index->tree_count);
    for (size_t f = 0; f < index->feature_count; f++) {
        const size_t below = borders_below(index->borders[f], features[f]);
        const size_t end = index->question_end[f][below];
        for (size_t q = index->question_end[f][0]; q < end; q++)
            leaves[index->questions[q].tree] |= (uint8_t)index->questions[q].bit;
    }
    double sum = index->bias;
    for (size_t t = 0; t < index->tree_count; t++)
        sum += index->scale[t] * index->leaf[t][leaves[t]];
    return sum;
}
