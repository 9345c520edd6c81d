/* SPDX-License-Identifier: MIT
 *
 * The calibrations that are built in: the files of data/wave/calibration, as bytes.
 *
 * Threads: pure, any thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"

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

enum { CORRECTIONS_MAX = 8 };

/* A document without its corrections, which take most of it, and where they are. */
struct outline {
    char *bytes;
    size_t length;
    struct {
        const char *text; /* NULL: the entry has none */
        size_t length;
    } corrections[CORRECTIONS_MAX];
};

/* The end of a JSON object that has no escapes in its texts: ours have none. */
static const char *object_end(const char *at, const char *end)
{
    size_t depth = 0;
    bool in_text = false;
    for (; at < end; at++) {
        if (*at == '"')
            in_text = !in_text;
        depth += !in_text && *at == '{';
        depth -= !in_text && *at == '}' && depth > 0;
        if (depth == 0)
            return at + 1;
    }
    return end;
}

/* The writer puts a correction last in its entry, and an entry's gpu first. */
static enum wg_code outline(const char *bytes, size_t length, struct outline *out,
                            struct wg_error *err)
{
    static const char gpu[] = "{\"gpu\":", correction[] = ",\"correction\":";
    const char *at = bytes, *end = bytes + length;
    size_t entry = 0; /* entries begun */
    *out = (struct outline){.bytes = wg__alloc(length)};
    if (out->bytes == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for what is built in");
    while (at < end) {
        if ((size_t)(end - at) > sizeof gpu && memcmp(at, gpu, sizeof gpu - 1) == 0)
            entry++;
        if (entry > 0 && entry <= CORRECTIONS_MAX && (size_t)(end - at) > sizeof correction &&
            memcmp(at, correction, sizeof correction - 1) == 0) {
            const char *from = at + sizeof correction - 1;
            at = object_end(from, end);
            out->corrections[entry - 1].text = from;
            out->corrections[entry - 1].length = (size_t)(at - from);
            continue;
        }
        out->bytes[out->length++] = *at++;
    }
    return WG_OK;
}

static enum wg_code read_document(size_t index, struct wg_calibration **out, struct wg_error *err)
{
    struct outline short_form;
    enum wg_code code = outline(documents[index].bytes, documents[index].length, &short_form, err);
    if (code == WG_OK)
        code = wg__calibration_read(out, documents[index].name, short_form.bytes, short_form.length,
                                    err);
    for (size_t i = 0; code == WG_OK && i < (*out)->count && i < CORRECTIONS_MAX; i++) {
        (*out)->entries[i].correction_text = short_form.corrections[i].text;
        (*out)->entries[i].correction_length = short_form.corrections[i].length;
    }
    wg__free(short_form.bytes);
    return code;
}

enum wg_code wg__calibration_built_in(struct wg_calibration **out, struct wg_error *err)
{
    struct wg_calibration *all = NULL;
    enum wg_code code = wg__calibration_new(&all, err);
    for (size_t i = 0; i < sizeof documents / sizeof *documents && code == WG_OK; i++) {
        struct wg_calibration *one = NULL;
        code = read_document(i, &one, err);
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
