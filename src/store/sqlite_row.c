/* SPDX-License-Identifier: MIT
 *
 * Reading a row of SQLite without trusting it.
 *
 * SQLite checks types when it writes; what it finds in a file it gives as it is, and half of a page
 * that was lost still makes rows. So each value is read with the range that it was written in, and
 * the first that lies outside is noted in the row. The reader goes on with a harmless value, and
 * asks once, at the end, whether the row was whole.
 *
 * Threads: one at a time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "store/sqlite.h"

static void note(struct wg_sqlite_row *row, int column)
{
    if (!row->is_damaged)
        row->wrong = column;
    row->is_damaged = true;
}

int64_t wg__sqlite_int(struct wg_sqlite_row *row, int column, int64_t min, int64_t max)
{
    const int64_t value = sqlite3_column_int64(row->values, column);
    if (sqlite3_column_type(row->values, column) == SQLITE_INTEGER && value >= min && value <= max)
        return value;
    note(row, column);
    return min;
}

double wg__sqlite_real(struct wg_sqlite_row *row, int column, double min, double max)
{
    const int type = sqlite3_column_type(row->values, column);
    const double value = sqlite3_column_double(row->values, column);
    if ((type == SQLITE_FLOAT || type == SQLITE_INTEGER) && value >= min && value <= max)
        return value;
    note(row, column);
    return NAN;
}

double wg__sqlite_real_or_nan(struct wg_sqlite_row *row, int column, double min, double max)
{
    if (sqlite3_column_type(row->values, column) == SQLITE_NULL)
        return NAN;
    return wg__sqlite_real(row, column, min, max);
}

void wg__sqlite_text(struct wg_sqlite_row *row, int column, char *out, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(row->values, column);
    const size_t length = (size_t)sqlite3_column_bytes(row->values, column);
    out[0] = '\0';
    if (text == NULL || sqlite3_column_type(row->values, column) != SQLITE_TEXT || length >= size ||
        strlen(text) != length || !wg__utf8_is_plain(text)) {
        note(row, column);
        return;
    }
    memcpy(out, text, length + 1);
}

enum wg_code wg__sqlite_damaged(const struct wg_sqlite *store, const char *what,
                                struct wg_error *err)
{
    return wg__fail(err, WG_EDATA,
                    "store '%s' is damaged: %s; restore it from a copy, or move it away to begin "
                    "anew",
                    store->path, what);
}

enum wg_code wg__sqlite_check_row(const struct wg_sqlite *store, const struct wg_sqlite_row *row,
                                  const char *what, int64_t id, struct wg_error *err)
{
    if (!row->is_damaged)
        return WG_OK;
    char text[128];
    (void)snprintf(text, sizeof text, "%s %lld has no '%s' that could be", what, (long long)id,
                   sqlite3_column_name(row->values, row->wrong));
    return wg__sqlite_damaged(store, text, err);
}
