/* SPDX-License-Identifier: MIT
 *
 * Whole files through base/source.h; windows and lines are tested where they are parsed (csv,
 * json_scan).
 */
#include "base/source.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "support/check.h"
#include "support/scratch.h"

enum { LONG = (1 << 20) + 1 };

static void check_read(const char *path, const char *expected, size_t length)
{
    struct wg_buffer out;
    struct wg_error err = {.text = ""};
    wg__buffer_init(&out);
    if (wg__source_read_all(path, 1, &out, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_int_equal(out.length, length);
    assert_memory_equal(out.data, expected, length + 1); /* with the null byte */
    wg__buffer_fini(&out);
}

static void check_fails(const char *path, enum wg_code code, const char *part)
{
    struct wg_buffer out;
    struct wg_error err = {.text = ""};
    wg__buffer_init(&out);
    assert_int_equal(wg__source_read_all(path, 1, &out, &err), code);
    if (strstr(err.text, part) == NULL)
        fail_msg("'%s' is not in '%s'", part, err.text);
    wg__buffer_fini(&out);
}

static void reads_all_of_a_file_packed_or_not(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    char *longest = calloc(LONG + 1, 1);
    assert_non_null(longest);
    memset(longest, 'x', LONG);
    scratch_write(scratch_path(&scratch, "empty"), "", 0);
    check_read(scratch.path, "", 0);
    scratch_write(scratch_path(&scratch, "marked"), "\xEF\xBB\xBF{}", 5);
    check_read(scratch.path, "{}", 2);
    scratch_write(scratch_path(&scratch, "long"), longest, LONG);
    check_fails(scratch.path, WG_EDATA, "long: more than 1 MiB");
    longest[LONG - 1] = '\0';
    scratch_write(scratch.path, longest, LONG - 1);
    check_read(scratch.path, longest, LONG - 1);
    gzFile file = gzopen(scratch_path(&scratch, "packed"), "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, longest, LONG - 1), LONG - 1);
    assert_int_equal(gzclose(file), Z_OK);
    check_read(scratch.path, longest, LONG - 1);
    check_fails(scratch_path(&scratch, "missing"), WG_ENOENT, "missing");
    free(longest);
    scratch_close(&scratch);
}

static void memory_that_runs_out_is_told(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_error err = {.text = ""};
    enum wg_code code = WG_ENOMEM;
    scratch_open(&scratch);
    scratch_write(scratch_path(&scratch, "file"), "some", 4);
    for (size_t nth = 1; code != WG_OK; nth++) {
        struct wg_buffer out;
        wg__buffer_init(&out);
        wg__alloc_fail_from(nth);
        code = wg__source_read_all(scratch.path, 1, &out, &err);
        wg__alloc_fail_from(0);
        assert_true(code == WG_OK || code == WG_ENOMEM);
        wg__buffer_fini(&out);
    }
    scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_all_of_a_file_packed_or_not),
        cmocka_unit_test(memory_that_runs_out_is_told),
    };
    return run_tests(tests);
}
