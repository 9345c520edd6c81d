/* SPDX-License-Identifier: MIT
 *
 * A tuning space as physics and distance see it: what each level of each knob means.
 *
 *     value     what enters the formulas of board_model.c: a clock, a limit over its highest level,
 *               a count, a batch
 *     tilt      the axis along which a board may bend away from physics by a power
 *     place     where the level lies in [0,1]: the distance of residual_kernel.c
 *
 * A board has parts, which work one after another or side by side: one for each clock and one for
 * memory, which is there at a speed of its own where its clock is not tuned. The main part is that
 * of the last GPU clock (of the last CPU clock where there is no other; a virtual one at full speed
 * where there is no clock at all).
 *
 * Of roles that physics knows once (memory clock, cores, limit, batch, replicas, delay) the first
 * knob counts; a second one has its tilt and its place only.
 *
 * Owns: one block.    Threads: pure; read by any thread once made.
 */
#ifndef WG_OPTIMIZE_BOARD_AXES_H
#define WG_OPTIMIZE_BOARD_AXES_H

#include "optimize/tuning_space.h"

enum { WG_BOARD_PARTS_MAX = WG_TUNING_KNOBS_MAX + 1, WG_BOARD_NONE = WG_TUNING_KNOBS_MAX };

struct wg_board_level {
    double value;
    double tilt;
    double place;
};

struct wg_board_axes {
    const struct wg_tuning_space *space;
    size_t first[WG_TUNING_KNOBS_MAX + 1]; /* levels[first[k] + l]: level l of knob k */
    struct wg_board_level *levels;
    size_t moving; /* knobs of more than one level: the dimension */
    /* Knobs by their part in physics, WG_BOARD_NONE where absent. */
    size_t main_clock, memory, cores, limit, batch, replicas, delay;
    bool is_training;                    /* `batch` is one of a training job */
    size_t part_count;                   /* other clocks, the main one, memory */
    size_t main_part, memory_part;       /* indices of them */
    size_t part_of[WG_TUNING_KNOBS_MAX]; /* of a clock or the memory; WG_BOARD_NONE of others */
    size_t knob_of[WG_BOARD_PARTS_MAX];  /* WG_BOARD_NONE: no clock of it is tuned */
    double tilts_t[WG_TUNING_KNOBS_MAX]; /* one standard deviation of the tilt of time */
    double tilts_e[WG_TUNING_KNOBS_MAX]; /* and of energy */
    bool follows_t[WG_TUNING_KNOBS_MAX]; /* the tilt of energy is on top of that of time */
};

/* WG_ENOMEM. */
enum wg_code wg__board_axes_init(struct wg_board_axes *axes, const struct wg_tuning_space *space,
                                 struct wg_error *err);
void wg__board_axes_fini(struct wg_board_axes *axes);

static inline const struct wg_board_level *wg__board_level(const struct wg_board_axes *axes,
                                                           size_t configuration, size_t knob)
{
    return &axes->levels[axes->first[knob] + wg__tuning_level(axes->space, configuration, knob)];
}

#endif
