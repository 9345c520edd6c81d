/* SPDX-License-Identifier: MIT
 *
 * The kernel with the least predicted time.
 *
 * Most candidates fall out before any root is taken: by memory or by computing alone, or as the
 * best one is no worse in both. What depends on the tile or on the split only is computed once, not
 * a hundred times.
 *
 * Threads: pure, any thread.
 */
#include "wave/kernel_choice.h"

#include <math.h>

#include "wave/choice_tree.h"

/* What does not change while kernels are compared. */
struct contest {
    const struct wg_kernel_params *params;
    const struct wg_wave_machine *machine;
    const struct wg_wave_work *work;
    struct wg_kernel_choice *best; /* its time's full_s is not finished */
};

/* Takes the candidate where it beats the best one. */
static void consider(const struct contest *of, size_t tile, double tiles,
                     const struct wg_wave_split *split)
{
    const struct wg_tile_params *params = &of->params->tiles[tile];
    const struct wg_wave_time *best = &of->best->time;
    struct wg_wave_grid grid;
    /* What follows are lower bounds: the parts meet in no less than the larger one, heat and what
     * is read again come on top. */
    if (split->memory_s >= best->met_s)
        return;
    wg__wave_grid_init(&grid, of->machine, params, tiles, split, of->work->slow);
    const double compute_s = wg__wave_compute_s(of->machine, params, split, &grid);
    if (compute_s >= best->met_s ||
        (compute_s >= best->compute_s && split->memory_s >= best->memory_s))
        return;
    struct wg_wave_time time;
    wg__wave_parts(of->machine, params, split->split_k, of->work, &time);
    wg__wave_finish_time(of->machine, &time);
    if (time.time_s < best->time_s)
        *of->best =
            (struct wg_kernel_choice){.tile = tile, .split_k = split->split_k, .time = time};
}

static void choose_of_all(const struct contest *of, bool winograd)
{
    const struct wg_kernel_params *params = of->params;
    struct wg_wave_split splits[WG_SPLITS_MAX];
    size_t split_count = 1;
    wg__wave_split_init(&splits[0], of->machine, of->work, 1);
    for (; split_count < params->split_count; split_count++) {
        /* Libraries leave a block some k to run through. */
        if (of->work->gemm.k < 64 * (uint64_t)params->splits[split_count])
            break;
        wg__wave_split_init(&splits[split_count], of->machine, of->work,
                            params->splits[split_count]);
    }
    for (size_t t = 0; t < params->tile_count; t++) {
        const struct wg_tile_params *tile = &params->tiles[t];
        if (tile->is_winograd && !winograd)
            continue;
        const double tiles = wg__wave_tiles(&tile->kernel, &of->work->gemm);
        for (size_t s = 0; s < (tile->is_winograd ? 1 : split_count); s++)
            consider(of, t, tiles, &splits[s]);
    }
}

/* Among what the library was seen to take for such sizes. */
static void choose_of_options(const struct contest *of, uint64_t options, bool winograd)
{
    for (size_t i = 0; i < WG_CHOICES_MAX && options >> i != 0; i++) {
        const struct wg_kernel_option *option = &of->params->options[i];
        const struct wg_tile_params *tile = &of->params->tiles[option->tile];
        if ((options >> i & 1) == 0 || (tile->is_winograd && !winograd))
            continue;
        struct wg_wave_split split;
        wg__wave_split_init(&split, of->machine, of->work, option->split_k);
        consider(of, option->tile, wg__wave_tiles(&tile->kernel, &of->work->gemm), &split);
    }
}

void wg__kernel_choose(const struct wg_kernel_params *params, const struct wg_wave_machine *machine,
                       const struct wg_wave_work *work, bool winograd, struct wg_kernel_choice *out)
{
    *out = (struct wg_kernel_choice){
        .split_k = 1,
        .time = {
            .time_s = INFINITY, .compute_s = INFINITY, .memory_s = INFINITY, .met_s = INFINITY}};
    const struct contest contest = {params, machine, work, out};
    choose_of_options(&contest, wg__choice_tree_options(params, &work->gemm), winograd);
    if (!isfinite(out->time.time_s)) /* no tree, or none of its options is allowed */
        choose_of_all(&contest, winograd);
    wg__wave_finish_full(machine, &out->time);
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
