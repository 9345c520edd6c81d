/* SPDX-License-Identifier: MIT
 *
 * What Stream-K saves, by hand and by what must hold of any schedule.
 */
#include "wave/stream_k.h"

#include "support/check.h"

static void full_waves_have_nothing_to_save(void **state)
{
    (void)state;
    static const uint64_t tiles[] = {0, 108, 216, 1080, 100 /* 93 % */, 205 /* 95 % */};
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        struct wg_stream_k found = {.blocks = 7, .saved = 7};
        wg__stream_k(tiles[i], 128, 108, &found);
        assert_int_equal(found.blocks, 0);
        check_close_abs(found.saved, 0, 0, 0);
    }
}

static void half_a_wave_is_split_evenly(void **state)
{
    (void)state;
    struct wg_stream_k found;
    /* 54 tiles of 1000: two blocks a tile do 500 each, and meet for 2 + 2 * 2. */
    wg__stream_k(54, 1000, 108, &found);
    assert_int_equal(found.blocks, 108);
    check_close(found.saved, (1000.0 - 506.0) / 1000.0, 1e-12);
}

static void one_tile_too_many_is_shared_with_the_last_wave(void **state)
{
    (void)state;
    struct wg_stream_k found;
    /* 109 tiles of 1000 in two waves; shared by 108 blocks: 1010 each, uneven with 2 peers. */
    wg__stream_k(109, 1000, 108, &found);
    assert_int_equal(found.blocks, 108);
    const double after = 1010 + floor(2 + 0.02 * 2 * 1010 + 2 * 2);
    check_close(found.saved, (2000 - after) / 2000, 1e-12);
    /* The same behind nine full waves is a share of eleven (91 % full); behind ten, 92 %. */
    wg__stream_k(109 + 9 * 108, 1000, 108, &found);
    check_close(found.saved, (2000 - after) / 11000, 1e-12);
    wg__stream_k(109 + 11 * 108, 1000, 108, &found);
    assert_int_equal(found.blocks, 0);
}

static void short_tiles_are_not_worth_meeting(void **state)
{
    (void)state;
    struct wg_stream_k found;
    wg__stream_k(60, 4, 108, &found);
    assert_int_equal(found.blocks, 0);
    wg__stream_k(1, 1, 108, &found);
    assert_int_equal(found.blocks, 0);
}

static void no_schedule_beats_work_spread_without_cost(void **state)
{
    (void)state;
    for (uint64_t tiles = 1; tiles < 700; tiles += 3) {
        for (uint64_t iterations = 1; iterations < 600; iterations += 37) {
            struct wg_stream_k found;
            wg__stream_k(tiles, iterations, 80, &found);
            const double waves = ceil((double)tiles / 80);
            assert_true(found.saved >= 0 && found.saved < 1);
            assert_true((found.blocks > 0) == (found.saved > 0));
            assert_true(found.blocks <= 80);
            assert_true(found.saved <= 1 - (double)tiles / 80 / waves + 1e-12);
        }
    }
}

static void sizes_beyond_all_measure_end(void **state)
{
    (void)state;
    struct wg_stream_k found;
    wg__stream_k(UINT64_MAX, UINT64_MAX, 108, &found);
    wg__stream_k(1, UINT64_MAX, 100000, &found);
    assert_true(found.saved >= 0 && found.saved < 1);
    wg__stream_k(5, 5, 0, &found);
    assert_int_equal(found.blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_waves_have_nothing_to_save),
        cmocka_unit_test(half_a_wave_is_split_evenly),
        cmocka_unit_test(one_tile_too_many_is_shared_with_the_last_wave),
        cmocka_unit_test(short_tiles_are_not_worth_meeting),
        cmocka_unit_test(no_schedule_beats_work_spread_without_cost),
        cmocka_unit_test(sizes_beyond_all_measure_end),
    };
    return run_tests(tests);
}
