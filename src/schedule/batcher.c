/* SPDX-License-Identifier: MIT
 *
 * Verdicts on what waits.
 *
 *     items ──> past? ──> hopeless? ──> plan of the rest ──> does it leave out the first one?
 *                │             │                                │ no           │ yes
 *                v             v                                v              v
 *              PAST        HOPELESS (early),          TAKE its first batch    is it worth it?
 *                          or doomed                                     no: TAKE the plan with it
 *                                                                       yes: SACRIFICED, or doomed;
 *                                                                            look at the next one
 *
 * A request is sacrificed last, when the server is free and it is the first one: until then
 * something may have changed. It is worth it when the plan that meets it misses more requests in
 * total than the free plan, which counts it as missed: at least two others for it. One for one is
 * no gain, and then who came first goes first.
 *
 * Threads: pure, any thread.
 */
#include "schedule/batcher.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Each request that the best plan leaves out at first costs another plan, of the whole queue. One
 * choice looks closely at as many as make so many requests in total: 12 of a queue of 8, 1 of one
 * of 64. Further ones that are left out wait, and are looked at next time. */
enum { LOOKED_AT_MAX = 96 };

struct scene {
    const struct wg_batcher *batcher;
    const struct wg_plan_item *items;
    size_t count;
    const double *batch_s;
    double now_s;
    enum wg_verdict *verdicts;
    struct wg_batch_choice *choice;

    struct wg_plan_item hopeful[WG_PLAN_ITEMS_MAX]; /* those that a plan may meet */
    uint8_t index[WG_PLAN_ITEMS_MAX];               /* theirs in `items` */
    size_t hopeful_count;
};

/* What it takes alone, as likely as not. */
static double likely_s(const struct scene *scene, const struct wg_plan_item *item)
{
    return scene->batcher->likely_share * scene->batch_s[item->rows];
}

static bool is_hopeless(const struct scene *scene, const struct wg_plan_item *item)
{
    return likely_s(scene, item) > item->deadline_s - scene->now_s;
}

/* No plan may count on it. */
static bool is_doomed(const struct scene *scene, const struct wg_plan_item *item)
{
    return scene->batch_s[item->rows] > item->deadline_s - scene->now_s;
}

static void take(struct scene *scene, size_t i)
{
    assert(scene->verdicts[i] == WG_VERDICT_WAIT);
    scene->verdicts[i] = WG_VERDICT_TAKE;
    scene->choice->take_count++;
    scene->choice->rows += scene->items[i].rows;
}

static void drop(struct scene *scene, size_t i, enum wg_verdict why)
{
    scene->verdicts[i] = why;
    scene->choice->drop_count++;
}

static void drop_what_is_certain(struct scene *scene)
{
    const bool is_early = scene->batcher->drop == WG_DROP_EARLY;
    for (size_t i = 0; i < scene->count; i++) {
        const struct wg_plan_item *item = &scene->items[i];
        assert(item->rows >= 1 && item->rows <= scene->batcher->max_rows);
        scene->verdicts[i] = WG_VERDICT_WAIT;
        if (item->deadline_s <= scene->now_s)
            drop(scene, i, WG_VERDICT_PAST);
        else if (is_early && is_hopeless(scene, item))
            drop(scene, i, WG_VERDICT_HOPELESS);
    }
}

/* -- The other batchers --------------------------------------------------------------------- */

static bool fits(const struct scene *scene, size_t i)
{
    return scene->items[i].rows <= scene->batcher->max_rows - scene->choice->rows;
}

/* The first that wait, until one does not fit. Returns whether no more would go in. */
static bool take_in_order(struct scene *scene)
{
    for (size_t i = 0; i < scene->count; i++) {
        if (scene->verdicts[i] != WG_VERDICT_WAIT)
            continue;
        if (!fits(scene, i))
            return true;
        take(scene, i);
    }
    return scene->choice->rows == scene->batcher->max_rows || scene->count == WG_PLAN_ITEMS_MAX;
}

static void take_nothing(struct scene *scene)
{
    for (size_t i = 0; i < scene->count; i++)
        if (scene->verdicts[i] == WG_VERDICT_TAKE)
            scene->verdicts[i] = WG_VERDICT_WAIT;
    scene->choice->take_count = 0;
    scene->choice->rows = 0;
}

static void take_as_triton(struct scene *scene, double oldest_arrived_s)
{
    const double due_s = oldest_arrived_s + scene->batcher->delay_s;
    const bool is_full = take_in_order(scene);
    if (is_full || scene->choice->take_count == 0 || scene->now_s >= due_s)
        return;
    take_nothing(scene);
    scene->choice->wake_s = due_s;
}

static void take_one(struct scene *scene)
{
    for (size_t i = 0; i < scene->count; i++)
        if (scene->verdicts[i] == WG_VERDICT_WAIT) {
            take(scene, i);
            return;
        }
}

/* -- Wattgov's ------------------------------------------------------------------------------ */

static void gather_hopeful(struct scene *scene)
{
    memset(scene->index, 0, sizeof scene->index);
    scene->hopeful_count = 0;
    for (size_t i = 0; i < scene->count; i++) {
        if (scene->verdicts[i] != WG_VERDICT_WAIT || is_doomed(scene, &scene->items[i]))
            continue;
        scene->hopeful[scene->hopeful_count] = scene->items[i];
        scene->index[scene->hopeful_count++] = (uint8_t)i;
    }
}

static struct wg_plan plan_from(const struct scene *scene, size_t begin, size_t end,
                                enum wg_plan_first first)
{
    struct wg_plan plan;
    wg__batch_plan(scene->hopeful + begin, end - begin, scene->batch_s, scene->batcher->max_rows,
                   scene->now_s, first, &plan);
    return plan;
}

/* The best plan of the hopeful from `begin` on leaves the first of them out: whether it is met all
 * the same, and then the plan with it. */
static bool keep_first(const struct scene *scene, size_t begin, struct wg_plan *plan)
{
    size_t level_end = begin + 1;
    while (level_end < scene->hopeful_count &&
           scene->hopeful[level_end].priority == scene->hopeful[begin].priority)
        level_end++;
    struct wg_plan without = *plan;
    struct wg_plan with = plan_from(scene, begin, level_end, WG_PLAN_MEET_FIRST);
    if (level_end < scene->hopeful_count)
        without = plan_from(scene, begin, level_end, WG_PLAN_FREE);
    /* Plans that were cut short at different places can't be compared. */
    if (with.missed > without.missed && with.settled == without.settled)
        return false;
    if (level_end < scene->hopeful_count)
        with = plan_from(scene, begin, scene->hopeful_count, WG_PLAN_MEET_FIRST);
    *plan = with;
    return true;
}

/* What waits and is in no plan goes along where that costs no one a deadline. The hopeful from
 * `later` on are in the plan, or will be looked at when they are the first. */
static void take_doomed_along(struct scene *scene, size_t later, double slack_s)
{
    const bool is_early = scene->batcher->drop == WG_DROP_EARLY;
    const double *batch_s = scene->batch_s;
    const unsigned planned = scene->choice->rows;
    for (size_t i = 0; i < scene->count; i++) {
        if (later < scene->hopeful_count && scene->index[later] == i) {
            later++;
            continue;
        }
        if (scene->verdicts[i] != WG_VERDICT_WAIT || !fits(scene, i))
            continue;
        if (is_early &&
            !is_doomed(scene, &scene->items[i])) /* it will be looked at, or sacrificed */
            continue;
        const double end_s = batch_s[scene->choice->rows + scene->items[i].rows];
        if (end_s - batch_s[planned] <= slack_s)
            take(scene, i);
    }
}

/* Nothing can be met: the one that is late by the least, alone. */
static void take_least_late(struct scene *scene)
{
    size_t best = scene->count;
    double least_s = HUGE_VAL;
    for (size_t i = 0; i < scene->count; i++) {
        if (scene->verdicts[i] != WG_VERDICT_WAIT)
            continue;
        const double late_s = scene->batch_s[scene->items[i].rows] - scene->items[i].deadline_s;
        if (late_s < least_s || best == scene->count) {
            best = i;
            least_s = late_s;
        }
    }
    if (best < scene->count)
        take(scene, best);
}

static void take_by_plan(struct scene *scene)
{
    gather_hopeful(scene);
    if (scene->hopeful_count == 0) {
        take_least_late(scene);
        return;
    }
    const bool is_early = scene->batcher->drop == WG_DROP_EARLY;
    struct wg_plan plan = plan_from(scene, 0, scene->hopeful_count, WG_PLAN_FREE);
    size_t begin = 0;
    while (plan.first_skips > 0 && (begin + 1) * scene->hopeful_count <= LOOKED_AT_MAX) {
        if (keep_first(scene, begin, &plan))
            break;
        if (is_early)
            drop(scene, scene->index[begin], WG_VERDICT_SACRIFICED);
        begin++;
        plan.first_skips--; /* the best plan of the others is the rest of this one */
        plan.missed--;
        plan.settled--;
    }
    begin += plan.first_skips;
    for (size_t i = begin; i < begin + plan.first_count; i++)
        take(scene, scene->index[i]);
    take_doomed_along(scene, begin + plan.first_count, plan.slack_s);
}

/* -- Both ----------------------------------------------------------------------------------- */

/* When the next drop of what still waits will be certain. */
static double next_drop_s(const struct scene *scene)
{
    double least_s = HUGE_VAL;
    for (size_t i = 0; i < scene->count; i++) {
        if (scene->verdicts[i] != WG_VERDICT_WAIT)
            continue;
        const struct wg_plan_item *item = &scene->items[i];
        const double at_s = scene->batcher->drop == WG_DROP_EARLY
                                ? item->deadline_s - likely_s(scene, item)
                                : item->deadline_s;
        least_s = fmin(least_s, at_s);
    }
    return fmax(least_s, nextafter(scene->now_s, HUGE_VAL));
}

void wg__batcher_choose(const struct wg_batcher *batcher, const struct wg_plan_item *items,
                        size_t count, double oldest_arrived_s, const double *batch_s, double now_s,
                        double earliest_s, enum wg_verdict *verdicts, struct wg_batch_choice *out)
{
    assert(count <= WG_PLAN_ITEMS_MAX);
    *out = (struct wg_batch_choice){.wake_s = HUGE_VAL};
    struct scene scene = {.count = 0};
    scene.batcher = batcher;
    scene.items = items;
    scene.count = count;
    scene.batch_s = batch_s;
    scene.now_s = now_s;
    scene.verdicts = verdicts;
    scene.choice = out;
    drop_what_is_certain(&scene);
    if (earliest_s <= now_s && out->drop_count < count) {
        if (batcher->kind == WG_BATCHER_WATTGOV)
            take_by_plan(&scene);
        else if (batcher->kind == WG_BATCHER_TRITON)
            take_as_triton(&scene, oldest_arrived_s);
        else
            take_one(&scene);
    }
    out->wake_s = fmin(out->wake_s, next_drop_s(&scene));
}
