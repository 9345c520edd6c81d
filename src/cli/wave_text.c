/* SPDX-License-Identifier: MIT
 *
 * An analysis for people: see wave_report.h.
 */
#include <math.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/markup.h"
#include "cli/quantity.h"
#include "cli/table.h"
#include "cli/wave_report.h"

static void write_head(const struct wg_wave_report *report, const struct wg_wave_analysis *analysis,
                       struct wg_buffer *out)
{
    const struct wg_wave_model *model = report->model;
    wg__append_plain(out, model->name);
    if (model->batch > 0)
        wg__buffer_printf(out, " at batch %llu", (unsigned long long)model->batch);
    if (model->graph != NULL)
        wg__buffer_printf(out, ", %s", wg__dtype_name(model->dtype));
    wg__buffer_printf(out, ", on %s (%u SMs)\n\n", analysis->gpu->id, analysis->gpu->sms);
}

static void write_layers(const struct wg_wave_report *report,
                         const struct wg_wave_analysis *analysis, bool with_color,
                         struct wg_buffer *out)
{
    struct wg_wave_kind *kinds = wg__alloc(analysis->count * sizeof *kinds);
    struct wg_table table;
    if (kinds == NULL) {
        out->failed = true;
        return;
    }
    const bool is_all = report->kinds_shown == SIZE_MAX;
    const size_t kind_count = wg__wave_kinds(analysis, kinds);
    const size_t shown = report->kinds_shown < kind_count ? report->kinds_shown : kind_count;
    wg__wave_layer_table(analysis, is_all ? NULL : kinds, is_all ? analysis->count : shown, &table);
    wg__table_write(&table, with_color, out);
    wg__table_fini(&table);
    wg__free(kinds);
    if (!is_all)
        wg__buffer_printf(
            out,
            "The %zu of %zu kinds of layers with the longest tails together; --layers "
            "all shows all %zu layers in their order.\n",
            shown, kind_count, analysis->count);
    wg__buffer_puts(out, "\n");
}

static void write_ms(struct wg_buffer *out, double value_s)
{
    wg__buffer_printf(out, "%.*f ms", value_s < 1e-2 ? 3 : 2, 1e3 * value_s);
}

/* Tails cost from microjoules to kilojoules; the least may be a tenth of the most. */
static void write_joules(struct wg_buffer *out, double energy_j)
{
    char text[WG_QUANTITY_TEXT_SIZE];
    wg__joules_text(text, energy_j);
    if (energy_j < 10)
        wg__buffer_printf(out, energy_j < 1 ? "%.3g mJ" : "%.3g J",
                          energy_j < 1 ? 1e3 * energy_j : energy_j);
    else
        wg__buffer_puts(out, text);
}

static void write_energy(const struct wg_wave_total *total, struct wg_buffer *out)
{
    wg__buffer_printf(out, "idle meanwhile: %.3g SM-seconds", total->idle_sm_s);
    if (!isfinite(total->idle_most_j)) {
        wg__buffer_puts(out, "; joules n/a: the GPU's power is not known\n");
        return;
    }
    wg__buffer_puts(out, ", at most ");
    write_joules(out, total->idle_most_j);
    wg__buffer_puts(out, " (at the power limit)");
    if (isfinite(total->idle_least_j)) {
        wg__buffer_puts(out, ", at least ");
        write_joules(out, total->idle_least_j);
        wg__buffer_puts(out, " (idle power)");
    }
    wg__buffer_puts(out, "\n");
}

/* Launches of which only grid and time are known. */
static void write_launched(const struct wg_wave_total *total, struct wg_buffer *out)
{
    if (!(total->launched_s > 0))
        return;
    wg__buffer_puts(out, "launched: ");
    write_ms(out, total->launched_s);
    wg__buffer_puts(out, " were measured of kernels whose sizes are not known; ");
    write_ms(out, total->launched_tail_s);
    wg__buffer_printf(out, ", %.1f %%, are tails by their grids\n",
                      100 * total->launched_tail_s / total->launched_s);
}

static void write_predicted(const struct wg_wave_total *total, struct wg_buffer *out)
{
    wg__buffer_puts(out, "predicted: ");
    write_ms(out, total->time_s);
    wg__buffer_puts(out, " (");
    write_ms(out, total->low_s);
    wg__buffer_puts(out, " .. ");
    write_ms(out, total->high_s);
    wg__buffer_puts(out, ")");
    if (total->compared_s > 0) {
        wg__buffer_puts(out, "; measured: ");
        write_ms(out, total->compared_s);
        wg__buffer_puts(out, ", where ");
        write_ms(out, total->compared_predicted_s);
        wg__buffer_puts(out, " are predicted");
    }
    wg__buffer_puts(out, "\nrecoverable: ");
    write_ms(out, total->tail_s);
    wg__buffer_printf(out, ", %.1f %%, are tails", 100 * total->waste);
    if (total->stream_k_s > 0) {
        wg__buffer_puts(out, "; Stream-K kernels would save ");
        write_ms(out, total->stream_k_s);
    }
    wg__buffer_puts(out, "\n");
    write_energy(total, out);
}

static void write_total(const struct wg_wave_analysis *analysis, struct wg_buffer *out)
{
    if (analysis->total.predicted > 0)
        write_predicted(&analysis->total, out);
    write_launched(&analysis->total, out);
}

static void write_batches(const struct wg_wave_analysis *analysis, struct wg_buffer *out)
{
    const struct wg_batch_point *own = wg__wave_own_batch(analysis), *best = own;
    if (own == NULL)
        return;
    for (size_t i = 0; i < analysis->point_count; i++)
        if (analysis->points[i].per_s > best->per_s)
            best = &analysis->points[i];
    if (own->free_to > own->batch)
        wg__buffer_printf(out, "batch: %u -> %u is free", own->batch, own->free_to);
    else if (isfinite(own->next_s))
        wg__buffer_printf(out, "batch: one more than %u costs %.1f us", own->batch,
                          1e6 * own->next_s);
    else
        wg__buffer_printf(out, "batch: %u", own->batch);
    wg__buffer_printf(out, "; most samples a second up to %u: %.0f at %u (%.0f at %u)\n",
                      analysis->points[analysis->point_count - 1].batch, best->per_s, best->batch,
                      own->per_s, own->batch);
}

static void write_caveats(const struct wg_wave_report *report,
                          const struct wg_wave_analysis *analysis, struct wg_buffer *out)
{
    for (size_t i = 0;; i++) {
        struct wg_buffer text;
        wg__buffer_init(&text);
        const bool has = wg__wave_caveat(report, analysis, i, &text);
        out->failed |= text.failed;
        if (has && !text.failed)
            wg__buffer_printf(out, "note: %s\n", text.data);
        wg__buffer_fini(&text);
        if (!has)
            break;
    }
}

void wg__wave_text(const struct wg_wave_report *report, bool with_color, struct wg_buffer *out)
{
    for (size_t g = 0; g < report->count; g++) {
        const struct wg_wave_analysis *analysis = &report->analyses[g];
        if (g > 0)
            wg__buffer_puts(out, "\n");
        write_head(report, analysis, out);
        write_layers(report, analysis, with_color, out);
        write_total(analysis, out);
        write_batches(analysis, out);
        write_caveats(report, analysis, out);
    }
    if (report->count < 2)
        return;
    struct wg_table table;
    wg__buffer_printf(out,
                      "\nSpeed-up over %s: by whole waves of its blocks, and as predicted.\n\n",
                      report->analyses[0].gpu->id);
    wg__wave_compare_table(report, &table);
    wg__table_write(&table, with_color, out);
    wg__table_fini(&table);
}
