/* SPDX-License-Identifier: MIT
 *
 * Hashes of texts, for names of streams and files: FNV-1a, 64 bits (Fowler, Noll, Vo;
 * draft-eastlake-fnv). None of them resists somebody who wants two texts to agree.
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

#endif
