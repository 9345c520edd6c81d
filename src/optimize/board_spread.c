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

#include "math/panel.h"
#include "optimize/posterior_parts.h"

static const double variance_floor = 1e-8;

/* A channel's matrices, in single precision. */
struct spread {
    size_t n;
    float *q;    /* [n][n]: the quadratic form in k */
    float *u;    /* [n][kept]: twice what is linear in k */
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
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)n, (int)kept, (int)rows, 2, h, (int)n,
                g, (int)kept, -2, u, (int)kept);
    to_float(q, n * n, out->q);
    to_float(u, n * kept, out->u);
    to_float(r, n, out->r);
    to_float(work->step, kept, out->step);
    to_float(g, rows * kept, out->g);
    return WG_OK;
}

/* Scratch of one panel of candidates. */
struct panel {
    size_t x, count; /* candidates x .. x + count - 1 */
    float *d;        /* [kept][WG_PANEL] */
    float *k, *qk;   /* [n][WG_PANEL] */
    float *gd;       /* [rows][WG_PANEL] */
    double mean[WG_PANEL], variance[WG_PANEL];
};

/* k and the residual's part of the mean. */
static void add_residual(const struct wg_board_work *work, const struct spread *spread, size_t c,
                         double rho, struct panel *panel)
{
    const double constant = work->kernels[c].constant * work->kernels[c].constant;
    for (size_t r = 0; r < spread->n; r++) {
        const float *from = work->k[work->first[c] + r] + panel->x;
        float *k = panel->k + r * WG_PANEL;
        for (size_t i = 0; i < panel->count; i++) {
            k[i] = (float)(rho * rho) * from[i] + (float)constant;
            panel->mean[i] += (double)(k[i] * spread->r[r]);
        }
    }
    memset(panel->qk, 0, spread->n * WG_PANEL * sizeof *panel->qk);
    wg__panel_add_product(spread->q, spread->n, spread->n, panel->k, panel->qk);
}

/* What the boards add to mean and variance, and 2 U D'. */
static void add_boards(const struct wg_board_work *work, const struct spread *spread, size_t q,
                       struct panel *panel)
{
    float mean[WG_PANEL];
    float moved[WG_PANEL] = {0}, prior_squares[WG_PANEL] = {0}, known_squares[WG_PANEL] = {0};
    wg__board_deviations(work, q, panel->x, panel->count, WG_PANEL, mean, panel->d);
    for (size_t k = 0; k < work->kept; k++)
        for (size_t i = 0; i < WG_PANEL; i++) {
            const float d = panel->d[k * WG_PANEL + i];
            moved[i] += d * spread->step[k];
            prior_squares[i] += d * d;
        }
    wg__panel_add_product(spread->u, spread->n, work->kept, panel->d, panel->qk);
    memset(panel->gd, 0, work->rows * WG_PANEL * sizeof *panel->gd);
    wg__panel_add_product(spread->g, work->rows, work->kept, panel->d, panel->gd);
    for (size_t r = 0; r < work->rows; r++)
        for (size_t i = 0; i < WG_PANEL; i++) {
            const float g = panel->gd[r * WG_PANEL + i];
            known_squares[i] += g * g;
        }
    for (size_t i = 0; i < panel->count; i++) {
        panel->mean[i] += (double)mean[i] + (double)moved[i];
        panel->variance[i] += (double)prior_squares[i] - (double)known_squares[i];
    }
}

/* Mean and sd of one channel on a panel; its variance holds that of the residual's prior. */
static void spread_panel(const struct wg_board_work *work, const struct spread *spread, size_t c,
                         double rho, enum wg_tuning_kind kind, struct panel *panel, float *mean,
                         float *sd)
{
    memset(panel->mean, 0, sizeof panel->mean);
    add_residual(work, spread, c, rho, panel);
    if (wg__board_has(kind))
        add_boards(work, spread, kind == WG_TUNING_ENERGY, panel);
    for (size_t r = 0; r < spread->n; r++)
        for (size_t i = 0; i < panel->count; i++)
            panel->variance[i] +=
                (double)(panel->k[r * WG_PANEL + i] * panel->qk[r * WG_PANEL + i]);
    for (size_t i = 0; i < panel->count; i++) {
        mean[panel->x + i] = (float)panel->mean[i];
        sd[panel->x + i] = (float)sqrt(fmax(panel->variance[i], variance_floor));
    }
}

enum wg_code wg__board_spread(struct wg_board_posterior *posterior, struct wg_board_work *work,
                              const struct wg_board_channel *channels, size_t count,
                              struct wg_error *err)
{
    const size_t rows = work->rows, kept = work->kept;
    struct wg_arena *arena = &posterior->arena;
    double *g = wg__arena_alloc(arena, rows * kept, sizeof *g);
    struct panel panel = {.d = wg__arena_alloc(arena, kept * WG_PANEL, sizeof(float)),
                          .k = wg__arena_alloc(arena, rows * WG_PANEL, sizeof(float)),
                          .qk = wg__arena_alloc(arena, rows * WG_PANEL, sizeof(float)),
                          .gd = wg__arena_alloc(arena, rows * WG_PANEL, sizeof(float))};
    if (!g || !panel.d || !panel.k || !panel.qk || !panel.gd)
        return wg__board_no_memory(work, err);
    memcpy(g, work->dx, rows * kept * sizeof *g);
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (int)rows,
                (int)kept, 1, work->s, (int)rows, g, (int)kept);
    size_t total = 0;
    const uint32_t *candidates = wg__board_pool_candidates(posterior->pool, &total);
    const struct wg_board_axes *axes = wg__board_pool_axes(posterior->pool);
    for (size_t c = 0; c < count; c++) {
        const struct wg_residual_kernel *kernel = &work->kernels[c];
        const double rho = posterior->rho[c];
        struct spread spread;
        const enum wg_code code = set_spread(posterior, work, &channels[c], c, g, &spread, err);
        if (code != WG_OK)
            return code;
        for (panel.x = 0; panel.x < total; panel.x += WG_PANEL) {
            panel.count = total - panel.x < WG_PANEL ? total - panel.x : WG_PANEL;
            for (size_t i = 0; i < panel.count; i++)
                panel.variance[i] =
                    rho * rho *
                        wg__residual_kernel_variance(kernel, axes, candidates[panel.x + i]) +
                    kernel->constant * kernel->constant;
            spread_panel(work, &spread, c, rho, channels[c].kind, &panel, posterior->means[c],
                         posterior->sds[c]);
        }
    }
    return WG_OK;
}
