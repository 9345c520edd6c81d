/* SPDX-License-Identifier: MIT
 *
 * Units of levels; see tune_quantity.h.
 */
#include "live/tune_quantity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/number.h"

struct unit {
    const char *text;
    double factor;
};

static const struct unit hertz[] = {{"", 1e6},    {"MHz", 1e6}, {"GHz", 1e9},
                                    {"kHz", 1e3}, {"Hz", 1},    {NULL, 0}};
static const struct unit watts[] = {{"", 1}, {"W", 1}, {"mW", 1e-3}, {"kW", 1e3}, {NULL, 0}};
static const struct unit seconds[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {NULL, 0}};
static const struct unit plain[] = {{"", 1}, {NULL, 0}};

static const struct unit *units_of(enum wg_tuning_role role)
{
    switch (role) {
    case WG_TUNING_GPU_CLOCK:
    case WG_TUNING_MEM_CLOCK:
    case WG_TUNING_CPU_CLOCK:
        return hertz;
    case WG_TUNING_POWER_LIMIT:
        return watts;
    case WG_TUNING_DELAY:
        return seconds;
    default:
        return plain;
    }
}

bool wg__tune_quantity_parse(const char *text, enum wg_tuning_role role, double *out)
{
    char number[64];
    size_t length = strspn(text, "0123456789.+-");
    if (text[length] == 'e' && strspn(text + length + 1, "0123456789+-") > 0)
        length += 1 + strspn(text + length + 1, "0123456789+-");
    if (length == 0 || length >= sizeof number)
        return false;
    memcpy(number, text, length);
    number[length] = '\0';
    text += length;
    text += strspn(text, " ");
    double value = 0;
    if (!wg__parse_double(number, &value))
        return false;
    for (const struct unit *unit = units_of(role); unit->text != NULL; unit++) {
        if (strcmp(unit->text, text) == 0) {
            *out = value * unit->factor;
            return true;
        }
    }
    return false;
}

void wg__tune_quantity_text(char out[static WG_TUNE_QUANTITY_SIZE], enum wg_tuning_role role,
                            double value)
{
    const struct unit *units = units_of(role);
    char number[WG_DOUBLE_TEXT_SIZE];
    if (units == hertz) {
        (void)snprintf(out, WG_TUNE_QUANTITY_SIZE, "%.0f MHz", value * 1e-6);
    } else if (units == watts) {
        (void)snprintf(out, WG_TUNE_QUANTITY_SIZE, "%.4g W", value);
    } else if (units == seconds) {
        (void)snprintf(out, WG_TUNE_QUANTITY_SIZE, "%.4g ms", value * 1e3);
    } else {
        wg__format_double(number, value);
        (void)snprintf(out, WG_TUNE_QUANTITY_SIZE, "%s", number);
    }
}

void wg__tune_level_text(char out[static WG_TUNE_QUANTITY_SIZE], const struct wg_tuning_knob *knob,
                         size_t level)
{
    if (knob->labels != NULL)
        (void)snprintf(out, WG_TUNE_QUANTITY_SIZE, "%.60s", knob->labels[level]);
    else
        wg__tune_quantity_text(out, knob->role, knob->levels[level]);
}

void wg__tune_configuration_text(struct wg_buffer *out, const struct wg_tuning_space *space,
                                 size_t configuration)
{
    for (size_t k = 0; k < space->knob_count; k++) {
        char text[WG_TUNE_QUANTITY_SIZE];
        const struct wg_tuning_knob *knob = &space->knobs[k];
        wg__tune_level_text(text, knob, wg__tuning_level(space, configuration, k));
        wg__buffer_printf(out, "%s%s %s", k > 0 ? ", " : "", knob->name, text);
    }
}
