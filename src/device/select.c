/* SPDX-License-Identifier: MIT
 *
 * The user's selectors: parsed once, met by one backend after the other.
 *
 *     "0,2-3"  "gpu0"  "GPU-af7b"  "1a:00.0"  "MIG-..."  "cuda:0"  "all"  "none"
 *
 * What CUDA_VISIBLE_DEVICES means is in visible.c; here it answers when there are no selectors, and
 * when one says cuda:N.
 *
 * Owns: see struct wg_selection.    Threads: see select.h.
 */
#include "device/select.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/number.h"
#include "device/visible.h"

enum { INDEX_MAX = 65535, SELECTORS_MAX = 4096, ITEM_MAX = 128, UUID_SHOWN = 12, UUID_MIN = 8 };

enum selector_kind { BY_ALL, BY_NONE, BY_INDEX, BY_UUID, BY_MIG, BY_PCI, BY_CUDA };

struct selector {
    enum selector_kind kind;
    const char *text;  /* as given, for messages */
    unsigned first;    /* BY_INDEX, BY_CUDA */
    unsigned last;     /* BY_INDEX */
    struct wg_pci pci; /* BY_PCI */
};

/* What the backends have made of it so far. */
struct tally {
    pthread_mutex_t lock;
    bool *is_met;     /* one a selector */
    size_t gpu_count; /* candidates of the backends that have matched */
    char gpus[384];   /* they, for messages; cut to fit */
};

struct wg_selection {
    struct wg_arena arena;
    struct selector *items; /* owned */
    size_t count;
    size_t capacity;
    struct wg_visible *visible; /* owned */
    struct tally *tally;        /* in the arena; changes though the selection is const */
    bool is_all;
    bool is_none;
};

static enum wg_code fail_memory(struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "cannot select GPUs: out of memory");
}

/* -- Parsing ---------------------------------------------------------------------------------- */

static bool has_prefix(const char *text, const char *prefix)
{
    return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

static bool parse_index(const char *text, unsigned *out)
{
    uint64_t value = 0;
    if (!wg__parse_uint64(text, &value) || value > INDEX_MAX)
        return false;
    *out = (unsigned)value;
    return true;
}

/* "2" or "2-3". */
static bool parse_range(const char *text, struct selector *out)
{
    char first[ITEM_MAX];
    const char *dash = strchr(text, '-');
    if (dash == NULL) {
        if (!parse_index(text, &out->first))
            return false;
        out->last = out->first;
        return true;
    }
    (void)snprintf(first, sizeof first, "%.*s", (int)(dash - text), text);
    return parse_index(first, &out->first) && parse_index(dash + 1, &out->last) &&
           out->first <= out->last;
}

/* Letters, digits, hyphens: the alphabet of UUIDs, of whatever vendor. A plain number is an index.
 */
static bool is_uuid_like(const char *text)
{
    bool is_number = true;
    for (const char *p = text; *p != '\0'; p++) {
        const bool is_digit = *p >= '0' && *p <= '9';
        const bool is_letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        if (!is_letter && !is_digit && *p != '-')
            return false;
        is_number = is_number && is_digit;
    }
    return !is_number;
}

static bool parse_item(const char *text, struct selector *out)
{
    if (has_prefix(text, "gpu") && parse_index(text + 3, &out->first)) {
        out->kind = BY_INDEX; /* the label, under which all reports list it */
        out->last = out->first;
    } else if (strcasecmp(text, "all") == 0) {
        out->kind = BY_ALL;
    } else if (strcasecmp(text, "none") == 0) {
        out->kind = BY_NONE;
    } else if (has_prefix(text, "cuda:")) {
        out->kind = BY_CUDA;
        return parse_index(text + 5, &out->first);
    } else if (has_prefix(text, "MIG-")) {
        out->kind = BY_MIG;
        return wg__mig_is_well_formed(text);
    } else if (parse_range(text, out)) {
        out->kind = BY_INDEX;
    } else if (wg__pci_parse(text, &out->pci)) {
        out->kind = BY_PCI;
    } else {
        out->kind = BY_UUID;
        const bool is_long =
            strlen(text) >= UUID_MIN || (has_prefix(text, "GPU-") && text[4] != '\0');
        return is_long && is_uuid_like(text);
    }
    return true;
}

static enum wg_code add_item(struct wg_selection *selection, const char *from, size_t length,
                             struct wg_error *err)
{
    char text[ITEM_MAX] = {0};
    if (length >= sizeof text)
        return wg__fail(err, WG_EINVAL, "GPU selector '%.20s...' is longer than %zu bytes", from,
                        sizeof text - 1);
    memcpy(text, from, length);
    struct selector item = {0};
    if (!parse_item(text, &item))
        return wg__fail(
            err, WG_EINVAL,
            "GPU selector '%s': expected all, none, an index (0, gpu0) or range (2-3), a UUID "
            "or its beginning (GPU-af7b), a PCI address (0000:1a:00.0), a MIG UUID, or "
            "cuda:INDEX",
            text);
    if (selection->count == SELECTORS_MAX)
        return wg__fail(err, WG_EINVAL, "more than %d GPU selectors", SELECTORS_MAX);
    if (selection->count == selection->capacity) {
        const size_t capacity = selection->capacity != 0 ? selection->capacity * 2 : 8;
        struct selector *items =
            wg__realloc_array(selection->items, capacity, sizeof *selection->items);
        if (items == NULL)
            return fail_memory(err);
        selection->items = items;
        selection->capacity = capacity;
    }
    item.text = wg__arena_strdup(&selection->arena, text);
    if (item.text == NULL)
        return fail_memory(err);
    selection->items[selection->count++] = item;
    return WG_OK;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* One selector of the user, which may be a list. */
static enum wg_code add_list(struct wg_selection *selection, const char *list, struct wg_error *err)
{
    const char *from = list;
    for (;;) {
        const char *end = strchr(from, ',');
        if (end == NULL)
            end = from + strlen(from);
        const char *last = end;
        while (is_blank(*from))
            from++;
        while (last > from && is_blank(last[-1]))
            last--;
        const enum wg_code code = add_item(selection, from, (size_t)(last - from), err);
        if (code != WG_OK || *end == '\0')
            return code;
        from = end + 1;
    }
}

static enum wg_code settle(struct wg_selection *selection, struct wg_error *err)
{
    for (size_t i = 0; i < selection->count; i++) {
        selection->is_all = selection->is_all || selection->items[i].kind == BY_ALL;
        selection->is_none = selection->is_none || selection->items[i].kind == BY_NONE;
    }
    if (selection->is_none && selection->count > 1)
        return wg__fail(err, WG_EINVAL, "GPU selector 'none' stands beside others");
    if (selection->count == 0) {
        selection->is_all = !wg__visible_is_set(selection->visible);
        selection->is_none = wg__visible_is_empty(selection->visible);
    }
    return WG_OK;
}

static enum wg_code make_tally(struct wg_selection *selection, struct wg_error *err)
{
    struct tally *tally = wg__arena_alloc(&selection->arena, 1, sizeof *tally);
    bool *is_met = wg__arena_alloc(&selection->arena, selection->count + 1, sizeof *is_met);
    if (tally == NULL || is_met == NULL || pthread_mutex_init(&tally->lock, NULL) != 0)
        return fail_memory(err);
    tally->is_met = is_met;
    selection->tally = tally;
    return WG_OK;
}

enum wg_code wg__selection_new(struct wg_selection **out, const char *const *selectors,
                               size_t count, const char *cuda_visible_devices,
                               const char *cuda_device_order, struct wg_error *err)
{
    struct wg_selection *selection = wg__alloc_zeroed(1, sizeof *selection);
    if (selection == NULL)
        return fail_memory(err);
    wg__arena_init(&selection->arena);
    enum wg_code code =
        wg__visible_new(&selection->visible, cuda_visible_devices, cuda_device_order, err);
    for (size_t i = 0; i < count && code == WG_OK; i++)
        code = add_list(selection, selectors[i], err);
    if (code == WG_OK)
        code = settle(selection, err);
    if (code == WG_OK)
        code = make_tally(selection, err);
    if (code != WG_OK) {
        wg__selection_free(selection);
        return code;
    }
    *out = selection;
    return WG_OK;
}

void wg__selection_free(struct wg_selection *selection)
{
    if (selection == NULL)
        return;
    if (selection->tally != NULL)
        (void)pthread_mutex_destroy(&selection->tally->lock);
    wg__visible_free(selection->visible);
    wg__free(selection->items);
    wg__arena_fini(&selection->arena);
    wg__free(selection);
}

/* -- Questions -------------------------------------------------------------------------------- */

bool wg__selection_is_all(const struct wg_selection *selection)
{
    return selection->is_all;
}

bool wg__selection_is_none(const struct wg_selection *selection)
{
    return selection->is_none;
}

static bool has_kind(const struct wg_selection *selection, enum selector_kind kind)
{
    for (size_t i = 0; i < selection->count; i++) {
        if (selection->items[i].kind == kind)
            return true;
    }
    return false;
}

/* Whether the environment has a say. */
static bool uses_visible(const struct wg_selection *selection)
{
    return selection->count == 0 || has_kind(selection, BY_CUDA);
}

bool wg__selection_needs_uuids(const struct wg_selection *selection)
{
    if (selection->is_all || selection->is_none)
        return false;
    return has_kind(selection, BY_UUID) || has_kind(selection, BY_MIG) ||
           (uses_visible(selection) && wg__visible_needs_uuids(selection->visible));
}

bool wg__selection_needs_speeds(const struct wg_selection *selection)
{
    if (selection->is_all || selection->is_none)
        return false;
    return uses_visible(selection) && wg__visible_needs_speeds(selection->visible);
}

bool wg__selection_needs_addresses(const struct wg_selection *selection)
{
    return !selection->is_all && !selection->is_none && has_kind(selection, BY_PCI);
}

/* -- Matching --------------------------------------------------------------------------------- */

static bool fits(const struct selector *item, const struct wg_candidate *candidate)
{
    struct wg_pci pci;
    switch (item->kind) {
    case BY_UUID:
        return candidate->uuid != NULL && has_prefix(candidate->uuid, item->text);
    case BY_PCI:
        return candidate->pci != NULL && wg__pci_parse(candidate->pci, &pci) &&
               wg__pci_is_equal(&pci, &item->pci);
    case BY_MIG:
        return wg__mig_fits(item->text, candidate);
    default:
        return false;
    }
}

/* The candidate's line in messages: "0 (GPU-af7b61d8, 0000:1a:00.0)", with what is known of it. */
static void describe(const struct wg_candidate *candidate, size_t index, char *out, size_t size)
{
    const char *uuid = candidate->uuid != NULL ? candidate->uuid : "";
    const char *pci = candidate->pci != NULL ? candidate->pci : "";
    if (uuid[0] == '\0' && pci[0] == '\0')
        (void)snprintf(out, size, "%zu", index);
    else
        (void)snprintf(out, size, "%zu (%.*s%s%s)", index, UUID_SHOWN, uuid,
                       uuid[0] != '\0' && pci[0] != '\0' ? ", " : "", pci);
}

static void append_to_list(char *list, size_t size, const char *text)
{
    const size_t used = strlen(list);
    if (used + strlen(text) + 8 < size)
        (void)snprintf(list + used, size - used, "%s%s", used != 0 ? ", " : "", text);
    else if (used >= 3 && strcmp(list + used - 3, "...") != 0)
        (void)snprintf(list + used, size - used, ", ...");
}

static enum wg_code match_one(const struct selector *item, const struct wg_candidate *candidates,
                              size_t count, size_t base, bool *chosen, bool *is_met,
                              struct wg_error *err)
{
    char list[256] = "";
    size_t found = 0;
    size_t last = 0;
    for (size_t i = 0; i < count; i++) {
        if (!fits(item, &candidates[i]))
            continue;
        char text[96];
        describe(&candidates[i], base + i, text, sizeof text);
        append_to_list(list, sizeof list, text);
        last = i;
        found++;
    }
    if (found > 1)
        return wg__fail(err, WG_EINVAL, "GPU selector '%s' fits %zu GPUs: %s", item->text, found,
                        list);
    if (found == 1) {
        chosen[last] = true;
        *is_met = true;
    }
    return WG_OK;
}

/* Plain indices count on from backend to backend, so a range may be met in parts. */
static void match_range(const struct selector *item, size_t base, size_t count, bool *chosen,
                        bool *is_met)
{
    for (size_t i = 0; i < count; i++) {
        if (base + i >= item->first && base + i <= item->last)
            chosen[i] = true;
    }
    *is_met = item->last < base + count;
}

struct resolved {
    size_t *gpus; /* positions of candidates, in CUDA's order */
    size_t count;
};

static enum wg_code match_item(const struct wg_selection *selection, size_t position,
                               const struct wg_candidate *candidates, size_t count,
                               const struct resolved *visible, bool *chosen, struct wg_error *err)
{
    const struct selector *item = &selection->items[position];
    struct tally *tally = selection->tally;
    bool *is_met = &tally->is_met[position];
    if (*is_met)
        return WG_OK;
    if (item->kind == BY_INDEX) {
        match_range(item, tally->gpu_count, count, chosen, is_met);
    } else if (item->kind == BY_CUDA) {
        *is_met = item->first < visible->count;
        if (*is_met)
            chosen[visible->gpus[item->first]] = true;
    } else {
        return match_one(item, candidates, count, tally->gpu_count, chosen, is_met, err);
    }
    return WG_OK;
}

/* With the tally's lock. */
static enum wg_code match_all(const struct wg_selection *selection,
                              const struct wg_candidate *candidates, size_t count,
                              const struct resolved *visible, bool *chosen, struct wg_error *err)
{
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < selection->count && code == WG_OK; i++)
        code = match_item(selection, i, candidates, count, visible, chosen, err);
    for (size_t i = 0; i < visible->count && selection->count == 0; i++)
        chosen[visible->gpus[i]] = true;
    struct tally *tally = selection->tally;
    for (size_t i = 0; i < count; i++) {
        char text[96];
        describe(&candidates[i], tally->gpu_count + i, text, sizeof text);
        append_to_list(tally->gpus, sizeof tally->gpus, text);
    }
    tally->gpu_count += count;
    return code;
}

enum wg_code wg__selection_match(const struct wg_selection *selection,
                                 const struct wg_candidate *candidates, size_t count, bool *chosen,
                                 struct wg_error *err)
{
    for (size_t i = 0; i < count; i++)
        chosen[i] = selection->is_all;
    if (selection->is_all || selection->is_none || count == 0)
        return WG_OK;
    struct resolved visible = {0};
    if (uses_visible(selection)) {
        const enum wg_code code = wg__visible_resolve(selection->visible, candidates, count,
                                                      &visible.gpus, &visible.count, err);
        if (code != WG_OK)
            return code;
    }
    (void)pthread_mutex_lock(&selection->tally->lock);
    const enum wg_code code = match_all(selection, candidates, count, &visible, chosen, err);
    (void)pthread_mutex_unlock(&selection->tally->lock);
    wg__free(visible.gpus);
    return code;
}

/* "CUDA_VISIBLE_DEVICES='0,0' (CUDA sees none when ...)", cut to fit; "": it has no say. */
static void describe_visible(const struct wg_selection *selection, char *out, size_t size)
{
    const char *text = wg__visible_text(selection->visible);
    const char *why = wg__visible_why_short(selection->visible);
    out[0] = '\0';
    if (text != NULL)
        (void)snprintf(out, size, "CUDA_VISIBLE_DEVICES='%.40s%s'%s%s%s", text,
                       strlen(text) > 40 ? "..." : "", why != NULL ? " (" : "",
                       why != NULL ? why : "", why != NULL ? ")" : "");
}

enum wg_code wg__selection_fail_none(const struct wg_selection *selection, size_t gpu_count,
                                     const char **remedy_out, struct wg_error *err)
{
    char visible[160];
    describe_visible(selection, visible, sizeof visible);
    if (selection->count != 0 || visible[0] == '\0')
        return wg__fail(err, WG_ENODEV, "no GPU of this kind is chosen");
    if (remedy_out != NULL)
        *remedy_out = "unset CUDA_VISIBLE_DEVICES, or choose with --gpu all";
    if (gpu_count == 0)
        return wg__fail(err, WG_ENODEV, "%s leaves no GPU", visible);
    if (gpu_count == 1)
        return wg__fail(err, WG_ENODEV, "%s does not fit the one GPU", visible);
    return wg__fail(err, WG_ENODEV, "%s fits none of the %zu GPUs", visible, gpu_count);
}

size_t wg__selection_gpu_count(const struct wg_selection *selection)
{
    struct tally *tally = selection->tally;
    (void)pthread_mutex_lock(&tally->lock);
    const size_t count = tally->gpu_count;
    (void)pthread_mutex_unlock(&tally->lock);
    return count;
}

enum wg_code wg__selection_check(const struct wg_selection *selection, struct wg_error *err)
{
    if (selection->is_all || selection->is_none)
        return WG_OK;
    enum wg_code code = WG_OK;
    struct tally *tally = selection->tally;
    (void)pthread_mutex_lock(&tally->lock);
    for (size_t i = 0; i < selection->count && code == WG_OK; i++) {
        if (tally->is_met[i])
            continue;
        char visible[160] = "";
        if (selection->items[i].kind == BY_CUDA)
            describe_visible(selection, visible, sizeof visible);
        if (visible[0] != '\0')
            code = wg__fail(err, WG_EINVAL, "GPU selector '%s' fits none of the %zu GPUs here: %s",
                            selection->items[i].text, tally->gpu_count, visible);
        else if (tally->gpu_count == 0)
            code = wg__fail(err, WG_EINVAL, "GPU selector '%s' fits none: there is no GPU here",
                            selection->items[i].text);
        else
            code = wg__fail(err, WG_EINVAL, "GPU selector '%s' fits none of the GPUs here: %s",
                            selection->items[i].text, tally->gpus);
    }
    (void)pthread_mutex_unlock(&tally->lock);
    return code;
}
