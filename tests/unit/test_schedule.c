/* SPDX-License-Identifier: MIT
 *
 * When a device is read: measure/schedule.c.
 */
#include "measure/schedule.h"

#include "support/check.h"

static const uint64_t START_NS = 7000000000000U;
static const uint64_t PERIOD_NS = 100000000U;

/* A device whose power misses no time: nothing but the grid and edges. */
static void account_init(struct wg_account *account)
{
    const struct wg_device_info info = {.meters[WG_METRIC_POWER_W] = {.is_present = true,
                                                                      .update_period_s = 0.001,
                                                                      .averaging_window_s = 0.1}};
    wg__account_init(account, &info, PERIOD_NS);
}

static struct wg_account account;

static void keeps_to_the_grid_without_drift(void **state)
{
    (void)state;
    account_init(&account);
    struct wg_schedule schedule;
    wg__schedule_init(&schedule, PERIOD_NS, true, START_NS);
    uint64_t now_ns = START_NS;
    for (uint64_t i = 0; i < 1000; i++) {
        enum wg_read_purpose purpose;
        now_ns = wg__schedule_next(&schedule, &account, 0, now_ns, &purpose);
        assert_int_equal(now_ns, START_NS + i * PERIOD_NS);
        assert_int_equal(purpose, WG_READ_REGULAR);
        now_ns += 1000 * (i % 900); /* woken late, always by another amount */
        wg__schedule_done(&schedule, now_ns, WG_READ_REGULAR, false);
    }
}

/* A load that keeps time must not always be met in the same state. */
static void a_sensor_that_misses_time_is_read_at_a_random_place_of_each_period(void **state)
{
    (void)state;
    const struct wg_device_info info = {.meters[WG_METRIC_POWER_W] = {.is_present = true,
                                                                      .update_period_s = 0.02,
                                                                      .averaging_window_s = 0.01}};
    wg__account_init(&account, &info, PERIOD_NS);
    struct wg_schedule schedule;
    wg__schedule_init(&schedule, PERIOD_NS, true, START_NS);
    enum { READS = 1000, QUARTERS = 4 };
    unsigned quarters[QUARTERS] = {0};
    uint64_t now_ns = START_NS;
    for (uint64_t i = 0; i < READS; i++) {
        enum wg_read_purpose purpose;
        const uint64_t before_ns = now_ns;
        now_ns = wg__schedule_next(&schedule, &account, 0, now_ns, &purpose);
        assert_true(i == 0 || now_ns >= before_ns + 20000000);
        quarters[(now_ns - START_NS) % PERIOD_NS * QUARTERS / PERIOD_NS]++;
        wg__schedule_done(&schedule, now_ns, WG_READ_REGULAR, false);
    }
    for (unsigned i = 0; i < QUARTERS; i++)
        assert_true(quarters[i] > READS / 5 && quarters[i] < READS * 3 / 10);
    /* The mean period is that of the grid: nothing is lost or added. */
    check_close((double)(now_ns - START_NS), (READS - 1) * (double)PERIOD_NS, 0.002);
}

static void does_not_catch_up_after_a_stall(void **state)
{
    (void)state;
    account_init(&account);
    struct wg_schedule schedule;
    wg__schedule_init(&schedule, PERIOD_NS, true, START_NS);
    wg__schedule_done(&schedule, START_NS, WG_READ_REGULAR, false);
    enum wg_read_purpose purpose;
    const uint64_t late_ns = START_NS + 12 * PERIOD_NS + 30000000;
    assert_int_equal(wg__schedule_next(&schedule, &account, 0, late_ns, &purpose), late_ns);
    wg__schedule_done(&schedule, late_ns, WG_READ_REGULAR, false);
    assert_int_equal(wg__schedule_next(&schedule, &account, 0, late_ns, &purpose),
                     START_NS + 13 * PERIOD_NS);
}

static void asks_for_everything_once_a_second(void **state)
{
    (void)state;
    account_init(&account);
    struct wg_schedule schedule;
    wg__schedule_init(&schedule, PERIOD_NS, true, START_NS);
    unsigned slow = 0;
    for (uint64_t i = 0; i < 100; i++) {
        const uint64_t now_ns = START_NS + i * PERIOD_NS + (i * 7919) % 3000000;
        const bool is_slow = wg__schedule_is_slow(&schedule, now_ns);
        assert_true(i > 0 || is_slow);
        slow += is_slow;
        wg__schedule_done(&schedule, now_ns, WG_READ_REGULAR, is_slow);
    }
    assert_int_equal(slow, 10);
}

static void an_edge_is_read_at_once_until_its_budget_is_spent(void **state)
{
    (void)state;
    account_init(&account);
    struct wg_schedule schedule;
    wg__schedule_init(&schedule, PERIOD_NS, true, START_NS);
    wg__schedule_done(&schedule, START_NS, WG_READ_REGULAR, false);
    uint64_t now_ns = START_NS + 1000000;
    unsigned edges = 0;
    for (unsigned i = 0; i < 1000; i++) {
        enum wg_read_purpose purpose;
        const uint64_t next_ns = wg__schedule_next(&schedule, &account, now_ns, now_ns, &purpose);
        assert_int_equal(purpose == WG_READ_EDGE,
                         wg__schedule_wants_edge(&schedule, &account, now_ns));
        if (purpose == WG_READ_EDGE) {
            assert_true(next_ns <= now_ns + 1000000);
            wg__schedule_done(&schedule, now_ns, WG_READ_EDGE, false);
            edges++;
        }
        now_ns += 50000;
    }
    assert_true(edges >= 50 && edges <= 53); /* 50 at once, 50 a second in 50 ms */
}

static void without_edges_there_is_only_the_grid(void **state)
{
    (void)state;
    account_init(&account);
    struct wg_schedule schedule;
    wg__schedule_init(&schedule, PERIOD_NS, false, START_NS);
    wg__schedule_done(&schedule, START_NS, WG_READ_REGULAR, false);
    enum wg_read_purpose purpose;
    assert_int_equal(wg__schedule_next(&schedule, &account, START_NS + 5, START_NS + 9, &purpose),
                     START_NS + PERIOD_NS);
    assert_int_equal(purpose, WG_READ_REGULAR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_to_the_grid_without_drift),
        cmocka_unit_test(a_sensor_that_misses_time_is_read_at_a_random_place_of_each_period),
        cmocka_unit_test(does_not_catch_up_after_a_stall),
        cmocka_unit_test(asks_for_everything_once_a_second),
        cmocka_unit_test(an_edge_is_read_at_once_until_its_budget_is_spent),
        cmocka_unit_test(without_edges_there_is_only_the_grid),
    };
    return run_tests(tests);
}
