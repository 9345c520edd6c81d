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
        out[i] = (struct wg_train_point){
            .setting = kept[i].setting,
            .power_w = kept[i].power_w,
            .throughput = kept[i].throughput,
            .power_sd = kept[i].power_sd,
            .throughput_sd = kept[i].throughput_sd,
            .measured_s = kept[i].measured_s,
            .measurements = kept[i].measurements,
            .discarded = kept[i].discarded,
            .settle_s = kept[i].settle_s,
        };
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
        kept[i] = (struct wg_store_point){
            .setting = points[i].setting,
            .power_w = points[i].power_w,
            .throughput = points[i].throughput,
            .power_sd = points[i].power_sd,
            .throughput_sd = points[i].throughput_sd,
            .measured_s = points[i].measured_s,
            .measurements = points[i].measurements,
            .discarded = points[i].discarded,
            .settle_s = points[i].settle_s,
        };
    return store->ops->profile_put(store, key, now_s, kept, count, err);
}
