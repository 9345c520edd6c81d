/* SPDX-License-Identifier: MIT
 *
 * Profiles of power limits and clocks that outlive a training: what was measured for a command or
 * job is where its next run begins.
 *
 * A cache: who can't open the store, or finds nothing, measures.
 *
 *     struct wg_store *store;
 *     if (wg__store_open(&store, &(struct wg_store_opts){.path = path}, &err) == WG_OK) {
 *         const struct wg_store_profile_key key = {
 *             .owner = command, .gpu_model = "NVIDIA A40", .gpu_count = 1, .knob = "power_limit"};
 *         code = wg__store_profile_get(store, &key, points, &count, &when_s, &err);
 *         ...
 *         wg__store_close(store);
 *     }
 *
 * Owns: nothing.    Threads: that of the store.
 */
#ifndef WG_LIVE_PROFILE_CACHE_H
#define WG_LIVE_PROFILE_CACHE_H

#include "optimize/train_governor.h"
#include "store/store.h"

/* The points kept under `key`, rising by setting, and when they were put (seconds since 1970). A
 * count of 0, which is no error: none are; `when_s_out` is then as before. */
enum wg_code wg__store_profile_get(struct wg_store *store, const struct wg_store_profile_key *key,
                                   struct wg_train_point out[WG_POWER_LIMITS_MAX],
                                   size_t *count_out, double *when_s_out, struct wg_error *err);

/* Replaces what is kept under `key`, at most WG_POWER_LIMITS_MAX points. */
enum wg_code wg__store_profile_put(struct wg_store *store, const struct wg_store_profile_key *key,
                                   double now_s, const struct wg_train_point *points, size_t count,
                                   struct wg_error *err);

#endif
