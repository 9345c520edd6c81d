/* SPDX-License-Identifier: MIT
 *
 * Measuring in a simulated world: see tuning_world.h.
 *
 * A measurement draws all its numbers whatever happens, so a campaign of failures changes nothing
 * of the noise of those that succeed.
 *
 * Threads: as the header says.
 */
#include "simulate/tuning_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "math/normal.h"

enum { LUCK = 0x6C75636B /* the stream's name, apart from the tuner's own */, TIMES_BITS = 20 };

static enum wg_code fail_memory(struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "out of memory");
}

/* -- Scenes ---------------------------------------------------------------------------------- */

/* How much memory a configuration asks for, in no unit. */
static double demand_of(const struct wg_tuning_space *space, size_t configuration)
{
    double product = 1, places = 0;
    bool has_product = false;
    for (size_t k = 0; k < space->knob_count; k++) {
        const struct wg_tuning_knob *knob = &space->knobs[k];
        const double value = wg__tuning_value(space, configuration, k);
        if (knob->role == WG_TUNING_BATCH || knob->role == WG_TUNING_TRAIN_BATCH ||
            knob->role == WG_TUNING_REPLICAS) {
            product *= value;
            has_product = true;
        }
        if (knob->count > 1)
            places += (double)wg__tuning_level(space, configuration, k) / (double)(knob->count - 1);
    }
    return has_product ? product : places;
}

struct demand {
    double size;
    size_t configuration;
};

/* The largest demand first. */
static int compare_demands(const void *a, const void *b)
{
    const struct demand *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return (x->configuration < y->configuration) - (x->configuration > y->configuration);
}

static enum wg_code fill_memory(struct wg_tuning_scene *scene, struct wg_error *err)
{
    const struct wg_tuning_space *space = scene->grid->space;
    struct demand *demands = wg__alloc_zeroed(space->count, sizeof *demands);
    if (demands == NULL)
        return fail_memory(err);
    for (size_t c = 0; c < space->count; c++)
        demands[c] = (struct demand){.size = demand_of(space, c), .configuration = c};
    qsort(demands, space->count, sizeof *demands, compare_demands);
    const size_t count = (size_t)(scene->failures.out_of_memory * (double)space->count);
    for (size_t i = 0; i < count; i++)
        scene->is_out_of_memory[demands[i].configuration] =
            demands[i].configuration != space->default_configuration;
    wg__free(demands);
    return WG_OK;
}

static enum wg_code refuse(struct wg_tuning_scene *scene, const struct wg_tuning_match *refusal,
                           struct wg_error *err)
{
    const struct wg_tuning_space *space = scene->grid->space;
    size_t k = 0;
    while (k < space->knob_count && strcmp(space->knobs[k].name, refusal->column) != 0)
        k++;
    if (k == space->knob_count)
        return wg__fail(err, WG_EINVAL,
                        "--fail refuse: '%s' is not a knob; expected a column of "
                        "--knob",
                        refusal->column);
    const size_t level = wg__tuning_level_named(&space->knobs[k], refusal->value);
    if (level == space->knobs[k].count)
        return wg__fail(err, WG_EINVAL, "--fail refuse: %s has no level %s", refusal->column,
                        refusal->value);
    for (size_t c = 0; c < space->count; c++)
        if (wg__tuning_level(space, c, k) == level && scene->refused_knob[c] == space->knob_count)
            scene->refused_knob[c] = k;
    return WG_OK;
}

static enum wg_code check(const struct wg_tuning_failures *failures, double noise, double told,
                          struct wg_error *err)
{
    if (!(failures->crash >= 0 && failures->hang >= 0 && failures->restart >= 0 &&
          failures->crash + failures->hang + failures->restart <= 0.9))
        return wg__fail(err, WG_EINVAL,
                        "--fail: crash, hang and restart are %g, %g and %g; expected shares of 0 "
                        "or more, together at most 0.9",
                        failures->crash, failures->hang, failures->restart);
    if (!(failures->out_of_memory >= 0 && failures->out_of_memory <= 0.95))
        return wg__fail(err, WG_EINVAL, "--fail oom: %g is outside 0..0.95",
                        failures->out_of_memory);
    if (!(failures->cut == 0 || failures->cut > 1))
        return wg__fail(err, WG_EINVAL, "--fail cut: %g is not above 1", failures->cut);
    if (!(noise >= 0 && noise <= 1 && told >= 0 && told <= 1))
        return wg__fail(err, WG_EINVAL, "noise %g, told %g; expected 0..1", noise, told);
    return WG_OK;
}

enum wg_code wg__tuning_scene_init(struct wg_tuning_scene *scene, const struct wg_tuning_grid *grid,
                                   const struct wg_tuning_failures *failures, double noise,
                                   double told, struct wg_error *err)
{
    const size_t count = grid->space->count;
    *scene =
        (struct wg_tuning_scene){.grid = grid, .failures = *failures, .noise = noise, .told = told};
    wg__arena_init(&scene->arena);
    enum wg_code code = check(failures, noise, told, err);
    if (code != WG_OK)
        return code;
    scene->is_out_of_memory = wg__arena_alloc(&scene->arena, count, sizeof *scene->is_out);
    scene->is_out = wg__arena_alloc(&scene->arena, count, sizeof *scene->is_out);
    scene->refused_knob = wg__arena_alloc(&scene->arena, count, sizeof *scene->refused_knob);
    if (scene->is_out_of_memory == NULL || scene->is_out == NULL || scene->refused_knob == NULL)
        return fail_memory(err);
    for (size_t c = 0; c < count; c++)
        scene->refused_knob[c] = grid->space->knob_count;
    if (failures->out_of_memory > 0)
        code = fill_memory(scene, err);
    for (size_t i = 0; i < failures->refusal_count && code == WG_OK; i++)
        code = refuse(scene, &failures->refusals[i], err);
    for (size_t c = 0; c < count; c++)
        scene->is_out[c] =
            scene->is_out_of_memory[c] || scene->refused_knob[c] < grid->space->knob_count;
    return code == WG_OK
               ? wg__tuning_grid_judge(grid, scene->is_out, &scene->arena, &scene->target, err)
               : code;
}

void wg__tuning_scene_fini(struct wg_tuning_scene *scene)
{
    wg__arena_fini(&scene->arena);
}

/* -- Worlds ---------------------------------------------------------------------------------- */

enum wg_code wg__tuning_world_init(struct wg_tuning_world *world,
                                   const struct wg_tuning_scene *scene, uint64_t seed,
                                   struct wg_error *err)
{
    struct wg_rng seeded;
    wg__rng_init(&seeded, seed);
    world->scene = scene;
    world->root = wg__rng_split(&seeded, LUCK);
    world->measured = wg__alloc_zeroed(scene->grid->space->count, sizeof *world->measured);
    return world->measured != NULL ? WG_OK : fail_memory(err);
}

void wg__tuning_world_fini(struct wg_tuning_world *world)
{
    wg__free(world->measured);
    world->measured = NULL;
}

/* What becomes of the measurement, by a uniform number. */
static enum wg_trial_outcome outcome_of(const struct wg_tuning_failures *failures, double u)
{
    if (u < failures->restart)
        return WG_TRIAL_DISCARDED;
    if (u < failures->restart + failures->crash)
        return WG_TRIAL_CRASHED;
    if (u < failures->restart + failures->crash + failures->hang)
        return WG_TRIAL_HUNG;
    return WG_TRIAL_MEASURED;
}

/* Ends the window where a figure is hopelessly over its limit. */
static void cut_short(const struct wg_tuning_goal *goal, double factor, struct wg_trial *trial)
{
    bool is_cut = false;
    for (size_t i = 0; i < goal->limit_count; i++)
        is_cut |= !goal->limits[i].is_minimum && trial->figures[i] > factor * goal->limits[i].bound;
    if (!is_cut)
        return;
    trial->outcome = WG_TRIAL_CUT;
    trial->objective = (double)NAN;
    for (size_t i = 0; i < goal->limit_count; i++) {
        const double bound = factor * goal->limits[i].bound;
        trial->figures[i] =
            !goal->limits[i].is_minimum && trial->figures[i] > bound ? bound : (double)NAN;
    }
}

void wg__tuning_world_measure(struct wg_tuning_world *world, size_t configuration,
                              struct wg_trial *out)
{
    const struct wg_tuning_scene *scene = world->scene;
    const struct wg_tuning_grid *grid = scene->grid;
    *out = (struct wg_trial){.configuration = configuration};
    struct wg_rng rng = wg__rng_split(&world->root, (uint64_t)configuration << TIMES_BITS |
                                                        world->measured[configuration]);
    if (scene->refused_knob[configuration] < grid->space->knob_count) {
        out->outcome = WG_TRIAL_REFUSED;
        out->refused_knob = scene->refused_knob[configuration];
        return;
    }
    world->measured[configuration]++;
    out->outcome = scene->is_out_of_memory[configuration]
                       ? WG_TRIAL_OUT_OF_MEMORY
                       : outcome_of(&scene->failures, wg__rng_uniform(&rng));
    if (out->outcome != WG_TRIAL_MEASURED)
        return;
    out->objective = grid->costs[configuration] * exp(scene->noise * wg__rng_normal(&rng));
    out->objective_error = scene->told;
    for (size_t i = 0; i < grid->goal.limit_count; i++) {
        out->figures[i] = wg__tuning_grid_figure(grid, configuration, i) *
                          exp(scene->noise * wg__rng_normal(&rng));
        out->figure_errors[i] = scene->told;
    }
    if (scene->failures.cut > 0)
        cut_short(&grid->goal, scene->failures.cut, out);
}
