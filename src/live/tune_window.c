/* SPDX-License-Identifier: MIT
 *
 * One window: what the workload tells, what the meters count, and what the devices did meanwhile.
 *
 * The energy's window lies where the workload says that its measured part is; where it does not
 * know, around the whole of it. Joules that the workload tells, and those of a stated model, belong
 * to the time that the workload tells (time_s), never to how long its process took: that loads and
 * ends, too. Figures of our own join the workload's:
 *
 *     energy_j power_w time_s requests_per_s energy_per_request_j
 *
 * An energy's error comes from sampling and resolution (wattgov/window.h); a figure's own from the
 * workload, if it knows.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "live/tune_parts.h"
#include "live/workload_figures.h"

static const double look_s = 0.05; /* how often devices are looked at within a window */
static const double tend_s = 0.25; /* how often guard and foreign writes are */
static const double z95 = 1.96;
static const double tiny = 1e-9; /* the error of what is known exactly */

double wg__tune_now_s(void)
{
    return (double)wg__clock_ns() / 1e9;
}

/* -- While it runs ---------------------------------------------------------------------------- */

/* Takes one, if one comes until then; the first that ends us counts. False: none came. */
static bool take_signal(struct wg_tune_run *run, uint64_t until_ns)
{
    bool to_group = false;
    const int signal = wg__signals_wait(run->request->signals, until_ns, &to_group);
    if (signal == SIGCONT)
        run->was_stopped = true;
    else if (signal != 0 && wg__signal_ends(signal) && run->result->signal == 0)
        run->result->signal = signal;
    return signal != 0;
}

/* Clocks and their reasons change faster than the meter reads them. */
static void look_at_gpu(struct wg_tune_run *run, size_t gpu, double *hottest_c)
{
    static const uint32_t wanted = 1U << WG_METRIC_CLOCK_HZ | 1U << WG_METRIC_TEMPERATURE_C |
                                   1U << WG_METRIC_UTILIZATION | 1U << WG_METRIC_POWER_W |
                                   1U << WG_METRIC_POWER_AVERAGE_W |
                                   1U << WG_METRIC_THROTTLED_POWER_S;
    struct wg_tune_watch *watch = &run->watch;
    struct wg_sample sample;
    const size_t position = run->request->knobs->devices.gpus[gpu];
    if (wg_device_read(wg_machine_device(run->request->machine, position), wanted, &sample, NULL) !=
        WG_OK)
        return;
    if ((sample.present >> WG_METRIC_TEMPERATURE_C & 1u) != 0)
        *hottest_c = fmax(*hottest_c, sample.values[WG_METRIC_TEMPERATURE_C]);
    if (isnan(watch->begin_s) || !isnan(watch->end_s))
        return; /* no window is open */
    wg__tune_power_look(&run->power, gpu, &sample);
    if (sample.has_throttle)
        watch->throttle |= sample.throttle;
    if ((sample.present >> WG_METRIC_CLOCK_HZ & 1u) != 0)
        watch->clock_hz = fmax(watch->clock_hz, sample.values[WG_METRIC_CLOCK_HZ]);
}

static void look_at_devices(struct wg_tune_run *run, double now_s)
{
    struct wg_tune_watch *watch = &run->watch;
    const struct wg_tune_devices *devices = &run->request->knobs->devices;
    if (run->meter == NULL || now_s < watch->next_s)
        return;
    watch->next_s = now_s + look_s;
    double hottest_c = NAN;
    for (size_t g = 0; g < devices->gpu_count; g++)
        look_at_gpu(run, g, &hottest_c);
    if (isfinite(hottest_c))
        watch->temperature_c = hottest_c;
}

bool wg__tune_should_stop(struct wg_tune_run *run)
{
    const double now_s = wg__tune_now_s();
    while (take_signal(run, 0)) {
    }
    look_at_devices(run, now_s);
    if (now_s >= run->next_tend_s) {
        run->next_tend_s = now_s + tend_s;
        if (!wg__device_hold_tend(&run->hold))
            run->result->was_foreign = true;
    }
    return run->result->signal != 0 || run->result->was_foreign;
}

bool wg__tune_wait(struct wg_tune_run *run, double time_s)
{
    const uint64_t until_ns = wg__clock_ns() + (uint64_t)(fmax(0, time_s) * 1e9);
    while (!wg__tune_should_stop(run)) {
        const uint64_t now_ns = wg__clock_ns();
        if (now_ns >= until_ns)
            return true;
        const uint64_t tick_ns = now_ns + (uint64_t)(look_s * 1e9);
        (void)take_signal(run, tick_ns < until_ns ? tick_ns : until_ns);
    }
    return false;
}

static bool should_stop(void *context)
{
    return wg__tune_should_stop(context);
}

static void begin_window(struct wg_tune_run *run)
{
    struct wg_tune_watch *watch = &run->watch;
    const struct wg_tune_energy *energy = &run->request->energy;
    wg_window_free(watch->window);
    watch->window = NULL;
    watch->begin_s = wg__tune_now_s();
    watch->end_s = NAN;
    watch->throttle = 0;
    watch->clock_hz = NAN;
    struct wg_error err;
    if (run->meter != NULL && wg__tune_energy_is_metered(energy) &&
        wg_window_begin(&watch->window, run->meter, "tune", energy->devices, energy->device_count,
                        &err) != WG_OK)
        wg__tune_say(run, "%s", err.text);
}

static void end_window(struct wg_tune_run *run)
{
    if (!isnan(run->watch.end_s))
        return;
    run->watch.end_s = wg__tune_now_s();
    if (run->watch.window != NULL)
        wg_window_end(run->watch.window);
}

static void mark(bool begins, void *context)
{
    if (begins)
        begin_window(context);
    else
        end_window(context);
}

/* A latency that has a plain upper bound of its own lets a hopeless window be cut. Never the
 * default's: all else is compared with it, and it is what is returned when nothing keeps the
 * limits. */
static void plan_cut(const struct wg_tune_run *run, struct wg_workload_plan *plan)
{
    const struct wg_tune_goal *goal = run->request->goal;
    for (size_t i = 0; i < goal->limit_count && run->request->arrivals == NULL; i++) {
        const struct wg_tune_term *limit = &goal->limits[i];
        if (limit->is_minimum || limit->nature != WG_TUNING_TIME ||
            !isfinite(run->result->bounds[i]) ||
            wg__expression_name_count(limit->expression) != 1 ||
            strcmp(wg__expression_name(limit->expression, 0), limit->text) != 0)
            continue;
        plan->cut_name = wg__expression_name(limit->expression, 0);
        plan->cut_above = run->result->bounds[i];
        return;
    }
}

void wg__tune_plan(struct wg_tune_run *run, struct wg_workload_plan *plan)
{
    const struct wg_tune_request *request = run->request;
    *plan = (struct wg_workload_plan){.number = run->window_number,
                                      .min_s = request->min_window_s,
                                      .max_s = request->max_window_s,
                                      .relative_error = request->precision,
                                      .precise = run->precise,
                                      .hung_s = request->hung_s,
                                      .should_stop = should_stop,
                                      .mark = mark,
                                      .context = run};
    if (!run->is_default)
        plan_cut(run, plan);
}

/* -- Figures of our own ----------------------------------------------------------------------- */

static bool put(struct wg_workload_sample *sample, const char *name, double value, double error)
{
    if (!wg__workload_figure_put(sample, name, value))
        return false;
    for (size_t i = 0; i < sample->figure_count; i++)
        if (strcmp(sample->figures[i].name, name) == 0)
            sample->figures[i].error = error;
    return true;
}

/* A wrong joule is worse than none: of a server that is not always at work it must be known how
 * long it is. */
static enum wg_code check_busy(const struct wg_tune_run *run, struct wg_error *err)
{
    if (!run->request->is_server || run->request->energy.kind != WG_TUNE_ENERGY_MODEL ||
        isfinite(wg__workload_figure_value(&run->window.sample, "busy_s")))
        return WG_OK;
    return wg__fail(err, WG_EUNSUPPORTED,
                    "a stated model of energy needs to know how long the server works, and this "
                    "one does not tell: a server with Triton's statistics does (by gRPC: with "
                    "--control-url), meters do without (--energy gpu, cpu), and without "
                    "--arrivals it works all the time");
}

/* What a window's joules are shared by. At a light load they are little but idle power by rate, so
 * where all that was offered was answered, the rate counts, not how many happened to fall into this
 * window. */
static double sharers(const struct wg_workload_sample *sample)
{
    static const double answered_share = 0.95, at_the_ends = 2;
    const double offered = wg__workload_figure_value(sample, "offered_per_s") * sample->time_s;
    const bool has_served = wg__workload_figure_value(sample, "unanswered") == 0 &&
                            wg__workload_figure_value(sample, "errors") == 0 &&
                            sample->requests + at_the_ends >=
                                answered_share * wg__workload_figure_value(sample, "samples");
    return isfinite(offered) && offered > 0 && has_served ? offered : sample->requests;
}

/* Joules of the window and their relative standard error. */
static void find_energy(struct wg_tune_run *run, double *energy_j, double *error)
{
    const struct wg_tune_energy *energy = &run->request->energy;
    struct wg_workload_sample *sample = &run->window.sample;
    *error = 0;
    if (energy->kind == WG_TUNE_ENERGY_MODEL) {
        const double told_s = wg__workload_figure_value(sample, "busy_s");
        const double busy_s = isfinite(told_s) ? fmin(told_s, sample->time_s) : sample->time_s;
        *energy_j = energy->busy_w * busy_s + energy->idle_w * (sample->time_s - busy_s);
        *error = tiny;
        return;
    }
    *energy_j = wg__workload_figure_value(sample, "energy_j");
    struct wg_window_result result;
    if (run->watch.window == NULL ||
        wg_window_read(run->watch.window, &result, NULL, 0, NULL) != WG_OK)
        return;
    *energy_j = result.energy_j;
    run->result->source = result.source;
    if (isfinite(result.energy_error_j) && result.energy_j > 0)
        *error = fmax(tiny, result.energy_error_j / z95 / result.energy_j);
    run->window.is_throttled |= (result.flags & WG_WINDOW_EXTERNALLY_CAPPED) != 0;
}

static bool put_own(struct wg_tune_run *run)
{
    struct wg_workload_sample *sample = &run->window.sample;
    double energy_j = NAN, energy_error = 0;
    find_energy(run, &energy_j, &energy_error);
    run->window.energy_j = energy_j;
    bool fits = put(sample, "time_s", sample->time_s, tiny);
    if (isfinite(energy_j)) {
        fits = fits && put(sample, "energy_j", energy_j, energy_error);
        fits = fits && put(sample, "power_w", energy_j / sample->time_s, energy_error);
    }
    const double tokens = wg__workload_figure_value(sample, "tokens");
    if (isfinite(energy_j) && tokens > 0)
        fits = fits && put(sample, "energy_per_token_j", energy_j / tokens, energy_error);
    if (!(sample->requests > 0))
        return fits;
    const struct wg_workload_figure *rate = wg__workload_figure_find(sample, "requests_per_s");
    const double rate_error = rate != NULL ? rate->error : 0;
    fits = fits && put(sample, "requests", sample->requests, rate_error);
    if (rate == NULL)
        fits = fits && put(sample, "requests_per_s", sample->requests / sample->time_s, 0);
    if (isfinite(energy_j))
        fits = fits && put(sample, "energy_per_request_j", energy_j / sharers(sample),
                           rate_error > 0 ? hypot(rate_error, energy_error) : 0);
    return fits;
}

/* -- The load model --------------------------------------------------------------------------- */

/* A wrong joule is worse than none, and one without idle power is too small. */
static void warn_of_idle(struct wg_tune_run *run)
{
    if (run->has_warned_of_idle || run->request->energy.kind == WG_TUNE_ENERGY_MODEL ||
        run->request->idle_w > 0)
        return;
    run->has_warned_of_idle = true;
    wg__tune_say(run, "nothing tells idle power, so it counts as 0 W and joules per request come "
                      "out too small: let the workload print idle_power_w, or give --idle-power");
}

enum wg_code wg__tune_idle_power(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                                 double *idle_w_out, struct wg_error *err)
{
    const struct wg_tune_request *request = run->request;
    const size_t memory = wg__tune_find_device(request->knobs, WG_KNOB_MEMORY_CLOCK);
    const size_t level = memory < request->knobs->count ? levels->of[memory] : 0;
    if (request->energy.kind == WG_TUNE_ENERGY_MODEL || !(request->idle_s > 0) ||
        !wg__tune_energy_is_metered(&request->energy)) {
        warn_of_idle(run);
        *idle_w_out =
            request->energy.kind == WG_TUNE_ENERGY_MODEL ? request->energy.idle_w : request->idle_w;
        return WG_OK;
    }
    if (isnan(run->idle_w[level])) {
        struct wg_window_result result = {.power_mean_w = NAN};
        begin_window(run);
        const bool has_waited = wg__tune_wait(run, request->idle_s);
        end_window(run);
        if (run->watch.window == NULL ||
            wg_window_read(run->watch.window, &result, NULL, 0, err) != WG_OK ||
            !isfinite(result.power_mean_w)) {
            if (has_waited)
                return wg__fail(err, WG_EUNSUPPORTED,
                                "idle power could not be measured: give it by --idle-power WATTS");
            return WG_OK; /* interrupted: nobody will ask */
        }
        run->idle_w[level] = result.power_mean_w;
        run->result->idle_w = result.power_mean_w;
    }
    *idle_w_out = run->idle_w[level];
    return WG_OK;
}

struct wg_tune_batch_point *wg__tune_find_point(struct wg_tune_run *run,
                                                const struct wg_tune_levels *levels)
{
    for (size_t i = 0; i < run->point_count; i++)
        if (memcmp(&run->points[i].levels, levels, sizeof *levels) == 0)
            return &run->points[i];
    return NULL;
}

static double batch_of(const struct wg_tune_run *run, const struct wg_tune_levels *levels)
{
    const struct wg_tune_knobs *knobs = run->request->knobs;
    const size_t k = wg__tune_find_role(knobs, WG_TUNING_BATCH);
    if (k < knobs->count)
        return knobs->knobs[k].levels[levels->of[k]];
    const double told = wg__workload_figure_value(&run->window.sample, "batch");
    return told >= 1 ? round(told) : 1;
}

/* Keeps the newest window as a point; a later one of the same levels replaces it. */
static void keep_point(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                       const struct wg_tune_load_point *point)
{
    struct wg_tune_batch_point *place = wg__tune_find_point(run, levels);
    if (place == NULL)
        place = run->point_count < WG_TUNE_POINTS_MAX ? &run->points[run->point_count++]
                                                      : &run->points[WG_TUNE_POINTS_MAX - 1];
    *place = (struct wg_tune_batch_point){.levels = *levels, .point = *point};
}

static double knob_value(const struct wg_tune_run *run, const struct wg_tune_levels *levels,
                         enum wg_tuning_role role, double fallback)
{
    const struct wg_tune_knobs *knobs = run->request->knobs;
    const size_t k = wg__tune_find_role(knobs, role);
    return k < knobs->count ? knobs->knobs[k].levels[levels->of[k]] : fallback;
}

static enum wg_code apply_load(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                               bool is_bare, struct wg_error *err)
{
    const struct wg_tune_request *request = run->request;
    struct wg_workload_sample *sample = &run->window.sample;
    struct wg_tune_load load = {.arrivals = request->arrivals,
                                .requests = request->load_requests,
                                .seed = request->seed,
                                .replicas =
                                    (unsigned)knob_value(run, levels, WG_TUNING_REPLICAS, 1),
                                .delay_s = knob_value(run, levels, WG_TUNING_DELAY, 0)};
    struct wg_tune_load_point points[2];
    size_t count = 0;
    enum wg_code code = WG_OK;
    load.idle_w = wg__workload_figure_value(sample, "idle_power_w");
    if (!isfinite(load.idle_w))
        code = wg__tune_idle_power(run, levels, &load.idle_w, err);
    if (code == WG_OK && wg__tune_should_stop(run))
        return WG_OK; /* idle power is not known then, and nobody asks */
    if (code == WG_OK)
        code = wg__tune_load_point(sample, batch_of(run, levels), load.replicas,
                                   run->window.energy_j, load.idle_w, &points[1], err);
    if (code != WG_OK)
        return code;
    keep_point(run, levels, &points[1]);
    if (is_bare)
        return WG_OK;
    /* The smallest batch at the same settings: tune_trial.c has seen to it. */
    struct wg_tune_levels least = *levels;
    const size_t k = wg__tune_find_role(request->knobs, WG_TUNING_BATCH);
    if (k < request->knobs->count)
        least.of[k] = 0;
    const struct wg_tune_batch_point *low = wg__tune_find_point(run, &least);
    if (low != NULL && low->point.batch < points[1].batch)
        points[count++] = low->point;
    points[count++] = points[1];
    return wg__tune_load_apply(&load, points, count, sample, &run->window.drawn,
                               &run->window.is_stable, err);
}

/* Which time the figures belong to. */
static void find_time(struct wg_tune_run *run, double asked_s)
{
    static const double same_share = 0.1;
    struct wg_workload_sample *sample = &run->window.sample;
    const double told_s = wg__workload_figure_value(sample, "time_s");
    const bool is_marked = run->watch.begin_s > asked_s;
    /* The meter's window and the figures' must be the same one. */
    if (is_marked || !(sample->time_s > 0))
        sample->time_s = fmax(tiny, run->watch.end_s - run->watch.begin_s);
    if (!(told_s > 0))
        return;
    if (!wg__tune_energy_is_metered(&run->request->energy)) {
        sample->time_s = told_s;
    } else if (!is_marked && !run->has_warned_of_time &&
               fabs(told_s - sample->time_s) > same_share * sample->time_s) {
        run->has_warned_of_time = true;
        wg__tune_say(run,
                     "the workload tells a time_s of %.3g s, and joules were counted over %.3g s, "
                     "its start and end too: let it print 'wattgov: begin' and 'wattgov: end'",
                     told_s, sample->time_s);
    }
}

/* -- One window ------------------------------------------------------------------------------- */

enum wg_code wg__tune_measure(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                              bool is_bare, struct wg_error *err)
{
    static const uint32_t heat =
        WG_THROTTLE_THERMAL | WG_THROTTLE_HARDWARE_THERMAL | WG_THROTTLE_POWER_BRAKE;
    struct wg_tune_window *window = &run->window;
    struct wg_workload_plan plan;
    *window = (struct wg_tune_window){.energy_j = NAN, .is_stable = true, .clock_hz = NAN};
    wg__tune_plan(run, &plan);
    run->was_stopped = false;
    begin_window(run);
    const double begin_s = run->watch.begin_s;
    const enum wg_code code =
        run->request->workload->ops->measure(run->request->workload, &plan, &window->sample, err);
    end_window(run);
    while (take_signal(run, 0)) {
        /* Also what came at its very end. */
    }
    if (code != WG_OK)
        return code;
    window->throttle = run->watch.throttle;
    window->clock_hz = run->watch.clock_hz;
    window->is_throttled = (window->throttle & heat) != 0;
    if (window->sample.outcome != WG_WORKLOAD_OK)
        return WG_OK;
    find_time(run, begin_s);
    const enum wg_code known = check_busy(run, err);
    if (known != WG_OK)
        return known;
    if (!put_own(run))
        return wg__fail(err, WG_EDATA, "the workload tells more figures than fit: %d at most",
                        WG_WORKLOAD_FIGURES_MAX);
    return run->request->arrivals != NULL ? apply_load(run, levels, is_bare, err) : WG_OK;
}
