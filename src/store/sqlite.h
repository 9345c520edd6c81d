/* SPDX-License-Identifier: MIT
 *
 * What the parts of the SQLite store share.
 *
 *   sqlite.c            the connection: transactions, statements, errors
 *   sqlite_open.c       opening it, to write or only to read
 *   sqlite_schema.c     the tables, and how an older store becomes a present one
 *   sqlite_jobs.c       jobs, their retries and snapshots
 *   sqlite_runs.c       runs and facts
 *   sqlite_profiles.c   profiles of power limits
 *   sqlite_row.c        values of rows, none of which is trusted
 *
 * SQLite allocates for itself (its allocator is global to the process); what we allocate is one
 * struct.
 *
 * Owns: see struct wg_sqlite.    Threads: one at a time.
 */
#ifndef WG_STORE_SQLITE_H
#define WG_STORE_SQLITE_H

#include <sqlite3.h>
#include <stdarg.h>

#include "store/store.h"

/* Every statement by name: prepared when first used, kept until the store is closed. */
#define WG_SQLITE_STATEMENTS(X)                                                                    \
    X(BEGIN_READ, "BEGIN")                                                                         \
    X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                              \
    X(COMMIT, "COMMIT")                                                                            \
    X(JOB_ADD,                                                                                     \
      "INSERT INTO jobs(name, created_s, default_batch, metric, higher_is_better, target, "        \
      "max_epochs, objective, max_power_w, policy, optimizer, learning_rate, "                     \
      "learning_rate_batch, lease_s, seed) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")                 \
    X(JOB_ADD_BATCH, "INSERT INTO batch_sizes(job, batch_size) VALUES(?,?)")                       \
    X(JOB_GET, "SELECT " WG_SQLITE_JOB " FROM jobs WHERE name = ?")                                \
    X(JOB_EACH, "SELECT " WG_SQLITE_JOB " FROM jobs ORDER BY name")                                \
    X(JOB_BATCHES, "SELECT batch_size FROM batch_sizes WHERE job = ? ORDER BY batch_size")         \
    X(JOB_REMOVE_FACTS, "DELETE FROM facts WHERE job = ?")                                         \
    X(JOB_REMOVE, "DELETE FROM jobs WHERE id = ?")                                                 \
    X(JOB_RECURRENCE, "UPDATE jobs SET next_recurrence = max(next_recurrence, ?) WHERE id = ?")    \
    X(RETRY_ADD, "INSERT OR IGNORE INTO retries(job, recurrence) VALUES(?,?)")                     \
    X(RETRY_REMOVE, "DELETE FROM retries WHERE job = ? AND recurrence = ?")                        \
    X(RETRY_FIND, "SELECT min(recurrence) FROM retries WHERE job = ?")                             \
    X(SNAPSHOT_PUT,                                                                                \
      "INSERT OR REPLACE INTO snapshots(job, number, version, state) VALUES(?,?,?,?)")             \
    X(SNAPSHOT_GET, "SELECT number, state FROM snapshots WHERE job = ? AND version = ?")           \
    X(GPU_ADD, "INSERT OR IGNORE INTO gpus(model, count) VALUES(?,?)")                             \
    X(GPU_FIND, "SELECT id FROM gpus WHERE model = ? AND count = ?")                               \
    X(RUN_ADD,                                                                                     \
      "INSERT INTO runs(job, is_survey, may_survey, recurrence, attempt, batch_size, power_limit," \
      " ticket, gpu, max_power_w, host, pid, started_s, lease_s, lease_until_s) "                  \
      "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")                                                     \
    X(RUN_GET, "SELECT " WG_SQLITE_RUN " FROM runs JOIN gpus ON gpus.id = runs.gpu "               \
               "WHERE runs.id = ? AND runs.job = ?")                                               \
    X(RUN_OPEN, "SELECT " WG_SQLITE_RUN " FROM runs JOIN gpus ON gpus.id = runs.gpu "              \
                "WHERE runs.job = ? AND runs.state = 0 ORDER BY runs.id")                          \
    X(RUN_EACH, "SELECT " WG_SQLITE_RUN " FROM runs JOIN gpus ON gpus.id = runs.gpu "              \
                "WHERE runs.job = ? ORDER BY runs.id")                                             \
    X(RUN_STATE, "SELECT job, state, last_epoch FROM runs WHERE id = ?")                           \
    X(RUN_EXTEND, "UPDATE runs SET lease_until_s = max(lease_until_s, ?) WHERE id = ?")            \
    X(RUN_PROFILE,                                                                                 \
      "UPDATE runs SET epoch_cost_j = ?, epoch_cost_max_limit_j = ?, first_epoch_cost_j = ? "      \
      "WHERE id = ?")                                                                              \
    X(RUN_EPOCH, "UPDATE runs SET last_epoch = ?, metric = ? WHERE id = ?")                        \
    X(RUN_END,                                                                                     \
      "UPDATE runs SET state = ?, ended_s = ?, epochs = ?, energy_j = ?, time_s = ?, cost_j = ?, " \
      "setting = ?, metric = ?, steps_per_epoch = ?, saved_j = ?, saved_sd_j = ? WHERE id = ?")    \
    X(RUN_TAKE_BACK, "UPDATE runs SET state = 6, ended_s = ? WHERE id = ?")                        \
    X(RUN_REVIVE, "UPDATE runs SET state = 0, ended_s = NULL, lease_until_s = ? WHERE id = ?")     \
    X(RECURRENCE_GET,                                                                              \
      "SELECT state, count(*) FROM runs WHERE job = ? AND recurrence = ? AND is_survey = 0 "       \
      "GROUP BY state")                                                                            \
    X(FACT_ADD,                                                                                    \
      "INSERT INTO facts(job, number, kind, run, epoch, metric) VALUES(?1, "                       \
      "(SELECT coalesce(max(number), 0) + 1 FROM facts WHERE job = ?1), ?2, ?3, ?4, ?5)")          \
    X(FACT_EACH,                                                                                   \
      "SELECT " WG_SQLITE_RUN ", facts.number, facts.kind, facts.epoch, facts.metric FROM facts "  \
      "JOIN runs ON runs.id = facts.run JOIN gpus ON gpus.id = runs.gpu "                          \
      "WHERE facts.job = ? AND facts.number > ? ORDER BY facts.number")                            \
    X(PROFILE_DROP,                                                                                \
      "DELETE FROM profiles WHERE owner = ? AND gpu_model = ? AND gpu_count = ? AND knob = ? "     \
      "AND batch_size = ?")                                                                        \
    X(PROFILE_ADD,                                                                                 \
      "INSERT INTO profiles(owner, gpu_model, gpu_count, knob, batch_size, measured_s) "           \
      "VALUES(?,?,?,?,?,?)")                                                                       \
    X(PROFILE_ADD_POINT, "INSERT INTO profile_points VALUES(?,?,?,?,?,?,?,?,?,?)")                 \
    X(PROFILE_GET,                                                                                 \
      "SELECT p.setting, p.power_w, p.throughput, p.power_sd, p.throughput_sd, p.measured_s, "     \
      "p.measurements, p.discarded, p.settle_s, profiles.measured_s, profiles.id "                 \
      "FROM profiles JOIN profile_points p ON p.profile = profiles.id WHERE owner = ? AND "        \
      "gpu_model = ? "                                                                             \
      "AND gpu_count = ? AND knob = ? AND batch_size = ? ORDER BY p.setting")

#define WG_SQLITE_JOB                                                                              \
    "id, name, created_s, default_batch, metric, higher_is_better, target, max_epochs, "           \
    "objective, max_power_w, policy, optimizer, learning_rate, learning_rate_batch, lease_s, "     \
    "seed, next_recurrence"

#define WG_SQLITE_RUN                                                                              \
    "runs.id, runs.job, runs.is_survey, runs.may_survey, runs.recurrence, runs.attempt, "          \
    "runs.batch_size, runs.power_limit, runs.ticket, gpus.model, gpus.count, runs.max_power_w, "   \
    "runs.host, runs.pid, runs.started_s, runs.lease_s, runs.lease_until_s, runs.last_epoch, "     \
    "runs.metric, runs.epoch_cost_j, runs.epoch_cost_max_limit_j, runs.first_epoch_cost_j, "       \
    "runs.state, runs.ended_s, runs.epochs, runs.energy_j, runs.time_s, runs.cost_j, "             \
    "runs.setting, runs.steps_per_epoch, runs.saved_j, runs.saved_sd_j"
enum { WG_SQLITE_RUN_COLUMNS = 32 };

enum wg_sqlite_statement {
#define X(name, text) WG_SQL_##name,
    WG_SQLITE_STATEMENTS(X)
#undef X
        WG_SQL_COUNT
};

/* Of a recurrence: one more can still be counted. */
#define WG_SQLITE_RECURRENCE_MAX (INT64_MAX - 1)

struct wg_sqlite {
    struct wg_store base;
    sqlite3 *db;
    sqlite3_stmt *statements[WG_SQL_COUNT];
    double patience_s;         /* as it was opened with */
    double present_patience_s; /* of begin */
    bool reads_only;
    enum wg_code failed; /* what wg__sqlite_fail has returned last */
    char path[];         /* as it was given */
};

/* What SQLite's result `status` means, `did` being what was tried: "cannot read the job". */
enum wg_code wg__sqlite_fail(struct wg_sqlite *store, int status, const char *did,
                             struct wg_error *err);

/* The statement, ready for its first sqlite3_step, with the values bound that `types` names:
 * 'i' int64_t, 'd' double (NAN: NULL), 't' text. NULL: it failed. */
sqlite3_stmt *wg__sqlite_query(struct wg_sqlite *store, enum wg_sqlite_statement which,
                               const char *did, struct wg_error *err, const char *types, ...);

/* Runs a statement that returns no rows. */
enum wg_code wg__sqlite_do_with(struct wg_sqlite *store, enum wg_sqlite_statement which,
                                const char *did, struct wg_error *err, const char *types,
                                va_list args);
enum wg_code wg__sqlite_do(struct wg_sqlite *store, enum wg_sqlite_statement which, const char *did,
                           struct wg_error *err, const char *types, ...);

/* The end of a walk over rows: `status` is what the last sqlite3_step returned, SQLITE_ROW when the
 * caller wants no more. Resets the statement. */
enum wg_code wg__sqlite_done(struct wg_sqlite *store, sqlite3_stmt *statement, int status,
                             const char *did, struct wg_error *err);

/* The same after a walk whose reader has ended with `code`; the first failure counts. */
enum wg_code wg__sqlite_walked(struct wg_sqlite *store, sqlite3_stmt *statement, int status,
                               const char *did, enum wg_code code, struct wg_error *err);

/* A row that is read value by value: see sqlite_row.c. */
struct wg_sqlite_row {
    sqlite3_stmt *values;
    bool is_damaged;
    int wrong; /* the first column that made it so */
};

/* What is not of its type or outside of its range damages the row; NULL too, except for `or_nan`. A
 * text must be plain UTF-8 and fit. */
int64_t wg__sqlite_int(struct wg_sqlite_row *row, int column, int64_t min, int64_t max);
double wg__sqlite_real(struct wg_sqlite_row *row, int column, double min, double max);
double wg__sqlite_real_or_nan(struct wg_sqlite_row *row, int column, double min, double max);
void wg__sqlite_text(struct wg_sqlite_row *row, int column, char *out, size_t size);

/* WG_EDATA, naming `what` (a table's word, "job") and `id`, when the row is damaged. The statement
 * must not have been reset yet. */
enum wg_code wg__sqlite_check_row(const struct wg_sqlite *store, const struct wg_sqlite_row *row,
                                  const char *what, int64_t id, struct wg_error *err);
/* The same for what a single value cannot tell. */
enum wg_code wg__sqlite_damaged(const struct wg_sqlite *store, const char *what,
                                struct wg_error *err);

/* sqlite_schema.c: makes the tables of a new store and migrates an older one. */
enum wg_code wg__sqlite_migrate(struct wg_sqlite *store, struct wg_error *err);
/* The same up to schema `version`: tests make old stores with it. */
enum wg_code wg__sqlite_migrate_to(struct wg_sqlite *store, int version, struct wg_error *err);
int wg__sqlite_schema_version(void);

/* Refuses what is no store, or a newer one; says whether it is older than this program. */
enum wg_code wg__sqlite_check_schema(struct wg_sqlite *store, bool *is_older_out,
                                     struct wg_error *err);

/* Connects and sets up the connection, without looking at the schema: the first half of opening. */
enum wg_code wg__sqlite_connect(struct wg_sqlite **out, const struct wg_store_opts *opts,
                                struct wg_error *err);

/* Why the file or its folder cannot be used, when `did` has failed; WG_OK: nothing is seen. */
enum wg_code wg__sqlite_blame(const struct wg_sqlite *store, const char *did, struct wg_error *err);

extern const struct wg_store_ops wg__sqlite_ops;

/* The functions behind the ops. */
enum wg_code wg__sqlite_job_add(struct wg_store *base, struct wg_store_job *job,
                                struct wg_error *err);
enum wg_code wg__sqlite_job_get(struct wg_store *base, const char *name, struct wg_store_job *out,
                                struct wg_error *err);
enum wg_code wg__sqlite_job_each(struct wg_store *base, wg_store_job_fn *each, void *context,
                                 struct wg_error *err);
enum wg_code wg__sqlite_job_remove(struct wg_store *base, int64_t job, struct wg_error *err);
enum wg_code wg__sqlite_retry_add(struct wg_store *base, int64_t job, uint64_t recurrence,
                                  struct wg_error *err);
enum wg_code wg__sqlite_retry_remove(struct wg_store *base, int64_t job, uint64_t recurrence,
                                     struct wg_error *err);
enum wg_code wg__sqlite_retry_find(struct wg_store *base, int64_t job, bool *has_out,
                                   uint64_t *recurrence_out, struct wg_error *err);
enum wg_code wg__sqlite_snapshot_put(struct wg_store *base, int64_t job, uint64_t number,
                                     const char *version, const void *bytes, size_t length,
                                     struct wg_error *err);
enum wg_code wg__sqlite_snapshot_get(struct wg_store *base, int64_t job, const char *version,
                                     void (*take)(void *context, uint64_t number, const void *bytes,
                                                  size_t length),
                                     void *context, struct wg_error *err);
enum wg_code wg__sqlite_run_add(struct wg_store *base, struct wg_store_run *run,
                                struct wg_error *err);
enum wg_code wg__sqlite_run_get(struct wg_store *base, int64_t job, int64_t id,
                                struct wg_store_run *out, struct wg_error *err);
enum wg_code wg__sqlite_run_open(struct wg_store *base, int64_t job, struct wg_store_run *out,
                                 size_t capacity, size_t *count_out, struct wg_error *err);
enum wg_code wg__sqlite_run_each(struct wg_store *base, int64_t job, wg_store_run_fn *each,
                                 void *context, struct wg_error *err);
enum wg_code wg__sqlite_run_extend(struct wg_store *base, int64_t id, double lease_until_s,
                                   struct wg_error *err);
enum wg_code wg__sqlite_run_profile(struct wg_store *base, const struct wg_store_run *run,
                                    struct wg_error *err);
enum wg_code wg__sqlite_run_epoch(struct wg_store *base, int64_t id, unsigned epoch, double metric,
                                  struct wg_error *err);
enum wg_code wg__sqlite_run_end(struct wg_store *base, const struct wg_store_run *run,
                                struct wg_error *err);
enum wg_code wg__sqlite_run_take_back(struct wg_store *base, int64_t id, double now_s,
                                      struct wg_error *err);
enum wg_code wg__sqlite_run_revive(struct wg_store *base, int64_t id, double lease_until_s,
                                   struct wg_error *err);
enum wg_code wg__sqlite_recurrence_get(struct wg_store *base, int64_t job, uint64_t recurrence,
                                       unsigned counts_out[WG_RUN_STATE_COUNT],
                                       struct wg_error *err);
enum wg_code wg__sqlite_fact_each(struct wg_store *base, int64_t job, uint64_t after,
                                  wg_store_fact_fn *each, void *context, struct wg_error *err);
enum wg_code wg__sqlite_profile_put(struct wg_store *base, const struct wg_store_profile_key *key,
                                    double now_s, const struct wg_store_point *points, size_t count,
                                    struct wg_error *err);
enum wg_code wg__sqlite_profile_get(struct wg_store *base, const struct wg_store_profile_key *key,
                                    struct wg_store_point out[WG_STORE_POINTS_MAX],
                                    size_t *count_out, double *when_s_out, struct wg_error *err);

#endif
