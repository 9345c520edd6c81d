/* SPDX-License-Identifier: MIT */
#include "base/state_dir.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check.h"
#include "support/scratch.h"

static void expect(const struct wg_state_places *places, const char *expected)
{
    char path[WG_STATE_DIR_MAX];
    struct wg_error err;
    assert_int_equal(wg__state_dir_choose(places, path, sizeof path, &err), WG_OK);
    assert_string_equal(path, expected);
}

static void takes_the_first_place_that_applies(void **state)
{
    (void)state;
    expect(&(struct wg_state_places){"/own", true, "/xdg", "/home/ada"}, "/own");
    expect(&(struct wg_state_places){NULL, true, "/xdg", "/home/ada"}, "/var/lib/wattgov");
    expect(&(struct wg_state_places){"", false, "/xdg", "/home/ada"}, "/xdg/wattgov");
    expect(&(struct wg_state_places){"", false, "", "/home/ada"}, "/home/ada/.local/state/wattgov");
    expect(&(struct wg_state_places){NULL, false, "relative", "/home/ada"},
           "/home/ada/.local/state/wattgov");
}

static void names_what_is_missing(void **state)
{
    (void)state;
    char path[WG_STATE_DIR_MAX] = "as before";
    struct wg_error err;
    assert_int_equal(
        wg__state_dir_choose(&(struct wg_state_places){NULL, false, NULL, NULL}, path, 64, &err),
        WG_ENOENT);
    assert_non_null(strstr(err.text, "HOME"));
    assert_int_equal(wg__state_dir_choose(&(struct wg_state_places){.own = "here"}, path, 64, &err),
                     WG_EINVAL);
    assert_non_null(strstr(err.text, "'here' is not an absolute path"));
    assert_string_equal(path, "as before");
}

static void refuses_a_path_that_does_not_fit(void **state)
{
    (void)state;
    char path[8];
    struct wg_error err;
    const struct wg_state_places fits = {.own = "/123456"}, too_long = {.own = "/1234567"};
    assert_int_equal(wg__state_dir_choose(&fits, path, sizeof path, &err), WG_OK);
    assert_int_equal(wg__state_dir_choose(&too_long, path, sizeof path, &err), WG_EINVAL);
    const struct wg_state_places joined = {.home = "/h"};
    assert_int_equal(wg__state_dir_choose(&joined, path, sizeof path, &err), WG_EINVAL);
}

static void reads_this_process(void **state)
{
    (void)state;
    char path[WG_STATE_DIR_MAX];
    assert_int_equal(setenv("WATTGOV_STATE_DIR", "/somewhere/else", 1), 0);
    assert_int_equal(wg__state_dir(path, sizeof path, NULL), WG_OK);
    assert_string_equal(path, "/somewhere/else");
    assert_int_equal(unsetenv("WATTGOV_STATE_DIR"), 0);
    assert_int_equal(setenv("XDG_STATE_HOME", "/xdg", 1), 0);
    assert_int_equal(wg__state_dir(path, sizeof path, NULL), WG_OK);
    assert_string_equal(path, geteuid() == 0 ? "/var/lib/wattgov" : "/xdg/wattgov");
}

static void makes_the_folders_that_are_missing(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_error err;
    scratch_open(&scratch);
    char deep[512], middle[512];
    (void)snprintf(middle, sizeof middle, "%s/a", scratch.folder);
    (void)snprintf(deep, sizeof deep, "%s/a/b/", scratch.folder);
    assert_int_equal(wg__state_dir_make(deep, &err), WG_OK);
    assert_int_equal(wg__state_dir_make(deep, &err), WG_OK);
    struct stat status;
    assert_int_equal(stat(deep, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_int_equal(rmdir(deep), 0);
    assert_int_equal(rmdir(middle), 0);
    scratch_close(&scratch);
}

static void says_which_folder_cannot_be_made(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_error err;
    scratch_open(&scratch);
    scratch_write(scratch_path(&scratch, "file"), "x", 1);
    char below[512];
    (void)snprintf(below, sizeof below, "%s/file/deeper", scratch.folder);
    assert_int_equal(wg__state_dir_make(below, &err), WG_EIO);
    assert_non_null(strstr(err.text, "/file': a file of this name exists"));
    assert_int_equal(wg__state_dir_make("/proc/nothing/here", &err), WG_ENOENT);
    assert_non_null(strstr(err.text, "/proc/nothing"));
    scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_first_place_that_applies),
        cmocka_unit_test(names_what_is_missing),
        cmocka_unit_test(refuses_a_path_that_does_not_fit),
        cmocka_unit_test(reads_this_process),
        cmocka_unit_test(makes_the_folders_that_are_missing),
        cmocka_unit_test(says_which_folder_cannot_be_made),
    };
    return run_tests(tests);
}
