/* SPDX-License-Identifier: MIT
 *
 * OpenAI's completions: bodies of requests, pieces of answers.
 */
#include "net/openai.h"

#include <string.h>

#include "support/check.h"

static void bodies_ask_for_what_is_wanted(void **state)
{
    (void)state;
    struct wg_buffer out;
    wg__buffer_init(&out);
    const struct wg_openai_request plain = {.model = "m", .prompt = "say \"a\"", .max_tokens = 5};
    wg__openai_write(&out, &plain);
    assert_string_equal(out.data, "{\"model\":\"m\",\"prompt\":\"say \\\"a\\\"\",\"max_tokens\":5,"
                                  "\"temperature\":0}");
    out.length = 0;
    const struct wg_openai_request chat = {
        .model = "m", .prompt = "p", .max_tokens = 5, .is_chat = true, .is_streaming = true};
    wg__openai_write(&out, &chat);
    assert_string_equal(out.data,
                        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"p\"}],"
                        "\"max_tokens\":5,\"temperature\":0,\"stream\":true,\"stream_options\":"
                        "{\"include_usage\":true}}");
    wg__buffer_fini(&out);
}

static void pieces_have_text_tokens_or_the_end(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool has_text, is_done;
        uint64_t tokens;
    } cases[] = {
        {"[DONE]", false, true, 0},
        {"{\"choices\":[{\"text\":\"a\"}]}", true, false, 0},
        {"{\"choices\":[{\"text\":\"\"}]}", false, false, 0},
        {"{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}", true, false, 0},
        {"{\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}", false, false, 0},
        {"{\"choices\":[{\"delta\":{\"content\":null,\"reasoning_content\":\"h\"}}]}", true, false,
         0},
        {"{\"choices\":[{\"message\":{\"content\":\"a\"}}],\"usage\":{\"completion_tokens\":7}}",
         true, false, 7},
        {"{\"choices\":[],\"usage\":{\"completion_tokens\":9}}", false, false, 9},
        {"{\"choices\":[],\"usage\":{\"completion_tokens\":-9}}", false, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wg_openai_piece piece;
        char why[64];
        assert_true(wg__openai_read(&piece, cases[i].text, strlen(cases[i].text), why, sizeof why));
        assert_int_equal(piece.has_text, cases[i].has_text);
        assert_int_equal(piece.is_done, cases[i].is_done);
        assert_int_equal(piece.tokens, cases[i].tokens);
    }
}

static void what_is_no_piece_says_why(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{", "no JSON"},
        {"", "no JSON"},
        {"[]", "no list 'choices'"},
        {"{\"choices\":3}", "no list 'choices'"},
        {"{\"error\":{\"message\":\"too busy\"}}", "too busy"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wg_openai_piece piece;
        char why[64] = "";
        assert_false(wg__openai_read(&piece, cases[i][0], strlen(cases[i][0]), why, sizeof why));
        assert_non_null(strstr(why, cases[i][1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_ask_for_what_is_wanted),
        cmocka_unit_test(pieces_have_text_tokens_or_the_end),
        cmocka_unit_test(what_is_no_piece_says_why),
    };
    return run_tests(tests);
}
