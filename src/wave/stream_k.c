/* SPDX-License-Identifier: MIT
 *
 * What Stream-K would save; see stream_k.h.
 */
#include "wave/stream_k.h"

#include <math.h>

static const double FULL_ENOUGH = 0.92;
static const double WAVE_COST = 2, PEER_COST = 2; /* iterations */
static const double UNEVEN_COST = 0.02;           /* of the iterations, a peer */
enum { LEAST_ITERATIONS = 2 };

static double ceil_ratio(double a, double b)
{
    return ceil(a / b);
}

/* Iterations that a wave lasts in which `blocks` share `tiles`. */
static double wave_iterations(double tiles, double iterations, double blocks)
{
    const double each = ceil_ratio(tiles * iterations, blocks);
    double peers = ceil_ratio(blocks, tiles) + 1; /* ends of shares lie within tiles */
    double uneven = UNEVEN_COST * peers * each;
    if (fmod(blocks, tiles) == 0) {
        peers = blocks / tiles;
        uneven = 0;
    }
    return each + floor(WAVE_COST + uneven + PEER_COST * peers);
}

void wg__stream_k(uint64_t tiles, uint64_t iterations, unsigned sms, struct wg_stream_k *out)
{
    *out = (struct wg_stream_k){0};
    if (tiles == 0 || iterations == 0 || sms == 0 || tiles % sms == 0)
        return;
    const double whole = ceil_ratio((double)tiles, sms) * (double)iterations;
    if ((double)tiles / (ceil_ratio((double)tiles, sms) * sms) > FULL_ENOUGH)
        return;
    /* The rest alone where there is no full wave, else with the last full one. */
    const uint64_t rest = tiles % sms, shared = tiles > sms ? rest + sms : rest;
    const double before = (shared > sms ? 2.0 : 1.0) * (double)iterations;
    const double most =
        fmin(sms, floor((double)shared * (double)iterations / (double)LEAST_ITERATIONS));
    const uint64_t least = shared < sms ? shared + 1 : sms;
    for (uint64_t blocks = least; blocks <= (uint64_t)most; blocks++) {
        const double after = wave_iterations((double)shared, (double)iterations, (double)blocks);
        const double saved = (before - after) / whole;
        if (saved > out->saved)
            *out = (struct wg_stream_k){.blocks = blocks, .saved = saved};
    }
}
