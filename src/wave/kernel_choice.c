/* SPDX-License-Identifier: MIT
 *
 * The kernel with the least predicted time.
 *
 * Most candidates fall out by their larger part alone, before any root is taken.
 *
 * Threads: pure, any thread.
 */
#include "wave/kernel_choice.h"

#include <math.h>

#include "wave/choice_tree.h"

/* Takes the candidate where it beats what is in `out`. */
static void consider(const struct wg_kernel_params *params, const struct wg_wave_machine *machine,
                     const struct wg_wave_work *work, size_t tile, unsigned split_k,
                     struct wg_kernel_choice *out)
{
    struct wg_wave_time time;
    wg__wave_parts(machine, &params->tiles[tile], split_k, work, &time);
    if (fmax(time.compute_s, time.memory_s) >= out->time.time_s)
        return;
    wg__wave_finish(machine, &time);
    if (time.time_s < out->time.time_s)
        *out = (struct wg_kernel_choice){.tile = tile, .split_k = split_k, .time = time};
}

static void choose_of_all(const struct wg_kernel_params *params,
                          const struct wg_wave_machine *machine, const struct wg_wave_work *work,
                          bool winograd, struct wg_kernel_choice *out)
{
    for (size_t t = 0; t < params->tile_count; t++) {
        if (params->tiles[t].is_winograd && !winograd)
            continue;
        consider(params, machine, work, t, 1, out);
        for (size_t s = 1; s < params->split_count && !params->tiles[t].is_winograd; s++) {
            /* Libraries leave a block some k to run through. */
            if (work->gemm.k < 64 * (uint64_t)params->splits[s])
                break;
            consider(params, machine, work, t, params->splits[s], out);
        }
    }
}

void wg__kernel_choose(const struct wg_kernel_params *params, const struct wg_wave_machine *machine,
                       const struct wg_wave_work *work, bool winograd, struct wg_kernel_choice *out)
{
    *out = (struct wg_kernel_choice){.split_k = 1, .time = {.time_s = INFINITY}};
    uint64_t options = wg__choice_tree_options(params, &work->gemm);
    for (size_t i = 0; i < WG_CHOICES_MAX && options >> i != 0; i++) {
        const struct wg_kernel_option *option = &params->options[i];
        if ((options >> i & 1) != 0 && (winograd || !params->tiles[option->tile].is_winograd))
            consider(params, machine, work, option->tile, option->split_k, out);
    }
    if (!isfinite(out->time.time_s)) /* no tree, or none of its options is allowed */
        choose_of_all(params, machine, work, winograd, out);
}

void wg__tile_of(const struct wg_kernel_params *params, const struct wg_kernel *kernel,
                 struct wg_tile_params *out)
{
    double least = INFINITY;
    for (size_t i = 0; i < params->tile_count; i++) {
        const struct wg_kernel *has = &params->tiles[i].kernel;
        double distance = fabs(log2((double)has->tile_m / kernel->tile_m)) +
                          fabs(log2((double)has->tile_n / kernel->tile_n)) +
                          (has->threads != kernel->threads ? 0.01 : 0.0) +
                          (has->slices != kernel->slices ? 0.02 : 0.0) +
                          (params->tiles[i].is_winograd ? 8.0 : 0.0);
        if (distance < least) {
            least = distance;
            *out = params->tiles[i];
        }
    }
    out->kernel = *kernel;
}

bool wg__conv_may_winograd(const struct wg_conv *conv)
{
    return conv->r == 3 && conv->s == 3 && conv->stride_h == 1 && conv->stride_w == 1 &&
           conv->dilation_h == 1 && conv->dilation_w == 1 && conv->groups == 1;
}

enum wg_op_class wg__conv_class(const struct wg_conv *conv, enum wg_conv_pass pass)
{
    if (pass == WG_CONV_FORWARD)
        return wg__conv_may_winograd(conv) ? WG_OP_CONV3X3 : WG_OP_CONV;
    return pass == WG_CONV_DGRAD ? WG_OP_DGRAD : WG_OP_WGRAD;
}
