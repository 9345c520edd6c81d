/* SPDX-License-Identifier: MIT
 *
 * Gathering trials into processes, and reading these in the units of the figures.
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include "optimize/tuning_surrogate.h"

#include <math.h>

#include "base/alloc.h"

/* -- Making ----------------------------------------------------------------------------------- */

static bool make_axis(double **out, const struct wg_tuning_knob *knob, bool is_log)
{
    const double low = knob->levels[0], high = knob->levels[knob->count - 1];
    double *axis = wg__alloc_zeroed(knob->count, sizeof *axis);

    *out = axis;
    if (axis == NULL)
        return false;
    for (size_t i = 0; knob->count > 1 && i < knob->count; i++)
        axis[i] = is_log ? log(knob->levels[i] / low) / log(high / low)
                         : (knob->levels[i] - low) / (high - low);
    return true;
}

enum wg_code wg__tuning_surrogate_init(struct wg_tuning_surrogate *surrogate,
                                       const struct wg_tuning_view *view, const bool *is_log,
                                       struct wg_error *err)
{
    const struct wg_tuning_space *space = view->space;
    bool is_whole = true;

    *surrogate =
        (struct wg_tuning_surrogate){.space = space, .quantity_count = 1 + view->goal->limit_count};
    for (size_t q = 0; q < surrogate->quantity_count; q++) {
        surrogate->quantities[q].side = q > 0 && view->goal->limits[q - 1].is_minimum ? -1 : 1;
        wg__gp_init(&surrogate->quantities[q].gp, space->knob_count);
    }
    for (size_t k = 0; k < space->knob_count && is_whole; k++)
        is_whole = make_axis(&surrogate->axis[k], &space->knobs[k],
                             is_log[k] && space->knobs[k].levels[0] > 0);
    if (is_whole)
        return WG_OK;
    wg__tuning_surrogate_fini(surrogate);
    return wg__fail(err, WG_ENOMEM, "out of memory for the surrogates");
}

void wg__tuning_surrogate_fini(struct wg_tuning_surrogate *surrogate)
{
    for (size_t q = 0; q < surrogate->quantity_count; q++)
        wg__gp_fini(&surrogate->quantities[q].gp);
    for (size_t k = 0; k < WG_TUNING_KNOBS_MAX; k++)
        wg__free(surrogate->axis[k]);
    wg__free(surrogate->x);
    wg__free(surrogate->y);
    wg__free(surrogate->extra);
    *surrogate = (struct wg_tuning_surrogate){0};
}

/* -- Gathering -------------------------------------------------------------------------------- */

static bool grow_one(double **array, size_t count)
{
    double *grown = wg__realloc_array(*array, count, sizeof **array);

    if (grown == NULL)
        return false;
    *array = grown;
    return true;
}

static bool grow(struct wg_tuning_surrogate *surrogate, size_t count)
{
    const size_t n = 2 * count;

    if (count <= surrogate->capacity)
        return true;
    if (!grow_one(&surrogate->x, n * surrogate->space->knob_count) || !grow_one(&surrogate->y, n) ||
        !grow_one(&surrogate->extra, n))
        return false;
    surrogate->capacity = n;
    return true;
}

static void place(const struct wg_tuning_surrogate *surrogate, size_t configuration, double *x)
{
    for (size_t k = 0; k < surrogate->space->knob_count; k++)
        x[k] = surrogate->axis[k][wg__tuning_level(surrogate->space, configuration, k)];
}

/* The relative variance of a figure's noise beside the common one. */
static double extra_of(const struct wg_tuning_view *view, const struct wg_trial *trial, size_t q,
                       bool use_errors)
{
    const double error = wg__trial_error(trial, q, view->noise);
    const double own = use_errors ? fmax(error * error - view->noise * view->noise, 0) : 0;

    return trial->outcome == WG_TRIAL_CUT ? fmax(own, WG_TUNING_CUT_ERROR * WG_TUNING_CUT_ERROR)
                                          : own;
}

/* Whether a trial tells anything of quantity q. A bound from below says nothing of a minimum. */
static bool tells(const struct wg_tuning_surrogate *surrogate, const struct wg_trial *trial,
                  size_t q)
{
    return !isnan(wg__trial_figure(trial, q)) &&
           !(trial->outcome == WG_TRIAL_CUT && surrogate->quantities[q].side < 0);
}

static bool all_positive(const struct wg_tuning_view *view, size_t q)
{
    for (size_t i = 0; i < view->trial_count; i++)
        if (wg__trial_figure(&view->trials[i], q) <= 0)
            return false;
    return true;
}

static double value_of(const struct wg_tuning_quantity *quantity, double figure)
{
    return quantity->side * (quantity->is_log ? log(figure) : figure);
}

/* Offset and scale of the gathered values, and the values on it. */
static void standardise(struct wg_tuning_surrogate *surrogate, struct wg_tuning_quantity *quantity,
                        size_t count, bool by_deviation)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < count; i++)
        sum += surrogate->y[i];
    quantity->offset = count > 0 ? sum / (double)count : 0;
    quantity->scale = 1;
    for (size_t i = 0; i < count; i++)
        squares += (surrogate->y[i] - quantity->offset) * (surrogate->y[i] - quantity->offset);
    if (by_deviation && squares > 0)
        quantity->scale = sqrt(squares / (double)count);
    for (size_t i = 0; i < count; i++) {
        surrogate->y[i] = (surrogate->y[i] - quantity->offset) / quantity->scale;
        surrogate->extra[i] /= quantity->scale * quantity->scale;
    }
}

static enum wg_code gather_one(struct wg_tuning_surrogate *surrogate,
                               const struct wg_tuning_view *view,
                               const struct wg_tuning_gathering *how, size_t q,
                               struct wg_error *err)
{
    struct wg_tuning_quantity *quantity = &surrogate->quantities[q];
    const size_t knobs = surrogate->space->knob_count;
    size_t count = 0;

    quantity->is_log = how->use_logs && all_positive(view, q);
    if (q > 0)
        quantity->bound = value_of(quantity, view->goal->limits[q - 1].bound);
    for (size_t i = 0; i < view->trial_count; i++) {
        const struct wg_trial *trial = &view->trials[i];

        if ((how->counts != NULL && !how->counts[i]) || !tells(surrogate, trial, q))
            continue;
        const double figure = wg__trial_figure(trial, q);
        const double unit = quantity->is_log ? 1 : figure;
        place(surrogate, trial->configuration, surrogate->x + count * knobs);
        surrogate->y[count] = value_of(quantity, figure);
        surrogate->extra[count++] = extra_of(view, trial, q, how->use_errors) * unit * unit;
    }
    standardise(surrogate, quantity, count,
                how->by_deviation || !quantity->is_log ||
                    wg__goal_kind(view->goal, q) == WG_TUNING_OTHER);
    return wg__gp_set(&quantity->gp, surrogate->x, surrogate->y, surrogate->extra, count, err);
}

enum wg_code wg__tuning_surrogate_gather(struct wg_tuning_surrogate *surrogate,
                                         const struct wg_tuning_view *view,
                                         const struct wg_tuning_gathering *how,
                                         struct wg_error *err)
{
    enum wg_code code = WG_OK;

    if (!grow(surrogate, view->trial_count))
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu trials", view->trial_count);
    for (size_t q = 0; code == WG_OK && q < surrogate->quantity_count; q++)
        code = gather_one(surrogate, view, how, q, err);
    return code;
}

/* -- Reading ---------------------------------------------------------------------------------- */

static void predict(struct wg_tuning_surrogate *surrogate, struct wg_tuning_block *block)
{
    const size_t knobs = surrogate->space->knob_count;
    double x[WG_GP_BLOCK * WG_TUNING_KNOBS_MAX];

    for (size_t i = 0; i < block->count; i++)
        place(surrogate, block->configurations[i], x + i * knobs);
    for (size_t q = 0; q < surrogate->quantity_count; q++) {
        struct wg_tuning_quantity *quantity = &surrogate->quantities[q];

        if (quantity->gp.count > 0)
            wg__gp_predict(&quantity->gp, x, block->count, block->mean[q], block->sd[q]);
        for (size_t i = 0; i < block->count; i++) {
            if (quantity->gp.count == 0)
                block->mean[q][i] = block->sd[q][i] = (double)NAN;
            block->mean[q][i] = quantity->offset + quantity->scale * block->mean[q][i];
            block->sd[q][i] *= quantity->scale;
        }
    }
}

bool wg__tuning_surrogate_walk(struct wg_tuning_surrogate *surrogate,
                               const struct wg_tuning_view *view, wg_tuning_wants *wants,
                               const void *context, struct wg_tuning_block *block)
{
    block->count = 0;
    for (; block->next < view->space->count && block->count < WG_GP_BLOCK; block->next++)
        if (wants(context, view, block->next))
            block->configurations[block->count++] = block->next;
    if (block->count > 0)
        predict(surrogate, block);
    return block->count > 0;
}

double wg__tuning_log_feasible(const struct wg_tuning_surrogate *surrogate,
                               const struct wg_tuning_block *block, size_t at)
{
    double sum = 0;

    for (size_t q = 1; q < surrogate->quantity_count; q++) {
        const double room = surrogate->quantities[q].bound - block->mean[q][at];

        sum += wg__log_normal_cdf(isnan(room) ? 0 : room / block->sd[q][at]);
    }
    return sum;
}

bool wg__tuning_surrogate_forecast(struct wg_tuning_surrogate *surrogate, size_t configuration,
                                   struct wg_tuning_forecast *out)
{
    struct wg_tuning_block block = {.count = 1, .configurations = {configuration}};

    for (size_t q = 0; q < surrogate->quantity_count; q++)
        if (surrogate->quantities[q].gp.count > 0 && !surrogate->quantities[q].gp.is_fitted)
            return false;
    predict(surrogate, &block);
    for (size_t q = 0; q < surrogate->quantity_count; q++) {
        const struct wg_tuning_quantity *quantity = &surrogate->quantities[q];
        const double value = quantity->side * block.mean[q][0];
        const double median = quantity->is_log ? exp(value) : value;
        const double sd = quantity->is_log ? block.sd[q][0] : fabs(block.sd[q][0] / median);

        *(q == 0 ? &out->objective : &out->figures[q - 1]) = median;
        *(q == 0 ? &out->objective_sd : &out->figure_sds[q - 1]) = sd;
    }
    out->feasible = exp(wg__tuning_log_feasible(surrogate, &block, 0));
    return true;
}
