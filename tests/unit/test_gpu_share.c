/* SPDX-License-Identifier: MIT
 *
 * Two that share a GPU, against closed forms.
 */
#include "simulate/gpu_share.h"

#include "base/rng.h"
#include "support/check.h"

#define EXACT 1e-13

static void alone_it_takes_its_time(void **state)
{
    (void)state;
    struct wg_gpu_share share;
    wg__gpu_share_init(&share, 2.0, 3.0);
    assert_true(wg__gpu_share_end_s(&share, WG_GPU_BATCH) == HUGE_VAL);
    wg__gpu_share_advance(&share, 5.0);
    wg__gpu_share_begin(&share, WG_GPU_BATCH, 0.25);
    check_close(wg__gpu_share_end_s(&share, WG_GPU_BATCH), 5.25, 0.0);
    wg__gpu_share_advance(&share, 5.25);
    check_close_abs(share.tasks[WG_GPU_BATCH].left, 0.0, 0.0, EXACT);
    wg__gpu_share_end(&share, WG_GPU_BATCH);
    assert_true(wg__gpu_share_end_s(&share, WG_GPU_BATCH) == HUGE_VAL);
}

/* The batch (1 s) begins at 0, the step (1 s) at .4; slowdowns 2 and 3. Side by side the batch's
 * other .6 take 1.2 s: it ends at 1.6. The step has done 1.2 / 3 = .4 by then, and needs .6 more:
 * 2.2. */
static void what_is_beside_the_other_takes_longer(void **state)
{
    (void)state;
    struct wg_gpu_share share;
    wg__gpu_share_init(&share, 2.0, 3.0);
    wg__gpu_share_begin(&share, WG_GPU_BATCH, 1.0);
    wg__gpu_share_advance(&share, 0.4);
    wg__gpu_share_begin(&share, WG_GPU_STEP, 1.0);
    check_close(wg__gpu_share_end_s(&share, WG_GPU_BATCH), 1.6, EXACT);
    check_close(wg__gpu_share_end_s(&share, WG_GPU_STEP), 3.4, EXACT);
    wg__gpu_share_advance(&share, 1.6);
    wg__gpu_share_end(&share, WG_GPU_BATCH);
    check_close(wg__gpu_share_end_s(&share, WG_GPU_STEP), 2.2, EXACT);
}

/* At half of the clocks what is left takes twice as long, also beside the other. */
static void new_clocks_rescale_what_is_left(void **state)
{
    (void)state;
    struct wg_gpu_share share;
    wg__gpu_share_init(&share, 2.0, 2.0);
    wg__gpu_share_begin(&share, WG_GPU_BATCH, 1.0);
    wg__gpu_share_advance(&share, 0.25);
    wg__gpu_share_rescale(&share, WG_GPU_BATCH, 2.0);
    check_close(wg__gpu_share_end_s(&share, WG_GPU_BATCH), 1.75, EXACT);
    wg__gpu_share_advance(&share, 0.75); /* half is left */
    wg__gpu_share_begin(&share, WG_GPU_STEP, 1.0);
    check_close(wg__gpu_share_end_s(&share, WG_GPU_BATCH), 2.75, EXACT);
    wg__gpu_share_rescale(&share, WG_GPU_BATCH, 1.0);
    check_close(wg__gpu_share_end_s(&share, WG_GPU_BATCH), 1.75, EXACT);
}

/* However often it is looked at, and whoever comes and goes: the work that was done is the integral
 * of the speed. */
static void no_work_is_lost_or_made(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 4);
    for (unsigned round = 0; round < 300; round++) {
        struct wg_gpu_share share;
        const double slowdown = 1.0 + 2.0 * wg__rng_uniform(&rng);
        wg__gpu_share_init(&share, slowdown, 1.5);
        double alone_s = 1.0;
        double done = 0.0;
        double now_s = 0.0;
        wg__gpu_share_begin(&share, WG_GPU_BATCH, alone_s);
        for (;;) {
            const bool has_step = share.tasks[WG_GPU_STEP].is_running;
            const double next_s = now_s + 0.1 * wg__rng_uniform(&rng);
            const double end_s = wg__gpu_share_end_s(&share, WG_GPU_BATCH);
            const double until_s = fmin(next_s, end_s);
            done += (until_s - now_s) / (has_step ? alone_s * slowdown : alone_s);
            if (end_s <= next_s)
                break;
            wg__gpu_share_advance(&share, next_s);
            now_s = next_s;
            if (has_step)
                wg__gpu_share_end(&share, WG_GPU_STEP);
            else if (wg__rng_below(&rng, 2) == 0)
                wg__gpu_share_begin(&share, WG_GPU_STEP, 1.0);
            if (wg__rng_below(&rng, 4) == 0) {
                alone_s = 0.5 + wg__rng_uniform(&rng);
                wg__gpu_share_rescale(&share, WG_GPU_BATCH, alone_s);
            }
        }
        check_close(done, 1.0, 1e-11);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_it_takes_its_time),
        cmocka_unit_test(what_is_beside_the_other_takes_longer),
        cmocka_unit_test(new_clocks_rescale_what_is_left),
        cmocka_unit_test(no_work_is_lost_or_made),
    };
    return run_tests(tests);
}
