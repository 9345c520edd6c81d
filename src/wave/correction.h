/* SPDX-License-Identifier: MIT
 *
 * What a library does beside the formula: a forest's factor on the time of a chosen kernel.
 *
 * The formula takes the kernel with the least predicted time. Libraries follow heuristics of their
 * own: on an A100, cuBLAS takes 210 us at m = 392 where it takes 108 us at m = 384 (n = k = 5120),
 * and on Hopper the formula alone says next to nothing about where the steps are. Which shapes fare
 * so recurs over the shapes of a GPU, by how its tiles and waves divide. The features are those
 * divisions, for the usual tiles whatever tile was chosen; docs/internals/wave-choice.md has the
 * figures.
 *
 * Owns: nothing; the forest is the caller's.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_CORRECTION_H
#define WG_WAVE_CORRECTION_H

#include "wave/forest.h"
#include "wave/kernel_choice.h"

enum { WG_CORRECTION_FEATURES = 49 };

void wg__correction_features(const struct wg_wave_machine *machine, const struct wg_wave_work *work,
                             const struct wg_kernel_choice *choice,
                             float out[static WG_CORRECTION_FEATURES]);
/* Scales the choice's times. `forest` may be NULL: nothing changes. */
void wg__correct(const struct wg_forest_index *forest, const struct wg_wave_machine *machine,
                 const struct wg_wave_work *work, struct wg_kernel_choice *choice);

#endif
