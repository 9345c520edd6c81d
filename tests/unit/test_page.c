/* SPDX-License-Identifier: MIT
 *
 * Report pages: well-formed, self-contained, escaped.
 */
#include "cli/page.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/plot.h"
#include "cli/table.h"
#include "support/check.h"
#include "support/xml.h"

static void write_page(struct wg_buffer *out, const char *text)
{
    static const struct wg_table_column columns[] = {{"<Job>", WG_ALIGN_LEFT},
                                                     {"J", WG_ALIGN_RIGHT}};
    static const double y[] = {1, 2, 3};
    const struct wg_plot_series series = {.label = text, .y = y, .count = 3};
    const struct wg_plot plot = {.title = text, .series = &series, .series_count = 1};
    const struct wg_plot wide = {.title = text, .series = &series, .series_count = 1, .width = 800};
    const struct wg_page_fact facts[] = {{text, text, text}, {"1", "two", NULL}};
    struct wg_table table;
    wg__table_init(&table, columns, 2);
    wg__table_cell(&table, "%s", text);
    wg__table_cell(&table, "%d", 5);

    struct wg_page page;
    wg__page_begin(&page, out, text, text);
    wg__page_facts(&page, facts, 2);
    wg__page_heading(&page, text);
    wg__page_subheading(&page, text);
    wg__page_paragraph(&page, "%s and %d", text, 7);
    wg__page_table(&page, &table, text);
    wg__page_legend(&page, &plot);
    wg__page_fold_begin(&page, text, true);
    wg__page_fold_begin(&page, "inner", false);
    wg__page_figures_begin(&page);
    wg__page_figure(&page, &plot, text);
    wg__page_figure(&page, &wide, NULL);
    wg__page_figures_end(&page);
    wg__page_fold_end(&page);
    wg__page_fold_end(&page);
    wg__page_end(&page, text);
    wg__table_fini(&table);
}

static void writes_all_parts_well_formed(void **state)
{
    (void)state;
    struct wg_buffer out;
    wg__buffer_init(&out);
    write_page(&out, "plain");
    assert_false(out.failed);
    check_well_formed(out.data);
    static const char *const parts[] = {"<!DOCTYPE html>\n<html lang=\"en\">",
                                        "<meta charset=\"utf-8\">",
                                        "<title>plain</title>",
                                        "<h1>plain</h1>",
                                        "<h2>plain</h2>",
                                        "<h3>plain</h3>",
                                        "<p>plain and 7</p>",
                                        "<details open><summary>plain</summary>",
                                        "<details><summary>inner</summary>",
                                        "<figcaption>plain</figcaption>",
                                        "<figure class=\"wide\">\n<div class=\"desk\">\n<svg",
                                        "<div class=\"phone\">\n<svg",
                                        "details::details-content{",
                                        "<pre>plain</pre>",
                                        "<small>plain</small>",
                                        "</html>\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(out.data, parts[i]) == NULL)
            fail_msg("the page lacks %s", parts[i]);
    assert_int_equal(count_of(out.data, "<style>"), 1);
    /* Two charts, one of them for phones too, and a legend's sample. */
    assert_int_equal(count_of(out.data, "</svg>"), 4);
    wg__buffer_fini(&out);
}

static void escapes_every_text(void **state)
{
    (void)state;
    struct wg_buffer out;
    wg__buffer_init(&out);
    write_page(&out, "</style><script>alert(\"1\")</script>&'\x1b\xc3");
    check_well_formed(out.data);
    assert_null(strstr(out.data, "<script"));
    assert_int_equal(count_of(out.data, "</style>"), 1);
    assert_null(strchr(out.data, '\x1b'));
    wg__buffer_fini(&out);
}

static void asks_nothing_of_the_network(void **state)
{
    (void)state;
    struct wg_buffer out;
    wg__buffer_init(&out);
    write_page(&out, "plain");
    static const char *const links[] = {"http:", "https:", "url(", "@import", "src=", "href="};
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        assert_null(strstr(out.data, links[i]));
    wg__buffer_fini(&out);
}

static void keeps_lines_and_characters_of_code(void **state)
{
    (void)state;
    struct wg_buffer out;
    struct wg_page page;
    wg__buffer_init(&out);
    wg__page_begin(&page, &out, "t", NULL);
    const size_t before = out.length;
    char text[1200], expected[1300];
    size_t length = 0;
    text[length++] = 'x'; /* so that some character straddles any even limit */
    while (length + 3 < 1000) {
        text[length++] = '\xc3'; /* é */
        text[length++] = '\xa9';
    }
    (void)snprintf(text + length, sizeof text - length, "\n\n<b>\n");
    (void)snprintf(expected, sizeof expected, "<pre>%.*s\n\n&lt;b&gt;\n</pre>\n", (int)length,
                   text);
    wg__page_code(&page, text);
    assert_string_equal(out.data + before, expected);
    wg__page_end(&page, NULL);
    check_well_formed(out.data);
    wg__buffer_fini(&out);
}

static void reports_want_of_memory(void **state)
{
    (void)state;
    bool has_worked = false;
    for (size_t nth = 1; !has_worked; nth++) {
        struct wg_buffer out;
        wg__buffer_init(&out);
        wg__alloc_fail_from(nth);
        write_page(&out, "plain");
        wg__alloc_fail_from(0);
        has_worked = !out.failed;
        if (has_worked)
            check_well_formed(out.data); /* nothing may be lost without a word */
        wg__buffer_fini(&out);
        assert_true(nth < 500);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_all_parts_well_formed),
        cmocka_unit_test(escapes_every_text),
        cmocka_unit_test(asks_nothing_of_the_network),
        cmocka_unit_test(keeps_lines_and_characters_of_code),
        cmocka_unit_test(reports_want_of_memory),
    };
    return run_tests(tests);
}
