/* SPDX-License-Identifier: MIT
 *
 * Trapezium, recursion, and the variance of both.
 *
 * Variance. Between two readings dt apart the power may step at any place: for a step of size d at
 * a uniform place the trapezium is off with variance d^2 dt^2 / 12; pulses in between, which show
 * in neither reading, make it / 5 (fitted to square waves and random walks). `d` is the change
 * between the readings, and what usually changes between readings, in equal parts. A sensor that
 * sees the share s of that time leaves the rest open: factor 1 - s.
 *
 * Threads: pure, one at a time.
 */
#include "measure/power_line.h"

#include <math.h>

static const double CHANGE_FORGETS = 0.05; /* weight of the newest change in the running mean */
static const double FEEDBACK = 0.5;        /* of the drift taken back within one window */
static const double OPEN_MIN = 0.1;        /* windows and readings are not in step */
static const double LEAK =
    0.1; /* of the readings themselves: what was assumed at the start fades */
static const double POINTS_PER_WINDOW = 60;

void wg__power_line_init(struct wg_power_line *power, const struct wg_sensor *sensor, double gap_s)
{
    *power = (struct wg_power_line){.sensor = *sensor, .gap_s = gap_s};
    wg__line_init(&power->line);
    const double period_s = sensor->update_period_s, window_s = sensor->averaging_window_s;
    power->is_averaged = period_s > 0 && window_s > 1.5 * period_s;
    const double age_s = period_s / 2 + (power->is_averaged ? 0 : window_s / 2);
    power->delay_ns = (uint64_t)llround(age_s * 1e9);
}

static double seen_share(const struct wg_power_line *power, double dt)
{
    const double window_s = power->sensor.averaging_window_s;
    return window_s > 0 ? fmin(1, window_s / dt) : 0;
}

/* Mean of E over the averaging window that ends at `t_ns`. */
static double mean_over_window(const struct wg_power_line *power, uint64_t t_ns, uint64_t window_ns)
{
    enum { PARTS = 16 };
    double sum = 0;
    for (int i = 0; i < PARTS; i++) {
        struct wg_line_moment moment;
        const uint64_t back_ns = window_ns / PARTS * (unsigned)i + window_ns / PARTS / 2;
        wg__line_at(&power->line, t_ns - back_ns, &moment);
        sum += moment.sums[WG_POWER_ENERGY];
    }
    return sum / (double)PARTS;
}

/* E at `t_ns` from E one window earlier. The line was begun a window before the first reading. */
static double undo_average(struct wg_power_line *power, const struct wg_line_point *last,
                           uint64_t t_ns, double power_w)
{
    const double window_s = power->sensor.averaging_window_s;
    const uint64_t window_ns = (uint64_t)llround(window_s * 1e9);
    const double dt = (double)(t_ns - last->t_ns) * 1e-9;
    if (dt > window_s) { /* The chain is broken: what lies between was not seen. */
        power->plain_j += power_w * dt;
        return last->sums[WG_POWER_ENERGY] + 0.5 * (power_w + power->last_w) * dt;
    }
    struct wg_line_moment earlier;
    wg__line_at(&power->line, t_ns - window_ns, &earlier);
    const double drift = power->plain_j - mean_over_window(power, last->t_ns, window_ns);
    power->plain_j += 0.5 * (power_w + power->last_w) * dt;
    const double undone = earlier.sums[WG_POWER_ENERGY] + window_s * power_w;
    const double plain = last->sums[WG_POWER_ENERGY] + power_w * dt;
    const double energy = (1 - LEAK) * undone + LEAK * plain + FEEDBACK * drift * dt / window_s;
    return fmax(energy, last->sums[WG_POWER_ENERGY]);
}

/* The first reading of an averaging sensor: nothing is known of the time before, so it was steady.
 */
static void begin_averaged(struct wg_power_line *power, uint64_t t_ns, double power_w)
{
    const double window_s = power->sensor.averaging_window_s;
    const uint64_t window_ns = (uint64_t)llround(window_s * 1e9);
    struct wg_line_point point = {.t_ns = t_ns > window_ns ? t_ns - window_ns : 0};
    wg__line_append(&power->line, &point);
    point.t_ns = t_ns;
    point.sums[WG_POWER_ENERGY] = window_s * power_w;
    wg__line_append(&power->line, &point);
    power->plain_j = window_s * power_w / 2;
}

void wg__power_line_add(struct wg_power_line *power, uint64_t t_ns, double power_w)
{
    const struct wg_line_point *last = wg__line_last(&power->line);
    const uint64_t at_ns = t_ns > power->delay_ns ? t_ns - power->delay_ns : 0;
    if (!last) {
        power->last_w = power_w;
        if (power->is_averaged)
            begin_averaged(power, at_ns, power_w);
        else
            wg__line_append(&power->line, &(struct wg_line_point){.t_ns = at_ns});
        return;
    }
    if (at_ns <= last->t_ns)
        return;
    const double dt = (double)(at_ns - last->t_ns) * 1e-9;
    if (power->is_averaged && dt < power->sensor.averaging_window_s / POINTS_PER_WINDOW)
        return;
    struct wg_line_point point = *last;
    point.t_ns = at_ns;
    const double change = power_w - power->last_w;
    const double before_w2 = power->change_w2;
    /* Readings close together (at an edge) change less, and say nothing of the usual distance. */
    if (dt <= power->gap_s && dt >= power->gap_s / 5)
        power->change_w2 += fmax(CHANGE_FORGETS, 1 / (double)power->line.count) *
                            (change * change - power->change_w2);
    const double step_w = sqrt(change * change + before_w2);
    /* How old the reading is, is known to half a period only. */
    point.error = step_w * power->sensor.update_period_s / 2;
    point.bend = step_w;
    if (power->is_averaged) {
        point.sums[WG_POWER_ENERGY] = undo_average(power, last, at_ns, power_w);
        /* The true power changes faster than its mean over several updates shows. */
        point.bend *= power->sensor.averaging_window_s / power->sensor.update_period_s;
        point.error = point.bend * power->sensor.update_period_s / 2;
    } else {
        point.sums[WG_POWER_ENERGY] += 0.5 * (power_w + power->last_w) * dt;
    }
    const double open = fmax(1 - (power->is_averaged ? 1 : seen_share(power, dt)), OPEN_MIN);
    double variance = open * 0.5 * (change * change + before_w2) * dt * dt / 5;
    if (dt <= power->gap_s) {
        point.sums[WG_POWER_SEEN] += dt;
    } else {
        const double largest_w = fmax(power_w, power->last_w);
        variance = largest_w * largest_w * dt * dt / 12;
    }
    point.sums[WG_POWER_VARIANCE] += variance;
    power->last_w = power_w;
    wg__line_append(&power->line, &point);
}

bool wg__power_line_between(const struct wg_power_line *power, uint64_t from_ns, uint64_t to_ns,
                            double *energy_out, double *variance_out, double *seen_s_out)
{
    if (power->line.count == 0)
        return false;
    struct wg_line_moment from, to;
    wg__line_at(&power->line, from_ns, &from);
    wg__line_at(&power->line, to_ns, &to);
    /* Where the line ends, the nearest reading goes on; that much more is open. */
    const double missing_s =
        fmin((double)(to_ns - from_ns), (double)(from.distance_ns + to.distance_ns)) * 1e-9;
    const double extended_j = missing_s * power->last_w;
    *energy_out = to.sums[WG_POWER_ENERGY] - from.sums[WG_POWER_ENERGY] + extended_j;
    *variance_out =
        to.sums[WG_POWER_VARIANCE] - from.sums[WG_POWER_VARIANCE] + extended_j * extended_j / 12;
    *seen_s_out = to.sums[WG_POWER_SEEN] - from.sums[WG_POWER_SEEN];
    return true;
}
