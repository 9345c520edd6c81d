/* SPDX-License-Identifier: MIT
 *
 * What a network's layers cost on one GPU, how much of it is tail, and the totals.
 *
 * Idle SMs: while the last wave runs, the SMs without a block wait. A tail of t seconds is what
 * full waves would not have cost, so SMs x t SM-seconds were idle. Their energy lies between two
 * bounds: at least the board's idle power (nothing of it is switched off meanwhile) and at most its
 * power limit, times t.
 *
 * A launch of which a profile tells only grid and time (no sizes) is not predicted. Its waves are
 * blocks over SMs, and its tail is the share of the last one that is empty, of the measured time:
 * the rule that came nearest to measured losses (rank correlation 0.91, 3.8 points mean error on
 * 3,476 GEMMs; Nsight Compute's rule: 0.19 and 26).
 *
 * Totals add the layers up as if they ran one after the other, and their ranges as if all were
 * wrong in the same direction: the parameters are shared, so that is nearer the truth than chance.
 *
 * Owns: rows and points; the network and the GPU must outlive it.    Threads: pure, one at a time.
 */
#ifndef WG_CLI_WAVE_ANALYSIS_H
#define WG_CLI_WAVE_ANALYSIS_H

#include "wave/batches.h"
#include "wave/kernel_model.h"
#include "wave/network.h"

struct wg_wave_row {
    const struct wg_layer *layer;
    bool has_gemm;
    struct wg_gemm gemm;
    bool is_predicted; /* else sizes are not known, or nothing of such a type: times are NAN */
    struct wg_prediction prediction;
    double waste;           /* tail / time, predicted or else measured; NAN: not known */
    double stream_k_s;      /* that Stream-K would save; NAN: not known */
    double measured_s;      /* NAN: not measured */
    double measured_tail_s; /* of a launch that is not predicted; NAN: not known */
};

struct wg_wave_total {
    double time_s, low_s, high_s, tail_s;
    double waste; /* tail_s / time_s */
    double idle_sm_s;
    double idle_least_j, idle_most_j; /* NAN: the GPU's power is not known */
    double stream_k_s;                /* of the layers where it is known */
    double flops;
    double measured_s;                  /* of all measured layers; NAN: none */
    double compared_s;                  /* of those of them that are predicted, too */
    double compared_predicted_s;        /* and what is predicted for these */
    double launched_s, launched_tail_s; /* measured, of launches that are not predicted */
    size_t predicted, unpredicted;      /* layers */
    double origin_s[WG_ORIGIN_COUNT];
    double bound_s[WG_BOUND_COUNT];
};

struct wg_wave_analysis {
    const struct wg_gpu_spec *gpu;
    const struct wg_network *network;
    struct wg_wave_row *rows; /* in execution order */
    size_t count;
    struct wg_wave_total total;
    uint64_t samples;              /* batch of the network; 0: not known, and no points */
    struct wg_batch_point *points; /* at batches that rise by 1 */
    size_t point_count;
};

/* WG_EUNSUPPORTED: nothing that multiplies can be predicted (the message says of what type);
 * WG_EDATA: no layers; WG_ENOMEM. */
enum wg_code wg__wave_analyze(struct wg_wave_analysis *out, const struct wg_kernel_model *model,
                              const struct wg_gpu_spec *gpu, const struct wg_network *network,
                              struct wg_error *err);
/* Adds times at batches `first` .. `most`. */
enum wg_code wg__wave_analyze_batches(struct wg_wave_analysis *analysis,
                                      const struct wg_kernel_model *model, uint64_t samples,
                                      uint32_t first, uint32_t most, struct wg_error *err);
void wg__wave_analysis_fini(struct wg_wave_analysis *analysis);

/* Layers that are alike: of one operator, product and time. */
struct wg_wave_kind {
    size_t row; /* the first of them */
    size_t count;
};

/* The kinds, by the tails of all their layers together (predicted or else measured), the longest
 * first; `out` has room for a kind each row. Returns how many there are. */
size_t wg__wave_kinds(const struct wg_wave_analysis *analysis, struct wg_wave_kind *out);

#endif
