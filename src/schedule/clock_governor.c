/* SPDX-License-Identifier: MIT
 *
 * The choice among the rungs.
 *
 * The governor is asked at every event, far more often than what it knows changes. So the rungs are
 * weighed anew only when the rate has moved by 2 %, the dispersion by 10 % or a law t(b) by 1 %,
 * and then one an ask besides the present one, until a choice depends on all: an ask costs two
 * forecasts at most but for the rare ones that change the rung.
 *
 * Fine-tuning counts as work that is to be done, not as a share of time: at slower clocks its steps
 * take longer.
 *
 * Threads: pure; a governor is one thread's.
 */
#include "schedule/clock_governor.h"

#include <limits.h>
#include <math.h>

#define HOLD_S 2.0
#define TARGET 0.99

/* A step down must hold with this much to spare, so that a noisy rate does not send it up again. */
#define SPARE 1.02
/* And must save this much of the power, or it is noise. */
#define WORTH 0.005

#define SAFETY_MIN  0.7
#define SAFETY_MAX  4.0
/* What a request beyond the forecast adds to the safety, relatively. */
#define SAFETY_STEP 0.1
/* Aims at fewer late ones than are allowed: steps are coarse, and the fastest rung has its own. */
#define RESERVE     0.75

/* Answers, in largest batches, until none comes from before a change. */
#define CHANGE_MEMORY 4

/* -- What can be --------------------------------------------------------------------------- */

static enum wg_code check_rung(const struct wg_rung *rung, size_t index, struct wg_error *err)
{
    const struct {
        const char *field;
        double value;
    } clocks[] = {{"gpu_clock", rung->gpu_clock}, {"mem_clock", rung->mem_clock}},
      powers[] = {{"busy_power_w", rung->busy_power_w},
                  {"idle_power_w", rung->idle_power_w},
                  {"finetune_power_w", rung->finetune_power_w}};
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        const double value = clocks[i].value;
        if (index == 0 && value != 1.0)
            return wg__fail(err, WG_EINVAL,
                            "clock ladder: %s of rung 0 is %g, expected 1: it is the fastest",
                            clocks[i].field, value);
        if (!(value > 0.0 && value <= 1.0))
            return wg__fail(err, WG_EINVAL,
                            "clock ladder: %s of rung %zu is %g, expected above 0, at most 1",
                            clocks[i].field, index, value);
    }
    for (size_t i = 0; i < sizeof powers / sizeof *powers; i++) {
        if (!(powers[i].value >= 0.0 && powers[i].value <= 1e9))
            return wg__fail(err, WG_EINVAL,
                            "clock ladder: %s of rung %zu is %g W, expected 0 to 1e9",
                            powers[i].field, index, powers[i].value);
    }
    return WG_OK;
}

static enum wg_code check_ladder(const struct wg_clock_ladder *ladder, struct wg_error *err)
{
    if (ladder->count == 0 || ladder->count > WG_RUNGS_MAX)
        return wg__fail(err, WG_EINVAL, "clock ladder: %zu rungs, expected 1 to %d", ladder->count,
                        WG_RUNGS_MAX);
    for (size_t i = 0; i < ladder->count; i++) {
        const enum wg_code code = check_rung(&ladder->rungs[i], i, err);
        if (code != WG_OK)
            return code;
    }
    if (!(ladder->change_s >= 0.0 && ladder->change_s <= 3600.0))
        return wg__fail(err, WG_EINVAL, "clock ladder: change_s is %g, expected 0 to 3600",
                        ladder->change_s);
    if (!(ladder->change_j >= 0.0 && ladder->change_j <= 1e9))
        return wg__fail(err, WG_EINVAL, "clock ladder: change_j is %g, expected 0 to 1e9",
                        ladder->change_j);
    return WG_OK;
}

static enum wg_code check_setup(const struct wg_clock_setup *setup, struct wg_error *err)
{
    if (setup->max_rows == 0 || setup->max_rows > WG_GOVERNED_ROWS_MAX)
        return wg__fail(err, WG_EINVAL, "clock governor: max_rows is %u, expected 1 to %d",
                        setup->max_rows, WG_GOVERNED_ROWS_MAX);
    if (!(setup->hold_s >= 0.0 && setup->hold_s <= 86400.0))
        return wg__fail(err, WG_EINVAL, "clock governor: hold_s is %g, expected 0 to 86400",
                        setup->hold_s);
    if (setup->target != 0.0 && !(setup->target >= 0.5 && setup->target <= 0.9999))
        return wg__fail(err, WG_EINVAL, "clock governor: target is %g, expected 0.5 to 0.9999",
                        setup->target);
    return WG_OK;
}

enum wg_code wg__clock_governor_init(struct wg_clock_governor *governor,
                                     const struct wg_clock_setup *setup, struct wg_error *err)
{
    if (check_ladder(&setup->ladder, err) != WG_OK || check_setup(setup, err) != WG_OK)
        return WG_EINVAL;
    *governor = (struct wg_clock_governor){.setup = *setup, .safety = 1};
    if (setup->hold_s == 0.0)
        governor->setup.hold_s = HOLD_S;
    if (setup->target == 0.0)
        governor->setup.target = TARGET;
    for (size_t i = 0; i < setup->ladder.count; i++)
        wg__batch_law_rows(&governor->outlook[i].law, setup->max_rows);
    return WG_OK;
}

/* -- Weighing a rung ----------------------------------------------------------------------- */

static void read_law(const struct wg_clock_governor *governor, const struct wg_predictor *predictor,
                     size_t rung, struct wg_batch_law *law)
{
    const struct wg_rung *at = &governor->setup.ladder.rungs[rung];
    struct wg_predictor_point point = {.gpu_clock = at->gpu_clock, .mem_clock = at->mem_clock};
    for (size_t i = 0; i < law->count; i++) {
        point.rows = law->rows[i];
        const double least_s = i > 0 ? law->time_s[i - 1] : 1e-9;
        law->time_s[i] = fmax(least_s, wg__predictor_time(predictor, &point));
    }
}

/* `present`: the law at the rung in force, at which the fine-tuning was seen. */
static void weigh(const struct wg_rung *rung, const struct wg_batch_law *law,
                  const struct wg_batch_law *present, const struct wg_clock_load *load,
                  double finetune_share, double *latency_s_out, double *power_w_out)
{
    const double slower = law->time_s[0] / present->time_s[0];
    struct wg_clock_load here = *load;
    struct wg_clock_forecast forecast;
    here.step_s = load->step_s * slower;
    wg__clock_forecast(law, &here, &forecast);
    const double finetune = fmin(finetune_share * slower, 1 - forecast.busy);
    *latency_s_out = forecast.latency_s;
    *power_w_out = forecast.busy * rung->busy_power_w + finetune * rung->finetune_power_w +
                   (1 - forecast.busy - finetune) * rung->idle_power_w;
}

double wg__clock_predict_p99(const struct wg_clock_governor *governor,
                             const struct wg_clock_view *view, size_t rung, double *power_w_out)
{
    struct wg_batch_law law = governor->outlook[rung].law;
    struct wg_batch_law present = law;
    double latency_s = 0;
    double power_w = 0;
    read_law(governor, view->predictor, rung, &law);
    read_law(governor, view->predictor, governor->rung, &present);
    const struct wg_clock_load load = {.rate = view->rate,
                                       .dispersion = view->dispersion,
                                       .margin = wg__predictor_margin(view->predictor),
                                       .step_s = view->finetune_share > 0 ? view->step_s : 0,
                                       .share = 0.99};
    weigh(&governor->setup.ladder.rungs[rung], &law, &present, &load, view->finetune_share,
          &latency_s, &power_w);
    if (power_w_out != NULL)
        *power_w_out = power_w;
    return latency_s;
}

/* -- Weighing no more than has changed ------------------------------------------------------- */

/* `floor`: below it nothing is told apart. */
static bool has_moved(double then, double now, double step, double floor)
{
    return fabs(now - then) > step * fmax(then, floor);
}

static void refresh_law(struct wg_clock_governor *governor, const struct wg_predictor *predictor,
                        size_t rung)
{
    struct wg_rung_outlook *outlook = &governor->outlook[rung];
    struct wg_batch_law law = outlook->law;
    const size_t version = wg__predictor_version(predictor);
    const size_t last = law.count - 1;
    if (outlook->has_law && outlook->law_of == predictor && outlook->law_version == version)
        return;
    read_law(governor, predictor, rung, &law);
    outlook->law_of = predictor;
    outlook->law_version = version;
    if (outlook->has_law && !has_moved(outlook->law.time_s[0], law.time_s[0], 0.01, 0) &&
        !has_moved(outlook->law.time_s[last], law.time_s[last], 0.01, 0))
        return;
    outlook->law = law;
    outlook->has_law = true;
    outlook->is_stale = true;
}

static void weigh_anew(struct wg_clock_governor *governor, size_t rung)
{
    struct wg_rung_outlook *outlook = &governor->outlook[rung];
    if (!outlook->is_stale)
        return;
    weigh(&governor->setup.ladder.rungs[rung], &outlook->law,
          &governor->outlook[governor->rung].law, &governor->load, governor->finetune_share,
          &outlook->latency_s, &outlook->power_w);
    outlook->is_stale = false;
}

static void weigh_all(struct wg_clock_governor *governor)
{
    for (size_t i = 0; i < governor->setup.ladder.count; i++)
        weigh_anew(governor, i);
}

/* Looks at the view; what has changed makes outlooks stale. */
static void look(struct wg_clock_governor *governor, const struct wg_clock_view *view)
{
    struct wg_clock_load *load = &governor->load;
    const double step_s = view->finetune_share > 0.01 ? view->step_s : 0;
    const double margin = wg__predictor_margin(view->predictor);
    if (governor->is_evaluated && !has_moved(load->rate, view->rate, 0.02, 1e-6) &&
        !has_moved(load->dispersion, view->dispersion, 0.1, 0.1) &&
        !has_moved(load->margin, margin, 0.1, 0.05) &&
        !has_moved(load->step_s, step_s, 0.1, 1e-6) &&
        !has_moved(governor->finetune_share, view->finetune_share, 0.1, 0.05))
        return;
    *load = (struct wg_clock_load){view->rate, view->dispersion, margin, step_s,
                                   governor->setup.target};
    governor->finetune_share = view->finetune_share;
    for (size_t i = 0; i < governor->setup.ladder.count; i++)
        governor->outlook[i].is_stale = true;
}

/* The present rung is always up to date; of the others one is looked at each time. */
static void evaluate(struct wg_clock_governor *governor, const struct wg_clock_view *view)
{
    const size_t count = governor->setup.ladder.count;
    /* One event brings several asks. */
    if (governor->is_evaluated && governor->seen_s == view->now_s &&
        governor->seen_rate == view->rate)
        return;
    governor->seen_s = view->now_s;
    governor->seen_rate = view->rate;
    if (!governor->is_evaluated) {
        for (size_t i = 0; i < count; i++)
            refresh_law(governor, view->predictor, i);
    }
    look(governor, view);
    refresh_law(governor, view->predictor, governor->rung);
    weigh_anew(governor, governor->rung);
    if (++governor->refreshed >= count)
        governor->refreshed = 0;
    refresh_law(governor, view->predictor, governor->refreshed);
    weigh_anew(governor, governor->refreshed);
    if (!governor->is_evaluated)
        weigh_all(governor);
    governor->is_evaluated = true;
}

/* -- Choosing ------------------------------------------------------------------------------ */

static bool holds(const struct wg_clock_governor *governor, size_t rung, double slo_s, double spare)
{
    return governor->outlook[rung].latency_s * governor->safety * spare <= slo_s;
}

/* The cheapest rung that holds; 0 when none does. */
static size_t find_cheapest(const struct wg_clock_governor *governor, double slo_s, double spare)
{
    size_t best = 0;
    bool found = holds(governor, 0, slo_s, spare);
    for (size_t i = 1; i < governor->setup.ladder.count; i++) {
        if (!holds(governor, i, slo_s, spare))
            continue;
        if (!found || governor->outlook[i].power_w < governor->outlook[best].power_w)
            best = i;
        found = true;
    }
    return best;
}

/* Whether the tightest request is late at the present rung but not at rung 0: what it has left is
 * less than what its batch takes longer here. */
static bool is_slack_gone(const struct wg_clock_governor *governor,
                          const struct wg_clock_view *view)
{
    const struct wg_batch_law *here = &governor->outlook[governor->rung].law;
    const struct wg_batch_law *fastest = &governor->outlook[0].law;
    const double rows = view->rows > 0 ? view->rows : here->rows[here->count - 1];
    const double longer_s = wg__batch_law_time(here, rows) - wg__batch_law_time(fastest, rows);
    return view->slack_s < fmax(0, longer_s) + governor->setup.ladder.change_s;
}

static size_t move(struct wg_clock_governor *governor, size_t rung, double now_s)
{
    if (rung != governor->rung) {
        governor->before = governor->rung;
        governor->since_change = 0;
    }
    governor->rung = rung;
    governor->candidate = rung;
    governor->since_s = now_s;
    return rung;
}

/* Of two rungs: whether `other` saves enough, here and after the change. */
static bool pays(const struct wg_clock_governor *governor, size_t other)
{
    const double here_w = governor->outlook[governor->rung].power_w;
    const double saved_w = here_w - governor->outlook[other].power_w;
    return saved_w > WORTH * here_w &&
           saved_w * governor->setup.hold_s > governor->setup.ladder.change_j;
}

size_t wg__clock_governor_ask(struct wg_clock_governor *governor, const struct wg_clock_view *view)
{
    const double now_s = view->now_s;
    if (governor->setup.ladder.count <= 1)
        return 0;
    evaluate(governor, view);
    governor->slo_s = view->slo_s;
    if (governor->rung != 0 && is_slack_gone(governor, view))
        return move(governor, 0, now_s);
    if (governor->rung != 0 && !holds(governor, governor->rung, view->slo_s, 1)) {
        weigh_all(governor);
        return move(governor, find_cheapest(governor, view->slo_s, 1), now_s);
    }
    const size_t best = find_cheapest(governor, view->slo_s, SPARE);
    if (best == governor->rung || !holds(governor, best, view->slo_s, SPARE) ||
        !pays(governor, best))
        return move(governor, governor->rung, now_s);
    /* The wait begins anew when there is no candidate or it does not hold any more; a still cheaper
     * one waits along. */
    if (governor->candidate == governor->rung ||
        !holds(governor, governor->candidate, view->slo_s, SPARE)) {
        governor->candidate = best;
        governor->since_s = now_s;
    } else if (governor->outlook[best].latency_s <
               governor->outlook[governor->candidate].latency_s) {
        governor->candidate = best;
    }
    if (now_s - governor->since_s < governor->setup.hold_s)
        return governor->rung;
    weigh_anew(governor, governor->candidate);
    if (!holds(governor, governor->candidate, view->slo_s, SPARE))
        return governor->rung;
    return move(governor, governor->candidate, now_s);
}

/* What the forecast, as it is believed, says of the promised share: its latency over the SLO. Just
 * after a change the requests of the rung before are answered, too. */
static double believed_share(const struct wg_clock_governor *governor)
{
    double latency_s = governor->outlook[governor->rung].latency_s;
    if (governor->since_change < CHANGE_MEMORY * governor->setup.max_rows)
        latency_s = fmax(latency_s, governor->outlook[governor->before].latency_s);
    return governor->safety * latency_s / governor->slo_s;
}

void wg__clock_governor_tell(struct wg_clock_governor *governor, double latency_share)
{
    if (governor->since_change < UINT_MAX)
        governor->since_change++;
    if (!governor->is_evaluated)
        return;
    /* Beside fine-tuning requests wait on purpose, as long as they may. */
    const double limit = governor->load.step_s > 0 ? 1 : believed_share(governor);
    if (!(limit < HUGE_VAL))
        return;
    const double allowed = RESERVE * (1 - governor->setup.target);
    governor->safety *= 1 + SAFETY_STEP * ((latency_share > limit ? 1 : 0) - allowed);
    governor->safety = fmin(fmax(governor->safety, SAFETY_MIN), SAFETY_MAX);
}
