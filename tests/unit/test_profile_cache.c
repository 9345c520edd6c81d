/* SPDX-License-Identifier: MIT */
#include "live/profile_cache.h"

#include <string.h>

#include "support/check.h"
#include "support/scratch.h"

static void gives_back_every_number_that_was_put(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_error err;
    scratch_open(&scratch);
    struct wg_store *store = NULL;
    const struct wg_store_opts opts = {.path = scratch_path(&scratch, "jobs.db")};
    assert_int_equal(wg__store_open(&store, &opts, &err), WG_OK);
    const struct wg_store_profile_key key = {"train.py", "NVIDIA A40", 1, "power_limit", 0};
    const struct wg_train_point put[] = {{100, 101, 102, 0.1, 0.2, 3, 4, 5, NAN},
                                         {200, 201, 202, 0.3, 0.4, 6, 7, 8, 9}};
    struct wg_train_point got[WG_POWER_LIMITS_MAX];
    size_t count = 1;
    double when_s = -1;
    assert_int_equal(wg__store_profile_get(store, &key, got, &count, &when_s, &err), WG_OK);
    assert_int_equal(count, 0);
    assert_int_equal(wg__store_profile_put(store, &key, 1234.5, put, 2, &err), WG_OK);
    assert_int_equal(wg__store_profile_get(store, &key, got, &count, &when_s, &err), WG_OK);
    assert_int_equal(count, 2);
    assert_true(when_s == 1234.5);
    assert_true(isnan(got[0].settle_s) && got[0].discarded == 5 && got[0].measurements == 4);
    got[0].settle_s = 0;
    assert_true(got[0].setting == 100 && got[0].power_w == 101 && got[0].throughput == 102);
    assert_true(got[0].power_sd == 0.1 && got[0].throughput_sd == 0.2 && got[0].measured_s == 3);
    assert_memory_equal(&got[1], &put[1], sizeof put[1]);
    assert_int_equal(wg__store_profile_put(store, &key, 1, put, WG_POWER_LIMITS_MAX + 1, &err),
                     WG_EINVAL);
    assert_non_null(strstr(err.text, "65 points"));
    wg__store_close(store);
    scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_back_every_number_that_was_put),
    };
    return run_tests(tests);
}
