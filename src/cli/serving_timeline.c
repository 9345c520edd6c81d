/* SPDX-License-Identifier: MIT
 *
 * Recording and drawing of single runs: see serving_timeline.h.
 */
#include "cli/serving_timeline.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/duration.h"
#include "cli/markup.h"
#include "cli/plot.h"
#include "cli/plot_axis.h"
#include "cli/plot_style.h"

enum { FIRST_CAPACITY = 1024 };

static const double window_s = 10;
static const double recorded_s = 120;

/* -- Recording -------------------------------------------------------------------------------- */

static void note(void *context, double at_s, enum wg_timeline_kind kind, uint64_t value)
{
    struct wg_serving_timeline *timeline = context;
    if (at_s > timeline->until_s)
        return;
    if (timeline->count == timeline->capacity) {
        const size_t capacity = timeline->capacity != 0 ? 2 * timeline->capacity : FIRST_CAPACITY;
        struct wg_serving_note *notes = wg__realloc_array(timeline->notes, capacity, sizeof *notes);
        if (notes == NULL) {
            timeline->has_overflowed = true;
            return;
        }
        timeline->notes = notes;
        timeline->capacity = capacity;
    }
    timeline->notes[timeline->count++] =
        (struct wg_serving_note){.at_s = at_s, .kind = kind, .value = value};
}

enum wg_code wg__serving_timeline_run(struct wg_serving_timeline *out,
                                      const struct wg_serving_study_request *request, size_t policy,
                                      size_t law, struct wg_error *err)
{
    const struct wg_serving_setup *setup = &request->base;
    *out = (struct wg_serving_timeline){
        .title = request->policies[policy].name,
        .law = request->laws[law],
        .is_careless = request->policies[policy].finetune == WG_FINETUNE_GREEDY,
        .profile = setup->profile,
        .has_clocks = setup->clocks == WG_CLOCKS_GOVERNED,
        .first_rung = setup->rung,
        .until_s = setup->change_count > 0 ? fmax(recorded_s, setup->changes[0].at_s + window_s)
                                           : recorded_s,
    };
    struct wg_serving_sum sum;
    const struct wg_timeline timeline = {.note = note, .context = out};
    const enum wg_code code =
        wg__serving_study_rerun(request, policy, law, request->first_seed, &timeline, &sum, err);
    return code == WG_OK && out->has_overflowed ? wg__fail(err, WG_ENOMEM, "out of memory") : code;
}

void wg__serving_timeline_fini(struct wg_serving_timeline *timeline)
{
    wg__free(timeline->notes);
    timeline->notes = NULL;
    timeline->count = timeline->capacity = 0;
}

size_t wg__serving_timeline_law(const struct wg_serving_study *study,
                                const struct wg_serving_study_request *request)
{
    size_t policy = 0, law = 0;
    for (size_t i = 0; i < request->policy_count; i++)
        if (request->policies[i].finetune == WG_FINETUNE_WATTGOV)
            policy = i;
    double worst = -1;
    for (size_t i = 0; i < study->cell_count; i++) {
        const struct wg_serving_cell *cell = &study->cells[i];
        if (cell->policy == policy && cell->violation_rate > worst) {
            worst = cell->violation_rate;
            law = cell->law;
        }
    }
    return law;
}

static bool is_wrong(const struct wg_serving_note *of)
{
    return of->kind == WG_TIMELINE_LATE || of->kind == WG_TIMELINE_DROPPED;
}

static size_t count_wrong(const struct wg_serving_timeline *timelines, size_t count, double begin_s)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < timelines[i].count; k++) {
            const struct wg_serving_note *of = &timelines[i].notes[k];
            if (timelines[i].is_careless && count > 1)
                break;
            wrong += is_wrong(of) && of->at_s >= begin_s && of->at_s < begin_s + window_s;
        }
    return wrong;
}

struct wg_serving_window wg__serving_timeline_window(const struct wg_serving_timeline *timelines,
                                                     size_t count,
                                                     const struct wg_serving_setup *setup)
{
    const double last_s = fmax(0, fmin(setup->duration_s, recorded_s) - window_s);
    double begin_s = 0;
    if (setup->change_count > 0) {
        begin_s = fmax(0, setup->changes[0].at_s - window_s / 2);
    } else {
        size_t most = count_wrong(timelines, count, 0);
        const unsigned places = (unsigned)last_s;
        for (unsigned i = 1; i <= places; i++) {
            const size_t wrong = count_wrong(timelines, count, i);
            if (wrong > most) {
                most = wrong;
                begin_s = i;
            }
        }
    }
    return (struct wg_serving_window){
        begin_s, begin_s + fmin(window_s, fmax(setup->duration_s - begin_s, 1e-3))};
}

/* -- Drawing ---------------------------------------------------------------------------------- */

/* Lengths in user units. */
static const double EDGE = 3;
static const double LEFT = 84;
static const double MARKS_Y = 36;
static const double QUEUE_Y = 46;
static const double QUEUE_HEIGHT = 40;
static const double LANE_HEIGHT = 20;
static const double LANE_GAP = 6;
static const double TEXT_WIDTH = 7.5; /* a block as wide shows its rows */

struct drawing {
    const struct wg_serving_timeline *timeline;
    const struct wg_serving_window *window;
    struct wg_buffer *out;
    double right, batch_y, step_y, clocks_y, bottom;
};

static double place(const struct drawing *drawing, double at_s)
{
    const struct wg_serving_window *window = drawing->window;
    const double share = (at_s - window->begin_s) / (window->end_s - window->begin_s);
    return LEFT + fmin(fmax(share, 0), 1) * (drawing->right - LEFT);
}

static bool is_inside(const struct drawing *drawing, double at_s)
{
    return at_s >= drawing->window->begin_s && at_s <= drawing->window->end_s;
}

static void draw_label(const struct drawing *drawing, double y, const char *text)
{
    wg__buffer_printf(drawing->out, "<text class=\"e\" x=\"%.0f\" y=\"%.1f\">%s</text>\n", LEFT - 8,
                      y, text);
}

static uint64_t longest_queue(const struct drawing *drawing)
{
    uint64_t most = 1;
    for (size_t i = 0; i < drawing->timeline->count; i++) {
        const struct wg_serving_note *of = &drawing->timeline->notes[i];
        if (of->kind == WG_TIMELINE_QUEUE && is_inside(drawing, of->at_s) && of->value > most)
            most = of->value;
    }
    return most;
}

static void draw_queue(const struct drawing *drawing)
{
    struct wg_buffer *out = drawing->out;
    const double bottom = QUEUE_Y + QUEUE_HEIGHT;
    const uint64_t most = longest_queue(drawing);
    const double unit = QUEUE_HEIGHT / (double)most;
    uint64_t length = 0; /* at the window's beginning */
    for (size_t i = 0; i < drawing->timeline->count; i++) {
        const struct wg_serving_note *of = &drawing->timeline->notes[i];
        if (of->kind == WG_TIMELINE_QUEUE && of->at_s < drawing->window->begin_s)
            length = of->value;
    }
    wg__buffer_printf(out, "<g class=\"c%d\"><path class=\"b\" d=\"M%.1f %.1fV%.1f", WG_PLOT_INK,
                      LEFT, bottom, bottom - unit * (double)length);
    for (size_t i = 0; i < drawing->timeline->count; i++) {
        const struct wg_serving_note *of = &drawing->timeline->notes[i];
        if (of->kind == WG_TIMELINE_QUEUE && is_inside(drawing, of->at_s))
            wg__buffer_printf(out, "H%.1fV%.1f", place(drawing, of->at_s),
                              bottom - unit * (double)of->value);
    }
    wg__buffer_printf(out, "H%.1fV%.1fz\"/></g>\n", drawing->right, bottom);
    draw_label(drawing, bottom - QUEUE_HEIGHT / 2 + 4, "waiting");
    wg__buffer_printf(out,
                      "<line class=\"g\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n"
                      "<text class=\"e\" x=\"%.0f\" y=\"%.1f\">%llu</text>\n",
                      LEFT, QUEUE_Y, drawing->right, QUEUE_Y, LEFT - 8, QUEUE_Y + 4,
                      (unsigned long long)most);
}

static void draw_block(const struct drawing *drawing, const struct wg_serving_note *begin,
                       double end_s, double y, enum wg_plot_color color)
{
    if (end_s < drawing->window->begin_s || begin->at_s > drawing->window->end_s)
        return;
    struct wg_buffer *out = drawing->out;
    const double left = place(drawing, begin->at_s), right = place(drawing, end_s);
    wg__buffer_printf(out,
                      "<rect class=\"c%d\" fill=\"currentColor\" fill-opacity=\".75\" x=\"%.1f\" "
                      "y=\"%.1f\" width=\"%.1f\" height=\"%.0f\"><title>%llu rows, %.3f to %.3f "
                      "s</title></rect>\n",
                      (int)color, left, y, fmax(right - left - 0.6, 0.6), LANE_HEIGHT,
                      (unsigned long long)begin->value, begin->at_s, end_s);
    if (right - left >= TEXT_WIDTH * (begin->value < 10 ? 1 : 2))
        wg__buffer_printf(out, "<text class=\"m k\" x=\"%.1f\" y=\"%.1f\">%llu</text>\n",
                          (left + right) / 2, y + LANE_HEIGHT - 6,
                          (unsigned long long)begin->value);
}

/* At most one of a kind runs at a time. */
static void draw_lane(const struct drawing *drawing, enum wg_timeline_kind begins,
                      enum wg_timeline_kind ends, double y, enum wg_plot_color color)
{
    const struct wg_serving_note *begun = NULL;
    for (size_t i = 0; i < drawing->timeline->count; i++) {
        const struct wg_serving_note *of = &drawing->timeline->notes[i];
        if (of->kind == begins) {
            begun = of;
        } else if (of->kind == ends && begun != NULL) {
            draw_block(drawing, begun, of->at_s, y, color);
            begun = NULL;
        }
    }
    if (begun != NULL)
        draw_block(drawing, begun, drawing->window->end_s, y, color);
}

static void draw_rung(const struct drawing *drawing, uint64_t rung, double since_s, double until_s)
{
    const struct wg_clock_ladder *ladder = &drawing->timeline->profile->ladder;
    const double left = place(drawing, since_s), right = place(drawing, until_s);
    if (right <= left || rung >= ladder->count)
        return;
    wg__buffer_printf(drawing->out,
                      "<line class=\"a\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n"
                      "<text x=\"%.1f\" y=\"%.1f\">",
                      left, drawing->clocks_y, left, drawing->clocks_y + LANE_HEIGHT, left + 3,
                      drawing->clocks_y + LANE_HEIGHT - 6);
    (void)wg__plot_text_fit(ladder->rungs[rung].name, WG_PLOT_TEXT, right - left - 4, drawing->out);
    wg__buffer_puts(drawing->out, "</text>\n");
}

static void draw_clocks(const struct drawing *drawing)
{
    const struct wg_serving_timeline *timeline = drawing->timeline;
    uint64_t rung = timeline->first_rung;
    double since_s = 0;
    for (size_t i = 0; i < timeline->count; i++) {
        const struct wg_serving_note *of = &timeline->notes[i];
        if (of->kind != WG_TIMELINE_CLOCKS)
            continue;
        draw_rung(drawing, rung, since_s, of->at_s);
        since_s = of->at_s;
        rung = of->value;
    }
    draw_rung(drawing, rung, since_s, drawing->window->end_s);
    draw_label(drawing, drawing->clocks_y + LANE_HEIGHT - 6, "clocks");
}

static void draw_marks(const struct drawing *drawing)
{
    struct wg_buffer *out = drawing->out;
    for (size_t i = 0; i < drawing->timeline->count; i++) {
        const struct wg_serving_note *of = &drawing->timeline->notes[i];
        if (!is_inside(drawing, of->at_s))
            continue;
        const double x = place(drawing, of->at_s);
        if (of->kind == WG_TIMELINE_LATE) {
            wg__buffer_printf(out, "<g class=\"c%d\">", WG_PLOT_VERMILION);
            wg__plot_marker(WG_PLOT_VERMILION, x, MARKS_Y, "p", "<title>late</title>", out);
            wg__buffer_puts(out, "</g>\n");
        } else if (of->kind == WG_TIMELINE_DROPPED) {
            wg__buffer_printf(out, "<g class=\"c%d\">", WG_PLOT_PURPLE);
            wg__plot_marker(WG_PLOT_PURPLE, x, MARKS_Y, "p", "<title>dropped</title>", out);
            wg__buffer_puts(out, "</g>\n");
        } else if (of->kind == WG_TIMELINE_SLO && of->at_s > 0) {
            char slo[WG_DURATION_TEXT_SIZE];
            wg__format_duration(slo, (double)of->value / 1000);
            wg__buffer_printf(out,
                              "<g class=\"c%d\"><path class=\"d\" d=\"M%.1f %.1fV%.1f\"/></g>\n"
                              "<text class=\"k\" x=\"%.1f\" y=\"%.1f\">SLO %s</text>\n",
                              WG_PLOT_INK, x, MARKS_Y - 24, drawing->bottom, x + 4, MARKS_Y - 14,
                              slo);
        }
    }
}

static void draw_axis(const struct drawing *drawing)
{
    struct wg_ticks ticks;
    const struct wg_plot_axis axis = {.title = "time", .unit = "s"};
    wg__ticks_choose(&ticks, &axis, drawing->window->begin_s, drawing->window->end_s,
                     drawing->right > 500 ? 10 : 5, true);
    for (size_t i = 0; i < ticks.count; i++) {
        const double x = place(drawing, ticks.values[i]);
        wg__buffer_printf(drawing->out,
                          "<line class=\"a\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n"
                          "<text class=\"m\" x=\"%.1f\" y=\"%.1f\">%s s</text>\n",
                          x, drawing->bottom, x, drawing->bottom + 4, x, drawing->bottom + 17,
                          ticks.labels[i]);
    }
    wg__buffer_printf(drawing->out,
                      "<line class=\"a\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
                      drawing->bottom, drawing->right, drawing->bottom);
}

void wg__serving_timeline_write(const struct wg_serving_timeline *timeline,
                                const struct wg_serving_window *window, double width,
                                struct wg_buffer *out)
{
    struct drawing drawing = {.timeline = timeline,
                              .window = window,
                              .out = out,
                              .right = width - 16,
                              .batch_y = QUEUE_Y + QUEUE_HEIGHT + LANE_GAP};
    drawing.step_y = drawing.batch_y + LANE_HEIGHT + LANE_GAP;
    drawing.clocks_y = drawing.step_y + LANE_HEIGHT + LANE_GAP;
    drawing.bottom = drawing.clocks_y + (timeline->has_clocks ? LANE_HEIGHT + LANE_GAP : 0);
    wg__buffer_printf(out,
                      "<svg class=\"wg-plot\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
                      "aria-label=\"timeline of ",
                      width, drawing.bottom + 24);
    wg__append_escaped(out, timeline->title);
    wg__buffer_printf(out, "\">\n<text class=\"t\" x=\"%.0f\" y=\"%.0f\">", EDGE,
                      EDGE + WG_PLOT_TITLE);
    wg__append_escaped(out, timeline->title);
    wg__buffer_puts(out, "</text>\n");
    draw_queue(&drawing);
    draw_lane(&drawing, WG_TIMELINE_BATCH, WG_TIMELINE_BATCH_END, drawing.batch_y, WG_PLOT_BLUE);
    draw_lane(&drawing, WG_TIMELINE_STEP, WG_TIMELINE_STEP_END, drawing.step_y, WG_PLOT_ORANGE);
    draw_label(&drawing, drawing.batch_y + LANE_HEIGHT - 6, "inference");
    draw_label(&drawing, drawing.step_y + LANE_HEIGHT - 6, "fine-tuning");
    if (timeline->has_clocks)
        draw_clocks(&drawing);
    draw_marks(&drawing);
    draw_axis(&drawing);
    wg__buffer_puts(out, "</svg>\n");
}
