/* SPDX-License-Identifier: MIT
 *
 * gRPC's frame, status and message, against the bytes that its document gives.
 */
#include "net/grpc.h"

#include <string.h>

#include "support/check.h"

static void a_prefix_is_a_zero_and_a_big_endian_length(void **state)
{
    (void)state;
    uint8_t prefix[WG_GRPC_PREFIX_SIZE];
    wg__grpc_prefix(prefix, 0x01020304);
    assert_memory_equal(prefix, "\0\1\2\3\4", sizeof prefix);
}

static void a_whole_frame_gives_its_message(void **state)
{
    (void)state;
    const uint8_t *message = NULL;
    size_t length = 0;
    assert_null(wg__grpc_message("\0\0\0\0\3abc", 8, &message, &length));
    assert_int_equal(length, 3);
    assert_memory_equal(message, "abc", 3);
    assert_null(wg__grpc_message("\0\0\0\0\0", 5, &message, &length));
    assert_int_equal(length, 0);
}

static void a_damaged_frame_says_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        const char *says;
    } cases[] = {
        {"", 0, "shorter"},
        {"\0\0\0\0", 4, "shorter"},
        {"\1\0\0\0\0", 5, "compressed"},
        {"\0\0\0\0\4abc", 8, "cut off"},
        {"\0\377\377\377\377abc", 8, "cut off"},
        {"\0\0\0\0\2abc", 8, "behind"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint8_t *message = NULL;
        size_t length = 0;
        const char *wrong = wg__grpc_message(cases[i].bytes, cases[i].length, &message, &length);
        assert_non_null(wrong);
        assert_non_null(strstr(wrong, cases[i].says));
        assert_null(message);
    }
}

static void messages_are_percent_decoded_and_cut(void **state)
{
    (void)state;
    char out[16];
    wg__grpc_decode(out, sizeof out, "50%25 of %C3%A4", 15);
    assert_string_equal(out, "50% of \xC3\xA4");
    wg__grpc_decode(out, sizeof out, "a%4", 3);
    assert_string_equal(out, "a%4");
    wg__grpc_decode(out, sizeof out, "%zz%", 4);
    assert_string_equal(out, "%zz%");
    wg__grpc_decode(out, sizeof out, "%00x", 4);
    assert_string_equal(out, "?x");
    wg__grpc_decode(out, 4, "abcdef", 6);
    assert_string_equal(out, "abc");
}

static void deadlines_have_at_most_eight_digits(void **state)
{
    (void)state;
    char out[WG_GRPC_TIMEOUT_SIZE];
    wg__grpc_timeout(out, 1.5);
    assert_string_equal(out, "1500m");
    wg__grpc_timeout(out, 0.0001);
    assert_string_equal(out, "1m");
    wg__grpc_timeout(out, 99999.999);
    assert_string_equal(out, "99999999m");
    wg__grpc_timeout(out, 1e6);
    assert_string_equal(out, "1000000S");
    wg__grpc_timeout(out, 1e12);
    assert_string_equal(out, "99999999S");
}

static void statuses_have_words(void **state)
{
    (void)state;
    assert_string_equal(wg__grpc_status_word(WG_GRPC_OK), "OK");
    assert_string_equal(wg__grpc_status_word(WG_GRPC_UNAVAILABLE), "UNAVAILABLE");
    assert_string_equal(wg__grpc_status_word(WG_GRPC_STATUS_MAX), "UNAUTHENTICATED");
    assert_string_equal(wg__grpc_status_word(17), "an unknown status");
    assert_string_equal(wg__grpc_status_word(-1), "an unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prefix_is_a_zero_and_a_big_endian_length),
        cmocka_unit_test(a_whole_frame_gives_its_message),
        cmocka_unit_test(a_damaged_frame_says_what_is_wrong),
        cmocka_unit_test(messages_are_percent_decoded_and_cut),
        cmocka_unit_test(deadlines_have_at_most_eight_digits),
        cmocka_unit_test(statuses_have_words),
    };
    return run_tests(tests);
}
