/* SPDX-License-Identifier: MIT
 *
 * Options from a YAML file: every kind of value, and every way to be wrong.
 */
#include "cli/option_file.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "support/check.h"
#include "support/scratch.h"

struct values {
    struct wg_option_list knobs;
    const char *name;
    unsigned max_trials;
    double settle_s;
    bool explain;
    struct wg_option_command command;
};

static const struct wg_option options[] = {
    {.name = "knob", WG_OPTION_LIST(struct values, knobs), .value = "K", .help = "Knobs."},
    {.name = "name", WG_OPTION_STRING(struct values, name), .value = "N", .help = "Name."},
    {.name = "max-trials",
     WG_OPTION_UNSIGNED(struct values, max_trials),
     .value = "N",
     .min = 1,
     .max = 9,
     .help = "Trials."},
    {.name = "settle",
     WG_OPTION_DURATION(struct values, settle_s),
     .value = "TIME",
     .min = 0,
     .max = 60,
     .help = "Settle."},
    {.name = "explain", WG_OPTION_FLAG(struct values, explain), .help = "Explain."},
};
static const struct wg_option_set set = {.command = "test",
                                         .summary = "Test.",
                                         .options = options,
                                         .count = sizeof options / sizeof options[0],
                                         WG_OPTION_COMMAND(struct values, command)};

static enum wg_code read_text(const char *text, struct wg_option_file *file, struct values *values,
                              struct wg_error *err)
{
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "t.yaml");
    enum wg_code code = wg__file_write(path, text, strlen(text), err);
    if (code == WG_OK)
        code = wg__option_file_read(file, path, &set, values, err);
    scratch_close(&scratch);
    return code;
}

static void reads_every_kind(void **state)
{
    (void)state;
    struct wg_option_file file = {0};
    struct values values = {0};
    struct wg_error err = {0};
    const char *text = "knobs:\n"
                       "  gpu_clock:\n"
                       "  batch: [1, 2]\n"
                       "  delay: 1ms,2ms\n"
                       "  kind: {levels: [a, b], role: category, default: b, switch_s: 60}\n"
                       "name: 'it''s'\n"
                       "max_trials: 7\n"
                       "settle: 20ms\n"
                       "explain: yes\n"
                       "command: [run, '{batch}']\n";
    if (read_text(text, &file, &values, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_int_equal(values.knobs.count, 4);
    assert_string_equal(values.knobs.items[0], "gpu_clock");
    assert_string_equal(values.knobs.items[1], "batch=1,2");
    assert_string_equal(values.knobs.items[2], "delay=1ms,2ms");
    assert_string_equal(values.knobs.items[3], "kind=a,b:category:default=b:switch_s=60");
    assert_string_equal(values.name, "it's");
    assert_int_equal(values.max_trials, 7);
    check_close(values.settle_s, 0.02, 1e-12);
    assert_true(values.explain);
    assert_int_equal(values.command.count, 2);
    assert_string_equal(values.command.words[1], "{batch}");
    assert_null(values.command.words[2]);
    wg__option_file_fini(&file);
}

static void a_command_of_one_text_is_the_shells(void **state)
{
    (void)state;
    struct wg_option_file file = {0};
    struct values values = {0};
    struct wg_error err = {0};
    assert_int_equal(read_text("command: run {batch} | cat\nknob: batch=1\n", &file, &values, &err),
                     WG_OK);
    assert_int_equal(values.command.count, 3);
    assert_string_equal(values.command.words[0], "/bin/sh");
    assert_string_equal(values.command.words[2], "run {batch} | cat");
    assert_string_equal(values.knobs.items[0], "batch=1");
    wg__option_file_fini(&file);
}

static void an_empty_file_says_nothing(void **state)
{
    (void)state;
    struct wg_option_file file = {0};
    struct values values = {.max_trials = 5};
    struct wg_error err = {0};
    assert_int_equal(read_text("# nothing\n", &file, &values, &err), WG_OK);
    assert_int_equal(values.max_trials, 5);
    wg__option_file_fini(&file);
}

static void names_line_and_cause(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {{"name: a\nmax_trial: 3\n", "t.yaml:2: unknown key 'max_trial'; did you mean"},
                 {"max_trials: 10\n", "t.yaml:1: --max-trials: "},
                 {"max_trials: {a: 1}\n", "t.yaml:1: max-trials: expected one value"},
                 {"\nexplain: maybe\n", "t.yaml:2: 'explain' is 'maybe'"},
                 {"knobs: {a: {role: [x]}}\n", "role: expected a word or a number"},
                 {"knobs: {a: {rule: x}}\n", "'rule' is not a key of a knob"},
                 {"knobs: {a: [[1]]}\n", "expected a number or a word"},
                 {"knobs: [[a]]\n", "knob: expected a text"},
                 {"command: {a: b}\n", "command: expected a text or a list"},
                 {"command: []\n", "command: expected a text or a list"},
                 {"name: a\nname: b\n", "t.yaml:2: 'name' is given twice"},
                 {"[a]: b\n", "expected a word before the colon"},
                 {"text\n", "expected KEY: VALUE lines"},
                 {"a: b\n---\nc: d\n", "more than one document"},
                 {"a: [\n", "t.yaml:"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wg_option_file file = {0};
        struct values values = {0};
        struct wg_error err = {0};
        assert_int_equal(read_text(cases[i].text, &file, &values, &err), WG_EDATA);
        if (strstr(err.text, cases[i].message) == NULL)
            fail_msg("'%s' says: %s", cases[i].text, err.text);
        wg__option_file_fini(&file);
    }
}

static void survives_a_lack_of_memory(void **state)
{
    (void)state;
    for (size_t nth = 1;; nth++) {
        struct wg_option_file file = {0};
        struct values values = {0};
        struct wg_error err = {0};
        wg__alloc_fail_from(nth);
        const enum wg_code code =
            read_text("knobs: {a: [1, 2]}\ncommand: [run, x]\nname: n\n", &file, &values, &err);
        wg__alloc_fail_from(0);
        wg__option_file_fini(&file);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        assert_true(nth < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_kind),
        cmocka_unit_test(a_command_of_one_text_is_the_shells),
        cmocka_unit_test(an_empty_file_says_nothing),
        cmocka_unit_test(names_line_and_cause),
        cmocka_unit_test(survives_a_lack_of_memory),
    };
    return run_tests(tests);
}
