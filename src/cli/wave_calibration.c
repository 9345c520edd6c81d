/* SPDX-License-Identifier: MIT
 *
 * Parameters from a file beside those that are built in; see wave_calibration.h.
 */
#include "cli/wave_calibration.h"

#include "base/buffer.h"
#include "base/source.h"

static enum wg_code merge_file(struct wg_calibration *calibration, const char *path,
                               struct wg_error *err)
{
    struct wg_buffer text;
    struct wg_calibration *own = NULL;
    wg__buffer_init(&text);
    enum wg_code code = wg__source_read_all(path, WG_CALIBRATION_MAX_MIB, &text, err);
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
