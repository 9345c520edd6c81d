/* SPDX-License-Identifier: MIT
 *
 * Parsing what `wattgov simulate serving` is told: see serving_args.h.
 */
#include "cli/serving_args.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/duration.h"

enum { WORD_SIZE = 64, JOB_BATCH_MAX = 65536, JOB_ITERATIONS_MAX = 1000000000 };

static const double shortest_s = 1e-6;
static const double longest_s = 1e6;
static const char usual_arrivals[] = "poisson:8";

/* -- Small languages -------------------------------------------------------------------------- */

enum wg_code wg__parse_serving_seconds(const char *option, const char *text, double min_s,
                                       double max_s, double *out, struct wg_error *err)
{
    double value = 0;
    if ((wg__parse_double(text, &value) || wg__parse_duration(text, &value)) && value >= min_s &&
        value <= max_s) {
        *out = value;
        return WG_OK;
    }
    char accepted[WORD_SIZE * 2];
    (void)snprintf(accepted, sizeof accepted, "a time in %.*f .. %.0f s, as 0.7, 0.7s or 700ms",
                   min_s < 1e-3 ? 6 : 3, min_s, max_s);
    return wg__option_reject(err, option, text, accepted);
}

/* "key=N" with N in 1 .. max, up to the next comma or the end. */
static bool take_count(const char **at, const char *key, uint64_t max, uint64_t *out)
{
    char word[WORD_SIZE];
    const size_t length = strcspn(*at, ",");
    const size_t key_length = strlen(key);
    if (length >= sizeof word || strncmp(*at, key, key_length) != 0)
        return false;
    memcpy(word, *at, length);
    word[length] = '\0';
    if (!wg__parse_uint64(word + key_length, out) || *out < 1 || *out > max)
        return false;
    *at += length;
    *at += **at == ',' && (*at)[1] != '\0';
    return true;
}

enum wg_code wg__parse_serving_job(const char *text, bool *has_job_out, struct wg_finetune_job *out,
                                   struct wg_error *err)
{
    static const char backlog[] = "backlog";
    const size_t length = sizeof backlog - 1;
    uint64_t batch = 64, iterations = 0;
    *has_job_out = strcmp(text, "off") != 0;
    if (!*has_job_out)
        return WG_OK;
    const char *at = text;
    const bool is_backlog =
        strncmp(text, backlog, length) == 0 && (text[length] == '\0' || text[length] == ',');
    if (is_backlog) {
        iterations = UINT64_MAX;
        at += length + (text[length] == ',' && text[length + 1] != '\0');
    }
    bool has_batch = false;
    while (*at != '\0') {
        if (!has_batch && take_count(&at, "batch=", JOB_BATCH_MAX, &batch))
            has_batch = true;
        else if (iterations != 0 ||
                 !take_count(&at, "iterations=", JOB_ITERATIONS_MAX, &iterations))
            break;
    }
    if (*at != '\0' || iterations == 0)
        return wg__option_reject(err, "finetune", text,
                                 "batch=ROWS,iterations=N (rows 1 .. 65536, iterations 1 .. 1e9), "
                                 "backlog[,batch=ROWS] or off");
    *out = (struct wg_finetune_job){.id = 1, .batch = (unsigned)batch, .iterations = iterations};
    return WG_OK;
}

static enum wg_code parse_change(const char *text, double duration_s, struct wg_slo_change *out,
                                 struct wg_error *err)
{
    char at[WORD_SIZE];
    const size_t length = strcspn(text, ":");
    struct wg_error cause;
    if (length < sizeof at && text[length] == ':') {
        memcpy(at, text, length);
        at[length] = '\0';
        if (wg__parse_serving_seconds("slo-change", at, 0, duration_s, &out->at_s, &cause) ==
                WG_OK &&
            wg__parse_serving_seconds("slo-change", text + length + 1, shortest_s, longest_s,
                                      &out->slo_s, &cause) == WG_OK)
            return WG_OK;
    }
    return wg__option_reject(err, "slo-change", text,
                             "AT:SLO, two times, as 30:0.25 or 30s:250ms, AT within --duration");
}

static enum wg_code parse_changes(const struct wg_serving_args *args, struct wg_serving_setup *out,
                                  struct wg_error *err)
{
    if (args->slo_changes.count > WG_SLO_CHANGES_MAX)
        return wg__fail(err, WG_EINVAL, "--slo-change: %zu changes, at most %d are accepted",
                        args->slo_changes.count, WG_SLO_CHANGES_MAX);
    for (size_t i = 0; i < args->slo_changes.count; i++) {
        struct wg_slo_change *change = &out->changes[i];
        const enum wg_code code =
            parse_change(args->slo_changes.items[i], out->duration_s, change, err);
        if (code != WG_OK)
            return code;
        if (i > 0 && change->at_s <= change[-1].at_s)
            return wg__fail(err, WG_EINVAL, "--slo-change: '%s' is not later than '%s' before it",
                            args->slo_changes.items[i], args->slo_changes.items[i - 1]);
        out->change_count++;
    }
    return WG_OK;
}

/* -- Policies --------------------------------------------------------------------------------- */

static const struct wg_serving_policy policies[] = {
    {"none", WG_FINETUNE_NONE, WG_BATCHER_TRITON, WG_DROP_STANDARD},
    {"greedy", WG_FINETUNE_GREEDY, WG_BATCHER_TRITON, WG_DROP_STANDARD},
    {"polythrottle", WG_FINETUNE_POLYTHROTTLE, WG_BATCHER_TRITON, WG_DROP_EARLY},
    {"wattgov", WG_FINETUNE_WATTGOV, WG_BATCHER_WATTGOV, WG_DROP_EARLY},
    {"floor", WG_FINETUNE_NONE, WG_BATCHER_WATTGOV, WG_DROP_EARLY},
};
enum { POLICY_COUNT = sizeof policies / sizeof *policies, FLOOR = POLICY_COUNT - 1 };

static enum wg_code add_policy(const char *name, struct wg_serving_study_request *out,
                               struct wg_error *err)
{
    const char *known[POLICY_COUNT];
    for (size_t i = 0; i < POLICY_COUNT; i++)
        known[i] = policies[i].name;
    const enum wg_code code =
        wg__option_check_name("policy", name, "a policy", known, POLICY_COUNT, err);
    if (code != WG_OK)
        return code;
    for (size_t i = 0; i < out->policy_count; i++)
        if (strcmp(out->policies[i].name, name) == 0)
            return wg__fail(err, WG_EINVAL, "--policy: '%s' is given twice", name);
    for (size_t i = 0; i < POLICY_COUNT; i++)
        if (strcmp(known[i], name) == 0)
            out->policies[out->policy_count++] = policies[i];
    return WG_OK;
}

static bool has_policy(const struct wg_serving_study_request *request, const char *name)
{
    for (size_t i = 0; i < request->policy_count; i++)
        if (strcmp(request->policies[i].name, name) == 0)
            return true;
    return false;
}

/* The place of an option's word among those known. */
static enum wg_code parse_word(const char *option, const char *text, const char *kind,
                               const char *const *words, size_t count, size_t *out,
                               struct wg_error *err)
{
    for (*out = 0; *out < count; ++*out)
        if (strcmp(words[*out], text) == 0)
            return WG_OK;
    return wg__option_reject_name(option, text, kind, words, count, err);
}

/* --batcher and --drop, for all policies. */
static enum wg_code parse_overrides(const struct wg_serving_args *args,
                                    struct wg_serving_study_request *out, struct wg_error *err)
{
    static const char *const batchers[] = {
#define X(name, word) word,
        WG_BATCHERS(X)
#undef X
    };
    static const char *const drops[] = {
#define X(name, word) word,
        WG_DROPS(X)
#undef X
    };
    size_t batcher = 0, drop = 0;
    enum wg_code code = WG_OK;
    if (args->batcher != NULL)
        code = parse_word("batcher", args->batcher, "a batcher", batchers, WG_BATCHER_COUNT,
                          &batcher, err);
    if (code == WG_OK && args->drop != NULL)
        code = parse_word("drop", args->drop, "a drop rule", drops, WG_DROP_COUNT, &drop, err);
    for (size_t i = 0; i < out->policy_count && code == WG_OK; i++) {
        if (args->batcher != NULL)
            out->policies[i].batcher = (enum wg_batcher_kind)batcher;
        if (args->drop != NULL)
            out->policies[i].drop = (enum wg_drop_kind)drop;
    }
    return code;
}

static enum wg_code parse_policies(const struct wg_serving_args *args,
                                   struct wg_serving_study_request *out, struct wg_error *err)
{
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < args->policies.count && code == WG_OK; i++)
        code = add_policy(args->policies.items[i], out, err);
    for (size_t i = 0; i < POLICY_COUNT && args->policies.count == 0; i++)
        out->policies[out->policy_count++] = policies[i];
    /* What fine-tuning costs can only be seen beside the same without it. */
    if (has_policy(out, "wattgov") && !has_policy(out, "floor"))
        out->policies[out->policy_count++] = policies[FLOOR];
    return code == WG_OK ? parse_overrides(args, out, err) : code;
}

/* -- The rest --------------------------------------------------------------------------------- */

static void scale_law(struct wg_latency_law *law, double factor)
{
    law->fixed_s *= factor;
    law->per_row_s *= factor;
    for (size_t i = 0; i < law->point_count; i++)
        law->time_s[i] *= factor;
}

void wg__serving_believe(const struct wg_serving_profile *profile, double factor,
                         struct wg_serving_profile *out)
{
    *out = *profile;
    scale_law(&out->latency, factor);
    for (size_t i = 0; i < WG_RUNGS_MAX; i++)
        scale_law(&out->rung_latency[i], factor);
    out->step_fixed_s *= factor;
    out->step_per_row_s *= factor;
    out->update_s *= factor;
}

static enum wg_code parse_clocks(const char *text, const struct wg_clock_ladder *ladder,
                                 struct wg_serving_setup *out, struct wg_error *err)
{
    const char *known[WG_RUNGS_MAX + 2] = {"default", "governed"};
    out->clocks = WG_CLOCKS_FIXED;
    out->rung = 0;
    if (strcmp(text, "governed") == 0)
        out->clocks = WG_CLOCKS_GOVERNED;
    for (size_t i = 0; i < ladder->count; i++) {
        known[i + 2] = ladder->rungs[i].name;
        if (strcmp(ladder->rungs[i].name, text) == 0)
            out->rung = i;
    }
    if (out->clocks == WG_CLOCKS_GOVERNED && ladder->count == 1)
        return wg__fail(err, WG_EINVAL,
                        "--clocks governed: the profile's ladder has one rung, expected several");
    return wg__option_check_name("clocks", text, "default, governed or a rung of the profile",
                                 known, ladder->count + 2, err);
}

/* Of what the scheduler is told: also ten times too long by --believe. */
static enum wg_code check_iteration(const struct wg_serving_profile *profile,
                                    const struct wg_finetune_job *job, struct wg_error *err)
{
    for (size_t i = 0; i < profile->ladder.count; i++) {
        const double time_s = wg__profile_step_s(profile, i, job->batch, true);
        if (time_s > longest_s)
            return wg__fail(err, WG_EINVAL,
                            "--finetune: an iteration of %u rows takes %g s at '%s', expected at "
                            "most %.0f s",
                            job->batch, time_s, profile->ladder.rungs[i].name, longest_s);
    }
    return WG_OK;
}

static enum wg_code parse_finetune(const struct wg_serving_args *args,
                                   const struct wg_serving_profile *profile,
                                   struct wg_serving_setup *out, struct wg_error *err)
{
    const char *usual = profile->has_finetune ? "batch=64,iterations=10" : "off";
    const enum wg_code code = wg__parse_serving_job(args->finetune != NULL ? args->finetune : usual,
                                                    &out->has_job, &out->job, err);
    if (code == WG_OK && out->has_job && !profile->has_finetune)
        return wg__fail(err, WG_EINVAL,
                        "--finetune: '%s', but the profile says nothing of fine-tuning; expected "
                        "off",
                        args->finetune);
    return code == WG_OK && out->has_job ? check_iteration(profile, &out->job, err) : code;
}

/* Each is opened once, so that a mistake is told before anything is computed. */
static enum wg_code check_laws(struct wg_serving_study_request *out, struct wg_error *err)
{
    struct wg_rng rng;
    wg__rng_init(&rng, out->first_seed);
    for (size_t i = 0; i < out->law_count; i++) {
        struct wg_arrivals *arrivals = NULL;
        struct wg_error cause;
        const enum wg_code code = wg__arrivals_open(&arrivals, out->laws[i], &rng, &cause);
        wg__arrivals_close(arrivals);
        if (code != WG_OK)
            return wg__fail(err, code, "--arrivals: %s", cause.text);
    }
    return WG_OK;
}

static enum wg_code parse_laws(const struct wg_serving_args *args,
                               struct wg_serving_study_request *out, struct wg_error *err)
{
    if (args->arrivals.count > WG_SERVING_LAWS_MAX)
        return wg__fail(err, WG_EINVAL, "--arrivals: %zu laws, at most %d are accepted",
                        args->arrivals.count, WG_SERVING_LAWS_MAX);
    for (size_t i = 0; i < args->arrivals.count; i++) {
        for (size_t k = 0; k < i; k++)
            if (strcmp(args->arrivals.items[k], args->arrivals.items[i]) == 0)
                return wg__fail(err, WG_EINVAL, "--arrivals: '%s' is given twice",
                                args->arrivals.items[i]);
        out->laws[out->law_count++] = args->arrivals.items[i];
    }
    if (args->arrivals.count == 0)
        out->laws[out->law_count++] = usual_arrivals;
    return check_laws(out, err);
}

enum wg_code wg__serving_request_make(const struct wg_serving_args *args,
                                      const struct wg_serving_profile *profile,
                                      struct wg_serving_profile *believed,
                                      struct wg_serving_study_request *out, struct wg_error *err)
{
    struct wg_serving_setup *setup = &out->base;
    *out = (struct wg_serving_study_request){
        .base = {.profile = profile,
                 .step_share = isnan(args->step_share) ? 0 : args->step_share,
                 .deadline_share = isnan(args->deadline_share) ? 0 : args->deadline_share,
                 .min_share = isnan(args->min_share) ? 0
                              : args->min_share == 0 ? -1
                                                     : args->min_share,
                 .queue_capacity = args->queue},
        .first_seed = args->seed,
        .seeds = args->seeds,
        .processes = args->processes,
    };
    if (args->believe != 1) {
        wg__serving_believe(profile, args->believe, believed);
        setup->believed = believed;
    }
    enum wg_code code =
        wg__parse_serving_seconds("slo", args->slo, shortest_s, longest_s, &setup->slo_s, err);
    if (code == WG_OK)
        code = wg__parse_serving_seconds("duration", args->duration, 1e-3, longest_s,
                                         &setup->duration_s, err);
    if (code == WG_OK)
        code = parse_changes(args, setup, err);
    if (code == WG_OK)
        code = parse_finetune(args, profile, setup, err);
    if (code == WG_OK)
        code = parse_clocks(args->clocks, &profile->ladder, setup, err);
    if (code == WG_OK)
        code = parse_policies(args, out, err);
    return code == WG_OK ? parse_laws(args, out, err) : code;
}
