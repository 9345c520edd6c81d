/* SPDX-License-Identifier: MIT
 *
 * The scenes of a study: for each GPU and job the measured worlds that every policy is replayed in.
 *
 * A scene holds the job as it is, what it turns into when it drifts, and the same job on the GPU
 * that is learned on first. It is built and checked before anything is replayed; then it is
 * read-only.
 *
 * Owns: a scene owns its cases.    Threads: read-only once built.
 */
#ifndef WG_SIMULATE_STUDY_SCENE_H
#define WG_SIMULATE_STUDY_SCENE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "simulate/study.h"

struct wg_study_scene {
    struct wg_training_case *present;
    struct wg_training_case *drifted; /* NULL: no drift */
    struct wg_training_case *warm;    /* NULL: no warm start */
    struct wg_training_costs costs;
    struct wg_training_costs drifted_costs;
    uint64_t
        rng_key; /* a hash of "gpu/job": a case's luck does not depend on what else is asked for */
};

struct wg_study_scenes {
    size_t count;
    struct wg_study_scene *items;
};

/* Builds the scenes that the request names, by GPU and then by job. `out` is written on success
 * only. */
enum wg_code wg__study_scenes_build(const struct wg_study_request *request,
                                    struct wg_study_scenes *out, struct wg_error *err);
void wg__study_scenes_fini(struct wg_study_scenes *scenes);

/* What is known of a scene without any replay: expected costs and the energy-time plane. */
enum wg_code wg__study_world_describe(const struct wg_study_scene *scene,
                                      const struct wg_study_request *request,
                                      struct wg_arena *arena, struct wg_study_world *out,
                                      struct wg_error *err);

#endif
