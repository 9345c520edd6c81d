/* SPDX-License-Identifier: MIT
 *
 * The heap's door: overflow, empty requests and the fault counter.
 */
#include "base/alloc.h"

#include <string.h>

#include "support/check.h"

static void an_empty_request_gives_a_pointer(void **state)
{
    (void)state;
    void *plain = wg__alloc(0);
    void *zeroed = wg__alloc_zeroed(0, 8);
    void *resized = wg__realloc_array(NULL, 3, 0);
    assert_non_null(plain);
    assert_non_null(zeroed);
    assert_non_null(resized);
    wg__free(plain);
    wg__free(zeroed);
    wg__free(resized);
    wg__free(NULL);
}

static void zeroed_memory_is_zero(void **state)
{
    (void)state;
    static const unsigned char zeros[1000];
    unsigned char *bytes = wg__alloc_zeroed(100, 10);
    assert_non_null(bytes);
    assert_memory_equal(bytes, zeros, sizeof zeros);
    wg__free(bytes);
}

static void a_product_that_overflows_fails(void **state)
{
    (void)state;
    volatile size_t half = SIZE_MAX / 2 + 1; /* volatile: the compiler must not warn of it */
    char *kept = wg__strdup("kept");
    assert_null(wg__alloc_zeroed(half, 2));
    assert_null(wg__realloc_array(kept, half, 2));
    assert_string_equal(kept, "kept");
    wg__free(kept);
}

static void a_failed_realloc_leaves_the_old_memory(void **state)
{
    (void)state;
    char *text = wg__strdup("old");
    wg__alloc_fail_from(1);
    assert_null(wg__realloc_array(text, 1000, 1));
    wg__alloc_fail_from(0);
    assert_string_equal(text, "old");
    char *longer = wg__realloc_array(text, 1000, 1);
    assert_non_null(longer);
    assert_string_equal(longer, "old");
    wg__free(longer);
}

static void the_nth_allocation_and_all_later_ones_fail(void **state)
{
    (void)state;
    wg__alloc_fail_from(3);
    void *first = wg__alloc(8);
    void *second = wg__alloc_zeroed(1, 8);
    assert_non_null(first);
    assert_non_null(second);
    assert_null(wg__alloc(8));
    assert_null(wg__strdup("x"));
    assert_null(wg__alloc_zeroed(1, 8));
    assert_null(wg__realloc_array(NULL, 1, 8));
    assert_int_equal(wg__alloc_count(), 6);
    wg__alloc_fail_from(0);
    assert_int_equal(wg__alloc_count(), 0);
    void *later = wg__alloc(8);
    assert_non_null(later);
    assert_int_equal(wg__alloc_count(), 1);
    wg__free(first);
    wg__free(second);
    wg__free(later);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_request_gives_a_pointer),
        cmocka_unit_test(zeroed_memory_is_zero),
        cmocka_unit_test(a_product_that_overflows_fails),
        cmocka_unit_test(a_failed_realloc_leaves_the_old_memory),
        cmocka_unit_test(the_nth_allocation_and_all_later_ones_fail),
    };
    return run_tests(tests);
}
