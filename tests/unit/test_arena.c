/* SPDX-License-Identifier: MIT
 *
 * The arena: alignment, growth, reuse, and what happens when memory runs out.
 */
#include "base/arena.h"

#include <stdalign.h>
#include <string.h>

#include "base/alloc.h"
#include "support/check.h"

static void objects_are_aligned_zeroed_and_apart(void **state)
{
    (void)state;
    enum { COUNT = 2000 };
    static unsigned char *objects[COUNT];
    struct wg_arena arena;
    wg__arena_init(&arena);
    for (size_t i = 0; i < COUNT; i++) {
        const size_t size = i % 37;
        objects[i] = wg__arena_alloc(&arena, size, 1);
        assert_non_null(objects[i]);
        assert_int_equal((uintptr_t)objects[i] % alignof(max_align_t), 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(objects[i][k], 0);
        memset(objects[i], (int)(i & 0xFF), size);
    }
    /* Nothing that came later wrote into an earlier object. */
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < i % 37; k++)
            assert_int_equal(objects[i][k], i & 0xFF);
    }
    wg__arena_fini(&arena);
}

static void blocks_double_so_that_many_objects_cost_few_allocations(void **state)
{
    (void)state;
    struct wg_arena arena;
    wg__arena_init(&arena);
    wg__alloc_fail_from(0);
    for (int i = 0; i < 60000; i++)
        assert_non_null(wg__arena_alloc(&arena, 1, 16));
    /* 960 kB = 4 kB * (2^8 - 1) at most: eight blocks. */
    assert_int_equal(wg__alloc_count(), 8);
    wg__arena_fini(&arena);
}

static void an_object_larger_than_a_block_gets_its_own(void **state)
{
    (void)state;
    struct wg_arena arena;
    wg__arena_init(&arena);
    char *small = wg__arena_strdup(&arena, "small");
    char *large = wg__arena_alloc(&arena, 5, 1000000);
    assert_non_null(large);
    large[4999999] = 'x';
    assert_string_equal(small, "small");
    wg__arena_fini(&arena);
}

static void reset_keeps_the_newest_block_and_clears_what_it_gives_again(void **state)
{
    (void)state;
    struct wg_arena arena = {0}; /* zeroed is as good as initialised */
    for (int i = 0; i < 100; i++)
        memset(wg__arena_alloc(&arena, 1, 500), 0xAA, 500);
    wg__arena_reset(&arena);
    wg__alloc_fail_from(1); /* the kept block must do */
    const unsigned char *again = wg__arena_alloc(&arena, 1, 500);
    wg__alloc_fail_from(0);
    assert_non_null(again);
    for (int i = 0; i < 500; i++)
        assert_int_equal(again[i], 0);
    wg__arena_fini(&arena);
    wg__arena_reset(&arena);
    wg__arena_fini(&arena);
    wg__arena_fini(NULL);
}

static void a_failed_request_leaves_the_arena_usable(void **state)
{
    (void)state;
    volatile size_t half = SIZE_MAX / 2 + 1;
    struct wg_arena arena;
    wg__arena_init(&arena);
    wg__alloc_fail_from(1);
    assert_null(wg__arena_alloc(&arena, 1, 16));
    assert_null(wg__arena_strdup(&arena, "text"));
    wg__alloc_fail_from(0);
    assert_null(wg__arena_alloc(&arena, half, 2));
    assert_null(wg__arena_alloc(&arena, SIZE_MAX - half + half, 1));
    char *text = wg__arena_strdup(&arena, "text");
    assert_non_null(text);
    wg__alloc_fail_from(1);
    assert_null(wg__arena_alloc(&arena, 1, 1 << 20));
    wg__alloc_fail_from(0);
    assert_string_equal(text, "text");
    assert_non_null(wg__arena_alloc(&arena, 1, 1 << 20));
    wg__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_aligned_zeroed_and_apart),
        cmocka_unit_test(blocks_double_so_that_many_objects_cost_few_allocations),
        cmocka_unit_test(an_object_larger_than_a_block_gets_its_own),
        cmocka_unit_test(reset_keeps_the_newest_block_and_clears_what_it_gives_again),
        cmocka_unit_test(a_failed_request_leaves_the_arena_usable),
    };
    return run_tests(tests);
}
