/* SPDX-License-Identifier: MIT
 *
 * The tuner: what holds for every policy of constrained search.
 *
 * One plan is made between two tells, and always: tell makes it when ask did not (but for a recall,
 * for trials of which there are too many to decide after each). So a policy
 * decides exactly once after each tell, whatever the caller asks in between, its own memory (the
 * last hyper-parameters) is a function of what was told, and a resumed tuner is the same tuner.
 * Chance is a stream of its own for each decision, named by the number of tells.
 *
 *     plan:  out of trials ................................. DONE, budget
 *            the last sample was thrown away ............... MEASURE it again
 *            no word of the default yet .................... MEASURE it
 *            the policy: go on ............................. MEASURE its next
 *                        stop, or nothing left ............. closing
 *     closing (never left): what would be returned may be over a limit, was not confirmed, and
 *            fewer than three confirmations were made ...... MEASURE it once more
 *            else .......................................... DONE, converged or exhausted
 *
 * A budget keeps its last trial for the confirmation. Closing is not left because a confirmation
 * that surprises changes the posterior, hence what is returned; to search on as well would buy
 * little and might never end.
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "optimize/tuner_check.h"
#include "optimize/tuner_parts.h"

enum {
    VALIDATIONS_MAX = 3,   /* in all */
    VALIDATION_BUDGET = 3, /* a budget below this is spent on searching alone */
};
static const double noise_default = 0.02;

/* -- Making ----------------------------------------------------------------------------------- */

static const struct wg_tuning_policy_ops *policy_of(enum wg_tuner_policy policy)
{
    static const struct wg_tuning_policy_ops *const policies[WG_TUNER_POLICY_COUNT] = {
        [WG_TUNER_RANDOM] = &wg__tuning_policy_random,
        [WG_TUNER_POLYTHROTTLE] = &wg__tuning_policy_polythrottle,
        [WG_TUNER_CBO] = &wg__tuning_policy_cbo,
        [WG_TUNER_WATTGOV] = &wg__tuning_policy_wattgov,
    };

    return policies[policy];
}

/* The trials that count. */
static size_t told_of(const struct wg_tuner *tuner)
{
    return tuner->trial_count + tuner->failed;
}

static struct wg_tuning_view view_of(struct wg_tuner *tuner)
{
    const struct wg_tuner_config *config = &tuner->config;
    const double used = (double)told_of(tuner) / (double)config->max_trials;

    return (struct wg_tuning_view){
        .space = config->space,
        .goal = &config->goal,
        .noise = config->noise,
        .stop_share = config->stop_share,
        .trials = tuner->trials,
        .trial_count = tuner->trial_count,
        .failures = tuner->failures,
        .failure_count = tuner->failed,
        .told = told_of(tuner),
        .is_banned = tuner->ops->prunes ? tuner->bans.is_out : tuner->bans.is_banned,
        .is_tried = tuner->is_tried,
        .measured = tuner->measured,
        .present = tuner->present,
        .trial_s = config->trial_s,
        .budget_left = fmax(1 - used, 0),
        .xi = config->xi,
        .default_objective = config->default_objective,
        .cpu_apart = config->cpu_apart,
        .rng = &tuner->rng,
    };
}

size_t wg__tuner_usual_trials(const struct wg_tuning_space *space)
{
    const size_t most = space->count + VALIDATIONS_MAX;
    return most < WG_TUNER_TRIALS_DEFAULT ? most : WG_TUNER_TRIALS_DEFAULT;
}

/* What `config` says, with own names and no zeros that stand for something. */
static enum wg_code adopt(struct wg_tuner *tuner, const struct wg_tuner_config *config,
                          struct wg_error *err)
{
    const size_t count = config->space->count;

    tuner->config = *config;
    tuner->ops = policy_of(config->policy);
    if (!(config->noise > 0))
        tuner->config.noise = noise_default;
    if (config->max_trials == 0)
        tuner->config.max_trials = wg__tuner_usual_trials(config->space);
    tuner->present = tuner->again = tuner->validated = count;
    wg__rng_init(&tuner->root, config->seed);
    for (size_t i = 0; i < config->goal.limit_count; i++) {
        tuner->names[i] = wg__strdup(config->goal.limits[i].name);
        tuner->config.goal.limits[i].name = tuner->names[i];
        if (tuner->names[i] == NULL)
            return wg__fail(err, WG_ENOMEM, "out of memory for the tuner");
    }
    tuner->measured = wg__alloc_zeroed(count, sizeof *tuner->measured);
    tuner->discards = wg__alloc_zeroed(count, sizeof *tuner->discards);
    tuner->is_tried = wg__alloc_zeroed(count, sizeof *tuner->is_tried);
    if (tuner->measured == NULL || tuner->discards == NULL || tuner->is_tried == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu configurations", count);
    const enum wg_code code = wg__tuning_bans_init(&tuner->bans, config->space, err);
    return code == WG_OK ? wg__tuning_slack_init(&tuner->slack, config->space, err) : code;
}

enum wg_code wg__tuner_new(struct wg_tuner **out, const struct wg_tuner_config *config,
                           struct wg_error *err)
{
    enum wg_code code = wg__tuner_check_config(config, err);

    if (code != WG_OK)
        return code;
    struct wg_tuner *tuner = wg__alloc_zeroed(1, sizeof *tuner);
    if (tuner == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for the tuner");
    code = adopt(tuner, config, err);
    if (code == WG_OK && tuner->ops->create != NULL) {
        const struct wg_tuning_view view = view_of(tuner);

        tuner->rng = wg__rng_split(&tuner->root, 0);
        code = tuner->ops->create(&tuner->state, &view, err);
    }
    if (code == WG_OK)
        *out = tuner;
    else
        wg__tuner_free(tuner);
    return code;
}

void wg__tuner_free(struct wg_tuner *tuner)
{
    if (tuner == NULL)
        return;
    if (tuner->ops != NULL && tuner->ops->destroy != NULL && tuner->state != NULL)
        tuner->ops->destroy(tuner->state);
    for (size_t i = 0; i < WG_TUNING_LIMITS_MAX; i++)
        wg__free(tuner->names[i]);
    wg__tuning_bans_fini(&tuner->bans);
    wg__tuning_slack_fini(&tuner->slack);
    wg__free(tuner->measured);
    wg__free(tuner->discards);
    wg__free(tuner->is_tried);
    wg__free(tuner->trials);
    wg__free(tuner->failures);
    wg__free(tuner);
}

/* -- Planning --------------------------------------------------------------------------------- */

static bool forecast_of(struct wg_tuner *tuner, size_t configuration,
                        struct wg_tuning_forecast *out)
{
    *out = (struct wg_tuning_forecast){(double)NAN, (double)NAN, {0}, {0}, (double)NAN};
    for (size_t i = 0; i < WG_TUNING_LIMITS_MAX; i++)
        out->figures[i] = out->figure_sds[i] = (double)NAN;
    if (tuner->ops->forecast == NULL || tuner->trial_count == 0 ||
        configuration >= tuner->config.space->count)
        return false;
    const struct wg_tuning_view view = view_of(tuner);
    return tuner->ops->forecast(tuner->state, &view, configuration, out);
}

/* Whether the forecast leaves each limit by more than three standard deviations. */
static bool is_certain(struct wg_tuner *tuner, size_t configuration)
{
    const struct wg_tuning_goal *goal = &tuner->config.goal;
    struct wg_tuning_forecast forecast;

    if (!forecast_of(tuner, configuration, &forecast))
        return false;
    for (size_t i = 0; i < goal->limit_count; i++) {
        const double room = log(goal->limits[i].bound / forecast.figures[i]);

        /* Written so that what is unknown is not certain. */
        if (!((goal->limits[i].is_minimum ? -room : room) >= 3 * forecast.figure_sds[i]))
            return false;
    }
    return true;
}

/* Whether what would be returned now should be measured once more. That it was measured twice
 * during the search is no confirmation: it may be returned because both were lucky. */
static bool wants_validation(struct wg_tuner *tuner)
{
    const struct wg_tuner_config *config = &tuner->config;

    return config->validate && !config->never_stops && tuner->ops->validates &&
           tuner->validations < VALIDATIONS_MAX && tuner->choice.is_feasible &&
           tuner->choice.returned < config->space->count &&
           tuner->choice.returned != tuner->validated && !is_certain(tuner, tuner->choice.returned);
}

__attribute__((format(printf, 4, 5))) static void ask_for(struct wg_tuner *tuner,
                                                          size_t configuration,
                                                          enum wg_tuner_reason reason,
                                                          const char *format, ...)
{
    va_list args;

    assert(configuration < tuner->config.space->count);
    tuner->question = (struct wg_tuner_question){
        .kind = WG_TUNER_MEASURE, .configuration = configuration, .reason = reason};
    va_start(args, format);
    (void)vsnprintf(tuner->question.why, sizeof tuner->question.why, format, args);
    va_end(args);
}

static void end_with(struct wg_tuner *tuner, enum wg_tuner_end end)
{
    const struct wg_tuner_config *config = &tuner->config;
    const double saving = tuner->choice.expected_saving;
    char *why = tuner->question.why;
    const size_t size = sizeof tuner->question.why;

    tuner->question = (struct wg_tuner_question){
        .kind = WG_TUNER_DONE, .configuration = config->space->count, .end = end};
    if (end == WG_TUNER_EXHAUSTED && told_of(tuner) >= config->space->count)
        (void)snprintf(why, size, "every configuration was tried");
    else if (end == WG_TUNER_BUDGET)
        (void)snprintf(why, size, "all %zu trials are used", config->max_trials);
    else if (end == WG_TUNER_EXHAUSTED)
        (void)snprintf(why, size, "every configuration that is left was tried");
    else if (isnan(saving))
        (void)snprintf(why, size, "no further saving is expected");
    else
        (void)snprintf(why, size, "no trial is expected to save more than %.2g %%",
                       fmax(0.01, 100 * saving));
}

/* Whether nothing is left that was never tried. */
static bool is_all_tried(const struct wg_tuner *tuner)
{
    for (size_t c = 0; c < tuner->config.space->count; c++)
        if (!tuner->is_tried[c] && !tuner->bans.is_banned[c])
            return false;
    return true;
}

/* A budget that is just enough for all there is was no reason to end. */
static void run_out(struct wg_tuner *tuner)
{
    if (tuner->closing != WG_TUNER_RUNNING)
        end_with(tuner, tuner->closing);
    else
        end_with(tuner, is_all_tried(tuner) ? WG_TUNER_EXHAUSTED : WG_TUNER_BUDGET);
}

/* The end has been decided: confirm, or be done. */
static void close_up(struct wg_tuner *tuner)
{
    if (!wants_validation(tuner)) {
        end_with(tuner, tuner->closing);
        return;
    }
    ask_for(tuner, tuner->choice.returned, WG_TUNER_VALIDATE,
            "it would be returned, and may be over a limit: confirmation %zu of at most %d",
            tuner->validations + 1, VALIDATIONS_MAX);
}

/* The policy's choice, or none of all while the default must come first. */
static enum wg_code choose(struct wg_tuner *tuner, struct wg_error *err)
{
    const size_t count = tuner->config.space->count;
    const struct wg_tuning_view view = view_of(tuner);
    struct wg_tuning_choice choice = {
        .next = count, .expected_saving = (double)NAN, .returned = count, .runner_up = count};

    tuner->rng = wg__rng_split(&tuner->root, tuner->tells + 1);
    if (tuner->trial_count > 0 || !wg__tuner_wants_default(tuner) ||
        tuner->bans.is_banned[tuner->config.space->default_configuration]) {
        const enum wg_code code = tuner->ops->decide(tuner->state, &view, &choice, err);

        if (code != WG_OK)
            return code;
        if (choice.returned >= count) { /* all were cut: what was ruled out may be returned, too */
            struct wg_tuning_view all = view;

            all.is_banned = tuner->bans.is_banned;
            wg__tuning_best_seen(&all, &choice);
        }
    }
    assert(choice.next >= count || !view.is_banned[choice.next]);
    assert(choice.next >= count || choice.reason == WG_TUNER_REMEASURE ||
           !tuner->is_tried[choice.next]);
    tuner->choice = choice;
    return WG_OK;
}

/* What the policy wants, and whether that is the end. */
static void follow_policy(struct wg_tuner *tuner)
{
    const struct wg_tuner_config *config = &tuner->config;
    const struct wg_tuning_choice *choice = &tuner->choice;
    const bool is_last = told_of(tuner) + 1 == config->max_trials;

    if (tuner->closing != WG_TUNER_RUNNING)
        close_up(tuner);
    else if (choice->next >= config->space->count) {
        tuner->closing = WG_TUNER_EXHAUSTED;
        close_up(tuner);
    } else if (choice->should_stop && !config->never_stops) {
        tuner->closing = WG_TUNER_CONVERGED;
        close_up(tuner);
    } else if (is_last && config->max_trials >= VALIDATION_BUDGET && wants_validation(tuner)) {
        tuner->closing = WG_TUNER_BUDGET;
        close_up(tuner);
    } else
        ask_for(tuner, choice->next, choice->reason, "%s", choice->why);
}

static void ask_again(struct wg_tuner *tuner)
{
    const unsigned discards = tuner->discards[tuner->again];

    if (discards > 0)
        ask_for(tuner, tuner->again, WG_TUNER_AGAIN,
                "its sample was thrown away (%u of at most %d)", discards, WG_TUNER_DISCARDS_MAX);
    else
        ask_for(tuner, tuner->again, WG_TUNER_AGAIN,
                "the default failed: all is compared with it, so it is tried once more");
}

static enum wg_code plan(struct wg_tuner *tuner, struct wg_error *err)
{
    const struct wg_tuner_config *config = &tuner->config;
    const size_t count = config->space->count, first = config->space->default_configuration;

    if (tuner->has_plan)
        return WG_OK;
    const enum wg_code code = choose(tuner, err);
    if (code != WG_OK)
        return code;
    tuner->has_plan = true;
    if (told_of(tuner) >= config->max_trials)
        run_out(tuner);
    else if (tuner->again < count && !tuner->bans.is_banned[tuner->again])
        ask_again(tuner);
    else if (wg__tuner_wants_default(tuner) && !tuner->is_tried[first] &&
             !tuner->bans.is_banned[first])
        ask_for(tuner, first, WG_TUNER_DEFAULT, "the default comes first: all else is compared");
    else
        follow_policy(tuner);
    return WG_OK;
}

enum wg_code wg__tuner_ask(struct wg_tuner *tuner, struct wg_tuner_question *out,
                           struct wg_error *err)
{
    const enum wg_code code = plan(tuner, err);

    if (code == WG_OK)
        *out = tuner->question;
    return code;
}

/* -- Telling ---------------------------------------------------------------------------------- */

enum wg_code wg__tuner_tell(struct wg_tuner *tuner, const struct wg_trial *trial,
                            struct wg_error *err)
{
    enum wg_code code = wg__tuner_check_trial(&tuner->config, trial, err);

    if (code == WG_OK)
        code = plan(tuner, err);
    return code == WG_OK ? wg__tuner_remember(tuner, trial, err) : code;
}

enum wg_code wg__tuner_recall(struct wg_tuner *tuner, const struct wg_trial *trial,
                              struct wg_error *err)
{
    const enum wg_code code = wg__tuner_check_trial(&tuner->config, trial, err);

    if (code != WG_OK)
        return code;
    if (!tuner->has_plan) /* what was asked is of another plan */
        tuner->question = (struct wg_tuner_question){.kind = WG_TUNER_DONE};
    return wg__tuner_remember(tuner, trial, err);
}

/* -- Results ---------------------------------------------------------------------------------- */

enum wg_code wg__tuner_result(struct wg_tuner *tuner, struct wg_tuner_result *out,
                              struct wg_error *err)
{
    const size_t count = tuner->config.space->count;
    const enum wg_code code = plan(tuner, err);

    if (code != WG_OK)
        return code;
    const struct wg_tuning_view view = view_of(tuner);
    struct wg_tuning_choice kept = tuner->choice;
    if (tuner->config.default_first)
        wg__tuning_keep_default(&view, &kept);
    const struct wg_tuning_choice *choice = &kept;
    const bool is_done = tuner->question.kind == WG_TUNER_DONE;
    struct wg_tuner_result result = {
        .end = is_done ? tuner->question.end : WG_TUNER_RUNNING,
        .configuration = choice->returned,
        .is_feasible = choice->returned < count && choice->is_feasible,
        .runner_up = choice->runner_up,
        .trials = told_of(tuner),
        .failed_trials = tuner->failed,
        .expected_saving = choice->expected_saving,
    };
    result.is_validated = result.is_feasible && tuner->measured[choice->returned] >= 2;
    /* A policy whose forecasts are no calibrated posterior cannot be certain. */
    result.is_certain =
        result.is_feasible && tuner->ops->validates && is_certain(tuner, choice->returned);
    (void)forecast_of(tuner, choice->returned, &result.forecast);
    (void)snprintf(result.why, sizeof result.why, "%s",
                   is_done ? tuner->question.why : "the search goes on");
    *out = result;
    return WG_OK;
}

bool wg__tuner_forecast(struct wg_tuner *tuner, size_t configuration,
                        struct wg_tuning_forecast *out)
{
    struct wg_tuning_forecast forecast;

    if (plan(tuner, NULL) != WG_OK || !forecast_of(tuner, configuration, &forecast))
        return false;
    *out = forecast;
    return true;
}

bool wg__tuner_is_banned(const struct wg_tuner *tuner, size_t configuration)
{
    return configuration < tuner->config.space->count && tuner->bans.is_banned[configuration];
}
