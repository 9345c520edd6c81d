/* SPDX-License-Identifier: MIT
 *
 * The plan against trying every way to cut a small queue into batches and left out requests.
 */
#include "schedule/batch_plan.h"

#include <assert.h>
#include <stdbool.h>

#include "base/rng.h"
#include "support/check.h"

enum { ROWS_MAX = 8, SMALL = 9 };

struct queue {
    struct wg_plan_item items[WG_PLAN_ITEMS_MAX];
    size_t count;
    double batch_s[ROWS_MAX + 1];
    unsigned max_rows;
    double start_s;
};

static struct wg_plan plan_of(const struct queue *queue, enum wg_plan_first first)
{
    struct wg_plan plan;
    wg__batch_plan(queue->items, queue->count, queue->batch_s, queue->max_rows, queue->start_s,
                   first, &plan);
    return plan;
}

/* t(r) = first + more (r - 1) */
static void set_times(struct queue *queue, unsigned max_rows, double first_s, double more_s)
{
    queue->max_rows = max_rows;
    for (unsigned r = 1; r <= max_rows; r++)
        queue->batch_s[r] = first_s + more_s * (double)(r - 1);
}

/* -- Cases by hand -------------------------------------------------------------------------- */

static void takes_all_at_once_when_that_keeps_all(void **state)
{
    (void)state;
    struct queue queue = {.count = 3, .start_s = 10.0};
    set_times(&queue, 8, 1.0, 0.5);
    for (size_t i = 0; i < 3; i++)
        queue.items[i] = (struct wg_plan_item){.deadline_s = 12.5 + (double)i, .rows = 1};
    const struct wg_plan plan = plan_of(&queue, WG_PLAN_FREE);
    assert_int_equal(plan.missed, 0);
    assert_int_equal(plan.first_skips, 0);
    assert_int_equal(plan.first_count, 3);
    check_close(plan.end_s, 12.0, 1e-12);
    check_close(plan.slack_s, 0.5, 1e-12);
}

static void shrinks_the_first_batch_to_the_oldest_deadline(void **state)
{
    (void)state;
    struct queue queue = {.count = 3};
    set_times(&queue, 8, 1.0, 0.5);
    queue.items[0] = (struct wg_plan_item){.deadline_s = 1.75, .rows = 1};
    queue.items[1] = (struct wg_plan_item){.deadline_s = 9.0, .rows = 1};
    queue.items[2] = (struct wg_plan_item){.deadline_s = 9.0, .rows = 1};
    const struct wg_plan plan = plan_of(&queue, WG_PLAN_FREE);
    assert_int_equal(plan.missed, 0);
    assert_int_equal(plan.first_count, 2); /* 1 and then 2 ends as early, but serves fewer first */
    check_close(plan.slack_s, 0.25, 1e-12);
    check_close(plan.end_s, 2.5, 1e-12);
}

static void leaves_out_the_one_that_costs_the_most(void **state)
{
    (void)state;
    struct queue queue = {.count = 4};
    set_times(&queue, 4, 1.0, 0.1);
    queue.items[0] = (struct wg_plan_item){.deadline_s = 1.0, .rows = 1};
    for (size_t i = 1; i < 4; i++)
        queue.items[i] = (struct wg_plan_item){.deadline_s = 1.5, .rows = 1};
    const struct wg_plan plan = plan_of(&queue, WG_PLAN_FREE);
    assert_int_equal(plan.missed, 1);
    assert_int_equal(plan.first_skips, 1);
    assert_int_equal(plan.first_count, 3);
    const struct wg_plan met = plan_of(&queue, WG_PLAN_MEET_FIRST);
    assert_int_equal(met.missed, 3);
    assert_int_equal(met.first_count, 1);
    const struct wg_plan kept = plan_of(&queue, WG_PLAN_KEEP_FIRST); /* late, with all others */
    assert_int_equal(kept.missed, 1);
    assert_int_equal(kept.first_count, 4);
}

static void all_is_missed_when_nothing_can_be_met(void **state)
{
    (void)state;
    struct queue queue = {.count = 2, .start_s = 7.0};
    set_times(&queue, 4, 1.0, 0.0);
    queue.items[0] = (struct wg_plan_item){.deadline_s = 6.0, .rows = 1};
    queue.items[1] = (struct wg_plan_item){.deadline_s = 7.5, .rows = 1};
    struct wg_plan plan = plan_of(&queue, WG_PLAN_FREE);
    assert_int_equal(plan.missed, 2);
    assert_int_equal(plan.first_skips, 2);
    assert_int_equal(plan.first_count, 0);
    assert_true(plan.end_s == 7.0 && plan.slack_s == HUGE_VAL);
    plan = plan_of(&queue, WG_PLAN_MEET_FIRST); /* it can't be met, but is kept */
    assert_int_equal(plan.missed, 2);
    assert_int_equal(plan.first_skips, 0);
    assert_int_equal(plan.first_count, 1);
    assert_true(plan.end_s == 8.0);
}

static void an_empty_queue_has_an_empty_plan(void **state)
{
    (void)state;
    struct queue queue = {.start_s = 3.0};
    set_times(&queue, 4, 1.0, 0.0);
    const struct wg_plan plan = plan_of(&queue, WG_PLAN_FREE);
    assert_true(plan.missed == 0 && plan.first_count == 0 && plan.first_skips == 0);
    assert_true(plan.end_s == 3.0);
}

/* -- Everything is tried -------------------------------------------------------------------- */

struct best {
    size_t missed;
    double end_s; /* from the start on */
};

struct attempt {
    const struct queue *queue;
    enum wg_plan_first first;
    bool may_be_late; /* item 0 */
    struct best best;
};

static void try_from(struct attempt *attempt, size_t i, size_t missed, double end_s)
{
    const struct queue *queue = attempt->queue;
    if (i == queue->count) {
        if (missed < attempt->best.missed ||
            (missed == attempt->best.missed && end_s < attempt->best.end_s))
            attempt->best = (struct best){.missed = missed, .end_s = end_s};
        return;
    }
    if (i > 0 || attempt->first == WG_PLAN_FREE)
        try_from(attempt, i + 1, missed + 1, end_s);
    unsigned rows = 0;
    for (size_t last = i; last < queue->count; last++) {
        rows += queue->items[last].rows;
        if (rows > queue->max_rows)
            return;
        const double next_s = end_s + queue->batch_s[rows];
        size_t late = 0;
        bool is_allowed = true;
        for (size_t j = i; j <= last; j++) {
            if (next_s <= queue->items[j].deadline_s - queue->start_s)
                continue;
            late++;
            is_allowed = is_allowed && j == 0 && attempt->may_be_late;
        }
        if (is_allowed)
            try_from(attempt, last + 1, missed + late, next_s);
    }
}

static struct best try_all(const struct queue *queue, enum wg_plan_first first)
{
    struct attempt attempt = {.queue = queue, .first = first, .best = {.missed = SIZE_MAX}};
    attempt.may_be_late =
        first == WG_PLAN_KEEP_FIRST ||
        (first == WG_PLAN_MEET_FIRST &&
         queue->batch_s[queue->items[0].rows] > queue->items[0].deadline_s - queue->start_s);
    try_from(&attempt, 0, 0, 0.0);
    return attempt.best;
}

static void random_queue(struct wg_rng *rng, struct queue *queue, size_t count)
{
    queue->count = count;
    queue->start_s = wg__rng_uniform(rng) * 100.0;
    queue->max_rows = 1 + wg__rng_below(rng, ROWS_MAX);
    double t_s = 0.2 + wg__rng_uniform(rng);
    for (unsigned r = 1; r <= queue->max_rows; r++) {
        queue->batch_s[r] = t_s; /* stairs, cheap and dear steps, all that never falls */
        t_s += wg__rng_below(rng, 3) == 0 ? 0.0 : wg__rng_uniform(rng) * 0.6;
    }
    const bool are_sorted = wg__rng_below(rng, 4) != 0;
    const bool are_single = wg__rng_below(rng, 2) == 0;
    const double tightness = 0.2 + 2.0 * wg__rng_uniform(rng);
    double deadline_s = queue->start_s - 0.5;
    for (size_t i = 0; i < count; i++) {
        deadline_s += wg__rng_uniform(rng) * tightness;
        if (!are_sorted)
            deadline_s = queue->start_s + (wg__rng_uniform(rng) * 6.0 - 0.5) * tightness;
        queue->items[i] = (struct wg_plan_item){
            .deadline_s = deadline_s,
            .rows = are_single ? 1 : 1 + wg__rng_below(rng, queue->max_rows),
        };
    }
}

/* What the plan says of its first batch leads to what it says of the whole. */
static void check_first(const struct queue *queue, const struct wg_plan *plan,
                        enum wg_plan_first first)
{
    if (plan->first_count == 0) {
        assert_int_equal(plan->missed, queue->count);
        return;
    }
    size_t late = 0;
    unsigned rows = 0;
    for (size_t i = 0; i < plan->first_count; i++)
        rows += queue->items[plan->first_skips + i].rows;
    assert_true(rows <= queue->max_rows);
    const double end_s = queue->batch_s[rows];
    for (size_t i = plan->first_skips; i < plan->first_skips + plan->first_count; i++)
        late += end_s > queue->items[i].deadline_s - queue->start_s;
    assert_true(late == 0 || (late == 1 && first != WG_PLAN_FREE && plan->first_skips == 0));
    struct queue rest = {.start_s = queue->start_s + end_s, .max_rows = queue->max_rows};
    for (unsigned r = 1; r <= queue->max_rows; r++)
        rest.batch_s[r] = queue->batch_s[r];
    for (size_t i = plan->first_skips + plan->first_count; i < queue->count; i++)
        rest.items[rest.count++] = queue->items[i];
    const struct best best = try_all(&rest, WG_PLAN_FREE);
    assert_int_equal(plan->missed, plan->first_skips + late + best.missed);
    check_close_abs(plan->end_s, rest.start_s + best.end_s, 1e-12, 1e-9);
}

/* Beginning later by nearly the slack misses no more. */
static void check_slack(const struct queue *queue, const struct wg_plan *plan)
{
    assert_true(plan->slack_s >= 0.0);
    struct queue later = *queue;
    later.start_s += fmin(plan->slack_s, 1000.0) - 1e-9;
    assert_true(plan_of(&later, WG_PLAN_FREE).missed <= plan->missed);
}

static void is_the_best_of_all_plans(void **state)
{
    (void)state;
    struct wg_rng root;
    wg__rng_init(&root, 72);
    size_t missed[SMALL + 1] = {0};
    for (uint64_t round = 0; round < 9000; round++) {
        struct wg_rng rng = wg__rng_split(&root, round);
        struct queue queue;
        random_queue(&rng, &queue, 1 + wg__rng_below(&rng, SMALL));
        for (int first = WG_PLAN_FREE; first <= WG_PLAN_MEET_FIRST; first++) {
            const struct wg_plan plan = plan_of(&queue, (enum wg_plan_first)first);
            const struct best best = try_all(&queue, (enum wg_plan_first)first);
            assert_int_equal(plan.settled, queue.count);
            if (plan.missed != best.missed)
                fail_msg("round %u: %zu missed, but %zu can be", (unsigned)round, plan.missed,
                         best.missed);
            check_close_abs(plan.end_s, queue.start_s + best.end_s, 1e-12, 1e-9);
            check_first(&queue, &plan, (enum wg_plan_first)first);
            if (first == WG_PLAN_FREE)
                check_slack(&queue, &plan);
        }
        missed[plan_of(&queue, WG_PLAN_FREE).missed]++;
    }
    for (size_t i = 0; i < SMALL; i++)
        assert_true(missed[i] > 50); /* the cases are of all kinds */
}

/* Large queues: no oracle, but what must hold of any. */
static void large_queues_keep_what_must_hold(void **state)
{
    (void)state;
    struct wg_rng root;
    wg__rng_init(&root, 73);
    size_t cut = 0;
    for (uint64_t round = 0; round < 1500; round++) {
        struct wg_rng rng = wg__rng_split(&root, round);
        struct queue queue;
        random_queue(&rng, &queue, WG_PLAN_ITEMS_MAX);
        const struct wg_plan whole = plan_of(&queue, WG_PLAN_FREE);
        const struct wg_plan kept = plan_of(&queue, WG_PLAN_KEEP_FIRST);
        const struct wg_plan met = plan_of(&queue, WG_PLAN_MEET_FIRST);
        assert_true(kept.first_skips == 0 && kept.first_count > 0);
        if (whole.settled + kept.settled + met.settled < 3 * queue.count) {
            cut++;
            continue;
        }
        check_slack(&queue, &whole);
        assert_true(whole.missed <= kept.missed && kept.missed <= met.missed);
        queue.count--; /* one fewer: at most one fewer is missed */
        const struct wg_plan fewer = plan_of(&queue, WG_PLAN_FREE);
        assert_true(fewer.missed <= whole.missed && whole.missed <= fewer.missed + 1);
        queue.start_s += 0.1;
        assert_true(plan_of(&queue, WG_PLAN_FREE).missed >= fewer.missed);
    }
    assert_true(cut < 150);
}

/* Rows that differ, large batches, deadlines close together: too much to try. */
static void a_plan_that_takes_too_long_ends_with_the_first_requests(void **state)
{
    (void)state;
    static double batch_s[WG_PLAN_ITEMS_MAX + 1];
    struct wg_plan_item items[WG_PLAN_ITEMS_MAX];
    for (size_t r = 1; r <= WG_PLAN_ITEMS_MAX; r++)
        batch_s[r] = 0.2 + 0.015 * (double)r;
    for (size_t i = 0; i < WG_PLAN_ITEMS_MAX; i++)
        items[i] = (struct wg_plan_item){.deadline_s = 1.0 + 0.001 * (double)i,
                                         .rows = 1 + (unsigned)(i % 2)};
    for (int first = WG_PLAN_FREE; first <= WG_PLAN_MEET_FIRST; first++) {
        struct wg_plan plan;
        wg__batch_plan(items, WG_PLAN_ITEMS_MAX, batch_s, WG_PLAN_ITEMS_MAX, 0.0,
                       (enum wg_plan_first)first, &plan);
        assert_in_range(plan.settled, 16, WG_PLAN_ITEMS_MAX - 1);
        assert_true(plan.first_count > 0 && plan.missed < plan.settled);
        assert_true(plan.end_s <= 1.064); /* nobody that it counts as met is late */
        struct wg_plan part;
        wg__batch_plan(items, plan.settled, batch_s, WG_PLAN_ITEMS_MAX, 0.0,
                       (enum wg_plan_first)first, &part);
        assert_true(part.missed <= plan.missed && plan.missed <= part.missed + 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_all_at_once_when_that_keeps_all),
        cmocka_unit_test(shrinks_the_first_batch_to_the_oldest_deadline),
        cmocka_unit_test(leaves_out_the_one_that_costs_the_most),
        cmocka_unit_test(all_is_missed_when_nothing_can_be_met),
        cmocka_unit_test(an_empty_queue_has_an_empty_plan),
        cmocka_unit_test(is_the_best_of_all_plans),
        cmocka_unit_test(large_queues_keep_what_must_hold),
        cmocka_unit_test(a_plan_that_takes_too_long_ends_with_the_first_requests),
    };
    return run_tests(tests);
}
