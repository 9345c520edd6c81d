/* SPDX-License-Identifier: MIT
 *
 * A random board: one guess of how time and energy of a request follow clocks, cores, a power
 * limit, a batch and replicas. A thousand of them are the prior of the tuning policy `wattgov`.
 *
 * A board is a vector z of standard normal numbers; each number is stretched into one constant of
 * the formulas below. The work of a request falls on parts (board_axes.h):
 *
 *     tau_j = a_j (s_j + b)/(s_j + 1) n^-eta / f_j        busy time of a part; b the batch, n the
 *                                                         replicas, f_j its clock over the highest
 *     T     = (a_0 + (sum tau_j^p)^(1/p)) (1 + comm (n-1))
 *     P     = P_0 + sum pc_j f_j V(f_j)^2 (u_j + (1-u_j) min(1, tau_j/T))
 *
 * p = 1 lets the parts work one after another; with a large p the slowest alone counts (a
 * roofline). V is the voltage curve: flat, then linear. A power limit lowers the clock of the main
 * part until the power fits, by power ~ clock^g. Energy of a request is P T / b. Last, each knob
 * may bend time and energy by a small power of itself (tilts), so that the prior stays wide where
 * physics is silent: an energy counter that under-reads, a cost that is a proxy.
 *
 * What is not of physics is a guess and says so in docs/internals/tuning.md: replicas, split,
 * delay, category.
 *
 * Owns: nothing.    Threads: pure.
 */
#ifndef WG_OPTIMIZE_BOARD_MODEL_H
#define WG_OPTIMIZE_BOARD_MODEL_H

#include "base/rng.h"
#include "optimize/board_axes.h"

enum {
    WG_BOARD_GLOBALS = 22, /* numbers of the whole board */
    WG_BOARD_PER_KNOB = 6, /* and of each knob */
    WG_BOARD_NUMBERS_MAX = WG_BOARD_GLOBALS + WG_BOARD_PER_KNOB * WG_TUNING_KNOBS_MAX
};

static inline size_t wg__board_numbers(const struct wg_board_axes *axes)
{
    return WG_BOARD_GLOBALS + WG_BOARD_PER_KNOB * axes->space->knob_count;
}

struct wg_board_part {
    double work;       /* a_j */
    double fixed;      /* s_j */
    double power;      /* pc_j, or pm of the memory */
    double idle_share; /* u_j */
};

struct wg_board {
    double overlap;                        /* p */
    double fixed_time;                     /* a_0 */
    double parallel, core_power;           /* of cores */
    double low_voltage, voltage_from;      /* V_0, thr */
    double base_power;                     /* P_0 */
    double steepness, demand, floor, idle; /* g, q, fmin, idle of a power limit */
    double scaling, comm;                  /* eta, comm of replicas */
    double roomy; /* the batch at which crowding doubles the work, over the largest */
    double delay; /* the longest delay over the time of a request */
    struct wg_board_part parts[WG_BOARD_PARTS_MAX];
    double tilt_t[WG_TUNING_KNOBS_MAX], tilt_e[WG_TUNING_KNOBS_MAX];
    double lowest_core_t, lowest_core_e; /* a step at the lowest core count */
};

/* Draws `numbers` standard normal values. A knob's own come from its name: the order of knobs does
 * not change the board. */
void wg__board_draw(const struct wg_board_axes *axes, const struct wg_rng *rng, float *z);

/* The board of these numbers. */
void wg__board_from(const struct wg_board_axes *axes, const float *z, struct wg_board *out);

/* log t and log E of configurations, not yet relative to anything. `table` is scratch for
 * axes->first[knob_count] effects. */
struct wg_board_effect;
size_t wg__board_table_size(const struct wg_board_axes *axes); /* bytes */
void wg__board_row(const struct wg_board_axes *axes, const struct wg_board *board,
                   const uint32_t *configurations, size_t count, struct wg_board_effect *table,
                   float *log_t, float *log_e);

/* The same of one configuration. */
void wg__board_point(const struct wg_board_axes *axes, const struct wg_board *board,
                     size_t configuration, float *log_t, float *log_e);

#endif
