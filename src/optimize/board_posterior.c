/* SPDX-License-Identifier: MIT
 *
 * The posterior over boards and residuals, up to the step that the boards take; see the header for
 * the idea and board_spread.c for the rest.
 *
 * With R rows of all channels, M kept boards, Dx their weighted deviations from their mean at the
 * rows (R x M), A a channel's covariance of residual and noise, and v what the mean board leaves of
 * the values:
 *
 *     S = Dx Dx' + blockdiag(A) / (1 - beta)          a = Dx' S^-1 v
 *
 * Owns: see the header.    Threads: one at a time.
 */

#include "optimize/board_posterior.h"

#include <assert.h>
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "optimize/posterior_parts.h"
#include "optimize/tuner_constants.h"

enum { RHO_COUNT = 7, RHO_APART = 3, RHO_LEAST_ROWS = 3 };

static const double rhos[RHO_COUNT] = {0.4, 0.6, 0.8, 1, 1.4, 2, 2.8};
static const double rho_most = 100;
static const double least_left = 0.001; /* of the likelihood, for the Kalman step */

struct wg_board_settings wg__board_settings_default(void)
{
    const struct wg_tuner_constants *c = &wg__tuner_constants;
    return (struct wg_board_settings){.boards = (size_t)c->boards,
                                      .kept = (size_t)c->kept,
                                      .effective = c->effective,
                                      .rho_sd = c->rho_sd,
                                      .rho_knobs = (size_t)c->rho_knobs,
                                      .widen_at = c->widen_at};
}

enum wg_code wg__board_posterior_new(struct wg_board_posterior **out, struct wg_board_pool *pool,
                                     const struct wg_board_settings *settings, struct wg_error *err)
{
    const struct wg_board_axes *axes = wg__board_pool_axes(pool);
    struct wg_board_posterior *posterior = wg__alloc_zeroed(1, sizeof *posterior);
    if (!posterior)
        return wg__fail(err, WG_ENOMEM, "out of memory for the posterior");
    posterior->pool = pool;
    posterior->settings = *settings;
    wg__arena_init(&posterior->arena);
    for (size_t c = 0; c < WG_BOARD_CHANNELS_MAX; c++)
        posterior->rho[c] = 1;
    posterior->along =
        wg__alloc_zeroed(axes->first[axes->space->knob_count], sizeof *posterior->along);
    if (!posterior->along) {
        wg__board_posterior_free(posterior);
        return wg__fail(err, WG_ENOMEM, "out of memory for the posterior");
    }
    *out = posterior;
    return WG_OK;
}

void wg__board_posterior_free(struct wg_board_posterior *posterior)
{
    if (!posterior)
        return;
    for (size_t i = 0; i < posterior->kernel_count; i++)
        wg__free(posterior->kernels[i].values);
    for (size_t c = 0; c < WG_BOARD_CHANNELS_MAX; c++) {
        wg__free(posterior->means[c]);
        wg__free(posterior->sds[c]);
    }
    wg__free(posterior->kernels);
    wg__free(posterior->along);
    wg__arena_fini(&posterior->arena);
    wg__free(posterior);
}

enum wg_code wg__board_no_memory(const struct wg_board_work *work, struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM,
                    "out of memory for the posterior of %zu trials on %zu"
                    " configurations",
                    work->rows, work->candidates);
}

/* Room for the results. */
static enum wg_code make_room(struct wg_board_posterior *posterior,
                              const struct wg_board_work *work, size_t channels,
                              struct wg_error *err)
{
    if (posterior->room < work->candidates) {
        for (size_t c = 0; c < WG_BOARD_CHANNELS_MAX; c++) {
            wg__free(posterior->means[c]);
            wg__free(posterior->sds[c]);
            posterior->means[c] = posterior->sds[c] = NULL;
        }
        posterior->room = work->candidates;
    }
    for (size_t c = 0; c < channels; c++) {
        if (!posterior->means[c])
            posterior->means[c] = wg__alloc_zeroed(posterior->room, sizeof(float));
        if (!posterior->sds[c])
            posterior->sds[c] = wg__alloc_zeroed(posterior->room, sizeof(float));
        if (!posterior->means[c] || !posterior->sds[c])
            return wg__board_no_memory(work, err);
    }
    return WG_OK;
}

/* The kernel row of a configuration, made or remembered. */
static enum wg_code kernel_row(struct wg_board_posterior *posterior,
                               const struct wg_board_work *work,
                               const struct wg_residual_kernel *kernel, enum wg_tuning_kind kind,
                               size_t configuration, const float **out, struct wg_error *err)
{
    const size_t freshness = wg__board_pool_freshness(posterior->pool);
    struct wg_board_kernel_row *row = NULL;
    for (size_t i = 0; i < posterior->kernel_count && !row; i++)
        if (posterior->kernels[i].configuration == configuration &&
            posterior->kernels[i].kind == kind)
            row = &posterior->kernels[i];
    if (!row) {
        if (posterior->kernel_count == posterior->kernel_room) {
            const size_t room = posterior->kernel_room ? 2 * posterior->kernel_room : 32;
            struct wg_board_kernel_row *grown =
                wg__realloc_array(posterior->kernels, room, sizeof *grown);
            if (!grown)
                return wg__board_no_memory(work, err);
            posterior->kernels = grown;
            posterior->kernel_room = room;
        }
        row = &posterior->kernels[posterior->kernel_count++];
        *row = (struct wg_board_kernel_row){.configuration = configuration, .kind = kind};
    }
    if (!row->values || row->freshness != freshness) {
        wg__free(row->values);
        row->values = wg__alloc_zeroed(work->candidates, sizeof *row->values);
        if (!row->values)
            return wg__board_no_memory(work, err);
        size_t count = 0;
        const uint32_t *candidates = wg__board_pool_candidates(posterior->pool, &count);
        wg__residual_kernel_row(kernel, wg__board_pool_axes(posterior->pool), configuration,
                                candidates, count, posterior->along, row->values);
        row->freshness = freshness;
    }
    *out = row->values;
    return WG_OK;
}

static const float *curve(const struct wg_board_curves *curves, enum wg_tuning_kind kind)
{
    return kind == WG_TUNING_TIME ? curves->log_t : curves->log_e;
}

/* A = rho^2 K + constant^2 + noise, of one channel, into `out` (leading dimension `ld`). */
static void channel_covariance(const struct wg_board_work *work,
                               const struct wg_board_channel *channel, size_t c, double rho,
                               double *out, size_t ld)
{
    const struct wg_residual_kernel *kernel = &work->kernels[c];
    const size_t from = work->first[c];
    for (size_t i = 0; i < channel->count; i++)
        for (size_t j = 0; j < channel->count; j++) {
            const double k = (double)work->k[from + i][work->at[from + j]];
            const double noise = i == j ? channel->rows[i].sd * channel->rows[i].sd : 0;
            out[i * ld + j] = rho * rho * k + kernel->constant * kernel->constant + noise;
        }
}

static enum wg_code factor(double *matrix, size_t n, size_t ld, struct wg_error *err)
{
    const int info = LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', (int)n, matrix, (int)ld);
    if (info != 0)
        return wg__fail(err, WG_EDATA, "the covariance of %zu trials cannot be factored", n);
    return WG_OK;
}

static enum wg_code factor_channels(struct wg_board_work *work,
                                    const struct wg_board_channel *channels, size_t count,
                                    const double *rho, struct wg_error *err)
{
    for (size_t c = 0; c < count; c++) {
        double *block = work->a + work->first[c] * work->rows + work->first[c];
        channel_covariance(work, &channels[c], c, rho[c], block, work->rows);
        const enum wg_code code =
            channels[c].count == 0 ? WG_OK : factor(block, channels[c].count, work->rows, err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

/* Adds what a channel says of all boards to their log-likelihoods. `left` has a row a trial. */
static enum wg_code judge(struct wg_board_posterior *posterior, const struct wg_board_work *work,
                          size_t reference, const struct wg_board_channel *channel, size_t c,
                          double *left, double *ll, struct wg_error *err)
{
    const size_t boards = work->members, n = channel->count;
    struct wg_board_curves origin;
    struct wg_board_curves here;
    enum wg_code code = wg__board_pool_column(posterior->pool, reference, &origin, err);
    for (size_t i = 0; i < n && code == WG_OK; i++) {
        code = wg__board_pool_column(posterior->pool, channel->rows[i].configuration, &here, err);
        if (code != WG_OK)
            return code;
        const float *at = curve(&here, channel->kind);
        const float *from = curve(&origin, channel->kind);
        for (size_t p = 0; p < boards; p++)
            left[i * boards + p] = channel->rows[i].value - ((double)at[p] - (double)from[p]);
    }
    if (code != WG_OK)
        return code;
    const double *block = work->a + work->first[c] * work->rows + work->first[c];
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (int)n,
                (int)boards, 1, block, (int)work->rows, left, (int)boards);
    for (size_t i = 0; i < n; i++)
        for (size_t p = 0; p < boards; p++)
            ll[p] -= left[i * boards + p] * left[i * boards + p] / 2;
    return WG_OK;
}

/* Steps 1 and 2: log-likelihoods of all boards, then the kept ones. */
static enum wg_code choose(struct wg_board_posterior *posterior, struct wg_board_work *work,
                           size_t reference, const struct wg_board_channel *channels, size_t count,
                           struct wg_error *err)
{
    const size_t boards = work->members;
    double *ll = wg__arena_alloc(&posterior->arena, boards, sizeof *ll);
    double *left = wg__arena_alloc(&posterior->arena, work->rows * boards, sizeof *left);
    struct wg_board_weight *weights = wg__arena_alloc(&posterior->arena, boards, sizeof *weights);
    if (!ll || !left || !weights)
        return wg__board_no_memory(work, err);
    for (size_t c = 0; c < count; c++) {
        if (!wg__board_has(channels[c].kind) || channels[c].count == 0)
            continue;
        const enum wg_code code = judge(posterior, work, reference, &channels[c], c, left, ll, err);
        if (code != WG_OK)
            return code;
    }
    wg__board_weights(ll, boards, posterior->settings.effective, posterior->settings.kept, weights,
                      &work->chosen);
    work->kept = work->chosen.count;
    return WG_OK;
}

/* Step 3: the kept boards. */
static enum wg_code gather(struct wg_board_posterior *posterior, struct wg_board_work *work,
                           size_t reference, struct wg_error *err)
{
    struct wg_board_curves origin;
    enum wg_code code = wg__board_pool_column(posterior->pool, reference, &origin, err);
    assert(work->kept <= WG_BOARD_CURVES_KEPT);
    work->curves = wg__arena_alloc(&posterior->arena, work->kept, sizeof *work->curves);
    if (!work->curves)
        return wg__board_no_memory(work, err);
    for (size_t k = 0; k < work->kept && code == WG_OK; k++) {
        struct wg_board_curves curves;
        const size_t board = work->chosen.members[k];
        const float weight = (float)work->chosen.weights[k];
        code = wg__board_pool_row(posterior->pool, board, &curves, err);
        if (code == WG_OK)
            work->curves[k] =
                (struct wg_board_curve){.values = {curves.log_t, curves.log_e},
                                        .from = {origin.log_t[board], origin.log_e[board]},
                                        .weight = weight,
                                        .root = sqrtf(weight)};
    }
    return code;
}

void wg__board_deviations(const struct wg_board_work *work, size_t q, size_t x, size_t count,
                          size_t step, float *mean, float *deviations)
{
    memset(mean, 0, count * sizeof *mean);
    for (size_t k = 0; k < work->kept; k++) {
        const struct wg_board_curve *kept = &work->curves[k];
        const float *values = kept->values[q] + x;
        float *d = deviations + k * step;
        for (size_t i = 0; i < count; i++) {
            d[i] = values[i] - kept->from[q];
            mean[i] += kept->weight * d[i];
        }
    }
    for (size_t k = 0; k < work->kept; k++) {
        const float root = work->curves[k].root;
        float *d = deviations + k * step;
        for (size_t i = 0; i < count; i++)
            d[i] = root * (d[i] - mean[i]);
    }
}

/* Dx, Dx Dx' and v. */
static enum wg_code at_rows(struct wg_board_posterior *posterior, struct wg_board_work *work,
                            const struct wg_board_channel *channels, size_t count,
                            struct wg_error *err)
{
    float *deviations = wg__arena_alloc(&posterior->arena, work->kept, sizeof *deviations);
    if (!deviations)
        return wg__board_no_memory(work, err);
    for (size_t c = 0; c < count; c++)
        for (size_t i = 0; i < channels[c].count; i++) {
            const size_t row = work->first[c] + i;
            float mean = 0;
            if (wg__board_has(channels[c].kind))
                wg__board_deviations(work, channels[c].kind == WG_TUNING_ENERGY, work->at[row], 1,
                                     1, &mean, deviations);
            else
                memset(deviations, 0, work->kept * sizeof *deviations);
            work->v[row] = channels[c].rows[i].value - (double)mean;
            for (size_t k = 0; k < work->kept; k++)
                work->dx[row * work->kept + k] = (double)deviations[k];
        }
    const int rows = (int)work->rows;
    cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, rows, (int)work->kept, 1, work->dx,
                (int)work->kept, 0, work->outer, rows);
    return WG_OK;
}

/* log N(v; 0, Dx Dx' + A) less the prior of rho. */
static double evidence(const struct wg_board_posterior *posterior, struct wg_board_work *work,
                       const struct wg_board_channel *channels, size_t count, const double *rho)
{
    const size_t n = work->rows;
    double *matrix = work->s; /* free until the Kalman step */
    memcpy(matrix, work->outer, n * n * sizeof *matrix);
    double score = 0;
    for (size_t c = 0; c < count; c++) {
        const size_t from = work->first[c];
        for (size_t i = 0; i < channels[c].count; i++)
            for (size_t j = 0; j <= i; j++) {
                const double k = (double)work->k[from + i][work->at[from + j]];
                const double noise = i == j ? channels[c].rows[i].sd * channels[c].rows[i].sd : 0;
                matrix[(from + i) * n + from + j] +=
                    rho[c] * rho[c] * k + work->kernels[c].constant * work->kernels[c].constant +
                    noise;
            }
        const double z = log(rho[c]) / posterior->settings.rho_sd;
        score -= z * z / 2;
    }
    if (LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', (int)n, matrix, (int)n) != 0)
        return -(double)INFINITY;
    double *white = work->step; /* has room for max(kept, rows) */
    memcpy(white, work->v, n * sizeof *white);
    cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, matrix, (int)n,
                white, 1);
    for (size_t i = 0; i < n; i++)
        score -= white[i] * white[i] / 2 + log(matrix[i * n + i]);
    return score;
}

static bool can_fit(const struct wg_board_posterior *posterior,
                    const struct wg_board_channel *channels, size_t count)
{
    const struct wg_board_axes *axes = wg__board_pool_axes(posterior->pool);
    size_t most = 0;
    for (size_t c = 0; c < count; c++)
        most = channels[c].count > most ? channels[c].count : most;
    return most >= RHO_LEAST_ROWS && axes->moving <= posterior->settings.rho_knobs &&
           !axes->is_training;
}

/* How large the residual is, channel by channel around the last answer. With many knobs the
 * fit would need more trials than a search has, and stops it too soon. */
static void fit_rho(struct wg_board_posterior *posterior, struct wg_board_work *work,
                    const struct wg_board_channel *channels, size_t count)
{
    if (!can_fit(posterior, channels, count)) {
        for (size_t c = 0; c < count; c++)
            posterior->rho[c] = 1;
        return;
    }
    double best = -(double)INFINITY;
    double chosen[WG_BOARD_CHANNELS_MAX];
    memcpy(chosen, posterior->rho, sizeof chosen);
    /* The first two channels together: they trade with each other through the boards. */
    for (size_t i = 0; i < RHO_COUNT; i++)
        for (size_t j = 0; j < RHO_COUNT; j++) {
            if (i > j + RHO_APART || j > i + RHO_APART || (count < 2 && j > 0))
                continue;
            double rho[WG_BOARD_CHANNELS_MAX];
            memcpy(rho, posterior->rho, sizeof rho);
            rho[0] = rhos[i];
            rho[1] = rhos[j];
            const double score = evidence(posterior, work, channels, count, rho);
            if (score > best) {
                best = score;
                memcpy(chosen, rho, sizeof chosen);
            }
        }
    for (size_t c = 2; c < count; c++)
        for (size_t i = 0; i < RHO_COUNT; i++) {
            double rho[WG_BOARD_CHANNELS_MAX];
            memcpy(rho, chosen, sizeof rho);
            rho[c] = rhos[i];
            const double score = evidence(posterior, work, channels, count, rho);
            if (score > best) {
                best = score;
                chosen[c] = rhos[i];
            }
        }
    memcpy(posterior->rho, chosen, sizeof chosen);
}

/* What no board resembles: while twice the residual of some channel makes the trials so much
 * likelier that chance is out of the question, it is twice as large. Else a mean would be drawn
 * between two figures that were plainly measured apart. */
static void widen(struct wg_board_posterior *posterior, struct wg_board_work *work,
                  const struct wg_board_channel *channels, size_t count)
{
    double *rho = posterior->rho;
    double score = evidence(posterior, work, channels, count, rho);
    for (;;) {
        size_t widest = count;
        double best = score + posterior->settings.widen_at;
        for (size_t c = 0; c < count; c++) {
            rho[c] *= 2;
            const double wider = evidence(posterior, work, channels, count, rho);
            rho[c] /= 2;
            if (wider > best && rho[c] < rho_most) {
                best = wider;
                widest = c;
            }
        }
        if (widest == count)
            return;
        rho[widest] *= 2;
        score = best;
    }
}

/* Step 4: S, and the step that the boards take. */
static enum wg_code kalman(struct wg_board_work *work, const struct wg_board_channel *channels,
                           size_t count, const double *rho, struct wg_error *err)
{
    const size_t n = work->rows;
    const double left = fmax(1 - work->chosen.beta, least_left);
    memcpy(work->s, work->outer, n * n * sizeof *work->s);
    for (size_t c = 0; c < count; c++) {
        const size_t from = work->first[c];
        double *block = work->a + from * n + from;
        channel_covariance(work, &channels[c], c, rho[c], block, n);
        for (size_t i = 0; i < channels[c].count; i++)
            for (size_t j = 0; j <= i; j++)
                work->s[(from + i) * n + from + j] += block[i * n + j] / left;
        const enum wg_code code =
            channels[c].count == 0 ? WG_OK : factor(block, channels[c].count, n, err);
        if (code != WG_OK)
            return code;
    }
    enum wg_code code = factor(work->s, n, n, err);
    if (code != WG_OK)
        return code;
    double *white = work->outer; /* no longer needed */
    memcpy(white, work->v, n * sizeof *white);
    LAPACKE_dpotrs(LAPACK_ROW_MAJOR, 'L', (int)n, 1, work->s, (int)n, white, 1);
    memset(work->step, 0, work->kept * sizeof *work->step);
    cblas_dgemv(CblasRowMajor, CblasTrans, (int)n, (int)work->kept, 1, work->dx, (int)work->kept,
                white, 1, 0, work->step, 1);
    return WG_OK;
}

static bool make_matrices(struct wg_arena *arena, struct wg_board_work *work, size_t most)
{
    const size_t rows = work->rows;
    work->at = wg__arena_alloc(arena, rows, sizeof *work->at);
    work->k = wg__arena_alloc(arena, rows, sizeof *work->k);
    work->a = wg__arena_alloc(arena, rows * rows, sizeof *work->a);
    work->s = wg__arena_alloc(arena, rows * rows, sizeof *work->s);
    work->outer = wg__arena_alloc(arena, rows * rows, sizeof *work->outer);
    work->dx = wg__arena_alloc(arena, rows * most, sizeof *work->dx);
    work->v = wg__arena_alloc(arena, rows, sizeof *work->v);
    work->step = wg__arena_alloc(arena, rows > most ? rows : most, sizeof *work->step);
    work->chosen.members = wg__arena_alloc(arena, most, sizeof *work->chosen.members);
    work->chosen.weights = wg__arena_alloc(arena, most, sizeof *work->chosen.weights);
    return work->at && work->k && work->a && work->s && work->outer && work->dx && work->v &&
           work->step && work->chosen.members && work->chosen.weights;
}

static enum wg_code prepare(struct wg_board_posterior *posterior, struct wg_board_work *work,
                            const struct wg_board_channel *channels, size_t count,
                            struct wg_error *err)
{
    for (size_t c = 0; c < count; c++) {
        work->kernels[c] = wg__residual_kernel_of(channels[c].kind);
        work->first[c + 1] = work->first[c] + channels[c].count;
    }
    work->rows = work->first[count];
    work->members = wg__board_pool_count(posterior->pool);
    (void)wg__board_pool_candidates(posterior->pool, &work->candidates);
    if (!make_matrices(&posterior->arena, work, posterior->settings.kept))
        return wg__board_no_memory(work, err);
    for (size_t c = 0; c < count; c++)
        for (size_t i = 0; i < channels[c].count; i++) {
            const size_t row = work->first[c] + i;
            const size_t configuration = channels[c].rows[i].configuration;
            work->at[row] = wg__board_pool_candidate(posterior->pool, configuration);
            const enum wg_code code =
                kernel_row(posterior, work, &work->kernels[c], channels[c].kind, configuration,
                           &work->k[row], err);
            if (code != WG_OK)
                return code;
        }
    return WG_OK;
}

enum wg_code wg__board_posterior_update(struct wg_board_posterior *posterior, size_t reference,
                                        const struct wg_board_channel *channels, size_t count,
                                        struct wg_error *err)
{
    struct wg_board_work work = {.rows = 0};
    wg__arena_reset(&posterior->arena);
    enum wg_code code = prepare(posterior, &work, channels, count, err);
    if (code == WG_OK)
        code = make_room(posterior, &work, count, err);
    if (code == WG_OK)
        code = factor_channels(&work, channels, count, posterior->rho, err);
    if (code == WG_OK)
        code = choose(posterior, &work, reference, channels, count, err);
    if (code == WG_OK)
        code = gather(posterior, &work, reference, err);
    if (code == WG_OK)
        code = at_rows(posterior, &work, channels, count, err);
    if (code != WG_OK)
        return code;
    fit_rho(posterior, &work, channels, count);
    widen(posterior, &work, channels, count);
    code = kalman(&work, channels, count, posterior->rho, err);
    return code == WG_OK ? wg__board_spread(posterior, &work, channels, count, err) : code;
}

const float *wg__board_posterior_mean(const struct wg_board_posterior *posterior, size_t channel)
{
    return posterior->means[channel];
}

const float *wg__board_posterior_sd(const struct wg_board_posterior *posterior, size_t channel)
{
    return posterior->sds[channel];
}
