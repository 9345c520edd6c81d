/* SPDX-License-Identifier: MIT
 *
 * Hashes of texts, for names of streams and files: FNV-1a, 64 bits (Fowler, Noll, Vo;
 * draft-eastlake-fnv), and of numbers. None of them resists somebody who wants two to agree.
 *
 * Threads: pure.
 */
#ifndef WG_BASE_HASH_H
#define WG_BASE_HASH_H

#include <stdint.h>

#define WG_HASH_START UINT64_C(0xcbf29ce484222325)

/* Goes on with a text; its end does not count: put something between two. */
static inline uint64_t wg__hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* Goes on with the eight bytes of a number, the lowest first. In front of a text, its length keeps
 * it apart from the next one. */
static inline uint64_t wg__hash_number(uint64_t hash, uint64_t number)
{
    for (unsigned i = 0; i < 8; i++)
        hash = (hash ^ (number >> 8 * i & 0xff)) * UINT64_C(0x100000001b3);
    return hash;
}

/* SplitMix64's finaliser, David Stafford's variant 13: spreads numbers that differ by little over
 * all 64 bits. Each step can be undone, so no two numbers have the same. */
static inline uint64_t wg__hash_mix(uint64_t number)
{
    number = (number ^ (number >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ (number >> 27)) * UINT64_C(0x94d049bb133111eb);
    return number ^ (number >> 31);
}

#endif
