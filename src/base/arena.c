/* SPDX-License-Identifier: MIT
 *
 * An arena: bump allocation from a chain of blocks.
 *
 *     arena.head --> [ older | size | used | ....used....|...free... ]
 *                       |
 *                       v
 *                    [ older | size | used | ..........full......... ] --> NULL
 *
 * Only the head serves requests. When it is too full, a new block becomes the head and the rest of
 * the old one is given up: with doubling sizes the waste stays below half. Doubling ends at
 * BLOCK_MAX, so that one more small object never costs as much as all before it. Memory is cleared
 * on each allocation, not when a block is made, since a block that `reset` kept holds old bytes.
 *
 * Owns: its blocks.    Threads: one thread at a time.
 */
#include "base/arena.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

enum { BLOCK_FIRST = 4096, BLOCK_MAX = 1 << 20 };

struct wg_arena_block {
    struct wg_arena_block *older;
    size_t size; /* bytes in data */
    size_t used; /* always a multiple of the largest alignment */
    alignas(max_align_t) unsigned char data[];
};

void wg__arena_init(struct wg_arena *arena)
{
    *arena = (struct wg_arena){0};
}

static void free_chain(struct wg_arena_block *block)
{
    while (block != NULL) {
        struct wg_arena_block *older = block->older;
        wg__free(block);
        block = older;
    }
}

void wg__arena_fini(struct wg_arena *arena)
{
    if (arena == NULL)
        return;
    free_chain(arena->head);
    *arena = (struct wg_arena){0};
}

void wg__arena_reset(struct wg_arena *arena)
{
    if (arena->head == NULL)
        return;
    free_chain(arena->head->older);
    arena->head->older = NULL;
    arena->head->used = 0;
}

/* Puts a block with room for `bytes` in front; the arena is unchanged when this fails. */
static struct wg_arena_block *push_block(struct wg_arena *arena, size_t bytes)
{
    /* A zeroed arena has no next size yet. */
    const size_t usual = arena->next_size != 0 ? arena->next_size : BLOCK_FIRST;
    const size_t size = bytes > usual ? bytes : usual;
    if (size > SIZE_MAX - sizeof(struct wg_arena_block))
        return NULL;
    struct wg_arena_block *block = wg__alloc(sizeof *block + size);
    if (block == NULL)
        return NULL;
    block->older = arena->head;
    block->size = size;
    block->used = 0;
    arena->head = block;
    arena->next_size = usual < BLOCK_MAX ? usual * 2 : BLOCK_MAX;
    return block;
}

void *wg__arena_alloc(struct wg_arena *arena, size_t count, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size != 0 && count > (SIZE_MAX - align) / size)
        return NULL;
    /* Even an empty object takes room, so that two objects never share an address. */
    const size_t wanted = count * size != 0 ? count * size : 1;
    const size_t bytes = (wanted + align - 1) & ~(align - 1);

    struct wg_arena_block *block = arena->head;
    if (block == NULL || block->size - block->used < bytes)
        block = push_block(arena, bytes);
    if (block == NULL)
        return NULL;
    void *object = block->data + block->used;
    block->used += bytes;
    memset(object, 0, bytes);
    return object;
}

char *wg__arena_strdup(struct wg_arena *arena, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = wg__arena_alloc(arena, size, 1);
    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}
