/* SPDX-License-Identifier: MIT
 *
 * What only the SQLite store has: its schemas, and what the disk does to it.
 */
#include "store/sqlite.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "support/scratch.h"
#include "support/store_suite.h"

static struct wg_store *open_at(const char *path, unsigned max_pages)
{
    struct wg_store *store = NULL;
    struct wg_error err = {0};
    const struct wg_store_opts opts = {.path = path, .max_pages = max_pages};
    if (wg__store_open(&store, &opts, &err) != WG_OK)
        fail_msg("%s", err.text);
    return store;
}

/* A store as the first schema had it, with a job that has run once. */
static void make_first(const char *path)
{
    struct wg_sqlite *old = NULL;
    struct wg_error err = {0};
    const struct wg_store_opts opts = {.path = path, .patience_s = 1};
    assert_int_equal(wg__sqlite_connect(&old, &opts, &err), WG_OK);
    if (wg__sqlite_migrate_to(old, 1, &err) != WG_OK)
        fail_msg("%s", err.text);
    static const char rows[] =
        "INSERT INTO jobs VALUES(1,'old',1700000000.0,16,'acc',1,0.8,20,'energy',NULL,'wattgov',"
        "'sgd',NULL,0,3600.0,7,1);"
        "INSERT INTO batch_sizes VALUES(1,8),(1,16);"
        "INSERT INTO gpus VALUES(1,'V100',4);"
        "INSERT INTO runs VALUES(1,1,0,0,0,0,16,-1,1,1,1000.0,'h',9,1700000001.0,3600.0,"
        "1700003601.0,5,0.81,NULL,NULL,NULL,1,1700000500.0,5.0,1000.0,100.0,1000.0,NULL);"
        "INSERT INTO facts VALUES(1,1,0,1,NULL,NULL),(1,2,3,1,NULL,NULL);"
        "INSERT INTO retries VALUES(1,0);";
    char *said = NULL;
    if (sqlite3_exec(old->db, rows, NULL, NULL, &said) != SQLITE_OK)
        fail_msg("%s", said);
    old->base.ops->close(&old->base);
}

static void brings_the_first_schema_to_the_present_one(void **state)
{
    (void)state;
    struct scratch scratch;
    char path[512];
    scratch_open(&scratch);
    (void)snprintf(path, sizeof path, "%s", scratch_path(&scratch, "jobs.db"));
    make_first(path);
    struct wg_store *store = open_at(path, 0);
    struct wg_store_job job;
    struct wg_store_run run;
    STORE_OK(store->ops->job_get(store, "old", &job, err));
    assert_true(job.batch_count == 2 && job.seed == 7 && isnan(job.learning_rate));
    STORE_OK(store->ops->run_get(store, job.id, 1, &run, err));
    assert_true(run.state == WG_RUN_REACHED && run.energy_j == 1000 && run.gpu_count == 4);
    assert_true(isnan(run.steps_per_epoch) && isnan(run.saved_j) && isnan(run.saved_sd_j));
    assert_int_equal(suite_read_facts(store, job.id, 0).count, 2);
    /* What came with later schemas works. */
    STORE_OK(store->ops->snapshot_put(store, job.id, 2, "v", "x", 1, err));
    const struct wg_store_profile_key key = {"o", "V100", 4, "power_limit", 16};
    const struct wg_store_point point = {.setting = 100};
    STORE_OK(store->ops->profile_put(store, &key, 1, &point, 1, err));
    wg__store_close(store);
    store = open_at(path, 0); /* once more: nothing is left to do */
    assert_int_equal(suite_read_facts(store, job.id, 0).count, 2);
    wg__store_close(store);
    scratch_close(&scratch);
}

static void a_copy_of_the_file_alone_is_whole_once_nobody_has_it_open(void **state)
{
    (void)state;
    struct scratch scratch;
    char path[512], log[520], copy[512];
    scratch_open(&scratch);
    (void)snprintf(path, sizeof path, "%s", scratch_path(&scratch, "jobs.db"));
    (void)snprintf(log, sizeof log, "%s-wal", path);
    (void)snprintf(copy, sizeof copy, "%s", scratch_path(&scratch, "copy.db"));
    for (uint64_t n = 0; n < 3; n++) {
        struct wg_store *store = open_at(path, 0);
        struct wg_store_job job;
        if (n == 0)
            job = suite_add_job(store, "job");
        else
            STORE_OK(store->ops->job_get(store, "job", &job, err));
        (void)suite_add_run(store, &job, n);
        wg__store_close(store);
        struct stat left;
        assert_int_equal(stat(log, &left), 0); /* it waits for the next process */
        assert_int_equal(left.st_size, 0);
        size_t length = 0;
        char *bytes = scratch_read(path, &length);
        scratch_write(copy, bytes, length);
        free(bytes);
        struct wg_store *other = open_at(copy, 0);
        STORE_OK(other->ops->job_get(other, "job", &job, err));
        assert_int_equal(suite_read_facts(other, job.id, 0).count, n + 1);
        wg__store_close(other);
    }
    scratch_close(&scratch);
}

static void refuses_a_newer_schema_and_other_files(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_store *store = NULL;
    struct wg_error err;
    scratch_open(&scratch);
    const struct wg_store_opts opts = {.path = scratch_path(&scratch, "jobs.db")};
    wg__store_close(open_at(opts.path, 0));
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(opts.path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 1000", NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
    assert_int_equal(wg__store_open(&store, &opts, &err), WG_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "has schema 1000"));
    assert_int_equal(unlink(opts.path), 0);
    scratch_write(opts.path, "this is no database, whoever looks at it for how long", 52);
    assert_int_equal(wg__store_open(&store, &opts, &err), WG_EDATA);
    assert_non_null(strstr(err.text, "is no store of jobs"));
    assert_null(store);
    scratch_close(&scratch);
}

static void a_full_disk_loses_nothing_and_can_be_mended(void **state)
{
    (void)state;
    struct scratch scratch;
    char path[512];
    scratch_open(&scratch);
    (void)snprintf(path, sizeof path, "%s", scratch_path(&scratch, "jobs.db"));
    struct wg_store *store = open_at(path, 0);
    const struct wg_store_job job = suite_add_job(store, "job");
    wg__store_close(store);
    store = open_at(path, 30);
    size_t kept = 0;
    struct wg_error full = {0};
    for (;;) {
        struct wg_store_run run = suite_run(&job, kept);
        STORE_OK(store->ops->begin(store, true, err));
        enum wg_code code = store->ops->run_add(store, &run, &full);
        if (code == WG_OK)
            code = store->ops->commit(store, &full);
        else
            store->ops->rollback(store);
        if (code != WG_OK)
            break;
        kept++;
        assert_true(kept < 10000);
    }
    assert_int_equal(full.code, WG_EIO);
    assert_non_null(strstr(full.text, "the disk is full; nothing was written"));
    assert_true(kept > 10);
    wg__store_close(store);
    store = open_at(path, 0);
    struct wg_store_run last;
    size_t open = 0;
    STORE_OK(store->ops->run_open(store, job.id, &last, 0, &open, err));
    assert_int_equal(open, kept);
    (void)suite_add_run(store, &job, kept);
    wg__store_close(store);
    scratch_close(&scratch);
}

static struct wg_store *open_to_read(const char *path)
{
    struct wg_store *store = NULL;
    struct wg_error err = {0};
    const struct wg_store_opts opts = {.path = path, .reads_only = true};
    if (wg__store_open(&store, &opts, &err) != WG_OK)
        fail_msg("%s", err.text);
    return store;
}

static void a_reader_sees_what_is_there_and_cannot_write(void **state)
{
    (void)state;
    static const char *const names[] = {"jobs.db", "a b.db", "50%.db", "what?x=1#y.db", "/j.db"};
    struct scratch scratch;
    char path[520];
    scratch_open(&scratch);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct wg_error refused = {0};
        (void)snprintf(path, sizeof path, "%s%s", i == 4 ? "/" : "",
                       scratch_path(&scratch, names[i]));
        struct wg_store *store = open_at(path, 0);
        struct wg_store_job job = suite_add_job(store, "job"), found;
        struct wg_store *reader = open_to_read(path); /* while the other has it open */
        STORE_OK(reader->ops->begin(reader, false, err));
        STORE_OK(reader->ops->job_get(reader, "job", &found, err));
        same_job(&found, &job);
        reader->ops->rollback(reader);
        wg__store_close(store);
        (void)snprintf(job.name, sizeof job.name, "other");
        assert_int_not_equal(reader->ops->job_add(reader, &job, &refused), WG_OK);
        wg__store_close(reader);
    }
    scratch_close(&scratch);
}

static void a_reader_brings_an_older_store_to_the_present_schema(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    char path[512];
    (void)snprintf(path, sizeof path, "%s", scratch_path(&scratch, "jobs.db"));
    make_first(path);
    struct wg_store *store = open_to_read(path);
    struct wg_store_job job;
    struct wg_store_run run;
    STORE_OK(store->ops->job_get(store, "old", &job, err));
    STORE_OK(store->ops->run_get(store, job.id, 1, &run, err));
    wg__store_close(store);
    scratch_close(&scratch);
}

static void says_why_a_path_cannot_be_used(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_store *store = NULL;
    struct wg_error err;
    char loop[512], deep[2048], endless[8000];
    scratch_open(&scratch);
    (void)snprintf(loop, sizeof loop, "%s", scratch_path(&scratch, "loop"));
    assert_int_equal(symlink("loop", loop), 0);
    int at = snprintf(deep, sizeof deep, "%s", scratch.folder);
    for (unsigned i = 0; i < 4; i++) {
        at += snprintf(deep + at, sizeof deep - (size_t)at, "/%0150d", 0);
        assert_int_equal(mkdir(deep, 0700), 0);
    }
    (void)snprintf(deep + at, sizeof deep - (size_t)at, "/j.db");
    memset(endless, 'x', sizeof endless - 1);
    endless[0] = '/';
    endless[sizeof endless - 1] = '\0';
    const struct {
        const char *path, *words;
    } cases[] = {{loop, "Too many levels of symbolic links"},
                 {deep, "bytes, and SQLite takes 512 at most"},
                 {endless, "has 7999 bytes, and SQLite takes"},
                 {"/nonexistent/j.db", "No such file"},
                 {"/dev/null", "no regular file"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct wg_store_opts opts = {.path = cases[i].path};
        const enum wg_code code = wg__store_open(&store, &opts, &err);
        if (code == WG_OK || strstr(err.text, cases[i].words) == NULL)
            fail_msg("%zu: %s", i, err.text);
        assert_null(strstr(err.text, "no job was created"));
    }
    for (unsigned i = 4; i-- > 0;) {
        *strrchr(deep, '/') = '\0';
        assert_int_equal(rmdir(deep), 0);
    }
    scratch_close(&scratch);
}

/* Adds runs and ends them until it is killed; says each as soon as it is acknowledged. */
static void write_until_killed(const char *path, const struct wg_store_job *job, int fd)
{
    struct wg_store *store = open_at(path, 0);
    struct wg_error err;
    for (uint64_t i = 0;; i++) {
        struct wg_store_run run = suite_run(job, i);
        if (store->ops->begin(store, true, &err) != WG_OK ||
            store->ops->run_add(store, &run, &err) != WG_OK ||
            store->ops->run_epoch(store, run.id, 1, 0.5, &err) != WG_OK)
            break;
        run.state = WG_RUN_REACHED;
        run.cost_j = (double)run.id;
        if (store->ops->run_end(store, &run, &err) != WG_OK ||
            store->ops->commit(store, &err) != WG_OK ||
            write(fd, &run.id, sizeof run.id) != (ssize_t)sizeof run.id)
            break;
    }
    _exit(1);
}

static void killing_a_writer_at_any_statement_loses_nothing(void **state)
{
    (void)state;
    enum { KILLS = 40 };
    struct scratch scratch;
    struct wg_rng rng;
    char path[512];
    int64_t last = 0;
    wg__rng_init(&rng, 7);
    scratch_open(&scratch);
    (void)snprintf(path, sizeof path, "%s", scratch_path(&scratch, "jobs.db"));
    struct wg_store *store = open_at(path, 0);
    const struct wg_store_job job = suite_add_job(store, "job");
    wg__store_close(store);
    for (unsigned kill_number = 0; kill_number < KILLS; kill_number++) {
        int fds[2];
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            write_until_killed(path, &job, fds[1]);
        (void)close(fds[1]);
        /* After so many acknowledgements, and then at once: in the midst of the next one. */
        int64_t id = 0;
        for (unsigned after = wg__rng_below(&rng, 8); after > 0; after--)
            assert_int_equal(read(fds[0], &id, sizeof id), sizeof id);
        for (volatile unsigned spin = wg__rng_below(&rng, 400000); spin > 0; spin--)
            ;
        assert_int_equal(kill(child, SIGKILL), 0);
        while (read(fds[0], &last, sizeof last) == (ssize_t)sizeof last)
            id = last;
        (void)close(fds[0]);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        store = open_at(path, 0);
        struct wg_store_run run;
        for (int64_t i = 1; i <= id; i++) {
            STORE_OK(store->ops->run_get(store, job.id, i, &run, err));
            assert_true(run.state == WG_RUN_REACHED && run.cost_j == (double)i);
        }
        size_t open = 0;
        STORE_OK(store->ops->run_open(store, job.id, &run, 0, &open, err));
        assert_int_equal(open, 0); /* a transaction is there whole or not at all */
        wg__store_close(store);
    }
    scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brings_the_first_schema_to_the_present_one),
        cmocka_unit_test(a_copy_of_the_file_alone_is_whole_once_nobody_has_it_open),
        cmocka_unit_test(refuses_a_newer_schema_and_other_files),
        cmocka_unit_test(a_reader_sees_what_is_there_and_cannot_write),
        cmocka_unit_test(a_reader_brings_an_older_store_to_the_present_schema),
        cmocka_unit_test(says_why_a_path_cannot_be_used),
        cmocka_unit_test(a_full_disk_loses_nothing_and_can_be_mended),
        cmocka_unit_test(killing_a_writer_at_any_statement_loses_nothing),
    };
    return run_tests(tests);
}
