/* SPDX-License-Identifier: MIT
 *
 * ROCm SMI by dlopen.
 *
 * The declarations are ours: names, arguments and the layout of the address are facts of its
 * interface (rocm_smi.h 5.2). It is C++ inside, and answers an exception with a status.
 *
 * Owns: see struct wg_rocm_smi.    Threads: one thread at a time per struct.
 */
#include "device/rocm_smi.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SUCCESS = 0, PCI_SIZE = 16 };

static const double MICRO = 1e-6;

struct calls {
    int (*init)(uint64_t flags);
    int (*count)(uint32_t *count);
    int (*address)(uint32_t index, uint64_t *address);
};

/* A function of the library into a pointer of its type; POSIX lets the two convert. */
static bool resolve(void *library, const char *name, void *out)
{
    void *symbol = dlsym(library, name);
    if (symbol == NULL)
        return false;
    memcpy(out, &symbol, sizeof symbol);
    return true;
}

static enum wg_code load(struct wg_rocm_smi *smi, const char *name, struct calls *calls,
                         struct wg_error *err)
{
    smi->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (smi->library == NULL)
        return wg__fail(err, WG_ENOENT, "dlopen: %s", dlerror());
    const struct {
        const char *symbol;
        void *target;
    } wanted[] = {
        {"rsmi_init", &calls->init},
        {"rsmi_num_monitor_devices", &calls->count},
        {"rsmi_dev_pci_id_get", &calls->address},
        {"rsmi_shut_down", &smi->shut_down},
        {"rsmi_dev_energy_count_get", &smi->energy},
    };
    const char *missing = NULL;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && missing == NULL; i++) {
        if (!resolve(smi->library, wanted[i].symbol, wanted[i].target))
            missing = wanted[i].symbol;
    }
    if (missing != NULL)
        return wg__fail(err, WG_ENOENT, "%s lacks %s", name, missing);
    return WG_OK;
}

/* The index of the card at `pci`; addresses come as domain << 32 | bus << 8 | device << 3 | fn. */
static enum wg_code find(const struct calls *calls, const char *pci, uint32_t *out,
                         struct wg_error *err)
{
    uint32_t count = 0;
    const int status = calls->count(&count);
    if (status != SUCCESS)
        return wg__fail(err, WG_EIO, "rsmi_num_monitor_devices: status %d", status);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t address = 0;
        if (calls->address(i, &address) != SUCCESS)
            continue;
        char text[PCI_SIZE + 8];
        (void)snprintf(text, sizeof text, "%04x:%02x:%02x.%x", (unsigned)(address >> 32) & 0xffffff,
                       (unsigned)(address >> 8) & 0xff, (unsigned)(address >> 3) & 0x1f,
                       (unsigned)address & 0x7);
        if (strcasecmp(text, pci) == 0) {
            *out = i;
            return WG_OK;
        }
    }
    return wg__fail(err, WG_ENODEV, "rsmi_dev_pci_id_get: none of %u cards is at %s", count, pci);
}

enum wg_code wg__rocm_smi_open(struct wg_rocm_smi *smi, const char *library, const char *pci,
                               struct wg_error *err)
{
    *smi = (struct wg_rocm_smi){.library = NULL};
    struct calls calls = {.init = NULL};
    enum wg_code code = load(smi, library, &calls, err);
    const bool is_loaded = code == WG_OK && calls.init != NULL && calls.count != NULL &&
                           calls.address != NULL && smi->shut_down != NULL;
    const int status = is_loaded ? calls.init(0) : SUCCESS;
    if (status != SUCCESS)
        code = wg__fail(err, WG_EIO, "rsmi_init: status %d", status);
    if (!is_loaded || status != SUCCESS) {
        if (smi->library != NULL)
            (void)dlclose(smi->library);
        smi->library = NULL;
        return code;
    }
    code = find(&calls, pci, &smi->index, err);
    if (code != WG_OK)
        wg__rocm_smi_close(smi);
    return code;
}

void wg__rocm_smi_close(struct wg_rocm_smi *smi)
{
    if (smi == NULL || smi->library == NULL || smi->shut_down == NULL)
        return;
    (void)smi->shut_down();
    (void)dlclose(smi->library);
    smi->library = NULL;
}

enum wg_code wg__rocm_smi_energy(const struct wg_rocm_smi *smi, double *out_j, struct wg_error *err)
{
    if (smi->library == NULL || smi->energy == NULL)
        return wg__fail(err, WG_ESTATE, "rsmi_dev_energy_count_get: the library is closed");
    uint64_t counter = 0;
    float resolution_uj = 0.0F;
    uint64_t t_ns = 0;
    const int status = smi->energy(smi->index, &counter, &resolution_uj, &t_ns);
    if (status != SUCCESS)
        return wg__fail(err, status == 2 ? WG_EUNSUPPORTED : WG_EIO,
                        "rsmi_dev_energy_count_get: status %d", status);
    if (counter == UINT64_MAX || !(resolution_uj > 0.0F))
        return wg__fail(err, WG_EUNSUPPORTED,
                        "rsmi_dev_energy_count_get: nobody fills the counter");
    *out_j = (double)counter * (double)resolution_uj * MICRO;
    return WG_OK;
}
