/* SPDX-License-Identifier: MIT
 *
 * The threads of a recording; see record_threads.h.
 */
#include "cli/record_threads.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "device/recording.h"
#include "wattgov/device.h"

static const uint64_t ns_per_s = 1000000000;

struct reader {
    struct wg_record_threads *threads;
    struct wg_device *device;
    size_t position;
    pthread_t thread;
};

struct wg_record_threads {
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t stop;  /* is_stopping has become true */
    bool is_stopping;
    bool has_failed;
    struct wg_error failure; /* the first of writing */
    struct wg_recorder *recorder;
    size_t answer_count;
    /* Not changed while threads run: */
    uint64_t interval_ns;
    uint64_t start_ns;
    struct reader *readers;
    size_t reader_count; /* that run */
};

/* Writes an answer; under the lock. */
static void write_answer(struct reader *reader, const struct wg_sample *sample,
                         const struct wg_error *failure)
{
    struct wg_record_threads *threads = reader->threads;
    if (threads->has_failed)
        return;
    struct wg_error err;
    const enum wg_code code =
        failure == NULL ? wg__recorder_add_sample(threads->recorder, reader->position, sample, &err)
                        : wg__recorder_add_error(threads->recorder, reader->position,
                                                 wg__clock_ns(), failure, &err);
    if (code == WG_OK) {
        threads->answer_count++;
        return;
    }
    threads->has_failed = true;
    threads->failure = err;
}

/* Waits for the next tick, under the lock; false: the recording ends. */
static bool wait_for_tick(struct wg_record_threads *threads, uint64_t tick_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(tick_ns / ns_per_s),
                                   .tv_nsec = (long)(tick_ns % ns_per_s)};
    while (!threads->is_stopping &&
           pthread_cond_timedwait(&threads->stop, &threads->lock, &until) == 0) {
    }
    return !threads->is_stopping;
}

static void *read_device(void *context)
{
    struct reader *reader = context;
    struct wg_record_threads *threads = reader->threads;
    struct wg_error last = {.code = WG_OK};
    uint64_t tick_ns = threads->start_ns;
    for (bool goes_on = true; goes_on;) {
        struct wg_sample sample;
        struct wg_error failure;
        const enum wg_code code = wg_device_read(reader->device, UINT32_MAX, &sample, &failure);
        (void)pthread_mutex_lock(&threads->lock);
        const bool is_news =
            code == WG_OK || last.code != code || strcmp(last.text, failure.text) != 0;
        if (is_news)
            write_answer(reader, &sample, code == WG_OK ? NULL : &failure);
        if (code != WG_OK)
            last = failure;
        else
            last.code = WG_OK;
        /* A slow device skips ticks; it doesn't run after them. */
        const uint64_t now_ns = wg__clock_ns();
        tick_ns += threads->interval_ns;
        if (tick_ns <= now_ns)
            tick_ns = now_ns + threads->interval_ns;
        goes_on = wait_for_tick(threads, tick_ns);
        (void)pthread_mutex_unlock(&threads->lock);
    }
    return NULL;
}

/* A condition whose time is CLOCK_MONOTONIC. */
static void init_locks(struct wg_record_threads *threads)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&threads->stop, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_mutex_init(&threads->lock, NULL);
}

enum wg_code wg__record_threads_start(struct wg_record_threads **out, struct wg_machine *machine,
                                      const char *path, uint64_t interval_ns, struct wg_error *err)
{
    const size_t count = wg_machine_device_count(machine);
    struct wg_record_threads *threads = wg__alloc_zeroed(1, sizeof *threads);
    if (threads == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", path);
    init_locks(threads);
    threads->interval_ns = interval_ns;
    threads->start_ns = wg__clock_ns();
    threads->readers = wg__alloc_zeroed(count + 1, sizeof *threads->readers);
    if (threads->readers == NULL) {
        (void)wg__record_threads_stop(threads, NULL, NULL, NULL);
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", path);
    }
    enum wg_code code =
        wg__recorder_open(&threads->recorder, path, machine, threads->start_ns, err);
    for (size_t i = 0; i < count && code == WG_OK; i++) {
        struct reader *reader = &threads->readers[i];
        *reader = (struct reader){
            .threads = threads, .device = wg_machine_device(machine, i), .position = i};
        const int failure = pthread_create(&reader->thread, NULL, read_device, reader);
        if (failure == 0)
            threads->reader_count++;
        else
            code = wg__fail_errno(err, failure, "cannot start a thread for a device");
    }
    if (code == WG_OK)
        *out = threads;
    else
        (void)wg__record_threads_stop(threads, NULL, NULL, NULL);
    return code;
}

bool wg__record_threads_has_failed(struct wg_record_threads *threads)
{
    (void)pthread_mutex_lock(&threads->lock);
    const bool has_failed = threads->has_failed;
    (void)pthread_mutex_unlock(&threads->lock);
    return has_failed;
}

enum wg_code wg__record_threads_stop(struct wg_record_threads *threads, size_t *answers_out,
                                     double *time_s_out, struct wg_error *err)
{
    if (threads == NULL)
        return WG_OK;
    const uint64_t end_ns = wg__clock_ns();
    (void)pthread_mutex_lock(&threads->lock);
    threads->is_stopping = true;
    (void)pthread_cond_broadcast(&threads->stop);
    (void)pthread_mutex_unlock(&threads->lock);
    for (size_t i = 0; i < threads->reader_count; i++)
        (void)pthread_join(threads->readers[i].thread, NULL);
    struct wg_error failure;
    enum wg_code code = wg__recorder_close(threads->recorder, wg__clock_ns(), &failure);
    if (threads->has_failed) {
        code = threads->failure.code;
        failure = threads->failure;
    }
    if (code != WG_OK && err != NULL)
        *err = failure;
    if (answers_out != NULL)
        *answers_out = threads->answer_count;
    if (time_s_out != NULL)
        *time_s_out = (double)(end_ns - threads->start_ns) / 1e9;
    (void)pthread_cond_destroy(&threads->stop);
    (void)pthread_mutex_destroy(&threads->lock);
    wg__free(threads->readers);
    wg__free(threads);
    return code;
}
