/* SPDX-License-Identifier: MIT
 *
 * Tables of clocks.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#include "device/clock_table.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"

static const double MHZ = 1e6;

/* Reads "0: 500Mhz *"; false when it is another line. */
static bool parse_line(const char *line, size_t length, bool *is_level_out, bool *is_current_out,
                       double *out_hz)
{
    const char *colon = memchr(line, ':', length);
    if (colon == NULL)
        return false;
    const char *end = line + length;
    const char *digits = colon + 1;
    while (digits < end && *digits == ' ')
        digits++;
    const size_t count = strspn(digits, "0123456789");
    char text[16];
    if (count == 0 || count >= sizeof text || strncasecmp(digits + count, "Mhz", 3) != 0)
        return false;
    memcpy(text, digits, count);
    text[count] = '\0';
    uint64_t mhz = 0;
    if (!wg__parse_uint64(text, &mhz))
        return false;
    *out_hz = (double)mhz * MHZ;
    *is_level_out = line[0] >= '0' && line[0] <= '9';
    *is_current_out = memchr(line, '*', length) != NULL;
    return true;
}

/* Puts a level where it belongs, unless it is there. */
static void insert(struct wg_clock_table *table, double hz)
{
    size_t at = table->count;
    while (at > 0 && table->levels_hz[at - 1] > hz)
        at--;
    if (table->count == WG_CLOCK_TABLE_LEVELS || (at > 0 && table->levels_hz[at - 1] >= hz))
        return;
    memmove(&table->levels_hz[at + 1], &table->levels_hz[at],
            (table->count - at) * sizeof table->levels_hz[0]);
    table->levels_hz[at] = hz;
    table->count++;
}

bool wg__clock_table_parse(const char *text, struct wg_clock_table *out)
{
    *out = (struct wg_clock_table){.current_hz = NAN};
    bool any = false;
    for (const char *line = text; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        bool is_level = false;
        bool is_current = false;
        double hz = 0.0;
        if (parse_line(line, length, &is_level, &is_current, &hz)) {
            any = true;
            if (is_level)
                insert(out, hz);
            if (is_current)
                out->current_hz = hz;
        }
        line += length;
        line += *line == '\n';
    }
    return any;
}
