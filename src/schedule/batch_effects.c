/* SPDX-License-Identifier: MIT
 *
 * Random effects of batch sizes, and the two rising curves that they become.
 *
 * Owns: nothing.    Threads: one at a time.
 */
#include "schedule/batch_effects.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

void wg__batch_effects_init(struct wg_batch_effects *effects)
{
    effects->count = 0;
    memset(effects->upto, 0, sizeof effects->upto);
}

/* 1 .. 64 as they are, then up to the next of 16 steps an octave; 0: none. */
static size_t place_of(double rows)
{
    enum { EACH = 64, STEPS = 16 };
    if (!(rows > 0.0 && rows <= (double)WG_EFFECT_ROWS_MAX))
        return 0;
    const size_t whole = rows < 1.0 ? 1 : (size_t)(rows + 0.5);
    size_t step = 1;
    for (size_t end = EACH; end < whole; end *= 2)
        step = end / STEPS;
    return (whole + step - 1) / step * step;
}

struct wg_effect *wg__batch_effects_find(struct wg_batch_effects *effects, double rows)
{
    const size_t place = place_of(rows);
    if (place == 0)
        return NULL;
    const size_t index = effects->upto[place];
    if (index > 0 && effects->sizes[index - 1].rows == (double)place)
        return &effects->sizes[index - 1];
    struct wg_effect *size = &effects->sizes[index];
    memmove(size + 1, size, (effects->count - index) * sizeof *size);
    *size = (struct wg_effect){.rows = (double)place};
    effects->count++;
    for (size_t i = place; i <= WG_EFFECT_ROWS_MAX; i++)
        effects->upto[i]++;
    return size;
}

void wg__batch_effects_scale(struct wg_batch_effects *effects, double factor)
{
    const double nothing = 1e-100; /* before numbers become too small to be fast */
    for (size_t i = 0; i < effects->count; i++) {
        struct wg_effect *size = &effects->sizes[i];
        const double by = size->weight * factor > nothing ? factor : 0.0;
        size->weight *= by;
        size->target_sum *= by;
        for (size_t k = 0; k < WG_NNLS_MAX; k++)
            size->row_sum[k] *= by;
    }
}

/* sums -= v v' / (w + k) of one size, two rows at a time and no further than the diagonal. Rows end
 * with zeros, so lengths are fixed and the compiler can use vectors. */
static inline void take_out(double sums[][WG_NNLS_MAX], const double *row, double share)
{
    for (size_t r = 0; r < WG_NNLS_MAX; r += 2) {
        const double upper = row[r] * share;
        const double lower = row[r + 1] * share;
        for (size_t c = 0; c < r + 2; c++) {
            sums[r][c] -= upper * row[c];
            sums[r + 1][c] -= lower * row[c];
        }
    }
}

void wg__batch_effects_reduce(const struct wg_batch_effects *effects, double shrink,
                              struct wg_nnls *equations)
{
    const double nothing = 1e-9;
    for (size_t i = 0; i < effects->count; i++) {
        const struct wg_effect *size = &effects->sizes[i];
        if (!(size->weight > nothing * shrink))
            continue;
        const double share = 1.0 / (size->weight + shrink);
        const double effect = (size->target_sum + shrink * size->first) * share;
        take_out(equations->gram, size->row_sum, share);
        for (size_t r = 0; r < WG_NNLS_MAX; r++)
            equations->moment[r] -= size->row_sum[r] * effect;
    }
    for (size_t r = 0; r < WG_NNLS_MAX; r++) {
        for (size_t c = 0; c < r; c++)
            equations->gram[c][r] = equations->gram[r][c];
    }
}

void wg__batch_effects_solve(struct wg_batch_effects *effects, double shrink, const double *x)
{
    const double least = -0.99; /* no batch takes no time */
    for (size_t i = 0; i < effects->count; i++) {
        struct wg_effect *size = &effects->sizes[i];
        double explained = 0.0;
        for (size_t k = 0; k < WG_NNLS_MAX; k++)
            explained += size->row_sum[k] * x[k];
        const double rest = size->target_sum + shrink * size->first - explained;
        const double effect = rest / (size->weight + shrink);
        size->effect = effect > least ? effect : least;
    }
}

/* Least squares among curves that never fall: neighbours that fall become their weighted mean. */
static void pool(double *values, double *weights, size_t count)
{
    size_t lengths[WG_EFFECT_SIZES_MAX];
    size_t blocks = 0;
    for (size_t i = 0; i < count; i++) {
        double value = values[i];
        double weight = weights[i];
        size_t length = 1;
        while (blocks > 0 && values[blocks - 1] > value) {
            blocks--;
            const double sum = weights[blocks] + weight;
            value += (values[blocks] - value) * (weights[blocks] / sum);
            weight = sum;
            length += lengths[blocks];
        }
        values[blocks] = value;
        weights[blocks] = weight;
        lengths[blocks++] = length;
    }
    for (size_t i = count; i > 0;) {
        blocks--;
        const double value = values[blocks];
        for (size_t k = lengths[blocks]; k > 0; k--)
            values[--i] = value;
    }
}

void wg__batch_effects_shape(struct wg_batch_effects *effects, double shrink, double fixed,
                             double per_row)
{
    const double most = 1e12; /* a row that costs next to nothing can't make up for anything */
    double times[WG_EFFECT_SIZES_MAX];
    double weights[WG_EFFECT_SIZES_MAX];
    for (size_t i = 0; i < effects->count; i++) {
        const struct wg_effect *size = &effects->sizes[i];
        times[i] = (fixed + per_row * size->rows) * (1.0 + size->effect);
        weights[i] = size->weight + shrink;
    }
    pool(times, weights, effects->count);
    const bool by_rows = per_row * most > fixed;
    const double rows_a_second = by_rows ? 1.0 / per_row : 0.0;
    for (size_t i = 0; i < effects->count; i++) {
        effects->alpha[i] = 1.0;
        effects->rows[i] = effects->sizes[i].rows;
        if (by_rows) {
            effects->alpha[i] = times[i] < fixed ? times[i] / fixed : 1.0;
            effects->rows[i] = times[i] > fixed ? (times[i] - fixed) * rows_a_second : 0.0;
        } else if (fixed > 0.0) {
            effects->alpha[i] = times[i] / fixed;
        }
    }
}

void wg__batch_effects_at(const struct wg_batch_effects *effects, double rows, double *alpha_out,
                          double *rows_out)
{
    const size_t count = effects->count;
    if (count == 0) {
        *alpha_out = 1.0;
        *rows_out = rows;
        return;
    }
    const size_t above = rows < (double)WG_EFFECT_ROWS_MAX ? effects->upto[(size_t)rows] : count;
    if (above == 0 || above == count) { /* off by as much as the size at that end */
        const size_t end = above == 0 ? 0 : count - 1;
        const double shifted = effects->rows[end] + (rows - effects->sizes[end].rows);
        /* Below the first size by no more than its share, or a row or two would cost nothing. */
        const double scaled = effects->rows[0] * (rows / effects->sizes[0].rows);
        *alpha_out = effects->alpha[end];
        *rows_out = above == 0 && shifted < scaled ? scaled : fmax(shifted, 0.0);
        return;
    }
    const size_t below = above - 1;
    const double share = (rows - effects->sizes[below].rows) /
                         (effects->sizes[above].rows - effects->sizes[below].rows);
    *alpha_out = effects->alpha[below] + share * (effects->alpha[above] - effects->alpha[below]);
    *rows_out = effects->rows[below] + share * (effects->rows[above] - effects->rows[below]);
}
