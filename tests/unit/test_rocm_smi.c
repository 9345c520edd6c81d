/* SPDX-License-Identifier: MIT
 *
 * ROCm SMI against a library that stands in for it.
 */
#include "device/rocm_smi.h"

#include <string.h>

#include "support/check.h"
#include "support/rocm_smi_stage.h"

static void finds_a_card_by_its_address_and_reads_its_energy(void **state)
{
    (void)state;
    struct rocm_smi_stage stage;
    rocm_smi_open_stage(&stage);
    struct wg_rocm_smi smi;
    struct wg_error err;
    double energy_j = 0.0;
    assert_int_equal(wg__rocm_smi_open(&smi, stage.path, "0001:c3:1f.2", &err), WG_OK);
    assert_int_equal(smi.index, 2);
    assert_int_equal(stage.fake->users, 1);
    assert_int_equal(wg__rocm_smi_energy(&smi, &energy_j, &err), WG_OK);
    check_close(energy_j, (1048576.0 + 2.0) * 15.25e-6, 1e-12);
    wg__rocm_smi_close(&smi);
    wg__rocm_smi_close(&smi);
    wg__rocm_smi_close(NULL);
    assert_int_equal(wg__rocm_smi_energy(&smi, &energy_j, &err), WG_ESTATE);
    rocm_smi_close_stage(&stage);
}

static void each_failure_names_the_call(void **state)
{
    (void)state;
    struct rocm_smi_stage stage;
    rocm_smi_open_stage(&stage);
    struct wg_rocm_smi smi;
    struct wg_error err;
    double energy_j = 7.0;
    assert_int_equal(wg__rocm_smi_open(&smi, "/nowhere/librocm_smi64.so", "0000:03:00.0", &err),
                     WG_ENOENT);
    assert_non_null(strstr(err.text, "/nowhere/librocm_smi64.so"));
    assert_int_equal(wg__rocm_smi_open(&smi, "libm.so.6", "0000:03:00.0", &err), WG_ENOENT);
    assert_string_equal(err.text, "libm.so.6 lacks rsmi_init");
    assert_int_equal(wg__rocm_smi_open(&smi, stage.path, "0000:04:00.0", &err), WG_ENODEV);
    assert_non_null(strstr(err.text, "none of 3 cards is at 0000:04:00.0"));
    stage.fake->init_status = 8;
    assert_int_equal(wg__rocm_smi_open(&smi, stage.path, "0000:03:00.0", &err), WG_EIO);
    assert_string_equal(err.text, "rsmi_init: status 8");
    stage.fake->init_status = 0;
    stage.fake->count_status = 6;
    assert_int_equal(wg__rocm_smi_open(&smi, stage.path, "0000:03:00.0", &err), WG_EIO);
    stage.fake->count_status = 0;
    assert_int_equal(wg__rocm_smi_open(&smi, stage.path, "0000:03:00.0", &err), WG_OK);
    stage.fake->energy_status = 2;
    assert_int_equal(wg__rocm_smi_energy(&smi, &energy_j, &err), WG_EUNSUPPORTED);
    stage.fake->energy_status = 6;
    assert_int_equal(wg__rocm_smi_energy(&smi, &energy_j, &err), WG_EIO);
    assert_string_equal(err.text, "rsmi_dev_energy_count_get: status 6");
    stage.fake->energy_status = 0;
    stage.fake->resolution_uj = 0.0F;
    assert_int_equal(wg__rocm_smi_energy(&smi, &energy_j, &err), WG_EUNSUPPORTED);
    stage.fake->resolution_uj = 15.3F;
    stage.fake->counter = UINT64_MAX - 1; /* and the index makes it all ones */
    assert_int_equal(wg__rocm_smi_energy(&smi, &energy_j, &err), WG_EUNSUPPORTED);
    check_close(energy_j, 7.0, 0.0);
    wg__rocm_smi_close(&smi);
    rocm_smi_close_stage(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_a_card_by_its_address_and_reads_its_energy),
        cmocka_unit_test(each_failure_names_the_call),
    };
    return run_tests(tests);
}
