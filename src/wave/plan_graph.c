/* SPDX-License-Identifier: MIT
 *
 * Builds the graph of states, level by level.
 *
 * Of a level, only the keys of its states are held: the sums of the level's forms. For each state
 * and value the sums of the next level follow by one addition each; equal keys are one state, found
 * by hashing. A cost that has not been asked for yet needs a whole list of widths; that of the path
 * on which the state was met first has the right sums.
 *
 * Threads: one at a time.
 */
#include "wave/plan_graph.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "wave/plan_walk.h"

/* The states of a level while it is made. */
struct states {
    uint64_t *keys; /* `length` numbers each */
    size_t count, space, length;
    uint32_t *slots; /* index + 1; 0: empty */
    size_t slot_space;
};

/* Where a state was met first. */
struct origin {
    uint32_t state; /* of the level before */
    uint16_t choice;
};

struct builder {
    struct wg_plan_space *space;
    struct wg_plan_graph *graph;
    const struct wg_plan_domain *domains;
    struct wg_plan_walk walk;
    struct states now, next;
    struct origin *origins; /* of all states */
    size_t origin_space, arc_space;
    uint64_t *key;     /* scratch */
    uint32_t *counted; /* layers counted at this level */
    size_t counted_count;
    bool by_value;
};

static uint64_t key_hash(const uint64_t *key, size_t length)
{
    uint64_t hash = WG_HASH_START;
    for (size_t i = 0; i < length; i++)
        hash = wg__hash_mix(hash * 0x9e3779b97f4a7c15u + key[i]);
    return hash;
}

static size_t find_slot(const struct states *states, const uint64_t *key)
{
    size_t at = (size_t)key_hash(key, states->length) & (states->slot_space - 1);
    while (states->slots[at] != 0 && memcmp(states->keys + (states->slots[at] - 1) * states->length,
                                            key, states->length * sizeof *key) != 0)
        at = (at + 1) & (states->slot_space - 1);
    return at;
}

static bool states_rehash(struct states *states, size_t slot_space)
{
    uint32_t *slots = wg__alloc_zeroed(slot_space, sizeof *slots);
    if (slots == NULL)
        return false;
    wg__free(states->slots);
    states->slots = slots;
    states->slot_space = slot_space;
    for (size_t i = 0; i < states->count; i++)
        slots[find_slot(states, states->keys + i * states->length)] = (uint32_t)i + 1;
    return true;
}

static bool states_reserve(struct states *states)
{
    if (states->count == states->space) {
        const size_t more = states->space == 0 ? 64 : 2 * states->space;
        /* One number more than keys hold, since a key may be empty. */
        uint64_t *keys = wg__realloc_array(states->keys, more * states->length + 1, sizeof *keys);
        if (keys == NULL)
            return false;
        states->keys = keys;
        states->space = more;
    }
    return 2 * (states->count + 1) <= states->slot_space ||
           states_rehash(states, states->slot_space == 0 ? 128 : 2 * states->slot_space);
}

static void states_fini(struct states *states)
{
    wg__free(states->keys);
    wg__free(states->slots);
    *states = (struct states){.keys = NULL};
}

static bool set_origin(struct builder *builder, size_t index, struct origin origin)
{
    if (index >= builder->origin_space) {
        const size_t more = builder->origin_space == 0 ? 256 : 2 * builder->origin_space;
        struct origin *bigger = wg__realloc_array(builder->origins, more, sizeof *bigger);
        if (bigger == NULL)
            return false;
        builder->origins = bigger;
        builder->origin_space = more;
    }
    builder->origins[index] = origin;
    return true;
}

/* The state of that key, made where there is none; WG_PLAN_NO_STATE: no memory. */
static uint32_t state_of(struct builder *builder, const uint64_t *key, struct origin origin)
{
    struct states *states = &builder->next;
    if (!states_reserve(states))
        return WG_PLAN_NO_STATE;
    const size_t slot = find_slot(states, key);
    if (states->slots[slot] != 0)
        return states->slots[slot] - 1;
    if (!set_origin(builder, builder->graph->state_count, origin))
        return WG_PLAN_NO_STATE;
    memcpy(states->keys + states->count * states->length, key, states->length * sizeof *key);
    states->slots[slot] = (uint32_t)++states->count;
    builder->graph->state_count++;
    return (uint32_t)states->count - 1;
}

static uint64_t side_sum(const struct wg_plan_walk_side *side, const uint64_t *key, uint64_t value)
{
    const uint64_t before = side->form_before < 0 ? 0 : key[side->form_before];
    return side->constant + before + side->multiple * value;
}

/* Widths on a path that leads to this state of `level`, and `value` behind it. */
static void fill_channels(struct builder *builder, size_t level, uint32_t state, uint32_t value)
{
    const struct wg_plan_graph *graph = builder->graph;
    const struct wg_plan_space *space = builder->space;
    space->channels[space->variables[graph->levels[level].variable].width] = value;
    for (size_t l = level; l > 0; l--) {
        const struct origin origin = builder->origins[graph->levels[l].first_state + state];
        const uint32_t variable = graph->levels[l - 1].variable;
        space->channels[space->variables[variable].width] =
            builder->domains[variable].values[origin.choice];
        state = origin.state;
    }
}

/* Adds up what the layers cost that are counted here; false: no memory. */
static bool add_costs(struct builder *builder, size_t level, uint32_t state, uint32_t value,
                      struct wg_plan_cost *sum)
{
    const uint64_t *key = builder->now.keys + state * builder->now.length;
    for (size_t i = 0; i < builder->counted_count; i++) {
        const size_t layer = builder->counted[i];
        const uint64_t in = side_sum(&builder->walk.sides[2 * layer], key, value);
        const uint64_t out = side_sum(&builder->walk.sides[2 * layer + 1], key, value);
        const struct wg_plan_cost *cost = wg__plan_cost_find(builder->space, layer, in, out);
        if (cost == NULL) {
            fill_channels(builder, level, state, value);
            cost = wg__plan_cost_ask(builder->space, layer, in, out);
        }
        if (cost == NULL)
            return false;
        sum->time_s += cost->time_s;
        sum->parameters += cost->parameters;
        sum->flops += cost->flops;
    }
    return true;
}

static bool add_arc(struct builder *builder, size_t level, uint32_t state, uint16_t choice,
                    uint32_t value)
{
    struct wg_plan_cost sum = {0};
    if (!add_costs(builder, level, state, value, &sum))
        return false;
    struct wg_plan_arc *arc = &builder->graph->arcs[builder->graph->arc_count++];
    *arc = (struct wg_plan_arc){.to = WG_PLAN_NO_STATE};
    if (isnan(sum.time_s))
        return true;
    const double worth = wg__plan_value(builder->space, &sum);
    arc->cost = builder->by_value ? -worth : sum.time_s;
    arc->gain = builder->by_value ? -sum.time_s : worth;
    const struct wg_plan_walk *walk = &builder->walk;
    const uint64_t *key = builder->now.keys + state * builder->now.length;
    for (size_t f = 0; f < walk->form_count; f++) {
        const struct wg_plan_form *form = &walk->forms[f];
        builder->key[f] = (form->before < 0 ? 0 : key[form->before]) + form->multiple * value;
    }
    arc->to = state_of(builder, builder->key, (struct origin){state, choice});
    return arc->to != WG_PLAN_NO_STATE;
}

/* The last level has its state even where no arc leads there. */
static bool close_level(struct builder *builder, size_t level)
{
    struct wg_plan_graph *graph = builder->graph;
    if (level + 1 == graph->level_count && builder->next.count == 0 &&
        state_of(builder, builder->key, (struct origin){0, 0}) == WG_PLAN_NO_STATE)
        return false;
    states_fini(&builder->now);
    builder->now = builder->next;
    builder->next = (struct states){.keys = NULL};
    graph->levels[level + 1].state_count = builder->now.count;
    return true;
}

static bool build_level(struct builder *builder, size_t level, size_t arc_limit)
{
    struct wg_plan_graph *graph = builder->graph;
    struct wg_plan_level *at = &graph->levels[level];
    const struct wg_plan_domain *domain = &builder->domains[at->variable];
    const size_t arcs = at->state_count * domain->count;
    at->choice_count = domain->count;
    at->first_arc = graph->arc_count;
    graph->fits = graph->arc_count + arcs <= arc_limit;
    if (!graph->fits)
        return true;
    if (graph->arc_count + arcs > builder->arc_space) {
        builder->arc_space = 2 * (graph->arc_count + arcs);
        struct wg_plan_arc *bigger =
            wg__realloc_array(graph->arcs, builder->arc_space, sizeof *bigger);
        if (bigger == NULL)
            return false;
        graph->arcs = bigger;
    }
    builder->counted_count = 0;
    for (size_t i = 0; i < builder->space->layer_count; i++) {
        if (builder->walk.last[i] == (int64_t)level)
            builder->counted[builder->counted_count++] = (uint32_t)i;
    }
    wg__plan_walk_step(&builder->walk, 0, 0, 0);
    builder->next.length = builder->walk.form_count;
    graph->levels[level + 1].first_state = graph->state_count;
    for (uint32_t s = 0; s < at->state_count; s++) {
        for (size_t c = 0; c < domain->count; c++) {
            if (!add_arc(builder, level, s, (uint16_t)c, domain->values[c]))
                return false;
        }
    }
    return close_level(builder, level);
}

/* The layers that no variable touches, and the root. */
static bool build_root(struct builder *builder)
{
    struct wg_plan_graph *graph = builder->graph;
    struct wg_plan_space *space = builder->space;
    for (size_t i = 0; i < space->layer_count; i++) {
        if (builder->walk.last[i] >= 0)
            continue;
        const struct wg_plan_walk_side *sides = &builder->walk.sides[2 * i];
        const struct wg_plan_cost *cost =
            wg__plan_cost_ask(space, i, sides[0].constant, sides[1].constant);
        if (cost == NULL)
            return false;
        const double worth = wg__plan_value(space, cost);
        graph->cost += builder->by_value ? -worth : cost->time_s;
        graph->gain += builder->by_value ? -cost->time_s : worth;
    }
    const uint64_t nothing = 0;
    if (state_of(builder, &nothing, (struct origin){0, 0}) == WG_PLAN_NO_STATE)
        return false;
    graph->levels[0].state_count = 1;
    builder->now = builder->next;
    builder->next = (struct states){.keys = NULL};
    return true;
}

static bool build(struct builder *builder, const uint32_t *order, size_t arc_limit)
{
    struct wg_plan_graph *graph = builder->graph;
    const size_t layers = builder->space->layer_count;
    graph->levels = wg__alloc_zeroed(graph->level_count + 1, sizeof *graph->levels);
    builder->key = wg__alloc_zeroed(2 * layers + 1, sizeof *builder->key);
    builder->counted = wg__alloc_zeroed(layers + 1, sizeof *builder->counted);
    if (graph->levels == NULL || builder->key == NULL || builder->counted == NULL ||
        !build_root(builder))
        return false;
    for (size_t l = 0; l < graph->level_count; l++) {
        graph->levels[l].variable = order[l];
        if (!build_level(builder, l, arc_limit))
            return false;
        if (!graph->fits)
            break;
    }
    return true;
}

enum wg_code wg__plan_graph_init(struct wg_plan_graph *graph, struct wg_plan_space *space,
                                 const struct wg_plan_domain *domains, const uint32_t *order,
                                 bool by_value, size_t arc_limit, struct wg_error *err)
{
    *graph = (struct wg_plan_graph){.level_count = space->variable_count, .fits = true};
    struct builder builder = {
        .space = space, .graph = graph, .domains = domains, .by_value = by_value};
    enum wg_code code = wg__plan_walk_init(&builder.walk, space, order, err);
    if (code != WG_OK)
        return code;
    if (!build(&builder, order, arc_limit))
        code =
            wg__fail(err, WG_ENOMEM, "no memory for a plan of %zu widths", space->variable_count);
    wg__plan_walk_fini(&builder.walk);
    states_fini(&builder.now);
    states_fini(&builder.next);
    wg__free(builder.origins);
    wg__free(builder.key);
    wg__free(builder.counted);
    memcpy(space->channels, space->present, space->network->width_count * sizeof *space->channels);
    if (code != WG_OK)
        wg__plan_graph_fini(graph);
    return code;
}

void wg__plan_graph_fini(struct wg_plan_graph *graph)
{
    wg__free(graph->levels);
    wg__free(graph->arcs);
    *graph = (struct wg_plan_graph){.levels = NULL};
}
