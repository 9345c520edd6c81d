/* SPDX-License-Identifier: MIT
 *
 * A search in large neighbourhoods: each is a graph of states small enough to be solved.
 *
 * Two kinds take turns. In one every variable may move to the candidate below or above its present
 * one, all at once, which exchanges width between far layers. In the other a stretch of the order
 * is free over all candidates and the rest stays. Both keep the constraint of the whole network.
 * A neighbourhood whose graph does not fit is halved. The search ends when a round of both brought
 * nothing and so did some stretches drawn at random.
 *
 * Threads: one at a time.
 */
#include "wave/plan_search.h"

#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"

enum { STRETCH = 12, ARCS_MAX = 400 * 1000, ROUNDS_MAX = 20, RANDOM_STRETCHES = 12 };

struct seeker {
    struct wg_plan_space *space;
    const uint32_t *order;
    bool by_value;
    double need;
    struct wg_plan_found *found;
    struct wg_plan_domain *domains;
    uint16_t *choices;
};

static size_t index_of(const struct wg_plan_variable *variable, uint32_t value)
{
    size_t at = 0;
    while (variable->values[at] != value)
        at++;
    return at;
}

/* Leaves variable `v` the candidates that are at most `reach` from its value. */
static void set_reach(struct seeker *seeker, uint32_t v, size_t reach)
{
    const struct wg_plan_variable *variable = &seeker->space->variables[v];
    const size_t at = index_of(variable, seeker->found->values[v]);
    const size_t from = at < reach ? 0 : at - reach;
    const size_t to =
        variable->value_count - 1 - at < reach ? variable->value_count - 1 : at + reach;
    seeker->domains[v] = (struct wg_plan_domain){variable->values + from, to - from + 1};
}

static bool is_better(const struct seeker *seeker, const struct wg_plan_path *path)
{
    const struct wg_plan_found *found = seeker->found;
    if (!path->is_found)
        return !found->is_found && path->gain > found->gain;
    const double slack = 1e-12 * fabs(found->cost);
    return !found->is_found || path->cost < found->cost - slack ||
           (path->cost <= found->cost + slack && path->gain > found->gain);
}

/* Plans over the present domains. `fits`: the graph did. */
static enum wg_code plan_domains(struct seeker *seeker, bool *fits, bool *moved,
                                 struct wg_error *err)
{
    struct wg_plan_graph graph;
    enum wg_code code = wg__plan_graph_init(&graph, seeker->space, seeker->domains, seeker->order,
                                            seeker->by_value, ARCS_MAX, err);
    if (code != WG_OK)
        return code;
    *fits = graph.fits;
    struct wg_plan_path path = {.choices = seeker->choices};
    if (graph.fits)
        code = wg__plan_path(&graph, seeker->need, &path, err);
    if (code == WG_OK && graph.fits && !isinf(path.cost) && is_better(seeker, &path)) {
        seeker->found->cost = path.cost;
        seeker->found->gain = path.gain;
        seeker->found->is_found = path.is_found;
        for (size_t l = 0; l < graph.level_count; l++) {
            const uint32_t v = seeker->order[l];
            seeker->found->values[v] = seeker->domains[v].values[seeker->choices[l]];
        }
        *moved = true;
    }
    seeker->found->tried += path.tried + graph.arc_count;
    wg__plan_graph_fini(&graph);
    return code;
}

/* Plans the `count` variables of the order from `first` on, each within `reach`; a stretch that is
 * too large is halved. */
static enum wg_code plan_stretch(struct seeker *seeker, size_t first, size_t count, size_t reach,
                                 bool *moved, struct wg_error *err)
{
    const size_t all = seeker->space->variable_count;
    for (size_t from = first; from < first + count && from < all;) {
        size_t length = first + count - from;
        for (bool fits = false; !fits;) {
            for (size_t l = 0; l < all; l++)
                set_reach(seeker, seeker->order[l], l >= from && l - from < length ? reach : 0);
            const enum wg_code code = plan_domains(seeker, &fits, moved, err);
            if (code != WG_OK)
                return code;
            if (fits || length == 1)
                break;
            length = (length + 1) / 2;
        }
        from += length;
    }
    return WG_OK;
}

static enum wg_code round_of_all(struct seeker *seeker, bool *moved, struct wg_error *err)
{
    const size_t all = seeker->space->variable_count;
    enum wg_code code = plan_stretch(seeker, 0, all, 1, moved, err);
    for (size_t first = 0; first < all && code == WG_OK; first += STRETCH / 2)
        code = plan_stretch(seeker, first, STRETCH, SIZE_MAX / 2, moved, err);
    return code;
}

static enum wg_code seek(struct seeker *seeker, struct wg_error *err)
{
    struct wg_rng rng;
    wg__rng_init(&rng, seeker->space->opts->seed);
    for (unsigned i = 0; i < ROUNDS_MAX; i++) {
        bool moved = false;
        enum wg_code code = round_of_all(seeker, &moved, err);
        for (unsigned k = 0; k < RANDOM_STRETCHES && !moved && code == WG_OK; k++) {
            const uint32_t first = wg__rng_below(&rng, (uint32_t)seeker->space->variable_count);
            const size_t length = 2 + wg__rng_below(&rng, 2 * STRETCH);
            code = plan_stretch(seeker, first, length, 1 + wg__rng_below(&rng, 8), &moved, err);
        }
        if (code != WG_OK || !moved)
            return code;
    }
    return WG_OK;
}

enum wg_code wg__plan_search(struct wg_plan_space *space, const uint32_t *order, bool by_value,
                             double need, struct wg_plan_found *out, struct wg_error *err)
{
    struct seeker seeker = {
        .space = space, .order = order, .by_value = by_value, .need = need, .found = out};
    struct wg_plan_cost total;
    (void)wg__plan_space_total(space, space->present, &total);
    const double worth = wg__plan_value(space, &total);
    out->cost = by_value ? -worth : total.time_s;
    out->gain = by_value ? -total.time_s : worth;
    out->is_found = out->gain >= need - 1e-12 * fabs(need);
    for (size_t v = 0; v < space->variable_count; v++)
        out->values[v] = space->variables[v].present;
    seeker.domains = wg__alloc_zeroed(space->variable_count, sizeof *seeker.domains);
    seeker.choices = wg__alloc_zeroed(space->variable_count, sizeof *seeker.choices);
    enum wg_code code = WG_OK;
    if (seeker.domains == NULL || seeker.choices == NULL)
        code =
            wg__fail(err, WG_ENOMEM, "no memory for a plan of %zu widths", space->variable_count);
    else
        code = seek(&seeker, err);
    wg__free(seeker.domains);
    wg__free(seeker.choices);
    return code;
}
