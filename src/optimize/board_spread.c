/* SPDX-License-Identifier: MIT
 *
 * Mean and deviation of every figure at every candidate, block by block.
 *
 * With R rows of all channels, n of one channel, M kept boards, D their weighted deviations at a
 * candidate (1 x M) and k the covariance of its residual with the channel's rows:
 *
 *     mean = m + D a + k r                     r = A^-1 (v - Dx a)
 *     e    = D - k B                           B = A^-1 Dx: what a row does not say of the boards
 *     var  = K - k A^-1 k' + |e|^2 - |G e'|^2  G = L_S^-1 Dx
 *          = K + |D|^2 - |G D'|^2 + k (Q k' + 2 U D')
 *
 * with H = G B', Q = B B' - A^-1 - H'H, U = H'G - B. So all the work that grows with the number of
 * candidates are two products, (n + R) x M with D and n x n with k, in single precision.
 *
 * Owns: nothing.    Threads: one at a time.
 */
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

#include "optimize/posterior_parts.h"

static const double variance_floor = 1e-8;

/* A channel's matrices, in single precision. */
struct spread {
    size_t n;
    float *q;    /* [n][n]: the quadratic form in k */
    float *u;    /* [n][kept]: what is linear in k */
    float *g;    /* [rows][kept]: L_S^-1 Dx */
    float *r;    /* [n]: the residual's weights */
    float *step; /* [kept] */
};

static void to_float(const double *from, size_t count, float *to)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (float)from[i];
}

/* H = G B', then Q = B B' - A^-1 - H'H and U = H'G - B. */
static enum wg_code set_spread(struct wg_board_posterior *posterior, struct wg_board_work *work,
                               const struct wg_board_channel *channel, size_t c, const double *g,
                               struct spread *out, struct wg_error *err)
{
    const size_t n = channel->count, kept = work->kept, rows = work->rows;
    const size_t from = work->first[c];
    struct wg_arena *arena = &posterior->arena;
    double *r = wg__arena_alloc(arena, n, sizeof *r);
    double *b = wg__arena_alloc(arena, n * kept, sizeof *b);
    double *q = wg__arena_alloc(arena, n * n, sizeof *q);
    double *h = wg__arena_alloc(arena, rows * n, sizeof *h);
    double *u = wg__arena_alloc(arena, n * kept, sizeof *u);
    out->n = n;
    out->q = wg__arena_alloc(arena, n * n, sizeof *out->q);
    out->u = wg__arena_alloc(arena, n * kept, sizeof *out->u);
    out->r = wg__arena_alloc(arena, n, sizeof *out->r);
    out->step = wg__arena_alloc(arena, kept, sizeof *out->step);
    out->g = wg__arena_alloc(arena, rows * kept, sizeof *out->g);
    if (!r || !b || !q || !h || !u || !out->q || !out->u || !out->r || !out->step || !out->g)
        return wg__board_no_memory(work, err);
    const double *a = work->a + from * rows + from;
    const double *dx = work->dx + from * kept;
    memcpy(r, work->v + from, n * sizeof *r);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)n, (int)kept, -1, dx, (int)kept, work->step, 1, 1,
                r, 1);
    LAPACKE_dpotrs(LAPACK_ROW_MAJOR, 'L', (int)n, 1, a, (int)rows, r, 1);
    memcpy(b, dx, n * kept * sizeof *b);
    LAPACKE_dpotrs(LAPACK_ROW_MAJOR, 'L', (int)n, (int)kept, a, (int)rows, b, (int)kept);
    for (size_t i = 0; i < n; i++)
        q[i * n + i] = 1;
    LAPACKE_dpotrs(LAPACK_ROW_MAJOR, 'L', (int)n, (int)n, a, (int)rows, q, (int)n);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)n, (int)kept, 1, g,
                (int)kept, b, (int)kept, 0, h, (int)n);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)n, (int)kept, 1, b, (int)kept,
                b, (int)kept, -1, q, (int)n);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)n, (int)n, (int)rows, -1, h, (int)n,
                h, (int)n, 1, q, (int)n);
    memcpy(u, b, n * kept * sizeof *u);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)n, (int)kept, (int)rows, 1, h, (int)n,
                g, (int)kept, -1, u, (int)kept);
    to_float(q, n * n, out->q);
    to_float(u, n * kept, out->u);
    to_float(r, n, out->r);
    to_float(work->step, kept, out->step);
    to_float(g, rows * kept, out->g);
    return WG_OK;
}

enum { BLOCK = 256 };

/* Scratch of one block of candidates. */
struct block {
    float *k, *qk; /* [n][BLOCK] */
    float *gd;     /* [rows][BLOCK] */
};

/* How many candidates the block from x on has. */
static size_t block_width(size_t total, size_t x)
{
    const size_t left = total - x;
    return left < BLOCK ? left : BLOCK;
}

/* What the boards add to mean and variance of candidates x .. x + count - 1. */
static void add_boards(const struct wg_board_work *work, const struct spread *spread, size_t q,
                       size_t x, size_t count, const struct block *block, double *sums,
                       double *variances)
{
    const size_t ld = work->candidates;
    const float *deviations = work->deviations[q] + x;
    float moved[BLOCK] = {0}, prior_squares[BLOCK] = {0}, known_squares[BLOCK] = {0};
    for (size_t k = 0; k < work->kept; k++)
        for (size_t i = 0; i < count; i++) {
            const float d = deviations[k * ld + i];
            moved[i] += d * spread->step[k];
            prior_squares[i] += d * d;
        }
    for (size_t r = 0; r < work->rows; r++)
        for (size_t i = 0; i < count; i++) {
            const float g = block->gd[r * BLOCK + i];
            known_squares[i] += g * g;
        }
    for (size_t i = 0; i < count; i++) {
        sums[i] += (double)moved[i];
        variances[i] += (double)prior_squares[i] - (double)known_squares[i];
    }
}

/* Mean and sd of one channel on candidates x .. x + count - 1. */
static void spread_block(const struct wg_board_work *work, const struct spread *spread, size_t c,
                         double rho, size_t q, bool is_board, size_t x, size_t count,
                         const double *prior, struct block *block, float *mean, float *sd)
{
    const size_t n = spread->n, ld = work->candidates;
    const double constant = work->kernels[c].constant * work->kernels[c].constant;
    double sums[BLOCK], variances[BLOCK];
    for (size_t i = 0; i < count; i++) {
        sums[i] = is_board ? (double)work->mean[q][x + i] : 0;
        variances[i] = rho * rho * prior[i] + constant;
    }
    for (size_t r = 0; r < n; r++) {
        const float *k = work->k[work->first[c] + r] + x;
        for (size_t i = 0; i < count; i++) {
            block->k[r * BLOCK + i] = (float)(rho * rho) * k[i] + (float)constant;
            sums[i] += (double)(block->k[r * BLOCK + i] * spread->r[r]);
        }
    }
    if (n > 0)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)count, (int)n, 1,
                    spread->q, (int)n, block->k, BLOCK, 0, block->qk, BLOCK);
    if (is_board) {
        const float *deviations = work->deviations[q] + x;
        if (n > 0)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)count,
                        (int)work->kept, 2, spread->u, (int)work->kept, deviations, (int)ld, 1,
                        block->qk, BLOCK);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)work->rows, (int)count,
                    (int)work->kept, 1, spread->g, (int)work->kept, deviations, (int)ld, 0,
                    block->gd, BLOCK);
        add_boards(work, spread, q, x, count, block, sums, variances);
    }
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < count; i++)
            variances[i] += (double)(block->k[r * BLOCK + i] * block->qk[r * BLOCK + i]);
    for (size_t i = 0; i < count; i++) {
        mean[x + i] = (float)sums[i];
        sd[x + i] = (float)sqrt(fmax(variances[i], variance_floor));
    }
}

enum wg_code wg__board_spread(struct wg_board_posterior *posterior, struct wg_board_work *work,
                              const struct wg_board_channel *channels, size_t count,
                              struct wg_error *err)
{
    const size_t rows = work->rows, kept = work->kept;
    struct wg_arena *arena = &posterior->arena;
    double *g = wg__arena_alloc(arena, rows * kept, sizeof *g);
    struct block block = {.k = wg__arena_alloc(arena, rows * BLOCK, sizeof(float)),
                          .qk = wg__arena_alloc(arena, rows * BLOCK, sizeof(float)),
                          .gd = wg__arena_alloc(arena, rows * BLOCK, sizeof(float))};
    if (!g || !block.k || !block.qk || !block.gd)
        return wg__board_no_memory(work, err);
    memcpy(g, work->dx, rows * kept * sizeof *g);
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (int)rows,
                (int)kept, 1, work->s, (int)rows, g, (int)kept);
    size_t total = 0;
    const uint32_t *candidates = wg__board_pool_candidates(posterior->pool, &total);
    const struct wg_board_axes *axes = wg__board_pool_axes(posterior->pool);
    for (size_t c = 0; c < count; c++) {
        struct spread spread;
        const enum wg_code code = set_spread(posterior, work, &channels[c], c, g, &spread, err);
        if (code != WG_OK)
            return code;
        for (size_t x = 0; x < total; x += BLOCK) {
            const size_t width = block_width(total, x);
            double prior[BLOCK] = {0};
            for (size_t i = 0; i < width; i++)
                prior[i] = wg__residual_kernel_variance(&work->kernels[c], axes, candidates[x + i]);
            spread_block(work, &spread, c, posterior->rho[c], channels[c].kind == WG_TUNING_ENERGY,
                         wg__board_has(channels[c].kind), x, width, prior, &block,
                         posterior->means[c], posterior->sds[c]);
        }
    }
    return WG_OK;
}
