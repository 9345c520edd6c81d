/* SPDX-License-Identifier: MIT
 *
 * Philox4x32-10 and the naming of its streams.
 *
 * One round multiplies two words of the counter by odd constants and crosses the halves:
 *
 *     c0 --* M0--> hi0 --xor c3, k1--> c2'        lo0 --> c3'
 *     c2 --* M1--> hi1 --xor c1, k0--> c0'        lo1 --> c1'
 *
 * and the key grows by two Weyl constants per round. A stream's 64-bit key is the cipher's key; its
 * 64-bit counter is the low half of the cipher's 128-bit counter, so a stream repeats after 2^66
 * words. A child's key goes through two rounds of SplitMix64's finaliser (Steele, Lea, Flood, "Fast
 * splittable pseudorandom number generators", OOPSLA'14): children of one parent all differ (the
 * finaliser is a bijection), and keys of relatives that share indices look unrelated.
 *
 * Owns: nothing.    Threads: see the header.
 */
#include "base/rng.h"

#include "base/hash.h"

enum { ROUNDS = 10 };

static const uint32_t multiplier_0 = 0xD2511F53;
static const uint32_t multiplier_1 = 0xCD9E8D57;
static const uint32_t weyl_0 = 0x9E3779B9; /* the golden ratio */
static const uint32_t weyl_1 = 0xBB67AE85; /* sqrt(3) - 1 */

static inline void philox_round(uint32_t c[4], uint32_t key_0, uint32_t key_1)
{
    const uint64_t product_0 = (uint64_t)multiplier_0 * c[0];
    const uint64_t product_1 = (uint64_t)multiplier_1 * c[2];
    c[0] = (uint32_t)(product_1 >> 32) ^ c[1] ^ key_0;
    c[1] = (uint32_t)product_1;
    c[2] = (uint32_t)(product_0 >> 32) ^ c[3] ^ key_1;
    c[3] = (uint32_t)product_0;
}

void wg__philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    for (uint32_t round = 0; round < ROUNDS; round++)
        philox_round(c, key[0] + round * weyl_0, key[1] + round * weyl_1);
    for (int i = 0; i < 4; i++)
        out[i] = c[i];
}

void wg__rng_refill(struct wg_rng *rng)
{
    const uint32_t key_0 = (uint32_t)rng->key;
    const uint32_t key_1 = (uint32_t)(rng->key >> 32);
    uint32_t c[WG_RNG_BLOCKS][4];
    for (uint32_t block = 0; block < WG_RNG_BLOCKS; block++) {
        const uint64_t counter = rng->counter + block;
        c[block][0] = (uint32_t)counter;
        c[block][1] = (uint32_t)(counter >> 32);
        c[block][2] = 0;
        c[block][3] = 0;
    }
    /* Rounds outside, blocks inside: the blocks' multiplications overlap. */
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (int block = 0; block < WG_RNG_BLOCKS; block++)
            philox_round(c[block], key_0 + round * weyl_0, key_1 + round * weyl_1);
    }
    for (int word = 0; word < WG_RNG_WORDS; word++)
        rng->words[word] = c[word / 4][word % 4];
    rng->counter += WG_RNG_BLOCKS;
    rng->left = WG_RNG_WORDS;
}

void wg__rng_init(struct wg_rng *rng, uint64_t seed)
{
    *rng = (struct wg_rng){.key = seed};
}

struct wg_rng wg__rng_split(const struct wg_rng *parent, uint64_t index)
{
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);
    const uint64_t family = wg__hash_mix(parent->key + golden);
    struct wg_rng child;
    wg__rng_init(&child, wg__hash_mix(family + (index + 1) * golden));
    return child;
}
