/* SPDX-License-Identifier: MIT
 *
 * An analysis as a page: see wave_report.h.
 *
 * For each GPU the layers as bars, the tail pale at the end; the staircases of the layers with the
 * longest tails, latency against the number of filters around the present one; throughput against
 * the batch; and the table of all layers.
 */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/bar_chart.h"
#include "cli/page.h"
#include "cli/plot.h"
#include "cli/table.h"
#include "cli/wave_report.h"
#include "wave/staircase.h"

enum {
    BARS_MAX = 40,
    STAIRS_MAX = 9,
    STAIR_POINTS = 512, /* of one curve, at most */
    TEXT_SIZE = 64
};

#define NBSP "\xc2\xa0"

static void put_ms(char out[static TEXT_SIZE], double value_s)
{
    if (isfinite(value_s))
        (void)snprintf(out, TEXT_SIZE, "%.*f" NBSP "ms", value_s < 1e-2 ? 3 : 2, 1e3 * value_s);
    else
        (void)snprintf(out, TEXT_SIZE, "n/a");
}

static void write_facts(struct wg_page *page, const struct wg_wave_analysis *analysis)
{
    const struct wg_wave_total *total = &analysis->total;
    char time[TEXT_SIZE], range[2][TEXT_SIZE], between[2 * TEXT_SIZE + 8], tail[TEXT_SIZE];
    char share[TEXT_SIZE], idle[TEXT_SIZE], energy[TEXT_SIZE];
    put_ms(time, total->time_s);
    put_ms(range[0], total->low_s);
    put_ms(range[1], total->high_s);
    (void)snprintf(between, sizeof between, "%s .. %s", range[0], range[1]);
    put_ms(tail, total->tail_s);
    (void)snprintf(share, sizeof share, "%.1f" NBSP "%% of the time", 100 * total->waste);
    (void)snprintf(idle, sizeof idle, "%.3g" NBSP "SM" NBSP "s", total->idle_sm_s);
    if (isfinite(total->idle_most_j))
        (void)snprintf(energy, sizeof energy, "at most %.3g" NBSP "J", total->idle_most_j);
    else
        (void)snprintf(energy, sizeof energy, "joules not known");
    const struct wg_page_fact facts[] = {{time, "predicted", between},
                                         {tail, "recoverable: tails", share},
                                         {idle, "idle meanwhile", energy}};
    wg__page_facts(page, facts, sizeof facts / sizeof *facts);
}

/* -- Bars ------------------------------------------------------------------------------------- */

/* Rows by falling time; WG_EDATA is no matter: the caller has as many as there are. */
static size_t find_longest(const struct wg_wave_analysis *analysis, size_t *out, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < analysis->count; i++) {
        if (!analysis->rows[i].is_predicted)
            continue;
        size_t at = count < most ? count++ : most;
        if (at == most && !(analysis->rows[i].prediction.time_s >
                            analysis->rows[out[most - 1]].prediction.time_s))
            continue;
        at = at == most ? most - 1 : at;
        for (; at > 0 &&
               analysis->rows[out[at - 1]].prediction.time_s < analysis->rows[i].prediction.time_s;
             at--)
            out[at] = out[at - 1];
        out[at] = i;
    }
    return count;
}

static void write_bars(struct wg_page *page, const struct wg_wave_analysis *analysis)
{
    static const enum wg_plot_color colors[WG_BOUND_COUNT] = {WG_PLOT_BLUE, WG_PLOT_GREEN,
                                                              WG_PLOT_GREY};
    struct wg_bar bars[BARS_MAX];
    size_t rows[BARS_MAX] = {0};
    char texts[BARS_MAX][TEXT_SIZE], names[BARS_MAX][WG_WAVE_CELL_SIZE];
    const size_t count = find_longest(analysis, rows, BARS_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct wg_wave_row *row = &analysis->rows[rows[i]];
        const struct wg_prediction *of = &row->prediction;
        (void)snprintf(texts[i], sizeof texts[i], "%.1f" NBSP "us, %.0f" NBSP "%%",
                       1e6 * of->time_s, 100 * row->waste);
        wg__wave_name_cell(names[i], row->layer->name);
        bars[i] = (struct wg_bar){.label = names[i],
                                  .value = 1e6 * of->time_s,
                                  .low = NAN,
                                  .high = NAN,
                                  .text = texts[i],
                                  .color = colors[of->bound],
                                  .end_part = 1e6 * of->tail_s};
    }
    const struct wg_bar_chart chart = {.title = "Layers and their tails",
                                       .x_title = "predicted time (us)",
                                       .bars = bars,
                                       .bar_count = count,
                                       .width = 760};
    wg__page_heading(page, "Layers");
    wg__page_figures_begin(page);
    wg__page_bars(
        page, &chart,
        "The longest layers. Pale: the tail, and its share. Blue: bound by compute, green: "
        "by memory, grey: by launching.");
    wg__page_figures_end(page);
}

/* -- Staircases ------------------------------------------------------------------------------- */

struct stair {
    struct wg_sweep_point points[STAIR_POINTS];
    double x[STAIR_POINTS], y[STAIR_POINTS], low[STAIR_POINTS], high[STAIR_POINTS];
    size_t count;
    uint64_t present;
};

static uint64_t filters_of(const struct wg_layer *layer)
{
    return layer->kind == WG_LAYER_CONV ? layer->conv.filters : layer->gemm.n;
}

/* From about half to one and a half times the present number, through it. */
static bool sweep(struct stair *stair, const struct wg_kernel_model *model,
                  const struct wg_layer *layer, uint64_t samples)
{
    const uint64_t present = filters_of(layer);
    struct wg_error err;
    uint64_t step = layer->kind == WG_LAYER_CONV ? layer->conv.groups : 1;
    while (present / step > STAIR_POINTS - 2)
        step *= 2;
    const uint64_t half = present / 2 / step;
    if (present == 0 || half == 0 || present % step != 0)
        return false;
    stair->present = present;
    stair->count = (size_t)(2 * half + 1);
    if (wg__sweep(model, layer, WG_SWEEP_FILTERS, samples, present - half * step, step,
                  stair->count, stair->points, &err) != WG_OK)
        return false;
    for (size_t i = 0; i < stair->count; i++) {
        const struct wg_prediction *of = &stair->points[i].prediction;
        stair->x[i] = (double)stair->points[i].value;
        stair->y[i] = 1e6 * of->time_s;
        stair->low[i] = 1e6 * of->low_s;
        stair->high[i] = 1e6 * of->high_s;
    }
    return true;
}

static void draw_stair(struct wg_page *page, const struct stair *stair,
                       const struct wg_layer *layer, size_t alike)
{
    struct wg_stair found;
    struct wg_error err;
    char caption[256] = "", title[WG_WAVE_CELL_SIZE + 48];
    char name[WG_WAVE_CELL_SIZE];
    wg__wave_name_cell(name, layer->name);
    if (alike > 1)
        (void)snprintf(title, sizeof title, "%s, one of %zu alike", name, alike);
    else
        (void)snprintf(title, sizeof title, "%s", name);
    const struct wg_plot_series series[] = {{.label = "90 % range",
                                             .mark = WG_PLOT_BAND,
                                             .color = WG_PLOT_SKY,
                                             .x = stair->x,
                                             .y = stair->high,
                                             .y_low = stair->low,
                                             .count = stair->count},
                                            {.label = "predicted",
                                             .mark = WG_PLOT_LINE,
                                             .color = WG_PLOT_BLUE,
                                             .x = stair->x,
                                             .y = stair->y,
                                             .count = stair->count}};
    const struct wg_plot_reference present = {.label = "now",
                                              .value = (double)stair->present,
                                              .is_vertical = true,
                                              .color = WG_PLOT_VERMILION};
    const struct wg_plot plot = {
        .title = title,
        .x = {.title = layer->kind == WG_LAYER_CONV ? "filters" : "columns (n)", .is_whole = true},
        .y = {.title = "time (us)", .from_zero = true},
        .series = series,
        .series_count = sizeof series / sizeof *series,
        .references = &present,
        .reference_count = 1};
    if (wg__stair_find(stair->points, stair->count, stair->present, 0.01, &found, &err) == WG_OK)
        (void)snprintf(caption, sizeof caption,
                       "%llu now; free up to %llu; down to %llu saves %.1f us.",
                       (unsigned long long)stair->present, (unsigned long long)found.above,
                       (unsigned long long)found.below, 1e6 * (found.time_s - found.below_s));
    wg__page_figure(page, &plot, caption);
}

static void write_stairs(struct wg_page *page, const struct wg_wave_report *report, size_t gpu)
{
    const struct wg_wave_analysis *analysis = &report->analyses[gpu];
    struct wg_wave_kind *kinds = wg__alloc(analysis->count * sizeof *kinds);
    struct stair *stair = wg__alloc_zeroed(1, sizeof *stair);
    const uint64_t samples = report->model->batch > 0 ? report->model->batch : 1;
    if (kinds == NULL || stair == NULL) {
        page->out->failed = true;
        goto out;
    }
    const size_t kind_count = wg__wave_kinds(analysis, kinds);
    wg__page_heading(page, "Staircases of the layers with the longest tails");
    wg__page_figures_begin(page);
    size_t drawn = 0;
    for (size_t i = 0; i < kind_count && drawn < STAIRS_MAX; i++) {
        const struct wg_wave_row *row = &analysis->rows[kinds[i].row];
        if (!row->is_predicted || !row->has_gemm ||
            !sweep(stair, report->kernels[gpu], row->layer, samples))
            continue;
        draw_stair(page, stair, row->layer, kinds[i].count);
        drawn++;
    }
    wg__page_figures_end(page);
out:
    wg__free(kinds);
    wg__free(stair);
}

/* -- Batches ---------------------------------------------------------------------------------- */

static void write_batches(struct wg_page *page, const struct wg_wave_analysis *analysis)
{
    const size_t count = analysis->point_count;
    if (count < 2 || analysis->points[0].batch != 1)
        return;
    double *const values = wg__alloc_zeroed(2 * count, sizeof *values);
    if (values == NULL) {
        page->out->failed = true;
        return;
    }
    size_t best = 0;
    for (size_t i = 0; i < count; i++) {
        values[i] = analysis->points[i].per_s;
        values[count + i] = analysis->points[i].is_best ? analysis->points[i].per_s : (double)NAN;
        best += analysis->points[i].is_best != 0;
    }
    const struct wg_plot_series series[] = {{.label = "predicted",
                                             .mark = WG_PLOT_LINE,
                                             .color = WG_PLOT_BLUE,
                                             .y = values,
                                             .count = count},
                                            {.label = "best so far",
                                             .mark = WG_PLOT_POINTS,
                                             .color = WG_PLOT_VERMILION,
                                             .y = values + count,
                                             .count = best > 0 ? count : 0}};
    const struct wg_plot plot = {.title = "Throughput against the batch",
                                 .x = {.title = "batch", .is_whole = true},
                                 .y = {.title = "samples a second", .from_zero = true},
                                 .series = series,
                                 .series_count = sizeof series / sizeof *series,
                                 .width = 760,
                                 .height = 320};
    wg__page_heading(page, "Batches");
    wg__page_figures_begin(page);
    wg__page_figure(page, &plot, "Marked: more samples a second than at any smaller batch.");
    wg__page_figures_end(page);
    wg__free(values);
}

/* -- The page --------------------------------------------------------------------------------- */

static void write_notes(struct wg_page *page, const struct wg_wave_report *report,
                        const struct wg_wave_analysis *analysis)
{
    for (size_t i = 0;; i++) {
        struct wg_buffer text;
        wg__buffer_init(&text);
        const bool has = wg__wave_caveat(report, analysis, i, &text);
        page->out->failed |= text.failed;
        if (has && !text.failed)
            wg__page_paragraph(page, "Note: %s.", text.data);
        wg__buffer_fini(&text);
        if (!has)
            break;
    }
}

static void write_gpu(struct wg_page *page, const struct wg_wave_report *report, size_t gpu)
{
    const struct wg_wave_analysis *analysis = &report->analyses[gpu];
    struct wg_table table;
    if (report->count > 1)
        wg__page_heading(page, analysis->gpu->id);
    write_facts(page, analysis);
    write_notes(page, report, analysis);
    write_bars(page, analysis);
    write_stairs(page, report, gpu);
    write_batches(page, analysis);
    wg__page_fold_begin(page, "All layers", false);
    wg__wave_layer_table(analysis, NULL, analysis->count, &table);
    wg__page_table(page, &table, "In the order of execution");
    wg__table_fini(&table);
    wg__page_fold_end(page);
}

void wg__wave_page(const struct wg_wave_report *report, struct wg_buffer *out)
{
    struct wg_page page;
    struct wg_buffer subtitle;
    wg__buffer_init(&subtitle);
    wg__buffer_printf(&subtitle, "%s", report->model->name);
    if (report->model->batch > 0)
        wg__buffer_printf(&subtitle, " at batch %llu", (unsigned long long)report->model->batch);
    if (report->model->graph != NULL)
        wg__buffer_printf(&subtitle, ", %s", wg__dtype_name(report->model->dtype));
    for (size_t g = 0; g < report->count; g++)
        wg__buffer_printf(&subtitle, "%s%s", g == 0 ? ", on " : " and ",
                          report->analyses[g].gpu->id);
    wg__page_begin(&page, out, "Waves and tails", subtitle.failed ? NULL : subtitle.data);
    for (size_t g = 0; g < report->count; g++)
        write_gpu(&page, report, g);
    if (report->count > 1) {
        struct wg_table table;
        wg__page_heading(&page, "Side by side");
        wg__wave_compare_table(report, &table);
        wg__page_table(&page, &table, "Speed-up over the first: by whole waves, and as predicted");
        wg__table_fini(&table);
    }
    wg__page_end(&page, report->command);
    out->failed |= subtitle.failed;
    wg__buffer_fini(&subtitle);
}
