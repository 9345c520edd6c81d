/* SPDX-License-Identifier: MIT
 *
 * Building the scenes of a study from a trace and the table of jobs: see study_scene.h.
 *
 * Which combinations exist: what was named by the user must be there, and the error of
 * wg__trace_case says what is missing; of what was not named, all that the trace has is taken.
 */
#include "simulate/study_scene.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/hash.h"

static uint64_t scene_key(const char *gpu, const char *job)
{
    return wg__hash_text(wg__hash_text(wg__hash_text(WG_HASH_START, gpu), "/"), job);
}

static void fini_scene(struct wg_study_scene *scene)
{
    wg__case_free(scene->present);
    wg__case_free(scene->drifted);
    wg__case_free(scene->warm);
}

void wg__study_scenes_fini(struct wg_study_scenes *scenes)
{
    for (size_t i = 0; i < scenes->count; i++)
        fini_scene(&scenes->items[i]);
    wg__free(scenes->items);
    *scenes = (struct wg_study_scenes){0};
}

/* The job that each one turns into, cut to the batch sizes that both have. */
static enum wg_code add_drift(const struct wg_study_request *request, const char *gpu,
                              struct wg_study_scene *scene, struct wg_error *err)
{
    const struct wg_training_job *job = wg__job_table_find(request->jobs, request->drift_job);
    if (job == NULL)
        return wg__fail(err, WG_EINVAL, "drift: no job '%s' in %s", request->drift_job,
                        request->jobs->source);
    /* The user's batch size may be of no use to the new job: that is what a policy must get over.
     */
    struct wg_training_job changed = *job;
    changed.default_may_fail = true;
    enum wg_code code = wg__trace_case(request->trace, gpu, &changed, &scene->drifted, err);
    if (code == WG_OK)
        code = wg__case_intersect(scene->present, scene->drifted, err);
    if (code != WG_OK)
        return code;
    const struct wg_training_case *before = scene->present, *after = scene->drifted;
    bool is_same = before->limit_count == after->limit_count;
    for (size_t i = 0; i < before->limit_count && is_same; i++)
        is_same = before->limit_w[i] == after->limit_w[i];
    if (!is_same)
        return wg__fail(err, WG_EINVAL,
                        "drift: '%s' and '%s' were measured at different power limits on %s; "
                        "expected the same ones",
                        before->job, after->job, gpu);
    wg__training_costs(scene->drifted, request->rules.eta, &scene->drifted_costs);
    return WG_OK;
}

static enum wg_code build_scene(const struct wg_study_request *request, const char *gpu,
                                const struct wg_training_job *of_table,
                                struct wg_study_scene *scene, struct wg_error *err)
{
    struct wg_training_job job = *of_table;
    if (!isnan(request->target_metric))
        job.target_metric = request->target_metric;
    if (!isnan(request->default_batch_size))
        job.default_batch_size = request->default_batch_size;
    enum wg_code code = wg__trace_case(request->trace, gpu, &job, &scene->present, err);
    if (code == WG_OK && request->warm_gpu != NULL)
        code = wg__trace_case(request->trace, request->warm_gpu, &job, &scene->warm, err);
    if (code == WG_OK && request->drift_job != NULL)
        code = add_drift(request, gpu, scene, err);
    if (code != WG_OK)
        return code;
    wg__training_costs(scene->present, request->rules.eta, &scene->costs);
    scene->rng_key = scene_key(scene->present->gpu, job.name);
    return WG_OK;
}

/* Whether the pair is wanted, given that neither or only one of the two was named. */
static bool is_wanted(const struct wg_study_request *request, const char *gpu,
                      const struct wg_training_job *job)
{
    if (request->warm_gpu != NULL && strcasecmp(gpu, request->warm_gpu) == 0)
        return false;
    const bool is_named = request->gpus != NULL && request->job_names != NULL;
    if (is_named)
        return true;
    if (!wg__trace_has_job(request->trace, gpu, job))
        return false;
    return request->warm_gpu == NULL || request->job_names != NULL ||
           wg__trace_has_job(request->trace, request->warm_gpu, job);
}

static bool has_scene(const struct wg_study_scenes *scenes, const char *gpu, const char *job)
{
    for (size_t i = 0; i < scenes->count; i++)
        if (strcasecmp(scenes->items[i].present->gpu, gpu) == 0 &&
            strcmp(scenes->items[i].present->job, job) == 0)
            return true;
    return false;
}

static enum wg_code add_scene(const struct wg_study_request *request, const char *gpu,
                              const struct wg_training_job *job, struct wg_study_scenes *scenes,
                              struct wg_error *err)
{
    if (!is_wanted(request, gpu, job) || has_scene(scenes, gpu, job->name))
        return WG_OK;
    struct wg_study_scene *grown =
        wg__realloc_array(scenes->items, scenes->count + 1, sizeof *grown);
    if (grown == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    scenes->items = grown;
    struct wg_study_scene *scene = &grown[scenes->count];
    *scene = (struct wg_study_scene){0};
    const enum wg_code code = build_scene(request, gpu, job, scene, err);
    if (code != WG_OK) {
        fini_scene(scene);
        return code;
    }
    scenes->count++;
    return WG_OK;
}

static enum wg_code add_named_jobs(const struct wg_study_request *request, const char *gpu,
                                   struct wg_study_scenes *scenes, struct wg_error *err)
{
    for (size_t i = 0; i < request->job_count; i++) {
        const char *name = request->job_names[i];
        const struct wg_training_job *job = wg__job_table_find(request->jobs, name);
        if (job == NULL)
            return wg__fail(err, WG_EINVAL, "no job '%s' in %s", name, request->jobs->source);
        const enum wg_code code = add_scene(request, gpu, job, scenes, err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

/* All wanted jobs on one GPU. */
static enum wg_code add_gpu(const struct wg_study_request *request, const char *gpu,
                            struct wg_study_scenes *scenes, struct wg_error *err)
{
    if (request->job_names != NULL)
        return add_named_jobs(request, gpu, scenes, err);
    for (size_t i = 0; i < request->jobs->count; i++) {
        const enum wg_code code = add_scene(request, gpu, &request->jobs->jobs[i], scenes, err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static bool has_gpu(const struct wg_training_trace *trace, const char *name)
{
    for (size_t i = 0; i < wg__trace_gpu_count(trace); i++)
        if (strcasecmp(wg__trace_gpu(trace, i), name) == 0)
            return true;
    return false;
}

enum wg_code wg__study_scenes_build(const struct wg_study_request *request,
                                    struct wg_study_scenes *out, struct wg_error *err)
{
    struct wg_study_scenes scenes = {0};
    enum wg_code code = WG_OK;
    if (request->warm_gpu != NULL && !has_gpu(request->trace, request->warm_gpu))
        return wg__fail(err, WG_EINVAL, "warm start: the trace has no GPU '%s'", request->warm_gpu);
    const size_t count =
        request->gpus != NULL ? request->gpu_count : wg__trace_gpu_count(request->trace);
    for (size_t i = 0; i < count && code == WG_OK; i++) {
        const char *gpu =
            request->gpus != NULL ? request->gpus[i] : wg__trace_gpu(request->trace, i);
        code = has_gpu(request->trace, gpu)
                   ? add_gpu(request, gpu, &scenes, err)
                   : wg__fail(err, WG_EINVAL, "the trace has no GPU '%s'", gpu);
    }
    if (code == WG_OK && scenes.count == 0)
        code = wg__fail(err, WG_EINVAL,
                        "no case to replay: the trace has none of the wanted jobs on the wanted "
                        "GPUs%s; the table of jobs is: %s",
                        request->warm_gpu != NULL ? ", the one learned on first aside" : "",
                        request->jobs->source);
    if (code != WG_OK) {
        wg__study_scenes_fini(&scenes);
        return code;
    }
    *out = scenes;
    return WG_OK;
}
