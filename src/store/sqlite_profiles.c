/* SPDX-License-Identifier: MIT
 *
 * Profiles in SQLite: what a search for the best power limit or clock has measured.
 *
 * Threads: one at a time.
 */
#include <string.h>

#include "store/sqlite.h"

static const char did_put[] = "cannot keep the profile";

/* Equal for a text however it was cut, so that what was put is found. */
static void cut(const char *text, char out[static WG_STORE_TEXT_SIZE])
{
    const size_t length = strnlen(text, WG_STORE_TEXT_SIZE - 1);
    memcpy(out, text, length);
    out[length] = '\0';
}

static enum wg_code replace(struct wg_sqlite *store, const struct wg_store_profile_key *key,
                            const char *model, const char *knob, double now_s,
                            const struct wg_store_point *points, size_t count, struct wg_error *err)
{
    enum wg_code code =
        wg__sqlite_do(store, WG_SQL_PROFILE_DROP, did_put, err, "ttiti", key->owner, model,
                      (int64_t)key->gpu_count, knob, (int64_t)key->batch_size);
    if (code == WG_OK)
        code = wg__sqlite_do(store, WG_SQL_PROFILE_ADD, did_put, err, "ttitid", key->owner, model,
                             (int64_t)key->gpu_count, knob, (int64_t)key->batch_size, now_s);
    const int64_t id = sqlite3_last_insert_rowid(store->db);
    for (size_t i = 0; i < count && code == WG_OK; i++)
        code = wg__sqlite_do(store, WG_SQL_PROFILE_ADD_POINT, did_put, err, "iddddddiid", id,
                             points[i].setting, points[i].power_w, points[i].throughput,
                             points[i].power_sd, points[i].throughput_sd, points[i].measured_s,
                             (int64_t)points[i].measurements, (int64_t)points[i].discarded,
                             points[i].settle_s);
    return code;
}

enum wg_code wg__sqlite_profile_put(struct wg_store *base, const struct wg_store_profile_key *key,
                                    double now_s, const struct wg_store_point *points, size_t count,
                                    struct wg_error *err)
{
    struct wg_sqlite *store = (struct wg_sqlite *)base;
    char model[WG_STORE_TEXT_SIZE], knob[WG_STORE_TEXT_SIZE];
    cut(key->gpu_model, model);
    cut(key->knob, knob);
    if (count > WG_STORE_POINTS_MAX)
        return wg__fail(err, WG_EINVAL, "a profile of %zu points: at most %d are kept", count,
                        WG_STORE_POINTS_MAX);
    const bool is_alone = sqlite3_get_autocommit(store->db) != 0;
    enum wg_code code = is_alone ? base->ops->begin(base, true, err) : WG_OK;
    if (code != WG_OK)
        return code;
    code = replace(store, key, model, knob, now_s, points, count, err);
    if (!is_alone)
        return code;
    if (code == WG_OK)
        return base->ops->commit(base, err);
    base->ops->rollback(base);
    return code;
}

enum wg_code wg__sqlite_profile_get(struct wg_store *base, const struct wg_store_profile_key *key,
                                    struct wg_store_point out[WG_STORE_POINTS_MAX],
                                    size_t *count_out, double *when_s_out, struct wg_error *err)
{
    struct wg_sqlite *store = (struct wg_sqlite *)base;
    static const char did[] = "cannot read the profile";
    char model[WG_STORE_TEXT_SIZE], knob[WG_STORE_TEXT_SIZE];
    cut(key->gpu_model, model);
    cut(key->knob, knob);
    sqlite3_stmt *rows =
        wg__sqlite_query(store, WG_SQL_PROFILE_GET, did, err, "ttiti", key->owner, model,
                         (int64_t)key->gpu_count, knob, (int64_t)key->batch_size);
    if (rows == NULL)
        return store->failed;
    size_t count = 0;
    int status = SQLITE_DONE;
    while (count < WG_STORE_POINTS_MAX && (status = sqlite3_step(rows)) == SQLITE_ROW) {
        out[count++] = (struct wg_store_point){
            .setting = wg__sqlite_double(rows, 0),
            .power_w = wg__sqlite_double(rows, 1),
            .throughput = wg__sqlite_double(rows, 2),
            .power_sd = wg__sqlite_double(rows, 3),
            .throughput_sd = wg__sqlite_double(rows, 4),
            .measured_s = wg__sqlite_double(rows, 5),
            .measurements = (unsigned)sqlite3_column_int64(rows, 6),
            .discarded = (unsigned)sqlite3_column_int64(rows, 7),
            .settle_s = wg__sqlite_double(rows, 8),
        };
        *when_s_out = wg__sqlite_double(rows, 9);
    }
    *count_out = count;
    return wg__sqlite_done(store, rows, status, did, err);
}
