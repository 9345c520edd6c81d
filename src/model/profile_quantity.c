/* SPDX-License-Identifier: MIT
 *
 * Numbers and units of profilers.
 *
 * Threads: pure, any thread.
 */
#include "model/profile_quantity.h"

#include <stddef.h>
#include <string.h>

#include "base/number.h"

bool wg__quantity_parse(const char *text, double *out)
{
    char plain[64];
    size_t length = 0;
    double value = 0.0;
    for (; *text != '\0'; text++) {
        if (*text == ',')
            continue;
        if (length + 1 == sizeof plain)
            return false;
        plain[length++] = *text;
    }
    plain[length] = '\0';
    if (!wg__parse_double(plain, &value) || value < 0.0)
        return false;
    *out = value;
    return true;
}

struct unit {
    const char *name;
    double factor;
};

static double find(const struct unit *units, size_t count, const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(units[i].name) == length && strncmp(units[i].name, name, length) == 0)
            return units[i].factor;
    return 0.0;
}

double wg__quantity_time_unit(const char *unit)
{
    static const struct unit units[] = {
        {"ns", 1e-9},      {"nsec", 1e-9}, {"nsecond", 1e-9}, {"us", 1e-6},   {"\u00b5s", 1e-6},
        {"\u03bcs", 1e-6}, {"usec", 1e-6}, {"usecond", 1e-6}, {"ms", 1e-3},   {"msec", 1e-3},
        {"msecond", 1e-3}, {"s", 1.0},     {"sec", 1.0},      {"second", 1.0}};
    return find(units, sizeof units / sizeof *units, unit, strlen(unit));
}

double wg__quantity_memory_unit(const char *unit)
{
    static const struct unit units[] = {
        {"B", 1.0},           {"b", 1.0},      {"byte", 1.0},      {"bytes", 1.0},
        {"KB", 1e3},          {"Kbyte", 1e3},  {"kB", 1e3},        {"MB", 1e6},
        {"Mbyte", 1e6},       {"KiB", 1024.0}, {"Kibyte", 1024.0}, {"MiB", 1048576.0},
        {"Mibyte", 1048576.0}};
    return find(units, sizeof units / sizeof *units, unit, strcspn(unit, "/"));
}
