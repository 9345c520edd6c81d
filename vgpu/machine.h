/* SPDX-License-Identifier: MIT
 *
 * Machine files: virtual machines as YAML, read through libcyaml.
 *
 * The shipped ones lie in vgpu/machines/<id>.yaml (installed beside the program): v100, a40, a100,
 * h100, h200, t4, rtx-4090, 8xh100, a100-mig, mixed. Each number there has its source in a comment.
 * A GPU may say `like: ID` and override what is different. docs/virtual-gpu.md lists the keys.
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

/* By id (looked up in `folder`, in any case) or path of a file. WG_ENOENT lists the ids that there
 * are; WG_EDATA names file, line and column, and what was expected. Free with
 * vgpu_description_fini. */
enum wg_code vgpu_machine_read(struct vgpu_description *out, const char *folder,
                               const char *id_or_path, struct wg_error *err);
/* The same of a text in memory; `name` stands for the path in messages. */
enum wg_code vgpu_machine_parse(struct vgpu_description *out, const char *folder, const char *name,
                                const char *text, size_t length, struct wg_error *err);
void vgpu_description_fini(struct vgpu_description *description);

/* Adds the GPUs of `other` to `base`, which keeps its driver; a UUID or PCI address that is taken
 * is derived anew. `base` may be all zero. WG_EINVAL: more than VGPU_GPUS_MAX. */
enum wg_code vgpu_description_append(struct vgpu_description *base,
                                     const struct vgpu_description *other, struct wg_error *err);

enum { VGPU_MACHINES_MAX = 128 };

struct vgpu_machine_ids {
    char ids[VGPU_MACHINES_MAX][VGPU_TEXT_MAX];
    size_t count;
};

/* The ids of the machine files in `folder`, sorted. */
enum wg_code vgpu_machine_list(struct vgpu_machine_ids *out, const char *folder,
                               struct wg_error *err);

#endif
