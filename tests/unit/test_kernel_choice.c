/* SPDX-License-Identifier: MIT
 *
 * Tests of wave/kernel_choice.h and of the parts of wave/wave_time.h that it compares by.
 */
#include "wave/kernel_choice.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "support/check.h"
#include "wave/calibration.h"
#include "wave/choice_tree.h"

static void try_one(const struct wg_kernel_params *params, const struct wg_wave_machine *machine,
                    const struct wg_wave_work *work, size_t tile, unsigned split_k,
                    struct wg_kernel_choice *best)
{
    struct wg_wave_time time;
    wg__wave_parts(machine, &params->tiles[tile], split_k, work, &time);
    wg__wave_finish(machine, &time);
    if (time.time_s < best->time.time_s)
        *best = (struct wg_kernel_choice){.tile = tile, .split_k = split_k, .time = time};
}

/* Every kernel that may be taken, each computed in full. */
static struct wg_kernel_choice compared(const struct wg_kernel_params *params,
                                        const struct wg_wave_machine *machine,
                                        const struct wg_wave_work *work, bool winograd)
{
    struct wg_kernel_choice best = {.time = {.time_s = INFINITY}};
    const uint64_t options = wg__choice_tree_options(params, &work->gemm);
    for (size_t i = 0; i < params->option_count; i++) {
        const struct wg_kernel_option *option = &params->options[i];
        if ((options >> i & 1) != 0 && (winograd || !params->tiles[option->tile].is_winograd))
            try_one(params, machine, work, option->tile, option->split_k, &best);
    }
    for (size_t t = 0; t < params->tile_count && options == 0; t++)
        for (size_t s = 0; s < params->split_count; s++) {
            const bool may_split =
                !params->tiles[t].is_winograd && work->gemm.k >= 64 * (uint64_t)params->splits[s];
            if ((s == 0 || may_split) && (winograd || !params->tiles[t].is_winograd))
                try_one(params, machine, work, t, params->splits[s], &best);
        }
    return best;
}

static uint64_t drawn(struct wg_rng *rng)
{
    return 1 + wg__rng_below(rng, 2U << wg__rng_below(rng, 15));
}

static void check_same(const struct wg_calibrated *entry, struct wg_rng *rng)
{
    struct wg_gpu_spec gpu = {.sms = 108,
                              .l2_bytes = 4e7,
                              .memory_bandwidth_bytes_per_s = entry->memory_bandwidth_bytes_per_s};
    gpu.dense_flops[entry->dtype] = entry->dense_flops;
    struct wg_wave_machine machine;
    wg__wave_machine_init(&machine, &gpu, entry->dtype, &entry->params);
    for (size_t i = 0; i < 300; i++) {
        const struct wg_gemm gemm = {.batch = i % 3 == 0 ? drawn(rng) : 1,
                                     .m = drawn(rng),
                                     .n = drawn(rng),
                                     .k = drawn(rng),
                                     .dtype = entry->dtype};
        struct wg_wave_work work;
        struct wg_kernel_choice fast;
        wg__wave_work_init(&work, &machine, &gemm, wg__gemm_bytes(&gemm));
        wg__kernel_choose(&entry->params, &machine, &work, i % 2 == 0, &fast);
        struct wg_kernel_choice slow = compared(&entry->params, &machine, &work, i % 2 == 0);
        assert_int_equal(fast.tile, slow.tile);
        assert_int_equal(fast.split_k, slow.split_k);
        assert_memory_equal(&fast.time, &slow.time, sizeof fast.time);
    }
}

static void takes_the_kernel_that_computing_each_in_full_finds(void **state)
{
    (void)state;
    struct wg_calibration *calibration = NULL;
    struct wg_rng rng;
    wg__rng_init(&rng, 5);
    assert_int_equal(wg__calibration_built_in(&calibration, NULL), WG_OK);
    for (size_t i = 0; i < wg__calibration_count(calibration); i++) {
        struct wg_calibrated entry = *wg__calibration_at(calibration, i);
        if (entry.op == WG_OP_BYTES)
            continue;
        check_same(&entry, &rng);
        entry.params.reread = 0.7; /* as if all that the formula knows were at work */
        entry.params.l2_share = 0.5;
        entry.params.straddle = 0.1;
        entry.params.hot_cost = 0.3;
        entry.params.hot_s = 1e-3;
        check_same(&entry, &rng);
    }
    wg__calibration_free(calibration);
}

static void rounds_up_as_ceil_does(void **state)
{
    (void)state;
    static const double values[] = {0.0,    0x1p-1074, 0x1p-60, 1.0,    2.0,   0x1p51,
                                    0x1p52, 0x1p53,    0x1p63,  0x1p64, 1e300, (double)INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const double near[] = {values[i], nextafter(values[i], 0.0),
                               nextafter(values[i], (double)INFINITY)};
        for (size_t j = 0; j < 3; j++) {
            double fast = wg__wave_whole(near[j]), slow = ceil(near[j]);
            assert_memory_equal(&fast, &slow, sizeof fast);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_kernel_that_computing_each_in_full_finds),
        cmocka_unit_test(rounds_up_as_ceil_does),
    };
    return run_tests(tests);
}
