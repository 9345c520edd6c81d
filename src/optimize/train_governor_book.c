/* SPDX-License-Identifier: MIT
 *
 * Rows, their noise, and the next one: see train_governor_book.h.
 *
 * Next is first what the search over few settings asks for (power_limit.c), told the means so far.
 * That search weighs what it was told as if it were exact, so its answer is then made safe in two
 * ways: the neighbours of the best are measured, which costs little since they cost nearly as
 * little as the best; and settings are measured again while the best may, by noise, be worse than
 * another by more than `regret_most`:
 *
 *     ln C(best) - ln C(other) + z sd(difference) > regret_most
 *
 * and while the search has cost, beyond its best, less than a per cent of ten minutes.
 *
 * A clock is no limit in watts, and the search's model of the curve is made for those. It is given
 * the power that the cube law of CMOS says of each clock instead (physics of vgpu/physics.c): near
 * enough, since the model corrects power and speed by what is measured.
 *
 * The relative noise of a rate is what the measurements claim, corrected by how they scatter about
 * the means of their settings (the Birge ratio of metrology, over the whole book): sensors that are
 * worse than they claim cost repeats and no regret; and where the ends of steps are seen a little
 * early or late while the steps are even, the claim, made from single steps, is too careful by far.
 * The claim weighs as much as a few measurements, and a row that scatters more is believed.
 *
 * `slowdown:F` holds what is fast enough by `slowdown_z` standard deviations. A setting that is not
 * and would cost less is measured again, with the reference, while that can still settle it: not
 * when all the repeats that are left, and a standard deviation of luck, would not.
 *
 * A lower setting seldom makes a job faster. Where it seems to by more than noise, the world may
 * have changed between the two measurements: another process on the device has ended, the job has
 * come to another phase. The older one is suspect and is measured again. If it is as it was, such
 * is the job (some are, by a sixth, where the CPU sets the pace); if not, all that is as old is
 * forgotten.
 *
 * Threads: one at a time.
 */
#include "optimize/train_governor_book.h"

#include <math.h>

static const double regret_most = 0.005;
static const double regret_z = 2;
static const double slowdown_z = 2.5;   /* standard deviations to stay on the safe side of F */
static const double noise_least = 5e-4; /* of any mean, relative */
static const double clock_idle_share = 0.3, clock_floor = 0.6;
static const double spent_most_s = 6;     /* of repeats: 1 % of ten minutes */
static const double settling_share = 1.3; /* time at a setting over the time measured */
static const double tie_share = 0.1;
static const double contradiction_sd = 3.5;
static const double claim_worth = 2; /* repeats */
static const double change_share = 0.03, suspect_sd = 4;
static const double luck_sd = 2; /* hoped for of repeats */
enum { MEASUREMENTS_MOST = 12, CHECKS_MOST = 3 };

bool wg__train_book_is_known(const struct wg_train_book *book, size_t setting)
{
    const struct wg_train_row *row = &book->rows[setting];

    return row->measurements > 0 && !row->is_refused && !row->is_stale;
}

static bool is_open(const struct wg_train_book *book, size_t setting)
{
    return !book->rows[setting].is_refused && !book->rows[setting].is_skipped;
}

/* The variance of the mean of `count` values by their scatter; 0 for less than three. */
static double scatter_variance(double sum, double sum2, unsigned count)
{
    const double n = (double)count;

    return count < 3 ? 0 : fmax(0, sum2 - sum * sum / n) / (n - 1) / n;
}

/* The variance of a rate, relative, by the noise of single steps, or as the caller told it. */
static double claimed_variance(const struct wg_train_book *book, double steps,
                               double steps_variance)
{
    const double by_steps = book->step_noise * book->step_noise / steps;

    return fmax(fmax(steps_variance / (steps * steps), by_steps), noise_least * noise_least);
}

/* How far the claims are off, as a ratio of variances: by the scatter of repeats. */
static double claims_ratio(const struct wg_train_book *book)
{
    double ratios = claim_worth, repeats = claim_worth;

    for (size_t i = 0; i < book->count; i++) {
        const struct wg_train_row *row = &book->rows[i];
        const double n = row->measurements;

        if (!wg__train_book_is_known(book, i) || row->is_cached || row->measurements < 2)
            continue;
        const double about_mean =
            fmax(0, row->log_rate_sum2 - row->log_rate_sum * row->log_rate_sum / n);

        /* What is claimed of the mean, times their number, is claimed of each. */
        ratios += about_mean / (n * claimed_variance(book, row->steps, row->steps_variance));
        repeats += n - 1;
    }
    return ratios / repeats;
}

static double rate_sd(const struct wg_train_book *book, const struct wg_train_row *row)
{
    const double claimed = claimed_variance(book, row->steps, row->steps_variance);
    const double seen = scatter_variance(row->log_rate_sum, row->log_rate_sum2, row->measurements);

    return sqrt(fmax(fmax(claimed * claims_ratio(book), seen), noise_least * noise_least));
}

static double power_sd(const struct wg_train_row *row)
{
    const double claimed = row->energy_variance_j2 / (row->energy_j * row->energy_j);
    const double seen =
        scatter_variance(row->log_power_sum, row->log_power_sum2, row->measurements);

    return sqrt(fmax(fmax(claimed, seen), noise_least * noise_least));
}

static double rate(const struct wg_train_row *row)
{
    return row->steps / row->time_s;
}

static double power_w(const struct wg_train_row *row)
{
    return row->energy_j / row->time_s;
}

/* Keeps of a row what is no measurement. */
static void forget(struct wg_train_row *row)
{
    *row = (struct wg_train_row){
        .discarded = row->discarded, .settle_s = row->settle_s, .is_refused = row->is_refused};
}

/* By how much more than noise a lower setting seems to be faster than a higher one: above 1 it is.
 */
static double misfit(const struct wg_train_book *book, size_t low, size_t high)
{
    const struct wg_train_row *a = &book->rows[low], *b = &book->rows[high];
    const double sd = hypot(rate_sd(book, a), rate_sd(book, b));

    return log(rate(a) / rate(b)) / fmax(change_share, suspect_sd * sd);
}

/* Looks for the two rows that fit worst: the older one is suspect. */
static void look_for_suspect(struct wg_train_book *book)
{
    double worst = 1;

    book->suspect = book->count;
    if (book->checks >= CHECKS_MOST)
        return;
    for (size_t high = 1; high < book->count; high++)
        for (size_t low = 0; low < high; low++) {
            if (!wg__train_book_is_known(book, low) || !wg__train_book_is_known(book, high))
                continue;
            const bool is_low_older = book->rows[low].order < book->rows[high].order;
            const size_t older = is_low_older ? low : high, newer = is_low_older ? high : low;

            if (book->rows[older].is_confirmed || misfit(book, low, high) <= worst)
                continue;
            worst = misfit(book, low, high);
            book->suspect = older;
            book->suspect_order = book->rows[newer].order;
        }
}

/* The suspect was measured again. */
static void clear_suspect(struct wg_train_book *book, bool was_early, bool has_changed)
{
    const size_t suspect = book->suspect;

    book->checks++;
    book->rows[suspect].is_confirmed = !has_changed;
    if (!has_changed || was_early)
        return; /* one that was warming up says nothing of the others */
    book->tears++;
    for (size_t i = 0; i < book->count; i++)
        if (i != suspect && book->rows[i].order < book->suspect_order)
            forget(&book->rows[i]);
}

void wg__train_book_add(struct wg_train_book *book, size_t setting,
                        const struct wg_train_measurement *measurement, double steps_sd)
{
    struct wg_train_row *row = &book->rows[setting];
    bool is_first = true;

    for (size_t i = 0; i < book->count; i++)
        is_first = is_first && !wg__train_book_is_known(book, i);
    const double log_rate = log(measurement->steps / measurement->time_s);
    const double own_sd = sqrt(claimed_variance(book, measurement->steps, steps_sd * steps_sd));
    const double change = row->measurements > 0 ? fabs(log_rate - log(rate(row))) : 0;
    const double change_sd = row->measurements > 0 ? hypot(own_sd, rate_sd(book, row)) : 0;

    const bool was_early = row->is_early;

    if (row->is_stale || row->is_cached || was_early || change > contradiction_sd * change_sd)
        forget(row); /* the job has changed since, or was still warming up: the newest counts */
    row->is_early = is_first;
    const double log_power = log(measurement->energy_j / measurement->time_s);
    const double energy_sd_j =
        isfinite(measurement->energy_error_j) ? measurement->energy_error_j / 1.96 : 0;

    row->time_s += measurement->time_s;
    row->steps += measurement->steps;
    row->energy_j += measurement->energy_j;
    row->steps_variance += steps_sd * steps_sd;
    row->energy_variance_j2 += energy_sd_j * energy_sd_j;
    row->log_rate_sum += log_rate;
    row->log_rate_sum2 += log_rate * log_rate;
    row->log_power_sum += log_power;
    row->log_power_sum2 += log_power * log_power;
    row->measurements++;
    row->is_skipped = false;
    row->order = ++book->measurements;
    if (setting == book->suspect)
        clear_suspect(book, was_early, change > fmax(change_share, contradiction_sd * change_sd));
    look_for_suspect(book);
}

size_t wg__train_book_suspect(const struct wg_train_book *book)
{
    return book->suspect < book->count && is_open(book, book->suspect) ? book->suspect
                                                                       : book->count;
}

void wg__train_book_point(const struct wg_train_book *book, size_t setting,
                          struct wg_train_point *out)
{
    const struct wg_train_row *row = &book->rows[setting];

    *out = (struct wg_train_point){.setting = book->setting[setting],
                                   .power_w = power_w(row),
                                   .throughput = rate(row),
                                   .power_sd = power_sd(row) * power_w(row),
                                   .throughput_sd = rate_sd(book, row) * rate(row),
                                   .measured_s = row->time_s,
                                   .measurements = row->measurements,
                                   .discarded = row->discarded,
                                   .settle_s = row->settle_s};
}

double wg__train_book_cost(const struct wg_train_book *book, size_t setting, double *sd_out)
{
    const struct wg_train_row *row = &book->rows[setting];
    const struct wg_objective *objective = &book->objective;
    const double cost_per_s = wg__objective_cost_per_s(objective, power_w(row));
    double power_share = 1; /* d ln cost / d ln power */

    if (objective->kind == WG_OBJECTIVE_COST)
        power_share = objective->eta * power_w(row) / cost_per_s;
    else if (objective->kind == WG_OBJECTIVE_TIME)
        power_share = 0;
    *sd_out = hypot(power_share * power_sd(row), rate_sd(book, row));
    return cost_per_s / rate(row);
}

/* The fastest known setting; `count` when none is known. */
static size_t fastest(const struct wg_train_book *book)
{
    size_t found = book->count;

    for (size_t i = 0; i < book->count; i++)
        if (wg__train_book_is_known(book, i) &&
            (found == book->count || rate(&book->rows[i]) >= rate(&book->rows[found])))
            found = i;
    return found;
}

/* How much faster than SLOWDOWN asks for a setting is, relative. */
static double margin(const struct wg_train_book *book, size_t setting, size_t reference)
{
    return log(rate(&book->rows[setting]) * book->objective.max_slowdown /
               rate(&book->rows[reference]));
}

/* By how many standard deviations a setting is fast enough for SLOWDOWN; INFINITY for others. */
static double safety(const struct wg_train_book *book, size_t setting, size_t reference)
{
    if (book->objective.kind != WG_OBJECTIVE_SLOWDOWN || setting == reference)
        return (double)INFINITY;
    return margin(book, setting, reference) /
           hypot(rate_sd(book, &book->rows[setting]), rate_sd(book, &book->rows[reference]));
}

/* The best of those that are safe by `z` standard deviations. */
static size_t best_by(const struct wg_train_book *book, double z)
{
    const size_t reference = fastest(book);
    double least = (double)INFINITY, sd;
    size_t best = book->count;

    for (size_t i = 0; i < book->count; i++) {
        if (!wg__train_book_is_known(book, i) || safety(book, i, reference) < z)
            continue;
        const double cost = wg__train_book_cost(book, i, &sd);

        if (cost <= least) {
            least = cost;
            best = i;
        }
    }
    return best;
}

size_t wg__train_book_best(const struct wg_train_book *book)
{
    return best_by(book, slowdown_z);
}

/* What the search is told of a setting as a limit in watts. */
static double as_limit_w(const struct wg_train_book *book, size_t setting, size_t top)
{
    if (book->setting_w > 0)
        return book->setting[setting] * book->setting_w;
    const double x = book->setting[setting] / book->setting[top];
    const double voltage = fmax(x, clock_floor);
    const double share = clock_idle_share + (1 - clock_idle_share) * x * voltage * voltage;

    return share * (wg__train_book_is_known(book, top) ? power_w(&book->rows[top]) : 1.0);
}

/* The next setting of the search over few settings. */
static size_t search_next(const struct wg_train_book *book)
{
    struct wg_power_search search;
    size_t index[WG_POWER_LIMITS_MAX] = {0}, count = 0, top = book->count, asked;
    double limit_w[WG_POWER_LIMITS_MAX], near_w = NAN;

    for (size_t i = 0; i < book->count; i++)
        if (is_open(book, i))
            top = i;
    for (size_t i = 0; i < book->count && top < book->count; i++) {
        if (!is_open(book, i))
            continue;
        limit_w[count] = as_limit_w(book, i, top);
        if (isnan(near_w) && book->setting[i] >= book->neighbor_setting)
            near_w = limit_w[count];
        index[count++] = i;
    }
    if (count == 0 || wg__power_search_init(&search, &book->objective, WG_POWER_SEARCH_FEW_PROBES,
                                            limit_w, count, near_w, NULL) != WG_OK)
        return book->count;
    for (size_t k = 0; k < count; k++) {
        const struct wg_train_row *row = &book->rows[index[k]];

        if (wg__train_book_is_known(book, index[k]))
            (void)wg__power_search_tell(&search, k, power_w(row), rate(row), NULL);
    }
    return wg__power_search_ask(&search, &asked) ? index[asked] : book->count;
}

/* A neighbour of `setting` that can be measured and was not; `count`: none. */
static size_t unknown_neighbor(const struct wg_train_book *book, size_t setting)
{
    size_t at = setting;

    while (at-- > 0)
        if (is_open(book, at)) {
            if (!wg__train_book_is_known(book, at))
                return at;
            break;
        }
    for (at = setting + 1; at < book->count; at++)
        if (is_open(book, at)) {
            if (!wg__train_book_is_known(book, at))
                return at;
            break;
        }
    return book->count;
}

/* The noisier of two settings that may be measured again; `count`: neither. */
static size_t noisier(const struct wg_train_book *book, size_t a, size_t b)
{
    double a_sd = -1, b_sd = -1;

    if (is_open(book, a) && book->rows[a].measurements < MEASUREMENTS_MOST)
        (void)wg__train_book_cost(book, a, &a_sd);
    if (is_open(book, b) && book->rows[b].measurements < MEASUREMENTS_MOST)
        (void)wg__train_book_cost(book, b, &b_sd);
    if (a_sd < 0 && b_sd < 0)
        return book->count;
    return a_sd >= b_sd ? a : b;
}

/* What measuring has cost so far beyond the best setting, in seconds of it: the larger one of time
 * and energy, settling included. Of settings that cost the same the best may turn out to be another
 * one, faster or slower by a tenth, so all time counts by that share. */
static double spent_s(const struct wg_train_book *book, size_t best)
{
    const double best_rate = rate(&book->rows[best]), best_w = power_w(&book->rows[best]);
    double time_s = 0, energy_s = 0, measured_s = 0;

    for (size_t i = 0; i < book->count; i++) {
        const struct wg_train_row *row = &book->rows[i];

        if (!wg__train_book_is_known(book, i) || row->is_cached)
            continue;
        measured_s += row->time_s;
        const double done = rate(row) / best_rate;

        time_s += settling_share * row->time_s * (1 - done);
        energy_s += settling_share * row->time_s * (power_w(row) / best_w - done);
    }
    const bool has_ties = book->objective.kind != WG_OBJECTIVE_SLOWDOWN; /* which a bound breaks */

    return fmax(has_ties ? tie_share * measured_s : 0, fmax(time_s, energy_s));
}

/* The standard deviation of a rate after all the repeats that a setting may have. */
static double least_rate_sd(const struct wg_train_book *book, size_t setting)
{
    const struct wg_train_row *row = &book->rows[setting];
    const double left =
        is_open(book, setting) ? fmin(1, (double)row->measurements / (double)MEASUREMENTS_MOST) : 1;

    return rate_sd(book, row) * sqrt(left);
}

/* Repeats may still show that a setting is fast enough for SLOWDOWN. */
static bool may_prove_safe(const struct wg_train_book *book, size_t setting, size_t reference)
{
    const double sd =
        hypot(rate_sd(book, &book->rows[setting]), rate_sd(book, &book->rows[reference]));

    return margin(book, setting, reference) + luck_sd * sd >=
           slowdown_z * hypot(least_rate_sd(book, setting), least_rate_sd(book, reference));
}

bool wg__train_book_is_cautious(const struct wg_train_book *book)
{
    const size_t best = wg__train_book_best(book);

    return best < book->count && best_by(book, -slowdown_z) != best;
}

static size_t rival(const struct wg_train_book *book)
{
    const size_t best = wg__train_book_best(book), reference = fastest(book);
    double worst = regret_most, best_sd, sd;
    size_t found = book->count;

    if (best == book->count || spent_s(book, best) > spent_most_s)
        return book->count;
    const double best_cost = wg__train_book_cost(book, best, &best_sd);

    for (size_t i = 0; i < book->count; i++) {
        if (i == best || !wg__train_book_is_known(book, i))
            continue;
        const double gap = safety(book, i, reference);
        const double regret = log(best_cost / wg__train_book_cost(book, i, &sd)) +
                              (gap < slowdown_z ? 0 : regret_z * hypot(sd, best_sd));

        if (regret <= worst || (gap < slowdown_z && !may_prove_safe(book, i, reference)))
            continue;
        const size_t again = noisier(book, i, gap < slowdown_z ? reference : best);

        if (again == book->count)
            continue;
        worst = regret;
        found = again;
    }
    return found;
}

/* The setting that was measured first, when the job may still have been warming up: others are held
 * against it. `count`: it is the best, or was measured again. */
static size_t early(const struct wg_train_book *book, size_t best)
{
    for (size_t i = 0; i < book->count; i++)
        if (i != best && book->rows[i].is_early && is_open(book, i))
            return i;
    return book->count;
}

size_t wg__train_book_next(const struct wg_train_book *book)
{
    size_t next = book->is_local ? book->count : search_next(book);
    const size_t best = wg__train_book_best(book);

    if (next == book->count && best < book->count)
        next = unknown_neighbor(book, best);
    if (next == book->count && best < book->count && book->objective.kind == WG_OBJECTIVE_SLOWDOWN)
        next = early(book, best);
    if (next == book->count)
        next = rival(book);
    return next;
}
