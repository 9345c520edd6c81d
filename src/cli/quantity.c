/* SPDX-License-Identifier: MIT
 *
 * A device's numbers for people; see quantity.h.
 *
 * The unit follows from the end of the metric's key, so the one table of metrics stays the only
 * one.
 */
#include "cli/quantity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

enum unit { UNIT_SHARE, UNIT_W, UNIT_J, UNIT_HZ, UNIT_C, UNIT_BYTES, UNIT_S };

static enum unit unit_of(enum wg_metric metric)
{
    static const struct {
        const char *end;
        enum unit unit;
    } ends[] = {{"_w", UNIT_W}, {"_j", UNIT_J},         {"_hz", UNIT_HZ},
                {"_c", UNIT_C}, {"_bytes", UNIT_BYTES}, {"_s", UNIT_S}};
    const char *key = wg_metric_key(metric);
    const size_t length = key != NULL ? strlen(key) : 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t end = strlen(ends[i].end);
        if (length > end && strcmp(key + length - end, ends[i].end) == 0)
            return ends[i].unit;
    }
    return UNIT_SHARE;
}

void wg__bytes_text(char out[static WG_QUANTITY_TEXT_SIZE], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    for (; bytes >= 1024 && i + 1 < sizeof units / sizeof *units; i++)
        bytes /= 1024;
    (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "%.*f %s", i == 0 ? 0 : 1, bytes, units[i]);
}

void wg__joules_text(char out[static WG_QUANTITY_TEXT_SIZE], double energy_j)
{
    if (isnan(energy_j))
        (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "n/a");
    else if (fabs(energy_j) < 1e4)
        (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "%.1f J", energy_j);
    else if (fabs(energy_j) < 1e6)
        (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "%.2f kJ", energy_j / 1e3);
    else if (fabs(energy_j) < 1e9)
        (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "%.3f MJ", energy_j / 1e6);
    else
        (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "%.3f GJ", energy_j / 1e9);
}

void wg__metric_text(char out[static WG_QUANTITY_TEXT_SIZE], enum wg_metric metric, double value)
{
    if (isnan(value)) {
        (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "n/a");
        return;
    }
    switch (unit_of(metric)) {
    case UNIT_W:
        (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "%.1f W", value);
        break;
    case UNIT_J:
        wg__joules_text(out, value);
        break;
    case UNIT_HZ:
        (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "%.0f MHz", value / 1e6);
        break;
    case UNIT_C:
        (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "%.0f °C", value);
        break;
    case UNIT_BYTES:
        wg__bytes_text(out, value);
        break;
    case UNIT_S:
        (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "%.3f s", value);
        break;
    case UNIT_SHARE:
        (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "%.0f %%", 100 * value);
        break;
    }
}

void wg__metric_step_text(char out[static WG_QUANTITY_TEXT_SIZE], enum wg_metric metric,
                          double step)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {
        [UNIT_SHARE] = {"%", 100}, [UNIT_W] = {"W", 1},  [UNIT_J] = {"J", 1},
        [UNIT_HZ] = {"MHz", 1e-6}, [UNIT_C] = {"°C", 1}, [UNIT_BYTES] = {"B", 1},
        [UNIT_S] = {"s", 1},
    };
    out[0] = '\0';
    if (!(step > 0))
        return;
    const enum unit unit = unit_of(metric);
    (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "%.3g %s", step * units[unit].factor,
                   units[unit].name);
}

void wg__knob_text(char out[static WG_QUANTITY_TEXT_SIZE], enum wg_knob knob, double value)
{
    const char *unit = wg_knob_unit(knob);
    if (isnan(value))
        (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "n/a");
    else if (unit != NULL && strcmp(unit, "Hz") == 0)
        (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "%.0f MHz", value / 1e6);
    else
        (void)snprintf(out, WG_QUANTITY_TEXT_SIZE, "%.6g %s", value, unit != NULL ? unit : "");
}
