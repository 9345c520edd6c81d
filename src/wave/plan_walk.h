/* SPDX-License-Identifier: MIT
 *
 * What layers need to know of the widths chosen so far, level by level of an order.
 *
 * A side of a layer is a sum of variables. After some of them have been chosen, what the layer must
 * know of them is the sum of its chosen part, a form. Sides that have the same chosen parts share a
 * form; layers whose variables are all chosen need none any more. So a residual width stays one
 * number however many layers meet in it, and so does what dozens of layers of a dense block have
 * concatenated.
 *
 * Owns: a walk owns all in its arena.    Threads: one thread at a time.
 */
#ifndef WG_WAVE_PLAN_WALK_H
#define WG_WAVE_PLAN_WALK_H

#include "wave/plan_space.h"

struct wg_plan_form {
    int32_t before;      /* the form of the level before that it extends; -1: none */
    uint64_t multiple;   /* of the variable just chosen */
    double least, most;  /* of its sums */
    uint64_t step;       /* its sums differ by multiples of this; 0: there is one only */
    size_t side, length; /* a side whose first `length` parts these are */
};

struct wg_plan_walk_side {
    struct wg_plan_part *parts; /* `variable` is a position in the order here; rising */
    size_t part_count, chosen;
    uint64_t constant, hash;
    int32_t form_before, form; /* -1: nothing of it is chosen */
    uint64_t multiple;         /* of the variable just chosen; 0: not among its parts */
};

struct wg_plan_walk {
    struct wg_arena arena;
    const struct wg_plan_space *space;
    const uint32_t *order;
    struct wg_plan_walk_side *sides; /* in and out of each layer */
    int64_t *last;                   /* position of each layer's last variable; -1: it has none */
    struct wg_plan_form *forms, *forms_before;
    size_t form_count, form_before_count;
    size_t level; /* variables chosen */
};

/* `order` must outlive the walk. */
enum wg_code wg__plan_walk_init(struct wg_plan_walk *walk, const struct wg_plan_space *space,
                                const uint32_t *order, struct wg_error *err);
/* Chooses the next variable of the order, whose values run from `least` to `most`, `step` apart or
 * multiples of it. A layer is counted in this step when its `last` is the level before it. */
void wg__plan_walk_step(struct wg_plan_walk *walk, double least, double most, uint64_t step);
void wg__plan_walk_fini(struct wg_plan_walk *walk);

#endif
