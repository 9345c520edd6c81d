/* SPDX-License-Identifier: MIT
 *
 * What the fake ROCm library answers; a test finds it as the symbol "fake_rocm_smi".
 */
#ifndef WG_TESTS_SUPPORT_FAKE_ROCM_SMI_H
#define WG_TESTS_SUPPORT_FAKE_ROCM_SMI_H

#include <stdint.h>

struct fake_rocm_smi {
    int init_status, count_status, energy_status;
    uint32_t count;
    uint64_t addresses[4]; /* UINT64_MAX: the call fails */
    uint64_t counter;
    float resolution_uj;
    int users; /* initialised and not shut down */
};

#endif
