/* SPDX-License-Identifier: MIT
 *
 * The calibrations that are built in: the files of data/wave/calibration, as bytes.
 *
 * Threads: pure, any thread.
 */
#include <stddef.h>

#include "wave/calibration_a100_bf16.h"
#include "wave/calibration_a100_fp16.h"
#include "wave/calibration_estimates.h"
#include "wave/calibration_fp32.h"
#include "wave/calibration_h100_bf16_fp8.h"
#include "wave/calibration_h100_fp16.h"
#include "wave/calibration_rtx_pro_6000_bf16.h"
#include "wave/calibration_set.h"

static const struct {
    const char *name, *bytes;
    size_t length;
} documents[] = {
    {"built-in estimates.json", calibration_estimates, sizeof calibration_estimates},
    {"built-in fp32.json", calibration_fp32, sizeof calibration_fp32},
    {"built-in a100_bf16.json", calibration_a100_bf16, sizeof calibration_a100_bf16},
    {"built-in a100_fp16.json", calibration_a100_fp16, sizeof calibration_a100_fp16},
    {"built-in h100_bf16_fp8.json", calibration_h100_bf16_fp8, sizeof calibration_h100_bf16_fp8},
    {"built-in h100_fp16.json", calibration_h100_fp16, sizeof calibration_h100_fp16},
    {"built-in rtx_pro_6000_bf16.json", calibration_rtx_pro_6000_bf16,
     sizeof calibration_rtx_pro_6000_bf16},
};

enum wg_code wg__calibration_built_in(struct wg_calibration **out, struct wg_error *err)
{
    struct wg_calibration *all = NULL;
    enum wg_code code = wg__calibration_new(&all, err);
    for (size_t i = 0; i < sizeof documents / sizeof *documents && code == WG_OK; i++) {
        struct wg_calibration *one = NULL;
        code = wg__calibration_read(&one, documents[i].name, documents[i].bytes,
                                    documents[i].length, err);
        if (code == WG_OK)
            code = wg__calibration_merge(all, one, err);
        wg__calibration_free(one);
    }
    if (code == WG_OK)
        *out = all;
    else
        wg__calibration_free(all);
    return code;
}
