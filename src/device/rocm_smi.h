/* SPDX-License-Identifier: MIT
 *
 * ROCm SMI, for the one thing that sysfs may lack: the energy counter of a card whose gpu_metrics
 * has a layout that we do not know.
 *
 * The library (librocm_smi64.so, Debian: librocm-smi64-1) is loaded only for such a card, by name
 * and at run time; without it the counter stays absent. Each user loads and initialises it for
 * itself, both are counted inside, so the last one to close unloads it.
 *
 * Owns: the loaded library.    Threads: one thread at a time per struct.
 */
#ifndef WG_DEVICE_ROCM_SMI_H
#define WG_DEVICE_ROCM_SMI_H

#include <stdint.h>

#include "base/error.h"

struct wg_rocm_smi {
    void *library; /* NULL: closed */
    uint32_t index;
    int (*shut_down)(void);
    int (*energy)(uint32_t index, uint64_t *counter, float *resolution_uj, uint64_t *t_ns);
};

/* Finds the card at `pci` ("0000:03:00.0"). WG_ENOENT: no such library, or it lacks a function;
 * WG_ENODEV: it does not know the card; WG_EIO: a call failed, named with its status. */
enum wg_code wg__rocm_smi_open(struct wg_rocm_smi *smi, const char *library, const char *pci,
                               struct wg_error *err);
/* NULL or closed does nothing. */
void wg__rocm_smi_close(struct wg_rocm_smi *smi);
/* Since the driver was loaded. */
enum wg_code wg__rocm_smi_energy(const struct wg_rocm_smi *smi, double *out_j,
                                 struct wg_error *err);

#endif
