/* SPDX-License-Identifier: MIT
 *
 * Tasks spread over processes: each is done once, whatever goes wrong is told.
 */
#include "simulate/workers.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/check.h"

enum { TASKS = 200, NO_TASK = TASKS };

struct stage {
    atomic_uint *done; /* [TASKS]; shared */
    size_t fails_from; /* tasks from here on fail */
    size_t dies_at;
    size_t heard;
};

static void open_stage(struct stage *stage)
{
    *stage = (struct stage){.fails_from = NO_TASK, .dies_at = NO_TASK};
    stage->done = wg__shared_alloc(TASKS, sizeof *stage->done);
    assert_non_null(stage->done);
}

static void close_stage(struct stage *stage)
{
    wg__shared_free(stage->done, TASKS, sizeof *stage->done);
}

static enum wg_code run(void *context, size_t task, struct wg_error *err)
{
    struct stage *stage = context;
    atomic_fetch_add(&stage->done[task], 1);
    if (task == stage->dies_at)
        (void)raise(SIGKILL);
    if (task >= stage->fails_from)
        return wg__fail(err, WG_EDATA, "task %zu", task);
    return WG_OK;
}

static void hear(void *context)
{
    ((struct stage *)context)->heard++;
}

static enum wg_code work(struct stage *stage, size_t processes, struct wg_error *err)
{
    const struct wg_workers_request request = {.tasks = TASKS,
                                               .processes = processes,
                                               .run = run,
                                               .context = stage,
                                               .progress = hear,
                                               .progress_context = stage};
    return wg__workers_run(&request, err);
}

/* The first task kills its worker, the others take two milliseconds each. */
static enum wg_code die_or_take_time(void *context, size_t task, struct wg_error *err)
{
    (void)err;
    if (task == 0)
        (void)raise(SIGKILL);
    const uint64_t end_ns = wg__clock_ns() + 2000000;
    while (wg__clock_ns() < end_ns)
        continue;
    atomic_fetch_add((atomic_size_t *)context, 1);
    return WG_OK;
}

static void the_others_stop_when_one_is_killed(void **state)
{
    (void)state;
    enum { MANY = 2000 };
    struct wg_error err = {0};
    atomic_size_t *done = wg__shared_alloc(1, sizeof *done);
    assert_non_null(done);
    const struct wg_workers_request request = {
        .tasks = MANY, .processes = 2, .run = die_or_take_time, .context = done};
    assert_int_equal(wg__workers_run(&request, &err), WG_EIO);
    assert_non_null(strstr(err.text, "ended by signal 9"));
    assert_in_range(atomic_load(done), 0, MANY / 2);
    wg__shared_free(done, 1, sizeof *done);
}

static void every_task_is_done_once_and_heard_of(void **state)
{
    (void)state;
    static const size_t processes[] = {1, 2, 7, WG_WORKERS_MAX};
    for (size_t i = 0; i < sizeof processes / sizeof processes[0]; i++) {
        struct stage stage;
        open_stage(&stage);
        struct wg_error err = {0};
        assert_int_equal(work(&stage, processes[i], &err), WG_OK);
        for (size_t task = 0; task < TASKS; task++)
            assert_int_equal(atomic_load(&stage.done[task]), 1);
        assert_int_equal(stage.heard, TASKS);
        close_stage(&stage);
    }
}

static void the_first_failure_is_told_and_ends_the_work(void **state)
{
    (void)state;
    for (size_t processes = 1; processes <= 4; processes += 3) {
        struct stage stage;
        open_stage(&stage);
        stage.fails_from = 20;
        struct wg_error err = {0};
        assert_int_equal(work(&stage, processes, &err), WG_EDATA);
        assert_string_equal(err.text, "task 20");
        assert_int_equal(atomic_load(&stage.done[TASKS - 1]), 0);
        close_stage(&stage);
    }
}

static void a_worker_that_dies_is_told(void **state)
{
    (void)state;
    struct stage stage;
    open_stage(&stage);
    stage.dies_at = 5;
    struct wg_error err = {0};
    assert_int_equal(work(&stage, 3, &err), WG_EIO);
    assert_non_null(strstr(err.text, "signal 9"));
    close_stage(&stage);
}

static void no_task_is_no_work(void **state)
{
    (void)state;
    struct stage stage;
    open_stage(&stage);
    const struct wg_workers_request request = {.processes = 4, .run = run, .context = &stage};
    assert_int_equal(wg__workers_run(&request, NULL), WG_OK);
    assert_null(wg__shared_alloc(SIZE_MAX, 2));
    close_stage(&stage);
}

static void processors_are_those_that_may_be_used(void **state)
{
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_int_equal(wg__processor_count(CPU_SETSIZE), CPU_COUNT(&all));
    assert_int_equal(wg__processor_count(1), 1);
    size_t first = 0;
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(wg__processor_count(CPU_SETSIZE), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_others_stop_when_one_is_killed),
        cmocka_unit_test(every_task_is_done_once_and_heard_of),
        cmocka_unit_test(the_first_failure_is_told_and_ends_the_work),
        cmocka_unit_test(a_worker_that_dies_is_told),
        cmocka_unit_test(no_task_is_no_work),
        cmocka_unit_test(processors_are_those_that_may_be_used),
    };
    return run_tests(tests);
}
