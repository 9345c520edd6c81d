/* SPDX-License-Identifier: MIT
 *
 * Energy that was told stays told, in whatever order windows begin, end and are read, and samples
 * come: measure/account.c (wg__account_tell) with time as an argument, then measure/window.c with
 * its threads. Field reports 21 and 56: parts never add to more than the device.
 *
 * The counter is turned by hand: it stands, jumps and restarts, so that what is told before the
 * next reading is nearly always wrong.
 */
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "measure/meter.h"
#include "support/check.h"
#include "support/metered_devices.h"

enum { CUTS = 400 };

/* A moment that windows share as an edge, and what was said of it first. */
struct cut {
    uint64_t t_ns;
    bool is_known;
    double energy_j;
};

static const struct kind {
    double counter_s, sensor_s;
    bool has_counter, has_power;
    bool restarts;
} kinds[] = {
    {0.02, 0, true, false, false},  {0.1, 0.1, true, true, false}, {0, 0, true, false, false},
    {0.001, 0, true, false, true},  {0, 0.1, false, true, false},  {0.001, 0, true, false, false},
    {0.02, 0.02, true, true, true},
};

static void start(struct wg_account *account, const struct kind *kind)
{
    struct wg_device_info info = {0};
    info.meters[WG_METRIC_ENERGY_J] = (struct wg_meter_info){
        .is_present = kind->has_counter, .resolution = 1e-3, .update_period_s = kind->counter_s};
    info.meters[WG_METRIC_POWER_W] =
        (struct wg_meter_info){.is_present = kind->has_power, .update_period_s = kind->sensor_s};
    wg__account_init(account, &info, 100000000);
}

static double line_at(const struct wg_account *account, uint64_t t_ns)
{
    struct wg_line_moment moment;
    wg__line_at(&account->energy, t_ns, &moment);
    return moment.sums[WG_SUM_ENERGY_J];
}

/* All that the sampler would settle, and now and then a reader who does not wait. */
static void settle(struct wg_account *account, struct cut *cuts, size_t count, struct wg_rng *rng)
{
    if (account->energy.count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        struct cut *cut = &cuts[i];
        if (!cut->is_known && !wg__line_reaches(&account->energy, cut->t_ns) &&
            wg__rng_uniform(rng) < 0.02)
            wg__account_tell(account, cut->t_ns, wg__rng_uniform(rng) < 0.7);
        if (cut->is_known || !wg__line_reaches(&account->energy, cut->t_ns))
            continue;
        cut->energy_j = line_at(account, cut->t_ns);
        cut->is_known = true;
    }
    for (size_t i = 0; i < count; i++) { /* the newest: those that the line still holds */
        if (i + 10 < count || !cuts[i].is_known)
            continue;
        check_close_abs(line_at(account, cuts[i].t_ns), cuts[i].energy_j, 1e-12, 1e-9);
    }
}

/* A device of which only a counter turned by hand is seen. */
struct turned {
    struct wg_account account;
    struct wg_rng rng;
    struct cut cuts[CUTS];
    size_t count;
    uint64_t now_ns;
    double counter_j;
};

/* A reading; the driver may answer late, and windows be read meanwhile. */
static void read_by_hand(struct turned *turned, bool restarts)
{
    struct wg_rng *rng = &turned->rng;
    const double power_w = 100 * wg__rng_uniform(rng);
    if (wg__rng_uniform(rng) < 0.5)
        turned->counter_j += power_w * 0.06;
    if (restarts && wg__rng_uniform(rng) < 0.01)
        turned->counter_j = 0;
    struct wg_sample sample = {.t_ns = turned->now_ns, .span_ns = 20000};
    sample.values[WG_METRIC_ENERGY_J] = turned->counter_j;
    sample.values[WG_METRIC_POWER_W] = power_w;
    sample.present = 1U << WG_METRIC_POWER_W;
    if (wg__rng_uniform(rng) < 0.96)
        sample.present |= 1U << WG_METRIC_ENERGY_J;
    if (wg__rng_uniform(rng) < 0.3)
        turned->now_ns += 5000000;
    settle(&turned->account, turned->cuts, turned->count, rng);
    wg__account_add(&turned->account, &sample, &(struct wg_clock_offsets){0});
}

/* Steady readings make up for all that was told too early. */
static void check_catches_up(struct turned *turned)
{
    turned->now_ns += 400000000;
    wg__account_tell(&turned->account, turned->now_ns, true);
    for (int i = 0; i < 40; i++) {
        turned->now_ns += 20000000;
        turned->counter_j += 50;
        struct wg_sample sample = {.t_ns = turned->now_ns, .present = 1U << WG_METRIC_ENERGY_J};
        sample.values[WG_METRIC_ENERGY_J] = turned->counter_j;
        wg__account_add(&turned->account, &sample, &(struct wg_clock_offsets){0});
    }
    check_close_abs(turned->account.ahead_j, 0, 0, 1e-9);
}

static void what_was_told_is_final_and_later_energy_makes_up_for_it(void **state)
{
    (void)state;
    static struct turned turned;
    for (uint64_t seed = 0; seed < 20 * sizeof kinds / sizeof kinds[0]; seed++) {
        const struct kind *kind = &kinds[seed % (sizeof kinds / sizeof kinds[0])];
        turned = (struct turned){.now_ns = 1000000000000U, .counter_j = 1000};
        wg__rng_init(&turned.rng, seed);
        start(&turned.account, kind);
        while (turned.count < CUTS) {
            turned.now_ns += (uint64_t)(1e6 + 60e6 * wg__rng_uniform(&turned.rng));
            const double dice = wg__rng_uniform(&turned.rng);
            if (dice < 0.5)
                turned.cuts[turned.count++].t_ns = turned.now_ns;
            else if (dice < 0.53)
                wg__account_fail(&turned.account, dice < 0.51);
            else
                read_by_hand(&turned, kind->restarts);
            settle(&turned.account, turned.cuts, turned.count, &turned.rng);
        }
        for (size_t i = 1; i < CUTS; i++)
            if (turned.cuts[i].is_known && turned.cuts[i - 1].is_known)
                assert_true(turned.cuts[i].energy_j >= turned.cuts[i - 1].energy_j);
        if (kind->has_counter && !kind->restarts && kind->counter_s > 0)
            check_catches_up(&turned);
    }
}

/* Energy needs time to pass; what the test checks does not depend on how much. */
static void nap(uint64_t ns)
{
    const struct timespec span = {.tv_nsec = (long)ns};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL);
}

enum { WINDOWS = 24, STEPS = 120 };

struct stage {
    struct wg_meter *meter;
    struct wg_rng rng;
    struct wg_window *windows[WINDOWS];
    bool has_ended[WINDOWS], is_read[WINDOWS];
    struct wg_window_result results[WINDOWS];
};

/* Takes a window one step further: begins, ends, reads, and reads again, which changes nothing. */
static void move_window(struct stage *stage, size_t i)
{
    struct wg_error err;
    if (!stage->windows[i]) {
        assert_int_equal(wg_window_begin(&stage->windows[i], stage->meter, "w", NULL, 0, &err),
                         WG_OK);
    } else if (!stage->has_ended[i]) {
        wg_window_end(stage->windows[i]);
        stage->has_ended[i] = true;
    } else {
        struct wg_window_result again;
        assert_int_equal(wg_window_read(stage->windows[i], &again, NULL, 0, &err), WG_OK);
        if (stage->is_read[i] && !isnan(stage->results[i].energy_j))
            check_close(again.energy_j, stage->results[i].energy_j, 0);
        stage->results[i] = again;
        stage->is_read[i] = true;
    }
}

static bool is_told(const struct stage *stage, size_t i)
{
    return stage->is_read[i] && !isnan(stage->results[i].energy_j);
}

static bool holds(const struct wg_window *whole, const struct wg_window *part)
{
    return part != whole && part->begin_ns >= whole->begin_ns &&
           atomic_load(&part->end_ns) <= atomic_load(&whole->end_ns);
}

static void check_parts_of(const struct stage *stage, size_t whole, uint64_t seed)
{
    const double whole_j = stage->results[whole].energy_j;
    double parts_j = 0;
    uint64_t until_ns = 0;
    for (size_t i = 0; i < WINDOWS; i++) {
        if (!is_told(stage, i) || !holds(stage->windows[whole], stage->windows[i]))
            continue;
        const double part_j = stage->results[i].energy_j;
        if (!(part_j <= whole_j + 1e-9))
            fail_msg("seed %u: a part of %.6f J in %.6f J", (unsigned)seed, part_j, whole_j);
        if (stage->windows[i]->begin_ns < until_ns)
            continue;
        until_ns = atomic_load(&stage->windows[i]->end_ns); /* disjoint ones add up */
        parts_j += part_j;
        assert_true(parts_j <= whole_j + 1e-9);
    }
}

/* Windows with threads, overlapping at random, read in any order. */
static void no_part_exceeds_what_holds_it_in_any_order_of_reads(void **state)
{
    (void)state;
    static struct fake_world world;
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct stage stage = {0};
        struct wg_error err;
        wg__rng_init(&stage.rng, seed);
        fake_world_init(&world, 1, seed % 2 ? 1000000 : 20000000);
        struct fake_device *fake = &world.devices[0];
        fake->is_hand_turned = true;
        fake->has_power = seed >= 2;
        struct wg_machine *machine = fake_machine_open(0);
        assert_int_equal(wg_meter_open(&stage.meter, machine, NULL, &err), WG_OK);
        assert_int_equal(wg_meter_wait_ready(stage.meter, 10000, &err), WG_OK);
        for (size_t step = 0; step < STEPS; step++) {
            if (wg__rng_uniform(&stage.rng) < 0.6)
                (void)atomic_fetch_add(&fake->hand_mj,
                                       (unsigned)(40 * wg__rng_uniform(&stage.rng)));
            atomic_store(&fake->fault, step % 30 >= 7 && step % 30 < 15 ? WG_ELOST : 0);
            nap((uint64_t)(8e6 * wg__rng_uniform(&stage.rng)));
            move_window(&stage, (size_t)(wg__rng_uniform(&stage.rng) * (double)WINDOWS));
        }
        for (size_t i = 0; i < WINDOWS; i++)
            if (is_told(&stage, i))
                check_parts_of(&stage, i, seed);
        for (size_t i = 0; i < WINDOWS; i++)
            wg_window_free(stage.windows[i]);
        wg_meter_close(stage.meter);
        wg_machine_close(machine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_told_is_final_and_later_energy_makes_up_for_it),
        cmocka_unit_test(no_part_exceeds_what_holds_it_in_any_order_of_reads),
    };
    return run_tests(tests);
}
