/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry of the CSV reader: any bytes give records or one-line errors, never a crash.
 *
 * Beyond what the sanitizers see, it checks that every record has a text in each column, that a
 * number that was read is finite and what strtod reads, that lines only go up, and that an error
 * has a code and a printable text without a line end.
 *
 *     CC=clang-19 meson setup build/fuzz -Dfuzz=true && ninja -C build/fuzz tests/fuzz/fuzz_csv
 *     build/fuzz/tests/fuzz/fuzz_csv -max_total_time=60 NEW_FOLDER tests/fuzz/corpus/csv
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"

/* libFuzzer prescribes the name. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static int stop(struct wg_csv *csv, enum wg_code code, const struct wg_error *err)
{
    require(code == WG_EDATA && err->code == code);
    require(err->text[0] != '\0' && strlen(err->text) < sizeof err->text);
    require(strpbrk(err->text, "\n\r\x1B") == NULL);
    wg__csv_close(csv);
    return 0;
}

static void read_fields(const struct wg_csv *csv, size_t size)
{
    size_t total = 0;
    for (size_t column = 0; column < wg__csv_column_count(csv); column++) {
        const char *text = wg__csv_text(csv, column);
        total += strlen(text);
        double value = 0.0;
        unsigned whole = 0;
        struct wg_error err;
        if (wg__csv_double(csv, column, &value, &err) == WG_OK)
            require(isfinite(value) && value == strtod(text, NULL));
        if (wg__csv_double_or_nan(csv, column, &value, &err) == WG_OK)
            require(!isinf(value));
        if (wg__csv_uint(csv, column, 3, 1000, &whole, &err) == WG_OK)
            require(whole >= 3 && whole <= 1000);
    }
    require(total <= size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wg_csv *csv = NULL;
    struct wg_error err = {0};
    enum wg_code code = wg__csv_open_memory(&csv, "fuzz.csv", (const char *)data, size, &err);
    if (code != WG_OK)
        return stop(NULL, code, &err);

    size_t line = 0;
    for (;;) {
        bool has_record = false;
        code = wg__csv_next(csv, &has_record, &err);
        if (code != WG_OK)
            return stop(csv, code, &err);
        if (!has_record)
            break;
        require(wg__csv_line(csv) > line);
        line = wg__csv_line(csv);
        read_fields(csv, size);
    }
    wg__csv_close(csv);
    return 0;
}
