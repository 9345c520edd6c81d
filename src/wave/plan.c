/* SPDX-License-Identifier: MIT
 *
 * From a goal to a path: what is least, what must be kept, and what came out.
 *
 * All four goals are one problem, "least cost among what gains enough": for LATENCY and ALIGN time
 * costs and parameters gain; for PARAMETERS and GROW minus parameters cost and minus time gains.
 * The goals differ in their candidates and in what is enough. What a plan says of time and
 * parameters is counted anew from the network at its widths.
 *
 * Threads: one at a time.
 */
#include "wave/plan.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "wave/plan_cost.h"
#include "wave/plan_graph.h"
#include "wave/plan_search.h"

enum { CANDIDATES = 24, CANDIDATES_LEAST = 4, CANDIDATES_MOST = 4096, ALIGNMENT = 8 };
enum { ARCS = 3 * 1000 * 1000 };

static struct wg_plan_opts with_defaults(const struct wg_plan_opts *opts)
{
    struct wg_plan_opts full = *opts;
    full.kept = opts->kept != 0 ? opts->kept : 1;
    full.least = opts->least != 0 ? opts->least : opts->goal == WG_PLAN_ALIGN ? 0.8 : 0.5;
    full.most = opts->most != 0 ? opts->most : 1.25;
    full.alignment = opts->alignment != 0 ? opts->alignment : ALIGNMENT;
    full.candidates = opts->candidates != 0 ? opts->candidates : CANDIDATES;
    full.tolerance = opts->tolerance != 0 ? opts->tolerance : 0.01;
    full.states = opts->states != 0 ? opts->states : ARCS;
    return full;
}

static enum wg_code check_widths(const struct wg_network *network, const struct wg_plan_opts *opts,
                                 struct wg_error *err)
{
    for (size_t w = 0; w < network->width_count; w++) {
        const struct wg_width *width = &network->widths[w];
        if (opts->pruned != NULL && opts->pruned[w] == 0)
            return wg__fail(err, WG_EINVAL, "width '%s' is pruned to 0 channels, expected 1 to %u",
                            width->name, width->channels);
        if (opts->importance != NULL &&
            !(opts->importance[w] >= 0 && isfinite(opts->importance[w])))
            return wg__fail(err, WG_EINVAL,
                            "the importance of width '%s' is %g, expected 0 or more", width->name,
                            opts->importance[w]);
    }
    return WG_OK;
}

static enum wg_code check_opts(const struct wg_network *network, const struct wg_plan_opts *opts,
                               struct wg_error *err)
{
    if ((unsigned)opts->goal >= WG_PLAN_GOAL_COUNT)
        return wg__fail(err, WG_EINVAL, "no such goal of a plan: %d", (int)opts->goal);
    if (!(opts->kept > 0 && opts->kept <= 100))
        return wg__fail(err, WG_EINVAL,
                        "the share to keep is %g, expected one above 0, at most 100", opts->kept);
    if (!(opts->limit_s >= 0 && isfinite(opts->limit_s)))
        return wg__fail(err, WG_EINVAL, "the limit is %g s, expected one above 0", opts->limit_s);
    if (!(opts->least > 0 && opts->least <= opts->most && opts->most <= 100))
        return wg__fail(err, WG_EINVAL,
                        "the range of widths is %g:%g times the present, expected 0 < least <= "
                        "most <= 100",
                        opts->least, opts->most);
    if (!(opts->tolerance >= 0 && opts->tolerance < 1))
        return wg__fail(err, WG_EINVAL, "the tolerance is %g, expected a share from 0 to 1",
                        opts->tolerance);
    if (opts->candidates < CANDIDATES_LEAST || opts->candidates > CANDIDATES_MOST)
        return wg__fail(err, WG_EINVAL, "%zu candidates a width, expected %d to %d",
                        opts->candidates, CANDIDATES_LEAST, CANDIDATES_MOST);
    return check_widths(network, opts, err);
}

/* What one run works with. */
struct task {
    struct wg_plan_space *space;
    bool by_value;
    double need;
    uint32_t *values; /* a variable each */
    double cost, gain, bound;
    bool is_found, is_proven;
    size_t tried;
};

static enum wg_code plan_whole(struct task *task, const struct wg_plan_graph *graph,
                               const uint32_t *order, const struct wg_plan_domain *domains,
                               uint16_t *choices, struct wg_error *err)
{
    struct wg_plan_path path = {.choices = choices};
    const enum wg_code code = wg__plan_path(graph, task->need, &path, err);
    if (code != WG_OK)
        return code;
    for (size_t l = 0; l < graph->level_count; l++)
        task->values[order[l]] = domains[order[l]].values[choices[l]];
    task->cost = path.cost;
    task->gain = path.gain;
    task->bound = path.bound;
    task->is_found = path.is_found;
    task->is_proven = path.is_proven;
    task->tried += path.tried;
    return WG_OK;
}

static enum wg_code plan_in_parts(struct task *task, const uint32_t *order, struct wg_error *err)
{
    struct wg_plan_found found = {.values = task->values};
    const enum wg_code code =
        wg__plan_search(task->space, order, task->by_value, task->need, &found, err);
    task->cost = found.cost;
    task->gain = found.gain;
    task->bound = NAN;
    task->is_found = found.is_found;
    task->is_proven = false;
    task->tried += found.tried;
    return code;
}

static enum wg_code choose(struct task *task, struct wg_error *err)
{
    struct wg_plan_space *space = task->space;
    struct wg_arena *arena = &space->arena;
    const size_t count = space->variable_count;
    task->values = wg__arena_alloc(arena, count, sizeof *task->values);
    uint32_t *order = wg__arena_alloc(arena, count, sizeof *order);
    uint16_t *choices = wg__arena_alloc(arena, count, sizeof *choices);
    struct wg_plan_domain *domains = wg__arena_alloc(arena, count, sizeof *domains);
    if (task->values == NULL || order == NULL || choices == NULL || domains == NULL)
        return wg__fail(err, WG_ENOMEM, "no memory for a plan of %zu widths", count);
    for (size_t v = 0; v < count; v++)
        domains[v] =
            (struct wg_plan_domain){space->variables[v].values, space->variables[v].value_count};
    enum wg_code code = count > 0 ? wg__plan_order(space, order, err) : WG_OK;
    if (code != WG_OK)
        return code;
    struct wg_plan_graph graph;
    code = wg__plan_graph_init(&graph, space, domains, order, task->by_value, space->opts->states,
                               err);
    if (code != WG_OK)
        return code;
    task->tried = graph.arc_count;
    const bool fits = graph.fits;
    if (fits)
        code = plan_whole(task, &graph, order, domains, choices, err);
    wg__plan_graph_fini(&graph);
    return fits ? code : plan_in_parts(task, order, err);
}

static enum wg_code set_need(struct task *task, struct wg_error *err)
{
    const struct wg_plan_opts *opts = task->space->opts;
    struct wg_plan_cost present;
    if (!wg__plan_space_total(task->space, task->space->present, &present))
        return wg__fail(err, WG_EUNSUPPORTED, "the time of the present widths is not known");
    task->by_value = opts->goal == WG_PLAN_PARAMETERS || opts->goal == WG_PLAN_GROW;
    if (task->by_value)
        task->need = -(opts->limit_s > 0 ? opts->limit_s : present.time_s);
    else
        task->need = opts->kept * present.value;
    return WG_OK;
}

static enum wg_code fail_limit(const struct task *task, struct wg_error *err)
{
    const char *among = isnan(task->bound) ? "none was found" : "there is none";
    const char *what = task->space->opts->keeps_flops ? "operations" : "parameters";
    if (task->by_value)
        return wg__fail(err, WG_ESTATE,
                        "no plan takes at most %.6g ms: of the candidates %s, the least is %.6g ms",
                        -1e3 * task->need, among, -1e3 * task->gain);
    return wg__fail(err, WG_ESTATE, "no plan keeps %.6g %s: of the candidates %s, the most is %.6g",
                    task->need, what, among, task->gain);
}

static void sum_layers(const struct wg_plan_space *space, const uint32_t *channels, double *time_s,
                       double *parameters, double *flops)
{
    *time_s = *parameters = *flops = 0;
    for (size_t i = 0; i < space->layer_count; i++) {
        struct wg_layer moved;
        *time_s += wg__plan_cost_at(space, i, channels).time_s;
        if (wg__layer_at(space->layers[i].layer, channels, &moved, NULL) != WG_OK)
            continue; /* the time is NAN then */
        *parameters += (double)moved.parameters;
        *flops += wg__plan_layer_flops(&moved);
    }
}

static enum wg_code fill(const struct task *task, struct wg_plan *out, struct wg_error *err)
{
    const struct wg_plan_space *space = task->space;
    const size_t count = space->network->width_count;
    struct wg_plan plan = {.width_count = count, .tried = task->tried};
    plan.channels = wg__alloc_zeroed(count, sizeof *plan.channels);
    if (plan.channels == NULL)
        return wg__fail(err, WG_ENOMEM, "no memory for a plan of %zu widths", count);
    for (size_t w = 0; w < count; w++)
        plan.channels[w] = space->present[w];
    for (size_t v = 0; v < space->variable_count; v++)
        plan.channels[space->variables[v].width] = task->values[v];
    sum_layers(space, space->present, &plan.before_s, &plan.before_parameters, &plan.before_flops);
    sum_layers(space, plan.channels, &plan.time_s, &plan.parameters, &plan.flops);
    plan.is_optimal = task->is_proven;
    plan.gap = task->is_proven ? 0 : (task->cost - task->bound) / fabs(task->cost);
    *out = plan;
    return WG_OK;
}

enum wg_code wg__plan(const struct wg_network *network, wg_layer_time_fn time_s,
                      const void *context, const struct wg_plan_opts *opts, struct wg_plan *out,
                      struct wg_error *err)
{
    const struct wg_plan_opts full = with_defaults(opts);
    enum wg_code code = check_opts(network, &full, err);
    if (code != WG_OK)
        return code;
    struct wg_plan_space space;
    code = wg__plan_space_init(&space, network, time_s, context, &full, err);
    if (code != WG_OK)
        return code;
    struct task task = {.space = &space};
    code = set_need(&task, err);
    if (code == WG_OK)
        code = choose(&task, err);
    if (code == WG_OK && !task.is_found)
        code = fail_limit(&task, err);
    if (code == WG_OK)
        code = fill(&task, out, err);
    wg__plan_space_fini(&space);
    return code;
}

void wg__plan_fini(struct wg_plan *plan)
{
    wg__free(plan->channels);
    *plan = (struct wg_plan){.channels = NULL};
}
