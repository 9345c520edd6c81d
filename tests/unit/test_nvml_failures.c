/* SPDX-License-Identifier: MIT
 *
 * NVIDIA GPUs that fail: lost, refused, gone after a reset, in a forked child, any code anywhere.
 */
#include "device/nvml.h"

#include <sys/wait.h>

#include "support/nvml_found.h"

/* -- Failures ------------------------------------------------------------------------------------
 */

/* Field reports 34, 36 and 37: one lost GPU, the other goes on; the message names all. */
static void a_lost_gpu_is_lost_alone(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_probe(&found, NULL);
    struct wg_device *lost = device_of(&found, 0);
    struct wg_device *healthy = device_of(&found, 1);
    fake.gpus[0].codes[FAKE_fields] = NVML_E_GPU_IS_LOST;
    fake.gpus[0].from_call[FAKE_fields] = fake.gpus[0].calls[FAKE_fields] + 3;
    struct wg_sample sample;
    for (int i = 0; i < 2; i++)
        assert_int_equal(lost->ops->read(lost, UINT32_MAX, &sample, NULL), WG_OK);
    lost->info.label = "gpu0";
    struct wg_error err = {0};
    assert_int_equal(lost->ops->read(lost, UINT32_MAX, &sample, &err), WG_ELOST);
    expect_text(err.text, "gpu0: nvmlDeviceGetFieldValues: error 15: the GPU is lost");
    assert_int_equal(healthy->ops->read(healthy, UINT32_MAX, &sample, NULL), WG_OK);
    found_end(&found);
}

static void a_gpu_lost_in_one_field_or_one_call_is_lost(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_probe(&found, NULL);
    struct wg_device *device = device_of(&found, 0);
    struct wg_sample sample;
    fake_known_field(&fake.gpus[0], NVML_FIELD_ENERGY_MJ, 0)->result = NVML_E_RESET_REQUIRED;
    assert_int_equal(device->ops->read(device, UINT32_MAX, &sample, &found.err), WG_ELOST);
    expect_text(found.err.text, "error 16");
    fake_known_field(&fake.gpus[0], NVML_FIELD_ENERGY_MJ, 0)->result = NVML_OK;
    fake.gpus[0].codes[FAKE_clock] = NVML_E_GPU_IS_LOST;
    assert_int_equal(device->ops->read(device, UINT32_MAX, &sample, &found.err), WG_ELOST);
    expect_text(found.err.text, "nvmlDeviceGetClockInfo");
    expect_text(found.err.text, fake.gpus[0].uuid);
    found_end(&found);
}

/* Field report 43: a container that lost its devices. */
static void nothing_read_at_all_is_an_error_with_its_cause(void **state)
{
    (void)state;
    static const struct {
        int code;
        enum wg_code meaning;
    } cases[] = {{NVML_E_UNKNOWN, WG_EIO},
                 {NVML_E_OPERATING_SYSTEM, WG_EIO},
                 {NVML_E_NO_PERMISSION, WG_EPERM},
                 {NVML_E_TIMEOUT, WG_ETIMEOUT},
                 {NVML_E_NOT_READY, WG_EIO}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake_reset();
        struct found found;
        found_probe(&found, "0");
        struct wg_device *device = device_of(&found, 0);
        struct wg_sample sample;
        for (size_t j = 0; j < FAKE_CALLS; j++)
            fake.gpus[0].codes[j] = cases[i].code;
        assert_int_equal(device->ops->read(device, UINT32_MAX, &sample, &found.err),
                         cases[i].meaning);
        char words[32];
        (void)snprintf(words, sizeof words, "error %d: ", cases[i].code);
        expect_text(found.err.text, words);
        /* It was no more than a moment: the same device reads on. */
        memset(fake.gpus[0].codes, 0, sizeof fake.gpus[0].codes);
        assert_int_equal(device->ops->read(device, UINT32_MAX, &sample, NULL), WG_OK);
        found_end(&found);
    }
}

/* Lets the time until the next try pass. */
static void wait_for_retry(struct wg_device *device)
{
    assert_true(wg__nvml_gpu(device)->retry.next_ns > 0);
    wg__nvml_gpu(device)->retry.next_ns = 1;
}

static enum wg_code read_all(struct wg_device *device, struct wg_error *err)
{
    struct wg_sample sample;
    return device->ops->read(device, UINT32_MAX, &sample, err);
}

static void refuse_all(size_t gpu, int code)
{
    for (size_t i = 0; i < FAKE_CALLS; i++)
        fake.gpus[gpu].codes[i] = code;
}

/* Field reports 42 and 43: devices taken from a container, a driver replaced. */
static void reads_start_nvml_anew_after_a_second_and_come_back(void **state)
{
    (void)state;
    static const int refusals[] = {NVML_E_UNKNOWN, NVML_E_OPERATING_SYSTEM, NVML_E_UNINITIALIZED};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        fake_reset();
        struct found found;
        found_probe(&found, "0");
        struct wg_device *device = device_of(&found, 0);
        struct nvml_retry *retry = &wg__nvml_gpu(device)->retry;
        assert_int_equal(read_all(device, NULL), WG_OK);
        refuse_all(0, refusals[i]);
        assert_int_equal(read_all(device, NULL), WG_EIO);
        assert_int_equal(retry->next_ns - retry->since_ns, 1000000000);
        assert_int_equal(read_all(device, NULL), WG_EIO); /* not yet */
        assert_int_equal(fake.shutdowns, 0);
        wait_for_retry(device);
        assert_int_equal(read_all(device, NULL), WG_EIO);
        assert_int_equal(fake.shutdowns, 1); /* started anew, to no avail */
        assert_int_equal(retry->wait_ns, 2000000000);
        for (int j = 0; j < 8; j++) {
            wait_for_retry(device);
            assert_int_equal(read_all(device, NULL), WG_EIO);
        }
        assert_int_equal(retry->wait_ns, 60000000000);
        refuse_all(0, NVML_OK);
        wait_for_retry(device);
        assert_int_equal(read_all(device, NULL), WG_OK);
        assert_int_equal(retry->since_ns, 0);
        assert_int_equal(fake.init_count, 1);
        found_end(&found);
    }
}

/* Field report 42: nvmlInit itself fails while the driver is being replaced. */
static void a_start_that_fails_is_tried_again_only_after_its_time(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_probe(&found, NULL);
    struct wg_device *device = device_of(&found, 0);
    struct wg_device *other = device_of(&found, 1);
    refuse_all(0, NVML_E_UNKNOWN);
    refuse_all(1, NVML_E_UNKNOWN);
    assert_int_equal(read_all(device, NULL), WG_EIO);
    assert_int_equal(read_all(other, NULL), WG_EIO);
    fake.codes[FAKE_init_with_flags] = NVML_E_VERSION_MISMATCH;
    wait_for_retry(device);
    struct wg_error err = {0};
    assert_int_equal(read_all(device, &err), WG_EIO);
    expect_text(err.text, "error 18");
    expect_text(err.text, "reboot");
    const unsigned tries = fake.calls[FAKE_init_with_flags];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(read_all(device, &err), WG_EIO);
        assert_int_equal(read_all(other, &err), WG_EIO);
    }
    expect_text(err.text, "could not be started again yet");
    assert_int_equal(fake.calls[FAKE_init_with_flags], tries);
    /* The new driver is there: one start serves both. */
    fake.codes[FAKE_init_with_flags] = NVML_OK;
    refuse_all(0, NVML_OK);
    refuse_all(1, NVML_OK);
    wait_for_retry(other);
    assert_int_equal(read_all(other, NULL), WG_OK);
    assert_int_equal(read_all(device, NULL), WG_OK);
    assert_int_equal(fake.calls[FAKE_init_with_flags], tries + 1);
    found_end(&found);
}

static void a_gpu_beside_one_that_answers_gets_its_handle_anew_and_disturbs_none(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_probe(&found, NULL);
    struct wg_device *device = device_of(&found, 0);
    struct wg_device *other = device_of(&found, 1);
    refuse_all(0, NVML_E_UNKNOWN);
    assert_int_equal(read_all(device, NULL), WG_EIO);
    assert_int_equal(read_all(other, NULL), WG_OK);
    wait_for_retry(device);
    assert_int_equal(read_all(device, NULL), WG_EIO);
    assert_int_equal(fake.shutdowns, 0);
    refuse_all(0, NVML_OK);
    assert_int_equal(read_all(device, NULL), WG_OK);
    assert_true(fake.calls[FAKE_by_pci] > 0);
    found_end(&found);
}

/* What to do stands in one place: beside the text where there is such a place, else in it. */
static void a_remedy_is_told_once(void **state)
{
    (void)state;
    for (int code = 1; code <= NVML_E_UNKNOWN; code++) {
        const char *remedy = wg__nvml_code(code)->remedy;
        static const enum fake_call calls[] = {FAKE_init_with_flags, FAKE_count};
        for (size_t i = 0; remedy != NULL && i < 2; i++) {
            fake_reset();
            fake.codes[calls[i]] = code;
            fake.codes[FAKE_init] = code; /* the older call, which some codes lead to */
            struct found found;
            found_begin(&found);
            found_open(&found, NULL);
            if (found.code == WG_OK)
                fail_msg("code %d at call %zu opens", code, i);
            assert_string_equal(found.remedy, remedy);
            assert_null(strstr(found.err.text, remedy));
            found_end(&found);
        }
    }
    fake_reset();
    struct found found;
    found_probe(&found, "0");
    refuse_all(0, NVML_E_NO_PERMISSION);
    struct wg_error err = {0};
    assert_int_equal(read_all(device_of(&found, 0), &err), WG_EPERM);
    const char *told = strstr(err.text, "run as root");
    assert_non_null(told);
    assert_null(strstr(told + 1, "run as root"));
    found_end(&found);
}

static void a_count_that_no_machine_has_is_refused_in_words(void **state)
{
    (void)state;
    static const unsigned counts[] = {4097, 4294967295U};
    for (size_t i = 0; i < 2; i++) {
        fake_reset();
        fake.count = counts[i];
        struct found found;
        found_begin(&found);
        found_open(&found, NULL);
        assert_int_equal(found.code, WG_EDATA);
        char words[64];
        (void)snprintf(words, sizeof words, "nvmlDeviceGetCount says %u GPUs", counts[i]);
        expect_text(found.err.text, words);
        assert_int_equal(found.list.count, 0);
        found_end(&found);
    }
}

static void one_field_that_fails_now_and_then_costs_itself(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_probe(&found, "0");
    struct wg_device *device = device_of(&found, 0);
    fake_known_field(&fake.gpus[0], NVML_FIELD_ENERGY_MJ, 0)->result = NVML_E_UNKNOWN;
    struct wg_sample sample;
    assert_int_equal(device->ops->read(device, UINT32_MAX, &sample, NULL), WG_OK);
    assert_false(wg__sample_has(&sample, WG_METRIC_ENERGY_J));
    assert_true(wg__sample_has(&sample, WG_METRIC_POWER_W));
    found_end(&found);
}

static void a_gpu_that_may_not_be_opened_is_listed_with_its_reason(void **state)
{
    (void)state;
    static const struct {
        int code;
        enum wg_code meaning;
    } cases[] = {{NVML_E_NO_PERMISSION, WG_EPERM}, {NVML_E_GPU_IS_LOST, WG_ELOST}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake_reset();
        fake.gpus[0].codes[FAKE_by_index] = cases[i].code;
        struct found found;
        found_begin(&found);
        found_open(&found, NULL);
        assert_int_equal(found.code, WG_OK);
        assert_int_equal(found.list.count, 2);
        struct wg_device *device = device_of(&found, 0);
        assert_int_equal(device->ops->probe(device, &found.err), cases[i].meaning);
        expect_text(found.err.text, "GPU 0: nvmlDeviceGetHandleByIndex: error ");
        device = device_of(&found, 1);
        assert_int_equal(device->ops->probe(device, &found.err), WG_OK);
        found_end(&found);
    }
}

/* Every call may answer anything; what it spoils is itself. */
static void any_code_of_any_call_leaves_the_probe_whole(void **state)
{
    (void)state;
    static const int codes[] = {1, 3, 4, 6, 7, 10, 13, 15, 16, 17, 25, 26, 27, 999, 4711};
    for (size_t call = 0; call < FAKE_CALLS; call++) {
        for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
            fake_reset();
            fake.count = 1;
            fake.gpus[0].codes[call] = codes[i];
            struct found found;
            found_begin(&found);
            found_open(&found, NULL);
            assert_int_equal(found.code, WG_OK);
            struct wg_device *device = device_of(&found, 0);
            const enum wg_code code = device->ops->probe(device, &found.err);
            const bool is_lost = codes[i] == 15 || codes[i] == 16;
            if (code != WG_OK && !is_lost && call != FAKE_by_index)
                fail_msg("call %zu, code %d: %s", call, codes[i], found.err.text);
            if (code == WG_OK) {
                for (int j = 0; j < WG_METRIC_COUNT; j++)
                    assert_int_equal(device->info.meters[j].is_present,
                                     device->info.meters[j].why_not == NULL);
                struct wg_sample sample;
                (void)device->ops->read(device, UINT32_MAX, &sample, NULL);
            }
            found_end(&found);
        }
    }
}

/* Field report 5, with threads' locks in test_nvml_library.c. */
static void a_forked_child_reads_on(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_probe(&found, "1");
    struct wg_device *device = device_of(&found, 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct wg_sample sample;
        const bool is_good = device->ops->read(device, BIT(POWER_W), &sample, NULL) == WG_OK &&
                             sample.values[WG_METRIC_POWER_W] > 310 &&
                             fake.gpus[1].calls[FAKE_by_pci] == 1;
        _exit(is_good ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    found_end(&found);
}

/* Field report 38: nothing is open any more, and the GPU is found again wherever it is now. */
static void release_closes_all_and_reopen_finds_the_same_gpu(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_probe(&found, NULL);
    struct wg_device *first = device_of(&found, 0);
    struct wg_device *second = device_of(&found, 1);
    char uuid[NVML_UUID_SIZE];
    (void)snprintf(uuid, sizeof uuid, "%s", first->info.uuid);
    first->ops->release(first);
    assert_true(fake.is_open);
    second->ops->release(second);
    assert_false(fake.is_open);
    assert_int_equal(fake.init_count, 0);

    const struct fake_gpu swapped = fake.gpus[0];
    fake.gpus[0] = fake.gpus[1];
    fake.gpus[1] = swapped;
    fake.gpus[1].usage_mw = 99000;
    fake_set_field(&fake.gpus[1], NVML_FIELD_POWER_INSTANT_MW, 0, NVML_TYPE_UINT, 99000);
    assert_int_equal(first->ops->reopen(first, NULL), WG_OK);
    assert_int_equal(second->ops->reopen(second, NULL), WG_OK);
    struct wg_sample sample;
    assert_int_equal(first->ops->read(first, BIT(POWER_W), &sample, NULL), WG_OK);
    check_close(sample.values[WG_METRIC_POWER_W], 99, 1e-12);

    /* One that was taken out. */
    first->ops->release(first);
    second->ops->release(second);
    fake.count = 1;
    struct wg_error err = {0};
    assert_int_equal(first->ops->reopen(first, &err), WG_ELOST);
    expect_text(err.text, "not there any more");
    assert_int_equal(second->ops->reopen(second, NULL), WG_OK);
    found_end(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_gpu_is_lost_alone),
        cmocka_unit_test(a_gpu_lost_in_one_field_or_one_call_is_lost),
        cmocka_unit_test(nothing_read_at_all_is_an_error_with_its_cause),
        cmocka_unit_test(reads_start_nvml_anew_after_a_second_and_come_back),
        cmocka_unit_test(a_start_that_fails_is_tried_again_only_after_its_time),
        cmocka_unit_test(a_gpu_beside_one_that_answers_gets_its_handle_anew_and_disturbs_none),
        cmocka_unit_test(a_remedy_is_told_once),
        cmocka_unit_test(a_count_that_no_machine_has_is_refused_in_words),
        cmocka_unit_test(one_field_that_fails_now_and_then_costs_itself),
        cmocka_unit_test(a_gpu_that_may_not_be_opened_is_listed_with_its_reason),
        cmocka_unit_test(any_code_of_any_call_leaves_the_probe_whole),
        cmocka_unit_test(a_forked_child_reads_on),
        cmocka_unit_test(release_closes_all_and_reopen_finds_the_same_gpu),
    };
    return run_tests(tests);
}
