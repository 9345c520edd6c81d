/* SPDX-License-Identifier: MIT
 *
 * The tuning policy `wattgov`: physics as the prior, one trial after another where the expected
 * saving within the limits is largest.
 *
 *     incumbent   of the tried configurations that meet all limits by some standard deviations, the
 *                 one of least expected cost: never the least observation, which was lucky
 *     score       log expected improvement + log probability of each limit; the limits weigh less
 *                 in the first trials, so that far corners are looked at before they are given up
 *     again       a tried one that may be cheaper and within the limits is measured once more
 *     stop        when the largest PF x EI, a relative saving, is below `stop_share`
 *
 * What is believed comes from board_posterior.c. A cut trial is a bound: it counts as a figure at
 * the bound, with more noise, and only where the boards would have guessed less. Where the default
 * could not be measured, the first one that was is what all figures are relative to.
 *
 * A decision depends on the trials told and on the seed, on nothing else: resuming is telling
 * again.
 *
 * Owns: its state.    Threads: one at a time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "optimize/board_posterior.h"
#include "optimize/board_rows.h"
#include "optimize/tune_candidates.h"
#include "optimize/tuner_constants.h"
#include "optimize/tuning_policy.h"

enum { STREAM_BOARDS = 1, STREAM_CANDIDATES = 2 };

/* Relative noise of a bound. */
static const double cut_noise = 0.1;

struct state {
    struct wg_board_axes axes;
    struct wg_board_pool *pool;
    struct wg_board_posterior *posterior;
    struct wg_board_row *rows; /* [channels][room] */
    size_t row_room;
    uint32_t *fixed, *fresh; /* candidates; `fresh` and `is_known` of a large space only */
    size_t fixed_count;
    bool *is_known;
    size_t centre; /* the last best, whose neighbours are looked at */
    size_t reference;
    size_t channel_count;
    double origin[WG_BOARD_CHANNELS_MAX]; /* figures of the reference */
    double scale[WG_BOARD_CHANNELS_MAX];  /* > 0: plain numbers over it, instead of logarithms */
    double bound[WG_BOARD_CHANNELS_MAX];  /* of limits, on the scale of the channel */
};

static void destroy(void *opaque)
{
    struct state *state = opaque;
    if (!state)
        return;
    wg__board_posterior_free(state->posterior);
    wg__board_pool_free(state->pool);
    wg__board_axes_fini(&state->axes);
    wg__free(state->rows);
    wg__free(state->fixed);
    wg__free(state->fresh);
    wg__free(state->is_known);
    wg__free(state);
}

static enum wg_code set_up(struct state *state, const struct wg_tuning_view *view,
                           struct wg_error *err)
{
    const struct wg_tuning_space *space = view->space;
    const struct wg_board_settings settings = wg__board_settings_default();
    const size_t fresh_most = wg__tune_is_whole(space) ? 0 : WG_TUNE_FRESH;
    state->reference = space->count;
    state->centre = space->default_configuration;
    state->fixed = wg__alloc_zeroed(WG_TUNE_WHOLE, sizeof *state->fixed);
    state->fresh = wg__alloc_zeroed(fresh_most, sizeof *state->fresh);
    state->is_known = wg__alloc_zeroed(space->count, sizeof *state->is_known);
    if (!state->fixed || !state->fresh || !state->is_known)
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu configurations", space->count);
    struct wg_rng chance = wg__rng_split(view->rng, STREAM_CANDIDATES);
    state->fixed_count = wg__tune_fixed_part(space, &chance, state->fixed);
    enum wg_code code = wg__board_axes_init(&state->axes, space, err);
    const struct wg_rng rng = wg__rng_split(view->rng, STREAM_BOARDS);
    if (code == WG_OK)
        code = wg__board_pool_new(&state->pool, &state->axes, settings.boards, &rng, state->fixed,
                                  state->fixed_count, fresh_most, err);
    if (code == WG_OK)
        code = wg__board_posterior_new(&state->posterior, state->pool, &settings, err);
    return code;
}

static enum wg_code create(void **out, const struct wg_tuning_view *view, struct wg_error *err)
{
    struct state *state = wg__alloc_zeroed(1, sizeof *state);
    if (!state)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    const enum wg_code code = set_up(state, view, err);
    if (code != WG_OK) {
        destroy(state);
        return code;
    }
    *out = state;
    return WG_OK;
}

/* The trial that all figures are relative to: the default's first, else the first measured. */
static const struct wg_trial *find_reference(const struct wg_tuning_view *view)
{
    const struct wg_trial *first = NULL;
    for (size_t i = 0; i < view->trial_count; i++) {
        const struct wg_trial *trial = &view->trials[i];
        if (trial->outcome != WG_TRIAL_MEASURED)
            continue;
        if (trial->configuration == view->space->default_configuration)
            return trial;
        if (!first)
            first = trial;
    }
    return first;
}

/* Figures that may be zero or less are taken as they are, over the largest of them. */
static double plain_scale(const struct wg_tuning_view *view, size_t channel)
{
    double least = (double)INFINITY, most = 0;
    if (channel > 0) {
        least = view->goal->limits[channel - 1].bound;
        most = fabs(least);
    }
    for (size_t i = 0; i < view->trial_count; i++) {
        const double figure = wg__trial_figure(&view->trials[i], channel);
        if (!isfinite(figure))
            continue;
        least = fmin(least, figure);
        most = fmax(most, fabs(figure));
    }
    return least > 0 ? 0 : fmax(most, 1e-300);
}

static double on_scale(const struct state *state, size_t channel, double figure)
{
    return state->scale[channel] > 0 ? (figure - state->origin[channel]) / state->scale[channel]
                                     : log(figure / state->origin[channel]);
}

static double off_scale(const struct state *state, size_t channel, double value)
{
    return state->scale[channel] > 0 ? state->origin[channel] + value * state->scale[channel]
                                     : state->origin[channel] * exp(value);
}

/* Whether a cut trial says more than is believed: its bound lies above the guess. */
static bool is_surprising(const struct state *state, size_t channel, size_t configuration,
                          double value)
{
    const float *mean = wg__board_posterior_mean(state->posterior, channel);
    return value > (double)mean[wg__board_pool_candidate(state->pool, configuration)];
}

/* The rows of all channels; cut ones only where they are surprising (`with_cuts`). */
static void fill_channels(struct state *state, const struct wg_tuning_view *view, bool with_cuts,
                          struct wg_board_channel *channels)
{
    for (size_t c = 0; c < state->channel_count; c++) {
        struct wg_board_row *rows = state->rows + c * state->row_room;
        channels[c] = (struct wg_board_channel){.kind = wg__goal_kind(view->goal, c), .rows = rows};
        for (size_t i = 0; i < view->trial_count; i++) {
            const struct wg_trial *trial = &view->trials[i];
            const bool is_cut = trial->outcome == WG_TRIAL_CUT;
            const double figure = wg__trial_figure(trial, c);
            if (!isfinite(figure) || (is_cut && !with_cuts))
                continue;
            const double value = on_scale(state, c, figure);
            if (is_cut && !is_surprising(state, c, trial->configuration, value))
                continue;
            const double noise = wg__trial_error(trial, c, view->noise);
            const double absolute =
                state->scale[c] > 0 ? noise * fabs(figure) / state->scale[c] : noise;
            rows[channels[c].count++] =
                (struct wg_board_row){(uint32_t)trial->configuration, value,
                                      is_cut ? hypot(absolute, cut_noise) : absolute};
        }
        channels[c].count =
            wg__board_rows_bound(rows, channels[c].count, c > 0 ? state->bound[c] : (double)NAN,
                                 (uint32_t)state->reference);
    }
}

/* What is known when the next trial is chosen. */
struct picture {
    const uint32_t *candidates;
    size_t count;
    const float *mean[WG_BOARD_CHANNELS_MAX], *sd[WG_BOARD_CHANNELS_MAX];
    size_t incumbent, returned, runner_up; /* candidates; SIZE_MAX: none */
    double cost;                           /* of the incumbent; of the reference where none is */
    double early_weight;
    size_t dimension;
};

/* Standard deviations by which candidate x meets a limit; below 0: it does not. */
static double margin(const struct state *state, const struct wg_tuning_goal *goal,
                     const struct picture *picture, size_t channel, size_t x)
{
    const double slack = state->bound[channel] - (double)picture->mean[channel][x];
    return (goal->limits[channel - 1].is_minimum ? -slack : slack) /
           (double)picture->sd[channel][x];
}

static double least_margin(const struct state *state, const struct wg_tuning_goal *goal,
                           const struct picture *picture, size_t x)
{
    double least = (double)INFINITY;
    for (size_t c = 1; c < state->channel_count; c++)
        least = fmin(least, margin(state, goal, picture, c, x));
    return least;
}

/* How surely a candidate must meet the limits: each further look at it gives chance another one. */
static double certainty_of(const struct wg_tuning_view *view, size_t configuration)
{
    const double looks = (double)view->measured[configuration];
    return wg__tuner_constants.certainty + wg__tuner_constants.certainty_again * fmax(looks - 1, 0);
}

static double log_feasible(const struct state *state, const struct wg_tuning_goal *goal,
                           const struct picture *picture, size_t x)
{
    double sum = 0;
    for (size_t c = 1; c < state->channel_count; c++)
        sum += wg__log_normal_cdf(margin(state, goal, picture, c, x));
    return sum;
}

/* Probability, as a logarithm, that one more trial of a tried candidate shows it to meet all limits
 * surely enough. The trial leaves a deviation `after` and moves the mean by what it takes away. */
static double log_certified(const struct state *state, const struct wg_tuning_view *view,
                            const struct picture *picture, size_t x)
{
    const double noise = fmax(view->noise, 1e-4);
    const double certainty =
        certainty_of(view, picture->candidates[x]) + wg__tuner_constants.certainty_again;
    double sum = 0;
    for (size_t c = 1; c < state->channel_count; c++) {
        const double sd = (double)picture->sd[c][x];
        const double after = sd * noise / hypot(sd, noise);
        const double moves = sqrt(fmax(sd * sd - after * after, 1e-16));
        const double slack = margin(state, view->goal, picture, c, x) * sd;
        sum += wg__log_normal_cdf((slack - certainty * after) / moves);
    }
    return sum;
}

/* Of a large space: what was tried and what lies near the last best become candidates. */
static void refresh(struct state *state, const struct wg_tuning_view *view)
{
    if (wg__tune_is_whole(view->space))
        return;
    memset(state->is_known, 0, view->space->count * sizeof *state->is_known);
    for (size_t i = 0; i < state->fixed_count; i++)
        state->is_known[state->fixed[i]] = true;
    size_t count = 0;
    for (size_t i = 0; i < view->trial_count && count < WG_TUNE_FRESH; i++) {
        const size_t x = view->trials[i].configuration;
        if (state->is_known[x])
            continue;
        state->is_known[x] = true;
        state->fresh[count++] = (uint32_t)x;
    }
    count = wg__tune_neighbours(view->space, state->centre, state->is_known, state->fresh, count);
    wg__board_pool_refresh(state->pool, state->fresh, count);
}

static enum wg_code believe(struct state *state, const struct wg_tuning_view *view,
                            const struct wg_trial *reference, struct wg_error *err)
{
    state->reference = reference->configuration;
    state->channel_count = 1 + view->goal->limit_count;
    if (state->row_room < view->trial_count) {
        const size_t room = 2 * view->trial_count + 32;
        struct wg_board_row *grown =
            wg__realloc_array(state->rows, room * state->channel_count, sizeof *grown);
        if (!grown)
            return wg__fail(err, WG_ENOMEM, "out of memory for %zu trials", room);
        state->rows = grown;
        state->row_room = room;
    }
    for (size_t c = 0; c < state->channel_count; c++) {
        state->origin[c] = wg__trial_figure(reference, c);
        state->scale[c] = plain_scale(view, c);
        if (c > 0)
            state->bound[c] = on_scale(state, c, view->goal->limits[c - 1].bound);
    }
    bool has_cuts = false;
    for (size_t i = 0; i < view->trial_count; i++)
        has_cuts |= view->trials[i].outcome == WG_TRIAL_CUT;
    refresh(state, view);
    struct wg_board_channel channels[WG_BOARD_CHANNELS_MAX];
    fill_channels(state, view, false, channels);
    enum wg_code code = wg__board_posterior_update(state->posterior, state->reference, channels,
                                                   state->channel_count, err);
    if (code != WG_OK || !has_cuts)
        return code;
    fill_channels(state, view, true, channels);
    return wg__board_posterior_update(state->posterior, state->reference, channels,
                                      state->channel_count, err);
}

/* What a configuration is worth: its cost, and the price of a broken limit as often as it is
 * expected. Of two that cost nearly the same, the one that lies further inside is returned. */
static double worth(const struct state *state, const struct wg_tuning_goal *goal,
                    const struct picture *picture, size_t x)
{
    const double broken = -expm1(log_feasible(state, goal, picture, x));
    return (double)picture->mean[0][x] + wg__tuner_constants.risk_price * broken;
}

/* The incumbent, what would be returned, and the runner-up. */
static void find_incumbent(const struct state *state, const struct wg_tuning_view *view,
                           struct picture *out)
{
    double least_worth = (double)INFINITY, next_worth = (double)INFINITY;
    double best_margin = -(double)INFINITY;
    out->incumbent = out->returned = out->runner_up = SIZE_MAX;
    for (size_t x = 0; x < out->count; x++) {
        const size_t configuration = out->candidates[x];
        if (view->measured[configuration] == 0 || view->is_banned[configuration])
            continue;
        const double least = least_margin(state, view->goal, out, x);
        if (least >= certainty_of(view, configuration)) {
            const double here = worth(state, view->goal, out, x);
            if (here < least_worth) {
                out->runner_up = out->incumbent;
                next_worth = least_worth;
                out->incumbent = x;
                least_worth = here;
            } else if (here < next_worth) {
                out->runner_up = x;
                next_worth = here;
            }
        }
        if (least > best_margin) {
            best_margin = least;
            out->returned = x;
        }
    }
    if (out->incumbent != SIZE_MAX)
        out->returned = out->incumbent;
}

static void look(const struct state *state, const struct wg_tuning_view *view, struct picture *out)
{
    out->candidates = wg__board_pool_candidates(state->pool, &out->count);
    for (size_t c = 0; c < state->channel_count; c++) {
        out->mean[c] = wg__board_posterior_mean(state->posterior, c);
        out->sd[c] = wg__board_posterior_sd(state->posterior, c);
    }
    find_incumbent(state, view, out);
    const size_t reference = wg__board_pool_candidate(state->pool, state->reference);
    out->cost = (double)out->mean[0][out->incumbent != SIZE_MAX ? out->incumbent : reference];
    out->dimension = state->axes.moving;
    const bool is_early = out->dimension >= (size_t)wg__tuner_constants.early_knobs &&
                          view->trial_count <= out->dimension;
    out->early_weight = is_early ? wg__tuner_constants.early_weight : 1;
}

struct score {
    double weighed; /* what the choice goes by */
    double saving;  /* log of the expected relative saving */
    bool is_again;
};

/* False: not to be measured. */
static bool score_of(const struct state *state, const struct wg_tuning_view *view,
                     const struct picture *picture, size_t x, struct score *out)
{
    const size_t configuration = picture->candidates[x];
    if (view->is_banned[configuration])
        return false;
    const double gain = picture->cost - (double)picture->mean[0][x];
    const double sd = (double)picture->sd[0][x];
    if (!view->is_tried[configuration]) {
        const double feasible = log_feasible(state, view->goal, picture, x);
        const double improvement = log(sd) + wg__log_expected_improvement(gain / sd) +
                                   wg__tuning_log_survival(view, configuration);
        *out = (struct score){improvement + picture->early_weight * feasible,
                              improvement + feasible, false};
        return true;
    }
    const struct wg_tuner_constants *constants = &wg__tuner_constants;
    if (picture->incumbent == SIZE_MAX || x == picture->incumbent ||
        view->measured[configuration] == 0 || view->trial_count <= picture->dimension ||
        view->measured[configuration] >= (size_t)constants->again_most || gain <= 0 ||
        least_margin(state, view->goal, picture, x) >= certainty_of(view, configuration))
        return false;
    const double score = log(gain) + log_certified(state, view, picture, x);
    *out = (struct score){score, score, true};
    return true;
}

struct best {
    size_t next; /* candidate; SIZE_MAX: none */
    struct score score;
    double saving; /* the largest expected relative saving of any */
};

/* The best candidate. What is expensive to switch to waits (wg__tuning_switch_penalty). */
static struct best find_best(const struct state *state, const struct wg_tuning_view *view,
                             const struct picture *picture)
{
    struct best best = {.next = SIZE_MAX, .saving = 0};
    for (size_t x = 0; x < picture->count; x++) {
        struct score score;
        if (!score_of(state, view, picture, x, &score))
            continue;
        best.saving = fmax(best.saving, exp(score.saving));
        score.weighed -= wg__tuning_switch_penalty(view, picture->candidates[x]);
        if (best.next == SIZE_MAX || score.weighed > best.score.weighed) {
            best.score = score;
            best.next = x;
        }
    }
    return best;
}

static void explain(const struct state *state, const struct wg_tuning_view *view,
                    const struct picture *picture, const struct best *best,
                    struct wg_tuning_choice *out)
{
    const size_t x = best->next;
    const double feasible = 100 * exp(log_feasible(state, view->goal, picture, x));
    const double change = 100 * expm1((double)picture->mean[0][x] - picture->cost);
    if (picture->incumbent == SIZE_MAX) {
        out->reason = WG_TUNER_FEASIBLE;
        (void)snprintf(out->why, sizeof out->why,
                       "nothing measured surely meets the limits yet: this one does with %.0f %%"
                       " probability, and is expected to cost %.1f %% %s than the reference",
                       feasible, fabs(change), change < 0 ? "less" : "more");
        return;
    }
    out->reason = best->score.is_again ? WG_TUNER_REMEASURE : WG_TUNER_SAVING;
    (void)snprintf(out->why, sizeof out->why,
                   "%sexpected saving %.2f %%, %.0f %% likely within the limits; believed to cost"
                   " %+.1f %% +- %.1f %% against the best so far",
                   best->score.is_again ? "once more, to be sure: " : "",
                   100 * exp(best->score.saving), feasible, change,
                   100 * (double)picture->sd[0][x]);
}

/* Nothing was measured whole, not even the default: near it, but not where trials keep failing.
 * With d the distance from the default along the knobs' axes, the largest of log p - d^2 is next
 * (p: the chance that a trial works, tuning_survival.c): around a default at the edge of what works
 * each failure pushes the search further away from it. */
static size_t blind_start(const struct state *state, const struct wg_tuning_view *view)
{
    const size_t origin = view->space->default_configuration;
    size_t best = view->space->count;
    double most = -(double)INFINITY;
    for (size_t x = 0; x < view->space->count; x++) {
        if (view->is_banned[x] || view->is_tried[x])
            continue;
        double score = wg__tuning_log_survival(view, x);
        for (size_t k = 0; k < view->space->knob_count; k++) {
            const double d = wg__board_level(&state->axes, x, k)->place -
                             wg__board_level(&state->axes, origin, k)->place;
            score -= d * d;
        }
        if (score > most) {
            most = score;
            best = x;
        }
    }
    return best;
}

static void start(const struct state *state, const struct wg_tuning_view *view,
                  struct wg_tuning_choice *out)
{
    out->next = blind_start(state, view);
    out->reason = WG_TUNER_START;
    (void)snprintf(out->why, sizeof out->why,
                   "nothing could be measured yet: near the default, away from what failed");
}

static size_t configuration_of(const struct wg_tuning_view *view, const struct picture *picture,
                               size_t x)
{
    return x == SIZE_MAX ? view->space->count : picture->candidates[x];
}

/* Where much is hidden, or a mistake lasts for many epochs, it looks longer. */
static double stop_share(const struct state *state, const struct wg_tuning_view *view)
{
    if (view->stop_share > 0)
        return view->stop_share;
    if (state->axes.moving >= 3 || state->axes.is_training)
        return wg__tuner_constants.stop_share_wide;
    return state->axes.moving == 1 ? wg__tuner_constants.stop_share_narrow
                                   : wg__tuner_constants.stop_share;
}

static enum wg_code decide(void *opaque, const struct wg_tuning_view *view,
                           struct wg_tuning_choice *out, struct wg_error *err)
{
    struct state *state = opaque;
    const struct wg_trial *reference = find_reference(view);
    if (!reference) {
        state->reference = view->space->count;
        start(state, view, out);
        return WG_OK;
    }
    const enum wg_code code = believe(state, view, reference, err);
    if (code != WG_OK)
        return code;
    struct picture picture;
    look(state, view, &picture);
    const double tau = stop_share(state, view);
    const struct best best = find_best(state, view, &picture);
    *out =
        (struct wg_tuning_choice){.next = configuration_of(view, &picture, best.next),
                                  .expected_saving = best.next == SIZE_MAX ? 0 : best.saving,
                                  .returned = configuration_of(view, &picture, picture.returned),
                                  .is_feasible = picture.incumbent != SIZE_MAX,
                                  .runner_up = configuration_of(view, &picture, picture.runner_up)};
    state->centre = out->returned < view->space->count ? out->returned : state->reference;
    if (best.next != SIZE_MAX)
        explain(state, view, &picture, &best, out);
    out->should_stop = out->is_feasible &&
                       view->trial_count >= (size_t)wg__tuner_constants.stop_least &&
                       best.saving < tau;
    if (out->should_stop)
        (void)snprintf(out->why, sizeof out->why,
                       "no configuration promises more than %.2f %%, less than the %.2f %% asked",
                       100 * best.saving, 100 * tau);
    return WG_OK;
}

static bool forecast(void *opaque, const struct wg_tuning_view *view, size_t configuration,
                     struct wg_tuning_forecast *out)
{
    const struct state *state = opaque;
    if (state->reference >= view->space->count)
        return false;
    const size_t x = wg__board_pool_candidate(state->pool, configuration);
    if (x == SIZE_MAX)
        return false;
    struct picture picture;
    look(state, view, &picture);
    *out =
        (struct wg_tuning_forecast){.objective = off_scale(state, 0, (double)picture.mean[0][x]),
                                    .objective_sd = (double)picture.sd[0][x],
                                    .feasible = exp(log_feasible(state, view->goal, &picture, x))};
    for (size_t c = 1; c < state->channel_count; c++) {
        const double figure = off_scale(state, c, (double)picture.mean[c][x]);
        const double sd = (double)picture.sd[c][x];
        out->figures[c - 1] = figure;
        out->figure_sds[c - 1] = state->scale[c] > 0 ? sd * state->scale[c] / fabs(figure) : sd;
    }
    return true;
}

const struct wg_tuning_policy_ops wg__tuning_policy_wattgov = {
    .default_first = true,
    .validates = true,
    .prunes = true,
    .create = create,
    .destroy = destroy,
    .decide = decide,
    .forecast = forecast,
};
