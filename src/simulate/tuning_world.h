/* SPDX-License-Identifier: MIT
 *
 * A measured grid as a tuner meets it: with noise, and with what goes wrong.
 *
 * A measurement gives the grid's figures times exp(noise x G), G standard normal. On top, as a
 * campaign of failures may ask:
 *
 *   crash, hang   a share of the measurements
 *   oom           a share of the configurations: the most demanding ones, by batch x replicas, or
 *                 where there is no such knob by the sum of the levels' places (a region at the
 *                 upper corner of the box). The default always works: somebody uses it.
 *   refuse        a level of a knob that cannot be set
 *   restart       a share of the measurements: the server restarts, the sample is thrown away
 *   cut           a window ends early once a figure is this many times over its limit, and then
 *                 tells no more than that
 *
 * Luck belongs to (seed, configuration, how often it was measured before): policies that measure
 * the same meet the same, in any order and on any number of threads.
 *
 * Owns: see init and fini.    Threads: a scene is read by all, a world belongs to one.
 */
#ifndef WG_SIMULATE_TUNING_WORLD_H
#define WG_SIMULATE_TUNING_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/rng.h"
#include "simulate/tuning_grid.h"

enum { WG_TUNING_REFUSALS_MAX = 16 };

struct wg_tuning_failures {
    double crash, hang, restart; /* shares of the measurements, together at most 0.9 */
    double out_of_memory;        /* share of the configurations, at most 0.95 */
    double cut;                  /* times a limit's bound, more than 1; 0: never */
    size_t refusal_count;
    struct wg_tuning_match refusals[WG_TUNING_REFUSALS_MAX];
};

/* What all runs share. */
struct wg_tuning_scene {
    const struct wg_tuning_grid *grid;
    struct wg_tuning_failures failures;
    double noise; /* relative standard deviation of a measured figure */
    double told;  /* what the tuner is told of it */
    struct wg_arena arena;
    bool *is_out_of_memory; /* [space->count] */
    size_t *refused_knob;   /* [space->count]; the number of knobs: none */
    bool *is_out;           /* either of them */
    struct wg_tuning_target target;
};

/* Prepares what goes wrong and judges what is left. WG_EINVAL: failures that cannot be, or leave
 * nothing that meets the limits. */
enum wg_code wg__tuning_scene_init(struct wg_tuning_scene *scene, const struct wg_tuning_grid *grid,
                                   const struct wg_tuning_failures *failures, double noise,
                                   double told, struct wg_error *err);
void wg__tuning_scene_fini(struct wg_tuning_scene *scene);

struct wg_tuning_world {
    const struct wg_tuning_scene *scene;
    struct wg_rng root;
    uint32_t *measured; /* how often each configuration was measured; owned */
};

enum wg_code wg__tuning_world_init(struct wg_tuning_world *world,
                                   const struct wg_tuning_scene *scene, uint64_t seed,
                                   struct wg_error *err);
void wg__tuning_world_fini(struct wg_tuning_world *world);

void wg__tuning_world_measure(struct wg_tuning_world *world, size_t configuration,
                              struct wg_trial *out);

#endif
