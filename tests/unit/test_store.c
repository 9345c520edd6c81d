/* SPDX-License-Identifier: MIT
 *
 * The suite that every store passes, on SQLite.
 */
#include "store/store.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "support/scratch.h"
#include "support/store_suite.h"

struct stage {
    struct store_stage suite;
    struct scratch scratch;
    char path[512];
};

static struct wg_store *open_it(void *context, double patience_s)
{
    const struct stage *stage = context;
    struct wg_store *store = NULL;
    struct wg_error err;
    const struct wg_store_opts opts = {.path = stage->path, .patience_s = patience_s};
    if (wg__store_open(&store, &opts, &err) != WG_OK)
        fail_msg("%s", err.text);
    return store;
}

static int setup(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);
    scratch_require(stage != NULL, "memory");
    stage->suite = (struct store_stage){.open = open_it, .context = stage};
    scratch_open(&stage->scratch);
    (void)snprintf(stage->path, sizeof stage->path, "%s/jobs.db", stage->scratch.folder);
    *state = stage;
    return 0;
}

static int teardown(void **state)
{
    struct stage *stage = *state;
    scratch_close(&stage->scratch);
    free(stage);
    return 0;
}

static void lies_in_the_state_directory_when_nobody_names_it(void **state)
{
    struct stage *stage = *state;
    char folder[300];
    (void)snprintf(folder, sizeof folder, "%s/state", stage->scratch.folder);
    assert_int_equal(setenv("WATTGOV_STATE_DIR", folder, 1), 0);
    struct wg_store *store = NULL;
    struct wg_error err;
    const struct wg_store_opts reader = {.must_exist = true}, writer = {0};
    assert_int_equal(wg__store_open(&store, &reader, &err), WG_ENOENT);
    assert_non_null(strstr(err.text, "no job was created there yet"));
    assert_int_equal(access(folder, F_OK), -1);
    assert_int_equal(wg__store_open(&store, &writer, &err), WG_OK);
    assert_string_equal(store->ops->location(store) + strlen(folder), "/jobs.db");
    wg__store_close(store);
    assert_int_equal(wg__store_open(&store, &reader, &err), WG_OK);
    wg__store_close(store);
    static const char *const left[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        (void)snprintf(stage->path, sizeof stage->path, "%s/jobs.db%s", folder, left[i]);
        assert_int_equal(unlink(stage->path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void says_that_memory_has_run_out(void **state)
{
    const struct stage *stage = *state;
    struct wg_store *store = NULL;
    struct wg_error err;
    const struct wg_store_opts opts = {.path = stage->path};
    wg__alloc_fail_from(1);
    assert_int_equal(wg__store_open(&store, &opts, &err), WG_ENOMEM);
    wg__alloc_fail_from(0);
    assert_null(store);
}

static void names_each_state(void **state)
{
    (void)state;
    assert_string_equal(wg__run_state_name(WG_RUN_OPEN), "open");
    assert_string_equal(wg__run_state_name(WG_RUN_EXPIRED), "expired");
    assert_null(wg__run_state_name(WG_RUN_STATE_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_SUITE_TESTS(setup, teardown),
        cmocka_unit_test_setup_teardown(lies_in_the_state_directory_when_nobody_names_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(says_that_memory_has_run_out, setup, teardown),
        cmocka_unit_test(names_each_state),
    };
    return run_tests(tests);
}
