/* SPDX-License-Identifier: MIT
 *
 * The queue against a plain list that is searched from end to end, through random pushes, removals
 * and walks.
 */
#include "schedule/queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "support/check.h"

static struct wg_queue *open_queue(size_t capacity)
{
    struct wg_queue *queue = NULL;
    struct wg_error err = {0};
    if (wg__queue_open(&queue, capacity, &err) != WG_OK)
        fail_msg("%s", err.text);
    return queue;
}

static struct wg_request request_of(uint64_t id, double deadline_s, unsigned priority)
{
    return (struct wg_request){.id = id,
                               .arrived_s = (double)id,
                               .deadline_s = deadline_s,
                               .rows = 1,
                               .priority = priority};
}

/* The ids of the only lane, in order, as "3 1 2". */
static void expect_order(const struct wg_queue *queue, const char *expected)
{
    char text[256] = "";
    assert_int_equal(wg__queue_lane_count(queue), 1);
    const struct wg_request *request = wg__lane_first(queue, wg__queue_lane(queue, 0));
    for (; request != NULL; request = wg__lane_next(queue, request)) {
        const size_t length = strlen(text);
        (void)snprintf(text + length, sizeof text - length, "%s%u", length == 0 ? "" : " ",
                       (unsigned)request->id);
    }
    assert_string_equal(text, expected);
}

static void push(struct wg_queue *queue, const struct wg_request *request)
{
    assert_int_equal(wg__queue_push(queue, request), WG_QUEUE_PUSHED);
}

static void orders_by_priority_then_deadline_then_arrival(void **state)
{
    (void)state;
    struct wg_queue *queue = open_queue(16);
    const struct wg_request requests[] = {
        request_of(1, 5.0, 3), request_of(2, 4.0, 3),  request_of(3, 9.0, 1),
        request_of(4, 4.0, 3), request_of(5, 1.0, 16), request_of(6, 7.0, 2),
        request_of(7, 8.0, 2), request_of(8, 0.5, 1),  request_of(9, 7.5, 2),
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        push(queue, &requests[i]);
    expect_order(queue, "8 3 6 9 7 2 4 1 5");
    assert_true(wg__queue_remove(queue, 7, NULL)); /* the last of its level */
    push(queue, &(struct wg_request){
                    .id = 10, .deadline_s = 9.0, .arrived_s = 10.0, .rows = 1, .priority = 2});
    expect_order(queue, "8 3 6 9 10 2 4 1 5");
    /* One that comes back, a failed batch's, has its old place. */
    assert_true(wg__queue_remove(queue, 2, NULL));
    push(queue, &requests[1]);
    expect_order(queue, "8 3 6 9 10 2 4 1 5");
    wg__queue_close(queue);
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    struct wg_queue *queue = open_queue(2);
    struct wg_request request = request_of(1, 1.0, 1);
    push(queue, &request);
    assert_int_equal(wg__queue_push(queue, &request), WG_QUEUE_DUPLICATE);
    request.id = 2;
    push(queue, &request);
    request.id = 3;
    assert_int_equal(wg__queue_push(queue, &request), WG_QUEUE_FULL);
    request.id = 2; /* says what is wrong with it even when there is no room either */
    assert_int_equal(wg__queue_push(queue, &request), WG_QUEUE_DUPLICATE);
    assert_int_equal(wg__queue_count(queue), 2);
    struct wg_request out = {0};
    assert_false(wg__queue_remove(queue, 3, &out));
    assert_int_equal(out.id, 0);
    assert_true(wg__queue_remove(queue, 1, &out));
    assert_int_equal(out.id, 1);
    assert_false(wg__queue_remove(queue, 1, &out));
    request.id = 3;
    push(queue, &request);
    wg__queue_close(queue);
}

static void lanes_are_given_away_and_bounded(void **state)
{
    (void)state;
    struct wg_queue *queue = open_queue(1000);
    assert_int_equal(wg__queue_lane_count(queue), 0);
    struct wg_request request = request_of(0, 1.0, 1);
    for (unsigned i = 0; i < WG_QUEUE_LANES_MAX; i++) {
        request.id = i;
        request.model = i / 2;
        request.merge_key = i % 2; /* lanes differ by model or key */
        push(queue, &request);
    }
    assert_int_equal(wg__queue_lane_count(queue), WG_QUEUE_LANES_MAX);
    request.id = 500;
    request.merge_key = 7;
    assert_int_equal(wg__queue_push(queue, &request), WG_QUEUE_LANES_FULL);
    assert_int_equal(wg__queue_count(queue), WG_QUEUE_LANES_MAX);
    assert_true(wg__queue_remove(queue, 11, NULL));
    assert_int_equal(wg__queue_lane_count(queue), WG_QUEUE_LANES_MAX - 1);
    push(queue, &request);
    assert_int_equal(wg__queue_lane_count(queue), WG_QUEUE_LANES_MAX);
    wg__queue_close(queue);
}

/* -- Against a plain list ------------------------------------------------------------------- */

enum { MODEL_MAX = 300 };

struct model {
    struct wg_request requests[MODEL_MAX]; /* in the order of pushing */
    size_t count;
};

static int compare(const struct wg_request *a, const struct wg_request *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    if (a->deadline_s != b->deadline_s)
        return a->deadline_s < b->deadline_s ? -1 : 1;
    if (a->arrived_s != b->arrived_s)
        return a->arrived_s < b->arrived_s ? -1 : 1;
    return 0;
}

static bool has_lane(const struct model *model, unsigned name, uint64_t key, size_t *lanes)
{
    bool found = false;
    *lanes = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct wg_request *a = &model->requests[i];
        bool is_first = true;
        for (size_t j = 0; j < i && is_first; j++)
            is_first = model->requests[j].model != a->model ||
                       model->requests[j].merge_key != a->merge_key;
        *lanes += is_first;
        found = found || (a->model == name && a->merge_key == key);
    }
    return found;
}

static enum wg_queue_push model_push(struct model *model, size_t capacity,
                                     const struct wg_request *request)
{
    size_t lanes = 0;
    for (size_t i = 0; i < model->count; i++)
        if (model->requests[i].id == request->id)
            return WG_QUEUE_DUPLICATE;
    if (model->count == capacity)
        return WG_QUEUE_FULL;
    if (!has_lane(model, request->model, request->merge_key, &lanes) && lanes == WG_QUEUE_LANES_MAX)
        return WG_QUEUE_LANES_FULL;
    model->requests[model->count++] = *request;
    return WG_QUEUE_PUSHED;
}

static bool model_remove(struct model *model, uint64_t id, struct wg_request *out)
{
    for (size_t i = 0; i < model->count; i++) {
        if (model->requests[i].id != id)
            continue;
        *out = model->requests[i];
        memmove(&model->requests[i], &model->requests[i + 1],
                (model->count - i - 1) * sizeof *model->requests);
        model->count--;
        return true;
    }
    return false;
}

/* The lane's requests are those of the model, by a stable selection. */
static size_t check_lane(const struct wg_queue *queue, const struct wg_lane *lane,
                         const struct model *model)
{
    bool seen[MODEL_MAX] = {false};
    size_t count = 0;
    size_t rows = 0;
    const struct wg_request *request = wg__lane_first(queue, lane);
    for (; request != NULL; request = wg__lane_next(queue, request)) {
        size_t best = MODEL_MAX;
        for (size_t i = 0; i < model->count; i++) {
            const struct wg_request *other = &model->requests[i];
            if (seen[i] || other->model != lane->model || other->merge_key != lane->merge_key)
                continue;
            if (best == MODEL_MAX || compare(other, &model->requests[best]) < 0)
                best = i;
        }
        assert_true(best < MODEL_MAX);
        seen[best] = true;
        assert_memory_equal(request, &model->requests[best], sizeof *request);
        count++;
        rows += request->rows;
    }
    assert_int_equal(lane->count, count);
    assert_int_equal(lane->rows, rows);
    assert_true(count > 0);
    return count;
}

static void check_all(const struct wg_queue *queue, const struct model *model)
{
    size_t lanes = 0;
    size_t total = 0;
    (void)has_lane(model, 0, 0, &lanes);
    assert_int_equal(wg__queue_lane_count(queue), lanes);
    for (size_t i = 0; i < lanes; i++)
        total += check_lane(queue, wg__queue_lane(queue, i), model);
    assert_int_equal(wg__queue_count(queue), total);
    assert_int_equal(total, model->count); /* each is in one lane, once */
}

static struct wg_request random_request(struct wg_rng *rng, unsigned lanes, double now_s)
{
    struct wg_request request;
    memset(&request, 0, sizeof request); /* its padding is compared, too */
    request.id = wg__rng_below(rng, 400) * UINT64_C(0x100000001);
    request.arrived_s = now_s;
    request.deadline_s = now_s + (double)wg__rng_below(rng, 6);
    request.merge_key = wg__rng_below(rng, lanes);
    request.model = wg__rng_below(rng, 3);
    request.rows = 1 + wg__rng_below(rng, 8);
    request.priority = 1 + wg__rng_below(rng, WG_PRIORITY_LEVELS);
    return request;
}

static void behaves_as_a_plain_list(void **state)
{
    (void)state;
    struct wg_rng root;
    wg__rng_init(&root, 71);
    for (uint64_t round = 0; round < 40; round++) {
        struct wg_rng rng = wg__rng_split(&root, round);
        const size_t capacity = 1 + wg__rng_below(&rng, MODEL_MAX);
        const unsigned lanes = 1 + wg__rng_below(&rng, 30);
        const unsigned pushes = 30 + wg__rng_below(&rng, 60); /* of 100 steps */
        struct wg_queue *queue = open_queue(capacity);
        struct model *model = calloc(1, sizeof *model);
        assert_non_null(model);
        wg__alloc_fail_from(0);
        for (unsigned step = 0; step < 600; step++) {
            const struct wg_request request =
                random_request(&rng, lanes, floor((double)step / 4.0));
            struct wg_request out = {0};
            struct wg_request expected = {0};
            if (wg__rng_below(&rng, 100) < pushes) {
                assert_int_equal(wg__queue_push(queue, &request),
                                 model_push(model, capacity, &request));
            } else {
                const bool is_there = model_remove(model, request.id, &expected);
                assert_true(wg__queue_remove(queue, request.id, &out) == is_there);
                assert_memory_equal(&out, &expected, sizeof out);
            }
            if (step % 50 == 49)
                check_all(queue, model);
        }
        assert_int_equal(wg__alloc_count(), 0);
        free(model);
        wg__queue_close(queue);
    }
}

static void failing_allocations_are_reported(void **state)
{
    (void)state;
    struct wg_queue *queue = NULL;
    struct wg_error err = {0};
    for (size_t nth = 1; nth <= 3; nth++) {
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__queue_open(&queue, 100, &err);
        wg__alloc_fail_from(0);
        assert_int_equal(code, WG_ENOMEM);
        assert_non_null(strstr(err.text, "queue: out of memory"));
        assert_null(queue);
    }
    wg__alloc_fail_from(4);
    assert_int_equal(wg__queue_open(&queue, 100, &err), WG_OK);
    wg__alloc_fail_from(0);
    wg__queue_close(queue);
    wg__queue_close(NULL);
}

static void rejects_a_capacity_that_cannot_be(void **state)
{
    (void)state;
    struct wg_queue *queue = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__queue_open(&queue, 0, &err), WG_EINVAL);
    assert_string_equal(err.text, "queue: capacity is 0 requests, expected 1 to 1048576");
    assert_int_equal(wg__queue_open(&queue, WG_QUEUE_CAPACITY_MAX + 1, &err), WG_EINVAL);
    assert_int_equal(wg__queue_open(&queue, WG_QUEUE_CAPACITY_MAX, &err), WG_OK);
    wg__queue_close(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_by_priority_then_deadline_then_arrival),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(lanes_are_given_away_and_bounded),
        cmocka_unit_test(behaves_as_a_plain_list),
        cmocka_unit_test(failing_allocations_are_reported),
        cmocka_unit_test(rejects_a_capacity_that_cannot_be),
    };
    return run_tests(tests);
}
