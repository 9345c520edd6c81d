/* SPDX-License-Identifier: MIT
 *
 * The graphics cards of one vendor in /sys/class/drm, and which of them were chosen.
 *
 * Only files that the PCI core answers are read (vendor, device, uevent), so no GPU is woken by
 * being listed.
 *
 * Threads: any thread.
 */
#ifndef WG_DEVICE_DRM_CARDS_H
#define WG_DEVICE_DRM_CARDS_H

#include "device/backend.h"

struct wg_drm_card {
    const char *folder; /* "/sys/class/drm/card1/device" */
    const char *pci;    /* "0000:03:00.0" */
    const char *driver; /* of the kernel: "amdgpu" */
    uint64_t device_id; /* 0x744c */
    unsigned numa_node; /* UINT_MAX: unknown */
    bool is_chosen;
};

/* The cards of `vendor` (0x1002) in the order of their PCI addresses; texts and array in `arena`.
 */
enum wg_code wg__drm_cards(const char *root, uint64_t vendor, struct wg_arena *arena,
                           struct wg_drm_card **cards_out, size_t *count_out, struct wg_error *err);

/* Sets is_chosen: once per backend, with all the cards that it can drive. */
enum wg_code wg__drm_cards_choose(const struct wg_backend_config *config, struct wg_drm_card *cards,
                                  size_t count, struct wg_arena *arena, struct wg_error *err);

/* What a vendor's backend does with its cards. */
struct wg_drm_vendor {
    uint64_t id; /* 0x1002 */
    /* Keeps the cards that the backend can drive, in place. WG_ENODEV: none. */
    enum wg_code (*filter)(const char *root, struct wg_drm_card *cards, size_t *count,
                           struct wg_arena *arena, const char **remedy_out, struct wg_error *err);
    /* Adds a device for a card; `index` counts those that were kept. */
    enum wg_code (*add)(const struct wg_backend_config *config, const struct wg_drm_card *card,
                        unsigned index, struct wg_device_list *list, struct wg_error *err);
};

/* Lists, filters, chooses and adds: wg_backend.open of a vendor. */
enum wg_code wg__drm_cards_open(const struct wg_drm_vendor *vendor,
                                const struct wg_backend_config *config, struct wg_device_list *list,
                                const char **remedy_out, struct wg_error *err);

/* The folder of the card at a PCI address; NULL in `*out` when it is not there. */
enum wg_code wg__drm_card_find(const char *root, const char *pci, struct wg_arena *arena,
                               const char **out, struct wg_error *err);

/* The first folder hwmonN of a card, or NULL in `*out`. */
enum wg_code wg__drm_card_hwmon(const char *root, const char *folder, struct wg_arena *arena,
                                const char **out, struct wg_error *err);

#endif
