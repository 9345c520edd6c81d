/* SPDX-License-Identifier: MIT
 *
 * What a simulated server's scheduler is told before it begins.
 *
 * It sees the believed profile through a few measurements, as somebody would make them: batches of
 * 1, 2, 4 ... and the largest at each rung that may act, the same beside a fine-tuning step where
 * the policy runs both together, and steps of 1, 2, 4 ... rows alone.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_SIMULATE_SERVING_SETUP_H
#define WG_SIMULATE_SERVING_SETUP_H

#include "simulate/serving.h"

/* WG_EINVAL: a field that cannot be, named. */
enum wg_code wg__serving_check(const struct wg_serving_setup *setup, struct wg_error *err);

/* Of a setup that passed. */
enum wg_code wg__serving_open_scheduler(struct wg_scheduler **out,
                                        const struct wg_serving_setup *setup, struct wg_error *err);

#endif
