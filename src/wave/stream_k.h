/* SPDX-License-Identifier: MIT
 *
 * What Stream-K would save: thread blocks that share tiles, so that the last wave is full.
 *
 * Instead of whole tiles, each block gets an equal share of all multiply-accumulate iterations of
 * the last wave (or of the last full wave and the rest together); blocks that meet in a tile add
 * up what they have. Osama et al., "Stream-K", PPoPP 2023. The costs of meeting are those that
 * CUTLASS counts with, in iterations: 2 a wave, 2 a peer, and 2 % of the iterations for each peer
 * of a tile that is not split evenly. It is not used where waves are at least 92 % full, nor with
 * fewer than 2 iterations a block.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_STREAM_K_H
#define WG_WAVE_STREAM_K_H

#include <stdint.h>

struct wg_stream_k {
    uint64_t blocks; /* that share tiles; 0: whole tiles are as good */
    double saved;    /* of the time of whole tiles, in [0, 1) */
};

/* `tiles` of `iterations` each on `sms`, one block on each at a time. */
void wg__stream_k(uint64_t tiles, uint64_t iterations, unsigned sms, struct wg_stream_k *out);

#endif
