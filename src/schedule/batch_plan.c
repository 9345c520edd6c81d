/* SPDX-License-Identifier: MIT
 *
 * The best plan for what waits.
 *
 * The header's f(i, k) is kept in one array, indexed by how many are met: entry j holds f(j + k, k)
 * while k are missed. Leaving out a request leads from f(i, k) to f(i + 1, k + 1), which is the
 * same entry, so going from k to k + 1 missed moves nothing: the entries are valid as they are, and
 * get better where a batch now reaches past what was left out.
 *
 *     met      0     1     2     3                      k = 0: the first j are met
 *            [ 0 | .13 | .20 | inf ]                    k = 1: j of the first j + 1 are met
 *
 * All is settled when entry count - k is finite. Only finite entries are extended, and a batch
 * grows only until it breaks a deadline (its time grows and its least deadline falls with each
 * request), so the work is at most missed x met x (largest batch). In the usual case, requests of
 * equally many rows in the order of their deadlines, an entry that did not get better since it was
 * extended would lead to the same ends again: only batches larger than those it could have before
 * are tried then, which makes a long queue in trouble ten times as fast. Each entry carries the
 * beginning and the slack of its plan, so no way back has to be stored.
 *
 * Moments are relative to the start, so sums do not lose digits to the clock's origin.
 *
 * Threads: pure, any thread.
 */
#include "schedule/batch_plan.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Sums of the same times in another order differ by rounding: ends that differ by less, as a share
 * of the time of one row, are equal. */
#define TIE_SHARE 1e-9

/* Batches that are tried before the search ends where it stands; one takes 2 to 4 ns. */
enum { STEPS_MAX = 4096 };

struct entry {
    double end_s;
    double slack_s;
    size_t first_skips;
    size_t first_count; /* 0: there is no batch yet */
};

struct search {
    const double *batch_s;
    unsigned max_rows;
    size_t count;
    double tie_s;
    size_t missed;
    size_t steps;
    size_t reach; /* the last finite entry */
    bool is_even; /* equally many rows each, and deadlines that never fall */
    unsigned rows[WG_PLAN_ITEMS_MAX];
    double deadline_s[WG_PLAN_ITEMS_MAX]; /* from the start on */
    struct entry met[WG_PLAN_ITEMS_MAX + 1];
    uint8_t tried[WG_PLAN_ITEMS_MAX + 1]; /* largest batch behind the entry as it is */
};

static void init(struct search *search, const struct wg_plan_item *items, double start_s)
{
    search->tie_s = TIE_SHARE * search->batch_s[1];
    search->missed = 0;
    search->steps = 0;
    search->reach = 0;
    search->is_even = true;
    search->tried[0] = 0;
    for (size_t i = 0; i < search->count; i++) {
        assert(items[i].rows >= 1 && items[i].rows <= search->max_rows);
        search->rows[i] = items[i].rows;
        search->deadline_s[i] = items[i].deadline_s - start_s;
        search->met[i + 1].end_s = HUGE_VAL;
        search->tried[i + 1] = 0;
        if (i > 0 &&
            (items[i].rows != items[0].rows || search->deadline_s[i] < search->deadline_s[i - 1]))
            search->is_even = false;
    }
    search->met[0] = (struct entry){.end_s = 0.0, .slack_s = HUGE_VAL};
}

/* Better: earlier; as early, but with less left out at first, or with a larger first batch. */
static bool is_better(const struct search *search, double end_s, size_t skips, size_t count,
                      const struct entry *than)
{
    if (end_s < than->end_s - search->tie_s)
        return true;
    if (skips != than->first_skips)
        return skips < than->first_skips;
    return count > than->first_count;
}

static void improve(struct search *search, size_t met, const struct entry *by)
{
    struct entry *entry = &search->met[met];
    if (by->end_s > entry->end_s + search->tie_s)
        return;
    if (met > search->reach)
        search->reach = met;
    else if (!is_better(search, by->end_s, by->first_skips, by->first_count, entry))
        return;
    *entry = *by;
    search->tried[met] = 0;
}

/* All batches that may follow the plan of `met` met requests. */
static void extend(struct search *search, size_t met)
{
    const struct entry from = search->met[met];
    const bool is_first = from.first_count == 0;
    const size_t begin = met + search->missed;
    assert(begin < search->count);
    size_t i = begin + (search->is_even ? search->tried[met] : 0);
    unsigned rows = (unsigned)(i - begin) * search->rows[begin];
    double least_s = search->deadline_s[begin];
    for (; i < search->count; i++) {
        rows += search->rows[i];
        if (rows > search->max_rows)
            break;
        if (search->deadline_s[i] < least_s)
            least_s = search->deadline_s[i];
        const double end_s = from.end_s + search->batch_s[rows];
        const double slack_s = least_s - end_s;
        if (slack_s < 0.0)
            break;
        const struct entry by = {
            .end_s = end_s,
            .slack_s = slack_s < from.slack_s ? slack_s : from.slack_s,
            .first_skips = is_first ? begin : from.first_skips,
            .first_count = is_first ? i + 1 - begin : from.first_count,
        };
        improve(search, met + (i + 1 - begin), &by);
    }
    search->steps += i - begin - (search->is_even ? search->tried[met] : 0);
    search->tried[met] = (uint8_t)(i - begin);
}

/* First batches with item 0 in them: those in which it is in time, or those in which it is late. */
static void begin_with_first(struct search *search, bool is_late)
{
    unsigned rows = 0;
    double least_s = HUGE_VAL; /* of the others */
    for (size_t i = 0; i < search->count; i++) {
        rows += search->rows[i];
        if (rows > search->max_rows)
            return;
        if (i > 0 && search->deadline_s[i] < least_s)
            least_s = search->deadline_s[i];
        const double end_s = search->batch_s[rows];
        if (end_s > least_s)
            return;
        if ((end_s > search->deadline_s[0]) != is_late)
            continue;
        const double held_s = is_late ? least_s : fmin(least_s, search->deadline_s[0]);
        const struct entry by = {.end_s = end_s, .slack_s = held_s - end_s, .first_count = i + 1};
        improve(search, i + 1 - search->missed, &by);
    }
}

/* Whether everything is settled with as many missed as now, or the search is to end. */
static bool run(struct search *search)
{
    const size_t last = search->count - search->missed;
    for (size_t met = 0; met <= search->reach && met < last; met++) {
        if (search->met[met].end_s < HUGE_VAL)
            extend(search, met);
        if (search->steps > STEPS_MAX)
            return true;
    }
    return search->reach >= last && search->met[last].end_s < HUGE_VAL;
}

void wg__batch_plan(const struct wg_plan_item *items, size_t count, const double *batch_s,
                    unsigned max_rows, double start_s, enum wg_plan_first first,
                    struct wg_plan *out)
{
    assert(count <= WG_PLAN_ITEMS_MAX && (count > 0 || first == WG_PLAN_FREE));
    struct search search;
    search.batch_s = batch_s;
    search.max_rows = max_rows;
    search.count = count;
    init(&search, items, start_s);
    bool may_be_late = false;
    if (first != WG_PLAN_FREE) {
        may_be_late = first == WG_PLAN_KEEP_FIRST || batch_s[items[0].rows] > search.deadline_s[0];
        search.met[0].end_s = HUGE_VAL; /* item 0 is not left out */
        begin_with_first(&search, false);
    }
    while (!run(&search)) {
        search.missed++;
        if (search.missed == 1 && may_be_late)
            begin_with_first(&search, true);
    }
    const size_t met = search.reach < count - search.missed ? search.reach : count - search.missed;
    const struct entry *last = &search.met[met];
    *out = (struct wg_plan){
        .settled = met + search.missed,
        .missed = search.missed,
        .end_s = start_s + last->end_s,
        .slack_s = last->slack_s,
        .first_skips = last->first_count == 0 ? search.missed : last->first_skips,
        .first_count = last->first_count,
    };
}
