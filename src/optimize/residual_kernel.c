/* SPDX-License-Identifier: MIT
 *
 * The residual's covariance, a row at a time; see the header.
 *
 * The Matern functions along one knob are worked out once a level of it, so that a configuration
 * costs sums, products and one exponential.
 *
 * Threads: pure.
 */
#include "optimize/residual_kernel.h"

#include <math.h>

#include "math/kernel.h"
#include "optimize/tuner_constants.h"

static const double smooth_length = 0.6;
static const double pair_length = 0.5;
static const double local_length = 0.35;

struct wg_residual_kernel wg__residual_kernel_of(enum wg_tuning_kind kind)
{
    const struct wg_tuner_constants *c = &wg__tuner_constants;
    const double shared = c->shared_noise;
    switch (kind) {
    case WG_TUNING_TIME:
        return (struct wg_residual_kernel){c->smooth_t, c->level_t, c->pair_t,
                                           c->local_t,  0,          shared};
    case WG_TUNING_ENERGY:
        return (struct wg_residual_kernel){c->smooth_e, c->level_e, c->pair_e,
                                           c->local_e,  0,          shared};
    case WG_TUNING_OTHER:
        break;
    }
    /* No physics: twice the residual of energy, around a line. */
    return (struct wg_residual_kernel){
        2 * c->smooth_e, 2 * c->level_e, 2 * c->pair_e, 2 * c->local_e, 0.5, shared};
}

/* What level `to` of a knob adds, seen from level `from`. */
static void set_along(const struct wg_residual_kernel *kernel, const struct wg_board_axes *axes,
                      size_t knob, size_t from, size_t to, struct wg_residual_along *out)
{
    const struct wg_board_level *levels = &axes->levels[axes->first[knob]];
    const double origin = levels[axes->space->knobs[knob].default_level].place;
    const double d = fabs(levels[to].place - levels[from].place);
    const double smooth = kernel->smooth * kernel->smooth * wg__matern52(d / smooth_length);
    const double same = from == to ? kernel->level * kernel->level : 0;
    const double slope = kernel->line * kernel->line;
    out->smooth = (float)(smooth + same);
    out->pair = (float)wg__matern52(d / pair_length);
    out->line = (float)(slope * (levels[to].place - origin) * (levels[from].place - origin));
    out->square = (float)(d * d);
}

void wg__residual_kernel_row(const struct wg_residual_kernel *kernel,
                             const struct wg_board_axes *axes, size_t configuration,
                             const uint32_t *others, size_t count,
                             struct wg_residual_along *scratch, float *out)
{
    const size_t knobs = axes->space->knob_count;
    const uint16_t *own = axes->space->level_of + configuration * knobs;
    for (size_t k = 0; k < knobs; k++)
        for (size_t l = 0; l < axes->space->knobs[k].count; l++)
            set_along(kernel, axes, k, own[k], l, &scratch[axes->first[k] + l]);
    const float half_pair = (float)(kernel->pair * kernel->pair / 2);
    const float local = (float)(kernel->local * kernel->local);
    const float root5 = (float)(2.2360679774997896964 / local_length);
    for (size_t i = 0; i < count; i++) {
        const uint16_t *levels = axes->space->level_of + others[i] * knobs;
        float sum = 0, pairs = 0, squares = 0, square = 0;
        for (size_t k = 0; k < knobs; k++) {
            const struct wg_residual_along *along = &scratch[axes->first[k] + levels[k]];
            sum += along->smooth + along->line;
            pairs += along->pair;
            squares += along->pair * along->pair;
            square += along->square;
        }
        const float r = root5 * sqrtf(square);
        /* Each pair once: (sum^2 - sum of squares) / 2. */
        out[i] =
            sum + half_pair * (pairs * pairs - squares) + local * (1 + r + r * r / 3) * expf(-r);
    }
}

double wg__residual_kernel_variance(const struct wg_residual_kernel *kernel,
                                    const struct wg_board_axes *axes, size_t configuration)
{
    const size_t knobs = axes->space->knob_count;
    double steps = 0;
    for (size_t k = 0; k < knobs && kernel->line > 0; k++) {
        const struct wg_board_level *levels = &axes->levels[axes->first[k]];
        const double d = levels[wg__tuning_level(axes->space, configuration, k)].place -
                         levels[axes->space->knobs[k].default_level].place;
        steps += d * d;
    }
    const double count = (double)knobs;
    return count * (kernel->smooth * kernel->smooth + kernel->level * kernel->level) +
           count * (count - 1) / 2 * kernel->pair * kernel->pair + kernel->local * kernel->local +
           steps * kernel->line * kernel->line;
}
