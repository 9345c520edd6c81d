/* SPDX-License-Identifier: MIT
 *
 * A policy that lives on, and one that is rebuilt from the log at any moment, give the same
 * answers.
 *
 * Two policies of a kind are driven through the same random life: surveys, profiles, several runs
 * in flight, learning curves, failures, runs that are forgotten and some of those that come back.
 * All is written down. One of the two is destroyed every now and then and made anew from the log,
 * or from saved bytes and the rest of the log. After that, every answer of both must agree.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "optimize/batch_size.h"
#include "support/batch_driver.h"

enum { EVENTS_MAX = 60000, FLIGHTS = 3, ARMS = 6, MAX_EPOCHS = 40 };

struct event {
    enum { ASKED, SURVEYED, PROFILED, CONTINUED, ENDED, FORGOTTEN } kind;
    struct wg_batch_request request;
    struct wg_batch_step step;
    struct wg_batch_profile profile;
    struct wg_batch_outcome outcome;
    unsigned epochs;
    double metric;
};

struct flight {
    bool is_open;
    struct wg_batch_request request;
    struct wg_batch_step step;
    unsigned epochs, needs;
};

struct life {
    const struct wg_batch_policy_ops *ops;
    struct wg_batch_job job;
    struct wg_batch_options options;
    struct wg_batch_policy *steady, *rebuilt;
    struct wg_rng luck, root;
    struct flight flights[FLIGHTS];
    uint64_t next_recurrence;
    bool is_profiled[ARMS];
    struct event *events;
    size_t event_count;
    struct wg_buffer saved;
    size_t saved_at;
    unsigned rebuilds, loads, asks;
};

static struct wg_batch_policy *make(const struct life *life)
{
    struct wg_batch_policy *policy = NULL;
    struct wg_error err;
    if (life->ops->create(&policy, &life->job, &life->options, &err) != WG_OK)
        fail_msg("%s", err.text);
    return policy;
}

static void replay(const struct life *life, struct wg_batch_policy *policy, size_t from)
{
    const struct wg_batch_policy_ops *ops = life->ops;
    for (size_t i = from; i < life->event_count; i++) {
        const struct event *event = &life->events[i];
        const size_t arm = event->step.arm;
        switch (event->kind) {
        case ASKED:
            ops->resume(policy, &event->request, &event->step);
            break;
        case SURVEYED:
            ops->tell_survey(policy, arm, event->profile.epoch_cost_j, event->outcome.cost_j);
            break;
        case PROFILED:
            ops->tell_profile(policy, arm, &event->profile);
            break;
        case CONTINUED:
            if (ops->may_continue != NULL)
                (void)ops->may_continue(policy, event->step.ticket, event->epochs, event->metric);
            break;
        case ENDED:
            ops->tell_run(policy, event->step.ticket, &event->outcome);
            break;
        case FORGOTTEN:
            ops->forget(policy, event->step.ticket);
            break;
        }
    }
}

static void rebuild(struct life *life)
{
    struct wg_batch_policy *policy = make(life);
    size_t from = 0;
    if (life->saved.length > 0 && wg__rng_below(&life->luck, 2) == 0) {
        assert_true(life->ops->load(policy, life->saved.data, life->saved.length));
        from = life->saved_at;
        life->loads++;
    }
    replay(life, policy, from);
    life->ops->destroy(life->rebuilt);
    life->rebuilt = policy;
    life->rebuilds++;
}

static void save(struct life *life)
{
    struct wg_buffer bytes;
    wg__buffer_init(&bytes);
    assert_true(life->ops->save(life->rebuilt, &bytes) && !bytes.failed);
    wg__buffer_fini(&life->saved);
    life->saved = bytes;
    life->saved_at = life->event_count;
}

static struct event *note(struct life *life, int kind, const struct flight *flight)
{
    assert_true(life->event_count < EVENTS_MAX);
    struct event *event = &life->events[life->event_count++];
    *event = (struct event){.request = flight->request, .step = flight->step};
    event->kind = (unsigned)kind;
    return event;
}

static double epoch_cost_j(size_t arm)
{
    return 100.0 / (1.0 + (double)arm) + 5.0 * (double)arm;
}

static void profile(struct life *life, const struct flight *flight)
{
    const size_t arm = flight->step.arm;
    const double cost_j = epoch_cost_j(arm) * (1 + 0.02 * wg__rng_uniform(&life->luck));
    const struct wg_batch_profile profile = {cost_j, 1.2 * cost_j, 1.5 * cost_j};
    note(life, PROFILED, flight)->profile = profile;
    life->ops->tell_profile(life->steady, arm, &profile);
    life->ops->tell_profile(life->rebuilt, arm, &profile);
    life->is_profiled[arm] = true;
}

static void survey(struct life *life, const struct flight *flight)
{
    struct event *event = note(life, SURVEYED, flight);
    event->profile.epoch_cost_j = 1.2 * epoch_cost_j(flight->step.arm);
    event->outcome.cost_j = 2;
    life->ops->tell_survey(life->steady, flight->step.arm, event->profile.epoch_cost_j, 2);
    life->ops->tell_survey(life->rebuilt, flight->step.arm, event->profile.epoch_cost_j, 2);
}

static void ask(struct life *life, struct flight *flight)
{
    for (;;) {
        const struct wg_rng of_recurrence = wg__rng_split(&life->root, flight->request.recurrence);
        struct wg_rng one = wg__rng_split(&of_recurrence, flight->request.attempt), two = one;
        struct wg_batch_step other;
        life->ops->ask(life->steady, &flight->request, &one, &flight->step);
        life->ops->ask(life->rebuilt, &flight->request, &two, &other);
        assert_int_equal(flight->step.kind, other.kind);
        assert_int_equal(flight->step.arm, other.arm);
        if (other.kind == WG_STEP_RUN) {
            assert_int_equal(flight->step.limit, other.limit);
            assert_int_equal(flight->step.ticket, other.ticket);
        }
        assert_int_equal(life->ops->best_arm(life->steady), life->ops->best_arm(life->rebuilt));
        (void)note(life, ASKED, flight);
        life->asks++;
        if (flight->step.kind == WG_STEP_RUN)
            break;
        assert_false(flight->request.no_survey);
        if (wg__rng_below(&life->luck, 4) > 0) /* some surveys never tell */
            survey(life, flight);
    }
    flight->is_open = true;
    flight->epochs = 0;
    /* The job turns into another one now and then, which the change detector notices. */
    const double level = life->next_recurrence % 80 < 40 ? 6 : 15;
    const double need = level * (1 + fabs((double)flight->step.arm - 2.5)) *
                        exp(0.3 * (wg__rng_uniform(&life->luck) - 0.5));
    flight->needs = (unsigned)need;
    if (!life->is_profiled[flight->step.arm] || wg__rng_below(&life->luck, 9) == 0)
        profile(life, flight);
}

static void end(struct life *life, struct flight *flight, bool reached)
{
    struct event *event = note(life, ENDED, flight);
    event->outcome =
        (struct wg_batch_outcome){.reached = reached,
                                  .epochs = flight->epochs,
                                  .cost_j = epoch_cost_j(flight->step.arm) * flight->epochs};
    life->ops->tell_run(life->steady, flight->step.ticket, &event->outcome);
    life->ops->tell_run(life->rebuilt, flight->step.ticket, &event->outcome);
    flight->is_open = false;
    if (reached)
        flight->request.recurrence = UINT64_MAX; /* a new one */
    else
        flight->request.attempt++;
}

static void forget(struct life *life, struct flight *flight)
{
    (void)note(life, FORGOTTEN, flight);
    life->ops->forget(life->steady, flight->step.ticket);
    life->ops->forget(life->rebuilt, flight->step.ticket);
    flight->is_open = false;
    if (wg__rng_below(&life->luck, 2) == 0)
        return;
    (void)note(life, ASKED, flight); /* it comes back */
    life->ops->resume(life->steady, &flight->request, &flight->step);
    life->ops->resume(life->rebuilt, &flight->request, &flight->step);
    flight->is_open = true;
}

static void epoch(struct life *life, struct flight *flight)
{
    const double metric =
        flight->epochs == 0 ? (double)NAN : 0.5 * flight->epochs / (double)flight->needs;
    struct event *event = note(life, CONTINUED, flight);
    event->epochs = flight->epochs;
    event->metric = metric;
    bool goes_on = true;
    if (life->ops->may_continue != NULL) {
        goes_on =
            life->ops->may_continue(life->steady, flight->step.ticket, flight->epochs, metric);
        assert_int_equal(goes_on, life->ops->may_continue(life->rebuilt, flight->step.ticket,
                                                          flight->epochs, metric));
    }
    if (!goes_on || flight->epochs >= MAX_EPOCHS) {
        end(life, flight, false);
        return;
    }
    if (++flight->epochs >= flight->needs)
        end(life, flight, true);
}

static void live_one_step(struct life *life)
{
    struct flight *flight = &life->flights[wg__rng_below(&life->luck, FLIGHTS)];
    if (!flight->is_open) {
        if (flight->request.recurrence == UINT64_MAX || flight->request.attempt >= WG_ATTEMPTS_MAX)
            flight->request =
                (struct wg_batch_request){.recurrence = life->next_recurrence++,
                                          .no_survey = wg__rng_below(&life->luck, 8) == 0};
        ask(life, flight);
    } else if (wg__rng_below(&life->luck, 60) == 0) {
        forget(life, flight);
    } else {
        epoch(life, flight);
    }
    if (wg__rng_below(&life->luck, 40) == 0)
        rebuild(life);
    if (wg__rng_below(&life->luck, 60) == 0)
        save(life);
}

static void live(const struct wg_batch_policy_ops *ops, uint64_t seed, unsigned steps)
{
    struct life *life = calloc(1, sizeof *life);
    assert_non_null(life);
    life->ops = ops;
    life->job = make_batch_job(ARMS, 2, 2);
    life->job.max_epochs = MAX_EPOCHS;
    life->options = (struct wg_batch_options){
        .concurrent = seed % 2 == 0, .fixed_arm = 1, .fixed_limit = WG_LIMIT_BEST};
    life->events = calloc(EVENTS_MAX, sizeof *life->events);
    assert_non_null(life->events);
    wg__rng_init(&life->root, seed);
    life->luck = wg__rng_split(&life->root, UINT64_MAX);
    for (size_t i = 0; i < FLIGHTS; i++)
        life->flights[i].request.recurrence = UINT64_MAX;
    life->steady = make(life);
    life->rebuilt = make(life);
    for (unsigned i = 0; i < steps; i++)
        live_one_step(life);
    assert_true(life->rebuilds > steps / 80 && life->loads > 0 && life->asks > 20);
    ops->destroy(life->steady);
    ops->destroy(life->rebuilt);
    wg__buffer_fini(&life->saved);
    free(life->events);
    free(life);
}

static void every_policy_answers_as_if_it_had_lived_on(void **state)
{
    (void)state;
    for (size_t i = 0; wg__batch_policies[i] != NULL; i++)
        for (uint64_t seed = 0; seed < 4; seed++)
            live(wg__batch_policies[i], seed, 1500);
}

static void bytes_of_another_job_or_cut_ones_are_refused(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(ARMS, 2, 2), wider = make_batch_job(7, 2, 2);
    const struct wg_batch_options options = {.fixed_limit = WG_LIMIT_BEST};
    for (size_t i = 0; wg__batch_policies[i] != NULL; i++) {
        const struct wg_batch_policy_ops *ops = wg__batch_policies[i];
        struct wg_batch_policy *policy = NULL, *other = NULL;
        struct wg_error err;
        assert_int_equal(ops->create(&policy, &job, &options, &err), WG_OK);
        assert_int_equal(ops->create(&other, &wider, &options, &err), WG_OK);
        struct wg_buffer bytes;
        wg__buffer_init(&bytes);
        assert_true(ops->save(policy, &bytes));
        assert_false(ops->load(policy, bytes.data, bytes.length - 1));
        assert_false(ops->load(policy, bytes.data, 0));
        if (ops != &wg__batch_policy_fixed)
            assert_false(ops->load(other, bytes.data, bytes.length));
        assert_true(ops->load(policy, bytes.data, bytes.length));
        wg__buffer_fini(&bytes);
        ops->destroy(policy);
        ops->destroy(other);
    }
}

/* Whatever the bytes say, nothing is read or written out of bounds (the sanitizers watch). */
static void damaged_bytes_do_no_harm(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 5);
    const struct wg_batch_job job = make_batch_job(ARMS, 2, 2);
    const struct wg_batch_options options = {.fixed_limit = WG_LIMIT_BEST};
    for (size_t i = 0; wg__batch_policies[i] != NULL; i++) {
        const struct wg_batch_policy_ops *ops = wg__batch_policies[i];
        struct wg_batch_policy *policy = NULL;
        struct wg_error err;
        assert_int_equal(ops->create(&policy, &job, &options, &err), WG_OK);
        struct wg_buffer bytes;
        wg__buffer_init(&bytes);
        assert_true(ops->save(policy, &bytes));
        for (unsigned round = 0; round < 300; round++) {
            char *damaged = malloc(bytes.length);
            assert_non_null(damaged);
            memcpy(damaged, bytes.data, bytes.length);
            for (unsigned hits = 0; hits < 64; hits++)
                damaged[wg__rng_below(&rng, (uint32_t)bytes.length)] = (char)wg__rng_u32(&rng);
            (void)ops->load(policy, damaged, bytes.length);
            free(damaged);
        }
        wg__buffer_fini(&bytes);
        ops->destroy(policy);
    }
}

static void saving_says_when_memory_runs_out(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(ARMS, 2, 2);
    const struct wg_batch_options options = {0};
    struct wg_batch_policy *policy = NULL;
    struct wg_error err;
    assert_int_equal(wg__batch_policy_wattgov.create(&policy, &job, &options, &err), WG_OK);
    struct wg_buffer bytes;
    for (size_t nth = 1; nth <= 3; nth++) {
        wg__buffer_init(&bytes);
        wg__alloc_fail_from(nth);
        const bool is_saved = wg__batch_policy_wattgov.save(policy, &bytes);
        wg__alloc_fail_from(0);
        assert_int_equal(is_saved, nth == 3 && !bytes.failed);
        wg__buffer_fini(&bytes);
    }
    wg__buffer_init(&bytes);
    assert_true(wg__batch_policy_wattgov.save(policy, &bytes));
    wg__alloc_fail_from(1);
    assert_false(wg__batch_policy_wattgov.load(policy, bytes.data, bytes.length));
    wg__alloc_fail_from(0);
    wg__buffer_fini(&bytes);
    wg__batch_policy_wattgov.destroy(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_answers_as_if_it_had_lived_on),
        cmocka_unit_test(bytes_of_another_job_or_cut_ones_are_refused),
        cmocka_unit_test(damaged_bytes_do_no_harm),
        cmocka_unit_test(saving_says_when_memory_runs_out),
    };
    return run_tests(tests);
}
