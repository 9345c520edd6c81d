/* SPDX-License-Identifier: MIT
 *
 * Meters and windows with their threads, over made-up devices in real time: measure/meter.c,
 * sampler.c, window.c. Truth is known, machines are slow at times: so energies are compared within
 * the error that each result claims, and never with a wall clock.
 */
#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "measure/meter.h"
#include "support/check.h"
#include "support/metered_devices.h"

static struct fake_world world;

/* Energy needs time to pass. */
static void pass_ms(unsigned ms)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += (time_t)(ms / 1000) + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

/* Waits for a condition that must come, looking each millisecond. */
#define wait_for(condition)                                                                        \
    do {                                                                                           \
        const uint64_t wait_until = wg__clock_ns() + 20000000000U;                                 \
        while (!(condition)) {                                                                     \
            if (wg__clock_ns() > wait_until)                                                       \
                fail_msg("%s did not come within 20 s", #condition);                               \
            pass_ms(1);                                                                            \
        }                                                                                          \
    } while (0)

static struct wg_meter *meter_new(struct wg_machine *machine, const struct wg_meter_opts *opts)
{
    struct wg_meter *meter;
    struct wg_error err;
    if (wg_meter_open(&meter, machine, opts, &err) != WG_OK)
        fail_msg("%s", err.text);
    if (wg_meter_wait_ready(meter, 10000, &err) != WG_OK)
        fail_msg("%s", err.text);
    return meter;
}

static struct wg_window *begin(struct wg_meter *meter, const char *name)
{
    struct wg_window *window;
    struct wg_error err;
    if (wg_window_begin(&window, meter, name, NULL, 0, &err) != WG_OK)
        fail_msg("%s", err.text);
    return window;
}

static struct wg_window_result read_total(struct wg_window *window,
                                          struct wg_window_result *devices)
{
    struct wg_window_result total;
    struct wg_error err;
    if (wg_window_read(window, &total, devices, FAKE_DEVICES_MAX, &err) != WG_OK)
        fail_msg("%s", err.text);
    return total;
}

static void check_truth_of(const struct fake_world *of, const struct wg_window *window,
                           const struct wg_window_result *result, size_t device)
{
    const double truth_j = fake_truth_j(of, device, atomic_load(&window->end_ns)) -
                           fake_truth_j(of, device, window->begin_ns);
    if (!(fabs(result->energy_j - truth_j) <= fmax(2 * result->energy_error_j, 0.01 * truth_j)))
        fail_msg("device %zu: %.3f J +- %.3f, truth %.3f", device, result->energy_j,
                 result->energy_error_j, truth_j);
}

static void check_truth(const struct wg_window *window, const struct wg_window_result *result,
                        size_t device)
{
    check_truth_of(&world, window, result, device);
}

static void measures_eight_devices_and_their_sum(void **state)
{
    (void)state;
    fake_world_init(&world, 8, 20000000);
    for (size_t i = 0; i < 8; i++) {
        world.devices[i].low_w = 50 + 10 * (double)i; /* constant: exact however late a read is */
    }
    world.devices[5].is_part = true;
    world.devices[6].counter_period_ns = 0;
    struct wg_machine *machine = fake_machine_open(0);
    struct wg_meter *meter = meter_new(machine, NULL);
    struct wg_window *outer = begin(meter, "epoch"), *inner = begin(meter, "step");
    pass_ms(300);
    wg_window_end(inner);
    pass_ms(200);
    wg_window_end(outer);
    struct wg_window_result parts[8], inner_parts[8];
    const struct wg_window_result total = read_total(outer, parts);
    const struct wg_window_result step = read_total(inner, inner_parts);
    double sum_j = 0;
    for (size_t i = 0; i < 8; i++) {
        check_truth(outer, &parts[i], i);
        check_truth(inner, &inner_parts[i], i);
        assert_true(inner_parts[i].energy_j <= parts[i].energy_j);
        assert_int_equal(parts[i].source, i == 6 ? WG_ENERGY_POWER : WG_ENERGY_COUNTER);
        assert_true(parts[i].sample_count >= 3);
        check_close(parts[i].idle_share, 0, 0);
        sum_j += i == 5 ? 0 : parts[i].energy_j;
    }
    check_close(total.energy_j, sum_j, 1e-12);
    assert_int_equal(total.source, WG_ENERGY_MIXED);
    assert_int_equal(total.flags & WG_WINDOW_PARTIAL, 0);
    assert_true(total.power_peak_w > 0 && total.power_peak_w <= 7 * 201);
    assert_true(step.time_s >= 0.3 && step.time_s <= total.time_s);
    wg_window_free(outer);
    wg_window_free(inner);
    wg_meter_close(meter);
    wg_machine_close(machine);
}

/* Field reports 21, 56: windows that follow each other without a gap add up to what holds them. */
static void adjacent_windows_add_up(void **state)
{
    (void)state;
    fake_world_init(&world, 2, 20000000);
    world.devices[0].half_ns = 33000000;
    world.devices[0].high_w = 300;
    struct wg_machine *machine = fake_machine_open(0);
    struct wg_meter *meter = meter_new(machine, NULL);
    enum { PARTS = 20 };
    struct wg_window *parts[PARTS], *whole = begin(meter, "whole");
    for (size_t i = 0; i < PARTS; i++) {
        parts[i] = begin(meter, "part");
        pass_ms(5 + (unsigned)i);
        wg_window_end(parts[i]);
    }
    wg_window_end(whole);
    double sum_j = 0, time_s = 0;
    for (size_t i = 0; i < PARTS; i++) {
        const struct wg_window_result part = read_total(parts[i], NULL);
        assert_true(part.energy_j > 0);
        sum_j += part.energy_j;
        time_s += part.time_s;
        wg_window_free(parts[i]);
    }
    const struct wg_window_result total = read_total(whole, NULL);
    assert_true(sum_j <= total.energy_j * (1 + 1e-9));
    /* What is missing is the power between the parts. */
    assert_true(total.energy_j - sum_j <= 420 * (total.time_s - time_s) + 1e-6);
    wg_window_free(whole);
    wg_meter_close(meter);
    wg_machine_close(machine);
}

static void an_open_window_is_read_up_to_now(void **state)
{
    (void)state;
    fake_world_init(&world, 1, 20000000);
    struct wg_machine *machine = fake_machine_open(0);
    struct wg_meter *meter = meter_new(machine, NULL);
    struct wg_window *window = begin(meter, "open");
    double before_j = -1;
    for (int i = 0; i < 5; i++) {
        pass_ms(60);
        const struct wg_window_result result = read_total(window, NULL);
        check_close(result.energy_j, 100 * result.time_s, 0.03);
        assert_true(result.energy_j > before_j);
        before_j = result.energy_j;
    }
    wg_window_free(window);
    wg_meter_close(meter);
    wg_machine_close(machine);
}

static void finds_the_newest_open_window_of_a_name(void **state)
{
    (void)state;
    fake_world_init(&world, 1, 0);
    struct wg_machine *machine = fake_machine_open(0);
    struct wg_meter *meter = meter_new(machine, NULL);
    assert_null(wg_window_find(meter, "a"));
    struct wg_window *first = begin(meter, "a"), *second = begin(meter, "a");
    struct wg_window *other = begin(meter, NULL);
    assert_ptr_equal(wg_window_find(meter, "a"), second);
    wg_window_end(second);
    assert_ptr_equal(wg_window_find(meter, "a"), first);
    assert_ptr_equal(wg_window_find(meter, ""), other);
    wg_window_free(first);
    assert_null(wg_window_find(meter, "a"));
    assert_string_equal(wg_window_name(second), "a");
    char name[200];
    for (size_t i = 0; i < sizeof name - 1; i++)
        name[i] = i % 2 ? '\xa9' : '\xc3';
    name[sizeof name - 1] = '\0';
    struct wg_window *cut = begin(meter, name);
    assert_int_equal(strlen(wg_window_name(cut)), 62); /* no half character at the end */
    wg_window_free(cut);
    wg_window_free(second);
    wg_window_free(other);
    wg_meter_close(meter);
    wg_machine_close(machine);
}

static void refuses_what_is_not_there(void **state)
{
    (void)state;
    fake_world_init(&world, 2, 0);
    struct wg_machine *machine = fake_machine_open(0);
    struct wg_meter *meter;
    struct wg_error err;
    const struct wg_meter_opts too_slow = WG_METER_OPTS(.sample_period_ms = 60001);
    assert_int_equal(wg_meter_open(&meter, machine, &too_slow, &err), WG_EINVAL);
    meter = meter_new(machine, NULL);
    struct wg_window *window;
    const size_t wrong[] = {1, 2}, many[] = {0, 1, 1}, twice[] = {1, 1};
    assert_int_equal(wg_window_begin(&window, meter, "w", wrong, 2, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "no device 2"));
    assert_int_equal(wg_window_begin(&window, meter, "w", many, 3, &err), WG_EINVAL);
    assert_int_equal(wg_window_begin(&window, meter, "w", twice, 2, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "device 1 (gpu1) is given twice"));
    struct wg_sample sample;
    assert_int_equal(wg_meter_latest(meter, 2, &sample, &err), WG_EINVAL);
    assert_int_equal(wg_meter_latest(meter, 1, &sample, &err), WG_OK);
    check_close(sample.values[WG_METRIC_POWER_W], 100, 1e-12);
    wg_meter_close(NULL);
    wg_window_free(NULL);
    wg_meter_close(meter);
    wg_machine_close(machine);
}

/* A machine without devices measures time, and says that the energy is unknown (issue, item 4). */
static void no_device_means_unknown_energy_not_zero(void **state)
{
    (void)state;
    fake_world_init(&world, 0, 0);
    struct wg_machine *machine = fake_machine_open(0);
    struct wg_meter *meter = meter_new(machine, NULL);
    struct wg_window *window = begin(meter, "nothing");
    pass_ms(10);
    wg_window_end(window);
    const struct wg_window_result result = read_total(window, NULL);
    assert_true(isnan(result.energy_j) && isnan(result.energy_error_j));
    assert_true(result.time_s >= 0.01);
    assert_int_equal(result.source, WG_ENERGY_NONE);
    wg_window_free(window);
    wg_meter_close(meter);
    wg_machine_close(machine);
}

/* Field reports 35, 55: a call hangs; the others go on, and closing does not wait for it. */
static void a_hung_device_costs_only_its_own_numbers(void **state)
{
    (void)state;
    /* Of its own: the thread that is left behind still uses it when other tests run. */
    static struct fake_world hung;
    fake_world_init(&hung, 3, 20000000);
    struct wg_machine *machine = fake_machine_open(200);
    struct wg_meter *meter = meter_new(machine, NULL);
    struct wg_window *window = begin(meter, "hang");
    pass_ms(150);
    fake_hang(&hung.devices[1], true);
    pass_ms(100);
    wg_window_end(window);
    struct wg_window_result parts[3];
    const struct wg_window_result total = read_total(window, parts);
    check_truth_of(&hung, window, &parts[0], 0);
    check_truth_of(&hung, window, &parts[2], 2);
    assert_true((parts[1].flags & WG_WINDOW_HUNG) != 0 && (parts[1].flags & WG_WINDOW_GAP) != 0);
    assert_true(parts[1].coverage < 0.9);
    assert_true(parts[1].energy_j > 0); /* what was measured before */
    assert_true((total.flags & WG_WINDOW_HUNG) != 0);
    struct wg_sample sample;
    struct wg_error err;
    assert_int_equal(wg_meter_latest(meter, 1, &sample, &err), WG_ETIMEOUT);
    assert_int_equal(wg_meter_latest(meter, 0, &sample, &err), WG_OK);
    wg_window_free(window);
    wg_meter_close(meter); /* must return although the call hangs */
    wg_machine_close(machine);
    fake_hang(&hung.devices[1], false);
    pass_ms(50); /* the thread that was left behind frees what it held */
}

/* Field reports 34, 36, 42, 43: a GPU is lost, the others go on; it is tried again. */
static void a_lost_device_is_flagged_and_found_again(void **state)
{
    (void)state;
    fake_world_init(&world, 2, 20000000);
    struct wg_machine *machine = fake_machine_open(0);
    struct wg_meter *meter = meter_new(machine, NULL);
    struct wg_window *window = begin(meter, "lost"), *longer = begin(meter, "longer");
    pass_ms(200);
    atomic_store(&world.devices[0].fault, WG_ELOST);
    struct wg_sample sample;
    struct wg_error err;
    wait_for(wg_meter_latest(meter, 0, &sample, &err) == WG_ELOST);
    wg_window_end(window);
    struct wg_window_result parts[2];
    struct wg_window_result total = read_total(window, parts);
    assert_true((parts[0].flags & WG_WINDOW_LOST) != 0);
    assert_true(parts[0].energy_j > 0 && parts[0].coverage < 1);
    check_truth(window, &parts[1], 1);
    assert_true((total.flags & WG_WINDOW_LOST) != 0);
    atomic_store(&world.devices[0].fault, 0);
    wait_for(wg_meter_latest(meter, 0, &sample, &err) == WG_OK);
    wg_window_end(longer);
    (void)read_total(longer, parts);
    assert_int_equal(parts[0].flags & WG_WINDOW_LOST, 0);
    assert_true((parts[0].flags & WG_WINDOW_GAP) != 0);
    check_truth(longer, &parts[0], 0); /* the counter went on */
    wg_window_free(window);
    wg_window_free(longer);
    wg_meter_close(meter);
    wg_machine_close(machine);
}

/* Field report 38: all handles are closed for a while. */
static void quiescence_is_a_gap(void **state)
{
    (void)state;
    fake_world_init(&world, 1, 20000000);
    struct wg_machine *machine = fake_machine_open(0);
    struct wg_meter *meter = meter_new(machine, NULL);
    struct wg_window *window = begin(meter, "quiet");
    pass_ms(150);
    struct wg_error err;
    assert_int_equal(wg_machine_quiesce(machine, &err), WG_OK);
    const size_t before = atomic_load(&world.devices[0].reads);
    pass_ms(300);
    assert_int_equal(atomic_load(&world.devices[0].reads), before);
    assert_int_equal(wg_machine_resume(machine, &err), WG_OK);
    struct wg_sample sample;
    wait_for(wg_meter_latest(meter, 0, &sample, &err) == WG_OK);
    wg_window_end(window);
    const struct wg_window_result result = read_total(window, NULL);
    assert_true((result.flags & WG_WINDOW_GAP) != 0);
    assert_int_equal(result.flags & WG_WINDOW_LOST, 0);
    check_truth(window, &result, 0);
    wg_window_free(window);
    wg_meter_close(meter);
    wg_machine_close(machine);
}

/* Field reports 31, 32: a MIG GPU's energy is that of all its instances, counted once. */
static void a_mig_device_says_that_it_is_shared(void **state)
{
    (void)state;
    fake_world_init(&world, 1, 20000000);
    world.devices[0].is_mig = true;
    struct wg_machine *machine = fake_machine_open(0);
    struct wg_meter *meter = meter_new(machine, NULL);
    struct wg_window *window = begin(meter, "mig");
    pass_ms(80);
    wg_window_end(window);
    assert_true((read_total(window, NULL).flags & WG_WINDOW_SHARED) != 0);
    wg_window_free(window);
    wg_meter_close(meter);
    wg_machine_close(machine);
}

/* Field report 5: the child of a fork has none of the threads. */
static void a_forked_child_is_told(void **state)
{
    (void)state;
    fake_world_init(&world, 2, 20000000);
    struct wg_machine *machine = fake_machine_open(0);
    struct wg_meter *meter = meter_new(machine, NULL);
    struct wg_window *window = begin(meter, "parent");
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct wg_window *mine;
        struct wg_window_result result;
        struct wg_sample sample;
        struct wg_error err;
        int wrong = wg_window_begin(&mine, meter, "child", NULL, 0, &err) != WG_ESTATE;
        wrong |= wg_window_read(window, &result, NULL, 0, &err) != WG_ESTATE;
        wrong |= wg_meter_latest(meter, 0, &sample, &err) != WG_ESTATE;
        wrong |= wg_meter_wait_ready(meter, 1000, &err) != WG_ESTATE;
        wrong |= wg_window_find(meter, "parent") != NULL;
        wg_window_end(window);
        wg_window_free(window);
        wg_meter_close(meter);
        _exit(wrong);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    wg_window_end(window);
    const struct wg_window_result result = read_total(window, NULL);
    assert_true(result.energy_j > 0);
    wg_window_free(window);
    wg_meter_close(meter);
    wg_machine_close(machine);
}

static void windows_outlive_their_meter_without_harm(void **state)
{
    (void)state;
    fake_world_init(&world, 2, 20000000);
    struct wg_machine *machine = fake_machine_open(0);
    struct wg_meter *meter = meter_new(machine, NULL);
    struct wg_window *open = begin(meter, "open"), *ended = begin(meter, "ended");
    wg_window_end(ended);
    wg_meter_close(meter);
    wg_machine_close(machine);
    struct wg_window_result result;
    struct wg_error err;
    assert_int_equal(wg_window_read(ended, &result, NULL, 0, &err), WG_ESTATE);
    wg_window_end(open);
    wg_window_free(open);
    wg_window_free(ended);
}

/* Field reports 65, 66, 68: 10 reads a second and some for the phase, in the first seconds (later:
 * test_account.c, reads_are_few); the slow ones once a second. */
static void reads_keep_to_their_budget(void **state)
{
    (void)state;
    fake_world_init(&world, 1, 100000000);
    struct wg_machine *machine = fake_machine_open(0);
    struct wg_meter *meter = meter_new(machine, NULL);
    pass_ms(1500); /* the search for the ticks is over */
    const size_t reads = atomic_load(&world.devices[0].reads);
    const size_t slow = atomic_load(&world.devices[0].slow_reads);
    const uint64_t from_ns = wg__clock_ns();
    pass_ms(2000);
    const double seconds = (double)(wg__clock_ns() - from_ns) * 1e-9;
    assert_true((double)(atomic_load(&world.devices[0].reads) - reads) <= 25 * seconds + 2);
    assert_true((double)(atomic_load(&world.devices[0].slow_reads) - slow) <= seconds + 1);
    wg_meter_close(meter);
    wg_machine_close(machine);
}

/* Many threads begin and end at once; each window is sane. */
struct crowd {
    struct wg_meter *meter;
    unsigned rounds;
    atomic_uint bad;
};

static void *crowd_member(void *argument)
{
    struct crowd *crowd = argument;
    for (unsigned i = 0; i < crowd->rounds; i++) {
        struct wg_window *window;
        const size_t device = i % 3;
        if (wg_window_begin(&window, crowd->meter, "crowd", &device, 1, NULL) != WG_OK) {
            (void)atomic_fetch_add(&crowd->bad, 1);
            continue;
        }
        wg_window_end(window);
        struct wg_window_result result;
        if (i % 50 == 0 &&
            (wg_window_read(window, &result, NULL, 0, NULL) != WG_OK || !(result.energy_j >= 0)))
            (void)atomic_fetch_add(&crowd->bad, 1);
        wg_window_free(window);
    }
    return NULL;
}

static void many_threads_share_a_meter(void **state)
{
    (void)state;
    fake_world_init(&world, 3, 20000000);
    struct wg_machine *machine = fake_machine_open(0);
    struct wg_meter *meter = meter_new(machine, NULL);
    struct crowd crowd = {.meter = meter, .rounds = 200};
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_member, &crowd), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&crowd.bad), 0);
    wg_meter_close(meter);
    wg_machine_close(machine);
}

/* In a child of a user of its own, which may have only three threads. */
static int open_without_threads(struct wg_machine *machine)
{
    enum { NOBODY_ELSE = 54321 };
    const bool is_root = geteuid() == 0;
    const rlim_t most = is_root ? 3 : 0;
    struct rlimit limit = {.rlim_cur = most, .rlim_max = most};
    if (setrlimit(RLIMIT_NPROC, &limit) != 0)
        return 2;
    if (is_root && setresuid(NOBODY_ELSE, NOBODY_ELSE, NOBODY_ELSE) != 0)
        return 2;
    struct wg_meter *meter;
    struct wg_error err;
    for (int i = 0; i < 20; i++) {
        const enum wg_code code = wg_meter_open(&meter, machine, NULL, &err);
        if (code == WG_OK)
            return 77;
        if (code != WG_EIO || !strstr(err.text, "no thread for device"))
            return 1;
    }
    return 0;
}

/* What had been started is stopped, and nothing is joined that never was. */
static void a_meter_that_gets_no_threads_says_so(void **state)
{
    (void)state;
    fake_world_init(&world, 8, 20000000);
    struct wg_machine *machine = fake_machine_open(0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(open_without_threads(machine));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    wg_machine_close(machine);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        print_message("skipped: this process may start any number of threads\n");
    else
        assert_int_equal(WEXITSTATUS(status), 0);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fake_world_init(&world, 2, 20000000);
    struct wg_machine *machine = fake_machine_open(0);
    bool has_passed = false;
    for (size_t nth = 1; !has_passed; nth++) {
        struct wg_meter *meter;
        struct wg_window *window = NULL;
        struct wg_error err;
        wg__alloc_fail_from(nth);
        enum wg_code code = wg_meter_open(&meter, machine, NULL, &err);
        if (code == WG_OK) {
            code = wg_window_begin(&window, meter, "w", NULL, 0, &err);
            has_passed = code == WG_OK;
            if (has_passed)
                wg_window_end(window);
            wg_window_free(window);
            wg_meter_close(meter);
        }
        assert_true(code == WG_OK || code == WG_ENOMEM);
        wg__alloc_fail_from(0);
        assert_true(nth < 10);
    }
    wg_machine_close(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measures_eight_devices_and_their_sum),
        cmocka_unit_test(adjacent_windows_add_up),
        cmocka_unit_test(an_open_window_is_read_up_to_now),
        cmocka_unit_test(finds_the_newest_open_window_of_a_name),
        cmocka_unit_test(refuses_what_is_not_there),
        cmocka_unit_test(no_device_means_unknown_energy_not_zero),
        cmocka_unit_test(a_hung_device_costs_only_its_own_numbers),
        cmocka_unit_test(a_lost_device_is_flagged_and_found_again),
        cmocka_unit_test(quiescence_is_a_gap),
        cmocka_unit_test(a_mig_device_says_that_it_is_shared),
        cmocka_unit_test(a_forked_child_is_told),
        cmocka_unit_test(windows_outlive_their_meter_without_harm),
        cmocka_unit_test(reads_keep_to_their_budget),
        cmocka_unit_test(many_threads_share_a_meter),
        cmocka_unit_test(a_meter_that_gets_no_threads_says_so),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return run_tests(tests);
}
