/* SPDX-License-Identifier: MIT
 *
 * Files of the kernel: what is read, and what each failure says.
 */
#include "device/sysfs.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/tree.h"

static void reads_text_without_the_last_newline(void **state)
{
    (void)state;
    static const struct tree_entry entries[] = {
        {.path = "/sys/name", .text = "package-0\n"},
        {.path = "/sys/lines", .text = "0: 500Mhz\n1: 800Mhz *\n"},
        {.path = "/sys/empty", .text = ""},
    };
    struct tree tree;
    tree_open(&tree);
    TREE_ADD(&tree, entries);
    char text[64];
    assert_int_equal(wg__sysfs_text(tree.root, "/sys/name", text, sizeof text, NULL), WG_OK);
    assert_string_equal(text, "package-0");
    assert_int_equal(wg__sysfs_text(tree.root, "/sys/lines", text, sizeof text, NULL), WG_OK);
    assert_string_equal(text, "0: 500Mhz\n1: 800Mhz *");
    assert_int_equal(wg__sysfs_text(tree.root, "/sys/empty", text, sizeof text, NULL), WG_OK);
    assert_string_equal(text, "");
    tree_close(&tree);
}

static void reads_numbers_and_refuses_all_else(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_uint, is_int;
        uint64_t as_uint;
        int64_t as_int;
    } cases[] = {
        {"0\n", true, true, 0, 0},
        {"262143328850\n", true, true, 262143328850, 262143328850},
        {"42", true, true, 42, 42},
        {"42  \n", true, true, 42, 42},
        {"18446744073709551615\n", true, false, UINT64_MAX, 0},
        {"-5000\n", false, true, 0, -5000},
        {"-9223372036854775808\n", false, true, 0, INT64_MIN},
        {"9223372036854775807\n", true, true, INT64_MAX, INT64_MAX},
        {"-9223372036854775809\n", false, false, 0, 0},
        {"18446744073709551616\n", false, false, 0, 0},
        {"", false, false, 0, 0},
        {"\n", false, false, 0, 0},
        {"-\n", false, false, 0, 0},
        {"--1\n", false, false, 0, 0},
        {"0x10\n", false, false, 0, 0},
        {"12 34\n", false, false, 0, 0},
        {"1.5\n", false, false, 0, 0},
        {"N/A\n", false, false, 0, 0},
    };
    struct tree tree;
    tree_open(&tree);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tree_set(&tree, "/n", cases[i].text);
        struct wg_sysfs_file file;
        struct wg_error err;
        assert_int_equal(wg__sysfs_open(&file, tree.root, "/n", &err), WG_OK);
        uint64_t as_uint = 7;
        int64_t as_int = 7;
        const enum wg_code uint_code = wg__sysfs_read_uint(&file, &as_uint, &err);
        assert_int_equal(uint_code, cases[i].is_uint ? WG_OK : WG_EDATA);
        assert_true(as_uint == (cases[i].is_uint ? cases[i].as_uint : 7));
        if (uint_code != WG_OK)
            assert_non_null(strstr(err.text, "/n: '"));
        assert_int_equal(wg__sysfs_read_int(&file, &as_int, &err),
                         cases[i].is_int ? WG_OK : WG_EDATA);
        assert_true(as_int == (cases[i].is_int ? cases[i].as_int : 7));
        wg__sysfs_close(&file);
        uint64_t once = 7;
        assert_int_equal(wg__sysfs_uint(tree.root, "/n", &once, NULL), uint_code);
        assert_true(once == as_uint);
    }
    tree_close(&tree);
}

static void an_open_file_shows_each_new_value(void **state)
{
    (void)state;
    struct tree tree;
    tree_open(&tree);
    tree_set(&tree, "/energy_uj", "99999\n");
    struct wg_sysfs_file file;
    assert_int_equal(wg__sysfs_open(&file, tree.root, "/energy_uj", NULL), WG_OK);
    uint64_t value = 0;
    assert_int_equal(wg__sysfs_read_uint(&file, &value, NULL), WG_OK);
    assert_int_equal(value, 99999);
    tree_set(&tree, "/energy_uj", "7\n");
    assert_int_equal(wg__sysfs_read_uint(&file, &value, NULL), WG_OK);
    assert_int_equal(value, 7);
    unsigned char bytes[8];
    size_t length = 0;
    assert_int_equal(wg__sysfs_read_bytes(&file, bytes, sizeof bytes, &length, NULL), WG_OK);
    assert_int_equal(length, 2);
    assert_memory_equal(bytes, "7\n", 2);
    wg__sysfs_close(&file);
    wg__sysfs_close(&file);
    wg__sysfs_close(NULL);
    struct wg_error err;
    assert_int_equal(wg__sysfs_read_uint(&file, &value, &err), WG_ESTATE);
    tree_close(&tree);
}

static void each_failure_names_the_file_without_the_root(void **state)
{
    (void)state;
    static const struct tree_entry entries[] = {
        {.path = "/sys/secret", .text = "17\n", .mode = 0400},
        {.path = "/sys/folder"},
        {.path = "/sys/long",
         .text = "0123456789012345678901234567890123456789"
                 "0123456789012345678901234567890123456789\n"},
    };
    struct tree tree;
    tree_open(&tree);
    TREE_ADD(&tree, entries);
    char text[16];
    uint64_t number = 0;
    struct wg_error err;
    assert_int_equal(wg__sysfs_text(tree.root, "/sys/none", text, sizeof text, &err), WG_ENOENT);
    assert_string_equal(err.text, "opening /sys/none: No such file or directory");
    assert_int_equal(wg__sysfs_uint(tree.root, "/sys/folder", &number, &err), WG_EIO);
    assert_string_equal(err.text, "reading /sys/folder: Is a directory");
    assert_int_equal(wg__sysfs_text(tree.root, "/sys/long", text, sizeof text, &err), WG_EDATA);
    assert_string_equal(err.text, "/sys/long: longer than 15 bytes");
    assert_int_equal(wg__sysfs_uint(tree.root, "/sys/long", &number, &err), WG_EDATA);
    tree_drop_rights();
    const enum wg_code code = wg__sysfs_uint(tree.root, "/sys/secret", &number, &err);
    tree_regain_rights();
    assert_int_equal(code, WG_EPERM);
    assert_string_equal(err.text, "opening /sys/secret: Permission denied");
    char path[WG_SYSFS_PATH_MAX + 8];
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    assert_int_equal(wg__sysfs_uint(tree.root, path, &number, &err), WG_EINVAL);
    assert_false(wg__sysfs_exists(tree.root, path));
    assert_false(wg__sysfs_is_writable(tree.root, path));
    tree_close(&tree);
}

static void lists_names_with_their_numbers_in_order(void **state)
{
    (void)state;
    static const struct tree_entry entries[] = {
        {.path = "/c/intel-rapl:10"},  {.path = "/c/intel-rapl:2"}, {.path = "/c/intel-rapl:2:10"},
        {.path = "/c/intel-rapl:2:9"}, {.path = "/c/intel-rapl"},   {.path = "/c/.hidden"},
        {.path = "/c/other"},
    };
    struct tree tree;
    tree_open(&tree);
    TREE_ADD(&tree, entries);
    struct wg_arena arena;
    wg__arena_init(&arena);
    const char *const *names = NULL;
    size_t count = 0;
    assert_int_equal(wg__sysfs_list(tree.root, "/c", "intel-rapl", &arena, &names, &count, NULL),
                     WG_OK);
    static const char *const expected[] = {"intel-rapl", "intel-rapl:2", "intel-rapl:2:9",
                                           "intel-rapl:2:10", "intel-rapl:10"};
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(names[i], expected[i]);
    assert_int_equal(wg__sysfs_list(tree.root, "/c", "", &arena, &names, &count, NULL), WG_OK);
    assert_int_equal(count, 6);
    assert_int_equal(wg__sysfs_list(tree.root, "/none", "", &arena, &names, &count, NULL), WG_OK);
    assert_int_equal(count, 0);
    wg__arena_fini(&arena);
    tree_close(&tree);
}

static void a_folder_that_may_not_be_listed_is_an_error(void **state)
{
    (void)state;
    static const struct tree_entry entries[] = {{.path = "/debug"}};
    struct tree tree;
    tree_open(&tree);
    TREE_ADD(&tree, entries);
    assert_int_equal(chmod(tree_path(&tree, "/debug"), 0700), 0);
    struct wg_arena arena;
    wg__arena_init(&arena);
    const char *const *names = NULL;
    size_t count = 0;
    struct wg_error err = {0};
    if (geteuid() != 0)
        assert_int_equal(chmod(tree_path(&tree, "/debug"), 0), 0);
    tree_drop_rights();
    const enum wg_code code = wg__sysfs_list(tree.root, "/debug", "", &arena, &names, &count, &err);
    tree_regain_rights();
    assert_int_equal(chmod(tree_path(&tree, "/debug"), 0700), 0);
    assert_int_equal(code, WG_EPERM);
    assert_string_equal(err.text, "listing /debug: Permission denied");
    wg__arena_fini(&arena);
    tree_close(&tree);
}

static void a_listing_survives_that_memory_runs_out(void **state)
{
    (void)state;
    struct tree tree;
    tree_open(&tree);
    for (int i = 0; i < 200; i++) { /* more than one block of the arena */
        char path[64];
        (void)snprintf(path, sizeof path, "/c/a-name-of-some-length-%d", i);
        tree_add_entry(&tree, &(struct tree_entry){.path = path, .text = ""});
    }
    enum wg_code code = WG_ENOMEM;
    size_t nth = 1;
    for (; code == WG_ENOMEM && nth < 100; nth++) {
        struct wg_arena arena;
        wg__arena_init(&arena);
        const char *const *names = NULL;
        size_t count = 0;
        struct wg_error err;
        wg__alloc_fail_from(nth);
        code = wg__sysfs_list(tree.root, "/c", "", &arena, &names, &count, &err);
        wg__alloc_fail_from(0);
        if (code == WG_ENOMEM)
            assert_string_equal(err.text, "listing /c: out of memory");
        else
            assert_int_equal(count, 200);
        wg__arena_fini(&arena);
    }
    assert_int_equal(code, WG_OK);
    assert_true(nth > 2);
    struct wg_arena arena;
    wg__arena_init(&arena);
    wg__alloc_fail_from(1);
    assert_null(wg__sysfs_path(&arena, "/sys/%d", 1));
    wg__alloc_fail_from(0);
    wg__arena_fini(&arena);
    tree_close(&tree);
}

static void tells_what_may_be_written(void **state)
{
    (void)state;
    static const struct tree_entry entries[] = {
        {.path = "/sys/all", .text = "", .mode = 0666},
        {.path = "/sys/owner", .text = "", .mode = 0644},
        {.path = "/sys/none", .text = "", .mode = 0444},
        {.path = "/sys/folder"},
    };
    struct tree tree;
    tree_open(&tree);
    TREE_ADD(&tree, entries);
    assert_true(wg__sysfs_exists(tree.root, "/sys/none"));
    assert_false(wg__sysfs_exists(tree.root, "/sys/nowhere"));
    assert_true(wg__sysfs_is_writable(tree.root, "/sys/owner"));
    assert_false(wg__sysfs_is_writable(tree.root, "/sys/none"));
    assert_false(wg__sysfs_is_writable(tree.root, "/sys/folder"));
    assert_false(wg__sysfs_is_writable(tree.root, "/sys/nowhere"));
    if (getuid() == 0) { /* the owner of the tree is another one then */
        tree_drop_rights();
        const bool all = wg__sysfs_is_writable(tree.root, "/sys/all");
        const bool owner = wg__sysfs_is_writable(tree.root, "/sys/owner");
        tree_regain_rights();
        assert_true(all);
        assert_false(owner);
    }
    tree_close(&tree);
}

static void a_path_that_does_not_fit_names_no_file(void **state)
{
    (void)state;
    struct wg_arena arena;
    wg__arena_init(&arena);
    assert_string_equal(wg__sysfs_path(&arena, "/sys/%s/%d", "x", 3), "/sys/x/3");
    char name[WG_SYSFS_PATH_MAX];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_string_equal(wg__sysfs_path(&arena, "/sys/%s", name), "");
    wg__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_text_without_the_last_newline),
        cmocka_unit_test(reads_numbers_and_refuses_all_else),
        cmocka_unit_test(an_open_file_shows_each_new_value),
        cmocka_unit_test(each_failure_names_the_file_without_the_root),
        cmocka_unit_test(lists_names_with_their_numbers_in_order),
        cmocka_unit_test(a_folder_that_may_not_be_listed_is_an_error),
        cmocka_unit_test(a_listing_survives_that_memory_runs_out),
        cmocka_unit_test(tells_what_may_be_written),
        cmocka_unit_test(a_path_that_does_not_fit_names_no_file),
    };
    return run_tests(tests);
}
