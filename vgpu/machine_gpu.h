/* SPDX-License-Identifier: MIT
 *
 * A GPU from the keys of a machine file.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_VGPU_MACHINE_GPU_H
#define WG_VGPU_MACHINE_GPU_H

#include "vgpu/machine_file.h"

/* The GPU that is being read, for messages. */
struct vgpu_file_place {
    const struct vgpu_file *file;
    size_t gpu;
    const struct vgpu_file_gpu *given;
};

/* Overrides `model` (zero, or what `like` names) by the keys that are given and checks the whole.
 * WG_EDATA: see vgpu_file_reject. Identities that are not given stay as they are. */
enum wg_code vgpu_model_fill(struct vgpu_model *model, const struct vgpu_file_place *context,
                             struct wg_error *err);

#endif
