/* SPDX-License-Identifier: MIT
 *
 * The clocks of an AMD GPU, by the levels of pp_dpm_sclk and pp_dpm_mclk.
 *
 *     power_dpm_force_performance_level    "auto" -> "manual": only then are the tables obeyed
 *     pp_dpm_sclk                          "0 1 2": the levels that are allowed
 *
 * Which levels are allowed cannot be read back: the tables show the one that runs. So a level that
 * is not "auto" before our first write was chosen by somebody whose choice nobody could give back;
 * we leave it and say so. The way back is "auto", for both tables at once.
 *
 * Owns: nothing.    Threads: as struct wg_device.
 */
#include "device/amdgpu_clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/clock_table.h"

#define LEVEL_FILE "power_dpm_force_performance_level"

static enum wg_code become_manual(struct wg_kernel_device *kernel, const char *folder,
                                  bool *is_manual, struct wg_error *err)
{
    char level[32];
    if (*is_manual)
        return WG_OK;
    enum wg_code code = wg__kernel_get_text(kernel, folder, LEVEL_FILE, level, sizeof level, err);
    if (code != WG_OK)
        return code;
    if (strcmp(level, "auto") != 0)
        return wg__fail(err, WG_EBUSY,
                        LEVEL_FILE " is '%s', set by somebody else; write 'auto' to it to let "
                                   "wattgov set clocks",
                        level);
    code = wg__kernel_set_text(kernel, folder, LEVEL_FILE, "manual", err);
    *is_manual = code == WG_OK;
    return code;
}

/* The numbers of the levels that are allowed: "0 1 2". */
static void list_levels(const struct wg_clock_table *table, enum wg_knob knob, double value,
                        char *out, size_t size)
{
    size_t nearest = 0;
    for (size_t i = 1; i < table->count; i++) {
        if (fabs(table->levels_hz[i] - value) < fabs(table->levels_hz[nearest] - value))
            nearest = i;
    }
    size_t length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < table->count && length + 12 < size; i++) {
        const bool is_below = table->levels_hz[i] <= value * (1.0 + 1e-9) || i == 0;
        if (knob == WG_KNOB_GPU_CLOCK ? is_below : i == nearest)
            length += (size_t)snprintf(out + length, size - length, "%s%u", length > 0 ? " " : "",
                                       table->numbers[i]);
    }
}

enum wg_code wg__amdgpu_clock_set(struct wg_kernel_device *kernel, const char *folder,
                                  enum wg_knob knob, double value, bool *is_manual,
                                  struct wg_error *err)
{
    const char *name = knob == WG_KNOB_GPU_CLOCK ? "pp_dpm_sclk" : "pp_dpm_mclk";
    if (isnan(value)) {
        *is_manual = false;
        return wg__kernel_set_text(kernel, folder, LEVEL_FILE, "auto", err);
    }
    char text[WG_SYSFS_TEXT_MAX];
    struct wg_clock_table table;
    enum wg_code code = wg__kernel_get_text(kernel, folder, name, text, sizeof text, err);
    if (code != WG_OK)
        return code;
    if (!wg__clock_table_parse(text, &table) || table.count == 0)
        return wg__fail(err, WG_EDATA, "%s/%s: no table of clocks", folder, name);
    code = become_manual(kernel, folder, is_manual, err);
    if (code != WG_OK)
        return code;
    list_levels(&table, knob, value, text, sizeof text);
    return wg__kernel_set_text(kernel, folder, name, text, err);
}
