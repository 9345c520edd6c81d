/* SPDX-License-Identifier: MIT
 *
 * Machine files: virtual machines as YAML, read through libcyaml.
 *
 * The shipped ones lie in vgpu/machines/<id>.yaml (installed beside the program): v100, a40, a100,
 * h100, h200, t4, rtx-4090, 8xh100, a100-mig. Each number there has its source in a comment.
 *
 * Threads: any thread.
 */
#ifndef WG_VGPU_MACHINE_H
#define WG_VGPU_MACHINE_H

#include "vgpu/state.h"

struct vgpu_description {
    char id[VGPU_TEXT_MAX];
    char driver[VGPU_TEXT_MAX], nvml_version[VGPU_TEXT_MAX];
    int cuda_version;
    bool anyone_may_set;
    struct vgpu_model *models; /* one a GPU, UUIDs and PCI addresses filled in */
    size_t count;
};

/* By id (looked up in `folder`) or path of a file. WG_ENOENT lists the ids that there are; WG_EDATA
 * names file, line and column, and what was expected. Free with vgpu_description_fini. */
enum wg_code vgpu_machine_read(struct vgpu_description *out, const char *folder,
                               const char *id_or_path, struct wg_error *err);
void vgpu_description_fini(struct vgpu_description *description);

#endif
