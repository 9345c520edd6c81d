/* SPDX-License-Identifier: MIT
 *
 * The thread of a track: sleep, read, account, settle.
 *
 * Times of reads are absolute (no drift), and one that was missed is skipped (no burst). After a
 * failure the next read comes one period later, then after 1 s, 2 s, ... 30 s; the time between is
 * a gap. While the machine is quiescent a read answers at once and costs no driver anything, so it
 * is simply tried again each period.
 *
 * Threads: see meter.h.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "measure/meter.h"

static const uint64_t SECOND_NS = 1000000000U;
static const uint64_t BACKOFF_MAX_NS = 30000000000U;
static const uint64_t LONGEST_WAIT_NS = 50000000; /* between two looks at a call that may hang */
static const uint64_t LIVELY_NS = 3000000000U;    /* after an edge, others are expected */
enum { FAILURES_DOWN = 2, WAKES = 2, WATCHES = 10 /* in a timeout */ };

static struct timespec timespec_of(uint64_t t_ns)
{
    return (struct timespec){.tv_sec = (time_t)(t_ns / SECOND_NS),
                             .tv_nsec = (long)(t_ns % SECOND_NS)};
}

/* -- The bell --------------------------------------------------------------------------------- */

static void wake(struct wg_meter *meter, int count)
{
    if (atomic_load(&meter->sleepers) > 0)
        (void)syscall(SYS_futex, &meter->rings, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

void wg__meter_ring(struct wg_meter *meter)
{
    (void)atomic_fetch_add(&meter->rings, 1);
    wake(meter, atomic_load(&meter->is_closed) ? INT_MAX : WAKES);
}

/* Sleeps until `until_ns`, or until the bell has rung since `rings` was read. True: the time has
 * come. */
static bool sleep_until(struct wg_meter *meter, uint32_t rings, uint64_t until_ns)
{
    const struct timespec until = timespec_of(until_ns);
    (void)atomic_fetch_add(&meter->sleepers, 1);
    const long status = syscall(SYS_futex, &meter->rings, FUTEX_WAIT_BITSET_PRIVATE, rings, &until,
                                NULL, FUTEX_BITSET_MATCH_ANY);
    const bool has_come = status != 0 && errno == ETIMEDOUT;
    (void)atomic_fetch_sub(&meter->sleepers, 1);
    return has_come;
}

/* -- Marks ------------------------------------------------------------------------------------ */

void wg__slot_unlink(struct wg_slot_link *slot)
{
    *slot->before = slot->next;
    if (slot->next)
        slot->next->before = slot->before;
    slot->before = NULL;
}

void wg__track_settle(struct wg_track *track)
{
    bool has_settled = false;
    struct wg_slot_link *next;
    for (struct wg_slot_link *slot = track->slots; slot; slot = next) {
        next = slot->next;
        const uint64_t begin_ns = slot->window->begin_ns;
        const uint64_t end_ns = atomic_load(&slot->window->end_ns);
        if (!slot->has_from && wg__account_reaches(&track->account, begin_ns)) {
            wg__mark_take(&slot->from, &track->account, begin_ns);
            slot->has_from = true;
        }
        if (slot->has_from && end_ns != 0 && wg__account_reaches(&track->account, end_ns)) {
            wg__mark_take(&slot->to, &track->account, end_ns);
            slot->has_to = has_settled = true;
            wg__slot_unlink(slot);
        }
    }
    if (has_settled)
        (void)pthread_cond_broadcast(&track->changed);
}

/* The oldest edge that waits for its mark; 0: none. */
static uint64_t oldest_edge(const struct wg_track *track)
{
    uint64_t oldest_ns = 0;
    for (const struct wg_slot_link *slot = track->slots; slot; slot = slot->next) {
        const uint64_t edge_ns =
            slot->has_from ? (uint64_t)atomic_load(&slot->window->end_ns) : slot->window->begin_ns;
        if (edge_ns != 0 && (oldest_ns == 0 || edge_ns < oldest_ns))
            oldest_ns = edge_ns;
    }
    return oldest_ns;
}

/* Power of a window's devices together, now. */
static double total_power(const struct wg_window *window)
{
    double sum_w = NAN;
    for (size_t i = 0; i < window->count; i++) {
        struct wg_track *track = &window->meter->tracks[window->slots[i].track];
        const double power_w = atomic_load(&track->power_w);
        if (track->counts_in_total && !isnan(power_w))
            sum_w = (isnan(sum_w) ? 0 : sum_w) + power_w;
    }
    return sum_w;
}

static void keep_peaks(struct wg_track *track, uint64_t t_ns)
{
    const double power_w = track->account.power_now_w;
    atomic_store(&track->power_w, power_w);
    for (struct wg_slot_link *slot = track->slots; slot; slot = slot->next) {
        const uint64_t end_ns = atomic_load(&slot->window->end_ns);
        if (t_ns < slot->window->begin_ns || (end_ns != 0 && t_ns > end_ns))
            continue;
        slot->peak_w = fmax(slot->peak_w, power_w);
        if (slot->is_leader)
            slot->window->peak_w = fmax(slot->window->peak_w, total_power(slot->window));
    }
}

/* -- Reading ---------------------------------------------------------------------------------- */

static uint32_t wanted_of(const struct wg_track *track, bool is_slow)
{
    const uint32_t fast = 1U << WG_METRIC_ENERGY_J | 1U << WG_METRIC_THROTTLED_POWER_S |
                          1U << WG_METRIC_THROTTLED_THERMAL_S | 1U << track->account.power_metric;
    return is_slow ? UINT32_MAX : fast;
}

/* The newest values of everything: those that this sample lacks stay. */
static void keep_latest(struct wg_track *track, const struct wg_sample *sample, bool is_slow)
{
    if (is_slow) {
        track->latest = *sample;
    } else {
        for (size_t i = 0; i < WG_METRIC_COUNT; i++)
            if (wg__sample_has(sample, (enum wg_metric)i))
                track->latest.values[i] = sample->values[i];
        track->latest.present |= sample->present;
        track->latest.t_ns = sample->t_ns;
        track->latest.span_ns = sample->span_ns;
        if (sample->has_throttle) {
            track->latest.has_throttle = true;
            track->latest.throttle = sample->throttle;
        }
    }
    track->has_sample = true;
}

static void take_sample(struct wg_track *track, const struct wg_sample *sample, bool is_slow)
{
    struct wg_clock_offsets offsets;
    wg__clock_offsets(&offsets.sleep_ns, &offsets.wall_ns);
    wg__account_add(&track->account, sample, &offsets);
    keep_latest(track, sample, is_slow);
    track->failures = 0;
    track->is_down = track->is_hung = false;
    track->retry_ns = 0;
    keep_peaks(track, sample->t_ns);
}

static void take_failure(struct wg_track *track, const struct wg_error *err, uint64_t now_ns)
{
    const struct wg_meter *meter = track->meter;
    wg__account_fail(&track->account, track->is_hung);
    track->error = *err;
    track->failures++;
    const bool is_quiet = wg__machine_is_quiescent(meter->machine);
    track->is_down =
        track->failures >= FAILURES_DOWN || is_quiet || err->code == WG_ELOST || track->is_hung;
    uint64_t backoff_ns = meter->period_ns;
    if (!is_quiet && track->failures > 1) {
        const unsigned doublings = track->failures < 8 ? track->failures - 2 : 6;
        backoff_ns = SECOND_NS << doublings;
        backoff_ns = backoff_ns < BACKOFF_MAX_NS ? backoff_ns : BACKOFF_MAX_NS;
    }
    track->retry_ns = now_ns + backoff_ns;
}

/* Locked on entry and return, not while the driver is asked. */
static void read_device(struct wg_track *track, enum wg_read_purpose purpose)
{
    const uint64_t now_ns = wg__clock_ns();
    const bool is_slow = wg__schedule_is_slow(&track->schedule, now_ns) || !track->has_sample;
    const uint32_t wanted = wanted_of(track, is_slow);
    wg__schedule_done(&track->schedule, now_ns, purpose, is_slow);
    (void)pthread_mutex_unlock(&track->lock);
    struct wg_sample sample = {0};
    struct wg_error err = {0};
    atomic_store(&track->busy_since_ns, now_ns);
    const enum wg_code code = wg__device_read_blocking(track->device, wanted, &sample, &err);
    atomic_store(&track->busy_since_ns, 0);
    (void)atomic_fetch_add(&track->reads, 1);
    (void)pthread_mutex_lock(&track->lock);
    const bool is_first = !track->has_sample;
    if (code == WG_OK) {
        const bool has_hung = track->is_hung;
        if (has_hung)
            wg__account_fail(&track->account, true);
        take_sample(track, &sample, is_slow);
    } else {
        err.code = code;
        take_failure(track, &err, wg__clock_ns());
    }
    if (is_first || code != WG_OK)
        (void)pthread_cond_broadcast(&track->changed);
}

bool wg__track_check_hung(struct wg_track *track, uint64_t now_ns)
{
    const uint64_t since_ns = atomic_load(&track->busy_since_ns);
    if (since_ns == 0 || now_ns < since_ns + track->meter->timeout_ns)
        return false;
    (void)pthread_mutex_lock(&track->lock);
    /* It may have returned just now, or somebody else was here first. */
    const bool is_news = !track->is_hung && atomic_load(&track->busy_since_ns) == since_ns;
    if (is_news) {
        track->is_hung = track->is_down = true;
        wg__device_abandon(track->device, now_ns - since_ns, &track->error);
        track->error.code = WG_ETIMEOUT;
        wg__account_fail(&track->account, true);
        (void)pthread_cond_broadcast(&track->changed);
    }
    const bool is_hung = track->is_hung;
    (void)pthread_mutex_unlock(&track->lock);
    return is_hung;
}

void wg__track_wait(struct wg_track *track, uint64_t until_ns)
{
    const uint64_t latest_ns = wg__clock_ns() + LONGEST_WAIT_NS;
    const struct timespec until = timespec_of(until_ns < latest_ns ? until_ns : latest_ns);
    (void)pthread_cond_timedwait(&track->changed, &track->lock, &until);
}

/* -- The thread ------------------------------------------------------------------------------- */

/* Looks after the others: a track whose call hangs cannot do so itself. One track at a time, and
 * some times a timeout: each looking at all at each read would be the square of their number. */
static void watch_others(struct wg_track *track, uint64_t now_ns)
{
    struct wg_meter *meter = track->meter;
    uint64_t due_ns = atomic_load(&meter->next_watch_ns);
    if (now_ns < due_ns || !atomic_compare_exchange_strong(&meter->next_watch_ns, &due_ns,
                                                           now_ns + meter->timeout_ns / WATCHES))
        return;
    for (size_t i = 0; i < meter->track_count; i++)
        if (&meter->tracks[i] != track)
            (void)wg__track_check_hung(&meter->tracks[i], now_ns);
}

/* When to look for edges unasked; UINT64_MAX: not, whoever makes one should ring. */
static uint64_t next_look(struct wg_track *track, uint64_t now_ns)
{
    const bool wants_edges =
        track->failures == 0 && wg__schedule_wants_edge(&track->schedule, &track->account, now_ns);
    const bool is_lively = now_ns < atomic_load(&track->meter->last_edge_ns) + LIVELY_NS;
    atomic_store(&track->wants_ring, wants_edges && !is_lively);
    return wants_edges && is_lively ? wg__schedule_look_ns(&track->account, now_ns) : UINT64_MAX;
}

/* One turn: sleeps or reads. Locked on entry and return. */
static void turn(struct wg_track *track)
{
    struct wg_meter *meter = track->meter;
    const uint32_t rings = atomic_load(&meter->rings);
    if (rings != track->seen_rings) {
        track->seen_rings = rings;
        (void)pthread_mutex_unlock(&track->lock);
        wake(meter, WAKES);
        (void)pthread_mutex_lock(&track->lock);
    }
    wg__track_settle(track);
    const uint64_t now_ns = wg__clock_ns();
    enum wg_read_purpose purpose;
    uint64_t next_ns =
        wg__schedule_next(&track->schedule, &track->account, oldest_edge(track), now_ns, &purpose);
    if (next_ns < track->retry_ns)
        next_ns = track->retry_ns;
    const uint64_t look_ns = next_look(track, now_ns);
    if (next_ns > now_ns && look_ns < next_ns) {
        next_ns = look_ns;
        purpose = WG_READ_NONE;
    }
    if (next_ns > now_ns) {
        (void)pthread_mutex_unlock(&track->lock);
        const bool has_come = sleep_until(meter, rings, next_ns);
        (void)pthread_mutex_lock(&track->lock);
        if (!has_come)
            return;
    }
    if (atomic_load(&meter->is_closed) || purpose == WG_READ_NONE)
        return;
    read_device(track, purpose);
    if (purpose == WG_READ_REGULAR) {
        (void)pthread_mutex_unlock(&track->lock);
        watch_others(track, wg__clock_ns());
        (void)pthread_mutex_lock(&track->lock);
    }
}

void *wg__track_run(void *argument)
{
    struct wg_track *track = argument;
    struct wg_meter *meter = track->meter;
    (void)pthread_mutex_lock(&track->lock);
    while (!atomic_load(&meter->is_closed))
        turn(track);
    track->is_running = false;
    (void)pthread_cond_broadcast(&track->changed);
    (void)pthread_mutex_unlock(&track->lock);
    wg__meter_unref(meter);
    return NULL;
}
