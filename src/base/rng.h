/* SPDX-License-Identifier: MIT
 *
 * Random numbers: Philox4x32-10, counter-based, seedable and splittable.
 *
 * A stream is a pair (64-bit key, counter). Two streams with different keys are independent, and a
 * child's key is a hash of its parent's key and an index, so each (case, seed, purpose) gets its own
 * stream by name: results do not depend on which thread runs what, nor on how many numbers another
 * part has drawn. Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
 * SC'11; the known-answer vectors of its reference implementation are in tests/unit/test_rng.c.
 *
 * Threads: a generator belongs to one thread; splitting only reads the parent.
 */
#ifndef WG_BASE_RNG_H
#define WG_BASE_RNG_H

#include <stdint.h>

struct wg_rng {
    uint64_t key;
    uint64_t counter;  /* of the next block */
    uint32_t block[4]; /* numbers drawn but not given out yet */
    unsigned left;     /* how many of them */
};

/* The stream of `seed`. */
void wg__rng_init(struct wg_rng *rng, uint64_t seed);

/* The `index`th child of `parent`. The parent does not move: the same index gives the same child. */
struct wg_rng wg__rng_split(const struct wg_rng *parent, uint64_t index);

/* One block of the cipher: exposed for the known-answer test. */
void wg__philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

uint32_t wg__rng_u32(struct wg_rng *rng);

/* Uniform on the open interval (0, 1), 53 bits: never 0 and never 1, so its logarithm and its normal
 * quantile are finite. */
double wg__rng_uniform(struct wg_rng *rng);

/* Uniform on 0 .. bound - 1 without modulo bias; bound must be at least 1. */
uint32_t wg__rng_below(struct wg_rng *rng, uint32_t bound);

#endif
