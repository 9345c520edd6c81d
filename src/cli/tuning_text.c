/* SPDX-License-Identifier: MIT
 *
 * The results of tuning studies for people: see tuning_results.h.
 */
#include <math.h>
#include <stdio.h>

#include "base/buffer.h"
#include "cli/table.h"
#include "cli/tuning_results.h"

enum { CELL_BYTES = 64 };

void wg__tuning_describe(const struct wg_tuning_space *space, size_t configuration,
                         struct wg_buffer *out)
{
    for (size_t k = 0; k < space->knob_count; k++) {
        const struct wg_tuning_knob *knob = &space->knobs[k];
        const size_t level = wg__tuning_level(space, configuration, k);
        wg__buffer_printf(out, "%s%s ", k == 0 ? "" : ", ", knob->name);
        if (knob->labels != NULL)
            wg__buffer_puts(out, knob->labels[level]);
        else
            wg__buffer_printf(out, "%.10g", knob->levels[level]);
    }
}

static const struct wg_table_column policy_columns[] = {
    {"policy", WG_ALIGN_LEFT},      {"first hit", WG_ALIGN_RIGHT}, {"p95", WG_ALIGN_RIGHT},
    {"missed", WG_ALIGN_RIGHT},     {"trials", WG_ALIGN_RIGHT},    {"within 5 %", WG_ALIGN_RIGHT},
    {"over limit", WG_ALIGN_RIGHT}, {"regret", WG_ALIGN_RIGHT},    {"saved", WG_ALIGN_RIGHT},
    {"decision", WG_ALIGN_RIGHT},
};

static void add_percent(struct wg_table *table, double share)
{
    if (isnan(share))
        wg__table_cell(table, "-");
    else
        wg__table_cell(table, "%.1f %%", fabs(share) < 0.0005 ? 0 : 100 * share);
}

void wg__tuning_policy_table(const struct wg_tuning_study *study, struct wg_table *out)
{
    wg__table_init(out, policy_columns, sizeof policy_columns / sizeof policy_columns[0]);
    for (size_t i = 0; i < study->summary_count; i++) {
        const struct wg_tuning_summary *of = &study->summaries[i];
        wg__table_cell(out, "%s", wg__tuner_policy_word(of->policy));
        /* A mean of runs that were ended at the cap says only that it is beyond. */
        if (2 * of->misses > study->seeds)
            wg__table_cell(out, ">%zu", study->hit_cap);
        else if (isnan(of->first_hit.low))
            wg__table_cell(out, "%.2f", of->first_hit.mean);
        else
            wg__table_cell(out, "%.2f ±%.2f", of->first_hit.mean,
                           of->first_hit.high - of->first_hit.mean);
        if (of->first_hit_p95 > (double)study->hit_cap)
            wg__table_cell(out, ">%zu", study->hit_cap);
        else
            wg__table_cell(out, "%.0f", of->first_hit_p95);
        add_percent(out, (double)of->misses / (double)study->seeds);
        wg__table_cell(out, "%.1f", of->trials.mean);
        add_percent(out, of->within_5.share);
        add_percent(out, of->over_limit.share);
        add_percent(out, of->regret.mean);
        add_percent(out, of->saving.mean);
        wg__table_cell(out, "%.2f ms", of->decision_ms_p50);
    }
}

static const struct wg_table_column trial_columns[] = {
    {"trial", WG_ALIGN_RIGHT},  {"configuration", WG_ALIGN_LEFT}, {"objective", WG_ALIGN_RIGHT},
    {"limits", WG_ALIGN_RIGHT}, {"in truth", WG_ALIGN_LEFT},      {"why", WG_ALIGN_LEFT},
};

/* What a trial of a near-optimal or an infeasible configuration is marked with. */
static const char *mark_of(const struct wg_tuning_scene *scene, const struct wg_tuning_told *told)
{
    if (told->trial.outcome != WG_TRIAL_MEASURED)
        return wg__trial_outcome_word(told->trial.outcome);
    if (scene->target.is_near[told->trial.configuration])
        return "near-optimal";
    return scene->target.is_feasible[told->trial.configuration] ? "" : "over the limit";
}

static void add_trial(const struct wg_tuning_trials *trials, const struct wg_tuning_told *told,
                      struct wg_table *out)
{
    const struct wg_tuning_scene *scene = trials->setup.scene;
    const struct wg_tuning_goal *goal = &scene->grid->goal;
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__tuning_describe(scene->grid->space, told->question.configuration, &text);
    wg__table_cell(out, "%zu", told->number);
    wg__table_cell(out, "%s", text.failed ? "" : text.data);
    wg__buffer_fini(&text);
    const bool has_figures =
        told->trial.outcome == WG_TRIAL_MEASURED || told->trial.outcome == WG_TRIAL_CUT;
    if (has_figures && !isnan(told->trial.objective))
        wg__table_cell(out, "%.5g", told->trial.objective);
    else
        wg__table_cell(out, "-");
    char figures[CELL_BYTES] = "";
    size_t length = 0;
    for (size_t i = 0; has_figures && i < goal->limit_count && length < sizeof figures; i++)
        length += (size_t)snprintf(figures + length, sizeof figures - length, "%s%.5g",
                                   i == 0 ? "" : " ", told->trial.figures[i]);
    wg__table_cell(out, "%s", figures);
    wg__table_cell(out, "%s", mark_of(scene, told));
    wg__table_cell(out, "%s", told->question.why);
}

void wg__tuning_trial_table(const struct wg_tuning_trials *trials, struct wg_table *out)
{
    wg__table_init(out, trial_columns, sizeof trial_columns / sizeof trial_columns[0]);
    for (size_t i = 0; i < trials->count; i++)
        add_trial(trials, &trials->items[i], out);
}

static void write_trials(const struct wg_tuning_trials *trials, bool with_color,
                         struct wg_buffer *out)
{
    const struct wg_tuning_scene *scene = trials->setup.scene;
    wg__buffer_printf(out, "\n%s, seed %llu, trial by trial\n\n",
                      wg__tuner_policy_word(trials->setup.policy),
                      (unsigned long long)trials->setup.seed);
    struct wg_table table;
    wg__tuning_trial_table(trials, &table);
    wg__table_write(&table, with_color, out);
    wg__table_fini(&table);
    wg__buffer_printf(out, "\nEnd: %s. %s\n", wg__tuner_end_word(trials->outcome.end),
                      trials->result.why);
    const size_t c = trials->outcome.returned;
    if (c >= scene->grid->space->count)
        return;
    wg__buffer_puts(out, "Returned: ");
    wg__tuning_describe(scene->grid->space, c, out);
    wg__buffer_printf(out, "; in truth %s", scene->target.is_feasible[c] ? "" : "over the limit, ");
    wg__buffer_printf(out, "%.2f %% %s the optimum.\n",
                      100 * fabs(scene->grid->costs[c] / scene->target.least - 1),
                      scene->grid->costs[c] < scene->target.least ? "below" : "above");
}

void wg__tuning_replicates_text(const struct wg_tuning_grid *grid, struct wg_buffer *out)
{
    const double rows = (double)grid->rows / (double)grid->space->count;
    if (grid->differing != NULL)
        wg__buffer_printf(out,
                          "%.3g rows a configuration, which differ in %s: their means count. Are "
                          "they different workloads?\nThen choose one by --where.\n",
                          rows, grid->differing);
    else if (grid->rows > grid->space->count)
        wg__buffer_printf(out,
                          "%.3g rows a configuration: they are taken for repetitions, and their "
                          "means count.\n",
                          rows);
}

void wg__tuning_text(const struct wg_tuning_study *study,
                     const struct wg_tuning_study_request *request,
                     const struct wg_tuning_trials *trials, bool with_color, struct wg_buffer *out)
{
    const struct wg_tuning_scene *scene = study->scene;
    const struct wg_tuning_grid *grid = scene->grid;
    const struct wg_tuning_target *target = &scene->target;
    wg__buffer_printf(out, "%s: %zu configurations (%zu rows), ", grid->source, grid->space->count,
                      grid->rows);
    if (grid->goal.limit_count == 0)
        wg__buffer_puts(out, "no limit is set");
    else
        wg__buffer_printf(out, "%zu meet ", target->feasible);
    for (size_t i = 0; i < grid->goal.limit_count; i++)
        wg__buffer_printf(
            out, "%s%s %s %.6g", i == 0 ? "" : " and ", grid->goal.limits[i].name,
            grid->goal.limits[i].is_minimum ? ">=" : "<=", grid->goal.limits[i].bound);
    wg__buffer_printf(out, ", %zu %s within 5 %% of the optimum\n", target->near_optimal,
                      grid->goal.limit_count == 0 ? "are" : "of them");
    wg__tuning_replicates_text(grid, out);
    if (target->available < grid->space->count)
        wg__buffer_printf(out, "%zu are out of memory or refused.\n",
                          grid->space->count - target->available);
    wg__buffer_puts(out, "Optimum: ");
    wg__tuning_describe(grid->space, target->optimum, out);
    wg__buffer_printf(out, "; %s %.6g, %.1f %% below the default\n\n", grid->objective,
                      target->least,
                      100 * (1 - target->least / grid->costs[grid->space->default_configuration]));
    struct wg_table table;
    wg__tuning_policy_table(study, &table);
    wg__table_write(&table, with_color, out);
    wg__table_fini(&table);
    wg__buffer_printf(out,
                      "\n%zu seed%s, noise %g %%. first hit: trials until a configuration within "
                      "5 %% of the optimum was\nmeasured: the mean with its 95 %% interval (a run "
                      "without one in %zu trials counts %zu), and p95, which\n95 %% of the runs do "
                      "not exceed. trials, within 5 %%, over limit, regret, saved: what the policy "
                      "returned\nby its own rule, at the latest after %zu trials.\n",
                      study->seeds, study->seeds == 1 ? "" : "s", 100 * scene->noise,
                      study->hit_cap, study->hit_cap + 1, wg__tuning_study_trials(request));
    for (size_t i = 0; i < study->summary_count; i++)
        if (!isnan(study->summaries[i].first_hit_exact))
            wg__buffer_printf(out, "random without a cap needs %.2f trials on average.\n",
                              study->summaries[i].first_hit_exact);
    if (trials != NULL)
        write_trials(trials, with_color, out);
}
