/* SPDX-License-Identifier: MIT
 *
 * Names and sizes of number formats: see gpu.h.
 */
#include <string.h>
#include <strings.h>

#include "wave/gpu.h"

static const struct {
    const char *name;
    unsigned bytes;
} dtypes[] = {
#define X(name, text, bytes) [WG_DTYPE_##name] = {text, bytes},
    WG_DTYPES(X)
#undef X
};

const char *wg__dtype_name(enum wg_dtype dtype)
{
    return dtypes[dtype].name;
}

unsigned wg__dtype_bytes(enum wg_dtype dtype)
{
    return dtypes[dtype].bytes;
}

enum wg_code wg__dtype_parse(const char *text, enum wg_dtype *out, struct wg_error *err)
{
    static const struct {
        const char *name;
        enum wg_dtype dtype;
    } others[] = {{"bfloat16", WG_DTYPE_BF16},   {"float16", WG_DTYPE_FP16},
                  {"half", WG_DTYPE_FP16},       {"float32", WG_DTYPE_FP32},
                  {"float", WG_DTYPE_FP32},      {"e4m3", WG_DTYPE_FP8},
                  {"float8_e4m3", WG_DTYPE_FP8}, {"float8_e4m3fn", WG_DTYPE_FP8}};
    for (int i = 0; i < WG_DTYPE_COUNT; i++)
        if (strcasecmp(text, dtypes[i].name) == 0) {
            *out = (enum wg_dtype)i;
            return WG_OK;
        }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcasecmp(text, others[i].name) == 0) {
            *out = others[i].dtype;
            return WG_OK;
        }
    return wg__fail(err, WG_EINVAL,
                    "'%s' is no precision (known: fp32, tf32, fp16, bf16, fp8, int8)", text);
}
