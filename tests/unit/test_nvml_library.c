/* SPDX-License-Identifier: MIT
 *
 * Loading NVML: names and their fallbacks, what is missing, codes, fork, the last user's unload.
 */
#include "device/nvml_library.h"

#include <sys/wait.h>

#include "support/nvml_fake.h"

static struct nvml_library *make_library(void)
{
    struct nvml_library *library = NULL;
    assert_int_equal(wg__nvml_library_new(&library, "libnvidia-ml.so.1", &fake_loader, NULL),
                     WG_OK);
    return library;
}

static void the_last_user_shuts_down_and_unloads(void **state)
{
    (void)state;
    fake_reset();
    struct nvml_library *library = make_library();
    assert_int_equal(fake.loads, 0);
    assert_int_equal(wg__nvml_library_acquire(library, NULL, NULL, NULL), WG_OK);
    assert_int_equal(wg__nvml_library_acquire(library, NULL, NULL, NULL), WG_OK);
    assert_int_equal(fake.loads, 1);
    assert_int_equal(fake.calls[FAKE_init_with_flags], 1);
    assert_int_equal(fake.init_flags, NVML_INIT_NO_GPUS);
    assert_string_equal(library->driver, "550.54.15");
    wg__nvml_library_release(library);
    assert_int_equal(fake.unloads, 0);
    wg__nvml_library_release(library);
    assert_int_equal(fake.unloads, 1);
    assert_int_equal(fake.shutdowns, 1);
    /* And again, as after a reset of the GPU (field report 38). */
    assert_int_equal(wg__nvml_library_acquire(library, NULL, NULL, NULL), WG_OK);
    assert_int_equal(fake.loads, 2);
    wg__nvml_library_release(library);
    wg__nvml_library_unref(library);
    wg__nvml_library_unref(NULL);
}

static void a_missing_library_is_named_with_its_package(void **state)
{
    (void)state;
    fake_reset();
    fake.has_no_library = true;
    struct nvml_library *library = make_library();
    struct wg_error err = {0};
    const char *remedy = NULL;
    assert_int_equal(wg__nvml_library_acquire(library, NULL, &remedy, &err), WG_ENODEV);
    assert_non_null(strstr(err.text, "libnvidia-ml.so.1"));
    assert_non_null(strstr(remedy, "libnvidia-ml1"));
    assert_non_null(strstr(remedy, "NVIDIA_DRIVER_CAPABILITIES=utility"));
    wg__nvml_library_unref(library);
}

static void a_file_that_is_no_library_is_told_by_the_real_loader(void **state)
{
    (void)state;
    struct nvml_library *library = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__nvml_library_new(&library, "/dev/null", NULL, NULL), WG_OK);
    assert_int_equal(wg__nvml_library_acquire(library, NULL, NULL, &err), WG_ENODEV);
    assert_non_null(strstr(err.text, "/dev/null cannot be loaded: "));
    wg__nvml_library_unref(library);
    /* A library that is one, but not NVML. */
    assert_int_equal(wg__nvml_library_new(&library, "libm.so.6", NULL, NULL), WG_OK);
    const char *remedy = NULL;
    assert_int_equal(wg__nvml_library_acquire(library, NULL, &remedy, &err), WG_EUNSUPPORTED);
    assert_non_null(strstr(remedy, "install a newer NVIDIA driver"));
    assert_string_equal(err.text, "libm.so.6 has no call nvmlInit: it is too old, or not NVML");
    wg__nvml_library_unref(library);
}

/* Field report 40. */
static void every_call_falls_back_to_its_older_spellings(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        bool is_needed;
        const char *name, *names[3];
    } calls[] = {
#define NEEDED   true
#define OPTIONAL false
#define X(member, need, arguments, name, newest, older, oldest)                                    \
    {offsetof(struct nvml_calls, member), need, name, {newest, older, oldest}},
        WG_NVML_CALLS(X)
#undef X
#undef NEEDED
#undef OPTIONAL
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        fake_reset();
        for (size_t j = 0; j < 3 && calls[i].names[j] != NULL; j++) {
            struct nvml_library *library = make_library();
            fake.init_count = 0;
            assert_int_equal(wg__nvml_library_acquire(library, NULL, NULL, NULL), WG_OK);
            void *symbol = NULL;
            memcpy(&symbol, (const char *)&library->calls + calls[i].offset, sizeof symbol);
            assert_non_null(symbol);
            wg__nvml_library_release(library);
            wg__nvml_library_unref(library);
            fake_remove_symbol(calls[i].names[j]);
        }
        /* With no spelling left: needed calls are named, others are just not there. */
        struct nvml_library *library = make_library();
        struct wg_error err = {0};
        const char *remedy = NULL;
        const enum wg_code code = wg__nvml_library_acquire(library, NULL, &remedy, &err);
        assert_int_equal(code, calls[i].is_needed ? WG_EUNSUPPORTED : WG_OK);
        if (calls[i].is_needed) {
            assert_non_null(strstr(err.text, calls[i].name));
            assert_non_null(strstr(err.text, "libnvidia-ml.so.1"));
            assert_non_null(remedy);
            assert_false(fake.is_open);
        } else {
            wg__nvml_library_release(library);
        }
        wg__nvml_library_unref(library);
    }
}

static void init_without_flags_is_tried_where_flags_are_refused(void **state)
{
    (void)state;
    fake_reset();
    fake.codes[FAKE_init_with_flags] = NVML_E_INVALID_ARGUMENT;
    struct nvml_library *library = make_library();
    assert_int_equal(wg__nvml_library_acquire(library, NULL, NULL, NULL), WG_OK);
    assert_int_equal(fake.calls[FAKE_init], 1);
    wg__nvml_library_release(library);
    wg__nvml_library_unref(library);
}

/* Field report 42 is the mismatch, 43 the container. */
static void a_failed_init_says_code_words_and_remedy(void **state)
{
    (void)state;
    static const struct {
        int code;
        enum wg_code meaning;
        const char *words, *remedy;
    } cases[] = {
        {NVML_E_DRIVER_NOT_LOADED, WG_ENODEV, "error 9: the NVIDIA driver is not loaded",
         "modprobe nvidia"},
        {NVML_E_LIBRARY_NOT_FOUND, WG_ENODEV, "error 12: ", "NVIDIA_DRIVER_CAPABILITIES=utility"},
        {NVML_E_VERSION_MISMATCH, WG_EIO, "error 18: driver and library are of different versions",
         "reboot"},
        {NVML_E_NO_PERMISSION, WG_EPERM, "error 4: no permission", "/dev/nvidia*"},
        {NVML_E_UNKNOWN, WG_EIO, "error 999: ", "restart the container"},
        {NVML_E_OPERATING_SYSTEM, WG_EIO, "error 17: ", "restart the container"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake_reset();
        fake.codes[FAKE_init_with_flags] = cases[i].code;
        struct nvml_library *library = make_library();
        struct wg_error err = {0};
        const char *remedy = NULL;
        assert_int_equal(wg__nvml_library_acquire(library, NULL, &remedy, &err), cases[i].meaning);
        assert_non_null(strstr(err.text, "nvmlInitWithFlags"));
        if (strstr(err.text, cases[i].words) == NULL)
            fail_msg("'%s' lacks '%s'", err.text, cases[i].words);
        assert_non_null(strstr(remedy, cases[i].remedy));
        assert_false(fake.is_open);
        wg__nvml_library_unref(library);
    }
}

static void every_code_has_a_meaning(void **state)
{
    (void)state;
    static const struct {
        int code;
        enum wg_code meaning;
    } cases[] = {
        {3, WG_EUNSUPPORTED}, {13, WG_EUNSUPPORTED}, {26, WG_EUNSUPPORTED},
        {4, WG_EPERM},        {15, WG_ELOST},        {16, WG_ELOST},
        {9, WG_ENODEV},       {12, WG_ENODEV},       {28, WG_ENODEV},
        {10, WG_ETIMEOUT},    {1, WG_EIO},           {6, WG_EIO},
        {7, WG_EIO},          {17, WG_EIO},          {18, WG_EIO},
        {27, WG_EIO},         {999, WG_EIO},         {12345, WG_EIO},
        {0, WG_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(wg__nvml_code(cases[i].code)->meaning, cases[i].meaning);
        assert_true(strlen(wg__nvml_code(cases[i].code)->words) > 0);
    }
    for (int code = 0; code <= NVML_E_INVALID_STATE; code++)
        assert_int_equal(wg__nvml_code(code)->code, code);
    struct wg_error err = {0};
    assert_int_equal(wg__nvml_fail(&err, "gpu0", "nvmlDeviceGetName", 3), WG_EUNSUPPORTED);
    assert_string_equal(err.text, "gpu0: nvmlDeviceGetName: error 3: not supported by this GPU");
}

/* Field report 5: NVML that was initialised before fork answers "uninitialised" in the child. */
static void a_forked_child_initialises_anew(void **state)
{
    (void)state;
    fake_reset();
    struct nvml_library *library = make_library();
    assert_int_equal(wg__nvml_library_acquire(library, NULL, NULL, NULL), WG_OK);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        unsigned count = 0;
        const bool is_stale = library->calls.count(&count) == NVML_E_UNINITIALIZED;
        /* A thread of the parent may have had the lock at the moment of the fork. */
        atomic_store(&library->lock_owner, (int)getppid());
        const bool is_good = wg__nvml_library_check_process(library, NULL, NULL) == WG_OK &&
                             library->calls.count(&count) == NVML_OK && count == 2;
        _exit(is_stale && is_good ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(wg__nvml_library_check_process(library, NULL, NULL), WG_OK);
    assert_int_equal(fake.calls[FAKE_init_with_flags], 1); /* this process needed no second one */
    wg__nvml_library_release(library);
    wg__nvml_library_unref(library);
}

static void out_of_memory_is_reported(void **state)
{
    (void)state;
    struct nvml_library *library = NULL;
    struct wg_error err = {0};
    wg__alloc_fail_from(1);
    const enum wg_code code = wg__nvml_library_new(&library, "x", &fake_loader, &err);
    wg__alloc_fail_from(0);
    assert_int_equal(code, WG_ENOMEM);
    assert_null(library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_user_shuts_down_and_unloads),
        cmocka_unit_test(a_missing_library_is_named_with_its_package),
        cmocka_unit_test(a_file_that_is_no_library_is_told_by_the_real_loader),
        cmocka_unit_test(every_call_falls_back_to_its_older_spellings),
        cmocka_unit_test(init_without_flags_is_tried_where_flags_are_refused),
        cmocka_unit_test(a_failed_init_says_code_words_and_remedy),
        cmocka_unit_test(every_code_has_a_meaning),
        cmocka_unit_test(a_forked_child_initialises_anew),
        cmocka_unit_test(out_of_memory_is_reported),
    };
    return run_tests(tests);
}
