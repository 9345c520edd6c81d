/* SPDX-License-Identifier: MIT
 *
 * Working off what dead governors have left, over devices of our own. Field reports 7, 8, 11 and 50
 * are about settings that did not come back.
 */
#include "device/restore.h"

#include <sched.h>
#include <sys/file.h>

#include "support/control_stage.h"

/* This boot's header; `rest` is what follows. */
static void leave(struct stage *stage, const char *name, const char *boot, const char *rest)
{
    char here[64];
    char text[4096];
    stage_read("/proc/sys/kernel/random/boot_id", here, sizeof here);
    here[strcspn(here, "\n")] = '\0';
    (void)snprintf(text, sizeof text,
                   "{\"wattgov_journal\":1,\"pid\":1,\"start\":1,\"boot\":\"%s\",\"holder\":"
                   "\"train\",\"root\":\"/\",\"virtual_gpu\":\"\",\"timeout_ms\":%u}\n%s",
                   boot != NULL ? boot : here, stage->timeout_ms, rest);
    stage_leave_stale(stage, text, name);
}

#define TAKE(knob, device, original)                                                               \
    "{\"take\":\"" knob "\",\"device\":\"GPU-" device "\",\"label\":\"gpu" device                  \
    "\",\"original\":" original ",\"step\":0.001}\n"
#define SET(knob, device, value)                                                                   \
    "{\"set\":\"" knob "\",\"device\":\"GPU-" device "\",\"value\":" value "}\n"
#define APPLIED(knob, device, value)                                                               \
    "{\"applied\":\"" knob "\",\"device\":\"GPU-" device "\",\"value\":" value "}\n"

/* A limit that was 300 W, and is set. */
#define LIMIT(device, value) TAKE("power_limit", device, "300") SET("power_limit", device, value)
#define CLOCK                TAKE("gpu_clock", "0", "null") SET("gpu_clock", "0", "9e8")

static const char limit_at_175[] = LIMIT("0", "175") APPLIED("power_limit", "0", "175");

/* A stale journal, and the first device's limit at 175 W. */
static void open_left(struct stage *stage, const char *rest)
{
    stage_open(stage);
    stage_knob(stage, 0, WG_KNOB_POWER_LIMIT)->value = 175;
    leave(stage, "1-1-1.journal", NULL, rest);
}

static void expect_limit(struct stage *stage, size_t device, double limit_w)
{
    check_close(stage_knob(stage, device, WG_KNOB_POWER_LIMIT)->value, limit_w, 1e-12);
}

static void a_stale_journal_is_worked_off_once(void **state)
{
    (void)state; /* field report 50 */
    struct stage stage;
    open_left(&stage, LIMIT("0", "175") CLOCK);
    stage_knob(&stage, 0, WG_KNOB_GPU_CLOCK)->value = 900e6;
    struct wg_restore_summary summary = stage_restore_stale(&stage);
    assert_int_equal(summary.journals, 1);
    assert_int_equal(summary.restored, 2);
    assert_int_equal(summary.failed + summary.foreign + summary.live, 0);
    assert_string_equal(stage.told.text,
                        "gpu0 gpu_clock done nan->nan; gpu0 power_limit done 175->300; ");
    expect_limit(&stage, 0, 300);
    assert_true(isnan(stage_knob(&stage, 0, WG_KNOB_GPU_CLOCK)->value));
    assert_int_equal(stage_journals(&stage), 0);
    summary = stage_restore_stale(&stage);
    assert_int_equal(summary.journals, 0);
    stage_close(&stage);
}

/* Whatever was the last line that got to the disk, and wherever the driver was. */
static void each_moment_of_death_gives_the_original_back(void **state)
{
    (void)state;
    static const struct {
        const char *rest;
        double now; /* what the device stands at */
        double then;
    } cases[] = {
        {"", 300, 300},
        {TAKE("power_limit", "0", "300"), 300, 300},
        {TAKE("power_limit", "0", "300"), 222, 222}, /* we have set nothing: it is not ours */
        {LIMIT("0", "175"), 300, 300},
        {LIMIT("0", "175"), 175, 300},
        {LIMIT("0", "175"), 174, 300}, /* rounded */
        {limit_at_175, 175, 300},
        {limit_at_175, 180, 180},
        {LIMIT("0", "175") APPLIED("power_limit", "0", "175") SET("power_limit", "0", "120"), 175,
         300},
        {LIMIT("0", "175") APPLIED("power_limit", "0", "175") SET("power_limit", "0", "120"), 120,
         300},
        {LIMIT("0", "175") SET("power_limit", "0", "120") SET("power_limit", "0", "150"), 175, 300},
        {LIMIT("0", "175") "{\"appl", 175, 300},
        {TAKE("power_limit", "0", "300") "{\"set\":\"power_limit\",\"dev", 300, 300},
        {LIMIT("0", "175")
             APPLIED("power_limit", "0", "175") "{\"given_back\":\"power_limit\",\"device\":\"GPU-"
                                                "0\",\"outcome\":\"restored\"}\n",
         175, 175}, /* somebody else's since */
        {LIMIT("0", "175") APPLIED("power_limit", "0", "175") "{\"end\":true}\n", 175, 175},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stage stage;
        stage_open(&stage);
        stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->value = cases[i].now;
        leave(&stage, "1-1-1.journal", NULL, cases[i].rest);
        (void)stage_restore_stale(&stage);
        if (fabs(stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->value - cases[i].then) > 1e-9)
            fail_msg("case %zu: %s", i, stage.told.text);
        assert_int_equal(stage_journals(&stage), 0);
        stage_close(&stage);
    }
}

/* Field report 11: clocks before limits, and what raises before what lowers. */
static void the_order_is_what_raises_first_and_clocks_before_limits(void **state)
{
    (void)state;
    static const struct {
        const char *originals[2]; /* the limits of the two devices, now at 150 and 200 */
        const char *sets;
    } cases[] = {
        {{"300", "250"}, "0.gpu_clock=nan 0.power_limit=300 1.power_limit=250 "},
        {{"110", "250"}, "0.gpu_clock=nan 1.power_limit=250 0.power_limit=110 "},
        {{"300", "110"}, "0.gpu_clock=nan 0.power_limit=300 1.power_limit=110 "},
        {{"110", "120"}, "0.gpu_clock=nan 0.power_limit=110 1.power_limit=120 "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stage stage;
        char rest[1024];
        stage_open(&stage);
        stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->value = 150;
        stage_knob(&stage, 1, WG_KNOB_POWER_LIMIT)->value = 200;
        (void)snprintf(rest, sizeof rest,
                       TAKE("power_limit", "0", "%s") SET("power_limit", "0", "150")
                           CLOCK TAKE("power_limit", "1", "%s") SET("power_limit", "1", "200"),
                       cases[i].originals[0], cases[i].originals[1]);
        leave(&stage, "1-1-1.journal", NULL, rest);
        assert_int_equal(stage_restore_stale(&stage).restored, 3);
        assert_string_equal(stage.world.sets, cases[i].sets);
        stage_close(&stage);
    }
}

static void one_that_fails_stops_no_other_and_stays_in_the_journal(void **state)
{
    (void)state; /* field report 7 */
    struct stage stage;
    open_left(&stage, LIMIT("0", "175") LIMIT("1", "150"));
    stage_knob(&stage, 1, WG_KNOB_POWER_LIMIT)->value = 150;
    stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->fails_first = 2; /* and once more at the end */
    struct wg_restore_summary summary = stage_restore_stale(&stage);
    assert_int_equal(summary.restored, 1);
    assert_int_equal(summary.failed, 1);
    check_text_has(stage.told.text, "gpu0 power_limit failed 175->300: gpu0: fakeSet failed");
    expect_limit(&stage, 1, 300);
    assert_int_equal(stage_journals(&stage), 1);
    stage_knob(&stage, 1, WG_KNOB_POWER_LIMIT)->value = 150; /* somebody's, since */
    summary = stage_restore_stale(&stage);
    assert_int_equal(summary.restored, 1);
    assert_string_equal(stage.told.text, "gpu0 power_limit done 175->300; ");
    expect_limit(&stage, 1, 150);
    assert_int_equal(stage_journals(&stage), 0);
    stage_close(&stage);
}

static void one_that_depends_on_another_is_tried_again_after_it(void **state)
{
    (void)state; /* field report 11 */
    struct stage stage;
    open_left(&stage, LIMIT("0", "175") CLOCK);
    stage_knob(&stage, 0, WG_KNOB_GPU_CLOCK)->value = 900e6;
    stage_knob(&stage, 0, WG_KNOB_GPU_CLOCK)->fails_first = 1; /* as long as the limit is low */
    assert_int_equal(stage_restore_stale(&stage).restored, 2);
    assert_string_equal(stage.world.sets, "0.gpu_clock=nan 0.power_limit=300 0.gpu_clock=nan ");
    stage_close(&stage);
}

static void a_device_that_hangs_costs_its_own_settings_only(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    stage_expect_hang(&stage);
    stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->value = 175;
    stage_knob(&stage, 1, WG_KNOB_POWER_LIMIT)->value = 150;
    atomic_store(&stage.world.devices[0].get, FAKE_HANGS);
    leave(&stage, "1-1-1.journal", NULL, LIMIT("0", "175") LIMIT("1", "150"));
    struct wg_restore_summary summary = stage_restore_stale(&stage);
    assert_int_equal(summary.restored, 1);
    assert_int_equal(summary.failed, 1);
    check_text_has(stage.told.text, "gpu0: fakeGet has not returned");
    expect_limit(&stage, 1, 300);
    atomic_store(&stage.world.devices[0].get, FAKE_WORKS);
    gate_open(&stage.world.gate);
    while (atomic_load(&stage.world.destroyed) < 4) /* of the machine that hung, too */
        (void)sched_yield();
    summary = stage_restore_stale(&stage);
    assert_int_equal(summary.restored, 1);
    stage_close(&stage);
}

static void a_device_that_is_gone_is_told_and_waited_for(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    leave(&stage, "1-1-1.journal", NULL,
          "{\"take\":\"power_limit\",\"device\":\"GPU-9\",\"label\":\"gpu9\",\"original\":300,"
          "\"step\":null}\n{\"set\":\"power_limit\",\"device\":\"GPU-9\",\"value\":175}\n");
    const struct wg_restore_summary summary = stage_restore_stale(&stage);
    assert_int_equal(summary.failed, 1);
    check_text_has(stage.told.text, "gpu9: there is no device GPU-9 now");
    assert_int_equal(stage_journals(&stage), 1);
    stage_close(&stage);
}

static void an_earlier_boot_is_dropped_and_sets_nothing(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->value = 175; /* by chance */
    leave(&stage, "1-1-1.journal", "00000000-0000-0000-0000-000000000000", limit_at_175);
    const struct wg_restore_summary summary = stage_restore_stale(&stage);
    assert_int_equal(summary.journals + summary.restored + summary.failed, 0);
    expect_limit(&stage, 0, 175);
    assert_int_equal(stage_journals(&stage), 0);
    stage_close(&stage);
}

static void another_virtual_machine_is_left_alone_and_one_that_has_ended_is_dropped(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    char text[2048];
    static const char form[] =
        "{\"wattgov_journal\":1,\"pid\":1,\"start\":1,\"boot\":\"\",\"holder\":\"train\","
        "\"root\":\"/\",\"virtual_gpu\":\"%s\",\"timeout_ms\":1000}\n%s";
    (void)snprintf(text, sizeof text, form, stage.scratch.folder, limit_at_175);
    stage_leave_stale(&stage, text, "1-1-1.journal");
    (void)snprintf(text, sizeof text, form, "/nowhere/machine", limit_at_175);
    stage_leave_stale(&stage, text, "1-1-2.journal");
    const struct wg_restore_summary summary = stage_restore_stale(&stage);
    assert_int_equal(summary.journals, 0);
    assert_string_equal(stage.world.sets, "");
    assert_int_equal(stage_journals(&stage), 1);
    stage_close(&stage);
}

static void one_that_was_cut_off_in_its_header_is_removed_anywhere(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "{\"wattgov_journal\":1,\"pid\":"};
    struct stage stage;
    stage_open(&stage);
    assert_int_equal(setenv("WATTGOV_VGPU", stage.scratch.folder, 1), 0);
    for (size_t i = 0; i < 2; i++) {
        stage_leave_stale(&stage, texts[i], "1-1-1.journal");
        const struct wg_restore_summary summary = stage_restore_stale(&stage);
        assert_int_equal(summary.unreadable + summary.journals, 0);
        assert_int_equal(stage_journals(&stage), 0);
    }
    assert_int_equal(unsetenv("WATTGOV_VGPU"), 0);
    stage_close(&stage);
}

static void what_is_malformed_or_newer_is_told_and_left_in_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *part;
    } cases[] = {
        {"nonsense\n", ":1: "},
        {"[]\n", ":1: no object"},
        {"{}\n", ":1: not the beginning of a journal"},
        {"{\"wattgov_journal\":2}\n", "is of version 2, made by a newer wattgov"},
        {"{\"wattgov_journal\":1,\"pid\":1}\n", ":1: its header lacks a number"},
        {"{\"wattgov_journal\":1,\"pid\":1,\"start\":1,\"timeout_ms\":1}\n", "lacks a text"},
    };
    static const char *const rests[][2] = {
        {"{\"what\":1}\n", ":2: an entry of no known kind"},
        {"{\"take\":\"power_limit\"}\n", ":2: no device, or no known knob"},
        {"{\"take\":\"volume\",\"device\":\"GPU-0\"}\n", ":2: no device, or no known knob"},
        {"{\"take\":\"power_limit\",\"device\":\"GPU-0\"}\n", ":2: a knob is taken without"},
        {SET("power_limit", "0", "1"), ":2: it is about a knob that was not taken"},
        {TAKE("power_limit", "0", "300") TAKE("power_limit", "0", "300"), ":3: a knob is taken"},
        {TAKE("power_limit", "0", "300") "{\"set\":\"power_limit\",\"device\":\"GPU-0\"}\n",
         ":3: a value is missing"},
        {TAKE("power_limit", "0", "300") "{\"set\":\n" SET("power_limit", "0", "175"), ":3: "},
    };
    struct stage stage;
    stage_open(&stage);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stage_leave_stale(&stage, cases[i].text, "1-1-1.journal");
        assert_int_equal(stage_restore_stale(&stage).unreadable, 1);
        check_text_has(stage.told.text, cases[i].part);
        check_text_has(stage.told.text, "/journal/1-1-1.journal");
        assert_int_equal(stage_journals(&stage), 1);
    }
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        leave(&stage, "1-1-1.journal", NULL, rests[i][0]);
        assert_int_equal(stage_restore_stale(&stage).unreadable, 1);
        check_text_has(stage.told.text, rests[i][1]);
        assert_int_equal(stage_journals(&stage), 1);
    }
    assert_string_equal(stage.world.sets, "");
    stage_close(&stage);
}

static void what_somebody_holds_is_left_alone(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    struct wg_control *control = stage_control(&stage, "test");
    stage_set(control, 0, WG_KNOB_POWER_LIMIT, 175);
    const struct wg_restore_summary summary = stage_restore_stale(&stage);
    assert_int_equal(summary.live, 1);
    assert_int_equal(summary.journals, 0);
    expect_limit(&stage, 0, 175);
    wg__control_close(control);
    stage_close(&stage);
}

/* Another command comes while the first one is at it. */
static void restore_once_more(const struct wg_restore_note *note, void *context)
{
    (void)note;
    struct stage *stage = context;
    const struct wg_restore_summary other = stage_restore_stale(stage);
    assert_int_equal(other.live, stage_journals(stage)); /* the first one still has each */
    assert_int_equal(other.journals + other.unreadable, 0);
}

static void two_that_restore_exclude_each_other(void **state)
{
    (void)state;
    struct stage stage;
    open_left(&stage, LIMIT("0", "175"));
    stage_knob(&stage, 1, WG_KNOB_POWER_LIMIT)->value = 150;
    leave(&stage, "1-1-2.journal", NULL, LIMIT("1", "150"));
    struct wg_restore_summary summary;
    fake_world_now = &stage.world;
    assert_int_equal(wg__restore_stale_setup(stage.scratch.folder, &stage.setup, restore_once_more,
                                             &stage, &summary, NULL),
                     WG_OK);
    assert_int_equal(summary.restored, 2);
    assert_string_equal(stage.world.sets, "0.power_limit=300 1.power_limit=300 ");
    assert_int_equal(stage_journals(&stage), 0);
    stage_close(&stage);
}

static void without_a_journal_no_device_is_opened_and_no_file_made(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    const unsigned probes = atomic_load(&stage.world.probes);
    (void)stage_restore_stale(&stage);
    assert_int_equal(scratch_count(&stage.scratch), 0);
    assert_int_equal(mkdir(scratch_path(&stage.scratch, "journal"), 0700), 0);
    (void)stage_restore_stale(&stage);
    assert_int_not_equal(access(scratch_path(&stage.scratch, "journal/lock"), F_OK), 0);
    assert_int_equal(atomic_load(&stage.world.probes), probes);
    stage_close(&stage);
}

static void a_stale_journal_is_restored_before_its_knob_is_taken(void **state)
{
    (void)state;
    struct stage stage;
    open_left(&stage, limit_at_175);
    struct wg_control *control = stage_control(&stage, "test");
    assert_int_equal(wg__control_take(control, 0, WG_KNOB_POWER_LIMIT, NULL), WG_OK);
    struct wg_control_look look;
    assert_int_equal(wg__control_look(control, 0, WG_KNOB_POWER_LIMIT, &look, NULL), WG_OK);
    check_close(look.expected, 300, 1e-12); /* and not the 175 W of the dead one */
    wg__control_close(control);
    assert_int_equal(stage_journals(&stage), 0);
    stage_close(&stage);
}

static void a_knob_whose_stale_journal_cannot_be_worked_off_is_not_taken(void **state)
{
    (void)state;
    struct stage stage;
    open_left(&stage, limit_at_175);
    stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->fails_first = 100;
    struct wg_control *control = stage_control(&stage, "test");
    struct wg_error err = {0};
    assert_int_equal(wg__control_take(control, 0, WG_KNOB_POWER_LIMIT, &err), WG_ESTATE);
    check_text_has(
        err.text, "held by 'train' (pid 1), which has died; it is not restored yet: gpu0: fakeSet");
    wg__control_close(control);
    stage_close(&stage);
}

/* -- The guard's ------------------------------------------------------------------------------ */

/* Opens the journal and holds it, as a guard does. */
static int hold(struct stage *stage)
{
    const int fd = open(scratch_path(&stage->scratch, "journal/1-1-1.journal"), O_RDWR | O_CLOEXEC);
    scratch_require(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0, "holding");
    return fd;
}

static void the_guard_tries_until_all_is_back(void **state)
{
    (void)state;
    struct stage stage;
    open_left(&stage, limit_at_175);
    stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->fails_first = 5;
    const int fd = hold(&stage);
    struct wg_restore_summary summary;
    bool is_ended = true;
    assert_int_equal(wg__restore_is_ended(fd, &is_ended, NULL), WG_OK);
    assert_false(is_ended);
    assert_int_equal(wg__restore_journal_setup(fd, &stage.setup, 60000000000, stage_note,
                                               &stage.told, &summary, NULL),
                     WG_OK);
    assert_int_equal(summary.restored, 1);
    assert_int_equal(summary.failed, 0);
    assert_string_equal(stage.told.text, "gpu0 power_limit done 175->300; ");
    assert_int_equal(stage_journals(&stage), 0);
    assert_int_equal(wg__restore_is_ended(fd, &is_ended, NULL), WG_OK);
    assert_true(is_ended);
    assert_int_equal(wg__restore_journal_setup(fd, &stage.setup, 60000000000, stage_note,
                                               &stage.told, &summary, NULL),
                     WG_OK);
    assert_int_equal(summary.journals, 0);
    assert_int_equal(stage.told.count, 1);
    (void)close(fd);
    stage_close(&stage);
}

static void the_guards_patience_ends_and_leaves_the_journal(void **state)
{
    (void)state;
    struct stage stage;
    open_left(&stage, limit_at_175);
    stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->fails_first = 1000000;
    const int fd = hold(&stage);
    struct wg_restore_summary summary;
    assert_int_equal(wg__restore_journal_setup(fd, &stage.setup, 300000000, stage_note, &stage.told,
                                               &summary, NULL),
                     WG_OK);
    assert_int_equal(summary.failed, 1);
    assert_int_equal(stage.told.count, 1); /* told once, at the end */
    check_text_has(stage.told.text, "failed");
    assert_int_equal(stage_journals(&stage), 1);
    (void)close(fd);
    stage_close(&stage);
}

static void the_guard_finds_a_device_that_comes_back(void **state)
{
    (void)state;
    struct stage stage;
    open_left(&stage, limit_at_175);
    /* The first machine that the guard opens does not get it to work. */
    stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->fails_first = 3;
    atomic_store(&stage.world.devices[1].probe, FAKE_IS_LOST);
    const int fd = hold(&stage);
    struct wg_restore_summary summary;
    assert_int_equal(
        wg__restore_journal_setup(fd, &stage.setup, 60000000000, NULL, NULL, &summary, NULL),
        WG_OK);
    assert_int_equal(summary.restored, 1);
    (void)close(fd);
    stage_close(&stage);
}

static void every_failure_of_memory_leaves_the_journal_or_restores(void **state)
{
    (void)state;
    bool ends = false;
    for (size_t nth = 1; !ends && nth < 500; nth++) {
        struct stage stage;
        stage_open(&stage);
        stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->value = 175;
        leave(&stage, "1-1-1.journal", NULL, limit_at_175);
        struct wg_restore_summary summary;
        fake_world_now = &stage.world;
        wg__alloc_fail_from(nth);
        (void)wg__restore_stale_setup(stage.scratch.folder, &stage.setup, stage_note, &stage.told,
                                      &summary, NULL);
        ends = wg__alloc_count() < nth;
        wg__alloc_fail_from(0);
        const bool is_back = fabs(stage_knob(&stage, 0, WG_KNOB_POWER_LIMIT)->value - 300) < 1e-9;
        assert_true(is_back || stage_journals(&stage) == 1);
        assert_true(is_back || !ends);
        (void)stage_restore_stale(&stage);
        expect_limit(&stage, 0, 300);
        assert_int_equal(stage_journals(&stage), 0);
        stage_close(&stage);
    }
    assert_true(ends);
}

int main(void)
{
    (void)unsetenv("WATTGOV_VGPU");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stale_journal_is_worked_off_once),
        cmocka_unit_test(each_moment_of_death_gives_the_original_back),
        cmocka_unit_test(the_order_is_what_raises_first_and_clocks_before_limits),
        cmocka_unit_test(one_that_fails_stops_no_other_and_stays_in_the_journal),
        cmocka_unit_test(one_that_depends_on_another_is_tried_again_after_it),
        cmocka_unit_test(a_device_that_hangs_costs_its_own_settings_only),
        cmocka_unit_test(a_device_that_is_gone_is_told_and_waited_for),
        cmocka_unit_test(an_earlier_boot_is_dropped_and_sets_nothing),
        cmocka_unit_test(another_virtual_machine_is_left_alone_and_one_that_has_ended_is_dropped),
        cmocka_unit_test(one_that_was_cut_off_in_its_header_is_removed_anywhere),
        cmocka_unit_test(what_is_malformed_or_newer_is_told_and_left_in_place),
        cmocka_unit_test(what_somebody_holds_is_left_alone),
        cmocka_unit_test(two_that_restore_exclude_each_other),
        cmocka_unit_test(without_a_journal_no_device_is_opened_and_no_file_made),
        cmocka_unit_test(a_stale_journal_is_restored_before_its_knob_is_taken),
        cmocka_unit_test(a_knob_whose_stale_journal_cannot_be_worked_off_is_not_taken),
        cmocka_unit_test(the_guard_tries_until_all_is_back),
        cmocka_unit_test(the_guards_patience_ends_and_leaves_the_journal),
        cmocka_unit_test(the_guard_finds_a_device_that_comes_back),
        cmocka_unit_test(every_failure_of_memory_leaves_the_journal_or_restores),
    };
    return run_tests(tests);
}
