/* SPDX-License-Identifier: MIT
 *
 * An analysis for programs, JSON (schema "wattgov.wave.analyze/1") and CSV: see wave_report.h.
 *
 * What is not known is null in JSON and empty in CSV.
 */
#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "base/csv_write.h"
#include "base/json.h"
#include "cli/batch_file.h"
#include "cli/wave_report.h"

/* -- JSON ------------------------------------------------------------------------------------- */

static void write_model(struct wg_json *json, const struct wg_wave_model *model)
{
    wg__json_key(json, "model");
    wg__json_object(json);
    wg__json_member_string(json, "name", model->name);
    wg__json_member_string(json, "kind", model->kind);
    wg__json_key(json, "batch_size");
    if (model->batch > 0)
        wg__json_uint(json, model->batch);
    else
        wg__json_null(json);
    wg__json_member_string(json, "precision",
                           model->graph != NULL ? wg__dtype_name(model->dtype) : NULL);
    wg__json_close(json);
}

static void write_gpu(struct wg_json *json, const struct wg_gpu_spec *gpu)
{
    wg__json_key(json, "gpu");
    wg__json_object(json);
    wg__json_member_string(json, "id", gpu->id);
    wg__json_member_string(json, "name", gpu->name);
    wg__json_member_uint(json, "sms", gpu->sms);
    wg__json_member_double(json, "tdp_w", gpu->tdp_w > 0 ? gpu->tdp_w : (double)NAN);
    wg__json_member_double(json, "idle_w", gpu->idle_w);
    wg__json_close(json);
}

static void write_gemm(struct wg_json *json, const struct wg_wave_row *row)
{
    wg__json_key(json, "gemm");
    if (!row->has_gemm) {
        wg__json_null(json);
        return;
    }
    wg__json_object(json);
    wg__json_member_string(json, "precision", wg__dtype_name(row->gemm.dtype));
    wg__json_member_uint(json, "batch", row->gemm.batch);
    wg__json_member_uint(json, "m", row->gemm.m);
    wg__json_member_uint(json, "n", row->gemm.n);
    wg__json_member_uint(json, "k", row->gemm.k);
    wg__json_close(json);
}

static void member_known(struct wg_json *json, const char *key, uint64_t value)
{
    wg__json_key(json, key);
    if (value > 0)
        wg__json_uint(json, value);
    else
        wg__json_null(json);
}

static void write_kernel(struct wg_json *json, const struct wg_wave_row *row)
{
    const struct wg_kernel *kernel = &row->prediction.kernel;
    wg__json_key(json, "kernel");
    if (kernel->tile_m == 0 && row->layer->kernel_name == NULL) {
        wg__json_null(json);
        return;
    }
    wg__json_object(json);
    wg__json_member_string(json, "name", row->layer->kernel_name);
    wg__json_member_bool(json, "is_known", row->layer->kernel.tile_m > 0);
    wg__json_member_bool(json, "is_winograd", row->prediction.is_winograd);
    member_known(json, "tile_m", kernel->tile_m);
    member_known(json, "tile_n", kernel->tile_n);
    member_known(json, "tile_k", kernel->tile_k);
    member_known(json, "threads", kernel->threads);
    member_known(json, "split_k", kernel->split_k);
    wg__json_close(json);
}

static void write_row(struct wg_json *json, const struct wg_wave_report *report,
                      const struct wg_wave_row *row)
{
    const struct wg_prediction *of = &row->prediction;
    const bool has_grid = of->blocks > 0;
    wg__json_object(json);
    wg__json_member_string(json, "name", row->layer->name);
    wg__json_member_string(json, "op", row->layer->op);
    write_gemm(json, row);
    write_kernel(json, row);
    member_known(json, "blocks", of->blocks);
    wg__json_member_double(json, "waves", has_grid ? of->waves : (double)NAN);
    wg__json_member_double(json, "tile_efficiency", has_grid ? of->tile_efficiency : (double)NAN);
    wg__json_member_double(json, "wave_efficiency", has_grid ? of->wave_efficiency : (double)NAN);
    wg__json_member_string(json, "bound", row->is_predicted ? wg__bound_name(of->bound) : NULL);
    wg__json_member_string(json, "origin", row->is_predicted ? wg__origin_name(of->origin) : NULL);
    wg__json_member_double(json, "time_s", of->time_s);
    wg__json_member_double(json, "time_low_s", of->low_s);
    wg__json_member_double(json, "time_high_s", of->high_s);
    wg__json_member_double(json, "tail_s", of->tail_s);
    wg__json_member_double(json, "waste", row->waste);
    wg__json_member_double(json, "stream_k_saves_s", row->stream_k_s);
    wg__json_member_double(json, "measured_s", row->measured_s);
    wg__json_member_double(json, "measured_tail_s", row->measured_tail_s);
    wg__json_member_bool(json, "is_wasteful", wg__wave_is_wasteful(report, row));
    wg__json_close(json);
}

static void write_total(struct wg_json *json, const struct wg_wave_report *report,
                        const struct wg_wave_analysis *analysis)
{
    const struct wg_wave_total *total = &analysis->total;
    wg__json_key(json, "total");
    wg__json_object(json);
    wg__json_member_double(json, "time_s", total->time_s);
    wg__json_member_double(json, "time_low_s", total->low_s);
    wg__json_member_double(json, "time_high_s", total->high_s);
    wg__json_member_double(json, "recoverable_s", total->tail_s);
    wg__json_member_double(json, "waste", total->waste);
    wg__json_member_bool(json, "is_wasteful", wg__wave_is_wasteful_in_total(report, analysis));
    wg__json_member_double(json, "stream_k_saves_s", total->stream_k_s);
    wg__json_member_double(json, "idle_sm_s", total->idle_sm_s);
    wg__json_member_double(json, "idle_energy_least_j", total->idle_least_j);
    wg__json_member_double(json, "idle_energy_most_j", total->idle_most_j);
    wg__json_member_double(json, "flops", total->flops);
    wg__json_member_double(json, "measured_s", total->measured_s);
    wg__json_member_double(json, "compared_measured_s", total->compared_s);
    wg__json_member_double(json, "compared_predicted_s", total->compared_predicted_s);
    wg__json_member_double(json, "launched_s", total->launched_s);
    wg__json_member_double(json, "launched_tail_s", total->launched_tail_s);
    wg__json_member_uint(json, "layers_predicted", total->predicted);
    wg__json_member_uint(json, "layers_unpredicted", total->unpredicted);
    wg__json_member_uint(json, "nodes_left_out", report->model->network->left_out_count);
    wg__json_key(json, "time_by_origin_s");
    wg__json_object(json);
    for (int i = 0; i < WG_ORIGIN_COUNT; i++)
        wg__json_member_double(json, wg__origin_name((enum wg_origin)i), total->origin_s[i]);
    wg__json_close(json);
    wg__json_key(json, "time_by_bound_s");
    wg__json_object(json);
    for (int i = 0; i < WG_BOUND_COUNT; i++)
        wg__json_member_double(json, wg__bound_name((enum wg_bound)i), total->bound_s[i]);
    wg__json_close(json);
    wg__json_close(json);
}

static void write_points(struct wg_json *json, const struct wg_wave_analysis *analysis)
{
    wg__json_key(json, "batches");
    if (analysis->point_count == 0) {
        wg__json_null(json);
        return;
    }
    wg__json_object(json);
    const struct wg_batch_point *own = wg__wave_own_batch(analysis);
    const bool is_whole = analysis->points[0].batch == 1;
    member_known(json, "free_to", own != NULL ? own->free_to : 0);
    wg__json_key(json, "points");
    wg__json_array(json);
    for (size_t i = 0; i < analysis->point_count; i++) {
        const struct wg_batch_point *point = &analysis->points[i];
        wg__json_object(json);
        wg__json_member_uint(json, "batch_size", point->batch);
        wg__json_member_double(json, "time_s", point->time_s);
        wg__json_member_double(json, "samples_per_s", point->per_s);
        wg__json_member_double(json, "next_sample_s", point->next_s);
        wg__json_key(json, "is_best");
        if (is_whole)
            wg__json_bool(json, point->is_best);
        else
            wg__json_null(json);
        wg__json_member_uint(json, "free_to", point->free_to);
        wg__json_close(json);
    }
    wg__json_close(json);
    wg__json_close(json);
}

static void write_notes(struct wg_json *json, const struct wg_wave_report *report,
                        const struct wg_wave_analysis *analysis)
{
    wg__json_key(json, "notes");
    wg__json_array(json);
    for (size_t i = 0;; i++) {
        struct wg_buffer text;
        wg__buffer_init(&text);
        const bool has = wg__wave_caveat(report, analysis, i, &text);
        json->out->failed |= text.failed;
        if (has && !text.failed)
            wg__json_string(json, text.data);
        wg__buffer_fini(&text);
        if (!has)
            break;
    }
    wg__json_close(json);
}

void wg__wave_json(const struct wg_wave_report *report, struct wg_buffer *out)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.wave.analyze/1");
    write_model(&json, report->model);
    wg__json_member_string(&json, "calibration", report->calibration);
    wg__json_member_double(&json, "max_waste", report->max_waste);
    wg__json_member_double(&json, "max_total_waste", report->max_total_waste);
    wg__json_key(&json, "gpus");
    wg__json_array(&json);
    for (size_t g = 0; g < report->count; g++) {
        const struct wg_wave_analysis *analysis = &report->analyses[g];
        wg__json_object(&json);
        write_gpu(&json, analysis->gpu);
        write_total(&json, report, analysis);
        wg__json_key(&json, "layers");
        wg__json_array(&json);
        for (size_t i = 0; i < analysis->count; i++)
            write_row(&json, report, &analysis->rows[i]);
        wg__json_close(&json);
        write_points(&json, analysis);
        write_notes(&json, report, analysis);
        wg__json_close(&json);
    }
    wg__json_close(&json);
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

static void put_count(struct wg_buffer *out, uint64_t value)
{
    wg__buffer_puts(out, ",");
    if (value > 0)
        wg__buffer_printf(out, "%llu", (unsigned long long)value);
}

static void put_row(struct wg_buffer *out, const char *gpu, const struct wg_wave_row *row)
{
    const struct wg_prediction *of = &row->prediction;
    const struct wg_gemm none = {0}, *gemm = row->has_gemm ? &row->gemm : &none;
    const bool has_grid = of->blocks > 0;
    wg__csv_put(out, gpu);
    wg__buffer_puts(out, ",");
    wg__csv_put(out, row->layer->name);
    wg__buffer_puts(out, ",");
    wg__csv_put(out, row->layer->op);
    put_count(out, gemm->batch);
    put_count(out, gemm->m);
    put_count(out, gemm->n);
    put_count(out, gemm->k);
    put_count(out, of->kernel.tile_m);
    put_count(out, of->kernel.tile_n);
    put_count(out, of->kernel.tile_m > 0 ? of->kernel.split_k : 0);
    put_count(out, of->blocks);
    put_number(out, has_grid ? of->waves : (double)NAN);
    put_number(out, has_grid ? of->tile_efficiency : (double)NAN);
    put_number(out, has_grid ? of->wave_efficiency : (double)NAN);
    put_number(out, of->time_s);
    put_number(out, of->low_s);
    put_number(out, of->high_s);
    put_number(out, of->tail_s);
    put_number(out, row->measured_s);
    wg__buffer_printf(out, ",%s,%s\n", row->is_predicted ? wg__bound_name(of->bound) : "",
                      row->is_predicted ? wg__origin_name(of->origin) : "");
}

void wg__wave_csv(const struct wg_wave_report *report, struct wg_buffer *out)
{
    wg__buffer_puts(out, "gpu,layer,op,batch,m,n,k,tile_m,tile_n,split_k,blocks,waves,"
                         "tile_efficiency,wave_efficiency,time_s,time_low_s,time_high_s,tail_s,"
                         "measured_s,bound,origin\n");
    for (size_t g = 0; g < report->count; g++)
        for (size_t i = 0; i < report->analyses[g].count; i++)
            put_row(out, report->analyses[g].gpu->id, &report->analyses[g].rows[i]);
}

void wg__wave_batches_csv(const struct wg_wave_analysis *analysis, struct wg_buffer *out)
{
    size_t best = 0;
    for (size_t i = 0; i < analysis->point_count; i++)
        best += analysis->points[i].is_best != 0;
    /* The largest are kept: a list of batch sizes has an end, and small ones are soon overtaken. */
    size_t skipped = best > WG_BATCH_FILE_ROWS_MAX ? best - WG_BATCH_FILE_ROWS_MAX : 0;
    wg__buffer_puts(out, "batch_size,time_s,samples_per_s,next_sample_s,free_to\n");
    for (size_t i = 0; i < analysis->point_count; i++) {
        const struct wg_batch_point *point = &analysis->points[i];
        if (!point->is_best)
            continue;
        if (skipped > 0) {
            skipped--;
            continue;
        }
        wg__buffer_printf(out, "%u", point->batch);
        put_number(out, point->time_s);
        put_number(out, point->per_s);
        put_number(out, point->next_s);
        put_count(out, point->free_to);
        wg__buffer_puts(out, "\n");
    }
}
