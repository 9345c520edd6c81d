/* SPDX-License-Identifier: MIT
 *
 * Where journals lie, who holds them, and which of them are of here and now.
 */
#include "device/journal_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/control_stage.h"

struct seen {
    size_t live, stale, unreadable;
};

static bool count(struct wg_journal_look *look, void *context)
{
    struct seen *seen = context;
    seen->live += look->is_live;
    seen->stale += look->journal != NULL && !look->is_live;
    seen->unreadable += look->journal == NULL;
    return true;
}

static struct seen look_at_all(struct scratch *scratch)
{
    struct seen seen = {0};
    struct wg_error err = {0};
    if (wg__journal_each_below(scratch->folder, count, &seen, &err) != WG_OK)
        fail_msg("%s", err.text);
    return seen;
}

static void make(struct wg_journal *journal, struct scratch *scratch)
{
    struct wg_error err = {0};
    if (wg__journal_make(journal, scratch->folder, "test", "/", 1000, &err) != WG_OK)
        fail_msg("%s", err.text);
}

static void remove_all(struct scratch *scratch)
{
    scratch_require(nftw(scratch->folder, stage_remove, 8, FTW_DEPTH | FTW_PHYS) == 0, "removing");
}

static void a_process_may_hold_several_and_each_is_live_until_it_is_let_go(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_journal journals[3];
    scratch_open(&scratch);
    for (size_t i = 0; i < 3; i++)
        make(&journals[i], &scratch);
    assert_string_not_equal(journals[0].path, journals[1].path);
    assert_int_equal(look_at_all(&scratch).live, 3);
    assert_true(wg__journal_has_writer(&journals[0].header));
    assert_int_equal(wg__journal_remove(&journals[0], NULL), WG_OK);
    wg__journal_fini(&journals[0]);
    wg__journal_fini(&journals[1]);
    const struct seen seen = look_at_all(&scratch);
    assert_int_equal(seen.live, 1);
    assert_int_equal(seen.stale, 1);
    wg__journal_fini(&journals[2]);
    remove_all(&scratch);
}

/* What the guard relies on: the lock goes with the file, through fork and exec. */
static void it_is_held_as_long_as_any_process_has_the_file(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_journal journal;
    int ends[2];
    scratch_open(&scratch);
    make(&journal, &scratch);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char byte = 0;
        (void)close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    wg__journal_fini(&journal);
    assert_int_equal(look_at_all(&scratch).live, 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(look_at_all(&scratch).live, 0);
    remove_all(&scratch);
}

static void what_is_no_journal_is_not_looked_at(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    struct seen seen = look_at_all(&scratch);
    assert_int_equal(seen.live + seen.stale + seen.unreadable, 0);
    assert_int_equal(mkdir(scratch_path(&scratch, "journal"), 0700), 0);
    stage_write(scratch_path(&scratch, "journal/.journal"), "x\n");
    stage_write(scratch_path(&scratch, "journal/journal"), "x\n");
    stage_write(scratch_path(&scratch, "journal/a.journal~"), "x\n");
    seen = look_at_all(&scratch);
    assert_int_equal(seen.live + seen.stale + seen.unreadable, 0);
    assert_int_not_equal(access(scratch_path(&scratch, "journal/lock"), F_OK), 0);
    assert_int_equal(symlink("/etc/passwd", scratch_path(&scratch, "journal/1.journal")), 0);
    assert_int_equal(look_at_all(&scratch).unreadable, 1); /* a link is not followed */
    remove_all(&scratch);
}

/* Whoever could write it could have root set devices. */
static void a_journal_that_others_can_write_is_not_believed(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_journal journal;
    scratch_open(&scratch);
    make(&journal, &scratch);
    char path[512];
    (void)snprintf(path, sizeof path, "%s", journal.path);
    wg__journal_fini(&journal);
    assert_int_equal(look_at_all(&scratch).stale, 1);
    assert_int_equal(chmod(path, 0620), 0);
    struct seen seen = look_at_all(&scratch);
    assert_int_equal(seen.unreadable, 1);
    assert_int_equal(seen.stale, 0);
    assert_int_equal(chmod(path, 0600), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 65534, 65534), 0);
        seen = look_at_all(&scratch);
        assert_int_equal(seen.unreadable, 1);
    }
    remove_all(&scratch);
}

static void a_file_that_has_taken_the_name_is_not_removed(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_journal journal;
    char path[512];
    scratch_open(&scratch);
    make(&journal, &scratch);
    (void)snprintf(path, sizeof path, "%s", journal.path);
    assert_int_equal(unlink(path), 0);
    stage_write(path, "somebody's\n");
    assert_int_equal(wg__journal_remove(&journal, NULL), WG_OK);
    assert_int_equal(access(path, F_OK), 0);
    wg__journal_fini(&journal);
    remove_all(&scratch);
}

static void a_journal_is_of_one_boot_and_one_virtual_machine(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_journal journal;
    scratch_open(&scratch);
    make(&journal, &scratch);
    struct wg_journal_header header = journal.header;
    assert_string_not_equal(header.boot, "");
    assert_int_equal(wg__journal_place(&header), WG_JOURNAL_HERE);
    header.boot = "an earlier one";
    assert_int_equal(wg__journal_place(&header), WG_JOURNAL_GONE);
    header.boot = ""; /* unknown */
    assert_int_equal(wg__journal_place(&header), WG_JOURNAL_HERE);
    header.virtual_gpu = scratch.folder;
    assert_int_equal(wg__journal_place(&header), WG_JOURNAL_ELSEWHERE);
    header.virtual_gpu = "/nowhere/machine";
    assert_int_equal(wg__journal_place(&header), WG_JOURNAL_GONE);
    assert_int_equal(setenv("WATTGOV_VGPU", scratch.folder, 1), 0);
    header.virtual_gpu = scratch.folder;
    assert_int_equal(wg__journal_place(&header), WG_JOURNAL_HERE);
    header.virtual_gpu = ""; /* the real machine around ours */
    assert_int_equal(wg__journal_place(&header), WG_JOURNAL_ELSEWHERE);
    assert_int_equal(unsetenv("WATTGOV_VGPU"), 0);
    header.pid = 1;
    header.start = UINT64_MAX;
    assert_false(wg__journal_has_writer(&header)); /* the pid was given to another since */
    wg__journal_fini(&journal);
    remove_all(&scratch);
}

int main(void)
{
    (void)unsetenv("WATTGOV_VGPU");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_may_hold_several_and_each_is_live_until_it_is_let_go),
        cmocka_unit_test(it_is_held_as_long_as_any_process_has_the_file),
        cmocka_unit_test(what_is_no_journal_is_not_looked_at),
        cmocka_unit_test(a_journal_that_others_can_write_is_not_believed),
        cmocka_unit_test(a_file_that_has_taken_the_name_is_not_removed),
        cmocka_unit_test(a_journal_is_of_one_boot_and_one_virtual_machine),
    };
    return run_tests(tests);
}
