/* SPDX-License-Identifier: MIT
 *
 * The space of a tuning: checking knobs, copying them, listing and finding configurations.
 *
 * A space is made in one go and never changes, so all its memory is one arena. Finding a
 * configuration is a binary search through `order`, the configurations sorted by their levels,
 * which a list needs anyway to see that it repeats nothing.
 *
 * Owns: see the header.    Threads: pure.
 */
#include "optimize/tuning_space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"

/* How many combinations a box may have before `allows` has rejected some: walking them takes
 * seconds at most. */
static const size_t walked_max = 50000000;

struct owner {
    struct wg_tuning_space space; /* first: what the caller holds */
    struct wg_arena arena;        /* names, levels, labels, order; level_of of a list */
    uint16_t *levels;             /* owned; what level_of shows */
    uint32_t *order;              /* the configurations by rising levels */
};

/* -- Words ------------------------------------------------------------------------------------ */

static const char *const role_words[] = {
#define X(name, word) word,
    WG_TUNING_ROLES(X)
#undef X
};

const char *wg__tuning_role_word(enum wg_tuning_role role)
{
    return (unsigned)role < WG_TUNING_ROLE_COUNT ? role_words[role] : NULL;
}

bool wg__tuning_role_parse(const char *word, enum wg_tuning_role *out)
{
    for (unsigned i = 0; word != NULL && i < WG_TUNING_ROLE_COUNT; i++) {
        if (strcmp(word, role_words[i]) != 0)
            continue;
        *out = (enum wg_tuning_role)i;
        return true;
    }
    return false;
}

/* -- Knobs ------------------------------------------------------------------------------------ */

static enum wg_code check_levels(const struct wg_tuning_knob *knob, struct wg_error *err)
{
    const char *word = role_words[knob->role];

    for (size_t i = 0; i < knob->count; i++) {
        const double level = knob->levels[i];

        if (!isfinite(level))
            return wg__fail(err, WG_EINVAL, "level %zu of knob '%s' is not a finite number", i + 1,
                            knob->name);
        if (i > 0 && !(level > knob->levels[i - 1]))
            return wg__fail(err, WG_EINVAL, "the levels of knob '%s' must rise: %g follows %g",
                            knob->name, level, knob->levels[i - 1]);
        if (knob->role == WG_TUNING_CATEGORY && level != (double)(int)i)
            return wg__fail(err, WG_EINVAL, "level %zu of category '%s' is %g, not %zu", i + 1,
                            knob->name, level, i);
        if (knob->role == WG_TUNING_DELAY && level < 0)
            return wg__fail(err, WG_EINVAL, "level %g of knob '%s': %s must be at least 0", level,
                            knob->name, word);
        if (knob->role != WG_TUNING_CATEGORY && knob->role != WG_TUNING_DELAY && !(level > 0))
            return wg__fail(err, WG_EINVAL, "level %g of knob '%s': %s must be above 0", level,
                            knob->name, word);
    }
    return WG_OK;
}

static enum wg_code check_knob(const struct wg_tuning_knob *knobs, size_t at, struct wg_error *err)
{
    const struct wg_tuning_knob *knob = &knobs[at];

    if (knob->name == NULL || *knob->name == '\0')
        return wg__fail(err, WG_EINVAL, "knob %zu has no name", at + 1);
    for (size_t i = 0; i < at; i++)
        if (strcmp(knobs[i].name, knob->name) == 0)
            return wg__fail(err, WG_EINVAL, "two knobs are called '%s'", knob->name);
    if ((unsigned)knob->role >= WG_TUNING_ROLE_COUNT)
        return wg__fail(err, WG_EINVAL, "knob '%s' has the unknown role %u", knob->name,
                        (unsigned)knob->role);
    if (knob->levels == NULL || knob->count < 1 || knob->count > WG_TUNING_LEVELS_MAX)
        return wg__fail(err, WG_EINVAL, "knob '%s' has %zu levels: 1 to %d can be", knob->name,
                        knob->count, WG_TUNING_LEVELS_MAX);
    if (knob->default_level >= knob->count)
        return wg__fail(err, WG_EINVAL, "the default of knob '%s' is level %zu of %zu", knob->name,
                        knob->default_level, knob->count);
    if (!(isfinite(knob->switch_s) && knob->switch_s >= 0))
        return wg__fail(err, WG_EINVAL, "changing knob '%s' takes %g s: at least 0 is needed",
                        knob->name, knob->switch_s);
    return check_levels(knob, err);
}

static enum wg_code check_knobs(const struct wg_tuning_knob *knobs, size_t count,
                                struct wg_error *err)
{
    if (knobs == NULL || count < 1 || count > WG_TUNING_KNOBS_MAX)
        return wg__fail(err, WG_EINVAL, "there are %zu knobs: 1 to %d can be tuned", count,
                        WG_TUNING_KNOBS_MAX);
    for (size_t k = 0; k < count; k++) {
        const enum wg_code code = check_knob(knobs, k, err);

        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static bool copy_knob(struct wg_arena *arena, const struct wg_tuning_knob *from,
                      struct wg_tuning_knob *to)
{
    char *name = wg__arena_strdup(arena, from->name);
    double *levels = wg__arena_alloc(arena, from->count, sizeof *levels);

    *to = *from;
    if (name == NULL || levels == NULL)
        return false;
    memcpy(levels, from->levels, from->count * sizeof *levels);
    to->name = name;
    to->levels = levels;
    if (from->labels == NULL)
        return true;
    const char **labels = wg__arena_alloc(arena, from->count, sizeof *labels);
    if (labels == NULL)
        return false;
    for (size_t i = 0; i < from->count; i++) {
        labels[i] = wg__arena_strdup(arena, from->labels[i] != NULL ? from->labels[i] : "");
        if (labels[i] == NULL)
            return false;
    }
    to->labels = labels;
    return true;
}

/* -- Making ----------------------------------------------------------------------------------- */

static enum wg_code no_memory(struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "out of memory for the tuning space");
}

static void owner_free(struct owner *owner)
{
    if (owner == NULL)
        return;
    wg__free(owner->levels);
    wg__arena_fini(&owner->arena);
    wg__free(owner);
}

/* NULL: the code says why. */
static struct owner *owner_new(const struct wg_tuning_knob *knobs, size_t knob_count,
                               enum wg_code *code_out, struct wg_error *err)
{
    *code_out = check_knobs(knobs, knob_count, err);
    if (*code_out != WG_OK)
        return NULL;
    struct owner *owner = wg__alloc_zeroed(1, sizeof *owner);
    if (owner == NULL) {
        *code_out = no_memory(err);
        return NULL;
    }
    wg__arena_init(&owner->arena);
    owner->space.knob_count = knob_count;
    for (size_t k = 0; k < knob_count; k++) {
        if (copy_knob(&owner->arena, &knobs[k], &owner->space.knobs[k]))
            continue;
        owner_free(owner);
        *code_out = no_memory(err);
        return NULL;
    }
    return owner;
}

static int compare_levels(const uint16_t *a, const uint16_t *b, size_t knobs)
{
    for (size_t k = 0; k < knobs; k++)
        if (a[k] != b[k])
            return a[k] < b[k] ? -1 : 1;
    return 0;
}

static int by_levels(const void *a, const void *b, void *context)
{
    const struct owner *owner = context;
    const size_t knobs = owner->space.knob_count;

    return compare_levels(owner->levels + *(const uint32_t *)a * knobs,
                          owner->levels + *(const uint32_t *)b * knobs, knobs);
}

/* Sorts the configurations, and looks for the default. */
static enum wg_code finish(struct owner *owner, size_t count, struct wg_tuning_space **out,
                           struct wg_error *err)
{
    struct wg_tuning_space *space = &owner->space;
    size_t levels[WG_TUNING_KNOBS_MAX] = {0};

    space->count = count;
    space->level_of = owner->levels;
    owner->order = wg__arena_alloc(&owner->arena, count > 0 ? count : 1, sizeof *owner->order);
    if (owner->order == NULL)
        return no_memory(err);
    for (size_t c = 0; c < count; c++)
        owner->order[c] = (uint32_t)c;
    qsort_r(owner->order, count, sizeof *owner->order, by_levels, owner);
    for (size_t i = 1; i < count; i++)
        if (by_levels(&owner->order[i - 1], &owner->order[i], owner) == 0)
            return wg__fail(err, WG_EINVAL, "configurations %u and %u of the list are the same",
                            owner->order[i - 1], owner->order[i]);
    for (size_t k = 0; k < space->knob_count; k++)
        levels[k] = space->knobs[k].default_level;
    space->default_configuration = wg__tuning_space_find(space, levels);
    if (space->default_configuration == count)
        return wg__fail(err, WG_EINVAL,
                        "the default (%s at %g%s) is not among the %zu configurations allowed",
                        space->knobs[0].name, space->knobs[0].levels[levels[0]],
                        space->knob_count > 1 ? ", ..." : "", count);
    *out = space;
    return WG_OK;
}

static enum wg_code too_many(struct wg_error *err)
{
    return wg__fail(err, WG_EINVAL, "more than %d configurations are allowed: name fewer levels",
                    WG_TUNING_CONFIGURATIONS_MAX);
}

/* The next combination, the last knob fastest; false after the last one. */
static bool advance(const struct wg_tuning_space *space, size_t *levels)
{
    for (size_t k = space->knob_count; k-- > 0;) {
        if (++levels[k] < space->knobs[k].count)
            return true;
        levels[k] = 0;
    }
    return false;
}

/* Lists what is allowed into levels, which grows by doubling. */
static enum wg_code fill_box(struct owner *owner, wg_tuning_allows *allows, void *context,
                             size_t *count_out, struct wg_error *err)
{
    const size_t knobs = owner->space.knob_count;
    size_t levels[WG_TUNING_KNOBS_MAX] = {0}, count = 0, capacity = 0;

    do {
        if (allows != NULL && !allows(levels, context))
            continue;
        if (count == WG_TUNING_CONFIGURATIONS_MAX)
            return too_many(err);
        if (count == capacity) {
            const size_t wanted = capacity > 0 ? 2 * capacity : 64;
            uint16_t *grown =
                wg__realloc_array(owner->levels, wanted, knobs * sizeof *owner->levels);

            if (grown == NULL)
                return no_memory(err);
            owner->levels = grown;
            capacity = wanted;
        }
        for (size_t k = 0; k < knobs; k++)
            owner->levels[count * knobs + k] = (uint16_t)levels[k];
        count++;
    } while (advance(&owner->space, levels));
    *count_out = count;
    return WG_OK;
}

enum wg_code wg__tuning_space_box(struct wg_tuning_space **out, const struct wg_tuning_knob *knobs,
                                  size_t knob_count, wg_tuning_allows *allows, void *context,
                                  struct wg_error *err)
{
    size_t combinations = 1, count = 0;
    enum wg_code code;
    struct owner *owner = owner_new(knobs, knob_count, &code, err);

    if (owner == NULL)
        return code;
    for (size_t k = 0; code == WG_OK && k < knob_count; k++) {
        combinations *= knobs[k].count;
        if (combinations > (allows != NULL ? walked_max : WG_TUNING_CONFIGURATIONS_MAX))
            code = too_many(err);
    }
    if (code == WG_OK)
        code = fill_box(owner, allows, context, &count, err);
    if (code == WG_OK)
        code = finish(owner, count, out, err);
    if (code != WG_OK)
        owner_free(owner);
    return code;
}

enum wg_code wg__tuning_space_list(struct wg_tuning_space **out, const struct wg_tuning_knob *knobs,
                                   size_t knob_count, const uint16_t *level_of, size_t count,
                                   struct wg_error *err)
{
    enum wg_code code;
    struct owner *owner = owner_new(knobs, knob_count, &code, err);

    if (owner == NULL)
        return code;
    if (count > WG_TUNING_CONFIGURATIONS_MAX)
        code = too_many(err);
    for (size_t i = 0; code == WG_OK && i < count * knob_count; i++)
        if (level_of[i] >= knobs[i % knob_count].count)
            code = wg__fail(err, WG_EINVAL, "configuration %zu has level %u of %zu of knob '%s'",
                            i / knob_count, (unsigned)level_of[i], knobs[i % knob_count].count,
                            knobs[i % knob_count].name);
    if (code == WG_OK && count > 0) {
        owner->levels = wg__realloc_array(NULL, count, knob_count * sizeof *level_of);
        if (owner->levels == NULL)
            code = no_memory(err);
        else
            memcpy(owner->levels, level_of, count * knob_count * sizeof *level_of);
    }
    if (code == WG_OK)
        code = finish(owner, count, out, err);
    if (code != WG_OK)
        owner_free(owner);
    return code;
}

void wg__tuning_space_free(struct wg_tuning_space *space)
{
    owner_free((struct owner *)space);
}

/* -- Using ------------------------------------------------------------------------------------ */

size_t wg__tuning_space_find(const struct wg_tuning_space *space, const size_t *levels)
{
    const struct owner *owner = (const struct owner *)space;
    uint16_t wanted[WG_TUNING_KNOBS_MAX] = {0};
    size_t low = 0, high = space->count;

    for (size_t k = 0; k < space->knob_count; k++) {
        if (levels[k] >= space->knobs[k].count)
            return space->count;
        wanted[k] = (uint16_t)levels[k];
    }
    while (low < high) {
        const size_t middle = low + (high - low) / 2, c = owner->order[middle];
        const int side =
            compare_levels(space->level_of + c * space->knob_count, wanted, space->knob_count);

        if (side == 0)
            return c;
        if (side < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return space->count;
}

double wg__tuning_switch_s(const struct wg_tuning_space *space, size_t from, size_t to)
{
    double total_s = 0;

    for (size_t k = 0; k < space->knob_count; k++)
        if (wg__tuning_level(space, from, k) != wg__tuning_level(space, to, k))
            total_s += space->knobs[k].switch_s;
    return total_s;
}
