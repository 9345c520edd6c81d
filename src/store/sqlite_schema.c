/* SPDX-License-Identifier: MIT
 *
 * The tables of the SQLite store, and how an older store becomes a present one.
 *
 * Schema N is what the first N scripts of the table below make. A script that was released is never
 * changed: what comes later is another script. Each runs in one transaction with the number it
 * leads to (`user_version`), so a kill leaves the schema before or the one after.
 *
 * `facts` is the log. Its numbers are per job, so that a job's facts lie together and its last one
 * is found in one step; it names no foreign key to `runs`, for SQLite would then look through all
 * facts for each run that is removed. `retries` follows from the runs and is kept beside them
 * because looking for it would read all of them. `snapshots` is a cache.
 *
 * Threads: one at a time.
 */
#include <stdio.h>

#include "store/sqlite.h"

enum { APPLICATION_ID = 0x57474f56 }; /* "WGOV", in the file's header: file(1) can tell */

static const char schema_1[] =
    "CREATE TABLE jobs("
    " id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_s REAL NOT NULL,"
    " default_batch INTEGER NOT NULL, metric TEXT NOT NULL, higher_is_better INTEGER NOT NULL,"
    " target REAL NOT NULL, max_epochs INTEGER NOT NULL, objective TEXT NOT NULL,"
    " max_power_w REAL, policy TEXT NOT NULL, optimizer TEXT NOT NULL, learning_rate REAL,"
    " learning_rate_batch INTEGER NOT NULL, lease_s REAL NOT NULL, seed INTEGER NOT NULL,"
    " next_recurrence INTEGER NOT NULL DEFAULT 0) STRICT;"
    "CREATE TABLE batch_sizes("
    " job INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE, batch_size INTEGER NOT NULL,"
    " PRIMARY KEY(job, batch_size)) WITHOUT ROWID, STRICT;"
    "CREATE TABLE gpus("
    " id INTEGER PRIMARY KEY, model TEXT NOT NULL, count INTEGER NOT NULL,"
    " UNIQUE(model, count)) STRICT;"
    /* AUTOINCREMENT: a late report of a removed job's run must not meet another run. */
    "CREATE TABLE runs("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " job INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,"
    " is_survey INTEGER NOT NULL, may_survey INTEGER NOT NULL, recurrence INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL, batch_size INTEGER NOT NULL, power_limit INTEGER NOT NULL,"
    " ticket INTEGER NOT NULL, gpu INTEGER NOT NULL REFERENCES gpus, max_power_w REAL,"
    " host TEXT NOT NULL, pid INTEGER NOT NULL, started_s REAL NOT NULL, lease_s REAL NOT NULL,"
    " lease_until_s REAL NOT NULL, last_epoch INTEGER NOT NULL DEFAULT 0, metric REAL,"
    " epoch_cost_j REAL, epoch_cost_max_limit_j REAL, first_epoch_cost_j REAL,"
    " state INTEGER NOT NULL DEFAULT 0, ended_s REAL, epochs REAL, energy_j REAL, time_s REAL,"
    " cost_j REAL, setting REAL) STRICT;"
    "CREATE INDEX runs_of_recurrence ON runs(job, recurrence);"
    "CREATE INDEX open_runs ON runs(job) WHERE state = 0;"
    "CREATE TABLE facts("
    " job INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE, number INTEGER NOT NULL,"
    " kind INTEGER NOT NULL, run INTEGER NOT NULL, epoch INTEGER, metric REAL,"
    " PRIMARY KEY(job, number)) WITHOUT ROWID, STRICT;"
    "CREATE TABLE retries("
    " job INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE, recurrence INTEGER NOT NULL,"
    " PRIMARY KEY(job, recurrence)) WITHOUT ROWID, STRICT;";

static const char schema_2[] =
    "CREATE TABLE profiles("
    " id INTEGER PRIMARY KEY, owner TEXT NOT NULL, gpu_model TEXT NOT NULL,"
    " gpu_count INTEGER NOT NULL, knob TEXT NOT NULL, batch_size INTEGER NOT NULL,"
    " measured_s REAL NOT NULL, UNIQUE(owner, gpu_model, gpu_count, knob, batch_size)) STRICT;"
    "CREATE TABLE profile_points("
    " profile INTEGER NOT NULL REFERENCES profiles ON DELETE CASCADE, setting REAL NOT NULL,"
    " power_w REAL, throughput REAL, power_sd REAL, throughput_sd REAL, measured_s REAL,"
    " measurements INTEGER NOT NULL, discarded INTEGER NOT NULL, settle_s REAL,"
    " PRIMARY KEY(profile, setting)) WITHOUT ROWID, STRICT;";

static const char schema_3[] =
    "CREATE TABLE snapshots("
    " job INTEGER PRIMARY KEY REFERENCES jobs ON DELETE CASCADE, number INTEGER NOT NULL,"
    " version TEXT NOT NULL, state BLOB NOT NULL) STRICT;";

/* A survey needs to know how many steps an epoch has, and what a run would have cost at the largest
 * power limit only its own profile tells. */
static const char schema_4[] = "ALTER TABLE runs ADD COLUMN steps_per_epoch REAL;"
                               "ALTER TABLE runs ADD COLUMN saved_j REAL;"
                               "ALTER TABLE runs ADD COLUMN saved_sd_j REAL;";

/* In order; the place of a script is the schema that it begins with. */
static const char *const scripts[] = {schema_1, schema_2, schema_3, schema_4};
enum { SCHEMA = sizeof scripts / sizeof scripts[0] };

int wg__sqlite_schema_version(void)
{
    return SCHEMA;
}

static enum wg_code read_number(struct wg_sqlite *store, const char *query, int *out,
                                struct wg_error *err)
{
    sqlite3_stmt *statement = NULL;
    int status = sqlite3_prepare_v2(store->db, query, -1, &statement, NULL);
    if (status == SQLITE_OK)
        status = sqlite3_step(statement);
    if (status == SQLITE_ROW)
        *out = sqlite3_column_int(statement, 0);
    (void)sqlite3_finalize(statement);
    return status == SQLITE_ROW ? WG_OK
                                : wg__sqlite_fail(store, status, "cannot read the schema", err);
}

static enum wg_code check_owner(struct wg_sqlite *store, int version, struct wg_error *err)
{
    int id = 0, tables = 0;
    enum wg_code code = read_number(store, "PRAGMA application_id", &id, err);
    if (code == WG_OK)
        code = read_number(store, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (code != WG_OK)
        return code;
    if (id != APPLICATION_ID && (tables > 0 || version > 0))
        return wg__fail(err, WG_EDATA, "store '%s' is a database of another program", store->path);
    if (version > SCHEMA)
        return wg__fail(err, WG_EUNSUPPORTED,
                        "store '%s' has schema %d, but this wattgov knows only those up to %d: use "
                        "a newer wattgov, or another store (--store)",
                        store->path, version, SCHEMA);
    return WG_OK;
}

static enum wg_code apply(struct wg_sqlite *store, int from, int to, struct wg_error *err)
{
    char pragmas[96];
    (void)snprintf(pragmas, sizeof pragmas, "PRAGMA application_id = %d; PRAGMA user_version = %d",
                   APPLICATION_ID, to);
    int status = SQLITE_OK;
    for (int i = from; i < to && status == SQLITE_OK; i++)
        status = sqlite3_exec(store->db, scripts[i], NULL, NULL, NULL);
    if (status == SQLITE_OK)
        status = sqlite3_exec(store->db, pragmas, NULL, NULL, NULL);
    return status == SQLITE_OK ? WG_OK
                               : wg__sqlite_fail(store, status, "cannot make its tables", err);
}

enum wg_code wg__sqlite_check_schema(struct wg_sqlite *store, bool *is_older_out,
                                     struct wg_error *err)
{
    int found = 0;
    enum wg_code code = read_number(store, "PRAGMA user_version", &found, err);
    if (code == WG_OK)
        code = check_owner(store, found, err);
    *is_older_out = found < SCHEMA;
    return code;
}

enum wg_code wg__sqlite_migrate_to(struct wg_sqlite *store, int version, struct wg_error *err)
{
    int found = 0;
    enum wg_code code = read_number(store, "PRAGMA user_version", &found, err);
    if (code == WG_OK)
        code = check_owner(store, found, err);
    if (code != WG_OK || found >= version)
        return code;
    /* Look again under the lock: another process may have been quicker. */
    code = store->base.ops->begin(&store->base, true, err);
    if (code != WG_OK)
        return code;
    code = read_number(store, "PRAGMA user_version", &found, err);
    if (code == WG_OK)
        code = check_owner(store, found, err);
    if (code == WG_OK && found < version)
        code = apply(store, found, version, err);
    if (code == WG_OK)
        code = store->base.ops->commit(&store->base, err);
    if (code != WG_OK)
        store->base.ops->rollback(&store->base);
    return code;
}

enum wg_code wg__sqlite_migrate(struct wg_sqlite *store, struct wg_error *err)
{
    return wg__sqlite_migrate_to(store, SCHEMA, err);
}
