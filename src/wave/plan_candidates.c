/* SPDX-License-Identifier: MIT
 *
 * Which values a width may take: all aligned ones of its range where they are few, else step ends.
 *
 * A step end is a value whose next one costs more, in the layers that the width feeds and comes
 * from, at the present widths of all others. Where a range holds more aligned values than may be
 * candidates, it is cut into equal bins and each gives the value with the highest rise behind it,
 * so that the budget can still be met closely everywhere; the present value and the ends of the
 * range stay.
 *
 * Threads: one at a time.
 */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "wave/plan_cost.h"
#include "wave/plan_space.h"

/* Values of one width that are looked at; beyond, only every so many aligned one. */
enum { PROBES_MAX = 256 };

struct range {
    uint32_t first, last, step; /* aligned; last < first: none */
};

static uint64_t least_common_multiple(uint64_t a, uint64_t b)
{
    uint64_t x = a;
    uint64_t y = b;
    while (y != 0) {
        const uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

static struct range range_of(const struct wg_plan_space *space,
                             const struct wg_plan_variable *variable)
{
    const struct wg_plan_opts *opts = space->opts;
    const struct wg_width *width = &space->network->widths[variable->width];
    const double present = variable->present;
    const uint64_t step =
        least_common_multiple(opts->alignment, width->alignment == 0 ? 1 : width->alignment);
    const bool grows = opts->goal == WG_PLAN_GROW;
    const double low = ceil(present * (grows ? 1 : opts->least) / (double)step) * (double)step;
    double high = floor(present * opts->most / (double)step) * (double)step;
    if (opts->goal == WG_PLAN_ALIGN && high > width->channels)
        high = floor((double)width->channels / (double)step) * (double)step;
    if (!(high < UINT32_MAX) || high < fmax(low, (double)step))
        return (struct range){.first = 1, .last = 0, .step = 1};
    return (struct range){(uint32_t)fmax(low, (double)step), (uint32_t)high, (uint32_t)step};
}

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void add_value(struct wg_plan_variable *variable, uint32_t value)
{
    for (size_t i = 0; i < variable->value_count; i++) {
        if (variable->values[i] == value)
            return;
    }
    variable->values[variable->value_count++] = value;
}

static bool touches(const struct wg_plan_side *side, uint32_t variable)
{
    for (size_t i = 0; i < side->part_count; i++) {
        if (side->parts[i].variable == variable)
            return true;
    }
    return false;
}

/* The time of the layers that see this variable, others at their present values. */
static double time_at(struct wg_plan_space *space, uint32_t variable, uint32_t value)
{
    uint32_t *channels = &space->channels[space->variables[variable].width];
    double sum = 0;
    *channels = value;
    for (size_t i = 0; i < space->layer_count; i++) {
        const struct wg_plan_layer *layer = &space->layers[i];
        if (touches(&layer->in, variable) || touches(&layer->out, variable))
            sum += wg__plan_cost_at(space, i, space->channels).time_s;
    }
    *channels = space->variables[variable].present;
    return sum;
}

/* How much the next value costs more, as a share; what counts as flat gives 0. */
static double rise(const double *times, size_t at, double tolerance)
{
    if (isnan(times[at]))
        return -1;
    if (isnan(times[at + 1]))
        return INFINITY;
    const double share = (times[at + 1] - times[at]) / fmax(times[at], 1e-300);
    return share > tolerance ? share : share < 0 ? share : 0;
}

static void choose_step_ends(struct wg_plan_space *space, uint32_t index, struct range range)
{
    struct wg_plan_variable *variable = &space->variables[index];
    const double tolerance = space->opts->tolerance;
    double times[PROBES_MAX + 2] = {0};
    const size_t all = (range.last - range.first) / range.step + 1;
    const uint32_t stride = (uint32_t)((all + PROBES_MAX - 1) / PROBES_MAX) * range.step;
    const size_t count = (range.last - range.first) / stride + 1;
    for (size_t i = 0; i <= count; i++)
        times[i] = time_at(space, index, range.first + (uint32_t)i * stride);
    const size_t bins = space->opts->candidates - 3;
    for (size_t b = 0; b < bins; b++) {
        const size_t from = b * count / bins;
        const size_t to = (b + 1) * count / bins;
        size_t best = from;
        for (size_t i = from; i < to; i++) {
            if (rise(times, i, tolerance) >= rise(times, best, tolerance))
                best = i;
        }
        if (to > from)
            add_value(variable, range.first + (uint32_t)best * stride);
    }
    add_value(variable, range.first);
    add_value(variable, range.last);
}

enum wg_code wg__plan_candidates(struct wg_plan_space *space, struct wg_error *err)
{
    const size_t most = space->opts->candidates;
    for (uint32_t v = 0; v < space->variable_count; v++) {
        struct wg_plan_variable *variable = &space->variables[v];
        variable->values = wg__arena_alloc(&space->arena, most + 1, sizeof *variable->values);
        if (variable->values == NULL)
            return wg__fail(err, WG_ENOMEM, "no memory for %zu candidates of width '%s'", most,
                            space->network->widths[variable->width].name);
        add_value(variable, variable->present);
        const struct range range = range_of(space, variable);
        if (range.last < range.first)
            continue;
        const size_t all = (range.last - range.first) / range.step + 1;
        if (all < most) {
            for (size_t i = 0; i < all; i++)
                add_value(variable, range.first + (uint32_t)i * range.step);
        } else {
            choose_step_ends(space, v, range);
        }
        qsort(variable->values, variable->value_count, sizeof *variable->values, by_value);
    }
    return WG_OK;
}
