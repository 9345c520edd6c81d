/* SPDX-License-Identifier: MIT
 *
 * What the deciders of `wattgov wave` cost: opening the table and a model, a prediction, a sweep of
 * 4,096 points, batches of a repetitive network.
 *
 *     ninja -C build/release bench/wave_speed
 *     build/release/bench/wave_speed [GPU]
 *
 * Times are of the processor, the least of several rounds, in milliseconds (a prediction's in
 * microseconds). Prints JSON.
 *
 * Threads: one.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "wave/batches.h"
#include "wave/calibration.h"
#include "wave/staircase.h"

enum { POINTS = 4096, ROUNDS = 7, BATCHES = 256, LAYERS = 53 };

static const struct wg_layer conv = {.name = "conv4",
                                     .op = "Conv",
                                     .kind = WG_LAYER_CONV,
                                     .conv = {.n = 32,
                                              .c = 256,
                                              .h = 14,
                                              .w = 14,
                                              .filters = 256,
                                              .r = 3,
                                              .s = 3,
                                              .stride_h = 1,
                                              .stride_w = 1,
                                              .pad_top = 1,
                                              .pad_left = 1,
                                              .pad_bottom = 1,
                                              .pad_right = 1,
                                              .dilation_h = 1,
                                              .dilation_w = 1,
                                              .groups = 1}};
static const struct wg_layer linear = {.name = "fc",
                                       .op = "Gemm",
                                       .kind = WG_LAYER_GEMM,
                                       .gemm = {.batch = 1, .m = 512, .n = 4096, .k = 4096}};

static void require(enum wg_code code, const struct wg_error *err)
{
    if (code == WG_OK)
        return;
    (void)fprintf(stderr, "wave_speed: %s\n", err->text);
    exit(EXIT_FAILURE);
}

static double now_ms(void)
{
    return (double)wg__clock_thread_ns() / 1e6;
}

static void time_opening(struct wg_json *json)
{
    double table_ms = (double)INFINITY, model_ms = (double)INFINITY;
    struct wg_error err;
    for (int round = 0; round < ROUNDS; round++) {
        struct wg_gpu_table *table = NULL;
        struct wg_calibration *calibration = NULL;
        struct wg_kernel_model *model = NULL;
        const double start_ms = now_ms();
        require(wg__gpu_table_open_built_in(&table, &err), &err);
        const double opened_ms = now_ms();
        require(wg__calibration_built_in(&calibration, &err), &err);
        require(wg__kernel_model_new(&model, wg__gpu_table_at(table, 0), calibration, &err), &err);
        model_ms = fmin(model_ms, now_ms() - opened_ms);
        table_ms = fmin(table_ms, opened_ms - start_ms);
        wg__kernel_model_free(model);
        wg__calibration_free(calibration);
        wg__gpu_table_close(table);
    }
    wg__json_member_double(json, "table_open_ms", table_ms);
    wg__json_member_double(json, "model_open_ms", model_ms);
}

static void time_sweep(struct wg_json *json, const struct wg_kernel_model *model,
                       const struct wg_layer *of, enum wg_dtype dtype, enum wg_sweep_axis axis)
{
    static struct wg_sweep_point points[POINTS];
    struct wg_layer layer = *of;
    double least_ms = (double)INFINITY;
    struct wg_error err;
    layer.conv.dtype = layer.gemm.dtype = dtype;
    for (int round = 0; round < ROUNDS; round++) {
        const double start_ms = now_ms();
        const enum wg_code code = wg__sweep(model, &layer, axis, 32, 1, 1, POINTS, points, &err);
        if (code == WG_EUNSUPPORTED)
            return;
        require(code, &err);
        least_ms = fmin(least_ms, now_ms() - start_ms);
    }
    wg__json_object(json);
    wg__json_member_string(json, "layer", of->op);
    wg__json_member_string(json, "axis", wg__sweep_axis_name(axis));
    wg__json_member_string(json, "precision", wg__dtype_name(dtype));
    wg__json_member_double(json, "sweep_ms", least_ms);
    wg__json_member_double(json, "prediction_us", 1000 * least_ms / (double)POINTS);
    wg__json_close(json);
}

static void time_batches(struct wg_json *json, const struct wg_kernel_model *model)
{
    static struct wg_layer layers[LAYERS];
    static struct wg_batch_point points[BATCHES];
    const struct wg_network network = {.layers = layers, .layer_count = LAYERS};
    double least_ms = (double)INFINITY;
    struct wg_error err;
    for (size_t i = 0; i < LAYERS; i++) {
        layers[i] = conv; /* each of 24 shapes twice or more, as in ResNet-50 */
        layers[i].conv.filters = 64 + 16 * (i % 24);
    }
    for (int round = 0; round < 3; round++) {
        const double start_ms = now_ms();
        require(wg__batches(model, &network, 32, 1, BATCHES, points, &err), &err);
        least_ms = fmin(least_ms, now_ms() - start_ms);
    }
    wg__json_member_double(json, "batches_256_of_53_layers_ms", least_ms);
}

int main(int argc, char **argv)
{
    struct wg_gpu_table *table = NULL;
    struct wg_calibration *calibration = NULL;
    struct wg_kernel_model *model = NULL;
    const struct wg_gpu_spec *gpu = NULL;
    struct wg_error err;
    struct wg_buffer out;
    struct wg_json json;
    wg__buffer_init(&out);
    wg__json_init(&json, &out);
    require(wg__gpu_table_open_built_in(&table, &err), &err);
    require(wg__gpu_table_find(table, argc > 1 ? argv[1] : "a100-pcie-40gb", &gpu, &err), &err);
    require(wg__calibration_built_in(&calibration, &err), &err);
    require(wg__kernel_model_new(&model, gpu, calibration, &err), &err);
    wg__json_object(&json);
    wg__json_member_string(&json, "gpu", gpu->id);
    time_opening(&json);
    wg__json_key(&json, "sweeps_of_4096");
    wg__json_array(&json);
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++) {
        time_sweep(&json, model, &linear, (enum wg_dtype)dtype, WG_SWEEP_FILTERS);
        time_sweep(&json, model, &linear, (enum wg_dtype)dtype, WG_SWEEP_BATCH);
        time_sweep(&json, model, &conv, (enum wg_dtype)dtype, WG_SWEEP_FILTERS);
        time_sweep(&json, model, &conv, (enum wg_dtype)dtype, WG_SWEEP_RESOLUTION);
    }
    wg__json_close(&json);
    time_batches(&json, model);
    wg__json_close(&json);
    (void)printf("%.*s\n", (int)out.length, out.data);
    wg__buffer_fini(&out);
    wg__kernel_model_free(model);
    wg__calibration_free(calibration);
    wg__gpu_table_close(table);
    return EXIT_SUCCESS;
}
