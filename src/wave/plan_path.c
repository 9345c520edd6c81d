/* SPDX-License-Identifier: MIT
 *
 * The cheapest path that gains enough: Lagrange's multiplier for the bound, labels for the proof.
 *
 * For a price `lambda` of gain the path of least cost - lambda * gain is found by one backward
 * pass, and what it weighs plus lambda * need is a bound on every path that gains enough. The price
 * with the highest bound is found by intersecting the lines of two paths, one that gains too
 * little and one that gains enough, until no path lies below (Handler and Zang 1980; LARAC). It
 * also gives, at every state, the least weight of what remains.
 *
 * Then labels (cost, gain so far) run forward. At a state only those stay that no other beats in
 * both, and of these only those that can still end below the best path known, by three bounds on
 * what remains: its least cost, its most gain, its least weight. With each label the plan that
 * completes it best by weight is tried as a new best path. When the labels run out, the best path
 * is proven; where they become too many, they are run again with those left out that could improve
 * by less than a share, which is then the gap.
 *
 * Threads: pure.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "wave/plan_graph.h"

enum { MULTIPLIER_ROUNDS = 60, BEAM = 500 };
enum { LABELS_MAX = 400 * 1000, OFFERS_A_LABEL = 15 };

/* Costs are sums of some hundred terms; what is nearer than this share is the same. */
static const double rounding = 1e-12;
/* Shares of improvement that a run of labels may leave out, in turn. */
static const double ladder[] = {0, 1e-4, 1e-3, 1e-2};

/* What remains from each state on, by one backward pass. */
struct rest {
    double *weight, *cost, *gain; /* INFINITY: the end cannot be reached */
    uint16_t *choice;
};

/* What leads to a state. */
struct head {
    double weight, cost, gain; /* INFINITY: nothing does */
    uint32_t state;            /* of the level before */
    uint16_t choice;
};

struct label {
    double cost, gain;
    uint32_t parent; /* index of a label */
    uint32_t state;
    uint16_t choice;
};

struct search {
    const struct wg_plan_graph *graph;
    double need, need_slack; /* without the graph's own gain */
    double lambda, bound;
    double share; /* improvements below it are left out */
    size_t beam;  /* labels that a level keeps; 0: all */
    size_t label_limit, offer_limit;
    struct rest cheap, rich, priced, scratch;
    double rich_cost, rich_gain; /* of the path that gains most */
    bool has_best;
    double best_cost, best_gain;
    uint16_t *best; /* a choice a level */
    size_t tried;
    struct label *labels;
    size_t label_count, label_space;
    struct label *offers; /* of one level */
    size_t offer_count, offer_space, offers_made;
    uint32_t *starts; /* of each state's offers */
    struct label *sorted;
    size_t sorted_space;
};

static int rest_init(struct rest *rest, size_t count)
{
    rest->weight = wg__alloc_zeroed(count, sizeof *rest->weight);
    rest->cost = wg__alloc_zeroed(count, sizeof *rest->cost);
    rest->gain = wg__alloc_zeroed(count, sizeof *rest->gain);
    rest->choice = wg__alloc_zeroed(count, sizeof *rest->choice);
    return rest->weight != NULL && rest->cost != NULL && rest->gain != NULL && rest->choice != NULL;
}

static void rest_fini(struct rest *rest)
{
    wg__free(rest->weight);
    wg__free(rest->cost);
    wg__free(rest->gain);
    wg__free(rest->choice);
}

static void rest_of_state(const struct wg_plan_graph *graph, const struct wg_plan_level *level,
                          size_t state, double alpha, double lambda, struct rest *rest)
{
    const struct wg_plan_arc *arcs = graph->arcs + level->first_arc + state * level->choice_count;
    double least = INFINITY;
    double cost = INFINITY;
    double gain = -INFINITY;
    size_t choice = 0;
    for (size_t i = 0; i < level->choice_count; i++) {
        if (arcs[i].to == WG_PLAN_NO_STATE)
            continue;
        const size_t to = level[1].first_state + arcs[i].to;
        const double weight = alpha * arcs[i].cost - lambda * arcs[i].gain + rest->weight[to];
        if (!(weight <= least) || isinf(weight))
            continue;
        const double this_cost = arcs[i].cost + rest->cost[to];
        const double this_gain = arcs[i].gain + rest->gain[to];
        if (weight == least && (alpha > 0 ? this_gain <= gain : this_cost >= cost))
            continue;
        least = weight;
        cost = this_cost;
        gain = this_gain;
        choice = i;
    }
    const size_t at = level->first_state + state;
    rest->weight[at] = least;
    rest->cost[at] = cost;
    rest->gain[at] = gain;
    rest->choice[at] = (uint16_t)choice;
}

/* Least alpha * cost - lambda * gain of what remains, from the last level to the root. */
static void rest_run(struct search *search, double alpha, double lambda, struct rest *rest)
{
    const struct wg_plan_graph *graph = search->graph;
    const size_t last = graph->levels[graph->level_count].first_state;
    rest->weight[last] = rest->cost[last] = rest->gain[last] = 0;
    for (size_t l = graph->level_count; l-- > 0;) {
        const struct wg_plan_level *level = &graph->levels[l];
        for (size_t s = 0; s < level->state_count; s++)
            rest_of_state(graph, level, s, alpha, lambda, rest);
    }
    search->tried += graph->arc_count;
}

/* Writes the choices from a state of `level` to the end. */
static void rest_follow(const struct wg_plan_graph *graph, const struct rest *rest, size_t level,
                        size_t state, uint16_t *choices)
{
    for (size_t l = level; l < graph->level_count; l++) {
        const struct wg_plan_level *at = &graph->levels[l];
        choices[l] = rest->choice[at->first_state + state];
        state = graph->arcs[at->first_arc + state * at->choice_count + choices[l]].to;
    }
}

static double slack(double cost)
{
    return rounding * fabs(cost);
}

static bool is_better(const struct search *search, double cost, double gain)
{
    if (gain < search->need_slack)
        return false;
    if (!search->has_best || cost < search->best_cost - slack(search->best_cost))
        return true;
    return cost <= search->best_cost + slack(search->best_cost) && gain > search->best_gain;
}

static void take_rest(struct search *search, const struct rest *rest)
{
    if (!is_better(search, rest->cost[0], rest->gain[0]))
        return;
    search->has_best = true;
    search->best_cost = rest->cost[0];
    search->best_gain = rest->gain[0];
    rest_follow(search->graph, rest, 0, 0, search->best);
}

static void swap_rests(struct rest *a, struct rest *b)
{
    const struct rest held = *a;
    *a = *b;
    *b = held;
}

/* Finds the price with the highest bound; `priced` is the rest at it. */
static void find_price(struct search *search)
{
    double poor_cost = search->cheap.cost[0];
    double poor_gain = search->cheap.gain[0];
    double rich_cost = search->rich.cost[0];
    double rich_gain = search->rich.gain[0];
    search->lambda = 0;
    search->bound = poor_cost;
    rest_run(search, 1, 0, &search->priced);
    if (poor_gain >= search->need_slack)
        return;
    for (unsigned i = 0; i < MULTIPLIER_ROUNDS && rich_gain > poor_gain; i++) {
        const double lambda = (rich_cost - poor_cost) / (rich_gain - poor_gain);
        rest_run(search, 1, lambda, &search->scratch);
        take_rest(search, &search->scratch);
        const double weight = search->scratch.weight[0];
        const double line = poor_cost - lambda * poor_gain;
        const double cost = search->scratch.cost[0];
        const double gain = search->scratch.gain[0];
        if (weight + lambda * search->need > search->bound) {
            search->bound = weight + lambda * search->need;
            search->lambda = lambda;
            swap_rests(&search->priced, &search->scratch);
        }
        if (!(weight < line - rounding * (fabs(line) + fabs(poor_cost))))
            break;
        if (gain >= search->need_slack) {
            rich_cost = cost;
            rich_gain = gain;
        } else {
            poor_cost = cost;
            poor_gain = gain;
        }
    }
}

/* Least weight from the root to each state at the price, and the arc by which it comes. */
static void head_run(const struct search *search, struct head *head)
{
    const struct wg_plan_graph *graph = search->graph;
    for (size_t s = 1; s < graph->state_count; s++)
        head[s] = (struct head){.weight = INFINITY};
    head[0] = (struct head){.weight = 0};
    for (size_t l = 0; l < graph->level_count; l++) {
        const struct wg_plan_level *level = &graph->levels[l];
        for (size_t s = 0; s < level->state_count; s++) {
            const struct head from = head[level->first_state + s];
            const struct wg_plan_arc *arcs =
                graph->arcs + level->first_arc + s * level->choice_count;
            for (size_t c = 0; c < level->choice_count; c++) {
                if (arcs[c].to == WG_PLAN_NO_STATE)
                    continue;
                const double weight = from.weight + arcs[c].cost - search->lambda * arcs[c].gain;
                struct head *to = &head[level[1].first_state + arcs[c].to];
                if (weight < to->weight)
                    *to = (struct head){weight, from.cost + arcs[c].cost, from.gain + arcs[c].gain,
                                        (uint32_t)s, (uint16_t)c};
            }
        }
    }
}

static void head_follow(const struct search *search, const struct head *head, size_t level,
                        size_t state)
{
    for (size_t l = level; l > 0; l--) {
        const struct head *at = &head[search->graph->levels[l].first_state + state];
        search->best[l - 1] = at->choice;
        state = at->state;
    }
}

/* Tries, for each arc, the path of least weight that goes over it. */
static void take_arcs_of(struct search *search, const struct head *head, size_t level, size_t state)
{
    const struct wg_plan_graph *graph = search->graph;
    const struct wg_plan_level *at = &graph->levels[level];
    const struct head *from = &head[at->first_state + state];
    const struct wg_plan_arc *arcs = graph->arcs + at->first_arc + state * at->choice_count;
    for (size_t c = 0; c < at->choice_count && !isinf(from->weight); c++) {
        if (arcs[c].to == WG_PLAN_NO_STATE)
            continue;
        const size_t to = at[1].first_state + arcs[c].to;
        const double cost = from->cost + arcs[c].cost + search->priced.cost[to];
        const double gain = from->gain + arcs[c].gain + search->priced.gain[to];
        if (isinf(search->priced.weight[to]) || !is_better(search, cost, gain))
            continue;
        search->has_best = true;
        search->best_cost = cost;
        search->best_gain = gain;
        head_follow(search, head, level, state);
        search->best[level] = (uint16_t)c;
        rest_follow(graph, &search->priced, level + 1, arcs[c].to, search->best);
    }
}

static bool take_arcs(struct search *search)
{
    const struct wg_plan_graph *graph = search->graph;
    struct head *head = wg__alloc_zeroed(graph->state_count, sizeof *head);
    if (head == NULL)
        return false;
    head_run(search, head);
    for (size_t l = 0; l < graph->level_count; l++) {
        for (size_t s = 0; s < graph->levels[l].state_count; s++)
            take_arcs_of(search, head, l, s);
    }
    wg__free(head);
    return true;
}

static bool grow(struct label **list, size_t *space, size_t count)
{
    if (count <= *space)
        return true;
    size_t more = *space == 0 ? 4096 : *space;
    while (more < count)
        more *= 2;
    struct label *bigger = wg__realloc_array(*list, more, sizeof *bigger);
    if (bigger == NULL)
        return false;
    *list = bigger;
    *space = more;
    return true;
}

/* The choices that lead to a label of `level`, from the labels that it comes from. */
static void follow_back(const struct search *search, size_t level, uint32_t label,
                        uint16_t *choices)
{
    for (size_t l = level; l > 0; l--) {
        choices[l - 1] = search->labels[label].choice;
        label = search->labels[label].parent;
    }
}

/* Takes the plan that goes over this label and arc and ends by the rest's way, if it is better. */
static void take_completion(struct search *search, size_t level, uint32_t parent, size_t choice,
                            double cost, double gain, uint32_t to)
{
    const struct rest *rest = &search->priced;
    const size_t at = search->graph->levels[level + 1].first_state + to;
    if (!is_better(search, cost + rest->cost[at], gain + rest->gain[at]))
        return;
    search->has_best = true;
    search->best_cost = cost + rest->cost[at];
    search->best_gain = gain + rest->gain[at];
    follow_back(search, level, parent, search->best);
    search->best[level] = (uint16_t)choice;
    rest_follow(search->graph, rest, level + 1, to, search->best);
}

/* Whether a label there may still end better than the best by more than the share left out. */
static bool is_promising(const struct search *search, double cost, double gain, size_t at)
{
    if (isinf(search->priced.weight[at]) || gain + search->rich.gain[at] < search->need_slack)
        return false;
    if (!search->has_best)
        return true;
    const double most = search->best_cost - search->share * fabs(search->best_cost) +
                        (search->share > 0 ? 0 : slack(search->best_cost));
    return cost + search->cheap.cost[at] <= most &&
           cost - search->lambda * (gain - search->need) + search->priced.weight[at] <= most;
}

static int by_cost(const void *a, const void *b)
{
    const struct label *x = a;
    const struct label *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return x->gain > y->gain ? -1 : x->gain < y->gain;
}

/* Offers each label of `level` along its arcs. */
static bool offer_level(struct search *search, size_t level, size_t first)
{
    const struct wg_plan_graph *graph = search->graph;
    const struct wg_plan_level *at = &graph->levels[level];
    search->offer_count = 0;
    for (size_t i = first; i < search->label_count; i++) {
        const struct label label = search->labels[i];
        const struct wg_plan_arc *arcs =
            graph->arcs + at->first_arc + label.state * at->choice_count;
        for (size_t c = 0; c < at->choice_count; c++) {
            if (arcs[c].to == WG_PLAN_NO_STATE)
                continue;
            const double cost = label.cost + arcs[c].cost;
            const double gain = label.gain + arcs[c].gain;
            if (!is_promising(search, cost, gain, at[1].first_state + arcs[c].to))
                continue;
            take_completion(search, level, (uint32_t)i, c, cost, gain, arcs[c].to);
            if (!grow(&search->offers, &search->offer_space, search->offer_count + 1))
                return false;
            search->offers[search->offer_count++] =
                (struct label){cost, gain, (uint32_t)i, arcs[c].to, (uint16_t)c};
        }
        search->offers_made += at->choice_count;
        if (search->offers_made > search->offer_limit)
            return true;
    }
    return true;
}

/* Sorts the offers by state, cost and gain. */
static bool sort_offers(struct search *search, size_t state_count)
{
    if (!grow(&search->sorted, &search->sorted_space, search->offer_count))
        return false;
    uint32_t *starts = search->starts;
    memset(starts, 0, (state_count + 1) * sizeof *starts);
    for (size_t i = 0; i < search->offer_count; i++)
        starts[search->offers[i].state + 1]++;
    for (size_t s = 0; s < state_count; s++)
        starts[s + 1] += starts[s];
    for (size_t i = 0; i < search->offer_count; i++)
        search->sorted[starts[search->offers[i].state]++] = search->offers[i];
    /* Each start has moved to its end, which is the next one's start. */
    size_t from = 0;
    for (size_t s = 0; s < state_count; s++) {
        if (starts[s] - from > 1)
            qsort(search->sorted + from, starts[s] - from, sizeof *search->sorted, by_cost);
        from = starts[s];
    }
    return true;
}

static double bound_of(const struct search *search, const struct label *label, size_t first_state)
{
    return label->cost - search->lambda * label->gain +
           search->priced.weight[first_state + label->state];
}

static int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Keeps the beam's width of a level's labels, those of the lowest bounds. */
static bool narrow(struct search *search, size_t first, size_t first_state)
{
    const size_t count = search->label_count - first;
    if (search->beam == 0 || count <= search->beam)
        return true;
    double *bounds = wg__alloc_zeroed(count, sizeof *bounds);
    if (bounds == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        bounds[i] = bound_of(search, &search->labels[first + i], first_state);
    qsort(bounds, count, sizeof *bounds, by_number);
    const double most = bounds[search->beam - 1];
    wg__free(bounds);
    size_t kept = first;
    for (size_t i = first; i < search->label_count; i++) {
        if (bound_of(search, &search->labels[i], first_state) <= most)
            search->labels[kept++] = search->labels[i];
    }
    search->label_count = kept;
    return true;
}

/* Keeps, of the sorted offers to each state, those that no cheaper one beats in gain. */
static bool keep_offers(struct search *search, size_t level)
{
    const struct wg_plan_level *at = &search->graph->levels[level + 1];
    if (!sort_offers(search, at->state_count))
        return false;
    if (!grow(&search->labels, &search->label_space, search->label_count + search->offer_count))
        return false;
    size_t from = 0;
    for (size_t s = 0; s < at->state_count; s++) {
        double most = -INFINITY;
        for (; from < search->starts[s]; from++) {
            const struct label *offer = &search->sorted[from];
            if (offer->gain <= most ||
                !is_promising(search, offer->cost, offer->gain, at->first_state + s))
                continue;
            most = offer->gain;
            search->labels[search->label_count++] = *offer;
        }
    }
    return true;
}

enum outcome { PROVEN, TOO_MANY, NO_MEMORY };

static enum outcome run_labels(struct search *search)
{
    const struct wg_plan_graph *graph = search->graph;
    search->label_count = 0;
    search->offers_made = 0;
    if (!grow(&search->labels, &search->label_space, 1))
        return NO_MEMORY;
    search->labels[search->label_count++] = (struct label){.cost = 0};
    size_t first = 0;
    for (size_t l = 0; l < graph->level_count; l++) {
        const size_t end = search->label_count;
        if (!offer_level(search, l, first) || !keep_offers(search, l) ||
            !narrow(search, end, graph->levels[l + 1].first_state))
            return NO_MEMORY;
        first = end;
        if (search->label_count > search->label_limit || search->offers_made > search->offer_limit)
            return TOO_MANY;
    }
    return PROVEN;
}

static void prove(struct search *search, enum outcome *outcome)
{
    search->beam = BEAM;
    if (!take_arcs(search) || run_labels(search) == NO_MEMORY) {
        *outcome = NO_MEMORY;
        return;
    }
    search->tried += search->offers_made;
    search->beam = 0;
    for (size_t i = 0; i < sizeof ladder / sizeof *ladder; i++) {
        search->share = ladder[i];
        if (search->has_best && i > 0 &&
            search->bound >= search->best_cost - ladder[i] * fabs(search->best_cost)) {
            *outcome = TOO_MANY; /* the bound says as much already */
            return;
        }
        *outcome = run_labels(search);
        search->tried += search->offers_made;
        if (*outcome == TOO_MANY)
            continue;
        if (*outcome == PROVEN) {
            const double least = search->best_cost - ladder[i] * fabs(search->best_cost);
            search->bound = fmax(search->bound, least);
        }
        return;
    }
}

static bool search_init(struct search *search)
{
    size_t most = 0;
    const struct wg_plan_graph *graph = search->graph;
    for (size_t l = 0; l <= graph->level_count; l++)
        most = graph->levels[l].state_count > most ? graph->levels[l].state_count : most;
    search->starts = wg__alloc_zeroed(most + 1, sizeof *search->starts);
    return search->starts != NULL && rest_init(&search->cheap, graph->state_count) &&
           rest_init(&search->rich, graph->state_count) &&
           rest_init(&search->priced, graph->state_count) &&
           rest_init(&search->scratch, graph->state_count);
}

static void search_fini(struct search *search)
{
    rest_fini(&search->cheap);
    rest_fini(&search->rich);
    rest_fini(&search->priced);
    rest_fini(&search->scratch);
    wg__free(search->labels);
    wg__free(search->offers);
    wg__free(search->sorted);
    wg__free(search->starts);
}

enum wg_code wg__plan_path(const struct wg_plan_graph *graph, double need, struct wg_plan_path *out,
                           struct wg_error *err)
{
    struct search search = {.graph = graph, .need = need - graph->gain, .best = out->choices};
    search.label_limit = out->label_limit != 0 ? out->label_limit : LABELS_MAX;
    search.offer_limit = OFFERS_A_LABEL * search.label_limit;
    search.need_slack = search.need - rounding * (fabs(need) + fabs(graph->gain));
    enum outcome outcome = NO_MEMORY;
    if (search_init(&search)) {
        rest_run(&search, 1, 0, &search.cheap);
        rest_run(&search, 0, 1, &search.rich);
        outcome = PROVEN;
        take_rest(&search, &search.rich);
        take_rest(&search, &search.cheap);
        if (search.has_best) {
            find_price(&search);
            prove(&search, &outcome);
        }
        if (!search.has_best && !isinf(search.rich.weight[0]))
            rest_follow(graph, &search.rich, 0, 0, search.best);
        search.rich_cost = search.rich.cost[0];
        search.rich_gain = search.rich.gain[0];
    }
    search_fini(&search);
    if (outcome == NO_MEMORY)
        return wg__fail(err, WG_ENOMEM, "no memory for the paths of a plan over %zu states",
                        graph->state_count);
    out->is_found = search.has_best;
    if (!out->is_found) {
        search.best_cost = search.rich_cost;
        search.best_gain = search.rich_gain;
    }
    out->is_proven = outcome == PROVEN && search.share == 0;
    out->cost = search.best_cost + graph->cost;
    out->gain = search.best_gain + graph->gain;
    out->bound = fmin(search.bound, search.best_cost) + graph->cost;
    out->tried = search.tried;
    return WG_OK;
}
