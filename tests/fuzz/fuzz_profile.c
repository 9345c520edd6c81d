/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry of the readers of profiles and measurements: any bytes give layers, rows, or
 * one-line errors, never a crash.
 *
 * Beyond what the sanitizers see, it checks that whatever is read can be counted with: a kernel's
 * blocks follow from its tile, times are positive, each launch is of a layer that there is.
 *
 *     CC=clang-19 meson setup build/fuzz -Dfuzz=true && ninja -C build/fuzz tests/fuzz/fuzz_profile
 *     build/fuzz/tests/fuzz/fuzz_profile -max_total_time=60 NEW_FOLDER tests/fuzz/corpus/profile
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/measurements.h"
#include "model/profile.h"

/* libFuzzer prescribes the name. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_error(enum wg_code code, const struct wg_error *err)
{
    require(err->code == code && err->text[0] != '\0');
    require(strpbrk(err->text, "\n\r\x1B") == NULL);
}

static void check_layer(const struct wg_layer *layer)
{
    struct wg_gemm gemm = layer->gemm;
    require(layer->name != NULL && layer->op != NULL);
    require(isfinite(layer->measured_s) && layer->measured_s >= 0.0);
    if (layer->kind == WG_LAYER_CONV)
        require(wg__conv_gemm(&layer->conv, WG_CONV_FORWARD, &gemm, NULL) == WG_OK);
    if (layer->kind == WG_LAYER_BYTES)
        require(layer->bytes > 0.0);
    if (gemm.m != 0 && layer->kernel.tile_m != 0)
        require(wg__kernel_blocks(&layer->kernel, &gemm) != 0);
}

static void read_profile(const char *bytes, size_t size)
{
    struct wg_profile profile;
    struct wg_error err = {0};
    const enum wg_code code = wg__profile_read_memory(&profile, "fuzz", bytes, size, &err);
    if (code != WG_OK) {
        check_error(code, &err);
        return;
    }
    require(profile.network.layer_count != 0 && profile.device != NULL);
    for (size_t i = 0; i < profile.network.layer_count; i++)
        check_layer(&profile.network.layers[i]);
    size_t layer = 0;
    for (size_t i = 0; i < profile.launch_count; i++) {
        const struct wg_launch *launch = &profile.launches[i];
        while (layer < profile.network.layer_count &&
               launch->layer != profile.network.layers[layer].name)
            layer++;
        require(layer < profile.network.layer_count);
    }
    wg__profile_fini(&profile);
}

static void read_measurements(const char *bytes, size_t size)
{
    const struct wg_measurements_opts opts = {.has_dtype = true, .dtype = WG_DTYPE_FP32};
    struct wg_measurements measurements;
    struct wg_error err = {0};
    const enum wg_code code =
        wg__measurements_read_memory(&measurements, "fuzz", bytes, size, &opts, &err);
    if (code != WG_OK) {
        check_error(code, &err);
        return;
    }
    require(measurements.count != 0);
    for (size_t i = 0; i < measurements.count; i++) {
        const struct wg_measured *row = &measurements.rows[i];
        require(row->time_s > 0.0 && isfinite(row->time_s));
        require(row->gemm.m != 0 && row->gemm.n != 0 && row->gemm.k != 0 && row->gemm.batch != 0);
        require(row->kernel.split_k >= 1);
        if (row->kernel.tile_m != 0 && row->kernel.tile_n != 0)
            require(wg__kernel_blocks(&row->kernel, &row->gemm) != 0);
    }
    wg__measurements_fini(&measurements);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_profile((const char *)data, size);
    read_measurements((const char *)data, size);
    return 0;
}
