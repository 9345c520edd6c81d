/* SPDX-License-Identifier: MIT
 *
 * Profiles that outlive a training; see profile_cache.h. The store knows no decider, so its points
 * are a struct of their own.
 */
#include "live/profile_cache.h"

/* A profile fits into the store, and what the store has into a profile. */
_Static_assert(sizeof((struct wg_store_point[WG_STORE_POINTS_MAX]){0}) /
                       sizeof(struct wg_store_point) ==
                   sizeof((struct wg_train_point[WG_POWER_LIMITS_MAX]){0}) /
                       sizeof(struct wg_train_point),
               "one number of points");

/* What both kinds of points have, under the same names. */
#define COPY_POINT(to, from)                                                                       \
    ((to) = (__typeof__(to)){.setting = (from).setting,                                            \
                             .power_w = (from).power_w,                                            \
                             .throughput = (from).throughput,                                      \
                             .power_sd = (from).power_sd,                                          \
                             .throughput_sd = (from).throughput_sd,                                \
                             .measured_s = (from).measured_s,                                      \
                             .measurements = (from).measurements,                                  \
                             .discarded = (from).discarded,                                        \
                             .settle_s = (from).settle_s})

enum wg_code wg__store_profile_get(struct wg_store *store, const struct wg_store_profile_key *key,
                                   struct wg_train_point out[WG_POWER_LIMITS_MAX],
                                   size_t *count_out, double *when_s_out, struct wg_error *err)
{
    struct wg_store_point kept[WG_STORE_POINTS_MAX];
    size_t count = 0;
    const enum wg_code code = store->ops->profile_get(store, key, kept, &count, when_s_out, err);
    if (code != WG_OK)
        return code;
    for (size_t i = 0; i < count; i++)
        COPY_POINT(out[i], kept[i]);
    *count_out = count;
    return WG_OK;
}

enum wg_code wg__store_profile_put(struct wg_store *store, const struct wg_store_profile_key *key,
                                   double now_s, const struct wg_train_point *points, size_t count,
                                   struct wg_error *err)
{
    if (count > WG_POWER_LIMITS_MAX)
        return wg__fail(err, WG_EINVAL, "a profile of %zu points: at most %d are kept", count,
                        WG_POWER_LIMITS_MAX);
    struct wg_store_point kept[WG_STORE_POINTS_MAX];
    for (size_t i = 0; i < count; i++)
        COPY_POINT(kept[i], points[i]);
    return store->ops->profile_put(store, key, now_s, kept, count, err);
}
