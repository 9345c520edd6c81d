/* SPDX-License-Identifier: MIT
 *
 * The CSV reader: grammar, messages, gzip, numbers, limits, memory.
 */
#include "base/csv.h"

#include <limits.h>
#include <sys/stat.h>

#include <zlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/source.h"
#include "support/check.h"
#include "support/scratch.h"

/* Reads everything; records go to `out` as "line:field|field;". The error's code, WG_OK at the end.
 */
static enum wg_code drain(struct wg_csv *csv, size_t columns, struct wg_buffer *out,
                          struct wg_error *err)
{
    for (;;) {
        bool has_record = false;
        const enum wg_code code = wg__csv_next(csv, &has_record, err);
        if (code != WG_OK || !has_record)
            return code;
        wg__buffer_printf(out, "%zu:", wg__csv_line(csv));
        for (size_t i = 0; i < columns; i++)
            wg__buffer_printf(out, "%s%s", wg__csv_text(csv, i), i + 1 < columns ? "|" : ";");
    }
}

static void expect_records(const char *text, size_t columns, const char *expected)
{
    struct wg_csv *csv = NULL;
    struct wg_error err = {0};
    if (wg__csv_open_memory(&csv, "t.csv", text, strlen(text), &err) != WG_OK)
        fail_msg("'%s' does not open: %s", text, err.text);
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__buffer_puts(&out, "");
    if (drain(csv, columns, &out, &err) != WG_OK)
        fail_msg("'%s' fails: %s", text, err.text);
    assert_string_equal(out.data, expected);
    wg__buffer_fini(&out);
    wg__csv_close(csv);
}

/* The error that opening or reading `text` ends with. */
static void expect_error(const char *text, size_t length, const char *expected)
{
    struct wg_csv *csv = NULL;
    struct wg_error err = {0};
    struct wg_buffer out;
    wg__buffer_init(&out);
    enum wg_code code = wg__csv_open_memory(&csv, "t.csv", text, length, &err);
    const bool opened = code == WG_OK;
    if (opened)
        code = drain(csv, 1, &out, &err);
    assert_int_equal(code, WG_EDATA);
    assert_int_equal(err.code, WG_EDATA);
    assert_string_equal(err.text, expected);
    if (opened) { /* and there is no way past it */
        bool has_record = false;
        assert_int_equal(wg__csv_next(csv, &has_record, &err), WG_EDATA);
        assert_string_equal(err.text, "t.csv: reading ended at an earlier error");
    } else {
        assert_null(csv);
    }
    wg__buffer_fini(&out);
    wg__csv_close(csv);
}

static void reads_records_with_every_kind_of_line_end(void **state)
{
    (void)state;
    expect_records("a,b\n1,2\n3,4\n", 2, "2:1|2;3:3|4;");
    expect_records("a,b\r\n1,2\r\n3,4\r\n", 2, "2:1|2;3:3|4;");
    expect_records("a,b\n1,2\n3,4", 2, "2:1|2;3:3|4;");
    expect_records("a,b\n1,2\r\n3,4\r", 2, "2:1|2;3:3|4;");
    expect_records("a,b\n1,2\n\n\r\n\n", 2, "2:1|2;");
    expect_records("a,b", 2, "");
    expect_records("a,b\n", 2, "");
    expect_records("\xEF\xBB\xBF"
                   "a,b\n1,2\n",
                   2, "2:1|2;");
    expect_records("a,b\n,\n", 2, "2:|;");
    expect_records("a,b\n 1 ,\t2\n", 2, "2: 1 |\t2;");
}

static void reads_quoted_fields(void **state)
{
    (void)state;
    expect_records("a,b\n\"1,5\",\"x\"\n", 2, "2:1,5|x;");
    expect_records("a,b\n\"say \"\"hi\"\"\",\"\"\n", 2, "2:say \"hi\"|;");
    expect_records("a,b\n\"two\nlines\",\"three\r\nmore\n\"\nnext,1\n", 2,
                   "2:two\nlines|three\r\nmore\n;6:next|1;");
    expect_records("\"a\",\"b\"\r\n\"1\",\"2\"\r\n", 2, "2:1|2;");
    expect_records("a,b\n\"\"\"\",\"\"\"\"", 2, "2:\"|\";");
    expect_records("a,b\n5\" disk,x\"y\"\n", 2, "2:5\" disk|x\"y\";"); /* taken literally */
}

static void a_blank_line_is_a_record_where_there_is_one_column(void **state)
{
    (void)state;
    expect_records("a\n1\n\n\n2\n\n\n", 1, "2:1;3:;4:;5:2;");
    expect_records("a\n\n1", 1, "2:;3:1;");
    expect_records("a\n1\n\"\"\n", 1, "2:1;3:;");
}

#define EXPECT_ERROR(text, expected) expect_error((text), sizeof(text) - 1, (expected))

static void rejects_damaged_text_and_names_the_place(void **state)
{
    (void)state;
    EXPECT_ERROR("", "t.csv:1: the file is empty, expected a header line");
    EXPECT_ERROR("\xEF\xBB\xBF", "t.csv:1: the file is empty, expected a header line");
    EXPECT_ERROR("\n\n", "t.csv:1: the file is empty, expected a header line");
    EXPECT_ERROR("\na,b\n", "t.csv:1: a blank line, expected the header");
    EXPECT_ERROR("a,,c\n", "t.csv:1: column 2 has no name");
    EXPECT_ERROR("a,b,a\n", "t.csv:1: columns 1 and 3 are both 'a'");
    EXPECT_ERROR("a,b\n1,2\n3\n", "t.csv:3: expected 2 fields as in the header, found 1");
    EXPECT_ERROR("a,b\n1,2\n3,4,5,6\n", "t.csv:3: expected 2 fields as in the header, found 4");
    EXPECT_ERROR("a,b\n\"x\ny\",1,2\n", "t.csv:2: expected 2 fields as in the header, found 3");
    EXPECT_ERROR("a,b\n1,2\n\n3,4\n", "t.csv:3: a blank line between records");
    EXPECT_ERROR("a,b\n\n3,4\n", "t.csv:2: a blank line between records");
    EXPECT_ERROR("a,b\n1,\"2\"x\n", "t.csv:2: text behind the closing quote of field 2");
    EXPECT_ERROR("a,b\n1,\"2\" \n", "t.csv:2: text behind the closing quote of field 2");
    EXPECT_ERROR("a,b\n\"1\n\n,2", "t.csv:2: the quote that opens in field 1 is never closed");
    EXPECT_ERROR("a,b\n1,2\n\"1\",\"", "t.csv:3: the quote that opens in field 2 is never closed");
    EXPECT_ERROR("a,b\n1,2\rx\n", "t.csv:2: a carriage return without a line feed");
    EXPECT_ERROR("a,b\n\rx\n", "t.csv:2: a carriage return without a line feed");
    EXPECT_ERROR("a,b\n1,2\0\n", "t.csv:2: a zero byte in field 2: this is not a text file");
    EXPECT_ERROR("a,b\n\"1\0\",2\n", "t.csv:2: a zero byte in field 1: this is not a text file");
    EXPECT_ERROR("a\0,b\n", "t.csv:1: a zero byte in field 1: this is not a text file");
}

static void columns_are_found_by_name(void **state)
{
    (void)state;
    struct wg_csv *csv = NULL;
    struct wg_error err = {0};
    const char text[] = "power_limit,\"batch, size\",epoch\n1,2,3\n";
    assert_int_equal(wg__csv_open_memory(&csv, "t.csv", text, sizeof text - 1, &err), WG_OK);
    assert_int_equal(wg__csv_column_count(csv), 3);
    size_t column = 42;
    assert_int_equal(wg__csv_column(csv, "batch, size", &column, &err), WG_OK);
    assert_int_equal(column, 1);
    assert_true(wg__csv_has_column(csv, "epoch"));
    assert_false(wg__csv_has_column(csv, "Epoch"));
    assert_int_equal(wg__csv_column(csv, "energy", &column, &err), WG_EDATA);
    assert_string_equal(err.text, "t.csv: no column 'energy'; its columns are: "
                                  "power_limit, batch, size, epoch");
    assert_int_equal(column, 1);
    wg__csv_close(csv);
}

static struct wg_csv *open_loose(const char *text, struct wg_error *err)
{
    static const char *const marks[] = {"Kernel Name", "GrdX", NULL};
    struct wg_source source;
    struct wg_csv *csv = NULL;
    assert_int_equal(wg__source_open_memory(&source, "t.csv", text, strlen(text), err), WG_OK);
    return wg__csv_open_loose(&csv, &source, marks, err) == WG_OK ? csv : NULL;
}

/* ncu prints its talk before the header, and records of other lengths than that. */
static void a_loose_reader_takes_what_tools_print(void **state)
{
    (void)state;
    struct wg_error err = {0};
    struct wg_csv *csv = open_loose("==PROF== Connected to process 1 (a, b)\n2 \"x\"\n\n"
                                    "\"ID\",\"Kernel Name\",\"Value\",\"Value\",\"\"\n"
                                    "\"0\",\"k\",\"1\",\n\n\"1\"\n2,m,3,4,5,6,7\n",
                                    &err);
    assert_non_null(csv);
    assert_int_equal(wg__csv_column_count(csv), 5);
    size_t column = 0;
    assert_int_equal(wg__csv_column(csv, "Value", &column, &err), WG_OK);
    assert_int_equal(column, 2);
    struct wg_buffer out;
    wg__buffer_init(&out);
    assert_int_equal(drain(csv, 5, &out, &err), WG_OK);
    assert_string_equal(out.data, "5:0|k|1||;7:1||||;8:2|m|3|4|5;");
    wg__buffer_fini(&out);
    wg__csv_close(csv);

    csv = open_loose("GrdX\n\n1\n\n2\n", &err);
    assert_non_null(csv);
    wg__buffer_init(&out);
    assert_int_equal(drain(csv, 1, &out, &err), WG_OK);
    assert_string_equal(out.data, "3:1;5:2;");
    wg__buffer_fini(&out);
    wg__csv_close(csv);

    assert_null(open_loose("a,b\n1,2\n", &err));
    assert_string_equal(err.text, "t.csv:3: no header with a column 'Kernel Name'");
    assert_null(open_loose("", &err));
    assert_string_equal(err.text, "t.csv:1: no header with a column 'Kernel Name'");
}

static void a_long_list_of_columns_is_cut(void **state)
{
    (void)state;
    struct wg_buffer text;
    wg__buffer_init(&text);
    for (int i = 0; i < WG_CSV_COLUMNS_MAX; i++)
        wg__buffer_printf(&text, "%scolumn_with_a_long_name_so_that_it_needs_cutting_%d",
                          i ? "," : "", i);
    struct wg_csv *csv = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__csv_open_memory(&csv, "t.csv", text.data, text.length, &err), WG_OK);
    size_t column = 0;
    assert_int_equal(wg__csv_column(csv, "x", &column, &err), WG_EDATA);
    assert_string_equal(err.text + strlen(err.text) - 5, ", ...");
    wg__csv_close(csv);

    /* Names of any length meet the end of the list with any number of bytes left. */
    for (int width = 1; width <= 100; width++) {
        struct wg_buffer names;
        wg__buffer_init(&names);
        for (int i = 0; i < 100; i++)
            wg__buffer_printf(&names, "%s%0*d", i != 0 ? "," : "", width < 3 ? 3 : width, i);
        wg__buffer_printf(&names, ",%.*s", width % 3 + 1, "abc");
        assert_int_equal(wg__csv_open_memory(&csv, "t.csv", names.data, names.length, &err), WG_OK);
        assert_int_equal(wg__csv_column(csv, "x", &column, &err), WG_EDATA);
        assert_string_equal(err.text + strlen(err.text) - 5, ", ...");
        wg__csv_close(csv);
        wg__buffer_fini(&names);
    }

    wg__buffer_puts(&text, ",one_more");
    assert_int_equal(wg__csv_open_memory(&csv, "t.csv", text.data, text.length, &err), WG_EDATA);
    assert_string_equal(err.text, "t.csv:1: more than 4096 columns");
    wg__buffer_fini(&text);
}

/* One field of the second line through each of the readers. */
static struct wg_csv *open_field(const char *field, struct wg_buffer *text)
{
    wg__buffer_init(text);
    wg__buffer_printf(text, "value,rest\n%s,x\n", field);
    struct wg_csv *csv = NULL;
    bool has_record = false;
    assert_int_equal(wg__csv_open_memory(&csv, "t.csv", text->data, text->length, NULL), WG_OK);
    assert_int_equal(wg__csv_next(csv, &has_record, NULL), WG_OK);
    assert_true(has_record);
    return csv;
}

static void close_field(struct wg_csv *csv, struct wg_buffer *text)
{
    wg__csv_close(csv);
    wg__buffer_fini(text);
}

static void reads_numbers(void **state)
{
    (void)state;
    struct wg_buffer text;
    double value = 42.0;
    unsigned whole = 42;
    struct wg_csv *csv = open_field("1.25e2", &text);
    assert_int_equal(wg__csv_double(csv, 0, &value, NULL), WG_OK);
    assert_true(value == 125.0);
    close_field(csv, &text);
    csv = open_field("-0.5", &text);
    assert_int_equal(wg__csv_double_or_nan(csv, 0, &value, NULL), WG_OK);
    assert_true(value == -0.5);
    close_field(csv, &text);
    csv = open_field("NaN", &text);
    assert_int_equal(wg__csv_double_or_nan(csv, 0, &value, NULL), WG_OK);
    assert_true(isnan(value));
    close_field(csv, &text);
    csv = open_field("300", &text);
    assert_int_equal(wg__csv_uint(csv, 0, 300, 300, &whole, NULL), WG_OK);
    assert_int_equal(whole, 300);
    close_field(csv, &text);
    csv = open_field("4294967295", &text);
    assert_int_equal(wg__csv_uint(csv, 0, 0, UINT_MAX, &whole, NULL), WG_OK);
    assert_true(whole == UINT_MAX);
    close_field(csv, &text);
}

static void a_bad_number_names_line_column_and_what_was_expected(void **state)
{
    (void)state;
    static const struct {
        const char *field;
        const char *as_double;
        const char *as_uint;
    } cases[] = {
        {"abc", "'abc' is not a number", "'abc' is not a whole number from 1 to 64"},
        {"nan", "'nan' is not a number", "'nan' is not a whole number from 1 to 64"},
        {"inf", "'inf' is not a number", "'inf' is not a whole number from 1 to 64"},
        {" 1", "' 1' is not a number", "' 1' is not a whole number from 1 to 64"},
        {"1e999", "'1e999' is not a number", "'1e999' is not a whole number from 1 to 64"},
        {"", "the field is empty, expected a number",
         "the field is empty, expected a whole number from 1 to 64"},
        {"65", NULL, "'65' is not a whole number from 1 to 64"},
        {"0", NULL, "'0' is not a whole number from 1 to 64"},
        {"-1", NULL, "'-1' is not a whole number from 1 to 64"},
        {"1.0", NULL, "'1.0' is not a whole number from 1 to 64"},
        {"99999999999999999999", NULL, "'99999999999999999999' is not a whole number from 1 to 64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wg_buffer text;
        struct wg_csv *csv = open_field(cases[i].field, &text);
        struct wg_error err = {0};
        char expected[256];
        double value = 42.0;
        unsigned whole = 42;
        if (cases[i].as_double != NULL) {
            (void)snprintf(expected, sizeof expected, "t.csv:2: column 'value': %s",
                           cases[i].as_double);
            assert_int_equal(wg__csv_double(csv, 0, &value, &err), WG_EDATA);
            assert_string_equal(err.text, expected);
            if (strcmp(cases[i].field, "nan") != 0)
                assert_int_equal(wg__csv_double_or_nan(csv, 0, &value, NULL), WG_EDATA);
        }
        (void)snprintf(expected, sizeof expected, "t.csv:2: column 'value': %s", cases[i].as_uint);
        assert_int_equal(wg__csv_uint(csv, 0, 1, 64, &whole, &err), WG_EDATA);
        assert_string_equal(err.text, expected);
        assert_true(value == 42.0 && whole == 42);
        close_field(csv, &text);
    }
}

static void callers_report_in_the_same_style(void **state)
{
    (void)state;
    struct wg_buffer text;
    struct wg_error err = {0};
    struct wg_csv *csv = open_field("7", &text);
    assert_int_equal(wg__csv_fail(csv, 1, &err, "%d is odd", 7), WG_EDATA);
    assert_string_equal(err.text, "t.csv:2: column 'rest': 7 is odd");
    close_field(csv, &text);
}

static void long_names_and_fields_leave_the_message_whole(void **state)
{
    (void)state;
    struct wg_buffer name;
    wg__buffer_init(&name);
    for (int i = 0; i < 200; i++)
        wg__buffer_puts(&name, "\xC3\xA9"); /* cut in the middle of none */
    wg__buffer_puts(&name, "/end.csv");
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__buffer_printf(&text, "value\n%s\n", name.data);
    struct wg_csv *csv = NULL;
    bool has_record = false;
    double value = 0.0;
    struct wg_error err = {0};
    assert_int_equal(wg__csv_open_memory(&csv, name.data, text.data, text.length, NULL), WG_OK);
    assert_int_equal(wg__csv_next(csv, &has_record, NULL), WG_OK);
    assert_int_equal(wg__csv_double(csv, 0, &value, &err), WG_EDATA);
    assert_memory_equal(err.text, "...\xC3\xA9", 5);
    assert_non_null(strstr(err.text, "\xC3\xA9/end.csv:2: column 'value': '\xC3\xA9"));
    assert_non_null(strstr(err.text, "\xC3\xA9' is not a number"));
    wg__csv_close(csv);
    wg__buffer_fini(&text);
    wg__buffer_fini(&name);
}

static void a_record_may_be_a_mebibyte_and_no_longer(void **state)
{
    (void)state;
    enum { LIMIT = 1 << 20 };
    char *text = malloc(LIMIT + 16);
    assert_non_null(text);
    text[0] = 'a';
    text[1] = '\n';
    memset(text + 2, 'x', LIMIT);
    text[2 + LIMIT - 1] = '\n'; /* LIMIT - 1 bytes and the zero that ends them */
    struct wg_csv *csv = NULL;
    bool has_record = false;
    assert_int_equal(wg__csv_open_memory(&csv, "t.csv", text, LIMIT + 2, NULL), WG_OK);
    assert_int_equal(wg__csv_next(csv, &has_record, NULL), WG_OK);
    assert_int_equal(strlen(wg__csv_text(csv, 0)), LIMIT - 1);
    wg__csv_close(csv);
    text[2 + LIMIT - 1] = 'x';
    expect_error(text, LIMIT + 2, "t.csv:2: a record is longer than 1048576 bytes");
    free(text);
}

/* A table large enough for several windows of the reader. */
static void make_table(struct wg_buffer *text, struct wg_buffer *expected)
{
    wg__buffer_init(text);
    wg__buffer_init(expected);
    wg__buffer_puts(text, "index,square,name\r\n");
    for (unsigned i = 0; i < 6000; i++) {
        wg__buffer_printf(text, "%u,%u,\"row, \"\"%u\"\"\"\r\n", i, i * i, i);
        wg__buffer_printf(expected, "%u:%u|%u|row, \"%u\";", i + 2, i, i * i, i);
    }
}

static void write_gzip(const char *path, const char *mode, const char *bytes, size_t length)
{
    gzFile file = gzopen(path, mode);
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)length), (int)length);
    assert_int_equal(gzclose(file), Z_OK);
}

static void expect_file(const char *path, const char *expected)
{
    struct wg_csv *csv = NULL;
    struct wg_error err = {0};
    struct wg_buffer out;
    wg__buffer_init(&out);
    if (wg__csv_open(&csv, path, &err) != WG_OK || drain(csv, 3, &out, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_string_equal(out.data, expected);
    wg__buffer_fini(&out);
    wg__csv_close(csv);
}

static void reads_files_plain_gzipped_and_in_several_members(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_buffer text;
    struct wg_buffer expected;
    scratch_open(&scratch);
    make_table(&text, &expected);
    const char *path = scratch_path(&scratch, "plain.csv.gz"); /* the name tells nothing */
    scratch_write(path, text.data, text.length);
    expect_file(path, expected.data);
    path = scratch_path(&scratch, "zipped.csv");
    write_gzip(path, "wb", text.data, text.length);
    expect_file(path, expected.data);
    write_gzip(path, "wb", text.data, 70001);
    write_gzip(path, "ab", text.data + 70001, text.length - 70001);
    expect_file(path, expected.data);
    wg__buffer_fini(&text);
    wg__buffer_fini(&expected);
    scratch_close(&scratch);
}

/* Reads the file to its end or an error. */
static enum wg_code drain_file(const char *path, struct wg_error *err)
{
    struct wg_csv *csv = NULL;
    enum wg_code code = wg__csv_open(&csv, path, err);
    bool has_record = true;
    while (code == WG_OK && has_record)
        code = wg__csv_next(csv, &has_record, err);
    wg__csv_close(csv);
    return code;
}

static void a_gzip_file_that_is_cut_off_is_an_error_at_every_length(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_buffer text;
    struct wg_buffer expected;
    scratch_open(&scratch);
    make_table(&text, &expected);
    const char *path = scratch_path(&scratch, "t.csv.gz");
    write_gzip(path, "wb", text.data, text.length);
    size_t length = 0;
    char *bytes = scratch_read(path, &length);
    for (size_t cut = 2; cut < length; cut += cut < 64 || cut + 64 > length ? 1 : 1499) {
        scratch_write(path, bytes, cut);
        struct wg_error err = {0};
        assert_int_equal(drain_file(path, &err), WG_EDATA);
        if (strstr(err.text, ": the gzip file is cut off") == NULL)
            fail_msg("cut at %zu: %s", cut, err.text);
    }
    free(bytes);
    wg__buffer_fini(&text);
    wg__buffer_fini(&expected);
    scratch_close(&scratch);
}

static void a_gzip_file_with_a_changed_byte_is_an_error(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_buffer text;
    struct wg_buffer expected;
    scratch_open(&scratch);
    make_table(&text, &expected);
    const char *path = scratch_path(&scratch, "t.csv.gz");
    write_gzip(path, "wb", text.data, text.length);
    size_t length = 0;
    char *bytes = scratch_read(path, &length);
    for (size_t at = 10; at<length; at += at + 16> length ? 1 : 1499) { /* behind the header */
        bytes[at] = (char)(bytes[at] ^ 0x10);
        scratch_write(path, bytes, length);
        struct wg_error err = {0};
        if (drain_file(path, &err) != WG_EDATA)
            fail_msg("the changed byte %zu was not noticed", at);
        bytes[at] = (char)(bytes[at] ^ 0x10);
    }
    bytes[length - 5] = (char)(bytes[length - 5] ^ 1); /* of the check sum */
    scratch_write(path, bytes, length);
    struct wg_error err = {0};
    assert_int_equal(drain_file(path, &err), WG_EDATA);
    assert_non_null(strstr(err.text, ": the gzip file is damaged: incorrect data check"));
    free(bytes);
    wg__buffer_fini(&text);
    wg__buffer_fini(&expected);
    scratch_close(&scratch);
}

static void files_that_cannot_be_read_are_told_apart(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    struct wg_error err = {0};
    struct wg_csv *csv = NULL;
    assert_int_equal(wg__csv_open(&csv, scratch_path(&scratch, "none"), &err), WG_ENOENT);
    assert_non_null(strstr(err.text, "/none: cannot open: No such file or directory"));
    assert_int_equal(wg__csv_open(&csv, scratch.folder, &err), WG_EIO);
    assert_non_null(strstr(err.text, ": cannot read: Is a directory"));
    const char *path = scratch_path(&scratch, "secret");
    scratch_write(path, "a\n", 2);
    assert_int_equal(chmod(path, 0), 0);
    const bool is_root = geteuid() == 0; /* who may read everything */
    if (is_root)
        assert_int_equal(chmod(scratch.folder, 0755) + seteuid(65534), 0);
    const enum wg_code code = wg__csv_open(&csv, path, &err);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(code, WG_EPERM);
    assert_non_null(strstr(err.text, "/secret: cannot open: Permission denied"));
    scratch_write(scratch_path(&scratch, "empty"), "", 0);
    assert_int_equal(wg__csv_open(&csv, scratch_path(&scratch, "empty"), &err), WG_EDATA);
    assert_non_null(strstr(err.text, "/empty:1: the file is empty"));
    assert_null(csv);
    wg__csv_close(NULL);
    scratch_close(&scratch);
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "t.csv");
    char text[4096] = "a,b\n\"";
    memset(text + 5, 'x', sizeof text - 10); /* makes the record grow */
    memcpy(text + sizeof text - 5, "\",1\n", 5);
    scratch_write(path, text, sizeof text - 1);
    size_t failures = 0;
    for (size_t nth = 1;; nth++) {
        struct wg_error err = {0};
        wg__alloc_fail_from(nth);
        const enum wg_code code = drain_file(path, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        assert_non_null(strstr(err.text, "/t.csv: out of memory"));
        failures++;
    }
    assert_in_range(failures, 6, 12); /* name, window, reader, record, column names, growth */
    scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_records_with_every_kind_of_line_end),
        cmocka_unit_test(reads_quoted_fields),
        cmocka_unit_test(a_blank_line_is_a_record_where_there_is_one_column),
        cmocka_unit_test(rejects_damaged_text_and_names_the_place),
        cmocka_unit_test(columns_are_found_by_name),
        cmocka_unit_test(a_loose_reader_takes_what_tools_print),
        cmocka_unit_test(a_long_list_of_columns_is_cut),
        cmocka_unit_test(reads_numbers),
        cmocka_unit_test(a_bad_number_names_line_column_and_what_was_expected),
        cmocka_unit_test(callers_report_in_the_same_style),
        cmocka_unit_test(long_names_and_fields_leave_the_message_whole),
        cmocka_unit_test(a_record_may_be_a_mebibyte_and_no_longer),
        cmocka_unit_test(reads_files_plain_gzipped_and_in_several_members),
        cmocka_unit_test(a_gzip_file_that_is_cut_off_is_an_error_at_every_length),
        cmocka_unit_test(a_gzip_file_with_a_changed_byte_is_an_error),
        cmocka_unit_test(files_that_cannot_be_read_are_told_apart),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
    };
    return run_tests(tests);
}
