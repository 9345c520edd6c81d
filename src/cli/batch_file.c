/* SPDX-License-Identifier: MIT
 *
 * Batch sizes from a file; see batch_file.h.
 */
#include "cli/batch_file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/csv.h"
#include "store/store.h"

static int compare(const void *a, const void *b)
{
    const unsigned one = *(const unsigned *)a, two = *(const unsigned *)b;
    return (one > two) - (one < two);
}

/* All rows, in the file's order. */
static enum wg_code read_rows(struct wg_csv *csv, unsigned *sizes, size_t *count_out,
                              struct wg_error *err)
{
    size_t column = 0;
    bool has_record = true;
    *count_out = 0;
    enum wg_code code = wg__csv_column(csv, "batch_size", &column, err);
    if (code == WG_OK)
        code = wg__csv_next(csv, &has_record, err);
    for (; code == WG_OK && has_record; code = wg__csv_next(csv, &has_record, err)) {
        unsigned size = 0;
        if (*count_out == WG_BATCH_FILE_ROWS_MAX)
            return wg__csv_fail(csv, column, err, "more than %d batch sizes",
                                WG_BATCH_FILE_ROWS_MAX);
        code = wg__csv_uint(csv, column, 1, WG_STORE_BATCH_MAX, &size, err);
        if (code != WG_OK)
            return code;
        for (size_t i = 0; i < *count_out; i++)
            if (sizes[i] == size)
                return wg__csv_fail(csv, column, err, "%u stands there twice", size);
        sizes[(*count_out)++] = size;
    }
    return code;
}

enum wg_code wg__batch_file_list(const char *path, struct wg_buffer *out, struct wg_error *err)
{
    unsigned sizes[WG_BATCH_FILE_ROWS_MAX];
    size_t count = 0;
    struct wg_csv *csv = NULL;
    enum wg_code code = wg__csv_open(&csv, path, err);
    if (code == WG_OK)
        code = read_rows(csv, sizes, &count, err);
    if (code == WG_OK && count == 0)
        code = wg__fail(err, WG_EDATA, "%s: no batch size below the header", path);
    wg__csv_close(csv);
    if (code != WG_OK)
        return code;
    qsort(sizes, count, sizeof sizes[0], compare);
    for (size_t i = 0; i < count; i++)
        wg__buffer_printf(out, "%s%u", i > 0 ? "," : "", sizes[i]);
    return out->failed ? wg__fail(err, WG_ENOMEM, "out of memory") : WG_OK;
}

/* `from` stands where "from:FILE" begins within `knob`. */
static enum wg_code expand(const char *knob, const char *from, struct wg_arena *arena,
                           const char **out, struct wg_error *err)
{
    struct wg_buffer text;
    const char *const file = from + strlen("from:");
    const char *const rest = file + strcspn(file, ":");
    char path[PATH_MAX];
    if (rest == file || (size_t)(rest - file) >= sizeof path)
        return wg__fail(err, WG_EINVAL,
                        "--knob: '%s': expected from:FILE, a CSV file with a column batch_size",
                        knob);
    memcpy(path, file, (size_t)(rest - file));
    path[rest - file] = '\0';
    wg__buffer_init(&text);
    wg__buffer_append(&text, knob, (size_t)(from - knob));
    enum wg_code code = wg__batch_file_list(path, &text, err);
    wg__buffer_puts(&text, rest);
    if (code == WG_OK) {
        *out = text.failed ? NULL : wg__arena_strdup(arena, text.data);
        code = *out != NULL ? WG_OK : wg__fail(err, WG_ENOMEM, "out of memory");
    }
    wg__buffer_fini(&text);
    return code;
}

enum wg_code wg__batch_file_knobs(const struct wg_option_list *knobs, struct wg_arena *arena,
                                  struct wg_option_list *out, struct wg_error *err)
{
    *out = *knobs;
    for (size_t i = 0; i < knobs->count; i++) {
        const char *const equals = strchr(knobs->items[i], '=');
        if (equals == NULL || strncmp(equals + 1, "from:", strlen("from:")) != 0)
            continue;
        const enum wg_code code = expand(knobs->items[i], equals + 1, arena, &out->items[i], err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}
