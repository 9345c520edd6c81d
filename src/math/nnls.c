/* SPDX-License-Identifier: MIT
 *
 * Lawson and Hanson's active sets on the Gram matrix.
 *
 * x is kept feasible: positive on the set P, zero elsewhere. The least squares solution z on P is
 * found by G = L D L'; if it is positive, x becomes z, else x goes towards z until its first part
 * is zero, which leaves P. Then the part with the steepest descent (scaled: w / sqrt(G_ii)) enters
 * P, until there is none. Each time x becomes z, the objective falls, so no set comes twice; a part
 * that enters and turns out to be no descent (rounding) isn't tried again in that round.
 *
 * No scaling of the unknowns is needed: elimination without exchanges rounds the same whatever the
 * units are, and all comparisons here are between numbers of one unit. That every set can be
 * factorised is known once G as a whole can: a pivot is the variance of an unknown that the ones
 * before it leave, and fewer unknowns leave more.
 *
 * Rejected: the QR form (needs all samples), block exchanges of several unknowns (can cycle).
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#include "math/nnls.h"

#include <assert.h>
#include <math.h>

enum { ROUNDS_MAX = 16 * WG_NNLS_MAX };

/* A pivot below this part of its diagonal is rounding. */
static const double least_pivot = 1e-14;

/* The unknowns of a set and the factors of their part of the Gram matrix; the other ones may follow
 * behind. */
struct factors {
    size_t count; /* of the set */
    size_t index[WG_NNLS_MAX];
    double lower[WG_NNLS_MAX][WG_NNLS_MAX]; /* below a diagonal of ones */
    double inverse[WG_NNLS_MAX];            /* of the pivots */
};

/* Adds the row of unknown index[at]; false: the rows up to it are not positive definite. */
static inline bool add_row(const struct wg_nnls *problem, struct factors *out, size_t at)
{
    const double *row = problem->gram[out->index[at]];
    const double diagonal = row[out->index[at]];
    double scaled[WG_NNLS_MAX]; /* L_ik D_k */
    double pivot = diagonal;
    for (size_t k = 0; k < at; k++) {
        double sum = row[out->index[k]];
        for (size_t l = 0; l < k; l++)
            sum -= scaled[l] * out->lower[k][l];
        scaled[k] = sum;
        out->lower[at][k] = sum * out->inverse[k];
        pivot -= sum * out->lower[at][k];
    }
    out->inverse[at] = 1.0 / pivot;
    return pivot > least_pivot * diagonal && isfinite(pivot);
}

/* With `is_whole` the unknowns beyond the set, too, only to see that their pivots are positive. */
static bool factorise(const struct wg_nnls *problem, unsigned set, bool is_whole,
                      struct factors *out)
{
    size_t count = 0;
    for (size_t i = 0; i < problem->count; i++) {
        if ((set >> i & 1U) != 0)
            out->index[count++] = i;
    }
    out->count = count;
    for (size_t i = 0; i < problem->count && is_whole; i++) {
        if ((set >> i & 1U) == 0)
            out->index[count++] = i;
    }
    for (size_t at = 0; at < count; at++) {
        if (!add_row(problem, out, at))
            return false;
    }
    return true;
}

/* z on the set, zero elsewhere. */
static void solve_on(const struct wg_nnls *problem, const struct factors *factors, double *z)
{
    const size_t count = factors->count;
    double y[WG_NNLS_MAX];
    for (size_t i = 0; i < problem->count; i++)
        z[i] = 0.0;
    for (size_t i = 0; i < count; i++) {
        y[i] = problem->moment[factors->index[i]];
        for (size_t k = 0; k < i; k++)
            y[i] -= factors->lower[i][k] * y[k];
    }
    for (size_t i = count; i-- > 0;) {
        y[i] *= factors->inverse[i];
        for (size_t k = i + 1; k < count; k++)
            y[i] -= factors->lower[k][i] * z[factors->index[k]];
        z[factors->index[i]] = y[i];
    }
}

/* Goes from x towards z as far as nothing becomes negative; what becomes zero leaves the set. */
static unsigned step_towards(size_t count, unsigned set, double *x, const double *z)
{
    double share = 1.0;
    size_t first = count;
    for (size_t i = 0; i < count; i++) {
        if ((set >> i & 1U) == 0 || z[i] > 0.0)
            continue;
        const double until = x[i] / (x[i] - z[i]); /* 0 / 0 when both are */
        if (first == count || !(until >= share)) {
            share = until > 0.0 ? until : 0.0;
            first = i;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if ((set >> i & 1U) == 0)
            continue;
        x[i] += share * (z[i] - x[i]);
        if (i == first || !(x[i] > 0.0)) {
            x[i] = 0.0;
            set &= ~(1U << i);
        }
    }
    return set;
}

/* x becomes the solution on what is left of `set` once all of it is positive. */
static unsigned settle(const struct wg_nnls *problem, unsigned set, struct factors *factors,
                       double *x)
{
    for (;;) {
        double z[WG_NNLS_MAX];
        solve_on(problem, factors, z);
        bool is_positive = true;
        for (size_t i = 0; i < factors->count; i++)
            is_positive = is_positive && z[factors->index[i]] > 0.0;
        if (is_positive) {
            for (size_t i = 0; i < problem->count; i++)
                x[i] = z[i];
            return set;
        }
        set = step_towards(problem->count, set, x, z);
        (void)factorise(problem, set, false, factors);
    }
}

/* The unknown outside `taken` that promises most; `count` when none promises more than rounding. */
static size_t steepest(const struct wg_nnls *problem, unsigned taken, const double *x)
{
    const double rounding = 0x1p-48;
    size_t best = problem->count;
    double best_descent = 0.0;
    for (size_t i = 0; i < problem->count; i++) {
        if ((taken >> i & 1U) != 0)
            continue;
        double slope = problem->moment[i];
        double size = fabs(slope);
        for (size_t k = 0; k < problem->count; k++) {
            const double part = problem->gram[i][k] * x[k];
            slope -= part;
            size += fabs(part);
        }
        if (!(slope > rounding * size))
            continue;
        const double descent = slope / sqrt(problem->gram[i][i]);
        if (descent > best_descent) {
            best_descent = descent;
            best = i;
        }
    }
    return best;
}

static bool is_finite(const struct wg_nnls *problem)
{
    double sum = 0.0;
    for (size_t i = 0; i < problem->count; i++)
        sum += fabs(problem->moment[i]);
    return isfinite(sum);
}

bool wg__nnls_solve(struct wg_nnls *problem)
{
    assert(problem->count >= 1 && problem->count <= WG_NNLS_MAX);
    const size_t count = problem->count;
    struct factors factors;
    double x[WG_NNLS_MAX] = {0};
    unsigned set = 0;
    for (size_t i = 0; i < count; i++) {
        if ((problem->positive >> i & 1U) != 0 && problem->x[i] > 0.0 && isfinite(problem->x[i])) {
            x[i] = problem->x[i];
            set |= 1U << i;
        }
    }
    if (!is_finite(problem) || !factorise(problem, set, true, &factors))
        return false;
    set = settle(problem, set, &factors, x);
    unsigned refused = 0;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        const size_t enters = steepest(problem, set | refused, x);
        if (enters == count)
            break;
        double z[WG_NNLS_MAX];
        (void)factorise(problem, set | 1U << enters, false, &factors);
        solve_on(problem, &factors, z);
        if (!(z[enters] > 0.0)) {
            refused |= 1U << enters;
            continue;
        }
        refused = 0;
        set = settle(problem, set | 1U << enters, &factors, x);
    }
    for (size_t i = 0; i < count; i++)
        problem->x[i] = x[i];
    problem->positive = set;
    return true;
}
