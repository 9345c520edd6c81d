/* SPDX-License-Identifier: MIT
 *
 * The fake ROCm library, loaded by a test so that it can say what it answers.
 */
#ifndef WG_TESTS_SUPPORT_ROCM_SMI_STAGE_H
#define WG_TESTS_SUPPORT_ROCM_SMI_STAGE_H

#include <dlfcn.h>

#include "support/fake_rocm_smi.h"
#include "support/scratch.h"

struct rocm_smi_stage {
    const char *path;
    void *library;
    struct fake_rocm_smi *fake;
};

/* Two cards: 0000:03:00.0 and 0001:c3:1f.2. */
static inline void rocm_smi_open_stage(struct rocm_smi_stage *stage)
{
    stage->path = getenv("WATTGOV_FAKE_ROCM_SMI");
    scratch_require(stage->path != NULL, "WATTGOV_FAKE_ROCM_SMI is not set");
    stage->library = dlopen(stage->path, RTLD_NOW | RTLD_LOCAL);
    scratch_require(stage->library != NULL, stage->path);
    stage->fake = dlsym(stage->library, "fake_rocm_smi");
    scratch_require(stage->fake != NULL, "fake_rocm_smi");
    *stage->fake = (struct fake_rocm_smi){.count = 3,
                                          .addresses = {UINT64_MAX, 0x300, 0x10000c3fa},
                                          .counter = UINT64_C(1) << 20,
                                          .resolution_uj = 15.25F};
}

static inline void rocm_smi_close_stage(struct rocm_smi_stage *stage)
{
    assert_int_equal(stage->fake->users, 0);
    (void)dlclose(stage->library);
}

#endif
