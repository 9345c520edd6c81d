/* SPDX-License-Identifier: MIT
 *
 * CUDA_VISIBLE_DEVICES, as CUDA reads it.
 *
 * Documented (CUDA Programming Guide, "CUDA Environment Variables"): indices or UUIDs, UUIDs may be
 * cut short while they stay unique, an invalid entry hides itself and all behind it, MIG instances
 * by MIG-GPU-<uuid>/<gi>/<ci> or MIG-<uuid>. Not documented, but what CUDA does, as PyTorch found
 * out (torch/cuda/__init__.py, _parse_visible_devices) and repeats to count GPUs without CUDA:
 *
 *     "1abc"       is 1: the number at the beginning, as strtoul reads it; "abc" is invalid
 *     "0,0"        nothing is visible: an entry given twice empties the list
 *     "GPU-x,1"    the first entry decides on the form; the 1 is invalid behind it, and so is a
 *                  UUID behind an index
 *     " 0 , 1 "    blanks around an index do not matter; in front of a UUID they make it invalid
 *
 * We cannot ask CUDA itself: that would create a context on each GPU.
 *
 * Owns: see struct wg_visible.    Threads: pure after parsing, any thread.
 */
#include "device/visible.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "device/select.h"

enum { ENTRIES_MAX = 4096 };

enum visible_form { UNSET, INDICES, GPU_UUIDS, MIG_UUIDS };

struct wg_visible {
    struct wg_arena arena;
    enum visible_form form;
    bool is_pci_order;
    const char *given;  /* in the arena; NULL: unset */
    const char *why;    /* a literal; see wg__visible_why_short */
    size_t *indices;    /* in the arena; INDICES */
    const char **texts; /* in the arena; GPU_UUIDS, MIG_UUIDS */
    size_t count;
};

static const char *const given_twice = "CUDA sees none when an entry is given twice";

static enum wg_code fail_memory(struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "cannot read CUDA_VISIBLE_DEVICES: out of memory");
}

/* -- Parsing ---------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The number at the beginning of [from, end); false: none, or a negative one. */
static bool scan_index(const char *from, const char *end, size_t *out)
{
    while (from < end && is_blank(*from))
        from++;
    if (from < end && *from == '+')
        from++;
    size_t value = 0;
    const char *p = from;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        value = value < SIZE_MAX / 100 ? value * 10 + (size_t)(*p - '0') : value;
    *out = value;
    return p != from;
}

static void parse_indices(struct wg_visible *visible, const char *text)
{
    for (const char *from = text; visible->count < ENTRIES_MAX; from++) {
        const char *end = strchr(from, ',');
        if (end == NULL)
            end = from + strlen(from);
        size_t index = 0;
        if (!scan_index(from, end, &index)) {
            visible->why = *text == '\0' ? "it is empty" : "it has an entry that is no index";
            return;
        }
        for (size_t i = 0; i < visible->count; i++) {
            if (visible->indices[i] == index) {
                visible->why = given_twice;
                visible->count = 0;
                return;
            }
        }
        visible->indices[visible->count++] = index;
        if (*end == '\0')
            return;
        from = end;
    }
}

static enum wg_code parse_uuids(struct wg_visible *visible, const char *text, const char *prefix,
                                struct wg_error *err)
{
    char *copy = wg__arena_strdup(&visible->arena, text);
    if (copy == NULL)
        return fail_memory(err);
    while (copy != NULL && visible->count < ENTRIES_MAX) {
        char *comma = strchr(copy, ',');
        if (comma != NULL)
            *comma = '\0';
        for (size_t i = 0; i < visible->count; i++) {
            if (strcmp(visible->texts[i], copy) == 0) {
                visible->why = given_twice;
                visible->count = 0;
                return WG_OK;
            }
        }
        if (strncmp(copy, prefix, strlen(prefix)) != 0)
            return WG_OK;
        visible->texts[visible->count++] = copy;
        copy = comma != NULL ? comma + 1 : NULL;
    }
    return WG_OK;
}

static enum wg_code parse(struct wg_visible *visible, const char *text, struct wg_error *err)
{
    visible->given = wg__arena_strdup(&visible->arena, text);
    if (visible->given == NULL)
        return fail_memory(err);
    size_t room = 1;
    for (const char *p = text; *p != '\0' && room < ENTRIES_MAX; p++)
        room += *p == ',';
    visible->indices = wg__arena_alloc(&visible->arena, room, sizeof *visible->indices);
    visible->texts = wg__arena_alloc(&visible->arena, room, sizeof *visible->texts);
    if (visible->indices == NULL || visible->texts == NULL)
        return fail_memory(err);
    if (strncmp(text, "GPU-", 4) == 0) {
        visible->form = GPU_UUIDS;
        return parse_uuids(visible, text, "GPU-", err);
    }
    if (strncmp(text, "MIG-", 4) == 0) {
        visible->form = MIG_UUIDS;
        return parse_uuids(visible, text, "MIG-", err);
    }
    visible->form = INDICES;
    parse_indices(visible, text);
    return WG_OK;
}

enum wg_code wg__visible_new(struct wg_visible **out, const char *cuda_visible_devices,
                             const char *cuda_device_order, struct wg_error *err)
{
    struct wg_visible *visible = wg__alloc_zeroed(1, sizeof *visible);
    if (visible == NULL)
        return fail_memory(err);
    wg__arena_init(&visible->arena);
    visible->is_pci_order =
        cuda_device_order != NULL && strcmp(cuda_device_order, "PCI_BUS_ID") == 0;
    if (cuda_visible_devices != NULL && parse(visible, cuda_visible_devices, err) != WG_OK) {
        wg__visible_free(visible);
        return WG_ENOMEM;
    }
    *out = visible;
    return WG_OK;
}

void wg__visible_free(struct wg_visible *visible)
{
    if (visible == NULL)
        return;
    wg__arena_fini(&visible->arena);
    wg__free(visible);
}

/* -- Questions -------------------------------------------------------------------------------- */

bool wg__visible_is_set(const struct wg_visible *visible)
{
    return visible->form != UNSET;
}

const char *wg__visible_text(const struct wg_visible *visible)
{
    return visible->given;
}

const char *wg__visible_why_short(const struct wg_visible *visible)
{
    return visible->why;
}

bool wg__visible_is_empty(const struct wg_visible *visible)
{
    return visible->form != UNSET && visible->count == 0;
}

bool wg__visible_needs_uuids(const struct wg_visible *visible)
{
    return visible->form == GPU_UUIDS || visible->form == MIG_UUIDS;
}

bool wg__visible_needs_speeds(const struct wg_visible *visible)
{
    return !visible->is_pci_order && (visible->form == INDICES || visible->form == UNSET);
}

/* -- Resolving -------------------------------------------------------------------------------- */

/* Positions in the order in which CUDA counts. One unknown speed spoils the comparison: then the
 * driver's order stays. */
static void order_by_speed(const struct wg_visible *visible, const struct wg_candidate *candidates,
                           size_t count, size_t *order)
{
    bool is_comparable = !visible->is_pci_order;
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
        is_comparable = is_comparable && candidates[i].speed > 0.0;
    }
    for (size_t i = 1; i < count && is_comparable; i++) { /* insertion keeps ties in order */
        const size_t moved = order[i];
        size_t at = i;
        for (; at > 0 && candidates[order[at - 1]].speed < candidates[moved].speed; at--)
            order[at] = order[at - 1];
        order[at] = moved;
    }
}

/* The one candidate that `text` means; false: none or several. */
static bool find_gpu(enum visible_form form, const char *text,
                     const struct wg_candidate *candidates, size_t count, size_t *out)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const char *uuid = candidates[i].uuid;
        const bool fits = form == MIG_UUIDS
                              ? wg__mig_fits(text, &candidates[i])
                              : uuid != NULL && strncmp(uuid, text, strlen(text)) == 0;
        if (fits) {
            *out = i;
            found++;
        }
    }
    return found == 1;
}

static size_t resolve_uuids(const struct wg_visible *visible, const struct wg_candidate *candidates,
                            size_t count, size_t *gpus)
{
    size_t found = 0;
    for (size_t i = 0; i < visible->count; i++) {
        size_t gpu = 0;
        if (!find_gpu(visible->form, visible->texts[i], candidates, count, &gpu))
            return found;
        /* Two beginnings of one GPU's UUID are that GPU given twice. */
        for (size_t j = 0; j < found && visible->form == GPU_UUIDS; j++) {
            if (gpus[j] == gpu)
                return 0;
        }
        gpus[found++] = gpu;
    }
    return found;
}

enum wg_code wg__visible_resolve(const struct wg_visible *visible,
                                 const struct wg_candidate *candidates, size_t count,
                                 size_t **gpus_out, size_t *count_out, struct wg_error *err)
{
    const size_t room = count > visible->count ? count : visible->count;
    size_t *gpus = wg__alloc_zeroed(room + 1, sizeof *gpus);
    size_t *order = wg__alloc_zeroed(count + 1, sizeof *order);
    if (gpus == NULL || order == NULL) {
        wg__free(gpus);
        wg__free(order);
        return fail_memory(err);
    }
    order_by_speed(visible, candidates, count, order);
    size_t found = 0;
    if (visible->form == UNSET) {
        memcpy(gpus, order, count * sizeof *gpus);
        found = count;
    } else if (visible->form == INDICES) {
        for (; found < visible->count && visible->indices[found] < count; found++)
            gpus[found] = order[visible->indices[found]];
    } else {
        found = resolve_uuids(visible, candidates, count, gpus);
    }
    wg__free(order);
    *gpus_out = gpus;
    *count_out = found;
    return WG_OK;
}

/* -- Ways to write a GPU down -------------------------------------------------------------------
 */

/* Up to `digits_max` hexadecimal digits. */
static bool scan_hex(const char **cursor, size_t digits_max, unsigned *out)
{
    static const char digits[] = "0123456789abcdef";
    const char *p = *cursor;
    unsigned value = 0;
    for (; *p != '\0' && (size_t)(p - *cursor) < digits_max; p++) {
        const char lower = *p >= 'A' && *p <= 'F' ? (char)(*p - 'A' + 'a') : *p;
        const char *digit = strchr(digits, lower);
        if (digit == NULL)
            break;
        value = value << 4 | (unsigned)(digit - digits);
    }
    const bool any = p != *cursor;
    *cursor = p;
    *out = value;
    return any;
}

static bool scan_byte(const char **cursor, char byte)
{
    if (**cursor != byte)
        return false;
    ++*cursor;
    return true;
}

bool wg__pci_parse(const char *text, struct wg_pci *out)
{
    *out = (struct wg_pci){0};
    const char *p = text;
    if (!scan_hex(&p, 8, &out->bus) || !scan_byte(&p, ':') || !scan_hex(&p, 2, &out->device))
        return false;
    if (scan_byte(&p, ':')) { /* the first was the domain */
        out->domain = out->bus;
        out->bus = out->device;
        if (!scan_hex(&p, 2, &out->device))
            return false;
    }
    if (scan_byte(&p, '.') && !scan_hex(&p, 1, &out->function))
        return false;
    return *p == '\0' && out->bus <= 0xFF && out->device <= 0x1F && out->function <= 7;
}

bool wg__pci_is_equal(const struct wg_pci *a, const struct wg_pci *b)
{
    return a->domain == b->domain && a->bus == b->bus && a->device == b->device &&
           a->function == b->function;
}

static bool is_uuid_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == '-';
}

static bool scan_number(const char **cursor)
{
    const char *from = *cursor;
    while (**cursor >= '0' && **cursor <= '9')
        ++*cursor;
    return *cursor != from;
}

bool wg__mig_is_well_formed(const char *text)
{
    if (strncasecmp(text, "MIG-", 4) != 0)
        return false;
    const char *p = text + 4;
    const bool names_gpu = strncasecmp(p, "GPU-", 4) == 0;
    if (names_gpu)
        p += 4;
    const char *uuid = p;
    while (is_uuid_byte(*p))
        p++;
    if (p == uuid)
        return false;
    if (!names_gpu)
        return *p == '\0';
    return scan_byte(&p, '/') && scan_number(&p) && scan_byte(&p, '/') && scan_number(&p) &&
           *p == '\0';
}

bool wg__mig_fits(const char *text, const struct wg_candidate *candidate)
{
    if (!wg__mig_is_well_formed(text))
        return false;
    const char *slash = strchr(text, '/');
    if (slash != NULL) { /* MIG-<the UUID of the GPU>/... */
        const char *uuid = candidate->uuid;
        const size_t length = (size_t)(slash - text) - 4;
        return uuid != NULL && strlen(uuid) == length && strncasecmp(uuid, text + 4, length) == 0;
    }
    for (size_t i = 0; i < candidate->mig_count; i++) {
        if (strncasecmp(candidate->mig_uuids[i], text, strlen(text)) == 0)
            return true;
    }
    return false;
}
