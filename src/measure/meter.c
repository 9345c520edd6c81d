/* SPDX-License-Identifier: MIT
 *
 * A meter's life.
 *
 * Closing waits for each thread that answers, which is at most one driver call. A thread whose call
 * has hung is left behind: it holds the meter's memory, and the machine the device's, until the
 * call returns, if it ever does.
 *
 * Owns: see meter.h.    Threads: see include/wattgov/window.h.
 */
#include "measure/meter.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"

static const uint64_t MILLISECOND_NS = 1000000U;
enum { PERIOD_MS = 100, PERIOD_MAX_MS = 60000, STACK_SIZE = 256 * 1024 };

/* -- Tracks ----------------------------------------------------------------------------------- */

/* The sampling period of a device: a counter that wraps is read at least twice a round. */
static uint64_t period_of(const struct wg_device_info *info, uint64_t period_ns)
{
    const double wrap_s = info->meters[WG_METRIC_ENERGY_J].wrap_s;
    const double half_round_ns = wrap_s * 0.5e9;
    return half_round_ns > 1e6 && half_round_ns < (double)period_ns ? (uint64_t)half_round_ns
                                                                    : period_ns;
}

static bool track_init(struct wg_track *track, struct wg_meter *meter, size_t position)
{
    track->meter = meter;
    track->device = wg_machine_device(meter->machine, position);
    const struct wg_device_info *info = wg_device_get_info(track->device);
    track->is_shared = info->is_mig;
    track->counts_in_total = info->counts_in_total;
    const uint64_t period_ns = period_of(info, meter->period_ns);
    wg__account_init(&track->account, info, period_ns);
    wg__schedule_init(&track->schedule, period_ns, meter->has_edges, wg__clock_ns());
    atomic_store(&track->power_w, (double)NAN);
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return false;
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    const bool has_cond = pthread_cond_init(&track->changed, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    if (!has_cond)
        return false;
    if (pthread_mutex_init(&track->lock, NULL) != 0) {
        (void)pthread_cond_destroy(&track->changed);
        return false;
    }
    return true;
}

/* Signals belong to the program: the thread blocks them all. */
static bool track_start(struct wg_track *track)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    (void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    track->is_running = true;
    (void)atomic_fetch_add(&track->meter->holds, 1);
    const int status = pthread_create(&track->thread, &attributes, wg__track_run, track);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    /* A failed call may have written to `thread` all the same: it says nothing. */
    track->has_thread = status == 0;
    if (!track->has_thread) {
        track->is_running = false;
        (void)atomic_fetch_sub(&track->meter->holds, 1);
    }
    return track->has_thread;
}

static void track_stop(struct wg_track *track)
{
    (void)pthread_mutex_lock(&track->lock);
    while (track->is_running) {
        wg__track_wait(track, UINT64_MAX);
        if (!track->is_running)
            break;
        (void)pthread_mutex_unlock(&track->lock);
        const bool is_hung = wg__track_check_hung(track, wg__clock_ns());
        (void)pthread_mutex_lock(&track->lock);
        if (is_hung)
            break;
    }
    const bool has_ended = !track->is_running;
    (void)pthread_mutex_unlock(&track->lock);
    if (has_ended)
        (void)pthread_join(track->thread, NULL);
    else
        (void)pthread_detach(track->thread);
}

/* -- Meter ------------------------------------------------------------------------------------ */

static void meter_free(struct wg_meter *meter)
{
    for (size_t i = 0; i < meter->track_count; i++) {
        (void)pthread_mutex_destroy(&meter->tracks[i].lock);
        (void)pthread_cond_destroy(&meter->tracks[i].changed);
    }
    while (meter->pool) {
        struct wg_window *window = meter->pool;
        meter->pool = window->older;
        wg__free(window);
    }
    (void)pthread_mutex_destroy(&meter->lock);
    if (meter->here)
        (void)munmap(meter->here, sizeof *meter->here);
    wg__free(meter);
}

void wg__meter_unref(struct wg_meter *meter)
{
    if (atomic_fetch_sub(&meter->holds, 1) == 1)
        meter_free(meter);
}

/* A system call in every begin and end would cost a cold cache more than all else of them, so a
 * child is known by a page that it does not inherit. Old kernels lack that: NULL. */
static atomic_uint *page_of_this_process(void)
{
    const size_t size = sizeof(atomic_uint);
    const int kind = MAP_PRIVATE | MAP_ANONYMOUS;
    /* cppcheck-suppress invalidFunctionArg ; -1 is what anonymous memory asks for */
    atomic_uint *page = mmap(NULL, size, PROT_READ | PROT_WRITE, kind, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        (void)munmap(page, size);
        return NULL;
    }
    atomic_store(page, 1);
    return page;
}

static struct wg_meter *meter_new(struct wg_machine *machine, const struct wg_meter_opts *opts)
{
    const size_t count = wg_machine_device_count(machine);
    struct wg_meter *meter = wg__alloc_zeroed(1, sizeof *meter + count * sizeof meter->tracks[0]);
    if (!meter)
        return NULL;
    atomic_store(&meter->holds, 1);
    meter->pid = getpid();
    meter->machine = machine;
    const unsigned period_ms = opts && opts->sample_period_ms ? opts->sample_period_ms : PERIOD_MS;
    meter->period_ns = period_ms * MILLISECOND_NS;
    meter->timeout_ns = wg__machine_call_timeout_ns(machine);
    meter->has_edges = !(opts && opts->without_edges);
    if (pthread_mutex_init(&meter->lock, NULL) != 0) {
        wg__free(meter);
        return NULL;
    }
    meter->here = page_of_this_process();
    for (; meter->track_count < count; meter->track_count++)
        if (!track_init(&meter->tracks[meter->track_count], meter, meter->track_count)) {
            meter_free(meter);
            return NULL;
        }
    return meter;
}

enum wg_code wg_meter_open(struct wg_meter **out, struct wg_machine *machine,
                           const struct wg_meter_opts *opts, struct wg_error *err)
{
    if (opts && opts->sample_period_ms > PERIOD_MAX_MS)
        return wg__fail(err, WG_EINVAL, "a sampling period of %u ms is outside 1..%d ms",
                        opts->sample_period_ms, PERIOD_MAX_MS);
    struct wg_meter *meter = meter_new(machine, opts);
    if (!meter)
        return wg__fail(err, WG_ENOMEM, "opening a meter: out of memory");
    for (size_t i = 0; i < meter->track_count; i++) {
        if (track_start(&meter->tracks[i]))
            continue;
        wg_meter_close(meter);
        return wg__fail(err, WG_EIO, "opening a meter: no thread for device %zu of %zu", i + 1,
                        wg_machine_device_count(machine));
    }
    *out = meter;
    return WG_OK;
}

void wg_meter_close(struct wg_meter *meter)
{
    if (!meter || wg__meter_is_foreign(meter))
        return; /* the child of a fork has none of the threads: nothing there can be stopped */
    atomic_store(&meter->is_closed, true);
    wg__meter_ring(meter);
    for (size_t i = 0; i < meter->track_count; i++)
        if (meter->tracks[i].has_thread)
            track_stop(&meter->tracks[i]);
    wg__meter_unref(meter);
}

static enum wg_code check_alive(const struct wg_meter *meter, struct wg_error *err)
{
    if (!wg__meter_is_foreign(meter))
        return WG_OK;
    return wg__fail(err, WG_ESTATE,
                    "this meter belongs to process %ld, which forked: open one in the child",
                    (long)meter->pid);
}

enum wg_code wg_meter_latest(struct wg_meter *meter, size_t device, struct wg_sample *out,
                             struct wg_error *err)
{
    if (check_alive(meter, err) != WG_OK)
        return WG_ESTATE;
    if (device >= meter->track_count)
        return wg__fail(err, WG_EINVAL, "there is no device %zu, only %zu", device,
                        meter->track_count);
    struct wg_track *track = &meter->tracks[device];
    (void)wg__track_check_hung(track, wg__clock_ns());
    enum wg_code code = WG_OK;
    (void)pthread_mutex_lock(&track->lock);
    if (track->is_down || (!track->has_sample && track->failures > 0)) {
        code = track->error.code;
        if (err)
            *err = track->error;
    } else if (!track->has_sample) {
        code = wg__fail(err, WG_ESTATE, "device %zu has not been read yet", device);
    } else {
        *out = track->latest;
    }
    (void)pthread_mutex_unlock(&track->lock);
    return code;
}

enum wg_code wg_meter_wait_ready(struct wg_meter *meter, unsigned timeout_ms, struct wg_error *err)
{
    if (check_alive(meter, err) != WG_OK)
        return WG_ESTATE;
    const uint64_t until_ns = wg__clock_ns() + timeout_ms * MILLISECOND_NS;
    for (size_t i = 0; i < meter->track_count; i++) {
        struct wg_track *track = &meter->tracks[i];
        (void)pthread_mutex_lock(&track->lock);
        while (!track->has_sample && track->failures == 0 && !track->is_hung) {
            if (wg__clock_ns() >= until_ns) {
                (void)pthread_mutex_unlock(&track->lock);
                return wg__fail(err, WG_ETIMEOUT, "%s has not answered within %u ms",
                                wg_device_get_info(track->device)->label, timeout_ms);
            }
            wg__track_wait(track, until_ns);
            (void)pthread_mutex_unlock(&track->lock);
            (void)wg__track_check_hung(track, wg__clock_ns());
            (void)pthread_mutex_lock(&track->lock);
        }
        (void)pthread_mutex_unlock(&track->lock);
    }
    return WG_OK;
}
