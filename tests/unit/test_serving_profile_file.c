/* SPDX-License-Identifier: MIT
 *
 * Profiles of served models: each field of a right file is made wrong, one by one and in every way
 * that a field can be wrong.
 */
#include "cli/serving_profile_file.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "support/check.h"
#include "support/scratch.h"

enum { TEXT_SIZE = 8192, LINE_SIZE = 160 };

/* One field a line, so that it can be replaced; a letter says what the line holds:
 *   N number, T text, M a map or list begins, L item of a list with a number; '?': may be absent */
static const struct line {
    const char *kind;
    const char *text;
} lines[] = {
    {"T", "name: test-model"},
    {"T?", "source: a measurement"},
    {"N", "max_batch: 8"},
    {"M", "latency:"},
    {"N", "  fixed_s: 0.06"},
    {"N", "  per_row_s: 0.07"},
    {"M", "latency_share:"},
    {"N", "  gpu_clock: 0.6"},
    {"N", "  mem_clock: 0.3"},
    {"N?", "noise: 0.03"},
    {"M", "finetune:"},
    {"N", "  fixed_s: 0.005"},
    {"N", "  per_row_s: 0.0094"},
    {"N?", "  update_s: 0.01"},
    {"M", "interference:"},
    {"N", "  inference: 2"},
    {"N", "  finetune: 3"},
    {"M", "clocks:"},
    {"N?", "  change_s: 0.02"},
    {"N?", "  change_j: 0.1"},
    {"M", "  ladder:"},
    {"", "  -"},
    {"T", "    name: max"},
    {"N", "    gpu_clock: 1"},
    {"N", "    mem_clock: 1"},
    {"N", "    busy_w: 40"},
    {"N", "    idle_w: 12"},
    {"N", "    finetune_w: 42"},
    {"", "  -"},
    {"T", "    name: half"},
    {"N", "    gpu_clock: 0.5"},
    {"N", "    mem_clock: 0.8"},
    {"N", "    busy_w: 20"},
    {"N", "    idle_w: 8"},
    {"N", "    finetune_w: 21"},
    {"", "  -"},
    {"T", "    name: own"},
    {"N", "    gpu_clock: 0.5"},
    {"N", "    mem_clock: 0.5"},
    {"N", "    busy_w: 15"},
    {"N", "    idle_w: 7"},
    {"N", "    finetune_w: 16"},
    {"M?", "    latency:"},
    {"", "      -"},
    {"N", "        batch: 1"},
    {"N", "        s: 0.3"},
    {"", "      -"},
    {"N", "        batch: 8"},
    {"N", "        s: 1.5"},
};
enum { LINE_COUNT = sizeof lines / sizeof *lines };

/* The file with line `at` replaced, or left out for NULL; no line: `at` = LINE_COUNT. */
static void write_text(char out[static TEXT_SIZE], size_t at, const char *replacement)
{
    size_t length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < LINE_COUNT; i++) {
        const char *line = i == at ? replacement : lines[i].text;
        if (line != NULL)
            length += (size_t)snprintf(out + length, TEXT_SIZE - length, "%s\n", line);
    }
}

static enum wg_code parse(const char *text, struct wg_serving_profile *out, struct wg_error *err)
{
    *err = (struct wg_error){0};
    return wg__serving_profile_parse(out, "p.yaml", text, strlen(text), err);
}

/* One line that names file, line and field and says what is expected. */
static void check_refused(const char *text, const char *prefix, const char *key)
{
    struct wg_serving_profile profile = {.max_batch = 77};
    struct wg_error err;
    if (parse(text, &profile, &err) != WG_EDATA)
        fail_msg("accepted, but should not (%s %s):\n%s", prefix, key, text);
    assert_int_equal(profile.max_batch, 77);
    if (strncmp(err.text, prefix, strlen(prefix)) != 0 || strstr(err.text, key) == NULL ||
        (strstr(err.text, "expected") == NULL && strstr(err.text, "is not a") == NULL) ||
        strlen(err.text) > sizeof err.text - 2)
        fail_msg("\"%s\", expected \"%s\" and \"%s\"", err.text, prefix, key);
}

static void key_of(const char *line, char out[static LINE_SIZE])
{
    const char *begin = line + strspn(line, " ");
    (void)snprintf(out, LINE_SIZE, "%.*s", (int)strcspn(begin, ":"), begin);
}

/* Line `at` with `value` behind its colon. */
static void replace_value(size_t at, const char *value, char text[static TEXT_SIZE])
{
    char line[LINE_SIZE];
    (void)snprintf(line, sizeof line, "%.*s: %s", (int)strcspn(lines[at].text, ":"), lines[at].text,
                   value);
    write_text(text, at, line);
}

/* -- Right files ------------------------------------------------------------------------------ */

static void reads_every_field(void **state)
{
    (void)state;
    char text[TEXT_SIZE];
    struct wg_serving_profile profile;
    struct wg_error err;
    write_text(text, LINE_COUNT, NULL);
    if (parse(text, &profile, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_string_equal(profile.name, "test-model");
    assert_string_equal(profile.source, "a measurement");
    assert_int_equal(profile.max_batch, 8);
    check_close(profile.latency.fixed_s, 0.06, 0);
    check_close(profile.latency.per_row_s, 0.07, 0);
    assert_int_equal(profile.latency.point_count, 0);
    check_close(profile.gpu_share, 0.6, 0);
    check_close(profile.mem_share, 0.3, 0);
    check_close(profile.noise, 0.03, 0);
    assert_true(profile.has_finetune);
    check_close(profile.step_fixed_s, 0.005, 0);
    check_close(profile.step_per_row_s, 0.0094, 0);
    check_close(profile.update_s, 0.01, 0);
    check_close(profile.inference_slowdown, 2, 0);
    check_close(profile.finetune_slowdown, 3, 0);
    check_close(profile.ladder.change_s, 0.02, 0);
    check_close(profile.ladder.change_j, 0.1, 0);
    assert_int_equal(profile.ladder.count, 3);
    const struct wg_rung *half = &profile.ladder.rungs[1];
    assert_string_equal(half->name, "half");
    check_close(half->gpu_clock, 0.5, 0);
    check_close(half->mem_clock, 0.8, 0);
    check_close(half->busy_power_w, 20, 0);
    check_close(half->idle_power_w, 8, 0);
    check_close(half->finetune_power_w, 21, 0);
    assert_false(profile.rung_has_latency[0] || profile.rung_has_latency[1]);
    assert_true(profile.rung_has_latency[2]);
    assert_int_equal(profile.rung_latency[2].point_count, 2);
    check_close(profile.rung_latency[2].batch[1], 8, 0);
    check_close(profile.rung_latency[2].time_s[1], 1.5, 0);
}

static void a_small_file_is_enough(void **state)
{
    (void)state;
    struct wg_serving_profile profile;
    struct wg_error err;
    const char *text = "name: a\nmax_batch: 2\nlatency: [{batch: 1, s: 0.1}, {batch: 2, s: 0.1}]\n"
                       "clocks: {ladder: [{name: m, gpu_clock: 1, mem_clock: 1, busy_w: 2, idle_w: "
                       "1}]}\n";
    if (parse(text, &profile, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_false(profile.has_finetune);
    assert_string_equal(profile.source, "");
    check_close(profile.noise, 0, 0);
    check_close(profile.latency.time_s[1], 0.1, 0);
    check_close(profile.ladder.rungs[0].finetune_power_w, 2, 0);
    check_close(profile.inference_slowdown, 1, 0);
}

static void shipped_profiles_are_right(void **state)
{
    (void)state;
    static const char *const names[] = {"orin-efficientnet-b7", "tx2-efficientnet-b4"};
    const char *root = getenv("WATTGOV_SOURCE_ROOT");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[1024];
        struct wg_serving_profile profile;
        struct wg_error err;
        (void)snprintf(path, sizeof path, "%s/data/serving/%s.yaml", root != NULL ? root : ".",
                       names[i]);
        if (wg__serving_profile_read(&profile, path, &err) != WG_OK)
            fail_msg("%s", err.text);
        assert_string_equal(profile.name, names[i]);
        assert_true(profile.has_finetune && profile.ladder.count > 1);
    }
}

/* -- Wrong ones ------------------------------------------------------------------------------- */

static void check_values(size_t at, const char *const *values)
{
    char text[TEXT_SIZE], prefix[LINE_SIZE], key[LINE_SIZE];
    (void)snprintf(prefix, sizeof prefix, "p.yaml:%zu: ", at + 1);
    key_of(lines[at].text, key);
    for (size_t i = 0; values[i] != NULL; i++) {
        replace_value(at, values[i], text);
        check_refused(text, prefix, key);
    }
}

static void every_number_and_text_that_is_wrong_is_told_with_its_line(void **state)
{
    (void)state;
    static const char *const no_numbers[] = {"",        "x",     "-1",  "nan",    ".inf",
                                             "1e999",   "0x10",  "1 2", "[1, 2]", "{a: 1}",
                                             "2000000", "'1,5'", "~",   NULL};
    static const char *const no_texts[] = {
        "", "[a, b]", "{a: b}", "\"a\\e[31mb\"", "\"a\\nb\"", "\"a\\x7F\"", "\"a\\u009b\"", NULL};
    for (size_t i = 0; i < LINE_COUNT; i++) {
        if (lines[i].kind[0] == 'N')
            check_values(i, no_numbers);
        else if (lines[i].kind[0] == 'T')
            check_values(i, no_texts);
    }
}

/* Whether line `j` belongs to the map or list that line `i` begins. */
static bool is_below(size_t i, size_t j)
{
    const size_t depth = strspn(lines[i].text, " ");
    for (size_t k = i + 1; k <= j; k++) {
        const size_t at = strspn(lines[k].text, " ");
        if (at < depth || (at == depth && lines[k].text[at] != '-'))
            return false;
    }
    return j > i;
}

static void every_map_and_list_that_is_wrong_is_told_with_its_line(void **state)
{
    (void)state;
    static const char *const wrong[] = {" 3", " x", " []", " {}", " [3]", " {x: 3}", " [{x: 3}]"};
    char text[TEXT_SIZE], prefix[LINE_SIZE], key[LINE_SIZE];
    for (size_t i = 0; i < LINE_COUNT; i++) {
        (void)snprintf(prefix, sizeof prefix, "p.yaml:%zu: ", i + 1);
        key_of(lines[i].text, key);
        for (size_t k = 0; lines[i].kind[0] == 'M' && k < sizeof wrong / sizeof *wrong; k++) {
            size_t length = 0;
            for (size_t j = 0; j < LINE_COUNT; j++)
                if (!is_below(i, j))
                    length += (size_t)snprintf(text + length, TEXT_SIZE - length, "%s%s\n",
                                               lines[j].text, j == i ? wrong[k] : "");
            check_refused(text, prefix, key);
        }
    }
}

static void every_field_that_is_missing_is_told(void **state)
{
    (void)state;
    char text[TEXT_SIZE], key[LINE_SIZE];
    for (size_t i = 0; i < LINE_COUNT; i++) {
        /* A map without its head would belong to another key. */
        if (lines[i].kind[0] != 'N' && lines[i].kind[0] != 'T')
            continue;
        key_of(lines[i].text, key);
        write_text(text, i, NULL);
        struct wg_serving_profile profile;
        struct wg_error err;
        const enum wg_code code = parse(text, &profile, &err);
        if (lines[i].kind[1] == '?') {
            assert_int_equal(code, WG_OK);
            continue;
        }
        check_refused(text, "p.yaml:", key);
        assert_non_null(strstr(err.text, " is missing; expected "));
    }
}

static void every_key_that_is_misspelt_is_told_with_its_line(void **state)
{
    (void)state;
    char text[TEXT_SIZE], prefix[LINE_SIZE], line[LINE_SIZE], key[LINE_SIZE];
    for (size_t i = 0; i < LINE_COUNT; i++) {
        if (lines[i].kind[0] == '\0')
            continue;
        const size_t depth = strspn(lines[i].text, " ");
        (void)snprintf(prefix, sizeof prefix, "p.yaml:%zu: ", i + 1);
        (void)snprintf(line, sizeof line, "%.*sz%s", (int)depth, lines[i].text,
                       lines[i].text + depth);
        key_of(line, key);
        write_text(text, i, line);
        check_refused(text, prefix, "unknown key 'z");
        /* And twice the same key. */
        if (lines[i].kind[0] == 'M')
            continue;
        (void)snprintf(line, sizeof line, "%s\n%s", lines[i].text, lines[i].text);
        write_text(text, i, line);
        struct wg_serving_profile profile;
        struct wg_error err;
        assert_int_equal(parse(text, &profile, &err), WG_EDATA);
        assert_non_null(strstr(err.text, "is given twice"));
    }
}

static void check_value(const char *begin, size_t nth, const char *value, const char *said)
{
    char text[TEXT_SIZE], key[LINE_SIZE], prefix[LINE_SIZE];
    for (size_t i = 0; i < LINE_COUNT; i++) {
        if (strcmp(lines[i].text, begin) != 0 || nth-- > 0)
            continue;
        key_of(lines[i].text, key);
        (void)snprintf(prefix, sizeof prefix, "p.yaml:%zu: ", i + 1);
        replace_value(i, value, text);
        check_refused(text, prefix, said);
        return;
    }
    fail_msg("no line '%s'", begin);
}

static void what_fields_say_together_is_checked(void **state)
{
    (void)state;
    check_value("max_batch: 8", 0, "8.5", "whole number in 1 .. 1024");
    check_value("max_batch: 8", 0, "0", "whole number in 1 .. 1024");
    check_value("noise: 0.03", 0, "1.1", "number in 0 .. 1");
    check_value("  inference: 2", 0, "0.9", "number in 1 .. 100");
    check_value("    gpu_clock: 1", 0, "0.9", "expected 1 in the first rung");
    check_value("    mem_clock: 1", 0, "0.9", "expected 1 in the first rung");
    check_value("    name: half", 0, "max", "is the name of rung 0 too");
    check_value("    name: half", 0, "governed", "another name");
    check_value("    name: half", 0, "default", "another name");
    check_value("    name: half", 0, "12345678901234567890123456789012", "1 to 31 bytes");
    check_value("    busy_w: 20", 0, "7", "expected idle_w (8) or more");
    check_value("    finetune_w: 21", 0, "7", "expected idle_w (8) or more");
    check_value("        batch: 1", 0, "2", "the first is 2; expected 1");
    check_value("        s: 1.5", 0, "0", "1e-06 .. 1000000");
}

static void check_text(const char *text, const char *expected)
{
    struct wg_serving_profile profile;
    struct wg_error err;
    assert_int_equal(parse(text, &profile, &err), WG_EDATA);
    if (strstr(err.text, expected) == NULL)
        fail_msg("\"%s\", expected \"%s\"", err.text, expected);
}

static void tables_rise_and_ladders_fall(void **state)
{
    (void)state;
#define HEAD "name: a\nmax_batch: 4\n"
#define RUNG(name, clock)                                                                          \
    "{name: " name ", gpu_clock: " clock ", mem_clock: 1, busy_w: 2, idle_w: 1"
#define LADDER "clocks: {ladder: [" RUNG("m", "1") "}]}\n"
    check_text(HEAD "latency:\n- {batch: 1, s: 1}\n- {batch: 4, s: 2}\n- {batch: 4, s: 3}\n" LADDER,
               "p.yaml:6: latency.batch: 4 after 4; expected batches that rise");
    check_text(HEAD "latency:\n- {batch: 1, s: 1}\n- {batch: 4, s: 0.9}\n" LADDER,
               "p.yaml:5: latency.s: 0.9 after 1; expected times that never fall");
    check_text(HEAD "latency:\n- {batch: 1, s: 1}\n- {batch: 3, s: 2}\n" LADDER,
               "p.yaml:5: latency.batch: the last is 3; expected max_batch (4) or more");
    check_text(HEAD "latency: {fixed_s: 0, per_row_s: 0}\n" LADDER,
               "p.yaml:3: latency: expected a batch that takes 0.000001 s or more");
    check_text(HEAD "latency: {fixed_s: 1, per_row_s: 1}\nlatency_share: {gpu_clock: 0.8, "
                    "mem_clock: 0.3}\n" LADDER,
               "p.yaml:4: latency_share: gpu_clock and mem_clock add up to 1.1; expected");
#define LAW    "latency: {fixed_s: 1, per_row_s: 1}\n"
#define SHARES "latency_share: {gpu_clock: 0.8, mem_clock: 0.1}\n"
    check_text(HEAD LAW "clocks: {ladder: [" RUNG("m", "1") "}, " RUNG("n", ".5") "}]}\n",
               "p.yaml:1: latency_share is missing; expected");
    check_text(HEAD LAW SHARES "clocks:\n  ladder:\n  - " RUNG("m", "1") "}\n  - " RUNG(
                   "n", ".5") "}\n  - " RUNG("o", ".8") "}\n",
               "p.yaml:9: clocks.ladder[2]: 'o' takes 2.4 s for a batch of 1, the rung before it "
               "3.6 s; expected the fastest rung first");
    check_text(HEAD LAW SHARES "clocks:\n  ladder:\n  - " RUNG("m", "1") "}\n  - " RUNG(
                   "n", ".5") ", latency: {fixed_s: 2, per_row_s: 0}}\n",
               "p.yaml:8: clocks.ladder[1]: 'n' takes 2 s for a batch of 4, the rung before it 5 "
               "s; expected the fastest rung first");
    check_text(HEAD LAW "clocks:\n  ladder:\n  - " RUNG("m", "1") ", latency: {fixed_s: 2, "
                                                                  "per_row_s: 0}}\n",
               "p.yaml:6: clocks.ladder[0].latency: expected none in the first rung");
    check_text(HEAD LAW "finetune: {fixed_s: 1, per_row_s: 1}\n" LADDER,
               "p.yaml:1: interference is missing; expected it beside finetune");
    check_text(HEAD LAW "interference: {inference: 1, finetune: 1}\n" LADDER,
               "p.yaml:1: finetune is missing; expected it beside interference");
}

/* They were accepted, and refused later by the predictor or the governor, without file and line. */
static void times_that_no_scheduler_can_be_told_are_refused(void **state)
{
    (void)state;
    check_value("        s: 0.3", 0, "1e-9", "not a number in");
    check_value("  change_s: 0.02", 0, "3601", "number in 0 .. 3600 (s)");
    check_text(HEAD "latency: {fixed_s: 0, per_row_s: 1e-9}\n" LADDER,
               "p.yaml:3: latency: expected a batch that takes 0.000001 s or more");
    check_text(
        HEAD "latency: {fixed_s: 0, per_row_s: 1e6}\nclocks:\n  ladder:\n  - " RUNG("m", "1") "}\n",
        "p.yaml:6: clocks.ladder[0]: 'm' takes 4e+06 s for a batch of 4; expected at most "
        "1000000 s");
    check_text(HEAD LAW "finetune: {fixed_s: 0, per_row_s: 1e-9}\n"
                        "interference: {inference: 1, finetune: 1}\n" LADDER,
               "p.yaml:4: finetune: expected a step that takes 0.000001 s or more");
}

static void too_many_of_anything_is_refused(void **state)
{
    (void)state;
    static char text[1 << 16];
    size_t length = (size_t)snprintf(text, sizeof text, "%s%s", HEAD, "latency:\n");
    for (unsigned i = 1; i <= WG_PROFILE_POINTS_MAX + 1; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "- {batch: %u, s: 1}\n", i);
    (void)snprintf(text + length, sizeof text - length, "%s", LADDER);
    check_text(text, "latency: 65 rows; expected 1 to 64");
    length =
        (size_t)snprintf(text, sizeof text, "%s%s%s%s", HEAD, LAW, SHARES, "clocks:\n  ladder:\n");
    for (unsigned i = 0; i <= WG_RUNGS_MAX; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "  - {name: r%u, gpu_clock: 1, mem_clock: 1, busy_w: 2, idle_w: "
                                   "1}\n",
                                   i);
    check_text(text, "clocks.ladder: expected a list of 1 to 16 rungs");
    (void)snprintf(text, sizeof text, "name: %0300d\n", 1);
    check_text(text, "p.yaml:1: name: expected a text of 1 to 255 bytes");
    length = 0;
    for (unsigned i = 0; i < 5000; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "k%u: 1\n", i);
    check_text(text, "p.yaml:1: more than 4096 keys");
}

/* -- Files ------------------------------------------------------------------------------------ */

static void check_file(struct scratch *scratch, const char *bytes, size_t length,
                       const char *expected)
{
    struct wg_serving_profile profile;
    struct wg_error err = {0};
    char path[512];
    (void)snprintf(path, sizeof path, "%s", scratch_path(scratch, "p.yaml"));
    scratch_write(path, bytes, length);
    assert_int_equal(wg__serving_profile_read(&profile, path, &err), WG_EDATA);
    if (strstr(err.text, path) == NULL || strstr(err.text, expected) == NULL)
        fail_msg("\"%s\", expected \"%s\"", err.text, expected);
}

static void files_that_are_no_profile_are_told(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_serving_profile profile;
    struct wg_error err = {0};
    scratch_open(&scratch);
    check_file(&scratch, "", 0, ":1: the file is empty; expected a profile");
    check_file(&scratch, "# nothing\n", 10, "the file is empty");
    check_file(&scratch,
               "\x7f"
               "ELF\0\1\2\xff\xfe",
               10, ".yaml:");
    check_file(&scratch, "just words\n", 11, ":1: expected KEY: VALUE lines");
    check_file(&scratch, "- a\n- b\n", 8, ":1: expected KEY: VALUE lines");
    check_file(&scratch, "name: [a\n", 9, ".yaml:");
    check_file(&scratch, "name: &a [*a]\n", 14, ":1: name: expected a text");
    char *huge = malloc((size_t)2 << 20);
    if (huge == NULL)
        fail_msg("no memory");
    memset(huge, ' ', (size_t)2 << 20);
    check_file(&scratch, huge, (size_t)2 << 20, "more than 1 MiB");
    free(huge);
    assert_int_equal(wg__serving_profile_read(&profile, scratch.folder, &err), WG_EIO);
    assert_non_null(strstr(err.text, scratch.folder));
    assert_int_equal(wg__serving_profile_read(&profile, scratch_path(&scratch, "none.yaml"), &err),
                     WG_ENOENT);
    assert_non_null(strstr(err.text, "none.yaml"));
    scratch_close(&scratch);
}

static void memory_that_runs_out_is_told(void **state)
{
    (void)state;
    struct wg_serving_profile profile;
    struct wg_error err = {0};
    char text[TEXT_SIZE];
    write_text(text, LINE_COUNT, NULL);
    enum wg_code code = WG_ENOMEM;
    size_t nth = 1;
    for (; code == WG_ENOMEM && nth < 50; nth++) {
        wg__alloc_fail_from(nth);
        code = parse(text, &profile, &err);
        wg__alloc_fail_from(0);
    }
    assert_int_equal(code, WG_OK);
    assert_true(nth > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_field),
        cmocka_unit_test(a_small_file_is_enough),
        cmocka_unit_test(shipped_profiles_are_right),
        cmocka_unit_test(every_number_and_text_that_is_wrong_is_told_with_its_line),
        cmocka_unit_test(every_map_and_list_that_is_wrong_is_told_with_its_line),
        cmocka_unit_test(every_field_that_is_missing_is_told),
        cmocka_unit_test(every_key_that_is_misspelt_is_told_with_its_line),
        cmocka_unit_test(what_fields_say_together_is_checked),
        cmocka_unit_test(tables_rise_and_ladders_fall),
        cmocka_unit_test(times_that_no_scheduler_can_be_told_are_refused),
        cmocka_unit_test(too_many_of_anything_is_refused),
        cmocka_unit_test(files_that_are_no_profile_are_told),
        cmocka_unit_test(memory_that_runs_out_is_told),
    };
    return run_tests(tests);
}
