/* SPDX-License-Identifier: MIT
 *
 * An arena: many small allocations that die together.
 *
 * Memory is taken from blocks that double in size; freeing is one walk over the blocks. Pointers
 * stay valid until `wg__arena_fini` or `wg__arena_reset`.
 *
 * Owns: its blocks.    Threads: one thread at a time.
 */
#ifndef WG_BASE_ARENA_H
#define WG_BASE_ARENA_H

#include <stddef.h>

struct wg_arena_block;

struct wg_arena {
    struct wg_arena_block *head; /* the block that serves requests; older ones hang behind it */
    size_t next_size;            /* bytes of the next block */
};

/* Makes an empty arena; allocates nothing. */
void wg__arena_init(struct wg_arena *arena);

/* Frees all blocks. Accepts an arena that was only zeroed; may be called twice. */
void wg__arena_fini(struct wg_arena *arena);

/* Gives all memory back but the newest block, which is kept for reuse. */
void wg__arena_reset(struct wg_arena *arena);

/* Zeroed memory for `count` objects of `size` bytes, aligned for any type; NULL when memory has
 * run out or the product overflows. */
void *wg__arena_alloc(struct wg_arena *arena, size_t count, size_t size);

/* A copy of `text` that lives as long as the arena; NULL when memory has run out. */
char *wg__arena_strdup(struct wg_arena *arena, const char *text);

#endif
