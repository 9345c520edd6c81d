/* SPDX-License-Identifier: MIT
 *
 * Choosing ranges and ticks; see plot_axis.h.
 *
 * Everything is bounded so that no arithmetic overflows: values beyond 1e300 are not accepted, and
 * a range that is too narrow for double precision is widened as if all data were equal.
 */
#include "cli/plot_axis.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

static const double SIZE_MAX_VALUE = 1e300;
static const double SIZE_MIN_VALUE = 1e-290; /* smaller ones are as good as zero */
static const double NARROWEST = 1e-9;        /* of the range, relative to the values */

/* A step of mantissa x 10^exponent, mantissa being 1, 2 or 5. */
struct step {
    int mantissa;
    int exponent;
};

static double step_multiple(struct step step, double multiple)
{
    const double whole = multiple * step.mantissa;
    return step.exponent < 0 ? whole / pow(10, -step.exponent) : whole * pow(10, step.exponent);
}

static struct step nice_step(double raw)
{
    struct step step = {1, (int)floor(log10(raw))};
    const double fraction = raw / pow(10, step.exponent);
    if (fraction > 5 * (1 + 1e-9))
        step.exponent++;
    else if (fraction > 2 * (1 + 1e-9))
        step.mantissa = 5;
    else if (fraction > 1 + 1e-9)
        step.mantissa = 2;
    return step;
}

bool wg__ticks_accept(enum wg_plot_scale scale, double value)
{
    if (!(fabs(value) <= SIZE_MAX_VALUE)) /* NaN ends here too */
        return false;
    return scale == WG_PLOT_LINEAR || value >= SIZE_MIN_VALUE;
}

/* SI prefixes by powers of 1000, from 10^-15 to 10^15. */
static const char *const prefixes[] = {"f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P"};
enum { PREFIX_NONE = 5, PREFIX_COUNT = 11 };

/* The prefix for numbers up to `size`: as few digits as can be, but none for everyday numbers.
 * Returns the power of ten, and `*has_prefix` false where SI has none that fits. */
static int choose_prefix(double size, bool *is_in_range)
{
    *is_in_range = true;
    if (size < SIZE_MIN_VALUE || (size >= 0.01 && size < 1e4))
        return 0;
    const int thousands = (int)floor(log10(size) / 3 + 1e-12);
    *is_in_range = thousands >= -PREFIX_NONE && thousands < PREFIX_COUNT - PREFIX_NONE;
    return *is_in_range ? 3 * thousands : 0;
}

static const char *prefix_text(int power)
{
    return prefixes[power / 3 + PREFIX_NONE];
}

/* Units that people write with these prefixes. Of seconds only parts: nobody reads "ks". */
static bool takes_prefix(const char *unit, int power)
{
    static const char *const units[] = {"J", "W", "Wh", "Hz", "B", "FLOP", "FLOP/s", "B/s"};
    if (unit == NULL)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(units[i], unit) == 0)
            return true;
    return strcmp(unit, "s") == 0 && power <= 0;
}

/* Labels for ticks that are multiples of a step. */
static void label_linear(struct wg_ticks *ticks, const struct wg_plot_axis *axis, struct step step)
{
    const double size = fmax(fabs(ticks->low), fabs(ticks->high));
    bool is_in_range;
    const int power = choose_prefix(size, &is_in_range);
    const bool in_title = is_in_range && takes_prefix(axis->unit, power);
    const char *prefix = is_in_range ? prefix_text(power) : "";
    ticks->unit_prefix = in_title ? prefix : "";
    for (size_t i = 0; i < ticks->count; i++) {
        const double value = ticks->values[i];
        char *label = ticks->labels[i];
        if (value == 0) {
            (void)snprintf(label, WG_TICK_LABEL_BYTES, "0");
        } else if (is_in_range) {
            const int decimals = power > step.exponent ? power - step.exponent : 0;
            /* Dividing in two steps keeps 10^-power exact for small ones. */
            const double scaled = power < 0 ? value * pow(10, -power) : value / pow(10, power);
            (void)snprintf(label, WG_TICK_LABEL_BYTES, "%s%.*f%s", value < 0 ? "−" : "", decimals,
                           fabs(scaled), in_title ? "" : prefix);
        } else {
            const int digits = (int)floor(log10(size)) - step.exponent;
            (void)snprintf(label, WG_TICK_LABEL_BYTES, "%s%.*e", value < 0 ? "−" : "", digits,
                           fabs(value));
        }
    }
}

/* The label of a tick that stands alone: "200", "1k", "5e+20". As many digits as it takes. */
static void label_alone(char *label, double value)
{
    bool is_in_range;
    const int power = choose_prefix(fabs(value), &is_in_range);
    const double scaled = power < 0 ? value * pow(10, -power) : value / pow(10, power);
    double read_back = 0;
    for (int digits = 5; digits <= 12 && fabs(read_back - scaled) > 1e-12 * scaled; digits++) {
        (void)snprintf(label, WG_TICK_LABEL_BYTES, "%.*g", digits, scaled);
        if (!wg__parse_double(label, &read_back))
            break;
    }
    const size_t length = strlen(label);
    if (is_in_range)
        (void)snprintf(label + length, WG_TICK_LABEL_BYTES - length, "%s", prefix_text(power));
}

static void add_tick(struct wg_ticks *ticks, double value)
{
    /* A hair of rounding at the ends is forgiven. */
    const double slack = 1e-9 * (ticks->high - ticks->low);
    if (ticks->count == WG_TICKS_MAX || value < ticks->low - slack || value > ticks->high + slack)
        return;
    ticks->values[ticks->count++] = fmin(fmax(value, ticks->low), ticks->high);
}

/* Widens a range that is a point, or nearly one. */
static void widen(double *min, double *max, bool is_whole)
{
    const double size = fmax(fabs(*min), fabs(*max));
    if (*max - *min >= fmax(NARROWEST * size, SIZE_MIN_VALUE))
        return;
    const double padding = is_whole ? 1 : size < SIZE_MIN_VALUE ? 1 : size * 0.1;
    *min -= fmax(padding, size * NARROWEST);
    *max += fmax(padding, size * NARROWEST);
}

static void choose_linear(struct wg_ticks *ticks, const struct wg_plot_axis *axis, double min,
                          double max, unsigned wanted, bool is_snug)
{
    if (axis->from_zero) {
        min = fmin(min, 0);
        max = fmax(max, 0);
        if (max - min < SIZE_MIN_VALUE)
            max = 1;
    }
    widen(&min, &max, axis->is_whole);
    struct step step = nice_step((max - min) / wanted);
    if (axis->is_whole && step.exponent < 0)
        step = (struct step){1, 0};
    const double unit = step_multiple(step, 1);
    double first = floor(min / unit + 1e-9), last = ceil(max / unit - 1e-9);
    ticks->low = is_snug ? min : step_multiple(step, first);
    ticks->high = is_snug ? max : step_multiple(step, last);
    /* A range that spans no whole step has no tick inside; its ends then do. */
    /* Counted in int: `first` may be so large that adding 1 to it changes nothing. */
    const int count = (int)(last - first);
    for (int k = 0; k <= count; k++)
        add_tick(ticks, step_multiple(step, first + k));
    label_linear(ticks, axis, step);
}

/* Ticks at powers of `base`, `stride` exponents apart. */
static void choose_powers(struct wg_ticks *ticks, double base, double min, double max,
                          unsigned wanted, bool is_snug)
{
    const double scale = log10(base);
    const int first = (int)floor(log10(min) / scale + 1e-9);
    const int last = (int)ceil(log10(max) / scale - 1e-9);
    int stride = 1;
    while ((last - first) / stride + 1 > (int)wanted + 1)
        stride++;
    ticks->low = is_snug ? min : pow(base, first);
    ticks->high = is_snug ? max : pow(base, last);
    for (int k = first; k <= last; k += stride)
        add_tick(ticks, pow(base, k));
}

/* Ticks at 1, 2, 5, 10, 20, ... */
static void choose_one_two_five(struct wg_ticks *ticks, double min, double max, unsigned wanted,
                                bool is_snug)
{
    static const int mantissas[] = {1, 2, 5};
    double candidates[64];
    size_t count = 0;
    const int first = (int)floor(log10(min) - 1e-9), last = (int)ceil(log10(max) + 1e-9);
    for (int e = first; e <= last; e++)
        for (size_t m = 0; m < 3 && count < 64; m++)
            candidates[count++] = step_multiple((struct step){mantissas[m], e}, 1);
    ticks->low = min;
    ticks->high = max;
    for (size_t i = 0; i < count && !is_snug; i++) {
        if (candidates[i] <= min * (1 + 1e-9))
            ticks->low = candidates[i];
        if (candidates[count - 1 - i] >= max * (1 - 1e-9))
            ticks->high = candidates[count - 1 - i];
    }
    for (size_t i = 0; i < count; i++)
        add_tick(ticks, candidates[i]);
    if (ticks->count >= 3)
        return;
    /* Within so short a piece of a logarithmic axis, even steps read better. */
    ticks->count = 0;
    const struct step step = nice_step((ticks->high - ticks->low) / wanted);
    const double unit = step_multiple(step, 1);
    const double first_multiple = ceil(ticks->low / unit - 1e-9);
    const int steps = (int)(floor(ticks->high / unit + 1e-9) - first_multiple);
    for (int k = 0; k <= steps; k++)
        add_tick(ticks, step_multiple(step, first_multiple + k));
}

static void choose_log(struct wg_ticks *ticks, const struct wg_plot_axis *axis, double min,
                       double max, unsigned wanted, bool is_snug)
{
    if (max / min < 1 + NARROWEST) { /* a point: show the neighbourhood */
        min = fmax(min / 2, SIZE_MIN_VALUE);
        max = fmin(max * 2, SIZE_MAX_VALUE);
    }
    const double decades = log10(max) - log10(min);
    if (axis->scale == WG_PLOT_LOG2 && decades > 0.25)
        choose_powers(ticks, 2, min, max, wanted, false);
    else if (axis->scale == WG_PLOT_LOG && 3 * decades > wanted + 1)
        choose_powers(ticks, 10, min, max, wanted, is_snug);
    else
        choose_one_two_five(ticks, min, max, wanted, is_snug);
    for (size_t i = 0; i < ticks->count; i++) {
        if (axis->scale == WG_PLOT_LOG2 && ticks->values[i] >= 1 && ticks->values[i] < 1e6)
            (void)snprintf(ticks->labels[i], WG_TICK_LABEL_BYTES, "%.10g", ticks->values[i]);
        else
            label_alone(ticks->labels[i], ticks->values[i]);
    }
}

void wg__ticks_choose(struct wg_ticks *ticks, const struct wg_plot_axis *axis, double min,
                      double max, unsigned wanted, bool is_snug)
{
    *ticks = (struct wg_ticks){.scale = axis->scale, .unit_prefix = ""};
    wanted = wanted < 1 ? 1 : wanted > WG_TICKS_MAX / 2 ? WG_TICKS_MAX / 2 : wanted;
    if (min > max) { /* no data */
        min = axis->scale == WG_PLOT_LINEAR ? 0 : 1;
        max = axis->scale == WG_PLOT_LINEAR ? 1 : 10;
    }
    assert(wg__ticks_accept(axis->scale, min) && wg__ticks_accept(axis->scale, max));
    if (axis->scale == WG_PLOT_LINEAR)
        choose_linear(ticks, axis, min, max, wanted, is_snug);
    else
        choose_log(ticks, axis, min, max, wanted, is_snug);
    /* Where rounding put an end a hair inside of the data. */
    ticks->low = fmin(ticks->low, min);
    ticks->high = fmax(ticks->high, max);
}

double wg__ticks_place(const struct wg_ticks *ticks, double value)
{
    double place;
    if (ticks->scale == WG_PLOT_LINEAR)
        place = (value - ticks->low) / (ticks->high - ticks->low);
    else
        place = (log(value) - log(ticks->low)) / (log(ticks->high) - log(ticks->low));
    return fmin(fmax(place, 0), 1);
}

void wg__format_quantity(char *text, size_t size, double value, const char *unit)
{
    bool is_in_range;
    int power = choose_prefix(fabs(value), &is_in_range);
    if (unit != NULL && !takes_prefix(unit, power))
        power = 0;
    const char *prefix = is_in_range ? prefix_text(power) : "";
    const double scaled = power < 0 ? value * pow(10, -power) : value / pow(10, power);
    const char *minus = scaled < 0 ? "−" : "", *blank = unit != NULL ? " " : "";
    if (fabs(scaled) >= 1000 && fabs(scaled) < 1e9) /* %g would turn to exponents */
        (void)snprintf(text, size, "%s%.0f%s%s%s", minus, fabs(scaled), blank, prefix,
                       unit != NULL ? unit : "");
    else
        (void)snprintf(text, size, "%s%.4g%s%s%s", minus, fabs(scaled), blank, prefix,
                       unit != NULL ? unit : "");
}
