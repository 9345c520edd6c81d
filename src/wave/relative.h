/* SPDX-License-Identifier: MIT
 *
 * Parameters for a GPU that was not measured: those of its nearest measured relative.
 *
 * Kinship is of architecture first, then of how much arithmetic goes with a byte of memory. Shares
 * of the data sheet carry over; how far off that is, was measured by leaving each measured GPU out
 * in turn (docs/internals/wave-model.md), and widens the range.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_RELATIVE_H
#define WG_WAVE_RELATIVE_H

#include <stdbool.h>

#include "wave/calibration.h"

/* Parameters for `gpu`, `dtype` and `op`, its own where there are any. `*is_transferred` says that
 * they are another's. `*out_entry`: where they come from. false: none in the calibration.
 * `kernel`: of those that have its tile only; NULL: of all. */
bool wg__relative_find(const struct wg_calibration *calibration, const struct wg_gpu_spec *gpu,
                       enum wg_dtype dtype, enum wg_op_class op, const struct wg_kernel *kernel,
                       struct wg_kernel_params *out, bool *is_transferred,
                       const struct wg_calibrated **out_entry);

#endif
