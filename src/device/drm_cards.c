/* SPDX-License-Identifier: MIT
 *
 * Cards in /sys/class/drm.
 *
 *     card1         -> a card; its folder `device` is that of the PCI device
 *     card1-DP-1    -> a connector of it: skipped
 *     renderD129    -> its other node: skipped
 *
 * The numbers depend on the order in which drivers were loaded; the PCI address lasts.
 *
 * Owns: nothing.    Threads: any thread.
 */
#include "device/drm_cards.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "device/select.h"
#include "device/sysfs.h"

#define DRM_FOLDER "/sys/class/drm"

static enum wg_code fail_memory(struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, DRM_FOLDER ": out of memory");
}

/* "0x1002" */
static bool parse_hex(const char *text, uint64_t *out)
{
    if (strncmp(text, "0x", 2) != 0 || strlen(text) < 3 || strlen(text) > 18)
        return false;
    uint64_t value = 0;
    for (const char *p = text + 2; *p != '\0'; p++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = strchr(digits, *p);
        if (digit == NULL)
            return false;
        value = value << 4 | (uint64_t)(digit - digits);
    }
    *out = value;
    return true;
}

static bool read_text(const char *root, const char *folder, const char *name,
                      struct wg_arena *arena, char *out, size_t size)
{
    const char *path = wg__sysfs_path(arena, "%s/%s", folder, name);
    return path != NULL && wg__sysfs_text(root, path, out, size, NULL) == WG_OK;
}

/* A line "KEY=value" of a uevent file; NULL when there is none or no memory. */
static const char *event_value(const char *event, const char *key, struct wg_arena *arena)
{
    const size_t length = strlen(key);
    for (const char *line = event; line != NULL && *line != '\0';) {
        if (strncmp(line, key, length) == 0 && line[length] == '=') {
            const char *value = line + length + 1;
            const size_t size = strcspn(value, "\n");
            char *copy = wg__arena_alloc(arena, size + 1, 1);
            if (copy != NULL)
                memcpy(copy, value, size);
            return copy;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return NULL;
}

/* What is behind a card's folder; false: no PCI card, or one that nobody drives. */
static bool read_card(const char *root, const char *folder, struct wg_arena *arena,
                      uint64_t *vendor_out, struct wg_drm_card *out)
{
    char text[1024];
    *out = (struct wg_drm_card){.folder = folder, .numa_node = UINT_MAX};
    if (!read_text(root, folder, "vendor", arena, text, sizeof text) ||
        !parse_hex(text, vendor_out) ||
        !read_text(root, folder, "device", arena, text, sizeof text) ||
        !parse_hex(text, &out->device_id))
        return false;
    uint64_t node = 0;
    if (read_text(root, folder, "numa_node", arena, text, sizeof text) &&
        wg__parse_uint64(text, &node) && node < UINT_MAX)
        out->numa_node = (unsigned)node;
    if (!read_text(root, folder, "uevent", arena, text, sizeof text))
        return false;
    out->driver = event_value(text, "DRIVER", arena);
    out->pci = event_value(text, "PCI_SLOT_NAME", arena);
    return out->driver != NULL && out->pci != NULL;
}

/* Folders of cards, connectors left out. */
static enum wg_code list_folders(const char *root, struct wg_arena *arena,
                                 const char ***folders_out, size_t *count_out, struct wg_error *err)
{
    static const char prefix[] = "card";
    const char *const *names = NULL;
    size_t count = 0;
    const enum wg_code code = wg__sysfs_list(root, DRM_FOLDER, prefix, arena, &names, &count, err);
    if (code != WG_OK)
        return code;
    const char **folders = wg__arena_alloc(arena, count, sizeof *folders);
    if (folders == NULL)
        return fail_memory(err);
    *count_out = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t number = 0;
        if (!wg__parse_uint64(names[i] + sizeof prefix - 1, &number))
            continue;
        const char *folder = wg__sysfs_path(arena, DRM_FOLDER "/%s/device", names[i]);
        if (folder == NULL)
            return fail_memory(err);
        folders[(*count_out)++] = folder;
    }
    *folders_out = folders;
    return WG_OK;
}

static int compare_cards(const void *left, const void *right)
{
    return strcmp(((const struct wg_drm_card *)left)->pci,
                  ((const struct wg_drm_card *)right)->pci);
}

/* ROCm's name of a GPU, "GPU-" and the lasting number of the chip, is its UUID. */
static const char *uuid_of(const char *root, const struct wg_drm_card *card, struct wg_arena *arena)
{
    char number[64];
    if (!read_text(root, card->folder, "unique_id", arena, number, sizeof number))
        return NULL;
    return wg__sysfs_path(arena, "GPU-%s", number);
}

enum wg_code wg__drm_cards_choose(const struct wg_backend_config *config, struct wg_drm_card *cards,
                                  size_t count, struct wg_arena *arena, struct wg_error *err)
{
    const struct wg_selection *selection = config->selection;
    const bool is_all = selection == NULL || wg__selection_is_all(selection);
    for (size_t i = 0; i < count; i++)
        cards[i].is_chosen = is_all;
    if (is_all)
        return WG_OK;
    struct wg_candidate *candidates = wg__arena_alloc(arena, count, sizeof *candidates);
    bool *chosen = wg__arena_alloc(arena, count, sizeof *chosen);
    if (candidates == NULL || chosen == NULL)
        return fail_memory(err);
    const bool wants_uuid = wg__selection_needs_uuids(selection);
    for (size_t i = 0; i < count; i++) {
        candidates[i].pci = cards[i].pci;
        candidates[i].uuid = wants_uuid ? uuid_of(config->root, &cards[i], arena) : NULL;
    }
    const enum wg_code code = wg__selection_match(selection, candidates, count, chosen, err);
    for (size_t i = 0; code == WG_OK && i < count; i++)
        cards[i].is_chosen = chosen[i];
    return code;
}

enum wg_code wg__drm_cards(const char *root, uint64_t vendor, struct wg_arena *arena,
                           struct wg_drm_card **cards_out, size_t *count_out, struct wg_error *err)
{
    const char **folders = NULL;
    size_t count = 0;
    const enum wg_code code = list_folders(root, arena, &folders, &count, err);
    if (code != WG_OK)
        return code;
    struct wg_drm_card *cards = wg__arena_alloc(arena, count, sizeof *cards);
    if (cards == NULL)
        return fail_memory(err);
    size_t kept = 0;
    for (size_t i = 0; folders != NULL && i < count; i++) {
        uint64_t card_vendor = 0;
        if (read_card(root, folders[i], arena, &card_vendor, &cards[kept]) && card_vendor == vendor)
            kept++;
    }
    qsort(cards, kept, sizeof *cards, compare_cards);
    *cards_out = cards;
    *count_out = kept;
    return WG_OK;
}

enum wg_code wg__drm_card_find(const char *root, const char *pci, struct wg_arena *arena,
                               const char **out, struct wg_error *err)
{
    const char **folders = NULL;
    size_t count = 0;
    const enum wg_code code = list_folders(root, arena, &folders, &count, err);
    if (code != WG_OK)
        return code;
    *out = NULL;
    for (size_t i = 0; folders != NULL && i < count && *out == NULL; i++) {
        uint64_t vendor = 0;
        struct wg_drm_card card;
        if (read_card(root, folders[i], arena, &vendor, &card) && strcmp(card.pci, pci) == 0)
            *out = folders[i];
    }
    return WG_OK;
}

enum wg_code wg__drm_card_hwmon(const char *root, const char *folder, struct wg_arena *arena,
                                const char **out, struct wg_error *err)
{
    const char *parent = wg__sysfs_path(arena, "%s/hwmon", folder);
    if (parent == NULL)
        return fail_memory(err);
    const char *const *names = NULL;
    size_t count = 0;
    const enum wg_code code = wg__sysfs_list(root, parent, "hwmon", arena, &names, &count, err);
    if (code != WG_OK)
        return code;
    *out = NULL;
    if (count == 0)
        return WG_OK;
    *out = wg__sysfs_path(arena, "%s/%s", parent, names[0]);
    return *out != NULL ? WG_OK : fail_memory(err);
}

enum wg_code wg__drm_cards_open(const struct wg_drm_vendor *vendor,
                                const struct wg_backend_config *config, struct wg_device_list *list,
                                const char **remedy_out, struct wg_error *err)
{
    if (config->selection != NULL && wg__selection_is_none(config->selection))
        return wg__selection_fail_none(config->selection, 0, remedy_out, err);
    struct wg_arena arena;
    wg__arena_init(&arena);
    struct wg_drm_card *cards = NULL;
    size_t count = 0;
    enum wg_code code = wg__drm_cards(config->root, vendor->id, &arena, &cards, &count, err);
    if (code == WG_OK)
        code = vendor->filter(config->root, cards, &count, &arena, remedy_out, err);
    if (code == WG_OK && cards != NULL)
        code = wg__drm_cards_choose(config, cards, count, &arena, err);
    for (size_t i = 0; code == WG_OK && cards != NULL && i < count; i++) {
        if (cards[i].is_chosen)
            code = vendor->add(config, &cards[i], (unsigned)i, list, err);
    }
    wg__arena_fini(&arena);
    return code;
}
