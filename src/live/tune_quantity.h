/* SPDX-License-Identifier: MIT
 *
 * Levels and limits as people write them: "1410MHz", "250W", "5ms", "64".
 *
 * A number without a unit means MHz for clocks, watts for power limits, seconds for delays, and
 * itself for everything else. SI inside, as always.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_LIVE_TUNE_QUANTITY_H
#define WG_LIVE_TUNE_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "optimize/tuning_space.h"

/* The whole of `text` as a level of that role; false: it is none. */
bool wg__tune_quantity_parse(const char *text, enum wg_tuning_role role, double *out);

/* For people: "1410 MHz", "250 W", "5 ms", "64"; a category gives its number. */
enum { WG_TUNE_QUANTITY_SIZE = 64 };
void wg__tune_quantity_text(char out[static WG_TUNE_QUANTITY_SIZE], enum wg_tuning_role role,
                            double value);

/* A level of a knob, with its label where it has one: "fp16". */
void wg__tune_level_text(char out[static WG_TUNE_QUANTITY_SIZE], const struct wg_tuning_knob *knob,
                         size_t level);

/* A configuration: "gpu_clock 1005 MHz, batch 8, precision fp16". */
struct wg_buffer;
void wg__tune_configuration_text(struct wg_buffer *out, const struct wg_tuning_space *space,
                                 size_t configuration);

#endif
