/* SPDX-License-Identifier: MIT
 *
 * Tests of wave/forest.h and wave/forest_json.h.
 */
#include "wave/forest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "support/check.h"
#include "wave/forest_json.h"

enum { ROWS = 3000, FEATURES = 3 };

static const struct wg_forest_opts opts = {.trees = 120,
                                           .depth = 4,
                                           .rate = 0.2,
                                           .smoothing = 1.0,
                                           .row_share = 0.7,
                                           .feature_share = 0.8,
                                           .clip = 10.0,
                                           .seed = 3};

/* A staircase in x0, crossed with a threshold of x1; x2 says nothing. */
static double truth(const float *x)
{
    return floor((double)x[0] / 8.0) * 0.1 + (x[1] > 0.5F ? 1.0 : 0.0);
}

static void make_rows(float *features, double *target, uint64_t seed)
{
    struct wg_rng rng;
    wg__rng_init(&rng, seed);
    for (size_t i = 0; i < ROWS; i++) {
        float *x = features + i * FEATURES;
        x[0] = (float)(64.0 * wg__rng_uniform(&rng));
        x[1] = (float)wg__rng_uniform(&rng);
        x[2] = (float)wg__rng_uniform(&rng);
        target[i] = truth(x);
    }
}

static float features[ROWS * FEATURES];
static double target[ROWS];
static struct wg_forest forest;

static enum wg_code fit(struct wg_forest *out, size_t feature_count, size_t rows,
                        const struct wg_forest_opts *how, struct wg_error *err)
{
    const struct wg_forest_data data = {
        .features = features, .feature_count = feature_count, .rows = rows, .target = target};
    return wg__forest_fit(out, &data, how, err);
}

/* Asked by walking each tree, as the header has it. */
static double walked(const struct wg_forest *of, const float *x)
{
    double sum = of->bias;
    for (size_t t = 0; t < of->tree_count; t++) {
        unsigned leaf = 0;
        for (size_t level = 0; level < of->depth; level++) {
            const size_t f = of->trees[t].feature[level], border = of->trees[t].border[level];
            if (border < of->border_count[f] && (double)x[f] > of->borders[f][border])
                leaf |= 1U << level;
        }
        sum += of->trees[t].scale * of->trees[t].leaf[leaf];
    }
    return sum;
}

static struct wg_forest_index *index_of(const struct wg_forest *of)
{
    struct wg_forest_index *index = NULL;
    assert_int_equal(wg__forest_index_new(&index, of, NULL), WG_OK);
    assert_non_null(index);
    return index;
}

static double value_of(const struct wg_forest *of, const float *x)
{
    struct wg_forest_index *index = index_of(of);
    double value = wg__forest_value(index, x);
    wg__free(index);
    return value;
}

static void check_same(const struct wg_forest *of, const struct wg_forest_index *index,
                       const float *x)
{
    double fast = wg__forest_value(index, x), slow = walked(of, x);
    assert_memory_equal(&fast, &slow, sizeof fast);
}

static void makes_up(struct wg_forest *out, struct wg_rng *rng)
{
    *out = (struct wg_forest){.feature_count = WG_FOREST_FEATURES_MAX,
                              .depth = 1 + wg__rng_below(rng, WG_FOREST_DEPTH_MAX),
                              .tree_count = wg__rng_below(rng, WG_FOREST_TREES_MAX + 1),
                              .bias = wg__rng_uniform(rng)};
    for (size_t f = 0; f < out->feature_count; f++) {
        const double from = ldexp(1.0, (int)wg__rng_below(rng, 60) - 30);
        out->border_count[f] = (uint8_t)wg__rng_below(rng, WG_FOREST_BORDERS_MAX + 1);
        for (size_t i = 0; i < out->border_count[f]; i++) /* some closer than floats are */
            out->borders[f][i] = from * (1.0 + (double)i * (f % 2 == 0 ? 1e-9 : 0.1));
    }
    for (size_t t = 0; t < out->tree_count; t++) {
        out->trees[t].scale = wg__rng_uniform(rng);
        for (size_t level = 0; level < out->depth; level++) {
            out->trees[t].feature[level] = (uint8_t)wg__rng_below(rng, WG_FOREST_FEATURES_MAX);
            out->trees[t].border[level] = (uint8_t)wg__rng_below(rng, WG_FOREST_BORDERS_MAX + 1);
        }
        for (size_t leaf = 0; leaf < (size_t)1 << out->depth; leaf++)
            out->trees[t].leaf[leaf] = (int8_t)((int)wg__rng_below(rng, 91) - WG_FOREST_LEAF_MAX);
    }
}

static void says_the_same_to_the_last_bit_as_walking_each_tree(void **state)
{
    (void)state;
    static const float odd[] = {0.0F, -0.0F, NAN, INFINITY, -INFINITY, 1e38F, -1e38F, 1e-40F};
    struct wg_rng rng;
    wg__rng_init(&rng, 11);
    for (size_t round = 0; round < 40; round++) {
        float x[WG_FOREST_FEATURES_MAX];
        makes_up(&forest, &rng);
        struct wg_forest_index *index = index_of(&forest);
        for (size_t ask = 0; ask < 50; ask++) {
            for (size_t f = 0; f < WG_FOREST_FEATURES_MAX; f++) {
                const size_t count = forest.border_count[f];
                if (count == 0 || wg__rng_below(&rng, 8) == 0) {
                    x[f] = odd[wg__rng_below(&rng, sizeof odd / sizeof *odd)];
                    continue;
                }
                const float at = (float)forest.borders[f][wg__rng_below(&rng, (uint32_t)count)];
                const float beside[] = {at, nextafterf(at, INFINITY), nextafterf(at, -INFINITY)};
                x[f] = beside[wg__rng_below(&rng, 3)];
            }
            check_same(&forest, index, x);
        }
        wg__free(index);
    }
}

static void learns_steps_of_rows_that_it_did_not_see(void **state)
{
    (void)state;
    make_rows(features, target, 1);
    assert_int_equal(fit(&forest, FEATURES, ROWS, &opts, NULL), WG_OK);
    make_rows(features, target, 2);
    double worst = 0.0, sum = 0.0;
    struct wg_forest_index *index = index_of(&forest);
    for (size_t i = 0; i < ROWS; i++) {
        double wrong = fabs(wg__forest_value(index, features + i * FEATURES) - target[i]);
        worst = fmax(worst, wrong);
        sum += wrong;
    }
    wg__free(index);
    assert_true(sum / (double)ROWS < 0.02); /* steps are 0.1 and 1 high */
    assert_true(worst < 1.1);
}

static void gives_the_same_forest_of_the_same_rows(void **state)
{
    (void)state;
    static struct wg_forest again;
    make_rows(features, target, 1);
    assert_int_equal(fit(&forest, FEATURES, ROWS, &opts, NULL), WG_OK);
    assert_int_equal(fit(&again, FEATURES, ROWS, &opts, NULL), WG_OK);
    assert_memory_equal(&forest, &again, sizeof forest);
}

static void says_the_mean_where_nothing_tells_rows_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        features[i] = 7.0F;
        target[i] = i % 2 == 0 ? 1.0 : 2.0;
    }
    assert_int_equal(fit(&forest, 1, ROWS, &opts, NULL), WG_OK);
    const float far[] = {7.0F, -1e30F, 1e30F, NAN};
    for (size_t i = 0; i < 4; i++)
        check_close(value_of(&forest, &far[i]), 1.5, 1e-6);
}

static void pulls_of_outliers_are_clipped(void **state)
{
    (void)state;
    struct wg_forest_opts clipped = opts;
    for (size_t i = 0; i < ROWS; i++) {
        features[i] = (float)(i % 10);
        target[i] = i == 0 ? 1e6 : 0.0;
    }
    clipped.clip = 0.5;
    clipped.trees = 1;
    assert_int_equal(fit(&forest, 1, ROWS, &clipped, NULL), WG_OK);
    for (size_t leaf = 0; leaf < (size_t)1 << clipped.depth; leaf++)
        assert_true(forest.trees[0].scale * abs(forest.trees[0].leaf[leaf]) <= 0.5);
}

static void read_text(const char *text, size_t feature_count, struct wg_forest *out,
                      enum wg_code expected, const char *field)
{
    char found[48];
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    enum wg_code code = wg__forest_read(json, feature_count, out, found, sizeof found);
    json_decref(json);
    assert_int_equal(code, expected);
    if (code != WG_OK)
        assert_string_equal(found, field);
}

/* Rows 2i, 2i + 1 are curves that differ in x alone; `share` of them rise by `height`, the others
 * don't. */
static double rise_told(double share, double height, double step_weight)
{
    static double base[ROWS];
    static uint32_t next[ROWS];
    struct wg_forest_opts how = opts;
    how.step = 0.1;
    how.step_width = 0.02;
    how.step_weight = step_weight;
    for (size_t i = 0; i < ROWS; i += 2) {
        const bool rises = (double)(i % 20) < 20.0 * share;
        features[i] = 0.0F;
        features[i + 1] = 1.0F;
        base[i] = (double)(i % 7); /* how high a curve lies is not asked */
        base[i + 1] = base[i] + 0.05;
        target[i] = 0.0;
        target[i + 1] = rises ? height - 0.05 : -0.05;
        next[i] = (uint32_t)(i + 1);
        next[i + 1] = WG_FOREST_NO_ROW;
    }
    const struct wg_forest_data data = {.features = features,
                                        .feature_count = 1,
                                        .rows = ROWS,
                                        .target = target,
                                        .base = base,
                                        .next = next};
    assert_int_equal(wg__forest_fit(&forest, &data, &how, NULL), WG_OK);
    const float from = 0.0F, to = 1.0F;
    return 0.05 + value_of(&forest, &to) - value_of(&forest, &from);
}

static void tells_a_step_where_most_curves_have_one(void **state)
{
    (void)state;
    /* Squares tell the mean, logistic regression step + width * log(share / (1 - share)). */
    check_close(rise_told(0.3, 0.6, 0.0), 0.3 * 0.6, 0.01);
    check_close(rise_told(0.3, 0.6, 1000.0), 0.1 + 0.02 * log(0.3 / 0.7), 0.005);
    check_close(rise_told(0.8, 0.11, 0.0), 0.8 * 0.11, 0.01);
    check_close(rise_told(0.8, 0.11, 1000.0), 0.1 + 0.02 * log(0.8 / 0.2), 0.005);
    /* Together they lie between. */
    const double both = rise_told(0.3, 0.6, 4.0);
    assert_true(both > 0.09 && both < 0.17);
}

static void reads_back_what_it_writes(void **state)
{
    (void)state;
    static struct wg_forest back;
    struct wg_buffer text;
    struct wg_json json;
    make_rows(features, target, 1);
    assert_int_equal(fit(&forest, FEATURES, ROWS, &opts, NULL), WG_OK);
    wg__buffer_init(&text);
    wg__json_init(&json, &text);
    wg__forest_write(&json, &forest);
    assert_false(text.failed);
    read_text(text.data, FEATURES, &back, WG_OK, NULL);
    for (size_t i = 0; i < ROWS; i++)
        check_close(walked(&back, features + i * FEATURES),
                    walked(&forest, features + i * FEATURES), 1e-12);
    wg__buffer_fini(&text);
}

static void refuses_what_no_forest_is(void **state)
{
    (void)state;
    static const struct {
        const char *text, *field;
    } cases[] = {
        {"{}", "correction.depth"},
        {"{\"depth\":8}", "correction.depth"},
        {"{\"depth\":1}", "correction.bias"},
        {"{\"depth\":1,\"bias\":11}", "correction.bias"},
        {"{\"depth\":1,\"bias\":0,\"borders\":[]}", "correction.borders"},
        {"{\"depth\":1,\"bias\":0,\"borders\":[1]}", "correction.borders[0]"},
        {"{\"depth\":1,\"bias\":0,\"borders\":[[2,1]]}", "correction.borders[0]"},
        {"{\"depth\":1,\"bias\":0,\"borders\":[[1]],\"trees\":3}", "correction.trees"},
        {"{\"depth\":1,\"bias\":0,\"borders\":[[1]],\"trees\":[[2,\"##\",\"##\"]]}",
         "correction.trees[0]"},
        {"{\"depth\":1,\"bias\":0,\"borders\":[[1]],\"trees\":[[1,\"##\",\"#\"]]}",
         "correction.trees[0]"},
        {"{\"depth\":1,\"bias\":0,\"borders\":[[1]],\"trees\":[[1,\"$#\",\"##\"]]}",
         "correction.trees[0]"},
        {"{\"depth\":1,\"bias\":0,\"borders\":[[1]],\"trees\":[[1,\"#~\",\"##\"]]}",
         "correction.trees[0]"},
        {"{\"depth\":1,\"bias\":0,\"borders\":[[1]],\"trees\":[[1,\"##\",\"# \"]]}",
         "correction.trees[0]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        read_text(cases[i].text, 1, &forest, WG_EDATA, cases[i].field);
    read_text("{\"depth\":1,\"bias\":0.5,\"borders\":[[1]],\"trees\":[[0.1,\"##\",\"#~\"]]}", 1,
              &forest, WG_OK, NULL);
    const float below = 1.0F, above = 1.5F;
    check_close(value_of(&forest, &below), 0.5 - 4.5, 1e-12);
    check_close(value_of(&forest, &above), 0.5 + 4.5, 1e-12);
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    struct wg_error err;
    make_rows(features, target, 1);
    for (size_t nth = 1;; nth++) {
        wg__alloc_fail_from(nth);
        enum wg_code code = fit(&forest, FEATURES, 100, &opts, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK) {
            assert_true(nth > 3);
            break;
        }
        assert_int_equal(code, WG_ENOMEM);
    }
    struct wg_forest_index *index = NULL;
    wg__alloc_fail_from(1);
    enum wg_code code = wg__forest_index_new(&index, &forest, &err);
    wg__alloc_fail_from(0);
    assert_int_equal(code, WG_ENOMEM);
    assert_int_equal(wg__forest_index_new(&index, NULL, &err), WG_OK);
    assert_null(index); /* of no forest, none */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_the_same_to_the_last_bit_as_walking_each_tree),
        cmocka_unit_test(learns_steps_of_rows_that_it_did_not_see),
        cmocka_unit_test(gives_the_same_forest_of_the_same_rows),
        cmocka_unit_test(says_the_mean_where_nothing_tells_rows_apart),
        cmocka_unit_test(pulls_of_outliers_are_clipped),
        cmocka_unit_test(tells_a_step_where_most_curves_have_one),
        cmocka_unit_test(reads_back_what_it_writes),
        cmocka_unit_test(refuses_what_no_forest_is),
        cmocka_unit_test(survives_lack_of_memory),
    };
    return run_tests(tests);
}
