/* SPDX-License-Identifier: MIT
 *
 * A librocm_smi64.so with the calls that rocm_smi.c makes, which answer what a test has put into
 * `fake_rocm_smi`.
 */
#include "support/fake_rocm_smi.h"

#define SHOWN __attribute__((visibility("default")))

extern struct fake_rocm_smi fake_rocm_smi;
SHOWN struct fake_rocm_smi fake_rocm_smi;

int rsmi_init(uint64_t flags);
int rsmi_shut_down(void);
int rsmi_num_monitor_devices(uint32_t *count);
int rsmi_dev_pci_id_get(uint32_t index, uint64_t *address);
int rsmi_dev_energy_count_get(uint32_t index, uint64_t *counter, float *resolution_uj,
                              uint64_t *t_ns);

SHOWN int rsmi_init(uint64_t flags)
{
    if (flags != 0)
        return 1;
    if (fake_rocm_smi.init_status == 0)
        fake_rocm_smi.users++;
    return fake_rocm_smi.init_status;
}

SHOWN int rsmi_shut_down(void)
{
    fake_rocm_smi.users--;
    return 0;
}

SHOWN int rsmi_num_monitor_devices(uint32_t *count)
{
    *count = fake_rocm_smi.count;
    return fake_rocm_smi.count_status;
}

SHOWN int rsmi_dev_pci_id_get(uint32_t index, uint64_t *address)
{
    if (index >= fake_rocm_smi.count || fake_rocm_smi.addresses[index] == UINT64_MAX)
        return 1;
    *address = fake_rocm_smi.addresses[index];
    return 0;
}

SHOWN int rsmi_dev_energy_count_get(uint32_t index, uint64_t *counter, float *resolution_uj,
                                    uint64_t *t_ns)
{
    *counter = fake_rocm_smi.counter + index;
    *resolution_uj = fake_rocm_smi.resolution_uj;
    *t_ns = 1;
    return fake_rocm_smi.energy_status;
}
