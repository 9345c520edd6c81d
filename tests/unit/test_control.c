/* SPDX-License-Identifier: MIT
 *
 * Taking, setting, looking and giving back, over devices of our own. Field reports 6, 8, 10, 29,
 * 46, 47 and 49 are about what others' tools left, or did not notice.
 */
#include "device/control.h"

#include <signal.h>
#include <sys/resource.h>

#include "support/control_stage.h"

static void what_was_set_is_given_back_and_the_journal_removed(void **state)
{
    (void)state; /* field reports 6 and 10 */
    struct stage stage;
    stage_open(&stage);
    struct wg_control *control = stage_control(&stage, "test");
    double applied = 0;
    assert_int_equal(wg__control_take(control, 0, WG_KNOB_POWER_LIMIT, NULL), WG_OK);
    assert_int_equal(wg__control_set(control, 0, WG_KNOB_POWER_LIMIT, 175, &applied, NULL), WG_OK);
    check_close(applied, 175, 1e-12);
    stage_set(control, 0, WG_KNOB_GPU_CLOCK, 900e6);
    stage_set(control, 1, WG_KNOB_POWER_LIMIT, 120);
    check_close(stage_knob(&stage, 0, WG_KNOB_GPU_CLOCK)->value, 900e6, 1e-12);
    assert_int_equal(stage_journals(&stage), 1);
    assert_int_equal(wg__control_restore(control, stage_note, &stage.told), 0);
    assert_int_equal(stage.told.count, 3);
    check_close(stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->value, 300, 1e-12);
    check_close(stage_knob(&stage, 1, WG_KNOB_POWER_LIMIT)->value, 300, 1e-12);
    assert_true(isnan(stage_knob(&stage, 0, WG_KNOB_GPU_CLOCK)->value));
    assert_int_equal(wg__control_restore(control, stage_note, &stage.told), 0);
    assert_int_equal(stage.told.count, 3); /* nothing twice */
    wg__control_close(control);
    assert_int_equal(stage_journals(&stage), 0);
    wg__control_close(NULL);
    stage_close(&stage);
}

static void original_and_value_are_in_the_journal_before_the_driver_is_called(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    stage_expect_hang(&stage);
    struct wg_control *control = stage_control(&stage, "test");
    assert_int_equal(wg__control_take(control, 0, WG_KNOB_POWER_LIMIT, NULL), WG_OK);
    atomic_store(&stage.world.devices[0].set, FAKE_HANGS);
    struct wg_error err = {0};
    assert_int_equal(wg__control_set(control, 0, WG_KNOB_POWER_LIMIT, 175, NULL, &err),
                     WG_ETIMEOUT);
    check_text_has(err.text, "gpu0: fakeSet has not returned");
    char text[2048];
    stage_read(wg__control_journal_path(control), text, sizeof text);
    check_text_has(text, "\"take\":\"power_limit\",\"device\":\"GPU-0\",\"label\":\"gpu0\","
                         "\"original\":300");
    check_text_has(text, "\"set\":\"power_limit\",\"device\":\"GPU-0\",\"value\":175}\n");
    assert_null(strstr(text, "applied"));
    atomic_store(&stage.world.devices[0].set, FAKE_WORKS);
    gate_open(&stage.world.gate);
    gate_await_passed(&stage.world.gate, 1);
    /* It acts after all, late; the way back is tried until the call has left the device. */
    while (wg__control_restore(control, NULL, NULL) != 0)
        continue;
    check_close(stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->value, 300, 1e-12);
    wg__control_close(control);
    stage_close(&stage);
}

static void a_knob_has_one_holder_and_the_second_is_told_its_name(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    struct wg_control *first = stage_control(&stage, "wattgov train: python a.py");
    struct wg_control *second = stage_control(&stage, "wattgov train: python b.py");
    assert_int_equal(wg__control_take(first, 0, WG_KNOB_POWER_LIMIT, NULL), WG_OK);
    assert_int_equal(wg__control_take(first, 0, WG_KNOB_POWER_LIMIT, NULL), WG_OK); /* its own */
    struct wg_error err = {0};
    assert_int_equal(wg__control_take(second, 0, WG_KNOB_POWER_LIMIT, &err), WG_EBUSY);
    char expected[160];
    (void)snprintf(expected, sizeof expected,
                   "gpu0: power_limit is held by 'wattgov train: python a.py' (pid %d)",
                   (int)getpid());
    assert_string_equal(err.text, expected);
    assert_int_equal(wg__control_take(second, 1, WG_KNOB_POWER_LIMIT, NULL), WG_OK);
    assert_int_equal(wg__control_take(second, 0, WG_KNOB_GPU_CLOCK, NULL), WG_OK);
    assert_int_equal(wg__control_restore(first, NULL, NULL), 0); /* gives it up */
    assert_int_equal(wg__control_take(second, 0, WG_KNOB_POWER_LIMIT, NULL), WG_OK);
    assert_int_equal(wg__control_take(first, 0, WG_KNOB_POWER_LIMIT, NULL), WG_EBUSY);
    wg__control_close(second);
    assert_int_equal(wg__control_take(first, 0, WG_KNOB_POWER_LIMIT, NULL), WG_OK);
    wg__control_close(first);
    stage_close(&stage);
}

static void values_out_of_range_and_knobs_not_taken_are_refused(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    struct wg_control *control = stage_control(&stage, "test");
    struct wg_error err = {0};
    assert_int_equal(wg__control_set(control, 0, WG_KNOB_POWER_LIMIT, 200, NULL, &err), WG_ESTATE);
    check_text_has(err.text, "gpu0: power_limit was not taken");
    assert_int_equal(wg__control_take(control, 0, WG_KNOB_CPU_CLOCK, &err), WG_EUNSUPPORTED);
    check_text_has(err.text, "gpu0 has no cpu_clock: ");
    assert_int_equal(wg__control_take(control, 9, WG_KNOB_POWER_LIMIT, &err), WG_EINVAL);
    assert_int_equal(wg__control_take(control, 0, WG_KNOB_POWER_LIMIT, NULL), WG_OK);
    assert_int_equal(wg__control_set(control, 0, WG_KNOB_POWER_LIMIT, 99, NULL, &err), WG_EINVAL);
    assert_string_equal(err.text, "gpu0: power_limit of 99 W is outside 100..300 W");
    assert_int_equal(wg__control_set(control, 0, WG_KNOB_POWER_LIMIT, 301, NULL, NULL), WG_EINVAL);
    assert_string_equal(stage.world.sets, "");
    wg__control_close(control);
    assert_string_equal(stage.world.sets, ""); /* what was not set is not set back */
    stage_close(&stage);
}

static void without_the_right_to_set_a_knob_is_not_taken(void **state)
{
    (void)state; /* field report 29 */
    struct stage stage;
    stage_open(&stage);
    stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->is_forbidden = true;
    wg_machine_close(stage.machine);
    stage.machine = stage_machine(&stage);
    struct wg_control *control = stage_control(&stage, "test");
    struct wg_error err = {0};
    assert_int_equal(wg__control_take(control, 0, WG_KNOB_POWER_LIMIT, &err), WG_EPERM);
    assert_string_equal(err.text,
                        "gpu0: power_limit cannot be set: setting needs a right; run as root");
    wg__control_close(control);
    stage_close(&stage);
}

static void a_write_of_somebody_else_is_noticed_and_never_fought(void **state)
{
    (void)state; /* field report 49 */
    struct stage stage;
    stage_open(&stage);
    struct wg_control *control = stage_control(&stage, "test");
    struct wg_control_look look;
    assert_int_equal(wg__control_take(control, 0, WG_KNOB_POWER_LIMIT, NULL), WG_OK);
    assert_int_equal(wg__control_look(control, 0, WG_KNOB_POWER_LIMIT, &look, NULL), WG_OK);
    assert_false(look.is_foreign);
    check_close(look.expected, 300, 1e-12);
    stage_set(control, 0, WG_KNOB_POWER_LIMIT, 175);
    assert_int_equal(wg__control_look(control, 0, WG_KNOB_POWER_LIMIT, &look, NULL), WG_OK);
    assert_false(look.is_foreign);
    stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->value = 220; /* nvidia-smi -pl 220 */
    assert_int_equal(wg__control_look(control, 0, WG_KNOB_POWER_LIMIT, &look, NULL), WG_OK);
    assert_true(look.is_foreign);
    check_close(look.value, 220, 1e-12);
    check_close(look.expected, 175, 1e-12);
    assert_int_equal(wg__control_restore(control, stage_note, &stage.told), 0);
    assert_string_equal(stage.told.text, "gpu0 power_limit foreign 220->300; ");
    check_close(stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->value, 220, 1e-12);
    wg__control_close(control);
    stage_close(&stage);
}

static void a_limit_that_a_reloaded_driver_has_lost_is_noticed(void **state)
{
    (void)state; /* field reports 46, 47 and 48 */
    struct stage stage;
    stage_open(&stage);
    struct wg_control *control = stage_control(&stage, "test");
    struct wg_control_look look;
    stage_set(control, 0, WG_KNOB_POWER_LIMIT, 175);
    stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->value = 300;
    assert_int_equal(wg__control_look(control, 0, WG_KNOB_POWER_LIMIT, &look, NULL), WG_OK);
    assert_true(look.is_foreign);
    stage.world.sets[0] = '\0';
    assert_int_equal(wg__control_restore(control, NULL, NULL), 0);
    assert_string_equal(stage.world.sets, ""); /* it is what it was */
    wg__control_close(control);
    stage_close(&stage);
}

static void a_driver_that_rounds_or_does_nothing_is_told_by_what_it_says(void **state)
{
    (void)state; /* field report 8 */
    struct stage stage;
    stage_open(&stage);
    struct wg_control *control = stage_control(&stage, "test");
    struct fake_knob *knob = stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT);
    double applied = 0;
    assert_int_equal(wg__control_take(control, 0, WG_KNOB_POWER_LIMIT, NULL), WG_OK);
    assert_int_equal(wg__control_set(control, 0, WG_KNOB_POWER_LIMIT, 150, NULL, NULL), WG_OK);
    knob->is_deaf = true;
    assert_int_equal(wg__control_set(control, 0, WG_KNOB_POWER_LIMIT, 200, &applied, NULL), WG_OK);
    check_close(applied, 150, 1e-12);
    assert_int_equal(wg__control_restore(control, stage_note, &stage.told), 1);
    check_text_has(stage.told.text, "failed 150->300: gpu0: power_limit was set back to 300 W and "
                                    "taken, but it stands at 150");
    knob->is_deaf = false;
    wg__control_close(control); /* tries again */
    check_close(knob->value, 300, 1e-12);
    assert_int_equal(stage_journals(&stage), 0);
    stage_close(&stage);
}

static void what_the_driver_has_refused_is_not_set_back(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    struct wg_control *control = stage_control(&stage, "test");
    struct fake_knob *knob = stage_knob(&stage, 0, WG_KNOB_GPU_CLOCK);
    knob->needs_least = 500e6;
    assert_int_equal(wg__control_take(control, 0, WG_KNOB_GPU_CLOCK, NULL), WG_OK);
    assert_int_equal(wg__control_set(control, 0, WG_KNOB_GPU_CLOCK, 300e6, NULL, NULL), WG_EINVAL);
    stage.world.sets[0] = '\0';
    wg__control_close(control);
    assert_string_equal(stage.world.sets, ""); /* a lock of somebody else's stays */
    stage_close(&stage);
}

/* RLIMIT_FSIZE stands in for a full disk. */
static void on_a_full_disk_nothing_is_set(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    struct wg_control *control = stage_control(&stage, "test");
    assert_int_equal(wg__control_take(control, 0, WG_KNOB_POWER_LIMIT, NULL), WG_OK);
    struct rlimit before;
    struct stat status;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(stat(wg__control_journal_path(control), &status), 0);
    for (rlim_t room = 0; room < 50; room += 7) {
        const struct rlimit full = {.rlim_cur = (rlim_t)status.st_size + room,
                                    .rlim_max = before.rlim_max};
        struct wg_error err = {0};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
        const enum wg_code set = wg__control_set(control, 0, WG_KNOB_POWER_LIMIT, 150, NULL, &err);
        const enum wg_code take = wg__control_take(control, 0, WG_KNOB_GPU_CLOCK, NULL);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(set, WG_EIO);
        assert_int_equal(take, WG_EIO);
        check_text_has(err.text, "writing ");
        check_text_has(err.text, ".journal: File too large");
        assert_string_equal(stage.world.sets, "");
    }
    /* There is room again: what failed left no half a line. */
    stage_set(control, 0, WG_KNOB_POWER_LIMIT, 150);
    stage_set(control, 0, WG_KNOB_GPU_CLOCK, 900e6);
    char text[4096];
    stage_read(wg__control_journal_path(control), text, sizeof text);
    wg__control_close(control);
    stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->value = 150;
    stage_leave_stale(&stage, text, "1-1-1.journal");
    const struct wg_restore_summary summary = stage_restore_stale(&stage);
    assert_int_equal(summary.restored, 2);
    stage_close(&stage);
}

static void where_no_journal_can_be_made_nothing_is_held(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    struct wg_control *control = NULL;
    struct wg_error err = {0};
    char path[512];
    (void)snprintf(path, sizeof path, "%s", scratch_path(&stage.scratch, "file"));
    stage_write(path, "");
    const struct wg_control_opts opts = {.state_dir = path, .holder = "test"};
    assert_int_equal(wg__control_open(&control, stage.machine, &opts, &err), WG_EIO);
    check_text_has(err.text, path);
    assert_null(control);
    const struct wg_control_opts dead = {.state_dir = "/proc/nowhere", .holder = "test"};
    assert_int_not_equal(wg__control_open(&control, stage.machine, &dead, &err), WG_OK);
    check_text_has(err.text, "/proc/nowhere");
    stage_close(&stage);
}

static void files_are_for_their_owner_alone_and_close_on_exec(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    struct wg_control *control = stage_control(&stage, "test");
    struct stat status;
    assert_int_equal(fstat(wg__control_journal_fd(control), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(fcntl(wg__control_journal_fd(control), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(stat(scratch_path(&stage.scratch, "journal"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    wg__control_close(control);
    stage_close(&stage);
}

static void every_failure_of_memory_is_told_and_leaves_nothing_set(void **state)
{
    (void)state;
    bool ends = false;
    for (size_t nth = 1; !ends && nth < 500; nth++) {
        struct stage stage;
        stage_open(&stage);
        struct wg_control *control = NULL;
        const struct wg_control_opts opts = {.state_dir = stage.scratch.folder, .holder = "test"};
        wg__alloc_fail_from(nth);
        enum wg_code code =
            wg__control_open_setup(&control, stage.machine, &opts, &stage.setup, NULL);
        if (code == WG_OK)
            code = wg__control_take(control, 0, WG_KNOB_POWER_LIMIT, NULL);
        if (code == WG_OK)
            code = wg__control_set(control, 0, WG_KNOB_POWER_LIMIT, 150, NULL, NULL);
        ends = wg__alloc_count() < nth;
        wg__alloc_fail_from(0);
        assert_int_equal(code == WG_OK, ends);
        assert_true(ends || code == WG_ENOMEM);
        wg__control_close(control);
        check_close(stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->value, 300, 1e-12);
        assert_int_equal(stage_journals(&stage), 0);
        stage_close(&stage);
    }
    assert_true(ends);
}

static void recordings_cannot_be_set(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    static struct wg_device_ops deaf;
    deaf = fake_ops;
    deaf.set = NULL;
    struct wg_device *device = wg_machine_device(stage.machine, 0);
    device->ops = &deaf;
    struct wg_error err = {0};
    double value = 0;
    assert_int_equal(wg__device_set_knob(device, WG_KNOB_POWER_LIMIT, 200, &err), WG_EUNSUPPORTED);
    assert_string_equal(err.text, "gpu0: nothing can be set on a device of 'fake'");
    assert_int_equal(wg__device_get_knob(device, WG_KNOB_POWER_LIMIT, &value, NULL),
                     WG_EUNSUPPORTED);
    device->ops = &fake_ops;
    assert_int_equal(wg__device_get_knob(device, WG_KNOB_CPU_CLOCK, &value, &err), WG_EUNSUPPORTED);
    assert_int_equal(wg__device_get_knob(device, WG_KNOB_POWER_LIMIT, &value, NULL), WG_OK);
    check_close(value, 300, 1e-12);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_set_is_given_back_and_the_journal_removed),
        cmocka_unit_test(original_and_value_are_in_the_journal_before_the_driver_is_called),
        cmocka_unit_test(a_knob_has_one_holder_and_the_second_is_told_its_name),
        cmocka_unit_test(values_out_of_range_and_knobs_not_taken_are_refused),
        cmocka_unit_test(without_the_right_to_set_a_knob_is_not_taken),
        cmocka_unit_test(a_write_of_somebody_else_is_noticed_and_never_fought),
        cmocka_unit_test(a_limit_that_a_reloaded_driver_has_lost_is_noticed),
        cmocka_unit_test(a_driver_that_rounds_or_does_nothing_is_told_by_what_it_says),
        cmocka_unit_test(what_the_driver_has_refused_is_not_set_back),
        cmocka_unit_test(on_a_full_disk_nothing_is_set),
        cmocka_unit_test(where_no_journal_can_be_made_nothing_is_held),
        cmocka_unit_test(files_are_for_their_owner_alone_and_close_on_exec),
        cmocka_unit_test(every_failure_of_memory_is_told_and_leaves_nothing_set),
        cmocka_unit_test(recordings_cannot_be_set),
    };
    return run_tests(tests);
}
