/* SPDX-License-Identifier: MIT
 *
 * The board's formulas: see tuning_board.h.
 *
 * Threads: pure.
 */
#include "simulate/tuning_board.h"

#include <math.h>

/* How much more of the fixed time a low clock costs. */
static const double fixed_slope = 0.3;

static double voltage(const struct wg_tuning_board *board, double f)
{
    return f <= board->thr ? board->v0
                           : board->v0 + (1 - board->v0) * (f - board->thr) / (1 - board->thr);
}

void wg__tuning_board_figures(const struct wg_tuning_board *board, double f, double m, double batch,
                              double *time_out, double *energy_out)
{
    const double compute = (batch + board->s) / f;
    const double traffic = (board->w + board->a * batch) / m;
    /* The larger one is taken out, so that no power of it overflows. */
    const double larger = fmax(compute, traffic), smaller = fmin(compute, traffic);
    const double overlapped = larger * pow(1 + pow(smaller / larger, board->p), 1 / board->p);
    const double t = board->t0 * (1 + fixed_slope / f) + overlapped;
    const double v = voltage(board, f), busy = fmin(1, compute / t), moving = fmin(1, traffic / t);
    const double occupied = batch / (batch + board->s);
    const double power = board->ps + board->ki * f * v * v +
                         board->kg * f * v * v * busy * (0.5 + 0.5 * occupied) + board->km * m +
                         board->km2 * m * moving;
    *time_out = t;
    *energy_out = power * t / batch;
}
