/* SPDX-License-Identifier: MIT
 *
 * From a network to variables and the sums that its layers see of them.
 *
 * Threads: one at a time.
 */
#include "wave/plan_space.h"

#include <math.h>

#include "wave/plan_cost.h"

/* Sorts the parts of a side into variables, each once, and what is fixed. */
static bool side_init(struct wg_plan_space *space, const struct wg_channels *channels,
                      struct wg_plan_side *side)
{
    side->constant = channels->constant;
    side->parts = wg__arena_alloc(&space->arena, channels->part_count, sizeof *side->parts);
    if (side->parts == NULL)
        return false;
    for (size_t i = 0; i < channels->part_count; i++) {
        const struct wg_channel_part *part = &channels->parts[i];
        const int32_t variable = space->variable_of[part->width];
        if (variable < 0) {
            side->constant += (uint64_t)part->multiple * space->present[part->width];
            continue;
        }
        size_t at = 0;
        while (at < side->part_count && side->parts[at].variable != (uint32_t)variable)
            at++;
        if (at == side->part_count)
            side->parts[side->part_count++] = (struct wg_plan_part){.variable = (uint32_t)variable};
        side->parts[at].multiple += part->multiple;
    }
    return true;
}

/* The mean importance of the widths that come out, by their channels. */
static double weight_of(const struct wg_plan_space *space, const struct wg_layer *layer)
{
    const double *importance = space->opts->importance;
    double sum = 0;
    double channels = 0;
    for (size_t i = 0; importance != NULL && i < layer->out.part_count; i++) {
        const struct wg_channel_part *part = &layer->out.parts[i];
        const double count = (double)part->multiple * space->present[part->width];
        sum += count * importance[part->width];
        channels += count;
    }
    return channels > 0 ? sum / channels : 1;
}

static bool layers_init(struct wg_plan_space *space)
{
    const struct wg_network *network = space->network;
    static const struct wg_channels none;
    space->layer_count = network->layer_count;
    space->layers = wg__arena_alloc(&space->arena, network->layer_count, sizeof *space->layers);
    if (space->layers == NULL)
        return false;
    for (size_t i = 0; i < network->layer_count; i++) {
        const struct wg_layer *layer = &network->layers[i];
        struct wg_plan_layer *plan = &space->layers[i];
        plan->layer = layer;
        plan->weight = weight_of(space, layer);
        const bool has_in = layer->kind != WG_LAYER_BYTES;
        if (!side_init(space, has_in ? &layer->in : &none, &plan->in) ||
            !side_init(space, &layer->out, &plan->out))
            return false;
    }
    return true;
}

static bool variables_init(struct wg_plan_space *space)
{
    const struct wg_network *network = space->network;
    const size_t count = network->width_count;
    space->variables = wg__arena_alloc(&space->arena, count, sizeof *space->variables);
    space->variable_of = wg__arena_alloc(&space->arena, count, sizeof *space->variable_of);
    space->present = wg__arena_alloc(&space->arena, count, sizeof *space->present);
    space->channels = wg__arena_alloc(&space->arena, count, sizeof *space->channels);
    if (space->variables == NULL || space->variable_of == NULL || space->present == NULL ||
        space->channels == NULL)
        return false;
    for (size_t w = 0; w < count; w++) {
        const struct wg_width *width = &network->widths[w];
        const uint32_t *pruned = space->opts->pruned;
        space->present[w] = pruned != NULL ? pruned[w] : width->channels;
        space->channels[w] = space->present[w];
        space->variable_of[w] = -1;
        if (width->is_fixed)
            continue;
        space->variable_of[w] = (int32_t)space->variable_count;
        space->variables[space->variable_count++] =
            (struct wg_plan_variable){.width = (uint32_t)w, .present = space->present[w]};
    }
    return true;
}

bool wg__plan_space_total(const struct wg_plan_space *space, const uint32_t *channels,
                          struct wg_plan_cost *out)
{
    struct wg_plan_cost sum = {0};
    for (size_t i = 0; i < space->layer_count; i++) {
        const struct wg_plan_cost cost = wg__plan_cost_at(space, i, channels);
        sum.time_s += cost.time_s;
        sum.parameters += cost.parameters;
        sum.flops += cost.flops;
    }
    *out = sum;
    return !isnan(sum.time_s);
}

/* Every layer must have a time at the present widths. */
static enum wg_code check_times(const struct wg_plan_space *space, struct wg_error *err)
{
    for (size_t i = 0; i < space->layer_count; i++) {
        struct wg_layer moved;
        const struct wg_layer *layer = space->layers[i].layer;
        const enum wg_code code = wg__layer_at(layer, space->present, &moved, err);
        if (code != WG_OK)
            return code;
        if (isnan(wg__plan_cost_at(space, i, space->present).time_s))
            return wg__fail(err, WG_EUNSUPPORTED,
                            "no plan: the time of layer '%s' (%s) is not known at its present "
                            "widths",
                            layer->name, layer->op);
    }
    return WG_OK;
}

enum wg_code wg__plan_space_init(struct wg_plan_space *space, const struct wg_network *network,
                                 wg_layer_time_fn time_s, const void *context,
                                 const struct wg_plan_opts *opts, struct wg_error *err)
{
    *space = (struct wg_plan_space){
        .network = network, .layer_time = time_s, .context = context, .opts = opts};
    wg__arena_init(&space->arena);
    space->costs = wg__plan_cost_table_new();
    enum wg_code code = WG_OK;
    if (space->costs == NULL || !variables_init(space) || !layers_init(space))
        code = wg__fail(err, WG_ENOMEM, "no memory for a plan of %zu layers", network->layer_count);
    if (code == WG_OK)
        code = check_times(space, err);
    if (code == WG_OK)
        code = wg__plan_candidates(space, err);
    if (code != WG_OK)
        wg__plan_space_fini(space);
    return code;
}

void wg__plan_space_fini(struct wg_plan_space *space)
{
    wg__plan_cost_table_free(space->costs);
    space->costs = NULL;
    wg__arena_fini(&space->arena);
}
