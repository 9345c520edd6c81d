/* SPDX-License-Identifier: MIT
 *
 * Samples to running sums.
 *
 * Where a counter's reading goes in time. Locked ticks (ticks.h): to the last tick before the read.
 * A counter that moves all the time: half a period before the read. Ticks unknown: likewise, known
 * to half a period only, unless two reads close together enclose the tick.
 *
 * Threads: pure, one at a time.
 */
#include "measure/account.h"

#include <assert.h>
#include <math.h>

#include "device/sample.h"

static const double SLACK_NS = 15e3; /* the moment of a read beyond its own span */
static const double PERIOD_ASSUMED_S = 0.1;
static const double LIMIT_ASSUMED_W = 10000;
static const double LIMIT_FACTOR = 1.5; /* of the largest power limit */
static const double BRIDGE_S = 0.5;     /* a counter silent for longer, or three periods */
static const double SILENT_S = 1;       /* the same when no power tells */
static const double CHANGE_FORGETS = 0.05;
static const double EARLY_SHARE = 0.5; /* of the mean power, that may step in the first stretches */
static const double BEND_FACTOR = 1.5; /* fitted to square waves, whose pulses a stretch hides */
static const double SWING_FACTOR = 1.5; /* a reading is a mean already, and hides some */
enum { EARLY_POINTS = 8 };
static const int64_t SLEEP_NS = 200000000, STEP_NS = 50000000;

void wg__account_init(struct wg_account *account, const struct wg_device_info *info,
                      uint64_t period_ns)
{
    const struct wg_meter_info *meters = info->meters;
    *account = (struct wg_account){.power_metric = WG_METRIC_POWER_W};
    account->has_counter = meters[WG_METRIC_ENERGY_J].is_present;
    account->wraps = meters[WG_METRIC_ENERGY_J].wrap_s > 0;
    account->counter_step_j = meters[WG_METRIC_ENERGY_J].resolution;
    if (!meters[WG_METRIC_POWER_W].is_present && meters[WG_METRIC_POWER_AVERAGE_W].is_present)
        account->power_metric = WG_METRIC_POWER_AVERAGE_W;
    account->has_power = meters[account->power_metric].is_present;
    const struct wg_knob_info *limit = &info->knobs[WG_KNOB_POWER_LIMIT];
    account->limit_w = limit->is_present && limit->max > 0 && isfinite(limit->max)
                           ? LIMIT_FACTOR * limit->max
                           : LIMIT_ASSUMED_W;
    account->gap_s = 2.5e-9 * (double)period_ns;
    account->throttled_s = NAN;
    account->power_now_w = NAN;
    wg__line_init(&account->energy);
    wg__line_init(&account->sides);
    const struct wg_sensor sensor = wg__sensor_of(info, account->power_metric);
    wg__power_line_init(&account->power, &sensor, account->gap_s);
    account->power.step_w = meters[account->power_metric].resolution;
    if (!account->has_counter && account->limit_w < LIMIT_ASSUMED_W && !account->power.is_averaged)
        account->power.prior_w = EARLY_SHARE * account->limit_w / LIMIT_FACTOR;
    wg__ticks_init(&account->ticks, meters[WG_METRIC_ENERGY_J].update_period_s);
}

double wg__account_period_s(const struct wg_account *account)
{
    if (account->has_counter && !account->is_stuck)
        return account->ticks.period_ns > 0 ? account->ticks.period_ns * 1e-9 : PERIOD_ASSUMED_S;
    return account->has_power ? account->power.sensor.update_period_s : (double)NAN;
}

bool wg__account_reaches(const struct wg_account *account, uint64_t t_ns)
{
    return wg__line_reaches(&account->sides, t_ns) &&
           (wg__line_reaches(&account->energy, t_ns) ||
            (!account->has_counter && !account->has_power));
}

void wg__account_fail(struct wg_account *account, bool has_hung)
{
    account->has_failed = true;
    account->has_hung = account->has_hung || has_hung;
}

/* -- Sides ---------------------------------------------------------------------------------- */

/* What a sample tells of states; some samples tell only a part of it. */
static void take_states(struct wg_account *account, const struct wg_sample *sample)
{
    enum {
        HELD_DOWN = WG_THROTTLE_POWER_LIMIT | WG_THROTTLE_HARDWARE | WG_THROTTLE_THERMAL |
                    WG_THROTTLE_HARDWARE_THERMAL | WG_THROTTLE_POWER_BRAKE
    };
    const bool has_utilization = wg__sample_has(sample, WG_METRIC_UTILIZATION);
    if (has_utilization || sample->has_throttle) {
        account->idle_known = true;
        account->is_idle = (has_utilization && sample->values[WG_METRIC_UTILIZATION] <= 0) ||
                           (sample->has_throttle && (sample->throttle & WG_THROTTLE_IDLE) != 0);
    }
    if (sample->has_throttle) {
        account->throttle_known = true;
        account->is_throttled = (sample->throttle & (unsigned)HELD_DOWN) != 0;
    }
    if (wg__sample_has(sample, WG_METRIC_ENFORCED_POWER_LIMIT_W) &&
        wg__sample_has(sample, WG_METRIC_POWER_LIMIT_W))
        account->is_capped = sample->values[WG_METRIC_ENFORCED_POWER_LIMIT_W] <
                             sample->values[WG_METRIC_POWER_LIMIT_W] - 1;
}

/* The device's own count of throttled time since the last sample; NAN: it keeps none. */
static double throttled_since(struct wg_account *account, const struct wg_sample *sample)
{
    double total_s = NAN;
    const enum wg_metric metrics[] = {WG_METRIC_THROTTLED_POWER_S, WG_METRIC_THROTTLED_THERMAL_S};
    for (size_t i = 0; i < 2; i++)
        if (wg__sample_has(sample, metrics[i]))
            total_s = (isnan(total_s) ? 0 : total_s) + sample->values[metrics[i]];
    const double since_s = total_s - account->throttled_s;
    account->throttled_s = total_s;
    return since_s < 0 ? 0 : since_s; /* a count that fell has restarted */
}

/* What the states and clocks say of the time since the last sample. */
static void pass_time(const struct wg_account *account, const struct wg_clock_offsets *offsets,
                      double dt_s, double counted_s, double *sums)
{
    if (account->idle_known) {
        sums[WG_SIDE_IDLE_KNOWN_S] += dt_s;
        sums[WG_SIDE_IDLE_S] += account->is_idle ? dt_s : 0;
    }
    if (!isnan(counted_s)) {
        sums[WG_SIDE_THROTTLED_KNOWN_S] += dt_s;
        sums[WG_SIDE_THROTTLED_S] += fmin(counted_s, dt_s);
    } else if (account->throttle_known) {
        sums[WG_SIDE_THROTTLED_KNOWN_S] += dt_s;
        sums[WG_SIDE_THROTTLED_S] += account->is_throttled ? dt_s : 0;
    }
    const int64_t step_ns = offsets->wall_ns - account->offsets.wall_ns;
    const bool has_stepped = step_ns > STEP_NS || step_ns < -STEP_NS;
    const bool has_slept = offsets->sleep_ns - account->offsets.sleep_ns > SLEEP_NS;
    const bool is_gap =
        account->has_failed || account->lacks_counter || has_slept || dt_s > account->gap_s;
    sums[WG_SIDE_SUSPENDED_S] += has_slept ? dt_s : 0;
    sums[WG_SIDE_CLOCK_STEP_S] += has_stepped ? dt_s : 0;
    sums[WG_SIDE_GAP_S] += is_gap ? dt_s : 0;
    sums[WG_SIDE_HUNG_S] += account->has_hung ? dt_s : 0;
    sums[WG_SIDE_CAPPED_S] += account->is_capped ? dt_s : 0;
}

static void add_sides(struct wg_account *account, const struct wg_sample *sample,
                      const struct wg_clock_offsets *offsets)
{
    const struct wg_line_point *last = wg__line_last(&account->sides);
    struct wg_line_point point = last ? *last : (struct wg_line_point){0};
    point.t_ns = sample->t_ns;
    point.sums[WG_SIDE_SAMPLES] += 1;
    const double counted_s = throttled_since(account, sample);
    if (last)
        pass_time(account, offsets, (double)(sample->t_ns - last->t_ns) * 1e-9, counted_s,
                  point.sums);
    account->offsets = *offsets;
    account->has_failed = account->has_hung = false;
    take_states(account, sample);
    wg__line_append(&account->sides, &point);
}

/* -- Energy --------------------------------------------------------------------------------- */

enum origin { FROM_COUNTER, FROM_POWER, FROM_NOWHERE };

struct stretch { /* what to append behind the last point */
    uint64_t t_ns;
    double energy_j, variance_j2;
    double covered_s;
    double error_j;
    double bend_w;
    enum origin origin;
    bool is_reset, is_stuck;
};

/* From where on the energy is not measured yet; some of it may have been told. */
static uint64_t measured_ns(const struct wg_account *account)
{
    const struct wg_line_point *last = wg__line_last(&account->energy);
    return account->measured_ns != 0 && account->measured_ns < last->t_ns ? account->measured_ns
                                                                          : last->t_ns;
}

/* What is left of `value` when `*ahead` of it was told before; keeps what is still ahead. */
static double behind_told(double value, double *ahead)
{
    const double rest = fmax(value, 0) - *ahead;
    *ahead = fmax(-rest, 0);
    return fmax(rest, 0);
}

/* The point that follows the last one, from what was measured since `measured_ns`. Energy never
 * falls. */
static struct wg_line_point next_point(struct wg_account *account, const struct stretch *stretch)
{
    const struct wg_line_point *last = wg__line_last(&account->energy);
    struct wg_line_point point = last ? *last : (struct wg_line_point){0};
    point.t_ns = stretch->t_ns;
    point.error = stretch->error_j;
    point.bend = stretch->bend_w;
    if (!last)
        return point;
    const double dt_s = (double)(stretch->t_ns - last->t_ns) * 1e-9;
    const double measured_s = (double)(stretch->t_ns - measured_ns(account)) * 1e-9;
    point.sums[WG_SUM_ENERGY_J] += behind_told(stretch->energy_j, &account->ahead_j);
    point.error += account->ahead_j;
    point.sums[WG_SUM_VARIANCE_J2] += stretch->variance_j2;
    point.sums[WG_SUM_COVERED_S] +=
        behind_told(fmin(stretch->covered_s, measured_s), &account->ahead_covered_s);
    point.sums[WG_SUM_COUNTER_S] += stretch->origin == FROM_COUNTER ? dt_s : 0;
    point.sums[WG_SUM_POWER_S] += stretch->origin == FROM_POWER ? dt_s : 0;
    point.sums[WG_SUM_UNKNOWN_S] += stretch->origin == FROM_NOWHERE ? dt_s : 0;
    point.sums[WG_SUM_RESET_S] += stretch->is_reset ? dt_s : 0;
    point.sums[WG_SUM_STUCK_S] += stretch->is_stuck ? dt_s : 0;
    account->mean_w = fmax(stretch->energy_j, 0) / measured_s;
    account->measured_ns = stretch->t_ns;
    return point;
}

/* Appends the power integral up to `to_ns`; without power, the last known power goes on. */
static void append_bridge(struct wg_account *account, uint64_t to_ns, bool is_reset, bool is_stuck)
{
    const struct wg_line_point *last = wg__line_last(&account->energy);
    if (!last || to_ns <= last->t_ns)
        return;
    const uint64_t from_ns = measured_ns(account);
    const double dt_s = (double)(to_ns - from_ns) * 1e-9;
    struct stretch stretch = {.t_ns = to_ns, .is_reset = is_reset, .is_stuck = is_stuck};
    if (account->has_power &&
        wg__power_line_between(&account->power, from_ns, to_ns, &stretch.energy_j,
                               &stretch.variance_j2, &stretch.covered_s)) {
        stretch.origin = FROM_POWER;
    } else if (is_stuck) {
        stretch.origin = FROM_NOWHERE;
    } else {
        stretch.origin = FROM_POWER;
        stretch.energy_j = account->mean_w * dt_s;
        stretch.variance_j2 = stretch.energy_j * stretch.energy_j / 3;
    }
    stretch.variance_j2 += account->doubt_j2;
    stretch.bend_w = sqrt(account->power.change_w2);
    const struct wg_line_point point = next_point(account, &stretch);
    wg__line_append(&account->energy, &point);
}

/* By how much the power may swing within a tick of the counter, as readings of power show it: how
 * far they lie apart, and, since they may all meet the same state of a load that is in step with
 * the ticks, twice how far the newest is from the mean. */
static double hidden_w(const struct wg_account *account, double mean_w)
{
    if (!account->has_power || account->power.line.count == 0)
        return 0;
    return fmax(SWING_FACTOR * wg__power_line_range(&account->power),
                2 * fabs(account->power.last_w - mean_w));
}

/* A stretch of the counter, and what power says of the same time. */
static void append_counter(struct wg_account *account, uint64_t t_ns, double energy_j,
                           double half_ns)
{
    const uint64_t from_ns = measured_ns(account);
    const double dt_s = (double)(t_ns - from_ns) * 1e-9;
    const double mean_w = energy_j / dt_s;
    /* Of the first stretches nothing is known: they may hold any step. */
    const bool is_early = account->energy.count < EARLY_POINTS;
    double change_w = account->mean_w > 0 ? mean_w - account->mean_w : 0;
    if (is_early)
        change_w = fmax(fabs(change_w), EARLY_SHARE * mean_w);
    struct stretch stretch = {.t_ns = t_ns, .energy_j = energy_j, .covered_s = dt_s};
    /* Ticks may hide what readings of power show: a load that changes faster than they come. */
    stretch.bend_w = sqrt(BEND_FACTOR *
                          fmax(change_w * change_w + account->change_w2, account->power.change_w2));
    const double swing_w = hidden_w(account, mean_w);
    stretch.bend_w = fmax(stretch.bend_w, swing_w);
    const double forgets = fmax(CHANGE_FORGETS, 1 / (double)account->energy.count);
    account->change_w2 += forgets * (change_w * change_w - account->change_w2);
    stretch.error_j = half_ns * 1e-9 * (mean_w + swing_w / 2) + account->counter_step_j;
    struct wg_line_point point = next_point(account, &stretch);
    double power_j, variance_j2, seen_s;
    if (account->has_power &&
        wg__power_line_between(&account->power, from_ns, t_ns, &power_j, &variance_j2, &seen_s)) {
        point.sums[WG_SUM_CHECK_COUNTER_J] += energy_j;
        point.sums[WG_SUM_CHECK_POWER_J] += power_j;
        point.sums[WG_SUM_CHECK_VARIANCE_J2] += variance_j2;
        point.sums[WG_SUM_CHECK_S] += dt_s;
    }
    wg__line_append(&account->energy, &point);
}

/* Begins to believe a counter: what it shows at `t_ns` is the energy there. */
static void anchor(struct wg_account *account, uint64_t t_ns, double counter_j, double error_j)
{
    if (account->energy.count == 0) {
        const struct wg_line_point first = {.t_ns = t_ns,
                                            .error = error_j + account->counter_step_j};
        wg__line_append(&account->energy, &first);
    }
    append_bridge(account, t_ns, false, account->is_stuck);
    struct wg_line_moment moment;
    wg__line_at(&account->energy, t_ns, &moment);
    account->offset_j = moment.sums[WG_SUM_ENERGY_J] - account->ahead_j - counter_j;
    const struct wg_line_point *last = wg__line_last(&account->energy);
    if (t_ns < last->t_ns) { /* the line is beyond: what it has more there was told too early */
        account->offset_j += account->ahead_j;
        account->ahead_j = last->sums[WG_SUM_ENERGY_J] - moment.sums[WG_SUM_ENERGY_J];
        account->ahead_covered_s = (double)(last->t_ns - t_ns) * 1e-9;
        account->measured_ns = t_ns;
    }
    account->is_anchored = true;
    account->is_stuck = false;
}

/* Whether a counter that stands still is to be believed: power says that none was drawn. */
static bool may_stand(const struct wg_account *account, uint64_t from_ns, uint64_t to_ns)
{
    double power_j, variance_j2, seen_s;
    return account->has_power &&
           wg__power_line_between(&account->power, from_ns, to_ns, &power_j, &variance_j2,
                                  &seen_s) &&
           power_j <= fmax(2 * account->counter_step_j, 1e-3);
}

/* A reading that is worth for `t_ns`, known to +- half. */
static void take_counter(struct wg_account *account, uint64_t t_ns, double half_ns,
                         double counter_j)
{
    if (account->energy.count == 0 && account->has_read) {
        /* Where the ticks were is unknown as far back as the first reading. */
        const uint64_t age_ns = (uint64_t)(wg__account_period_s(account) * 0.5e9);
        if (account->first_ns - age_ns < t_ns)
            anchor(account, account->first_ns - age_ns, account->first_j,
                   (counter_j - account->first_j) * (double)age_ns /
                       (double)(t_ns - account->first_ns + age_ns));
    }
    if (!account->is_anchored) {
        const double doubt_j = half_ns * 1e-9 * account->mean_w;
        account->doubt_j2 = doubt_j * doubt_j;
        anchor(account, t_ns, counter_j, 0);
        account->doubt_j2 = 0;
        return;
    }
    const struct wg_line_point *last = wg__line_last(&account->energy);
    if (t_ns <= last->t_ns)
        return;
    const uint64_t from_ns = measured_ns(account);
    const double energy_j =
        counter_j + account->offset_j - (last->sums[WG_SUM_ENERGY_J] - account->ahead_j);
    const double dt_s = (double)(t_ns - from_ns) * 1e-9;
    const double step_j = fmax(account->counter_step_j, 1e-9 * counter_j);
    if (energy_j <= step_j / 2 && !may_stand(account, from_ns, t_ns)) {
        /* Stands still: it may be slower than we think, or stuck. The time stays open. */
        const double silent_s = account->has_power ? BRIDGE_S : SILENT_S;
        if (dt_s > fmax(silent_s, 3 * wg__account_period_s(account))) {
            append_bridge(account, t_ns, false, true);
            account->is_anchored = false;
            account->is_stuck = true;
        }
        return;
    }
    append_counter(account, t_ns, energy_j, half_ns);
}

/* Where in time this reading belongs. False: a tick may have come just now, so nowhere. */
static bool place_counter(const struct wg_account *account, const struct wg_sample *sample,
                          bool has_changed, uint64_t *t_out, double *half_out)
{
    const struct wg_ticks *ticks = &account->ticks;
    const uint64_t slack_ns = sample->span_ns / 2 + (uint64_t)SLACK_NS;
    const uint64_t stray_ns = (uint64_t)(WG_TICKS_STRAY * ticks->period_ns);
    if (ticks->state == WG_TICKS_LOCKED)
        return wg__ticks_floor(ticks, sample->t_ns, slack_ns + stray_ns, t_out, half_out);
    const double period_ns = ticks->period_ns > 0 ? ticks->period_ns : PERIOD_ASSUMED_S * 1e9;
    const uint64_t since_ns = sample->t_ns - account->read_ns;
    if (has_changed && account->has_read && (double)since_ns < period_ns) {
        *t_out = sample->t_ns - since_ns / 2;
        *half_out = (double)since_ns / 2 + (double)slack_ns;
        return true;
    }
    *t_out = sample->t_ns - (uint64_t)(period_ns / 2);
    *half_out = period_ns / 2 + (double)slack_ns;
    return ticks->state != WG_TICKS_SEARCHING;
}

/* The counter fell, or rose by more than the device can draw. */
static bool is_restarted(const struct wg_account *account, const struct wg_sample *sample)
{
    const double risen_j = sample->values[WG_METRIC_ENERGY_J] - account->read_j;
    const double since_s = (double)(sample->t_ns - account->read_ns) * 1e-9;
    return risen_j < -account->counter_step_j / 2 ||
           risen_j > account->limit_w * (since_s + 2 * wg__account_period_s(account));
}

/* What a restarted counter shows first belongs to no known moment: it counts from its restart on,
 * within a tick that nobody saw begin. So power bridges until it is seen to tick. */
static void restart(struct wg_account *account, const struct wg_sample *sample)
{
    const struct wg_line_point *last = wg__line_last(&account->energy);
    const uint64_t age_ns = (uint64_t)(wg__account_period_s(account) * 0.5e9);
    uint64_t t_ns = sample->t_ns - age_ns;
    if (last && t_ns <= last->t_ns && sample->t_ns > last->t_ns)
        t_ns = last->t_ns + (sample->t_ns - last->t_ns) / 2;
    append_bridge(account, t_ns, true, false); /* nothing, when told while the read was under way */
    wg__ticks_init(&account->ticks, account->ticks.nominal_ns * 1e-9);
    account->is_anchored = false;
    account->awaits_tick = true;
    account->restart_ns = sample->t_ns;
}

/* Whether a reading is used. One that is stuck, or has restarted, must tick first; one that has
 * restarted and never ticks is stuck. */
static bool is_believed(struct wg_account *account, const struct wg_sample *sample,
                        bool has_changed)
{
    if (!account->awaits_tick)
        return !account->is_stuck || has_changed;
    const double since_s = (double)(sample->t_ns - account->restart_ns) * 1e-9;
    const double silent_s = account->has_power ? BRIDGE_S : SILENT_S;
    if (!has_changed && since_s > fmax(silent_s, 3 * wg__account_period_s(account)))
        account->is_stuck = true;
    account->awaits_tick = !has_changed && !account->is_stuck;
    return has_changed;
}

static void add_counter(struct wg_account *account, const struct wg_sample *sample,
                        bool has_lost_step)
{
    const double counter_j = sample->values[WG_METRIC_ENERGY_J];
    const bool had_read = account->has_read;
    const double before_j = account->read_j;
    const bool has_changed = had_read && counter_j != before_j;
    if (had_read && (has_lost_step || is_restarted(account, sample))) {
        restart(account, sample);
    } else {
        const bool was_searching = account->ticks.state != WG_TICKS_LOCKED;
        if (had_read)
            wg__ticks_observe(&account->ticks, account->read_ns, sample->t_ns, has_changed,
                              (sample->span_ns + account->read_span_ns) / 2 + (uint64_t)SLACK_NS);
        wg__ticks_retry(&account->ticks, sample->t_ns);
        uint64_t t_ns;
        double half_ns;
        bool is_placed = place_counter(account, sample, has_changed, &t_ns, &half_ns);
        if (has_changed && was_searching && account->ticks.state == WG_TICKS_LOCKED) {
            /* The tick found is what this reading is worth; the first reading, the one before. */
            t_ns = account->ticks.tick_ns;
            half_ns = account->ticks.half_ns;
            is_placed = true;
            if (account->energy.count == 0 && before_j == account->first_j)
                anchor(account, t_ns - (uint64_t)account->ticks.period_ns, before_j, 0);
        }
        if (is_placed && is_believed(account, sample, has_changed))
            take_counter(account, t_ns, half_ns, counter_j);
    }
    if (!had_read) {
        account->first_j = counter_j;
        account->first_ns = sample->t_ns;
    }
    account->read_j = counter_j;
    account->read_ns = sample->t_ns;
    account->read_span_ns = sample->span_ns;
    account->has_read = true;
}

/* The points of the power line are those of the energy. */
static void add_power_only(struct wg_account *account)
{
    const struct wg_line_point *power = wg__line_last(&account->power.line);
    const struct wg_line_point *last = wg__line_last(&account->energy);
    if (!power || (last && power->t_ns <= last->t_ns))
        return;
    struct stretch stretch = {.t_ns = power->t_ns, .origin = FROM_POWER};
    if (last &&
        !wg__power_line_between(&account->power, measured_ns(account), power->t_ns,
                                &stretch.energy_j, &stretch.variance_j2, &stretch.covered_s))
        return;
    stretch.error_j = power->error;
    stretch.bend_w = power->bend;
    if (!account->power.is_averaged)
        stretch.bend_w = fmax(stretch.bend_w, wg__power_line_range(&account->power));
    stretch.is_stuck = account->is_stuck;
    const struct wg_line_point point = next_point(account, &stretch);
    wg__line_append(&account->energy, &point);
}

bool wg__account_stands_at(const struct wg_account *account, uint64_t t_ns)
{
    enum { PERIODS = 3 };
    const double periods_ns = (double)PERIODS * 1e9 * wg__account_period_s(account);
    return account->has_counter && account->has_read && !account->is_stuck &&
           account->read_ns > t_ns && (double)(account->read_ns - t_ns) > periods_ns &&
           account->energy.count > 0 && !wg__line_reaches(&account->energy, t_ns);
}

bool wg__account_extend(const struct wg_account *account, uint64_t t_ns, bool answers,
                        struct wg_line_point *out)
{
    const struct wg_line_point *last = wg__line_last(&account->energy);
    if (!last || t_ns <= last->t_ns)
        return false;
    *out = *last;
    out->t_ns = t_ns;
    out->bend = 0;
    const double dt_s = (double)(t_ns - last->t_ns) * 1e-9;
    const double power_w = isnan(account->power_now_w) ? account->mean_w : account->power_now_w;
    out->error = hypot(last->error, power_w * dt_s);
    if (!answers)
        return true;
    double energy_j = power_w * dt_s;
    if (wg__account_stands_at(account, t_ns) && account->is_anchored) {
        /* More than one step of the counter would have shown. It may be stuck: the error stays. */
        energy_j = fmin(energy_j, fmax(account->counter_step_j - account->ahead_j, 0));
        out->error += account->counter_step_j;
    }
    out->sums[WG_SUM_ENERGY_J] += energy_j;
    out->sums[WG_SUM_COVERED_S] += dt_s;
    out->sums[account->is_anchored ? WG_SUM_COUNTER_S : WG_SUM_POWER_S] += dt_s;
    return true;
}

void wg__account_tell(struct wg_account *account, uint64_t t_ns, bool answers)
{
    struct wg_line_point point;
    if (!wg__account_extend(account, t_ns, answers, &point))
        return;
    const struct wg_line_point *last = wg__line_last(&account->energy);
    account->measured_ns = measured_ns(account);
    account->ahead_j += point.sums[WG_SUM_ENERGY_J] - last->sums[WG_SUM_ENERGY_J];
    account->ahead_covered_s += point.sums[WG_SUM_COVERED_S] - last->sums[WG_SUM_COVERED_S];
    wg__line_append(&account->energy, &point);
}

/* While the counter is stuck, or has been missing from the samples for too long, power speaks. */
static void bridge_silence(struct wg_account *account)
{
    const double silent_s = (double)(account->last_ns - account->read_ns) * 1e-9;
    const bool is_missing = silent_s > fmax(BRIDGE_S, 3 * wg__account_period_s(account));
    if (!is_missing && !account->is_stuck)
        return;
    account->is_anchored = false;
    if (account->has_power)
        add_power_only(account);
    else
        append_bridge(account, account->last_ns, false, account->is_stuck);
}

void wg__account_add(struct wg_account *account, const struct wg_sample *sample,
                     const struct wg_clock_offsets *offsets)
{
    if (account->last_ns != 0 && sample->t_ns <= account->last_ns)
        return;
    account->last_ns = sample->t_ns;
    const bool has_lost_step = account->lacks_counter && account->wraps;
    account->lacks_counter = account->has_counter && !wg__sample_has(sample, WG_METRIC_ENERGY_J);
    add_sides(account, sample, offsets);
    if (account->has_power && wg__sample_has(sample, account->power_metric)) {
        account->power_now_w = sample->values[account->power_metric];
        wg__power_line_add(&account->power, sample->t_ns, account->power_now_w);
    }
    if (account->has_counter && !account->lacks_counter)
        add_counter(account, sample, has_lost_step);
    if (account->has_counter)
        bridge_silence(account);
    else
        add_power_only(account);
    if (!account->has_power && account->energy.count > 1)
        account->power_now_w = account->mean_w;
}
