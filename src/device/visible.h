/* SPDX-License-Identifier: MIT
 *
 * CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER; and the ways in which GPUs are written down.
 *
 * Owns: copies of the texts.    Threads: pure after parsing, any thread.
 */
#ifndef WG_DEVICE_VISIBLE_H
#define WG_DEVICE_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct wg_candidate;
struct wg_visible;

/* NULL: unset. No value is an error: CUDA has none either, it sees fewer GPUs. WG_ENOMEM. */
enum wg_code wg__visible_new(struct wg_visible **out, const char *cuda_visible_devices,
                             const char *cuda_device_order, struct wg_error *err);
void wg__visible_free(struct wg_visible *visible);

bool wg__visible_is_set(const struct wg_visible *visible);

/* The value as it was given; NULL: unset. */
const char *wg__visible_text(const struct wg_visible *visible);

/* What ended the list before the end of the value, for messages; NULL: nothing did. */
const char *wg__visible_why_short(const struct wg_visible *visible);

/* Whether no GPU can be visible, whichever there are. */
bool wg__visible_is_empty(const struct wg_visible *visible);
bool wg__visible_needs_uuids(const struct wg_visible *visible);
bool wg__visible_needs_speeds(const struct wg_visible *visible);

/* The candidates that CUDA would see, in the order in which it would count them: positions, on the
 * heap, the caller's to free. A GPU is there twice when two of its MIG instances are visible. */
enum wg_code wg__visible_resolve(const struct wg_visible *visible,
                                 const struct wg_candidate *candidates, size_t count,
                                 size_t **gpus_out, size_t *count_out, struct wg_error *err);

struct wg_pci {
    unsigned domain, bus, device, function;
};

/* "0000:1A:00.0", "00000000:1a:00.0", "1a:00.0", "1a:00". */
bool wg__pci_parse(const char *text, struct wg_pci *out);
bool wg__pci_is_equal(const struct wg_pci *a, const struct wg_pci *b);

/* "MIG-<uuid>" or its beginning, or the older "MIG-GPU-<uuid>/<GPU instance>/<compute instance>".
 */
bool wg__mig_is_well_formed(const char *text);

/* Whether it is an instance of this GPU. */
bool wg__mig_fits(const char *text, const struct wg_candidate *candidate);

#endif
