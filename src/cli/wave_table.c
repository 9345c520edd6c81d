/* SPDX-License-Identifier: MIT
 *
 * Layers as rows of tables, and what is said of them: see wave_report.h.
 */
#include <math.h>
#include <stdio.h>

#include "base/buffer.h"
#include "cli/table.h"
#include "cli/wave_report.h"

enum { NAME_COLUMNS = 30, WASTEFUL_SHOWN = 8 };

/* -- Limits ----------------------------------------------------------------------------------- */

bool wg__wave_is_wasteful(const struct wg_wave_report *report, const struct wg_wave_row *row)
{
    return (row->has_gemm || !row->is_predicted) && row->waste > report->max_waste;
}

bool wg__wave_is_wasteful_in_total(const struct wg_wave_report *report,
                                   const struct wg_wave_analysis *analysis)
{
    return analysis->total.waste > report->max_total_waste;
}

static void name_wasteful(const struct wg_wave_report *report,
                          const struct wg_wave_analysis *analysis, struct wg_buffer *out)
{
    size_t count = 0, shown = 0;
    for (size_t i = 0; i < analysis->count; i++)
        count += wg__wave_is_wasteful(report, &analysis->rows[i]);
    if (count == 0)
        return;
    wg__buffer_printf(out, "%s%zu layer%s more than %g %% on %s:", out->length > 0 ? "; " : "",
                      count, count == 1 ? " wastes" : "s waste", 100 * report->max_waste,
                      analysis->gpu->id);
    for (size_t i = 0; i < analysis->count && shown < WASTEFUL_SHOWN; i++)
        if (wg__wave_is_wasteful(report, &analysis->rows[i]))
            wg__buffer_printf(out, "%s %s (%.1f %%)", shown++ > 0 ? "," : "",
                              analysis->rows[i].layer->name, 100 * analysis->rows[i].waste);
    if (shown < count)
        wg__buffer_puts(out, ", ...");
}

bool wg__wave_waste_text(const struct wg_wave_report *report, struct wg_buffer *out)
{
    for (size_t g = 0; g < report->count; g++) {
        const struct wg_wave_analysis *analysis = &report->analyses[g];
        name_wasteful(report, analysis, out);
        if (wg__wave_is_wasteful_in_total(report, analysis))
            wg__buffer_printf(out, "%sthe layers together waste %.1f %% on %s, more than %g %%",
                              out->length > 0 ? "; " : "", 100 * analysis->total.waste,
                              analysis->gpu->id, 100 * report->max_total_waste);
    }
    return out->length > 0;
}

/* -- Batches ---------------------------------------------------------------------------------- */

const struct wg_batch_point *wg__wave_own_batch(const struct wg_wave_analysis *analysis)
{
    const size_t count = analysis->point_count;
    const struct wg_batch_point *points = analysis->points;
    if (count == 0 || analysis->samples < points[0].batch ||
        analysis->samples > points[count - 1].batch)
        return NULL;
    return &points[analysis->samples - points[0].batch];
}

/* -- Trust ------------------------------------------------------------------------------------ */

static bool say_foreign(const struct wg_wave_report *report,
                        const struct wg_wave_analysis *analysis, struct wg_buffer *out)
{
    const struct wg_profile *profile = report->model->profile;
    if (profile == NULL || profile->sms == 0 || profile->sms == analysis->gpu->sms)
        return false;
    wg__buffer_printf(out,
                      "the profile was taken on %u SMs, not on %u: kernels and grids are those of "
                      "that GPU",
                      profile->sms, analysis->gpu->sms);
    return true;
}

static bool say_transferred(const struct wg_wave_report *report,
                            const struct wg_wave_analysis *analysis, struct wg_buffer *out)
{
    (void)report;
    const double share = analysis->total.origin_s[WG_ORIGIN_TRANSFERRED] / analysis->total.time_s;
    if (!(share > 0))
        return false;
    wg__buffer_printf(
        out,
        "%.0f %% of the time is carried over from other GPUs or kinds of layers by data "
        "sheet: trust the waves more than the times, or calibrate (wattgov wave "
        "calibrate)",
        100 * share);
    return true;
}

static bool say_hopper(const struct wg_wave_report *report, const struct wg_wave_analysis *analysis,
                       struct wg_buffer *out)
{
    (void)report;
    if (analysis->gpu->cc_major != 9)
        return false;
    wg__buffer_puts(out, "on Hopper the library's choice of kernels hides many steps: single steps "
                         "that are shown here may not be there, and others may");
    return true;
}

static bool say_unpredicted(const struct wg_wave_report *report,
                            const struct wg_wave_analysis *analysis, struct wg_buffer *out)
{
    (void)report;
    const size_t count = analysis->total.unpredicted;
    if (count == 0)
        return false;
    wg__buffer_printf(out, "%zu layer%s no prediction and %s in no total", count,
                      count == 1 ? " has" : "s have", count == 1 ? "is" : "are");
    return true;
}

static bool say_left_out(const struct wg_wave_report *report,
                         const struct wg_wave_analysis *analysis, struct wg_buffer *out)
{
    (void)analysis;
    return wg__wave_left_out_text(report->model, out);
}

static bool say_launch(const struct wg_wave_report *report, const struct wg_wave_analysis *analysis,
                       struct wg_buffer *out)
{
    (void)report;
    const double share = analysis->total.bound_s[WG_BOUND_LAUNCH] / analysis->total.time_s;
    if (!(share > 0.2))
        return false;
    wg__buffer_printf(out,
                      "%.0f %% of the time is launching: layers are taken one by one, as they were "
                      "measured; a CUDA graph or kernels in flight hide it",
                      100 * share);
    return true;
}

bool wg__wave_caveat(const struct wg_wave_report *report, const struct wg_wave_analysis *analysis,
                     size_t index, struct wg_buffer *out)
{
    static bool (*const say[])(const struct wg_wave_report *, const struct wg_wave_analysis *,
                               struct wg_buffer *) = {say_foreign,     say_transferred, say_hopper,
                                                      say_unpredicted, say_left_out,    say_launch};
    size_t said = 0;
    for (size_t i = 0; i < sizeof say / sizeof *say; i++) {
        struct wg_buffer text;
        wg__buffer_init(&text);
        const bool applies = say[i](report, analysis, &text);
        const bool is_it = applies && said++ == index;
        out->failed |= text.failed;
        if (is_it && !text.failed)
            wg__buffer_puts(out, text.data);
        wg__buffer_fini(&text);
        if (is_it)
            return true;
    }
    return false;
}

/* -- Cells ------------------------------------------------------------------------------------ */

/* "256x128", "256x128/4", "w256x128", "-" */
static void put_tile(char out[static WG_WAVE_CELL_SIZE], const struct wg_prediction *of)
{
    const struct wg_kernel *kernel = &of->kernel;
    if (kernel->tile_m == 0)
        (void)snprintf(out, WG_WAVE_CELL_SIZE, "-");
    else if (kernel->split_k > 1)
        (void)snprintf(out, WG_WAVE_CELL_SIZE, "%ux%u/%u", kernel->tile_m, kernel->tile_n,
                       kernel->split_k);
    else
        (void)snprintf(out, WG_WAVE_CELL_SIZE, "%s%ux%u", of->is_winograd ? "w" : "",
                       kernel->tile_m, kernel->tile_n);
}

/* "12544x64x147", "96*512x512x64", "-" */
static void put_gemm(char out[static WG_WAVE_CELL_SIZE], const struct wg_wave_row *row)
{
    const struct wg_gemm *gemm = &row->gemm;
    char batch[32] = "";
    if (!row->has_gemm) {
        (void)snprintf(out, WG_WAVE_CELL_SIZE, "-");
        return;
    }
    if (gemm->batch > 1)
        (void)snprintf(batch, sizeof batch, "%llu*", (unsigned long long)gemm->batch);
    (void)snprintf(out, WG_WAVE_CELL_SIZE, "%s%llux%llux%llu", batch, (unsigned long long)gemm->m,
                   (unsigned long long)gemm->n, (unsigned long long)gemm->k);
}

void wg__wave_name_cell(char out[static WG_WAVE_CELL_SIZE], const char *name)
{
    size_t length = 0;
    for (const char *at = name; *at != '\0'; at++)
        length += ((unsigned char)*at & 0xC0) != 0x80;
    const char *from = name;
    for (size_t skip = length > NAME_COLUMNS ? length - NAME_COLUMNS + 2 : 0; skip > 0; skip--)
        do
            from++;
        while (((unsigned char)*from & 0xC0) == 0x80);
    (void)snprintf(out, WG_WAVE_CELL_SIZE, "%s%s", from != name ? ".." : "", from);
}

static void add_name(struct wg_table *table, const char *name)
{
    char cell[WG_WAVE_CELL_SIZE];
    wg__wave_name_cell(cell, name);
    wg__table_cell(table, "%s", cell);
}

static void add_number(struct wg_table *table, double value, int digits)
{
    if (isfinite(value))
        wg__table_cell(table, "%.*f", digits, value);
    else
        wg__table_cell(table, "-");
}

static void add_microseconds(struct wg_table *table, double value_s)
{
    add_number(table, 1e6 * value_s, value_s >= 1e-3 ? 0 : 1);
}

/* -- Tables ----------------------------------------------------------------------------------- */

static bool is_measured(const struct wg_wave_analysis *analysis)
{
    return isfinite(analysis->total.measured_s);
}

/* All but the name. */
static void add_row(struct wg_table *table, const struct wg_wave_row *row, bool with_measured)
{
    const struct wg_prediction *of = &row->prediction;
    char cell[WG_WAVE_CELL_SIZE];
    put_gemm(cell, row);
    wg__table_cell(table, "%s", cell);
    put_tile(cell, of);
    wg__table_cell(table, "%s", cell);
    if (of->blocks > 0)
        wg__table_cell(table, "%llu", (unsigned long long)of->blocks);
    else
        wg__table_cell(table, "-");
    add_number(table, of->blocks > 0 ? of->waves : (double)NAN, 2);
    add_number(table, of->blocks > 0 ? 100 * of->tile_efficiency : (double)NAN, 0);
    add_number(table, of->blocks > 0 ? 100 * of->wave_efficiency : (double)NAN, 0);
    add_microseconds(table, of->time_s);
    if (isfinite(of->low_s) && isfinite(of->high_s))
        wg__table_cell(table, "%+.0f %+.0f", 100 * (of->low_s / of->time_s - 1),
                       100 * (of->high_s / of->time_s - 1));
    else
        wg__table_cell(table, "-");
    add_microseconds(table, row->is_predicted ? of->tail_s : row->measured_tail_s);
    wg__table_cell(table, "%s", row->is_predicted ? wg__bound_name(of->bound) : "-");
    if (with_measured)
        add_microseconds(table, row->measured_s);
}

void wg__wave_layer_table(const struct wg_wave_analysis *analysis, const struct wg_wave_kind *kinds,
                          size_t count, struct wg_table *out)
{
#define COLUMNS                                                                                    \
    {"m x n x k", WG_ALIGN_RIGHT}, {"tile", WG_ALIGN_RIGHT}, {"blocks", WG_ALIGN_RIGHT},           \
        {"waves", WG_ALIGN_RIGHT}, {"tile %", WG_ALIGN_RIGHT}, {"wave %", WG_ALIGN_RIGHT},         \
        {"time us", WG_ALIGN_RIGHT}, {"range %", WG_ALIGN_RIGHT}, {"tail us", WG_ALIGN_RIGHT},     \
        {"bound", WG_ALIGN_LEFT},                                                                  \
    {                                                                                              \
        "measured us", WG_ALIGN_RIGHT                                                              \
    }
    static const struct wg_table_column of_layers[] = {{"layer", WG_ALIGN_LEFT}, COLUMNS};
    static const struct wg_table_column of_kinds[] = {
        {"layer", WG_ALIGN_LEFT}, {"alike", WG_ALIGN_RIGHT}, COLUMNS};
#undef COLUMNS
    const bool with_measured = is_measured(analysis);
    const size_t hidden = with_measured ? 0 : 1;
    if (kinds != NULL)
        wg__table_init(out, of_kinds, sizeof of_kinds / sizeof *of_kinds - hidden);
    else
        wg__table_init(out, of_layers, sizeof of_layers / sizeof *of_layers - hidden);
    for (size_t i = 0; i < count; i++) {
        const struct wg_wave_row *row = &analysis->rows[kinds != NULL ? kinds[i].row : i];
        add_name(out, row->layer->name);
        if (kinds != NULL)
            wg__table_cell(out, "%zu", kinds[i].count);
        add_row(out, row, with_measured);
    }
}

/* How many times as many waves the first GPU needs: ceil(blocks / SMs) of both. */
static double wave_ratio(const struct wg_wave_row *row, unsigned first_sms, unsigned sms)
{
    const double blocks = (double)row->prediction.blocks;
    if (!row->is_predicted || row->prediction.blocks == 0)
        return NAN;
    return ceil(blocks / first_sms) / ceil(blocks / sms);
}

void wg__wave_compare_table(const struct wg_wave_report *report, struct wg_table *out)
{
    static const struct wg_table_column columns[] = {
        {"layer", WG_ALIGN_LEFT},      {"GPU", WG_ALIGN_LEFT},      {"waves", WG_ALIGN_RIGHT},
        {"time us", WG_ALIGN_RIGHT},   {"tail us", WG_ALIGN_RIGHT}, {"by waves", WG_ALIGN_RIGHT},
        {"predicted", WG_ALIGN_RIGHT},
    };
    const struct wg_wave_analysis *first = &report->analyses[0];
    wg__table_init(out, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < first->count; i++) {
        if (!first->rows[i].has_gemm)
            continue;
        for (size_t g = 0; g < report->count; g++) {
            const struct wg_wave_row *row = &report->analyses[g].rows[i];
            if (g == 0)
                add_name(out, row->layer->name);
            else
                wg__table_cell(out, " ");
            wg__table_cell(out, "%s", report->analyses[g].gpu->id);
            add_number(out, row->prediction.waves, 2);
            add_microseconds(out, row->prediction.time_s);
            add_microseconds(out, row->prediction.tail_s);
            add_number(
                out, wave_ratio(&first->rows[i], first->gpu->sms, report->analyses[g].gpu->sms), 2);
            add_number(out, first->rows[i].prediction.time_s / row->prediction.time_s, 2);
        }
    }
}
