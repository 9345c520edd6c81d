/* SPDX-License-Identifier: MIT
 *
 * Differences of sums, and what they can be trusted for.
 *
 * The half width of an energy is z times the root of the variance that grew between the marks, and
 * the errors at both edges, taken as independent. Edges are bounds already and get no z. The time
 * that lies beyond what was measured (a device that was lost) adds what it may have drawn.
 *
 * Threads: pure, any thread.
 */
#include "measure/result.h"

#include <math.h>

static const double Z95 = 1.96;
static const double DISAGREES_SHARE = 0.10, DISAGREES_S = 5;
static const double STEP_ASSUMED = 1e-3; /* of a reading whose resolution is unknown */
static const double COVERED_ALL = 0.9999;

void wg__mark_take(struct wg_mark *mark, const struct wg_account *account, uint64_t t_ns)
{
    *mark = (struct wg_mark){.t_ns = t_ns};
    mark->period_s = wg__account_period_s(account);
    mark->power_w = account->power_now_w;
    mark->blind_w = wg__power_line_blind_w(&account->power);
    mark->step_w = account->power.step_w;
    mark->has_energy = account->energy.count > 0;
    if (mark->has_energy)
        wg__line_at(&account->energy, t_ns, &mark->energy);
    if (account->sides.count > 0)
        wg__line_at(&account->sides, t_ns, &mark->sides);
}

static double grown(const struct wg_mark *from, const struct wg_mark *to, enum wg_energy_sum sum)
{
    return to->energy.sums[sum] - from->energy.sums[sum];
}

static double passed(const struct wg_mark *from, const struct wg_mark *to, enum wg_side_sum sum)
{
    return to->sides.sums[sum] - from->sides.sums[sum];
}

static uint32_t flags_between(const struct wg_mark *from, const struct wg_mark *to)
{
    static const struct {
        enum wg_side_sum sum;
        enum wg_window_flag flag;
    } of_sides[] = {
        {WG_SIDE_GAP_S, WG_WINDOW_GAP},
        {WG_SIDE_HUNG_S, WG_WINDOW_HUNG},
        {WG_SIDE_CLOCK_STEP_S, WG_WINDOW_CLOCK_STEP},
        {WG_SIDE_SUSPENDED_S, WG_WINDOW_SUSPENDED},
        {WG_SIDE_CAPPED_S, WG_WINDOW_EXTERNALLY_CAPPED},
        {WG_SIDE_THROTTLED_S, WG_WINDOW_THROTTLED},
    };
    uint32_t flags = 0;
    for (size_t i = 0; i < sizeof of_sides / sizeof of_sides[0]; i++)
        if (passed(from, to, of_sides[i].sum) > 0)
            flags |= of_sides[i].flag;
    if (!to->has_energy)
        return flags;
    if (grown(from, to, WG_SUM_RESET_S) > 0)
        flags |= WG_WINDOW_COUNTER_RESET;
    if (grown(from, to, WG_SUM_STUCK_S) > 0)
        flags |= WG_WINDOW_STUCK;
    const double counter_j = grown(from, to, WG_SUM_CHECK_COUNTER_J);
    const double power_j = grown(from, to, WG_SUM_CHECK_POWER_J);
    const double sure_j = Z95 * sqrt(fmax(grown(from, to, WG_SUM_CHECK_VARIANCE_J2), 0));
    if (grown(from, to, WG_SUM_CHECK_S) >= DISAGREES_S &&
        fabs(counter_j - power_j) - sure_j > DISAGREES_SHARE * fmax(counter_j, power_j))
        flags |= WG_WINDOW_DISAGREES;
    return flags;
}

static double share(double part_s, double whole_s)
{
    return whole_s > 0 ? fmin(fmax(part_s / whole_s, 0), 1) : (double)NAN;
}

/* A steady reading is off by up to a step of its meter, for as long as it is steady. */
static double step_of(const struct wg_mark *mark, double power_w)
{
    return mark->step_w > 0 ? mark->step_w : STEP_ASSUMED * power_w;
}

static void fill_energy(struct wg_window_result *out, const struct wg_mark *from,
                        const struct wg_mark *to)
{
    const double known_s = grown(from, to, WG_SUM_COUNTER_S) + grown(from, to, WG_SUM_POWER_S);
    const uint64_t before_ns = from->t_ns < from->energy.begin_ns ? from->energy.distance_ns : 0;
    const uint64_t after_ns = to->t_ns > to->energy.begin_ns ? to->energy.distance_ns : 0;
    const double beyond_s = fmin((double)(before_ns + after_ns) * 1e-9, out->time_s);
    out->coverage = share(grown(from, to, WG_SUM_COVERED_S), out->time_s);
    if (out->coverage > COVERED_ALL)
        out->coverage = 1; /* rounding of sums over a long run */
    if (known_s <= 0)
        return; /* all of it fell into time that nothing speaks for */
    out->energy_j = fmax(grown(from, to, WG_SUM_ENERGY_J), 0);
    const double variance_j2 = fmax(grown(from, to, WG_SUM_VARIANCE_J2), 0);
    const double known_w = out->energy_j / known_s;
    const double beyond_j = beyond_s * fmax(known_w, isnan(to->power_w) ? 0 : to->power_w);
    out->energy_error_j = sqrt(Z95 * Z95 * variance_j2 + from->energy.error * from->energy.error +
                               to->energy.error * to->energy.error + beyond_j * beyond_j);
    const double power_s = grown(from, to, WG_SUM_POWER_S);
    out->energy_error_j += power_s * to->blind_w; /* the same for all of the time: no mean helps */
    out->energy_error_j = fmax(out->energy_error_j, power_s * step_of(to, known_w));
    if (grown(from, to, WG_SUM_UNKNOWN_S) > 0)
        out->energy_error_j = NAN;
    out->power_mean_w = out->energy_j / fmax(out->time_s - beyond_s, 1e-9);
    out->resolution_s = to->period_s;
    const double counter_s = grown(from, to, WG_SUM_COUNTER_S);
    out->source = counter_s >= known_s / 2 ? WG_ENERGY_COUNTER : WG_ENERGY_POWER;
}

void wg__result_between(struct wg_window_result *out, const struct wg_mark *from,
                        const struct wg_mark *to, double peak_w)
{
    wg__result_nothing(out, (double)(to->t_ns - from->t_ns) * 1e-9);
    out->flags = flags_between(from, to);
    out->sample_count =
        (size_t)(floor(to->sides.sums[WG_SIDE_SAMPLES]) - floor(from->sides.sums[WG_SIDE_SAMPLES]));
    const double idle_known_s = passed(from, to, WG_SIDE_IDLE_KNOWN_S);
    if (idle_known_s > 0)
        out->idle_share = share(passed(from, to, WG_SIDE_IDLE_S), idle_known_s);
    if (passed(from, to, WG_SIDE_THROTTLED_KNOWN_S) > 0)
        out->throttled_s = passed(from, to, WG_SIDE_THROTTLED_S);
    if (to->has_energy && from->has_energy)
        fill_energy(out, from, to);
    wg__result_finish(out, peak_w);
}

void wg__result_nothing(struct wg_window_result *total, double time_s)
{
    *total = (struct wg_window_result){
        .energy_j = NAN,
        .energy_error_j = NAN,
        .time_s = time_s,
        .power_mean_w = NAN,
        .power_peak_w = NAN,
        .idle_share = NAN,
        .throttled_s = NAN,
        .resolution_s = NAN,
    };
}

static double add_known(double sum, double value)
{
    return isnan(value) ? sum : (isnan(sum) ? 0 : sum) + value;
}

void wg__result_add(struct wg_window_result *total, const struct wg_window_result *device,
                    bool is_first)
{
    total->flags |= device->flags & ~(uint32_t)WG_WINDOW_BELOW_RESOLUTION;
    total->sample_count += device->sample_count;
    total->coverage = is_first ? device->coverage : fmin(total->coverage, device->coverage);
    total->throttled_s = fmax(total->throttled_s, device->throttled_s);
    total->idle_share = is_first ? device->idle_share : fmin(total->idle_share, device->idle_share);
    if (isnan(device->energy_j)) {
        total->flags |= WG_WINDOW_PARTIAL;
        return;
    }
    total->energy_j = add_known(total->energy_j, device->energy_j);
    total->energy_error_j = isnan(total->energy_error_j) && total->source == WG_ENERGY_NONE
                                ? device->energy_error_j
                                : hypot(total->energy_error_j, device->energy_error_j);
    total->power_mean_w = add_known(total->power_mean_w, device->power_mean_w);
    total->resolution_s = fmax(total->resolution_s, device->resolution_s);
    if (total->source == WG_ENERGY_NONE)
        total->source = device->source;
    else if (total->source != device->source)
        total->source = WG_ENERGY_MIXED;
}

void wg__result_finish(struct wg_window_result *total, double peak_w)
{
    if (isnan(total->energy_j))
        return;
    total->power_peak_w = isnan(peak_w) ? total->power_mean_w : peak_w;
    if (total->time_s < 2 * total->resolution_s)
        total->flags |= WG_WINDOW_BELOW_RESOLUTION;
}
