/* SPDX-License-Identifier: MIT
 *
 * One trial: set, warm up, measure until it is precise enough, judge.
 *
 *     set devices --refused--> REFUSED: the level leaves the space
 *     set workload, warm up --crashed, hung, out of memory--> data; the workload is brought back
 *     window, window, ... --throttled--> DISCARDED, after a while to cool down
 *                         --hopeless---> CUT, or no further window
 *
 * A figure's standard error is the larger of two: what each window knows of its own, and what the
 * windows differ by. For the latter two or three windows alone say little, so the variances of
 * earlier trials count along (pooled, as if they were `pooled_most` windows), and once they are
 * known one quiet window may do.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "live/tune_parts.h"
#include "live/tune_quantity.h"
#include "live/workload_figures.h"

static const double pooled_most = 6;      /* windows that earlier trials count as, at most */
static const double pooled_trusted = 4;   /* of them, for one window to do */
static const double prior_windows = 1;    /* that the wanted precision itself counts as */
static const double hopeless_sigmas = 4;  /* beyond a limit */
static const double unknown_factor = 1.5; /* beyond a limit, of a figure whose error is unknown */
static const double most_error = 0.2;     /* a percentile of too few samples has no upper end */
static const double unknown_error = 0.99; /* and more: how a workload says that it knows none */
static const double least_error = 1e-4;   /* nothing real is better known */
static const double clock_slack = 1.02;   /* a clock that runs above its lock by more ignores it */
enum { STOPPED_MOST = 4 };                /* windows that are measured once more */
static const double cooler_c = 5;
static const double below_asked = 0.99; /* a limit that holds is another one than ours */

/* The windows of one trial. */
struct windows {
    size_t count;
    double values[WG_TUNE_TERMS_MAX][WG_TUNE_WINDOWS_MAX];
    double own[WG_TUNE_TERMS_MAX][WG_TUNE_WINDOWS_MAX]; /* relative errors; 0: not known */
    double time_s, energy_j, requests;
};

static size_t term_count(const struct wg_tune_run *run)
{
    return 1 + run->request->goal->limit_count;
}

static const struct wg_tune_term *term_of(const struct wg_tune_run *run, size_t i)
{
    const struct wg_tune_goal *goal = run->request->goal;
    return i == 0 ? &goal->objective : &goal->limits[i - 1];
}

/* -- Figures of the trial --------------------------------------------------------------------- */

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

/* Sum of squares of the relative deviations from the mean. */
static double scatter(const double *values, size_t count)
{
    const double mean = mean_of(values, count);
    double sum = 0;
    for (size_t i = 0; i < count && mean != 0; i++)
        sum += (values[i] / mean - 1) * (values[i] / mean - 1);
    return sum;
}

/* Relative standard error of a term's mean; 0: not known yet. */
static double error_of(const struct wg_tune_run *run, const struct windows *windows, size_t term)
{
    const size_t n = windows->count;
    double own2 = 0;
    bool is_own_known = true, is_unknown = false;
    for (size_t i = 0; i < n; i++) {
        const double error = windows->own[term][i];
        own2 += error * error / (double)n;
        is_own_known &= error > 0;
        is_unknown |= error >= unknown_error;
    }
    if (is_unknown)
        return 1;
    const struct wg_tune_noise *noise = &run->noise[term];
    const double pooled = fmin(noise->freedom, pooled_most);
    const double prior = run->request->precision * run->request->precision;
    const double variance =
        (prior_windows * prior + pooled * noise->variance + scatter(windows->values[term], n)) /
        (prior_windows + pooled + (double)n - 1);
    const double own = is_own_known ? sqrt(own2 / (double)n) : 0;
    const double between = sqrt(variance / (double)n);
    if (n == 1 && run->request->tells_errors && is_own_known)
        return fmin(fmax(own, least_error), most_error);
    if (n == 1 && pooled < pooled_trusted)
        return 0;
    return fmin(fmax(fmax(own, between), least_error), most_error);
}

/* What the tuner is told: where windows could not be compared, what the one knows of itself, at
 * least what was asked for. 0: nothing is known. */
static double told_error(const struct wg_tune_run *run, const struct windows *windows, size_t term)
{
    const double error = error_of(run, windows, term);
    if (error > 0 || !(windows->own[term][0] > 0))
        return error;
    return fmin(fmax(windows->own[term][0], run->request->precision), most_error);
}

/* Whether a limit is surely missed: more windows would only say by how much. One window of a figure
 * whose noise nobody knows yet says that only from afar. */
static bool is_hopeless(const struct wg_tune_run *run, const struct windows *windows)
{
    for (size_t i = 1; i < term_count(run); i++) {
        const double bound = run->result->bounds[i - 1];
        const double mean = mean_of(windows->values[i], windows->count);
        const double error = error_of(run, windows, i);
        const double factor =
            error > 0 ? 1 + hopeless_sigmas * fmax(run->request->precision, error) : unknown_factor;
        if (isfinite(bound) &&
            (term_of(run, i)->is_minimum ? mean * factor < bound : mean / factor > bound))
            return true;
    }
    return false;
}

static bool is_enough(const struct wg_tune_run *run, const struct windows *windows)
{
    const struct wg_tune_request *request = run->request;
    if (windows->count >= request->max_windows || windows->count >= WG_TUNE_WINDOWS_MAX ||
        windows->time_s >= request->max_window_s || is_hopeless(run, windows))
        return true;
    bool is_precise = windows->count >= request->min_windows;
    for (size_t i = 0; i < term_count(run); i++) {
        const double error = error_of(run, windows, i);
        is_precise &= error > 0 && error <= request->precision;
    }
    return is_precise;
}

/* What the windows of this trial differed by, for the trials to come. */
static void pool_noise(struct wg_tune_run *run, const struct windows *windows)
{
    const double freedom = (double)windows->count - 1;
    for (size_t i = 0; i < term_count(run) && freedom > 0; i++) {
        struct wg_tune_noise *noise = &run->noise[i];
        const double sum =
            noise->variance * noise->freedom + scatter(windows->values[i], windows->count);
        noise->freedom += freedom;
        noise->variance = sum / noise->freedom;
    }
}

/* Means over the windows, weighing each alike. */
static enum wg_code add_figures(struct wg_tune_trial *out, const struct wg_workload_sample *sample,
                                size_t windows, struct wg_error *err)
{
    if (out->figures == NULL)
        out->figures = wg__alloc_zeroed(WG_WORKLOAD_FIGURES_MAX, sizeof *out->figures);
    if (out->figures == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    for (size_t i = 0; i < sample->figure_count; i++) {
        size_t at = 0;
        while (at < out->figure_count &&
               strcmp(out->figures[at].name, sample->figures[i].name) != 0)
            at++;
        if (at == WG_WORKLOAD_FIGURES_MAX)
            continue;
        struct wg_workload_figure *figure = &out->figures[at];
        if (at == out->figure_count) {
            out->figure_count++;
            *figure = sample->figures[i];
        } else {
            figure->value += (sample->figures[i].value - figure->value) / (double)windows;
        }
    }
    return WG_OK;
}

/* Takes the newest window in. WG_EDATA: a figure is not there, or cannot be. */
static enum wg_code add_window(struct wg_tune_run *run, struct windows *windows,
                               struct wg_tune_trial *out, struct wg_error *err)
{
    const struct wg_workload_sample *sample = &run->window.sample;
    const size_t at = windows->count;
    for (size_t i = 0; i < term_count(run); i++) {
        double value = NAN, error = 0;
        const enum wg_code code =
            wg__tune_term_evaluate(term_of(run, i), sample, &value, &error, err);
        if (code != WG_OK)
            return code;
        if (!wg__tune_term_can_be(term_of(run, i), value))
            return wg__fail(err, WG_EDATA,
                            "'%s' is %g in a window of %.3g s: it must be above 0 (energy of a "
                            "window that is shorter than the meter's period may be 0)",
                            term_of(run, i)->text, value, sample->time_s);
        windows->values[i][at] = value;
        windows->own[i][at] = error;
    }
    windows->count++;
    windows->time_s += sample->time_s;
    windows->energy_j += run->window.energy_j;
    windows->requests += sample->requests;
    return add_figures(out, sample, windows->count, err);
}

/* -- What may go wrong ------------------------------------------------------------------------ */

static enum wg_trial_outcome outcome_of(enum wg_workload_outcome outcome)
{
    switch (outcome) {
    case WG_WORKLOAD_CUT:
        return WG_TRIAL_CUT;
    case WG_WORKLOAD_HUNG:
        return WG_TRIAL_HUNG;
    case WG_WORKLOAD_OUT_OF_MEMORY:
        return WG_TRIAL_OUT_OF_MEMORY;
    case WG_WORKLOAD_CRASHED:
        return WG_TRIAL_CRASHED;
    default:
        return WG_TRIAL_MEASURED;
    }
}

/* A crash, a hang, no memory: data. The workload is brought back. */
static enum wg_code take_failure(struct wg_tune_run *run, enum wg_workload_outcome outcome,
                                 const char *why, struct wg_tune_trial *out, bool *has_ended,
                                 struct wg_error *err)
{
    if (outcome == WG_WORKLOAD_INTERRUPTED || wg__tune_should_stop(run)) {
        *has_ended = true;
        return WG_OK;
    }
    out->told.outcome = outcome_of(outcome);
    (void)snprintf(out->failure, sizeof out->failure, "%s", why);
    return wg__tune_recover(run, err);
}

/* Figures that are not there or cannot be: of a workload that has told them before, what became of
 * it in this configuration (it served nothing, it is broken): a crash. Of one that never has, a
 * mistake of its user. */
static enum wg_code take_bad_figures(struct wg_tune_run *run, const struct wg_error *cause,
                                     struct wg_tune_trial *out, struct wg_error *err)
{
    bool has_told = false;
    for (size_t i = 0; i < run->result->count; i++)
        has_told |= run->result->trials[i].told.outcome == WG_TRIAL_MEASURED;
    if (cause->code != WG_EDATA || !has_told)
        return wg__fail(err, cause->code, "%s", cause->text);
    out->told.outcome = WG_TRIAL_CRASHED;
    (void)snprintf(out->failure, sizeof out->failure, "%.*s", WG_WORKLOAD_WHY_SIZE - 1,
                   cause->text);
    return wg__tune_recover(run, err);
}

/* What is known of a window that was cut: its latency is above that. */
static enum wg_code take_cut(const struct wg_tune_run *run, struct wg_tune_trial *out,
                             struct wg_error *err)
{
    const struct wg_workload_sample *sample = &run->window.sample;
    out->told.outcome = WG_TRIAL_CUT;
    out->time_s += sample->time_s;
    out->windows++;
    for (size_t i = 0; i < run->request->goal->limit_count; i++) {
        double value = NAN, error = 0;
        const bool is_known =
            wg__tune_term_evaluate(term_of(run, i + 1), sample, &value, &error, NULL) == WG_OK;
        out->told.figures[i] = is_known && value > 0 ? value : (double)NAN;
    }
    (void)snprintf(out->failure, sizeof out->failure, "%.*s", WG_WORKLOAD_WHY_SIZE - 1,
                   sample->why);
    return add_figures(out, sample, 1, err);
}

/* Waits until the devices have cooled down, a bounded time. */
static void cool_down(struct wg_tune_run *run)
{
    const double hot_c = run->watch.temperature_c;
    const double begin_s = wg__tune_now_s(), until_s = begin_s + run->request->cool_s;
    while (wg__tune_now_s() < until_s &&
           wg__tune_wait(run, fmin(0.5, fmax(0, until_s - wg__tune_now_s())))) {
        if (isfinite(hot_c) && run->watch.temperature_c <= hot_c - cooler_c)
            break;
    }
    run->cooled_s += wg__tune_now_s() - begin_s;
}

/* "gpu0 enforces 100 W, 400 W was asked for"; nothing where no limit holds below the asked one. */
static void describe_cap(const struct wg_tune_run *run, char *out, size_t size)
{
    const struct wg_tune_devices *devices = &run->request->knobs->devices;
    const uint32_t asked = WG_METRIC_POWER_LIMIT_W, enforced = WG_METRIC_ENFORCED_POWER_LIMIT_W;
    const uint32_t wanted = 1U << asked | 1U << enforced;
    out[0] = '\0';
    for (size_t g = 0; g < devices->gpu_count && out[0] == '\0'; g++) {
        struct wg_device *device = wg_machine_device(devices->machine, devices->gpus[g]);
        struct wg_sample sample;
        if (wg_device_read(device, wanted, &sample, NULL) == WG_OK &&
            (sample.present & wanted) == wanted &&
            sample.values[enforced] < below_asked * sample.values[asked])
            (void)snprintf(out, size, "%s enforces %.4g W, %.4g W was asked for: somebody else's",
                           wg_device_get_info(device)->label, sample.values[enforced],
                           sample.values[asked]);
    }
}

static void take_throttled(struct wg_tune_run *run, struct wg_tune_trial *out)
{
    char bits[120] = "";
    for (unsigned bit = 0; bit < 16; bit++) {
        const enum wg_throttle throttle = (enum wg_throttle)(1u << bit);
        const bool is_usual = throttle == WG_THROTTLE_IDLE || throttle == WG_THROTTLE_CLOCK_SETTING;
        const size_t used = strlen(bits);
        if ((run->window.throttle & throttle) != 0 && !is_usual && wg_throttle_text(throttle))
            (void)snprintf(bits + used, sizeof bits - used, "%s%s", used > 0 ? ", " : "",
                           wg_throttle_text(throttle));
    }
    char cap[120];
    describe_cap(run, cap, sizeof cap);
    if (cap[0] != '\0')
        memcpy(bits, cap, sizeof bits);
    out->told.outcome = WG_TRIAL_DISCARDED;
    (void)snprintf(out->failure, sizeof out->failure, "throttled (%s): thrown away",
                   bits[0] != '\0' ? bits : "a limit of somebody else");
    wg__tune_say(run, "the window was %s; waiting at most %.0f s", out->failure,
                 run->request->cool_s);
    cool_down(run);
}

/* A locked clock cannot be read back, but a device that runs above it shows that it was ignored.
 * The largest clock that was asked for; 0: it keeps to it, or nobody knows. */
static double ignored_hz(const struct wg_tune_run *run, const struct wg_tune_levels *levels)
{
    const struct wg_tune_knobs *knobs = run->request->knobs;
    const size_t k = wg__tune_find_device(knobs, WG_KNOB_GPU_CLOCK);
    if (k == knobs->count || !isfinite(run->window.clock_hz))
        return 0;
    const struct wg_tune_knob *knob = &knobs->knobs[k];
    double most_hz = 0;
    for (size_t d = 0; d < knob->device_count; d++)
        most_hz = fmax(most_hz, knob->values[levels->of[k] * knob->device_count + d]);
    return run->window.clock_hz > clock_slack * most_hz ? most_hz : 0;
}

static bool ignores_lock(const struct wg_tune_run *run, const struct wg_tune_levels *levels,
                         struct wg_tune_trial *out)
{
    const double most_hz = ignored_hz(run, levels);
    const struct wg_tune_knobs *knobs = run->request->knobs;
    if (most_hz == 0)
        return false;
    out->told.outcome = WG_TRIAL_REFUSED;
    out->told.refused_knob = wg__tune_find_device(knobs, WG_KNOB_GPU_CLOCK);
    (void)snprintf(
        out->failure, sizeof out->failure, "%s was locked to %.0f MHz twice, and ran at %.0f MHz",
        knobs->knobs[out->told.refused_knob].name, most_hz * 1e-6, run->window.clock_hz * 1e-6);
    return true;
}

/* -- Measuring -------------------------------------------------------------------------------- */

/* A window in which we were stopped (Ctrl-Z, SIGSTOP) has counted joules and waited for answers
 * while nobody looked: it is measured once more, whatever came of it. */
static enum wg_code measure_awake(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                                  bool is_bare, struct wg_error *err)
{
    enum wg_code code = WG_OK;
    for (unsigned i = 0; i < STOPPED_MOST; i++) {
        code = wg__tune_measure(run, levels, is_bare, err);
        if (!run->was_stopped || run->result->signal != 0)
            break;
        wg__tune_say(run, "stopped and continued within a window: it is measured once more");
    }
    return code;
}

/* One window. A lock that did not hold is set once more, and the window is repeated, before anybody
 * says that the level does not exist: a driver that is loaded anew forgets its locks. */
static enum wg_code measure(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                            bool is_bare, struct wg_error *err)
{
    enum wg_tune_set_outcome set = WG_TUNE_SET;
    char why[WG_WORKLOAD_WHY_SIZE];
    size_t refused = 0;
    enum wg_code code = measure_awake(run, levels, is_bare, err);
    if (code != WG_OK || run->window.sample.outcome != WG_WORKLOAD_OK ||
        ignored_hz(run, levels) == 0)
        return code;
    wg__tune_say(run, "a clock ran above its lock: it is set and measured once more");
    run->devices_are_set = false;
    code = wg__tune_set_devices(run, levels, &set, &refused, why, err);
    /* What could not be set now shows in the next window, or as somebody else's write. */
    return code == WG_OK ? measure_awake(run, levels, is_bare, err) : code;
}

/* Whether the newest window ends the trial: it failed, was cut, is worthless. */
static enum wg_code judge_window(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                                 struct wg_tune_trial *out, bool *is_over, bool *has_ended,
                                 struct wg_error *err)
{
    const struct wg_workload_sample *sample = &run->window.sample;
    *is_over = true;
    if (sample->outcome == WG_WORKLOAD_CUT)
        return take_cut(run, out, err);
    if (sample->outcome != WG_WORKLOAD_OK)
        return take_failure(run, sample->outcome, sample->why, out, has_ended, err);
    if (ignores_lock(run, levels, out))
        return WG_OK;
    if (run->window.is_throttled) {
        take_throttled(run, out);
        return WG_OK;
    }
    *is_over = false;
    return WG_OK;
}

/* For the load model: one window of the smallest batch at these settings, once. */
static enum wg_code measure_least_batch(struct wg_tune_run *run,
                                        const struct wg_tune_levels *levels,
                                        struct wg_tune_trial *out, bool *is_over, bool *has_ended,
                                        struct wg_error *err)
{
    const struct wg_tune_knobs *knobs = run->request->knobs;
    const size_t k = wg__tune_find_role(knobs, WG_TUNING_BATCH);
    *is_over = false;
    if (run->request->arrivals == NULL || k == knobs->count || levels->of[k] == 0)
        return WG_OK;
    struct wg_tune_levels least = *levels;
    least.of[k] = 0;
    if (wg__tune_find_point(run, &least) != NULL)
        return WG_OK;
    enum wg_workload_outcome outcome = WG_WORKLOAD_OK;
    char why[WG_WORKLOAD_WHY_SIZE];
    enum wg_code code = wg__tune_set_workload(run, &least, &outcome, why, err);
    if (code == WG_OK && outcome != WG_WORKLOAD_OK) {
        *is_over = true;
        return take_failure(run, outcome, why, out, has_ended, err);
    }
    if (code == WG_OK)
        code = measure(run, &least, true, err);
    return code == WG_OK ? judge_window(run, &least, out, is_over, has_ended, err) : code;
}

/* At the load the draw of the arrivals leaves an error, too: the same one in every window. */
static double with_draw(const struct wg_tune_run *run, size_t term, double error)
{
    static const double least = 1e-6;
    double value = NAN, drawn = 0;
    if (run->request->arrivals == NULL ||
        wg__tune_term_evaluate(term_of(run, term), &run->window.drawn, &value, &drawn, NULL) !=
            WG_OK ||
        drawn < least)
        return error;
    return fmin(fmax(error, most_error), hypot(error > 0 ? error : run->request->precision, drawn));
}

static void finish(struct wg_tune_run *run, const struct windows *windows,
                   struct wg_tune_trial *out)
{
    out->windows = (unsigned)windows->count;
    out->time_s = windows->time_s;
    out->energy_j = windows->energy_j;
    out->power_w = windows->energy_j / windows->time_s;
    out->requests = windows->requests;
    out->told.outcome = run->window.is_stable ? WG_TRIAL_MEASURED : WG_TRIAL_CUT;
    if (!run->window.is_stable)
        (void)snprintf(out->failure, sizeof out->failure,
                       "the load is more than it can serve: figures are lower bounds");
    out->told.objective = mean_of(windows->values[0], windows->count);
    out->told.objective_error = told_error(run, windows, 0);
    for (size_t i = 1; i < term_count(run); i++) {
        out->told.figures[i - 1] = mean_of(windows->values[i], windows->count);
        out->told.figure_errors[i - 1] = with_draw(run, i, told_error(run, windows, i));
    }
    if (out->told.outcome == WG_TRIAL_MEASURED)
        wg__tune_tell_slack(&run->power, run->request->knobs, &out->told);
    pool_noise(run, windows);
}

static enum wg_code measure_all(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                                struct windows *windows, struct wg_tune_trial *out, bool *has_ended,
                                struct wg_error *err)
{
    bool is_over = false;
    wg__tune_power_begin(&run->power);
    do {
        run->window_number = windows->count;
        struct wg_error cause;
        enum wg_code code = measure(run, levels, false, &cause);
        if (code == WG_OK)
            code = judge_window(run, levels, out, &is_over, has_ended, &cause);
        if (code == WG_OK && !is_over)
            code = add_window(run, windows, out, &cause);
        if (code != WG_OK)
            return take_bad_figures(run, &cause, out, err);
        if (is_over)
            return WG_OK;
        if (wg__tune_should_stop(run)) {
            *has_ended = true;
            return WG_OK;
        }
    } while (!is_enough(run, windows));
    finish(run, windows, out);
    return WG_OK;
}

/* Devices and workload as the configuration has them. */
static enum wg_code set_all(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                            struct wg_tune_trial *out, bool *is_over, bool *has_ended,
                            struct wg_error *err)
{
    enum wg_tune_set_outcome set = WG_TUNE_SET;
    enum wg_workload_outcome outcome = WG_WORKLOAD_OK;
    char why[WG_WORKLOAD_WHY_SIZE];
    enum wg_code code =
        wg__tune_set_devices(run, levels, &set, &out->told.refused_knob, out->failure, err);
    if (code != WG_OK)
        return code;
    *is_over = set != WG_TUNE_SET;
    *has_ended = set == WG_TUNE_SET_ENDED;
    if (*has_ended)
        run->result->was_foreign = true;
    if (set == WG_TUNE_SET_REFUSED)
        out->told.outcome = WG_TRIAL_REFUSED;
    if (*is_over)
        return WG_OK;
    code = measure_least_batch(run, levels, out, is_over, has_ended, err);
    if (code != WG_OK || *is_over)
        return code;
    code = wg__tune_set_workload(run, levels, &outcome, why, err);
    if (code != WG_OK || outcome == WG_WORKLOAD_OK)
        return code;
    *is_over = true;
    return take_failure(run, outcome, why, out, has_ended, err);
}

enum wg_code wg__tune_try(struct wg_tune_run *run, size_t configuration, struct wg_tune_trial *out,
                          bool *has_ended_out, struct wg_error *err)
{
    struct wg_tune_levels levels;
    wg__tune_levels_of(run->request->knobs->space, configuration, &levels);
    *has_ended_out = false;
    run->window_number = 0;
    run->is_default = configuration == run->request->knobs->space->default_configuration;
    out->told = (struct wg_trial){.configuration = configuration, .objective = NAN};
    for (size_t i = 0; i < WG_TUNING_LIMITS_MAX; i++)
        out->told.figures[i] = NAN;
    out->at_s = wg__tune_now_s() - run->start_s;
    out->energy_j = out->power_w = out->requests = NAN;
    struct windows *windows = wg__alloc_zeroed(1, sizeof *windows);
    if (windows == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    bool is_over = false;
    enum wg_code code = set_all(run, &levels, out, &is_over, has_ended_out, err);
    if (code == WG_OK && !is_over)
        code = measure_all(run, &levels, windows, out, has_ended_out, err);
    wg__free(windows);
    return code;
}
