/* SPDX-License-Identifier: MIT
 *
 * The HTML report of training studies: see report_training.h.
 *
 *     what was saved, in four numbers          The reader who has ten seconds reads the first line,
 * who summary, cost above the oracle           has a minute the first screen. The rest is for
 * whoever per GPU: table, a chart per job          doubts a number: all of it is there, folded
 * away. per job, folded: cost, front, choices set-up, and the command that made it
 *
 * Threads: one at a time.
 */
#include "cli/report_training.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "cli/page.h"
#include "cli/table.h"
#include "cli/training_figures.h"
#include "cli/training_results.h"
#include "simulate/study.h"

/* Between a number and its unit in running text. */
#define NBSP "\u00a0"

enum { TEXT_BYTES = 512, PHRASE_BYTES = 64 };

static const struct wg_study_summary *find_summary(const struct wg_study *study, const char *policy)
{
    for (size_t i = 0; i < study->summary_count; i++)
        if (strcmp(study->summaries[i].policy, policy) == 0)
            return &study->summaries[i];
    return NULL;
}

/* The policy that the report is about: ours, else the first that decides; NULL when none does. */
static const struct wg_study_summary *find_hero(const struct wg_study *study)
{
    const struct wg_study_summary *hero = find_summary(study, "wattgov");
    for (size_t i = 0; i < study->summary_count && hero == NULL; i++)
        if (wg__policy_decides(study->summaries[i].policy))
            hero = &study->summaries[i];
    return hero;
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

/* "21.3 %" with its sign turned into a word. */
static void describe_change(char out[static PHRASE_BYTES], double saved, const char *less,
                            const char *more)
{
    (void)snprintf(out, PHRASE_BYTES, "%.1f" NBSP "%% %s", 100 * fabs(saved),
                   saved >= 0 ? less : more);
}

static void write_facts(struct wg_page *page, const struct wg_study *study)
{
    const struct wg_study_summary *hero = find_hero(study);
    const struct wg_study_summary *zeus = find_summary(study, "zeus");
    if (hero == NULL)
        return;
    char values[4][TEXT_BYTES], labels[4][TEXT_BYTES], notes[4][TEXT_BYTES];
    size_t count = 0;
    const double saved = 1 - hero->geomean_energy_over_default;
    describe_change(values[count], saved, "less", "more");
    (void)snprintf(labels[count], TEXT_BYTES, "energy with %s than with the default", hero->policy);
    char time[PHRASE_BYTES], cost[PHRASE_BYTES];
    describe_change(time, 1 - hero->geomean_time_over_default, "less", "more");
    describe_change(cost, 1 - hero->geomean_cost_over_default, "less", "more");
    (void)snprintf(notes[count++], TEXT_BYTES, "%s time, %s cost; geometric means", time, cost);

    (void)snprintf(values[count], TEXT_BYTES, "%.1f" NBSP "%%",
                   100 * hero->mean_excess_over_oracle);
    (void)snprintf(labels[count], TEXT_BYTES, "cost above the oracle's");
    (void)snprintf(notes[count++], TEXT_BYTES,
                   "all %zu recurrence%s together, learning included; worst case %.1f" NBSP "%%",
                   study->recurrences, plural(study->recurrences),
                   100 * hero->worst_excess_over_oracle);
    if (zeus != NULL && zeus != hero) {
        const double ratio = hero->geomean_cost_over_default / zeus->geomean_cost_over_default;
        describe_change(values[count], 1 - ratio, "less", "more");
        (void)snprintf(labels[count], TEXT_BYTES, "cost than with Zeus");
        (void)snprintf(notes[count++], TEXT_BYTES, "which is %.1f" NBSP "%% above the oracle",
                       100 * zeus->mean_excess_over_oracle);
    }
    (void)snprintf(values[count], TEXT_BYTES, "%zu of %zu", hero->cases_above_default,
                   hero->case_count);
    (void)snprintf(labels[count], TEXT_BYTES, "cases dearer than the default");
    if (zeus != NULL && zeus != hero)
        (void)snprintf(notes[count], TEXT_BYTES, "with Zeus %zu", zeus->cases_above_default);
    else
        (void)snprintf(notes[count], TEXT_BYTES, "learning included");
    count++;
    struct wg_page_fact facts[4];
    for (size_t i = 0; i < count; i++)
        facts[i] = (struct wg_page_fact){values[i], labels[i], notes[i]};
    wg__page_facts(page, facts, count);
}

static void write_summary(struct wg_page *page, const struct wg_study *study, bool has_drift,
                          struct wg_arena *scratch)
{
    struct wg_table table;
    wg__page_heading(page, "Summary");
    wg__training_summary_table(study, &table);
    wg__page_table(page, &table, NULL);
    wg__table_fini(&table);
    wg__page_paragraph(page,
                       "Energy, time and cost are geometric means over the cases, against what the "
                       "user's default batch size at the largest power limit is expected to take. "
                       "The oracle is the fixed setting with the least expected cost, known "
                       "beforehand; nobody has it, all are measured by it.");
    wg__figure_mean_excess(page, study, !has_drift, scratch);
}

/* The job's numbers, and what of it can't be replayed. */
static void describe_world(struct wg_page *page, const struct wg_study_world *world)
{
    char left_out[TEXT_BYTES] = "";
    size_t length = 0;
    for (size_t i = 0; i < world->left_out_count && length < sizeof left_out; i++)
        length +=
            (size_t)snprintf(left_out + length, sizeof left_out - length, "%s%.10g",
                             i == 0 ? " Trained, but not measured on this GPU: batch size " : ", ",
                             world->left_out[i]);
    wg__page_paragraph(
        page,
        "Target: %s %g. %zu batch size%s from %.10g to %.10g, %zu power limit%s from %g to "
        "%g W.%s%s",
        world->metric, world->target_metric, world->arm_count, plural(world->arm_count),
        world->batch_size[0], world->batch_size[world->arm_count - 1], world->limit_count,
        plural(world->limit_count), world->limit_w[0], world->limit_w[world->limit_count - 1],
        left_out, world->left_out_count > 0 ? "." : "");
    if (!wg__default_reaches(world))
        wg__page_paragraph(page,
                           "The default never reaches the target of the job that this one turns "
                           "into: for each recurrence after that it is charged %d attempts in vain "
                           "and then the best setting.",
                           WG_ATTEMPTS_MAX);
}

static void write_world(struct wg_page *page, const struct wg_study *study, size_t index,
                        bool is_open, struct wg_arena *scratch)
{
    const struct wg_study_world *world = &study->worlds[index];
    const struct wg_study_summary *hero = find_hero(study);
    char text[TEXT_BYTES], saved[PHRASE_BYTES];
    (void)snprintf(text, sizeof text, "%s on %s", world->job, world->gpu);
    if (hero != NULL) {
        const struct wg_study_case *of =
            wg__study_case_at(study, index, (size_t)(hero - study->summaries));
        describe_change(saved, 1 - of->energy_j.mean / world->default_total.energy_j, "less",
                        "more");
        (void)snprintf(text, sizeof text,
                       "%s on %s: %s energy with %s, cost %.1f %% above the oracle", world->job,
                       world->gpu, saved, hero->policy, 100 * (of->cost_over_oracle.mean - 1));
    }
    wg__page_fold_begin(page, text, is_open);
    describe_world(page, world);
    wg__figures_world(page, study, index, scratch);
    wg__page_fold_end(page);
}

static void write_gpu(struct wg_page *page, const struct wg_study *study, const char *gpu,
                      bool is_first, struct wg_arena *scratch)
{
    struct wg_table table;
    wg__page_heading(page, gpu);
    wg__training_gpu_table(study, gpu, &table);
    wg__page_table(page, &table,
                   "Batch and limit: chosen most often in the last recurrence. Saved, over "
                   "oracle: against what default and oracle are expected to take, so those two are "
                   "off by luck. Regret: cost above the oracle's, in oracle runs.");
    wg__table_fini(&table);
    if (study->world_count > 1) { /* one case is what the summary shows */
        wg__page_subheading(page, "Cost above the oracle, job by job");
        wg__figures_excess(page, study, gpu, scratch);
    }
    wg__page_subheading(page, "Each job in detail");
    bool is_open = is_first;
    for (size_t i = 0; i < study->world_count; i++) {
        if (strcmp(study->worlds[i].gpu, gpu) != 0)
            continue;
        write_world(page, study, i, is_open, scratch);
        is_open = false;
        wg__arena_reset(scratch);
    }
}

/* The rules of the replay, in words. */
static void write_setup(struct wg_page *page, const struct wg_study *study,
                        const struct wg_study_request *request)
{
    const struct wg_training_rules *rules = &request->rules;
    wg__page_heading(page, "Set-up");
    wg__page_paragraph(
        page,
        "Each job recurs %zu time%s, with %zu seed%s (from %llu on). Each attempt is "
        "one of the recorded training runs, drawn by chance; its energy and time are "
        "those measured at its batch size and power limit. An attempt that fails or "
        "is stopped is paid for, and the recurrence goes on until the target is "
        "reached.",
        study->recurrences, plural(study->recurrences), study->seeds, plural(study->seeds),
        (unsigned long long)request->first_seed);
    wg__page_paragraph(
        page,
        "Cost = %g x energy + %g x largest power limit x time (eta %g). Zeus stops a "
        "run at %g times the least cost so far.",
        rules->eta, 1 - rules->eta, rules->eta, request->beta);
    if (rules->charge == WG_CHARGE_EPOCH)
        wg__page_paragraph(page, "Profiling a new batch size is charged as its first epoch at the "
                                 "mean over all power limits.");
    else
        wg__page_paragraph(page,
                           "Profiling a new batch size is charged as %g s per power limit that "
                           "is really measured.",
                           rules->probe_s);
    if (rules->concurrency > 1)
        wg__page_paragraph(page, "On average %g runs of a job are in flight at once.",
                           rules->concurrency);
    if (request->window > 0)
        wg__page_paragraph(page, "Only the last %u observations of each batch size count.",
                           request->window);
    if (request->drift_job != NULL)
        wg__page_paragraph(
            page,
            "After %zu recurrence%s each job turns into %s. Totals are of both jobs "
            "together, as are those of the default, which stays, and of the oracle, "
            "which takes the best setting of each job; the charts of energy and time "
            "show the new one.",
            rules->drift_at, plural(rules->drift_at), request->drift_job);
    if (request->warm_gpu != NULL)
        wg__page_paragraph(page,
                           "Policies that can have learned on %s before, over %zu recurrences.",
                           request->warm_gpu, request->warm_recurrences);
    if (!isnan(study->decision_us_p50))
        wg__page_paragraph(page, "One decision of %s took %.1f µs (median), %.1f µs (99 %%).",
                           study->slowest_policy, study->decision_us_p50, study->decision_us_p99);
}

static size_t count_gpus(const struct wg_study *study)
{
    size_t count = 0;
    for (size_t i = 0; i < study->world_count; i++)
        count += i == 0 || strcmp(study->worlds[i].gpu, study->worlds[i - 1].gpu) != 0;
    return count;
}

void wg__report_training(const struct wg_study *study, const struct wg_study_request *request,
                         const char *command, struct wg_buffer *out)
{
    struct wg_page page;
    struct wg_arena scratch;
    wg__arena_init(&scratch);
    char subtitle[TEXT_BYTES];
    const size_t gpus = count_gpus(study);
    (void)snprintf(subtitle, sizeof subtitle,
                   "%zu case%s on %zu GPU type%s, replayed on measured energy and time over %zu "
                   "recurrence%s",
                   study->world_count, plural(study->world_count), gpus, plural(gpus),
                   study->recurrences, plural(study->recurrences));
    wg__page_begin(&page, out, "Recurring training jobs: what the governor saves", subtitle);
    write_facts(&page, study);
    write_summary(&page, study, request->drift_job != NULL, &scratch);
    for (size_t i = 0; i < study->world_count; i++) {
        const char *gpu = study->worlds[i].gpu;
        if (i == 0 || strcmp(gpu, study->worlds[i - 1].gpu) != 0)
            write_gpu(&page, study, gpu, i == 0, &scratch);
    }
    write_setup(&page, study, request);
    wg__page_end(&page, command);
    wg__arena_fini(&scratch);
}
