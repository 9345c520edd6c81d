/* SPDX-License-Identifier: MIT
 *
 * A kernel model of an A100 with what is built in, and a layer to ask it about.
 *
 * Owns: the model.    Threads: one at a time.
 */
#ifndef WG_TESTS_SUPPORT_WAVE_STAGE_H
#define WG_TESTS_SUPPORT_WAVE_STAGE_H

#include "support/check.h"
#include "wave/calibration.h"
#include "wave/gpu.h"
#include "wave/kernel_model.h"
#include "wave/network.h"

struct wave_stage {
    struct wg_gpu_table *table;
    struct wg_kernel_model *model;
};

/* ResNet-50's conv4 3x3 on 32 images. */
static const struct wg_layer wave_conv = {.name = "conv4",
                                          .op = "Conv",
                                          .kind = WG_LAYER_CONV,
                                          .conv = {.dtype = WG_DTYPE_FP32,
                                                   .n = 32,
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
                                                   .groups = 1},
                                          .blocks = 99};

static inline int wave_stage_open(void **state)
{
    static struct wave_stage stage;
    struct wg_calibration *calibration = NULL;
    const struct wg_gpu_spec *gpu = NULL;
    struct wg_error err = {0};
    enum wg_code code = wg__gpu_table_open_built_in(&stage.table, &err);
    if (code == WG_OK)
        code = wg__gpu_table_find(stage.table, "a100-pcie-40gb", &gpu, &err);
    if (code == WG_OK)
        code = wg__calibration_built_in(&calibration, &err);
    if (code == WG_OK)
        code = wg__kernel_model_new(&stage.model, gpu, calibration, &err);
    wg__calibration_free(calibration);
    if (code != WG_OK)
        fail_msg("%s", err.text);
    *state = &stage;
    return 0;
}

static inline int wave_stage_close(void **state)
{
    struct wave_stage *stage = *state;
    wg__kernel_model_free(stage->model);
    wg__gpu_table_close(stage->table);
    return 0;
}

#endif
