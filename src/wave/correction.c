/* SPDX-License-Identifier: MIT
 *
 * Features of a product on a GPU, and the forest's word on it.
 *
 * Threads: pure, any thread.
 */
#include "wave/correction.h"

#include <assert.h>
#include <math.h>

static const struct {
    unsigned m, n;
} tiles[] = {{256, 128}, {128, 256}, {128, 128}, {256, 64},
             {64, 256},  {128, 64},  {64, 128},  {64, 64}};
static const unsigned row_tiles[] = {32, 64, 128, 256};
static const unsigned row_units[] = {8, 16, 32};

enum {
    SIZES = 10,
    PER_TILE = 4,
    TILES = sizeof tiles / sizeof *tiles,
    ROW_TILES = sizeof row_tiles / sizeof *row_tiles,
    ROW_UNITS = sizeof row_units / sizeof *row_units
};
static_assert(SIZES + PER_TILE * TILES + ROW_TILES + ROW_UNITS == WG_CORRECTION_FEATURES,
              "a name each");
static_assert(WG_CORRECTION_FEATURES + 0 <= WG_FOREST_FEATURES_MAX + 0, "they fit a forest");

static const double WAVES_MOST = 50.0; /* beyond, waves do not show */
static const double FACTOR_MOST = 1.5; /* of the logarithm: no leaf sum may run away */

void wg__correction_features(const struct wg_wave_machine *machine, const struct wg_wave_work *work,
                             const struct wg_kernel_choice *choice,
                             float out[static WG_CORRECTION_FEATURES])
{
    const struct wg_gemm *gemm = &work->gemm;
    const double time_s = choice->time.time_s;
    const double batch = (double)gemm->batch;
    const double flops_s = wg__gemm_flops(gemm) / (machine->sm_flops_per_s * machine->sms);
    const double bytes_s = work->bytes / machine->bandwidth_bytes_per_s;
    const double sizes[SIZES] = {
        (double)gemm->m,      (double)gemm->n,  (double)gemm->k,  batch,
        flops_s / bytes_s,    flops_s / time_s, bytes_s / time_s, time_s * 1e6,
        (double)choice->tile, choice->split_k,
    };
    for (size_t i = 0; i < SIZES; i++)
        *out++ = (float)sizes[i];
    for (size_t t = 0; t < TILES; t++) {
        double blocks = batch * (double)wg__tiles_over(gemm->m, tiles[t].m) *
                        (double)wg__tiles_over(gemm->n, tiles[t].n);
        double waves = blocks / machine->sms, whole = ceil(waves);
        double tile_s =
            2.0 * (double)(tiles[t].m * tiles[t].n) * (double)gemm->k / machine->sm_flops_per_s;
        *out++ = (float)fmin(waves, WAVES_MOST);
        *out++ = (float)(whole / waves);
        *out++ = (float)(whole * tile_s / time_s);
        *out++ = (float)(waves - floor(waves));
    }
    for (size_t i = 0; i < ROW_TILES; i++)
        *out++ = (float)((double)gemm->m /
                         (row_tiles[i] * (double)wg__tiles_over(gemm->m, row_tiles[i])));
    for (size_t i = 0; i < ROW_UNITS; i++)
        *out++ = gemm->m % row_units[i] == 0 ? 1.0F : 0.0F;
}

void wg__correct(const struct wg_forest_index *forest, const struct wg_wave_machine *machine,
                 const struct wg_wave_work *work, struct wg_kernel_choice *choice)
{
    if (forest == NULL)
        return;
    float features[WG_CORRECTION_FEATURES];
    wg__correction_features(machine, work, choice, features);
    double value = wg__forest_value(forest, features);
    double factor = exp(fmin(fmax(value, -FACTOR_MOST), FACTOR_MOST));
    choice->time.time_s *= factor;
    choice->time.full_s *= factor;
}
