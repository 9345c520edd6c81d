/* SPDX-License-Identifier: MIT
 *
 * The cursor over protobuf's wire format: every kind of value, and every way to end too early.
 */
#include "model/onnx_wire.h"

#include <string.h>

#include "support/check.h"

/* The file lies at the end of its own memory, so that a sanitizer sees a byte read beyond it. */
static struct wg_wire wire_over(const uint8_t *bytes, size_t length)
{
    return (struct wg_wire){.name = "m", .first = bytes, .at = bytes, .end = bytes + length};
}

#define OVER(...) wire_over((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static struct wg_wire_field next(struct wg_wire *wire)
{
    bool has = false;
    struct wg_error err = {0};
    struct wg_wire_field field = {0};
    if (wg__wire_next(wire, &field, &has, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_true(has);
    return field;
}

static void expect_end(struct wg_wire *wire)
{
    bool has = true;
    struct wg_wire_field field;
    assert_int_equal(wg__wire_next(wire, &field, &has, NULL), WG_OK);
    assert_false(has);
}

static void expect_error(struct wg_wire wire, const char *expected)
{
    bool has = false;
    struct wg_error err = {0};
    struct wg_wire_field field;
    assert_int_equal(wg__wire_next(&wire, &field, &has, &err), WG_EDATA);
    assert_string_equal(err.text, expected);
}

static void reads_each_kind_of_value(void **state)
{
    (void)state;
    struct wg_wire wire = OVER(0x08, 0xac, 0x02,                /* 1: 300 */
                               0x11, 1, 0, 0, 0, 0, 0, 0, 0x80, /* 2: 2^63 + 1 */
                               0x1a, 3, 'a', 'b', 'c',          /* 3: "abc" */
                               0x25, 0, 0, 0x80, 0x3f,          /* 4: 1.0F */
                               0xf8, 0xff, 0xff, 0xff, 0x0f, 0, /* 2^29 - 1: 0 */
                               0x2a, 0,                         /* 5: "" */
                               0x30, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1);
    const struct wg_wire_field varint = next(&wire);
    assert_int_equal(varint.number, 1);
    assert_int_equal(varint.kind, WG_WIRE_VARINT);
    assert_int_equal(varint.value, 300);
    const struct wg_wire_field wide = next(&wire);
    assert_int_equal(wide.kind, WG_WIRE_FIXED64);
    assert_true(wide.value == (UINT64_C(1) << 63) + 1);
    const struct wg_wire_field text = next(&wire);
    assert_int_equal(text.kind, WG_WIRE_BYTES);
    assert_int_equal(text.length, 3);
    assert_memory_equal(text.bytes, "abc", 3);
    assert_int_equal(text.tag - wire.first, 12);
    const struct wg_wire_field narrow = next(&wire);
    assert_int_equal(narrow.kind, WG_WIRE_FIXED32);
    assert_int_equal(narrow.value, 0x3f800000);
    assert_int_equal(next(&wire).number, (1 << 29) - 1);
    assert_int_equal(next(&wire).length, 0);
    assert_true(next(&wire).value == UINT64_MAX); /* -1 as protobuf writes it */
    expect_end(&wire);
}

static void accepts_a_number_in_more_bytes_than_it_needs(void **state)
{
    (void)state;
    struct wg_wire wire = OVER(0x88, 0x00, 0x85, 0x80, 0x00);
    const struct wg_wire_field field = next(&wire);
    assert_int_equal(field.number, 1);
    assert_int_equal(field.value, 5);
}

static void refuses_what_is_cut_off_with_its_offset(void **state)
{
    (void)state;
    expect_error(OVER(0x88), "m: at byte 0: a number runs past the end of the message");
    expect_error(OVER(0x08), "m: at byte 1: a number runs past the end of the message");
    expect_error(OVER(0x08, 0x80), "m: at byte 1: a number runs past the end of the message");
    expect_error(OVER(0x11, 1, 2, 3), "m: at byte 1: 8 bytes run past the end of the message");
    expect_error(OVER(0x25, 1), "m: at byte 1: 4 bytes run past the end of the message");
    expect_error(OVER(0x1a, 99, 1, 2),
                 "m: at byte 1: a length of 99 runs past the end of the message (2 bytes left)");
    expect_error(OVER(0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
                 "m: at byte 1: a length of 18446744073709551615 runs past the end of the message "
                 "(0 bytes left)");
}

static void refuses_what_is_no_field(void **state)
{
    (void)state;
    expect_error(OVER(0x00, 1), "m: at byte 0: a field of number 0, expected 1 .. 2^29 - 1");
    expect_error(OVER(0xf8, 0xff, 0xff, 0xff, 0x1f, 0),
                 "m: at byte 0: a field of number 1073741823, expected 1 .. 2^29 - 1");
    expect_error(OVER(0x0b), "m: at byte 0: field 1 is a group, which ONNX doesn't use");
    expect_error(OVER(0x14), "m: at byte 0: field 2 is a group, which ONNX doesn't use");
    expect_error(OVER(0x0e), "m: at byte 0: field 1 has wire type 6, which doesn't exist");
    expect_error(OVER(0x0f), "m: at byte 0: field 1 has wire type 7, which doesn't exist");
    expect_error(OVER(0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
                 "m: at byte 1: a number of more than 10 bytes");
}

static void counts_packed_and_single_numbers(void **state)
{
    (void)state;
    size_t count = 0;
    struct wg_error err = {0};
    struct wg_wire wire = OVER(0x0a, 4, 1, 0xac, 0x02, 7, /* 1, 300, 7 */
                               0x08, 9,                   /* 9 */
                               0x12, 2, 1, 0x80,          /* the last has no end */
                               0x1a, 6, 1, 2, 3, 4, 5, 6, /* no multiple of 4 */
                               0x22, 0);
    struct wg_wire_field field = next(&wire);
    assert_int_equal(wg__wire_count(&wire, &field, WG_WIRE_VARINT, "x", &count, &err), WG_OK);
    assert_int_equal(count, 3);
    struct wg_wire run = wg__wire_inside(&wire, &field);
    const uint64_t expected[] = {1, 300, 7};
    for (size_t i = 0; i < 3; i++) {
        uint64_t value = 0;
        assert_int_equal(wg__wire_take(&run, WG_WIRE_VARINT, &value, &err), WG_OK);
        assert_int_equal(value, expected[i]);
    }
    field = next(&wire);
    assert_int_equal(wg__wire_count(&wire, &field, WG_WIRE_VARINT, "x", &count, &err), WG_OK);
    assert_int_equal(count, 1);
    assert_int_equal(wg__wire_count(&wire, &field, WG_WIRE_FIXED32, "x", &count, &err), WG_EDATA);
    assert_string_equal(err.text, "m: at byte 6: x has wire type 0, expected 5");
    field = next(&wire);
    assert_int_equal(wg__wire_count(&wire, &field, WG_WIRE_VARINT, "x", &count, &err), WG_EDATA);
    assert_string_equal(err.text, "m: at byte 8: x: its last number has no end");
    field = next(&wire);
    assert_int_equal(wg__wire_count(&wire, &field, WG_WIRE_FIXED32, "x", &count, &err), WG_EDATA);
    assert_string_equal(err.text, "m: at byte 12: x has 6 bytes, no multiple of 4");
    field = next(&wire);
    assert_int_equal(wg__wire_count(&wire, &field, WG_WIRE_FIXED64, "x", &count, &err), WG_OK);
    assert_int_equal(count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_each_kind_of_value),
        cmocka_unit_test(accepts_a_number_in_more_bytes_than_it_needs),
        cmocka_unit_test(refuses_what_is_cut_off_with_its_offset),
        cmocka_unit_test(refuses_what_is_no_field),
        cmocka_unit_test(counts_packed_and_single_numbers),
    };
    return run_tests(tests);
}
