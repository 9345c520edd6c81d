/* SPDX-License-Identifier: MIT
 *
 * The generator: known answers of the cipher, uniformity, independence of children.
 *
 * The chi-square bounds are the 0.0005 and 0.9995 quantiles of scipy.stats.chi2 for the degrees of
 * freedom; the seeds are fixed, so a test that passed once passes always.
 */
#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"

/* kat_vectors of Random123 1.14.0, lines "philox4x32 10". */
static void the_cipher_gives_the_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4];
        uint32_t key[2];
        uint32_t answer[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[4];
        wg__philox4x32(cases[i].counter, cases[i].key, out);
        assert_memory_equal(out, cases[i].answer, sizeof out);
    }
}

static void a_stream_is_the_cipher_over_its_counter(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, UINT64_C(0x0123456789abcdef));
    const uint32_t key[2] = {0x89abcdef, 0x01234567};
    for (uint32_t block = 0; block < 50; block++) {
        const uint32_t counter[4] = {block, 0, 0, 0};
        uint32_t expected[4];
        wg__philox4x32(counter, key, expected);
        for (int i = 0; i < 4; i++)
            assert_true(wg__rng_u32(&rng) == expected[i]);
    }
}

static void the_counter_carries_into_its_high_half(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 5);
    rng.counter = UINT64_C(0xffffffff);
    const uint32_t key[2] = {5, 0};
    const uint32_t counters[2][4] = {{0xffffffff, 0, 0, 0}, {0, 1, 0, 0}};
    for (int block = 0; block < 2; block++) {
        uint32_t expected[4];
        wg__philox4x32(counters[block], key, expected);
        for (int i = 0; i < 4; i++)
            assert_true(wg__rng_u32(&rng) == expected[i]);
    }
}

static double chi_square(const unsigned *counts, size_t bins, double total)
{
    const double expected = total / (double)bins;
    double sum = 0.0;
    for (size_t i = 0; i < bins; i++)
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    return sum;
}

static void words_are_uniform_in_every_byte(void **state)
{
    (void)state;
    const int draws = 200000;
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    static unsigned counts[4][256];
    memset(counts, 0, sizeof counts);
    for (int i = 0; i < draws; i++) {
        const uint32_t word = wg__rng_u32(&rng);
        for (int k = 0; k < 4; k++)
            counts[k][word >> (8 * k) & 0xFF]++;
    }
    for (int k = 0; k < 4; k++) {
        const double x = chi_square(counts[k], 256, draws);
        assert_true(x > 187.17 && x < 335.92); /* 255 degrees of freedom */
    }
}

static void uniform_fills_the_open_interval(void **state)
{
    (void)state;
    const int draws = 200000;
    struct wg_rng rng;
    wg__rng_init(&rng, 2);
    unsigned counts[100] = {0};
    double sum = 0.0;
    double products = 0.0;
    double last = 0.5;
    for (int i = 0; i < draws; i++) {
        const double u = wg__rng_uniform(&rng);
        assert_true(u > 0.0 && u < 1.0);
        counts[(int)(u * 100.0)]++;
        sum += u;
        products += (u - 0.5) * (last - 0.5);
        last = u;
    }
    const double x = chi_square(counts, 100, draws);
    assert_true(x > 59.12 && x < 151.94); /* 99 degrees of freedom */
    /* Four standard errors: of the mean 1/sqrt(12 n), of the product 1/(12 sqrt(n)). */
    check_close_abs(sum / draws, 0.5, 0.0, 4.0 * 0.000645);
    check_close_abs(products / draws, 0.0, 0.0, 4.0 * 0.000186);
}

static void uniform_at_its_ends_is_neither_0_nor_1(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 0);
    memset(rng.words, 0x00, sizeof rng.words);
    rng.left = 2;
    assert_true(wg__rng_uniform(&rng) == 0x1p-53);
    memset(rng.words, 0xFF, sizeof rng.words);
    rng.left = 2;
    assert_true(wg__rng_uniform(&rng) == 1.0 - 0x1p-53);
}

static void below_is_uniform_and_stays_below(void **state)
{
    (void)state;
    const int draws = 70000;
    struct wg_rng rng;
    wg__rng_init(&rng, 3);
    unsigned counts[7] = {0};
    for (int i = 0; i < draws; i++) {
        assert_int_equal(wg__rng_below(&rng, 1), 0);
        counts[wg__rng_below(&rng, 7)]++;
    }
    const double x = chi_square(counts, 7, draws);
    assert_true(x > 0.299 && x < 24.11); /* 6 degrees of freedom */

    /* A bound of 3 * 2^30 shows the bias of a plain product or modulo: a third of the results would
     * come twice as often. Thirds of the range must be equally frequent (+- 4 standard errors). */
    unsigned thirds[3] = {0};
    for (int i = 0; i < draws; i++) {
        const uint32_t value = wg__rng_below(&rng, UINT32_C(3) << 30);
        assert_true(value < UINT32_C(3) << 30);
        thirds[value % 3]++;
    }
    for (int i = 0; i < 3; i++)
        check_close_abs(thirds[i], draws / 3.0, 0.0, 4.0 * 124.7);
}

static void below_rejects_the_low_halves_that_come_too_often(void **state)
{
    (void)state;
    /* 2^32 mod 3 is 1, so only the word 0, whose product has the low half 0, is drawn again. */
    struct wg_rng rng;
    wg__rng_init(&rng, 0);
    memset(rng.words, 0, sizeof rng.words);
    rng.words[WG_RNG_WORDS - 1] = 0xFFFFFFFF;
    rng.left = 3;
    assert_int_equal(wg__rng_below(&rng, 3), 2);
    assert_int_equal(rng.left, 0);
}

static void splitting_leaves_the_parent_and_repeats(void **state)
{
    (void)state;
    struct wg_rng parent;
    wg__rng_init(&parent, 4);
    const struct wg_rng before = parent;
    struct wg_rng early = wg__rng_split(&parent, 9);
    assert_memory_equal(&parent, &before, sizeof parent);
    for (int i = 0; i < 101; i++)
        (void)wg__rng_u32(&parent);
    struct wg_rng late = wg__rng_split(&parent, 9);
    for (int i = 0; i < 100; i++)
        assert_true(wg__rng_u32(&early) == wg__rng_u32(&late));
}

static int compare_keys(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void relatives_have_different_keys(void **state)
{
    (void)state;
    enum { PARENTS = 60, CHILDREN = 60 };
    static uint64_t keys[PARENTS * (1 + CHILDREN * 2)];
    size_t count = 0;
    for (uint64_t seed = 0; seed < PARENTS; seed++) {
        struct wg_rng parent;
        wg__rng_init(&parent, seed);
        keys[count++] = parent.key;
        for (uint64_t index = 0; index < CHILDREN; index++) {
            const struct wg_rng child = wg__rng_split(&parent, index);
            keys[count++] = child.key;
            keys[count++] = wg__rng_split(&child, index).key;
        }
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t i = 1; i < count; i++)
        assert_true(keys[i - 1] != keys[i]);
}

/* Flipping one bit of the index, or of the parent's seed, must flip half of the key's 64 bits. */
static void near_names_give_far_keys(void **state)
{
    (void)state;
    const unsigned samples = 2000;
    unsigned flipped = 0;
    for (uint64_t i = 0; i < samples; i++) {
        struct wg_rng parent;
        struct wg_rng sibling;
        wg__rng_init(&parent, i);
        wg__rng_init(&sibling, i ^ UINT64_C(1) << (i % 64));
        const uint64_t key = wg__rng_split(&parent, i).key;
        const uint64_t by_index = wg__rng_split(&parent, i ^ UINT64_C(1) << (i % 64)).key;
        const uint64_t by_parent = wg__rng_split(&sibling, i).key;
        flipped += (unsigned)__builtin_popcountll(key ^ by_index);
        flipped += (unsigned)__builtin_popcountll(key ^ by_parent);
    }
    /* Binomial(64 * 2 * samples, 1/2): four standard deviations are 4 * 253. */
    check_close_abs(flipped, 64.0 * samples, 0.0, 1012.0);
}

static void children_are_independent(void **state)
{
    (void)state;
    const int children = 50;
    const int draws = 2000;
    struct wg_rng parent;
    wg__rng_init(&parent, 6);
    unsigned pairs[100] = {0}; /* 10 x 10 cells of (a child, the next child) */
    double worst = 0.0;
    for (uint64_t index = 0; index < (uint64_t)children; index++) {
        struct wg_rng one = wg__rng_split(&parent, index);
        struct wg_rng next = wg__rng_split(&parent, index + 1);
        double products = 0.0;
        for (int i = 0; i < draws; i++) {
            const double u = wg__rng_uniform(&one);
            const double v = wg__rng_uniform(&next);
            pairs[(int)(u * 10.0) * 10 + (int)(v * 10.0)]++;
            products += (u - 0.5) * (v - 0.5);
        }
        const double mean = products / draws;
        worst = fabs(mean) > worst ? fabs(mean) : worst;
    }
    const double x = chi_square(pairs, 100, (double)children * draws);
    assert_true(x > 59.12 && x < 151.94);     /* 99 degrees of freedom */
    assert_true(worst < 4.0 / (12.0 * 44.7)); /* four standard errors, 1 / (12 sqrt(2000)) each */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cipher_gives_the_known_answers),
        cmocka_unit_test(a_stream_is_the_cipher_over_its_counter),
        cmocka_unit_test(the_counter_carries_into_its_high_half),
        cmocka_unit_test(words_are_uniform_in_every_byte),
        cmocka_unit_test(uniform_fills_the_open_interval),
        cmocka_unit_test(uniform_at_its_ends_is_neither_0_nor_1),
        cmocka_unit_test(below_is_uniform_and_stays_below),
        cmocka_unit_test(below_rejects_the_low_halves_that_come_too_often),
        cmocka_unit_test(splitting_leaves_the_parent_and_repeats),
        cmocka_unit_test(relatives_have_different_keys),
        cmocka_unit_test(near_names_give_far_keys),
        cmocka_unit_test(children_are_independent),
    };
    return run_tests(tests);
}
