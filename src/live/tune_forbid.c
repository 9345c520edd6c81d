/* SPDX-License-Identifier: MIT
 *
 * Forbidden combinations; see tune_forbid.h.
 */
#include "live/tune_forbid.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "live/tune_quantity.h"

enum { PART_SIZE = 128 };

static const double same = 1e-9; /* relative: two ways to write one level */

static const struct {
    const char *text; /* longer ones first */
    enum wg_tune_relation relation;
} relations[] = {{"==", WG_TUNE_EQUAL},    {"!=", WG_TUNE_UNEQUAL}, {"<=", WG_TUNE_AT_MOST},
                 {">=", WG_TUNE_AT_LEAST}, {"<", WG_TUNE_BELOW},    {">", WG_TUNE_ABOVE}};

static void copy_trimmed(char out[static PART_SIZE], const char *begin, const char *end)
{
    while (begin < end && isspace((unsigned char)*begin))
        begin++;
    while (end > begin && isspace((unsigned char)end[-1]))
        end--;
    (void)snprintf(out, PART_SIZE, "%.*s", (int)(end - begin), begin);
}

static bool find_level(const struct wg_tuning_knob *knob, const char *text, double *out)
{
    if (knob->labels == NULL)
        return wg__tune_quantity_parse(text, knob->role, out);
    for (size_t i = 0; i < knob->count; i++) {
        if (strcmp(knob->labels[i], text) == 0) {
            *out = knob->levels[i];
            return true;
        }
    }
    return false;
}

/* One condition, `begin` to `end`. */
static enum wg_code parse_condition(struct wg_tune_forbid *out, const char *text, const char *begin,
                                    const char *end, const struct wg_tuning_knob *knobs,
                                    size_t knob_count, struct wg_error *err)
{
    char name[PART_SIZE], level[PART_SIZE];
    const char *at = begin;
    while (at < end && strchr("=!<>", *at) == NULL)
        at++;
    size_t found = 0;
    const size_t count = sizeof relations / sizeof *relations;
    while (found < count && strncmp(at, relations[found].text, strlen(relations[found].text)) != 0)
        found++;
    if (at == end || found == count)
        return wg__fail(err, WG_EINVAL,
                        "'%s': expected NAME OP LEVEL, where OP is == != < <= > or >=", text);
    copy_trimmed(name, begin, at);
    copy_trimmed(level, at + strlen(relations[found].text), end);
    size_t k = 0;
    while (k < knob_count && strcmp(knobs[k].name, name) != 0)
        k++;
    if (k == knob_count)
        return wg__fail(err, WG_EINVAL, "'%s': '%s' is no knob of this tuning", text, name);
    if (knobs[k].role == WG_TUNING_CATEGORY && relations[found].relation > WG_TUNE_UNEQUAL)
        return wg__fail(err, WG_EINVAL, "'%s': %s is a category: only == and != compare it", text,
                        name);
    double value = 0;
    if (!find_level(&knobs[k], level, &value))
        return wg__fail(err, WG_EINVAL, "'%s': '%s' is no level of %s", text, level, name);
    if (out->count == WG_TUNE_CONDITIONS_MAX)
        return wg__fail(err, WG_EINVAL, "'%s': more than %d conditions", text,
                        WG_TUNE_CONDITIONS_MAX);
    out->conditions[out->count].knob = k;
    out->conditions[out->count].relation = relations[found].relation;
    out->conditions[out->count++].value = value;
    return WG_OK;
}

enum wg_code wg__tune_forbid_parse(struct wg_tune_forbid *out, const char *text,
                                   const struct wg_tuning_knob *knobs, size_t knob_count,
                                   struct wg_error *err)
{
    const char *begin = text;
    out->count = 0;
    for (;;) {
        const char *end = strstr(begin, "&&");
        const char *const stop = end != NULL ? end : begin + strlen(begin);
        const enum wg_code code = parse_condition(out, text, begin, stop, knobs, knob_count, err);
        if (code != WG_OK || end == NULL)
            return code;
        begin = end + 2;
    }
}

bool wg__tune_forbid_holds(const struct wg_tune_forbid *forbid, const struct wg_tuning_knob *knobs,
                           const size_t *levels)
{
    for (size_t i = 0; i < forbid->count; i++) {
        const size_t k = forbid->conditions[i].knob;
        const double value = knobs[k].levels[levels[k]], bound = forbid->conditions[i].value;
        const bool is_equal = fabs(value - bound) <= same * fabs(bound);
        bool holds = false;
        switch (forbid->conditions[i].relation) {
        case WG_TUNE_EQUAL:
            holds = is_equal;
            break;
        case WG_TUNE_UNEQUAL:
            holds = !is_equal;
            break;
        case WG_TUNE_AT_MOST:
            holds = is_equal || value < bound;
            break;
        case WG_TUNE_AT_LEAST:
            holds = is_equal || value > bound;
            break;
        case WG_TUNE_BELOW:
            holds = !is_equal && value < bound;
            break;
        case WG_TUNE_ABOVE:
            holds = !is_equal && value > bound;
            break;
        }
        if (!holds)
            return false;
    }
    return true;
}
