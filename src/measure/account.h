/* SPDX-License-Identifier: MIT
 *
 * The books of one device: samples in, running sums out.
 *
 * Each sample adds to two lines (line.h): `energy`, whose points lie at ticks of the counter or at
 * power readings, and `sides` (idle, throttled, gaps, ...), whose points lie at the samples. Energy
 * comes from the counter while it can be believed, else from power:
 *
 *     counter    o----o----o        x  restarted      o----o       E = counter + offset
 *     power                 ~~~~~~~~~                               E grows by the integral
 *                                   flag COUNTER_RESET, new offset
 *
 * Not believed: a counter that falls or jumps beyond what the device can draw (it restarted, the
 * offset is found anew), stands still although power is drawn, or is missing from the samples.
 * After each doubt both meters go on side by side, and a window that finds them more than 10 %
 * apart says so.
 *
 * Threads: pure, one at a time; time comes with the samples.
 */
#ifndef WG_MEASURE_ACCOUNT_H
#define WG_MEASURE_ACCOUNT_H

#include "measure/line.h"
#include "measure/power_line.h"
#include "measure/ticks.h"
#include "wattgov/device.h"

enum wg_energy_sum { /* of the line `energy` */
                     WG_SUM_ENERGY_J,
                     WG_SUM_VARIANCE_J2,
                     WG_SUM_COVERED_S,
                     WG_SUM_COUNTER_S, /* seconds whose energy came from the counter, from power,
                                          from nowhere */
                     WG_SUM_POWER_S,
                     WG_SUM_UNKNOWN_S,
                     WG_SUM_CHECK_COUNTER_J, /* where both meters spoke: each one's energy, and for
                                                how long */
                     WG_SUM_CHECK_POWER_J,
                     WG_SUM_CHECK_VARIANCE_J2, /* of the power's */
                     WG_SUM_CHECK_S,
                     WG_SUM_RESET_S, /* seconds under a flag */
                     WG_SUM_STUCK_S,
                     WG_SUM_ENERGY_COUNT
};

enum wg_side_sum { /* of the line `sides` */
                   WG_SIDE_SAMPLES,
                   WG_SIDE_IDLE_S,
                   WG_SIDE_IDLE_KNOWN_S,
                   WG_SIDE_THROTTLED_S,
                   WG_SIDE_THROTTLED_KNOWN_S,
                   WG_SIDE_GAP_S, /* seconds under a flag */
                   WG_SIDE_HUNG_S,
                   WG_SIDE_CLOCK_STEP_S,
                   WG_SIDE_SUSPENDED_S,
                   WG_SIDE_CAPPED_S,
                   WG_SIDE_COUNT
};

/* The other clocks, as differences, so that a jump of one of them shows. */
struct wg_clock_offsets {
    int64_t sleep_ns; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC: grows when the machine sleeps */
    int64_t wall_ns;  /* CLOCK_REALTIME - CLOCK_BOOTTIME: jumps when the wall clock is set */
};

struct wg_account {
    /* Constant. */
    bool has_counter, has_power;
    enum wg_metric power_metric;
    double limit_w; /* more than this the device cannot draw */
    double counter_step_j;
    double gap_s; /* samples further apart leave a gap */

    struct wg_line energy, sides;
    struct wg_power_line power;
    struct wg_ticks ticks;

    uint64_t last_ns; /* of the last sample; 0: none yet */
    struct wg_clock_offsets offsets;
    bool has_failed; /* reads failed since the last sample */
    bool has_hung;

    /* Counter. */
    bool is_anchored; /* energy = counter + offset */
    double offset_j;
    double first_j; /* first reading, and when: the line of energy begins there */
    uint64_t first_ns;
    double read_j; /* last reading, and when */
    uint64_t read_ns, read_span_ns;
    bool has_read;
    bool wraps;         /* a sample without it has lost a step: what it shows next starts anew */
    bool lacks_counter; /* the newest sample had none */
    bool awaits_tick;   /* restarted: not believed until it is seen to tick */
    uint64_t restart_ns;
    double doubt_j2; /* of the anchor that is being set, about its moment */
    bool is_stuck;
    double mean_w; /* of the last stretch */
    /* What was told beyond the last measured point (wg__account_tell), until measurement has caught
     * up with it. */
    double ahead_j, ahead_covered_s;
    uint64_t measured_ns; /* that point's time */
    double change_w2;     /* running mean square of the change from stretch to stretch */

    /* States that hold until the next sample that tells. */
    bool idle_known, is_idle, throttle_known, is_throttled, is_capped;
    double throttled_s; /* sum of the device's own throttle counters; NAN: none */
    double power_now_w; /* newest: a reading, else the slope of the counter; NAN: unknown */
};

void wg__account_init(struct wg_account *account, const struct wg_device_info *info,
                      uint64_t period_ns);

/* A sample; later than the one before. */
void wg__account_add(struct wg_account *account, const struct wg_sample *sample,
                     const struct wg_clock_offsets *offsets);

/* A read failed, or hung: the time up to the next sample is a gap. */
void wg__account_fail(struct wg_account *account, bool has_hung);

/* The point at `t_ns`, behind the end of the line: where the energy stands there by all that is
 * known now. A device that answers goes on as it was, within what its counter allows; one that does
 * not adds nothing, and the error says what it may have drawn. False: the line has not begun, or is
 * beyond `t_ns`. */
bool wg__account_extend(const struct wg_account *account, uint64_t t_ns, bool answers,
                        struct wg_line_point *out);

/* Makes that point final, because somebody is told of it. Should it prove wrong, the energy that
 * follows makes up for it: sums over longer times are not changed. */
void wg__account_tell(struct wg_account *account, uint64_t t_ns, bool answers);

/* Whether the counter was read long enough after `t_ns` to have moved, and has not: it stands, and
 * waiting for more is in vain. */
bool wg__account_stands_at(const struct wg_account *account, uint64_t t_ns);

/* The period with which its energy becomes known, in seconds; NAN: it has no energy at all. */
double wg__account_period_s(const struct wg_account *account);

/* Whether nothing that is still to come changes the sums at `t_ns`. */
bool wg__account_reaches(const struct wg_account *account, uint64_t t_ns);

#endif
