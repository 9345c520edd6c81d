/* SPDX-License-Identifier: MIT
 *
 * Runs and facts in SQLite.
 *
 * Threads: one at a time.
 */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

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

/* What it is, who has it, and when. */
static void read_start(struct wg_sqlite_row *row, struct wg_store_run *out)
{
    const double most = WG_STORE_AMOUNT_MAX;
    out->id = wg__sqlite_int(row, 0, 1, INT64_MAX);
    out->job = wg__sqlite_int(row, 1, 1, INT64_MAX);
    out->is_survey = wg__sqlite_int(row, 2, 0, 1) != 0;
    out->may_survey = wg__sqlite_int(row, 3, 0, 1) != 0;
    out->recurrence = (uint64_t)wg__sqlite_int(row, 4, 0, WG_SQLITE_RECURRENCE_MAX);
    out->attempt = (unsigned)wg__sqlite_int(row, 5, 0, UINT_MAX);
    out->batch_size = (uint32_t)wg__sqlite_int(row, 6, 1, WG_STORE_BATCH_MAX);
    out->limit = (int)wg__sqlite_int(row, 7, INT_MIN, INT_MAX);
    out->ticket = (uint64_t)wg__sqlite_int(row, 8, INT64_MIN, INT64_MAX);
    wg__sqlite_text(row, 9, out->gpu_model, sizeof out->gpu_model);
    out->gpu_count = (unsigned)wg__sqlite_int(row, 10, 0, UINT_MAX);
    out->max_power_w = wg__sqlite_real_or_nan(row, 11, 0, most);
    wg__sqlite_text(row, 12, out->host, sizeof out->host);
    out->pid = wg__sqlite_int(row, 13, 0, INT64_MAX);
    out->started_s = wg__sqlite_real(row, 14, 0, most);
    out->lease_s = wg__sqlite_real(row, 15, 0, most);
    out->lease_until_s = wg__sqlite_real(row, 16, 0, most);
}

static enum wg_code read_run(const struct wg_sqlite *store, sqlite3_stmt *values,
                             struct wg_store_run *out, struct wg_error *err)
{
    const double most = WG_STORE_AMOUNT_MAX;
    struct wg_sqlite_row row = {.values = values};
    *out = (struct wg_store_run){0};
    read_start(&row, out);
    out->last_epoch = (unsigned)wg__sqlite_int(&row, 17, 0, WG_STORE_EPOCHS_MAX);
    out->metric = wg__sqlite_real_or_nan(&row, 18, -DBL_MAX, DBL_MAX);
    out->epoch_cost_j = wg__sqlite_real_or_nan(&row, 19, 0, most);
    out->epoch_cost_max_limit_j = wg__sqlite_real_or_nan(&row, 20, 0, most);
    out->first_epoch_cost_j = wg__sqlite_real_or_nan(&row, 21, 0, most);
    out->has_profile = !isnan(out->epoch_cost_j);
    out->state = (enum wg_run_state)wg__sqlite_int(&row, 22, 0, WG_RUN_STATE_COUNT - 1);
    out->ended_s = wg__sqlite_real_or_nan(&row, 23, 0, most);
    out->epochs = wg__sqlite_real_or_nan(&row, 24, 0, WG_STORE_EPOCHS_MAX);
    out->energy_j = wg__sqlite_real_or_nan(&row, 25, 0, most);
    out->time_s = wg__sqlite_real_or_nan(&row, 26, 0, most);
    out->cost_j = wg__sqlite_real_or_nan(&row, 27, 0, most);
    out->setting = wg__sqlite_real_or_nan(&row, 28, 0, most);
    out->steps_per_epoch = wg__sqlite_real_or_nan(&row, 29, 0, most);
    out->saved_j = wg__sqlite_real_or_nan(&row, 30, -most, most);
    out->saved_sd_j = wg__sqlite_real_or_nan(&row, 31, 0, most);
    return wg__sqlite_check_row(store, &row, "run", out->id, err);
}

enum wg_code wg__sqlite_run_get(struct wg_store *base, int64_t job, int64_t id,
                                struct wg_store_run *out, struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    static const char did[] = "cannot read the run";
    sqlite3_stmt *row = wg__sqlite_query(store, WG_SQL_RUN_GET, did, err, "ii", id, job);
    if (row == NULL)
        return store->failed;
    enum wg_code code = WG_OK;
    const int status = sqlite3_step(row);
    if (status == SQLITE_ROW)
        code = read_run(store, row, out, err);
    code = wg__sqlite_walked(store, row, status, did, code, err);
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
    enum wg_code code = WG_OK;
    size_t count = 0;
    int status = SQLITE_ROW;
    while (code == WG_OK && (status = sqlite3_step(rows)) == SQLITE_ROW) {
        if (count < capacity)
            code = read_run(store, rows, &out[count], err);
        count++;
    }
    *count_out = count;
    return wg__sqlite_walked(store, rows, status, did, code, err);
}

enum wg_code wg__sqlite_run_each(struct wg_store *base, int64_t job, wg_store_run_fn *each,
                                 void *context, struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    static const char did[] = "cannot read the runs";
    sqlite3_stmt *rows = wg__sqlite_query(store, WG_SQL_RUN_EACH, did, err, "i", job);
    if (rows == NULL)
        return store->failed;
    enum wg_code code = WG_OK;
    int status = SQLITE_ROW;
    bool goes_on = true;
    while (goes_on && code == WG_OK && (status = sqlite3_step(rows)) == SQLITE_ROW) {
        struct wg_store_run run;
        code = read_run(store, rows, &run, err);
        if (code == WG_OK)
            goes_on = each(context, &run);
    }
    return wg__sqlite_walked(store, rows, status, did, code, err);
}

/* The run's job, once it is certain that the run is in `state`. */
static enum wg_code require_state(struct wg_sqlite *store, int64_t id, enum wg_run_state state,
                                  int64_t *job_out, unsigned *last_epoch_out, struct wg_error *err)
{
    static const char did[] = "cannot read the run";
    sqlite3_stmt *values = wg__sqlite_query(store, WG_SQL_RUN_STATE, did, err, "i", id);
    if (values == NULL)
        return store->failed;
    struct wg_sqlite_row row = {.values = values};
    const int status = sqlite3_step(values);
    int found = -1;
    if (status == SQLITE_ROW) {
        *job_out = wg__sqlite_int(&row, 0, 1, INT64_MAX);
        found = (int)wg__sqlite_int(&row, 1, 0, WG_RUN_STATE_COUNT - 1);
        *last_epoch_out = (unsigned)wg__sqlite_int(&row, 2, 0, WG_STORE_EPOCHS_MAX);
    }
    const enum wg_code code = wg__sqlite_walked(
        store, values, status, did, wg__sqlite_check_row(store, &row, "run", id, err), err);
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
    return change_run(as_sqlite(base), run->id, &change, err, "iddddddddddi", (int64_t)run->state,
                      run->ended_s, run->epochs, run->energy_j, run->time_s, run->cost_j,
                      run->setting, run->metric, run->steps_per_epoch, run->saved_j,
                      run->saved_sd_j, run->id);
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
    struct wg_sqlite_row row = {.values = rows};
    enum wg_code code = WG_OK;
    int status = SQLITE_ROW;
    while (code == WG_OK && (status = sqlite3_step(rows)) == SQLITE_ROW) {
        const int64_t state = wg__sqlite_int(&row, 0, 0, WG_RUN_STATE_COUNT - 1);
        counts_out[state] = (unsigned)wg__sqlite_int(&row, 1, 0, UINT_MAX);
        code = wg__sqlite_check_row(store, &row, "recurrence", (int64_t)recurrence, err);
    }
    return wg__sqlite_walked(store, rows, status, did, code, err);
}

/* A fact and its run. Facts are numbered without gaps, so a lost one shows. */
static enum wg_code read_fact(const struct wg_sqlite *store, sqlite3_stmt *values,
                              uint64_t expected, struct wg_store_fact *out,
                              struct wg_store_run *run_out, struct wg_error *err)
{
    struct wg_sqlite_row row = {.values = values};
    *out = (struct wg_store_fact){
        .number = (uint64_t)wg__sqlite_int(&row, WG_SQLITE_RUN_COLUMNS, 1, INT64_MAX),
        .kind = (enum wg_fact_kind)wg__sqlite_int(&row, WG_SQLITE_RUN_COLUMNS + 1, 0,
                                                  WG_FACT_KIND_COUNT - 1)};
    if (out->kind == WG_FACT_EPOCH) {
        out->epoch =
            (unsigned)wg__sqlite_int(&row, WG_SQLITE_RUN_COLUMNS + 2, 1, WG_STORE_EPOCHS_MAX);
        out->metric = wg__sqlite_real_or_nan(&row, WG_SQLITE_RUN_COLUMNS + 3, -DBL_MAX, DBL_MAX);
    }
    enum wg_code code = wg__sqlite_check_row(store, &row, "fact", (int64_t)out->number, err);
    if (code == WG_OK && out->number != expected) {
        char text[64];
        (void)snprintf(text, sizeof text, "fact %llu is missing", (unsigned long long)expected);
        code = wg__sqlite_damaged(store, text, err);
    }
    return code == WG_OK ? read_run(store, values, run_out, err) : code;
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
    enum wg_code code = WG_OK;
    int status = SQLITE_ROW;
    bool goes_on = true;
    while (goes_on && code == WG_OK && (status = sqlite3_step(rows)) == SQLITE_ROW) {
        struct wg_store_run run;
        struct wg_store_fact fact;
        code = read_fact(store, rows, ++after, &fact, &run, err);
        if (code == WG_OK)
            goes_on = each(context, &fact, &run);
    }
    return wg__sqlite_walked(store, rows, status, did, code, err);
}
