/* SPDX-License-Identifier: MIT
 *
 * What every store must do (src/store/store.h), whatever holds it: one suite for all of them.
 *
 * A test program fills a `struct store_stage` with a way to open its store, and lists
 * STORE_SUITE_TESTS. Each test gets an empty store.
 *
 * Threads: one.
 */
#ifndef WG_TESTS_SUPPORT_STORE_SUITE_H
#define WG_TESTS_SUPPORT_STORE_SUITE_H

#include <stdbool.h>
#include <string.h>

#include "store/store.h"
#include "support/check.h"

struct store_stage {
    /* A new connection to the same store, which gives up after `patience_s`. */
    struct wg_store *(*open)(void *context, double patience_s);
    void *context;
};

#define STORE_OK(call)                                                                             \
    do {                                                                                           \
        struct wg_error ok_err = {0};                                                              \
        struct wg_error *const err = &ok_err;                                                      \
        if ((call) != WG_OK)                                                                       \
            fail_msg("%s: %s", #call, err->text);                                                  \
    } while (0)

static inline struct wg_store_job suite_job(const char *name)
{
    struct wg_store_job job = {.created_s = 1700000000.25,
                               .batch_count = 3,
                               .batch_size = {8, 16, 4096},
                               .default_batch = 16,
                               .metric = "acc",
                               .higher_is_better = true,
                               .target = 0.84,
                               .max_epochs = 100,
                               .objective = "cost:0.5",
                               .max_power_w = NAN,
                               .policy = "wattgov",
                               .optimizer = "sgd",
                               .learning_rate = 0.1,
                               .learning_rate_batch = 16,
                               .lease_s = 3600,
                               .seed = UINT64_MAX};
    (void)snprintf(job.name, sizeof job.name, "%s", name);
    return job;
}

static inline struct wg_store_run suite_run(const struct wg_store_job *job, uint64_t recurrence)
{
    return (struct wg_store_run){.job = job->id,
                                 .may_survey = true,
                                 .recurrence = recurrence,
                                 .attempt = 2,
                                 .batch_size = 4096,
                                 .limit = -1,
                                 .ticket = 7 + recurrence,
                                 .gpu_model = "NVIDIA A40",
                                 .gpu_count = 2,
                                 .max_power_w = 600,
                                 .host = "node1",
                                 .pid = 4242,
                                 .started_s = 1700000001.5,
                                 .lease_s = 60,
                                 .lease_until_s = 1700000061.5};
}

static inline struct wg_store *suite_open(void **state)
{
    const struct store_stage *stage = *state;
    struct wg_store *store = stage->open(stage->context, 10);
    assert_non_null(store);
    return store;
}

static inline struct wg_store_job suite_add_job(struct wg_store *store, const char *name)
{
    struct wg_store_job job = suite_job(name);
    STORE_OK(store->ops->begin(store, true, err));
    STORE_OK(store->ops->job_add(store, &job, err));
    STORE_OK(store->ops->commit(store, err));
    return job;
}

static inline struct wg_store_run suite_add_run(struct wg_store *store,
                                                const struct wg_store_job *job, uint64_t recurrence)
{
    struct wg_store_run run = suite_run(job, recurrence);
    STORE_OK(store->ops->begin(store, true, err));
    STORE_OK(store->ops->run_add(store, &run, err));
    STORE_OK(store->ops->commit(store, err));
    return run;
}

static inline void same_job(const struct wg_store_job *a, const struct wg_store_job *b)
{
    assert_int_equal(a->id, b->id);
    assert_string_equal(a->name, b->name);
    assert_true(a->created_s == b->created_s && a->target == b->target);
    assert_int_equal(a->batch_count, b->batch_count);
    for (size_t i = 0; i < b->batch_count; i++)
        assert_int_equal(a->batch_size[i], b->batch_size[i]);
    assert_int_equal(a->default_batch, b->default_batch);
    assert_string_equal(a->metric, b->metric);
    assert_int_equal(a->higher_is_better, b->higher_is_better);
    assert_int_equal(a->max_epochs, b->max_epochs);
    assert_string_equal(a->objective, b->objective);
    assert_true(isnan(a->max_power_w) && isnan(b->max_power_w));
    assert_string_equal(a->policy, b->policy);
    assert_string_equal(a->optimizer, b->optimizer);
    assert_true(a->learning_rate == b->learning_rate && a->lease_s == b->lease_s);
    assert_int_equal(a->learning_rate_batch, b->learning_rate_batch);
    assert_true(a->seed == b->seed && a->next_recurrence == b->next_recurrence);
}

static inline void keeps_a_job_as_it_was_added(void **state)
{
    struct wg_store *store = suite_open(state);
    const struct wg_store_job job = suite_add_job(store, "bert-nightly");
    wg__store_close(store);
    store = suite_open(state);
    struct wg_store_job found;
    STORE_OK(store->ops->job_get(store, "bert-nightly", &found, err));
    same_job(&found, &job);
    struct wg_error refused;
    assert_int_equal(store->ops->job_get(store, "bert", &found, &refused), WG_ENOENT);
    wg__store_close(store);
}

static inline void refuses_a_second_job_of_a_name(void **state)
{
    struct wg_store *store = suite_open(state);
    (void)suite_add_job(store, "twice");
    struct wg_store_job second = suite_job("twice");
    struct wg_error refused;
    STORE_OK(store->ops->begin(store, true, err));
    assert_int_equal(store->ops->job_add(store, &second, &refused), WG_ESTATE);
    assert_non_null(strstr(refused.text, "'twice'"));
    store->ops->rollback(store);
    wg__store_close(store);
}

struct suite_names {
    size_t count;
    char text[256];
};

static inline bool collect_name(void *context, const struct wg_store_job *job)
{
    struct suite_names *names = context;
    const size_t length = strlen(names->text);
    assert_int_equal(job->batch_count, 3);
    (void)snprintf(names->text + length, sizeof names->text - length, "%s ", job->name);
    return ++names->count < 3;
}

static inline void lists_jobs_by_name_until_told_to_stop(void **state)
{
    struct wg_store *store = suite_open(state);
    const char *const jobs[] = {"d", "b", "a", "c"};
    for (size_t i = 0; i < 4; i++)
        (void)suite_add_job(store, jobs[i]);
    struct suite_names names = {0};
    STORE_OK(store->ops->job_each(store, collect_name, &names, err));
    assert_string_equal(names.text, "a b c ");
    wg__store_close(store);
}

struct suite_facts {
    size_t count;
    struct wg_store_fact fact[64];
    int64_t run[64];
    size_t most;
};

static inline bool collect_fact(void *context, const struct wg_store_fact *fact,
                                const struct wg_store_run *run)
{
    struct suite_facts *facts = context;
    assert_true(facts->count < 64);
    facts->fact[facts->count] = *fact;
    facts->run[facts->count++] = run->id;
    return facts->most == 0 || facts->count < facts->most;
}

static inline struct suite_facts suite_read_facts(struct wg_store *store, int64_t job,
                                                  uint64_t after)
{
    struct suite_facts facts = {0};
    STORE_OK(store->ops->fact_each(store, job, after, collect_fact, &facts, err));
    return facts;
}

static inline void a_run_fills_up_and_ends_once(void **state)
{
    struct wg_store *store = suite_open(state);
    const struct wg_store_job job = suite_add_job(store, "job");
    struct wg_store_run run = suite_add_run(store, &job, 0), found;
    const struct wg_store_ops *ops = store->ops;
    STORE_OK(ops->begin(store, true, err));
    run.epoch_cost_j = 10;
    run.epoch_cost_max_limit_j = 12;
    run.first_epoch_cost_j = 15;
    STORE_OK(ops->run_profile(store, &run, err));
    STORE_OK(ops->run_epoch(store, run.id, 1, 0.5, err));
    STORE_OK(ops->run_epoch(store, run.id, 3, NAN, err));
    struct wg_error refused;
    assert_int_equal(ops->run_epoch(store, run.id, 3, 0.7, &refused), WG_ESTATE);
    STORE_OK(ops->run_extend(store, run.id, 1700000200, err));
    STORE_OK(ops->run_extend(store, run.id, 1700000100, err)); /* never shorter */
    run.state = WG_RUN_REACHED;
    run.ended_s = 1700000300;
    run.epochs = 3;
    run.energy_j = 1e6 / 3;
    run.time_s = 299.5;
    run.cost_j = NAN;
    run.setting = 250;
    run.steps_per_epoch = 391;
    run.saved_j = -12.5;
    run.saved_sd_j = 3;
    run.metric = 0.85;
    STORE_OK(ops->run_end(store, &run, err));
    STORE_OK(ops->commit(store, err));
    STORE_OK(ops->begin(store, true, err));
    assert_int_equal(ops->run_end(store, &run, &refused), WG_ESTATE);
    assert_non_null(strstr(refused.text, "is reached, not open"));
    assert_int_equal(ops->run_epoch(store, run.id, 4, 1, &refused), WG_ESTATE);
    ops->rollback(store);

    STORE_OK(ops->run_get(store, job.id, run.id, &found, err));
    assert_true(found.may_survey && !found.is_survey && found.has_profile);
    assert_int_equal(found.recurrence, 0);
    assert_int_equal(found.attempt, 2);
    assert_int_equal(found.batch_size, 4096);
    assert_int_equal(found.limit, -1);
    assert_int_equal(found.ticket, 7);
    assert_string_equal(found.gpu_model, "NVIDIA A40");
    assert_int_equal(found.gpu_count, 2);
    assert_string_equal(found.host, "node1");
    assert_int_equal(found.pid, 4242);
    assert_true(found.started_s == 1700000001.5 && found.lease_until_s == 1700000200);
    assert_true(found.max_power_w == 600 && found.lease_s == 60);
    assert_int_equal(found.last_epoch, 3);
    assert_int_equal(found.state, WG_RUN_REACHED);
    assert_true(found.energy_j == 1e6 / 3 && found.time_s == 299.5 && isnan(found.cost_j));
    assert_true(found.epochs == 3 && found.setting == 250 && found.metric == 0.85);
    assert_true(found.steps_per_epoch == 391 && found.saved_j == -12.5 && found.saved_sd_j == 3);
    assert_true(found.epoch_cost_j == 10 && found.first_epoch_cost_j == 15);
    assert_int_equal(ops->run_get(store, job.id, run.id + 1, &found, &refused), WG_ENOENT);
    assert_int_equal(ops->run_get(store, job.id + 1, run.id, &found, &refused), WG_ENOENT);
    wg__store_close(store);
}

static inline void numbers_the_facts_of_a_job_without_gaps(void **state)
{
    struct wg_store *store = suite_open(state);
    const struct wg_store_job job = suite_add_job(store, "a"), other = suite_add_job(store, "b");
    const struct wg_store_run one = suite_add_run(store, &job, 0);
    (void)suite_add_run(store, &other, 0);
    const struct wg_store_run two = suite_add_run(store, &job, 1);
    const struct wg_store_ops *ops = store->ops;
    STORE_OK(ops->begin(store, true, err));
    STORE_OK(ops->run_epoch(store, one.id, 1, 0.25, err));
    ops->rollback(store); /* leaves no gap */
    STORE_OK(ops->begin(store, true, err));
    STORE_OK(ops->run_epoch(store, two.id, 1, 0.5, err));
    STORE_OK(ops->run_epoch(store, one.id, 2, NAN, err));
    STORE_OK(ops->run_take_back(store, two.id, 1700000400, err));
    STORE_OK(ops->run_revive(store, two.id, 1700000900, err));
    STORE_OK(ops->commit(store, err));
    static const enum wg_fact_kind kinds[] = {WG_FACT_STARTED, WG_FACT_STARTED,    WG_FACT_EPOCH,
                                              WG_FACT_EPOCH,   WG_FACT_TAKEN_BACK, WG_FACT_REVIVED};
    const int64_t runs[] = {one.id, two.id, two.id, one.id, two.id, two.id};
    const struct suite_facts facts = suite_read_facts(store, job.id, 0);
    assert_int_equal(facts.count, 6);
    for (size_t i = 0; i < facts.count; i++) {
        assert_int_equal(facts.fact[i].number, i + 1);
        assert_int_equal(facts.fact[i].kind, kinds[i]);
        assert_int_equal(facts.run[i], runs[i]);
    }
    assert_int_equal(facts.fact[2].epoch, 1);
    assert_true(facts.fact[2].metric == 0.5 && isnan(facts.fact[3].metric));
    const struct suite_facts later = suite_read_facts(store, job.id, 4);
    assert_int_equal(later.count, 2);
    assert_int_equal(later.fact[0].number, 5);
    struct suite_facts few = {.most = 2};
    STORE_OK(ops->fact_each(store, job.id, 0, collect_fact, &few, err));
    assert_int_equal(few.count, 2);
    wg__store_close(store);
}

static inline void takes_back_and_revives_only_what_is_so(void **state)
{
    struct wg_store *store = suite_open(state);
    const struct wg_store_job job = suite_add_job(store, "job");
    const struct wg_store_run first = suite_add_run(store, &job, 0);
    const struct wg_store_run second = suite_add_run(store, &job, 1);
    const struct wg_store_ops *ops = store->ops;
    struct wg_store_run open[1];
    size_t count = 0;
    STORE_OK(ops->run_open(store, job.id, open, 1, &count, err));
    assert_int_equal(count, 2); /* more than there was room for */
    assert_int_equal(open[0].id, first.id);
    STORE_OK(ops->begin(store, true, err));
    STORE_OK(ops->run_take_back(store, first.id, 5, err));
    STORE_OK(ops->run_open(store, job.id, open, 1, &count, err));
    assert_int_equal(count, 1);
    assert_int_equal(open[0].id, second.id);
    struct wg_error refused;
    assert_int_equal(ops->run_take_back(store, first.id, 6, &refused), WG_ESTATE);
    assert_int_equal(ops->run_revive(store, second.id, 6, &refused), WG_ESTATE);
    STORE_OK(ops->run_revive(store, first.id, 99, err));
    struct wg_store_run found;
    STORE_OK(ops->run_get(store, job.id, first.id, &found, err));
    assert_int_equal(found.state, WG_RUN_OPEN);
    assert_true(isnan(found.ended_s) && found.lease_until_s == 99);
    STORE_OK(ops->commit(store, err));
    wg__store_close(store);
}

static inline void hands_out_retries_from_the_oldest(void **state)
{
    struct wg_store *store = suite_open(state);
    const struct wg_store_job job = suite_add_job(store, "job");
    const struct wg_store_ops *ops = store->ops;
    struct wg_store_job found;
    struct wg_store_run run = suite_add_run(store, &job, 3);
    STORE_OK(ops->job_get(store, "job", &found, err));
    assert_int_equal(found.next_recurrence, 4);
    bool has = true;
    uint64_t recurrence = 0;
    STORE_OK(ops->retry_find(store, job.id, &has, &recurrence, err));
    assert_false(has);
    STORE_OK(ops->begin(store, true, err));
    run.state = WG_RUN_FAILED;
    STORE_OK(ops->run_end(store, &run, err));
    STORE_OK(ops->retry_add(store, job.id, 3, err));
    STORE_OK(ops->retry_add(store, job.id, 2, err));
    STORE_OK(ops->retry_add(store, job.id, 3, err)); /* again is no harm */
    STORE_OK(ops->retry_find(store, job.id, &has, &recurrence, err));
    assert_true(has && recurrence == 2);
    STORE_OK(ops->commit(store, err));
    (void)suite_add_run(store, &job, 2);
    STORE_OK(ops->retry_find(store, job.id, &has, &recurrence, err));
    assert_true(has && recurrence == 3);
    STORE_OK(ops->retry_remove(store, job.id, 3, err));
    STORE_OK(ops->retry_find(store, job.id, &has, &recurrence, err));
    assert_false(has);
    STORE_OK(ops->job_get(store, "job", &found, err));
    assert_int_equal(found.next_recurrence, 4);
    unsigned counts[WG_RUN_STATE_COUNT];
    STORE_OK(ops->recurrence_get(store, job.id, 3, counts, err));
    assert_int_equal(counts[WG_RUN_FAILED], 1);
    assert_int_equal(counts[WG_RUN_OPEN], 0);
    wg__store_close(store);
}

static inline void a_removed_job_takes_all_with_it(void **state)
{
    struct wg_store *store = suite_open(state);
    const struct wg_store_job job = suite_add_job(store, "a"), kept = suite_add_job(store, "b");
    const struct wg_store_run run = suite_add_run(store, &job, 0);
    (void)suite_add_run(store, &kept, 0);
    const struct wg_store_ops *ops = store->ops;
    STORE_OK(ops->begin(store, true, err));
    STORE_OK(ops->snapshot_put(store, job.id, 1, "v", "state", 5, err));
    STORE_OK(ops->retry_add(store, job.id, 0, err));
    STORE_OK(ops->job_remove(store, job.id, err));
    STORE_OK(ops->commit(store, err));
    assert_int_equal(suite_read_facts(store, job.id, 0).count, 0);
    assert_int_equal(suite_read_facts(store, kept.id, 0).count, 1);
    const struct wg_store_job again = suite_add_job(store, "a");
    assert_int_equal(suite_read_facts(store, again.id, 0).count, 0);
    assert_true(suite_add_run(store, &again, 0).id > run.id);
    wg__store_close(store);
}

struct suite_snapshot {
    unsigned calls;
    uint64_t number;
    char bytes[64];
};

static inline void take_snapshot(void *context, uint64_t number, const void *bytes, size_t length)
{
    struct suite_snapshot *snapshot = context;
    snapshot->calls++;
    snapshot->number = number;
    assert_true(length < sizeof snapshot->bytes);
    memcpy(snapshot->bytes, bytes, length);
}

static inline void gives_a_snapshot_to_its_version_only(void **state)
{
    struct wg_store *store = suite_open(state);
    const struct wg_store_job job = suite_add_job(store, "job");
    const struct wg_store_ops *ops = store->ops;
    struct suite_snapshot taken = {0};
    STORE_OK(ops->snapshot_get(store, job.id, "v1", take_snapshot, &taken, err));
    assert_int_equal(taken.calls, 0);
    STORE_OK(ops->begin(store, true, err));
    STORE_OK(ops->snapshot_put(store, job.id, 4, "v1", "old", 4, err));
    STORE_OK(ops->snapshot_put(store, job.id, 9, "v1", "n\0w", 4, err));
    STORE_OK(ops->commit(store, err));
    STORE_OK(ops->snapshot_get(store, job.id, "v2", take_snapshot, &taken, err));
    assert_int_equal(taken.calls, 0);
    STORE_OK(ops->snapshot_get(store, job.id, "v1", take_snapshot, &taken, err));
    assert_int_equal(taken.calls, 1);
    assert_int_equal(taken.number, 9);
    assert_memory_equal(taken.bytes, "n\0w", 4);
    wg__store_close(store);
}

static inline void keeps_one_profile_a_key(void **state)
{
    struct wg_store *store = suite_open(state);
    const struct wg_store_ops *ops = store->ops;
    struct wg_store_profile_key key = {"python train.py", "NVIDIA A40", 2, "power_limit", 32};
    const struct wg_store_point first[] = {{100, 99, 1.5, 0.1, 0.01, 5, 2, 1, NAN},
                                           {300, 280, 3.5, 0.2, 0.02, 6, 3, 0, 0.5}};
    const struct wg_store_point second = {200, 190, 2.5, 0.1, 0.01, 4, 1, 0, 0.25};
    struct wg_store_point found[WG_STORE_POINTS_MAX];
    size_t count = 9;
    double when_s = 0;
    STORE_OK(ops->profile_get(store, &key, found, &count, &when_s, err));
    assert_int_equal(count, 0);
    STORE_OK(ops->profile_put(store, &key, 1000, first, 2, err));
    key.batch_size = 64;
    STORE_OK(ops->profile_put(store, &key, 2000, &second, 1, err));
    key.batch_size = 32;
    STORE_OK(ops->profile_get(store, &key, found, &count, &when_s, err));
    assert_int_equal(count, 2);
    assert_true(when_s == 1000 && isnan(found[0].settle_s) && found[1].settle_s == 0.5);
    assert_true(found[0].setting == 100 && found[1].power_w == 280 && found[1].throughput == 3.5);
    assert_true(found[0].power_sd == 0.1 && found[1].throughput_sd == 0.02);
    assert_true(found[0].measured_s == 5 && found[0].measurements == 2 && found[0].discarded == 1);
    STORE_OK(ops->profile_put(store, &key, 3000, &second, 1, err));
    STORE_OK(ops->profile_get(store, &key, found, &count, &when_s, err));
    assert_int_equal(count, 1);
    assert_true(when_s == 3000 && found[0].setting == 200);
    key.knob = "gpu_clock";
    STORE_OK(ops->profile_get(store, &key, found, &count, &when_s, err));
    assert_int_equal(count, 0);
    wg__store_close(store);
}

static inline void writers_exclude_each_other_and_readers_see_one_moment(void **state)
{
    const struct store_stage *stage = *state;
    struct wg_store *writer = suite_open(state);
    const struct wg_store_job job = suite_add_job(writer, "job");
    struct wg_store *other = stage->open(stage->context, 0.05);
    assert_non_null(other);
    struct wg_error refused;
    STORE_OK(writer->ops->begin(writer, true, err));
    assert_int_equal(other->ops->begin(other, true, &refused), WG_EBUSY);
    assert_non_null(strstr(refused.text, "0.05 s"));
    STORE_OK(other->ops->begin(other, false, err));
    assert_int_equal(suite_read_facts(other, job.id, 0).count, 0);
    struct wg_store_run run = suite_run(&job, 0);
    STORE_OK(writer->ops->run_add(writer, &run, err));
    STORE_OK(writer->ops->commit(writer, err));
    assert_int_equal(suite_read_facts(other, job.id, 0).count, 0);
    STORE_OK(other->ops->commit(other, err));
    assert_int_equal(suite_read_facts(other, job.id, 0).count, 1);
    STORE_OK(other->ops->begin(other, true, err));
    STORE_OK(other->ops->commit(other, err));
    wg__store_close(other);
    wg__store_close(writer);
}

#define STORE_SUITE_TESTS(setup, teardown)                                                         \
    cmocka_unit_test_setup_teardown(keeps_a_job_as_it_was_added, setup, teardown),                 \
        cmocka_unit_test_setup_teardown(refuses_a_second_job_of_a_name, setup, teardown),          \
        cmocka_unit_test_setup_teardown(lists_jobs_by_name_until_told_to_stop, setup, teardown),   \
        cmocka_unit_test_setup_teardown(a_run_fills_up_and_ends_once, setup, teardown),            \
        cmocka_unit_test_setup_teardown(numbers_the_facts_of_a_job_without_gaps, setup, teardown), \
        cmocka_unit_test_setup_teardown(takes_back_and_revives_only_what_is_so, setup, teardown),  \
        cmocka_unit_test_setup_teardown(hands_out_retries_from_the_oldest, setup, teardown),       \
        cmocka_unit_test_setup_teardown(a_removed_job_takes_all_with_it, setup, teardown),         \
        cmocka_unit_test_setup_teardown(gives_a_snapshot_to_its_version_only, setup, teardown),    \
        cmocka_unit_test_setup_teardown(keeps_one_profile_a_key, setup, teardown),                 \
        cmocka_unit_test_setup_teardown(writers_exclude_each_other_and_readers_see_one_moment,     \
                                        setup, teardown)

#endif
