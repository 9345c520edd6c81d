/* SPDX-License-Identifier: MIT
 *
 * Where things lie that live no longer than their program.
 */
#include "base/runtime_dir.h"

#include <stdlib.h>
#include <unistd.h>

#include "support/check.h"
#include "support/scratch.h"

static void expect(const char *xdg, const char *tmpdir, const char *expected)
{
    assert_int_equal(xdg != NULL ? setenv("XDG_RUNTIME_DIR", xdg, 1) : unsetenv("XDG_RUNTIME_DIR"),
                     0);
    assert_int_equal(tmpdir != NULL ? setenv("TMPDIR", tmpdir, 1) : unsetenv("TMPDIR"), 0);
    assert_string_equal(wg__runtime_dir(), expected);
}

static void is_the_first_that_may_be_written_to(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    expect(NULL, NULL, "/tmp");
    expect(scratch.folder, "/", scratch.folder);
    expect(NULL, scratch.folder, scratch.folder);
    expect("relative", scratch.folder, scratch.folder);
    expect("", scratch.folder, scratch.folder);
    expect("/proc/nothing/here", scratch.folder, scratch.folder);
    expect("/proc/nothing/here", "/nor/here", "/tmp");
    scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_the_first_that_may_be_written_to)};
    return run_tests(tests);
}
