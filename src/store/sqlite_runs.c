/* SPDX-License-Identifier: MIT
 *
 * Runs and facts in SQLite.
 *
 * Threads: one at a time.
 */
#include <math.h>
#include <stdarg.h>

#include "store/sqlite.h"

static struct wg_sqlite *as_sqlite(struct wg_store *store)
{
    return (struct wg_sqlite *)store;
}

static enum wg_code add_fact(struct wg_sqlite *store, int64_t job, enum wg_fact_kind kind,
                             int64_t run, struct wg_error *err)
{
    return wg__sqlite_do(store, WG_SQL_FACT_ADD, "cannot write down what happened", err, "iii", job,
                         (int64_t)kind, run);
}

static enum wg_code find_gpu(struct wg_sqlite *store, const char *model, unsigned count,
                             int64_t *out, struct wg_error *err)
{
    static const char did[] = "cannot note the GPU";
    const enum wg_code code =
        wg__sqlite_do(store, WG_SQL_GPU_ADD, did, err, "ti", model, (int64_t)count);
    if (code != WG_OK)
        return code;
    sqlite3_stmt *row =
        wg__sqlite_query(store, WG_SQL_GPU_FIND, did, err, "ti", model, (int64_t)count);
    if (row == NULL)
        return store->failed;
    const int status = sqlite3_step(row);
    if (status == SQLITE_ROW)
        *out = sqlite3_column_int64(row, 0);
    return wg__sqlite_done(store, row, status, did, err);
}

enum wg_code wg__sqlite_run_add(struct wg_store *base, struct wg_store_run *run,
                                struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    int64_t gpu = 0;
    enum wg_code code = find_gpu(store, run->gpu_model, run->gpu_count, &gpu, err);
    if (code == WG_OK)
        code =
            wg__sqlite_do(store, WG_SQL_RUN_ADD, "cannot add the run", err, "iiiiiiiiidtiddd",
                          run->job, (int64_t)run->is_survey, (int64_t)run->may_survey,
                          (int64_t)run->recurrence, (int64_t)run->attempt, (int64_t)run->batch_size,
                          (int64_t)run->limit, (int64_t)run->ticket, gpu, run->max_power_w,
                          run->host, run->pid, run->started_s, run->lease_s, run->lease_until_s);
    if (code != WG_OK)
        return code;
    run->id = sqlite3_last_insert_rowid(store->db);
    code = wg__sqlite_do(store, WG_SQL_JOB_RECURRENCE, "cannot count the recurrence", err, "ii",
                         (int64_t)(run->recurrence + 1), run->job);
    if (code == WG_OK)
        code = wg__sqlite_retry_remove(base, run->job, run->recurrence, err);
    return code == WG_OK ? add_fact(store, run->job, WG_FACT_STARTED, run->id, err) : code;
}

static void read_run(sqlite3_stmt *row, struct wg_store_run *out)
{
    *out = (struct wg_store_run){0};
    out->id = sqlite3_column_int64(row, 0);
    out->job = sqlite3_column_int64(row, 1);
    out->is_survey = sqlite3_column_int(row, 2) != 0;
    out->may_survey = sqlite3_column_int(row, 3) != 0;
    out->recurrence = (uint64_t)sqlite3_column_int64(row, 4);
    out->attempt = (unsigned)sqlite3_column_int64(row, 5);
    out->batch_size = (uint32_t)sqlite3_column_int64(row, 6);
    out->limit = sqlite3_column_int(row, 7);
    out->ticket = (uint64_t)sqlite3_column_int64(row, 8);
    wg__sqlite_text(row, 9, out->gpu_model, sizeof out->gpu_model);
    out->gpu_count = (unsigned)sqlite3_column_int64(row, 10);
    out->max_power_w = wg__sqlite_double(row, 11);
    wg__sqlite_text(row, 12, out->host, sizeof out->host);
    out->pid = sqlite3_column_int64(row, 13);
    out->started_s = wg__sqlite_double(row, 14);
    out->lease_s = wg__sqlite_double(row, 15);
    out->lease_until_s = wg__sqlite_double(row, 16);
    out->last_epoch = (unsigned)sqlite3_column_int64(row, 17);
    out->metric = wg__sqlite_double(row, 18);
    out->epoch_cost_j = wg__sqlite_double(row, 19);
    out->epoch_cost_max_limit_j = wg__sqlite_double(row, 20);
    out->first_epoch_cost_j = wg__sqlite_double(row, 21);
    out->has_profile = !isnan(out->epoch_cost_j);
    const int state = sqlite3_column_int(row, 22);
    out->state =
        state >= 0 && state < WG_RUN_STATE_COUNT ? (enum wg_run_state)state : WG_RUN_CRASHED;
    out->ended_s = wg__sqlite_double(row, 23);
    out->epochs = wg__sqlite_double(row, 24);
    out->energy_j = wg__sqlite_double(row, 25);
    out->time_s = wg__sqlite_double(row, 26);
    out->cost_j = wg__sqlite_double(row, 27);
    out->setting = wg__sqlite_double(row, 28);
    out->steps_per_epoch = wg__sqlite_double(row, 29);
}

enum wg_code wg__sqlite_run_get(struct wg_store *base, int64_t job, int64_t id,
                                struct wg_store_run *out, struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    static const char did[] = "cannot read the run";
    sqlite3_stmt *row = wg__sqlite_query(store, WG_SQL_RUN_GET, did, err, "ii", id, job);
    if (row == NULL)
        return store->failed;
    const int status = sqlite3_step(row);
    if (status == SQLITE_ROW)
        read_run(row, out);
    const enum wg_code code = wg__sqlite_done(store, row, status, did, err);
    if (code == WG_OK && status != SQLITE_ROW)
        return wg__fail(err, WG_ENOENT, "the job has no run %lld", (long long)id);
    return code;
}

enum wg_code wg__sqlite_run_open(struct wg_store *base, int64_t job, struct wg_store_run *out,
                                 size_t capacity, size_t *count_out, struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    static const char did[] = "cannot read the runs";
    sqlite3_stmt *rows = wg__sqlite_query(store, WG_SQL_RUN_OPEN, did, err, "i", job);
    if (rows == NULL)
        return store->failed;
    size_t count = 0;
    int status;
    while ((status = sqlite3_step(rows)) == SQLITE_ROW) {
        if (count < capacity)
            read_run(rows, &out[count]);
        count++;
    }
    *count_out = count;
    return wg__sqlite_done(store, rows, status, did, err);
}

enum wg_code wg__sqlite_run_each(struct wg_store *base, int64_t job, wg_store_run_fn *each,
                                 void *context, struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    static const char did[] = "cannot read the runs";
    sqlite3_stmt *rows = wg__sqlite_query(store, WG_SQL_RUN_EACH, did, err, "i", job);
    if (rows == NULL)
        return store->failed;
    int status;
    while ((status = sqlite3_step(rows)) == SQLITE_ROW) {
        struct wg_store_run run;
        read_run(rows, &run);
        if (!each(context, &run))
            break;
    }
    return wg__sqlite_done(store, rows, status, did, err);
}

/* The run's job, once it is certain that the run is in `state`. */
static enum wg_code require_state(struct wg_sqlite *store, int64_t id, enum wg_run_state state,
                                  int64_t *job_out, unsigned *last_epoch_out, struct wg_error *err)
{
    static const char did[] = "cannot read the run";
    sqlite3_stmt *row = wg__sqlite_query(store, WG_SQL_RUN_STATE, did, err, "i", id);
    if (row == NULL)
        return store->failed;
    const int status = sqlite3_step(row);
    int found = -1;
    if (status == SQLITE_ROW) {
        *job_out = sqlite3_column_int64(row, 0);
        found = sqlite3_column_int(row, 1);
        *last_epoch_out = (unsigned)sqlite3_column_int64(row, 2);
    }
    const enum wg_code code = wg__sqlite_done(store, row, status, did, err);
    if (code != WG_OK)
        return code;
    if (found < 0)
        return wg__fail(err, WG_ENOENT, "store '%s' has no run %lld", store->path, (long long)id);
    if (found != (int)state)
        return wg__fail(err, WG_ESTATE, "run %lld is %s, not %s", (long long)id,
                        wg__run_state_name((enum wg_run_state)found), wg__run_state_name(state));
    return WG_OK;
}

enum wg_code wg__sqlite_run_extend(struct wg_store *base, int64_t id, double lease_until_s,
                                   struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    int64_t job;
    unsigned last;
    const enum wg_code code = require_state(store, id, WG_RUN_OPEN, &job, &last, err);
    if (code != WG_OK)
        return code;
    return wg__sqlite_do(store, WG_SQL_RUN_EXTEND, "cannot extend the lease", err, "di",
                         lease_until_s, id);
}

/* A change of a run that is a fact: what the run must be, what is written, and what it is noted as.
 */
struct change {
    enum wg_run_state from;
    enum wg_sqlite_statement statement;
    enum wg_fact_kind fact;
    const char *did;
};

/* Makes `change` of run `id`; `types` and what follows are the statement's values. */
static enum wg_code change_run(struct wg_sqlite *store, int64_t id, const struct change *change,
                               struct wg_error *err, const char *types, ...)
{
    int64_t job = 0;
    unsigned last;
    enum wg_code code = require_state(store, id, change->from, &job, &last, err);
    if (code != WG_OK)
        return code;
    va_list args;
    va_start(args, types);
    code = wg__sqlite_do_with(store, change->statement, change->did, err, types, args);
    va_end(args);
    return code == WG_OK ? add_fact(store, job, change->fact, id, err) : code;
}

enum wg_code wg__sqlite_run_profile(struct wg_store *base, const struct wg_store_run *run,
                                    struct wg_error *err)
{
    static const struct change change = {WG_RUN_OPEN, WG_SQL_RUN_PROFILE, WG_FACT_PROFILED,
                                         "cannot note the profile"};
    return change_run(as_sqlite(base), run->id, &change, err, "dddi", run->epoch_cost_j,
                      run->epoch_cost_max_limit_j, run->first_epoch_cost_j, run->id);
}

enum wg_code wg__sqlite_run_end(struct wg_store *base, const struct wg_store_run *run,
                                struct wg_error *err)
{
    static const struct change change = {WG_RUN_OPEN, WG_SQL_RUN_END, WG_FACT_ENDED,
                                         "cannot end the run"};
    return change_run(as_sqlite(base), run->id, &change, err, "iddddddddi", (int64_t)run->state,
                      run->ended_s, run->epochs, run->energy_j, run->time_s, run->cost_j,
                      run->setting, run->metric, run->steps_per_epoch, run->id);
}

enum wg_code wg__sqlite_run_take_back(struct wg_store *base, int64_t id, double now_s,
                                      struct wg_error *err)
{
    static const struct change change = {WG_RUN_OPEN, WG_SQL_RUN_TAKE_BACK, WG_FACT_TAKEN_BACK,
                                         "cannot take the run back"};
    return change_run(as_sqlite(base), id, &change, err, "di", now_s, id);
}

enum wg_code wg__sqlite_run_revive(struct wg_store *base, int64_t id, double lease_until_s,
                                   struct wg_error *err)
{
    static const struct change change = {WG_RUN_EXPIRED, WG_SQL_RUN_REVIVE, WG_FACT_REVIVED,
                                         "cannot revive the run"};
    return change_run(as_sqlite(base), id, &change, err, "di", lease_until_s, id);
}

enum wg_code wg__sqlite_run_epoch(struct wg_store *base, int64_t id, unsigned epoch, double metric,
                                  struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    int64_t job = 0;
    unsigned last = 0;
    enum wg_code code = require_state(store, id, WG_RUN_OPEN, &job, &last, err);
    if (code == WG_OK && epoch <= last)
        code = wg__fail(err, WG_ESTATE, "run %lld has told epoch %u already", (long long)id, last);
    if (code == WG_OK)
        code = wg__sqlite_do(store, WG_SQL_RUN_EPOCH, "cannot note the epoch", err, "idi",
                             (int64_t)epoch, metric, id);
    return code == WG_OK
               ? wg__sqlite_do(store, WG_SQL_FACT_ADD, "cannot note the epoch", err, "iiiid", job,
                               (int64_t)WG_FACT_EPOCH, id, (int64_t)epoch, metric)
               : code;
}

enum wg_code wg__sqlite_recurrence_get(struct wg_store *base, int64_t job, uint64_t recurrence,
                                       unsigned counts_out[WG_RUN_STATE_COUNT],
                                       struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    static const char did[] = "cannot read the recurrence";
    for (size_t i = 0; i < WG_RUN_STATE_COUNT; i++)
        counts_out[i] = 0;
    sqlite3_stmt *rows =
        wg__sqlite_query(store, WG_SQL_RECURRENCE_GET, did, err, "ii", job, (int64_t)recurrence);
    if (rows == NULL)
        return store->failed;
    int status;
    while ((status = sqlite3_step(rows)) == SQLITE_ROW) {
        const int state = sqlite3_column_int(rows, 0);
        if (state >= 0 && state < WG_RUN_STATE_COUNT)
            counts_out[state] = (unsigned)sqlite3_column_int64(rows, 1);
    }
    return wg__sqlite_done(store, rows, status, did, err);
}

enum wg_code wg__sqlite_fact_each(struct wg_store *base, int64_t job, uint64_t after,
                                  wg_store_fact_fn *each, void *context, struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    static const char did[] = "cannot read what happened";
    sqlite3_stmt *rows =
        wg__sqlite_query(store, WG_SQL_FACT_EACH, did, err, "ii", job, (int64_t)after);
    if (rows == NULL)
        return store->failed;
    int status;
    while ((status = sqlite3_step(rows)) == SQLITE_ROW) {
        struct wg_store_run run;
        read_run(rows, &run);
        const struct wg_store_fact fact = {
            .number = (uint64_t)sqlite3_column_int64(rows, WG_SQLITE_RUN_COLUMNS),
            .kind = (enum wg_fact_kind)sqlite3_column_int(rows, WG_SQLITE_RUN_COLUMNS + 1),
            .epoch = (unsigned)sqlite3_column_int64(rows, WG_SQLITE_RUN_COLUMNS + 2),
            .metric = wg__sqlite_double(rows, WG_SQLITE_RUN_COLUMNS + 3),
        };
        if (!each(context, &fact, &run))
            break;
    }
    return wg__sqlite_done(store, rows, status, did, err);
}
