/* SPDX-License-Identifier: MIT
 *
 * Reading dimensions: numbers with one separator between each two, in brackets or not.
 *
 * Threads: pure, any thread.
 */
#include "model/launch_dims.h"

#include <string.h>

static const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

/* The digits at `p`; NULL when there are none or too many. */
static const char *read_number(const char *p, uint64_t *out)
{
    uint64_t value = 0;
    const char *start = p;
    for (; *p >= '0' && *p <= '9'; p++) {
        value = value * 10 + (uint64_t)(*p - '0');
        if (value > INT32_MAX)
            return NULL;
    }
    *out = value;
    return p != start && value != 0 ? p : NULL;
}

/* Passes 'x', ',' or blanks between two numbers; NULL when there is no number behind. */
static const char *read_separator(const char *p)
{
    const char *next = skip_blanks(p);
    if (*next == 'x' || *next == 'X' || *next == ',' || *next == '*')
        return skip_blanks(next + 1);
    return next != p && *next >= '0' && *next <= '9' ? next : NULL;
}

bool wg__launch_dims_parse(const char *text, uint64_t out[WG_LAUNCH_DIMS], size_t *count)
{
    static const char openers[] = "([{", closers[] = ")]}";
    uint64_t dims[WG_LAUNCH_DIMS] = {1, 1, 1};
    size_t n = 0;
    const char *p = skip_blanks(text);
    const char *opener = *p != '\0' ? strchr(openers, *p) : NULL;
    if (opener != NULL)
        p = skip_blanks(p + 1);
    while (n < WG_LAUNCH_DIMS) {
        p = read_number(p, &dims[n]);
        if (p == NULL)
            return false;
        n++;
        const char *next = n < WG_LAUNCH_DIMS ? read_separator(p) : NULL;
        if (next == NULL)
            break;
        p = next;
    }
    p = skip_blanks(p);
    if (opener != NULL && *p++ != closers[opener - openers])
        return false;
    if (*skip_blanks(p) != '\0')
        return false;
    memcpy(out, dims, sizeof dims);
    if (count != NULL)
        *count = n;
    return true;
}
