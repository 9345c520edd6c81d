/* SPDX-License-Identifier: MIT
 *
 * Selectors of GPUs, and CUDA_VISIBLE_DEVICES by CUDA's rules (field reports 15, 16, 17 and 18).
 *
 * What is documented of the environment is in CUDA's Programming Guide; the rest (duplicates, text
 * behind a number, mixed forms, blanks) is as PyTorch reads it, see src/device/visible.c.
 */
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "device/select.h"
#include "device/visible.h"
#include "support/check.h"

static const char *const migs[] = {"MIG-11111111-aaaa-5555-8888-000000000001",
                                   "MIG-11111111-aaaa-5555-8888-000000000002"};

/* Two that differ late in their UUIDs, one that is fastest, one that is split. */
static const struct wg_candidate gpus[] = {
    {.uuid = "GPU-af7b61d8-0000-1111-2222-333333333333", .pci = "0000:1a:00.0", .speed = 1.0},
    {.uuid = "GPU-af7b99ff-0000-1111-2222-333333333333", .pci = "0000:1B:00.0", .speed = 3.0},
    {.uuid = "GPU-c0ffee00-0000-1111-2222-333333333333",
     .pci = "00000001:1a:00.0",
     .speed = 3.0,
     .mig_uuids = migs,
     .mig_count = 2},
    {.uuid = NULL, .pci = NULL, .speed = 2.0},
};

enum { GPUS = sizeof gpus / sizeof *gpus };

/* The chosen ones as text: "02". */
static void show(const bool *chosen, size_t count, char out[static GPUS + 1])
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        if (chosen[i])
            out[length++] = (char)('0' + i);
    }
    out[length] = '\0';
}

static struct wg_selection *select_new(const char *const *selectors, size_t count,
                                       const char *visible, const char *order)
{
    struct wg_error err = {0};
    struct wg_selection *selection = NULL;
    if (wg__selection_new(&selection, selectors, count, visible, order, &err) != WG_OK)
        fail_msg("%s", err.text);
    return selection;
}

static void expect_environment(const char *visible, const char *order, const char *expected)
{
    struct wg_selection *selection = select_new(NULL, 0, visible, order);
    bool chosen[GPUS];
    char actual[GPUS + 1];
    struct wg_error err = {0};
    assert_int_equal(wg__selection_match(selection, gpus, GPUS, chosen, &err), WG_OK);
    assert_int_equal(wg__selection_check(selection, &err), WG_OK);
    show(chosen, GPUS, actual);
    if (strcmp(actual, expected) != 0)
        fail_msg("CUDA_VISIBLE_DEVICES='%s' gives '%s', expected '%s'",
                 visible != NULL ? visible : "(unset)", actual, expected);
    if (wg__selection_is_none(selection))
        assert_string_equal(expected, "");
    wg__selection_free(selection);
}

static void cuda_visible_devices_means_what_cuda_takes_it_for(void **state)
{
    (void)state;
    static const struct {
        const char *value, *expected;
    } rows[] = {
        {NULL, "0123"},
        {"", ""},
        {"0", "0"},
        {"1,0", "01"},
        {"0,0", ""}, /* twice: nothing */
        {"1,2,1", ""},
        {"0,-1,1", "0"},
        {"-1", ""},
        {"-1,0", ""},
        {"NoDevFiles", ""}, /* Slurm */
        {"1abc", "1"},
        {"1gpu2,2ampere", "12"},
        {"abc1", ""},
        {"+1", "1"},
        {"0x1", "0"},
        {"0,7,1", "0"}, /* out of range ends */
        {"7", ""},
        {"99999999999999999999999,0", ""},
        {" 0 , 2 ", "02"},
        {"0,,1", "0"},
        {",0", ""},
        {"0,", "0"},
        {"0,GPU-c0ff", "0"},
        {"GPU-c0ff", "2"},
        {"GPU-c0ffee00-0000-1111-2222-333333333333", "2"},
        {"GPU-af7b6", "0"},
        {"GPU-af7b", ""}, /* ambiguous */
        {"GPU-c0ff,GPU-af7b,GPU-af7b6", "2"},
        {"GPU-c0ff,1", "2"}, /* the first decides on the form */
        {"GPU-c0ff,GPU-c0ff", ""},
        {"GPU-c0ff,GPU-c0ffee", ""}, /* the same one by two names */
        {"GPU-dead,GPU-c0ff", ""},
        {"GPU-c0ff,GPU-dead,GPU-af7b6", "2"},
        {"GPU-", ""},
        {" GPU-c0ff", ""},
        {"MIG-11111111-aaaa-5555-8888-000000000001", "2"},
        {"MIG-11111111-aaaa-5555-8888-000000000001,MIG-11111111-aaaa-5555-8888-000000000002", "2"},
        {"MIG-11111111-aaaa-5555-8888-000000000009", ""},
        {"MIG-GPU-c0ffee00-0000-1111-2222-333333333333/1/0", "2"},
        {"MIG-GPU-c0ffee00-0000-1111-2222-333333333333/1", ""},
        {"MIG-GPU-c0ffee00/1/0", ""},
        {"MIG-", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_environment(rows[i].value, "PCI_BUS_ID", rows[i].expected);
}

static void indices_of_mixed_gpus_count_the_fastest_first_unless_told_otherwise(void **state)
{
    (void)state;
    /* By speed: 1, 2 (a tie, in PCI order), 3, 0. Field report 17. */
    static const char *const by_speed[] = {"1", "2", "3", "0"};
    static const char *const by_bus[] = {"0", "1", "2", "3"};
    static const char *const indices[] = {"0", "1", "2", "3"};
    for (size_t i = 0; i < 4; i++) {
        expect_environment(indices[i], NULL, by_speed[i]);
        expect_environment(indices[i], "FASTEST_FIRST", by_speed[i]);
        expect_environment(indices[i], "PCI_BUS_ID", by_bus[i]);
    }
}

static void one_unknown_speed_leaves_the_order_of_the_driver(void **state)
{
    (void)state;
    const struct wg_candidate mixed[] = {{.speed = 1.0}, {.speed = 0.0}, {.speed = 3.0}};
    struct wg_selection *selection = select_new(NULL, 0, "0", NULL);
    assert_true(wg__selection_needs_speeds(selection));
    assert_false(wg__selection_needs_uuids(selection));
    bool chosen[3];
    assert_int_equal(wg__selection_match(selection, mixed, 3, chosen, NULL), WG_OK);
    assert_true(chosen[0] && !chosen[1] && !chosen[2]);
    wg__selection_free(selection);
}

static void what_a_selection_needs_to_know_follows_from_what_it_says(void **state)
{
    (void)state;
    static const struct {
        const char *selector, *visible, *order;
        bool is_all, is_none, uuids, speeds;
    } rows[] = {
        {NULL, NULL, NULL, true, false, false, false},
        {NULL, "", NULL, false, true, false, false},
        {NULL, "0", "PCI_BUS_ID", false, false, false, false},
        {NULL, "0", NULL, false, false, false, true},
        {NULL, "GPU-a", NULL, false, false, true, false},
        {NULL, "MIG-a", NULL, false, false, true, false},
        {"all", "0", NULL, true, false, false, false},
        {"none", "0", NULL, false, true, false, false},
        {"0", "GPU-a", NULL, false, false, false, false},
        {"1a:00.0", NULL, NULL, false, false, false, false},
        {"GPU-a", NULL, NULL, false, false, true, false},
        {"cuda:0", NULL, NULL, false, false, false, true},
        {"cuda:0", "GPU-a", NULL, false, false, true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t count = rows[i].selector != NULL;
        struct wg_selection *selection =
            select_new(&rows[i].selector, count, rows[i].visible, rows[i].order);
        assert_int_equal(wg__selection_is_all(selection), rows[i].is_all);
        assert_int_equal(wg__selection_is_none(selection), rows[i].is_none);
        assert_int_equal(wg__selection_needs_uuids(selection), rows[i].uuids);
        assert_int_equal(wg__selection_needs_speeds(selection), rows[i].speeds);
        wg__selection_free(selection);
    }
}

static void selectors_choose_by_index_uuid_address_and_cuda_number(void **state)
{
    (void)state;
    static const struct {
        const char *selector, *expected;
    } rows[] = {
        {"all", "0123"},
        {"ALL", "0123"},
        {"none", ""},
        {"0", "0"},
        {"0,2-3", "023"},
        {" 1 , 3 ", "13"},
        {"0,0,0-1", "01"}, /* no duplicates */
        {"GPU-c0ff", "2"},
        {"gpu-C0FFEE00", "2"},
        {"c0ffee00", ""}, /* not how it begins: the check says so */
        {"1a:00.0", "0"},
        {"0000:1A:00.0", "0"},
        {"00000000:1a:00.0", "0"},
        {"0000:1b:00.0", "1"},
        {"1b:00", "1"},
        {"0001:1a:00.0", "2"},
        {"MIG-11111111-aaaa-5555-8888-000000000002", "2"},
        {"MIG-GPU-C0FFEE00-0000-1111-2222-333333333333/3/0", "2"},
        {"cuda:0", "1"}, /* the fastest */
        {"cuda:3,0", "0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wg_selection *selection = select_new(&rows[i].selector, 1, NULL, NULL);
        bool chosen[GPUS];
        char actual[GPUS + 1];
        struct wg_error err = {0};
        if (wg__selection_match(selection, gpus, GPUS, chosen, &err) != WG_OK)
            fail_msg("%s: %s", rows[i].selector, err.text);
        show(chosen, GPUS, actual);
        if (strcmp(actual, rows[i].expected) != 0)
            fail_msg("'%s' gives '%s', expected '%s'", rows[i].selector, actual, rows[i].expected);
        wg__selection_free(selection);
    }
}

static void several_selectors_add_up_and_cuda_numbers_follow_the_environment(void **state)
{
    (void)state;
    static const char *const selectors[] = {"cuda:0", "3", "1a:00.0"};
    struct wg_selection *selection = select_new(selectors, 3, "2,0", "PCI_BUS_ID");
    bool chosen[GPUS];
    char actual[GPUS + 1];
    assert_int_equal(wg__selection_match(selection, gpus, GPUS, chosen, NULL), WG_OK);
    assert_int_equal(wg__selection_check(selection, NULL), WG_OK);
    show(chosen, GPUS, actual);
    assert_string_equal(actual, "023");
    wg__selection_free(selection);
}

static void a_selector_that_fits_several_gpus_names_them(void **state)
{
    (void)state;
    static const char *const selector[] = {"GPU-af7b"};
    struct wg_selection *selection = select_new(selector, 1, NULL, NULL);
    bool chosen[GPUS];
    struct wg_error err = {0};
    assert_int_equal(wg__selection_match(selection, gpus, GPUS, chosen, &err), WG_EINVAL);
    assert_string_equal(err.text, "GPU selector 'GPU-af7b' fits 2 GPUs: 0 (GPU-af7b61d8, "
                                  "0000:1a:00.0), 1 (GPU-af7b99ff, 0000:1B:00.0)");
    wg__selection_free(selection);
}

static void a_selector_that_fits_no_gpu_lists_those_that_are_there(void **state)
{
    (void)state;
    static const char *const misses[] = {"4", "0-4", "GPU-dead", "0002:1a:00.0", "cuda:4", "MIG-2"};
    for (size_t i = 0; i < sizeof misses / sizeof *misses; i++) {
        struct wg_selection *selection = select_new(&misses[i], 1, NULL, NULL);
        bool chosen[GPUS];
        struct wg_error err = {0};
        assert_int_equal(wg__selection_match(selection, gpus, GPUS, chosen, &err), WG_OK);
        assert_int_equal(wg__selection_check(selection, &err), WG_EINVAL);
        char expected[512];
        (void)snprintf(expected, sizeof expected,
                       "GPU selector '%s' fits none of the GPUs here: 0 (GPU-af7b61d8, "
                       "0000:1a:00.0), 1 (GPU-af7b99ff, 0000:1B:00.0), 2 (GPU-c0ffee00, "
                       "00000001:1a:00.0), 3",
                       misses[i]);
        assert_string_equal(err.text, expected);
        wg__selection_free(selection);
    }
    static const char *const zero[] = {"0"};
    struct wg_selection *selection = select_new(zero, 1, NULL, NULL);
    struct wg_error err = {0};
    assert_int_equal(wg__selection_match(selection, NULL, 0, NULL, &err), WG_OK);
    assert_int_equal(wg__selection_check(selection, &err), WG_EINVAL);
    assert_string_equal(err.text, "GPU selector '0' fits none: there is no GPU here");
    wg__selection_free(selection);
}

static void a_label_is_a_selector(void **state)
{
    (void)state;
    static const char *const labels[] = {"gpu1", "GPU2"};
    struct wg_selection *selection = select_new(labels, 2, NULL, NULL);
    bool chosen[GPUS];
    char actual[GPUS + 1];
    assert_int_equal(wg__selection_match(selection, gpus, GPUS, chosen, NULL), WG_OK);
    show(chosen, GPUS, actual);
    assert_string_equal(actual, "12");
    assert_int_equal(wg__selection_check(selection, NULL), WG_OK);
    wg__selection_free(selection);
}

static void a_cuda_selector_that_fits_none_names_the_environment(void **state)
{
    (void)state;
    static const char *const first[] = {"cuda:0"};
    struct wg_selection *selection = select_new(first, 1, "-1", NULL);
    bool chosen[GPUS];
    struct wg_error err = {0};
    assert_int_equal(wg__selection_match(selection, gpus, GPUS, chosen, NULL), WG_OK);
    assert_int_equal(wg__selection_check(selection, &err), WG_EINVAL);
    assert_string_equal(err.text, "GPU selector 'cuda:0' fits none of the 4 GPUs here: "
                                  "CUDA_VISIBLE_DEVICES='-1' (it has an entry that is no index)");
    wg__selection_free(selection);
}

static void indices_count_through_the_backends(void **state)
{
    (void)state;
    static const struct wg_candidate amd[] = {{.uuid = "b5c6d7e8f9a0b1c2", .pci = "0000:03:00.0"},
                                              {.uuid = "b5ffffffffffffff", .pci = "0000:04:00.0"}};
    static const char *const selectors[] = {"3-4", "GPU-c0ff", "b5ffffff"};
    struct wg_selection *selection = select_new(selectors, 3, NULL, NULL);
    bool chosen[GPUS];
    char actual[GPUS + 1];
    assert_int_equal(wg__selection_match(selection, gpus, GPUS, chosen, NULL), WG_OK);
    show(chosen, GPUS, actual);
    assert_string_equal(actual, "23");
    struct wg_error err = {0};
    assert_int_equal(wg__selection_check(selection, &err), WG_EINVAL); /* one is to come */
    assert_int_equal(wg__selection_match(selection, amd, 2, chosen, NULL), WG_OK);
    assert_true(chosen[0] && chosen[1]);
    assert_int_equal(wg__selection_check(selection, &err), WG_OK);
    wg__selection_free(selection);
}

static void a_list_of_many_gpus_is_cut(void **state)
{
    (void)state;
    struct wg_candidate many[100];
    bool chosen[100];
    for (size_t i = 0; i < 100; i++)
        many[i] = gpus[0];
    static const char *const selector[] = {"GPU-dead"};
    struct wg_selection *selection = select_new(selector, 1, NULL, NULL);
    struct wg_error err = {0};
    assert_int_equal(wg__selection_match(selection, many, 100, chosen, &err), WG_OK);
    assert_int_equal(wg__selection_check(selection, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "), ..."));
    assert_null(strstr(err.text, "..., ..."));
    wg__selection_free(selection);
}

static void malformed_selectors_are_refused_with_what_is_expected(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "0,",
                                      ",0",
                                      "3-2",
                                      "-1",
                                      "1-",
                                      "x",
                                      "gpu",
                                      "gpux",
                                      "GPU-",
                                      "GPU-zz zz",
                                      "1a:",
                                      "1a:00.8",
                                      "1a:20.0",
                                      "00000:1:00.0x",
                                      "cuda:",
                                      "cuda:x",
                                      "MIG-",
                                      "MIG-GPU-12/1",
                                      "MIG-zz",
                                      "99999999",
                                      "0;1",
                                      "100:00.0",
                                      "MIG-GPU-12/1/0x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wg_selection *selection = NULL;
        struct wg_error err = {0};
        if (wg__selection_new(&selection, &bad[i], 1, NULL, NULL, &err) != WG_EINVAL)
            fail_msg("'%s' was taken", bad[i]);
        assert_null(selection);
        assert_non_null(strstr(err.text, "expected all, none, an index"));
    }
    static const char *const both[] = {"none", "0"};
    struct wg_selection *selection = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__selection_new(&selection, both, 2, NULL, NULL, &err), WG_EINVAL);
    assert_string_equal(err.text, "GPU selector 'none' stands beside others");
    char longer[400];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    const char *const long_one[] = {longer};
    assert_int_equal(wg__selection_new(&selection, long_one, 1, NULL, NULL, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "is longer than 127 bytes"));
    wg__selection_free(NULL);
}

static enum wg_code select_and_match(void)
{
    static const char *const selectors[] = {"0,1,2,3,0,1,2,3,0", "cuda:1", "GPU-c0ff"};
    struct wg_selection *selection = NULL;
    struct wg_error err = {0};
    bool chosen[GPUS];
    enum wg_code code = wg__selection_new(&selection, selectors, 3, "GPU-c0,GPU-af7b6", NULL, &err);
    if (code == WG_OK)
        code = wg__selection_match(selection, gpus, GPUS, chosen, &err);
    if (code != WG_OK)
        assert_non_null(strstr(err.text, "out of memory"));
    wg__selection_free(selection);
    return code;
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    size_t failures = 0;
    for (size_t nth = 1;; nth++) {
        wg__alloc_fail_from(nth);
        const enum wg_code code = select_and_match();
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        failures++;
    }
    assert_in_range(failures, 7, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuda_visible_devices_means_what_cuda_takes_it_for),
        cmocka_unit_test(indices_of_mixed_gpus_count_the_fastest_first_unless_told_otherwise),
        cmocka_unit_test(one_unknown_speed_leaves_the_order_of_the_driver),
        cmocka_unit_test(what_a_selection_needs_to_know_follows_from_what_it_says),
        cmocka_unit_test(selectors_choose_by_index_uuid_address_and_cuda_number),
        cmocka_unit_test(several_selectors_add_up_and_cuda_numbers_follow_the_environment),
        cmocka_unit_test(a_selector_that_fits_several_gpus_names_them),
        cmocka_unit_test(a_selector_that_fits_no_gpu_lists_those_that_are_there),
        cmocka_unit_test(a_label_is_a_selector),
        cmocka_unit_test(a_cuda_selector_that_fits_none_names_the_environment),
        cmocka_unit_test(indices_count_through_the_backends),
        cmocka_unit_test(a_list_of_many_gpus_is_cut),
        cmocka_unit_test(malformed_selectors_are_refused_with_what_is_expected),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
    };
    return run_tests(tests);
}
