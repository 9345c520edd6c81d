/* SPDX-License-Identifier: MIT
 *
 * From a trace to a load and a learning curve; see vload_job.h.
 *
 * A run is recorded by milestones: the first epoch at which the metric had passed each of a list of
 * values. Several may fall into one epoch; the last of them counts. Before the first we assume one
 * more step of the list at epoch 0; after the last the metric stays.
 */
#include "vgpu/vload_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/number.h"
#include "base/rng.h"
#include "cli/options.h"

static enum wg_code check_gpu(const struct wg_training_trace *trace, const char *gpu,
                              struct wg_error *err)
{
    const char *names[64];
    size_t count = 0;
    for (; count < wg__trace_gpu_count(trace) && count < 64; count++) {
        names[count] = wg__trace_gpu(trace, count);
        if (strcasecmp(names[count], gpu) == 0)
            return WG_OK;
    }
    return wg__option_reject_name("gpu", gpu, "a GPU of the trace", names, count, err);
}

static enum wg_code find_job(const struct wg_job_table *table, const char *name,
                             const struct wg_training_job **out, struct wg_error *err)
{
    *out = wg__job_table_find(table, name);
    if (*out != NULL)
        return WG_OK;
    struct wg_buffer known;
    wg__buffer_init(&known);
    for (size_t i = 0; i < table->count; i++)
        wg__buffer_printf(&known, "%s%s", i > 0 ? ", " : "", table->jobs[i].name);
    const enum wg_code code = wg__fail(err, WG_EINVAL, "'%s' is not a known job (%s)", name,
                                       known.failed ? "" : known.data);
    wg__buffer_fini(&known);
    return code;
}

static enum wg_code find_arm(struct vload_job *job, const struct vload_request *request,
                             struct wg_error *err)
{
    const struct wg_training_case *training = job->training;
    for (size_t i = 0; i < training->arm_count; i++)
        if (training->arms[i].batch_size == request->batch_size ||
            (isnan(request->batch_size) && i == training->default_arm))
            job->arm = &training->arms[i];
    if (job->arm != NULL)
        return WG_OK;
    struct wg_buffer known;
    char value[WG_DOUBLE_TEXT_SIZE];
    wg__buffer_init(&known);
    wg__buffer_printf(&known, "a batch size of %s that was measured on %s (", training->job,
                      training->gpu);
    for (size_t i = 0; i < training->arm_count; i++)
        wg__buffer_printf(&known, "%s%.10g", i > 0 ? ", " : "", training->arms[i].batch_size);
    wg__buffer_puts(&known, ")");
    wg__format_double(value, request->batch_size);
    const enum wg_code code =
        wg__option_reject(err, "batch-size", value, known.failed ? "measured" : known.data);
    wg__buffer_fini(&known);
    return code;
}

static enum wg_code open_case(struct vload_job *job, const struct wg_training_trace *trace,
                              const struct wg_job_table *table, const struct vload_request *request,
                              struct wg_error *err)
{
    const struct wg_training_job *found = NULL;
    enum wg_code code = find_job(table, request->job, &found, err);
    if (code == WG_OK)
        code = check_gpu(trace, request->gpu, err);
    if (code == WG_OK)
        code = wg__trace_case(trace, request->gpu, found, &job->training, err);
    if (code == WG_OK)
        code = find_arm(job, request, err);
    if (code != WG_OK)
        return code;
    if (job->training->limit_count > VGPU_CURVE_MAX)
        return wg__fail(err, WG_EDATA, "%s: %zu power limits are more than %d", request->trace_dir,
                        job->training->limit_count, VGPU_CURVE_MAX);
    struct wg_rng rng;
    wg__rng_init(&rng, request->seed);
    job->run_index = wg__rng_below(&rng, (uint32_t)job->arm->run_count);
    job->run = &job->arm->runs[job->run_index];
    job->epoch_time_s = job->arm->epoch_time_s[job->training->limit_count - 1];
    return WG_OK;
}

enum wg_code vload_job_open(struct vload_job *out, const struct vload_request *request,
                            struct wg_error *err)
{
    *out = (struct vload_job){0};
    struct wg_training_trace *trace = NULL;
    struct wg_job_table *table = NULL;
    enum wg_code code = wg__job_table_open(&table, request->jobs_file, err);
    if (code == WG_OK)
        code = wg__trace_open(&trace, request->trace_dir, err);
    if (code == WG_OK)
        code = open_case(out, trace, table, request, err);
    wg__trace_close(trace);
    wg__job_table_close(table);
    if (code != WG_OK)
        vload_job_close(out);
    return code;
}

void vload_job_close(struct vload_job *job)
{
    wg__case_free(job->training);
    *job = (struct vload_job){0};
}

/* The metric before the first epoch: one step of the recorded values before the first. */
static double metric_at_start(const struct vload_job *job)
{
    const struct wg_milestone *marks = job->run->milestones;
    if (job->run->milestone_count == 0)
        return NAN;
    if (job->run->milestone_count == 1)
        return marks[0].metric * (job->training->higher_is_better ? 0.9 : 1.1);
    return 2 * marks[0].metric - marks[1].metric;
}

double vload_job_metric(const struct vload_job *job, double epochs)
{
    const struct wg_milestone *marks = job->run->milestones;
    double before_epoch = 0, before = metric_at_start(job);
    for (size_t i = 0; i < job->run->milestone_count; i++) {
        if ((double)marks[i].epoch > epochs)
            return before + (marks[i].metric - before) * (epochs - before_epoch) /
                                ((double)marks[i].epoch - before_epoch);
        before_epoch = (double)marks[i].epoch;
        before = marks[i].metric;
    }
    return before;
}

double vload_job_rest(const struct vload_job *job, double epochs)
{
    if (job->run->milestone_count == 0)
        return 1;
    const double start = metric_at_start(job);
    const double best = job->run->milestones[job->run->milestone_count - 1].metric;
    return (best - vload_job_metric(job, epochs)) / (best - start);
}

bool vload_job_has_reached(const struct vload_job *job, double metric, double target)
{
    return job->training->higher_is_better ? metric >= target : metric <= target;
}

void vload_job_load(const struct vload_job *job, const struct vgpu_model *model,
                    struct vgpu_load *out)
{
    const struct wg_training_case *training = job->training;
    *out =
        (struct vgpu_load){.utilization = 1, .intensity = 1, .curve_count = training->limit_count};
    for (size_t i = 0; i < training->limit_count; i++) {
        /* What the job adds to the idle power is concentrated in the busy part of its steps. */
        const double added_w = fmax(0, job->arm->power_w[i] - model->idle_w);
        out->curve_limit_w[i] = training->limit_w[i];
        out->curve_power_w[i] = model->idle_w + added_w / VLOAD_MEAN_UTILIZATION;
        out->curve_speed[i] = job->epoch_time_s / job->arm->epoch_time_s[i];
    }
}
