/* SPDX-License-Identifier: MIT
 *
 * Jobs in SQLite, their retries and their snapshots.
 *
 * Threads: one at a time.
 */
#include <string.h>

#include "store/sqlite.h"

static struct wg_sqlite *as_sqlite(struct wg_store *store)
{
    return (struct wg_sqlite *)store;
}

enum wg_code wg__sqlite_job_add(struct wg_store *base, struct wg_store_job *job,
                                struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    static const char did[] = "cannot add the job";
    sqlite3_stmt *insert = wg__sqlite_query(
        store, WG_SQL_JOB_ADD, did, err,
        "tditidi"
        "tdttdidi",
        job->name, job->created_s, (int64_t)job->default_batch, job->metric,
        (int64_t)job->higher_is_better, job->target, (int64_t)job->max_epochs, job->objective,
        job->max_power_w, job->policy, job->optimizer, job->learning_rate,
        (int64_t)job->learning_rate_batch, job->lease_s, (int64_t)job->seed);
    if (insert == NULL)
        return store->failed;
    const int status = sqlite3_step(insert);
    if (status == SQLITE_CONSTRAINT_UNIQUE) {
        (void)wg__sqlite_done(store, insert, SQLITE_DONE, did, err);
        return wg__fail(err, WG_ESTATE, "store '%s' has a job '%s' already", store->path,
                        job->name);
    }
    enum wg_code code = wg__sqlite_done(store, insert, status, did, err);
    if (code != WG_OK)
        return code;
    job->id = sqlite3_last_insert_rowid(store->db);
    job->next_recurrence = 0;
    for (size_t i = 0; i < job->batch_count && code == WG_OK; i++)
        code = wg__sqlite_do(store, WG_SQL_JOB_ADD_BATCH, did, err, "ii", job->id,
                             (int64_t)job->batch_size[i]);
    return code;
}

static void read_job(sqlite3_stmt *row, struct wg_store_job *out)
{
    *out = (struct wg_store_job){0};
    out->id = sqlite3_column_int64(row, 0);
    wg__sqlite_text(row, 1, out->name, sizeof out->name);
    out->created_s = wg__sqlite_double(row, 2);
    out->default_batch = (uint32_t)sqlite3_column_int64(row, 3);
    wg__sqlite_text(row, 4, out->metric, sizeof out->metric);
    out->higher_is_better = sqlite3_column_int(row, 5) != 0;
    out->target = wg__sqlite_double(row, 6);
    out->max_epochs = (unsigned)sqlite3_column_int64(row, 7);
    wg__sqlite_text(row, 8, out->objective, sizeof out->objective);
    out->max_power_w = wg__sqlite_double(row, 9);
    wg__sqlite_text(row, 10, out->policy, sizeof out->policy);
    wg__sqlite_text(row, 11, out->optimizer, sizeof out->optimizer);
    out->learning_rate = wg__sqlite_double(row, 12);
    out->learning_rate_batch = (uint32_t)sqlite3_column_int64(row, 13);
    out->lease_s = wg__sqlite_double(row, 14);
    out->seed = (uint64_t)sqlite3_column_int64(row, 15);
    out->next_recurrence = (uint64_t)sqlite3_column_int64(row, 16);
}

static enum wg_code read_batches(struct wg_sqlite *store, struct wg_store_job *job,
                                 struct wg_error *err)
{
    static const char did[] = "cannot read the batch sizes";
    sqlite3_stmt *rows = wg__sqlite_query(store, WG_SQL_JOB_BATCHES, did, err, "i", job->id);
    if (rows == NULL)
        return store->failed;
    int status = SQLITE_DONE;
    while (job->batch_count < WG_STORE_BATCH_SIZES_MAX &&
           (status = sqlite3_step(rows)) == SQLITE_ROW)
        job->batch_size[job->batch_count++] = (uint32_t)sqlite3_column_int64(rows, 0);
    return wg__sqlite_done(store, rows, status, did, err);
}

enum wg_code wg__sqlite_job_get(struct wg_store *base, const char *name, struct wg_store_job *out,
                                struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    static const char did[] = "cannot read the job";
    sqlite3_stmt *row = wg__sqlite_query(store, WG_SQL_JOB_GET, did, err, "t", name);
    if (row == NULL)
        return store->failed;
    const int status = sqlite3_step(row);
    if (status == SQLITE_ROW)
        read_job(row, out);
    const enum wg_code code = wg__sqlite_done(store, row, status, did, err);
    if (code != WG_OK)
        return code;
    if (status != SQLITE_ROW)
        return wg__fail(err, WG_ENOENT, "store '%s' has no job '%s'", store->path, name);
    return read_batches(store, out, err);
}

enum wg_code wg__sqlite_job_each(struct wg_store *base, wg_store_job_fn *each, void *context,
                                 struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    static const char did[] = "cannot read the jobs";
    sqlite3_stmt *rows = wg__sqlite_query(store, WG_SQL_JOB_EACH, did, err, "");
    if (rows == NULL)
        return store->failed;
    enum wg_code code = WG_OK;
    int status = SQLITE_ROW;
    bool goes_on = true;
    while (goes_on && code == WG_OK && (status = sqlite3_step(rows)) == SQLITE_ROW) {
        struct wg_store_job job;
        read_job(rows, &job);
        code = read_batches(store, &job, err);
        if (code == WG_OK)
            goes_on = each(context, &job);
    }
    const enum wg_code walked =
        wg__sqlite_done(store, rows, status, did, code == WG_OK ? err : NULL);
    return code != WG_OK ? code : walked;
}

enum wg_code wg__sqlite_job_remove(struct wg_store *base, int64_t job, struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    static const char did[] = "cannot remove the job";
    /* What else belongs to it goes with it (ON DELETE CASCADE). */
    const enum wg_code code = wg__sqlite_do(store, WG_SQL_JOB_REMOVE_FACTS, did, err, "i", job);
    return code != WG_OK ? code : wg__sqlite_do(store, WG_SQL_JOB_REMOVE, did, err, "i", job);
}

enum wg_code wg__sqlite_retry_add(struct wg_store *base, int64_t job, uint64_t recurrence,
                                  struct wg_error *err)
{
    return wg__sqlite_do(as_sqlite(base), WG_SQL_RETRY_ADD, "cannot note the retry", err, "ii", job,
                         (int64_t)recurrence);
}

enum wg_code wg__sqlite_retry_remove(struct wg_store *base, int64_t job, uint64_t recurrence,
                                     struct wg_error *err)
{
    return wg__sqlite_do(as_sqlite(base), WG_SQL_RETRY_REMOVE, "cannot note the retry", err, "ii",
                         job, (int64_t)recurrence);
}

enum wg_code wg__sqlite_retry_find(struct wg_store *base, int64_t job, bool *has_out,
                                   uint64_t *recurrence_out, struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    static const char did[] = "cannot look for retries";
    sqlite3_stmt *row = wg__sqlite_query(store, WG_SQL_RETRY_FIND, did, err, "i", job);
    if (row == NULL)
        return store->failed;
    const int status = sqlite3_step(row);
    if (status == SQLITE_ROW) { /* min() of no rows is one row with NULL */
        *has_out = sqlite3_column_type(row, 0) != SQLITE_NULL;
        if (*has_out)
            *recurrence_out = (uint64_t)sqlite3_column_int64(row, 0);
    }
    return wg__sqlite_done(store, row, status, did, err);
}

enum wg_code wg__sqlite_snapshot_put(struct wg_store *base, int64_t job, uint64_t number,
                                     const char *version, const void *bytes, size_t length,
                                     struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    static const char did[] = "cannot keep a snapshot";
    sqlite3_stmt *insert = wg__sqlite_query(store, WG_SQL_SNAPSHOT_PUT, did, err, "iit", job,
                                            (int64_t)number, version);
    if (insert == NULL)
        return store->failed;
    int status = sqlite3_bind_blob64(insert, 4, bytes, length, SQLITE_STATIC);
    if (status == SQLITE_OK)
        status = sqlite3_step(insert);
    return wg__sqlite_done(store, insert, status, did, err);
}

enum wg_code wg__sqlite_snapshot_get(struct wg_store *base, int64_t job, const char *version,
                                     void (*take)(void *context, uint64_t number, const void *bytes,
                                                  size_t length),
                                     void *context, struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    static const char did[] = "cannot read the snapshot";
    sqlite3_stmt *row = wg__sqlite_query(store, WG_SQL_SNAPSHOT_GET, did, err, "it", job, version);
    if (row == NULL)
        return store->failed;
    const int status = sqlite3_step(row);
    if (status == SQLITE_ROW)
        take(context, (uint64_t)sqlite3_column_int64(row, 0), sqlite3_column_blob(row, 1),
             (size_t)sqlite3_column_bytes(row, 1));
    return wg__sqlite_done(store, row, status, did, err);
}
