/* SPDX-License-Identifier: MIT
 *
 * Jobs in SQLite, their retries and their snapshots.
 *
 * Threads: one at a time.
 */
#include <float.h>
#include <stdio.h>
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

/* All but the batch sizes. */
static enum wg_code read_job(const struct wg_sqlite *store, sqlite3_stmt *values,
                             struct wg_store_job *out, struct wg_error *err)
{
    struct wg_sqlite_row row = {.values = values};
    *out = (struct wg_store_job){0};
    out->id = wg__sqlite_int(&row, 0, 1, INT64_MAX);
    wg__sqlite_text(&row, 1, out->name, sizeof out->name);
    out->created_s = wg__sqlite_real(&row, 2, 0, WG_STORE_AMOUNT_MAX);
    out->default_batch = (uint32_t)wg__sqlite_int(&row, 3, 1, WG_STORE_BATCH_MAX);
    wg__sqlite_text(&row, 4, out->metric, sizeof out->metric);
    out->higher_is_better = wg__sqlite_int(&row, 5, 0, 1) != 0;
    out->target = wg__sqlite_real(&row, 6, -DBL_MAX, DBL_MAX);
    out->max_epochs = (unsigned)wg__sqlite_int(&row, 7, 1, WG_STORE_EPOCHS_MAX);
    wg__sqlite_text(&row, 8, out->objective, sizeof out->objective);
    out->max_power_w = wg__sqlite_real_or_nan(&row, 9, 0, WG_STORE_AMOUNT_MAX);
    wg__sqlite_text(&row, 10, out->policy, sizeof out->policy);
    wg__sqlite_text(&row, 11, out->optimizer, sizeof out->optimizer);
    out->learning_rate = wg__sqlite_real_or_nan(&row, 12, 0, DBL_MAX);
    out->learning_rate_batch = (uint32_t)wg__sqlite_int(&row, 13, 0, WG_STORE_BATCH_MAX);
    out->lease_s = wg__sqlite_real(&row, 14, 0, WG_STORE_AMOUNT_MAX);
    out->seed = (uint64_t)wg__sqlite_int(&row, 15, INT64_MIN, INT64_MAX);
    out->next_recurrence = (uint64_t)wg__sqlite_int(&row, 16, 0, WG_SQLITE_RECURRENCE_MAX);
    return wg__sqlite_check_row(store, &row, "job", out->id, err);
}

/* What no single value can tell: how many batch sizes there are, and that they fit together. */
static enum wg_code check_batches(const struct wg_sqlite *store, const struct wg_store_job *job,
                                  bool has_more, struct wg_error *err)
{
    bool is_whole = !has_more && job->batch_count > 0, has_default = false;
    char text[WG_STORE_TEXT_SIZE + 64];
    for (size_t i = 0; i < job->batch_count; i++) {
        is_whole = is_whole && (i == 0 || job->batch_size[i] > job->batch_size[i - 1]);
        has_default |= job->batch_size[i] == job->default_batch;
    }
    if (is_whole && has_default)
        return WG_OK;
    (void)snprintf(text, sizeof text, "the batch sizes of job '%s' cannot be read", job->name);
    return wg__sqlite_damaged(store, text, err);
}

static enum wg_code read_batches(struct wg_sqlite *store, struct wg_store_job *job,
                                 struct wg_error *err)
{
    static const char did[] = "cannot read the batch sizes";
    sqlite3_stmt *rows = wg__sqlite_query(store, WG_SQL_JOB_BATCHES, did, err, "i", job->id);
    if (rows == NULL)
        return store->failed;
    enum wg_code code = WG_OK;
    int status;
    while ((status = sqlite3_step(rows)) == SQLITE_ROW && code == WG_OK &&
           job->batch_count < WG_STORE_BATCH_SIZES_MAX) {
        struct wg_sqlite_row row = {.values = rows};
        job->batch_size[job->batch_count++] =
            (uint32_t)wg__sqlite_int(&row, 0, 1, WG_STORE_BATCH_MAX);
        code = wg__sqlite_check_row(store, &row, "job", job->id, err);
    }
    const bool has_more = status == SQLITE_ROW;
    code = wg__sqlite_walked(store, rows, status, did, code, err);
    return code == WG_OK ? check_batches(store, job, has_more, err) : code;
}

enum wg_code wg__sqlite_job_get(struct wg_store *base, const char *name, struct wg_store_job *out,
                                struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    static const char did[] = "cannot read the job";
    sqlite3_stmt *row = wg__sqlite_query(store, WG_SQL_JOB_GET, did, err, "t", name);
    if (row == NULL)
        return store->failed;
    enum wg_code code = WG_OK;
    const int status = sqlite3_step(row);
    if (status == SQLITE_ROW)
        code = read_job(store, row, out, err);
    code = wg__sqlite_walked(store, row, status, did, code, err);
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
        code = read_job(store, rows, &job, err);
        if (code == WG_OK)
            code = read_batches(store, &job, err);
        if (code == WG_OK)
            goes_on = each(context, &job);
    }
    return wg__sqlite_walked(store, rows, status, did, code, err);
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
    sqlite3_stmt *values = wg__sqlite_query(store, WG_SQL_RETRY_FIND, did, err, "i", job);
    if (values == NULL)
        return store->failed;
    struct wg_sqlite_row row = {.values = values};
    const int status = sqlite3_step(values);
    if (status == SQLITE_ROW) { /* min() of no rows is one row with NULL */
        *has_out = sqlite3_column_type(values, 0) != SQLITE_NULL;
        if (*has_out)
            *recurrence_out = (uint64_t)wg__sqlite_int(&row, 0, 0, WG_SQLITE_RECURRENCE_MAX);
    }
    return wg__sqlite_walked(store, values, status, did,
                             wg__sqlite_check_row(store, &row, "a retry of job", job, err), err);
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
