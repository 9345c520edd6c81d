/* SPDX-License-Identifier: MIT
 *
 * Tests of net/curl_library.h: the library that is there, one that is not, one that is another.
 */
#include "net/curl_library.h"

#include <string.h>

#include "support/check.h"

static void loads_every_call_and_what_it_loads_stays(void **state)
{
    (void)state;
    struct wg_curl first, again;
    assert_int_equal(wg__curl_load(&first, WG_CURL_LIBRARY, NULL), WG_OK);
    assert_int_equal(wg__curl_load(&again, WG_CURL_LIBRARY, NULL), WG_OK);
#define X(name)                                                                                    \
    assert_non_null(first.name);                                                                   \
    assert_true(first.name == again.name);
    WG_CURL_CALLS(X)
#undef X
    assert_string_equal(first.easy_strerror(CURLE_OK), "No error");
}

static void says_what_is_missing(void **state)
{
    (void)state;
    struct wg_curl curl = {.easy_init = NULL};
    struct wg_error err;
    assert_int_equal(wg__curl_load(&curl, "libnone.so.9", &err), WG_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "libcurl4"));
    assert_non_null(strstr(err.text, "libnone.so.9"));
    assert_int_equal(wg__curl_load(&curl, "libm.so.6", &err), WG_EUNSUPPORTED);
    assert_string_equal(err.text,
                        "libm.so.6 has no curl_easy_cleanup: expected libcurl 7.85 or later");
    assert_null(curl.easy_init); /* nothing is written by a failure */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_every_call_and_what_it_loads_stays),
        cmocka_unit_test(says_what_is_missing),
    };
    return run_tests(tests);
}
