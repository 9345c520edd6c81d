/* SPDX-License-Identifier: MIT
 *
 * The closed forms of clock_predict.h.
 *
 * Threads: pure, any thread.
 */
#include "schedule/clock_predict.h"

#include <math.h>
#include <stdbool.h>

#include "math/normal.h"

/* -- The law ------------------------------------------------------------------------------- */

void wg__batch_law_rows(struct wg_batch_law *law, unsigned max_rows)
{
    const double step = log((double)max_rows) / (WG_BATCH_LAW_POINTS - 1);
    law->count = 0;
    for (unsigned i = 0; i < WG_BATCH_LAW_POINTS; i++) {
        const double rows = round(exp(step * i));
        if (law->count == 0 || rows > law->rows[law->count - 1])
            law->rows[law->count++] = rows;
    }
}

/* The line that holds at `rows`: its value there, its slope. */
static double law_at(const struct wg_batch_law *law, double rows, double *slope_out)
{
    if (law->count == 1) {
        *slope_out = 0;
        return law->time_s[0];
    }
    size_t i = 0;
    while (i + 2 < law->count && rows > law->rows[i + 1])
        i++;
    *slope_out = (law->time_s[i + 1] - law->time_s[i]) / (law->rows[i + 1] - law->rows[i]);
    return law->time_s[i] + *slope_out * (rows - law->rows[i]);
}

double wg__batch_law_time(const struct wg_batch_law *law, double rows)
{
    double slope = 0;
    const double last = law->rows[law->count - 1];
    return law_at(law, fmin(fmax(rows, 1), last), &slope);
}

/* -- How large batches get ----------------------------------------------------------------- */

/* b* = rate t(b*): where rate t(b) falls below b, at least 1; rate t(B) < B. */
static double fixed_point(const struct wg_batch_law *law, double rate)
{
    if (rate * law->time_s[0] <= 1)
        return 1;
    for (size_t i = 0; i + 1 < law->count; i++) {
        if (rate * law->time_s[i + 1] > law->rows[i + 1])
            continue;
        const double slope =
            (law->time_s[i + 1] - law->time_s[i]) / (law->rows[i + 1] - law->rows[i]);
        const double fixed_s = law->time_s[i] - slope * law->rows[i];
        return rate * fixed_s / (1 - rate * slope);
    }
    return law->rows[law->count - 1];
}

/* Probability that nobody comes while `mean` rows are expected. */
static double none_comes(double mean, double dispersion)
{
    const double even = fmax(0, 1 - mean);
    if (dispersion >= 1)
        return dispersion > 1.01 ? exp(-mean * log(dispersion) / (dispersion - 1)) : exp(-mean);
    return even + dispersion * (exp(-mean) - even);
}

/* Share of the time that batches run: a batch after an idle stretch has one row, so the mean batch
 * is b = rate t(b) + P(nobody comes during it). */
static double find_busy(const struct wg_batch_law *law, const struct wg_clock_load *load,
                        double batch)
{
    enum { ROUNDS = 3 };
    const double largest = law->rows[law->count - 1];
    double time_s = wg__batch_law_time(law, batch);
    if (batch > 8)
        return 1;
    for (int i = 0; i < ROUNDS; i++) {
        const double came = load->rate * time_s;
        batch = fmin(fmax(1, came + none_comes(came, load->dispersion)), largest);
        time_s = wg__batch_law_time(law, batch);
    }
    return fmin(1, load->rate * time_s / batch);
}

/* -- What waits ---------------------------------------------------------------------------- */

/* Variances are taken this much larger than they are: with it the forecast is rarely below what a
 * simulation finds (tests/unit/test_clock_predict.c). */
static const double caution = 1.2;
/* Of a whole number of rows around a mean that is none. */
static const double rounding = 0.1;

/* Rows that wait when a batch begins. */
struct crowd {
    double largest;
    double phi;
    double middle;
    double sd;    /* below the largest batch */
    double bend;  /* a third of the scale of the right tail there: what comes is the more uneven the
                     more wait */
    double decay; /* of the density above the largest batch, a row */
    double z;     /* of the largest batch */
    double above; /* share of cases above it */
};

static struct crowd find_crowd(const struct wg_batch_law *law, const struct wg_clock_load *load,
                               double batch, double cv)
{
    const double full_s = law->time_s[law->count - 1];
    const double dispersion = caution * load->dispersion;
    struct crowd crowd = {.largest = law->rows[law->count - 1]};
    double slope_s = 0;
    const double time_s = law_at(law, batch, &slope_s);
    const double phi = fmin(load->rate * slope_s, 0.99);
    const double came = load->rate * time_s;
    const double came_full = load->rate * full_s;
    crowd.phi = phi;
    /* Where the line through `batch` meets b = rate t(b), also when that is below one row. */
    crowd.middle = (came - phi * batch) / (1 - phi);
    crowd.sd = sqrt((dispersion * came + came * came * cv * cv + rounding) / (1 - phi * phi));
    crowd.bend = fmax(dispersion, rounding) * (0.5 + phi / (1 - phi * phi)) / 3;
    /* A walk whose steps are small has the decay 2 c / variance; Poisson steps of a whole batch
     * have less: the last factor fits rho (exp(decay) - 1) = decay within 3 % for rho > 0.4. */
    const double variance =
        fmax(dispersion, rounding / 2) * came_full + came_full * came_full * cv * cv;
    crowd.decay =
        2 * (crowd.largest - came_full) / variance * (1 - 0.74 * (1 - came_full / crowd.largest));
    /* Inverts the quantile below. */
    const double over = crowd.largest - crowd.middle + crowd.bend;
    const double root = sqrt(fmax(0, crowd.sd * crowd.sd + 4 * crowd.bend * over));
    crowd.z = (root - crowd.sd) / (2 * crowd.bend);
    const double below = wg__normal_cdf(crowd.z);
    const double density = wg__normal_pdf(crowd.z) / (crowd.sd + 2 * crowd.bend * fmax(0, crowd.z));
    crowd.above = density / (density + below * crowd.decay);
    return crowd;
}

/* How many wait in all but `rest` of the cases: the exponential part, or the normal one with the
 * Cornish-Fisher term for its skew. */
static double crowd_quantile(const struct crowd *crowd, double rest)
{
    if (rest < crowd->above)
        return crowd->largest + log(crowd->above / rest) / crowd->decay;
    const double whole = wg__normal_cdf(crowd->z) / (1 - crowd->above);
    const double z = wg__normal_quantile((1 - rest) * whole);
    return crowd->middle + crowd->sd * z + crowd->bend * fmax(0, z * z - 1);
}

/* y of P(U width + N(0, sd^2) > y) = rest, U even on (0, 1): about
 * (sd / width) L(z) = rest with L(z) = pdf(z) - z cdf(-z) and z = (y - width) / sd; L is convex, so
 * Newton's steps from the left of the root never pass it. */
static double even_and_normal(double width, double sd, double rest)
{
    enum { ROUNDS = 6 };
    if (sd < 1e-6 * width)
        return width * (1 - rest);
    const double target = rest * width / sd;
    double z = -target;
    for (int i = 0; i < ROUNDS; i++) {
        const double tail = wg__normal_cdf(-z);
        const double excess = wg__normal_pdf(z) - z * tail - target;
        z += excess / tail;
        if (excess < 1e-3 * target)
            break;
    }
    return width + sd * z;
}

/* -- Together ------------------------------------------------------------------------------ */

/* What a request meets that has to wait. */
struct encounter {
    double width_s; /* of the batch that runs (and the step) when it comes */
    double own;     /* rows of the batch that it is in */
    double own_s;
    double noise_s; /* standard deviation of both times' noise */
    double rest;    /* share of such requests that may take longer than the forecast */
};

/* More than a largest batch waits in more cases than may be late: their decay decides. */
static double latency_of_crowd(const struct wg_batch_law *law, const struct encounter *met,
                               const struct crowd *crowd, double step_s, bool *applies_out)
{
    const double full_s = law->time_s[law->count - 1];
    const double decay = crowd->decay * crowd->largest / full_s; /* a second */
    const double reach = -expm1(-decay * full_s) / (decay * full_s);
    *applies_out = crowd->above * reach > met->rest;
    return 2 * full_s + log(crowd->above * reach / met->rest) / decay + step_s +
           2 * met->noise_s * met->noise_s * decay;
}

static double latency_of_waiting(const struct wg_batch_law *law, const struct wg_clock_load *load,
                                 const struct encounter *met, const struct crowd *crowd)
{
    const double full_s = law->time_s[law->count - 1];
    const double limit_s = 4 * full_s;
    bool is_crowded = false;
    const double crowded_s = latency_of_crowd(law, met, crowd, load->step_s, &is_crowded);
    if (is_crowded && crowded_s > limit_s)
        return crowded_s;
    const double many = crowd_quantile(crowd, met->rest);
    const double top = fmin(many + load->dispersion, fmax(crowd->largest, met->own));
    /* The batch that runs and the own one are both longer, and with phi together. */
    const double longer_s =
        sqrt(2 + 2 * crowd->phi) *
            fmax(0, wg__batch_law_time(law, top) - wg__batch_law_time(law, met->own)) +
        fmax(0, many - crowd->largest) * full_s / crowd->largest;
    const double z = wg__normal_quantile(1 - fmin(met->rest, 0.3));
    const double sd_s = hypot(longer_s / z, met->noise_s);
    const double normal_s = met->own_s + even_and_normal(met->width_s, sd_s, met->rest);
    /* A tail that is shorter than a few batches is neither of the two: the larger one, then. */
    return is_crowded ? fmax(crowded_s, fmin(normal_s, limit_s)) : normal_s;
}

/* Share of the requests that find the server at work, or others that came with them. */
static double share_that_waits(const struct wg_batch_law *law, const struct wg_clock_load *load,
                               double busy, double cv)
{
    if (load->rate * law->time_s[0] >= 1)
        return 1;
    const double uneven = load->dispersion + cv * cv;
    return fmax(busy * fmin(1, 4 * uneven), 1 - 1 / fmax(load->dispersion, 1));
}

void wg__clock_forecast(const struct wg_batch_law *law, const struct wg_clock_load *load,
                        struct wg_clock_forecast *out)
{
    const double largest = law->rows[law->count - 1];
    const double full_s = law->time_s[law->count - 1];
    const double alone_s = law->time_s[0] * (1 + load->margin) + load->step_s;
    *out = (struct wg_clock_forecast){.latency_s = HUGE_VAL, .busy = 1};
    if (!(load->rate * full_s < largest))
        return;
    if (!(load->rate > 0)) {
        *out = (struct wg_clock_forecast){alone_s, 0};
        return;
    }
    const double batch = fixed_point(law, load->rate);
    const double cv = load->margin / WG_MARGIN_SIGMAS;
    const struct crowd crowd = find_crowd(law, load, batch, cv);
    const double time_s = wg__batch_law_time(law, batch);
    out->busy = find_busy(law, load, batch);
    out->latency_s = alone_s;
    const double waits = share_that_waits(law, load, out->busy, cv);
    if (waits <= 1 - load->share)
        return;
    /* Long batches meet more requests than short ones. */
    const double biased = crowd.phi / load->rate * crowd.sd * crowd.sd / time_s;
    struct encounter met = {.rest = (1 - load->share) / waits};
    met.width_s = wg__batch_law_time(law, batch + biased) + load->step_s;
    met.own = fmin(batch, fmax(1, load->rate * time_s)) + crowd.phi * biased + load->dispersion;
    met.own_s = wg__batch_law_time(law, met.own) + fmax(0, met.own - largest) * full_s / largest;
    met.noise_s = cv * (met.width_s + met.own_s);
    out->latency_s = fmax(alone_s, latency_of_waiting(law, load, &met, &crowd));
}
