/* SPDX-License-Identifier: MIT
 *
 * Whether a look of a few seconds would tell what an epoch costs; see job.h.
 *
 * Threads: that of the store.
 */
#include <math.h>

#include "live/job.h"

/* The newest run that told its steps, and the newest of another batch size. */
struct survey_facts {
    unsigned gpu_count;
    unsigned broken;
    uint32_t batch_size;
    double samples, other_samples; /* NAN: none */
    double time_s;                 /* of the newest run that has reached the target; NAN: none */
};

static bool add_survey_facts(void *context, const struct wg_store_run *run)
{
    struct survey_facts *facts = context;
    if (run->gpu_count != facts->gpu_count)
        return true;
    facts->broken += run->is_survey && run->state == WG_RUN_CRASHED;
    if (run->is_survey)
        return true;
    if (run->state == WG_RUN_REACHED)
        facts->time_s = run->time_s;
    if (!(run->steps_per_epoch > 0))
        return true;
    if (run->batch_size != facts->batch_size)
        facts->other_samples = facts->samples;
    facts->batch_size = run->batch_size;
    facts->samples = run->steps_per_epoch * run->batch_size;
    return true;
}

enum wg_code wg__job_survey_plan(struct wg_store *store, const char *name, unsigned gpu_count,
                                 struct wg_job_survey_plan *out, struct wg_error *err)
{
    /* A last step that is not full is one of at least ten where a survey is worth its start. */
    static const double tolerance = 0.1;
    /* Of a run: what a survey may cost at most, its start included. */
    static const double time_share = 0.25;
    struct survey_facts facts = {
        .gpu_count = gpu_count, .samples = NAN, .other_samples = NAN, .time_s = NAN};
    struct wg_store_job job;
    *out = (struct wg_job_survey_plan){.samples_per_epoch = NAN};
    enum wg_code code = store->ops->job_get(store, name, &job, err);
    if (code == WG_OK)
        code = store->ops->run_each(store, job.id, add_survey_facts, &facts, err);
    if (code != WG_OK || facts.broken >= WG_JOB_SURVEYS_BROKEN || isnan(facts.time_s) ||
        fabs(log(facts.samples / facts.other_samples)) > tolerance)
        return code;
    out->samples_per_epoch = facts.samples;
    out->most_s = time_share * facts.time_s;
    return WG_OK;
}
