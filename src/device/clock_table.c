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

struct line {
    bool is_level;
    bool is_current;
    unsigned number;
    double hz;
};

/* Reads "0: 500Mhz *"; false when it is another line. */
static bool parse_line(const char *line, size_t length, struct line *out)
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
    *out = (struct line){.is_level = line[0] >= '0' && line[0] <= '9',
                         .is_current = memchr(line, '*', length) != NULL,
                         .hz = (double)mhz * MHZ};
    for (const char *digit = line; out->is_level && *digit >= '0' && *digit <= '9'; digit++)
        out->number = out->number * 10 + (unsigned)(*digit - '0');
    return true;
}

/* Puts a level where it belongs, unless it is there. */
static void insert(struct wg_clock_table *table, double hz, unsigned number)
{
    size_t at = table->count;
    while (at > 0 && table->levels_hz[at - 1] > hz)
        at--;
    if (table->count == WG_CLOCK_TABLE_LEVELS || (at > 0 && table->levels_hz[at - 1] >= hz))
        return;
    memmove(&table->levels_hz[at + 1], &table->levels_hz[at],
            (table->count - at) * sizeof table->levels_hz[0]);
    memmove(&table->numbers[at + 1], &table->numbers[at],
            (table->count - at) * sizeof table->numbers[0]);
    table->levels_hz[at] = hz;
    table->numbers[at] = number;
    table->count++;
}

bool wg__clock_table_parse(const char *text, struct wg_clock_table *out)
{
    *out = (struct wg_clock_table){.current_hz = NAN};
    bool any = false;
    for (const char *line = text; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        struct line parsed;
        if (parse_line(line, length, &parsed)) {
            any = true;
            if (parsed.is_level)
                insert(out, parsed.hz, parsed.number);
            if (parsed.is_current)
                out->current_hz = parsed.hz;
        }
        line += length;
        line += *line == '\n';
    }
    return any;
}
