/* SPDX-License-Identifier: MIT
 *
 * The words of a tuner's policies, reasons, ends and outcomes: in results, logs and checkpoints.
 *
 * Threads: pure.
 */
#include <string.h>

#include "optimize/tuner.h"

static const char *const policy_words[] = {
#define X(name, word) word,
    WG_TUNER_POLICIES(X)
#undef X
};

static const char *const reason_words[] = {
    [WG_TUNER_DEFAULT] = "default",     [WG_TUNER_START] = "start",
    [WG_TUNER_SAVING] = "saving",       [WG_TUNER_FEASIBLE] = "feasible",
    [WG_TUNER_REMEASURE] = "remeasure", [WG_TUNER_VALIDATE] = "validate",
    [WG_TUNER_AGAIN] = "again",
};

static const char *const end_words[] = {
    [WG_TUNER_RUNNING] = "running",
    [WG_TUNER_CONVERGED] = "converged",
    [WG_TUNER_BUDGET] = "budget",
    [WG_TUNER_EXHAUSTED] = "exhausted",
};

static const char *const outcome_words[] = {
    [WG_TRIAL_MEASURED] = "measured",
    [WG_TRIAL_CUT] = "cut",
    [WG_TRIAL_CRASHED] = "crashed",
    [WG_TRIAL_HUNG] = "hung",
    [WG_TRIAL_OUT_OF_MEMORY] = "out_of_memory",
    [WG_TRIAL_REFUSED] = "refused",
    [WG_TRIAL_DISCARDED] = "discarded",
};

_Static_assert(sizeof reason_words / sizeof *reason_words == WG_TUNER_REASON_COUNT, "a word each");
_Static_assert(sizeof end_words / sizeof *end_words == WG_TUNER_END_COUNT, "a word each");
_Static_assert(sizeof outcome_words / sizeof *outcome_words == WG_TRIAL_OUTCOME_COUNT,
               "a word each");

/* The place of `word` in a list; `count` when it has none. */
static unsigned place_of(const char *word, const char *const *words, unsigned count)
{
    unsigned i = 0;

    while (i < count && (word == NULL || strcmp(word, words[i]) != 0))
        i++;
    return i;
}

const char *wg__tuner_policy_word(enum wg_tuner_policy policy)
{
    return (unsigned)policy < WG_TUNER_POLICY_COUNT ? policy_words[policy] : NULL;
}

bool wg__tuner_policy_parse(const char *word, enum wg_tuner_policy *out)
{
    const unsigned place = place_of(word, policy_words, WG_TUNER_POLICY_COUNT);

    if (place == WG_TUNER_POLICY_COUNT)
        return false;
    *out = (enum wg_tuner_policy)place;
    return true;
}

const char *wg__tuner_reason_word(enum wg_tuner_reason reason)
{
    return (unsigned)reason < WG_TUNER_REASON_COUNT ? reason_words[reason] : NULL;
}

const char *wg__tuner_end_word(enum wg_tuner_end end)
{
    return (unsigned)end < WG_TUNER_END_COUNT ? end_words[end] : NULL;
}

const char *wg__trial_outcome_word(enum wg_trial_outcome outcome)
{
    return (unsigned)outcome < WG_TRIAL_OUTCOME_COUNT ? outcome_words[outcome] : NULL;
}

bool wg__trial_outcome_parse(const char *word, enum wg_trial_outcome *out)
{
    const unsigned place = place_of(word, outcome_words, WG_TRIAL_OUTCOME_COUNT);

    if (place == WG_TRIAL_OUTCOME_COUNT)
        return false;
    *out = (enum wg_trial_outcome)place;
    return true;
}
