/* SPDX-License-Identifier: MIT
 *
 * Forms, level by level.
 *
 * Since a side's parts are sorted by their place in the order, what is chosen of it is always a
 * head of its list, and two sides share a form when these heads are equal: compared by a hash that
 * grows with the head, and to be sure by their parts.
 *
 * Threads: one at a time.
 */
#include "wave/plan_walk.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"

static bool side_init(struct wg_plan_walk *walk, const uint32_t *position,
                      const struct wg_plan_side *from, struct wg_plan_walk_side *side)
{
    *side = (struct wg_plan_walk_side){.constant = from->constant,
                                       .part_count = from->part_count,
                                       .hash = WG_HASH_START,
                                       .form_before = -1,
                                       .form = -1};
    side->parts = wg__arena_alloc(&walk->arena, from->part_count, sizeof *side->parts);
    if (side->parts == NULL)
        return false;
    for (size_t i = 0; i < from->part_count; i++) {
        const struct wg_plan_part part = {position[from->parts[i].variable],
                                          from->parts[i].multiple};
        size_t at = i;
        for (; at > 0 && side->parts[at - 1].variable > part.variable; at--)
            side->parts[at] = side->parts[at - 1];
        side->parts[at] = part;
    }
    return true;
}

static int64_t last_of(const struct wg_plan_walk_side *side)
{
    return side->part_count == 0 ? -1 : (int64_t)side->parts[side->part_count - 1].variable;
}

static bool walk_fill(struct wg_plan_walk *walk)
{
    const struct wg_plan_space *space = walk->space;
    struct wg_arena *arena = &walk->arena;
    uint32_t *position = wg__arena_alloc(arena, space->variable_count, sizeof *position);
    walk->sides = wg__arena_alloc(arena, 2 * space->layer_count, sizeof *walk->sides);
    walk->last = wg__arena_alloc(arena, space->layer_count, sizeof *walk->last);
    walk->forms = wg__arena_alloc(arena, 2 * space->layer_count, sizeof *walk->forms);
    walk->forms_before = wg__arena_alloc(arena, 2 * space->layer_count, sizeof *walk->forms);
    if (position == NULL || walk->sides == NULL || walk->last == NULL || walk->forms == NULL ||
        walk->forms_before == NULL)
        return false;
    for (uint32_t i = 0; i < space->variable_count; i++)
        position[walk->order[i]] = i;
    for (size_t i = 0; i < space->layer_count; i++) {
        const struct wg_plan_layer *layer = &space->layers[i];
        if (!side_init(walk, position, &layer->in, &walk->sides[2 * i]) ||
            !side_init(walk, position, &layer->out, &walk->sides[2 * i + 1]))
            return false;
        const int64_t in = last_of(&walk->sides[2 * i]);
        const int64_t out = last_of(&walk->sides[2 * i + 1]);
        walk->last[i] = in > out ? in : out;
    }
    return true;
}

enum wg_code wg__plan_walk_init(struct wg_plan_walk *walk, const struct wg_plan_space *space,
                                const uint32_t *order, struct wg_error *err)
{
    *walk = (struct wg_plan_walk){.space = space, .order = order};
    wg__arena_init(&walk->arena);
    if (walk_fill(walk))
        return WG_OK;
    wg__plan_walk_fini(walk);
    return wg__fail(err, WG_ENOMEM, "no memory for the order of %zu widths", space->variable_count);
}

void wg__plan_walk_fini(struct wg_plan_walk *walk)
{
    wg__arena_fini(&walk->arena);
}

static bool is_form(const struct wg_plan_walk *walk, const struct wg_plan_form *form,
                    const struct wg_plan_walk_side *side)
{
    const struct wg_plan_walk_side *other = &walk->sides[form->side];
    if (form->length != side->chosen || other->hash != side->hash)
        return false;
    for (size_t i = 0; i < side->chosen; i++) {
        if (side->parts[i].variable != other->parts[i].variable ||
            side->parts[i].multiple != other->parts[i].multiple)
            return false;
    }
    return true;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void add_form(struct wg_plan_walk *walk, size_t index, double least, double most,
                     uint64_t step)
{
    struct wg_plan_walk_side *side = &walk->sides[index];
    for (size_t f = 0; f < walk->form_count; f++) {
        if (is_form(walk, &walk->forms[f], side)) {
            side->form = (int32_t)f;
            return;
        }
    }
    struct wg_plan_form form = {.before = side->form_before,
                                .multiple = side->multiple,
                                .least = (double)side->multiple * least,
                                .most = (double)side->multiple * most,
                                .step = side->multiple * step,
                                .side = index,
                                .length = side->chosen};
    if (form.before >= 0) {
        const struct wg_plan_form *before = &walk->forms_before[form.before];
        form.least += before->least;
        form.most += before->most;
        form.step = common_divisor(form.step, before->step);
    }
    side->form = (int32_t)walk->form_count;
    walk->forms[walk->form_count++] = form;
}

void wg__plan_walk_step(struct wg_plan_walk *walk, double least, double most, uint64_t step)
{
    struct wg_plan_form *spare = walk->forms_before;
    walk->forms_before = walk->forms;
    walk->form_before_count = walk->form_count;
    walk->forms = spare;
    walk->form_count = 0;
    const size_t level = walk->level++;
    for (size_t i = 0; i < 2 * walk->space->layer_count; i++) {
        struct wg_plan_walk_side *side = &walk->sides[i];
        const int64_t last = walk->last[i / 2];
        if (last < (int64_t)level)
            continue;
        side->form_before = side->form;
        side->multiple = 0;
        if (side->chosen < side->part_count && side->parts[side->chosen].variable == level) {
            side->multiple = side->parts[side->chosen++].multiple;
            side->hash = wg__hash_mix(side->hash + side->multiple * 0x9e3779b97f4a7c15u + level);
        }
        side->form = -1;
        if (last > (int64_t)level && side->chosen > 0)
            add_form(walk, i, least, most, step);
    }
}
