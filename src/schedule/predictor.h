/* SPDX-License-Identifier: MIT
 *
 * How long a batch takes: predicted from few samples, corrected while it runs, and with a bound
 * that is right as often as it says.
 *
 * `WG_PREDICTOR_PHYSICAL`: non-negative least squares on features that are times up to a factor,
 *
 *     t = theta . [1, ops / f, bytes / m, ops_ft / f, bytes_ft / m, b]        theta >= 0
 *
 * with ops and bytes of the inference batch, those of the fine-tuning step beside it (0 when there
 * is none), and relative clocks f (GPU) and m (memory): bytes over bandwidth is a time, arithmetic
 * intensity is not. One fit holds at all clocks. Each batch that ends is told; older ones are
 * forgotten by a factor a batch, towards the first fit and not towards nothing, so that clocks
 * which are not seen for an hour are not forgotten. What the line over batches can't show (steps of
 * whole waves) is kept as a correction a batch size.
 *
 * The bound is split-conformal: the margin q is the ceil((n + 1)(1 - miss))-th smallest of the last
 * n <= window relative residuals, each taken before its batch was learned from, so
 * P(time <= predicted (1 + q)) >= 1 - miss as long as batches are exchangeable.
 *
 * `WG_PREDICTOR_POLYTHROTTLE`: the paper's (PolyThrottle, section 6), for comparison:
 *
 *     t = theta . [1, ops, ops / bytes, ops_ft, ops_ft / bytes_ft, b]         theta >= 0
 *
 * fitted once, at one clock; telling it changes nothing, and its bound is its prediction.
 *
 * Pure.    Owns: its state.    Threads: one at a time.
 */
#ifndef WG_SCHEDULE_PREDICTOR_H
#define WG_SCHEDULE_PREDICTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct wg_predictor;

enum wg_predictor_kind { WG_PREDICTOR_PHYSICAL, WG_PREDICTOR_POLYTHROTTLE };

/* What `b` rows take: operations = fixed + per_row * b, in any unit; bytes likewise. Both zero: not
 * known. The physical predictor then fits what is fixed and what comes with the rows apart, at
 * every clock; otherwise, and for fine-tuning, operations are taken to be those of the rows and
 * bytes those of the weights. */
struct wg_work_shape {
    double operations_fixed, operations_per_row;
    double bytes_fixed, bytes_per_row;
};

struct wg_predictor_setup {
    enum wg_predictor_kind kind;
    struct wg_work_shape inference;
    struct wg_work_shape finetune;
    double forgetting; /* a batch; 0: 0.98 */
    double miss;       /* share of batches that may exceed the bound; 0: 0.02 */
    size_t window;     /* residuals; 0: 200 */
    double margin;     /* before there are enough residuals; 0: 0.1 */
};

struct wg_predictor_point {
    double rows;
    double gpu_clock, mem_clock; /* relative to the highest, in (0, 1] */
    double finetune_rows;        /* of a step beside it; 0: none */
};

struct wg_predictor_sample {
    struct wg_predictor_point point;
    double time_s;
};

/* WG_EINVAL: a field of the setup or a sample that cannot be, named (clocks from 0.001, rows to
 * 1e6, times from 1e-9 to 1e9 s); no sample. WG_ENOMEM. */
enum wg_code wg__predictor_open(struct wg_predictor **out, const struct wg_predictor_setup *setup,
                                const struct wg_predictor_sample *samples, size_t count,
                                struct wg_error *err);
void wg__predictor_close(struct wg_predictor *predictor);

/* Seconds, 1e-9 at least, finite; never falls with `rows`, other fields equal. */
double wg__predictor_time(const struct wg_predictor *predictor,
                          const struct wg_predictor_point *point);

/* Relative margin of the bound, >= 0: bound = time * (1 + margin). */
double wg__predictor_margin(const struct wg_predictor *predictor);

/* A batch ended. What could not be a sample of the first fit is not learned from. Allocates
 * nothing.
 */
void wg__predictor_tell(struct wg_predictor *predictor, const struct wg_predictor_sample *sample);

/* How many were learned from; changes whenever predictions may have: for caches. */
size_t wg__predictor_version(const struct wg_predictor *predictor);

#endif
