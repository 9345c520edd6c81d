/* SPDX-License-Identifier: MIT
 *
 * NVML: the system, which GPUs there are, who they are, and MIG.
 *
 * UUIDs are compared whole, as the real library does (CUDA_VISIBLE_DEVICES takes prefixes, NVML
 * does not). A MIG device has a handle, a UUID, a name and memory of its own; power, energy and
 * clocks belong to the whole board and are "not supported" on it.
 *
 * Threads: any thread.
 */
#include "vgpu/nvml_library.h"

#include <stdio.h>
#include <string.h>

VGPU_NVML(nvmlSystemGetDriverVersion, char *out, unsigned size)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_at(&call, VGPU_FN_nvmlSystemGetDriverVersion, -1);
    return code != NVML_OK ? code : vgpu_put_text(out, size, call.machine->driver);
}

VGPU_NVML(nvmlSystemGetNVMLVersion, char *out, unsigned size)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_at(&call, VGPU_FN_nvmlSystemGetNVMLVersion, -1);
    return code != NVML_OK ? code : vgpu_put_text(out, size, call.machine->nvml_version);
}

static int cuda_version(enum vgpu_function function, int *out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_at(&call, function, -1);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    unsigned version = 0;
    vgpu_put_uint(&call, &version, call.machine->cuda_version);
    *out = (int)version;
    return NVML_OK;
}

VGPU_NVML(nvmlSystemGetCudaDriverVersion, int *out)
{
    return cuda_version(VGPU_FN_nvmlSystemGetCudaDriverVersion, out);
}

VGPU_NVML(nvmlSystemGetCudaDriverVersion_v2, int *out)
{
    return cuda_version(VGPU_FN_nvmlSystemGetCudaDriverVersion_v2, out);
}

static int count(enum vgpu_function function, unsigned *out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_at(&call, function, -1);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    vgpu_put_uint(&call, out, (double)call.machine->gpu_count);
    return NVML_OK;
}

VGPU_NVML(nvmlDeviceGetCount, unsigned *out)
{
    return count(VGPU_FN_nvmlDeviceGetCount, out);
}

VGPU_NVML(nvmlDeviceGetCount_v2, unsigned *out)
{
    return count(VGPU_FN_nvmlDeviceGetCount_v2, out);
}

/* Ends a look-up: `gpu_index` -1 is `missing`. */
static int find(enum vgpu_function function, int gpu_index, int mig_index, int missing,
                nvml_device *out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_at(&call, function, gpu_index);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    if (gpu_index < 0)
        return missing;
    *out = vgpu_handle(gpu_index, mig_index);
    return NVML_OK;
}

static int find_by_index(enum vgpu_function function, unsigned index, nvml_device *out)
{
    const struct vgpu_machine *machine = vgpu_current();
    const bool is_there = machine != NULL && index < machine->gpu_count;
    return find(function, is_there ? (int)index : -1, -1, NVML_E_INVALID_ARGUMENT, out);
}

VGPU_NVML(nvmlDeviceGetHandleByIndex, unsigned index, nvml_device *out)
{
    return find_by_index(VGPU_FN_nvmlDeviceGetHandleByIndex, index, out);
}

VGPU_NVML(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvml_device *out)
{
    return find_by_index(VGPU_FN_nvmlDeviceGetHandleByIndex_v2, index, out);
}

VGPU_NVML(nvmlDeviceGetHandleByUUID, const char *uuid, nvml_device *out)
{
    const struct vgpu_machine *machine = vgpu_current();
    int gpu_index = -1;
    int mig_index = -1;
    for (size_t i = 0; machine != NULL && uuid != NULL && i < machine->gpu_count; i++) {
        const struct vgpu_model *model = &machine->gpus[i].model;
        if (strcmp(model->uuid, uuid) == 0)
            gpu_index = (int)i;
        for (size_t k = 0; k < model->mig_count; k++) {
            if (strcmp(model->mig_uuids[k], uuid) == 0) {
                gpu_index = (int)i;
                mig_index = (int)k;
            }
        }
    }
    return find(VGPU_FN_nvmlDeviceGetHandleByUUID, gpu_index, mig_index,
                uuid == NULL ? NVML_E_INVALID_ARGUMENT : NVML_E_NOT_FOUND, out);
}

struct address {
    unsigned domain, bus, device;
};

static bool read_hex(const char **text, char end, unsigned *out)
{
    unsigned value = 0;
    size_t digits = 0;
    for (; **text != '\0' && strchr("0123456789abcdefABCDEF", **text) != NULL; (*text)++) {
        const unsigned c = (unsigned char)**text;
        value = value << 4 | (c <= '9' ? c - '0' : (c | 0x20U) - 'a' + 10U);
        digits++;
    }
    if (digits == 0 || digits > 8 || **text != end)
        return false;
    (*text)++;
    *out = value;
    return true;
}

/* "00000000:1A:00.0" or "0000:1a:00.0", the function optional. */
static bool read_address(const char *text, struct address *out)
{
    if (text == NULL || !read_hex(&text, ':', &out->domain) || !read_hex(&text, ':', &out->bus))
        return false;
    const char *rest = text;
    return read_hex(&text, '.', &out->device) || read_hex(&rest, '\0', &out->device);
}

static int find_by_address(enum vgpu_function function, const char *text, nvml_device *out)
{
    const struct vgpu_machine *machine = vgpu_current();
    struct address wanted;
    const bool is_address = read_address(text, &wanted);
    int gpu_index = -1;
    for (size_t i = 0; machine != NULL && is_address && i < machine->gpu_count; i++) {
        struct address own;
        if (read_address(machine->gpus[i].model.pci, &own) && own.domain == wanted.domain &&
            own.bus == wanted.bus && own.device == wanted.device)
            gpu_index = (int)i;
    }
    return find(function, gpu_index, -1, is_address ? NVML_E_NOT_FOUND : NVML_E_INVALID_ARGUMENT,
                out);
}

VGPU_NVML(nvmlDeviceGetHandleByPciBusId, const char *address, nvml_device *out)
{
    return find_by_address(VGPU_FN_nvmlDeviceGetHandleByPciBusId, address, out);
}

VGPU_NVML(nvmlDeviceGetHandleByPciBusId_v2, const char *address, nvml_device *out)
{
    return find_by_address(VGPU_FN_nvmlDeviceGetHandleByPciBusId_v2, address, out);
}

VGPU_NVML(nvmlDeviceGetName, nvml_device device, char *out, unsigned size)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_any(&call, VGPU_FN_nvmlDeviceGetName, device);
    if (code != NVML_OK)
        return code;
    const struct vgpu_model *model = &call.gpu->model;
    if (call.mig_index < 0)
        return vgpu_put_text(out, size, model->name);
    char name[VGPU_TEXT_MAX + 40];
    (void)snprintf(name, sizeof name, "%s MIG %s", model->name,
                   model->mig_profiles[call.mig_index]);
    return vgpu_put_text(out, size, name);
}

VGPU_NVML(nvmlDeviceGetUUID, nvml_device device, char *out, unsigned size)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_any(&call, VGPU_FN_nvmlDeviceGetUUID, device);
    if (code != NVML_OK)
        return code;
    const struct vgpu_model *model = &call.gpu->model;
    return vgpu_put_text(out, size,
                         call.mig_index < 0 ? model->uuid : model->mig_uuids[call.mig_index]);
}

/* Calls with one number that follows from the model alone. */
static int put_fact(enum vgpu_function function, nvml_device device, unsigned *out,
                    unsigned (*fact)(const struct vgpu_call *call))
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, function, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    vgpu_put_uint(&call, out, fact(&call));
    return NVML_OK;
}

static unsigned fact_index(const struct vgpu_call *call)
{
    return (unsigned)call->gpu_index;
}

static unsigned fact_architecture(const struct vgpu_call *call)
{
    return (unsigned)call->gpu->model.architecture;
}

static unsigned fact_cores(const struct vgpu_call *call)
{
    return call->gpu->model.cores;
}

static unsigned fact_bus_bits(const struct vgpu_call *call)
{
    return call->gpu->model.memory_bus_bits;
}

static unsigned fact_zero(const struct vgpu_call *call)
{
    (void)call;
    return 0;
}

static unsigned fact_pcie(const struct vgpu_call *call)
{
    (void)call;
    return NVML_BUS_PCIE;
}

static unsigned fact_board(const struct vgpu_call *call)
{
    struct address address = {0};
    (void)read_address(call->gpu->model.pci, &address);
    return address.domain << 16 | address.bus << 8 | address.device;
}

static unsigned fact_brand(const struct vgpu_call *call)
{
    const char *name = call->gpu->model.name;
    if (strstr(name, "GeForce") != NULL)
        return NVML_BRAND_GEFORCE;
    return strncmp(name, "Tesla", 5) == 0 ? NVML_BRAND_TESLA : NVML_BRAND_NVIDIA;
}

static unsigned fact_mig_count(const struct vgpu_call *call)
{
    return (unsigned)call->gpu->model.mig_count;
}

VGPU_NVML(nvmlDeviceGetIndex, nvml_device device, unsigned *out)
{
    return put_fact(VGPU_FN_nvmlDeviceGetIndex, device, out, fact_index);
}

VGPU_NVML(nvmlDeviceGetMinorNumber, nvml_device device, unsigned *out)
{
    return put_fact(VGPU_FN_nvmlDeviceGetMinorNumber, device, out, fact_index);
}

VGPU_NVML(nvmlDeviceGetArchitecture, nvml_device device, unsigned *out)
{
    return put_fact(VGPU_FN_nvmlDeviceGetArchitecture, device, out, fact_architecture);
}

VGPU_NVML(nvmlDeviceGetNumGpuCores, nvml_device device, unsigned *out)
{
    return put_fact(VGPU_FN_nvmlDeviceGetNumGpuCores, device, out, fact_cores);
}

VGPU_NVML(nvmlDeviceGetMemoryBusWidth, nvml_device device, unsigned *out)
{
    return put_fact(VGPU_FN_nvmlDeviceGetMemoryBusWidth, device, out, fact_bus_bits);
}

VGPU_NVML(nvmlDeviceGetComputeMode, nvml_device device, unsigned *out)
{
    return put_fact(VGPU_FN_nvmlDeviceGetComputeMode, device, out, fact_zero);
}

VGPU_NVML(nvmlDeviceGetBusType, nvml_device device, unsigned *out)
{
    return put_fact(VGPU_FN_nvmlDeviceGetBusType, device, out, fact_pcie);
}

VGPU_NVML(nvmlDeviceGetBoardId, nvml_device device, unsigned *out)
{
    return put_fact(VGPU_FN_nvmlDeviceGetBoardId, device, out, fact_board);
}

VGPU_NVML(nvmlDeviceGetBrand, nvml_device device, unsigned *out)
{
    return put_fact(VGPU_FN_nvmlDeviceGetBrand, device, out, fact_brand);
}

VGPU_NVML(nvmlDeviceGetMaxMigDeviceCount, nvml_device device, unsigned *out)
{
    return put_fact(VGPU_FN_nvmlDeviceGetMaxMigDeviceCount, device, out, fact_mig_count);
}

VGPU_NVML(nvmlDeviceGetCudaComputeCapability, nvml_device device, int *major_out, int *minor_out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_any(&call, VGPU_FN_nvmlDeviceGetCudaComputeCapability, device);
    if (code != NVML_OK)
        return code;
    if (major_out == NULL || minor_out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    *major_out = call.gpu->model.compute_major;
    *minor_out = call.gpu->model.compute_minor;
    return NVML_OK;
}

/* The older calls know a shorter struct, and write no more than that. */
static int put_pci(enum vgpu_function function, nvml_device device, struct nvml_pci_info *out,
                   size_t size)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, function, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    const struct vgpu_model *model = &call.gpu->model;
    struct address address = {0};
    (void)read_address(model->pci, &address);
    struct nvml_pci_info info = {.domain = address.domain,
                                 .bus = address.bus,
                                 .device = address.device,
                                 .pci_device_id = model->pci_device_id};
    memcpy(info.bus_id, model->pci, strnlen(model->pci, sizeof info.bus_id - 1));
    /* The legacy form has a domain of four digits: "0000:1A:00.0". */
    const char *colon = strchr(info.bus_id, ':');
    const size_t digits = colon != NULL ? (size_t)(colon - info.bus_id) : 0;
    const char *legacy = info.bus_id + (digits > 4 ? digits - 4 : 0);
    memcpy(info.bus_id_legacy, legacy, strnlen(legacy, sizeof info.bus_id_legacy - 1));
    memcpy(out, &info, size);
    return NVML_OK;
}

VGPU_NVML(nvmlDeviceGetPciInfo, nvml_device device, struct nvml_pci_info *out)
{
    return put_pci(VGPU_FN_nvmlDeviceGetPciInfo, device, out,
                   offsetof(struct nvml_pci_info, pci_subsystem_id));
}

VGPU_NVML(nvmlDeviceGetPciInfo_v2, nvml_device device, struct nvml_pci_info *out)
{
    return put_pci(VGPU_FN_nvmlDeviceGetPciInfo_v2, device, out,
                   offsetof(struct nvml_pci_info, bus_id));
}

VGPU_NVML(nvmlDeviceGetPciInfo_v3, nvml_device device, struct nvml_pci_info *out)
{
    return put_pci(VGPU_FN_nvmlDeviceGetPciInfo_v3, device, out, sizeof *out);
}

/* Whether a GPU of this kind can be divided, by what is documented: A100 and A30 (compute 8.0), and
 * the data centre chips from Hopper on (9.0, 10.x). */
static bool can_mig(const struct vgpu_model *model)
{
    return model->is_mig || model->compute_major == 9 || model->compute_major == 10 ||
           (model->compute_major == 8 && model->compute_minor == 0);
}

VGPU_NVML(nvmlDeviceGetMigMode, nvml_device device, unsigned *current_out, unsigned *pending_out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetMigMode, device);
    if (code != NVML_OK)
        return code;
    if (current_out == NULL || pending_out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    if (!can_mig(&call.gpu->model))
        return NVML_E_NOT_SUPPORTED;
    vgpu_put_uint(&call, current_out, call.gpu->model.is_mig);
    vgpu_put_uint(&call, pending_out, call.gpu->model.is_mig);
    return NVML_OK;
}

VGPU_NVML(nvmlDeviceIsMigDeviceHandle, nvml_device device, unsigned *out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_any(&call, VGPU_FN_nvmlDeviceIsMigDeviceHandle, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    vgpu_put_uint(&call, out, call.mig_index >= 0);
    return NVML_OK;
}

VGPU_NVML(nvmlDeviceGetMigDeviceHandleByIndex, nvml_device device, unsigned index, nvml_device *out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetMigDeviceHandleByIndex, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    if (!can_mig(&call.gpu->model))
        return NVML_E_NOT_SUPPORTED;
    if (index >= call.gpu->model.mig_count)
        return index < VGPU_MIG_MAX ? NVML_E_NOT_FOUND : NVML_E_INVALID_ARGUMENT;
    *out = vgpu_handle(call.gpu_index, (int)index);
    return NVML_OK;
}

VGPU_NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvml_device device, nvml_device *out)
{
    struct vgpu_call call;
    const int code =
        vgpu_call_begin_any(&call, VGPU_FN_nvmlDeviceGetDeviceHandleFromMigDeviceHandle, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL || call.mig_index < 0)
        return NVML_E_INVALID_ARGUMENT;
    *out = vgpu_handle(call.gpu_index, -1);
    return NVML_OK;
}

static int mig_number(enum vgpu_function function, nvml_device device, unsigned *out, bool is_gpu)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_any(&call, function, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    if (call.mig_index < 0)
        return NVML_E_NOT_SUPPORTED;
    /* One compute instance in each GPU instance, numbered from 1 as nvidia-smi makes them. */
    vgpu_put_uint(&call, out, is_gpu ? call.mig_index + 1 : 0);
    return NVML_OK;
}

VGPU_NVML(nvmlDeviceGetGpuInstanceId, nvml_device device, unsigned *out)
{
    return mig_number(VGPU_FN_nvmlDeviceGetGpuInstanceId, device, out, true);
}

VGPU_NVML(nvmlDeviceGetComputeInstanceId, nvml_device device, unsigned *out)
{
    return mig_number(VGPU_FN_nvmlDeviceGetComputeInstanceId, device, out, false);
}
