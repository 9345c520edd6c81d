/* SPDX-License-Identifier: MIT
 *
 * Objective and limits; see tune_goal.h.
 */
#include "live/tune_goal.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/expression.h"
#include "base/number.h"
#include "live/workload_figures.h"

static const double nudge = 1e-4; /* relative, of a numerical derivative */

static const struct {
    const char *word;
    enum wg_tuning_kind kind;
} kinds[] = {{"time", WG_TUNING_TIME}, {"energy", WG_TUNING_ENERGY}, {"other", WG_TUNING_OTHER}};

const char *wg__tuning_kind_word(enum wg_tuning_kind kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == kind)
            return kinds[i].word;
    return "other";
}

static bool has_end(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Energy counts before time: joules per second are watts. */
static enum wg_tuning_kind kind_of_names(const struct wg_expression *expression)
{
    bool has_time = false;
    for (size_t i = 0; i < wg__expression_name_count(expression); i++) {
        const char *name = wg__expression_name(expression, i);
        if (has_end(name, "_j") || has_end(name, "_w"))
            return WG_TUNING_ENERGY;
        has_time |= has_end(name, "_s") && !has_end(name, "per_s");
    }
    return has_time ? WG_TUNING_TIME : WG_TUNING_OTHER;
}

const char *wg__tune_kind_take(const char *text, enum wg_tuning_kind *kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t length = strlen(kinds[i].word);
        if (strncmp(text, kinds[i].word, length) == 0 && text[length] == ':') {
            *kind = kinds[i].kind;
            return text + length + 1;
        }
    }
    return text;
}

/* `text` of `length` bytes: "KIND:EXPRESSION". */
static enum wg_code take_expression(struct wg_tune_term *term, const char *text, size_t length,
                                    struct wg_error *err)
{
    const char *rest = wg__tune_kind_take(text, &term->kind);
    term->is_kind_said = rest != text;
    length -= (size_t)(rest - text);
    text = rest;
    while (length > 0 && isspace((unsigned char)text[0])) {
        text++;
        length--;
    }
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    if (length >= sizeof term->text)
        return wg__fail(err, WG_EINVAL, "'%.40s...': longer than %zu bytes", text,
                        sizeof term->text - 1);
    memcpy(term->text, text, length);
    term->text[length] = '\0';
    const enum wg_code code = wg__expression_compile(&term->expression, term->text, err);
    if (code == WG_OK && !term->is_kind_said)
        term->kind = kind_of_names(term->expression);
    term->nature = term->kind;
    return code;
}

bool wg__tune_bound_parse(const char *text, struct wg_tune_bound *out)
{
    static const struct {
        const char *unit;
        double factor;
        const char *end;
    } units[] = {{"ms", 1e-3, "_s"}, {"us", 1e-6, "_s"}, {"mJ", 1e-3, "_j"},
                 {"kJ", 1e3, "_j"},  {"s", 1, "_s"},     {"J", 1, "_j"},
                 {"W", 1, "_w"},     {"x", 1, NULL},     {"", 1, NULL}};
    char number[64];
    while (isspace((unsigned char)*text))
        text++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (!has_end(text, units[i].unit))
            continue;
        const size_t length = strlen(text) - strlen(units[i].unit);
        if (length == 0 || length >= sizeof number)
            return false;
        memcpy(number, text, length);
        number[length] = '\0';
        double value = 0;
        if (!wg__parse_double(number, &value))
            continue;
        const bool is_relative = strcmp(units[i].unit, "x") == 0;
        *out = (struct wg_tune_bound){.value = value * units[i].factor,
                                      .is_relative = is_relative,
                                      .has_unit = units[i].end != NULL,
                                      .end = units[i].end};
        return out->value > 0;
    }
    return false;
}

bool wg__tune_bound_clashes(const struct wg_tune_bound *bound,
                            const struct wg_expression *expression, const char *text)
{
    static const char *const ends[] = {"_s", "_j", "_w"};
    if (bound->end == NULL || wg__expression_name_count(expression) != 1 ||
        strcmp(wg__expression_name(expression, 0), text) != 0 || has_end(text, "per_s"))
        return false;
    const size_t length = strlen(text);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (length > 2 && strcasecmp(text + length - 2, ends[i]) == 0)
            return strcmp(ends[i], bound->end) != 0;
    return false;
}

/* Bounds with a unit become SI, but a figure that says another unit of itself is told in that: the
 * two would differ by a thousand. NULL: no figure does. */
static const char *find_scaled(const struct wg_expression *expression)
{
    static const char *const ends[] = {"_ms", "_us", "_ns", "_mj", "_uj", "_kj", "_mw", "_kw"};
    for (size_t i = 0; i < wg__expression_name_count(expression); i++) {
        const char *name = wg__expression_name(expression, i);
        const size_t length = strlen(name);
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
            if (length > 3 && strcasecmp(name + length - 3, ends[k]) == 0)
                return name;
    }
    return NULL;
}

bool wg__tune_names_tell_si(const struct wg_expression *expression)
{
    static const char *const ends[] = {"_s", "_j", "_w"};
    bool is_told = false;
    for (size_t i = 0; i < wg__expression_name_count(expression); i++) {
        const char *name = wg__expression_name(expression, i);
        const size_t length = strlen(name);
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
            is_told |= length > 2 && strcasecmp(name + length - 2, ends[k]) == 0;
    }
    return is_told && find_scaled(expression) == NULL;
}

static enum wg_code take_limit(struct wg_tune_term *term, const char *text, struct wg_error *err)
{
    struct wg_tune_bound bound;
    const char *at = strstr(text, "<=");
    term->is_minimum = at == NULL;
    if (at == NULL)
        at = strstr(text, ">=");
    if (at == NULL || at == text)
        return wg__fail(err, WG_EINVAL, "limit '%s': expected EXPRESSION<=BOUND or >=", text);
    if (!wg__tune_bound_parse(at + 2, &bound))
        return wg__fail(err, WG_EINVAL,
                        "limit '%s': '%s' is no bound: expected a number above 0, with a unit "
                        "(ms, s, J, W) or with x for times the default's own",
                        text, at + 2);
    term->is_relative = bound.is_relative;
    term->bound = bound.value;
    struct wg_error cause;
    const enum wg_code code = take_expression(term, text, (size_t)(at - text), &cause);
    if (code != WG_OK)
        return wg__fail(err, code, "limit '%s': %s", text, cause.text);
    if (wg__tune_bound_clashes(&bound, term->expression, term->text))
        return wg__fail(err, WG_EINVAL,
                        "limit '%s': '%s' is no unit of '%s', whose name tells another", text,
                        at + 2, term->text);
    const char *scaled = bound.has_unit ? find_scaled(term->expression) : NULL;
    if (scaled != NULL)
        return wg__fail(err, WG_EINVAL,
                        "limit '%s': with a unit the bound is %g in SI, but '%s' is told in the "
                        "unit that ends its name: write the bound without a unit, in that one",
                        text, term->bound, scaled);
    return WG_OK;
}

/* Two limits on one figure, or one on the objective, must not look alike in a table. */
static void set_labels(struct wg_tune_goal *goal)
{
    (void)snprintf(goal->objective.label, sizeof goal->objective.label, "%s", goal->objective.text);
    for (size_t i = 0; i < goal->limit_count; i++) {
        struct wg_tune_term *limit = &goal->limits[i];
        bool is_shared = strcmp(limit->text, goal->objective.text) == 0;
        for (size_t k = 0; k < goal->limit_count; k++)
            is_shared |= k != i && strcmp(limit->text, goal->limits[k].text) == 0;
        if (is_shared)
            (void)snprintf(limit->label, sizeof limit->label, "%s %s %.6g%s", limit->text,
                           limit->is_minimum ? ">=" : "<=", limit->bound,
                           limit->is_relative ? "x" : "");
        else
            (void)snprintf(limit->label, sizeof limit->label, "%s", limit->text);
    }
}

enum wg_code wg__tune_goal_init(struct wg_tune_goal *out, const char *objective,
                                const char *const *limits, size_t limit_count, struct wg_error *err)
{
    *out = (struct wg_tune_goal){0};
    struct wg_error cause;
    enum wg_code code = take_expression(&out->objective, objective, strlen(objective), &cause);
    if (code != WG_OK)
        (void)wg__fail(err, code, "objective '%s': %s", objective, cause.text);
    if (code == WG_OK && limit_count > WG_TUNING_LIMITS_MAX)
        code =
            wg__fail(err, WG_EINVAL, "%zu limits, at most %d", limit_count, WG_TUNING_LIMITS_MAX);
    for (size_t i = 0; i < limit_count && code == WG_OK; i++) {
        out->limit_count = i + 1;
        code = take_limit(&out->limits[i], limits[i], err);
    }
    if (code != WG_OK)
        wg__tune_goal_fini(out);
    else
        set_labels(out);
    return code;
}

void wg__tune_goal_fini(struct wg_tune_goal *goal)
{
    wg__expression_free(goal->objective.expression);
    for (size_t i = 0; i < goal->limit_count; i++)
        wg__expression_free(goal->limits[i].expression);
    *goal = (struct wg_tune_goal){0};
}

enum wg_code wg__tune_slo_limit(const char *slo, char out[static WG_TUNE_TERM_SIZE],
                                struct wg_error *err)
{
    static const struct {
        const char *name, *figure;
    } names[] = {{"p99.9", "p999_s"}, {"p50", "p50_s"}, {"p90", "p90_s"},
                 {"p95", "p95_s"},    {"p99", "p99_s"}, {"mean", "mean_s"}};
    const size_t length = strcspn(slo, "<=> ");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i].name) != length || strncmp(slo, names[i].name, length) != 0)
            continue;
        const char *rest = slo + length + strspn(slo + length, " ");
        if (strncmp(rest, "<=", 2) == 0 &&
            snprintf(out, WG_TUNE_TERM_SIZE, "%s%s", names[i].figure, rest) < WG_TUNE_TERM_SIZE)
            return WG_OK;
    }
    return wg__fail(err, WG_EINVAL,
                    "'%s' is not PERCENTILE<=TIME, as in p99<=100ms; percentiles are p50, p90, "
                    "p95, p99, p99.9 and mean",
                    slo);
}

/* -- On figures ------------------------------------------------------------------------------- */

void wg__tune_goal_at_load(struct wg_tune_goal *goal)
{
    for (size_t i = 0; i < goal->limit_count; i++)
        if (goal->limits[i].kind == WG_TUNING_TIME && !goal->limits[i].is_kind_said)
            goal->limits[i].kind = WG_TUNING_OTHER;
}

bool wg__tune_term_can_be(const struct wg_tune_term *term, double value)
{
    const bool is_limit = term->bound > 0;
    return isfinite(value) && (value > 0 || (is_limit && term->nature == WG_TUNING_OTHER));
}

/* What a figure of our own is made of, where the workload does not tell that. */
static const char *find_hint(const char *name, const struct wg_workload_sample *figures)
{
    const bool is_of_energy = strncmp(name, "energy", 6) == 0 || strcmp(name, "power_w") == 0;
    const bool is_of_requests =
        strcmp(name, "energy_per_request_j") == 0 || strcmp(name, "requests_per_s") == 0;
    if (is_of_energy && isnan(wg__workload_figure_value(figures, "energy_j")))
        return "; the workload tells no energy_j, and --energy names no other source";
    if (is_of_requests && isnan(wg__workload_figure_value(figures, "requests")))
        return "; how many requests were served is not known: let the workload tell requests (of "
               "CSV, a column latency_s), or give --requests N";
    return "";
}

static enum wg_code fail_missing(const struct wg_tune_term *term, const char *name,
                                 const struct wg_workload_sample *figures, struct wg_error *err)
{
    struct wg_buffer names;
    wg__buffer_init(&names);
    for (size_t i = 0; i < figures->figure_count; i++)
        wg__buffer_printf(&names, "%s%s", i > 0 ? ", " : "", figures->figures[i].name);
    const enum wg_code code = wg__fail(
        err, WG_EDATA, "'%s': there is no figure '%s'; there are: %s%s", term->text, name,
        names.data != NULL && !names.failed ? names.data : "none", find_hint(name, figures));
    wg__buffer_fini(&names);
    return code;
}

enum wg_code wg__tune_term_evaluate(const struct wg_tune_term *term,
                                    const struct wg_workload_sample *figures, double *value_out,
                                    double *error_out, struct wg_error *err)
{
    double values[WG_EXPRESSION_NAMES_MAX], errors[WG_EXPRESSION_NAMES_MAX];
    const size_t count = wg__expression_name_count(term->expression);
    for (size_t i = 0; i < count; i++) {
        const char *name = wg__expression_name(term->expression, i);
        const struct wg_workload_figure *figure = wg__workload_figure_find(figures, name);
        if (figure == NULL)
            return fail_missing(term, name, figures, err);
        values[i] = figure->value;
        errors[i] = figure->error;
    }
    const double value = wg__expression_evaluate(term->expression, values);
    double variance = 0;
    bool is_known = true;
    for (size_t i = 0; i < count; i++) {
        const double kept = values[i];
        values[i] = kept * (1 + nudge);
        const double slope = (wg__expression_evaluate(term->expression, values) - value) / nudge;
        values[i] = kept;
        variance += slope * slope * errors[i] * errors[i];
        is_known &= errors[i] > 0 || fabs(slope) <= 1e-9 * fabs(value);
    }
    *value_out = value;
    *error_out = is_known && value != 0 ? sqrt(variance) / fabs(value) : 0;
    return WG_OK;
}

static bool is_named(const struct wg_tune_term *term, const char *name)
{
    for (size_t i = 0; i < wg__expression_name_count(term->expression); i++)
        if (strcmp(wg__expression_name(term->expression, i), name) == 0)
            return true;
    return false;
}

bool wg__tune_goal_names(const struct wg_tune_goal *goal, const char *name)
{
    bool found = is_named(&goal->objective, name);
    for (size_t i = 0; i < goal->limit_count; i++)
        found |= is_named(&goal->limits[i], name);
    return found;
}
