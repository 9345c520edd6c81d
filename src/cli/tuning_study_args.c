/* SPDX-License-Identifier: MIT
 *
 * Parsing what `wattgov simulate tuning` is told: see tuning_study_args.h.
 *
 * Threads: pure.
 */
#include "cli/tuning_study_args.h"

#include <stdbool.h>
#include <string.h>

#include "base/expression.h"
#include "base/number.h"
#include "cli/options.h"
#include "live/tune_goal.h"

enum { ROLE_WORD_MAX = 32 };

static enum wg_code fail_memory(struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "out of memory");
}

/* A copy of `length` bytes, ended by a zero byte. */
static char *copy_part(struct wg_arena *arena, const char *text, size_t length)
{
    char *copy = wg__arena_alloc(arena, length + 1, 1);
    if (copy != NULL)
        memcpy(copy, text, length);
    return copy;
}

enum wg_code wg__parse_matches(const char *option, const char *text, struct wg_arena *arena,
                               struct wg_tuning_match *matches, size_t *count, size_t max,
                               struct wg_error *err)
{
    for (const char *part = text; part != NULL;) {
        const char *comma = strchr(part, ',');
        const size_t length = comma != NULL ? (size_t)(comma - part) : strlen(part);
        const char *equals = memchr(part, '=', length);
        if (equals == NULL || equals == part)
            return wg__option_reject(err, option, text, "COLUMN=VALUE, several with commas");
        if (*count == max)
            return wg__fail(err, WG_EINVAL, "--%s: more than %zu conditions", option, max);
        const size_t name = (size_t)(equals - part);
        matches[*count].column = copy_part(arena, part, name);
        matches[*count].value = copy_part(arena, equals + 1, length - name - 1);
        if (matches[*count].column == NULL || matches[*count].value == NULL)
            return fail_memory(err);
        ++*count;
        part = comma != NULL ? comma + 1 : NULL;
    }
    return WG_OK;
}

enum wg_code wg__parse_axis(const char *text, struct wg_arena *arena, struct wg_tuning_axis *out,
                            struct wg_error *err)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon == text)
        return wg__option_reject(err, "knob", text, "COLUMN:ROLE, as in gpu_hz:gpu_clock");
    if (!wg__tuning_role_parse(colon + 1, &out->role)) {
        const char *known[WG_TUNING_ROLE_COUNT];
        for (size_t i = 0; i < WG_TUNING_ROLE_COUNT; i++)
            known[i] = wg__tuning_role_word((enum wg_tuning_role)i);
        return wg__option_reject_name("knob", colon + 1, "a role", known, WG_TUNING_ROLE_COUNT,
                                      err);
    }
    out->column = copy_part(arena, text, (size_t)(colon - text));
    return out->column != NULL ? WG_OK : fail_memory(err);
}

/* A bound with a unit is in SI: the columns must be too, or the two differ by a thousand. */
static enum wg_code check_unit(const char *text, const struct wg_tune_bound *told,
                               const struct wg_tuning_bound *bound, struct wg_error *err)
{
    struct wg_expression *expression = NULL;
    struct wg_error cause = {0};
    const enum wg_code code = wg__expression_compile(&expression, bound->expression, &cause);
    if (code != WG_OK)
        return wg__fail(err, code, "--limit: %s", cause.text);
    const bool is_si = wg__tune_names_tell_si(expression);
    const bool clashes = wg__tune_bound_clashes(told, expression, bound->expression);
    wg__expression_free(expression);
    if (clashes)
        return wg__fail(err, WG_EINVAL,
                        "--limit '%s': the bound's unit is not that of '%s', whose name tells "
                        "another",
                        text, bound->expression);
    return is_si ? WG_OK
                 : wg__fail(err, WG_EINVAL,
                            "--limit '%s': the bound has a unit, but no column's name tells that "
                            "it is in SI (as those do that end in _s, _j or _w): write it as the "
                            "column has it, without a unit",
                            text);
}

enum wg_code wg__parse_bound(const char *text, struct wg_arena *arena, struct wg_tuning_bound *out,
                             struct wg_error *err)
{
    static const char accepted[] =
        "[KIND:]EXPRESSION<=BOUND or >=BOUND with a BOUND above 0, as 0.1, 100ms or 1.5x";
    const char *sign = strstr(text, "<=");
    *out = (struct wg_tuning_bound){.is_minimum = sign == NULL};
    if (sign == NULL)
        sign = strstr(text, ">=");
    struct wg_tune_bound bound;
    if (sign == NULL || !wg__tune_bound_parse(sign + 2, &bound))
        return wg__option_reject(err, "limit", text, accepted);
    out->is_relative = bound.is_relative;
    out->value = bound.value;
    out->kind = out->is_minimum ? WG_TUNING_OTHER : WG_TUNING_TIME;
    const char *start = wg__tune_kind_take(text, &out->kind);
    const char *end = sign;
    while (end > start && end[-1] == ' ')
        end--;
    if (start >= end)
        return wg__option_reject(err, "limit", text, accepted);
    out->expression = copy_part(arena, start, (size_t)(end - start));
    if (out->expression == NULL)
        return fail_memory(err);
    return bound.has_unit ? check_unit(text, &bound, out, err) : WG_OK;
}

enum wg_code wg__parse_failure(const char *text, struct wg_arena *arena,
                               struct wg_tuning_failures *failures, struct wg_error *err)
{
    static const char refuse[] = "refuse:";
    const struct {
        const char *prefix;
        double *value;
        double min, max; /* open below for 1 */
    } kinds[] = {
        {"crash:", &failures->crash, 0, 0.9},     {"hang:", &failures->hang, 0, 0.9},
        {"restart:", &failures->restart, 0, 0.9}, {"oom:", &failures->out_of_memory, 0, 0.95},
        {"cut:", &failures->cut, 1, 1000},
    };
    if (strncmp(text, refuse, sizeof refuse - 1) == 0)
        return wg__parse_matches("fail", text + sizeof refuse - 1, arena, failures->refusals,
                                 &failures->refusal_count, WG_TUNING_REFUSALS_MAX, err);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const size_t length = strlen(kinds[i].prefix);
        double value = 0;
        if (strncmp(text, kinds[i].prefix, length) == 0 &&
            wg__parse_double(text + length, &value) && value >= kinds[i].min &&
            value <= kinds[i].max && value != 1) {
            *kinds[i].value = value;
            return WG_OK;
        }
    }
    return wg__option_reject(err, "fail", text,
                             "crash:SHARE, hang:SHARE or restart:SHARE of 0..0.9, oom:SHARE of "
                             "0..0.95, cut:FACTOR above 1, or refuse:COLUMN=VALUE");
}

enum wg_code wg__parse_policy(const char *option, const char *text, enum wg_tuner_policy *out,
                              struct wg_error *err)
{
    if (wg__tuner_policy_parse(text, out))
        return WG_OK;
    const char *known[WG_TUNER_POLICY_COUNT];
    for (size_t i = 0; i < WG_TUNER_POLICY_COUNT; i++)
        known[i] = wg__tuner_policy_word((enum wg_tuner_policy)i);
    return wg__option_reject_name(option, text, "a policy", known, WG_TUNER_POLICY_COUNT, err);
}

enum wg_code wg__parse_run(const char *option, const char *text, enum wg_tuner_policy *policy,
                           uint64_t *seed, struct wg_error *err)
{
    const char *colon = strrchr(text, ':');
    const size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    char word[ROLE_WORD_MAX];
    if (colon == NULL || length >= sizeof word || !wg__parse_uint64(colon + 1, seed))
        return wg__option_reject(err, option, text, "POLICY:SEED, as in wattgov:1");
    memcpy(word, text, length);
    word[length] = '\0';
    return wg__parse_policy(option, word, policy, err);
}
