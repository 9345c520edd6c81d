/* SPDX-License-Identifier: MIT
 *
 * A job's summary as text, JSON and a page.
 *
 * Threads: one at a time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/number.h"
#include "cli/job_summary.h"
#include "cli/page.h"
#include "cli/plot.h"
#include "cli/quantity.h"
#include "cli/table.h"

struct member {
    const char *name;
    double value;
};

static void write_members(struct wg_json *json, const struct member *members, size_t count)
{
    for (size_t i = 0; i < count; i++)
        wg__json_member_double(json, members[i].name, members[i].value);
}

static void write_batch_json(struct wg_json *json, const struct wg_job_summary *summary,
                             const struct wg_job_share *share, size_t arm)
{
    const struct wg_job_batch *batch = &share->batch[arm];
    const struct wg_batch_belief *belief = &share->belief[arm];
    const double n = batch->reached > 0 ? batch->reached : (double)NAN;
    const struct member means[] = {{"mean_epochs", batch->epochs / n},
                                   {"mean_energy_j", batch->energy_j / n},
                                   {"mean_time_s", batch->time_s / n},
                                   {"mean_cost_j", batch->cost_j / n}};
    const struct member expected[] = {{"cost_j", belief->cost_j},
                                      {"cost_low_j", belief->low_j},
                                      {"cost_high_j", belief->high_j},
                                      {"epochs", belief->epochs},
                                      {"epochs_low", belief->epochs_low},
                                      {"epochs_high", belief->epochs_high},
                                      {"recurrence_cost_j", belief->recurrence_j}};
    wg__json_object(json);
    wg__json_member_uint(json, "batch_size", summary->job.batch_size[arm]);
    wg__json_member_uint(json, "runs", batch->runs);
    wg__json_member_uint(json, "reached", batch->reached);
    wg__json_member_uint(json, "failed", batch->failed);
    write_members(json, means, sizeof means / sizeof means[0]);
    wg__json_key(json, "expected");
    if (share->has_belief[arm]) {
        wg__json_object(json);
        write_members(json, expected, sizeof expected / sizeof expected[0]);
        wg__json_close(json);
    } else {
        wg__json_null(json);
    }
    wg__json_close(json);
}

static void write_shares_json(struct wg_json *json, const struct wg_job_summary *summary)
{
    wg__json_key(json, "gpus");
    wg__json_array(json);
    for (size_t i = 0; i < summary->share_count; i++) {
        const struct wg_job_share *share = &summary->shares[i];
        wg__json_object(json);
        wg__json_member_string(json, "gpu_model", share->model);
        wg__json_member_uint(json, "gpu_count", share->count);
        wg__json_key(json, "best_batch_size");
        if (share->best < summary->job.batch_count)
            wg__json_uint(json, summary->job.batch_size[share->best]);
        else
            wg__json_null(json);
        wg__json_member_double(json, "default_cost_j", share->default_j);
        wg__json_key(json, "batch_sizes");
        wg__json_array(json);
        for (size_t arm = 0; arm < summary->job.batch_count; arm++)
            write_batch_json(json, summary, share, arm);
        wg__json_close(json);
        wg__json_close(json);
    }
    wg__json_close(json);
}

void wg__job_summary_json(const struct wg_job_summary *summary, struct wg_buffer *out)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.job.show/1");
    wg__json_member_string(&json, "job", summary->job.name);
    wg__json_member_string(&json, "metric", summary->job.metric);
    wg__json_member_double(&json, "target", summary->job.target);
    wg__json_member_bool(&json, "higher_is_better", summary->job.higher_is_better);
    wg__json_member_uint(&json, "max_epochs", summary->job.max_epochs);
    wg__json_member_uint(&json, "default_batch_size", summary->job.default_batch);
    wg__json_member_string(&json, "objective", summary->job.objective);
    wg__json_member_string(&json, "policy", summary->job.policy);
    wg__json_member_uint(&json, "recurrences", summary->job.next_recurrence);
    wg__json_member_uint(&json, "completed", summary->completed);
    wg__json_member_uint(&json, "open_runs", summary->open);
    wg__json_member_uint(&json, "lost_runs", summary->crashed);
    wg__json_member_double(&json, "energy_j", summary->energy_j);
    wg__json_member_double(&json, "time_s", summary->time_s);
    wg__json_member_double(&json, "cost_j", summary->paid_j);
    wg__json_member_double(&json, "completed_cost_j", summary->completed_j);
    wg__json_member_double(&json, "saved_j", summary->saved_j);
    wg__json_member_double(&json, "saved_low_j", summary->saved_low_j);
    wg__json_member_double(&json, "saved_high_j", summary->saved_high_j);
    write_shares_json(&json, summary);
    wg__json_key(&json, "history");
    wg__json_array(&json);
    for (size_t i = 0; i < summary->point_count; i++) {
        wg__json_object(&json);
        wg__json_member_uint(&json, "batch_size", (uint64_t)summary->points[i].batch_size);
        wg__json_member_double(&json, "cumulative_cost_j", summary->points[i].paid_j);
        wg__json_close(&json);
    }
    wg__json_close(&json);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}

static void joules_cell(struct wg_table *table, double energy_j)
{
    char text[WG_QUANTITY_TEXT_SIZE];
    if (isnan(energy_j)) {
        wg__table_cell(table, "-");
        return;
    }
    wg__joules_text(text, energy_j);
    wg__table_cell(table, "%s", text);
}

static const struct wg_table_column columns[] = {
    {"Batch", WG_ALIGN_RIGHT},     {"Runs", WG_ALIGN_RIGHT},      {"Reached", WG_ALIGN_RIGHT},
    {"Epochs", WG_ALIGN_RIGHT},    {"Mean cost", WG_ALIGN_RIGHT}, {"Expected", WG_ALIGN_RIGHT},
    {"80 % from", WG_ALIGN_RIGHT}, {"to", WG_ALIGN_RIGHT},        {"With retries", WG_ALIGN_RIGHT},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void fill_table(struct wg_table *table, const struct wg_job_summary *summary,
                       const struct wg_job_share *share)
{
    for (size_t arm = 0; arm < summary->job.batch_count; arm++) {
        const struct wg_job_batch *batch = &share->batch[arm];
        const double n = batch->reached > 0 ? batch->reached : (double)NAN;
        const struct wg_batch_belief unknown = {
            .cost_j = NAN, .low_j = NAN, .high_j = NAN, .recurrence_j = NAN};
        const struct wg_batch_belief *belief =
            share->has_belief[arm] ? &share->belief[arm] : &unknown;
        wg__table_cell(table, "%u%s", summary->job.batch_size[arm],
                       summary->job.batch_size[arm] == summary->job.default_batch ? "*" : "");
        if (arm == share->best)
            wg__table_emphasize(table);
        wg__table_cell(table, "%u", batch->runs);
        wg__table_cell(table, "%u", batch->reached);
        if (batch->reached > 0)
            wg__table_cell(table, "%.1f", batch->epochs / n);
        else
            wg__table_cell(table, "-");
        joules_cell(table, batch->cost_j / n);
        joules_cell(table, belief->cost_j);
        joules_cell(table, belief->low_j);
        joules_cell(table, belief->high_j);
        joules_cell(table, belief->recurrence_j);
    }
}

static void write_savings(const struct wg_job_summary *summary, struct wg_buffer *out)
{
    char paid[WG_QUANTITY_TEXT_SIZE], in_vain[WG_QUANTITY_TEXT_SIZE], saved[WG_QUANTITY_TEXT_SIZE];
    char low[WG_QUANTITY_TEXT_SIZE], high[WG_QUANTITY_TEXT_SIZE];
    const uint64_t others = summary->job.next_recurrence - summary->completed;
    wg__joules_text(paid, summary->completed_j);
    wg__joules_text(in_vain, summary->paid_j - summary->completed_j);
    wg__joules_text(saved, summary->saved_j);
    wg__joules_text(low, summary->saved_low_j);
    wg__joules_text(high, summary->saved_high_j);
    wg__buffer_printf(out, "%llu %s reached the target and cost %s",
                      (unsigned long long)summary->completed,
                      summary->completed == 1 ? "recurrence" : "recurrences", paid);
    if (others > 0)
        wg__buffer_printf(out, "; %llu %s not (yet, or given up) and cost %s",
                          (unsigned long long)others, others == 1 ? "has" : "have", in_vain);
    if (isnan(summary->saved_j))
        wg__buffer_puts(out, "; what the default would have cost is not known yet.\n");
    else
        wg__buffer_printf(out, "; saved against the default: %s (95 %%: %s to %s).\n", saved, low,
                          high);
}

void wg__job_summary_text(const struct wg_job_summary *summary, bool with_color,
                          struct wg_buffer *out)
{
    char target[WG_DOUBLE_TEXT_SIZE];
    wg__format_double(target, summary->job.target);
    wg__buffer_printf(out, "job %s: %s%s%s within %u epochs, objective %s, policy %s\n",
                      summary->job.name, summary->job.metric,
                      summary->job.higher_is_better ? ">=" : "<=", target, summary->job.max_epochs,
                      summary->job.objective, summary->job.policy);
    for (size_t i = 0; i < summary->share_count; i++) {
        const struct wg_job_share *share = &summary->shares[i];
        struct wg_table table;
        wg__buffer_printf(out, "\n%u x %s\n", share->count, share->model);
        wg__table_init(&table, columns, COLUMNS);
        fill_table(&table, summary, share);
        wg__table_write(&table, with_color, out);
        wg__table_fini(&table);
    }
    wg__buffer_puts(out, "\n");
    write_savings(summary, out);
    if (summary->open > 0 || summary->crashed > 0)
        wg__buffer_printf(out, "%zu %s open; %u came to nothing (crashed, returned, expired).\n",
                          summary->open, summary->open == 1 ? "run is" : "runs are",
                          summary->crashed);
}

/* The numbers of a chart, one column each. */
struct series {
    double *recurrence, *batch_size, *paid_j, *default_j;
};

static bool make_series(const struct wg_job_summary *summary, struct series *out)
{
    const size_t n = summary->point_count;
    double *all = wg__alloc_zeroed(4 * n + 1, sizeof *all);
    if (all == NULL)
        return false;
    *out = (struct series){all, all + n, all + 2 * n, all + 3 * n};
    const double each_j = (summary->saved_j + summary->paid_j) / (double)summary->completed;
    for (size_t i = 0; i < n; i++) {
        out->recurrence[i] = summary->points[i].recurrence;
        out->batch_size[i] = summary->points[i].batch_size;
        out->paid_j[i] = summary->points[i].paid_j;
        out->default_j[i] = each_j * out->recurrence[i];
    }
    return true;
}

static void write_figures(struct wg_page *page, const struct wg_job_summary *summary,
                          const struct series *series)
{
    const size_t n = summary->point_count;
    const struct wg_plot_series costs[] = {{.label = "paid",
                                            .mark = WG_PLOT_STEP,
                                            .color = WG_PLOT_BLUE,
                                            .x = series->recurrence,
                                            .y = series->paid_j,
                                            .count = n},
                                           {.label = "the default",
                                            .mark = WG_PLOT_DASHED,
                                            .color = WG_PLOT_GREY,
                                            .x = series->recurrence,
                                            .y = series->default_j,
                                            .count = n}};
    const struct wg_plot cost = {.title = "Cumulative cost",
                                 .x = {.title = "Recurrence", .is_whole = true},
                                 .y = {.title = "Cost", .unit = "J", .from_zero = true},
                                 .series = costs,
                                 .series_count = 2};
    const struct wg_plot_series choices = {.mark = WG_PLOT_POINTS,
                                           .color = WG_PLOT_VERMILION,
                                           .x = series->recurrence,
                                           .y = series->batch_size,
                                           .count = n};
    const struct wg_plot choice = {.title = "Batch size that reached the target",
                                   .x = {.title = "Recurrence", .is_whole = true},
                                   .y = {.title = "Batch size", .scale = WG_PLOT_LOG2},
                                   .series = &choices,
                                   .series_count = 1,
                                   .without_legend = true};
    wg__page_figures_begin(page);
    wg__page_figure(page, &cost, "All that was paid, and what the default would have cost.");
    wg__page_figure(page, &choice, "One point a recurrence.");
    wg__page_figures_end(page);
}

void wg__job_summary_html(const struct wg_job_summary *summary, const char *command,
                          struct wg_buffer *out)
{
    struct wg_page page;
    struct wg_buffer text;
    struct series series = {0};
    char title[WG_STORE_TEXT_SIZE + 16];
    (void)snprintf(title, sizeof title, "Job %s", summary->job.name);
    wg__page_begin(&page, out, title, "What was learned over its recurrences");
    wg__buffer_init(&text);
    write_savings(summary, &text);
    if (!text.failed)
        wg__page_paragraph(&page, "%s", text.data);
    wg__buffer_fini(&text);
    if (make_series(summary, &series))
        write_figures(&page, summary, &series);
    else
        out->failed = true;
    wg__free(series.recurrence);
    for (size_t i = 0; i < summary->share_count; i++) {
        struct wg_table table;
        char caption[WG_STORE_TEXT_SIZE + 64];
        (void)snprintf(caption, sizeof caption, "%u x %s; * is the default",
                       summary->shares[i].count, summary->shares[i].model);
        wg__table_init(&table, columns, COLUMNS);
        fill_table(&table, summary, &summary->shares[i]);
        wg__page_table(&page, &table, caption);
        wg__table_fini(&table);
    }
    wg__page_end(&page, command);
}
