/* SPDX-License-Identifier: MIT
 *
 * What a layer costs at its two sums of channels: asked for once, remembered in an open hash table.
 *
 * A kernel model takes microseconds for an answer, and a plan asks for the same one some hundred
 * times: each state of a level looks at the same pairs of widths.
 *
 * Threads: one at a time.
 */
#include "wave/plan_cost.h"

#include <math.h>

#include "base/alloc.h"
#include "base/hash.h"

struct slot {
    uint64_t in, out;
    size_t layer; /* counted from 1; 0: empty */
    struct wg_plan_cost cost;
};

struct wg_plan_cost_table {
    struct slot *slots;
    size_t space, count; /* space is a power of two */
};

enum { FIRST_SPACE = 1024 };

struct wg_plan_cost_table *wg__plan_cost_table_new(void)
{
    struct wg_plan_cost_table *table = wg__alloc_zeroed(1, sizeof *table);
    if (table == NULL)
        return NULL;
    table->slots = wg__alloc_zeroed(FIRST_SPACE, sizeof *table->slots);
    if (table->slots == NULL) {
        wg__free(table);
        return NULL;
    }
    table->space = FIRST_SPACE;
    return table;
}

void wg__plan_cost_table_free(struct wg_plan_cost_table *table)
{
    if (table == NULL)
        return;
    wg__free(table->slots);
    wg__free(table);
}

static struct slot *find_slot(struct slot *slots, size_t space, size_t layer, uint64_t in,
                              uint64_t out)
{
    const uint64_t hash = wg__hash_mix(wg__hash_mix(in * 0x9e3779b97f4a7c15u + layer) + out);
    size_t at = (size_t)hash & (space - 1);
    while (slots[at].layer != 0 &&
           (slots[at].layer != layer + 1 || slots[at].in != in || slots[at].out != out))
        at = (at + 1) & (space - 1);
    return &slots[at];
}

static bool make_space(struct wg_plan_cost_table *table)
{
    if (2 * (table->count + 1) <= table->space)
        return true;
    struct slot *bigger = wg__alloc_zeroed(2 * table->space, sizeof *bigger);
    if (bigger == NULL)
        return false;
    for (size_t i = 0; i < table->space; i++) {
        const struct slot *old = &table->slots[i];
        if (old->layer != 0)
            *find_slot(bigger, 2 * table->space, old->layer - 1, old->in, old->out) = *old;
    }
    wg__free(table->slots);
    table->slots = bigger;
    table->space *= 2;
    return true;
}

const struct wg_plan_cost *wg__plan_cost_find(const struct wg_plan_space *space, size_t layer,
                                              uint64_t in, uint64_t out)
{
    const struct slot *slot = find_slot(space->costs->slots, space->costs->space, layer, in, out);
    return slot->layer == 0 ? NULL : &slot->cost;
}

struct wg_plan_cost wg__plan_cost_at(const struct wg_plan_space *space, size_t layer,
                                     const uint32_t *channels)
{
    const struct wg_plan_layer *at = &space->layers[layer];
    struct wg_plan_cost cost = {.time_s = NAN};
    struct wg_layer moved;
    if (wg__layer_at(at->layer, channels, &moved, NULL) != WG_OK)
        return cost;
    const double time_s = space->layer_time(space->context, &moved);
    if (isfinite(time_s) && time_s >= 0)
        cost.time_s = time_s;
    cost.parameters = at->weight * (double)moved.parameters;
    cost.flops = at->weight * wg__plan_layer_flops(&moved);
    return cost;
}

const struct wg_plan_cost *wg__plan_cost_ask(struct wg_plan_space *space, size_t layer, uint64_t in,
                                             uint64_t out)
{
    struct wg_plan_cost_table *table = space->costs;
    if (!make_space(table))
        return NULL;
    struct slot *slot = find_slot(table->slots, table->space, layer, in, out);
    if (slot->layer == 0) {
        *slot = (struct slot){in, out, layer + 1, wg__plan_cost_at(space, layer, space->channels)};
        table->count++;
    }
    return &slot->cost;
}

double wg__plan_layer_flops(const struct wg_layer *layer)
{
    switch (layer->kind) {
    case WG_LAYER_CONV:
        return wg__conv_flops(&layer->conv);
    case WG_LAYER_GEMM:
        return wg__gemm_flops(&layer->gemm);
    default:
        return 0;
    }
}
