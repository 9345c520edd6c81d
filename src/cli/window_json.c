/* SPDX-License-Identifier: MIT
 *
 * A window's result in JSON; see window_json.h.
 */
#include "cli/window_json.h"

static void write_flags(struct wg_json *json, uint32_t flags)
{
    wg__json_key(json, "flags");
    wg__json_array(json);
    for (unsigned bit = 0; bit < 32; bit++) {
        const char *key = (flags >> bit & 1u) != 0 ? wg_window_flag_key(1u << bit) : NULL;
        if (key != NULL)
            wg__json_string(json, key);
    }
    wg__json_close(json);
}

void wg__window_json(struct wg_json *json, const struct wg_window_result *result)
{
    wg__json_member_double(json, "energy_j", result->energy_j);
    wg__json_member_double(json, "energy_error_j", result->energy_error_j);
    wg__json_member_double(json, "time_s", result->time_s);
    wg__json_member_double(json, "power_mean_w", result->power_mean_w);
    wg__json_member_double(json, "power_peak_w", result->power_peak_w);
    wg__json_member_double(json, "idle_share", result->idle_share);
    wg__json_member_double(json, "throttled_s", result->throttled_s);
    wg__json_member_double(json, "coverage", result->coverage);
    wg__json_member_double(json, "resolution_s", result->resolution_s);
    wg__json_member_uint(json, "sample_count", result->sample_count);
    wg__json_member_string(json, "source", wg_energy_source_key(result->source));
    write_flags(json, result->flags);
}
