/* SPDX-License-Identifier: MIT
 *
 * How far the job is, from what its ranks say: the job is as far as its slowest rank.
 *
 * Each rank counts from where it likes, so of each we keep what to add to its numbers:
 *
 *     a rank that joins later      begins where the job is
 *     a rank that starts anew      goes on where it was: 148 149 150 | 100 101 102 -> 150 151 152,
 *                                  or, where it began at 0 (each epoch of a progress bar):
 *                                  148 149 150 | 1 2 3 -> 151 152 153
 *     a number that comes late     (ranks that do not say which one they are; lines that overtake
 *                                  each other) is no restart: only three lines in a row that are
 *                                  below, and that rise, are
 *     a number that is far too high (a million steps and a hundredfold beyond the last one) is
 *                                  wild, until three in a row are, and rise; a job that is resumed
 *                                  may begin as high as it likes
 *     a rank that says no more     (60 s, while others do) no longer holds the job back
 *
 * So the job's number never goes back.
 *
 * Owns: the table of ranks.    Threads: pure, one thread at a time.
 */
#ifndef WG_LIVE_PROGRESS_COUNT_H
#define WG_LIVE_PROGRESS_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WG_PROGRESS_RANKS_MAX = 4096, WG_PROGRESS_RESTART_LINES = 3 };

struct wg_rank_count {
    unsigned rank;
    unsigned doubted_count; /* lines in a row that were below `last`, or far above it */
    bool doubted_is_lower;
    double base; /* what to add to its numbers */
    double last; /* its number */
    double doubted_first, doubted_last;
    uint64_t heard_ns;
};

struct wg_progress_count {
    struct wg_rank_count *ranks; /* by rank, rising */
    size_t count, capacity;
    size_t lowest_count; /* ranks that stand where the job does */
    uint64_t looked_ns;  /* when they were counted */
    bool has_value;
    bool is_wild; /* the last number that was added: it is not believed */
    double value;
};

void wg__progress_count_init(struct wg_progress_count *count);

/* Before the first number: the job has come to `value` already, and goes on from there. */
void wg__progress_count_begin_at(struct wg_progress_count *count, double value);
void wg__progress_count_fini(struct wg_progress_count *count);

/* Rank `rank` says `number` at `t_ns`. True: the job is further, count->value tells how far. A new
 * rank beyond the largest number of ranks, or without memory, is left out. */
bool wg__progress_count_add(struct wg_progress_count *count, unsigned rank, double number,
                            uint64_t t_ns);

#endif
