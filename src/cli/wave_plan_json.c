/* SPDX-License-Identifier: MIT
 *
 * A plan for programs: JSON (schema "wattgov.wave.plan/1"), and the front as CSV.
 *
 * `widths` holds the widths that may change, each with the layers that produce it, by which
 * wattgov.wave.apply finds a model's modules; `layers` what each layer costs before and after.
 */
#include <math.h>

#include "base/buffer.h"
#include "base/csv_write.h"
#include "base/json.h"
#include "cli/wave_plan_report.h"
#include "cli/wave_widths.h"
#include "wave/layer_predict.h"

void wg__wave_plan_times(const struct wg_wave_plan_report *report, const uint32_t *channels,
                         struct wg_wave_plan_times *out)
{
    const struct wg_network *network = report->model->network;
    *out = (struct wg_wave_plan_times){.low_s = 0};
    for (size_t i = 0; i < network->layer_count; i++) {
        struct wg_layer moved;
        struct wg_prediction prediction;
        if (wg__layer_at(&network->layers[i], channels, &moved, NULL) != WG_OK ||
            wg__layer_predict(report->kernels, &moved, &prediction, NULL) != WG_OK)
            continue; /* then there is no plan either */
        out->low_s += prediction.low_s;
        out->high_s += prediction.high_s;
        out->by_origin[prediction.origin]++;
    }
}

static void write_sums(struct wg_json *json, const struct wg_wave_plan_report *report,
                       const char *key, const uint32_t *channels, double time_s, double parameters,
                       double flops)
{
    struct wg_wave_plan_times times;
    wg__wave_plan_times(report, channels, &times);
    wg__json_key(json, key);
    wg__json_object(json);
    wg__json_member_double(json, "time_s", time_s);
    wg__json_member_double(json, "time_low_s", times.low_s);
    wg__json_member_double(json, "time_high_s", times.high_s);
    wg__json_member_double(json, "parameters", parameters);
    wg__json_member_double(json, "flops", flops);
    wg__json_key(json, "layers_by_origin");
    wg__json_object(json);
    for (int origin = 0; origin < WG_ORIGIN_COUNT; origin++)
        wg__json_member_uint(json, wg__origin_name((enum wg_origin)origin),
                             times.by_origin[origin]);
    wg__json_close(json);
    wg__json_close(json);
}

static void write_widths(struct wg_json *json, const struct wg_wave_plan_report *report)
{
    const struct wg_network *network = report->model->network;
    wg__json_key(json, "widths");
    wg__json_array(json);
    for (size_t w = 0; w < network->width_count; w++) {
        const struct wg_width *width = &network->widths[w];
        if (width->is_fixed)
            continue;
        wg__json_object(json);
        wg__json_member_string(json, "name", width->name);
        wg__json_member_uint(json, "original", width->channels);
        wg__json_member_uint(json, "before", report->before[w]);
        wg__json_member_uint(json, "after", report->plan.channels[w]);
        wg__json_member_double(json, "importance",
                               report->opts->importance != NULL ? report->opts->importance[w]
                                                                : (double)NAN);
        wg__json_key(json, "layers");
        wg__json_array(json);
        for (size_t i = 0; i < network->layer_count; i++) {
            if (wg__wave_makes_width(&network->layers[i], w))
                wg__json_string(json, network->layers[i].name);
        }
        wg__json_close(json);
        wg__json_close(json);
    }
    wg__json_close(json);
}

static void write_side(struct wg_json *json, const struct wg_wave_plan_report *report,
                       const struct wg_layer *layer, const char *key, const uint32_t *channels)
{
    struct wg_layer moved;
    struct wg_prediction prediction;
    wg__json_key(json, key);
    if (wg__layer_at(layer, channels, &moved, NULL) != WG_OK ||
        wg__layer_predict(report->kernels, &moved, &prediction, NULL) != WG_OK) {
        wg__json_null(json);
        return;
    }
    wg__json_object(json);
    if (layer->kind != WG_LAYER_BYTES) {
        const bool is_conv = layer->kind == WG_LAYER_CONV;
        wg__json_member_uint(json, "in", is_conv ? moved.conv.c : moved.gemm.k);
        wg__json_member_uint(json, "out", is_conv ? moved.conv.filters : moved.gemm.n);
    }
    wg__json_member_double(json, "time_s", prediction.time_s);
    wg__json_member_double(json, "time_low_s", prediction.low_s);
    wg__json_member_double(json, "time_high_s", prediction.high_s);
    wg__json_member_double(json, "tail_s", prediction.tail_s);
    wg__json_member_string(json, "origin", wg__origin_name(prediction.origin));
    wg__json_member_uint(json, "parameters", moved.parameters);
    wg__json_close(json);
}

static void write_head(struct wg_json *json, const struct wg_wave_plan_report *report)
{
    const struct wg_plan_opts *opts = report->opts;
    wg__json_member_string(json, "schema", "wattgov.wave.plan/1");
    wg__json_key(json, "model");
    wg__json_object(json);
    wg__json_member_string(json, "name", report->model->name);
    wg__json_member_string(json, "kind", report->model->kind);
    wg__json_key(json, "batch_size");
    if (report->model->batch > 0)
        wg__json_uint(json, report->model->batch);
    else
        wg__json_null(json);
    wg__json_member_string(json, "precision",
                           report->model->graph != NULL ? wg__dtype_name(report->model->dtype)
                                                        : NULL);
    wg__json_close(json);
    wg__json_member_string(json, "gpu", report->gpu->id);
    wg__json_member_string(json, "goal", report->goal);
    const bool keeps = opts->goal == WG_PLAN_LATENCY || opts->goal == WG_PLAN_ALIGN;
    wg__json_member_double(json, "kept_parameters",
                           keeps && opts->kept > 0 ? opts->kept : (double)NAN);
    wg__json_member_double(json, "kept_flops",
                           keeps && opts->flops_kept > 0 ? opts->flops_kept : (double)NAN);
    wg__json_member_double(json, "limit_s",
                           keeps                 ? (double)NAN
                           : opts->limit_s > 0.0 ? opts->limit_s
                                                 : report->plan.before_s);
}

void wg__wave_plan_json(const struct wg_wave_plan_report *report, struct wg_buffer *out)
{
    const struct wg_plan *plan = &report->plan;
    const struct wg_network *network = report->model->network;
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    write_head(&json, report);
    write_sums(&json, report, "before", report->before, plan->before_s, plan->before_parameters,
               plan->before_flops);
    write_sums(&json, report, "after", plan->channels, plan->time_s, plan->parameters, plan->flops);
    wg__json_member_double(&json, "time_saved", 1 - plan->time_s / plan->before_s);
    wg__json_member_bool(&json, "is_optimal", plan->is_optimal);
    wg__json_member_double(&json, "gap", plan->gap);
    write_widths(&json, report);
    wg__json_key(&json, "layers");
    wg__json_array(&json);
    for (size_t i = 0; i < network->layer_count; i++) {
        wg__json_object(&json);
        wg__json_member_string(&json, "name", network->layers[i].name);
        wg__json_member_string(&json, "op", network->layers[i].op);
        write_side(&json, report, &network->layers[i], "before", report->before);
        write_side(&json, report, &network->layers[i], "after", plan->channels);
        wg__json_close(&json);
    }
    wg__json_close(&json);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}

void wg__wave_front_csv(const struct wg_wave_plan_report *report, struct wg_buffer *out)
{
    wg__buffer_puts(out, "kept,time_s,parameters,flops,is_optimal,gap\n");
    for (size_t i = 0; i < report->front_count; i++) {
        const struct wg_wave_front_point *point = &report->front[i];
        const double numbers[] = {point->kept, point->time_s, point->parameters, point->flops};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            wg__csv_put_double(out, numbers[k]);
            wg__buffer_puts(out, ",");
        }
        wg__buffer_puts(out, point->is_optimal ? "1," : "0,");
        if (isfinite(point->gap))
            wg__csv_put_double(out, point->gap);
        wg__buffer_puts(out, "\n");
    }
}
