/* SPDX-License-Identifier: MIT
 *
 * The whole graph of states where it fits, parts of it in turn where it does not.
 *
 * Threads: one at a time.
 */
#include "wave/plan_solve.h"

#include <math.h>

#include "base/error.h"
#include "wave/plan_graph.h"
#include "wave/plan_search.h"

static enum wg_code plan_whole(struct wg_plan_solution *out, const struct wg_plan_graph *graph,
                               const uint32_t *order, const struct wg_plan_domain *domains,
                               uint16_t *choices, struct wg_error *err)
{
    struct wg_plan_path path = {.choices = choices};
    const enum wg_code code = wg__plan_path(graph, out->need, &path, err);
    if (code != WG_OK)
        return code;
    for (size_t l = 0; l < graph->level_count; l++)
        out->values[order[l]] = domains[order[l]].values[choices[l]];
    out->cost = path.cost;
    out->gain = path.gain;
    out->bound = path.bound;
    out->is_found = path.is_found;
    out->is_proven = path.is_proven;
    out->tried += path.tried;
    return WG_OK;
}

static enum wg_code plan_in_parts(struct wg_plan_space *space, struct wg_plan_solution *out,
                                  const uint32_t *order, struct wg_error *err)
{
    struct wg_plan_found found = {.values = out->values};
    const enum wg_code code = wg__plan_search(space, order, out->by_value, out->need, &found, err);
    out->cost = found.cost;
    out->gain = found.gain;
    out->bound = NAN;
    out->is_found = found.is_found;
    out->is_proven = false;
    out->tried += found.tried;
    return code;
}

enum wg_code wg__plan_solve(struct wg_plan_space *space, bool by_value, double need,
                            struct wg_plan_solution *out, struct wg_error *err)
{
    struct wg_arena *arena = &space->arena;
    const size_t count = space->variable_count;
    *out = (struct wg_plan_solution){.by_value = by_value, .need = need};
    out->values = wg__arena_alloc(arena, count, sizeof *out->values);
    uint32_t *order = wg__arena_alloc(arena, count, sizeof *order);
    uint16_t *choices = wg__arena_alloc(arena, count, sizeof *choices);
    struct wg_plan_domain *domains = wg__arena_alloc(arena, count, sizeof *domains);
    if (out->values == NULL || order == NULL || choices == NULL || domains == NULL)
        return wg__fail(err, WG_ENOMEM, "no memory for a plan of %zu widths", count);
    for (size_t v = 0; v < count; v++)
        domains[v] =
            (struct wg_plan_domain){space->variables[v].values, space->variables[v].value_count};
    enum wg_code code = count > 0 ? wg__plan_order(space, order, err) : WG_OK;
    if (code != WG_OK)
        return code;
    struct wg_plan_graph graph;
    code =
        wg__plan_graph_init(&graph, space, domains, order, out->by_value, space->opts->states, err);
    if (code != WG_OK)
        return code;
    out->tried = graph.arc_count;
    const bool fits = graph.fits;
    if (fits)
        code = plan_whole(out, &graph, order, domains, choices, err);
    wg__plan_graph_fini(&graph);
    return fits ? code : plan_in_parts(space, out, order, err);
}
