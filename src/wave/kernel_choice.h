/* SPDX-License-Identifier: MIT
 *
 * Which kernel the library would run: among those that it was seen to take for such sizes, the one
 * with the least predicted time.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_KERNEL_CHOICE_H
#define WG_WAVE_KERNEL_CHOICE_H

#include "wave/wave_time.h"

struct wg_kernel_choice {
    size_t tile; /* index into the parameters' tiles */
    unsigned split_k;
    struct wg_wave_time time; /* finished */
};

/* `params` hold at least one tile. `winograd`: whether tiles of Winograd's may be taken. */
void wg__kernel_choose(const struct wg_kernel_params *params, const struct wg_wave_machine *machine,
                       const struct wg_wave_work *work, bool winograd,
                       struct wg_kernel_choice *out);
/* The tile of the parameters that is the given kernel's; else the nearest in shape, with the given
 * geometry. `kernel` has a tile. */
void wg__tile_of(const struct wg_kernel_params *params, const struct wg_kernel *kernel,
                 struct wg_tile_params *out);
/* Winograd's minimal filtering is for small dense filters that move by one. */
bool wg__conv_may_winograd(const struct wg_conv *conv);
enum wg_op_class wg__conv_class(const struct wg_conv *conv, enum wg_conv_pass pass);

#endif
