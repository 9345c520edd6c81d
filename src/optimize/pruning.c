/* SPDX-License-Identifier: MIT
 *
 * Zeus's pruning as an explicit state machine; pruning.h draws it.
 *
 * Invariant: in every state but OVER, cursor < candidate_count and order[] is a permutation of
 * candidate[]. The default moves while a round runs, but the order of the round does not: it is
 * laid out once, when the round begins.
 *
 * Owns: nothing.    Threads: belongs to one thread.
 */
#include "optimize/pruning.h"

#include <assert.h>
#include <math.h>

/* Lays out one round over the candidates. */
static void begin_round(struct wg_pruning *pruning)
{
    size_t place = 0;
    while (pruning->candidate[place] != pruning->default_arm)
        place++;
    size_t next = 0;
    for (size_t i = place + 1; i > 0; i--)
        pruning->order[next++] = pruning->candidate[i - 1];
    for (size_t i = place + 1; i < pruning->candidate_count; i++)
        pruning->order[next++] = pruning->candidate[i];
    for (size_t arm = 0; arm < WG_ARMS_MAX; arm++)
        pruning->good[arm] = false;
    pruning->up_start = place + 1;
    pruning->cursor = 0;
    pruning->best_cost_j = INFINITY;
    pruning->state = WG_PRUNING_READY;
}

static void end_round(struct wg_pruning *pruning)
{
    size_t kept = 0;
    for (size_t i = 0; i < pruning->candidate_count; i++) {
        const size_t arm = pruning->candidate[i];
        if (pruning->good[arm])
            pruning->candidate[kept++] = arm;
    }
    pruning->candidate_count = kept;
    if (pruning->rounds_left == 0 || kept == 0) {
        pruning->state = WG_PRUNING_OVER;
        return;
    }
    pruning->rounds_left--;
    begin_round(pruning);
}

void wg__pruning_init(struct wg_pruning *pruning, size_t arm_count, size_t default_arm,
                      unsigned rounds)
{
    assert(arm_count >= 1 && arm_count <= WG_ARMS_MAX);
    assert(default_arm < arm_count && rounds >= 1);
    *pruning = (struct wg_pruning){
        .rounds_left = rounds - 1, .default_arm = default_arm, .candidate_count = arm_count};
    for (size_t arm = 0; arm < arm_count; arm++)
        pruning->candidate[arm] = arm;
    begin_round(pruning);
}

bool wg__pruning_ask(struct wg_pruning *pruning, size_t *arm_out)
{
    if (pruning->state == WG_PRUNING_OVER)
        return false;
    pruning->state = WG_PRUNING_WAITING;
    *arm_out = pruning->order[pruning->cursor];
    return true;
}

bool wg__pruning_tell(struct wg_pruning *pruning, size_t arm, double cost_j, bool reached)
{
    if (pruning->state != WG_PRUNING_WAITING || pruning->order[pruning->cursor] != arm)
        return false;
    pruning->state = WG_PRUNING_READY;
    if (reached) {
        pruning->good[arm] = true;
        if (cost_j < pruning->best_cost_j) {
            pruning->best_cost_j = cost_j;
            pruning->default_arm = arm;
        }
        pruning->cursor++;
    } else if (pruning->cursor < pruning->up_start) {
        pruning->cursor = pruning->up_start;
    } else {
        pruning->cursor = pruning->candidate_count;
    }
    if (pruning->cursor == pruning->candidate_count)
        end_round(pruning);
    return true;
}
