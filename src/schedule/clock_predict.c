/* SPDX-License-Identifier: MIT
 *
 * The closed forms of clock_predict.h.
 *
 * Threads: pure, any thread.
 */
#include "schedule/clock_predict.h"

#include <math.h>

#include "math/normal.h"

/* The normal quantile of the bound that `margin` is taken from: 98 %. */
static const double margin_z = 2.054;

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
    double time_s = wg__batch_law_time(law, batch);
    if (batch > 8)
        return 1;
    for (int i = 0; i < ROUNDS; i++) {
        batch = fmax(1, load->rate * time_s + none_comes(load->rate * time_s, load->dispersion));
        time_s = wg__batch_law_time(law, batch);
    }
    return fmin(1, load->rate * time_s / batch);
}

/* -- What waits ---------------------------------------------------------------------------- */

struct crowd {
    double middle;   /* b* */
    double sd;       /* of the rows that wait when a batch begins, below the largest batch */
    double variance; /* of what comes during one batch of the largest */
    double room;     /* by how much a largest batch serves more than comes meanwhile */
    double largest;
};

/* The quantile of the patched density; masses are relative to a whole normal one's. */
static double crowd_quantile(const struct crowd *crowd, double share)
{
    const double z = (crowd->largest - crowd->middle) / crowd->sd;
    const double decay = 2 * crowd->room / crowd->variance;
    const double below = wg__normal_cdf(z);
    const double above = wg__normal_pdf(z) / (crowd->sd * decay);
    const double rest = (1 - share) * (below + above);
    if (rest < above)
        return crowd->largest + log(above / rest) / decay;
    return crowd->middle + crowd->sd * wg__normal_quantile(below + above - rest);
}

/* y / sd of P(U width + N(0, sd^2) > y) = rest, U even on (0, 1): about
 * (sd / width) L(z) = rest with L(z) = pdf(z) - z cdf(-z) and z = (y - width) / sd. */
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

void wg__clock_forecast(const struct wg_batch_law *law, const struct wg_clock_load *load,
                        struct wg_clock_forecast *out)
{
    const double largest = law->rows[law->count - 1];
    const double full_s = law->time_s[law->count - 1];
    *out = (struct wg_clock_forecast){.latency_s = HUGE_VAL, .busy = 1};
    if (!(load->rate * full_s < largest))
        return;
    if (!(load->rate > 0)) {
        *out = (struct wg_clock_forecast){law->time_s[0] * (1 + load->margin), 0};
        return;
    }
    const double batch = fixed_point(law, load->rate);
    out->busy = find_busy(law, load, batch);

    double slope_s = 0;
    const double time_s = law_at(law, batch, &slope_s);
    const double pull = fmin(load->rate * slope_s, 0.999);
    const double cv = load->margin / margin_z;
    const double came = load->rate * time_s;
    const struct crowd crowd = {
        .middle = batch,
        .sd =
            sqrt((fmax(load->dispersion * came, 0.1) + came * came * cv * cv) / (1 - pull * pull)),
        .variance = fmax(load->dispersion, 0.05) * load->rate * full_s +
                    load->rate * full_s * load->rate * full_s * cv * cv,
        .room = largest - load->rate * full_s,
        .largest = largest,
    };
    const double many = crowd_quantile(&crowd, load->share);
    const double own = batch + load->dispersion;
    const double own_s = wg__batch_law_time(law, own);
    /* In the tail: what the batches of a crowd take longer than those of the middle. */
    const double tail_s = wg__batch_law_time(law, fmin(many + load->dispersion, largest)) +
                          fmax(0, many - largest) * full_s / largest - own_s;
    const double z = wg__normal_quantile(load->share);
    const double both = many > largest ? 1 : sqrt(2 + 2 * pull);
    const double sd_s = hypot(both * fmax(0, tail_s) / z, cv * (time_s + own_s));
    const double waits =
        load->rate * law->time_s[0] < 1 ? out->busy * fmin(1, 4 * load->dispersion) : 1;
    const double rest = (1 - load->share) / fmax(waits, 1 - load->share);
    const double alone_s = law->time_s[0] * (1 + load->margin);
    out->latency_s = fmax(alone_s, own_s + even_and_normal(time_s + load->step_s, sd_s, rest));
}
