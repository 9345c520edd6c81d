/* SPDX-License-Identifier: MIT
 *
 * Windows: two moments, and what lies between them.
 *
 * `begin` links one slot into each of its tracks; `end` is one atomic store. The marks at both
 * moments are taken by the tracks' threads, at the latest with the next regular sample. A read that
 * cannot have them (an open window, a device that is down) computes from what is known by then, and
 * goes on with the last power where the device still answers.
 *
 * Owns: see meter.h.    Threads: see include/wattgov/window.h.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "measure/meter.h"

enum { POOL_MAX = 64 };
static const uint64_t PATIENCE_NS = 250000000; /* beyond two periods, for a slow driver */

/* -- Pool and names --------------------------------------------------------------------------- */

/* Cut between characters, not within one. */
static void copy_name(char *out, const char *name)
{
    size_t length = name ? strnlen(name, WG_WINDOW_NAME_SIZE) : 0;
    if (length >= WG_WINDOW_NAME_SIZE) {
        length = WG_WINDOW_NAME_SIZE - 1;
        while (length > 0 && ((unsigned char)name[length] & 0xC0) == 0x80)
            length--;
    }
    if (length > 0)
        memcpy(out, name, length);
    out[length] = '\0';
}

/* A window from the pool, else a new one, listed among those that may be found. */
static struct wg_window *take_window(struct wg_meter *meter, const char *name)
{
    (void)pthread_mutex_lock(&meter->lock);
    struct wg_window *window = meter->pool;
    if (window) {
        meter->pool = window->older;
        meter->pooled--;
    } else {
        window = wg__alloc(sizeof *window + meter->track_count * sizeof window->slots[0]);
    }
    if (window) {
        window->meter = meter;
        window->count = 0; /* whoever finds it by name before it has begun does no harm */
        copy_name(window->name, name);
        atomic_store(&window->end_ns, 0);
        window->newer = NULL;
        window->older = meter->newest;
        if (meter->newest)
            meter->newest->newer = window;
        meter->newest = window;
    }
    (void)pthread_mutex_unlock(&meter->lock);
    return window;
}

static void give_window(struct wg_window *window)
{
    struct wg_meter *meter = window->meter;
    (void)pthread_mutex_lock(&meter->lock);
    if (window->older)
        window->older->newer = window->newer;
    if (window->newer)
        window->newer->older = window->older;
    else
        meter->newest = window->older;
    const bool is_kept = meter->pooled < POOL_MAX && !atomic_load(&meter->is_closed);
    if (is_kept) {
        window->older = meter->pool;
        meter->pool = window;
        meter->pooled++;
    }
    (void)pthread_mutex_unlock(&meter->lock);
    if (!is_kept)
        wg__free(window);
    wg__meter_unref(meter);
}

struct wg_window *wg_window_find(struct wg_meter *meter, const char *name)
{
    if (wg__meter_is_foreign(meter))
        return NULL;
    (void)pthread_mutex_lock(&meter->lock);
    struct wg_window *window = meter->newest;
    while (window && (atomic_load(&window->end_ns) != 0 || strcmp(window->name, name) != 0))
        window = window->older;
    (void)pthread_mutex_unlock(&meter->lock);
    return window;
}

const char *wg_window_name(const struct wg_window *window)
{
    return window->name;
}

/* -- Begin and end ---------------------------------------------------------------------------- */

static void link_slot(struct wg_track *track, struct wg_slot_link *slot)
{
    (void)pthread_mutex_lock(&track->lock);
    slot->next = track->slots;
    slot->before = &track->slots;
    if (slot->next)
        slot->next->before = &slot->next;
    track->slots = slot;
    (void)pthread_mutex_unlock(&track->lock);
}

static void window_init(struct wg_window *window, struct wg_meter *meter, const size_t *devices,
                        size_t count)
{
    (void)atomic_fetch_add(&meter->holds, 1);
    window->peak_w = NAN;
    window->count = count;
    bool has_leader = false;
    for (size_t i = 0; i < count; i++) {
        struct wg_slot_link *slot = &window->slots[i];
        slot->window = window;
        slot->track = devices ? devices[i] : i;
        slot->has_from = slot->has_to = false;
        slot->flags = 0;
        slot->peak_w = NAN;
        slot->is_leader = !has_leader && meter->tracks[slot->track].counts_in_total;
        has_leader = has_leader || slot->is_leader;
    }
}

static bool helps_to_ring(const struct wg_window *window)
{
    for (size_t i = 0; i < window->count; i++)
        if (atomic_load(&window->meter->tracks[window->slots[i].track].wants_ring))
            return true;
    return false;
}

/* A device that is given twice would count twice. */
static enum wg_code check_devices(const struct wg_meter *meter, const char *name,
                                  const size_t *devices, size_t count, struct wg_error *err)
{
    if (count > meter->track_count)
        return wg__fail(err, WG_EINVAL, "window '%s' over %zu devices, there are %zu", name, count,
                        meter->track_count);
    for (size_t i = 0; i < count; i++) {
        if (devices[i] >= meter->track_count)
            return wg__fail(err, WG_EINVAL, "window '%s': there is no device %zu, only %zu", name,
                            devices[i], meter->track_count);
        for (size_t other = 0; other < i; other++)
            if (devices[other] == devices[i])
                return wg__fail(err, WG_EINVAL, "window '%s': device %zu (%s) is given twice", name,
                                devices[i],
                                wg_device_get_info(meter->tracks[devices[i]].device)->label);
    }
    return WG_OK;
}

enum wg_code wg_window_begin(struct wg_window **out, struct wg_meter *meter, const char *name,
                             const size_t *devices, size_t device_count, struct wg_error *err)
{
    if (wg__meter_is_foreign(meter))
        return wg__fail(err, WG_ESTATE,
                        "beginning window '%s' after fork: open a meter of your own",
                        name ? name : "");
    const size_t count = devices ? device_count : meter->track_count;
    if (devices && check_devices(meter, name ? name : "", devices, count, err) != WG_OK)
        return WG_EINVAL;
    struct wg_window *window = take_window(meter, name);
    if (!window)
        return wg__fail(err, WG_ENOMEM, "beginning window '%s': out of memory", name ? name : "");
    window_init(window, meter, devices, count);
    window->begin_ns = wg__clock_ns();
    for (size_t i = 0; i < count; i++)
        link_slot(&meter->tracks[window->slots[i].track], &window->slots[i]);
    atomic_store(&meter->last_edge_ns, window->begin_ns);
    if (helps_to_ring(window))
        wg__meter_ring(meter);
    *out = window;
    return WG_OK;
}

void wg_window_end(struct wg_window *window)
{
    uint64_t open = 0;
    if (wg__meter_is_foreign(window->meter) ||
        !atomic_compare_exchange_strong(&window->end_ns, &open, wg__clock_ns()))
        return;
    atomic_store(&window->meter->last_edge_ns, atomic_load(&window->end_ns));
    if (helps_to_ring(window))
        wg__meter_ring(window->meter);
}

void wg_window_free(struct wg_window *window)
{
    if (!window || wg__meter_is_foreign(window->meter))
        return;
    for (size_t i = 0; i < window->count; i++) {
        struct wg_slot_link *slot = &window->slots[i];
        struct wg_track *track = &window->meter->tracks[slot->track];
        (void)pthread_mutex_lock(&track->lock);
        if (!slot->has_to)
            wg__slot_unlink(slot);
        (void)pthread_mutex_unlock(&track->lock);
    }
    give_window(window);
}

/* -- Read ------------------------------------------------------------------------------------- */

/* Waits for the mark at the end. Locked; in vain when the device is down, or too slow. */
static void wait_for_end(struct wg_track *track, const struct wg_slot_link *slot)
{
    const double period_s = wg__account_period_s(&track->account);
    const uint64_t update_ns = isnan(period_s) ? 0 : (uint64_t)(period_s * 1e9);
    const uint64_t period_ns = track->schedule.period_ns;
    const uint64_t end_ns = atomic_load(&slot->window->end_ns);
    const uint64_t until_ns = end_ns + track->account.power.delay_ns +
                              2 * (update_ns > period_ns ? update_ns : period_ns) + PATIENCE_NS;
    for (;;) {
        wg__track_settle(track);
        const uint64_t now_ns = wg__clock_ns();
        const bool is_busy = atomic_load(&track->busy_since_ns) != 0;
        if (slot->has_to || track->is_down || atomic_load(&track->meter->is_closed) ||
            (now_ns >= until_ns && !is_busy) || wg__account_stands_at(&track->account, end_ns))
            return;
        wg__track_wait(track, is_busy ? UINT64_MAX : until_ns);
        (void)pthread_mutex_unlock(&track->lock);
        (void)wg__track_check_hung(track, wg__clock_ns());
        (void)pthread_mutex_lock(&track->lock);
    }
}

/* The sums at `t_ns` by what is known now; where the device answers, it goes on as it was. */
static void take_early(struct wg_mark *mark, const struct wg_track *track, uint64_t t_ns)
{
    const struct wg_account *account = &track->account;
    wg__mark_take(mark, account, t_ns);
    struct wg_line_point point;
    if (track->is_down || !wg__account_extend(account, t_ns, true, &point))
        return;
    memcpy(mark->energy.sums, point.sums, sizeof mark->energy.sums);
    mark->energy.error = point.error;
    mark->energy.distance_ns = 0;
}

/* What is known now of a window whose marks have not come. Who is told it of an ended window may
 * add it up with others: so it is made final. Of a line that has not begun there is nothing to
 * keep. */
static void settle_for_less(struct wg_slot_link *slot, struct wg_track *track, uint64_t end_ns,
                            bool is_open)
{
    struct wg_account *account = &track->account;
    const struct wg_line_point *last = wg__line_last(&account->energy);
    if (track->is_down)
        slot->flags =
            track->is_hung ? WG_WINDOW_HUNG | WG_WINDOW_GAP : WG_WINDOW_LOST | WG_WINDOW_GAP;
    else if (!is_open)
        wg__account_tell(account, end_ns, true);
    if (!slot->has_from)
        take_early(&slot->from, track, slot->window->begin_ns);
    take_early(&slot->to, track, end_ns);
    if (is_open || !last)
        return;
    /* The marks of a device that is down say how long it was silent; the line must not go back. */
    wg__account_tell(account, end_ns, false);
    slot->has_from = slot->has_to = true;
    wg__slot_unlink(slot);
}

static void read_slot(struct wg_slot_link *slot, uint64_t end_ns, bool is_open,
                      struct wg_window_result *out, double *peak_out)
{
    struct wg_track *track = &slot->window->meter->tracks[slot->track];
    (void)wg__track_check_hung(track, wg__clock_ns());
    (void)pthread_mutex_lock(&track->lock);
    if (is_open)
        wg__track_settle(track);
    else
        wait_for_end(track, slot);
    if (!slot->has_to)
        settle_for_less(slot, track, end_ns, is_open);
    wg__result_between(out, &slot->from, &slot->to, slot->peak_w);
    out->flags |= slot->flags;
    if (!slot->has_to)
        slot->flags = 0; /* what is not final may turn out better */
    if (track->is_shared)
        out->flags |= WG_WINDOW_SHARED;
    if (slot->is_leader)
        *peak_out = slot->window->peak_w;
    (void)pthread_mutex_unlock(&track->lock);
}

enum wg_code wg_window_read(struct wg_window *window, struct wg_window_result *total,
                            struct wg_window_result *devices, size_t capacity, struct wg_error *err)
{
    const struct wg_meter *meter = window->meter;
    if (wg__meter_is_foreign(meter) || atomic_load(&meter->is_closed))
        return wg__fail(err, WG_ESTATE, "window '%s': its meter %s", window->name,
                        wg__meter_is_foreign(meter) ? "stayed in the process that forked"
                                                    : "is closed");
    uint64_t end_ns = atomic_load(&window->end_ns);
    const bool is_open = end_ns == 0;
    if (is_open)
        end_ns = wg__clock_ns();
    struct wg_window_result sum;
    wg__result_nothing(&sum, (double)(end_ns - window->begin_ns) * 1e-9);
    double peak_w = NAN;
    bool is_first = true;
    for (size_t i = 0; i < window->count; i++) {
        struct wg_window_result one;
        read_slot(&window->slots[i], end_ns, is_open, &one, &peak_w);
        if (devices && i < capacity)
            devices[i] = one;
        if (!meter->tracks[window->slots[i].track].counts_in_total)
            continue;
        wg__result_add(&sum, &one, is_first);
        is_first = false;
    }
    wg__result_finish(&sum, peak_w);
    *total = sum;
    return WG_OK;
}
