/* SPDX-License-Identifier: MIT
 *
 * The results of serving studies for people: see serving_results.h.
 */
#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/duration.h"
#include "cli/serving_results.h"
#include "cli/table.h"

static const struct wg_table_column columns[] = {
    {"policy", WG_ALIGN_LEFT},     {"violations", WG_ALIGN_RIGHT}, {"95 %", WG_ALIGN_RIGHT},
    {"late", WG_ALIGN_RIGHT},      {"dropped", WG_ALIGN_RIGHT},    {"p99", WG_ALIGN_RIGHT},
    {"finished", WG_ALIGN_RIGHT},  {"samples/s", WG_ALIGN_RIGHT},  {"GPU share", WG_ALIGN_RIGHT},
    {"J/request", WG_ALIGN_RIGHT}, {"batch", WG_ALIGN_RIGHT},
};

static void add_number(struct wg_table *table, double value, const char *unit, int digits)
{
    if (isfinite(value))
        wg__table_cell(table, "%.*f%s", digits, value, unit);
    else
        wg__table_cell(table, "-");
}

/* When the job was done, and in how many runs if not in all. */
static void add_finished(struct wg_table *table, const struct wg_serving_figures *of)
{
    if (!isfinite(of->finished_s))
        wg__table_cell(table, "-");
    else if (of->finished_share < 1)
        wg__table_cell(table, "%.1f s (%.0f %%)", of->finished_s, 100 * of->finished_share);
    else
        wg__table_cell(table, "%.1f s", of->finished_s);
}

static void add_row(struct wg_table *table, const struct wg_serving_study_request *request,
                    const struct wg_serving_cell *cell)
{
    struct wg_serving_figures figures;
    wg__serving_figures(request, cell, &figures);
    const double requests = (double)cell->sum.requests;
    const double *interval = wg__serving_interval(cell);
    wg__table_cell(table, "%s", request->policies[cell->policy].name);
    add_number(table, 100 * cell->violation_rate, " %", 2);
    if (isfinite(interval[0]))
        wg__table_cell(table, "%.2f - %.2f", 100 * fmax(interval[0], 0), 100 * interval[1]);
    else
        wg__table_cell(table, "-");
    add_number(table, 100 * (double)cell->sum.late / requests, " %", 2);
    add_number(table, 100 * (double)cell->sum.dropped / requests, " %", 2);
    add_number(table, cell->p99_s, " s", 3);
    add_finished(table, &figures);
    add_number(table, figures.samples_per_s, "", 1);
    add_number(table, 100 * figures.gpu_share, " %", 1);
    add_number(table, figures.energy_per_request_j, "", 3);
    add_number(table, figures.batch_mean, "", 2);
}

void wg__serving_policy_table(const struct wg_serving_study *study,
                              const struct wg_serving_study_request *request, size_t law,
                              struct wg_table *out)
{
    wg__table_init(out, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < study->cell_count; i++)
        if (study->cells[i].law == law)
            add_row(out, request, &study->cells[i]);
}

/* -- What the load leaves --------------------------------------------------------------------- */

static const struct wg_serving_cell *find_cell(const struct wg_serving_study *study,
                                               const struct wg_serving_study_request *request,
                                               size_t law, const char *policy)
{
    for (size_t i = 0; i < study->cell_count; i++)
        if (study->cells[i].law == law &&
            (policy == NULL || strcmp(request->policies[study->cells[i].policy].name, policy) == 0))
            return &study->cells[i];
    return NULL;
}

static void put_room(const struct wg_serving_setup *base, unsigned max_batch, double rate,
                     double slo_s, struct wg_buffer *out)
{
    char slo[WG_DURATION_TEXT_SIZE];
    wg__format_duration(slo, slo_s);
    const struct wg_serving_room room =
        wg__serving_room(base->profile, base->rung, max_batch, rate, slo_s);
    if (room.batch == 0) {
        wg__buffer_printf(
            out, "No batch answers within an SLO of %s: it leaves fine-tuning no room.\n", slo);
        return;
    }
    if (room.share >= 1) {
        wg__buffer_printf(out,
                          "At %.4g requests/s and an SLO of %s inference needs the whole GPU: "
                          "there is no room for fine-tuning.\n",
                          rate, slo);
        return;
    }
    wg__buffer_printf(out,
                      "At an even %.4g requests/s and an SLO of %s inference takes at least %.1f "
                      "%% of the GPU (in batches of %u)",
                      rate, slo, 100 * room.share, room.batch);
    const double work_s =
        base->has_job ? wg__serving_work_s(base->profile, base->rung, &base->job) : HUGE_VAL;
    if (isfinite(work_s))
        wg__buffer_printf(out, ":\na job that is %.1f s of work alone can end at %.1f s.\n", work_s,
                          work_s / (1 - room.share));
    else
        wg__buffer_printf(out, ":\nat most %.1f %% is left.\n", 100 * (1 - room.share));
}

/* Ours beside what it is measured by. */
static void put_cost(const struct wg_serving_study *study,
                     const struct wg_serving_study_request *request, size_t law,
                     struct wg_buffer *out)
{
    const struct wg_serving_cell *ours = find_cell(study, request, law, "wattgov");
    const struct wg_serving_cell *lowest = find_cell(study, request, law, "floor");
    const struct wg_serving_cell *greedy = find_cell(study, request, law, "greedy");
    struct wg_serving_figures of_ours, of_greedy;
    if (ours == NULL || lowest == NULL || !isfinite(ours->violation_rate))
        return;
    wg__serving_figures(request, ours, &of_ours);
    wg__buffer_printf(out, "wattgov's fine-tuning costs %.2f points of violations above the floor",
                      100 * (ours->violation_rate - lowest->violation_rate));
    if (greedy != NULL) {
        wg__serving_figures(request, greedy, &of_greedy);
        const double times = of_ours.finished_s / of_greedy.finished_s;
        if (isfinite(times) && of_ours.finished_share < 1)
            wg__buffer_printf(out,
                              ";\nin the %.0f %% of the runs in which its job was done it took "
                              "%.2f times greedy's %.1f s",
                              100 * of_ours.finished_share, times, of_greedy.finished_s);
        else if (isfinite(times))
            wg__buffer_printf(out, ";\nits job takes %.2f times greedy's %.1f s", times,
                              of_greedy.finished_s);
    }
    wg__buffer_puts(out, ".\n");
}

void wg__serving_room_text(const struct wg_serving_study *study,
                           const struct wg_serving_study_request *request, size_t law,
                           struct wg_buffer *out)
{
    const struct wg_serving_setup *base = &request->base;
    const struct wg_serving_cell *cell = find_cell(study, request, law, NULL);
    if (!base->has_job || cell == NULL)
        return;
    const unsigned max_batch = wg__serving_max_batch(request, cell);
    put_room(base, max_batch, cell->rate, base->slo_s, out);
    for (size_t i = 0; i < base->change_count; i++)
        put_room(base, max_batch, cell->rate, base->changes[i].slo_s, out);
    put_cost(study, request, law, out);
}

void wg__serving_setup_text(const struct wg_serving_study_request *request, struct wg_buffer *out)
{
    const struct wg_serving_setup *base = &request->base;
    char text[WG_DURATION_TEXT_SIZE];
    wg__format_duration(text, base->slo_s);
    wg__buffer_printf(out, "%s: SLO %s", base->profile->name, text);
    for (size_t i = 0; i < base->change_count; i++) {
        wg__format_duration(text, base->changes[i].slo_s);
        wg__buffer_printf(out, ", from %g s on %s", base->changes[i].at_s, text);
    }
    if (!base->has_job)
        wg__buffer_puts(out, "; no fine-tuning");
    else if (base->job.iterations == UINT64_MAX)
        wg__buffer_printf(out, "; fine-tuning without end in iterations of %u rows",
                          base->job.batch);
    else
        wg__buffer_printf(out, "; fine-tuning of %llu iterations of %u rows",
                          (unsigned long long)base->job.iterations, base->job.batch);
    if (base->clocks == WG_CLOCKS_GOVERNED)
        wg__buffer_printf(out, "; clocks governed over %zu settings", base->profile->ladder.count);
    else if (base->profile->ladder.count > 1)
        wg__buffer_printf(out, "; clocks %s", base->profile->ladder.rungs[base->rung].name);
    if (base->believed != NULL)
        wg__buffer_printf(out, "; the scheduler is told times wrong by a factor of %.3g",
                          wg__profile_batch_s(base->believed, 0, 1) /
                              wg__profile_batch_s(base->profile, 0, 1));
    wg__format_duration(text, base->duration_s);
    wg__buffer_printf(out, ".\n%zu run%s of %s each.\n", request->seeds,
                      request->seeds == 1 ? "" : "s", text);
}

void wg__serving_text(const struct wg_serving_study *study,
                      const struct wg_serving_study_request *request, bool with_color,
                      struct wg_buffer *out)
{
    wg__serving_setup_text(request, out);
    for (size_t law = 0; law < request->law_count; law++) {
        struct wg_table table;
        wg__buffer_printf(out, "\n%s\n\n", request->laws[law]);
        wg__serving_policy_table(study, request, law, &table);
        wg__table_write(&table, with_color, out);
        wg__table_fini(&table);
        wg__buffer_puts(out, "\n");
        wg__serving_room_text(study, request, law, out);
    }
    wg__buffer_puts(out,
                    "violations: late and dropped requests of all; 95 %: of the mean over runs "
                    "(where runs\ndo not differ: as if requests were independent). finished, "
                    "samples/s, GPU share: of\nfine-tuning; the share is its work alone, of the "
                    "duration. J/request: inference and idle, a\nserved request.\n");
}
