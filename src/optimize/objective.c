/* SPDX-License-Identifier: MIT
 *
 * Objectives: reading them, checking them, and the price of a second.
 *
 * All kinds share one shape, cost per second = weight of the power + weight of Pmax, so a search
 * needs no case of its own for each; only SLOWDOWN adds a constraint, which power_limit.c applies.
 *
 * Threads: pure, any thread.
 */
#include "optimize/objective.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/number.h"

static const char expected_text[] = "energy, time, cost:ETA (ETA in 0..1) or slowdown:F (F >= 1)";

/* The text after `prefix` when `text` begins with it, else NULL. */
static const char *after_prefix(const char *text, const char *prefix)
{
    const size_t length = strlen(prefix);

    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

enum wg_code wg__objective_parse(const char *text, struct wg_objective *out, struct wg_error *err)
{
    struct wg_objective parsed = {.kind = WG_OBJECTIVE_ENERGY};
    const char *number;

    if (text == NULL)
        return wg__fail(err, WG_EINVAL, "no objective: expected %s", expected_text);
    if (strcmp(text, "energy") == 0) {
        *out = parsed;
        return WG_OK;
    }
    if (strcmp(text, "time") == 0) {
        parsed.kind = WG_OBJECTIVE_TIME;
        *out = parsed;
        return WG_OK;
    }
    if ((number = after_prefix(text, "cost:")) != NULL) {
        parsed.kind = WG_OBJECTIVE_COST;
        if (!wg__parse_double(number, &parsed.eta) || !(parsed.eta >= 0.0 && parsed.eta <= 1.0))
            return wg__fail(err, WG_EINVAL, "objective '%s': ETA must be a number in 0..1", text);
        *out = parsed;
        return WG_OK;
    }
    if ((number = after_prefix(text, "slowdown:")) != NULL) {
        parsed.kind = WG_OBJECTIVE_SLOWDOWN;
        if (!wg__parse_double(number, &parsed.max_slowdown) || !(parsed.max_slowdown >= 1.0))
            return wg__fail(err, WG_EINVAL, "objective '%s': F must be a number of at least 1",
                            text);
        *out = parsed;
        return WG_OK;
    }
    return wg__fail(err, WG_EINVAL, "objective '%s': expected %s", text, expected_text);
}

enum wg_code wg__objective_check(const struct wg_objective *objective, struct wg_error *err)
{
    const bool needs_max_power =
        objective->kind == WG_OBJECTIVE_COST || objective->kind == WG_OBJECTIVE_TIME;

    if ((unsigned)objective->kind >= WG_OBJECTIVE_KIND_COUNT)
        return wg__fail(err, WG_EINVAL, "objective kind %u is unknown", (unsigned)objective->kind);
    if (needs_max_power && !(isfinite(objective->max_power_w) && objective->max_power_w > 0.0))
        return wg__fail(err, WG_EINVAL,
                        "largest power limit of the objective is %g W, not positive",
                        objective->max_power_w);
    if (objective->kind == WG_OBJECTIVE_COST && !(objective->eta >= 0.0 && objective->eta <= 1.0))
        return wg__fail(err, WG_EINVAL, "eta is %g, outside 0..1", objective->eta);
    if (objective->kind == WG_OBJECTIVE_SLOWDOWN &&
        !(isfinite(objective->max_slowdown) && objective->max_slowdown >= 1.0))
        return wg__fail(err, WG_EINVAL, "slowdown is %g, below 1", objective->max_slowdown);
    return WG_OK;
}

double wg__objective_cost_per_s(const struct wg_objective *objective, double power_w)
{
    switch (objective->kind) {
    case WG_OBJECTIVE_TIME:
        return objective->max_power_w;
    case WG_OBJECTIVE_COST:
        return objective->eta * power_w + (1.0 - objective->eta) * objective->max_power_w;
    case WG_OBJECTIVE_ENERGY:
    case WG_OBJECTIVE_SLOWDOWN:
    case WG_OBJECTIVE_KIND_COUNT:
        break;
    }
    return power_w;
}
