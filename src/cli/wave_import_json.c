/* SPDX-License-Identifier: MIT
 *
 * An import for programs; see wave_import.h.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/wave_import.h"

static void count_or_null(struct wg_json *json, const char *key, uint64_t value)
{
    if (value != 0) {
        wg__json_member_uint(json, key, value);
    } else {
        wg__json_key(json, key);
        wg__json_null(json);
    }
}

static void put_gemm(struct wg_json *json, const struct wg_wave_import_row *row)
{
    const struct wg_gemm none = {0};
    const struct wg_gemm *gemm = row->has_gemm ? &row->gemm : &none;
    wg__json_member_string(json, "dtype", row->has_gemm ? wg__dtype_name(gemm->dtype) : NULL);
    count_or_null(json, "B", gemm->batch);
    count_or_null(json, "m", gemm->m);
    count_or_null(json, "n", gemm->n);
    count_or_null(json, "k", gemm->k);
    wg__json_member_double(json, "flops", row->flops);
}

static void put_conv(struct wg_json *json, const struct wg_layer *layer)
{
    const struct wg_conv *conv = &layer->conv;
    const struct {
        const char *key;
        uint64_t value;
    } members[] = {{"N", conv->n},
                   {"C", conv->c},
                   {"K", conv->filters},
                   {"R", conv->r},
                   {"S", conv->s},
                   {"H", conv->h},
                   {"W", conv->w},
                   {"stride_h", conv->stride_h},
                   {"stride_w", conv->stride_w},
                   {"pad_top", conv->pad_top},
                   {"pad_left", conv->pad_left},
                   {"pad_bottom", conv->pad_bottom},
                   {"pad_right", conv->pad_right},
                   {"dilation_h", conv->dilation_h},
                   {"dilation_w", conv->dilation_w},
                   {"groups", conv->groups}};
    wg__json_key(json, "conv");
    if (layer->kind != WG_LAYER_CONV) {
        wg__json_null(json);
        return;
    }
    wg__json_object(json);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        wg__json_member_uint(json, members[i].key, members[i].value);
    wg__json_close(json);
}

static void put_kernel(struct wg_json *json, const struct wg_wave_import_row *row)
{
    const struct wg_layer *layer = row->layer;
    wg__json_member_string(json, "kernel", layer->kernel_name);
    count_or_null(json, "tile_m", layer->kernel.tile_m);
    count_or_null(json, "tile_n", layer->kernel.tile_n);
    count_or_null(json, "tile_k", layer->kernel.tile_k);
    count_or_null(json, "threads", layer->kernel.threads);
    wg__json_key(json, "grid");
    if (row->launch != NULL && row->launch->grid[0] != 0) {
        wg__json_array(json);
        for (size_t i = 0; i < 3; i++)
            wg__json_uint(json, row->launch->grid[i]);
        wg__json_close(json);
    } else {
        wg__json_null(json);
    }
    count_or_null(json, "blocks", row->blocks);
    wg__json_member_double(json, "blocks_per_sm", row->per_sm);
    wg__json_member_double(json, "waves", row->waves);
    wg__json_member_double(json, "tail_share", row->tail);
}

static void put_row(struct wg_json *json, const struct wg_wave_import_row *row)
{
    const struct wg_layer *layer = row->layer;
    const bool has_bytes = layer->kind == WG_LAYER_BYTES;
    wg__json_object(json);
    wg__json_member_string(json, "name", layer->name);
    wg__json_member_string(json, "op", layer->op);
    put_gemm(json, row);
    put_conv(json, layer);
    wg__json_member_double(json, "bytes", has_bytes ? layer->bytes : (double)NAN);
    wg__json_member_uint(json, "parameters", layer->parameters);
    put_kernel(json, row);
    wg__json_member_double(json, "time_s",
                           layer->measured_s > 0.0 ? layer->measured_s : (double)NAN);
    wg__json_close(json);
}

void wg__wave_import_json(const struct wg_wave_import *import, struct wg_json *json)
{
    const bool has_device = *import->device != '\0';
    wg__json_member_string(json, "device", has_device ? import->device : NULL);
    count_or_null(json, "sms", import->sms);
    count_or_null(json, "batch", import->model->batch);
    wg__json_member_double(json, "time_s",
                           import->measured_s > 0.0 ? import->measured_s : (double)NAN);
    wg__json_member_uint(json, "nodes_left_out", import->model->network->left_out_count);
    wg__json_key(json, "layers");
    wg__json_array(json);
    for (size_t i = 0; i < import->count; i++)
        put_row(json, &import->rows[i]);
    wg__json_close(json);
}
