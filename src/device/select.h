/* SPDX-License-Identifier: MIT
 *
 * Which GPUs: `--gpu` selectors and CUDA_VISIBLE_DEVICES, resolved as CUDA does.
 *
 * A selection is parsed first (no driver needed) and matched by each backend in turn against what
 * it can list without touching a GPU: index, UUID, PCI address. CUDA's rules: a list of indices, or
 * of UUID beginnings GPU-..., or of MIG-...; the first entry decides which. The list is ended by
 * the first entry that is of another form, unknown or ambiguous; an entry given twice makes it
 * empty.
 * "-1", an empty value and NoDevFiles (Slurm) therefore mean no GPU. Indices count in PCI order
 * with CUDA_DEVICE_ORDER=PCI_BUS_ID, else fastest first, which the driver does not publish: `speed`
 * orders, ties stay in PCI order.
 *
 * Selectors of `--gpu` are stricter: what fits several GPUs, or none of any backend, is an error
 * that lists the GPUs. Their plain indices count through the backends: with two NVIDIA GPUs, the
 * first AMD GPU is 2. A selector that one backend has met is not looked at by the next.
 *
 * Owns: copies of the texts.    Threads: any after parsing; a lock guards what the backends add.
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

/* Whether matching needs PCI addresses: the kernel may list other GPUs than the driver does. */
bool wg__selection_needs_addresses(const struct wg_selection *selection);

/* chosen[i] says whether candidate i is chosen. Once per backend, with all its candidates, and not
 * at all when everything is chosen. WG_EINVAL: a selector of the user fits several; WG_ENOMEM.
 * Entries of CUDA_VISIBLE_DEVICES that fit none are no error: they end the list. */
enum wg_code wg__selection_match(const struct wg_selection *selection,
                                 const struct wg_candidate *candidates, size_t count, bool *chosen,
                                 struct wg_error *err);

/* WG_ENODEV: of the `gpu_count` GPUs of a backend (0: it did not look) none is chosen; says whose
 * choice that was and, where it was the environment's, what to do. */
enum wg_code wg__selection_fail_none(const struct wg_selection *selection, size_t gpu_count,
                                     const char **remedy_out, struct wg_error *err);

/* How many GPUs the backends have brought to be matched so far. */
size_t wg__selection_gpu_count(const struct wg_selection *selection);

/* After all backends have matched. WG_EINVAL: a selector of the user fits no GPU; the text lists
 * those that are there. */
enum wg_code wg__selection_check(const struct wg_selection *selection, struct wg_error *err);

#endif
