/* SPDX-License-Identifier: MIT
 *
 * Parameters from a file beside those that are built in; see wave_calibration.h.
 */
#include "cli/wave_calibration.h"

#include "base/buffer.h"
#include "base/source.h"

static enum wg_code read_file(const char *path, struct wg_buffer *out, struct wg_error *err)
{
    struct wg_source source;
    enum wg_code code = wg__source_open(&source, path, err);
    if (code != WG_OK)
        return code;
    while (wg__source_peek(&source, err) >= 0) {
        const size_t length = (size_t)(source.end - source.cursor);
        if (out->length + length > WG_CALIBRATION_FILE_MAX) {
            code = wg__fail(err, WG_EDATA, "%s: more than %d MiB", path,
                            WG_CALIBRATION_FILE_MAX >> 20);
            break;
        }
        wg__buffer_append(out, source.cursor, length);
        source.cursor = source.end;
    }
    if (code == WG_OK)
        code = source.stopped;
    if (code == WG_OK && out->failed)
        code = wg__fail(err, WG_ENOMEM, "out of memory for %s", path);
    wg__source_close(&source);
    return code;
}

static enum wg_code merge_file(struct wg_calibration *calibration, const char *path,
                               struct wg_error *err)
{
    struct wg_buffer text;
    struct wg_calibration *own = NULL;
    wg__buffer_init(&text);
    enum wg_code code = read_file(path, &text, err);
    if (code == WG_OK)
        code = wg__calibration_read(&own, path, text.length > 0 ? text.data : "", text.length, err);
    if (code == WG_OK)
        code = wg__calibration_merge(calibration, own, err);
    wg__calibration_free(own);
    wg__buffer_fini(&text);
    return code;
}

enum wg_code wg__wave_calibration_open(struct wg_calibration **out, const char *path,
                                       struct wg_error *err)
{
    struct wg_calibration *calibration = NULL;
    enum wg_code code = wg__calibration_built_in(&calibration, err);
    if (code == WG_OK && path != NULL)
        code = merge_file(calibration, path, err);
    if (code == WG_OK)
        *out = calibration;
    else
        wg__calibration_free(calibration);
    return code;
}
