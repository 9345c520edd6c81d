/* SPDX-License-Identifier: MIT
 *
 * Zeus's pruning: which batch sizes of a job reach the target at all, and do so cheaply enough.
 *
 * Each of a number of rounds walks the candidates outward from the default. A candidate that fails
 * ends its direction, because what lies beyond it is expected to be worse; those that reach the
 * target are the next round's candidates, and the cheapest of the round its default. Two rounds
 * give every survivor two observations, enough for a variance (Zeus, NSDI'23, section 4.4).
 *
 *                     init
 *                      |
 *                      v        ask: the arm at the cursor
 *      +----------> [ READY ] --------------------------------> [ WAITING ] --+ ask: the same arm
 *      |               ^                                            |  ^------+
 *      |               |                     tell of that arm       |
 *      |               +------------------------+-------------------+
 *      |  reached: cursor to the next arm       |      (a tell of any other arm, or while READY,
 *      |  failed:  cursor to the first "up" arm |       changes nothing: see wg__pruning_tell)
 *      |           or, among those, to the end  |
 *      |                                        v  cursor at the end of the order
 *      |   rounds left and a good arm?       (round)
 *      +------- yes: candidates = good arms ----+---- no ----> [ OVER ]  survivors = good arms
 *
 *      order of a round:   d, d-1, ..., 0 | d+1, ..., n-1     d = the default's place
 *                          ---- down ---- ^ ----- up -----
 *
 * Threads: belongs to one thread; allocates nothing.
 */
#ifndef WG_OPTIMIZE_PRUNING_H
#define WG_OPTIMIZE_PRUNING_H

#include <stdbool.h>
#include <stddef.h>

#include "optimize/batch_size.h"

enum wg_pruning_state { WG_PRUNING_READY, WG_PRUNING_WAITING, WG_PRUNING_OVER };

struct wg_pruning {
    enum wg_pruning_state state;
    unsigned rounds_left; /* after this one */
    size_t default_arm;   /* where the next round starts: the cheapest good arm of this one */
    double best_cost_j;   /* what that arm cost in this round */
    size_t candidate_count;
    size_t candidate[WG_ARMS_MAX]; /* ascending; the survivors once the state is OVER */
    size_t order[WG_ARMS_MAX];     /* the candidates as this round walks them */
    size_t up_start;               /* place in `order` where "up" begins */
    size_t cursor;                 /* place in `order` of the arm to explore */
    bool good[WG_ARMS_MAX];        /* reached the target in this round */
};

/* Starts `rounds` >= 1 rounds over `arm_count` arms from `default_arm`. */
void wg__pruning_init(struct wg_pruning *pruning, size_t arm_count, size_t default_arm,
                      unsigned rounds);

/* The arm to explore; false once pruning is over. Asking again without telling gives the same arm.
 */
bool wg__pruning_ask(struct wg_pruning *pruning, size_t *arm_out);

/* What a run of `arm` came to. With several runs in flight a result may be that of another arm than
 * the awaited one, or of the awaited arm from an earlier start: the first is left out of pruning
 * and the second counts as the awaited result. Returns whether the result was the awaited one. */
bool wg__pruning_tell(struct wg_pruning *pruning, size_t arm, double cost_j, bool reached);

#endif
