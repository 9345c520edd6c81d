/* SPDX-License-Identifier: MIT
 *
 * Lists of processes beside a live view: a GPU that hangs costs its own list and no time.
 */
#include "cli/process_reader.h"

#include "base/alloc.h"
#include "support/check.h"
#include "support/fake_machine.h"

static const uint64_t long_ns = 60000000000;

static struct fake_world three_gpus(void)
{
    struct fake_world world = fake_world_of(4);
    world.devices[3].kind = WG_DEVICE_CPU;
    return world;
}

static struct wg_process_reader *start(struct wg_machine *machine)
{
    struct wg_process_reader *reader = NULL;
    struct wg_error err;
    if (wg__process_reader_start(&reader, machine, false, NULL, &err) != WG_OK)
        fail_msg("%s", err.text);
    return reader;
}

static void each_gpu_has_its_list_and_nothing_else_has_one(void **state)
{
    (void)state;
    struct fake_world world = three_gpus();
    struct wg_machine *machine = open_patient(&world);
    struct wg_process_reader *reader = start(machine);
    struct wg_process_list lists[4] = {{0}};
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 4; i++)
            wg__process_reader_ask(reader, i);
        wg__process_reader_wait(reader, long_ns);
        for (size_t i = 0; i < 4; i++) {
            wg__process_reader_get(reader, i, &lists[i]);
            const bool is_gpu =
                wg_device_get_info(wg_machine_device(machine, i))->kind == WG_DEVICE_GPU;
            assert_int_equal(lists[i].count, is_gpu ? FAKE_PROCESSES : 0);
            if (is_gpu)
                assert_int_equal(lists[i].items[2].process.pid, 1002);
        }
    }
    const struct wg_process_line *const before = lists[0].items;
    wg__process_reader_get(reader, 0, &lists[0]); /* nothing new: it stays */
    assert_ptr_equal(lists[0].items, before);
    assert_true(wg__process_reader_stop(reader));
    for (size_t i = 0; i < 4; i++)
        wg__process_list_fini(&lists[i]);
    wg_machine_close(machine);
    assert_true(wg__process_reader_stop(NULL));
}

static void one_that_hangs_holds_up_neither_the_others_nor_the_end(void **state)
{
    (void)state;
    struct fake_world world = three_gpus();
    struct wg_machine *machine = open_patient(&world); /* a call may take a minute */
    struct wg_process_reader *reader = start(machine);
    struct wg_process_list lists[2] = {{0}};
    const uint64_t start_ns = wg__clock_ns();
    atomic_store(&world.devices[0].read, FAKE_HANGS);
    wg__process_reader_ask(reader, 0);
    gate_await_waiting(&world.gate);
    wg__process_reader_wait(reader, 1000000);
    wg__process_reader_ask(reader, 0); /* is not asked again, nor waited for */
    wg__process_reader_ask(reader, 1);
    wg__process_reader_wait(reader, long_ns);
    for (size_t i = 0; i < 2; i++)
        wg__process_reader_get(reader, i, &lists[i]);
    assert_int_equal(lists[0].count, 0);
    assert_int_equal(lists[1].count, FAKE_PROCESSES);
    assert_true(wg__clock_ns() - start_ns < long_ns / 2);
    /* It answers after all, and the next list is whole. */
    atomic_store(&world.devices[0].read, FAKE_WORKS);
    gate_open(&world.gate);
    while (lists[0].count == 0) {
        assert_true(wg__clock_ns() - start_ns < long_ns);
        wg__process_reader_ask(reader, 0);
        wg__process_reader_wait(reader, long_ns);
        wg__process_reader_get(reader, 0, &lists[0]);
    }
    assert_true(wg__process_reader_stop(reader));
    for (size_t i = 0; i < 2; i++)
        wg__process_list_fini(&lists[i]);
    wg_machine_close(machine);
}

/* The reader of a call that never returns stays, as its machine does: a leak checker finds both
 * through the thread that still runs. */
static void a_call_that_never_returns_is_left_behind(void **state)
{
    (void)state;
    static struct fake_world world;
    world = three_gpus();
    struct wg_machine *machine = open_patient(&world);
    struct wg_process_reader *reader = start(machine);
    atomic_store(&world.devices[2].read, FAKE_HANGS);
    wg__process_reader_ask(reader, 2);
    gate_await_waiting(&world.gate);
    const uint64_t start_ns = wg__clock_ns();
    assert_false(wg__process_reader_stop(reader));
    assert_true(wg__clock_ns() - start_ns < long_ns / 2);
}

static void without_memory_there_is_no_reader(void **state)
{
    (void)state;
    struct fake_world world = three_gpus();
    struct wg_machine *machine = open_patient(&world);
    enum wg_code code = WG_ENOMEM;
    for (size_t nth = 1; code != WG_OK && nth < 10; nth++) {
        struct wg_process_reader *reader = NULL;
        struct wg_error err;
        wg__alloc_fail_from(nth);
        code = wg__process_reader_start(&reader, machine, false, NULL, &err);
        wg__alloc_fail_from(0);
        assert_int_equal(code, nth < 3 ? WG_ENOMEM : WG_OK);
        assert_true(wg__process_reader_stop(reader));
    }
    assert_int_equal(code, WG_OK);
    wg_machine_close(machine);
}

static void without_memory_a_list_is_empty_and_comes_with_the_next(void **state)
{
    (void)state;
    struct fake_world world = three_gpus();
    struct wg_machine *machine = open_patient(&world);
    struct wg_process_list list = {0};
    enum wg_code code = WG_ENOMEM;
    size_t failures = 0;
    for (size_t nth = 1; code != WG_OK && nth < 10; nth++) {
        struct wg_error err;
        wg__process_list_fini(&list);
        wg__alloc_fail_from(nth);
        code = wg__process_list_read(&list, wg_machine_device(machine, 0), true, NULL, &err);
        wg__alloc_fail_from(0);
        if (code != WG_OK) {
            failures++;
            assert_int_equal(code, WG_ENOMEM);
            assert_int_equal(list.count, 0);
        }
    }
    assert_int_equal(code, WG_OK);
    assert_int_equal(list.count, FAKE_PROCESSES);
    assert_in_range(failures, 2, 8);
    wg__process_list_fini(&list);
    wg_machine_close(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gpu_has_its_list_and_nothing_else_has_one),
        cmocka_unit_test(one_that_hangs_holds_up_neither_the_others_nor_the_end),
        cmocka_unit_test(without_memory_there_is_no_reader),
        cmocka_unit_test(without_memory_a_list_is_empty_and_comes_with_the_next),
        cmocka_unit_test(a_call_that_never_returns_is_left_behind), /* the last: its world stays */
    };
    return run_tests(tests);
}
