/* SPDX-License-Identifier: MIT
 *
 * Charts: what is drawn lies inside the picture, texts don't touch each other, and no data breaks
 * the markup.
 *
 * The checks read the SVG back: a scanner of the attributes that our writer makes. Text widths are
 * those that the layout reckons with, which are generous; that they are is checked by eye.
 */
#include "cli/plot.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/rng.h"
#include "cli/plot_style.h"
#include "support/check.h"
#include "support/xml.h"

/* The number of attribute `name` in the tag that begins at `tag`; NaN if it has none. */
static double attribute(const char *tag, const char *name)
{
    char pattern[32];
    (void)snprintf(pattern, sizeof pattern, " %s=\"", name);
    const char *end = strchr(tag, '>'), *at = strstr(tag, pattern);
    if (at == NULL || at > end)
        return (double)NAN;
    return strtod(at + strlen(pattern), NULL);
}

struct box {
    double left, right, top, bottom;
};

static struct box view_box(const char *svg)
{
    const char *at = strstr(svg, "viewBox=\"0 0 ");
    assert_non_null(at);
    char *rest;
    const double width = strtod(at + 13, &rest);
    return (struct box){0, width, 0, strtod(rest, NULL)};
}

static void check_inside(struct box view, double x, double y)
{
    if (!(x >= view.left && x <= view.right && y >= view.top && y <= view.bottom))
        fail_msg("(%g, %g) is outside %g x %g", x, y, view.right, view.bottom);
}

static void check_points_inside(const char *svg)
{
    const struct box view = view_box(svg);
    for (const char *at = strstr(svg, "points=\""); at != NULL; at = strstr(at, "points=\"")) {
        at += 8;
        while (*at != '"') {
            char *rest;
            const double x = strtod(at, &rest);
            assert_true(*rest == ',');
            const double y = strtod(rest + 1, &rest);
            check_inside(view, x, y);
            at = rest + strspn(rest, " ");
        }
    }
    for (const char *at = strstr(svg, "<circle"); at != NULL; at = strstr(at + 1, "<circle")) {
        const double r = attribute(at, "r");
        check_inside(view, attribute(at, "cx") - r, attribute(at, "cy") - r);
        check_inside(view, attribute(at, "cx") + r, attribute(at, "cy") + r);
    }
    for (const char *at = strstr(svg, "<line"); at != NULL; at = strstr(at + 1, "<line")) {
        check_inside(view, attribute(at, "x1"), attribute(at, "y1"));
        check_inside(view, attribute(at, "x2"), attribute(at, "y2"));
    }
    for (const char *at = strstr(svg, "<rect"); at != NULL; at = strstr(at + 1, "<rect")) {
        const double x = attribute(at, "x"), y = attribute(at, "y");
        check_inside(view, x, y);
        check_inside(view, x + attribute(at, "width"), y + attribute(at, "height"));
    }
}

static struct box text_box(const char *tag)
{
    const char *text = strchr(tag, '>') + 1, *end = strchr(text, '<');
    char copy[512];
    (void)snprintf(copy, sizeof copy, "%.*s", (int)(end - text), text);
    char *entity; /* an escaped character is one character wide */
    while ((entity = strchr(copy, '&')) != NULL)
        memmove(entity, strchr(entity, ';'), strlen(strchr(entity, ';')) + 1);
    const bool is_title = strncmp(tag, "<text class=\"t\"", 15) == 0;
    const double width = wg__plot_text_width(copy, is_title ? WG_PLOT_TITLE : WG_PLOT_TEXT);
    const double x = attribute(tag, "x"), y = attribute(tag, "y");
    const double left = strncmp(tag, "<text class=\"e\"", 15) == 0   ? x - width
                        : strncmp(tag, "<text class=\"m\"", 15) == 0 ? x - width / 2
                                                                     : x;
    return (struct box){left, left + width, y - 9, y + 2};
}

/* No text is cut off by the picture's edge, and no two overlap. */
static void check_texts(const char *svg)
{
    enum { TEXTS_MAX = 128 };
    struct box boxes[TEXTS_MAX];
    size_t count = 0;
    const struct box view = view_box(svg);
    for (const char *at = strstr(svg, "<text"); at != NULL; at = strstr(at + 1, "<text")) {
        assert_true(count < TEXTS_MAX);
        const struct box box = text_box(at);
        check_inside(view, box.left, box.top);
        if (box.right > view.right + 0.5 || box.bottom > view.bottom)
            fail_msg("cut off: %.100s", at);
        for (size_t i = 0; i < count; i++)
            if (box.left < boxes[i].right && boxes[i].left < box.right &&
                box.top < boxes[i].bottom && boxes[i].top < box.bottom)
                fail_msg("overlaps another: %.100s", at);
        boxes[count++] = box;
    }
}

/* Appends the plot, checks all that must hold for any plot; the caller frees the buffer. */
static struct wg_buffer draw(const struct wg_plot *plot)
{
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__plot_write(plot, &out);
    assert_false(out.failed);
    check_well_formed(out.data);
    check_points_inside(out.data);
    check_texts(out.data);
    for (const char *at = out.data; (at = strpbrk(at, "ni")) != NULL; at++)
        if ((strncmp(at, "nan", 3) == 0 || strncmp(at, "inf", 3) == 0) &&
            strchr("\"(, >-", at[-1]) != NULL)
            fail_msg("not a number: %.60s", at - 10);
    return out;
}

static const double rising[] = {1, 2, 3, 4, 5};

static void draws_each_mark(void **state)
{
    (void)state;
    const double low[] = {0.5, 1.5, 2.5, 3.5, 4.5};
    const struct wg_plot_series series[] = {
        {.label = "line", .y = rising, .count = 5},
        {.label = "step", .mark = WG_PLOT_STEP, .y = rising, .count = 5},
        {.label = "points", .mark = WG_PLOT_POINTS, .y = rising, .count = 5},
        {.label = "dashed", .mark = WG_PLOT_DASHED, .y = rising, .count = 5},
        {.label = "band", .mark = WG_PLOT_BAND, .y = rising, .y_low = low, .count = 5},
    };
    const struct wg_plot_reference references[] = {{.label = "limit", .value = 4.2},
                                                   {.value = 3, .is_vertical = true}};
    const struct wg_plot plot = {.title = "All marks",
                                 .x = {.title = "Run", .is_whole = true},
                                 .y = {.title = "Energy", .unit = "J"},
                                 .series = series,
                                 .series_count = 5,
                                 .references = references,
                                 .reference_count = 2};
    struct wg_buffer out = draw(&plot);
    assert_int_equal(count_of(out.data, "<polyline class=\"l\""), 2);
    assert_int_equal(count_of(out.data, "<polyline class=\"d\""), 1);
    assert_int_equal(count_of(out.data, "<polygon class=\"b\""), 1);
    assert_non_null(strstr(out.data, ">Energy (J)</text>"));
    static const char *const labels[] = {">line<",   ">step<", ">points<",
                                         ">dashed<", ">band<", ">limit<"};
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(count_of(out.data, labels[i]), 1);
    assert_non_null(strstr(out.data, "<title>points\nRun: 2\nEnergy: 2 J</title>"));
    wg__buffer_fini(&out);
}

static void places_points_in_proportion(void **state)
{
    (void)state;
    const double x[] = {0, 10, 100}, y[] = {0, 10, 100};
    const struct wg_plot_series series = {
        .mark = WG_PLOT_POINTS, .color = WG_PLOT_INK, .x = x, .y = y, .count = 3};
    const struct wg_plot plot = {.series = &series, .series_count = 1, .width = 400};
    struct wg_buffer out = draw(&plot);
    double cx[3], cy[3];
    const char *at = out.data;
    for (int i = 0; i < 3; i++) {
        at = strstr(at + 1, "<circle");
        assert_non_null(at);
        cx[i] = attribute(at, "cx");
        cy[i] = attribute(at, "cy");
    }
    check_close_abs((cx[1] - cx[0]) / (cx[2] - cx[0]), 0.1, 0, 0.001);
    check_close_abs((cy[1] - cy[0]) / (cy[2] - cy[0]), 0.1, 0, 0.001);
    assert_true(cy[2] < cy[0]); /* up is more */
    wg__buffer_fini(&out);
}

static void places_logarithms_in_proportion(void **state)
{
    (void)state;
    const double x[] = {1, 10, 1000}, y[] = {8, 16, 64};
    const struct wg_plot_series series = {
        .mark = WG_PLOT_POINTS, .color = WG_PLOT_INK, .x = x, .y = y, .count = 3};
    const struct wg_plot plot = {.x = {.scale = WG_PLOT_LOG},
                                 .y = {.scale = WG_PLOT_LOG2},
                                 .series = &series,
                                 .series_count = 1};
    struct wg_buffer out = draw(&plot);
    double cx[3], cy[3];
    const char *at = out.data;
    for (int i = 0; i < 3; i++) {
        at = strstr(at + 1, "<circle");
        assert_non_null(at);
        cx[i] = attribute(at, "cx");
        cy[i] = attribute(at, "cy");
    }
    check_close_abs((cx[1] - cx[0]) / (cx[2] - cx[0]), 1 / 3.0, 0, 0.001);
    check_close_abs((cy[1] - cy[0]) / (cy[2] - cy[0]), 1 / 3.0, 0, 0.001);
    wg__buffer_fini(&out);
}

static void breaks_lines_at_gaps(void **state)
{
    (void)state;
    const double y[] = {1, 2, (double)NAN, 3, HUGE_VAL, 4, 5, -HUGE_VAL, 1e301};
    const struct wg_plot_series series = {.y = y, .count = 9};
    const struct wg_plot plot = {.series = &series, .series_count = 1};
    struct wg_buffer out = draw(&plot);
    /* 1-2 and 4-5 are lines; 3 stands alone and is a dot. */
    assert_int_equal(count_of(out.data, "<polyline"), 2);
    assert_int_equal(count_of(out.data, "<line class=\"l\""), 1);
    wg__buffer_fini(&out);
}

static void skips_what_a_logarithm_lacks(void **state)
{
    (void)state;
    const double y[] = {0, -5, 10, 100};
    const struct wg_plot_series series = {.mark = WG_PLOT_POINTS, .y = y, .count = 4};
    const struct wg_plot plot = {.y = {.scale = WG_PLOT_LOG}, .series = &series, .series_count = 1};
    struct wg_buffer out = draw(&plot);
    assert_int_equal(count_of(out.data, "<circle class=\"p\""), 2);
    wg__buffer_fini(&out);
}

static void shows_axes_without_data(void **state)
{
    (void)state;
    const struct wg_plot empty = {.title = "Nothing", .x = {.title = "x"}, .y = {.title = "y"}};
    struct wg_buffer out = draw(&empty);
    assert_non_null(strstr(out.data, ">0</text>"));
    wg__buffer_fini(&out);
    const double y[] = {(double)NAN};
    const struct wg_plot_series series = {.label = "gone", .y = y, .count = 1};
    const struct wg_plot gone = {.y = {.scale = WG_PLOT_LOG}, .series = &series, .series_count = 1};
    out = draw(&gone);
    assert_int_equal(count_of(out.data, "<polyline"), 0);
    wg__buffer_fini(&out);
}

static void escapes_texts(void **state)
{
    (void)state;
    static const char *const tips[] = {"<script>", "\"", "'", "&", "]]>"};
    const struct wg_plot_series series = {.label = "a<b & \"c\"\x01\xff",
                                          .mark = WG_PLOT_POINTS,
                                          .y = rising,
                                          .count = 5,
                                          .point_labels = tips};
    const struct wg_plot plot = {.title = "</svg> \"quoted\"",
                                 .x = {.title = "<x>", .unit = "&"},
                                 .y = {.title = "'y'", .unit = "<J>"},
                                 .series = &series,
                                 .series_count = 1};
    struct wg_buffer out = draw(&plot);
    assert_int_equal(count_of(out.data, "</svg>"), 1);
    assert_null(strstr(out.data, "<script"));
    assert_non_null(strstr(out.data, "a&lt;b &amp; &quot;c&quot; \xef\xbf\xbd"));
    wg__buffer_fini(&out);
}

static void cuts_long_texts_and_grows_for_long_legends(void **state)
{
    (void)state;
    char longer[300];
    memset(longer, 'm', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    struct wg_plot_series series[20];
    for (int i = 0; i < 20; i++)
        series[i] =
            (struct wg_plot_series){.label = i == 7 ? longer : "a series", .y = rising, .count = 5};
    const struct wg_plot plot = {.title = longer,
                                 .x = {.title = longer, .unit = longer},
                                 .y = {.title = longer},
                                 .series = series,
                                 .series_count = 20,
                                 .width = 220,
                                 .height = 120};
    struct wg_buffer out = draw(&plot);
    assert_true(view_box(out.data).bottom > 300);
    assert_int_equal(count_of(out.data, "…<"), 4);
    wg__buffer_fini(&out);
}

static void stands_alone_as_a_file(void **state)
{
    (void)state;
    const struct wg_plot_series series = {.y = rising, .count = 5};
    const struct wg_plot plot = {.series = &series, .series_count = 1, .is_standalone = true};
    struct wg_buffer out = draw(&plot);
    assert_non_null(strstr(out.data, "xmlns=\"http://www.w3.org/2000/svg\""));
    assert_int_equal(count_of(out.data, "<style>"), 1);
    assert_non_null(strstr(out.data, "prefers-color-scheme:dark"));
    wg__buffer_fini(&out);
}

static void leaves_the_legend_to_the_page(void **state)
{
    (void)state;
    const struct wg_plot_series series[] = {{.label = "zeus & co", .y = rising, .count = 5},
                                            {.y = rising, .count = 5}};
    const struct wg_plot plot = {.series = series, .series_count = 2, .without_legend = true};
    struct wg_buffer out = draw(&plot);
    assert_null(strstr(out.data, ">zeus &amp; co</text>"));
    wg__buffer_fini(&out);
    wg__buffer_init(&out);
    wg__plot_legend_html(&plot, &out);
    check_well_formed(out.data);
    assert_non_null(strstr(out.data, "zeus &amp; co</span>"));
    assert_int_equal(count_of(out.data, "<span>"), 1);
    wg__buffer_fini(&out);
}

/* A value of any size, or none at all. */
static double any_value(struct wg_rng *rng, uint32_t kind)
{
    static const double odd[] = {0, -0.0, 1, 1e-320, 1e300, -1e300, 1.7e308, 1e-290, 5e-324};
    const double u = wg__rng_uniform(rng);
    if (wg__rng_below(rng, 8) == 0)
        return (double)NAN;
    switch (kind) {
    case 0:
        return u;
    case 1:
        return 1e9 + u;
    case 2:
        return (u - 0.5) * pow(10, 20 * wg__rng_uniform(rng) - 10);
    case 3:
        return (u < 0.5 ? -1 : 1) * pow(10, 600 * wg__rng_uniform(rng) - 300);
    case 4:
        return 42;
    case 5:
        return odd[wg__rng_below(rng, sizeof odd / sizeof odd[0])];
    case 6:
        return wg__rng_below(rng, 9) * 32;
    default:
        return u < 0.5 ? -HUGE_VAL : u * 1e-15;
    }
}

/* 3000 charts of random shape and data; `draw` holds the properties. */
static void holds_any_data(void **state)
{
    (void)state;
    static double x[40], y[40], low[40];
    struct wg_rng rng;
    wg__rng_init(&rng, 20);
    for (int round = 0; round < 3000; round++) {
        const uint32_t x_kind = wg__rng_below(&rng, 8), y_kind = wg__rng_below(&rng, 8);
        const size_t count = wg__rng_below(&rng, 41);
        for (size_t i = 0; i < count; i++) {
            x[i] = any_value(&rng, x_kind);
            y[i] = any_value(&rng, y_kind);
            low[i] = any_value(&rng, y_kind);
        }
        struct wg_plot_series series[3];
        for (int s = 0; s < 3; s++)
            series[s] = (struct wg_plot_series){
                .label = s == 1 ? NULL : "some label",
                .mark = (enum wg_plot_mark)wg__rng_below(&rng, WG_PLOT_BAND + 1),
                .color = (enum wg_plot_color)wg__rng_below(&rng, WG_PLOT_COLOR_COUNT),
                .x = wg__rng_below(&rng, 3) == 0 ? NULL : x,
                .y = y,
                .y_low = low,
                .count = count};
        const struct wg_plot_reference reference = {.label = "line",
                                                    .value = any_value(&rng, y_kind),
                                                    .is_vertical = wg__rng_below(&rng, 2) == 1};
        const struct wg_plot plot = {.title = "Title",
                                     .x = {.title = "Time",
                                           .unit = "s",
                                           .scale = (enum wg_plot_scale)wg__rng_below(&rng, 3),
                                           .from_zero = wg__rng_below(&rng, 2) == 1,
                                           .is_whole = wg__rng_below(&rng, 4) == 0},
                                     .y = {.title = "Energy",
                                           .unit = wg__rng_below(&rng, 2) == 1 ? "J" : NULL,
                                           .scale = (enum wg_plot_scale)wg__rng_below(&rng, 3),
                                           .from_zero = wg__rng_below(&rng, 2) == 1},
                                     .series = series,
                                     .series_count = 3,
                                     .references = &reference,
                                     .reference_count = wg__rng_below(&rng, 2),
                                     .width = 200 + wg__rng_below(&rng, 600),
                                     .height = 100 + wg__rng_below(&rng, 400)};
        struct wg_buffer out = draw(&plot);
        wg__buffer_fini(&out);
    }
}

static void reports_want_of_memory(void **state)
{
    (void)state;
    const struct wg_plot_series series = {.label = "a", .y = rising, .count = 5};
    const struct wg_plot plot = {
        .title = "t", .y = {.title = "y"}, .series = &series, .series_count = 1};
    bool has_worked = false;
    for (size_t nth = 1; !has_worked; nth++) {
        struct wg_buffer out;
        wg__buffer_init(&out);
        wg__alloc_fail_from(nth);
        wg__plot_write(&plot, &out);
        wg__alloc_fail_from(0);
        has_worked = !out.failed;
        assert_true(nth > 1 || !has_worked);
        wg__buffer_fini(&out);
        assert_true(nth < 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_each_mark),
        cmocka_unit_test(places_points_in_proportion),
        cmocka_unit_test(places_logarithms_in_proportion),
        cmocka_unit_test(breaks_lines_at_gaps),
        cmocka_unit_test(skips_what_a_logarithm_lacks),
        cmocka_unit_test(shows_axes_without_data),
        cmocka_unit_test(escapes_texts),
        cmocka_unit_test(cuts_long_texts_and_grows_for_long_legends),
        cmocka_unit_test(stands_alone_as_a_file),
        cmocka_unit_test(leaves_the_legend_to_the_page),
        cmocka_unit_test(holds_any_data),
        cmocka_unit_test(reports_want_of_memory),
    };
    return run_tests(tests);
}
