/* SPDX-License-Identifier: MIT
 *
 * Boosted oblivious trees: a regression that is quick to ask, small to write down, and finds steps.
 *
 * What the wave formula gets wrong, it gets wrong in steps: a library takes another kernel, and the
 * time jumps. Smooth regressions blur that; trees do not. A tree here is oblivious: all nodes of
 * one level ask the same question (is feature f above its border b?), so a tree of depth 6 is six
 * questions and a table of 64 answers, and asking it takes no branch. Each tree is fitted to what
 * the ones before it left over (Friedman, "Greedy function approximation", 2001; oblivious trees:
 * Prokhorenkova et al., "CatBoost", 2018). Features need no scaling: only their order counts.
 *
 *     value(x) = bias + sum over trees t of scale[t] * leaf[t][bits of the questions]
 *
 * Rows may lie on curves, whose steps matter more than their height. Squared errors alone shrink
 * steps towards the mean: where half of the shapes jump, all are told to climb half as high. So the
 * rise from a row to the next is judged, too, by logistic regression: is it above `step`?
 *
 * A curve asks thousands of times, and a tree that looks up its own questions waits for memory at
 * each. Turned round (the idea of QuickScorer, Lucchese et al., 2015), a feature runs through the
 * questions that it answers with yes, sorted by border, and sets their bits.
 *
 * The same rows, in the same order, give the same forest.
 *
 * Owns: a forest is one block of the caller's; no pointers in it.    Threads: asking: any.
 */
#ifndef WG_WAVE_FOREST_H
#define WG_WAVE_FOREST_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    WG_FOREST_FEATURES_MAX = 64,
    WG_FOREST_BORDERS_MAX = 63,
    WG_FOREST_DEPTH_MAX = 7,
    WG_FOREST_TREES_MAX = 512,
    WG_FOREST_LEAF_MAX = 45 /* leaves are whole numbers -45 .. 45, times the tree's scale */
};

struct wg_forest_tree {
    double scale;
    uint8_t feature[WG_FOREST_DEPTH_MAX]; /* question of level l: is this feature's */
    uint8_t border[WG_FOREST_DEPTH_MAX];  /* value above borders[feature][border]? bit l */
    int8_t leaf[1 << WG_FOREST_DEPTH_MAX];
};

struct wg_forest {
    size_t feature_count, depth, tree_count;
    double bias;
    uint8_t border_count[WG_FOREST_FEATURES_MAX];
    double borders[WG_FOREST_FEATURES_MAX][WG_FOREST_BORDERS_MAX]; /* rising */
    struct wg_forest_tree trees[WG_FOREST_TREES_MAX];
};

/* A forest turned round for asking: not which features a tree asks for, but which trees' questions
 * a feature answers with yes. Made of a forest, which may go. */
struct wg_forest_index {
    size_t feature_count, tree_count;
    double bias;
    /* Rising, each rounded down to a float, for floats are asked for; then infinity. */
    float borders[WG_FOREST_FEATURES_MAX][WG_FOREST_BORDERS_MAX + 1];
    /* A feature above so many borders answers questions from [f][0] to before [f][borders]. */
    uint16_t question_end[WG_FOREST_FEATURES_MAX][WG_FOREST_BORDERS_MAX + 1];
    struct {
        uint16_t tree;
        uint16_t bit; /* of the number of its leaf */
    } questions[WG_FOREST_TREES_MAX * WG_FOREST_DEPTH_MAX];
    double scale[WG_FOREST_TREES_MAX];
    int8_t leaf[WG_FOREST_TREES_MAX][1 << WG_FOREST_DEPTH_MAX];
};

struct wg_forest_opts {
    size_t trees, depth; /* 1 .. TREES_MAX, 1 .. DEPTH_MAX */
    double rate;         /* share of what a tree finds that is taken; (0, 1] */
    double smoothing;    /* rows of value 0 that each leaf is thought to hold besides its own */
    double row_share;    /* of rows that a tree's questions are chosen by; (0, 1] */
    double feature_share;
    double clip;             /* a row pulls no harder than if it were off by this much */
    double step, step_width; /* a rise above `step` is one to be told; width: how sharply */
    double step_weight;      /* of telling it right, beside a row's own error; 0: rows only */
    uint64_t seed;
};

/* What a forest learns from. Not kept. */
struct wg_forest_data {
    const float *features; /* `rows` times `feature_count`, row by row */
    size_t feature_count, rows;
    const double *target; /* one a row */
    const double *base;   /* one a row: what the value is added to; NULL: no curves */
    const uint32_t *next; /* one a row: the row that follows on its curve, WG_FOREST_NO_ROW: none;
                           * NULL: no curves */
};

#define WG_FOREST_NO_ROW UINT32_MAX

/* WG_ENOMEM. */
enum wg_code wg__forest_fit(struct wg_forest *out, const struct wg_forest_data *data,
                            const struct wg_forest_opts *opts, struct wg_error *err);
/* `*out` is the caller's, to be freed; NULL for no forest. WG_ENOMEM. */
enum wg_code wg__forest_index_new(struct wg_forest_index **out, const struct wg_forest *forest,
                                  struct wg_error *err);
/* `features`: as many as the forest has. A NaN lies above no border. */
double wg__forest_value(const struct wg_forest_index *index, const float *features);

#endif
