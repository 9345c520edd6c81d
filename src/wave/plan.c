/* SPDX-License-Identifier: MIT
 *
 * From a goal to a path: what is least, what must be kept, and what came out.
 *
 * All four goals are one problem, "least cost among what gains enough": for LATENCY and ALIGN time
 * costs and parameters gain; for PARAMETERS and GROW minus parameters cost and minus time gains.
 * The goals differ in their candidates and in what is enough; where both parameters and operations
 * are to be kept, plan_both.c makes one gain of them. What a plan says of time and
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
#include "wave/plan_solve.h"

enum { CANDIDATES = 24, CANDIDATES_LEAST = 4, CANDIDATES_MOST = 4096, ALIGNMENT = 8 };
enum { ARCS = 3 * 1000 * 1000 };

static struct wg_plan_opts with_defaults(const struct wg_plan_opts *opts)
{
    struct wg_plan_opts full = *opts;
    full.kept = opts->kept != 0 || opts->flops_kept != 0 ? opts->kept : 1;
    full.least = opts->least != 0 ? opts->least : 0.8;
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
    const double shares[] = {opts->kept, opts->flops_kept};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        if (!(shares[i] >= 0 && shares[i] <= 100))
            return wg__fail(err, WG_EINVAL,
                            "the share to keep is %g, expected one above 0, at most 100",
                            shares[i]);
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

/* What is enough. */
static enum wg_code solve(struct wg_plan_space *space, struct wg_plan_solution *out,
                          struct wg_error *err)
{
    const struct wg_plan_opts *opts = space->opts;
    struct wg_plan_cost present;
    if (!wg__plan_space_total(space, space->present, &present))
        return wg__fail(err, WG_EUNSUPPORTED, "the time of the present widths is not known");
    const bool by_value = opts->goal == WG_PLAN_PARAMETERS || opts->goal == WG_PLAN_GROW;
    space->per_parameter = by_value || opts->kept > 0 ? 1 : 0;
    space->per_flop = 1 - space->per_parameter;
    if (by_value)
        return wg__plan_solve(space, true, -(opts->limit_s > 0 ? opts->limit_s : present.time_s),
                              out, err);
    const double parameters = opts->kept * present.parameters;
    const double flops = opts->flops_kept * present.flops;
    if (parameters > 0 && flops > 0)
        return wg__plan_solve_both(space, parameters, flops, out, err);
    return wg__plan_solve(space, false, opts->kept > 0 ? parameters : flops, out, err);
}

static enum wg_code fail_limit(const struct wg_plan_space *space,
                               const struct wg_plan_solution *solution, struct wg_error *err)
{
    const struct wg_plan_opts *opts = space->opts;
    const char *among = isnan(solution->bound) ? "none was found" : "there is none";
    if (solution->by_value)
        return wg__fail(err, WG_ESTATE,
                        "no plan takes at most %.6g ms: of the candidates %s, the least is %.6g ms",
                        -1e3 * solution->need, among, -1e3 * solution->gain);
    if (opts->kept > 0 && opts->flops_kept > 0)
        return wg__fail(err, WG_ESTATE,
                        "no plan keeps %.6g of the parameters and %.6g of the operations: of the "
                        "candidates %s",
                        opts->kept, opts->flops_kept, among);
    return wg__fail(err, WG_ESTATE, "no plan keeps %.6g %s: of the candidates %s, the most is %.6g",
                    solution->need, opts->kept > 0 ? "parameters" : "operations", among,
                    solution->gain);
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

static enum wg_code fill(const struct wg_plan_space *space, const struct wg_plan_solution *solution,
                         struct wg_plan *out, struct wg_error *err)
{
    const size_t count = space->network->width_count;
    struct wg_plan plan = {.width_count = count, .tried = solution->tried};
    plan.channels = wg__alloc_zeroed(count, sizeof *plan.channels);
    if (plan.channels == NULL)
        return wg__fail(err, WG_ENOMEM, "no memory for a plan of %zu widths", count);
    for (size_t w = 0; w < count; w++)
        plan.channels[w] = space->present[w];
    for (size_t v = 0; v < space->variable_count; v++)
        plan.channels[space->variables[v].width] = solution->values[v];
    sum_layers(space, space->present, &plan.before_s, &plan.before_parameters, &plan.before_flops);
    sum_layers(space, plan.channels, &plan.time_s, &plan.parameters, &plan.flops);
    plan.is_optimal = solution->is_proven;
    plan.gap = solution->is_proven ? 0 : (solution->cost - solution->bound) / fabs(solution->cost);
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
    struct wg_plan_solution solution = {.values = NULL};
    code = solve(&space, &solution, err);
    if (code == WG_OK && !solution.is_found)
        code = fail_limit(&space, &solution, err);
    if (code == WG_OK)
        code = fill(&space, &solution, out, err);
    wg__plan_space_fini(&space);
    return code;
}

void wg__plan_fini(struct wg_plan *plan)
{
    wg__free(plan->channels);
    *plan = (struct wg_plan){.channels = NULL};
}
