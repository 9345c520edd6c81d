/* SPDX-License-Identifier: MIT
 *
 * Fields of CSV that is written: our own reader must find them again.
 */
#include "base/csv_write.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/csv.h"
#include "support/check.h"

static void plain_fields_stay_as_they_are(void **state)
{
    (void)state;
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__csv_put(&out, "fp16 x;y");
    assert_string_equal(out.data, "fp16 x;y");
    wg__buffer_fini(&out);
}

static void the_reader_finds_every_field_again(void **state)
{
    (void)state;
    static const char *const texts[] = {"a",          "a,b",    "\"", "say \"x\", \"y\"",
                                        "two\nlines", "cr\rlf", "",   "end,"};
    enum { COUNT = sizeof texts / sizeof *texts };
    struct wg_buffer out;
    wg__buffer_init(&out);
    for (size_t row = 0; row < 2; row++) {
        for (size_t i = 0; i < COUNT; i++) {
            if (row == 0)
                wg__buffer_printf(&out, "c%zu", i);
            else
                wg__csv_put(&out, texts[i]);
            wg__buffer_puts(&out, i + 1 < COUNT ? "," : "\n");
        }
    }
    struct wg_csv *csv = NULL;
    bool has_record = false;
    assert_int_equal(wg__csv_open_memory(&csv, "t.csv", out.data, out.length, NULL), WG_OK);
    assert_int_equal(wg__csv_next(csv, &has_record, NULL), WG_OK);
    assert_true(has_record);
    for (size_t i = 0; i < COUNT; i++)
        assert_string_equal(wg__csv_text(csv, i), texts[i]);
    wg__csv_close(csv);
    wg__buffer_fini(&out);
}

static void numbers_read_back_the_same(void **state)
{
    (void)state;
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__csv_put_double(&out, 0.1);
    wg__buffer_puts(&out, ",");
    wg__csv_put_double(&out, 2035200);
    assert_string_equal(out.data, "0.1,2035200");
    wg__buffer_fini(&out);
}

static void a_failed_buffer_stays_failed(void **state)
{
    (void)state;
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__alloc_fail_from(1);
    wg__csv_put(&out, "a,b");
    wg__alloc_fail_from(0);
    wg__csv_put(&out, "c");
    assert_true(out.failed);
    wg__buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_fields_stay_as_they_are),
        cmocka_unit_test(the_reader_finds_every_field_again),
        cmocka_unit_test(numbers_read_back_the_same),
        cmocka_unit_test(a_failed_buffer_stays_failed),
    };
    return run_tests(tests);
}
