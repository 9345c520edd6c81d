/* SPDX-License-Identifier: MIT
 *
 * Measures over predictions; what each means is in the header.
 *
 * Threads: pure, any thread.
 */
#include "wave/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "math/statistics.h"
#include "wave/step.h"

static const double STEP_RISE = 0.08, STEP_RISE_PREDICTED = 0.07, CLIFF_RISE = 0.10;
static const double WINDOW = 1.25;
enum { ROWS_FIRST = 64, CLIFF_EVERY = 64, TAIL_LEAST = 30 };
static const unsigned multiples[] = {64, 128, 256, 512};
enum { MULTIPLES = sizeof multiples / sizeof *multiples };

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_curves(const struct wg_measured *a, const struct wg_measured *b)
{
    int order = a->is_conv - b->is_conv;
    if (order == 0)
        order = (int)a->gemm.dtype - (int)b->gemm.dtype;
    if (order == 0)
        order = strcmp(a->op != NULL ? a->op : "", b->op != NULL ? b->op : "");
    if (order == 0)
        order = compare_numbers(a->gemm.batch, b->gemm.batch);
    if (order == 0)
        order = compare_numbers(a->gemm.n, b->gemm.n);
    return order == 0 ? compare_numbers(a->gemm.k, b->gemm.k) : order;
}

static int compare_rows(const void *first, const void *second)
{
    const struct wg_measured *a = ((const struct wg_evaluated *)first)->row;
    const struct wg_measured *b = ((const struct wg_evaluated *)second)->row;
    int order = compare_curves(a, b);
    if (order == 0)
        order = compare_numbers(a->gemm.m, b->gemm.m);
    return order == 0 ? (a > b) - (a < b) : order;
}

/* Convolutions have no curve over m: their m is of several sizes. */
static bool is_on_curve(const struct wg_evaluated *first, const struct wg_evaluated *second)
{
    return !first->row->is_conv && compare_curves(first->row, second->row) == 0 &&
           first->row->gemm.m < second->row->gemm.m;
}

/* A value with what it is ranked against. */
struct pair {
    double by, value;
};

static int compare_pairs(const void *first, const void *second)
{
    const struct pair *a = first, *b = second;
    return (a->by > b->by) - (a->by < b->by);
}

/* Replaces `by` with its rank, equal ones sharing the mean, and returns in that order. */
static void rank(struct pair *pairs, size_t count)
{
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && !(pairs[end].by > pairs[i].by); end++) {
        }
        double shared = ((double)i + (double)end - 1.0) / 2.0;
        for (size_t j = i; j < end; j++)
            pairs[j].by = shared;
    }
}

/* The chance that a pair of value 1 has a larger `by` than one of value 0. */
static double area_under_curve(struct pair *pairs, size_t count)
{
    double ranks = 0.0, ones = 0.0;
    rank(pairs, count);
    for (size_t i = 0; i < count; i++) {
        ranks += pairs[i].value * pairs[i].by;
        ones += pairs[i].value;
    }
    double zeros = (double)count - ones;
    if (!(ones > 0.0 && zeros > 0.0))
        return NAN;
    return (ranks - ones * (ones - 1.0) / 2.0) / (ones * zeros);
}

static double spearman(struct pair *pairs, size_t count)
{
    double middle = ((double)count - 1.0) / 2.0, xy = 0.0, xx = 0.0, yy = 0.0;
    rank(pairs, count);
    for (size_t i = 0; i < count; i++)
        pairs[i] = (struct pair){pairs[i].value, pairs[i].by};
    rank(pairs, count);
    for (size_t i = 0; i < count; i++) {
        double x = pairs[i].by - middle, y = pairs[i].value - middle;
        xy += x * y;
        xx += x * x;
        yy += y * y;
    }
    return xx > 0.0 && yy > 0.0 ? xy / sqrt(xx * yy) : (double)NAN;
}

static void measure_errors(struct wg_evaluation *out, const struct wg_evaluated *rows, size_t count,
                           double *scratch)
{
    double roofline = 0.0, covered = 0.0, ranged = 0.0;
    for (size_t i = 0; i < count; i++) {
        double time_s = rows[i].row->time_s;
        scratch[i] = fabs(rows[i].predicted_s / time_s - 1.0);
        roofline += fabs(rows[i].roofline_s / time_s - 1.0);
        out->recalled += rows[i].is_recalled;
        if (isnan(rows[i].low_s) || isnan(rows[i].high_s))
            continue;
        ranged += 1.0;
        covered += time_s >= rows[i].low_s && time_s <= rows[i].high_s;
    }
    out->mape = wg__mean(scratch, count);
    out->roofline_mape = roofline / (double)count;
    out->coverage = ranged > 0.0 ? covered / ranged : (double)NAN;
    out->median_ape = wg__quantile_inplace(scratch, count, 0.5);
}

/* A rise that may be a step. */
struct rise {
    double predicted;
    bool is_step;
    enum wg_dtype dtype;
    unsigned fold;
};

static size_t find_rises(const struct wg_evaluated *rows, size_t count, struct rise *rises)
{
    size_t found = 0;
    for (size_t i = 1; i < count; i++) {
        if (!is_on_curve(&rows[i - 1], &rows[i]) ||
            !wg__may_step(rows[i - 1].row->gemm.m, rows[i].row->gemm.m))
            continue;
        rises[found++] = (struct rise){
            .predicted = rows[i].predicted_s / rows[i - 1].predicted_s - 1.0,
            .is_step = rows[i].row->time_s > (1.0 + STEP_RISE) * rows[i - 1].row->time_s,
            .dtype = rows[i].row->gemm.dtype,
            .fold = rows[i].fold,
        };
    }
    return found;
}

/* Above which a rise of this fold is told as a step: what other folds exceed as often as they have
 * steps. */
static double told_rise(const struct rise *rises, size_t count, enum wg_dtype dtype, unsigned fold,
                        double *scratch)
{
    size_t kept = 0, steps = 0;
    for (size_t i = 0; fold > 0 && i < count; i++) {
        if (rises[i].dtype != dtype || rises[i].fold == fold)
            continue;
        scratch[kept++] = rises[i].predicted;
        steps += rises[i].is_step;
    }
    if (steps == 0 || steps == kept)
        return STEP_RISE_PREDICTED;
    wg__sort(scratch, kept);
    return fmax(scratch[kept - steps - 1], 0.0);
}

static void measure_steps(struct wg_evaluation *out, const struct wg_evaluated *rows, size_t count,
                          struct rise *rises, double *scratch)
{
    double told_at[WG_DTYPE_COUNT][WG_FOLDS_MAX + 1] = {{0.0}}; /* + 1, so that 0: not known yet */
    size_t told = 0, both = 0;
    const size_t places = find_rises(rows, count, rises);
    for (size_t i = 0; i < places; i++) {
        double *at = &told_at[rises[i].dtype][rises[i].fold];
        if (!(*at > 0.0))
            *at = 1.0 + told_rise(rises, places, rises[i].dtype, rises[i].fold, scratch);
        bool is_told = 1.0 + rises[i].predicted > *at;
        out->steps += rises[i].is_step;
        out->told_rise += (*at - 1.0) / (double)places;
        told += is_told;
        both += rises[i].is_step && is_told;
    }
    if (places == 0)
        out->told_rise = (double)NAN;
    out->step_recall = out->steps > 0 ? (double)both / (double)out->steps : (double)NAN;
    out->step_precision = told > 0 ? (double)both / (double)told : (double)NAN;
}

static void measure_cliffs(struct wg_evaluation *out, const struct wg_evaluated *rows, size_t count,
                           struct pair *pairs)
{
    size_t places = 0;
    for (size_t i = 1; i < count; i++) {
        uint64_t before = rows[i - 1].row->gemm.m;
        if (!is_on_curve(&rows[i - 1], &rows[i]) || before % CLIFF_EVERY != 0 ||
            rows[i].row->gemm.m != before + 1)
            continue;
        bool is_cliff = rows[i].row->time_s >= (1.0 + CLIFF_RISE) * rows[i - 1].row->time_s;
        out->cliffs += is_cliff;
        pairs[places++] = (struct pair){rows[i].predicted_s / rows[i - 1].predicted_s, is_cliff};
    }
    out->cliff_places = places;
    out->cliff_auc = area_under_curve(pairs, places);
}

static void measure_tail(struct wg_evaluation *out, const struct wg_evaluated *rows, size_t count,
                         struct pair *pairs)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i].waves > 1.0)
            pairs[kept++] = (struct pair){1.0 - rows[i].full_s / rows[i].predicted_s,
                                          1.0 - rows[i].full_s / rows[i].row->time_s};
    out->spearman_tail = kept >= TAIL_LEAST ? spearman(pairs, kept) : (double)NAN;
}

static double throughput(const struct wg_evaluated *row)
{
    return (double)row->row->gemm.m / row->row->time_s;
}

/* One window, rows[0] .. rows[count - 1]; adds to sums. */
static void advise(const struct wg_evaluated *rows, size_t count, double *advised,
                   double by_multiple[static MULTIPLES])
{
    double best = 0.0, best_predicted = 0.0, chosen = 0.0;
    for (size_t i = 0; i < count; i++) {
        double predicted = (double)rows[i].row->gemm.m / rows[i].predicted_s;
        best = fmax(best, throughput(&rows[i]));
        if (predicted > best_predicted) {
            best_predicted = predicted;
            chosen = throughput(&rows[i]);
        }
    }
    *advised += chosen / best;
    for (size_t q = 0; q < MULTIPLES; q++) {
        size_t at = count - 1;
        for (size_t i = 0; i < count; i++)
            if (rows[i].row->gemm.m % multiples[q] == 0)
                at = i;
        by_multiple[q] += throughput(&rows[at]) / best;
    }
}

static void measure_advice(struct wg_evaluation *out, const struct wg_evaluated *rows, size_t count)
{
    double advised = 0.0, by_multiple[MULTIPLES] = {0.0};
    for (size_t i = 0; i < count; i++) {
        if (rows[i].row->gemm.m < ROWS_FIRST)
            continue;
        size_t end = i + 1;
        while (end < count && is_on_curve(&rows[end - 1], &rows[end]) &&
               (double)rows[end].row->gemm.m <= WINDOW * (double)rows[i].row->gemm.m)
            end++;
        if (end - i < 2)
            continue;
        advise(rows + i, end - i, &advised, by_multiple);
        out->windows++;
    }
    out->share_of_best = out->best_fixed_multiple = (double)NAN;
    if (out->windows == 0)
        return;
    out->share_of_best = advised / (double)out->windows;
    out->best_fixed_multiple = 0.0;
    for (size_t q = 0; q < MULTIPLES; q++)
        if (by_multiple[q] / (double)out->windows > out->best_fixed_multiple) {
            out->best_fixed_multiple = by_multiple[q] / (double)out->windows;
            out->fixed_multiple = multiples[q];
        }
}

enum wg_code wg__evaluate(struct wg_evaluation *out, struct wg_evaluated *rows, size_t count,
                          struct wg_error *err)
{
    struct pair *pairs = wg__realloc_array(NULL, count > 0 ? count : 1, sizeof *pairs);
    double *scratch = wg__realloc_array(NULL, count > 0 ? count : 1, sizeof *scratch);
    struct rise *rises = wg__realloc_array(NULL, count > 0 ? count : 1, sizeof *rises);
    if (pairs == NULL || scratch == NULL || rises == NULL || count == 0) {
        wg__free(pairs);
        wg__free(scratch);
        wg__free(rises);
        return count == 0 ? wg__fail(err, WG_EDATA, "no measurements to evaluate")
                          : wg__fail(err, WG_ENOMEM, "out of memory for %zu measurements", count);
    }
    qsort(rows, count, sizeof *rows, compare_rows);
    *out = (struct wg_evaluation){.rows = count};
    measure_errors(out, rows, count, scratch);
    measure_steps(out, rows, count, rises, scratch);
    measure_cliffs(out, rows, count, pairs);
    measure_tail(out, rows, count, pairs);
    measure_advice(out, rows, count);
    wg__free(pairs);
    wg__free(scratch);
    wg__free(rises);
    return WG_OK;
}
