/* SPDX-License-Identifier: MIT
 *
 * The earliest of four wishes.
 *
 * Threads: pure, one at a time.
 */
#include "measure/schedule.h"

#include <math.h>

static const double EDGES_A_SECOND = 50;
static const uint64_t SLOW_NS = 1000000000U;
static const uint64_t LOOK_NS = 10000000;
static const double LOOK_SHARE = 0.1;     /* of a period, before a tick */
static const uint64_t MARGIN_NS = 150000; /* behind a tick, beyond the doubt about it */

void wg__schedule_init(struct wg_schedule *schedule, uint64_t period_ns, bool has_edges,
                       uint64_t now_ns)
{
    *schedule = (struct wg_schedule){
        .period_ns = period_ns,
        .has_edges = has_edges,
        .regular_ns = now_ns,
        .slow_ns = now_ns,
        .edges_left = EDGES_A_SECOND,
        .edges_ns = now_ns,
    };
    wg__rng_init(&schedule->rng, now_ns);
}

static double edges_left(const struct wg_schedule *schedule, uint64_t now_ns)
{
    const double since_s =
        now_ns > schedule->edges_ns ? (double)(now_ns - schedule->edges_ns) * 1e-9 : 0;
    return fmin(EDGES_A_SECOND, schedule->edges_left + EDGES_A_SECOND * since_s);
}

static uint64_t later(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

/* Where a read surely sees the tick, even when this one strays. */
static uint64_t behind(const struct wg_ticks *ticks, uint64_t tick_ns, double half_ns)
{
    return tick_ns + (uint64_t)(half_ns + 2 * WG_TICKS_STRAY * ticks->period_ns) + MARGIN_NS;
}

/* Where a read surely does not see the tick yet. */
static uint64_t before(const struct wg_ticks *ticks, uint64_t tick_ns, double half_ns)
{
    return tick_ns - (uint64_t)(half_ns + WG_TICKS_STRAY * ticks->period_ns) - MARGIN_NS / 2;
}

/* Whether power alone speaks, of less than all the time between regular reads. */
static bool wants_jitter(const struct wg_schedule *schedule, const struct wg_account *account)
{
    const struct wg_sensor *sensor = &account->power.sensor;
    const double period_s = (double)schedule->period_ns * 1e-9;
    return account->has_power && (!account->has_counter || account->is_stuck) &&
           sensor->averaging_window_s < period_s && sensor->update_period_s < period_s;
}

static int64_t off_grid_ns(const struct wg_schedule *schedule)
{
    return schedule->is_jittered ? (int64_t)(schedule->place * (double)schedule->period_ns) : 0;
}

/* At a random place of its period of the grid, and no two reads of the same reading. */
static uint64_t jittered(const struct wg_schedule *schedule, const struct wg_account *account)
{
    const uint64_t t_ns = schedule->regular_ns + (uint64_t)off_grid_ns(schedule);
    const double sensor_ns = account->power.sensor.update_period_s * 1e9;
    return later(t_ns, schedule->last_regular_ns + (uint64_t)sensor_ns);
}

/* The regular read, just behind the tick that is nearest to its time. */
static uint64_t next_regular(const struct wg_schedule *schedule, const struct wg_account *account)
{
    const struct wg_ticks *ticks = &account->ticks;
    if (schedule->is_jittered)
        return jittered(schedule, account);
    if (ticks->state != WG_TICKS_LOCKED || !account->has_counter ||
        ticks->period_ns > 1.5 * (double)schedule->period_ns)
        return schedule->regular_ns;
    double half_ns;
    const uint64_t tick_ns = wg__ticks_nearest(ticks, schedule->regular_ns, &half_ns);
    const uint64_t t_ns = behind(ticks, tick_ns, half_ns);
    if (t_ns > schedule->last_regular_ns + schedule->period_ns / 2)
        return t_ns;
    return behind(ticks, wg__ticks_next(ticks, tick_ns, &half_ns), half_ns);
}

/* A read that cuts the doubt about the tick before the next regular read, or, when there is much
 * doubt, about the next tick. 0: none. */
static uint64_t next_cut(const struct wg_schedule *schedule, const struct wg_account *account,
                         uint64_t regular_ns, uint64_t now_ns)
{
    const struct wg_ticks *ticks = &account->ticks;
    if (!wg__ticks_wants_cut(ticks, now_ns))
        return 0;
    double half_ns;
    uint64_t tick_ns = wg__ticks_next(ticks, now_ns, &half_ns);
    const bool is_wide = half_ns > wg__ticks_wide_ns(ticks);
    if (!is_wide)
        tick_ns = wg__ticks_nearest(ticks, regular_ns, &half_ns);
    const uint64_t before_ns = before(ticks, tick_ns, half_ns);
    const uint64_t last_ns = schedule->last_ns;
    const uint64_t previous_ns = behind(ticks, tick_ns - (uint64_t)ticks->period_ns, half_ns);
    if (now_ns <= before_ns && last_ns < (is_wide ? previous_ns : before_ns))
        return before_ns;
    if (is_wide && last_ns < tick_ns)
        return later(tick_ns, now_ns);
    return is_wide && last_ns < behind(ticks, tick_ns, half_ns)
               ? later(behind(ticks, tick_ns, half_ns), now_ns)
               : 0;
}

bool wg__schedule_wants_edge(const struct wg_schedule *schedule, const struct wg_account *account,
                             uint64_t now_ns)
{
    if (!schedule->has_edges || edges_left(schedule, now_ns) < 1)
        return false;
    const struct wg_ticks *ticks = &account->ticks;
    if (account->has_counter && !account->is_stuck && ticks->state == WG_TICKS_SEARCHING)
        return false; /* it is read all the time */
    /* What is renewed hardly more often than it is read anyway tells nothing more. */
    return wg__account_period_s(account) * 1e9 < 0.75 * (double)schedule->period_ns;
}

/* The read that lets the energy at an edge be known sooner or better; 0: none. */
static uint64_t next_for_edge(const struct wg_schedule *schedule, const struct wg_account *account,
                              uint64_t edge_ns, uint64_t now_ns)
{
    const struct wg_ticks *ticks = &account->ticks;
    if (!account->has_counter || ticks->state != WG_TICKS_LOCKED || account->is_stuck) {
        const uint64_t lag_ns = account->has_counter && !account->is_stuck
                                    ? (uint64_t)(wg__account_period_s(account) * 0.5e9)
                                    : account->power.delay_ns;
        const uint64_t wish_ns = later(edge_ns + lag_ns + MARGIN_NS / 10, now_ns);
        if (schedule->last_ns < edge_ns + lag_ns)
            return wish_ns;
        /* Read already, in vain: a counter may stand. */
        return later(wish_ns, schedule->last_ns + (uint64_t)(wg__account_period_s(account) * 1e9));
    }
    uint64_t tick_ns;
    double half_ns;
    (void)wg__ticks_floor(ticks, now_ns, 0, &tick_ns, &half_ns);
    uint64_t sure_ns = behind(ticks, tick_ns, half_ns);
    if (schedule->last_ns >= sure_ns)
        sure_ns = behind(ticks, wg__ticks_next(ticks, tick_ns, &half_ns), half_ns);
    return later(sure_ns, now_ns);
}

uint64_t wg__schedule_next(struct wg_schedule *schedule, const struct wg_account *account,
                           uint64_t edge_ns, uint64_t now_ns, enum wg_read_purpose *purpose_out)
{
    *purpose_out = WG_READ_REGULAR;
    schedule->is_jittered = wants_jitter(schedule, account);
    if (schedule->last_ns == 0)
        return now_ns;
    const uint64_t regular_ns = next_regular(schedule, account);
    uint64_t next_ns = later(regular_ns, now_ns);
    if (account->has_counter && !account->has_failed) {
        uint64_t wish_ns = 0;
        if (account->ticks.state == WG_TICKS_SEARCHING)
            wish_ns = schedule->last_ns + wg__ticks_search_step_ns(&account->ticks);
        else
            wish_ns = next_cut(schedule, account, regular_ns, now_ns);
        if (wish_ns != 0 && wish_ns < next_ns) {
            next_ns = later(wish_ns, now_ns);
            *purpose_out = WG_READ_TICK;
        }
    }
    if (edge_ns != 0 && wg__schedule_wants_edge(schedule, account, now_ns)) {
        const uint64_t wish_ns = next_for_edge(schedule, account, edge_ns, now_ns);
        if (wish_ns != 0 && wish_ns < next_ns) {
            next_ns = wish_ns;
            *purpose_out = WG_READ_EDGE;
        }
    }
    return next_ns;
}

bool wg__schedule_is_slow(const struct wg_schedule *schedule, uint64_t now_ns)
{
    return now_ns + schedule->period_ns / 2 >= schedule->slow_ns;
}

uint64_t wg__schedule_look_ns(const struct wg_account *account, uint64_t now_ns)
{
    const struct wg_ticks *ticks = &account->ticks;
    if (!account->has_counter || ticks->state != WG_TICKS_LOCKED || account->is_stuck)
        return now_ns + LOOK_NS;
    /* Early enough to be woken late. */
    const uint64_t early_ns = (uint64_t)(LOOK_SHARE * ticks->period_ns);
    double half_ns;
    const uint64_t tick_ns = wg__ticks_next(ticks, now_ns + early_ns + MARGIN_NS, &half_ns);
    return later(before(ticks, tick_ns, half_ns) - early_ns, now_ns + MARGIN_NS);
}

void wg__schedule_done(struct wg_schedule *schedule, uint64_t t_ns, enum wg_read_purpose purpose,
                       bool was_slow)
{
    schedule->last_ns = t_ns;
    if (was_slow)
        schedule->slow_ns = t_ns + SLOW_NS;
    if (purpose == WG_READ_EDGE) {
        schedule->edges_left = edges_left(schedule, t_ns) - 1;
        schedule->edges_ns = t_ns;
    }
    if (purpose != WG_READ_REGULAR)
        return;
    schedule->last_regular_ns = t_ns;
    /* The next place of the grid; those that a late read has missed are gone. A read that came a
     * little early (moved to a tick) took its place too. */
    const uint64_t done_ns = t_ns - (uint64_t)off_grid_ns(schedule) + schedule->period_ns / 2;
    schedule->place = wg__rng_uniform(&schedule->rng) - 0.5;
    if (done_ns >= schedule->regular_ns) {
        const uint64_t behind_ns = done_ns - schedule->regular_ns;
        schedule->regular_ns += (behind_ns / schedule->period_ns + 1) * schedule->period_ns;
    }
}
