/* SPDX-License-Identifier: MIT
 *
 * The HTML report of tuning studies: see report_tuning_study.h.
 *
 *     four numbers            what the first policy needs, and how good what it returns is
 *     table of the policies
 *     three charts            share of runs that hit by n trials; what would be returned after n;
 *                             its regret
 *     the grid                cost against the first limit's figure: what is feasible, the front,
 *                             the optimum, what each policy returned
 *     one run, trial by trial (when asked for), set-up, and the command that made it
 *
 * Threads: one at a time.
 */
#include "cli/report_tuning_study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "cli/page.h"
#include "cli/plot.h"
#include "cli/table.h"

/* Between a number and its unit in running text. */
#define NBSP "\u00a0"

enum { TEXT_BYTES = 512, SERIES_MAX = 5 + WG_TUNER_POLICY_COUNT, WIDE = 760, HIGH = 420 };

struct report {
    struct wg_page page;
    const struct wg_tuning_study *study;
    struct wg_arena scratch;
};

static enum wg_plot_color color_of(enum wg_tuner_policy policy)
{
    static const enum wg_plot_color colors[] = {[WG_TUNER_RANDOM] = WG_PLOT_GREY,
                                                [WG_TUNER_POLYTHROTTLE] = WG_PLOT_ORANGE,
                                                [WG_TUNER_CBO] = WG_PLOT_PURPLE,
                                                [WG_TUNER_WATTGOV] = WG_PLOT_BLUE};
    return colors[policy];
}

/* Numbers that live as long as the report; NULL when memory has run out, which the page knows. */
static double *make_numbers(struct report *report, size_t count)
{
    double *numbers = wg__arena_alloc(&report->scratch, count > 0 ? count : 1, sizeof *numbers);
    if (numbers == NULL)
        report->page.out->failed = true;
    return numbers;
}

/* -- Facts ----------------------------------------------------------------------------------- */

/* The policy that the report is about: ours, else the first. */
static const struct wg_tuning_summary *find_hero(const struct wg_tuning_study *study)
{
    for (size_t i = 0; i < study->summary_count; i++)
        if (study->summaries[i].policy == WG_TUNER_WATTGOV)
            return &study->summaries[i];
    return &study->summaries[0];
}

static void write_facts(struct report *report)
{
    const struct wg_tuning_study *study = report->study;
    const struct wg_tuning_summary *hero = find_hero(study);
    const char *word = wg__tuner_policy_word(hero->policy);
    char values[4][TEXT_BYTES], labels[4][TEXT_BYTES], notes[4][TEXT_BYTES];
    (void)snprintf(values[0], TEXT_BYTES, "%.1f", hero->first_hit.mean);
    (void)snprintf(labels[0], TEXT_BYTES, "trials until %s measures a near-optimal configuration",
                   word);
    size_t length =
        (size_t)snprintf(notes[0], TEXT_BYTES, "%zu of %zu are", study->scene->target.near_optimal,
                         study->scene->target.available);
    for (size_t i = 0; i < study->summary_count && length < TEXT_BYTES; i++)
        if (&study->summaries[i] != hero)
            length += (size_t)snprintf(notes[0] + length, TEXT_BYTES - length, "; %s %.1f",
                                       wg__tuner_policy_word(study->summaries[i].policy),
                                       study->summaries[i].first_hit.mean);
    (void)snprintf(values[1], TEXT_BYTES, "%.0f" NBSP "%%", 100 * hero->within_5.share);
    (void)snprintf(labels[1], TEXT_BYTES, "of its runs return one by its own rule");
    (void)snprintf(notes[1], TEXT_BYTES, "95" NBSP "%%: %.0f to %.0f; after %.1f trials",
                   100 * hero->within_5.low, 100 * hero->within_5.high, hero->trials.mean);
    (void)snprintf(values[2], TEXT_BYTES, "%.1f" NBSP "%%", 100 * hero->over_limit.share);
    (void)snprintf(labels[2], TEXT_BYTES, "return one that breaks a limit");
    (void)snprintf(notes[2], TEXT_BYTES, "95" NBSP "%%: %.1f to %.1f", 100 * hero->over_limit.low,
                   100 * hero->over_limit.high);
    (void)snprintf(values[3], TEXT_BYTES, "%.1f" NBSP "%%",
                   100 * (isnan(hero->saving.mean) ? 0 : hero->saving.mean));
    (void)snprintf(labels[3], TEXT_BYTES, "less than the default costs");
    const double usual =
        study->scene->grid->costs[study->scene->grid->space->default_configuration];
    (void)snprintf(notes[3], TEXT_BYTES, "the optimum: %.1f" NBSP "%%",
                   100 * (1 - study->scene->target.least / usual));
    struct wg_page_fact facts[4];
    for (size_t i = 0; i < 4; i++)
        facts[i] = (struct wg_page_fact){values[i], labels[i], notes[i]};
    wg__page_facts(&report->page, facts, 4);
}

/* -- Charts over trials ---------------------------------------------------------------------- */

enum curve { HITS, WITHIN_5, REGRET };

static const double *make_curve(struct report *report, const struct wg_tuning_summary *of,
                                enum curve curve, size_t count)
{
    double *y = make_numbers(report, count);
    for (size_t n = 0; y != NULL && n < count; n++)
        y[n] = 100 * (curve == HITS       ? of->hit_by[n]
                      : curve == WITHIN_5 ? of->after[n].within_5
                                          : of->after[n].regret);
    return y;
}

static void add_curves(struct report *report, enum curve curve, const struct wg_plot *plot,
                       const char *caption)
{
    const struct wg_tuning_study *study = report->study;
    struct wg_plot_series series[SERIES_MAX];
    const size_t count = curve == HITS ? study->hit_cap : study->max_trials;
    size_t series_count = 0;
    for (size_t i = 0; i < study->summary_count; i++) {
        const struct wg_tuning_summary *of = &study->summaries[i];
        const double *y = make_curve(report, of, curve, count);
        if (y != NULL)
            series[series_count++] = (struct wg_plot_series){
                .label = wg__tuner_policy_word(of->policy),
                .mark = curve == HITS ? WG_PLOT_STEP : WG_PLOT_LINE,
                .color = color_of(of->policy),
                .y = y,
                .count = count,
            };
    }
    struct wg_plot whole = *plot;
    whole.series = series;
    whole.series_count = series_count;
    wg__page_figure(&report->page, &whole, caption);
}

static void write_curves(struct report *report)
{
    wg__page_heading(&report->page, "Trial by trial");
    wg__page_figures_begin(&report->page);
    add_curves(report, HITS,
               &(struct wg_plot){.title = "First hit",
                                 .x = {.title = "trials", .is_whole = true},
                                 .y = {.title = "runs with a hit", .unit = "%", .from_zero = true}},
               "Share of the runs that have measured a feasible configuration within 5 % of the "
               "optimum, known or not.");
    add_curves(report, WITHIN_5,
               &(struct wg_plot){.title = "Returned after so many trials",
                                 .x = {.title = "trials", .is_whole = true},
                                 .y = {.title = "right", .unit = "%", .from_zero = true}},
               "Share of the runs that would return a feasible configuration within 5 % of the "
               "optimum if they had to end then.");
    add_curves(report, REGRET,
               &(struct wg_plot){.title = "Its cost above the optimum",
                                 .x = {.title = "trials", .is_whole = true},
                                 .y = {.title = "regret", .unit = "%", .from_zero = true}},
               "Mean over those that are feasible.");
    wg__page_figures_end(&report->page);
}

/* -- The grid -------------------------------------------------------------------------------- */

/* A set of configurations as points. */
struct points {
    double *x, *y;
    const char **labels;
    size_t count;
};

static bool make_points(struct report *report, struct points *points)
{
    const size_t count = report->study->scene->grid->space->count;
    *points = (struct points){.x = make_numbers(report, count), .y = make_numbers(report, count)};
    points->labels = wg__arena_alloc(&report->scratch, count, sizeof *points->labels);
    report->page.out->failed |= points->labels == NULL;
    return points->x != NULL && points->y != NULL && points->labels != NULL;
}

static void add_point(struct report *report, struct points *points, size_t c)
{
    const struct wg_tuning_grid *grid = report->study->scene->grid;
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__tuning_describe(grid->space, c, &text);
    wg__buffer_printf(&text, ": %.5g", grid->costs[c]);
    points->x[points->count] = wg__tuning_grid_figure(grid, c, 0);
    points->y[points->count] = grid->costs[c];
    const char *label = text.failed ? NULL : wg__arena_strdup(&report->scratch, text.data);
    report->page.out->failed |= label == NULL;
    points->labels[points->count] = label != NULL ? label : "";
    points->count++;
    wg__buffer_fini(&text);
}

static struct wg_plot_series as_series(const struct points *points, const char *label,
                                       enum wg_plot_color color)
{
    return (struct wg_plot_series){.label = label,
                                   .mark = WG_PLOT_POINTS,
                                   .color = color,
                                   .x = points->x,
                                   .y = points->y,
                                   .count = points->count,
                                   .point_labels = points->labels};
}

struct place {
    double x, y;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *p = a, *q = b;
    if (p->x != q->x)
        return p->x < q->x ? -1 : 1;
    return (p->y > q->y) - (p->y < q->y);
}

/* The least cost up to each figure, as steps. */
static bool make_front(struct report *report, double **x, double **y, size_t *count)
{
    const struct wg_tuning_scene *scene = report->study->scene;
    const struct wg_tuning_grid *grid = scene->grid;
    struct place *places = wg__arena_alloc(&report->scratch, grid->space->count, sizeof *places);
    *x = make_numbers(report, grid->space->count);
    *y = make_numbers(report, grid->space->count);
    if (places == NULL || *x == NULL || *y == NULL) {
        report->page.out->failed = true;
        return false;
    }
    size_t all = 0;
    for (size_t c = 0; c < grid->space->count; c++)
        if (!scene->is_out[c])
            places[all++] = (struct place){wg__tuning_grid_figure(grid, c, 0), grid->costs[c]};
    qsort(places, all, sizeof *places, compare_places);
    *count = 0;
    for (size_t i = 0; i < all; i++) {
        if (*count > 0 && places[i].y >= (*y)[*count - 1])
            continue;
        (*x)[*count] = places[i].x;
        (*y)[(*count)++] = places[i].y;
    }
    return true;
}

/* Each configuration that a policy returned at least once. */
static bool make_returned(struct report *report, const struct wg_tuning_summary *of,
                          struct points *points)
{
    const size_t count = report->study->scene->grid->space->count;
    bool *is_returned = wg__arena_alloc(&report->scratch, count, sizeof *is_returned);
    if (is_returned == NULL || !make_points(report, points)) {
        report->page.out->failed = true;
        return false;
    }
    for (size_t i = 0; i < report->study->seeds; i++)
        if (of->outcomes[i].returned < count)
            is_returned[of->outcomes[i].returned] = true;
    for (size_t c = 0; c < count; c++)
        if (is_returned[c])
            add_point(report, points, c);
    return true;
}

static void write_plane(struct report *report)
{
    const struct wg_tuning_scene *scene = report->study->scene;
    const struct wg_tuning_grid *grid = scene->grid;
    const struct wg_tuning_limit *limit = &grid->goal.limits[0];
    struct wg_plot_series series[SERIES_MAX];
    size_t count = 0, front_count = 0;
    struct points feasible, others, best;
    double *front_x = NULL, *front_y = NULL;
    if (!make_points(report, &feasible) || !make_points(report, &others) ||
        !make_points(report, &best) || !make_front(report, &front_x, &front_y, &front_count))
        return;
    for (size_t c = 0; c < grid->space->count; c++)
        add_point(report, scene->target.is_feasible[c] ? &feasible : &others, c);
    add_point(report, &best, scene->target.optimum);
    series[count++] = as_series(&others, "breaks a limit", WG_PLOT_GREY);
    series[count++] = as_series(&feasible, "within the limits", WG_PLOT_SKY);
    if (!limit->is_minimum)
        series[count++] = (struct wg_plot_series){.label = "front",
                                                  .mark = WG_PLOT_STEP,
                                                  .color = WG_PLOT_INK,
                                                  .x = front_x,
                                                  .y = front_y,
                                                  .count = front_count};
    for (size_t i = 0; i < report->study->summary_count; i++) {
        const struct wg_tuning_summary *of = &report->study->summaries[i];
        struct points returned;
        if (!make_returned(report, of, &returned))
            return;
        char label[TEXT_BYTES];
        (void)snprintf(label, sizeof label, "returned by %s", wg__tuner_policy_word(of->policy));
        const char *kept = wg__arena_strdup(&report->scratch, label);
        series[count++] = as_series(
            &returned, kept, of->policy == WG_TUNER_RANDOM ? WG_PLOT_YELLOW : color_of(of->policy));
    }
    series[count++] = as_series(&best, "optimum", WG_PLOT_VERMILION);
    const struct wg_plot_reference bound = {
        .label = "limit", .value = limit->bound, .is_vertical = true, .color = WG_PLOT_VERMILION};
    const struct wg_plot plot = {
        .title = "Cost against the limited figure",
        .x = {.title = limit->name, .scale = WG_PLOT_LOG},
        .y = {.title = grid->objective, .scale = WG_PLOT_LOG},
        .series = series,
        .series_count = count,
        .references = &bound,
        .reference_count = 1,
        .width = WIDE,
        .height = HIGH,
    };
    wg__page_heading(&report->page, "The grid");
    wg__page_figures_begin(&report->page);
    wg__page_figure(&report->page, &plot,
                    "Each point is a configuration, by its true figures; of what a policy "
                    "returned, each one once.");
    wg__page_figures_end(&report->page);
}

/* -- The page -------------------------------------------------------------------------------- */

static void write_trials(struct report *report, const struct wg_tuning_trials *trials)
{
    char summary[TEXT_BYTES];
    (void)snprintf(summary, sizeof summary, "One run: %s, seed %llu",
                   wg__tuner_policy_word(trials->setup.policy),
                   (unsigned long long)trials->setup.seed);
    wg__page_fold_begin(&report->page, summary, true);
    struct wg_table table;
    wg__tuning_trial_table(trials, &table);
    wg__page_table(&report->page, &table, trials->result.why);
    wg__table_fini(&table);
    wg__page_fold_end(&report->page);
}

static void write_setup(struct report *report, const struct wg_tuning_study_request *request)
{
    const struct wg_tuning_scene *scene = report->study->scene;
    const struct wg_tuning_failures *failures = &scene->failures;
    wg__page_heading(&report->page, "Set-up");
    wg__page_paragraph(
        &report->page,
        "%zu seed%s from %llu on. A measurement gives the grid's figures with a relative noise of "
        "%g" NBSP "%% (the tuner is told %g" NBSP "%%). Every measurement is a trial, validation "
        "included; a run ends by its own rule, at the latest after %zu trials. First hits are "
        "counted in a run that does not stop; one without a hit in %zu trials counts %zu.",
        report->study->seeds, report->study->seeds == 1 ? "" : "s",
        (unsigned long long)request->first_seed, 100 * scene->noise, 100 * scene->told,
        report->study->max_trials, report->study->hit_cap, report->study->hit_cap + 1);
    if (failures->crash + failures->hang + failures->restart + failures->out_of_memory > 0 ||
        failures->refusal_count > 0)
        wg__page_paragraph(&report->page,
                           "What goes wrong: %g" NBSP "%% of the measurements crash, %g" NBSP
                           "%% hang, %g" NBSP "%% meet a restart; %g" NBSP
                           "%% of the configurations are out of memory; %zu level%s "
                           "refused.",
                           100 * failures->crash, 100 * failures->hang, 100 * failures->restart,
                           100 * failures->out_of_memory, failures->refusal_count,
                           failures->refusal_count == 1 ? " is" : "s are");
}

void wg__report_tuning_study(const struct wg_tuning_study *study,
                             const struct wg_tuning_study_request *request,
                             const struct wg_tuning_trials *trials, const char *command,
                             struct wg_buffer *out)
{
    struct report report = {.study = study};
    const struct wg_tuning_target *target = &study->scene->target;
    wg__arena_init(&report.scratch);
    char subtitle[TEXT_BYTES];
    (void)snprintf(subtitle, sizeof subtitle,
                   "%zu configurations, %zu within the limits, %zu within 5 %% of the optimum; "
                   "%zu runs a policy",
                   study->scene->grid->space->count, target->feasible, target->near_optimal,
                   study->seeds);
    wg__page_begin(&report.page, out, "Tuning, replayed on a measured grid", subtitle);
    write_facts(&report);
    wg__page_heading(&report.page, "Policies");
    struct wg_table table;
    wg__tuning_policy_table(study, &table);
    wg__page_table(&report.page, &table,
                   "First hit: mean and 95 % interval, then its 95 % quantile. The rest: what was "
                   "returned by the policy's own rule.");
    wg__table_fini(&table);
    write_curves(&report);
    if (study->scene->grid->goal.limit_count > 0)
        write_plane(&report);
    if (trials != NULL)
        write_trials(&report, trials);
    write_setup(&report, request);
    wg__page_end(&report.page, command);
    wg__arena_fini(&report.scratch);
}
