/* SPDX-License-Identifier: MIT
 *
 * A plan for people: as text and as a page; see wave_plan_report.h.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/front_plot.h"
#include "cli/markup.h"
#include "cli/page.h"
#include "cli/table.h"
#include "cli/wave_plan_report.h"
#include "cli/wave_widths.h"

enum { TEXT_SIZE = 160 };

static void width_table(const struct wg_wave_plan_report *report, struct wg_table *out)
{
    static const struct wg_table_column columns[] = {
        {"width", WG_ALIGN_LEFT},   {"layers", WG_ALIGN_RIGHT}, {"first", WG_ALIGN_LEFT},
        {"before", WG_ALIGN_RIGHT}, {"after", WG_ALIGN_RIGHT},  {"change", WG_ALIGN_RIGHT}};
    const struct wg_network *network = report->model->network;
    wg__table_init(out, columns, sizeof columns / sizeof *columns);
    for (size_t w = 0; w < network->width_count; w++) {
        if (network->widths[w].is_fixed)
            continue;
        const uint32_t before = report->before[w];
        const uint32_t after = report->plan.channels[w];
        const char *first = "-";
        size_t count = 0;
        for (size_t i = network->layer_count; i-- > 0;) {
            if (!wg__wave_makes_width(&network->layers[i], w))
                continue;
            first = network->layers[i].name;
            count++;
        }
        wg__table_cell(out, "%s", network->widths[w].name);
        wg__table_cell(out, "%zu", count);
        wg__table_cell(out, "%s", first);
        wg__table_cell(out, "%" PRIu32, before);
        wg__table_cell(out, "%" PRIu32, after);
        if (after == before)
            wg__table_cell(out, "-");
        else
            wg__table_cell(out, "%+.0f %%", 100 * ((double)after / before - 1));
        if (after != before)
            wg__table_emphasize(out);
    }
}

static void sum_table(const struct wg_wave_plan_report *report, struct wg_table *out)
{
    static const struct wg_table_column columns[] = {{"", WG_ALIGN_LEFT},
                                                     {"before", WG_ALIGN_RIGHT},
                                                     {"after", WG_ALIGN_RIGHT},
                                                     {"change", WG_ALIGN_RIGHT}};
    const struct wg_plan *plan = &report->plan;
    const struct {
        const char *name, *unit;
        double before, after;
    } rows[] = {{"predicted time", "ms", 1e3 * plan->before_s, 1e3 * plan->time_s},
                {"parameters", "M", 1e-6 * plan->before_parameters, 1e-6 * plan->parameters},
                {"operations", "GFLOP", 1e-9 * plan->before_flops, 1e-9 * plan->flops}};
    wg__table_init(out, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wg__table_cell(out, "%s", rows[i].name);
        wg__table_cell(out, "%.4g %s", rows[i].before, rows[i].unit);
        wg__table_cell(out, "%.4g %s", rows[i].after, rows[i].unit);
        wg__table_cell(out, "%+.1f %%", 100 * (rows[i].after / rows[i].before - 1));
    }
}

static void proof_text(const struct wg_plan *plan, char out[static TEXT_SIZE])
{
    if (plan->is_optimal)
        (void)snprintf(out, TEXT_SIZE, "Proven: no choice among the candidates is better.");
    else if (isfinite(plan->gap))
        (void)snprintf(out, TEXT_SIZE,
                       "No choice among the candidates is better by more than %.2g %%.",
                       100 * plan->gap);
    else
        (void)snprintf(out, TEXT_SIZE,
                       "Planned in parts, since the whole does not fit into memory: others may be "
                       "better.");
}

static void range_text(const struct wg_wave_plan_report *report, char out[static TEXT_SIZE])
{
    struct wg_wave_plan_times before;
    struct wg_wave_plan_times after;
    wg__wave_plan_times(report, report->before, &before);
    wg__wave_plan_times(report, report->plan.channels, &after);
    (void)snprintf(out, TEXT_SIZE,
                   "Times are predicted: %.3g to %.3g ms before, %.3g to %.3g ms after (90 %%).",
                   1e3 * before.low_s, 1e3 * before.high_s, 1e3 * after.low_s, 1e3 * after.high_s);
}

static void head_text(const struct wg_wave_plan_report *report, struct wg_buffer *out)
{
    wg__append_plain(out, report->model->name);
    if (report->model->graph != NULL)
        wg__buffer_printf(out, " at batch %" PRIu64 ", %s", report->model->batch,
                          wg__dtype_name(report->model->dtype));
    wg__buffer_printf(out, ", on %s: %s", report->gpu->id, report->goal);
}

static double plan_limit_s(const struct wg_wave_plan_report *report)
{
    return fmax(report->opts->limit_s, report->plan.before_s);
}

static bool is_unchanged(const struct wg_wave_plan_report *report)
{
    const size_t size = report->plan.width_count * sizeof *report->before;
    return memcmp(report->before, report->plan.channels, size) == 0;
}

void wg__wave_plan_text(const struct wg_wave_plan_report *report, bool with_color,
                        struct wg_buffer *out)
{
    struct wg_table table;
    char text[TEXT_SIZE];
    head_text(report, out);
    wg__buffer_puts(out, "\n\n");
    width_table(report, &table);
    wg__table_write(&table, with_color, out);
    wg__table_fini(&table);
    wg__buffer_puts(out, "\n");
    sum_table(report, &table);
    wg__table_write(&table, with_color, out);
    wg__table_fini(&table);
    range_text(report, text);
    wg__buffer_printf(out, "\n%s\n", text);
    proof_text(&report->plan, text);
    wg__buffer_printf(out, "%s\n", text);
    if (report->opts->goal == WG_PLAN_GROW && is_unchanged(report))
        wg__buffer_printf(out,
                          "No width can grow at no cost; --limit allows some, as in --limit %.4gms "
                          "(1 %% more).\n",
                          1.01e3 * plan_limit_s(report));
    if (report->opts->importance != NULL)
        wg__buffer_puts(out, "Parameters and operations were weighed by --importance, and are "
                             "shown unweighed.\n");
}

static void write_facts(const struct wg_wave_plan_report *report, struct wg_page *page)
{
    const struct wg_plan *plan = &report->plan;
    char time[TEXT_SIZE];
    char parameters[TEXT_SIZE];
    char proof[TEXT_SIZE];
    char range[TEXT_SIZE];
    (void)snprintf(time, sizeof time, "%+.1f %%", 100 * (plan->time_s / plan->before_s - 1));
    (void)snprintf(parameters, sizeof parameters, "%+.1f %%",
                   100 * (plan->parameters / plan->before_parameters - 1));
    proof_text(plan, proof);
    range_text(report, range);
    const struct wg_page_fact facts[] = {{time, "predicted time", range},
                                         {parameters, "parameters", proof}};
    wg__page_facts(page, facts, 2);
}

static void write_front(const struct wg_wave_plan_report *report, struct wg_page *page)
{
    enum { POINTS_MAX = 64 };
    static const struct wg_front_group groups[] = {{"plans", WG_PLOT_BLUE},
                                                   {"before", WG_PLOT_ORANGE}};
    struct wg_front_point points[POINTS_MAX + 1];
    size_t count = 0;
    for (; count < report->front_count && count < POINTS_MAX; count++)
        points[count] = (struct wg_front_point){.figure = report->front[count].parameters,
                                                .cost = report->front[count].time_s,
                                                .counts = true,
                                                .label = "plan"};
    points[count++] = (struct wg_front_point){.figure = report->plan.before_parameters,
                                              .cost = report->plan.before_s,
                                              .group = 1,
                                              .label = "before"};
    const struct wg_front front = {.title = "Least time at so many parameters",
                                   .x = {.title = "Parameters"},
                                   .y = {.title = "Predicted time", .unit = "s"},
                                   .groups = groups,
                                   .group_count = 2,
                                   .points = points,
                                   .point_count = count,
                                   .bound = NAN,
                                   .is_minimum = true,
                                   .width = 640,
                                   .height = 360};
    wg__page_figures_begin(page);
    wg__front_figure(page, &front, "Each point is a plan; the last is the network as it is.");
    wg__page_figures_end(page);
}

void wg__wave_plan_page(const struct wg_wave_plan_report *report, struct wg_buffer *out)
{
    struct wg_page page;
    struct wg_table table;
    struct wg_buffer title;
    wg__buffer_init(&title);
    head_text(report, &title);
    wg__page_begin(&page, out, "wattgov wave plan", title.failed ? NULL : title.data);
    wg__buffer_fini(&title);
    write_facts(report, &page);
    sum_table(report, &table);
    wg__page_table(&page, &table, NULL);
    wg__table_fini(&table);
    if (report->front_count > 0) {
        wg__page_heading(&page, "The front");
        write_front(report, &page);
    }
    wg__page_heading(&page, "Widths");
    width_table(report, &table);
    wg__page_table(&page, &table, NULL);
    wg__table_fini(&table);
    wg__page_end(&page, report->command);
}
