/* SPDX-License-Identifier: MIT
 *
 * Requests that wait.
 *
 * Entries lie in one array and hold two links: `next` and `previous` in their lane (`next` is also
 * the free list's), and `chain` in their bucket of the table by id. Entries that were never used
 * lie behind the mark `used`, so opening touches no memory that is not needed yet.
 *
 *     entries   [ r7 | r9 | free | r12 | ...not used yet... ]
 *     lane 0      r7 <-> r9 <-> r12          level 2 ends at r9, level 3 at r12
 *     buckets     r7 -> r12,  r9
 *
 * A lane remembers two entries of each priority level: the last one, and the one that was put in
 * before others most recently. A new request belongs behind the last one, if deadlines rise; or
 * near the other, if some rise at another distance (an SLO that was just cut, clients with a short
 * timeout). Only deadlines without order cost a walk through their level. Lanes keep their slots
 * and a dense list of slots is what callers see, so giving a lane away moves no entry.
 *
 * Rejected: a heap, which gives the first but not those that follow it, and a batch is many.
 *
 * Owns: see struct wg_queue.    Threads: one at a time.
 */
#include "schedule/queue.h"

#include <assert.h>
#include <math.h>

#include "base/alloc.h"
#include "base/hash.h"

#define NONE UINT32_MAX

struct entry {
    struct wg_request request; /* first: wg__lane_next finds the entry by it */
    uint32_t next, previous;
    uint32_t chain;
    uint32_t slot;
};

struct slot {
    struct wg_lane lane;
    uint32_t level_last[WG_PRIORITY_LEVELS];
    uint32_t level_near[WG_PRIORITY_LEVELS];
    uint32_t place; /* in the list of slots */
};

struct wg_queue {
    struct entry *entries; /* owned; `capacity` of them */
    uint32_t *buckets;     /* owned; bucket_mask + 1 */
    size_t bucket_mask;
    size_t capacity;
    size_t used;
    size_t count;
    uint32_t free; /* the first of the free list */

    struct slot slots[WG_QUEUE_LANES_MAX];
    uint32_t order[WG_QUEUE_LANES_MAX]; /* slots: those in use, then the others */
    size_t lane_count;
};

/* -- Opening -------------------------------------------------------------------------------- */

static void init(struct wg_queue *queue, size_t capacity)
{
    *queue = (struct wg_queue){.capacity = capacity, .free = NONE};
    for (uint32_t i = 0; i < WG_QUEUE_LANES_MAX; i++)
        queue->order[i] = i;
    queue->bucket_mask = 1;
    while (queue->bucket_mask < capacity)
        queue->bucket_mask *= 2;
    queue->bucket_mask -= 1;
}

enum wg_code wg__queue_open(struct wg_queue **out, size_t capacity, struct wg_error *err)
{
    if (capacity == 0 || capacity > WG_QUEUE_CAPACITY_MAX)
        return wg__fail(err, WG_EINVAL, "queue: capacity is %zu requests, expected 1 to %d",
                        capacity, WG_QUEUE_CAPACITY_MAX);
    struct wg_queue *queue = wg__alloc(sizeof *queue);
    if (queue == NULL)
        return wg__fail(err, WG_ENOMEM, "queue: out of memory");
    init(queue, capacity);
    queue->entries = wg__alloc_zeroed(capacity, sizeof *queue->entries);
    queue->buckets = wg__alloc_zeroed(queue->bucket_mask + 1, sizeof *queue->buckets);
    if (queue->entries == NULL || queue->buckets == NULL) {
        wg__queue_close(queue);
        return wg__fail(err, WG_ENOMEM, "queue: out of memory for %zu requests", capacity);
    }
    for (size_t i = 0; i <= queue->bucket_mask; i++)
        queue->buckets[i] = NONE;
    *out = queue;
    return WG_OK;
}

void wg__queue_close(struct wg_queue *queue)
{
    if (queue == NULL)
        return;
    wg__free(queue->buckets);
    wg__free(queue->entries);
    wg__free(queue);
}

/* -- The table by id ------------------------------------------------------------------------ */

/* Mixed, because ids are often counted up in steps. */
static uint32_t *bucket_of(const struct wg_queue *queue, uint64_t id)
{
    return &queue->buckets[wg__hash_mix(id) & queue->bucket_mask];
}

/* The link that leads to the entry of this id, or the one at the end of its chain. */
static uint32_t *find_link(const struct wg_queue *queue, uint64_t id)
{
    uint32_t *link = bucket_of(queue, id);
    while (*link != NONE && queue->entries[*link].request.id != id)
        link = &queue->entries[*link].chain;
    return link;
}

/* -- Lanes ---------------------------------------------------------------------------------- */

static uint32_t find_slot(const struct wg_queue *queue, const struct wg_request *request)
{
    for (size_t i = 0; i < queue->lane_count; i++) {
        const struct wg_lane *lane = &queue->slots[queue->order[i]].lane;
        if (lane->merge_key == request->merge_key && lane->model == request->model)
            return queue->order[i];
    }
    return NONE;
}

static uint32_t take_slot(struct wg_queue *queue, const struct wg_request *request)
{
    const uint32_t index = queue->order[queue->lane_count];
    struct slot *slot = &queue->slots[index];
    slot->lane = (struct wg_lane){
        .model = request->model, .merge_key = request->merge_key, .first = NONE, .last = NONE};
    for (size_t i = 0; i < WG_PRIORITY_LEVELS; i++)
        slot->level_last[i] = slot->level_near[i] = NONE;
    slot->place = (uint32_t)queue->lane_count++;
    return index;
}

static void give_slot(struct wg_queue *queue, uint32_t index)
{
    const uint32_t place = queue->slots[index].place;
    const uint32_t moved = queue->order[--queue->lane_count];
    queue->order[queue->lane_count] = index;
    queue->order[place] = moved;
    queue->slots[moved].place = place;
}

/* Whether `a`, of the same level and older in the queue, stays before `b`. */
static bool stays_before(const struct wg_request *a, const struct wg_request *b)
{
    if (a->deadline_s != b->deadline_s)
        return a->deadline_s < b->deadline_s;
    return a->arrived_s <= b->arrived_s;
}

static bool is_of_level(const struct wg_queue *queue, uint32_t index, unsigned priority)
{
    return index != NONE && queue->entries[index].request.priority == priority;
}

/* The last entry of the levels above; NONE: there is none. */
static uint32_t last_above(const struct slot *slot, unsigned priority)
{
    for (size_t level = priority - 1; level > 0; level--)
        if (slot->level_last[level - 1] != NONE)
            return slot->level_last[level - 1];
    return NONE;
}

/* The entry behind which it belongs; NONE: it is the first. */
static uint32_t find_place(const struct wg_queue *queue, const struct slot *slot,
                           const struct wg_request *request)
{
    const struct entry *entries = queue->entries;
    const uint32_t last = slot->level_last[request->priority - 1];
    if (last == NONE)
        return last_above(slot, request->priority);
    if (stays_before(&entries[last].request, request))
        return last;
    uint32_t at = slot->level_near[request->priority - 1];
    if (at == NONE)
        at = entries[last].previous;
    while (is_of_level(queue, at, request->priority) &&
           !stays_before(&entries[at].request, request))
        at = entries[at].previous;
    if (!is_of_level(queue, at, request->priority))
        return at;
    while (stays_before(&entries[entries[at].next].request, request)) /* ends at the last one */
        at = entries[at].next;
    return at;
}

static void link_entry(struct wg_queue *queue, struct slot *slot, uint32_t index)
{
    struct entry *entry = &queue->entries[index];
    const struct wg_request *request = &entry->request;
    entry->previous = find_place(queue, slot, request);
    uint32_t *link =
        entry->previous == NONE ? &slot->lane.first : &queue->entries[entry->previous].next;
    entry->next = *link;
    *link = index;
    *(entry->next == NONE ? &slot->lane.last : &queue->entries[entry->next].previous) = index;
    uint32_t *level_last = &slot->level_last[request->priority - 1];
    if (*level_last == NONE || *level_last == entry->previous)
        *level_last = index;
    else
        slot->level_near[request->priority - 1] = index;
    slot->lane.count++;
    slot->lane.rows += request->rows;
}

static void unlink_entry(struct wg_queue *queue, struct slot *slot, uint32_t index)
{
    const struct entry *entry = &queue->entries[index];
    *(entry->previous == NONE ? &slot->lane.first : &queue->entries[entry->previous].next) =
        entry->next;
    *(entry->next == NONE ? &slot->lane.last : &queue->entries[entry->next].previous) =
        entry->previous;
    const unsigned priority = entry->request.priority;
    uint32_t *level_last = &slot->level_last[priority - 1];
    uint32_t *level_near = &slot->level_near[priority - 1];
    const uint32_t before = is_of_level(queue, entry->previous, priority) ? entry->previous : NONE;
    const uint32_t behind = is_of_level(queue, entry->next, priority) ? entry->next : NONE;
    if (*level_last == index)
        *level_last = before;
    if (*level_near == index)
        *level_near = before != NONE ? before : behind;
    slot->lane.count--;
    slot->lane.rows -= entry->request.rows;
}

/* -- What callers do ------------------------------------------------------------------------ */

static uint32_t take_entry(struct wg_queue *queue)
{
    const uint32_t index = queue->free;
    if (index == NONE)
        return (uint32_t)queue->used++;
    queue->free = queue->entries[index].next;
    return index;
}

enum wg_queue_push wg__queue_push(struct wg_queue *queue, const struct wg_request *request)
{
    assert(request->priority >= 1 && request->priority <= WG_PRIORITY_LEVELS);
    assert(request->rows >= 1 && !isnan(request->deadline_s) && !isnan(request->arrived_s));
    uint32_t *link = find_link(queue, request->id);
    if (*link != NONE)
        return WG_QUEUE_DUPLICATE;
    if (queue->count == queue->capacity)
        return WG_QUEUE_FULL;
    uint32_t slot = find_slot(queue, request);
    if (slot == NONE && queue->lane_count == WG_QUEUE_LANES_MAX)
        return WG_QUEUE_LANES_FULL;
    if (slot == NONE)
        slot = take_slot(queue, request);
    const uint32_t index = take_entry(queue);
    queue->entries[index] = (struct entry){.request = *request, .chain = NONE, .slot = slot};
    *link = index;
    link_entry(queue, &queue->slots[slot], index);
    queue->count++;
    return WG_QUEUE_PUSHED;
}

bool wg__queue_remove(struct wg_queue *queue, uint64_t id, struct wg_request *out)
{
    uint32_t *link = find_link(queue, id);
    const uint32_t index = *link;
    if (index == NONE)
        return false;
    struct entry *entry = &queue->entries[index];
    if (out != NULL)
        *out = entry->request;
    *link = entry->chain;
    unlink_entry(queue, &queue->slots[entry->slot], index);
    if (queue->slots[entry->slot].lane.count == 0)
        give_slot(queue, entry->slot);
    entry->next = queue->free;
    queue->free = index;
    queue->count--;
    return true;
}

size_t wg__queue_count(const struct wg_queue *queue)
{
    return queue->count;
}

size_t wg__queue_lane_count(const struct wg_queue *queue)
{
    return queue->lane_count;
}

const struct wg_lane *wg__queue_lane(const struct wg_queue *queue, size_t index)
{
    assert(index < queue->lane_count);
    return &queue->slots[queue->order[index]].lane;
}

static const struct wg_request *request_at(const struct wg_queue *queue, uint32_t index)
{
    return index == NONE ? NULL : &queue->entries[index].request;
}

const struct wg_request *wg__lane_first(const struct wg_queue *queue, const struct wg_lane *lane)
{
    return request_at(queue, lane->first);
}

const struct wg_request *wg__lane_last(const struct wg_queue *queue, const struct wg_lane *lane)
{
    return request_at(queue, lane->last);
}

const struct wg_request *wg__lane_next(const struct wg_queue *queue,
                                       const struct wg_request *request)
{
    return request_at(queue, ((const struct entry *)request)->next);
}

const struct wg_request *wg__lane_next_level(const struct wg_queue *queue,
                                             const struct wg_request *request)
{
    const struct slot *slot = &queue->slots[((const struct entry *)request)->slot];
    const uint32_t last = slot->level_last[request->priority - 1];
    return request_at(queue, queue->entries[last].next);
}
