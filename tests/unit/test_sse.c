/* SPDX-License-Identifier: MIT
 *
 * Server-sent events: the examples of the standard, every cut into pieces, bounds, memory.
 */
#include "net/sse.h"

#include <string.h>

#include "base/alloc.h"
#include "support/check.h"

static void take(void *context, const char *data, size_t length)
{
    struct wg_buffer *out = context;
    assert_int_equal(data[length], '\0');
    wg__buffer_append(out, data, length);
    wg__buffer_puts(out, "|");
}

static void expect(const char *text, const char *expected)
{
    const size_t length = strlen(text);
    for (size_t piece = 1; piece <= length; piece++) {
        struct wg_sse sse;
        struct wg_buffer out;
        wg__sse_init(&sse);
        wg__buffer_init(&out);
        wg__buffer_puts(&out, "");
        for (size_t at = 0; at < length; at += piece)
            assert_true(wg__sse_push(&sse, text + at, length - at < piece ? length - at : piece,
                                     take, &out));
        assert_string_equal(out.data, expected);
        wg__buffer_fini(&out);
        wg__sse_fini(&sse);
    }
}

static void events_are_the_same_however_the_bytes_come(void **state)
{
    (void)state;
    expect("data: YHOO\ndata: +2\ndata: 10\n\n", "YHOO\n+2\n10|");
    expect(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third "
           "event\n\n",
           "first event|second event| third event|");
    expect("data\n\ndata\ndata\n\ndata:", "|\n|");
    expect("data:test\n\ndata: test\n\n", "test|test|");
    expect("data: a\r\n\r\ndata: b\r\rdata: c\n\n", "a|b|c|");
    expect("\xEF\xBB\xBF"
           "data: a\n\n",
           "a|");
    expect("event: x\nretry: 5\n\n", "");
    expect("data: not ended\n", "");
    expect("database: x\n\n", "");
}

static void a_stream_that_begins_anew_forgets_the_old_one(void **state)
{
    (void)state;
    struct wg_sse sse;
    struct wg_buffer out;
    wg__sse_init(&sse);
    wg__buffer_init(&out);
    assert_true(wg__sse_push(&sse, "data: old\nda", 12, take, &out));
    wg__sse_restart(&sse);
    assert_true(wg__sse_push(&sse,
                             "\xEF\xBB\xBF"
                             "data: new\n\n",
                             14, take, &out));
    assert_string_equal(out.data, "new|");
    wg__buffer_fini(&out);
    wg__sse_fini(&sse);
}

static void an_event_beyond_the_bound_ends_it(void **state)
{
    (void)state;
    struct wg_sse sse;
    struct wg_buffer out;
    wg__sse_init(&sse);
    wg__buffer_init(&out);
    char line[1024];
    (void)snprintf(line, sizeof line, "data: %01016d\n", 0);
    size_t pushed = 0;
    while (pushed < 4 * (size_t)WG_SSE_EVENT_MAX &&
           wg__sse_push(&sse, line, sizeof line - 1, take, &out))
        pushed += sizeof line - 1;
    assert_in_range(pushed, WG_SSE_EVENT_MAX / 2, WG_SSE_EVENT_MAX + (1 << 16));
    assert_false(wg__sse_push(&sse, "\n\n", 2, take, &out));
    wg__sse_fini(&sse);
    wg__sse_init(&sse);
    memset(line, 'x', sizeof line);
    pushed = 0;
    while (pushed < 4 * (size_t)WG_SSE_EVENT_MAX &&
           wg__sse_push(&sse, line, sizeof line, take, &out))
        pushed += sizeof line;
    assert_in_range(pushed, WG_SSE_EVENT_MAX / 2, WG_SSE_EVENT_MAX + (1 << 16));
    wg__sse_fini(&sse);
    wg__buffer_fini(&out);
}

static void every_failing_allocation_ends_it_and_leaks_nothing(void **state)
{
    (void)state;
    size_t failures = 0;
    for (size_t nth = 1;; nth++) {
        struct wg_sse sse;
        struct wg_buffer out;
        wg__sse_init(&sse);
        wg__buffer_init(&out);
        wg__alloc_fail_from(nth);
        const bool is_whole = wg__sse_push(&sse, "data: a\n\n", 9, take, &out);
        wg__alloc_fail_from(0);
        const bool is_told = out.length == 2;
        wg__buffer_fini(&out);
        wg__sse_fini(&sse);
        if (is_whole && is_told)
            break;
        failures++;
    }
    assert_int_equal(failures, 3); /* line, data, our own buffer */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_the_same_however_the_bytes_come),
        cmocka_unit_test(a_stream_that_begins_anew_forgets_the_old_one),
        cmocka_unit_test(an_event_beyond_the_bound_ends_it),
        cmocka_unit_test(every_failing_allocation_ends_it_and_leaks_nothing),
    };
    return run_tests(tests);
}
