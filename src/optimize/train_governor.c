/* SPDX-License-Identifier: MIT
 *
 * The phases of the governor: see train_governor.h for them and docs/internals/live-governor.md for
 * the reasons and the numbers.
 *
 * What is seen of the job is kept by train_governor_pace.c, what was measured and what to measure
 * next by train_governor_book.c, what holds by train_governor_watch.c. Here is only when.
 *
 * One tick may pass through several phases (MEASURE ends, the choice says another setting, SETTLE
 * begins); each phase's function either gives an order or leaves the phase or does nothing.
 *
 * Nothing waits for ever. Warm-up and settling are bounded in time. A measurement is thrown away a
 * few times and then its setting is left out. Where steps stop coming the best setting so far is
 * held, or the largest, and the profile goes on when they come again.
 *
 * Owns: itself.    Threads: one at a time.
 */
#include "optimize/train_governor.h"

#include <math.h>

#include "base/alloc.h"
#include "optimize/train_governor_parts.h"
#include "wattgov/device.h"

/* Slowed down by what is not our setting. */
static const uint32_t throttles = WG_THROTTLE_HARDWARE | WG_THROTTLE_THERMAL |
                                  WG_THROTTLE_HARDWARE_THERMAL | WG_THROTTLE_POWER_BRAKE;

static const double blind_measure_s = 8;
static const double begin_late = 0.01; /* of a step, that a measurement may begin after its end */
static const double throttled_share = 0.05, clear_s = 1, throttled_most_s = 10;
static const double stall_s = 60, stall_steps = 20, retry_s = 60;
static const double search_most_s = 180, search_most_steps = 40;
static const double learn_s = 10; /* of the noise, while a setting holds */
static const double recheck_first_s = 120, recheck_most_s = 3600;
enum { PAUSES_MOST = 3 };

/* -- Making ------------------------------------------------------------------------------- */

static enum wg_code check(const struct wg_train_config *config, struct wg_error *err)
{
    struct wg_power_search search;

    if (!(config->setting_w >= 0) || !(config->warmup_s >= 0) || !(config->measure_s >= 0) ||
        !(config->budget_s >= 0))
        return wg__fail(err, WG_EINVAL,
                        "watts per setting %g, warm-up %g s, measurement %g s, budget %g s: none "
                        "may be negative",
                        config->setting_w, config->warmup_s, config->measure_s, config->budget_s);
    return wg__power_search_init(&search, &config->objective, WG_POWER_SEARCH_FEW_PROBES,
                                 config->settings, config->count, (double)NAN, err);
}

/* A row that is worth what an earlier run measured. */
static void take_cached(struct wg_train_book *book, const struct wg_train_point *point)
{
    for (size_t i = 0; i < book->count; i++) {
        if (book->setting[i] != point->setting || !(point->power_w > 0) ||
            !(point->throughput > 0) || point->measurements == 0)
            continue;
        const double time_s = point->measured_s > 0 ? point->measured_s : 1;
        const double steps_sd = isfinite(point->throughput_sd) ? point->throughput_sd * time_s : 0;
        const double energy_sd_j = isfinite(point->power_sd) ? point->power_sd * time_s : 0;

        book->rows[i] = (struct wg_train_row){.time_s = time_s,
                                              .steps = point->throughput * time_s,
                                              .energy_j = point->power_w * time_s,
                                              .steps_variance = steps_sd * steps_sd,
                                              .energy_variance_j2 = energy_sd_j * energy_sd_j,
                                              .measurements = 1,
                                              .settle_s = point->settle_s,
                                              .is_cached = true};
    }
}

enum wg_code wg__train_governor_new(struct wg_train_governor **out,
                                    const struct wg_train_config *config, struct wg_error *err)
{
    const enum wg_code code = check(config, err);

    if (code != WG_OK)
        return code;
    struct wg_train_governor *governor = wg__alloc_zeroed(1, sizeof *governor);

    if (governor == NULL)
        return wg__fail(err, WG_ENOMEM, "no memory for the governor of a training job");
    struct wg_train_book *book = &governor->book;

    book->objective = config->objective;
    book->count = config->count;
    book->setting_w = config->setting_w;
    book->neighbor_setting = config->neighbor_setting;
    book->suspect = config->count;
    for (size_t i = 0; i < config->count; i++) {
        book->setting[i] = config->settings[i];
        book->rows[i].settle_s = NAN;
    }
    for (size_t i = 0; i < config->cached_count; i++)
        take_cached(book, &config->cached[i]);
    governor->is_checking = wg__train_book_best(book) < book->count;
    wg__train_update_points(governor);
    wg__train_pace_init(&governor->pace);
    governor->warmup_s = config->warmup_s;
    governor->measure_s = config->measure_s;
    governor->budget_s = config->budget_s;
    governor->present = governor->previous = governor->target = config->count;
    governor->held_before = config->count;
    governor->start_s = governor->first_step_s = governor->search_s = NAN;
    governor->power_before_w = NAN;
    governor->throttled_at_s = (double)-INFINITY;
    governor->blind_s = blind_measure_s;
    governor->recheck_s = recheck_first_s;
    *out = governor;
    return WG_OK;
}

void wg__train_governor_free(struct wg_train_governor *governor)
{
    wg__free(governor);
}

/* -- Orders ------------------------------------------------------------------------------- */

static bool order(struct wg_train_order *out, enum wg_train_order_kind kind, size_t setting,
                  const char *why)
{
    *out = (struct wg_train_order){.kind = kind, .setting = setting, .why = why};
    return true;
}

static void enter(struct wg_train_governor *governor, enum wg_train_phase phase)
{
    governor->phase = phase;
    governor->phase_s = governor->pace.last.t_s;
    governor->is_measuring = governor->is_awaiting = false;
    governor->is_pace_uneven = governor->is_power_uneven = false;
    governor->throttled_s = 0;
}

static bool set(struct wg_train_governor *governor, size_t setting, double t_s,
                struct wg_train_order *out, const char *why)
{
    struct wg_train_span span;

    wg__train_pace_span(&governor->pace, fmax(governor->set_s, governor->begin_s), t_s, &span);
    governor->power_before_w = span.power_w;
    governor->previous = governor->present;
    governor->present = setting;
    governor->set_s = t_s;
    wg__train_pace_reset(&governor->pace);
    return order(out, WG_TRAIN_SET, setting, why);
}

static bool abort_measurement(struct wg_train_governor *governor, struct wg_train_order *out,
                              const char *why)
{
    governor->is_measuring = false;
    return order(out, WG_TRAIN_ABORT, governor->present, why);
}

/* The largest setting that the driver takes; `count`: none. */
static size_t largest(const struct wg_train_governor *governor)
{
    size_t i = governor->book.count;

    while (i-- > 0)
        if (!governor->book.rows[i].is_refused)
            return i;
    return governor->book.count;
}

/* -- The choice --------------------------------------------------------------------------- */

/* Only speed counts, and nothing is faster than the device unhindered. */
static bool is_fastest_wanted(const struct wg_train_governor *governor)
{
    const struct wg_objective *objective = &governor->book.objective;

    return objective->kind == WG_OBJECTIVE_TIME ||
           (objective->kind == WG_OBJECTIVE_COST && objective->eta <= 0);
}

size_t wg__train_governor_best(const struct wg_train_governor *governor)
{
    const size_t best = wg__train_book_best(&governor->book);
    const size_t top = largest(governor);

    if (best < governor->book.count && is_fastest_wanted(governor) &&
        wg__train_book_is_known(&governor->book, top))
        return top;
    return best;
}

static bool is_over_budget(const struct wg_train_governor *governor, double t_s)
{
    const double step_s = governor->pace.step_s;
    const double own_s = fmax(search_most_s, search_most_steps * (isnan(step_s) ? 0 : step_s));
    const double most_s = governor->budget_s > 0 ? governor->budget_s : own_s;

    return t_s - governor->search_s > most_s; /* NAN: not yet */
}

/* Nothing more is to be measured, whatever the book says. */
static bool is_over(const struct wg_train_governor *governor, double t_s)
{
    return is_over_budget(governor, t_s) || governor->is_agreed ||
           governor->blind_tries >= WG_TRAIN_BLIND_TRIES;
}

/* Could be measured, and was not. */
static bool is_unknown(const struct wg_train_book *book, size_t setting)
{
    return setting < book->count && !book->rows[setting].is_skipped &&
           !wg__train_book_is_known(book, setting);
}

/* What to measure next; `count`: nothing. */
static size_t next_target(const struct wg_train_governor *governor, double t_s)
{
    const struct wg_train_book *book = &governor->book;
    const size_t top = largest(governor);

    if (is_over(governor, t_s))
        return book->count;
    if (governor->is_checking)
        return wg__train_governor_best(governor);
    if (is_fastest_wanted(governor))
        return is_unknown(book, top) ? top : book->count;
    if (wg__train_book_suspect(book) < book->count)
        return book->suspect;
    if (book->is_local && is_unknown(book, governor->present))
        return governor->present;
    if (book->is_local && is_unknown(book, top))
        return top; /* what the others, and the saving, are compared with */
    return wg__train_book_next(book);
}

/* Why the search is over, for him who reads it. */
static const char *why_over(const struct wg_train_governor *governor, double t_s)
{
    if (governor->blind_tries >= WG_TRAIN_BLIND_TRIES)
        return "no progress can be seen";
    if (governor->is_agreed)
        return "the cached profile holds";
    if (is_over_budget(governor, t_s))
        return "the best so far: the search has taken long enough";
    if (wg__train_book_is_cautious(&governor->book))
        return "the best that is surely within the bound; a cheaper one may be beyond it";
    return "the best setting is found";
}

/* Holds what was found. What is set is told with `why`; so it is where it is set already. */
static bool finish(struct wg_train_governor *governor, double t_s, struct wg_train_order *out,
                   const char *why)
{
    const size_t best = wg__train_governor_best(governor);

    enter(governor, WG_TRAIN_HOLD);
    governor->target = best < governor->book.count ? best : largest(governor);
    governor->is_frozen = governor->target == governor->book.count;
    governor->is_checking = governor->is_agreed = false;
    governor->is_waiting = governor->blind_tries >= WG_TRAIN_BLIND_TRIES;
    governor->retry_at_s = t_s + (governor->is_waiting ? retry_s : 0);
    governor->book.is_local = governor->book.is_local || !governor->is_waiting;
    governor->search_s = NAN;
    if (governor->held_before == governor->target)
        governor->recheck_s = fmin(governor->recheck_s * 2, recheck_most_s);
    else
        governor->recheck_s = recheck_first_s;
    governor->held_before = governor->target;
    governor->recheck_at_s = t_s + governor->recheck_s;
    wg__train_watch_init(&governor->watch, t_s + fmax(1, 2 * governor->settle_least_s));
    out->why = why;
    if (governor->is_frozen || governor->target == governor->present)
        return false;
    return set(governor, governor->target, t_s, out, why);
}

/* What comes after a measurement, the warm-up or a refusal. */
static bool decide(struct wg_train_governor *governor, double t_s, struct wg_train_order *out)
{
    const size_t next = next_target(governor, t_s);

    governor->was_told = governor->was_refused = false;
    if (next == governor->book.count)
        return finish(governor, t_s, out, why_over(governor, t_s));
    if (next != governor->target)
        governor->tries = governor->drifts_in_row = governor->pauses = 0;
    governor->target = next;
    if (next == governor->present) {
        const bool has_acted = governor->phase == WG_TRAIN_MEASURE;

        enter(governor, has_acted ? WG_TRAIN_MEASURE : WG_TRAIN_SETTLE);
        return false;
    }
    enter(governor, WG_TRAIN_SETTLE);
    return set(governor, next, t_s, out,
               governor->is_checking ? "to check the cached profile" : "to measure it");
}

/* -- Warm-up ------------------------------------------------------------------------------ */

static bool on_warmup(struct wg_train_governor *governor, const struct wg_train_tick *tick,
                      struct wg_train_order *out)
{
    const size_t top = largest(governor);

    if (governor->present == governor->book.count) {
        if (top < governor->book.count)
            return set(governor, top, tick->t_s, out, "to warm up unhindered");
        return finish(governor, tick->t_s, out, "no setting is accepted");
    }
    if (isnan(governor->first_step_s) && tick->is_step_end)
        governor->first_step_s = tick->t_s;
    return wg__train_is_warm(governor, tick) && decide(governor, tick->t_s, out);
}

/* -- Settling ----------------------------------------------------------------------------- */

/* No step has ended for so long that nothing can be measured. */
static bool is_stalled(const struct wg_train_governor *governor, double t_s)
{
    const struct wg_train_pace *pace = &governor->pace;
    const double step_s = isnan(pace->step_s) ? 0 : pace->step_s;

    return pace->has_step_ends && t_s - pace->begin_s > fmax(stall_s, stall_steps * step_s);
}

static bool stall(struct wg_train_governor *governor, double t_s, struct wg_train_order *out)
{
    const bool is_local = governor->book.is_local;
    const bool is_given = finish(governor, t_s, out, "no step has ended for a long time");

    governor->book.is_local = is_local;
    governor->is_waiting = true;
    return is_given;
}

static bool on_settle(struct wg_train_governor *governor, const struct wg_train_tick *tick,
                      struct wg_train_order *out)
{
    if (governor->was_refused)
        return decide(governor, tick->t_s, out);
    if (is_stalled(governor, tick->t_s))
        return stall(governor, tick->t_s, out);
    if (governor->throttled_s > throttled_most_s) { /* a lower setting may be cooler */
        governor->throttled_s = 0;
        wg__train_lose(governor);
        return decide(governor, tick->t_s, out);
    }
    if (tick->t_s - governor->throttled_at_s >= clear_s && wg__train_has_settled(governor, tick))
        enter(governor, WG_TRAIN_MEASURE);
    return false;
}

/* -- Measuring ---------------------------------------------------------------------------- */

static bool begin(struct wg_train_governor *governor, const struct wg_train_tick *tick,
                  struct wg_train_order *out)
{
    governor->is_measuring = true;
    governor->begin_s = tick->t_s;
    governor->begin_steps = tick->steps;
    governor->throttled_s = 0;
    if (isnan(governor->search_s))
        governor->search_s = tick->t_s;
    return order(out, WG_TRAIN_BEGIN, governor->present, "the setting has acted");
}

/* The measurement that runs is spoilt: ABORT, and again when it is over. */
static bool spoil(struct wg_train_governor *governor, const struct wg_train_tick *tick,
                  struct wg_train_order *out)
{
    const struct wg_train_pace *pace = &governor->pace;

    if (is_stalled(governor, tick->t_s)) {
        enter(governor, WG_TRAIN_SETTLE); /* which goes on to hold */
        return abort_measurement(governor, out, "no step has ended for a long time");
    }
    if (governor->throttled_s > throttled_share * fmax(2, tick->t_s - governor->begin_s)) {
        wg__train_lose(governor);
        governor->was_told = true;
        enter(governor, WG_TRAIN_SETTLE);
        return abort_measurement(governor, out, "the device was throttled");
    }
    const bool is_paused =
        wg__train_pace_is_paused(pace) ||
        (pace->count > 0 && tick->is_step_end && wg__train_pace_beat(pace, 0)->is_pause);

    if (!is_paused || governor->takes_pauses)
        return false;
    governor->takes_pauses = ++governor->pauses >= PAUSES_MOST;
    governor->book.rows[governor->target].discarded++;
    enter(governor, WG_TRAIN_SETTLE);
    return abort_measurement(governor, out, "the training has paused");
}

static bool on_measure(struct wg_train_governor *governor, const struct wg_train_tick *tick,
                       struct wg_train_order *out)
{
    if (governor->is_awaiting) { /* nothing was told of it */
        governor->is_awaiting = false;
        wg__train_lose(governor);
        governor->was_told = true;
    }
    if ((governor->was_told || governor->was_refused) && decide(governor, tick->t_s, out))
        return true;
    if (governor->phase != WG_TRAIN_MEASURE)
        return false;
    if (!governor->is_measuring) {
        const bool is_boundary = !governor->pace.has_step_ends || tick->is_step_end ||
                                 tick->t_s - governor->set_s <= begin_late * governor->pace.step_s;
        return is_boundary && !wg__train_is_between_pauses(governor, tick, governor->phase_s) &&
               begin(governor, tick, out);
    }
    if (spoil(governor, tick, out))
        return true;
    if (!wg__train_is_long_enough(governor, tick))
        return false;
    wg__train_compare_halves(governor, tick->t_s);
    wg__train_pace_learn(&governor->pace, governor->begin_s, true);
    governor->is_measuring = false;
    governor->is_awaiting = true;
    return order(out, WG_TRAIN_END, governor->present, "enough is known of it");
}

/* -- Holding ------------------------------------------------------------------------------ */

/* Drift: what was measured is of the past. */
static bool recheck(struct wg_train_governor *governor, double t_s, struct wg_train_order *out)
{
    struct wg_train_book *book = &governor->book;

    for (size_t i = 0; i < book->count; i++) {
        book->rows[i].is_stale = book->rows[i].measurements > 0;
        book->rows[i].is_skipped = false;
    }
    book->suspect = book->count; /* of another search, as are its checks */
    book->checks = 0;
    governor->drifts++;
    governor->tries = governor->pauses = 0;
    return decide(governor, t_s, out);
}

static bool on_hold(struct wg_train_governor *governor, const struct wg_train_tick *tick,
                    struct wg_train_order *out)
{
    const struct wg_train_pace *pace = &governor->pace;

    if (governor->was_refused) {
        governor->was_refused = false;
        return finish(governor, tick->t_s, out, "the setting was refused");
    }
    if (governor->is_frozen || pace->count == 0)
        return false;
    const struct wg_train_beat *beat = wg__train_pace_beat(pace, 0);

    if (beat->begin_s + beat->time_s < tick->t_s) /* nothing new */
        return false;
    if (governor->is_waiting) {
        if (tick->t_s < governor->retry_at_s)
            return false;
        governor->is_waiting = false;
        governor->blind_tries = governor->blind_tries > 0 ? governor->blind_tries - 1 : 0;
        governor->target = governor->present;
        return decide(governor, tick->t_s, out);
    }
    const enum wg_train_drift drift = wg__train_watch_tell(&governor->watch, pace);

    if (governor->watch.beats == 0)
        wg__train_pace_learn(&governor->pace, tick->t_s - learn_s, true);
    if (drift == WG_TRAIN_DRIFT_NONE || tick->t_s < governor->recheck_at_s)
        return false;
    return recheck(governor, tick->t_s, out);
}

/* -- The outside -------------------------------------------------------------------------- */

typedef bool phase_function(struct wg_train_governor *governor, const struct wg_train_tick *tick,
                            struct wg_train_order *out);

static phase_function *const phases[WG_TRAIN_PHASE_COUNT] = {
    [WG_TRAIN_WARMUP] = on_warmup,
    [WG_TRAIN_SETTLE] = on_settle,
    [WG_TRAIN_MEASURE] = on_measure,
    [WG_TRAIN_HOLD] = on_hold,
};

/* Somebody else has written the knob: it is theirs from now on. */
static void freeze(struct wg_train_governor *governor, struct wg_train_order *out)
{
    const bool was_measuring = governor->is_measuring;

    enter(governor, WG_TRAIN_HOLD);
    governor->is_frozen = true;
    if (was_measuring)
        (void)abort_measurement(governor, out, "somebody else has set the device");
}

/* Steps are told at last: what was measured without them is worth less than to begin again. */
static void see(struct wg_train_governor *governor, struct wg_train_order *out)
{
    wg__train_watch_init(&governor->watch, governor->pace.last.t_s);
    if (governor->phase == WG_TRAIN_HOLD || governor->phase == WG_TRAIN_WARMUP)
        return;
    if (governor->is_measuring)
        (void)abort_measurement(governor, out, "the job tells its steps now");
    for (size_t i = 0; i < governor->book.count; i++)
        governor->book.rows[i].is_stale = governor->book.rows[i].measurements > 0;
    governor->was_told = false;
    enter(governor, WG_TRAIN_WARMUP);
}

void wg__train_governor_tick(struct wg_train_governor *governor, const struct wg_train_tick *tick,
                             struct wg_train_order *out)
{
    const double since_s =
        governor->pace.has_last ? fmax(0, tick->t_s - governor->pace.last.t_s) : 0;

    *out = (struct wg_train_order){.kind = WG_TRAIN_KEEP, .setting = governor->present, .why = ""};
    if (isnan(governor->start_s)) {
        governor->start_s = governor->set_s = tick->t_s;
        governor->start_steps = tick->steps;
    }
    const bool was_blind = !governor->pace.has_step_ends;

    if (wg__train_pace_tick(&governor->pace, tick) &&
        wg__train_pace_beat(&governor->pace, 0)->is_pause)
        governor->paused_at_s = tick->t_s;
    if (was_blind && governor->pace.has_step_ends)
        see(governor, out);
    if ((tick->throttle & throttles) != 0) {
        governor->throttled_at_s = tick->t_s;
        governor->throttled_s += since_s;
    }
    if (tick->is_foreign && !governor->is_frozen)
        freeze(governor, out);
    for (unsigned i = 0;
         i < WG_TRAIN_PHASE_COUNT && !governor->is_frozen && out->kind == WG_TRAIN_KEEP; i++) {
        const enum wg_train_phase phase = governor->phase;

        if (phases[phase](governor, tick, out) || governor->phase == phase)
            return;
    }
}

void wg__train_governor_refuse(struct wg_train_governor *governor, size_t setting)
{
    if (setting >= governor->book.count)
        return;
    governor->book.rows[setting].is_refused = true;
    if (governor->present != setting)
        return;
    governor->present = governor->previous;
    governor->was_refused = true;
}

enum wg_train_phase wg__train_governor_phase(const struct wg_train_governor *governor)
{
    return governor->phase;
}

size_t wg__train_governor_setting(const struct wg_train_governor *governor)
{
    return governor->present;
}

size_t wg__train_governor_profile(const struct wg_train_governor *governor,
                                  const struct wg_train_point **out)
{
    *out = governor->points;
    return governor->point_count;
}

unsigned wg__train_governor_drifts(const struct wg_train_governor *governor)
{
    return governor->drifts + governor->book.tears;
}
