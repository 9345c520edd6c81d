/* SPDX-License-Identifier: MIT
 *
 * Random boards and their rows and columns, worked out when first asked for; see the header.
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include "optimize/board_pool.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

struct row {
    float *values;    /* log t, then log E, of all candidates; NULL: none */
    size_t used;      /* when it was asked for last */
    size_t freshness; /* of the fresh candidates in it */
    bool has_fixed;
};

struct wg_board_pool {
    const struct wg_board_axes *axes;
    size_t count;
    struct wg_board *boards; /* [count] */
    uint32_t *candidates;
    uint32_t *place; /* [configurations]: candidate + 1, 0: none */
    size_t fixed_count, candidate_count, room;
    size_t freshness;
    struct row *rows; /* [count] */
    size_t row_count, uses;
    float **columns;     /* [column_count]: log t, then log E, of all boards */
    uint32_t *column_of; /* their configurations */
    size_t column_count, column_room;
    struct wg_board_effect *table;
};

void wg__board_pool_free(struct wg_board_pool *pool)
{
    if (!pool)
        return;
    for (size_t i = 0; pool->rows && i < pool->count; i++)
        wg__free(pool->rows[i].values);
    for (size_t i = 0; i < pool->column_count; i++)
        wg__free(pool->columns[i]);
    wg__free(pool->columns);
    wg__free(pool->column_of);
    wg__free(pool->rows);
    wg__free(pool->place);
    wg__free(pool->candidates);
    wg__free(pool->table);
    wg__free(pool->boards);
    wg__free(pool);
}

static enum wg_code no_memory(const struct wg_board_pool *pool, struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "out of memory for %zu boards on %zu configurations",
                    pool->count, pool->candidate_count);
}

static void place_all(struct wg_board_pool *pool)
{
    for (size_t i = 0; i < pool->candidate_count; i++)
        pool->place[pool->candidates[i]] = (uint32_t)(i + 1);
}

enum wg_code wg__board_pool_new(struct wg_board_pool **out, const struct wg_board_axes *axes,
                                size_t count, const struct wg_rng *rng, const uint32_t *fixed,
                                size_t fixed_count, size_t fresh_most, struct wg_error *err)
{
    struct wg_board_pool *pool = wg__alloc_zeroed(1, sizeof *pool);
    if (!pool)
        return wg__fail(err, WG_ENOMEM, "out of memory for a pool of boards");
    pool->axes = axes;
    pool->count = count;
    pool->fixed_count = pool->candidate_count = fixed_count;
    pool->room = fixed_count + fresh_most;
    pool->boards = wg__alloc_zeroed(count, sizeof *pool->boards);
    pool->candidates = wg__alloc_zeroed(pool->room, sizeof *pool->candidates);
    pool->place = wg__alloc_zeroed(axes->space->count, sizeof *pool->place);
    pool->rows = wg__alloc_zeroed(count, sizeof *pool->rows);
    pool->table = wg__alloc(wg__board_table_size(axes));
    if (!pool->boards || !pool->candidates || !pool->place || !pool->rows || !pool->table) {
        const enum wg_code code = no_memory(pool, err);
        wg__board_pool_free(pool);
        return code;
    }
    for (size_t i = 0; i < count; i++) {
        const struct wg_rng own = wg__rng_split(rng, i);
        float z[WG_BOARD_NUMBERS_MAX];
        wg__board_draw(axes, &own, z);
        wg__board_from(axes, z, &pool->boards[i]);
    }
    memcpy(pool->candidates, fixed, fixed_count * sizeof *fixed);
    place_all(pool);
    *out = pool;
    return WG_OK;
}

void wg__board_pool_refresh(struct wg_board_pool *pool, const uint32_t *fresh, size_t fresh_count)
{
    assert(pool->fixed_count + fresh_count <= pool->room);
    for (size_t i = pool->fixed_count; i < pool->candidate_count; i++)
        pool->place[pool->candidates[i]] = 0;
    memcpy(pool->candidates + pool->fixed_count, fresh, fresh_count * sizeof *fresh);
    pool->candidate_count = pool->fixed_count + fresh_count;
    pool->freshness++;
    place_all(pool);
}

size_t wg__board_pool_count(const struct wg_board_pool *pool)
{
    return pool->count;
}

const struct wg_board_axes *wg__board_pool_axes(const struct wg_board_pool *pool)
{
    return pool->axes;
}

const uint32_t *wg__board_pool_candidates(const struct wg_board_pool *pool, size_t *count_out)
{
    *count_out = pool->candidate_count;
    return pool->candidates;
}

size_t wg__board_pool_freshness(const struct wg_board_pool *pool)
{
    return pool->freshness;
}

size_t wg__board_pool_candidate(const struct wg_board_pool *pool, size_t configuration)
{
    return (size_t)pool->place[configuration] - 1;
}

/* The one that was asked for longest ago makes room. */
static void drop_oldest(struct wg_board_pool *pool)
{
    struct row *oldest = NULL;
    for (size_t i = 0; i < pool->count; i++) {
        struct row *row = &pool->rows[i];
        if (row->values && (!oldest || row->used < oldest->used))
            oldest = row;
    }
    assert(oldest);
    wg__free(oldest->values);
    *oldest = (struct row){.values = NULL};
    pool->row_count--;
}

enum wg_code wg__board_pool_row(struct wg_board_pool *pool, size_t board,
                                struct wg_board_curves *out, struct wg_error *err)
{
    struct row *row = &pool->rows[board];
    row->used = ++pool->uses;
    if (!row->values) {
        if (pool->row_count == WG_BOARD_CURVES_KEPT)
            drop_oldest(pool);
        row->values = wg__alloc_zeroed(2 * pool->room, sizeof *row->values);
        if (!row->values)
            return no_memory(pool, err);
        pool->row_count++;
    }
    float *log_t = row->values;
    float *log_e = row->values + pool->room;
    const size_t from = row->has_fixed ? pool->fixed_count : 0;
    if (!row->has_fixed || row->freshness != pool->freshness) {
        wg__board_row(pool->axes, &pool->boards[board], pool->candidates + from,
                      pool->candidate_count - from, pool->table, log_t + from, log_e + from);
        row->has_fixed = true;
        row->freshness = pool->freshness;
    }
    *out = (struct wg_board_curves){log_t, log_e};
    return WG_OK;
}

static enum wg_code add_column(struct wg_board_pool *pool, size_t configuration,
                               struct wg_error *err)
{
    if (pool->column_count == pool->column_room) {
        const size_t room = pool->column_room ? 2 * pool->column_room : 16;
        float **columns = wg__realloc_array(pool->columns, room, sizeof *columns);
        if (!columns)
            return no_memory(pool, err);
        pool->columns = columns;
        uint32_t *column_of = wg__realloc_array(pool->column_of, room, sizeof *column_of);
        if (!column_of)
            return no_memory(pool, err);
        pool->column_of = column_of;
        pool->column_room = room;
    }
    float *values = wg__alloc_zeroed(2 * pool->count, sizeof *values);
    if (!values)
        return no_memory(pool, err);
    for (size_t i = 0; i < pool->count; i++) {
        wg__board_point(pool->axes, &pool->boards[i], configuration, &values[i],
                        &values[pool->count + i]);
    }
    pool->columns[pool->column_count] = values;
    pool->column_of[pool->column_count++] = (uint32_t)configuration;
    return WG_OK;
}

enum wg_code wg__board_pool_column(struct wg_board_pool *pool, size_t configuration,
                                   struct wg_board_curves *out, struct wg_error *err)
{
    size_t i = 0;
    while (i < pool->column_count && pool->column_of[i] != configuration)
        i++;
    if (i == pool->column_count) {
        const enum wg_code code = add_column(pool, configuration, err);
        if (code != WG_OK)
            return code;
    }
    *out = (struct wg_board_curves){pool->columns[i], pool->columns[i] + pool->count};
    return WG_OK;
}
