/* SPDX-License-Identifier: MIT
 *
 * Whole files or none: replacing, permissions, links, devices, full disks.
 */
#include "base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check.h"
#include "support/scratch.h"

static void assert_content(const char *path, const char *expected)
{
    char *content = scratch_read(path, NULL);
    assert_string_equal(content, expected);
    free(content);
}

static mode_t mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 07777;
}

static void writes_a_new_file_with_the_umask(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "new.txt");
    const mode_t before = umask(0027);
    const enum wg_code code = wg__file_write(path, "hello", 5, NULL);
    (void)umask(before);
    assert_int_equal(code, WG_OK);
    assert_content(path, "hello");
    assert_int_equal(mode_of(path), 0640);
    assert_int_equal(wg__file_write(path, "", 0, NULL), WG_OK);
    assert_content(path, "");
    assert_int_equal(scratch_count(&scratch), 1);
    scratch_close(&scratch);
}

static void replacing_keeps_the_permissions(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "old.txt");
    scratch_write(path, "old and longer", 14);
    assert_int_equal(chmod(path, 0606), 0);
    assert_int_equal(wg__file_write(path, "new", 3, NULL), WG_OK);
    assert_content(path, "new");
    assert_int_equal(mode_of(path), 0606);
    scratch_close(&scratch);
}

static void a_reader_of_the_old_file_keeps_it_whole(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "f");
    scratch_write(path, "old", 3);
    FILE *reader = fopen(path, "rb");
    scratch_require(reader != NULL, path);
    assert_int_equal(wg__file_write(path, "new", 3, NULL), WG_OK);
    char text[8] = "";
    assert_int_equal(fread(text, 1, sizeof text, reader), 3);
    assert_memory_equal(text, "old", 3);
    (void)fclose(reader);
    scratch_close(&scratch);
}

static void a_symbolic_link_stays_a_link(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    char target[512];
    (void)snprintf(target, sizeof target, "%s", scratch_path(&scratch, "target"));
    scratch_write(target, "old", 3);
    const char *link = scratch_path(&scratch, "link");
    assert_int_equal(symlink("target", link), 0);
    assert_int_equal(wg__file_write(link, "new", 3, NULL), WG_OK);
    struct stat status;
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_content(target, "new");
    scratch_close(&scratch);
}

static void a_bare_name_is_written_in_the_present_folder(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(scratch.folder), 0);
    assert_int_equal(wg__file_check_writable("bare", NULL), WG_OK);
    assert_int_equal(wg__file_write("bare", "x", 1, NULL), WG_OK);
    assert_int_equal(chdir(before), 0);
    assert_content(scratch_path(&scratch, "bare"), "x");
    scratch_close(&scratch);
}

static void errors_name_path_and_cause_and_agree_with_the_check(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    static const struct {
        const char *name;
        enum wg_code code;
        const char *cause;
    } cases[] = {{"missing/f", WG_ENOENT, "No such file or directory"},
                 {"missing/", WG_ENOENT, "No such file or directory"},
                 {"file/f", WG_ENOENT, "Not a directory"},
                 {"", WG_EIO, "Is a directory"}};
    scratch_write(scratch_path(&scratch, "file"), "kept", 4);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = scratch_path(&scratch, cases[i].name);
        struct wg_error err = {0};
        assert_int_equal(wg__file_write(path, "x", 1, &err), cases[i].code);
        assert_non_null(strstr(err.text, scratch.folder));
        assert_non_null(strstr(err.text, cases[i].cause));
        struct wg_error checked = {0};
        assert_int_equal(wg__file_check_writable(path, &checked), cases[i].code);
        assert_non_null(strstr(checked.text, scratch.folder));
        assert_non_null(strstr(checked.text, cases[i].cause));
    }
    assert_content(scratch_path(&scratch, "file"), "kept");
    assert_int_equal(scratch_count(&scratch), 1);
    struct wg_error err = {0};
    assert_int_equal(wg__file_write("", "x", 1, &err), WG_EINVAL);
    assert_int_equal(wg__file_check_writable("", &err), WG_EINVAL);
    char endless[6000];
    memset(endless, 'a', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_int_equal(wg__file_write(endless, "x", 1, &err), WG_EIO);
    assert_non_null(strstr(err.text, "File name too long"));
    scratch_close(&scratch);
}

static void protected_files_and_folders_are_respected(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    char file[512];
    (void)snprintf(file, sizeof file, "%s", scratch_path(&scratch, "file"));
    scratch_write(file, "kept", 4);
    assert_int_equal(chmod(file, 0444), 0);
    /* root may do everything, so it plays somebody else for a while. */
    const bool is_root = geteuid() == 0;
    assert_int_equal(chmod(scratch.folder, is_root ? 0777 : 0700), 0);
    if (is_root)
        assert_int_equal(seteuid(65534), 0);
    struct wg_error err = {0};
    const enum wg_code on_file = wg__file_write(file, "x", 1, &err);
    const enum wg_code on_file_checked = wg__file_check_writable(file, NULL);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(scratch.folder, 0555), 0);
    if (is_root)
        assert_int_equal(seteuid(65534), 0);
    const char *path = scratch_path(&scratch, "new");
    const enum wg_code in_folder = wg__file_write(path, "x", 1, NULL);
    const enum wg_code in_folder_checked = wg__file_check_writable(path, NULL);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(scratch.folder, 0700), 0);

    assert_int_equal(on_file, WG_EPERM);
    assert_non_null(strstr(err.text, "Permission denied"));
    assert_int_equal(on_file_checked, WG_EPERM);
    assert_int_equal(in_folder, WG_EPERM);
    assert_int_equal(in_folder_checked, WG_EPERM);
    assert_content(file, "kept");
    assert_int_equal(scratch_count(&scratch), 1);
    scratch_close(&scratch);
}

static void the_check_leaves_no_trace(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    assert_int_equal(wg__file_check_writable(scratch_path(&scratch, "new"), NULL), WG_OK);
    assert_int_equal(scratch_count(&scratch), 0);
    const char *path = scratch_path(&scratch, "old");
    scratch_write(path, "old", 3);
    assert_int_equal(wg__file_check_writable(path, NULL), WG_OK);
    assert_content(path, "old");
    scratch_close(&scratch);
}

static void devices_are_written_in_place(void **state)
{
    (void)state;
    struct wg_error err = {0};
    assert_int_equal(wg__file_check_writable("/dev/null", NULL), WG_OK);
    assert_int_equal(wg__file_write("/dev/null", "gone", 4, NULL), WG_OK);
    struct stat status;
    assert_int_equal(stat("/dev/null", &status), 0);
    assert_true(S_ISCHR(status.st_mode));
    assert_int_equal(wg__file_write("/dev/full", "x", 1, &err), WG_EIO);
    assert_string_equal(err.text, "/dev/full: cannot write: No space left on device");
}

static void a_pipe_is_written_in_place(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    const int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_int_equal(wg__file_write(path, "through", 7, NULL), WG_OK);
    char text[8] = "";
    assert_int_equal(read(reader, text, sizeof text), 7);
    assert_memory_equal(text, "through", 7);
    (void)close(reader);
    scratch_close(&scratch);
}

static void a_descriptor_by_name_writes_where_it_stands(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "redirected");
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "before ", 7), 7);
    char name[64];
    (void)snprintf(name, sizeof name, "/dev/fd/%d", fd);
    assert_int_equal(wg__file_check_writable(name, NULL), WG_OK);
    assert_int_equal(wg__file_write(name, "by name", 7, NULL), WG_OK);
    assert_int_equal(write(fd, " after", 6), 6);
    (void)close(fd);
    assert_content(path, "before by name after");
    assert_int_equal(wg__file_write(name, "x", 1, NULL), WG_EIO); /* closed by now */
    assert_int_equal(wg__file_check_writable(name, NULL), WG_EIO);
    scratch_close(&scratch);
}

static void one_file_is_known_under_other_spellings(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    char folder[512], new[600], other[600], link[600];
    (void)snprintf(folder, sizeof folder, "%s", scratch.folder);
    (void)snprintf(new, sizeof new, "%s/new", folder);
    (void)snprintf(other, sizeof other, "%s/./new", folder);
    (void)snprintf(link, sizeof link, "%s/link", folder);
    assert_true(wg__file_is_same(new, new));
    assert_true(wg__file_is_same(new, other)); /* of files that are still to be made */
    assert_false(wg__file_is_same(new, link));
    scratch_write(new, "x", 1);
    assert_int_equal(symlink("new", link), 0);
    assert_true(wg__file_is_same(new, other));
    assert_true(wg__file_is_same(new, link));
    (void)snprintf(other, sizeof other, "%s/other", folder);
    assert_false(wg__file_is_same(new, other));
    scratch_write(other, "x", 1);
    assert_false(wg__file_is_same(new, other));
    assert_true(wg__file_is_same("/dev/stdout", "/dev/fd/1"));
    assert_false(wg__file_is_same("/dev/stdout", "/dev/stderr"));
    assert_false(wg__file_is_same(new, "/dev/stdout"));
    assert_false(wg__file_is_same(new, "/nowhere/at/all"));
    scratch_close(&scratch);
}

static void writing_gives_the_signals_back(void **state)
{
    (void)state;
    struct scratch scratch;
    sigset_t blocked;
    scratch_open(&scratch);
    assert_int_equal(wg__file_write(scratch_path(&scratch, "new"), "x", 1, NULL), WG_OK);
    assert_int_not_equal(wg__file_write("/nowhere/at/all", "x", 1, NULL), WG_OK);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    assert_int_equal(sigismember(&blocked, SIGINT), 0);
    assert_int_equal(sigismember(&blocked, SIGTERM), 0);
    scratch_close(&scratch);
}

/* A limit on file sizes stands for the full disk: the write comes back short, then fails. */
static void a_full_disk_keeps_the_old_file_and_leaves_nothing(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "f");
    scratch_write(path, "old", 3);
    static char bytes[100000];
    memset(bytes, 'x', sizeof bytes);

    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {50000, before.rlim_max};
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct wg_error err = {0};
    const enum wg_code code = wg__file_write(path, bytes, sizeof bytes, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);

    assert_int_equal(code, WG_EIO);
    assert_non_null(strstr(err.text, "File too large"));
    assert_content(path, "old");
    assert_int_equal(scratch_count(&scratch), 1);
    scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_a_new_file_with_the_umask),
        cmocka_unit_test(replacing_keeps_the_permissions),
        cmocka_unit_test(a_reader_of_the_old_file_keeps_it_whole),
        cmocka_unit_test(a_symbolic_link_stays_a_link),
        cmocka_unit_test(a_bare_name_is_written_in_the_present_folder),
        cmocka_unit_test(errors_name_path_and_cause_and_agree_with_the_check),
        cmocka_unit_test(protected_files_and_folders_are_respected),
        cmocka_unit_test(the_check_leaves_no_trace),
        cmocka_unit_test(devices_are_written_in_place),
        cmocka_unit_test(a_pipe_is_written_in_place),
        cmocka_unit_test(a_descriptor_by_name_writes_where_it_stands),
        cmocka_unit_test(one_file_is_known_under_other_spellings),
        cmocka_unit_test(writing_gives_the_signals_back),
        cmocka_unit_test(a_full_disk_keeps_the_old_file_and_leaves_nothing),
    };
    return run_tests(tests);
}
