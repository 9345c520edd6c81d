/* SPDX-License-Identifier: MIT
 *
 * The threads that read lists of processes; see process_reader.h.
 */
#include "cli/process_reader.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "wattgov/device.h"

static const uint64_t ns_per_s = 1000000000;
static const uint64_t stop_patience_ns = 200000000; /* a list takes a driver some milliseconds */

struct seat {
    struct wg_process_reader *reader;
    struct wg_device *device;
    pthread_t thread;
    struct wg_process_list working; /* of the thread alone */
    /* Under the lock: */
    struct wg_process_list newest;
    bool is_new;
    bool has_thread;
    bool is_asked;
    bool is_awaited; /* by the next wait */
};

struct wg_process_reader {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* something was asked or answered, a thread has ended, or all stop */
    bool is_stopping;
    size_t thread_count; /* that have not ended */
    /* Not changed while threads run: */
    bool with_names;
    const char *root;
    struct seat *seats; /* one a device; without a thread where it is no GPU */
    size_t seat_count;
};

static void exchange(struct wg_process_list *a, struct wg_process_list *b)
{
    const struct wg_process_list kept = *a;
    *a = *b;
    *b = kept;
}

static void *answer(void *context)
{
    struct seat *seat = context;
    struct wg_process_reader *reader = seat->reader;
    (void)pthread_mutex_lock(&reader->lock);
    for (;;) {
        while (!reader->is_stopping && !seat->is_asked)
            (void)pthread_cond_wait(&reader->changed, &reader->lock);
        if (reader->is_stopping)
            break;
        (void)pthread_mutex_unlock(&reader->lock);
        /* On an error the list is empty, which is what there is to show. */
        (void)wg__process_list_read(&seat->working, seat->device, reader->with_names, reader->root,
                                    NULL);
        (void)pthread_mutex_lock(&reader->lock);
        exchange(&seat->working, &seat->newest);
        seat->is_new = true;
        seat->is_asked = false;
        seat->is_awaited = false;
        (void)pthread_cond_broadcast(&reader->changed);
    }
    reader->thread_count--;
    (void)pthread_cond_broadcast(&reader->changed);
    (void)pthread_mutex_unlock(&reader->lock);
    return NULL;
}

/* A condition whose time is CLOCK_MONOTONIC. */
static void init_locks(struct wg_process_reader *reader)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&reader->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_mutex_init(&reader->lock, NULL);
}

/* Signals belong to the program: the thread blocks them all. */
static enum wg_code seat_start(struct seat *seat, struct wg_error *err)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    (void)pthread_mutex_lock(&seat->reader->lock);
    const int failure = pthread_create(&seat->thread, NULL, answer, seat);
    seat->has_thread = failure == 0;
    seat->reader->thread_count += failure == 0 ? 1 : 0;
    (void)pthread_mutex_unlock(&seat->reader->lock);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure == 0 ? WG_OK : wg__fail_errno(err, failure, "cannot start a thread for a GPU");
}

enum wg_code wg__process_reader_start(struct wg_process_reader **out, struct wg_machine *machine,
                                      bool with_names, const char *root, struct wg_error *err)
{
    const size_t count = wg_machine_device_count(machine);
    struct wg_process_reader *reader = wg__alloc_zeroed(1, sizeof *reader);
    struct seat *seats = wg__alloc_zeroed(count + 1, sizeof *seats);
    if (reader == NULL || seats == NULL) {
        wg__free(reader);
        wg__free(seats);
        return wg__fail(err, WG_ENOMEM, "out of memory for lists of processes");
    }
    *reader = (struct wg_process_reader){
        .with_names = with_names, .root = root, .seats = seats, .seat_count = count};
    init_locks(reader);
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < count && code == WG_OK; i++) {
        seats[i] = (struct seat){.reader = reader, .device = wg_machine_device(machine, i)};
        if (wg_device_get_info(seats[i].device)->kind == WG_DEVICE_GPU)
            code = seat_start(&seats[i], err);
    }
    if (code == WG_OK)
        *out = reader;
    else
        (void)wg__process_reader_stop(reader); /* none was asked, so none hangs */
    return code;
}

void wg__process_reader_ask(struct wg_process_reader *reader, size_t position)
{
    struct seat *seat = &reader->seats[position];
    (void)pthread_mutex_lock(&reader->lock);
    if (seat->has_thread && !seat->is_asked) {
        seat->is_asked = true;
        seat->is_awaited = true;
        (void)pthread_cond_broadcast(&reader->changed);
    }
    (void)pthread_mutex_unlock(&reader->lock);
}

static bool is_awaited(const struct wg_process_reader *reader)
{
    for (size_t i = 0; i < reader->seat_count; i++)
        if (reader->seats[i].is_awaited)
            return true;
    return false;
}

static struct timespec moment_after(uint64_t patience_ns)
{
    const uint64_t until_ns = wg__clock_ns() + patience_ns;
    return (struct timespec){.tv_sec = (time_t)(until_ns / ns_per_s),
                             .tv_nsec = (long)(until_ns % ns_per_s)};
}

void wg__process_reader_wait(struct wg_process_reader *reader, uint64_t patience_ns)
{
    const struct timespec until = moment_after(patience_ns);
    int failure = 0;
    (void)pthread_mutex_lock(&reader->lock);
    while (is_awaited(reader) && failure == 0)
        failure = pthread_cond_timedwait(&reader->changed, &reader->lock, &until);
    for (size_t i = 0; i < reader->seat_count; i++)
        reader->seats[i].is_awaited = false;
    (void)pthread_mutex_unlock(&reader->lock);
}

void wg__process_reader_get(struct wg_process_reader *reader, size_t position,
                            struct wg_process_list *list)
{
    struct seat *seat = &reader->seats[position];
    (void)pthread_mutex_lock(&reader->lock);
    if (seat->is_new)
        exchange(&seat->newest, list);
    seat->is_new = false;
    (void)pthread_mutex_unlock(&reader->lock);
}

bool wg__process_reader_stop(struct wg_process_reader *reader)
{
    if (reader == NULL)
        return true;
    const struct timespec until = moment_after(stop_patience_ns);
    int failure = 0;
    (void)pthread_mutex_lock(&reader->lock);
    reader->is_stopping = true;
    (void)pthread_cond_broadcast(&reader->changed);
    while (reader->thread_count > 0 && failure == 0)
        failure = pthread_cond_timedwait(&reader->changed, &reader->lock, &until);
    const bool have_ended = reader->thread_count == 0;
    (void)pthread_mutex_unlock(&reader->lock);
    for (size_t i = 0; i < reader->seat_count; i++) {
        struct seat *seat = &reader->seats[i];
        if (seat->has_thread && have_ended)
            (void)pthread_join(seat->thread, NULL);
        else if (seat->has_thread)
            (void)pthread_detach(seat->thread);
    }
    if (!have_ended)
        return false;
    for (size_t i = 0; i < reader->seat_count; i++) {
        wg__process_list_fini(&reader->seats[i].working);
        wg__process_list_fini(&reader->seats[i].newest);
    }
    (void)pthread_cond_destroy(&reader->changed);
    (void)pthread_mutex_destroy(&reader->lock);
    wg__free(reader->seats);
    wg__free(reader);
    return true;
}
