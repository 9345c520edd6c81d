/* SPDX-License-Identifier: MIT
 *
 * Random numbers: Philox4x32-10, counter-based, seedable and splittable.
 *
 * A stream is a pair (64-bit key, counter). Two streams with different keys are independent, and a
 * child's key is a hash of its parent's key and an index, so each (case, seed, purpose) gets its
 * own stream by name: results do not depend on which thread runs what, nor on how many numbers
 * another part has drawn. Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
 * 1, 2, 3", SC'11; the known-answer vectors of its reference implementation are in
 * tests/unit/test_rng.c.
 *
 * The cipher runs on two counters at once, because its ten rounds are a chain of dependent
 * multiplications and one block alone leaves the processor idle. Drawing is inline: a decision
 * draws thousands of numbers within microseconds.
 *
 * Threads: a generator belongs to one thread; splitting only reads the parent.
 */
#ifndef WG_BASE_RNG_H
#define WG_BASE_RNG_H

#include <assert.h>
#include <stdint.h>

enum { WG_RNG_BLOCKS = 2, WG_RNG_WORDS = 4 * WG_RNG_BLOCKS };

struct wg_rng {
    uint64_t key;
    uint64_t counter;             /* of the next block to encrypt */
    uint32_t words[WG_RNG_WORDS]; /* the last blocks, in the order of their counters */
    unsigned left;                /* how many words, at the end, were not given out yet */
};

/* The stream of `seed`: Philox with `seed` as key over the counters 0, 1, 2, ... */
void wg__rng_init(struct wg_rng *rng, uint64_t seed);

/* The `index`th child of `parent`. The parent does not move: the same index gives the same child,
 * however many numbers the parent has given out. */
struct wg_rng wg__rng_split(const struct wg_rng *parent, uint64_t index);

/* One block of the cipher: exposed for the known-answer test. */
void wg__philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Encrypts the next blocks into `words`; called by the drawing functions when none are left. */
void wg__rng_refill(struct wg_rng *rng);

/* Uniform on 0 .. 2^32 - 1. */
static inline uint32_t wg__rng_u32(struct wg_rng *rng)
{
    if (rng->left == 0)
        wg__rng_refill(rng);
    return rng->words[WG_RNG_WORDS - rng->left--];
}

/* Uniform on the open interval (0, 1): the midpoints of 2^52 equal cells, each an exact double.
 * Never 0 and never 1, so its logarithm and its normal quantile are finite, and symmetric about
 * 1/2. (A 53rd bit would have to round, and the largest value to 1.) */
static inline double wg__rng_uniform(struct wg_rng *rng)
{
    const uint64_t high = wg__rng_u32(rng);
    const uint64_t cell = (high << 32 | wg__rng_u32(rng)) >> 12;
    return ((double)(int64_t)cell + 0.5) * 0x1p-52;
}

/* Uniform on 0 .. bound - 1 without modulo bias; bound must be at least 1. Lemire, "Fast random
 * integer generation in an interval", ACM TOMACS 29 (2019): the high half of a product, rejecting
 * the few low halves that would come up once too often. */
static inline uint32_t wg__rng_below(struct wg_rng *rng, uint32_t bound)
{
    assert(bound >= 1);
    uint64_t product = (uint64_t)wg__rng_u32(rng) * bound;
    if ((uint32_t)product < bound) {
        const uint32_t rejected = (uint32_t)(UINT32_MAX - bound + 1) % bound; /* 2^32 mod bound */
        while ((uint32_t)product < rejected)
            product = (uint64_t)wg__rng_u32(rng) * bound;
    }
    return (uint32_t)(product >> 32);
}

#endif
