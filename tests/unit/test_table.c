/* SPDX-License-Identifier: MIT
 *
 * Tables as text and as HTML.
 */
#include "cli/table.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/xml.h"

static const struct wg_table_column columns[] = {
    {"Job", WG_ALIGN_LEFT}, {"Energy (MJ)", WG_ALIGN_RIGHT}, {"Note", WG_ALIGN_LEFT}};

static void fill(struct wg_table *table)
{
    wg__table_init(table, columns, 3);
    wg__table_cell(table, "bert");
    wg__table_cell(table, "%.2f", 12.345);
    wg__table_cell(table, "a < b");
    wg__table_separate(table);
    wg__table_cell(table, "né日");
    wg__table_cell(table, "%d", 7);
    wg__table_emphasize(table);
    wg__table_cell(table, "%s", "");
}

static void aligns_columns_by_display_width(void **state)
{
    (void)state;
    struct wg_table table;
    struct wg_buffer out;
    wg__buffer_init(&out);
    fill(&table);
    wg__table_write(&table, false, &out);
    assert_false(out.failed);
    assert_string_equal(out.data, "Job   Energy (MJ)  Note\n"
                                  "────  ───────────  ─────\n"
                                  "bert        12.35  a < b\n"
                                  "────  ───────────  ─────\n"
                                  "né日            7  \n");
    wg__buffer_fini(&out);
    wg__table_fini(&table);
}

static void colours_only_when_asked(void **state)
{
    (void)state;
    struct wg_table table;
    struct wg_buffer plain, colored;
    wg__buffer_init(&plain);
    wg__buffer_init(&colored);
    fill(&table);
    wg__table_write(&table, false, &plain);
    wg__table_write(&table, true, &colored);
    assert_null(strchr(plain.data, '\033'));
    assert_non_null(strstr(colored.data, "          \033[1m7\033[0m"));
    wg__buffer_fini(&plain);
    wg__buffer_fini(&colored);
    wg__table_fini(&table);
}

static void keeps_the_terminal_safe_from_cells(void **state)
{
    (void)state;
    struct wg_table table;
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__table_init(&table, columns, 1);
    wg__table_cell(&table, "%s", "a\033[2Jb\nc\xff");
    wg__table_write(&table, false, &out);
    assert_non_null(strstr(out.data, "\na [2Jb c\xef\xbf\xbd\n"));
    wg__buffer_fini(&out);
    wg__table_fini(&table);
}

static void writes_only_a_header_without_rows(void **state)
{
    (void)state;
    struct wg_table table;
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__table_init(&table, columns, 1);
    wg__table_write(&table, false, &out);
    assert_string_equal(out.data, "Job\n───\n");
    wg__buffer_fini(&out);
    wg__table_fini(&table);
}

static void writes_well_formed_html(void **state)
{
    (void)state;
    struct wg_table table;
    struct wg_buffer out;
    wg__buffer_init(&out);
    fill(&table);
    wg__table_write_html(&table, "cost & \"time\"", &out);
    check_well_formed(out.data);
    assert_non_null(strstr(out.data, "<figcaption>cost &amp; &quot;time&quot;</figcaption>"));
    assert_non_null(strstr(out.data, "<td>a &lt; b</td>"));
    assert_non_null(strstr(out.data, "<td class=\"n\"><b>7</b></td>"));
    assert_int_equal(count_of(out.data, "<tr"), 3);
    assert_int_equal(count_of(out.data, "<tr class=\"line\">"), 1);
    wg__buffer_fini(&out);
    wg__table_fini(&table);
}

static void holds_many_rows(void **state)
{
    (void)state;
    struct wg_table table;
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__table_init(&table, columns, 2);
    for (int i = 0; i < 2000; i++) {
        wg__table_cell(&table, "row %d", i);
        wg__table_cell(&table, "%d", i * i);
    }
    wg__table_write(&table, false, &out);
    assert_int_equal(count_of(out.data, "\n"), 2002);
    assert_non_null(strstr(out.data, "row 1999      3996001\n"));
    wg__buffer_fini(&out);
    wg__table_fini(&table);
}

static void reports_want_of_memory_to_the_writer(void **state)
{
    (void)state;
    bool has_worked = false;
    for (size_t nth = 1; !has_worked; nth++) {
        struct wg_table table;
        struct wg_buffer text, html;
        wg__buffer_init(&text);
        wg__buffer_init(&html);
        wg__alloc_fail_from(nth);
        fill(&table);
        wg__table_write(&table, false, &text);
        wg__table_write_html(&table, NULL, &html);
        wg__alloc_fail_from(0);
        has_worked = !text.failed && !html.failed;
        assert_true(nth > 1 || text.failed);
        wg__buffer_fini(&text);
        wg__buffer_fini(&html);
        wg__table_fini(&table);
        wg__table_fini(&table); /* twice is allowed */
        assert_true(nth < 100);
    }
}

static void wants_no_colour_off_a_terminal(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(setenv("TERM", "xterm", 1), 0);
    assert_false(wg__wants_color(file));
    if (file != NULL)
        (void)fclose(file);
}

static void respects_no_color_and_dumb_terminals(void **state)
{
    (void)state;
    const int fd = posix_openpt(O_RDWR | O_NOCTTY);
    if (fd < 0 || grantpt(fd) != 0 || unlockpt(fd) != 0)
        skip();
    /* Without O_NOCTTY it would become our terminal, and closing it would end us with SIGHUP. */
    const int side = open(ptsname(fd), O_RDWR | O_NOCTTY | O_CLOEXEC);
    FILE *terminal = side < 0 ? NULL : fdopen(side, "r+");
    assert_non_null(terminal);
    (void)setenv("TERM", "xterm", 1);
    (void)unsetenv("NO_COLOR");
    assert_true(wg__wants_color(terminal));
    (void)setenv("NO_COLOR", "", 1);
    assert_true(wg__wants_color(terminal)); /* no-color.org: only when not empty */
    (void)setenv("NO_COLOR", "1", 1);
    assert_false(wg__wants_color(terminal));
    (void)unsetenv("NO_COLOR");
    (void)setenv("TERM", "dumb", 1);
    assert_false(wg__wants_color(terminal));
    if (terminal != NULL)
        (void)fclose(terminal);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aligns_columns_by_display_width),
        cmocka_unit_test(colours_only_when_asked),
        cmocka_unit_test(keeps_the_terminal_safe_from_cells),
        cmocka_unit_test(writes_only_a_header_without_rows),
        cmocka_unit_test(writes_well_formed_html),
        cmocka_unit_test(holds_many_rows),
        cmocka_unit_test(reports_want_of_memory_to_the_writer),
        cmocka_unit_test(wants_no_colour_off_a_terminal),
        cmocka_unit_test(respects_no_color_and_dumb_terminals),
    };
    return run_tests(tests);
}
