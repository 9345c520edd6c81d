/* SPDX-License-Identifier: MIT
 *
 * The HTML report of serving studies: see report_serving.h.
 *
 *     four numbers            what ours costs and gives
 *     per arrival law         violations and fine-tuning per policy, sizes of batches, the table,
 *                             what the load leaves
 *     timelines               the same ten seconds under each policy
 *     set-up, and the command that made it
 *
 * Threads: one at a time.
 */
#include "cli/report_serving.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "cli/bar_chart.h"
#include "cli/page.h"
#include "cli/plot.h"
#include "cli/serving_results.h"
#include "cli/table.h"

/* Between a number and its unit in running text. */
#define NBSP "\u00a0"

enum { TEXT_BYTES = 256, DESK_WIDTH = 760, PHONE_WIDTH = 360 };

struct report {
    struct wg_page page;
    const struct wg_serving_study *study;
    const struct wg_serving_study_request *request;
    struct wg_arena scratch;
};

static enum wg_plot_color color_of(const struct wg_serving_policy *policy)
{
    if (strcmp(policy->name, "floor") == 0)
        return WG_PLOT_GREEN;
    static const enum wg_plot_color colors[] = {[WG_FINETUNE_NONE] = WG_PLOT_GREY,
                                                [WG_FINETUNE_GREEDY] = WG_PLOT_PURPLE,
                                                [WG_FINETUNE_POLYTHROTTLE] = WG_PLOT_ORANGE,
                                                [WG_FINETUNE_WATTGOV] = WG_PLOT_BLUE};
    return colors[policy->finetune];
}

/* -- Facts ------------------------------------------------------------------------------------ */

/* The cell that the report is about: ours under the first law, else the first. */
static const struct wg_serving_cell *find_hero(const struct report *report)
{
    for (size_t i = 0; i < report->study->cell_count; i++) {
        const struct wg_serving_cell *cell = &report->study->cells[i];
        if (report->request->policies[cell->policy].finetune == WG_FINETUNE_WATTGOV)
            return cell;
    }
    return &report->study->cells[0];
}

static void put_number(char out[static TEXT_BYTES], double value, int digits, const char *unit)
{
    if (isfinite(value))
        (void)snprintf(out, TEXT_BYTES, "%.*f%s", digits, value, unit);
    else
        (void)snprintf(out, TEXT_BYTES, "-");
}

/* "none 1.7 %, greedy 37.9 %" of the other policies under the hero's law. */
static void put_others(const struct report *report, const struct wg_serving_cell *hero,
                       char out[static TEXT_BYTES])
{
    size_t length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < report->study->cell_count && length < TEXT_BYTES; i++) {
        const struct wg_serving_cell *cell = &report->study->cells[i];
        if (cell->law != hero->law || cell == hero)
            continue;
        char rate[TEXT_BYTES];
        put_number(rate, 100 * cell->violation_rate, 2, NBSP "%");
        length += (size_t)snprintf(out + length, TEXT_BYTES - length, "%s%s %.32s",
                                   length > 0 ? ", " : "",
                                   report->request->policies[cell->policy].name, rate);
    }
}

static void write_facts(struct report *report)
{
    const struct wg_serving_setup *base = &report->request->base;
    const struct wg_serving_cell *hero = find_hero(report);
    const char *name = report->request->policies[hero->policy].name;
    char values[4][TEXT_BYTES], labels[4][TEXT_BYTES], notes[4][TEXT_BYTES];
    struct wg_serving_figures of;
    wg__serving_figures(report->request, hero, &of);
    put_number(values[0], 100 * hero->violation_rate, 2, NBSP "%");
    (void)snprintf(labels[0], TEXT_BYTES, "of the requests are late or dropped under %s", name);
    put_others(report, hero, notes[0]);
    put_number(values[1], 1000 * hero->p99_s, 0, NBSP "ms");
    (void)snprintf(labels[1], TEXT_BYTES, "p99 latency of what is served");
    (void)snprintf(notes[1], TEXT_BYTES, "SLO %.0f" NBSP "ms%s; %.100s", 1000 * base->slo_s,
                   base->change_count > 0 ? " at first" : "", report->request->laws[hero->law]);
    put_number(values[2], 100 * of.gpu_share, 1, NBSP "%");
    (void)snprintf(labels[2], TEXT_BYTES, "of the GPU's time goes to fine-tuning");
    if (isfinite(of.finished_s))
        (void)snprintf(notes[2], TEXT_BYTES,
                       "the job is done after %.1f" NBSP "s (in %.0f" NBSP "%% of the runs)",
                       of.finished_s, 100 * of.finished_share);
    else
        (void)snprintf(notes[2], TEXT_BYTES, "%s",
                       base->has_job ? "the job is never done" : "there is no job");
    put_number(values[3], of.energy_per_request_j, 2, NBSP "J");
    (void)snprintf(labels[3], TEXT_BYTES, "a served request, idle power counted");
    put_number(notes[3], of.batch_mean, 2, " requests a batch");
    struct wg_page_fact facts[4];
    for (size_t i = 0; i < 4; i++)
        facts[i] = (struct wg_page_fact){values[i], labels[i], notes[i]};
    wg__page_facts(&report->page, facts, 4);
}

/* -- Charts ----------------------------------------------------------------------------------- */

enum chart { VIOLATIONS, SAMPLES, FINISHED };

static struct wg_bar bar_of(const struct report *report, const struct wg_serving_cell *cell,
                            enum chart chart, char text[static TEXT_BYTES])
{
    const struct wg_serving_policy *policy = &report->request->policies[cell->policy];
    struct wg_bar bar = {.label = policy->name,
                         .color = color_of(policy),
                         .low = (double)NAN,
                         .high = (double)NAN,
                         .text = text};
    struct wg_serving_figures of;
    wg__serving_figures(report->request, cell, &of);
    switch (chart) {
    case VIOLATIONS: {
        const double *interval = wg__serving_interval(cell);
        bar.value = 100 * cell->violation_rate;
        bar.low = 100 * interval[0];
        bar.high = 100 * interval[1];
        put_number(text, bar.value, 2, NBSP "%");
        break;
    }
    case SAMPLES:
        bar.value = of.samples_per_s;
        put_number(text, bar.value, 1, "");
        break;
    case FINISHED:
        bar.value = of.finished_s;
        put_number(text, bar.value, 1, NBSP "s");
        if (of.finished_share > 0 && of.finished_share < 1)
            (void)snprintf(text, TEXT_BYTES, "%.1f" NBSP "s (%.0f" NBSP "%%)", bar.value,
                           100 * of.finished_share);
        break;
    }
    return bar;
}

static void write_bars(struct report *report, size_t law, enum chart chart, const char *title,
                       const char *x_title, const char *caption)
{
    struct wg_bar bars[WG_SERVING_POLICIES_MAX];
    char texts[WG_SERVING_POLICIES_MAX][TEXT_BYTES];
    size_t count = 0;
    for (size_t i = 0; i < report->study->cell_count; i++) {
        const struct wg_serving_cell *cell = &report->study->cells[i];
        const bool tunes = report->request->policies[cell->policy].finetune != WG_FINETUNE_NONE;
        if (cell->law == law && (chart == VIOLATIONS || tunes)) {
            bars[count] = bar_of(report, cell, chart, texts[count]);
            count++;
        }
    }
    if (count == 0)
        return;
    const struct wg_bar_chart of = {
        .title = title, .x_title = x_title, .bars = bars, .bar_count = count};
    wg__page_bars(&report->page, &of, caption);
}

/* Share of the batches by their rows. */
static void write_batches(struct report *report, size_t law)
{
    const unsigned max_batch = report->request->base.profile->max_batch;
    struct wg_plot_series series[WG_SERVING_POLICIES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < report->study->cell_count; i++) {
        const struct wg_serving_cell *cell = &report->study->cells[i];
        if (cell->law != law)
            continue;
        double *shares = wg__arena_alloc(&report->scratch, max_batch, sizeof *shares);
        if (shares == NULL) {
            report->page.out->failed = true;
            return;
        }
        double total = 0;
        for (unsigned b = 1; b <= max_batch; b++)
            total += (double)cell->sum.batches[b];
        for (unsigned b = 1; b <= max_batch; b++)
            shares[b - 1] = total > 0 ? 100 * (double)cell->sum.batches[b] / total : (double)NAN;
        const struct wg_serving_policy *policy = &report->request->policies[cell->policy];
        series[count] = (struct wg_plot_series){
            .label = policy->name, .color = color_of(policy), .y = shares, .count = max_batch};
        count++;
    }
    const struct wg_plot plot = {.title = "Sizes of batches",
                                 .x = {.title = "rows", .is_whole = true},
                                 .y = {.title = "batches", .unit = "%", .from_zero = true},
                                 .series = series,
                                 .series_count = count};
    wg__page_figure(&report->page, &plot, "How many of the batches have so many rows.");
}

static void write_law(struct report *report, size_t law)
{
    const struct wg_serving_study_request *request = report->request;
    wg__page_heading(&report->page, request->laws[law]);
    wg__page_figures_begin(&report->page);
    write_bars(report, law, VIOLATIONS, "Late and dropped", "violations, %",
               "Of all requests; the interval of 95 % is that of the mean over runs.");
    if (request->base.has_job && request->base.job.iterations != UINT64_MAX)
        write_bars(report, law, FINISHED, "The fine-tuning job is done after", "time, s",
                   "Mean over the runs in which it was done; how many these were, if not all.");
    else if (request->base.has_job)
        write_bars(report, law, SAMPLES, "Fine-tuning", "samples a second",
                   "Rows of fine-tuning a second.");
    write_batches(report, law);
    wg__page_figures_end(&report->page);
    struct wg_table table;
    wg__serving_policy_table(report->study, request, law, &table);
    wg__page_table(
        &report->page, &table,
        "finished, samples/s, GPU share: of fine-tuning; the share is that "
        "of its work alone in the duration. J/request: inference and idle, a served request.");
    wg__table_fini(&table);
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__serving_room_text(report->study, request, law, &text);
    if (text.failed)
        report->page.out->failed = true;
    else if (text.length > 0)
        wg__page_paragraph(&report->page, "%s", text.data);
    wg__buffer_fini(&text);
}

/* -- The page --------------------------------------------------------------------------------- */

static void write_timelines(struct report *report, const struct wg_serving_timeline *timelines)
{
    const struct wg_serving_study_request *request = report->request;
    struct wg_buffer *out = report->page.out;
    const struct wg_serving_window window =
        wg__serving_timeline_window(timelines, request->policy_count, &request->base);
    wg__page_heading(&report->page, "The same seconds under each policy");
    wg__page_paragraph(&report->page,
                       "Seed %llu under %s, %.3g" NBSP "s to %.3g" NBSP
                       "s. Blocks are batches and steps of fine-tuning with their rows; above the "
                       "queue stands what was late (squares) and dropped (diamonds).",
                       (unsigned long long)request->first_seed, timelines[0].law, window.begin_s,
                       window.end_s);
    wg__page_figures_begin(&report->page);
    for (size_t i = 0; i < request->policy_count; i++) {
        wg__buffer_puts(out, "<figure class=\"wide\">\n<div class=\"desk\">\n");
        wg__serving_timeline_write(&timelines[i], &window, DESK_WIDTH, out);
        wg__buffer_puts(out, "</div>\n<div class=\"phone\">\n");
        wg__serving_timeline_write(&timelines[i], &window, PHONE_WIDTH, out);
        wg__buffer_puts(out, "</div>\n</figure>\n");
    }
    wg__page_figures_end(&report->page);
}

static void write_setup(struct report *report)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__serving_setup_text(report->request, &text);
    wg__page_heading(&report->page, "Set-up");
    if (text.failed)
        report->page.out->failed = true;
    else
        wg__page_paragraph(&report->page, "%s", text.data);
    wg__buffer_fini(&text);
    if (report->request->base.profile->source[0] != '\0')
        wg__page_paragraph(&report->page, "Profile: %s.", report->request->base.profile->source);
    wg__page_paragraph(&report->page,
                       "All policies meet the same requests and the same noise. floor is wattgov "
                       "without fine-tuning. %.2f million events and %.2f "
                       "million requests were simulated in a second of processor time.",
                       report->study->events_per_s / 1e6, report->study->requests_per_s / 1e6);
}

void wg__report_serving(const struct wg_serving_study *study,
                        const struct wg_serving_study_request *request,
                        const struct wg_serving_timeline *timelines, const char *command,
                        struct wg_buffer *out)
{
    struct report report = {.study = study, .request = request};
    wg__arena_init(&report.scratch);
    wg__page_begin(&report.page, out, "Serving and fine-tuning, simulated",
                   request->base.profile->name);
    write_facts(&report);
    for (size_t law = 0; law < request->law_count; law++)
        write_law(&report, law);
    write_timelines(&report, timelines);
    write_setup(&report);
    wg__page_end(&report.page, command);
    wg__arena_fini(&report.scratch);
}
