/* SPDX-License-Identifier: MIT
 *
 * What a served model had: kept for whoever claims it next, and one claims it at a time.
 */
#include "live/server_original.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/scratch.h"

static const char server[] = "http://127.0.0.1:8000";

static int make_folder(void **state)
{
    static struct scratch scratch;
    scratch_open(&scratch);
    *state = &scratch;
    return setenv("WATTGOV_STATE_DIR", scratch.folder, 1);
}

static int remove_folder(void **state)
{
    struct scratch servers; /* the locks */
    const int length = snprintf(servers.folder, sizeof servers.folder, "%s/servers",
                                ((const struct scratch *)*state)->folder);
    scratch_require(length > 0 && (size_t)length < sizeof servers.folder, "a path");
    scratch_close(&servers);
    scratch_close(*state);
    return 0;
}

/* The code of a claim by another process. */
static int claim_elsewhere(const char *of, const char *model)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct wg_server_claim claim;
        struct wg_error err;
        const enum wg_code code = wg__server_claim(&claim, of, model, &err);
        char holder[32];
        (void)snprintf(holder, sizeof holder, "(pid %ld)", (long)getppid());
        _exit(code == WG_EBUSY && strstr(err.text, holder) == NULL ? 99 : -(int)code);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return -WEXITSTATUS(status);
}

static void one_process_at_a_time_claims_a_model(void **state)
{
    (void)state;
    struct wg_server_claim claim;
    assert_int_equal(wg__server_claim(&claim, server, "m", NULL), WG_OK);
    assert_int_equal(claim_elsewhere(server, "m"), WG_EBUSY);
    assert_int_equal(claim_elsewhere(server, "n"), WG_OK);
    assert_int_equal(claim_elsewhere("http://127.0.0.1:800", "0m"), WG_OK);
    wg__server_unclaim(&claim);
    assert_int_equal(claim_elsewhere(server, "m"), WG_OK);
}

static void what_it_had_is_there_until_it_has_it_again(void **state)
{
    (void)state;
    static const char *const configs[] = {"{\"name\":\"m\", \"a\":\"\\u00e4\\\"\"}", NULL};
    for (size_t i = 0; i < 2; i++) {
        struct wg_server_claim claim, next;
        bool is_there = true;
        char *config = NULL;
        assert_int_equal(wg__server_claim(&claim, server, "m", NULL), WG_OK);
        assert_int_equal(wg__server_original_read(&claim, server, "m", &is_there, &config, NULL),
                         WG_OK);
        assert_false(is_there);
        assert_int_equal(wg__server_original_write(&claim, server, "m", configs[i], NULL), WG_OK);
        wg__server_unclaim(&claim); /* as the kernel does it for who is killed */
        assert_int_equal(wg__server_claim(&next, server, "m", NULL), WG_OK);
        assert_int_equal(wg__server_original_read(&next, server, "m", &is_there, &config, NULL),
                         WG_OK);
        assert_true(is_there);
        if (configs[i] != NULL)
            assert_string_equal(config, configs[i]);
        else
            assert_null(config);
        wg__free(config);
        wg__server_original_remove(&next);
        assert_int_equal(wg__server_original_read(&next, server, "m", &is_there, &config, NULL),
                         WG_OK);
        assert_false(is_there);
        wg__server_unclaim(&next);
    }
}

static void a_file_that_is_something_else_is_no_configuration(void **state)
{
    (void)state;
    struct wg_server_claim claim;
    struct wg_error err;
    bool is_there = true;
    char *config = NULL;
    assert_int_equal(wg__server_claim(&claim, server, "m", NULL), WG_OK);
    static const char torn[] = "{\"server\": \"http://127.0.0.1:8000\", \"mod";
    scratch_write(claim.path, torn, sizeof torn - 1);
    assert_int_equal(wg__server_original_read(&claim, server, "m", &is_there, &config, &err),
                     WG_EDATA);
    assert_non_null(strstr(err.text, "as an earlier run kept it"));
    /* Of another model whose hash is the same: not of this one. */
    assert_int_equal(wg__server_original_write(&claim, server, "other", "{}", NULL), WG_OK);
    assert_int_equal(wg__server_original_read(&claim, server, "m", &is_there, &config, NULL),
                     WG_OK);
    assert_false(is_there);
    assert_null(config);
    wg__server_original_remove(&claim);
    wg__server_unclaim(&claim);
}

static void a_folder_that_cannot_be_is_told(void **state)
{
    struct wg_server_claim claim;
    struct wg_error err;
    assert_int_equal(setenv("WATTGOV_STATE_DIR", "/proc/nowhere", 1), 0);
    assert_int_not_equal(wg__server_claim(&claim, server, "m", &err), WG_OK);
    assert_non_null(strstr(err.text, "set WATTGOV_STATE_DIR"));
    assert_int_equal(claim.fd, -1);
    const struct scratch *scratch = *state;
    assert_int_equal(setenv("WATTGOV_STATE_DIR", scratch->folder, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_process_at_a_time_claims_a_model),
        cmocka_unit_test(what_it_had_is_there_until_it_has_it_again),
        cmocka_unit_test(a_file_that_is_something_else_is_no_configuration),
        cmocka_unit_test(a_folder_that_cannot_be_is_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder) != 0;
}
