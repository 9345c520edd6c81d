/* SPDX-License-Identifier: MIT
 *
 * The names of metrics, knobs, kinds of devices and reasons for throttling, from the tables of
 * include/wattgov/device.h.
 *
 * Threads: pure, any thread.
 */
#include <stddef.h>

#include "wattgov/device.h"

#define WG_KEY(array, index)                                                                       \
    ((size_t)(index) < sizeof(array) / sizeof(array)[0] ? (array)[(size_t)(index)] : NULL)

static const char *const metric_keys[] = {
#define X(name, key, kind, help) key,
    WG_METRICS(X)
#undef X
};

enum { GAUGE, COUNTER };

static const char metric_kinds[] = {
#define X(name, key, kind, help) kind,
    WG_METRICS(X)
#undef X
};

static const char *const knob_keys[] = {
#define X(name, key, unit) key,
    WG_KNOBS(X)
#undef X
};

static const char *const knob_units[] = {
#define X(name, key, unit) unit,
    WG_KNOBS(X)
#undef X
};

static const char *const kind_keys[] = {
#define X(name, key) key,
    WG_DEVICE_KINDS(X)
#undef X
};

const char *wg_metric_key(enum wg_metric metric)
{
    return WG_KEY(metric_keys, metric);
}

bool wg_metric_is_counter(enum wg_metric metric)
{
    return (size_t)metric < sizeof metric_kinds && metric_kinds[metric] == COUNTER;
}

const char *wg_knob_key(enum wg_knob knob)
{
    return WG_KEY(knob_keys, knob);
}

const char *wg_knob_unit(enum wg_knob knob)
{
    return WG_KEY(knob_units, knob);
}

const char *wg_device_kind_key(enum wg_device_kind kind)
{
    return WG_KEY(kind_keys, kind);
}

const char *wg_throttle_text(enum wg_throttle bit)
{
    switch (bit) {
#define X(name, number, text)                                                                      \
    case WG_THROTTLE_##name:                                                                       \
        return text;
        WG_THROTTLES(X)
#undef X
    }
    return NULL;
}
