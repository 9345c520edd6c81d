/* SPDX-License-Identifier: MIT
 *
 * In which order variables are chosen, so that states stay few.
 *
 * Two orders are drawn and the better one is taken by an estimate of its arcs. One follows the
 * layers as they are executed, which suits chains, residual stages and dense blocks. The other
 * takes next the variable, among the neighbours of those chosen, after which the fewest values are
 * alive; it suits nets that come back to what they left (U-Net) when it starts in their middle.
 *
 * Threads: one at a time.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "wave/plan_graph.h"
#include "wave/plan_walk.h"

/* The greedy order looks at all pairs of variables and layers. */
enum { GREEDY_MAX = 256 };

static void add_side(const struct wg_plan_side *side, uint32_t *order, size_t *count, bool *has)
{
    for (size_t i = 0; i < side->part_count; i++) {
        const uint32_t variable = side->parts[i].variable;
        if (!has[variable])
            order[(*count)++] = variable;
        has[variable] = true;
    }
}

static void order_by_execution(const struct wg_plan_space *space, uint32_t *order, bool *has)
{
    size_t count = 0;
    memset(has, 0, space->variable_count * sizeof *has);
    for (size_t i = 0; i < space->layer_count; i++) {
        add_side(&space->layers[i].in, order, &count, has);
        add_side(&space->layers[i].out, order, &count, has);
    }
    for (uint32_t v = 0; v < space->variable_count; v++) {
        if (!has[v])
            order[count++] = v;
    }
}

struct greedy {
    const struct wg_plan_space *space;
    bool *has;    /* chosen */
    bool *alive;  /* scratch */
    bool *beside; /* neighbours of the chosen */
};

static size_t side_left(const struct greedy *greedy, const struct wg_plan_side *side)
{
    size_t left = 0;
    for (size_t i = 0; i < side->part_count; i++)
        left += !greedy->has[side->parts[i].variable];
    return left;
}

static void mark(const struct greedy *greedy, const struct wg_plan_side *side, bool chosen,
                 bool *marks)
{
    for (size_t i = 0; i < side->part_count; i++) {
        if (greedy->has[side->parts[i].variable] == chosen)
            marks[side->parts[i].variable] = true;
    }
}

/* Logarithm of how many states are alive with the present choice. */
static double greedy_states(const struct greedy *greedy)
{
    const struct wg_plan_space *space = greedy->space;
    memset(greedy->alive, 0, space->variable_count * sizeof *greedy->alive);
    for (size_t i = 0; i < space->layer_count; i++) {
        const struct wg_plan_layer *layer = &space->layers[i];
        if (side_left(greedy, &layer->in) + side_left(greedy, &layer->out) == 0)
            continue;
        mark(greedy, &layer->in, true, greedy->alive);
        mark(greedy, &layer->out, true, greedy->alive);
    }
    double sum = 0;
    for (size_t v = 0; v < space->variable_count; v++)
        sum += greedy->alive[v] ? log((double)space->variables[v].value_count) : 0;
    return sum;
}

static void find_beside(const struct greedy *greedy)
{
    const struct wg_plan_space *space = greedy->space;
    memset(greedy->beside, 0, space->variable_count * sizeof *greedy->beside);
    for (size_t i = 0; i < space->layer_count; i++) {
        const struct wg_plan_layer *layer = &space->layers[i];
        const size_t left = side_left(greedy, &layer->in) + side_left(greedy, &layer->out);
        if (left == 0 || left == layer->in.part_count + layer->out.part_count)
            continue;
        mark(greedy, &layer->in, false, greedy->beside);
        mark(greedy, &layer->out, false, greedy->beside);
    }
}

static void order_greedily(struct greedy *greedy, uint32_t first, uint32_t *order)
{
    const size_t count = greedy->space->variable_count;
    memset(greedy->has, 0, count * sizeof *greedy->has);
    for (size_t at = 0; at < count; at++) {
        find_beside(greedy);
        size_t best = SIZE_MAX;
        double least = INFINITY;
        for (size_t v = 0; v < count && at > 0; v++) {
            if (greedy->has[v] || !greedy->beside[v])
                continue;
            greedy->has[v] = true;
            const double states = greedy_states(greedy);
            greedy->has[v] = false;
            if (states < least) {
                least = states;
                best = v;
            }
        }
        for (size_t v = first; best == SIZE_MAX; v = (v + 1) % count) {
            if (!greedy->has[v])
                best = v;
        }
        greedy->has[best] = true;
        order[at] = (uint32_t)best;
    }
}

static double log_count(const struct wg_plan_form *form)
{
    return form->step == 0 ? 0 : log1p((form->most - form->least) / (double)form->step);
}

static uint64_t value_step(const struct wg_plan_variable *variable)
{
    uint64_t step = 0;
    for (size_t i = 1; i < variable->value_count; i++) {
        uint64_t a = variable->values[i] - variable->values[i - 1];
        while (a != 0) {
            const uint64_t rest = step % a;
            step = a;
            a = rest;
        }
    }
    return step;
}

/* How many arcs a graph in this order has about; states are at most as many as the sums of the
 * forms allow, and as the values of the variables that any of them holds. */
static double estimate(const struct wg_plan_space *space, const uint32_t *order,
                       struct wg_error *err)
{
    struct wg_plan_walk walk;
    if (wg__plan_walk_init(&walk, space, order, err) != WG_OK)
        return NAN;
    double arcs = 0;
    double states = 0; /* logarithm */
    for (size_t l = 0; l < space->variable_count; l++) {
        const struct wg_plan_variable *variable = &space->variables[order[l]];
        const double choices = log((double)variable->value_count);
        arcs += exp(fmin(states + choices, 600));
        wg__plan_walk_step(&walk, variable->values[0], variable->values[variable->value_count - 1],
                           value_step(variable));
        double sums = 0;
        for (size_t f = 0; f < walk.form_count; f++)
            sums += log_count(&walk.forms[f]);
        states = fmin(states + choices, sums);
    }
    wg__plan_walk_fini(&walk);
    return arcs;
}

enum wg_code wg__plan_order(const struct wg_plan_space *space, uint32_t *order,
                            struct wg_error *err)
{
    const size_t count = space->variable_count;
    struct wg_arena arena;
    wg__arena_init(&arena);
    struct greedy greedy = {.space = space,
                            .has = wg__arena_alloc(&arena, count, sizeof(bool)),
                            .alive = wg__arena_alloc(&arena, count, sizeof(bool)),
                            .beside = wg__arena_alloc(&arena, count, sizeof(bool))};
    uint32_t *other = wg__arena_alloc(&arena, count, sizeof *other);
    enum wg_code code = WG_OK;
    if (greedy.has == NULL || greedy.alive == NULL || greedy.beside == NULL || other == NULL) {
        code = wg__fail(err, WG_ENOMEM, "no memory for the order of %zu widths", count);
        goto out;
    }
    order_by_execution(space, order, greedy.has);
    double least = estimate(space, order, err);
    if (isnan(least))
        code = WG_ENOMEM;
    const uint32_t starts[] = {order[0], order[count / 2], order[count - 1]};
    for (size_t i = 0; i < 3 && code == WG_OK && count > 1 && count <= GREEDY_MAX; i++) {
        order_greedily(&greedy, starts[i], other);
        const double arcs = estimate(space, other, err);
        if (isnan(arcs)) {
            code = WG_ENOMEM;
        } else if (arcs < least) {
            least = arcs;
            memcpy(order, other, count * sizeof *order);
        }
    }
out:
    wg__arena_fini(&arena);
    return code;
}
