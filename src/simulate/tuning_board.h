/* SPDX-License-Identifier: MIT
 *
 * A board by formulas: what a request takes at a GPU clock, a memory clock and a batch size.
 *
 * Twelve parameters. Computing takes b + s units of work at clock f, memory w + a b at clock m
 * (both relative to the highest); the two overlap, more the larger p is; a part does not shrink
 * with either clock. Power is that of the voltage curve (flat up to a threshold, then rising), of
 * the clock tree, of the units that work, and of the memory.
 *
 *     V = v0 for f <= thr, else v0 + (1 - v0) (f - thr) / (1 - thr)
 *     C = (b + s) / f      Q = (w + a b) / m      t = t0 (1 + 0.3 / f) + (C^p + Q^p)^(1/p)
 *     u = min(1, C / t)    v = min(1, Q / t)      o = b / (b + s)
 *     P = ps + ki f V^2 + kg f V^2 u (0.5 + 0.5 o) + km m + km2 m v          E = P t / b
 *
 * It stands in for boards of which only a few points are published: bench/tuning_boards.c fits it
 * to them. It shares the shape of 1/f and 1/m with models that a policy may have, so it shows less
 * than a measured grid does.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_SIMULATE_TUNING_BOARD_H
#define WG_SIMULATE_TUNING_BOARD_H

#define WG_TUNING_BOARD(X)                                                                         \
    X(v0, 0.35, 1)    /* voltage at low clocks, relative */                                        \
    X(thr, 0.05, 0.9) /* up to this clock */                                                       \
    X(ps, 0.02, 0.6)  /* power whatever happens */                                                 \
    X(ki, 0, 0.4)     /* of the clock tree */                                                      \
    X(kg, 0.1, 1.5)   /* of the units */                                                           \
    X(km, 0, 0.6)     /* of the memory's clock */                                                  \
    X(km2, 0, 0.6)    /* of its traffic */                                                         \
    X(s, 0, 4)        /* computing that each batch needs, in requests */                           \
    X(w, 0, 3)        /* traffic that each batch needs */                                          \
    X(a, 0.02, 3)     /* and that each request needs */                                            \
    X(t0, 0, 0.6)     /* time that hardly depends on clocks */                                     \
    X(p, 1.05, 12)    /* overlap */

struct wg_tuning_board {
#define X(name, low, high) double name;
    WG_TUNING_BOARD(X)
#undef X
};

/* At relative clocks f and m in (0, 1]; time of a batch, energy of a request, in no unit. */
void wg__tuning_board_figures(const struct wg_tuning_board *board, double f, double m, double batch,
                              double *time_out, double *energy_out);

#endif
