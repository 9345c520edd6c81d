/* SPDX-License-Identifier: MIT
 *
 * What the governor orders, done; see train_parts.h.
 *
 * Power comes from a window over exactly the measured time; the rate from the moments at which the
 * first and the last step in it ended, which are known better than when we heard of them. Both are
 * then put on the window's time.
 */
#include <math.h>

#include "live/train_parts.h"

enum { ORDERS_MOST = 8 };

/* A measurement that has only the period to go by; math/period.c trusts no shorter ones. */
static const double trusted_periods = 12, trusted_updates = 50;
static const double signal_warmup_s = 5; /* once a period has been seen for ten seconds */
static const double two_sided_95 = 1.96;

static struct wg_train_stage *stage_of(struct wg_train_run *run)
{
    return &run->result->stages[run->stage];
}

/* The steps since the last call were done at the present setting. */
static void attribute_steps(struct wg_train_run *run)
{
    if (isnan(run->steps) || run->governor == NULL)
        return;
    /* Steps at somebody else's setting are none of ours to account for. */
    if (!run->is_foreign)
        stage_of(run)->steps_at[run->setting] += run->steps - run->counted_steps;
    run->counted_steps = run->steps;
}

/* With one setting, the present one: for a job that is only observed. What cannot be read back is
 * taken for unhindered. */
static void settings_of_observer(const struct wg_train_run *run, struct wg_train_settings *out)
{
    const enum wg_knob knob = run->request->knobs[0];
    const size_t count = run->request->gpu_count;
    double sum = 0;
    for (size_t g = 0; g < count; g++) {
        const struct wg_knob_info *info = &run->infos[g]->knobs[knob];
        sum += isfinite(info->current) ? info->current : info->max;
    }
    *out = (struct wg_train_settings){.knob = knob, .count = 1, .gpu_count = count};
    /* A GPU without the knob has no setting, but the governor wants a number. */
    out->setting[0] = isfinite(sum) && sum > 0 ? sum / (double)count : 1;
}

enum wg_code wg__train_stage_begin(struct wg_train_run *run, size_t stage, struct wg_error *err)
{
    const struct wg_train_request *request = run->request;
    struct wg_train_stage *state = &run->result->stages[stage];
    struct wg_train_settings *settings = &state->settings;
    if (run->control == NULL)
        settings_of_observer(run, settings);
    const struct wg_train_signal *signal = run->signal;
    const double least_s = signal != NULL ? fmax(trusted_periods * signal->period.period_s,
                                                 trusted_updates * signal->update_s)
                                          : 0;
    const bool is_seen_to_be_even = signal != NULL && !(request->warmup_s > 0);
    const bool is_first = stage == 0 && run->control != NULL;
    struct wg_train_config config = {
        .objective = request->objective,
        .settings = settings->setting,
        .count = settings->count,
        .setting_w = settings->knob == WG_KNOB_POWER_LIMIT ? (double)request->gpu_count : 0,
        .warmup_s = is_seen_to_be_even ? signal_warmup_s : request->warmup_s,
        .measure_s = fmax(request->measure_s, least_s),
        .cached = is_first ? request->cached : NULL,
        .cached_count = is_first ? request->cached_count : 0,
        .neighbor_setting = is_first ? request->neighbor_setting : (double)NAN,
    };
    config.objective.max_power_w =
        isfinite(run->result->max_power_w) ? run->result->max_power_w : 1;
    state->best = settings->count;
    state->search_s = NAN;
    const enum wg_code code = wg__train_governor_new(&run->governor, &config, err);
    if (code != WG_OK)
        return code;
    run->stage = stage;
    run->setting = settings->count - 1;
    run->counted_steps = run->steps;
    run->stage_begin_s = wg__train_now_s(run);
    return WG_OK;
}

/* Takes the profile over from the governor. */
static void keep_profile(struct wg_train_run *run)
{
    struct wg_train_stage *stage = stage_of(run);
    const struct wg_train_point *points = NULL;
    const size_t count = wg__train_governor_profile(run->governor, &points);
    stage->point_count = 0;
    while (stage->point_count < count && stage->point_count < WG_TRAIN_SETTINGS_MAX) {
        stage->points[stage->point_count] = points[stage->point_count];
        stage->point_count++;
    }
    stage->best = wg__train_governor_best(run->governor);
    stage->drifts = wg__train_governor_drifts(run->governor);
}

void wg__train_stage_end(struct wg_train_run *run)
{
    wg_window_free(run->open.window);
    run->open.window = NULL;
    if (run->governor == NULL)
        return;
    attribute_steps(run);
    keep_profile(run);
    wg__train_governor_free(run->governor);
    run->governor = NULL;
}

/* -- Somebody else's settings ----------------------------------------------------------------- */

void wg__train_look(struct wg_train_run *run)
{
    if (run->control == NULL || run->governor == NULL || run->is_foreign)
        return;
    const struct wg_train_settings *settings = &stage_of(run)->settings;
    const bool is_limit = settings->knob == WG_KNOB_POWER_LIMIT;
    const double scale = is_limit ? 1 : 1e-6;
    for (size_t g = 0; g < settings->gpu_count; g++) {
        struct wg_control_look look;
        if (wg__control_look(run->control, run->request->gpus[g], settings->knob, &look, NULL) !=
                WG_OK ||
            !look.is_foreign)
            continue;
        wg__train_say(run,
                      "%s: somebody else has set %s to %.0f %s (it was %.0f): left as it is, "
                      "governing has ended",
                      run->infos[g]->label, wg_knob_key(settings->knob), look.value * scale,
                      is_limit ? "W" : "MHz", look.expected * scale);
        attribute_steps(run);
        run->is_foreign = run->result->was_foreign = true;
        return;
    }
}

/* -- Orders ----------------------------------------------------------------------------------- */

/* Looks first: what somebody else has set since the last look must not be written over. */
static void set(struct wg_train_run *run, size_t setting)
{
    const struct wg_train_settings *settings = &stage_of(run)->settings;
    struct wg_error err;
    if (run->control == NULL)
        return;
    wg__train_look(run);
    if (run->is_foreign)
        return;
    attribute_steps(run);
    for (size_t g = 0; g < settings->gpu_count; g++) {
        if (wg__control_set(run->control, run->request->gpus[g], settings->knob,
                            settings->value[setting][g], NULL, &err) == WG_OK)
            continue;
        wg__train_governor_refuse(run->governor, setting);
        if (!run->has_set && (err.code == WG_EPERM || err.code == WG_EUNSUPPORTED))
            run->refused = err; /* that will be so for the others */
        else
            wg__train_say(run, "%s", err.text);
        return;
    }
    run->has_set = true;
    run->setting = setting;
    if (run->signal != NULL)
        wg__train_signal_change(run->signal, wg__train_now_s(run));
}

static void begin(struct wg_train_run *run)
{
    wg_window_free(run->open.window);
    run->open = (struct wg_train_open_window){
        .begin_s = wg__train_now_s(run), .begin_steps = run->steps, .begin_step_s = run->step_s};
    struct wg_error err;
    if (wg_window_begin(&run->open.window, run->meter, "measurement", run->request->gpus,
                        run->request->gpu_count, &err) != WG_OK)
        wg__train_say(run, "%s", err.text);
}

/* How many steps the window had, by their own moments or by the period. */
static void count_steps(const struct wg_train_run *run, struct wg_train_measurement *measurement)
{
    measurement->steps = NAN;
    if (run->signal != NULL) {
        struct wg_period period;
        const double end_s = run->open.begin_s + measurement->time_s;
        if (!wg__train_signal_within(run->signal, run->open.begin_s, end_s, &period))
            return;
        measurement->steps = measurement->time_s / period.period_s;
        measurement->steps_error =
            two_sided_95 * measurement->steps * period.error_s / period.period_s;
        return;
    }
    const double steps = run->steps - run->open.begin_steps;
    const double time_s = run->step_s - run->open.begin_step_s;
    if (steps > 0 && time_s > 0)
        measurement->steps = steps / time_s * measurement->time_s;
}

static void end(struct wg_train_run *run)
{
    const uint32_t gaps = WG_WINDOW_COUNTER_RESET | WG_WINDOW_LOST | WG_WINDOW_HUNG |
                          WG_WINDOW_GAP | WG_WINDOW_PARTIAL | WG_WINDOW_STUCK | WG_WINDOW_SUSPENDED;
    struct wg_train_measurement measurement = {
        .energy_j = NAN, .energy_error_j = NAN, .steps = NAN, .is_gap = true};
    struct wg_window_result result;
    if (run->open.window != NULL) {
        wg_window_end(run->open.window);
        wg__train_look(run);
        if (wg_window_read(run->open.window, &result, NULL, 0, NULL) == WG_OK) {
            measurement.energy_j = result.energy_j;
            measurement.energy_error_j = result.energy_error_j;
            measurement.time_s = result.time_s;
            measurement.is_gap =
                (result.flags & gaps) != 0 || run->is_foreign || run->open.has_stall;
            measurement.is_throttled = (result.flags & WG_WINDOW_EXTERNALLY_CAPPED) != 0;
            count_steps(run, &measurement);
        }
        wg_window_free(run->open.window);
        run->open.window = NULL;
    }
    wg__train_governor_tell(run->governor, &measurement);
}

static void obey(struct wg_train_run *run, const struct wg_train_order *order)
{
    if (order->why != NULL && order->why[0] != '\0')
        run->why = order->why;
    switch (order->kind) {
    case WG_TRAIN_KEEP:
        break;
    case WG_TRAIN_SET:
        set(run, order->setting);
        run->order_s = wg__train_now_s(run);
        break;
    case WG_TRAIN_BEGIN:
        begin(run);
        run->order_s = wg__train_now_s(run);
        break;
    case WG_TRAIN_END:
        end(run);
        break;
    case WG_TRAIN_ABORT:
        wg_window_free(run->open.window);
        run->open.window = NULL;
        break;
    }
}

/* -- Moments ---------------------------------------------------------------------------------- */

/* What the GPUs measure now; of what one does not know, the sum is not known either. */
static void read_gpus(struct wg_train_run *run, struct wg_train_tick *tick)
{
    double clock_hz = 0;
    size_t clocks = 0;
    tick->power_w = 0;
    tick->temperature_c = NAN;
    for (size_t g = 0; g < run->request->gpu_count; g++) {
        struct wg_sample sample;
        if (wg_meter_latest(run->meter, run->request->gpus[g], &sample, NULL) != WG_OK) {
            tick->power_w = NAN;
            continue;
        }
        const bool has_power = (sample.present >> WG_METRIC_POWER_W & 1u) != 0;
        const bool has_average = (sample.present >> WG_METRIC_POWER_AVERAGE_W & 1u) != 0;
        tick->power_w += has_power     ? sample.values[WG_METRIC_POWER_W]
                         : has_average ? sample.values[WG_METRIC_POWER_AVERAGE_W]
                                       : (double)NAN;
        run->sample_s = fmax(run->sample_s, (double)(int64_t)(sample.t_ns - run->start_ns) / 1e9);
        if ((sample.present >> WG_METRIC_CLOCK_HZ & 1u) != 0) {
            clock_hz += sample.values[WG_METRIC_CLOCK_HZ];
            clocks++;
        }
        if ((sample.present >> WG_METRIC_TEMPERATURE_C & 1u) != 0)
            tick->temperature_c = fmax(tick->temperature_c, sample.values[WG_METRIC_TEMPERATURE_C]);
        if (sample.has_throttle)
            tick->throttle |= sample.throttle;
    }
    tick->clock_hz = clocks > 0 ? clock_hz / (double)clocks : (double)NAN;
    run->power_w = tick->power_w;
    run->clock_hz = tick->clock_hz;
}

/* The search of this stage is over: its time is known, and the next stage may begin. */
static void note_choice(struct wg_train_run *run)
{
    struct wg_train_stage *stage = stage_of(run);
    if (wg__train_governor_phase(run->governor) != WG_TRAIN_HOLD || !isnan(stage->search_s))
        return;
    stage->search_s = wg__train_now_s(run) - run->stage_begin_s;
    keep_profile(run);
    if (run->stage + 1 >= run->result->stage_count || run->is_foreign)
        return;
    wg__train_stage_end(run);
    struct wg_error err;
    if (wg__train_stage_begin(run, run->stage + 1, &err) != WG_OK)
        wg__train_say(run, "%s", err.text);
}

/* The driver takes no setting, though nothing had said so before the first: begins anew as an
 * observer, at the setting that stands. */
static void begin_observing(struct wg_train_run *run)
{
    struct wg_error err;
    wg__train_stage_end(run);
    run->stage = 0;
    wg__train_observe(run, run->refused.text);
    if (wg__train_stage_begin(run, 0, &err) != WG_OK)
        wg__train_say(run, "%s", err.text);
}

void wg__train_tick(struct wg_train_run *run, double t_s, bool is_step_end)
{
    struct wg_train_tick tick = {.t_s = t_s, .steps = run->steps, .is_step_end = is_step_end};
    read_gpus(run, &tick);
    if (run->governor == NULL)
        return;
    /* The same moment again until there is nothing to do: the end of a step may end a measurement,
     * change the setting and begin the next. */
    for (unsigned i = 0; i < ORDERS_MOST && run->governor != NULL; i++) {
        struct wg_train_order order = {.kind = WG_TRAIN_KEEP};
        tick.is_foreign = run->is_foreign;
        wg__train_governor_tick(run->governor, &tick, &order);
        obey(run, &order);
        note_choice(run);
        if (order.kind == WG_TRAIN_KEEP)
            break;
        if (run->refused.code != WG_OK && run->control != NULL) {
            begin_observing(run);
            break;
        }
    }
}
