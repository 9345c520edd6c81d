/* SPDX-License-Identifier: MIT
 *
 * The spaces of tests/unit/tuning_oracle.py.
 */
#ifndef WG_TESTS_SUPPORT_BOARD_SPACES_H
#define WG_TESTS_SUPPORT_BOARD_SPACES_H

#include "optimize/tuning_space.h"
#include "support/check.h"

#define BOARD_KNOB(name, role, levels, start)                                                      \
    {name, WG_TUNING_##role, levels, NULL, sizeof(levels) / sizeof((levels)[0]), start, 0}

static inline struct wg_tuning_space *board_space(const struct wg_tuning_knob *knobs, size_t count)
{
    struct wg_tuning_space *space = NULL;
    assert_int_equal(wg__tuning_space_box(&space, knobs, count, NULL, NULL, NULL), WG_OK);
    return space;
}

static inline struct wg_tuning_space *inference_space(void)
{
    static const double cores[] = {1, 2, 4}, cpu[] = {345, 806, 1267, 2035},
                        gpu[] = {140, 420, 854, 1300}, memory[] = {665, 1331, 1866},
                        batch[] = {1, 2, 8};
    const struct wg_tuning_knob knobs[] = {
        BOARD_KNOB("cores", CORES, cores, 2), BOARD_KNOB("cpu", CPU_CLOCK, cpu, 3),
        BOARD_KNOB("gpu", GPU_CLOCK, gpu, 3), BOARD_KNOB("memory", MEM_CLOCK, memory, 2),
        BOARD_KNOB("batch", BATCH, batch, 0)};
    return board_space(knobs, 5);
}

static inline struct wg_tuning_space *training_space(void)
{
    static const double batch[] = {8, 16, 64, 256}, limit[] = {100, 125, 175, 250};
    const struct wg_tuning_knob knobs[] = {BOARD_KNOB("batch", TRAIN_BATCH, batch, 2),
                                           BOARD_KNOB("limit", POWER_LIMIT, limit, 3)};
    return board_space(knobs, 2);
}

static inline struct wg_tuning_space *fleet_space(void)
{
    static const double clock[] = {600, 900, 1400}, limit[] = {150, 250, 400},
                        devices[] = {1, 2, 4}, wait[] = {0, 0.5, 2}, tensor[] = {1, 2},
                        precision[] = {0, 1};
    const struct wg_tuning_knob knobs[] = {BOARD_KNOB("clock", GPU_CLOCK, clock, 2),
                                           BOARD_KNOB("limit", POWER_LIMIT, limit, 2),
                                           BOARD_KNOB("devices", REPLICAS, devices, 0),
                                           BOARD_KNOB("wait", DELAY, wait, 0),
                                           BOARD_KNOB("tensor", SPLIT, tensor, 0),
                                           BOARD_KNOB("precision", CATEGORY, precision, 0)};
    return board_space(knobs, 6);
}

#endif
