/* SPDX-License-Identifier: MIT
 *
 * What jobs print, and what regular expressions find in it.
 */
#include "live/progress_match.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "support/check.h"

struct found {
    struct wg_progress_matcher *matcher;
    struct wg_progress_feed feed;
    struct wg_buffer text;
};

static void take(const struct wg_progress_event *event, void *context)
{
    struct found *found = context;
    wg__buffer_printf(&found->text, "%d %g;", (int)event->kind, event->value);
}

static void open_found(struct found *found, const char *step, const char *epoch, const char *metric)
{
    struct wg_error err;
    *found = (struct found){0};
    wg__buffer_init(&found->text);
    wg__buffer_puts(&found->text, "");
    wg__progress_feed_init(&found->feed, take, found, 0);
    if (wg__progress_matcher_new(&found->matcher, step, epoch, metric, &err) != WG_OK)
        fail_msg("%s", err.text);
}

static void see_bytes(struct found *found, const char *line, size_t length)
{
    found->feed.now_ns++;
    wg__progress_matcher_line(found->matcher, &found->feed, line, length);
}

static void see(struct found *found, const char *line)
{
    see_bytes(found, line, strlen(line));
}

static void close_found(struct found *found, const char *expected)
{
    assert_string_equal(found->text.data, expected);
    wg__progress_matcher_free(found->matcher);
    wg__progress_feed_fini(&found->feed);
    wg__buffer_fini(&found->text);
}

/* Without a zero behind it. */
static void put(char *at, const char *text)
{
    while (*text != '\0')
        *at++ = *text++;
}

static void the_first_group_is_the_number(void **state)
{
    (void)state;
    struct found found;
    open_found(&found, "step (\\d+)", "epoch:? *([\\d.]+)", "acc[^=]*=([^ ]+)");
    see(&found, "epoch: 1 step 10 loss 0.5");
    see(&found, "nothing of interest");
    see(&found, "step 20 acc=0.75 acc=0.1");
    see(&found, "acc=nan");
    see(&found, "acc=-inf");
    see(&found, "epoch 1.5");
    close_found(&found, "0 10;1 1;0 20;2 0.75;2 nan;2 -inf;1 1.5;");
}

static void an_expression_without_a_group_counts_its_matches(void **state)
{
    (void)state;
    struct found found;
    open_found(&found, "batch", "^end of epoch", NULL);
    see(&found, "batch done");
    see(&found, "batch batch batch");
    see(&found, "no end of epoch");
    see(&found, "end of epoch");
    see(&found, "end of epoch");
    close_found(&found, "0 1;0 4;1 1;1 2;");
    open_found(&found, "x*", NULL, NULL); /* an empty match moves on */
    see(&found, "axxb");
    close_found(&found, "0 4;");
}

static void progress_bars_of_known_tools_are_read(void **state)
{
    (void)state;
    struct found found;
    open_found(&found, "(\\d+)/\\d+ \\[", NULL, "(?:accuracy|acc): ([\\d.]+)");
    see(&found, " 40%|████      | 40/100 [00:04<00:06,  9.97it/s]");                 /* tqdm */
    see(&found, "\x1b[1m41/100\x1b[0m [32m━━━━\x1b[0m accuracy: 0.9123");            /* Keras 3 */
    see(&found, "Epoch 0:  42%|\x1b[38;2;98;6;224m━━\x1b[0m| 42/100 [00:04<00:06]"); /* Lightning */
    see(&found, "\x1b[2K43/100 [==>...] \x1b]0;title\x07- acc: 0.5");
    see(&found, "\x1b]8;;http://x\x1b\\44/100 [\x1b(B");
    close_found(&found, "0 40;0 41;2 0.9123;0 42;0 43;2 0.5;0 44;");
}

static void what_a_group_finds_must_be_a_number(void **state)
{
    (void)state;
    struct found found;
    open_found(&found, "step (\\S+)|(begin)", NULL, "acc (\\S*)");
    see(&found, "step five");
    see(&found, "step -1");
    see(&found, "begin");
    see(&found, "acc good");
    see(&found, "acc ");
    assert_int_equal(found.feed.rejected_count, 5);
    assert_string_equal(found.feed.rejected, "acc ");
    close_found(&found, "");
}

static void bytes_that_are_no_text_are_looked_at_too(void **state)
{
    (void)state;
    struct found found;
    open_found(&found, "step (\\d+)", NULL, NULL);
    see_bytes(&found, "\xff\xfe\0step 3\xc3 \xe2\x96", 13);
    see_bytes(&found, "\0\0\0\0", 4);
    see_bytes(&found, "\x1b", 1);
    see_bytes(&found, "\x1b[", 2);
    see_bytes(&found, "\x1b[12", 4);
    see_bytes(&found, "\x1b]x\x1b", 4);
    see_bytes(&found, "\x1b(", 2);
    see_bytes(&found, "", 0);
    close_found(&found, "0 3;");
}

static void escape_sequences_are_taken_out(void **state)
{
    (void)state;
    static const struct {
        const char *text, *left;
    } cases[] = {
        {"plain \t text", "plain \t text"},
        {"\x1b[31mred\x1b[0m", "red"},
        {"a\x1b[2Jb\x1b[10;20Hc\x1b[?25ld", "abcd"},
        {"a\x1b]0;a title\ab", "ab"},
        {"a\x1bP+q\x1b\\b", "ab"},
        {"a\x1b(Bb\x1b=c\x1b#8d", "abcd"},
        {"a\x01\x02\x7F"
         "b",
         "ab"},
        {"a\x1b[31", "a"},
        {"a\x1b]0;no end", "a"},
        {"a\x1b", "a"},
        {"\xe2\x96\x88", "\xe2\x96\x88"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        const size_t length = strlen(cases[i].text);
        memcpy(text, cases[i].text, length);
        const size_t left = wg__terminal_strip(text, length);
        text[left] = '\0';
        assert_string_equal(text, cases[i].left);
    }
}

/* (a+)+[bc] takes 2^n steps on n times "a". */
static void an_expression_that_takes_too_long_is_given_up(void **state)
{
    (void)state;
    struct found found;
    open_found(&found, "(a+)+[bc]", NULL, "metric (\\d+)");
    char line[1024];
    memset(line, 'a', sizeof line);
    put(line + sizeof line - 9, " metric 1");
    const uint64_t from_ns = wg__clock_ns();
    for (unsigned i = 0; i < 1000; i++)
        see_bytes(&found, line, sizeof line);
    assert_true(wg__clock_ns() - from_ns < 20000000000U); /* 10 ms a line would be half of that */
    assert_in_range(found.feed.rejected_count, 100, 100); /* then no more */
    assert_string_equal(found.feed.rejected,
                        "(a regular expression is too slow for what the job prints)");
    wg__buffer_fini(&found.text);
    wg__buffer_init(&found.text);
    wg__buffer_puts(&found.text, "");
    see(&found, "metric 2"); /* the others go on */
    close_found(&found, "2 2;");
}

static void a_line_that_matches_forgives_a_slow_one(void **state)
{
    (void)state;
    struct found found;
    open_found(&found, "^(?:(?:a+)+b|(\\d+))", NULL, NULL);
    char line[64];
    memset(line, 'a', sizeof line);
    for (unsigned i = 0; i < 150; i++) {
        see_bytes(&found, line, sizeof line);
        if (i % 50 == 0)
            see(&found, "nothing");
    }
    assert_int_equal(found.feed.rejected_count, 150);
    see(&found, "7");
    close_found(&found, "0 7;");
}

static void a_malformed_expression_is_refused_with_its_place(void **state)
{
    (void)state;
    struct wg_progress_matcher *matcher = NULL;
    struct wg_error err;
    assert_int_equal(wg__progress_matcher_new(&matcher, "step (\\d+", NULL, NULL, &err), WG_EINVAL);
    assert_string_equal(err.text,
                        "--step-regex 'step (\\d+': missing closing parenthesis, at character 10");
    assert_int_equal(wg__progress_matcher_new(&matcher, NULL, "*", NULL, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "--epoch-regex '*': quantifier does not follow"));
    assert_int_equal(wg__progress_matcher_new(&matcher, NULL, NULL, "acc", &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "--metric-regex 'acc': has no group"));
    assert_int_equal(wg__progress_matcher_new(&matcher, "\xff", NULL, NULL, &err), WG_EINVAL);
    assert_int_equal(wg__progress_matcher_new(&matcher, "\\C", NULL, NULL, &err), WG_EINVAL);
    assert_null(matcher);
}

static void without_memory_it_says_so(void **state)
{
    (void)state;
    struct wg_error err;
    bool has_memory = false;
    for (size_t nth = 1; !has_memory; nth++) {
        assert_true(nth < 1000);
        struct wg_progress_matcher *matcher = NULL;
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__progress_matcher_new(&matcher, "a(b)", "c", "(d)", &err);
        wg__alloc_fail_from(0);
        has_memory = code == WG_OK;
        assert_true(has_memory || code == WG_ENOMEM);
        wg__progress_matcher_free(matcher);
    }
    /* Matching needs some too, for long subjects; without, the line is left. */
    struct found found;
    open_found(&found, "(?:(\\d)|x|(?:y)*)+z", NULL, NULL);
    char line[4096];
    memset(line, 'x', sizeof line);
    wg__alloc_fail_from(1);
    see_bytes(&found, line, sizeof line);
    wg__alloc_fail_from(0);
    assert_int_equal(found.feed.rejected_count, 1);
    close_found(&found, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_group_is_the_number),
        cmocka_unit_test(an_expression_without_a_group_counts_its_matches),
        cmocka_unit_test(progress_bars_of_known_tools_are_read),
        cmocka_unit_test(what_a_group_finds_must_be_a_number),
        cmocka_unit_test(bytes_that_are_no_text_are_looked_at_too),
        cmocka_unit_test(escape_sequences_are_taken_out),
        cmocka_unit_test(an_expression_that_takes_too_long_is_given_up),
        cmocka_unit_test(a_line_that_matches_forgives_a_slow_one),
        cmocka_unit_test(a_malformed_expression_is_refused_with_its_place),
        cmocka_unit_test(without_memory_it_says_so),
    };
    return run_tests(tests);
}
