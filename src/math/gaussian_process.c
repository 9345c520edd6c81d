/* SPDX-License-Identifier: MIT
 *
 * The Gaussian process of gaussian_process.h.
 *
 * With K = L L': log p(y) = -y' K^-1 y / 2 - sum log L_ii - n log(2 pi) / 2. At a new point with
 * covariances k to the observed ones the mean is k' K^-1 y and the variance k(x, x) - |L^-1 k|^2.
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include "math/gaussian_process.h"

#include <assert.h>
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "math/kernel.h"

static const double log_2pi = 1.8378770664093454836;
static const double variance_min = 1e-12;

void wg__gp_init(struct wg_gp *gp, size_t axes)
{
    assert(axes >= 1 && axes <= WG_GP_AXES_MAX);
    *gp = (struct wg_gp){.axes = axes};
}

void wg__gp_fini(struct wg_gp *gp)
{
    wg__free(gp->x);
    wg__free(gp->y);
    wg__free(gp->extra);
    wg__free(gp->squares);
    wg__free(gp->factor);
    wg__free(gp->weights);
    wg__free(gp->block);
    *gp = (struct wg_gp){.axes = gp->axes};
}

static bool grow_one(double **array, size_t count)
{
    double *grown = wg__realloc_array(*array, count, sizeof **array);

    if (grown == NULL)
        return false;
    *array = grown;
    return true;
}

static bool grow(struct wg_gp *gp, size_t count)
{
    const size_t n = count + count / 2 + 8;

    if (count <= gp->capacity)
        return true;
    if (!grow_one(&gp->x, n * gp->axes) || !grow_one(&gp->y, n) || !grow_one(&gp->extra, n) ||
        !grow_one(&gp->squares, gp->axes * (n * (n + 1) / 2)) || !grow_one(&gp->factor, n * n) ||
        !grow_one(&gp->weights, n) || !grow_one(&gp->block, n * WG_GP_BLOCK))
        return false;
    gp->capacity = n;
    return true;
}

enum wg_code wg__gp_set(struct wg_gp *gp, const double *x, const double *y, const double *extra,
                        size_t count, struct wg_error *err)
{
    gp->is_fitted = false;
    gp->count = 0;
    if (!grow(gp, count))
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu observations", count);
    gp->count = count;
    if (count == 0)
        return WG_OK;
    for (size_t d = 0; d < gp->axes; d++)
        for (size_t i = 0; i < count; i++)
            gp->x[d * count + i] = x[i * gp->axes + d];
    memcpy(gp->y, y, count * sizeof *y);
    if (extra != NULL)
        memcpy(gp->extra, extra, count * sizeof *extra);
    else
        memset(gp->extra, 0, count * sizeof *gp->extra);
    double *square = gp->squares;
    for (size_t d = 0; d < gp->axes; d++)
        for (size_t j = 0; j < count; j++)
            for (size_t i = j; i < count; i++) {
                const double difference = x[i * gp->axes + d] - x[j * gp->axes + d];

                *square++ = difference * difference;
            }
    return WG_OK;
}

/* The inverse squares of the lengths. */
static void weigh(const struct wg_gp *gp, double *inverse)
{
    for (size_t d = 0; d < gp->axes; d++)
        inverse[d] = 1 / (gp->kernel.length[d] * gp->kernel.length[d]);
}

static void fill_covariance(struct wg_gp *gp, double noise)
{
    const size_t n = gp->count, triangle = n * (n + 1) / 2;
    const double variance = gp->kernel.amplitude * gp->kernel.amplitude;
    double inverse[WG_GP_AXES_MAX];
    size_t at = 0;

    weigh(gp, inverse);
    for (size_t j = 0; j < n; j++)
        for (size_t i = j; i < n; i++, at++) {
            double r2 = 0;

            for (size_t d = 0; d < gp->axes; d++)
                r2 += gp->squares[d * triangle + at] * inverse[d];
            gp->factor[j * n + i] = variance * wg__matern52(sqrt(r2)) + gp->kernel.constant +
                                    (i == j ? noise + gp->extra[i] : 0);
        }
}

double wg__gp_fit(struct wg_gp *gp, const struct wg_gp_kernel *kernel, double noise)
{
    const lapack_int n = (lapack_int)gp->count;
    double log_likelihood = -(double)n * log_2pi / 2;

    gp->kernel = *kernel;
    gp->is_fitted = true;
    if (n == 0)
        return 0;
    fill_covariance(gp, noise);
    if (LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', n, gp->factor, n) != 0) {
        gp->is_fitted = false;
        return -(double)INFINITY;
    }
    memcpy(gp->weights, gp->y, gp->count * sizeof *gp->y);
    cblas_dtrsv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, n, gp->factor, n,
                gp->weights, 1);
    for (size_t i = 0; i < gp->count; i++)
        log_likelihood -= gp->weights[i] * gp->weights[i] / 2 + log(gp->factor[i * gp->count + i]);
    cblas_dtrsv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, n, gp->factor, n, gp->weights,
                1);
    return log_likelihood;
}

/* Covariances of one point to the observed ones. Distances first, axis by axis: a loop that the
 * compiler can do several at a time. */
static void fill_column(const struct wg_gp *gp, const double *x, const double *inverse,
                        double *column)
{
    const size_t n = gp->count;
    const double variance = gp->kernel.amplitude * gp->kernel.amplitude;

    for (size_t i = 0; i < n; i++)
        column[i] = 0;
    for (size_t d = 0; d < gp->axes; d++) {
        const double *seen = gp->x + d * n, here = x[d], weight = inverse[d];

        for (size_t i = 0; i < n; i++)
            column[i] += (here - seen[i]) * (here - seen[i]) * weight;
    }
    for (size_t i = 0; i < n; i++)
        column[i] = variance * wg__matern52(sqrt(column[i])) + gp->kernel.constant;
}

/* One block: covariances by columns, then the solve. */
static void predict_block(struct wg_gp *gp, const double *x, size_t count, double *mean_out,
                          double *sd_out)
{
    const size_t n = gp->count;
    double inverse[WG_GP_AXES_MAX];

    weigh(gp, inverse);
    for (size_t p = 0; p < count; p++)
        fill_column(gp, x + p * gp->axes, inverse, gp->block + p * n);
    if (n > 0) {
        for (size_t p = 0; p < count; p++)
            mean_out[p] = cblas_ddot((int)n, gp->block + p * n, 1, gp->weights, 1);
        cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (int)n,
                    (int)count, 1, gp->factor, (int)n, gp->block, (int)n);
    }
    for (size_t p = 0; p < count; p++) {
        double left = gp->kernel.amplitude * gp->kernel.amplitude + gp->kernel.constant;

        if (n > 0)
            left -= cblas_ddot((int)n, gp->block + p * n, 1, gp->block + p * n, 1);
        else
            mean_out[p] = 0;
        sd_out[p] = sqrt(fmax(left, variance_min));
    }
}

void wg__gp_predict(struct wg_gp *gp, const double *x, size_t count, double *mean_out,
                    double *sd_out)
{
    assert(gp->is_fitted);
    for (size_t from = 0; from < count; from += WG_GP_BLOCK) {
        const size_t size = count - from < WG_GP_BLOCK ? count - from : WG_GP_BLOCK;

        predict_block(gp, x + from * gp->axes, size, mean_out + from, sd_out + from);
    }
}
