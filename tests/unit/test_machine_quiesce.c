/* SPDX-License-Identifier: MIT
 *
 * Taking turns at a device: quiesce and resume (field report 38), reads in a sampler's own thread,
 * and all of them at once.
 */
#include "support/fake_machine.h"

/* -- Quiesce (field report 38) ------------------------------------------------------------------
 */

static void quiesce_closes_every_handle_and_resume_finds_the_devices_again(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(3);
    world.devices[2].probe = FAKE_IS_LOST;
    struct wg_machine *machine = open_patient(&world);
    struct wg_error err = {0};
    assert_int_equal(wg_machine_resume(machine, &err), WG_OK); /* nothing to do */
    assert_false(wg__machine_is_quiescent(machine));
    assert_int_equal(wg_machine_quiesce(machine, &err), WG_OK);
    assert_true(wg__machine_is_quiescent(machine));
    assert_int_equal(atomic_load(&world.releases), 3);
    expect_failure(machine, 0, WG_ESTATE, "gpu0: its handles are closed (quiesce) until resume");
    struct wg_sample sample;
    assert_int_equal(wg__device_read_blocking(wg_machine_device(machine, 0), 1, &sample, &err),
                     WG_ESTATE);
    assert_int_equal(wg_machine_quiesce(machine, &err), WG_OK); /* and not released twice */
    assert_int_equal(atomic_load(&world.releases), 3);

    world.devices[1].reopen = FAKE_IS_LOST;
    world.devices[2].probe = FAKE_WORKS; /* the reset has mended it */
    const struct wg_device_info *before = info_of(machine, 1);
    assert_int_equal(wg_machine_resume(machine, &err), WG_ELOST);
    assert_string_equal(err.text, "gpu1: fakeReopen failed: GPU is lost (15)");
    assert_false(wg__machine_is_quiescent(machine));
    expect_power(machine, 0, 100.0);
    assert_int_equal(info_of(machine, 1)->state, WG_ELOST);
    expect_failure(machine, 1, WG_ELOST, "gpu1: fakeReopen failed");
    assert_int_equal(info_of(machine, 2)->state, WG_OK);
    expect_power(machine, 2, 102.0);
    assert_int_equal(before->state, WG_OK); /* an info that somebody holds does not change */
    assert_string_equal(before->label, info_of(machine, 1)->label);

    assert_int_equal(wg_machine_quiesce(machine, &err), WG_OK);
    world.devices[1].reopen = FAKE_WORKS;
    assert_int_equal(wg_machine_resume(machine, &err), WG_OK);
    expect_power(machine, 1, 101.0);
    assert_int_equal(info_of(machine, 1)->state, WG_OK);
    wg_machine_close(machine);
    assert_int_equal(atomic_load(&world.destroyed), 3);
}

static void quiesce_names_the_devices_whose_calls_hang(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(4);
    world.devices[1].read = FAKE_HANGS;
    world.devices[2].release = FAKE_HANGS;
    struct wg_machine *machine = open_hanging(&world);
    expect_failure(machine, 1, WG_ETIMEOUT, "fakeRead");
    struct wg_error err = {0};
    assert_int_equal(wg_machine_quiesce(machine, &err), WG_ETIMEOUT);
    assert_non_null(strstr(err.text, "gpu1: fakeRead has not returned for "));
    assert_non_null(strstr(err.text, " s (also: gpu2)"));
    assert_int_equal(atomic_load(&world.releases), 2);
    gate_open(&world.gate);
    while (atomic_load(&wg_machine_device(machine, 1)->is_abandoned) ||
           atomic_load(&wg_machine_device(machine, 2)->is_abandoned))
        sched_yield();
    assert_int_equal(wg_machine_quiesce(machine, &err), WG_OK); /* they answer by now */
    assert_int_equal(atomic_load(&world.releases), 4);
    assert_int_equal(wg_machine_resume(machine, &err), WG_OK);
    expect_power(machine, 1, 101.0);
    expect_power(machine, 2, 102.0);
    wg_machine_close(machine);
}

/* -- A sampler's own thread ---------------------------------------------------------------------
 */

struct reader {
    struct wg_device *device;
    struct wg_sample sample;
    struct wg_error err;
    enum wg_code code;
};

static void *read_blocking(void *context)
{
    struct reader *reader = context;
    reader->code =
        wg__device_read_blocking(reader->device, UINT32_MAX, &reader->sample, &reader->err);
    return NULL;
}

static void a_blocking_read_that_is_given_up_keeps_its_device_until_it_returns(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(2);
    struct wg_machine *machine = open_hanging(&world);
    struct reader reader = {.device = wg_machine_device(machine, 0)};
    (void)read_blocking(&reader);
    assert_int_equal(reader.code, WG_OK);
    check_close(reader.sample.values[WG_METRIC_POWER_W], 100.0, 0.0);
    assert_int_equal(wg__machine_call_timeout_ns(machine), HANG_MS * 1000000ULL);

    world.devices[0].read = FAKE_HANGS;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_blocking, &reader), 0);
    gate_await_waiting(&world.gate);
    struct wg_error err = {0};
    wg__device_abandon(reader.device, 7500000000U, &err);
    assert_int_equal(err.code, WG_ETIMEOUT);
    assert_string_equal(err.text, "gpu0: fakeRead has not returned for 7.5 s");
    struct reader other = {.device = reader.device};
    (void)read_blocking(&other);
    assert_int_equal(other.code, WG_ESTATE);
    assert_string_equal(other.err.text, "gpu0: an earlier call still hangs");
    expect_failure(machine, 0, WG_ETIMEOUT, "gpu0: fakeRead has not returned for ");
    expect_power(machine, 1, 101.0);
    wg_machine_close(machine);
    assert_int_equal(atomic_load(&world.destroyed), 1);
    gate_open(&world.gate);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(reader.code, WG_OK);
    assert_int_equal(atomic_load(&world.destroyed), 2); /* by the thread that came last */
}

static void errors_of_blocking_reads_name_the_device(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(1);
    world.devices[0].read = FAKE_IS_LOST;
    struct wg_machine *machine = open_patient(&world);
    struct reader reader = {.device = wg_machine_device(machine, 0)};
    (void)read_blocking(&reader);
    assert_int_equal(reader.code, WG_ELOST);
    assert_int_equal(reader.err.code, WG_ELOST);
    assert_string_equal(reader.err.text, "gpu0: fakeRead failed: GPU is lost (15)");
    wg_machine_close(machine);
}

static void *read_often(void *context)
{
    struct reader *reader = context;
    for (int i = 0; i < 300 && (reader->code == WG_OK || reader->code == WG_ESTATE); i++)
        reader->code =
            i % 2 == 0 ? wg__device_read_blocking(reader->device, UINT32_MAX, &reader->sample,
                                                  &reader->err)
                       : wg_device_read(reader->device, UINT32_MAX, &reader->sample, &reader->err);
    return NULL;
}

/* The fake asserts that it is open when read and released once. */
static void readers_and_quiesce_take_turns(void **state)
{
    (void)state;
    enum { READERS = 3 };
    struct fake_world world = fake_world_of(1);
    struct wg_machine *machine = open_patient(&world);
    struct reader readers[READERS];
    pthread_t threads[READERS];
    for (size_t i = 0; i < READERS; i++) {
        readers[i] = (struct reader){.device = wg_machine_device(machine, 0)};
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, &readers[i]), 0);
    }
    for (int i = 0; i < 50; i++) {
        assert_int_equal(wg_machine_quiesce(machine, NULL), WG_OK);
        assert_int_equal(wg_machine_resume(machine, NULL), WG_OK);
        assert_int_equal(info_of(machine, 0)->state, WG_OK);
    }
    for (size_t i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(readers[i].code == WG_OK || readers[i].code == WG_ESTATE);
    }
    assert_int_equal(atomic_load(&world.releases), 50);
    wg_machine_close(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiesce_closes_every_handle_and_resume_finds_the_devices_again),
        cmocka_unit_test(quiesce_names_the_devices_whose_calls_hang),
        cmocka_unit_test(a_blocking_read_that_is_given_up_keeps_its_device_until_it_returns),
        cmocka_unit_test(errors_of_blocking_reads_name_the_device),
        cmocka_unit_test(readers_and_quiesce_take_turns),
    };
    return run_tests(tests);
}
