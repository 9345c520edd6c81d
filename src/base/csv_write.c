/* SPDX-License-Identifier: MIT
 *
 * Writing fields of CSV: see csv_write.h.
 */
#include "base/csv_write.h"

#include <string.h>

#include "base/buffer.h"
#include "base/number.h"

void wg__csv_put(struct wg_buffer *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        wg__buffer_puts(out, text);
        return;
    }
    wg__buffer_puts(out, "\"");
    for (; *text != '\0'; text++)
        wg__buffer_append(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    wg__buffer_puts(out, "\"");
}

void wg__csv_put_double(struct wg_buffer *out, double value)
{
    char text[WG_DOUBLE_TEXT_SIZE];
    wg__format_double(text, value);
    wg__buffer_puts(out, text);
}
