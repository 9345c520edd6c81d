/* SPDX-License-Identifier: MIT
 *
 * Parameters and operations kept at once, by a surrogate: one gain, a mix of the two.
 *
 * With shares p = parameters / those to keep and f = operations / those to keep, whoever keeps both
 * has (1 - w) p + w f >= 1 for each mix w from 0 to 1. So the least time among what keeps the mix
 * bounds the answer from below, for every w; and where what it finds keeps both, it is the answer,
 * proven. The mix is found by halving: one whose plan lacks operations wants more weight on them.
 * (Surrogate duality: Glover 1965, Greenberg and Pierskalla 1970.) Sizes are whole numbers, so
 * there may be no such w; then a little more of the mix is asked for until both are kept, and the
 * bound tells how far the best may be.
 *
 * Threads: one at a time.
 */
#include <math.h>

#include "base/error.h"
#include "wave/plan_solve.h"

enum { HALVINGS = 10, RAISES = 14, REFINEMENTS = 4 };

static const double first_raise = 1e-4;

struct keeper {
    struct wg_plan_space *space;
    double parameters, flops;     /* to keep */
    uint32_t *channels;           /* scratch: a width each */
    struct wg_plan_solution best; /* of those that keep both; else the latest */
    bool is_found;
    double bound; /* of all mixes; NAN: a mix had none */
    size_t tried;
};

enum lack { LACKS_NOTHING, LACKS_PARAMETERS, LACKS_FLOPS, LACKS_BOTH };

static enum lack lack_of(const struct keeper *keeper, const struct wg_plan_solution *solution)
{
    static const double slack = 1e-12;
    const struct wg_plan_space *space = keeper->space;
    struct wg_plan_cost sum;
    for (size_t w = 0; w < space->network->width_count; w++)
        keeper->channels[w] = space->present[w];
    for (size_t v = 0; v < space->variable_count; v++)
        keeper->channels[space->variables[v].width] = solution->values[v];
    (void)wg__plan_space_total(space, keeper->channels, &sum);
    const bool lacks_parameters = sum.parameters < keeper->parameters * (1 - slack);
    const bool lacks_flops = sum.flops < keeper->flops * (1 - slack);
    return lacks_parameters ? lacks_flops ? LACKS_BOTH : LACKS_PARAMETERS
           : lacks_flops    ? LACKS_FLOPS
                            : LACKS_NOTHING;
}

/* Plans for the mix `weight` of which `need` is asked; keeps the plan if it keeps both. */
static enum wg_code plan_mix(struct keeper *keeper, double weight, double need, enum lack *out,
                             struct wg_error *err)
{
    struct wg_plan_solution solution;
    keeper->space->per_parameter = (1 - weight) / keeper->parameters;
    keeper->space->per_flop = weight / keeper->flops;
    const enum wg_code code = wg__plan_solve(keeper->space, false, need, &solution, err);
    if (code != WG_OK)
        return code;
    keeper->tried += solution.tried;
    if (need <= 1) /* fmax leaves out a NAN */
        keeper->bound = fmax(keeper->bound, solution.is_proven ? solution.cost : solution.bound);
    *out = solution.is_found ? lack_of(keeper, &solution) : LACKS_BOTH;
    const bool keeps = *out == LACKS_NOTHING;
    if (keeps ? !keeper->is_found || solution.cost < keeper->best.cost : !keeper->is_found)
        keeper->best = solution;
    keeper->is_found = keeper->is_found || keeps;
    return WG_OK;
}

/* Halves the mixes between all parameters and all operations. `weight_out`: where they part. */
static enum wg_code find_mix(struct keeper *keeper, double *weight_out, struct wg_error *err)
{
    enum lack lack = LACKS_NOTHING;
    double low = 0, high = 1;
    enum wg_code code = plan_mix(keeper, 0, 1, &lack, err);
    if (code == WG_OK && lack == LACKS_FLOPS)
        code = plan_mix(keeper, 1, 1, &lack, err);
    for (unsigned i = 0; i < HALVINGS && code == WG_OK; i++) {
        if (lack == LACKS_NOTHING || lack == LACKS_BOTH)
            return WG_OK;
        *weight_out = (low + high) / 2;
        code = plan_mix(keeper, *weight_out, 1, &lack, err);
        if (lack == LACKS_FLOPS)
            low = *weight_out;
        else
            high = *weight_out;
    }
    return code;
}

/* Asks for more of the mix until both are kept, then for as little more as does. */
static enum wg_code raise_need(struct keeper *keeper, double weight, struct wg_error *err)
{
    enum lack lack = LACKS_BOTH;
    double low = 0, high = first_raise;
    enum wg_code code = WG_OK;
    for (unsigned i = 0; i < RAISES && code == WG_OK && !keeper->is_found; i++) {
        code = plan_mix(keeper, weight, 1 + high, &lack, err);
        if (code == WG_OK && lack != LACKS_NOTHING) {
            low = high;
            high *= 2;
        }
    }
    for (unsigned i = 0; i < REFINEMENTS && code == WG_OK && keeper->is_found; i++) {
        const double middle = (low + high) / 2;
        code = plan_mix(keeper, weight, 1 + middle, &lack, err);
        if (lack == LACKS_NOTHING)
            high = middle;
        else
            low = middle;
    }
    return code;
}

enum wg_code wg__plan_solve_both(struct wg_plan_space *space, double parameters, double flops,
                                 struct wg_plan_solution *out, struct wg_error *err)
{
    struct keeper keeper = {
        .space = space, .parameters = parameters, .flops = flops, .bound = (double)NAN};
    double weight = 0.5;
    keeper.channels =
        wg__arena_alloc(&space->arena, space->network->width_count, sizeof *keeper.channels);
    if (keeper.channels == NULL)
        return wg__fail(err, WG_ENOMEM, "no memory for %zu widths", space->network->width_count);
    enum wg_code code = find_mix(&keeper, &weight, err);
    /* Where not even a mix can be kept, both cannot. */
    const bool is_impossible = code == WG_OK && !keeper.best.is_found;
    if (code == WG_OK && !keeper.is_found && !is_impossible)
        code = raise_need(&keeper, weight, err);
    *out = keeper.best;
    out->is_found = keeper.is_found;
    out->tried = keeper.tried;
    if (!is_impossible)
        out->bound = keeper.is_found ? keeper.bound : (double)NAN;
    out->is_proven = out->is_found && out->cost <= keeper.bound * (1 + 1e-12);
    return code;
}
