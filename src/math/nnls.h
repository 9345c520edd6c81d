/* SPDX-License-Identifier: MIT
 *
 * Small non-negative least squares, from the normal equations.
 *
 *     min  x'Gx / 2 - h'x    x >= 0        G = A'WA (positive definite), h = A'Wb
 *
 * Active sets by Lawson and Hanson, "Solving Least Squares Problems" (1974), chapter 23, on the
 * Gram matrix: after a sample is added only G and h change, and the set of the last solution is
 * nearly always right again, so a warm start costs one Cholesky factorisation of at most
 * WG_NNLS_MAX rows.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_MATH_NNLS_H
#define WG_MATH_NNLS_H

#include <stdbool.h>
#include <stddef.h>

enum { WG_NNLS_MAX = 8 };

struct wg_nnls {
    size_t count; /* unknowns, 1 .. WG_NNLS_MAX */
    double gram[WG_NNLS_MAX][WG_NNLS_MAX];
    double moment[WG_NNLS_MAX];
    unsigned positive; /* bit i: x[i] was positive in the last solution; the warm start */
    double x[WG_NNLS_MAX];
};

/* Solves for x; false: the Gram matrix is not positive definite (x is left alone). */
bool wg__nnls_solve(struct wg_nnls *problem);

#endif
