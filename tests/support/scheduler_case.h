/* SPDX-License-Identifier: MIT
 *
 * A scheduler to test: one model on a GPU that is told its times exactly, and short ways to tell
 * and to ask.
 */
#ifndef WG_TESTS_SUPPORT_SCHEDULER_CASE_H
#define WG_TESTS_SUPPORT_SCHEDULER_CASE_H

#include "schedule/scheduler.h"
#include "tests/support/check.h"

/* t(b) = 0.06 + 0.066 b, as EfficientNet-B7 on a small board; a step of r rows takes 0.005 + 0.01
 * r. */
static const struct wg_predictor_sample batch_samples[] = {
    {{1, 1, 1, 0}, 0.126},  {{2, 1, 1, 0}, 0.192},  {{4, 1, 1, 0}, 0.324},  {{8, 1, 1, 0}, 0.588},
    {{1, 1, 1, 64}, 0.252}, {{4, 1, 1, 64}, 0.648}, {{8, 1, 1, 64}, 1.176},
};
static const struct wg_predictor_sample step_samples[] = {
    {{1, 1, 1, 0}, 0.015}, {{8, 1, 1, 0}, 0.085}, {{64, 1, 1, 0}, 0.645}};

static inline double batch_s(unsigned rows)
{
    return 0.06 + 0.066 * rows;
}

static const struct wg_serving_model usual_model = {
    .max_rows = 8, .slo_s = 0.7, .samples = batch_samples, .sample_count = 4};

static inline struct wg_scheduler_setup usual_setup(enum wg_finetune_policy finetune)
{
    struct wg_scheduler_setup setup = {
        .model_count = 1,
        .models = &usual_model,
        .batcher = WG_BATCHER_WATTGOV,
        .drop = WG_DROP_EARLY,
        .finetune = finetune,
        .step_samples = step_samples,
        .step_sample_count = 3,
        .clock_setup = {.max_rows = 8,
                        .ladder = {.count = 2,
                                   .change_s = 0.01,
                                   .change_j = 0.1,
                                   .rungs = {{"max", 1, 1, 40, 12, 42},
                                             {"slow", 0.5, 1, 20, 8, 21}}}},
    };
    return setup;
}

static inline struct wg_scheduler *open_scheduler(const struct wg_scheduler_setup *setup)
{
    struct wg_scheduler *scheduler = NULL;
    struct wg_error err = {0};
    if (wg__scheduler_open(&scheduler, setup, &err) != WG_OK)
        fail_msg("%s", err.text);
    return scheduler;
}

static inline void tell(struct wg_scheduler *scheduler, const struct wg_event *event)
{
    struct wg_error err = {0};
    if (wg__scheduler_tell(scheduler, event, &err) != WG_OK)
        fail_msg("%s", err.text);
}

static inline void arrive(struct wg_scheduler *scheduler, double now_s, uint64_t id,
                          double deadline_s)
{
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_ARRIVE,
                                       .now_s = now_s,
                                       .request = {.id = id, .rows = 1, .deadline_s = deadline_s}});
}

static inline void submit(struct wg_scheduler *scheduler, double now_s, uint64_t id,
                          uint64_t iterations)
{
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_JOB,
                                       .now_s = now_s,
                                       .job = {.id = id, .batch = 64, .iterations = iterations}});
}

static inline void happen(struct wg_scheduler *scheduler, enum wg_event_kind kind, double now_s)
{
    tell(scheduler, &(struct wg_event){.kind = kind, .now_s = now_s});
}

/* The next action must be of this kind. */
static inline struct wg_action expect(struct wg_scheduler *scheduler, double now_s,
                                      enum wg_action_kind kind)
{
    struct wg_action action = {0};
    assert_true(wg__scheduler_ask(scheduler, now_s, &action));
    assert_int_equal(action.kind, kind);
    return action;
}

static inline void expect_nothing(struct wg_scheduler *scheduler, double now_s)
{
    struct wg_action action = {0};
    assert_false(wg__scheduler_ask(scheduler, now_s, &action));
}

#endif
