/* SPDX-License-Identifier: MIT
 *
 * The text buffer: growth, formatting, and the failure that sticks.
 */
#include "base/buffer.h"

#include <string.h>

#include "base/alloc.h"
#include "support/check.h"

static void texts_are_joined_and_ended(void **state)
{
    (void)state;
    struct wg_buffer buffer;
    wg__buffer_init(&buffer);
    wg__buffer_puts(&buffer, "");
    assert_string_equal(buffer.data, "");
    wg__buffer_puts(&buffer, "one ");
    wg__buffer_append(&buffer, "two three", 3);
    wg__buffer_append(&buffer, NULL, 0);
    wg__buffer_printf(&buffer, " %d%s", 3, "!");
    assert_false(buffer.failed);
    assert_string_equal(buffer.data, "one two 3!");
    assert_int_equal(buffer.length, 10);
    wg__buffer_fini(&buffer);
    wg__buffer_fini(&buffer);
    wg__buffer_fini(NULL);
}

static void grows_over_every_length(void **state)
{
    (void)state;
    struct wg_buffer appended;
    wg__buffer_init(&appended);
    for (size_t i = 0; i < 5000; i++) {
        const char byte = (char)('a' + i % 26);
        wg__buffer_append(&appended, &byte, 1);
        assert_int_equal(appended.length, i + 1);
        assert_int_equal(appended.data[i + 1], '\0');
    }
    /* A formatted text that just fits, just does not, and is far too long for what is free. */
    for (int width = 250; width < 260; width++) {
        struct wg_buffer printed;
        wg__buffer_init(&printed);
        wg__buffer_printf(&printed, "%*d", width, 7);
        wg__buffer_printf(&printed, "%s", appended.data);
        assert_false(printed.failed);
        assert_int_equal(printed.length, (size_t)width + 5000);
        assert_string_equal(printed.data + width, appended.data);
        wg__buffer_fini(&printed);
    }
    wg__buffer_fini(&appended);
}

static void every_failing_allocation_sticks(void **state)
{
    (void)state;
    size_t failures = 0;
    for (size_t nth = 1;; nth++) {
        struct wg_buffer buffer;
        wg__buffer_init(&buffer);
        wg__alloc_fail_from(nth);
        for (int i = 0; i < 100; i++)
            wg__buffer_puts(&buffer, "twelve bytes");
        wg__buffer_printf(&buffer, "%2000d", 1);
        wg__alloc_fail_from(0);
        const bool failed = buffer.failed;
        const size_t length = buffer.length;
        wg__buffer_puts(&buffer, "too late");
        wg__buffer_printf(&buffer, "%d", 1);
        assert_int_equal(buffer.failed, failed);
        if (failed)
            assert_int_equal(buffer.length, length);
        if (buffer.data != NULL)
            assert_int_equal(strlen(buffer.data), buffer.length);
        wg__buffer_fini(&buffer);
        if (!failed)
            break;
        failures++;
    }
    assert_in_range(failures, 3, 10);
}

static void a_length_that_overflows_fails(void **state)
{
    (void)state;
    struct wg_buffer buffer;
    wg__buffer_init(&buffer);
    wg__buffer_puts(&buffer, "x");
    wg__buffer_append(&buffer, "y", SIZE_MAX - 1);
    assert_true(buffer.failed);
    assert_string_equal(buffer.data, "x");
    wg__buffer_fini(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_joined_and_ended),
        cmocka_unit_test(grows_over_every_length),
        cmocka_unit_test(every_failing_allocation_sticks),
        cmocka_unit_test(a_length_that_overflows_fails),
    };
    return run_tests(tests);
}
