/* SPDX-License-Identifier: MIT
 *
 * The SQLite store's connection: transactions, statements, errors.
 *
 * The file is in WAL mode, so who reads never waits for who writes, with synchronous=FULL: a commit
 * returns when the log is on the disk. Writers take the lock at once (BEGIN IMMEDIATE); a
 * transaction that began as a reader could find at its first write that it must start over.
 *
 * Who closes last moves the log into the file, so that the file alone is the whole store, but
 * leaves the log, empty, and its index: each command is a process, and to make them anew would cost
 * it two more waits for the disk.
 *
 * Threads: one at a time.
 */
#include "store/sqlite.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"

static struct wg_sqlite *as_sqlite(struct wg_store *store)
{
    return (struct wg_sqlite *)store;
}

static enum wg_code fail_full(const struct wg_sqlite *store, const char *did, struct wg_error *err)
{
    return wg__fail(err, WG_EIO,
                    "store '%s': %s: the disk is full; nothing was written, free some space and "
                    "try again",
                    store->path, did);
}

/* SQLite cannot open it or its log, or may not write: where we can see why, we say that. */
static enum wg_code fail_open(const struct wg_sqlite *store, int status, const char *did,
                              struct wg_error *err)
{
    const enum wg_code code = wg__sqlite_blame(store, did, err);
    if (code != WG_OK)
        return code;
    if ((status & 0xff) == SQLITE_READONLY)
        return wg__fail(err, WG_EPERM, "store '%s': %s: it is read-only for this user", store->path,
                        did);
    return wg__fail(err, WG_EIO, "store '%s': %s: %s", store->path, did, sqlite3_errstr(status));
}

/* The disk is full, or does not do what it should. */
static enum wg_code fail_io(const struct wg_sqlite *store, int status, const char *did,
                            struct wg_error *err)
{
    /* A read that came short has not failed a call: what errno says then is older. */
    const int cause = store->db != NULL && status != SQLITE_IOERR_SHORT_READ
                          ? sqlite3_system_errno(store->db)
                          : 0;
    if (cause == ENOSPC || cause == EDQUOT)
        return fail_full(store, did, err);
    return wg__fail(err, WG_EIO, "store '%s': %s: %s%s%s", store->path, did, sqlite3_errstr(status),
                    cause != 0 ? ": " : "", cause != 0 ? strerror(cause) : "");
}

static enum wg_code explain(const struct wg_sqlite *store, int status, const char *did,
                            struct wg_error *err)
{
    const char *path = store->path;
    switch (status & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return wg__fail(err, WG_EBUSY,
                        "store '%s': %s: another process has kept it locked for more than %g s; "
                        "nothing was written, try again",
                        path, did, store->present_patience_s);
    case SQLITE_FULL:
        return fail_full(store, did, err);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
        return fail_open(store, status, did, err);
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return wg__fail(err, WG_EPERM, "store '%s': %s: not permitted", path, did);
    case SQLITE_NOTADB:
        return wg__fail(err, WG_EDATA, "store '%s': %s: the file is no store of jobs", path, did);
    case SQLITE_CORRUPT:
        return wg__fail(err, WG_EDATA,
                        "store '%s' is damaged: %s; restore it from a copy, or move it away to "
                        "begin anew",
                        path, did);
    case SQLITE_NOMEM:
        return wg__fail(err, WG_ENOMEM, "store '%s': %s: out of memory", path, did);
    case SQLITE_IOERR:
        return fail_io(store, status, did, err);
    default:
        return wg__fail(err, WG_EIO, "store '%s': %s: %s", path, did,
                        store->db != NULL ? sqlite3_errmsg(store->db) : sqlite3_errstr(status));
    }
}

enum wg_code wg__sqlite_fail(struct wg_sqlite *store, int status, const char *did,
                             struct wg_error *err)
{
    store->failed = explain(store, status, did, err);
    return store->failed;
}

static const char *text_of(enum wg_sqlite_statement which)
{
    static const char *const texts[WG_SQL_COUNT] = {
#define X(name, text) [WG_SQL_##name] = text,
        WG_SQLITE_STATEMENTS(X)
#undef X
    };
    return texts[which];
}

static int bind_all(sqlite3_stmt *statement, const char *types, va_list args)
{
    int status = SQLITE_OK;
    for (int i = 1; types[i - 1] != '\0' && status == SQLITE_OK; i++) {
        switch (types[i - 1]) {
        case 'i':
            status = sqlite3_bind_int64(statement, i, va_arg(args, int64_t));
            break;
        case 'd':
            status = sqlite3_bind_double(statement, i, va_arg(args, double));
            break;
        default: /* the text outlives the walk: it belongs to the caller */
            status = sqlite3_bind_text(statement, i, va_arg(args, const char *), -1, SQLITE_STATIC);
            break;
        }
    }
    return status;
}

static sqlite3_stmt *query_with(struct wg_sqlite *store, enum wg_sqlite_statement which,
                                const char *did, struct wg_error *err, const char *types,
                                va_list args)
{
    int status = SQLITE_OK;
    if (store->statements[which] == NULL)
        status = sqlite3_prepare_v3(store->db, text_of(which), -1, SQLITE_PREPARE_PERSISTENT,
                                    &store->statements[which], NULL);
    if (status == SQLITE_OK)
        status = bind_all(store->statements[which], types, args);
    if (status == SQLITE_OK)
        return store->statements[which];
    (void)wg__sqlite_fail(store, status, did, err);
    return NULL;
}

sqlite3_stmt *wg__sqlite_query(struct wg_sqlite *store, enum wg_sqlite_statement which,
                               const char *did, struct wg_error *err, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    sqlite3_stmt *statement = query_with(store, which, did, err, types, args);
    va_end(args);
    return statement;
}

enum wg_code wg__sqlite_done(struct wg_sqlite *store, sqlite3_stmt *statement, int status,
                             const char *did, struct wg_error *err)
{
    enum wg_code code = WG_OK;
    if (status != SQLITE_DONE && status != SQLITE_ROW)
        code = wg__sqlite_fail(store, status, did, err);
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return code;
}

enum wg_code wg__sqlite_walked(struct wg_sqlite *store, sqlite3_stmt *statement, int status,
                               const char *did, enum wg_code code, struct wg_error *err)
{
    const enum wg_code done =
        wg__sqlite_done(store, statement, status, did, code == WG_OK ? err : NULL);
    return code != WG_OK ? code : done;
}

enum wg_code wg__sqlite_do_with(struct wg_sqlite *store, enum wg_sqlite_statement which,
                                const char *did, struct wg_error *err, const char *types,
                                va_list args)
{
    sqlite3_stmt *statement = query_with(store, which, did, err, types, args);
    if (statement == NULL)
        return store->failed;
    return wg__sqlite_done(store, statement, sqlite3_step(statement), did, err);
}

enum wg_code wg__sqlite_do(struct wg_sqlite *store, enum wg_sqlite_statement which, const char *did,
                           struct wg_error *err, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    const enum wg_code code = wg__sqlite_do_with(store, which, did, err, types, args);
    va_end(args);
    return code;
}

static enum wg_code begin(struct wg_store *base, bool writes, struct wg_error *err)
{
    struct wg_sqlite *store = as_sqlite(base);
    const enum wg_sqlite_statement which = writes ? WG_SQL_BEGIN_WRITE : WG_SQL_BEGIN_READ;
    return wg__sqlite_do(store, which, "cannot be locked", err, "");
}

static void rollback(struct wg_store *base)
{
    struct wg_sqlite *store = as_sqlite(base);
    if (sqlite3_get_autocommit(store->db)) /* SQLite has rolled back by itself, on a full disk */
        return;
    (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
}

static enum wg_code commit(struct wg_store *base, struct wg_error *err)
{
    const enum wg_code code =
        wg__sqlite_do(as_sqlite(base), WG_SQL_COMMIT, "cannot commit", err, "");
    if (code != WG_OK)
        rollback(base);
    return code;
}

static void set_patience(struct wg_store *base, double patience_s)
{
    struct wg_sqlite *store = as_sqlite(base);
    store->present_patience_s = patience_s > 0 ? patience_s : store->patience_s;
    (void)sqlite3_busy_timeout(store->db, (int)fmin(store->present_patience_s * 1e3, 1e9));
}

static void close_store(struct wg_store *base)
{
    struct wg_sqlite *store = as_sqlite(base);
    for (size_t i = 0; i < WG_SQL_COUNT; i++)
        (void)sqlite3_finalize(store->statements[i]);
    (void)sqlite3_close(store->db);
    wg__free(store);
}

static const char *location(const struct wg_store *base)
{
    return ((const struct wg_sqlite *)base)->path;
}

const struct wg_store_ops wg__sqlite_ops = {
    .name = "sqlite",
    .close = close_store,
    .location = location,
    .set_patience = set_patience,
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
    .job_add = wg__sqlite_job_add,
    .job_get = wg__sqlite_job_get,
    .job_each = wg__sqlite_job_each,
    .job_remove = wg__sqlite_job_remove,
    .run_add = wg__sqlite_run_add,
    .run_get = wg__sqlite_run_get,
    .run_open = wg__sqlite_run_open,
    .run_each = wg__sqlite_run_each,
    .run_extend = wg__sqlite_run_extend,
    .run_profile = wg__sqlite_run_profile,
    .run_epoch = wg__sqlite_run_epoch,
    .run_end = wg__sqlite_run_end,
    .run_take_back = wg__sqlite_run_take_back,
    .run_revive = wg__sqlite_run_revive,
    .retry_add = wg__sqlite_retry_add,
    .retry_remove = wg__sqlite_retry_remove,
    .retry_find = wg__sqlite_retry_find,
    .recurrence_get = wg__sqlite_recurrence_get,
    .fact_each = wg__sqlite_fact_each,
    .snapshot_put = wg__sqlite_snapshot_put,
    .snapshot_get = wg__sqlite_snapshot_get,
    .profile_put = wg__sqlite_profile_put,
    .profile_get = wg__sqlite_profile_get,
};
