/* SPDX-License-Identifier: MIT
 *
 * What wg_machine_explain says, for machines of fake devices.
 */
#include "support/fake_machine.h"

static void nothing_is_missing_where_every_device_has_a_meter(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(2);
    struct wg_machine *machine = open_patient(&world);
    char text[8] = "before";
    assert_int_equal(wg_machine_explain(machine, text, sizeof text), 0);
    assert_string_equal(text, "");
    wg_machine_close(machine);
}

static void a_device_that_is_lost_is_named_once_beside_one_that_works(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(2);
    world.devices[1].probe = FAKE_IS_LOST;
    struct wg_machine *machine = open_patient(&world);
    char text[200];
    static const char expected[] = "gpu1: fakeProbe failed: GPU is lost (15)";
    assert_int_equal(wg_machine_explain(machine, text, sizeof text), strlen(expected));
    assert_string_equal(text, expected);
    wg_machine_close(machine);
}

static void without_devices_each_backend_speaks(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(0);
    world.open_code = WG_EPERM;
    struct wg_machine *machine = open_patient(&world);
    const struct wg_backend_info *backend = wg_machine_backend(machine, 0);
    char text[500];
    const size_t length = wg_machine_explain(machine, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_int_equal(strncmp(text, backend->name, strlen(backend->name)), 0);
    assert_non_null(strstr(text, backend->text));
    wg_machine_close(machine);
}

static void a_short_buffer_gets_the_beginning_and_the_whole_length(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(2);
    world.devices[0].probe = FAKE_IS_LOST;
    world.devices[1].probe = FAKE_IS_LOST;
    struct wg_machine *machine = open_patient(&world);
    char whole[500];
    const size_t length = wg_machine_explain(machine, whole, sizeof whole);
    assert_non_null(strstr(whole, "\ngpu1: ")); /* a line each */
    for (size_t size = 0; size < sizeof whole; size++) {
        char text[sizeof whole + 1];
        memset(text, '#', sizeof text);
        assert_int_equal(wg_machine_explain(machine, text, size), length);
        assert_int_equal(text[size], '#'); /* nothing behind the room */
        if (size > 0) {
            const size_t shown = length < size ? length : size - 1;
            assert_int_equal(strlen(text), shown);
            assert_int_equal(memcmp(text, whole, shown), 0);
        }
    }
    wg_machine_close(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_missing_where_every_device_has_a_meter),
        cmocka_unit_test(a_device_that_is_lost_is_named_once_beside_one_that_works),
        cmocka_unit_test(without_devices_each_backend_speaks),
        cmocka_unit_test(a_short_buffer_gets_the_beginning_and_the_whole_length),
    };
    return run_tests(tests);
}
