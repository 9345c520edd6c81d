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
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "cli/front_plot.h"
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

/* A mean of runs that were ended at the cap says only that it is beyond. */
static void put_first_hit(const struct wg_tuning_study *study, const struct wg_tuning_summary *of,
                          char *out, size_t size)
{
    if (2 * of->misses > study->seeds)
        (void)snprintf(out, size, ">%zu", study->hit_cap);
    else
        (void)snprintf(out, size, "%.1f", of->first_hit.mean);
}

static void write_facts(struct report *report)
{
    const struct wg_tuning_study *study = report->study;
    const struct wg_tuning_summary *hero = find_hero(study);
    const char *word = wg__tuner_policy_word(hero->policy);
    char values[4][TEXT_BYTES], labels[4][TEXT_BYTES], notes[4][TEXT_BYTES];
    put_first_hit(study, hero, values[0], TEXT_BYTES);
    (void)snprintf(labels[0], TEXT_BYTES, "trials until %s measures a near-optimal configuration",
                   word);
    size_t length =
        (size_t)snprintf(notes[0], TEXT_BYTES, "%zu of %zu are", study->scene->target.near_optimal,
                         study->scene->target.available);
    for (size_t i = 0; i < study->summary_count && length < TEXT_BYTES; i++) {
        if (&study->summaries[i] == hero)
            continue;
        char first_hit[TEXT_BYTES];
        put_first_hit(study, &study->summaries[i], first_hit, sizeof first_hit);
        length += (size_t)snprintf(notes[0] + length, TEXT_BYTES - length, "; %s %.24s",
                                   wg__tuner_policy_word(study->summaries[i].policy), first_hit);
    }
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

/* Every configuration once for each look that it has. */
struct cloud {
    struct wg_front_point *points;
    size_t count;
    struct wg_front_group groups[WG_FRONT_GROUPS_MAX];
    size_t group_count;
};

static void add_group(struct cloud *cloud, const char *label, enum wg_plot_color color)
{
    cloud->groups[cloud->group_count++] = (struct wg_front_group){label, color};
}

/* To the newest group. */
static void add_point(struct report *report, struct cloud *cloud, size_t c, bool counts)
{
    const struct wg_tuning_grid *grid = report->study->scene->grid;
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__tuning_describe(grid->space, c, &text);
    wg__buffer_printf(&text, ": %.5g", grid->costs[c]);
    const char *label = text.failed ? NULL : wg__arena_strdup(&report->scratch, text.data);
    report->page.out->failed |= label == NULL;
    cloud->points[cloud->count++] =
        (struct wg_front_point){.figure = wg__tuning_grid_figure(grid, c, 0),
                                .cost = grid->costs[c],
                                .group = cloud->group_count - 1,
                                .counts = counts,
                                .label = label != NULL ? label : ""};
    wg__buffer_fini(&text);
}

/* Those that are feasible, or those that are not. What is out of order bears no front. */
static void add_grid(struct report *report, struct cloud *cloud, bool is_feasible)
{
    const struct wg_tuning_scene *scene = report->study->scene;
    add_group(cloud, is_feasible ? "within the limits" : "breaks a limit",
              is_feasible ? WG_PLOT_SKY : WG_PLOT_GREY);
    for (size_t c = 0; c < scene->grid->space->count; c++)
        if (scene->target.is_feasible[c] == is_feasible)
            add_point(report, cloud, c, !scene->is_out[c]);
}

/* Each configuration that a policy returned at least once. */
static void add_returned(struct report *report, struct cloud *cloud,
                         const struct wg_tuning_summary *of)
{
    const size_t count = report->study->scene->grid->space->count;
    bool *is_returned = wg__arena_alloc(&report->scratch, count, sizeof *is_returned);
    char label[TEXT_BYTES];
    (void)snprintf(label, sizeof label, "returned by %s", wg__tuner_policy_word(of->policy));
    const char *kept = wg__arena_strdup(&report->scratch, label);
    if (is_returned == NULL || kept == NULL) {
        report->page.out->failed = true;
        return;
    }
    add_group(cloud, kept, of->policy == WG_TUNER_RANDOM ? WG_PLOT_YELLOW : color_of(of->policy));
    for (size_t i = 0; i < report->study->seeds; i++)
        if (of->outcomes[i].returned < count)
            is_returned[of->outcomes[i].returned] = true;
    for (size_t c = 0; c < count; c++)
        if (is_returned[c])
            add_point(report, cloud, c, false);
}

static void write_plane(struct report *report)
{
    const struct wg_tuning_study *study = report->study;
    const struct wg_tuning_grid *grid = study->scene->grid;
    const struct wg_tuning_limit *limit = &grid->goal.limits[0];
    struct cloud cloud = {.points = wg__arena_alloc(
                              &report->scratch, (study->summary_count + 1) * grid->space->count + 1,
                              sizeof *cloud.points)};
    if (cloud.points == NULL) {
        report->page.out->failed = true;
        return;
    }
    add_grid(report, &cloud, false);
    add_grid(report, &cloud, true);
    for (size_t i = 0; i < study->summary_count; i++)
        add_returned(report, &cloud, &study->summaries[i]);
    add_group(&cloud, "optimum", WG_PLOT_VERMILION);
    add_point(report, &cloud, study->scene->target.optimum, false);
    const struct wg_front front = {.title = "Cost against the limited figure",
                                   .x = {.title = limit->name, .scale = WG_PLOT_LOG},
                                   .y = {.title = grid->objective, .scale = WG_PLOT_LOG},
                                   .groups = cloud.groups,
                                   .group_count = cloud.group_count,
                                   .points = cloud.points,
                                   .point_count = cloud.count,
                                   .bound = limit->bound,
                                   .is_minimum = limit->is_minimum,
                                   .width = WIDE,
                                   .height = HIGH};
    wg__page_heading(&report->page, "The grid");
    wg__page_figures_begin(&report->page);
    wg__front_figure(&report->page, &front,
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
    struct wg_buffer replicates;
    wg__buffer_init(&replicates);
    wg__tuning_replicates_text(study->scene->grid, &replicates);
    if (!replicates.failed && replicates.length > 0)
        wg__page_paragraph(&report.page, "%s", replicates.data);
    wg__buffer_fini(&replicates);
    wg__page_heading(&report.page, "Policies");
    struct wg_table table;
    wg__tuning_policy_table(study, &table);
    wg__page_table(&report.page, &table,
                   "First hit: mean and its 95 % interval; p95: 95 % of the runs do not exceed "
                   "it. The rest: what was "
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
