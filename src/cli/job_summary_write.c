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

enum { HISTORY_IN_TEXT = 10, HISTORY_IN_PAGE = 100 };

struct member {
    const char *name;
    double value;
};

static void write_members(struct wg_json *json, const struct member *members, size_t count)
{
    for (size_t i = 0; i < count; i++)
        wg__json_member_double(json, members[i].name, members[i].value);
}

static const char *kind_name(const struct wg_job_entry *entry)
{
    return entry->is_survey ? "survey" : "run";
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
    wg__json_member_uint(json, "surveys", batch->surveys);
    wg__json_member_uint(json, "runs", batch->runs);
    wg__json_member_uint(json, "reached", batch->reached);
    wg__json_member_uint(json, "failed", batch->failed);
    write_members(json, means, sizeof means / sizeof means[0]);
    wg__json_member_double(json, "power_limit_w", batch->limit_w);
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

static void write_history_json(struct wg_json *json, const struct wg_job_summary *summary)
{
    wg__json_key(json, "history");
    wg__json_array(json);
    for (size_t i = 0; i < summary->entry_count; i++) {
        const struct wg_job_entry *entry = &summary->entries[i];
        const struct member amounts[] = {
            {"epochs", entry->epochs},     {"power_limit_w", entry->limit_w},
            {"energy_j", entry->energy_j}, {"time_s", entry->time_s},
            {"cost_j", entry->cost_j},     {"cumulative_cost_j", entry->paid_j}};
        wg__json_object(json);
        wg__json_member_uint(json, "run", (uint64_t)entry->run);
        wg__json_member_string(json, "kind", kind_name(entry));
        wg__json_member_uint(json, "recurrence", entry->recurrence);
        wg__json_member_uint(json, "attempt", entry->attempt);
        wg__json_member_uint(json, "batch_size", entry->batch_size);
        wg__json_member_string(json, "gpu_model", summary->shares[entry->share].model);
        wg__json_member_uint(json, "gpu_count", summary->shares[entry->share].count);
        wg__json_member_string(json, "state", wg__run_state_name(entry->state));
        wg__json_member_bool(json, "completes", entry->completes);
        write_members(json, amounts, sizeof amounts / sizeof amounts[0]);
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
    write_history_json(&json, summary);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}

static void joules_cell(struct wg_table *table, double energy_j)
{
    char text[WG_QUANTITY_TEXT_SIZE];
    wg__joules_text(text, energy_j);
    wg__table_cell(table, "%s", isnan(energy_j) ? "-" : text);
}

static void limit_cell(struct wg_table *table, double limit_w)
{
    char text[WG_QUANTITY_TEXT_SIZE];
    wg__knob_text(text, WG_KNOB_POWER_LIMIT, limit_w);
    wg__table_cell(table, "%s", isnan(limit_w) ? "-" : text);
}

static const struct wg_table_column columns[] = {
    {"Batch", WG_ALIGN_RIGHT},     {"Runs", WG_ALIGN_RIGHT},         {"Surveys", WG_ALIGN_RIGHT},
    {"Reached", WG_ALIGN_RIGHT},   {"Epochs", WG_ALIGN_RIGHT},       {"Limit", WG_ALIGN_RIGHT},
    {"Mean cost", WG_ALIGN_RIGHT}, {"Expected", WG_ALIGN_RIGHT},     {"80 % from", WG_ALIGN_RIGHT},
    {"to", WG_ALIGN_RIGHT},        {"With retries", WG_ALIGN_RIGHT},
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
        wg__table_cell(table, "%u", batch->surveys);
        wg__table_cell(table, "%u", batch->reached);
        if (batch->reached > 0)
            wg__table_cell(table, "%.1f", batch->epochs / n);
        else
            wg__table_cell(table, "-");
        limit_cell(table, batch->limit_w);
        joules_cell(table, batch->cost_j / n);
        joules_cell(table, belief->cost_j);
        joules_cell(table, belief->low_j);
        joules_cell(table, belief->high_j);
        joules_cell(table, belief->recurrence_j);
    }
}

/* What the marks of a GPU type's table mean. The bold one need not be the least of its column: a
 * batch size that no run has tried may promise less. */
static void write_legend(const struct wg_job_summary *summary, const struct wg_job_share *share,
                         struct wg_buffer *out)
{
    wg__buffer_puts(out, "* the default");
    if (share->best >= summary->job.batch_count)
        return;
    unsigned reached = 0;
    for (size_t i = 0; i < summary->share_count; i++)
        reached += summary->shares[i].batch[share->best].reached;
    wg__buffer_printf(out, "; %u stands out: ", summary->job.batch_size[share->best]);
    if (!share->has_belief[share->best] || reached == 0)
        wg__buffer_puts(out, "the policy's choice when it tries nothing new");
    else
        wg__buffer_printf(out, "of those that have reached the target, the one with the %s",
                          isnan(share->belief[share->best].recurrence_j)
                              ? "fewest expected epochs (on other GPUs; no cost is known here)"
                              : "least cost with retries");
}

static const struct wg_table_column history_columns[] = {
    {"Run", WG_ALIGN_RIGHT},    {"Recurrence", WG_ALIGN_RIGHT}, {"Attempt", WG_ALIGN_RIGHT},
    {"Kind", WG_ALIGN_LEFT},    {"Batch", WG_ALIGN_RIGHT},      {"State", WG_ALIGN_LEFT},
    {"Epochs", WG_ALIGN_RIGHT}, {"Limit", WG_ALIGN_RIGHT},      {"Energy", WG_ALIGN_RIGHT},
    {"Time", WG_ALIGN_RIGHT},   {"Cost", WG_ALIGN_RIGHT},       {"GPUs", WG_ALIGN_LEFT},
};
enum { HISTORY_COLUMNS = sizeof history_columns / sizeof history_columns[0] };

/* The newest runs, at most `most`, with the newest on top. The caller ends the table. */
static void make_history(struct wg_table *table, const struct wg_job_summary *summary, size_t most)
{
    const bool has_gpus = summary->share_count > 1; /* the last column */
    wg__table_init(table, history_columns, HISTORY_COLUMNS - !has_gpus);
    for (size_t i = summary->entry_count; i > 0 && summary->entry_count - i < most; i--) {
        const struct wg_job_entry *entry = &summary->entries[i - 1];
        const struct wg_job_share *share = &summary->shares[entry->share];
        wg__table_cell(table, "%lld", (long long)entry->run);
        wg__table_cell(table, "%llu", (unsigned long long)entry->recurrence);
        wg__table_cell(table, "%u", entry->attempt);
        wg__table_cell(table, "%s", kind_name(entry));
        wg__table_cell(table, "%u", entry->batch_size);
        wg__table_cell(table, "%s", wg__run_state_name(entry->state));
        wg__table_cell(table, "%.*f", entry->is_survey ? 2 : 0, entry->epochs);
        limit_cell(table, entry->limit_w);
        joules_cell(table, entry->energy_j);
        if (isnan(entry->time_s))
            wg__table_cell(table, "-");
        else
            wg__table_cell(table, "%.1f s", entry->time_s);
        joules_cell(table, entry->cost_j);
        if (has_gpus)
            wg__table_cell(table, "%u x %s", share->count, share->model);
    }
}

/* "the newest 10 of 34 runs and surveys" */
static void write_history_title(const struct wg_job_summary *summary, size_t most,
                                struct wg_buffer *out)
{
    const size_t count = summary->entry_count;
    if (count > most)
        wg__buffer_printf(out, "the newest %zu of %zu runs and surveys", most, count);
    else
        wg__buffer_printf(out, "%zu %s", count,
                          count == 1 ? "run or survey" : "runs and surveys, the newest first");
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
        write_legend(summary, share, out);
        wg__buffer_puts(out, "\n");
    }
    if (summary->entry_count > 0) {
        struct wg_table table;
        wg__buffer_puts(out, "\n");
        write_history_title(summary, HISTORY_IN_TEXT, out);
        wg__buffer_puts(out, "\n");
        make_history(&table, summary, HISTORY_IN_TEXT);
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
    size_t count;
    double *recurrence, *batch_size, *paid_j, *default_j, *default_low_j, *default_high_j;
};

static bool make_series(const struct wg_job_summary *summary, struct series *out)
{
    const size_t n = (size_t)summary->completed;
    double *all = wg__alloc_zeroed(6 * n + 1, sizeof *all);
    if (all == NULL)
        return false;
    *out = (struct series){0, all, all + n, all + 2 * n, all + 3 * n, all + 4 * n, all + 5 * n};
    for (size_t i = 0; i < summary->entry_count; i++) {
        const struct wg_job_entry *entry = &summary->entries[i];
        if (!entry->completes)
            continue;
        const size_t at = out->count++;
        const double share = (double)out->count / (double)n;
        out->recurrence[at] = (double)out->count;
        out->batch_size[at] = entry->batch_size;
        out->paid_j[at] = entry->paid_j;
        out->default_j[at] = share * (summary->saved_j + summary->paid_j);
        out->default_low_j[at] = share * (summary->saved_low_j + summary->paid_j);
        out->default_high_j[at] = share * (summary->saved_high_j + summary->paid_j);
    }
    return true;
}

static void write_course(struct wg_page *page, const struct series *series)
{
    const size_t n = series->count;
    const struct wg_plot_series costs[] = {{.label = "95 % of it",
                                            .mark = WG_PLOT_BAND,
                                            .color = WG_PLOT_GREY,
                                            .x = series->recurrence,
                                            .y = series->default_high_j,
                                            .y_low = series->default_low_j,
                                            .count = n},
                                           {.label = "paid",
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
                                 .series_count = 3};
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
    wg__page_figure(page, &cost,
                    "All that was paid, and what the default would have cost with its interval of "
                    "95 %: the difference was saved.");
    wg__page_figure(page, &choice, "One point a recurrence.");
}

/* What is believed of each batch size on a GPU type, and what its runs cost. */
static void write_belief(struct wg_page *page, const struct wg_job_summary *summary,
                         const struct wg_job_share *share)
{
    double size[WG_STORE_BATCH_SIZES_MAX], cost_j[WG_STORE_BATCH_SIZES_MAX],
        low_j[WG_STORE_BATCH_SIZES_MAX], high_j[WG_STORE_BATCH_SIZES_MAX],
        mean_j[WG_STORE_BATCH_SIZES_MAX];
    const size_t n = summary->job.batch_count;
    bool is_known = false;
    for (size_t arm = 0; arm < n; arm++) {
        const struct wg_job_batch *batch = &share->batch[arm];
        const struct wg_batch_belief *belief = &share->belief[arm];
        const bool has_cost = share->has_belief[arm] && !isnan(belief->cost_j);
        size[arm] = summary->job.batch_size[arm];
        cost_j[arm] = has_cost ? belief->cost_j : (double)NAN;
        low_j[arm] = has_cost ? belief->low_j : (double)NAN;
        high_j[arm] = has_cost ? belief->high_j : (double)NAN;
        mean_j[arm] = batch->reached > 0 ? batch->cost_j / batch->reached : (double)NAN;
        is_known |= has_cost;
    }
    if (!is_known)
        return;
    const struct wg_plot_series series[] = {{.label = "80 %",
                                             .mark = WG_PLOT_BAND,
                                             .color = WG_PLOT_SKY,
                                             .x = size,
                                             .y = high_j,
                                             .y_low = low_j,
                                             .count = n},
                                            {.label = "expected",
                                             .mark = WG_PLOT_LINE,
                                             .color = WG_PLOT_BLUE,
                                             .x = size,
                                             .y = cost_j,
                                             .count = n},
                                            {.label = "mean of the runs",
                                             .mark = WG_PLOT_POINTS,
                                             .color = WG_PLOT_VERMILION,
                                             .x = size,
                                             .y = mean_j,
                                             .count = n}};
    char title[WG_STORE_TEXT_SIZE + 32];
    (void)snprintf(title, sizeof title, "Cost of a run on %u x %s", share->count, share->model);
    const struct wg_plot plot = {.title = title,
                                 .x = {.title = "Batch size", .scale = WG_PLOT_LOG2},
                                 .y = {.title = "Cost", .unit = "J", .from_zero = true},
                                 .series = series,
                                 .series_count = 3};
    wg__page_figure(page, &plot, "What a run that reaches the target is expected to cost.");
}

static void write_figures(struct wg_page *page, const struct wg_job_summary *summary)
{
    struct series series = {0};
    if (!make_series(summary, &series)) {
        page->out->failed = true;
        return;
    }
    wg__page_figures_begin(page);
    write_course(page, &series);
    for (size_t i = 0; i < summary->share_count; i++)
        write_belief(page, summary, &summary->shares[i]);
    wg__page_figures_end(page);
    wg__free(series.recurrence);
}

/* Ends both. */
static void write_table(struct wg_page *page, struct wg_table *table, struct wg_buffer *caption)
{
    wg__page_table(page, table, caption->failed ? NULL : caption->data);
    page->out->failed |= caption->failed;
    wg__table_fini(table);
    wg__buffer_fini(caption);
}

static void write_tables(struct wg_page *page, const struct wg_job_summary *summary)
{
    struct wg_table table;
    struct wg_buffer caption;
    for (size_t i = 0; i < summary->share_count; i++) {
        const struct wg_job_share *share = &summary->shares[i];
        wg__buffer_init(&caption);
        wg__buffer_printf(&caption, "%u x %s; ", share->count, share->model);
        write_legend(summary, share, &caption);
        wg__table_init(&table, columns, COLUMNS);
        fill_table(&table, summary, share);
        write_table(page, &table, &caption);
    }
    if (summary->entry_count == 0)
        return;
    wg__buffer_init(&caption);
    write_history_title(summary, HISTORY_IN_PAGE, &caption);
    make_history(&table, summary, HISTORY_IN_PAGE);
    write_table(page, &table, &caption);
}

void wg__job_summary_html(const struct wg_job_summary *summary, const char *command,
                          struct wg_buffer *out)
{
    struct wg_page page;
    struct wg_buffer text;
    char title[WG_STORE_TEXT_SIZE + 16];
    (void)snprintf(title, sizeof title, "Job %s", summary->job.name);
    wg__page_begin(&page, out, title, "What was learned over its recurrences");
    wg__buffer_init(&text);
    write_savings(summary, &text);
    if (!text.failed)
        wg__page_paragraph(&page, "%s", text.data);
    out->failed |= text.failed;
    wg__buffer_fini(&text);
    write_figures(&page, summary);
    write_tables(&page, summary);
    wg__page_end(&page, command);
}
