/* SPDX-License-Identifier: MIT
 *
 * Batch sizes that fill whole waves: the maxima of throughput, and what the next one costs.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_BATCHES_H
#define WG_WAVE_BATCHES_H

#include <stddef.h>
#include <stdint.h>

#include "wave/kernel_model.h"
#include "wave/network.h"

struct wg_batch_point {
    uint32_t batch;
    double time_s;
    double per_s;     /* samples */
    double next_s;    /* time that one more sample adds; NAN at the last */
    int is_best;      /* a local maximum of throughput, and above all smaller ones */
    uint32_t free_to; /* the largest batch at no more than 1 % more time */
};

/* Times of the whole network, whose dimensions are given at `samples`, at batches `first` .. first
 * + count - 1; `points` holds `count`, and what is best is so among these. WG_EINVAL: samples,
 * first or count is 0, or a batch beyond 2^32; errors of a layer's prediction. No allocation;
 * layers that are alike are predicted once. */
enum wg_code wg__batches(const struct wg_kernel_model *model, const struct wg_network *network,
                         uint32_t samples, uint32_t first, uint32_t count,
                         struct wg_batch_point *points, struct wg_error *err);

/* From times alone: fills all but batch and time_s, which stand in rising order of batch. */
void wg__batches_judge(struct wg_batch_point *points, size_t count);

#endif
