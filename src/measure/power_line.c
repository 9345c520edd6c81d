/* SPDX-License-Identifier: MIT
 *
 * Trapezium, recursion, and the variance of both.
 *
 * Variance. A sensor that sees the share s of the time is a sample of it: each reading stands for
 * its dt with the variance of readings, and two of them that know nothing of each other differ by
 * twice that variance: d^2 dt^2 / 2, times 1 - s for what is seen of a whole that is finite.
 * Where all is seen, what is left is the trapezium's: d^2 dt^2 / 5 (fitted to square waves and
 * random walks), of the tenth by which windows and reads are out of step. `d` is the change between
 * the readings, and what usually changes between readings, in equal parts; the first readings, from
 * which nothing usual can be known, reckon with half of what the device may draw.
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
static const double PERIODS_A_GAP = 2.5; /* of regular reads */
static const double POINTS_PER_WINDOW = 60;
static const uint64_t SECOND_NS = 1000000000U;

void wg__power_line_init(struct wg_power_line *power, const struct wg_sensor *sensor, double gap_s)
{
    *power = (struct wg_power_line){.sensor = *sensor, .gap_s = gap_s};
    wg__line_init(&power->line);
    const double period_s = sensor->update_period_s, window_s = sensor->averaging_window_s;
    power->is_averaged = period_s > 0 && window_s > 1.5 * period_s;
    const double age_s = period_s / 2 + (power->is_averaged ? 0 : window_s / 2);
    power->delay_ns = (uint64_t)llround(age_s * 1e9);
}

static double seen_share(const struct wg_power_line *power, double dt_s)
{
    const double window_s = power->sensor.averaging_window_s;
    return window_s > 0 ? fmin(1, window_s / dt_s) : 0;
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
        sum += moment.sums[WG_POWER_ENERGY_J];
    }
    return sum / (double)PARTS;
}

/* E at `t_ns` from E one window earlier. The line was begun a window before the first reading. */
static double undo_average(struct wg_power_line *power, const struct wg_line_point *last,
                           uint64_t t_ns, double power_w)
{
    const double window_s = power->sensor.averaging_window_s;
    const uint64_t window_ns = (uint64_t)llround(window_s * 1e9);
    const double dt_s = (double)(t_ns - last->t_ns) * 1e-9;
    if (dt_s > window_s) { /* The chain is broken: what lies between was not seen. */
        power->plain_j += power_w * dt_s;
        return last->sums[WG_POWER_ENERGY_J] + 0.5 * (power_w + power->last_w) * dt_s;
    }
    struct wg_line_moment earlier;
    wg__line_at(&power->line, t_ns - window_ns, &earlier);
    const double drift = power->plain_j - mean_over_window(power, last->t_ns, window_ns);
    power->plain_j += 0.5 * (power_w + power->last_w) * dt_s;
    const double undone = earlier.sums[WG_POWER_ENERGY_J] + window_s * power_w;
    const double plain = last->sums[WG_POWER_ENERGY_J] + power_w * dt_s;
    const double energy_j = (1 - LEAK) * undone + LEAK * plain + FEEDBACK * drift * dt_s / window_s;
    return fmax(energy_j, last->sums[WG_POWER_ENERGY_J]);
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
    point.sums[WG_POWER_ENERGY_J] = window_s * power_w;
    wg__line_append(&power->line, &point);
    power->plain_j = window_s * power_w / 2;
}

static void keep_range(struct wg_power_line *power, uint64_t t_ns, double power_w)
{
    if (power->now_from_ns == 0 || t_ns - power->now_from_ns > SECOND_NS) {
        power->before = power->now;
        if (power->now_from_ns == 0 || t_ns - power->now_from_ns > 2 * SECOND_NS)
            power->before.high_w = power->before.low_w = power_w;
        power->now.high_w = power->now.low_w = power_w;
        power->now_from_ns = t_ns;
    }
    power->now.high_w = fmax(power->now.high_w, power_w);
    power->now.low_w = fmin(power->now.low_w, power_w);
}

double wg__power_line_range(const struct wg_power_line *power)
{
    return fmax(power->now.high_w, power->before.high_w) -
           fmin(power->now.low_w, power->before.low_w);
}

double wg__power_line_blind_w(const struct wg_power_line *power)
{
    const double range_w = wg__power_line_range(power);
    const double unseen_s =
        power->sensor.update_period_s - fmax(power->sensor.averaging_window_s, 0);
    if (power->is_averaged || unseen_s <= 0 || range_w <= 0)
        return 0;
    /* Each rise and fall may lie within the time between two windows of the sensor, always on the
     * same side. The mean square of changes between regular readings tells how often they come. */
    const double changes = fmin(1, 2 * power->change_w2 / (range_w * range_w));
    const double period_s = power->gap_s / PERIODS_A_GAP;
    return range_w * changes * fmin(1, unseen_s / period_s);
}

/* What may change between readings by all that is known, squared. */
static double usual_change_w2(const struct wg_power_line *power)
{
    const double count = (double)power->line.count;
    return power->change_w2 + 2 * power->prior_w * power->prior_w / (count * (count + 1));
}

static double variance_j2_of(const struct wg_power_line *power, double change_w2, double dt_s)
{
    const double unseen = power->is_averaged ? 0 : 1 - seen_share(power, dt_s);
    return change_w2 * dt_s * dt_s * fmax(unseen / 2, OPEN_MIN / 5);
}

void wg__power_line_add(struct wg_power_line *power, uint64_t t_ns, double power_w)
{
    const struct wg_line_point *last = wg__line_last(&power->line);
    const uint64_t at_ns = t_ns > power->delay_ns ? t_ns - power->delay_ns : 0;
    keep_range(power, t_ns, power_w);
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
    const double dt_s = (double)(at_ns - last->t_ns) * 1e-9;
    if (power->is_averaged && dt_s < power->sensor.averaging_window_s / POINTS_PER_WINDOW)
        return;
    struct wg_line_point point = *last;
    point.t_ns = at_ns;
    const double change_w = power_w - power->last_w;
    const double before_w2 = usual_change_w2(power);
    /* Readings close together (at an edge) change less, and say nothing of the usual distance. */
    if (dt_s <= power->gap_s && dt_s >= power->gap_s / 5)
        power->change_w2 += fmax(CHANGE_FORGETS, 1 / (double)power->line.count) *
                            (change_w * change_w - power->change_w2);
    const double step_w = sqrt(change_w * change_w + before_w2);
    /* How old the reading is, is known to half a period only. */
    point.error = step_w * power->sensor.update_period_s / 2;
    point.bend = step_w;
    if (power->is_averaged) {
        point.sums[WG_POWER_ENERGY_J] = undo_average(power, last, at_ns, power_w);
        /* The true power changes faster than its mean over several updates shows. */
        point.bend *= power->sensor.averaging_window_s / power->sensor.update_period_s;
        point.error = point.bend * power->sensor.update_period_s / 2;
    } else {
        point.sums[WG_POWER_ENERGY_J] += 0.5 * (power_w + power->last_w) * dt_s;
    }
    double variance_j2 = variance_j2_of(power, 0.5 * (change_w * change_w + before_w2), dt_s);
    if (dt_s <= power->gap_s) {
        point.sums[WG_POWER_SEEN_S] += dt_s;
    } else {
        const double largest_w = fmax(power_w, power->last_w);
        variance_j2 = largest_w * largest_w * dt_s * dt_s / 12;
    }
    point.sums[WG_POWER_VARIANCE_J2] += variance_j2;
    power->last_w = power_w;
    wg__line_append(&power->line, &point);
}

bool wg__power_line_between(const struct wg_power_line *power, uint64_t from_ns, uint64_t to_ns,
                            double *energy_j_out, double *variance_j2_out, double *seen_s_out)
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
    *energy_j_out = to.sums[WG_POWER_ENERGY_J] - from.sums[WG_POWER_ENERGY_J] + extended_j;
    *variance_j2_out = to.sums[WG_POWER_VARIANCE_J2] - from.sums[WG_POWER_VARIANCE_J2] +
                       extended_j * extended_j / 12;
    *seen_s_out = to.sums[WG_POWER_SEEN_S] - from.sums[WG_POWER_SEEN_S];
    return true;
}
