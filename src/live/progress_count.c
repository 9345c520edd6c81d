/* SPDX-License-Identifier: MIT
 *
 * The job's number from its ranks' numbers.
 *
 * With thousands of ranks the minimum must not be looked for at each line: how many ranks stand at
 * it is counted, and the table is read again only when the last of them has moved on.
 *
 * Owns: the table of ranks.    Threads: pure, one thread at a time.
 */
#include "live/progress_count.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

static const uint64_t silent_ns = 60000000000U;
static const uint64_t look_ns = 1000000000U; /* this often, for ranks that fell silent */
/* A step further than both is doubted. A job that prints its tokens as steps goes further than the
 * first with each line, and one that says its number rarely further than the second. */
static const double far_steps = 1e6;
static const double far_times = 100;

void wg__progress_count_init(struct wg_progress_count *count)
{
    *count = (struct wg_progress_count){0};
}

void wg__progress_count_begin_at(struct wg_progress_count *count, double value)
{
    count->has_value = true;
    count->value = value;
}

void wg__progress_count_fini(struct wg_progress_count *count)
{
    wg__free(count->ranks);
    *count = (struct wg_progress_count){0};
}

static bool grow(struct wg_progress_count *count)
{
    if (count->count < count->capacity)
        return true;
    if (count->count == WG_PROGRESS_RANKS_MAX)
        return false;
    const size_t capacity = count->capacity == 0 ? 8 : 2 * count->capacity;
    struct wg_rank_count *ranks = wg__realloc_array(count->ranks, capacity, sizeof *count->ranks);
    if (ranks == NULL)
        return false;
    count->ranks = ranks;
    count->capacity = capacity;
    return true;
}

/* The rank, made where it is new; NULL: no room. */
static struct wg_rank_count *find(struct wg_progress_count *count, unsigned rank, double number)
{
    size_t low = 0, high = count->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (count->ranks[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < count->count && count->ranks[low].rank == rank)
        return &count->ranks[low];
    if (!grow(count))
        return NULL;
    memmove(&count->ranks[low + 1], &count->ranks[low],
            (count->count - low) * sizeof *count->ranks);
    count->count++;
    const double base = count->has_value ? fmax(0, count->value - number) : 0;
    count->ranks[low] = (struct wg_rank_count){.rank = rank, .base = base, .last = number};
    if (count->has_value && number + base <= count->value)
        count->lowest_count++;
    return &count->ranks[low];
}

static bool is_far(const struct wg_rank_count *rank, double number)
{
    return number - rank->last > far_steps && number > far_times * rank->last;
}

/* What to add to the numbers of a rank that started anew and has come to `number`. */
static double base_of_restart(const struct wg_rank_count *rank, double number)
{
    /* Numbers that begin with their own stride (1 2 3, 10 20 30) began at 0: all of it is new. */
    const double stride = (number - rank->doubted_first) / (WG_PROGRESS_RESTART_LINES - 1);
    const bool is_from_zero = rank->doubted_first <= stride;
    return rank->base + (is_from_zero ? rank->last : rank->last - rank->doubted_first);
}

/* A number that is too far (wild, or the third of a jump) or below the last one (late, or the third
 * of a restart). True: it is believed. */
static bool take_doubtful(struct wg_rank_count *rank, double number)
{
    const bool is_lower = number < rank->last;
    if (rank->doubted_count == 0 || is_lower != rank->doubted_is_lower ||
        number <= rank->doubted_last) {
        rank->doubted_count = 0;
        rank->doubted_first = number;
    }
    rank->doubted_count++;
    rank->doubted_is_lower = is_lower;
    rank->doubted_last = number;
    if (rank->doubted_count < WG_PROGRESS_RESTART_LINES)
        return false;
    if (is_lower)
        rank->base = base_of_restart(rank, number);
    rank->last = number;
    rank->doubted_count = 0;
    return true;
}

/* The slowest rank of those that still speak. */
static double look(struct wg_progress_count *count, uint64_t t_ns)
{
    double least = INFINITY;
    count->lowest_count = 0;
    for (size_t i = 0; i < count->count; i++) {
        const struct wg_rank_count *rank = &count->ranks[i];
        if (t_ns > rank->heard_ns && t_ns - rank->heard_ns > silent_ns)
            continue;
        const double number = rank->base + rank->last;
        if (number < least) {
            least = number;
            count->lowest_count = 0;
        }
        count->lowest_count += number <= least;
    }
    count->looked_ns = t_ns;
    return least;
}

bool wg__progress_count_add(struct wg_progress_count *count, unsigned rank_number, double number,
                            uint64_t t_ns)
{
    struct wg_rank_count *rank = find(count, rank_number, number);
    count->is_wild = false;
    if (rank == NULL)
        return false;
    if (t_ns > rank->heard_ns)
        rank->heard_ns = t_ns;
    const double before = rank->base + rank->last;
    if (is_far(rank, number)) {
        count->is_wild = !take_doubtful(rank, number);
    } else if (number < rank->last) {
        (void)take_doubtful(rank, number);
    } else {
        rank->last = number;
        rank->doubted_count = 0;
    }
    if (!count->has_value) {
        count->has_value = true;
        count->value = look(count, t_ns);
        return true;
    }
    if (rank->base + rank->last > before && before <= count->value && count->lowest_count > 0)
        count->lowest_count--;
    const bool is_due = t_ns > count->looked_ns && t_ns - count->looked_ns > look_ns;
    if (count->lowest_count > 0 && !is_due)
        return false;
    const double value = look(count, t_ns);
    if (!(value > count->value) || isinf(value))
        return false;
    count->value = value;
    return true;
}
