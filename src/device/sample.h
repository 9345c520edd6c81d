/* SPDX-License-Identifier: MIT
 *
 * Metrics of a sample, one at a time.
 *
 * Inline functions stay out of the public header: bindings read it as declarations.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_DEVICE_SAMPLE_H
#define WG_DEVICE_SAMPLE_H

#include <stdbool.h>

#include "wattgov/device.h"

static inline void wg__sample_set(struct wg_sample *sample, enum wg_metric metric, double value)
{
    sample->values[metric] = value;
    sample->present |= 1u << metric;
}

static inline bool wg__sample_has(const struct wg_sample *sample, enum wg_metric metric)
{
    return (sample->present >> metric & 1u) != 0;
}

#endif
