/* SPDX-License-Identifier: MIT
 *
 * What the levels of a space mean to the board model: scales by role.
 *
 *     role          value            tilt axis         place
 *     clocks        level / highest  log value         logarithmic
 *     cores         count            log(over highest) logarithmic
 *     power_limit   level / highest  log value         linear
 *     batch         requests         .5 log value      logarithmic
 *     train_batch   over the default .5 log value      logarithmic
 *     replicas      count            log value         logarithmic
 *     split         degree           log value         logarithmic
 *     delay         over the longest the value         linear
 *     category      index            index             linear
 *
 * Owns: see the header.    Threads: pure.
 */
#include "optimize/board_axes.h"

#include <math.h>

#include "base/alloc.h"
#include "optimize/tuner_constants.h"

/* One standard deviation of how far a board bends off physics where it says little, a
 * power of the tilt axis; of other knobs: tuner_constants.h. */
static const double split_tilt = 0.1;
static const double category_tilt = 0.5;

static bool is_clock(enum wg_tuning_role role)
{
    return role == WG_TUNING_GPU_CLOCK || role == WG_TUNING_CPU_CLOCK;
}

static size_t first_of(const struct wg_tuning_space *space, enum wg_tuning_role role)
{
    for (size_t k = 0; k < space->knob_count; k++)
        if (space->knobs[k].role == role)
            return k;
    return WG_BOARD_NONE;
}

static size_t last_of(const struct wg_tuning_space *space, enum wg_tuning_role role)
{
    size_t last = WG_BOARD_NONE;
    for (size_t k = 0; k < space->knob_count; k++)
        if (space->knobs[k].role == role)
            last = k;
    return last;
}

/* log(x / lo) / log(hi / lo), or linear; 0 where the knob has one level only. */
static double place(double x, double lo, double hi, bool is_log)
{
    if (!(hi > lo))
        return 0;
    return is_log && lo > 0 ? log(x / lo) / log(hi / lo) : (x - lo) / (hi - lo);
}

static struct wg_board_level level_of(const struct wg_tuning_knob *knob, size_t index)
{
    const double x = knob->levels[index];
    const double lo = knob->levels[0];
    const double hi = knob->levels[knob->count - 1];
    struct wg_board_level level = {.value = x, .place = place(x, lo, hi, true)};
    switch (knob->role) {
    case WG_TUNING_GPU_CLOCK:
    case WG_TUNING_CPU_CLOCK:
    case WG_TUNING_MEM_CLOCK:
        level.value = x / hi;
        level.tilt = log(level.value);
        break;
    case WG_TUNING_CORES:
        level.tilt = log(x / hi);
        break;
    case WG_TUNING_POWER_LIMIT:
        level.value = x / hi;
        level.tilt = log(level.value);
        level.place = place(x, lo, hi, false);
        break;
    case WG_TUNING_BATCH:
        level.tilt = 0.5 * log(x);
        break;
    case WG_TUNING_TRAIN_BATCH:
        level.value = x / knob->levels[knob->default_level];
        level.tilt = 0.5 * log(level.value);
        break;
    case WG_TUNING_REPLICAS:
    case WG_TUNING_SPLIT:
        level.tilt = log(x);
        break;
    case WG_TUNING_DELAY:
        level.value = hi > 0 ? x / hi : 0;
        level.tilt = level.value;
        level.place = place(x, lo, hi, false);
        break;
    case WG_TUNING_CATEGORY:
    case WG_TUNING_ROLE_COUNT:
        level.tilt = x;
        level.place = place(x, lo, hi, false);
        break;
    }
    return level;
}

static void set_tilts(struct wg_board_axes *axes, size_t k, enum wg_tuning_role role)
{
    const bool is_category = role == WG_TUNING_CATEGORY;
    axes->tilts_t[k] = is_category               ? category_tilt
                       : role == WG_TUNING_SPLIT ? split_tilt
                                                 : wg__tuner_constants.tilt_t;
    axes->tilts_e[k] = is_category               ? category_tilt
                       : role == WG_TUNING_SPLIT ? split_tilt
                                                 : wg__tuner_constants.tilt_e;
    axes->follows_t[k] = is_category;
}

/* The parts in the order: other clocks, the main one, memory. */
static void set_parts(struct wg_board_axes *axes)
{
    const struct wg_tuning_space *space = axes->space;
    for (size_t k = 0; k < space->knob_count; k++) {
        axes->part_of[k] = WG_BOARD_NONE;
        if (!is_clock(space->knobs[k].role) || k == axes->main_clock)
            continue;
        axes->part_of[k] = axes->part_count;
        axes->knob_of[axes->part_count++] = k;
    }
    axes->main_part = axes->part_count;
    axes->knob_of[axes->part_count++] = axes->main_clock;
    if (axes->main_clock != WG_BOARD_NONE)
        axes->part_of[axes->main_clock] = axes->main_part;
    if (axes->memory != WG_BOARD_NONE)
        axes->part_of[axes->memory] = axes->part_count;
    axes->memory_part = axes->part_count;
    axes->knob_of[axes->part_count++] = axes->memory;
}

enum wg_code wg__board_axes_init(struct wg_board_axes *axes, const struct wg_tuning_space *space,
                                 struct wg_error *err)
{
    *axes = (struct wg_board_axes){.space = space};
    for (size_t k = 0; k < space->knob_count; k++)
        axes->first[k + 1] = axes->first[k] + space->knobs[k].count;
    axes->levels = wg__alloc_zeroed(axes->first[space->knob_count], sizeof *axes->levels);
    if (!axes->levels)
        return wg__fail(err, WG_ENOMEM, "out of memory for the levels of %zu knobs",
                        space->knob_count);
    axes->main_clock = last_of(space, WG_TUNING_GPU_CLOCK);
    if (axes->main_clock == WG_BOARD_NONE)
        axes->main_clock = last_of(space, WG_TUNING_CPU_CLOCK);
    axes->memory = first_of(space, WG_TUNING_MEM_CLOCK);
    axes->cores = first_of(space, WG_TUNING_CORES);
    axes->limit = first_of(space, WG_TUNING_POWER_LIMIT);
    axes->replicas = first_of(space, WG_TUNING_REPLICAS);
    axes->delay = first_of(space, WG_TUNING_DELAY);
    axes->batch = first_of(space, WG_TUNING_TRAIN_BATCH);
    axes->is_training = axes->batch != WG_BOARD_NONE;
    if (!axes->is_training)
        axes->batch = first_of(space, WG_TUNING_BATCH);
    for (size_t k = 0; k < space->knob_count; k++) {
        const struct wg_tuning_knob *knob = &space->knobs[k];
        axes->moving += knob->count > 1;
        set_tilts(axes, k, knob->role);
        for (size_t l = 0; l < knob->count; l++)
            axes->levels[axes->first[k] + l] = level_of(knob, l);
    }
    set_parts(axes);
    return WG_OK;
}

void wg__board_axes_fini(struct wg_board_axes *axes)
{
    wg__free(axes->levels);
    axes->levels = NULL;
}
