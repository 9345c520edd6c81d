/* SPDX-License-Identifier: MIT
 *
 * A store whose file was damaged: whatever is in it, every question about its job gets an answer or
 * one line that says so.
 *
 * Two kinds of damage, both from a seed: to the bytes of the file, as disks and copies do it, and
 * to single values, which reaches further because SQLite still finds all rows in their places.
 */
#include "live/job.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "base/rng.h"
#include "support/job_stage.h"

enum { PAGE = 4096, NAME_BYTES = 64 };

/* What may come of a damaged store. Not "usage": nobody has given a wrong argument. */
static void is_an_answer(enum wg_code code, const struct wg_error *err)
{
    if (code == WG_OK)
        return;
    assert_int_equal(err->code, code);
    assert_true(strlen(err->text) > 10);
    if (code == WG_EINVAL || code == WG_ENOMEM)
        fail_msg("%s: %s", wg_code_name(code), err->text);
}

/* A job that has seen everything: runs of all ends, epochs, a profile, a snapshot, an open run. */
static void live_through(struct job_stage *stage)
{
    struct wg_error err = {0};
    enum wg_job_answer answer;
    for (unsigned i = 0; i < 14; i++) {
        const struct wg_job_order order = job_stage_next(stage);
        if (i == 2)
            assert_int_equal(wg__job_profile(stage->store, "job", order.run.id,
                                             &(struct wg_job_costs){9, 11, 10}, stage->now_s, &err),
                             WG_OK);
        for (unsigned epoch = 1; epoch <= 2; epoch++)
            assert_int_equal(wg__job_epoch(stage->store, "job", order.run.id, epoch, 0.1 * epoch,
                                           stage->now_s, &answer, &err),
                             WG_OK);
        static const enum wg_run_state ends[] = {WG_RUN_REACHED, WG_RUN_FAILED,   WG_RUN_REACHED,
                                                 WG_RUN_STOPPED, WG_RUN_RETURNED, WG_RUN_CRASHED};
        if (i < 12)
            (void)job_stage_end(stage, order.run.id, ends[i % 6], 3 + i % 4, 40 + i);
        if (i == 12)
            stage->now_s += 101; /* the lease of this one passes */
    }
    struct wg_job_policy *policy = NULL;
    const struct wg_store_profile_key key = {"job:job", "A40", 1, "power_limit", 16};
    const struct wg_store_point point = {.setting = 200, .power_w = 190, .throughput = 2};
    assert_int_equal(stage->store->ops->begin(stage->store, true, &err), WG_OK);
    assert_int_equal(wg__job_policy_open(&policy, stage->store, &stage->job, false, &err), WG_OK);
    assert_int_equal(wg__job_policy_save(policy, stage->store, &err), WG_OK);
    wg__job_policy_free(policy);
    assert_int_equal(stage->store->ops->profile_put(stage->store, &key, 1, &point, 1, &err), WG_OK);
    assert_int_equal(stage->store->ops->commit(stage->store, &err), WG_OK);
}

static bool see_job(void *context, const struct wg_store_job *job)
{
    (void)context;
    assert_in_range(job->batch_count, 1, WG_STORE_BATCH_SIZES_MAX);
    assert_int_not_equal(wg__job_arm(job, job->default_batch), SIZE_MAX);
    assert_true(job->max_epochs >= 1 && isfinite(job->target));
    return true;
}

static bool see_run(void *context, const struct wg_store_run *run)
{
    (void)context;
    assert_non_null(wg__run_state_name(run->state));
    assert_true(run->batch_size > 0 && run->lease_s >= 0);
    assert_false(isinf(run->cost_j) || run->cost_j < 0 || isinf(run->metric));
    return true;
}

/* Asks all there is to ask. */
static void interrogate(const char *path, double now_s)
{
    struct wg_store *store = NULL;
    struct wg_error err = {0};
    struct wg_store_job job;
    const struct wg_store_opts opts = {.path = path, .must_exist = true, .patience_s = 0.01};
    enum wg_code code = wg__store_open(&store, &opts, &err);
    is_an_answer(code, &err);
    if (code != WG_OK)
        return;
    is_an_answer(store->ops->job_each(store, see_job, NULL, &err), &err);
    code = store->ops->job_get(store, "job", &job, &err);
    is_an_answer(code, &err);
    if (code == WG_OK) {
        struct wg_job_policy *policy = NULL;
        struct wg_job_survey_plan plan;
        is_an_answer(store->ops->run_each(store, job.id, see_run, NULL, &err), &err);
        is_an_answer(wg__job_policy_open(&policy, store, &job, true, &err), &err);
        wg__job_policy_free(policy);
        is_an_answer(wg__job_survey_plan(store, "job", 1, &plan, &err), &err);
    }
    struct wg_job_order order;
    const struct wg_job_request request = {
        .gpu_model = "A40", .gpu_count = 1, .max_power_w = 300, .host = "h", .now_s = now_s + 50};
    code = wg__job_next(store, "job", &request, &order, &err);
    is_an_answer(code, &err);
    if (code == WG_OK)
        assert_int_not_equal(wg__job_arm(&order.job, order.run.batch_size), SIZE_MAX);
    enum wg_job_answer answer;
    code = wg__job_epoch(store, "job", 14, 3, 0.3, now_s + 60, &answer, &err);
    if (code != WG_EINVAL) /* the most epochs are a number too */
        is_an_answer(code, &err);
    const struct wg_job_report report = {.run = 14,
                                         .state = WG_RUN_CRASHED,
                                         .epochs = 0,
                                         .metric = NAN,
                                         .setting = NAN,
                                         .now_s = now_s + 70};
    struct wg_job_receipt receipt;
    is_an_answer(wg__job_report(store, "job", &report, &receipt, &err), &err);
    wg__store_close(store);
}

static void damage_bytes(struct wg_rng *rng, char *bytes, size_t *length)
{
    const uint32_t size = (uint32_t)*length;
    const size_t page = (size_t)wg__rng_below(rng, size / PAGE) * PAGE;
    const size_t other = (size_t)wg__rng_below(rng, size / PAGE) * PAGE;
    char kept[PAGE];
    switch (wg__rng_below(rng, 5)) {
    case 0:
        for (uint32_t n = 1 + wg__rng_below(rng, 100); n > 0; n--)
            bytes[wg__rng_below(rng, size)] = (char)wg__rng_below(rng, 256);
        break;
    case 1:
        bytes[wg__rng_below(rng, size)] ^= (char)(1 << wg__rng_below(rng, 8));
        break;
    case 2:
        *length = wg__rng_below(rng, size);
        break;
    case 3:
        memset(bytes + page, 0, PAGE);
        break;
    default:
        memcpy(kept, bytes + page, PAGE);
        memcpy(bytes + page, bytes + other, PAGE);
        memcpy(bytes + other, kept, PAGE);
        break;
    }
}

static void run_sql(sqlite3 *db, const char *sql)
{
    char *said = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &said) != SQLITE_OK)
        fail_msg("%s: %s", sql, said);
}

/* One column of one table gets one value, in all rows or where it is largest. */
static void damage_a_value(struct wg_rng *rng, const char *path)
{
    static const char *const integers[] = {
        "-1",      "0",          "1",          "3",       "65",
        "1000001", "2147483648", "4294967296", "1 << 62", "0x7fffffffffffffff"};
    static const char *const reals[] = {"-1.0",   "0.0",   "1e-300", "1e300",
                                        "-1e300", "9e999", "NULL"};
    static const char *const texts[] = {"''",
                                        "'energy'",
                                        "'x'",
                                        "hex(zeroblob(90))",
                                        "CAST(x'ff41' AS TEXT)",
                                        "'a' || char(10, 27)"};
    sqlite3 *db = NULL;
    sqlite3_stmt *columns = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    static const char count_them[] =
        "SELECT count(*) FROM sqlite_schema m, pragma_table_info(m.name) p WHERE m.type = 'table' "
        "AND m.name NOT LIKE 'sqlite%'";
    static const char find_one[] =
        "SELECT m.name, p.name, p.type FROM sqlite_schema m, pragma_table_info(m.name) p WHERE "
        "m.type = 'table' AND m.name NOT LIKE 'sqlite%' ORDER BY 1, 2 LIMIT 1 OFFSET ?";
    assert_int_equal(sqlite3_prepare_v2(db, count_them, -1, &columns, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(columns), SQLITE_ROW);
    const uint32_t count = (uint32_t)sqlite3_column_int(columns, 0);
    assert_int_equal(sqlite3_finalize(columns), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, find_one, -1, &columns, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_bind_int64(columns, 1, wg__rng_below(rng, count)), SQLITE_OK);
    assert_int_equal(sqlite3_step(columns), SQLITE_ROW);
    char table[NAME_BYTES], column[NAME_BYTES], sql[512];
    (void)snprintf(table, sizeof table, "%s", (const char *)sqlite3_column_text(columns, 0));
    (void)snprintf(column, sizeof column, "%s", (const char *)sqlite3_column_text(columns, 1));
    const char type = (char)sqlite3_column_text(columns, 2)[0];
    assert_int_equal(sqlite3_finalize(columns), SQLITE_OK);
    const char *value = type == 'I'   ? integers[wg__rng_below(rng, 10)]
                        : type == 'R' ? reals[wg__rng_below(rng, 7)]
                        : type == 'T' ? texts[wg__rng_below(rng, 6)]
                                      : "randomblob(60)";
    int at = snprintf(sql, sizeof sql, "UPDATE OR IGNORE %s SET %s = %s", table, column, value);
    if (wg__rng_below(rng, 2) == 0)
        (void)snprintf(sql + at, sizeof sql - (size_t)at, " WHERE %s = (SELECT max(%s) FROM %s)",
                       column, column, table);
    run_sql(db, sql);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void survive_damage(const char *policy, uint64_t seed, unsigned times)
{
    struct job_stage stage;
    struct wg_rng rng;
    char good_path[512], path[512], side[520];
    wg__rng_init(&rng, seed);
    job_stage_open(&stage, policy);
    live_through(&stage);
    (void)snprintf(good_path, sizeof good_path, "%s", scratch_path(&stage.scratch, "jobs.db"));
    (void)snprintf(path, sizeof path, "%s", scratch_path(&stage.scratch, "bad.db"));
    wg__store_close(stage.store);
    stage.store = NULL;
    size_t good_length = 0;
    char *good = scratch_read(good_path, &good_length);
    char *bad = malloc(good_length);
    assert_non_null(bad);
    for (unsigned i = 0; i < times; i++) {
        size_t length = good_length;
        memcpy(bad, good, good_length);
        if (i % 2 == 0)
            damage_bytes(&rng, bad, &length);
        scratch_write(path, bad, length);
        (void)snprintf(side, sizeof side, "%s-wal", path);
        scratch_write(side, "", 0);
        if (i % 2 == 1)
            damage_a_value(&rng, path);
        interrogate(path, stage.now_s);
    }
    free(bad);
    free(good);
    job_stage_close(&stage);
}

static void every_policy_survives_a_damaged_store(void **state)
{
    (void)state;
    survive_damage("wattgov", 1, 120);
    survive_damage("zeus", 2, 60);
    survive_damage("grid", 3, 60);
}

static void a_value_that_cannot_be_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *sql, *named;
    } cases[] = {{"DELETE FROM batch_sizes", "the batch sizes of job 'job' cannot be read"},
                 {"UPDATE jobs SET default_batch = 17", "the batch sizes of job 'job'"},
                 {"UPDATE batch_sizes SET batch_size = -8 WHERE batch_size = 8", "'batch_size'"},
                 {"UPDATE jobs SET max_epochs = 0", "job 1 has no 'max_epochs' that could be"},
                 {"UPDATE jobs SET objective = 'a' || char(10)", "'objective'"},
                 {"UPDATE jobs SET target = 9e999", "'target'"},
                 {"UPDATE runs SET state = 7 WHERE id = 3", "run 3 has no 'state' that could be"},
                 {"UPDATE runs SET cost_j = -1 WHERE id = 3", "'cost_j'"},
                 {"UPDATE runs SET epochs = NULL WHERE id = 1", "makes no sense"},
                 {"DELETE FROM facts WHERE number = 9", "fact 9 is missing"},
                 {"UPDATE gpus SET model = CAST(x'ff' AS TEXT)", "'model'"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job_stage stage;
        struct wg_error err = {0};
        struct wg_job_order order;
        sqlite3 *db = NULL;
        job_stage_open(&stage, "wattgov");
        live_through(&stage);
        assert_int_equal(sqlite3_open(scratch_path(&stage.scratch, "jobs.db"), &db), SQLITE_OK);
        run_sql(db, "DELETE FROM snapshots");
        run_sql(db, cases[i].sql);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        const struct wg_job_request request = job_stage_request(&stage);
        assert_int_equal(wg__job_next(stage.store, "job", &request, &order, &err), WG_EDATA);
        if (strstr(err.text, "is damaged: ") == NULL || strstr(err.text, cases[i].named) == NULL)
            fail_msg("%s: %s", cases[i].sql, err.text);
        job_stage_close(&stage);
    }
}

static void a_snapshot_of_facts_that_were_lost_is_left_out(void **state)
{
    (void)state;
    struct job_stage stage;
    struct wg_error err = {0};
    struct wg_job_policy *policy = NULL;
    sqlite3 *db = NULL;
    job_stage_open(&stage, "wattgov");
    live_through(&stage);
    assert_int_equal(wg__job_policy_open(&policy, stage.store, &stage.job, false, &err), WG_OK);
    assert_int_equal(policy->replayed, 0);
    const uint64_t last = policy->last_fact;
    wg__job_policy_free(policy);
    assert_int_equal(sqlite3_open(scratch_path(&stage.scratch, "jobs.db"), &db), SQLITE_OK);
    run_sql(db, "DELETE FROM facts WHERE number > 20");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(wg__job_policy_open(&policy, stage.store, &stage.job, false, &err), WG_OK);
    assert_true(last > 20);
    assert_int_equal(policy->replayed, 20);
    assert_int_equal(policy->last_fact, 20);
    wg__job_policy_free(policy);
    job_stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_survives_a_damaged_store),
        cmocka_unit_test(a_value_that_cannot_be_is_named),
        cmocka_unit_test(a_snapshot_of_facts_that_were_lost_is_left_out),
    };
    return run_tests(tests);
}
