/* SPDX-License-Identifier: MIT
 *
 * Tests of the chart of shares over time (cli/heat_map.h).
 */
#include "cli/heat_map.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "support/check.h"
#include "support/xml.h"

/* Two rows over four bins; the upper row shows column 1. */
static const float shares[] = {1, 0, 1, 0, 0.5F, 0.5F, 0, 1};

static void write_map(const char *text, struct wg_buffer *out)
{
    const struct wg_heat_row rows[] = {{.label = text, .note = "default", .column = 1},
                                       {.label = "8", .column = 0}};
    const struct wg_heat_map map = {.title = text,
                                    .x_title = text,
                                    .y_title = text,
                                    .color = WG_PLOT_BLUE,
                                    .x_last = 100,
                                    .rows = rows,
                                    .row_count = 2,
                                    .shares = shares,
                                    .bin_count = 4,
                                    .stride = 2};
    wg__heat_map_write(&map, out);
}

static size_t count(const char *text, const char *part)
{
    size_t found = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        found++;
    return found;
}

static void neighbours_of_one_darkness_are_one_cell(void **state)
{
    (void)state;
    struct wg_buffer out;
    wg__buffer_init(&out);
    write_map("16", &out);
    assert_false(out.failed);
    check_well_formed(out.data);
    /* Full: bins 0-1 of the lower row, bin 3 of the upper; half: bin 2 of both. Zero is not drawn.
     */
    assert_int_equal(count(out.data, "<path "), 2);
    assert_non_null(strstr(out.data, "fill-opacity=\"1.00\""));
    assert_non_null(strstr(out.data, "fill-opacity=\"0.55\""));
    const char *full = strstr(out.data, "fill-opacity=\"1.00\"");
    const char *end = strstr(full, "/>");
    size_t cells = 0;
    for (const char *at = full; at < end; at++)
        cells += *at == 'M';
    assert_int_equal(cells, 2);
    wg__buffer_fini(&out);
}

static void each_row_says_how_often_it_was_chosen(void **state)
{
    (void)state;
    struct wg_buffer out;
    wg__buffer_init(&out);
    write_map("16", &out);
    assert_non_null(strstr(out.data, "<title>16: 37.5 % of all</title>")); /* (0.5 + 1) / 4 */
    assert_non_null(strstr(out.data, "<title>8: 62.5 % of all</title>"));
    assert_non_null(strstr(out.data, ">default</text>"));
    wg__buffer_fini(&out);
}

static void texts_are_escaped(void **state)
{
    (void)state;
    struct wg_buffer out;
    wg__buffer_init(&out);
    write_map("<b>&\"'\x1b", &out);
    assert_false(out.failed);
    check_well_formed(out.data);
    assert_null(strstr(out.data, "<b>"));
    wg__buffer_fini(&out);
}

static void running_out_of_memory_fails_the_buffer(void **state)
{
    (void)state;
    for (size_t nth = 1;; nth++) {
        struct wg_buffer out;
        wg__buffer_init(&out);
        wg__alloc_fail_from(nth);
        write_map("16", &out);
        wg__alloc_fail_from(0);
        const bool failed = out.failed;
        wg__buffer_fini(&out);
        if (!failed)
            break;
        assert_true(nth < 50);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_of_one_darkness_are_one_cell),
        cmocka_unit_test(each_row_says_how_often_it_was_chosen),
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(running_out_of_memory_fails_the_buffer),
    };
    return run_tests(tests);
}
