/* SPDX-License-Identifier: MIT
 *
 * Batch sizes from a file.
 */
#include "cli/batch_file.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "support/check.h"
#include "support/scratch.h"

struct stage {
    struct scratch scratch;
    struct wg_buffer list;
    struct wg_arena arena;
    struct wg_error err;
};

static void stage_open(struct stage *stage)
{
    *stage = (struct stage){0};
    scratch_open(&stage->scratch);
    wg__buffer_init(&stage->list);
    wg__arena_init(&stage->arena);
}

static void stage_close(struct stage *stage)
{
    wg__arena_fini(&stage->arena);
    wg__buffer_fini(&stage->list);
    scratch_close(&stage->scratch);
}

static enum wg_code read_list(struct stage *stage, const char *text)
{
    const char *path = scratch_path(&stage->scratch, "b.csv");
    scratch_write(path, text, strlen(text));
    wg__buffer_fini(&stage->list);
    return wg__batch_file_list(path, &stage->list, &stage->err);
}

static void gives_the_column_in_rising_order(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    assert_int_equal(read_list(&stage, "time_s,batch_size,free_to\n1,32,35\n2,8,\n3,16,x\n"),
                     WG_OK);
    assert_string_equal(stage.list.data, "8,16,32");
    assert_int_equal(read_list(&stage, "batch_size\n2147483647\n"), WG_OK);
    assert_string_equal(stage.list.data, "2147483647");
    stage_close(&stage);
}

static void says_what_is_wrong_with_the_file(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "b.csv:1: the file is empty"},
        {"batch_size\n", "b.csv: no batch size below the header"},
        {"batch\n8\n", "batch_size"},
        {"batch_size\n8\n0\n", "b.csv:3: column 'batch_size'"},
        {"batch_size\n8\n8.5\n", "b.csv:3: column 'batch_size'"},
        {"batch_size\n2147483648\n", "b.csv:2: column 'batch_size'"},
        {"batch_size\n8\n16\n8\n", "b.csv:4: column 'batch_size': 8 stands there twice"},
    };
    struct stage stage;
    stage_open(&stage);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(read_list(&stage, cases[i].text), WG_EDATA);
        if (strstr(stage.err.text, cases[i].words) == NULL)
            fail_msg("case %zu: %s", i, stage.err.text);
    }
    assert_int_equal(wg__batch_file_list("/nowhere.csv", &stage.list, &stage.err), WG_ENOENT);
    assert_non_null(strstr(stage.err.text, "/nowhere.csv"));
    stage_close(&stage);
}

static void refuses_more_rows_than_a_job_may_have(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    stage_open(&stage);
    wg__buffer_init(&text);
    wg__buffer_puts(&text, "batch_size\n");
    for (int i = 1; i <= WG_BATCH_FILE_ROWS_MAX; i++)
        wg__buffer_printf(&text, "%d\n", i);
    assert_int_equal(read_list(&stage, text.data), WG_OK);
    wg__buffer_puts(&text, "1000\n");
    assert_int_equal(read_list(&stage, text.data), WG_EDATA);
    assert_non_null(strstr(stage.err.text, "b.csv:66: "));
    assert_non_null(strstr(stage.err.text, "more than 64 batch sizes"));
    wg__buffer_fini(&text);
    stage_close(&stage);
}

static void knobs_keep_their_name_and_what_follows(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_option_list knobs = {.count = 3}, out;
    char spec[600], bare[600];
    stage_open(&stage);
    assert_int_equal(read_list(&stage, "batch_size\n4\n2\n"), WG_OK);
    (void)snprintf(spec, sizeof spec, "b=from:%s:batch:default=4", stage.scratch.path);
    (void)snprintf(bare, sizeof bare, "batch=from:%s", stage.scratch.path);
    knobs.items[0] = "gpu_clock";
    knobs.items[1] = spec;
    knobs.items[2] = bare;
    assert_int_equal(wg__batch_file_knobs(&knobs, &stage.arena, &out, &stage.err), WG_OK);
    assert_int_equal(out.count, 3);
    assert_ptr_equal(out.items[0], knobs.items[0]);
    assert_string_equal(out.items[1], "b=2,4:batch:default=4");
    assert_string_equal(out.items[2], "batch=2,4");
    static const char *const bad[] = {"b=from:", "b=from::batch"};
    for (size_t i = 0; i < 2; i++) {
        knobs.items[1] = bad[i];
        assert_int_equal(wg__batch_file_knobs(&knobs, &stage.arena, &out, &stage.err), WG_EINVAL);
        assert_non_null(strstr(stage.err.text, "expected from:FILE"));
    }
    knobs.items[1] = "b=from:/nowhere.csv:batch";
    assert_int_equal(wg__batch_file_knobs(&knobs, &stage.arena, &out, &stage.err), WG_ENOENT);
    stage_close(&stage);
}

static void every_failed_allocation_is_told(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_option_list knobs = {.count = 1}, out;
    char spec[600];
    size_t failures = 0;
    stage_open(&stage);
    assert_int_equal(read_list(&stage, "batch_size\n4\n2\n"), WG_OK);
    (void)snprintf(spec, sizeof spec, "b=from:%s:batch", stage.scratch.path);
    knobs.items[0] = spec;
    for (size_t nth = 1;; nth++) {
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__batch_file_knobs(&knobs, &stage.arena, &out, &stage.err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        failures++;
    }
    assert_true(failures >= 6);
    assert_string_equal(out.items[0], "b=2,4:batch");
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_the_column_in_rising_order),
        cmocka_unit_test(says_what_is_wrong_with_the_file),
        cmocka_unit_test(refuses_more_rows_than_a_job_may_have),
        cmocka_unit_test(knobs_keep_their_name_and_what_follows),
        cmocka_unit_test(every_failed_allocation_is_told),
    };
    return run_tests(tests);
}
