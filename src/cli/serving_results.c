/* SPDX-License-Identifier: MIT
 *
 * Figures of serving studies, as JSON and CSV: see serving_results.h.
 */
#include "cli/serving_results.h"

#include <math.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/csv_write.h"
#include "base/json.h"

enum { COUNT_BYTES = 24 };

/* Of a batch's time: one in a hundred batches takes longer than its mean by so many deviations. */
#define ROOM_SIGMAS 2.326

/* -- Figures ---------------------------------------------------------------------------------- */

struct wg_serving_room wg__serving_room(const struct wg_serving_profile *profile, size_t rung,
                                        unsigned max_batch, double rate, double slo_s)
{
    struct wg_serving_room room = {.share = (double)NAN};
    for (unsigned b = 1; b <= max_batch; b++) {
        const double batch_s = wg__profile_batch_s(profile, rung, b);
        const double wait_s = rate > 0 ? (b - 1) / rate : b > 1 ? HUGE_VAL : 0;
        const double share = rate * batch_s / b;
        const double late_s = batch_s * (1 + ROOM_SIGMAS * profile->noise);
        if (wait_s + late_s <= slo_s && !(share >= room.share))
            room = (struct wg_serving_room){.share = share, .batch = b};
    }
    return room;
}

unsigned wg__serving_max_batch(const struct wg_serving_study_request *request,
                               const struct wg_serving_cell *cell)
{
    return request->policies[cell->policy].batcher == WG_BATCHER_NONE
               ? 1
               : request->base.profile->max_batch;
}

double wg__serving_work_s(const struct wg_serving_profile *profile, size_t rung,
                          const struct wg_finetune_job *job)
{
    return job->iterations == UINT64_MAX
               ? HUGE_VAL
               : (double)job->iterations * wg__profile_step_s(profile, rung, job->batch, true);
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : (double)NAN;
}

static double batch_mean(const struct wg_serving_sum *sum)
{
    double rows = 0, batches = 0;
    for (size_t b = 1; b <= WG_BATCH_ROWS_MAX; b++) {
        rows += (double)b * (double)sum->batches[b];
        batches += (double)sum->batches[b];
    }
    return ratio(rows, batches);
}

void wg__serving_figures(const struct wg_serving_study_request *request,
                         const struct wg_serving_cell *cell, struct wg_serving_figures *out)
{
    const struct wg_serving_setup *base = &request->base;
    const struct wg_serving_sum *sum = &cell->sum;
    const double runs = (double)sum->runs;
    const bool has_job = base->has_job;
    *out = (struct wg_serving_figures){
        .finished_s = ratio(sum->finished_s, (double)sum->jobs_finished),
        .finished_share = has_job ? ratio((double)sum->jobs_finished, runs) : (double)NAN,
        .samples_per_s = has_job ? ratio(sum->finetune_rows, sum->finetune_time_s) : (double)NAN,
        .gpu_share = has_job ? ratio(sum->finetune_work_s, runs * base->duration_s) : (double)NAN,
        .energy_per_request_j =
            ratio(sum->inference_j + sum->idle_j, (double)(sum->requests - sum->dropped)),
        .batch_mean = batch_mean(sum),
        .room = wg__serving_room(base->profile, base->rung, wg__serving_max_batch(request, cell),
                                 cell->rate, base->slo_s),
        .earliest_s = (double)NAN,
    };
    if (has_job && out->room.share < 1) {
        const double work_s = wg__serving_work_s(base->profile, base->rung, &base->job);
        out->earliest_s = isinf(work_s) ? (double)NAN : work_s / (1 - out->room.share);
    }
}

const double *wg__serving_interval(const struct wg_serving_cell *cell)
{
    return cell->seeds95[0] < cell->seeds95[1] ? cell->seeds95 : cell->wilson95;
}

const char *wg__serving_answer_word(enum wg_answer answer)
{
    static const char *const words[WG_ANSWER_COUNT] = {
        [WG_ANSWER_FULL] = "full",           [WG_ANSWER_TOO_LARGE] = "too_large",
        [WG_ANSWER_DUPLICATE] = "duplicate", [WG_ANSWER_PAST] = "past",
        [WG_ANSWER_HOPELESS] = "hopeless",   [WG_ANSWER_SACRIFICED] = "sacrificed",
        [WG_ANSWER_CANCELLED] = "cancelled",
    };
    return words[answer];
}

static const char *batcher_word(enum wg_batcher_kind kind)
{
    static const char *const words[] = {
#define X(name, word) word,
        WG_BATCHERS(X)
#undef X
    };
    return words[kind];
}

static const char *drop_word(enum wg_drop_kind kind)
{
    static const char *const words[] = {
#define X(name, word) word,
        WG_DROPS(X)
#undef X
    };
    return words[kind];
}

static const char *clocks_word(const struct wg_serving_setup *base)
{
    return base->clocks == WG_CLOCKS_GOVERNED ? "governed"
                                              : base->profile->ladder.rungs[base->rung].name;
}

/* -- JSON ------------------------------------------------------------------------------------- */

/* 0: the scheduler's own, null; below: none. */
static void write_share(struct wg_json *json, const char *key, double share)
{
    wg__json_member_double(json, key, share == 0 ? (double)NAN : fmax(share, 0));
}

static void write_setup(struct wg_json *json, const struct wg_serving_study_request *request)
{
    const struct wg_serving_setup *base = &request->base;
    wg__json_key(json, "profile");
    wg__json_object(json);
    wg__json_member_string(json, "name", base->profile->name);
    wg__json_member_string(json, "source",
                           base->profile->source[0] != '\0' ? base->profile->source : NULL);
    wg__json_member_uint(json, "max_batch", base->profile->max_batch);
    wg__json_close(json);
    wg__json_member_double(json, "slo_s", base->slo_s);
    wg__json_key(json, "slo_changes");
    wg__json_array(json);
    for (size_t i = 0; i < base->change_count; i++) {
        wg__json_object(json);
        wg__json_member_double(json, "at_s", base->changes[i].at_s);
        wg__json_member_double(json, "slo_s", base->changes[i].slo_s);
        wg__json_close(json);
    }
    wg__json_close(json);
    wg__json_key(json, "job");
    if (base->has_job) {
        wg__json_object(json);
        wg__json_member_uint(json, "batch", base->job.batch);
        wg__json_key(json, "iterations");
        if (base->job.iterations == UINT64_MAX)
            wg__json_null(json);
        else
            wg__json_uint(json, base->job.iterations);
        wg__json_close(json);
    } else {
        wg__json_null(json);
    }
    wg__json_member_string(json, "clocks", clocks_word(base));
    wg__json_member_double(json, "believe",
                           base->believed != NULL ? wg__profile_batch_s(base->believed, 0, 1) /
                                                        wg__profile_batch_s(base->profile, 0, 1)
                                                  : 1);
    wg__json_member_uint(json, "queue", base->queue_capacity);
    write_share(json, "step_share", base->step_share);
    write_share(json, "deadline_share", base->deadline_share);
    write_share(json, "min_share", base->min_share);
    wg__json_member_double(json, "duration_s", base->duration_s);
    wg__json_member_uint(json, "seeds", request->seeds);
    wg__json_member_uint(json, "first_seed", request->first_seed);
}

static void write_finetune(struct wg_json *json, const struct wg_serving_figures *figures)
{
    wg__json_key(json, "finetune");
    wg__json_object(json);
    wg__json_member_double(json, "finished_s", figures->finished_s);
    wg__json_member_double(json, "finished_share", figures->finished_share);
    wg__json_member_double(json, "samples_per_s", figures->samples_per_s);
    wg__json_member_double(json, "gpu_share", figures->gpu_share);
    wg__json_close(json);
}

static void write_counts(struct wg_json *json, const struct wg_serving_sum *sum)
{
    char key[COUNT_BYTES];
    wg__json_key(json, "batch_histogram");
    wg__json_object(json);
    for (size_t b = 1; b <= WG_BATCH_ROWS_MAX; b++) {
        if (sum->batches[b] == 0)
            continue;
        (void)snprintf(key, sizeof key, "%zu", b);
        wg__json_member_uint(json, key, sum->batches[b]);
    }
    wg__json_close(json);
    wg__json_key(json, "answers");
    wg__json_object(json);
    for (size_t i = 0; i < WG_ANSWER_COUNT; i++)
        wg__json_member_uint(json, wg__serving_answer_word((enum wg_answer)i), sum->answers[i]);
    wg__json_close(json);
}

static void write_cell(struct wg_json *json, const struct wg_serving_study_request *request,
                       const struct wg_serving_cell *cell)
{
    const struct wg_serving_policy *policy = &request->policies[cell->policy];
    const struct wg_serving_sum *sum = &cell->sum;
    struct wg_serving_figures figures;
    wg__serving_figures(request, cell, &figures);
    wg__json_object(json);
    wg__json_member_string(json, "policy", policy->name);
    wg__json_member_string(json, "arrivals", request->laws[cell->law]);
    wg__json_member_double(json, "rate", cell->rate);
    wg__json_member_string(json, "batcher", batcher_word(policy->batcher));
    wg__json_member_string(json, "drop", drop_word(policy->drop));
    wg__json_member_uint(json, "requests", sum->requests);
    wg__json_member_uint(json, "late", sum->late);
    wg__json_member_uint(json, "dropped", sum->dropped);
    wg__json_member_double(json, "violation_rate", cell->violation_rate);
    wg__json_member_doubles(json, "wilson95", cell->wilson95, 2);
    wg__json_member_doubles(json, "seeds95", cell->seeds95, 2);
    wg__json_member_double(json, "p50_s", cell->p50_s);
    wg__json_member_double(json, "p95_s", cell->p95_s);
    wg__json_member_double(json, "p99_s", cell->p99_s);
    write_finetune(json, &figures);
    wg__json_key(json, "energy_j");
    wg__json_object(json);
    wg__json_member_double(json, "inference", sum->inference_j);
    wg__json_member_double(json, "finetune", sum->finetune_j);
    wg__json_member_double(json, "idle", sum->idle_j);
    wg__json_close(json);
    wg__json_member_double(json, "energy_per_request_j", figures.energy_per_request_j);
    wg__json_member_double(json, "batch_mean", figures.batch_mean);
    write_counts(json, sum);
    wg__json_member_uint(json, "clock_changes", sum->clock_changes);
    wg__json_key(json, "room");
    wg__json_object(json);
    wg__json_member_double(json, "inference_share", figures.room.share);
    wg__json_member_uint(json, "batch", figures.room.batch);
    wg__json_member_double(json, "earliest_finish_s", figures.earliest_s);
    wg__json_close(json);
    wg__json_close(json);
}

void wg__serving_json(const struct wg_serving_study *study,
                      const struct wg_serving_study_request *request, struct wg_buffer *out)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.simulate.serving/1");
    write_setup(&json, request);
    wg__json_key(&json, "cells");
    wg__json_array(&json);
    for (size_t i = 0; i < study->cell_count; i++)
        write_cell(&json, request, &study->cells[i]);
    wg__json_close(&json);
    wg__json_member_double(&json, "events_per_s", study->events_per_s);
    wg__json_member_double(&json, "requests_per_s", study->requests_per_s);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}

/* -- CSV -------------------------------------------------------------------------------------- */

static void put_number(struct wg_buffer *out, double value)
{
    wg__buffer_puts(out, ",");
    if (isfinite(value))
        wg__csv_put_double(out, value);
}

static void put_cell(const struct wg_serving_study_request *request,
                     const struct wg_serving_cell *cell, struct wg_buffer *out)
{
    const struct wg_serving_policy *policy = &request->policies[cell->policy];
    const struct wg_serving_sum *sum = &cell->sum;
    struct wg_serving_figures figures;
    wg__serving_figures(request, cell, &figures);
    wg__csv_put(out, policy->name);
    wg__buffer_puts(out, ",");
    wg__csv_put(out, request->laws[cell->law]);
    put_number(out, cell->rate);
    wg__buffer_printf(out, ",%s,%s,%llu,%llu,%llu", batcher_word(policy->batcher),
                      drop_word(policy->drop), (unsigned long long)sum->requests,
                      (unsigned long long)sum->late, (unsigned long long)sum->dropped);
    const double numbers[] = {cell->violation_rate,  cell->wilson95[0],
                              cell->wilson95[1],     cell->seeds95[0],
                              cell->seeds95[1],      cell->p50_s,
                              cell->p95_s,           cell->p99_s,
                              figures.finished_s,    figures.finished_share,
                              figures.samples_per_s, figures.gpu_share,
                              sum->inference_j,      sum->finetune_j,
                              sum->idle_j,           figures.energy_per_request_j,
                              figures.batch_mean,    (double)sum->clock_changes};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put_number(out, numbers[i]);
    wg__buffer_puts(out, "\n");
}

void wg__serving_csv(const struct wg_serving_study *study,
                     const struct wg_serving_study_request *request, struct wg_buffer *out)
{
    wg__buffer_puts(out, "policy,arrivals,rate,batcher,drop,requests,late,dropped,violation_rate,"
                         "wilson95_low,wilson95_high,seeds95_low,seeds95_high,p50_s,p95_s,p99_s,"
                         "finished_s,finished_share,samples_per_s,gpu_share,inference_j,"
                         "finetune_j,idle_j,energy_per_request_j,batch_mean,clock_changes\n");
    for (size_t i = 0; i < study->cell_count; i++)
        put_cell(request, &study->cells[i], out);
}
