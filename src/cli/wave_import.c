/* SPDX-License-Identifier: MIT
 *
 * Layers of a file with their grids; see wave_import.h.
 */
#include "cli/wave_import.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "wave/kernel.h"
#include "wave/layer_predict.h"

/* The launch that a layer's kernel and grid are of, among the launches from `*next` on, which come
 * in the layers' order. */
static const struct wg_launch *launch_of(const struct wg_profile *profile,
                                         const struct wg_layer *layer, size_t *next)
{
    const struct wg_launch *longest = NULL;
    while (*next < profile->launch_count && profile->launches[*next].layer == layer->name) {
        const struct wg_launch *launch = &profile->launches[(*next)++];
        const bool is_longer = longest == NULL || launch->time_s > longest->time_s;
        if (launch->name == layer->kernel_name && is_longer)
            longest = launch;
    }
    return longest;
}

/* Blocks that an SM holds at once; 0: not known. */
static unsigned occupancy_of(const struct wg_launch *launch, const struct wg_gpu_spec *gpu)
{
    const double threads =
        (double)launch->block[0] * (double)launch->block[1] * (double)launch->block[2];
    if (gpu == NULL || !(threads >= 1.0 && threads <= 1024.0) ||
        !(launch->registers_per_thread >= 0.0 && launch->registers_per_thread <= 255.0) ||
        !(launch->shared_memory_bytes >= 0.0))
        return 0;
    const struct wg_block_needs needs = {.threads = (unsigned)threads,
                                         .registers_per_thread =
                                             (unsigned)launch->registers_per_thread,
                                         .shared_memory_bytes = launch->shared_memory_bytes};
    return wg__occupancy(gpu, &needs);
}

static double waves_of(const struct wg_wave_import_row *row, const struct wg_gpu_spec *gpu)
{
    if (row->launch == NULL)
        return NAN;
    if (isfinite(row->launch->waves_per_sm))
        return row->launch->waves_per_sm;
    const unsigned held = occupancy_of(row->launch, gpu);
    return held != 0 ? row->per_sm / held : (double)NAN;
}

static void fill_row(struct wg_wave_import *import, struct wg_wave_import_row *row,
                     const struct wg_gpu_spec *gpu)
{
    const struct wg_layer *layer = row->layer;
    row->has_gemm = wg__layer_gemm(layer, &row->gemm);
    row->flops = layer->kind == WG_LAYER_BYTES  ? 0.0
                 : !row->has_gemm               ? (double)NAN
                 : layer->kind == WG_LAYER_CONV ? wg__conv_flops(&layer->conv)
                                                : wg__gemm_flops(&row->gemm);
    row->blocks = layer->blocks;
    if (row->blocks == 0 && row->has_gemm)
        row->blocks = wg__kernel_blocks(&layer->kernel, &row->gemm);
    const bool is_known = row->blocks != 0 && import->sms != 0;
    row->per_sm = is_known ? (double)row->blocks / import->sms : (double)NAN;
    row->waves = waves_of(row, gpu);
    row->tail = is_known ? wg__tail_share(row->per_sm) : (double)NAN;
    import->measured_s += layer->measured_s;
}

enum wg_code wg__wave_import(struct wg_wave_import *out, const struct wg_wave_model *model,
                             const struct wg_gpu_spec *gpu, bool is_given, struct wg_error *err)
{
    const struct wg_profile *profile = model->profile;
    struct wg_wave_import import = {
        .model = model, .device = "", .count = model->network->layer_count};
    if (profile != NULL) {
        import.device = profile->device;
        import.sms = profile->sms;
    }
    if (gpu != NULL && is_given && import.sms != 0 && import.sms != gpu->sms)
        return wg__fail(err, WG_EINVAL, "--gpu: %s has %u SMs, but %s was recorded on %u", gpu->id,
                        gpu->sms, model->name, import.sms);
    if (gpu != NULL && (is_given || import.sms == 0))
        import.sms = gpu->sms;
    if (gpu != NULL && is_given)
        import.device = gpu->id;
    import.rows = wg__alloc_zeroed(import.count, sizeof *import.rows);
    if (import.rows == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory for %zu layers", model->name,
                        import.count);
    size_t next = 0;
    for (size_t i = 0; i < import.count; i++) {
        struct wg_wave_import_row *row = &import.rows[i];
        row->layer = &model->network->layers[i];
        if (profile != NULL)
            row->launch = launch_of(profile, row->layer, &next);
        fill_row(&import, row, gpu);
    }
    *out = import;
    return WG_OK;
}

void wg__wave_import_fini(struct wg_wave_import *import)
{
    wg__free(import->rows);
    *import = (struct wg_wave_import){0};
}
