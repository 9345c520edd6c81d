/* SPDX-License-Identifier: MIT
 *
 * Profiles in SQLite: what a search for the best power limit or clock has measured.
 *
 * Threads: one at a time.
 */
#include <limits.h>

#include "base/utf8.h"
#include "store/sqlite.h"

static const char did_put[] = "cannot keep the profile";

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
    wg__utf8_copy_plain(model, sizeof model, key->gpu_model);
    wg__utf8_copy_plain(knob, sizeof knob, key->knob);
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

static enum wg_code read_point(const struct wg_sqlite *store, sqlite3_stmt *values,
                               struct wg_store_point *out, double *when_s_out, struct wg_error *err)
{
    const double most = WG_STORE_AMOUNT_MAX;
    struct wg_sqlite_row row = {.values = values};
    *out = (struct wg_store_point){
        .setting = wg__sqlite_real(&row, 0, 0, most),
        .power_w = wg__sqlite_real_or_nan(&row, 1, 0, most),
        .throughput = wg__sqlite_real_or_nan(&row, 2, 0, most),
        .power_sd = wg__sqlite_real_or_nan(&row, 3, 0, most),
        .throughput_sd = wg__sqlite_real_or_nan(&row, 4, 0, most),
        .measured_s = wg__sqlite_real_or_nan(&row, 5, 0, most),
        .measurements = (unsigned)wg__sqlite_int(&row, 6, 0, UINT_MAX),
        .discarded = (unsigned)wg__sqlite_int(&row, 7, 0, UINT_MAX),
        .settle_s = wg__sqlite_real_or_nan(&row, 8, 0, most),
    };
    *when_s_out = wg__sqlite_real(&row, 9, 0, most);
    const int64_t profile = sqlite3_column_int64(values, 10);
    return wg__sqlite_check_row(store, &row, "profile", profile, err);
}

enum wg_code wg__sqlite_profile_get(struct wg_store *base, const struct wg_store_profile_key *key,
                                    struct wg_store_point out[WG_STORE_POINTS_MAX],
                                    size_t *count_out, double *when_s_out, struct wg_error *err)
{
    struct wg_sqlite *store = (struct wg_sqlite *)base;
    static const char did[] = "cannot read the profile";
    char model[WG_STORE_TEXT_SIZE], knob[WG_STORE_TEXT_SIZE];
    wg__utf8_copy_plain(model, sizeof model, key->gpu_model);
    wg__utf8_copy_plain(knob, sizeof knob, key->knob);
    sqlite3_stmt *rows =
        wg__sqlite_query(store, WG_SQL_PROFILE_GET, did, err, "ttiti", key->owner, model,
                         (int64_t)key->gpu_count, knob, (int64_t)key->batch_size);
    if (rows == NULL)
        return store->failed;
    enum wg_code code = WG_OK;
    size_t count = 0;
    int status = SQLITE_ROW;
    while (code == WG_OK && count < WG_STORE_POINTS_MAX &&
           (status = sqlite3_step(rows)) == SQLITE_ROW)
        code = read_point(store, rows, &out[count++], when_s_out, err);
    *count_out = count;
    return wg__sqlite_walked(store, rows, status, did, code, err);
}
