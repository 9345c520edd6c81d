/* SPDX-License-Identifier: MIT
 *
 * Which GPUs: `--gpu` selectors and CUDA_VISIBLE_DEVICES, resolved as CUDA does.
 *
 * A selection is parsed first (no driver needed) and matched by a backend against what it can list
 * without touching a GPU: index, UUID, PCI address. CUDA's rules: a list of indices or UUID
 * beginnings, GPU-... or MIG-..., ended by the first entry that is invalid, unknown, ambiguous or
 * given twice; "-1" ends it; an empty value means no GPU; NoDevFiles (Slurm) means none. Indices
 * count in PCI order with CUDA_DEVICE_ORDER=PCI_BUS_ID, else fastest first, which the driver does
 * not publish: `speed` orders, ties stay in PCI order. Selectors of `--gpu` are stricter: what fits
 * no GPU, or several, is an error that lists the GPUs.
 *
 * Owns: copies of the texts.    Threads: pure after parsing, any thread.
 */
#ifndef WG_DEVICE_SELECT_H
#define WG_DEVICE_SELECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct wg_selection;

/* A GPU that may be chosen, in the driver's order, as far as it is known without touching it. */
struct wg_candidate {
    const char *uuid; /* NULL: unknown yet */
    const char *pci;  /* "0000:1a:00.0"; NULL: unknown */
    double speed;     /* cores x largest clock, any unit; 0: unknown */
    const char *const *mig_uuids;
    size_t mig_count;
};

/* `selectors` as in wg_machine_opts.gpus; with none, the two values of the environment (NULL:
 * unset) decide. WG_EINVAL: malformed; WG_ENOMEM. */
enum wg_code wg__selection_new(struct wg_selection **out, const char *const *selectors,
                               size_t count, const char *cuda_visible_devices,
                               const char *cuda_device_order, struct wg_error *err);
void wg__selection_free(struct wg_selection *selection);

/* Whether everything is chosen ("all", or nothing was said): no candidate need be known. */
bool wg__selection_is_all(const struct wg_selection *selection);
bool wg__selection_is_none(const struct wg_selection *selection);

/* Whether matching needs UUIDs, speeds or MIG UUIDs, which only the driver may know. */
bool wg__selection_needs_uuids(const struct wg_selection *selection);
bool wg__selection_needs_speeds(const struct wg_selection *selection);

/* chosen[i] says whether candidate i is chosen. WG_EINVAL: a selector of the user fits no candidate
 * or several. Entries of CUDA_VISIBLE_DEVICES that fit none are no error: they end the list. */
enum wg_code wg__selection_match(const struct wg_selection *selection,
                                 const struct wg_candidate *candidates, size_t count, bool *chosen,
                                 struct wg_error *err);

#endif
